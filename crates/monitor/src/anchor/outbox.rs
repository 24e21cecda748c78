//! The outbox: brings the newest seal to every anchor, again and again until each has it.
//!
//! It runs beside the journal and never before an answer to an agent. What an anchor said last is
//! kept, a rollback or fork it reported until an owner clears it.

mod config;
mod state;

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use wardkeep_evidence::seal::frame;

use self::config::Config;
pub use self::config::{AnchorConfig, ConfigError, Place};
use self::state::State;
pub use self::state::{Alarm, AnchorState, Failure};
use super::file::FileAnchor;
use super::git::GitAnchor;
use super::storage::{self, Lock};
use super::witness::WitnessAnchor;
use super::{Anchor, AnchorError, Receipt, Submission, Surroundings};

/// The file in the state directory that collects cosigned seals, framed as the seals are.
pub const COSIGNED_FILE: &str = "cosigned";

const CONFIG_FILE: &str = "anchors.json";
const STATE_FILE: &str = "anchors-state.json";
// Held for as long as it takes to change one of the two files.
const CHANGE_LOCK: &str = "anchors.lock";
// Held while anchors are tried, which can take minutes.
const PUSH_LOCK: &str = "anchors-push.lock";
const GIT_DIRECTORY: &str = "anchors";
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The anchors of one state directory, and what each said last.
#[derive(Debug)]
pub struct Outbox {
    directory: PathBuf,
    surroundings: Surroundings,
    config: Config,
    state: State,
}

/// One attempt at one anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The name of the anchor.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// What it gave.
    pub result: Result<Receipt, AnchorError>,
}

/// An anchor with what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    /// How it is set up.
    pub config: &'a AnchorConfig,
    /// What it said.
    pub state: &'a AnchorState,
}

impl Outbox {
    /// Reads the anchors of a state directory; there are none in a new one.
    pub fn open(state_dir: &Path, surroundings: Surroundings) -> Result<Self, OutboxError> {
        let mut outbox = Self {
            directory: state_dir.to_owned(),
            surroundings,
            config: Config::default(),
            state: State::default(),
        };
        outbox.read()?;
        Ok(outbox)
    }

    /// Adds an anchor; refuses a name in use and what could never work.
    pub fn add(&mut self, anchor: AnchorConfig) -> Result<(), OutboxError> {
        anchor.check()?;
        self.build(&anchor, &AnchorState::default())?;
        self.change(|config, state| {
            let name = anchor.name.clone();
            config.add(anchor)?;
            state.anchors.insert(name, AnchorState::default());
            Ok(())
        })
    }

    /// Forgets an anchor, together with what it said.
    pub fn remove(&mut self, name: &str) -> Result<(), OutboxError> {
        self.change(|config, state| {
            config.remove(name)?;
            state.anchors.remove(name);
            Ok(())
        })
    }

    /// Clears an anchor's alarm and what is remembered of its log, on an owner's word.
    pub fn clear(&mut self, name: &str) -> Result<(), OutboxError> {
        self.change(|config, state| {
            config.find(name)?;
            state.anchors.insert(name.to_owned(), AnchorState::default());
            Ok(())
        })
    }

    /// Tries each anchor that is due with the newest seal, or each at all when forced.
    ///
    /// An error is one of this machine before any anchor was tried; what happens to an anchor is
    /// in its outcome and in its state.
    pub fn push(
        &mut self,
        submission: &Submission<'_>,
        now: u64,
        force: bool,
    ) -> Result<Vec<Outcome>, OutboxError> {
        self.push_to(&|_| true, submission, now, force)
    }

    /// As [`Self::push`], to those anchors only whose names are `wanted`.
    pub fn push_to(
        &mut self,
        wanted: &dyn Fn(&str) -> bool,
        submission: &Submission<'_>,
        now: u64,
        force: bool,
    ) -> Result<Vec<Outcome>, OutboxError> {
        let _pushing = self.lock(PUSH_LOCK, Waiting::Refused)?;
        self.read()?;
        let digest = digest(&submission.note.text);
        let anchors = self.config.anchors.clone();
        let mut outcomes = Vec::new();
        for anchor in anchors.iter().filter(|anchor| wanted(&anchor.name)) {
            let state = self.state.anchors.get(&anchor.name).cloned().unwrap_or_default();
            if force || state.is_due(&digest, now) {
                let result = self.attempt(anchor, &state, submission, now);
                let result = self.record(anchor, &digest, submission, now, result);
                let (name, kind) = (anchor.name.clone(), anchor.place.kind());
                outcomes.push(Outcome { name, kind, result });
            }
        }
        Ok(outcomes)
    }

