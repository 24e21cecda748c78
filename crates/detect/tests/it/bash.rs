//! The shell parser against the real `bash`.
//!
//! *Syntax*: what bash reads without complaint is `complete` for the parser too. What bash refuses is
//! either not `complete`, or the parser is the more tolerant one and still sees every `rec`.
//!
//! *Soundness*: of every line that is run, each argv that bash executed is among the commands that the
//! parser saw, word for word, save where a word was marked as unknown; then its pattern matches.
//!
//! Lines are harmless: the only programs are a recording shell function `rec` and the hook for what is
//! not found, `PATH` is an empty folder, the environment is empty, the working folder is a temporary one. One bash
//! reads many lines and gives each a shell of its own. `WARDKEEP_BASH_LINES=N` generates N lines instead
//! of the few of a default run.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use wardkeep_detect::shell::{Command, Opaque, Parsed, Word, parse};

#[path = "bash/lines.rs"]
mod lines;

fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bash-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How many lines are generated for each test.
fn generated_lines() -> usize {
    let wanted = std::env::var("WARDKEEP_BASH_LINES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(400)
}

/// Reads lines that end in NUL; prints the status that reading each gives.
const CHECKER: &str = r#"
while IFS= read -r -d '' line; do
    (eval "set -n"$'\n'"$line") </dev/null >/dev/null 2>&1
    printf '%s\0' "$?"
done
"#;

/// Reads lines that end in NUL; prints for each what it executed, words ended by 1, commands by 2.
const RECORDER: &str = r#"
ulimit -t 20 -f 100
command_not_found_handle() { local IFS=$'\1'; builtin printf '%s\1\2' "$*" >&99; }
rec() { command_not_found_handle rec "$@"; }
sh() {
    if [[ $1 == -c ]]; then
        (text=$2; shift 3; eval "$text")
    else
        (IFS= read -r -d '' text; eval "$text")
    fi
}
while IFS= read -r -d '' line; do
    log=$(exec 99>&1 </dev/null >/dev/null 2>/dev/null; unset log; eval "unset line; $line")
    printf '%s\0' "$log"
done
"#;

/// Where bash is: the search path of the process that is started is not this one's.
fn bash() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("bash")).find(|file| file.is_file())
}

