//! The first message of TLS, read as far as it tells where it goes.

use thiserror::Error;

use super::host::Host;

/// Longest first message, with the headers of its records.
pub const MAX_HELLO: usize = 32 << 10;

/// What a first message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The name that is asked for.
    pub name: Option<String>,
    /// Whether another name may be hidden in it (encrypted client hello).
    pub hidden: bool,
}

/// Why bytes are no first message of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadHello {
    /// Something else than TLS.
    #[error("this is not TLS")]
    NotTls,
    /// TLS that cannot be read in one way only.
    #[error("the first message of TLS is not well formed")]
    Malformed,
    /// Longer than [`MAX_HELLO`].
    #[error("the first message of TLS is too long")]
    TooLong,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;
/// Its draft, which hid the name alone.
const ENCRYPTED_NAME: u16 = 0xffce;
/// Longest content of a record that is not encrypted.
const MAX_PLAIN: usize = 1 << 14;

impl Hello {
    /// Reads the first message, over several records where it is; `None` if more bytes are needed.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadHello> {
        let mut message: Vec<u8> = Vec::new();
        let mut rest = bytes;
        loop {
            let header = match rest {
                [HANDSHAKE, 3, 0..=4, high, low, ..] => [*high, *low],
                []
                | [HANDSHAKE]
                | [HANDSHAKE, 3]
                | [HANDSHAKE, 3, 0..=4]
                | [HANDSHAKE, 3, 0..=4, _] => {
                    return more(bytes);
                }
                _ if message.is_empty() => return Err(BadHello::NotTls),
                _ => return Err(BadHello::Malformed),
            };
            let length = usize::from(u16::from_be_bytes(header));
            if length == 0 || length > MAX_PLAIN {
                return Err(BadHello::Malformed);
            }
            let content = &rest[5..];
            // What it is can be told before all of it is there.
            let seen = &content[..content.len().min(length)];
            message.extend_from_slice(seen);
            match message.first() {
                Some(&CLIENT_HELLO) | None => {}
                Some(_) => return Err(BadHello::NotTls),
            }
            if let [_, a, b, c, body @ ..] = message.as_slice() {
                let size = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
                if size > MAX_HELLO {
                    return Err(BadHello::TooLong);
                }
                if body.len() > size {
                    return Err(BadHello::Malformed);
                }
                if body.len() == size && seen.len() == length {
                    return read(body).ok_or(BadHello::Malformed).map(Some);
                }
                // The message ends inside of the record.
                if body.len() == size {
                    return Err(BadHello::Malformed);
                }
            }
            if seen.len() < length {
                return more(bytes);
            }
            rest = &content[length..];
        }
    }
}

fn more(bytes: &[u8]) -> Result<Option<Hello>, BadHello> {
    if bytes.len() >= MAX_HELLO { Err(BadHello::TooLong) } else { Ok(None) }
}

/// Reads the content of the message.
fn read(body: &[u8]) -> Option<Hello> {
    let mut body = Reader(body);
    body.take(2 + 32)?;
    let session = body.short()?;
    let ciphers = body.long()?;
    let compression = body.short()?;
    if session.0.len() > 32
        || ciphers.0.len() < 2
        || !ciphers.0.len().is_multiple_of(2)
        || compression.0.is_empty()
    {
        return None;
    }
    let mut hello = Hello { name: None, hidden: false };
    if body.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = body.long()?;
    let mut kinds: Vec<u16> = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long()?;
        if kinds.contains(&kind) {
            return None;
        }
        kinds.push(kind);
        match kind {
            SERVER_NAME => hello.name = Some(server_name(content)?),
            ENCRYPTED_HELLO | ENCRYPTED_NAME => hello.hidden = true,
            _ => {}
        }
    }
    body.0.is_empty().then_some(hello)
}

