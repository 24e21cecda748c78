//! The learned weights as a file: numbers of eight bits with one scale.

use std::borrow::Cow;

/// Two to the power of this are the weights.
pub const BITS: u32 = 18;
/// The number of weights.
pub const BUCKETS: usize = 1 << BITS;
/// Kinds of text: the user's own prompts, and everything else.
pub const KINDS: usize = 2;

const MAGIC: &[u8; 8] = b"WKSCORE1";
/// Behind the magic: scale, and for each kind of text bias and threshold.
const HEADER: usize = MAGIC.len() + 4 * (1 + 2 * KINDS);
/// The length of a file.
pub const LENGTH: usize = HEADER + BUCKETS;

/// The weights.
#[derive(Debug, Clone)]
pub struct Weights {
    /// What a weight of one stands for.
    pub scale: f32,
    /// What is added, by kind of text.
    pub bias: [f32; KINDS],
    /// From where on a text is suspicious by its score alone, by kind of text.
    pub threshold: [f32; KINDS],
    /// The weights themselves.
    pub cells: Cow<'static, [u8]>,
}

impl Weights {
    /// Reads a file; `None` where it is none.
    #[must_use]
    pub fn read(bytes: &'static [u8]) -> Option<Self> {
        if bytes.len() != LENGTH || !bytes.starts_with(MAGIC) {
            return None;
        }
        let mut numbers = [0.0; 1 + 2 * KINDS];
        let (chunks, _) = bytes[MAGIC.len()..HEADER].as_chunks::<4>();
        for (number, chunk) in numbers.iter_mut().zip(chunks) {
            *number = f32::from_le_bytes(*chunk);
        }
        let [scale, first, second, low, high] = numbers;
        numbers.iter().all(|number| number.is_finite()).then_some(Self {
            scale,
            bias: [first, second],
            threshold: [low, high],
            cells: Cow::Borrowed(&bytes[HEADER..]),
        })
    }

    /// Writes a file.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for number in [self.scale].into_iter().chain(self.bias).chain(self.threshold) {
            out.extend(number.to_le_bytes());
        }
        out.extend_from_slice(&self.cells);
        out
    }
}
