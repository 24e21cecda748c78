//! The head of a request or answer in HTTP/1, read strictly.
//!
//! What two programs could read as different requests is refused, not mended.

use thiserror::Error;

/// Longest head.
pub const MAX_HEAD: usize = 64 << 10;
/// Most header lines.
pub const MAX_HEADERS: usize = 100;
/// Longest name of a method.
const MAX_METHOD: usize = 32;

/// Why bytes are no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadHead {
    /// Longer than [`MAX_HEAD`], or more lines than [`MAX_HEADERS`].
    #[error("the head is longer than 64 KiB or has more than 100 lines")]
    TooLarge,
    /// A line that ends without CR and LF, or control characters.
    #[error("the head has control characters, or lines that do not end in CR LF")]
    Control,
    /// A line that goes on in the next.
    #[error("a header line goes on in the next line")]
    Folded,
    /// Not what a request or answer begins with.
    #[error("the first line is none of HTTP/1")]
    FirstLine,
    /// A header line without a name.
    #[error("a header line has no proper name")]
    Header,
    /// How long the body is can be read in two ways.
    #[error("the length of the body is told in two ways, or not properly")]
    Framing,
    /// `Connection` names a header that it must not.
    #[error("`Connection` would remove a header that tells where or how long the request is")]
    Connection,
}

/// A header line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name, as written.
    pub name: String,
    /// Its value, without blanks around it.
    pub value: Vec<u8>,
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The method, as written.
    pub method: String,
    /// The target, as written: visible ASCII only.
    pub target: String,
    /// 0 or 1.
    pub minor: u8,
    /// The headers.
    pub headers: Vec<Header>,
    /// How the body is delimited.
    pub framing: Framing,
    /// Bytes of the head.
    pub length: usize,
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The text beside it.
    pub reason: String,
    /// 0 or 1.
    pub minor: u8,
    /// The headers.
    pub headers: Vec<Header>,
    /// How the body is delimited.
    pub framing: Framing,
    /// Bytes of the head.
    pub length: usize,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none, or until the connection ends if it is an answer.
    Absent,
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
}

impl Head {
    /// Reads a head; `None` if more bytes are needed.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadHead> {
        let Some(length) = end(bytes)? else { return Ok(None) };
        let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut lines);
        read(request.parse(&bytes[..length]), length)?;
        let (Some(method), Some(target), Some(minor)) =
            (request.method, request.path, request.version)
        else {
            return Err(BadHead::FirstLine);
        };
        let plain = target.bytes().all(|byte| byte.is_ascii_graphic());
        // httparse takes more than one blank between them.
        let said = method.len() + target.len() + " HTTP/1.1 ".len();
        if method.len() > MAX_METHOD || !plain || first_line(bytes) != said {
            return Err(BadHead::FirstLine);
        }
        let (method, target) = (method.to_owned(), target.to_owned());
        let headers = headers(request.headers)?;
        if headers.iter().any(|header| is_double(&header.name)) {
            return Err(BadHead::Header);
        }
        let framing = framing(&headers, minor, false)?;
        Ok(Some(Self { method, target, minor, headers, framing, length }))
    }

    /// The one header of a name; `None` where there is none or there are several.
    #[must_use]
    pub fn only(&self, name: &str) -> Option<&[u8]> {
        only(&self.headers, name)
    }

    /// Whether a header is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        values(&self.headers, name).next().is_some()
    }

    /// Methods that the host is asked to take this request for instead.
    pub(super) fn other_methods(&self) -> impl Iterator<Item = &[u8]> {
        ["x-http-method", "x-http-method-override", "x-method-override"]
            .into_iter()
            .flat_map(|name| values(&self.headers, name))
    }

    /// Whether the one who asks wants to go on after this request.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        let says = |word| tokens(&self.headers, "connection").any(|token| is(token, word));
        let proxy = tokens(&self.headers, "proxy-connection").any(|token| is(token, "close"));
        !says("close") && !proxy && (self.minor == 1 || says("keep-alive"))
    }

    /// Whether it asks for a WebSocket.
    #[must_use]
    pub fn upgrades(&self) -> bool {
        self.minor == 1
            && self.framing == Framing::Absent
            && self.only("upgrade").is_some_and(|value| is(value, "websocket"))
            && tokens(&self.headers, "connection").any(|token| is(token, "upgrade"))
    }

    /// The headers that go on to the host.
    ///
    /// # Errors
    /// When `Connection` would take away what must stay.
    pub fn forwarded(&self) -> Result<impl Iterator<Item = &Header>, BadHead> {
        forwarded(&self.headers)
    }
}

