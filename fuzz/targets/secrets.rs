//! Any text with credentials in it: found in its bounds, and gone once redacted.

#![no_main]

use wardkeep_detect::secrets::{everywhere, find_secrets, fingerprint, redact};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let secrets = find_secrets(text);
    let redacted = redact(text, &secrets);
    assert!(secrets.is_sorted_by_key(|secret| secret.span.start), "in their order");
    for secret in &secrets {
        let value = text.get(secret.span.start..secret.span.end).expect("a place of the text");
        assert!(!value.is_empty());
        assert!((0.0..=1.0).contains(&secret.confidence), "{secret:?}");
        let _ = fingerprint(&[7; 32], text, secret);
    }
    // What is left of the text is what no place covers, and no value stands in it.
    let places = everywhere(text, &secrets);
    assert!(secrets.iter().all(|secret| places.iter().any(|place| place.span == secret.span)));
    if !text.contains('\0') && !text.contains("[REDACTED:") {
        let mut rest = String::new();
        let mut at = 0;
        for span in places.iter().map(|place| place.span) {
            if span.start >= at {
                rest.push_str(&text[at..span.start]);
                rest.push('\0');
            }
            at = at.max(span.end);
        }
        rest.push_str(&text[at..]);
        let mut unmarked = redacted;
        for secret in &secrets {
            unmarked = unmarked.replace(&format!("[REDACTED:{}]", secret.kind), "\0");
        }
        assert_eq!(unmarked, rest, "{secrets:?}");
        for secret in &secrets {
            let value = &text[secret.span.start..secret.span.end];
            assert!(value.len() < 8 || !rest.contains(value), "{secret:?}");
        }
    }
    // Spans of another text must not break it.
    if let Some(half) = text.get(..text.len() / 2) {
        let _ = redact(half, &secrets);
    }
});
