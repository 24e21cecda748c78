//! An index of the journal in SQLite: where each record is. It is rebuilt from the journal at any
//! time and never believed: what it points to is read and its id recomputed.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::RecordType;
use wardkeep_evidence::time::Timestamp;

use crate::files::no_follow;
use crate::journal::{
    Folder, JournalError, JournalLine, Location, Position, SegmentNumber, parse_line, scan,
};

const FILE: &str = "index.sqlite";
const VERSION: i64 = 1;
const TABLES: &str = "
    CREATE TABLE lines (
        idx INTEGER PRIMARY KEY, id BLOB NOT NULL, segment INTEGER NOT NULL,
        offset INTEGER NOT NULL, length INTEGER NOT NULL, time INTEGER,
        kind TEXT NOT NULL, session TEXT, agent TEXT);
    CREATE INDEX lines_id ON lines (id);
    CREATE INDEX lines_session ON lines (session, idx);
    CREATE INDEX lines_agent ON lines (agent, idx);
    CREATE INDEX lines_time ON lines (time);
    CREATE TABLE reached (segment INTEGER NOT NULL, offset INTEGER NOT NULL);";

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
            && is(&self.session, "session")
            && is(&self.agent, "agent")
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
        match Self::connect(state) {
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

    /// Reads what was appended since; gives the number of records that are new.
    ///
    /// # Errors
    /// When the journal cannot be read or the index not written.
    pub fn catch_up(
        &mut self,
        folder: &Folder,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, IndexError> {
        let path = self.path.clone();
        let failed = |error| IndexError::Database { path: path.clone(), error };
        let transaction = self.database.transaction().map_err(failed)?;
        let mut from = transaction
            .query_row("SELECT segment, offset FROM reached", [], |row| {
                Ok(Position { segment: row.get(0)?, offset: unsigned(row.get(1)?) })
            })
            .optional()
            .map_err(failed)?
            .unwrap_or(Position::START);
        // A journal shorter than the index was replaced: what is indexed no longer holds.
        let newest = folder.segments()?.last().copied();
        let shorter = match newest {
            None => from != Position::START,
            Some(newest) if newest.0 == from.segment => {
                folder.read_segment(newest)?.1 < from.offset
            }
            Some(newest) => newest.0 < from.segment,
        };
        if shorter {
            transaction.execute("DELETE FROM lines", []).map_err(failed)?;
            from = Position::START;
        }
        let mut added = 0;
        let mut problem = None;
        let reached = {
            let mut insert = transaction
                .prepare(
                    "INSERT OR REPLACE INTO lines
                     (idx, id, segment, offset, length, time, kind, session, agent)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )
                .map_err(failed)?;
            scan(folder, from, |location, text| {
                let Some(line) = parse_line(text) else { return ControlFlow::Continue(()) };
                let time: Option<Timestamp> =
                    line.record.timestamp().and_then(|text| text.parse().ok());
                let inserted = insert.execute(params![
                    signed(line.entry.index),
                    line.record.id.0,
                    location.segment.0,
                    signed(location.offset),
                    signed(location.length),
                    time.map(Timestamp::unix),
                    line.record.kind.as_str(),
                    line.record.meta_str("session"),
                    line.record.meta_str("agent"),
                ]);
                if let Err(error) = inserted {
                    problem = Some(error);
                    return ControlFlow::Break(());
                }
                added += 1;
                progress(location.length + 1);
                ControlFlow::Continue(())
            })?
        };
        if let Some(error) = problem {
            return Err(failed(error));
        }
        transaction.execute("DELETE FROM reached", []).map_err(failed)?;
        transaction
            .execute(
                "INSERT INTO reached (segment, offset) VALUES (?1, ?2)",
                params![reached.segment, signed(reached.offset)],
            )
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(added)
    }

    /// Where the index says a record is.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn location(&self, id: RecordId) -> Result<Option<Location>, IndexError> {
        self.database
            .query_row("SELECT segment, offset, length FROM lines WHERE id = ?1", [id.0], location)
            .optional()
            .map_err(|error| self.failed(error))
    }

    /// Where the index says the records with ids from `first` to `last` are, at most `limit`.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn between(
        &self,
        first: RecordId,
        last: RecordId,
        limit: u32,
    ) -> Result<Vec<Location>, IndexError> {
        let failed = |error| self.failed(error);
        let mut statement = self
            .database
            .prepare(
                "SELECT segment, offset, length FROM lines
                 WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
            )
            .map_err(failed)?;
        let rows =
            statement.query_map(params![first.0, last.0, limit], location).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    /// Where the index says the newest records that match are, newest first, at most `limit`.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn newest(&self, filter: &Filter, limit: u32) -> Result<Vec<Location>, IndexError> {
        let failed = |error| self.failed(error);
        let mut statement = self
            .database
            .prepare(
                "SELECT segment, offset, length FROM lines
                 WHERE (?1 IS NULL OR time >= ?1) AND (?2 IS NULL OR time <= ?2)
                   AND (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR agent = ?4)
                   AND (?5 IS NULL OR kind = ?5)
                 ORDER BY idx DESC LIMIT ?6",
            )
            .map_err(failed)?;
        let rows = statement
            .query_map(
                params![
                    filter.since.map(Timestamp::unix),
                    filter.until.map(Timestamp::unix),
                    filter.session,
                    filter.agent,
                    filter.kind.map(RecordType::as_str),
                    limit
                ],
                location,
            )
            .map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
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
        database.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed)?;
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
                    .execute_batch(&format!("{TABLES} PRAGMA user_version = {VERSION};"))
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
    model.execute_batch(TABLES)?;
    Ok(version == VERSION && schema(database)? == schema(&model)?)
}

/// What a database consists of: kind, name and definition.
fn schema(database: &Connection) -> rusqlite::Result<Vec<[Option<String>; 3]>> {
    let mut statement =
        database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name LIMIT 100")?;
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
    rows.collect()
}

fn location(row: &rusqlite::Row<'_>) -> rusqlite::Result<Location> {
    Ok(Location {
        segment: SegmentNumber(row.get(0)?),
        offset: unsigned(row.get(1)?),
        length: unsigned(row.get(2)?),
    })
}

// SQLite has signed integers only; offsets and positions stay far below their limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
