//! How far long work is, on one line that goes away.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Short work shows nothing.
const FIRST: Duration = Duration::from_millis(400);
const EVERY: Duration = Duration::from_millis(100);

/// Erases itself when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    label: &'static str,
    shown: bool,
    /// When to show it next; never where nobody looks.
    next: Option<Instant>,
}

impl Progress {
    pub(super) fn new(label: &'static str, wanted: bool) -> Self {
        let wanted = wanted && io::stderr().is_terminal();
        Self { label, shown: false, next: wanted.then(|| Instant::now() + FIRST) }
    }

    /// `done` of `total` is done.
    pub(crate) fn update(&mut self, done: u64, total: u64) {
        let percent = done.min(total).saturating_mul(100).checked_div(total).unwrap_or(100);
        self.show(&format!("{percent} %"));
    }

    /// So much is done, of nobody knows how much.
    pub(crate) fn count(&mut self, done: u64) {
        self.show(&format!("{done}"));
    }

    fn show(&mut self, how_far: &str) {
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + EVERY);
        self.shown = true;
        let _ = write!(io::stderr(), "\r\x1b[K{} {how_far}", self.label);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
