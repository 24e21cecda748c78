//! What is carried out in what the proxy can read.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use wardkeep_detect::secrets::{Secret, find_coded_secrets, find_joined_secrets, redact};
use wardkeep_detect::urls::{UrlContext, UrlMatch, UrlRiskKind, judge_url, parse_url};

use super::decider::Denial;
use super::head::{Head, values};
use super::host::{Host, Target};
use super::owners::{Owner, is_below, is_named_after, is_this_machine, owner_of};

/// From here on a secret is sure.
const SURE: f32 = 0.85;
/// From this weight on, what an address carries looks like data.
const ENCODED: f32 = 0.5;

/// A secret in a text, as it is or encoded, whoever it is for.
pub(super) fn secret_in(bytes: &[u8]) -> Option<Denial> {
    let text = readable(bytes);
    let plain = sure(find_joined_secrets(&text)).next();
    let secret = plain.or_else(|| sure(find_coded_secrets(&text)).next())?;
    Some(denial(&secret, "would be sent"))
}

fn sure(found: Vec<Secret>) -> impl Iterator<Item = Secret> {
    found.into_iter().filter(|secret| secret.confidence >= SURE)
}

/// Kinds only: the secret itself, and names that whoever sends it may choose, are not told.
fn denial(secret: &Secret, what: &str) -> Denial {
    Denial::new("egress-secret", format!("a secret ({}) {what}", secret.kind))
}

/// Bytes as text of the same length.
fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { ' ' }).collect()
        }
    }
}

/// A text without the secrets in it.
pub(super) fn without_secrets(text: &str) -> String {
    let secrets: Vec<_> =
        sure(find_joined_secrets(text)).chain(sure(find_coded_secrets(text))).collect();
    if secrets.is_empty() { text.to_owned() } else { redact(text, &secrets) }
}

/// Where a head goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Going<'a> {
    pub(super) host: &'a Host,
    /// In TLS.
    pub(super) secure: bool,
    /// The owner has named the host, in a rule or when asked.
    pub(super) named: bool,
    /// The owner lets any credential go there.
    pub(super) trusted: bool,
}

/// A secret in a head that is not where it belongs.
///
/// `head` is what would be sent: a first line, and lines of headers.
pub(super) fn secret_in_head(head: &[u8], going: Going<'_>) -> Option<Denial> {
    let text = readable(head);
    for secret in sure(find_joined_secrets(&text)) {
        let start = text[..secret.span.start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].split("\r\n").next().unwrap_or_default();
        let place = Place::of(line, secret.span.start - start, start == 0, going);
        if let Some(denial) = objection(&secret, place, going) {
            return Some(denial);
        }
    }
    for (at, line) in text.split("\r\n").enumerate() {
        for secret in sure(find_coded_secrets(line)) {
            let place = Place::of(line, secret.span.start, at == 0, going);
            if let Some(denial) = objection(&secret, place, going) {
                return Some(denial);
            }
        }
    }
    None
}

/// Where in a head a secret stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A header or a parameter of the address whose name says that a credential comes there.
    Credential,
    /// The path of the address.
    Path,
    Elsewhere,
}

impl Place {
    fn of(line: &str, at: usize, first: bool, going: Going<'_>) -> Self {
        let before = line.get(..at).unwrap_or(line);
        if first {
            return before
                .split_once(' ')
                .map_or(Self::Elsewhere, |(_, start)| Self::within(start));
        }
        match before.split_once(':') {
            Some((name, start)) if is_own_referer(name, line, going) => Self::within(start),
            Some((name, _)) => Self::named(name),
            None => Self::Elsewhere,
        }
    }

    /// In an address, behind its start.
    fn within(start: &str) -> Self {
        match start.rsplit_once(['?', '&', ';']) {
            None => Self::Path,
            Some((_, parameter)) => {
                parameter.split_once('=').map_or(Self::Elsewhere, |(name, _)| Self::named(name))
            }
        }
    }

    fn named(name: &str) -> Self {
        if is_for_credentials(name) { Self::Credential } else { Self::Elsewhere }
    }
}

