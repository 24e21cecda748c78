//! What is said on the daemon's socket: a length (u32, little-endian), then a JSON object
//! `{"v":…,"id":…,"op":…,"body":…}`, in both directions.
//!
//! A question names an operation. Its answer has the same `id` and the operation `answer`, or
//! `refusal` with a [`Refusal`] as its body. Whatever cannot be read is refused and the connection
//! closed; a length alone costs no memory.

mod client;
mod timed;

use std::fmt;
use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use client::address;
pub use client::{Answer, Asked, Client, Door, WireError, answer_to, question};
pub(crate) use timed::Timed;

/// Longest frame, its length not counted.
pub const MAX_FRAME_BYTES: usize = 8 << 20;
/// Longest name of an operation.
pub const MAX_OP_BYTES: usize = 64;
/// The versions that this program speaks.
pub const PROTOCOL: Versions = Versions { from: 1, to: 1 };
/// The version of this program.
pub const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The operation of a frame that answers.
const ANSWER: &str = "answer";
/// The operation of a frame that refuses.
const REFUSAL: &str = "refusal";
/// Bytes that are set aside before any have come.
const FIRST_BYTES: usize = 16 << 10;

/// A range of protocol versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The oldest.
    pub from: u32,
    /// The newest.
    pub to: u32,
}

impl Versions {
    /// Whether a version is among them.
    #[must_use]
    pub fn contains(self, version: u64) -> bool {
        (u64::from(self.from)..=u64::from(self.to)).contains(&version)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            return write!(formatter, "{}", self.from);
        }
        write!(formatter, "{} to {}", self.from, self.to)
    }
}

/// Why something was refused, in a word that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// It is no frame.
    Malformed,
    /// It is longer than a frame may be.
    TooLong,
    /// It did not come in time.
    TooSlow,
    /// The version is not spoken here.
    Version,
    /// The operation is not known.
    UnknownOp,
    /// The one who asks may not ask this.
    Forbidden,
    /// There is too much to do.
    Busy,
    /// What is asked cannot be done.
    Refused,
    /// Something went wrong inside; whoever asked for leave does not have it.
    Failed,
    /// A word of a later program.
    #[serde(other)]
    Other,
}

/// A refusal, with what the other side speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why, in a word.
    pub code: Code,
    /// Why, in a sentence that says what to do next.
    pub message: String,
    /// The versions spoken.
    pub protocol: Versions,
    /// The version of the program.
    pub program: String,
}

impl Refusal {
    /// A refusal of this program.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), protocol: PROTOCOL, program: PROGRAM.to_owned() }
    }
}

/// One message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Version of the protocol.
    pub v: u32,
    /// Number of the question, chosen by the one who asks.
    pub id: u64,
    /// The operation.
    pub op: String,
    /// What belongs to it: JSON that nobody has looked into yet.
    pub body: Box<RawValue>,
}

/// Why bytes are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadFrame {
    /// Another version of the protocol.
    #[error("version {version} of the protocol is not spoken here, only {PROTOCOL}")]
    Version {
        /// The version.
        version: u64,
        /// Number of the question, as far as it can be told.
        id: u64,
    },
    /// Not the object that a frame is.
    #[error("not a frame: {0}")]
    Malformed(String),
}

impl Frame {
    /// A question or an answer in the newest version.
    ///
    /// # Errors
    /// When the body cannot be written as JSON.
    pub fn new(id: u64, op: &str, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        let body = serde_json::value::to_raw_value(body)?;
        Ok(Self { v: PROTOCOL.to, id, op: op.to_owned(), body })
    }

    /// An answer.
    #[must_use]
    pub fn answer(id: u64, body: Box<RawValue>) -> Self {
        Self { v: PROTOCOL.to, id, op: ANSWER.to_owned(), body }
    }

    /// A refusal.
    #[must_use]
    pub fn refusal(id: u64, refusal: &Refusal) -> Self {
        let body = serde_json::value::to_raw_value(refusal).unwrap_or_default();
        Self { v: PROTOCOL.to, id, op: REFUSAL.to_owned(), body }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// When it is none, or one of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadFrame> {
        match serde_json::from_slice::<Self>(bytes) {
            Ok(frame) if !PROTOCOL.contains(frame.v.into()) => {
                Err(BadFrame::Version { version: frame.v.into(), id: frame.id })
            }
            Ok(frame) if !is_op(&frame.op) => {
                Err(BadFrame::Malformed("the operation is no name".to_owned()))
            }
            Ok(frame) => Ok(frame),
            Err(error) => Err(Self::unread(bytes, &error)),
        }
    }

