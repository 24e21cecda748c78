//! Reading the journal into the index.

use std::collections::HashMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::num::NonZero;

use rusqlite::{OptionalExtension as _, Statement, Transaction, params};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{Chunk, each_chunk};

use super::{Facts, INDEXES, Index, IndexError, key, signed, unsigned};
use crate::journal::{Folder, JournalError, JournalLine, Position, SegmentNumber, parse_line};

/// From so many bytes on, an empty index is filled first and sorted afterwards.
const BULK: u64 = 8 << 20;
/// Most records whose place is remembered while edges are made; others are looked up.
const MAX_RECENT: usize = 2_000_000;

impl Index {
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
        let (from, left) = unread(&transaction, folder)?.map_err(failed)?;
        if left == 0 && from.is_some_and(|from| from != Position::START) {
            return Ok(0);
        }
        drop(transaction);
        // Whoever has read and would then write is refused at once if another has written in between: so it
        // is begun as one that writes, which waits for its turn.
        let writes = rusqlite::TransactionBehavior::Immediate;
        let transaction = self.database.transaction_with_behavior(writes).map_err(failed)?;
        let (mut from, mut left) = unread(&transaction, folder)?.map_err(failed)?;
        if from.is_none() {
            // A journal shorter than the index was replaced: what is indexed no longer holds.
            let all = "DELETE FROM lines; DELETE FROM edges; DELETE FROM shapes;";
            transaction.execute_batch(all).map_err(failed)?;
            left = journal_bytes(folder)?;
        }
        let start = from.get_or_insert(Position::START);
        if left == 0 && *start != Position::START {
            return Ok(0);
        }
        let bulk = *start == Position::START && left >= BULK;
        if bulk {
            for (name, _) in INDEXES {
                transaction.execute(&format!("DROP INDEX {name}"), []).map_err(failed)?;
            }
        }
        let mut filler = Filler::new(&transaction, bulk).map_err(failed)?;
        let reached = filler.read(folder, *start, progress).map_err(|error| match error {
            Stopped::Journal(error) => IndexError::Journal(error),
            Stopped::Database(error) => failed(error),
        })?;
        let (added, has_keys) = (filler.added, filler.has_keys);
        filler.write_shapes().map_err(failed)?;
        drop(filler);
        if bulk {
            for (name, rest) in INDEXES.iter().filter(|(name, _)| *name != KEYS || !has_keys) {
                let create = format!("CREATE INDEX {name} {rest}");
                transaction.execute(&create, []).map_err(failed)?;
            }
        }
        transaction.execute("DELETE FROM reached", []).map_err(failed)?;
        transaction
            .execute(
                "INSERT INTO reached (segment, offset) VALUES (?1, ?2)",
                params![reached.segment, signed(reached.offset)],
            )
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if bulk {
            // Only room on the disk hangs on it, and a reader may be in the way.
            let _ = self.database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);");
        }
        Ok(added)
    }
}

const KEYS: &str = "lines_key";

/// Where reading goes on, and how many bytes are behind it; no place if the journal is shorter
/// than what was read of it.
fn unread(
    transaction: &Transaction<'_>,
    folder: &Folder,
) -> Result<rusqlite::Result<(Option<Position>, u64)>, JournalError> {
    let reached = transaction
        .query_row("SELECT segment, offset FROM reached", [], |row| {
            Ok(Position { segment: row.get(0)?, offset: unsigned(row.get(1)?) })
        })
        .optional();
    let from = match reached {
        Ok(reached) => reached.unwrap_or(Position::START),
        Err(error) => return Ok(Err(error)),
    };
    let mut left = 0;
    let mut newest = None;
    for segment in folder.segments()? {
        newest = Some(segment);
        if segment.0 < from.segment {
            continue;
        }
        let length = match folder.read_segment(segment) {
            Ok((_, length)) => length,
            Err(JournalError::Unsafe { .. }) => continue,
            Err(error) => return Err(error),
        };
        if segment.0 == from.segment && length < from.offset {
            return Ok(Ok((None, 0)));
        }
        left += if segment.0 == from.segment { length - from.offset } else { length };
    }
    let shorter = newest.map_or(from != Position::START, |newest| newest.0 < from.segment);
    Ok(Ok(((!shorter).then_some(from), left)))
}

