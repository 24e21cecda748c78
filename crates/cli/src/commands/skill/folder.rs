//! A skill's folder, read into memory within limits and without following links.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use wardkeep_guard::skill::{Content, Entry, Limits, Tree};

use crate::error::CliError;

/// The skills that a path holds: itself, or each folder in it that is one.
pub(super) fn skills(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let metadata =
        fs::symlink_metadata(path).map_err(|error| CliError::io("read", path, &error))?;
    if !metadata.is_dir() || is_skill(path) {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| CliError::io("read", path, &error))?;
    let mut inside: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|folder| is_skill(folder))
        .collect();
    inside.sort();
    // A folder that is neither is judged as it is.
    Ok(if inside.is_empty() { vec![path.to_owned()] } else { inside })
}

fn is_skill(folder: &Path) -> bool {
    ["SKILL.md", "skill.md", "Skill.md", "package.json", "plugin.json"]
        .iter()
        .any(|name| fs::symlink_metadata(folder.join(name)).is_ok())
}

/// Reads a skill. What cannot be read is a gap, and never passed over.
pub(super) fn read(root: &Path, limits: &Limits) -> Tree {
    let mut reader = Reader { limits, tree: Tree::default(), left: limits.bytes };
    match fs::symlink_metadata(root) {
        Ok(metadata) if metadata.is_dir() => reader.folder(root),
        Ok(_) => {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
            reader.file(root, &name.unwrap_or_default());
        }
        Err(_) => reader.tree.gap("", "it cannot be opened"),
    }
    reader.tree
}

struct Reader<'l> {
    limits: &'l Limits,
    tree: Tree,
    left: usize,
}

impl Reader<'_> {
    fn folder(&mut self, root: &Path) {
        let mut open = vec![(root.to_owned(), String::new(), 0)];
        while let Some((folder, prefix, depth)) = open.pop() {
            if depth > self.limits.depth {
                self.tree.gap(prefix, "folders lie too deep in folders");
                continue;
            }
            let Ok(entries) = fs::read_dir(&folder) else {
                self.tree.gap(prefix, "it cannot be listed");
                continue;
            };
            let mut names = Vec::new();
            for entry in entries {
                let Ok(entry) = entry else {
                    self.tree.gap(prefix.clone(), "it cannot be listed");
                    break;
                };
                if self.tree.entries.len() + names.len() + open.len() >= self.limits.files {
                    self.tree.gap(prefix.clone(), "there are more files than are read");
                    break;
                }
                names.push(entry.file_name());
            }
            names.sort();
            for name in names {
                let path = folder.join(&name);
                let Some(shown) = name.to_str() else {
                    self.tree.gap(prefix.clone(), "a name is no UTF-8");
                    continue;
                };
                let shown =
                    if prefix.is_empty() { shown.to_owned() } else { format!("{prefix}/{shown}") };
                match fs::symlink_metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => open.push((path, shown, depth + 1)),
                    Ok(metadata) if metadata.is_symlink() => {
                        let target = fs::read_link(&path)
                            .map(|target| target.to_string_lossy().into_owned());
                        self.add(
                            shown,
                            Content::Link(target.unwrap_or_else(|_| "/".to_owned())),
                            false,
                        );
                    }
                    Ok(metadata) if metadata.is_file() => self.file(&path, &shown),
                    Ok(_) => self.add(shown, Content::Special, false),
                    Err(_) => self.tree.gap(shown, "it cannot be opened"),
                }
            }
        }
        self.tree.entries.sort_by(|one, two| one.path.cmp(&two.path));
    }

    fn add(&mut self, path: String, content: Content, executable: bool) {
        self.tree.entries.push(Entry { path, content, executable });
    }

    fn file(&mut self, path: &Path, shown: &str) {
        // Without waiting: a pipe that was put in place of a file would never open.
        let flags =
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let Ok(file) = rustix::fs::open(path, flags, Mode::empty()).map(File::from) else {
            return self.tree.gap(shown, "it cannot be opened");
        };
        let Ok(metadata) = file.metadata() else {
            return self.tree.gap(shown, "it cannot be opened");
        };
        if !metadata.is_file() {
            return self.add(shown.to_owned(), Content::Special, false);
        }
        let most = self.left.min(self.limits.file);
        let mut bytes = Vec::new();
        if file.take(most as u64 + 1).read_to_end(&mut bytes).is_err() {
            return self.tree.gap(shown, "it cannot be read to its end");
        }
        if bytes.len() > most {
            bytes.truncate(most);
            self.tree.gap(shown, "it is larger than is read");
        }
        self.left -= bytes.len();
        let executable = metadata.permissions().mode() & 0o111 != 0;
        self.add(shown.to_owned(), Content::File(bytes), executable);
    }
}
