//! An index of the journal in SQLite: where each record is, of what shape, and what came from what.
//! It is rebuilt from the journal at any time and never believed: what it points to is read and its
//! id recomputed. What it counts is as good as the file it stands in.

mod fill;
mod queries;
mod shape;
mod words;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::{Record, RecordType};
use wardkeep_evidence::time::Timestamp;

pub use self::queries::{Asked, Row};
pub use self::shape::{Facts, Shape};
pub use self::words::Said;
use crate::files::no_follow;
use crate::journal::{Folder, JournalError, JournalLine};
pub use wardkeep_guard::alert::{Category, Severity};
pub use wardkeep_guard::verdict::Verdict;

const FILE: &str = "index.sqlite";
const VERSION: i64 = 3;
// The numbers are shapes: notifications, acknowledgements, changes of files.
const TABLES: &str = "
    CREATE TABLE lines (
        idx INTEGER PRIMARY KEY, key INTEGER NOT NULL, segment INTEGER NOT NULL,
        offset INTEGER NOT NULL, length INTEGER NOT NULL, time INTEGER,
        shape INTEGER NOT NULL, many INTEGER, session TEXT, agent TEXT, rule TEXT, subject TEXT);
    CREATE TABLE edges (
        child INTEGER NOT NULL, parent INTEGER NOT NULL, ambient INTEGER NOT NULL,
        PRIMARY KEY (child, parent, ambient)) WITHOUT ROWID;
    CREATE TABLE shapes (shape INTEGER PRIMARY KEY, records INTEGER NOT NULL, many INTEGER NOT NULL);
    CREATE TABLE reached (segment INTEGER NOT NULL, offset INTEGER NOT NULL);";
const INDEXES: [(&str, &str); 10] = [
    ("lines_key", "ON lines (key)"),
    ("lines_session", "ON lines (session, idx)"),
    ("lines_agent", "ON lines (agent, idx)"),
    ("lines_kind", "ON lines (shape & 31, idx)"),
    ("lines_verdict", "ON lines (shape & 245760, idx) WHERE shape & 245760 > 0"),
    ("lines_time", "ON lines (time)"),
    ("lines_notice", "ON lines (idx, shape) WHERE shape >= 1073741824"),
    ("lines_acknowledged", "ON lines (idx) WHERE shape & 15872 = 3072"),
    ("lines_changed", "ON lines (subject, idx) WHERE shape & 31 IN (6, 7, 13)"),
    ("edges_parent", "ON edges (parent)"),
];

/// Why the index cannot be used. The journal can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// SQLite refused.
    #[error("the index `{path}` cannot be used ({error}): run `wardkeep evidence reindex`")]
    Database {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        error: rusqlite::Error,
    },
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl IndexError {
    fn is_busy(&self) -> bool {
        let Self::Database { error, .. } = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
        )
    }
}

/// Why a question that the index leads to has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookError {
    /// The index cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The record is not in the index, or not where that says.
    #[error("the record {0} is not in the index: run `wardkeep evidence reindex`")]
    Unknown(RecordId),
    /// The index is not of this journal, or was changed.
    #[error("the index is wrong about {0} records: run `wardkeep evidence reindex`")]
    Wrong(u64),
}

impl From<JournalError> for LookError {
    fn from(error: JournalError) -> Self {
        Self::Index(error.into())
    }
}

/// Which records are asked for; all that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Not before this time of the record.
    pub since: Option<Timestamp>,
    /// Not after this time of the record.
    pub until: Option<Timestamp>,
    /// Of this session.
    pub session: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of this type.
    pub kind: Option<RecordType>,
    /// Decided so.
    pub verdict: Option<Verdict>,
    /// Of this category.
    pub category: Option<Category>,
    /// Notifications at least so grave.
    pub severity: Option<Severity>,
    /// Before this position in the log.
    pub below: Option<u64>,
    /// From this position in the log on.
    pub from: Option<u64>,
}

