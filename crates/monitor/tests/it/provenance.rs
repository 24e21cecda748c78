//! What came from what: closures, contamination, and what files were before.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;
use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_monitor::index::{Index, LookError};
use wardkeep_monitor::markup::Links;
use wardkeep_monitor::provenance::{
    Closure, Direction, Graph, Walk, contamination, restore_plan, svg,
};
use wardkeep_monitor::store::{Event, StoreReader};

use crate::lab::{Deed, Lab, denied, tool, value, write, write_journal};

const FORWARD: Walk = Walk { direction: Direction::Forward, direct: false };
const LINKS: Links = Links { home: "/", record: "/record/" };
const BACKWARD: Walk = Walk { direction: Direction::Backward, direct: false };

fn members(lab: &Lab, start: RecordId, walk: Walk) -> Vec<u64> {
    Closure::of(&lab.reader(), &lab.index(), start, walk).unwrap().positions().collect()
}

#[test]
fn a_closure_follows_every_edge_and_direct_ones_alone_where_asked() {
    let lab = Lab::new();
    let store = lab.store();
    let page = tool(&store, &[]);
    let other = tool(&store, &[]);
    let seen = Deed::new(RecordType::ToolCall, json!({})).seen(page).append(&store);
    let named = Deed::new(RecordType::ToolCall, json!({})).seen(other).from(&[other, page]);
    let named = named.append(&store);
    // The same record as context and as a named parent counts as both.
    let both = Deed::new(RecordType::ToolCall, json!({})).from(&[page]).seen(page).append(&store);
    let last = tool(&store, &[seen, named]);
    let direct = |direction| Walk { direction, direct: true };
    assert_eq!(members(&lab, page, FORWARD), [0, 2, 3, 4, 5]);
    assert_eq!(members(&lab, page, direct(Direction::Forward)), [0, 3, 4, 5]);
    assert_eq!(members(&lab, other, direct(Direction::Forward)), [1]);
    assert_eq!(members(&lab, last, BACKWARD), [0, 1, 2, 3, 5]);
    assert_eq!(members(&lab, last, direct(Direction::Backward)), [0, 2, 3, 5]);
    assert_eq!(members(&lab, both, FORWARD), [4]);
    let unknown = Closure::of(&lab.reader(), &lab.index(), RecordId([7; 32]), FORWARD);
    assert!(matches!(unknown, Err(LookError::Unknown(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn closures_are_those_of_the_plain_definition(
        edges in proptest::collection::vec((0u64..40, 0u64..40), 0..120),
        start in 0u64..40,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let parents = |number: u64, ids: &[RecordId]| {
            let of = edges.iter().filter(|(child, parent)| *child == number && parent < child);
            of.map(|(_, parent)| ids[usize::try_from(*parent).unwrap()]).collect()
        };
        let ids = write_journal(folder.path(), 40, parents);
        let reader = StoreReader::open(folder.path()).unwrap();
        let index = Index::ready(folder.path(), reader.folder(), false, &mut |_| {}).unwrap();
        for (walk, forward) in [(FORWARD, true), (BACKWARD, false)] {
            let mut expected = BTreeSet::from([start]);
            loop {
                let before = expected.len();
                for (child, parent) in edges.iter().filter(|(child, parent)| parent < child) {
                    let (from, to) = if forward { (parent, child) } else { (child, parent) };
                    if expected.contains(from) {
                        expected.insert(*to);
                    }
                }
                if expected.len() == before {
                    break;
                }
            }
            let start = ids[usize::try_from(start).unwrap()];
            let closure = Closure::of(&reader, &index, start, walk).unwrap();
            prop_assert_eq!(closure.positions().collect::<BTreeSet<_>>(), expected);
        }
    }
}

#[test]
fn contamination_tells_of_files_memory_and_what_left() {
    let lab = Lab::new();
    let store = lab.store();
    let page = tool(&store, &[]);
    let from = |deed: Deed| deed.from(&[page]);
    from(write("/w/a.rs", json!(null))).append(&store);
    from(write("/w/a.rs", json!(null))).within("s:2").append(&store);
    let memory = json!({"act":"write","surface":"DurableMemory","subject":"/w/MEMORY.md"});
    from(Deed::new(RecordType::FileWrite, memory)).append(&store);
    let sent = json!({"act":"send","surface":"NetworkIO","subject":"https://x.example/"});
    from(Deed::new(RecordType::NetworkRequest, sent)).append(&store);
    // What did not happen touched nothing.
    from(denied("MI", "high")).append(&store);
    let staged = json!({"surface":"FileSystem","subject":"/w/SOUL.md","verdict":"stage"});
    from(Deed::new(RecordType::FileWrite, staged)).append(&store);
    // Nor did what is not of it.
    write("/w/clean.rs", json!(null)).append(&store);
    let found = contamination(&lab.reader(), &lab.index(), page, FORWARD, 10).unwrap();
    let names = |touched: &[wardkeep_monitor::provenance::Touched]| {
        touched.iter().map(|it| (it.subject.clone(), it.times)).collect::<Vec<_>>()
    };
    assert_eq!(found.records, 6);
    assert_eq!(names(&found.files), [("/w/a.rs".into(), 2), ("/w/MEMORY.md".into(), 1)]);
    assert_eq!(names(&found.memory), [("/w/MEMORY.md".into(), 1)]);
    assert_eq!(names(&found.left), [("https://x.example/".into(), 1)]);
    assert_eq!(found.sessions[0].records, 5);
    assert_eq!((found.sessions.len(), found.truncated), (2, false));
    let short = contamination(&lab.reader(), &lab.index(), page, FORWARD, 1).unwrap();
    assert_eq!((short.files.len(), short.more.files, short.truncated), (1, 1, true));
}

#[test]
fn a_hundred_thousand_descendants_and_a_huge_list_of_parents() {
    let folder = tempfile::tempdir().unwrap();
    // All of one record, in a chain and side by side; the last one names fifty thousand parents.
    let ids = write_journal(folder.path(), 100_002, |number, ids| match number {
        0 => vec![],
        100_001 => ids[..50_000].iter().chain(&ids[..50_000]).copied().collect(),
        number if number % 2 == 0 => vec![ids[0]],
        _ => vec![ids[ids.len() - 1]],
    });
    let reader = StoreReader::open(folder.path()).unwrap();
    let index = Index::ready(folder.path(), reader.folder(), false, &mut |_| {}).unwrap();
    let start = Instant::now();
    let found = contamination(&reader, &index, ids[0], FORWARD, 10).unwrap();
    assert_eq!(found.records, 100_001);
    let found = contamination(&reader, &index, ids[100_001], BACKWARD, 10).unwrap();
    assert_eq!(found.records, 50_000);
    let closure = Closure::of(&reader, &index, ids[0], FORWARD).unwrap();
    let graph = Graph::of(&reader, &index, &closure).unwrap();
    assert!(graph.grouped && graph.nodes.len() == 2, "{:?}", graph.nodes);
    // Generous, because other tests run beside it: the figure is in the benchmarks.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn an_index_that_was_changed_is_noticed_and_never_loops() {
    let lab = Lab::new();
    let store = lab.store();
    let page = tool(&store, &[]);
    let first = write("/w/a", json!(null)).from(&[page]).append(&store);
    write("/w/b", json!(null)).from(&[first]).append(&store);
    drop(lab.index());
    // Edges back in time and far beyond the journal lead nowhere.
    lab.tamper(
        "INSERT INTO edges VALUES (0, 2, 0); INSERT INTO edges VALUES (1, 1, 0);
         INSERT INTO edges VALUES (4611686018427387904, 1, 0); INSERT INTO edges VALUES (-5, 1, 0);",
    );
    assert_eq!(members(&lab, page, FORWARD), [0, 1, 2]);
    assert_eq!(members(&lab, page, BACKWARD), [0]);
    for change in [
        "UPDATE lines SET subject = '/w/other' WHERE idx = 2",
        "UPDATE lines SET offset = offset + 1 WHERE idx = 2",
        "UPDATE lines SET offset = (SELECT offset FROM lines WHERE idx = 1),
                          length = (SELECT length FROM lines WHERE idx = 1) WHERE idx = 2",
        "UPDATE lines SET segment = 77 WHERE idx = 2",
    ] {
        let reader = lab.reader();
        let anew = Index::ready(lab.state(), reader.folder(), true, &mut |_| {}).unwrap();
        assert_eq!(contamination(&reader, &anew, page, FORWARD, 9).unwrap().files.len(), 2);
        drop(anew);
        lab.tamper(change);
        let found = contamination(&reader, &lab.index(), page, FORWARD, 9);
        assert!(matches!(found, Err(LookError::Wrong(1))), "{change}: {found:?}");
        let closure = Closure::of(&reader, &lab.index(), page, FORWARD).unwrap();
        assert!(restore_plan(&reader, &lab.index(), &closure).is_err(), "{change}");
    }
    // The place of the start itself is looked at as well.
    lab.tamper("UPDATE lines SET offset = offset + 1 WHERE idx = 0");
    let found = contamination(&lab.reader(), &lab.index(), page, FORWARD, 9);
    assert!(matches!(found, Err(LookError::Unknown(_))), "{found:?}");
}

#[test]
fn files_go_back_to_what_they_were_before_the_first_tainted_change() {
    let lab = Lab::new();
    let store = lab.store();
    let kept = |bytes: &[u8]| {
        store.put_blob(bytes).unwrap();
        json!({"sha256": BlobHash(sha256(bytes)).to_string(), "bytes": bytes.len(), "kept": true})
    };
    let page = tool(&store, &[]);
    let from = |deed: Deed| deed.from(&[page]).append(&store);
    let old = kept(b"old");
    from(write("/w/kept", old));
    from(write("/w/kept", kept(b"tainted already")));
    from(write("/w/new", json!(null)));
    let not = json!({"sha256": BlobHash(sha256(b"x")).to_string(), "bytes": 1, "kept": false});
    from(write("/w/unkept", not));
    let lost = kept(b"lost");
    std::fs::remove_file(lab.state().join(format!("blobs/{}", lost["sha256"].as_str().unwrap())))
        .unwrap();
    from(write("/w/lost", lost));
    let forged = kept(b"changed");
    let blob = lab.state().join(format!("blobs/{}", forged["sha256"].as_str().unwrap()));
    std::fs::write(blob, b"CHANGED").unwrap();
    from(write("/w/changed", forged));
    let content = json!({"act":"rename","surface":"FileSystem","subject":"/w/name"});
    from(Deed::new(RecordType::FileRename, content));
    let content = json!({"act":"write","surface":"FileSystem","subject":"/w/silent"});
    from(Deed::new(RecordType::FileWrite, content));
    // The owner's own later work on one of them, and a file that is none of this.
    let own = write("/w/new", json!(null)).by(Principal::User).append(&store);
    write("/w/clean", json!(null)).append(&store);
    let (reader, index) = (lab.reader(), lab.index());
    let closure = Closure::of(&reader, &index, page, FORWARD).unwrap();
    let plan = restore_plan(&reader, &index, &closure).unwrap();
    let restored: Vec<_> =
        plan.restore.iter().map(|it| (it.path.as_str(), it.before, it.later)).collect();
    let old = Some(BlobHash(sha256(b"old")));
    assert_eq!(restored, [("/w/kept", old, None), ("/w/new", None, Some(own))]);
    let failed: Vec<_> =
        plan.impossible.iter().map(|it| (it.path.as_str(), it.why.as_str())).collect();
    assert_eq!(
        failed,
        [
            ("/w/unkept", "its content was not kept"),
            ("/w/lost", "the content that was kept is gone"),
            ("/w/changed", "the content that was kept has been changed"),
            ("/w/name", "it was renamed: give it its old name by hand"),
            ("/w/silent", "the record does not say what it was before"),
        ]
    );
    // A change that is the source itself goes back too.
    let first = plan.restore[0].record;
    let closure = Closure::of(&reader, &index, first, FORWARD).unwrap();
    let plan = restore_plan(&reader, &index, &closure).unwrap();
    assert_eq!((plan.restore.len(), plan.restore[0].before), (1, old));
}

#[test]
fn hostile_names_stay_text_in_the_picture() {
    const EVIL: &str = "</text><script>alert(1)</script>\u{1b}[31m\u{202e}\"'&";
    let lab = Lab::new();
    let store = lab.store();
    let page = tool(&store, &[]);
    write(EVIL, json!(null)).from(&[page]).append(&store);
    for number in 0..250 {
        if number == 1 {
            let (reader, index) = (lab.reader(), lab.index());
            let closure = Closure::of(&reader, &index, page, FORWARD).unwrap();
            check(&svg(&Graph::of(&reader, &index, &closure).unwrap(), EVIL, Some(&LINKS)));
        }
        Deed::new(RecordType::ToolCall, json!({})).within(EVIL).from(&[page]).append(&store);
    }
    let (reader, index) = (lab.reader(), lab.index());
    let closure = Closure::of(&reader, &index, page, FORWARD).unwrap();
    let graph = Graph::of(&reader, &index, &closure).unwrap();
    assert!(graph.grouped);
    check(&svg(&graph, EVIL, Some(&LINKS)));
}

#[test]
fn what_is_tainted_is_told_apart_and_leads_to_its_record() {
    const EVIL: &str = "https://</text><script>.example/\u{202e}\"'&";
    let lab = Lab::new();
    let store = lab.store();
    let add = |kind, content, taint: &[&'static str], parents: &[RecordId]| {
        let deed = Deed::new(kind, content);
        let event = Event::new(kind, Principal::Web, value(&deed.content));
        let taint = taint.iter().map(|name| (*name).into()).collect();
        let event = Event { session: "s:1", agent: "a", parents: parents.to_vec(), taint, ..event };
        store.append(event).unwrap().id
    };
    let fetched = json!({"act":"return","subject":"WebFetch","place":"https://docs.example/guide"});
    let web = ["UNTRUSTED", "TOOL_OUTPUT", "WEB_DERIVED"];
    let page = add(RecordType::ToolResult, fetched, &web, &[]);
    let note = json!({"act":"write","surface":"FileSystem","subject":"/w/note.md"});
    let written = add(RecordType::FileWrite, note, &["WEB_DERIVED"], &[page]);
    let own = json!({"act":"call","subject":"own"});
    let clean = add(RecordType::ToolCall, own, &["TOOL_OUTPUT"], &[page]);
    let evil = json!({"act":"return","subject":"Read","place":EVIL});
    add(RecordType::ToolResult, evil, &web, &[page]);
    let (reader, index) = (lab.reader(), lab.index());
    let closure = Closure::of(&reader, &index, page, FORWARD).unwrap();
    let graph = Graph::of(&reader, &index, &closure).unwrap();
    let alone = svg(&graph, "title", None);
    assert!(!alone.contains("<a ") && !alone.contains("href"), "{alone}");
    let shown = svg(&graph, "title", Some(&LINKS));
    check(&shown);
    assert!(shown.contains("bar: tainted"), "{shown}");
    let node = |id: RecordId| {
        let link = format!("<a href=\"/record/{id}\">");
        shown.split_once(&link).unwrap().1.split_once("</a>").unwrap().0
    };
    assert!(
        node(page).contains("tainted: UNTRUSTED WEB_DERIVED · from https://docs.example/guide")
    );
    assert!(node(page).contains(">WebFetch · docs.example<"), "{}", node(page));
    assert!(node(written).contains("tainted: WEB_DERIVED"), "{}", node(written));
    // By more than a colour: the bar is a second shape.
    let shapes = [page, written, clean].map(|id| node(id).matches("<rect").count());
    assert_eq!(shapes, [2, 2, 1], "{shown}");
    assert!(!node(clean).contains("tainted"), "{}", node(clean));
}

fn check(picture: &str) {
    assert!(!picture.contains("<script") && picture.contains("&lt;script"), "{picture}");
    assert!(picture.chars().all(|it| it == '\n' || !it.is_control()));
    assert!(!picture.contains('\u{202e}'));
    assert_eq!(picture.matches('<').count(), picture.matches('>').count());
}
