//! What is new for the owner, and what they were told of before.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wardkeep_detect::leak::OutputGuard;
use wardkeep_evidence::bundle::StagedFile;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::Payload;
use wardkeep_evidence::time::Timestamp;
use wardkeep_gateway::notify::{CODE_DIGITS, Kind, MAX_FACT, Notice, harmless};
use wardkeep_monitor::approvals::{Approvals, Asked, REQUEST_SECONDS, Shown};
use wardkeep_monitor::index::Severity;
use wardkeep_monitor::journal::{Folder, Position, parse_line, scan};
use wardkeep_monitor::notices;

use crate::error::CliError;

/// What was told, in the state directory.
const FILE: &str = "notify.json";
/// Longest such file.
const MAX_FILE: u64 = 4 << 20;
/// Most lines of the journal that are read at a time.
const LINES: usize = 20_000;

/// Looks for what is new.
pub(super) struct Watcher {
    state: PathBuf,
    folder: Folder,
    kept: Kept,
    changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    v: u32,
    position: Position,
    told: Vec<Told>,
}

/// A request that the owner was told of: the same action of a session is not told again before it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    request: String,
    action: String,
    session: String,
    until: i64,
}

/// What is new.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) notices: Vec<Notice>,
    /// Whether there is more to read.
    pub(super) more: bool,
}

impl Watcher {
    /// Goes on where the last one ended; without one, from now on.
    pub(super) fn open(state: &Path) -> Result<Self, CliError> {
        let folder = Folder::open(&state.join("journal"))?;
        let end = end(&folder)?;
        let kept = read(state).filter(|kept| {
            // A journal that is shorter now is another one.
            kept.v == 1
                && (kept.position.segment, kept.position.offset) <= (end.segment, end.offset)
        });
        let changed = kept.is_none();
        let kept = kept.unwrap_or(Kept { v: 1, position: end, told: Vec::new() });
        Ok(Self { state: state.to_owned(), folder, kept, changed })
    }

    /// What is new at `now`.
    pub(super) fn look(&mut self, approvals: &Approvals, now: Timestamp) -> Result<News, CliError> {
        let waiting = approvals.pending(now)?;
        let mut news = self.alerts()?;
        let before = self.kept.told.len();
        let waits = |told: &Told| {
            let same =
                |one: &Asked| one.action.to_string() == told.action && one.session == told.session;
            now.unix() < told.until && waiting.iter().any(same)
        };
        self.kept.told.retain(waits);
        self.changed |= self.kept.told.len() != before;
        for asked in waiting.iter().rev() {
            let action = asked.action.to_string();
            let known = |told: &Told| told.action == action && told.session == asked.session;
            if self.kept.told.iter().any(known) {
                continue;
            }
            let request = asked.id.to_string();
            // One that was answered meanwhile is not told.
            let Ok(line) = approvals.line(&request, now) else { continue };
            let Ok(shown) = approvals.show(&line, now, &|_| None) else { continue };
            news.notices.push(request_notice(&shown));
            let until = asked.at.unix() + REQUEST_SECONDS;
            self.kept.told.push(Told { request, action, session: asked.session.clone(), until });
            self.changed = true;
        }
        Ok(news)
    }