impl Filter {
    /// Whether a line is asked for.
    #[must_use]
    pub fn matches(&self, line: &JournalLine<'_>) -> bool {
        let record = &line.record;
        let time = record.timestamp().and_then(|text| text.parse::<Timestamp>().ok());
        let is = |wanted: &Option<String>, key: &str| {
            wanted.as_deref().is_none_or(|wanted| record.meta_str(key) == Some(wanted))
        };
        self.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| time.is_some_and(|time| time <= until))
            && self.kind.is_none_or(|kind| record.kind == kind)
            && self.below.is_none_or(|below| line.entry.index < below)
            && self.from.is_none_or(|from| line.entry.index >= from)
            && is(&self.session, "session")
            && is(&self.agent, "agent")
            && self.takes(record)
    }

    fn takes(&self, record: &Record<'_>) -> bool {
        let Self { verdict, category, severity, .. } = self;
        if verdict.is_none() && category.is_none() && severity.is_none() {
            return true;
        }
        let shape = Facts::of(record).shape;
        verdict.is_none_or(|verdict| shape.verdict == Some(verdict))
            && category.is_none_or(|category| shape.category == Some(category))
            && severity.is_none_or(|severity| shape.level >= Some(severity))
    }

    /// Whether one index answers it all at once.
    pub(crate) fn is_direct(&self) -> bool {
        let Self { since, until, session, agent, kind, verdict, category, severity, .. } = self;
        let indexed = [
            session.is_some(),
            agent.is_some(),
            kind.is_some(),
            verdict.is_some(),
            severity.is_some(),
        ];
        let others = since.is_some() || until.is_some() || category.is_some();
        !others && indexed.into_iter().filter(|given| *given).count() <= 1
    }
}

/// An open index.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    database: Connection,
}

impl Index {
    /// Opens the index of the state directory `state`, making it anew if it is missing, damaged
    /// or of another version.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(state: &Path) -> Result<Self, IndexError> {
        match patiently(|| Self::connect(state)) {
            Ok(index) => Ok(index),
            // Another process is at work on it.
            Err(error) if error.is_busy() => Err(error),
            Err(_) => {
                Self::remove(state);
                Self::connect(state)
            }
        }
    }

    /// Opens the index if there is a usable one; changes nothing.
    #[must_use]
    pub fn open_existing(state: &Path) -> Option<Self> {
        let path = plain_path(state).ok()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let database = Connection::open_with_flags(&path, flags).ok()?;
        is_ours(&database).ok()?.then_some(Self { path, database })
    }

    /// Opens the index and brings it up to date, or makes it anew.
    ///
    /// # Errors
    /// When the journal cannot be read or the index not written.
    pub fn ready(
        state: &Path,
        folder: &Folder,
        anew: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, IndexError> {
        if anew {
            Self::rebuild(state, folder, progress)?;
        }
        patiently(|| {
            let mut index = Self::open(state)?;
            index.catch_up(folder, progress)?;
            Ok(index)
        })
    }

    /// Throws the index away and reads it anew; gives the number of records.
    ///
    /// # Errors
    /// When the journal cannot be read or the index not written.
    pub fn rebuild(
        state: &Path,
        folder: &Folder,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, IndexError> {
        Self::remove(state);
        let mut index = Self::connect(state)?;
        index.catch_up(folder, progress)
    }

    fn connect(state: &Path) -> Result<Self, IndexError> {
        let path = state.join(FILE);
        let refused = |error: io::Error| {
            let error = rusqlite::Error::ToSqlConversionFailure(Box::new(error));
            IndexError::Database { path: path.clone(), error }
        };
        let failed = |error| IndexError::Database { path: path.clone(), error };
        // SQLite would make it readable for others; what it makes beside it has the same mode.
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(no_follow())
            .open(&path);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refused(error));
            }
            _ => {}
        }
        let plain = plain_path(state).map_err(refused)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut database = Connection::open_with_flags(&plain, flags).map_err(failed)?;
        database.busy_timeout(PATIENCE).map_err(failed)?;
        database
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
            .map_err(failed)?;
        if schema(&database).map_err(failed)?.is_empty() {
            let transaction = database
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
                .map_err(failed)?;
            // Another process may have been faster.
            if schema(&transaction).map_err(failed)?.is_empty() {
                transaction
                    .execute_batch(&format!("{} PRAGMA user_version = {VERSION};", definition()))
                    .map_err(failed)?;
            }
            transaction.commit().map_err(failed)?;
        }
        if !is_ours(&database).map_err(failed)? {
            return Err(failed(rusqlite::Error::InvalidQuery));
        }
        Ok(Self { path, database })
    }

    fn remove(state: &Path) {
        for suffix in SUFFIXES {
            let _ = fs::remove_file(state.join(format!("{FILE}{suffix}")));
        }
    }

    fn failed(&self, error: rusqlite::Error) -> IndexError {
        IndexError::Database { path: self.path.clone(), error }
    }
}

