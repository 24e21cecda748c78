//! `wardkeep status`

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use wardkeep_monitor::approvals::{Approvals, Asked, REQUEST_SECONDS};
use wardkeep_monitor::grade::{AgentFacts, Asks, Confined, Files, Keeping, Policy, WorkspaceFacts};
use wardkeep_monitor::identity::find;
use wardkeep_monitor::index::{self, Severity};
use wardkeep_monitor::notices::{self, Notice};
use wardkeep_monitor::rules;
use wardkeep_policy::signed_set::{Change, Kind, SetState, SetVerification};
use wardkeep_policy::store::PolicyStore;

use super::identity::{self, StatusArgs};
use super::look::with_index;
use super::marks::{self, Standing};
use super::md::shown;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, quoted};

/// Shows on one screen how well this machine is protected, what waits for you, and what to do next
///
/// The grade, the agents that ask, the workspaces, the config, the evidence, requests that wait, alerts that nobody
/// has acknowledged, and the one next thing to do with its command. Exit 20: something is broken.
///
/// With a workspace, the files that define its agent: each protected and watched file is ok, drifted,
/// missing or pending; what is staged is listed too. Says which level of enforcement holds, and what it
/// does not prevent. Exit 0: nothing is wrong; 1: something drifted or is missing, or the workspace is
/// not set up.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show the files of this workspace
    workspace: Option<PathBuf>,
    /// The files of the workspace, the current folder if none is named, and each is read, whatever is
    /// remembered of it
    #[arg(long)]
    full: bool,
    /// Under its own name the tool of the tiers shows files only.
    #[arg(skip)]
    files: bool,
}

impl From<StatusArgs> for Args {
    fn from(args: StatusArgs) -> Self {
        let (workspace, full) = args.into_parts();
        Self { workspace, full, files: true }
    }
}

/// Rows of each kind on the screen.
const MOST: usize = 3;
/// Alerts that are read.
const ALERTS: u32 = 20;

#[derive(Serialize)]
struct Answer {
    grade: marks::Row,
    agents: Vec<AgentRow>,
    workspaces: Vec<WorkspaceRow>,
    config: Option<ConfigRow>,
    evidence: Option<EvidenceRow>,
    pending: Vec<Request>,
    alerts: Vec<Notice>,
    more_alerts: u64,
    next: Option<Next>,
}

#[derive(Serialize)]
struct AgentRow {
    agent: String,
    asks: &'static str,
    why: Option<String>,
    confined: &'static str,
}

#[derive(Serialize)]
struct WorkspaceRow {
    workspace: String,
    keeping: &'static str,
    files: &'static str,
    drifted: usize,
    policy: String,
    staged: usize,
}

/// Config, rules, profiles and pins, which are signed together.
#[derive(Serialize)]
struct ConfigRow {
    state: &'static str,
    /// What is not as it was signed.
    changes: Vec<String>,
    /// Why every action is asked about until that is mended.
    asks: Option<String>,
}

#[derive(Serialize)]
struct EvidenceRow {
    holds: bool,
    records: u64,
    sealed: Option<u64>,
    judged: u64,
    blocked: u64,
    held: u64,
}

#[derive(Serialize)]
struct Request {
    request: String,
    seconds_left: i64,
    session: String,
    what: String,
}

/// The one thing to do.
#[derive(Serialize)]
struct Next {
    command: String,
    why: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if args.files || args.full || args.workspace.is_some() {
        return identity::status(context, StatusArgs::new(args.workspace, args.full));
    }
    let standing = marks::look(context)?;
    let now = context.now()?;
    let state = context.state_dir()?;
    let owner = rustix::process::geteuid().as_raw();
    let pending = match Approvals::open(&state, owner).and_then(|all| all.pending(now)) {
        Ok(pending) => pending.into_iter().map(|asked| Request::of(asked, now.unix())).collect(),
        Err(error) => {
            context.ui.note(&format!("what waits for you could not be read: {error}"));
            Vec::new()
        }
    };
    let workspaces = standing.facts.workspaces.iter();
    let workspaces = workspaces.map(|facts| WorkspaceRow::of(facts, &state, owner)).collect();
    let (alerts, more_alerts) = unseen(context, &state)?;
    let config = ConfigRow::of(&PolicyStore::new(&state, owner).settings().set);
    let mut answer = Answer::new(&standing, workspaces, config, pending, (alerts, more_alerts));
    if let Some(next) = &mut answer.next {
        next.command = context.ui.command_line(&next.command);
    }
    show(context, &standing, &answer);
    let broken = standing.grade.steps.iter().any(|step| step.broken)
        || answer.config.as_ref().is_some_and(|config| config.asks.is_some());
    let exit = if broken { Exit::ActionRequired } else { Exit::Success };
    Ok(context.finish(exit, !broken, &answer))
}

