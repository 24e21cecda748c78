//! What is tracked in a workspace, found by walking it.

use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::{Kind, Limits, Look, Root, Unread};
use crate::config::{Cursor, Tier, Tiers};
use crate::error::{IdentityError, Result};
use crate::name::Name;

/// What a walk does with an entry.
pub(crate) struct Hold<'a> {
    /// Which entries are wanted; of `None` all are.
    pub(crate) tiers: Option<&'a Tiers>,
    pub(crate) limits: Limits,
    /// Told of how many files were seen.
    pub(crate) progress: &'a (dyn Fn(usize) + Sync),
}

/// Something tracked. Folders are, where everything in them is protected.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: Name,
    pub(crate) tier: Option<Tier>,
    pub(crate) look: Look,
}

/// All of it, by name.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) found: Vec<Found>,
    /// Folders that could not be looked into, and why.
    pub(crate) closed: Vec<(Name, String)>,
}

struct Job {
    folder: Option<Name>,
    cursor: Option<Cursor>,
    depth: usize,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    busy: usize,
    failed: Option<IdentityError>,
}

struct Shared<'a> {
    root: &'a Root,
    hold: &'a Hold<'a>,
    queue: Mutex<Queue>,
    ready: Condvar,
    entries: AtomicUsize,
    files: AtomicUsize,
}

/// Walks a workspace or a staging folder.
pub(crate) fn walk(root: &Root, hold: &Hold<'_>) -> Result<Walk> {
    let shared = Shared {
        root,
        hold,
        queue: Mutex::new(Queue {
            jobs: vec![Job { folder: None, cursor: None, depth: 0 }],
            ..Queue::default()
        }),
        ready: Condvar::new(),
        entries: AtomicUsize::new(0),
        files: AtomicUsize::new(0),
    };
    let mut walk = Walk::default();
    std::thread::scope(|scope| {
        let others: Vec<_> =
            (1..hold.limits.threads.clamp(1, 64)).map(|_| scope.spawn(|| shared.work())).collect();
        let mut parts = vec![shared.work()];
        parts.extend(others.into_iter().filter_map(|other| other.join().ok()));
        for part in parts {
            walk.found.extend(part.found);
            walk.closed.extend(part.closed);
        }
    });
    if let Some(error) = shared.lock().failed.take() {
        return Err(error);
    }
    walk.found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    walk.closed.sort_unstable();
    Ok(walk)
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes folders until there are none left.
    fn work(&self) -> Walk {
        let mut walk = Walk::default();
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() {
                self.ready.notify_all();
                return walk;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                drop(queue);
                let mut more = Vec::new();
                let done = self.folder(&job, &mut walk, &mut more);
                queue = self.lock();
                queue.busy -= 1;
                queue.jobs.append(&mut more);
                if let Err(error) = done {
                    queue.failed = Some(error);
                }
                self.ready.notify_all();
            } else if queue.busy == 0 {
                self.ready.notify_all();
                return walk;
            } else {
                queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn folder(&self, job: &Job, walk: &mut Walk, more: &mut Vec<Job>) -> Result<()> {
        let close = |walk: &mut Walk, name: Option<&Name>, why: String| match name {
            Some(name) => {
                walk.closed.push((name.clone(), why));
                Ok(())
            }
            None => Err(IdentityError::io(
                "read",
                self.root.path().display(),
                std::io::Error::other(why),
            )),
        };
        let folder = match self.root.folder(job.folder.as_ref()) {
            Ok(folder) => folder,
            // Gone or replaced since its name was read; what was in it is missing then.
            Err(errno) => {
                return match (Unread::from(errno), &job.folder) {
                    (Unread::Missing | Unread::Way, Some(_)) => Ok(()),
                    (unread, name) => close(walk, name.as_ref(), unread.to_string()),
                };
            }
        };
        let entries = match Dir::read_from(&folder) {
            Ok(entries) => entries,
            Err(errno) => return close(walk, job.folder.as_ref(), errno.to_string()),
        };
        let limits = self.hold.limits;
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => return close(walk, job.folder.as_ref(), errno.to_string()),
            };
            let component = entry.file_name().to_bytes();
            if component == b"." || component == b".." {
                continue;
            }
            if self.entries.fetch_add(1, Ordering::Relaxed) >= limits.entries {
                let limit = limits.entries as u64;
                return Err(IdentityError::TooMuch { limit, what: "entries in tracked folders" });
            }
            let cursor = self.hold.tiers.map(|tiers| tiers.step(job.cursor.as_ref(), component));
            let asked = self.hold.tiers.zip(cursor.as_ref());
            let tier = asked.and_then(|(tiers, cursor)| tiers.tier(cursor));
            let open = asked.is_none_or(|(tiers, cursor)| tiers.is_open(cursor));
            if tier.is_none() && !open {
                continue;
            }
            let kind = entry.file_type();
            if tier.is_none()
                && self.hold.tiers.is_some()
                && !matches!(kind, FileType::Directory | FileType::Unknown)
            {
                continue;
            }
            let Some(name) = Name::child(job.folder.as_ref(), component) else {
                close(walk, job.folder.as_ref(), "a name in it is too long".to_owned())?;
                continue;
            };
            let leaf = std::ffi::OsStr::from_bytes(component);
            let look = match statat(folder.as_fd(), leaf, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Look::of(&stat),
                Err(rustix::io::Errno::NOENT) => continue,
                Err(errno) => {
                    close(walk, Some(&name), errno.to_string())?;
                    continue;
                }
            };
            if look.kind == Kind::Folder {
                let whole = asked.is_some_and(|(tiers, cursor)| tiers.is_whole(cursor));
                if open && job.depth + 1 >= limits.depth {
                    close(walk, Some(&name), "folders lie too deep in one another".to_owned())?;
                } else if open {
                    let depth = job.depth + 1;
                    more.push(Job { folder: Some(name.clone()), cursor, depth });
                }
                if whole || self.hold.tiers.is_none() {
                    walk.found.push(Found { name, tier, look });
                }
                continue;
            }
            if tier.is_none() && self.hold.tiers.is_some() {
                continue;
            }
            let count = self.files.fetch_add(1, Ordering::Relaxed) + 1;
            if count > limits.files {
                return Err(IdentityError::TooMuch {
                    limit: limits.files as u64,
                    what: "tracked files",
                });
            }
            if count.is_multiple_of(1024) {
                (self.hold.progress)(count);
            }
            walk.found.push(Found { name, tier, look });
        }
        Ok(())
    }
}
