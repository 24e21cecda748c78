//! As much of HTTP/1.1 as agents need: one request on a connection, bounded, then it is closed.

use std::io::{self, Read, Write};

use serde_json::Value;

const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// Agents send their whole conversation and all tools: some hundred KiB.
const MAX_BODY: usize = 32 * 1024 * 1024;

/// What was asked.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The target without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// What is sent back.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A document with its status.
    Json(u16, Value),
    /// Server-sent events.
    Events(Vec<Event>),
    /// One document a line.
    Lines(Vec<Value>),
}

/// One server-sent event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    /// An event that is named by its member `type`.
    pub(crate) fn typed(data: &Value) -> Self {
        let name = data["type"].as_str().map(str::to_owned);
        Self { name, data: data.to_string() }
    }

    pub(crate) fn plain(data: impl ToString) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

/// A status and why the request was refused.
pub(crate) type Refused = (u16, &'static str);

struct Head {
    method: String,
    target: String,
    length: usize,
    chunked: bool,
    expects: bool,
}

/// Reads one request; the inner error is the peer's fault and is answered.
pub(crate) fn read(stream: &mut (impl Read + Write)) -> io::Result<Result<Request, Refused>> {
    let mut bytes = Vec::new();
    let (head, at) = loop {
        match parse_head(&bytes) {
            Ok(Some(found)) => break found,
            Ok(None) if bytes.len() > MAX_HEAD => return Ok(Err((431, "the head is too long"))),
            Ok(None) => fill(stream, &mut bytes)?,
            Err(refused) => return Ok(Err(refused)),
        }
    };
    if head.expects {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut rest = bytes.split_off(at);
    let body = if head.chunked {
        match read_chunks(stream, &mut rest)? {
            Ok(body) => body,
            Err(refused) => return Ok(Err(refused)),
        }
    } else {
        if head.length > MAX_BODY {
            return Ok(Err((413, "the body is too long")));
        }
        while rest.len() < head.length {
            fill(stream, &mut rest)?;
        }
        rest.truncate(head.length);
        rest
    };
    Ok(Ok(Request { method: head.method, target: head.target, body }))
}

fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Refused> {
    const MALFORMED: Refused = (400, "the head is malformed");
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let at = match request.parse(bytes) {
        Ok(httparse::Status::Complete(at)) => at,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(MALFORMED),
    };
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Err(MALFORMED);
    };
    let mut head = Head {
        method: method.to_owned(),
        target: target.to_owned(),
        length: 0,
        chunked: false,
        expects: false,
    };
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = value.parse().map_err(|_| MALFORMED)?,
            "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
            "expect" => head.expects = true,
            "content-encoding" if !value.eq_ignore_ascii_case("identity") => {
                return Err((415, "compressed bodies are not read here"));
            }
            _ => {}
        }
    }
    Ok(Some((head, at)))
}

fn read_chunks(
    stream: &mut impl Read,
    bytes: &mut Vec<u8>,
) -> io::Result<Result<Vec<u8>, Refused>> {
    const MALFORMED: Refused = (400, "the chunks are malformed");
    let mut body = Vec::new();
    loop {
        let (at, size) = match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((at, size))) => (at, size),
            Ok(httparse::Status::Partial) if bytes.len() > 4096 => return Ok(Err(MALFORMED)),
            Ok(httparse::Status::Partial) => {
                fill(stream, bytes)?;
                continue;
            }
            Err(_) => return Ok(Err(MALFORMED)),
        };
        // What follows the last chunk is left unread: the connection ends with the answer.
        let size = match usize::try_from(size) {
            Ok(0) => return Ok(Ok(body)),
            Ok(size) if size <= MAX_BODY.saturating_sub(body.len()) => size,
            _ => return Ok(Err((413, "the body is too long"))),
        };
        while bytes.len() < at + size + 2 {
            fill(stream, bytes)?;
        }
        body.extend_from_slice(&bytes[at..at + size]);
        bytes.drain(..at + size + 2);
    }
}

fn fill(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 16 * 1024];
    match stream.read(&mut piece)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            bytes.extend_from_slice(&piece[..count]);
            Ok(())
        }
    }
}

/// Sends an answer and says that the connection ends with it.
pub(crate) fn write(stream: &mut impl Write, head_only: bool, answer: &Answer) -> io::Result<()> {
    let (status, kind, body) = match answer {
        Answer::Json(status, value) => (*status, "application/json", value.to_string()),
        Answer::Events(events) => {
            (200, "text/event-stream", events.iter().map(event_text).collect())
        }
        Answer::Lines(lines) => {
            (200, "application/x-ndjson", lines.iter().map(|line| format!("{line}\n")).collect())
        }
    };
    let reason = if status == 200 { "OK" } else { "Refused" };
    write!(
        stream,
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         cache-control: no-cache\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    if !head_only {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

fn event_text(event: &Event) -> String {
    match &event.name {
        Some(name) => format!("event: {name}\ndata: {}\n\n", event.data),
        None => format!("data: {}\n\n", event.data),
    }
}
