//! Copies of the machine's settings that runs share.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::lab::{Lab, skipped, users};

/// All that there is of the settings, and what it says; and whether it is a mount.
const ALL: &str = "cd /etc; find . -printf '%p %y %m %l\\n' 2> /dev/null | sort | sha256sum
    find . -maxdepth 1 -type f | sort | xargs sha256sum; find . -type f | sort | xargs cat 2> /dev/null | sha256sum
    awk '$5 == \"/etc\"' /proc/self/mountinfo | wc -l > $WS/mounts";

fn folders(lab: &Lab) -> Vec<PathBuf> {
    let all = fs::read_dir(lab.at("kept")).into_iter().flatten();
    all.map(|entry| entry.unwrap().path()).collect()
}

fn is_mount(lab: &Lab) -> bool {
    fs::read_to_string(lab.at("ws/mounts")).unwrap().trim() == "1"
}

/// A run that leaves copies for the next one; none where their files have no times that tell.
fn lab_with_copies(uid: u32) -> Option<(Lab, String)> {
    let lab = Lab::new(uid);
    for _ in 0..20 {
        let (code, said) = lab.run(ALL);
        assert_eq!(code, 0, "{said}");
        if said.contains("confine: not kept") {
            skipped("needs /etc on a file system whose times tell of each change");
            return None;
        }
        if !folders(&lab).is_empty() {
            assert!(!is_mount(&lab));
            return Some((lab, said));
        }
        // Something there has just changed.
        std::thread::sleep(Duration::from_millis(500));
    }
    panic!("nothing was kept");
}

