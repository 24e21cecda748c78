//! The shell around a hook. Most agents go on when a hook is killed, is not there, or says something
//! that they cannot read; what a shell says they obey. So a shell runs the hook, lets through the two
//! exit codes that only a judged answer has, and takes everything else for that agent's no.

use std::path::Path;

use super::Surroundings;
use crate::agent::Agent;
use crate::output::{ANSWERED, BLOCK, DENIED};

const SHELL: &str = "/bin/sh";
const NO_ANSWER: &str = "it gave no answer. Tell the user to run wardkeep doctor.";

/// The words of a hook's own command.
fn hook(agent: Agent, event: &str, around: &Surroundings) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = vec![text(&around.program)];
    // On a whole machine each user has a state of their own, which the hook finds by itself.
    if around.machine.is_none() {
        words.extend(["--state-dir".to_owned(), text(&around.state)]);
    }
    let rest = ["hook", agent.name(), event, "--guarded"];
    words.extend(rest.map(str::to_owned));
    words
}

/// What a shell does with the command in its arguments. It holds no single quote.
fn script(agent: Agent, event: &str) -> String {
    let no = agent.refuse(Some(event), NO_ANSWER);
    // Qwen Code goes on by itself after a while, whatever its entry says: the shell is sooner.
    let limit = match agent {
        Agent::QwenCode => {
            "if command -v timeout >/dev/null; then set -- timeout -s KILL 20 \"$@\"; fi; "
        }
        _ => "",
    };
    let mut out = format!(
        "{limit}o=$(\"$@\"); case $? in {ANSWERED}) printf %s \"$o\" && exit 0;; \
         {DENIED}) printf %s \"$o\"; exit {BLOCK};; esac; "
    );
    for (bytes, stream) in [(&no.stdout, ""), (&no.stderr, " >&2")] {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        if !text.is_empty() {
            out.push_str(&format!("echo {}{stream}; ", in_double_quotes(text)));
        }
    }
    out.push_str(&format!("exit {}", no.code));
    out
}

/// The guarded command for an event, as a program and its arguments.
pub(super) fn words(agent: Agent, event: &str, around: &Surroundings) -> Vec<String> {
    let shell = [SHELL.to_owned(), "-c".to_owned(), script(agent, event), "wardkeep".to_owned()];
    shell.into_iter().chain(hook(agent, event, around)).collect()
}

/// The guarded command for an event, as any shell reads it.
pub(super) fn command(agent: Agent, event: &str, around: &Surroundings) -> String {
    quoted(&words(agent, event, around))
}

/// The same for each event.
pub(super) fn commands(
    agent: Agent,
    events: &[&'static str],
    around: &Surroundings,
) -> Vec<(&'static str, String)> {
    events.iter().map(|event| (*event, command(agent, event, around))).collect()
}

/// How an agent runs a text.
pub(super) fn run_as_text(text: &str) -> Vec<String> {
    vec![SHELL.to_owned(), "-c".to_owned(), text.to_owned()]
}

/// The guarded command as a file that a shell reads. `seconds` is how long it may take, where there is
/// a program that ends it then.
pub(super) fn file(agent: Agent, event: &str, around: &Surroundings, seconds: u32) -> Vec<u8> {
    let hook = quoted(&hook(agent, event, around));
    let script = script(agent, event);
    format!(
        "#!/bin/sh\n# Written by `wardkeep install {agent}`; `wardkeep uninstall {agent}` takes it away.\n\
         set -- {hook}\n\
         if command -v timeout >/dev/null; then set -- timeout -s KILL {seconds} \"$@\"; fi\n\
         {script}\n"
    )
    .into_bytes()
}

/// Words as a shell reads them.
pub(super) fn quoted(words: &[String]) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-=+:@".contains(sign);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A text that a shell reads as it stands. Some shells' `echo` reads backslashes, and it may stand in
/// single quotes: a text with either is not one of ours.
fn in_double_quotes(text: &str) -> String {
    let mut out = String::from("\"");
    for sign in text.chars().filter(|sign| !matches!(sign, '\\' | '\'')) {
        if matches!(sign, '"' | '$' | '`') {
            out.push('\\');
        }
        out.push(sign);
    }
    out.push('"');
    out
}
