//! Asking the monitor: the daemon, or in this process.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wardkeep_agents::Agent;
use wardkeep_agents::install::{Finding, INSTALLABLE, defers, examine, installed};
use wardkeep_monitor::daemon::{Starter, ensure_running};
use wardkeep_monitor::monitor::{
    EVENT, EventAnswer, EventBody, Hook, Monitor, MonitorConfig, MonitorError, Part, Surroundings,
    WhoBody,
};
use wardkeep_monitor::wire::{Client, Code, Door, WireError};

use crate::context::Context;
use crate::error::CliError;

/// How long the daemon may take for an answer.
const ANSWER: Duration = Duration::from_secs(2);
/// How long a daemon may take to come up.
const START: Duration = Duration::from_millis(1500);
/// How long another process that holds the state is asked again.
const AGAIN: Duration = Duration::from_millis(1500);
/// How long a daemon that has too many to answer is asked again: it sends away who says nothing after a second.
const CROWD: Duration = Duration::from_secs(2);
/// After how long it is.
const PAUSE: Duration = Duration::from_millis(5);

/// What is wrong with one agent that is told of.
const FINDINGS: usize = 4;

/// What is needed to ask.
pub(super) struct Asking {
    state: PathBuf,
    config: MonitorConfig,
    /// How a daemon is started; none, where it must not be.
    starter: Option<Starter>,
    /// Whether this process may decide where there is no daemon.
    alone: bool,
    /// This program, to see whether agents still ask it; not inside of a confinement.
    program: Option<PathBuf>,
    /// Whether the agent says that nobody sits before it.
    unattended: bool,
    /// The home that the environment names, where that is another than the one that counts.
    other_home: Option<PathBuf>,
    /// To be called before anything that has no deadline of its own.
    watch: Box<dyn Fn() -> std::io::Result<()>>,
}

impl Asking {
    pub(super) fn new(
        context: &Context,
        no_daemon: bool,
        watch: Box<dyn Fn() -> std::io::Result<()>>,
    ) -> Result<Self, CliError> {
        let state = context.state_dir_of_hooks()?;
        let confined = context.is_confined();
        let own = rustix::process::geteuid().as_raw();
        // The state of somebody else is that somebody's to decide on.
        let owned = state.metadata().is_ok_and(|data| data.uid() != own);
        let program = context.program()?;
        let starter = if no_daemon || confined || owned {
            None
        } else {
            let mut starter = Starter::new(program.clone());
            starter.variables = context.daemon_variables();
            Some(starter)
        };
        let alone = !confined && !owned;
        let unattended = context
            .variables()
            .any(|(name, value)| name == "CLAUDE_CODE_SESSION_ATTENDED" && value == "0");
        let program = (!confined).then_some(program);
        let config = context.monitor_config()?;
        let other_home = context
            .home()
            .filter(|home| !context.names_state_dir() && Some(home) != config.home.as_ref());
        Ok(Self { state, config, starter, alone, program, unattended, other_home, watch })
    }

    /// Added to why there is no answer: where the state was looked for, if `$HOME` says something else.
    fn place(&self) -> String {
        match &self.other_home {
            None => String::new(),
            Some(home) => format!(
                "; the state is looked for in `{}`, by the system's list of users and not by $HOME (`{}`): \
                 name another place with --state-dir",
                self.state.display(),
                home.display()
            ),
        }
    }

    /// At the beginning of a session: what is wrong with the hooks of the agents that wardkeep was
    /// installed into, told with the question.
    pub(super) fn with_findings(&self, mut question: EventBody) -> Result<EventBody, String> {
        let starts = matches!(question.parts[..], [Part { what: Hook::SessionStart { .. }, .. }]);
        let Some(program) = self.program.as_ref().filter(|_| starts) else { return Ok(question) };
        self.be_watched()?;
        for agent in INSTALLABLE {
            let Some(around) = installed(agent, &self.state, program) else { continue };
            for Finding { what, mend } in examine(agent, &around).into_iter().take(FINDINGS) {
                let agent = agent.name().to_owned();
                let what = Hook::Unprotected { agent, what, mend };
                question.parts.push(Part { principal: None, what });
            }
        }
        Ok(question)
    }

    fn be_watched(&self) -> Result<(), String> {
        (self.watch)().map_err(|error| format!("no thread could be started ({error})"))
    }

    /// Whether a call that waits for the owner is left open: nobody sits before the session, and the
    /// owner wants it so.
    pub(super) fn defers(&self, agent: Agent) -> bool {
        self.unattended && defers(agent, &self.state)
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.config.home.as_deref()
    }

    /// The answer to a question, or why there is none, which is a denial; the record of it is durable
    /// when this returns.
    pub(super) fn ask(&self, question: &EventBody) -> Result<EventAnswer, String> {
        // Each step of this has a deadline: a daemon that runs answers without anything else.
        let mut client = Client::connect_to(&self.state, Door::Hooks, ANSWER);
        if matches!(&client, Err(error) if error.is_absent()) {
            self.be_watched()?;
            client = self.start().unwrap_or(client);
        }
        let begun = Instant::now();
        loop {
            match client {
                Ok(mut client) => {
                    match client.call(EVENT, question).and_then(|answer| answer.read()) {
                        // Nothing was decided yet; others are through in a moment.
                        Err(WireError::Refused(refusal))
                            if refusal.code == Code::Busy && begun.elapsed() < CROWD =>
                        {
                            std::thread::sleep(PAUSE);
                        }
                        answer => return answer.map_err(|error| error.to_string()),
                    }
                }
                Err(error) if error.is_absent() && self.alone => match self.decide(question) {
                    // A daemon that came up late holds the state, and will answer.
                    Err(MonitorError::Busy(_)) if begun.elapsed() < AGAIN => {}
                    Err(error) => return Err(format!("{error}{}", self.place())),
                    Ok(answer) => return answer,
                },
                Err(error) => return Err(format!("{error}{}", self.place())),
            }
            client = Client::connect_to(&self.state, Door::Hooks, ANSWER);
        }
    }

    /// A daemon that is started, if one may be.
    fn start(&self) -> Option<Result<Client, WireError>> {
        // Whatever keeps it from starting: it is decided here then.
        let _ = ensure_running(&self.state, self.starter.as_ref()?, START);
        Some(Client::connect_to(&self.state, Door::Hooks, ANSWER))
    }

    /// The same code under the same lock.
    fn decide(&self, question: &EventBody) -> Result<Result<EventAnswer, String>, MonitorError> {
        let monitor = Monitor::open(&self.state, self.config.clone())?;
        let answer = monitor.event_of(&question.clone().of_agent(), Surroundings::Own);
        Ok(answer.map_err(|error| error.to_string()))
    }

    /// Has it written down that an event was denied unread, if that can be done.
    pub(super) fn tell(&self, agent: Agent, event: &str, why: &str) {
        let who = WhoBody {
            agent: agent.name().to_owned(),
            session: format!("{agent}:unread"),
            workspace: PathBuf::from("/"),
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        };
        let event: String = event.chars().take(100).filter(|sign| !sign.is_control()).collect();
        let what = Hook::Unread { event, reason: why.to_owned() };
        let _ = self.ask(&EventBody { who, parts: vec![Part { principal: None, what }] });
    }
}
