//! SOCKS5 as RFC 1928 and RFC 1929 have it, of which only `CONNECT` is served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use super::host::{BadHost, Host, Target};

/// Why bytes are no SOCKS5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadSocks {
    /// Not the form that it has.
    #[error("this is not SOCKS5")]
    Malformed,
    /// Something else than a connection is asked for.
    #[error("only connections are served, no listening and no UDP")]
    Command,
    /// A kind of address that is not known.
    #[error("the kind of address is not known")]
    AddressKind,
    /// The host is none.
    #[error("{0}")]
    Host(#[from] BadHost),
}

/// Something that was read, and how many bytes it took.
pub type Read<T> = Result<Option<(T, usize)>, BadSocks>;

/// Ways to say who one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// Nobody in particular.
    pub none: bool,
    /// By name and password.
    pub password: bool,
}

/// Name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub name: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").finish_non_exhaustive()
    }
}

/// Reads what the other side begins with.
///
/// # Errors
/// When it is no SOCKS5.
pub fn greeting(bytes: &[u8]) -> Read<Greeting> {
    let [version, count, methods @ ..] = bytes else { return begun(bytes, 5) };
    if *version != 5 || *count == 0 {
        return Err(BadSocks::Malformed);
    }
    let count = usize::from(*count);
    let Some(methods) = methods.get(..count) else { return Ok(None) };
    let greeting = Greeting { none: methods.contains(&0), password: methods.contains(&2) };
    Ok(Some((greeting, count + 2)))
}

/// Reads name and password.
///
/// # Errors
/// When it is neither.
pub fn login(bytes: &[u8]) -> Read<Login> {
    let [version, length, rest @ ..] = bytes else { return begun(bytes, 1) };
    if *version != 1 {
        return Err(BadSocks::Malformed);
    }
    let name_end = usize::from(*length);
    let Some(length) = rest.get(name_end) else { return Ok(None) };
    let end = name_end + 1 + usize::from(*length);
    let Some(password) = rest.get(name_end + 1..end) else { return Ok(None) };
    let login = Login { name: rest[..name_end].to_vec(), password: password.to_vec() };
    Ok(Some((login, end + 2)))
}

/// Reads where to go.
///
/// # Errors
/// When it is nowhere, or something else is wanted.
pub fn request(bytes: &[u8]) -> Read<Target> {
    let [version, command, reserved, kind, rest @ ..] = bytes else { return begun(bytes, 5) };
    if *version != 5 || *reserved != 0 {
        return Err(BadSocks::Malformed);
    }
    if *command != 1 {
        return Err(BadSocks::Command);
    }
    let (from, length) = match kind {
        1 => (0, 4),
        4 => (0, 16),
        3 => match rest.first() {
            Some(length) => (1, usize::from(*length)),
            None => return Ok(None),
        },
        _ => return Err(BadSocks::AddressKind),
    };
    let end = from + length;
    let (Some(address), Some([high, low])) = (rest.get(from..end), rest.get(end..end + 2)) else {
        return Ok(None);
    };
    let host = match kind {
        1 => Host::of_address(read::<4>(address).map(Ipv4Addr::from).map(IpAddr::V4)?)?,
        4 => Host::of_address(read::<16>(address).map(Ipv6Addr::from).map(IpAddr::V6)?)?,
        _ => Host::parse(address)?,
    };
    let port = u16::from_be_bytes([*high, *low]);
    if port == 0 {
        return Err(BadSocks::Host(BadHost::Port));
    }
    Ok(Some((Target { host, port }, end + 6)))
}

/// What is answered to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It goes through.
    Done = 0,
    /// Something went wrong.
    Failed = 1,
    /// It is not allowed.
    Refused = 2,
    /// The host cannot be reached.
    Unreachable = 4,
    /// Only connections.
    Command = 7,
    /// Not that kind of address.
    AddressKind = 8,
}

impl Reply {
    /// As bytes; where the connection comes from is not told.
    #[must_use]
    pub fn bytes(self) -> [u8; 10] {
        [5, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// Too little to tell, if it begins as it must.
fn begun<T>(bytes: &[u8], first: u8) -> Read<T> {
    match bytes.first() {
        Some(byte) if *byte != first => Err(BadSocks::Malformed),
        _ => Ok(None),
    }
}

fn read<const N: usize>(bytes: &[u8]) -> Result<[u8; N], BadSocks> {
    bytes.try_into().map_err(|_| BadSocks::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &[u8], port: u16) -> Vec<u8> {
        let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        bytes.extend_from_slice(name);
        bytes.extend(port.to_be_bytes());
        bytes
    }

    #[test]
    fn requests_are_read() {
        let of = |bytes: &[u8]| request(bytes).map(|read| read.map(|(t, n)| (t.to_string(), n)));
        assert_eq!(of(&named(b"A.example.", 443)), Ok(Some(("a.example:443".into(), 17))));
        let v4 = [5, 1, 0, 1, 10, 0, 0, 1, 0, 80];
        assert_eq!(of(&v4), Ok(Some(("10.0.0.1:80".into(), 10))));
        let mut v6 = vec![5, 1, 0, 4];
        v6.extend("::ffff:127.0.0.1".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend([0, 80]);
        assert_eq!(of(&v6), Ok(Some(("127.0.0.1:80".into(), 22))));
        for cut in 0..v6.len() {
            assert_eq!(of(&v6[..cut]), Ok(None), "{cut}");
        }
    }

    #[test]
    fn all_else_is_refused() {
        assert_eq!(
            request(&named(b"blocked.test\0.allowed.test", 80)),
            Err(BadSocks::Host(BadHost::Character))
        );
        assert_eq!(request(&named(b"", 80)), Err(BadSocks::Host(BadHost::Empty)));
        assert_eq!(request(&named(b"a.example", 0)), Err(BadSocks::Host(BadHost::Port)));
        assert_eq!(request(&named(b"127.1", 80)), Err(BadSocks::Host(BadHost::OddAddress)));
        for command in [0, 2, 3, 255] {
            assert_eq!(request(&[5, command, 0, 1]), Err(BadSocks::Command));
        }
        assert_eq!(request(&[5, 1, 0, 2]), Err(BadSocks::AddressKind));
        assert_eq!(request(&[5, 1, 1, 1]), Err(BadSocks::Malformed));
        assert_eq!(request(&[4]), Err(BadSocks::Malformed));
        assert_eq!(greeting(&[5, 0]), Err(BadSocks::Malformed));
        assert_eq!(login(&[2, 0]), Err(BadSocks::Malformed));
    }
}
