//! Bundles out of a journal: all of it, or a part that proves what it is a part of.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{Read as _, Write};
use std::ops::ControlFlow;
use std::path::Path;

use wardkeep_evidence::bundle::{BundleError, BundleWriter};
use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::{BlobHash, RecordId};
use wardkeep_evidence::merkle::{Tree, TreeHash, verify_inclusion};
use wardkeep_evidence::note::Note;
use wardkeep_evidence::record::Payload;
use wardkeep_evidence::seal::{self, Frame, frames};
use wardkeep_evidence::source::MAX_FILE_BYTES;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::PartDescription;

use crate::files::{MAX_SEALS_BYTES, MAX_SMALL_BYTES, hash_range, open_plain, read_if_there};
use crate::index::Filter;
use crate::journal::{JournalError, JournalLine, Position, parse_line, scan};
use crate::sealer::{CHECKPOINTS, COSIGNED, LOG_PUBLIC, SealerError, is_signed, last_seal_in};
use crate::store::{StoreError, StoreReader};
use crate::tree::sealed_tree;

/// What to export.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Facts that a record must have.
    pub filter: Filter,
    /// Only this record, what it came from and what came from it.
    pub around: Option<RecordId>,
}

impl Selection {
    /// Whether everything is asked for.
    #[must_use]
    pub fn is_all(&self) -> bool {
        let Filter { since, until, session, agent, kind, verdict, category, severity, below, from } =
            &self.filter;
        since.is_none()
            && until.is_none()
            && session.is_none()
            && agent.is_none()
            && kind.is_none()
            && verdict.is_none()
            && category.is_none()
            && severity.is_none()
            && below.is_none()
            && from.is_none()
            && self.around.is_none()
    }

    fn describe(&self) -> serde_json::Value {
        let filter = &self.filter;
        serde_json::json!({
            "since": filter.since.map(|time| time.to_string()),
            "until": filter.until.map(|time| time.to_string()),
            "session": filter.session,
            "agent": filter.agent,
            "type": filter.kind.map(|kind| kind.as_str()),
            "around": self.around,
        })
    }
}

/// What was exported.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Exported {
    /// Records in the bundle.
    pub records: u64,
    /// Blobs in the bundle.
    pub blobs: u64,
    /// Entries in the journal.
    pub total: u64,
    /// Entries under the seal that the bundle carries.
    pub sealed: u64,
    /// Parents that are not in the bundle.
    pub omitted_parents: u64,
    /// Blobs that records name and that are not there, or not what their name says.
    pub missing_blobs: u64,
    /// Lines of the journal that hold no record and could not be exported.
    pub unreadable_lines: u64,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The record to export around is not there.
    #[error("the record {0} is not in the journal: check the id with `wardkeep log`")]
    Unknown(RecordId),
    /// The journal is not what was sealed, so that nothing can be proven of a part.
    #[error(
        "the journal does not have the root that was sealed: run `wardkeep evidence verify`, or export everything"
    )]
    RootDiffers,
}

impl From<JournalError> for ExportError {
    fn from(error: JournalError) -> Self {
        Self::Store(error.into())
    }
}

impl From<SealerError> for ExportError {
    fn from(error: SealerError) -> Self {
        Self::Store(error.into())
    }
}

/// Writes a bundle of what `selection` asks for to the folder `target`.
///
/// # Errors
/// When the journal cannot be read, the bundle not written, or a part not proven.
pub fn export(
    store: &StoreReader,
    selection: &Selection,
    target: &Path,
    now: Timestamp,
) -> Result<Exported, ExportError> {
    export_watched(store, selection, target, now, &mut |_| {})
}

/// As [`export`], telling `progress` of the journal's bytes as they are read; the journal is read
/// twice.
///
/// # Errors
/// As [`export`].
pub fn export_watched(
    store: &StoreReader,
    selection: &Selection,
    target: &Path,
    now: Timestamp,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    // Seals are read before the journal, so that none covers more than what is read of it.
    let seals = SealFiles::read(store)?;
    let chosen = choose(store, selection, progress)?;
    let mut writer = BundleWriter::create(target, now.to_string())?;
    let mut run = Run {
        part: !selection.is_all(),
        exported: Exported { total: chosen.total, ..Exported::default() },
        blobs: BTreeSet::new(),
        present: HashSet::new(),
        omitted: Vec::new(),
        told: HashSet::new(),
        originals: Vec::new(),
    };
    run.copy_records(store, &chosen, &mut writer, progress)?;
    run.copy_blobs(store, &mut writer)?;
    if run.part {
        run.write_part(store, selection, &seals, &mut writer)?;
    }
    if let Some((_, size)) = seals.head {
        run.exported.sealed = size;
    }
    for (name, bytes) in [
        (LOG_PUBLIC, &seals.public),
        (CHECKPOINTS, &seals.checkpoints),
        (COSIGNED, &seals.cosigned),
    ] {
        if !bytes.is_empty() {
            let mut file = writer.seal_file(name)?;
            write_all(&mut file, bytes, target)?;
        }
    }
    writer.finish()?;
    Ok(run.exported)
}

