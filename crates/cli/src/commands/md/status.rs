//! `wardkeep md status`

use std::fmt;
use std::path::Path;

use serde::Serialize;
use wardkeep_monitor::policy::compare;
use wardkeep_monitor::resolve::protected_set;
use wardkeep_policy::audit::{Chain, scan};
use wardkeep_policy::protect::ProtectLists;
use wardkeep_policy::signed_set::SetState;
use wardkeep_policy::verify::State;
use wardkeep_policy::workspace::Workspace;

use super::verify::minutes;
use super::{Place, diff, next_step, policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows how the policy stands: signature, key, audit log, protected files
///
/// Everything is read anew; nothing is written. An edit that is not signed yet is shown as a
/// difference to the signed text. Exit codes as `wardkeep md verify`, and 15 if only the audit log
/// does not hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Answer {
    policy: String,
    exists: bool,
    state: &'static str,
    reason: Option<&'static str>,
    signed_at: Option<String>,
    device_key: String,
    audit_entries: u64,
    audit_chain: &'static str,
    audit_agrees: bool,
    config: &'static str,
    protected: Vec<String>,
    protected_by_system: u64,
    pending: bool,
    strict_policy: bool,
    disable_policy: bool,
    disable_suffix: bool,
    warnings: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let store = policy_store(context)?;
    let verification = store.inspect(&workspace);
    let settings = store.settings();
    let switches = &settings.switches;
    let audit = scan(&store.audit_path(), |_| {});
    let path = shown(context, &workspace.policy_path());
    let exists = verification.state != State::Missing;
    let signed_at = verification.manifest.as_ref().map(|manifest| manifest.signed_at.clone());
    let signature = match (verification.state, &signed_at) {
        (State::Valid, Some(at)) => {
            Line::default().good("Valid").plain(format!(" (signed {})", minutes(at)))
        }
        (State::Unsigned, _) => Line::from("Not signed"),
        (State::Missing, _) => Line::from("None"),
        (state, _) => Line::default().bad(match state {
            State::TamperDetected => "TAMPERED",
            State::ManifestCorrupted => "Manifest corrupted",
            _ => "Suspicious content",
        }),
    };
    let device_key = match store.key() {
        Ok(_) => "Present".to_owned(),
        Err(error) => format!("Not usable: {error}"),
    };
    let (entries, chain) = match &audit {
        Ok(summary) => (summary.lines, summary.chain),
        Err(_) => (0, Chain::Broken),
    };
    // A log that was cut or written anew has a sound chain: only the journal tells.
    let agrees = match context.open_reader() {
        Ok(reader) => compare(reader.folder(), &store.audit_path())
            .is_ok_and(|compared| compared.differences.agrees()),
        Err(_) => entries == 0,
    };
    let log = match &audit {
        Ok(_) => {
            let unit = if entries == 1 { "entry" } else { "entries" };
            let journal = if agrees { "" } else { ", not what the journal has" };
            format!("{entries} {unit}, chain {}{journal}", super::audit::chain_word(chain))
        }
        Err(error) => error.to_string(),
    };
    let protection = Protection::of(context, &workspace, store.state())?;
    context.ui.answer("Security Status:");
    let row = |name: &str, value: Line| vec![Line::from(name.to_owned()), value];
    let there = if exists { "exists" } else { "missing" };
    context.ui.answer_table(&[
        row("Policy:", Line::from(format!("{path} ({there})"))),
        row("Signature:", signature),
        row("Device Key:", Line::from(device_key.clone())),
        row("Audit Log:", Line::from(log)),
        row(
            "Config:",
            Line::from(
                if settings.set.files.is_empty() && settings.set.state == SetState::Unsigned {
                    "none"
                } else {
                    settings.set.state.name()
                },
            ),
        ),
        row("Protected:", Line::from(protection.to_string())),
    ]);
    let pending =
        verification.state != State::Valid && show_pending(context, &store, &verification);
    let mut warnings = verification.warnings(context.tool);
    warnings.extend(switches.warnings(context.tool));
    warnings.iter().for_each(|warning| context.ui.fault(warning.as_str()));
    if let Some(next) = next_step(verification.state, context.tool) {
        context.ui.hint(&next);
    }
    if !agrees {
        let tool = context.tool;
        context.ui.hint(&format!("`{tool} md audit` shows what was cut off or rewritten"));
    }
    context.ui.note(
        "the agent runs as the same user: the key is out of its reach only under `wardkeep run` or as another user",
    );
    let exit = match Exit::from(verification.state) {
        Exit::Success if chain != Chain::Intact || !agrees => Exit::AuditBroken,
        exit => exit,
    };
    let answer = Answer {
        policy: workspace.policy_path().display().to_string(),
        exists,
        state: verification.state.name(),
        reason: verification.reason.as_ref().map(wardkeep_policy::verify::Reason::word),
        signed_at,
        device_key,
        audit_entries: entries,
        audit_chain: super::audit::chain_word(chain),
        audit_agrees: agrees,
        config: settings.set.state.name(),
        protected: protection.files,
        protected_by_system: protection.by_system,
        pending,
        strict_policy: switches.strict_policy,
        disable_policy: switches.disable_policy,
        disable_suffix: switches.disable_suffix,
        warnings,
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}

/// The protected files that exist, and how many of them the system itself keeps from this user.
struct Protection {
    files: Vec<String>,
    by_system: u64,
}

impl Protection {
    fn of(context: &Context, workspace: &Workspace, state: &Path) -> Result<Self, CliError> {
        let lists = ProtectLists::with_home(context.home().as_deref());
        let mut protection = Self { files: Vec::new(), by_system: 0 };
        // Without a state directory there is nothing of it to protect.
        let state = if state.is_dir() { state } else { workspace.path() };
        for path in protected_set(workspace.path(), state, &lists)?.candidates() {
            if !path.starts_with(workspace.path()) || path.symlink_metadata().is_err() {
                continue;
            }
            let writable = rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).is_ok();
            protection.by_system += u64::from(!writable);
            let name = path.strip_prefix(workspace.path()).unwrap_or(&path);
            protection.files.push(name.display().to_string());
        }
        protection.files.sort();
        protection.files.dedup();
        Ok(protection)
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.len();
        let unit = if files == 1 { "file" } else { "files" };
        write!(formatter, "{files} {unit} write-blocked at tool level")?;
        match self.by_system {
            0 => formatter.write_str(", none by the system"),
            many => write!(formatter, ", {many} of them by the system"),
        }
    }
}

/// Shows an edit that is not signed, against the text that was; says whether there is one.
fn show_pending(
    context: &mut Context,
    store: &wardkeep_policy::store::PolicyStore,
    verification: &wardkeep_policy::verify::Verification,
) -> bool {
    let Some(before) = store.signed_text(&verification.memory) else { return false };
    let Some(after) = &verification.bytes else { return false };
    if before == *after {
        return false;
    }
    context.ui.say("  Not signed yet:");
    diff::show(context, &String::from_utf8_lossy(&before), &String::from_utf8_lossy(after));
    true
}
