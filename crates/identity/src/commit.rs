//! How several files change together: each is old or new, and what was begun is completed or taken
//! back, by this process or by the next one.

mod recover;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use rustix::fs::{Mode, OFlags, fsync, openat};
use rustix::io::Errno;
use wardkeep_evidence::hash::{BlobHash, sha256};

pub use self::recover::Recovered;
use crate::baseline::Entry;
use crate::bench::{Bench, Made};
use crate::error::{IdentityError, Result};
use crate::level::Holder;
use crate::name::Name;
use crate::quarantine::{Kept, Quarantine};
use crate::slot::{Slot, Way};
use crate::tree::{Kind, read_whole};
use crate::workspace::{INTENT, Record, Workspace};

/// What is to be done, written down before it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Intent {
    pub(crate) version: u32,
    /// For people.
    pub(crate) operation: String,
    pub(crate) direction: Direction,
    pub(crate) steps: Vec<Step>,
    /// Whose staging copies are made where there are none.
    pub(crate) stage: Vec<Name>,
    /// Whose staging copies go.
    pub(crate) unstage: Vec<Name>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Forward,
    Back,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Step {
    pub(crate) name: Name,
    pub(crate) before: Option<Entry>,
    pub(crate) after: Option<Entry>,
    pub(crate) put: Put,
    pub(crate) back: Put,
    pub(crate) expect: Expect,
}

/// What a place is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Put {
    /// Whatever it holds.
    Leave,
    Nothing,
    File {
        hash: BlobHash,
        mode: u32,
        holder: Holder,
    },
}

impl Put {
    /// A file as it was approved.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self::File { hash: entry.hash, mode: entry.mode, holder: entry.tier.into() }
    }
}

/// What may come out of a place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expect {
    /// Anything; what is not known is kept.
    Anything,
    /// One of these, or nothing; else all is put back.
    Only(Vec<BlobHash>),
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) kept: Vec<Kept>,
    pub(crate) left: Vec<Left>,
}

/// A file about which nothing could be done.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// Which.
    pub name: Name,
    /// Why.
    pub why: String,
}

/// What was put in a place, and what came out.
struct Placed<'a> {
    step: &'a Step,
    /// Device and inode of what was put in.
    id: Option<(u64, u64)>,
    out: Option<String>,
}

impl Intent {
    pub(crate) fn new(operation: &str) -> Self {
        Self {
            version: 1,
            operation: operation.to_owned(),
            direction: Direction::Forward,
            steps: Vec::new(),
            stage: Vec::new(),
            unstage: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.stage.is_empty() && self.unstage.is_empty()
    }

    /// Bytes that need not be kept when they come out of a place.
    fn known(&self) -> Vec<BlobHash> {
        let mut known: Vec<BlobHash> = self.steps.iter().flat_map(Step::known).collect();
        known.sort_unstable();
        known.dedup();
        known
    }
}

impl Step {
    fn known(&self) -> Vec<BlobHash> {
        let entries = [self.before, self.after].into_iter().flatten().map(|entry| entry.hash);
        let puts = [self.put, self.back].into_iter().filter_map(|put| match put {
            Put::File { hash, .. } => Some(hash),
            _ => None,
        });
        entries.chain(puts).collect()
    }
}

impl Workspace<'_> {
    /// Does it all, or nothing. Every new content is kept already. `record` becomes what is approved
    /// afterwards.
    pub(crate) fn commit(&self, intent: &mut Intent, record: &mut Record) -> Result<Done> {
        if intent.is_empty() {
            return Ok(Done::default());
        }
        let bench = self.bench()?;
        let quarantine = Quarantine::new(self);
        self.write_intent(intent)?;
        let mut placed = Vec::new();
        let mut done = Done::default();
        let worked = self
            .install(&intent.steps, record, &bench, &quarantine, &mut placed)
            .and_then(|()| self.approve(intent, record));
        if let Err(first) = worked {
            // The baseline may be the new one, although it could not be made durable.
            intent.direction = Direction::Back;
            let undone = self
                .write_intent(intent)
                .and_then(|()| self.undo(&intent.steps, placed, record, &bench, &quarantine))
                .and_then(|()| self.disapprove(intent, record))
                .and_then(|()| quarantine.finish(&bench))
                .and_then(|_| self.finish(intent, &bench));
            return Err(match undone {
                Ok(()) => first,
                Err(then) => {
                    IdentityError::HalfDone { first: Box::new(first), then: Box::new(then) }
                }
            });
        }
        for placed in placed {
            if let Some(out) = &placed.out {
                let Step { name, .. } = placed.step;
                let taken = quarantine.take(&bench, out, name, &placed.step.known());
                left(&mut done.left, name, taken);
            }
        }
        done.left.extend(self.restage(intent, record, &bench, &quarantine));
        done.kept = quarantine.finish(&bench)?;
        self.finish(intent, &bench)?;
        Ok(done)
    }

