//! Watches a few files for changes of their content.
//!
//! Folders are watched, not files, so that editors which write a new file and rename it are seen,
//! and so is a file that was not there before. What the system reports is only a reason to look:
//! a change is a content that differs from the last one seen. Where reports are lost (a full queue,
//! a network file system, a folder that was itself replaced) the next look finds it all the same.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use sha2::{Digest as _, Sha256};

use crate::files::read_plain;

/// Largest content that is compared; a longer one counts as unreadable.
const MAX_BYTES: u64 = 16 << 20;
/// A burst is over after so much quiet…
const QUIET: Duration = Duration::from_millis(150);
/// … and is looked at after so long, quiet or not.
const LONGEST: Duration = Duration::from_secs(1);
/// How often is looked without any report.
const LOOK: Duration = Duration::from_secs(3);

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing is there.
    Missing,
    /// SHA-256 of the bytes.
    Bytes([u8; 32]),
    /// Something that is not read, and why: a link, a pipe, a folder, a file without the rights.
    Unreadable(String),
}

impl Content {
    fn of(path: &Path) -> Self {
        match read_plain(path, MAX_BYTES) {
            Ok(bytes) => Self::Bytes(Sha256::digest(&bytes).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }
}

/// A change that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// What it held when last seen.
    pub before: Content,
    /// What it holds now.
    pub after: Content,
}

/// Files being watched.
#[derive(Debug)]
pub struct Watch {
    files: Vec<(PathBuf, Content)>,
    folders: BTreeSet<PathBuf>,
    reports: Receiver<()>,
    // Dropped with the watch; none where the system has no watching to offer.
    watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Starts to watch; what the files hold now is where changes are counted from.
    #[must_use]
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let (sender, reports) = mpsc::channel();
        // A report says only "look"; which file it was is found by looking.
        let watcher = notify::recommended_watcher(move |_| {
            let _gone = sender.send(());
        });
        let files: Vec<(PathBuf, Content)> = files
            .into_iter()
            .map(|path| {
                let content = Content::of(&path);
                (path, content)
            })
            .collect();
        let folders =
            files.iter().filter_map(|(path, _)| path.parent().map(Path::to_owned)).collect();
        let mut watch = Self { files, folders, reports, watcher: watcher.ok() };
        watch.attach();
        watch
    }

    /// Whether the system reports changes; otherwise files are looked at every few seconds.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.watcher.is_some()
    }

    /// The content a file was last seen with.
    #[must_use]
    pub fn seen(&self, path: &Path) -> Option<&Content> {
        self.files.iter().find(|(file, _)| file == path).map(|(_, content)| content)
    }

    /// Waits for changes, at most so long. An empty answer means that the time is up.
    pub fn next(&mut self, timeout: Duration) -> Vec<Change> {
        let end = Instant::now().checked_add(timeout);
        loop {
            let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
            match self.reports.recv_timeout(left.min(LOOK)) {
                Ok(()) => self.settle(),
                Err(RecvTimeoutError::Timeout) => self.attach(),
                // Without a watcher there is only the looking.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(left.min(LOOK)),
            }
            let changes = self.look();
            if !changes.is_empty() || end.is_some_and(|end| Instant::now() >= end) {
                return changes;
            }
        }
    }

    /// Compares every file with what it held when last seen.
    pub fn look(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (path, content) in &mut self.files {
            let after = Content::of(path);
            if after != *content {
                let before = std::mem::replace(content, after.clone());
                changes.push(Change { path: path.clone(), before, after });
            }
        }
        changes
    }

    /// Lets a burst of reports pass.
    fn settle(&self) {
        let start = Instant::now();
        while start.elapsed() < LONGEST && self.reports.recv_timeout(QUIET).is_ok() {}
        while self.reports.try_recv().is_ok() {}
    }

    /// Watches the folders again: one may have been replaced since, and the old one is watched no
    /// more by its name.
    fn attach(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in &self.folders {
            // A folder that is not there is looked for at the next turn.
            let _absent = watcher.watch(folder, RecursiveMode::NonRecursive);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn watched() -> (tempfile::TempDir, PathBuf, Watch) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LocalGPT.md");
        fs::write(&path, "one").unwrap();
        let watch = Watch::new([path.clone(), folder.path().join("absent.json")]);
        (folder, path, watch)
    }

    fn hash(text: &str) -> Content {
        Content::Bytes(Sha256::digest(text).into())
    }

    #[test]
    fn a_write_in_place_and_a_rename_over_are_seen() {
        let (folder, path, mut watch) = watched();
        fs::write(&path, "two").unwrap();
        let changes = watch.next(SOON);
        assert_eq!(changes.len(), 1);
        assert_eq!((&changes[0].before, &changes[0].after), (&hash("one"), &hash("two")));
        let new = folder.path().join("new");
        fs::write(&new, "three").unwrap();
        fs::rename(&new, &path).unwrap();
        assert_eq!(watch.next(SOON)[0].after, hash("three"));
        fs::remove_file(&path).unwrap();
        assert_eq!(watch.next(SOON)[0].after, Content::Missing);
        fs::write(folder.path().join("absent.json"), "{}").unwrap();
        assert_eq!(watch.next(SOON)[0].before, Content::Missing);
    }

    #[test]
    fn a_burst_ends_with_the_last_content() {
        let (_folder, path, mut watch) = watched();
        for turn in 0..500 {
            fs::write(&path, format!("{turn}")).unwrap();
        }
        let mut last = None;
        while let Some(change) = watch.next(Duration::from_millis(1500)).pop() {
            last = Some(change.after);
        }
        assert_eq!(last, Some(hash("499")));
    }

    #[test]
    fn the_same_content_again_is_no_change() {
        let (_folder, path, mut watch) = watched();
        fs::write(&path, "one").unwrap();
        assert_eq!(watch.next(Duration::from_millis(500)), []);
    }

    #[test]
    fn a_folder_that_is_replaced_is_watched_again() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("workspace");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("LocalGPT.md");
        fs::write(&path, "one").unwrap();
        let mut watch = Watch::new([path.clone()]);
        fs::rename(&folder, outer.path().join("old")).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(&path, "two").unwrap();
        assert_eq!(watch.next(SOON)[0].after, hash("two"));
        fs::write(&path, "three").unwrap();
        assert_eq!(watch.next(SOON)[0].after, hash("three"));
    }

    #[test]
    fn a_link_or_a_pipe_in_its_place_is_said_and_not_followed() {
        let (folder, path, mut watch) = watched();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(watch.next(SOON)[0].after, Content::Unreadable(_)));
    }
}
