//! Seals and their keys, removed, turned back or planted.

use super::*;

#[test]
fn seals_that_are_gone_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = sealed_log(folder.path(), &clock);
    let pinned = Trust { log: store.public(), ..Trust::default() };
    fs::remove_file(folder.path().join("checkpoints")).unwrap();
    assert_eq!(failed(&verify(folder.path())), ["seal-epoch-missing"]);
    fs::remove_file(folder.path().join("log.pub")).unwrap();
    assert_eq!(failed(&verify_with(folder.path(), &pinned)), ["seal-epoch-missing"]);
    // The next seal is made and its record says that those before are gone.
    clock.advance(900);
    fill(&store, 1);
    let report = verify(folder.path());
    assert_eq!(failed(&report), ["seal-epoch-missing"]);
    assert_eq!(report.recoveries["seals-missing"], 1);
}

#[test]
fn an_older_file_of_seals_is_said_with_the_next_seal() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = sealed_log(folder.path(), &clock);
    let path = folder.path().join("checkpoints");
    let text = fs::read_to_string(&path).unwrap();
    let second = text.match_indices("\n~ ").next().unwrap().0 + 1;
    fs::write(&path, &text[..second]).unwrap();
    // Nothing here can tell before the next seal; how far the seals reach is still said rightly.
    let report = verify(folder.path());
    assert_eq!(report.seals.unwrap().signed_to, 0);
    clock.advance(900);
    fill(&store, 1);
    let report = verify(folder.path());
    assert_eq!(failed(&report), ["seal-epoch-missing"]);
    assert_eq!(report.recoveries["seals-missing"], 1);
}

#[test]
fn a_log_does_not_change_its_keys_in_silence() {
    for with_public in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        let before = {
            let store = sealed_log(folder.path(), &clock);
            store.public().unwrap()
        };
        for name in ["epoch_key", "checkpoints", "log_key"] {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        if with_public {
            fs::remove_file(folder.path().join("log.pub")).unwrap();
        }
        clock.advance(900);
        for _ in 0..3 {
            fill(&open(folder.path(), &clock), 1);
        }
        let report = verify(folder.path());
        let said = report.recoveries.get("new-keys").copied().unwrap_or(0);
        if with_public {
            // Not a trace is left of the old keys but the journal: that it gets new ones is told.
            assert_eq!(said, 1);
        } else {
            // The old identity is known: it is not exchanged for another, and that is told.
            assert_eq!(report.seals.as_ref().unwrap().origin, before.origin());
            assert_eq!(report.recoveries["sealing-stopped"], 1);
            assert_eq!(failed(&report), ["seal-epoch-missing"]);
        }
    }
}

#[test]
fn other_public_keys_beside_the_log_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    sealed_log(folder.path(), &clock);
    sealed_log(other.path(), &SetClock::new());
    for name in ["log_key", "epoch_key", "checkpoints"] {
        fs::copy(other.path().join(name), folder.path().join(name)).unwrap();
    }
    clock.advance(900);
    fill(&open(folder.path(), &clock), 1);
    let report = verify(folder.path());
    assert!(!report.passed());
    assert_eq!(report.recoveries["sealing-stopped"], 1);
}

// ---- the sealer ----

#[test]
fn an_older_epoch_key_never_seals_an_epoch_twice() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = sealed_log(folder.path(), &clock);
    let path = folder.path().join("epoch_key");
    let old = fs::read(&path).unwrap();
    for rounds in 1..3 {
        clock.advance(900);
        fill(&store, 2);
        let seals = fs::read(folder.path().join("checkpoints")).unwrap();
        let newest = fs::read(&path).unwrap();
        fs::write(&path, &old).unwrap();
        clock.advance(900);
        for _ in 0..2 {
            let store = open(folder.path(), &clock);
            fill(&store, 1);
            assert!(store.seal_problem().is_some(), "{rounds}");
        }
        assert_eq!(fs::read(folder.path().join("checkpoints")).unwrap(), seals);
        let report = verify(folder.path());
        assert!(report.passed(), "{:?}", failed(&report));
        assert_eq!(report.recoveries["sealing-stopped"], rounds);
        // With the right key it goes on.
        fs::write(&path, &newest).unwrap();
        fill(&open(folder.path(), &clock), 1);
        assert!(verify(folder.path()).passed());
    }
}

