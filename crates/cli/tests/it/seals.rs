//! What `aegx verify` says of seals and witnesses: how far they reach, and no more.

use std::fs;
use std::path::Path;

use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::json;
use wardkeep_evidence::merkle::Frontier;
use wardkeep_evidence::note::{Algorithm, Note, SigningKey};
use wardkeep_evidence::seal::{EpochKey, LogPublic, frame, sign_seal, slot_of};

use crate::shared::{folder_with_bundle, run, succeed};

const LOG_SEED: [u8; 32] = [1; 32];
const EPOCH_SEED: [u8; 32] = [2; 32];

/// Seals the first `size` entries of the bundle and lets a witness cosign; gives the witness's key.
fn seal(bundle: &Path, size: usize) -> String {
    let named = SigningKey::from_seed("log", Algorithm::Ed25519, &LOG_SEED).unwrap();
    let epoch = EpochKey::first(&EPOCH_SEED);
    let public = LogPublic { log: named.verifier().public_key(), epoch0: epoch.public() };
    let mut tree = Frontier::new();
    let log = fs::read_to_string(bundle.join("audit-log.jsonl")).unwrap();
    for line in log.lines().take(size) {
        let entry = Entry::from_value(json::parse(line.as_bytes()).unwrap(), &mut |_, _, _| {});
        tree.push(entry.unwrap().leaf());
    }
    let slot = slot_of(1_800_000_000);
    let key = public.signing_key(&LOG_SEED).unwrap();
    let note = sign_seal(&public, &key, &epoch, (slot, slot), tree.size(), tree.root()).unwrap();
    let witness =
        SigningKey::from_seed("witness.example", Algorithm::CosignatureV1, &[3; 32]).unwrap();
    let mut cosigned = Note::parse(&note.to_string()).unwrap();
    cosigned.push(witness.cosign(&note.text, 1_800_000_100).unwrap()).unwrap();
    let seals = bundle.join("seals");
    fs::create_dir(&seals).unwrap();
    fs::write(seals.join("log.pub"), format!("{public}\n")).unwrap();
    fs::write(seals.join("checkpoints"), frame(&note)).unwrap();
    fs::write(seals.join("cosigned"), frame(&cosigned)).unwrap();
    witness.verifier().to_string()
}

#[test]
fn verify_says_how_far_seals_and_witnesses_reach() {
    let folder = folder_with_bundle();
    let at = folder.path();
    let witness = seal(&at.join("b"), 1);
    let alone = succeed(at, &["aegx", "verify", "b"]);
    assert!(alone.contains("\n  signed       1 of 2 entries, 1 not yet\n"), "{alone}");
    assert!(alone.contains("\n  log keys     by keys that came with the bundle"), "{alone}");
    assert!(alone.contains("\n  witness      none asked for"), "{alone}");
    assert!(!alone.contains("vouches"), "{alone}");

    fs::copy(at.join("b/seals/log.pub"), at.join("log.pub")).unwrap();
    let trust = ["--log", "log.pub", "--witness", &witness];
    let pinned = succeed(at, &[&["aegx", "verify", "b"][..], &trust].concat());
    assert!(!pinned.contains("log keys"), "{pinned}");
    assert!(
        pinned.contains("witness.example vouches for 1 of 2 entries at 2027-01-15T08:01:40Z"),
        "{pinned}"
    );
    let json = succeed(at, &[&["aegx", "verify", "b", "--json"][..], &trust].concat());
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["seals"]["signed_to"], &value["seals"]["unsealed"]), (&1.into(), &1.into()));
    assert_eq!(value["seals"]["pinned"], true);
    assert_eq!(value["seals"]["witnesses"][0]["to"], 1);

    fs::remove_file(at.join("b/seals/cosigned")).unwrap();
    let unwitnessed = run(at, &[&["aegx", "verify", "b"][..], &trust].concat());
    assert_eq!(unwitnessed.code, 2, "{unwitnessed:?}");
    assert!(unwitnessed.stderr.contains("witness-missing"), "{unwitnessed:?}");
}

#[test]
fn seals_taken_away_do_not_pass_for_the_log_that_was_named() {
    let folder = folder_with_bundle();
    let at = folder.path();
    seal(&at.join("b"), 2);
    fs::rename(at.join("b/seals/log.pub"), at.join("log.pub")).unwrap();
    fs::remove_dir_all(at.join("b/seals")).unwrap();
    succeed(at, &["aegx", "verify", "b"]);
    let ran = run(at, &["aegx", "verify", "b", "--log", "log.pub"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("seal-origin"), "{ran:?}");
}

#[test]
fn a_log_that_was_named_and_has_sealed_nothing_does_not_vouch() {
    let folder = folder_with_bundle();
    let at = folder.path();
    seal(&at.join("b"), 0);
    fs::copy(at.join("b/seals/log.pub"), at.join("log.pub")).unwrap();
    let ran = run(at, &["aegx", "verify", "b", "--log", "log.pub"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("seal-missing"), "{ran:?}");
    // Without a name nothing was asked for, and it says how far the seals reach.
    let unnamed = succeed(at, &["aegx", "verify", "b"]);
    assert!(unnamed.contains("0 of 2 entries, 2 not yet"), "{unnamed}");
}
