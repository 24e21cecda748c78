//! A line of text with tones.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::harmless;

/// How a piece of text stands out where colours are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
    Warning,
    Strong,
    Faint,
    Removed,
    Added,
}

/// A line, made of pieces; whatever they hold, it prints as one harmless line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    pub(crate) fn plain(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Plain, text)
    }

    pub(crate) fn good(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Good, text)
    }

    pub(crate) fn bad(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Bad, text)
    }

    pub(crate) fn strong(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Strong, text)
    }

    pub(crate) fn warning(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Warning, text)
    }

    pub(crate) fn faint(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Faint, text)
    }

    pub(crate) fn removed(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Removed, text)
    }

    pub(crate) fn added(self, text: impl AsRef<str>) -> Self {
        self.toned(Tone::Added, text)
    }

    /// What to do next, in the one form that all commands have for it.
    pub(crate) fn next(text: impl AsRef<str>) -> Self {
        Self::default().strong("Next: ").plain(text)
    }

    /// The line without tones.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub(super) fn toned(mut self, tone: Tone, text: impl AsRef<str>) -> Self {
        self.pieces.push((tone, harmless(text.as_ref())));
        self
    }

    pub(crate) fn join(mut self, other: &Self) -> Self {
        self.pieces.extend_from_slice(&other.pieces);
        self
    }

    /// At most `width` characters of it.
    pub(crate) fn fit(mut self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        for (_, text) in &mut self.pieces {
            let count = text.chars().count();
            if count > left {
                *text = text.chars().take(left).collect();
            }
            left = left.saturating_sub(count);
        }
        self.pieces.push((Tone::Plain, "…".to_owned()));
        self
    }

    /// Number of characters.
    pub(super) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// The line with its newline.
    pub(super) fn render(&self, colour: bool) -> String {
        let mut out = String::new();
        for (tone, text) in &self.pieces {
            let style = tone.style();
            // Writing to a string does not fail.
            let _ =
                if colour { write!(out, "{style}{text}{style:#}") } else { out.write_str(text) };
        }
        out.push('\n');
        out
    }
}

impl<T: AsRef<str>> From<T> for Line {
    fn from(text: T) -> Self {
        Self::default().plain(text)
    }
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Warning => AnsiColor::Yellow.on_default().bold(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Removed => AnsiColor::Red.on_default(),
            Self::Added => AnsiColor::Green.on_default(),
        }
    }
}
