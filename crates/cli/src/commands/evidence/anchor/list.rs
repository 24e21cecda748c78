//! `evidence anchor list`

use serde::Serialize;
use wardkeep_monitor::anchor::outbox::{AnchorConfig, AnchorState, Status};

use super::super::report::time;
use super::{open, place, trouble, words};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Lists the anchors: how far each has come, and what went wrong
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Answer<'a> {
    anchors: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    config: &'a AnchorConfig,
    #[serde(flatten)]
    state: &'a AnchorState,
}

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    let outbox = open(context)?;
    let statuses = outbox.list();
    if statuses.is_empty() {
        context.ui.say("No anchors: see `wardkeep evidence anchor add --help`");
    } else {
        let header = ["name", "kind", "place", "records", "when"].map(Line::from).to_vec();
        let rows = statuses.iter().map(row);
        let rows: Vec<Vec<Line>> = std::iter::once(header).chain(rows).collect();
        context.ui.answer_table(&rows);
    }
    let calm = statuses.iter().all(|status| status.state.alarm.is_none());
    for Status { config, state } in &statuses {
        if let Some(alarm) = state.alarm {
            context.ui.fault(Line::from(format!("{}: ", config.name)).bad(words(alarm)));
        }
        if let Some(failure) = state.last_failure.as_ref().filter(|_| state.failures > 0) {
            let (at, next) = (time(failure.at), time(state.next_attempt));
            context.ui.fault(format!(
                "{}: {} ({at}, attempt {}, again from {next})",
                config.name,
                trouble(&config.name, &failure.message),
                state.failures
            ));
        }
    }
    let anchors =
        statuses.iter().map(|status| Listed { config: status.config, state: status.state });
    let answer = Answer { anchors: anchors.collect() };
    Ok(context.finish(Exit::Success, calm, &answer))
}

fn row(status: &Status<'_>) -> Vec<Line> {
    let Status { config, state } = status;
    let (records, when) = match state.last_success {
        Some(at) => (state.last_size.to_string(), time(at)),
        None => ("-".to_owned(), "never".to_owned()),
    };
    let place = place(&config.place);
    [config.name.as_str(), config.place.kind(), &place, &records, &when].map(Line::from).to_vec()
}
