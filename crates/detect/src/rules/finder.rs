//! Literals, each told by its rarest part.
//!
//! A literal is told by one word inside of it, by eight bytes from the start of a word on, or by four;
//! what begins with no ASCII letter or digit by its first four bytes. So a text needs to be looked at
//! only where words and such other things start, and there one hash each says whether a literal of that
//! kind may be there. The build script runs this file too, so that nothing is built at start-up.

use std::borrow::Cow;

use super::frequency::Frequencies;
use crate::bitmap::BLOCK;

/// Bits of the hash.
pub(crate) const BITS: u32 = 16;
/// Bits of the hash that choose a bucket.
const BUCKETS: u32 = 12;
/// Of what begins in a block, so many bytes are read.
pub(crate) const REACH: usize = 8;

/// A block and as many bytes behind it as are read.
pub(crate) type Window = [u8; BLOCK + REACH];

/// The byte may begin a sign that ends a sentence.
pub(crate) const STOP: u8 = 1;
/// The byte may be the sign that tells a literal.
pub(crate) const SIGN: u8 = 1 << 1;
/// The byte may begin what tells a literal, and is no ASCII letter or digit.
pub(crate) const START: u8 = 1 << 2;
/// The byte may begin a literal that nothing tells.
pub(crate) const LOOSE: u8 = 1 << 3;

/// Told by a word that ends there.
pub(crate) const WORD: u8 = 1;
/// Told by eight bytes.
pub(crate) const EIGHT: u8 = 1 << 1;
/// Told by four bytes.
pub(crate) const FOUR: u8 = 1 << 2;
/// The same three for literals that patterns hang on, or that sentences further on depend on.
pub(crate) const TELLING: u32 = 3;

/// A literal, and what it is told by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The first bytes of what tells it.
    pub(crate) value: u64,
    /// Which bits of those count.
    pub(crate) mask: u64,
    /// Where it starts in [`Finder::bytes`].
    pub(crate) at: u32,
    /// Bytes.
    pub(crate) len: u16,
    /// Bytes of it in front of what tells it.
    pub(crate) back: u16,
    /// Which literal it is.
    pub(crate) literal: u16,
    /// How it is told.
    pub(crate) kind: u8,
    /// Whether it must end a word.
    pub(crate) right: bool,
    /// Whether what tells it is all of it.
    pub(crate) whole: bool,
    /// Whether a pattern hangs on it.
    pub(crate) telling: bool,
}

/// What literals are found with.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    /// By hash, what kinds of entries there are.
    pub(crate) kinds: Cow<'static, [u8]>,
    /// By bucket, where its entries start; one more at the end.
    pub(crate) heads: Cow<'static, [u16]>,
    /// By bucket; then those that a sign tells, then those that nothing does.
    pub(crate) entries: Cow<'static, [Entry]>,
    /// By byte, what it may be apart from the start of a word.
    pub(crate) special: Cow<'static, [u8]>,
    /// Signs that end a sentence, one character each.
    pub(crate) stops: Cow<'static, [Cow<'static, str>]>,
    /// All literals.
    pub(crate) bytes: Cow<'static, [u8]>,
    /// How many entries the buckets hold, and where those end that a sign tells.
    pub(crate) parts: [usize; 2],
    /// The longest literal with a sign inside that may end a sentence.
    pub(crate) crossing: usize,
    /// Whether nothing of ASCII begins anything but words and the usual ends of sentences.
    pub(crate) usual: bool,
    /// Whether patterns hang on what signs of ASCII tell.
    pub(crate) signed: bool,
    /// Whether patterns hang on what nothing tells: every sentence is read.
    pub(crate) blind: bool,
}

/// A literal to be found.
#[derive(Debug)]
pub(crate) struct Word<'a> {
    /// Which one.
    pub(crate) literal: u16,
    /// What it says.
    pub(crate) text: &'a str,
    /// It starts a word.
    pub(crate) left: bool,
    /// It ends a word.
    pub(crate) right: bool,
    /// A pattern hangs on it.
    pub(crate) telling: bool,
}

/// How a literal is told.
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
    /// By nothing.
    Loose,
}

