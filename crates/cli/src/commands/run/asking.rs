//! `--ask`: the owner is asked about hosts and protected names while the program waits.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use wardkeep_gateway::egress::Reply;
use wardkeep_monitor::monitor::{EgressBody, WhoBody};
use wardkeep_sandbox::{Answer, Answers, Question};

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

    fn name(&self) -> &'static str {
        match self {
            Self::Terminal(_) => "terminal",
            Self::Elsewhere(_) => "approvals",
        }
    }
}

/// Asks about a name in a thread of its own; what is answered is written down before the program hears it.
/// Whatever goes wrong is a no.
pub(super) fn about_name(
    desk: Arc<Desk>,
    record: Arc<Record>,
    answers: Arc<Answers>,
    question: Question,
) {
    let kept = (Arc::clone(&answers), question.clone());
    let work = move || {
        let reply = desk.ask(&question);
        let gone = reply == Reply::No && question.is_withdrawn();
        let said = if gone { "gone" } else { word(reply) };
        let written = record.answered(&question.denial, said, desk.name());
        let answer = match reply {
            _ if written.is_err() => Answer::No,
            Reply::Once => Answer::Once,
            Reply::Session | Reply::Always => Answer::Session,
            Reply::No => Answer::No,
        };
        answers.give(&question, answer);
    };
    if std::thread::Builder::new().spawn(work).is_err() {
        kept.0.give(&kept.1, Answer::No);
    }
}

fn word(reply: Reply) -> &'static str {
    match reply {
        Reply::Once => "once",
        Reply::Session => "session",
        Reply::Always => "always",
        Reply::No => "no",
    }
}
