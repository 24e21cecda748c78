//! Repositories that come into being: what may be in them, and what is told of them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::lab::{Lab, appears, users};
use crate::names::as_user;

const TELL: (&str, &str) = ("WARDKEEP_TEST_TELL", "1");

/// Many that are made and go again leave their places to others.
#[test]
fn no_repository_is_hidden_behind_many_others() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "for r in 1 2 3 4 5; do for i in $(seq 1 250); do mkdir -p a$r$i/.git; done
            (setsid true &); sleep 0; rm -rf a[0-9]*; done
            mkdir evil && cd evil && git init -q . && mkdir .claude .vscode && echo x > .claude/settings.json
            echo x > .vscode/tasks.json; echo x > CLAUDE.md; cd ..; mkdir -p b/.git";
        let (code, out) = lab.run_with(script, &[TELL]);
        assert_eq!(code, 0, "{out}");
        let made: Vec<_> = out.lines().filter(|line| line.starts_with("denied: made ")).collect();
        let evil = format!(
            "denied: made {}  holds .claude, .vscode, CLAUDE.md",
            lab.at("ws/evil").display()
        );
        assert!(made.contains(&evil.as_str()), "{made:?}");
        assert_eq!(made.len(), 2, "{made:?}");
    }
}

/// Where there is no place in the list, nothing is let through that it would have to tell of.
#[test]
fn what_cannot_be_told_is_not_made() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "for i in $(seq 1 256); do mkdir -p a$i/.git; done
            mkdir evil && git init -q evil; mkdir evil/.claude && echo through; echo x > evil/CLAUDE.md && echo through
            echo x > a7/CLAUDE.md && echo listed; rm -rf a9; echo x > evil/CLAUDE.md && echo listed; true";
        let (code, out) = lab.run_with(script, &[TELL]);
        assert_eq!(code, 0, "{out}");
        assert!(out.starts_with("listed\nlisted\n") && !out.contains("through"), "{out}");
        assert!(out.contains("evil/.claude (more new repositories are there than"), "{out}");
        let told = |path: &str| {
            let line = format!("denied: made {}  holds CLAUDE.md", lab.at(path).display());
            out.lines().any(|one| one == line)
        };
        assert!(told("ws/evil") && told("ws/a7"), "{out}");
    }
}

/// Whoever waits for the time to be up, and calls without an end meanwhile, hides nothing either.
#[test]
fn what_was_made_is_told_when_the_time_is_up() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "git init -q evil; mkdir evil/.claude
            flood() { python3 -c 'import os
while True:
    try: os.mkdir(\"evil\")
    except OSError: pass'; }
            flood & flood & flood & flood";
        let late = ("WARDKEEP_TEST_TIMEOUT", "8000");
        let (code, out) = lab.run_with(script, &[TELL, late]);
        assert_eq!(code, 124, "{out}");
        let line = format!("denied: made {}  holds .claude", lab.at("ws/evil").display());
        assert!(out.lines().any(|one| one == line), "as user {uid}: {out}");
    }
}

/// A new repository that takes the place of an old folder is told as one that does; an old folder that becomes one, and a
/// new one elsewhere, is not.
#[test]
fn a_repository_in_place_of_an_old_folder_is_told_so() {
    for uid in users() {
        let lab = Lab::new(uid);
        for folder in ["ws/src/deep", "ws/lib", "ws/old"] {
            fs::create_dir_all(lab.at(folder)).unwrap();
        }
        fs::write(lab.at("ws/src/a"), "x").unwrap();
        lab.give();
        let script = "mkdir n && git init -q n && mv src/* n/ && rmdir src && mv n src && mkdir src/.claude && rm -rf src/.git
            mv lib lib2 && git init -q lib && echo x > lib/CLAUDE.md
            mv src/deep src/deep2 && mkdir src/deep && git init -q src/deep && echo x > src/deep/CLAUDE.md
            git init -q old; git init -q fresh && echo x > fresh/CLAUDE.md";
        let (code, out) = lab.run_with(script, &[TELL]);
        assert_eq!(code, 0, "{out}");
        let mut made: Vec<_> =
            out.lines().filter_map(|line| line.strip_prefix("denied: made ")).collect();
        made.sort_unstable();
        let told = |path: &str, rest: &str| format!("{}  holds {rest}", lab.at(path).display());
        let expected = [
            told("ws/fresh", "CLAUDE.md"),
            told("ws/lib", "CLAUDE.md replaces"),
            told("ws/old", ""),
            told("ws/src", ".claude replaces"),
            told("ws/src/deep", "CLAUDE.md replaces"),
        ];
        assert_eq!(made, expected, "as user {uid}");
    }
}

