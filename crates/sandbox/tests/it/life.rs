//! Beginning and end: exit codes, signals, time, and that nothing is left behind.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal};

use crate::lab::{Lab, appears, users, within};

/// How many processes have this word in their command line.
fn processes_with(word: &str) -> usize {
    let folders = fs::read_dir("/proc").unwrap().flatten();
    let lines = folders.filter_map(|folder| fs::read(folder.path().join("cmdline")).ok());
    lines.filter(|line| line.windows(word.len()).any(|part| part == word.as_bytes())).count()
}

#[test]
fn exit_codes_and_signals_come_out() {
    for uid in users() {
        let lab = Lab::new(uid);
        for (script, code) in [
            ("exit 0", 0),
            ("exit 7", 7),
            ("exit 255", 255),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            assert_eq!(lab.run(script).0, code, "{script}");
        }
    }
}

#[test]
fn a_signal_goes_in() {
    for uid in users() {
        let lab = Lab::new(uid);
        let mut child = lab.spawn(
            "trap 'echo got > got; exit 9' TERM; echo > ready; while :; do sleep 0.05; done",
        );
        assert!(appears(&lab.at("ws/ready")));
        let pid = Pid::from_child(&child);
        // To the thread that waits, as a terminal would to the whole process.
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        let ended = within(|| child.try_wait().unwrap().is_some());
        assert!(ended);
        // The harness around it may take the signal first and end all of it; never is it left running.
        assert!(within(|| processes_with(&format!("{}", lab.at("ws/got").display())) == 0));
    }
}

#[test]
fn time_is_up() {
    for uid in users() {
        let lab = Lab::new(uid);
        let word = format!("wk-late-{uid}-{}", std::process::id());
        let script = format!("(setsid bash -c 'exec -a {word} sleep 60' &) ; sleep 60");
        let (code, _) = lab.run_with(&script, &[("WARDKEEP_TEST_TIMEOUT", "400")]);
        assert_eq!(code, wardkeep_sandbox::TIMED_OUT);
        assert!(within(|| processes_with(&word) == 0));
    }
}

#[test]
fn nothing_outlives_the_program() {
    for uid in users() {
        let lab = Lab::new(uid);
        let word = format!("wk-orphan-{uid}-{}", std::process::id());
        let script = format!(
            "(setsid bash -c 'exec -a {word} sleep 60' >/dev/null 2>&1 &)
             (nohup bash -c '(exec -a {word} sleep 60) & disown' >/dev/null 2>&1 &) ; sleep 0.2; true"
        );
        assert_eq!(lab.run(&script).0, 0);
        assert!(within(|| processes_with(&word) == 0));
    }
}

#[test]
fn nothing_outlives_the_runner() {
    for uid in users() {
        let lab = Lab::new(uid);
        let word = format!("wk-abandoned-{uid}-{}", std::process::id());
        let script = format!(
            "(setsid bash -c 'exec -a {word} sleep 60' &) ; sleep 0.1; echo > ready; sleep 60"
        );
        let mut child = lab.spawn(&script);
        assert!(appears(&lab.at("ws/ready")));
        assert!(processes_with(&word) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(within(|| processes_with(&word) == 0));
    }
}

#[test]
fn no_mount_and_no_file_is_left() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    for uid in users() {
        let lab = Lab::new(uid);
        let (code, _) = lab.run("mkdir -p $HOME/.cache/x /tmp/x /var/tmp/x && echo > /tmp/x/y");
        assert_eq!(code, 0);
        assert!(!lab.at("home/.cache").exists());
        let names: Vec<_> = fs::read_dir(lab.at("ws"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| !matches!(name.as_str(), ".git" | ".env" | "AGENTS.md" | "sub" | "out"))
            .collect();
        assert_eq!(names, Vec::<String>::new());
    }
    let ours = |text: String| text.lines().filter(|line| line.contains("wk-sandbox")).count();
    assert_eq!(ours(before), ours(mounts()));
}

#[test]
fn what_cannot_be_run_is_told() {
    let lab = Lab::new(users()[0]);
    let mut spec = wardkeep_sandbox::Spec::new(lab.at("ws"), vec!["wk-no-such-program".into()]);
    spec.terminal = false;
    let error = wardkeep_sandbox::Prepared::new(spec).unwrap().spawn().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run `wk-no-such-program` inside the confinement: No such file or directory (os error 2)"
    );
}

#[test]
fn a_whole_home_and_the_system_are_no_workspace() {
    let lab = Lab::new(users()[0]);
    let refused = |workspace: std::path::PathBuf| {
        let mut spec = wardkeep_sandbox::Spec::new(workspace, vec!["true".into()]);
        spec.home = Some(lab.at("home"));
        spec.hidden.push(lab.at("ws/state"));
        wardkeep_sandbox::Prepared::new(spec).err().map(|error| error.to_string())
    };
    for folder in
        ["/", "/usr", "/etc", "/proc", "/tmp", "/var/tmp", "/home", "/var", "/run", "/mnt"]
    {
        assert!(refused(folder.into()).unwrap().contains("folder of the system"), "{folder}");
    }
    assert!(refused(lab.at("home")).unwrap().contains("whole home"));
    assert!(refused(lab.at("")).unwrap().contains("whole home"));
    assert!(refused(lab.at("ws")).unwrap().contains("wardkeep's own state"));
    assert!(refused(lab.at("nowhere")).unwrap().contains("is not there"));
}

#[test]
fn descriptors_and_variables_stay_outside() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = format!("exec 9<{}; ", lab.at("home/.ssh/id_rsa").display());
        let inner = lab.command("ls /proc/self/fd > out; env > env");
        let mut outer = Command::new("/bin/bash");
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.env("SECRET_KEY", "CANARY").current_dir(lab.at("ws"));
        let words: Vec<_> = inner.get_args().map(|word| word.to_str().unwrap()).collect();
        let program = inner.get_program().to_str().unwrap();
        outer.arg("-c").arg(format!("{script} exec {program} {}", words.join(" ")));
        if crate::lab::is_root() {
            std::os::unix::process::CommandExt::uid(&mut outer, uid);
        }
        assert!(outer.output().unwrap().status.success());
        let fds = fs::read_to_string(lab.at("ws/out")).unwrap();
        let mut fds: Vec<_> = fds.split_whitespace().collect();
        fds.sort_unstable();
        // The fourth is the folder that `ls` reads.
        assert_eq!(fds, ["0", "1", "2", "3"]);
        assert!(!fs::read_to_string(lab.at("ws/env")).unwrap().contains("CANARY"));
    }
}
