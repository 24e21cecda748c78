//! Names that a confined program may not write, or not read, wherever in the workspace they are.
//!
//! They are what somebody outside of the confinement runs or believes later: hooks, settings of agents,
//! shell and editor start-up files, CI workflows, an agent's own identity.

use std::collections::HashMap;

/// What is done about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It may be read, never written, made, moved or removed.
    ReadOnly,
    /// It is shown empty.
    Masked,
}

/// A table of names, ready to ask.
#[derive(Debug, Clone)]
pub struct Names {
    /// By the last component, folded; each with the components that must stand before it, nearest first.
    table: HashMap<Name, Vec<(Vec<Name>, Guard)>>,
    /// Lengths of the last components, so that most names need no look-up.
    lengths: u64,
    /// Their first bytes.
    firsts: [u64; 4],
}

/// One component of a path.
type Name = Box<[u8]>;

/// Longest name in the table.
const LONGEST: usize = 63;

/// What defines an agent, and what it is told.
const IDENTITY: &[&str] = &[
    "soulguard.json",
    "SOUL.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "IDENTITY.md",
    "HEARTBEAT.md",
    "LocalGPT.md",
    ".localgpt_manifest.json",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    ".github/instructions",
    ".github/prompts",
];

/// Settings, hooks and extensions of agents.
const AGENTS: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude/plugins",
    ".claude/commands",
    ".claude/agents",
    ".claude/skills",
    ".claude/rules",
    ".claude/output-styles",
    ".claude.json",
    ".mcp.json",
    ".codex",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/hooks",
    ".codex/prompts",
    ".codex/rules",
    ".agents",
    ".gemini/settings.json",
    ".gemini/extensions",
    ".gemini/commands",
    ".qwen/settings.json",
    ".qwen/extensions",
    ".copilot/hooks",
    ".openclaw/openclaw.json",
    ".openclaw/extensions",
    ".openclaw/cron",
    ".openclaw/hooks",
    ".opencode/plugins",
    ".cline/hooks",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".gemini",
    ".qwen",
    ".copilot",
    ".github/hooks",
    ".openclaw",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".config/opencode",
    ".config/localgpt",
    ".localgpt",
    ".cline",
    ".windsurf",
    ".codeium",
    ".cursor",
    ".continue",
    ".roo",
    ".kiro",
    ".amazonq",
    ".aider.conf.yml",
    ".goosehints",
];

/// What git runs.
const GIT: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".gitconfig",
    ".gitmodules",
    ".config/git",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    ".lefthook",
    "lefthook.yml",
    ".lefthook.yml",
];

/// What a shell, an editor or another tool runs when it starts there.
const STARTUP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".config/fish",
    ".xprofile",
    ".xinitrc",
    ".xsessionrc",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".local/share/systemd",
    ".envrc",
    ".direnvrc",
    ".mise.toml",
    "mise.toml",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".config/nvim",
    ".emacs",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    ".tmux.conf",
    ".screenrc",
    ".ripgreprc",
    ".ssh",
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".devcontainer",
    ".devcontainer.json",
];

/// Continuous integration.
const INTEGRATION: &[&str] = &[
    ".github/workflows",
    ".github/actions",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".gitlab-ci.yml",
    ".circleci",
    ".buildkite",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
];

/// Where package managers get things from, and what they run.
const PACKAGES: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".yarn/plugins",
    ".yarn/releases",
    ".pnpmfile.cjs",
    "bunfig.toml",
    "pip.conf",
    ".pypirc",
    ".condarc",
    ".cargo/config",
    ".cargo/config.toml",
    ".gemrc",
    ".bundle/config",
    ".mvn",
    ".gradle/init.gradle",
    ".gradle/init.d",
    ".curlrc",
    ".wgetrc",
    ".netrc",
];

/// What holds secrets.
const SECRETS: &[&str] = &[
    ".env",
    ".git-credentials",
    ".pgpass",
    ".vault-token",
    ".credentials.json",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
];

/// Endings of `.env.…` that are no secrets.
const EXAMPLES: &[&[u8]] =
    &[b"example", b"sample", b"template", b"dist", b"defaults", b"schema", b"tpl"];

impl Names {
    /// The built-in names.
    #[must_use]
    pub fn standard() -> Self {
        let mut names = Self { table: HashMap::new(), lengths: 0, firsts: [0; 4] };
        for list in [IDENTITY, AGENTS, GIT, STARTUP, INTEGRATION, PACKAGES] {
            for name in list {
                names.add(name, Guard::ReadOnly);
            }
        }
        for name in SECRETS {
            names.add(name, Guard::Masked);
        }
        names
    }

