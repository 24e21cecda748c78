//! Which files are protected unless the owner says more.

use std::path::{Path, PathBuf};

use crate::workspace::{MANIFEST_FILE, POLICY_FILE};

/// Never written by an agent's tools, whatever the tiers say.
pub const TOOL_LEVEL_PROTECTED: [&str; 3] = [POLICY_FILE, MANIFEST_FILE, "IDENTITY.md"];
/// The protect tier of a new workspace.
pub const DEFAULT_PROTECT: [&str; 5] =
    ["soulguard.json", "SOUL.md", "AGENTS.md", "IDENTITY.md", "HEARTBEAT.md"];
/// Where the agent puts its version of a protected file, in the workspace.
pub const STAGING_FOLDER: &str = ".soulguard/staging";

/// Settings, extensions and schedules of agents, below a workspace and below a home directory.
pub const SETTINGS_IN_FOLDERS: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude/plugins",
    ".claude.json",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/hooks",
    ".gemini/settings.json",
    ".gemini/extensions",
    ".copilot/hooks",
    ".copilot/settings.json",
    ".copilot/config.json",
    ".github/hooks",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".qwen/settings.json",
    ".qwen/extensions",
    ".openclaw/openclaw.json",
    ".openclaw/extensions",
    ".openclaw/cron",
    ".opencode/plugin",
    ".opencode/plugins",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    "opencode.json",
    "opencode.jsonc",
    ".config/opencode/plugin",
    ".config/opencode/plugins",
    ".config/opencode/config.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".cline/hooks",
    ".clinerules/hooks",
    ".windsurf/hooks.json",
    ".codeium/windsurf/hooks.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".config/localgpt/config.toml",
];

/// Settings for a whole machine.
pub const SETTINGS_ELSEWHERE: &[&str] = &[
    "/etc/claude-code",
    "/etc/codex",
    "/etc/gemini-cli",
    "/etc/opencode",
    "/etc/wardkeep",
    "/etc/github-copilot",
    "/etc/qwen-code",
    "/etc/cursor",
    "/etc/windsurf",
    "/Library/Application Support/ClaudeCode",
    "/Library/Application Support/GeminiCli",
    "/Library/Application Support/QwenCode",
    "/Library/Application Support/Cursor/hooks.json",
    "/Library/Application Support/Windsurf/hooks.json",
];

/// What is protected besides the policy, its manifest, `IDENTITY.md` and the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectLists {
    /// The protect tier: paths and globs (`*`, `?`, `**`) in the workspace.
    pub protect: Vec<String>,
    /// Settings of agents, in the workspace.
    pub workspace_settings: Vec<String>,
    /// Settings of agents, absolute: files or whole directories.
    pub settings: Vec<PathBuf>,
}

impl ProtectLists {
    /// The lists for a new workspace of a user with this home directory.
    #[must_use]
    pub fn with_home(home: Option<&Path>) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let below = |home: &Path| {
            SETTINGS_IN_FOLDERS.iter().map(|name| home.join(name)).collect::<Vec<_>>()
        };
        let mut settings: Vec<PathBuf> = SETTINGS_ELSEWHERE.iter().map(PathBuf::from).collect();
        settings.extend(home.map(below).unwrap_or_default());
        Self {
            protect: owned(&DEFAULT_PROTECT),
            workspace_settings: owned(SETTINGS_IN_FOLDERS),
            settings,
        }
    }

    /// Adds the settings in another home.
    pub fn add_home(&mut self, home: &Path) {
        let more = SETTINGS_IN_FOLDERS.iter().map(|name| home.join(name));
        self.settings.extend(more);
    }
}
