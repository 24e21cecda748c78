//! Sentences for people, with the facts in them.

use wardkeep_evidence::check::printable;

use crate::facts::Facts;
use crate::surface::{Act, Surface};
use crate::taint::Taint;

/// Longest subject in a sentence, in characters.
const LONGEST: usize = 80;

/// The subject in backticks, short and harmless.
pub(super) fn subject(facts: &Facts) -> String {
    named(&facts.subject)
}

fn named(text: &str) -> String {
    let printable = printable(text);
    if printable.chars().count() <= LONGEST {
        return format!("`{printable}`");
    }
    // The end of a path says more than its middle.
    let length = printable.chars().count();
    let head: String = printable.chars().take(LONGEST / 2).collect();
    let tail: String = printable.chars().skip(length - LONGEST / 2).collect();
    format!("`{head}…{tail}`")
}

/// The host in backticks, or the subject where there is none.
pub(super) fn host(facts: &Facts) -> String {
    match &facts.network {
        Some(network) if !network.host.is_empty() => named(&network.host),
        _ => subject(facts),
    }
}

/// "change the control plane (`tools`)".
pub(super) fn deed(facts: &Facts) -> String {
    let verb = match facts.act {
        Act::Start => "start",
        Act::Receive => "say",
        Act::Reply => "answer",
        Act::Call => "call",
        Act::Return => "give back",
        Act::Read => "read",
        Act::Write => "write",
        Act::Delete => "remove",
        Act::Rename => "rename",
        Act::Send => "send to",
        Act::Change => "change",
        Act::Install => "install",
        Act::Trust => "trust",
    };
    let subject = subject(facts);
    match facts.surface {
        Surface::ControlPlane => format!("{verb} {subject}, which steers the agent"),
        Surface::DurableMemory => format!("{verb} {subject}, which the agent remembers"),
        _ => format!("{verb} {subject}"),
    }
}

/// Where suspicious taint lies: in what is written, or in what the session has seen.
pub(super) fn source(facts: &Facts, direct: Taint, ambient: Taint) -> String {
    let found = facts.direct.only(direct);
    if found.is_empty() {
        let found = facts.ambient.only(ambient);
        format!("the session has seen content marked {found}")
    } else {
        format!("its content is marked {found}")
    }
}

/// Why something passes.
pub(in super::super) fn nothing_against(facts: &Facts) -> String {
    format!("no rule forbids {} to {}", facts.principal, deed(facts))
}

#[cfg(test)]
mod tests {
    use wardkeep_evidence::record::Principal;

    use super::*;

    #[test]
    fn a_hostile_subject_is_short_and_harmless() {
        let hostile = format!("/tmp/\u{1b}]0;x\u{7}\n{}\u{202e}", "a".repeat(10_000));
        let facts = Facts::new(Principal::Web, Surface::FileSystem, Act::Write, hostile);
        let sentence = nothing_against(&facts);
        assert!(sentence.chars().count() < 200, "{sentence}");
        assert!(!sentence.contains(['\u{1b}', '\n', '\u{202e}']), "{sentence}");
    }
}
