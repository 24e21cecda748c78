//! What confines the agent is looked at when a session begins.

use wardkeep_evidence::record::{Payload, Record, RecordType};
use wardkeep_monitor::monitor::{EventBody, Hook, Monitor, Part, Surroundings, WhoBody};
use wardkeep_sandbox::audit::{Compliance, Probes, Profile, Roots, audit};

use super::{Stage, text};

const DAY: i64 = 24 * 60 * 60;

/// More than any machine has: a session never complies.
fn strict() -> Profile {
    Profile { max_open_files: Some(0), ..Profile::default() }
}

fn nothing() -> Profile {
    Profile { require_container: false, require_seccomp: false, ..Profile::default() }
}

fn open(stage: &Stage, profile: Profile) -> Monitor {
    let mut config = stage.config();
    config.sandbox = profile;
    Monitor::open(&stage.state(), config).unwrap()
}

/// Begins a session; its record.
fn begin(stage: &Stage, monitor: &Monitor, session: &str, whose: Surroundings) -> Record<'static> {
    let agent = session.split(':').next().unwrap().to_owned();
    let who = WhoBody {
        agent,
        session: session.to_owned(),
        workspace: stage.work(),
        principal: None,
        taint: vec![],
        parents: vec![],
    };
    let what = Hook::SessionStart { channel: "terminal".to_owned(), parent: None };
    let body = EventBody { who, parts: vec![Part { principal: None, what }] };
    let said = monitor.event_of(&body, whose).unwrap();
    let id = wardkeep_evidence::hash::RecordId::from_hex(&said.answers[0].record).unwrap();
    stage.record(id)
}

fn is_alert(record: &Record<'_>) -> bool {
    text(record, "category") == Some("SANDBOX")
}

fn content(record: &Record<'_>) -> serde_json::Value {
    let Payload::Inline(content) = &record.payload else { panic!("{record:?}") };
    serde_json::Value::from(content.clone())
}

#[test]
fn a_session_without_confinement_raises_an_alert() {
    let stage = Stage::new();
    let monitor = open(&stage, strict());
    let record = begin(&stage, &monitor, "claude:1", Surroundings::Own);
    assert_eq!(record.kind, RecordType::SessionStart);
    let found = audit(&Roots::here(), &Probes::quick(), &strict());
    let severity = match found.compliance {
        Compliance::None => "critical",
        Compliance::Partial => "high",
        Compliance::Full => panic!("{found:#?}"),
    };
    assert!(is_alert(&record), "{record:?}");
    assert_eq!(text(&record, "severity"), Some(severity));
    assert_eq!(text(&record, "sandbox"), Some(found.compliance.as_str()));
    assert!(text(&record, "suggestion").is_some_and(|next| next.contains("wardkeep run")));
    let content = content(&record);
    assert_eq!(content["audit"]["compliance"], found.compliance.as_str());
    let findings = content["audit"]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["id"] == "max-open-files" && one["required"] == true));
    drop(monitor);
    // What was found is part of the chain.
    assert!(crate::shared::verify(&stage.state()).passed());
}

#[test]
fn a_session_that_complies_raises_none() {
    let stage = Stage::new();
    let monitor = open(&stage, nothing());
    let record = begin(&stage, &monitor, "claude:1", Surroundings::Own);
    assert!(!is_alert(&record));
    assert_eq!(text(&record, "sandbox"), Some("full"));
    assert_eq!(text(&record, "rule"), Some("sandbox-full"));
}

#[test]
fn the_same_is_told_once_a_day_and_always_recorded() {
    let stage = Stage::new();
    let monitor = open(&stage, strict());
    let first = begin(&stage, &monitor, "claude:1", Surroundings::Own);
    assert!(is_alert(&first));
    for number in 2..5 {
        stage.pass(3600);
        let again = begin(&stage, &monitor, &format!("claude:{number}"), Surroundings::Own);
        assert!(!is_alert(&again), "{again:?}");
        assert_eq!(text(&again, "severity"), Some("info"));
        // Rules still know of it.
        assert_eq!(text(&again, "sandbox"), text(&first, "sandbox"));
        assert!(content(&again)["audit"]["score"].is_u64());
    }
    // Another agent may be confined in another way; and a monitor that is opened anew knows the same.
    drop(monitor);
    let monitor = open(&stage, strict());
    assert!(!is_alert(&begin(&stage, &monitor, "claude:6", Surroundings::Own)));
    assert!(is_alert(&begin(&stage, &monitor, "codex:1", Surroundings::Own)));
    stage.pass(DAY);
    assert!(is_alert(&begin(&stage, &monitor, "claude:7", Surroundings::Own)));
}

#[test]
fn another_process_is_looked_at_from_outside() {
    let stage = Stage::new();
    let monitor = open(&stage, strict());
    let own = begin(&stage, &monitor, "claude:1", Surroundings::Of(std::process::id()));
    let here = audit(&Roots::here(), &Probes::default(), &strict());
    assert_eq!(content(&own)["audit"]["compliance"], here.compliance.as_str());
    // A process that is not there is confined by nothing that anybody could see.
    let gone = begin(&stage, &monitor, "codex:1", Surroundings::Of(u32::MAX >> 1));
    assert_eq!(text(&gone, "sandbox"), Some("none"));
    assert_eq!(text(&gone, "severity"), Some("critical"));
}

#[test]
fn nothing_is_looked_at_unasked() {
    let stage = Stage::new();
    let monitor = open(&stage, strict());
    let record = begin(&stage, &monitor, "claude:1", Surroundings::Unseen);
    assert_eq!(text(&record, "sandbox"), None);
    assert!(!is_alert(&record));
}

#[test]
fn a_model_session_that_may_not_begin_sends_nothing() {
    let stage = Stage::new();
    let rule = "@id(\"nobody\")\nforbid (principal, action == Action::\"start\", \
                resource == Surface::\"SandboxCompliance\");\n";
    std::fs::write(stage.state().join("rules.cedar"), rule).unwrap();
    let monitor = stage.open();
    let ask = |monitor: &Monitor, begin: bool| {
        let who = serde_json::json!({
            "agent": "a", "session": "a:1", "workspace": stage.work(), "principal": "USER"
        });
        let asked = serde_json::json!({
            "model": "request", "who": who, "begin": begin, "parent": null, "system": "Be kind.",
            "fresh": [{"tool": null, "principal": null, "call": null, "text": "hello"}], "call": null
        });
        monitor.model(&serde_json::from_value(asked).unwrap(), Surroundings::Unseen).unwrap()
    };
    // The proxy begins a session once; what it remembers does not make it begun.
    for begin in [true, false, false] {
        let answer = ask(&monitor, begin);
        assert_eq!(
            answer.denied.map(|denied| denied.rule).as_deref(),
            Some("own:nobody"),
            "{begin}"
        );
        assert!(answer.block.is_none() && answer.told.is_empty());
    }
    drop(monitor);
    assert!(ask(&stage.open(), false).denied.is_some());
    std::fs::remove_file(stage.state().join("rules.cedar")).unwrap();
    let answer = ask(&stage.open(), false);
    assert!(answer.denied.is_none() && answer.block.is_some(), "{answer:?}");
}