    /// Critical alerts since the last look.
    fn alerts(&mut self) -> Result<News, CliError> {
        let mut news = News::default();
        let mut lines = 0;
        let reached = scan(&self.folder, self.kept.position, |_, text| {
            lines += 1;
            if let Some(line) = parse_line(text) {
                let asks = match &line.record.payload {
                    Payload::Inline(Value::Object(told)) => {
                        told.get("verdict").and_then(Value::as_str) == Some("ask")
                    }
                    Payload::Inline(_) | Payload::Blob { .. } => false,
                };
                let notice =
                    notices::Notice::of(&line).filter(|one| one.severity >= Severity::Critical);
                // A question is told as such.
                news.notices.extend(notice.filter(|_| !asks).map(|notice| alert_notice(&notice)));
            }
            if lines < LINES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        news.more = lines >= LINES;
        self.changed |= !news.notices.is_empty();
        self.kept.position = reached;
        Ok(news)
    }

    /// Writes down what was told, if there is anything new; `all` also how far the journal was read.
    pub(super) fn keep(&mut self, all: bool) -> Result<(), CliError> {
        if self.changed || all {
            let text = serde_json::to_vec(&self.kept).unwrap_or_default();
            StagedFile::replace(&self.state.join(FILE), 0o600, &text)?;
            self.changed = false;
        }
        Ok(())
    }
}

/// Where the journal ends.
fn end(folder: &Folder) -> Result<Position, CliError> {
    let Some(newest) = folder.segments()?.last().copied() else { return Ok(Position::START) };
    let (_, offset) = folder.read_segment(newest)?;
    Ok(Position { segment: newest.0, offset })
}

fn read(state: &Path) -> Option<Kept> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(state.join(FILE)).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Whether a notice shows everything that the action is made of but the content, which only the machine
/// shows.
pub(super) fn is_whole(shown: &Shown) -> bool {
    let guard = OutputGuard::new().with_secrets();
    let fits = |text: &str| {
        text.chars().count() <= MAX_FACT
            && harmless(text).chars().count() <= MAX_FACT
            && guard.redact(text) == text
    };
    shown.consistent
        && fits(&shown.subject)
        && fits(&shown.workspace)
        && shown.how.as_deref().is_none_or(fits)
}

/// The code of a request.
pub(super) fn code_of(request: &str) -> &str {
    request.get(..CODE_DIGITS).unwrap_or(request)
}

/// What the owner is told of a request.
pub(super) fn request_notice(shown: &Shown) -> Notice {
    let code = code_of(&shown.request);
    let guard = OutputGuard::new().with_secrets();
    let mut facts = vec![
        ("what", format!("{} ({}) for {}", shown.act, shown.surface, shown.principal)),
        ("subject", begun(&guard, &shown.subject)),
    ];
    facts.extend(shown.how.as_deref().map(|how| ("how", begun(&guard, how))));
    if let Some(content) = &shown.content {
        facts.push(("content", format!("{} bytes, not shown here", content.bytes)));
    }
    facts.push(("agent", shown.agent.clone()));
    facts.push(("workspace", shown.workspace.clone()));
    facts.push(("reason", begun(&guard, &shown.reason)));
    facts.push(("code", code.to_owned()));
    let whole = is_whole(shown);
    if !whole {
        facts.push(("note", "not all of it is shown here: answer it at the machine".to_owned()));
    }
    Notice {
        kind: Kind::Approval,
        title: "An agent asks for your approval".to_owned(),
        facts,
        code: whole.then(|| code.to_owned()),
        severity: shown.severity.clone().unwrap_or_else(|| "medium".to_owned()),
        next: format!("wardkeep approvals show {code}"),
    }
}

/// The beginning of a text, without secrets: it goes to other machines.
fn begun(guard: &OutputGuard, text: &str) -> String {
    /// More than is sent.
    const ENOUGH: usize = 4 * MAX_FACT;
    guard.redact(&text.chars().take(ENOUGH).collect::<String>())
}

fn alert_notice(notice: &notices::Notice) -> Notice {
    let guard = OutputGuard::new().with_secrets();
    let mut facts = vec![
        ("what", begun(&guard, &notice.message)),
        ("from", notice.source.as_str().to_owned()),
        ("at", notice.time.clone()),
    ];
    if !notice.session.is_empty() {
        facts.push(("session", notice.session.clone()));
    }
    Notice {
        kind: Kind::Alert,
        title: "Critical alert".to_owned(),
        facts,
        code: None,
        severity: notice.severity.as_str().to_owned(),
        next: format!("wardkeep log {:.10}", notice.record),
    }
}

/// What is told of those that were too many.
pub(super) fn sum_notice(kind: Kind, many: u64) -> Notice {
    let (what, next) = match kind {
        Kind::Approval => ("requests wait that you were not told of", "wardkeep approvals list"),
        Kind::Alert => ("critical alerts that you were not told of", "wardkeep notifications"),
    };
    Notice {
        kind,
        title: format!("{many} more {what}"),
        facts: Vec::new(),
        code: None,
        severity: "high".to_owned(),
        next: next.to_owned(),
    }
}