/// Exactly one name, which is a name.
fn server_name(content: Reader<'_>) -> Option<String> {
    let mut content = content;
    let mut list = content.long()?;
    let kind = list.take(1)?;
    let name = list.long()?;
    match Host::parse(name.0) {
        Ok(Host::Name(name)) if kind == [0] && list.0.is_empty() && content.0.is_empty() => {
            Some(name)
        }
        _ => None,
    }
}

#[derive(Debug, Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn short(&mut self) -> Option<Self> {
        let length = self.take(1)?[0];
        self.take(length.into()).map(Reader)
    }

    fn long(&mut self) -> Option<Self> {
        let length = self.number()?;
        self.take(length.into()).map(Reader)
    }
}

/// Follows the records of TLS: whatever is sent in between is seen.
#[derive(Debug, Clone, Default)]
pub struct Records {
    header: [u8; 5],
    seen: usize,
    left: usize,
}

/// Longest content of a record with its encryption.
const MAX_RECORD: usize = MAX_PLAIN + 2048;

impl Records {
    /// Follows the records through `bytes`.
    ///
    /// # Errors
    /// When something else than a record begins.
    pub fn walk(&mut self, bytes: &[u8]) -> Result<(), BadHello> {
        self.follow(bytes, |_, _| Ok(()))
    }

    /// The same, and hands out what each record holds, with its kind.
    pub(super) fn follow<E: From<BadHello>>(
        &mut self,
        bytes: &[u8],
        mut held: impl FnMut(u8, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(rest.len());
                self.left -= taken;
                held(self.header[0], &rest[..taken])?;
                rest = &rest[taken..];
                continue;
            }
            self.header[self.seen] = rest[0];
            self.seen += 1;
            rest = &rest[1..];
            let [kind, major, _, high, low] = self.header;
            if !(20..=24).contains(&kind) || self.seen > 1 && major != 3 {
                return Err(BadHello::NotTls.into());
            }
            if self.seen == 5 {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                self.seen = 0;
                if self.left == 0 || self.left > MAX_RECORD {
                    return Err(BadHello::NotTls.into());
                }
            }
        }
        Ok(())
    }
}

/// Watches for a first message that is said once more, in the clear: a host of TLS 1.3 may ask for other keys, and goes by
/// the second one.
///
/// What TLS 1.2 sends behind its first message is of the same kind: first the exchange of keys, which no first message
/// can follow, or, where a session is resumed, what is encrypted and begins with any byte. The latter is told from a first
/// message by its length, which it has by chance once in some forty thousand times.
#[derive(Debug, Default)]
pub(super) enum Repeated {
    /// None has begun.
    #[default]
    Awaited,
    /// What has come of it.
    Begun(Vec<u8>),
    /// None can come any more.
    Over,
}

/// Longest first message that hosts take.
const LONGEST: usize = 1 << 17;
/// Shortest record that is encrypted.
const SHORTEST: usize = 16;

impl Repeated {
    /// Takes what records hold, and gives back a first message when it is whole.
    ///
    /// # Errors
    /// When one is begun that cannot be read in one way only.
    pub(super) fn take(&mut self, kind: u8, content: &[u8]) -> Result<Option<Hello>, BadHello> {
        match self {
            Self::Awaited if kind == HANDSHAKE => *self = Self::Begun(content.to_vec()),
            Self::Begun(message) if kind == HANDSHAKE => message.extend_from_slice(content),
            Self::Begun(message) => {
                // Nothing comes in between the records of one message, so that it was none.
                let meant = message.len() < SHORTEST || message.get(4) == Some(&3);
                *self = Self::Over;
                return if meant { Err(BadHello::Malformed) } else { Ok(None) };
            }
            Self::Awaited | Self::Over => {}
        }
        let Self::Begun(message) = self else { return Ok(None) };
        match whole(message) {
            Ok(None) => Ok(None),
            Err(BadHello::NotTls) => {
                *self = Self::Over;
                Ok(None)
            }
            done => {
                *self = Self::Awaited;
                done
            }
        }
    }
}

