//! Files and folders, scanned in parallel.

use std::fs::{self, File, FileType};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};
use wardkeep_detect::finding::{Channel, Finding, Scan, Verdict};

use super::Judge;
use super::excerpt::Place;
use crate::context::Context;
use crate::error::{CliError, reason};

/// Longest file that is scanned.
const LIMIT: u64 = 64 << 20;
/// Most files that one call scans.
const MOST: usize = 200_000;

/// A file after its scan. Its text is gone: many large ones would not fit.
pub(super) struct Scanned {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) score: f32,
    pub(super) found: Vec<Found>,
    /// Why it was not scanned, or not wholly.
    pub(super) unread: Option<String>,
    /// Whether it is no text: only what can be read in it was scanned.
    pub(super) binary: bool,
}

/// A finding with what was to be taken from the text.
pub(super) struct Found {
    pub(super) finding: Finding,
    pub(super) place: Place,
    pub(super) fingerprint: Option<String>,
}

/// Something to scan, or why it cannot be.
struct Task {
    path: PathBuf,
    unread: Option<String>,
}

/// Scans everything under `paths`, in the order of their names.
pub(super) fn scan(
    context: &Context,
    judge: &Judge,
    channel: Channel,
    paths: &[PathBuf],
) -> Result<Vec<Scanned>, CliError> {
    let mut tasks = Vec::new();
    for path in paths {
        collect(path, &mut tasks)?;
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(tasks.len()));
    let progress = Mutex::new(context.ui.progress("scanning"));
    let total = tasks.len() as u64;
    std::thread::scope(|scope| {
        for _ in 0..context.threads().min(tasks.len()).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(at) else { break };
                    let scanned = scan_one(judge, channel, task);
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

fn collect(path: &Path, tasks: &mut Vec<Task>) -> Result<(), CliError> {
    let there = |path: PathBuf| Task { path, unread: None };
    if path == Path::new("-") {
        tasks.push(there(path.to_owned()));
        return Ok(());
    }
    let metadata =
        fs::symlink_metadata(path).map_err(|error| CliError::io("read", path, &error))?;
    if !metadata.is_dir() {
        tasks.push(there(path.to_owned()));
        return Ok(());
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        // What cannot be listed keeps nothing else from being scanned, and is not passed over.
        let listed = fs::read_dir(&folder)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
            .and_then(|entries| {
                entries.into_iter().map(|entry| Ok((entry.path(), entry.file_type()?))).collect()
            });
        let mut entries: Vec<(PathBuf, FileType)> = match listed {
            Ok(entries) => entries,
            Err(error) => {
                let unread = Some(format!("cannot be listed: {}", reason(&error)));
                tasks.push(Task { path: folder, unread });
                continue;
            }
        };
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (path, kind) in entries {
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                tasks.push(there(path));
            }
        }
        if tasks.len() > MOST {
            return Err(CliError::refused(
                format!("`{}` holds more than {MOST} files", path.display()),
                "scan its folders one by one",
            ));
        }
    }
    Ok(())
}

fn scan_one(judge: &Judge, channel: Channel, task: &Task) -> Scanned {
    let name = task.path.display().to_string();
    let read = match &task.unread {
        Some(why) => Err(why.clone()),
        None => read(&task.path),
    };
    let (bytes, unread) = match read {
        Ok(read) => read,
        Err(why) => {
            let (verdict, unread) = (Verdict::Clean, Some(why));
            return Scanned { name, verdict, score: 0.0, found: Vec::new(), unread, binary: false };
        }
    };
    let (text, binary) = text_of(&bytes);
    drop(bytes);
    let Scan { verdict, score, findings } = judge.detector.scan(&text, channel);
    let found = findings
        .into_iter()
        .map(|finding| Found {
            place: Place::new(&text, finding.span),
            fingerprint: judge.fingerprint(&text, &finding),
            finding,
        })
        .collect();
    Scanned { name, verdict, score, found, unread, binary }
}

/// How much of a file tells what it is.
const HEAD: usize = 8 << 10;
/// Shorter rows of letters in a file that is no text are chance.
const RUN: usize = 12;

/// The text of a file, and whether it is something else: then only the rows of letters in it.
///
/// UTF-16 is told by its mark or by its zeros, and what is no UTF-8 is replaced. A mark may be a lie: what is
/// written in plain letters behind it is read as well.
fn text_of(bytes: &[u8]) -> (String, bool) {
    if let Some((unit, bytes)) = wide(bytes) {
        let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
        let mut text: String = char::decode_utf16(units)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        rows(bytes, &mut text);
        return (text, false);
    }
    if !is_binary(&bytes[..bytes.len().min(HEAD)]) {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    }
    let mut text = String::new();
    rows(bytes, &mut text);
    (text, true)
}

/// Two bytes as one number.
type Pair = fn([u8; 2]) -> u16;

/// How UTF-16 is written, and the bytes without their mark.
fn wide(bytes: &[u8]) -> Option<(Pair, &[u8])> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => return Some((u16::from_le_bytes, rest)),
        [0xfe, 0xff, rest @ ..] => return Some((u16::from_be_bytes, rest)),
        _ => {}
    }
    let pairs = bytes[..bytes.len().min(HEAD)].as_chunks::<2>().0;
    let zeros = |place: usize| pairs.iter().filter(|pair| pair[place] == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    // Letters of Latin have a zero each, on the same side.
    let most = |many: usize, few: usize| many * 2 > pairs.len() && few * 20 < pairs.len();
    if most(second, first) {
        Some((u16::from_le_bytes, bytes))
    } else if most(first, second) {
        Some((u16::from_be_bytes, bytes))
    } else {
        None
    }
}

/// Adds all rows of characters that are long enough, a line each.
fn rows(bytes: &[u8], text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
        for row in chunk.valid().split(control).filter(|row| row.len() >= RUN) {
            text.push_str(row);
            text.push('\n');
        }
    }
}

/// Whether a file begins as no text does: with many bytes that no text has.
fn is_binary(head: &[u8]) -> bool {
    let controls = head.iter().filter(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31)).count();
    let broken: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    (controls + broken) * 10 > head.len()
}

/// The bytes of a file, and why they are not all.
fn read(path: &Path) -> Result<(Vec<u8>, Option<String>), String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    } else {
        // Without waiting: a pipe that was put in place of a file would never open.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| reason(&error.into()))
            .map(File::from)?;
        if !file.metadata().map_err(|error| reason(&error))?.is_file() {
            return Err("not a regular file".to_owned());
        }
        file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    }
    let cut = bytes.len() as u64 > LIMIT;
    bytes.truncate(usize::try_from(LIMIT).unwrap_or(usize::MAX));
    let unread = cut.then(|| format!("only its first {LIMIT} bytes were scanned"));
    Ok((bytes, unread))
}
