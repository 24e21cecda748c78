//! `.localgpt_manifest.json`: the signature of a policy.

use wardkeep_evidence::hash::{decode_hex, encode_hex};
use wardkeep_evidence::json::{Object, Value, parse};
use wardkeep_evidence::time::Timestamp;

use crate::files::Unread;
use crate::hash::ContentHash;
use crate::key::DeviceKey;
use crate::workspace::WorkspaceId;

/// The only version there is.
pub const VERSION: u64 = 1;
/// Largest manifest that is read.
pub const MAX_MANIFEST_BYTES: u64 = 16 << 10;
const DOMAIN: &str = "policy manifest v1";

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("the manifest {0}")]
    Unread(#[from] Unread),
    /// It is not JSON.
    #[error("the manifest is {0}")]
    Json(String),
    /// It is not an object.
    #[error("the manifest is {0}, not an object")]
    NotObject(&'static str),
    /// A key stands twice.
    #[error("the manifest has `{0}` twice")]
    Duplicate(String),
    /// A member that no version has.
    #[error("the manifest has a member `{0}` that version 1 does not have")]
    Unknown(String),
    /// A member is missing.
    #[error("the manifest has no `{0}`")]
    Absent(&'static str),
    /// A member has the wrong kind of value.
    #[error("`{member}` of the manifest is {found}, not {wanted}")]
    Kind {
        /// The member.
        member: &'static str,
        /// What it is.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// A version of later times.
    #[error("the manifest has version {0}, and only version 1 is known")]
    Version(u64),
}

impl ManifestError {
    /// A stable word for logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unread(unread) => unread.word(),
            Self::Json(_) | Self::NotObject(_) => "not-json",
            Self::Duplicate(_) => "duplicate-member",
            Self::Unknown(_) => "unknown-member",
            Self::Absent(_) => "member-missing",
            Self::Kind { .. } => "wrong-type",
            Self::Version(_) => "unknown-version",
        }
    }
}

/// Who signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// A person at the command line.
    Cli,
    /// A person at a window.
    Gui,
    /// A person who answered in a chat.
    Chat,
}

impl Signer {
    /// As it stands in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Gui => "gui",
            Self::Chat => "chat",
        }
    }
}

/// The signature of a policy, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// HMAC over the policy's bytes.
    pub hmac: [u8; 32],
    /// When it was signed, as written there.
    pub signed_at: String,
    /// Who signed, as written there.
    pub signed_by: String,
    /// SHA-256 over the policy's bytes.
    pub content: ContentHash,
    /// What ties it to a workspace and an order.
    pub binding: Option<Binding>,
}

/// What ties a signature to a workspace and to its place in the order of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Grows with every signature.
    pub counter: u64,
    /// HMAC over all of the manifest.
    pub hmac: [u8; 32],
}

impl Manifest {
    /// Signs a policy.
    #[must_use]
    pub fn sign(
        key: &DeviceKey,
        policy: &[u8],
        signer: Signer,
        now: Timestamp,
        workspace_id: WorkspaceId,
        counter: u64,
    ) -> Self {
        let mut manifest = Self {
            hmac: key.sign(policy),
            signed_at: now.to_string(),
            signed_by: signer.name().to_owned(),
            content: ContentHash::of(policy),
            binding: None,
        };
        let mut binding = Binding { workspace_id, counter, hmac: [0; 32] };
        let counter = counter.to_be_bytes();
        binding.hmac = key.bind(DOMAIN, &manifest.bound(&binding, &counter));
        manifest.binding = Some(binding);
        manifest
    }

    /// Whether the signature is one over this policy with this key.
    #[must_use]
    pub fn signs(&self, key: &DeviceKey, policy: &[u8]) -> bool {
        key.verify(policy, &self.hmac)
    }

    /// Whether the binding belongs to the rest of the manifest; `true` where there is none.
    #[must_use]
    pub fn is_bound(&self, key: &DeviceKey) -> bool {
        self.binding.as_ref().is_none_or(|binding| {
            let counter = binding.counter.to_be_bytes();
            key.is_bound(DOMAIN, &self.bound(binding, &counter), &binding.hmac)
        })
    }

