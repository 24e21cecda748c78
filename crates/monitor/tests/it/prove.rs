//! The report: what it counts, what it verifies, and what it does not believe.

use std::fs;
use std::io::Write as _;

use serde_json::json;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::verify::Trust;
use wardkeep_monitor::index::{Asked, Category, LookError, Severity};
use wardkeep_monitor::notices::{Level, Source, acknowledge, list};
use wardkeep_monitor::prove::{Query, Report, page, prove};
use wardkeep_monitor::store::{Event, Store};

use crate::lab::{Deed, Lab, denied, system_time, tool, value, write};

fn ask(lab: &Lab, asked: Asked, full: bool) -> Report {
    let query = Query { asked, limit: 10, full };
    prove(&lab.reader(), &Trust::default(), &query, lab.now(), 2, &mut |_| {}).unwrap()
}

fn report(lab: &Lab) -> Report {
    ask(lab, Asked::default(), false)
}

fn alert(name: &str, category: &str, severity: &str) -> Deed {
    let content = json!({
        "kind":"alert","v":1,"alert":name,"category":category,"severity":severity,
        "message":"three denials in 120 seconds","suggestion":"run `wardkeep rollback abc`"
    });
    Deed { content, ..Deed::new(RecordType::GuardDecision, json!({})) }
}

fn own(kind: RecordType, content: serde_json::Value) -> Deed {
    Deed { content, ..Deed::new(kind, json!({})) }
}

/// A journal with something of everything.
fn story(store: &Store) {
    for _ in 0..5 {
        tool(store, &[]);
    }
    denied("MI", "high").append(store);
    denied("TAINT", "medium").by(Principal::Web).within("s:2").append(store);
    let content = json!({"act":"change","surface":"ControlPlane","verdict":"ask","category":"CPI"});
    Deed::new(RecordType::GuardDecision, content).append(store);
    own(
        RecordType::GuardDecision,
        json!({"kind":"flood","v":1,"count":40,"from":"a","to":"b","rules":{}}),
    )
    .append(store);
    alert("RollbackRecommended", "ROLLBACK", "high").append(store);
    alert("ContaminationDetected", "CONTAMINATION", "critical").append(store);
    own(
        RecordType::Rollback,
        json!({"kind":"rollback","v":1,"snapshot":"abc","files":["a"],"auto":true,"kept":"def"}),
    )
    .append(store);
    let content = json!({"act":"install","surface":"SkillInstall","subject":"skill"});
    Deed::new(RecordType::SkillVerification, content).append(store);
}

#[test]
fn the_summary_counts_what_happened_and_obeys_the_filters() {
    let lab = Lab::new();
    story(&lab.store());
    let all = report(&lab);
    let sum = &all.protection;
    assert_eq!((sum.total_threats_blocked, sum.summed_up_blocks, sum.mi_blocks), (42, 40, 2));
    assert_eq!((sum.taint_blocks, sum.held_for_owner, sum.cpi_blocks), (1, 1, 0));
    assert_eq!((sum.auto_rollbacks, sum.rollback_recommendations), (1, 1));
    assert_eq!((sum.contamination_events, sum.skills_verified), (1, 1));
    assert_eq!((sum.critical_alerts, sum.high_alerts, sum.medium_alerts), (1, 3, 2));
    assert_eq!(sum.total_evaluations, 49);
    assert_eq!(sum.by_principal, [("TOOL", 1), ("WEB", 1)].into());
    assert_eq!(sum.by_category["ROLLBACK"], 1);
    assert!(sum.protection_rate.is_none() && !sum.protection_rate_reason.is_empty());
    assert!(all.health.chain_valid && all.health.verified_now == 13, "{:?}", all.health);
    assert_eq!((all.alerts.len(), all.agent_notifications.len()), (6, 8));
    assert_eq!(all.rollback_status.agent_messages.len(), 2);
    assert!(all.action_required);
    let only = |asked: Asked| ask(&lab, asked, false).protection;
    let web = only(Asked { session: Some("s:2".into()), ..Asked::default() });
    assert_eq!((web.total_threats_blocked, web.total_evaluations), (1, 1));
    let memory = Asked { category: Some(Category::Mi), ..Asked::default() };
    assert_eq!(only(memory).total_threats_blocked, 1);
    let grave = Asked { severity: Some(Severity::Critical), ..Asked::default() };
    assert_eq!(ask(&lab, grave.clone(), false).alerts.len(), 1);
    let grave = only(grave);
    assert_eq!((grave.critical_alerts, grave.high_alerts, grave.total_evaluations), (1, 0, 0));
    let later = lab.now().unix() + 1000;
    let since =
        Asked { since: wardkeep_evidence::time::Timestamp::from_unix(later), ..Asked::default() };
    let none = ask(&lab, since, false);
    assert_eq!((none.protection.total_evaluations, none.alerts.len()), (0, 0));
    // What must be told is told whatever the filter.
    assert_eq!(none.rollback_status.agent_messages.len(), 2);
    assert!(none.action_required);
}

