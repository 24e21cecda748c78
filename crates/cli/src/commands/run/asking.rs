//! `--ask`: the owner is asked about hosts, protected names and files that are not shown while the program waits.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wardkeep_gateway::egress::Reply;
use wardkeep_monitor::monitor::{EgressBody, WhoBody};
use wardkeep_sandbox::{Answer, Answers, DenialKind, Question};

use super::super::egress::{ask, hex};
use super::super::md::policy_store;
use super::record::Record;
use crate::context::Context;
use crate::error::CliError;
use crate::ui::harmless;

/// Where the owner answers.
pub(super) enum Desk {
    /// On the terminal of this process.
    Terminal(Arc<ask::Terminal>),
    /// Where approvals are answered: the program has the terminal.
    Elsewhere(ask::Elsewhere),
}

/// Whether the program has the terminal: it could paint over a question there.
pub(super) fn has_terminal() -> bool {
    std::io::stdin().is_terminal()
        || std::io::stdout().is_terminal()
        || std::io::stderr().is_terminal()
}

/// Who the run is to the monitor.
pub(super) fn who(context: &Context, workspace: &Path) -> Result<WhoBody, CliError> {
    Ok(WhoBody {
        agent: "run".to_owned(),
        session: format!("run:{}", hex(&context.random::<8>()?)),
        workspace: workspace.to_owned(),
        principal: None,
        taint: Vec::new(),
        parents: Vec::new(),
    })
}

impl Desk {
    pub(super) fn open(context: &Context, state: &Path, who: &WhoBody) -> Result<Self, CliError> {
        if !has_terminal() {
            return Ok(Self::Terminal(ask::Terminal::open()?));
        }
        if let Err(error) = policy_store(context)?.key() {
            let message = format!("nobody can answer without the device key ({error})");
            return Err(CliError::refused(
                message,
                "make it with `wardkeep init`, or leave --ask out",
            ));
        }
        let owner = context.monitor_config()?.owner;
        let (state, who) = (state.to_owned(), who.clone());
        Ok(Self::Elsewhere(ask::Elsewhere { state, owner, clock: context.clock(), who }))
    }

    fn ask(&self, question: &Question) -> Reply {
        let denial = &question.denial;
        if denial.kind == DenialKind::Unshown {
            return self.ask_to_read(question);
        }
        let folder = denial.call.starts_with("mkdir");
        let gone = || question.is_withdrawn();
        match self {
            Self::Terminal(terminal) => {
                // In quotes, so that a name cannot go on as a sentence of ours.
                let path = harmless(&format!("{:?}", denial.path));
                let rule = harmless(&denial.rule);
                let text = match folder {
                    true => format!(
                        "the program wants to make the folder {path}; {rule}. For this session also what is in it."
                    ),
                    false => format!("the program wants to make {path}; {rule}."),
                };
                let always = "name it in `release` of a profile (`wardkeep config edit`)";
                terminal.ask(&ask::Question { text, about: path, always }, &gone)
            }
            Self::Elsewhere(desk) => {
                let body = EgressBody::Name {
                    who: desk.who.clone(),
                    path: denial.path.clone(),
                    folder,
                    why: format!("{} by {:?}; {}", denial.call, denial.program, denial.rule),
                };
                desk.ask(&body, &gone)
            }
        }
    }

    fn ask_to_read(&self, question: &Question) -> Reply {
        let denial = &question.denial;
        let gone = || question.is_withdrawn();
        match self {
            Self::Terminal(terminal) => {
                let path = harmless(&format!("{:?}", denial.path));
                let program = harmless(&format!("{:?}", denial.program));
                let text = format!("{program} wants to read {path}; {}.", harmless(&denial.rule));
                let always = "name it in `read` of a profile (`wardkeep config edit`)";
                terminal.ask(&ask::Question { text, about: path, always }, &gone)
            }
            Self::Elsewhere(desk) => {
                let body = EgressBody::Read {
                    who: desk.who.clone(),
                    path: denial.path.clone(),
                    why: format!("open by {:?}; {}", denial.program, denial.rule),
                };
                desk.ask(&body, &gone)
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Terminal(_) => "terminal",
            Self::Elsewhere(_) => "approvals",
        }
    }
}

/// Questions about names and files, while a program runs.
pub(super) struct Asking {
    desk: Arc<Desk>,
    record: Arc<Record>,
    answers: Arc<Answers>,
    /// Those that nothing is written down about yet.
    open: Mutex<Vec<Question>>,
}

impl Asking {
    pub(super) fn new(desk: Arc<Desk>, record: Arc<Record>, answers: Arc<Answers>) -> Arc<Self> {
        Arc::new(Self { desk, record, answers, open: Mutex::default() })
    }

    /// Asks in a thread of its own; what is answered is written down before the program hears it. Whatever goes
    /// wrong is a no.
    pub(super) fn about(self: &Arc<Self>, question: Question) {
        self.open().push(question.clone());
        let (asking, asked) = (Arc::clone(self), question.clone());
        let work = move || {
            let reply = asking.desk.ask(&asked);
            let gone = matches!(reply, Reply::No | Reply::Unanswered) && asked.is_withdrawn();
            let answer = match asking.write(&asked, if gone { "gone" } else { word(reply) }) {
                false => Answer::No,
                true => match reply {
                    Reply::Once => Answer::Once,
                    Reply::Session | Reply::Always => Answer::Session,
                    Reply::No | Reply::Unanswered => Answer::No,
                },
            };
            asking.answers.give(&asked, answer);
        };
        if std::thread::Builder::new().spawn(work).is_err() {
            self.write(&question, "no");
            self.answers.give(&question, Answer::No);
        }
    }

    /// The program has ended: what nobody answered is written down as that.
    pub(super) fn end(&self) {
        let left = self.open().clone();
        for question in left {
            self.write(&question, "unanswered");
        }
    }

    /// Writes an answer down, unless another one was; whether that is done.
    fn write(&self, question: &Question, said: &str) -> bool {
        // Held until it is written: the process ends after `end`.
        let mut open = self.open();
        let Some(at) = open.iter().position(|one| one.is(question)) else { return false };
        open.swap_remove(at);
        self.record.answered(&question.denial, said, self.desk.name()).is_ok()
    }

    fn open(&self) -> MutexGuard<'_, Vec<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn word(reply: Reply) -> &'static str {
    match reply {
        Reply::Once => "once",
        Reply::Session => "session",
        Reply::Always => "always",
        Reply::No | Reply::Unanswered => "no",
    }
}