    /// Why bytes were not read: a later version may have other members.
    fn unread(bytes: &[u8], error: &serde_json::Error) -> BadFrame {
        #[derive(Deserialize)]
        struct Probe {
            v: u64,
            #[serde(default)]
            id: u64,
        }
        match serde_json::from_slice::<Probe>(bytes) {
            Ok(probe) if !PROTOCOL.contains(probe.v) => {
                BadFrame::Version { version: probe.v, id: probe.id }
            }
            _ => BadFrame::Malformed(wardkeep_evidence::check::printable(&error.to_string())),
        }
    }

    /// The frame with its length.
    ///
    /// # Errors
    /// When it is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrameError> {
        let mut bytes = vec![0; 4];
        serde_json::to_writer(&mut bytes, self).map_err(io::Error::from)?;
        let size = bytes.len() - 4;
        let length = u32::try_from(size).ok().filter(|_| size <= MAX_FRAME_BYTES);
        let Some(length) = length else { return Err(FrameError::TooLong { size: size as u64 }) };
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    /// What the body says.
    ///
    /// # Errors
    /// When it says something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.body.get())
    }
}

/// Whether a text can name an operation.
fn is_op(text: &str) -> bool {
    (1..=MAX_OP_BYTES).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
}

/// Why no frame could be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The other side closed the connection between two frames.
    #[error("the connection was closed")]
    Closed,
    /// It closed the connection inside of a frame.
    #[error("the connection was closed inside of a frame")]
    Truncated,
    /// The frame has no bytes.
    #[error("a frame without content")]
    Empty,
    /// The frame is too long.
    #[error("a frame of {size} bytes, over the limit of {MAX_FRAME_BYTES}")]
    TooLong {
        /// Its length.
        size: u64,
    },
    /// It did not come in time.
    #[error("the frame did not come in time")]
    TooSlow,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

