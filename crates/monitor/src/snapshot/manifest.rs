//! The manifest of a snapshot: canonical JSON whose hash is in the snapshot's record.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wardkeep_evidence::canonical::canonical;
use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_evidence::json;

use super::SnapshotId;
use super::path::{RelativePath, decode, encode};
use super::scope::Scope;

const VERSION: u32 = 1;
/// Longest manifest that is read.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 128 << 20;
/// Most files that are named as left out; more are counted.
pub(crate) const MAX_LEFT_OUT: usize = 1000;

/// What a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its id.
    pub id: SnapshotId,
    /// Which files were looked for.
    pub scope: Scope,
    /// When it was taken, as in its record.
    pub taken: String,
    /// Why it was taken.
    pub reason: String,
    /// The root of all paths but those in `state`, absolute and without links.
    pub workspace: PathBuf,
    /// Names that are covered, each a file or a folder with all below it. What is covered, and is
    /// neither in `files` nor left out, was not there.
    pub covers: Vec<RelativePath>,
    /// The files that were there, in order of their paths.
    pub files: Vec<Entry>,
    /// The signed set of the state directory, to compare with; it is never restored.
    pub state: Vec<Entry>,
    /// What is covered and was there, and is not held.
    pub left_out: Vec<LeftOut>,
    /// How many more were left out than are named. Where it is not 0, nothing is removed by a
    /// rollback, because it cannot be told what was added.
    pub more_left_out: u64,
}

/// A file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it was.
    pub path: RelativePath,
    /// What it was.
    pub content: Content,
}

/// What a file was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A regular file.
    File {
        /// SHA-256 of its bytes, under which they are kept.
        hash: BlobHash,
        /// How many bytes.
        size: u64,
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link. What it led to is not part of the snapshot.
    Link {
        /// Where it led.
        target: Vec<u8>,
    },
}

/// A file that is not in the snapshot though it was there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Where it is.
    pub path: RelativePath,
    /// Why.
    pub why: Why,
}

/// Why a file is not in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It has more bytes than the limit.
    TooLarge,
    /// There are too many files or bytes in all, or folders in folders.
    Limit,
    /// It is a pipe, a socket or a device.
    NotRegular,
    /// It cannot be read.
    Unreadable,
    /// It is the state directory.
    State,
    /// It is a folder of what programs make again.
    Remade,
}

impl Why {
    /// As part of a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::TooLarge => "is too large",
            Self::Limit => "is over the limit of files or bytes in all",
            Self::NotRegular => "is neither a file nor a link",
            Self::Unreadable => "cannot be read",
            Self::State => "is the state directory",
            Self::Remade => "is a cache, packages or build output",
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    covers: Vec<RelativePath>,
    files: Vec<RawEntry>,
    id: SnapshotId,
    left_out: Vec<LeftOut>,
    more_left_out: u64,
    reason: String,
    scope: Scope,
    state: Vec<RawEntry>,
    taken: String,
    v: u32,
    workspace: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    path: RelativePath,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<BlobHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

impl Manifest {
    /// The bytes that are written down.
    ///
    /// # Errors
    /// What serde says, which nothing here should make it say.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        use std::os::unix::ffi::OsStrExt as _;
        let raw = Raw {
            covers: self.covers.clone(),
            files: self.files.iter().map(RawEntry::of).collect(),
            id: self.id,
            left_out: self.left_out.clone(),
            more_left_out: self.more_left_out,
            reason: self.reason.clone(),
            scope: self.scope,
            state: self.state.iter().map(RawEntry::of).collect(),
            taken: self.taken.clone(),
            v: VERSION,
            workspace: encode(self.workspace.as_os_str().as_bytes()),
        };
        let text = serde_json::to_vec(&raw).map_err(|error| error.to_string())?;
        let value = json::parse(&text).map_err(|error| error.to_string())?;
        Ok(canonical(&value))
    }

