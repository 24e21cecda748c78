//! What folders held when they were last looked at, so that only those are listed again that have changed.
//!
//! A folder is known again by its device, its number and the time of its last change. The kernel sets that time
//! whenever a name in the folder is made, moved or removed, and no program can set it. What is remembered are names
//! and kinds alone: what is guarded among them is judged anew each time.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat, fstatfs};

/// The first bytes of what is kept.
const MAGIC: &[u8; 8] = b"wk-list1";
/// Bytes before the folders: those, a checksum, the key and how many folders there are.
const HEAD: usize = 8 + 4 + 16 + 4;
/// Bytes of each folder before what it holds.
const ROW: usize = 8 + 8 + 8 + 4 + 4;
/// Most bytes that are kept.
pub const LARGEST: usize = 32 << 20;
/// How long a folder must have been as it is. Its time counts in ticks of some milliseconds: what changes twice in
/// one looks the same.
const SETTLED: Duration = Duration::from_secs(2);
/// File systems of this machine that set the time with each change: ext4, XFS, btrfs, f2fs, tmpfs. Of others, of the
/// network or put together of several, it is not known.
const KNOWN: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// By which a folder is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    device: u64,
    number: u64,
    seconds: i64,
    nanoseconds: u32,
}

impl Mark {
    fn of(data: &Stat) -> Option<Self> {
        Some(Self {
            device: data.st_dev,
            number: data.st_ino,
            seconds: data.st_ctime,
            nanoseconds: u32::try_from(data.st_ctime_nsec).ok()?,
        })
    }

    fn time(&self) -> Option<SystemTime> {
        let since = Duration::new(u64::try_from(self.seconds).ok()?, self.nanoseconds);
        UNIX_EPOCH.checked_add(since)
    }
}

/// What is remembered of earlier walks.
#[derive(Clone)]
pub struct Listings {
    key: [u8; 16],
    now: SystemTime,
    /// By mark, in its order: where in `bytes` it is told what the folder held.
    folders: Vec<(Mark, Range<usize>)>,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Listings {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Listings").field("folders", &self.folders.len()).finish_non_exhaustive()
    }
}

impl Listings {
    /// Nothing is remembered yet. What will be holds only where the same `key` is given again: one that changes when
    /// the machine is started anew, because what happens to its disks between is not known.
    #[must_use]
    pub fn new(key: [u8; 16], now: SystemTime) -> Self {
        Self { key, now, folders: Vec::new(), bytes: Vec::new() }
    }

    /// What [`Seen::to_bytes`] gave. Of bytes that are damaged, or of another key, nothing is remembered.
    #[must_use]
    pub fn read(key: [u8; 16], now: SystemTime, bytes: Vec<u8>) -> Self {
        match folders_of(key, &bytes) {
            Some(folders) => Self { key, now, folders, bytes },
            None => Self::new(key, now),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// The folder, if it is as it was.
    pub(super) fn find(&self, data: &Stat) -> Option<usize> {
        let mark = Mark::of(data)?;
        self.folders.binary_search_by(|(known, _)| known.cmp(&mark)).ok()
    }

    /// What a folder held; nothing stands for what cannot be read.
    pub(super) fn entries(
        &self,
        folder: usize,
    ) -> impl Iterator<Item = Option<(&CStr, FileType)>> + '_ {
        let mut left =
            self.folders.get(folder).and_then(|(_, range)| self.bytes.get(range.clone()));
        std::iter::from_fn(move || {
            let (kind, rest) = left?.split_first()?;
            let Ok(name) = CStr::from_bytes_until_nul(rest) else {
                left = None;
                return Some(None);
            };
            left = rest.get(name.count_bytes() + 1..);
            Some(Some((name, FileType::from_raw_mode(u32::from(*kind) << 12))))
        })
    }
}

/// The folders that bytes tell of, if they are whole.
fn folders_of(key: [u8; 16], bytes: &[u8]) -> Option<Vec<(Mark, Range<usize>)>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (sum, rest) = rest.split_first_chunk()?;
    if u32::from_le_bytes(*sum) != crc32fast::hash(rest) {
        return None;
    }
    let rest = rest.strip_prefix(&key)?;
    let (count, mut rest) = rest.split_first_chunk()?;
    let count = u32::from_le_bytes(*count) as usize;
    let mut at = HEAD.checked_add(count.checked_mul(ROW)?)?;
    let mut folders: Vec<(Mark, Range<usize>)> = Vec::with_capacity(count.min(bytes.len() / ROW));
    for _ in 0..count {
        let device = number(&mut rest)?;
        let inode = number(&mut rest)?;
        let seconds = i64::from_le_bytes(number(&mut rest)?.to_le_bytes());
        let (nanoseconds, after) = rest.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        rest = after;
        let nanoseconds = u32::from_le_bytes(*nanoseconds);
        let mark = Mark { device, number: inode, seconds, nanoseconds };
        let end = at.checked_add(u32::from_le_bytes(*length) as usize)?;
        if folders.last().is_some_and(|(before, _)| *before >= mark) {
            return None;
        }
        folders.push((mark, at..end));
        at = end;
    }
    (at == bytes.len()).then_some(folders)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*bytes))
}

