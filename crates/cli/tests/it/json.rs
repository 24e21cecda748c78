//! The JSON form of every command.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::shared::{META, Ran, edit, folder_with_bundle, leaf_commands, run, succeed};

const REPORT: &str = "blobs bundle by_principal by_type created_at entries findings head mode \
                      more_findings part records seals unauthenticated unreferenced_blobs verdict";

/// Command, further arguments, and the keys of its result beside `command`, `ok` and `exit`.
const TABLE: &[(&str, &[&str], &str)] = &[
    ("aegx init", &["new", "--zip-out", "new.zip"], "bundle zip"),
    ("aegx add-blob", &["b", "hello.txt"], "blob mime size"),
    (
        "aegx add-record",
        &["b", "--type", "Rollback", "--principal", "SYS", "--meta", META, "--inline", "-1.5"],
        "notes recordId",
    ),
    ("aegx export", &["b", "b.zip"], "bundle zip"),
    ("aegx import", &["b.zip", "c"], "bundle verified zip"),
    ("aegx verify", &["b"], REPORT),
    ("aegx summarize", &["b"], REPORT),
    ("approvals list", &["--state-dir", "policed"], "approvals forged pending"),
    ("completions", &["bash"], "script shell"),
    (
        "init",
        &["ws", "--state-dir", "policed"],
        "agents changes device_key dry_run state_dir workspaces",
    ),
    (
        "config show",
        &["--state-dir", "policed"],
        "changes counter disable_policy disable_suffix files settings signed_at state strict_policy warnings",
    ),
    ("config sign", &["--yes", "--state-dir", "policed"], "files record"),
    (
        "md sign",
        &["--yes", "-w", "ws", "--state-dir", "policed"],
        "content_sha256 counter hmac_sha256 notes record signed_at workspace",
    ),
    (
        "md verify",
        &["-w", "ws", "--state-dir", "policed"],
        "content_sha256 reason signed_at state warnings",
    ),
    (
        "md start",
        &["-w", "ws", "--state-dir", "policed"],
        "aborted block injected reason record state warnings",
    ),
    (
        "md check",
        &["--write", "x", "-w", "ws", "--state-dir", "policed"],
        "alert denials level record",
    ),
    (
        "md audit",
        &["--state-dir", "policed"],
        "broken_lines chain compared corrupted entries missing never_signed rows segments unknown",
    ),
    (
        "md status",
        &["-w", "ws", "--state-dir", "policed"],
        "audit_agrees audit_chain audit_entries config device_key disable_policy disable_suffix exists pending policy \
         protected protected_by_system reason signed_at state strict_policy warnings",
    ),
    ("md watch", &["--seconds", "0", "-w", "ws", "--state-dir", "policed"], "changes"),
    (
        "status",
        &["ws", "--state-dir", "policed"],
        "counts enforcement files in_place refused staged staging_problem unfinished workspace",
    ),
    (
        "diff",
        &["ws", "--state-dir", "policed"],
        "changes concerns hash objections refused workspace",
    ),
    (
        "stage",
        &["soulguard.json", "-w", "ws", "--state-dir", "policed"],
        "already deleted made record staged workspace",
    ),
    ("reset", &["ws", "--all", "--state-dir", "policed"], "record reset staged workspace"),
    ("sync", &["ws", "--state-dir", "policed"], "history mended record versions workspace"),
    ("apply", &["ws", "--yes", "--state-dir", "policed"], "history record workspace"),
    (
        "protect",
        &["notes.md", "-w", "ws", "--yes", "--state-dir", "policed"],
        "already files history moved record versions workspace",
    ),
    (
        "watch",
        &["notes.md", "-w", "ws", "--yes", "--state-dir", "policed"],
        "already files history moved record versions workspace",
    ),
    (
        "release",
        &["notes.md", "-w", "ws", "--yes", "--state-dir", "policed"],
        "already files history moved record versions workspace",
    ),
    ("history", &["-w", "ws", "--state-dir", "policed"], "damage entries more workspace"),
    (
        "restore",
        &["soulguard.json@-0", "-w", "ws", "--yes", "--state-dir", "policed"],
        "commit name record workspace",
    ),
    (
        "snapshot take",
        &["-w", "ws", "--state-dir", "policed"],
        "bytes files id left_out more_left_out record scope workspace",
    ),
    ("snapshot list", &["--state-dir", "policed"], "more snapshots"),
    (
        "snapshot show",
        &["SNAPSHOT", "--state-dir", "policed"],
        "covers files id left_out more_left_out reason record scope state taken workspace",
    ),
    ("snapshot diff", &["SNAPSHOT", "--state-dir", "policed"], "changes id state"),
    (
        "rollback",
        &["SNAPSHOT", "--yes", "--state-dir", "policed"],
        "changes dry_run finished kept left record removed restored snapshot",
    ),
    (
        "undo",
        &["--list", "--state-dir", "policed"],
        "calls created dry_run kept left lost removed restored",
    ),
    ("daemon stop", &["--state-dir", "policed"], "stopped"),
    ("daemon install-units", &["--print"], "units written"),
    ("demo", &[], "handed held scenes seconds"),
    (
        "evidence append",
        &["--state-dir", "state", "--type", "Rollback", "--principal", "SYS", "--inline", "{}"],
        "appended index recordId",
    ),
    (
        "evidence check",
        &["p.tlog-proof"],
        "index log pinned proof record recordId refused size verdict witnesses",
    ),
    ("evidence compare", &["head", "head", "--log", "state/log.pub"], "comparison detail"),
    ("evidence export", &["--state-dir", "state", "e"], "bundle exported part"),
    (
        "evidence prove",
        &["--state-dir", "state", "PROVED", "--out", "q.tlog-proof"],
        "bytes index proof recordId",
    ),
    ("evidence reindex", &["--state-dir", "state"], "records"),
    ("evidence seal", &["--state-dir", "state"], "epoch log next_due sealed size"),
    (
        "evidence verify",
        &["--state-dir", "state"],
        "by_principal by_type findings first head last more_findings open_tail_bytes records recoveries \
         seals segments state_dir verdict",
    ),
    (
        "evidence anchor add",
        &["here", "--file", "anchor", "--create", "--state-dir", "anchored"],
        "log name place",
    ),
    ("evidence anchor list", &["--state-dir", "anchored"], "anchors"),
    ("evidence anchor push", &["--state-dir", "anchored"], "anchors epoch size"),
    ("evidence anchor clear", &["here", "--yes", "--state-dir", "anchored"], "cleared name"),
    ("evidence anchor remove", &["here", "--state-dir", "anchored"], "name"),
    ("log", &["--state-dir", "anchored"], "records reindexed"),
    ("rules check", &["--state-dir", "policed"], "digest files problems rules state warnings"),
    (
        "rules explain",
        &[
            "--state-dir",
            "policed",
            "--principal",
            "WEB",
            "--surface",
            "FileSystem",
            "--act",
            "read",
        ],
        "answered considered digest facts matched notes reason recorded rule taint verdict",
    ),
    ("rules test", &["cases.toml", "--state-dir", "policed"], "cases digest failed passed"),
    ("rules list", &["--state-dir", "policed"], "digest rules state"),
    ("rules list", &["--schema"], "text"),
    (
        "contamination",
        &["PROVED", "--state-dir", "state"],
        "by_type causes direct direction files graph left memory more records reindexed result sessions source \
         stopped truncated",
    ),
    ("notifications", &["--state-dir", "state"], "acknowledged more notices record reindexed"),
    (
        "prove",
        &["--state-dir", "state"],
        "action_required actions agent_notifications alerts counted_from filter generated_at health \
         html metrics more_alerts more_notifications protection rollback_status version",
    ),
    (
        "sandbox audit",
        &["--profile", "profile.json"],
        "capabilities compliance container_marks findings in_container landlock_abi namespaces \
         no_new_privs readonly_root resource_limits score seccomp_active seccomp_mode \
         unknown_namespaces user_namespaces",
    ),
    ("sandbox why", &["hello.txt"], "hosts last paths profile"),
    ("scan", &["hello.txt"], "files verdict"),
    ("skill verify", &["hello.txt"], "complete findings skills suppressed verdict"),
    (
        "skill approve",
        &["skill", "--yes", "--state-dir", "policed"],
        "approved hosts name record runs_commands tree variables verdict",
    ),
    (
        "skill install",
        &["skill", "installed", "--yes", "--state-dir", "policed"],
        "approved installed name place reason record tree verdict",
    ),
    (
        "skill pin",
        &["installed", "--yes", "--state-dir", "policed"],
        "approved hosts name record runs_commands tree variables verdict",
    ),
    ("skill list", &["--state-dir", "policed"], "skills void"),
    ("skill diff", &["installed", "--state-dir", "policed"], "changes name"),
    ("man", &[], "page"),
    ("man", &["--out", "pages"], "directory pages"),
    ("witness key", &["--dir", "witness"], "directory key name"),
];

