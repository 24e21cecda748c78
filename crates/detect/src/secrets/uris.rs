//! Passwords in URIs, connection strings and headers.

use super::blocks::is_sample_token;
use super::placeholders::{entropy, is_placeholder, is_uuid};
use super::{Secret, run_length, secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// `scheme://user:password@host`, at its `://`.
pub(super) fn check(text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) {
    let ends =
        |byte: u8| byte.is_ascii_whitespace() || b"/\"'`<>?#\\|".contains(&byte) || byte == 0;
    let length = run_length(text, end, 320, |byte| !ends(byte));
    let authority = &text[end..end + length];
    let Some(at) = memchr::memrchr(b'@', authority) else { return };
    let Some(colon) = memchr::memchr(b':', &authority[..at]) else { return };
    let (user, password) = (&authority[..colon], &authority[colon + 1..at]);
    let host = &authority[at + 1..];
    let braces = password.iter().any(|byte| b"{}[]$".contains(byte))
        && (password[0] == b'$' || password[0] == b'{');
    if password.len() < 4 || host.is_empty() || braces || is_placeholder(password) {
        return;
    }
    let same = password.eq_ignore_ascii_case(user);
    let local = host.starts_with(b"example.")
        || host.ends_with(b".example")
        || memchr::memmem::find(host, b"example.com").is_some();
    if same || local {
        return;
    }
    let from = end + colon + 1;
    let scheme_length = text[..start]
        .iter()
        .rev()
        .take(32)
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'+')
        .count();
    let scheme = text[start - scheme_length..start].to_ascii_lowercase();
    let kind = match scheme.split(|byte| *byte == b'+').next().unwrap_or_default() {
        b"postgres" | b"postgresql" => "postgres-url",
        b"mysql" | b"mariadb" => "mysql-url",
        b"mongodb" => "mongodb-url",
        b"redis" | b"rediss" => "redis-url",
        b"amqp" | b"amqps" => "amqp-url",
        b"" => return,
        _ => "basic-auth-url",
    };
    let confidence = if entropy(password) > 2.5 { 0.9 } else { 0.6 };
    found.push(secret(kind, from, end + at, confidence));
}

/// `jdbc:oracle:thin:user/password@host`.
pub(super) fn oracle(text: &[u8], end: usize, found: &mut Vec<Secret>) {
    let length =
        run_length(text, end, 200, |byte| byte.is_ascii_graphic() && !b"\"'`<>".contains(&byte));
    let rest = &text[end..end + length];
    let (Some(slash), Some(at)) = (memchr::memchr(b'/', rest), memchr::memchr(b'@', rest)) else {
        return;
    };
    if slash + 1 < at && !is_placeholder(&rest[slash + 1..at]) {
        found.push(secret("oracle-url", end + slash + 1, end + at, 0.9));
    }
}

/// What specifications and their readers give as examples of a login (RFC 7617, 6749, 6750).
const SAMPLES: [&[u8]; 7] = [
    b"Aladdin:open sesame",
    b"aladdin:opensesame",
    b"Aladdin:OpenSesame",
    b"test:123\xc2\xa3",
    b"s6BhdRkqt3:gX1fBat3bV",
    b"mF_9.B5f-4.1JqM",
    b"2YotnFZFEjr1zCsicMWpAA",
];

/// `Authorization: Bearer …`, behind the name.
pub(super) fn authorization(text: &[u8], end: usize, found: &mut Vec<Secret>) {
    // In strings within strings quotes have many backslashes.
    let mut at = end + run_length(text, end, 32, |byte| b"\"': =\t\\,(".contains(&byte));
    if at == end {
        return;
    }
    let schemes: [&[u8]; 6] = [b"bearer ", b"basic ", b"token ", b"bot ", b"apikey ", b"key "];
    let rest = text.get(at..).unwrap_or_default();
    let Some(scheme) = schemes.into_iter().find(|scheme| {
        rest.len() >= scheme.len() && rest[..scheme.len()].eq_ignore_ascii_case(scheme)
    }) else {
        return;
    };
    at += scheme.len();
    at += run_length(text, at, 4, |byte| byte == b' ');
    let length = run_length(text, at, 2048, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
    });
    let value = &text[at..at + length];
    if is_placeholder(value) || is_uuid(value) {
        return;
    }
    if scheme == b"basic " {
        let Ok(decoded) = STANDARD.decode(value) else { return };
        if SAMPLES.contains(&decoded.as_slice()) {
            return;
        }
        let password = decoded.split(|byte| *byte == b':').nth(1);
        if password.is_some_and(|password| password.len() >= 4 && !is_placeholder(password)) {
            found.push(secret("basic-authorization", at, at + length, 0.92));
        }
    } else if length >= 16
        && entropy(value) >= 3.2
        && value.iter().any(u8::is_ascii_digit)
        && !SAMPLES.contains(&value)
        && !is_sample_token(value)
    {
        found.push(secret("bearer-authorization", at, at + length, 0.85));
    }
}

/// A base64 key of 32 or 64 bytes.
pub(super) fn azure_key(text: &[u8], end: usize, found: &mut Vec<Secret>) {
    let length =
        run_length(text, end, 100, |byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let value = &text[end..end + length];
    let decoded = STANDARD.decode(value).map(|bytes| bytes.len());
    // The key of the storage emulator is public.
    if matches!(decoded, Ok(32 | 64))
        && entropy(value) > 3.8
        && !value.starts_with(b"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1")
    {
        found.push(secret("azure-key", end, end + length, 0.97));
    }
}

/// The signature of an Azure SAS URL.
pub(super) fn sas_signature(text: &[u8], end: usize, found: &mut Vec<Secret>) {
    let length = run_length(text, end, 120, |byte| {
        byte.is_ascii_alphanumeric() || b"%+/=-_".contains(&byte)
    });
    if !(43..=80).contains(&length) || entropy(&text[end..end + length]) <= 4.0 {
        return;
    }
    let around = &text[end.saturating_sub(300)..text.len().min(end + 300)];
    if [&b"sv=20"[..], b"se=20"].iter().any(|mark| memchr::memmem::find(around, mark).is_some()) {
        found.push(secret("azure-sas-signature", end, end + length, 0.9));
    }
}
