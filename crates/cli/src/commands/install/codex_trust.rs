//! Codex runs a hook only once it was told to trust it. `codex app-server` is asked which hooks there
//! are, one JSON text on a line, and told to trust those that are ours; it writes that down itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardkeep_agents::install::{InstallError, Plan};

/// How long it may take in all.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it may take to end.
const ENDING: Duration = Duration::from_secs(2);
/// Longest line that is read.
const MAX_LINE: u64 = 8 << 20;

/// Why Codex does not trust the hooks.
#[derive(Debug, thiserror::Error)]
pub(in crate::commands) enum TrustError {
    /// There is no `codex` to ask.
    #[error("no `codex` was found")]
    Absent,
    /// It does not do what it is asked for.
    #[error("{0}")]
    Failed(String),
}

impl From<InstallError> for TrustError {
    fn from(error: InstallError) -> Self {
        Self::Failed(error.to_string())
    }
}

type Result<T> = std::result::Result<T, TrustError>;

fn failed(text: impl Into<String>) -> TrustError {
    TrustError::Failed(text.into())
}

/// Tells Codex to trust the hooks of a plan that was written.
pub(in crate::commands) fn trust(plan: &Plan, home: &Path) -> Result<()> {
    let mut server = Server::start(home)?;
    let hooks = ours(&server.hooks(home)?, plan)?;
    let state: serde_json::Map<String, Value> = hooks
        .iter()
        .filter(|hook| !hook.trusted)
        .map(|hook| (hook.key.clone(), json!({ "trusted_hash": hook.hash })))
        .collect();
    if !state.is_empty() {
        let edit = json!({ "keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert" });
        server.ask("config/batchWrite", &json!({ "edits": [edit], "reloadUserConfig": true }))?;
    }
    let hooks = ours(&server.hooks(home)?, plan)?;
    match hooks.iter().all(|hook| hook.trusted) {
        true => Ok(()),
        false => Err(failed("Codex was told to trust the hooks, and does not")),
    }
}

/// Whether Codex trusts the hooks of a plan.
pub(in crate::commands) fn is_trusted(plan: &Plan, home: &Path) -> Result<bool> {
    let mut server = Server::start(home)?;
    Ok(ours(&server.hooks(home)?, plan)?.iter().all(|hook| hook.trusted))
}

struct Hook {
    key: String,
    hash: String,
    trusted: bool,
}

/// Those hooks of a list that are exactly ours; all of them must be there.
fn ours(list: &[Value], plan: &Plan) -> Result<Vec<Hook>> {
    let mut hooks = Vec::new();
    for command in &plan.commands {
        let wanted = command.words.last().map(String::as_str);
        let found = list.iter().find(|hook| hook["command"].as_str() == wanted);
        let found = found.ok_or_else(|| {
            failed("Codex does not see the hooks (is CODEX_HOME set, or are hooks off?)")
        })?;
        let text = |name: &str| found[name].as_str().map(str::to_owned);
        let (Some(key), Some(hash)) = (text("key"), text("currentHash")) else {
            return Err(failed("Codex lists hooks in a form that is not known"));
        };
        if found["enabled"].as_bool() == Some(false) {
            return Err(failed("Codex was told not to run a hook of wardkeep"));
        }
        let trusted = matches!(text("trustStatus").as_deref(), Some("trusted" | "managed"));
        hooks.push(Hook { key, hash, trusted });
    }
    Ok(hooks)
}

/// A running `codex app-server`.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    until: Instant,
    asked: u64,
}

impl Server {
    fn start(home: &Path) -> Result<Self> {
        let child = Command::new("codex")
            .arg("app-server")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(TrustError::Absent);
            }
            Err(error) => return Err(failed(format!("`codex` cannot be started ({error})"))),
        };
        let input = child.stdin.take();
        let output = child.stdout.take();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let Some(output) = output else { return };
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            while let Ok(1..) = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                if send.send(text).is_err() {
                    return;
                }
            }
        });
        let mut server = Self { child, input, lines, until: Instant::now() + PATIENCE, asked: 0 };
        let client = json!({
            "name": "wardkeep", "title": "wardkeep", "version": env!("CARGO_PKG_VERSION"),
        });
        server.ask("initialize", &json!({ "clientInfo": client }))?;
        server.say(&json!({ "jsonrpc": "2.0", "method": "initialized" }))?;
        Ok(server)
    }

    fn say(&mut self, text: &Value) -> Result<()> {
        let mut line = text.to_string();
        line.push('\n');
        let input = self.input.as_mut().ok_or_else(|| failed("`codex` takes no input"))?;
        input
            .write_all(line.as_bytes())
            .and_then(|()| input.flush())
            .map_err(|error| failed(format!("`codex app-server` does not listen ({error})")))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(left)
                .map_err(|_| failed("`codex app-server` gave no answer; it may be too old"))?;
            let Ok(mut answer) = serde_json::from_str::<Value>(&line) else { continue };
            if answer["id"].as_u64() != Some(id) || answer.get("method").is_some() {
                continue;
            }
            if let Some(error) = answer.get("error") {
                let why = error["message"].as_str().unwrap_or("no reason");
                return Err(failed(format!("Codex refuses `{method}`: {why}")));
            }
            return Ok(answer["result"].take());
        }
    }

    fn hooks(&mut self, home: &Path) -> Result<Vec<Value>> {
        let answer = self.ask("hooks/list", &json!({ "cwds": [home] }))?;
        let list = answer["data"].as_array().into_iter().flatten();
        Ok(list.filter_map(|place| place["hooks"].as_array()).flatten().cloned().collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends by itself when nobody speaks any more; what it has started ends with it.
        self.input = None;
        let until = Instant::now() + ENDING;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