/// Whether a header is the `Referer` of a page of the same host: that has had its address already.
fn is_own_referer(name: &str, line: &str, going: Going<'_>) -> bool {
    let value = line.get(name.len() + 1..).unwrap_or_default().trim_ascii();
    let (rest, usual) = match (value.strip_prefix("https://"), value.strip_prefix("http://")) {
        // Nobody on the way is told what came in TLS.
        (Some(rest), _) if going.secure => (rest, 443),
        (_, Some(rest)) => (rest, 80),
        _ => return false,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    name.eq_ignore_ascii_case("referer")
        && Target::parse(authority.as_bytes(), Some(usual))
            .is_ok_and(|target| target.host == *going.host)
}

/// Parts of names of headers and parameters that carry a credential. Whoever could choose such a name for a secret
/// could choose `Authorization`: what may be sent there is the same.
const CREDENTIALS: [&str; 14] = [
    "auth",
    "token",
    "key",
    "cookie",
    "jwt",
    "dpop",
    "secret",
    "credential",
    "session",
    "assertion",
    "appcheck",
    "signature",
    "sec-websocket-protocol",
    "oidc",
];

fn is_for_credentials(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "sig" || name == "code" || CREDENTIALS.iter().any(|part| name.contains(part))
}

/// Kinds that their hosts take in the path.
const IN_PATHS: [&str; 3] = ["telegram-bot-token", "slack-webhook", "discord-webhook"];

/// What speaks against sending a secret.
fn objection(secret: &Secret, place: Place, going: Going<'_>) -> Option<Denial> {
    let belongs = match place {
        Place::Credential => true,
        Place::Path => IN_PATHS.contains(&secret.kind),
        Place::Elsewhere => false,
    };
    if !belongs {
        return Some(denial(secret, "would be sent where no credential belongs"));
    }
    match owner_of(secret.kind) {
        Owner::Anyone => None,
        Owner::Nobody => Some(denial(secret, "would be sent")),
        Owner::Hosts(..) if going.trusted || is_this_machine(going.host) => None,
        Owner::Hosts(hosts, products) => {
            let own = going.named && is_named_after(going.host, products);
            if !own && !is_below(going.host, hosts) {
                return Some(denial(secret, "would be sent to a host that it is not for"));
            }
            (!going.secure).then(|| denial(secret, "would be sent without TLS"))
        }
    }
}

/// Bytes of a URL that look like encoded data.
pub(super) fn encoded_bytes(url: &str) -> u64 {
    let Some(parsed) = parse_url(url) else { return 0 };
    let query = parsed.query.as_ref().map_or(0, String::len);
    let carried = (parsed.path.len() + query) as u64;
    let found = UrlMatch { span: (0..0).into(), url: parsed, context: UrlContext::default() };
    let encoded = judge_url(&found, UrlContext::default())
        .iter()
        .any(|risk| risk.kind == UrlRiskKind::EncodedData && risk.weight >= ENCODED);
    if encoded { carried } else { 0 }
}

/// A lookup of names inside of a request: data could leave in the names.
pub(super) fn name_lookup(head: &Head, path: &str) -> Option<Denial> {
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let typed = |name| {
        let all = values(&head.headers, name).flat_map(|value| value.split(|sign| *sign == b','));
        all.map(|one| one.trim_ascii().to_ascii_lowercase()).any(|one| is_lookup_type(&one))
    };
    let found = is_lookup_place(place, query) || typed("content-type") || typed("accept");
    found.then(|| {
        let reason = "names are looked up by this proxy alone, not by requests (DNS over HTTPS)";
        Denial::new("egress-name-lookup", reason)
    })
}

/// `/dns-query` (RFC 8484) with whatever profile behind it, and the JSON of those who answer at `/resolve?name=`.
fn is_lookup_place(place: &str, query: &str) -> bool {
    let place = decoded(place).to_ascii_lowercase();
    let segments = || place.split('/').map(|one| one.split(';').next().unwrap_or_default());
    let named = || {
        query
            .split(['&', ';'])
            .any(|one| decoded(one.split('=').next().unwrap_or_default()) == "name")
    };
    segments().any(|one| one == "dns-query") || segments().next_back() == Some("resolve") && named()
}

fn is_lookup_type(lower: &[u8]) -> bool {
    [&b"application/dns-"[..], b"application/oblivious-dns-"]
        .iter()
        .any(|kind| lower.starts_with(kind))
}

/// A text with its percent signs undone, once: as hosts read it.
fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let coded =
            behind.get(..2).filter(|digits| digits.bytes().all(|sign| sign.is_ascii_hexdigit()));
        let byte = coded.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.map_or('%', char::from));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    out.push_str(rest);
    out
}
