//! `wardkeep init`

mod find;
mod guide;
mod plan;

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_monitor::policy::Desk;
use wardkeep_policy::key::KeyError;
use wardkeep_policy::template;
use wardkeep_policy::workspace::Workspace;

use self::find::settings_of;
use crate::commands::identity::setup;
use crate::commands::md::{policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Protects the agents and workspaces of this machine: shows every change, asks once, does it
///
/// Looks which agents are here and where they work, and proposes what is missing: a policy to start
/// from, the tiers of the files that define the agent, and hooks, so that the agent asks before each
/// call. Every change is shown with its lines before anything is changed; each can be left out. At the
/// end stands the grade, and what would raise it. Again, it proposes only what is missing.
///
/// In the workspaces named, or in those of LocalGPT, OpenClaw and Claude Code that are found, or in
/// the current folder. Nothing that exists is overwritten, and nothing is signed: read the policy,
/// then run `wardkeep md sign`. Files that define the agent are protected as `soulguard.json` says,
/// which is made where there is none; what they hold now counts as approved. As root, for the user of
/// sudo, the protected files get an owner of their own.
///
/// Without a terminal and without --yes only key, policy and tiers are made, and it says what was left.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workspaces to begin with
    workspaces: Vec<PathBuf>,
    /// Only show what would be done, every line of it
    #[arg(long)]
    dry_run: bool,
    /// Do all that is proposed without asking
    #[arg(long, short)]
    yes: bool,
    /// Set up only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// As root too, hooks only for this user
    #[arg(long)]
    user: bool,
    /// The machine's configuration is here instead of in /etc
    #[arg(long, hide = true, value_name = "DIR", conflicts_with = "user")]
    machine: Option<PathBuf>,
    #[command(flatten)]
    identity: setup::Options,
}

/// What can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The device key and the policy
    Policy,
    /// The tiers of the files that define the agent
    Identity,
}

impl Args {
    /// Only the files that define the agent, as Soulguard does.
    pub(crate) fn only_identity(mut self) -> Self {
        self.only = Some(Part::Identity);
        self
    }

    /// Only the policy, as LocalGPT does.
    pub(crate) fn only_policy(mut self) -> Self {
        self.only = Some(Part::Policy);
        self
    }
}

#[derive(Serialize)]
struct Made {
    workspace: String,
    agent: Option<&'static str>,
    created: bool,
    identity: Option<setup::Made>,
}

#[derive(Serialize)]
struct Answer {
    state_dir: String,
    device_key: &'static str,
    workspaces: Vec<Made>,
    agents: Vec<plan::AgentRow>,
    /// What would be done with `--yes`, and was not.
    changes: Vec<plan::Row>,
    dry_run: bool,
}

/// Whether the state is not root's to make, because of sudo.
fn is_held(context: &Context) -> bool {
    context.sudo().is_some() && !context.names_state_dir()
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let asks = context.has_terminal() && !context.ui.is_json();
    // Under their own names the tools do what they always did.
    if context.tool == "wardkeep" && (args.yes || args.dry_run || asks) {
        return guide::run(context, &args);
    }
    scripted(context, args)
}

