//! Bodies, followed to their end.

use thiserror::Error;

use super::head::Framing;

/// Why bytes are no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the chunks of the body cannot be read in one way only")]
pub struct BadBody;

/// A body that is being followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// So many bytes are to come.
    Length(u64),
    /// Everything until the connection ends.
    Endless,
    /// The digits of a size.
    Size {
        size: u64,
        digits: u8,
    },
    /// The line feed behind a size.
    SizeEnd {
        size: u64,
    },
    /// Bytes of a chunk.
    Data {
        left: u64,
    },
    /// The end of a chunk's line; how much of it was seen.
    DataEnd {
        seen: u8,
    },
    /// The empty line behind the last chunk: how much of it was seen, and bytes of trailers before.
    LastEnd {
        seen: u8,
        all: u32,
    },
    /// A trailer line: the bytes of all until now, and whether its end began.
    Trailer {
        all: u32,
        cr: bool,
    },
    Done,
}

/// Most bytes of all trailers of an answer.
const MAX_TRAILERS: u32 = 8 << 10;

/// How far a body was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Bytes that belong to it.
    pub used: usize,
    /// Whether that was its end.
    pub done: bool,
}

impl Body {
    /// The body of a request.
    #[must_use]
    pub fn of_request(framing: Framing) -> Self {
        Self(match framing {
            Framing::Absent | Framing::Length(0) => State::Done,
            Framing::Length(left) => State::Length(left),
            Framing::Chunked => State::Size { size: 0, digits: 0 },
        })
    }

    /// The body of an answer with `status` to `method`.
    #[must_use]
    pub fn of_answer(framing: Framing, status: u16, method: &str) -> Self {
        if method == "HEAD" || status < 200 || matches!(status, 204 | 304) {
            return Self(State::Done);
        }
        match framing {
            Framing::Absent => Self(State::Endless),
            framing => Self::of_request(framing),
        }
    }

    /// Whether it has come to its end.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// Whether only the end of the connection ends it.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.0 == State::Endless
    }

    /// Follows the body through `bytes`, and hands out what it holds. Trailers are taken only where
    /// they are an answer's.
    ///
    /// # Errors
    /// When the chunks are no chunks.
    pub fn walk(
        &mut self,
        bytes: &[u8],
        trailers: bool,
        mut data: impl FnMut(&[u8]),
    ) -> Result<Walked, BadBody> {
        let mut at = 0;
        while at < bytes.len() && self.0 != State::Done {
            let rest = &bytes[at..];
            match &mut self.0 {
                State::Endless => {
                    data(rest);
                    at = bytes.len();
                }
                State::Length(left) | State::Data { left } => {
                    let taken = usize::try_from(*left).map_or(rest.len(), |l| l.min(rest.len()));
                    data(&rest[..taken]);
                    at += taken;
                    *left -= taken as u64;
                    if *left == 0 {
                        self.0 = match self.0 {
                            State::Length(_) => State::Done,
                            _ => State::DataEnd { seen: 0 },
                        };
                    }
                }
                _ => {
                    self.0 = self.0.step(rest[0], trailers)?;
                    at += 1;
                }
            }
        }
        Ok(Walked { used: at, done: self.0 == State::Done })
    }
}

impl State {
    fn step(&self, byte: u8, trailers: bool) -> Result<Self, BadBody> {
        Ok(match (self, byte) {
            (Self::Size { size, digits }, _) if byte.is_ascii_hexdigit() && *digits < 15 => {
                let digit = char::from(byte).to_digit(16).ok_or(BadBody)?;
                Self::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { size, digits: 1.. }, b'\r') => Self::SizeEnd { size: *size },
            (Self::SizeEnd { size: 0 }, b'\n') => Self::LastEnd { seen: 0, all: 0 },
            (Self::SizeEnd { size }, b'\n') => Self::Data { left: *size },
            (Self::DataEnd { seen: 0 }, b'\r') => Self::DataEnd { seen: 1 },
            (Self::DataEnd { seen: 1 }, b'\n') => Self::Size { size: 0, digits: 0 },
            (Self::LastEnd { seen: 0, all }, b'\r') => Self::LastEnd { seen: 1, all: *all },
            (Self::LastEnd { seen: 1, .. }, b'\n') => Self::Done,
            (Self::LastEnd { seen: 0, all }, b'!'..=b'~') if trailers => {
                Self::Trailer { all: all + 1, cr: false }
            }
            (Self::Trailer { all, cr: false }, b'\r') => Self::Trailer { all: *all, cr: true },
            (Self::Trailer { cr: true, all }, b'\n') => Self::LastEnd { seen: 0, all: *all },
            (Self::Trailer { all, cr: false }, b'\t' | b' '..=b'~' | 0x80..)
                if *all < MAX_TRAILERS =>
            {
                Self::Trailer { all: all + 1, cr: false }
            }
            _ => return Err(BadBody),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(
        framing: Framing,
        bytes: &[u8],
        trailers: bool,
    ) -> Result<(Vec<u8>, Walked), BadBody> {
        let mut held = Vec::new();
        let mut body = Body::of_request(framing);
        let walked = body.walk(bytes, trailers, |piece| held.extend_from_slice(piece))?;
        Ok((held, walked))
    }

    #[test]
    fn a_body_ends_where_it_says() {
        let whole = |held: &[u8], used| Ok((held.to_vec(), Walked { used, done: true }));
        assert_eq!(walked(Framing::Length(3), b"abcd", false), whole(b"abc", 3));
        let chunks = b"3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\nGET ";
        assert_eq!(walked(Framing::Chunked, chunks, false), whole(b"abc0123456789", 29));
        let trailers = b"1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n";
        assert_eq!(walked(Framing::Chunked, trailers, true), whole(b"a", trailers.len()));
        assert_eq!(walked(Framing::Chunked, trailers, false), Err(BadBody));
    }

    #[test]
    fn chunks_that_can_be_read_in_two_ways_are_refused() {
        for bytes in [
            &b"3\nabc"[..],
            b"3;x=y\r\nabc",
            b" 3\r\nabc",
            b"3 \r\nabc",
            b"0x3\r\nabc",
            b"-3\r\nabc",
            b"\r\nabc",
            b"3\r\nabcX\r\n",
            b"3\r\nabc\n0\r\n\r\n",
            b"0\r\nX",
            b"0\r\n\n",
            b"fffffffffffffffff\r\n",
            b"0000000000000003\r\nabc",
        ] {
            assert_eq!(walked(Framing::Chunked, bytes, false), Err(BadBody), "{bytes:?}");
        }
        let mut endless = b"0\r\nX: ".to_vec();
        endless.extend([b'y'; 9000]);
        assert_eq!(walked(Framing::Chunked, &endless, true), Err(BadBody));
    }
}
