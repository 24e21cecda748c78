//! Ordinary web addresses, which are what they are written as: nothing in them is changed by parsing.

use super::{Host, Parsed};

/// Parses an address in which nothing needs care; others are left to the real parser.
pub(super) fn parse(text: &str) -> Option<Parsed> {
    let (scheme, rest) = match text.strip_prefix("https://") {
        Some(rest) => ("https", rest),
        None => ("http", text.strip_prefix("http://")?),
    };
    let host_end = rest.bytes().position(|byte| !is_host(byte)).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(host_end);
    if !is_plain_host(host) {
        return None;
    }
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let tail = |text: Option<&str>| text.is_none_or(|text| text.bytes().all(is_tail));
    if !is_plain_path(path) || !tail(query) || !tail(fragment) {
        return None;
    }
    Some(Parsed {
        scheme: scheme.to_owned(),
        host: Host::Domain { ascii: host.to_owned(), unicode: host.to_owned() },
        port: None,
        path: if path.is_empty() { "/" } else { path }.to_owned(),
        query: query.map(str::to_owned),
        fragment: fragment.map(str::to_owned),
        has_userinfo: false,
        trailing_dot: false,
        disguised_address: false,
        raw: text.to_owned(),
    })
}

fn is_host(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

/// A name whose last label begins with a letter is no address; `xn--` stands for other letters.
fn is_plain_host(host: &str) -> bool {
    let mut labels = host.split('.');
    host.len() <= 253
        && host
            .rsplit('.')
            .next()
            .is_some_and(|last| last.starts_with(|c: char| c.is_ascii_lowercase()))
        && labels.all(|label| !label.is_empty() && label.len() <= 63 && !label.starts_with("xn--"))
}

/// No dots that stand for a folder, and nothing that is encoded.
fn is_plain_path(path: &str) -> bool {
    let mut before = b'/';
    (path.is_empty() || path.starts_with('/'))
        && path.bytes().all(|byte| {
            let plain = byte.is_ascii_alphanumeric()
                || b"/_~-+,;=:@".contains(&byte)
                || byte == b'.' && before != b'/';
            before = byte;
            plain
        })
}

/// Signs that stay as they are in a query and in a fragment.
fn is_tail(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/?:@!$&()*+,;=%[]{}|".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;

    proptest! {
        #[test]
        fn the_real_parser_says_the_same(
            text in "https?://[a-z0-9.x-]{0,12}[a-z.]{0,4}(/[a-z.A-Z0-9%_~+,;=:@!-]{0,8}){0,3}(\\?[ -~]{0,16})?(#[ -~]{0,12})?"
        ) {
            if let Some(plain) = parse(&text) {
                let url = Url::parse(&text).unwrap();
                prop_assert_eq!(url.scheme(), plain.scheme);
                prop_assert_eq!(url.path(), plain.path);
                prop_assert_eq!(url.query(), plain.query.as_deref());
                prop_assert_eq!(url.fragment(), plain.fragment.as_deref());
                prop_assert_eq!(url.port(), None);
                prop_assert!(url.username().is_empty() && url.password().is_none());
                prop_assert!(matches!(url.host(), Some(url::Host::Domain(_))));
                let Some(Host::Domain { ascii, unicode }) = super::super::host_of(url.host_str().unwrap())
                else {
                    panic!("{text}");
                };
                prop_assert_eq!(plain.host, Host::Domain { ascii, unicode });
            }
        }
    }

    #[test]
    fn ordinary_addresses_are_plain() {
        assert!(parse("https://example.org/a/b.html?q=1&r=%20#top").is_some());
        for careful in [
            "https://127.0.0.1/",
            "https://example.org:8080/",
            "https://user@example.org/",
            "https://example.org/../x",
            "https://example.org/%2e%2e/x",
            "https://xn--bcher-kva.example/",
            "https://EXAMPLE.org/",
            "https://example.org./",
            "ftp://example.org/",
            "https://example.org\\x",
            "https://0x7f.1",
        ] {
            assert!(parse(careful).is_none(), "{careful}");
        }
    }
}
