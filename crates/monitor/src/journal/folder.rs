//! The journal's folder: segments, lock and hint.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, IFlags, Mode, OFlags, fchmod, flock, fstat, fsync,
    ioctl_getflags, ioctl_setflags, mkdirat, openat, statat,
};
use rustix::io::Errno;

use super::{JournalError, Result};

/// Number of a segment, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(pub u32);

impl SegmentNumber {
    /// File name of the segment.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{:08}.jsonl", self.0)
    }

    /// The number in a file name.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let digits = name.strip_suffix(".jsonl")?;
        let number = (digits.len() == 8).then(|| digits.parse().ok())??;
        Some(Self(number)).filter(|segment| segment.file_name() == name && segment.0 > 0)
    }

    /// The highest number that a file name can hold.
    pub(super) const MAX: Self = Self(99_999_999);

    /// The segment after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for SegmentNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08}", self.0)
    }
}

/// What the lock file remembers. Only a hint: losing it costs a warning, never a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(super) struct Hint {
    /// Highest segment that there ever was.
    pub(super) segment: u32,
    /// Missing segments that a recovery record tells of already, from and to, in order.
    pub(super) missing: Vec<(u32, u32)>,
    /// Entries under a seal that a recovery record says were lost.
    pub(super) lost: u64,
    /// Whether a recovery record says that no seals are made any more.
    pub(super) stopped: bool,
}

impl Hint {
    /// Most ranges of missing segments that are remembered; more are told of again.
    const MAX_RANGES: usize = 10_000;

    /// The parts of `from` to `to` that are not told of yet; they count as told from here on.
    pub(super) fn tell_missing(&mut self, from: u32, to: u32) -> Vec<(u32, u32)> {
        let mut untold = Vec::new();
        let mut next = u64::from(from);
        for &(first, last) in self.missing.iter().filter(|range| range.0 <= to && range.1 >= from) {
            if u64::from(first) > next {
                untold.extend(u32::try_from(next).map(|next| (next, first - 1)));
            }
            next = next.max(u64::from(last) + 1);
        }
        if next <= u64::from(to) {
            untold.extend(u32::try_from(next).map(|next| (next, to)));
        }
        self.missing.extend(&untold);
        self.tidy();
        untold
    }

    /// Takes in what another process remembered meanwhile.
    pub(super) fn merge(&mut self, other: Self) {
        self.segment = self.segment.max(other.segment);
        self.missing.extend(other.missing);
        self.lost = other.lost;
        self.stopped = other.stopped;
        self.tidy();
    }

    /// Sorts and joins the ranges, and drops what cannot be.
    fn tidy(&mut self) {
        if self.segment > SegmentNumber::MAX.0 {
            self.segment = 0;
        }
        self.missing.retain(|(first, last)| first <= last);
        self.missing.sort_unstable();
        self.missing.dedup_by(|next, range| {
            let joined = next.0 <= range.1.saturating_add(1);
            if joined {
                range.1 = range.1.max(next.1);
            }
            joined
        });
        self.missing.truncate(Self::MAX_RANGES);
    }
}

/// The folder of a journal, opened without following a link at its name.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// The lock file, opened anew where another one stands in its place.
#[derive(Debug)]
pub(super) struct Lock(Mutex<Arc<File>>);

/// Holds the lock of the folder until dropped.
#[derive(Debug)]
pub(crate) struct LockGuard {
    file: Arc<File>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

const LOCK: &str = "lock";
const LOCK_WAIT: Duration = Duration::from_secs(10);

impl Folder {
    /// Opens the folder, making it (0700) if it is not there.
    ///
    /// # Errors
    /// When it is a link, belongs to another user, or others can write to it.
    pub fn create(path: &Path) -> Result<Self> {
        match mkdirat(rustix::fs::CWD, path, Mode::from_raw_mode(0o700)) {
            Ok(()) => {
                // What is durable below it is lost with a name that is not.
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let _ = File::open(parent.unwrap_or(Path::new("."))).and_then(|it| it.sync_all());
                Self::open(path)
            }
            Err(Errno::EXIST) => Self::open(path),
            Err(errno) => Err(JournalError::io("create", path, errno)),
        }
    }

