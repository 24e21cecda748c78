//! `wardkeep approvals list`

use std::path::PathBuf;
use std::time::SystemTime;

use serde::Serialize;
use wardkeep_monitor::approvals::{Asked, Grant, REQUEST_SECONDS, Standing};
use wardkeep_monitor::identity::find;
use wardkeep_policy::store::PolicyStore;

use super::open;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, quoted};

/// Shows the requests that wait for an answer, and the approvals in force
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Answer {
    pending: Vec<Request>,
    approvals: Vec<Approval>,
    forged: Vec<String>,
}

#[derive(Serialize)]
struct Request {
    request: String,
    at: String,
    seconds_left: i64,
    session: String,
    act: String,
    surface: String,
    subject: String,
    rule: String,
    reason: String,
    action: String,
    count: u64,
}

#[derive(Serialize)]
struct Approval {
    record: String,
    request: String,
    scope: &'static str,
    expires: Option<String>,
    session: String,
    action: String,
    declassifies: Vec<&'static str>,
    about: Option<String>,
}

impl Request {
    fn of(asked: Asked, now: i64) -> Self {
        Self {
            request: asked.id.to_string(),
            at: asked.at.to_string(),
            seconds_left: asked.at.unix() + REQUEST_SECONDS - now,
            session: asked.session,
            act: asked.act,
            surface: asked.surface,
            subject: asked.subject,
            rule: asked.rule,
            reason: asked.reason,
            action: asked.action.to_string(),
            count: asked.count,
        }
    }
}

impl Approval {
    fn of(grant: &Grant, about: Option<String>) -> Self {
        Self {
            record: grant.record.to_string(),
            request: grant.request.to_string(),
            scope: grant.scope.as_str(),
            expires: grant.expires.map(|time| time.to_string()),
            session: grant.session.clone(),
            action: grant.action.to_string(),
            declassifies: grant.declassifies.names().collect(),
            about,
        }
    }
}

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    let approvals = open(context)?;
    let now = context.now()?;
    let pending = approvals.pending(now)?;
    let pending: Vec<_> = pending.into_iter().map(|asked| Request::of(asked, now.unix())).collect();
    let (given, standing) = approvals.in_force(now)?;
    let given = given.iter().map(|grant| Approval::of(grant, None));
    let standing =
        standing.into_iter().map(|Standing { grant, about }| Approval::of(&grant, Some(about)));
    let in_force: Vec<Approval> = given.chain(standing).collect();
    let forged: Vec<String> = approvals.forged()?.iter().map(ToString::to_string).collect();
    show(context, &pending, &in_force);
    if let Some(path) = staged(context) {
        let path = quoted(&path.to_string_lossy());
        context.ui.hint(&format!(
            "changes of protected files wait to be applied: see `wardkeep diff {path}`"
        ));
    }
    for record in &forged {
        context.ui.fault(format!(
            "the approval in record {record:.10} was not signed with the key of this machine: it counts for nothing"
        ));
    }
    let ok = forged.is_empty();
    let answer = Answer { pending, approvals: in_force, forged };
    Ok(context.finish(Exit::Success, ok, &answer))
}

/// A workspace in which changes are staged for the owner.
fn staged(context: &Context) -> Option<PathBuf> {
    let state = context.state_dir().ok()?;
    let owner = rustix::process::geteuid().as_raw();
    let mut workspaces = PolicyStore::new(&state, owner).workspaces();
    workspaces.sort_unstable();
    workspaces.into_iter().find(|path| {
        let place = find(&state, owner, path, SystemTime::now()).ok().flatten();
        let changes = place.and_then(|place| place.workspace().changes(&|_| {}).ok());
        changes.is_some_and(|changes| !changes.changes.is_empty())
    })
}

/// Longest text in a row.
const WIDEST: usize = 48;

fn show(context: &mut Context, pending: &[Request], in_force: &[Approval]) {
    if pending.is_empty() {
        context.ui.say("No requests.");
    } else {
        let mut rows =
            vec![["request", "left", "session", "what", "rule"].map(Line::from).to_vec()];
        rows.extend(pending.iter().map(|one| {
            let times =
                if one.count > 1 { format!(" ({} times)", one.count) } else { String::new() };
            let what = format!("{} {} {}{times}", one.surface, one.act, cut(&one.subject));
            let left = format!("{}:{:02}", one.seconds_left / 60, one.seconds_left % 60);
            vec![
                Line::default().strong(format!("{:.10}", one.request)),
                left.into(),
                cut(&one.session).into(),
                what.into(),
                cut(&one.rule).into(),
            ]
        }));
        context.ui.answer_table(&rows);
        context.ui.hint("look at one with `wardkeep approvals show ID` before you approve it");
    }
    if !in_force.is_empty() {
        context.ui.say("In force:");
        let mut rows = vec![["approval", "scope", "until", "for"].map(Line::from).to_vec()];
        rows.extend(in_force.iter().map(|one| {
            let what = one.about.clone().unwrap_or_else(|| format!("request {:.10}", one.request));
            let until = one.expires.clone().unwrap_or_else(|| "taken back".to_owned());
            vec![
                Line::from(format!("{:.10}", one.record)),
                one.scope.into(),
                until.into(),
                cut(&what).into(),
            ]
        }));
        context.ui.table(&rows);
    }
}

fn cut(text: &str) -> String {
    let text = crate::ui::harmless(text);
    if text.chars().count() <= WIDEST {
        return text;
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}
