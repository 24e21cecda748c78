//! Colours, closed pipes, full disks, no terminal.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::shared::{BINARY, Ran, command, edit, folder_with_bundle, run, skip};

const ESCAPE: char = '\u{1b}';

fn run_with(folder: &std::path::Path, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = command(BINARY, folder);
    command.args(arguments).envs(variables.iter().copied()).output().unwrap().into()
}

#[test]
fn colours_only_where_they_are_wanted() {
    let folder = folder_with_bundle();
    let force = ("CLICOLOR_FORCE", "1");
    for arguments in
        [&["aegx", "verify", "b"][..], &["aegx", "verify", "nowhere"], &["--help"], &["x"]]
    {
        let coloured = |variables: &[(&str, &str)], more: &[&str]| {
            let ran = run_with(folder.path(), variables, &[arguments, more].concat());
            ran.stdout.contains(ESCAPE) || ran.stderr.contains(ESCAPE)
        };
        assert!(!coloured(&[("TERM", "xterm-256color")], &[]), "piped {arguments:?}");
        assert!(coloured(&[force], &[]), "forced {arguments:?}");
        assert!(!coloured(&[force, ("NO_COLOR", "1")], &[]), "NO_COLOR {arguments:?}");
        assert!(!coloured(&[force], &["--no-color"]), "--no-color {arguments:?}");
        assert!(
            !coloured(&[force], &["--json"]) || arguments == ["--help"],
            "--json {arguments:?}"
        );
    }
}

#[test]
fn a_terminal_gets_colours_and_nothing_else() {
    let folder = folder_with_bundle();
    edit(&folder.path().join("b/records.jsonl"), "SessionStart", r"\u001b]0;x\u0007\u009b31mx");
    let on_terminal = |variables: &[(&str, &str)]| {
        let mut script = command("script", folder.path());
        script.arg("-qec").arg(format!("{BINARY} aegx verify b")).arg("/dev/null");
        script.env("TERM", "xterm-256color").envs(variables.iter().copied());
        script.output().ok().map(|output| String::from_utf8(output.stdout).unwrap())
    };
    let Some(shown) = on_terminal(&[]) else {
        skip("script of util-linux", "a_terminal_gets_colours_and_nothing_else");
        return;
    };
    let fail = "\u{1b}[1m\u{1b}[31mFAIL\u{1b}[0m";
    assert!(shown.contains(fail), "{shown:?}");
    let rest = shown.replace(fail, "").replace("\u{1b}[1mhint\u{1b}[0m", "").replace("\r\n", "");
    assert!(crate::shared::is_harmless(&rest), "{rest:?}");
    let plain = on_terminal(&[("NO_COLOR", "1")]).unwrap();
    assert!(plain.contains("FAIL") && !plain.contains(ESCAPE), "{plain:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder_with_bundle();
    edit(&folder.path().join("b/manifest.json"), "\"record_count\": 2", "\"record_count\": 3");
    for (arguments, code) in [
        (&["--help"][..], 0),
        (&["completions", "bash"], 0),
        (&["aegx", "summarize", "b"], 0),
        (&["aegx", "summarize", "b", "--json"], 0),
        // The verdict is not lost with the pipe.
        (&["aegx", "verify", "b"], 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            command(BINARY, folder.path()).args(arguments).stdout(writer).output().unwrap();
        let ran = Ran::from(output);
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
        assert!(!ran.stderr.contains("error:") && !ran.stderr.contains("panic"), "{ran:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let folder = folder_with_bundle();
    for arguments in [&["aegx", "verify", "b"][..], &["aegx", "verify", "b", "--json"], &["man"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(BINARY, folder.path()).args(arguments).stdout(full).output().unwrap();
        let ran = Ran::from(output);
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(
            ran.stderr.starts_with("error: cannot write to standard output: no space"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("\nhint: "), "{ran:?}");
    }
}

#[test]
fn nothing_needs_a_terminal() {
    let folder = folder_with_bundle();
    let mut command = command(BINARY, folder.path());
    command.args(["aegx", "verify", "b"]).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(0));
}

#[test]
fn quiet_leaves_the_result_and_errors() {
    let folder = folder_with_bundle();
    let quiet = |arguments: &[&str]| {
        let ran = run(folder.path(), &[arguments, &["--quiet"]].concat());
        (ran.stdout, ran.stderr)
    };
    let none = String::new;
    let verdict = "Verification: PASS (it holds together; signed by nobody)\n".to_owned();
    assert_eq!(quiet(&["aegx", "verify", "b"]), (verdict, none()));
    let verdict = "Verification: PASS\n".to_owned();
    assert_eq!(quiet(&["aegx", "verify", "--lenient", "b"]), (verdict, none()));
    assert_eq!(quiet(&["aegx", "export", "b", "b.zip"]), (none(), none()));
    assert_eq!(quiet(&["aegx", "import", "b.zip", "c"]), (none(), none()));
    assert_eq!(quiet(&["aegx", "init", "d"]), (none(), none()));
    assert_eq!(quiet(&["aegx", "add-blob", "b", "hello.txt"]).0.len(), 65);
    assert!(quiet(&["aegx", "init", "d"]).1.contains("\nhint: "));
}

#[test]
fn the_environment_of_the_caller_does_not_matter() {
    let folder = folder_with_bundle();
    let mut bare = Command::new(BINARY);
    bare.env_clear().current_dir(folder.path()).args(["aegx", "verify", "b"]).stdin(Stdio::null());
    assert_eq!(Ran::from(bare.output().unwrap()).code, 0);
}
