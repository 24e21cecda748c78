//! Where a request wants to go, in one spelling.
//!
//! A host that programs could read in two ways is no host here: letters beyond ASCII, control
//! characters, user names, addresses in octal, hexadecimal or short form are all refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use thiserror::Error;
use wardkeep_detect::urls::embedded_ipv4;

/// A host in its one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: lower case, ASCII, without a dot at its end.
    Name(String),
    /// An address; one of IPv4 is never written as IPv6.
    Address(IpAddr),
}

/// Host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// Why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadHost {
    /// Nothing is there.
    #[error("there is no host")]
    Empty,
    /// Longer than a name can be.
    #[error("the host is longer than a name can be")]
    TooLong,
    /// Characters that no host has.
    #[error("the host has characters that no host has")]
    Character,
    /// Letters beyond ASCII.
    #[error("the host is not written in ASCII; write its `xn--` form")]
    NotAscii,
    /// A user name stands in front.
    #[error("a user name stands in front of the host")]
    UserInfo,
    /// An address in a spelling that programs read differently.
    #[error("the address is not written as four decimal numbers")]
    OddAddress,
    /// An IPv6 address with one of IPv4 inside.
    #[error("the address carries another one inside")]
    Embedded,
    /// An international name that is not one.
    #[error("the international name is not valid")]
    Idna,
    /// A port that is none.
    #[error("the port is no number from 1 to 65535")]
    Port,
}

/// Longest name.
const MAX_NAME: usize = 253;

