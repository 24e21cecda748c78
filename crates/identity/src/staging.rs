//! What the agent proposes: copies of the protected files that it can write, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wardkeep_evidence::hash::{BlobHash, sha256};

use crate::baseline::Entry;
use crate::config::{OWN_FOLDER, Tier};
use crate::error::{IdentityError, Result};
use crate::level::{Holder, Level, is_executable};
use crate::name::Name;
use crate::parallel::each;
use crate::state::cache::{Cache, Cached, Trust};
use crate::tree::{Found, Hold, Kind, Look, Root, Unread, read_whole, walk};
use crate::workspace::{Record, Workspace};

const CACHE: &str = "staging-cache";
/// The folder in [`OWN_FOLDER`].
pub(crate) const STAGING: &str = "staging";

/// A file in staging, or in a protected folder, that is no proposal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Refused {
    /// Which.
    pub name: Name,
    /// Why not.
    pub why: String,
}

/// A proposed file.
#[derive(Debug, Clone)]
pub(crate) struct Proposed {
    pub(crate) hash: BlobHash,
    pub(crate) executable: bool,
    /// `None` where the bytes are those that were approved.
    pub(crate) bytes: Option<Arc<[u8]>>,
}

/// Everything in staging, as it was when it was read.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    pub(crate) files: BTreeMap<Name, Proposed>,
    pub(crate) folders: BTreeSet<Name>,
    pub(crate) refused: Vec<Refused>,
}

impl Staging {
    /// Whether something stands at a name, be it a proposal or not: then it was not deleted.
    pub(crate) fn has(&self, name: &Name) -> bool {
        let refused = |refused: &Refused| refused.name == *name || name.is_below(&refused.name);
        self.files.contains_key(name) || self.refused.iter().any(refused)
    }
}

/// How many bytes an operation may still hold.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { left: AtomicU64::new(limit), limit }
    }

    pub(crate) fn take(&self, size: u64) -> Result<()> {
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        let what = "bytes in changed files";
        taken.map(|_| ()).map_err(|_| IdentityError::TooMuch { limit: self.limit, what })
    }
}

impl Workspace<'_> {
    /// The staging folder, held open.
    pub(crate) fn staging_root(&self) -> Result<Root> {
        let name = staging_name()?;
        match self.root.below(&name) {
            Ok(root) => Ok(root),
            Err(Unread::Missing | Unread::Way) => Err(IdentityError::NoStaging),
            Err(unread) => {
                Err(IdentityError::io("open", name, std::io::Error::other(unread.to_string())))
            }
        }
    }

    /// Reads staging, each changed file once. What is unfit is named and left alone.
    pub(crate) fn read_staging(
        &self,
        record: &Record,
        budget: &Budget,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Staging> {
        let root = self.staging_root()?;
        let walk = walk(&root, &Hold { tiers: None, limits: self.limits, progress })?;
        let mut staging = Staging::default();
        for (name, why) in walk.closed {
            staging.refused.push(Refused { name, why });
        }
        let mut files: Vec<&Found> = Vec::with_capacity(walk.found.len());
        for found in &walk.found {
            if found.look.kind == Kind::Folder {
                staging.folders.insert(found.name.clone());
            } else {
                files.push(found);
            }
        }
        let cache = Cache::read(&self.store, CACHE);
        let trust = Trust::new(&root, true, self.now);
        let reader = Reader { level: self.level, limit: self.limits.file, root: &root, budget };
        let read = each(
            &files,
            self.limits.threads,
            || (),
            |(), found| {
                if record.tiers.tier_of(&found.name) != Some(Tier::Protect) {
                    return Ok(Err("it is not in the protect tier".to_owned()));
                }
                let entry = record.baseline.entry(&found.name);
                // Only what is as approved is taken from memory: a change that hides is no change.
                let same = entry
                    .is_some_and(|entry| cache.hash(&found.name, &found.look) == Some(entry.hash));
                if same && let Some(entry) = entry {
                    return Ok(reader.check(&found.look).map(|()| (entry.hash, None, found.look)));
                }
                reader.read(&found.name, entry)
            },
        );
        let mut entries = Vec::with_capacity(files.len());
        for (found, read) in files.iter().zip(read) {
            match read? {
                Ok((hash, bytes, look)) => {
                    if trust.allows(&look) {
                        entries.push((found.name.clone(), Cached::new(&look, hash)));
                    }
                    let executable = is_executable(look.mode);
                    staging.files.insert(found.name.clone(), Proposed { hash, executable, bytes });
                }
                Err(why) => staging.refused.push(Refused { name: found.name.clone(), why }),
            }
        }
        let known = entries.iter().filter(|(name, cached)| cache.is(name, cached)).count();
        if known != entries.len() || cache.len() != entries.len() {
            Cache::write(&self.store, CACHE, entries);
        }
        Ok(staging)
    }
}

/// A hash, the bytes where they are not those that were approved, and what the system said.
type Taken = (BlobHash, Option<Arc<[u8]>>, Look);

struct Reader<'a> {
    level: Level,
    limit: u64,
    root: &'a Root,
    budget: &'a Budget,
}

impl Reader<'_> {
    fn read(
        &self,
        name: &Name,
        entry: Option<&Entry>,
    ) -> Result<std::result::Result<Taken, String>> {
        let (file, look) = match self.root.open_file(name, self.limit) {
            Ok(open) => open,
            Err(unread) => return Ok(Err(unread.to_string())),
        };
        if let Err(why) = self.check(&look) {
            return Ok(Err(why));
        }
        let bytes = match read_whole(file, self.limit, look.size) {
            Ok(bytes) => bytes,
            Err(unread) => return Ok(Err(unread.to_string())),
        };
        let hash = BlobHash(sha256(&bytes));
        if entry.is_some_and(|entry| entry.hash == hash) {
            return Ok(Ok((hash, None, look)));
        }
        self.budget.take(bytes.len() as u64)?;
        Ok(Ok((hash, Some(bytes.into()), look)))
    }

    fn check(&self, look: &Look) -> std::result::Result<(), String> {
        if look.kind != Kind::File {
            return Err(Unread::Kind(look.kind).to_string());
        }
        if look.links != 1 {
            return Err(Unread::Links(look.links).to_string());
        }
        match self.level.owner(Holder::Staging) {
            Some((agent, _)) if look.uid != agent.as_raw() => {
                Err(format!("it belongs to user {}, not to the agent", look.uid))
            }
            _ => Ok(()),
        }
    }
}

/// Where staging lies.
pub(crate) fn staging_name() -> Result<Name> {
    own_name(STAGING)
}

/// A name in [`OWN_FOLDER`].
pub(crate) fn own_name(leaf: &str) -> Result<Name> {
    Name::new(format!("{OWN_FOLDER}/{leaf}").as_bytes())
        .ok_or_else(|| IdentityError::damaged("a name of our own"))
}
