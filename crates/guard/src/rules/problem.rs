//! What is wrong with the owner's rules, and where.

use std::fmt;
use std::ops::Range;

use wardkeep_evidence::check::printable;

/// Widest part of a line that is shown.
const WIDTH: usize = 96;
/// Longest message, in characters.
const LONGEST: usize = 400;

/// Something wrong with a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// The file, where there are several.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The line, cut to what matters and made printable.
    pub excerpt: String,
    /// Marks that stand below the place in the excerpt.
    pub marks: String,
}

impl RuleProblem {
    pub(super) fn new(
        file: &str,
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
    ) -> Self {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let lead: Vec<char> = text[line_start..start].chars().collect();
        let shown = &lead[lead.len().saturating_sub(WIDTH / 3)..];
        let marked: String = text[start..end.min(line_end)].chars().take(WIDTH / 2).collect();
        let behind = text[start + marked.len()..line_end].chars().take(WIDTH / 2);
        let lead_text: String = shown.iter().map(one).collect();
        let marked_text: String = marked.chars().map(|character| one(&character)).collect();
        let behind: String = behind.map(|character| one(&character)).collect();
        let marks = "^".repeat(marked_text.chars().count().max(1));
        Self {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: lead.len() + 1,
            message: line(&message.into()),
            help: None,
            excerpt: format!("{lead_text}{marked_text}{behind}"),
            marks: " ".repeat(lead_text.chars().count()) + &marks,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(line(&help.into()));
        self
    }

    /// Place and message in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self { file, line, column, message, .. } = self;
        format!("{file}:{line}:{column}: {message}")
    }
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.summary())?;
        writeln!(formatter, "  | {}", self.excerpt)?;
        write!(formatter, "  | {}", self.marks)?;
        match &self.help {
            Some(help) => write!(formatter, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// A message as one line that can be shown: it may repeat what stands in the file.
fn line(message: &str) -> String {
    let mut line: String = message.chars().take(LONGEST).map(|character| one(&character)).collect();
    if message.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}

/// A character as one that can be shown, so that marks stay below their place.
fn one(character: &char) -> char {
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    match *character {
        '\t' => ' ',
        character if printable(text) == text => character,
        _ => '\u{fffd}',
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_below_the_place() {
        let text = "first\n\tsay \u{1b}é wrong here\nlast";
        let start = text.find("wrong").unwrap();
        let problem = RuleProblem::new("f", text, start..start + 5, "no");
        assert_eq!((problem.line, problem.column), (2, 9));
        assert_eq!(problem.excerpt, " say \u{fffd}é wrong here");
        assert_eq!(problem.marks, "        ^^^^^");
        assert_eq!(
            problem.to_string(),
            "f:2:9: no\n  |  say \u{fffd}é wrong here\n  |         ^^^^^"
        );
    }

    #[test]
    fn any_span_of_any_text_has_a_place() {
        let text = "é".repeat(500);
        for at in [0, 1, 499, 1000, 5000] {
            let problem = RuleProblem::new("f", &text, at..at + 3000, "no");
            assert!(problem.excerpt.chars().count() <= WIDTH * 2);
        }
        RuleProblem::new("f", "", 0..1, "no");
    }
}