#[test]
fn the_next_run_sees_the_same_and_can_change_nothing() {
    for uid in users() {
        let Some((lab, first)) = lab_with_copies(uid) else { return };
        let before = fs::read(folders(&lab)[0].join("etc/passwd")).unwrap();
        let (code, second) = lab.run(ALL);
        assert_eq!((code, &second), (0, &first));
        assert!(is_mount(&lab), "as user {uid}");
        let script = "for f in /etc/passwd /etc/new /etc/ssl/new; do (echo x >> $f) 2> /dev/null && echo through; done
            rm -f /etc/hosts 2> /dev/null && echo through; mv /etc/hosts /etc/x 2> /dev/null && echo through
            chmod 777 /etc /etc/passwd 2> /dev/null && echo through; touch /etc/hosts 2> /dev/null && echo through
            ls /etc/.. | grep -x manifest; cd /etc && cat ../manifest 2> /dev/null; cat ../../*/manifest 2> /dev/null
            find / -name manifest -size -64k 2> /dev/null | grep -v '^/\\(usr\\|proc\\|opt\\|sys\\)' ; true";
        assert_eq!(lab.run(script), (0, String::new()), "as user {uid}");
        assert_eq!(fs::read(folders(&lab)[0].join("etc/passwd")).unwrap(), before);
        assert_eq!(folders(&lab).len(), 1);
    }
}

/// What somebody else could have written, or what does not say the same, is not mounted.
#[test]
fn copies_that_are_not_sure_are_made_anew() {
    for uid in users() {
        let Some((lab, first)) = lab_with_copies(uid) else { return };
        let manifest = folders(&lab)[0].join("manifest");
        let mode = |mode| fs::set_permissions(&manifest, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o622);
        let (code, said) = lab.run(ALL);
        assert_eq!((code, said.lines().next(), is_mount(&lab)), (0, first.lines().next(), false));
        mode(0o600);
        let mut text = fs::read(&manifest).unwrap();
        let last = text.len() - 2;
        text[last] ^= 1;
        fs::write(&manifest, text).unwrap();
        lab.run(ALL);
        assert!(!is_mount(&lab));
        // One that has gone while others look at it is none.
        fs::remove_file(&manifest).unwrap();
        lab.run(ALL);
        assert!(!is_mount(&lab));
    }
}

/// What is not ours is not touched, whatever is put in the way.
#[test]
fn nothing_else_is_removed() {
    let old = SystemTime::now() - Duration::from_secs(3 * 24 * 60 * 60);
    let age = |path: PathBuf| File::open(path).unwrap().set_modified(old).unwrap();
    let hexadecimal = "0123456789abcdef0123456789abcdef";
    for uid in users() {
        let lab = Lab::new(uid);
        let names = ["plain", hexadecimal, ".new-7"];
        for name in names {
            fs::create_dir_all(lab.at("outside").join(name)).unwrap();
            fs::write(lab.at("outside").join(name).join("file"), "x").unwrap();
        }
        std::os::unix::fs::symlink(lab.at("outside"), lab.at("kept")).unwrap();
        lab.give();
        names.iter().for_each(|name| age(lab.at("outside").join(name)));
        let before = fs::read_dir(lab.at("outside")).unwrap().count();
        lab.run(ALL);
        assert_eq!(fs::read_dir(lab.at("outside")).unwrap().count(), before, "as user {uid}");
        assert!(names.iter().all(|name| lab.at("outside").join(name).join("file").exists()));
        // In the folder itself only what has such a name goes, and no link.
        fs::remove_file(lab.at("kept")).unwrap();
        let Some((lab, _)) = lab_with_copies(uid) else { return };
        for name in ["kept/plain", "kept/.newer", "kept/short0123"] {
            fs::create_dir(lab.at(name)).unwrap();
        }
        fs::write(lab.at("outside/victim"), "x").unwrap();
        std::os::unix::fs::symlink(lab.at("outside"), lab.at("kept").join(hexadecimal)).unwrap();
        lab.give();
        for name in ["kept/plain", "kept/.newer", "kept/short0123", "outside"] {
            age(lab.at(name));
        }
        lab.run_with(ALL, &[("WARDKEEP_TEST_BOOT", "9")]);
        for name in ["kept/plain", "kept/.newer", "kept/short0123", "outside/victim"] {
            assert!(lab.at(name).exists(), "{name} as user {uid}");
        }
        // One that others may write to is not used.
        fs::set_permissions(lab.at("kept"), fs::Permissions::from_mode(0o777)).unwrap();
        let before = folders(&lab).len();
        lab.run_with(ALL, &[("WARDKEEP_TEST_BOOT", "10")]);
        assert_eq!(folders(&lab).len(), before, "as user {uid}");
    }
}

#[test]
fn what_is_masked_is_not_copied() {
    for uid in users() {
        let lab = Lab::new(uid);
        let mask = [("WARDKEEP_TEST_MASK", "/etc/passwd")];
        let script = "cat /etc/passwd 2> /dev/null; [ -s /etc/group ] && echo there";
        for _ in 0..3 {
            assert_eq!(lab.run_with(script, &mask).1.trim(), "there", "as user {uid}");
        }
        assert!(lab.run(script).1.contains("root:"), "as user {uid}");
    }
}

/// After the next start of the machine, and after some time, they go, unless somebody has them.
#[test]
fn old_copies_go_unless_a_run_has_them() {
    for uid in users() {
        let Some((lab, _)) = lab_with_copies(uid) else { return };
        let other = [("WARDKEEP_TEST_BOOT", "2")];
        let held = File::open(folders(&lab)[0].join("manifest")).unwrap();
        held.lock_shared().unwrap();
        lab.run_with(ALL, &other);
        assert_eq!((folders(&lab).len(), is_mount(&lab)), (2, false));
        drop(held);
        lab.run_with(ALL, &[("WARDKEEP_TEST_BOOT", "3")]);
        assert_eq!(folders(&lab).len(), 1, "as user {uid}");
        // What a run has left that was ended in the middle goes, too, and not what one is at, whether there is
        // something new to be kept or not.
        for boot in ["4", "3"] {
            let boot = [("WARDKEEP_TEST_BOOT", boot)];
            let undone = lab.at("kept/.new-1");
            fs::create_dir_all(undone.join("etc")).unwrap();
            lab.give();
            let busy = File::open(&undone).unwrap();
            busy.lock().unwrap();
            lab.run_with(ALL, &boot);
            assert!(undone.exists(), "as user {uid}");
            drop(busy);
            lab.run_with(ALL, &boot);
            assert!(!undone.exists(), "as user {uid}");
            assert_eq!(folders(&lab).len(), 1);
        }
    }
}
