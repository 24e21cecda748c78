//! `wardkeep top` on a terminal: what it shows, what keys do, and that the terminal is given back.

use std::io::Write as _;
use std::process::Stdio;

use crate::approvals::Place;
use crate::shared::{BINARY, Ran, command, skip};

/// Leaves the screen that a program has for itself.
const BACK: &str = "\u{1b}[?1049l";

/// Runs it on a terminal of 24 lines, types, and then asks the terminal how it is.
fn typed(place: &Place, before: &str, keys: &[u8]) -> Option<Ran> {
    let state = place.scene.at("s");
    let line = format!(
        "stty rows 24 cols 100; {before} {BINARY} --state-dir {} top; code=$?; stty -a; exit $code",
        state.display()
    );
    let mut script = command("script", &place.scene.at("ws"));
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("HOME", place.scene.at("ws"));
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    let mut input = child.stdin.take()?;
    input.write_all(keys).ok()?;
    let output = child.wait_with_output().ok()?;
    drop(input);
    Some(output.into())
}

fn given_back(ran: &Ran) {
    assert!(ran.stdout.contains(BACK), "{ran:?}");
    let after = ran.stdout.rsplit(BACK).next().unwrap_or_default();
    assert!(after.contains(" icanon") && after.contains(" echo "), "{after:?}");
}

#[test]
fn requests_are_answered_by_key_and_nothing_hostile_gets_through() {
    let place = Place::new();
    let request = place.ask("model \u{1b}]0;owned\u{7}", 0);
    // `y` without a question is nothing; what is answered is asked first.
    let Some(ran) = typed(&place, "", b"yq") else {
        return skip("script", "requests_are_answered_by_key_and_nothing_hostile_gets_through");
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    given_back(&ran);
    assert!(ran.stdout.contains("wait for you"), "{ran:?}");
    assert!(!ran.stdout.contains("\u{1b}]0;owned"), "{ran:?}");
    assert_eq!(place.scene.json(0, "s", &["approvals", "show", &request])["status"], "pending");
    // Any other key is a no.
    let ran = typed(&place, "", b"anq").unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.scene.json(0, "s", &["approvals", "show", &request])["status"], "pending");
    let ran = typed(&place, "", b"ayq").unwrap();
    assert_eq!(ran.code, 0, "{ran:?}");
    // By the code that `wardkeep approvals list` shows.
    assert!(ran.stdout.contains(&format!("Approve request {request:.10} once?")), "{ran:?}");
    assert_eq!(place.scene.json(0, "s", &["approvals", "show", &request])["status"], "approved");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let place = Place::new();
    place.ask("model", 0);
    let Some(ran) = typed(&place, "timeout --foreground -s TERM 3", b"") else {
        return skip("script", "a_signal_gives_the_terminal_back");
    };
    given_back(&ran);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let place = Place::new();
    for arguments in [&["top"][..], &["top", "--json"]] {
        let ran = place.scene.run("s", arguments);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(
            format!("{}{}", ran.stdout, ran.stderr).contains("wardkeep --state-dir s status"),
            "{ran:?}"
        );
    }
}
