//! A shell command: everything that it would do, judged one by one.

use std::path::{Path, PathBuf};

use wardkeep_detect::effects::{EffectKind, Effects, Endpoint, NetworkUse, Unknown, effects};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::RecordType;
use wardkeep_guard::action::Action;
use wardkeep_guard::facts::{FileFacts, Protection, Sensitivity};
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::verdict::Verdict;
use wardkeep_policy::protect::{
    Class, CommandJudgement, Hit, Identity, Level, Operation, Surroundings, Touch, fold_name,
    glob_matches, judge_command,
};

use super::content::shortened;
use super::hooks::{before, file_action};
use super::past::{Held, Replaces};
use super::pipeline::Crossing;
use super::subjects::{Deed, Ground, Subject};
use super::{Monitor, Outcome, Result, Sent, Who};
use crate::daemon::{Reach, Root};
use crate::policy::Kept;
use crate::resolve::{Resolver, protect_lists, protected_set, resolve_seen};

/// Denials of one command that are written down one by one.
const DENIALS: usize = 8;
/// Files of one command that are written down one by one, the gravest first.
const FILES: usize = 48;
/// Places on the network of one command that are asked for.
const PLACES: usize = 32;
/// Names that are looked at for a glob, or below a folder that is read whole.
const NAMES: usize = 4096;
/// Folders below one that is read whole.
const DEPTH: usize = 4;

/// A command that a tool is to run.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What the tool is given, as a whole.
    pub arguments: &'a str,
    /// The text for the shell.
    pub text: &'a str,
    /// Where it starts, absolute.
    pub directory: &'a Path,
}

impl Monitor {
    /// A shell command is to run: the call itself, then what can be read off it. Files, places on
    /// the network and settings reach the same guards as if a tool of their own had named them.
    /// What is protected is denied where the command changes it; a shell cannot be sent elsewhere.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not run then.
    pub fn on_command(&self, who: &Who<'_>, command: &Command<'_>) -> Result<Vec<Outcome>> {
        let read = effects(command.text);
        let settings = self.settings();
        let home = self.config.home.as_deref();
        let lists = protect_lists(self.store.path(), home);
        let set = protected_set(who.workspace, self.store.path(), &lists)?;
        let directory = Resolver::from(command.directory, who.view)?;
        let around = Surroundings { directory: directory.base(), home };
        let mut resolve =
            |base: &Path, path: &str, follow| resolve_seen(base, path, follow, who.view);
        let judged = judge_command(&read, &around, &mut resolve, &set);
        let mut outcomes = vec![self.called(who, command, &read, &judged)?];
        for hit in judged.hits.iter().filter(|hit| hit.level == Level::Denied).take(DENIALS) {
            outcomes.push(self.forbidden(who, command, hit)?);
        }
        if judged.level == Level::Denied {
            return Ok(outcomes);
        }
        let (workspace, sensitive) = (who.workspace, &settings.sensitive);
        let ground = Ground { workspace, home, set: &set, sensitive, view: who.view };
        for (deed, subject) in self.subjects(&ground, &judged.touched) {
            outcomes.push(self.touched(who, &subject, deed, command.text)?);
        }
        for (endpoint, url) in places(&read, settings.egress.is_listed()) {
            let sends = endpoint.usage != NetworkUse::Fetch;
            let method = match endpoint.usage {
                NetworkUse::Fetch => "GET",
                NetworkUse::Send => "POST",
                _ => "CONNECT",
            };
            // What is computed may be anything.
            let least = u64::from(endpoint.word.text.is_none());
            let content = sends.then_some(command.text.as_bytes());
            let sent = Sent { size: least, content };
            let call = outcomes.first().map(|call| call.record);
            outcomes.push(self.request_for(who, call, &url, method, sent)?);
        }
        if runs_what_it_fetches(&read) {
            outcomes.push(self.on_control_plane_change(who, "shell:fetched", command.text)?);
        }
        for (name, value) in steering(&read) {
            let key = format!("shell:{name}");
            outcomes.push(self.on_control_plane_change(who, &key, &value)?);
        }
        // The call itself stands first, and is a question.
        let parts = outcomes.iter().skip(1).map(|one| (one.verdict == Verdict::Allow, one.record));
        self.withheld(who, outcomes.iter().all(|one| one.verdict == Verdict::Allow), parts)?;
        Ok(outcomes)
    }