/// Without anyone to ask: key, policy and tiers.
fn scripted(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let targets = find::workspaces(context, &args.workspaces, false);
    // Under sudo the policy's state is not root's to make; the identity's has a place of its own.
    let held = is_held(context);
    if args.only == Some(Part::Identity) || (held && args.only.is_none()) {
        return identity_only(context, &args, &targets);
    }
    let store = policy_store(context)?;
    let there = store.key_path().symlink_metadata().is_ok();
    let device_key = match (there, args.dry_run) {
        (true, _) => {
            // Says at once what is wrong with it.
            store.key()?;
            "present"
        }
        (false, true) => "missing",
        (false, false) => {
            drop(context.open_store()?);
            match store.create_key(context.random()?) {
                Ok(_) => {}
                // Another process was faster.
                Err(KeyError::Exists(_)) => drop(store.key()?),
                Err(error) => return Err(error.into()),
            }
            "created"
        }
    };
    let key_path = shown(context, &store.key_path());
    context.ui.say(format!("Device key: {device_key} ({key_path})"));
    let mut made = Vec::new();
    for target in targets {
        let find::Workspace { path, agent } = &target;
        // LocalGPT's own has one place, and its name says that it is wanted.
        if context.tool == crate::context::LOCALGPT && args.workspaces.is_empty() && !args.dry_run {
            std::fs::create_dir_all(path).map_err(|error| CliError::io("make", path, &error))?;
        }
        let workspace = Workspace::open(path)
            .map_err(|error| CliError::io("open", &error.path, &error.error))?;
        let missing = workspace.policy_path().symlink_metadata().is_err();
        let created = missing
            && !args.dry_run
            && template::create(&workspace)
                .map_err(|error| CliError::io("write", &workspace.policy_path(), &error))?;
        if created {
            let open = context.open_store()?;
            let desk = Desk::new(&open, rustix::process::getuid().as_raw());
            let written = desk.created(&workspace)?;
            if let Some(trouble) = &written.trouble {
                context.ui.note(&trouble.to_string());
            }
        }
        let name = shown(context, &workspace.policy_path());
        let whose = agent.map(|agent| format!(" ({agent})")).unwrap_or_default();
        context.ui.answer(match (missing, created) {
            (_, true) => format!("Created {name}{whose}"),
            (true, false) => format!("Would create {name}{whose}"),
            (false, false) => format!("{name} is there already{whose}"),
        });
        let identity = match args.only {
            Some(Part::Policy) => None,
            _ => protect(context, &target, &args)?,
        };
        let workspace = workspace.path().display().to_string();
        made.push(Made { workspace, agent: *agent, created, identity });
    }
    if made.iter().any(|one| one.created) {
        let tool = context.tool;
        context.ui.say(Line::next(format!("edit it, then run `{tool} md sign`.")));
    }
    let rest = match context.tool == "wardkeep" && !args.dry_run {
        true => plan::make(context, &args, held),
        false => plan::Plan::default(),
    };
    let changes: Vec<plan::Row> =
        rest.items.iter().filter(|item| item.chosen).map(|item| item.row(false)).collect();
    if !changes.is_empty() {
        context.ui.say("Not done without a terminal or --yes (`wardkeep init --yes` does it):");
        for item in rest.items.iter().filter(|item| item.chosen) {
            context.ui.say(format!("  {}", item.title));
        }
    }
    let state_dir = store.state().display().to_string();
    let (agents, dry_run) = (rest.agents, args.dry_run);
    Ok(context.done(&Answer { state_dir, device_key, workspaces: made, agents, changes, dry_run }))
}

/// Sets only the files that define the agents up.
fn identity_only(
    context: &mut Context,
    args: &Args,
    targets: &[find::Workspace],
) -> Result<Exit, CliError> {
    let mut workspaces = Vec::new();
    for target in targets {
        let identity = protect(context, target, args)?;
        let workspace = target.path.display().to_string();
        workspaces.push(Made { workspace, agent: target.agent, created: false, identity });
    }
    #[derive(Serialize)]
    struct Answer {
        workspaces: Vec<Made>,
        dry_run: bool,
    }
    Ok(context.done(&Answer { workspaces, dry_run: args.dry_run }))
}

/// Sets the files up that define the agent of a workspace.
fn protect(
    context: &mut Context,
    target: &find::Workspace,
    args: &Args,
) -> Result<Option<setup::Made>, CliError> {
    let path = &target.path;
    if args.dry_run {
        context.ui.answer(format!("Would protect what defines the agent in {}", path.display()));
        return Ok(None);
    }
    let made = setup::set_up(context, path, &args.identity, &settings_of(target))?;
    setup::tell(context, &made);
    Ok(Some(made))
}
