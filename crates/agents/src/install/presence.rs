//! Which agents are on a machine, by what they leave there. Only looks whether something is there.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::agent::Agent;

/// An agent that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// Which one.
    pub agent: Agent,
    /// What shows it: a folder or file of its own, or its program.
    pub by: PathBuf,
    /// Its program, where that was found.
    pub program: Option<PathBuf>,
}

/// What an agent keeps in a home.
fn traces(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::ClaudeCode => &[".claude", ".claude.json"],
        Agent::Codex => &[".codex"],
        Agent::GeminiCli => &[".gemini"],
        Agent::CopilotCli => &[".copilot"],
        Agent::OpenClaw => &[".openclaw"],
        Agent::OpenCode => &[".config/opencode", ".local/share/opencode"],
        Agent::QwenCode => &[".qwen"],
        Agent::Cline => &[".cline"],
        Agent::Cursor => &[".cursor"],
        Agent::Windsurf => &[".codeium/windsurf"],
    }
}

/// The names of its program.
#[must_use]
pub fn programs(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::ClaudeCode => &["claude"],
        Agent::Codex => &["codex"],
        Agent::GeminiCli => &["gemini"],
        Agent::CopilotCli => &["copilot"],
        Agent::OpenClaw => &["openclaw"],
        Agent::OpenCode => &["opencode"],
        Agent::QwenCode => &["qwen"],
        Agent::Cline => &["cline"],
        Agent::Cursor => &["cursor-agent", "cursor"],
        Agent::Windsurf => &["windsurf"],
    }
}

/// The agents that are here. `folders` are those that programs are looked for in; relative ones are
/// left out.
#[must_use]
pub fn present(home: &Path, folders: &[PathBuf]) -> Vec<Present> {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let program = |agent| {
        let absolute = folders.iter().filter(|folder| folder.is_absolute());
        let mut all =
            absolute.flat_map(|folder| programs(agent).iter().map(|name| folder.join(name)));
        all.find(|path| runs(path))
    };
    let found = |agent: &Agent| {
        let program = program(*agent);
        let trace = traces(*agent).iter().map(|name| home.join(name)).find(|path| is_used(path));
        let by = trace.or_else(|| program.clone())?;
        Some(Present { agent: *agent, by, program })
    };
    Agent::ALL.iter().filter_map(found).collect()
}

/// Whether there is something: an empty folder shows nothing.
fn is_used(path: &Path) -> bool {
    match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_found_by_what_they_keep_and_by_their_programs() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        assert_eq!(present(home.path(), std::slice::from_ref(&bin)), []);
        // An empty folder shows nothing.
        std::fs::create_dir(home.path().join(".claude")).unwrap();
        assert_eq!(present(home.path(), std::slice::from_ref(&bin)), []);
        std::fs::write(home.path().join(".claude/settings.json"), "{}").unwrap();
        let codex = bin.join("codex");
        std::fs::write(&codex, "").unwrap();
        let names = |folders: &[PathBuf]| -> Vec<&str> {
            present(home.path(), folders).iter().map(|one| one.agent.name()).collect()
        };
        // A file that cannot be run is no program, and a relative folder is not looked into.
        assert_eq!(names(std::slice::from_ref(&bin)), ["claude-code"]);
        std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(names(&[PathBuf::from("bin")]), ["claude-code"]);
        assert_eq!(names(&[bin]), ["claude-code", "codex"]);
        for agent in Agent::ALL {
            std::fs::create_dir_all(home.path().join(traces(*agent)[0]).join("data")).unwrap();
        }
        assert_eq!(names(&[]).len(), Agent::ALL.len());
    }
}
