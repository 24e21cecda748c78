//! Reading: every line in its place, damaged ones too, and the chain over all of them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::append::io_error;
use super::entry::{Action, Entry, parse_entry};
use super::{AuditError, EXIT_BROKEN, MAX_LINE};
use crate::files::{Unread, open_below, open_folder, split};
use crate::hash::{ContentHash, LineHash};

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// An entry.
    Entry(Entry),
    /// Something else.
    Corrupted {
        /// Its bytes.
        bytes: u64,
        /// Why it is no entry.
        why: &'static str,
    },
}

/// How a line hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It names the hash of the line before it.
    Valid,
    /// It starts a new segment behind a damaged line, and says so.
    NewSegment,
    /// It does not name the hash of the line before it, or is no entry.
    Broken,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Number of the line in the file, from 1.
    pub number: u64,
    /// What it is.
    pub line: Line,
    /// How it hangs on the one before.
    pub link: Link,
    /// Hash over its bytes.
    pub hash: LineHash,
    /// A `verified` whose content no `signed` before it names.
    pub never_signed: bool,
    /// The last line lacks its newline.
    pub torn: bool,
}

/// Lines that hang on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first line.
    pub first: u64,
    /// Number of the last line.
    pub last: u64,
    /// Whether its first line is the first of the log, or follows a damaged line and says so.
    pub announced: bool,
}

/// What is to be said of the chain as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// Every line names the one before it.
    Intact,
    /// Lines are damaged, and behind each the log says so.
    Recovered,
    /// Lines were changed, removed or put in.
    Broken,
}

impl Chain {
    /// 0, or 15 where the chain is not intact.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Intact => 0,
            Self::Recovered | Self::Broken => EXIT_BROKEN,
        }
    }
}

/// The log as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Lines, damaged ones among them.
    pub lines: u64,
    /// Numbers of damaged lines; at most 1024 are kept, [`Summary::corrupted`] counts all.
    pub corrupted_lines: Vec<u64>,
    /// Damaged lines.
    pub corrupted: u64,
    /// Lines whose link is broken; at most 1024 are kept.
    pub broken_lines: Vec<u64>,
    /// Segments of the chain; at most 1024 are kept, [`Summary::segment_count`] counts all.
    pub segments: Vec<Segment>,
    /// Segments of the chain.
    pub segment_count: u64,
    /// The verdict.
    pub chain: Chain,
    /// Hash of the last line; [`LineHash::GENESIS`] for an empty log.
    pub head: LineHash,
    /// Whether the last line lacks its newline.
    pub torn: bool,
    /// Lines that say `verified` of content that was never `signed`; at most 1024 are kept.
    pub never_signed: Vec<u64>,
}

impl Summary {
    fn empty() -> Self {
        Self {
            lines: 0,
            corrupted_lines: Vec::new(),
            corrupted: 0,
            broken_lines: Vec::new(),
            segments: Vec::new(),
            segment_count: 0,
            chain: Chain::Intact,
            head: LineHash::GENESIS,
            torn: false,
            never_signed: Vec::new(),
        }
    }
}

/// Rows that were asked for, and the verdict over all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The rows; with a filter only those of one action, and every damaged or broken one.
    pub rows: Vec<Row>,
    /// Over the whole log.
    pub summary: Summary,
}

/// Most rows of a kind that a summary names.
const MOST: usize = 1024;

/// Reads the whole log. With a filter, rows of other actions are left out; damaged lines and
/// broken links never are, and the summary is that of the whole log.
///
/// # Errors
/// When it is no plain file or cannot be read. A log that does not exist is an empty one.
pub fn read(path: &Path, filter: Option<&Action>) -> Result<Report, AuditError> {
    let mut rows = Vec::new();
    let summary = scan(path, |row| {
        let wanted = match (&row.line, filter) {
            (Line::Corrupted { .. }, _) | (_, None) => true,
            (Line::Entry(entry), Some(action)) => {
                entry.action == *action || row.link != Link::Valid
            }
        };
        if wanted {
            rows.push(row);
        }
    })?;
    Ok(Report { rows, summary })
}