    fn called(
        &self,
        who: &Who<'_>,
        command: &Command<'_>,
        read: &Effects,
        judged: &CommandJudgement,
    ) -> Result<Outcome> {
        let mut action =
            Action::new(who.principal, Surface::ConversationIO, Act::Call, command.tool);
        action.content = Some(command.arguments);
        let mut crossing = Crossing::new(who, RecordType::ToolCall, action);
        crossing.more.push(("effects", Value::from(read.effects.len() as u64)));
        crossing.more.push(("understood", Value::from(read.complete)));
        let warnings = judged.hits.iter().filter(|hit| hit.level == Level::Warned).take(DENIALS);
        let warnings: Vec<Value<'static>> =
            warnings.map(|hit| Value::from(shortened(&hit.denial.why))).collect();
        if !warnings.is_empty() {
            crossing.more.push(("warnings", Value::Array(warnings)));
        }
        let outcome = self.cross(crossing)?;
        self.called_for(who, command.tool, command.arguments, &outcome)?;
        Ok(outcome)
    }

    /// What the protected set forbids.
    fn forbidden(&self, who: &Who<'_>, command: &Command<'_>, hit: &Hit) -> Result<Outcome> {
        let denial = &hit.denial;
        let steers = !matches!(denial.class, Class::Protected | Class::Unknown);
        let what = if denial.what.is_empty() { "the command" } else { &denial.what };
        let facts = FileFacts {
            path: what.to_owned(),
            memory: false,
            protection: if hit.reads { Protection::None } else { Protection::Sealed },
            sensitivity: if hit.reads { Sensitivity::Sealed } else { Sensitivity::None },
            resolved: denial.class != Class::Unknown,
        };
        let subject = Subject {
            surface: if steers && !hit.reads { Surface::ControlPlane } else { Surface::FileSystem },
            path: PathBuf::from(what),
            // There may be one: nothing is said of what it holds.
            identity: Some(Identity { device: 0, inode: 0 }),
            denial: Some(denial.clone()),
            staged: None,
            facts,
        };
        let deed = if hit.reads { Deed::Read } else { Deed::Write };
        let mut action = file_action(who, &subject, deed);
        action.content = Some(command.text);
        let kind = if hit.reads { RecordType::FileRead } else { RecordType::FileWrite };
        let mut crossing = Crossing::new(who, kind, action);
        crossing.file = Some(&subject);
        crossing.more.push(("tool", Value::from(shortened(command.tool))));
        let outcome = self.cross(crossing)?;
        if !hit.reads && denial.class != Class::Unknown {
            self.write_blocked(who, command.tool, what, Kept::Denied)?;
        }
        Ok(outcome)
    }

    /// The files that a command would do something to and that are worth a record, gravest first.
    fn subjects(&self, ground: &Ground<'_>, touched: &[Touch]) -> Vec<(Deed, Subject)> {
        let mut found = Vec::new();
        let mut budget = NAMES;
        for touch in touched {
            let Some(deed) = deed(touch.operation) else { continue };
            for path in named(touch, ground.view, &mut budget) {
                let subject = ground.subject(&path, deed);
                let facts = &subject.facts;
                let plain = facts.sensitivity == Sensitivity::None
                    && !facts.memory
                    && facts.resolved
                    && subject.denial.is_none();
                if deed != Deed::Read || !plain || self.is_known(&subject.path) {
                    found.push((deed, subject));
                }
            }
        }
        let gravity = |(_, subject): &(Deed, Subject)| {
            let FileFacts { resolved, protection, memory, sensitivity, .. } = &subject.facts;
            std::cmp::Reverse((!resolved, *protection, *sensitivity, *memory))
        };
        found.sort_by_key(gravity);
        found.truncate(FILES);
        found
    }

    /// Whether a file was changed before, as far as can be told.
    fn is_known(&self, path: &Path) -> bool {
        !self.past(path).is_ok_and(|past| past.records.is_empty() && !past.unknown)
    }

