//! Which names are protected.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Names that steer agents, shells, editors, builds and package managers. Each protects itself and all
/// below it, at any depth.
const PROTECTED: &[&str] = &[
    // Agents: settings, hooks, skills, instructions.
    ".claude",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "AGENT.md",
    ".agents",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".cursorignore",
    ".gemini",
    "GEMINI.md",
    ".qwen",
    "QWEN.md",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".openclaw",
    ".clinerules",
    ".cline",
    ".windsurf",
    ".windsurfrules",
    ".copilot",
    ".github/copilot-instructions.md",
    ".github/hooks",
    ".github/agents",
    ".github/instructions",
    ".github/prompts",
    ".mcp.json",
    ".aider.conf.yml",
    ".goosehints",
    ".continue",
    ".roo",
    ".roorules",
    ".kiro",
    ".junie",
    ".amp",
    ".augment",
    // The owner's policy and the agent's identity.
    "LocalGPT.md",
    ".localgpt_manifest.json",
    ".localgpt",
    "soulguard.json",
    "SOUL.md",
    "IDENTITY.md",
    "HEARTBEAT.md",
    // Shells.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".inputrc",
    ".config/fish",
    ".envrc",
    ".direnvrc",
    ".ripgreprc",
    ".tmux.conf",
    ".ssh",
    ".gitconfig",
    ".config/git",
    ".config/autostart",
    ".config/systemd",
    // Editors.
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".vscode/launch.json",
    ".vscode/mcp.json",
    ".vscode/extensions.json",
    ".idea",
    ".zed/tasks.json",
    ".zed/settings.json",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".devcontainer",
    ".devcontainer.json",
    // Builds that run elsewhere, and hooks that run here.
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".circleci",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".buildkite",
    ".forgejo/workflows",
    ".gitea/workflows",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".cirrus.yml",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    // Package managers.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".pypirc",
    "pip.conf",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/credentials.toml",
    ".gemrc",
    ".bundle/config",
    ".m2/settings.xml",
    ".mvn",
    ".gradle/init.gradle",
    ".condarc",
    ".netrc",
];
/// Below one of these lie the packages of others, as they were packed. Nothing takes a name there for
/// its own settings.
const PACKAGES: [&str; 3] = ["node_modules", "site-packages", "dist-packages"];

/// Protected names, and where they count.
#[derive(Debug, Clone)]
pub struct Names {
    /// By the first part of the name.
    patterns: HashMap<Vec<u8>, Vec<Pattern>>,
    roots: Vec<PathBuf>,
    free: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    parts: Vec<Vec<u8>>,
}

/// A name that was found in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    /// The part of the path it begins with.
    pub(super) at: usize,
    /// How many parts it has.
    pub(super) parts: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Names {
    /// The names that every agent, shell, editor, build and package manager obeys.
    #[must_use]
    pub fn new() -> Self {
        let none = Self { patterns: HashMap::new(), roots: Vec::new(), free: Vec::new() };
        PROTECTED.iter().fold(none, |names, pattern| names.protect(pattern))
    }

    /// Protects one more name: one part or several, without wildcards, at any depth.
    #[must_use]
    pub fn protect(mut self, pattern: impl AsRef<Path>) -> Self {
        let parts: Vec<Vec<u8>> =
            parts_of(pattern.as_ref().as_os_str().as_bytes()).map(<[u8]>::to_vec).collect();
        if let Some(first) = parts.first() {
            let known = self.patterns.entry(folded(first)).or_default();
            let pattern = Pattern { parts };
            if !known.contains(&pattern) {
                known.push(pattern);
            }
        }
        self
    }

    /// Protects a name no more.
    #[must_use]
    pub fn release(mut self, pattern: impl AsRef<Path>) -> Self {
        let parts: Vec<Vec<u8>> =
            parts_of(pattern.as_ref().as_os_str().as_bytes()).map(<[u8]>::to_vec).collect();
        self.patterns.values_mut().for_each(|known| known.retain(|one| one.parts != parts));
        self
    }

    /// A workspace: what lies above it does not count as part of a name. Its real path.
    #[must_use]
    pub fn root(mut self, path: impl Into<PathBuf>) -> Self {
        self.roots.push(path.into());
        self
    }

    /// A place where every name may be, by its real path.
    #[must_use]
    pub fn free(mut self, path: impl Into<PathBuf>) -> Self {
        self.free.push(path.into());
        self
    }

    /// Whether every name may be at a path. A workspace inside of a free place is not free.
    pub(super) fn is_free(&self, path: &[u8]) -> bool {
        let free = deepest(&self.free, path);
        free.is_some() && free >= deepest(&self.roots, path)
    }

    /// How many of the first parts of a path are above its workspace.
    pub(super) fn above(&self, path: &[u8]) -> usize {
        deepest(&self.roots, path).unwrap_or(0)
    }

    /// The first protected name in a path. `fold` is for file systems that take `a` for `A`.
    pub(super) fn find(&self, parts: &[&[u8]], fold: bool) -> Option<Hit> {
        parts.iter().enumerate().find_map(|(at, part)| {
            let known = self.patterns.get(&folded(part))?;
            let rest = &parts[at..];
            let fits = |pattern: &&Pattern| {
                pattern.parts.len() <= rest.len()
                    && pattern.parts.iter().zip(rest).all(|(a, b)| same(a, b, fold))
            };
            let found = known.iter().find(fits)?;
            Some(Hit { at, parts: found.parts.len() })
        })
    }

    /// What would have to lie in a directory at a path, for a protected name to begin above it and
    /// to end in it.
    pub(super) fn continued(&self, parts: &[&[u8]], fold: bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for pattern in self.patterns.values().flatten() {
            for split in 1..pattern.parts.len() {
                let (head, tail) = pattern.parts.split_at(split);
                let Some(start) = parts.len().checked_sub(head.len()) else { continue };
                if head.iter().zip(&parts[start..]).all(|(a, b)| same(a, b, fold)) {
                    found.push(tail.iter().map(|part| std::ffi::OsStr::from_bytes(part)).collect());
                }
            }
        }
        found
    }
}

