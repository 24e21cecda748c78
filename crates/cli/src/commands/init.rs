//! `wardkeep init`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_monitor::policy::Desk;
use wardkeep_policy::key::KeyError;
use wardkeep_policy::template;
use wardkeep_policy::workspace::{POLICY_FILE, Workspace};

use crate::commands::identity::setup;
use crate::commands::md::{policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Sets workspaces up: a device key, a policy to start from, and the files that define the agent
///
/// In the workspaces named, or in those of LocalGPT, OpenClaw and Claude Code that are found, or in
/// the current folder. Nothing that exists is overwritten, and nothing is signed: read the policy,
/// then run `wardkeep md sign`. Files that define the agent are protected as `soulguard.json` says,
/// which is made where there is none; what they hold now counts as approved. As root, for the user of
/// sudo, the protected files get an owner of their own.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workspaces to begin with
    workspaces: Vec<PathBuf>,
    /// Only show what would be made
    #[arg(long)]
    dry_run: bool,
    /// Set up only this part
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
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
    dry_run: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let targets = targets(context, &args.workspaces);
    // Under sudo the policy's state is not root's to make; the identity's has a place of its own.
    let held = context.sudo().is_some() && !context.names_state_dir();
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
    for (path, agent) in targets {
        // LocalGPT's own has one place, and its name says that it is wanted.
        if context.tool == crate::context::LOCALGPT && args.workspaces.is_empty() && !args.dry_run {
            std::fs::create_dir_all(&path).map_err(|error| CliError::io("make", &path, &error))?;
        }
        let workspace = Workspace::open(&path)
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
            _ => protect(context, workspace.path(), agent, &args)?,
        };
        let workspace = workspace.path().display().to_string();
        made.push(Made { workspace, agent, created, identity });
    }
    if made.iter().any(|one| one.created) {
        let tool = context.tool;
        context.ui.say(format!("Next: edit it, then run `{tool} md sign`."));
    }
    let state_dir = store.state().display().to_string();
    Ok(context.done(&Answer { state_dir, device_key, workspaces: made, dry_run: args.dry_run }))
}

/// Sets only the files that define the agents up.
fn identity_only(
    context: &mut Context,
    args: &Args,
    targets: &[(PathBuf, Option<&'static str>)],
) -> Result<Exit, CliError> {
    let mut workspaces = Vec::new();
    for (path, agent) in targets {
        let identity = protect(context, path, *agent, args)?;
        let workspace = path.display().to_string();
        workspaces.push(Made { workspace, agent: *agent, created: false, identity });
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
    path: &Path,
    agent: Option<&'static str>,
    args: &Args,
) -> Result<Option<setup::Made>, CliError> {
    if args.dry_run {
        context.ui.answer(format!("Would protect what defines the agent in {}", path.display()));
        return Ok(None);
    }
    let made = setup::set_up(context, path, &args.identity, settings_of(agent))?;
    setup::tell(context, &made);
    Ok(Some(made))
}

/// Files that steer an agent, for a new configuration.
fn settings_of(agent: Option<&str>) -> &'static [&'static str] {
    match agent {
        Some("OpenClaw") => &["openclaw.json", "extensions/**", "cron/**"],
        Some("Claude Code") => {
            &["CLAUDE.md", ".claude/settings.json", ".claude/settings.local.json", ".mcp.json"]
        }
        _ => &[],
    }
}

/// Those named; else those of agents that are here; else the current folder.
fn targets(context: &Context, named: &[PathBuf]) -> Vec<(PathBuf, Option<&'static str>)> {
    if !named.is_empty() {
        return named.iter().map(|path| (path.clone(), agent_of(path))).collect();
    }
    if context.tool == crate::context::LOCALGPT {
        return vec![(context.workspace(), Some("LocalGPT"))];
    }
    let here = PathBuf::from(".");
    let mut found = Vec::new();
    if here.join(POLICY_FILE).exists() || agent_of(&here).is_some() {
        found.push((here.clone(), agent_of(&here)));
    } else if let Some(home) = context.home() {
        for (below, agent) in
            [(".localgpt/workspace", "LocalGPT"), (".openclaw/workspace", "OpenClaw")]
        {
            let path = home.join(below);
            if path.is_dir() {
                found.push((path, Some(agent)));
            }
        }
    }
    if found.is_empty() {
        found.push((here, None));
    }
    found
}

/// The agent whose workspace a folder looks like.
fn agent_of(path: &Path) -> Option<&'static str> {
    let has = |name: &str| path.join(name).exists();
    if path.ends_with(".localgpt/workspace") || (has("HEARTBEAT.md") && has("knowledge")) {
        Some("LocalGPT")
    } else if has("SOUL.md") || has("openclaw.json") || path.ends_with(".openclaw/workspace") {
        Some("OpenClaw")
    } else if has("CLAUDE.md") || has(".claude") {
        Some("Claude Code")
    } else {
        None
    }
}
