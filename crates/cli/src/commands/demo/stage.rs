//! Where scenes play: what is told, and what is noted down.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::time::Timestamp;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// A scene that was played.
#[derive(Debug, Serialize)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
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
    scenes: Vec<Scene>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(context: &'a mut Context, folder: &Path) -> Self {
        Self { context, folder: folder.to_owned(), scenes: Vec::new() }
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
    pub(super) fn open(&mut self, name: &'static str, title: &'static str) {
        if !self.scenes.is_empty() {
            self.context.ui.say("");
        }
        self.context.ui.say(Line::default().strong(title));
        self.scenes.push(Scene { name, title, steps: Vec::new() });
    }

    /// Begins a part of a scene.
    pub(super) fn part(&mut self, title: &str) {
        self.context.ui.say("");
        self.context.ui.say(Line::default().strong(title));
    }

    /// Tells something.
    pub(super) fn tell(&mut self, text: impl AsRef<str>) {
        self.context.ui.say(format!("  {}", text.as_ref()));
    }

    /// Notes down a step and shows it.
    pub(super) fn step(
        &mut self,
        what: impl Into<String>,
        by: Option<&str>,
        told: impl Into<String>,
        held: bool,
    ) {
        let (what, told) = (what.into(), told.into());
        let mark = Line::from("  ");
        let mark = if held { mark.good("held ") } else { mark.bad("BROKE") };
        self.context.ui.say(mark.plain(" ").plain(&what));
        let by_text = by.map(|by| format!("{by}: ")).unwrap_or_default();
        self.context.ui.say(format!("        {by_text}{told}"));
        if let Some(scene) = self.scenes.last_mut() {
            scene.steps.push(Step { what, by: by.map(str::to_owned), told, held });
        }
    }

    /// Ends the play.
    pub(super) fn close(self) -> Vec<Scene> {
        self.scenes
    }
}

/// The file system refused what a scene needs.
pub(super) fn broken(error: std::io::Error) -> CliError {
    CliError::new(
        Exit::Unreadable,
        format!("the stage broke: {error}"),
        "check that there is room for temporary files",
    )
}
