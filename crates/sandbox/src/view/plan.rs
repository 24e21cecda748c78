//! The view as a list of calls, ready for a process that may not allocate.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::settings::{self, NewSettings};
use super::{Entry, OWN_FOLDER, Shown, View, absolute, is_masked, relative};
use crate::error::SandboxError;
use crate::landlock::Access;
use crate::notify;
use crate::sys::{NO_DEV, NO_EXEC, NO_SUID, READ_ONLY};

/// What the new root is made of, in this order.
pub(crate) struct Plan {
    /// Folders, from the root on, with their modes.
    pub(crate) folders: Vec<(CString, u32)>,
    /// Empty files.
    pub(crate) files: Vec<CString>,
    /// Files that are copied: from where in the old root, and to where in the new.
    pub(crate) copies: Vec<(CString, CString)>,
    /// Links: what they say, and where they are.
    pub(crate) links: Vec<(CString, CString)>,
    pub(crate) mounts: Vec<Mount>,
    /// Landlock rules, by absolute path inside.
    pub(crate) rules: Vec<(CString, Access)>,
    /// Where the program starts.
    pub(crate) directory: CString,
    /// Files that are shown empty: where each one's empty file is inside, and what it stands for.
    pub(crate) masked: Vec<(CString, String)>,
    /// Held as long as copies are mounted that another run has made.
    pub(crate) held: Option<File>,
    /// Copies to be kept for other runs.
    pub(crate) news: Option<NewSettings>,
}

/// A mount of the new root.
pub(crate) struct Mount {
    pub(crate) source: Source,
    pub(crate) target: CString,
    pub(crate) attributes: u64,
}

/// What is mounted.
pub(crate) enum Source {
    /// Something of the old root.
    Old(CString),
    /// The new root's own folder at this place, so that it can be written.
    Own,
    /// Another folder of the new root, at this place.
    Folder(CString),
    /// An empty file, at this place in the new root.
    EmptyFile(CString),
    /// An empty folder.
    EmptyFolder,
}

/// A name in the workspace that is guarded.
pub(crate) struct Guarded {
    pub(crate) path: CString,
    pub(crate) held: Held,
}

/// How it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Held {
    /// It cannot be moved away.
    Pinned,
    /// A link that cannot be moved away or removed.
    Link,
    /// It cannot be written.
    ReadOnly,
    /// It is shown empty.
    EmptyFile,
    /// The same for a folder.
    EmptyFolder,
}

impl Held {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        let all = [Self::Pinned, Self::Link, Self::ReadOnly, Self::EmptyFile, Self::EmptyFolder];
        all.into_iter().find(|held| *held as u8 == byte)
    }
}

/// The empty files and the empty folder that masks are made of.
pub(crate) const EMPTY_FILES: &str = "/run/wardkeep/masked";
pub(crate) const EMPTY_FOLDER: &str = "/run/wardkeep/nothing";
/// Folders that stand for others.
const FRESH: &str = "/run/wardkeep/fresh";
/// Says that a process is confined, where no process can take it away.
pub(crate) const MARK: &str = "/run/wardkeep/confined";

