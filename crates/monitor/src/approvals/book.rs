//! What the journal says of requests and their answers, kept in memory and brought up to date.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Record, RecordType};
use wardkeep_evidence::time::Timestamp;

use super::{ActionHash, Grant, GrantId, GrantKey, Scope};
use crate::journal::{Folder, JournalError, JournalLine, Location, Position, parse_line, scan};

/// Most requests that are remembered of one session, and of all.
const MAX_OF_SESSION: usize = 100;
const MAX_REQUESTS: usize = 1000;
/// Most grants that are in force at a time; beyond it the oldest end.
const MAX_GRANTS: usize = 10_000;
/// Most answers that are remembered to say that something was answered.
const MAX_ANSWERED: usize = 1000;
/// Most approvals with a wrong signature that are named.
const MAX_FORGED: usize = 16;
/// Longest text of a request that is kept here; the record has all of it.
const MAX_TEXT: usize = 300;

/// A request as far as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The record that asks.
    pub id: RecordId,
    /// Its position in the journal.
    pub index: u64,
    /// When it was asked.
    pub at: Timestamp,
    /// What is asked for.
    pub action: ActionHash,
    /// Which session asked.
    pub session: String,
    /// What is to be done.
    pub act: String,
    /// Where it crosses.
    pub surface: String,
    /// To what; the beginning of it.
    pub subject: String,
    /// The rule that demands the question.
    pub rule: String,
    /// Why; the beginning of it.
    pub reason: String,
    /// How often the same was asked in the session since the last answer.
    pub count: u64,
    pub(super) location: Location,
}

impl Asked {
    /// Of a record that asks; `None` if it does not.
    fn of(line: &JournalLine<'_>, told: &Object<'_>, location: Location) -> Option<Self> {
        let record = &line.record;
        let text = |key| told.get(key).and_then(Value::as_str);
        let asks = record.kind == RecordType::GuardDecision && text("verdict") == Some("ask");
        let short = |key| text(key).unwrap_or_default().chars().take(MAX_TEXT).collect();
        asks.then_some(())?;
        Some(Self {
            id: record.id,
            index: line.entry.index,
            at: record.timestamp()?.parse().ok()?,
            action: text("action")?.parse().ok()?,
            // A session is compared as a whole.
            session: record.meta_str("session").unwrap_or_default().to_owned(),
            act: short("act"),
            surface: short("surface"),
            subject: short("subject"),
            rule: short("rule"),
            reason: short("reason"),
            count: 1,
            location,
        })
    }

    fn is_same(&self, action: ActionHash, session: &str) -> bool {
        self.action == action && self.session == session
    }
}

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The request.
    pub request: RecordId,
    /// Whether it was approved.
    pub approved: bool,
    /// The record of the answer.
    pub by: RecordId,
}

/// A refusal, which holds for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotNow {
    pub(super) action: ActionHash,
    pub(super) session: String,
    pub(super) at: Timestamp,
    /// The record of it.
    pub(super) by: RecordId,
}

/// Requests, answers and grants.
#[derive(Debug)]
pub(super) struct Book {
    /// How far the journal was read.
    pub(super) position: Position,
    pub(super) requests: VecDeque<Asked>,
    pub(super) answered: VecDeque<Answered>,
    /// What was refused lately.
    pub(super) refused: VecDeque<NotNow>,
    pub(super) grants: HashMap<ActionHash, Vec<Grant>>,
    /// Grants that were used up or taken back, until they would have ended.
    pub(super) spent: HashMap<GrantId, Option<Timestamp>>,
    /// Approvals whose signature is wrong.
    pub(super) forged: VecDeque<RecordId>,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            position: Position::START,
            requests: VecDeque::new(),
            answered: VecDeque::new(),
            refused: VecDeque::new(),
            grants: HashMap::new(),
            spent: HashMap::new(),
            forged: VecDeque::new(),
        }
    }
}

impl Book {
    /// Reads what was appended since; says how many bytes that were.
    pub(super) fn catch_up(
        &mut self,
        folder: &Folder,
        key: Option<&GrantKey>,
    ) -> Result<u64, JournalError> {
        if self.is_beyond(folder)? {
            // The journal was replaced by a shorter one: what was read no longer counts.
            *self = Self::default();
        }
        let mut bytes = 0;
        let from = self.position;
        let reached = scan(folder, from, |location, text| {
            bytes += location.length + 1;
            if may_concern(text)
                && let Some(line) = parse_line(text)
            {
                self.take_in(&line, location, key);
            }
            ControlFlow::Continue(())
        })?;
        self.position = reached;
        Ok(bytes)
    }

    fn is_beyond(&self, folder: &Folder) -> Result<bool, JournalError> {
        if self.position == Position::START {
            return Ok(false);
        }
        Ok(match folder.segments()?.last().copied() {
            None => true,
            Some(newest) if newest.0 == self.position.segment => {
                folder.read_segment(newest)?.1 < self.position.offset
            }
            Some(newest) => newest.0 < self.position.segment,
        })
    }

