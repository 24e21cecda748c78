//! A grant: what the owner allows, signed.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac};
use sha2::{Digest as _, Sha256};
use wardkeep_evidence::hash::{RecordId, decode_hex, encode_hex};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;
use wardkeep_policy::key::DeviceKey;
use zeroize::Zeroizing;

use super::ActionHash;

/// How far a grant reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One time.
    Once,
    /// Every time in the session that asked.
    Session,
    /// Every time.
    Always,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Once, Self::Session, Self::Always];

    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// A scope that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope: give one of once, session, always")]
pub struct UnknownScope;

/// Tells a grant apart from every other: SHA-256 over what is signed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId(pub [u8; 32]);

impl fmt::Display for GrantId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&encode_hex(&self.0))
    }
}

/// What the owner allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Exactly this action.
    pub action: ActionHash,
    /// How far it reaches.
    pub scope: Scope,
    /// Until when; `None` only where it is for always.
    pub expires: Option<Timestamp>,
    /// The session that asked; it is bound to it unless it is for always.
    pub session: String,
    /// The record that asked.
    pub request: RecordId,
    /// Taint that does not count against this action, and this one alone.
    pub declassifies: Taint,
    /// Random, so that no two grants are the same.
    pub nonce: [u8; 16],
    /// The record of the approval, to be named by the decision that uses it. Not signed: copying a
    /// grant into another record gives the same grant.
    pub record: RecordId,
}

const DOMAIN: &[u8] = b"grant v1";

impl Grant {
    /// What tells it apart.
    #[must_use]
    pub fn id(&self) -> GrantId {
        GrantId(Sha256::digest(self.signed_form()).into())
    }

    /// Whether it is in force at a moment.
    #[must_use]
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    /// Whether it allows something.
    pub(super) fn covers(&self, action: ActionHash, session: &str, now: Timestamp) -> bool {
        self.action == action
            && self.is_current(now)
            && (self.scope == Scope::Always || self.session == session)
    }

    /// The bytes that are signed: each part behind its length, so that no two grants share them.
    fn signed_form(&self) -> Vec<u8> {
        let expires = self.expires.map(|time| time.unix().to_string()).unwrap_or_default();
        let declassifies = self.declassifies.names().collect::<Vec<_>>().join("|");
        let parts: [&[u8]; 8] = [
            DOMAIN,
            &self.action.0,
            self.scope.as_str().as_bytes(),
            expires.as_bytes(),
            self.session.as_bytes(),
            &self.request.0,
            declassifies.as_bytes(),
            &self.nonce,
        ];
        let mut form = Vec::with_capacity(256);
        for part in parts {
            form.extend_from_slice(&(part.len() as u64).to_be_bytes());
            form.extend_from_slice(part);
        }
        form
    }

    /// The members of a record or of the file of standing grants.
    pub(super) fn write(&self, tag: &[u8; 32], out: &mut Object<'static>) {
        let text = |text: String| Value::from(text);
        let names = self.declassifies.names().map(Value::from).collect();
        out.push("action", text(self.action.to_string()));
        out.push("declassifies", Value::Array(names));
        out.push("expires", self.expires.map_or(Value::Null, |time| text(time.to_string())));
        let grant = Value::from([
            ("hmac", text(encode_hex(tag))),
            ("nonce", text(encode_hex(&self.nonce))),
            ("session", text(self.session.clone())),
        ]);
        out.push("grant", grant);
        out.push("request", text(self.request.to_string()));
        out.push("scope", text(self.scope.as_str().to_owned()));
    }

    /// Reads what [`Self::write`] wrote; the signature is not looked at.
    pub(super) fn read(told: &Object<'_>, record: RecordId) -> Option<(Self, [u8; 32])> {
        let text = |key| told.get(key).and_then(Value::as_str);
        let grant = told.get("grant").and_then(Value::as_object)?;
        let inner = |key| grant.get(key).and_then(Value::as_str);
        let expires = match told.get("expires")? {
            Value::Null => None,
            value => Some(value.as_str()?.parse().ok()?),
        };
        let declassifies = match told.get("declassifies") {
            Some(Value::Array(names)) => {
                Taint::from_names(names.iter().map(|name| name.as_str().unwrap_or_default()))
            }
            _ => Taint::NONE,
        };
        let read = Self {
            action: text("action")?.parse().ok()?,
            scope: text("scope")?.parse().ok()?,
            expires,
            session: inner("session")?.to_owned(),
            request: RecordId::from_hex(text("request")?)?,
            declassifies,
            nonce: decode_nonce(inner("nonce")?)?,
            record,
        };
        // Only what is for always may have no end.
        let bounded = read.scope == Scope::Always || read.expires.is_some();
        let tag = decode_hex(inner("hmac")?.as_bytes())?;
        bounded.then_some((read, tag))
    }
}

