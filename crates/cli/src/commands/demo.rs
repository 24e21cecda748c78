//! `wardkeep demo`: scenes that play for real, in a folder that is thrown away.

mod attacks;
mod confined;
mod evidence;
mod identity;
mod model;
mod poison;
mod policy;
mod stage;

use serde::Serialize;

use self::stage::{Scene, Stage};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Plays attacks on an agent's instructions and on its record, and shows what catches them
///
/// Everything happens for real in a folder that is removed at the end: a policy is signed and
/// attacked, a web page poisons an agent's session, a model talks through the
/// proxy, a process that took the agent over rewrites what
/// defines it, a hostile script runs free and then confined, a journal is written, tampered with in each way there is, and verified. Exit 0 only if
/// everything held.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Play only this scene
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    held: bool,
    scenes: &'a [Scene],
}

type Play = fn(&mut Stage<'_>) -> Result<(), CliError>;

/// Every scene: its name, its title and how it goes.
const SCENES: &[(&str, &str, Play)] = &[
    (
        "policy",
        "The owner's instructions are signed, and someone wants the agent to follow others",
        policy::play,
    ),
    (
        "poison",
        "A web page wants to be remembered, and to change the agent's settings",
        poison::play,
    ),
    (
        "model",
        "A model is talked into harm, and the agent's calls go through the proxy",
        model::play,
    ),
    ("identity", "An agent is taken over, and rewrites everything that defines it", identity::play),
    ("confined", "A hostile script runs free, and then confined", confined::play),
    ("evidence", "An agent's session is recorded, and someone wants it forgotten", evidence::play),
];

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let wanted = |name: &str| args.scene.as_deref().is_none_or(|scene| scene == name);
    if !SCENES.iter().any(|(name, ..)| wanted(name)) {
        let names: Vec<&str> = SCENES.iter().map(|(name, ..)| *name).collect();
        let given = args.scene.unwrap_or_default();
        return Err(CliError::refused(
            format!("there is no scene `{given}`"),
            format!("play one of {}, or all without --scene", names.join(", ")),
        ));
    }
    let folder = tempfile::Builder::new()
        .prefix("wardkeep-demo-")
        .tempdir()
        .map_err(|error| CliError::io("make a folder in", &std::env::temp_dir(), &error))?;
    let mut stage = Stage::new(context, folder.path());
    for (name, title, play) in SCENES.iter().filter(|(name, ..)| wanted(name)) {
        stage.open(name, title);
        play(&mut stage)?;
    }
    let scenes = stage.close();
    let held = scenes.iter().all(|scene| scene.steps.iter().all(|step| step.held));
    let steps: usize = scenes.iter().map(|scene| scene.steps.len()).sum();
    context.ui.say("");
    let verdict = Line::default();
    context.ui.answer(if held {
        verdict.good("Everything held").plain(format!(": {steps} of {steps} steps."))
    } else {
        let broken = scenes.iter().flat_map(|scene| &scene.steps).filter(|step| !step.held).count();
        verdict.bad("Something did not hold").plain(format!(": {broken} of {steps} steps."))
    });
    for line in [
        "Protect your own: `wardkeep init` in the agent's workspace, edit LocalGPT.md, `wardkeep md sign`,",
        "then `wardkeep md status` and `wardkeep md audit`. Evidence: `wardkeep log`, `wardkeep evidence",
        "verify`, `wardkeep evidence export my.zip`. Text: `wardkeep scan FILE`. What was stopped: `wardkeep prove`.",
    ] {
        context.ui.say(line);
    }
    let exit = if held { Exit::Success } else { Exit::Failed };
    Ok(context.finish(exit, held, &Answer { held, scenes: &scenes }))
}
