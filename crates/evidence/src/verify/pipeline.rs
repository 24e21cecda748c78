//! Lines of a stream, worked on in parallel and handed back in order.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError, mpsc};

/// Longest line that is read.
pub const MAX_LINE_BYTES: usize = 16 << 20;

const CHUNK_BYTES: usize = 1 << 18;

/// Whole lines of a stream.
#[derive(Debug)]
pub struct Chunk {
    /// Number of the first line, from 1.
    pub first_line: u64,
    /// The lines, each ended by a newline but perhaps the last of the stream.
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// Line number and line, without the newline.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let body = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        // INVARIANT: a chunk is never empty, so that "one newline" is one empty line.
        (self.first_line..).zip(Split { rest: Some(body) })
    }
}

struct Split<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match memchr::memchr(b'\n', rest) {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Some(&rest[..at])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// How a stream ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// Lines that were read.
    pub lines: u64,
    /// The last line has no newline.
    pub unterminated: bool,
    /// Number of a line that is over the limit; nothing from there on was read.
    pub too_long: Option<u64>,
}

/// Cuts a stream into chunks of whole lines.
struct Chunker<'r> {
    reader: &'r mut dyn Read,
    carry: Vec<u8>,
    ending: Ending,
    finished: bool,
}

impl Chunker<'_> {
    fn next(&mut self) -> io::Result<Option<Chunk>> {
        if self.finished {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.carry);
        let mut searched = 0;
        let first_line = self.ending.lines + 1;
        loop {
            let target = bytes.len().max(CHUNK_BYTES / 2) + CHUNK_BYTES / 2;
            let count = read_up_to(self.reader, &mut bytes, target)?;
            if count == 0 {
                self.finished = true;
                break;
            }
            if let Some(at) = memchr::memrchr(b'\n', &bytes[searched..]) {
                self.carry.extend_from_slice(&bytes[searched + at + 1..]);
                bytes.truncate(searched + at + 1);
                break;
            }
            searched = bytes.len();
            if bytes.len() > MAX_LINE_BYTES {
                self.ending.too_long = Some(first_line);
                self.finished = true;
                return Ok(None);
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let newlines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        self.ending.unterminated = !bytes.ends_with(b"\n");
        self.ending.lines += newlines + u64::from(self.ending.unterminated);
        Ok(Some(Chunk { first_line, bytes }))
    }
}

fn read_up_to(reader: &mut dyn Read, bytes: &mut Vec<u8>, target: usize) -> io::Result<usize> {
    let before = bytes.len();
    reader.take((target - before) as u64).read_to_end(bytes)?;
    Ok(bytes.len() - before)
}

/// Runs `work` on every chunk of `reader` with up to `threads` threads and hands the results to
/// `consume` in the order of the stream. Memory is bounded by a few chunks a thread.
///
/// # Errors
/// When the stream cannot be read.
pub fn each_chunk<T: Send>(
    reader: &mut dyn Read,
    threads: usize,
    work: impl Fn(Chunk) -> T + Sync,
    mut consume: impl FnMut(T),
) -> io::Result<Ending> {
    let mut chunks =
        Chunker { reader, carry: Vec::new(), ending: Ending::default(), finished: false };
    let Some(first) = chunks.next()? else { return Ok(chunks.ending) };
    if threads <= 1 || chunks.finished {
        consume(work(first));
        while let Some(chunk) = chunks.next()? {
            consume(work(chunk));
        }
        return Ok(chunks.ending);
    }
    let (job_sender, job_receiver) = mpsc::channel::<(u64, Chunk)>();
    let jobs = Mutex::new(job_receiver);
    let (jobs, work) = (&jobs, &work);
    std::thread::scope(|scope| {
        // Moved in, so that it is dropped on every way out and the workers end.
        let job_sender = job_sender;
        let (result_sender, result_receiver) = mpsc::channel();
        for _ in 0..threads {
            let results = result_sender.clone();
            scope.spawn(move || {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, chunk)) = job else { break };
                    if results.send((number, work(chunk))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(result_sender);
        let mut early = BTreeMap::new();
        let (mut sent, mut consumed) = (0u64, 0u64);
        let mut next = Some(first);
        while next.is_some() || consumed < sent {
            if let Some(chunk) = next.take_if(|_| sent - consumed < 2 * threads as u64) {
                if job_sender.send((sent, chunk)).is_err() {
                    break;
                }
                sent += 1;
                next = chunks.next()?;
                continue;
            }
            let Ok((number, result)) = result_receiver.recv() else { break };
            early.insert(number, result);
            while let Some(result) = early.remove(&consumed) {
                consume(result);
                consumed += 1;
            }
        }
        drop(job_sender);
        if consumed < sent {
            return Err(io::Error::other("a worker stopped early"));
        }
        Ok(chunks.ending)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(input: &[u8], threads: usize) -> (Vec<(u64, Vec<u8>)>, Ending) {
        let mut lines = Vec::new();
        let ending = each_chunk(
            &mut &input[..],
            threads,
            |chunk| chunk.lines().map(|(n, line)| (n, line.to_vec())).collect::<Vec<_>>(),
            |mut part| lines.append(&mut part),
        )
        .unwrap();
        (lines, ending)
    }

    #[test]
    fn lines_come_in_order_whatever_the_threads() {
        let input: Vec<u8> =
            (0..300_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let (one, ending) = lines_of(&input, 1);
        assert_eq!(ending, Ending { lines: 300_000, unterminated: false, too_long: None });
        assert_eq!(one.last().unwrap(), &(300_000, b"line 299999".to_vec()));
        assert_eq!(lines_of(&input, 4).0, one);
    }

    #[test]
    fn empty_and_unterminated_lines() {
        assert_eq!(lines_of(b"", 2).0, []);
        assert_eq!(lines_of(b"\n", 2).0, [(1, vec![])]);
        let (lines, ending) = lines_of(b"a\n\nb", 2);
        assert_eq!(lines, [(1, b"a".to_vec()), (2, vec![]), (3, b"b".to_vec())]);
        assert!(ending.unterminated);
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let mut endless = io::repeat(b'x');
        let ending = each_chunk(&mut endless, 2, |_| (), |()| ()).unwrap();
        assert_eq!(ending.too_long, Some(1));
    }
}
