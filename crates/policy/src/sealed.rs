//! Small files of the state directory that carry an HMAC over their own bytes:
//! `{"hmac":"…","body":{…}}`. Whoever edits one without the device key is noticed.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wardkeep_evidence::bundle::{BundleError, StagedFile};
use wardkeep_evidence::hash::{decode_hex, encode_hex};

use crate::files::{Unread, read_plain};
use crate::key::DeviceKey;

/// Why a sealed file is not believed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealedError {
    #[error("it {0}")]
    Unread(#[from] Unread),
    #[error("it is not what was written there: {0}")]
    Malformed(String),
    #[error("it was changed without the device key, or the key was replaced")]
    Forged,
}

impl SealedError {
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Unread(Unread::Missing))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    hmac: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// The bytes of a sealed file.
pub(crate) fn seal<T: Serialize>(
    key: &DeviceKey,
    domain: &str,
    body: &T,
) -> Result<Vec<u8>, serde_json::Error> {
    let body = serde_json::value::to_raw_value(body)?;
    let hmac = encode_hex(&key.bind(domain, &[body.get().as_bytes()]));
    let mut bytes = serde_json::to_vec(&Envelope { hmac, body: &body })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What a sealed file says, if its HMAC holds.
pub(crate) fn unseal<T: DeserializeOwned>(
    key: &DeviceKey,
    domain: &str,
    bytes: &[u8],
) -> Result<T, SealedError> {
    let envelope = envelope(bytes)?;
    let tag = decode_hex(envelope.hmac.as_bytes())
        .ok_or_else(|| SealedError::Malformed("`hmac` is not a hash".to_owned()))?;
    if !key.is_bound(domain, &[envelope.body.get().as_bytes()], &tag) {
        return Err(SealedError::Forged);
    }
    body(&envelope)
}

/// What a sealed file says, believed by nobody: for what only ever tightens.
pub(crate) fn peek<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SealedError> {
    body(&envelope(bytes)?)
}

/// As [`unseal`], from a file of at most `limit` bytes.
pub(crate) fn load<T: DeserializeOwned>(
    key: &DeviceKey,
    domain: &str,
    path: &Path,
    limit: u64,
) -> Result<T, SealedError> {
    unseal(key, domain, &read_plain(path, limit)?)
}

/// Writes a sealed file as a whole.
pub(crate) fn store<T: Serialize>(
    key: &DeviceKey,
    domain: &str,
    path: &Path,
    body: &T,
) -> Result<(), BundleError> {
    let bytes = seal(key, domain, body).map_err(|error| BundleError::Io {
        action: "write",
        path: path.display().to_string(),
        error: error.into(),
    })?;
    StagedFile::replace(path, 0o600, &bytes)
}

fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, SealedError> {
    serde_json::from_slice(bytes).map_err(|error| SealedError::Malformed(error.to_string()))
}

fn body<T: DeserializeOwned>(envelope: &Envelope<'_>) -> Result<T, SealedError> {
    serde_json::from_str(envelope.body.get())
        .map_err(|error| SealedError::Malformed(error.to_string()))
}
