//! `wardkeep sandbox`

use serde_json::Value;

use crate::shared::run;

#[test]
fn an_audit_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    // Less than any process has open.
    std::fs::write(folder.path().join("p.json"), r#"{"max_open_files":0}"#).unwrap();
    let ran = run(folder.path(), &["sandbox", "audit", "--profile", "p.json"]);
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(ran.stdout.starts_with("Confinement: "), "{ran:?}");
    assert!(ran.stderr.contains("max-open-files: start the agent with `wardkeep run`"), "{ran:?}");
    let ran = run(folder.path(), &["sandbox", "audit", "--profile", "p.json", "--json"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&value["ok"], &value["exit"]), (&Value::Bool(false), &Value::from(20)));
    let findings = value["findings"].as_array().unwrap();
    let files = findings.iter().find(|one| one["id"] == "max-open-files").unwrap();
    assert_eq!(
        (&files["state"], &files["required"]),
        (&Value::from("missing"), &Value::Bool(true))
    );
    // Only the command tries what a hook has no time for.
    assert!(findings.iter().any(|one| one["id"] == "syscalls"));
    assert!(value["user_namespaces"].is_string() && value["landlock_abi"].is_u64());
}

#[test]
fn a_profile_with_unknown_keys_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.json"), r#"{"require_secomp":true}"#).unwrap();
    let ran = run(folder.path(), &["sandbox", "audit", "--profile", "p.json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("`p.json` is no profile"), "{ran:?}");
}