impl View {
    /// Lists the calls.
    pub(crate) fn plan(&self) -> Result<Plan, SandboxError> {
        let mut folders: BTreeMap<PathBuf, u32> = BTreeMap::new();
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        let mut copies = Vec::new();
        let own =
            ["/proc", "/dev", "/dev/pts", EMPTY_FILES, EMPTY_FOLDER, "/home", "/root", "/var"];
        for path in own {
            with_ancestors(Path::new(path), &mut folders);
        }
        files.insert(MARK.into());
        let mut masks = Masks::default();
        for path in self.copies.keys().filter(|path| !self.beneath(path)) {
            if let Some(above) = path.parent() {
                with_ancestors(above, &mut folders);
            }
            copies.push((absolute(path)?, relative(path)?));
        }
        let mut mounts = Vec::new();
        let mut rules = vec![
            (c"/".to_owned(), Access::List),
            (c"/proc".to_owned(), Access::Read),
            (c"/dev".to_owned(), Access::Devices),
            (c"/etc".to_owned(), Access::ReadExecute),
            (absolute(Path::new(OWN_FOLDER))?, Access::Read),
        ];
        for (path, entry) in &self.entries {
            let beneath = self.beneath(path);
            if matches!(entry.shown, Shown::Scratch | Shown::Bare) && beneath {
                continue;
            }
            if !beneath {
                if let Some(above) = path.parent() {
                    with_ancestors(above, &mut folders);
                }
                if entry.folder {
                    folders.insert(
                        path.clone(),
                        match entry.shown {
                            Shown::Scratch if self.own.contains(path) => 0o700,
                            Shown::Scratch => 0o1777,
                            _ => 0o755,
                        },
                    );
                } else {
                    files.insert(path.clone());
                }
            }
            if entry.shown == Shown::Fresh {
                let place = Path::new(FRESH).join(mounts.len().to_string());
                with_ancestors(Path::new(FRESH), &mut folders);
                folders.insert(place.clone(), 0o700);
                mounts.push(Mount {
                    source: Source::Folder(relative(&place)?),
                    target: relative(path)?,
                    attributes: NO_SUID | NO_DEV,
                });
                continue;
            }
            let source = self.stand_ins.get(path).unwrap_or(path);
            mounts.push(mount_of(path, source, *entry, &mut masks)?);
            // What lies there may be read, or is a device, by the rules above.
            if entry.shown == Shown::Device
                || (entry.shown == Shown::Read && path.starts_with("/etc"))
            {
                continue;
            }
            rules
                .extend(access_of(*entry).map(|access| Ok((absolute(path)?, access))).transpose()?);
        }
        // Links lead to some of them.
        for path in self.copies.keys().filter(|path| !path.starts_with("/etc")) {
            rules.push((absolute(path)?, Access::Read));
        }
        let mut links = vec![
            (c"/proc/self/fd".to_owned(), c"dev/fd".to_owned()),
            (c"/proc/self/fd/0".to_owned(), c"dev/stdin".to_owned()),
            (c"/proc/self/fd/1".to_owned(), c"dev/stdout".to_owned()),
            (c"/proc/self/fd/2".to_owned(), c"dev/stderr".to_owned()),
            (c"pts/ptmx".to_owned(), c"dev/ptmx".to_owned()),
        ];
        for (path, target) in self.links.iter().filter(|(path, _)| !self.beneath(path)) {
            if let Some(above) = path.parent() {
                with_ancestors(above, &mut folders);
            }
            links.push((absolute(target)?, relative(path)?));
        }
        for (path, _) in &masks.files {
            let path = Path::new(OsStr::from_bytes(path.to_bytes()));
            files.insert(path.to_owned());
        }
        // A link stands where otherwise a folder would be made.
        folders.retain(|path, _| !self.links.contains_key(path) && path.parent().is_some());
        let folders = folders.iter().map(|(path, mode)| Ok((relative(path)?, *mode)));
        let mut plan = Plan {
            folders: folders.collect::<Result<_, SandboxError>>()?,
            files: files.iter().map(|path| relative(path)).collect::<Result<_, _>>()?,
            copies,
            links,
            mounts,
            rules,
            directory: absolute(&self.directory)?,
            masked: masks.files,
            held: None,
            news: None,
        };
        if let Some(folder) = &self.settings {
            let stamp = |path: &Path| self.copies.get(path).copied();
            (plan.held, plan.news) = settings::settle(&mut plan, stamp, folder);
        }
        Ok(plan)
    }

    /// Whether a path lies in a tree that is taken over whole.
    fn beneath(&self, path: &Path) -> bool {
        let above = path.parent().and_then(|above| self.covering(above));
        above.is_some_and(|(_, entry)| {
            matches!(entry.shown, Shown::Read | Shown::Write | Shown::Mask)
        })
    }

