//! Seals of a journal: what they catch, and how they come through a crash.

use std::fs;
use std::path::Path;

use wardkeep_evidence::check::Mode;
use wardkeep_evidence::source;
use wardkeep_evidence::verify::{Options, Trust};
use wardkeep_monitor::export::{Selection, export};
use wardkeep_monitor::index::{Filter, Index};
use wardkeep_monitor::proof::{ProveError, check, prove};
use wardkeep_monitor::store::StoreReader;

use crate::shared::{SetClock, failed, fill, message, newest_segment, open, verify, verify_with};

/// A log of three epochs with a few records each, and some after the last seal.
fn sealed_log(state: &Path, clock: &SetClock) {
    for _ in 0..3 {
        fill(&open(state, clock), 4);
        clock.advance(900);
    }
    fill(&open(state, clock), 3);
}

#[test]
fn one_seal_an_epoch_and_the_rest_is_said_to_be_open() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    sealed_log(folder.path(), &clock);
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
    let seals = report.seals.unwrap();
    // The first seal is made with the first record, over nothing.
    assert_eq!((seals.seals, seals.signed_to, seals.unsealed), (4, 12, 3));
    assert!(!seals.pinned);
    // A day without a writer: one seal for the gap.
    clock.advance(86_400);
    fill(&open(folder.path(), &clock), 1);
    let seals = verify(folder.path()).seals.unwrap();
    assert_eq!((seals.seals, seals.signed_to), (5, 15));
}

#[test]
fn a_clock_that_jumps_never_doubles_a_seal() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    sealed_log(folder.path(), &clock);
    for jump in [-900, 900, -90_000, 90_000, 0, 1, -1] {
        clock.advance(jump);
        fill(&open(folder.path(), &clock), 2);
    }
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
    assert!(!report.seals.unwrap().clock_set_back.is_empty());
}

#[test]
fn a_consistent_rewrite_and_a_cut_tail_are_caught() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    sealed_log(folder.path(), &clock);
    // Rewritten: another history of the same length, chained correctly, under the old seals.
    let other = tempfile::tempdir().unwrap();
    sealed_log(other.path(), &SetClock::new());
    fs::copy(newest_segment(other.path()), newest_segment(folder.path())).unwrap();
    let report = verify(folder.path());
    assert_eq!(failed(&report)[0], "seal-root");
    assert_eq!(report.seals.unwrap().signed_to, 0);
}

#[test]
fn truncation_is_caught_up_to_the_last_seal_at_every_byte() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    sealed_log(folder.path(), &clock);
    let segment = newest_segment(folder.path());
    let whole = fs::read(&segment).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let sealed_end = ends[11];
    for cut in 0..whole.len() {
        fs::write(&segment, &whole[..cut]).unwrap();
        let report = verify(folder.path());
        if cut < sealed_end {
            assert!(
                failed(&report).contains(&"seal-truncated"),
                "cut {cut}: {:?}",
                failed(&report)
            );
        } else {
            assert!(report.passed(), "cut {cut}: {:?}", failed(&report));
            let torn = cut > sealed_end + 1 && !ends.contains(&(cut - 1)) && !ends.contains(&cut);
            assert_eq!(report.open_tail > 0, torn, "cut {cut}");
        }
    }
}

#[test]
fn losing_sealed_entries_is_told_of_once_and_never_blocks() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    sealed_log(folder.path(), &clock);
    let segment = newest_segment(folder.path());
    let whole = fs::read(&segment).unwrap();
    let third = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0;
    fs::write(&segment, &whole[..=third]).unwrap();
    for _ in 0..3 {
        clock.advance(900);
        fill(&open(folder.path(), &clock), 1);
    }
    let report = verify(folder.path());
    assert_eq!(report.recoveries["sealed-beyond"], 1);
    assert!(failed(&report).contains(&"seal-root") || failed(&report).contains(&"seal-truncated"));
}

