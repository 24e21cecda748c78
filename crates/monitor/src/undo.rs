//! Undo: files put back to what they were before a tool of an agent changed them.
//!
//! Before a call that changes files, what they are is kept, and a record says so. Going back starts
//! from those records, held against the journal and the hashes of what was kept. What is replaced is
//! itself kept as a snapshot first. A file that was not there before is left alone unless the owner
//! says otherwise, and what no record names is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Record, RecordType};
use wardkeep_evidence::time::Timestamp;

use crate::index::{Facts, Index, LookError, Said};
use crate::journal::parse_line;
use crate::rollback::RolledBack;
use crate::snapshot::{
    Blobs, By, Content, Entry, Manifest, RelativePath, Root, Seen, SnapshotError, Snapshots, Why,
};
use crate::store::{Event, StoreReader};

/// Records that are looked at to find what a file was.
const LOOK: u32 = 10_000;
/// Calls and paths that a record of what was undone names.
const CALLS: usize = 10_000;
/// Why files were put back.
const REASON: &str = "undo of what an agent changed";
/// Longest list of what was kept.
const MAX_MANIFEST: u64 = 64 << 20;
/// Largest file that is compared with what it was; a larger one differs.
const MAX_FILE: u64 = 64 << 20;

/// A call of a tool before which files were kept.
#[derive(Debug, Clone)]
pub struct Call {
    /// The record that says so.
    pub record: RecordId,
    /// When.
    pub at: Timestamp,
    /// The agent.
    pub agent: String,
    /// Its session.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// What was kept; why not, where that failed or is gone.
    pub kept: Result<Manifest, String>,
    /// What of it was undone already.
    pub undone: Undone,
}

/// What of a call was undone already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Undone {
    /// Nothing.
    #[default]
    Nothing,
    /// These files, or all in these folders.
    Paths(BTreeSet<PathBuf>),
    /// Everything.
    All,
}

impl Undone {
    fn covers(&self, path: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::Paths(paths) => paths.iter().any(|one| path.starts_with(one)),
            Self::All => true,
        }
    }

    fn and(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::Nothing) | (Self::All, _) => {}
            (Self::Paths(paths), Self::Paths(more)) => paths.extend(more.iter().cloned()),
            (_, other) => *self = other.clone(),
        }
    }
}

impl Call {
    /// The paths that the call was about to change.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let manifest = self.kept.as_ref().ok();
        let root = |manifest: &Manifest| manifest.workspace.clone();
        manifest.into_iter().flat_map(move |kept| {
            kept.covers.iter().map(move |path| root(kept).join(path.as_path()))
        })
    }

    fn concerns(&self, folder: &Path) -> bool {
        self.paths().any(|path| path.starts_with(folder))
    }
}

