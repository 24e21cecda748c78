//! One name fixed to one tree, and its signature.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use wardkeep_evidence::hash::{BlobHash, decode_hex, encode_hex};
use wardkeep_policy::key::DeviceKey;
use zeroize::Zeroizing;

/// A name fixed to a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The name.
    pub name: String,
    /// Hash of names, modes and contents.
    pub tree: BlobHash,
    /// What the name was fixed to before, which may still lie in its places.
    pub before: Option<BlobHash>,
    /// Whether the owner approved exactly this, whatever was found.
    pub approved: bool,
    /// What was found at that time: `allow`, `ask` or `deny`.
    pub verdict: String,
    /// Hosts that it may be granted.
    pub hosts: Vec<String>,
    /// Whether it runs commands.
    pub runs_commands: bool,
    /// Variables of the environment that it may be granted.
    pub variables: Vec<String>,
    /// When it was pinned.
    pub at: String,
    /// The record of that.
    pub record: String,
    /// Where it lies.
    pub places: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    pin: Pin,
    hmac: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    skills: Vec<Row>,
}

/// Signs pins.
pub(super) struct PinKey(Zeroizing<[u8; 32]>);

impl PinKey {
    pub(super) fn new(device: &DeviceKey) -> Self {
        Self(Zeroizing::new(device.derive("skill pins v1")))
    }

    fn mac(&self, pin: &Pin) -> Option<Hmac<Sha256>> {
        let body = serde_json::to_vec(pin).ok()?;
        // HMAC takes a block of 64 bytes, and pads a shorter key with zeros.
        let mut block = Zeroizing::new([0u8; 64]);
        block[..32].copy_from_slice(&self.0[..]);
        Some(Hmac::new((&*block).into()).chain_update(body))
    }
}

/// The pins of which the signature holds.
pub(super) fn read(bytes: &[u8], key: &PinKey) -> Vec<Pin> {
    let Ok(file) = serde_json::from_slice::<File>(bytes) else { return Vec::new() };
    if file.version != 1 {
        return Vec::new();
    }
    let holds = |row: Row| {
        let tag = decode_hex(row.hmac.as_bytes())?;
        key.mac(&row.pin)?.verify_slice(&tag).ok()?;
        Some(row.pin)
    };
    file.skills.into_iter().filter_map(holds).collect()
}

/// The file: a line each, so that the owner sees what is signed.
pub(super) fn write(pins: &[Pin], key: &PinKey) -> Vec<u8> {
    let mut out = b"{\"version\":1,\"skills\":[".to_vec();
    for (place, pin) in pins.iter().enumerate() {
        let Some(mac) = key.mac(pin) else { continue };
        let tag: [u8; 32] = mac.finalize().into_bytes().into();
        let row = Row { pin: pin.clone(), hmac: encode_hex(&tag) };
        out.extend_from_slice(if place > 0 { b",\n" } else { b"\n" });
        out.extend(serde_json::to_vec(&row).unwrap_or_default());
    }
    out.extend_from_slice(b"\n]}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin() -> Pin {
        Pin {
            name: "weather".to_owned(),
            tree: BlobHash([1; 32]),
            before: None,
            approved: true,
            verdict: "ask".to_owned(),
            hosts: vec!["api.example".to_owned()],
            runs_commands: true,
            variables: vec!["KEY".to_owned()],
            at: "2026-01-31T12:00:00Z".to_owned(),
            record: "00".to_owned(),
            places: vec!["/a/\"b".to_owned()],
        }
    }

    #[test]
    fn every_part_is_signed() {
        let key = |byte| PinKey(Zeroizing::new([byte; 32]));
        let bytes = write(&[pin(), Pin { name: "b".to_owned(), ..pin() }], &key(1));
        assert_eq!(read(&bytes, &key(1)).len(), 2);
        assert!(read(&bytes, &key(2)).is_empty());
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in [
            ("weather", "whether"),
            ("\"approved\":true", "\"approved\":false"),
            ("0101", "0102"),
            ("api.example", "api.evil"),
            ("\"ask\"", "\"deny\""),
            ("\"KEY\"", "\"KEYS\""),
            ("12:00", "13:00"),
            ("/a/", "/b/"),
        ] {
            let forged = text.replacen(from, to, 1);
            assert_ne!(forged, text, "{from}");
            assert_eq!(read(forged.as_bytes(), &key(1)).len(), 1, "{from}");
        }
    }
}
