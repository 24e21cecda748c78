//! Appending: many threads, one flush; many processes, one chain.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::{EntryHash, RecordId};
use wardkeep_evidence::record::NewRecord;

use super::folder::{Folder, Hint, Lock, LockGuard, SegmentNumber};
use super::tail::{LastEntry, MAX_SEGMENT_BYTES, read_end};
use super::{
    Appended, Config, Found, JournalError, Location, MAX_RECORD_BYTES, Result, entry_of, line,
    recovery,
};

/// A journal open for appending. Share it between threads by reference.
#[derive(Debug)]
pub struct Journal {
    folder: Folder,
    lock: Lock,
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

/// A record that was taken and may not be on disk yet. Whoever lets go of it waits for it.
#[derive(Debug)]
#[must_use = "nothing may happen before it is on disk"]
pub struct Waiting<'j> {
    journal: &'j Journal,
    ticket: u64,
    id: RecordId,
    bytes: usize,
    asked: bool,
}

/// Bytes of an entry and of what the index holds of it.
const BESIDE: usize = 512;

impl Waiting<'_> {
    /// Id of the record.
    #[must_use]
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// About how many bytes it takes on disk, with its entry and in the index.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Waits until it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn on_disk(mut self) -> Result<Appended> {
        self.asked = true;
        self.journal.answer(self.ticket)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.asked {
            // Its answer must not stay behind.
            let _ = self.journal.answer(self.ticket);
        }
    }
}

/// The thread that writes for the others. If it panics, they are told and another one leads.
struct Leader<'a> {
    journal: &'a Journal,
    own: u64,
    batch: Vec<Pending>,
    outcome: Option<Result<Vec<Appended>>>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let mut queue = self.journal.queue();
        let tickets = self.batch.iter().map(|pending| pending.ticket);
        match self.outcome.take() {
            Some(Ok(answers)) => queue.answers.extend(tickets.zip(answers.into_iter().map(Ok))),
            Some(Err(error)) => {
                queue.answers.extend(tickets.map(|ticket| (ticket, Err(error.clone()))));
            }
            // Nobody comes for the answer of the thread that panicked.
            None => queue.answers.extend(
                tickets
                    .filter(|ticket| *ticket != self.own)
                    .map(|ticket| (ticket, Err(JournalError::Abandoned))),
            ),
        }
        queue.led = false;
        self.journal.answered.notify_all();
    }
}

/// The end of the journal as this process last saw it.
#[derive(Debug)]
struct Writer {
    hint: Hint,
    segment: SegmentNumber,
    file: File,
    inode: u64,
    length: u64,
    // When a file last came into the folder or left it.
    stamp: (i64, u64),
    unfinished: bool,
    last: Option<LastEntry>,
    // Offset and length of its line, if that is in this segment.
    last_line: Option<(u64, u64)>,
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
            let held = folder.lock(&lock)?;
            Writer::open(&folder, &config, &held)?
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
    /// When the record cannot be made or written, or claims to be one of the journal's own. A record that is not acknowledged may still
    /// be found in the journal later, never the other way round.
    pub fn append(&self, record: NewRecord<'_>) -> Result<Appended> {
        self.append_later(record)?.on_disk()
    }

    /// Takes a record to be appended behind those that were taken before. It is on disk when
    /// [`Waiting::on_disk`] says so: several that are waited for together share one flush.
    ///
    /// # Errors
    /// When the record cannot be made, or claims to be one of the journal's own.
    pub fn append_later(&self, record: NewRecord<'_>) -> Result<Waiting<'_>> {
        record.check_unambiguous()?;
        // What it excuses would be believed by `verify`.
        if recovery::is_claimed(&record) {
            return Err(JournalError::Reserved);
        }
        let record = record.seal()?;
        let mut bytes = Vec::with_capacity(512);
        record.write_line(&mut bytes);
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(JournalError::TooLong { size: bytes.len() });
        }
        Ok(self.submit(record.id, bytes))
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
        if self.hint()?.lost == sealed {
            return Ok(());
        }
        self.report(Found::SealedBeyond { sealed, found })?;
        self.change_hint(|hint| hint.lost = sealed)
    }

