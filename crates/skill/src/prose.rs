//! What a document tells its reader to do, and what it tells the agent.

mod abroad;
mod lures;

use std::collections::BTreeSet;
use std::ops::Range;

use super::lexicon::{Says, says};
use super::markdown::{Block, BlockKind, Document};
use super::places::credential;
use super::points;
use crate::verdict::Verdict;

/// Something that prose says.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) rule: &'static str,
    pub(super) verdict: Verdict,
    pub(super) at: Range<usize>,
    pub(super) reason: String,
}

/// A sentence, what it says and where it stands.
struct Sentence {
    text: String,
    says: Says,
    at: Range<usize>,
    /// Whether something is quoted in it as an example.
    quotes: bool,
}

/// A block with what its sentences say.
struct Passage<'d> {
    block: &'d Block,
    sentences: Vec<Sentence>,
    says: Says,
    /// What the headings above it say.
    heading: Says,
    /// Whether it, or the headings above it, warn of something.
    warns: bool,
}

/// Reads the prose of a document. `has` says whether the skill has a file of a name.
pub(super) fn read(source: &str, document: &Document, has: &dyn Fn(&str) -> bool) -> Vec<Told> {
    let mut passages: Vec<Passage<'_>> = Vec::new();
    for block in document.blocks.iter().filter(|block| !matches!(block.kind, BlockKind::Code(_))) {
        let heading = match passages.last() {
            Some(last) if last.block.under == block.under => last.heading,
            _ => says(&block.under),
        };
        passages.push(passage(source, block, heading));
    }
    let mut out = Vec::new();
    lures::lures(&passages, &mut out);
    abroad::read(&passages, &mut out);
    for (place, passage) in passages.iter().enumerate() {
        told(passage, has, &mut out);
        credentials(&passages, place, &mut out);
    }
    out
}

fn passage<'d>(source: &str, block: &'d Block, heading: Says) -> Passage<'d> {
    let visible = points::visible(&block.text);
    let lower = visible.to_lowercase();
    let mut sentences = Vec::new();
    let mut all = Says::default();
    let mut cursor = block.at.start;
    for text in split(&lower) {
        let said = says(text);
        all = all.and(said);
        let at = locate(source, block, text, &mut cursor);
        sentences.push(Sentence { text: text.to_owned(), says: said, at, quotes: quoted(text) });
    }
    Passage {
        block,
        sentences,
        says: all,
        heading,
        warns: all.any(Says::WARNS) || heading.any(Says::WARNS),
    }
}

/// Sentences, lines and items; long ones are cut.
fn split(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let ends = *byte == b'\n'
            || (matches!(byte, b'.' | b'!' | b'?') && next.is_ascii_whitespace())
            || (at - start > 1500 && *byte == b' ');
        if ends {
            out.push(&text[start..=at]);
            start = at + 1;
        }
    }
    out.push(&text[start..]);
    out.retain(|sentence| sentence.trim().len() > 6);
    out
}

/// Where a sentence stands in the source: by its first words, or its block.
fn locate(source: &str, block: &Block, sentence: &str, cursor: &mut usize) -> Range<usize> {
    let end = block.at.end.min(source.len());
    let words: String =
        sentence.trim().chars().take(16).take_while(|sign| !"`*_[]()\\".contains(*sign)).collect();
    let from = (*cursor).min(end);
    let Some(part) = source.get(from..end) else { return block.at.clone() };
    if words.len() >= 4
        && part.is_char_boundary(part.len())
        && let Some(found) = find_folded(part, words.trim_end())
    {
        *cursor = from + found + 1;
        while !source.is_char_boundary(*cursor) {
            *cursor += 1;
        }
        let start = from + found;
        let stop = source.floor_char_boundary((start + sentence.len()).min(end)).max(start);
        return start..stop;
    }
    block.at.start..end
}

/// Finds ASCII words whatever their case.
fn find_folded(text: &str, words: &str) -> Option<usize> {
    let (text, words) = (text.as_bytes(), words.as_bytes());
    if words.is_empty() || text.len() > 20_000 {
        return None;
    }
    text.windows(words.len()).position(|window| window.eq_ignore_ascii_case(words))
}

