//! What the journal and the requests say now, made harmless on the way.

use std::path::PathBuf;
use std::time::SystemTime;

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::approvals::{Approvals, REQUEST_SECONDS, Shown};
use wardkeep_monitor::identity::find;
use wardkeep_monitor::index::{Filter, Index, Severity};
use wardkeep_monitor::journal::{JournalLine, parse_line};
use wardkeep_monitor::notices::Notice;
use wardkeep_monitor::store::StoreReader;
use wardkeep_policy::store::PolicyStore;

use super::app::{App, Grave, Row, Waiting};
use crate::commands::evidence::resolve::find_record;
use crate::commands::log::{in_full, told};
use crate::context::Context;
use crate::error::CliError;
use crate::ui::{Member, harmless, quoted};

/// Records on the screen at most.
const MOST: usize = 200;

/// Where to look.
pub(super) struct Feed {
    state: PathBuf,
    owner: u32,
}

impl Feed {
    pub(super) fn new(context: &Context) -> Result<Self, CliError> {
        Ok(Self { state: context.state_dir()?, owner: rustix::process::getuid().as_raw() })
    }

    /// Takes in what is new. What cannot be read now is said, and tried again.
    pub(super) fn look(&self, app: &mut App, now: Timestamp) {
        if let Err(why) = self.records(app).and_then(|()| self.requests(app, now)) {
            app.said = Some(harmless(&why));
        }
    }

    fn records(&self, app: &mut App) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let reader = StoreReader::open(&self.state).map_err(|error| text(&error))?;
        let index = Index::ready(reader.path(), reader.folder(), false, &mut |_| {})
            .map_err(|error| text(&error))?;
        let all = index.records().map_err(|error| text(&error))?;
        let from = app.rows.first().map(|row| row.index + 1);
        if from.is_some_and(|from| from >= all) {
            return Ok(());
        }
        let filter = Filter { from, ..Filter::default() };
        let most = u32::try_from(MOST).unwrap_or(u32::MAX);
        let places = index.newest(&filter, most).map_err(|error| text(&error))?;
        let mut rows: Vec<Row> = places
            .into_iter()
            .filter_map(|place| reader.folder().read_line(place).ok())
            .filter_map(|line| parse_line(&line).map(|line| row(&line)))
            .collect();
        rows.append(&mut app.rows);
        rows.truncate(MOST);
        app.rows = rows;
        app.counts = format!("{all} records");
        Ok(())
    }

    fn requests(&self, app: &mut App, now: Timestamp) -> Result<(), String> {
        let approvals =
            Approvals::open(&self.state, self.owner).map_err(|error| error.to_string())?;
        let pending = approvals.pending(now).map_err(|error| error.to_string())?;
        let waiting = pending.into_iter().map(|asked| Waiting {
            request: asked.id.to_string(),
            seconds: (asked.at.unix() + REQUEST_SECONDS - now.unix()).max(0),
            session: harmless(&asked.session),
            what: harmless(&format!("{} {} {}", asked.surface, asked.act, asked.subject)),
        });
        app.set_waiting(waiting.collect());
        Ok(())
    }

    /// All of a record.
    pub(super) fn record(&self, id: &str) -> Result<Vec<Member>, String> {
        let reader = StoreReader::open(&self.state).map_err(|error| error.to_string())?;
        let (_, line) = find_record(&reader, id).map_err(|error| error.message)?;
        let line = parse_line(&line).ok_or("the record cannot be read any more")?;
        Ok(in_full(&line))
    }

    /// What waits in the staging folders of the workspaces, in words. What root holds cannot be seen from here.
    pub(super) fn staged(&self) -> String {
        let mut waiting = Vec::new();
        for path in PolicyStore::new(&self.state, self.owner).workspaces() {
            let place = find(&self.state, self.owner, &path, SystemTime::now()).ok().flatten();
            let changes = place.and_then(|place| place.workspace().changes(&|_| {}).ok());
            let count = changes.map_or(0, |changes| changes.changes.len());
            if count > 0 {
                waiting.push((path, count));
            }
        }
        let all: usize = waiting.iter().map(|(_, count)| count).sum();
        let wait = if all == 1 { "1 staged change waits" } else { "staged changes wait" };
        let number = if all == 1 { String::new() } else { format!("{all} ") };
        match &waiting[..] {
            [] => String::new(),
            [(path, _)] => {
                let path = path.display().to_string();
                harmless(&format!("{number}{wait}: `wardkeep diff {}`", quoted(&path)))
            }
            many => format!("{number}{wait} in {} workspaces: `wardkeep diff`", many.len()),
        }
    }

    /// All of a request.
    pub(super) fn show(&self, request: &str, now: Timestamp) -> Result<Shown, String> {
        let approvals =
            Approvals::open(&self.state, self.owner).map_err(|error| error.to_string())?;
        let reader = StoreReader::open(&self.state).map_err(|error| error.to_string())?;
        let (_, line) = find_record(&reader, request).map_err(|error| error.message)?;
        let parent =
            |id: RecordId| find_record(&reader, &id.to_string()).ok().map(|(_, line)| line);
        approvals.show(&line, now, &parent).map_err(|error| error.to_string())
    }
}

fn row(line: &JournalLine<'_>) -> Row {
    let record = &line.record;
    let notice = Notice::of(line);
    let grave = match notice.as_ref().map(|notice| notice.severity) {
        Some(Severity::High | Severity::Critical) => Grave::Much,
        Some(Severity::Medium) => Grave::Some,
        _ => Grave::No,
    };
    let time = record.timestamp().unwrap_or_default();
    Row {
        index: line.entry.index,
        id: record.id.to_string(),
        time: harmless(time.get(11..19).unwrap_or(time)),
        kind: harmless(&record.kind.to_string()),
        session: harmless(record.meta_str("session").unwrap_or_default()),
        text: told(line),
        grave,
    }
}
