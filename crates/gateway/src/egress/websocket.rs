//! What a client sends over a WebSocket, looked through for secrets message by message.

use std::collections::VecDeque;

use tokio::time::timeout;

use super::budget::{Limits, Meter};
use super::decider::{Denial, Ended};
use super::passing::Passing;
use super::rooms::Room;
use super::screen::secret_in;
use super::stream::Stream;
use super::tunnel::{Cut, Motion};

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// Bytes of frames that may wait for the rest of a message.
const WAITING: usize = 2 << 20;

/// Carries a WebSocket to its end; `first` is what the client has sent already.
pub(super) async fn carry(
    client: &Stream,
    host: &Stream,
    meter: &mut Meter,
    motion: &Motion,
    limits: &Limits,
    mut room: Room,
    first: &[u8],
) -> Ended {
    let up = async {
        let (mut frames, mut piece) = (Frames::default(), first.to_vec());
        loop {
            let out = frames.take(&piece)?;
            room.take(frames.weight())?;
            meter.charge(out.len())?;
            host.write_counted(&out, |count| motion.sent(count)).await?;
            // Looking takes time, and others are served by the same thread.
            tokio::task::yield_now().await;
            piece.clear();
            if !client.read_onto(&mut piece, PIECE).await? {
                host.close_writing();
                return Ok::<_, Cut>(());
            }
        }
    };
    let down = async {
        let mut piece = Vec::new();
        while host.read_onto(&mut piece, PIECE).await? {
            client.write_all(&piece).await?;
            motion.received(piece.len());
            piece.clear();
        }
        client.close_writing();
        Ok::<_, Cut>(())
    };
    let still = motion.stands_still(limits);
    tokio::pin!(up, down, still);
    let ended = tokio::select! {
        done = &mut up => match done {
            Ok(()) => timeout(limits.half_closed, &mut down).await,
            cut => Ok(cut),
        },
        done = &mut down => match done {
            Ok(()) => timeout(limits.half_closed, &mut up).await,
            cut => Ok(cut),
        },
        cut = &mut still => Ok(Err(cut)),
    };
    match ended {
        Ok(Ok(())) => Ended::Done,
        Ok(Err(cut)) => cut.into(),
        Err(_) => {
            Ended::Cut(Denial::new("egress-idle", "one side was done, and the other was not"))
        }
    }
}

/// Frames of a client, followed as they come.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The beginning of a frame, until all of it is there.
    begun: Vec<u8>,
    /// The frame that is going by.
    frame: Option<Frame>,
    /// Whether a message has begun and not ended.
    inside: bool,
    message: Passing,
    /// What a frame for the connection itself says.
    control: Vec<u8>,
    /// Bytes of such a frame that wait for its end.
    whole: usize,
    /// Bytes that wait, and of them: so many, and the end of what they say.
    waiting: VecDeque<u8>,
    marks: VecDeque<(usize, u64)>,
    /// What messages say, as far as it may be sent, and in all.
    free: u64,
    all: u64,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    left: u64,
    mask: [u8; 4],
    /// How far the mask has gone.
    turn: usize,
    last: bool,
    control: bool,
}

/// Most that a frame for the connection itself may say.
const CONTROL: u64 = 125;

