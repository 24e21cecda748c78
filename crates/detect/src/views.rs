//! The readings of a text: its normal form, and what is hidden behind encodings and disguises.
//!
//! [`views`] gives the text in normal form first, then every other reading that there is a reason
//! for, decoded again up to a depth. Every reading knows the way back to the original.
//!
//! Invariant: the work is linear in the text. Every pass is; each reading costs its own length,
//! and together they are bounded by [`Limits`].

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::finding::{Span, Transform};
use crate::work::{Step, Work};
use inline::Undone;
use map::Map;

pub(crate) mod alphabets;
mod confusable;
#[cfg(test)]
mod evasions;
mod inflate;
mod inline;
mod invisible;
mod language;
mod letters;
mod map;
mod markup;
mod normalise;
mod numbers;
mod pieces;
mod survey;
#[cfg(test)]
mod tests;

/// How far decoding goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Encodings inside encodings.
    pub max_depth: u8,
    /// Readings in all, the first included.
    pub max_views: usize,
    /// Bytes of all readings but the first together; never more than twice the text and 64 KiB.
    pub max_decoded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 4, max_views: 64, max_decoded_bytes: usize::MAX }
    }
}

/// One reading of a text.
#[derive(Debug, Clone)]
pub struct View<'a> {
    original: &'a str,
    text: Cow<'a, str>,
    /// The way back, last step first.
    maps: Vec<Arc<Map>>,
    path: Vec<Transform>,
}

impl View<'_> {
    /// The text in normal form: compatibility characters, case, look-alikes and white space
    /// folded, line breaks kept, invisible characters and terminal codes gone.
    ///
    /// Markup is still there in the first view; where there is any, another view is without it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a part of this text came from in the original.
    ///
    /// Always on character boundaries of the original, and not empty for a range that is not.
    #[must_use]
    pub fn span(&self, range: Range<usize>) -> Span {
        let mut at = range.start..range.end.max(range.start);
        for map in &self.maps {
            at = map.source(at);
        }
        let length = self.original.len();
        let mut start = self.original.floor_char_boundary(at.start.min(length));
        let mut end = self.original.ceil_char_boundary(at.end.clamp(start, length));
        if start == end && !range.is_empty() {
            end = self.original.ceil_char_boundary((start + 1).min(length));
            if start == end {
                start = self.original.floor_char_boundary(start.saturating_sub(1));
            }
        }
        Span { start, end }
    }

    /// What was undone to get here, outermost first; empty where nothing was.
    #[must_use]
    pub fn path(&self) -> &[Transform] {
        &self.path
    }

    /// Whether anything was undone within a range.
    ///
    /// Views keep some text around the places they decode: what is found in a range that was not
    /// altered is found in the first view as well, and was not hidden.
    #[must_use]
    pub fn altered(&self, range: Range<usize>) -> bool {
        let mut at = range;
        self.maps.iter().any(|map| {
            let altered = map.altered(at.clone());
            at = map.source(at.clone());
            altered
        })
    }
}

/// The way in which something was hidden in characters that do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HiddenKind {
    /// Text in Unicode tag characters.
    Tags,
    /// Bytes in variation selectors.
    VariationSelectors,
    /// A long run of zero-width characters, which may carry bits.
    ZeroWidth,
    /// Text whose direction is overridden.
    BidiOverride,
}

/// Something hidden in characters that do not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Where, in the original.
    pub span: Span,
    /// How.
    pub kind: HiddenKind,
    /// What it says, where that could be read; for an override, what a reader sees.
    pub text: String,
}

/// All readings of a text.
#[derive(Debug, Clone)]
pub struct Views<'a> {
    /// The readings, the text itself first.
    pub views: Vec<View<'a>>,
    /// What was hidden in characters that do not show.
    pub hidden: Vec<Hidden>,
    /// Whether a limit kept something from being read.
    pub truncated: bool,
}

/// Reads a text in every way that there is a reason for.
#[must_use]
pub fn views<'a>(text: &'a str, limits: &Limits) -> Views<'a> {
    read(text, limits, |_, _, _| {})
}