/// A first message without its records; `None` if more bytes are needed, and not TLS where it is another one.
fn whole(message: &[u8]) -> Result<Option<Hello>, BadHello> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(BadHello::NotTls);
    }
    let [_, a, b, c, body @ ..] = message else { return Ok(None) };
    let size = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
    match size {
        _ if size > LONGEST => Err(BadHello::NotTls),
        _ if size > MAX_HELLO => Err(BadHello::TooLong),
        _ if body.len() > size => Err(BadHello::Malformed),
        _ if body.len() < size => Ok(None),
        _ => read(body).ok_or(BadHello::Malformed).map(Some),
    }
}

/// A first message of TLS for tests: as short as it may be.
#[doc(hidden)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "tests keep names short")]
pub fn example(name: Option<&str>, hidden: bool) -> Vec<u8> {
    let long = |bytes: Vec<u8>| {
        let mut all = (bytes.len() as u16).to_be_bytes().to_vec();
        all.extend(bytes);
        all
    };
    let extension = |kind: u16, content: Vec<u8>| {
        let mut all = kind.to_be_bytes().to_vec();
        all.extend(long(content));
        all
    };
    let mut extensions = extension(0x002b, vec![2, 3, 4]);
    if let Some(name) = name {
        let mut entry = vec![0];
        entry.extend(long(name.as_bytes().to_vec()));
        extensions.extend(extension(SERVER_NAME, long(entry)));
    }
    if hidden {
        extensions.extend(extension(ENCRYPTED_HELLO, vec![0; 40]));
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(long(extensions));
    let mut message = vec![CLIENT_HELLO, 0];
    message.extend(long(body));
    let mut record = vec![HANDSHAKE, 3, 1];
    record.extend(long(message));
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same message over many records.
    fn split(record: &[u8], size: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for piece in record[5..].chunks(size) {
            all.extend([22, 3, 3]);
            all.extend(u16::try_from(piece.len()).unwrap().to_be_bytes());
            all.extend_from_slice(piece);
        }
        all
    }

    #[test]
    fn the_name_is_found_however_it_is_cut() {
        let whole = example(Some("Allowed.test"), false);
        for bytes in [whole.clone(), split(&whole, 1), split(&whole, 7)] {
            for cut in 0..bytes.len() {
                assert_eq!(Hello::parse(&bytes[..cut]), Ok(None), "{cut}");
            }
            let hello = Hello::parse(&bytes).unwrap().unwrap();
            assert_eq!(hello.name.as_deref(), Some("allowed.test"));
            assert!(!hello.hidden);
        }
        let hello = Hello::parse(&example(None, true)).unwrap().unwrap();
        assert_eq!(hello, Hello { name: None, hidden: true });
    }

    #[test]
    fn what_is_not_tls_is_told_at_once() {
        for bytes in
            [&b"SSH-2.0-x"[..], b"GET / HTTP/1.1", b"\x16\x03\x01\x00\x05\x02", b"\x17\x03"]
        {
            assert_eq!(Hello::parse(bytes), Err(BadHello::NotTls), "{bytes:?}");
        }
        let mut trailing = example(Some("a.test"), false);
        trailing[4] += 1;
        trailing.push(0);
        assert_eq!(Hello::parse(&trailing), Err(BadHello::Malformed));
        for name in ["127.0.0.1", "a\0b", ""] {
            assert_eq!(Hello::parse(&example(Some(name), false)), Err(BadHello::Malformed));
        }
        let endless = split(&[&[0; 5][..], &[1, 0, 0x7f, 0xff], &[0; 40_000]].concat(), 1);
        assert_eq!(Hello::parse(&endless[..MAX_HELLO]), Err(BadHello::TooLong));
    }

    #[test]
    fn records_are_followed() {
        let mut bytes = example(Some("a.test"), false);
        bytes.extend([23, 3, 3, 0, 2, 1, 2]);
        for size in [1, 3, 1000] {
            let mut records = Records::default();
            assert!(bytes.chunks(size).all(|piece| records.walk(piece).is_ok()));
            assert_eq!(records.walk(b"CANARY"), Err(BadHello::NotTls));
        }
    }
}
