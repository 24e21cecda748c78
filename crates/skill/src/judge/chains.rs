//! What was seen, weighed by what it is part of.

use std::ops::Range;

use super::super::facts::{Act, Holds, Seen};
use super::super::kind::Language;
use super::super::places::{Trust, host, is_drop, trust};
use super::super::{code, shell};
use super::{Judge, Place, Role};
use crate::verdict::Verdict;

/// Deepest that code inside code is read.
const DEPTH: usize = 4;

impl Judge<'_> {
    /// Weighs what was seen in one text.
    pub(super) fn chain(
        &mut self,
        place: &Place<'_>,
        seen: Vec<Seen>,
        language: Language,
        depth: usize,
    ) {
        for Seen { act, at } in seen {
            self.weigh(place, act, at, language, depth);
        }
    }

    fn weigh(
        &mut self,
        place: &Place<'_>,
        act: Act,
        at: Range<usize>,
        language: Language,
        depth: usize,
    ) {
        match act {
            Act::Shell { text, assembled } => {
                self.runs = true;
                let inner =
                    Place { layers: place.layers + usize::from(assembled), ..place.clone() };
                self.inside(&inner, &text, Language::Shell, at, depth);
            }
            Act::Inline { python, text } => {
                let language = if python { Language::Python } else { Language::JavaScript };
                self.inside(place, &text, language, at, depth);
            }
            Act::Code { text } => self.inside(place, &text, language, at, depth),
            Act::DecodeAndRun { text } => self.decoded(place, text, at, language, depth),
            Act::FetchAndRun { url } => self.fetched(place, url, at),
            Act::RunAssembled => self.find(
                place,
                "run.assembled",
                Verdict::Ask,
                at,
                "what is run is put together so that it cannot be read".into(),
            ),
            Act::RunInput => self.find(
                place,
                "run.input",
                Verdict::Ask,
                at,
                "whatever is given is run as code".into(),
            ),
            Act::ReverseShell => {
                let verdict = Verdict::Deny;
                self.find(
                    place,
                    "shell.reverse",
                    verdict,
                    at,
                    "another machine would get a shell".into(),
                );
            }
            Act::Send { url, holds, what } => self.sent(place, url, holds, &what, at),
            Act::Fetch { url } => self.reached(place, url, at),
            Act::ReadCredential { .. } => {}
            Act::Persist { what, name, holds } => self.lasting(place, what, &name, holds, at),
            Act::Unguard { what } => {
                self.find(place, "guard.off", Verdict::Ask, at, format!("{what} would be off"))
            }
            Act::Destroy => {
                let verdict = if matches!(place.role, Role::Script | Role::Hook) || place.layers > 0
                {
                    Verdict::Deny
                } else {
                    Verdict::Ask
                };
                self.find(
                    place,
                    "destroy",
                    verdict,
                    at,
                    "everything of the user or the machine would be gone".into(),
                );
            }
            Act::Phish => self.find(
                place,
                "password.asked",
                Verdict::Deny,
                at,
                "a window that looks like the system's asks for the password".into(),
            ),
            Act::Mine => self.find(
                place,
                "mine.coins",
                Verdict::Deny,
                at,
                "a program that mines coins is started".into(),
            ),
            Act::Query => self.find(
                place,
                "flaw.query",
                Verdict::Ask,
                at,
                "a caller can change the statement".into(),
            ),
            Act::Traverse => self.find(
                place,
                "flaw.path",
                Verdict::Ask,
                at,
                "a caller can name any file with `..`".into(),
            ),
            Act::Spin => self.find(
                place,
                "flaw.loop",
                Verdict::Ask,
                at,
                "nothing in the loop ends it".into(),
            ),
        }
    }

    /// Reads code that was inside other code.
    fn inside(
        &mut self,
        place: &Place<'_>,
        text: &str,
        language: Language,
        at: Range<usize>,
        depth: usize,
    ) {
        if depth >= DEPTH || text.len() < 3 {
            return;
        }
        let shown = place.at(&at);
        let inner = Place { base: shown.start, exact: false, ..place.clone() };
        let seen = match language {
            Language::Shell => shell::read(text).0,
            _ => code::read(&[(language, text)]).seen.into_iter().flatten().collect(),
        };
        self.chain(&inner, seen, language, depth + 1);
    }

    fn decoded(
        &mut self,
        place: &Place<'_>,
        text: Option<String>,
        at: Range<usize>,
        language: Language,
        depth: usize,
    ) {
        let Some(text) = text else {
            let verdict =
                if matches!(place.role, Role::Hook) { Verdict::Deny } else { Verdict::Ask };
            return self.find(
                place,
                "run.decoded",
                verdict,
                at,
                "what is decoded and run is not known".into(),
            );
        };
        let hot = is_hot(&text);
        let verdict = if hot { Verdict::Deny } else { Verdict::Ask };
        let said: String = text.chars().take(120).collect();
        self.find(place, "run.decoded", verdict, at.clone(), format!("decoded, it says: {said}"));
        let inner = Place { layers: place.layers + 1, ..place.clone() };
        self.inside(&inner, &text, language, at.clone(), depth);
        if language != Language::Shell {
            self.inside(&inner, &text, Language::Shell, at, depth);
        }
    }

    fn fetched(&mut self, place: &Place<'_>, url: Option<String>, at: Range<usize>) {
        let Some(url) = url else {
            let verdict = if matches!(place.role, Role::Script | Role::Hook) {
                Verdict::Deny
            } else {
                Verdict::Ask
            };
            return self.find(
                place,
                "run.fetched",
                verdict,
                at,
                "what is fetched is run as it comes".into(),
            );
        };
        self.hosts.extend(host(&url));
        let (verdict, why) = match trust(&url) {
            Trust::Local => (Verdict::Allow, "from this machine or network"),
            Trust::Anonymous => (Verdict::Deny, "from a place that nobody answers for"),
            _ if place.layers > 0 => (Verdict::Deny, "and it was hidden"),
            Trust::Known => (Verdict::Ask, "from a well-known place"),
            Trust::Unknown => (Verdict::Ask, "from a place that may change it at any time"),
        };
        self.find(
            place,
            "run.fetched",
            verdict,
            at,
            format!("{} is run as it comes, {why}", short(&url)),
        );
    }

    fn sent(
        &mut self,
        place: &Place<'_>,
        url: Option<String>,
        holds: Holds,
        what: &[&'static str],
        at: Range<usize>,
    ) {
        let to = url.as_deref().map_or_else(|| "another machine".to_owned(), short);
        let local = url.as_deref().is_some_and(|url| trust(url) == Trust::Local);
        if local {
            return;
        }
        if holds.any(Holds::CREDENTIAL) {
            // A skill for a service may use that service's own file.
            let own = !what.is_empty() && what.iter().all(|class| self.description.contains(class));
            let verdict = if own { Verdict::Ask } else { Verdict::Deny };
            self.find(
                place,
                "credentials.sent",
                verdict,
                at.clone(),
                format!("a file of credentials goes to {to}"),
            );
        }
        if holds.any(Holds::ENVIRONMENT) {
            self.find(
                place,
                "environment.sent",
                Verdict::Deny,
                at.clone(),
                format!("every variable, keys included, goes to {to}"),
            );
        }
        if holds.any(Holds::WATCHED) {
            self.find(
                place,
                "watch.sent",
                Verdict::Ask,
                at.clone(),
                format!("what is copied or shown goes to {to}"),
            );
        }
        let declared = url.as_deref().and_then(host).is_some_and(|host| {
            let short = host.split('.').rev().nth(1).unwrap_or(&host).to_owned();
            self.declared.contains(&host) || (short.len() > 3 && self.declared.contains(&short))
        });
        let fixed = url.as_deref().and_then(host).is_some()
            && url.as_deref().is_none_or(|url| trust(url) != Trust::Known);
        // A key that its documents do not name, to a host that they do not name.
        let secret = self
            .variables
            .iter()
            .find(|name| !self.declared.contains(&name.to_lowercase()))
            .filter(|_| holds.any(Holds::TOKEN));
        if fixed
            && !declared
            && matches!(place.role, Role::Script | Role::Hook)
            && let Some(secret) = secret
        {
            let reason = format!("{secret} goes to {to}, and its documents say nothing of either");
            // Where nothing is declared at all, this is how most are.
            let verdict = if self.tools.is_some() { Verdict::Ask } else { Verdict::Allow };
            self.find(place, "declared.less", verdict, at.clone(), reason);
        }
        if fixed
            && !declared
            && (holds.all(Holds::FILE | Holds::TOKEN) || holds.all(Holds::FILE | Holds::SEARCHED))
        {
            self.find(
                place,
                "files.sent",
                Verdict::Ask,
                at.clone(),
                format!("files go to {to}, of which its description says nothing"),
            );
        } else if fixed && !declared && holds.any(Holds::FILE) && holds.any(Holds::MACHINE) {
            self.find(
                place,
                "files.sent",
                Verdict::Ask,
                at.clone(),
                format!("files and what the machine is called go to {to}"),
            );
        }
        if url.as_deref().is_some_and(is_drop) {
            // A skill that says it is for that service may use it.
            let named = url.as_deref().and_then(host).is_some_and(|host| {
                host.split('.').any(|label| label.len() > 4 && self.description.contains(label))
            });
            let verdict = match (named, holds.any(Holds::FILE | Holds::TOKEN | Holds::MACHINE)) {
                (true, _) => Verdict::Allow,
                (false, true) => Verdict::Deny,
                (false, false) => Verdict::Ask,
            };
            self.find(place, "send.drop", verdict, at.clone(), format!("data goes to {to}"));
        }
        self.reached(place, url, at);
    }

    /// A host that code talks to.
    fn reached(&mut self, place: &Place<'_>, url: Option<String>, at: Range<usize>) {
        let Some(host) = url.as_deref().and_then(host) else { return };
        let allowed = &self.options.allowed_hosts;
        let listed = allowed.is_empty()
            || allowed.iter().any(|name| {
                host.strip_suffix(name.trim_start_matches("*."))
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            });
        if matches!(place.role, Role::Script | Role::Hook) || !listed {
            self.hosts.insert(host.clone());
        }
        if !listed && url.as_deref().is_none_or(|url| trust(url) != Trust::Local) {
            self.find(
                place,
                "net.unlisted",
                Verdict::Ask,
                at,
                format!("{host} is not on the list of hosts that may be asked"),
            );
        }
    }

    fn lasting(
        &mut self,
        place: &Place<'_>,
        what: &'static str,
        name: &str,
        holds: Holds,
        at: Range<usize>,
    ) {
        let memory = what == "the agent's memory";
        let verdict = match what {
            _ if holds.any(Holds::FETCHED) && matches!(place.role, Role::Script | Role::Hook) => {
                Verdict::Ask
            }
            shell::OTHERS_KEY => Verdict::Deny,
            "a hook of git" if name == shell::GIT_SETTING => Verdict::Ask,
            "who may become root" | "what every program loads" | "what every Python loads" => {
                Verdict::Ask
            }
            _ if place.layers > 0 || place.role == Role::Hook => Verdict::Ask,
            "the agent's memory" if place.role == Role::Script && is_core(name) => Verdict::Ask,
            _ => Verdict::Allow,
        };
        let rule = if memory { "memory.write" } else { "start.write" };
        self.find(place, rule, verdict, at, format!("{what} would be changed: {}", short(name)));
    }

    /// Notes a finding, less strict where the place calls for it.
    pub(super) fn find(
        &mut self,
        place: &Place<'_>,
        rule: &'static str,
        verdict: Verdict,
        at: Range<usize>,
        reason: String,
    ) {
        let mut verdict = verdict;
        if place.layers == 0 {
            let lower =
                |verdict| if verdict == Verdict::Deny { Verdict::Ask } else { Verdict::Allow };
            if place.inline && place.warned {
                verdict = Verdict::Allow;
            } else {
                if place.warned {
                    verdict = lower(verdict);
                }
                if place.role == Role::Example {
                    verdict = lower(verdict);
                }
            }
        }
        let at = place.at(&at);
        self.add(place.path, place.source, rule, verdict, at, reason);
    }
}

/// Files that say who the agent is, beside those that it keeps notes in.
fn is_core(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    matches!(
        name.as_str(),
        "soul.md" | "identity.md" | "heartbeat.md" | ".cursorrules" | "bootstrap.md"
    )
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Whether a decoded text would reach out, run or destroy something.
pub(super) fn is_hot(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    [
        "http://",
        "https://",
        "curl",
        "wget",
        "/dev/tcp",
        "/bin/sh",
        "/bin/bash",
        "bash -",
        "socket",
        "exec(",
        "eval(",
        "os.system",
        "subprocess",
        "child_process",
        "import os",
        "powershell",
        "invoke-",
        "iex",
        "rm -rf",
        "nc ",
        "chmod",
        "osascript",
        "base64 -",
    ]
    .iter()
    .any(|word| lower.contains(word))
}