/// The same; each reading is looked at as soon as there is one, and what that costs counts: where a text makes too
/// much work, there are no more readings.
pub(crate) fn read<'a>(
    text: &'a str,
    limits: &Limits,
    mut look: impl FnMut(&View<'a>, bool, &mut Work),
) -> Views<'a> {
    let scanned = &text[..text.floor_char_boundary(map::MAX_TEXT.min(text.len()))];
    let bytes =
        limits.max_decoded_bytes.min(scanned.len().saturating_mul(2).saturating_add(1 << 16));
    let mut reader = Reader {
        original: scanned,
        budget: bytes,
        limits: *limits,
        effort: Effort::default(),
        look: &mut look,
        seen: HashSet::new(),
        queue: Vec::new(),
        out: Views { views: Vec::new(), hidden: Vec::new(), truncated: scanned.len() < text.len() },
    };
    reader.add(Cow::Borrowed(scanned), Vec::new(), Vec::new(), 0);
    let mut next = 0;
    while next < reader.queue.len() {
        reader.expand(next);
        next += 1;
    }
    #[cfg(test)]
    crate::work::LAST.set(reader.effort.work);
    reader.out
}

/// Looks at a reading; whether it is the first.
type Look<'l, 'a> = &'l mut dyn FnMut(&View<'a>, bool, &mut Work);

/// What the readings of a text cost so far, and may cost.
#[derive(Debug, Default)]
struct Effort {
    work: Work,
    /// The most that a KiB of a reading has cost, to be looked at and to be surveyed.
    dearest: [usize; 2],
}

impl Effort {
    /// Whether something of this length can be done within what is left, if it costs as much as the dearest.
    fn allows(&self, length: usize, what: usize) -> bool {
        self.work.allows(length.saturating_mul(self.dearest[what]) >> 10)
    }

    /// Notes what something of this length has cost since.
    fn spent(&mut self, length: usize, what: usize, before: usize) {
        let cost = (self.work.cost_of_reading() - before).saturating_mul(1024) / (length + 1024);
        self.dearest[what] = self.dearest[what].max(cost);
    }
}

/// Bringing a text into normal form, and looking at it.
const LOOK: usize = 0;
/// Surveying it.
const SURVEY: usize = 1;

struct Reader<'a, 'l> {
    original: &'a str,
    budget: usize,
    limits: Limits,
    effort: Effort,
    look: Look<'l, 'a>,
    seen: HashSet<u64>,
    queue: Vec<Node<'a>>,
    out: Views<'a>,
}

/// A reading that has yet to be looked at for others.
struct Node<'a> {
    /// With the case of ASCII letters.
    cased: Cow<'a, str>,
    maps: Vec<Arc<Map>>,
    /// How many of the maps belong to bringing it into normal form.
    own: usize,
    path: Vec<Transform>,
    depth: u8,
    hidden: Vec<Undone>,
}

