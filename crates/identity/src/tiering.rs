//! Files move from one tier to another, by the owner's word.

use std::collections::BTreeSet;

use crate::apply::versions;
use crate::baseline::Entry;
use crate::commit::{Expect, Intent, Left, Put, Step};
use crate::config::{CONFIG_FILE, Tier};
use crate::error::{IdentityError, Result};
use crate::name::Name;
use crate::stage::protected;
use crate::staging::Refused;
use crate::tree::{Hold, Kind, Unread, walk};
use crate::version::Version;
use crate::workspace::Workspace;

/// An entry that moved.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Moved {
    /// The file, or the folder with all below it.
    pub name: Name,
    /// Whether it is a folder.
    pub folder: bool,
    /// The tier that it was in.
    pub from: Option<Tier>,
    /// The tier that it is in.
    pub to: Option<Tier>,
}

/// What moved.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Retiered {
    /// In the order in which they were named.
    pub moved: Vec<Moved>,
    /// What was in that tier before.
    pub already: Vec<Name>,
    /// The files that this concerns.
    pub files: Vec<Name>,
    /// Files that cannot be tracked as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// For the history.
    pub versions: Vec<Version>,
    /// What could not be done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
}

impl Workspace<'_> {
    /// Protects files, or folders with all below them: what is there now is approved.
    ///
    /// # Errors
    /// If one does not exist, or the file system refuses; then nothing changes.
    pub fn protect(&self, names: &[Name]) -> Result<Retiered> {
        self.move_to(names, Some(Tier::Protect))
    }

    /// Watches files, or folders with all below them; protected ones go back to the agent.
    ///
    /// # Errors
    /// As [`Self::protect`].
    pub fn watch(&self, names: &[Name]) -> Result<Retiered> {
        self.move_to(names, Some(Tier::Watch))
    }

    /// Takes files, or folders, out of their tier; protected ones go back to the agent.
    ///
    /// # Errors
    /// If one has no entry of its own, or is `soulguard.json`.
    pub fn release(&self, names: &[Name]) -> Result<Retiered> {
        self.move_to(names, None)
    }

    fn move_to(&self, names: &[Name], tier: Option<Tier>) -> Result<Retiered> {
        let _lock = self.store.lock()?;
        self.recover_locked()?;
        self.check_place()?;
        let mut record = self.record()?;
        let mut outcome = Retiered {
            moved: Vec::new(),
            already: Vec::new(),
            files: Vec::new(),
            refused: Vec::new(),
            versions: Vec::new(),
            left: Vec::new(),
        };
        let mut config = record.config.clone();
        for name in names {
            if name.as_bytes() == CONFIG_FILE.as_bytes() && tier != Some(Tier::Protect) {
                let what = "`soulguard.json` is always protected".to_owned();
                return Err(IdentityError::SelfProtection { what });
            }
            let from = record.tiers.tier_of(name);
            let folder = match self.root.look(name) {
                Ok(look) => look.kind == Kind::Folder,
                // It can be released although it is gone.
                Err(Unread::Missing) if tier.is_none() && from.is_some() => false,
                Err(Unread::Missing) => {
                    return Err(IdentityError::Missing { name: name.clone() });
                }
                Err(unread) => {
                    let why = unread.to_string();
                    return Err(IdentityError::Unfit { name: name.clone(), why });
                }
            };
            if from == tier {
                outcome.already.push(name.clone());
                continue;
            }
            config.set(name, folder, tier)?;
            let now = config.tiers()?.tier_of(name);
            // Another entry still says the same of it.
            if now != tier {
                return Err(IdentityError::NotListed { name: name.clone() });
            }
            outcome.moved.push(Moved { name: name.clone(), folder, from, to: tier });
        }
        if outcome.moved.is_empty() {
            return Ok(outcome);
        }
        let tiers = config.tiers()?;
        let mut unflushed = Default::default();
        let mut intent = Intent::new(tier.map_or("release", Tier::word));
        let own = Name::new(CONFIG_FILE.as_bytes())
            .ok_or_else(|| IdentityError::damaged("a name of our own"))?;
        let before = record.baseline.entry(&own).copied();
        let bytes = config.to_bytes();
        let hash = self.objects.put(&bytes, &mut unflushed, self.steps)?;
        let mode = before.map_or(0o644, |before| before.mode);
        let after = Entry { tier: Tier::Protect, hash, mode, size: bytes.len() as u64 };
        intent.steps.push(Step {
            name: own.clone(),
            before,
            after: Some(after),
            put: Put::of(&after),
            back: before.map_or(Put::Leave, |before| Put::of(&before)),
            expect: Expect::Only(before.map(|before| before.hash).into_iter().collect()),
        });
        // What is in a tier now and was not, or was in another.
        let hold = Hold { tiers: Some(&tiers), limits: self.limits, progress: &|_| {} };
        for found in walk(&self.root, &hold)?.found {
            let asked = |name: &Name| found.name == *name || found.name.is_below(name);
            let (Some(now), true) = (found.tier, names.iter().any(asked)) else { continue };
            let before = record.baseline.entry(&found.name).copied();
            let same = before.is_some_and(|before| before.tier == now);
            let released = before.is_some_and(|before| before.tier == Tier::Protect);
            if found.look.kind == Kind::Folder || same || released {
                continue;
            }
            match self.adopt(&found.name, now, &mut unflushed)? {
                Ok(step) => {
                    outcome.files.push(found.name.clone());
                    if now == Tier::Protect {
                        intent.stage.push(found.name);
                    }
                    intent.steps.push(Step { before, ..step });
                }
                Err(why) => outcome.refused.push(Refused { name: found.name, why }),
            }
        }
        if tier == Some(Tier::Protect)
            && let Some(refused) = outcome.refused.iter().find(|one| names.contains(&one.name))
        {
            let (name, why) = (refused.name.clone(), refused.why.clone());
            return Err(IdentityError::Unfit { name, why });
        }
        self.objects.flush(unflushed, self.steps)?;
        outcome.files.extend(self.retier(&mut intent, &record, &tiers));
        let whole_before = self.whole_folders(&record);
        // The staged configuration follows, unless the agent proposes another one.
        let old_config = before.map(|before| before.hash);
        let done = self.commit(&mut intent, &mut record)?;
        outcome.left = done.left;
        outcome.left.extend(self.hand_watched(intent.steps.iter()));
        self.follow_config(old_config, &own, &after)?;
        let is_free = |name: &&Name| !record.tiers.protects_folder(name);
        let free: BTreeSet<Name> = whole_before.iter().filter(is_free).cloned().collect();
        outcome.left.extend(self.free_folders(&free));
        let protected: Vec<&Name> = protected(&record).map(|(name, _)| name).collect();
        outcome.left.extend(self.hold_folders(protected.into_iter(), &record.tiers));
        outcome.versions = versions(&intent);
        Ok(outcome)
    }

    /// The copy of the configuration in staging becomes the new one, if it was the old one.
    fn follow_config(
        &self,
        old: Option<wardkeep_evidence::hash::BlobHash>,
        own: &Name,
        after: &Entry,
    ) -> Result<()> {
        let staging = self.staging_root()?;
        let there = staging.hash(own, self.limits.file, &mut Vec::new()).map(|(hash, _)| hash);
        if there.ok() != old {
            return Ok(());
        }
        let bench = self.bench()?;
        let quarantine = crate::quarantine::Quarantine::new(self);
        self.write_copy(&staging, &bench, &quarantine, own, Some(after))?;
        quarantine.finish(&bench)?;
        Ok(())
    }
}
