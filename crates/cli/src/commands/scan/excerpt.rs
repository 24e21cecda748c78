//! The line around a finding, with marks below it.

use wardkeep_detect::finding::Span;

use crate::ui::harmless;

const WIDTH: usize = 96;

/// Line and column (from 1), the line's text cut around the span and made harmless, and marks that
/// stand below the span.
pub(super) fn around(text: &str, span: Span) -> (usize, usize, String, String) {
    let start = floor(text, span.start);
    let end = floor(text, span.end.max(start)).max(start);
    let before = text.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let number = before.matches('\n').count() + 1;
    let rest = text.get(start..).unwrap_or_default();
    let line_end = rest.find('\n').map_or(text.len(), |at| start + at);
    let column = text.get(line_start..start).unwrap_or_default().chars().count() + 1;
    let lead: String = tail(text.get(line_start..start).unwrap_or_default(), WIDTH / 3);
    let marked_end = end.min(line_end).max(start);
    let marked = head(text.get(start..marked_end).unwrap_or_default(), WIDTH / 2);
    let left = WIDTH.saturating_sub(lead.chars().count() + marked.chars().count());
    let behind = head(text.get(marked_end..line_end).unwrap_or_default(), left);
    let (lead, marked, behind) = (harmless(&lead), harmless(&marked), harmless(&behind));
    let marks = " ".repeat(lead.chars().count()) + &"^".repeat(marked.chars().count().max(1));
    (number, column, format!("{lead}{marked}{behind}"), marks)
}

fn head(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

fn tail(text: &str, characters: usize) -> String {
    let skip = text.chars().count().saturating_sub(characters);
    text.chars().skip(skip).collect()
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
    fn marks_stand_below_the_span_whatever_is_around() {
        let text = "first\nsay é \u{1b}[31m evil words here\nlast";
        let start = text.find("evil").unwrap();
        let (line, column, shown, marks) = around(text, Span { start, end: start + 10 });
        assert_eq!((line, column), (2, 13));
        let at = marks.find('^').unwrap();
        assert_eq!(shown.chars().skip(at).take(10).collect::<String>(), "evil words");
        assert!(!shown.contains('\u{1b}'));
        around(text, Span { start: 9999, end: 10_000 });
        around("é", Span { start: 1, end: 1 });
    }
}