    /// Every anchor with what it said, in the order they were added.
    pub fn list(&self) -> Vec<Status<'_>> {
        let states = &self.state.anchors;
        let anchors = self.config.anchors.iter();
        let known =
            anchors.filter_map(|config| states.get(&config.name).map(|state| (config, state)));
        known.map(|(config, state)| Status { config, state }).collect()
    }

    /// The anchor of this name, ready to be asked.
    pub fn anchor(&self, name: &str) -> Result<Box<dyn Anchor>, OutboxError> {
        let config = self.config.find(name)?;
        let state = self.state.anchors.get(name).cloned().unwrap_or_default();
        Ok(self.build(config, &state)?)
    }

    fn build(
        &self,
        anchor: &AnchorConfig,
        state: &AnchorState,
    ) -> Result<Box<dyn Anchor>, AnchorError> {
        let name = &anchor.name;
        Ok(match &anchor.place {
            Place::File { path } => Box::new(FileAnchor::new(name, Path::new(path))?),
            Place::Git { url, branch } => {
                let directory = self.directory.join(GIT_DIRECTORY).join(format!("{name}.git"));
                let surroundings = self.surroundings.clone();
                Box::new(GitAnchor::new(name, url, branch, &directory, surroundings)?)
            }
            Place::Witness { url, key } => {
                let deadline = self.surroundings.deadline;
                Box::new(WitnessAnchor::new(name, url, key, state.acknowledged, deadline)?)
            }
        })
    }

    fn attempt(
        &self,
        anchor: &AnchorConfig,
        state: &AnchorState,
        submission: &Submission<'_>,
        now: u64,
    ) -> Result<Receipt, AnchorError> {
        let name = &anchor.name;
        let (theirs, ours) = (state.acknowledged, submission.checkpoint.size);
        if let Some(origin) =
            state.origin.as_ref().filter(|known| **known != submission.log.origin())
        {
            let reason =
                format!("it holds seals of `{origin}`; clear it to use it for another log");
            return Err(AnchorError::refused(name, reason));
        }
        // What was acknowledged here before is evidence enough, whatever the anchor says now.
        if theirs > ours {
            return Err(AnchorError::Rollback { anchor: name.clone(), theirs, ours });
        }
        let receipt = self.build(anchor, state)?.put(submission, now)?;
        if let Some(cosigned) = &receipt.cosigned {
            storage::append_frame(&self.directory, COSIGNED_FILE, &frame(cosigned)).map_err(
                |error| {
                    let reason = format!("the cosigned seal is not kept: {error}; make room");
                    AnchorError::local(name, reason)
                },
            )?;
        }
        Ok(receipt)
    }

    /// Keeps what an anchor said; when that fails, the outcome says so as well.
    fn record(
        &mut self,
        anchor: &AnchorConfig,
        digest: &str,
        submission: &Submission<'_>,
        now: u64,
        result: Result<Receipt, AnchorError>,
    ) -> Result<Receipt, AnchorError> {
        let origin = submission.log.origin();
        let kept = self.change(|config, state| {
            // Removed meanwhile: there is nothing left to keep it with.
            if config.find(&anchor.name).is_ok() {
                let state = state.anchors.entry(anchor.name.clone()).or_default();
                match &result {
                    Ok(receipt) => state.succeed(&origin, digest, receipt, now),
                    Err(error) => state.fail(error, now),
                }
            }
            Ok(())
        });
        match (result, kept) {
            (Ok(_), Err(error)) => Err(AnchorError::local(&anchor.name, error)),
            (result, _) => result,
        }
    }

    /// Reads both files anew, changes them, and writes what differs.
    fn change(
        &mut self,
        change: impl FnOnce(&mut Config, &mut State) -> Result<(), OutboxError>,
    ) -> Result<(), OutboxError> {
        let _changing = self.lock(CHANGE_LOCK, Waiting::Allowed)?;
        self.read()?;
        let (mut config, mut state) = (self.config.clone(), self.state.clone());
        change(&mut config, &mut state)?;
        // An anchor without a state counts as one whose state was lost, so the state of a new one
        // comes before it, and that of an old one goes after it.
        let removes = config.anchors.len() < self.config.anchors.len();
        if removes {
            self.write(CONFIG_FILE, &config)?;
        }
        if state != self.state {
            self.write(STATE_FILE, &state)?;
        }
        if !removes && config != self.config {
            self.write(CONFIG_FILE, &config)?;
        }
        (self.config, self.state) = (config, state);
        Ok(())
    }

    fn read(&mut self) -> Result<(), OutboxError> {
        let config = self.read_file(CONFIG_FILE)?;
        self.config =
            config.map_or_else(|| Ok(Config::default()), |bytes| Config::parse(&bytes))?;
        let state = self.read_file(STATE_FILE)?.unwrap_or_default();
        self.state = State::parse(&state, self.config.names());
        Ok(())
    }

    fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, OutboxError> {
        let path = self.directory.join(name);
        storage::read(&path, MAX_FILE_BYTES).map_err(|source| OutboxError::File { path, source })
    }

    fn write(&self, name: &str, value: &impl serde::Serialize) -> Result<(), OutboxError> {
        let fault = |source| OutboxError::File { path: self.directory.join(name), source };
        let bytes = serde_json::to_vec_pretty(value).map_err(|error| fault(error.into()))?;
        storage::replace(&self.directory, name, &bytes).map_err(fault)
    }

    fn lock(&self, name: &str, waiting: Waiting) -> Result<Lock, OutboxError> {
        let fault = |source| OutboxError::File { path: self.directory.join(name), source };
        let file = storage::lock_file(&self.directory, name).map_err(fault)?;
        match waiting {
            Waiting::Allowed => Lock::wait(file).map_err(fault),
            Waiting::Refused => Lock::attempt(file).map_err(fault)?.ok_or(OutboxError::Busy),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Waiting {
    Allowed,
    Refused,
}

fn digest(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Why the outbox does not work.
#[derive(Debug, Error)]
pub enum OutboxError {
    /// A file of the outbox cannot be read or written.
    #[error("`{}`: {source}; check the state directory", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The anchors are not set up well.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An anchor cannot be made as it is set up.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// Another process tries the anchors just now.
    #[error("another process is pushing to the anchors; try again when it is done")]
    Busy,
}
