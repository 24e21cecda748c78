//! The device key: how it comes to be, and every way in which it is refused.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use wardkeep_policy::key::{DeviceKey, KeyError};

use crate::lab::{Lab, random32, skip, uid};

#[test]
fn a_new_key_is_the_owners_alone() {
    let lab = Lab::new();
    let metadata = fs::metadata(lab.store.key_path()).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o600);
    assert_eq!(metadata.len(), 32);
    assert_eq!(fs::read(lab.store.key_path()).unwrap(), random32(1));
    let names: Vec<_> = fs::read_dir(lab.path().join("state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, [".device_key"], "nothing temporary is left");
}

#[test]
fn a_key_is_never_overwritten() {
    let lab = Lab::new();
    let before = fs::read(lab.store.key_path()).unwrap();
    assert!(matches!(lab.store.create_key(random32(2)), Err(KeyError::Exists(_))));
    assert_eq!(fs::read(lab.store.key_path()).unwrap(), before);

    let other = Lab::without_key();
    symlink(other.path().join("elsewhere"), other.store.key_path()).unwrap();
    assert!(matches!(other.store.create_key(random32(2)), Err(KeyError::Exists(_))));
    assert!(!other.path().join("elsewhere").exists(), "no key is written through a link");
}

#[test]
fn a_key_that_others_may_know_is_refused() {
    for mode in [0o640, 0o604, 0o610, 0o660, 0o666, 0o620] {
        let lab = Lab::new();
        fs::set_permissions(lab.store.key_path(), Permissions::from_mode(mode)).unwrap();
        let error = lab.store.key().unwrap_err();
        assert!(matches!(error, KeyError::Reachable { .. }), "{mode:o}: {error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}

#[test]
fn what_is_no_key_is_refused() {
    let word = |lab: &Lab| lab.store.key().unwrap_err().word();
    let lab = Lab::without_key();
    assert_eq!(word(&lab), "key-missing");
    let path = lab.store.key_path();
    let write = |bytes: &[u8]| {
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    };
    for length in [0, 1, 31, 33, 64] {
        write(&vec![7; length]);
        assert_eq!(word(&lab), "key-wrong-length", "{length}");
    }
    // What a crash can leave in place of a file that was never flushed.
    write(&[0; 32]);
    assert_eq!(word(&lab), "key-not-random");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(word(&lab), "key-not-plain");
    fs::remove_dir(&path).unwrap();
    let real = lab.path().join("real");
    fs::write(&real, random32(3)).unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o600)).unwrap();
    symlink(&real, &path).unwrap();
    assert_eq!(word(&lab), "key-not-plain");
    fs::remove_file(&path).unwrap();
    // A pipe would wait for ever.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(word(&lab), "key-not-plain");
}

#[test]
fn a_key_of_another_user_is_refused() {
    let lab = Lab::new();
    let error = DeviceKey::load(&lab.store.key_path(), uid() + 1).unwrap_err();
    assert!(matches!(error, KeyError::Owner { .. }));
    if uid() != 0 {
        skip("root, to give a key away", "a_key_of_another_user_is_refused");
        return;
    }
    std::os::unix::fs::chown(lab.store.key_path(), Some(12345), None).unwrap();
    let error = lab.store.key().unwrap_err();
    assert!(matches!(error, KeyError::Owner { found: 12345, owner: 0, .. }), "{error}");
}

#[test]
fn a_key_is_not_shown() {
    let lab = Lab::new();
    assert_eq!(format!("{:?}", lab.store.key().unwrap()), "DeviceKey(…)");
}

#[test]
fn the_signature_is_plain_hmac() {
    // Made with Python's hmac.
    const EXPECTED: &str = "f4323508fa26e7995f92485d97ecde564dcfa7da6b7dcf82b338600c07db01d8";
    let lab = Lab::new();
    let tag = lab.store.key().unwrap().sign(b"hello");
    assert_eq!(wardkeep_evidence::hash::encode_hex(&tag), EXPECTED);
    assert!(lab.store.key().unwrap().verify(b"hello", &tag));
    assert!(!lab.store.key().unwrap().verify(b"hellO", &tag));
}
