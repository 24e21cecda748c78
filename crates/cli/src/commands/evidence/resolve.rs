//! Records by their id or the beginning of it.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use wardkeep_evidence::hash::RecordId;
use wardkeep_monitor::index::Index;
use wardkeep_monitor::journal::{Position, parse_line, scan};
use wardkeep_monitor::store::StoreReader;

use crate::error::CliError;

/// Fewest digits that are taken for the beginning of an id.
const SHORTEST: usize = 8;

/// The record that `text` names: a whole id, or a beginning that only one id has.
pub(crate) fn resolve_record(reader: &StoreReader, text: &str) -> Result<RecordId, CliError> {
    find_record(reader, text).map(|(id, _)| id)
}

/// The record that `text` names, and its line in the journal. The index says where to look; what it
/// does not find, or is wrong about, is looked for in all of the journal.
pub(crate) fn find_record(
    reader: &StoreReader,
    text: &str,
) -> Result<(RecordId, Vec<u8>), CliError> {
    let hexadecimal = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !hexadecimal || !(SHORTEST..=64).contains(&text.len()) {
        return Err(CliError::refused(
            format!("`{text}` is no record id"),
            format!("give the 64 hexadecimal digits of one, or at least its first {SHORTEST}"),
        ));
    }
    let mut found = match find_by_index(reader, text) {
        Some(found) => found,
        None => find_by_reading(reader, text)?,
    };
    let first = found.pop_first();
    match (first, found.is_empty()) {
        (Some(record), true) => Ok(record),
        (Some(_), false) => Err(CliError::refused(
            format!("several records begin with `{text}`"),
            "give more digits of the id",
        )),
        (None, _) if text.len() == 64 => Err(CliError::refused(
            format!("the record {text} is not in the journal"),
            "see the ids with `wardkeep log`",
        )),
        (None, _) => Err(CliError::refused(
            format!("no record begins with `{text}`"),
            "see the ids with `wardkeep log`",
        )),
    }
}

/// `None` where the index finds nothing, or anything about it is wrong.
fn find_by_index(reader: &StoreReader, text: &str) -> Option<BTreeMap<RecordId, Vec<u8>>> {
    let first = RecordId::from_hex(&format!("{text:0<64}"))?;
    let last = RecordId::from_hex(&format!("{text:f<64}"))?;
    let mut index = Index::open(reader.path()).ok()?;
    index.catch_up(reader.folder(), &mut |_| {}).ok()?;
    let mut found = BTreeMap::new();
    for location in index.between(first, last, 4).ok()? {
        let line = reader.folder().read_line(location).ok()?;
        let id = parse_line(&line)?.record.id;
        if !(first..=last).contains(&id) {
            return None;
        }
        found.insert(id, line);
    }
    (!found.is_empty()).then_some(found)
}

fn find_by_reading(
    reader: &StoreReader,
    text: &str,
) -> Result<BTreeMap<RecordId, Vec<u8>>, CliError> {
    let mut found = BTreeMap::new();
    scan(reader.folder(), Position::START, |_, line| {
        if let Some(parsed) = parse_line(line)
            && parsed.record.id.to_string().starts_with(text)
        {
            found.insert(parsed.record.id, line.to_vec());
        }
        if found.len() > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

/// Refuses parents that are not in the journal: a chain of causes must not begin nowhere.
pub(crate) fn require_parents(reader: &StoreReader, parents: &[RecordId]) -> Result<(), CliError> {
    if parents.is_empty() {
        return Ok(());
    }
    let mut missing: HashSet<RecordId> = parents.iter().copied().collect();
    if let Ok(mut index) = Index::open(reader.path()) {
        let _ = index.catch_up(reader.folder(), &mut |_| {});
        for id in parents {
            let line = index
                .location(*id)
                .ok()
                .flatten()
                .and_then(|location| reader.folder().read_line(location).ok());
            if line.is_some_and(|line| parse_line(&line).is_some_and(|line| line.record.id == *id))
            {
                missing.remove(id);
            }
        }
    }
    if !missing.is_empty() {
        scan(reader.folder(), Position::START, |_, line| {
            if let Some(line) = parse_line(line) {
                missing.remove(&line.record.id);
            }
            if missing.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    match missing.into_iter().next() {
        None => Ok(()),
        Some(id) => Err(CliError::refused(
            format!("the parent {id} is not in the journal"),
            "append it first, or see the ids with `wardkeep log`",
        )),
    }
}
