//! Where secrets and addresses may be: one pass for the literals of both.
//!
//! Every literal is told by its rarest four bytes, letters in either case; a hash of the four bytes at
//! each place says at once that there is none. Literals of two or three bytes have a sign that is
//! searched for instead, or are told with every byte that may follow.

use std::sync::LazyLock;

use crate::{secrets, urls};

/// Bits of the hash.
const BITS: u32 = 15;
/// Signs that short literals are told by.
const SIGNS: [u8; 3] = [b':', b']', b'/'];
/// Bits of the hash that choose a bucket.
const BUCKETS: u32 = 10;
/// Places that are looked at at once.
const STEP: usize = 8;
/// Literals that wait before others are let go.
const WAITING: usize = 64;

/// Whose literal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// What announces a secret, by its number in [`secrets::literals`].
    Secrets,
    /// What announces an address, by its number in [`urls::literals`].
    Urls,
}

/// A literal in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Which one.
    pub(crate) index: usize,
    /// First byte.
    pub(crate) start: usize,
    /// Behind the last byte.
    pub(crate) end: usize,
}

/// A literal, and where in it the bytes stand that tell it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    whose: Whose,
    index: usize,
    literal: &'static [u8],
    back: usize,
    /// Told with the byte behind it.
    with_next: bool,
}

#[derive(Debug)]
struct Table {
    /// By hash, whether there is an entry.
    known: Vec<bool>,
    /// By bucket, where its entries start; one more at the end.
    heads: Vec<usize>,
    /// By bucket.
    entries: Vec<(usize, Entry)>,
    /// Literals that are told by a sign.
    signs: Vec<Entry>,
    /// By byte, whether it follows the sign in one of those.
    after: [bool; 256],
    /// The longest way back from what tells a literal to its start.
    reach: usize,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let secrets =
        secrets::literals().enumerate().map(|(index, text)| (Whose::Secrets, index, text));
    let urls = urls::literals().enumerate().map(|(index, text)| (Whose::Urls, index, text));
    let mut table = Table {
        known: vec![false; 1 << BITS],
        heads: vec![0; (1 << BUCKETS) + 1],
        entries: Vec::new(),
        signs: Vec::new(),
        after: [false; 256],
        reach: 0,
    };
    for (whose, index, text) in secrets.chain(urls) {
        table.add(Entry { whose, index, literal: text.as_bytes(), back: 0, with_next: false });
    }
    table.entries.sort_by_key(|(hash, _)| *hash);
    for (hash, _) in &table.entries {
        table.heads[(hash >> (BITS - BUCKETS)) + 1] += 1;
    }
    for bucket in 0..1 << BUCKETS {
        table.heads[bucket + 1] += table.heads[bucket];
    }
    table
});

