//! Anchors with the real binary: what they keep, what they catch, and what is said of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::shared::{Ran, is_harmless, skip};
use crate::state::{Scene, Witness, has};

const ADD: [&str; 3] = ["evidence", "anchor", "add"];
const PUSH: [&str; 3] = ["evidence", "anchor", "push"];
const LIST: [&str; 3] = ["evidence", "anchor", "list"];

fn add_witness(scene: &Scene, state: &str, name: &str, witness: &Witness) {
    let place = [name, "--witness", witness.url(), "--key", witness.key()];
    scene.expect(0, state, &[&ADD[..], &place].concat());
}

fn edit_next_attempt(scene: &Scene, state: &str) {
    // As if the pause after a failure were over.
    let path = scene.at(state).join("anchors-state.json");
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for anchor in value["anchors"].as_object_mut().unwrap().values_mut() {
        anchor["next_attempt"] = 0.into();
    }
    fs::write(&path, serde_json::to_vec(&value).unwrap()).unwrap();
}

#[test]
fn two_machines_witness_each_other() {
    let scene = Scene::new();
    scene.grow("a", 3);
    scene.grow("b", 5);
    // One knows the other's log by its file, the other lets logs introduce themselves.
    let at_a = scene.witness("a", &["--log", "b/log.pub"]);
    let at_b = scene.witness("b", &["--accept-new"]);
    add_witness(&scene, "a", "b", &at_b);
    add_witness(&scene, "b", "a", &at_a);
    for (state, records, witness) in [("a", 3, &at_b), ("b", 5, &at_a)] {
        let pushed = scene.json(0, state, &PUSH);
        assert_eq!(pushed["size"], records);
        assert_eq!(pushed["anchors"][0]["result"], "pushed");
        assert_eq!(scene.json(0, state, &PUSH)["anchors"][0]["result"], "current");
        let verified = scene.json(0, state, &["evidence", "verify", "--witness", witness.key()]);
        assert_eq!(verified["seals"]["witnesses"][0]["to"], records, "{verified}");
    }
    // They go on together.
    scene.grow("a", 4);
    let pushed = scene.expect(0, "a", &PUSH).stdout;
    assert!(pushed.contains("\nb: pushed: 7 records, cosigned by `wardkeep-witness/"), "{pushed}");
    let listed = scene.json(0, "a", &LIST);
    let anchor = &listed["anchors"][0];
    assert_eq!((&anchor["name"], &anchor["last_size"]), (&"b".into(), &7.into()), "{listed}");
    assert_eq!(anchor["alarm"], serde_json::Value::Null);
}

#[test]
fn a_witness_that_does_not_know_the_log_refuses_it() {
    let scene = Scene::new();
    scene.grow("a", 1);
    let witness = scene.witness("w", &[]);
    add_witness(&scene, "a", "w", &witness);
    let refused = scene.expect(1, "a", &PUSH);
    assert!(refused.stdout.contains("it does not know this log (404)"), "{refused:?}");
    assert!(refused.stdout.contains("wardkeep-log-v1+"), "{refused:?}");
}

#[test]
fn an_older_state_directory_is_caught() {
    let scene = Scene::new();
    let witness = scene.witness("w", &["--accept-new"]);
    scene.grow("a", 4);
    add_witness(&scene, "a", "w", &witness);
    scene.expect(0, "a", &PUSH);
    scene.copy("a", "copy");
    scene.grow("a", 4);
    scene.expect(0, "a", &PUSH);
    scene.copy("a", "newer");
    scene.copy("copy", "a");
    // Nothing in the restored directory is wrong by itself.
    scene.expect(0, "a", &["evidence", "verify"]);
    let at_once = scene.json(2, "a", &[&PUSH[..], &["--force"]].concat());
    assert_eq!(at_once["anchors"][0]["result"], "rollback");
    scene.copy("copy", "a");
    scene.grow("a", 1);
    let caught = scene.expect(2, "a", &PUSH);
    let words = "w: ROLLBACK: this log is older than what the anchor saw: 8 records there, 5 here";
    assert!(caught.stdout.contains(words), "{caught:?}");
    assert!(caught.stderr.contains("hint: an older copy of the state directory"), "{caught:?}");
    // It is not forgotten while the anchor is left alone, nor can it be removed with its anchor.
    let later = scene.json(2, "a", &PUSH);
    assert_eq!((&later["ok"], &later["anchors"][0]["result"]), (&false.into(), &"waiting".into()));
    assert_eq!(later["anchors"][0]["alarm"]["kind"], "rollback");
    let listed = scene.expect(0, "a", &LIST);
    assert!(listed.stderr.contains("w: ROLLBACK: "), "{listed:?}");
    assert_eq!(scene.json(0, "a", &LIST)["ok"], false);
    scene.expect(1, "a", &["evidence", "anchor", "remove", "w"]);
    // Clearing needs a word, and does not make the witness forget.
    let asked = scene.expect(1, "a", &["evidence", "anchor", "clear", "w"]);
    assert!(asked.stderr.contains("--yes"), "{asked:?}");
    let cleared = scene.json(0, "a", &["evidence", "anchor", "clear", "w", "--yes"]);
    assert_eq!(cleared["cleared"]["kind"], "rollback");
    scene.expect(2, "a", &PUSH);
    // The newer copy is welcome.
    scene.copy("newer", "a");
    scene.grow("a", 1);
    scene.expect(0, "a", &PUSH);
}