/// What is to be undone.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// The newest call that changed something below a folder and is not undone yet.
    Last(&'a Path),
    /// Everything that a session changed.
    Session(&'a str),
    /// The newest change of these files, or of what is in these folders, that is not undone yet.
    Files(&'a [PathBuf]),
}

/// What would be done.
#[derive(Debug, Clone, Default)]
pub struct UndoPlan {
    /// Files that get back what they were, by path.
    pub back: BTreeMap<PathBuf, Back>,
    /// Files that were not there before, and are now, with the folder that they are found from.
    pub created: BTreeMap<PathBuf, PathBuf>,
    /// What was there and was not kept, with the reason.
    pub lost: BTreeMap<PathBuf, String>,
    /// The calls that are undone, newest first.
    pub calls: Vec<Call>,
}

/// What a file was.
#[derive(Debug, Clone)]
pub struct Back {
    /// The folder that it is found from.
    pub root: PathBuf,
    /// Where below it, and what it was.
    pub entry: Entry,
    /// Whether something else stands there now; nothing does otherwise.
    pub replaces: bool,
}

/// The newest calls before which files were kept, newest first.
///
/// # Errors
/// When the index cannot be used or is wrong.
pub fn calls(
    reader: &StoreReader,
    index: &Index,
    session: Option<&str>,
    limit: u32,
) -> Result<Vec<Call>, LookError> {
    let mut wrong = 0;
    let mut found = Vec::new();
    // What was undone is told later, so that it is met first.
    let mut undone: BTreeMap<RecordId, Undone> = BTreeMap::new();
    for location in index.kept_for_undo(session, limit)? {
        let text = reader.folder().read_line(location).ok();
        let line = text.as_deref().and_then(parse_line);
        if let Some((calls, what)) = line.as_ref().and_then(|line| told_undone(&line.record)) {
            for call in calls {
                undone.entry(call).or_default().and(&what);
            }
            continue;
        }
        let call = line.and_then(|line| {
            let facts = Facts::of(&line.record);
            let ours = is_ours(&facts)
                && session.is_none_or(|name| line.record.meta_str("session") == Some(name));
            let meta = |key: &str| line.record.meta_str(key).unwrap_or_default().to_owned();
            let kept = match (facts.text("manifest"), facts.text("failed")) {
                (Some(hash), _) => manifest(reader, hash),
                (None, Some(why)) => Err(why.to_owned()),
                (None, None) => Err("the record does not say what was kept".to_owned()),
            };
            ours.then_some(Call {
                record: line.record.id,
                at: line.record.timestamp()?.parse().ok()?,
                agent: meta("agent"),
                session: meta("session"),
                tool: facts.text("tool").unwrap_or_default().to_owned(),
                kept,
                undone: undone.remove(&line.record.id).unwrap_or_default(),
            })
        });
        match call {
            Some(call) => found.push(call),
            None => wrong += 1,
        }
    }
    if wrong > 0 { Err(LookError::Wrong(wrong)) } else { Ok(found) }
}

fn is_ours(facts: &Facts<'_>) -> bool {
    facts.shape.said == Some(Said::Undo) && facts.value("v") == Some(&Value::Unsigned(1))
}

/// The calls that a record says were undone, and what of them.
fn told_undone(record: &Record<'_>) -> Option<(Vec<RecordId>, Undone)> {
    let facts = Facts::of(record);
    let list = |key: &str| match facts.value(key) {
        Some(Value::Array(items)) if is_ours(&facts) => {
            Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>())
        }
        _ => None,
    };
    let calls = list("undone")?.into_iter().filter_map(RecordId::from_hex).collect();
    let what = list("paths")
        .map_or(Undone::All, |paths| Undone::Paths(paths.into_iter().map(PathBuf::from).collect()));
    Some((calls, what))
}

fn manifest(reader: &StoreReader, hash: &str) -> Result<Manifest, String> {
    let hash = BlobHash::from_hex(hash).ok_or("the record does not say what was kept")?;
    let read = Blobs::open(reader.path()).and_then(|blobs| blobs.read(hash, MAX_MANIFEST));
    Manifest::parse(&read.map_err(|error| error.to_string())?)
}

/// Sessions whose calls were kept and whose name is, or ends with, `name`.
///
/// # Errors
/// When the index cannot be used or is wrong.
pub fn sessions(
    reader: &StoreReader,
    index: &Index,
    name: &str,
) -> Result<BTreeSet<String>, LookError> {
    let all = calls(reader, index, None, LOOK)?;
    let named = all.into_iter().map(|call| call.session);
    let known: BTreeSet<String> = named.collect();
    if known.contains(name) {
        return Ok(BTreeSet::from([name.to_owned()]));
    }
    Ok(known.into_iter().filter(|one| !name.is_empty() && one.contains(name)).collect())
}

/// Works out what would be undone; nothing is changed.
///
/// # Errors
/// When the index cannot be used or is wrong.
pub fn plan(
    reader: &StoreReader,
    index: &Index,
    wanted: Wanted<'_>,
) -> Result<UndoPlan, LookError> {
    match wanted {
        Wanted::Last(folder) => {
            for call in calls(reader, index, None, LOOK)? {
                if !call.concerns(folder) {
                    continue;
                }
                let mut plan = UndoPlan::default();
                plan.add(&call, |_| true, true);
                if !plan.is_empty() {
                    plan.calls.push(call);
                    return Ok(plan);
                }
            }
            Ok(UndoPlan::default())
        }
        Wanted::Session(name) => {
            let mut plan = UndoPlan::default();
            let mut all = calls(reader, index, Some(name), LOOK)?;
            // The oldest says what a file was before all of them.
            for call in all.iter().rev() {
                plan.add(call, |_| true, false);
            }
            plan.back.retain(|_, back| back.differs());
            plan.calls.append(&mut all);
            Ok(plan)
        }
        Wanted::Files(paths) => {
            let mut plan = UndoPlan::default();
            for call in calls(reader, index, None, LOOK)? {
                let meant = |path: &Path| paths.iter().any(|one| path.starts_with(one));
                let before = plan.len();
                plan.add(&call, meant, true);
                if plan.len() > before {
                    plan.calls.push(call);
                }
            }
            Ok(plan)
        }
    }
}

impl UndoPlan {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.back.len() + self.created.len() + self.lost.len()
    }

    /// Adds what a call kept of paths that nothing is planned for yet; with `differing`, only what is
    /// not so now.
    fn add(&mut self, call: &Call, meant: impl Fn(&Path) -> bool, differing: bool) {
        let Ok(kept) = &call.kept else { return };
        let meant = |path: &Path| meant(path) && !call.undone.covers(path);
        let root = &kept.workspace;
        let Ok(opened) = Root::open(root) else { return };
        for entry in &kept.files {
            let path = root.join(entry.path.as_path());
            if !meant(&path) || self.knows(&path) {
                continue;
            }
            let seen = opened.look(&entry.path, MAX_FILE);
            let replaces = !matches!(seen, Seen::Missing);
            let back = Back { root: root.clone(), entry: entry.clone(), replaces };
            if !differing || !is(&seen, &entry.content) {
                self.back.insert(path, back);
            }
        }
        for cover in &kept.covers {
            let path = root.join(cover.as_path());
            let known =
                kept.files.iter().any(|entry| entry.path == *cover || entry.path.is_below(cover));
            if known || kept.leaves_out(cover) || !meant(&path) || self.knows(&path) {
                continue;
            }
            if matches!(opened.look(cover, 0), Seen::File { .. } | Seen::TooLarge | Seen::Link(_)) {
                self.created.insert(path, root.clone());
            }
        }
        for left in kept.left_out.iter().filter(|left| left.why != Why::Remade) {
            let path = root.join(left.path.as_path());
            let gone = matches!(opened.look(&left.path, 0), Seen::Missing);
            if meant(&path) && !self.knows(&path) && (gone || !differing) {
                self.lost.insert(path, left.why.words().to_owned());
            }
        }
    }

    fn knows(&self, path: &Path) -> bool {
        self.back.contains_key(path)
            || self.created.contains_key(path)
            || self.lost.contains_key(path)
    }
}

