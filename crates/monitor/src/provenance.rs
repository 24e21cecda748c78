//! What came from what: the closure over the parents of records, forward to everything that a
//! record has touched, backward to everything that it came from.
//!
//! The edges come from the index. Whoever can write the index could leave some out: where that
//! matters, make it anew first ([`Index::rebuild`]). What is listed is read from the journal.

mod graph;
mod pages;
mod restore;
mod svg;

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::surface::{Surface, is_untrusted};

pub use self::graph::{Graph, GraphEdge, GraphNode};
pub(crate) use self::pages::place_of;
pub use self::pages::results_from;
pub use self::restore::{Impossible, Restore, RestorePlan, restore_plan};
pub use self::svg::svg;
use crate::index::{Facts, Index, IndexError, LookError, Shape};
use crate::journal::{JournalError, Location, parse_line};
use crate::store::StoreReader;

/// Which way to go from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To what came from it.
    Forward,
    /// To what it came from.
    Backward,
}

/// How to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// Which way.
    pub direction: Direction,
    /// Only from named parents and content, not by way of what the session had seen.
    pub direct: bool,
}

/// The positions in the log that a walk reaches, its start included.
#[derive(Debug, Clone)]
pub struct Closure {
    start: u64,
    walk: Walk,
    members: Positions,
}

impl Closure {
    /// Walks from the record `start`.
    ///
    /// # Errors
    /// When the record is not in the index, or that cannot be read.
    pub fn of(
        reader: &StoreReader,
        index: &Index,
        start: RecordId,
        walk: Walk,
    ) -> Result<Self, LookError> {
        let (position, location) = index.place(start)?.ok_or(LookError::Unknown(start))?;
        let found =
            read(reader, location, |line| (line.record.id == start).then_some(line.entry.index))
                .ok_or(LookError::Unknown(start))?;
        if found != position {
            return Err(LookError::Unknown(start));
        }
        let members = Positions::new(limit(reader)?);
        let mut closure = Self { start: position, walk, members };
        closure.members.insert(position);
        match walk.direction {
            Direction::Forward => closure.walk_forward(index)?,
            Direction::Backward => closure.walk_backward(index)?,
        }
        Ok(closure)
    }

    /// Position of the record it starts at.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// How it was walked.
    #[must_use]
    pub fn walk(&self) -> Walk {
        self.walk
    }

    /// How many records it reaches beside its start.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.members.count - 1
    }

    /// Whether it reaches nothing beside its start.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it reaches a position.
    #[must_use]
    pub fn contains(&self, position: u64) -> bool {
        self.members.contains(position)
    }

    /// The positions, in order, the start included.
    pub fn positions(&self) -> impl Iterator<Item = u64> {
        self.members.iter()
    }

    fn follows(&self, ambient: bool) -> bool {
        !(self.walk.direct && ambient)
    }

    fn walk_forward(&mut self, index: &Index) -> Result<(), IndexError> {
        let mut open = vec![self.start];
        let mut looked = 0;
        while let Some(parent) = open.pop() {
            let children = index.children(parent, FEW + 1)?;
            looked += 1 + children.len();
            if looked > FEW as usize {
                return self.sweep_forward(index);
            }
            for (child, ambient) in children {
                if child > parent && self.follows(ambient) && self.members.insert(child) {
                    open.push(child);
                }
            }
        }
        Ok(())
    }

    /// A parent stands before its child, so one pass in the order of the children finds all.
    fn sweep_forward(&mut self, index: &Index) -> Result<(), IndexError> {
        index.each_edge(self.start, false, |child, parent, ambient| {
            if child > parent && self.follows(ambient) && self.members.contains(parent) {
                self.members.insert(child);
            }
        })
    }

    fn walk_backward(&mut self, index: &Index) -> Result<(), IndexError> {
        let mut open = vec![self.start];
        let mut looked = 0;
        while let Some(child) = open.pop() {
            let parents = index.parents(child, FEW + 1)?;
            looked += 1 + parents.len();
            if looked > FEW as usize {
                return self.sweep_backward(index);
            }
            for (parent, ambient) in parents {
                if child > parent && self.follows(ambient) && self.members.insert(parent) {
                    open.push(parent);
                }
            }
        }
        Ok(())
    }

    /// The same from the start back.
    fn sweep_backward(&mut self, index: &Index) -> Result<(), IndexError> {
        index.each_edge(self.start, true, |child, parent, ambient| {
            if child > parent && self.follows(ambient) && self.members.contains(child) {
                self.members.insert(parent);
            }
        })
    }
}

/// So many edges are looked up one by one; for more, all of them are read in order.
const FEW: u32 = 20_000;

