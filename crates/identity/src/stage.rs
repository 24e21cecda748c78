//! Staging copies: made for the agent to edit, reset to what was approved, removed.

use rustix::fs::{Mode, RenameFlags, fchmod, fchown, fsync, openat, renameat_with};
use rustix::io::Errno;

use crate::baseline::Entry;
use crate::bench::{Bench, FOLDER, REPLACED};
use crate::changes::{Change, Source};
use crate::commit::{Intent, Left, Put, left};
use crate::config::Tier;
use crate::error::{IdentityError, Result};
use crate::level::Holder;
use crate::name::Name;
use crate::quarantine::{Kept, Quarantine};
use crate::slot::{Slot, Way};
use crate::staging::STAGING;
use crate::store::unguessable;
use crate::tree::{Root, Unread};
use crate::workspace::{Record, Workspace};

/// How often staging is looked at again while it is reset.
const ROUNDS: usize = 4;

/// What was done to staging.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Staged {
    /// Files that can be edited now.
    pub staged: Vec<Name>,
    /// New ones, empty so far.
    pub made: Vec<Name>,
    /// Files whose deletion is proposed.
    pub deleted: Vec<Name>,
    /// Files that were so before.
    pub already: Vec<Name>,
}

/// What was taken out of staging.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Reset {
    /// Files whose copy is the approved one again, or gone where nothing is approved.
    pub reset: Vec<Name>,
    /// What stood there and was no plain file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
}

