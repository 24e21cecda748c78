//! Grants for always: `pins/approvals.json` in the signed set.
//!
//! Rules only ever forbid, so a standing approval is no rule but a fact that the rules which ask are
//! told. It counts while the signed set as a whole is valid: whoever changes, adds or removes a
//! byte of the file, or puts an older one back, makes the set invalid, and then no standing grant
//! counts at all. Each grant carries its own signature besides, so that a set which was signed with
//! a line in it that the owner did not approve does not bring that grant into force.

use std::path::Path;

use wardkeep_evidence::bundle::StagedFile;
use wardkeep_evidence::canonical::write_compact;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{self, Object, Value};
use wardkeep_policy::sign::Request as Who;
use wardkeep_policy::signed_set::{SetDraft, SetState, SetVerification};

use super::{ApprovalsError, Grant, GrantKey, Scope};
use crate::policy::Desk;

/// The file, below the state directory.
pub(super) const FILE: &str = "pins/approvals.json";
/// Most standing grants.
const MAX_GRANTS: usize = 1000;

/// A standing grant, and what it allows in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The grant.
    pub grant: Grant,
    /// What it allows. Only for people: the grant's hash decides.
    pub about: String,
}

/// The grants that are in force in a verified set.
pub(super) fn load(set: &SetVerification, key: &GrantKey) -> Vec<Standing> {
    set.signed(FILE).map(|bytes| read(bytes, key)).unwrap_or_default()
}

fn read(bytes: &[u8], key: &GrantKey) -> Vec<Standing> {
    let Ok(Value::Object(file)) = json::parse(bytes) else { return Vec::new() };
    if file.get("version") != Some(&Value::Unsigned(1)) {
        return Vec::new();
    }
    let Some(Value::Array(rows)) = file.get("grants") else { return Vec::new() };
    let one = |row: &Value<'_>| {
        let row = row.as_object()?;
        let text = |key| row.get(key).and_then(Value::as_str);
        let record = RecordId::from_hex(text("record")?)?;
        let (grant, tag) = Grant::read(row, record)?;
        let about = text("about").unwrap_or_default().to_owned();
        let holds = grant.scope == Scope::Always && key.verify(&grant, &tag);
        holds.then_some(Standing { grant, about })
    };
    rows.iter().take(MAX_GRANTS).filter_map(one).collect()
}

fn write(standing: &[Standing], key: &GrantKey) -> Vec<u8> {
    let row = |one: &Standing| {
        let mut row = Object::default();
        row.push("about", Value::from(one.about.clone()));
        one.grant.write(&key.sign(&one.grant), &mut row);
        row.push("record", Value::from(one.grant.record.to_string()));
        Value::Object(row)
    };
    // A line each, so that the owner sees what is signed.
    let mut bytes = b"{\"version\":1,\"grants\":[".to_vec();
    for (position, one) in standing.iter().enumerate() {
        bytes.extend_from_slice(if position > 0 { b",\n" } else { b"\n" });
        write_compact(&row(one), &mut bytes);
    }
    bytes.extend_from_slice(b"\n]}\n");
    bytes
}

/// Whether the set may be signed again for the sake of this file alone. What the owner has not
/// signed is not signed along with it.
pub(super) fn check(set: &SetVerification) -> Result<(), ApprovalsError> {
    match &set.state {
        SetState::Valid => Ok(()),
        SetState::Unsigned if set.files.is_empty() => Ok(()),
        state => Err(ApprovalsError::Set(state.name())),
    }
}

/// Changes the file and signs the set, in which nothing else may have changed.
pub(super) fn change(
    desk: &Desk<'_>,
    key: &GrantKey,
    who: &Who,
    change: impl FnOnce(&mut Vec<Standing>),
) -> Result<Vec<Standing>, ApprovalsError> {
    let set = desk.policy().settings().set;
    check(&set)?;
    let mut standing = load(&set, key);
    change(&mut standing);
    if standing.len() > MAX_GRANTS {
        return Err(ApprovalsError::Full(MAX_GRANTS));
    }
    sign_along(desk, set, FILE, write(&standing, key), who)?;
    Ok(standing)
}

/// Writes a file of the set below `pins` and signs the set as it was found, `set`, with that file in it:
/// nothing else may have changed.
pub(crate) fn sign_along(
    desk: &Desk<'_>,
    set: SetVerification,
    file: &str,
    bytes: Vec<u8>,
    who: &Who,
) -> Result<(), ApprovalsError> {
    check(&set)?;
    let state = desk.policy().state().to_owned();
    put(&state, file, &bytes)?;
    let draft = SetDraft::read(&state).map_err(|error| ApprovalsError::Sign(error.to_string()))?;
    let mut expected = set.files;
    expected.insert(file.to_owned(), bytes);
    if *draft.files() != expected {
        return Err(ApprovalsError::Set("changed"));
    }
    desk.sign_set(&draft, who).map_err(|error| ApprovalsError::Sign(error.to_string()))?;
    Ok(())
}

/// Puts the file in its place. It is written beside the folder: every file in that belongs to the
/// set, even one that is there for a moment.
fn put(state: &Path, file: &str, bytes: &[u8]) -> Result<(), ApprovalsError> {
    use std::io::Write as _;
    use std::os::unix::fs::DirBuilderExt as _;
    let path = state.join(file);
    let failed = |action, error| ApprovalsError::Io { action, path: path.clone(), error };
    let folder = state.join("pins");
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(failed("make the folder of", error));
        }
        _ => {}
    }
    if !folder.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        let error = std::io::Error::other("its folder is not a directory");
        return Err(failed("write", error));
    }
    let beside = file.rsplit('/').next().unwrap_or(file);
    let mut staged = StagedFile::create(&state.join(beside), 0o600)?;
    staged.file().write_all(bytes).map_err(|error| failed("write", error))?;
    staged.retarget(path.clone());
    Ok(staged.commit(true)?)
}
