//! A change as people see it: what is shown is exactly what was read, and nothing in it can pass for
//! a line of ours.

mod render;
mod visible;

use std::time::Instant;

use serde::Serialize;
use similar::{Algorithm, DiffOp, DiffTag, TextDiff, capture_diff_slices_deadline, group_diff_ops};
use wardkeep_evidence::hash::{encode_hex, sha256};

pub use self::render::{Styled, Tone};
pub use self::visible::{visible, visible_bytes};
use crate::name::Name;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Lines longer than this, in bytes, are not compared word by word.
const MAX_WORDS: usize = 1000;
/// Two lines less alike than this are shown as two lines, not as one that changed.
const ALIKE: f32 = 0.35;

/// One side of a change.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The bytes that were read.
    pub bytes: &'a [u8],
    /// Whether the file can be run.
    pub is_executable: bool,
}

/// What is to be shown: a file before and after.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The file.
    pub name: &'a Name,
    /// What it was called before, where the same bytes were found under another name.
    pub renamed_from: Option<&'a Name>,
    /// Before; `None` for a new file.
    pub old: Option<Side<'a>>,
    /// After; `None` for a file that goes.
    pub new: Option<Side<'a>>,
}

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A file with more bytes on either side is shown by size and hash.
    pub bytes: usize,
    /// Most lines that are shown of a file.
    pub lines: usize,
    /// Most bytes that are shown of a line.
    pub line: usize,
    /// When comparing becomes coarser; it ends soon after. All files of a diff can share one.
    pub deadline: Instant,
}

impl Limits {
    /// What is shown of files that people write.
    #[must_use]
    pub fn until(deadline: Instant) -> Self {
        Self { bytes: 4 << 20, lines: 2000, line: 4000, deadline }
    }
}

/// A change, ready to be shown or to be written as JSON. Every text in it is visible.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    /// The file.
    pub name: Name,
    /// What happened to it.
    pub status: Status,
    /// What it was called before.
    pub renamed_from: Option<Name>,
    /// Before.
    pub old: Option<Known>,
    /// After.
    pub new: Option<Known>,
    /// What changed in it.
    pub body: Body,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It comes.
    New,
    /// Its content, or whether it can be run, changes.
    Modified,
    /// It goes.
    Deleted,
    /// It gets another name.
    Renamed,
    /// Nothing.
    Unchanged,
}

/// A side of a change in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// In bytes.
    pub size: usize,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// Whether it can be run.
    pub is_executable: bool,
}

/// The content of a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Body {
    /// The bytes are the same.
    Same,
    /// Not text: shown by size and hash.
    Binary,
    /// Too large to be shown line by line.
    Large,
    /// Lines.
    Text {
        /// Where something changed, with lines around it.
        hunks: Vec<Hunk>,
        /// Lines that come or go and are not shown.
        hidden: usize,
    },
}

/// A place where something changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hunk {
    /// First line and number of lines before.
    pub old: (usize, usize),
    /// First line and number of lines after.
    pub new: (usize, usize),
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Whether it comes, goes or stays.
    pub tag: Tag,
    /// Its text, in pieces; those that are marked changed inside the line.
    pub pieces: Vec<Piece>,
    /// Bytes at its end that are not shown.
    pub cut: usize,
    /// Whether it is the last one and has no line end.
    pub has_no_end: bool,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tag {
    /// It stays.
    Context,
    /// It goes.
    Removed,
    /// It comes.
    Added,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Its text, visible.
    pub text: String,
    /// Whether this is what changed in the line.
    pub is_changed: bool,
}

/// Compares the two sides of a change.
#[must_use]
pub fn compare(pair: &Pair<'_>, limits: &Limits) -> Shown {
    let old = pair.old.map_or(&[][..], |side| side.bytes);
    let new = pair.new.map_or(&[][..], |side| side.bytes);
    let body = if old == new {
        Body::Same
    } else if old.len().max(new.len()) > limits.bytes {
        Body::Large
    } else if is_binary(old) || is_binary(new) {
        Body::Binary
    } else {
        text(old, new, limits)
    };
    let modes = (pair.old, pair.new);
    let same_mode = |old: Side<'_>, new: Side<'_>| old.is_executable == new.is_executable;
    let status = match modes {
        (None, Some(_)) if pair.renamed_from.is_some() => Status::Renamed,
        (None, Some(_)) => Status::New,
        (Some(_), None) => Status::Deleted,
        (Some(_), Some(_)) if pair.renamed_from.is_some() => Status::Renamed,
        (Some(old), Some(new)) if body == Body::Same && same_mode(old, new) => Status::Unchanged,
        (Some(_), Some(_)) => Status::Modified,
        (None, None) => Status::Unchanged,
    };
    Shown {
        name: pair.name.clone(),
        status,
        renamed_from: pair.renamed_from.cloned(),
        old: pair.old.map(known),
        new: pair.new.map(known),
        body,
    }
}

impl Shown {
    /// Whether every byte that changes can be seen. Where not, the owner should be told.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.body {
            Body::Same => true,
            Body::Binary | Body::Large => false,
            Body::Text { hunks, hidden } => {
                let is_whole = |line: &Line| line.tag == Tag::Context || line.cut == 0;
                *hidden == 0 && hunks.iter().flat_map(|hunk| &hunk.lines).all(is_whole)
            }
        }
    }
}

