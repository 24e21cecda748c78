//! Server-sent events and lines, cut out of a stream at any boundary; their bytes are kept.

use super::json::BadJson;

/// One event, with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// As it came, the empty line at its end included.
    pub(crate) raw: Vec<u8>,
    /// Its data, lines joined.
    pub(crate) data: String,
    /// Its name.
    pub(crate) name: Option<String>,
}

impl Event {
    /// The same event with other data, which has no line ends.
    pub(crate) fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len() + 64);
        if let Some(name) = &self.name {
            out.extend_from_slice(format!("event: {name}\n").as_bytes());
        }
        out.extend_from_slice(b"data: ");
        // JSON that came in several lines may be one.
        out.extend(
            data.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }),
        );
        out.extend_from_slice(b"\n\n");
        out
    }
}

/// How a stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One document a line.
    Lines,
}

/// Why a stream is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStream {
    /// One event is too long.
    #[error("an event of the reply is longer than {0} bytes")]
    TooLong(usize),
    /// An event is no text.
    #[error("an event of the reply is not UTF-8")]
    Encoding,
    /// Its data is not what it must be.
    #[error("an event of the reply cannot be read: {0}")]
    Json(#[from] BadJson),
    /// A line is none that a stream of events has: somebody else might read it otherwise.
    #[error("the reply holds a line that is no part of a stream of events")]
    Line,
    /// A tool call comes in a form that cannot be put together.
    #[error("the reply holds a tool call in parts of a form that is not known")]
    Parts,
    /// A tool call is too long, or there are too many parts at once.
    #[error("the reply holds a tool call or a number of parts that is too large to be judged")]
    TooMuch,
}