impl Workspace<'_> {
    /// Makes sure that protected files have a copy to edit, or with `delete` that they have none,
    /// which proposes their deletion. A folder stands for all protected files in it; a protected name
    /// without a file gets an empty copy.
    ///
    /// # Errors
    /// If one of them is not protected; then nothing is staged.
    pub fn stage(&self, names: &[Name], delete: bool) -> Result<Staged> {
        let _lock = self.store.lock()?;
        self.recover_locked()?;
        self.check_place()?;
        let record = self.record()?;
        let mut files = Vec::new();
        for name in names {
            let below: Vec<Name> = protected(&record)
                .filter(|(other, _)| other.is_below(name))
                .map(|(other, _)| other.clone())
                .collect();
            match record.baseline.entry(name) {
                Some(entry) if entry.tier == Tier::Protect => files.push(name.clone()),
                _ if !below.is_empty() => files.extend(below),
                _ if record.tiers.tier_of(name) == Some(Tier::Protect) && !delete => {
                    files.push(name.clone());
                }
                _ => return Err(IdentityError::NotProtected { name: name.clone() }),
            }
        }
        files.sort_unstable();
        files.dedup();
        let own = |name: &&Name| name.as_bytes() == crate::config::CONFIG_FILE.as_bytes();
        if delete && files.iter().any(|name| own(&name)) {
            let what = "`soulguard.json` cannot be deleted".to_owned();
            return Err(IdentityError::SelfProtection { what });
        }
        let bench = self.bench()?;
        let quarantine = Quarantine::new(self);
        let staging = self.make_staging(&record, &bench, &quarantine)?;
        let mut staged = Staged::default();
        for name in files {
            let there = !matches!(staging.look(&name), Err(Unread::Missing | Unread::Way));
            match (delete, there) {
                (true, true) => {
                    self.remove_copy(&staging, &bench, &quarantine, &name)?;
                    staged.deleted.push(name);
                }
                (false, false) => {
                    let entry = record.baseline.entry(&name);
                    let list = if entry.is_some() { &mut staged.staged } else { &mut staged.made };
                    list.push(name.clone());
                    self.write_copy(&staging, &bench, &quarantine, &name, entry)?;
                }
                _ => staged.already.push(name),
            }
        }
        quarantine.finish(&bench)?;
        Ok(staged)
    }

    /// Makes staging what was approved again: of some files, of everything in some folders, or of all.
    ///
    /// # Errors
    /// If nothing was approved here, or the file system refuses.
    pub fn reset(&self, names: Option<&[Name]>) -> Result<Reset> {
        let _lock = self.store.lock()?;
        self.recover_locked()?;
        self.check_place()?;
        let record = self.record()?;
        let bench = self.bench()?;
        let quarantine = Quarantine::new(self);
        let mut reset = Reset::default();
        let staging = self.make_staging(&record, &bench, &quarantine)?;
        // A folder that was put right has files that are missing then.
        for _ in 0..ROUNDS {
            let files = self.unlike(&record, names)?;
            if files.is_empty() {
                break;
            }
            for name in files {
                match record.baseline.entry(&name).filter(|entry| entry.tier == Tier::Protect) {
                    Some(entry) => {
                        self.write_copy(&staging, &bench, &quarantine, &name, Some(entry))?;
                    }
                    None => self.remove_copy(&staging, &bench, &quarantine, &name)?,
                }
                reset.reset.push(name);
            }
        }
        reset.reset.sort_unstable();
        reset.reset.dedup();
        reset.kept = quarantine.finish(&bench)?;
        Ok(reset)
    }

    /// What in staging is not as it was approved.
    fn unlike(&self, record: &Record, names: Option<&[Name]>) -> Result<Vec<Name>> {
        let all = self.changes_with(record, &|_| {})?;
        let asked = match names {
            Some(names) => all.only(names),
            None => all,
        };
        let staged = |change: &&Change| change.source == Source::Staging;
        let changed = asked.changes.iter().filter(staged).map(|change| change.name.clone());
        // What is refused in its own place is no part of staging.
        let staging = self.staging_root()?;
        let there =
            |name: &&Name| !matches!(staging.look(name), Err(Unread::Missing | Unread::Way));
        let refused = asked.refused.iter().map(|refused| &refused.name).filter(there).cloned();
        let mut files: Vec<Name> = changed.chain(refused).collect();
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    /// The staging folder, made and filled where it is missing.
    pub(crate) fn make_staging(
        &self,
        record: &Record,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
    ) -> Result<Root> {
        match self.staging_root() {
            Err(IdentityError::NoStaging) => {}
            other => return other,
        }
        self.make_staging_folder(bench)
            .map_err(|error| IdentityError::io("make", "the staging folder", error))?;
        let staging = self.staging_root()?;
        for (name, entry) in protected(record) {
            self.write_copy(&staging, bench, quarantine, name, Some(entry))?;
        }
        Ok(staging)
    }

    fn make_staging_folder(&self, bench: &Bench) -> std::io::Result<()> {
        self.steps.step("make the staging folder");
        let (made, folder) = bench.make_folder(None, 0o700)?;
        if let Some((uid, gid)) = self.level.owner(Holder::Staging) {
            fchown(&folder, Some(uid), Some(gid))?;
        }
        fchmod(&folder, Mode::from_raw_mode(0o755))?;
        let open = self.unlocked(bench.own())?;
        if openat(bench.own(), STAGING, FOLDER, Mode::empty()).is_err() {
            // A link, or a file; at user level the agent can put one there.
            let aside = format!("{STAGING}-{REPLACED}-{}", unguessable()?);
            let no = RenameFlags::NOREPLACE;
            match renameat_with(bench.own(), STAGING, bench.own(), &aside, no) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let no = RenameFlags::NOREPLACE;
        renameat_with(bench.handle(), &made, bench.own(), STAGING, no)?;
        fsync(bench.own())?;
        open.relock()
    }

    /// Puts a copy where there may be another one, which is lost: the proposal is taken back.
    pub(crate) fn write_copy(
        &self,
        staging: &Root,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
        name: &Name,
        entry: Option<&Entry>,
    ) -> Result<()> {
        let bytes = match entry {
            Some(entry) => self.objects.read(entry.hash)?,
            None => Vec::new(),
        };
        let mode = entry.map_or(0o644, |entry| entry.mode);
        self.write_bytes(staging, bench, quarantine, name, &bytes, mode)
    }

    pub(crate) fn write_bytes(
        &self,
        staging: &Root,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
        name: &Name,
        bytes: &[u8],
        mode: u32,
    ) -> Result<()> {
        let failed = |error| IdentityError::io("stage", name, error);
        let owner = self.level.owner(Holder::Staging);
        let mode = self.level.file_mode(Holder::Staging, mode);
        let made = bench.make(bytes, owner, mode, self.steps).map_err(failed)?;
        let placed = self
            .slot(staging, bench, name, &Way::Stage(quarantine))
            .and_then(|slot| slot.ok_or(IdentityError::NoStaging))
            .and_then(|slot| self.exchange(bench, &made.leaf, &slot));
        match placed {
            Ok(out) => self.drop_copy(bench, quarantine, name, out),
            Err(error) => {
                bench.drop_leaf(&made.leaf);
                Err(error)
            }
        }
    }

    fn remove_copy(
        &self,
        staging: &Root,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
        name: &Name,
    ) -> Result<()> {
        let slot: Option<Slot> = self.slot(staging, bench, name, &Way::Keep)?;
        let out = match slot {
            Some(slot) => self.take_out(bench, &slot)?,
            None => None,
        };
        self.drop_copy(bench, quarantine, name, out)
    }

    /// A plain copy goes; anything else is kept.
    fn drop_copy(
        &self,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
        name: &Name,
        out: Option<String>,
    ) -> Result<()> {
        let Some(out) = out else { return Ok(()) };
        match bench.look(&out) {
            Ok(Some(look)) if look.kind != crate::tree::Kind::Folder => {
                bench.drop_leaf(&out);
                Ok(())
            }
            _ => quarantine.take(bench, &out, name, &[]),
        }
    }

    /// What a commit does to staging: copies for what has none, none for what is not protected.
    pub(crate) fn restage(
        &self,
        intent: &Intent,
        record: &Record,
        bench: &Bench,
        quarantine: &Quarantine<'_>,
    ) -> Vec<Left> {
        let mut list = Vec::new();
        self.steps.step("renew staging");
        let staging = match self.make_staging(record, bench, quarantine) {
            Ok(staging) => staging,
            Err(error) => {
                let names = intent.stage.iter().chain(&intent.unstage);
                return names
                    .map(|name| Left { name: name.clone(), why: error.to_string() })
                    .collect();
            }
        };
        for name in &intent.stage {
            let entry = record.baseline.entry(name).filter(|entry| entry.tier == Tier::Protect);
            let missing = matches!(staging.look(name), Err(Unread::Missing | Unread::Way));
            if entry.is_some() && missing {
                let made = self.write_copy(&staging, bench, quarantine, name, entry);
                left(&mut list, name, made);
            }
        }
        for name in &intent.unstage {
            left(&mut list, name, self.remove_copy(&staging, bench, quarantine, name));
        }
        list
    }
}

/// What is approved in the protect tier.
pub(crate) fn protected(record: &Record) -> impl Iterator<Item = (&Name, &Entry)> {
    record.baseline.iter().filter(|(_, entry)| entry.tier == Tier::Protect)
}

impl Put {
    /// A file that goes back to the agent.
    pub(crate) fn free(entry: &Entry) -> Self {
        Self::File { hash: entry.hash, mode: entry.mode, holder: Holder::Free }
    }
}