    /// Takes in one line.
    fn take_in(&mut self, line: &JournalLine<'_>, location: Location, key: Option<&GrantKey>) {
        let record = &line.record;
        let Payload::Inline(Value::Object(told)) = &record.payload else { return };
        let text = |key| told.get(key).and_then(Value::as_str);
        let decided = record.kind == RecordType::GuardDecision;
        match text("kind") {
            Some("decision") => {
                if let Some(used) = text("approval").and_then(RecordId::from_hex) {
                    self.spend(|grant| grant.record == used && grant.scope == Scope::Once);
                }
                if let Some(asked) = Asked::of(line, told, location) {
                    self.ask(asked);
                }
            }
            Some("approval") if decided => self.approve(record, told, key),
            Some("refusal") if decided => self.refuse(record, told),
            _ => {}
        }
    }

    fn ask(&mut self, asked: Asked) {
        let of_session = |other: &&Asked| other.session == asked.session;
        if self.requests.iter().filter(of_session).count() >= MAX_OF_SESSION
            && let Some(at) = self.requests.iter().position(|other| of_session(&other))
        {
            self.requests.remove(at);
        }
        if self.requests.len() >= MAX_REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back(asked);
    }

    fn approve(&mut self, record: &Record<'_>, told: &Object<'_>, key: Option<&GrantKey>) {
        let read = Grant::read(told, record.id);
        let signed = read.filter(|(grant, tag)| key.is_some_and(|key| key.verify(grant, tag)));
        let Some((grant, _)) = signed else {
            push_bounded(&mut self.forged, record.id, MAX_FORGED);
            return;
        };
        self.answer(grant.request, record.id, true);
        self.refused.retain(|one| (one.action, &one.session) != (grant.action, &grant.session));
        self.requests.retain(|asked| !asked.is_same(grant.action, &grant.session));
        // What is for always counts where the signed set has it, not here.
        if grant.scope == Scope::Always {
            return;
        }
        let id = grant.id();
        let known = self.grants.get(&grant.action).into_iter().flatten();
        if self.spent.contains_key(&id) || known.into_iter().any(|other| other.id() == id) {
            // A copy of an earlier record.
            return;
        }
        if self.grants.values().map(Vec::len).sum::<usize>() >= MAX_GRANTS {
            self.end_soonest();
        }
        self.grants.entry(grant.action).or_default().push(grant);
    }

    fn refuse(&mut self, record: &Record<'_>, told: &Object<'_>) {
        let text = |key| told.get(key).and_then(Value::as_str);
        let Some(request) = text("request").and_then(RecordId::from_hex) else { return };
        let Some(action) = text("action").and_then(|text| text.parse::<ActionHash>().ok()) else {
            return;
        };
        self.answer(request, record.id, false);
        let session = record.meta_str("session").unwrap_or_default();
        self.requests.retain(|asked| asked.id != request && !asked.is_same(action, session));
        // What was only taken back may be asked for again.
        if told.get("withdrawn").is_none()
            && let Some(at) = record.timestamp().and_then(|at| at.parse().ok())
        {
            let refused = NotNow { action, session: session.to_owned(), at, by: record.id };
            push_bounded(&mut self.refused, refused, MAX_ANSWERED);
        }
        // It needs no signature: a refusal only ever takes away.
        self.spend(|grant| grant.request == request);
    }

    fn answer(&mut self, request: RecordId, by: RecordId, approved: bool) {
        push_bounded(&mut self.answered, Answered { request, approved, by }, MAX_ANSWERED);
    }

    /// Ends grants, and remembers that they ended.
    pub(super) fn spend(&mut self, which: impl Fn(&Grant) -> bool) {
        let spent = &mut self.spent;
        self.grants.retain(|_, grants| {
            grants.retain(|grant| {
                let ends = which(grant);
                if ends {
                    spent.insert(grant.id(), grant.expires);
                }
                !ends
            });
            !grants.is_empty()
        });
    }

    fn end_soonest(&mut self) {
        let soonest = self.grants.values().flatten().min_by_key(|grant| grant.expires);
        let Some(id) = soonest.map(Grant::id) else { return };
        self.spend(|grant| grant.id() == id);
    }

    /// Forgets what has ended; `asked_after` is the time before which a request has.
    pub(super) fn forget(&mut self, now: Timestamp, asked_after: Timestamp) {
        self.requests.retain(|asked| asked.at > asked_after);
        self.refused.retain(|one| one.at > asked_after);
        self.grants.retain(|_, grants| {
            grants.retain(|grant| grant.is_current(now));
            !grants.is_empty()
        });
        self.spent.retain(|_, expires| expires.is_none_or(|expires| now < expires));
    }
}

/// Whether a line may tell of a request, an answer or a use. It is cheap, and most do not.
fn may_concern(line: &[u8]) -> bool {
    let has = |what: &[u8]| memchr::memmem::find(line, what).is_some();
    has(b"\"approval\"") || has(b"\"refusal\"") || has(b"\"verdict\":\"ask\"")
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, limit: usize) {
    if queue.len() >= limit {
        queue.pop_front();
    }
    queue.push_back(item);
}
