//! `password = "…"`, `"api_key": "…"`, `--token …`: names that announce a secret.

use super::placeholders::{contains, entropy, is_hex, is_placeholder, is_uuid, is_wordy};
use super::{Secret, run_length, secret};
use crate::urls::presigned::is_credential;
use crate::words::Words;

/// Longest value that is looked at.
const MAX_VALUE: usize = 512;
/// Longest name of a session.
const MAX_SESSION: usize = 4096;

/// Parts of a name that say that the value is no secret.
static HARMLESS: Words<26> = Words::new([
    "tokeniz",
    "tokens",
    "token_type",
    "token_count",
    "max_token",
    "token_limit",
    "num_token",
    "public",
    "_id",
    "-id",
    "_name",
    "_file",
    "_path",
    "_url",
    "_uri",
    "_field",
    "_length",
    "_hash",
    "sha",
    "checksum",
    "digest",
    "commit",
    "regex",
    "pattern",
    "csrf",
    "expire",
]);

/// Looks at an assignment whose name contains the keyword at `start..end`; returns up to where an
/// unquoted value was read.
pub(super) fn check(text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) -> usize {
    let back = text[..start].iter().rev().take(40).take_while(|byte| is_name(**byte)).count();
    let from = start - back;
    let to = end + run_length(text, end, 32, is_name);
    let name = text[from..to].to_ascii_lowercase();
    let Some(value_at) = value_start(text, from, to) else { return 0 };
    let Some((start, end, quoted)) = value(text, value_at) else { return 0 };
    let read = if quoted { 0 } else { end };
    let tail = &name[back.min(name.len())..];
    // In front of the keyword only whole words count.
    if HARMLESS.stand_in(tail) || HARMLESS.begin(&name, |part| part.len() > 3) {
        return read;
    }
    let password = contains(&name, b"pass") || contains(&name, b"pwd");
    let value = &text[start..end];
    if let Some((kind, confidence)) = judge(&name, value, password, quoted)
        && !is_signed(&name, text, start, end)
    {
        found.push(secret(kind, start, end, confidence));
    }
    read
}

