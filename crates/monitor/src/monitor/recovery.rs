//! What follows from a decision: a snapshot before a change, a way back after denials, and what a
//! leak has reached.

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, Principal, Record};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::alert::{Category, Severity};

use super::session::Session;
use super::{Alert, Monitor, Result, Who, held};
use crate::policy::About;
use crate::provenance::{Direction, Walk, contamination};
use crate::rollback::automatic::{Automatic, changed_since};
use crate::rollback::policy::{Call, command};
use crate::snapshot::{By, Catalogue, Snapshots};
use crate::store::StoreReader;

/// Subjects of each kind that an alert counts one by one.
const LISTED: usize = 100;

impl Monitor {
    /// Keeps the workspace before what steers the agent is changed.
    pub(super) fn keep_before(
        &self,
        who: &Who<'_>,
    ) -> Result<Option<(&'static str, Value<'static>)>> {
        let workspace = who.workspace.to_owned();
        let known = held(&self.snapshots).get(&workspace).copied();
        let last = match known {
            Some(last) => Some(last),
            None => {
                let reader = StoreReader::open(self.store.path())?;
                Catalogue::read(&reader)?.last(&reader, &workspace)
            }
        };
        let by = By {
            principal: Principal::Sys,
            about: About { agent: who.agent, session: who.session },
        };
        let taken = Snapshots::new(&self.store).take_if_due(
            &workspace,
            "before a change of the control plane",
            by,
            last.as_ref(),
        )?;
        let last = taken.map(|taken| taken.last).or(last);
        if let Some(last) = last {
            held(&self.snapshots).insert(workspace, last);
        }
        Ok(last.map(|last| ("snapshot", Value::from(last.id.to_string()))))
    }

    /// Counts a denial, and does what it calls for.
    pub(super) fn after_denial(
        &self,
        who: &Who<'_>,
        record: RecordId,
        session: &mut Session,
    ) -> Result<Vec<Alert>> {
        let now = self.store.now().unix();
        let call = held(&self.denials).note(who.session, who.principal, now);
        let automatic = match call {
            Call::None => return Ok(Vec::new()),
            Call::Recommend { .. } => false,
            Call::Automatic { .. } => true,
        };
        // Once in a while is enough, however many denials follow.
        if !session.calls(who.principal, automatic, now) {
            return Ok(Vec::new());
        }
        let alert = match call {
            Call::Automatic { denials } => self.roll_back(who, record, denials)?,
            Call::Recommend { denials } => self.recommend(who, record, denials)?,
            Call::None => return Ok(Vec::new()),
        };
        Ok(vec![alert])
    }

    fn recommend(&self, who: &Who<'_>, record: RecordId, denials: usize) -> Result<Alert> {
        let reader = StoreReader::open(self.store.path())?;
        let catalogue = Catalogue::read(&reader)?;
        let (message, suggestion) = match catalogue.newest(who.workspace) {
            Some(snapshot) => (
                format!(
                    "{denials} denials for {} in session {} within two minutes: something may have \
                     got in. Snapshot {} from {} holds the state before.",
                    who.principal, who.session, snapshot.id, snapshot.at
                ),
                Some(command(snapshot.id)),
            ),
            None => (
                format!(
                    "{denials} denials for {} in session {} within two minutes: something may have \
                     got in. There is no snapshot to go back to.",
                    who.principal, who.session
                ),
                Some("wardkeep snapshot take".to_owned()),
            ),
        };
        let kind = (Category::Rollback, Severity::High);
        self.alert(who, "RollbackRecommended", kind, message, suggestion, Some(record))
    }

