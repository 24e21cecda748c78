//! What the page is told, and what it may have done: by the same program as everything the owner types.

mod evidence;
mod posture;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use wardkeep_evidence::bundle::StagedFile;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::RecordType;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::Trust;
use wardkeep_gateway::page::{
    Answer, Chain, Event, Events, EventsAsked, Evidence, FullCheck, Given, LINKS, ModelApi, Office,
    Outcome, Policy, Posture, RecordView, Requests, Scope, SkillRow, Skills, Staged, Trouble,
    Waiting,
};
use wardkeep_monitor::approvals::{Approvals, REQUEST_SECONDS, Shown};
use wardkeep_monitor::daemon::Stop;
use wardkeep_monitor::identity::find;
use wardkeep_monitor::index::{Asked, Category, Filter, Index, LookError};
use wardkeep_monitor::journal::{Clock, JournalLine, parse_line};
use wardkeep_monitor::notices::Notice;
use wardkeep_monitor::prove::{Query, page, prove};
use wardkeep_monitor::provenance::{Closure, Direction, Graph, Walk, svg};
use wardkeep_monitor::search::{Sought, search};
use wardkeep_monitor::skills::options::options;
use wardkeep_monitor::skills::{Pin, Pins};
use wardkeep_monitor::store::StoreReader;
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::verify::State;
use wardkeep_policy::workspace::Workspace;

use crate::commands::evidence::report::configured_witnesses;
use crate::commands::evidence::resolve::find_record;
use crate::commands::identity::{Meant, StagedLines, held_lines, staged_lines};
use crate::commands::log::told;
use crate::commands::md::next_step_on_page;
use crate::commands::proxy::Look;
use crate::commands::skill::list::state as place_state;
use crate::commands::standing::Observer;
use crate::context::Context;
use crate::error::CliError;

/// Alerts on the first page.
const ALERTS: u32 = 20;
/// How long records are looked for at a time.
const PATIENCE: Duration = Duration::from_millis(150);
/// Between two looks whether the evidence holds.
const PAUSE: Duration = Duration::from_secs(60);
/// Longest policy that is shown.
const MAX_POLICY: u64 = 256 << 10;

/// The approvals, kept open, and whether there was a key when they were opened.
type Kept = Arc<Mutex<Option<(Arc<Approvals>, bool)>>>;

/// The owner's side of the page.
#[derive(Clone)]
pub(super) struct Desk {
    state: PathBuf,
    program: PathBuf,
    owner: u32,
    clock: Clock,
    threads: usize,
    evidence: Arc<Mutex<Evidence>>,
    /// With whether there was a key.
    approvals: Kept,
    full: Arc<Mutex<Option<FullCheck>>>,
    verifying: Arc<Mutex<()>>,
    observer: Observer,
    /// The model API proxy that this process serves, too.
    models: Option<Look>,
}

impl Desk {
    pub(super) fn new(context: &Context, models: Option<Look>) -> Result<Self, CliError> {
        Ok(Self {
            state: context.state_dir()?,
            program: context.program()?,
            owner: rustix::process::geteuid().as_raw(),
            clock: context.clock(),
            threads: context.threads(),
            evidence: Arc::default(),
            approvals: Arc::default(),
            full: Arc::default(),
            verifying: Arc::default(),
            observer: Observer::new(context)?,
            models,
        })
    }

