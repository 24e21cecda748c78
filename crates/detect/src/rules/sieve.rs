//! Which sentences are worth a closer look.
//!
//! Every pattern hangs on its rarest element, and only for words of those elements the sieve looks:
//! at each start of a word one hash of its first bytes. Where it says no, no pattern can be complete.
//! A literal is told by one word inside of it, the rarest. Where it says yes, the automaton decides.

use std::borrow::Cow;

use super::frequency::frequency;
use crate::bitmap::{BLOCK, bits};

/// Bits of the hash.
const BITS: u32 = 16;
/// Bits of the hash that choose a bucket.
const BUCKETS: u32 = 12;
/// Of what begins in a block, so many bytes are read.
const REACH: usize = 8;

/// The byte may begin a sign that ends a sentence.
const STOP: u8 = 1;
/// The byte may be the sign that tells a literal.
const SIGN: u8 = 2;
/// The byte may begin what a literal is told by.
const START: u8 = 4;

/// An entry of words that end there.
const WORD: u8 = 1;
/// An entry of eight bytes.
const EIGHT: u8 = 2;
/// An entry of four bytes.
const FOUR: u8 = 4;

/// A literal, and what it is told by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The first bytes of the word that tells it.
    pub(crate) value: u64,
    /// Which bits of those count.
    pub(crate) mask: u64,
    /// Where the literal starts in [`Sieve::bytes`].
    pub(crate) at: u32,
    /// Bytes.
    pub(crate) len: u16,
    /// Bytes of it in front of the word.
    pub(crate) back: u16,
    /// Whether it must end a word.
    pub(crate) right: bool,
}

/// What a sieve is made of.
#[derive(Debug, Clone)]
pub(crate) struct Sieve {
    /// By hash, what kinds of entries there are.
    pub(crate) kinds: Cow<'static, [u8]>,
    /// By bucket, where its entries start; one more at the end.
    pub(crate) heads: Cow<'static, [u16]>,
    /// By bucket.
    pub(crate) entries: Cow<'static, [Entry]>,
    /// By byte outside of words, what it may begin.
    pub(crate) special: Cow<'static, [u8]>,
    /// Signs that end a sentence, one character each.
    pub(crate) stops: Cow<'static, [Cow<'static, str>]>,
    /// Literals that are told by a sign inside, and where that is.
    pub(crate) signs: Cow<'static, [(Cow<'static, str>, usize)]>,
    /// All literals.
    pub(crate) bytes: Cow<'static, [u8]>,
    /// The longest literal with a sign inside that may end a sentence.
    pub(crate) crossing: usize,
    /// Whether there is a literal that nothing tells: every sentence is looked at.
    pub(crate) blind: bool,
    /// Whether literals are told by signs of ASCII.
    pub(crate) signed: bool,
}

/// A literal that patterns hang on.
#[derive(Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// It starts a word.
    pub(crate) left: bool,
    /// It ends a word.
    pub(crate) right: bool,
}

/// How a literal can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pivot {
    /// By the word from here to there.
    Word(usize, usize),
    /// By the eight bytes here, where a word starts.
    Eight(usize),
    /// By the four bytes here, where a word or something else starts.
    Four(usize),
    /// By the sign here.
    Sign(usize),
}

/// Texts and literals are in lower case; `_`, with which names are put together, parts words here.
#[inline]
fn is_word(byte: u8) -> bool {
    (byte.wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10)
}

/// The hash of a whole word, or of eight bytes.
#[inline]
fn hash(eight: u64) -> usize {
    (eight.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

/// The hash of the first four bytes.
#[inline]
fn hash_four(eight: u64) -> usize {
    hash(eight << 32 | 1)
}

fn load(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    for (to, from) in eight.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(eight)
}

/// A mask of the first so many bytes, at least one.
#[inline]
fn first(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, REACH))
}