    /// Reads bytes whose hash was found right. Even so: no path in it leaves its root.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        use std::os::unix::ffi::OsStringExt as _;
        let raw: Raw = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if raw.v != VERSION {
            return Err(format!("it has version {}, this program knows {VERSION}", raw.v));
        }
        let workspace = decode(&raw.workspace).ok_or("its workspace is no path")?;
        let workspace = PathBuf::from(std::ffi::OsString::from_vec(workspace));
        if !workspace.is_absolute() {
            return Err("its workspace is no absolute path".to_owned());
        }
        let entries = |raw: Vec<RawEntry>| {
            let entries: Result<Vec<_>, _> = raw.into_iter().map(RawEntry::entry).collect();
            entries.and_then(|entries| {
                let sorted = entries.windows(2).all(|pair| pair[0].path < pair[1].path);
                sorted.then_some(entries).ok_or_else(|| "its files are not in order".to_owned())
            })
        };
        let manifest = Self {
            id: raw.id,
            scope: raw.scope,
            taken: raw.taken,
            reason: raw.reason,
            workspace,
            covers: raw.covers,
            files: entries(raw.files)?,
            state: entries(raw.state)?,
            left_out: raw.left_out,
            more_left_out: raw.more_left_out,
        };
        match manifest.to_bytes()? == bytes {
            true => Ok(manifest),
            false => Err("it is not in canonical form".to_owned()),
        }
    }

    /// A file by its path.
    #[must_use]
    pub fn file(&self, path: &RelativePath) -> Option<&Entry> {
        let at = self.files.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
        self.files.get(at)
    }

    /// Whether a path, or a folder that it lies in, was left out.
    #[must_use]
    pub fn leaves_out(&self, path: &RelativePath) -> bool {
        self.more_left_out > 0
            || self.left_out.iter().any(|one| one.path == *path || path.is_below(&one.path))
    }

    /// Hash of what it holds, whenever and why it was taken.
    pub(crate) fn contents(&self) -> Result<[u8; 32], String> {
        let plain = Self {
            id: SnapshotId::default(),
            taken: String::new(),
            reason: String::new(),
            ..self.clone()
        };
        Ok(sha256(&plain.to_bytes()?))
    }
}

impl RawEntry {
    fn of(entry: &Entry) -> Self {
        let path = entry.path.clone();
        match &entry.content {
            Content::File { hash, size, mode } => {
                Self { path, sha256: Some(*hash), size: Some(*size), mode: Some(*mode), link: None }
            }
            Content::Link { target } => {
                Self { path, sha256: None, size: None, mode: None, link: Some(encode(target)) }
            }
        }
    }

    fn entry(self) -> Result<Entry, String> {
        let content = match (self.sha256, self.size, self.mode, self.link) {
            (Some(hash), Some(size), Some(mode), None) if mode <= 0o777 => {
                Content::File { hash, size, mode }
            }
            (None, None, None, Some(link)) => {
                let target = decode(&link).filter(|target| !target.contains(&0));
                Content::Link { target: target.ok_or("a link in it leads nowhere")? }
            }
            _ => return Err(format!("`{}` in it is neither a file nor a link", self.path)),
        };
        Ok(Entry { path: self.path, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path() -> impl Strategy<Value = RelativePath> {
        proptest::collection::vec(proptest::collection::vec(1u8.., 1..6), 1..4)
            .prop_filter_map("a path", |names| RelativePath::parse(&encode(&names.join(&b'/'))))
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let content = prop_oneof![
            (any::<[u8; 32]>(), 0..1u64 << 53, 0..0o1000u32)
                .prop_map(|(hash, size, mode)| Content::File { hash: BlobHash(hash), size, mode }),
            proptest::collection::vec(1u8.., 1..9).prop_map(|target| Content::Link { target }),
        ];
        (path(), content).prop_map(|(path, content)| Entry { path, content })
    }

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        proptest::collection::vec(entry(), 0..6).prop_map(|mut entries| {
            entries.sort_by(|a, b| a.path.cmp(&b.path));
            entries.dedup_by(|a, b| a.path == b.path);
            entries
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            files in entries(), state in entries(), covers in proptest::collection::vec(path(), 0..4),
            reason in "[ -~\u{e9}]{0,20}", more in 0..5u64, left in path(),
        ) {
            let manifest = Manifest {
                id: SnapshotId([1, 2, 3, 4, 5, 6]),
                scope: Scope::Full,
                taken: "2026-01-31T12:00:00Z".into(),
                reason,
                workspace: "/w\u{e9}".into(),
                covers, files, state,
                left_out: vec![LeftOut { path: left, why: Why::TooLarge }],
                more_left_out: more,
            };
            let bytes = manifest.to_bytes().unwrap();
            prop_assert_eq!(Manifest::parse(&bytes).unwrap(), manifest);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Manifest::parse(&bytes).is_err());
        }
    }

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        let text = |path: &str| {
            format!(
                r#"{{"covers":[],"files":[{{"mode":420,"path":"{path}","sha256":"{:064}","size":1}}],"id":"010203040506","left_out":[],"more_left_out":0,"reason":"","scope":"full","state":[],"taken":"x","v":1,"workspace":"/w"}}"#,
                0
            )
        };
        assert!(Manifest::parse(text("a/b").as_bytes()).is_ok());
        for path in ["../escaped.txt", "/etc/passwd", "a/../../b", "", ".", "a//b", "%2E%2E/x"] {
            assert!(Manifest::parse(text(path).as_bytes()).is_err(), "{path}");
        }
        assert!(Manifest::parse(text("a").replace("420", "2541").as_bytes()).is_err());
        assert!(Manifest::parse(text("a").replace("\"/w\"", "\"w\"").as_bytes()).is_err());
        assert!(Manifest::parse(format!(" {}", text("a")).as_bytes()).is_err());
    }
}
