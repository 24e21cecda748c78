//! The book on disk, so that opening it does not read the whole journal. It is a cache: signed with
//! the key of the grants, and made anew from the journal where it is missing or was changed. An
//! older one costs time, nothing else.

use std::path::Path;

use serde::{Deserialize, Serialize};
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::hash::{RecordId, decode_hex, encode_hex};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;

use super::book::{Answered, Asked, Book, NotNow};
use super::{ActionHash, Grant, GrantId, GrantKey, Scope};
use crate::files::read_plain;
use crate::journal::{Location, Position, SegmentNumber};

const FILE: &str = "approvals-seen.json";
const MAX_BYTES: u64 = 32 << 20;
const VERSION: u32 = 2;
/// Hexadecimal digits of the signature, and the newline behind them.
const HEAD: usize = 65;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    position: Position,
    requests: Vec<KeptRequest>,
    answered: Vec<(RecordId, bool, RecordId)>,
    refused: Vec<(String, String, i64, RecordId)>,
    grants: Vec<KeptGrant>,
    spent: Vec<(String, Option<i64>)>,
    forged: Vec<RecordId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRequest {
    id: RecordId,
    index: u64,
    at: i64,
    action: String,
    session: String,
    act: String,
    surface: String,
    subject: String,
    rule: String,
    reason: String,
    place: (u32, u64, u64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptGrant {
    action: String,
    scope: String,
    expires: Option<i64>,
    session: String,
    request: RecordId,
    declassifies: Vec<String>,
    nonce: [u8; 16],
    record: RecordId,
}

/// Reads the book; `None` where there is none that was written with this key.
pub(super) fn load(state: &Path, key: &GrantKey) -> Option<Book> {
    let bytes = read_plain(&state.join(FILE), MAX_BYTES).ok()?;
    let (head, body) = bytes.split_at_checked(HEAD)?;
    let tag = decode_hex(head.strip_suffix(b"\n")?)?;
    if !key.is_seal(body, &tag) {
        return None;
    }
    let kept: Kept = serde_json::from_slice(body).ok()?;
    (kept.version == VERSION).then(|| kept.into_book()).flatten()
}

/// Writes the book as a whole.
pub(super) fn store(state: &Path, key: &GrantKey, book: &Book) -> Result<(), BundleError> {
    let path = state.join(FILE);
    let body = serde_json::to_vec(&Kept::of(book)).map_err(|error| BundleError::Io {
        action: "write",
        path: path.display().to_string(),
        error: error.into(),
    })?;
    let mut bytes = encode_hex(&key.seal(&body)).into_bytes();
    bytes.push(b'\n');
    bytes.extend_from_slice(&body);
    StagedFile::replace(&path, 0o600, &bytes)
}

impl Kept {
    fn of(book: &Book) -> Self {
        let unix = |time: Option<Timestamp>| time.map(Timestamp::unix);
        let answered = book.answered.iter().map(|one| (one.request, one.approved, one.by));
        let refused = book
            .refused
            .iter()
            .map(|one| (one.action.to_string(), one.session.clone(), one.at.unix(), one.by));
        let spent = book.spent.iter().map(|(id, expires)| (id.to_string(), unix(*expires)));
        Self {
            version: VERSION,
            position: book.position,
            requests: book.requests.iter().map(KeptRequest::of).collect(),
            answered: answered.collect(),
            refused: refused.collect(),
            grants: book.grants.values().flatten().map(KeptGrant::of).collect(),
            spent: spent.collect(),
            forged: book.forged.iter().copied().collect(),
        }
    }

    fn into_book(self) -> Option<Book> {
        let mut book = Book { position: self.position, ..Book::default() };
        book.requests =
            self.requests.into_iter().map(KeptRequest::into_asked).collect::<Option<_>>()?;
        book.answered = self
            .answered
            .into_iter()
            .map(|(request, approved, by)| Answered { request, approved, by })
            .collect();
        for (action, session, at, by) in self.refused {
            let (action, at) = (action.parse().ok()?, Timestamp::from_unix(at)?);
            book.refused.push_back(NotNow { action, session, at, by });
        }
        for grant in self.grants {
            let grant = grant.into_grant()?;
            book.grants.entry(grant.action).or_default().push(grant);
        }
        for (id, expires) in self.spent {
            book.spent.insert(GrantId(decode_hex(id.as_bytes())?), time(expires)?);
        }
        book.forged = self.forged.into();
        Some(book)
    }
}

impl KeptRequest {
    fn of(asked: &Asked) -> Self {
        let Location { segment, offset, length } = asked.location;
        Self {
            id: asked.id,
            index: asked.index,
            at: asked.at.unix(),
            action: asked.action.to_string(),
            session: asked.session.clone(),
            act: asked.act.clone(),
            surface: asked.surface.clone(),
            subject: asked.subject.clone(),
            rule: asked.rule.clone(),
            reason: asked.reason.clone(),
            place: (segment.0, offset, length),
        }
    }

    fn into_asked(self) -> Option<Asked> {
        let (segment, offset, length) = self.place;
        Some(Asked {
            id: self.id,
            index: self.index,
            at: Timestamp::from_unix(self.at)?,
            action: self.action.parse().ok()?,
            session: self.session,
            act: self.act,
            surface: self.surface,
            subject: self.subject,
            rule: self.rule,
            reason: self.reason,
            count: 1,
            location: Location { segment: SegmentNumber(segment), offset, length },
        })
    }
}

impl KeptGrant {
    fn of(grant: &Grant) -> Self {
        Self {
            action: grant.action.to_string(),
            scope: grant.scope.to_string(),
            expires: grant.expires.map(Timestamp::unix),
            session: grant.session.clone(),
            request: grant.request,
            declassifies: grant.declassifies.names().map(str::to_owned).collect(),
            nonce: grant.nonce,
            record: grant.record,
        }
    }

    fn into_grant(self) -> Option<Grant> {
        Some(Grant {
            action: self.action.parse::<ActionHash>().ok()?,
            scope: self.scope.parse::<Scope>().ok()?,
            expires: time(self.expires)?,
            session: self.session,
            request: self.request,
            declassifies: Taint::from_names(self.declassifies.iter().map(String::as_str)),
            nonce: self.nonce,
            record: self.record,
        })
    }
}

/// A moment that may be missing; `None` if it is none.
fn time(unix: Option<i64>) -> Option<Option<Timestamp>> {
    match unix {
        None => Some(None),
        Some(unix) => Timestamp::from_unix(unix).map(Some),
    }
}