/// Texts and literals are in lower case; `_`, with which names are put together, parts words here.
#[inline]
pub(crate) fn is_word(byte: u8) -> bool {
    (byte.wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10)
}

/// Whether a byte that is no word may begin something.
#[inline]
pub(crate) fn begins(byte: u8) -> bool {
    (byte != b' ') & !(0x80..0xc0).contains(&byte)
}

/// The ASCII signs that usually end a sentence.
#[inline]
pub(crate) fn is_usual_stop(byte: u8) -> bool {
    (byte == b'.') | (byte == b'\n') | (byte == b'?') | (byte == b'!')
}

/// The hash of a whole word, or of eight bytes.
#[inline]
pub(crate) fn hash(eight: u64) -> usize {
    (eight.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

/// The hash of the first four bytes.
#[inline]
pub(crate) fn hash_four(eight: u64) -> usize {
    hash(eight << 32 | 1)
}

/// A mask of the first so many bytes, at least one.
#[inline]
pub(crate) fn first(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, REACH))
}

/// Eight bytes from a place in a block on.
#[inline]
pub(crate) fn eight(window: &Window, place: usize) -> u64 {
    window[place..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// The block at a place, or a copy of it with zeros behind the text.
#[inline]
pub(crate) fn window<'a>(text: &'a [u8], at: usize, padded: &'a mut Window) -> &'a Window {
    let rest = &text[at..];
    match rest.first_chunk() {
        Some(window) => window,
        None => {
            *padded = [0; BLOCK + REACH];
            padded[..rest.len()].copy_from_slice(rest);
            padded
        }
    }
}

impl Finder {
    /// Builds it for literals and the signs that end a sentence.
    pub(crate) fn build(
        words: &[Word<'_>],
        stops: &[String],
        crossing: usize,
        frequencies: &Frequencies,
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
        let [mut signs, mut loose] = [Vec::new(), Vec::new()];
        let (mut signed, mut blind) = (false, false);
        for word in words {
            let literal = word.text.as_bytes();
            let load = |start: usize, end: usize| {
                let mut eight = [0; REACH];
                eight.iter_mut().zip(&literal[start..end]).for_each(|(to, from)| *to = *from);
                u64::from_le_bytes(eight)
            };
            let all = literal.len();
            let pivot = pivot(word, frequencies);
            let (start, value, mask, kind) = match pivot {
                Pivot::Word(start, end) => (start, load(start, end), first(end - start + 1), WORD),
                Pivot::Eight(start) => (start, load(start, all), u64::MAX, EIGHT),
                Pivot::Four(start) => (start, load(start, all), first(all - start), FOUR),
                Pivot::Sign(start) => (start, 0, 0, 0),
                Pivot::Loose => (0, 0, 0, 0),
            };
            let entry = Entry {
                value,
                mask,
                at: u32::try_from(bytes.len()).map_err(|_| "too many words")?,
                len: u16::try_from(all).map_err(|_| "too long a word")?,
                back: u16::try_from(start).map_err(|_| "too long a word")?,
                literal: word.literal,
                kind,
                right: word.right,
                whole: pivot == Pivot::Word(0, all),
                telling: word.telling,
            };
            bytes.extend(literal);
            let byte = usize::from(literal[start]);
            match pivot {
                Pivot::Sign(_) => {
                    special[byte] |= SIGN;
                    signed |= word.telling;
                    signs.push(entry);
                }
                Pivot::Loose => {
                    special[byte] |= LOOSE;
                    blind |= word.telling;
                    loose.push(entry);
                }
                _ => {
                    if !is_word(literal[start]) {
                        special[byte] |= START;
                        signed |= word.telling && literal[start].is_ascii();
                    }
                    let hash = if kind == FOUR { hash_four(value) } else { hash(value) };
                    kinds[hash] |= if word.telling { kind | kind << TELLING } else { kind };
                    entries.push((hash, entry));
                }
            }
        }
        entries.sort_by_key(|(hash, entry)| (*hash, entry.at));
        let mut heads = vec![0u16; (1 << BUCKETS) + 1];
        for (hash, _) in &entries {
            heads[(hash >> (BITS - BUCKETS)) + 1] += 1;
        }
        for at in 1..heads.len() {
            heads[at] = heads[at].checked_add(heads[at - 1]).ok_or("too many words")?;
        }
        let usual = (0..0x80u8).filter(|byte| !is_word(*byte)).all(|byte| {
            match special[usize::from(byte)] {
                0 => true,
                STOP => is_usual_stop(byte),
                _ => false,
            }
        });
        let parts = [entries.len(), entries.len() + signs.len()];
        Ok(Self {
            kinds: Cow::Owned(kinds),
            heads: Cow::Owned(heads),
            entries: entries
                .into_iter()
                .map(|(_, entry)| entry)
                .chain(signs)
                .chain(loose)
                .collect(),
            special: Cow::Owned(special),
            stops: stops.iter().map(|stop| Cow::Owned(stop.clone())).collect(),
            bytes: Cow::Owned(bytes),
            parts,
            crossing,
            usual,
            signed,
            blind,
        })
    }

    /// What a byte may be apart from the start of a word.
    #[inline]
    pub(crate) fn special(&self, byte: u8) -> u8 {
        self.special.get(usize::from(byte)).copied().unwrap_or(0)
    }

    /// Calls back with the entries that a word or the bytes at a place tell, of the given kinds.
    #[inline]
    pub(crate) fn told(&self, kinds: u8, word: u64, eight: u64, mut seen: impl FnMut(&Entry)) {
        for (kind, value) in [(WORD, word), (EIGHT, eight), (FOUR, eight)] {
            if kind & kinds == 0 {
                continue;
            }
            let hash = if kind == FOUR { hash_four(value) } else { hash(value) };
            let bucket = hash >> (BITS - BUCKETS);
            let head = |bucket: usize| self.heads.get(bucket).map_or(0, |&at| usize::from(at));
            for entry in self.entries.get(head(bucket)..head(bucket + 1)).unwrap_or_default() {
                if entry.kind == kind && value & entry.mask == entry.value {
                    seen(entry);
                }
            }
        }
    }

    /// The entries that a sign tells.
    pub(crate) fn signs(&self) -> &[Entry] {
        self.entries.get(self.parts[0]..self.parts[1]).unwrap_or_default()
    }

    /// The entries that nothing tells.
    pub(crate) fn loose(&self) -> &[Entry] {
        self.entries.get(self.parts[1]..).unwrap_or_default()
    }

    /// Where an entry's literal stands if it does, told at a place.
    #[inline]
    pub(crate) fn verify(
        &self,
        text: &[u8],
        entry: &Entry,
        place: usize,
    ) -> Option<(usize, usize)> {
        let start = place.checked_sub(usize::from(entry.back))?;
        let end = start + usize::from(entry.len);
        if entry.whole {
            return Some((start, end));
        }
        let literal = self.bytes.get(entry.at as usize..)?.get(..usize::from(entry.len))?;
        let open = entry.right && text.get(end).is_some_and(u8::is_ascii_alphanumeric);
        (!open && text.get(start..end)? == literal).then_some((start, end))
    }

    /// Where the sentence ends that a sign at this place ends, if it does.
    pub(crate) fn stop(&self, text: &[u8], at: usize) -> Option<usize> {
        let there = &text[at..];
        let stop = self.stops.iter().find(|stop| there.starts_with(stop.as_bytes()))?;
        let end = at + stop.len();
        ends_sentence(text, at, end).then_some(end)
    }
}

/// What tells a literal best.
fn pivot(word: &Word<'_>, frequencies: &Frequencies) -> Pivot {
    let bytes = word.text.as_bytes();
    let mut choices: Vec<(u32, Pivot)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        let end = at + length;
        if length > 0 && (at > 0 || word.left) {
            let often = |to: usize| word.text.get(at..to).map_or(1, |part| frequencies.of(part));
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
    if let Some((_, best)) = choices.into_iter().min_by_key(|(often, _)| *often) {
        return best;
    }
    match bytes.iter().position(|byte| !is_word(*byte) && begins(*byte)) {
        Some(start) if bytes.len() - start >= 4 => Pivot::Four(start),
        Some(start) => Pivot::Sign(start),
        None => Pivot::Loose,
    }
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
