//! What git obeys besides its own folder: hooks and more settings, where a repository's settings name them.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, stat};

use crate::error::SandboxError;
use crate::notify::git::{self, Lead};

/// Largest settings that are read.
const LARGEST: usize = 16 << 20;
/// Settings that are read, and how often one names others; git ends there, too.
const MOST: usize = 10_000;
const DEEPEST: usize = 10;

/// Where git looks for hooks and settings because of files that were found below `root`, and of the repository that
/// this is in. What git itself cannot read is an error: nobody knows what it leads to.
pub(super) fn leads(
    root: &Path,
    files: impl Iterator<Item = PathBuf>,
    home: Option<&Path>,
) -> Result<Vec<PathBuf>, SandboxError> {
    let mut search = Search { home, found: Vec::new(), read: 0 };
    for path in files {
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { continue };
        if name.eq_ignore_ascii_case(".git") && path.is_dir() {
            // A link to one elsewhere.
            search.settings(&path.join("config"), &[path.clone(), folder.to_owned()], 0)?;
        } else if name.eq_ignore_ascii_case(".git") {
            search.worktree(&path, folder)?;
        } else if name.eq_ignore_ascii_case("commondir") {
            search.common(folder);
        } else if (name.eq_ignore_ascii_case("config")
            || name.eq_ignore_ascii_case("config.worktree"))
            && (work_of(folder) != folder || is_repository(folder))
        {
            search.settings(&path, &[folder.to_owned(), work_of(folder).to_owned()], 0)?;
        }
    }
    search.above(root)?;
    Ok(search.found)
}

struct Search<'a> {
    home: Option<&'a Path>,
    found: Vec<PathBuf>,
    read: usize,
}

impl Search<'_> {
    /// The repository that a `.git` file names, which may be anywhere. Hooks are looked for from where that is.
    fn worktree(&mut self, file: &Path, work: &Path) -> Result<(), SandboxError> {
        let Some(text) = read(file).ok().flatten() else { return Ok(()) };
        let Some(folder) = git::led_by(&text).map(|path| work.join(of(path))) else {
            return Ok(());
        };
        if !is_repository(&folder) {
            return Ok(());
        }
        let common = self.common(&folder);
        let works = [work.to_owned(), folder.clone()];
        self.settings(&common.join("config"), &works, 0)?;
        self.settings(&folder.join("config.worktree"), &works, 0)
    }

    /// Where the settings of a worktree's folder are. No repository has to be there: then nobody else guards them.
    fn common(&mut self, folder: &Path) -> PathBuf {
        let text = read(&folder.join("commondir")).ok().flatten().unwrap_or_default();
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return folder.to_owned();
        }
        let common = folder.join(of(text));
        if !is_repository(&common) {
            self.found.extend(["config", "config.worktree", "hooks"].map(|one| common.join(one)));
        }
        common
    }

    /// What settings, and those that they name, lead to. `works` are folders that hooks may run in.
    fn settings(
        &mut self,
        path: &Path,
        works: &[PathBuf],
        depth: usize,
    ) -> Result<(), SandboxError> {
        let wrong = |what: String| SandboxError::Path { path: path.to_owned(), what };
        self.read += 1;
        if depth > DEEPEST || self.read > MOST {
            return Err(wrong("is one of more settings of git than can be read".to_owned()));
        }
        let leads = match read(path) {
            Ok(None) => return Ok(()),
            Ok(Some(text)) => git::leads_to(&text),
            Err(why) => Err(why),
        };
        let leads = leads.map_err(|why| {
            wrong(format!(
                "cannot be read as git's settings ({why}), so what it leads to cannot be guarded: mend it"
            ))
        })?;
        let folder = path.parent().unwrap_or(path);
        let mut works = works.to_vec();
        for lead in &leads {
            if let Lead::Work(work) = lead {
                works.push(works[0].join(of(work)));
                works.push(folder.join(of(work)));
            }
        }
        for lead in leads {
            match lead {
                Lead::Work(_) => {}
                Lead::Hooks(hooks) => {
                    let Some(hooks) = self.expanded(&hooks) else { continue };
                    self.found.extend(works.iter().map(|work| work.join(&hooks)));
                }
                Lead::Settings(more) => {
                    let Some(more) = self.expanded(&more).map(|more| folder.join(more)) else {
                        continue;
                    };
                    self.found.push(more.clone());
                    self.settings(&more, &works, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// A path as git understands it. One in somebody else's home is none of ours.
    fn expanded(&self, path: &[u8]) -> Option<PathBuf> {
        let path = path.strip_prefix(b":(optional)").unwrap_or(path);
        let Some(rest) = path.strip_prefix(b"~") else { return Some(of(path).to_owned()) };
        let (user, rest) = match rest.iter().position(|byte| *byte == b'/') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, b"".as_slice()),
        };
        let home = self.home?;
        let own = user.is_empty() || home.file_name().is_some_and(|name| name.as_bytes() == user);
        own.then(|| home.join(of(rest)))
    }

    /// The repository that a folder lies in, if it is none itself.
    fn above(&mut self, root: &Path) -> Result<(), SandboxError> {
        for (depth, folder) in root.ancestors().enumerate() {
            let own = folder.join(".git");
            let is_folder = is_repository(&own);
            if !is_folder && !own.is_file() {
                continue;
            }
            return match (depth, is_folder) {
                // It was found with what else is there.
                (0, _) => Ok(()),
                (_, false) => self.worktree(&own, folder),
                (_, true) => {
                    let works = [own.clone(), folder.to_owned()];
                    self.settings(&own.join("config"), &works, 0)?;
                    self.settings(&own.join("config.worktree"), &works, 0)
                }
            };
        }
        Ok(())
    }
}

fn of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// The folder that a repository's hooks run in: without a `.git` it is the repository itself.
fn work_of(folder: &Path) -> &Path {
    let named = folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    folder.parent().filter(|_| named).unwrap_or(folder)
}

fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// What a plain file says; nothing where there is none, or it cannot be opened: git as the same user does not either.
/// What waits for somebody is not opened.
fn read(path: &Path) -> Result<Option<Vec<u8>>, &'static str> {
    let is_plain = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = stat(path).ok().filter(|found| is_plain(found.st_mode));
    let file = file.and_then(|_| openat(CWD, path, flags, Mode::empty()).ok());
    let file = file.filter(|file| fstat(file).is_ok_and(|found| is_plain(found.st_mode)));
    let Some(file) = file else { return Ok(None) };
    let mut text = Vec::new();
    let file = std::fs::File::from(file);
    file.take(LARGEST as u64 + 1).read_to_end(&mut text).map_err(|_| "not readable")?;
    if text.len() > LARGEST { Err("too large") } else { Ok(Some(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_home_is_known() {
        let search = Search { home: Some(Path::new("/home/me")), found: Vec::new(), read: 0 };
        let expanded = |path: &[u8]| search.expanded(path);
        assert_eq!(expanded(b"~/x"), Some("/home/me/x".into()));
        assert_eq!(expanded(b"~me/x"), Some("/home/me/x".into()));
        assert_eq!(expanded(b"~you/x"), None);
        assert_eq!(expanded(b":(optional)a/~"), Some("a/~".into()));
    }

    #[test]
    fn settings_that_name_themselves_have_an_end() {
        let lab = tempfile::tempdir().unwrap();
        std::fs::create_dir(lab.path().join(".git")).unwrap();
        let path = lab.path().join(".git/config");
        std::fs::write(&path, "[include]\npath = config\n").unwrap();
        assert!(leads(lab.path(), [path].into_iter(), None).is_err());
    }
}
