//! Backslash escapes of `$'…'`, `echo -e` and `printf`.

/// `$'…'` behind its quote: the text, the bytes read, whether it was closed.
pub(super) fn ansi(bytes: &[u8]) -> (String, usize, bool) {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\'' => {
                // The text ends at a zero.
                let end = memchr::memchr(0, &out).unwrap_or(out.len());
                return (String::from_utf8_lossy(&out[..end]).into_owned(), at, true);
            }
            b'\\' if bytes[at..].starts_with(b"x{") => {
                let close = memchr::memchr(b'}', &bytes[at..]).unwrap_or(1);
                let digits = std::str::from_utf8(&bytes[at + 2..at + close.max(2)]).unwrap_or("");
                match u32::from_str_radix(digits, 16) {
                    Ok(value) => {
                        out.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
                        at += close + 1;
                    }
                    Err(_) => at += unescape(&bytes[at..], &mut out),
                }
            }
            b'\\' => at += unescape(&bytes[at..], &mut out),
            _ => out.push(byte),
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), at, false)
}

/// One backslash escape behind its backslash; how many bytes it takes.
pub(crate) fn unescape(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let Some(&sign) = bytes.first() else {
        out.push(b'\\');
        return 0;
    };
    let digits = |from: usize, most: usize, radix: u32| {
        let text = &bytes[from.min(bytes.len())..];
        let length = text.iter().take(most).take_while(|b| char::from(**b).is_digit(radix)).count();
        let value = text[..length]
            .iter()
            .filter_map(|b| char::from(*b).to_digit(radix))
            .fold(0_u32, |value, digit| value.wrapping_mul(radix).wrapping_add(digit));
        (value, length)
    };
    let simple = match sign {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 7,
        b'b' => 8,
        b'e' | b'E' => 27,
        b'f' => 12,
        b'v' => 11,
        b'\\' | b'\'' | b'"' | b'?' => sign,
        b'x' | b'u' | b'U' => {
            let most = match sign {
                b'x' => 2,
                b'u' => 4,
                _ => 8,
            };
            let (value, length) = digits(1, most, 16);
            if length == 0 {
                out.extend([b'\\', sign]);
            } else if sign == b'x' {
                out.push(u8::try_from(value).unwrap_or(b'?'));
            } else {
                let sign = char::from_u32(value).unwrap_or('\u{fffd}');
                out.extend(sign.to_string().bytes());
            }
            return 1 + length;
        }
        b'0'..=b'7' => {
            let (value, length) = digits(0, 3, 8);
            out.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            return length;
        }
        b'c' => {
            out.push(bytes.get(1).map_or(b'c', |control| control & 0x1f));
            return bytes.len().min(2);
        }
        _ => {
            out.extend([b'\\', sign]);
            return 1;
        }
    };
    out.push(simple);
    1
}