fn hash(four: [u8; 4]) -> usize {
    let folded = u32::from_le_bytes(four) & 0xdfdf_dfdf;
    (folded.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

/// How often a byte occurs in prose, roughly, from 0 to 5.
fn often(byte: u8) -> u32 {
    match byte.to_ascii_lowercase() {
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b'h' | b' ' => 5,
        b'l' | b'd' | b'c' | b'u' | b'm' => 4,
        b'f' | b'p' | b'g' | b'w' | b'y' | b'b' => 3,
        b'v' | b'k' | b'.' | b'-' => 2,
        b'x' | b'j' | b'q' | b'z' => 1,
        _ => 0,
    }
}

/// Whether a byte may follow a literal of three bytes in anything that is a finding.
fn may_follow(literal: &[u8], byte: u8) -> bool {
    match literal {
        b"-us" => byte.is_ascii_digit(),
        b"sk-" | b"hf_" | b"r8_" => byte.is_ascii_alphanumeric(),
        b"eyJ" => byte.is_ascii_alphanumeric() || b"_-".contains(&byte),
        b"SG." => byte.is_ascii_alphanumeric() || b"_-.".contains(&byte),
        b"pwd" => byte.is_ascii_alphanumeric() || b"_-.\"']\\` \t:=>".contains(&byte),
        _ => true,
    }
}

impl Table {
    fn add(&mut self, entry: Entry) {
        let literal = entry.literal;
        if literal.len() < 4 {
            if let Some(back) = literal.iter().position(|byte| SIGNS.contains(byte)) {
                for byte in literal.iter().skip(back + 1).take(1) {
                    self.after[usize::from(byte.to_ascii_lowercase())] = true;
                    self.after[usize::from(byte.to_ascii_uppercase())] = true;
                }
                self.signs.push(Entry { back, ..entry });
                self.reach = self.reach.max(back);
            } else if let [a, b, c] = *literal {
                // Letters that differ in case only have the same hash.
                let next = (0..=u8::MAX).filter(|byte| byte & 0x20 == 0);
                for byte in next {
                    if may_follow(literal, byte) || may_follow(literal, byte | 0x20) {
                        self.put([a, b, c, byte], Entry { with_next: true, ..entry });
                    }
                }
            }
            return;
        }
        let rarest = literal.windows(4).enumerate().min_by_key(|(_, four)| {
            // The same sign in a row draws a line.
            let line = four.iter().all(|byte| *byte == four[0]);
            four.iter().map(|byte| often(*byte)).sum::<u32>() + if line { 20 } else { 0 }
        });
        if let Some((back, &[a, b, c, d])) = rarest {
            self.reach = self.reach.max(back);
            self.put([a, b, c, d], Entry { back, ..entry });
        }
    }

    fn put(&mut self, four: [u8; 4], entry: Entry) {
        let hash = hash(four);
        self.known[hash] = true;
        self.entries.push((hash, entry));
    }
}

/// Calls back with the literals in the order in which they stand, for each of the two on its own: the
/// longest where several begin, and none that begins inside of another.
pub(crate) fn find(text: &[u8], seen: impl FnMut(Whose, Anchor)) {
    tell(text, Queue::default(), seen);
}

/// The same, and for secrets those that begin inside of another, too.
pub(crate) fn find_all(text: &[u8], seen: impl FnMut(Whose, Anchor)) {
    tell(text, Queue { all: true, ..Queue::default() }, seen);
}

fn tell(text: &[u8], secrets: Queue, mut seen: impl FnMut(Whose, Anchor)) {
    let table = &*TABLE;
    let mut search = Search { table, text, secrets, urls: Queue::default() };
    let [a, b, c] = SIGNS;
    let (mut at, mut done) = (0, 0);
    while at < text.len() {
        // Where signs are frequent the next is near, and a search not worth setting up.
        let (near, far) = text[at..].split_at(4.min(text.len() - at));
        let skip = near.iter().position(|byte| SIGNS.contains(byte));
        let far = || memchr::memchr3(a, b, c, far).map(|skip| near.len() + skip);
        let sign = skip.or_else(far).map_or(text.len(), |skip| at + skip);
        done = search.fours(done, sign, &mut seen);
        if sign < text.len() {
            search.sign(sign, &mut seen);
        }
        at = sign + 1;
    }
    search.secrets.pass(usize::MAX, |anchor| seen(Whose::Secrets, anchor));
    search.urls.pass(usize::MAX, |anchor| seen(Whose::Urls, anchor));
}

struct Search<'a> {
    table: &'static Table,
    text: &'a [u8],
    secrets: Queue,
    urls: Queue,
}

impl Search<'_> {
    /// Looks at the places up to one, and perhaps a few more; gives back where to go on.
    #[inline]
    fn fours(&mut self, from: usize, to: usize, seen: &mut impl FnMut(Whose, Anchor)) -> usize {
        let (table, text) = (self.table, self.text);
        let Ok(known): Result<&[bool; 1 << BITS], _> = table.known.as_slice().try_into() else {
            return to;
        };
        let mut at = from;
        while at < to {
            let Some(window) = text[at..].first_chunk::<{ STEP + 3 }>() else {
                for place in at..to {
                    if let Some(four) = text[place..].first_chunk() {
                        self.four(place, *four, seen);
                    }
                }
                return to;
            };
            let four = |place: usize| {
                [window[place], window[place + 1], window[place + 2], window[place + 3]]
            };
            let mut any = false;
            for place in 0..STEP {
                any |= known[hash(four(place))];
            }
            if any {
                for place in 0..STEP {
                    self.four(at + place, four(place), seen);
                }
            }
            at += STEP;
        }
        at
    }

    /// Looks at one place.
    fn four(&mut self, place: usize, four: [u8; 4], seen: &mut impl FnMut(Whose, Anchor)) {
        let hash = hash(four);
        if !self.table.known[hash] {
            return;
        }
        let table = self.table;
        let bucket = hash >> (BITS - BUCKETS);
        for (other, entry) in &table.entries[table.heads[bucket]..table.heads[bucket + 1]] {
            if *other == hash {
                self.entry(entry, place);
            }
        }
        self.pass(place, seen);
    }

    /// Looks at a sign.
    fn sign(&mut self, place: usize, seen: &mut impl FnMut(Whose, Anchor)) {
        let table = self.table;
        let [sign, next, ..] = self.text[place..] else { return };
        if table.after[usize::from(next)] {
            for entry in table.signs.iter().filter(|entry| entry.literal[entry.back] == sign) {
                self.entry(entry, place);
            }
            self.pass(place, seen);
        }
    }

    /// Lets those go that nothing found from a place on can come before.
    fn pass(&mut self, place: usize, seen: &mut impl FnMut(Whose, Anchor)) {
        if self.secrets.waiting.len().max(self.urls.waiting.len()) < WAITING {
            return;
        }
        // Signs are looked at up to a step later than the places around them.
        let before = place.saturating_sub(self.table.reach + 2 * STEP);
        self.secrets.pass(before, |anchor| seen(Whose::Secrets, anchor));
        self.urls.pass(before, |anchor| seen(Whose::Urls, anchor));
    }

    #[inline]
    fn entry(&mut self, entry: &Entry, place: usize) {
        let Some(start) = place.checked_sub(entry.back) else { return };
        let end = start + entry.literal.len();
        let there = self.text.get(start..end);
        let same = |(one, other): (&u8, &u8)| one.eq_ignore_ascii_case(other);
        // Some signs have the hash of others that may follow.
        let next = || self.text.get(end).is_some_and(|next| may_follow(entry.literal, *next));
        if there.is_some_and(|there| there.iter().zip(entry.literal).all(same))
            && (!entry.with_next || next())
        {
            let queue = match entry.whose {
                Whose::Secrets => &mut self.secrets,
                Whose::Urls => &mut self.urls,
            };
            queue.add(Anchor { index: entry.index, start, end });
        }
    }
}

