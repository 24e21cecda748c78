//! What the learned score looks at: tokens, pairs and triples of them, and runs of characters, each as a number.
//!
//! One pass, no memory: a text of any length costs its length. A change here needs new weights.

/// Tokens of a block, at most.
const BLOCK_TOKENS: usize = 16;
/// Bytes of a block, about.
const BLOCK_BYTES: usize = 256;
/// Blocks of a window: an attack may be a sentence, or the whole of a text.
pub const SCALES: [usize; 3] = [1, 2, WINDOW];
/// Blocks of the longest window.
pub const WINDOW: usize = 4;

/// Runs of five bytes; of eight where letters take several.
const FIVE: u64 = (1 << 40) - 1;

/// Takes what a text is made of.
pub trait Sink {
    /// A feature: a number of 32 bits, the upper ones well mixed.
    fn feature(&mut self, hash: u32);
    /// A block ends before this byte.
    fn block(&mut self, end: usize);
}

/// Digits are alike, and so are blanks.
const FOLD: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let byte = at as u8;
        table[at] = match byte {
            0..=b' ' | 0x7f => b' ',
            b'0'..=b'9' => b'0',
            b'A'..=b'Z' => byte + 32,
            other => other,
        };
        at += 1;
    }
    table
};

const MULTIPLY: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(value: u64) -> u32 {
    (value.wrapping_mul(MULTIPLY) >> 32) as u32
}

/// Words as they come, and the two before.
#[derive(Default)]
struct Tokens {
    word: u32,
    last: u32,
    before: u32,
    count: usize,
    /// Whether the word has a letter: a row of numbers is no wording.
    letter: bool,
}

impl Tokens {
    #[inline]
    fn end(&mut self, sink: &mut impl Sink) {
        if self.letter {
            let (word, last, before) =
                (u64::from(self.word), u64::from(self.last), u64::from(self.before));
            sink.feature(mix(word ^ 0x5bd1_e995_0000_0000));
            sink.feature(mix(word.rotate_left(25) ^ last.wrapping_mul(0x8545_9f85)));
            sink.feature(mix(word.rotate_left(41) ^ before.wrapping_mul(0xc2b2_ae35)));
            sink.feature(mix(word.rotate_left(13)
                ^ last.wrapping_mul(0x27d4_eb2f_1656)
                ^ before.wrapping_mul(0x1656_67b1_9e37)));
        }
        self.letter = false;
        (self.before, self.last, self.word) = (self.last, self.word, 0);
        self.count += 1;
    }
}

/// Reads a text in normal form. Words stand between signs; in scripts without gaps every character is one.
pub fn walk(text: &str, sink: &mut impl Sink) {
    let bytes = text.as_bytes();
    let mut tokens = Tokens::default();
    let mut run = u64::from(b' ');
    // Which of the last five bytes are letters.
    let mut letters = 0u8;
    // Bytes to come of a character that is a token by itself.
    let mut rest = 0;
    let mut from = 0;
    for (at, raw) in bytes.iter().enumerate() {
        let byte = FOLD[usize::from(*raw)];
        if byte == b' ' && run & 0xff == u64::from(b' ') {
            continue;
        }
        run = run << 8 | u64::from(byte);
        let letter = byte >= 0x80 || byte.is_ascii_lowercase();
        letters = letters << 1 | u8::from(letter);
        tokens.letter |= letter;
        if byte < 0x80 {
            if letters & 0b1_1111 != 0 {
                sink.feature(mix(run & FIVE));
            }
            if byte.is_ascii_alphanumeric() {
                tokens.word = (tokens.word ^ u32::from(byte)).wrapping_mul(0x0100_0193);
                continue;
            }
        } else {
            if (0xe3..=0xed).contains(&byte) {
                if tokens.word != 0 {
                    tokens.end(sink);
                }
                rest = 3;
            } else if rest == 0 {
                sink.feature(mix(run));
            }
            tokens.word = (tokens.word ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            if rest == 0 {
                continue;
            }
            rest -= 1;
            if rest > 0 {
                continue;
            }
        }
        if tokens.word != 0 {
            tokens.end(sink);
        }
        if tokens.count >= BLOCK_TOKENS || at - from >= BLOCK_BYTES {
            tokens.count = 0;
            from = at + 1;
            sink.block(from);
        }
    }
    if tokens.word != 0 {
        tokens.end(sink);
    }
    if from < bytes.len() {
        sink.block(bytes.len());
    }
}