impl Answer {
    /// Reads a head; `None` if more bytes are needed.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadHead> {
        let Some(length) = end(bytes)? else { return Ok(None) };
        let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut answer = httparse::Response::new(&mut lines);
        read(answer.parse(&bytes[..length]), length)?;
        let (Some(status), Some(minor)) = (answer.code, answer.version) else {
            return Err(BadHead::FirstLine);
        };
        let reason = answer.reason.unwrap_or_default();
        let reason = reason.chars().filter(|sign| !sign.is_control()).take(100).collect();
        let headers = headers(answer.headers)?;
        let framing = framing(&headers, minor, true)?;
        Ok(Some(Self { status, reason, minor, headers, framing, length }))
    }

    /// Whether it says this of the connection.
    pub(super) fn connection(&self, word: &str) -> bool {
        tokens(&self.headers, "connection").any(|token| is(token, word))
    }

    /// The headers that go on to the one who asked.
    ///
    /// # Errors
    /// When `Connection` would take away what must stay.
    pub fn forwarded(&self) -> Result<impl Iterator<Item = &Header>, BadHead> {
        forwarded(&self.headers)
    }
}

/// Length of the head, its empty line included.
fn end(bytes: &[u8]) -> Result<Option<usize>, BadHead> {
    let looked = &bytes[..bytes.len().min(MAX_HEAD)];
    let mut line = 0;
    for (at, byte) in looked.iter().enumerate() {
        match byte {
            b'\n' if at > line && looked[at - 1] == b'\r' => {
                if at - line == 1 {
                    // An empty line in front of everything is no head.
                    return if line == 0 { Err(BadHead::FirstLine) } else { Ok(Some(at + 1)) };
                }
                line = at + 1;
            }
            b'\r' if looked.get(at + 1).is_none_or(|next| *next == b'\n') => {}
            b' ' | b'\t' if at == line && line > 0 => return Err(BadHead::Folded),
            b'\t' | b' '..=b'~' | 0x80.. => {}
            _ => return Err(BadHead::Control),
        }
    }
    if looked.len() == MAX_HEAD { Err(BadHead::TooLarge) } else { Ok(None) }
}

fn first_line(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\r').unwrap_or(0)
}

fn read(
    parsed: Result<httparse::Status<usize>, httparse::Error>,
    length: usize,
) -> Result<(), BadHead> {
    match parsed {
        Ok(httparse::Status::Complete(read)) if read == length => Ok(()),
        Err(httparse::Error::TooManyHeaders) => Err(BadHead::TooLarge),
        Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => Err(BadHead::Header),
        _ => Err(BadHead::FirstLine),
    }
}

fn headers(lines: &[httparse::Header<'_>]) -> Result<Vec<Header>, BadHead> {
    lines
        .iter()
        .map(|line| {
            let proper = !line.name.is_empty() && line.name.bytes().all(is_token);
            proper
                .then(|| Header {
                    name: line.name.to_owned(),
                    value: line.value.trim_ascii().to_vec(),
                })
                .ok_or(BadHead::Header)
        })
        .collect()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `Transfer_Encoding`: to many programs behind a gateway that is the same as with a hyphen.
fn is_double(name: &str) -> bool {
    const READ: [&str; 6] = [
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
    ];
    name.contains('_') && {
        let name = name.replace('_', "-");
        READ.iter().any(|read| name.eq_ignore_ascii_case(read))
    }
}

fn is(value: &[u8], word: &str) -> bool {
    value.eq_ignore_ascii_case(word.as_bytes())
}

pub(super) fn values<'a>(headers: &'a [Header], name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value.as_slice())
}

fn only<'a>(headers: &'a [Header], name: &str) -> Option<&'a [u8]> {
    let mut all = values(headers, name);
    all.next().filter(|_| all.next().is_none())
}