impl Frames {
    /// Takes bytes, and gives back what may be sent.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, Denial> {
        while !bytes.is_empty() {
            match self.frame {
                None => {
                    let (first, rest) = bytes.split_at(1);
                    bytes = rest;
                    self.begun.extend_from_slice(first);
                    if let Some(frame) = read(&self.begun)? {
                        self.begin(frame)?;
                    }
                }
                Some(frame) => {
                    let taken = usize::try_from(frame.left).unwrap_or(usize::MAX).min(bytes.len());
                    let (piece, rest) = bytes.split_at(taken);
                    bytes = rest;
                    self.payload(piece, frame)?;
                }
            }
        }
        let mut out = Vec::new();
        while let Some((length, _)) = self.marks.pop_front_if(|(_, end)| *end <= self.free) {
            out.extend(self.waiting.drain(..length));
        }
        if self.waiting.len() > WAITING {
            return Err(malformed());
        }
        Ok(out)
    }

    /// Bytes of memory that it holds, about.
    fn weight(&self) -> usize {
        let marks = self.marks.len() * size_of::<(usize, u64)>();
        self.waiting.len() + marks + self.message.weight()
    }

    fn begin(&mut self, frame: Frame) -> Result<(), Denial> {
        // A message goes on, or another begins where none is.
        let goes_on = self.begun[0] & 0x0f == 0;
        if !frame.control && goes_on != self.inside {
            return Err(malformed());
        }
        self.inside |= !frame.control;
        let begun = std::mem::take(&mut self.begun);
        self.wait(&begun, frame);
        self.frame = Some(frame);
        if frame.left == 0 { self.end(frame) } else { Ok(()) }
    }

    fn payload(&mut self, piece: &[u8], frame: Frame) -> Result<(), Denial> {
        let mask = frame.mask.iter().cycle().skip(frame.turn);
        let plain: Vec<u8> = piece.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
        if frame.control {
            self.control.extend_from_slice(&plain);
        } else {
            self.all += plain.len() as u64;
            self.free += self.message.take(&plain)?.len() as u64;
        }
        self.wait(piece, frame);
        let turn = (frame.turn + piece.len()) % 4;
        let frame = Frame { left: frame.left - piece.len() as u64, turn, ..frame };
        self.frame = Some(frame);
        if frame.left == 0 { self.end(frame) } else { Ok(()) }
    }

    /// Bytes go on behind those before them: a frame for the connection itself when it is whole, the others when
    /// what they say may.
    fn wait(&mut self, bytes: &[u8], frame: Frame) {
        self.waiting.extend(bytes);
        if frame.control {
            self.whole += bytes.len();
        } else {
            self.marks.push_back((bytes.len(), self.all));
        }
    }

    fn end(&mut self, frame: Frame) -> Result<(), Denial> {
        self.frame = None;
        if frame.control {
            let said = std::mem::take(&mut self.control);
            self.marks.push_back((std::mem::take(&mut self.whole), self.all));
            return secret_in(&said).map_or(Ok(()), Err);
        }
        if frame.last {
            self.message.finish()?;
            self.message = Passing::default();
            self.inside = false;
            self.free = self.all;
        }
        Ok(())
    }
}

/// Reads the beginning of a frame; `None` if more bytes are needed.
fn read(bytes: &[u8]) -> Result<Option<Frame>, Denial> {
    let &[first, second, ref rest @ ..] = bytes else { return Ok(None) };
    // Compression and other extensions are not offered to the host; a client masks what it sends.
    let (kind, control) = (first & 0x0f, first & 0x08 != 0);
    if first & 0x70 != 0 || second & 0x80 == 0 || !matches!(kind, 0..=2 | 8..=10) {
        return Err(malformed());
    }
    let (left, mask) = match (second & 0x7f, rest) {
        (126, &[a, b, ref mask @ ..]) => (u64::from(u16::from_be_bytes([a, b])), mask),
        (127, &[a, b, c, d, e, f, g, h, ref mask @ ..]) => {
            (u64::from_be_bytes([a, b, c, d, e, f, g, h]), mask)
        }
        (126 | 127, _) => return Ok(None),
        (length, mask) => (u64::from(length), mask),
    };
    let last = first & 0x80 != 0;
    if control && (!last || left > CONTROL) {
        return Err(malformed());
    }
    let Ok(mask) = <[u8; 4]>::try_from(mask) else { return Ok(None) };
    Ok(Some(Frame { left, mask, turn: 0, last, control }))
}