    fn touched(
        &self,
        who: &Who<'_>,
        subject: &Subject,
        deed: Deed,
        command: &str,
    ) -> Result<Outcome> {
        let mut action = file_action(who, subject, deed);
        let kind = match deed {
            Deed::Read => RecordType::FileRead,
            Deed::Write => RecordType::FileWrite,
            Deed::Delete => RecordType::FileDelete,
            Deed::MoveAway | Deed::MoveHere => RecordType::FileRename,
        };
        // What is written stands in the command, as far as it is known.
        action.content = (deed != Deed::Read).then_some(command);
        let mut crossing = Crossing::new(who, kind, action);
        crossing.enters = deed == Deed::Read;
        if matches!(deed, Deed::Read | Deed::MoveAway) {
            self.comes_from(&mut crossing, subject)?;
        }
        if deed != Deed::Read {
            crossing.before = before(subject);
            let past = self.past(&subject.path)?;
            crossing.replaces = Some(Replaces::new(Held::Before, past.clone()));
            // What a command leaves of what was there is not known.
            if deed == Deed::Write && subject.identity.is_some() {
                crossing.stays = self.stays(past, who.session, None, "");
            }
        }
        crossing.file = Some(subject);
        self.cross(crossing)
    }
}

fn deed(operation: Operation) -> Option<Deed> {
    match operation {
        Operation::Read | Operation::ReadTree => Some(Deed::Read),
        Operation::Write => Some(Deed::Write),
        Operation::Delete => Some(Deed::Delete),
        Operation::RenameAway | Operation::HardLink => Some(Deed::MoveAway),
        Operation::Replace => Some(Deed::MoveHere),
        // Names and attributes: what is protected was looked for before.
        _ => None,
    }
}

/// The files that are meant: one, those that a glob finds, or all below a folder.
pub(super) fn named(touch: &Touch, view: Option<&Root>, budget: &mut usize) -> Vec<PathBuf> {
    let names_in = |folder: &Path, budget: &mut usize| {
        let unseen = view.is_some_and(|view| view.reach(folder) == Reach::None);
        if unseen { Vec::new() } else { names_in(folder, budget) }
    };
    let mut found = vec![touch.path.clone()];
    for pattern in &touch.glob {
        let mut next = Vec::new();
        for folder in &found {
            for name in names_in(folder, budget) {
                let text = fold_name(&name.to_string_lossy());
                let hidden = text.starts_with('.') && !pattern.starts_with('.');
                if !hidden && glob_matches(&fold_name(pattern), &text) {
                    next.push(folder.join(name));
                }
            }
        }
        found = next;
    }
    if touch.operation == Operation::ReadTree {
        let mut folders: Vec<(PathBuf, usize)> =
            found.iter().map(|path| (path.clone(), DEPTH)).collect();
        while let Some((folder, depth)) = folders.pop() {
            for name in names_in(&folder, budget) {
                let path = folder.join(name);
                let below = std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir());
                if below && depth > 0 {
                    folders.push((path.clone(), depth - 1));
                }
                found.push(path);
            }
        }
    }
    found
}

fn names_in(folder: &Path, budget: &mut usize) -> Vec<std::ffi::OsString> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let Some(left) = budget.checked_sub(1) else { break };
        *budget = left;
        names.push(entry.file_name());
    }
    names
}

/// Where a command reaches, as addresses. A place without a known host can only be judged where the
/// owner lists hosts, or where something is sent.
fn places(read: &Effects, listed: bool) -> Vec<(Endpoint, String)> {
    let mut places: Vec<(Endpoint, String)> = Vec::new();
    for (effect, endpoint) in read.endpoints().filter(|(effect, _)| !effect.remote) {
        if endpoint.usage == NetworkUse::Listen {
            continue;
        }
        let secure = matches!(effect.program.as_deref(), Some("ssh" | "scp" | "sftp" | "rsync"));
        let scheme = if secure { "ssh" } else { "https" };
        let text = endpoint.word.text.as_deref();
        let host = endpoint.host.as_deref().filter(|host| !host.is_empty());
        let url = match (text, host) {
            (Some(text), _) if text.contains("://") => text.to_owned(),
            (Some(text), Some(host)) if text.starts_with(host) => format!("{scheme}://{text}"),
            (_, Some(host)) => format!("{scheme}://{host}/"),
            (_, None) if !listed && endpoint.usage == NetworkUse::Fetch => continue,
            (Some(name), None) => format!("https://{}.unknown.invalid/", label(name)),
            (None, None) => "https://unknown.invalid/".to_owned(),
        };
        let known = places.iter().any(|(one, other)| *other == url && one.usage == endpoint.usage);
        if !known {
            places.push((endpoint.clone(), url));
        }
        if places.len() >= PLACES {
            break;
        }
    }
    places
}