fn known(side: Side<'_>) -> Known {
    let sha256 = encode_hex(&sha256(side.bytes));
    Known { size: side.bytes.len(), sha256, is_executable: side.is_executable }
}

/// Whether more than a tenth is not text. A stray byte is shown, and hides nothing.
fn is_binary(bytes: &[u8]) -> bool {
    let mut odd = 0;
    for chunk in bytes.utf8_chunks() {
        let control =
            |byte: &&u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
        odd += chunk.valid().as_bytes().iter().filter(control).count() + chunk.invalid().len();
    }
    odd * 10 > bytes.len()
}

fn text(old: &[u8], new: &[u8], limits: &Limits) -> Body {
    let split =
        |bytes| -> Vec<&[u8]> { <[u8]>::split_inclusive(bytes, |byte| *byte == b'\n').collect() };
    let (old, new) = (split(old), split(new));
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(limits.deadline));
    let mut left = limits.lines;
    let mut hidden = 0;
    let mut hunks = Vec::new();
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let ranges = (
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        );
        let mut lines = Vec::new();
        for op in &group {
            for line in lines_of(op, &old, &new, limits, left) {
                match line {
                    Some(line) if left > 0 => {
                        left -= 1;
                        lines.push(line);
                    }
                    _ => hidden += usize::from(op.tag() != DiffTag::Equal),
                }
            }
        }
        if !lines.is_empty() {
            hunks.push(Hunk {
                old: (ranges.0.start + 1, ranges.0.len()),
                new: (ranges.1.start + 1, ranges.1.len()),
                lines,
            });
        }
    }
    Body::Text { hunks, hidden }
}

/// The lines of an operation; from `most` on only their number counts.
fn lines_of(
    op: &DiffOp,
    old: &[&[u8]],
    new: &[&[u8]],
    limits: &Limits,
    most: usize,
) -> Vec<Option<Line>> {
    let (before, after) = (&old[op.old_range()], &new[op.new_range()]);
    if op.tag() == DiffTag::Equal {
        let line = |bytes: &&[u8]| Some(plain(Tag::Context, bytes, limits));
        return after.iter().take(most).map(line).collect();
    }
    // Lines that are replaced one by one are compared word by word.
    let pairs: Vec<Option<(Line, Line)>> =
        before.iter().zip(after).take(most).map(|(old, new)| words(old, new, limits)).collect();
    let (mut removed, mut added): (Vec<_>, Vec<_>) = pairs.into_iter().map(Option::unzip).unzip();
    let fill = |lines: &mut Vec<Option<Line>>, bytes: &[&[u8]], tag: Tag| {
        lines.resize(bytes.len(), None);
        for (line, bytes) in lines.iter_mut().zip(bytes).take(most) {
            if line.is_none() {
                *line = Some(plain(tag, bytes, limits));
            }
        }
    };
    fill(&mut removed, before, Tag::Removed);
    fill(&mut added, after, Tag::Added);
    removed.append(&mut added);
    removed
}

fn plain(tag: Tag, bytes: &[u8], limits: &Limits) -> Line {
    let (content, has_no_end) = match bytes.strip_suffix(b"\n") {
        Some(content) => (content, false),
        None => (bytes, true),
    };
    let shown = cut(content, limits.line);
    let piece = Piece { text: visible_bytes(shown), is_changed: false };
    Line { tag, pieces: vec![piece], cut: content.len() - shown.len(), has_no_end }
}

/// At most so many bytes, and no half character at the end.
fn cut(bytes: &[u8], most: usize) -> &[u8] {
    if bytes.len() <= most {
        return bytes;
    }
    let is_inner = |byte: &u8| byte & 0xc0 == 0x80;
    let mut end = most;
    while end > most.saturating_sub(3) && bytes.get(end).is_some_and(is_inner) {
        end -= 1;
    }
    &bytes[..end]
}

/// A line that changed, before and after, with the words that differ marked; `None` where the two are
/// too long or have too little in common.
fn words(old: &[u8], new: &[u8], limits: &Limits) -> Option<(Line, Line)> {
    if old.len().max(new.len()) > MAX_WORDS.min(limits.line) {
        return None;
    }
    let (mut removed, mut added) =
        (plain(Tag::Removed, old, limits), plain(Tag::Added, new, limits));
    let (before, after) = (text_of(&removed), text_of(&added));
    let mut config = TextDiff::configure();
    let diff = config.deadline(limits.deadline).diff_words(before.as_str(), after.as_str());
    if diff.ratio() < ALIKE {
        return None;
    }
    removed.pieces.clear();
    added.pieces.clear();
    let push = |line: &mut Line, text: &str, is_changed: bool| match line.pieces.last_mut() {
        Some(piece) if piece.is_changed == is_changed => piece.text.push_str(text),
        _ => line.pieces.push(Piece { text: text.to_owned(), is_changed }),
    };
    for change in diff.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Equal => {
                push(&mut removed, change.value(), false);
                push(&mut added, change.value(), false);
            }
            similar::ChangeTag::Delete => push(&mut removed, change.value(), true),
            similar::ChangeTag::Insert => push(&mut added, change.value(), true),
        }
    }
    Some((removed, added))
}

fn text_of(line: &Line) -> String {
    line.pieces.iter().map(|piece| piece.text.as_str()).collect()
}
