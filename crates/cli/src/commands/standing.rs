//! How this machine is protected, as far as it can be looked at now: the facts that a grade is made of.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wardkeep_agents::Agent;
use wardkeep_agents::install::presence::present;
use wardkeep_agents::install::{self, INSTALLABLE, Surroundings, examine};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, Record, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_identity::state::Status;
use wardkeep_monitor::anchor::Surroundings as AnchorSurroundings;
use wardkeep_monitor::anchor::outbox::Outbox;
use wardkeep_monitor::grade::{
    AgentFacts, Anchors, Asks, Confined, Evidence, Facts as Observed, Files, Keeping, Policy,
    Skills, WorkspaceFacts,
};
use wardkeep_monitor::identity::{Setup, find};
use wardkeep_monitor::index::{Facts, Filter, Index, Said};
use wardkeep_monitor::journal::parse_line;
use wardkeep_monitor::skills::options::options;
use wardkeep_monitor::skills::{Pin, Pins, hash_of};
use wardkeep_monitor::store::StoreReader;
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::verify::State;
use wardkeep_policy::workspace::Workspace;

use super::install::surroundings;
use crate::context::Context;
use crate::error::CliError;

/// Where to look. A value of its own, so that it can be asked on any thread.
#[derive(Debug, Clone)]
pub(crate) struct Observer {
    around: Surroundings,
    owner: u32,
    /// Where programs are looked for.
    folders: Vec<PathBuf>,
}

impl Observer {
    pub(crate) fn new(context: &Context) -> Result<Self, CliError> {
        Ok(Self {
            around: surroundings(context, false, None)?,
            owner: rustix::process::geteuid().as_raw(),
            folders: context.program_folders(),
        })
    }

    /// Everything but the evidence, which takes long: who has verified it says so. `agents` are those that
    /// are known to be here beside the ones that wardkeep was installed into or has seen.
    pub(crate) fn facts(&self, now: Timestamp, evidence: Evidence, agents: &[Agent]) -> Observed {
        let index = StoreReader::open(&self.around.state)
            .ok()
            .and_then(|reader| Some((Index::open_existing(&self.around.state)?, reader)));
        let look = index.as_ref().map(|(index, reader)| (index, reader));
        let named = |agent: &Agent| agents.contains(agent);
        let agent = |agent: &Agent| self.agent(*agent, look, named(agent));
        Observed {
            agents: Agent::ALL.iter().filter_map(agent).collect(),
            workspaces: self.workspaces().iter().map(|path| self.workspace(path)).collect(),
            evidence,
            anchors: self.anchors(),
            skills: self.skills(now),
        }
    }

