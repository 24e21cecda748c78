//! Base64, Base32, Base85 and hexadecimal digits as bytes. What is not of the alphabet is passed over, except in
//! Base85, of which any sign may be one.

/// Whether a byte is of a Base64 alphabet, or pads.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

const SIXTY_FOUR: [u8; 256] = {
    let mut table = [255; 256];
    let mut at = 0_u8;
    while at < 64 {
        let letter =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[at as usize];
        table[letter as usize] = at;
        at += 1;
    }
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
};

/// Base64 of any alphabet from a phase on; whatever is not of it is passed over.
pub(crate) fn base64(bytes: &[u8], phase: usize) -> Vec<u8> {
    let mut rest = bytes.get(phase..).unwrap_or_default();
    let mut out = Vec::with_capacity(rest.len() / 4 * 3 + 3);
    let (mut value, mut count) = (0_u32, 0);
    loop {
        if count == 0 {
            rest = base64_groups(rest, &mut out);
        }
        let Some((byte, after)) = rest.split_first() else { break };
        rest = after;
        let digit = SIXTY_FOUR[usize::from(*byte)];
        if digit == 255 {
            if *byte == b'=' && count > 0 {
                finish_group(&mut out, value, count);
                (value, count) = (0, 0);
            }
            continue;
        }
        value = value << 6 | u32::from(digit);
        count += 1;
        if count == 4 {
            let [_, first, second, third] = value.to_be_bytes();
            out.extend_from_slice(&[first, second, third]);
            (value, count) = (0, 0);
        }
    }
    finish_group(&mut out, value, count);
    out
}

/// Whether two groups are printable ASCII.
pub(crate) fn printable_base64(eight: &[u8; 8]) -> bool {
    eight.as_chunks::<4>().0.iter().all(|group| {
        let [a, b, c, d] = group.map(|byte| SIXTY_FOUR[usize::from(byte)]);
        let value = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
        (a | b | c | d) < 64 && value.to_be_bytes()[1..].iter().all(|byte| is_printable(*byte))
    })
}

/// Whether four pairs of digits are printable ASCII.
pub(crate) fn printable_hex(eight: &[u8; 8]) -> bool {
    eight.as_chunks::<2>().0.iter().all(|[high, low]| match (nibble(*high), nibble(*low)) {
        (Some(high), Some(low)) => is_printable(high << 4 | low),
        _ => false,
    })
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Takes groups of four off as long as all are of the alphabet, four of them at once.
#[inline]
fn base64_groups<'b>(mut rest: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
    let four = |four: &[u8; 4]| {
        let [a, b, c, d] = four.map(|byte| SIXTY_FOUR[usize::from(byte)]);
        let value = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
        ((a | b | c | d) < 64, value.to_be_bytes())
    };
    while let Some((block, after)) = rest.split_first_chunk::<16>() {
        let mut decoded = [0; 12];
        let mut good = true;
        for (group, to) in block.as_chunks::<4>().0.iter().zip(decoded.as_chunks_mut::<3>().0) {
            let (all, [_, first, second, third]) = four(group);
            good &= all;
            *to = [first, second, third];
        }
        if !good {
            break;
        }
        out.extend_from_slice(&decoded);
        rest = after;
    }
    while let Some((group, after)) = rest.split_first_chunk::<4>() {
        let (all, [_, first, second, third]) = four(group);
        if !all {
            break;
        }
        out.extend_from_slice(&[first, second, third]);
        rest = after;
    }
    rest
}

fn finish_group(out: &mut Vec<u8>, value: u32, count: u32) {
    match count {
        2 => out.push(value.to_be_bytes()[3] >> 4 | value.to_be_bytes()[2] << 4),
        3 => {
            let [_, _, high, low] = (value >> 2).to_be_bytes();
            out.extend_from_slice(&[high, low]);
        }
        _ => {}
    }
}

/// Digits of a Base32 alphabet by byte, in either case; 255 for all others.
const fn digits32(alphabet: &[u8; 32]) -> [u8; 256] {
    let mut table = [255; 256];
    let mut at = 0_u8;
    while at < 32 {
        let digit = alphabet[at as usize];
        table[digit as usize] = at;
        table[digit.to_ascii_lowercase() as usize] = at;
        at += 1;
    }
    table
}

