//! Offset maps: from a rewritten text back to the text it was made of.
//!
//! Only deviations are recorded. An empty map is the identity, so untouched ASCII costs nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes kept on either side of a rewritten place.
const CONTEXT: usize = 160;

/// The longest text a map can describe; two bits of an offset are flags.
pub(super) const MAX_TEXT: usize = (1 << 31) - 1;

const FLAG: u32 = 1 << 31;
const OFFSET: u32 = FLAG - 1;

/// A stretch of the new text.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Where it begins in the new text; the flag says that it was altered.
    out: u32,
    /// Where its source begins; the flag says that its bytes do not correspond one to one.
    start: u32,
    /// Where its source ends.
    end: u32,
}

impl Segment {
    fn out(self) -> usize {
        (self.out & OFFSET) as usize
    }

    fn start(self) -> usize {
        (self.start & OFFSET) as usize
    }

    fn end(self) -> usize {
        self.end as usize
    }

    fn altered(self) -> bool {
        self.out & FLAG != 0
    }

    fn opaque(self) -> bool {
        self.start & FLAG != 0
    }
}

/// The way back from one text to its source.
#[derive(Debug, Default)]
pub(super) struct Map {
    segments: Vec<Segment>,
    disordered: bool,
    /// The segment that was asked for last: texts are gone through in order.
    last: AtomicUsize,
}

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(OFFSET).min(OFFSET)
}

impl Map {
    /// Stretches that differ from the source.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn is_identity(&self) -> bool {
        self.segments.is_empty()
    }

    /// Says that the bytes from `out` on are those of the source from `start` on.
    pub(super) fn copy(&mut self, out: usize, start: usize, after_cut: bool) {
        let flag = if after_cut { FLAG } else { 0 };
        self.push(Segment { out: narrow(out) | flag, start: narrow(start), end: OFFSET });
    }

    /// Says that the bytes from `out` on stand for `source` as a whole.
    pub(super) fn replace(&mut self, out: usize, source: Range<usize>, altered: bool) {
        let flag = if altered { FLAG } else { 0 };
        self.push(Segment {
            out: narrow(out) | flag,
            start: narrow(source.start) | FLAG,
            end: narrow(source.end),
        });
    }

    fn push(&mut self, segment: Segment) {
        if let Some(last) = self.segments.last_mut() {
            if !last.opaque() {
                last.end = narrow(last.start() + (segment.out() - last.out()));
            }
            if last.out() == segment.out() {
                // Nothing came out of the last one: what it said about a cut still holds.
                let flag = if last.opaque() { 0 } else { last.out & FLAG };
                *last = Segment { out: segment.out | flag, ..segment };
                return;
            }
            self.disordered |= segment.start() < last.start();
        } else if segment.out() > 0 {
            self.segments.push(Segment { out: 0, start: 0, end: segment.out & OFFSET });
        }
        self.segments.push(segment);
    }

    /// The part of the source that `range` of the new text came from.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        if self.is_identity() {
            return range;
        }
        let last_byte = range.end.saturating_sub(1).max(range.start);
        let first = self.index(range.start);
        // Ranges are short as a rule: the last segment is near the first.
        let near =
            self.segments[first..].iter().take(8).position(|segment| segment.out() > last_byte);
        let last = near.map_or_else(|| self.index(last_byte), |count| first + count.max(1) - 1);
        let (Some(head), Some(tail)) = (self.segments.get(first), self.segments.get(last)) else {
            return range;
        };
        let mut start = match head.opaque() {
            true => head.start(),
            false => head.start() + range.start.saturating_sub(head.out()),
        };
        let mut end = match tail.opaque() {
            true => tail.end(),
            false => tail.start() + last_byte.saturating_sub(tail.out()) + 1,
        };
        if self.disordered {
            for segment in &self.segments[first..=last] {
                start = start.min(segment.start());
                if segment.end != OFFSET {
                    end = end.max(segment.end());
                }
            }
        }
        start..end.max(start)
    }

    /// Whether `range` of the new text touches a place that was altered.
    pub(super) fn altered(&self, range: Range<usize>) -> bool {
        if self.is_identity() || range.is_empty() {
            return false;
        }
        let first = self.index(range.start);
        self.segments[first..]
            .iter()
            .take_while(|segment| segment.out() < range.end)
            .any(|segment| segment.altered() && (segment.opaque() || segment.out() > range.start))
    }

    fn index(&self, out: usize) -> usize {
        const NEAR: usize = 8;
        let last = self.last.load(Ordering::Relaxed);
        let near = self.segments.get(last..).unwrap_or_default();
        let index = match near.first() {
            Some(first) if first.out() <= out => {
                let ahead = near.iter().take(NEAR).position(|segment| segment.out() > out);
                match ahead.or((near.len() <= NEAR).then_some(near.len())) {
                    Some(count) => last + count - 1,
                    None => last + near.partition_point(|segment| segment.out() <= out) - 1,
                }
            }
            _ => self.segments.partition_point(|segment| segment.out() <= out).saturating_sub(1),
        };
        self.last.store(index, Ordering::Relaxed);
        index
    }
}