    /// Built-in names that lie in a folder of this name.
    pub(crate) fn below(folder: &[u8]) -> impl Iterator<Item = &'static str> {
        let all = AGENTS.iter().chain(IDENTITY).copied();
        all.filter(move |name| {
            let rest = name.as_bytes().strip_prefix(folder);
            rest.is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    }

    /// Adds a name, or the last components of a path. One that is empty or longer than a name can be is
    /// not added; says whether it was.
    pub fn add(&mut self, path: &str, guard: Guard) -> bool {
        let mut parts = path.split('/').filter(|part| !part.is_empty()).rev();
        let Some(last) = parts.next().filter(|last| last.len() <= LONGEST) else { return false };
        let last: Box<[u8]> = last.to_ascii_lowercase().into_bytes().into();
        let before = parts.map(|part| part.to_ascii_lowercase().into_bytes().into()).collect();
        self.lengths |= 1 << last.len();
        for first in [last[0], last[0].to_ascii_uppercase()] {
            self.firsts[usize::from(first >> 6)] |= 1 << (first & 63);
        }
        self.table.entry(last).or_default().push((before, guard));
        true
    }

    /// What is done about a name in the folder `parent`, a path with `/` between its parts.
    #[must_use]
    pub fn of(&self, parent: &[u8], name: &[u8]) -> Option<Guard> {
        let first = *name.first()?;
        if let Some(rest) = name.get(..5).filter(|start| start.eq_ignore_ascii_case(b".env.")) {
            let ending = name.get(rest.len()..).unwrap_or_default();
            let ending = ending.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
            let example = EXAMPLES.iter().any(|one| ending.eq_ignore_ascii_case(one));
            return (!example).then_some(Guard::Masked);
        }
        let known = name.len() <= LONGEST
            && self.lengths & (1 << name.len()) != 0
            && self.firsts[usize::from(first >> 6)] & (1 << (first & 63)) != 0;
        if !known {
            return None;
        }
        let mut folded = [0; LONGEST];
        let folded = &mut folded[..name.len()];
        folded.copy_from_slice(name);
        folded.make_ascii_lowercase();
        let entries = self.table.get(&*folded)?;
        let fits = |before: &[Box<[u8]>]| {
            let mut parts = parent.rsplit(|byte| *byte == b'/').filter(|part| !part.is_empty());
            before
                .iter()
                .all(|wanted| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(wanted)))
        };
        let mut found = None;
        for (_, guard) in entries.iter().filter(|(before, _)| fits(before)) {
            match guard {
                Guard::Masked => return Some(Guard::Masked),
                Guard::ReadOnly => found = Some(Guard::ReadOnly),
            }
        }
        found
    }

    /// As [`Self::of`], for a whole path in the workspace: also what lies below a name that is guarded.
    #[must_use]
    pub fn of_path(&self, path: &[u8]) -> Option<Guard> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut found = None;
        for end in ends.chain([path.len()]) {
            let until = &path[..end];
            let start = until.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
            match self.of(&until[..start], &until[start..]) {
                Some(Guard::Masked) => return Some(Guard::Masked),
                Some(Guard::ReadOnly) => found = Some(Guard::ReadOnly),
                None => {}
            }
        }
        found
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::standard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Guard> {
        Names::standard().of_path(path.as_bytes())
    }

    #[test]
    fn names_are_found_at_any_depth() {
        for path in [
            "AGENTS.md",
            "a/b/Agents.MD",
            ".git/hooks",
            ".git/hooks/pre-commit",
            "x/.git/config",
            "x/.claude/settings.json",
            ".vscode/tasks.json",
            "deep/er/.github/workflows/x.yml",
            ".npmrc",
        ] {
            assert_eq!(of(path), Some(Guard::ReadOnly), "{path}");
        }
        for path in [".env", "a/.env", ".env.local", ".ENV.production", ".env.d/x"] {
            assert_eq!(of(path), Some(Guard::Masked), "{path}");
        }
        for path in [
            "",
            "/",
            "src/main.rs",
            "hooks",
            "config",
            "git/hooks",
            "x.git/config",
            "settings.json",
            ".env.example",
            ".env.local.sample",
            ".environment",
            ".claude/worktrees/x",
            ".github/dependabot.yml",
            ".git/refs/heads/hooks",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn every_built_in_name_is_taken() {
        let mut names = Names::standard();
        assert!(!names.add("", Guard::ReadOnly));
        assert!(!names.add("/", Guard::ReadOnly));
        assert!(!names.add(&"x".repeat(64), Guard::ReadOnly));
        assert!(names.add("notes/Mine.txt", Guard::Masked));
        assert_eq!(names.of(b"a/notes", b"mine.txt"), Some(Guard::Masked));
        assert_eq!(names.of(b"a", b"mine.txt"), None);
        let all = [IDENTITY, AGENTS, GIT, STARTUP, INTEGRATION, PACKAGES, SECRETS];
        for name in all.into_iter().flatten() {
            assert!(of(name).is_some(), "{name}");
        }
    }
}
