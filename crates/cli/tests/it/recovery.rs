//! Snapshots and rollbacks on the command line, against real files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::shared::{BINARY, Ran, command};

/// A workspace with a memory, and a state directory beside it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.file("memory")).unwrap();
        fs::write(home.file("MEMORY.md"), "one\ntwo\nthree\n").unwrap();
        fs::write(home.file("memory/day.md"), "day\n").unwrap();
        home
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("work").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        let mut command = command(BINARY, &self.file(""));
        command.env("HOME", self.0.path()).envs(variables.iter().copied());
        command.args(arguments).output().unwrap().into()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(&[], arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error} {ran:?}"))
    }

    fn take(&self) -> String {
        self.json(&["snapshot", "take", "--reason", "before"])["id"].as_str().unwrap().to_owned()
    }

    fn state(&self) -> PathBuf {
        self.0.path().join(".local/state/wardkeep")
    }
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn a_rollback_from_the_list_to_the_undo() {
    let home = Home::new();
    let id = home.take();
    fs::write(home.file("MEMORY.md"), "one\npoison\nthree\n").unwrap();
    fs::write(home.file("memory/evil.md"), "evil\n").unwrap();
    fs::remove_file(home.file("memory/day.md")).unwrap();

    let list = home.run(&["snapshot", "list"]).stdout;
    assert!(list.contains(&id) && list.contains("before"), "{list}");
    let diff = home.run(&["snapshot", "diff", &id[..6]]);
    for line in [
        "modified MEMORY.md",
        "    - two",
        "    + poison",
        "added    memory/evil.md",
        "removed  memory/day.md",
    ] {
        assert!(diff.stdout.contains(line), "{line} {diff:?}");
    }
    let dry = home.run(&["rollback", &id, "--dry-run"]);
    assert_eq!(dry.code, 0);
    assert!(dry.stdout.contains("+ poison") && home.text("MEMORY.md").contains("poison"));

    // Row 25: the beginning of an id is enough.
    let done = home.run(&["rollback", &id[..8], "--yes"]);
    assert_eq!((done.code, home.text("MEMORY.md").as_str()), (0, "one\ntwo\nthree\n"), "{done:?}");
    assert!(done.stdout.contains("2 restored, 1 removed"), "{done:?}");
    assert!(!home.file("memory/evil.md").exists() && home.file("memory/day.md").exists());
    let again = home.run(&["rollback", &id, "--yes"]);
    assert!(again.stdout.contains("Nothing to do"), "{again:?}");

    let undone = home.json(&["rollback", "--undo", "--yes"]);
    assert_eq!(undone["ok"], true);
    assert!(home.file("memory/evil.md").exists() && !home.file("memory/day.md").exists());
    assert_eq!(undone["removed"], serde_json::json!(["memory/day.md"]));
    assert_eq!(home.json(&["evidence", "verify"])["ok"], true);
    let log = home.json(&["log", "--type", "Rollback"]);
    assert_eq!(log["records"].as_array().unwrap().len(), 2);
}

#[test]
fn nobody_rolls_back_without_a_person() {
    let home = Home::new();
    let id = home.take();
    fs::write(home.file("MEMORY.md"), "newer\n").unwrap();
    let before = files(&home.state().join("snapshots"));
    let ran = home.run(&["rollback", &id]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("needs a person"), "{ran:?}");
    for arguments in [&["rollback", id.as_str(), "--yes"][..], &["rollback", "--undo", "--yes"]] {
        let ran = home.run_with(&[("WARDKEEP_CONFINED", "1")], arguments);
        assert_eq!(ran.code, 1, "{ran:?}");
    }
    assert_eq!(home.text("MEMORY.md"), "newer\n");
    assert_eq!(files(&home.state().join("snapshots")), before);
}

#[test]
fn what_cannot_be_meant_is_said() {
    let home = Home::new();
    let id = home.take();
    for (arguments, code, word) in [
        (&["rollback"][..], 1, "no snapshot is named"),
        (&["rollback", "--undo"], 1, "there was no rollback"),
        (&["rollback", "zz", "--yes"], 1, "no id of a snapshot"),
        (&["rollback", &id[..3], "--yes"], 1, "at least the first 4"),
        (&["rollback", "000000000000", "--yes"], 1, "no snapshot has an id"),
        (&["rollback", &id, "--only", "../x", "--yes"], 1, "no path inside"),
        (&["rollback", &id, "--undo"], 2, "cannot be used with"),
        (&["snapshot", "take", "--scope", "files"], 2, "possible values"),
        (&["snapshot", "show", "\u{1b}[31m"], 1, "\\u{1b}"),
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(word), "{arguments:?} {ran:?}");
    }
}

#[test]
fn a_swapped_snapshot_fails_verification() {
    let home = Home::new();
    let id = home.take();
    fs::write(home.file("MEMORY.md"), "newer\n").unwrap();
    let show = home.json(&["snapshot", "show", &id]);
    let hash = show["files"][0]["sha256"].as_str().unwrap().to_owned();
    assert_eq!(show["files"][0]["path"], "MEMORY.md");
    fs::write(home.state().join("blobs").join(hash), "EVIL\n").unwrap();
    for arguments in [&["snapshot", "show", id.as_str()][..], &["rollback", &id, "--yes"]] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("is not what was kept"), "{ran:?}");
    }
    assert_eq!(home.text("MEMORY.md"), "newer\n");
}

