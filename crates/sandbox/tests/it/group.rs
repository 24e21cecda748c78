//! Limits of all processes together, where a control group with controllers is delegated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lab::{Lab, is_root, users};
use crate::skip::skip;

/// A part of the control groups that is given to a user, with a group in it for the process that asks.
struct Delegated(PathBuf);

impl Delegated {
    /// None where this machine passes none of the controllers on.
    fn new(uid: u32) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        let root = PathBuf::from(line.split(' ').nth(4)?);
        let on = fs::read_to_string(root.join("cgroup.subtree_control")).ok()?;
        if !["cpu", "memory", "pids"].iter().all(|one| on.split_whitespace().any(|on| on == *one)) {
            return None;
        }
        let path = root.join(format!("wk-test-{}-{uid}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let made = Self(path);
        fs::create_dir(made.0.join("own")).ok()?;
        for name in ["", "cgroup.procs", "cgroup.subtree_control", "own", "own/cgroup.procs"] {
            std::os::unix::fs::chown(made.0.join(name), Some(uid), Some(uid)).ok()?;
        }
        Some(made)
    }

    /// Runs a script confined, by a process in this part. The second is how it was limited.
    fn run(&self, lab: &Lab, uid: u32, script: &str, limits: &[(&str, &str)]) -> (i32, String) {
        let out = lab.at("ws/out");
        let _ = fs::remove_file(&out);
        let inner = lab.command(&format!("exec > {} 2>&1\n{script}", out.display()));
        let mut outer = Command::new("sh");
        let enter =
            r#"echo $$ > "$0" && exec setpriv --reuid "$U" --regid "$U" --clear-groups -- "$@""#;
        outer.arg("-c").arg(enter).arg(self.0.join("own/cgroup.procs"));
        outer.arg(inner.get_program()).args(inner.get_args());
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.env("U", uid.to_string()).envs(limits.iter().copied());
        let done = outer.current_dir(lab.at("ws")).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&done.stdout);
        let told: Vec<&str> = told.lines().filter(|line| line.starts_with("confine:")).collect();
        let text = fs::read_to_string(&out).unwrap_or_default();
        (done.status.code().unwrap_or(-1), told.join("\n") + "\n" + &text)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for path in [self.0.join("own"), self.0.clone()] {
            crate::lab::within(|| fs::remove_dir(&path).is_ok());
        }
    }
}

fn delegated(uid: u32, test: &str) -> Option<Delegated> {
    let made = if is_root() { Delegated::new(uid) } else { None };
    if made.is_none() {
        skip("root, and control groups (v2) with the controllers cpu, memory and pids", test);
    }
    made
}

/// Two loops that never rest, for two seconds; then how long they had a processor.
const BUSY: &str = r#"
    busy() { end=$((${EPOCHREALTIME/./} + 2000000)); while [ ${EPOCHREALTIME/./} -lt $end ]; do :; done; }
    busy & busy & wait
    times > t; tail -1 t
"#;

/// Seconds from a line such as `0m1.020s 0m0.004s`.
fn seconds(told: &str) -> f64 {
    let line = told.lines().rev().find(|line| line.contains("m") && line.ends_with('s')).unwrap();
    let one = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    line.split_whitespace().map(one).sum()
}

#[test]
fn a_share_of_the_processors_is_kept() {
    for uid in users() {
        let Some(part) = delegated(uid, "group::a_share_of_the_processors_is_kept") else { return };
        let lab = Lab::new(uid);
        let (code, limited) = part.run(&lab, uid, BUSY, &[("WARDKEEP_TEST_CPUS", "0.5")]);
        assert_eq!(code, 0, "{limited}");
        assert!(limited.contains("group processes,memory,cpus"), "{limited}");
        let (code, free) = part.run(&lab, uid, BUSY, &[("WARDKEEP_TEST_GROUP", "1")]);
        assert_eq!(code, 0, "{free}");
        assert!(free.contains("group processes,memory\n"), "{free}");
        let (limited, free) = (seconds(&limited), seconds(&free));
        println!("user {uid}: {limited} s of 1 s with half a processor, {free} s without a limit");
        assert!(limited < 1.4, "{limited}");
        assert!(free > limited * 1.3, "{free} {limited}");
        assert_eq!(left(&part.0), 0);
    }
}

#[test]
fn the_number_of_processes_and_all_memory_are_kept_for_root_as_well() {
    let test = "group::the_number_of_processes_and_all_memory_are_kept";
    for uid in users() {
        let Some(part) = delegated(uid, test) else { return };
        let lab = Lab::new(uid);
        let script = "for n in $(seq 60); do sleep 5 & done; echo through";
        let limits = [("WARDKEEP_TEST_PROCESSES", "30"), ("WARDKEEP_TEST_GROUP", "1")];
        let (_, told) = part.run(&lab, uid, script, &limits);
        assert!(told.contains("group processes,memory\n"), "{told}");
        assert!(told.contains("Resource temporarily unavailable"), "{told}");
        // Each takes less than what one may; together it is too much.
        let script = "hold() { head -c 60000000 /dev/zero | tail; }; hold & hold & hold & hold & wait; echo through";
        let limits = [("WARDKEEP_TEST_TOTAL", "100000000"), ("WARDKEEP_TEST_GROUP", "1")];
        let (code, told) = part.run(&lab, uid, script, &limits);
        assert!(code == 137 && !told.contains("through"), "{code} {told}");
        let limits = [("WARDKEEP_TEST_GROUP", "1")];
        assert_eq!(part.run(&lab, uid, script, &limits).0, 0);
        assert_eq!(left(&part.0), 0);
    }
}

/// Groups of runs that were not removed.
fn left(part: &Path) -> usize {
    let groups = fs::read_dir(part).unwrap().flatten();
    groups.filter(|one| one.file_name().to_string_lossy().starts_with("wardkeep-run-")).count()
}
