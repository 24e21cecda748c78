//! Keys in blocks, web tokens, and files of passwords.

use super::placeholders::{entropy, is_placeholder};
use super::{Secret, run_length, secret};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Longest block that is one secret.
const MAX_BLOCK: usize = 64 << 10;

/// A PEM block whose label names a private key, up to its end or as far as it goes.
pub(super) fn pem(text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) {
    let label_length = run_length(text, end, 64, |byte| {
        byte.is_ascii_uppercase() || byte == b' ' || byte.is_ascii_digit()
    });
    let label = &text[end..end + label_length];
    let body = end + label_length + 5;
    let private = label.ends_with(b"PRIVATE KEY") || label == b"PGP PRIVATE KEY BLOCK";
    if !private || !text[end + label_length..].starts_with(b"-----") {
        return;
    }
    // Up to the next dashes, which are its end or another beginning: every byte is read once.
    let limit = text.len().min(body + MAX_BLOCK);
    let dashes = memchr::memmem::find(&text[body..limit], b"-----");
    let body_end = dashes.map_or(limit, |length| body + length);
    if !is_key_material(&text[body..body_end]) {
        return;
    }
    let mut close = body_end;
    if text[body_end..].starts_with(b"-----END ") {
        close += 9 + run_length(text, body_end + 9, 64, |byte| byte != b'-' && byte != b'\n');
        close += run_length(text, close, 5, |byte| byte == b'-');
    }
    let around = &text[start.saturating_sub(512)..start];
    let kind = match label {
        b"OPENSSH PRIVATE KEY" => "openssh-private-key",
        b"PGP PRIVATE KEY BLOCK" => "pgp-private-key",
        _ if memchr::memmem::find(around, b"service_account").is_some() => "gcp-service-account",
        _ => "private-key",
    };
    found.push(secret(kind, start, close, 0.98));
}

/// Enough signs of base64, not dots or a description.
fn is_key_material(body: &[u8]) -> bool {
    let sample = &body[..body.len().min(4096)];
    // A line end may be written as `\n`.
    let dense: Vec<u8> = sample
        .iter()
        .enumerate()
        .filter(|(place, byte)| {
            let escape = **byte == b'n' && *place > 0 && sample[place - 1] == b'\\';
            byte.is_ascii_alphanumeric() && !escape || matches!(byte, b'+' | b'/')
        })
        .map(|(_, byte)| *byte)
        .collect();
    let spaces = sample.iter().filter(|byte| **byte == b' ').count();
    dense.len() >= 48 && spaces * 6 < sample.len() && entropy(&dense) > 4.0 && !is_code(sample)
}

/// Whether there are too many signs of punctuation for the lines of a key, and too few long runs of digits.
fn is_code(sample: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let signs = sample
        .iter()
        .filter(|byte| !digit(byte) && !byte.is_ascii_whitespace() && **byte != b'\\')
        .count();
    let long = |run: &&[u8]| {
        run.len() >= 16
            && run.iter().any(u8::is_ascii_uppercase)
            && run.iter().any(u8::is_ascii_lowercase)
    };
    let runs = sample.split(|byte| !digit(byte)).filter(long);
    signs * 6 > sample.len() && runs.map(<[u8]>::len).sum::<usize>() < 48
}

/// A PuTTY key file.
pub(super) fn putty(text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) {
    // Only as far as the lines look like such a file, and another does not begin.
    let mark = &text[start..end];
    let mut at = start;
    let mut private = false;
    for _ in 0..120 {
        let length = run_length(text, at, 200, |byte| byte != b'\n');
        let line = &text[at..at + length];
        private |= line.starts_with(b"Private-Lines:");
        let header = memchr::memchr(b':', line).is_some_and(|colon| colon < 24);
        let data =
            length >= 4 && line.iter().all(|byte| !byte.is_ascii_whitespace() || *byte == b'\r');
        let another = at > start && memchr::memmem::find(line, mark).is_some();
        if length == 200 || !(header || data) || another {
            break;
        }
        at += length;
        if line.starts_with(b"Private-MAC:") || at >= text.len() {
            break;
        }
        at += 1;
    }
    if private {
        found.push(secret("putty-private-key", start, at.min(text.len()), 0.98));
    }
}

