//! A request in full, as it is shown before it is answered.

use serde::Serialize;
use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Record};
use wardkeep_evidence::time::Timestamp;

use super::{ActionKey, Approvals, ApprovalsError, REQUEST_SECONDS, Result, later};
use crate::files::read_plain;
use crate::journal::parse_line;

/// Largest content that is shown.
const MAX_CONTENT: u64 = 4 << 20;
/// Most parents that are named.
const MAX_PARENTS: usize = 50;

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It waits for an answer.
    Pending,
    /// It was approved.
    Approved,
    /// It was denied.
    Denied,
    /// Nobody answered in time, which is a denial.
    Expired,
}

/// What is written or sent, or was there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Content {
    /// Its SHA-256.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// The bytes as text, where they were kept and still have that hash; what is no text is replaced.
    pub text: Option<String>,
}

/// A record that a request came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parent {
    /// The record.
    pub record: String,
    /// Its type, or nothing if it was not found.
    pub kind: Option<String>,
    /// On whose behalf.
    pub principal: Option<String>,
    /// When.
    pub at: Option<String>,
    /// What flowed into it.
    pub taint: Vec<String>,
    /// What it was about, if it says.
    pub subject: Option<String>,
}

/// A request in full. Every text in it may be hostile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// The record that asks.
    pub request: String,
    /// Where it stands.
    pub status: Status,
    /// When it was asked.
    pub at: String,
    /// Until when it can be answered.
    pub expires: String,
    /// The hash of what is asked for.
    pub action: String,
    /// Whether that is the hash of what is shown here. If not, it cannot be approved.
    pub consistent: bool,
    /// On whose behalf.
    pub principal: String,
    /// Where it crosses.
    pub surface: String,
    /// What is to be done.
    pub act: String,
    /// To what, whole.
    pub subject: String,
    /// How, where the subject does not say all.
    pub how: Option<String>,
    /// In which workspace.
    pub workspace: String,
    /// By which agent.
    pub agent: String,
    /// In which session.
    pub session: String,
    /// The rule that demands the question.
    pub rule: String,
    /// Every rule that matched.
    pub rules: Vec<String>,
    /// Why.
    pub reason: String,
    /// How grave it is.
    pub severity: Option<String>,
    /// What to do about it.
    pub suggestion: Option<String>,
    /// Taint of the parents that were named and of the content.
    pub direct: Vec<String>,
    /// Taint of everything the session has seen.
    pub ambient: Vec<String>,
    /// What is to be written or sent.
    pub content: Option<Content>,
    /// What is there now.
    pub before: Option<Content>,
    /// Which records it came from.
    pub parents: Vec<Parent>,
    /// How many more there are.
    pub more_parents: usize,
}

impl Approvals {
    /// The request of a line of the journal, in full; `find` gives the line of another record.
    ///
    /// # Errors
    /// When the line is no request, or the journal cannot be read.
    pub fn show(
        &self,
        line: &[u8],
        now: Timestamp,
        find: &dyn Fn(RecordId) -> Option<Vec<u8>>,
    ) -> Result<Shown> {
        let Some(parsed) = parse_line(line) else {
            return Err(ApprovalsError::Unknown(String::new()));
        };
        let record = &parsed.record;
        let unknown = || ApprovalsError::Unknown(record.id.to_string());
        let Payload::Inline(Value::Object(told)) = &record.payload else { return Err(unknown()) };
        let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("kind").as_deref() != Some("decision") || text("verdict").as_deref() != Some("ask")
        {
            return Err(unknown());
        }
        let at: Timestamp =
            record.timestamp().and_then(|at| at.parse().ok()).ok_or_else(unknown)?;
        let action = text("action").unwrap_or_default();
        let computed = ActionKey::of_record(record).map(|action| action.hash().to_string());
        let meta = |key| record.meta_str(key).unwrap_or_default().to_owned();
        let parents = record.parents.iter().take(MAX_PARENTS).map(|id| parent(*id, find));
        Ok(Shown {
            request: record.id.to_string(),
            status: self.status(record.id, at, now)?,
            at: at.to_string(),
            expires: later(at, REQUEST_SECONDS).to_string(),
            consistent: computed.as_deref() == Some(&*action),
            action,
            principal: record.principal.to_string(),
            surface: text("surface").unwrap_or_default(),
            act: text("act").unwrap_or_default(),
            subject: text("subject").unwrap_or_default(),
            how: text("how"),
            workspace: meta("workspace"),
            agent: meta("agent"),
            session: meta("session"),
            rule: text("rule").unwrap_or_default(),
            rules: texts(told, "rules"),
            reason: text("reason").unwrap_or_default(),
            severity: text("severity"),
            suggestion: text("suggestion"),
            direct: texts(told, "direct"),
            ambient: texts(told, "ambient"),
            content: self.content(told, "content"),
            before: self.content(told, "before"),
            parents: parents.collect(),
            more_parents: record.parents.len().saturating_sub(MAX_PARENTS),
        })
    }

    fn status(&self, id: RecordId, at: Timestamp, now: Timestamp) -> Result<Status> {
        let inner = self.current()?;
        let answered = inner.book.answered.iter().rfind(|one| one.request == id);
        let waits = inner.book.requests.iter().any(|asked| asked.id == id);
        Ok(match answered {
            Some(one) if one.approved => Status::Approved,
            Some(_) => Status::Denied,
            None if now >= later(at, REQUEST_SECONDS) || !waits => Status::Expired,
            None => Status::Pending,
        })
    }

    fn content(&self, told: &Object<'_>, key: &str) -> Option<Content> {
        let content = told.get(key)?.as_object()?;
        let sha256 = content.get("sha256").and_then(Value::as_str)?.to_owned();
        let bytes = match content.get("bytes") {
            Some(Value::Unsigned(bytes)) => *bytes,
            _ => 0,
        };
        let kept = content.get("kept") == Some(&Value::Bool(true));
        let text = BlobHash::from_hex(&sha256).filter(|_| kept).and_then(|hash| self.kept(hash));
        Some(Content { sha256, bytes, text })
    }

    /// The bytes that were kept under a hash, if they still have it.
    fn kept(&self, hash: BlobHash) -> Option<String> {
        let path = self.state.join("blobs").join(hash.to_string());
        let bytes = read_plain(&path, MAX_CONTENT).ok()?;
        (sha256(&bytes) == hash.0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn parent(id: RecordId, find: &dyn Fn(RecordId) -> Option<Vec<u8>>) -> Parent {
    let line = find(id);
    let parsed = line.as_deref().and_then(parse_line).filter(|line| line.record.id == id);
    let record = parsed.as_ref().map(|line| &line.record);
    Parent {
        record: id.to_string(),
        kind: record.map(|record| record.kind.to_string()),
        principal: record.map(|record| record.principal.to_string()),
        at: record.and_then(|record| record.timestamp()).map(str::to_owned),
        taint: record
            .into_iter()
            .flat_map(|one| one.taint.iter().map(ToString::to_string))
            .collect(),
        subject: record.and_then(subject),
    }
}

fn subject(record: &Record<'_>) -> Option<String> {
    let Payload::Inline(Value::Object(told)) = &record.payload else { return None };
    told.get("subject").and_then(Value::as_str).map(str::to_owned)
}

fn texts(told: &Object<'_>, key: &str) -> Vec<String> {
    match told.get(key) {
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}
