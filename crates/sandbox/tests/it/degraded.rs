//! Where a layer cannot be had: refused, or by leave done without.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::lab::{Lab, NOBODY, is_root, skipped};

/// Runs the stage in a user namespace in which no other can be made.
fn without_namespaces(lab: &Lab, script: &str, degraded: Option<&str>) -> (i32, String) {
    let inner = lab.command(&format!("exec > {}\n{script}", lab.at("ws/out").display()));
    let mut outer = Command::new("unshare");
    outer.args(["--user", "--map-root-user", "/bin/bash", "-c"]);
    outer.arg("echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"");
    outer.uid(NOBODY).gid(NOBODY);
    outer.arg("bash").arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.envs(degraded.map(|layer| ("WARDKEEP_TEST_DEGRADED", layer)));
    outer.current_dir(lab.at("ws")).stdin(Stdio::null());
    let done = outer.output().unwrap();
    let out = std::fs::read_to_string(lab.at("ws/out")).unwrap_or_default();
    let told =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().unwrap_or(-1), out + &told)
}

#[test]
fn without_namespaces_nothing_is_started() {
    if !is_root() {
        return skipped("needs root to forbid user namespaces");
    }
    let lab = Lab::new(NOBODY);
    let (code, told) = without_namespaces(&lab, "touch started", None);
    assert_eq!(code, 125, "{told}");
    assert!(
        told.contains("`namespaces` is not available: user.max_user_namespaces is 0"),
        "{told}"
    );
    assert!(told.contains("--allow-degraded namespaces"), "{told}");
    assert!(!lab.at("ws/started").exists());
}

#[test]
fn by_leave_landlock_and_the_filter_hold_alone() {
    if !is_root() {
        return skipped("needs root to forbid user namespaces");
    }
    let lab = Lab::new(NOBODY);
    let script = r#"
        try() { n=$1; shift; if bash -c "$*" >/dev/null 2>&1; then echo "through: $n"; fi; }
        try key "grep -q CANARY $H/.ssh/id_rsa"
        try home "ls $H"
        try outside "echo x > $OUT/pwn"
        try tmp "echo x > /tmp/wk-pwn-test"
        try shadow "head -c1 /etc/shadow"
        try userns "unshare -U true"
        try ptrace "python3 -c 'import ctypes,sys;L=ctypes.CDLL(None);sys.exit(L.ptrace(16,1,0,0)!=0)'"
        try udp "python3 -c 'import socket;socket.socket(2,2)'"
        try unix "python3 -c 'import socket;socket.socket(1,1)'"
        try tcp "python3 -c 'import socket;s=socket.socket();s.bind((\"127.0.0.1\",0))'"
        try parent "kill -9 $PPID"
        echo hi > $WS/made && cat $WS/made
        echo t > $TMPDIR/t && cat $TMPDIR/t
        ls / > /dev/null 2>&1 && echo "through: root"
        /bin/true && echo ran
        (setsid bash -c "exec -a wk-landlock-orphan sleep 60" >/dev/null 2>&1 &)
        exit 5
    "#;
    let (code, told) = without_namespaces(&lab, script, Some("namespaces"));
    assert!(told.starts_with("hi\nt\nran\n"), "{told}");
    assert_eq!(code, 5, "{told}");
    let orphans = || {
        let found = Command::new("pgrep").args(["-f", "^wk-landlock-orphan"]).output();
        found.unwrap().stdout.len()
    };
    assert!(crate::lab::within(|| orphans() == 0));
    let left = std::fs::read_dir("/tmp").unwrap().flatten();
    let left = left.filter(|one| one.file_name().to_string_lossy().starts_with("wardkeep-run-"));
    assert_eq!(left.count(), 0);
}