#[test]
fn notifications_stay_until_the_owner_acknowledges_them() {
    let lab = Lab::new();
    let store = lab.store();
    story(&store);
    let notices = |all| list(&lab.reader(), &lab.index(), &Asked::default(), all, 3).unwrap();
    let open = notices(false);
    assert_eq!((open.notices.len(), open.more, open.acknowledged), (3, 5, None));
    assert_eq!((open.notices[0].source, open.notices[0].level), (Source::Skill, Level::Info));
    assert_eq!(open.notices[1].message, "rolled back automatically to snapshot abc: 1 files");
    assert_eq!(open.notices[1].suggestion.as_deref(), Some("undo it with `wardkeep rollback def`"));
    // Not by anyone else, and not what is still to come.
    let told = |principal, upto: u64| {
        let content = json!({"kind":"acknowledgement","v":1,"upto":upto});
        own(RecordType::GuardDecision, content).by(principal).append(&store);
    };
    told(Principal::Web, 12);
    told(Principal::Tool, 12);
    told(Principal::User, 1000);
    assert_eq!(notices(false).more, 5);
    acknowledge(&store, 9).unwrap();
    acknowledge(&store, 2).unwrap();
    let open = notices(false);
    assert_eq!((open.notices.len(), open.more, open.acknowledged), (3, 0, Some(9)));
    acknowledge(&store, open.notices[0].index).unwrap();
    assert_eq!(notices(false).notices.len(), 0);
    assert_eq!(notices(true).more, 5);
    // A question waits, though all was read.
    let waits = report(&lab);
    assert!(waits.action_required && waits.actions[0].contains("approvals list"), "{waits:?}");
    own(RecordType::GuardDecision, json!({"kind":"refusal","v":1})).append(&store);
    let quiet = report(&lab);
    assert!(!quiet.action_required, "{:?}", quiet.actions);
    assert_eq!(quiet.rollback_status.auto_rollbacks, 1);
    assert!(quiet.rollback_status.agent_messages.is_empty());
    // A new one wakes it up again.
    denied("MI", "critical").append(&store);
    assert!(report(&lab).action_required);
}

#[test]
fn an_index_that_was_changed_is_made_anew() {
    let lab = Lab::new();
    story(&lab.store());
    let honest = report(&lab);
    for change in [
        "DELETE FROM lines WHERE idx = 5; DELETE FROM shapes; INSERT INTO shapes
         SELECT shape, COUNT(*), COALESCE(SUM(many), 0) FROM lines GROUP BY shape",
        "UPDATE shapes SET records = records + 1",
        "DELETE FROM shapes",
        // Shown as something else, or somewhere else.
        "UPDATE lines SET shape = (SELECT shape FROM lines WHERE idx = 10) WHERE idx = 5",
        "UPDATE lines SET offset = 0 WHERE idx = 9",
        "UPDATE lines SET length = 5 WHERE idx = 9",
        // An acknowledgement that never was.
        "INSERT INTO lines SELECT 90, 1, segment, offset, length, time, 3072, NULL, NULL, NULL, NULL, NULL
         FROM lines WHERE idx = 0; UPDATE lines SET shape = shape WHERE idx = 90",
    ] {
        lab.tamper(change);
        let again = report(&lab);
        assert_eq!(again.counted_from, "journal", "{change}");
        let shown = |report: &Report| serde_json::to_value(&report.protection).unwrap();
        assert_eq!(shown(&again), shown(&honest), "{change}");
        assert_eq!(again.alerts.len(), honest.alerts.len(), "{change}");
        assert!(again.action_required);
    }
    // Counts that stay consistent are believed until everything is asked for.
    lab.tamper("UPDATE lines SET time = 0");
    assert_eq!(report(&lab).counted_from, "index");
    assert_eq!(ask(&lab, Asked::default(), true).counted_from, "journal");
}

