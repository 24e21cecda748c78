//! A profile of system calls beside ours.

use std::path::PathBuf;

use crate::lab::{Lab, users};
use crate::skip::skip;

fn with_profile(uid: u32, text: &str) -> (Lab, PathBuf) {
    let lab = Lab::new(uid);
    let profile = lab.at("profile.json");
    std::fs::write(&profile, text).unwrap();
    lab.give();
    (lab, profile)
}

fn run(lab: &Lab, profile: &std::path::Path, script: &str) -> (i32, String) {
    let profile = profile.to_str().unwrap();
    lab.run_with(script, &[("WARDKEEP_TEST_SECCOMP", profile), ("WARDKEEP_TEST_TELL", "1")])
}

const ALL: &str = r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#;

fn reference() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../reference/seccomp-skill-profile.json");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn real_programs_run_under_the_reference_profile() {
    for uid in users() {
        let (lab, profile) = with_profile(uid, &reference());
        let script = "set -e; ls / > /dev/null; echo a | sed s/a/b/; mkdir -p d/e; echo x > d/e/f; mv d/e/f d/g; \
            cat d/g; (sleep 0.01 &) ; for n in 1 2 3; do /bin/true; done; sh -c 'echo sh'";
        assert_eq!(run(&lab, &profile, script), (0, "b\nx\nsh\n".to_owned()));
        for (program, path, script) in [
            (
                "python3",
                "/usr/bin/python3",
                r#"python3 -c 'import threading, subprocess, socket, tempfile
t = threading.Thread(target=print, args=(1,)); t.start(); t.join()
print(subprocess.check_output(["echo", "2"]).decode(), end="")
socket.socket(); tempfile.TemporaryFile()'"#,
            ),
            (
                "node",
                "/usr/bin/node",
                r#"node -e 'const fs = require("fs"); fs.writeFileSync("n", "1"); console.log(fs.readFileSync("n", "utf8"));
require("child_process").execSync("echo 2", {stdio: "inherit"})'"#,
            ),
        ] {
            if !std::path::Path::new(path).exists() {
                skip(program, "seccomp::real_programs_run_under_the_reference_profile");
                continue;
            }
            let (code, told) = run(&lab, &profile, script);
            assert_eq!((code, told.as_str()), (0, "1\n2\n"), "{program}");
        }
    }
}

/// What only the profile forbids, and what both do.
#[test]
fn the_reference_profile_is_in_force_beside_ours() {
    for uid in users() {
        let (lab, profile) = with_profile(uid, &reference());
        let script = r#"
            try() { n=$1; shift; if bash -c "$*" >/dev/null 2>&1; then echo "through: $n"; fi; }
            try datagram "python3 -c 'import socket;socket.socket(2,2)'"
            try netlink "python3 -c 'import socket;socket.socket(16,3)'"
            try setuid "python3 -c 'import os;os.setuid(os.getuid())'"
            try hook "echo x > .git/hooks/pre-commit"
            try tasks "mkdir .vscode"
            try agents "echo x >> AGENTS.md"
            try unshare "unshare -U true"
            try mount "mount -t tmpfs x /tmp"
            try uring "python3 -c 'import ctypes,sys;sys.exit(ctypes.CDLL(None).syscall(425,8,0)<0)'"
            echo done
        "#;
        let (code, told) = run(&lab, &profile, script);
        assert_eq!(code, 0, "{told}");
        assert!(told.starts_with("done\n"), "{told}");
        // Nobody misses that it was tried.
        for tried in ["Call unshare", ".vscode"] {
            assert!(told.contains(tried), "{tried}: {told}");
        }
        // Newer programs begin with another call.
        assert!(told.contains("Call mount") || told.contains("Call fsopen"), "{told}");
        // The same without the profile, so that it is the profile that forbids them.
        let script = "python3 -c 'import os,socket;socket.socket(2,2);socket.socket(16,3);os.setuid(os.getuid())'";
        assert_eq!(lab.run(script).0, 0);
    }
}

