//! Approved changes become what is approved.

use std::collections::BTreeSet;

use wardkeep_evidence::hash::BlobHash;

use crate::baseline::Entry;
use crate::changes::{ApprovalHash, Change, ChangeKind, Changes, Source};
use crate::commit::{Expect, Intent, Left, Put, Recovered, Step};
use crate::config::{CONFIG_FILE, Config, Tier, Tiers};
use crate::error::{IdentityError, Result};
use crate::level::{Holder, is_executable};
use crate::name::Name;
use crate::stage::protected;
use crate::tree::Unread;
use crate::version::Version;
use crate::workspace::{Record, Workspace};

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AppliedFile {
    /// Which.
    pub name: Name,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What was approved before.
    pub old: Option<BlobHash>,
    /// What is approved now.
    pub new: Option<BlobHash>,
    /// Whether it can be executed.
    pub executable: bool,
}

/// What was applied.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Applied {
    /// The hash by which it was approved.
    pub hash: ApprovalHash,
    /// By name.
    pub files: Vec<AppliedFile>,
    /// Files that are not protected any more, because `soulguard.json` changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<Name>,
    /// For the history.
    pub versions: Vec<Version>,
    /// What could not be done after the files were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What an ended process had left undone, and was finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Recovered>,
}

impl Workspace<'_> {
    /// Installs the changes that were shown, if their hash is the approved one and the files are what
    /// was approved before: all of them, or none.
    ///
    /// # Errors
    /// If the hash is another, something changed meanwhile, `soulguard.json` would become invalid, or
    /// the file system refuses. Then every file is as it was.
    pub fn apply(&self, changes: &Changes, approved: &ApprovalHash) -> Result<Applied> {
        let _lock = self.store.lock()?;
        let recovered = self.recover_locked()?;
        self.check_place()?;
        let found = changes.hash();
        if found != *approved {
            return Err(IdentityError::HashMismatch { approved: *approved, found });
        }
        let mut record = self.record()?;
        self.check_changes(changes, &record)?;
        let tiers = self.tiers_after(changes, &record)?;
        let mut intent = Intent::new("apply");
        let mut unflushed = Default::default();
        for change in &changes.changes {
            if let Some(bytes) = &change.bytes {
                self.objects.put(bytes, &mut unflushed, self.steps)?;
            }
            intent.steps.push(self.step_of(change, &record, &tiers));
            if change.source != Source::Staging && change.new.is_some() {
                intent.stage.push(change.name.clone());
            }
        }
        self.objects.flush(unflushed, self.steps)?;
        let released = self.retier(&mut intent, &record, &tiers);
        let whole_before = self.whole_folders(&record);
        let done = self.commit(&mut intent, &mut record)?;
        let mut left = done.left;
        left.extend(self.after_apply(changes, &record, &whole_before));
        let versions = versions(&intent);
        let files = changes.changes.iter().map(applied_file).collect();
        Ok(Applied { hash: found, files, released, versions, left, recovered })
    }

    /// Every change is about a protected file that is as it was approved.
    fn check_changes(&self, changes: &Changes, record: &Record) -> Result<()> {
        let mut names = BTreeSet::new();
        let mut buffer = Vec::new();
        for change in &changes.changes {
            let name = &change.name;
            let stale = || IdentityError::Stale { name: name.clone() };
            let entry = record.baseline.entry(name);
            if record.tiers.tier_of(name) != Some(Tier::Protect) {
                return Err(IdentityError::NotProtected { name: name.clone() });
            }
            let mode = entry.is_some_and(|entry| is_executable(entry.mode));
            if !names.insert(name)
                || entry.map(|entry| entry.hash) != change.old
                || mode != change.was_executable
                || !change.is_whole()
            {
                return Err(stale());
            }
            if change.bytes.as_ref().is_some_and(|bytes| bytes.len() as u64 > self.limits.file) {
                let why = "it is too large".to_owned();
                return Err(IdentityError::Unfit { name: name.clone(), why });
            }
            let allowed = allowed(change);
            match self.root.hash(name, self.limits.file, &mut buffer) {
                Ok((hash, _)) if allowed.contains(&hash) => {}
                Err(Unread::Missing) => {}
                _ => return Err(IdentityError::Drifted { name: name.clone() }),
            }
        }
        Ok(())
    }

    /// The tiers that hold afterwards; the configuration protects itself.
    fn tiers_after(&self, changes: &Changes, record: &Record) -> Result<Tiers> {
        let own = |change: &&Change| change.name.as_bytes() == CONFIG_FILE.as_bytes();
        let Some(change) = changes.changes.iter().find(own) else {
            return Ok(record.tiers.clone());
        };
        let refuse = |what: String| Err(IdentityError::SelfProtection { what });
        let bytes = match (&change.bytes, change.new) {
            (Some(bytes), _) => bytes.to_vec(),
            (None, Some(hash)) => self.objects.read(hash)?,
            (None, None) => return refuse("`soulguard.json` cannot be deleted".to_owned()),
        };
        let config = match Config::parse(&bytes) {
            Ok(config) => config,
            Err(error) => {
                return refuse(format!("`soulguard.json` would be invalid after this: {error}"));
            }
        };
        if record.config.lists_itself() && !config.lists_itself() {
            return refuse("`soulguard.json` cannot be taken off its own list".to_owned());
        }
        Ok(config.tiers()?)
    }

    fn step_of(&self, change: &Change, record: &Record, tiers: &Tiers) -> Step {
        let before = record.baseline.entry(&change.name).copied();
        let entry = change.entry(before.as_ref());
        let tier = tiers.tier_of(&change.name);
        let after = entry.zip(tier).map(|(entry, tier)| Entry { tier, ..entry });
        let put = match (entry, tier) {
            (None, _) => Put::Nothing,
            (Some(entry), None) => Put::free(&entry),
            (Some(entry), Some(tier)) => Put::of(&Entry { tier, ..entry }),
        };
        let back = match (before, change.standing == change.new, entry) {
            (Some(before), ..) => Put::of(&before),
            // It stood there before it was approved.
            (None, true, Some(entry)) => Put::free(&entry),
            _ => Put::Nothing,
        };
        let expect = Expect::Only(allowed(change));
        Step { name: change.name.clone(), before, after, put, back, expect }
    }

    /// What a new configuration does to files that are not changed themselves.
    pub(crate) fn retier(&self, intent: &mut Intent, record: &Record, tiers: &Tiers) -> Vec<Name> {
        let changed: BTreeSet<Name> = intent.steps.iter().map(|step| step.name.clone()).collect();
        let mut released = Vec::new();
        for (name, entry) in record.baseline.iter() {
            let tier = tiers.tier_of(name);
            if changed.contains(name) || tier == Some(entry.tier) {
                continue;
            }
            let (after, put) = match (entry.tier, tier) {
                (Tier::Protect, Some(tier)) => {
                    let after = Entry { tier, ..*entry };
                    (Some(after), Put::of(&after))
                }
                (Tier::Protect, None) => (None, Put::free(entry)),
                // What a watched file holds was not shown: it becomes a pending addition.
                (Tier::Watch, _) => (None, Put::Leave),
            };
            if entry.tier == Tier::Protect {
                released.push(name.clone());
                intent.unstage.push(name.clone());
            }
            intent.steps.push(Step {
                name: name.clone(),
                before: Some(*entry),
                after,
                put,
                back: if put == Put::Leave { Put::Leave } else { Put::of(entry) },
                expect: Expect::Only(vec![entry.hash]),
            });
        }
        released
    }

    /// Folders of protected files in which everything is protected.
    pub(crate) fn whole_folders(&self, record: &Record) -> BTreeSet<Name> {
        if !self.level.is_owned() {
            return BTreeSet::new();
        }
        let folders: BTreeSet<Name> =
            protected(record).flat_map(|(name, _)| name.ancestors()).collect();
        folders.into_iter().filter(|name| record.tiers.protects_folder(name)).collect()
    }

    fn after_apply(
        &self,
        changes: &Changes,
        record: &Record,
        whole_before: &BTreeSet<Name>,
    ) -> Vec<Left> {
        let deleted = |change: &&Change| change.kind == ChangeKind::Deleted;
        let gone = changes.changes.iter().filter(deleted).flat_map(|one| one.name.ancestors());
        let emptied: BTreeSet<Name> = gone.filter(|name| !changes.folders.contains(name)).collect();
        let mut left = Vec::new();
        if !emptied.is_empty()
            && let Err(error) = self.bench().and_then(|bench| self.remove_empty(&bench, &emptied))
            && let Some(name) = emptied.first()
        {
            left.push(Left { name: name.clone(), why: error.to_string() });
        }
        let is_free = |name: &&Name| !record.tiers.protects_folder(name);
        let free: BTreeSet<Name> = whole_before.iter().filter(is_free).cloned().collect();
        left.extend(self.free_folders(&free));
        let names: Vec<&Name> = protected(record).map(|(name, _)| name).collect();
        left.extend(self.hold_folders(names.into_iter(), &record.tiers));
        left
    }
}

/// What may stand in the place of a change.
fn allowed(change: &Change) -> Vec<BlobHash> {
    [change.old, change.standing].into_iter().flatten().collect()
}

/// What the history is told of a commit.
pub(crate) fn versions(intent: &Intent) -> Vec<Version> {
    let changed = |step: &&Step| step.before != step.after;
    let version = |step: &Step| Version {
        name: step.name.clone(),
        executable: step.after.is_some_and(|entry| is_executable(entry.mode)),
        hash: step.after.map(|entry| entry.hash),
    };
    intent.steps.iter().filter(changed).map(version).collect()
}

fn applied_file(change: &Change) -> AppliedFile {
    AppliedFile {
        name: change.name.clone(),
        kind: change.kind,
        old: change.old,
        new: change.new,
        executable: change.executable,
    }
}

/// A protected file is held so.
pub(crate) fn protect_put(entry: &Entry) -> Put {
    Put::File { hash: entry.hash, mode: entry.mode, holder: Holder::Protect }
}