/// A number that was a new folder's and is another's now does not make that one new.
#[test]
fn what_the_owner_makes_meanwhile_is_not_new() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "for i in $(seq 1 60); do mkdir -p a$i/.git; done; rm -rf a[0-9]*; touch go
            while [ ! -e done ]; do sleep 0.01; done; mkdir proj/.claude; echo x > proj/CLAUDE.md; mkdir -p new/.git new/.claude";
        let mut run = lab.spawn(script);
        assert!(appears(&lab.at("ws/go")));
        as_user(&lab, uid, "mkdir proj proj/.git; echo mine > proj/README; touch done");
        assert!(run.wait().unwrap().success());
        assert!(lab.at("ws/new/.claude").exists());
        for name in ["proj/.claude", "proj/CLAUDE.md"] {
            assert!(!lab.at("ws").join(name).exists(), "{name} as user {uid}");
        }
        assert_eq!(fs::read_to_string(lab.at("ws/proj/README")).unwrap(), "mine\n");
    }
}

/// An agent keeps repositories of its own, whose working tree is the workspace, in a folder that is named for that; git
/// would write to that tree for whoever works in any other.
#[test]
fn a_snapshot_of_the_workspace_is_kept_where_snapshots_are() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::create_dir_all(lab.at("data")).unwrap();
        lab.give();
        let (data, place) = (lab.at("data"), lab.at("data/snapshot"));
        let variables = [
            ("WARDKEEP_TEST_WRITE", data.to_str().unwrap()),
            ("WARDKEEP_TEST_SNAPSHOTS", place.to_str().unwrap()),
        ];
        let script = format!(
            "ws=$PWD; data={}; mkdir -p $data/snapshot/x sub/deep; echo a > sub/a
            init() {{ GIT_DIR=$1 GIT_WORK_TREE=$2 git init -q > /dev/null 2>&1 && echo through: $3; }}
            init $data/snapshot/x/one $ws fits
            g() {{ git --git-dir $data/snapshot/x/one --work-tree $ws -c user.name=a -c user.email=a@b \"$@\"; }}
            g config core.autocrlf false && g add sub && g commit -qm x && g log --oneline | wc -l
            init $data/other $ws 'another folder'
            init $ws/inner $ws 'a folder of the workspace'
            init $data/snapshot/two $ws/sub 'a folder that could become a link'
            init $data/snapshot/three {} 'a folder outside'
            init $data/snapshot/four $data 'another that may be written'
            cp -r $data/snapshot/x/one $ws/copied 2> /dev/null
            (cd copied && [ -e HEAD ] && [ -e objects ] && [ -e refs ] && grep -q worktree config && echo through: a copy)
            true",
            data.display(),
            lab.at("outside").display()
        );
        let (code, out) = lab.run_with(&script, &variables);
        assert_eq!(code, 0, "{out}");
        let through: Vec<_> = out.lines().filter(|line| line.starts_with("through")).collect();
        assert_eq!(through, ["through: fits", "through: another that may be written"], "{out}");
        assert!(out.lines().any(|line| line.trim() == "1"), "{out}");
    }
}

