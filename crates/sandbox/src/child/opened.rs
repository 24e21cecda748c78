//! Which of the files that are shown empty were opened.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::inotify;

/// Files that are shown empty, until somebody opens them.
pub(super) struct Opened {
    notes: OwnedFd,
    /// By the number of the watch.
    left: Vec<(i32, String)>,
}

impl Opened {
    /// Watches files, each with the name it stands for. `None` where there is nothing to watch, or the
    /// kernel has no room for it: then nobody is told.
    pub(super) fn new(files: &[(CString, String)]) -> Option<Self> {
        if files.is_empty() {
            return None;
        }
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let notes = inotify::init(flags).ok()?;
        let mut left = Vec::new();
        for (path, name) in files {
            let watch = inotify::add_watch(&notes, path, inotify::WatchFlags::OPEN);
            left.extend(watch.ok().map(|watch| (watch, name.clone())));
        }
        Some(Self { notes, left })
    }

    /// Can be read when one was opened.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.notes.as_fd()
    }

    /// Those that were opened since; each is told once.
    pub(super) fn next(&mut self) -> Vec<String> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.notes, &mut room);
        let mut seen = Vec::new();
        while let Ok(event) = reader.next() {
            seen.push(event.wd());
        }
        let mut opened = Vec::new();
        for watch in seen {
            if let Some(at) = self.left.iter().position(|(known, _)| *known == watch) {
                opened.push(self.left.swap_remove(at).1);
                let _ = inotify::remove_watch(&self.notes, watch);
            }
        }
        opened
    }
}
