//! Repositories without a `.git`: a directory with the right files is one, whatever it is called, and git
//! obeys the settings in it for whoever works there.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, fchmod, fstat, openat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::born::Born;
use super::check::Deed;
use super::git::{self, Part};
use super::place::{Place, path_buf};
use super::supervisor::{Stop, Supervisor, TOO_MANY};

/// What makes one: the first, and either both of the second and third, or the last.
const MAKES: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];
const SETTINGS: [&str; 2] = ["config", "config.worktree"];
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Hooks that are looked at.
const MOST_HOOKS: usize = 1000;

fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

fn has(folder: impl AsFd, name: &str) -> bool {
    !matches!(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
}

/// Whether a directory is one, or would be if it had `more` as well.
fn would_be(folder: impl AsFd, more: &[u8]) -> bool {
    let has = |name: &str| is(more, name) || has(folder.as_fd(), name);
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Whether a directory is one.
pub(super) fn is_repository(folder: impl AsFd) -> bool {
    would_be(folder, b"")
}

/// Whether git obeys a file because the directory that it is in, or that is above, is a repository.
pub(super) fn is_obeyed(place: &Place) -> Result<bool, Stop> {
    let name = place.name.as_bytes();
    if SETTINGS.iter().chain(&["commondir"]).any(|one| is(name, one)) {
        return Ok(is_repository(&place.parent));
    }
    let above = place.path.rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
    if !above.is_some_and(|above| is(above, "hooks")) {
        return Ok(false);
    }
    is_in_repository(place)
}

/// Whether the directory above the one that a name is in is one.
fn is_in_repository(place: &Place) -> Result<bool, Stop> {
    Ok(is_repository(openat(&place.parent, c"..", FOLDER, Mode::empty())?))
}

/// Whether a working tree that a repository in `folder` names leads back to it by its own `.git`. Git would write into
/// any other folder.
fn leads_back(folder: &OwnedFd, work: &[u8]) -> bool {
    let found = || {
        let work = openat(folder, work, FOLDER, Mode::empty()).ok()?;
        let text = read(&work, b".git").ok()?;
        let own = openat(&work, git::led_by(&text)?, FOLDER, Mode::empty()).ok()?;
        let (own, folder) = (fstat(&own).ok()?, fstat(folder).ok()?);
        Some((own.st_dev, own.st_ino) == (folder.st_dev, folder.st_ino))
    };
    found().unwrap_or(false)
}

impl Supervisor {
    /// Whether a name may come into being by what its directory is, or becomes by it. It may become a
    /// repository only if it came into being in this run, and then executes nothing.
    pub(super) fn check_bare(
        &mut self,
        place: &Place,
        path: &[u8],
        deed: Deed,
    ) -> Result<(), Stop> {
        let name = place.name.as_bytes();
        let makes = MAKES.iter().any(|one| is(name, one));
        let settings = SETTINGS.iter().any(|one| is(name, one));
        let above = place.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let hook = is(above, "hooks");
        if !(makes || settings || hook || is(name, "hooks")) || self.names.is_free(path) {
            return Ok(());
        }
        let counted = self.names.counted(path);
        let parts = counted.parts();
        let refuse = |rule: &str| Err(Stop::Refused(path_buf(path), rule.to_owned()));
        match git::part(parts) {
            (Part::Outside, _) => {}
            // Somebody's `.git` could lead to any folder of it. Only where git itself has repositories it is known
            // what else lies there.
            (Part::Inside, at)
                if !git::is_own_folder(&parts[at + 1..parts.len().saturating_sub(1)]) =>
            {
                let steers = settings || is(name, "commondir") || is(name, "hooks");
                let becomes = makes && would_be(&place.parent, name);
                if (steers && is_repository(&place.parent))
                    || (becomes && !is_repository(&place.parent))
                    || (hook && is_in_repository(place)?)
                {
                    return refuse("the folder would be a repository within git's own");
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
        if hook && git::is_live_hook(name) && deed != Deed::Directory && is_in_repository(place)? {
            return refuse("a git hook executes");
        }
        if is_repository(&place.parent) {
            let is_new = self.is_new(Born::of(&place.parent, c"")?.0);
            return match deed {
                _ if is(name, "commondir") => {
                    refuse("git would take settings and hooks from elsewhere")
                }
                // What it holds is looked at by whoever moves it there.
                Deed::File if settings && is_new => Ok(()),
                _ if settings => {
                    refuse("git's settings can execute; use `git config` in a new repository")
                }
                Deed::Moved | Deed::Link | Deed::Other if is(name, "hooks") => {
                    refuse("the folder of hooks is not replaced")
                }
                _ => Ok(()),
            };
        }
        if !makes || !would_be(&place.parent, name) {
            return Ok(());
        }
        let is_new = self.is_new(Born::of(&place.parent, c"")?.0);
        if !is_new || is(name, "commondir") || has(&place.parent, "commondir") {
            return refuse("the directory would become a repository without a `.git`");
        }
        self.check_contents(&place.parent, path)?;
        if !self.note(path_buf(&place.path), &[]) {
            return refuse(TOO_MANY);
        }
        self.hold(&place.parent, Born::of(&place.parent, c"")?.0);
        Ok(())
    }

    /// Whether a directory that becomes a repository executes nothing. Its settings are written anew, since
    /// somebody may still have them open.
    fn check_contents(&self, folder: &OwnedFd, path: &[u8]) -> Result<(), Stop> {
        let refuse = |rule: String| Stop::Refused(path_buf(path), rule);
        for name in SETTINGS {
            match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {}
                _ => return Err(refuse("git's settings there are no plain file".into())),
            }
            let text = read(folder, name.as_bytes())?;
            if let Some(rule) = executing_rule(&text) {
                return Err(refuse(rule));
            }
            self.replace(folder, name.as_bytes(), folder, name.as_bytes(), &text)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let hooks = match openat(folder, c"hooks", flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => return Err(refuse("the folder of hooks there is none".into())),
            Ok(hooks) => hooks,
        };
        let mut room = Vec::with_capacity(16 << 10);
        let mut entries = RawDir::new(&hooks, room.spare_capacity_mut());
        let mut seen = 0;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            seen += 1;
            if seen > MOST_HOOKS || (name != b"." && name != b".." && git::is_live_hook(name)) {
                return Err(refuse("a git hook executes".into()));
            }
        }
        Ok(())
    }

    /// Writes what was looked at to a file of our own, since others may still write to the one that it came
    /// from, and gives it a name. What it came from goes.
    pub(super) fn replace(
        &self,
        source: &OwnedFd,
        source_name: &[u8],
        target: &OwnedFd,
        target_name: &[u8],
        text: &[u8],
    ) -> Result<(), Stop> {
        self.check_works(target, target_name, text)?;
        let old = statat(source, source_name, AtFlags::SYMLINK_NOFOLLOW)?;
        // Every open for writing comes through here, so nobody can open it before it has its name.
        let name = format!(".wardkeep-{}-{}", std::process::id(), old.st_ino);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(target, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let written = fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o777))
            .and_then(|()| std::fs::File::from(file).write_all(text).map_err(|_| Errno::IO))
            .and_then(|()| renameat_with(target, &name, target, target_name, RenameFlags::empty()));
        if let Err(error) = written {
            let _ = unlinkat(target, &name, AtFlags::empty());
            return Err(error.into());
        }
        let now = statat(source, source_name, AtFlags::SYMLINK_NOFOLLOW);
        // In the same place it has gone already.
        if now.is_ok_and(|now| (now.st_dev, now.st_ino) == (old.st_dev, old.st_ino)) {
            unlinkat(source, source_name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Whether settings lead to no working tree but one that leads back, or one that an agent keeps snapshots of.
    fn check_works(&self, target: &OwnedFd, name: &[u8], text: &[u8]) -> Result<(), Stop> {
        let settings = SETTINGS.iter().any(|one| is(name, one));
        let works =
            if settings { git::work_trees(text).map_err(|_| Errno::INVAL)? } else { Vec::new() };
        let elsewhere: Vec<_> = works.iter().filter(|work| !leads_back(target, work)).collect();
        if !elsewhere.is_empty() {
            // The thread has a directory of its own, which means nothing to it.
            rustix::process::fchdir(target)?;
            let folder = rustix::process::getcwd(Vec::new())?.into_bytes();
            if !elsewhere.iter().all(|work| self.names.is_snapshot(&folder, work)) {
                let path = [folder.as_slice(), name].join(&b'/');
                let rule = "git's setting `core.worktree` leads elsewhere".to_owned();
                return Err(Stop::Refused(path_buf(&path), rule));
            }
        }
        Ok(())
    }
}

/// What speaks against settings of git.
pub(super) fn executing_rule(text: &[u8]) -> Option<String> {
    match git::executing(text) {
        Ok(keys) => keys.first().map(|key| format!("git's setting `{key}` executes")),
        Err(why) => Some(format!("git's settings cannot be read: {why}")),
    }
}

/// What a file holds, as far as it is looked at.
pub(super) fn read(folder: &OwnedFd, name: &[u8]) -> Result<Vec<u8>, Stop> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let mut text = Vec::new();
    let file = std::fs::File::from(file);
    file.take(git::MOST as u64 + 1).read_to_end(&mut text).map_err(|_| Errno::IO)?;
    Ok(text)
}
