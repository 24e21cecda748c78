//! `wardkeep skill list`

use std::path::Path;

use serde::Serialize;
use wardkeep_guard::skill::Options;
use wardkeep_monitor::skills::{Pin, hash_of};

use super::owner;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Lists the skills that are pinned, and whether they are as they were
///
/// Exit 0: all of them are. Exit 20: one was changed or is gone, or no pin counts because they were
/// changed without the key.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct PlaceJson {
    path: String,
    state: &'static str,
}

#[derive(Serialize)]
struct SkillJson<'a> {
    name: &'a str,
    tree: String,
    verdict: &'a str,
    approved: bool,
    at: &'a str,
    hosts: &'a [String],
    runs_commands: bool,
    variables: &'a [String],
    places: Vec<PlaceJson>,
}

#[derive(Serialize)]
struct Answer<'a> {
    skills: Vec<SkillJson<'a>>,
    void: Option<&'a str>,
}

pub(super) fn run(context: &mut Context, _: &Args) -> Result<Exit, CliError> {
    let (options, pins) = owner(context)?;
    let skills: Vec<SkillJson<'_>> = pins.pins.iter().map(|pin| listed(pin, &options)).collect();
    let sound =
        skills.iter().flat_map(|skill| &skill.places).all(|place| place.state == "unchanged")
            && pins.void.is_none();
    let rows: Vec<Vec<Line>> = skills.iter().flat_map(rows).collect();
    context.ui.answer_table(&rows);
    if skills.is_empty() && pins.void.is_none() {
        context.ui.say("no skill is pinned");
    }
    if let Some(why) = &pins.void {
        context.ui.fault(format!("no pin and no approval counts: {why}"));
        context.ui.hint("see `wardkeep config show`");
    }
    let exit = if sound { Exit::Success } else { Exit::ActionRequired };
    Ok(context.finish(exit, sound, &Answer { skills, void: pins.void.as_deref() }))
}

fn rows(skill: &SkillJson<'_>) -> Vec<Vec<Line>> {
    let what = if skill.approved { "approved" } else { "pinned" };
    let row = |state: Line, path: &str| {
        let tree = format!("{:.12}", skill.tree);
        vec![
            Line::from(skill.name.to_owned()),
            Line::from(tree),
            Line::from(what),
            state,
            Line::from(path.to_owned()),
        ]
    };
    if skill.places.is_empty() {
        return vec![row(Line::from("not installed"), "")];
    }
    let state = |place: &PlaceJson| match place.state {
        "unchanged" => Line::default().good(place.state),
        _ => Line::default().bad(place.state),
    };
    skill.places.iter().map(|place| row(state(place), &place.path)).collect()
}

fn listed<'a>(pin: &'a Pin, options: &Options) -> SkillJson<'a> {
    let places = pin
        .places
        .iter()
        .map(|path| PlaceJson { path: path.clone(), state: state(Path::new(path), pin, options) });
    SkillJson {
        name: &pin.name,
        tree: pin.tree.to_string(),
        verdict: &pin.verdict,
        approved: pin.approved,
        at: &pin.at,
        hosts: &pin.hosts,
        runs_commands: pin.runs_commands,
        variables: &pin.variables,
        places: places.collect(),
    }
}

/// Whether what lies there is as it was pinned.
pub(crate) fn state(path: &Path, pin: &Pin, options: &Options) -> &'static str {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "gone",
        Ok(found) if found.is_dir() && hash_of(path, options) == Some(pin.tree) => "unchanged",
        _ => "changed",
    }
}
