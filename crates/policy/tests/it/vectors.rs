//! What LocalGPT 0.3.6 wrote, and what is made of it here. Where the verdict differs from that of
//! LocalGPT, the table says why.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use wardkeep_policy::audit::{self, Action, Chain, Event, Line, Source};
use wardkeep_policy::verify::State;

use crate::lab::{Lab, folder, now, vectors};

struct Case {
    name: &'static str,
    reference: &'static str,
    state: State,
    word: Option<&'static str>,
    /// Why ours differs.
    because: &'static str,
}

const fn same(name: &'static str, reference: &'static str, state: State) -> Case {
    Case { name, reference, state, word: None, because: "" }
}

const fn differs(
    name: &'static str,
    reference: &'static str,
    state: State,
    word: &'static str,
    because: &'static str,
) -> Case {
    Case { name, reference, state, word: Some(word), because }
}

#[rustfmt::skip]
const SIGNATURES: [Case; 16] = [
    same("basic", "Valid", State::Valid),
    same("sign_empty", "Valid", State::Valid),
    same("sign_bom", "Valid", State::Valid),
    same("sign_multibyte", "Valid", State::Valid),
    same("sign_nonewline", "Valid", State::Valid),
    same("neg_nomanifest", "Unsigned", State::Unsigned),
    differs("neg_manifestdir", "ManifestCorrupted", State::ManifestCorrupted, "not-regular", ""),
    differs("neg_wrongkey", "TamperDetected", State::TamperDetected, "hmac-mismatch", ""),
    differs("neg_extrafield", "Valid", State::ManifestCorrupted, "unknown-member", "what is signed has no unknown members"),
    differs("neg_version99", "Valid", State::ManifestCorrupted, "unknown-version", "a version that is not known cannot be checked"),
    differs("neg_signedbyagent", "Valid", State::TamperDetected, "signed-by", "RFC 4.2: never the agent"),
    differs("neg_symlink", "Valid", State::TamperDetected, "link", "decision 7: links are not followed"),
    differs("neg_policydir", "Missing", State::TamperDetected, "not-regular", "decision 7: something stands in the place of the policy"),
    differs("neg_nonutf8", "Missing", State::TamperDetected, "content-changed", "decision 3: bytes are compared, whatever they are"),
    differs("neg_nokey", "ManifestCorrupted", State::TamperDetected, "key-missing", "the manifest is sound, it cannot be checked"),
    differs("neg_shortkey", "ManifestCorrupted", State::TamperDetected, "key-wrong-length", "the manifest is sound, it cannot be checked"),
];

/// Copies a case to where its files have the names and modes that ours want.
fn copy(case: &Path, lab: &Lab) {
    for entry in fs::read_dir(case.join("workspace")).unwrap() {
        let entry = entry.unwrap();
        let to = lab.workspace_path().join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
        } else {
            fs::copy(entry.path(), &to).unwrap();
            fs::set_permissions(&to, Permissions::from_mode(0o644)).unwrap();
        }
    }
    // A link that was stored as its target.
    if fs::read(lab.policy_path()).is_ok_and(|bytes| bytes == b"../../target.md") {
        fs::remove_file(lab.policy_path()).unwrap();
        let target = lab.path().join("target.md");
        fs::copy(case.parent().unwrap().join("target.md"), &target).unwrap();
        symlink(target, lab.policy_path()).unwrap();
    }
    if let Ok(key) = fs::read(case.join("state/localgpt.device.key")) {
        fs::write(lab.store.key_path(), key).unwrap();
        fs::set_permissions(lab.store.key_path(), Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn every_signature_gets_its_verdict() {
    let Some(vectors) = vectors("every_signature_gets_its_verdict") else { return };
    let mut folders: Vec<String> = fs::read_dir(&vectors)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name == "basic" || name.starts_with("sign_") || name.starts_with("neg_"))
        .collect();
    folders.sort();
    let mut listed: Vec<&str> = SIGNATURES.iter().map(|case| case.name).collect();
    listed.sort_unstable();
    assert_eq!(folders, listed, "every case is in the table");
    for case in &SIGNATURES {
        let lab = Lab::without_key();
        copy(&vectors.join(case.name), &lab);
        let verdict = lab.verdict();
        assert_eq!(verdict, (case.state, case.word), "{}", case.name);
        let agrees = format!("{:?}", case.state) == case.reference;
        assert_eq!(agrees, case.because.is_empty(), "{}: {}", case.name, case.reference);
        println!("{:<18} {:<18} {:<18?} {}", case.name, case.reference, case.state, case.because);
    }
}

#[test]
fn the_text_of_a_valid_vector_is_its_file() {
    let Some(vectors) = vectors("the_text_of_a_valid_vector_is_its_file") else { return };
    for name in ["basic", "sign_empty", "sign_multibyte", "sign_nonewline", "sign_bom"] {
        let lab = Lab::without_key();
        copy(&vectors.join(name), &lab);
        let file = fs::read_to_string(lab.policy_path()).unwrap();
        let verification = lab.verify().verification;
        let text = verification.policy().unwrap().text();
        assert_eq!(text, file.trim_start_matches('\u{feff}'), "{name}");
    }
}

/// Numbers of broken lines, of damaged ones, segments, and the verdict.
type Findings<'a> = (&'a [u64], &'a [u64], &'a [(u64, u64)], Chain);

