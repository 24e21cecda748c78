//! What drifted becomes what was approved again. Nothing that is found is adopted.

use rustix::fs::{Mode, fchmod, fchown};

use crate::apply::{protect_put, versions};
use crate::baseline::Entry;
use crate::commit::{Expect, Intent, Left, Put, Recovered, Step, left};
use crate::config::Tier;
use crate::error::{IdentityError, Result};
use crate::level::Holder;
use crate::name::Name;
use crate::quarantine::Kept;
use crate::state::{Drift, FileState, State, Status};
use crate::tree::Kind;
use crate::version::Version;
use crate::workspace::{Record, Workspace};

/// A file that was put right.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Mended {
    /// Which.
    pub name: Name,
    /// Its tier.
    pub tier: Tier,
    /// Whether it was drifted or missing.
    pub status: Status,
    /// What was wrong.
    pub drift: Vec<Drift>,
}

/// What was put right.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Synced {
    /// By name.
    pub mended: Vec<Mended>,
    /// New files in the protect tier that the agent cannot change any more, and are not approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<Name>,
    /// New versions of watched files, for the history.
    pub versions: Vec<Version>,
    /// What was replaced, and where it is now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// What could not be put right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What an ended process had left undone, and was finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Recovered>,
}

impl Workspace<'_> {
    /// Restores approved bytes, kind, owner and mode in the protect tier, and owner and mode in the
    /// watch tier, whose new versions are noted. What is replaced is kept.
    ///
    /// # Errors
    /// If nothing was approved here, or the workspace cannot be read. What could not be put right is
    /// in the outcome.
    pub fn sync(&self, progress: &(dyn Fn(usize) + Sync)) -> Result<Synced> {
        let _lock = self.store.lock()?;
        let recovered = self.recover_locked()?;
        self.check_place()?;
        let mut record = self.record()?;
        let state = self.look_with(&record, progress, !self.level.is_owned())?;
        let mut synced = Synced { recovered, ..Synced::default() };
        for closed in &state.closed {
            synced.left.push(Left { name: closed.name.clone(), why: closed.why.clone() });
        }
        self.restore_protected(&state, &mut record, &mut synced)?;
        self.version_watched(&state, &mut record, &mut synced)?;
        synced.mended.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(synced)
    }

    /// Notes new versions of watched files, and mends their owner and mode; protected files are left as
    /// they are found.
    ///
    /// # Errors
    /// As [`Self::sync`].
    pub fn keep_watched(&self) -> Result<Synced> {
        let _lock = self.store.lock()?;
        let recovered = self.recover_locked()?;
        self.check_place()?;
        let mut record = self.record()?;
        let state = self.look_with(&record, &|_| {}, false)?;
        let mut synced = Synced { recovered, ..Synced::default() };
        self.version_watched(&state, &mut record, &mut synced)?;
        Ok(synced)
    }

    fn restore_protected(
        &self,
        state: &State,
        record: &mut Record,
        synced: &mut Synced,
    ) -> Result<()> {
        let mut wrong = Vec::new();
        for file in state.files.iter().filter(|file| file.tier == Tier::Protect) {
            let folder = file.look.is_some_and(|look| look.kind == Kind::Folder);
            match (file.status, record.baseline.entry(&file.name)) {
                (Status::Drifted | Status::Missing, Some(entry)) => {
                    wrong.push((file, restore(&file.name, entry)));
                }
                (Status::Drifted, None)
                    if file.look.is_some_and(|look| look.kind == Kind::File) =>
                {
                    left(&mut synced.left, &file.name, Err(unfit(file)));
                }
                // Links, pipes and the like in a protected place.
                (Status::Drifted, None) if !folder => wrong.push((file, remove(&file.name))),
                (Status::Pending, None) if self.level.is_owned() && !file.drift.is_empty() => {
                    self.lock_pending(file, &mut wrong, synced);
                }
                _ => {}
            }
        }
        // All at once; or, if that fails, one after the other: what fails keeps no other from being
        // restored.
        let all: Vec<Step> = wrong.iter().map(|(_, step)| step.clone()).collect();
        match self.restore_steps(all, record, synced) {
            Ok(()) => wrong.iter().for_each(|(file, _)| note_mended(file, synced)),
            Err(_) => {
                for (file, step) in wrong {
                    match self.restore_steps(vec![step], record, synced) {
                        Ok(()) => note_mended(file, synced),
                        Err(error) => left(&mut synced.left, &file.name, Err(error)),
                    }
                }
            }
        }
        self.restore_folders(state, record, synced);
        Ok(())
    }

    fn restore_steps(
        &self,
        steps: Vec<Step>,
        record: &mut Record,
        synced: &mut Synced,
    ) -> Result<()> {
        let mut intent = Intent { steps, ..Intent::new("sync") };
        let done = self.commit(&mut intent, record)?;
        synced.kept.extend(done.kept);
        synced.left.extend(done.left);
        Ok(())
    }

    /// A new file is copied, so that nobody holds it open to write, and locked.
    fn lock_pending<'b>(
        &self,
        file: &'b FileState,
        wrong: &mut Vec<(&'b FileState, Step)>,
        synced: &mut Synced,
    ) {
        let mut unflushed = Default::default();
        let kept = self
            .read_own(&file.name)
            .map_err(|why| IdentityError::Unfit { name: file.name.clone(), why })
            .and_then(|(bytes, look)| {
                let hash = self.objects.put(&bytes, &mut unflushed, self.steps)?;
                let (mode, size) = (look.mode & 0o777, bytes.len() as u64);
                Ok(Entry { tier: Tier::Protect, hash, mode, size })
            });
        match kept {
            Ok(entry) => {
                let step = Step {
                    name: file.name.clone(),
                    before: None,
                    after: None,
                    put: protect_put(&entry),
                    back: Put::Leave,
                    expect: Expect::Anything,
                };
                wrong.push((file, step));
            }
            Err(error) => left(&mut synced.left, &file.name, Err(error)),
        }
    }

    fn restore_folders(&self, state: &State, record: &Record, synced: &mut Synced) {
        let folders: Vec<&FileState> = state
            .files
            .iter()
            .filter(|file| file.look.is_some_and(|look| look.kind == Kind::Folder))
            .filter(|file| record.baseline.entry(&file.name).is_none())
            .collect();
        // The folder itself is on the way to anything in it.
        let inner: Vec<Name> =
            folders.iter().filter_map(|folder| Name::child(Some(&folder.name), b"x")).collect();
        let protected: Vec<&Name> = crate::stage::protected(record).map(|(name, _)| name).collect();
        let held = self.hold_folders(inner.iter().chain(protected), &record.tiers);
        for folder in folders {
            if !held.iter().any(|left| left.name == folder.name) {
                synced.mended.push(mended(folder));
            }
        }
        synced.left.extend(held);
    }

    /// Owner and mode of watched files, and which of them have a new version.
    fn version_watched(
        &self,
        state: &State,
        record: &mut Record,
        synced: &mut Synced,
    ) -> Result<()> {
        let mut intent = Intent::new("sync");
        let mut unflushed = Default::default();
        for file in state.files.iter().filter(|file| file.tier == Tier::Watch) {
            let before = record.baseline.entry(&file.name).copied();
            if file.status == Status::Missing {
                intent.steps.push(note(&file.name, before, None));
                continue;
            }
            if file.look.is_none_or(|look| look.kind != Kind::File) {
                left(&mut synced.left, &file.name, Err(unfit(file)));
                continue;
            }
            if !file.drift.is_empty() {
                match self.mend_watched(&file.name, before.as_ref()) {
                    Ok(()) => synced.mended.push(mended(file)),
                    Err(error) => {
                        left(&mut synced.left, &file.name, Err(error));
                        continue;
                    }
                }
            }
            if file.hash.is_none() || file.hash == before.map(|entry| entry.hash) {
                continue;
            }
            match self.read_own(&file.name) {
                Ok((bytes, look)) => {
                    let hash = self.objects.put(&bytes, &mut unflushed, self.steps)?;
                    let size = bytes.len() as u64;
                    let entry = Entry { tier: Tier::Watch, hash, mode: look.mode & 0o777, size };
                    intent.steps.push(note(&file.name, before, Some(entry)));
                }
                Err(why) => synced.left.push(Left { name: file.name.clone(), why }),
            }
        }
        self.objects.flush(unflushed, self.steps)?;
        self.commit(&mut intent, record)?;
        synced.versions = versions(&intent);
        Ok(())
    }

    /// Owner and mode of a watched file, by descriptor. One that belongs to somebody else is left
    /// alone unless its content is known: else the agent could have a foreign file handed to it.
    fn mend_watched(&self, name: &Name, before: Option<&Entry>) -> Result<()> {
        let failed = |error: std::io::Error| IdentityError::io("mend", name, error);
        let unfit = |why: String| IdentityError::Unfit { name: name.clone(), why };
        let (open, look) = self
            .root
            .open_file(name, self.limits.file)
            .map_err(|unread| unfit(unread.to_string()))?;
        let read = || {
            let copy = open.try_clone().map_err(failed)?;
            crate::tree::read_whole(copy, self.limits.file, look.size)
                .map_err(|unread| unfit(unread.to_string()))
        };
        let known = match before {
            Some(before) if !self.level.is_ours(look.uid) => {
                before.hash.0 == wardkeep_evidence::hash::sha256(&read()?)
            }
            _ => false,
        };
        if look.links != 1 {
            return Err(unfit(format!("it has {} names; remove the others", look.links)));
        }
        if !self.level.is_ours(look.uid) && !known {
            return Err(unfit(format!("it belongs to user {}; put it right by hand", look.uid)));
        }
        let mode = self.level.file_mode(Holder::Watch, look.mode);
        if let Some((uid, gid)) = self.level.owner(Holder::Watch) {
            self.steps.step("mend a watched file");
            fchown(&open, Some(uid), Some(gid)).map_err(|errno| failed(errno.into()))?;
            fchmod(&open, Mode::from_raw_mode(mode)).map_err(|errno| failed(errno.into()))?;
        }
        Ok(())
    }

    /// Owner and mode of files that were just put in the watch tier.
    pub(crate) fn hand_watched<'b>(&self, steps: impl Iterator<Item = &'b Step>) -> Vec<Left> {
        let mut list = Vec::new();
        if !self.level.is_owned() {
            return list;
        }
        for step in steps {
            let Some(entry) = step.after.filter(|entry| entry.tier == Tier::Watch) else {
                continue;
            };
            left(&mut list, &step.name, self.mend_watched(&step.name, Some(&entry)));
        }
        list
    }
}

