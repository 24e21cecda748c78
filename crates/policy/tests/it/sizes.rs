//! Lengths around the limit, in scripts whose characters take one to four bytes.

use wardkeep_policy::sanitise::{MAX_POLICY_CHARS, sanitise};
use wardkeep_policy::verify::State;

use crate::lab::Lab;

#[test]
fn multi_byte_limits_count_characters() {
    assert_eq!(MAX_POLICY_CHARS, 4096);
    for (bytes, character) in [(1, "a"), (2, "é"), (3, "報"), (4, "𠀋")] {
        assert_eq!(character.len(), bytes);
        for length in [0, 1, 4095, 4096, 4097] {
            let policy = character.repeat(length);
            let lab = Lab::new();
            lab.write(&policy);
            let signed = lab.sign();
            assert_eq!(signed.is_ok(), length <= 4096, "{bytes} × {length}: {signed:?}");
            let text = sanitise(&policy);
            assert_eq!(text.characters, length);
            if length <= 4096 {
                assert_eq!(lab.verdict(), (State::Valid, None), "{bytes} × {length}");
                assert_eq!(text.text, policy);
                assert_eq!(text.truncated, None);
            } else {
                assert_eq!(lab.verdict(), (State::Unsigned, None));
                let left = text.text.chars().take_while(|c| character.starts_with(*c)).count();
                assert_eq!(text.truncated, Some(length - left));
                assert!(text.text.chars().count() <= 4096, "the notice is within the limit");
            }
        }
    }
}

#[test]
fn a_cut_text_never_exceeds_the_limit() {
    for length in (4097..=4200).chain([9_999, 10_000, 99_999, 100_000]) {
        let text = sanitise(&"é".repeat(length));
        let count = text.text.chars().count();
        assert!((4090..=4096).contains(&count), "{length}: {count}");
        let kept = text.text.chars().take_while(|c| *c == 'é').count();
        assert_eq!(text.truncated, Some(length - kept));
    }
}

/// LocalGPT 0.3.6 compared bytes and cut characters.
#[test]
fn a_text_within_the_limit_gets_no_notice() {
    let text = sanitise(&"é".repeat(2100));
    assert_eq!((text.truncated, text.text.chars().count()), (None, 2100));
    let text = sanitise(&"✓".repeat(4096));
    assert_eq!((text.truncated, text.text.chars().count()), (None, 4096));
}