    /// Looks at the evidence on a thread of its own, again and again, until what it gives is dropped.
    pub(super) fn verify_now_and_then(&self) -> Verifying {
        let stop = Arc::new(Stop::new().ok());
        let (own, evidence) = (Arc::clone(&stop), Arc::clone(&self.evidence));
        let desk = self.clone();
        let look = move || {
            // What the first page needs is read before someone asks for it.
            let _ = desk.approvals();
            loop {
                let found = desk.verified();
                *evidence.lock().unwrap_or_else(PoisonError::into_inner) = found;
                let Some(stop) = own.as_ref() else { return };
                if stop.wait(PAUSE) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("verify".to_owned()).spawn(look).ok();
        Verifying { stop, thread }
    }

    fn verified(&self) -> Evidence {
        let now = self.clock.now();
        let report = self.reader().and_then(|reader| {
            let trust = Trust { witnesses: configured_witnesses(&reader), ..Trust::default() };
            let query = Query { asked: Asked::default(), limit: 0, full: false };
            prove(&reader, &trust, &query, now, self.threads, &mut |_| {}).map_err(trouble)
        });
        let at = now.to_string();
        match report {
            Ok(report) if report.health.chain_valid => Evidence::Holds {
                at,
                records: report.health.records,
                warnings: report.health.warnings,
            },
            Ok(report) => {
                let findings = report.health.findings.iter().map(ToString::to_string).collect();
                Evidence::Broken { at, findings }
            }
            Err(why) => Evidence::Broken { at, findings: vec![why.message] },
        }
    }

    fn reader(&self) -> Outcome<StoreReader> {
        StoreReader::open(&self.state).map_err(trouble)
    }

    /// Asks the index, once more with a new one if it is wrong.
    fn looked<T>(
        &self,
        mut look: impl FnMut(&StoreReader, &Index) -> Result<T, LookError>,
    ) -> Outcome<T> {
        let reader = self.reader()?;
        let mut anew = false;
        loop {
            let index =
                Index::ready(reader.path(), reader.folder(), anew, &mut |_| {}).map_err(trouble)?;
            match look(&reader, &index) {
                Err(LookError::Wrong(_) | LookError::Unknown(_)) if !anew => anew = true,
                found => return found.map_err(trouble),
            }
        }
    }

    /// The approvals, kept open: what they read of the journal is not read again.
    fn approvals(&self) -> Outcome<Arc<Approvals>> {
        let has_key = PolicyStore::new(&self.state, self.owner).key().is_ok();
        let mut open = self.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a key nothing is approved; one that is made later counts.
        if let Some((approvals, _)) = open.as_ref().filter(|(_, had_key)| *had_key == has_key) {
            return Ok(Arc::clone(approvals));
        }
        let approvals = Arc::new(Approvals::open(&self.state, self.owner).map_err(trouble)?);
        *open = Some((Arc::clone(&approvals), has_key));
        Ok(approvals)
    }

    /// Records, the newest first, as many as are found in good time.
    fn search(&self, sought: &Sought, limit: usize) -> Outcome<Events> {
        let until = Instant::now() + PATIENCE;
        // One more tells whether there are older ones.
        let found = self.looked(|reader, index| {
            search(reader, index, sought, limit + 1, &mut || Instant::now() > until)
        })?;
        let lines = found.lines.iter().filter_map(|line| parse_line(line));
        let mut events: Vec<Event> = lines.map(|line| event(&line)).collect();
        let more = events.len() > limit;
        events.truncate(limit);
        Ok(Events { events, more, stopped_at: found.stopped_at })
    }

    /// A workspace that is known: nothing else is touched, whatever a form says.
    fn known(&self, workspace: &str) -> Outcome<PathBuf> {
        let known = self
            .observer
            .workspaces()
            .into_iter()
            .find(|path| path.display().to_string() == workspace);
        known.ok_or_else(|| {
            Trouble::missing("this workspace is not known", "look at the page again")
        })
    }

    /// Runs this program as the owner would, and says what it answered.
    fn run(&self, arguments: &[&str], workspace: Option<&Path>) -> Outcome<String> {
        let mut command = Command::new(&self.program);
        command.arg("--state-dir").arg(&self.state).args(arguments).stdin(Stdio::null());
        command.args(workspace);
        let output = command.output().map_err(|error| {
            Trouble::new(format!("it could not be done ({error})"), "try again")
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let said = text(&output.stderr);
        let (message, next) = said.split_once("\nhint: ").unwrap_or((&said, "look at it again"));
        Err(Trouble::new(message.trim_start_matches("error: "), next))
    }
}

/// The thread that verifies; it ends with this.
pub(super) struct Verifying {
    stop: Arc<Option<Stop>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Verifying {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.as_ref() {
            stop.set();
        }
        // A look at a long journal is not waited for: the process ends.
        drop(self.thread.take());
    }
}

fn trouble(error: impl std::fmt::Display) -> Trouble {
    Trouble::new(error.to_string(), "see `wardkeep evidence verify`")
}

fn event(line: &JournalLine<'_>) -> Event {
    let record = &line.record;
    let notice = Notice::of(line);
    let text = |key: &str| record.meta_str(key).unwrap_or_default().to_owned();
    Event {
        index: line.entry.index,
        id: record.id.to_string(),
        time: record.timestamp().unwrap_or_default().to_owned(),
        kind: record.kind.to_string(),
        principal: record.principal.to_string(),
        agent: text("agent"),
        session: text("session"),
        severity: notice.as_ref().map(|notice| notice.severity),
        blocked: notice.as_ref().is_some_and(|notice| notice.blocked),
        text: told(line),
    }
}

/// What a skill may be granted, in words.
fn grants(pin: &Pin) -> Vec<String> {
    let mut all = Vec::new();
    if pin.runs_commands {
        all.push("runs commands".to_owned());
    }
    all.extend(pin.hosts.iter().map(|host| format!("reaches {host}")));
    all.extend(pin.variables.iter().map(|name| format!("reads the variable {name}")));
    all
}

impl Office for Desk {
    fn posture(&self) -> Outcome<Posture> {
        posture::posture(self)
    }

    fn events(&self, asked: &EventsAsked) -> Outcome<Events> {
        let kind = asked.kind.as_deref().map(str::parse::<RecordType>).transpose();
        let kind = kind.map_err(|_| Trouble::new("this type is not known", "choose another"))?;
        let filter = Filter {
            session: asked.session.clone(),
            agent: asked.agent.clone(),
            kind,
            verdict: asked.verdict,
            category: asked.category,
            severity: asked.severity,
            below: asked.below,
            from: asked.from,
            ..Filter::default()
        };
        self.search(&Sought { filter, text: asked.text.clone() }, asked.limit as usize)
    }

    fn records(&self) -> Outcome<u64> {
        self.looked(|_, index| Ok(index.records()?))
    }

    fn record(&self, id: &str) -> Outcome<RecordView> {
        let reader = self.reader()?;
        let missing = |error: CliError| Trouble::missing(error.message, error.hint);
        let (id, text) = find_record(&reader, id).map_err(missing)?;
        let line = parse_line(&text).ok_or_else(|| trouble("the record cannot be read"))?;
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let json = serde_json::to_string_pretty(&json).unwrap_or_default();
        let picture = |direction, title: &str| {
            self.looked(|reader, index| {
                let closure = Closure::of(reader, index, id, Walk { direction, direct: false })?;
                if closure.is_empty() {
                    return Ok(None);
                }
                Ok(Some(svg(&Graph::of(reader, index, &closure)?, title, Some(&LINKS))))
            })
        };
        let title = |what: &str| format!("Record {id:.10} and its {what}");
        Ok(RecordView {
            event: event(&line),
            json,
            past: picture(Direction::Backward, &title("past"))?,
            future: picture(Direction::Forward, &title("future"))?,
        })
    }

    fn requests(&self) -> Outcome<Requests> {
        let now = self.clock.now();
        let approvals = self.approvals()?;
        let waiting = approvals.pending(now).map_err(trouble)?;
        let waiting = waiting
            .into_iter()
            .map(|asked| Waiting {
                id: asked.id.to_string(),
                seconds: asked.at.unix() + REQUEST_SECONDS - now.unix(),
                session: asked.session,
                what: format!("{} {} {}", asked.surface, asked.act, asked.subject),
                reason: asked.reason,
            })
            .collect();
        let until = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let (given, standing) = approvals.in_force(now).map_err(trouble)?;
        let given = given.iter().map(|grant| Given {
            id: grant.record.to_string(),
            what: format!("request {:.10}", grant.request),
            scope: grant.scope.as_str().to_owned(),
            until: until(grant.expires),
        });
        let standing = standing.iter().map(|one| Given {
            id: one.grant.record.to_string(),
            what: one.about.clone(),
            scope: one.grant.scope.as_str().to_owned(),
            until: until(one.grant.expires),
        });
        Ok(Requests { waiting, given: given.chain(standing).collect() })
    }

    fn request(&self, id: &str) -> Outcome<Shown> {
        let now = self.clock.now();
        let approvals = self.approvals()?;
        let reader = self.reader()?;
        let missing = |error: CliError| Trouble::missing(error.message, error.hint);
        let (_, line) = find_record(&reader, id).map_err(missing)?;
        let parent =
            |id: RecordId| find_record(&reader, &id.to_string()).ok().map(|(_, line)| line);
        approvals
            .show(&line, now, &parent)
            .map_err(|error| Trouble::missing(error.to_string(), "choose one of the requests"))
    }

    fn answer(&self, id: &str, action: &str, answer: Answer) -> Outcome<String> {
        let shown = self.request(id)?;
        if shown.action != action || shown.request != id {
            return Err(Trouble::new("it asks for something else", "look at it again"));
        }
        let arguments: &[&str] = match answer {
            Answer::Approve(Scope::Once) => &["approvals", "approve", "--yes", id],
            Answer::Approve(Scope::Session) => &["approvals", "approve", "--yes", "--session", id],
            Answer::Deny => &["approvals", "deny", id],
        };
        self.run(arguments, None)?;
        Ok(match answer {
            Answer::Approve(_) => "Approved: the agent may try again.".to_owned(),
            Answer::Deny => "Denied.".to_owned(),
        })
    }

    fn staged(&self) -> Outcome<Vec<Staged>> {
        let mut all = Vec::new();
        for path in self.observer.workspaces() {
            let workspace = path.display().to_string();
            let bare = |trouble| Staged {
                workspace: workspace.clone(),
                hash: None,
                changes: Vec::new(),
                concerns: Vec::new(),
                held: Vec::new(),
                trouble,
            };
            match find(&self.state, self.owner, &path, SystemTime::now()) {
                Ok(None) => {
                    let held = held_lines(&path);
                    if !held.is_empty() {
                        all.push(Staged { held, ..bare(None) });
                    }
                }
                Err(error) => all.push(bare(Some(error.to_string()))),
                Ok(Some(place)) => {
                    let meant = Meant { place, state: self.state.clone() };
                    match staged_lines(&meant) {
                        Ok(StagedLines { changes, concerns, hash }) => {
                            all.push(Staged { changes, concerns, hash, ..bare(None) });
                        }
                        Err(error) => all.push(bare(Some(error.message))),
                    }
                }
            }
        }
        Ok(all)
    }

    fn apply(&self, workspace: &str, hash: &str) -> Outcome<String> {
        let path = self.known(workspace)?;
        self.run(&["apply", "--hash", hash, "--acknowledge", "--"], Some(&path))
    }

    fn drop_staged(&self, workspace: &str, hash: &str) -> Outcome<String> {
        let path = self.known(workspace)?;
        let same = self
            .staged()?
            .iter()
            .any(|one| one.workspace == workspace && one.hash.as_deref() == Some(hash));
        if !same {
            return Err(Trouble::new("something else is staged by now", "look at it again"));
        }
        self.run(&["reset", "--all", "--"], Some(&path))
    }

    fn chain(&self) -> Outcome<Chain> {
        evidence::chain(self)
    }

    fn verify(&self) -> Outcome<FullCheck> {
        evidence::verify(self)
    }

    fn skills(&self) -> Outcome<Skills> {
        let policies = PolicyStore::new(&self.state, self.owner);
        let options = options(&policies, self.clock.now()).options;
        let pins = Pins::load(&policies);
        let row = |pin: &Pin| SkillRow {
            name: pin.name.clone(),
            tree: pin.tree.to_string(),
            verdict: pin.verdict.clone(),
            approved: pin.approved,
            at: pin.at.clone(),
            grants: grants(pin),
            places: pin
                .places
                .iter()
                .map(|path| (path.clone(), place_state(Path::new(path), pin, &options)))
                .collect(),
        };
        let filter = Filter { category: Some(Category::Skill), ..Filter::default() };
        let recent = self.search(&Sought { filter, text: None }, ALERTS as usize)?.events;
        Ok(Skills { pinned: pins.pins.iter().map(row).collect(), void: pins.void, recent })
    }

    fn policies(&self) -> Outcome<Vec<Policy>> {
        let store = PolicyStore::new(&self.state, self.owner);
        let mut all = Vec::new();
        for path in self.observer.workspaces() {
            let Ok(workspace) = Workspace::open(&path) else { continue };
            let found = store.inspect(&workspace);
            let text = found.bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            all.push(Policy {
                workspace: path.display().to_string(),
                state: found.state.name().to_owned(),
                valid: found.state == State::Valid,
                signed_at: found.manifest.as_ref().map(|manifest| manifest.signed_at.clone()),
                text: text.into_owned(),
                next: next_step_on_page(found.state).map(str::to_owned),
            });
        }
        Ok(all)
    }

    fn sign(&self, workspace: &str, before: &str, text: &str) -> Outcome<String> {
        let path = self.known(workspace)?;
        let open = Workspace::open(&path).map_err(|error| trouble(error.error))?;
        let policy = open.policy_path();
        let now = std::fs::symlink_metadata(&policy)
            .ok()
            .filter(|found| found.is_file() && found.len() <= MAX_POLICY);
        let now = now.and_then(|_| std::fs::read_to_string(&policy).ok()).unwrap_or_default();
        if now.replace("\r\n", "\n") != before {
            return Err(Trouble::new("the policy was changed meanwhile", "look at it again"));
        }
        let put = |text: &str| {
            StagedFile::replace(&policy, 0o644, text.as_bytes()).map_err(|error| {
                Trouble::new(error.to_string(), "see that the file can be written")
            })
        };
        put(text)?;
        let signed = self.run(&["md", "sign", "--yes", "--gui", "-w"], Some(&path));
        if signed.is_err() {
            put(&now)?;
        }
        signed
    }

    fn models(&self) -> Outcome<Option<ModelApi>> {
        Ok(self.models.as_ref().map(|look| look.model_api(self.clock.now())))
    }

    fn report(&self) -> Outcome<String> {
        let reader = self.reader()?;
        let trust = Trust { witnesses: configured_witnesses(&reader), ..Trust::default() };
        let query = Query { asked: Asked::default(), limit: 100, full: false };
        let now = self.clock.now();
        let report =
            prove(&reader, &trust, &query, now, self.threads, &mut |_| {}).map_err(trouble)?;
        Ok(page(&report, None, Some(&LINKS)))
    }
}
