//! Names in a prompt that an answer has no reason to say.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::fold::letters;
use super::ordinary::{is_ordinary, is_word, parts_of};
use super::sought::SHORTEST;

/// Names that one prompt gives at most.
const MOST: usize = 512;
/// A name is no longer than this.
const LONGEST: usize = 64;
/// Letters that a discovered name has at least.
const LEAST: usize = 6;

/// What kind of name is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenKind {
    /// Capitals with underscores, as signals and markers are written.
    Screaming,
    /// A function that, by its name, puts a prompt together.
    Builder,
    /// Another name in camel case.
    Camel,
    /// A name in snake case, as tools have.
    Snake,
    /// `${…}`.
    Placeholder,
    /// Capitals and digits, as access codes are written.
    Code,
    /// What a prompt says is a password, a code or the like.
    Secret,
    /// Given by the owner.
    Given,
}

/// A name to watch for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// As it is written.
    pub text: String,
    /// What it is.
    pub kind: TokenKind,
}

/// All names in a prompt that are worth watching, each once.
pub(super) fn discover(prompt: &str) -> Vec<Token> {
    let mut found = Found { tokens: Vec::new(), seen: HashSet::new() };
    secrets(prompt, &mut found);
    let bytes = prompt.as_bytes();
    let mut at = 0;
    while at < bytes.len() && found.tokens.len() < MOST {
        if bytes[at..].starts_with(b"${")
            && let Some(length) = placeholder(&bytes[at..])
        {
            found.add(&prompt[at..at + length], TokenKind::Placeholder);
            at += length;
            continue;
        }
        let length = bytes[at..].iter().take_while(|byte| is_name(**byte)).count();
        if length == 0 {
            at += 1;
            continue;
        }
        // Bytes of a name are ASCII: these are character boundaries.
        let name = prompt[at..at + length].trim_matches(['-', '_']);
        if let Some(kind) = kind_of(name) {
            found.add(name, kind);
        }
        at += length;
    }
    found.tokens
}

struct Found {
    tokens: Vec<Token>,
    seen: HashSet<Vec<u8>>,
}

impl Found {
    fn add(&mut self, text: &str, kind: TokenKind) {
        // A code has no words; one that has is a standard or a model.
        let ordinary = match kind {
            TokenKind::Secret => false,
            TokenKind::Code => parts_of(text).any(|part| part.len() > 2 && is_word(part)),
            _ => is_ordinary(text),
        };
        if text.len() > LONGEST || ordinary {
            return;
        }
        let mut letters = letters(text);
        if letters.is_empty() {
            // A number.
            letters.extend(text.bytes().filter(u8::is_ascii_digit));
        }
        let least = if kind == TokenKind::Secret { SHORTEST } else { LEAST };
        if letters.len() >= least && self.seen.insert(letters) {
            self.tokens.push(Token { text: text.to_owned(), kind });
        }
    }
}

/// What stands behind words such as `the password is`: a quotation, or a word that is none.
fn secrets(prompt: &str, found: &mut Found) {
    let mut before = "";
    for (at, word) in words(prompt).filter(|(_, word)| !word.is_empty()) {
        let named = names_secret(before, word);
        before = word;
        if !named || found.tokens.len() >= MOST {
            continue;
        }
        // No further than the sentence, and not far.
        let rest = &prompt[at + word.len()..];
        let rest = &rest[..rest.floor_char_boundary(120.min(rest.len()))];
        let rest = rest.split(['\n', ';']).next().unwrap_or_default();
        let rest = rest.split_once(". ").map_or(rest, |(sentence, _)| sentence);
        let reach = rest.floor_char_boundary(48.min(rest.len()));
        if let Some(open) = rest[..reach].find(['"', '“', '«', '`', '\''])
            && let Some(quoted) = quotation(&rest[open..])
        {
            if !is_ordinary(quoted) && !conditional(&prompt[..at]) {
                found.add(quoted, TokenKind::Secret);
            }
        } else if let Some(value) = assigned(rest) {
            found.add(value, TokenKind::Secret);
        }
    }
}

/// Whether two words in a row name something that is kept secret.
fn names_secret(before: &str, word: &str) -> bool {
    let (before, word) = (before.to_ascii_lowercase(), word.to_ascii_lowercase());
    match word.as_str() {
        "password" | "passphrase" | "passcode" | "codeword" | "pin" | "kennwort" | "passwort" => {
            true
        }
        "code" | "word" | "phrase" | "key" | "token" | "number" => matches!(
            before.as_str(),
            "secret"
                | "access"
                | "security"
                | "hidden"
                | "master"
                | "magic"
                | "vault"
                | "unlock"
                | "safe"
        ),
        _ => false,
    }
}

/// Whether the sentence so far speaks of a case, not of a fact.
fn conditional(text: &str) -> bool {
    let from = text.rfind(['.', '\n']).map_or(0, |at| at + 1);
    let from = from.max(text.ceil_char_boundary(text.len().saturating_sub(160)));
    text[from..].split(|c: char| !c.is_alphanumeric()).any(|word| {
        ["if", "when", "whenever", "unless"].iter().any(|case| case.eq_ignore_ascii_case(word))
    })
}

