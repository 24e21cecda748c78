//! Runs in one workspace: at the same time, and one after the other.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::lab::{Lab, NOBODY, is_root, skipped, users};

/// Moves a folder of workflows into another and back, for three seconds.
const FILLS: &str = "exec python3 -c '
import os, time
end = time.time() + 3
while time.time() < end:
    for one, other in ((\"y\", \"x/workflows\"), (\"x/workflows\", \"y\")):
        try: os.rename(one, other)
        except OSError: pass
'";

/// Gives that other folder the name in which workflows are obeyed, and takes it away, until one holds the other.
const NAMES: &str = "exec python3 -c '
import os, time
end = time.time() + 3
while time.time() < end:
    try: os.rename(\"x\", \".github\")
    except OSError: continue
    time.sleep(0.001)
    if os.path.exists(\".github/workflows\"): break
    try: os.rename(\".github\", \"x\")
    except OSError: pass
'";

#[test]
fn two_runs_do_not_make_together_what_neither_may() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped("needs python3 for attacks by system call");
    }
    let uid = if is_root() { NOBODY } else { users()[0] };
    let lab = Lab::new(uid);
    for folder in ["ws/x", "ws/y"] {
        fs::create_dir(lab.at(folder)).unwrap();
    }
    fs::write(lab.at("ws/y/ci.yml"), "x").unwrap();
    fs::write(lab.at("lock"), "").unwrap();
    lab.give();
    let start = |script: &str| {
        let mut command = lab.command(script);
        command.env("WARDKEEP_TEST_LOCK", lab.at("lock")).spawn().unwrap()
    };
    let (mut one, mut other) = (start(FILLS), start(NAMES));
    assert!(one.wait().unwrap().success() && other.wait().unwrap().success());
    assert!(!lab.at("ws/.github/workflows").exists());
    // Both could move at all.
    let (code, told) = lab.run("mv x z && mv z x && mv y x/other && test -e x/other/ci.yml");
    assert!(code == 0 || lab.at("ws/.github").exists(), "{told}");
}

/// What cannot be read when a run starts could be opened by its owner inside.
#[test]
fn a_folder_that_cannot_be_read_is_shown_empty() {
    let uid = if is_root() { NOBODY } else { users()[0] };
    let lab = Lab::new(uid);
    for folder in ["ws/conf/deep", "ws/half", "ws/plain"] {
        fs::create_dir_all(lab.at(folder)).unwrap();
    }
    for file in ["ws/conf/.env", "ws/conf/deep/.env", "ws/half/.env", "ws/conf/AGENTS.md"] {
        fs::write(lab.at(file), "CANARY\n").unwrap();
    }
    lab.give();
    let (code, told) = lab.run("chmod 000 conf; chmod 100 half; test ! -r conf -a ! -r half");
    assert_eq!(code, 0, "{told}");
    for attack in [
        "chmod 755 conf; grep -rq CANARY conf",
        "chmod 755 conf; echo bad > conf/AGENTS.md",
        "chmod 755 conf; rm conf/AGENTS.md",
        "chmod 755 half; grep -q CANARY half/.env",
        "grep -q CANARY half/.env",
        "mv conf moved && chmod 755 moved && grep -rq CANARY moved",
    ] {
        let (code, told) = lab.run(attack);
        assert_ne!(code, 0, "{attack}: {told}");
    }
    assert_eq!(lab.run("echo x > plain/new").0, 0);
    // Nothing of it was changed.
    for (folder, mode) in [("ws/conf", 0o000), ("ws/half", 0o100)] {
        assert_eq!(fs::metadata(lab.at(folder)).unwrap().permissions().mode() & 0o777, mode);
        fs::set_permissions(lab.at(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(fs::read_to_string(lab.at("ws/conf/AGENTS.md")).unwrap(), "CANARY\n");
}

/// Packages of others hold such names as they were packed; whoever installs them removes them again.
#[test]
fn packages_can_be_removed_in_a_later_run() {
    for uid in users() {
        let lab = Lab::new(uid);
        let install = "mkdir -p node_modules/p/.github/workflows node_modules/p/.vscode; cd node_modules/p; \
                       for f in .travis.yml AGENTS.md .env .npmrc .github/workflows/ci.yml .vscode/tasks.json; \
                       do echo x > $f || exit 1; done; ln -s AGENTS.md CLAUDE.md";
        let (code, told) = lab.run(install);
        assert_eq!(code, 0, "{told}");
        let (code, told) = lab.run("echo y > node_modules/p/AGENTS.md; rm -r node_modules");
        assert_eq!(code, 0, "{told}");
        assert!(!lab.at("ws/node_modules").exists());
        // A repository in there is one all the same.
        fs::create_dir_all(lab.at("ws/node_modules/p/.git/hooks")).unwrap();
        fs::write(lab.at("ws/node_modules/p/.git/config"), "[core]\n").unwrap();
        fs::write(lab.at("ws/node_modules/p/.git/HEAD"), "ref: x\n").unwrap();
        lab.give();
        for attack in [
            "echo bad > node_modules/p/.git/hooks/pre-commit",
            "echo bad >> node_modules/p/.git/config",
            "rm node_modules/p/.git/config",
        ] {
            let (code, told) = lab.run(attack);
            assert_ne!(code, 0, "{attack}: {told}");
        }
    }
}
