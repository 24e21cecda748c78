//! One JSON line for each request.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The file that tests read.
#[derive(Debug)]
pub struct Log(Mutex<File>);

impl Log {
    /// Opens an empty log at this path.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(|file| Self(Mutex::new(file)))
    }

    /// Writes a line in one piece: a reader never sees half of it beside another's.
    pub(crate) fn append(&self, line: &Value) -> io::Result<()> {
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes)
    }
}
