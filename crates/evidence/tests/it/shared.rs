//! What several tests use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Says that a test did not run, in the place where `scripts/test` collects such lines.
pub(crate) fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// A folder of the shared material that lies beside a checkout, if it does.
pub(crate) fn shared_folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    folder.is_dir().then_some(folder)
}

/// A folder of the vectors that are part of the crate.
pub(crate) fn vectors_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name)
}

/// A named pipe that nobody writes to.
pub(crate) fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn is_blessing() -> bool {
    std::env::var_os("WARDKEEP_BLESS").is_some_and(|value| value == "1")
}

const HOW_TO_BLESS: &str = "read the difference; if it is meant, run with WARDKEEP_BLESS=1";

/// Compares a file that is kept in the repository with what the code makes of it today, or writes
/// it with `WARDKEEP_BLESS=1`.
pub(crate) fn bless(path: &Path, expected: &[u8]) {
    if is_blessing() {
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).unwrap();
        std::fs::write(path, expected).unwrap();
    }
    let found = std::fs::read(path).unwrap_or_default();
    if found != expected && !same_json(path, &found, expected) {
        let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
        let line = found[..same].iter().filter(|byte| **byte == b'\n').count() + 1;
        panic!("{} differs from line {line} on: {HOW_TO_BLESS}", path.display());
    }
}

/// Whether two files of JSON differ in the order of keys only: that depends on what else is built.
fn same_json(path: &Path, found: &[u8], expected: &[u8]) -> bool {
    let read = |bytes: &[u8]| -> Option<Vec<serde_json::Value>> {
        let values = serde_json::Deserializer::from_slice(bytes).into_iter();
        values.collect::<Result<_, _>>().ok()
    };
    let is_json = path.extension().is_some_and(|end| end == "json" || end == "jsonl");
    is_json && read(found).is_some_and(|found| read(expected) == Some(found))
}

/// The same for a folder and everything below it; a file too many differs too.
pub(crate) fn bless_folder(folder: &Path, expected: &BTreeMap<String, Vec<u8>>) {
    if is_blessing() && folder.is_dir() {
        std::fs::remove_dir_all(folder).unwrap();
    }
    for (name, bytes) in expected {
        bless(&folder.join(name), bytes);
    }
    let mut found = Vec::new();
    list(folder, "", &mut found);
    found.retain(|name| !expected.contains_key(name));
    assert_eq!(found, Vec::<String>::new(), "too many in {}: {HOW_TO_BLESS}", folder.display());
}

fn list(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            list(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
}