#[test]
fn every_log_gets_its_verdict() {
    let Some(vectors) = vectors("every_log_gets_its_verdict") else { return };
    let logs: [(&str, &str, Findings<'_>); 7] = [
        ("basic/state", "intact", (&[], &[], &[(1, 7)], Chain::Intact)),
        // The recovery was glued to the torn line and is lost with it.
        ("torn", "broken 7, 8", (&[9], &[8], &[(1, 7), (9, 10)], Chain::Broken)),
        ("garbage", "broken 7", (&[], &[8], &[(1, 7), (9, 10)], Chain::Recovered)),
        // LocalGPT reads nothing of it and never writes again.
        ("badutf8", "unreadable", (&[], &[8], &[(1, 7)], Chain::Recovered)),
        // The chain alone cannot show these two: the journal does, see `reconcile`.
        ("trunc", "intact", (&[], &[], &[(1, 3)], Chain::Intact)),
        ("rewrite", "intact", (&[], &[], &[(1, 2)], Chain::Intact)),
        // LocalGPT cannot read the RFC's own example, and recovers from it.
        ("rfcnull", "broken 0", (&[], &[], &[(1, 3)], Chain::Intact)),
    ];
    for (name, reference, expected) in logs {
        let path = vectors.join(name).join("localgpt.audit.jsonl");
        let summary = audit::read(&path, None).unwrap().summary;
        let segments: Vec<(u64, u64)> =
            summary.segments.iter().map(|one| (one.first, one.last)).collect();
        let found: Findings<'_> =
            (&summary.broken_lines, &summary.corrupted_lines, &segments, summary.chain);
        assert_eq!(found, expected, "{name}");
        println!("{name:<12} {reference:<12} {:?}", summary.chain);
    }
}

#[test]
fn every_log_can_be_appended_to() {
    let Some(vectors) = vectors("every_log_can_be_appended_to") else { return };
    for name in ["basic/state", "torn", "garbage", "badutf8", "trunc", "rewrite", "rfcnull"] {
        let folder = folder();
        let path = folder.path().join("log");
        fs::copy(vectors.join(name).join("localgpt.audit.jsonl"), &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let before = fs::read(&path).unwrap();
        audit::append(&path, &Event::new(Action::Missing, Source::SessionStart), now()).unwrap();
        let after = fs::read(&path).unwrap();
        assert!(after.starts_with(&before), "{name}: nothing is rewritten");
        let report = audit::read(&path, None).unwrap();
        let last = report.rows.last().unwrap();
        assert!(matches!(&last.line, Line::Entry(entry) if entry.action == Action::Missing));
        assert_eq!(last.link, audit::Link::Valid, "{name}");
    }
}

#[test]
fn truncation_and_rewriting_show_against_the_journal() {
    let Some(vectors) = vectors("truncation_and_rewriting_show_against_the_journal") else {
        return;
    };
    let log = |name: &str| vectors.join(name).join("localgpt.audit.jsonl");
    let mut journal = Vec::new();
    audit::scan(&log("basic/state"), |row| journal.push(row.hash)).unwrap();
    assert!(audit::reconcile(&log("basic/state"), &journal).unwrap().agrees());
    let truncated = audit::reconcile(&log("trunc"), &journal).unwrap();
    assert_eq!(truncated.missing, journal[3..], "the tail is missing");
    let rewritten = audit::reconcile(&log("rewrite"), &journal).unwrap();
    assert_eq!((rewritten.missing.len(), rewritten.unknown), (7, vec![1, 2]));
}
