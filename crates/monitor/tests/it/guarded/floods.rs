//! Denials in great number.

use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, Principal};
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::monitor::Who;

use super::{AGENT, Stage, text, user};

/// Row 26: in the reference, a hundred denials silence the log.
#[test]
fn a_flood_silences_nothing() {
    let stage = Stage::new();
    let work = stage.work();
    let total = 2500;
    {
        let monitor = stage.open();
        let who = user(&work).on_behalf_of(Principal::Channel);
        for _ in 0..total {
            let outcome = monitor.on_control_plane_change(&who, "tools", "all").unwrap();
            assert_eq!(outcome.verdict, Verdict::Deny);
        }
        // Another session is not touched by it.
        let other = Who::new(AGENT, "claude:2", &work, Principal::User);
        assert!(monitor.on_message_input(&other, "Good morning!").unwrap().is_allowed());
    }
    let records = stage.records();
    let single = records.iter().filter(|one| text(one, "verdict") == Some("deny"));
    let single = single.filter(|one| text(one, "kind") == Some("decision")).count() as u64;
    let summed: u64 = records
        .iter()
        .filter(|one| text(one, "kind") == Some("flood"))
        .map(|one| match &one.payload {
            Payload::Inline(Value::Object(content)) => match content.get("count") {
                Some(Value::Unsigned(count)) => *count,
                _ => 0,
            },
            _ => 0,
        })
        .sum();
    assert_eq!(single + summed, total, "every denial is told");
    assert!(records.len() < 130, "{} records", records.len());
    let alerts = records.iter().filter(|one| text(one, "alert") == Some("RateLimitExceeded"));
    assert_eq!(alerts.count(), 1);
}