    /// Records that no seals are made any more, once until one is made again.
    pub(crate) fn report_stopped(&self, reason: String) -> Result<()> {
        if self.hint()?.stopped {
            return Ok(());
        }
        self.report(Found::SealingStopped { reason })?;
        self.change_hint(|hint| hint.stopped = true)
    }

    /// Forgets that no seals were made.
    pub(crate) fn sealing_goes_on(&self) -> Result<()> {
        if self.hint()?.stopped {
            self.change_hint(|hint| hint.stopped = false)?;
        }
        Ok(())
    }

    /// Records something that was found.
    pub(crate) fn report(&self, found: Found) -> Result<()> {
        self.writer().tell(found);
        self.recover()
    }

    fn hint(&self) -> Result<Hint> {
        let _writer = self.writer();
        let held = self.folder.lock(&self.lock)?;
        Ok(self.folder.read_hint(&held))
    }

    fn change_hint(&self, change: impl FnOnce(&mut Hint)) -> Result<()> {
        let _writer = self.writer();
        let held = self.folder.lock(&self.lock)?;
        let mut hint = self.folder.read_hint(&held);
        change(&mut hint);
        self.folder.write_hint(&held, &hint);
        Ok(())
    }

    /// Writes the recovery record if there is anything to tell.
    fn recover(&self) -> Result<()> {
        let mut writer = self.writer();
        if writer.found.is_empty() {
            return Ok(());
        }
        writer.commit(self, &[]).map(|_| ())
    }

