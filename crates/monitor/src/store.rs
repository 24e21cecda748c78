//! The evidence store: a state directory with journal, seals, blobs and index.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::seal::{LogPublic, Seal};
use wardkeep_evidence::time::Timestamp;

use crate::files::{MAX_SMALL_BYTES, read_plain};
use crate::journal::{
    Appended, Clock, Config, Folder, Found, Journal, JournalError, Waiting, nonce,
};
use crate::sealer::{LOG_PUBLIC, Sealer, SealerError};

/// Version of the state directory's layout.
pub const STATE_VERSION: u32 = 1;

/// How a store is kept.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// Tells the time.
    pub clock: Clock,
    /// A journal segment longer than this is followed by a new one.
    pub segment_bytes: u64,
    /// Whether journal and seals get the append-only attribute.
    pub append_only: bool,
}

impl StoreConfig {
    /// The usual sizes, without the append-only attribute.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let Config { clock, segment_bytes, append_only } = Config::new(clock);
        Self { clock, segment_bytes, append_only }
    }
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A seal cannot be made.
    #[error(transparent)]
    Seal(#[from] SealerError),
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] BundleError),
    /// There is no store.
    #[error(
        "there is no evidence in `{0}`: record something first, or name another state directory"
    )]
    Absent(PathBuf),
    /// A newer program wrote it.
    #[error(
        "`{path}` has state version {found}, this program knows {STATE_VERSION}: use a newer wardkeep"
    )]
    Newer {
        /// The state directory.
        path: PathBuf,
        /// Its version.
        found: String,
    },
}

type Result<T> = std::result::Result<T, StoreError>;

/// Something that happened, on its way to become a record.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// What kind of thing.
    pub kind: RecordType,
    /// On whose behalf.
    pub principal: Principal,
    /// What flowed into it.
    pub taint: Vec<Cow<'a, str>>,
    /// Records it came from.
    pub parents: Vec<RecordId>,
    /// The agent it concerns.
    pub agent: &'a str,
    /// The session it concerns.
    pub session: &'a str,
    /// The workspace it concerns.
    pub workspace: &'a str,
    /// More facts; `ts`, `nonce` and the three above are set by the store.
    pub meta: Object<'a>,
    /// Its content.
    pub payload: Payload<'a>,
}

impl<'a> Event<'a> {
    /// An event with inline content and nothing else.
    #[must_use]
    pub fn new(kind: RecordType, principal: Principal, content: Value<'a>) -> Self {
        Self {
            kind,
            principal,
            taint: Vec::new(),
            parents: Vec::new(),
            agent: "",
            session: "",
            workspace: "",
            meta: Object::default(),
            payload: Payload::Inline(content),
        }
    }
}

/// An open state directory.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    journal: Journal,
    sealer: Mutex<Sealing>,
    clock: Clock,
}

#[derive(Debug)]
struct Sealing {
    sealer: std::result::Result<Sealer, String>,
    // The last attempt failed, and when (in seconds since 1970) that was.
    failed: Option<(u64, String)>,
}

/// After a seal that could not be made, appends do not try again for so many seconds.
const RETRY_SECONDS: u64 = 10;