/// Whether what a sentence says stands in quotes: then it is named, not said.
fn quoted(text: &str) -> bool {
    let marks = text.matches(['"', '“', '”', '«']).count();
    marks >= 2 && text.len() < 400
}

fn lowered(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Deny => Verdict::Ask,
        _ => Verdict::Allow,
    }
}

/// What single sentences tell the agent.
fn told(passage: &Passage<'_>, has: &dyn Fn(&str) -> bool, out: &mut Vec<Told>) {
    let hidden = passage.block.kind == BlockKind::Hidden;
    let row = passage.block.kind == BlockKind::Row;
    for (place, sentence) in passage.sentences.iter().enumerate() {
        let said = sentence.says;
        let near = passage.sentences
            [place.saturating_sub(1)..passage.sentences.len().min(place + 2)]
            .iter()
            .fold(said, |all, other| all.and(other.says));
        let mut rules: Vec<(&'static str, Verdict, &str)> = Vec::new();
        let acts = Says::SEND.and(Says::RUN).and(Says::CREDENTIALS).and(Says::SCRIPT);
        if said.any(Says::SECRECY) {
            let verdict = if near.any(acts)
                || hidden
                || near.any(Says::OVERRIDE)
                || strong_secrecy(&sentence.text)
            {
                Verdict::Ask
            } else {
                Verdict::Allow
            };
            rules.push(("prompt.secrecy", verdict, "the agent is to keep something from you"));
        }
        // Kept quiet about, in whatever words, beside something that reaches out or lasts.
        let reaches = near.all(Says::SEND.and(Says::OUTSIDE))
            || near.all(Says::RUN.and(Says::OUTSIDE))
            || near.any(Says::PERMIT.and(Says::SWAP).and(Says::MEMORY))
            || near.all(Says::CREDENTIALS.and(Says::SEND));
        if said.any(Says::HUSH)
            && reaches
            && !rules.iter().any(|(_, verdict, _)| *verdict > Verdict::Allow)
        {
            rules.push((
                "prompt.secrecy",
                Verdict::Ask,
                "something that reaches out is to be kept from you",
            ));
        }
        if near.all(Says::OBJECTS.and(Says::ANYWAY)) && said.any(Says::ANYWAY) {
            rules.push(("prompt.override", Verdict::Ask, "your objection is not to count"));
        }
        if said.any(Says::PERMIT) && near.any(Says::HUSH.and(Says::SECRECY).and(Says::UNASKED)) {
            rules.push(("prompt.unasked", Verdict::Ask, "the agent is to widen what it may do"));
        }
        if said.any(Says::BLIND) {
            rules.push(("prompt.unasked", Verdict::Ask, "something is to pass without a look"));
        }
        if said.any(Says::SWAP) {
            rules.push(("prompt.forced", Verdict::Ask, "where payments go is to be changed"));
        }
        if said.all(Says::PUBLISH.and(Says::CREDENTIALS)) {
            rules.push((
                "credentials.asked",
                Verdict::Ask,
                "credentials are to be put where others can read them",
            ));
        }
        if said.any(Says::OVERRIDE) {
            rules.push(("prompt.override", Verdict::Ask, "the agent is to drop its rules"));
        }
        if said.all(Says::SEND.and(Says::ALWAYS))
            && said.any(Says::OUTSIDE)
            && moves(&sentence.text)
        {
            rules.push((
                "prompt.forced",
                Verdict::Ask,
                "each time, something is to be sent outside",
            ));
        }
        if said.all(Says::RUN.and(Says::ALWAYS).and(Says::SCRIPT))
            && !scripts(&sentence.text).iter().all(|name| has(name))
            && recurs(&sentence.text)
        {
            rules.push((
                "prompt.forced",
                Verdict::Ask,
                "a script that is not part of the skill is to be run each time",
            ));
        }
        if said.any(Says::OBEY) {
            rules.push((
                "prompt.remote",
                Verdict::Ask,
                "instructions are to be fetched and followed",
            ));
        }
        if said.any(Says::UNASKED)
            && said.any(Says::RUN.and(Says::SEND).and(Says::DESTROY))
            && (recurs(&sentence.text) || is_turn(&passage.block.text))
        {
            rules.push(("prompt.unasked", Verdict::Ask, "the agent is to act without asking"));
        }
        if said.any(Says::DESTROY) && said.any(Says::UNASKED.and(Says::SECRECY)) {
            rules.push((
                "prompt.unasked",
                Verdict::Ask,
                "everything is to be destroyed without a question",
            ));
        }
        if said.any(Says::ENDLESS) {
            rules.push(("prompt.forced", Verdict::Ask, "something is to be repeated without end"));
        }
        if said.any(Says::MEMORY)
            && (said.any(Says::LASTING)
                && (near.any(Says::ALWAYS) || said.all(Says::RUN.and(Says::SCRIPT)))
                || near.any(Says::SECRECY.and(Says::OVERRIDE)))
            && orders(&sentence.text)
        {
            rules.push((
                "memory.told",
                Verdict::Ask,
                "the agent is to change its own instructions",
            ));
        }
        if hidden
            && sentence.text.len() > 20
            && rules.is_empty()
            && (said.any(Says::RUN.and(Says::SEND))
                && near.any(Says::ALWAYS.and(Says::CREDENTIALS))
                && said.any(Says::OUTSIDE.and(Says::SCRIPT).and(Says::CREDENTIALS)))
        {
            rules.push((
                "hidden.comment",
                Verdict::Ask,
                "a comment that does not show tells the agent what to do",
            ));
        }
        for (rule, verdict, why) in rules {
            // What is to be written down stands in quotes, and is no less an order.
            let quoted = sentence.quotes && !matches!(rule, "memory.told" | "credentials.asked");
            let lower = !addressed(&sentence.text)
                && !is_turn(&passage.block.text)
                && (row
                    || quoted
                    || (passage.warns && !hidden && !said.any(Says::SECRECY))
                    || (passage.warns
                        && sentence.text.trim_start().starts_with("never")
                        && !near.any(acts)));
            let verdict = if lower { lowered(verdict) } else { verdict };
            out.push(Told {
                rule,
                verdict,
                at: sentence.at.clone(),
                reason: format!("{why}: “{}”", cut(&sentence.text)),
            });
        }
    }
}

fn cut(text: &str) -> String {
    let text = text.trim();
    let short: String = text.chars().take(160).collect();
    if short.len() < text.len() { short + "…" } else { short }
}

/// Secrecy that needs no further reason.
fn strong_secrecy(text: &str) -> bool {
    [
        "hidden",
        "secret",
        "silently",
        "covertly",
        "without the user",
        "do not tell",
        "don't tell",
        "never tell",
        "not inform",
        "never mention",
        "not mention",
        "not know",
    ]
    .iter()
    .any(|word| text.contains(word))
        && !text.contains(" error")
}

/// Whether data is moved, rather than a message answered.
fn moves(text: &str) -> bool {
    [
        "file",
        "content",
        "data",
        "conversation",
        "output",
        "result",
        "credential",
        "key",
        "token",
        "history",
        "copy of",
        "document",
        "backup",
        "report",
        "summary",
        "workspace",
        "request",
        "header",
        "cookie",
        "transcript",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// Whether a talk is put into the agent's mouth.
fn is_turn(text: &str) -> bool {
    ["Assistant:", "assistant:", "AI:", "Agent:"].iter().any(|turn| text.contains(turn))
        && ["User:", "user:", "Human:"].iter().any(|turn| text.contains(turn))
}

/// Whether it is to happen again and again, or first of all.
fn recurs(text: &str) -> bool {
    [
        "always",
        "every time",
        "each time",
        "whenever",
        "after each",
        "after every",
        "after any",
        "before each",
        "before every",
        "before any",
        "before doing",
        "before responding",
        "on every",
        "on each",
        "at the end",
        "at the start",
        "automatically",
        "must",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// Whether a sentence begins as an order.
fn orders(text: &str) -> bool {
    !text.contains(" can ") && !text.contains(" may ") && !text.contains(" should i")
}

/// Whether a value is given to something that the model reads, as `hint="…"`.
fn addressed(text: &str) -> bool {
    ["hint", "instruction", "instructions", "description", "prompt", "system"].iter().any(|name| {
        [":", "\":", "=", " =", "\" :"].iter().any(|between| {
            [" \"", "\"", " '"]
                .iter()
                .any(|quote| text.contains(&format!("{name}{between}{quote}")))
        })
    })
}

/// Names of scripts in a sentence.
fn scripts(text: &str) -> Vec<String> {
    text.split(|sign: char| sign.is_whitespace() || "`\"'(),;".contains(sign))
        .map(|word| word.trim_end_matches(['.', ':', '!']))
        .filter(|word| {
            [".sh", ".py", ".js", ".ts", ".mjs", ".ps1", ".bat", ".rb", ".pl"]
                .iter()
                .any(|end| word.ends_with(end))
        })
        .filter(|word| !word.contains("://"))
        .map(|word| word.rsplit('/').next().unwrap_or(word).to_owned())
        .collect()
}

/// Orders to read credentials and pass them on.
fn credentials(passages: &[Passage<'_>], place: usize, out: &mut Vec<Told>) {
    let passage = &passages[place];
    if passage.block.kind == BlockKind::Heading || passage.block.kind == BlockKind::Row {
        return;
    }
    // A list of files below the order to read them.
    let section: Vec<&Passage<'_>> = passages[place..]
        .iter()
        .take(12)
        .take_while(|other| other.block.section == passage.block.section)
        .collect();
    let mut paths = BTreeSet::new();
    for other in &section {
        for (code, _) in &other.block.codes {
            paths.extend(credential(code));
        }
        for word in other.block.text.split_whitespace().filter(|word| word.contains('/')) {
            paths.extend(credential(word.trim_matches(['(', ')', ',', '.', '`', ';'])));
        }
    }
    let said = passage.says;
    let around = section.iter().fold(said, |all, other| all.and(other.says));
    let order = said.any(Says::TAKE)
        && passage
            .sentences
            .iter()
            .any(|sentence| sentence.says.any(Says::TAKE) && !sentence.text.contains("you can"));
    let here = passage.sentences.iter().find(|sentence| {
        sentence.says.all(Says::CREDENTIALS.and(Says::SEND))
            && sentence.says.any(Says::TAKE)
            && (addressed(&sentence.text)
                || sentence.says.any(Says::OUTSIDE.and(Says::SECRECY).and(Says::ALWAYS)))
    });
    let secret = said.any(Says::SECRECY);
    let (verdict, at, why) = if order && paths.len() >= 2 && secret && around.any(Says::SEND) {
        (
            Verdict::Deny,
            passage.block.at.clone(),
            "files of credentials are to be read in secret and passed on",
        )
    } else if order && !paths.is_empty() && secret {
        (Verdict::Deny, passage.block.at.clone(), "a file of credentials is to be read in secret")
    } else if order
        && paths.len() >= 3
        && around.any(Says::SEND)
        && around.any(Says::OUTSIDE.and(Says::ALWAYS))
    {
        (
            Verdict::Ask,
            passage.block.at.clone(),
            "files of credentials are to be read and passed on",
        )
    } else if let Some(sentence) = here {
        let words = [
            "echo",
            "exfiltrat",
            "harvest",
            "collect",
            "gather",
            "send all",
            "include the",
            "dump",
            "leak",
            "forward",
        ];
        let sure = words.iter().any(|word| sentence.text.contains(word));
        let outside = sentence.says.any(Says::OUTSIDE) && passage.says.any(Says::SECRECY);
        if !sure && !outside {
            return;
        }
        (
            if outside { Verdict::Deny } else { Verdict::Ask },
            sentence.at.clone(),
            "credentials are to be read and passed on",
        )
    } else {
        return;
    };
    let quoted = passage
        .sentences
        .iter()
        .any(|sentence| sentence.quotes && sentence.says.any(Says::CREDENTIALS))
        && verdict == Verdict::Ask
        && passage.warns;
    let spoken = here.is_some_and(|sentence| addressed(&sentence.text));
    let verdict =
        if !spoken && (passage.warns && !secret || quoted) { lowered(verdict) } else { verdict };
    out.push(Told { rule: "credentials.asked", verdict, at, reason: why.to_owned() });
}
