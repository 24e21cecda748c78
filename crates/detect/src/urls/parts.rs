//! A URL in its parts, borrowed; ordinary web addresses are taken apart without a parser, because parsing
//! changes nothing in them.

use std::net::IpAddr;

use super::{Host, Parsed, has_scheme};

/// What a URL consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Parts<'a> {
    pub(super) scheme: &'a str,
    pub(super) host: HostPart<'a>,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) fragment: Option<&'a str>,
    pub(super) has_userinfo: bool,
    pub(super) disguised_address: bool,
    pub(super) raw: &'a str,
}

/// A host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HostPart<'a> {
    Domain { ascii: &'a str, unicode: &'a str },
    Address(IpAddr),
    None,
}

impl<'a> From<&'a Parsed> for Parts<'a> {
    fn from(url: &'a Parsed) -> Self {
        Self {
            scheme: &url.scheme,
            host: match &url.host {
                Host::Domain { ascii, unicode } => HostPart::Domain { ascii, unicode },
                Host::Ipv4(address) => HostPart::Address((*address).into()),
                Host::Ipv6(address) => HostPart::Address((*address).into()),
                Host::None => HostPart::None,
            },
            path: &url.path,
            query: url.query.as_deref(),
            fragment: url.fragment.as_deref(),
            has_userinfo: url.has_userinfo,
            disguised_address: url.disguised_address,
            raw: &url.raw,
        }
    }
}

impl<'a> Parts<'a> {
    /// Takes an address apart in which nothing needs care; others are left to the real parser.
    pub(super) fn plain(text: &'a str) -> Option<Self> {
        let raw = text.trim();
        let (scheme, rest) = if let Some(rest) = raw.strip_prefix("https://") {
            ("https", rest)
        } else if let Some(rest) = raw.strip_prefix("http://") {
            ("http", rest)
        } else if !has_scheme(raw) {
            ("https", raw.trim_start_matches(['/', '\\']))
        } else {
            return None;
        };
        let host_end = rest.bytes().position(|byte| !is_host(byte)).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(host_end);
        if !is_plain_host(host) || !rest.is_empty() && !rest.starts_with(['/', '?', '#']) {
            return None;
        }
        let (rest, fragment) = cut(rest, b'#');
        let (path, query) = cut(rest, b'?');
        let tail = |text: Option<&str>| text.is_none_or(|text| text.bytes().all(is_tail));
        if !is_plain_path(path) || !tail(query) || !tail(fragment) {
            return None;
        }
        Some(Self {
            scheme,
            host: HostPart::Domain { ascii: host, unicode: host },
            path: if path.is_empty() { "/" } else { path },
            query,
            fragment,
            has_userinfo: false,
            disguised_address: false,
            raw,
        })
    }

    /// With its own copy of everything.
    pub(super) fn owned(&self) -> Parsed {
        Parsed {
            scheme: self.scheme.to_owned(),
            host: match self.host {
                HostPart::Domain { ascii, unicode } => {
                    Host::Domain { ascii: ascii.to_owned(), unicode: unicode.to_owned() }
                }
                HostPart::Address(IpAddr::V4(address)) => Host::Ipv4(address),
                HostPart::Address(IpAddr::V6(address)) => Host::Ipv6(address),
                HostPart::None => Host::None,
            },
            port: None,
            path: self.path.to_owned(),
            query: self.query.map(str::to_owned),
            fragment: self.fragment.map(str::to_owned),
            has_userinfo: self.has_userinfo,
            trailing_dot: false,
            disguised_address: self.disguised_address,
            raw: self.raw.to_owned(),
        }
    }
}

fn cut(text: &str, sign: u8) -> (&str, Option<&str>) {
    match memchr::memchr(sign, text.as_bytes()) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

fn is_host(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

/// A name whose last label begins with a letter is no address; `xn--` stands for other letters.
fn is_plain_host(host: &str) -> bool {
    let (mut length, mut last) = (0_usize, 0_u8);
    for (place, byte) in host.bytes().enumerate() {
        if byte == b'.' {
            if length == 0 {
                return false;
            }
            length = 0;
            continue;
        }
        if length == 0 {
            last = byte;
            if byte == b'x' && host[place..].starts_with("xn--") {
                return false;
            }
        }
        length += 1;
        if length > 63 {
            return false;
        }
    }
    length > 0 && last.is_ascii_lowercase() && host.len() <= 253
}

/// No dots that stand for a folder, and nothing that is encoded.
fn is_plain_path(path: &str) -> bool {
    let mut before = b'/';
    path.bytes().all(|byte| {
        let plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b'/' | b'_' | b'~' | b'-' | b'+' | b',' | b';' | b'=' | b':' | b'@')
            || byte == b'.' && before != b'/';
        before = byte;
        plain
    })
}

/// Signs that stay as they are in a query and in a fragment.
fn is_tail(byte: u8) -> bool {
    const SIGNS: &[u8] = b"-._~/?:@!$&()*+,;=%[]{}|";
    byte.is_ascii_alphanumeric() || SIGNS.contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::urls::parse_carefully;

    proptest! {
        #[test]
        fn the_real_parser_says_the_same(
            text in "(https?://|//)?[a-z0-9.x-]{0,12}[a-z.]{0,4}(/[a-z.A-Z0-9%_~+,;=:@!-]{0,8}){0,3}(\\?[ -~]{0,16})?(#[ -~]{0,12})?"
        ) {
            if let Some(parts) = Parts::plain(&text) {
                prop_assert_eq!(Some(parts.owned()), parse_carefully(text.trim()));
            }
        }
    }

    #[test]
    fn ordinary_addresses_are_plain() {
        for plain in ["https://example.org/a/b.html?q=1&r=%20#top", "example.org", "//a.b/c"] {
            assert!(Parts::plain(plain).is_some(), "{plain}");
        }
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
            "data:text/html,x",
        ] {
            assert!(Parts::plain(careful).is_none(), "{careful}");
        }
    }
}
