//! Signed notes (C2SP signed-note v1) with Ed25519 signatures and cosignature/v1 cosignatures.
//!
//! A note is a text that ends with a newline, an empty line, and one line for each signature. A
//! parsed note proves nothing; only [`VerifierKey::verify`] does.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, VerifyingKey};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The largest note read, in bytes.
pub const MAX_NOTE_BYTES: usize = 1 << 20;

/// The most signature lines a note may have.
pub const MAX_SIGNATURES: usize = 100;

/// The latest time a cosignature may state.
pub const MAX_TIMESTAMP: u64 = i64::MAX as u64;

const COSIGNATURE_HEADER: &str = "cosignature/v1\n";
const SIGNATURE_PREFIX: &str = "— ";
const KEY_ID_LENGTH: usize = 4;
const TIMESTAMP_LENGTH: usize = 8;
const EXCERPT_CHARACTERS: usize = 48;

/// A text with its signatures, none of them checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The signed text, with its final newline.
    pub text: String,
    /// The signatures in the order of their lines, known and unknown.
    pub signatures: Vec<Signature>,
}

impl Note {
    /// A note without signatures yet; the text must end with a newline.
    pub fn new(text: String) -> Result<Self, NoteError> {
        check_text(&text)?;
        Ok(Self { text, signatures: Vec::new() })
    }

    /// Reads a note. [`Note`]'s `Display` writes exactly the bytes accepted here.
    pub fn parse(note: &str) -> Result<Self, NoteError> {
        check_text(note)?;
        // INVARIANT: a signature line is never empty, so the last empty line ends the text.
        let separator = note.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let (text, signatures) = note.split_at(separator + 1);
        let lines = signatures.trim_matches('\n');
        if lines.is_empty() {
            return Err(NoteError::NoSignatures);
        }
        if lines.split('\n').nth(MAX_SIGNATURES).is_some() {
            return Err(NoteError::TooManySignatures);
        }
        let signatures = lines.split('\n').map(Signature::parse_line).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), signatures })
    }

    /// Adds a signature line; refuses the one after [`MAX_SIGNATURES`].
    pub fn push(&mut self, signature: Signature) -> Result<(), NoteError> {
        if self.signatures.len() >= MAX_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        self.signatures.push(signature);
        Ok(())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)?;
        formatter.write_str("\n")?;
        self.signatures.iter().try_for_each(|signature| writeln!(formatter, "{signature}"))
    }
}

/// One signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name of the key that signed.
    pub name: String,
    /// The short identifier of that key.
    pub key_id: KeyId,
    /// The signature itself, in the form its algorithm gives it.
    pub bytes: Vec<u8>,
}

impl Signature {
    /// Reads a signature line, given without its newline.
    pub fn parse_line(line: &str) -> Result<Self, NoteError> {
        let malformed = || NoteError::SignatureLine { line: excerpt(line) };
        let rest = line.strip_prefix(SIGNATURE_PREFIX).ok_or_else(malformed)?;
        let (name, encoded) = rest.split_once(' ').ok_or_else(malformed)?;
        check_key_name(name)?;
        let decoded = STANDARD.decode(encoded).map_err(|_| malformed())?;
        let (key_id, bytes) = decoded.split_first_chunk().ok_or_else(malformed)?;
        if bytes.is_empty() {
            return Err(malformed());
        }
        let key_id = KeyId(u32::from_be_bytes(*key_id));
        Ok(Self { name: name.to_owned(), key_id, bytes: bytes.to_vec() })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut payload = Vec::with_capacity(KEY_ID_LENGTH + self.bytes.len());
        payload.extend(self.key_id.0.to_be_bytes());
        payload.extend(&self.bytes);
        write!(formatter, "{SIGNATURE_PREFIX}{} {}", self.name, STANDARD.encode(payload))
    }
}

/// The short identifier of a key; a hint and no proof, since a collision is easy to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08x}", self.0)
    }
}

/// What a key signs and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Ed25519 over the text of the note.
    Ed25519,
    /// Ed25519 over a time and the text of the note, as witnesses sign.
    CosignatureV1,
}

