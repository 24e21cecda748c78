//! What the page shows, and who looks it up.

use wardkeep_identity::show;
use wardkeep_monitor::approvals::Shown;
use wardkeep_monitor::grade::Grade;
use wardkeep_monitor::index::{Category, Severity, Verdict};
use wardkeep_monitor::notices::Notice;

use crate::llm::Traffic;

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
    /// Drops what is staged, if it still has that hash; says what was done.
    ///
    /// # Errors
    /// When something else is staged by now, or it is refused.
    fn drop_staged(&self, workspace: &str, hash: &str) -> Outcome<String>;
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
    /// The log of evidence, and what is known of it.
    ///
    /// # Errors
    /// When it cannot be read.
    fn chain(&self) -> Outcome<Chain>;
    /// Verifies all of it now.
    ///
    /// # Errors
    /// When it cannot be read, or is being verified already.
    fn verify(&self) -> Outcome<FullCheck>;
    /// The skills that are known.
    ///
    /// # Errors
    /// When they cannot be read.
    fn skills(&self) -> Outcome<Skills>;
    /// The model API proxy that this process serves, too, if it does.
    ///
    /// # Errors
    /// When it cannot be told.
    fn models(&self) -> Outcome<Option<ModelApi>>;
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
    /// The mark, and what would raise it.
    pub grade: Option<Grade>,
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
    /// Only of this category.
    pub category: Option<Category>,
    /// Decided so.
    pub verdict: Option<Verdict>,
    /// That hold this text.
    pub text: Option<String>,
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
    /// Records before this position were not looked at, because it took too long.
    pub stopped_at: Option<u64>,
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
    /// The same in plain lines, where another user holds the workspace: only that one approves.
    pub held: Vec<String>,
    /// What is wrong with the workspace itself.
    pub trouble: Option<String>,
}

impl Staged {
    /// Whether there is nothing to look at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.held.is_empty()
    }
}

/// The log of evidence.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// Records in it, as the index has them.
    pub records: u64,
    /// The newest record: its id, its time, and the hash of its entry.
    pub newest: Option<(String, String, String)>,
    /// The newest seal, whose signature was not looked at: how many records it covers, and for which time.
    pub seal: Option<(u64, String)>,
    /// Places elsewhere that remember how far it had come.
    pub anchors: Vec<AnchorRow>,
    /// The last regular look.
    pub looked: Evidence,
    /// The last time that all of it was verified from here.
    pub full: Option<FullCheck>,
}

/// A place elsewhere.
#[derive(Debug, Clone)]
pub struct AnchorRow {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: String,
    /// How many records it vouches for, and since when.
    pub taken: Option<(u64, String)>,
    /// What it reported that someone must look at.
    pub alarm: Option<String>,
    /// What went wrong last.
    pub failure: Option<String>,
}

/// What verifying everything came to.
#[derive(Debug, Clone)]
pub struct FullCheck {
    /// When.
    pub at: String,
    /// Whether every check passed.
    pub passed: bool,
    /// How far each protection reaches: what, and how far.
    pub reach: Vec<(String, String)>,
    /// What failed.
    pub findings: Vec<String>,
}

/// Skills.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    /// Those that are pinned.
    pub pinned: Vec<SkillRow>,
    /// Why no pin counts, where there would be some.
    pub void: Option<String>,
    /// What was decided of skills lately, the newest first.
    pub recent: Vec<Event>,
}

/// A skill that is pinned.
#[derive(Debug, Clone)]
pub struct SkillRow {
    /// Its name.
    pub name: String,
    /// The hash of all of it.
    pub tree: String,
    /// What was found when it was pinned: `allow`, `ask` or `deny`.
    pub verdict: String,
    /// Whether the owner approved exactly this.
    pub approved: bool,
    /// When it was pinned.
    pub at: String,
    /// What it may be granted, in words.
    pub grants: Vec<String>,
    /// Where it lies, and whether it is as it was: `unchanged`, `changed` or `gone`.
    pub places: Vec<(String, &'static str)>,
}

/// A model API proxy at work.
#[derive(Debug, Clone, Default)]
pub struct ModelApi {
    /// Where it listens, without its token.
    pub url: String,
    /// How it was told to work, in words.
    pub options: Vec<String>,
    /// When it began.
    pub since: String,
    /// The time of now.
    pub now: String,
    /// Where requests go: names and addresses.
    pub upstreams: Vec<(String, String)>,
    /// What went through.
    pub traffic: Traffic,
    /// What went wrong lately, the newest first: when, and what.
    pub errors: Vec<(String, String)>,
    /// What was added and removed lately, the newest first: when, and what.
    pub lines: Vec<(String, String)>,
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