struct SealFiles {
    public: Vec<u8>,
    checkpoints: Vec<u8>,
    cosigned: Vec<u8>,
    head: Option<(TreeHash, u64)>,
}

impl SealFiles {
    fn read(store: &StoreReader) -> Result<Self, ExportError> {
        let read = |name: &str, limit| {
            let path = store.path().join(name);
            read_if_there(&path, limit).map_err(|error| JournalError::io("read", &path, error))
        };
        // Cosigned first: each of its notes is in the checkpoints already.
        let cosigned = whole_frames(&read(COSIGNED, MAX_SEALS_BYTES)?);
        let checkpoints = whole_frames(&read(CHECKPOINTS, MAX_SEALS_BYTES)?);
        let log = store.public();
        let head = log.and_then(|log| last_seal_in(&checkpoints, |note| is_signed(note, &log)));
        Ok(Self {
            public: read(LOG_PUBLIC, MAX_SMALL_BYTES)?,
            head: head.map(|(_, seal)| (seal.root, seal.size)),
            checkpoints,
            cosigned,
        })
    }
}

/// The notes of a seal file without what a crash, or a writer at work, leaves between them: a
/// bundle is finished and has no such pieces.
fn whole_frames(bytes: &[u8]) -> Vec<u8> {
    let mut whole = String::new();
    for frame in frames(bytes) {
        if let Frame::Note { text, .. } = frame
            && let Ok(note) = Note::parse(text)
        {
            whole.push_str(&seal::frame(&note));
        }
    }
    whole.into_bytes()
}

/// Which entries go into the bundle.
struct Chosen {
    total: u64,
    /// By order in the journal; everything if empty.
    picked: Option<HashSet<u64>>,
}

fn choose(
    store: &StoreReader,
    selection: &Selection,
    progress: &mut dyn FnMut(u64),
) -> Result<Chosen, ExportError> {
    let mut total = 0;
    let mut picked = HashSet::new();
    // For `around`: parents of every record before the one asked for with its place if the filter
    // takes it, and its descendants.
    let mut before: HashMap<RecordId, (Option<u64>, Vec<RecordId>)> = HashMap::new();
    let mut family: HashSet<RecordId> = HashSet::new();
    let mut met = selection.around.is_none();
    scan(store.folder(), Position::START, |location, text| {
        progress(location.length + 1);
        let Some(line) = parse_line(text) else { return ControlFlow::Continue(()) };
        let order = total;
        total += 1;
        let id = line.record.id;
        if let Some(center) = selection.around {
            if id == center {
                met = true;
            } else if !met {
                let place = selection.filter.matches(&line).then_some(order);
                before.insert(id, (place, line.record.parents));
                return ControlFlow::Continue(());
            }
            let descends = line.record.parents.iter().any(|parent| family.contains(parent));
            if id != center && !descends {
                return ControlFlow::Continue(());
            }
            family.insert(id);
            if id == center {
                let mut open = line.record.parents.clone();
                while let Some(parent) = open.pop() {
                    if let Some((place, parents)) = before.remove(&parent) {
                        picked.extend(place);
                        open.extend(parents);
                    }
                }
            }
        }
        if selection.filter.matches(&line) {
            picked.insert(order);
        }
        ControlFlow::Continue(())
    })?;
    match selection.around {
        Some(center) if !met => Err(ExportError::Unknown(center)),
        _ => Ok(Chosen { total, picked: (!selection.is_all()).then_some(picked) }),
    }
}

struct Run {
    part: bool,
    exported: Exported,
    blobs: BTreeSet<BlobHash>,
    present: HashSet<RecordId>,
    omitted: Vec<RecordId>,
    told: HashSet<RecordId>,
    originals: Vec<Entry>,
}

