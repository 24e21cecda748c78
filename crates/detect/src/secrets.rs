//! Credentials in a text: kind, place and a keyed fingerprint, never the value.
//!
//! One pass looks for the literals that every format has somewhere (a prefix, a keyword, a
//! separator); only there a bounded check runs, with the format's checksum where it has one.

mod assignments;
mod blocks;
mod cards;
mod coded;
mod formats;
mod placeholders;
mod redaction;
#[cfg(test)]
pub(crate) mod tests;
mod uris;

use crate::anchors::{self, Anchor, Whose};
use crate::finding::Span;
use formats::{FORMATS, Format};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub use coded::find_coded_secrets;
pub use redaction::{everywhere, redact};

/// A credential that was found. The value itself stays in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Secret {
    /// What it is, as a stable id such as `github-token`.
    pub kind: &'static str,
    /// Where the value is.
    pub span: Span,
    /// From 0 to 1: near 1 with a checksum or an unmistakable form, about one half by entropy.
    pub confidence: f32,
}

/// What to check where a literal was seen.
#[derive(Debug, Clone, Copy)]
enum Check {
    Token(&'static Format),
    Keyword,
    Uri,
    Authorization,
    Pem,
    Jwt,
    Telegram,
    AzureKey,
    SasSignature,
    Putty,
    Netrc,
    PgPass,
    OracleThin,
    Twilio,
    Mailchimp,
}

const LITERALS: &[(&str, Check)] = &[
    ("passw", Check::Keyword),
    ("passphrase", Check::Keyword),
    ("pwd", Check::Keyword),
    ("secret", Check::Keyword),
    ("token", Check::Keyword),
    ("api_key", Check::Keyword),
    ("apikey", Check::Keyword),
    ("api-key", Check::Keyword),
    ("access_key", Check::Keyword),
    ("accesskey", Check::Keyword),
    ("private_key", Check::Keyword),
    ("encryption_key", Check::Keyword),
    ("signing_key", Check::Keyword),
    ("auth_key", Check::Keyword),
    ("credential", Check::Keyword),
    ("://", Check::Uri),
    ("authorization", Check::Authorization),
    ("-----BEGIN ", Check::Pem),
    ("eyJ", Check::Jwt),
    (":AA", Check::Telegram),
    ("AccountKey=", Check::AzureKey),
    ("SharedAccessKey=", Check::AzureKey),
    ("&sig=", Check::SasSignature),
    ("?sig=", Check::SasSignature),
    ("PuTTY-User-Key-File-", Check::Putty),
    ("machine ", Check::Netrc),
    (":5432:", Check::PgPass),
    (":5433:", Check::PgPass),
    (":6432:", Check::PgPass),
    ("jdbc:oracle:thin:", Check::OracleThin),
    ("twilio", Check::Twilio),
    ("-us", Check::Mailchimp),
];

/// What a credential is announced by, letters in either case.
pub(crate) fn literals() -> impl Iterator<Item = &'static str> {
    LITERALS.iter().map(|(literal, _)| *literal).chain(FORMATS.iter().map(|format| format.prefix))
}

/// Finds credentials, in the order in which they stand.
///
/// ```
/// use wardkeep_detect::secrets::{find_secrets, redact};
/// let text = format!("postgres://app:{}@db.internal/app", "s9fK2mQx7");
/// let secrets = find_secrets(&text);
/// assert_eq!(secrets[0].kind, "postgres-url");
/// assert_eq!(redact(&text, &secrets), "postgres://app:[REDACTED:postgres-url]@db.internal/app");
/// ```
pub fn find_secrets(text: &str) -> Vec<Secret> {
    let mut search = Search::new(text);
    anchors::find(text.as_bytes(), |whose, anchor| search.told(whose, anchor));
    search.finish().0
}

/// Finds credentials like [`find_secrets`], and tokens that other signs are joined to, before them or behind: `xghp_…`.
///
/// For what must not leave, not for what is shown: in signs of chance there may be one that is none, though seldom.
pub fn find_joined_secrets(text: &str) -> Vec<Secret> {
    let mut search = Search { tokens: formats::Read::joined(), ..Search::new(text) };
    anchors::find_all(text.as_bytes(), |whose, anchor| search.told(whose, anchor));
    search.finish().0
}

/// A search for credentials, literal by literal.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    text: &'a str,
    found: Vec<Secret>,
    /// INVARIANT: behind a keyword the value is read once, not once for each keyword in it.
    read: usize,
    tokens: formats::Read,
    /// How much was looked at, roughly.
    bytes: usize,
}

