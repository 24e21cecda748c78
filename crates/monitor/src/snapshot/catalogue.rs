//! Snapshots and rollbacks as the journal tells of them. What is not in the journal does not exist.

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;
use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, RecordType};
use wardkeep_evidence::time::Timestamp;

use super::scope::Scope;
use super::{Last, Opened, Result, SnapshotError, SnapshotId, time_of};
use crate::index::{Filter, Index};
use crate::journal::{JournalLine, Location, Position, parse_line, scan};
use crate::store::StoreReader;

/// Fewest digits that are taken for the beginning of an id.
const SHORTEST: usize = 4;

/// A snapshot that the journal tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: SnapshotId,
    /// Which files were looked for.
    pub scope: Scope,
    /// SHA-256 of its manifest.
    pub manifest: BlobHash,
    /// How many files it holds.
    pub files: u64,
    /// How many files it should hold and does not.
    pub left_out: u64,
    /// Why it was taken.
    pub reason: String,
    /// On whose behalf.
    pub principal: Principal,
    /// Of which workspace.
    pub workspace: String,
    /// When.
    pub at: Timestamp,
    /// Its record.
    pub record: RecordId,
    /// Position of the record.
    pub index: u64,
    /// Where the record is.
    pub location: Location,
}

impl Listed {
    /// Whether it was taken of a workspace, and not made by a rollback.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.scope != Scope::Files
    }
}

/// A rollback that the journal tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBackRecord {
    /// What was restored.
    pub snapshot: SnapshotId,
    /// Where the replaced state is kept.
    pub kept: SnapshotId,
    /// Whether it happened by itself.
    pub auto: bool,
    /// Files that were changed, as far as the record names them.
    pub files: Vec<String>,
    /// In which workspace.
    pub workspace: String,
    /// When.
    pub at: Timestamp,
    /// Its record.
    pub record: RecordId,
    /// Position of the record.
    pub index: u64,
}

/// Everything that the journal tells of snapshots, newest first.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// The snapshots.
    pub snapshots: Vec<Listed>,
    /// The rollbacks.
    pub rollbacks: Vec<RolledBackRecord>,
}