/// Literals that another may yet come before.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Anchor>,
    /// Where the last one ended.
    end: usize,
    /// Whether those inside of another are told.
    all: bool,
}

impl Queue {
    fn add(&mut self, anchor: Anchor) {
        let key = |anchor: &Anchor| (anchor.start, usize::MAX - anchor.end);
        if self.waiting.last().is_none_or(|last| key(last) <= key(&anchor)) {
            self.waiting.push(anchor);
            return;
        }
        let place = self.waiting.partition_point(|other| key(other) <= key(&anchor));
        self.waiting.insert(place, anchor);
    }

    /// Lets those go that begin before a place.
    fn pass(&mut self, place: usize, mut seen: impl FnMut(Anchor)) {
        let ready = self.waiting.partition_point(|anchor| anchor.start < place);
        for anchor in self.waiting.drain(..ready) {
            if self.all || anchor.start >= self.end {
                self.end = anchor.end;
                seen(anchor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn literals(whose: Whose) -> Vec<&'static str> {
        match whose {
            Whose::Secrets => secrets::literals().collect(),
            Whose::Urls => urls::literals().collect(),
        }
    }

    /// The same place by place and literal by literal.
    fn slowly(text: &[u8], whose: Whose) -> Vec<Anchor> {
        let (mut found, mut start) = (Vec::new(), 0);
        while start < text.len() {
            let here = literals(whose).into_iter().enumerate().filter(|(_, literal)| {
                let bytes = literal.as_bytes();
                let rest = &text[start..];
                rest.len() >= bytes.len()
                    && rest[..bytes.len()].eq_ignore_ascii_case(bytes)
                    && (bytes.len() > 3
                        || bytes.iter().any(|byte| SIGNS.contains(byte))
                        || rest.get(3).is_some_and(|next| may_follow(bytes, *next)))
            });
            match here.max_by_key(|(index, literal)| (literal.len(), usize::MAX - index)) {
                Some((index, literal)) => {
                    found.push(Anchor { index, start, end: start + literal.len() });
                    start += literal.len();
                }
                None => start += 1,
            }
        }
        found
    }

    fn both(text: &[u8]) -> [Vec<Anchor>; 2] {
        let mut found = [Vec::new(), Vec::new()];
        find(text, |whose, anchor| found[usize::from(whose == Whose::Urls)].push(anchor));
        found
    }

    #[test]
    fn every_literal_is_told() {
        for whose in [Whose::Secrets, Whose::Urls] {
            for (index, literal) in literals(whose).into_iter().enumerate() {
                for text in [format!("{literal}1"), format!("x {} 2", literal.to_uppercase())] {
                    // Blanks are told by the sign behind them alone.
                    let found = both(text.as_bytes());
                    let found = &found[usize::from(whose == Whose::Urls)];
                    assert!(
                        found.iter().any(|anchor| anchor.index == index)
                            || literal.len() == 3 && text.ends_with(" 2"),
                        "{literal}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_sign_of_the_same_hash_is_not_told() {
        assert_eq!(both(b"pwd|x")[0], []);
        assert_eq!(both(b"pwd\\x")[0].len(), 1);
    }

    proptest! {
        #[test]
        fn as_slowly(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::sample::select(literals(Whose::Secrets)).prop_map(str::to_owned),
                    prop::sample::select(literals(Whose::Urls)).prop_map(str::to_uppercase),
                    prop::sample::select(literals(Whose::Urls)).prop_map(str::to_owned),
                    "[a-z:/\\] ._-]{0,4}",
                    "[ -~]{0,40}",
                    ".{0,4}",
                ],
                0..24,
            ),
            cut in 0usize..4,
        ) {
            // Overlaps: the end of each piece is cut.
            let text: String = pieces
                .iter()
                .map(|piece| piece.chars().take(piece.chars().count().saturating_sub(cut)).collect::<String>())
                .collect();
            let [secrets, urls] = both(text.as_bytes());
            prop_assert_eq!(secrets, slowly(text.as_bytes(), Whose::Secrets));
            prop_assert_eq!(urls, slowly(text.as_bytes(), Whose::Urls));
        }
    }
}