    pub(crate) fn write_intent(&self, intent: &Intent) -> Result<()> {
        let text = serde_json::to_vec(intent)
            .map_err(|error| IdentityError::io("write", INTENT, io::Error::other(error)))?;
        self.steps.step("write the intent");
        self.store.write(INTENT, &text, self.steps)
    }

    /// Makes all files, then gives each its place.
    fn install<'a>(
        &self,
        steps: &'a [Step],
        record: &Record,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
        placed: &mut Vec<Placed<'a>>,
    ) -> Result<()> {
        let mut waiting = Vec::with_capacity(steps.len());
        let mut few = Vec::new();
        for step in steps {
            let made = self.make(bench, &step.name, step.put)?;
            waiting.push(made.as_ref().map(|made| (made.leaf.clone(), made.id)));
            // A process has not as many handles as there can be files.
            few.extend(made.filter(|_| few.len() <= Bench::MANY));
        }
        bench
            .flush(&few, self.steps)
            .map_err(|error| IdentityError::io("flush", "the new files", error))?;
        drop(few);
        for (step, waiting) in steps.iter().zip(waiting) {
            if step.put == Put::Leave {
                continue;
            }
            let made = waiting
                .map(|(leaf, id)| bench.reopen(leaf, id))
                .transpose()
                .map_err(|error| IdentityError::io("write", &step.name, error))?;
            let way = match (&step.expect, made.is_some()) {
                (_, false) => Way::Keep,
                (Expect::Anything, true) => Way::Mend(&record.tiers, quarantine),
                (Expect::Only(_), true) => Way::Make(&record.tiers),
            };
            let Some(slot) = self.slot(&self.root, bench, &step.name, &way)? else { continue };
            self.steps.step("replace the file");
            let out = match &made {
                Some(made) => self.exchange(bench, &made.leaf, &slot)?,
                None => self.take_out(bench, &slot)?,
            };
            let id = made.as_ref().map(|made| made.id);
            placed.push(Placed { step, id, out: out.clone() });
            self.steps.step("replaced");
            self.check(bench, step, &slot, made.as_ref(), out.as_deref())?;
        }
        self.flush_folders(placed)
    }

    /// What came out is what may, and what was put in is there.
    fn check(
        &self,
        bench: &Bench,
        step: &Step,
        slot: &Slot,
        made: Option<&Made>,
        out: Option<&str>,
    ) -> Result<()> {
        if let (Expect::Only(hashes), Some(out)) = (&step.expect, out)
            && !self.hash_on(bench, out).is_some_and(|hash| hashes.contains(&hash))
        {
            return Err(IdentityError::Drifted { name: step.name.clone() });
        }
        if let Some(made) = made {
            let held = matches!(step.put, Put::File { holder: Holder::Protect, .. });
            self.settle_in(&self.root, slot, made, held)?;
        }
        Ok(())
    }

    /// The hash of a regular file on the bench.
    fn hash_on(&self, bench: &Bench, leaf: &str) -> Option<BlobHash> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let look = bench.look(leaf).ok()??;
        if look.kind != Kind::File || look.size > self.limits.file {
            return None;
        }
        let file = openat(bench.handle(), leaf, flags, Mode::empty()).ok()?;
        let bytes = read_whole(File::from(file), self.limits.file, look.size).ok()?;
        Some(BlobHash(sha256(&bytes)))
    }

    /// Makes a file from kept bytes.
    pub(crate) fn make(&self, bench: &Bench, name: &Name, put: Put) -> Result<Option<Made>> {
        let Put::File { hash, mode, holder } = put else { return Ok(None) };
        let bytes = self.objects.read(hash)?;
        bench
            .make(&bytes, self.level.owner(holder), self.level.file_mode(holder, mode), self.steps)
            .map(Some)
            .map_err(|error| IdentityError::io("write", name, error))
    }

    /// From here on the new files are the approved ones.
    fn approve(&self, intent: &Intent, record: &mut Record) -> Result<()> {
        let changes = intent.steps.iter().any(|step| step.before != step.after);
        if changes {
            self.steps.step("write the baseline");
            let mut baseline = record.baseline.clone();
            for step in &intent.steps {
                baseline.set(step.name.clone(), step.after);
            }
            baseline.write(&self.store, self.steps)?;
            record.baseline = baseline;
            record.config = record.baseline.config(&self.objects)?;
            record.tiers = record.config.tiers()?;
        }
        Ok(())
    }

    /// The old files are the approved ones again, if that was written at all.
    fn disapprove(&self, intent: &Intent, record: &mut Record) -> Result<()> {
        let Ok(now) = self.record() else { return Ok(()) };
        let of = |step: &Step| now.baseline.entry(&step.name).copied();
        if intent.steps.iter().all(|step| of(step) == step.before) {
            return Ok(());
        }
        let mut baseline = now.baseline.clone();
        for step in &intent.steps {
            baseline.set(step.name.clone(), step.before);
        }
        baseline.write(&self.store, self.steps)?;
        *record = self.record()?;
        Ok(())
    }

    /// Makes every file what it was. What was approved comes from what is kept, not from what came
    /// out: that may be another's by then. What was restored by a sync stays so.
    fn undo(
        &self,
        steps: &[Step],
        placed: Vec<Placed<'_>>,
        record: &Record,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
    ) -> Result<()> {
        let mut outs = Vec::new();
        for placed in placed.iter().rev() {
            let is_new = placed.step.before.is_none() && placed.step.expect != Expect::Anything;
            let out = if is_new { self.undo_new(placed, bench)? } else { placed.out.clone() };
            outs.extend(out.map(|out| (placed, out)));
        }
        let undone = |step: &&Step| step.before.is_some() && step.expect != Expect::Anything;
        let backs: Vec<(&Step, Put)> =
            steps.iter().filter(undone).map(|step| (step, step.back)).collect();
        self.settle(&backs, record, bench, quarantine)?;
        for (placed, out) in outs {
            quarantine.take(bench, &out, &placed.step.name, &placed.step.known())?;
        }
        self.flush_folders(&placed)
    }

    /// Takes away a file that was not there before; what another put there since is not ours.
    fn undo_new(&self, placed: &Placed<'_>, bench: &Bench) -> Result<Option<String>> {
        self.steps.step("take the file back");
        let slot = self.slot(&self.root, bench, &placed.step.name, &Way::Keep)?;
        let Some(slot) = slot else { return Ok(placed.out.clone()) };
        let ours = slot.look().is_some_and(|look| placed.id == Some(look.id));
        match (&placed.out, ours) {
            (Some(stood), true) => self.exchange(bench, stood, &slot),
            (None, true) => self.take_out(bench, &slot),
            (out, false) => Ok(out.clone()),
        }
    }

    /// Makes names durable. A folder that is gone has none.
    fn flush_folders(&self, placed: &[Placed<'_>]) -> Result<()> {
        self.steps.step("flush the folders");
        let folders: BTreeSet<Option<Name>> =
            placed.iter().map(|placed| placed.step.name.parent()).collect();
        for folder in folders {
            match self.root.folder(folder.as_ref()).and_then(fsync) {
                Ok(()) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
                Err(errno) => return Err(IdentityError::io("flush", "a folder", errno)),
            }
        }
        Ok(())
    }

    /// Clears the bench of what was made and not used, and forgets the intent.
    fn finish(&self, intent: &Intent, bench: &Bench) -> Result<()> {
        self.steps.step("forget the intent");
        let known = intent.known();
        for leaf in bench.leaves()? {
            let is_known = || self.hash_on(bench, &leaf).is_some_and(|hash| known.contains(&hash));
            if Bench::is_unfinished(&leaf) || is_known() {
                bench.drop_leaf(&leaf);
            }
        }
        self.store.remove(INTENT)?;
        self.steps.step("forgotten");
        Ok(())
    }
}

/// Notes what went wrong with a file.
pub(crate) fn left(list: &mut Vec<Left>, name: &Name, outcome: Result<()>) {
    if let Err(error) = outcome {
        list.push(Left { name: name.clone(), why: error.to_string() });
    }
}