fn parse(ran: &Ran) -> Value {
    assert_eq!(ran.stderr, "", "{ran:?}");
    assert_eq!(ran.stdout.matches('\n').count(), 1, "{ran:?}");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["exit"], ran.code);
    value
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn every_command_has_its_documented_keys() {
    let folder = folder_with_bundle();
    let ids = crate::evidence::sealed_state(folder.path());
    let prove = ["--state-dir", "state", "evidence", "prove", &ids[0], "--out", "p.tlog-proof"];
    succeed(folder.path(), &prove);
    let checkpoints = std::fs::read(folder.path().join("state/checkpoints")).unwrap();
    let frames = wardkeep_evidence::seal::split_frames(&checkpoints);
    let Some(wardkeep_evidence::seal::Frame::Note { text, .. }) = frames.first() else {
        panic!("a seal")
    };
    std::fs::write(folder.path().join("head"), text).unwrap();
    std::fs::create_dir(folder.path().join("ws")).unwrap();
    std::fs::write(folder.path().join("ws/notes.md"), "notes\n").unwrap();
    std::fs::create_dir(folder.path().join("skill")).unwrap();
    std::fs::write(folder.path().join("skill/SKILL.md"), "---\nname: a\n---\n# A\n").unwrap();
    std::fs::write(folder.path().join("cases.toml"), crate::rules::CASES).unwrap();
    let nothing = r#"{"require_container":false,"require_seccomp":false}"#;
    std::fs::write(folder.path().join("profile.json"), nothing).unwrap();
    let mut snapshot = String::new();
    for (command, arguments, expected) in TABLE {
        let arguments = arguments.iter().map(|word| match *word {
            "PROVED" => &ids[1],
            "SNAPSHOT" => &snapshot,
            word => word,
        });
        let words: Vec<&str> = command.split(' ').chain(arguments).collect();
        let value = parse(&run(folder.path(), &[&words[..], &["--json"]].concat()));
        assert_eq!((&value["command"], &value["ok"]), (&Value::from(*command), &Value::Bool(true)));
        if *command == "snapshot take" {
            snapshot = value["id"].as_str().unwrap().to_owned();
        }
        let expected = expected.split_whitespace().chain(["command", "ok", "exit"]).collect();
        assert_eq!(keys(&value), expected, "{command}");
        let docs = include_str!("../../../../docs/cli.md");
        for key in keys(&value) {
            assert!(docs.contains(&format!("`{key}`")), "docs/cli.md does not tell of `{key}`");
        }
    }
    // They need a terminal, or print their object and go on: `a_witness_says_when_it_is_ready`; or
    // something to be there, as in `approvals.rs`, `daemon.rs`, `proxy.rs` and `notify.rs`.
    let others = [
        "approvals approve",
        "approvals deny",
        "approvals show",
        "config edit",
        "daemon status",
        "doctor",
        "egress",
        "evidence body",
        "evidence erase",
        "hook",
        "install",
        "md edit",
        "notify",
        "proxy",
        "run",
        "serve",
        "top",
        "uninstall",
        "witness serve",
    ];
    let tested: BTreeSet<&str> = TABLE.iter().map(|(command, ..)| *command).chain(others).collect();
    let all = leaf_commands();
    assert_eq!(tested, all.iter().map(String::as_str).collect(), "a row for every command");
}

