//! Bodies looked through for secrets while they go by, those that are compressed too.

use std::collections::VecDeque;
use std::io::{self, Write as _};

use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::decider::Denial;
use super::head::{Head, values};
use super::screen::secret_in;

/// Bytes that are held back until more has come, so that nothing is sent in two halves.
const HELD: usize = 4 << 10;
/// Bytes that are looked at a time.
const PIECE: usize = 16 << 10;
/// Compressed bytes that are unpacked at a time: they become half a MiB at most.
const SLICE: usize = 512;
/// Compressed bytes that may wait for what they become.
const WAITING: usize = 1 << 20;
/// Bytes of what was compressed that are kept for the decider.
const SHOWN: usize = 64 << 10;
/// What may come out of a compressed body, for each byte that may be sent.
const GROWTH: u64 = 4;

/// Looks through a body that goes by in pieces.
#[derive(Debug, Default)]
pub(super) struct Passing {
    held: Vec<u8>,
    begun: bool,
    packed: Option<Box<Packed>>,
}

impl Passing {
    /// For the body of a request of which `upload` bytes may be sent.
    pub(super) fn of(head: &Head, upload: u64) -> Result<Self, Denial> {
        let mut codings = values(&head.headers, "content-encoding")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|word| word.trim_ascii().to_ascii_lowercase())
            .filter(|word| !word.is_empty() && word != b"identity");
        let decoder = match (codings.next().as_deref(), codings.next()) {
            (None, _) => return Ok(Self::default()),
            (Some(b"gzip" | b"x-gzip"), None) => Decoder::Gzip(MultiGzDecoder::new(Vec::new())),
            (Some(b"deflate"), None) => Decoder::Zlib(ZlibDecoder::new(Vec::new())),
            _ => {
                let reason = "the body is compressed in a way that cannot be looked into; send it as it is, or by gzip";
                return Err(Denial::new("egress-encoding", reason));
            }
        };
        let packed = Packed {
            decoder: Some(decoder),
            fed: false,
            plain: Self::default(),
            waiting: VecDeque::new(),
            marks: VecDeque::new(),
            free: 0,
            all: 0,
            most: upload.saturating_mul(GROWTH),
            shown: Some(Vec::new()),
        };
        Ok(Self { packed: Some(Box::new(packed)), ..Self::default() })
    }

    /// Takes a piece, and gives back what may be sent.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<Vec<u8>, Denial> {
        let mut out = Vec::new();
        for piece in piece.chunks(PIECE) {
            self.held.extend_from_slice(piece);
            // What is held back need not be looked at again for each byte that comes.
            if self.begun && self.held.len() < 2 * HELD {
                continue;
            }
            self.begun = true;
            secret_in(&self.held).map_or(Ok(()), Err)?;
            let free = self.held.len().saturating_sub(HELD);
            self.release(free, &mut out)?;
        }
        Ok(out)
    }

    /// The end of the body.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, Denial> {
        let mut out = Vec::new();
        secret_in(&self.held).map_or(Ok(()), Err)?;
        self.release(self.held.len(), &mut out)?;
        if let Some(packed) = &mut self.packed {
            packed.finish(&mut out)?;
        }
        Ok(out)
    }

    /// The beginning of what was compressed, if anything was.
    pub(super) fn unpacked(&mut self) -> Option<Vec<u8>> {
        self.packed.as_mut()?.shown.take()
    }

    fn release(&mut self, free: usize, out: &mut Vec<u8>) -> Result<(), Denial> {
        let free = self.held.drain(..free);
        match &mut self.packed {
            None => out.extend(free),
            Some(packed) => packed.take(free.as_slice(), out)?,
        }
        Ok(())
    }
}

/// A compressed body: bytes wait until what they become was looked at.
struct Packed {
    /// Until the end.
    decoder: Option<Decoder>,
    fed: bool,
    plain: Passing,
    waiting: VecDeque<u8>,
    /// Of the waiting bytes: so many, and the end of what they become.
    marks: VecDeque<(usize, u64)>,
    /// What they become, as far as it may be sent, and in all.
    free: u64,
    all: u64,
    most: u64,
    shown: Option<Vec<u8>>,
}

enum Decoder {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
}

impl Decoder {
    fn feed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Zlib(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(decoder) => decoder.finish(),
            Self::Zlib(decoder) => decoder.finish(),
        }
    }
}

impl Packed {
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Denial> {
        for slice in bytes.chunks(SLICE) {
            self.fed = true;
            let decoder = self.decoder.as_mut().ok_or_else(other)?;
            let plain = decoder.feed(slice).map_err(|_| other())?;
            self.look(&plain)?;
            self.waiting.extend(slice);
            self.marks.push_back((slice.len(), self.all));
            while let Some((length, _)) = self.marks.pop_front_if(|(_, end)| *end <= self.free) {
                out.extend(self.waiting.drain(..length));
            }
            if self.waiting.len() > WAITING {
                return Err(other());
            }
        }
        Ok(())
    }

    fn look(&mut self, plain: &[u8]) -> Result<(), Denial> {
        self.all += plain.len() as u64;
        if self.all > self.most {
            let reason = "what the body is compressed from is longer than may be looked at";
            return Err(Denial::new("egress-encoding", reason));
        }
        if let Some(shown) = &mut self.shown {
            shown.extend_from_slice(&plain[..plain.len().min(SHOWN - shown.len())]);
        }
        for piece in plain.chunks(PIECE) {
            self.free += self.plain.take(piece)?.len() as u64;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Denial> {
        // A body without a byte is not compressed.
        if let Some(decoder) = self.decoder.take()
            && self.fed
        {
            let rest = decoder.finish().map_err(|_| other())?;
            self.look(&rest)?;
        }
        self.plain.finish()?;
        out.extend(self.waiting.drain(..));
        Ok(())
    }
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Packed").field("all", &self.all).finish_non_exhaustive()
    }
}

fn other() -> Denial {
    Denial::new("egress-encoding", "the body is not compressed as its `Content-Encoding` says")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_two_pieces_is_found_before_it_is_sent() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\
                   AAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACDmZ3Vlc3NlZG5vYm9keXdvdWxkYmVsaWV2ZQ\n\
                   -----END OPENSSH PRIVATE KEY-----\n";
        assert!(secret_in(key.as_bytes()).is_some());
        for cut in 1..key.len() {
            let mut passing = Passing::default();
            let mut sent = passing.take(&[b'x'; 10_000]).unwrap();
            let whole = passing.take(&key.as_bytes()[..cut]).and_then(|more| {
                sent.extend(more);
                sent.extend(passing.take(&key.as_bytes()[cut..])?);
                passing.finish()
            });
            assert!(whole.is_err(), "{cut}");
            assert!(sent.iter().all(|byte| *byte == b'x'), "{cut}");
        }
    }
}
