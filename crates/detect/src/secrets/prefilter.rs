//! Where a literal may begin: three bytes at a time through one small table.
//!
//! An automaton waits for each byte before it can look at the next; a table of the literals' first
//! three bytes does not, and is several times as fast where there is nothing to find.

/// Bits of the hash of three bytes.
const BITS: u32 = 15;

/// Literals, by the hash of their first three bytes; letters match in either case.
#[derive(Debug)]
pub(super) struct Prefilter {
    table: Vec<bool>,
    /// Hash and index, sorted, longest literal first.
    buckets: Vec<(usize, usize)>,
    literals: Vec<&'static [u8]>,
}

impl Prefilter {
    /// INVARIANT: every literal has at least three bytes, which a test makes sure of.
    pub(super) fn new(literals: Vec<&'static [u8]>) -> Self {
        let mut table = vec![false; 1 << BITS];
        let mut buckets = Vec::with_capacity(literals.len());
        for (index, literal) in literals.iter().enumerate() {
            if let [a, b, c, ..] = literal {
                let slot = slot(*a, *b, *c);
                table[slot] = true;
                buckets.push((slot, index));
            }
        }
        buckets.sort_by_key(|(slot, index)| (*slot, std::cmp::Reverse(literals[*index].len())));
        Self { table, buckets, literals }
    }

    /// Calls back with index, start and end of every literal, the longest where several begin;
    /// those that begin inside of another are left out.
    pub(super) fn find(&self, text: &[u8], mut seen: impl FnMut(usize, usize, usize)) {
        let mut at = 0;
        while let Some(found) = self.candidate(text, at) {
            let slot = slot(text[found], text[found + 1], text[found + 2]);
            let first = self.buckets.partition_point(|(other, _)| *other < slot);
            let hit = self.buckets[first..]
                .iter()
                .take_while(|(other, _)| *other == slot)
                .map(|(_, index)| (*index, self.literals[*index].len()))
                .find(|(index, length)| {
                    let there = text.get(found..found + length);
                    there.is_some_and(|there| there.eq_ignore_ascii_case(self.literals[*index]))
                });
            at = found + 1;
            if let Some((index, length)) = hit {
                seen(index, found, found + length);
                at = found + length;
            }
        }
    }

    /// The next place where the table says yes.
    fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let table: &[bool; 1 << BITS] = self.table.as_slice().try_into().ok()?;
        let place = rest.windows(3).position(|three| table[slot(three[0], three[1], three[2])])?;
        Some(from + place)
    }
}

/// Letters of either case fall together; so do some signs, which the comparison tells apart.
fn slot(a: u8, b: u8, c: u8) -> usize {
    let fold = |byte: u8| usize::from(byte & 0x1f);
    fold(a) << 10 | fold(b) << 5 | fold(c)
}
