//! `wardkeep install`

pub(super) mod codex_trust;
pub(super) mod self_test;

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_agents::Agent;
use wardkeep_agents::install::{
    Change, InstallError, LED, Plan, Surroundings, codex_trust, examine, installed, plan,
    set_defer, set_proxy, uninstall,
};
use wardkeep_policy::key::KeyError;
use wardkeep_policy::store::PolicyStore;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// What an agent that runs needs.
pub(super) const ANEW: &str = "sessions that run already must be started anew";

/// Lines around a change that are shown.
const AROUND: usize = 2;

/// Tells an agent to ask wardkeep before each call, and tries it
///
/// The agent's own settings get an entry for each event; everything else in them stays as it is,
/// comments included, and `wardkeep uninstall` puts back the bytes of before. Then a call is made that
/// must be blocked, and one that must not: only if both are answered so does it say that it is
/// installed; otherwise everything is put back.
///
/// Around each hook there is a shell that lets through only what wardkeep has judged: a hook that is
/// killed, is not there or breaks is a no. Codex is told to trust the hooks, if it can be asked.
///
/// As root it is installed for the whole machine, where an agent's user cannot switch it off; Cline and
/// OpenClaw have no such place.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// The agent: claude-code, codex, gemini-cli, copilot-cli, openclaw, opencode, qwen-code,
    /// cline, cursor or windsurf
    #[arg(value_parser = |text: &str| text.parse::<Agent>())]
    agent: Agent,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Claude Code alone, from 2.1.325 on: a call that waits for you ends a session without a terminal
    /// (`claude -p`) with the call open, instead of denying it; approve it and `--resume`
    #[arg(long)]
    defer: bool,
    /// Lead the agent's calls of its model through `wardkeep proxy`, too, at this URL or at
    /// http://127.0.0.1:3129, until it is uninstalled: claude-code, gemini-cli and opencode. The proxy must
    /// run then, or the agent does not reach its model
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "http://127.0.0.1:3129",
        require_equals = true)]
    with_proxy: Option<String>,
    /// As root too, only for this user
    #[arg(long)]
    user: bool,
    /// The machine's configuration is here instead of in /etc
    #[arg(long, hide = true, value_name = "DIR", conflicts_with = "user")]
    machine: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer {
    agent: &'static str,
    installed: bool,
    dry_run: bool,
    files: Vec<String>,
    events: Vec<&'static str>,
    left: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "nothing is installed from inside of `wardkeep run`",
            "run it in a terminal of your own",
        ));
    }
    if args.defer && args.agent != Agent::ClaudeCode {
        return Err(CliError::refused(
            format!("{} cannot leave a call open", args.agent),
            "leave --defer out: such calls are denied with an id, and pass once you approved it",
        ));
    }
    let around = surroundings(context, args.user, args.machine)?;
    if let Some(url) = &args.with_proxy {
        lead(context, args.agent, url, args.dry_run, &around)?;
    }
    let plan = plan(args.agent, &around)?;
    let files = plan.changes.iter().map(|change| change.path.display().to_string()).collect();
    let mut answer = Answer {
        agent: args.agent.name(),
        installed: false,
        dry_run: args.dry_run,
        files,
        events: plan.commands.iter().map(|command| command.event).collect(),
        left: plan.left.clone(),
    };
    if args.dry_run {
        plan.changes.iter().for_each(|change| show(context, change));
        if plan.is_done() {
            context.ui.say("Nothing would change.");
        } else {
            context.ui.hint("nothing was changed: run it without --dry-run to do it");
        }
        return Ok(context.done(&answer));
    }
    put_in_force(context, &plan, &around)?;
    set_defer(args.agent, &around.state, args.defer)?;
    for change in &plan.changes {
        context.ui.say(format!("written: {}", change.path.display()));
    }
    answer.left = left_to_do(context, &plan, &around);
    answer.installed = answer.left.is_empty();
    if answer.installed {
        let line = format!("Installed: {} asks wardkeep before each call.", args.agent);
        context.ui.answer(Line::default().good(line));
        context.ui.hint(ANEW);
        context.ui.hint("`wardkeep log` has the trial: a write to LocalGPT.md that was blocked");
        return Ok(context.done(&answer));
    }
    let line = format!("Written, but {} does not ask wardkeep yet.", args.agent);
    context.ui.answer(Line::default().strong(line));
    for step in &answer.left {
        context.ui.answer(step.as_str());
    }
    Ok(context.finish(Exit::ActionRequired, false, &answer))
}

