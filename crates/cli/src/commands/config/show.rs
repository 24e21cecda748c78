//! `wardkeep config show`

use serde::Serialize;
use wardkeep_policy::config::Config;
use wardkeep_policy::signed_set::SetState;

use crate::commands::md::{policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, harmless};

/// Shows the files of the configuration, whether they are as they were signed, and what holds
///
/// Exit 0: signed, or there is nothing to sign; 10: not signed; 11: changed, older than the last one,
/// or forged.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct ChangeJson {
    file: String,
    change: String,
}

#[derive(Serialize)]
struct Answer {
    state: &'static str,
    signed_at: Option<String>,
    counter: Option<u64>,
    files: Vec<String>,
    changes: Vec<ChangeJson>,
    strict_policy: bool,
    disable_policy: bool,
    disable_suffix: bool,
    /// Every other part of config.toml, as it stands.
    settings: serde_json::Value,
    warnings: Vec<String>,
}

pub(crate) fn run(context: &mut Context, _args: Args) -> Result<Exit, CliError> {
    let store = policy_store(context)?;
    let settings = store.settings();
    let (set, switches) = (&settings.set, &settings.switches);
    let signed = match &set.signed_at {
        Some(at) if set.state == SetState::Valid => format!(", signed {at}"),
        _ => String::new(),
    };
    let path = shown(context, store.state());
    context.ui.answer(format!("{path}: {}{signed}", set.state.name()));
    let changes: Vec<ChangeJson> = match &set.state {
        SetState::Changed(changes) => changes
            .iter()
            .map(|one| ChangeJson {
                file: one.name.clone(),
                change: format!("{:?}", one.kind).to_lowercase(),
            })
            .collect(),
        _ => Vec::new(),
    };
    for (name, bytes) in &set.files {
        context.ui.say(format!("  {name} ({} bytes)", bytes.len()));
    }
    for change in &changes {
        context.ui.fault(Line::from("  ").bad(format!("{} {}", change.file, change.change)));
    }
    let on = |on: bool| Line::from(if on { "on" } else { "off" });
    context.ui.table(&[
        vec![Line::from("strict_policy"), on(switches.strict_policy)],
        vec![Line::from("disable_policy"), on(switches.disable_policy)],
        vec![Line::from("disable_suffix"), on(switches.disable_suffix)],
    ]);
    let config = set.files.get("config.toml").and_then(|text| Config::parse(text).ok());
    let rest = config.map(|config| config.rest).unwrap_or_default();
    for (part, value) in &rest {
        let text = toml::to_string(value).unwrap_or_else(|_| value.to_string());
        context.ui.say(format!("  [{}]", harmless(part)));
        text.lines().for_each(|line| context.ui.say(format!("    {}", harmless(line))));
    }
    let settings = serde_json::to_value(&rest).unwrap_or_default();
    let warnings = switches.warnings(context.tool);
    warnings.iter().for_each(|warning| context.ui.fault(warning.as_str()));
    let exit = match &set.state {
        SetState::Valid => Exit::Success,
        SetState::Unsigned if set.files.is_empty() => Exit::Success,
        // Nothing was ever signed here, and nothing is there to sign.
        SetState::NoKey(_) if set.files.is_empty() && set.memory.last_counter == 0 => Exit::Success,
        SetState::Unsigned => Exit::Unsigned,
        _ => Exit::Tampered,
    };
    let answer = Answer {
        state: set.state.name(),
        signed_at: set.signed_at.clone(),
        counter: set.counter,
        files: set.files.keys().cloned().collect(),
        changes,
        strict_policy: switches.strict_policy,
        disable_policy: switches.disable_policy,
        disable_suffix: switches.disable_suffix,
        settings,
        warnings,
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}
