//! The first time: what the owner finds in the workspace is approved.

use crate::apply::versions;
use crate::baseline::{Baseline, Entry};
use crate::commit::{Expect, Intent, Left, Put, Recovered, Step};
use crate::config::{CONFIG_FILE, Config, Tier};
use crate::error::{IdentityError, Result};
use crate::level::Holder;
use crate::name::Name;
use crate::stage::protected;
use crate::staging::Refused;
use crate::tree::{Hold, Kind, Limits, Root, Unread, walk};
use crate::version::Version;
use crate::workspace::{Record, Workspace};

/// What was set up.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SetUp {
    /// Whether this was the first time.
    pub new: bool,
    /// Whether `soulguard.json` was written, because there was none.
    pub config_made: bool,
    /// Protected files, approved as they were found.
    pub protected: Vec<Name>,
    /// Watched files.
    pub watched: Vec<Name>,
    /// What was found and is not tracked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// For the history.
    pub versions: Vec<Version>,
    /// What could not be done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What an ended process had left undone, and was finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Recovered>,
}

/// What setting a folder up would approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The configuration that would be written; none, where there is one.
    pub config: Option<Vec<u8>>,
    /// What would be protected, beside the configuration.
    pub protected: Vec<Name>,
    /// What would be watched.
    pub watched: Vec<Name>,
}

/// Looks what [`Workspace::set_up`] would approve in a folder; changes nothing.
///
/// # Errors
/// If its configuration is invalid, or the file system refuses.
pub fn preview(path: &std::path::Path, default: &Config, limits: Limits) -> Result<Preview> {
    let root = Root::open(path)?;
    let own = Name::new(CONFIG_FILE.as_bytes())
        .ok_or_else(|| IdentityError::damaged("a name of our own"))?;
    let (config, made) = match root.read(&own, crate::config::MAX_CONFIG as u64) {
        Ok((bytes, _)) => (Config::parse(&bytes)?, None),
        Err(Unread::Missing) => (default.clone(), Some(default.to_bytes())),
        Err(unread) => return Err(IdentityError::Unfit { name: own, why: unread.to_string() }),
    };
    let tiers = config.tiers()?;
    let hold = Hold { tiers: Some(&tiers), limits, progress: &|_| {} };
    let mut preview = Preview { config: made, protected: Vec::new(), watched: Vec::new() };
    for found in walk(&root, &hold)?.found {
        match found.tier.filter(|_| found.look.kind != Kind::Folder && found.name != own) {
            Some(Tier::Protect) => preview.protected.push(found.name),
            Some(Tier::Watch) => preview.watched.push(found.name),
            None => {}
        }
    }
    Ok(preview)
}

