//! What the page shows, and who looks it up.

use wardkeep_identity::show;
use wardkeep_monitor::approvals::Shown;
use wardkeep_monitor::index::{Category, Severity};
use wardkeep_monitor::notices::Notice;

/// Why something is not shown or not done, in words for the owner.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub next: String,
    /// Whether there is no such thing.
    pub missing: bool,
}

impl Trouble {
    /// That something is wrong.
    pub fn new(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { message: message.into(), next: next.into(), missing: false }
    }

    /// That something is not there.
    pub fn missing(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { missing: true, ..Self::new(message, next) }
    }
}

/// What an office gives.
pub type Outcome<T> = Result<T, Trouble>;

/// Looks things up, and does what the owner says. Its functions may block.
pub trait Office: Send + Sync + 'static {
    /// How things stand.
    ///
    /// # Errors
    /// When it cannot be told.
    fn posture(&self) -> Outcome<Posture>;
    /// Records, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    fn events(&self, asked: &EventsAsked) -> Outcome<Events>;
    /// How many records there are.
    ///
    /// # Errors
    /// When they cannot be counted.
    fn records(&self) -> Outcome<u64>;
    /// One record in full, by its id or the beginning of it.
    ///
    /// # Errors
    /// When there is none, or more than one.
    fn record(&self, id: &str) -> Outcome<RecordView>;
    /// What agents ask for, and what was approved.
    ///
    /// # Errors
    /// When it cannot be read.
    fn requests(&self) -> Outcome<Requests>;
    /// One request in full.
    ///
    /// # Errors
    /// When there is none.
    fn request(&self, id: &str) -> Outcome<Shown>;
    /// Answers a request that asks for exactly `action`; says what was done.
    ///
    /// # Errors
    /// When it cannot be answered any more, or asks for something else.
    fn answer(&self, id: &str, action: &str, answer: Answer) -> Outcome<String>;
    /// What is staged, workspace by workspace.
    ///
    /// # Errors
    /// When it cannot be read.
    fn staged(&self) -> Outcome<Vec<Staged>>;
    /// Installs what is staged, if it still has that hash; says what was done.
    ///
    /// # Errors
    /// When something else is staged by now, or it is refused.
    fn apply(&self, workspace: &str, hash: &str) -> Outcome<String>;
    /// The policies, workspace by workspace.
    ///
    /// # Errors
    /// When they cannot be read.
    fn policies(&self) -> Outcome<Vec<Policy>>;
    /// Writes and signs a policy in place of one that still has the text `before`; says what was done.
    ///
    /// # Errors
    /// When it was changed meanwhile, or is refused.
    fn sign(&self, workspace: &str, before: &str, text: &str) -> Outcome<String>;
    /// The whole report, as a page of its own.
    ///
    /// # Errors
    /// When it cannot be made.
    fn report(&self) -> Outcome<String>;
}

/// How things stand.
#[derive(Debug, Clone, Default)]
pub struct Posture {
    /// The state directory.
    pub state: String,
    /// A mark and why, where one was given: `A`, and what would raise it.
    pub grade: Option<(String, Vec<String>)>,
    /// What was judged and blocked.
    pub counts: Counts,
    /// Whether the evidence holds.
    pub evidence: Evidence,
    /// What nobody has acknowledged, the newest first.
    pub alerts: Vec<Notice>,
    /// How many more there are.
    pub more_alerts: u64,
    /// Requests that wait.
    pub waiting: usize,
    /// Workspaces with something staged.
    pub staged: usize,
}

/// What was judged and blocked.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Records in the journal.
    pub records: u64,
    /// Actions that were judged.
    pub judged: u64,
    /// Of them, denied.
    pub blocked: u64,
    /// Held for the owner.
    pub held: u64,
    /// Alerts: critical, high, medium.
    pub alerts: [u64; 3],
}

/// What is known of the evidence.
#[derive(Debug, Clone, Default)]
pub enum Evidence {
    /// It was not verified yet.
    #[default]
    Unknown,
    /// It held, at this time, up to so many records.
    Holds {
        /// When it was looked at.
        at: String,
        /// How many records were covered.
        records: u64,
        /// What is not as it should be.
        warnings: Vec<String>,
    },
    /// It does not hold.
    Broken {
        /// When it was looked at.
        at: String,
        /// What failed.
        findings: Vec<String>,
    },
}

/// Which records are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsAsked {
    /// Of this session.
    pub session: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of this type.
    pub kind: Option<String>,
    /// Only notifications at least so grave.
    pub severity: Option<Severity>,
    /// Only notifications of this category.
    pub category: Option<Category>,
    /// Before this position in the log.
    pub below: Option<u64>,
    /// From this position on.
    pub from: Option<u64>,
    /// How many at most.
    pub limit: u32,
}

/// Records, the newest first.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// Them.
    pub events: Vec<Event>,
    /// Whether there are older ones.
    pub more: bool,
}

/// A record in a line.
#[derive(Debug, Clone)]
pub struct Event {
    /// Position in the log.
    pub index: u64,
    /// Its id.
    pub id: String,
    /// When.
    pub time: String,
    /// Its type.
    pub kind: String,
    /// On whose behalf.
    pub principal: String,
    /// By which agent.
    pub agent: String,
    /// In which session.
    pub session: String,
    /// How grave, where someone should hear of it.
    pub severity: Option<Severity>,
    /// Whether something was kept from happening.
    pub blocked: bool,
    /// What happened.
    pub text: String,
}

/// A record in full.
#[derive(Debug, Clone)]
pub struct RecordView {
    /// It in a line.
    pub event: Event,
    /// All of it, as JSON.
    pub json: String,
    /// What it came from, as a picture in SVG that holds no hostile markup.
    pub past: Option<String>,
    /// What came from it.
    pub future: Option<String>,
}

/// What agents ask for, and what was approved.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    /// What waits, the newest first.
    pub waiting: Vec<Waiting>,
    /// What is in force.
    pub given: Vec<Given>,
}

/// A request that waits.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Its id.
    pub id: String,
    /// Seconds until it ends as a denial.
    pub seconds: i64,
    /// Which session asks.
    pub session: String,
    /// What for.
    pub what: String,
    /// Why it has to ask.
    pub reason: String,
}

/// An approval in force.
#[derive(Debug, Clone)]
pub struct Given {
    /// Its record.
    pub id: String,
    /// What for.
    pub what: String,
    /// How often.
    pub scope: String,
    /// Until when; always, where there is no end.
    pub until: Option<String>,
}

/// How often something is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Once.
    Once,
    /// For the session that asked.
    Session,
}

/// What the owner says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Approve(Scope),
    /// No, or not any more.
    Deny,
}

/// What is staged in a workspace.
#[derive(Debug, Clone)]
pub struct Staged {
    /// The workspace.
    pub workspace: String,
    /// The hash that approves exactly this; none, if it cannot be approved here.
    pub hash: Option<String>,
    /// The changes.
    pub changes: Vec<show::Shown>,
    /// What was found in them, or speaks against them.
    pub concerns: Vec<String>,
    /// What is wrong with the workspace itself.
    pub trouble: Option<String>,
}

/// A policy.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The workspace.
    pub workspace: String,
    /// How it stands, in a word.
    pub state: String,
    /// Whether it counts.
    pub valid: bool,
    /// When it was signed.
    pub signed_at: Option<String>,
    /// Its text, as it lies there.
    pub text: String,
    /// What to do next.
    pub next: Option<String>,
}