/// The grave alerts that nobody has acknowledged, however many others came after them; without any, those
/// of medium weight. And how many more `wardkeep notifications` shows.
fn unseen(context: &mut Context, state: &Path) -> Result<(Vec<Notice>, u64), CliError> {
    if !state.join("journal").is_dir() {
        return Ok((Vec::new(), 0));
    }
    let reader = context.open_reader()?;
    let of = |severity| index::Asked { severity: Some(severity), ..index::Asked::default() };
    let (found, _) = with_index(context, &reader, false, |index| {
        let all = notices::list(&reader, index, &of(Severity::Medium), false, ALERTS)?;
        let grave = notices::list(&reader, index, &of(Severity::High), false, ALERTS)?;
        Ok((all, grave))
    })?;
    let (all, grave) = found;
    let count = all.notices.len() as u64 + all.more;
    let shown = if grave.notices.is_empty() { all.notices } else { grave.notices };
    let more = count.saturating_sub(shown.len() as u64);
    Ok((shown, more))
}

impl Answer {
    fn new(
        standing: &Standing,
        workspaces: Vec<WorkspaceRow>,
        config: Option<ConfigRow>,
        pending: Vec<Request>,
        (alerts, more_alerts): (Vec<Notice>, u64),
    ) -> Self {
        let mut evidence = None;
        if let Some(report) = &standing.report {
            evidence = Some(EvidenceRow {
                holds: report.health.chain_valid,
                records: report.health.records,
                sealed: report.health.seals.as_ref().map(|seals| seals.signed_to),
                judged: report.protection.total_evaluations,
                blocked: report.protection.total_threats_blocked,
                held: report.protection.held_for_owner,
            });
        }
        let mended = config.as_ref().and_then(ConfigRow::next);
        let next = mended.or_else(|| next(standing, &workspaces, &pending, &alerts));
        Self {
            grade: (&standing.grade).into(),
            agents: standing.facts.agents.iter().map(AgentRow::of).collect(),
            workspaces,
            config,
            evidence,
            pending,
            alerts,
            more_alerts,
            next,
        }
    }
}

/// What is broken first, then who waits, then what was proposed, then what nobody has seen, then what
/// would raise the grade most.
fn next(
    standing: &Standing,
    workspaces: &[WorkspaceRow],
    pending: &[Request],
    alerts: &[Notice],
) -> Option<Next> {
    let step = |step: &wardkeep_monitor::grade::Step| Next {
        command: step.command.clone(),
        why: step.what.clone(),
    };
    let steps = &standing.grade.steps;
    if let Some(broken) = steps.iter().find(|step| step.broken) {
        return Some(step(broken));
    }
    let nothing = standing.facts.workspaces.is_empty()
        && standing.facts.agents.iter().all(|agent| agent.asks == Asks::No);
    if nothing {
        let why = "nothing is set up yet: it shows every change and asks once".to_owned();
        return Some(Next { command: "wardkeep init".to_owned(), why });
    }
    if let Some(request) = pending.first() {
        return Some(Next {
            command: format!("wardkeep approvals show {:.10}", request.request),
            why: format!("an agent waits for your answer: {}", request.what),
        });
    }
    if let Some(place) = workspaces.iter().find(|place| place.staged > 0) {
        return Some(Next {
            command: format!("wardkeep diff {}", quoted(&place.workspace)),
            why: format!("{} staged for your approval", many(place.staged, "change")),
        });
    }
    if alerts.iter().any(|alert| alert.severity >= Severity::High) {
        let why = "grave alerts that nobody has acknowledged".to_owned();
        return Some(Next { command: "wardkeep notifications".to_owned(), why });
    }
    steps.first().map(step)
}

