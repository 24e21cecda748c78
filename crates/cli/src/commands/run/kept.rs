//! Files that a program gets a copy of, since they steer it as well as serve it: what of a copy is kept.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat,
};
use serde_json::{Map, Value};
use tempfile::NamedTempFile;
use wardkeep_sandbox::Spec;

use crate::context::Context;
use crate::error::CliError;

/// Larger than any such file.
const LARGEST: u64 = 16 << 20;
/// What a program may change: counts, and what it has shown already. Servers, hooks, trust, permissions and
/// accounts are none of it.
const KEPT: &[(&str, Fits)] = &[
    ("firstStartTime", is_word),
    ("hasCompletedOnboarding", Value::is_boolean),
    ("lastOnboardingVersion", is_word),
    ("lastReleaseNotesSeen", is_word),
    ("memoryUsageCount", Value::is_number),
    ("numStartups", Value::is_number),
    ("promptQueueUseCount", Value::is_number),
    ("tipsHistory", is_counts),
    ("userID", is_word),
];
/// Whether something is what a key may hold.
type Fits = fn(&Value) -> bool;
/// Longest word: nothing that could be read as a sentence.
const LONGEST_WORD: usize = 80;
/// Most counts under one key.
const MOST_COUNTS: usize = 1000;
/// What is kept for the workspace under this key: figures of the last session.
const PROJECTS: &str = "projects";
const LAST: &str = "last";

/// Where copies lie in the state directory, which nobody inside sees.
const FOLDER: &str = "copies";
/// What their names begin with; twelve digits follow.
const NAME: &str = "copy-";

/// The copies of a run; they go with this, and those of runs that were killed go with the next run.
pub(super) struct Kept {
    files: Vec<(PathBuf, Copied)>,
    workspace: PathBuf,
}

impl Kept {
    /// Makes a copy of each file, and has it stand for the file. What only is to be shown needs no copy of
    /// anything.
    pub(super) fn new(spec: &mut Spec, state: &Path, starts: bool) -> Result<Self, CliError> {
        let folder = state.join(FOLDER);
        let mut files = Vec::new();
        if starts {
            reap(&folder);
        }
        for (path, stand_in) in &mut spec.private {
            if !starts {
                continue;
            }
            let failed = |error: std::io::Error| CliError::io("copy", path, &error);
            let bytes = read(path).map_err(failed)?.unwrap_or_else(|| b"{}\n".to_vec());
            let copied = Copied::new(&folder, &bytes).map_err(failed)?;
            copied.path.clone_into(stand_in);
            files.push((path.clone(), copied));
        }
        Ok(Self { files, workspace: spec.workspace.clone() })
    }

    /// Keeps what does no harm, and tells what was not kept.
    pub(super) fn finish(self, context: &mut Context) {
        for (path, file) in &self.files {
            match keep(path, &file.path, &self.workspace) {
                Ok(left) if left.is_empty() => {}
                Ok(left) => context.ui.note(&format!(
                    "of what it wrote to `{}` this was not kept: {}",
                    path.display(),
                    left.join(", ")
                )),
                Err(why) => context
                    .ui
                    .note(&format!("what it wrote to `{}` was not kept: {why}", path.display())),
            }
        }
    }
}

/// A copy. Its lock tells that the run lives: the system takes it away with the process.
struct Copied {
    path: PathBuf,
    folder: OwnedFd,
    name: OsString,
    file: File,
}

impl Copied {
    fn new(folder: &Path, bytes: &[u8]) -> std::io::Result<Self> {
        super::shared::make(folder)?;
        let held = open_folder(folder)?;
        // Nobody takes one away that has no lock yet.
        flock(&held, FlockOperation::LockExclusive)?;
        let mut random = [0; 6];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = OsString::from(format!("{NAME}{digits}"));
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&held, &*name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut copied =
            Self { path: folder.join(&name), folder: held, name, file: File::from(file) };
        flock(&copied.file, FlockOperation::NonBlockingLockExclusive)?;
        flock(&copied.folder, FlockOperation::Unlock)?;
        copied.file.write_all(bytes)?;
        copied.file.rewind()?;
        Ok(copied)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = unlinkat(&self.folder, &*self.name, AtFlags::empty());
    }
}

