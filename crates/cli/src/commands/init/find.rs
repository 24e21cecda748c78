//! What is on the machine: agents, and the folders that they work in.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use wardkeep_agents::install::presence::{Present, present};
use wardkeep_policy::workspace::POLICY_FILE;

use crate::context::{Context, LOCALGPT};

/// A folder that an agent works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Workspace {
    pub(super) path: PathBuf,
    /// Whose it looks like.
    pub(super) agent: Option<&'static str>,
}

/// Most folders that are only known from an agent's own list.
const MOST_LISTED: usize = 8;
/// Longest list of an agent's that is read.
const MAX_LIST: u64 = 16 << 20;

/// Agents on this machine.
pub(super) fn agents(context: &Context) -> Vec<Present> {
    let Some(home) = context.home() else { return Vec::new() };
    present(&home, &context.program_folders())
}

/// Those named; else those of agents that are here; else the current folder. A home holds settings of
/// agents and is no workspace for that, where someone is guided.
pub(super) fn workspaces(context: &Context, named: &[PathBuf], guided: bool) -> Vec<Workspace> {
    let of = |path: PathBuf| Workspace { agent: agent_of(&path), path };
    if !named.is_empty() {
        return named.iter().cloned().map(of).collect();
    }
    if context.tool == LOCALGPT {
        return vec![Workspace { path: context.workspace(), agent: Some("LocalGPT") }];
    }
    let here = PathBuf::from(".");
    let mut found = Vec::new();
    let is_own = here.join(POLICY_FILE).exists() || agent_of(&here).is_some();
    if is_own && !(guided && is_too_wide(context, &here)) {
        found.push(of(here.clone()));
    } else if let Some(home) = context.home() {
        for (below, agent) in
            [(".localgpt/workspace", "LocalGPT"), (".openclaw/workspace", "OpenClaw")]
        {
            let path = home.join(below);
            if path.is_dir() {
                found.push(Workspace { path, agent: Some(agent) });
            }
        }
    }
    if found.is_empty() {
        found.push(Workspace { path: here, agent: None });
    }
    found
}

/// Whether a folder is nobody's workspace: a home, or the root of everything.
pub(super) fn is_too_wide(context: &Context, path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let home = context.home().and_then(|home| home.canonicalize().ok());
    real.parent().is_none() || home.as_ref() == Some(&real)
}

/// Folders in which agents say that they were used, other than `known`: proposed, and never taken
/// unasked, because the lists are the agents' to write.
pub(super) fn listed(context: &Context, known: &[Workspace]) -> Vec<Workspace> {
    let Some(home) = context.home() else { return Vec::new() };
    let real = |path: &Path| path.canonicalize().ok();
    let taken: BTreeSet<PathBuf> = known.iter().filter_map(|one| real(&one.path)).collect();
    let own_home = real(&home);
    let uid = rustix::process::geteuid().as_raw();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (path, agent) in claude_projects(&home).into_iter().chain(codex_projects(&home)) {
        let Some(path) = real(&path).filter(|_| path.is_absolute()) else { continue };
        let is_own = path.metadata().is_ok_and(|data| data.is_dir() && data.uid() == uid);
        let too_wide = path.parent().is_none() || own_home.as_ref() == Some(&path);
        if is_own && !too_wide && !taken.contains(&path) && seen.insert(path.clone()) {
            found.push(Workspace { path, agent: Some(agent) });
        }
    }
    found.truncate(MOST_LISTED);
    found
}

fn claude_projects(home: &Path) -> Vec<(PathBuf, &'static str)> {
    let text = small(&home.join(".claude.json"));
    let all: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let projects = all["projects"].as_object();
    let names = projects.into_iter().flat_map(|projects| projects.keys());
    names.map(|name| (PathBuf::from(name), "Claude Code")).collect()
}

fn codex_projects(home: &Path) -> Vec<(PathBuf, &'static str)> {
    let text = small(&home.join(".codex/config.toml"));
    let all: toml::Table = text.parse().unwrap_or_default();
    let projects = all.get("projects").and_then(toml::Value::as_table);
    let names = projects.into_iter().flat_map(|projects| projects.keys());
    names.map(|name| (PathBuf::from(name), "Codex")).collect()
}

/// What a file of ordinary size holds; nothing of any other.
fn small(path: &Path) -> String {
    let fine = path.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_LIST);
    fine.then(|| std::fs::read_to_string(path).ok()).flatten().unwrap_or_default()
}

/// The agent whose workspace a folder looks like.
pub(super) fn agent_of(path: &Path) -> Option<&'static str> {
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

/// Files that steer agents, where they are found.
const STEERING: [&str; 14] = [
    "CLAUDE.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    "GEMINI.md",
    ".gemini/settings.json",
    "QWEN.md",
    ".qwen/settings.json",
    ".codex/config.toml",
    ".github/copilot-instructions.md",
    "opencode.json",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
];

/// Files that steer an agent, for a new configuration: those of its kind, and what else is there.
pub(super) fn settings_of(workspace: &Workspace) -> Vec<&'static str> {
    let own: &[&str] = match workspace.agent {
        Some("OpenClaw") => &["openclaw.json", "extensions/**", "cron/**"],
        Some("Claude Code") => {
            &["CLAUDE.md", ".claude/settings.json", ".claude/settings.local.json", ".mcp.json"]
        }
        _ => &[],
    };
    let there = |name: &&&str| {
        !own.contains(*name)
            && workspace.path.join(name).symlink_metadata().is_ok_and(|data| data.is_file())
    };
    own.iter().chain(STEERING.iter().filter(there)).copied().collect()
}
