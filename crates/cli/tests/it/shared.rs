//! What several tests use.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_wardkeep");
pub(crate) const META: &str = r#"{"ts":"2026-01-31T12:00:00Z"}"#;

/// Variables that change what is printed or where state lies.
const VARIABLES: [&str; 9] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "NO_COLOR",
    "SUDO_UID",
    "TERM",
    "WARDKEEP_STATE_DIR",
    "XDG_STATE_HOME",
];

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }
}

/// The binary at `program`, in `folder`, without a terminal and in a known environment.
pub(crate) fn command(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    // Files with the append-only attribute could not be removed with their folder.
    command.env("WARDKEEP_APPEND_ONLY", "0");
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Runs `wardkeep` to its end.
pub(crate) fn run<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Ran {
    command(BINARY, folder).args(arguments).output().expect("it starts").into()
}

/// Runs `wardkeep` and expects exit 0.
pub(crate) fn succeed<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> String {
    let ran = run(folder, arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout
}

/// A new folder with a bundle `b` in it that holds two records and a blob.
pub(crate) fn folder_with_bundle() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("hello.txt"), "hello\n").expect("written");
    succeed(at, &["aegx", "init", "b"]);
    let blob = succeed(at, &["aegx", "add-blob", "b", "hello.txt"]);
    let add = ["aegx", "add-record", "b", "--principal", "USER", "--meta", META];
    let first = succeed(at, &[&add[..], &["--type", "SessionStart", "--inline", "1"]].concat());
    let content = ["--blob", blob.trim_end(), "--mime", "text/plain", "--size", "6"];
    let parent = ["--type", "FileRead", "--parents", first.trim_end()];
    succeed(at, &[&add[..], &parent, &content].concat());
    folder
}

/// A link to the binary under another name.
pub(crate) fn link(folder: &Path, name: &str) -> PathBuf {
    let link = folder.join(name);
    std::os::unix::fs::symlink(BINARY, &link).expect("linked");
    link
}

/// Replaces the first `from` in a file.
pub(crate) fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("read");
    assert!(text.contains(from), "{from} in {text}");
    fs::write(file, text.replacen(from, to, 1)).expect("written");
}

/// Every command, as the words after `wardkeep`, the empty one first; found through the help, so
/// that none can be forgotten.
pub(crate) fn every_command() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut next = 0;
    while let Some(words) = found.get(next).cloned() {
        next += 1;
        let help = succeed(Path::new("."), &[&words[..], &["-h".to_owned()]].concat());
        // `wardkeep` itself has its commands in groups, which the options follow.
        let (first, end) = match words.is_empty() {
            true => ("Start here:", "Options:"),
            false => ("Commands:", ""),
        };
        let listed = help.lines().skip_while(|line| *line != first).skip(1);
        for line in listed.take_while(|line| *line != end) {
            // A line that goes on with an explanation is indented further.
            let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
            let name = name.and_then(|line| line.split(' ').next());
            if let Some(name) = name.filter(|name| *name != "help") {
                found.push([&words[..], &[name.to_owned()]].concat());
            }
        }
    }
    assert!(found.len() > 90, "{found:?}");
    found
}

/// The commands that do something, as `aegx verify`.
pub(crate) fn leaf_commands() -> Vec<String> {
    let all = every_command();
    let group = |words: &[String]| {
        all.iter().any(|other| other.len() > words.len() && other.starts_with(words))
    };
    all.iter().filter(|words| !group(words)).map(|words| words.join(" ")).collect()
}

/// Whether a terminal that shows `text` only gets lines of text.
pub(crate) fn is_harmless(text: &str) -> bool {
    !text.chars().any(|character| {
        (character.is_control() && character != '\n')
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

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
