//! Addresses that a service signed beforehand: whoever has one may fetch or write one thing for a while.
//!
//! The names of keys and the signatures in them are letters and digits of chance, among which any word may be.

use std::borrow::Cow;

/// The names of the parameters of one service.
struct Service {
    prefix: &'static str,
    algorithm: &'static str,
    /// The last part of a credential.
    end: &'static str,
}

const SERVICES: [Service; 2] = [
    Service { prefix: "X-Amz-", algorithm: "AWS4-", end: "aws4_request" },
    Service { prefix: "X-Goog-", algorithm: "GOOG4-", end: "goog4_request" },
];

/// An address without the values that belong to its signature, if it has one that is whole.
pub(super) fn without_signature(url: &str) -> Cow<'_, str> {
    let Some((before, rest)) = url.split_once('?') else { return Cow::Borrowed(url) };
    let (query, fragment) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
    let Some(service) = SERVICES.iter().find(|service| service.signed(query)) else {
        return Cow::Borrowed(url);
    };
    let mut short = String::with_capacity(url.len());
    short.push_str(before);
    let mut sign = '?';
    for parameter in query.split('&') {
        short.push(sign);
        sign = '&';
        match parameter.split_once('=') {
            Some((name, value)) if service.has(name, value) => short.push_str(name),
            _ => short.push_str(parameter),
        }
    }
    short.push_str(fragment);
    Cow::Owned(short)
}

impl Service {
    /// Whether a query has an algorithm, a credential and a signature of this service, each once.
    fn signed(&self, query: &str) -> bool {
        query.contains(self.prefix)
            && ["Algorithm", "Credential", "Signature"].iter().all(|part| {
                let mut values = query
                    .split('&')
                    .filter_map(|parameter| parameter.strip_prefix(self.prefix))
                    .filter_map(|name| name.strip_prefix(part)?.strip_prefix('='));
                values.next().is_some_and(|value| self.fits(part, value)) && values.next().is_none()
            })
    }

    /// Whether a parameter is of the signature.
    fn has(&self, name: &str, value: &str) -> bool {
        name.strip_prefix(self.prefix).is_some_and(|part| self.fits(part, value))
    }

    fn fits(&self, part: &str, value: &str) -> bool {
        let all = |test: fn(u8) -> bool| !value.is_empty() && value.bytes().all(test);
        match part {
            "Algorithm" => {
                value.starts_with(self.algorithm)
                    && all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                    && value.len() <= 32
            }
            "Credential" => self.is_credential(value),
            "Signature" => {
                // Of a private key it is longer.
                let length =
                    value.len() == 64 || self.end.starts_with("goog") && value.len() == 512;
                length && all(|byte| byte.is_ascii_hexdigit())
            }
            "Date" => is_date(value),
            "Expires" => value.len() <= 7 && all(|byte| byte.is_ascii_digit()),
            "SignedHeaders" => all(|byte| byte.is_ascii_lowercase() || b"-;%3B".contains(&byte)),
            "Security-Token" => all(|byte| byte.is_ascii_alphanumeric() || b"%+/=".contains(&byte)),
            _ => false,
        }
    }

    /// `KEY/20260101/us-east-1/s3/aws4_request`.
    fn is_credential(&self, value: &str) -> bool {
        let decoded = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        let parts: Vec<&str> = decoded.split('/').collect();
        let [key, day, region, product, end] = parts[..] else { return false };
        let plain = |part: &str| {
            (1..=32).contains(&part.len())
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        is_key(key)
            && day.len() == 8
            && day.bytes().all(|byte| byte.is_ascii_digit())
            && plain(region)
            && plain(product)
            && end == self.end
    }
}

/// Whether a value names a key, and the day and service that it signs for.
pub(crate) fn is_credential(value: &str) -> bool {
    SERVICES.iter().any(|service| service.is_credential(value))
}

/// The name of a key, the address of an account, or the mark of one that was taken out.
fn is_key(key: &str) -> bool {
    let account =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.@".contains(&byte);
    let name =
        (3..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name || is_taken_out(key) || key.contains('@') && key.len() <= 256 && key.bytes().all(account)
}

/// `20260101T000000Z`.
fn is_date(value: &str) -> bool {
    value.len() == 16
        && value.bytes().enumerate().all(|(place, byte)| match place {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        })
}

/// `[REDACTED:kind]`: what stood there was taken out, and nobody is to fill it in again.
fn is_taken_out(text: &str) -> bool {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).is_some_and(is_mark)
}

/// A mark of [`redact`](crate::secrets::redact) without its brackets.
pub(super) fn is_mark(name: &str) -> bool {
    name.strip_prefix("REDACTED:").is_some_and(|kind| {
        (1..=40).contains(&kind.len())
            && kind
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    })
}