impl FrameError {
    fn of(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TooSlow,
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Reads the length of the next frame.
///
/// # Errors
/// When the connection ends or fails, or the length is none that a frame can have.
pub fn read_length(reader: &mut impl Read) -> Result<usize, FrameError> {
    let mut length = [0; 4];
    let mut read = 0;
    while read < length.len() {
        match reader.read(&mut length[read..]) {
            Ok(0) if read == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(FrameError::Truncated),
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::of(error)),
        }
    }
    let length = u32::from_le_bytes(length);
    match usize::try_from(length) {
        Ok(0) => Err(FrameError::Empty),
        Ok(size) if size <= MAX_FRAME_BYTES => Ok(size),
        _ => Err(FrameError::TooLong { size: length.into() }),
    }
}

/// Reads the bytes of a frame; memory grows with what has come, not with what was announced.
///
/// # Errors
/// When the connection ends or fails before all have come.
pub fn read_body(reader: &mut impl Read, length: usize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = Vec::with_capacity(length.min(FIRST_BYTES));
    reader.take(length as u64).read_to_end(&mut bytes).map_err(FrameError::of)?;
    if bytes.len() < length { Err(FrameError::Truncated) } else { Ok(bytes) }
}

/// Reads the bytes of the next frame.
///
/// # Errors
/// As [`read_length`] and [`read_body`].
pub fn read_frame(reader: &mut impl Read) -> Result<Vec<u8>, FrameError> {
    let length = read_length(reader)?;
    read_body(reader, length)
}

/// Writes a frame.
///
/// # Errors
/// When it is too long, or the connection fails.
pub fn write_frame(writer: &mut impl Write, frame: &Frame) -> Result<(), FrameError> {
    writer.write_all(&frame.to_bytes()?).map_err(FrameError::of)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands out a byte at a time and remembers the largest buffer it was given.
    struct Dripping<'a> {
        bytes: &'a [u8],
        largest: usize,
    }

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.largest = self.largest.max(buffer.len());
            let Some((first, rest)) = self.bytes.split_first() else { return Ok(0) };
            self.bytes = rest;
            buffer[0] = *first;
            Ok(1)
        }
    }

    #[test]
    fn a_length_alone_takes_no_memory() {
        for announced in [1u32, 1000, 8 << 20] {
            let mut sent = announced.to_le_bytes().to_vec();
            sent.extend([b' '; 3].iter().take(announced as usize - 1));
            let mut reader = Dripping { bytes: &sent, largest: 0 };
            assert!(matches!(read_frame(&mut reader), Err(FrameError::Truncated)));
            assert!(reader.largest <= FIRST_BYTES, "{announced}: {}", reader.largest);
        }
        for announced in [(8 << 20) + 1, u32::MAX] {
            let sent = announced.to_le_bytes();
            let error = read_frame(&mut &sent[..]).unwrap_err();
            assert!(matches!(error, FrameError::TooLong { size } if size == u64::from(announced)));
        }
        assert!(matches!(read_frame(&mut &[0u8; 4][..]), Err(FrameError::Empty)));
        assert!(matches!(read_frame(&mut &[][..]), Err(FrameError::Closed)));
        assert!(matches!(read_frame(&mut &[1u8, 0][..]), Err(FrameError::Truncated)));
    }

    #[test]
    fn what_is_no_frame_is_told_apart_from_a_later_one() {
        let version = |text: &str| match Frame::parse(text.as_bytes()) {
            Err(BadFrame::Version { version, id }) => Some((version, id)),
            Err(BadFrame::Malformed(_)) => None,
            Ok(frame) => panic!("{frame:?}"),
        };
        assert_eq!(version(r#"{"v":2,"id":7,"op":"ping","body":null}"#), Some((2, 7)));
        assert_eq!(version(r#"{"v":9,"id":7,"what":{"else":[]}}"#), Some((9, 7)));
        assert_eq!(version(r#"{"v":0}"#), Some((0, 0)));
        for text in [
            "",
            "[]",
            "null",
            r#"{"v":1}"#,
            r#"{"v":1,"id":1,"op":"ping","body":null,"more":1}"#,
            r#"{"v":1,"v":1,"id":1,"op":"ping","body":null}"#,
            r#"{"v":1,"id":-1,"op":"ping","body":null}"#,
            r#"{"v":1,"id":1,"op":"","body":null}"#,
            r#"{"v":1,"id":1,"op":"Ping","body":null}"#,
            r#"{"v":1,"id":1,"op":"a b","body":null}"#,
            r#"{"v":1,"id":1,"op":"ping","body":}"#,
            r#"{"v":1,"id":1,"op":"ping","body":null} x"#,
            "\u{feff}{}",
        ] {
            assert_eq!(version(text), None, "{text}");
        }
        let long = format!(r#"{{"v":1,"id":1,"op":"{}","body":1}}"#, "a".repeat(65));
        assert_eq!(version(&long), None);
    }

    #[test]
    fn nesting_without_end_is_no_danger() {
        let deep = format!(r#"{{"v":1,"id":1,"op":"ping","body":{}}}"#, "[".repeat(4 << 20));
        assert!(Frame::parse(deep.as_bytes()).is_err());
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        let text = format!(r#"{{"v":1,"id":1,"op":"ping","body":{deep}}}"#);
        let frame = Frame::parse(text.as_bytes()).unwrap();
        assert!(frame.read::<serde_json::Value>().is_err(), "too deep to be looked into");
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_written() {
        let frame = Frame::new(1, "ping", &"x".repeat(MAX_FRAME_BYTES)).unwrap();
        assert!(matches!(frame.to_bytes(), Err(FrameError::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            id in any::<u64>(),
            op in "[a-z0-9._-]{1,64}",
            text in any::<String>(),
            numbers in proptest::collection::vec(any::<i64>(), 0..50),
        ) {
            let body = serde_json::json!({ "text": text, "numbers": numbers });
            let frame = Frame::new(id, &op, &body).unwrap();
            let mut sent = frame.to_bytes().unwrap();
            sent.extend_from_slice(&sent.clone());
            let mut reader = &sent[..];
            for _ in 0..2 {
                let read = Frame::parse(&read_frame(&mut reader).unwrap()).unwrap();
                prop_assert_eq!((read.v, read.id, &read.op), (1, id, &op));
                prop_assert_eq!(&read.read::<serde_json::Value>().unwrap(), &body);
            }
            prop_assert!(matches!(read_frame(&mut reader), Err(FrameError::Closed)));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut reader = &bytes[..];
            while let Ok(frame) = read_frame(&mut reader) {
                prop_assert!(frame.len() <= bytes.len());
                let _ = Frame::parse(&frame);
            }
            let _ = Frame::parse(&bytes);
        }
    }
}