fn restore(name: &Name, entry: &Entry) -> Step {
    Step {
        name: name.clone(),
        before: Some(*entry),
        after: Some(*entry),
        put: Put::of(entry),
        back: Put::Leave,
        expect: Expect::Anything,
    }
}

fn remove(name: &Name) -> Step {
    Step {
        name: name.clone(),
        before: None,
        after: None,
        put: Put::Nothing,
        back: Put::Leave,
        expect: Expect::Anything,
    }
}

/// Only what is known of a file changes.
fn note(name: &Name, before: Option<Entry>, after: Option<Entry>) -> Step {
    let (put, back) = (Put::Leave, Put::Leave);
    Step { name: name.clone(), before, after, put, back, expect: Expect::Anything }
}

fn note_mended(file: &FileState, synced: &mut Synced) {
    if file.status == Status::Pending {
        synced.locked.push(file.name.clone());
    } else {
        synced.mended.push(mended(file));
    }
}

fn mended(file: &FileState) -> Mended {
    Mended {
        name: file.name.clone(),
        tier: file.tier,
        status: file.status,
        drift: file.drift.clone(),
    }
}

fn unfit(file: &FileState) -> IdentityError {
    let drift: Vec<String> = file.drift.iter().map(ToString::to_string).collect();
    let why = format!("{}; put it right by hand", drift.join(", "));
    IdentityError::Unfit { name: file.name.clone(), why }
}
