//! Appending: many threads, one flush; many processes, one chain.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::{EntryHash, RecordId};
use wardkeep_evidence::record::NewRecord;

use super::folder::{Folder, Hint, LockGuard, SegmentNumber};
use super::tail::{LastEntry, read_end};
use super::{
    Appended, Config, Found, JournalError, Location, MAX_RECORD_BYTES, Result, line, recovery,
};

/// A journal open for appending. Share it between threads by reference.
#[derive(Debug)]
pub struct Journal {
    folder: Folder,
    lock: File,
    config: Config,
    queue: Mutex<Queue>,
    answered: Condvar,
    writer: Mutex<Writer>,
}

/// Appends that wait for the next flush, and answers that wait to be picked up.
#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Pending>,
    answers: Vec<(u64, Result<Appended>)>,
    next_ticket: u64,
    // A thread writes at the moment; the others wait for its answers.
    led: bool,
}

#[derive(Debug)]
struct Pending {
    ticket: u64,
    id: RecordId,
    record: Vec<u8>,
}

/// The end of the journal as this process last saw it.
#[derive(Debug)]
struct Writer {
    hint: Hint,
    segment: SegmentNumber,
    file: File,
    inode: u64,
    length: u64,
    unfinished: bool,
    last: Option<LastEntry>,
    // Something went wrong since: look at the file again before believing the above.
    stale: bool,
    leave_segment: bool,
    found: Vec<Found>,
    buffer: Vec<u8>,
}

impl Journal {
    /// Opens the journal in the folder `path`, making it if it is not there. What is damaged is
    /// recorded and left behind; only a folder that cannot be used at all is refused.
    ///
    /// # Errors
    /// When the folder cannot be opened, locked or written, or is not private.
    pub fn open(path: &Path, config: Config) -> Result<Self> {
        let folder = Folder::create(path)?;
        let lock = folder.open_lock()?;
        let writer = {
            let _held = folder.lock(&lock)?;
            Writer::open(&folder, &config, &lock)?
        };
        let journal = Self {
            folder,
            lock,
            config,
            queue: Mutex::default(),
            answered: Condvar::new(),
            writer: Mutex::new(writer),
        };
        // A full disk must not keep the journal from opening: what was found stays to be told.
        let _ = journal.recover();
        Ok(journal)
    }