/// The kernel takes the strictest answer of all filters: ours stay whatever a profile allows.
#[test]
fn a_profile_that_allows_everything_weakens_nothing() {
    for uid in users() {
        let (lab, profile) = with_profile(uid, ALL);
        let script = r#"
            try() { n=$1; shift; if bash -c "$*" >/dev/null 2>&1; then echo "through: $n"; fi; }
            try hook "echo x > .git/hooks/pre-commit"
            try tasks "mkdir .vscode"
            try unshare "unshare -U true"
            try mount "mount -t tmpfs x /tmp"
            try raw "python3 -c 'import socket;socket.socket(2,3,1)'"
            try setid "cp /bin/true t && chmod 4755 t"
            try uring "python3 -c 'import ctypes,sys;sys.exit(ctypes.CDLL(None).syscall(425,8,0)<0)'"
            try listener "python3 -c 'import ctypes,sys;sys.exit(ctypes.CDLL(None).syscall(317,1,8,0)<0)'"
            mkdir made && echo done
        "#;
        let (code, told) = run(&lab, &profile, script);
        assert_eq!(code, 0, "{told}");
        assert!(told.starts_with("done\n"), "{told}");
        assert!(told.contains("Call unshare"), "{told}");
    }
}

/// Calls that the supervisor would carry out are refused before it hears of them.
#[test]
fn a_stricter_answer_of_the_profile_comes_first() {
    let text = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":28},
        {"names":["symlink","symlinkat"],"action":"SCMP_ACT_KILL_PROCESS"},
        {"names":["link","linkat"],"action":"SCMP_ACT_TRAP"},
        {"names":["openat","open"],"action":"SCMP_ACT_LOG"},
        {"names":["rename","renameat","renameat2"],"action":"SCMP_ACT_ERRNO","errnoRet":0}]}"#;
    for uid in users() {
        let (lab, profile) = with_profile(uid, text);
        let script = r#"
            mkdir made 2>&1 | grep -o 'No space left'; test -e made && echo through
            mkdir .vscode 2>&1 | grep -o 'No space left'
            ln -s x link; echo $?; test -L link && echo through
            ln AGENTS.md again; echo $?; test -e again && echo through
            echo a > file; mv file other; test -e other && echo through
            echo x > .git/hooks/pre-commit || echo refused
            cat file
        "#;
        let (code, told) = run(&lab, &profile, script);
        assert_eq!(code, 0, "{told}");
        let expected = "No space left\nNo space left\n159\n159\nrefused\na\n";
        assert!(told.starts_with(expected), "{told}");
        assert!(!told.contains("through"), "{told}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn another_way_to_call_the_kernel_is_none_around_an_allow_list() {
    let text = reference().replace("SCMP_ARCH_AARCH64", "SCMP_ARCH_X32\", \"SCMP_ARCH_X86");
    for uid in users() {
        let (lab, profile) = with_profile(uid, &text);
        // getpid, setuid and a datagram socket by the x32 numbers; getpid by the 32-bit gate.
        let script = r#"
            call() { python3 -c "import ctypes,os; r = ctypes.CDLL(None).syscall($1); os.write(1, b'through %d' % r)"; echo $?; }
            call 0x40000027; call 0x40000069,0; call 0x40000029,2,2,0
            python3 -c "
import ctypes, mmap, os
m = mmap.mmap(-1, 4096, prot=7)
m.write(bytes.fromhex('b814000000cd80c3'))
f = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
os.write(1, b'through %d' % f())"; echo $?
        "#;
        let (_, told) = run(&lab, &profile, script);
        let lines: Vec<&str> = told.lines().filter(|line| !line.starts_with("denied:")).collect();
        // An answer of an error is fine as well; what would be wrong is a number of a process or a descriptor.
        assert_eq!(lines.len(), 4, "{told}");
        for line in lines {
            let refused = line == "159" || line == "139" || line.starts_with("through -");
            assert!(refused, "{told}");
        }
    }
}

#[test]
fn a_value_above_32_bits_is_no_way_around() {
    // Only AF_UNIX is allowed, and one request of a terminal is not.
    let text = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":97,"args":[{"index":0,"value":1,"op":"SCMP_CMP_NE"}]},
        {"names":["ioctl"],"action":"SCMP_ACT_ERRNO","errnoRet":95,"args":[{"index":1,"value":21531,"op":"SCMP_CMP_EQ"}]},
        {"names":["unlinkat"],"action":"SCMP_ACT_ERRNO","errnoRet":11,"args":[{"index":2,"value":512,"op":"SCMP_CMP_EQ"}]},
        {"names":["dup3"],"action":"SCMP_ACT_ERRNO","errnoRet":11,"args":[{"index":1,"value":77,"op":"SCMP_CMP_EQ"}]},
        {"names":["lseek"],"action":"SCMP_ACT_ERRNO","errnoRet":27,"args":[{"index":1,"value":4294967296,"op":"SCMP_CMP_GE"}]}]}"#;
    for uid in users() {
        let (lab, profile) = with_profile(uid, text);
        let script = r#"
            echo x > file
            python3 - <<'END'
import ctypes, os
L = ctypes.CDLL(None, use_errno=True)
def call(*all):
    r = L.syscall(*[ctypes.c_ulong(one) for one in all])
    return ctypes.get_errno() if r < 0 else 0
SOCKET, IOCTL, LSEEK, UNLINKAT, DUP3 = (41, 16, 8, 263, 292) if os.uname().machine == 'x86_64' else (198, 29, 62, 35, 24)
room = ctypes.create_string_buffer(8)
a, f = ctypes.addressof(room), os.open('file', os.O_RDONLY)
name = ctypes.create_string_buffer(b'folder')
n = ctypes.addressof(name)
print(call(SOCKET, 1, 1, 0), call(SOCKET, 2, 1, 0), call(SOCKET, 1 << 32 | 2, 1, 0))
print(call(IOCTL, f, 21531, a), call(IOCTL, f, 1 << 32 | 21531, a))
os.mkdir('folder')
print(call(UNLINKAT, 2**64 - 100, n, 512), call(UNLINKAT, 2**64 - 100, n, 1 << 32 | 512), os.path.isdir('folder'))
print(call(DUP3, f, 77, 0), call(DUP3, f, 1 << 32 | 77, 0), call(DUP3, f, 78, 0))
print(call(LSEEK, f, 0, 0), call(LSEEK, f, 1 << 32, 0), call(LSEEK, f, 1 << 33 | 1, 0))
END
        "#;
        let (code, told) = run(&lab, &profile, script);
        assert_eq!((code, told.as_str()), (0, "0 97 97\n95 95\n11 11 True\n11 11 0\n0 27 27\n"));
    }
}