/// Whether a path lies in a folder of packages, before its part `at`.
pub(super) fn is_package(parts: &[&[u8]], at: usize) -> bool {
    parts.iter().take(at).any(|part| PACKAGES.iter().any(|name| name.as_bytes() == *part))
}

/// The parts of a path.
pub(super) fn parts_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
}

/// Whether two names are the same to a file system.
pub(super) fn same(one: &[u8], other: &[u8], fold: bool) -> bool {
    one == other || (fold && folded(one) == folded(other))
}

/// A name without what file systems that fold do not see: case, and signs that have no width.
fn folded(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let hidden = |sign: &char| matches!(sign, '\u{200C}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{206A}'..='\u{206F}' | '\u{FEFF}' | '\u{AD}');
    let text = String::from_utf8_lossy(name);
    let folded: String =
        text.chars().filter(|sign| !hidden(sign)).flat_map(char::to_lowercase).collect();
    // Two signs that fold to plain letters, but whose lower case is their own.
    folded.replace('ſ', "s").replace('K', "k").into_bytes()
}

fn deepest(places: &[PathBuf], path: &[u8]) -> Option<usize> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let above = places.iter().filter(|place| path.starts_with(place));
    above.map(|place| parts_of(place.as_os_str().as_bytes()).count()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(path: &str, fold: bool) -> bool {
        let parts: Vec<&[u8]> = parts_of(path.as_bytes()).collect();
        Names::new().find(&parts, fold).is_some()
    }

    #[test]
    fn names_are_found_at_any_depth() {
        for path in [
            ".claude",
            "a/b/.claude/settings.json",
            ".mcp.json",
            "x/.github/workflows/ci.yml",
            ".vscode/tasks.json",
            "AGENTS.md",
            "a/AGENTS.md",
            ".envrc",
        ] {
            assert!(hit(path, false), "{path}");
        }
        for path in [
            ".claude2",
            "claude",
            ".github/FUNDING.yml",
            ".vscode/notes",
            "docs/agents.md",
            "tasks.json",
            ".github",
            "workflows",
            "AGENTS.md.bak",
        ] {
            assert!(!hit(path, false), "{path}");
        }
        assert!(hit("docs/agents.md", true) && hit(".Git\u{200c}Hub/workflows", true));
        assert!(hit(".VSCODE/Taſks.json", true));
    }

    #[test]
    fn the_places_of_names_count() {
        let names = Names::new().root("/h/.claude/ws").free("/h/.claude").free("/tmp");
        assert!(names.is_free(b"/tmp/x") && names.is_free(b"/h/.claude/x"));
        assert!(!names.is_free(b"/h/.claude/ws/x") && !names.is_free(b"/tmpx/x"));
        assert_eq!(names.above(b"/h/.claude/ws/x"), 3);
        assert_eq!(names.above(b"/other"), 0);
    }

    #[test]
    fn what_a_directory_must_not_hold() {
        let parts: Vec<&[u8]> = parts_of(b"a/.github").collect();
        let inside = Names::new().continued(&parts, false);
        assert!(inside.contains(&PathBuf::from("workflows")), "{inside:?}");
        assert!(Names::new().continued(&[b"src"], false).is_empty());
    }
}
