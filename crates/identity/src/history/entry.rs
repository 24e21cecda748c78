//! A commit as it is written and read.

use gix_hash::{Kind, ObjectId};
use gix_object::{CommitRef, WriteTo as _};

use super::{CommitId, FileVersion, HistoryError, LogEntry};

/// A commit of ours: one parent at most.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) tree: ObjectId,
    pub(super) parent: Option<ObjectId>,
    pub(super) time: i64,
    pub(super) message: String,
}

impl Entry {
    pub(super) fn encode(&self, (name, email): (&str, &str)) -> Result<Vec<u8>, HistoryError> {
        let signature = gix_actor::Signature {
            name: name.into(),
            email: email.into(),
            time: gix_object::date::Time { seconds: self.time, offset: 0 },
        };
        let commit = gix_object::Commit {
            tree: self.tree,
            parents: self.parent.into_iter().collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: self.message.as_str().into(),
            extra_headers: Vec::new(),
        };
        let mut bytes = Vec::new();
        commit.write_to(&mut bytes).map_err(|source| HistoryError::Io {
            action: "write",
            path: "a commit".into(),
            source,
        })?;
        Ok(bytes)
    }

    /// Also of a commit that somebody else made: of several parents the first counts.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let commit = CommitRef::from_bytes(bytes, Kind::Sha256).ok()?;
        let time = commit.time().ok()?.seconds;
        Some(Self {
            tree: commit.tree(),
            parent: commit.parents().next(),
            time,
            message: String::from_utf8_lossy(commit.message).into_owned(),
        })
    }

    pub(super) fn shown(self, id: ObjectId, file: Option<FileVersion>) -> LogEntry {
        LogEntry { commit: CommitId(id), time: self.time, message: self.message, file }
    }
}