/// Writes a plan and tries it; if the trial is not answered as it must be, everything is put back.
pub(super) fn put_in_force(
    context: &mut Context,
    plan: &Plan,
    around: &Surroundings,
) -> Result<(), CliError> {
    prepare(context)?;
    let before = installed(plan.agent, &around.state, &around.program).is_some();
    if let Err(error) = plan.apply(around) {
        // Nothing was written: then nothing is kept of it either.
        if !before {
            let _ = uninstall(plan.agent, &around.state);
        }
        return Err(error.into());
    }
    let Err(why) = self_test::run(context, plan) else { return Ok(()) };
    // It was not there before, or what was there did not work either.
    let hint = match uninstall(plan.agent, &around.state) {
        Ok(_) => "everything was put back; see what the message says, and try again".to_owned(),
        Err(error) => format!("and it could not be put back: {error}"),
    };
    let message = format!("the trial call was not answered as it must be: {why}");
    Err(CliError::new(Exit::Failed, message, hint))
}

/// Notes that the agent's model API is to be reached through a proxy; the plan then says so.
fn lead(
    context: &mut Context,
    agent: Agent,
    url: &str,
    dry_run: bool,
    around: &Surroundings,
) -> Result<(), CliError> {
    let url = url.trim_end_matches('/');
    if !LED.contains(&agent) {
        return Err(CliError::refused(
            format!("the base URL of {agent} is not set by wardkeep"),
            "see docs/proxy.md for how to set it yourself",
        ));
    }
    let local = url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split('/').next());
    if local.is_none_or(|port| port.parse::<u16>().is_err()) {
        return Err(CliError::refused(
            format!("`{url}` is no address of a proxy on this machine"),
            "give one such as http://127.0.0.1:3129",
        ));
    }
    if dry_run {
        context.ui.note("what leads to the proxy is not shown here");
        return Ok(());
    }
    prepare(context)?;
    Ok(set_proxy(agent, &around.state, url)?)
}

/// What keeps the agent from asking, once what can be done about it was done.
pub(super) fn left_to_do(context: &mut Context, plan: &Plan, around: &Surroundings) -> Vec<String> {
    if plan.agent == Agent::Codex && !plan.left.is_empty() {
        match codex_trust(around, || codex_trust::trust(plan, &around.home)) {
            Ok(()) => context.ui.say("Codex was told to trust the hooks, and does"),
            Err(why) => {
                context.ui.note(&format!("Codex could not be told to trust the hooks: {why}"));
                return plan.left.clone();
            }
        }
    }
    examine(plan.agent, around)
        .into_iter()
        .map(|finding| format!("{}: {}", finding.what, finding.mend))
        .collect()
}

pub(super) fn surroundings(
    context: &Context,
    user: bool,
    machine: Option<PathBuf>,
) -> Result<Surroundings, CliError> {
    let root = rustix::process::geteuid().is_root();
    let machine = machine.or_else(|| (root && !user).then(|| PathBuf::from("/etc")));
    let home = context.home().or_else(|| context.home_by_user()).ok_or_else(|| {
        CliError::refused("it is not known where your home is", "set HOME and run it again")
    })?;
    Ok(Surroundings { home, machine, program: context.program()?, state: context.state_dir()? })
}

/// A state directory to keep things in, and a key: without one, what a session has seen is not
/// recognised any more after the daemon has ended.
fn prepare(context: &Context) -> Result<(), CliError> {
    drop(context.open_store()?);
    let owner = rustix::process::geteuid().as_raw();
    let store = PolicyStore::new(&context.state_dir()?, owner);
    match store.create_key(context.random()?) {
        Ok(_) | Err(KeyError::Exists(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The lines that change.
fn show(context: &mut Context, change: &Change) {
    let before = String::from_utf8_lossy(change.before.as_deref().unwrap_or_default()).into_owned();
    let after = String::from_utf8_lossy(&change.after).into_owned();
    let verb = if change.before.is_some() { "changed" } else { "made" };
    if before == after {
        return;
    }
    context.ui.answer(Line::default().strong(format!("{verb}: {}", change.path.display())));
    changed_lines(&before, &after).into_iter().for_each(|line| context.ui.answer(line));
}

/// What changes from one text to another, with a few lines around it.
pub(super) fn changed_lines(before: &str, after: &str) -> Vec<Line> {
    crate::ui::diff(before, after, AROUND)
}

impl From<InstallError> for CliError {
    fn from(error: InstallError) -> Self {
        let text = error.to_string();
        let (message, hint) = text.rsplit_once(": ").unwrap_or((&text, "see `wardkeep doctor`"));
        let exit = match error {
            InstallError::Unusable { .. } | InstallError::Io { .. } => Exit::Unreadable,
            _ => Exit::Refused,
        };
        Self::new(exit, message, hint)
    }
}