/// Goes through the log once, line by line, in bounded memory.
///
/// # Errors
/// When it is no plain file or cannot be read. A log that does not exist is an empty one.
pub fn scan(path: &Path, mut each: impl FnMut(Row)) -> Result<Summary, AuditError> {
    let Some(file) = open_log(path)? else { return Ok(Summary::empty()) };
    scan_from(BufReader::with_capacity(64 << 10, file), &mut each)
        .map_err(|error| io_error("read", path, error))
}

fn open_log(path: &Path) -> Result<Option<File>, AuditError> {
    let Some((folder, name)) = split(path) else { return Ok(None) };
    let folder = match open_folder(folder) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path, error)),
    };
    match open_below(folder.as_fd(), name) {
        Ok(file) => Ok(Some(file)),
        Err(Unread::Missing) => Ok(None),
        Err(Unread::Io(error)) => Err(io_error("read", path, error)),
        Err(_) => Err(AuditError::NotPlain(path.to_owned())),
    }
}

/// What is known of a log that was read up to some line.
#[derive(Debug)]
struct Scanner {
    summary: Summary,
    signed: HashSet<ContentHash>,
    after_damage: bool,
}

impl Scanner {
    fn new() -> Self {
        Self { summary: Summary::empty(), signed: HashSet::new(), after_damage: false }
    }

    fn take(&mut self, raw: &RawLine, buffer: &[u8]) -> Row {
        self.summary.lines += 1;
        let number = self.summary.lines;
        let parsed = if raw.length > MAX_LINE as u64 {
            Err("longer than an entry can be")
        } else {
            parse_entry(buffer)
        };
        let mut never_signed = false;
        let (line, link) = match parsed {
            Ok(entry) => {
                let named = LineHash::from_hex(&entry.previous) == Some(self.summary.head);
                let recovery = entry.action == Action::ChainRecovery;
                let link = match (named, self.after_damage, recovery) {
                    (true, false, _) => Link::Valid,
                    (true, true, true) => Link::NewSegment,
                    _ => Link::Broken,
                };
                let content = entry.content.as_deref().and_then(ContentHash::from_hex);
                match entry.action {
                    Action::Signed => self.signed.extend(content),
                    Action::Verified => {
                        never_signed =
                            !content.is_some_and(|content| self.signed.contains(&content));
                    }
                    _ => {}
                }
                (Line::Entry(entry), link)
            }
            Err(why) => (Line::Corrupted { bytes: raw.length, why }, Link::Broken),
        };
        note(&mut self.summary, number, &line, link, never_signed);
        self.after_damage = matches!(line, Line::Corrupted { .. });
        self.summary.head = raw.hash;
        self.summary.torn = raw.torn;
        if raw.torn {
            worsen(&mut self.summary.chain, Chain::Recovered);
        }
        Row { number, line, link, hash: raw.hash, never_signed, torn: raw.torn }
    }
}

/// A log that is read on as it grows.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    offset: u64,
    file: Option<(u64, u64)>,
    scanner: Scanner,
}

impl Follower {
    /// Of the log at `path`, from its start.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, file: None, scanner: Scanner::new() }
    }

    /// Reads the lines that are whole by now and were not read before. `true` if the log was
    /// replaced or cut, and is read from its start again.
    ///
    /// # Errors
    /// When it is no plain file or cannot be read.
    pub fn poll(&mut self, mut each: impl FnMut(Row)) -> Result<bool, AuditError> {
        let failed = |error| io_error("read", &self.path, error);
        let Some(mut file) = open_log(&self.path)? else {
            let gone = self.file.is_some();
            *self = Self::new(&self.path);
            return Ok(gone);
        };
        let metadata = file.metadata().map_err(failed)?;
        let identity = (metadata.dev(), metadata.ino());
        let restarted =
            self.file.is_some_and(|known| known != identity) || metadata.len() < self.offset;
        if restarted {
            *self = Self::new(&self.path);
        }
        self.file = Some(identity);
        let failed = |error| io_error("read", &self.path, error);
        file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        let mut input = BufReader::new(file);
        let mut buffer = Vec::new();
        while let Some(raw) = next_line(&mut input, &mut buffer).map_err(failed)? {
            if raw.torn {
                break;
            }
            self.offset += raw.length + 1;
            each(self.scanner.take(&raw, &buffer));
        }
        Ok(restarted)
    }

    /// Over all that was read.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.scanner.summary
    }
}

