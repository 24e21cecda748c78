//! What Codex was told to trust: `hooks.state` in `~/.codex/config.toml`, by the file, the event and
//! the place of each hook.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml_edit::{DocumentMut, Item, TableLike};

use super::{EVENTS, document, hooks_file};
use crate::agent::Agent;
use crate::install::{Change, Finding, Result, Surroundings, files, is_ours};

/// What is wrong with hooks that nobody has told Codex to trust.
pub(in crate::install) const UNTRUSTED: &str =
    "Codex was not told to trust the hooks: it skips them without a word";

pub(in crate::install) fn config_file(around: &Surroundings) -> PathBuf {
    around.home.join(".codex/config.toml")
}

/// The file that the trust is kept in, as it is now; `after` is what it holds once it is given.
pub(in crate::install) fn change(around: &Surroundings, before: Option<Vec<u8>>) -> Result<Change> {
    let path = config_file(around);
    let after = files::read(&path)?.unwrap_or_default();
    Ok(Change { path, before, after })
}

/// What Codex calls our hooks.
fn keys(around: &Surroundings) -> Vec<String> {
    let path = hooks_file(around);
    let bytes = files::read(&path).ok().flatten().unwrap_or_default();
    let said: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut keys = Vec::new();
    for event in EVENTS {
        let groups = said["hooks"][event].as_array().cloned().unwrap_or_default();
        for (group, hooks) in groups.iter().enumerate() {
            let hooks = hooks["hooks"].as_array().cloned().unwrap_or_default();
            for (place, hook) in hooks.iter().enumerate() {
                if hook["command"].as_str().is_some_and(|text| is_ours(Agent::Codex, text)) {
                    keys.push(format!("{}:{}:{group}:{place}", path.display(), snake(event)));
                }
            }
        }
    }
    keys
}

/// `PreToolUse` as `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut out = String::new();
    for sign in event.chars() {
        if sign.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(sign.to_ascii_lowercase());
    }
    out
}

fn state(config: &DocumentMut) -> Option<&dyn TableLike> {
    config.get("hooks")?.get("state")?.as_table_like()
}

/// Hooks of ours that Codex was never told to trust, or was told not to run.
pub(super) fn findings(around: &Surroundings, config: Option<&DocumentMut>) -> Vec<Finding> {
    let state = config.and_then(state);
    let known = |key: &str| state.and_then(|state| state.get(key));
    let trusts = |key: &String| known(key).is_some_and(|hook| hook.get("trusted_hash").is_some());
    let off = |key: &String| {
        known(key).and_then(|hook| hook.get("enabled")).and_then(Item::as_bool) == Some(false)
    };
    let keys = keys(around);
    let mut found = Vec::new();
    if keys.iter().any(off) {
        found.push(Finding {
            what: "Codex was told not to run a hook of wardkeep".to_owned(),
            mend: "start `codex`, type `/hooks`, and switch those of wardkeep on".to_owned(),
        });
    }
    if !keys.iter().all(trusts) {
        found.push(Finding {
            what: UNTRUSTED.to_owned(),
            mend:
                "run `wardkeep install codex`; or start `codex`, type `/hooks`, and trust those of \
                   wardkeep"
                    .to_owned(),
        });
    }
    found
}

/// The configuration without the trust that came with the installation.
pub(super) fn without(path: &Path, now: &[u8], kept: [&[u8]; 2]) -> Result<Vec<u8>> {
    let mut config = document(path, now)?;
    let [before, after] = kept.map(|bytes| document(path, bytes).unwrap_or_default());
    let had = |config: &DocumentMut, key: &str| {
        state(config).is_some_and(|state| state.contains_key(key))
    };
    let table = config.get_mut("hooks").and_then(|hooks| hooks.get_mut("state"));
    let Some(table) = table.and_then(Item::as_table_like_mut) else { return Ok(now.to_vec()) };
    let keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    for key in keys.iter().filter(|key| had(&after, key) && !had(&before, key)) {
        table.remove(key);
    }
    if table.is_empty()
        && state(&before).is_none()
        && let Some(hooks) = config.get_mut("hooks").and_then(Item::as_table_like_mut)
    {
        hooks.remove("state");
        if hooks.is_empty() {
            config.remove("hooks");
        }
    }
    Ok(config.to_string().into_bytes())
}