/// What a walk has seen, to be remembered.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Folders that were as they had been.
    same: Vec<usize>,
    /// Folders that were listed, and what they hold.
    listed: Vec<(Mark, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Seen {
    /// Adds what another walk has seen.
    pub(crate) fn join(&mut self, other: Self) {
        let start = self.bytes.len();
        self.same.extend(other.same);
        self.bytes.extend(other.bytes);
        let moved = |range: Range<usize>| range.start + start..range.end + start;
        self.listed.extend(other.listed.into_iter().map(|(mark, range)| (mark, moved(range))));
    }

    pub(super) fn unchanged(&mut self, folder: usize) {
        self.same.push(folder);
    }

    /// Begins with a folder that is open and not listed yet. It is remembered if it has been as it is for a while.
    pub(super) fn begin(&self, known: &Listings, data: &Stat) -> Option<Listing> {
        let mark = Mark::of(data)?;
        let settled = mark.time()?.checked_add(SETTLED)? <= known.now;
        (settled && self.bytes.len() < LARGEST).then_some(Listing { mark, start: self.bytes.len() })
    }

    pub(super) fn add(&mut self, name: &CStr, kind: FileType) {
        let kind = u8::try_from(kind.as_raw_mode() >> 12).unwrap_or_default();
        self.bytes.push(kind);
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
    }

    /// All of the folder was added.
    pub(super) fn end(&mut self, listing: Listing) {
        self.listed.push((listing.mark, listing.start..self.bytes.len()));
    }

    /// Not all of it was seen.
    pub(super) fn forget(&mut self, listing: &Listing) {
        self.bytes.truncate(listing.start);
    }

    /// Whether there is more to remember than was known. What is gone by now does no harm.
    #[must_use]
    pub fn is_new(&self, known: &Listings) -> bool {
        !self.listed.is_empty() || self.same.len() < known.folders.len() / 2
    }

    /// What to give to [`Listings::read`] the next time; nothing where that would be more than is kept.
    #[must_use]
    pub fn to_bytes(&self, known: &Listings) -> Option<Vec<u8>> {
        let same = self.same.iter().filter_map(|at| {
            let (mark, range) = known.folders.get(*at)?;
            Some((*mark, known.bytes.get(range.clone())?))
        });
        let listed = self.listed.iter().filter_map(|(mark, range)| {
            let bytes = self.bytes.get(range.clone())?;
            Some((*mark, bytes))
        });
        let mut folders: Vec<(Mark, &[u8])> = same.chain(listed).collect();
        folders.sort_unstable_by_key(|(mark, _)| *mark);
        folders.dedup_by_key(|(mark, _)| *mark);
        let mut bytes = [MAGIC.as_slice(), &[0; 4], &known.key].concat();
        bytes.extend(u32::try_from(folders.len()).ok()?.to_le_bytes());
        for (mark, held) in &folders {
            bytes.extend(mark.device.to_le_bytes());
            bytes.extend(mark.number.to_le_bytes());
            bytes.extend(mark.seconds.to_le_bytes());
            bytes.extend(mark.nanoseconds.to_le_bytes());
            bytes.extend(u32::try_from(held.len()).ok()?.to_le_bytes());
        }
        for (_, held) in &folders {
            bytes.extend_from_slice(held);
        }
        let sum = crc32fast::hash(&bytes[MAGIC.len() + 4..]);
        bytes[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&sum.to_le_bytes());
        (bytes.len() <= LARGEST).then_some(bytes)
    }
}

/// A folder that is being listed.
#[derive(Debug)]
pub(super) struct Listing {
    mark: Mark,
    start: usize,
}

/// Whether the time of a folder's last change tells that something in it has changed.
pub(crate) fn is_sure(folder: BorrowedFd<'_>) -> bool {
    let kind = fstatfs(folder).ok().and_then(|found| u32::try_from(found.f_type).ok());
    kind.is_some_and(|kind| KNOWN.contains(&kind))
}
