//! Lines on standard error from several threads at a time.

use std::io::{self, Write as _};

use super::Line;

/// What goes on while a command serves; silent where only the result is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remarks {
    shown: bool,
}

impl Remarks {
    pub(super) fn new(shown: bool) -> Self {
        Self { shown }
    }

    /// Prints one line.
    pub(crate) fn line(self, text: &str) {
        if self.shown {
            let _ = io::stderr().write_all(Line::from(text).render(false).as_bytes());
        }
    }
}