impl Host {
    /// Reads a host; an address of IPv6 stands in brackets.
    ///
    /// # Errors
    /// When it is none, or may be read in two ways.
    pub fn parse(text: &[u8]) -> Result<Self, BadHost> {
        if text.is_empty() {
            return Err(BadHost::Empty);
        }
        if text.len() > MAX_NAME + 1 {
            return Err(BadHost::TooLong);
        }
        if !text.is_ascii() {
            return Err(BadHost::NotAscii);
        }
        if text.contains(&b'@') {
            return Err(BadHost::UserInfo);
        }
        let text = std::str::from_utf8(text).map_err(|_| BadHost::NotAscii)?;
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(BadHost::Character)?;
            // A zone names a network card of this machine.
            let address = inner.parse().map_err(|_| BadHost::Character)?;
            return Self::of_address(IpAddr::V6(address));
        }
        Self::parse_name(&text.to_ascii_lowercase())
    }

    fn parse_name(lower: &str) -> Result<Self, BadHost> {
        let name = lower.strip_suffix('.').unwrap_or(lower);
        if name.len() > MAX_NAME {
            return Err(BadHost::TooLong);
        }
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|sign| matches!(sign, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
        };
        if !name.split('.').all(label) {
            return Err(BadHost::Character);
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        // Whatever ends in a number is an address to some program.
        if last.bytes().all(|sign| sign.is_ascii_digit()) || last.starts_with("0x") {
            let address: Ipv4Addr = lower.parse().map_err(|_| BadHost::OddAddress)?;
            return Ok(Self::Address(address.into()));
        }
        if name.split('.').any(|label| label.starts_with("xn--")) {
            let (unicode, read) = idna::domain_to_unicode(name);
            let again = read.ok().and_then(|()| idna::domain_to_ascii(&unicode).ok());
            if again.as_deref() != Some(name) {
                return Err(BadHost::Idna);
            }
        }
        Ok(Self::Name(name.to_owned()))
    }

    /// The host that an address is.
    ///
    /// # Errors
    /// When another address is inside of it, other than plain IPv4 in IPv6.
    pub fn of_address(address: IpAddr) -> Result<Self, BadHost> {
        let address = address.to_canonical();
        match address {
            IpAddr::V6(inner) if embedded_ipv4(inner).is_some() => Err(BadHost::Embedded),
            _ => Ok(Self::Address(address)),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

impl Target {
    /// Reads `host:port`; without a port it is `default`.
    ///
    /// # Errors
    /// When host or port are none.
    pub fn parse(text: &[u8], default: Option<u16>) -> Result<Self, BadHost> {
        let end = match text.first() {
            Some(b'[') => text.iter().position(|sign| *sign == b']').ok_or(BadHost::Character)? + 1,
            _ => text.iter().position(|sign| *sign == b':').unwrap_or(text.len()),
        };
        let (host, rest) = text.split_at(end);
        let host = Host::parse(host)?;
        let port = match rest {
            [] => default.ok_or(BadHost::Port)?,
            [b':', digits @ ..] => port(digits)?,
            _ if rest.contains(&b'@') => return Err(BadHost::UserInfo),
            _ => return Err(BadHost::Character),
        };
        Ok(Self { host, port })
    }

    /// As it stands in a URL or a `Host` header of `scheme`.
    #[must_use]
    pub fn authority(&self, scheme: &str) -> String {
        let usual = if scheme == "https" { 443 } else { 80 };
        if self.port == usual { self.host.to_string() } else { self.to_string() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

fn port(digits: &[u8]) -> Result<u16, BadHost> {
    let plain = (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    // Some programs take a number that begins with zero for an octal one.
    let plain = plain && digits.first() != Some(&b'0');
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| plain)
        .and_then(|text| text.parse().ok())
        .filter(|port| *port != 0)
        .ok_or(BadHost::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, BadHost> {
        Host::parse(text.as_bytes()).map(|host| host.to_string())
    }

    #[test]
    fn a_host_has_one_spelling() {
        for (text, host) in [
            ("EXAMPLE.org", "example.org"),
            ("example.org.", "example.org"),
            ("a_b.example", "a_b.example"),
            ("XN--MNCHEN-3YA.de", "xn--mnchen-3ya.de"),
            ("10.0.0.1", "10.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[2606:4700::1111]", "[2606:4700::1111]"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(host), "{text}");
        }
    }

    #[test]
    fn what_may_be_read_in_two_ways_is_no_host() {
        use BadHost::{Character, Embedded, Empty, Idna, NotAscii, OddAddress, UserInfo};
        for (text, why) in [
            ("", Empty),
            (".", Character),
            ("a..b", Character),
            ("example.org..", Character),
            ("evil.test\0.allowed.test", Character),
            ("evil.test\r\n", Character),
            ("a b", Character),
            ("a%2eb", Character),
            ("a/b", Character),
            ("a\\b", Character),
            ("::1", Character),
            ("[::1", Character),
            ("[::1%25eth0]", Character),
            ("a@b", UserInfo),
            ("blocked。allowed.test", NotAscii),
            ("аllowed.test", NotAscii),
            ("0x7f000001", OddAddress),
            ("2130706433", OddAddress),
            ("0177.0.0.1", OddAddress),
            ("127.1", OddAddress),
            ("127.0.0.1.", OddAddress),
            ("0x7f.0.0.0x1", OddAddress),
            ("1.2.3.256", OddAddress),
            ("example.1", OddAddress),
            ("[64:ff9b::7f00:1]", Embedded),
            ("[2002:7f00:1::]", Embedded),
            ("[::7f00:2]", Embedded),
            ("xn--a.example", Idna),
            ("xn--.example", Idna),
        ] {
            assert_eq!(parse(text), Err(why), "{text:?}");
        }
        assert_eq!(Host::parse(&[b'a'; 300]), Err(BadHost::TooLong));
    }

    #[test]
    fn ports_are_plain_numbers() {
        let parse = |text: &str| Target::parse(text.as_bytes(), None).map(|t| t.to_string());
        assert_eq!(parse("a.example:443").as_deref(), Ok("a.example:443"));
        assert_eq!(parse("[::1]:8080").as_deref(), Ok("[::1]:8080"));
        for text in ["a:", "a:0", "a:65536", "a:+80", "a:8 0", "a:000080", "a:080", "a", "a:80:80"]
        {
            assert_eq!(parse(text), Err(BadHost::Port), "{text}");
        }
        assert_eq!(parse("user@host:80"), Err(BadHost::UserInfo));
        assert_eq!(parse("user:80@host:80"), Err(BadHost::Port));
        assert_eq!(parse("[::1]x"), Err(BadHost::Character));
    }
}