#[test]
fn an_index_that_points_nowhere_gives_an_error_to_who_asks_it_alone() {
    let lab = Lab::new();
    story(&lab.store());
    drop(lab.index());
    lab.tamper("UPDATE lines SET segment = 9");
    let found = list(&lab.reader(), &lab.index(), &Asked::default(), false, 3);
    assert!(matches!(found, Err(LookError::Wrong(3))), "{found:?}");
}

/// Several full segments, sealed, verified once.
fn long(lab: &Lab) -> Store {
    let store = lab.store_of(2_000);
    let mut last = tool(&store, &[]);
    for _ in 0..20 {
        last = tool(&store, &[last]);
    }
    lab.advance(900);
    tool(&store, &[last]);
    let first = report(lab);
    assert!(first.health.chain_valid && first.health.verified_earlier == 0);
    store
}

#[test]
fn a_second_report_reads_only_what_is_new() {
    let lab = Lab::new();
    let store = long(&lab);
    let again = report(&lab).health;
    assert!(again.chain_valid && again.why_full.is_none(), "{again:?}");
    assert!(again.verified_earlier > 10, "{again:?}");
    assert_eq!(again.records, again.verified_earlier + again.verified_now);
    assert_eq!(again.records, 22);
    // Parents far back are found, and the mark moves on.
    let first = lab.index().newest(&Default::default(), 100).unwrap().pop().unwrap();
    let text = lab.reader().folder().read_line(first).unwrap();
    let first = wardkeep_monitor::journal::parse_line(&text).unwrap().record.id;
    for _ in 0..20 {
        tool(&store, &[first]);
    }
    lab.advance(900);
    tool(&store, &[]);
    let third = report(&lab).health;
    assert!(third.chain_valid && third.verified_earlier == again.verified_earlier, "{third:?}");
    let fourth = report(&lab).health;
    assert!(fourth.verified_earlier > third.verified_earlier, "{fourth:?}");
    assert_eq!(fourth.records, 43);
    // Asked for everything, everything is read.
    let full = ask(&lab, Asked::default(), true).health;
    assert_eq!((full.verified_earlier, full.verified_now, full.why_full), (0, 43, None));
}