#[test]
fn a_crash_between_the_steps_of_a_seal_gives_the_same_bytes() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    sealed_log(folder.path(), &clock);
    let keep = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let (epoch_before, checkpoints_before) = (keep("epoch_key"), keep("checkpoints"));
    clock.advance(900);
    open(folder.path(), &clock).seal().unwrap().unwrap();
    let after = keep("checkpoints");
    // Killed after the seal was decided on and before any of it was written; then with every
    // prefix of it written; then with all of it written and the key not moved on.
    let added = after.len() - checkpoints_before.len();
    let pending = {
        let text = String::from_utf8(keep("epoch_key")).unwrap();
        let now: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut before: serde_json::Value = serde_json::from_slice(&epoch_before).unwrap();
        for name in ["size", "nodes", "position"] {
            before[name] = now[name].clone();
        }
        let from = before["slot"].as_u64().unwrap() + 1;
        before["pending"] = serde_json::json!({"from": from, "to": now["slot"]});
        serde_json::to_vec(&before).unwrap()
    };
    for written in 0..=added {
        let end = checkpoints_before.len() + written;
        fs::write(folder.path().join("checkpoints"), &after[..end]).unwrap();
        fs::write(folder.path().join("epoch_key"), &pending).unwrap();
        // Any time later, even in another epoch: the decided seal comes first.
        let store = open(folder.path(), &clock);
        store.seal().unwrap();
        let report = verify(folder.path());
        assert!(report.passed(), "written {written}: {:?}", failed(&report));
        assert_eq!(report.seals.unwrap().seals, 5, "written {written}");
        let bytes = fs::read(folder.path().join("checkpoints")).unwrap();
        assert!(bytes.ends_with(&after[checkpoints_before.len()..]), "written {written}");
    }
}

#[test]
fn keys_that_are_gone_stop_the_seals_and_not_the_journal() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    sealed_log(folder.path(), &clock);
    fs::remove_file(folder.path().join("epoch_key")).unwrap();
    clock.advance(900);
    let store = open(folder.path(), &clock);
    fill(&store, 2);
    assert!(store.seal_problem().unwrap().contains("epoch_key"));
    assert!(verify(folder.path()).passed());
}

#[test]
fn the_old_epoch_seed_is_not_left_on_disk() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    fill(&open(folder.path(), &clock), 1);
    let state: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("epoch_key")).unwrap()).unwrap();
    let seed = state["seed"].as_str().unwrap().to_owned();
    clock.advance(900);
    fill(&open(folder.path(), &clock), 1);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(&seed), "{}", path.display());
        }
    }
}

#[test]
fn a_proof_holds_without_the_log_and_not_for_anything_else() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &clock);
    let wanted = store.append(message(77)).unwrap();
    fill(&store, 9);
    clock.advance(900);
    fill(&store, 1);
    let late = store.append(message(1)).unwrap();
    let reader = StoreReader::open(folder.path()).unwrap();
    let proof = prove(&reader, wanted.id).unwrap();
    let text = proof.to_string();
    let again = wardkeep_evidence::proof::TlogProof::parse(&text).unwrap();
    let proven = check(&again, &Trust::default()).unwrap();
    assert_eq!((proven.record.id, proven.size, proven.pinned), (wanted.id, 10, false));
    let trust = Trust { log: store.public(), ..Trust::default() };
    assert!(check(&again, &trust).unwrap().pinned);
    // Another log's keys, another record, another index.
    let other = tempfile::tempdir().unwrap();
    let stranger = open(other.path(), &clock).public();
    assert!(check(&again, &Trust { log: stranger, ..Trust::default() }).is_err());
    let swapped =
        String::from_utf8(proof.extra.clone().unwrap()).unwrap().replace("\"n\":77", "\"n\":78");
    let mut forged = proof.clone();
    forged.extra = Some(swapped.into_bytes());
    assert!(check(&forged, &Trust::default()).is_err());
    let mut moved = proof.clone();
    moved.index += 1;
    assert!(check(&moved, &Trust::default()).is_err());
    assert!(matches!(prove(&reader, late.id), Err(ProveError::Unsealed { .. })));
    // The cache of leaves is not believed.
    fs::write(folder.path().join("leaves"), [7u8; 32 * 20]).unwrap();
    assert!(prove(&reader, wanted.id).is_ok());
}

fn strict(path: &Path, trust: Trust) -> wardkeep_evidence::verify::Report {
    let options = Options { mode: Mode::Strict, threads: 2, trust };
    wardkeep_evidence::verify::verify(&mut *source::open(path).unwrap(), &options)
}

