//! The journal read from start to end.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;

use wardkeep_evidence::verify::MAX_LINE_BYTES;

use super::{Folder, JournalError, Location, Result, SegmentNumber};

/// A place between two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Number of the segment.
    pub segment: u32,
    /// Offset in it.
    pub offset: u64,
}

impl Position {
    /// Before everything.
    pub const START: Self = Self { segment: 0, offset: 0 };
}

/// Hands every whole line from `from` on to `each`, garbage included, and gives the place where
/// it stopped. A last line without a newline is being written, or torn: it is not handed out. Of a
/// line over the limit the beginning is handed out, and nothing of its segment after it: writers
/// leave such a segment. What is no regular file is no segment.
///
/// # Errors
/// When a segment cannot be read.
pub fn scan(
    folder: &Folder,
    from: Position,
    mut each: impl FnMut(Location, &[u8]) -> ControlFlow<()>,
) -> Result<Position> {
    let mut reached = from;
    let mut line = Vec::with_capacity(1024);
    for segment in folder.segments()? {
        if segment.0 < from.segment {
            continue;
        }
        let start = if segment.0 == from.segment { from.offset } else { 0 };
        let path = folder.segment_path(segment);
        let failed = |error| JournalError::io("read", &path, error);
        let mut file = match folder.read_segment(segment) {
            Ok((file, _)) => file,
            Err(JournalError::Unsafe { .. }) => continue,
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut offset = start;
        reached = Position { segment: segment.0, offset };
        loop {
            line.clear();
            let limit = MAX_LINE_BYTES as u64 + 1;
            let read =
                reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(failed)? as u64;
            let whole = line.last() == Some(&b'\n');
            if !whole && read < limit {
                break;
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let location =
                Location { segment: SegmentNumber(segment.0), offset, length: text.len() as u64 };
            let flow = each(location, text);
            if !whole {
                break;
            }
            offset += read;
            reached.offset = offset;
            if flow.is_break() {
                return Ok(reached);
            }
        }
    }
    Ok(reached)
}