    /// Puts back what the session itself changed, or asks the owner.
    fn roll_back(&self, who: &Who<'_>, record: RecordId, denials: usize) -> Result<Alert> {
        let reader = StoreReader::open(self.store.path())?;
        let catalogue = Catalogue::read(&reader)?;
        let beginning = format!(
            "{denials} denials for {} in session {} within two minutes.",
            who.principal, who.session
        );
        let kind = (Category::AutoRollback, Severity::Critical);
        let Some(snapshot) = catalogue.newest(who.workspace) else {
            let message = format!("{beginning} There is no snapshot to go back to.");
            return self.alert(who, "RollbackRecommended", kind, message, None, Some(record));
        };
        let changes = changed_since(self.store.journal().folder(), snapshot)
            .map_err(crate::store::StoreError::from)?;
        let by = By {
            principal: Principal::Sys,
            about: About { agent: who.agent, session: who.session },
        };
        let snapshots = Snapshots::new(&self.store);
        let done = snapshots.restore_automatically(snapshot, &changes, who.session, by);
        let way = Some(command(snapshot.id));
        let (name, message, way) = match done {
            Ok(Automatic::Nothing) => (
                "RollbackRecommended",
                format!("{beginning} The session changed nothing that would have to be put back."),
                None,
            ),
            Ok(Automatic::Restored(done)) => (
                "AutoRollback",
                format!(
                    "{beginning} {} files that it changed were put back to snapshot {}; what was \
                     replaced is kept in snapshot {}.",
                    done.restored.len() + done.removed.len(),
                    snapshot.id,
                    done.kept.map_or_else(|| "none".to_owned(), |kept| kept.to_string())
                ),
                done.kept.map(command),
            ),
            Ok(Automatic::AskOwner(doubts)) => {
                let named: Vec<String> = doubts
                    .iter()
                    .take(3)
                    .map(|(path, doubt)| {
                        let path = path.as_path().to_string_lossy();
                        format!("{} {}", wardkeep_evidence::check::printable(&path), doubt.words())
                    })
                    .collect();
                (
                    "RollbackRecommended",
                    format!("{beginning} Nothing was put back: {}.", named.join("; ")),
                    way,
                )
            }
            // The denial stands in any case; that the way back failed is told.
            Err(error) => (
                "RollbackRecommended",
                format!("{beginning} Nothing could be put back: {error}"),
                way,
            ),
        };
        self.alert(who, name, kind, message, way, Some(record))
    }

    /// Counts a denial of the past.
    pub(super) fn recall_denial(&self, record: &Record<'_>) {
        let Payload::Inline(Value::Object(content)) = &record.payload else { return };
        let is = |key: &str, wanted: &str| content.get(key).and_then(Value::as_str) == Some(wanted);
        let time = record.timestamp().and_then(|text| text.parse::<Timestamp>().ok());
        if let (true, true, Some(time), Some(session)) =
            (is("kind", "decision"), is("verdict", "deny"), time, record.meta_str("session"))
        {
            let _ = held(&self.denials).note(session, record.principal, time.unix());
        }
    }

    /// A leak: how far what led to it has reached. Where that cannot be told or written, the alert
    /// says so.
    pub(super) fn contamination_of(
        &self,
        who: &Who<'_>,
        record: RecordId,
        session: &Session,
    ) -> Alert {
        let source = session.suspect.or(session.context).unwrap_or(record);
        let told = self.reached(source).map(|reached| {
            format!(
                "A reply gave the prompt or a secret away. What led to it (record {}) has reached {} \
                 records, {} files, {} of them memory, and {} requests that left.",
                short(source),
                reached.records,
                reached.files.len(),
                reached.memory.len(),
                reached.left.len()
            )
        });
        let (severity, message) = match told {
            Ok(message) => (Severity::Critical, message),
            Err(error) => (
                Severity::Critical,
                format!(
                    "A reply gave the prompt or a secret away; how far it reaches is not known: {error}"
                ),
            ),
        };
        let suggestion = Some(format!("wardkeep contamination {}", short(source)));
        let kind = (Category::Contamination, severity);
        self.alert(who, "ContaminationDetected", kind, message, suggestion, Some(record))
            .unwrap_or_else(|error| Alert {
                record: None,
                name: "ContaminationDetected",
                severity: Severity::Critical,
                message: format!(
                    "A reply gave the prompt or a secret away, and the alert could not be written: {error}"
                ),
            })
    }

    fn reached(
        &self,
        source: RecordId,
    ) -> std::result::Result<crate::provenance::Contamination, String> {
        let reader = StoreReader::open(self.store.path()).map_err(|error| error.to_string())?;
        let mut index = held(&self.index);
        index.catch_up(reader.folder(), &mut |_| {}).map_err(|error| error.to_string())?;
        let walk = Walk { direction: Direction::Forward, direct: false };
        contamination(&reader, &index, source, walk, LISTED).map_err(|error| error.to_string())
    }
}

fn short(id: RecordId) -> String {
    id.to_string().chars().take(12).collect()
}