#[test]
fn exports_verify_and_a_part_says_what_it_is_a_part_of() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let store = open(&state, &clock);
    let mut chain = Vec::new();
    for number in 0..30u64 {
        let mut event = message(number);
        event.session = if number % 3 == 0 { "alice" } else { "bob" };
        event.agent = "a";
        event.parents = chain.last().copied().into_iter().collect();
        if number % 10 == 0 {
            let text = format!("blob {number}");
            let hash = store.put_blob(text.as_bytes()).unwrap();
            let size = text.len() as u64;
            event.payload =
                wardkeep_evidence::record::Payload::Blob { hash, mime: "text/plain".into(), size };
        }
        chain.push(store.append(event).unwrap().id);
        if number == 20 {
            clock.advance(900);
        }
    }
    let reader = StoreReader::open(&state).unwrap();
    let now = store.now();
    let all = folder.path().join("all");
    let exported = export(&reader, &Selection::default(), &all, now).unwrap();
    assert_eq!((exported.records, exported.blobs, exported.sealed), (30, 3, 21));
    let trust = Trust { log: store.public(), ..Trust::default() };
    let report = strict(&all, trust.clone());
    assert!(report.passed(), "{:?}", report.findings.kept());
    assert_eq!(report.seals.unwrap().signed_to, 21);
    assert!(report.part.is_none());

    let part = folder.path().join("part");
    let filter = Filter { session: Some("bob".to_owned()), ..Filter::default() };
    let selection = Selection { filter, around: None };
    let exported = export(&reader, &selection, &part, now).unwrap();
    assert_eq!((exported.records, exported.blobs), (20, 2));
    assert!(exported.omitted_parents > 5);
    let report = strict(&part, trust);
    assert!(report.passed(), "{:?}", report.findings.kept());
    let what = report.part.unwrap();
    assert_eq!((what.total, what.proven, what.unsealed), (30, 14, 6));
    // Nothing of the other session is in it.
    for entry in fs::read_dir(part.join("blobs")).unwrap() {
        assert_ne!(fs::read(entry.unwrap().path()).unwrap(), b"blob 0");
    }

    let around = folder.path().join("around");
    let selection = Selection { around: Some(chain[28]), ..Selection::default() };
    assert_eq!(export(&reader, &selection, &around, now).unwrap().records, 30);
    assert!(strict(&around, Trust::default()).passed());
}

#[test]
fn the_index_is_rebuilt_and_never_believed() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &clock);
    let appended: Vec<_> = (0..20).map(|number| store.append(message(number)).unwrap()).collect();
    let reader = StoreReader::open(folder.path()).unwrap();
    let mut index = Index::open(folder.path()).unwrap();
    assert_eq!(index.catch_up(reader.folder(), &mut |_| {}).unwrap(), 20);
    assert_eq!(index.location(appended[7].id).unwrap(), Some(appended[7].location));
    assert_eq!(index.newest(&Filter::default(), 3).unwrap().len(), 3);
    assert_eq!(index.catch_up(reader.folder(), &mut |_| {}).unwrap(), 0);
    drop(index);
    clock.advance(900);
    store.seal().unwrap();
    // A row that points to another record, and a file that is no database.
    let database = rusqlite::Connection::open(folder.path().join("index.sqlite")).unwrap();
    database.execute("UPDATE lines SET offset = 0, length = 10 WHERE idx = 7", []).unwrap();
    drop(database);
    let proof = prove(&reader, appended[7].id).unwrap();
    assert_eq!(check(&proof, &Trust::default()).unwrap().record.id, appended[7].id);
    fs::write(folder.path().join("index.sqlite"), b"not a database at all").unwrap();
    assert!(prove(&reader, appended[7].id).is_ok());
    assert_eq!(Index::rebuild(folder.path(), reader.folder(), &mut |_| {}).unwrap(), 20);
    let trust = Trust { log: store.public(), ..Trust::default() };
    assert!(verify_with(folder.path(), &trust).passed());
}

#[test]
fn a_torn_seal_stays_behind_when_a_bundle_is_written() {
    let clock = SetClock::new();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    sealed_log(&state, &clock);
    let checkpoints = state.join("checkpoints");
    let mut bytes = fs::read(&checkpoints).unwrap();
    bytes.extend_from_slice(b"~ 500\nhalf a seal");
    fs::write(&checkpoints, bytes).unwrap();
    assert_eq!(verify(&state).seals.unwrap().damaged, 1);
    let reader = StoreReader::open(&state).unwrap();
    for (name, around) in [("all", None), ("part", Some(()))] {
        let target = folder.path().join(name);
        let filter = Filter { agent: around.map(|()| String::new()), ..Filter::default() };
        let selection = Selection { filter, around: None };
        export(&reader, &selection, &target, clock.clock().now()).unwrap();
        let report = strict(&target, Trust::default());
        assert!(report.passed(), "{name}: {:?}", report.findings.kept());
    }
}
