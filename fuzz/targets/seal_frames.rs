//! Any bytes as the file of seals, and of cosigned heads, of a log.

#![no_main]

use std::sync::LazyLock;

use wardkeep_evidence::check::Findings;
use wardkeep_evidence::merkle::{empty_root, leaf_hash};
use wardkeep_evidence::note::Note;
use wardkeep_evidence::seal::{
    EpochKey, Frame, LogPublic, SealChain, ends_within_line, frame, sign_seal, split_frames,
};
use wardkeep_evidence::verify::{Trust, check_notes};

/// The log of the seeds, whose keys the vectors describe.
static PUBLIC: LazyLock<LogPublic> = LazyLock::new(|| {
    let public = |seed: &[u8; 32]| EpochKey::first(seed).public();
    LogPublic { log: public(&[0x11; 32]), epoch0: public(&[0x22; 32]) }
});

/// Its first seal, over nothing.
static FIRST: LazyLock<String> = LazyLock::new(|| {
    let log = PUBLIC.signing_key(&[0x11; 32]).expect("the seed of this log");
    let key = EpochKey::first(&[0x22; 32]);
    frame(&sign_seal(&PUBLIC, &log, &key, (1, 1), 0, empty_root()).expect("good numbers"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut chain = SealChain::new(*PUBLIC);
    let mut at = 0;
    let mut good = 0;
    for piece in split_frames(data) {
        match piece {
            Frame::Damaged { offset, len } => {
                assert_eq!(offset, at, "no gap and no overlap");
                assert!(len > 0);
                at += len;
            }
            Frame::Note { offset, text } => {
                assert_eq!(offset, at, "no gap and no overlap");
                at += format!("~ {}\n{text}\n", text.len()).len();
                let Ok(note) = Note::parse(text) else { continue };
                assert_eq!(frame(&note).as_bytes(), &data[offset..at]);
                let before = chain.expected_epoch();
                if chain.feed(&note).is_ok() {
                    good += 1;
                    assert_eq!(chain.expected_epoch(), before + 1);
                }
            }
        }
    }
    assert_eq!(at, data.len(), "the pieces cover the file");

    let mut findings = Findings::default();
    let mut check = check_notes(&PUBLIC, &Trust::default(), data, data, &mut findings);
    for number in 0..3u8 {
        check.push_leaf(leaf_hash(&[number]), &mut findings);
    }
    let report = check.finish(3, &mut findings);
    assert_eq!(report.seals, good);
    assert!(report.signed_to <= 3 && report.unsealed == 3 - report.signed_to);
    assert!(report.witnesses.is_empty());

    // What is appended after a torn write, as the writer appends it, is found again.
    let mut file = data.to_vec();
    if ends_within_line(&file) {
        file.push(b'\n');
    }
    file.extend_from_slice(FIRST.as_bytes());
    let last = split_frames(&file).into_iter().next_back();
    let found = matches!(last, Some(Frame::Note { text, .. }) if FIRST.contains(text));
    assert!(found, "a torn frame hides no later one");
});
