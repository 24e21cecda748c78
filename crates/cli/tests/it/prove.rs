//! `wardkeep prove`, `notifications` and `contamination` with the real binary.

use std::fs;
use std::path::Path;

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::store::{Event, Store, StoreConfig};

use crate::shared::is_harmless;
use crate::state::Scene;

const EVIL: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}</td><script>alert(1)</script>\n\"'&";

fn append(
    store: &Store,
    kind: RecordType,
    session: &str,
    parents: &[RecordId],
    content: &serde_json::Value,
) -> RecordId {
    let text = content.to_string();
    let content = json::parse(text.as_bytes()).unwrap();
    let event =
        Event { session, parents: parents.to_vec(), ..Event::new(kind, Principal::Web, content) };
    store.append(event).unwrap().id
}

/// The record of a decision, as the monitor writes them.
pub(crate) fn decided(
    state: &Path,
    kind: RecordType,
    principal: Principal,
    content: &serde_json::Value,
) -> RecordId {
    let clock = Clock::new(|| Timestamp::from_unix(1_780_000_000).unwrap());
    let store = Store::open(state, StoreConfig::new(clock)).unwrap();
    let text = content.to_string();
    let content = json::parse(text.as_bytes()).unwrap();
    store.append(Event::new(kind, principal, content)).unwrap().id
}

fn denied(subject: &str) -> serde_json::Value {
    serde_json::json!({
        "kind":"decision","v":1,"act":"write","surface":"DurableMemory","subject":subject,
        "verdict":"deny","rule":"mi-deny-tainted","reason":"it came from the web","category":"MI",
        "severity":"high","suggestion":"look at the page"
    })
}

/// A state directory with an alert in it.
pub(crate) fn alarm(state: &Path) {
    let clock = Clock::new(|| Timestamp::from_unix(1_780_000_000).unwrap());
    let store = Store::open(state, StoreConfig::new(clock)).unwrap();
    append(&store, RecordType::GuardDecision, "s", &[], &denied("/w/MEMORY.md"));
}