    /// The workspaces that are known and still there.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        let mut all = self.policies().workspaces();
        all.sort_unstable();
        all.dedup();
        all.retain(|path| path.is_dir());
        all
    }

    fn policies(&self) -> PolicyStore {
        PolicyStore::new(&self.around.state, self.owner)
    }

    /// An agent that was installed into, was seen, or is named.
    fn agent(
        &self,
        agent: Agent,
        look: Option<(&Index, &StoreReader)>,
        named: bool,
    ) -> Option<AgentFacts> {
        let installed = self.around.state.join("installed").join(agent.name()).is_dir();
        let session = look.and_then(|(index, reader)| last_session(agent, index, reader));
        if !installed && !named && session.is_none() {
            return None;
        }
        let asks = if !installed && INSTALLABLE.contains(&agent) {
            Asks::No
        } else if !installed {
            Asks::Unseen
        } else {
            let found = install::installed(agent, &self.around.state, &self.around.program);
            match examine(agent, found.as_ref().unwrap_or(&self.around)).into_iter().next() {
                None => Asks::Yes,
                // One that was seen has asked before.
                Some(finding)
                    if session.is_none() && finding.waits_for_trust(agent, &self.around.state) =>
                {
                    Asks::Untrusted { program: self.has_program(agent) }
                }
                Some(finding) => Asks::SwitchedOff(finding.what),
            }
        };
        let confined = session.unwrap_or_default();
        let (name, program) = (agent.name().to_owned(), program(agent).to_owned());
        Some(AgentFacts { name, program, asks, confined })
    }

    fn has_program(&self, agent: Agent) -> bool {
        let found = present(&self.around.home, &self.folders);
        found.iter().any(|one| one.agent == agent && one.program.is_some())
    }

    fn workspace(&self, path: &Path) -> WorkspaceFacts {
        let (mut keeping, mut files) = (Keeping::None, Files::Unseen);
        // What root holds cannot be looked at from here.
        if let Ok(Some(place)) = find(&self.around.state, self.owner, path, SystemTime::now()) {
            keeping = match place.setup() {
                Setup::User => Keeping::User,
                Setup::Owned { .. } => Keeping::Owned,
            };
            if let Ok(state) = place.workspace().look(&|_| {}) {
                let wrong = state.count(Status::Drifted) + state.count(Status::Missing);
                files = match (state.is_clean() && place.usable().is_ok(), wrong) {
                    (true, _) => Files::Approved,
                    (false, wrong) => Files::Drifted(wrong.max(1)),
                };
            }
        }
        let policy = Workspace::open(path).ok().map_or(Policy::Unseen, |workspace| {
            let state = self.policies().inspect(&workspace).state;
            match state {
                State::Valid => Policy::Valid,
                State::Unsigned => Policy::Unsigned,
                State::Missing => Policy::None,
                State::TamperDetected | State::ManifestCorrupted | State::SuspiciousContent => {
                    Policy::Broken(state.name().to_owned())
                }
            }
        });
        WorkspaceFacts { path: path.display().to_string(), keeping, files, policy }
    }

    fn anchors(&self) -> Anchors {
        let around = AnchorSurroundings::new(String::new().into());
        let Ok(outbox) = Outbox::open(&self.around.state, around) else {
            return Anchors::Unreached;
        };
        let all = outbox.list();
        if all.iter().any(|one| one.state.alarm.is_some()) {
            Anchors::Alarm
        } else if all.iter().any(|one| one.state.last_success.is_some()) {
            Anchors::Reached
        } else if all.is_empty() {
            Anchors::None
        } else {
            Anchors::Unreached
        }
    }

    fn skills(&self, now: Timestamp) -> Skills {
        let policies = self.policies();
        let pins = Pins::load(&policies);
        if pins.void.is_some() {
            return Skills::Changed(0);
        }
        let options = options(&policies, now).options;
        let as_pinned =
            |pin: &Pin, path: &str| hash_of(Path::new(path), &options) == Some(pin.tree);
        let changed = |pin: &&Pin| pin.places.iter().any(|path| !as_pinned(pin, path));
        match pins.pins.iter().filter(changed).count() {
            0 => Skills::Sound,
            many => Skills::Changed(many),
        }
    }
}

/// Sessions that are looked at for one that was no trial.
const SESSIONS: u32 = 64;

/// What confined the newest session of an agent; `None` where there was none.
fn last_session(agent: Agent, index: &Index, reader: &StoreReader) -> Option<Confined> {
    let filter = Filter {
        agent: Some(agent.name().to_owned()),
        kind: Some(RecordType::SessionStart),
        ..Filter::default()
    };
    for place in index.newest(&filter, SESSIONS).ok()? {
        let text = reader.folder().read_line(place).ok()?;
        let line = parse_line(&text)?;
        // An index is a hint: what it led to must be what was asked for.
        if !filter.matches(&line) {
            return None;
        }
        // A trial of the owner's says nothing of how the agent runs.
        if Facts::of(&line.record).shape.said != Some(Said::Trial) {
            return Some(confined(&line.record));
        }
    }
    None
}

fn confined(record: &Record<'_>) -> Confined {
    let Payload::Inline(Value::Object(content)) = &record.payload else {
        return Confined::Unseen;
    };
    let Some(Value::Object(audit)) = content.get("audit") else { return Confined::Unseen };
    match audit.get("compliance").and_then(Value::as_str) {
        Some("full") => Confined::Fully,
        Some("partial") => Confined::Partly,
        Some("none") => Confined::No,
        _ => Confined::Unseen,
    }
}

/// What one types to start an agent.
fn program(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => "claude",
        Agent::GeminiCli => "gemini",
        other => other.name(),
    }
}
