//! Notifications: how records that someone should hear of are shown. They are no records of their
//! own, so none can be lost, and none is left after its record is acknowledged by the owner.

use serde::Serialize;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::surface::{Surface, is_owner};
use wardkeep_guard::verdict::Verdict;

use crate::index::{Asked, Category, Facts, Index, LookError, Row, Said, Severity};
use crate::journal::{Appended, JournalLine, parse_line};
use crate::store::{Event, Store, StoreError, StoreReader};

/// How loud a notification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Info,
    /// Worth a look.
    Warning,
    /// Something was attempted.
    Error,
    /// Something may have happened.
    Critical,
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Medium => Self::Warning,
            Severity::High => Self::Error,
            Severity::Critical => Self::Critical,
        }
    }
}

/// Which part of the monitor it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Source {
    /// Control-plane integrity.
    Cpi,
    /// Memory integrity.
    Mi,
    /// The conversation.
    Cio,
    /// Snapshots.
    Snapshot,
    /// Rollbacks.
    Rollback,
    /// Skills.
    Skill,
    /// Proxies.
    Proxy,
    /// Files.
    File,
    /// Requests that leave.
    Net,
    /// The monitor itself.
    Sys,
}

impl Source {
    /// The word that is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpi => "CPI",
            Self::Mi => "MI",
            Self::Cio => "CIO",
            Self::Snapshot => "SNAPSHOT",
            Self::Rollback => "ROLLBACK",
            Self::Skill => "SKILL",
            Self::Proxy => "PROXY",
            Self::File => "FILE",
            Self::Net => "NET",
            Self::Sys => "SYS",
        }
    }

    fn of(facts: &Facts<'_>) -> Self {
        let shape = &facts.shape;
        match (shape.said, shape.category, shape.surface) {
            (Some(Said::Snapshot), ..) => Self::Snapshot,
            (Some(Said::Rollback), ..)
            | (_, Some(Category::Rollback | Category::AutoRollback), _) => Self::Rollback,
            (_, Some(Category::Proxy), _) => Self::Proxy,
            (_, _, Some(Surface::ControlPlane)) | (_, Some(Category::Cpi), None) => Self::Cpi,
            (_, _, Some(Surface::DurableMemory)) | (_, Some(Category::Mi), None) => Self::Mi,
            (_, _, Some(Surface::ConversationIO))
            | (_, Some(Category::Injection | Category::Extraction | Category::Leakage), None) => {
                Self::Cio
            }
            (_, _, Some(Surface::SkillInstall)) | (_, Some(Category::Skill), None) => Self::Skill,
            (_, _, Some(Surface::FileSystem)) | (_, Some(Category::File), None) => Self::File,
            (_, _, Some(Surface::NetworkIO)) | (_, Some(Category::Network), None) => Self::Net,
            _ => Self::Sys,
        }
    }
}

/// A record as someone should hear of it. The texts are the record's: they may hold anything.
#[derive(Debug, Clone, Serialize)]
pub struct Notice {
    /// The record.
    pub record: RecordId,
    /// Its position in the log.
    pub index: u64,
    /// When it happened, by the machine's clock.
    pub time: String,
    /// How loud.
    pub level: Level,
    /// How grave.
    pub severity: Severity,
    /// From which part of the monitor.
    pub source: Source,
    /// What it is about.
    pub category: Option<Category>,
    /// In which session.
    pub session: String,
    /// On whose behalf.
    #[serde(serialize_with = "principal")]
    pub principal: Principal,
    /// What flowed into it.
    pub taint: Vec<String>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The file, address or message it is about.
    pub subject: Option<String>,
    /// Whether something was kept from happening.
    pub blocked: bool,
    /// What happened.
    pub message: String,
    /// What to do next.
    pub suggestion: Option<String>,
}

fn principal<S: serde::Serializer>(value: &Principal, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.as_str())
}