/// How long another process that is at work on the index is waited for where SQLite itself does not wait: when two make
/// it at the same time, or one writes what the other has begun to read.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

fn patiently<T>(mut attempt: impl FnMut() -> Result<T, IndexError>) -> Result<T, IndexError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if error.is_busy() && Instant::now() < until => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// The database and what SQLite keeps beside it.
const SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Where the index is, by a way without links, which SQLite would follow; refuses what it would
/// wait for.
fn plain_path(state: &Path) -> io::Result<PathBuf> {
    let state = fs::canonicalize(state)?;
    for suffix in SUFFIXES {
        match fs::symlink_metadata(state.join(format!("{FILE}{suffix}"))) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(io::Error::other("not a regular file"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(state.join(FILE))
}

/// Whether a database has our tables and nothing else that could run on its own.
fn is_ours(database: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let model = Connection::open_in_memory()?;
    model.execute_batch(&definition())?;
    Ok(version == VERSION && schema(database)? == schema(&model)?)
}

/// Everything that the database consists of.
fn definition() -> String {
    let indexes = INDEXES.map(|(name, rest)| format!("CREATE INDEX {name} {rest};"));
    format!("{TABLES}{}", indexes.concat())
}

/// What a database consists of: kind, name and definition.
fn schema(database: &Connection) -> rusqlite::Result<Vec<[Option<String>; 3]>> {
    let mut statement =
        database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name LIMIT 100")?;
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
    rows.collect()
}

// SQLite has signed integers only; offsets and positions stay far below their limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The beginning of an id as a number that sorts as the id does.
fn key(id: &RecordId) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&id.0[..8]);
    first[0] ^= 0x80;
    i64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_in_the_definition_are_those_of_the_shapes() {
        let definition = definition();
        let first = shape::FIRST_NOTICE;
        assert!(definition.contains(&format!("WHERE shape >= {first};")));
        let (mask, told) = Shape::said_bits(Said::Acknowledgement);
        assert!(definition.contains(&format!("WHERE shape & {mask} = {told};")));
        let mask = Shape::verdict_bits(Verdict::Deny).0;
        assert!(definition.contains(&format!("(shape & {mask}, idx) WHERE shape & {mask} > 0;")));
        let kinds = [RecordType::FileWrite, RecordType::FileDelete, RecordType::FileRename];
        let kinds = kinds.map(|kind| Shape::kind_bits(kind).1.to_string()).join(", ");
        assert!(definition.contains(&format!("WHERE shape & 31 IN ({kinds});")));
    }

    #[test]
    fn keys_sort_as_ids_do() {
        let id = |byte| RecordId([byte; 32]);
        assert!(key(&id(0)) < key(&id(1)) && key(&id(0x7f)) < key(&id(0x80)));
        assert!(key(&id(0x80)) < key(&id(0xff)));
    }
}