/// No journal of so many bytes has more records: a line holds four hashes at least.
fn limit(reader: &StoreReader) -> Result<u64, JournalError> {
    let folder = reader.folder();
    let size = |segment| folder.read_segment(segment).map_or(0, |(_, length)| length);
    Ok(folder.segments()?.into_iter().map(size).sum::<u64>() / 256 + 1)
}

/// Positions as bits. What lies beyond the limit is no position of this journal.
#[derive(Debug, Clone)]
struct Positions {
    words: Vec<u64>,
    limit: u64,
    count: u64,
}

impl Positions {
    fn new(limit: u64) -> Self {
        Self { words: Vec::new(), limit, count: 0 }
    }

    fn split(position: u64) -> Option<(usize, u64)> {
        Some((usize::try_from(position / 64).ok()?, 1 << (position % 64)))
    }

    fn contains(&self, position: u64) -> bool {
        Self::split(position)
            .and_then(|(word, bit)| self.words.get(word).map(|word| word & bit != 0))
            .unwrap_or(false)
    }

    /// Whether it is new.
    fn insert(&mut self, position: u64) -> bool {
        let Some((word, bit)) = Self::split(position).filter(|_| position < self.limit) else {
            return false;
        };
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u64::from(new);
        new
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let base = at as u64 * 64;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| base + bit)
        })
    }
}

/// What a record has touched, or came from.
#[derive(Debug, Clone, Serialize)]
pub struct Contamination {
    /// The record it starts at.
    pub source: RecordId,
    /// Which way.
    pub direction: Direction,
    /// Whether only direct edges were followed.
    pub direct: bool,
    /// How many records, the source not counted.
    pub records: u64,
    /// Of which type.
    #[serde(serialize_with = "by_name")]
    pub by_type: BTreeMap<RecordType, u64>,
    /// In which sessions, the most touched first.
    pub sessions: Vec<SessionShare>,
    /// Files that were changed.
    pub files: Vec<Touched>,
    /// Those of them that are durable memory.
    pub memory: Vec<Touched>,
    /// Requests that left.
    pub left: Vec<Touched>,
    /// What was denied or held, and what was withheld with it: none of it happened.
    pub stopped: Vec<Touched>,
    /// What it came from, where that was asked: what came from outside first, then the newest first.
    pub causes: Vec<Cause>,
    /// Of a request that nothing is known to have come from: what its tool gave back.
    pub result: Option<RecordId>,
    /// How many of each are not listed.
    pub more: More,
    /// Whether anything is not listed.
    pub truncated: bool,
}

/// How much of a session is touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionShare {
    /// Its name.
    pub session: String,
    /// How many of its records.
    pub records: u64,
}

/// A file or an address, and the records about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Touched {
    /// Path or address.
    pub subject: String,
    /// How many records.
    pub times: u64,
    /// The first of them.
    pub first: RecordId,
    /// Position of the first.
    pub index: u64,
    /// When the first happened.
    pub time: Option<String>,
    /// What it was.
    #[serde(rename = "type", serialize_with = "name")]
    pub kind: RecordType,
}

/// A record that something came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The record.
    pub record: RecordId,
    /// Its position in the log.
    pub index: u64,
    /// When it happened.
    pub time: Option<String>,
    /// What it was.
    #[serde(rename = "type", serialize_with = "name")]
    pub kind: RecordType,
    /// On whose behalf.
    #[serde(serialize_with = "principal")]
    pub principal: Principal,
    /// What it is about: a path, an address, a tool.
    pub subject: Option<String>,
    /// Of a result: the address or the file that the tool was sent to.
    pub place: Option<String>,
}

/// How many are not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct More {
    /// Sessions.
    pub sessions: u64,
    /// Files.
    pub files: u64,
    /// Files of the durable memory.
    pub memory: u64,
    /// Requests.
    pub left: u64,
    /// Of what was stopped.
    pub stopped: u64,
    /// Records that it came from.
    pub causes: u64,
}

fn by_name<S: serde::Serializer>(
    counts: &BTreeMap<RecordType, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(kind, count)| (kind.as_str(), count)))
}

fn principal<S: serde::Serializer>(value: &Principal, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.as_str())
}

