//! `wardkeep log` with the real binary.

use std::fs;

use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_monitor::store::Event;

use crate::shared::is_harmless;
use crate::state::Scene;

const EVIL: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\nno";

fn event<'a>(kind: RecordType, session: &'a str, agent: &'a str, content: &'a str) -> Event<'a> {
    Event { session, agent, ..Event::new(kind, Principal::User, Value::from(content)) }
}

fn count(answer: &serde_json::Value) -> usize {
    answer["records"].as_array().unwrap().len()
}

#[test]
fn the_newest_records_come_first_and_filters_hold() {
    let scene = Scene::new();
    let store = scene.store("s");
    for (kind, session, agent) in [
        (RecordType::SessionStart, "one", "a"),
        (RecordType::ToolCall, "one", "a"),
        (RecordType::ToolCall, "two", "b"),
    ] {
        store.append(event(kind, session, agent, "hello")).unwrap();
    }
    drop(store);
    let shown = scene.expect(0, "s", &["log"]).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines[0].starts_with("  index  time  "), "{shown}");
    assert!(
        lines[1].starts_with("  2      2026-05-28T") && lines[1].ends_with("  hello"),
        "{shown}"
    );
    for (arguments, expected) in [
        (&[][..], 3),
        (&["--limit", "2"], 2),
        (&["--limit", "0"], 0),
        (&["--session", "one"], 2),
        (&["--session", "one", "--type", "ToolCall"], 1),
        (&["--agent", "b"], 1),
        (&["--agent", "nobody"], 0),
        (&["--since", "2026-05-01T00:00:00Z"], 3),
        (&["--until", "2026-05-01T00:00:00Z"], 0),
        (&["--since", "15m"], 0),
        (&["--until", "2h"], 3),
    ] {
        let answer = scene.json(0, "s", &[&["log"], arguments].concat());
        assert_eq!(count(&answer), expected, "{arguments:?}");
        assert_eq!(answer["reindexed"], false);
    }
    let answer = scene.json(0, "s", &["log"]);
    let indices: Vec<_> =
        answer["records"].as_array().unwrap().iter().map(|line| &line["entry"]["idx"]).collect();
    assert_eq!(indices, [2, 1, 0]);
    assert_eq!(answer["records"][0]["record"]["meta"]["session"], "two");
    // Quiet leaves the result.
    assert_eq!(scene.expect(0, "s", &["log", "--quiet"]).stdout, shown);
}

#[test]
fn one_record_is_shown_in_full() {
    let scene = Scene::new();
    let ids: Vec<String> =
        scene.grow("s", 3).iter().map(|appended| appended.id.to_string()).collect();
    for name in [ids[1].as_str(), &ids[1][..8], &ids[1][..30]] {
        let shown = scene.expect(0, "s", &["log", name]).stdout;
        for expected in [["record", ids[1].as_str()], ["index", "1"]] {
            let said = |line: &str| line.split_whitespace().eq(expected);
            assert!(shown.lines().any(said), "{expected:?}: {shown}");
        }
        assert!(!shown.contains('{') && !shown.contains('"'), "{shown}");
        let answer = scene.json(0, "s", &["log", name]);
        assert_eq!(count(&answer), 1);
        assert_eq!(answer["records"][0]["record"]["recordId"], ids[1].as_str());
    }
    let zeros = "0".repeat(64);
    for name in [&ids[1][..7], "", "nothing", &zeros, &ids[1].to_uppercase(), EVIL] {
        let refused = scene.expect(1, "s", &["log", "--", name]);
        assert!(is_harmless(&refused.stderr), "{refused:?}");
    }
}

