//! Which bytes of a block pass a test, as bits.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// Bit `n` says whether byte `n` passes.
///
/// Written so that the compiler does sixteen bytes at once: each byte becomes a bit of its own in
/// one of eight bytes, and the eight by eight bits are turned.
#[inline]
pub(crate) fn bits(block: &[u8; BLOCK], test: impl Fn(u8) -> bool) -> u64 {
    let mut marks = [0u8; BLOCK];
    for (place, (mark, &byte)) in marks.iter_mut().zip(block).enumerate() {
        *mark = u8::from(test(byte)).wrapping_neg() & (1 << (place / 8));
    }
    let mut turned = 0;
    for chunk in marks.as_chunks::<8>().0 {
        turned |= u64::from_le_bytes(*chunk);
    }
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let swapped = (turned ^ (turned >> shift)) & mask;
        turned ^= swapped | swapped << shift;
    }
    turned
}

/// Where the first byte from a place on stands that passes.
///
/// A few bytes are looked at one by one: where such bytes are frequent, the next is near.
#[inline]
pub(crate) fn find(bytes: &[u8], from: usize, test: impl Fn(u8) -> bool) -> Option<usize> {
    const NEAR: usize = 8;
    let rest = bytes.get(from..)?;
    let (near, far) = rest.split_at(rest.len().min(NEAR));
    if let Some(place) = near.iter().position(|byte| test(*byte)) {
        return Some(from + place);
    }
    let (blocks, tail) = far.as_chunks::<BLOCK>();
    let mut at = from + near.len();
    for block in blocks {
        // Without a branch for each byte.
        if block.iter().fold(false, |any, byte| any | test(*byte)) {
            return Some(at + bits(block, &test).trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    tail.iter().position(|byte| test(*byte)).map(|place| at + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_stand_for_bytes() {
        for place in 0..BLOCK {
            let mut block = [b' '; BLOCK];
            block[place] = b'x';
            assert_eq!(bits(&block, |byte| byte == b'x'), 1 << place);
            assert_eq!(bits(&block, |byte| byte == b' '), !(1 << place));
        }
    }

    #[test]
    fn the_first_byte_is_found() {
        for length in 0..200 {
            for place in 0..=length {
                let mut bytes = vec![b' '; length];
                bytes[place..].fill(b'x');
                let expected = (place < length).then_some(place);
                assert_eq!(find(&bytes, 0, |byte| byte == b'x'), expected);
                assert_eq!(find(&bytes, place, |byte| byte == b'x'), expected);
            }
        }
        assert_eq!(find(b"x", 2, |byte| byte == b'x'), None);
    }
}
