//! `wardkeep approvals show`

use wardkeep_evidence::hash::RecordId;
use wardkeep_monitor::approvals::{Approvals, ApprovalsError, Content, Shown, Status};

use super::open;
use crate::commands::evidence::resolve::find_record;
use crate::commands::md::diff;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows exactly what a request asks for, and where it came from
///
/// Everything is shown, however long; what a terminal could take for a command is escaped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The request: its id, or at least the first 8 digits of it
    request: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let approvals = open(context)?;
    let shown = find(context, &approvals, &args.request)?;
    print(context, &shown);
    if shown.status == Status::Pending && shown.consistent {
        let id = &shown.request[..10];
        context.ui.hint(&format!(
            "`wardkeep approvals approve {id}` lets it pass once, `wardkeep approvals deny {id}` denies it"
        ));
    }
    Ok(context.finish(Exit::Success, shown.consistent, &shown))
}

/// The request whose id begins with `prefix`, whether it waits or not.
pub(super) fn find(
    context: &Context,
    approvals: &Approvals,
    prefix: &str,
) -> Result<Shown, CliError> {
    let now = context.now()?;
    let reader = context.open_reader()?;
    let line = match approvals.line(prefix, now) {
        Ok(line) => line,
        Err(error @ (ApprovalsError::Ambiguous(_) | ApprovalsError::NotAnId(_))) => {
            return Err(error.into());
        }
        // It waits no more, and is in the journal all the same.
        Err(_) => find_record(&reader, prefix)?.1,
    };
    let parent = |id: RecordId| find_record(&reader, &id.to_string()).ok().map(|(_, line)| line);
    Ok(approvals.show(&line, now, &parent)?)
}

pub(super) fn print(context: &mut Context, shown: &Shown) {
    let state = match shown.status {
        Status::Pending => format!("waits until {}", shown.expires),
        Status::Approved => "was approved".to_owned(),
        Status::Denied => "was denied".to_owned(),
        Status::Expired => format!("ended at {}, which is a denial", shown.expires),
    };
    context.ui.answer(Line::from("Request ").strong(&shown.request).plain(format!(" {state}")));
    let or_none = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let others: Vec<String> =
        shown.rules.iter().filter(|rule| **rule != shown.rule).cloned().collect();
    let mut rows = vec![
        ("what", format!("{} ({})", shown.act, shown.surface)),
        ("subject", shown.subject.clone()),
        ("for", shown.principal.clone()),
        ("agent", format!("{} in session {}", shown.agent, shown.session)),
        ("workspace", shown.workspace.clone()),
        ("asked at", shown.at.clone()),
        ("rule", shown.rule.clone()),
        ("also matched", or_none(&others)),
        ("reason", shown.reason.clone()),
        ("taint of its own", or_none(&shown.direct)),
        ("taint of session", or_none(&shown.ambient)),
        ("action", shown.action.clone()),
    ];
    rows.extend(shown.how.clone().map(|how| ("how", how)));
    rows.extend(shown.severity.clone().map(|severity| ("severity", severity)));
    rows.extend(shown.suggestion.clone().map(|suggestion| ("suggestion", suggestion)));
    let rows: Vec<Vec<Line>> =
        rows.into_iter().map(|(name, value)| vec![name.into(), value.into()]).collect();
    context.ui.answer_table(&rows);
    contents(context, shown);
    if !shown.parents.is_empty() {
        context.ui.answer("It came from:");
        let rows: Vec<Vec<Line>> = shown.parents.iter().map(parent).collect();
        context.ui.answer_table(&rows);
        if shown.more_parents > 0 {
            context.ui.answer(format!("  and {} more", shown.more_parents));
        }
    }
    if !shown.consistent {
        context.ui.fault(
            "it asks for something else than it shows, so it cannot be approved: see `wardkeep evidence verify`",
        );
    }
}

fn parent(parent: &wardkeep_monitor::approvals::Parent) -> Vec<Line> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        Line::from(format!("{:.10}", parent.record)),
        parent.kind.as_deref().unwrap_or("not in the journal").into(),
        text(&parent.principal).into(),
        text(&parent.at).into(),
        parent.taint.join("|").into(),
        text(&parent.subject).into(),
    ]
}

/// What is to be written: as a change of what is there, where both were kept.
fn contents(context: &mut Context, shown: &Shown) {
    let Some(content) = &shown.content else { return };
    let Content { sha256, bytes, text } = content;
    let before = shown.before.as_ref().and_then(|before| before.text.as_deref());
    match (before, text) {
        (_, None) => {
            context.ui.answer(format!("Content: {bytes} bytes, not kept (sha256 {sha256})"));
        }
        (None, Some(text)) => {
            context.ui.answer(format!("Content: {bytes} bytes (sha256 {sha256})"));
            text.lines().for_each(|line| context.ui.answer(format!("  {line}")));
        }
        (Some(before), Some(text)) => {
            context.ui.answer(format!("Change, to {bytes} bytes (sha256 {sha256}):"));
            diff::show(context, before, text);
        }
    }
}
