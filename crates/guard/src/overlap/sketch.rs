//! What is kept of a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use siphasher::sip::SipHasher13;
use wardkeep_evidence::hash::sha256;

use super::common::is_common;
use super::words::{Word, shingles};

/// Hashes of one sketch.
const MOST: usize = 1 << 15;
/// A longer text is sampled more coarsely.
const SHORT: usize = 4096;
/// Of so many hashes in a row one is kept, of a short text and of a long one.
const WINDOWS: [usize; 2] = [2, 4];
/// The form in which sketches are kept.
const VERSION: u8 = 1;

/// Makes hashes that mean nothing without it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key(SipHasher13);

impl Key {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let digest = sha256(&[b"wardkeep sketch 1\0", &key[..]].concat());
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        Self(SipHasher13::new_with_key(&half))
    }

    pub(super) fn of(&self, shingle: u64) -> u32 {
        // The lower half: one of two equally good ones.
        let [a, b, c, d, ..] = self.0.hash(&shingle.to_le_bytes()).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// A text as far as it takes to notice when it is repeated.
///
/// Its bytes are a version, a flag, and the hashes in order, each as the difference from the one
/// before; three or four bytes a hash, two hashes for three words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// Sorted, each once.
    hashes: Vec<u32>,
    complete: bool,
}

/// The bytes are not those of a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a sketch of a text, or one of a newer form")]
pub struct ParseSketchError;

impl Sketch {
    /// Of a text, with a key that all sketches of a session share.
    #[must_use]
    pub fn of(text: &str, key: &[u8; 32]) -> Self {
        let key = Key::new(key);
        let mut hashes = Vec::new();
        super::readings(text, |words| winnow(words, &key, &mut hashes));
        hashes.sort_unstable();
        hashes.dedup();
        let complete = hashes.len() <= MOST;
        hashes.truncate(MOST);
        Self { hashes, complete }
    }

    /// Whether all of the text is in it. Where it is not, whatever is written may repeat it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether the text had too few words to be known again.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How much of the text is kept, in hashes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// The bytes to keep.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 + self.hashes.len() * 4);
        bytes.extend([VERSION, u8::from(self.complete)]);
        let mut next = 0;
        for hash in &self.hashes {
            // Each is larger than the one before, so the least that is possible is 0.
            let mut rest = u64::from(*hash) - next;
            next = u64::from(*hash) + 1;
            while rest > 0x7f {
                bytes.push(0x80 | rest.to_le_bytes()[0] & 0x7f);
                rest >>= 7;
            }
            bytes.push(rest.to_le_bytes()[0]);
        }
        bytes
    }

    /// From bytes that were kept.
    ///
    /// # Errors
    ///
    /// Other bytes than [`Sketch::to_bytes`] gives.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseSketchError> {
        let [VERSION, complete @ (0 | 1), rest @ ..] = bytes else {
            return Err(ParseSketchError);
        };
        let mut hashes = Vec::with_capacity((rest.len() / 3).min(MOST));
        let (mut next, mut value, mut shift) = (0_u64, 0_u64, 0);
        for byte in rest {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 != 0 {
                if shift > 28 {
                    return Err(ParseSketchError);
                }
                continue;
            }
            // One form only.
            if *byte == 0 && shift > 7 {
                return Err(ParseSketchError);
            }
            let hash = u32::try_from(next + value).map_err(|_| ParseSketchError)?;
            if hashes.len() == MOST {
                return Err(ParseSketchError);
            }
            hashes.push(hash);
            (next, value, shift) = (u64::from(hash) + 1, 0, 0);
        }
        if shift != 0 {
            return Err(ParseSketchError);
        }
        Ok(Self { hashes, complete: *complete == 1 })
    }

    /// The bytes in Base64, for a record.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD_NO_PAD.encode(self.to_bytes())
    }

    /// From Base64.
    ///
    /// # Errors
    ///
    /// Other text than [`Sketch::to_base64`] gives.
    pub fn from_base64(text: &str) -> Result<Self, ParseSketchError> {
        Self::from_bytes(&STANDARD_NO_PAD.decode(text).map_err(|_| ParseSketchError)?)
    }
}

/// Keeps the least of so many hashes in a row, so that none of the windows is without one.
fn winnow(words: &[Word], key: &Key, kept: &mut Vec<u32>) {
    let window = WINDOWS[usize::from(words.len() > SHORT)];
    let mut last = [None; WINDOWS[1]];
    for (at, shingle) in shingles(words).enumerate() {
        last[at % window] = (!is_common(shingle)).then(|| key.of(shingle));
        if at + 1 < window {
            continue;
        }
        if let Some(least) = last[..window].iter().flatten().min()
            && kept.last() != Some(least)
        {
            kept.push(*least);
        }
    }
    // A text of fewer hashes than a window.
    if words.len() < super::SHINGLE + window - 1 {
        kept.extend(last[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [9; 32];

    #[test]
    fn the_form_is_one() {
        let sketch = Sketch { hashes: vec![0, 1, 127, 130, 16_600, u32::MAX], complete: true };
        let bytes = sketch.to_bytes();
        assert_eq!(Sketch::from_bytes(&bytes), Ok(sketch.clone()));
        assert_eq!(Sketch::from_base64(&sketch.to_base64()), Ok(sketch));
        for bad in [
            &[][..],
            &[1],
            &[2, 1],
            &[1, 2],
            &[1, 1, 0x80],
            &[1, 1, 0x80, 0],
            &[1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0],
            &[1, 1, 0xff, 0xff, 0xff, 0xff, 0x1f],
        ] {
            assert_eq!(Sketch::from_bytes(bad), Err(ParseSketchError), "{bad:?}");
        }
        assert_eq!(Sketch::from_base64("AQ=="), Err(ParseSketchError));
    }

    #[test]
    fn a_sketch_depends_on_the_key() {
        let text = "one two three four five six seven eight nine ten";
        assert_eq!(Sketch::of(text, &KEY), Sketch::of(text, &KEY));
        assert_ne!(Sketch::of(text, &KEY), Sketch::of(text, &[8; 32]));
        assert!(Sketch::of("one two three four", &KEY).is_empty());
        assert_eq!(Sketch::of("one two three four five", &KEY).hashes.len(), 1);
    }

    #[test]
    fn a_sketch_is_bounded() {
        let long: String = (0..400_000).map(|at| format!("w{at} ")).collect();
        let sketch = Sketch::of(&long, &KEY);
        assert!(!sketch.is_complete() && sketch.hashes.len() == MOST);
        let fits: String = (0..60_000).map(|at| format!("w{at} ")).collect();
        let sketch = Sketch::of(&fits, &KEY);
        assert!(sketch.is_complete());
        let share = sketch.hashes.len() as f64 / 60_000.0;
        assert!((0.38..0.42).contains(&share), "{share}");
    }
}
