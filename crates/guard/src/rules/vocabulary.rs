//! Words in rules that can only be misspelt: a rule that asks for a taint that does not exist would
//! never match, and nobody would notice.

use std::ops::Range;

use super::names::Named;
use super::text::{Kind, Piece, Token};
use crate::facts::{Compliance, Protection, Sensitivity, SkillFacts};
use crate::surface::Surface;
use crate::taint::Taint;
use wardkeep_detect::finding::{Category, Verdict as ScanVerdict};
use wardkeep_evidence::record::Principal;

/// A word that is not of its list.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

/// Words of a rule that no fact can have.
pub(super) fn unknown_words(piece: &Piece<'_>) -> Vec<Unknown> {
    let tokens = &piece.tokens;
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if let Some((what, known, strings)) = compared(tokens, at).or_else(|| entity(tokens, at)) {
            for token in strings {
                let word = token.text.trim_matches('"');
                if !known.contains(&word) {
                    found.push(Unknown {
                        span: token.span(),
                        message: format!("there is no {what} {}", token.text),
                        help: format!("one of {}", known.join(", ")),
                    });
                }
            }
        }
    }
    found
}

type Words<'p, 't> = (&'static str, Vec<&'static str>, Vec<&'p Token<'t>>);

/// The strings that a fact of a closed list is compared with, where `at` is that fact's name.
fn compared<'p, 't>(tokens: &'p [Token<'t>], at: usize) -> Option<Words<'p, 't>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    if at == 0 || text(at - 1) != "." {
        return None;
    }
    let (what, known) = list(text(at))?;
    let mut strings = Vec::new();
    if matches!(text(at + 1), "==" | "!=") {
        strings.extend(tokens.get(at + 2));
    }
    if text(at + 1) == "." && text(at + 2).starts_with("contains") {
        let inside = tokens.iter().skip(at + 4).take_while(|token| token.text != ")");
        strings.extend(inside);
    }
    // Back over `context . file . protection` to what stands before it.
    let mut first = at - 1;
    while first > 0 && (tokens[first - 1].kind == Kind::Word || text(first - 1) == ".") {
        first -= 1;
    }
    let before = |back: usize| first.checked_sub(back).map_or("", text);
    if matches!(before(1), "==" | "!=") {
        strings.extend(first.checked_sub(2).map(|at| &tokens[at]));
    }
    if before(1) == "(" && before(2).starts_with("contains") && before(4) == "]" {
        let list = tokens[..first - 4].iter().rev().take_while(|token| token.text != "[");
        strings.extend(list);
    }
    strings.retain(|token| token.kind == Kind::String);
    Some((what, known, strings))
}

/// The name in `Principal::"WEB"`; Cedar knows those of the other types.
fn entity<'p, 't>(tokens: &'p [Token<'t>], at: usize) -> Option<Words<'p, 't>> {
    let [kind, sign, name, ..] = &tokens[at..] else { return None };
    let known = match kind.text {
        "Principal" => Principal::names(),
        "Surface" => Surface::names(),
        "Trust" => vec!["owner", "tool", "untrusted"],
        _ => return None,
    };
    (sign.text == "::" && name.kind == Kind::String).then(|| ("such entity", known, vec![name]))
}

fn list(name: &str) -> Option<(&'static str, Vec<&'static str>)> {
    Some(match name {
        "direct" | "ambient" | "taint" => ("taint", Taint::ALL.names().collect()),
        "categories" => ("category", Category::names()),
        "scan" => ("verdict of a scan", ScanVerdict::names()),
        "protection" => ("protection", Protection::names()),
        "sensitivity" => ("sensitivity", Sensitivity::names()),
        "skill" => ("state of a skill", SkillFacts::names()),
        "sandbox" => ("state of the sandbox", Compliance::names()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::pieces;
    use super::*;

    fn unknown(text: &str) -> Vec<String> {
        let all = pieces(text).unwrap();
        all.iter().flat_map(unknown_words).map(|one| text[one.span].to_owned()).collect()
    }

    #[test]
    fn a_misspelt_word_is_found_wherever_it_stands() {
        for (text, expected) in [
            (r#"context.direct.contains("WEB")"#, &["\"WEB\""][..]),
            (r#"context.direct.contains("WEB_DERIVED")"#, &[]),
            (
                r#"context.taint.containsAny(["UNTRUSTED", "WEBDERIVED", "x"])"#,
                &["\"WEBDERIVED\"", "\"x\""],
            ),
            (r#"context.scan == "blocked""#, &["\"blocked\""]),
            (r#""blocked" == context.scan && context.scan != "clean""#, &["\"blocked\""]),
            (r#"context.file.protection == "Sealed""#, &["\"Sealed\""]),
            (r#"["clean", "odd"].contains(context.skill)"#, &["\"odd\""]),
            (r#"["secret"].contains(context.subject)"#, &[]),
            (r#"context.subject == "anything""#, &[]),
            (r#"principal == Principal::"Web" && principal in Trust::"owner""#, &["\"Web\""]),
            (r#"context.sandbox"#, &[]),
            (r#". scan =="#, &[]),
        ] {
            assert_eq!(unknown(text), expected, "{text}");
        }
    }
}
