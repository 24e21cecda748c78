//! What was replaced is kept: small files in the state directory, anything else moved aside in the
//! workspace's own folder.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fsync, mkdirat, openat, readlinkat, renameat_with, syncfs,
    unlinkat,
};
use rustix::io::Errno;
use wardkeep_evidence::check::printable;
use wardkeep_evidence::hash::{BlobHash, sha256};

use crate::bench::{Bench, FOLDER, REPLACED};
use crate::config::OWN_FOLDER;
use crate::error::{IdentityError, Result};
use crate::name::Name;
use crate::store::unguessable;
use crate::tree::{Kind, Look, read_whole};
use crate::workspace::Workspace;

const LIST: &str = "list.jsonl";
const NEW: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// From so many on, all of the file system is flushed at once, which is faster.
const MANY: usize = 16;
/// So many folders of one second are told apart.
const MOST: u32 = 10_000;

/// Something that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// Where it stood.
    pub name: Name,
    /// What it was.
    pub kind: Kind,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its permission bits, in octal.
    pub mode: String,
    /// Its size in bytes.
    pub size: u64,
    /// Of its bytes, where they were copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<BlobHash>,
    /// Where a link led.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Where it is now: in the folder of the workspace in the state directory, or in the workspace.
    pub at: String,
}

/// A folder for what one operation replaces, made when it is needed.
pub(crate) struct Quarantine<'a> {
    workspace: &'a Workspace<'a>,
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    folder: Option<Folder>,
    kept: Vec<Kept>,
    /// Copies that are not durable yet, and what they are copies of.
    copies: Vec<(Option<File>, String)>,
}

struct Folder {
    handle: OwnedFd,
    path: String,
    list: File,
}

impl<'a> Quarantine<'a> {
    pub(crate) fn new(workspace: &'a Workspace<'a>) -> Self {
        Self { workspace, inner: RefCell::default() }
    }

    /// Deals with what came out of a place: bytes that are known are dropped, others are kept.
    pub(crate) fn take(
        &self,
        bench: &Bench,
        leaf: &str,
        name: &Name,
        known: &[BlobHash],
    ) -> Result<()> {
        self.keep(bench, leaf, name, known)
            .map_err(|error| IdentityError::io("put into quarantine", name, error))
    }

    fn keep(&self, bench: &Bench, leaf: &str, name: &Name, known: &[BlobHash]) -> io::Result<()> {
        let Some(look) = bench.look(leaf)? else { return Ok(()) };
        let mut kept = Kept {
            name: name.clone(),
            kind: look.kind,
            uid: look.uid,
            gid: look.gid,
            mode: format!("{:o}", look.mode),
            size: look.size,
            hash: None,
            target: None,
            at: String::new(),
        };
        let mut inner = self.inner.borrow_mut();
        match look.kind {
            Kind::File if look.size <= self.workspace.limits.file => {
                let bytes = self.read(bench, leaf)?;
                let hash = BlobHash(sha256(&bytes));
                if known.contains(&hash) {
                    unlinkat(bench.handle(), leaf, AtFlags::empty())?;
                    return Ok(());
                }
                let number = format!("{:06}", inner.kept.len());
                let folder = self.folder(&mut inner)?;
                self.workspace.steps.step("keep what was replaced");
                let mut copy =
                    File::from(openat(&folder.handle, &number, NEW, Mode::from_raw_mode(0o600))?);
                copy.write_all(&bytes)?;
                kept.hash = Some(hash);
                kept.at = format!("{}/{number}", folder.path);
                // A process has not as many handles as there can be files.
                let copy = (inner.copies.len() < MANY).then_some(copy);
                inner.copies.push((copy, leaf.to_owned()));
                self.note(&mut inner, kept)
            }
            Kind::Link => {
                let target = readlinkat(bench.handle(), leaf, Vec::new())?;
                kept.target = Some(printable(&target.to_string_lossy()));
                kept.at = self.folder(&mut inner)?.path.clone();
                self.note(&mut inner, kept)?;
                Ok(unlinkat(bench.handle(), leaf, AtFlags::empty())?)
            }
            Kind::Folder if unlinkat(bench.handle(), leaf, AtFlags::REMOVEDIR).is_ok() => Ok(()),
            _ => {
                let folder = self.workspace.inner_folder(bench.own(), REPLACED)?;
                let to = unguessable()?;
                kept.at = format!("{OWN_FOLDER}/{REPLACED}/{to}");
                self.note(&mut inner, kept)?;
                let no = RenameFlags::NOREPLACE;
                Ok(renameat_with(bench.handle(), leaf, &folder, &to, no)?)
            }
        }
    }

    fn read(&self, bench: &Bench, leaf: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(bench.handle(), leaf, flags, Mode::empty())?;
        let look = Look::of(&rustix::fs::fstat(&file)?);
        read_whole(File::from(file), self.workspace.limits.file, look.size)
            .map_err(|unread| io::Error::other(unread.to_string()))
    }

    /// The folder for this operation: its time, and a number where several share one.
    fn folder<'b>(&self, inner: &'b mut Inner) -> io::Result<&'b mut Folder> {
        if inner.folder.is_none() {
            let all = self.workspace.store.make_folder("quarantine")?;
            let seconds = self.workspace.now / 1_000_000_000;
            for number in 0..MOST {
                let name = format!("{seconds}-{number}");
                match mkdirat(&all, &name, Mode::from_raw_mode(0o700)) {
                    Ok(()) => {
                        let handle = openat(&all, &name, FOLDER, Mode::empty())?;
                        let list = openat(&handle, LIST, NEW, Mode::from_raw_mode(0o600))?;
                        let (path, list) = (format!("quarantine/{name}"), File::from(list));
                        inner.folder = Some(Folder { handle, path, list });
                        break;
                    }
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        inner.folder.as_mut().ok_or_else(|| io::Error::other("there are too many in this second"))
    }

    /// Writes down what is kept and where it came from.
    fn note(&self, inner: &mut Inner, kept: Kept) -> io::Result<()> {
        let mut line = serde_json::to_vec(&kept)?;
        line.push(b'\n');
        self.folder(inner)?.list.write_all(&line)?;
        inner.kept.push(kept);
        Ok(())
    }

    /// Makes what is kept durable, then drops what it was copied from.
    pub(crate) fn finish(self, bench: &Bench) -> Result<Vec<Kept>> {
        let inner = self.inner.into_inner();
        let failed = |error: io::Error| IdentityError::io("put into", "quarantine", error);
        if let Some(folder) = &inner.folder {
            self.workspace.steps.step("flush what is kept");
            let flushed = if inner.copies.len() > MANY {
                syncfs(&folder.handle).map_err(io::Error::from)
            } else {
                inner
                    .copies
                    .iter()
                    .filter_map(|(copy, _)| copy.as_ref())
                    .try_for_each(File::sync_all)
            };
            flushed
                .and_then(|()| folder.list.sync_all())
                .and_then(|()| Ok(fsync(&folder.handle)?))
                .map_err(failed)?;
        }
        for (_, leaf) in &inner.copies {
            self.workspace.steps.step("drop what was replaced");
            bench.drop_leaf(leaf);
        }
        Ok(inner.kept)
    }
}
