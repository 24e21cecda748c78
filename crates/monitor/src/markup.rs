//! Text in markup: whatever a record holds, it stays text.

use std::borrow::Cow;
use std::fmt;

use wardkeep_evidence::check::printable;

/// Where the views of a page are that shows a text or a picture. A file on its own has none.
#[derive(Debug, Clone, Copy)]
pub struct Links {
    /// The first view.
    pub home: &'static str,
    /// A record, before its id.
    pub record: &'static str,
}

/// A message of ours with what stands in backticks as code. Each part goes through `escaped` by itself, so
/// that the tags are the only markup of it.
pub fn coded(text: &str, escaped: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let found = match after.split_once('`') {
            // It was cut before its end.
            None => after.ends_with('…').then_some((after, "")),
            found => found.filter(|(code, _)| !code.is_empty()),
        };
        out.push_str(&escaped(before));
        if let Some((code, then)) = found {
            out.push_str("<code>");
            out.push_str(&escaped(code));
            out.push_str("</code>");
            rest = then;
        } else {
            out.push('`');
            rest = after;
        }
    }
    out.push_str(&escaped(rest));
    out
}

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

    #[test]
    fn what_stands_in_backticks_is_code_and_nothing_else_is_markup() {
        let shown = |text: &str| coded(text, |part| Escaped::new(part).to_string());
        assert_eq!(shown("run `a b`, then `c`"), "run <code>a b</code>, then <code>c</code>");
        assert_eq!(shown("no code"), "no code");
        assert_eq!(shown("`one"), "`one");
        assert_eq!(shown("``` `"), "``<code> </code>");
        assert_eq!(shown("see `a long na…"), "see <code>a long na…</code>");
        for hostile in [
            "`<script>alert(1)</script>`",
            "<b>`</code><img src=x onerror=y>`</b>",
            "`a`<script>`b`</script>`",
            "&lt;`&lt;script&gt;`",
            "`</code>\u{202e}\u{1b}[2J`<i>…",
        ] {
            let out = shown(hostile);
            let left = out.replace("<code>", "").replace("</code>", "");
            assert!(!left.contains(['<', '>', '\u{202e}', '\u{1b}']), "{hostile}: {out}");
            assert_eq!(out.matches("<code>").count(), out.matches("</code>").count(), "{out}");
        }
    }
}
