//! A skill's code.

use std::time::Duration;

use wardkeep_sandbox::{Applied, SandboxError, SkillExecutionConfig, prepare_skill_sandbox};

use crate::lab::{Lab, users};

#[test]
fn a_skill_runs_for_its_time_and_is_written_down_first() {
    let lab = Lab::new(rustix::process::geteuid().as_raw());
    assert!(!users().is_empty());
    let config = SkillExecutionConfig {
        use_subprocess: true,
        seccomp_profile: None,
        filesystem_allowlist: vec![lab.at("ws"), lab.at("outside")],
        timeout_ms: 20_000,
        max_memory_bytes: 256 << 20,
    };
    let handle = prepare_skill_sandbox(&config).unwrap();
    let mut written = None;
    let command = |script: &str| vec!["sh".into(), "-c".into(), script.into()];
    let note = |applied: &Applied| -> Result<(), SandboxError> {
        written = Some(applied.clone());
        Ok(())
    };
    let script = "cat ../outside/victim.txt > read; ! touch ../outside/x && ulimit -v > limit";
    let running = handle.spawn(command(script), note).unwrap();
    assert_eq!(running.wait().unwrap().code, 0);
    let written = written.unwrap();
    assert_eq!(written.network, "none");
    assert_eq!(written.timeout_ms, Some(20_000));
    assert_eq!(written.limits.memory, Some(256 << 20));
    assert_eq!(std::fs::read_to_string(lab.at("ws/read")).unwrap(), "CANARY\n");
    assert_eq!(std::fs::read_to_string(lab.at("ws/limit")).unwrap().trim(), "262144");
    let handle =
        prepare_skill_sandbox(&SkillExecutionConfig { timeout_ms: 500, ..config }).unwrap();
    let endless = handle.spawn(command("sleep 30"), |_| Ok::<(), SandboxError>(())).unwrap();
    let begun = std::time::Instant::now();
    assert!(endless.wait().unwrap().timed_out);
    assert!(begun.elapsed() < Duration::from_secs(20));
    // What could not be written down is not started.
    let refused = handle.spawn(command("touch started"), |_| Err(SandboxError::Ended));
    assert!(refused.is_err());
    assert!(!lab.at("ws/started").exists());
}

#[test]
fn there_is_no_weaker_form() {
    let config = SkillExecutionConfig::default();
    assert!(prepare_skill_sandbox(&config).is_err());
    let config = SkillExecutionConfig { filesystem_allowlist: vec!["/var/tmp".into()], ..config };
    let error = prepare_skill_sandbox(&config).unwrap_err();
    assert!(error.to_string().contains("use_subprocess"), "{error}");
    let config = SkillExecutionConfig {
        use_subprocess: true,
        seccomp_profile: Some("/nowhere/profile.json".into()),
        ..config
    };
    assert!(prepare_skill_sandbox(&config).is_err());
}

#[test]
fn a_profile_of_its_own_holds_and_is_written_down() {
    let lab = Lab::new(rustix::process::geteuid().as_raw());
    let profile = lab.at("profile.json");
    let text = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
        {"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":28}]}"#;
    std::fs::write(&profile, text).unwrap();
    let config = SkillExecutionConfig {
        use_subprocess: true,
        seccomp_profile: Some(profile.clone()),
        filesystem_allowlist: vec![lab.at("ws")],
        timeout_ms: 20_000,
        max_memory_bytes: 0,
    };
    let handle = prepare_skill_sandbox(&config).unwrap();
    // What was read holds, not what is there later.
    std::fs::write(&profile, r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).unwrap();
    let mut written = None;
    let note = |applied: &Applied| -> Result<(), SandboxError> {
        assert!(!lab.at("ws/made").exists());
        written = applied.seccomp_profile.clone();
        Ok(())
    };
    let script = "mkdir made 2> said; grep -q 'No space left' said && ! test -d made";
    let running = handle.spawn(vec!["sh".into(), "-c".into(), script.into()], note).unwrap();
    assert_eq!(running.wait().unwrap().code, 0);
    let written = written.unwrap();
    assert_eq!(written.path, profile.display().to_string());
    let sum = <sha2::Sha256 as sha2::Digest>::digest(text.as_bytes());
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sum, written.sha256);
}

/// The skill would bring its own rules along, and could change them for the next run.
#[test]
fn a_profile_that_the_skill_may_write_is_refused() {
    let lab = Lab::new(rustix::process::geteuid().as_raw());
    let profile = lab.at("ws/profile.json");
    std::fs::write(&profile, r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).unwrap();
    std::os::unix::fs::symlink(lab.at("ws"), lab.at("around")).unwrap();
    for path in [profile, lab.at("around/profile.json")] {
        let config = SkillExecutionConfig {
            use_subprocess: true,
            seccomp_profile: Some(path),
            filesystem_allowlist: vec![lab.at("ws")],
            ..SkillExecutionConfig::default()
        };
        let tried = prepare_skill_sandbox(&config).unwrap();
        let tried = tried.spawn(vec!["true".into()], |_| Ok::<(), SandboxError>(()));
        assert!(tried.unwrap_err().to_string().contains("could change"));
    }
}

#[test]
fn a_start_that_fails_under_a_narrow_profile_is_told() {
    let lab = Lab::new(rustix::process::geteuid().as_raw());
    let profile = lab.at("profile.json");
    let load = |text: &str| {
        std::fs::write(&profile, text).unwrap();
        let config = SkillExecutionConfig {
            use_subprocess: true,
            seccomp_profile: Some(profile.clone()),
            filesystem_allowlist: vec![lab.at("ws")],
            ..SkillExecutionConfig::default()
        };
        prepare_skill_sandbox(&config)
    };
    let narrow = r#"{"defaultAction":"SCMP_ACT_KILL_PROCESS","syscalls":[
        {"names":["execve","write","exit_group"],"action":"SCMP_ACT_ALLOW"}]}"#;
    let handle = load(narrow).unwrap();
    let start = |program: &str| handle.spawn(vec![program.into()], |_| Ok::<(), SandboxError>(()));
    let missing = start("/nowhere/at-all").unwrap_err();
    assert!(matches!(missing, SandboxError::Program { .. }), "{missing}");
    let missing = start("no-such-program").unwrap_err();
    assert!(matches!(missing, SandboxError::Program { .. }), "{missing}");
    // It starts, and its first call ends it.
    assert_eq!(start("/bin/true").unwrap().wait().unwrap().signal, Some(libc::SIGSYS));
    let without = r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["write"],"action":"SCMP_ACT_ALLOW"}]}"#;
    let error = load(without).unwrap_err().to_string();
    assert!(error.contains("`execve`") && error.contains("profile.json"), "{error}");
}
