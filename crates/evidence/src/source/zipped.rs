//! A bundle zip, read in place: nothing is unpacked to disk.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use zip::ZipArchive;

use super::{
    MAX_ENTRIES, MAX_FILE_BYTES, MAX_RATIO, MAX_TOTAL_BYTES, Member, Source, SourceError,
    is_safe_name,
};

/// An open zip whose directory has been judged.
#[derive(Debug)]
pub struct ZipSource<R: Read + Seek = File> {
    archive: ZipArchive<R>,
    files: BTreeMap<String, (usize, u64)>,
}

impl ZipSource<File> {
    /// Opens the zip at `path`.
    ///
    /// # Errors
    /// When it is no zip, or built to harm.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let shown = path.display().to_string();
        // Without blocking: a pipe that nobody writes to would wait for ever.
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(path)
            .map_err(|error| SourceError::io(&shown, error))?;
        let metadata = file.metadata().map_err(|error| SourceError::io(&shown, error))?;
        if metadata.is_file() { Self::read(file) } else { Err(SourceError::NotABundle(shown)) }
    }
}

impl<R: Read + Seek> ZipSource<R> {
    /// Judges the directory of a zip: number of entries, sizes, ratio, names, links, duplicates
    /// and overlaps.
    ///
    /// # Errors
    /// When any of it is refused.
    pub fn read(mut reader: R) -> Result<Self, SourceError> {
        let refuse = |why: String| Err(SourceError::Archive(why));
        check_end_record(&mut reader)?;
        let mut archive = ZipArchive::new(reader).map_err(archive_error)?;
        if archive.len() > MAX_ENTRIES {
            return refuse(format!("{} entries, over the limit of {MAX_ENTRIES}", archive.len()));
        }
        if archive.has_duplicate_names() {
            return refuse("two entries have the same name".to_owned());
        }
        let mut files = BTreeMap::new();
        let mut total = 0u64;
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(archive_error)?;
            let name = match std::str::from_utf8(entry.name_raw()) {
                Ok(name) => name.to_owned(),
                Err(_) => return refuse("an entry name is not UTF-8".to_owned()),
            };
            let shown = crate::check::printable(&name);
            let bare = name.strip_suffix('/').unwrap_or(&name);
            if !is_safe_name(bare) {
                return refuse(format!("the entry name `{shown}` leads outside or is malformed"));
            }
            if entry.encrypted() {
                return refuse(format!("`{shown}` is encrypted"));
            }
            if name.ends_with('/') {
                if entry.size() != 0 {
                    return refuse(format!("the folder `{shown}` has content"));
                }
                continue;
            }
            let kind = entry.unix_mode().map_or(0, |mode| mode & 0o170_000);
            if entry.is_symlink() || (kind != 0 && kind != 0o100_000) {
                return refuse(format!("`{shown}` is not a regular file"));
            }
            let (size, packed) = (entry.size(), entry.compressed_size());
            if size > MAX_FILE_BYTES {
                return refuse(format!("`{shown}` unpacks to {size} bytes, over {MAX_FILE_BYTES}"));
            }
            if size > 1 << 20 && size / packed.max(1) > MAX_RATIO {
                return refuse(format!("`{shown}` unpacks to over {MAX_RATIO} times its size"));
            }
            total = total.saturating_add(size);
            if total > MAX_TOTAL_BYTES {
                return refuse(format!("it unpacks to over {MAX_TOTAL_BYTES} bytes"));
            }
            files.insert(name, (index, size));
        }
        if archive.has_overlapping_entries().map_err(archive_error)? {
            return refuse("entries share the same bytes".to_owned());
        }
        Ok(Self { archive, files })
    }
}

impl<R: Read + Seek + std::fmt::Debug> Source for ZipSource<R> {
    fn members(&mut self) -> Result<Vec<Member>, SourceError> {
        let member = |(name, &(_, size)): (&String, &(usize, u64))| Member {
            name: name.clone(),
            size,
            regular: true,
        };
        Ok(self.files.iter().map(member).collect())
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SourceError> {
        let Some(&(index, size)) = self.files.get(name) else {
            return Err(SourceError::io(name, io::ErrorKind::NotFound.into()));
        };
        let entry = self.archive.by_index(index).map_err(archive_error)?;
        Ok(Box::new(Exactly { inner: entry, left: size }))
    }
}

/// A reader that fails when an entry holds more or fewer bytes than it declared.
struct Exactly<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let Some(left) = self.left.checked_sub(count as u64) else {
            return Err(io::Error::other("the entry is longer than it declares"));
        };
        if count == 0 && left > 0 && !buffer.is_empty() {
            return Err(io::Error::other("the entry is shorter than it declares"));
        }
        self.left = left;
        Ok(count)
    }
}