    /// The guarded names, each before those below it, and the folders that make up such a name before
    /// it: who could move `.git` away could put another in its place.
    pub(crate) fn guarded(&self) -> Result<Vec<Guarded>, SandboxError> {
        let mut held: BTreeMap<PathBuf, Held> = BTreeMap::new();
        for (root, walked) in &self.guarded {
            for found in &walked.found {
                let name = Path::new(OsStr::from_bytes(found.path.to_bytes()));
                let path = root.join(name);
                let whole = root.file_name().map(|folder| Path::new(folder).join(name));
                let whole = whole.as_deref().unwrap_or(name);
                let owners = self.names.is_owners(whole.as_os_str().as_bytes());
                let is_held = |above: &&Path| {
                    !above.as_os_str().is_empty() && (owners || is_part_of_name(above))
                };
                for above in name.ancestors().skip(1).take_while(is_held) {
                    held.entry(root.join(above)).or_insert(Held::Pinned);
                }
                let how = match (is_masked(found.guard), found.folder) {
                    (false, _) => Held::ReadOnly,
                    (true, false) => Held::EmptyFile,
                    (true, true) => Held::EmptyFolder,
                };
                held.insert(path, how);
            }
        }
        for (path, guard) in &self.led_to {
            let Ok(data) = path.symlink_metadata() else { continue };
            let how = match (is_masked(*guard), data.is_dir()) {
                (false, _) => Held::ReadOnly,
                (true, false) => Held::EmptyFile,
                (true, true) => Held::EmptyFolder,
            };
            held.insert(path.clone(), how);
        }
        held.extend(self.pinned.iter().map(|path| (path.clone(), Held::Link)));
        held.extend(self.sockets.iter().map(|path| (path.clone(), Held::EmptyFile)));
        // What something else stands for is not there.
        let is_there = |path: &Path| {
            !matches!(self.covering(path), Some((_, Entry { shown: Shown::Fresh, .. })))
        };
        let all =
            held.iter().filter(|(path, _)| !self.entries.contains_key(*path) && is_there(path));
        all.map(|(path, held)| Ok(Guarded { path: relative(path)?, held: *held })).collect()
    }

    /// Paths with a kind of mount, in words.
    fn shown(&self, wanted: Shown) -> Vec<String> {
        let fits = self.entries.iter().filter(|(_, entry)| entry.shown == wanted);
        fits.map(|(path, _)| path.display().to_string()).collect()
    }

    /// What can be read, written, is masked, is guarded; sockets.
    pub(crate) fn in_words(&self) -> [Vec<String>; 5] {
        let mut written = self.shown(Shown::Write);
        written.extend(self.shown(Shown::Scratch));
        written.extend(self.shown(Shown::Fresh));
        let mut masked = self.shown(Shown::Mask);
        let mut read_only = Vec::new();
        for (root, walked) in &self.guarded {
            for found in &walked.found {
                let name = found.path.to_string_lossy();
                let path = root.join(&*name).display().to_string();
                if is_masked(found.guard) { masked.push(path) } else { read_only.push(path) }
            }
        }
        for (path, guard) in self.led_to.iter().filter(|(path, _)| path.exists()) {
            let path = path.display().to_string();
            if is_masked(*guard) { masked.push(path) } else { read_only.push(path) }
        }
        masked.extend(self.sockets.iter().map(|path| path.display().to_string()));
        let mut read = self.shown(Shown::Read);
        read.extend(self.copies.keys().map(|path| path.display().to_string()));
        [read, written, masked, read_only, self.shown(Shown::Socket)]
    }

    /// Names that must not come into being in what may be written. What was made for this run alone may
    /// hold any.
    pub(crate) fn watched(&self) -> notify::Names {
        let mut names = notify::Names::of(self.names.clone());
        for (path, entry) in &self.entries {
            match entry.shown {
                Shown::Scratch if self.own.contains(path) => names = names.root(path),
                Shown::Scratch | Shown::Fresh => names = names.free(path),
                // Where the home is in a folder that is made anew, what is shown of it is not.
                Shown::Write => names = names.root(path),
                _ => {}
            }
        }
        names = self.snapshots.iter().fold(names, notify::Names::snapshots);
        self.held().fold(names, |names, path| names.hold(path))
    }

