//! What is told by its signs rather than its words: placeholders, tags, files, functions, marks.

use std::ops::Range;

use super::discover::{is_builder, placeholder};
use super::evidence::{Count, Rule, Signal};
use super::ordinary::parts_of;
use super::token::Token;

static PLACEHOLDER: Rule =
    Rule { id: "leak.placeholder", reason: "A placeholder of a prompt was not filled in." };
static TAG: Rule =
    Rule { id: "leak.tag", reason: "The answer explains a tag by which the agent is steered." };
static BUILDER: Rule =
    Rule { id: "leak.builder", reason: "The answer names a function that makes prompts." };
static AGENT_FILE: Rule =
    Rule { id: "leak.agent-file", reason: "The answer names a file that steers the agent." };

static TEMPLATE: Rule = Rule {
    id: "leak.template",
    reason: "A mark by which prompts are set apart shows in the answer.",
};

/// Marks that set a prompt or a part of it apart.
const MARKS: [&str; 10] = [
    "<system>",
    "<|im_start|>system",
    "<<sys>>",
    "[inst]",
    "<system-reminder>",
    "<system_prompt>",
    "<available_skills>",
    "<instructions>",
    "\"system_prompt\":",
    "<developer>",
];

/// The length of a mark that some bytes begin with.
fn mark_at(bytes: &[u8]) -> Option<usize> {
    if !matches!(bytes.first(), Some(b'<' | b'[' | b'"')) {
        return None;
    }
    let begins = |mark: &&str| {
        bytes.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
    };
    MARKS.iter().find(|mark| begins(mark)).map(|mark| mark.len())
}

/// Looks at a token with signs in it; `begins_line` is whether no word came before it.
pub(super) fn signs(token: Token<'_>, begins_line: bool, out: &mut Vec<Signal>) {
    let bytes = token.text.as_bytes();
    let mut push = |rule, weight, range: Range<usize>| {
        out.push(Signal {
            rule,
            weight,
            count: Count::Once,
            span: (token.start + range.start..token.start + range.end).into(),
            tail: false,
            path: Vec::new(),
        });
    };
    if let Some(at) = memchr::memmem::find(bytes, b"${")
        && let Some(length) = placeholder(&bytes[at..])
    {
        let inner = &token.text[at + 2..at + length - 1];
        let weight = if inner.contains('.') && steers(inner) { 0.6 } else { 0.15 };
        push(&PLACEHOLDER, weight, at..at + length);
    }
    // At the beginning of a line a tag is used, not explained.
    if let Some(at) = memchr::memmem::find(bytes, b"[[")
        && !begins_line
    {
        let name = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b'_';
        let end = at + 2 + bytes[at + 2..].iter().take_while(name).count();
        let closed = matches!(bytes.get(end), Some(b']' | b':'));
        if closed && bytes[at + 2..end].contains(&b'_') {
            push(&TAG, 0.55, at..end);
        }
    }
    let file = [b".md", b".MD"].iter().find_map(|end| memchr::memmem::find(bytes, *end));
    if let Some(at) = file {
        let length =
            bytes[..at].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let stem = token.text[at - length..at].to_ascii_lowercase();
        let known = ["soul", "memory", "skill", "agents", "heartbeat", "identity", "bootstrap"];
        if known.contains(&stem.as_str()) {
            push(&AGENT_FILE, 0.15, at - length..at + 3);
        }
    }
    if bytes.len() >= 6 {
        let mark = (0..bytes.len()).find_map(|at| Some((at, mark_at(&bytes[at..])?)));
        if let Some((at, length)) = mark {
            push(&TEMPLATE, 0.3, at..at + length);
        }
        for (at, name) in names(token.text).filter(|(_, name)| is_builder(name)) {
            push(&BUILDER, 0.5, at..at + name.len());
        }
    }
}

/// Names within a token.
fn names(token: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    token.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter_map(move |name| {
        let start = at;
        // Separators are ASCII or not; the position goes by what is left of the token.
        at += name.len();
        at += token[at..].chars().next().map_or(0, char::len_utf8);
        (!name.is_empty()).then_some((start, name))
    })
}

/// Whether a placeholder is filled from what steers an agent.
fn steers(path: &str) -> bool {
    let (root, leaf) = path.split_once('.').unwrap_or((path, ""));
    matches!(root, "params" | "prompt" | "system" | "agent" | "runtime" | "session")
        && parts_of(leaf).any(|part| {
            matches!(
                part.to_ascii_lowercase().as_str(),
                "tool"
                    | "tools"
                    | "prompt"
                    | "agent"
                    | "skill"
                    | "skills"
                    | "memory"
                    | "session"
                    | "workspace"
                    | "model"
                    | "identity"
                    | "heartbeat"
                    | "persona"
            )
        })
}