#[test]
fn a_witness_says_when_it_is_ready() {
    let scene = crate::state::Scene::new();
    let witness = scene.witness("s", &[]);
    let expected = "accept_new address command directory exit key logs name ok url";
    assert_eq!(keys(&witness.ready), expected.split(' ').collect());
    assert_eq!(witness.ready["command"], "witness serve");
    let docs = include_str!("../../../../docs/cli.md");
    for key in keys(&witness.ready) {
        assert!(docs.contains(&format!("`{key}`")), "docs/cli.md does not tell of `{key}`");
    }
}

#[test]
fn errors_have_one_shape() {
    let folder = folder_with_bundle();
    for (code, command, arguments) in [
        (1, Value::from("aegx init"), &["aegx", "init", "b"][..]),
        (4, Value::from("aegx verify"), &["aegx", "verify", "\u{1b}[31mnowhere"]),
        (4, Value::from("man"), &["man", "--out", "hello.txt/x"]),
        (2, Value::Null, &["aegx", "verify"]),
        (2, Value::Null, &["nothing\n\u{1b}[31m"]),
        (2, Value::Null, &[]),
    ] {
        let ran = run(folder.path(), &[arguments, &["--json"]].concat());
        let value = parse(&ran);
        assert_eq!((ran.code, &value["command"]), (code, &command));
        assert_eq!(value["ok"], false);
        assert_eq!(keys(&value), BTreeSet::from(["command", "ok", "exit", "error"]));
        assert_eq!(keys(&value["error"]), BTreeSet::from(["hint", "message"]));
        assert!(value["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    }
    let value = parse(&run(folder.path(), &["aegx", "verify", "--json"]));
    let message = "the following required arguments were not provided: <BUNDLE>";
    assert_eq!(value["error"]["message"], message);
}

#[test]
fn a_failed_check_is_never_ok() {
    let folder = folder_with_bundle();
    edit(&folder.path().join("b/records.jsonl"), "\"inline\":1", "\"inline\":2");
    for (command, code) in [("verify", 2), ("summarize", 0)] {
        let ran = run(folder.path(), &["aegx", command, "b", "--json"]);
        let value = parse(&ran);
        assert_eq!((ran.code, &value["ok"]), (code, &Value::Bool(false)));
        assert_eq!(value["verdict"], "FAIL");
        let finding = &value["findings"][0];
        assert_eq!(finding["check"], "record-id");
        assert_eq!(
            finding["place"],
            serde_json::json!({"file":"records.jsonl","line":1,"index":0})
        );
        assert!(finding["expected"].is_string() && finding["found"].is_string());
    }
}

#[test]
fn notes_are_part_of_the_answer() {
    let folder = folder_with_bundle();
    let meta = r#"{"ts":"2026-01-31T12:00:00Z","a":1,"a":2}"#;
    let add = ["aegx", "add-record", "b", "--type", "Rollback", "--principal", "SYS"];
    let rest = ["--meta", meta, "--inline", "1.5", "--json"];
    let value = parse(&run(folder.path(), &[&add[..], &rest].concat()));
    assert_eq!(value["notes"].as_array().map(Vec::len), Some(2), "{value}");
    succeed(folder.path(), &["aegx", "verify", "b"]);
}