    /// What must not come into being since a guarded name leads to it, and the links on the way.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Path> {
        self.led_to.keys().chain(&self.pinned).map(PathBuf::as_path)
    }

    /// The workspace's real path.
    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Landlock rules for the old root, for where there is no new one.
    pub(crate) fn rules_without_mounts(&self) -> Result<Vec<(CString, Access)>, SandboxError> {
        let mut rules = Vec::new();
        for (path, entry) in &self.entries {
            let access = match entry.shown {
                // What is shared with everybody is no scratch.
                Shown::Scratch if self.own.contains(path) => Some(Access::List),
                Shown::Scratch | Shown::Fresh => None,
                // Nothing can stand for another file here.
                _ if self.stand_ins.contains_key(path) => Some(Access::Read),
                _ => access_of(*entry),
            };
            rules.extend(access.map(|access| Ok((absolute(path)?, access))).transpose()?);
        }
        for path in self.copies.keys() {
            rules.push((absolute(path)?, Access::Read));
        }
        for name in ["cpuinfo", "meminfo", "stat", "version", "filesystems", "uptime", "loadavg"] {
            rules.push((absolute(&Path::new("/proc").join(name))?, Access::Read));
        }
        Ok(rules)
    }
}

/// Empty files, one for each that is shown so: then it is known which was opened.
#[derive(Default)]
struct Masks {
    files: Vec<(CString, String)>,
}

impl Masks {
    /// One more; gives its place in the new root.
    fn next(&mut self, name: String) -> Result<CString, SandboxError> {
        let path = Path::new(EMPTY_FILES).join(self.files.len().to_string());
        self.files.push((absolute(&path)?, name));
        relative(&path)
    }
}

/// Whether the last component of a path is a folder that guarded names are in.
fn is_part_of_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.first() == Some(&b'.') && name.len() > 1
}

fn with_ancestors(path: &Path, folders: &mut BTreeMap<PathBuf, u32>) {
    for above in path.ancestors() {
        folders.entry(above.to_owned()).or_insert(0o755);
    }
}

fn mount_of(
    path: &Path,
    source: &Path,
    entry: Entry,
    masks: &mut Masks,
) -> Result<Mount, SandboxError> {
    let target = relative(path)?;
    let old = || Ok::<_, SandboxError>(Source::Old(absolute(source)?));
    let (source, attributes) = match entry.shown {
        Shown::Read => (old()?, READ_ONLY | NO_SUID | NO_DEV),
        Shown::Write => (old()?, NO_SUID | NO_DEV),
        Shown::Scratch | Shown::Fresh => (Source::Own, NO_SUID | NO_DEV),
        Shown::Bare => (Source::Own, READ_ONLY | NO_SUID | NO_DEV | NO_EXEC),
        // That is no hindrance to whoever writes to a device or connects, only to who would change the file's mode.
        Shown::Device => (old()?, READ_ONLY | NO_SUID | NO_EXEC),
        Shown::Socket => (old()?, READ_ONLY | NO_SUID | NO_DEV | NO_EXEC),
        Shown::Mask if entry.folder => {
            (Source::EmptyFolder, READ_ONLY | NO_SUID | NO_DEV | NO_EXEC)
        }
        Shown::Mask => {
            let empty = Source::EmptyFile(masks.next(path.display().to_string())?);
            (empty, READ_ONLY | NO_SUID | NO_DEV | NO_EXEC)
        }
    };
    Ok(Mount { source, target, attributes })
}

fn access_of(entry: Entry) -> Option<Access> {
    match entry.shown {
        Shown::Read => Some(Access::ReadExecute),
        Shown::Write | Shown::Scratch | Shown::Fresh => Some(Access::All),
        Shown::Device => Some(Access::Devices),
        Shown::Socket => Some(Access::ReadWrite),
        Shown::Mask | Shown::Bare => None,
    }
}