#[test]
fn names_and_contents_cannot_speak_to_the_terminal() {
    let home = Home::new();
    let id = home.take();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{202e}x";
    fs::write(home.file(&format!("memory/{evil}.md")), evil).unwrap();
    fs::write(home.file("MEMORY.md"), format!("one\n{evil}\n")).unwrap();
    let second = home.take();
    for arguments in [
        &["snapshot", "diff", id.as_str()][..],
        &["snapshot", "diff", &id, "--json"],
        &["snapshot", "show", &second],
        &["rollback", &id, "--dry-run"],
        &["rollback", &id, "--yes"],
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, 0, "{ran:?}");
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{text:?}");
    }
}

#[test]
fn an_interrupted_rollback_is_finished_by_the_next() {
    let home = Home::new();
    let id = home.take();
    fs::write(home.file("MEMORY.md"), "poison\n").unwrap();
    fs::write(home.file("memory/day.md"), "poison\n").unwrap();
    let done = home.json(&["rollback", &id, "--yes"]);
    // As if it had ended after the first file: the plan is there, the record is not yet.
    let plan = format!(
        r#"{{"agent":"","auto":false,"kept":"{}","paths":["MEMORY.md","memory/day.md"],"principal":"USER","session":"","snapshot":"{id}","v":1}}"#,
        done["kept"].as_str().unwrap()
    );
    fs::write(home.file("memory/day.md"), "poison\n").unwrap();
    fs::write(home.state().join("snapshots/rollback.json"), plan).unwrap();
    assert_eq!(home.run(&["rollback"]).code, 1, "a person has to be there");
    let finished = home.json(&["rollback", "--yes"]);
    assert_eq!(finished["finished"], Value::from(id.as_str()), "{finished}");
    assert_eq!(home.text("memory/day.md"), "day\n");
    assert!(!home.state().join("snapshots/rollback.json").exists());
}

#[test]
fn a_text_that_is_hard_to_compare_does_not_hold_up() {
    let home = Home::new();
    let lines = |seed: u32| -> String {
        (0..40_000u32).map(|n| format!("{}\n", n.wrapping_mul(seed) % 977)).collect()
    };
    fs::write(home.file("MEMORY.md"), lines(7919)).unwrap();
    let id = home.take();
    fs::write(home.file("MEMORY.md"), lines(104_729)).unwrap();
    let began = std::time::Instant::now();
    let ran = home.run(&["snapshot", "diff", &id]);
    assert!(ran.stdout.contains("more lines"), "{}", ran.stdout.len());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn what_a_page_reached_is_put_back_and_nothing_else() {
    use wardkeep_evidence::record::Principal;
    use wardkeep_evidence::time::Timestamp;
    use wardkeep_monitor::journal::Clock;
    use wardkeep_monitor::monitor::{Monitor, MonitorConfig, Who};
    use wardkeep_monitor::store::StoreConfig;

    let home = Home::new();
    home.take();
    fs::write(home.file("other.txt"), "mine").unwrap();
    let work = fs::canonicalize(home.file("")).unwrap();
    let clock = Clock::new(|| Timestamp::from_unix(1_800_000_000).unwrap());
    let owner = rustix::process::geteuid().as_raw();
    let page = {
        let config = MonitorConfig::new(StoreConfig::new(clock), owner);
        let monitor = Monitor::open(&home.state(), config).unwrap();
        let who = Who::new("agent", "agent:1", &work, Principal::User);
        let before = monitor.on_file_write(&who, Path::new("other.txt"), b"mine, too").unwrap();
        assert!(before.is_allowed());
        fs::write(home.file("other.txt"), "mine, too").unwrap();
        let web = who.on_behalf_of(Principal::Web);
        let page = monitor.on_tool_result(&web, "fetch", None, "A page about boats.").unwrap();
        for (name, text) in [("memory/day.md", "boats\n"), ("memory/new.md", "more boats\n")] {
            let write = monitor.on_file_write(&who, Path::new(name), text.as_bytes()).unwrap();
            assert!(write.is_allowed(), "{write:?}");
            fs::write(home.file(name), text).unwrap();
        }
        // Allowed, and never made.
        assert!(
            monitor.on_file_write(&who, Path::new("other.txt"), b"boats").unwrap().is_allowed()
        );
        page.record.to_string()
    };
    let plan = home.json(&["rollback", "--contaminated", &page, "--dry-run"]);
    assert_eq!(plan["restored"], serde_json::json!(["memory/day.md"]), "{plan}");
    assert_eq!(plan["removed"], serde_json::json!(["memory/new.md"]), "{plan}");
    assert_eq!(plan["left"], serde_json::json!([]), "{plan}");
    assert_eq!(home.text("memory/day.md"), "boats\n");
    let done = home.json(&["rollback", "--contaminated", &page, "--yes"]);
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!(home.text("memory/day.md"), "day\n");
    assert!(!home.file("memory/new.md").exists());
    assert_eq!(home.text("other.txt"), "mine, too");
    let undone = home.json(&["rollback", "--undo", "--yes"]);
    assert_eq!(undone["ok"], true, "{undone}");
    assert_eq!(home.text("memory/day.md"), "boats\n");

    // What was written since, with nobody asking, may be the owner's own work.
    fs::write(home.file("memory/day.md"), "a whole afternoon\n").unwrap();
    let plan = home.json(&["rollback", "--contaminated", &page, "--dry-run"]);
    assert_eq!(plan["left"][0]["path"], work.join("memory/day.md").to_str().unwrap(), "{plan}");
    let again = home.json(&["rollback", "--contaminated", &page, "--yes"]);
    assert_eq!(again["removed"], serde_json::json!(["memory/new.md"]), "{again}");
    assert_eq!(home.text("memory/day.md"), "a whole afternoon\n");
    assert!(!home.file("memory/new.md").exists());
    let all = home.json(&["rollback", "--contaminated", &page, "--even-if-changed", "--yes"]);
    assert_eq!(all["ok"], true, "{all}");
    assert_eq!(home.text("memory/day.md"), "day\n");
}
