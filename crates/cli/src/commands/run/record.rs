//! What is written down of a run: before it starts, and when it ends.

use std::path::Path;

use wardkeep_evidence::json::{self, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_monitor::store::{Event, Store};
use wardkeep_sandbox::{Applied, Denial, DenialKind, Ended};

use crate::context::Context;
use crate::error::CliError;

/// What the record of a run's end is called.
pub(super) const ENDED: &str = "confinement-ended";

/// The record of a run.
pub(super) struct Record {
    store: Store,
    workspace: String,
    id: wardkeep_evidence::hash::RecordId,
}

/// Whether nothing keeps the program to its number of processes: the kernel does not hold root to it.
pub(super) fn does_not_keep_processes(applied: &Applied) -> bool {
    !applied.control_group_limits.contains(&"processes") && rustix::process::geteuid().is_root()
}

/// Whether nothing keeps the program to its share of the processors.
pub(super) fn does_not_keep_cpus(applied: &Applied) -> bool {
    applied.limits.cpus.is_some() && !applied.control_group_limits.contains(&"cpus")
}

/// Writes down what will be in force. When this returns, it is on disk.
pub(super) fn begin(
    context: &Context,
    workspace: &Path,
    profile: &str,
    applied: &Applied,
) -> Result<Record, CliError> {
    let store = context.open_store()?;
    let workspace = workspace.display().to_string();
    let mut content = content_of("confinement", applied)?;
    content["profile"] = profile.into();
    let unkept =
        [("processes", does_not_keep_processes(applied)), ("cpus", does_not_keep_cpus(applied))];
    let unkept: Vec<_> = unkept.iter().filter(|(_, so)| *so).map(|(limit, _)| *limit).collect();
    if !unkept.is_empty() {
        content["unkept"] = serde_json::json!(unkept);
    }
    let id = append(&store, &workspace, &content, Vec::new())?;
    Ok(Record { store, workspace, id })
}

impl Record {
    /// Nothing was started.
    pub(super) fn failed(&self, error: &str) -> Result<(), CliError> {
        self.add(&serde_json::json!({
            "kind": "confinement-failed", "v": 1, "error": error,
        }))
    }

    /// Less is in force than was thought, by leave.
    pub(super) fn changed(&self, applied: &Applied) -> Result<(), CliError> {
        self.add(&content_of("confinement-degraded", applied)?)
    }

    /// Something was kept from it, while it runs.
    pub(super) fn denied(&self, denial: &Denial) -> Result<(), CliError> {
        let severity = if denial.kind == DenialKind::Masked { "INFO" } else { "MEDIUM" };
        self.add(&serde_json::json!({
            "kind": "alert", "v": 1, "alert": "confinement-denied", "category": "SANDBOX",
            "severity": severity, "blocked": true, "subject": denial.path, "denial": denial,
            "message": format!("a confined program was kept from: {denial}"),
            "suggestion": denial.how_to_allow(),
        }))
    }

    /// The owner was asked about a name.
    pub(super) fn answered(&self, denial: &Denial, answer: &str, by: &str) -> Result<(), CliError> {
        self.add(&serde_json::json!({
            "kind": "confinement-asked", "v": 1, "subject": denial.path, "denial": denial,
            "answer": answer, "by": by,
        }))
    }

    /// It is over.
    pub(super) fn ended(&self, ended: &Ended, hosts: &[String]) -> Result<(), CliError> {
        let executing = ended.repositories.iter().filter(|one| !one.executes.is_empty());
        let executing: Vec<_> = executing
            .map(|one| serde_json::json!({ "path": one.path, "executes": one.executes }))
            .collect();
        let holding = ended.repositories.iter().filter(|one| !one.holds.is_empty() || one.replaces);
        let holding: Vec<_> = holding
            .map(|one| serde_json::json!({ "path": one.path, "holds": one.holds, "replaces": one.replaces }))
            .collect();
        self.add(&serde_json::json!({
            "kind": ENDED, "v": 1, "code": ended.code, "signal": ended.signal,
            "timed_out": ended.timed_out, "stuck": ended.stuck, "untold": ended.untold, "refused": ended.refused, "denials": ended.denials, "hosts": hosts,
            "repositories": ended.repositories.iter().map(|one| &one.path).collect::<Vec<_>>(),
            "repositories_count": ended.repositories.len(), "executing": executing,
            "holding": holding, "links": ended.links,
        }))
    }

    fn add(&self, content: &serde_json::Value) -> Result<(), CliError> {
        append(&self.store, &self.workspace, content, vec![self.id]).map(drop)
    }
}

fn content_of(kind: &str, applied: &Applied) -> Result<serde_json::Value, CliError> {
    let confinement = serde_json::to_value(applied).map_err(|error| {
        CliError::refused(format!("no record can be made: {error}"), "report this")
    })?;
    Ok(serde_json::json!({ "kind": kind, "v": 1, "confinement": confinement }))
}

fn append(
    store: &Store,
    workspace: &str,
    content: &serde_json::Value,
    parents: Vec<wardkeep_evidence::hash::RecordId>,
) -> Result<wardkeep_evidence::hash::RecordId, CliError> {
    let text = content.to_string();
    let value: Value<'_> = json::parse(text.as_bytes()).map_err(|error| {
        CliError::refused(format!("no record can be made: {error}"), "report this")
    })?;
    let event = Event::new(RecordType::GuardDecision, Principal::Sys, value);
    Ok(store.append(Event { agent: "wardkeep", workspace, parents, ..event })?.id)
}
