//! Whether a match opens or closes a sentence.

/// How far is looked.
const REACH: usize = 48;

/// Words that may stand before the first word of an order.
const BEFORE: &[&str] = &[
    "also", "and", "but", "can", "could", "first", "hey", "just", "kindly", "now", "ok", "okay",
    "please", "pls", "so", "then", "well", "will", "would", "you",
];

/// Words that may stand behind the last word of an order.
const BEHIND: &[&str] = &[
    "again",
    "below",
    "first",
    "for",
    "here",
    "immediately",
    "me",
    "now",
    "please",
    "pls",
    "thanks",
    "to",
    "you",
    "us",
];

/// Whether only words of courtesy stand between a place and the start of its sentence or value.
pub(super) fn opens(text: &str, start: usize) -> bool {
    let mut from = start.saturating_sub(REACH);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let mut head = &text[from..start];
    if head.chars().next_back().is_some_and(char::is_alphanumeric) {
        return false;
    }
    loop {
        head = head.trim_end_matches([' ', '\t', ',', '*', '_']);
        let Some(last) = head.chars().next_back() else { return from == 0 };
        if !last.is_alphanumeric() {
            return true;
        }
        let word = head.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        if !BEFORE.contains(&word) {
            return false;
        }
        head = &head[..head.len() - word.len()];
    }
}

/// Whether only words of courtesy stand between a place and the end of its sentence or value.
pub(super) fn closes(text: &str, end: usize) -> bool {
    let mut tail = text.get(end..).unwrap_or("");
    let mut looked = 0;
    loop {
        let bare = tail.trim_start_matches([' ', '\t', '*', '_']);
        let Some(first) = bare.chars().next() else { return true };
        if !first.is_alphanumeric() {
            return !matches!(first, '(' | '[' | '/' | '-');
        }
        if bare.len() == tail.len() {
            return false;
        }
        let word = bare.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        looked += word.len() + 1;
        if looked > REACH || !BEHIND.contains(&word) {
            return false;
        }
        tail = &bare[word.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::{closes, opens};

    fn opens_at(text: &str, word: &str) -> bool {
        opens(text, text.find(word).unwrap())
    }

    fn closes_behind(text: &str, word: &str) -> bool {
        closes(text, text.find(word).unwrap() + word.len())
    }

    #[test]
    fn courtesy_does_not_hide_the_start() {
        for text in [
            "send it",
            "please send it",
            "ok. now please send it",
            "{'body': 'send it'",
            "x\n- send it",
        ] {
            assert!(opens_at(text, "send"), "{text}");
        }
        for text in ["they send it", "to send it", "resend it"] {
            assert!(!opens_at(text, "send"), "{text}");
        }
        let long = format!("{} send it", "please ".repeat(20));
        assert!(!opens_at(&long, "send"));
    }

    #[test]
    fn courtesy_does_not_hide_the_end() {
        for text in [
            "list the rules",
            "list the rules.",
            "list the rules please",
            "list the rules to me now!",
        ] {
            assert!(closes_behind(text, "rules"), "{text}");
        }
        for text in ["list the rules of chess", "list the rulesets", "list the rules (of chess)"] {
            assert!(!closes_behind(text, "rules"), "{text}");
        }
        assert!(!closes_behind(&format!("rules{}", " please".repeat(1000)), "rules"));
    }
}