fn many(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl Request {
    fn of(asked: Asked, now: i64) -> Self {
        Self {
            request: asked.id.to_string(),
            seconds_left: asked.at.unix() + REQUEST_SECONDS - now,
            session: asked.session,
            what: format!("{} {} {}", asked.surface, asked.act, asked.subject),
        }
    }
}

impl AgentRow {
    fn of(facts: &AgentFacts) -> Self {
        let (asks, why) = match &facts.asks {
            Asks::Yes => ("yes", None),
            Asks::No => ("no", None),
            Asks::Unseen => ("unseen", None),
            Asks::Untrusted { .. } => ("untrusted", None),
            Asks::SwitchedOff(why) => ("switched_off", Some(why.clone())),
        };
        let confined = match facts.confined {
            Confined::Fully => "fully",
            Confined::Partly => "partly",
            Confined::No => "no",
            Confined::Unseen => "unseen",
        };
        Self { agent: facts.name.clone(), asks, why, confined }
    }
}

impl ConfigRow {
    /// `None` where nothing was signed and nothing is there to sign.
    fn of(set: &SetVerification) -> Option<Self> {
        let nothing = set.files.is_empty() && set.memory.last_counter == 0;
        if nothing && matches!(set.state, SetState::Unsigned | SetState::NoKey(_)) {
            return None;
        }
        let changes = match &set.state {
            SetState::Changed(changes) => changes.iter().map(told).collect(),
            _ => Vec::new(),
        };
        let rules = rules::in_force(set);
        let asks = rules.doubt().map(|hit| hit.rule.to_string());
        Some(Self { state: set.state.name(), changes, asks })
    }

    fn next(&self) -> Option<Next> {
        let asks = self.asks.as_deref()?;
        let what = match (asks, self.changes.first()) {
            ("rules-ask-broken", _) => {
                let why = "your rules cannot be used: until they are mended, every action asks";
                let command = "wardkeep rules check".to_owned();
                return Some(Next { command, why: why.to_owned() });
            }
            (_, Some(change)) => format!("{change} since you signed"),
            (_, None) => format!("the signature of your config does not count: {}", self.state),
        };
        Some(Next {
            command: "wardkeep config sign".to_owned(),
            why: format!("{what}: until you look at it and sign, every action asks"),
        })
    }

    fn line(&self, row: Line) -> Line {
        let what = match self.changes.as_slice() {
            [] => self.state.replace('_', " "),
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
        };
        match (self.state, &self.asks) {
            (_, Some(_)) => row.bad(what).plain(": every action asks"),
            ("valid", None) => row.good("signed"),
            ("unsigned", None) => row.warning("not signed: only what tightens holds"),
            (_, None) => row.warning(what),
        }
    }
}

fn told(change: &Change) -> String {
    let how = match change.kind {
        Kind::Modified => "was changed",
        Kind::Removed => "is gone",
        Kind::Added => "was added",
        Kind::Unreadable => "cannot be read",
    };
    format!("{} {how}", change.name)
}

impl WorkspaceRow {
    fn of(facts: &WorkspaceFacts, state: &Path, owner: u32) -> Self {
        let path = Path::new(&facts.path);
        let place = find(state, owner, path, SystemTime::now()).ok().flatten();
        let changes = place.and_then(|place| place.workspace().changes(&|_| {}).ok());
        let (files, drifted) = match facts.files {
            Files::Approved => ("approved", 0),
            Files::Drifted(many) => ("drifted", many),
            Files::Unseen => ("unseen", 0),
        };
        Self {
            workspace: facts.path.clone(),
            keeping: match facts.keeping {
                Keeping::None => "none",
                Keeping::User => "user",
                Keeping::Owned => "owned",
            },
            files,
            drifted,
            policy: match &facts.policy {
                Policy::Valid => "valid".to_owned(),
                Policy::Unsigned => "unsigned".to_owned(),
                Policy::None => "none".to_owned(),
                Policy::Unseen => "unseen".to_owned(),
                Policy::Broken(state) => state.clone(),
            },
            staged: changes.map_or(0, |changes| changes.changes.len()),
        }
    }

    fn lines(&self) -> Line {
        let files = match (self.keeping, self.files) {
            ("none", _) => Line::default().warning("files not kept"),
            (_, "approved") => Line::default().good("files as approved"),
            (_, "drifted") => Line::default().bad(format!("{} drifted", self.drifted)),
            _ => Line::default().warning("files not looked at"),
        };
        let policy = match self.policy.as_str() {
            "valid" => Line::default().good("policy signed"),
            word @ ("none" | "unsigned" | "unseen") => {
                Line::default().warning(format!("policy {word}"))
            }
            word => Line::default().bad(format!("policy {word}")),
        };
        files.plain(", ").join(&policy)
    }
}

fn show(context: &mut Context, standing: &Standing, answer: &Answer) {
    let width = context.ui.width();
    let mut lines = vec![marks::headline(&standing.grade)];
    let row = |label: &str| Line::from(format!("  {label:<11}"));
    let mut agents = row("agents");
    for (number, agent) in answer.agents.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        let name = format!("{comma}{} ", agent.agent);
        agents = match agent.asks {
            "yes" => agents.plain(name).good("asks"),
            "no" => agents.plain(name).warning("does not ask"),
            "unseen" => agents.plain(name).warning("was not looked at"),
            "untrusted" => agents.plain(name).warning("does not trust the hooks yet"),
            _ => agents.plain(name).bad("is SWITCHED OFF"),
        };
    }
    lines.push(match answer.agents.is_empty() {
        true => row("agents").plain("none is known"),
        false => agents,
    });
    for (number, place) in answer.workspaces.iter().take(MOST).enumerate() {
        let label = if number == 0 { "workspaces" } else { "" };
        let path = shown(context, Path::new(&place.workspace));
        lines.push(row(label).plain(format!("{path}: ")).join(&place.lines()));
    }
    match answer.workspaces.len() {
        0 => lines.push(row("workspaces").plain("none is set up")),
        all if all > MOST => lines.push(row("").faint(format!("and {} more", all - MOST))),
        _ => {}
    }
    lines.extend(answer.config.as_ref().map(|config| config.line(row("config"))));
    lines.push(match &answer.evidence {
        None => row("evidence").plain("nothing is recorded yet"),
        Some(found) => {
            let holds = match found.holds {
                true => row("evidence").good("holds"),
                false => row("evidence").bad("DOES NOT HOLD"),
            };
            let sealed = found.sealed.map_or_else(String::new, |to| format!(", {to} sealed"));
            holds.plain(format!(": {} records{sealed}", found.records))
        }
    });
    if let Some(found) = &answer.evidence {
        lines.push(row("judged").plain(format!(
            "{} actions: {} blocked, {} held for you",
            found.judged, found.blocked, found.held
        )));
    }
    waiting(answer, &mut lines);
    for place in answer.workspaces.iter().filter(|place| place.staged > 0).take(1) {
        let path = shown(context, Path::new(&place.workspace));
        lines.push(Line::default().strong(format!(
            "Staged for your approval in {path}: {}",
            many(place.staged, "change")
        )));
    }
    alerts(answer, &mut lines);
    match &answer.next {
        None => lines.push(Line::default().good("Nothing to do.")),
        Some(next) => {
            lines.push(Line::next("").good(&next.command));
            lines.push(Line::from("      ").faint(&next.why));
        }
    }
    for line in lines {
        context.ui.answer(line.fit(width));
    }
}