#[test]
fn a_log_that_went_two_ways_is_caught() {
    let scene = Scene::new();
    let witness = scene.witness("w", &["--accept-new"]);
    scene.grow("a", 4);
    add_witness(&scene, "a", "w", &witness);
    scene.expect(0, "a", &PUSH);
    scene.copy("a", "b");
    scene.grow("a", 1);
    scene.expect(0, "a", &PUSH);
    scene.grow("b", 3);
    let caught = scene.expect(2, "b", &PUSH);
    let words = "w: FORK: this log is different from what the anchor saw: its first 5 records";
    assert!(caught.stdout.contains(words), "{caught:?}");
    assert_eq!(scene.json(2, "b", &PUSH)["anchors"][0]["alarm"]["kind"], "fork");
}

#[test]
fn a_witness_that_is_away_is_tried_again() {
    let scene = Scene::new();
    scene.grow("a", 2);
    let witness = scene.witness("w", &["--accept-new"]);
    let address = witness.address().to_owned();
    add_witness(&scene, "a", "w", &witness);
    drop(witness);
    let away = scene.expect(1, "a", &PUSH);
    assert!(away.stdout.contains("w: not pushed: cannot be reached: "), "{away:?}");
    assert!(away.stderr.starts_with("hint: "), "{away:?}");
    // Left alone for a while, and not taken for fine meanwhile.
    let waiting = scene.json(1, "a", &PUSH);
    assert_eq!(waiting["anchors"][0]["result"], "waiting");
    let back = scene.witness("w", &["--accept-new", "--listen", &address]);
    assert_eq!(back.address(), address);
    edit_next_attempt(&scene, "a");
    let pushed = scene.json(0, "a", &PUSH);
    assert_eq!(pushed["anchors"][0]["result"], "pushed", "{pushed}");
    // Force does not wait, and names choose.
    drop(back);
    scene.expect(1, "a", &[&PUSH[..], &["--force", "w"]].concat());
    let unknown = scene.expect(1, "a", &[&PUSH[..], &["nobody"]].concat());
    assert!(unknown.stderr.starts_with("error: there is no anchor `nobody`\n"), "{unknown:?}");
}

#[test]
fn one_that_fails_does_not_keep_the_others_from_working() {
    let scene = Scene::new();
    scene.grow("a", 2);
    let gone = scene.witness("w", &["--accept-new"]);
    add_witness(&scene, "a", "gone", &gone);
    drop(gone);
    scene.expect(0, "a", &[&ADD[..], &["here", "--file", "anchor", "--create"]].concat());
    let chosen = scene.json(0, "a", &[&PUSH[..], &["here"]].concat());
    assert_eq!(chosen["anchors"].as_array().unwrap().len(), 1, "{chosen}");
    scene.grow("a", 1);
    let pushed = scene.json(1, "a", &PUSH);
    assert_eq!(pushed["anchors"][0]["result"], "unreachable");
    assert_eq!(pushed["anchors"][1]["result"], "pushed");
    assert!(
        pushed["anchors"][1]["detail"].as_str().unwrap().contains("weak: owned by the same user")
    );
}

#[test]
fn a_git_remote_keeps_seals_and_catches_a_rollback() {
    if !has("git") {
        skip("git", "a_git_remote_keeps_seals_and_catches_a_rollback");
        return;
    }
    let scene = Scene::new();
    let remote = scene.at("remote.git");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&remote).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    fs::create_dir(&remote).unwrap();
    git(&["init", "--quiet", "--bare"]);
    scene.grow("a", 3);
    let place = ["g", "--git", remote.to_str().unwrap(), "--branch", "seals"];
    scene.expect(0, "a", &[&ADD[..], &place].concat());
    scene.expect(0, "a", &PUSH);
    scene.copy("a", "copy");
    scene.grow("a", 2);
    scene.expect(0, "a", &PUSH);
    let log = git(&["log", "--format=%s", "seals"]);
    assert_eq!(log, "seal of 5 entries\nseal of 3 entries\n");
    scene.copy("copy", "a");
    scene.grow("a", 1);
    let caught = scene.expect(2, "a", &PUSH);
    assert!(caught.stdout.contains("g: ROLLBACK: this log is older"), "{caught:?}");
    assert_eq!(git(&["log", "--format=%s", "seals"]), log, "nothing was pushed over it");
}

