//! As much HTTP/1.1 as a witness and its clients need, over blocking sockets with deadlines.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::parse_decimal;

/// The most bytes of a request line or status line with its headers.
pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The most headers read.
pub(super) const MAX_HEADERS: usize = 64;

/// The most bytes of an answer's body.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

const DEFAULT_PORT: u16 = 80;
const MAX_URL_BYTES: usize = 1024;
const READ_BYTES: usize = 4 * 1024;

/// An `http` address: where to connect, and the path everything asked for begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpUrl {
    authority: String,
    host: String,
    port: u16,
    prefix: String,
}

impl HttpUrl {
    /// Reads `http://host[:port][/prefix]`.
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
        let known = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#?%@".contains(&byte);
        if url.len() > MAX_URL_BYTES || !url.bytes().all(known) {
            return Err("has characters that are not accepted; give `http://host:port/prefix`");
        }
        if url.starts_with("https://") {
            return Err("needs TLS; give an http address, or tunnel it: the signatures protect it");
        }
        let rest = url.strip_prefix("http://").ok_or("must begin with `http://`")?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let (host, port) = split_authority(authority)
            .ok_or("has no usable host and port; give `http://host:port/prefix`")?;
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(Self { authority: authority.to_owned(), host: host.to_owned(), port, prefix })
    }

    /// A whole request to a path below the prefix.
    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<u8> {
        let Self { authority, prefix, .. } = self;
        let mut head = format!("{method} {prefix}{path} HTTP/1.1\r\nHost: {authority}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = body.len();
        head.push_str(&format!("Content-Length: {length}\r\nConnection: close\r\n\r\n"));
        [head.as_bytes(), body].concat()
    }

    /// Connects within the deadline.
    fn connect(&self, until: Instant) -> Result<TcpStream, HttpError> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in resolve(&self.host, self.port, until)? {
            match TcpStream::connect_timeout(&address, remaining(until)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }
}

fn split_authority(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        (host, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
    } else {
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        (host, port)
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) {
        return None;
    }
    let port = if port.is_empty() { DEFAULT_PORT } else { port.parse().ok()? };
    (port != 0).then_some((host, port))
}

/// The addresses of a host. The system's resolver knows no deadline, so it runs on its own thread.
fn resolve(host: &str, port: u16, until: Instant) -> Result<Vec<SocketAddr>, HttpError> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let host = host.to_owned();
    thread::Builder::new().spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Vec::from_iter);
        let _ = sender.send(found);
    })?;
    let found = receiver.recv_timeout(remaining(until)?).map_err(|_| timed_out())?;
    Ok(found?)
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(super) enum HttpError {
    /// The connection failed, broke or took too long.
    #[error(transparent)]
    Connection(#[from] io::Error),
    /// What came is not HTTP as far as we speak it.
    #[error("it does not answer as a witness would: {0}")]
    Malformed(&'static str),
}

/// What came back.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Sends a request and reads the answer, all within `deadline`.
pub(super) fn exchange(
    url: &HttpUrl,
    request: &[u8],
    deadline: Duration,
) -> Result<HttpAnswer, HttpError> {
    let until = Instant::now() + deadline;
    let mut stream = DeadlineStream::new(url.connect(until)?, until, deadline);
    // Who refuses a request early may close before all of it is sent; the answer says why.
    let sent = stream.write_all(request);
    read_answer(&mut stream).map_err(|error| match sent {
        Err(error) => error.into(),
        Ok(()) => error,
    })
}

fn read_answer(stream: &mut impl Read) -> Result<HttpAnswer, HttpError> {
    let (mut received, head_length) = read_head(stream).map_err(|error| match error {
        HeadError::TooLarge => HttpError::Malformed("its headers are too large"),
        HeadError::Connection(error) => error.into(),
    })?;
    let rest = received.split_off(head_length);
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(&received) {
        Ok(httparse::Status::Complete(_)) => {}
        _ => return Err(HttpError::Malformed("its headers are malformed")),
    }
    let status = response.code.unwrap_or_default();
    let content_type = single_header(response.headers, "content-type").ok().flatten();
    let content_type = content_type.and_then(|value| str::from_utf8(value).ok());
    let mut body = Body { received: rest, stream };
    let framing = |_| HttpError::Malformed("its length is not clear");
    let body = match single_header(response.headers, "transfer-encoding").map_err(framing)? {
        Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => body.chunked()?,
        Some(_) => return Err(HttpError::Malformed("its transfer coding is not known")),
        None => match content_length(response.headers).map_err(framing)? {
            Some(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                body.exactly(length)?
            }
            None => body.until_closed()?,
        },
    };
    Ok(HttpAnswer { status, content_type: content_type.map(str::to_owned), body })
}

/// The rest of an answer: what was read with the head, then what is still to come.
struct Body<'a, R> {
    received: Vec<u8>,
    stream: &'a mut R,
}

impl<R: Read> Body<'_, R> {
    const TOO_LARGE: HttpError = HttpError::Malformed("its answer is too large");

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, HttpError> {
        if length > MAX_ANSWER_BYTES {
            return Err(Self::TOO_LARGE);
        }
        while self.received.len() < length {
            if self.read_more()? == 0 {
                return Err(HttpError::Malformed("its answer is cut off"));
            }
        }
        let rest = self.received.split_off(length);
        Ok(std::mem::replace(&mut self.received, rest))
    }

    fn until_closed(&mut self) -> Result<Vec<u8>, HttpError> {
        while self.read_more()? != 0 {
            if self.received.len() > MAX_ANSWER_BYTES {
                return Err(Self::TOO_LARGE);
            }
        }
        Ok(std::mem::take(&mut self.received))
    }

    fn chunked(&mut self) -> Result<Vec<u8>, HttpError> {
        let malformed = HttpError::Malformed("its chunks are malformed");
        let mut body = Vec::new();
        loop {
            let size = loop {
                match httparse::parse_chunk_size(&self.received) {
                    Ok(httparse::Status::Complete((begin, size))) => {
                        self.received.drain(..begin);
                        break size;
                    }
                    // A size line is short; one that does not end is an attack.
                    Ok(httparse::Status::Partial) if self.received.len() < 256 => {
                        if self.read_more()? == 0 {
                            return Err(malformed);
                        }
                    }
                    _ => return Err(malformed),
                }
            };
            if size == 0 {
                return Ok(body);
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > MAX_ANSWER_BYTES - body.len() {
                return Err(Self::TOO_LARGE);
            }
            body.extend(self.exactly(size)?);
            if self.exactly(2)? != b"\r\n" {
                return Err(malformed);
            }
        }
    }

    fn read_more(&mut self) -> Result<usize, HttpError> {
        let mut buffer = [0; READ_BYTES];
        let count = self.stream.read(&mut buffer)?;
        self.received.extend_from_slice(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Why no head could be read.
#[derive(Debug)]
pub(super) enum HeadError {
    TooLarge,
    Connection(io::Error),
}

/// Reads until the empty line that ends the headers: all bytes read, and the length of the head.
pub(super) fn read_head(stream: &mut impl Read) -> Result<(Vec<u8>, usize), HeadError> {
    const END: &[u8] = b"\r\n\r\n";
    let mut received = Vec::new();
    let mut buffer = [0; READ_BYTES];
    loop {
        let count = stream.read(&mut buffer).map_err(HeadError::Connection)?;
        if count == 0 {
            return Err(HeadError::Connection(io::ErrorKind::UnexpectedEof.into()));
        }
        let searched = received.len().saturating_sub(END.len() - 1);
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let unsearched = received.get(searched..).unwrap_or_default();
        let end = memchr::memmem::find(unsearched, END).map(|begin| searched + begin + END.len());
        match end {
            Some(end) if end <= MAX_HEAD_BYTES => return Ok((received, end)),
            None if received.len() <= MAX_HEAD_BYTES => {}
            _ => return Err(HeadError::TooLarge),
        }
    }
}

/// A header given twice.
#[derive(Debug)]
pub(super) struct Repeated;

/// The value of a header that may stand once.
pub(super) fn single_header<'a>(
    headers: &[httparse::Header<'a>],
    name: &str,
) -> Result<Option<&'a [u8]>, Repeated> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let first = values.next().map(|header| header.value);
    if values.next().is_some() { Err(Repeated) } else { Ok(first) }
}

/// The stated length of a body; anything but one plain decimal is refused.
pub(super) fn content_length(headers: &[httparse::Header<'_>]) -> Result<Option<u64>, Repeated> {
    let Some(value) = single_header(headers, "content-length")? else { return Ok(None) };
    let length = str::from_utf8(value).ok().and_then(parse_decimal);
    length.map(Some).ok_or(Repeated)
}

/// A socket whose reads and writes all end at one deadline, however slowly the other side drips.
#[derive(Debug)]
pub(super) struct DeadlineStream {
    stream: TcpStream,
    until: Instant,
    step: Duration,
}

impl DeadlineStream {
    /// No single read or write takes longer than `step`, and none goes on after `until`.
    pub(super) fn new(stream: TcpStream, until: Instant, step: Duration) -> Self {
        Self { stream, until, step }
    }

    /// Lets the other side read what was sent before the connection closes: closing over unread
    /// bytes would reset it.
    pub(super) fn close(mut self, patience: Duration, most: usize) {
        self.until = self.until.min(Instant::now() + patience);
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let mut buffer = [0; READ_BYTES];
        let mut drained = 0;
        while drained < most {
            match self.read(&mut buffer) {
                Ok(count @ 1..) => drained += count,
                _ => return,
            }
        }
    }

    fn step(&self) -> io::Result<Option<Duration>> {
        Ok(Some(remaining(self.until)?.min(self.step)))
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.step()?)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.step()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The time left, which is never zero.
fn remaining(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(timed_out()) } else { Ok(left) }
}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it took too long")
}

/// Writes a text so that it can stand as a value in a query.
pub(super) fn percent_encode(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    text.bytes()
        .map(|byte| match byte {
            _ if is_plain(&byte) => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Reads what [`percent_encode`] writes, with digits of either case.
pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        decoded.push(match byte {
            b'%' => u8::try_from(digit(bytes.next())? * 16 + digit(bytes.next())?).ok()?,
            _ => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_strictly() {
        let parse = |url| HttpUrl::parse(url).map(|url| (url.host, url.port, url.prefix));
        let good = [
            ("http://a.example", ("a.example", 80, "")),
            ("http://a.example/", ("a.example", 80, "")),
            ("http://127.0.0.1:8080/w/1/", ("127.0.0.1", 8080, "/w/1")),
            ("http://[::1]:81", ("::1", 81, "")),
            ("http://[::1]", ("::1", 80, "")),
        ];
        for (url, (host, port, prefix)) in good {
            assert_eq!(parse(url), Ok((host.to_owned(), port, prefix.to_owned())), "{url}");
        }
        let bad = [
            "",
            "https://a",
            "ftp://a",
            "http://",
            "http:///a",
            "http://:80",
            "http://a:0",
            "http://a:65536",
            "http://a:b",
            "http://[::1",
            "http://[::1]80",
            "http://user@a",
            "http://a/?b",
            "http://a/#b",
            "http://a/b c",
            "http://a/b\r\nX: y",
            "http://é",
        ];
        for url in bad {
            assert!(parse(url).is_err(), "{url}");
        }
    }

    fn answer(text: &str) -> Result<(u16, String), String> {
        let read = read_answer(&mut text.as_bytes()).map_err(|error| error.to_string())?;
        Ok((read.status, String::from_utf8(read.body).unwrap()))
    }

    #[test]
    fn answers_are_read_in_every_framing() {
        let length = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcdef";
        assert_eq!(answer(length), Ok((200, "abc".to_owned())));
        assert_eq!(answer("HTTP/1.0 409 X\r\n\r\nabc"), Ok((409, "abc".to_owned())));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n";
        assert_eq!(answer(chunked), Ok((200, "abc".to_owned())));
    }

    #[test]
    fn hostile_answers_end_in_errors() {
        let large = "x".repeat(MAX_ANSWER_BYTES + 1);
        let bad = [
            String::new(),
            "HTTP/1.1 200 OK\r\n".to_owned(),
            "SSH-2.0-x\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 03\r\n\r\nabc".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nabc".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nabc".to_owned(),
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\nabc".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2".to_owned(),
            format!("HTTP/1.1 200 OK\r\n\r\n{large}"),
            format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES)),
            format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(MAX_HEADERS + 1)),
        ];
        for text in bad {
            assert!(answer(&text).is_err(), "{:?}", text.get(..80).unwrap_or(&text));
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), framed in any::<bool>()) {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice();
            let bytes = if framed { [head, &bytes].concat() } else { bytes };
            let _ = read_answer(&mut bytes.as_slice());
        }

        #[test]
        fn queries_round_trip(text in any::<String>()) {
            let encoded = percent_encode(&text);
            prop_assert!(encoded.is_ascii());
            prop_assert_eq!(percent_decode(&encoded), Some(text));
        }

        #[test]
        fn any_query_is_survived(text in any::<String>()) {
            let _ = percent_decode(&text);
        }
    }
}