impl Notice {
    /// The notification that a line is; `None` if it is none.
    #[must_use]
    pub fn of(line: &JournalLine<'_>) -> Option<Self> {
        let record = &line.record;
        let facts = Facts::of(record);
        let severity = facts.shape.level?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let blocked = match facts.shape.said {
            Some(Said::Alert) => facts.value("blocked") == Some(&Value::Bool(true)),
            Some(Said::Flood) => true,
            _ => matches!(facts.shape.verdict, Some(Verdict::Deny | Verdict::Ask)),
        };
        Some(Self {
            record: record.id,
            index: line.entry.index,
            time: record.timestamp().unwrap_or_default().to_owned(),
            level: severity.into(),
            severity,
            source: Source::of(&facts),
            category: facts.shape.category,
            session: record.meta_str("session").unwrap_or_default().to_owned(),
            principal: record.principal,
            taint: record.taint.iter().map(|flag| flag.to_string()).collect(),
            rule: owned(facts.rule),
            subject: owned(facts.subject),
            blocked,
            message: message(&facts, record.kind),
            suggestion: suggestion(&facts),
        })
    }
}

fn message(facts: &Facts<'_>, kind: RecordType) -> String {
    let text = |key: &str| facts.text(key).unwrap_or_default();
    let number = |key: &str| match facts.value(key) {
        Some(Value::Unsigned(number)) => *number,
        Some(Value::Array(items)) => items.len() as u64,
        _ => 0,
    };
    match facts.shape.said {
        Some(Said::Decision) if facts.rule == Some("sandbox-none") => {
            "an agent runs unconfined: what its hooks do not see, nothing stops".to_owned()
        }
        Some(Said::Decision) if facts.rule == Some("sandbox-partial") => {
            "an agent is confined only in part".to_owned()
        }
        Some(Said::Decision) => {
            let verdict = match facts.shape.verdict {
                Some(Verdict::Deny) => "denied",
                Some(Verdict::Ask) => "held until the owner answers",
                Some(Verdict::Stage) => "staged for the owner to apply",
                Some(Verdict::Redact) => "let through in part",
                Some(Verdict::Allow) | None => "allowed",
            };
            let mut message = verdict.to_owned();
            for piece in [text("act"), text("subject")].into_iter().filter(|it| !it.is_empty()) {
                let space = if message.len() == verdict.len() { ": " } else { " " };
                message = format!("{message}{space}{piece}");
            }
            if let Some(place) = facts.place() {
                message = format!("{message}, {place}");
            }
            match text("reason") {
                "" => message,
                reason => format!("{message} ({reason})"),
            }
        }
        Some(Said::Flood) => format!(
            "{} denials from {} to {} are summed up in this record",
            facts.many,
            text("from"),
            text("to")
        ),
        Some(Said::Snapshot) => {
            format!("snapshot {} of {} files ({})", text("id"), number("files"), text("scope"))
        }
        Some(Said::Rollback) => {
            let auto = facts.value("auto") == Some(&Value::Bool(true));
            let how = if auto { "rolled back automatically" } else { "rolled back" };
            format!("{how} to snapshot {}: {} files", text("snapshot"), number("files"))
        }
        Some(Said::Recovery) => {
            let found = match facts.value("found") {
                Some(Value::Array(items)) => items.as_slice(),
                _ => &[],
            };
            let words =
                found.iter().take(5).filter_map(|item| item.as_object()?.get("what")?.as_str());
            format!("the journal found: {}", words.collect::<Vec<_>>().join(", "))
        }
        Some(said) => {
            let words = ["message", "what", "name", "switch", "alert"];
            let found = words.into_iter().find_map(|key| facts.text(key));
            found.map_or_else(|| format!("{said} ({kind})"), str::to_owned)
        }
        None => kind.to_string(),
    }
}

fn suggestion(facts: &Facts<'_>) -> Option<String> {
    let own = facts.text("suggestion").filter(|text| !text.is_empty());
    own.map(str::to_owned).or_else(|| match (facts.shape.said?, facts.shape.verdict) {
        (Said::Rollback, _) => {
            let kept = facts.text("kept")?;
            Some(format!("undo it with `wardkeep rollback {kept}`"))
        }
        (Said::Decision, Some(Verdict::Ask)) => {
            Some("answer it: see `wardkeep approvals list`".to_owned())
        }
        (Said::Decision, Some(Verdict::Stage)) => {
            Some("look at it with `wardkeep diff`".to_owned())
        }
        (Said::Recovery, _) => Some("see `wardkeep evidence verify`".to_owned()),
        _ => None,
    })
}