/// A text under construction from pieces of another, with its map.
///
/// Far from any replacement the source is left out, so that one escape in a long document does
/// not make a second document.
#[derive(Debug)]
pub(super) struct Rewriter<'s> {
    source: &'s str,
    text: String,
    map: Map,
    /// How far the source has been dealt with.
    done: usize,
    edits: usize,
    cut: bool,
    context: usize,
    /// Nothing is added to a text longer than this.
    limit: usize,
}

impl<'s> Rewriter<'s> {
    /// Keeps the surroundings of each replacement.
    pub(super) fn new(source: &'s str, limit: usize) -> Self {
        Self::with_context(source, CONTEXT, limit)
    }

    /// Keeps the replacements only, a line each.
    pub(super) fn pieces(source: &'s str, limit: usize) -> Self {
        Self::with_context(source, 0, limit)
    }

    fn with_context(source: &'s str, context: usize, limit: usize) -> Self {
        Self {
            source,
            text: String::new(),
            map: Map::default(),
            done: 0,
            edits: 0,
            cut: false,
            context,
            limit,
        }
    }

    /// Bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// How far the source has been dealt with.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// Puts `with` in the place of `range`, which lies behind all earlier ones.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        if range.start < self.done || range.end > self.source.len() || self.text.len() > self.limit
        {
            return;
        }
        self.catch_up(range.start);
        if with.is_empty() {
            self.cut = true;
        } else {
            self.map.replace(self.text.len(), range.clone(), true);
            self.text.push_str(with);
            self.cut = false;
        }
        self.edits += 1;
        self.done = range.end;
    }

    fn catch_up(&mut self, to: usize) {
        let from = self.done;
        let head = if self.edits == 0 { 0 } else { self.context };
        if to - from <= head + self.context {
            if self.context > 0 {
                self.copy(from..to);
            } else if to > from && self.edits > 0 {
                self.gap(from..to);
            }
            return;
        }
        let left = self.source.floor_char_boundary(from + head);
        let right = self.source.ceil_char_boundary(to - self.context);
        self.copy(from..left);
        if !self.text.is_empty() {
            self.gap(left..right);
        }
        self.copy(right..to);
    }

    fn copy(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.map.copy(self.text.len(), range.start, self.cut);
            self.text.push_str(&self.source[range]);
            self.cut = false;
        }
    }

    fn gap(&mut self, range: Range<usize>) {
        let space = self.source.as_bytes().get(range.clone()) == Some(b" ");
        self.map.replace(self.text.len(), range, false);
        self.text.push(if space { ' ' } else { '\n' });
        self.cut = false;
    }

    /// The new text, if anything was replaced at all.
    pub(super) fn finish(mut self) -> Option<(String, Map)> {
        if self.edits == 0 {
            return None;
        }
        if self.context > 0 {
            let end = (self.done + self.context).min(self.source.len());
            let end = self.source.floor_char_boundary(end);
            if end > self.done {
                self.copy(self.done..end);
            }
        }
        (!self.text.is_empty()).then_some((self.text, self.map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_point_at_their_source() {
        let mut rewriter = Rewriter::new("one &amp; two &lt; three", 9999);
        rewriter.replace(4..9, "&");
        rewriter.replace(14..18, "<");
        let (text, map) = rewriter.finish().unwrap();
        assert_eq!(text, "one & two < three");
        assert_eq!(map.source(4..5), 4..9);
        assert_eq!(map.source(6..9), 10..13);
        assert_eq!(map.source(12..17), 19..24);
        assert!(map.altered(2..6));
        assert!(!map.altered(12..17));
    }

    #[test]
    fn cuts_are_seen_from_both_sides() {
        let mut rewriter = Rewriter::new("ig<b>nore", 9999);
        rewriter.replace(2..5, "");
        let (text, map) = rewriter.finish().unwrap();
        assert_eq!(text, "ignore");
        assert_eq!(map.source(0..6), 0..9);
        assert!(map.altered(0..6));
        assert!(!map.altered(2..6));
        assert!(!map.altered(0..2));
    }

    #[test]
    fn far_text_is_left_out() {
        let long = format!("{}%41{}", "x ".repeat(500), " y".repeat(500));
        let mut rewriter = Rewriter::new(&long, 9999);
        rewriter.replace(1000..1003, "A");
        let (text, map) = rewriter.finish().unwrap();
        assert!(text.len() < 400);
        let at = text.find('A').unwrap();
        assert_eq!(map.source(at..at + 1), 1000..1003);
    }
}