/// What bash answers to each line, or nothing where there is no bash.
fn ask(driver: &str, lines: &[String]) -> Option<Vec<String>> {
    let bash = bash()?;
    let folder = Folder::new();
    let (empty, work) = (folder.0.join("bin"), folder.0.join("work"));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&work).unwrap();
    let input = folder.0.join("lines");
    fs::write(&input, lines.iter().map(|line| format!("{line}\0")).collect::<String>()).unwrap();
    let mut process = Process::new(bash)
        .args(["--norc", "--noprofile", "-c", driver])
        .env_clear()
        .env("PATH", &empty)
        .env("HOME", "~")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(&work)
        .stdin(fs::File::open(&input).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = process.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes)
    });
    let latest = Instant::now() + Duration::from_secs(120);
    while process.try_wait().unwrap().is_none() {
        if Instant::now() > latest {
            process.kill().unwrap();
            panic!("bash did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let bytes = reader.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let answers: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    assert_eq!(answers.len(), lines.len(), "an answer to each line");
    Some(answers)
}

/// The argv of each command in a record.
fn executed(record: &str) -> Vec<Vec<String>> {
    let words = |argv: &str| argv.split_terminator('\u{1}').map(str::to_owned).collect();
    record.split_terminator('\u{2}').map(words).collect()
}

/// Whether words of the parser stand for exactly this argv. One that is not known may be split, or vanish.
fn stands_for(words: &[&Word], argv: &[String]) -> bool {
    let Some((word, rest)) = words.split_first() else { return argv.is_empty() };
    if !word.is_opaque() && !word.glob {
        return argv.first().is_some_and(|first| word.could_be(first))
            && stands_for(rest, &argv[1..]);
    }
    (0..=argv.len()).any(|taken| {
        let (taken, left) = argv.split_at(taken);
        let fits = if word.glob && !word.is_opaque() {
            !taken.is_empty() && taken.iter().all(|text| word.could_be(text))
        } else {
            word.could_be(&taken.join(" "))
        };
        fits && stands_for(rest, left)
    })
}

fn words(command: &Command) -> Vec<&Word> {
    command.name.iter().chain(&command.args).collect()
}

/// Whether the parser said that it does not know what this text runs. What bash reads is seldom not
/// `complete`: that is tested on its own.
fn is_disclosed(parsed: &Parsed) -> bool {
    let script = |command: &Command| matches!(command.opaque, Some(Opaque::Script | Opaque::Input));
    !parsed.complete || parsed.commands.iter().any(script)
}

fn is_seen(parsed: &Parsed, argv: &[String]) -> bool {
    parsed.commands.iter().any(|command| stands_for(&words(command), argv))
}

fn show(parsed: &Parsed) -> Vec<String> {
    parsed.commands.iter().map(Command::line).collect()
}

/// Lines of which the parser saw something else than bash ran.
fn unsound(lines: &[String], records: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (line, record) in lines.iter().zip(records) {
        let parsed = parse(line);
        if is_disclosed(&parsed) {
            continue;
        }
        for argv in executed(record).iter().filter(|argv| !is_seen(&parsed, argv)) {
            found.push(format!("{line:?}\n    ran {argv:?}\n    saw {:?}", show(&parsed)));
        }
    }
    found
}

fn generated(strategy: &impl Strategy<Value = String>, count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn report(found: &[String]) {
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn what_bash_reads_is_complete() {
    let mut lines: Vec<String> = lines::READ.iter().map(|line| (*line).to_owned()).collect();
    let table = lines.len();
    lines.extend(generated(&lines::script(), generated_lines()));
    let Some(statuses) = ask(CHECKER, &lines) else {
        return skip("bash", "bash::what_bash_reads_is_complete");
    };
    let mut found = Vec::new();
    let mut read = 0;
    for (place, (line, status)) in lines.iter().zip(&statuses).enumerate() {
        let complete = parse(line).complete;
        if status == "0" {
            read += 1;
            if !complete {
                found.push(format!("{line:?}: bash reads it, the parser does not"));
            }
        } else if place < table {
            found.push(format!("{line:?}: bash refuses it"));
        } else if complete && !sees_every_rec(line) {
            found.push(format!("{line:?}: bash refuses it, and a command is missed"));
        }
    }
    report(&found);
    assert!(read * 10 > lines.len() * 9, "the grammar makes sense: {read} of {}", lines.len());
}

/// Whether as many `rec` were seen as stand in the text: in a text that does not quote the name.
fn sees_every_rec(line: &str) -> bool {
    let seen = parse(line).commands.iter().filter(|c| c.program() == Some("rec")).count();
    seen >= line.matches("rec ").count()
}

#[test]
fn what_bash_refuses_is_incomplete_or_seen() {
    let lines: Vec<String> = lines::REFUSED.iter().map(|line| (*line).to_owned()).collect();
    let Some(statuses) = ask(CHECKER, &lines) else {
        return skip("bash", "bash::what_bash_refuses_is_incomplete_or_seen");
    };
    let mut found = Vec::new();
    for (line, status) in lines.iter().zip(&statuses) {
        if status == "0" {
            found.push(format!("{line:?}: bash reads it"));
        } else if parse(line).complete && !sees_every_rec(line) {
            found.push(format!("{line:?}: complete, and saw {:?}", show(&parse(line))));
        }
    }
    report(&found);
}

#[test]
fn what_bash_runs_was_seen() {
    let tables = [lines::READ, lines::REFUSED, lines::VARIABLES].concat();
    let lines: Vec<String> = tables.into_iter().map(str::to_owned).collect();
    let Some(records) = ask(RECORDER, &lines) else {
        return skip("bash", "bash::what_bash_runs_was_seen");
    };
    let ran = records.iter().filter(|record| !record.is_empty()).count();
    assert!(ran * 2 > lines.len(), "only {ran} of {} lines ran anything", lines.len());
    report(&unsound(&lines, &records));
}

/// The list of what is left grows shorter, never out of date.
#[test]
fn what_is_left_still_differs() {
    let lines: Vec<String> = lines::LEFT.iter().map(|line| (*line).to_owned()).collect();
    let Some(records) = ask(RECORDER, &lines) else {
        return skip("bash", "bash::what_is_left_still_differs");
    };
    for (line, record) in lines.iter().zip(&records) {
        let found = unsound(std::slice::from_ref(line), std::slice::from_ref(record));
        assert!(!found.is_empty(), "{line:?} is seen as it runs: it belongs to the others");
    }
}

#[test]
fn what_bash_runs_of_generated_lines_was_seen() {
    let lines = generated(&lines::script(), generated_lines());
    let Some(records) = ask(RECORDER, &lines) else {
        return skip("bash", "bash::what_bash_runs_of_generated_lines_was_seen");
    };
    let ran = records.iter().filter(|record| !record.is_empty()).count();
    assert!(ran * 4 > lines.len() * 3, "only {ran} of {} lines ran anything", lines.len());
    report(&unsound(&lines, &records));
}