fn archive_error(error: zip::result::ZipError) -> SourceError {
    SourceError::Archive(crate::check::printable(&error.to_string()))
}

/// Judges the record at the end of a zip before the reader of the archive believes it: that it
/// claims no more than a bundle may hold, so that nothing is allocated for more, and that the
/// directory stands right before it, so that no other record is searched for instead.
fn check_end_record<R: Read + Seek>(reader: &mut R) -> Result<(), SourceError> {
    const END_BYTES: usize = 22;
    const LOCATOR_BYTES: usize = 20;
    const END64_BYTES: usize = 56;
    const MAX_COMMENT_BYTES: usize = 65_535;
    const WINDOW: usize = END64_BYTES + LOCATOR_BYTES + END_BYTES + MAX_COMMENT_BYTES;
    const MAX_DIRECTORY_BYTES: u64 = 64 << 20;
    let refuse = |why: &str| Err(SourceError::Archive(why.to_owned()));
    let failed = |error| SourceError::io("the archive", error);

    let length = reader.seek(SeekFrom::End(0)).map_err(failed)?;
    let start = length.saturating_sub(WINDOW as u64);
    reader.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut tail = Vec::new();
    reader.by_ref().take(WINDOW as u64).read_to_end(&mut tail).map_err(failed)?;
    let number = |at: usize, width: usize| -> u64 {
        let bytes = tail.get(at..at + width).unwrap_or_default();
        bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let Some(end) = memchr::memmem::rfind(&tail, b"PK\x05\x06") else {
        return refuse("it has no end record, so it is no zip or was cut off");
    };
    if (end + END_BYTES) as u64 + number(end + 20, 2) != tail.len() as u64 {
        return refuse("something follows its end");
    }
    let mut disks = [number(end + 4, 2), number(end + 6, 2)];
    let mut counts = [number(end + 8, 2), number(end + 10, 2)];
    let (mut bytes, mut offset) = (number(end + 12, 4), number(end + 16, 4));
    let mut directory_end = end;
    let elsewhere = counts[1] == 0xffff || bytes == 0xffff_ffff || offset == 0xffff_ffff;
    let locator =
        end.checked_sub(LOCATOR_BYTES).filter(|at| tail[*at..].starts_with(b"PK\x06\x07"));
    if let Some(locator) = locator.filter(|_| elsewhere) {
        let end64 = locator.checked_sub(END64_BYTES);
        let end64 = end64.filter(|at| {
            tail[*at..].starts_with(b"PK\x06\x06")
                && number(at + 4, 8) == END64_BYTES as u64 - 12
                && number(locator + 8, 8) == start + *at as u64
        });
        let Some(end64) = end64 else { return refuse("its zip64 end record is not at its end") };
        disks = [number(end64 + 16, 4), number(end64 + 20, 4)];
        counts = [number(end64 + 24, 8), number(end64 + 32, 8)];
        (bytes, offset) = (number(end64 + 40, 8), number(end64 + 48, 8));
        directory_end = end64;
    }
    let [here, entries] = counts;
    if disks != [0, 0] || here != entries {
        return refuse("it is one of several parts");
    }
    if entries > MAX_ENTRIES as u64 || bytes > MAX_DIRECTORY_BYTES {
        let claim = format!("it claims {entries} entries in {bytes} bytes of directory");
        return refuse(&format!("{claim}, over the limit of {MAX_ENTRIES} entries"));
    }
    if offset.checked_add(bytes) != Some(start + directory_end as u64) {
        return refuse("its directory is not where it says");
    }
    let mut signature = [0u8; 4];
    reader.seek(SeekFrom::Start(offset)).map_err(failed)?;
    if entries > 0 && (reader.read_exact(&mut signature).is_err() || signature != *b"PK\x01\x02") {
        return refuse("its directory is not where it says");
    }
    reader.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(())
}
