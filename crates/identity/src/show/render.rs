//! A change as lines of a terminal. Every line of content begins with a sign in the third column, also
//! where it goes on in the next line, so that none can look like a line of ours.

use super::visible::columns;
use super::{Body, Hunk, Known, Line, Shown, Status, Tag};

/// Narrower than this nothing can be read.
const LEAST_WIDTH: usize = 24;

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The name of a file and what happens to it.
    Head,
    /// A remark, or the place of a change.
    Note,
    /// What the owner should not miss.
    Warning,
    /// A line that stays.
    Plain,
    /// A line that goes.
    Removed,
    /// What goes out of a line that changed.
    RemovedPart,
    /// A line that comes.
    Added,
    /// What comes into a line that changed.
    AddedPart,
}

/// A line in pieces, none of which holds anything that a terminal obeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Styled {
    /// The pieces.
    pub pieces: Vec<(Tone, String)>,
}

impl Styled {
    /// The line without its tones.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}

impl Shown {
    /// The change as lines of at most `width` columns.
    #[must_use]
    pub fn render(&self, width: usize) -> Vec<Styled> {
        let mut page = Page { width: width.max(LEAST_WIDTH), lines: Vec::new() };
        page.own(Tone::Head, "", &self.heading());
        for note in self.notes() {
            page.own(Tone::Note, "  ", &note);
        }
        match &self.body {
            Body::Same => {}
            Body::Binary => {
                page.own(Tone::Warning, "  ", "not text: its content is not shown");
            }
            Body::Large => {
                page.own(Tone::Warning, "  ", "too large: its content is not shown");
            }
            Body::Text { hunks, hidden } => {
                hunks.iter().for_each(|hunk| page.hunk(hunk));
                if *hidden > 0 {
                    let note = format!("{hidden} more changed lines are not shown");
                    page.own(Tone::Warning, "  ", &note);
                }
            }
        }
        page.lines
    }

    fn heading(&self) -> String {
        let word = match self.status {
            Status::New => "new",
            Status::Modified => "modified",
            Status::Deleted => "deleted",
            Status::Renamed => "renamed",
            Status::Unchanged => "unchanged",
        };
        format!("{word}: {}", self.name)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(name) = &self.renamed_from {
            notes.push(format!("was: {name}"));
        }
        let run = |known: &Known| known.is_executable;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if run(old) != run(new) => {
                notes.push(
                    if run(new) { "can be run now" } else { "cannot be run any more" }.into(),
                );
            }
            (None, Some(new)) if run(new) => notes.push("can be run".into()),
            _ => {}
        }
        if matches!(self.body, Body::Binary | Body::Large) {
            let line = |word: &str, known: &Known| {
                format!("{word}: {} bytes, sha256 {}", known.size, known.sha256)
            };
            notes.extend(self.old.as_ref().map(|known| line("before", known)));
            notes.extend(self.new.as_ref().map(|known| line("after", known)));
        }
        notes
    }
}

struct Page {
    width: usize,
    lines: Vec<Styled>,
}

impl Page {
    fn hunk(&mut self, hunk: &Hunk) {
        let place = |(start, count): (usize, usize)| {
            // As in unified diffs: of nothing the line before is named.
            if count == 0 { format!("{},0", start - 1) } else { format!("{start},{count}") }
        };
        let header = format!("@@ -{} +{} @@", place(hunk.old), place(hunk.new));
        self.own(Tone::Note, "  ", &header);
        hunk.lines.iter().for_each(|line| self.line(line));
    }

    fn line(&mut self, line: &Line) {
        let (sign, tone, part) = match line.tag {
            Tag::Context => (' ', Tone::Plain, Tone::Plain),
            Tag::Removed => ('-', Tone::Removed, Tone::RemovedPart),
            Tag::Added => ('+', Tone::Added, Tone::AddedPart),
        };
        let pieces = line
            .pieces
            .iter()
            .map(|piece| (if piece.is_changed { part } else { tone }, piece.text.as_str()));
        // A line that stays has a bar, as a blank is no sign.
        let sign = if sign == ' ' { '|' } else { sign };
        self.wrap(tone, &format!("  {sign} "), &format!("  {sign}…"), pieces);
        if line.cut > 0 {
            let note = format!("{} more bytes of this line are not shown", line.cut);
            self.own(Tone::Warning, "  ", &note);
        }
        if line.has_no_end {
            self.own(Tone::Note, "  ", "no line end at the end of the file");
        }
    }

    /// A line of ours; where it goes on it is indented.
    fn own(&mut self, tone: Tone, indent: &str, text: &str) {
        self.wrap(tone, indent, "      ", [(tone, text)].into_iter());
    }

    fn wrap<'a>(
        &mut self,
        tone: Tone,
        first: &str,
        next: &str,
        pieces: impl Iterator<Item = (Tone, &'a str)>,
    ) {
        let width_of = |text: &str| text.chars().map(columns).sum::<usize>();
        let mut line = vec![(tone, first.to_owned())];
        let mut used = width_of(first);
        for (tone, text) in pieces {
            let mut part = String::new();
            for character in text.chars() {
                let wide = columns(character);
                if used + wide > self.width {
                    line.push((tone, std::mem::take(&mut part)));
                    self.lines.push(Styled { pieces: std::mem::take(&mut line) });
                    line.push((tone, next.to_owned()));
                    used = width_of(next);
                }
                part.push(character);
                used += wide;
            }
            line.push((tone, part));
        }
        line.retain(|(_, text)| !text.is_empty());
        self.lines.push(Styled { pieces: line });
    }
}