impl Run {
    fn copy_records(
        &mut self,
        store: &StoreReader,
        chosen: &Chosen,
        writer: &mut BundleWriter,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ExportError> {
        let mut order = 0;
        let mut failure = None;
        let mut bytes = Vec::new();
        scan(store.folder(), Position::START, |location, text| {
            progress(location.length + 1);
            if order == chosen.total {
                return ControlFlow::Break(());
            }
            let Some(line) = parse_line(text) else {
                self.exported.unreadable_lines += 1;
                return ControlFlow::Continue(());
            };
            let wanted = chosen.picked.as_ref().is_none_or(|picked| picked.contains(&order));
            order += 1;
            if wanted {
                bytes.clear();
                line.record.write_line(&mut bytes);
                if let Err(error) = self.copy_record(line, &bytes, writer) {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    fn copy_record(
        &mut self,
        line: JournalLine<'_>,
        bytes: &[u8],
        writer: &mut BundleWriter,
    ) -> Result<(), BundleError> {
        let JournalLine { entry, record } = line;
        let root = record.parents.is_empty();
        if let Payload::Blob { hash, .. } = record.payload {
            self.blobs.insert(hash);
        }
        self.exported.records += 1;
        if !self.part {
            return writer.push_chained(&entry, root, bytes);
        }
        for parent in record.parents {
            if !self.present.contains(&parent) && self.told.insert(parent) {
                self.omitted.push(parent);
            }
        }
        self.present.insert(record.id);
        writer.push(record.id, root, bytes, &entry.timestamp)?;
        self.originals.push(entry);
        Ok(())
    }

    fn copy_blobs(
        &mut self,
        store: &StoreReader,
        writer: &mut BundleWriter,
    ) -> Result<(), ExportError> {
        for hash in &self.blobs {
            let path = store.path().join("blobs").join(hash.to_string());
            match open_plain(&path).and_then(|file| Ok((file.metadata()?.len(), file))) {
                // One that was tampered with is as good as gone, and must not stop the rest.
                Ok((size, mut file))
                    if size <= MAX_FILE_BYTES
                        && hash_range(&file, 0, size).is_ok_and(|found| found == hash.0) =>
                {
                    writer.push_blob(*hash, &mut (&mut file).take(size))?;
                    self.exported.blobs += 1;
                }
                _ => self.exported.missing_blobs += 1,
            }
        }
        Ok(())
    }

    /// Writes what the part is a part of: its original entries, each with its proof.
    fn write_part(
        &mut self,
        store: &StoreReader,
        selection: &Selection,
        seals: &SealFiles,
        writer: &mut BundleWriter,
    ) -> Result<(), ExportError> {
        let tree: Option<(Tree, u64)> = match seals.head {
            Some((root, size)) if size > 0 => {
                let tree = sealed_tree(store.path(), store.folder(), size, &root)?;
                Some((tree.ok_or(ExportError::RootDiffers)?, size))
            }
            _ => None,
        };
        let mut file = writer.seal_file("entries.jsonl")?;
        let mut line = Vec::new();
        for entry in &self.originals {
            line.clear();
            entry.write_line(&mut line);
            line.pop();
            line.extend_from_slice(b",\"proof\":");
            let proof = tree.as_ref().and_then(|(tree, size)| tree.inclusion(entry.index, *size));
            match proof {
                Some(hashes) => {
                    // Nothing is handed out that would not be accepted.
                    let (root, size) = seals.head.ok_or(ExportError::RootDiffers)?;
                    verify_inclusion(&entry.leaf(), entry.index, size, &hashes, &root)
                        .map_err(|_| ExportError::RootDiffers)?;
                    let list: Vec<String> =
                        hashes.iter().map(|hash| format!("\"{hash}\"")).collect();
                    line.extend_from_slice(format!("[{}]", list.join(",")).as_bytes());
                }
                None => line.extend_from_slice(b"null"),
            }
            line.extend_from_slice(b"}\n");
            write_all(&mut file, &line, store.path())?;
        }
        flush(&mut file, store.path())?;
        self.exported.omitted_parents = self.omitted.len() as u64;
        let description = PartDescription {
            version: 1,
            total: self.exported.total,
            sealed: tree.map_or(0, |(_, size)| size),
            selection: selection.describe(),
            omitted_parents: std::mem::take(&mut self.omitted),
        };
        let mut bytes = serde_json::to_vec_pretty(&description).unwrap_or_default();
        bytes.push(b'\n');
        let mut file = writer.seal_file("part.json")?;
        write_all(&mut file, &bytes, store.path())?;
        Ok(flush(&mut file, store.path())?)
    }
}

fn write_all(file: &mut impl Write, bytes: &[u8], path: &Path) -> Result<(), JournalError> {
    file.write_all(bytes).map_err(|error| JournalError::io("write below", path, error))
}

fn flush(file: &mut impl Write, path: &Path) -> Result<(), JournalError> {
    file.flush().map_err(|error| JournalError::io("write below", path, error))
}
