//! Trials of the owner's: a session in which `install` and `doctor` see that a hook answers as it must.
//! It is judged and recorded like any other. Its records tell of a trial, and no alert is made of them and
//! nothing is counted as an attack.
//!
//! An agent cannot have its session taken for one: the owner writes its name down before it begins, with
//! random digits in it that no agent has seen, and that it is over as soon as it is.

use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::surface::is_owner;

use super::{Monitor, Result, held};
use crate::index::{Filter, Said};
use crate::journal::parse_line;
use crate::store::{Event, Store, StoreError};

/// How the agent's own id of such a session begins.
pub const TRIAL: &str = "self-test-";
/// Who writes it down.
const WARDKEEP: &str = "wardkeep";
/// How long one may take.
const SECONDS: u64 = 120;
/// Records of the owner's that are looked at for it, the newest first.
const LOOKED_AT: u32 = 64;

/// Writes down that a session with this name, which nobody else knows, is a trial.
///
/// # Errors
/// When it cannot be written.
pub fn begin_trial(store: &Store, session: &str) -> std::result::Result<(), StoreError> {
    write(store, "begins", session)
}

/// Writes down that the trial is over: whatever has this name from now on is none.
///
/// # Errors
/// When it cannot be written.
pub fn end_trial(store: &Store, session: &str) -> std::result::Result<(), StoreError> {
    write(store, "ends", session)
}

fn write(store: &Store, key: &'static str, session: &str) -> std::result::Result<(), StoreError> {
    let content = Value::from([
        ("kind", Value::from(Said::Trial.as_str())),
        ("v", Value::from(1u64)),
        (key, Value::from(session.to_owned())),
    ]);
    let event = Event::new(RecordType::GuardDecision, Principal::User, content);
    store.append(Event { agent: WARDKEEP, ..event })?;
    Ok(())
}

impl Monitor {
    /// Whether a session is a trial of the owner's, now.
    pub(super) fn on_trial(&self, session: &str) -> Result<bool> {
        if !session.split_once(':').is_some_and(|(_, id)| id.starts_with(TRIAL)) {
            return Ok(false);
        }
        let folder = self.store.journal().folder();
        let filter = Filter {
            agent: Some(WARDKEEP.to_owned()),
            kind: Some(RecordType::GuardDecision),
            ..Filter::default()
        };
        let places = {
            let mut index = held(&self.index);
            index.catch_up(folder, &mut |_| {})?;
            index.newest(&filter, LOOKED_AT)?
        };
        for place in places {
            let text = folder.read_line(place).map_err(StoreError::from)?;
            let Some(line) = parse_line(&text).filter(|line| {
                filter.matches(line)
                    && is_owner(line.record.principal)
                    && line.record.compute_id(&mut Vec::new()) == line.record.id
            }) else {
                continue;
            };
            let Payload::Inline(Value::Object(content)) = &line.record.payload else { continue };
            let names = |key: &str| is_trial(content) && text_of(content, key) == Some(session);
            if names("ends") {
                return Ok(false);
            }
            if names("begins") {
                let time = line.record.timestamp();
                let begun = time.and_then(|time| time.parse::<Timestamp>().ok());
                let now = self.store.now().unix();
                return Ok(begun.is_some_and(|begun| now.abs_diff(begun.unix()) <= SECONDS));
            }
        }
        Ok(false)
    }
}

fn is_trial(content: &Object<'_>) -> bool {
    text_of(content, "kind") == Some(Said::Trial.as_str())
}

fn text_of<'a>(content: &'a Object<'_>, key: &str) -> Option<&'a str> {
    content.get(key).and_then(Value::as_str)
}