    fn submit(&self, id: RecordId, record: Vec<u8>) -> Waiting<'_> {
        let mut queue = self.queue();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        let bytes = record.len() + BESIDE;
        queue.waiting.push(Pending { ticket, id, record });
        Waiting { journal: self, ticket, id, bytes, asked: false }
    }

    /// Waits for an answer, and writes for all who wait if nobody else does.
    fn answer(&self, ticket: u64) -> Result<Appended> {
        let mut queue = self.queue();
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
            let mut leader = Leader { journal: self, own: ticket, batch, outcome: None };
            leader.outcome = Some(self.writer().commit(self, &leader.batch));
            drop(leader);
            queue = self.queue();
        }
    }

    // A poisoned lock means a panic elsewhere; the state behind it is looked at again anyway.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| {
            self.writer.clear_poison();
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
    fn open(folder: &Folder, config: &Config, held: &LockGuard) -> Result<Self> {
        let mut hint = folder.read_hint(held);
        let stamp = folder.stamp()?;
        let segments = folder.segments()?;
        let highest = segments.last().map_or(0, |last| last.0).max(hint.segment);
        let mut found = missing(&segments, highest, &mut hint);
        let newest = folder.newest(&segments)?;
        let (segment, file) = match newest {
            // No number is left behind a name that someone made up.
            Some(newest) if newest.0 == highest || highest >= SegmentNumber::MAX.0 => {
                (newest, folder.append_segment(newest)?.0)
            }
            // The highest segment was there once and is gone: its number is not used again.
            _ => {
                let strays = segments.iter().filter(|segment| Some(**segment) > newest);
                found.extend(strays.map(|segment| Found::StrayFile { segment: *segment }));
                create_next(folder, config, SegmentNumber(highest), &mut found)?
            }
        };
        found.truncate(Self::MAX_FOUND);
        let mut writer = Self {
            hint,
            segment,
            file,
            inode: 0,
            length: 0,
            stamp,
            unfinished: false,
            last: None,
            last_line: None,
            stale: true,
            leave_segment: false,
            found,
            buffer: Vec::new(),
        };
        writer.look_again(folder)?;
        writer.look_before(folder)?;
        writer.remember(folder, held);
        Ok(writer)
    }

    /// Most findings that one recovery record tells of.
    const MAX_FOUND: usize = 1000;

    /// Keeps something to be told of by the next recovery record.
    fn tell(&mut self, found: Found) {
        if self.found.len() < Self::MAX_FOUND && !self.found.contains(&found) {
            self.found.push(found);
        }
    }

    fn next_index(&self) -> u64 {
        self.last.map_or(0, |last| last.index + 1)
    }

    /// Takes the lock, brings the view up to date, writes the batch, and flushes it.
    fn commit(&mut self, journal: &Journal, batch: &[Pending]) -> Result<Vec<Appended>> {
        let Journal { folder, config, lock, .. } = journal;
        let held = folder.lock(lock)?;
        self.refresh(folder)?;
        if self.length >= config.segment_bytes.min(MAX_SEGMENT_BYTES) || self.leave_segment {
            self.rotate(folder, config)?;
            self.remember(folder, &held);
        }
        let answers = self.write(folder, config, batch, held)?;
        // Without the lock: a later entry of another process is flushed with this one, since
        // both are in one file, and a rotation flushes before it leaves the file.
        if let Err(error) = self.file.sync_data() {
            self.tell(Found::FlushFailed { segment: self.segment });
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
        held: LockGuard,
    ) -> Result<Vec<Appended>> {
        let now = config.clock.now();
        if let Some(last) = self.last.and_then(|last| last.time).filter(|last| *last > now) {
            self.found.retain(|found| !matches!(found, Found::ClockBack { .. }));
            self.tell(Found::ClockBack { last, now });
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        if self.unfinished {
            buffer.push(b'\n');
        }
        let timestamp = now.to_string();
        let mut last = self.last;
        let mut last_line = self.last_line;
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
            last_line = Some((location.offset, location.length));
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
        self.length += buffer.len() as u64;
        self.last = last;
        self.last_line = last_line;
        self.unfinished = false;
        if !std::mem::take(&mut self.found).is_empty() {
            self.remember(folder, &held);
        }
        drop(held);
        if buffer.capacity() <= 1 << 20 {
            self.buffer = buffer;
        }
        Ok(answers)
    }

    /// Brings the view of the journal's end up to date. The folder's lock is held.
    fn refresh(&mut self, folder: &Folder) -> Result<()> {
        let stamp = folder.stamp()?;
        if stamp != self.stamp || folder.stat_segment(self.segment.next())?.is_some() {
            // Another process went on to a new segment; its first lines are not this one's to
            // judge, so nothing of this process is lost by looking at the newest only.
            let newest = folder.newest(&folder.segments()?)?;
            if let Some(newest) = newest.filter(|newest| *newest > self.segment) {
                self.file = folder.append_segment(newest)?.0;
                self.segment = newest;
                self.leave_segment = false;
                let last = self.last;
                self.look_again(folder)?;
                self.keep_highest(last);
                self.stamp = stamp;
                return Ok(());
            }
            self.stamp = stamp;
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
                let segment = self.segment;
                if length < self.length {
                    let expected = self.length;
                    self.tell(Found::Shrunk { segment, expected, found: length });
                } else if let Some(last) = self.last.filter(|last| !self.still_holds(last)) {
                    self.tell(Found::Rewritten { segment, index: last.index });
                }
                self.look_again(folder)
            }
            None => {
                for (from, _) in self.hint.tell_missing(self.segment.0, self.segment.0) {
                    self.tell(Found::MissingSegment { segment: SegmentNumber(from) });
                }
                self.leave_segment = true;
                Ok(())
            }
        }
    }

    /// Whether the last entry that this process saw is still where it was.
    fn still_holds(&self, last: &LastEntry) -> bool {
        let Some((offset, length)) = self.last_line else { return true };
        let Ok(length) = usize::try_from(length) else { return false };
        let mut line = vec![0; length];
        self.file.read_exact_at(&mut line, offset).is_ok()
            && entry_of(&line).is_some_and(|entry| entry.hash == last.hash)
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
        if length == 0 {
            // Whoever made it may have been killed before its name was durable.
            folder.sync()?;
        }
        let end = read_end(&self.file, length, self.segment)
            .map_err(|error| JournalError::io("read", &path, error))?;
        self.inode = inode;
        self.length = length;
        self.unfinished = end.unfinished;
        // An earlier look may have found the same and not come to tell of it.
        self.found.retain(|found| !found.is_at_the_end());
        self.found.extend(end.found);
        self.leave_segment |= end.impassable;
        self.last = end.last;
        self.last_line = end.line;
        if self.last.is_none() {
            self.last = last_before(folder, self.segment)?;
        }
        self.stale = false;
        Ok(())
    }

    /// Takes the last entry of the segments before this one if it counts further: then what stands
    /// in this one was put there.
    fn look_before(&mut self, folder: &Folder) -> Result<()> {
        if self.last_line.is_some() {
            self.keep_highest(last_before(folder, self.segment)?);
        }
        Ok(())
    }

    /// Goes on from `other` if it counts further than the last entry of this segment. Honest
    /// entries only count up: what says otherwise was put there.
    fn keep_highest(&mut self, other: Option<LastEntry>) {
        if other.map(|other| other.index) > self.last.map(|last| last.index) {
            self.last = other;
            self.last_line = None;
        }
    }

    fn rotate(&mut self, folder: &Folder, config: &Config) -> Result<()> {
        let path = folder.segment_path(self.segment);
        if !self.leave_segment && self.segment >= SegmentNumber::MAX {
            return Ok(());
        }
        // Whole lines only are read in a segment that others follow.
        let newline: &[u8] = if self.unfinished { b"\n" } else { b"" };
        let flushed = self.file.write_all(newline).and_then(|()| self.file.sync_data());
        if !self.leave_segment {
            flushed.map_err(|error| JournalError::io("flush", &path, error))?;
        }
        let (segment, file) = create_next(folder, config, self.segment, &mut self.found)?;
        let last = self.last;
        let told: Vec<Found> =
            self.found.iter().filter(|found| found.is_at_the_end()).cloned().collect();
        self.segment = segment;
        self.file = file;
        self.leave_segment = false;
        self.look_again(folder)?;
        told.into_iter().for_each(|found| self.tell(found));
        // A segment that was deleted under this process: its last entry is still known here.
        self.keep_highest(last);
        Ok(())
    }

    fn remember(&mut self, folder: &Folder, held: &LockGuard) {
        let before = folder.read_hint(held);
        self.hint.merge(before.clone());
        self.hint.segment = self.hint.segment.max(self.segment.0);
        let mut hint = self.hint.clone();
        if !self.found.is_empty() {
            // What is missing counts as told of once the record is written.
            hint.missing.clone_from(&before.missing);
        }
        if hint != before {
            folder.write_hint(held, &hint);
        }
    }
}