    /// Opens the folder.
    ///
    /// # Errors
    /// As [`Folder::create`], or when it is not there.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| {
            if errno == Errno::LOOP || errno == Errno::NOTDIR {
                let what = "is not a directory (links are not followed)".to_owned();
                JournalError::Unsafe { path: path.to_owned(), what }
            } else {
                JournalError::io("open", path, errno)
            }
        })?;
        let stat = fstat(&handle).map_err(|errno| JournalError::io("read", path, errno))?;
        let refuse = |what: String| Err(JournalError::Unsafe { path: path.to_owned(), what });
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return refuse(format!("belongs to user {}", stat.st_uid));
        }
        if stat.st_mode & 0o022 != 0 {
            return refuse(format!("can be written by others (mode {:o})", stat.st_mode & 0o7777));
        }
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a segment, for messages.
    #[must_use]
    pub fn segment_path(&self, segment: SegmentNumber) -> PathBuf {
        self.path.join(segment.file_name())
    }

    /// The segments that are there, in order.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn segments(&self) -> Result<Vec<SegmentNumber>> {
        let failed = |errno| JournalError::io("list", &self.path, errno);
        let mut segments = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str().unwrap_or_default();
            segments.extend(SegmentNumber::from_file_name(name));
        }
        segments.sort_unstable();
        Ok(segments)
    }

    /// The newest segment that is one.
    pub(super) fn newest(&self, segments: &[SegmentNumber]) -> Result<Option<SegmentNumber>> {
        for segment in segments.iter().rev() {
            if self.stat_segment(*segment)?.is_some() {
                return Ok(Some(*segment));
            }
        }
        Ok(None)
    }

    /// Changes whenever a file comes or goes, if not within the same tick of the system's clock.
    pub(super) fn stamp(&self) -> Result<(i64, u64)> {
        let stat =
            fstat(&self.handle).map_err(|errno| JournalError::io("read", &self.path, errno))?;
        Ok((stat.st_ctime, stat.st_ctime_nsec))
    }

    /// Makes the names of the files durable.
    pub(super) fn sync(&self) -> Result<()> {
        fsync(&self.handle).map_err(|errno| JournalError::io("flush", &self.path, errno))
    }

    /// Opens a segment for reading and its length.
    ///
    /// # Errors
    /// When it is not there, or no regular file.
    pub fn read_segment(&self, segment: SegmentNumber) -> Result<(File, u64)> {
        self.open_file(&segment.file_name(), OFlags::RDONLY)
    }

    /// Reads a line by its location.
    ///
    /// # Errors
    /// When it cannot be read; a line that is shorter than it should be comes back short.
    pub fn read_line(&self, location: super::Location) -> Result<Vec<u8>> {
        let path = self.segment_path(location.segment);
        let (mut file, _) = self.read_segment(location.segment)?;
        let limit = location.length.min(wardkeep_evidence::verify::MAX_LINE_BYTES as u64);
        let mut line = Vec::new();
        file.seek(SeekFrom::Start(location.offset))
            .and_then(|_| file.take(limit).read_to_end(&mut line))
            .map_err(|error| JournalError::io("read", &path, error))?;
        Ok(line)
    }

    /// Opens a segment for appending.
    pub(super) fn append_segment(&self, segment: SegmentNumber) -> Result<(File, u64)> {
        self.open_file(&segment.file_name(), OFlags::RDWR | OFlags::APPEND)
    }

    /// Inode and length of a segment, if it is there; what is no regular file is none.
    pub(super) fn stat_segment(&self, segment: SegmentNumber) -> Result<Option<(u64, u64)>> {
        match statat(&self.handle, segment.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some((stat.st_ino, u64::try_from(stat.st_size).unwrap_or(0))))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(JournalError::io("read", &self.segment_path(segment), errno)),
        }
    }

    /// When a segment was last touched, in seconds since 1970 by the system's clock. Only the system
    /// sets this time: whoever changes a file cannot set it back.
    pub(crate) fn changed_at(&self, segment: SegmentNumber) -> Result<Option<i64>> {
        match statat(&self.handle, segment.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some(stat.st_ctime))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(JournalError::io("read", &self.segment_path(segment), errno)),
        }
    }

    /// Makes a new segment, 0600 from its first byte; `None` if something stands there.
    pub(super) fn create_segment(
        &self,
        segment: SegmentNumber,
        append_only: bool,
    ) -> Result<Option<File>> {
        let path = self.segment_path(segment);
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = match openat(&self.handle, segment.file_name(), flags, mode) {
            Ok(file) => file,
            Err(Errno::EXIST) => return Ok(None),
            Err(errno) => return Err(JournalError::io("create", &path, errno)),
        };
        if append_only {
            // Best effort: without privilege or on a file system without it, go on.
            let _ = ioctl_getflags(&file)
                .and_then(|flags| ioctl_setflags(&file, flags | IFlags::APPEND));
        }
        self.sync()?;
        Ok(Some(File::from(file)))
    }

    /// Opens the lock file, making it if it is not there.
    pub(super) fn open_lock(&self) -> Result<Lock> {
        Ok(Lock(Mutex::new(Arc::new(self.open_lock_file()?))))
    }

    fn open_lock_file(&self) -> Result<File> {
        let path = self.path.join(LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.handle, LOCK, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| JournalError::io("open", &path, errno))?;
        fchmod(&file, Mode::from_raw_mode(0o600))
            .map_err(|errno| JournalError::io("protect", &path, errno))?;
        Ok(File::from(file))
    }

    /// Takes the lock, waiting a bounded time.
    pub(super) fn lock(&self, lock: &Lock) -> Result<LockGuard> {
        let mut waiting: Option<Instant> = None;
        let mut pause = Duration::from_micros(20);
        loop {
            let file = Arc::clone(&lock.0.lock().unwrap_or_else(PoisonError::into_inner));
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let guard = LockGuard { file };
                    if self.is_lock_file(&guard.file)? {
                        return Ok(guard);
                    }
                    // Someone removed or replaced it: others may hold the one that is there now.
                    let opened = Arc::new(self.open_lock_file()?);
                    *lock.0.lock().unwrap_or_else(PoisonError::into_inner) = opened;
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(JournalError::io("lock", &self.path, errno)),
            }
            let since = *waiting.get_or_insert_with(Instant::now);
            if since.elapsed() > LOCK_WAIT {
                let seconds = LOCK_WAIT.as_secs();
                return Err(JournalError::Busy { path: self.path.clone(), seconds });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Whether this is the file that stands under the lock's name.
    fn is_lock_file(&self, file: &File) -> Result<bool> {
        let failed = |errno| JournalError::io("read", &self.path.join(LOCK), errno);
        let open = fstat(file).map_err(failed)?;
        match statat(&self.handle, LOCK, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// What the lock file remembers; nothing if it is damaged.
    pub(super) fn read_hint(&self, held: &LockGuard) -> Hint {
        let mut text = String::new();
        let mut file = &*held.file;
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.take(1 << 20).read_to_string(&mut text));
        let mut hint: Hint =
            read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default();
        hint.tidy();
        hint
    }

    /// Writes the hint; a failure costs only the hint.
    pub(super) fn write_hint(&self, held: &LockGuard, hint: &Hint) {
        let mut file = &*held.file;
        let bytes = serde_json::to_vec(hint).unwrap_or_default();
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(&bytes));
    }

    fn open_file(&self, name: &str, access: OFlags) -> Result<(File, u64)> {
        let path = self.path.join(name);
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let unsafe_file =
            |what: &str| JournalError::Unsafe { path: path.clone(), what: what.into() };
        let file = openat(&self.handle, name, flags, Mode::empty()).map_err(|errno| {
            if errno == Errno::LOOP {
                unsafe_file("is a link")
            } else {
                JournalError::io("open", &path, errno)
            }
        })?;
        let stat = fstat(&file).map_err(|errno| JournalError::io("read", &path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unsafe_file("is not a regular file"));
        }
        Ok((File::from(file), u64::try_from(stat.st_size).unwrap_or(0)))
    }
}