    fn bound<'a>(&'a self, binding: &'a Binding, counter: &'a [u8; 8]) -> [&'a [u8]; 5] {
        [
            &self.content.0,
            binding.workspace_id.bytes(),
            counter,
            self.signed_at.as_bytes(),
            self.signed_by.as_bytes(),
        ]
    }

    /// When it was signed.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        self.signed_at.parse().ok()
    }

    /// The file's bytes, members in the order of the RFC.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let mut out = format!(
            "{{\n  \"version\": {VERSION},\n  \"hmac_sha256\": \"{}\",\n  \"signed_at\": {},\n  \"signed_by\": {},\n  \"content_sha256\": \"{}\"",
            encode_hex(&self.hmac),
            text(&self.signed_at),
            text(&self.signed_by),
            self.content,
        );
        if let Some(binding) = &self.binding {
            out.push_str(&format!(
                ",\n  \"wardkeep\": {{\n    \"workspace_id\": \"{}\",\n    \"counter\": {},\n    \"hmac\": \"{}\"\n  }}",
                binding.workspace_id,
                binding.counter,
                encode_hex(&binding.hmac),
            ));
        }
        out.push_str("\n}");
        out.into_bytes()
    }

    /// Reads a manifest, strictly.
    ///
    /// # Errors
    /// When it is not exactly what version 1 has.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let value = parse(bytes).map_err(|error| ManifestError::Json(error.to_string()))?;
        let object = value.as_object().ok_or(ManifestError::NotObject(value.kind()))?;
        if let Some(key) = value.duplicate_key() {
            return Err(ManifestError::Duplicate(shown(key)));
        }
        // First, so that a later version is told from a damaged one.
        let version = whole(object, "version")?;
        if version != VERSION {
            return Err(ManifestError::Version(version));
        }
        only(object, &MEMBERS)?;
        let manifest = Self {
            hmac: hash(object, "hmac_sha256")?,
            signed_at: string(object, "signed_at", "a timestamp")?.to_owned(),
            signed_by: string(object, "signed_by", "a name")?.to_owned(),
            content: ContentHash(hash(object, "content_sha256")?),
            binding: object.get("wardkeep").map(binding).transpose()?,
        };
        if manifest.time().is_none() {
            return Err(kind("signed_at", "a string", "a timestamp"));
        }
        Ok(manifest)
    }
}

const MEMBERS: [&str; 6] =
    ["version", "hmac_sha256", "signed_at", "signed_by", "content_sha256", "wardkeep"];
const BINDING: [&str; 3] = ["workspace_id", "counter", "hmac"];

fn binding(value: &Value<'_>) -> Result<Binding, ManifestError> {
    let object = value.as_object().ok_or(kind("wardkeep", value.kind(), "an object"))?;
    only(object, &BINDING)?;
    let id = string(object, "workspace_id", "32 hexadecimal digits")?;
    let counter = whole(object, "counter")?;
    if counter == 0 {
        return Err(kind("counter", "zero", "a positive integer"));
    }
    Ok(Binding {
        workspace_id: WorkspaceId::from_hex(id).ok_or(kind(
            "workspace_id",
            "a string",
            "32 hexadecimal digits",
        ))?,
        counter,
        hmac: hash(object, "hmac")?,
    })
}

fn only(object: &Object<'_>, known: &[&str]) -> Result<(), ManifestError> {
    match object.members.iter().find(|(key, _)| !known.contains(&key.as_ref())) {
        Some((key, _)) => Err(ManifestError::Unknown(shown(key))),
        None => Ok(()),
    }
}

fn member<'o, 'a>(
    object: &'o Object<'a>,
    name: &'static str,
) -> Result<&'o Value<'a>, ManifestError> {
    object.get(name).ok_or(ManifestError::Absent(name))
}

fn string<'o>(
    object: &'o Object<'_>,
    name: &'static str,
    wanted: &'static str,
) -> Result<&'o str, ManifestError> {
    let value = member(object, name)?;
    value.as_str().ok_or(kind(name, value.kind(), wanted))
}

fn whole(object: &Object<'_>, name: &'static str) -> Result<u64, ManifestError> {
    match member(object, name)? {
        Value::Unsigned(number) => Ok(*number),
        other => Err(kind(name, other.kind(), "a positive integer")),
    }
}

fn hash(object: &Object<'_>, name: &'static str) -> Result<[u8; 32], ManifestError> {
    let wanted = "64 lower-case hexadecimal digits";
    decode_hex(string(object, name, wanted)?.as_bytes()).ok_or(kind(name, "a string", wanted))
}

fn kind(member: &'static str, found: &'static str, wanted: &'static str) -> ManifestError {
    ManifestError::Kind { member, found, wanted }
}

/// A key of someone else's, short enough for a message.
fn shown(key: &str) -> String {
    key.chars().take(40).collect()
}
