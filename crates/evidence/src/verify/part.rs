//! Partial bundles: what they are a part of, and the proof that their records are in it.

use serde::Deserialize;

use super::ids::Ids;
use super::lines::is_padded;
use super::pipeline::each_chunk;
use super::seals::refuse;
use crate::check::{Check, Finding, Findings, Mode, Place};
use crate::entry::Entry;
use crate::hash::RecordId;
use crate::json::{self, Value};
use crate::merkle::{self, TreeHash};
use crate::source::{SEALS, Source};

/// What a partial bundle is a part of, under `seals/`.
pub const PART: &str = "part.json";
/// The original entries of a partial bundle with their proofs, under `seals/`.
pub const PART_ENTRIES: &str = "entries.jsonl";

/// `seals/part.json`: what a filtered bundle is a part of.
#[derive(Debug, Clone, serde::Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartDescription {
    /// Version of this description: 1.
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Entries in the log when the part was taken.
    pub total: u64,
    /// Entries under the seal that the proofs lead to; 0 if there was none.
    pub sealed: u64,
    /// How the part was chosen.
    pub selection: serde_json::Value,
    /// Parents of its records that are not in it.
    pub omitted_parents: Vec<RecordId>,
}

/// What a partial bundle is a part of.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct PartReport {
    /// Name of the log.
    pub origin: String,
    /// Entries in the log when the part was taken.
    pub total: u64,
    /// Records of this bundle that are proven to be in the sealed log.
    pub proven: u64,
    /// Records of this bundle that no seal covered yet.
    pub unsealed: u64,
    /// Parents of its records that are not in it.
    pub omitted_parents: u64,
    /// How it was chosen, as the exporter says.
    pub selection: serde_json::Value,
}

/// Checks the original entries of a part and their inclusion; gives how many are proven and how
/// many no seal covers.
pub(super) fn check_entries(
    source: &mut dyn Source,
    ids: &Ids,
    records: u64,
    part: &PartDescription,
    head: Option<(u64, TreeHash)>,
    findings: &mut Findings,
) -> (u64, u64) {
    let path = format!("{SEALS}/{PART_ENTRIES}");
    let mut reader = match source.open(&path) {
        Ok(reader) => reader,
        Err(error) => {
            let expected = "the original entries";
            refuse(findings, Check::PartEntry, PART_ENTRIES, expected, error.to_string());
            return (0, 0);
        }
    };
    let (mut position, mut proven, mut unsealed) = (0u64, 0u64, 0u64);
    let mut last_index = None;
    let ending = each_chunk(
        &mut *reader,
        1,
        |chunk| chunk.lines().map(|(line, text)| (line, read_entry(text))).collect::<Vec<_>>(),
        |batch| {
            for (line, read) in batch {
                let place = Place::line(&path, line).at(position);
                let mut bad = |check, expected: String, found: String| {
                    let finding = Finding::new(check, place.clone(), expected, found);
                    findings.push(Mode::Strict, finding);
                };
                let expected_id = ids.at(position);
                position += 1;
                let (entry, proof) = match read {
                    Ok(read) => read,
                    Err(why) => {
                        bad(Check::PartEntry, "an original entry".to_owned(), why);
                        continue;
                    }
                };
                if expected_id != Some(entry.record) {
                    let expected = expected_id.map_or("no more".to_owned(), |id| id.to_string());
                    bad(Check::PartEntry, expected, entry.record.to_string());
                    continue;
                }
                if last_index.is_some_and(|last| entry.index <= last) {
                    let expected = "entries in the order of the log".to_owned();
                    bad(Check::PartEntry, expected, format!("index {}", entry.index));
                    continue;
                }
                last_index = Some(entry.index);
                if entry.index >= part.total {
                    let expected = format!("one of {} entries", part.total);
                    bad(Check::PartEntry, expected, format!("index {}", entry.index));
                    continue;
                }
                let computed = entry.compute_hash(&mut Vec::new());
                if computed != entry.hash {
                    bad(Check::PartEntry, computed.to_string(), entry.hash.to_string());
                    continue;
                }
                match (proof, head) {
                    (None, _) if entry.index < part.sealed => {
                        let expected = "a proof, since a seal covers it".to_owned();
                        bad(Check::PartProof, expected, "none".to_owned());
                    }
                    (None, _) => unsealed += 1,
                    (Some(_), None) => {
                        bad(
                            Check::PartProof,
                            "a seal to prove it by".to_owned(),
                            "none".to_owned(),
                        );
                    }
                    (Some(proof), Some((size, root))) => {
                        let checked = merkle::verify_inclusion(
                            &entry.leaf(),
                            entry.index,
                            size,
                            &proof,
                            &root,
                        );
                        match checked {
                            Ok(()) => proven += 1,
                            Err(error) => bad(
                                Check::PartProof,
                                format!("inclusion in {size} entries"),
                                error.to_string(),
                            ),
                        }
                    }
                }
            }
        },
    );
    match ending {
        Ok(ending) if ending.unterminated => {
            let place = Place::line(&path, ending.lines);
            let check = Check::LineUnterminated;
            findings.push(Mode::Strict, Finding::new(check, place, "a newline at the end", "none"));
        }
        Ok(_) => {}
        Err(error) => {
            let expected = "readable lines";
            refuse(findings, Check::PartEntry, PART_ENTRIES, expected, error.to_string());
        }
    }
    if position != records {
        let expected = format!("{records} original entries");
        refuse(findings, Check::PartEntry, PART_ENTRIES, &expected, position.to_string());
    }
    (proven, unsealed)
}

/// An entry line with a member `proof`: an array of hashes, or null where no seal covers it.
fn read_entry(text: &[u8]) -> Result<(Entry, Option<Vec<TreeHash>>), String> {
    if is_padded(text) {
        return Err("white space around it".to_owned());
    }
    let Value::Object(mut object) = json::parse(text).map_err(|error| error.to_string())? else {
        return Err("not an object".to_owned());
    };
    let at = object.members.iter().position(|(key, _)| key == "proof").ok_or("no `proof`")?;
    let proof = match object.members.remove(at).1 {
        Value::Null => None,
        Value::Array(items) if items.len() <= 64 => {
            let hashes = items.iter().map(|item| {
                let text = item.as_str().ok_or("a proof holds something else than hashes")?;
                TreeHash::from_base64(text).map_err(|_| "a proof holds something else than hashes")
            });
            Some(hashes.collect::<Result<Vec<_>, _>>()?)
        }
        _ => return Err("`proof` is neither null nor an array of hashes".to_owned()),
    };
    let mut defects = Vec::new();
    let entry = Entry::from_value(Value::Object(object), &mut |_, expected, found| {
        defects.push(format!("expected {expected}, found {found}"));
    });
    match (entry, defects.is_empty()) {
        (Some(entry), true) => Ok((entry, proof)),
        _ => Err(defects.join("; ")),
    }
}