fn journal_bytes(folder: &Folder) -> Result<u64, JournalError> {
    let size = |segment| folder.read_segment(segment).map_or(0, |(_, length)| length);
    Ok(folder.segments()?.into_iter().map(size).sum())
}

enum Stopped {
    Journal(JournalError),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Stopped {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// A line as the index keeps it.
struct Line {
    index: u64,
    key: i64,
    offset: u64,
    length: u64,
    time: Option<i64>,
    shape: i64,
    many: u64,
    session: Option<String>,
    agent: Option<String>,
    rule: Option<String>,
    subject: Option<String>,
    /// Keys of the parents, and whether each is only what the session had seen.
    parents: Vec<(i64, bool)>,
}

/// The lines of a chunk, and how many bytes of it are whole lines.
struct Batch {
    lines: Vec<Line>,
    whole: u64,
}

struct Filler<'t> {
    transaction: &'t Transaction<'t>,
    insert: Statement<'t>,
    edge: Statement<'t>,
    // Where records of this run are, by key.
    recent: HashMap<i64, u64>,
    // Whether what is not in `recent` can be looked up; in an empty index there is nothing else.
    has_keys: bool,
    shapes: HashMap<i64, (u64, u64)>,
    added: u64,
}

impl<'t> Filler<'t> {
    fn new(transaction: &'t Transaction<'t>, bulk: bool) -> rusqlite::Result<Self> {
        Ok(Self {
            transaction,
            // The first line of a place is the honest one: what comes later was put there.
            insert: transaction.prepare(
                "INSERT OR IGNORE INTO lines
                 (idx, key, segment, offset, length, time, shape, many, session, agent, rule, subject)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?,
            edge: transaction.prepare(
                "INSERT OR IGNORE INTO edges (child, parent, ambient) VALUES (?1, ?2, ?3)",
            )?,
            recent: HashMap::new(),
            has_keys: !bulk,
            shapes: HashMap::new(),
            added: 0,
        })
    }

    fn read(
        &mut self,
        folder: &Folder,
        from: Position,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Position, Stopped> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(8);
        let mut reached = from;
        for segment in folder.segments().map_err(Stopped::Journal)? {
            if segment.0 < from.segment {
                continue;
            }
            let start = if segment.0 == from.segment { from.offset } else { 0 };
            let failed = |error| {
                Stopped::Journal(JournalError::io("read", &folder.segment_path(segment), error))
            };
            let (mut file, length) = match folder.read_segment(segment) {
                Ok(opened) => opened,
                Err(JournalError::Unsafe { .. }) => continue,
                Err(error) => return Err(Stopped::Journal(error)),
            };
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            // What is appended meanwhile is for the next time.
            let mut part = (&mut file).take(length.saturating_sub(start));
            reached = Position { segment: segment.0, offset: start };
            let mut problem = None;
            each_chunk(&mut part, threads, read_chunk, |batch| {
                if problem.is_some() {
                    return;
                }
                for line in batch.lines {
                    if let Err(error) = self.take(segment, reached.offset, line) {
                        problem = Some(error);
                        return;
                    }
                }
                reached.offset += batch.whole;
                progress(batch.whole);
            })
            .map_err(failed)?;
            if let Some(error) = problem {
                return Err(error.into());
            }
        }
        Ok(reached)
    }

    fn take(&mut self, segment: SegmentNumber, start: u64, line: Line) -> rusqlite::Result<()> {
        let inserted = self.insert.execute(params![
            signed(line.index),
            line.key,
            segment.0,
            signed(start + line.offset),
            signed(line.length),
            line.time,
            line.shape,
            (line.many > 0).then_some(signed(line.many)),
            line.session,
            line.agent,
            line.rule,
            line.subject,
        ])?;
        if inserted == 0 {
            return Ok(());
        }
        self.added += 1;
        let (records, many) = self.shapes.entry(line.shape).or_default();
        *records += 1;
        *many += line.many;
        for (parent, ambient) in line.parents {
            // Whatever a record says, what it came from was there before.
            if let Some(parent) = self.place(parent)?.filter(|parent| *parent < line.index) {
                self.edge.execute(params![signed(line.index), signed(parent), ambient])?;
            }
        }
        if self.recent.len() >= MAX_RECENT {
            self.recent.clear();
            if !self.has_keys {
                let keys = INDEXES.iter().filter(|(name, _)| *name == KEYS);
                for (name, rest) in keys {
                    self.transaction.execute(&format!("CREATE INDEX {name} {rest}"), [])?;
                }
                self.has_keys = true;
            }
        }
        self.recent.insert(line.key, line.index);
        Ok(())
    }

    fn place(&self, key: i64) -> rusqlite::Result<Option<u64>> {
        if let Some(place) = self.recent.get(&key) {
            return Ok(Some(*place));
        }
        if !self.has_keys {
            return Ok(None);
        }
        let mut statement =
            self.transaction.prepare_cached("SELECT idx FROM lines WHERE key = ?1 LIMIT 1")?;
        statement.query_row([key], |row| row.get(0).map(unsigned)).optional()
    }

    fn write_shapes(&mut self) -> rusqlite::Result<()> {
        let mut add = self.transaction.prepare(
            "INSERT INTO shapes (shape, records, many) VALUES (?1, ?2, ?3)
             ON CONFLICT (shape) DO UPDATE
             SET records = records + excluded.records, many = many + excluded.many",
        )?;
        for (shape, (records, many)) in self.shapes.drain() {
            add.execute(params![shape, signed(records), signed(many)])?;
        }
        Ok(())
    }
}

fn read_chunk(chunk: Chunk) -> Batch {
    let mut batch = Batch { lines: Vec::new(), whole: 0 };
    let mut offset = 0u64;
    for (_, text) in chunk.lines() {
        let (start, length) = (offset, text.len() as u64);
        offset += length + 1;
        // A last line without its newline is being written, or torn.
        if offset > chunk.bytes.len() as u64 {
            break;
        }
        batch.whole = offset;
        batch.lines.extend(parse_line(text).map(|line| Line::new(&line, start, length)));
    }
    batch
}

impl Line {
    fn new(line: &JournalLine<'_>, offset: u64, length: u64) -> Self {
        let record = &line.record;
        let facts = Facts::of(record);
        let time: Option<Timestamp> = record.timestamp().and_then(|text| text.parse().ok());
        let text = |text: Option<&str>| text.map(str::to_owned);
        Self {
            index: line.entry.index,
            key: key(&record.id),
            offset,
            length,
            time: time.map(Timestamp::unix),
            shape: facts.shape.pack(),
            many: facts.many,
            session: text(record.meta_str("session")),
            agent: text(record.meta_str("agent")),
            rule: text(facts.rule),
            subject: facts.kept_subject().map(|subject| subject.into_owned()),
            parents: edges(&record.parents, facts.context),
        }
    }
}

/// The parent that the record calls its context is an ambient one, unless it stands there twice.
fn edges(parents: &[RecordId], context: Option<RecordId>) -> Vec<(i64, bool)> {
    let mut context = context;
    let ambient = |parent: &RecordId, context: &mut Option<RecordId>| {
        context.take_if(|context| context == parent).is_some()
    };
    parents.iter().map(|parent| (key(parent), ambient(parent, &mut context))).collect()
}
