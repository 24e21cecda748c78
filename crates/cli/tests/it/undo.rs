//! `wardkeep undo` by the real binary: what an agent's tools destroyed comes back, and nothing else
//! changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::hook::{Place, is_leave};

/// The command, run in the workspace.
fn at_work(place: &Place, arguments: &[&str]) -> std::process::Command {
    let state = place.scene.at("s");
    let mut command = place.scene.command(state.to_str().unwrap(), arguments);
    command.current_dir(place.work()).stdin(std::process::Stdio::null());
    command
}

fn undo(place: &Place, code: i32, arguments: &[&str]) -> Value {
    let arguments = [&["undo", "--json", "--yes"], arguments].concat();
    let ran = at_work(place, &arguments).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(code), "{text} {}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_str(&text).unwrap()
}

fn names(list: &Value) -> Vec<String> {
    let paths = list.as_array().unwrap().iter().map(|path| Path::new(path.as_str().unwrap()));
    paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// A file that a tool of the agent writes, and that is then really written.
fn write(place: &Place, name: &str, text: &str) {
    let path = place.work().join(name);
    let ran = place.call("Write", json!({"file_path": path, "content": text}));
    assert!(is_leave(&ran), "{ran:?}");
    fs::write(path, text).unwrap();
}

/// A command that is judged, and then really run.
fn shell(place: &Place, command: &str) {
    let ran = place.shell(command);
    assert!(is_leave(&ran), "{command} {ran:?}");
    let mut sh = std::process::Command::new("sh");
    let done = sh.args(["-c", command]).current_dir(place.work()).status().unwrap();
    assert!(done.success(), "{command}");
}

#[test]
fn each_undo_goes_one_call_back() {
    let place = Place::new();
    write(&place, "notes.txt", "second\n");
    write(&place, "notes.txt", "third\n");
    let text = || fs::read_to_string(place.work().join("notes.txt")).unwrap();
    let done = undo(&place, 0, &[]);
    assert_eq!((names(&done["restored"]), text().as_str()), (vec!["notes.txt".into()], "second\n"));
    let done = undo(&place, 0, &["notes.txt"]);
    assert_eq!((names(&done["restored"]), text().as_str()), (vec!["notes.txt".into()], "hello\n"));
    assert_eq!(undo(&place, 0, &[])["restored"], json!([]));
    // What was replaced is not lost either.
    let kept = done["kept"][0].as_str().unwrap();
    place.scene.expect(0, "s", &["rollback", kept, "--yes"]);
    assert_eq!(text(), "second\n");
}

#[test]
fn a_deleted_tree_comes_back_with_modes_and_links() {
    let place = Place::new();
    let work = place.work();
    fs::create_dir_all(work.join("src/deep")).unwrap();
    fs::write(work.join("src/run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(work.join("src/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(work.join("src/deep/bytes"), [0xff, 0, 1]).unwrap();
    symlink("run.sh", work.join("src/link")).unwrap();
    fs::create_dir_all(work.join("src/node_modules/left-pad")).unwrap();
    fs::write(work.join("src/node_modules/left-pad/index.js"), "x").unwrap();
    shell(&place, "rm -rf src");
    assert!(!work.join("src").exists());
    fs::write(work.join("mine.txt"), "made by nobody\n").unwrap();
    let done = undo(&place, 0, &["src"]);
    assert_eq!(names(&done["restored"]), ["bytes", "link", "run.sh"]);
    let mode = fs::metadata(work.join("src/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(fs::read(work.join("src/deep/bytes")).unwrap(), [0xff, 0, 1]);
    assert_eq!(fs::read_link(work.join("src/link")).unwrap(), Path::new("run.sh"));
    assert!(!work.join("src/node_modules").exists(), "what can be installed again is not kept");
    assert!(work.join("mine.txt").exists());
}

#[test]
fn commands_that_change_a_whole_tree_can_be_undone() {
    let place = Place::new();
    let work = place.work();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
        let done = git.current_dir(&work).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "notes.txt"]);
    git(&["commit", "-qm", "one"]);
    fs::write(work.join("notes.txt"), "a day's work\n").unwrap();
    fs::write(work.join("untracked.txt"), "never added\n").unwrap();
    // All of it may be SOUL.md, which is not tracked.
    shell(&place, "git reset -q --hard && git clean -fdq untracked.txt");
    assert!(!work.join("untracked.txt").exists());
    undo(&place, 0, &[]);
    assert_eq!(fs::read_to_string(work.join("notes.txt")).unwrap(), "a day's work\n");
    assert_eq!(fs::read_to_string(work.join("untracked.txt")).unwrap(), "never added\n");
}

#[test]
fn what_was_not_there_before_stays_unless_the_owner_says_otherwise() {
    let place = Place::new();
    let work = place.work();
    write(&place, "new.txt", "made\n");
    shell(&place, "mv notes.txt moved.txt");
    fs::write(work.join("other.txt"), "the owner's\n").unwrap();
    let done = undo(&place, 0, &["--session", "abc"]);
    assert_eq!(names(&done["restored"]), ["notes.txt"]);
    assert_eq!(names(&done["created"]), ["moved.txt", "new.txt"]);
    assert!(work.join("new.txt").exists() && work.join("moved.txt").exists());
    let done = undo(&place, 0, &["--session", "abc", "--created"]);
    assert_eq!(names(&done["removed"]), ["moved.txt", "new.txt"]);
    assert!(!work.join("new.txt").exists() && work.join("other.txt").exists());
    let done = undo(&place, 0, &["new.txt"]);
    assert_eq!(done["restored"], json!([]), "only what an agent changed is known");
}

#[test]
fn nothing_is_written_through_what_an_agent_puts_in_the_way() {
    let place = Place::new();
    let work = place.work();
    let outside = place.scene.at("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("notes.txt"), "not the agent's\n").unwrap();
    fs::create_dir(work.join("docs")).unwrap();
    fs::write(work.join("docs/notes.txt"), "one\n").unwrap();
    write(&place, "docs/notes.txt", "two\n");
    write(&place, "notes.txt", "two\n");
    fs::remove_dir_all(work.join("docs")).unwrap();
    symlink(&outside, work.join("docs")).unwrap();
    fs::remove_file(work.join("notes.txt")).unwrap();
    symlink(outside.join("notes.txt"), work.join("notes.txt")).unwrap();
    let arguments = ["undo", "--session", "abc", "--yes", "--json"];
    let _ = at_work(&place, &arguments).output().unwrap();
    assert_eq!(fs::read_to_string(outside.join("notes.txt")).unwrap(), "not the agent's\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    let notes = work.join("notes.txt");
    assert!(!notes.is_symlink(), "the link itself is what was replaced");
    assert_eq!(fs::read_to_string(notes).unwrap(), "hello\n");
}

#[test]
fn a_copy_that_was_changed_is_not_put_back() {
    let place = Place::new();
    write(&place, "notes.txt", "second\n");
    for blob in fs::read_dir(place.scene.at("s/blobs")).unwrap() {
        let path = blob.unwrap().path();
        if fs::read(&path).unwrap() == b"hello\n" {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            fs::write(&path, "evil!\n").unwrap();
        }
    }
    let ran = at_work(&place, &["undo", "--yes"]).output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stderr).contains("not what was kept"), "{ran:?}");
    assert!(!ran.status.success());
    assert_eq!(fs::read_to_string(place.work().join("notes.txt")).unwrap(), "second\n");
}

#[test]
fn an_agent_cannot_undo() {
    let place = Place::new();
    let ran = place.shell("wardkeep undo --yes");
    assert_eq!(ran.code, 2, "{ran:?}");
    write(&place, "notes.txt", "second\n");
    let ran = at_work(&place, &["undo"]).output().unwrap();
    assert!(
        !ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("needs a person")
    );
    assert_eq!(fs::read_to_string(place.work().join("notes.txt")).unwrap(), "second\n");
}

#[test]
fn what_is_denied_is_not_kept_and_what_is_large_is_named() {
    let place = Place::new();
    assert_eq!(place.shell("echo x > LocalGPT.md").code, 2);
    let large = place.work().join("large.bin");
    fs::File::create(&large).unwrap().set_len(17 << 20).unwrap();
    shell(&place, "rm large.bin");
    let done = undo(&place, 0, &["large.bin"]);
    assert_eq!(done["restored"], json!([]));
    assert_eq!(done["lost"][0]["why"], "is too large");
    let listed = undo_list(&place);
    assert_eq!(listed["calls"].as_array().unwrap().len(), 1);
    assert_eq!(listed["calls"][0]["tool"], "Bash");
}

fn undo_list(place: &Place) -> Value {
    let ran = place.scene.expect(0, "s", &["undo", "--list", "--json"]);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()
}
