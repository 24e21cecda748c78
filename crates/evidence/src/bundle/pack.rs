//! Bundles as zip files.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::{BundleError, Result, StagedDirectory, StagedFile, sync_directory};
use crate::source::{
    DirectorySource, MAX_ENTRIES, MAX_FILE_BYTES, MAX_RATIO, MAX_TOTAL_BYTES, Member, Source as _,
    SourceError, ZipSource, is_safe_name,
};

/// Packs a bundle directory. Equal directories give equal zips.
///
/// # Errors
/// When the directory cannot be read, or `target` exists and `replace` is false.
pub fn export_zip(directory: &Path, target: &Path, replace: bool) -> Result<()> {
    let mut source = DirectorySource::open(directory)?;
    let members = source.members()?;
    check_limits(&members)?;
    let staged = StagedFile::create(target, 0o644)?;
    if !replace && fs::symlink_metadata(target).is_ok() {
        return Err(BundleError::Exists(target.display().to_string()));
    }
    let mut zip = ZipWriter::new(io::BufWriter::with_capacity(1 << 18, staged.file()));
    let mut folder = None;
    for member in members {
        if !member.regular {
            return Err(SourceError::NotRegular(member.name).into());
        }
        if !is_safe_name(&member.name) {
            let shown = crate::check::printable(&member.name);
            return Err(BundleError::Zip(format!("the name `{shown}` cannot stand in a bundle")));
        }
        if member.size > MAX_FILE_BYTES {
            let (name, size) = (member.name, member.size);
            return Err(SourceError::TooLarge { name, size, limit: MAX_FILE_BYTES }.into());
        }
        if let Some((name, _)) = member.name.split_once('/')
            && folder.as_deref() != Some(name)
        {
            zip.add_directory(name, folder_options()).map_err(zip_error)?;
            folder = Some(name.to_owned());
        }
        let method = if member.size > 1 << 20 && packs_too_well(source.open(&member.name)?)? {
            CompressionMethod::Stored
        } else {
            CompressionMethod::Deflated
        };
        zip.start_file(&member.name, options().compression_method(method)).map_err(zip_error)?;
        let mut reader = source.open(&member.name)?.take(MAX_FILE_BYTES);
        io::copy(&mut reader, &mut zip).map_err(|error| BundleError::io("pack", target, error))?;
    }
    let mut writer = zip.finish().map_err(zip_error)?;
    writer.flush().map_err(|error| BundleError::io("write", target, error))?;
    drop(writer);
    staged.commit(replace)
}

/// Unpacks a zip into `target`, which must not exist or be an empty folder. Everything is judged
/// before anything is written, and the folder appears only when all of it is there.
///
/// # Errors
/// When the zip is refused or cannot be unpacked.
pub fn import_zip(zip: &Path, target: &Path) -> Result<()> {
    unpack(ZipSource::open(zip)?, target)
}

fn unpack<R: Read + Seek + std::fmt::Debug>(mut source: ZipSource<R>, target: &Path) -> Result<()> {
    let staged = StagedDirectory::create(target)?;
    let make = |name: &str| {
        let path = staged.path().join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(BundleError::io("create", &path, error))
            }
            _ => Ok(path),
        }
    };
    // The format has this folder even when it is empty.
    make(crate::source::BLOBS)?;
    let mut folders = std::collections::BTreeSet::new();
    for member in source.members()? {
        if let Some((folder, _)) = member.name.split_once('/') {
            folders.insert(make(folder)?);
        }
        let path = staged.path().join(&member.name);
        let failed = |error| BundleError::io("unpack", &path, error);
        let mut file = File::create_new(&path).map_err(failed)?;
        let mut reader = source.open(&member.name)?;
        io::copy(&mut reader, &mut file).and_then(|_| file.sync_all()).map_err(failed)?;
    }
    for folder in folders {
        sync_directory(&folder)?;
    }
    staged.commit()
}

/// Refuses to write a zip that `import_zip` would refuse to read.
fn check_limits(members: &[Member]) -> Result<()> {
    // The members are in order, so that those of one folder stand together.
    let folder = |member: &Member| member.name.split_once('/').map(|(name, _)| name.to_owned());
    let mut folders: Vec<_> = members.iter().filter_map(folder).collect();
    folders.dedup();
    let entries = members.len() + folders.len();
    if entries > MAX_ENTRIES {
        let why = format!("{entries} entries are over the limit of {MAX_ENTRIES}: export a part");
        return Err(BundleError::Zip(why));
    }
    let size = members.iter().map(|member| member.size).fold(0, u64::saturating_add);
    if size > MAX_TOTAL_BYTES {
        let name = "the bundle".to_owned();
        return Err(SourceError::TooLarge { name, size, limit: MAX_TOTAL_BYTES }.into());
    }
    Ok(())
}

fn options() -> SimpleFileOptions {
    // A fixed time: equal bundles give equal bytes.
    SimpleFileOptions::default()
        .last_modified_time(DateTime::default())
        .compression_method(CompressionMethod::Deflated)
        .unix_permissions(0o644)
}

/// A folder that nobody may enter cannot be read once it is unpacked.
fn folder_options() -> SimpleFileOptions {
    options().unix_permissions(0o755)
}

fn zip_error(error: zip::result::ZipError) -> BundleError {
    BundleError::Zip(error.to_string())
}

/// Whether a reader would take the packed file for a bomb, as it must for long runs of one byte.
fn packs_too_well(mut reader: Box<dyn Read + '_>) -> Result<bool> {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut zip = ZipWriter::new_stream(Count(0));
    zip.start_file("x", options()).map_err(zip_error)?;
    let size =
        io::copy(&mut reader, &mut zip).map_err(|error| BundleError::Zip(error.to_string()))?;
    let Count(packed) = zip.finish().map_err(zip_error)?.into_inner();
    Ok(size / packed.saturating_sub(100).max(1) >= MAX_RATIO / 2)
}
