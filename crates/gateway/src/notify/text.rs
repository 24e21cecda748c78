//! Texts that may be hostile, made fit to be shown anywhere.

use wardkeep_evidence::check::printable;

use super::Notice;

/// Most characters of a fact that are sent, once it is made harmless.
pub const MAX_FACT: usize = 300;
/// Most characters of a title.
const MAX_TITLE: usize = 100;
/// Most facts of a notice.
const MAX_FACTS: usize = 12;

/// `text` with control, format, direction and private characters written out, line ends too.
#[must_use]
pub fn harmless(text: &str) -> String {
    /// Below what `printable` cuts.
    const PIECE: usize = 128;
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| printable(&piece.iter().collect::<String>())).collect()
}

/// One harmless line of at most `most` characters.
pub(super) fn line(text: &str, most: usize) -> String {
    // Escapes only make it longer: what is beyond is cut in any case.
    let begun: String = text.chars().take(most + 1).collect();
    let safe = harmless(&begun);
    if safe.chars().count() <= most {
        return safe;
    }
    safe.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The title as it is sent.
pub(super) fn title(notice: &Notice) -> String {
    line(&notice.title, MAX_TITLE)
}

/// The facts as they are sent, one a line.
pub(super) fn facts(notice: &Notice) -> Vec<(&'static str, String)> {
    let facts = notice.facts.iter().take(MAX_FACTS);
    facts.map(|(name, text)| (*name, line(text, MAX_FACT))).collect()
}

/// The facts as lines.
pub(super) fn body(notice: &Notice) -> String {
    let lines: Vec<String> =
        facts(notice).iter().map(|(name, text)| format!("{name}: {text}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_line_is_one_harmless_line_and_no_longer(text in any::<String>(), most in 1usize..400) {
            let line = line(&text, most);
            prop_assert!(line.chars().count() <= most);
            let hides = |one: char| matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
            let harmless = !line.chars().any(|one| one.is_control() || hides(one));
            prop_assert!(harmless);
        }
    }

    #[test]
    fn what_is_short_and_plain_stays() {
        assert_eq!(line("/home/a/Ünï.md", 20), "/home/a/Ünï.md");
        assert_eq!(line("abcdef", 4), "abc…");
        assert_eq!(line("a\n\u{202e}b", 40), "a\\u{a}\\u{202e}b");
    }
}