fn tokens<'a>(headers: &'a [Header], name: &str) -> impl Iterator<Item = &'a [u8]> {
    values(headers, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

fn framing(headers: &[Header], minor: u8, answer: bool) -> Result<Framing, BadHead> {
    let coded = values(headers, "transfer-encoding").next().is_some();
    let long = values(headers, "content-length").next().is_some();
    match (coded, long) {
        (false, false) => Ok(Framing::Absent),
        (true, true) => Err(BadHead::Framing),
        (true, false) => match only(headers, "transfer-encoding") {
            Some(value) if minor == 1 && is(value, "chunked") => Ok(Framing::Chunked),
            _ => Err(BadHead::Framing),
        },
        (false, true) => {
            let value = if answer {
                // Some answers say the same twice.
                let mut all = values(headers, "content-length");
                let first = all.next();
                first.filter(|first| all.all(|other| other == *first))
            } else {
                only(headers, "content-length")
            };
            let digits = value
                .filter(|text| (1..=19).contains(&text.len()))
                .filter(|text| text.iter().all(u8::is_ascii_digit))
                .and_then(|text| std::str::from_utf8(text).ok());
            digits.and_then(|text| text.parse().ok()).map(Framing::Length).ok_or(BadHead::Framing)
        }
    }
}

/// Headers that are meant for the proxy, or that it writes itself.
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers that `Connection` must not take away.
const KEPT: [&str; 4] = ["authorization", "content-length", "host", "transfer-encoding"];

fn forwarded(headers: &[Header]) -> Result<impl Iterator<Item = &Header>, BadHead> {
    let named: Vec<&[u8]> = tokens(headers, "connection").collect();
    if named.iter().any(|token| KEPT.iter().any(|kept| is(token, kept))) {
        return Err(BadHead::Connection);
    }
    Ok(headers.iter().filter(move |header| {
        let name = header.name.as_bytes();
        !HOP_BY_HOP.iter().any(|hop| is(name, hop))
            && !named.iter().any(|token| token.eq_ignore_ascii_case(name))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Head, BadHead> {
        Head::parse(text.as_bytes()).map(|head| head.expect("whole"))
    }

    fn with(lines: &str) -> Result<Head, BadHead> {
        parse(&format!("POST http://a/ HTTP/1.1\r\nHost: a\r\n{lines}\r\n"))
    }

    #[test]
    fn what_two_programs_read_differently_is_refused() {
        use BadHead::{Control, FirstLine, Folded, Framing, Header};
        for (lines, why) in [
            ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Framing),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", Framing),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", Framing),
            ("Content-Length: 5, 5\r\n", Framing),
            ("Content-Length: +5\r\n", Framing),
            ("Content-Length: 0x5\r\n", Framing),
            ("Content-Length: \r\n", Framing),
            ("Content-Length: 99999999999999999999\r\n", Framing),
            ("Transfer-Encoding: gzip, chunked\r\n", Framing),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Framing),
            ("Transfer-Encoding: xchunked\r\n", Framing),
            ("Transfer-Encoding: \"chunked\"\r\n", Framing),
            ("Transfer-Encoding:\x0bchunked\r\n", Control),
            ("Transfer-Encoding : chunked\r\n", Header),
            ("Transfer_Encoding: chunked\r\n", Header),
            ("CONTENT_LENGTH: 5\r\n", Header),
            ("Content_Encoding: gzip\r\n", Header),
            (" Transfer-Encoding: chunked\r\n", Folded),
            ("X: a\r\n b\r\n", Folded),
            ("X: a\nY: b\r\n", Control),
            ("X: a\rY: b\r\n", Control),
            ("X: a\0\r\n", Control),
            (": a\r\n", Header),
            ("X y: a\r\n", Header),
            ("no colon\r\n", Header),
        ] {
            assert_eq!(with(lines), Err(why), "{lines:?}");
        }
        for text in [
            "GET  http://a/ HTTP/1.1\r\n\r\n",
            "GET http://a/  HTTP/1.1\r\n\r\n",
            "GET http://a/ HTTP/2.0\r\n\r\n",
            "GET http://a/\r\n\r\n",
            "GET http://a/ x HTTP/1.1\r\n\r\n",
            "GET http://\u{e4}/ HTTP/1.1\r\n\r\n",
            "\r\nGET http://a/ HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
        ] {
            assert_eq!(parse(text), Err(FirstLine), "{text:?}");
        }
        let old = "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(parse(old), Err(Framing));
    }

    #[test]
    fn size_is_bounded() {
        let many: String = (0..101).map(|at| format!("X{at}: y\r\n")).collect();
        assert_eq!(with(&many), Err(BadHead::TooLarge));
        let long = format!("X: {}\r\n", "y".repeat(MAX_HEAD));
        assert_eq!(with(&long), Err(BadHead::TooLarge));
        let begun = vec![b'a'; MAX_HEAD];
        assert_eq!(Head::parse(&begun), Err(BadHead::TooLarge));
        assert_eq!(Head::parse(b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r"), Ok(None));
    }

    #[test]
    fn what_is_meant_for_the_proxy_stays_here() {
        let head = with(
            "Connection: close, X-Own\r\nProxy-Authorization: Basic eA==\r\nTE: trailers\r\n\
             X-Own: 1\r\nUpgrade: h2c\r\nAccept: */*\r\nContent-Length: 3\r\n",
        )
        .unwrap();
        let names: Vec<&str> = head.forwarded().unwrap().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["Accept", "Content-Length"]);
        assert_eq!(head.framing, Framing::Length(3));
        assert!(!head.keeps_alive() && !head.upgrades());
        let head = with("Connection: content-length\r\nContent-Length: 3\r\n").unwrap();
        assert_eq!(head.forwarded().err(), Some(BadHead::Connection));
    }
}