/// As [`scan`], from bytes.
fn scan_from(mut input: impl BufRead, each: &mut impl FnMut(Row)) -> io::Result<Summary> {
    let mut scanner = Scanner::new();
    let mut buffer = Vec::new();
    while let Some(raw) = next_line(&mut input, &mut buffer)? {
        each(scanner.take(&raw, &buffer));
    }
    Ok(scanner.summary)
}

fn note(summary: &mut Summary, number: u64, line: &Line, link: Link, never_signed: bool) {
    if never_signed {
        keep(&mut summary.never_signed, number);
    }
    if matches!(line, Line::Corrupted { .. }) {
        summary.corrupted += 1;
        keep(&mut summary.corrupted_lines, number);
        worsen(&mut summary.chain, Chain::Recovered);
        return;
    }
    // Beyond the segments that are kept, the last of them no longer ends just before this line.
    let open = summary.segments.last_mut().filter(|segment| segment.last + 1 == number);
    match (link, open) {
        (Link::Valid, Some(segment)) => {
            segment.last = number;
            return;
        }
        (Link::Valid, None) if summary.segment_count > MOST as u64 => return,
        (Link::Broken, _) => {
            keep(&mut summary.broken_lines, number);
            worsen(&mut summary.chain, Chain::Broken);
        }
        _ => {}
    }
    summary.segment_count += 1;
    keep(
        &mut summary.segments,
        Segment { first: number, last: number, announced: link != Link::Broken },
    );
}

fn keep<T>(kept: &mut Vec<T>, one: T) {
    if kept.len() < MOST {
        kept.push(one);
    }
}

fn worsen(chain: &mut Chain, to: Chain) {
    if *chain != Chain::Broken {
        *chain = to;
    }
}

struct RawLine {
    length: u64,
    hash: LineHash,
    torn: bool,
}

/// The next line, without its newline; of a long one only the start is kept.
fn next_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Option<RawLine>> {
    buffer.clear();
    let mut hasher = Sha256::new();
    let mut length = 0u64;
    let mut any = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            let hash = LineHash(hasher.finalize().into());
            return Ok(any.then_some(RawLine { length, hash, torn: true }));
        }
        any = true;
        let newline = memchr::memchr(b'\n', chunk);
        let part = &chunk[..newline.unwrap_or(chunk.len())];
        hasher.update(part);
        length += part.len() as u64;
        let room = (MAX_LINE + 1).saturating_sub(buffer.len()).min(part.len());
        buffer.extend_from_slice(&part[..room]);
        let used = part.len() + usize::from(newline.is_some());
        input.consume(used);
        if newline.is_some() {
            return Ok(Some(RawLine {
                length,
                hash: LineHash(hasher.finalize().into()),
                torn: false,
            }));
        }
    }
}

/// A log held against what the journal says was written to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reconciled {
    /// Hashes that the journal has and the log has not, or not in their order.
    pub missing: Vec<LineHash>,
    /// Lines of the log that the journal does not know, or not in that place; a recovery behind a
    /// damaged line is not among them.
    pub unknown: Vec<u64>,
}

impl Reconciled {
    /// Whether both say the same.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.missing.is_empty() && self.unknown.is_empty()
    }
}

/// Compares the log with the hashes of lines that the journal recorded, in their order.
///
/// # Errors
/// When the log cannot be read.
pub fn reconcile(path: &Path, expected: &[LineHash]) -> Result<Reconciled, AuditError> {
    let mut result = Reconciled::default();
    let places: HashMap<LineHash, usize> =
        expected.iter().enumerate().map(|(place, hash)| (*hash, place)).collect();
    let mut next = 0;
    let mut after_damage = false;
    scan(path, |row| {
        let recovers =
            std::mem::replace(&mut after_damage, matches!(row.line, Line::Corrupted { .. }));
        match places.get(&row.hash) {
            Some(&place) if place >= next => {
                result.missing.extend(&expected[next..place]);
                next = place + 1;
                return;
            }
            // A line that stands there before, or too late.
            Some(_) => {}
            // Only behind a damaged line, which is told itself: elsewhere there is nothing to
            // recover from, and anybody can write one.
            None if recovers
                && matches!(&row.line, Line::Entry(entry) if entry.action == Action::ChainRecovery) =>
            {
                return;
            }
            None => {}
        }
        result.unknown.push(row.number);
    })?;
    result.missing.extend(&expected[next..]);
    Ok(result)
}
