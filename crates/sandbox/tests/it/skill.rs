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
        timeout_ms: 500,
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
    assert_eq!(written.timeout_ms, Some(500));
    assert_eq!(written.limits.memory, Some(256 << 20));
    assert_eq!(std::fs::read_to_string(lab.at("ws/read")).unwrap(), "CANARY\n");
    assert_eq!(std::fs::read_to_string(lab.at("ws/limit")).unwrap().trim(), "262144");
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