/// Waits until the system's clock shows another second than that of the last write.
fn next_second() {
    let now = system_time();
    while system_time() <= now {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // File systems take the time of the last tick of the kernel's clock.
    std::thread::sleep(std::time::Duration::from_millis(30));
}

#[test]
fn a_changed_older_segment_is_found_though_it_was_verified() {
    let lab = Lab::new();
    drop(long(&lab));
    let verified = fs::read(lab.state().join("verified")).unwrap();
    let segment = lab.state().join("journal/00000001.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    next_second();
    // As long as it was, and with the times that a user can set as they were.
    let times = fs::metadata(&segment).unwrap().modified().unwrap();
    let file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
    (&file).write_all(text.replacen("bash", "dash", 1).as_bytes()).unwrap();
    file.set_modified(times).unwrap();
    drop(file);
    fs::write(lab.state().join("verified"), verified).unwrap();
    let found = report(&lab).health;
    assert!(!found.chain_valid, "{found:?}");
    assert_eq!(found.why_full, Some("older segments were touched since they were full"));
    assert_eq!(found.findings[0].check.name(), "record-id");
    // What does not hold is not remembered as verified.
    assert!(!lab.state().join("verified").exists());
    assert!(report(&lab).action_required);
}

#[test]
fn a_missing_or_replaced_older_segment_is_found() {
    for replaced in [false, true] {
        let lab = Lab::new();
        drop(long(&lab));
        let segment = lab.state().join("journal/00000002.jsonl");
        next_second();
        let text = fs::read(&segment).unwrap();
        fs::remove_file(&segment).unwrap();
        if replaced {
            fs::write(&segment, &text[..text.len() / 2]).unwrap();
        }
        let found = report(&lab).health;
        assert!(!found.chain_valid && found.why_full.is_some(), "{found:?}");
    }
}

#[test]
fn a_forged_memory_of_verification_is_worth_nothing() {
    let lab = Lab::new();
    drop(long(&lab));
    let path = lab.state().join("verified");
    let honest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let zeros = "0".repeat(64);
    let node = format!("{}=", "A".repeat(43));
    let entries = honest["entries"].as_u64().unwrap();
    let segment = honest["segment"].as_u64().unwrap();
    let nodes = honest["nodes"].as_array().unwrap().len();
    let forge = |key: &str, value: serde_json::Value| {
        let mut forged = honest.clone();
        forged[key] = value;
        forged.to_string()
    };
    let mut later = honest.clone();
    later["entries"] = (entries - 1).into();
    later["nodes"] = vec![node.clone(); (entries - 1).count_ones() as usize].into();
    for (forged, told) in [
        (forge("head", zeros.into()), true),
        (forge("nodes", vec![node; nodes].into()), true),
        (forge("segment", (segment - 1).into()), true),
        (forge("segment", 1.into()), true),
        (forge("segment", 4_000_000_000u64.into()), true),
        (forge("entries", (1u64 << 60).into()), true),
        (later.to_string(), true),
        (forge("version", 2.into()), true),
        (forge("full", "yesterday".into()), true),
        (forge("more", 1.into()), true),
        ("{".to_owned(), true),
        (String::new(), true),
        ("x".repeat(100_000), false),
    ] {
        fs::write(&path, &forged).unwrap();
        let found = report(&lab).health;
        assert!(found.chain_valid, "{forged} {found:?}");
        assert_eq!((found.verified_earlier, found.verified_now), (0, 22), "{forged}");
        assert_eq!(found.why_full.is_some(), told, "{forged}");
        // And is made good.
        assert!(report(&lab).health.verified_earlier > 0, "{forged}");
    }
    // A link in its place is neither read nor written through.
    let elsewhere = lab.state().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(report(&lab).health.verified_earlier, 0);
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn without_seals_everything_is_read_each_time() {
    let lab = Lab::new();
    drop(long(&lab));
    for name in ["checkpoints", "log.pub"] {
        fs::remove_file(lab.state().join(name)).unwrap();
    }
    let found = report(&lab).health;
    assert_eq!(found.verified_earlier, 0);
    assert!(found.warnings.iter().any(|warning| warning.starts_with("there are no seals")));
}

#[test]
fn hostile_records_stay_text_on_the_page() {
    const EVIL: &str = "</td><script src=//evil.example></script>`</code><img onerror=x src=y>`\u{1b}[2J\u{202e}'\"&";
    let lab = Lab::new();
    let store = lab.store();
    let content = json!({
        "act":EVIL,"surface":"DurableMemory","subject":EVIL,"verdict":"deny","rule":EVIL,
        "reason":EVIL.repeat(50),"category":"MI","severity":"critical","suggestion":EVIL
    });
    let event = Event::new(
        RecordType::GuardDecision,
        Principal::Web,
        value(&Deed::new(RecordType::GuardDecision, content).content),
    );
    store.append(Event { session: EVIL, agent: EVIL, ..event }).unwrap();
    alert(EVIL, "ROLLBACK", "critical").append(&store);
    let asked = Asked { session: Some(EVIL.to_owned()), ..Asked::default() };
    for report in [report(&lab), ask(&lab, asked, false)] {
        assert_eq!(report.alerts.last().unwrap().subject.as_deref(), Some(EVIL));
        let graph = {
            use wardkeep_monitor::provenance::{Closure, Direction, Graph, Walk};
            let walk = Walk { direction: Direction::Backward, direct: false };
            let (reader, index) = (lab.reader(), lab.index());
            let closure = Closure::of(&reader, &index, report.alerts[0].record, walk).unwrap();
            Graph::of(&reader, &index, &closure).unwrap()
        };
        let page = page(&report, Some((&graph, EVIL)), None);
        assert!(!page.contains("<a "), "a file on its own leads nowhere");
        for bad in
            ["<script", "<img", "onerror=x src=y>", "\u{1b}", "\u{202e}", "http-equiv=\"refresh"]
        {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("&lt;script"));
        assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"));
        // Nothing is fetched: the only addresses are names of formats.
        for at in page.match_indices("http").map(|(at, _)| &page[at..]) {
            assert!(at.starts_with("http-equiv") || at.starts_with("http://www.w3.org/2000/svg"));
        }
    }
}

#[test]
fn nobody_but_the_journal_writes_recovery_records() {
    let lab = Lab::new();
    let store = lab.store();
    let content = json!({"kind":"recovery","v":1,"found":[]});
    let event = Event::new(RecordType::GuardDecision, Principal::Sys, value(&content));
    let refused = store.append(event.clone()).unwrap_err().to_string();
    assert!(refused.contains("by the journal alone"), "{refused}");
    let by_tool = Event { principal: Principal::Tool, ..event };
    assert!(store.append(by_tool).is_err());
    // The same words in something else are only words.
    let event = Event::new(RecordType::ToolCall, Principal::Tool, value(&content));
    store.append(event).unwrap();
    assert_eq!(report(&lab).health.records, 1);
    write("/w/x", json!(null)).append(&store);
}