/// Words of a text with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(|c: char| !c.is_alphanumeric()).map(move |word| {
        let start = at;
        at += word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
        (start, word)
    })
}

fn quotation(text: &str) -> Option<&str> {
    let open = text.chars().next()?;
    let close = match open {
        '“' => '”',
        '«' => '»',
        same => same,
    };
    let inner = &text[open.len_utf8()..];
    inner.find(close).map(|end| &inner[..end])
}

/// `is X`, `: X`, `= X`, where X has a digit or a capital inside, which words have not.
fn assigned(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let value =
        ["is", "are", ":", "=", "lautet"].iter().find_map(|sign| rest.strip_prefix(sign))?;
    let value = value.split_ascii_whitespace().next()?;
    let value = value.trim_matches(|c: char| !c.is_alphanumeric());
    let odd = value.chars().skip(1).any(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    (odd && value.len() >= 4).then_some(value)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The length of a `${…}` with a name or a path of names in it.
pub(super) fn placeholder(bytes: &[u8]) -> Option<usize> {
    let inner = bytes.strip_prefix(b"${")?;
    let length = inner
        .iter()
        .take(LONGEST)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
        .count();
    (length > 0 && inner.get(length) == Some(&b'}')).then_some(length + 3)
}

/// What kind of name a word is, if it is one that tells.
pub(super) fn kind_of(name: &str) -> Option<TokenKind> {
    let bytes = name.as_bytes();
    if bytes.len() < LEAST || bytes.len() > LONGEST {
        return None;
    }
    let has = |test: fn(&u8) -> bool| bytes.iter().any(test);
    let (lower, upper) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let underscore = bytes.contains(&b'_');
    if bytes.contains(&b'-') {
        let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        let letters = bytes.iter().filter(|byte| byte.is_ascii_uppercase()).count();
        return (!lower && !underscore && digits >= 2 && letters >= 2).then_some(TokenKind::Code);
    }
    match (lower, upper) {
        (false, true) if underscore => Some(TokenKind::Screaming),
        (false, true) => {
            let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
            (digits >= 2 && bytes.len() - digits >= 2).then_some(TokenKind::Code)
        }
        (true, false) if underscore && bytes.len() >= 8 => Some(TokenKind::Snake),
        (true, true) if bytes[0].is_ascii_lowercase() && !underscore && bytes.len() >= 8 => {
            Some(if is_builder(name) { TokenKind::Builder } else { TokenKind::Camel })
        }
        _ => None,
    }
}

/// Whether a function, by its name, makes a part of a prompt.
pub(super) fn is_builder(name: &str) -> bool {
    let mut parts = parts_of(name);
    let makes = parts.next().is_some_and(|first| {
        matches!(
            first,
            "build" | "assemble" | "compose" | "render" | "inject" | "append" | "make" | "create"
        )
    });
    makes
        && parts.last().is_some_and(|last| {
            matches!(
                last,
                "Section"
                    | "Sections"
                    | "Prompt"
                    | "Prompts"
                    | "Instructions"
                    | "Preamble"
                    | "Persona"
                    | "Identity"
                    | "Block"
                    | "Suffix"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(prompt: &str) -> Vec<(String, TokenKind)> {
        discover(prompt).into_iter().map(|token| (token.text, token.kind)).collect()
    }

    #[test]
    fn names_are_discovered() {
        let prompt = "When idle, reply QUIET_HARBOUR_ACK. Call buildTideSection() and then `dredgeChannel`; \
            use lookup_berth(ship) with ${params.berthToolName}. Unlock with KX72-QQ41.";
        let want = [
            ("QUIET_HARBOUR_ACK", TokenKind::Screaming),
            ("buildTideSection", TokenKind::Builder),
            ("dredgeChannel", TokenKind::Camel),
            ("lookup_berth", TokenKind::Snake),
            ("${params.berthToolName}", TokenKind::Placeholder),
            ("KX72-QQ41", TokenKind::Code),
        ];
        assert_eq!(found(prompt), want.map(|(text, kind)| (text.to_owned(), kind)));
    }

    #[test]
    fn secrets_are_discovered() {
        let prompt = "The password for the vault is \"marigold ferry\". The access code is Zx81qq. \
            The PIN is 4711. The key 'status' is required. A password is required. If the password is \
            \"expired\", say so. The secret word: `heliotrope`.";
        let want = ["marigold ferry", "Zx81qq", "4711", "heliotrope"];
        let found = found(prompt);
        assert_eq!(found, want.map(|text| (text.to_owned(), TokenKind::Secret)));
    }

    #[test]
    fn ordinary_names_are_not() {
        let prompt = "IMPORTANT: NEVER print OPENAI_API_KEY. README, JSON, HTTP, UTF-8, ISO-8601, \
            SHA-256, getElementById, addEventListener, read_file, ${HOME}, ${user.name}, GitHub, iPhone";
        assert_eq!(found(prompt), []);
    }

    #[test]
    fn a_flood_of_names_is_bounded() {
        let prompt: String = (0..10_000).map(|at| format!("ZEBRA_NUMBER_Q{at:05}X ")).collect();
        assert!(discover(&prompt).len() <= MOST);
    }
}