#[test]
fn a_report_says_what_to_do_until_it_is_acknowledged() {
    let scene = Scene::new();
    alarm(&scene.at("s"));
    let ran = scene.expect(20, "s", &["prove"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "Protection: 1 blocked of 1 actions judged");
    assert!(ran.stdout.contains("\n  blocked  1 memory\n  alerts   1 high\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("denied: write /w/MEMORY.md (it came from the web)"), "{ran:?}");
    assert!(ran.stdout.contains("\nEvidence: holds, 1 records\n"), "{ran:?}");
    assert!(ran.stdout.ends_with("Action required; 1 notification is not acknowledged\n"));
    assert!(ran.stderr.starts_with("hint: look at 1 high or critical alert"), "{ran:?}");
    let shown = scene.expect(0, "s", &["notifications"]).stdout;
    assert!(shown.contains("high MI  denied: write"), "{shown}");
    assert!(shown.contains("\n    look at the page\n"), "{shown}");
    let answer = scene.json(0, "s", &["notifications", "--ack"]);
    assert_eq!((&answer["acknowledged"], answer["record"].is_string()), (&0.into(), true));
    assert_eq!(scene.expect(0, "s", &["notifications"]).stdout, "No notifications.\n");
    assert_eq!(
        scene.json(0, "s", &["notifications", "--all"])["notices"].as_array().unwrap().len(),
        1
    );
    // Nothing is written when there is nothing to acknowledge.
    assert!(scene.json(0, "s", &["notifications", "--ack"])["record"].is_null());
    assert!(scene.json(0, "s", &["notifications", "--all", "--ack"])["record"].is_null());
    let report = scene.json(0, "s", &["prove"]);
    assert_eq!(report["action_required"], false);
    assert_eq!(report["protection"]["mi_blocks"], 1);
    let none = scene.json(0, "s", &["prove", "--category", "NETWORK"]);
    assert_eq!(none["protection"]["mi_blocks"], 0);
    let mut confined = scene.command("s", &["notifications", "--ack"]);
    let refused = confined.env("WARDKEEP_CONFINED", "1").output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn evidence_that_was_changed_is_said_to_be_so() {
    let scene = Scene::new();
    alarm(&scene.at("s"));
    scene.expect(20, "s", &["prove"]);
    crate::shared::edit(&scene.at("s/journal/00000001.jsonl"), "from the web", "from the owl");
    let ran = scene.expect(2, "s", &["prove"]);
    assert!(ran.stdout.contains("\nEvidence: does not hold, 1 records\n"), "{ran:?}");
    assert!(ran.stderr.contains("hint: the evidence does not hold"), "{ran:?}");
    let answer = scene.json(2, "s", &["prove"]);
    assert_eq!((&answer["ok"], &answer["health"]["chain_valid"]), (&false.into(), &false.into()));
}

#[test]
fn hostile_records_stay_text_everywhere() {
    let scene = Scene::new();
    let store = scene.store("s");
    let root = append(&store, RecordType::ToolResult, EVIL, &[], &serde_json::json!(EVIL));
    let mut evil = denied(EVIL);
    for key in ["act", "reason", "rule", "suggestion"] {
        evil[key] = EVIL.into();
    }
    append(&store, RecordType::GuardDecision, EVIL, &[root], &evil);
    let alert = serde_json::json!({
        "kind":"alert","v":1,"alert":EVIL,"category":"ROLLBACK","severity":"critical",
        "message":EVIL,"suggestion":EVIL
    });
    append(&store, RecordType::GuardDecision, EVIL, &[root], &alert);
    let mut write = denied(EVIL);
    write["verdict"] = "allow".into();
    append(&store, RecordType::FileWrite, EVIL, &[root], &write);
    drop(store);
    let id = root.to_string();
    for (code, arguments) in [
        (20, &["prove"][..]),
        (20, &["prove", "--json"]),
        (20, &["prove", "--session", EVIL, "--html", "page.html"]),
        (2, &["prove", "--category", EVIL]),
        (0, &["notifications"]),
        (0, &["notifications", "--json"]),
        (0, &["contamination", &id, "--graph", "graph.svg"]),
        (0, &["contamination", &id, "--json"]),
        (0, &["contamination", &id[..8], "--backward", "--direct"]),
        (1, &["contamination", EVIL]),
    ] {
        let ran = scene.expect(code, "s", arguments);
        assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{arguments:?} {ran:?}");
    }
    for file in ["page.html", "graph.svg"] {
        let text = fs::read_to_string(scene.at(file)).unwrap();
        assert!(is_harmless(&text) && !text.contains("<script"), "{file}");
        assert!(text.contains("&lt;script"), "{file}");
    }
}

#[test]
fn contamination_lists_what_came_from_a_record() {
    let scene = Scene::new();
    let store = scene.store("s");
    let page = append(&store, RecordType::ToolResult, "s", &[], &serde_json::json!("page"));
    let content = serde_json::json!({
        "kind":"decision","v":1,"act":"write","surface":"FileSystem","subject":"/w/a","verdict":"allow"
    });
    let wrote = append(&store, RecordType::FileWrite, "s", &[page], &content);
    drop(store);
    let shown = scene.expect(0, "s", &["contamination", &page.to_string()[..12]]).stdout;
    assert!(shown.starts_with(&format!("1 record came from {page:.10}\n")), "{shown}");
    assert!(shown.contains(&format!("\n  file     /w/a       first by {wrote:.10}\n")), "{shown}");
    let answer = scene.json(0, "s", &["contamination", &wrote.to_string(), "--backward"]);
    assert_eq!((&answer["records"], &answer["direction"]), (&1.into(), &"backward".into()));
    // The index of another log is thrown away.
    let other = Scene::new();
    let id = other.grow("t", 3)[0].id.to_string();
    other.expect(0, "t", &["contamination", &id]);
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(scene.at(&format!("s/index.sqlite{suffix}")));
    }
    fs::copy(other.at("t/index.sqlite"), scene.at("s/index.sqlite")).unwrap();
    let answer = scene.json(0, "s", &["contamination", &page.to_string()]);
    assert_eq!(answer["records"], 1);
}

#[test]
fn nobody_appends_decisions_from_outside() {
    let scene = Scene::new();
    scene.grow("s", 1);
    for (kind, word) in [
        ("FileWrite", "decision"),
        ("Rollback", "rollback"),
        ("Snapshot", "snapshot"),
        ("ToolCall", "recovery"),
        ("GuardDecision", "anything"),
    ] {
        let content = format!("{{\"kind\":\"{word}\",\"v\":1}}");
        let append = ["evidence", "append", "--type", kind, "--principal", "USER", "--inline"];
        scene.expect(1, "s", &[&append[..], &[&content]].concat());
    }
    let other = ["evidence", "append", "--type", "ToolCall", "--principal", "TOOL", "--inline"];
    scene.expect(0, "s", &[&other[..], &["{\"kind\":\"bash\"}"]].concat());
}