impl Workspace<'_> {
    /// Approves what is found, with the configuration of the workspace, or `default` where it has
    /// none. Later calls approve nothing: they make what is missing of staging and put back locks.
    ///
    /// # Errors
    /// If the configuration is invalid, or the file system refuses. Then nothing is set up.
    pub fn set_up(&self, default: &Config, progress: &(dyn Fn(usize) + Sync)) -> Result<SetUp> {
        let _lock = self.store.lock()?;
        let recovered = self.recover_locked()?;
        self.check_place()?;
        let mut outcome = SetUp {
            new: false,
            config_made: false,
            protected: Vec::new(),
            watched: Vec::new(),
            refused: Vec::new(),
            versions: Vec::new(),
            left: Vec::new(),
            recovered,
        };
        let record = if self.is_set_up()? {
            self.record()?
        } else {
            self.first_time(default, progress, &mut outcome)?
        };
        let bench = self.bench()?;
        let quarantine = crate::quarantine::Quarantine::new(self);
        let staging = self.make_staging(&record, &bench, &quarantine)?;
        if outcome.new {
            // What was proposed before there was anything to compare it with proposes no deletion.
            for (name, entry) in protected(&record) {
                if matches!(staging.look(name), Err(Unread::Missing | Unread::Way)) {
                    self.write_copy(&staging, &bench, &quarantine, name, Some(entry))?;
                }
            }
        }
        quarantine.finish(&bench)?;
        let names: Vec<&Name> = protected(&record).map(|(name, _)| name).collect();
        outcome.left.extend(self.hold_folders(names.into_iter(), &record.tiers));
        self.hold_root()
            .map_err(|error| IdentityError::io("hold", self.root.path().display(), error))?;
        Ok(outcome)
    }

    fn first_time(
        &self,
        default: &Config,
        progress: &(dyn Fn(usize) + Sync),
        outcome: &mut SetUp,
    ) -> Result<Record> {
        let own = Name::new(CONFIG_FILE.as_bytes())
            .ok_or_else(|| IdentityError::damaged("a name of our own"))?;
        let unfit =
            |unread: Unread| IdentityError::Unfit { name: own.clone(), why: unread.to_string() };
        let config = match self.root.read(&own, crate::config::MAX_CONFIG as u64) {
            Ok((bytes, _)) => Config::parse(&bytes)?,
            Err(Unread::Missing) => {
                outcome.config_made = true;
                default.clone()
            }
            Err(unread) => return Err(unfit(unread)),
        };
        let tiers = config.tiers()?;
        let mut intent = Intent::new("init");
        let mut unflushed = Default::default();
        if outcome.config_made {
            let bytes = config.to_bytes();
            let hash = self.objects.put(&bytes, &mut unflushed, self.steps)?;
            let (mode, size) = (0o644, bytes.len() as u64);
            let after = Entry { tier: Tier::Protect, hash, mode, size };
            intent.steps.push(Step {
                name: own.clone(),
                before: None,
                after: Some(after),
                put: Put::of(&after),
                back: Put::Nothing,
                expect: Expect::Only(Vec::new()),
            });
        }
        let hold = Hold { tiers: Some(&tiers), limits: self.limits, progress };
        let walk = walk(&self.root, &hold)?;
        for (name, why) in walk.closed {
            outcome.refused.push(Refused { name, why });
        }
        for found in walk.found {
            let Some(tier) = found.tier.filter(|_| found.look.kind != Kind::Folder) else {
                continue;
            };
            let step = match self.adopt(&found.name, tier, &mut unflushed)? {
                Ok(step) => step,
                Err(why) => {
                    outcome.refused.push(Refused { name: found.name, why });
                    continue;
                }
            };
            match tier {
                Tier::Protect => outcome.protected.push(found.name),
                Tier::Watch => outcome.watched.push(found.name),
            }
            intent.steps.push(step);
        }
        if outcome.config_made {
            outcome.protected.push(own.clone());
        } else if !outcome.protected.contains(&own) {
            return Err(IdentityError::Unfit { name: own, why: "it changes all the time".into() });
        }
        self.objects.flush(unflushed, self.steps)?;
        let mut record = Record { baseline: Baseline::default(), config, tiers };
        let done = self.commit(&mut intent, &mut record)?;
        outcome.left.extend(done.left);
        outcome.left.extend(self.hand_watched(intent.steps.iter()));
        outcome.new = true;
        outcome.versions = versions(&intent);
        Ok(record)
    }

    /// A file as it is found becomes approved, or the version that is known.
    pub(crate) fn adopt(
        &self,
        name: &Name,
        tier: Tier,
        unflushed: &mut crate::baseline::Unflushed,
    ) -> Result<std::result::Result<Step, String>> {
        let (bytes, look) = match self.read_own(name) {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        let hash = self.objects.put(&bytes, unflushed, self.steps)?;
        let size = bytes.len() as u64;
        let after = Entry { tier, hash, mode: look.mode & 0o777, size };
        // The agent's own files are not taken out of its hands while it writes them.
        let put = match tier {
            Tier::Protect => Put::of(&after),
            Tier::Watch => Put::Leave,
        };
        let back = match tier {
            Tier::Protect => Put::File { hash, mode: after.mode, holder: Holder::Free },
            Tier::Watch => Put::Leave,
        };
        let expect = Expect::Only(vec![hash]);
        Ok(Ok(Step { name: name.clone(), before: None, after: Some(after), put, back, expect }))
    }
}