#[test]
fn a_false_tree_in_the_epoch_file_is_not_signed() {
    type Change = fn(&mut serde_json::Value);
    let changes: [Change; 6] = [
        |state| state["nodes"][0] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".into(),
        |state| state["position"] = serde_json::json!({"segment": 0, "offset": 0}),
        |state| state["position"]["offset"] = 10.into(),
        |state| state["position"]["offset"] = u64::MAX.into(),
        |state| {
            state["size"] = 1.into();
            state["nodes"] = serde_json::json!(["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]);
        },
        |state| {
            state["size"] = 0.into();
            state["nodes"] = serde_json::json!([]);
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        sealed_log(folder.path(), &clock);
        set_epoch_state(folder.path(), change);
        clock.advance(900);
        fill(&open(folder.path(), &clock), 2);
        clock.advance(900);
        fill(&open(folder.path(), &clock), 1);
        let report = verify(folder.path());
        assert!(report.passed(), "{number}: {:?}", report.findings.kept());
        assert_eq!(report.seals.unwrap().signed_to, 14, "{number}");
    }
}

#[test]
fn odd_numbers_in_the_epoch_file_neither_panic_nor_stop_the_seals() {
    type Change = fn(&mut serde_json::Value);
    let changes: [Change; 5] = [
        |state| state["slot"] = u64::MAX.into(),
        |state| state["slot"] = (i64::MAX as u64).into(),
        |state| state["pending"] = serde_json::json!({"from": 9, "to": 3}),
        |state| state["pending"] = serde_json::json!({"from": 0, "to": u64::MAX}),
        |state| state["slot"] = serde_json::Value::Null,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SetClock::new();
        sealed_log(folder.path(), &clock);
        set_epoch_state(folder.path(), change);
        clock.advance(900);
        let store = open(folder.path(), &clock);
        let _ = store.next_seal();
        fill(&store, 2);
        clock.advance(900);
        fill(&store, 1);
        let _ = store.next_seal();
        let report = verify(folder.path());
        assert!(report.passed(), "{number}: {:?}", report.findings.kept());
        assert!(report.seals.unwrap().signed_to >= 12, "{number}");
    }
}

#[test]
fn a_false_tree_under_a_pending_seal_is_not_signed() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    sealed_log(folder.path(), &clock);
    set_epoch_state(folder.path(), |state| {
        let slot = state["slot"].as_u64().unwrap();
        state["pending"] = serde_json::json!({"from": slot + 1, "to": slot + 1});
        state["size"] = 9.into();
        let node = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        state["nodes"] = serde_json::json!([node, node]);
    });
    clock.advance(900);
    fill(&open(folder.path(), &clock), 2);
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", report.findings.kept());
}

#[test]
fn a_planted_note_does_not_keep_the_real_seal_out() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = sealed_log(folder.path(), &clock);
    let id = store.append(message(1)).unwrap().id;
    let path = folder.path().join("checkpoints");
    let text = fs::read_to_string(&path).unwrap();
    let at = text.rfind("~ ").unwrap();
    // The last note with the next number and a huge size, so unsigned; and junk behind it.
    let note = text[at..].replace("epoch 2 ", "epoch 3 ").replacen("\n8\n", "\n9\n", 1);
    assert_ne!(note, text[at..]);
    append_bytes(&path, note.as_bytes());
    append_bytes(&path, &b"junk\n".repeat(20_000));
    clock.advance(900);
    fill(&store, 1);
    clock.advance(900);
    fill(&store, 1);
    let report = verify(folder.path());
    assert_eq!(failed(&report), ["seal-signature"]);
    assert_eq!(report.seals.unwrap().signed_to, 14);
    let reader = StoreReader::open(folder.path()).unwrap();
    // Planted at the very end, and among the cosigned: proofs are still made.
    append_bytes(&path, note.as_bytes());
    fs::write(folder.path().join("cosigned"), note).unwrap();
    assert!(prove(&reader, id).is_ok());
}

#[test]
fn a_seal_decided_on_before_a_crash_covers_what_it_was_to_cover() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let store = sealed_log(folder.path(), &clock);
    let keep = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let (epoch_before, seals_before) = (keep("epoch_key"), keep("checkpoints"));
    clock.advance(900);
    store.seal().unwrap().unwrap();
    let (epoch_after, seals_after) = (epoch_state(folder.path()), keep("checkpoints"));
    // More comes before the next start finds the decision.
    fill(&store, 3);
    drop(store);
    for written in (0..=seals_after.len() - seals_before.len()).step_by(23).chain([usize::MAX]) {
        let end = seals_before.len().saturating_add(written).min(seals_after.len());
        fs::write(folder.path().join("checkpoints"), &seals_after[..end]).unwrap();
        fs::write(folder.path().join("epoch_key"), &epoch_before).unwrap();
        set_epoch_state(folder.path(), |state| {
            let from = state["slot"].as_u64().unwrap() + 1;
            let (to, size) = (&epoch_after["slot"], &epoch_after["size"]);
            state["pending"] = serde_json::json!({"from": from, "to": to, "size": size});
        });
        assert!(open(folder.path(), &clock).seal().unwrap().is_some());
        let report = verify(folder.path());
        assert!(report.passed(), "{written}: {:?}", failed(&report));
        assert_eq!((report.seals.unwrap().signed_to, report.records), (12, 15), "{written}");
        assert!(keep("checkpoints").ends_with(&seals_after[seals_before.len()..]), "{written}");
    }
}

#[test]
fn seeds_that_a_crash_left_beside_the_key_are_erased() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    fill(&open(folder.path(), &clock), 1);
    let seed = epoch_state(folder.path())["seed"].as_str().unwrap().to_owned();
    let left = folder.path().join(".epoch_key.partial-1-0");
    fs::copy(folder.path().join("epoch_key"), &left).unwrap();
    let held = File::open(&left).unwrap();
    clock.advance(900);
    fill(&open(folder.path(), &clock), 1);
    assert!(!left.exists());
    let mut bytes = vec![0; usize::try_from(held.metadata().unwrap().len()).unwrap()];
    held.read_exact_at(&mut bytes, 0).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains(&seed));
}

#[test]
fn many_threads_and_stores_make_one_seal_an_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let stores: Vec<Store> = (0..4).map(|_| open(folder.path(), &clock)).collect();
    for _ in 0..4 {
        std::thread::scope(|scope| {
            for store in &stores {
                for _ in 0..4 {
                    scope.spawn(|| fill(store, 3));
                }
            }
        });
        clock.advance(900);
    }
    let report = verify(folder.path());
    assert!(report.passed(), "{:?}", failed(&report));
    assert_eq!((report.records, report.seals.unwrap().seals), (4 * 48, 4));
}

// ---- export and proofs ----
