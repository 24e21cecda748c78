//! Any text as a note, a checkpoint, a verifier key and a log's public keys.

#![no_main]

use std::sync::LazyLock;

use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::note::{Algorithm, Note, Signature, SigningKey, VerifierKey};
use wardkeep_evidence::seal::{LogPublic, Seal};

/// The keys that signed the seeds, and the one text they ever signed.
static KEYS: LazyLock<[VerifierKey; 2]> = LazyLock::new(|| {
    let log = SigningKey::from_seed("log.example/one", Algorithm::Ed25519, &[0x11; 32]);
    let witness =
        SigningKey::from_seed("witness.example/lab", Algorithm::CosignatureV1, &[0x33; 32]);
    [log, witness].map(|key| key.expect("a good name").verifier().clone())
});
const SIGNED: &str = "log.example/one\n2\n+qSwXYW3XAdiYQ0gLS3sCkwcvuwZqTsZ3gVAUwQFDSw=\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(note) = Note::parse(text) {
        assert_eq!(note.to_string(), text, "a note is written as it was read");
        for key in KEYS.iter() {
            assert!(key.verify(&note).is_err() || note.text == SIGNED, "forged");
        }
        if let Ok(checkpoint) = Checkpoint::parse(&note.text) {
            assert_eq!(checkpoint.to_text(), note.text);
            if let Ok(seal) = Seal::from_checkpoint(&checkpoint) {
                assert_eq!(seal.to_checkpoint(&checkpoint.origin).to_text(), note.text);
            }
        }
    }
    if let Ok(checkpoint) = Checkpoint::parse(text) {
        assert_eq!(checkpoint.to_text(), text);
    }
    if let Ok(signature) = Signature::parse_line(text) {
        assert_eq!(signature.to_string(), text);
    }
    if let Ok(key) = VerifierKey::parse(text) {
        assert_eq!(key.to_string(), text);
    }
    if let Ok(public) = text.parse::<LogPublic>() {
        assert_eq!(public.to_string(), text);
        assert_eq!(public.log_key().name(), public.origin());
    }
});