/// Notifications that were asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Notices {
    /// The newest first.
    pub notices: Vec<Notice>,
    /// How many more there are.
    pub more: u64,
    /// Up to which position in the log they are acknowledged.
    pub acknowledged: Option<u64>,
}

/// The newest notifications that are asked for, newest first; without `all`, only those that nobody
/// has acknowledged. Each is read from the journal.
///
/// # Errors
/// When the index is wrong or cannot be read.
pub fn list(
    reader: &StoreReader,
    index: &Index,
    asked: &Asked,
    all: bool,
    limit: u32,
) -> Result<Notices, LookError> {
    let acknowledged = acknowledged(reader, index)?;
    let above = if all { asked.above } else { acknowledged.max(asked.above) };
    let asked = Asked { above, ..asked.clone() };
    let (rows, count) = index.notices(&asked, limit)?;
    let notices = read_rows(reader, &asked, &rows)?;
    let more = count.saturating_sub(notices.len() as u64);
    Ok(Notices { notices, more, acknowledged })
}

/// Reads the lines that rows point to; an index that is wrong about one of them is wrong.
fn read_rows(reader: &StoreReader, asked: &Asked, rows: &[Row]) -> Result<Vec<Notice>, LookError> {
    let mut notices = Vec::new();
    let mut wrong = 0;
    for row in rows {
        let text = reader.folder().read_line(row.location).unwrap_or_default();
        let found = parse_line(&text).and_then(|line| {
            let session = line.record.meta_str("session");
            let same = asked.session.as_deref().is_none_or(|asked| session == Some(asked));
            let sound = line.entry.index == row.index
                && Facts::of(&line.record).shape == row.shape
                && asked.takes(&row.shape);
            Notice::of(&line).filter(|_| sound && same)
        });
        match found {
            Some(notice) => notices.push(notice),
            None => wrong += 1,
        }
    }
    if wrong > 0 { Err(LookError::Wrong(wrong)) } else { Ok(notices) }
}

/// Up to which position in the log the owner has acknowledged.
///
/// # Errors
/// When the index is wrong or cannot be read.
pub fn acknowledged(reader: &StoreReader, index: &Index) -> Result<Option<u64>, LookError> {
    /// Someone may have acknowledged less after more.
    const LOOK: u32 = 16;
    let mut upto = None;
    let mut wrong = 0;
    for location in index.acknowledgements(LOOK)? {
        let text = reader.folder().read_line(location).unwrap_or_default();
        let Some(line) = parse_line(&text) else {
            wrong += 1;
            continue;
        };
        let facts = Facts::of(&line.record);
        // Nobody acknowledges what is not there yet, and nobody but the owner.
        let owner =
            line.record.kind == RecordType::GuardDecision && is_owner(line.record.principal);
        match (facts.shape.said, facts.value("upto")) {
            (Some(Said::Acknowledgement), Some(Value::Unsigned(to)))
                if owner && *to < line.entry.index =>
            {
                upto = upto.max(Some(*to));
            }
            (Some(Said::Acknowledgement), _) => {}
            _ => wrong += 1,
        }
    }
    if wrong > 0 { Err(LookError::Wrong(wrong)) } else { Ok(upto) }
}

/// Records that the owner has seen everything up to a position in the log.
///
/// # Errors
/// When it cannot be written.
pub fn acknowledge(store: &Store, upto: u64) -> Result<Appended, StoreError> {
    let content = Value::from([
        ("kind", Value::from(Said::Acknowledgement.as_str())),
        ("upto", Value::from(upto)),
        ("v", Value::from(1u64)),
    ]);
    let event = Event::new(RecordType::GuardDecision, Principal::User, content);
    store.append(Event { agent: "wardkeep", ..event })
}
