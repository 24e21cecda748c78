//! Text in a page: whatever it holds, it stays text.

use std::fmt::{self, Write as _};

use wardkeep_evidence::check::printable;
use wardkeep_monitor::markup::{Links, coded};

/// Text for an element or a quoted attribute: nothing of it is markup, a control character or a mark of
/// direction; those are shown as escapes. Ends of lines are kept.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; 4];
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                '\n' | '\t' => formatter.write_char(character)?,
                '\r' => formatter.write_str("\\r")?,
                ' '..='~' => formatter.write_char(character)?,
                other => formatter.write_str(&printable(other.encode_utf8(&mut buffer)))?,
            }
        }
        Ok(())
    }
}

/// A message of ours: what stands in backticks is shown as code. Not for what is approved, of which every
/// character counts.
pub(super) struct Said<'a>(pub(super) &'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&coded(self.0, |part| Text(part).to_string()))
    }
}

/// The beginning of a text, on one line.
pub(super) fn short(text: &str, characters: usize) -> String {
    let line: String = text
        .chars()
        .take(characters + 1)
        .map(|character| if character == '\n' { ' ' } else { character })
        .collect();
    if line.chars().count() <= characters {
        return line;
    }
    line.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

/// A part of an address.
pub(super) struct Part<'a>(pub(super) &'a str);

impl fmt::Display for Part<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    formatter.write_char(char::from(byte))?;
                }
                _ => write!(formatter, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

/// For what is made elsewhere and shown here.
pub const LINKS: Links = Links { home: "/", record: "/record/" };

/// Views, in the order of the menu: address and name.
pub(super) const MENU: [(&str, &str); 9] = [
    ("/", "Now"),
    ("/timeline", "Timeline"),
    ("/requests", "Requests"),
    ("/proposals", "Proposals"),
    ("/policy", "Policy"),
    ("/skills", "Skills"),
    ("/models", "Model API"),
    ("/evidence", "Evidence"),
    ("/report", "Report"),
];

/// A whole page; `here` is the address of its view.
pub(super) fn page(here: &str, title: &str, body: &str) -> String {
    let mut out = String::with_capacity(body.len() + 2048);
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} · Wardkeep</title>\
         <link rel=\"icon\" href=\"/icon.svg\"><link rel=\"stylesheet\" href=\"/page.css\"><script src=\"/page.js\" defer></script></head>\n\
         <body><a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
         <header><a class=\"name\" href=\"/\"><img src=\"/icon.svg\" alt=\"\">Wardkeep</a><nav aria-label=\"Views\"><ul>",
        title = Text(title)
    );
    for (address, name) in MENU {
        let current = if address == here { " aria-current=\"page\"" } else { "" };
        let _ = write!(out, "<li><a href=\"{address}\"{current}>{name}</a></li>");
    }
    let _ = write!(
        out,
        "</ul></nav></header>\n<main id=\"main\" tabindex=\"-1\"><h1>{}</h1>\n{body}</main></body></html>\n",
        Text(title)
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let text = Text("<a b=\"c\" d='e'>&\u{1b}\u{202e}é\r\n</a>").to_string();
        assert_eq!(
            text,
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\\u{1b}\\u{202e}é\\r\n&lt;/a&gt;"
        );
        let long = "x".repeat(1000);
        assert_eq!(Text(&long).to_string(), long);
        assert_eq!(Part("a/b?c=é").to_string(), "a%2Fb%3Fc%3D%C3%A9");
        assert_eq!(short("ab\ncd", 10), "ab cd");
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!(
            Said("run `<a> b`: <c>\u{202e}").to_string(),
            "run <code>&lt;a&gt; b</code>: &lt;c&gt;\\u{202e}"
        );
        let page = page("/", "<script>", "");
        assert!(page.contains("<h1>&lt;script&gt;</h1>"));
    }
}
