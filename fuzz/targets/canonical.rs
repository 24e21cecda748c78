//! Any bytes as JSON: what is read has one canonical form, and compact text keeps it.

#![no_main]

use wardkeep_evidence::canonical::{canonical, check_unambiguous, write_compact};
use wardkeep_evidence::json::parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(value) = parse(data) else { return };
    let form = canonical(&value);
    let mut line = Vec::new();
    write_compact(&value, &mut line);
    assert!(!line.contains(&b'\n'), "a line stays a line");
    let read = parse(&line).expect("compact text is JSON");
    assert_eq!(canonical(&read), form, "compact text keeps the canonical form");
    let again = canonical(&parse(&form).expect("the canonical form is JSON"));
    if check_unambiguous(&value).is_ok() {
        assert_eq!(again, form, "what is not ambiguous is a fixed point");
    }
    // Keys in another normal form are sorted by what they were, so that only the second pass, over
    // keys that are all in NFC, has to be a fixed point.
    assert_eq!(canonical(&parse(&again).expect("so is the second")), again);
    // The way into owned values must not change them.
    assert_eq!(canonical(&value.into_owned()), form);
});
