//! Text in markup: whatever a record holds, it stays text.

use std::borrow::Cow;
use std::fmt;

use wardkeep_evidence::check::printable;

/// Text for an element or a quoted attribute of HTML or SVG: at most 160 characters, nothing that a
/// reader could take for markup, a direction mark or a control character.
pub(crate) struct Escaped<'a>(Cow<'a, str>);

impl<'a> Escaped<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Cut to so many characters.
    pub(crate) fn cut(text: &str, characters: usize) -> Escaped<'static> {
        if text.chars().count() <= characters {
            return Escaped(Cow::Owned(text.to_owned()));
        }
        let start: String = text.chars().take(characters.saturating_sub(1)).collect();
        Escaped(Cow::Owned(format!("{start}…")))
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in printable(&self.0).chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                other => write!(formatter, "{other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let text = Escaped::new("<a b=\"c\" d='e'>&\u{1b}\u{202e}é</a>").to_string();
        assert_eq!(text, "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\\u{1b}\\u{202e}é&lt;/a&gt;");
        assert_eq!(Escaped::cut("abcdef", 4).to_string(), "abc…");
        // Cut before it is escaped: no half of an escape is left.
        assert_eq!(Escaped::cut("<<<<", 3).to_string(), "&lt;&lt;…");
    }
}
