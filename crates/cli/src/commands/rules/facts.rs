//! Facts from flags, from JSON, or from a record.

use std::path::Path;

use serde_json::Value;
use wardkeep_evidence::record::Payload;
use wardkeep_guard::rules::form::{FactsForm, FileForm, NetworkForm};
use wardkeep_monitor::journal::parse_line;

use super::read;
use crate::commands::evidence::resolve::find_record;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Facts on the command line.
#[derive(Debug, clap::Args)]
pub(super) struct Flags {
    /// On whose behalf: SYS, USER, TOOL, SKILL, WEB, CHANNEL, EXTERNAL
    #[arg(long)]
    principal: Option<String>,
    /// Where: ControlPlane, DurableMemory, ConversationIO, FileSystem, NetworkIO, SandboxCompliance, SkillInstall
    #[arg(long)]
    surface: Option<String>,
    /// What: start, receive, reply, call, return, read, write, delete, rename, send, change, install, trust
    #[arg(long)]
    act: Option<String>,
    /// To what: a path, a URL, a key, the name of a tool or skill
    #[arg(long)]
    subject: Option<String>,
    /// Taint of the content: UNTRUSTED, INJECTION_SUSPECT, WEB_DERIVED …
    #[arg(long, value_delimiter = ',', value_name = "TAINT")]
    direct: Vec<String>,
    /// Taint of what the session has seen
    #[arg(long, value_delimiter = ',', value_name = "TAINT")]
    ambient: Vec<String>,
    /// What a scan of the content said: clean, suspicious, block
    #[arg(long, value_name = "VERDICT")]
    scan: Option<String>,
    /// How the file is kept from being written: none, watched, protected, sealed
    #[arg(long)]
    protection: Option<String>,
    /// How the file is kept from being read: none, tainted, denied, sealed
    #[arg(long)]
    sensitivity: Option<String>,
    /// Bytes that are sent
    #[arg(long, value_name = "BYTES")]
    payload: Option<u64>,
    /// The owner allows the host by name
    #[arg(long)]
    allowed: bool,
    /// What was made of the skill: clean, doubtful, malicious
    #[arg(long)]
    skill: Option<String>,
    /// What was made of the confinement: full, partial, none
    #[arg(long)]
    sandbox: Option<String>,
    /// The owner has approved exactly this
    #[arg(long)]
    approved: bool,
}

impl Flags {
    pub(super) fn form(self) -> FactsForm {
        let file = self.protection.is_some() || self.sensitivity.is_some();
        let network = self.payload.is_some() || self.allowed;
        FactsForm {
            principal: self.principal.unwrap_or_default(),
            surface: self.surface.unwrap_or_default(),
            act: self.act.unwrap_or_default(),
            subject: self.subject.unwrap_or_default(),
            direct: self.direct,
            ambient: self.ambient,
            scan: self.scan,
            approved: self.approved,
            file: file.then(|| FileForm {
                protection: self.protection,
                sensitivity: self.sensitivity,
                ..FileForm::default()
            }),
            network: network.then(|| NetworkForm {
                payload: self.payload.unwrap_or(0),
                allowed: self.allowed,
                ..NetworkForm::default()
            }),
            skill: self.skill,
            sandbox: self.sandbox,
            ..FactsForm::default()
        }
    }
}

/// Facts from a file with JSON.
pub(super) fn from_json(path: &Path) -> Result<FactsForm, CliError> {
    serde_json::from_slice(&read(path)?).map_err(|error| {
        CliError::new(
            Exit::Unreadable,
            format!("`{}` holds no facts: {error}", path.display()),
            "docs/rules.md names the facts",
        )
    })
}

/// What a record says of a decision.
pub(super) struct Recorded {
    pub(super) id: String,
    pub(super) form: FactsForm,
    pub(super) verdict: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) digest: Option<String>,
    /// Facts that it does not tell.
    pub(super) untold: Vec<&'static str>,
}

/// Members of a decision's record that are facts.
const MEMBERS: [&str; 13] = [
    "surface",
    "act",
    "subject",
    "direct",
    "ambient",
    "scan",
    "categories",
    "approved",
    "file",
    "network",
    "skill",
    "sandbox",
    "open_proxy",
];

/// A member without what is in it and is no fact.
fn known(name: &str, value: &Value) -> Value {
    let form = match name {
        "file" => serde_json::to_value(FileForm::default()),
        "network" => serde_json::to_value(NetworkForm::default()),
        _ => return value.clone(),
    };
    let (Ok(Value::Object(form)), Value::Object(value)) = (form, value) else {
        return value.clone();
    };
    let members = value.iter().filter(|(name, _)| form.contains_key(*name));
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Facts from a record of the journal.
pub(super) fn from_record(context: &Context, text: &str) -> Result<Recorded, CliError> {
    let (id, line) = find_record(&context.open_reader()?, text)?;
    let none = |why: &str| {
        CliError::refused(
            format!("the record {id} {why}"),
            "give the record of a decision: see `wardkeep log`",
        )
    };
    let line = parse_line(&line).ok_or_else(|| none("cannot be read"))?;
    let Payload::Inline(inline) = line.record.payload else { return Err(none("is no decision")) };
    let inline = Value::from(inline);
    if inline["kind"] != "decision" {
        return Err(none("is no decision"));
    }
    let mut facts = serde_json::Map::new();
    facts.insert("principal".to_owned(), Value::from(line.record.principal.as_str()));
    let mut untold = Vec::new();
    for name in MEMBERS {
        match inline.get(name) {
            Some(Value::Null) | None => untold.push(name),
            Some(value) => {
                facts.insert(name.to_owned(), known(name, value));
            }
        }
    }
    untold.retain(|name| matches!(*name, "scan" | "categories" | "approved" | "open_proxy"));
    let form = serde_json::from_value(Value::Object(facts))
        .map_err(|error| none(&format!("holds other facts than are known here: {error}")))?;
    let text = |name: &str| inline[name].as_str().map(str::to_owned);
    let (verdict, rule, digest) = (text("verdict"), text("rule"), text("digest"));
    Ok(Recorded { id: id.to_string(), form, verdict, rule, digest, untold })
}