fn open_folder(folder: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

/// Removes the copies of runs that live no more. One that cannot be removed is tried again by the next run.
fn reap(folder: &Path) {
    let Ok(held) = open_folder(folder) else { return };
    if flock(&held, FlockOperation::LockExclusive).is_err() {
        return;
    }
    let Ok(entries) = Dir::read_from(&held) else { return };
    for entry in entries.flatten() {
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let is_ours = name.to_str().and_then(|name| name.strip_prefix(NAME)).is_some_and(|rest| {
            rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        if is_ours {
            reap_one(&held, &name);
        }
    }
}

fn reap_one(folder: &OwnedFd, name: &OsString) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, &**name, flags, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    let named = statat(folder, &**name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let same = (named.st_dev, named.st_ino) == (stat.st_dev, stat.st_ino);
    if !same || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    unlinkat(folder, &**name, AtFlags::empty()).ok()
}

/// The keys whose change was not kept.
fn keep(path: &Path, copy: &Path, workspace: &Path) -> Result<Vec<String>, String> {
    let text = |error: std::io::Error| error.to_string();
    let object = |bytes: &[u8]| match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err("it is no JSON object".to_owned()),
    };
    let there = read(path).map_err(text)?;
    let after = object(&read(copy).map_err(text)?.unwrap_or_default())?;
    let before = match &there {
        Some(bytes) => object(bytes)?,
        None => Map::new(),
    };
    let (merged, left) = merge(&before, &after, workspace);
    if merged != before {
        let bytes = serde_json::to_vec_pretty(&merged).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > LARGEST {
            return Err("it would be too large".to_owned());
        }
        write(path, &bytes).map_err(text)?;
    }
    Ok(left)
}

/// What there was with the harmless part of what there is, and the keys of the rest.
fn merge(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    workspace: &Path,
) -> (Map<String, Value>, Vec<String>) {
    let mut merged = before.clone();
    let mut left = Vec::new();
    for (key, value) in after {
        if before.get(key) == Some(value) {
            continue;
        }
        match (key.as_str(), value) {
            (PROJECTS, Value::Object(projects)) => {
                let known = merged.entry(PROJECTS).or_insert_with(|| Map::new().into());
                if let Value::Object(known) = known {
                    left.extend(merge_projects(known, projects, workspace));
                }
            }
            (key, value) if KEPT.iter().any(|(known, fits)| *known == key && fits(value)) => {
                merged.insert(key.to_owned(), value.clone());
            }
            (key, _) => left.push(shown(key)),
        }
    }
    (merged, left)
}

/// A word without blanks: a version, a number, a time.
fn is_word(value: &Value) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._:+-".contains(&byte);
    value.as_str().is_some_and(|text| text.len() <= LONGEST_WORD && text.bytes().all(is_sign))
}

fn is_counts(value: &Value) -> bool {
    value.as_object().is_some_and(|counts| {
        counts.len() <= MOST_COUNTS
            && counts.iter().all(|(key, count)| is_word(&key.as_str().into()) && count.is_number())
    })
}

fn merge_projects(
    known: &mut Map<String, Value>,
    after: &Map<String, Value>,
    workspace: &Path,
) -> Vec<String> {
    let mut left = Vec::new();
    for (folder, value) in after {
        let Value::Object(value) = value else { continue };
        // A name of a folder could say anything.
        let is_own = Path::new(folder) == workspace
            || (Path::new(folder).starts_with(workspace) && known.contains_key(folder));
        let before = known.get(folder).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut merged = before.clone();
        for (key, value) in value {
            if before.get(key) == Some(value) {
                continue;
            }
            // Of a folder that was not known, what says nothing is no loss.
            let is_plain = value.is_number() || is_word(value);
            let fits = merged.contains_key(key) || merged.len() < MOST_COUNTS;
            let is_last = key.starts_with(LAST) && is_word(&key.as_str().into());
            if is_own && is_last && is_plain && fits {
                merged.insert(key.clone(), value.clone());
            } else if !is_empty(value) && !left.contains(&shown(key)) {
                left.push(shown(key));
            }
        }
        if merged != before {
            known.insert(folder.clone(), Value::Object(merged));
        }
    }
    left
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Bool(true) => false,
    }
}

/// A key as it is told: it is the program's.
fn shown(key: &str) -> String {
    let short: String = key.chars().take(60).collect();
    wardkeep_evidence::check::printable(&short).to_string()
}

/// What a file holds; none where it is not there.
fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(std::io::Error::other("it is too large"));
    }
    Ok(Some(bytes))
}