/// The gaps between the segments up to `highest` that no recovery record tells of yet.
fn missing(segments: &[SegmentNumber], highest: u32, hint: &mut Hint) -> Vec<Found> {
    let mut found = Vec::new();
    let mut expected = 1;
    let ends = segments.iter().map(|segment| segment.0).chain([highest.saturating_add(1)]);
    for number in ends {
        if expected < number {
            for (from, to) in hint.tell_missing(expected, number - 1) {
                let (segment, last) = (SegmentNumber(from), SegmentNumber(to));
                // A hostile file name could claim a hundred million segments.
                if to - from < 10 {
                    found.extend(
                        (from..=to)
                            .map(SegmentNumber)
                            .map(|segment| Found::MissingSegment { segment }),
                    );
                } else {
                    found.push(Found::MissingSegments { segment, last });
                }
            }
        }
        expected = number.saturating_add(1);
    }
    found
}

/// The last entry of the segments before `segment`.
fn last_before(folder: &Folder, segment: SegmentNumber) -> Result<Option<LastEntry>> {
    for earlier in folder.segments()?.into_iter().rev().filter(|earlier| *earlier < segment) {
        let (file, length) = match folder.read_segment(earlier) {
            Ok(opened) => opened,
            Err(JournalError::Unsafe { .. }) => continue,
            Err(error) => return Err(error),
        };
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
        if next > SegmentNumber::MAX {
            break;
        }
        if let Some(file) = folder.create_segment(next, config.append_only)? {
            return Ok((next, file));
        }
        found.push(Found::StrayFile { segment: next });
    }
    // Someone used up the names behind: the highest that is free serves as well.
    let segments = folder.segments()?;
    let free = segments
        .iter()
        .rev()
        .map(|segment| segment.next())
        .find(|next| *next <= SegmentNumber::MAX && segments.binary_search(next).is_err());
    let first = SegmentNumber(1);
    if let Some(next) = free.or((segments.first() != Some(&first)).then_some(first))
        && let Some(file) = folder.create_segment(next, config.append_only)?
    {
        return Ok((next, file));
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