impl Algorithm {
    /// The byte that stands for the algorithm in key identifiers and verifier keys.
    pub fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::CosignatureV1 => 0x04,
        }
    }

    fn from_byte(byte: u8) -> Result<Self, NoteError> {
        match byte {
            0x01 => Ok(Self::Ed25519),
            0x04 => Ok(Self::CosignatureV1),
            _ => Err(NoteError::UnknownAlgorithm { byte }),
        }
    }
}

/// A named public key that checks signatures on notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    algorithm: Algorithm,
    key_id: KeyId,
    public_key: [u8; 32],
}

impl VerifierKey {
    /// A key from its parts; refuses a malformed name and bytes that are no usable public key.
    pub fn new(name: &str, algorithm: Algorithm, public_key: [u8; 32]) -> Result<Self, NoteError> {
        check_key_name(name)?;
        check_public_key(&public_key)?;
        Ok(Self::from_trusted_parts(name.to_owned(), algorithm, public_key))
    }

    /// A key whose name the caller made well-formed; an unusable public key verifies nothing.
    pub(crate) fn from_trusted_parts(
        name: String,
        algorithm: Algorithm,
        public_key: [u8; 32],
    ) -> Self {
        let key_id = derive_key_id(&name, algorithm, &public_key);
        Self { name, algorithm, key_id, public_key }
    }

    /// Reads the text form `<name>+<key id>+<base64>`.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let malformed = || NoteError::VerifierKeyFormat { text: excerpt(text) };
        // Base64 may hold a plus; the name and the identifier may not.
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(key_id), Some(encoded)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        check_key_name(name)?;
        let decoded = STANDARD.decode(encoded).map_err(|_| malformed())?;
        let (byte, public_key) = decoded.split_first().ok_or_else(malformed)?;
        let algorithm = Algorithm::from_byte(*byte)?;
        let key = Self::new(name, algorithm, public_key.try_into().map_err(|_| malformed())?)?;
        if key.key_id.to_string() != key_id {
            return Err(NoteError::KeyIdDiffers { text: excerpt(text), expected: key.key_id });
        }
        Ok(key)
    }

    /// The name of the key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the key signs and how.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The short identifier of the key.
    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The Ed25519 public key.
    pub fn public_key(&self) -> [u8; 32] {
        self.public_key
    }

    /// Checks every signature line that bears this key's name and identifier.
    ///
    /// Lines of other keys are ignored. No line of this key is [`NoteError::NotSigned`]; one that
    /// does not hold is [`NoteError::BadSignature`], even beside another that does. The time of
    /// the first line counts.
    pub fn verify(&self, note: &Note) -> Result<Verified, NoteError> {
        let mut verified = None;
        let ours = |line: &&Signature| line.key_id == self.key_id && line.name == self.name;
        for signature in note.signatures.iter().filter(ours) {
            let checked = self
                .verify_bytes(&note.text, &signature.bytes)
                .ok_or_else(|| NoteError::BadSignature { name: self.name.clone() })?;
            verified.get_or_insert(checked);
        }
        verified.ok_or_else(|| NoteError::NotSigned { name: self.name.clone() })
    }

    fn verify_bytes(&self, text: &str, bytes: &[u8]) -> Option<Verified> {
        match self.algorithm {
            Algorithm::Ed25519 => {
                self.verify_message(text.as_bytes(), bytes)?;
                Some(Verified { timestamp: None })
            }
            Algorithm::CosignatureV1 => {
                let (timestamp, bytes) = bytes.split_first_chunk::<TIMESTAMP_LENGTH>()?;
                let timestamp = u64::from_be_bytes(*timestamp);
                if timestamp > MAX_TIMESTAMP {
                    return None;
                }
                self.verify_message(cosigned_message(text, timestamp).as_bytes(), bytes)?;
                Some(Verified { timestamp: Some(timestamp) })
            }
        }
    }

    fn verify_message(&self, message: &[u8], bytes: &[u8]) -> Option<()> {
        let key = VerifyingKey::from_bytes(&self.public_key).ok()?;
        let signature = ed25519_dalek::Signature::from_slice(bytes).ok()?;
        key.verify_strict(message, &signature).ok()
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut payload = vec![self.algorithm.byte()];
        payload.extend(self.public_key);
        write!(formatter, "{}+{}+{}", self.name, self.key_id, STANDARD.encode(payload))
    }
}

