//! What `reference/` shows works, as far as this machine can tell.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::skip::skip;

fn reference(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../reference").join(name)
}

fn profile() -> Value {
    let text = std::fs::read_to_string(reference("seccomp-skill-profile.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Numbers of the calls, from the headers of this machine.
fn numbers() -> Option<BTreeMap<String, u32>> {
    let text = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").ok()?;
    let number = |line: &str| {
        let mut words = line.strip_prefix("#define __NR_")?.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    Some(text.lines().filter_map(number).collect())
}

#[test]
fn the_profile_has_the_form_that_runtimes_read() {
    let profile = profile();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let mut keys: Vec<&str> = profile.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["architectures", "defaultAction", "defaultErrnoRet", "syscalls"]);
    for rule in profile["syscalls"].as_array().unwrap() {
        assert!(rule["names"].as_array().is_some_and(|names| !names.is_empty()));
        assert!(["SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"].contains(&rule["action"].as_str().unwrap()));
        for argument in rule["args"].as_array().into_iter().flatten() {
            assert!(argument["index"].as_u64().unwrap() < 6);
            let known = ["SCMP_CMP_EQ", "SCMP_CMP_MASKED_EQ"];
            assert!(known.contains(&argument["op"].as_str().unwrap()));
        }
    }
}

#[test]
fn the_profile_allows_known_calls_and_no_dangerous_ones() {
    let Some(numbers) = numbers() else {
        return skip("the kernel's headers", "reference::the_profile_allows_known_calls");
    };
    let profile = profile();
    let rules = profile["syscalls"].as_array().unwrap();
    let names = rules.iter().flat_map(|rule| rule["names"].as_array().unwrap());
    for name in names {
        // Newer than the headers of some machines.
        let new = ["landlock_", "futex_waitv"];
        let name = name.as_str().unwrap();
        assert!(
            numbers.contains_key(name) || new.iter().any(|new| name.starts_with(new)),
            "{name}"
        );
    }
    let allowed = |name: &str| {
        rules.iter().any(|rule| {
            rule["action"] == "SCMP_ACT_ALLOW"
                && rule.get("args").is_none()
                && rule["names"].as_array().unwrap().iter().any(|one| one == name)
        })
    };
    for name in [
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "unshare",
        "setns",
        "clone",
        "clone3",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "keyctl",
        "add_key",
        "request_key",
        "io_uring_setup",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "reboot",
        "swapon",
        "open_by_handle_at",
        "socket",
        "personality",
        "pidfd_getfd",
        "iopl",
        "ioperm",
        "modify_ldt",
        "quotactl",
        "acct",
        "settimeofday",
        "fsopen",
        "move_mount",
        "mknod",
        "mknodat",
        "seccomp",
        "setuid",
        "setgid",
        "openat2",
    ] {
        assert!(!allowed(name), "{name}");
    }
    assert!(allowed("execve") && allowed("openat"));
}

/// The profile as the kernel's own program, for this machine.
fn compile(numbers: &BTreeMap<String, u32>) -> Vec<libc::sock_filter> {
    let step = |code: u32, yes: u8, no: u8, value: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: yes,
        jf: no,
        k: value,
    };
    let load = |at: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let equal =
        |value: u32, no: u8| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, no, value);
    let give = |value: u32| step(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let mut program = Vec::new();
    for rule in profile()["syscalls"].as_array().unwrap() {
        let action = match rule["action"].as_str().unwrap() {
            "SCMP_ACT_ALLOW" => libc::SECCOMP_RET_ALLOW,
            _ => {
                libc::SECCOMP_RET_ERRNO | u32::try_from(rule["errnoRet"].as_u64().unwrap()).unwrap()
            }
        };
        for name in rule["names"].as_array().unwrap() {
            let Some(number) = numbers.get(name.as_str().unwrap()) else { continue };
            let mut checks = Vec::new();
            for argument in rule["args"].as_array().into_iter().flatten() {
                let value = |key: &str| u32::try_from(argument[key].as_u64().unwrap()).unwrap();
                checks.push(load(16 + 8 * value("index")));
                let wanted = if argument["op"] == "SCMP_CMP_MASKED_EQ" {
                    checks.push(step(
                        libc::BPF_ALU | libc::BPF_AND | libc::BPF_K,
                        0,
                        0,
                        value("value"),
                    ));
                    value("valueTwo")
                } else {
                    value("value")
                };
                checks.push(equal(wanted, 0));
            }
            // Every test that fails goes behind this rule.
            let length = checks.len();
            for (at, check) in checks.iter_mut().enumerate() {
                if u32::from(check.code) == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K {
                    check.jf = u8::try_from(length - at).unwrap();
                }
            }
            program.push(load(0));
            program.push(equal(*number, u8::try_from(length + 1).unwrap()));
            program.extend(checks);
            program.push(give(action));
        }
    }
    program.push(give(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    program
}

#[test]
fn programs_run_under_the_profile_and_attacks_do_not() {
    let Some(numbers) = numbers() else {
        return skip("the kernel's headers", "reference::programs_run_under_the_profile");
    };
    let program = compile(&numbers);
    let run = |script: &str| {
        let program = program.clone();
        let install = move || {
            rustix::thread::set_no_new_privs(true)?;
            let length = u16::try_from(program.len()).unwrap_or(0);
            let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
            // SAFETY: the program lives through the call, which only reads it.
            #[expect(unsafe_code, reason = "a filter is installed after the fork")]
            let done = unsafe {
                libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &raw const program,
                )
            };
            if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        // SAFETY: only system calls, and nothing is allocated.
        #[expect(unsafe_code, reason = "a filter is installed after the fork")]
        unsafe {
            command.pre_exec(install)
        };
        command.output().unwrap()
    };
    let work = run(
        "set -e; ls / > /dev/null; echo a | sed s/a/b/; python3 -c 'import threading, subprocess, \
        socket; t = threading.Thread(target=print, args=(1,)); t.start(); t.join(); \
        print(subprocess.check_output([\"true\"]), socket.socket())' > /dev/null",
    );
    assert!(work.status.success(), "{}", String::from_utf8_lossy(&work.stderr));
    for attack in [
        "unshare -U true",
        "mount -t tmpfs x /mnt",
        "mknod /tmp/wardkeep-node-$$ p",
        "chroot / true",
        "python3 -c 'import ctypes,sys; L=ctypes.CDLL(None); sys.exit(0 if L.ptrace(0,0,0,0)==0 else 1)'",
        "python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'",
        "python3 -c 'import ctypes,sys; L=ctypes.CDLL(None); sys.exit(0 if L.syscall(425,8,0) != -1 else 1)'",
        "python3 -c 'import os; os.setuid(65534)'",
    ] {
        assert!(!run(attack).status.success(), "{attack}");
    }
}

#[test]
fn the_container_drops_what_it_can() {
    let text = std::fs::read_to_string(reference("Dockerfile.skill-runner")).unwrap();
    for needed in [
        "--read-only",
        "--network none",
        "--cap-drop ALL",
        "no-new-privileges",
        "seccomp=seccomp-skill-profile.json",
        "--pids-limit",
        "--memory",
        "--cpus",
        "--user 65532",
    ] {
        assert!(text.contains(needed), "{needed}");
    }
    let known = ["FROM", "RUN", "ENV", "WORKDIR", "USER", "CMD"];
    let mut continued = false;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let word = line.split_whitespace().next().unwrap();
        assert!(continued || known.contains(&word), "{line}");
        continued = line.ends_with('\\');
    }
    let users: Vec<&str> = text.lines().filter(|line| line.starts_with("USER ")).collect();
    assert_eq!(users, ["USER 65532:65532"]);
}

/// The example of a Landlock ruleset, which the build has made beside this test.
#[test]
fn the_landlock_example_holds() {
    let tests = std::env::current_exe().unwrap();
    let example = tests.parent().unwrap().parent().unwrap().join("examples/landlock-policy");
    if !example.exists() {
        return skip(
            "the examples, which `cargo test` builds",
            "reference::the_landlock_example_holds",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let (skill, out) = (folder.path().join("skill"), folder.path().join("out"));
    std::fs::create_dir(&skill).unwrap();
    std::fs::create_dir(&out).unwrap();
    std::fs::write(folder.path().join("secret"), "x").unwrap();
    std::fs::write(skill.join("data"), "x").unwrap();
    let run = |script: &str| {
        let mut command = Command::new(&example);
        command.arg(&skill).arg(&out).args(["bash", "-c", script]);
        command.env("F", folder.path()).current_dir("/").output().unwrap()
    };
    let works = run("cat $F/skill/data && echo y > $F/out/new && echo z > /dev/null");
    if String::from_utf8_lossy(&works.stderr).contains("the kernel does not enforce") {
        return skip("Landlock", "reference::the_landlock_example_holds");
    }
    assert!(works.status.success(), "{}", String::from_utf8_lossy(&works.stderr));
    for attack in [
        "cat $F/secret",
        "echo y > $F/skill/data",
        "echo y > $F/secret",
        "ls /root",
        "cp /bin/true $F/out/t && $F/out/t",
        "exec 3<>/dev/tcp/127.0.0.1/1",
        "cat /proc/1/environ",
    ] {
        let tried = run(attack);
        assert!(!tried.status.success(), "{attack}");
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(
            why.contains("Permission denied") || why.contains("cannot open directory"),
            "{attack}: {why}"
        );
    }
}

#[test]
fn the_unit_is_one_that_systemd_reads() {
    let tool = "systemd-analyze";
    if Command::new(tool).arg("--version").output().is_err() {
        return skip(tool, "reference::the_unit_is_one_that_systemd_reads");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(reference("systemd/wardkeep-agent@.service")).unwrap();
    // The program need not be installed where this is tested.
    let text = text.replace("/usr/bin/wardkeep run --", "/usr/bin/env");
    let unit = folder.path().join("wardkeep-agent@daemon.service");
    std::fs::write(&unit, text).unwrap();
    let output = Command::new(tool).args(["verify", "--man=no"]).arg(&unit).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let about: Vec<&str> = said.lines().filter(|line| line.contains("wardkeep-agent")).collect();
    assert!(about.is_empty(), "{about:#?}");
    let output = Command::new(tool)
        .args(["security", "--offline=true", "--threshold=35", "--no-pager"])
        .arg(&unit)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let worst = said.lines().find(|line| line.contains("Overall exposure")).unwrap_or(&said);
    assert!(output.status.success(), "{worst}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_guide_covers_what_it_names() {
    let text = std::fs::read_to_string(reference("egress-proxy.md")).unwrap();
    for part in ["nftables", "## Squid", "## Envoy", "## eBPF", "169.254.169.254"] {
        assert!(text.contains(part), "{part}");
    }
}
