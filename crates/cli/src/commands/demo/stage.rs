//! Where scenes play: what is told, and what is noted down.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::time::Timestamp;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, Ui, wrapped};

/// What every terminal has room for.
const COLUMNS: usize = 80;
/// Where texts begin, beside their labels.
const LABELS: usize = 12;

/// A scene that was played.
#[derive(Debug, Serialize)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What the attack got done where nothing stood in its way.
    pub(super) without: Option<String>,
    /// What it got done with wardkeep.
    pub(super) with: Option<String>,
    /// What stopped it.
    pub(super) by: Option<String>,
    /// What could not be played here, and why.
    pub(super) missing: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// Something that was tried, and whether what should happen did.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    /// What was tried.
    pub(super) what: String,
    /// What was found, by the name of its check where there is one.
    pub(super) by: Option<String>,
    /// What that means.
    pub(super) told: String,
    /// Whether it came as it should.
    pub(super) held: bool,
}

/// The stage.
pub(super) struct Stage<'a> {
    context: &'a mut Context,
    folder: PathBuf,
    details: bool,
    scenes: Vec<Scene>,
    journal: Option<PathBuf>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(context: &'a mut Context, folder: &Path, details: bool) -> Self {
        Self { context, folder: folder.to_owned(), details, scenes: Vec::new(), journal: None }
    }

    /// A folder to play in.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The time.
    pub(super) fn now(&self) -> Result<Timestamp, CliError> {
        self.context.now()
    }

    /// Random bytes.
    pub(super) fn random<const N: usize>(&self) -> Result<[u8; N], CliError> {
        self.context.random()
    }

    /// Threads to verify with.
    pub(super) fn threads(&self) -> usize {
        self.context.threads()
    }

    /// Begins a scene.
    pub(super) fn open(&mut self, name: &'static str, title: &'static str, number: usize) {
        if !self.scenes.is_empty() {
            self.context.ui.say("");
        }
        let line = Line::default().strong(format!("{number}  {title}"));
        self.context.ui.say(line.faint(format!("  [{name}]")));
        self.scenes.push(Scene {
            name,
            title,
            without: None,
            with: None,
            by: None,
            missing: Vec::new(),
            steps: Vec::new(),
        });
    }

    /// Begins a part of a scene.
    pub(super) fn part(&mut self, title: &str) {
        if self.details {
            self.context.ui.say("");
            self.context.ui.say(Line::default().strong(title));
        }
    }

    /// Tells something.
    pub(super) fn tell(&mut self, text: impl AsRef<str>) {
        if self.details {
            for line in wrapped(text.as_ref(), COLUMNS - 2) {
                self.context.ui.say(format!("  {line}"));
            }
        }
    }

    /// Notes down a step; shows it where everything is shown, or where it did not hold.
    pub(super) fn step(
        &mut self,
        what: impl Into<String>,
        by: Option<&str>,
        told: impl Into<String>,
        held: bool,
    ) {
        let (what, told) = (what.into(), told.into());
        if self.details || !held {
            let mark = Line::from("  ");
            let mark = if held { mark.good("held ") } else { mark.bad("BROKE") };
            self.context.ui.say(mark.plain(" ").plain(&what));
            let by_text = by.map(|by| format!("{by}: ")).unwrap_or_default();
            for line in wrapped(&format!("{by_text}{told}"), COLUMNS - 8) {
                self.context.ui.say(format!("        {line}"));
            }
        }
        if let Some(scene) = self.scenes.last_mut() {
            scene.steps.push(Step { what, by: by.map(str::to_owned), told, held });
        }
    }

    /// The scene in three lines: what the attack does without wardkeep, what with it, and what stopped it.
    pub(super) fn sum(&mut self, without: &str, with: &str, by: &str) {
        if let Some(scene) = self.scenes.last_mut() {
            scene.without = Some(without.to_owned());
            scene.with = Some(with.to_owned());
            scene.by = Some(by.to_owned());
        }
    }

    /// Something cannot be played here.
    pub(super) fn missing(&mut self, why: impl Into<String>) {
        if let Some(scene) = self.scenes.last_mut() {
            scene.missing.push(why.into());
        }
    }

    /// The state directory whose journal is handed out at the end, where no other is named.
    pub(super) fn journal(&mut self, state: &Path) {
        self.journal.get_or_insert_with(|| state.to_owned());
    }

    /// The one that tells most.
    pub(super) fn best_journal(&mut self, state: &Path) {
        self.journal = Some(state.to_owned());
    }

    /// What was named so.
    pub(super) fn named_journal(&self) -> Option<PathBuf> {
        self.journal.clone()
    }

    /// Ends a scene.
    pub(super) fn end(&mut self) {
        let Some(scene) = self.scenes.last() else { return };
        let ui = &mut self.context.ui;
        if self.details {
            ui.say("");
        }
        if let Some(without) = &scene.without {
            row(ui, "without", without, &Line::removed);
        }
        if let Some(with) = &scene.with {
            row(ui, "wardkeep", with, &Line::added);
        }
        for missing in &scene.missing {
            row(ui, "not here", missing, &Line::warning);
        }
        let held = scene.steps.iter().filter(|step| step.held).count();
        let mark = match (held, scene.steps.len()) {
            (_, 0) => Line::default(),
            (held, all) if held == all => Line::default().good(format!("✓ {held} held")),
            (held, all) => Line::default().bad(format!("{} of {all} BROKE", all - held)),
        };
        let by = scene.by.as_deref().unwrap_or_default();
        let mut lines = labelled(if by.is_empty() { "" } else { "by" }, by, &Line::plain);
        let beside = lines.last().cloned().unwrap_or_default().plain("  ").join(&mark);
        // The mark stands beside the last words, or below them.
        if beside.text().chars().count() <= COLUMNS {
            lines.pop();
            lines.push(beside);
        } else {
            lines.push(Line::from(" ".repeat(LABELS)).join(&mark));
        }
        lines.into_iter().for_each(|line| ui.say(line));
    }

    /// Ends the play.
    pub(super) fn close(self) -> Vec<Scene> {
        self.scenes
    }
}

/// A label and a text in a tone of its own, broken between words under the label's column.
fn labelled(label: &str, text: &str, tone: &dyn Fn(Line, String) -> Line) -> Vec<Line> {
    let mut label = Some(label);
    wrapped(text, COLUMNS - LABELS)
        .into_iter()
        .map(|piece| {
            let label = label.take().unwrap_or_default();
            tone(Line::from("   ").faint(format!("{label:<9}")), piece)
        })
        .collect()
}

fn row(ui: &mut Ui, label: &str, text: &str, tone: &dyn Fn(Line, String) -> Line) {
    labelled(label, text, tone).into_iter().for_each(|line| ui.say(line));
}

/// The file system refused what a scene needs.
pub(super) fn broken(error: std::io::Error) -> CliError {
    CliError::new(
        Exit::Unreadable,
        format!("the stage broke: {error}"),
        "check that there is room for temporary files",
    )
}

/// How many, of how many.
pub(super) fn tally(done: usize, all: usize) -> String {
    format!("{done} of {all}")
}
