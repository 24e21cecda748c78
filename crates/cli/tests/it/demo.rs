//! The demo: every scene, also alone, also by another user, also where the kernel gives less; and nothing is
//! left behind.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::shared::{BINARY, Ran, command, is_harmless, run, skip};

const SCENES: [&str; 7] =
    ["alohomora", "poison", "confined", "model", "policy", "identity", "evidence"];

fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut demo = command(BINARY, folder);
    demo.arg("demo").args(arguments).env("TMPDIR", folder);
    demo
}

fn played(folder: &Path, arguments: &[&str]) -> Ran {
    demo(folder, arguments).output().map(Ran::from).unwrap()
}

/// Processes that have a folder among their words or work in it.
fn processes_in(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .filter_map(|entry| {
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let at = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            (words.contains(name) || at.starts_with(folder)).then_some(words)
        })
        .collect()
}

#[test]
fn the_demo_holds_says_why_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ran = played(folder.path(), &["--details"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(is_harmless(&ran.stdout));
    for check in
        ["record-id", "entry-index", "seal-truncated", "seal-root", "seal-epoch-key", "rollback"]
    {
        assert!(ran.stdout.contains(&format!("{check}: ")), "{check}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("Everything held"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(processes_in(folder.path()), Vec::<String>::new());
    let ran = run(folder.path(), &["demo", "--scene", "nothing"]);
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn a_scene_is_told_in_a_few_short_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bin");
    fs::create_dir(&path).unwrap();
    let told = |arguments: &[&str]| -> Ran {
        let path = format!("{}:/usr/bin:/bin", path.display());
        demo(folder.path(), arguments).env("PATH", path).output().unwrap().into()
    };
    let ran = told(&["--fast"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines.len() <= 72, "{}", ran.stdout);
    // What a terminal has room for, and nothing broken inside of a word.
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    for words in
        ["wardkeep init", "wardkeep run -- claude", "wardkeep status", "nothing is left behind"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    // What is to be typed next can be typed.
    const INSTALL: &str = "cargo install --locked --path crates/cli";
    assert!(ran.stdout.contains(INSTALL), "{}", ran.stdout);
    std::os::unix::fs::symlink(BINARY, path.join("wardkeep")).unwrap();
    let ran = told(&["--scene", "policy"]);
    assert!(!ran.stdout.contains(INSTALL), "{}", ran.stdout);
}

#[test]
fn each_scene_plays_alone_and_the_attacks_succeed_unprotected() {
    let folder = tempfile::tempdir().unwrap();
    for scene in SCENES {
        let ran = played(folder.path(), &["--scene", scene, "--json"]);
        assert_eq!(ran.code, 0, "{scene}: {ran:?}");
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let found = &answer["scenes"][0];
        assert_eq!((&found["name"], &answer["scenes"][1]), (&Value::from(scene), &Value::Null));
        assert_eq!(found["missing"], serde_json::json!([]), "{scene}");
        let without = found["without"].as_str().unwrap();
        match scene {
            "alohomora" => assert!(without.starts_with("11 of 11 done"), "{without}"),
            "poison" => assert!(without.starts_with("6 of 6 done"), "{without}"),
            "confined" => assert!(without.starts_with("8 of 8 done"), "{without}"),
            _ => {}
        }
        let with = found["with"].as_str().unwrap();
        match scene {
            // Memory is the agent's to write, and counts on both sides.
            "alohomora" => assert!(with.starts_with("1 of 11 done: only memory"), "{with}"),
            "poison" | "confined" => assert!(with.starts_with("0 of "), "{with}"),
            _ => {}
        }
        assert_eq!(answer["handed"].is_null(), scene == "confined", "{scene}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_kept_verifies_and_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (work, keep) = (folder.path().join("tmp"), folder.path().join("kept"));
    fs::create_dir(&work).unwrap();
    let arguments = ["--scene", "poison", "--keep", keep.to_str().unwrap()];
    let ran = played(&work, &arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    let bundle = keep.join("evidence.zip");
    let checked = run(folder.path(), &["aegx", "verify", bundle.to_str().unwrap()]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let page = fs::read_to_string(keep.join("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("</html>"));
    let again = played(&work, &arguments);
    assert_eq!(again.code, 1, "{again:?}");
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
}

#[test]
fn another_user_than_root_sees_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    const TEST: &str = "another_user_than_root_sees_the_same";
    if !rustix::process::geteuid().is_root() {
        return skip("root, to become another user", TEST);
    }
    let folder = tempfile::tempdir().unwrap();
    // A build folder need not be open to everybody.
    let program = folder.path().join("wardkeep");
    // By a process of its own: a child of another thread may hold what is written here, so that it cannot be started.
    let copied = Command::new("/bin/cp").arg(BINARY).arg(&program).status();
    assert!(copied.unwrap().success());
    let work = folder.path().join("tmp");
    fs::create_dir(&work).unwrap();
    for path in [folder.path(), &work, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::chown(&work, Some(65534), Some(65534)).unwrap();
    let mut demo = command(&program, &work);
    demo.args(["demo", "--json"]).env("TMPDIR", &work).env("HOME", &work);
    let ran: Ran = demo.uid(65534).gid(65534).output().unwrap().into();
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["scenes"].as_array().unwrap().len(), SCENES.len());
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
}

#[test]
fn without_user_namespaces_it_says_what_it_does_not_show() {
    const TEST: &str = "without_user_namespaces_it_says_what_it_does_not_show";
    let folder = tempfile::tempdir().unwrap();
    let line = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec {BINARY} demo --json 2>{}/said",
        folder.path().display()
    );
    let mut inside = command("unshare", folder.path());
    inside.args(["--user", "--map-current-user", "--keep-caps", "sh", "-c", &line]);
    inside.env("TMPDIR", folder.path());
    let Ok(output) = inside.output() else { return skip("unshare", TEST) };
    let ran = Ran::from(output);
    let Ok(answer) = serde_json::from_str::<Value>(&ran.stdout) else {
        return skip("user namespaces that can be limited", TEST);
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    let scenes = answer["scenes"].as_array().unwrap();
    let of = |name: &str| scenes.iter().find(|scene| scene["name"] == name).unwrap();
    for name in ["alohomora", "confined"] {
        let missing = of(name)["missing"][0].as_str().unwrap_or_default();
        assert!(missing.contains("cannot be confined here"), "{name}: {}", of(name));
    }
    assert!(of("alohomora")["with"].as_str().unwrap().contains("seen and undone"));
    assert_eq!(of("confined")["steps"], serde_json::json!([]));
}