fn malformed() -> Denial {
    Denial::new("egress-malformed", "the frames of the WebSocket cannot be read in one way only")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(first: u8, text: &[u8]) -> Vec<u8> {
        let mask = [0x5a, 0xa5, 0x3c, 0xc3];
        let mut out = vec![first];
        match u16::try_from(text.len()) {
            Ok(length @ ..126) => out.push(0x80 | length.to_be_bytes()[1]),
            Ok(length) => {
                out.push(0x80 | 126);
                out.extend(length.to_be_bytes());
            }
            Err(_) => {
                out.push(0x80 | 127);
                out.extend((text.len() as u64).to_be_bytes());
            }
        }
        out.extend(mask);
        out.extend(text.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        out
    }

    fn token() -> Vec<u8> {
        ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat().into_bytes()
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let long = b"words and ".repeat(20_000);
        let all = [
            frame(0x81, b"hello"),
            frame(0x82, &long),
            frame(0x01, b"a message "),
            frame(0x89, b"ping"),
            frame(0x00, &long[..300]),
            frame(0x80, b""),
            frame(0x88, b"\x03\xe8"),
        ]
        .concat();
        for size in [1, 7, 1000, all.len()] {
            let mut frames = Frames::default();
            let out: Vec<u8> =
                all.chunks(size).flat_map(|piece| frames.take(piece).unwrap()).collect();
            assert!(out == all, "{size}");
        }
        // A message is not held longer than until its end.
        let mut frames = Frames::default();
        assert_eq!(frames.take(&frame(0x81, b"hello")).unwrap(), frame(0x81, b"hello"));
    }

    #[test]
    fn secrets_are_found_in_messages_of_any_form() {
        let token = token();
        let bytes: Vec<Vec<u8>> = token
            .iter()
            .enumerate()
            .map(|(at, byte)| {
                let first = match at {
                    0 => 0x01,
                    at if at + 1 == token.len() => 0x80,
                    _ => 0x00,
                };
                frame(first, &[*byte])
            })
            .collect();
        for all in [
            frame(0x81, &token),
            frame(0x82, &[b"some words ", &token[..]].concat()),
            frame(0x89, &token),
            frame(0x82, &[&b"x ".repeat(50_000), &token[..]].concat()),
            bytes.concat(),
        ] {
            for size in [1, 13, all.len()] {
                let mut frames = Frames::default();
                let mut sent = Vec::new();
                let found = all.chunks(size).find_map(|piece| match frames.take(piece) {
                    Ok(out) => {
                        sent.extend(out);
                        None
                    }
                    Err(denial) => Some(denial),
                });
                assert_eq!(found.unwrap().rule, "egress-secret");
                // At most the beginnings of frames, and words before it.
                assert!(sent.len() + token.len() <= all.len(), "{size}");
            }
        }
    }

    #[test]
    fn what_is_no_frame_of_a_client_is_refused() {
        for bytes in [
            &b"\x81\x05hello"[..],
            b"\xc1\x80",
            b"\x83\x80",
            b"\x09\x80",
            b"\x89\xfe\x00\x80\0\0\0\0",
            b"\x80\x80\0\0\0\0",
            b"GET / HTTP/1.1\r\n\r\n",
        ] {
            let refused = Frames::default().take(bytes).unwrap_err();
            assert_eq!(refused.rule, "egress-malformed", "{bytes:?}");
        }
        let mut frames = Frames::default();
        frames.take(&frame(0x01, b"begun")).unwrap();
        assert!(frames.take(&frame(0x81, b"another")).is_err());
        // Nothing waits without end.
        let mut frames = Frames::default();
        frames.take(&frame(0x01, b"begun")).unwrap();
        let refused = (0..100_000).find_map(|_| frames.take(&frame(0x89, &[b'a'; 100])).err());
        assert_eq!(refused.unwrap().rule, "egress-malformed");
    }

    proptest! {
        #[test]
        fn nothing_but_what_came_goes_on(
            messages in prop::collection::vec((prop::sample::select(&[0x81_u8, 0x82, 0x01, 0x00, 0x80, 0x89][..]), prop::collection::vec(any::<u8>(), 0..300)), 0..8),
            noise in prop::collection::vec(any::<u8>(), 0..20),
            size in 1..100_usize,
        ) {
            let mut all: Vec<u8> = messages.iter().flat_map(|(first, text)| frame(*first, &text[..text.len().min(if *first == 0x89 { 125 } else { 300 })])).collect();
            all.extend(noise);
            let (mut frames, mut sent) = (Frames::default(), Vec::new());
            for piece in all.chunks(size) {
                match frames.take(piece) {
                    Ok(out) => sent.extend(out),
                    Err(_) => break,
                }
            }
            prop_assert!(all.starts_with(&sent));
        }
    }
}
