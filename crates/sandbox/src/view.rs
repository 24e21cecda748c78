//! Which files a confined program sees, worked out before anything is started: folders to make in the
//! new root, mounts, masks, guarded names and Landlock rules.

mod explain;
mod gits;
mod held;
mod home;
mod lists;
mod paths;
mod plan;
mod roots;
mod settings;
mod shows;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;

use crate::child::LARGEST_COPY;
use crate::error::SandboxError;
use crate::names::{Guard, Names};
use crate::spec::Spec;
use crate::walk::{Listings, Seen, Walked};

use self::paths::Real;
use self::settings::Stamp;

pub use explain::{Explained, explain, holds_secrets};
pub(crate) use held::trace;
pub(crate) use plan::{EMPTY_FILES, Guarded, Held, MARK, Plan, Source};
pub use settings::{NewSettings, SettingsFolder};
pub use shows::sounds_secret;
pub(crate) use shows::{Shows, is_credential, secrets_of};

/// Where the confined program finds what wardkeep puts there.
pub(crate) const OWN_FOLDER: &str = "/run/wardkeep";

/// How something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Read,
    Write,
    Scratch,
    /// A folder of the run's own in the place of one that may be written.
    Fresh,
    /// An empty folder that stays so, but for what is shown below it.
    Bare,
    Device,
    Socket,
    Mask,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    shown: Shown,
    folder: bool,
}

/// All that is shown, by path.
pub(crate) struct View {
    entries: BTreeMap<PathBuf, Entry>,
    /// Small files that are copied: that is quicker than a mount.
    copies: BTreeMap<PathBuf, Stamp>,
    /// Where such copies are kept.
    settings: Option<SettingsFolder>,
    /// Files that stand for others.
    stand_ins: BTreeMap<PathBuf, PathBuf>,
    /// Folders of the run's own in which guarded names are held all the same: an agent obeys them there.
    own: BTreeSet<PathBuf>,
    /// Links on the way to it.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Guarded names below what may be written, each with the folder that was walked.
    guarded: Vec<(PathBuf, Walked)>,
    /// What links of guarded names lead to, and how it is held; also where nothing is yet.
    led_to: BTreeMap<PathBuf, Guard>,
    /// Those links, and others on their way.
    pinned: BTreeSet<PathBuf>,
    /// Sockets that are other programs'.
    sockets: BTreeSet<PathBuf>,
    /// Folders in which repositories may have their working trees elsewhere.
    snapshots: Vec<PathBuf>,
    names: Names,
    listings: Option<Arc<Listings>>,
    seen: Seen,
    directory: PathBuf,
    workspace: PathBuf,
    looks: paths::Looks,
}

impl View {
    /// Looks at the machine, but not yet for guarded names ([`Self::find_guarded`]).
    pub(crate) fn new(spec: &Spec) -> Result<Self, SandboxError> {
        let mut view = Self {
            entries: BTreeMap::new(),
            copies: BTreeMap::new(),
            settings: spec.settings.clone(),
            stand_ins: BTreeMap::new(),
            own: BTreeSet::new(),
            links: BTreeMap::new(),
            guarded: Vec::new(),
            led_to: BTreeMap::new(),
            pinned: BTreeSet::new(),
            sockets: BTreeSet::new(),
            snapshots: Vec::new(),
            names: spec.names.clone(),
            listings: spec.listings.clone(),
            seen: Seen::default(),
            directory: PathBuf::new(),
            workspace: PathBuf::new(),
            looks: paths::Looks::default(),
        };
        for pattern in &spec.protect {
            view.names.add_pattern(pattern.clone());
        }
        for path in lists::SYSTEM {
            view.show_if_there(Path::new(path), Shown::Read);
        }
        for name in lists::SETTINGS {
            view.show_setting(&Path::new("/etc").join(name));
        }
        for path in lists::DEVICES {
            view.show_if_there(Path::new(path), Shown::Device);
        }
        for path in ["/tmp", "/var/tmp", "/dev/shm"] {
            view.entries.insert(path.into(), Entry { shown: Shown::Scratch, folder: true });
        }
        if let Some(home) = &spec.home {
            view.add_home(home);
        }
        view.add_named(spec)?;
        view.add_workspace(spec)?;
        view.keep_hidden(spec)?;
        view.bare(spec);
        view.add_masks(spec);
        view.add_sockets(spec)?;
        Ok(view)
    }