    /// The folder, for reading.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How it is kept.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Appends a record; when this returns, the record is on disk.
    ///
    /// # Errors
    /// When the record cannot be made or written. A record that is not acknowledged may still
    /// be found in the journal later, never the other way round.
    pub fn append(&self, record: NewRecord<'_>) -> Result<Appended> {
        record.check_unambiguous()?;
        let record = record.seal()?;
        let mut bytes = Vec::with_capacity(512);
        record.write_line(&mut bytes);
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(JournalError::TooLong { size: bytes.len() });
        }
        self.submit(record.id, bytes)
    }

    /// Looks at the end of the journal under its lock and hands `read` the number of entries;
    /// no other process appends meanwhile.
    pub(crate) fn while_locked<T>(
        &self,
        read: impl FnOnce(u64, Option<EntryHash>) -> T,
    ) -> Result<T> {
        let mut writer = self.writer();
        let _held = self.folder.lock(&self.lock)?;
        writer.refresh(&self.folder)?;
        Ok(read(writer.next_index(), writer.last.map(|last| last.hash)))
    }

    /// Records that `sealed` entries were sealed and only `found` are there, once for each loss.
    pub(crate) fn report_lost(&self, sealed: u64, found: u64) -> Result<()> {
        let mut writer = self.writer();
        {
            let _held = self.folder.lock(&self.lock)?;
            writer.hint = self.folder.read_hint(&self.lock);
            if writer.hint.lost == sealed {
                return Ok(());
            }
            writer.hint.lost = sealed;
            self.folder.write_hint(&self.lock, &writer.hint);
        }
        writer.found.push(Found::SealedBeyond { sealed, found });
        drop(writer);
        self.recover()
    }

    /// Writes the recovery record if there is anything to tell.
    fn recover(&self) -> Result<()> {
        let mut writer = self.writer();
        if writer.found.is_empty() {
            return Ok(());
        }
        writer.commit(self, &[]).map(|_| ())
    }

    fn submit(&self, id: RecordId, record: Vec<u8>) -> Result<Appended> {
        let mut queue = self.queue();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push(Pending { ticket, id, record });
        loop {
            if let Some(at) = queue.answers.iter().position(|(number, _)| *number == ticket) {
                return queue.answers.swap_remove(at).1;
            }
            if queue.led {
                queue = self.answered.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.led = true;
            let batch = std::mem::take(&mut queue.waiting);
            drop(queue);
            let answers = self.writer().commit(self, &batch);
            queue = self.queue();
            queue.led = false;
            match answers {
                Ok(answers) => queue.answers.extend(
                    batch.iter().map(|pending| pending.ticket).zip(answers.into_iter().map(Ok)),
                ),
                Err(error) => queue
                    .answers
                    .extend(batch.iter().map(|pending| (pending.ticket, Err(error.clone())))),
            }
            self.answered.notify_all();
        }
    }

    // A poisoned lock means a panic elsewhere; the state behind it is looked at again anyway.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| {
            let mut writer = poisoned.into_inner();
            writer.stale = true;
            writer
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Finds the end of the journal. The folder's lock is held.
    fn open(folder: &Folder, config: &Config, lock: &File) -> Result<Self> {
        let mut hint = folder.read_hint(lock);
        let segments = folder.segments()?;
        let mut found = Vec::new();
        let highest = segments.last().map_or(0, |last| last.0).max(hint.segment);
        for number in 1..=highest {
            let segment = SegmentNumber(number);
            if segments.binary_search(&segment).is_err() && !hint.missing.contains(&number) {
                found.push(Found::MissingSegment { segment });
                hint.missing.push(number);
            }
            // A hostile file name could claim four billion segments.
            if found.len() > 100 {
                break;
            }
        }
        let (segment, file) = match segments.last() {
            // The highest segment was there once and is gone: its number is not used again.
            Some(last) if last.0 >= hint.segment => (*last, folder.append_segment(*last)?.0),
            _ => create_next(folder, config, SegmentNumber(highest), &mut found)?,
        };
        let mut writer = Self {
            hint,
            segment,
            file,
            inode: 0,
            length: 0,
            unfinished: false,
            last: None,
            stale: true,
            leave_segment: false,
            found,
            buffer: Vec::new(),
        };
        writer.look_again(folder)?;
        writer.remember(folder, lock);
        Ok(writer)
    }

    fn next_index(&self) -> u64 {
        self.last.map_or(0, |last| last.index + 1)
    }

    /// Takes the lock, brings the view up to date, writes the batch, and flushes it.
    fn commit(&mut self, journal: &Journal, batch: &[Pending]) -> Result<Vec<Appended>> {
        let Journal { folder, config, lock, .. } = journal;
        let held = folder.lock(lock)?;
        self.refresh(folder)?;
        if self.length >= config.segment_bytes || self.leave_segment {
            self.rotate(folder, config)?;
            self.remember(folder, lock);
        }
        let answers = self.write(folder, config, batch, held)?;
        // Without the lock: a later entry of another process is flushed with this one, since
        // both are in one file, and a rotation flushes before it leaves the file.
        if let Err(error) = self.file.sync_data() {
            self.found.push(Found::FlushFailed { segment: self.segment });
            self.stale = true;
            self.leave_segment = true;
            return Err(JournalError::io("flush", &folder.segment_path(self.segment), error));
        }
        Ok(answers)
    }

    fn write(
        &mut self,
        folder: &Folder,
        config: &Config,
        batch: &[Pending],
        held: LockGuard<'_>,
    ) -> Result<Vec<Appended>> {
        let now = config.clock.now();
        if let Some(last) = self.last.and_then(|last| last.time).filter(|last| *last > now) {
            self.found.retain(|found| !matches!(found, Found::ClockBack { .. }));
            self.found.push(Found::ClockBack { last, now });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        if self.unfinished {
            buffer.push(b'\n');
        }
        let timestamp = now.to_string();
        let mut last = self.last;
        let mut put = |id: RecordId, record: &[u8], buffer: &mut Vec<u8>| {
            let index = last.map_or(0, |last| last.index + 1);
            let previous = last.map_or(EntryHash::ZERO, |last| last.hash);
            let entry = Entry::chained(index, timestamp.clone(), id, previous);
            let start = buffer.len();
            line::write(&entry, record, buffer);
            last = Some(LastEntry { index, hash: entry.hash, time: Some(now) });
            let location = Location {
                segment: self.segment,
                offset: self.length + start as u64,
                length: (buffer.len() - start - 1) as u64,
            };
            Appended { id, index, entry: entry.hash, location }
        };
        if !self.found.is_empty() {
            let record = recovery::record(&self.found, now, nonce()?).seal()?;
            let mut bytes = Vec::new();
            record.write_line(&mut bytes);
            put(record.id, &bytes, &mut buffer);
        }
        let answers =
            batch.iter().map(|pending| put(pending.id, &pending.record, &mut buffer)).collect();
        if let Err(error) = self.file.write_all(&buffer) {
            self.stale = true;
            // What was written of it was acknowledged to nobody. With the append-only attribute
            // it stays, and the next writer tells of it.
            let _ = self.file.set_len(self.length);
            self.buffer = buffer;
            return Err(JournalError::io("append to", &folder.segment_path(self.segment), error));
        }
        drop(held);
        self.length += buffer.len() as u64;
        self.last = last;
        self.unfinished = false;
        self.found.clear();
        if buffer.capacity() <= 1 << 20 {
            self.buffer = buffer;
        }
        Ok(answers)
    }

    /// Brings the view of the journal's end up to date. The folder's lock is held.
    fn refresh(&mut self, folder: &Folder) -> Result<()> {
        if folder.stat_segment(self.segment.next())?.is_some() {
            // Another process went on to a new segment; its first lines are not this one's to
            // judge, so nothing of this process is lost by looking at the newest only.
            let newest = folder.segments()?.last().copied().unwrap_or(self.segment);
            self.segment = newest;
            self.file = folder.append_segment(newest)?.0;
            self.leave_segment = false;
            return self.look_again(folder);
        }
        match folder.stat_segment(self.segment)? {
            Some((inode, length))
                if inode == self.inode && length == self.length && !self.stale =>
            {
                Ok(())
            }
            Some((inode, length)) => {
                if inode != self.inode {
                    self.file = folder.append_segment(self.segment)?.0;
                }
                if length < self.length {
                    let expected = self.length;
                    self.found.push(Found::Shrunk {
                        segment: self.segment,
                        expected,
                        found: length,
                    });
                }
                self.look_again(folder)
            }
            None => {
                self.found.push(Found::MissingSegment { segment: self.segment });
                self.hint.missing.push(self.segment.0);
                self.leave_segment = true;
                Ok(())
            }
        }
    }

    /// Reads the end of the segment, and of earlier ones if it holds no entry.
    fn look_again(&mut self, folder: &Folder) -> Result<()> {
        let path = folder.segment_path(self.segment);
        let Some((inode, length)) = folder.stat_segment(self.segment)? else {
            return Err(JournalError::io(
                "read",
                &path,
                std::io::Error::from(std::io::ErrorKind::NotFound),
            ));
        };
        let end = read_end(&self.file, length, self.segment)
            .map_err(|error| JournalError::io("read", &path, error))?;
        self.inode = inode;
        self.length = length;
        self.unfinished = end.unfinished;
        // An earlier look may have found the same and not come to tell of it.
        self.found.retain(|found| !found.is_at_the_end());
        self.found.extend(end.found);
        self.last = end.last;
        if self.last.is_none() {
            self.last = last_before(folder, self.segment)?;
        }
        self.stale = false;
        Ok(())
    }

    fn rotate(&mut self, folder: &Folder, config: &Config) -> Result<()> {
        let path = folder.segment_path(self.segment);
        if !self.leave_segment {
            self.file.sync_data().map_err(|error| JournalError::io("flush", &path, error))?;
        }
        let (segment, file) = create_next(folder, config, self.segment, &mut self.found)?;
        let last = self.last;
        self.segment = segment;
        self.file = file;
        self.leave_segment = false;
        self.look_again(folder)?;
        // A segment that was deleted under this process: its last entry is still known here.
        self.last = self.last.max_by_index(last);
        Ok(())
    }

    fn remember(&mut self, folder: &Folder, lock: &File) {
        self.hint.segment = self.hint.segment.max(self.segment.0);
        self.hint.missing.sort_unstable();
        self.hint.missing.dedup();
        folder.write_hint(lock, &self.hint);
    }
}

trait MaxByIndex {
    fn max_by_index(self, other: Self) -> Self;
}

impl MaxByIndex for Option<LastEntry> {
    fn max_by_index(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(if b.index > a.index { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// The last entry of the segments before `segment`.
fn last_before(folder: &Folder, segment: SegmentNumber) -> Result<Option<LastEntry>> {
    for earlier in folder.segments()?.into_iter().rev().filter(|earlier| *earlier < segment) {
        let (file, length) = folder.read_segment(earlier)?;
        let end = read_end(&file, length, earlier)
            .map_err(|error| JournalError::io("read", &folder.segment_path(earlier), error))?;
        if end.last.is_some() {
            return Ok(end.last);
        }
    }
    Ok(None)
}

/// Makes the segment after `segment`, going over names that something else occupies.
fn create_next(
    folder: &Folder,
    config: &Config,
    segment: SegmentNumber,
    found: &mut Vec<Found>,
) -> Result<(SegmentNumber, File)> {
    let mut next = segment;
    for _ in 0..100 {
        next = next.next();
        if let Some(file) = folder.create_segment(next, config.append_only)? {
            return Ok((next, file));
        }
        found.push(Found::StrayFile { segment: next });
    }
    let what = "is occupied, and so are the hundred names after it".to_owned();
    Err(JournalError::Unsafe { path: folder.segment_path(segment.next()), what })
}

/// 128 random bits in hexadecimal.
pub(crate) fn nonce() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| JournalError::Random(error.to_string()))?;
    Ok(wardkeep_evidence::hash::encode_hex(&bytes))
}
