//! Files and folders, scanned in parallel.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use wardkeep_detect::finding::{Channel, Scan, Verdict};
use wardkeep_detect::scan::Detector;

use crate::context::Context;
use crate::error::{CliError, reason};

/// Longest file that is scanned.
const LIMIT: u64 = 64 << 20;
/// Most files that one call scans.
const MOST: usize = 200_000;

/// A file after its scan.
pub(super) struct Scanned {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) scan: Scan,
    /// Why it was not scanned, or not wholly.
    pub(super) unread: Option<String>,
    /// Whether it is no text: only what can be read in it was scanned.
    pub(super) binary: bool,
}

/// Scans everything under `paths`, in the order of their names.
pub(super) fn scan(
    context: &Context,
    detector: &Detector,
    channel: Channel,
    paths: &[PathBuf],
) -> Result<Vec<Scanned>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    let progress = Mutex::new(context.ui.progress("scanning"));
    let total = files.len() as u64;
    std::thread::scope(|scope| {
        for _ in 0..context.threads().min(files.len()).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = files.get(at) else { break };
                    let mut scanned = scan_one(detector, channel, path);
                    if scanned.scan.findings.is_empty() {
                        scanned.text = String::new();
                    }
                    if let Ok(mut done) = done.lock() {
                        done.push((at, scanned));
                    }
                    if let Ok(mut progress) = progress.lock() {
                        progress.update(at as u64, total);
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, scanned)| scanned).collect())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    if path == Path::new("-") {
        files.push(path.to_owned());
        return Ok(());
    }
    let metadata =
        fs::symlink_metadata(path).map_err(|error| CliError::io("read", path, &error))?;
    if !metadata.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|error| CliError::io("list", &folder, &error))?;
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
        if files.len() > MOST {
            return Err(CliError::refused(
                format!("`{}` holds more than {MOST} files", path.display()),
                "scan its folders one by one",
            ));
        }
    }
    Ok(())
}

fn scan_one(detector: &Detector, channel: Channel, path: &Path) -> Scanned {
    let name = path.display().to_string();
    let nothing = Scan { verdict: Verdict::Clean, score: 0.0, findings: Vec::new() };
    match read(path) {
        Ok((bytes, unread)) => {
            let (text, binary) = text_of(&bytes);
            let scan = detector.scan(&text, channel);
            Scanned { name, text, scan, unread, binary }
        }
        Err(why) => {
            Scanned { name, text: String::new(), scan: nothing, unread: Some(why), binary: false }
        }
    }
}

/// How much of a file tells what it is.
const HEAD: usize = 8 << 10;
/// Shorter rows of letters in a file that is no text are chance.
const RUN: usize = 12;

/// The text of a file, and whether it is something else: then only the rows of letters in it.
/// UTF-16 is told by its mark, and what is no UTF-8 is replaced.
fn text_of(bytes: &[u8]) -> (String, bool) {
    let wide: Option<fn([u8; 2]) -> u16> = match bytes {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    if let Some(unit) = wide {
        let units = bytes[2..].as_chunks::<2>().0.iter().map(|pair| unit(*pair));
        let text =
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
        return (text.collect(), false);
    }
    if !is_binary(&bytes[..bytes.len().min(HEAD)]) {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    }
    let mut text = String::new();
    let readable = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    for row in bytes.split(|byte| !readable(byte)).filter(|row| row.len() >= RUN) {
        text.push_str(&String::from_utf8_lossy(row));
        text.push('\n');
    }
    (text, true)
}

/// Whether a file begins as no text does: with a NUL, or with many bytes that no text has.
fn is_binary(head: &[u8]) -> bool {
    let controls = head.iter().filter(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)).count();
    let broken: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    head.contains(&0) || (controls + broken) * 10 > head.len()
}

/// The bytes of a file, and why they are not all.
fn read(path: &Path) -> Result<(Vec<u8>, Option<String>), String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    } else {
        let metadata = fs::metadata(path).map_err(|error| reason(&error))?;
        if !metadata.is_file() {
            return Err("not a regular file".to_owned());
        }
        File::open(path)
            .and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes))
            .map_err(|error| reason(&error))?;
    }
    let cut = bytes.len() as u64 > LIMIT;
    bytes.truncate(usize::try_from(LIMIT).unwrap_or(usize::MAX));
    let unread = cut.then(|| format!("only its first {LIMIT} bytes were scanned"));
    Ok((bytes, unread))
}
