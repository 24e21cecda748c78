//! Where a layer cannot be had: refused, or by leave done without.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::lab::{Lab, NOBODY, is_root, skipped, users};

/// Executes a program for which calls are errors: pairs of numbers, of a call and of an error. With a third, only where the
/// call's first argument has one of its bits.
const DENY: &str = "
import ctypes, os, struct, sys
filter = [(0x20, 0, 0, 0)]
for one in sys.argv[1].split(','):
    call, error, *bits = map(int, one.split(':'))
    if bits:
        filter += [(0x15, 0, 4, call), (0x20, 0, 0, 16), (0x45, 0, 1, bits[0]), (0x06, 0, 0, 0x50000 | error), (0x20, 0, 0, 0)]
    else:
        filter += [(0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | error)]
filter += [(0x06, 0, 0, 0x7FFF0000)]
text = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in filter))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(len(filter), ctypes.cast(text, ctypes.c_void_p))
library = ctypes.CDLL(None)
library.prctl(38, 1, 0, 0, 0)
assert library.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
";

/// Runs the stage where a call is an error, as in containers.
fn where_denied(lab: &Lab, call: i64, error: i32, script: &str, degraded: &str) -> (i32, String) {
    where_all_denied(lab, &format!("{call}:{error}"), script, degraded)
}

/// Runs the stage under the filter that Docker and Podman put on containers, as far as namespaces go.
pub(crate) fn as_in_a_container(lab: &Lab, script: &str, degraded: &str) -> (i32, String) {
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let denied = [
        format!("{}:{}", libc::SYS_clone3, libc::ENOSYS),
        format!("{}:{}", libc::SYS_unshare, libc::EPERM),
        format!("{}:{}", libc::SYS_setns, libc::EPERM),
        format!("{}:{}:{namespaces}", libc::SYS_clone, libc::EPERM),
    ];
    where_all_denied(lab, &denied.join(","), script, degraded)
}

fn where_all_denied(lab: &Lab, denied: &str, script: &str, degraded: &str) -> (i32, String) {
    let out = lab.at("ws/out");
    let _ = std::fs::remove_file(&out);
    let inner = lab.command(&format!("exec > {} 2>&1\n{script}", out.display()));
    let mut outer = Command::new("python3");
    outer.args(["-c", DENY]).arg(denied);
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.env("WARDKEEP_TEST_TELL", "1");
    outer.env("WARDKEEP_TEST_LAYERS", "1");
    if !degraded.is_empty() {
        outer.env("WARDKEEP_TEST_DEGRADED", degraded);
    }
    if is_root() {
        outer.uid(lab.uid()).gid(lab.uid());
    }
    let done = outer.current_dir(lab.at("ws")).stdin(Stdio::null()).output().unwrap();
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    let told =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().unwrap_or(-1), text + &told)
}

pub(crate) fn has_python() -> bool {
    std::path::Path::new("/usr/bin/python3").exists()
}

/// Names that are made are told by a filter, too: whoever does without filters does without both, and has said so.
#[test]
fn without_filters_names_are_not_watched_and_that_must_be_said() {
    if !has_python() {
        return skipped("needs python3 to deny system calls");
    }
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "mkdir -p .claude; echo EVIL > .claude/settings.json; echo EVIL > .envrc";
        let denied =
            |degraded: &str| where_denied(&lab, libc::SYS_seccomp, libc::EINVAL, script, degraded);
        let (code, told) = denied("");
        assert!(code == 125 && told.contains("`seccomp` is not available"), "{told}");
        let (code, told) = denied("seccomp");
        assert!(code == 125 && told.contains("`names` is not available"), "{told}");
        assert!(told.contains("--allow-degraded seccomp --allow-degraded names"), "{told}");
        assert!(!lab.at("ws/.envrc").exists(), "as user {uid}");
        let (code, told) = denied("seccomp,names");
        assert_eq!(code, 0, "{told}");
        assert!(told.contains("denied: layers namespaces,proc,landlock\n"), "{told}");
    }
}

/// As in a container with the usual filter, which forbids `unshare` whole.
#[test]
fn where_nothing_can_be_unshared_files_are_made_all_the_same() {
    if !has_python() {
        return skipped("needs python3 to deny system calls");
    }
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "umask 027; echo hi > plain && mkdir -p d/e && mv plain d/e/f && stat -c %a d d/e/f
            (umask 077; echo x > own && stat -c %a own); echo y > theirs && stat -c %a theirs
            cd d/e && echo here > g && cat g; cd ../..; echo EVIL > .envrc; echo EVIL >> AGENTS.md; cat AGENTS.md";
        let (code, told) = where_denied(&lab, libc::SYS_unshare, libc::EPERM, script, "namespaces");
        assert_eq!(code, 0, "as user {uid}: {told}");
        let lines: Vec<_> = told.lines().filter(|line| !line.contains("denied")).take(6).collect();
        assert_eq!(lines[..5], ["750", "640", "600", "640", "here"], "as user {uid}: {told}");
        assert!(!lab.at("ws/.envrc").exists(), "as user {uid}");
        assert!(
            told.contains("\nbe good\n") && told.contains("/.envrc (`.envrc` is protected)"),
            "{told}"
        );
        let (code, told) = where_denied(&lab, libc::SYS_unshare, libc::EPERM, "true", "");
        assert!(code == 125 && told.contains("`namespaces` is not available"), "{told}");
    }
}

