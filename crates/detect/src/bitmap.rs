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
}
