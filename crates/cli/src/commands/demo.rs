//! `wardkeep demo`: scenes that play for real, in a folder that is thrown away.

mod alohomora;
mod attacks;
mod confined;
mod evidence;
mod finale;
mod identity;
mod model;
mod poison;
mod policy;
mod process;
mod stage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use self::finale::Handed;
use self::stage::{Scene, Stage};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Shows an agent that is taken over, first unprotected and then protected, and what stops it
///
/// Everything happens for real, by hostile processes in a folder that is removed at the end: a prompt tells
/// an agent to stay in its power, a web page poisons its memory, a hostile script runs free and then
/// confined, a model is talked into harm, the policy and the record are attacked in each way there is.
/// Needs no root and no network, changes nothing of yours and leaves nothing behind. What a kernel cannot do
/// is said and not played. At the end there are an evidence bundle, verified, and a report. Exit 0 only
/// if everything held.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Play only this scene: alohomora, poison, confined, model, policy, identity or evidence
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,
    /// Make no pauses between the scenes; there are none without a terminal
    #[arg(long)]
    fast: bool,
    /// Show every step of each scene
    #[arg(long)]
    details: bool,
    /// Keep the evidence bundle and the report in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

#[derive(Serialize)]
struct Answer<'a> {
    held: bool,
    seconds: u64,
    handed: Option<Handed>,
    scenes: &'a [Scene],
}

type Play = fn(&mut Stage<'_>) -> Result<(), CliError>;

/// Every scene: its name, its title and how it goes.
const SCENES: &[(&str, &str, Play)] = &[
    ("alohomora", "A prompt takes the agent over, and tells it to stay so", alohomora::play),
    ("poison", "A web page wants to be believed, remembered and paid", poison::play),
    ("confined", "A hostile script wants your keys", confined::play),
    ("model", "A model is talked into harm by a file it reads", model::play),
    ("policy", "Someone wants your agent to follow other instructions", policy::play),
    ("identity", "An agent rewrites everything that defines it", identity::play),
    ("evidence", "An agent's deed is on record, and someone wants it forgotten", evidence::play),
];

/// Between two scenes, for whoever reads.
const PAUSE: Duration = Duration::from_millis(1200);

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
    if let Some(keep) = &args.keep {
        finale::check(keep)?;
    }
    let begun = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix("wardkeep-demo-")
        .tempdir()
        .map_err(|error| CliError::io("make a folder in", &std::env::temp_dir(), &error))?;
    let pause = context.has_terminal() && !context.ui.is_json() && !args.fast;
    let mut stage = Stage::new(context, folder.path(), args.details);
    for (number, (name, title, play)) in SCENES.iter().filter(|(name, ..)| wanted(name)).enumerate()
    {
        if pause && number > 0 {
            std::thread::sleep(PAUSE);
        }
        stage.open(name, title, number + 1);
        play(&mut stage)?;
        stage.end();
    }
    let handed = finale::hand_out(&stage, args.keep.as_deref())?;
    let scenes = stage.close();
    let kept = folder.path().to_owned();
    folder.close().map_err(|error| CliError::io("remove", &kept, &error))?;
    let held = scenes.iter().all(|scene| scene.steps.iter().all(|step| step.held))
        && handed.as_ref().is_none_or(|handed| handed.verified);
    conclude(context, &scenes, handed.as_ref(), held, begun.elapsed());
    let exit = if held { Exit::Success } else { Exit::Failed };
    let seconds = begun.elapsed().as_secs();
    Ok(context.finish(exit, held, &Answer { held, seconds, handed, scenes: &scenes }))
}

fn conclude(
    context: &mut Context,
    scenes: &[Scene],
    handed: Option<&Handed>,
    held: bool,
    took: Duration,
) {
    let steps: usize = scenes.iter().map(|scene| scene.steps.len()).sum();
    context.ui.say("");
    let verdict = Line::default();
    let took = format!(" in {}.{} s.", took.as_secs(), took.subsec_millis() / 100);
    let missing = scenes.iter().filter(|scene| !scene.missing.is_empty()).count();
    let all = if missing == 0 { "Everything held" } else { "What could be played held" };
    context.ui.answer(if held {
        verdict.good(all).plain(format!(": {steps} of {steps} checks{took}"))
    } else {
        let broken = scenes.iter().flat_map(|scene| &scene.steps).filter(|step| !step.held).count();
        verdict.bad("Something did not hold").plain(format!(": {broken} of {steps} checks{took}"))
    });
    if missing > 0 {
        context.ui.note(&format!(
            "{missing} of the scenes could not be played whole on this machine: see above"
        ));
    }
    if let Some(handed) = handed {
        let verified = if handed.verified { "verified" } else { "NOT VERIFIED" };
        let at =
            |path: &Option<String>, name: &str| path.clone().unwrap_or_else(|| name.to_owned());
        context.ui.say(format!(
            "  evidence  {}: {} records, {} bytes, {verified}",
            at(&handed.bundle, "a bundle"),
            handed.records,
            handed.bundle_bytes
        ));
        context.ui.say(format!(
            "  report    {}: {} bytes of HTML: what was stopped, and why",
            at(&handed.report, "a page"),
            handed.report_bytes
        ));
        if handed.bundle.is_none() {
            context.ui.say(
                Line::default().faint("  nothing is left behind; `--keep DIR` keeps these two"),
            );
        }
    }
    context.ui.say("");
    context.ui.say(Line::default().strong("Protect your own agent"));
    if let Some(step) = first_step(context) {
        context.ui.say(step);
    }
    let rows = [
        ("wardkeep init", "finds your agents, shows every change, asks once"),
        ("wardkeep run -- claude", "your agent, confined by the kernel"),
        ("wardkeep status", "what holds, and the next thing to do"),
    ];
    let rows: Vec<Vec<Line>> = rows
        .iter()
        .map(|(name, what)| vec![Line::default().good(name), Line::from(*what)])
        .collect();
    context.ui.table(&rows);
}

/// What makes `wardkeep` a command, where it is none yet.
fn first_step(context: &Context) -> Option<Line> {
    let there = |folder: PathBuf| folder.join("wardkeep").is_file();
    if context.program_folders().into_iter().any(there) {
        return None;
    }
    let program = context.program().ok()?;
    let folder = program.parent()?.file_name()?;
    let step = Line::from("  ");
    // Where cargo puts what it built.
    Some(match folder == "debug" || folder == "release" {
        true => step
            .good("cargo install --locked --path crates/cli")
            .plain("  first: puts it on your PATH"),
        false => {
            step.good(program.display().to_string()).plain(" is not on your PATH: put it there")
        }
    })
}
