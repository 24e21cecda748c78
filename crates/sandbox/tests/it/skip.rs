//! Saying what could not be tested here.

/// Says that a test needs something that is not here.
pub(crate) fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
