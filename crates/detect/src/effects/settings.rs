//! Variables and settings that decide what other programs do.

use super::args::split;
use super::walk::Doing;
use super::{Access, EffectKind};
use crate::shell::{Command, Word};

/// Variables of which a program is found, loaded, configured or watched by another.
const TELLING: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "HOME",
    "SHELL",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "PS4",
    "CDPATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "CARGO_HOME",
    "RUSTC_WRAPPER",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "TMPDIR",
    "ZDOTDIR",
    "DISABLE_AUTOUPDATER",
    "SUDO_ASKPASS",
    "LESSOPEN",
];
const TELLING_STARTS: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "NPM_CONFIG_",
    "npm_config_",
    "PIP_",
    "WARDKEEP_",
    "CLAUDE_",
    "ANTHROPIC_",
    "OPENAI_",
    "CODEX_",
    "GEMINI_",
    "COPILOT_",
    "OPENCLAW_",
    "LOCALGPT_",
    "XDG_",
];
const TELLING_ENDS: &[&str] = &["_PROXY", "_proxy", "_BASE_URL", "_API_BASE"];

fn is_telling(name: &str) -> bool {
    TELLING.contains(&name)
        || TELLING_STARTS.iter().any(|start| name.starts_with(start))
        || TELLING_ENDS.iter().any(|end| name.ends_with(end))
}

/// Assignments in front of a command, or alone.
pub(super) fn assigned(doing: &mut Doing<'_>, command: &Command) {
    for assignment in &command.assignments {
        set(doing, &assignment.name, assignment.value.clone());
        doing.mention(&assignment.value, super::MentionPlace::Word);
    }
}

/// `export`, `env` and the like.
pub(super) fn read(doing: &mut Doing<'_>, program: &str, words: &[Word]) {
    match program {
        "export" | "declare" | "typeset" | "readonly" | "local" | "env" | "sudo" | "doas" => {
            for word in words {
                let text = super::args::shown(word);
                let Some((name, _)) = text.split_once('=') else { continue };
                if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                    && let Some(value) = super::args::after(word, &format!("{name}="))
                {
                    set(doing, name, value);
                }
            }
        }
        "launchctl" | "systemctl" | "crontab" | "at" | "batch" => {
            let name = format!("schedule:{program}");
            let value = split(words, "", &[]).operands.first().cloned();
            doing.push(
                EffectKind::Setting { name, value: value.unwrap_or_else(|| Word::literal("")) },
                program != "systemctl",
            );
            if program == "crontab" {
                let args = split(words, "u", &[]);
                args.operands.iter().for_each(|file| doing.file(Access::Read, file.clone()));
            }
        }
        "npm" | "pnpm" | "yarn" | "pip" | "defaults" | "gsettings" => {
            let is = |word: &Word, text: &str| word.text.as_deref() == Some(text);
            if words.iter().any(|word| is(word, "config") || is(word, "write") || is(word, "set")) {
                let value = words.last().cloned().unwrap_or_default();
                let name = format!("config:{program}");
                doing.push(EffectKind::Setting { name, value }, true);
            }
        }
        _ => {}
    }
}

pub(super) fn set(doing: &mut Doing<'_>, name: &str, value: Word) {
    if is_telling(name) {
        doing.push(EffectKind::Setting { name: name.to_owned(), value }, true);
    }
}