impl Catalogue {
    /// Reads it by the index, and from all of the journal where the index is wrong.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn read(reader: &StoreReader) -> Result<Self> {
        match Self::indexed(reader) {
            Some(catalogue) => Ok(catalogue),
            None => Self::scanned(reader),
        }
    }

    /// Reads it from all of the journal.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn scanned(reader: &StoreReader) -> Result<Self> {
        let mut catalogue = Self::default();
        let snapshot = memmem::Finder::new(br#""type":"Snapshot""#);
        let rollback = memmem::Finder::new(br#""type":"Rollback""#);
        scan(reader.folder(), Position::START, |location, text| {
            if (snapshot.find(text).is_some() || rollback.find(text).is_some())
                && let Some(line) = parse_line(text)
            {
                catalogue.add(&line, location);
            }
            ControlFlow::Continue(())
        })?;
        catalogue.snapshots.reverse();
        catalogue.rollbacks.reverse();
        Ok(catalogue)
    }

    /// The snapshot that a text names: an id, or a beginning that only one has.
    ///
    /// # Errors
    /// When it names none or several, or two records disagree about it.
    pub fn find(&self, text: &str) -> Result<&Listed> {
        let given = || wardkeep_evidence::check::printable(text);
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !digits || !(SHORTEST..=12).contains(&text.len()) {
            return Err(SnapshotError::NoId { given: given() });
        }
        let matching = || self.snapshots.iter().filter(|one| one.id.to_string().starts_with(text));
        let mut candidates: Vec<SnapshotId> = matching().map(|one| one.id).collect();
        candidates.sort_unstable();
        candidates.dedup();
        match candidates.as_slice() {
            [] => Err(SnapshotError::Unknown { given: given() }),
            [id] => self.by_id(*id),
            _ => {
                candidates.truncate(10);
                Err(SnapshotError::Ambiguous { given: given(), candidates })
            }
        }
    }

    /// The snapshot with an id.
    ///
    /// # Errors
    /// When there is none, or two records disagree about it.
    pub fn by_id(&self, id: SnapshotId) -> Result<&Listed> {
        let mut records = self.snapshots.iter().filter(|one| one.id == id);
        let newest =
            records.next().ok_or_else(|| SnapshotError::Unknown { given: id.to_string() })?;
        match records.all(|one| one.manifest == newest.manifest) {
            true => Ok(newest),
            false => Err(SnapshotError::Doubled { id }),
        }
    }

    /// The newest snapshot of a workspace that no rollback made.
    #[must_use]
    pub fn newest(&self, workspace: &Path) -> Option<&Listed> {
        let workspace = workspace.to_string_lossy();
        self.snapshots.iter().find(|one| one.is_whole() && one.workspace == workspace)
    }

    /// What the next snapshot that is taken by itself is compared with.
    #[must_use]
    pub fn last(&self, reader: &StoreReader, workspace: &Path) -> Option<Last> {
        let listed = self.newest(workspace)?;
        let opened = Opened::open(reader.path(), listed).ok()?;
        let contents = opened.manifest().contents().ok()?;
        Some(Last { id: listed.id, at: listed.at.unix(), contents })
    }

    /// Where the newest rollback in a workspace kept what it replaced.
    ///
    /// # Errors
    /// When there was none, or that is gone.
    pub fn undo(&self, workspace: &Path) -> Result<&Listed> {
        let workspace = workspace.to_string_lossy();
        let newest = self.rollbacks.iter().find(|one| one.workspace == workspace);
        self.by_id(newest.ok_or(SnapshotError::NoRollback)?.kept)
    }

    /// `None` where anything about the index is wrong.
    fn indexed(reader: &StoreReader) -> Option<Self> {
        let mut index = Index::open(reader.path()).ok()?;
        index.catch_up(reader.folder(), &mut |_| {}).ok()?;
        let mut catalogue = Self::default();
        for kind in [RecordType::Snapshot, RecordType::Rollback] {
            let filter = Filter { kind: Some(kind), ..Filter::default() };
            for location in index.newest(&filter, u32::MAX).ok()? {
                let text = reader.folder().read_line(location).ok()?;
                let line = parse_line(&text).filter(|line| line.record.kind == kind)?;
                catalogue.add(&line, location);
            }
        }
        let sorted = catalogue.snapshots.windows(2).all(|pair| pair[0].index > pair[1].index)
            && catalogue.rollbacks.windows(2).all(|pair| pair[0].index > pair[1].index);
        sorted.then_some(catalogue)
    }

    fn add(&mut self, line: &JournalLine<'_>, location: Location) {
        match line.record.kind {
            RecordType::Snapshot => self.snapshots.extend(listed(line, location)),
            RecordType::Rollback => self.rollbacks.extend(rolled_back(line)),
            _ => {}
        }
    }
}

/// The content of a record of ours; none of an unknown version.
fn content<'l, 'a>(line: &'l JournalLine<'a>, kind: &str) -> Option<&'l Object<'a>> {
    let Payload::Inline(Value::Object(object)) = &line.record.payload else { return None };
    let ours = object.get("kind").and_then(Value::as_str) == Some(kind);
    (ours && object.get("v") == Some(&Value::Unsigned(1))).then_some(object)
}

fn listed(line: &JournalLine<'_>, location: Location) -> Option<Listed> {
    let object = content(line, "snapshot")?;
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    Some(Listed {
        id: text("id")?.parse().ok()?,
        scope: text("scope")?.parse().ok()?,
        manifest: BlobHash::from_hex(text("manifest")?)?,
        files: number(object, "files"),
        left_out: number(object, "left_out"),
        reason: text("reason").unwrap_or_default().to_owned(),
        principal: line.record.principal,
        workspace: line.record.meta_str("workspace").unwrap_or_default().to_owned(),
        at: time_of(line.record.timestamp()?)?,
        record: line.record.id,
        index: line.entry.index,
        location,
    })
}

fn rolled_back(line: &JournalLine<'_>) -> Option<RolledBackRecord> {
    let object = content(line, "rollback")?;
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let files = match object.get("files") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    Some(RolledBackRecord {
        snapshot: text("snapshot")?.parse().ok()?,
        kept: text("kept")?.parse().ok()?,
        auto: object.get("auto") == Some(&Value::Bool(true)),
        files: files.into_iter().map(str::to_owned).collect(),
        workspace: line.record.meta_str("workspace").unwrap_or_default().to_owned(),
        at: time_of(line.record.timestamp()?)?,
        record: line.record.id,
        index: line.entry.index,
    })
}

fn number(object: &Object<'_>, key: &str) -> u64 {
    match object.get(key) {
        Some(Value::Unsigned(number)) => *number,
        _ => 0,
    }
}