/// Nor is there `clone3` in a container: a filter cannot see what it would make.
#[test]
fn in_a_container_landlock_and_the_filter_hold_alone() {
    if !has_python() {
        return skipped("needs python3 to deny system calls");
    }
    for uid in users() {
        let lab = Lab::new(uid);
        let (code, told) = as_in_a_container(&lab, "touch started", "");
        assert!(code == 125 && told.contains("`namespaces` is not available"), "{told}");
        assert!(told.contains("--allow-degraded namespaces"), "{told}");
        assert!(!lab.at("ws/started").exists(), "as user {uid}");
        let script = "echo hi; cat $OUT/victim.txt; echo EVIL > .envrc || echo kept";
        let (code, told) = as_in_a_container(&lab, script, "namespaces");
        assert_eq!(code, 0, "as user {uid}: {told}");
        assert!(told.starts_with("hi\n") && told.contains("kept\n"), "as user {uid}: {told}");
        assert!(!told.contains("CANARY"), "as user {uid}: {told}");
        assert!(told.contains("denied: layers landlock,seccomp,names\n"), "{told}");
    }
}

/// Runs the stage in a user namespace in which no other can be made.
pub(crate) fn without_namespaces(lab: &Lab, script: &str, degraded: Option<&str>) -> (i32, String) {
    without_namespaces_and(lab, script, degraded, &[])
}

pub(crate) fn without_namespaces_and(
    lab: &Lab,
    script: &str,
    degraded: Option<&str>,
    variables: &[(&str, &str)],
) -> (i32, String) {
    let inner = lab.command(&format!("exec > {}\n{script}", lab.at("ws/out").display()));
    let mut outer = Command::new("unshare");
    outer.args(["--user", "--map-root-user", "/bin/bash", "-c"]);
    outer.arg("echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"");
    outer.uid(NOBODY).gid(NOBODY);
    outer.arg("bash").arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.envs(variables.iter().copied());
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
        try listen "python3 -c 'import socket;socket.socket().listen()'"
        try owner "python3 -c 'import fcntl,os;fcntl.fcntl(os.pipe()[0],8,os.getppid())'"
        try limit "python3 -c 'import os,resource;resource.prlimit(os.getppid(),4,(0,0))'"
        try parent "kill -9 $PPID"
        echo hi > $WS/made && cat $WS/made
        echo t > $TMPDIR/t && cat $TMPDIR/t
        echo $TMPDIR > $WS/tmpdir
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
    let own = std::fs::read_to_string(lab.at("ws/tmpdir")).unwrap();
    let own = own.trim_end();
    assert!(own.starts_with("/tmp/wardkeep-run-"), "{own}");
    assert!(!std::path::Path::new(own).exists(), "{own}");
}

/// The door to models would be one for all of the machine.
#[test]
fn without_namespaces_nobody_listens() {
    if !is_root() {
        return skipped("needs root to forbid user namespaces");
    }
    let lab = Lab::new(NOBODY);
    let script = "touch started; until [ -e over ]; do sleep 0.05; done";
    let variables = [("WARDKEEP_TEST_MODELS", "47831")];
    let run = || without_namespaces_and(&lab, script, Some("namespaces"), &variables);
    std::thread::scope(|scope| {
        let run = scope.spawn(run);
        let has_started = crate::lab::appears(&lab.at("ws/started"));
        let found = std::net::TcpStream::connect(("127.0.0.1", 47831));
        std::fs::write(lab.at("ws/over"), "").unwrap();
        let (code, told) = run.join().unwrap();
        assert!(has_started && code == 0, "{told}");
        assert!(found.is_err(), "{told}");
    });
}

#[test]
fn without_namespaces_no_file_is_handed_in() {
    if !is_root() {
        return skipped("needs root to forbid user namespaces");
    }
    let lab = Lab::new(NOBODY);
    let script = "cat $H/notes.txt AGENTS.md; echo x > .envrc; echo done";
    let variables = [("WARDKEEP_TEST_ANSWERS", "=session")];
    let (_, told) = without_namespaces_and(&lab, script, Some("namespaces"), &variables);
    assert!(told.contains("be good") && told.contains("done"), "{told}");
    assert!(!told.contains("CANARY") && !told.contains("asked read"), "{told}");
}