fn name<S: serde::Serializer>(kind: &RecordType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

/// What a walk has met on its way, by the index; nothing of it is believed yet.
#[derive(Debug, Default)]
struct Met {
    by_type: BTreeMap<RecordType, u64>,
    sessions: BTreeMap<String, u64>,
    files: BTreeMap<String, Subject>,
    left: BTreeMap<String, Subject>,
    stopped: BTreeMap<String, Subject>,
    // The newest that came from outside, and the newest others.
    foreign: VecDeque<u64>,
    own: VecDeque<u64>,
    // Counted and no longer told apart.
    other_sessions: u64,
    other_files: u64,
    other_left: u64,
    other_stopped: u64,
}

#[derive(Debug, Clone, Copy)]
struct Subject {
    first: u64,
    times: u64,
    memory: bool,
}

/// Most different names that are told apart.
const MAX_NAMES: usize = 200_000;

impl Met {
    fn gather(index: &Index, closure: &Closure, limit: usize) -> Result<Self, IndexError> {
        let mut met = Self::default();
        let mut positions = closure.positions().peekable();
        let first = positions.peek().copied().unwrap_or(0);
        let withheld = index.withheld(first)?;
        let last = closure.members.words.len() as u64 * 64;
        // Rows are read in order: over gaps by a new question, within a run by one.
        const GAP: u64 = 64;
        let mut run = (first, first);
        let mut take = |run: (u64, u64)| {
            index.each_line(run.0, run.1.min(last), |position, shape, session, subject| {
                if position != closure.start && closure.contains(position) {
                    let withheld = withheld.contains(&position);
                    met.take(position, &shape, withheld, session, subject);
                    met.caused(position, &shape, limit);
                }
            })
        };
        for position in positions {
            if position > run.1 + GAP {
                take(run)?;
                run.0 = position;
            }
            run.1 = position;
        }
        take(run)?;
        Ok(met)
    }

    fn caused(&mut self, at: u64, shape: &Shape, limit: usize) {
        let foreign = is_untrusted(shape.principal);
        let newest = if foreign { &mut self.foreign } else { &mut self.own };
        newest.push_back(at);
        if newest.len() > limit {
            newest.pop_front();
        }
    }

    fn take(
        &mut self,
        at: u64,
        shape: &Shape,
        withheld: bool,
        session: Option<&str>,
        subject: Option<&str>,
    ) {
        *self.by_type.entry(shape.kind).or_default() += 1;
        if let Some(session) = session.filter(|session| !session.is_empty()) {
            let room = self.sessions.len() < MAX_NAMES;
            match self.sessions.get_mut(session) {
                Some(count) => *count += 1,
                None if room => {
                    self.sessions.insert(session.to_owned(), 1);
                }
                None => self.other_sessions += 1,
            }
        }
        let Some(subject) = subject else { return };
        let deed = shape.changed_file() || shape.left();
        let (names, other) = match () {
            () if shape.stopped() || (withheld && deed) => {
                (&mut self.stopped, &mut self.other_stopped)
            }
            () if shape.changed_file() => (&mut self.files, &mut self.other_files),
            () if shape.left() => (&mut self.left, &mut self.other_left),
            () => return,
        };
        let memory = shape.surface == Some(Surface::DurableMemory);
        let room = names.len() < MAX_NAMES;
        match names.get_mut(subject) {
            Some(known) => {
                known.times += 1;
                known.memory |= memory;
            }
            None if room => {
                names.insert(subject.to_owned(), Subject { first: at, times: 1, memory });
            }
            None => *other += 1,
        }
    }
}

/// Tells what a walk from `source` reaches; at most `limit` of each kind are listed, and what is
/// listed is read from the journal.
///
/// # Errors
/// When the index is wrong or cannot be read.
pub fn contamination(
    reader: &StoreReader,
    index: &Index,
    source: RecordId,
    walk: Walk,
    limit: usize,
) -> Result<Contamination, LookError> {
    let closure = Closure::of(reader, index, source, walk)?;
    let met = Met::gather(index, &closure, limit)?;
    let mut more = More::default();
    let mut sessions: Vec<SessionShare> = met
        .sessions
        .into_iter()
        .map(|(session, records)| SessionShare { session, records })
        .collect();
    sessions.sort_by(|a, b| b.records.cmp(&a.records).then_with(|| a.session.cmp(&b.session)));
    more.sessions = cut(&mut sessions, limit) + met.other_sessions;
    let mut wrong = 0;
    let mut list = |subjects: Vec<(String, Subject)>, dropped: &mut u64| {
        let mut subjects = subjects;
        subjects.sort_by_key(|(_, subject)| subject.first);
        *dropped += cut(&mut subjects, limit);
        let mut touched = Vec::new();
        for (name, subject) in subjects {
            match touch(reader, index, &name, subject) {
                Some(found) => touched.push(found),
                None => wrong += 1,
            }
        }
        touched
    };
    let memory = met.files.iter().filter(|(_, subject)| subject.memory);
    let memory = list(memory.map(|(name, at)| (name.clone(), *at)).collect(), &mut more.memory);
    let files = list(met.files.into_iter().collect(), &mut more.files);
    let left = list(met.left.into_iter().collect(), &mut more.left);
    let stopped = list(met.stopped.into_iter().collect(), &mut more.stopped);
    let mut causes = Vec::new();
    if walk.direction == Direction::Backward {
        let nearest = met.foreign.iter().rev().chain(met.own.iter().rev());
        for position in nearest.copied().take(limit) {
            match cause(reader, index, position) {
                Some(found) => causes.push(found),
                None => wrong += 1,
            }
        }
        more.causes = closure.len().saturating_sub(causes.len() as u64);
    }
    if wrong > 0 {
        return Err(LookError::Wrong(wrong));
    }
    let result = match (walk.direction, closure.is_empty()) {
        (Direction::Forward, true) => result_of(reader, index, closure.start())?,
        _ => None,
    };
    more.files += met.other_files;
    more.left += met.other_left;
    more.stopped += met.other_stopped;
    Ok(Contamination {
        source,
        direction: walk.direction,
        direct: walk.direct,
        records: closure.len(),
        by_type: met.by_type,
        sessions,
        files,
        memory,
        left,
        stopped,
        causes,
        result,
        truncated: more != More::default(),
        more,
    })
}

/// Cuts a list; gives how many went.
fn cut<T>(list: &mut Vec<T>, limit: usize) -> u64 {
    let dropped = list.len().saturating_sub(limit);
    list.truncate(limit);
    dropped as u64
}

/// Reads the first record about a file or an address; `None` if it says something else.
fn touch(reader: &StoreReader, index: &Index, name: &str, subject: Subject) -> Option<Touched> {
    let location = index.row(subject.first).ok()??.location;
    read(reader, location, |line| {
        let facts = Facts::of(&line.record);
        let holds = line.entry.index == subject.first
            && (facts.shape.changed_file() || facts.shape.left() || facts.shape.stopped())
            && facts.kept_subject().as_deref() == Some(name);
        holds.then(|| Touched {
            subject: facts.subject.unwrap_or_default().to_owned(),
            times: subject.times,
            first: line.record.id,
            index: subject.first,
            time: line.record.timestamp().map(str::to_owned),
            kind: line.record.kind,
        })
    })
}

/// Reads a record that something came from.
fn cause(reader: &StoreReader, index: &Index, position: u64) -> Option<Cause> {
    let location = index.row(position).ok()??.location;
    read(reader, location, |line| {
        let record = &line.record;
        let facts = Facts::of(record);
        (line.entry.index == position).then(|| Cause {
            record: record.id,
            index: position,
            time: record.timestamp().map(str::to_owned),
            kind: record.kind,
            principal: record.principal,
            subject: facts.subject.map(str::to_owned),
            place: facts.place().map(str::to_owned),
        })
    })
}

/// Records that are looked at for the call that a request belongs to.
const NEAR: u64 = 256;

/// What came back for a request, where the request does not name its call, as in older journals: the
/// result of the call before it in its session.
fn result_of(
    reader: &StoreReader,
    index: &Index,
    request: u64,
) -> Result<Option<RecordId>, LookError> {
    let session_of = |position: u64| -> Result<Option<(RecordType, RecordId, String)>, LookError> {
        let Some(row) = index.row(position)? else { return Ok(None) };
        Ok(read(reader, row.location, |line| {
            let record = &line.record;
            let session = record.meta_str("session").unwrap_or_default().to_owned();
            Some((record.kind, record.id, session))
        }))
    };
    let Some((RecordType::NetworkRequest, _, session)) = session_of(request)? else {
        return Ok(None);
    };
    for position in (request.saturating_sub(NEAR)..request).rev() {
        match session_of(position)? {
            Some((RecordType::ToolCall, _, of)) if of == session => {
                for (child, _) in index.children(position, FEW)? {
                    if let Some((RecordType::ToolResult, id, of)) = session_of(child)?
                        && of == session
                    {
                        return Ok(Some(id));
                    }
                }
                return Ok(None);
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Reads a line and what `take` makes of it; `None` if there is no sound one, or `take` has no use
/// for it.
fn read<T>(
    reader: &StoreReader,
    location: Location,
    take: impl FnOnce(&crate::journal::JournalLine<'_>) -> Option<T>,
) -> Option<T> {
    let text = reader.folder().read_line(location).ok()?;
    take(&parse_line(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_a_set_within_their_limit() {
        let mut positions = Positions::new(200);
        for position in [3, 64, 199, 3, 200, u64::MAX] {
            positions.insert(position);
        }
        assert_eq!(positions.iter().collect::<Vec<_>>(), [3, 64, 199]);
        assert_eq!((positions.count, positions.words.len()), (3, 4));
        assert!(positions.contains(64) && !positions.contains(65) && !positions.contains(u64::MAX));
    }
}
