//! What is approved: an action, told apart from every other by a hash.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use wardkeep_evidence::canonical::canonical;
use wardkeep_evidence::hash::{ParseHashError, decode_hex, encode_hex, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, Record};
use wardkeep_guard::surface::{Act, Surface};

/// SHA-256 over an action without its session and time, so that a retry has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionHash(pub [u8; 32]);

impl fmt::Display for ActionHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&encode_hex(&self.0))
    }
}

impl FromStr for ActionHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode_hex(text.as_bytes()).map(Self).ok_or(ParseHashError)
    }
}

/// Everything of an action that an approval binds. A record that asks must hold these very values,
/// whole: `act`, `surface`, `subject`, `how` and `content.sha256` in its payload, the principal, and
/// `workspace` in its meta. Where a subject is not text, there is nothing to approve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionKey<'a> {
    /// On whose behalf.
    pub principal: Principal,
    /// Where it crosses.
    pub surface: Surface,
    /// What is done.
    pub act: Act,
    /// To what. Of the beginning of a session it does not count: which of its events comes first, and so
    /// begins it, is nothing that an owner decides.
    pub subject: &'a str,
    /// How, where the subject does not say all: method and size of a request, the old name of a file.
    pub how: &'a str,
    /// SHA-256 of what is written or sent, where there is any.
    pub content: Option<[u8; 32]>,
    /// In which workspace.
    pub workspace: &'a str,
}

impl<'a> ActionKey<'a> {
    /// The hash: SHA-256 over the canonical JSON. That form does not tell apart texts which differ
    /// in their Unicode normal form only, file systems do: so it also holds a hash of the bytes.
    #[must_use]
    pub fn hash(&self) -> ActionHash {
        let mut bytes = Sha256::new();
        let subject = if self.act == Act::Start { "" } else { self.subject };
        let how = (!self.how.is_empty()).then_some(self.how);
        for part in [subject, self.workspace].into_iter().chain(how) {
            bytes.update((part.len() as u64).to_be_bytes());
            bytes.update(part.as_bytes());
        }
        let content = self.content.map_or(Value::Null, |hash| Value::from(encode_hex(&hash)));
        let mut value = Object::from([
            ("act", Value::from(self.act.as_str())),
            ("bytes", Value::from(encode_hex(&bytes.finalize()))),
            ("content", content),
            ("kind", Value::from("action")),
            ("principal", Value::from(self.principal.as_str())),
            ("subject", Value::from(subject)),
            ("surface", Value::from(self.surface.as_str())),
            ("v", Value::from(1u64)),
            ("workspace", Value::from(self.workspace)),
        ]);
        if let Some(how) = how {
            value.push("how", Value::from(how));
        }
        ActionHash(sha256(&canonical(&Value::Object(value))))
    }

    /// The action that a record of a decision tells of; `None` if it tells of none.
    #[must_use]
    pub fn of_record(record: &'a Record<'_>) -> Option<Self> {
        let Payload::Inline(Value::Object(told)) = &record.payload else { return None };
        let text = |key| told.get(key).and_then(Value::as_str);
        let content = match told.get("content").and_then(Value::as_object) {
            Some(content) => {
                Some(decode_hex(content.get("sha256").and_then(Value::as_str)?.as_bytes())?)
            }
            None => None,
        };
        let (surface, act) = (text("surface")?, text("act")?);
        Some(Self {
            principal: record.principal,
            surface: Surface::ALL.into_iter().find(|known| known.as_str() == surface)?,
            act: Act::ALL.into_iter().find(|known| known.as_str() == act)?,
            subject: text("subject")?,
            how: text("how").unwrap_or_default(),
            content,
            workspace: record.meta_str("workspace").unwrap_or_default(),
        })
    }
}

/// [`ActionKey::hash`].
#[must_use]
pub fn action_hash(action: &ActionKey<'_>) -> ActionHash {
    action.hash()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ActionKey<'static> {
        ActionKey {
            principal: Principal::Tool,
            surface: Surface::ControlPlane,
            act: Act::Change,
            subject: "/w/settings.json",
            how: "",
            content: Some([7; 32]),
            workspace: "/w",
        }
    }

    #[test]
    fn every_part_and_every_byte_counts() {
        let base = key();
        let mut hashes = vec![base.hash()];
        hashes.push(ActionKey { principal: Principal::User, ..base.clone() }.hash());
        hashes.push(ActionKey { surface: Surface::DurableMemory, ..base.clone() }.hash());
        hashes.push(ActionKey { act: Act::Write, ..base.clone() }.hash());
        hashes.push(ActionKey { content: Some([8; 32]), ..base.clone() }.hash());
        hashes.push(ActionKey { content: None, ..base.clone() }.hash());
        hashes.push(ActionKey { workspace: "/w/", ..base.clone() }.hash());
        hashes.push(ActionKey { how: "GET", ..base.clone() }.hash());
        hashes.push(ActionKey { how: "POST", ..base.clone() }.hash());
        for subject in ["/w/settings.jsoo", "/w/settings.json ", "", "/w/\u{e9}", "/w/e\u{301}"] {
            hashes.push(ActionKey { subject, ..base.clone() }.hash());
        }
        // What is at the end of one must not be the beginning of the next.
        hashes.push(ActionKey { subject: "ab", workspace: "c", ..base.clone() }.hash());
        hashes.push(ActionKey { subject: "a", workspace: "bc", ..base.clone() }.hash());
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
        assert_eq!(base.hash(), key().hash());
    }

    #[test]
    fn the_hash_stays_what_it_is() {
        // Computed by another program from the description in docs/formats.md.
        let expected = "8e8a88844c9fd0f4f30f31cb041e8220372f72dc57562fcee9152dc15573d1db";
        assert_eq!(key().hash().to_string(), expected);
    }
}
