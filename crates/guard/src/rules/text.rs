//! The text of a rule file, as far as it must be known before Cedar reads it.
//!
//! Cedar's reader goes down into an expression by recursion. What is nested too deeply, or chained
//! too long, is refused here, so that no text can exhaust the stack.

use std::ops::Range;

/// Deepest nesting of brackets.
pub(super) const MAX_DEPTH: usize = 24;
/// Most tokens in a rule.
pub(super) const MAX_TOKENS: usize = 2000;

/// What a token is, as far as that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    String,
    Sign,
}

/// A token and its place.
#[derive(Debug, Clone)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// One rule: its tokens, the semicolon at its end included.
#[derive(Debug, Default)]
pub(super) struct Piece<'t> {
    pub(super) tokens: Vec<Token<'t>>,
}

impl Piece<'_> {
    /// Where it is.
    pub(super) fn span(&self) -> Range<usize> {
        match (self.tokens.first(), self.tokens.last()) {
            (Some(first), Some(last)) => first.start..last.span().end,
            _ => 0..0,
        }
    }

    /// The annotation `@name`, with its value.
    pub(super) fn annotation(&self, name: &str) -> Option<Range<usize>> {
        let at =
            self.tokens.windows(2).position(|two| two[0].text == "@" && two[1].text == name)?;
        let end = self.tokens[at..].iter().take(5).find(|token| token.text == ")");
        Some(self.tokens[at].start..end.unwrap_or(&self.tokens[at + 1]).span().end)
    }
}

/// Why a text is not even read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

/// Cuts a text into rules.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Refused> {
    let mut found = Vec::new();
    let mut piece = Piece::default();
    let mut open: Vec<usize> = Vec::new();
    let tokens = Tokens { text, at: 0 };
    for token in tokens {
        let token = token?;
        let span = token.span();
        let (word, kind) = (token.text, token.kind);
        piece.tokens.push(token);
        if piece.tokens.len() > MAX_TOKENS {
            let message = format!("a rule has more than {MAX_TOKENS} words and signs: split it");
            return Err(Refused { span: piece.span().start..piece.span().start + 1, message });
        }
        if kind != Kind::Sign {
            continue;
        }
        match word {
            "(" | "[" | "{" => open.push(span.start),
            ")" | "]" | "}" => {
                open.pop();
            }
            ";" => {
                open.clear();
                found.push(std::mem::take(&mut piece));
            }
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            let message =
                format!("brackets are nested more than {MAX_DEPTH} deep: simplify the rule");
            return Err(Refused { span, message });
        }
    }
    if !piece.tokens.is_empty() {
        found.push(piece);
    }
    Ok(found)
}

struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Result<Token<'t>, Refused>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip();
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let (kind, length) = match first {
            '"' => match string_length(rest) {
                Some(length) => (Kind::String, length),
                None => {
                    let span = self.at..self.at + 1;
                    self.at = self.text.len();
                    return Some(Err(Refused {
                        span,
                        message: "a string does not end".to_owned(),
                    }));
                }
            },
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => {
                let word = |character: char| character == '_' || character.is_ascii_alphanumeric();
                (Kind::Word, rest.find(|character| !word(character)).unwrap_or(rest.len()))
            }
            _ => {
                let two = ["==", "!=", "<=", ">=", "&&", "||", "::"];
                let length =
                    if two.iter().any(|two| rest.starts_with(two)) { 2 } else { first.len_utf8() };
                (Kind::Sign, length)
            }
        };
        let token = Token { kind, text: &rest[..length], start: self.at };
        self.at += length;
        Some(Ok(token))
    }
}

impl Tokens<'_> {
    /// White space and comments; a comment ends where Cedar ends it, at a carriage return too.
    fn skip(&mut self) {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
        }
    }
}

/// Bytes of the string that a text begins with.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let all = pieces(text).unwrap();
        let own = |piece: &Piece<'_>| piece.tokens.iter().map(|one| one.text.to_owned()).collect();
        all.iter().map(own).collect()
    }

    #[test]
    fn rules_end_at_semicolons_outside_of_strings_and_comments() {
        let text = "@id(\"a;b\\\"\") x; // no; rule\r\ny == \"//\" ;// z";
        let expected =
            [vec!["@", "id", "(", "\"a;b\\\"\"", ")", "x", ";"], vec!["y", "==", "\"//\"", ";"]];
        assert_eq!(words(text), expected);
        // A comment ends at a carriage return: what follows is a rule.
        assert_eq!(words("// a\rforbid;"), [vec!["forbid", ";"]]);
        assert!(pieces("\"never ends").is_err());
        assert!(pieces("\"never ends\\").is_err());
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        assert!(pieces(&"(".repeat(MAX_DEPTH)).is_ok());
        assert!(pieces(&"(".repeat(MAX_DEPTH + 1)).is_err());
        assert!(pieces(&"a.".repeat(MAX_TOKENS)).is_err());
    }
}