impl Sieve {
    /// Builds a sieve for the literals that patterns hang on, and the signs that end a sentence.
    pub(crate) fn build(
        words: &[Word<'_>],
        stops: &[String],
        crossing: usize,
    ) -> Result<Self, String> {
        let mut special = vec![0u8; 256];
        for stop in stops {
            if stop.chars().count() != 1 || stop.bytes().all(is_word) {
                return Err(format!("no single sign: {stop:?}"));
            }
            special[usize::from(stop.as_bytes()[0])] |= STOP;
        }
        let mut bytes: Vec<u8> = Vec::new();
        let mut kinds = vec![0u8; 1 << BITS];
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        let mut signs: Vec<(Cow<'static, str>, usize)> = Vec::new();
        let mut blind = false;
        for word in words {
            let literal = word.text.as_bytes();
            let rest = |start: usize| load(&literal[start..]);
            let (start, value, mask, kind) = match pivot(word) {
                Some(Pivot::Word(start, end)) => {
                    (start, load(&literal[start..end]), first(end - start + 1), WORD)
                }
                Some(Pivot::Eight(start)) => (start, rest(start), u64::MAX, EIGHT),
                Some(Pivot::Four(start)) => {
                    special[usize::from(literal[start])] |= START;
                    (start, rest(start), first(literal.len() - start), FOUR)
                }
                Some(Pivot::Sign(start)) => {
                    special[usize::from(literal[start])] |= SIGN;
                    signs.push((Cow::Owned(word.text.to_owned()), start));
                    continue;
                }
                None => {
                    blind = true;
                    continue;
                }
            };
            let entry = Entry {
                value,
                mask,
                at: u32::try_from(bytes.len()).map_err(|_| "too many words")?,
                len: u16::try_from(literal.len()).map_err(|_| "too long a word")?,
                back: u16::try_from(start).map_err(|_| "too long a word")?,
                right: word.right,
            };
            bytes.extend(literal);
            let hash = if kind == FOUR { hash_four(value) } else { hash(value) };
            kinds[hash] |= kind;
            entries.push((hash, entry));
        }
        entries.sort_by_key(|(hash, entry)| (*hash, entry.value, entry.at));
        let mut heads = vec![0u16; (1 << BUCKETS) + 1];
        for (hash, _) in &entries {
            heads[(hash >> (BITS - BUCKETS)) + 1] += 1;
        }
        for at in 1..heads.len() {
            heads[at] = heads[at].checked_add(heads[at - 1]).ok_or("too many words")?;
        }
        let begins = SIGN | START;
        let signed =
            (0..0x80u8).any(|byte| !is_word(byte) && special[usize::from(byte)] & begins != 0);
        Ok(Self {
            signed,
            kinds: Cow::Owned(kinds),
            heads: Cow::Owned(heads),
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
            special: Cow::Owned(special),
            stops: stops.iter().map(|stop| Cow::Owned(stop.clone())).collect(),
            signs: Cow::Owned(signs),
            bytes: Cow::Owned(bytes),
            crossing,
            blind,
        })
    }

    /// Goes through a text.
    pub(crate) fn sift<'a>(&'a self, text: &'a [u8]) -> Sifting<'a> {
        Sifting { sieve: self, text, at: 0, sentence: 0, read: 0 }
    }
}

/// What tells a literal best; `None` where nothing does.
fn pivot(word: &Word<'_>) -> Option<Pivot> {
    let bytes = word.text.as_bytes();
    let mut choices: Vec<(u32, Pivot)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        let end = at + length;
        if length > 0 && (at > 0 || word.left) {
            let often = |to: usize| word.text.get(at..to).map_or(1, frequency);
            if (end < bytes.len() || word.right) && length < REACH {
                choices.push((often(end), Pivot::Word(at, end)));
            }
            if bytes.len() - at >= REACH {
                choices.push((often(at + REACH), Pivot::Eight(at)));
            }
            if bytes.len() - at >= 4 {
                choices.push((4 * often(at + 4), Pivot::Four(at)));
            }
        }
        at = end + 1;
    }
    if let Some(best) = choices.into_iter().min_by_key(|(often, _)| *often) {
        return Some(best.1);
    }
    let start = bytes
        .iter()
        .position(|byte| !is_word(*byte) && *byte != b' ' && !(0x80..0xc0).contains(byte))?;
    Some(if bytes.len() - start >= 4 { Pivot::Four(start) } else { Pivot::Sign(start) })
}

/// A place in a text where a pattern may hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Where its sentence starts.
    pub(crate) sentence: usize,
    /// Where the literal ends.
    pub(crate) end: usize,
}