/// Three parts of base64, the first of which is a JSON object that names an algorithm.
pub(super) fn jwt(text: &[u8], start: usize, found: &mut Vec<Secret>) {
    let url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !text[start..].starts_with(b"eyJ") {
        return;
    }
    let header = run_length(text, start, 1024, url);
    let payload_at = start + header + 1;
    if header < 16 || text.get(start + header) != Some(&b'.') {
        return;
    }
    let payload = run_length(text, payload_at, 8192, url);
    let signature_at = payload_at + payload + 1;
    if payload < 8 || text.get(payload_at + payload) != Some(&b'.') {
        return;
    }
    let signature = run_length(text, signature_at, 2048, url);
    let Some(head) = object(&text[start..start + header]) else { return };
    if !head.contains_key("alg") || signature < 16 {
        return;
    }
    let end = signature_at + signature;
    if !is_sample(&text[payload_at..payload_at + payload], &text[signature_at..end]) {
        found.push(secret("jwt", start, end, 0.85));
    }
}

fn object(bytes: &[u8]) -> Option<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(bytes).ok()?).ok()
}

/// The example of RFC 7519, and the specimen of every tutorial.
fn is_sample(payload: &[u8], signature: &[u8]) -> bool {
    let subject = |claims: &serde_json::Map<_, _>| {
        claims.get("sub").and_then(serde_json::Value::as_str) == Some("1234567890")
    };
    let joe = payload.starts_with(b"eyJpc3MiOiJqb2UiLA0K") && payload.len() == 94;
    joe && signature == b"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        || object(payload).is_some_and(|claims| subject(&claims))
}

/// Whether a value is a web token that is known to everyone.
pub(super) fn is_sample_token(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b'.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(head), Some(payload), Some(signature), None) => {
            head.starts_with(b"eyJ") && is_sample(payload, signature)
        }
        _ => false,
    }
}

/// `machine HOST login NAME password VALUE`.
pub(super) fn netrc(text: &[u8], end: usize, found: &mut Vec<Secret>) {
    let mut words = Vec::new();
    let limit = text.len().min(end + 300);
    let mut at = end;
    while at < limit && words.len() < 8 {
        at += run_length(text, at, limit - at, |byte| byte.is_ascii_whitespace());
        let length = run_length(text, at, limit - at, |byte| !byte.is_ascii_whitespace());
        if words.len() == 1 && text[at..at + length] != *b"login" {
            return;
        }
        words.push((at, at + length));
        at += length;
    }
    let word = |index: usize| words.get(index).map(|(start, end)| &text[*start..*end]);
    let place = if word(3) == Some(b"password") { 4 } else { 6 };
    if word(place - 1) == Some(b"password")
        && let Some((start, end)) = words.get(place)
        && end > start
        && !is_placeholder(&text[*start..*end])
        // "machine learning, login and password reset" is prose.
        && !text[*start..*end].iter().all(u8::is_ascii_alphabetic)
    {
        found.push(secret("netrc-password", *start, *end, 0.9));
    }
}

/// `host:port:database:user:password`, the whole line.
pub(super) fn pgpass(text: &[u8], end: usize, found: &mut Vec<Secret>) {
    let rest = &text[end..text.len().min(end + 256)];
    let line = &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
    let line_end = end + line.len();
    let mut fields = line.splitn(3, |byte| *byte == b':');
    let (Some(database), Some(user), Some(password)) =
        (fields.next(), fields.next(), fields.next())
    else {
        return;
    };
    let plain = |field: &[u8]| {
        !field.is_empty() && field.iter().all(|b| b.is_ascii_alphanumeric() || b"_-*.$".contains(b))
    };
    // A colon in the password itself is escaped: anything else has more fields.
    let more = memchr::memchr(b':', password)
        .is_some_and(|colon| colon == 0 || password[colon - 1] != b'\\');
    let solid = || password.len() >= 4 && !more && password.iter().all(u8::is_ascii_graphic);
    if plain(database) && plain(user) && solid() && !is_placeholder(password) && password != user {
        found.push(secret("pgpass-password", line_end - password.len(), line_end, 0.9));
    }
}