/// Whether a value is of an address that was signed beforehand: what names its key, and the session of that key, which
/// signs nothing by itself.
fn is_signed(name: &[u8], text: &[u8], start: usize, end: usize) -> bool {
    if name.ends_with(b"credential") {
        return std::str::from_utf8(&text[start..end]).is_ok_and(is_credential);
    }
    if !name.ends_with(b"x-amz-security-token") {
        return false;
    }
    // In the order in which they are written.
    let end =
        end + run_length(text, end, MAX_SESSION, |byte| byte.is_ascii_graphic() && byte != b'&');
    let behind = &text[end..text.len().min(end + 160)];
    let signature = memchr::memmem::find(behind, b"&X-Amz-Signature=")
        .map_or(0, |at| run_length(behind, at + 17, 64, |byte| byte.is_ascii_hexdigit()));
    let before = &text[start.saturating_sub(400)..start];
    signature == 64 && memchr::memmem::find(before, b"aws4_request&").is_some()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Behind the name, its closing quote and the separator.
fn value_start(text: &[u8], from: usize, to: usize) -> Option<usize> {
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    let mut at = to;
    // `\"` inside a JSON string that holds JSON.
    at += run_length(text, at, 4, |byte| matches!(byte, b'"' | b'\'' | b']' | b'\\' | b'`'));
    let blanks = run_length(text, at, 16, blank);
    at += blanks;
    let rest = text.get(at..)?;
    let separators: [&[u8]; 6] = [b":=", b"=>", b"::", b"=", b":", b">"];
    let separator = separators.into_iter().find(|separator| rest.starts_with(separator));
    match separator {
        // A comparison, a path in code.
        Some(b"::") => None,
        Some(b"=") if rest.starts_with(b"==") || rest.starts_with(b"=~") => None,
        Some(b">") if blanks > 0 => None,
        Some(separator) => {
            at += separator.len();
            Some(at + run_length(text, at, 16, blank))
        }
        // `--password value`
        None if blanks > 0 && text[from..].starts_with(b"--") => Some(at),
        None => None,
    }
}

fn value(text: &[u8], at: usize) -> Option<(usize, usize, bool)> {
    let escaped = usize::from(text.get(at) == Some(&b'\\'));
    match text.get(at + escaped)? {
        quote @ (b'"' | b'\'' | b'`') => {
            let start = at + escaped + 1;
            let length = run_length(text, start, MAX_VALUE, |byte| byte != *quote && byte != b'\n');
            let end = start + length;
            let closed = text.get(end) == Some(quote) || length == MAX_VALUE || end == text.len();
            let end =
                if escaped == 1 && end > start && text[end - 1] == b'\\' { end - 1 } else { end };
            closed.then_some((start, end, true))
        }
        _ => {
            let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`,;<>)}]&|\\".contains(&byte);
            let length = run_length(text, at, MAX_VALUE, |byte| !ends(byte));
            Some((at, at + length, false))
        }
    }
}

fn judge(name: &[u8], value: &[u8], password: bool, quoted: bool) -> Option<(&'static str, f32)> {
    let printable = value.iter().all(|byte| (0x21..0x7f).contains(byte));
    if value.len() < 8
        || !printable
        || is_placeholder(value)
        || is_uuid(value)
        || is_reference(value, quoted)
    {
        return None;
    }
    if is_discord(value) {
        return Some(("discord-bot-token", 0.95));
    }
    let digits = value.iter().any(u8::is_ascii_digit);
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let bits = entropy(value);
    if password {
        let signs = value.iter().any(u8::is_ascii_punctuation);
        let odd = signs && letters && value.len() >= 10 && !is_wordy(value);
        let mixed = digits && (letters || signs) || odd;
        let plausible = quoted || value.len() >= 8 && digits;
        return (mixed && plausible && bits >= 2.5 && !is_hash(value) && !is_identifier(value))
            .then_some(("password", if bits >= 3.2 { 0.75 } else { 0.55 }));
    }
    if is_hash(value) {
        return None;
    }
    if is_hex(value) {
        let long = matches!(value.len(), 24 | 32 | 48 | 64 | 96 | 128);
        return (long && bits >= 3.0).then_some((kind_of(name), 0.7));
    }
    let random = value.len() >= 16 && bits >= 3.3 && digits && letters && !is_wordy(value);
    (random && !is_identifier(value))
        .then_some((kind_of(name), if bits >= 4.0 { 0.75 } else { 0.6 }))
}

fn kind_of(name: &[u8]) -> &'static str {
    if name.starts_with(b"aws_secret") || name.starts_with(b"aws-secret") {
        "aws-secret-key"
    } else {
        "generic-secret"
    }
}

/// Code or a path instead of a value.
fn is_reference(value: &[u8], quoted: bool) -> bool {
    let call = value.contains(&b'(') && !quoted;
    let scheme = contains(value, b"://");
    let path = matches!(value, [b'/', ..] | [b'.', b'/' | b'.', ..] | [b'~', b'/', ..]);
    let slashes = value.iter().filter(|byte| **byte == b'/').count();
    call || scheme
        || path && slashes >= 2
        || value.starts_with(b"arn:")
        || value.starts_with(b"vault:")
}

/// Git and lockfile hashes: what identifies content is not a secret.
fn is_hash(value: &[u8]) -> bool {
    let prefixed = [
        &b"sha1-"[..],
        b"sha256-",
        b"sha384-",
        b"sha512-",
        b"sha256:",
        b"md5:",
        b"$2a$",
        b"$2b$",
        b"$argon2",
    ];
    prefixed.iter().any(|prefix| value.starts_with(prefix)) || value.len() == 40 && is_hex(value)
}

/// `some.module.name2`, `SOME_SETTING_1`, `module::Name`: words joined by signs.
fn is_identifier(value: &[u8]) -> bool {
    let parts = value.split(|byte| matches!(byte, b'_' | b'-' | b'.' | b'/' | b':'));
    let mut count = 0;
    let wordy = parts.filter(|part| !part.is_empty()).all(|part| {
        count += 1;
        let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
        let lower = part.iter().filter(|byte| byte.is_ascii_lowercase()).count();
        let upper = part.iter().filter(|byte| byte.is_ascii_uppercase()).count();
        let one_case = lower == 0 || upper <= 1;
        part.iter().all(u8::is_ascii_alphanumeric)
            && one_case
            && (digits == 0 || digits == part.len() || digits <= 2 && part.len() <= 8)
    });
    wordy && count >= 2 && value.len() / count <= 9
}

/// `base64(id).time.mac`.
fn is_discord(value: &[u8]) -> bool {
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'.').collect();
    let [id, time, mac] = parts[..] else { return false };
    let url =
        |part: &[u8]| part.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    (23..=28).contains(&id.len())
        && matches!(id[0], b'M' | b'N' | b'O')
        && time.len() == 6
        && (27..=38).contains(&mac.len())
        && url(id)
        && url(time)
        && url(mac)
        && entropy(mac) > 3.5
}
