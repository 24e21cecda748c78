//! OpenClaw: `~/.openclaw/openclaw.json`, JSON5, which names the folder of our plugin, switches it on,
//! and asks us before a skill or plugin is installed.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstObject;
use serde_json::{Value, json};

use super::json::{Dialect, array, input, object, parse, set, text_of, texts_in};
use super::{Change, InstallError, Plan, Result, Surroundings, files, plugin};
use crate::agent::Agent;

const AGENT: Agent = Agent::OpenClaw;
const ID: &str = "wardkeep";
const FILES: plugin::Files = &[
    ("index.ts", include_str!("../../../../plugins/openclaw/index.ts")),
    ("package.json", include_str!("../../../../plugins/openclaw/package.json")),
    ("openclaw.plugin.json", include_str!("../../../../plugins/openclaw/openclaw.plugin.json")),
];
/// What is asked, the call of a tool first.
const EVENTS: &[&str] = &[
    "before_tool_call",
    "tool_result",
    "before_agent_run",
    "message_sending",
    "session_start",
    "session_end",
    "before_install",
    INSTALL_POLICY,
];
/// What OpenClaw itself asks before it installs something.
const INSTALL_POLICY: &str = "install_policy";
/// Milliseconds; the hook itself answers sooner.
const TIMEOUT: u64 = 10_000;

fn path(around: &Surroundings) -> PathBuf {
    around.home.join(".openclaw/openclaw.json")
}

/// OpenClaw has no settings of a whole machine.
fn of_user(around: &Surroundings) -> Surroundings {
    Surroundings { machine: None, ..around.clone() }
}

pub(super) fn plan(around: &Surroundings) -> Result<Plan> {
    let around = &of_user(around);
    let mut changes = plugin::changes(AGENT, around, FILES)?;
    let path = path(around);
    let before = files::read(&path)?;
    let root = parse(&path, before.as_deref().unwrap_or_default(), Dialect::Five)?;
    let settings = root
        .object_value_or_create()
        .ok_or_else(|| InstallError::unusable(&path, "holds something else than an object"))?;
    let plugins = object(&path, &settings, "plugins")?;
    if let Some(what) = kept_out(&plugins) {
        return Err(InstallError::unusable(&path, what));
    }
    let folder = plugin::folder(AGENT, around).to_string_lossy().into_owned();
    let load = object(&path, &plugins, "load")?;
    let paths = array(&path, &load, "paths")?;
    for (text, place) in texts_in(&paths) {
        if text != folder && plugin::is_folder(AGENT, &text) {
            place.remove();
        }
    }
    if !texts_in(&paths).iter().any(|(text, _)| *text == folder) {
        paths.append(input(&Value::from(folder)));
    }
    // Where there is a list of those who may, it must name us.
    if plugins.get("allow").is_some() {
        let allowed = array(&path, &plugins, "allow")?;
        if !texts_in(&allowed).iter().any(|(text, _)| text == ID) {
            allowed.append(input(&Value::from(ID)));
        }
    }
    let entries = object(&path, &plugins, "entries")?;
    set(&path, &entries, ID, &entry())?;
    let security = object(&path, &settings, "security")?;
    // What the owner has set there is the owner's.
    if security.get("installPolicy").is_none() || asks_us(&security) {
        set(&path, &security, "installPolicy", &install_policy(around))?;
    }
    let after = text_of(&root, before.as_deref());
    changes.push(Change { path, before, after });
    let commands = plugin::commands(AGENT, around, EVENTS);
    Ok(Plan { agent: AGENT, changes, commands, left: Vec::new() })
}

/// The plugin is on, and may see what is said: without that, prompts are not judged.
fn entry() -> Value {
    json!({ "enabled": true, "hooks": { "allowConversationAccess": true } })
}

fn install_policy(around: &Surroundings) -> Value {
    let words = plugin::words(AGENT, Some(INSTALL_POLICY), around);
    let (program, rest) = words.split_first().map_or(("", &[][..]), |(p, rest)| (p.as_str(), rest));
    json!({
        "enabled": true,
        "exec": {
            "source": "exec",
            "command": program,
            "args": rest,
            "timeoutMs": TIMEOUT,
            "passEnv": ["HOME", "PATH", "XDG_RUNTIME_DIR"],
        },
    })
}

/// What keeps every plugin, or ours, from being loaded.
fn kept_out(plugins: &CstObject) -> Option<&'static str> {
    let off = plugins.get("enabled").and_then(|prop| prop.value()?.as_boolean_lit());
    if off.is_some_and(|literal| !literal.value()) {
        return Some("switches all plugins off (`plugins.enabled`)");
    }
    let denied = plugins.array_value("deny").map(|list| texts_in(&list)).unwrap_or_default();
    denied
        .iter()
        .any(|(text, _)| text == ID)
        .then_some("keeps the plugin of wardkeep out (`plugins.deny`)")
}

fn asks_us(security: &CstObject) -> bool {
    let exec =
        security.object_value("installPolicy").and_then(|policy| policy.object_value("exec"));
    let words = exec.and_then(|exec| exec.array_value("args")).map(|list| texts_in(&list));
    words.unwrap_or_default().iter().any(|(word, _)| word == INSTALL_POLICY)
}

/// The settings without what is ours.
pub(super) fn without(path: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    let root = parse(path, bytes, Dialect::Five)?;
    let Some(settings) = root.object_value() else { return Ok(bytes.to_vec()) };
    if let Some(plugins) = settings.object_value("plugins") {
        let paths = plugins.object_value("load").and_then(|load| load.array_value("paths"));
        for (text, place) in paths.map(|list| texts_in(&list)).unwrap_or_default() {
            if Path::new(&text).ends_with(Path::new("plugins").join(AGENT.name())) {
                place.remove();
            }
        }
        let allowed = plugins.array_value("allow").map(|list| texts_in(&list)).unwrap_or_default();
        for (_, place) in allowed.into_iter().filter(|(text, _)| text == ID) {
            place.remove();
        }
        if let Some(entry) = plugins.object_value("entries").and_then(|entries| entries.get(ID)) {
            entry.remove();
        }
    }
    if let Some(security) = settings.object_value("security")
        && asks_us(&security)
        && let Some(policy) = security.get("installPolicy")
    {
        policy.remove();
    }
    Ok(root.to_string().into_bytes())
}
