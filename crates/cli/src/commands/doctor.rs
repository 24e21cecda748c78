//! `wardkeep doctor`

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use wardkeep_agents::Agent;
use wardkeep_agents::install::{self, Finding, INSTALLABLE, Plan, examine, plan};
use wardkeep_monitor::wire::{Client, Door};

use super::install::codex_trust::{self, TrustError};
use super::install::{self_test, surroundings};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// How long the daemon is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks whether agents still ask wardkeep, and says how to mend what has been switched off
///
/// Of each agent that wardkeep was installed into: whether its settings still hold the entries, whether
/// something keeps hooks from running, and whether a call that must be blocked is blocked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// Agents to look at, installed or not
    #[arg(value_parser = |text: &str| text.parse::<Agent>())]
    agents: Vec<Agent>,
    /// As root too, only this user's settings
    #[arg(long)]
    user: bool,
    /// The machine's configuration is here instead of in /etc
    #[arg(long, hide = true, value_name = "DIR", conflicts_with = "user")]
    machine: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    agent: &'static str,
    protected: bool,
    findings: Vec<FindingRow>,
}

#[derive(Serialize)]
struct FindingRow {
    what: String,
    mend: String,
}

#[derive(Serialize)]
struct Answer {
    agents: Vec<Row>,
    daemon: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let told = args.user || args.machine.is_some();
    let around = surroundings(context, args.user, args.machine)?;
    let installed = |agent: &Agent| around.state.join("installed").join(agent.name()).is_dir();
    let agents: Vec<Agent> = match args.agents.is_empty() {
        true => INSTALLABLE.into_iter().filter(installed).collect(),
        false => args.agents,
    };
    let daemon = Client::connect_to(&around.state, Door::Hooks, PATIENCE).is_ok();
    let mut rows = Vec::new();
    for agent in agents {
        // Where it was installed tells where to look, for the machine or for one user.
        let found = install::installed(agent, &around.state, &around.program);
        let around = found.as_ref().filter(|_| !told).unwrap_or(&around);
        let mut findings = examine(agent, around);
        if !installed(&agent) {
            let what = "wardkeep is not installed into it".to_owned();
            findings.insert(0, Finding { what, mend: format!("run `wardkeep install {agent}`") });
        } else if let Ok(plan) = plan(agent, around) {
            if let Err(what) = self_test::run(context, &plan) {
                let mend = "run `wardkeep daemon --foreground`".to_owned();
                findings.push(Finding { what, mend });
            }
            // The configuration may hold a trust that was given to another command.
            if agent == Agent::Codex && findings.is_empty() && !plan.left.is_empty() {
                findings.extend(untrusted(&plan, &around.home));
            }
        }
        let protected = findings.is_empty();
        let line = Line::from(format!("{agent}: "));
        context.ui.answer(if protected {
            line.good("asks wardkeep, and a call that must be blocked is blocked")
        } else {
            line.bad("not protected")
        });
        for finding in &findings {
            context.ui.answer(format!("  {}", finding.what));
            context.ui.answer(format!("    mend: {}", finding.mend));
        }
        let row = |Finding { what, mend }| FindingRow { what, mend };
        let findings = findings.into_iter().map(row).collect();
        rows.push(Row { agent: agent.name(), protected, findings });
    }
    if rows.is_empty() {
        context.ui.answer("No agent asks wardkeep.");
        context.ui.hint("run `wardkeep install AGENT`: see `wardkeep install --help` for which");
    }
    if !daemon {
        context.ui.note("no daemon runs; the next hook starts one");
    }
    let sound = !rows.is_empty() && rows.iter().all(|row| row.protected);
    let exit = if sound { Exit::Success } else { Exit::ActionRequired };
    Ok(context.finish(exit, sound, &Answer { agents: rows, daemon }))
}

/// What Codex itself says of the hooks, where it can be asked.
fn untrusted(plan: &Plan, home: &Path) -> Option<Finding> {
    let what = match codex_trust::is_trusted(plan, home) {
        Ok(true) | Err(TrustError::Absent) => return None,
        Ok(false) => "Codex does not trust the hooks: it skips them without a word".to_owned(),
        Err(why) => why.to_string(),
    };
    Some(Finding { what, mend: "run `wardkeep install codex`".to_owned() })
}
