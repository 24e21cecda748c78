//! The learned weights as a file: numbers of eight bits with one scale.

use std::borrow::Cow;

/// Two to the power of this are the weights.
pub const BITS: u32 = 18;
/// The number of weights.
pub const BUCKETS: usize = 1 << BITS;
/// Kinds of text: the user's own prompts, and everything else.
pub const KINDS: usize = 2;

const MAGIC: &[u8; 8] = b"WKSCORE2";
/// Behind the magic: scale, and for each kind of text bias, threshold and length.
const HEADER: usize = MAGIC.len() + 4 * (1 + 3 * KINDS);
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
    /// What is asked in addition of a longer text, by kind: so much for each time its length is multiplied by e.
    pub length: [f32; KINDS],
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
        let mut numbers = [0.0; 1 + 3 * KINDS];
        let (chunks, _) = bytes[MAGIC.len()..HEADER].as_chunks::<4>();
        for (number, chunk) in numbers.iter_mut().zip(chunks) {
            *number = f32::from_le_bytes(*chunk);
        }
        let [scale, first, second, low, high, short, long] = numbers;
        numbers.iter().all(|number| number.is_finite()).then_some(Self {
            scale,
            bias: [first, second],
            threshold: [low, high],
            length: [short, long],
            cells: Cow::Borrowed(&bytes[HEADER..]),
        })
    }

    /// Writes a file.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for number in
            [self.scale].into_iter().chain(self.bias).chain(self.threshold).chain(self.length)
        {
            out.extend(number.to_le_bytes());
        }
        out.extend_from_slice(&self.cells);
        out
    }
}
