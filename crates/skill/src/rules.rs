//! Every rule of the verifier: what it is for, in words for a person.

use crate::verdict::Verdict;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Stable.
    pub id: &'static str,
    /// The attack vector that it belongs to: `V1` to `V6`, `exfiltration`, `prompt`, `hidden`, `file` or `flaw`.
    pub vector: &'static str,
    /// The strictest that it demands; context may lower it.
    pub verdict: Verdict,
    /// What it finds.
    pub title: &'static str,
    /// What to do about it.
    pub help: &'static str,
}

macro_rules! rules {
    ($($id:literal $vector:literal $verdict:ident $title:literal $help:literal;)*) => {
        /// Every rule, in the order of the vectors.
        pub const RULES: &[Rule] = &[
            $(Rule { id: $id, vector: $vector, verdict: Verdict::$verdict, title: $title, help: $help },)*
        ];
    };
}

rules! {
    "run.fetched" "V1" Deny "Something is fetched and run" "Read what would be run; install it from a place you know, by a pinned version.";
    "run.decoded" "V1" Deny "Something that was encoded is decoded and run" "Decode it and read it. Honest skills do not hide what they run.";
    "run.assembled" "V1" Ask "Code is put together from pieces and run" "Ask the author for the plain code.";
    "run.input" "V1" Ask "Code that a caller gives is run" "Use a parser instead of eval; run the skill confined.";
    "run.settings" "V1" Ask "Code that runs commands stands where settings do" "Take it out; settings need no code.";
    "lure.locked" "V1" Deny "You are told to fetch an archive that is locked with a password, and to run what is in it" "Do not. The password is there to keep scanners out.";
    "lure.paste" "V1" Deny "You are told to copy a command from a page and to run it" "Do not. Whoever owns the page can change the command.";
    "lure.program" "V1" Ask "You are told to fetch a program and to run it" "Check who publishes it, and its checksum.";
    "install.hook" "V1" Ask "A command runs when the skill is installed" "Read the command; install without scripts.";
    "mine.coins" "V1" Deny "Coins are mined" "Do not install it.";
    "guard.off" "V1" Ask "A protection of the system is turned off" "Leave it on.";
    "destroy" "V1" Deny "Much is destroyed" "Do not run it.";
    "shell.reverse" "V2" Deny "A shell is handed to another machine" "Do not install it.";
    "credentials.sent" "V3" Deny "Credentials are read and sent" "Do not install it; if it ran, change what it could read.";
    "environment.sent" "V3" Deny "The whole environment is read and sent" "Do not install it; if it ran, change every key in your environment.";
    "credentials.asked" "V3" Deny "The agent is told to read credentials and to pass them on" "Do not install it.";
    "watch.sent" "V3" Deny "The clipboard or the screen is read and sent" "Do not install it.";
    "password.asked" "V3" Deny "A window asks for the password under a pretext" "Do not type it.";
    "memory.write" "V4" Ask "A file is written that the agent takes its instructions from" "Read what is written there; keep these files protected.";
    "memory.told" "V4" Ask "The agent is told to change its own instructions" "Read the change; keep these files protected.";
    "start.write" "V4" Ask "A file is written that runs by itself" "Read what would run, and when.";
    "name.collision" "V5" Ask "The name is that of a skill by somebody else" "Check the publisher.";
    "name.similar" "V6" Ask "The name is nearly that of a well-known skill" "Check that you mean this one.";
    "name.copy" "V6" Ask "It is nearly the same as a skill that you know, under another name" "Compare the two; install the one you know.";
    "files.sent" "exfiltration" Ask "Files are gathered and sent to a place that its description does not name" "Ask what is sent and why; keep the host off the egress list.";
    "send.drop" "exfiltration" Ask "A service that takes data from anybody, or a tunnel to somebody's machine" "Ask whose it is; keep it blocked.";
    "net.unlisted" "exfiltration" Allow "A host that is not on your egress list" "Add it to the list if the skill needs it.";
    "declared.less" "exfiltration" Ask "It does more than it declares" "Ask the author to declare it; grant only what is declared.";
    "prompt.secrecy" "prompt" Ask "The agent is told to keep something from you" "Ask why you must not know.";
    "prompt.override" "prompt" Ask "The agent is told to drop its rules" "Do not install it.";
    "prompt.forced" "prompt" Ask "The agent is told to always do something that reaches out" "Read what it would do each time.";
    "prompt.remote" "prompt" Ask "The agent is told to fetch instructions and to follow them" "Whoever owns the page can change them; pin the content.";
    "prompt.unasked" "prompt" Ask "The agent is told to act without asking you" "Decide yourself what needs no question.";
    "hidden.tags" "hidden" Deny "Text is written in characters that do not show" "Read what it says; do not install it.";
    "hidden.signs" "hidden" Ask "Characters that do not show, or that change the order of what shows" "Open the file in an editor that shows them.";
    "hidden.comment" "hidden" Ask "Instructions stand in a comment that a reader does not see" "Read the comment.";
    "hidden.letters" "hidden" Ask "Letters of another script stand among those that look the same" "Type the word yourself.";
    "hidden.encoded" "hidden" Ask "Something that would run is hidden by an encoding" "Decode it and read it.";
    "file.program" "file" Ask "A program that cannot be read" "Ask for its source, or a build that you can repeat.";
    "file.disguised" "file" Deny "A program under the name of another kind of file" "Do not open it.";
    "file.locked" "file" Ask "An archive that is locked with a password" "Do not unpack it.";
    "file.unknown" "file" Ask "A file of which nothing is known" "Ask what it is.";
    "file.leads-out" "file" Deny "A link or a name in an archive leads out of the skill's folder" "Do not install it.";
    "file.link" "file" Allow "A link inside the skill's folder" "It is not followed.";
    "read.incomplete" "file" Ask "Not everything could be read" "What was not read may hold anything.";
    "flaw.query" "flaw" Ask "A statement for a database is put together with what a caller gives" "Use parameters.";
    "flaw.path" "flaw" Ask "A caller chooses a file below a fixed folder, and can leave it" "Check the path after resolving it.";
    "flaw.loop" "flaw" Ask "A loop that never ends" "Bound it.";
}

/// A rule by its id.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_explained() {
        for (place, rule) in RULES.iter().enumerate() {
            assert!(RULES[place + 1..].iter().all(|other| other.id != rule.id), "{}", rule.id);
            assert!(rule.title.len() > 10 && rule.help.ends_with('.'), "{}", rule.id);
        }
    }
}