fn decode_nonce(text: &str) -> Option<[u8; 16]> {
    let whole = decode_hex(format!("{text:0<64}").as_bytes())?;
    let nonce: [u8; 16] = whole[..16].try_into().ok()?;
    (text.len() == 32).then_some(nonce)
}

/// Signs grants. It is derived from the device key, so that only who has that can approve.
pub struct GrantKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for GrantKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GrantKey(…)")
    }
}

impl GrantKey {
    /// Of a device.
    #[must_use]
    pub fn new(device: &DeviceKey) -> Self {
        Self(Zeroizing::new(device.derive("approvals v1")))
    }

    /// The signature over a grant.
    #[must_use]
    pub fn sign(&self, grant: &Grant) -> [u8; 32] {
        self.mac(&grant.signed_form()).finalize().into_bytes().into()
    }

    /// Whether a signature is that of a grant, in constant time.
    #[must_use]
    pub fn verify(&self, grant: &Grant, tag: &[u8; 32]) -> bool {
        self.mac(&grant.signed_form()).verify_slice(tag).is_ok()
    }

    /// The signature over bytes of another kind.
    pub(super) fn seal(&self, bytes: &[u8]) -> [u8; 32] {
        self.sealing(bytes).finalize().into_bytes().into()
    }

    /// Whether a signature is [`Self::seal`] of bytes.
    pub(super) fn is_seal(&self, bytes: &[u8], tag: &[u8; 32]) -> bool {
        self.sealing(bytes).verify_slice(tag).is_ok()
    }

    fn sealing(&self, bytes: &[u8]) -> Hmac<Sha256> {
        // INVARIANT: a grant begins with a length of eight bytes whose first is zero.
        self.mac(b"\xffbook v1\0").chain_update(bytes)
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        // HMAC takes a block of 64 bytes, and pads a shorter key with zeros.
        let mut block = Zeroizing::new([0u8; 64]);
        block[..32].copy_from_slice(&self.0[..]);
        Hmac::new((&*block).into()).chain_update(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> GrantKey {
        GrantKey(Zeroizing::new([byte; 32]))
    }

    fn grant() -> Grant {
        Grant {
            action: ActionHash([1; 32]),
            scope: Scope::Once,
            expires: Timestamp::from_unix(1_800_000_000),
            session: "claude:1".to_owned(),
            request: RecordId([2; 32]),
            declassifies: Taint::WEB_DERIVED,
            nonce: [3; 16],
            record: RecordId([4; 32]),
        }
    }

    #[test]
    fn every_part_is_signed() {
        let base = grant();
        let tag = key(1).sign(&base);
        assert!(key(1).verify(&base, &tag));
        assert!(!key(2).verify(&base, &tag));
        let later = Timestamp::from_unix(1_800_000_001);
        for changed in [
            Grant { action: ActionHash([9; 32]), ..base.clone() },
            Grant { scope: Scope::Session, ..base.clone() },
            Grant { scope: Scope::Always, ..base.clone() },
            Grant { expires: later, ..base.clone() },
            Grant { expires: None, ..base.clone() },
            Grant { session: "claude:2".to_owned(), ..base.clone() },
            Grant { request: RecordId([9; 32]), ..base.clone() },
            Grant { declassifies: Taint::ALL, ..base.clone() },
            Grant { nonce: [9; 16], ..base.clone() },
        ] {
            assert!(!key(1).verify(&changed, &tag), "{changed:?}");
            assert_ne!(changed.id(), base.id());
        }
        let copied = Grant { record: RecordId([9; 32]), ..base.clone() };
        assert_eq!(copied.id(), base.id(), "a copy is the same grant");
    }

    #[test]
    fn a_grant_is_read_as_it_was_written() {
        for scope in Scope::ALL {
            let expires = grant().expires.filter(|_| scope != Scope::Always);
            let written = Grant { scope, expires, ..grant() };
            let mut object = Object::default();
            written.write(&[5; 32], &mut object);
            assert_eq!(Grant::read(&object, written.record), Some((written, [5; 32])));
        }
        let mut endless = Object::default();
        Grant { expires: None, ..grant() }.write(&[5; 32], &mut endless);
        assert_eq!(Grant::read(&endless, RecordId::ZERO), None, "only always is without an end");
    }
}