/// The usual alphabet of Base32.
pub(super) static BASE32: [u8; 256] = digits32(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
/// The one that sorts as the bytes do.
pub(super) static BASE32_HEX: [u8; 256] = digits32(b"0123456789ABCDEFGHIJKLMNOPQRSTUV");

/// Base32 of an alphabet; whatever is not of it is passed over.
pub(super) fn base32(bytes: &[u8], alphabet: &[u8; 256]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 8 * 5 + 5);
    let (mut rest, mut value, mut count) = (bytes, 0_u16, 0);
    loop {
        // Eight at once, as long as all are of the alphabet.
        while count == 0
            && let Some((eight, after)) = rest.split_first_chunk::<8>()
        {
            let digits = eight.map(|byte| alphabet[usize::from(byte)]);
            if digits.iter().fold(0, |any, digit| any | digit) >= 32 {
                break;
            }
            let group = digits.iter().fold(0, |group, digit| group << 5 | u64::from(*digit));
            let [_, _, _, a, b, c, d, e] = group.to_be_bytes();
            out.extend_from_slice(&[a, b, c, d, e]);
            rest = after;
        }
        let Some((byte, after)) = rest.split_first() else { break };
        rest = after;
        let digit = alphabet[usize::from(*byte)];
        if digit == 255 {
            continue;
        }
        value = value << 5 | u16::from(digit);
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push((value >> count).to_be_bytes()[1]);
        }
    }
    out
}

/// Pairs of hexadecimal digits, white space passed over.
pub(crate) fn hex(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 2);
    let mut high = None;
    for digit in bytes.iter().filter_map(|byte| nibble(*byte)) {
        high = match high {
            None => Some(digit),
            Some(high) => {
                out.push(high << 4 | digit);
                None
            }
        };
    }
    out
}

/// The value of a hexadecimal digit.
pub(crate) fn nibble(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Digits of a Base85 alphabet by byte; 255 for all others.
const fn digits85(alphabet: &[u8; 85]) -> [u8; 256] {
    let mut table = [255; 256];
    let mut at = 0_u8;
    while at < 85 {
        table[alphabet[at as usize] as usize] = at;
        at += 1;
    }
    table
}

pub(super) static ASCII85: [u8; 256] = digits85(
    b"!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstu",
);
pub(super) static RFC1924: [u8; 256] = digits85(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
);
pub(super) static Z85: [u8; 256] = digits85(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
);

/// Whether the first three groups may be the beginning of text, or of something compressed.
fn begins_text(start: &[u8; 15], digits: &[u8; 256]) -> bool {
    let mut out = [0; 12];
    for (group, to) in start.as_chunks::<5>().0.iter().zip(out.as_chunks_mut::<4>().0) {
        let value =
            group.iter().fold(0, |value, byte| value * 85 + u64::from(digits[usize::from(*byte)]));
        match u32::try_from(value) {
            Ok(value) if group.iter().all(|byte| digits[usize::from(*byte)] < 85) => {
                *to = value.to_be_bytes();
            }
            _ => return false,
        }
    }
    let broken = std::str::from_utf8(&out).is_err_and(|error| error.error_len().is_some());
    !broken || out.starts_with(&[0x1f, 0x8b]) || out[0] == 0x78
}

/// Base85 with the digits of one alphabet; gives up early on what is not text.
pub(super) fn base85(bytes: &[u8], digits: &[u8; 256]) -> Option<Vec<u8>> {
    if bytes.first_chunk().is_some_and(|start| !begins_text(start, digits)) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 5 * 4 + 4);
    let (mut value, mut count, mut odd) = (0_u64, 0_usize, 0_usize);
    for byte in bytes {
        let digit = digits[usize::from(*byte)];
        if digit == 255 {
            return None;
        }
        value = value * 85 + u64::from(digit);
        count += 1;
        if count == 5 {
            let group = u32::try_from(value).ok()?.to_be_bytes();
            odd += group.iter().filter(|byte| **byte < 9).count();
            out.extend_from_slice(&group);
            if odd > 4 + out.len() / 8 {
                return None;
            }
            (value, count) = (0, 0);
        }
        if out.len() == 12
            && std::str::from_utf8(&out).is_err_and(|error| error.error_len().is_some())
            && !out.starts_with(&[0x1f, 0x8b])
            && out[0] != 0x78
        {
            return None;
        }
    }
    if count > 1 {
        for _ in count..5 {
            value = value * 85 + 84;
        }
        out.extend_from_slice(&u32::try_from(value).ok()?.to_be_bytes()[..count - 1]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets() {
        assert_eq!(base64(b"aGVsbG8gd29ybGQ=", 0), b"hello world");
        assert_eq!(base64(b"aGVsbG8gd29ybGQ", 0), b"hello world");
        assert_eq!(base32(b"NBSWY3DPEB3W64TMMQ======", &BASE32), b"hello world");
        assert_eq!(base32(b"nbswy3dpeb3w64tmmq", &BASE32), b"hello world");
        assert_eq!(base32(b"D1IMOR3F41RMUSJCCG======", &BASE32_HEX), b"hello world");
        assert_eq!(base85(b"BOu!rD]j7BEbo7", &ASCII85).unwrap(), b"hello world");
        assert_eq!(base85(b"Xk~0{Zy<MXa%^M", &RFC1924).unwrap(), b"hello world");
        assert_eq!(hex(b"68656c6c6f"), b"hello");
    }
}