#[test]
fn hostile_records_stay_text() {
    let scene = Scene::new();
    let store = scene.store("s");
    let long = "x".repeat(100_000);
    let mut id = String::new();
    for content in [EVIL, "wide \u{ff37}\u{ff37}", &long] {
        id = store.append(event(RecordType::ToolCall, EVIL, EVIL, content)).unwrap().id.to_string();
    }
    drop(store);
    for arguments in [
        &["log"][..],
        &["log", "--json"],
        &["log", &id],
        &["log", "--session", EVIL],
        &["log", "--since", EVIL],
        &["log", "--type", EVIL],
    ] {
        let ran = scene.run("s", arguments);
        assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{arguments:?} {ran:?}");
    }
    let shown = scene.expect(0, "s", &["log"]).stdout;
    // The head, and a line for each, which nothing cuts where it does not go to a terminal.
    assert_eq!(shown.lines().count(), 4, "{shown}");
    assert!(shown.contains(&"x".repeat(1000)) && !shown.contains('…'), "{shown}");
    // What was written is what is there.
    let answer = scene.json(0, "s", &["log", "--session", EVIL]);
    assert_eq!(answer["records"][2]["record"]["payload"]["inline"], EVIL);
}

#[test]
fn a_wrong_index_changes_nothing_that_is_shown() {
    let scene = Scene::new();
    for (state, session) in [("a", "mine"), ("b", "else")] {
        let store = scene.store(state);
        for _ in 0..3 {
            store.append(event(RecordType::ToolCall, session, "x", "same length")).unwrap();
        }
        drop(store);
        assert_eq!(count(&scene.json(0, state, &["log"])), 3);
    }
    // Another log's index says that these lines are of another session.
    let steal = || {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(scene.at(&format!("a/index.sqlite{suffix}")));
        }
        fs::copy(scene.at("b/index.sqlite"), scene.at("a/index.sqlite")).unwrap();
    };
    steal();
    let answer = scene.json(0, "a", &["log", "--session", "else"]);
    assert_eq!((count(&answer), &answer["reindexed"]), (0, &true.into()));
    steal();
    let noted = scene.expect(0, "a", &["log", "--session", "else"]);
    assert!(noted.stderr.starts_with("note: the index was wrong about 3 records"), "{noted:?}");
    let answer = scene.json(0, "a", &["log", "--session", "mine"]);
    assert_eq!((count(&answer), &answer["reindexed"]), (3, &false.into()));
    // A record is found by its id whatever the index says.
    let id = answer["records"][0]["record"]["recordId"].as_str().unwrap();
    for name in [id, &id[..10]] {
        steal();
        scene.expect(0, "a", &["log", name]);
    }
    // Garbage is replaced; where nothing can be, the journal is read.
    fs::write(scene.at("a/index.sqlite"), "garbage".repeat(1000)).unwrap();
    assert_eq!(count(&scene.json(0, "a", &["log"])), 3);
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(scene.at(&format!("a/index.sqlite{suffix}")));
    }
    fs::create_dir(scene.at("a/index.sqlite")).unwrap();
    let read = scene.expect(0, "a", &["log", "--limit", "2"]);
    assert_eq!(read.stdout.lines().count(), 3, "{read:?}");
    assert!(read.stderr.starts_with("note: without the index"), "{read:?}");
    scene.expect(0, "a", &["log", &id[..8]]);
}

#[test]
fn a_line_that_was_changed_is_not_shown() {
    let scene = Scene::new();
    scene.grow("s", 3);
    assert_eq!(count(&scene.json(0, "s", &["log"])), 3);
    let segment = scene.at("s/journal/00000001.jsonl");
    crate::shared::edit(&segment, "\"n\":1", "\"n\":9");
    let answer = scene.json(0, "s", &["log"]);
    assert_eq!((count(&answer), &answer["reindexed"]), (2, &true.into()));
}

#[test]
fn without_a_journal_there_is_nothing_to_show() {
    let scene = Scene::new();
    let absent = scene.expect(4, "s", &["log"]);
    assert!(absent.stderr.starts_with("error: there is no evidence in `"), "{absent:?}");
    assert!(!scene.at("s").exists());
    scene.grow("s", 0);
    assert_eq!(scene.expect(0, "s", &["log"]).stdout, "No records.\n");
}
