//! The log of evidence, for the page: what lies there, and what was checked.

use std::sync::PoisonError;

use wardkeep_evidence::verify::Trust;
use wardkeep_gateway::page::{AnchorRow, Chain, FullCheck, Outcome, Trouble};
use wardkeep_monitor::anchor::Surroundings;
use wardkeep_monitor::anchor::outbox::{Outbox, Status};
use wardkeep_monitor::index::Filter;
use wardkeep_monitor::journal::parse_line;
use wardkeep_monitor::sealer::{CHECKPOINTS, last_seal};
use wardkeep_monitor::verify::verify_store;

use super::{Desk, trouble};
use crate::commands::evidence::anchor::{place, words};
use crate::commands::evidence::report::{self, configured_witnesses};
use crate::ui::Line;

/// Seconds of a slot that a seal covers.
const SLOT: u64 = wardkeep_evidence::seal::SLOT_SECONDS;

/// What lies there. Nothing of it is verified but the newest record's own id.
pub(super) fn chain(desk: &Desk) -> Outcome<Chain> {
    let (records, newest) = desk.looked(|reader, index| {
        let place = index.newest(&Filter::default(), 1)?.into_iter().next();
        let text = place.and_then(|place| reader.folder().read_line(place).ok());
        let newest = text.as_deref().and_then(parse_line).map(|line| {
            let time = line.record.timestamp().unwrap_or_default().to_owned();
            (line.record.id.to_string(), time, line.entry.hash.to_string())
        });
        Ok((index.records()?, newest))
    })?;
    let seal = last_seal(&desk.state.join(CHECKPOINTS)).map_err(trouble)?;
    let seal = seal.map(|(_, seal)| (seal.size, report::time(seal.slots.1.saturating_mul(SLOT))));
    let around = Surroundings::new(String::new().into());
    let outbox = Outbox::open(&desk.state, around).map_err(trouble)?;
    let looked = desk.evidence.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let full = desk.full.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let anchors = outbox.list().iter().map(anchor).collect();
    Ok(Chain { records, newest, seal, anchors, looked, full })
}

fn anchor(status: &Status<'_>) -> AnchorRow {
    let Status { config, state } = status;
    let failure = state.last_failure.as_ref().filter(|_| state.failures > 0);
    AnchorRow {
        name: config.name.clone(),
        place: place(&config.place),
        taken: state.last_success.map(|at| (state.last_size, report::time(at))),
        alarm: state.alarm.map(words),
        failure: failure.map(|failure| failure.message.clone()),
    }
}

/// Verifies everything, one at a time.
pub(super) fn verify(desk: &Desk) -> Outcome<FullCheck> {
    let Ok(_one) = desk.verifying.try_lock() else {
        return Err(Trouble::new("it is being verified already", "look again in a while"));
    };
    let reader = desk.reader()?;
    let at = desk.clock.now().to_string();
    let trust = Trust { witnesses: configured_witnesses(&reader), ..Trust::default() };
    let found = verify_store(&reader, &trust, desk.threads, &mut |_| {}).map_err(trouble)?;
    let row = |row: &Vec<Line>| {
        let mut texts = row.iter().map(Line::text);
        (texts.next().unwrap_or_default(), texts.next().unwrap_or_default())
    };
    let full = FullCheck {
        at,
        passed: found.passed(),
        reach: report::reach(&found, &trust).iter().map(row).collect(),
        findings: report::findings(&found.findings).collect(),
    };
    *desk.full.lock().unwrap_or_else(PoisonError::into_inner) = Some(full.clone());
    Ok(full)
}
