//! What an ended process left undone.

use wardkeep_evidence::hash::{BlobHash, sha256};

use super::{Direction, Intent, Put, Step};
use crate::baseline::Baseline;
use crate::bench::{Bench, WORK};
use crate::config::{CONFIG_FILE, Config};
use crate::error::{IdentityError, Result};
use crate::level::Holder;
use crate::name::Name;
use crate::quarantine::{Kept, Quarantine};
use crate::slot::Way;
use crate::workspace::{INTENT, MAX_INTENT, Record, Workspace};

/// How often a place that another process changes is put right.
const TRIES: usize = 64;

/// A change that was begun by a process that ended, and is finished now.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Recovered {
    /// What was begun.
    pub operation: String,
    /// Completed; else taken back.
    pub completed: bool,
    /// The files.
    pub files: Vec<Name>,
    /// What stood in their place and was neither the old nor the new.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
}

impl Workspace<'_> {
    /// Completes or takes back what an ended process left undone. Every operation that changes
    /// something begins with this.
    ///
    /// # Errors
    /// If neither can be done; the next call tries again.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        let _lock = self.store.lock()?;
        self.recover_locked()
    }

    pub(crate) fn recover_locked(&self) -> Result<Option<Recovered>> {
        let Some(text) = self.store.read(INTENT, MAX_INTENT)? else {
            self.clear_bench()?;
            return Ok(None);
        };
        let mut intent: Intent = serde_json::from_slice(&text)
            .map_err(|error| IdentityError::damaged(format!("the intent: {error}")))?;
        if intent.version != 1 {
            return Err(IdentityError::damaged("the intent is of another version"));
        }
        self.check_place()?;
        let bench = self.bench()?;
        let quarantine = Quarantine::new(self);
        let completed = match intent.direction {
            Direction::Forward => match self.complete(&intent, &bench, &quarantine) {
                Ok(()) => true,
                // What was approved cannot be undone: it is tried again.
                Err(error) if self.is_approved(&intent) => return Err(error),
                Err(_) => {
                    intent.direction = Direction::Back;
                    self.write_intent(&intent)?;
                    self.revert(&intent, &bench, &quarantine)?;
                    false
                }
            },
            Direction::Back => {
                self.revert(&intent, &bench, &quarantine)?;
                false
            }
        };
        self.leftovers(&intent, &bench, &quarantine)?;
        let kept = quarantine.finish(&bench)?;
        self.finish(&intent, &bench)?;
        let files = intent.steps.into_iter().map(|step| step.name).collect();
        Ok(Some(Recovered { operation: intent.operation, completed, files, kept }))
    }

    /// What a process left that ended while it wrote staging. Copies of what is approved go.
    fn clear_bench(&self) -> Result<()> {
        let work = crate::staging::own_name(WORK)?;
        let (true, Ok(_)) = (self.root.is_in_place(), self.root.look(&work)) else { return Ok(()) };
        let bench = self.bench()?;
        let leaves = bench.leaves()?;
        if leaves.is_empty() {
            return Ok(());
        }
        let Some(baseline) = Baseline::read(&self.store)? else { return Ok(()) };
        let mut known: Vec<BlobHash> = baseline.iter().map(|(_, entry)| entry.hash).collect();
        known.push(BlobHash(sha256(b"")));
        let quarantine = Quarantine::new(self);
        let name = crate::staging::staging_name()?;
        for leaf in leaves {
            if Bench::is_unfinished(&leaf) {
                bench.drop_leaf(&leaf);
            } else {
                quarantine.take(&bench, &leaf, &name, &known)?;
            }
        }
        quarantine.finish(&bench).map(|_| ())
    }

    fn is_approved(&self, intent: &Intent) -> bool {
        let Ok(record) = self.record() else { return false };
        let is = |step: &Step| record.baseline.entry(&step.name) == step.after.as_ref();
        intent.steps.iter().any(|step| step.before != step.after) && intent.steps.iter().all(is)
    }

    fn complete(&self, intent: &Intent, bench: &Bench, quarantine: &Quarantine<'_>) -> Result<()> {
        let mut record = self.record_or_new(intent)?;
        let steps: Vec<(&Step, Put)> = intent.steps.iter().map(|step| (step, step.put)).collect();
        self.settle(&steps, &record, bench, quarantine)?;
        self.approve(intent, &mut record)?;
        self.restage(intent, &record, bench, quarantine);
        Ok(())
    }

    fn revert(&self, intent: &Intent, bench: &Bench, quarantine: &Quarantine<'_>) -> Result<()> {
        let mut record = self.record_or_new(intent)?;
        let steps: Vec<(&Step, Put)> = intent.steps.iter().map(|step| (step, step.back)).collect();
        self.settle(&steps, &record, bench, quarantine)?;
        self.disapprove(intent, &mut record)
    }

    /// Every place holds what it should; what it held and is not known is kept.
    pub(super) fn settle(
        &self,
        steps: &[(&Step, Put)],
        record: &Record,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
    ) -> Result<()> {
        for (step, put) in steps {
            let mut tries = TRIES;
            while *put != Put::Leave && !self.holds(&step.name, *put) {
                match self.settle_one(step, *put, record, bench, quarantine) {
                    Err(IdentityError::Raced { .. }) if tries > 0 => tries -= 1,
                    other => {
                        other?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn settle_one(
        &self,
        step: &Step,
        put: Put,
        record: &Record,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
    ) -> Result<()> {
        let name = &step.name;
        let made = self.make(bench, name, put)?;
        let way = match made {
            Some(_) => Way::Mend(&record.tiers, quarantine),
            None => Way::Keep,
        };
        let Some(slot) = self.slot(&self.root, bench, name, &way)? else { return Ok(()) };
        self.steps.step("recover the file");
        let out = match &made {
            Some(made) => {
                made.file.sync_all().map_err(|error| IdentityError::io("flush", name, error))?;
                self.exchange(bench, &made.leaf, &slot)?
            }
            None => self.take_out(bench, &slot)?,
        };
        self.steps.step("recovered");
        if let Some(out) = out {
            quarantine.take(bench, &out, name, &step.known())?;
        }
        if let Some(made) = &made {
            let held = matches!(put, Put::File { holder: Holder::Protect, .. });
            self.settle_in(&self.root, &slot, made, held)?;
        }
        slot.flush().map_err(|error| IdentityError::io("flush", name, error))
    }

    /// Whether a place holds this, with owner and mode.
    pub(crate) fn holds(&self, name: &Name, put: Put) -> bool {
        match put {
            Put::Leave => true,
            Put::Nothing => matches!(self.root.look(name), Err(crate::tree::Unread::Missing)),
            Put::File { hash, mode, holder } => {
                let Ok((found, look)) = self.root.hash(name, self.limits.file, &mut Vec::new())
                else {
                    return false;
                };
                let owner = self.level.owner(holder);
                found == hash
                    && look.links == 1
                    && look.mode == self.level.file_mode(holder, mode)
                    && owner.is_none_or(|(uid, gid)| {
                        (look.uid, look.gid) == (uid.as_raw(), gid.as_raw())
                    })
                    && !self.wants_lock(name, holder)
            }
        }
    }

    /// Whether a file should be locked and is not.
    fn wants_lock(&self, name: &Name, holder: Holder) -> bool {
        if holder != Holder::Protect || !self.level.is_owned() || !self.level.lock().is_immutable()
        {
            return false;
        }
        let open = self.root.open_file(name, self.limits.file);
        !open.is_ok_and(|(file, _)| crate::lock::is_immutable(&file).unwrap_or(false))
    }

    /// What lies on the bench came out of a place, or was made and not used.
    fn leftovers(&self, intent: &Intent, bench: &Bench, quarantine: &Quarantine<'_>) -> Result<()> {
        let known = intent.known();
        // Of which one it is cannot be told any more.
        let Some(name) = intent.steps.first().map(|step| step.name.clone()) else { return Ok(()) };
        for leaf in bench.leaves()? {
            if Bench::is_unfinished(&leaf) {
                bench.drop_leaf(&leaf);
            } else {
                quarantine.take(bench, &leaf, &name, &known)?;
            }
        }
        Ok(())
    }

    /// What was approved; at the first set-up, what is about to be.
    fn record_or_new(&self, intent: &Intent) -> Result<Record> {
        if let Some(baseline) = Baseline::read(&self.store)? {
            let config = baseline.config(&self.objects)?;
            let tiers = config.tiers()?;
            return Ok(Record { baseline, config, tiers });
        }
        let own = |step: &&Step| step.name.as_bytes() == CONFIG_FILE.as_bytes();
        let entry = intent.steps.iter().find(own).and_then(|step| step.after);
        let entry =
            entry.ok_or_else(|| IdentityError::damaged("the intent has no configuration"))?;
        let config = Config::parse(&self.objects.read(entry.hash)?)?;
        let tiers = config.tiers()?;
        Ok(Record { baseline: Baseline::default(), config, tiers })
    }
}