/// The program writes where snapshots are: a link there names no other place, and what leads there from the workspace
/// is told.
#[test]
fn a_place_of_snapshots_is_what_the_owner_named() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::create_dir_all(lab.at("data")).unwrap();
        lab.give();
        let (data, place) = (lab.at("data"), lab.at("data/deep/snapshot"));
        let variables = [
            ("WARDKEEP_TEST_WRITE", data.to_str().unwrap()),
            ("WARDKEEP_TEST_SNAPSHOTS", place.to_str().unwrap()),
            ("WARDKEEP_TEST_TELL", "1"),
        ];
        let init = "init() { GIT_DIR=$1 GIT_WORK_TREE=$WS git init -q > /dev/null 2>&1 && echo through: $2; }";
        let begin = format!("data={}; {init}", data.display());
        for link in ["ln -s $WS $data/deep", "mkdir $data/deep; ln -s $WS $data/deep/snapshot"] {
            let _ = fs::remove_dir_all(lab.at("data/deep"));
            let _ = fs::remove_file(lab.at("data/deep"));
            lab.run_with(&format!("{begin}; {link}"), &variables);
            assert!(lab.at("data/deep").symlink_metadata().is_ok());
            let script = format!(
                "{begin}; mkdir -p snapshot; init $WS/snapshot/x {uid}; init $WS/x {uid}; true"
            );
            let (_, out) = lab.run_with(&script, &variables);
            assert!(!out.contains("through"), "{link}: {out}");
        }
        fs::remove_dir_all(lab.at("data/deep")).unwrap();
        let script = format!(
            "{begin}; mkdir -p $data/deep/snapshot sub; init $data/deep/snapshot/p fits
            echo \"gitdir: $data/deep/snapshot/p\" > sub/.git; true"
        );
        let (_, out) = lab.run_with(&script, &variables);
        assert!(out.contains("through: fits"), "{out}");
        if lab.at("ws/sub/.git").exists() {
            let told = format!("git would write to {}", lab.at("ws").display());
            assert!(out.contains(&told), "{out}");
        }
    }
}

/// Names that are no text may look the same, and are not.
#[test]
fn names_that_look_the_same_are_told_apart() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "evil=$(printf 'vendor\\376'); good=$(printf 'vendor\\377'); round() { (setsid true &); sleep 0.3; }
            git init -q $evil; mkdir $evil/.claude; round; git init -q $good; round; rm -rf $good; round";
        let (code, out) = lab.run_with(script, &[TELL]);
        assert_eq!(code, 0, "{out}");
        let told = format!("denied: made {}/vendor\u{FFFD}  holds .claude", lab.at("ws").display());
        assert!(out.lines().any(|line| line == told), "as user {uid}: {out}");
    }
}

/// What cannot be looked at is not gone.
#[test]
fn a_folder_that_cannot_be_entered_hides_nothing() {
    let uid = users()[0];
    let lab = Lab::new(uid);
    let script = "mkdir deps && git init -q deps/r && mkdir deps/r/.claude; git init -q --bare b.git; chmod 000 b.git/config
        mkdir -p s && git init -q s/t; chmod 600 deps";
    let (code, out) = lab.run_with(script, &[TELL]);
    fs::set_permissions(lab.at("ws/deps"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(code, 0, "{out}");
    let told = |path: &str| {
        let start = format!("denied: made {} ", lab.at(path).display());
        out.lines().find(|line| line.starts_with(&start)).unwrap_or_default().to_owned()
    };
    assert!(told("ws/deps/r").ends_with(" holds .claude"), "{out}");
    assert!(told("ws/deps/r").contains("config cannot be read"), "{out}");
    assert!(told("ws/b.git").contains("config cannot be read"), "{out}");
    assert!(told("ws/s/t").ends_with("s/t  holds "), "{out}");
}

/// One run makes a repository, and another moves it away.
#[test]
fn what_somebody_else_has_moved_is_told() {
    let uid = users()[0];
    let lab = Lab::new(uid);
    let script = "git init -q r; mkdir r/.claude; git init -q --bare b.git; touch go
        while [ ! -e done ]; do sleep 0.01; done; true";
    let mut command = lab.command(&format!("exec > {}/out; {script}", lab.at("ws").display()));
    command.env(TELL.0, TELL.1).stdout(std::process::Stdio::piped());
    let run = command.spawn().unwrap();
    assert!(appears(&lab.at("ws/go")));
    let (code, out) = lab.run("mkdir deep && mv r deep/vendor && mv b.git deep/bare && touch done");
    assert_eq!(code, 0, "{out}");
    let told = String::from_utf8(run.wait_with_output().unwrap().stdout).unwrap();
    for (name, holds) in [("deep/vendor", "holds .claude"), ("deep/bare", "holds ")] {
        let start = format!("denied: made {} ", lab.at("ws").join(name).display());
        let line = told.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
        assert!(line.contains(holds), "{name}: {told}");
    }
}