/// A word as a part of a host.
fn label(text: &str) -> String {
    let letters = text.chars().filter(char::is_ascii_alphanumeric).take(40);
    let label: String = letters.collect::<String>().to_ascii_lowercase();
    if label.is_empty() { "place".to_owned() } else { label }
}

/// Whether something runs that nobody has seen while something is fetched: `curl … | sh`.
fn runs_what_it_fetches(read: &Effects) -> bool {
    let local = || read.effects.iter().filter(|effect| !effect.remote);
    let fetches = read
        .endpoints()
        .any(|(effect, endpoint)| !effect.remote && endpoint.usage != NetworkUse::Listen);
    let unseen = local().any(|effect| {
        matches!(
            effect.kind,
            EffectKind::Opaque(Unknown::Script | Unknown::Program)
                | EffectKind::Code { text: None, .. }
        )
    });
    fetches && unseen
}

/// Variables of which another program runs or loads something.
const STEERING: [&str; 22] = [
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "RUSTC_WRAPPER",
    "LESSOPEN",
    "ZDOTDIR",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_PAGER",
    "GIT_EXEC_PATH",
];
const STEERING_STARTS: [&str; 13] = [
    "LD_",
    "DYLD_",
    "GIT_CONFIG",
    "WARDKEEP_",
    "CLAUDE_",
    "ANTHROPIC_",
    "CODEX_",
    "GEMINI_",
    "COPILOT_",
    "OPENCLAW_",
    "LOCALGPT_",
    "schedule:",
    "git:alias.",
];
/// Settings of git that run a program, or let others decide which.
const GIT_STARTS: [&str; 9] = [
    "git:include",
    "git:filter.",
    "git:credential",
    "git:protocol.ext",
    "git:url.",
    "git:remote.",
    "git:gpg.",
    "git:pager.",
    "git:submodule.",
];
const GIT_ENDS: [&str; 14] = [
    ".pager",
    ".editor",
    ".sshcommand",
    ".fsmonitor",
    ".hookspath",
    ".askpass",
    ".gitproxy",
    ".external",
    ".textconv",
    ".driver",
    ".cmd",
    ".command",
    ".program",
    ".helper",
];
/// Values that do no harm wherever they stand.
const HARMLESS: [&str; 10] = ["", "cat", "less", "true", "false", "0", "1", "no", ":", "vi"];
/// Ways to only look at schedules.
const LOOKING: [&str; 8] =
    ["status", "show", "cat", "list-units", "list-timers", "is-active", "is-enabled", "list"];

/// Settings that decide what other programs do.
fn steering(read: &Effects) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for effect in read.effects.iter().filter(|effect| !effect.remote) {
        let EffectKind::Setting { name, value } = &effect.kind else { continue };
        let lower = name.to_ascii_lowercase();
        let steers = STEERING.contains(&name.as_str())
            || STEERING_STARTS.iter().any(|start| name.starts_with(start))
            || GIT_STARTS.iter().any(|start| lower.starts_with(start))
            || lower.starts_with("git:") && GIT_ENDS.iter().any(|end| lower.ends_with(end))
            || name.ends_with("_BASE_URL");
        let text = value.text.as_deref();
        let looks = name.starts_with("schedule:") && text.is_some_and(|v| LOOKING.contains(&v));
        if !steers || looks || text.is_some_and(|text| HARMLESS.contains(&text)) {
            continue;
        }
        let pair = (shortened(name), shortened(text.unwrap_or("(computed)")));
        if found.len() < PLACES && !found.contains(&pair) {
            found.push(pair);
        }
    }
    found
}
