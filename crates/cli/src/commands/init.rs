//! `wardkeep init`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_monitor::policy::Desk;
use wardkeep_policy::key::KeyError;
use wardkeep_policy::template;
use wardkeep_policy::workspace::{POLICY_FILE, Workspace};

use crate::commands::md::{policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Makes the device key and a policy to start from, where there is none
///
/// In the workspaces named, or in those of LocalGPT, OpenClaw and Claude Code that are found, or in
/// the current folder. Nothing that exists is overwritten, and nothing is signed: read the policy,
/// then run `wardkeep md sign`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workspaces to begin with
    workspaces: Vec<PathBuf>,
    /// Only show what would be made
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Made {
    workspace: String,
    agent: Option<&'static str>,
    created: bool,
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
        let workspace = workspace.path().display().to_string();
        made.push(Made { workspace, agent, created });
    }
    if made.iter().any(|one| one.created) {
        let tool = context.tool;
        context.ui.say(format!("Next: edit it, then run `{tool} md sign`."));
    }
    let state_dir = store.state().display().to_string();
    Ok(context.done(&Answer { state_dir, device_key, workspaces: made, dry_run: args.dry_run }))
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