impl<'a> Search<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, found: Vec::new(), read: 0, tokens: formats::Read::default(), bytes: 0 }
    }

    fn told(&mut self, whose: Whose, anchor: Anchor) {
        if whose == Whose::Secrets {
            self.anchor(anchor);
        }
    }

    /// Checks one of [`literals`], in the order in which they stand.
    pub(crate) fn anchor(&mut self, anchor: Anchor) {
        let Anchor { index, start, end } = anchor;
        let check = match LITERALS.get(index) {
            Some((_, check)) => *check,
            None => match FORMATS.get(index - LITERALS.len()) {
                Some(format) => Check::Token(format),
                None => return,
            },
        };
        let bytes = self.text.as_bytes();
        self.bytes += match check {
            Check::Keyword if start < self.read => 0,
            Check::Token(_) => 16,
            _ => 64,
        };
        match check {
            Check::Keyword if start < self.read => {}
            Check::Keyword => self.read = assignments::check(bytes, start, end, &mut self.found),
            Check::Token(format) => {
                formats::check(format, bytes, start, &mut self.tokens, &mut self.found);
            }
            Check::Twilio => formats::twilio(bytes, end, &mut self.tokens, &mut self.found),
            Check::Telegram => {
                formats::telegram(bytes, start, self.tokens.is_joined(), &mut self.found);
            }
            Check::Jwt if !self.tokens.web_token(bytes, start) => {}
            check => run(check, bytes, start, end, &mut self.found),
        }
    }

    /// All that was found, and card numbers; and how many bytes looked like those.
    pub(crate) fn finish(mut self) -> (Vec<Secret>, usize) {
        let digits = cards::find(self.text.as_bytes(), &mut self.found);
        let digits = digits + self.bytes + 32 * self.found.len();
        (settled(self.text, self.found), digits)
    }
}

fn run(check: Check, text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) {
    match check {
        Check::Token(_) | Check::Keyword | Check::Twilio | Check::Telegram => {}
        Check::Uri => uris::check(text, start, end, found),
        Check::Authorization => uris::authorization(text, end, found),
        Check::Pem => blocks::pem(text, start, end, found),
        Check::Jwt => blocks::jwt(text, start, found),
        Check::AzureKey => uris::azure_key(text, end, found),
        Check::SasSignature => uris::sas_signature(text, end, found),
        Check::Putty => blocks::putty(text, start, end, found),
        Check::Netrc => blocks::netrc(text, end, found),
        Check::PgPass => blocks::pgpass(text, end, found),
        Check::OracleThin => uris::oracle(text, end, found),
        Check::Mailchimp => formats::mailchimp(text, start, end, found),
    }
}

/// Sorted; of two readings of the same value the surer one stays.
fn settled(text: &str, mut found: Vec<Secret>) -> Vec<Secret> {
    found.retain(|secret| {
        text.get(secret.span.start..secret.span.end).is_some_and(|v| !v.is_empty())
    });
    found.sort_by(|a, b| {
        (a.span.start, b.span.end)
            .cmp(&(b.span.start, a.span.end))
            .then(b.confidence.total_cmp(&a.confidence))
    });
    let mut kept: Vec<Secret> = Vec::with_capacity(found.len());
    for secret in found {
        if let Some(last) = kept.last_mut() {
            let inside = secret.span.end <= last.span.end;
            if inside && secret.confidence <= last.confidence {
                continue;
            }
            if secret.span == last.span {
                *last = secret;
                continue;
            }
        }
        kept.push(secret);
    }
    kept
}

/// A keyed fingerprint of the value: equal for the same secret under the same key, and of no use
/// for guessing it without the key.
pub fn fingerprint(key: &[u8; 32], text: &str, secret: &Secret) -> [u8; 16] {
    let value = text.get(secret.span.start..secret.span.end).unwrap_or_default();
    let mut short = [0; 16];
    // HMAC takes a key of any length: there is no error to speak of.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) {
        mac.update(b"wardkeep secret fingerprint v1\0");
        mac.update(value.as_bytes());
        for (to, from) in short.iter_mut().zip(mac.finalize().into_bytes()) {
            *to = from;
        }
    }
    short
}

fn secret(kind: &'static str, start: usize, end: usize, confidence: f32) -> Secret {
    Secret { kind, span: (start..end).into(), confidence }
}

/// How many bytes from `from` on satisfy a test, at most `most`.
fn run_length(text: &[u8], from: usize, most: usize, test: impl Fn(u8) -> bool) -> usize {
    let rest = &text[from.min(text.len())..];
    rest.iter().take(most).take_while(|byte| test(**byte)).count()
}
