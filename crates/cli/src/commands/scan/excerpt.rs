//! The line around a finding, with marks below it.

use wardkeep_detect::finding::Span;

use crate::ui::harmless;

const WIDTH: usize = 96;

/// Where a finding stands, and how that is shown. Lines and columns count from 1, columns in characters.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) end_line: usize,
    /// Behind the last character.
    pub(super) end_column: usize,
    /// The line, cut around the finding and made harmless.
    pub(super) shown: String,
    /// Marks that stand below the finding in `shown`.
    pub(super) marks: String,
}

impl Place {
    pub(super) fn new(text: &str, span: Span) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end).max(start);
        let (before, found) = (&text[..start], &text[start..end]);
        let lead = last_line(before);
        let marked = head(found.split('\n').next().unwrap_or_default(), WIDTH / 2);
        let behind = if found.contains('\n') {
            ""
        } else {
            text[end..].split('\n').next().unwrap_or_default()
        };
        let column = lead.chars().count() + 1;
        let line = lines(before) + 1;
        let lead = tail(lead, WIDTH / 3);
        let left = WIDTH.saturating_sub(lead.chars().count() + marked.chars().count());
        // Where the finding itself is cut, what stands behind it does not follow.
        let behind = if marked.len() < found.len() { "" } else { head(behind, left) };
        let (lead, marked, behind) = (harmless(lead), harmless(marked), harmless(behind));
        let marks = " ".repeat(lead.chars().count()) + &"^".repeat(marked.chars().count().max(1));
        Self {
            line,
            column,
            end_line: line + lines(found),
            end_column: last_line(&text[..end]).chars().count() + 1,
            shown: format!("{lead}{marked}{behind}"),
            marks,
        }
    }
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or_default()
}

fn head(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at])
}

fn tail(text: &str, characters: usize) -> &str {
    let from = characters.checked_sub(1).and_then(|last| text.char_indices().rev().nth(last));
    from.map_or(text, |(at, _)| &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_below_the_span_whatever_is_around() {
        let text = "first\nsay é \u{1b}[31m evil words here\nlast";
        let start = text.find("evil").unwrap();
        let place = Place::new(text, Span { start, end: start + 10 });
        assert_eq!((place.line, place.column, place.end_line, place.end_column), (2, 13, 2, 23));
        let at = place.marks.find('^').unwrap();
        assert_eq!(place.shown.chars().skip(at).take(10).collect::<String>(), "evil words");
        assert!(place.shown.ends_with(" here") && !place.shown.contains('\u{1b}'));
        Place::new(text, Span { start: 9999, end: 10_000 });
        Place::new("é", Span { start: 1, end: 1 });
    }

    #[test]
    fn several_lines_and_long_ones() {
        let place = Place::new("a bé\ncd e", Span { start: 2, end: 8 });
        assert_eq!((place.line, place.column, place.end_line, place.end_column), (1, 3, 2, 3));
        assert_eq!((&*place.shown, &*place.marks), ("a bé", "  ^^"));
        let long = "ä".repeat(1000);
        let place = Place::new(&long, Span { start: 400, end: 1600 });
        assert_eq!((place.column, place.end_column), (201, 801));
        assert_eq!(place.shown.chars().count(), WIDTH / 3 + WIDTH / 2);
    }
}