/// What a signature that holds says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// The Unix time a cosignature states; an Ed25519 signature states none.
    pub timestamp: Option<u64>,
}

/// A named secret key that signs notes; the seed is wiped when it is dropped.
pub struct SigningKey {
    // INVARIANT: dalek's key wipes itself on drop, by its `zeroize` feature.
    key: ed25519_dalek::SigningKey,
    verifier: VerifierKey,
}

impl SigningKey {
    /// The key a seed of 32 random bytes stands for.
    pub fn from_seed(name: &str, algorithm: Algorithm, seed: &[u8; 32]) -> Result<Self, NoteError> {
        let key = ed25519_dalek::SigningKey::from_bytes(seed);
        let verifier = VerifierKey::new(name, algorithm, key.verifying_key().to_bytes())?;
        Ok(Self { key, verifier })
    }

    /// The public half.
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// Signs the text of a note; only for [`Algorithm::Ed25519`] keys.
    ///
    /// A text that begins like the message of a cosignature is refused, so that one seed used
    /// under both algorithms cannot be tricked into cosigning.
    pub fn sign(&self, text: &str) -> Result<Signature, NoteError> {
        self.check_algorithm(Algorithm::Ed25519)?;
        check_text(text)?;
        if text.starts_with(COSIGNATURE_HEADER) {
            return Err(NoteError::ReservedText);
        }
        Ok(self.signature(self.key.sign(text.as_bytes()).to_bytes().to_vec()))
    }

    /// Signs the text of a note and a Unix time; only for [`Algorithm::CosignatureV1`] keys.
    pub fn cosign(&self, text: &str, timestamp: u64) -> Result<Signature, NoteError> {
        self.check_algorithm(Algorithm::CosignatureV1)?;
        check_text(text)?;
        if timestamp > MAX_TIMESTAMP {
            return Err(NoteError::TimestampTooLate { timestamp });
        }
        let message = cosigned_message(text, timestamp);
        let mut bytes = timestamp.to_be_bytes().to_vec();
        bytes.extend(self.key.sign(message.as_bytes()).to_bytes());
        Ok(self.signature(bytes))
    }

    fn check_algorithm(&self, needed: Algorithm) -> Result<(), NoteError> {
        if self.verifier.algorithm == needed {
            return Ok(());
        }
        Err(NoteError::WrongAlgorithm { name: self.verifier.name.clone() })
    }

    fn signature(&self, bytes: Vec<u8>) -> Signature {
        Signature { name: self.verifier.name.clone(), key_id: self.verifier.key_id, bytes }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SigningKey")
            .field("verifier", &self.verifier)
            .finish_non_exhaustive()
    }
}

/// Refuses what no note may hold, and a text without its final newline.
pub(crate) fn check_text(text: &str) -> Result<(), NoteError> {
    if text.len() > MAX_NOTE_BYTES {
        return Err(NoteError::TooLarge);
    }
    let is_forbidden = |byte: u8| byte < b' ' && byte != b'\n';
    if let Some(offset) = text.bytes().position(is_forbidden) {
        return Err(NoteError::ControlCharacter { offset });
    }
    if text.ends_with('\n') { Ok(()) } else { Err(NoteError::NoFinalNewline) }
}

/// Refuses bytes that are no point of the curve, and points that let one signature fit any text.
pub(crate) fn check_public_key(public_key: &[u8; 32]) -> Result<(), NoteError> {
    match VerifyingKey::from_bytes(public_key) {
        Ok(key) if !key.is_weak() => Ok(()),
        _ => Err(NoteError::PublicKey),
    }
}

/// The beginning of a hostile text, safe to show.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARACTERS).flat_map(char::escape_debug).collect()
}