/// A text on its way through the sieve.
#[derive(Debug)]
pub(crate) struct Sifting<'a> {
    sieve: &'a Sieve,
    text: &'a [u8],
    /// Where the next block starts.
    at: usize,
    /// Where the sentence there starts.
    sentence: usize,
    /// Up to here everything was read.
    read: usize,
}

impl Sifting<'_> {
    /// Goes on behind `end`, where a sentence starts; everything before it was read.
    pub(crate) fn resume(&mut self, end: usize) {
        self.at = end.saturating_sub(self.sieve.crossing);
        self.sentence = end;
        self.read = end;
    }

    /// The next place that has not been read.
    pub(crate) fn next(&mut self) -> Option<Spot> {
        if self.sieve.blind {
            let spot = Spot { sentence: self.read, end: self.text.len() };
            let more = self.read < self.text.len();
            self.read = self.text.len();
            return more.then_some(spot);
        }
        let mut carry = self.at.checked_sub(1).is_some_and(|before| is_word(self.text[before]));
        let mut padded;
        while self.at < self.text.len() {
            let window = match self.text[self.at..].first_chunk() {
                Some(window) => window,
                None => {
                    let rest = &self.text[self.at..];
                    padded = [0; BLOCK + REACH];
                    padded[..rest.len()].copy_from_slice(rest);
                    &padded
                }
            };
            let (block, _) = window.as_chunks::<BLOCK>();
            let words = bits(&block[0], is_word);
            if let Some((place, end)) = self.block(window, words, carry) {
                return Some(Spot { sentence: self.sentence_of(self.at + place), end });
            }
            carry = words >> 63 != 0;
            self.at += BLOCK;
        }
        None
    }

    /// The first place in a block that tells a literal, and where that ends.
    #[inline]
    fn block(
        &self,
        window: &[u8; BLOCK + REACH],
        words: u64,
        carry: bool,
    ) -> Option<(usize, usize)> {
        let kinds: &[u8; 1 << BITS] = (&*self.sieve.kinds).try_into().ok()?;
        let high = window[..BLOCK].iter().fold(0, |any, byte| any | byte) >= 0x80;
        let found = if high | self.sieve.signed { self.signs(window, words) } else { None };
        let mut starts = words & !(words << 1 | u64::from(carry));
        while starts != 0 {
            let place = starts.trailing_zeros() as usize;
            starts &= starts - 1;
            let eight = eight(window, place);
            let mut run = (words >> place).trailing_ones() as usize;
            if place + run == BLOCK {
                run += window[BLOCK..].iter().take_while(|byte| is_word(**byte)).count();
            }
            let word = eight & first(run);
            let kind = kinds[hash(word)] & WORD
                | kinds[hash(eight)] & EIGHT
                | kinds[hash_four(eight)] & FOUR;
            if kind != 0 {
                if found.is_some_and(|(before, _)| before < place) {
                    return found;
                }
                if let Some(end) = self.entry(kind, word, eight, place) {
                    return Some((place, end));
                }
            }
        }
        found
    }

    /// The same for what begins with no ASCII letter or digit.
    #[inline(never)]
    fn signs(&self, window: &[u8; BLOCK + REACH], words: u64) -> Option<(usize, usize)> {
        let (block, _) = window.as_chunks::<BLOCK>();
        let mut rest =
            !words & bits(&block[0], |byte| byte != b' ' && !(0x80..0xc0).contains(&byte));
        while rest != 0 {
            let place = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let special = self.sieve.special.get(usize::from(window[place])).copied().unwrap_or(0);
            if special & SIGN != 0
                && let Some(end) = self.sign(self.at + place)
            {
                return Some((place, end));
            }
            if special & START != 0 {
                let eight = eight(window, place);
                if self.sieve.kinds.get(hash_four(eight)).is_some_and(|kind| kind & FOUR != 0)
                    && let Some(end) = self.entry(FOUR, eight, eight, place)
                {
                    return Some((place, end));
                }
            }
        }
        None
    }

    /// Where the literal ends that a sign tells.
    fn sign(&self, at: usize) -> Option<usize> {
        self.sieve.signs.iter().find_map(|(literal, back)| {
            let start = at.checked_sub(*back)?;
            let end = start + literal.len();
            let there = self.text.get(start..end)? == literal.as_bytes();
            (there && end > self.read).then_some(end)
        })
    }

    /// Where the literal ends that a word or the bytes at a place tell.
    #[inline(never)]
    fn entry(&self, kind: u8, word: u64, eight: u64, place: usize) -> Option<usize> {
        [(WORD, word, hash(word)), (EIGHT, eight, hash(eight)), (FOUR, eight, hash_four(eight))]
            .into_iter()
            .filter(|(probe, ..)| probe & kind != 0)
            .find_map(|(_, value, hash)| self.bucket(hash, value, place))
    }

    fn bucket(&self, hash: usize, value: u64, place: usize) -> Option<usize> {
        let sieve = self.sieve;
        let bucket = hash >> (BITS - BUCKETS);
        let from = usize::from(*sieve.heads.get(bucket)?);
        let to = usize::from(*sieve.heads.get(bucket + 1)?);
        sieve.entries.get(from..to)?.iter().find_map(|entry| {
            if value & entry.mask != entry.value {
                return None;
            }
            let start = (self.at + place).checked_sub(usize::from(entry.back))?;
            let end = start + usize::from(entry.len);
            let literal = sieve.bytes.get(entry.at as usize..)?.get(..usize::from(entry.len))?;
            let open = entry.right && self.text.get(end).is_some_and(u8::is_ascii_alphanumeric);
            (!open && end > self.read && self.text.get(start..end)? == literal).then_some(end)
        })
    }

    /// Where the sentence of a place starts; no further back than behind what was read.
    fn sentence_of(&self, place: usize) -> usize {
        let special = |byte: u8| self.sieve.special.get(usize::from(byte)).copied().unwrap_or(0);
        let stop = |at: usize| {
            let there = &self.text[at..];
            let stop = self.sieve.stops.iter().find(|stop| there.starts_with(stop.as_bytes()))?;
            let end = at + stop.len();
            ends_sentence(self.text, at, end).then_some(end)
        };
        let from = self.sentence.min(place);
        let mut signs = (from..place).rev().filter(|at| special(self.text[*at]) & STOP != 0);
        signs.find_map(stop).map_or(self.sentence, |end| end.max(self.sentence))
    }
}

#[inline]
fn eight(window: &[u8; BLOCK + REACH], place: usize) -> u64 {
    window[place..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// Whether a sign that can end a sentence ends one here.
pub(crate) fn ends_sentence(bytes: &[u8], start: usize, end: usize) -> bool {
    let next = bytes.get(end).copied();
    match bytes[start] {
        b'.' | b'!' | b'?' => {
            next.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"')]}<\\".contains(&byte))
        }
        b'\n' => next.is_none_or(|byte| b"\n\r-*#>|0123456789".contains(&byte)),
        _ => true,
    }
}
