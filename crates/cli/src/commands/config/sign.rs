//! `wardkeep config sign`

use std::collections::BTreeMap;

use serde::Serialize;
use wardkeep_monitor::policy::Desk;
use wardkeep_policy::sign::Presence;
use wardkeep_policy::signed_set::SetDraft;

use crate::commands::md::{policy_store, sign::request};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Signs config.toml, rules, profiles and pins together
///
/// Shows the files first and signs the very bytes that were shown. Refuses what cannot be used, without
/// a terminal unless --yes is given, and always inside `wardkeep run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sign without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    files: Vec<String>,
    record: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    sign(context, args.yes)
}

/// Shows the set, asks, and signs it.
pub(super) fn sign(context: &mut Context, yes: bool) -> Result<Exit, CliError> {
    let request = request(context, yes)?;
    wardkeep_policy::sign::permitted(&request)?;
    let store = policy_store(context)?;
    let draft = SetDraft::read(store.state())?;
    show(context, draft.files());
    if let Some(config) = draft.files().get("config.toml") {
        wardkeep_policy::config::Config::parse(config).map_err(|error| {
            CliError::refused(error.to_string(), "mend it with `wardkeep config edit`")
        })?;
        crate::commands::detector::check(config)?;
        wardkeep_monitor::skills::options::check(config)
            .map_err(|why| CliError::refused(why, "mend it with `wardkeep config edit`"))?;
    }
    if let Some(problem) = wardkeep_monitor::rules::of_files(draft.files()).problems().first() {
        // Signed, they would make every action a question.
        let message = format!("the rules cannot be used: {}", problem.summary());
        return Err(CliError::refused(message, "mend them; `wardkeep rules check` shows where"));
    }
    if request.presence == Presence::Terminal && !context.confirm("Sign these?")? {
        return Err(CliError::refused("not signed", "run it again when they are as you want"));
    }
    let open = context.open_store()?;
    let desk = Desk::new(&open, rustix::process::getuid().as_raw());
    let record = desk.sign_set(&draft, &request)?;
    context.ui.answer(match draft.files().len() {
        1 => "✓ Signed 1 file".to_owned(),
        many => format!("✓ Signed {many} files"),
    });
    let files = draft.files().keys().cloned().collect();
    Ok(context.done(&Answer { files, record: record.to_string() }))
}

fn show(context: &mut Context, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        context.ui.say(format!("{name}:"));
        for line in String::from_utf8_lossy(bytes).lines() {
            context.ui.say(format!("  {line}"));
        }
    }
}