fn check_key_name(name: &str) -> Result<(), NoteError> {
    let is_forbidden =
        |character: char| character.is_whitespace() || character < ' ' || character == '+';
    if name.is_empty() || name.contains(is_forbidden) {
        return Err(NoteError::KeyName { name: excerpt(name) });
    }
    Ok(())
}

fn derive_key_id(name: &str, algorithm: Algorithm, public_key: &[u8; 32]) -> KeyId {
    let hasher = Sha256::new().chain_update(name).chain_update([b'\n', algorithm.byte()]);
    let digest: [u8; 32] = hasher.chain_update(public_key).finalize().into();
    let [first, second, third, fourth, ..] = digest;
    KeyId(u32::from_be_bytes([first, second, third, fourth]))
}

fn cosigned_message(text: &str, timestamp: u64) -> String {
    format!("{COSIGNATURE_HEADER}time {timestamp}\n{text}")
}

/// Why a note, a key or a signature is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoteError {
    /// The note is above [`MAX_NOTE_BYTES`].
    #[error("the note is larger than {MAX_NOTE_BYTES} bytes")]
    TooLarge,
    /// The note holds a control character other than a newline.
    #[error("the note has a control character at byte {offset}; only newlines are allowed")]
    ControlCharacter {
        /// Where it stands.
        offset: usize,
    },
    /// The note or its text does not end with a newline.
    #[error("the note does not end with a newline; it may be cut off")]
    NoFinalNewline,
    /// No empty line, or no signature line after it.
    #[error("the note has no signature lines after an empty line; it may be cut off")]
    NoSignatures,
    /// The note has more than [`MAX_SIGNATURES`] signature lines.
    #[error("the note has more than {MAX_SIGNATURES} signatures")]
    TooManySignatures,
    /// A line is not a signature line.
    #[error("`{line}` is not a signature line; expected an em dash, a key name and base64")]
    SignatureLine {
        /// The beginning of the line.
        line: String,
    },
    /// A key name is empty or holds a space, a plus or a control character.
    #[error("`{name}` is not a key name; use a name without spaces and plus signs")]
    KeyName {
        /// The beginning of the name.
        name: String,
    },
    /// A text is not a verifier key.
    #[error("`{text}` is not a verifier key; expected `<name>+<key id>+<base64>`")]
    VerifierKeyFormat {
        /// The beginning of the text.
        text: String,
    },
    /// A verifier key states an identifier that is not its own.
    #[error("the key id in `{text}` should be {expected}; copy the verifier key again")]
    KeyIdDiffers {
        /// The beginning of the verifier key.
        text: String,
        /// The identifier that belongs to the key.
        expected: KeyId,
    },
    /// A verifier key is of an algorithm not known here.
    #[error("key algorithm {byte:#04x} is not supported; use an Ed25519 or cosignature/v1 key")]
    UnknownAlgorithm {
        /// The algorithm byte.
        byte: u8,
    },
    /// The bytes are no usable Ed25519 public key.
    #[error("the public key is not a usable Ed25519 key; copy the key again")]
    PublicKey,
    /// The key did not sign this note.
    #[error("the note bears no signature of `{name}`")]
    NotSigned {
        /// The name of the key.
        name: String,
    },
    /// A signature of the key does not hold.
    #[error("the signature of `{name}` does not match; the note was changed or forged")]
    BadSignature {
        /// The name of the key.
        name: String,
    },
    /// The key is of the other algorithm.
    #[error("key `{name}` is for the other kind of signature")]
    WrongAlgorithm {
        /// The name of the key.
        name: String,
    },
    /// The time to cosign is above [`MAX_TIMESTAMP`].
    #[error("time {timestamp} is too late for a cosignature; check the clock")]
    TimestampTooLate {
        /// The time given.
        timestamp: u64,
    },
    /// The text to sign begins like the message of a cosignature.
    #[error("the text begins like a cosignature and is not signed")]
    ReservedText,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GO_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const GO_NOTE: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\n\
        — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
    const TEXT: &str = "example.org/log\n3\nhello\n";

    fn key(algorithm: Algorithm) -> SigningKey {
        SigningKey::from_seed("example.org/key", algorithm, &[7; 32]).unwrap()
    }

    fn signed(signatures: &[Signature]) -> Note {
        Note { text: TEXT.to_owned(), signatures: signatures.to_vec() }
    }

    #[test]
    fn go_vector_verifies() {
        let (key, note) = (VerifierKey::parse(GO_KEY).unwrap(), Note::parse(GO_NOTE).unwrap());
        assert_eq!(key.verify(&note), Ok(Verified { timestamp: None }));
        assert_eq!((key.to_string(), note.to_string()), (GO_KEY.to_owned(), GO_NOTE.to_owned()));
        assert_eq!((key.name(), key.key_id()), ("PeterNeumann", KeyId(0xc74f_20a3)));
        let altered = Note::parse(&GO_NOTE.replace("you think", "you thinK")).unwrap();
        let bad = NoteError::BadSignature { name: "PeterNeumann".to_owned() };
        assert_eq!(key.verify(&altered), Err(bad));
    }

    #[test]
    fn signing_and_cosigning_round_trip() {
        let (log, witness) = (key(Algorithm::Ed25519), key(Algorithm::CosignatureV1));
        let note = signed(&[log.sign(TEXT).unwrap(), witness.cosign(TEXT, 1_679_315_147).unwrap()]);
        let note = Note::parse(&note.to_string()).unwrap();
        assert_eq!(log.verifier().verify(&note), Ok(Verified { timestamp: None }));
        let cosigned = witness.verifier().verify(&note);
        assert_eq!(cosigned, Ok(Verified { timestamp: Some(1_679_315_147) }));
        assert_ne!(log.verifier().key_id(), witness.verifier().key_id());
        for key in [&log, &witness] {
            let text = key.verifier().to_string();
            assert_eq!(VerifierKey::parse(&text).as_ref(), Ok(key.verifier()));
        }
    }

    #[test]
    fn a_changed_time_or_text_is_a_bad_signature() {
        let witness = key(Algorithm::CosignatureV1);
        let signature = witness.cosign(TEXT, 5).unwrap();
        let bad = || Err(NoteError::BadSignature { name: "example.org/key".to_owned() });
        for position in 0..signature.bytes.len() {
            let mut wrong = signature.clone();
            wrong.bytes[position] ^= 1;
            assert_eq!(witness.verifier().verify(&signed(&[wrong.clone()])), bad());
            assert_eq!(witness.verifier().verify(&signed(&[signature.clone(), wrong])), bad());
        }
        for length in 0..signature.bytes.len() {
            let cut = Signature { bytes: signature.bytes[..length].to_vec(), ..signature.clone() };
            assert_eq!(witness.verifier().verify(&signed(&[cut])), bad());
        }
    }

    #[test]
    fn unknown_signatures_are_ignored() {
        let log = key(Algorithm::Ed25519);
        let own = log.sign(TEXT).unwrap();
        let other_name = Signature { name: "example.org/other".to_owned(), ..own.clone() };
        let other_id = Signature { key_id: KeyId(own.key_id.0 ^ 1), ..own.clone() };
        let not_signed = NoteError::NotSigned { name: "example.org/key".to_owned() };
        let strangers = signed(&[other_name.clone(), other_id.clone()]);
        assert_eq!(log.verifier().verify(&strangers), Err(not_signed));
        assert!(log.verifier().verify(&signed(&[other_name, other_id, own])).is_ok());
    }

    #[test]
    fn keys_sign_only_what_they_are_for() {
        let (log, witness) = (key(Algorithm::Ed25519), key(Algorithm::CosignatureV1));
        assert!(matches!(log.cosign(TEXT, 5), Err(NoteError::WrongAlgorithm { .. })));
        assert!(matches!(witness.sign(TEXT), Err(NoteError::WrongAlgorithm { .. })));
        assert_eq!(log.sign("cosignature/v1\ntime 5\nx\n"), Err(NoteError::ReservedText));
        assert_eq!(log.sign("no newline"), Err(NoteError::NoFinalNewline));
        let late = NoteError::TimestampTooLate { timestamp: 1 << 63 };
        assert_eq!(witness.cosign(TEXT, 1 << 63), Err(late));
        assert!(!format!("{log:?}").contains("7, 7"));
    }

    #[test]
    fn malformed_notes_are_refused() {
        let line = "— a AAAAAAE=\n";
        assert!(Note::parse(&format!("text\n\n{line}")).is_ok());
        let many = line.repeat(MAX_SIGNATURES + 1);
        let large = "a".repeat(MAX_NOTE_BYTES);
        let cases = [
            String::new(),
            "\n".to_owned(),
            "\n\n".to_owned(),
            "text\n".to_owned(),
            "text\n\n".to_owned(),
            "text\n\n\n".to_owned(),
            format!("text\n{line}"),
            format!("text\n\n{}", line.trim_end()),
            format!("text\r\n\n{line}"),
            format!("te\0xt\n\n{line}"),
            format!("text\n\n{line}\n"),
            format!("text\n\n{line}\n\n"),
            format!("text\n\n{line}junk\n"),
            format!("text\n\n{many}"),
            format!("{large}\n\n{line}"),
            "text\n\n- a AAAAAAE=\n".to_owned(),
            "text\n\n—  AAAAAAE=\n".to_owned(),
            "text\n\n— a+b AAAAAAE=\n".to_owned(),
            "text\n\n— a\u{a0}b AAAAAAE=\n".to_owned(),
            "text\n\n— a b AAAAAAE=\n".to_owned(),
            "text\n\n— a AAAAAAE= \n".to_owned(),
            "text\n\n— a AAAAAAE\n".to_owned(),
            "text\n\n— a AAAAAAF=\n".to_owned(),
            "text\n\n— a AAAAAA==\n".to_owned(),
            "text\n\n— a \n".to_owned(),
            "text\n\n— a\n".to_owned(),
        ];
        for note in cases {
            assert!(Note::parse(&note).is_err(), "{}", excerpt(&note));
        }
        let full = Note::parse(&format!("text\n\n{}", line.repeat(MAX_SIGNATURES)));
        let mut full = full.unwrap();
        let extra = full.signatures[0].clone();
        assert_eq!(full.push(extra), Err(NoteError::TooManySignatures));
    }

    #[test]
    fn malformed_verifier_keys_are_refused() {
        let weak = VerifierKey::new("a", Algorithm::Ed25519, [0; 32]);
        assert_eq!(weak, Err(NoteError::PublicKey));
        let (name, rest) = GO_KEY.split_once('+').unwrap();
        let (key_id, encoded) = rest.split_once('+').unwrap();
        let cases = [
            "",
            "++",
            name,
            &format!("{name}+{key_id}"),
            &format!("{name}+{key_id}+"),
            &format!("+{key_id}+{encoded}"),
            &format!("{name}+C74F20A3+{encoded}"),
            &format!("{name}+c74f20a4+{encoded}"),
            &format!("{name}x+{key_id}+{encoded}"),
            &format!("{name}+{key_id}+{}", encoded.replace("ARpc", "Ahpc")),
            &format!("{GO_KEY}AAAA"),
            &format!("{GO_KEY}\n"),
        ];
        for text in cases {
            assert!(VerifierKey::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn display_gives_back_what_parse_took(
            text in "([^\\x00-\\x1f]{0,12}\n){1,6}",
            names in prop::collection::vec(("[a-z—~./]{1,9}", any::<u32>()), 1..6),
            bytes in prop::collection::vec(any::<u8>(), 1..90),
        ) {
            let signatures = names.into_iter().map(|(name, id)| {
                Signature { name, key_id: KeyId(id), bytes: bytes.clone() }
            });
            let note = Note { text, signatures: signatures.collect() };
            let written = note.to_string();
            prop_assert_eq!(Note::parse(&written), Ok(note));
        }

        #[test]
        fn hostile_input_never_panics(text in "(\n|— |[ab+=]|(?s:.)){0,40}") {
            if let Ok(note) = Note::parse(&text) {
                prop_assert_eq!(note.to_string(), text.clone());
            }
            let _ = (VerifierKey::parse(&text), Signature::parse_line(&text));
        }
    }
}
