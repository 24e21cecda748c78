//! What several tests use.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Says that a test did not run, in the place where `scripts/test` collects such lines.
pub(crate) fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// A file of the shared material that lies beside a checkout, if it does.
pub(crate) fn shared_file(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("WARDKEEP_SHARED").map_or(beside, PathBuf::from);
    Some(folder.join(name)).filter(|path| path.is_file())
}

/// The rows of a file of the crate's own data.
pub(crate) fn rows(name: &str) -> Vec<Value> {
    lines(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name))
}

/// The rows of a file with one JSON value a line.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