impl<'a> Reader<'a, '_> {
    fn add(&mut self, raw: Cow<'a, str>, maps: Vec<Arc<Map>>, path: Vec<Transform>, depth: u8) {
        let first = self.out.views.is_empty();
        let full = self.out.views.len() >= self.limits.max_views || raw.len() > self.budget;
        if !first && full {
            self.out.truncated = true;
            return;
        }
        let (size, before) = (raw.len(), self.effort.work.cost_of_reading());
        if !first && !self.effort.allows(size, LOOK) {
            self.out.truncated = true;
            return;
        }
        let (cased, own_maps, undone, hidden, read, steps) = match raw {
            Cow::Borrowed(raw) => {
                let normal = normalise::normalise(raw);
                (normal.text, normal.maps, normal.undone, normal.hidden, normal.read, normal.steps)
            }
            Cow::Owned(raw) => {
                let normal = normalise::normalise(&raw);
                let (maps, undone, hidden) = (normal.maps, normal.undone, normal.hidden);
                let (read, steps) = (normal.read, normal.steps);
                let text = match normal.text {
                    Cow::Owned(text) => text,
                    Cow::Borrowed(_) => raw,
                };
                (Cow::Owned(text), maps, undone, hidden, read, steps)
            }
        };
        self.effort.work.add(Step::Folded, steps[0]);
        self.effort.work.add(Step::FoldedBytes, steps[1]);
        let lower = lower_case(&cased);
        if !first {
            if !self.seen.insert(fingerprint(&lower)) {
                return;
            }
            // Normal form may be longer than what was decoded.
            let cost = size.max(lower.len());
            if cost > self.budget {
                self.out.truncated = true;
                return;
            }
            self.budget -= cost;
        }
        let own = own_maps.len();
        let mut all: Vec<Arc<Map>> = own_maps.into_iter().map(Arc::new).collect();
        all.extend(maps);
        let mut full = path;
        for kind in undone {
            push_new(&mut full, kind);
        }
        self.hidden(hidden, &all[own..]);
        let view =
            View { original: self.original, text: lower, maps: all.clone(), path: full.clone() };
        (self.look)(&view, first, &mut self.effort.work);
        self.out.views.push(view);
        self.effort.spent(size, LOOK, before);
        if first {
            // Whatever it took: the text itself is read to its end.
            self.effort.work.limit(self.original.len());
        } else if !self.effort.work.allows(0) {
            self.out.truncated = true;
        }
        if depth < self.limits.max_depth && self.out.views.len() < self.limits.max_views {
            self.queue.push(Node { cased, maps: all, own, path: full, depth, hidden: read });
        }
    }

    /// Notes what was hidden.
    fn hidden(&mut self, found: Vec<(Range<usize>, HiddenKind, String)>, outer: &[Arc<Map>]) {
        for (range, kind, text) in found {
            let view = View {
                original: self.original,
                text: Cow::Borrowed(""),
                maps: outer.to_vec(),
                path: Vec::new(),
            };
            self.out.hidden.push(Hidden { span: view.span(range), kind, text });
        }
    }

    fn expand(&mut self, index: usize) {
        let node = &mut self.queue[index];
        let cased = std::mem::take(&mut node.cased);
        let (maps, own) = (std::mem::take(&mut node.maps), node.own);
        let (path, depth) = (std::mem::take(&mut node.path), node.depth);
        let hidden = std::mem::take(&mut node.hidden);
        for (kinds, text, map) in hidden {
            // The place is one in the text before it was brought into normal form.
            self.child(&path, kinds, text, map, &maps[own..], depth);
        }
        if index > 0 && !self.effort.allows(cased.len(), SURVEY) {
            self.out.truncated = true;
            return;
        }
        let before = self.effort.work.cost_of_reading();
        let fresh = survey::Fresh::new(&maps, own);
        let (mut found, truncated) =
            survey::survey(&cased, fresh, self.budget, &mut self.effort.work);
        self.effort.spent(cased.len(), SURVEY, before);
        self.out.truncated |= truncated;
        // Where not all can be read, the short ones come first: many short ones fit.
        let length: usize = found.iter().map(|(_, text, _)| text.len()).sum();
        if length > self.budget || !self.effort.allows(length, LOOK) {
            found.sort_by_key(|(_, text, _)| text.len());
        }
        for (kinds, text, map) in found {
            self.child(&path, kinds, text, map, &maps, depth);
        }
    }

    fn child(
        &mut self,
        path: &[Transform],
        kinds: Vec<Transform>,
        text: String,
        map: Map,
        outer: &[Arc<Map>],
        depth: u8,
    ) {
        let mut maps = vec![Arc::new(map)];
        maps.extend(outer.iter().cloned());
        let path = [path, &kinds].concat();
        self.add(Cow::Owned(text), maps, path, depth + 1);
    }
}

fn lower_case<'a>(cased: &Cow<'a, str>) -> Cow<'a, str> {
    let upper = cased.as_bytes().iter().fold(false, |any, byte| any | byte.is_ascii_uppercase());
    match cased {
        Cow::Borrowed(text) if !upper => Cow::Borrowed(text),
        text => Cow::Owned(text.to_ascii_lowercase()),
    }
}

/// Tells equal texts; a clash would cost one reading of the same length and no more.
fn fingerprint(text: &str) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (chunks, rest) = text.as_bytes().as_chunks::<8>();
    let mut state = text.len() as u64;
    for chunk in chunks {
        state = (state.rotate_left(23) ^ u64::from_le_bytes(*chunk)).wrapping_mul(ODD);
    }
    rest.iter()
        .fold(state, |state, byte| (state.rotate_left(23) ^ u64::from(*byte)).wrapping_mul(ODD))
}

fn push_new(kinds: &mut Vec<Transform>, kind: Transform) {
    if !kinds.contains(&kind) {
        kinds.push(kind);
    }
}