    fn add_home(&mut self, home: &Path) {
        for name in lists::TOOLS {
            self.show_if_there(&home.join(name), Shown::Read);
        }
        let home = self.follow(home).map_or_else(|| home.to_owned(), |real| real.path);
        self.entries.entry(home.clone()).or_insert(Entry { shown: Shown::Bare, folder: true });
        for name in lists::HOME_SCRATCH {
            let path = home.join(name);
            let scratch = Entry { shown: Shown::Scratch, folder: true };
            self.entries.entry(path).or_insert(scratch);
        }
    }

    fn add_named(&mut self, spec: &Spec) -> Result<(), SandboxError> {
        // Whoever names the whole of it means the whole of it.
        let whole = |path: &Path| spec.write.iter().find(|named| path.starts_with(named));
        for own in spec.own.iter().filter(|own| whole(own).is_none()) {
            let real = match self.follow(own) {
                Some(real) if real.kind == FileType::Directory => real.path,
                Some(_) => continue,
                None => self.place_of(own).unwrap_or_else(|| own.clone()),
            };
            let entry = Entry { shown: Shown::Scratch, folder: true };
            self.entries.insert(real.clone(), entry);
            self.own.insert(real);
        }
        for (paths, shown, needed) in [
            (&spec.read_if_there, Shown::Read, false),
            (&spec.write_if_there, Shown::Write, false),
            (&spec.read, Shown::Read, true),
            (&spec.write, Shown::Write, true),
        ] {
            for path in paths {
                let is_own = || spec.own.iter().any(|own| path.starts_with(own));
                if needed {
                    self.show(path, shown)?;
                } else if shown == Shown::Write || whole(path).is_none() || !is_own() {
                    self.show_if_there(path, shown);
                }
            }
        }
        for path in &spec.fresh {
            let Some(real) = self.follow(path).filter(|real| real.kind == FileType::Directory)
            else {
                continue;
            };
            let above = real.path.parent().and_then(|above| self.covering(above));
            if above.is_some_and(|(_, above)| above.shown == Shown::Write) {
                self.entries.insert(real.path, Entry { shown: Shown::Fresh, folder: true });
            }
        }
        for path in &spec.snapshots {
            let place = self.owners_place(path);
            self.snapshots.extend(place);
        }
        for (path, stand_in) in &spec.private {
            let real = self.place_of(path).ok_or_else(|| SandboxError::Path {
                path: path.clone(),
                what: "cannot be shown as another file".to_owned(),
            })?;
            self.entries.insert(real.clone(), Entry { shown: Shown::Write, folder: false });
            self.stand_ins.insert(real, stand_in.clone());
        }
        for path in &spec.scratch {
            let entry = Entry { shown: Shown::Scratch, folder: true };
            self.entries.insert(path.clone(), entry);
        }
        Ok(())
    }

    /// A path by links of the owner's. Where the program may write, a link is its own, and may lead anywhere.
    fn owners_place(&mut self, path: &Path) -> Option<PathBuf> {
        let mut place = PathBuf::from("/");
        for part in path.strip_prefix("/").ok()?.components() {
            let next = place.join(part);
            let real = self.follow(&next).map(|real| real.path);
            let above = self.covering(&place).map(|(_, entry)| entry.shown);
            let is_owners = above.is_none_or(|above| above == Shown::Read);
            place = match real {
                Some(real) if is_owners || real == next => real,
                None => next,
                Some(_) => return None,
            };
        }
        Some(place)
    }

