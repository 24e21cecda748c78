//! Notices on the desktop, by a `notify-send` that is made here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use wardkeep_gateway::notify::{Desktop, Way as _};

use crate::notify::{HOSTILE, LONG, is_harmless, notice};

/// A `notify-send` that writes down its arguments, one a line, and what it sees of the environment.
fn script(folder: &tempfile::TempDir, rest: &str) -> PathBuf {
    let out = folder.path().join("out");
    let program = folder.path().join("notify-send");
    let text = format!(
        "#!/bin/sh\nfor one in \"$@\"; do printf '%s\\0' \"$one\" >> '{0}'; done\n/usr/bin/env > '{0}.env'\n{rest}\n",
        out.display()
    );
    // By a process of its own: a child of another thread may hold what is written here, so that it cannot be started.
    let write = r#"printf %s "$2" >"$1" && chmod 755 "$1""#;
    let written =
        Command::new("/bin/sh").args(["-c", write, "sh"]).arg(&program).arg(text).status();
    assert!(written.unwrap().success());
    out
}

#[test]
fn the_desktop_gets_words_and_no_options_or_markup() {
    let folder = tempfile::tempdir().unwrap();
    let out = script(&folder, "");
    let path = std::env::join_paths([PathBuf::from("relative"), folder.path().to_owned()]).unwrap();
    let variables = [("DISPLAY", ":7"), ("LD_PRELOAD", "/x.so"), ("TOKEN", "t")];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let mut desktop = Desktop::find(&path, variables.into_iter()).unwrap();
    let mut one = notice(HOSTILE);
    one.title = "--expire-time=1\u{202e}".to_owned();
    desktop.send(&one).unwrap();
    let text = fs::read_to_string(&out).unwrap();
    let words: Vec<&str> = text.trim_end_matches('\0').split('\0').collect();
    assert_eq!(&words[..3], ["--app-name=Wardkeep", "--urgency=normal", "--"]);
    assert_eq!((words.len(), words[3]), (5, "--expire-time=1\\u{202e}"));
    assert!(is_harmless(words[4]) && !words[4].contains('<'), "{}", words[4]);
    assert!(words[4].contains("&lt;b&gt;&amp;amp;"), "{}", words[4]);
    assert!(words[4].contains("wardkeep approvals show 0123456789ab"));
    let seen = fs::read_to_string(format!("{}.env", out.display())).unwrap();
    assert!(
        seen.contains("DISPLAY=:7") && !seen.contains("LD_PRELOAD") && !seen.contains("TOKEN"),
        "{seen}"
    );
    assert!(!seen.contains("CARGO"), "{seen}");
    assert!(Desktop::find("/nowhere:relative".as_ref(), std::iter::empty()).is_none());
}

#[test]
fn a_desktop_that_hangs_is_ended_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let out = script(&folder, "sleep 300 & echo $! > \"$(dirname \"$0\")/pid\"; sleep 300");
    let desktop = Desktop::find(
        folder.path().as_os_str(),
        [("PATH".into(), "/bin:/usr/bin".into())].into_iter(),
    );
    let started = Instant::now();
    let failed = desktop.unwrap().patience(Duration::from_secs(8)).send(&notice("x")).unwrap_err();
    assert!(failed.why.contains("too long") && started.elapsed() < LONG, "{failed:?}");
    assert!(out.exists());
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !gone() && started.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(gone());
    let failing = tempfile::tempdir().unwrap();
    script(&failing, "exit 3");
    let mut desktop = Desktop::find(failing.path().as_os_str(), std::iter::empty()).unwrap();
    assert!(desktop.send(&notice("x")).is_err());
}