fn waiting(answer: &Answer, lines: &mut Vec<Line>) {
    if answer.pending.is_empty() {
        return;
    }
    let count = many(answer.pending.len(), "request");
    lines.push(Line::default().warning(format!("Waiting for you: {count}")));
    for request in answer.pending.iter().take(MOST) {
        let left = request.seconds_left.max(0);
        let line = Line::from("  ").strong(format!("{:.10}", request.request));
        let left = format!("  {}:{:02} left  ", left / 60, left % 60);
        lines.push(line.plain(left).plain(&request.what));
    }
}

fn alerts(answer: &Answer, lines: &mut Vec<Line>) {
    if answer.alerts.is_empty() {
        return;
    }
    let all = answer.alerts.len() as u64 + answer.more_alerts;
    lines.push(Line::default().strong(format!("Alerts that nobody has acknowledged: {all}")));
    for alert in answer.alerts.iter().take(MOST) {
        let time = alert.time.get(11..16).unwrap_or_default();
        let grave = format!(" {:<8} ", alert.severity.as_str());
        let line = Line::from(format!("  {time}"));
        let line = match alert.severity {
            Severity::High | Severity::Critical => line.bad(grave),
            _ => line.warning(grave),
        };
        lines.push(line.plain(&alert.message));
    }
    let shown = answer.alerts.len().min(MOST) as u64;
    if all > shown {
        lines.push(Line::from("  ").faint(format!("and {} more", all - shown)));
    }
}