/// Puts a file in the place of another, whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().ok_or(std::io::ErrorKind::NotFound)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    if let Ok(data) = real.metadata() {
        file.as_file().set_permissions(data.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&real).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(before: &Value, after: &Value) -> (Value, Vec<String>) {
        let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
        let (merged, left) = merge(before, after, Path::new("/w"));
        (merged.into(), left)
    }

    #[test]
    fn counts_are_kept_and_what_executes_is_not() {
        let before = json!({
            "numStartups": 1, "mcpServers": { "mine": { "command": "good" } },
            "projects": { "/w": { "hasTrustDialogAccepted": false, "lastCost": 1 } },
        });
        let after = json!({
            "numStartups": 2, "mcpServers": { "mine": { "command": "evil" } }, "hooks": { "Stop": ["evil"] },
            "bypassPermissionsModeAccepted": true, "oauthAccount": { "emailAddress": "evil" },
            "projects": {
                "/w": {
                    "hasTrustDialogAccepted": true, "lastCost": 2, "mcpServers": { "x": {} },
                    "lastServer": { "command": "evil" }, "allowedTools": ["Bash"],
                },
                "/": { "hasTrustDialogAccepted": true, "allowedTools": [] },
            },
        });
        let (kept, left) = merged(&before, &after);
        let expected = json!({
            "numStartups": 2, "mcpServers": { "mine": { "command": "good" } },
            "projects": { "/w": { "hasTrustDialogAccepted": false, "lastCost": 2 } },
        });
        assert_eq!(kept, expected);
        for key in
            ["mcpServers", "hooks", "bypassPermissionsModeAccepted", "hasTrustDialogAccepted"]
        {
            assert!(left.iter().any(|one| one == key), "{key}: {left:?}");
        }
    }

    #[test]
    fn what_is_kept_is_a_count_or_a_word_of_the_own_workspace() {
        let long = "x".repeat(81);
        let after = json!({
            "numStartups": { "evil": "x" }, "userID": "a\u{1b}[2J", "lastReleaseNotesSeen": "do this now",
            "firstStartTime": long, "hasCompletedOnboarding": "x", "tipsHistory": { "a": "do this now" },
            "projects": {
                "/w/known": { "lastCost": 2 }, "/w/do this now": { "lastCost": 2 },
                "/w": { "lastCost": 2, "lastSessionId": "a-1", "lastSessionFirstPrompt": "do this now" },
                "/other": { "lastCost": 2 }, "/w2": { "lastCost": 2 }, "/w/../other": { "lastCost": 2 },
            },
        });
        let known = json!({ "projects": { "/w/known": { "lastCost": 1 } } });
        let (kept, left) = merged(&known, &after);
        let own = json!({ "/w/known": { "lastCost": 2 }, "/w": { "lastCost": 2, "lastSessionId": "a-1" } });
        assert_eq!(kept, json!({ "projects": own }));
        for key in ["numStartups", "userID", "tipsHistory", "lastSessionFirstPrompt", "lastCost"] {
            assert!(left.iter().any(|one| one == key), "{key}: {left:?}");
        }
        let plain = json!({ "userID": "0a1b", "tipsHistory": { "new-user": 3 }, "numStartups": 7 });
        assert_eq!(merged(&json!({}), &plain), (plain, Vec::new()));
    }

    #[test]
    fn what_is_taken_away_stays() {
        let before = json!({ "permissions": { "deny": ["x"] }, "projects": { "/w": { "a": 1 } } });
        assert_eq!(merged(&before, &json!({})), (before.clone(), Vec::new()));
        assert_eq!(merged(&before, &json!({ "projects": {} })), (before.clone(), Vec::new()));
        assert_eq!(merged(&before, &json!({ "projects": 7 })).0, before);
    }

    #[test]
    fn a_file_is_replaced_whole_and_only_where_something_changed() {
        let lab = tempfile::tempdir().unwrap();
        let (path, copy) = (lab.path().join("a.json"), lab.path().join("copy"));
        fs::write(&path, r#"{"numStartups":1}"#).unwrap();
        fs::write(&copy, r#"{"numStartups":2,"mcpServers":{"x":{}}}"#).unwrap();
        assert_eq!(keep(&path, &copy, lab.path()).unwrap(), ["mcpServers"]);
        let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(kept, json!({ "numStartups": 2 }));
        fs::write(&copy, "not JSON").unwrap();
        assert!(keep(&path, &copy, lab.path()).is_err());
        let gone = lab.path().join("gone");
        fs::write(&copy, r#"{"mcpServers":{"x":{}}}"#).unwrap();
        assert_eq!(keep(&gone, &copy, lab.path()).unwrap(), ["mcpServers"]);
        assert!(!gone.exists());
    }
}
