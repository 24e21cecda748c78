//! What is carried out in what the proxy can read.

use wardkeep_detect::secrets::{find_secrets, redact};
use wardkeep_detect::urls::{UrlContext, UrlMatch, UrlRiskKind, judge_url, parse_url};

use super::decider::Denial;
use super::head::Head;

/// From here on a secret is sure.
const SURE: f32 = 0.85;
/// From this weight on, what an address carries looks like data.
const ENCODED: f32 = 0.5;
/// Bytes that are held back until more has come, so that nothing is sent in two halves.
const HELD: usize = 4 << 10;

/// A secret in a text.
pub(super) fn secret_in(bytes: &[u8]) -> Option<Denial> {
    let text = String::from_utf8_lossy(bytes);
    let secret = find_secrets(&text).into_iter().find(|secret| secret.confidence >= SURE)?;
    let reason = format!("a secret ({}) would be sent", secret.kind);
    Some(Denial::new("egress-secret", reason))
}

/// A text without the secrets in it.
pub(super) fn without_secrets(text: &str) -> String {
    let secrets: Vec<_> =
        find_secrets(text).into_iter().filter(|secret| secret.confidence >= SURE).collect();
    if secrets.is_empty() { text.to_owned() } else { redact(text, &secrets) }
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
    let file = path.split('?').next().unwrap_or_default();
    let typed = |name| head.only(name).is_some_and(|value| value.starts_with(b"application/dns-"));
    let found = file.ends_with("/dns-query") || typed("content-type") || typed("accept");
    found.then(|| {
        let reason = "names are looked up by this proxy alone, not by requests (DNS over HTTPS)";
        Denial::new("egress-name-lookup", reason)
    })
}

/// Looks through a body that goes by in pieces.
#[derive(Debug, Default)]
pub(super) struct Passing {
    held: Vec<u8>,
}

impl Passing {
    /// Takes a piece, and gives back what may be sent.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<Vec<u8>, Denial> {
        self.held.extend_from_slice(piece);
        if let Some(denial) = secret_in(&self.held) {
            return Err(denial);
        }
        let free = self.held.len().saturating_sub(HELD);
        Ok(self.held.drain(..free).collect())
    }

    /// The end of the body.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_two_pieces_is_found_before_it_is_sent() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\
                   AAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACDmZ3Vlc3NlZG5vYm9keXdvdWxkYmVsaWV2ZQ\n\
                   -----END OPENSSH PRIVATE KEY-----\n";
        assert!(secret_in(key.as_bytes()).is_some());
        for cut in 1..key.len() {
            let mut passing = Passing::default();
            let mut sent = passing.take(&[b'x'; 10_000]).unwrap();
            let whole = passing.take(&key.as_bytes()[..cut]).and_then(|more| {
                sent.extend(more);
                passing.take(&key.as_bytes()[cut..])
            });
            assert!(whole.is_err(), "{cut}");
            assert!(sent.iter().all(|byte| *byte == b'x'), "{cut}");
        }
    }

    #[test]
    fn data_in_addresses_is_counted() {
        let line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQ";
        assert!(encoded_bytes(&format!("http://a.test/{line}{line}")) > 100);
        for url in
            ["http://a.test/", "http://a.test/index.html?q=hello+world", "http://a.test/v1/x"]
        {
            assert_eq!(encoded_bytes(url), 0, "{url}");
        }
    }
}