/// An entry that allows what an argument is not, as Docker's own for sockets.
#[test]
fn what_is_allowed_but_for_one_value_is_not_had_by_one_more_bit() {
    let allows = r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":97,"syscalls":[
        {"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":10,"op":"SCMP_CMP_NE"}]},
        {"names":OTHERS,"action":"SCMP_ACT_ALLOW"}]}"#;
    let reference = include_str!("../../../../reference/seccomp-skill-profile.json");
    let reference: serde_json::Value = serde_json::from_str(reference).unwrap();
    let names = reference["syscalls"].as_array().unwrap().iter();
    let names = names.flat_map(|entry| entry["names"].as_array().unwrap().clone());
    let names: Vec<_> = names.filter(|name| *name != "socket").collect();
    let allows = allows.replace("OTHERS", &serde_json::Value::from(names).to_string());
    for uid in users() {
        let (lab, profile) = with_profile(uid, &allows);
        let script = r#"python3 - <<'END'
import ctypes, os
L = ctypes.CDLL(None, use_errno=True)
SOCKET = 41 if os.uname().machine == 'x86_64' else 198
for family in (2, 10, 1 << 32 | 10, 1 << 63 | 10):
    r = L.syscall(SOCKET, ctypes.c_ulong(family), ctypes.c_ulong(1), ctypes.c_ulong(0))
    print(ctypes.get_errno() if r < 0 else 0)
END
        "#;
        let (code, told) = run(&lab, &profile, script);
        assert_eq!((code, told.as_str()), (0, "0\n97\n97\n97\n"));
    }
}

#[test]
fn what_cannot_be_used_starts_nothing() {
    let uid = users()[0];
    let (lab, profile) = with_profile(uid, r#"{"defaultAction":"SCMP_ACT_NOTIFY"}"#);
    let (code, told) = run(&lab, &profile, "touch started");
    assert_eq!(code, 125, "{told}");
    assert!(told.contains("SCMP_ACT_NOTIFY") && told.contains("profile.json"), "{told}");
    assert!(!lab.at("ws/started").exists());
}
