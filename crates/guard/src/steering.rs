//! Files that some program obeys by itself: what is written there is done later, by whoever starts it.

use std::path::Path;

use wardkeep_detect::names::folded_components;

/// Instructions that agents read by themselves, in any folder.
const INSTRUCTIONS: &[&str] = &[
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agents.override.md",
    "gemini.md",
    "qwen.md",
    "opencode.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "copilot-instructions.md",
    ".envrc",
];

/// Folders whose files agents and git obey, wherever they are.
const FOLDERS: &[&[&str]] = &[
    &[".git", "hooks"],
    &[".husky"],
    &[".claude", "commands"],
    &[".claude", "skills"],
    &[".claude", "agents"],
    &[".claude", "rules"],
    &[".claude", "output-styles"],
    &[".codex", "prompts"],
    &[".codex", "skills"],
    &[".codex", "rules"],
    &[".gemini", "commands"],
    &[".gemini", "skills"],
    &[".qwen", "commands"],
    &[".qwen", "skills"],
    &[".opencode", "command"],
    &[".opencode", "commands"],
    &[".opencode", "agent"],
    &[".opencode", "agents"],
    &[".opencode", "skill"],
    &[".opencode", "skills"],
    &[".openclaw", "skills"],
    &[".cursor", "rules"],
    &[".cursor", "commands"],
    &[".windsurf", "rules"],
    &[".clinerules"],
    &[".agents", "skills"],
    &[".git", "config"],
    &[".git", "config.worktree"],
    &[".vscode", "tasks.json"],
];

/// What a shell, a session or a scheduler runs by itself, below a home directory: files and folders.
const AT_HOME: &[&[&str]] = &[
    &[".bashrc"],
    &[".bash_profile"],
    &[".bash_login"],
    &[".bash_logout"],
    &[".bash_aliases"],
    &[".profile"],
    &[".zshrc"],
    &[".zshenv"],
    &[".zprofile"],
    &[".zlogin"],
    &[".zlogout"],
    &[".xprofile"],
    &[".xsessionrc"],
    &[".pam_environment"],
    &[".config", "fish"],
    &[".config", "autostart"],
    &[".config", "systemd", "user"],
    &[".config", "environment.d"],
    &[".config", "git"],
    &[".gitconfig"],
    &[".vimrc"],
    &[".local", "bin"],
    &[".ssh", "authorized_keys"],
    &[".ssh", "rc"],
    &[".ssh", "config"],
];

/// Whether something obeys the file at this path, which is the real one.
///
/// ```
/// use std::path::Path;
/// use wardkeep_guard::steering::is_obeyed;
/// let home = Some(Path::new("/home/ann"));
/// assert!(is_obeyed(Path::new("/home/ann/.bashrc"), home));
/// assert!(is_obeyed(Path::new("/w/.git/hooks/pre-commit"), home));
/// assert!(!is_obeyed(Path::new("/w/docs/bashrc.md"), home));
/// ```
#[must_use]
pub fn is_obeyed(path: &Path, home: Option<&Path>) -> bool {
    let parts = folded_components(path);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let Some(name) = parts.last() else { return false };
    if INSTRUCTIONS.contains(name) {
        return true;
    }
    let within = |folder: &&[&str]| parts.windows(folder.len()).any(|some| some == *folder);
    if FOLDERS.iter().any(within) {
        return true;
    }
    // Of submodules and worktrees, too.
    let git = parts.iter().position(|part| *part == ".git");
    if git.is_some_and(|at| parts[at..].contains(&"hooks")) {
        return true;
    }
    let Some(home) = home else { return false };
    let home = folded_components(home);
    let inside = parts.len() > home.len() && parts.iter().zip(&home).all(|(a, b)| a == b);
    inside && AT_HOME.iter().any(|names| parts[home.len()..].starts_with(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_known_by_its_place() {
        let home = Some(Path::new("/home/ann"));
        for path in [
            "/w/CLAUDE.md",
            "/w/sub/GEMINI.md",
            "/w/.claude/skills/x/SKILL.md",
            "/w/.Git/Hooks/post-checkout",
            "/w/.git/modules/a/hooks/post-checkout",
            "/w/.git/config",
            "/home/ann/.gitconfig",
            "/home/ann/.profile",
            "/home/ann/.config/systemd/user/x.service",
            "/home/ann/.ssh/authorized_keys",
            "/home/ann/.claude/commands/x.md",
        ] {
            assert!(is_obeyed(Path::new(path), home), "{path}");
        }
        for path in [
            "/w/.profile",
            "/w/src/claude.rs",
            "/w/skills/x/SKILL.md",
            "/w/git/hooks/x",
            "/home/ann/notes.md",
            "/home/annette/.bashrc",
            "/home/ann/.ssh/known_hosts",
            "/home/ann",
            "/",
        ] {
            assert!(!is_obeyed(Path::new(path), home), "{path}");
        }
        assert!(!is_obeyed(Path::new("/home/ann/.bashrc"), None));
    }
}