/// What some clients take for the end of a line, although it is none.
const OTHER_ENDS: [char; 8] =
    ['\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Cuts a stream.
#[derive(Debug)]
pub(crate) struct Splitter {
    framing: Framing,
    most: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given out.
    done: usize,
    /// Searched up to here.
    searched: usize,
}

impl Splitter {
    pub(crate) fn new(framing: Framing, most: usize) -> Self {
        Self { framing, most, buffer: Vec::new(), done: 0, searched: 0 }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.done > 0 {
            self.buffer.drain(..self.done);
            self.searched -= self.done.min(self.searched);
            self.done = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, BadStream> {
        let from = self.searched.max(self.done);
        let end = match self.framing {
            Framing::Lines => {
                self.buffer[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at + 1)
            }
            Framing::Events => self.blank_line(),
        };
        let Some(end) = end else {
            // A mark of two signs may be cut in half.
            self.searched = self.buffer.len().saturating_sub(3).max(self.done);
            if self.buffer.len() - self.done > self.most {
                return Err(BadStream::TooLong(self.most));
            }
            if self.done == self.buffer.len() && self.buffer.capacity() > 64 << 10 {
                (self.buffer, self.done, self.searched) = (Vec::new(), 0, 0);
            }
            return Ok(None);
        };
        if end - self.done > self.most {
            return Err(BadStream::TooLong(self.most));
        }
        let raw = self.buffer[self.done..end].to_vec();
        (self.done, self.searched) = (end, end);
        event(self.framing, raw).map(Some)
    }

    /// What is left when the stream has ended.
    pub(crate) fn rest(&mut self) -> Result<Option<Event>, BadStream> {
        let raw = self.buffer.split_off(self.done.min(self.buffer.len()));
        (self.buffer, self.done, self.searched) = (Vec::new(), 0, 0);
        if raw.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        event(self.framing, raw).map(Some)
    }

    /// The end of the first empty line.
    fn blank_line(&self) -> Option<usize> {
        let bytes = &self.buffer;
        let mut at = self.searched.max(self.done);
        // What was searched may have ended with the first of two line ends.
        at = at.saturating_sub(3).max(self.done);
        loop {
            let step = bytes[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
            let first = at + step;
            let after = line_end(bytes, first)?;
            if let Some(b'\n' | b'\r') = bytes.get(after) {
                return line_end(bytes, after);
            }
            if after >= bytes.len() {
                return None;
            }
            at = after;
        }
    }
}

/// The place behind a line end; nothing while it may go on.
fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    match (bytes.get(at)?, bytes.get(at + 1)) {
        (b'\r', Some(b'\n')) => Some(at + 2),
        // The other half may come with the next bytes.
        (b'\r', None) => None,
        _ => Some(at + 1),
    }
}

fn event(framing: Framing, raw: Vec<u8>) -> Result<Event, BadStream> {
    let text = std::str::from_utf8(&raw).map_err(|_| BadStream::Encoding)?;
    if framing == Framing::Lines {
        let data = text.trim().to_owned();
        return Ok(Event { data, name: None, raw });
    }
    let (mut data, mut name): (Option<String>, Option<String>) = (None, None);
    let lines = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in lines.split(['\n', '\r']) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        if field != "data" && line.contains(OTHER_ENDS) {
            return Err(BadStream::Line);
        }
        match field {
            "data" => match &mut data {
                None => data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            },
            "event" => name = Some(value.to_owned()),
            // A comment, what clients keep for themselves, the end.
            "" if line.starts_with(':') || line.is_empty() => {}
            "id" | "retry" => {}
            _ => return Err(BadStream::Line),
        }
    }
    Ok(Event { data: data.unwrap_or_default(), name, raw })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tried(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<Event>, BadStream> {
        let mut splitter = Splitter::new(framing, 1 << 20);
        let mut events = Vec::new();
        for piece in pieces {
            splitter.feed(piece);
            while let Some(event) = splitter.next()? {
                events.push(event);
            }
        }
        events.extend(splitter.rest()?);
        Ok(events)
    }

    fn all(framing: Framing, pieces: &[&[u8]]) -> Vec<Event> {
        tried(framing, pieces).unwrap()
    }

    const STREAM: &str = "event: a\r\ndata: {\"x\":\r\ndata: \"é\u{1f600}\"}\r\n\r\n: note\n\ndata: 2\n\nevent: end\rdata: 3\r\rdata: [DONE]";

    #[test]
    fn every_cut_gives_the_same_events() {
        let whole = all(Framing::Events, &[STREAM.as_bytes()]);
        assert_eq!(whole.len(), 5);
        assert_eq!(whole[0].data, "{\"x\":\n\"é\u{1f600}\"}");
        assert_eq!(whole[3].name.as_deref(), Some("end"));
        assert_eq!(
            whole.iter().flat_map(|one| one.raw.clone()).collect::<Vec<_>>(),
            STREAM.as_bytes()
        );
        for cut in 0..=STREAM.len() {
            let (one, two) = STREAM.as_bytes().split_at(cut);
            assert_eq!(all(Framing::Events, &[one, two]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(all(Framing::Events, &bytes), whole);
    }

    #[test]
    fn lines_that_are_no_part_of_an_event_are_refused() {
        for text in [
            "{}",
            " data: {}",
            "Data: {}",
            "data : {}",
            "data: 1\n{}",
            ": a\n{}",
            ": \u{2028}data: {}",
            "x",
        ] {
            for end in ["", "\n\n"] {
                let text = format!("data: 0\n\n{text}{end}");
                let refused = tried(Framing::Events, &[text.as_bytes()]);
                assert_eq!(refused, Err(BadStream::Line), "{text:?}");
            }
        }
    }

    #[test]
    fn endless_events_are_refused() {
        let mut splitter = Splitter::new(Framing::Events, 1000);
        splitter.feed(b"data: ");
        let mut fed = 0;
        let ended = loop {
            splitter.feed(&[b'a'; 100]);
            fed += 100;
            if let Err(error) = splitter.next() {
                break error;
            }
            assert!(fed < 2000);
        };
        assert_eq!(ended, BadStream::TooLong(1000));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(pieces in proptest::collection::vec("(id|data|:|\n|\r| ){0,6}", 0..20), lines in any::<bool>()) {
            let framing = if lines { Framing::Lines } else { Framing::Events };
            let parts: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            let Ok(events) = tried(framing, &parts) else { return Ok(()) };
            let raw: Vec<u8> = events.into_iter().flat_map(|event| event.raw).collect();
            let whole = parts.concat();
            prop_assert!(whole.starts_with(&raw));
            prop_assert!(whole[raw.len()..].iter().all(u8::is_ascii_whitespace));
        }
    }
}