impl Back {
    fn differs(&self) -> bool {
        Root::open(&self.root)
            .map(|root| !is(&root.look(&self.entry.path, MAX_FILE), &self.entry.content))
            .unwrap_or(true)
    }
}

fn is(seen: &Seen, content: &Content) -> bool {
    match (seen, content) {
        (Seen::File { bytes, mode }, Content::File { hash, size, mode: was }) => {
            bytes.len() as u64 == *size && mode == was && BlobHash(sha256(bytes)) == *hash
        }
        (Seen::Link(target), Content::Link { target: was }) => target == was,
        _ => false,
    }
}

/// Does what a plan says: once for each folder that its files are found from. Files that were not
/// there before are removed only where `created` says so. Which calls were undone is written down: whole,
/// or what of them is in `paths`.
///
/// # Errors
/// When something that was kept is not what was recorded, or something cannot be written.
pub fn carry_out(
    snapshots: &Snapshots<'_>,
    plan: &UndoPlan,
    wanted: Wanted<'_>,
    created: bool,
    by: By<'_>,
) -> Result<Vec<(PathBuf, RolledBack)>, SnapshotError> {
    let mut roots: BTreeMap<&Path, (Vec<Entry>, Vec<RelativePath>)> = BTreeMap::new();
    for back in plan.back.values() {
        roots.entry(&back.root).or_default().0.push(back.entry.clone());
    }
    for (path, root) in plan.created.iter().filter(|_| created) {
        let relative = path.strip_prefix(root).ok().and_then(RelativePath::new);
        roots.entry(root).or_default().1.extend(relative);
    }
    let mut done = Vec::new();
    for (root, (mut files, gone)) in roots {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        done.push((root.to_owned(), snapshots.put_back(root, files, gone, REASON, by)?));
    }
    let calls = plan.calls.iter().take(CALLS).map(|call| Value::from(call.record.to_string()));
    let mut content = Object::from([
        ("kind", Value::from("undo")),
        ("v", Value::from(1u64)),
        ("undone", Value::Array(calls.collect())),
    ]);
    let session = if let Wanted::Session(name) = wanted { name } else { "" };
    let whole = !matches!(wanted, Wanted::Files(_)) && (created || plan.created.is_empty());
    if !whole {
        let removed = plan.created.keys().filter(|_| created);
        let paths = plan.back.keys().chain(removed).take(CALLS);
        let paths = paths.map(|path| Value::from(path.to_string_lossy().into_owned()));
        content.push("paths", Value::Array(paths.collect()));
    }
    let about = Value::Object(content);
    let mut event = Event::new(RecordType::GuardDecision, by.principal, about);
    event.session = session;
    snapshots.store.append(event)?;
    Ok(done)
}