impl Store {
    /// Opens the state directory `path`, making it if it is not there.
    ///
    /// # Errors
    /// When it cannot be used, is not private, or a newer program wrote it. Missing or damaged
    /// seal keys are no error here: the journal goes on, and [`Store::seal_problem`] says so.
    pub fn open(path: &Path, config: StoreConfig) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| JournalError::io("create", parent, error))?;
        }
        let _folder = Folder::create(path)?;
        check_version(path, true)?;
        let journal = Journal::open(
            &path.join("journal"),
            Config {
                clock: config.clock.clone(),
                segment_bytes: config.segment_bytes,
                append_only: config.append_only,
            },
        )?;
        let sealer = open_sealer(path, &journal, config.append_only)?;
        Ok(Self {
            path: path.to_owned(),
            journal,
            sealer: Mutex::new(Sealing { sealer, failed: None }),
            clock: config.clock,
        })
    }

    /// The state directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Appends an event; when this returns, it is on disk. If an epoch has ended, its seal is
    /// made first.
    ///
    /// # Errors
    /// When it cannot be written. A seal that cannot be made is no error here.
    pub fn append(&self, event: Event<'_>) -> Result<Appended> {
        Ok(self.append_later(event)?.on_disk()?)
    }

    /// Takes an event to be appended; it is on disk when [`Waiting::on_disk`] says so.
    ///
    /// # Errors
    /// When it cannot be taken.
    pub fn append_later(&self, event: Event<'_>) -> Result<Waiting<'_>> {
        let now = self.clock.now();
        let _ = self.seal_at(now, false);
        let Event { kind, principal, taint, parents, agent, session, workspace, mut meta, payload } =
            event;
        let nonce = nonce()?;
        meta.set("agent", Value::from(agent));
        meta.set("nonce", Value::from(nonce));
        meta.set("session", Value::from(session));
        meta.set("ts", Value::from(now.to_string()));
        meta.set("workspace", Value::from(workspace));
        let record = NewRecord { kind, principal, taint, parents, meta, payload };
        let taken = self.journal.append_later(record)?;
        count(taken.bytes());
        Ok(taken)
    }

    /// Makes the seal that is due now, if one is.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn seal(&self) -> Result<Option<Seal>> {
        self.seal_at(self.clock.now(), true)
    }

    /// The log's public keys, where there are any.
    #[must_use]
    pub fn public(&self) -> Option<LogPublic> {
        self.sealing().sealer.as_ref().ok().map(|sealer| *sealer.public())
    }

    /// When the next seal is due, in seconds since 1970, where there are keys.
    #[must_use]
    pub fn next_seal(&self) -> Option<u64> {
        self.sealing().sealer.as_ref().ok().map(Sealer::next_due)
    }

    /// Why no seals are made, if so.
    #[must_use]
    pub fn seal_problem(&self) -> Option<String> {
        let sealing = self.sealing();
        let failed = sealing.failed.as_ref().map(|(_, why)| why);
        sealing.sealer.as_ref().err().or(failed).cloned()
    }

    /// Keeps `bytes` under their hash.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<BlobHash> {
        let hash = BlobHash(sha256(bytes));
        let folder = self.path.join("blobs");
        Folder::create(&folder)?;
        let path = folder.join(hash.to_string());
        if holds(&path, bytes) {
            return Ok(hash);
        }
        let staged = StagedFile::create(&path, 0o600)?;
        let mut file = staged.file();
        file.write_all(bytes).map_err(|error| JournalError::io("write", &path, error))?;
        staged.commit(true)?;
        count(bytes.len());
        Ok(hash)
    }

    fn seal_at(&self, now: Timestamp, insist: bool) -> Result<Option<Seal>> {
        let seconds = u64::try_from(now.unix()).unwrap_or(0);
        let mut sealing = self.sealing();
        let Sealing { sealer, failed } = &mut *sealing;
        let Ok(open) = sealer else { return Ok(None) };
        let tired = failed.as_ref().is_some_and(|(at, _)| seconds.abs_diff(*at) < RETRY_SECONDS);
        if !open.is_due(seconds) || (tired && !insist) {
            return Ok(None);
        }
        let sealed = open.seal(&self.journal, seconds);
        *failed = sealed.as_ref().err().map(|error| (seconds, error.to_string()));
        if let Err(error @ (SealerError::Truncated { .. } | SealerError::Key { .. })) = &sealed {
            // Said once; the next start tries again.
            tell_stopped(&self.journal, error);
            *sealer = Err(error.to_string());
        }
        Ok(sealed?)
    }

    fn sealing(&self) -> MutexGuard<'_, Sealing> {
        self.sealer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static WRITTEN: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    WRITTEN.set(WRITTEN.get().wrapping_add(bytes as u64));
}

/// Bytes of records and blobs that this thread had written, since it began. A question is answered in one
/// thread, so that it can be told what it cost.
pub(crate) fn written_here() -> u64 {
    WRITTEN.get()
}

/// Opens the keys, or says why there are none.
fn open_sealer(
    path: &Path,
    journal: &Journal,
    append_only: bool,
) -> Result<std::result::Result<Sealer, String>> {
    let entries = journal.while_locked(|entries, _| entries)?;
    if entries > 0
        && Sealer::lacks_keys(path)
        && let Err(error) = journal.report(Found::NewKeys { entries })
    {
        // A log does not get another name without a word.
        return Ok(Err(error.to_string()));
    }
    let opened = journal.while_locked(|_, _| Sealer::open(path, append_only))?;
    if let Err(error) = &opened {
        tell_stopped(journal, error);
    }
    Ok(opened.map_err(|error| error.to_string()))
}

fn tell_stopped(journal: &Journal, error: &SealerError) {
    if let SealerError::Key { path, what } = error {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let reason = wardkeep_evidence::check::printable(&format!("{name} {what}"));
        // The caller hears of it in any case.
        let _ = journal.report_stopped(reason);
    }
}

/// Whether a file is there and holds `bytes`.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    read_plain(path, bytes.len() as u64).is_ok_and(|found| found == bytes)
}

/// A state directory open for reading only: nothing is made, nothing is mended.
#[derive(Debug)]
pub struct StoreReader {
    path: PathBuf,
    folder: Folder,
}

impl StoreReader {
    /// Opens the state directory `path`.
    ///
    /// # Errors
    /// When there is none, or a newer program wrote it.
    pub fn open(path: &Path) -> Result<Self> {
        let journal = path.join("journal");
        if !journal.is_dir() {
            return Err(StoreError::Absent(path.to_owned()));
        }
        check_version(path, false)?;
        Ok(Self { path: path.to_owned(), folder: Folder::open(&journal)? })
    }

    /// The state directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal's folder.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The log's public keys, where they are and can be read.
    #[must_use]
    pub fn public(&self) -> Option<LogPublic> {
        let bytes = read_plain(&self.path.join(LOG_PUBLIC), MAX_SMALL_BYTES).ok()?;
        str::from_utf8(&bytes).ok()?.trim_end().parse().ok()
    }
}

fn check_version(path: &Path, create: bool) -> Result<()> {
    let file = path.join("version");
    match read_plain(&file, MAX_SMALL_BYTES)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    {
        Ok(text) => match text.trim_end().parse::<u32>() {
            Ok(version) if version <= STATE_VERSION => Ok(()),
            _ => Err(StoreError::Newer {
                path: path.to_owned(),
                found: wardkeep_evidence::check::printable(text.trim_end()),
            }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && create => {
            Ok(StagedFile::replace(&file, 0o600, format!("{STATE_VERSION}\n").as_bytes())?)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(JournalError::io("read", &file, error).into()),
    }
}
