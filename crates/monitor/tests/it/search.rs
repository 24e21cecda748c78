//! Looking for records: what is found is what reading everything finds, whatever is asked.

use serde_json::json;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::index::{Category, Filter, LookError, Severity};
use wardkeep_monitor::journal::parse_line;
use wardkeep_monitor::search::{Found, Sought, search};

use crate::lab::{Deed, Lab, denied, tool, write};

const RECORDS: u64 = 240;

fn lab() -> Lab {
    let lab = Lab::new();
    // Several segments.
    let store = lab.store_of(16 << 10);
    for number in 0..RECORDS {
        let _id = match number % 8 {
            0 => denied("MI", "HIGH").within("s:2").append(&store),
            1 => denied("CPI", "CRITICAL").append(&store),
            2 => write(&format!("/w/Note-{number}.md"), json!(null)).append(&store),
            3 => {
                let content =
                    json!({"act":"send","subject":"https://Evil.example/x","verdict":"ask"});
                let deed = Deed::new(RecordType::NetworkRequest, content);
                deed.by(Principal::Web).within("s:2").append(&store)
            }
            _ => tool(&store, &[]),
        };
    }
    lab
}

fn look(lab: &Lab, sought: &Sought, limit: usize, turns: usize) -> Result<Found, LookError> {
    let mut left = turns;
    search(&lab.reader(), &lab.index(), sought, limit, &mut || {
        left = left.saturating_sub(1);
        left == 0
    })
}

fn positions(found: &Found) -> Vec<u64> {
    found.lines.iter().map(|line| parse_line(line).unwrap().entry.index).collect()
}

#[test]
fn it_finds_what_reading_everything_finds() {
    let lab = lab();
    let all = look(&lab, &Sought::default(), usize::MAX, 0).unwrap();
    assert_eq!(positions(&all), (0..RECORDS).rev().collect::<Vec<_>>());
    let session = |name: &str| Some(name.to_owned());
    let filters = [
        Filter::default(),
        Filter { session: session("s:2"), ..Filter::default() },
        Filter { agent: session("a"), ..Filter::default() },
        Filter { agent: session("b"), ..Filter::default() },
        Filter { kind: Some(RecordType::GuardDecision), ..Filter::default() },
        Filter { verdict: Some(Verdict::Deny), ..Filter::default() },
        Filter { verdict: Some(Verdict::Ask), session: session("s:2"), ..Filter::default() },
        Filter { verdict: Some(Verdict::Stage), ..Filter::default() },
        Filter { severity: Some(Severity::Critical), ..Filter::default() },
        Filter { category: Some(Category::Mi), ..Filter::default() },
        Filter {
            severity: Some(Severity::High),
            kind: Some(RecordType::GuardDecision),
            agent: session("a"),
            ..Filter::default()
        },
        Filter { since: Some(lab.now()), ..Filter::default() },
        Filter { below: Some(100), from: Some(50), session: session("s:2"), ..Filter::default() },
    ];
    for filter in filters {
        for text in [None, Some("evil.EXAMPLE"), Some("Note-10"), Some("nowhere")] {
            let sought = Sought { filter: filter.clone(), text: text.map(str::to_owned) };
            let expected: Vec<u64> = all
                .lines
                .iter()
                .filter(|line| {
                    let raw = String::from_utf8_lossy(line).to_lowercase();
                    text.is_none_or(|text| raw.contains(&text.to_lowercase()))
                        && filter.matches(&parse_line(line).unwrap())
                })
                .map(|line| parse_line(line).unwrap().entry.index)
                .collect();
            let found = look(&lab, &sought, usize::MAX, 0).unwrap();
            assert_eq!(positions(&found), expected, "{sought:?}");
            assert_eq!(found.stopped_at, None);
            // By pages, each from where the last ended.
            let (mut paged, mut below) = (Vec::<u64>::new(), filter.below);
            loop {
                let filter = Filter { below, ..filter.clone() };
                let page = look(&lab, &Sought { filter, ..sought.clone() }, 7, 0).unwrap();
                let page = positions(&page);
                paged.extend(&page);
                below = page.last().copied();
                if page.len() < 7 {
                    break;
                }
            }
            assert_eq!(paged, expected, "{sought:?}");
        }
    }
}

#[test]
fn it_stops_when_the_time_is_up_and_says_where() {
    let lab = lab();
    let filter = Filter { below: Some(3_000_000_000), ..Filter::default() };
    let sought = Sought {
        filter: Filter { session: Some("none".into()), agent: Some("a".into()), ..filter },
        text: None,
    };
    let found = look(&lab, &sought, 10, 1).unwrap();
    let stopped = found.stopped_at.unwrap();
    assert!(found.lines.is_empty() && stopped < 3_000_000_000 && stopped > RECORDS, "{stopped}");
}

#[test]
fn an_index_that_is_wrong_is_noticed() {
    for tampering in [
        "UPDATE lines SET session = 's:2' WHERE idx = 5",
        "UPDATE lines SET offset = offset + 1 WHERE idx = 8",
        "UPDATE lines SET offset = 1 << 40 WHERE idx = 8",
    ] {
        let lab = lab();
        drop(lab.index());
        lab.tamper(tampering);
        let filter = Filter { session: Some("s:2".into()), ..Filter::default() };
        let found = look(&lab, &Sought { filter, text: None }, usize::MAX, 0);
        assert!(matches!(found, Err(LookError::Wrong(1))), "{tampering}: {found:?}");
    }
}