    fn add_workspace(&mut self, spec: &Spec) -> Result<(), SandboxError> {
        let refuse = |what: &str| {
            Err(SandboxError::Path { path: spec.workspace.clone(), what: what.to_owned() })
        };
        let workspace = self.show(&spec.workspace, Shown::Write)?;
        if !self.entries[&workspace].folder {
            return refuse("is not a folder: name the folder to work in");
        }
        if let Some(why) = roots::why_not(&workspace, spec.home.as_deref()) {
            return refuse(&why);
        }
        let directory = self.follow(&spec.directory).ok_or_else(|| SandboxError::Path {
            path: spec.directory.clone(),
            what: "is not there".to_owned(),
        })?;
        self.directory = directory.path;
        self.workspace = workspace;
        let covering = self.covering(&self.directory);
        if covering.is_none_or(|(_, entry)| entry.shown == Shown::Bare) {
            return Err(SandboxError::Path {
                path: spec.directory.clone(),
                what: "cannot be seen from inside: start in the workspace".to_owned(),
            });
        }
        Ok(())
    }

    /// What must never be seen lies in nothing that is shown, and the other way round.
    fn keep_hidden(&self, spec: &Spec) -> Result<(), SandboxError> {
        for hidden in &spec.hidden {
            let hidden = hidden.canonicalize().unwrap_or_else(|_| hidden.clone());
            let close = |path: &&PathBuf| path.starts_with(&hidden) || hidden.starts_with(path);
            let shown = |entry: &Entry| matches!(entry.shown, Shown::Read | Shown::Write);
            let mut paths = self.entries.iter().filter(|(_, entry)| shown(entry));
            if let Some((path, _)) = paths.find(|(path, _)| close(path)) {
                let what = format!("and wardkeep's own state `{}` overlap", hidden.display());
                let what = format!("{what}: name a folder that does not hold it");
                return Err(SandboxError::Path { path: path.clone(), what });
            }
        }
        Ok(())
    }

    /// Shows the folders that may be read although they lie in what is hidden.
    fn bare(&mut self, spec: &Spec) {
        for path in &spec.bared {
            let Some(real) = self.follow(path) else { continue };
            // Not by a link, which could lead to all that is hidden.
            let hidden = |hidden: &PathBuf| hidden.canonicalize().is_ok_and(|one| one == real.path);
            if real.kind == FileType::Directory
                && !path.is_symlink()
                && !spec.hidden.iter().any(hidden)
            {
                self.show_if_there(path, Shown::Read);
            }
        }
    }

    /// Masks what is shown and holds secrets, unless exactly it was named.
    fn add_masks(&mut self, spec: &Spec) {
        let private = spec.private.iter().map(|(path, _)| path);
        let named: BTreeSet<PathBuf> =
            [&spec.read, &spec.write, &spec.read_if_there, &spec.write_if_there]
                .into_iter()
                .flatten()
                .chain(private)
                .filter_map(|path| self.resolve(path).map(|(real, _)| real.path))
                .collect();
        let home =
            spec.home.iter().flat_map(|home| lists::SECRETS.iter().map(|name| home.join(name)));
        let masked: Vec<(PathBuf, bool)> = home
            .map(|path| (path, false))
            .chain(spec.masked.iter().map(|path| (path.clone(), true)))
            .collect();
        for (path, always) in masked {
            let Some((Real { path, kind, .. }, _)) = self.resolve(&path) else { continue };
            if !always && named.iter().any(|named| named.starts_with(&path)) {
                continue;
            }
            self.copies.retain(|copied, _| !copied.starts_with(&path));
            // What is not shown needs no mask, nor what is writable on purpose below it.
            if self
                .covering(&path)
                .is_some_and(|(_, entry)| matches!(entry.shown, Shown::Read | Shown::Write))
            {
                let folder = kind == FileType::Directory;
                self.entries.retain(|other, _| !other.starts_with(&path));
                self.entries.insert(path, Entry { shown: Shown::Mask, folder });
            }
        }
    }

    fn add_sockets(&mut self, spec: &Spec) -> Result<(), SandboxError> {
        for path in &spec.sockets {
            self.show(path, Shown::Socket)?;
        }
        Ok(())
    }

    /// What was known of folders before, and what the walks have seen.
    pub(crate) fn take_seen(&mut self) -> Option<(Arc<Listings>, Seen)> {
        self.listings.take().map(|known| (known, std::mem::take(&mut self.seen)))
    }

