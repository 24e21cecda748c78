//! An agent's base URL, led to the model API proxy: the same files, kept and put back like the rest.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use jsonc_parser::cst::CstObject;
use serde_json::Value;

use super::json::{Dialect, object, parse, set, text_of, value_of};
use super::{Change, Finding, InstallError, Plan, Result, Surroundings, files, kept};
use crate::agent::Agent;

/// How long the proxy may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where an agent's settings name a model API: objects on the way, the member, the upstream, and what the
/// agent expects behind it.
type Place = (&'static [&'static str], &'static str, &'static str, &'static str);

const CLAUDE: &[Place] = &[(&["env"], "ANTHROPIC_BASE_URL", "anthropic", "")];
const OPENCODE: &[Place] = &[
    (&["provider", "anthropic", "options"], "baseURL", "anthropic", "/v1"),
    (&["provider", "openai", "options"], "baseURL", "openai", "/v1"),
];
/// Gemini CLI reads variables from a file of its own.
const GEMINI: &str = "GOOGLE_GEMINI_BASE_URL";

/// Agents whose base URL can be led to the proxy.
pub const LED: [Agent; 3] = [Agent::ClaudeCode, Agent::GeminiCli, Agent::OpenCode];

/// Adds to a plan what leads the agent to the proxy, where it was told to.
pub(super) fn add(plan: &mut Plan, around: &Surroundings) -> Result<()> {
    let Some(url) = kept::proxy(plan.agent, &around.state) else { return Ok(()) };
    match plan.agent {
        Agent::ClaudeCode => settings(plan, "settings.json", CLAUDE, &url),
        Agent::OpenCode => settings(plan, "opencode.json", OPENCODE, &url),
        Agent::GeminiCli => {
            let path = around.home.join(".gemini/.env");
            let before = files::read(&path)?;
            let text = String::from_utf8(before.clone().unwrap_or_default())
                .map_err(|_| InstallError::unusable(&path, "is no text"))?;
            let own = format!("{GEMINI}={url}/gemini");
            let mut lines: Vec<&str> = text.lines().filter(|line| !names(line)).collect();
            lines.push(&own);
            plan.changes.push(Change {
                path,
                before,
                after: (lines.join("\n") + "\n").into_bytes(),
            });
            Ok(())
        }
        _ => Ok(()),
    }
}

fn names(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    line.split_once('=').is_some_and(|(name, _)| name.trim() == GEMINI)
}

fn settings(plan: &mut Plan, name: &str, places: &[Place], url: &str) -> Result<()> {
    let is_file = |change: &&mut Change| {
        let file = change.path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        file.trim_end_matches('c').ends_with(name.trim_end_matches('c'))
    };
    let Some(change) = plan.changes.iter_mut().find(is_file) else { return Ok(()) };
    let root = parse(&change.path, &change.after, Dialect::Loose)?;
    let Some(settings) = root.object_value() else { return Ok(()) };
    for (way, member, upstream, behind) in places {
        let mut place = settings.clone();
        for step in *way {
            place = object(&change.path, &place, step)?;
        }
        set(&change.path, &place, member, &Value::from(format!("{url}/{upstream}{behind}")))?;
    }
    change.after = text_of(&root, Some(&change.after));
    Ok(())
}

/// The file of settings without a base URL of ours, whatever else it holds by now.
pub(super) fn without(agent: Agent, path: &Path, now: Vec<u8>) -> Result<Vec<u8>> {
    let places = match agent {
        Agent::ClaudeCode => CLAUDE,
        Agent::OpenCode => OPENCODE,
        Agent::GeminiCli if path.ends_with(".gemini/.env") => {
            let text = String::from_utf8_lossy(&now);
            let rest = text.lines().filter(|line| !(names(line) && is_ours(line, "gemini", "")));
            return Ok(rest.map(|line| format!("{line}\n")).collect::<String>().into_bytes());
        }
        _ => return Ok(now),
    };
    let root = parse(path, &now, Dialect::Loose)?;
    let Some(settings) = root.object_value() else { return Ok(now) };
    for (way, member, upstream, behind) in places {
        let place = way.iter().try_fold(settings.clone(), |place, step| place.object_value(step));
        let found = place.and_then(|place| place.get(member));
        let value = found.as_ref().and_then(|prop| value_of(&prop.value()?));
        if let (Some(prop), Some(Value::String(text))) = (found, value)
            && is_ours(&text, upstream, behind)
        {
            prop.remove();
        }
    }
    Ok(root.to_string().into_bytes())
}

/// Whether a base URL is one that leads to a proxy of ours.
fn is_ours(text: &str, upstream: &str, behind: &str) -> bool {
    text.contains("http://127.0.0.1:") && text.ends_with(&format!("/{upstream}{behind}"))
}

/// Whether the base URL in an agent's variables is the one that was put there.
pub(super) fn is_led(
    agent: Agent,
    around: &Surroundings,
    variables: &CstObject,
    name: &str,
) -> bool {
    let Some(url) = kept::proxy(agent, &around.state) else { return false };
    let value = variables.get(name).and_then(|prop| value_of(&prop.value()?));
    value == Some(Value::from(format!("{url}/anthropic")))
}

/// What keeps an agent that is led to the proxy from reaching it.
pub(super) fn unreachable(agent: Agent, around: &Surroundings) -> Vec<Finding> {
    let Some(url) = kept::proxy(agent, &around.state) else { return Vec::new() };
    let place = url.strip_prefix("http://").unwrap_or(&url);
    let place = place.split('/').next().unwrap_or_default();
    let addresses = place.to_socket_addrs().into_iter().flatten();
    if addresses.into_iter().any(|one| TcpStream::connect_timeout(&one, PATIENCE).is_ok()) {
        return Vec::new();
    }
    let what =
        format!("{agent} is led to the model API proxy at `{url}`, and nobody answers there");
    vec![Finding { what, mend: "start `wardkeep proxy`".to_owned() }]
}