#[test]
fn a_file_of_another_user_is_an_anchor() {
    const NAME: &str = "a_file_of_another_user_is_an_anchor";
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        skip("root", NAME);
        return;
    }
    let scene = Scene::new();
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&scene.at(""), 0o755);
    fs::create_dir(scene.at("home")).unwrap();
    chown(scene.at("home"), Some(NOBODY), Some(NOBODY)).unwrap();
    // Of root, and open to all: what keeps others from cutting it off is the attribute.
    fs::write(scene.at("anchor"), "").unwrap();
    open(&scene.at("anchor"), 0o666);
    let append_only = Command::new("chattr").arg("+a").arg(scene.at("anchor")).output();
    let append_only = append_only.is_ok_and(|output| output.status.success());
    let as_nobody = |arguments: &[&str]| {
        scene.command("home/state", arguments).uid(NOBODY).gid(NOBODY).output().map(Ran::from)
    };
    let append =
        ["evidence", "append", "--type", "ToolCall", "--principal", "TOOL", "--inline", "1"];
    let ran = match as_nobody(&append) {
        Ok(_) => {
            let place = ["root", "--file", "anchor"];
            let added = as_nobody(&[&ADD[..], &place].concat()).unwrap();
            assert_eq!(added.code, 0, "{added:?}");
            Some(as_nobody(&PUSH).unwrap())
        }
        Err(_) => None,
    };
    let kept = fs::read_to_string(scene.at("anchor")).unwrap();
    let _ = Command::new("chattr").arg("-a").arg(scene.at("anchor")).output();
    let Some(ran) = ran else {
        skip("a target folder that other users can reach", NAME);
        return;
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("owned by uid 0, "), "{ran:?}");
    assert_eq!(ran.stdout.contains("weak"), !append_only, "{ran:?}");
    assert!(kept.starts_with("~ ") && kept.contains("\nwardkeep/"), "{kept}");
}

#[test]
fn anchors_that_could_never_work_are_refused() {
    let scene = Scene::new();
    let key = scene.expect(0, "w", &["witness", "key"]).stdout;
    let key = key.trim_end();
    let ed25519 = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    for arguments in [
        &["UPPER", "--file", "x", "--create"][..],
        &["x", "--file", "nowhere"],
        &["x", "--file", "/dev/null"],
        &["x", "--file", "."],
        &["x", "--git", "ext::sh -c touch% x"],
        &["x", "--git", "/r", "--branch", "../x"],
        &["x", "--witness", "https://w", "--key", key],
        &["x", "--witness", "http://w", "--key", "nobody"],
        &["x", "--witness", "http://w", "--key", ed25519],
        &["x", "--witness", "http://w\u{1b}[31m", "--key", key],
    ] {
        let refused = scene.run("a", &[&ADD[..], arguments].concat());
        assert_eq!(refused.code, 1, "{arguments:?} {refused:?}");
        assert!(refused.stderr.contains("\nhint: "), "{arguments:?} {refused:?}");
        assert!(is_harmless(&refused.stderr), "{refused:?}");
    }
    assert!(!scene.at("x").exists());
    let listed = scene.json(0, "a", &LIST);
    assert_eq!(listed["anchors"], serde_json::json!([]));
    // A name in use does not leave a file behind.
    scene.expect(0, "a", &[&ADD[..], &["here", "--file", "one", "--create"]].concat());
    scene.expect(1, "a", &[&ADD[..], &["here", "--file", "two", "--create"]].concat());
    assert!(!scene.at("two").exists());
}

#[test]
fn what_was_known_of_an_anchor_is_missed() {
    let scene = Scene::new();
    scene.grow("a", 2);
    scene.expect(0, "a", &[&ADD[..], &["here", "--file", "anchor", "--create"]].concat());
    scene.expect(0, "a", &PUSH);
    fs::remove_file(scene.at("a/anchors-state.json")).unwrap();
    let pushed = scene.expect(1, "a", &PUSH);
    assert!(pushed.stdout.contains("here: has 2 records, "), "{pushed:?}");
    assert!(pushed.stdout.contains("LOST: what was known of this anchor is gone"), "{pushed:?}");
    scene.expect(0, "a", &["evidence", "anchor", "clear", "here", "--yes"]);
    scene.expect(0, "a", &PUSH);
}

#[test]
fn a_journal_that_was_cut_off_is_not_pushed() {
    let scene = Scene::new();
    scene.grow("a", 3);
    assert_eq!(scene.store_later("a", 900).seal().unwrap().unwrap().size, 3);
    scene.expect(0, "a", &[&ADD[..], &["here", "--file", "anchor", "--create"]].concat());
    let segment = scene.at("a/journal/00000001.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    let caught = scene.expect(2, "a", &PUSH);
    let words = "error: the journal has 1 records, and 3 were sealed\nhint: ";
    assert!(caught.stderr.starts_with(words), "{caught:?}");
    assert_eq!(fs::read(scene.at("anchor")).unwrap(), b"");
}

#[test]
fn nothing_is_made_by_looking() {
    let scene = Scene::new();
    assert_eq!(scene.json(0, "a", &LIST)["anchors"], serde_json::json!([]));
    scene.expect(4, "a", &PUSH);
    scene.expect(1, "a", &["evidence", "anchor", "remove", "x"]);
    scene.expect(1, "a", &["evidence", "anchor", "clear", "x", "--yes"]);
    assert!(!scene.at("a").exists());
}