    /// The folders that were there, by numbers of their paths below each that may be written.
    pub(crate) fn take_folders(&mut self) -> Vec<(PathBuf, HashSet<u64>)> {
        let all = self.guarded.iter_mut();
        all.map(|(path, walked)| (path.clone(), std::mem::take(&mut walked.folders))).collect()
    }

    /// Whether a walk has not seen everything.
    pub(crate) fn cut_short(&self) -> Option<&Path> {
        let cut = self.guarded.iter().find(|(_, walked)| walked.cut_short);
        cut.map(|(path, _)| path.as_path())
    }

    /// The nearest thing shown at or above a path.
    fn covering(&self, path: &Path) -> Option<(&Path, Entry)> {
        path.ancestors().find_map(|above| {
            self.entries.get_key_value(above).map(|(path, entry)| (path.as_path(), *entry))
        })
    }

    /// Shows a file or folder of the machine's settings.
    fn show_setting(&mut self, path: &Path) {
        let Some(Real { path: real, kind, stamp }) = self.follow(path) else { return };
        if self.covering(&real).is_some() {
            return;
        }
        let can_be_read = || rustix::fs::access(&real, rustix::fs::Access::READ_OK).is_ok();
        let small = stamp.filter(|stamp| {
            kind == FileType::RegularFile && stamp.size <= LARGEST_COPY as u64 && can_be_read()
        });
        match small {
            Some(stamp) => drop(self.copies.insert(real, stamp)),
            None => self.show_if_there(&real, Shown::Read),
        }
    }

    /// The real path of a file that may not be there, in a folder that is.
    fn place_of(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(real) = self.follow(path) {
            return (real.kind == FileType::RegularFile).then_some(real.path);
        }
        let above = self.follow(path.parent()?)?;
        Some(above.path.join(path.file_name()?))
    }

    fn show_if_there(&mut self, path: &Path, shown: Shown) {
        // Not there, or not to be read by this user: then it is not there inside either.
        let _ = self.show(path, shown);
    }

    /// Shows a path, and the links on the way to it. Gives its real path.
    fn show(&mut self, path: &Path, shown: Shown) -> Result<PathBuf, SandboxError> {
        let refuse =
            |what: &str| SandboxError::Path { path: path.to_owned(), what: what.to_owned() };
        if !path.is_absolute() {
            return Err(refuse("is not an absolute path"));
        }
        let real = self.follow(path).ok_or_else(|| refuse("is not there, or cannot be reached"))?;
        let Real { path: real, kind, .. } = real;
        let fits = match shown {
            Shown::Device => kind == FileType::CharacterDevice,
            Shown::Socket => kind == FileType::Socket,
            _ => matches!(kind, FileType::Directory | FileType::RegularFile),
        };
        if !fits {
            return Err(refuse("is neither a file nor a folder"));
        }
        let entry = Entry { shown, folder: kind == FileType::Directory };
        // Below something that is shown in the same way there is nothing to add.
        let above = real.parent().and_then(|above| self.covering(above));
        let known = above.is_some_and(|(_, above)| above.shown == shown && shown == Shown::Read);
        if !known {
            self.entries.insert(real.clone(), entry);
        }
        Ok(real)
    }
}

/// Whether a path lies in what programs and tools are shown from.
pub(crate) fn is_of_programs(path: &Path) -> bool {
    let is_tool = |above: &Path| lists::TOOLS.iter().any(|tool| above.ends_with(tool));
    lists::SYSTEM.iter().any(|place| path.starts_with(place)) || path.ancestors().any(is_tool)
}

/// A path as the kernel takes it, from the new root.
fn relative(path: &Path) -> Result<CString, SandboxError> {
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_prefix(b"/").unwrap_or(bytes);
    CString::new(if bytes.is_empty() { b"." } else { bytes }).map_err(|_| SandboxError::ZeroByte)
}

fn absolute(path: &Path) -> Result<CString, SandboxError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| SandboxError::ZeroByte)
}

fn is_masked(guard: Guard) -> bool {
    guard == Guard::Masked
}
