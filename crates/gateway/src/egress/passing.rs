//! Bodies looked through for secrets while they go by, those that are compressed too.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, Write as _};

use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::decider::Denial;
use super::head::{Head, values};
use super::rooms::{Room, Rooms};
use super::screen::secret_in;

/// A secret that is written in as many bytes is found wherever it stands.
const WHOLE: usize = 64 << 10;
/// Bytes that are held back until more has come, so that nothing is sent in two halves: such a secret, and what of the
/// line before it has to be there for its digits to be read.
const HELD: usize = WHOLE + (1 << 10);
/// The same for bytes that are compressed: what they become is held back by itself.
const HELD_PACKED: usize = 4 << 10;
/// Bytes that are taken at a time.
const PIECE: usize = 16 << 10;
/// Bytes that are looked at in a moment.
const QUICK: usize = 32 << 10;
/// Compressed bytes that are unpacked at a time: they become half a MiB at most.
const SLICE: usize = 512;
/// Bytes that may come out of a compressed body before others have their turn.
const TURN: u64 = 1 << 20;
/// Compressed bytes that may wait for what they become.
const WAITING: usize = 512 << 10;
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
    room: Option<Room>,
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
            last: false,
            packed: VecDeque::new(),
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

    /// Whether it is looked at in a moment: little that is not compressed.
    pub(super) fn is_quick(&self, piece: &[u8]) -> bool {
        self.packed.is_none() && self.held.len() + piece.len() <= QUICK
    }

    /// Takes a piece, and gives back what may be sent. Of a body that is compressed nothing may before it is unpacked.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<Vec<u8>, Denial> {
        let mut out = Vec::new();
        let keep = if self.packed.is_some() { HELD_PACKED } else { HELD };
        for piece in piece.chunks(PIECE) {
            self.held.extend_from_slice(piece);
            // What is held back need not be looked at again for each byte that comes.
            if self.held.len() >= 3 * keep {
                self.begun = true;
                secret_in(&self.held).map_or(Ok(()), Err)?;
                self.release(self.held.len() - keep, &mut out);
            }
        }
        // What is in the beginning is to be known before anything is sent.
        if !self.begun {
            self.begun = true;
            secret_in(&self.held).map_or(Ok(()), Err)?;
        }
        Ok(out)
    }

    /// The end of the body.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, Denial> {
        let mut out = Vec::new();
        secret_in(&self.held).map_or(Ok(()), Err)?;
        self.release(self.held.len(), &mut out);
        if let Some(packed) = &mut self.packed {
            packed.last = true;
        }
        Ok(out)
    }

    /// Unpacks some of what was taken, and gives back what may be sent; nothing when all is unpacked.
    pub(super) fn unpack(&mut self) -> Result<Option<Vec<u8>>, Denial> {
        match &mut self.packed {
            Some(packed) if packed.last || !packed.packed.is_empty() => packed.turn().map(Some),
            _ => Ok(None),
        }
    }

    /// The beginning of what was compressed, if anything was.
    pub(super) fn unpacked(&mut self) -> Option<Vec<u8>> {
        self.packed.as_mut()?.shown.take()
    }

    /// Has what is held back take its place among that of all bodies.
    pub(super) fn weigh(&mut self, rooms: &Rooms) -> Result<(), Denial> {
        let bytes = self.weight();
        self.room.get_or_insert_with(|| rooms.room()).take(bytes)
    }

    /// Bytes of memory that it holds, about.
    pub(super) fn weight(&self) -> usize {
        let packed = self.packed.as_ref().map_or(0, |packed| {
            let waiting = packed.waiting.len() + packed.marks.len() * size_of::<(usize, u64)>();
            packed.packed.len() + waiting + packed.plain.weight()
        });
        self.held.len() + packed
    }

    fn release(&mut self, free: usize, out: &mut Vec<u8>) {
        let free = self.held.drain(..free);
        match &mut self.packed {
            None => out.extend(free),
            Some(packed) => packed.packed.extend(free),
        }
    }
}

/// A compressed body: bytes wait until what they become was looked at.
struct Packed {
    /// Until the end.
    decoder: Option<Decoder>,
    fed: bool,
    /// Whether nothing more comes.
    last: bool,
    /// Bytes that are to be unpacked.
    packed: VecDeque<u8>,
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
    /// Unpacks as much as there is, or as becomes enough for one turn.
    fn turn(&mut self) -> Result<Vec<u8>, Denial> {
        let (mut out, before) = (Vec::new(), self.all);
        while !self.packed.is_empty() {
            if self.all - before >= TURN {
                return Ok(out);
            }
            let length = self.packed.len().min(SLICE);
            let slice: Vec<u8> = self.packed.drain(..length).collect();
            self.feed(&slice, &mut out)?;
        }
        if std::mem::take(&mut self.last) {
            self.finish(&mut out)?;
        }
        Ok(out)
    }

    fn feed(&mut self, slice: &[u8], out: &mut Vec<u8>) -> Result<(), Denial> {
        self.fed = true;
        let decoder = self.decoder.as_mut().ok_or_else(other)?;
        let plain = decoder.feed(slice).map_err(|_| other())?;
        self.look(&plain)?;
        self.waiting.extend(slice);
        self.marks.push_back((slice.len(), self.all));
        while let Some((length, _)) = self.marks.pop_front_if(|(_, end)| *end <= self.free) {
            out.extend(self.waiting.drain(..length));
        }
        if self.waiting.len() > WAITING { Err(other()) } else { Ok(()) }
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
