//! Zips built to harm: refused with a reason, and nothing is left where they were unpacked.

use std::fs::File;
use std::io::{Cursor, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use proptest::prelude::*;
use wardkeep_evidence::bundle::{BundleError, export_zip, import_zip};
use wardkeep_evidence::check::Mode;
use wardkeep_evidence::source::{MAX_ENTRIES, Source as _, SourceError, ZipSource};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::lab::{sealed_sample, verify_path};

const REGULAR: u32 = 0o100_644 << 16;

/// One entry, each field of which can lie.
#[derive(Debug, Clone)]
struct RawEntry {
    name: Vec<u8>,
    packed: Vec<u8>,
    method: u16,
    flags: u16,
    checksum: u32,
    size: u32,
    attributes: u32,
    /// Index of the entry whose data this one points at, instead of its own.
    same_as: Option<usize>,
}

impl RawEntry {
    fn stored(name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            packed: content.to_vec(),
            method: 0,
            flags: 1 << 11,
            checksum: crc32(content),
            size: u32::try_from(content.len()).unwrap(),
            attributes: REGULAR,
            same_as: None,
        }
    }

    /// `length` zeros, deflated, with a size that may be another one.
    fn zeros(name: &str, length: usize, claimed: u32) -> Self {
        let content = vec![0; length];
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file("x", options).unwrap();
        zip.write_all(&content).unwrap();
        let mut archive = zip::ZipArchive::new(zip.finish().unwrap()).unwrap();
        let mut packed = Vec::new();
        archive.by_index_raw(0).unwrap().read_to_end(&mut packed).unwrap();
        let entry = Self::stored(name, &content);
        Self { packed, method: 8, size: claimed, ..entry }
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 }
        })
    })
}

/// What the record at the end claims, where that is not the truth.
#[derive(Default)]
struct End {
    entries: Option<u64>,
    directory_bytes: Option<u64>,
    zip64: bool,
}

fn raw_zip(entries: &[RawEntry], end: &End) -> Vec<u8> {
    let mut out = Vec::new();
    let mut offsets = Vec::new();
    let put16 = |out: &mut Vec<u8>, number: u16| out.extend_from_slice(&number.to_le_bytes());
    let put32 = |out: &mut Vec<u8>, number: u32| out.extend_from_slice(&number.to_le_bytes());
    let put64 = |out: &mut Vec<u8>, number: u64| out.extend_from_slice(&number.to_le_bytes());
    let shared = |out: &mut Vec<u8>, entry: &RawEntry| {
        put16(out, 20);
        put16(out, entry.flags);
        put16(out, entry.method);
        put32(out, 0x0021_0000);
        put32(out, entry.checksum);
        put32(out, u32::try_from(entry.packed.len()).unwrap());
        put32(out, entry.size);
        put16(out, u16::try_from(entry.name.len()).unwrap());
        put16(out, 0);
    };
    for entry in entries {
        if let Some(index) = entry.same_as {
            offsets.push(offsets[index]);
            continue;
        }
        offsets.push(u32::try_from(out.len()).unwrap());
        out.extend_from_slice(b"PK\x03\x04");
        shared(&mut out, entry);
        out.extend_from_slice(&entry.name);
        out.extend_from_slice(&entry.packed);
    }
    let start = out.len() as u64;
    for (entry, offset) in entries.iter().zip(&offsets) {
        out.extend_from_slice(b"PK\x01\x02\x14\x03");
        shared(&mut out, entry);
        put16(&mut out, 0);
        put16(&mut out, 0);
        put16(&mut out, 0);
        put32(&mut out, entry.attributes);
        put32(&mut out, *offset);
        out.extend_from_slice(&entry.name);
    }
    let count = end.entries.unwrap_or(entries.len() as u64);
    let bytes = end.directory_bytes.unwrap_or(out.len() as u64 - start);
    if end.zip64 {
        let at = out.len() as u64;
        out.extend_from_slice(b"PK\x06\x06");
        put64(&mut out, 44);
        put16(&mut out, 45);
        put16(&mut out, 45);
        put64(&mut out, 0);
        for number in [count, count, bytes, start] {
            put64(&mut out, number);
        }
        out.extend_from_slice(b"PK\x06\x07");
        put32(&mut out, 0);
        put64(&mut out, at);
        put32(&mut out, 1);
    }
    out.extend_from_slice(b"PK\x05\x06");
    put32(&mut out, 0);
    let short = if end.zip64 { u16::MAX } else { u16::try_from(count).unwrap() };
    put16(&mut out, short);
    put16(&mut out, short);
    put32(&mut out, if end.zip64 { u32::MAX } else { u32::try_from(bytes).unwrap() });
    put32(&mut out, if end.zip64 { u32::MAX } else { u32::try_from(start).unwrap() });
    put16(&mut out, 0);
    out
}

fn zip_of(entries: &[RawEntry]) -> Vec<u8> {
    raw_zip(entries, &End::default())
}

/// Imports `bytes`; the folder beside must then hold what it held before and, on success only,
/// the bundle.
fn import(bytes: &[u8]) -> Result<(), BundleError> {
    let folder = tempfile::tempdir().unwrap();
    let (zip, target) = (folder.path().join("in.zip"), folder.path().join("inner/out"));
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    std::fs::write(&zip, bytes).unwrap();
    let result = import_zip(&zip, &target);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("inner"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), usize::from(result.is_ok()), "left behind: {left:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "written outside");
    result
}

fn refusal(bytes: &[u8]) -> String {
    import(bytes).expect_err("must be refused").to_string()
}

#[test]
fn the_builder_of_these_zips_builds_good_ones_too() {
    let entries = [
        RawEntry::stored("manifest.json", b"{}"),
        RawEntry { attributes: 0o040_755 << 16, ..RawEntry::stored("blobs/", b"") },
        RawEntry::stored("blobs/x", b"content"),
        RawEntry::zeros("records.jsonl", 5000, 5000),
    ];
    import(&zip_of(&entries)).unwrap();
    import(&raw_zip(&entries, &End { zip64: true, ..End::default() })).unwrap();
    let mut source = ZipSource::read(Cursor::new(zip_of(&entries))).unwrap();
    let mut content = Vec::new();
    source.open("records.jsonl").unwrap().read_to_end(&mut content).unwrap();
    assert_eq!(content, vec![0; 5000]);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let long = "x".repeat(256);
    let names: &[&[u8]] = &[
        b"../x",
        b"..",
        b".",
        b"/x",
        b"//x",
        b"/",
        b"a/../x",
        b"a/..",
        b"./x",
        b"a//b",
        b"a/b/c",
        b"a/b/c/d",
        b"a\\b",
        b"..\\x",
        b"\\x",
        b"C:x",
        b"C:\\x",
        b"c:/x",
        b"a\0b",
        b"\0",
        b"",
        b"a\nb",
        b"a\x1bb",
        b"\xff\xfe",
        b"a\xc0\xafb",
        "\u{fffd}".as_bytes(),
        "a\u{85}".as_bytes(),
        long.as_bytes(),
        b"blobs/",
        b"blobs/../x",
    ];
    for name in names {
        let bytes = zip_of(&[RawEntry::stored(name, b"x")]);
        let text = refusal(&bytes);
        assert!(text.starts_with("the archive is refused: "), "{text}");
        assert!(!text.contains(|c: char| c.is_control()), "{text:?} can be printed");
        assert!(ZipSource::read(Cursor::new(bytes)).is_err(), "{name:?} is refused for verify too");
    }
}

#[test]
fn names_twice_are_refused() {
    let entry = RawEntry::stored("x", b"1");
    let text = refusal(&zip_of(&[entry.clone(), RawEntry { packed: b"2".to_vec(), ..entry }]));
    assert!(text.contains("same name"), "{text}");
    // A file where a folder must be.
    import(&zip_of(&[RawEntry::stored("a", b"1"), RawEntry::stored("a/b", b"2")])).unwrap_err();
    import(&zip_of(&[RawEntry::stored("blobs", b"1")])).unwrap_err();
}

#[test]
fn what_is_no_regular_file_is_refused() {
    for (mode, what) in [
        (0o120_777, "link"),
        (0o060_644, "block device"),
        (0o020_644, "character device"),
        (0o010_644, "pipe"),
        (0o140_644, "socket"),
        (0o040_755, "folder without its slash"),
    ] {
        let entry = RawEntry { attributes: mode << 16, ..RawEntry::stored("x", b"/etc/passwd") };
        let text = refusal(&zip_of(&[entry]));
        assert!(text.contains("not a regular file"), "{what}: {text}");
    }
    let encrypted = RawEntry { flags: 1, ..RawEntry::stored("x", b"0123456789abcdef") };
    assert!(refusal(&zip_of(&[encrypted])).contains("encrypted"));
    let folder = RawEntry { attributes: 0o040_755 << 16, ..RawEntry::stored("blobs/", b"content") };
    assert!(refusal(&zip_of(&[folder])).contains("has content"));
    for method in [1, 9, 12, 14, 93, 95, 99] {
        let entry = RawEntry { method, ..RawEntry::stored("x", b"0123456789") };
        assert!(import(&zip_of(&[entry])).is_err(), "method {method}");
    }
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    // High ratio: 64 MiB of zeros in 64 KiB.
    let length = 64 << 20;
    let bomb = zip_of(&[RawEntry::zeros("blobs/x", length, u32::try_from(length).unwrap())]);
    assert!(bomb.len() < 100_000);
    assert!(refusal(&bomb).contains("over 1000 times its size"));
    // Larger than any file may be, as it says itself.
    let huge = RawEntry { size: u32::MAX - 1, ..RawEntry::stored("x", &[7; 1000]) };
    assert!(refusal(&zip_of(&[huge])).contains("over 1073741824"));
    // Lying about its size, so that it looks harmless: found out while it is unpacked.
    let liar = RawEntry::zeros("blobs/x", 8 << 20, 100);
    let text = refusal(&zip_of(&[liar]));
    assert!(text.contains("declared uncompressed size"), "{text}");
    let liar = RawEntry::zeros("blobs/x", 100, 50_000);
    let text = refusal(&zip_of(&[liar]));
    assert!(text.contains("shorter than it declares"), "{text}");
    let liar = RawEntry { size: 3, ..RawEntry::stored("x", b"0123456789") };
    import(&zip_of(&[liar])).unwrap_err();
    let liar = RawEntry { checksum: 1, ..RawEntry::stored("x", b"0123456789") };
    import(&zip_of(&[liar])).unwrap_err();
}

#[test]
fn entries_that_share_their_bytes_are_refused() {
    let kernel = RawEntry::zeros("0", 1 << 20, 1 << 20);
    let mut entries = vec![kernel.clone()];
    for number in 1..500 {
        let name = number.to_string().into_bytes();
        entries.push(RawEntry { name, same_as: Some(0), ..kernel.clone() });
    }
    // 500 MiB from a file of 24 kB.
    let bytes = zip_of(&entries);
    assert!(bytes.len() < 30_000);
    assert!(refusal(&bytes).contains("share the same bytes"));
    // One entry quotes the header of the next, as the densest bombs do.
    let inner = RawEntry::stored("b", b"x");
    let quoted = zip_of(std::slice::from_ref(&inner));
    let mut header = quoted[..quoted.windows(4).position(|w| w == b"PK\x01\x02").unwrap()].to_vec();
    header.extend_from_slice(b"tail");
    let outer = RawEntry::stored("a", &header);
    let mut bytes = zip_of(&[outer, RawEntry { same_as: Some(0), ..inner }]);
    let offset_at = bytes.len() - 22 - 5;
    bytes[offset_at..offset_at + 4].copy_from_slice(&31u32.to_le_bytes());
    assert!(refusal(&bytes).contains("share the same bytes"));
}

#[test]
fn too_many_entries_are_refused() {
    let entries: Vec<_> = (0..=MAX_ENTRIES).map(|n| RawEntry::stored(n.to_string(), b"")).collect();
    let text = refusal(&raw_zip(&entries, &End { zip64: true, ..End::default() }));
    assert!(text.contains("100001 entries"), "{text}");
    // The limit itself is allowed, and needs zip64.
    let bytes = raw_zip(&entries[1..], &End { zip64: true, ..End::default() });
    assert_eq!(ZipSource::read(Cursor::new(bytes)).unwrap().members().unwrap().len(), MAX_ENTRIES);
}

#[test]
fn absurd_claims_at_the_end_allocate_nothing() {
    let entries = [RawEntry::stored("x", b"x")];
    for (count, bytes) in [
        (u64::MAX, None),
        (1 << 40, None),
        (100_000_000, Some(46 * 100_000_000)),
        (1, Some(u64::MAX)),
        (1, Some(0)),
        (2, None),
        (0, None),
    ] {
        let end = End { entries: Some(count), directory_bytes: bytes, zip64: true };
        let refused = import(&raw_zip(&entries, &end));
        // A count of nothing hides the entry, and is then a zip without entries.
        assert_eq!(refused.is_err(), count != 0, "{count} {bytes:?}");
    }
}

/// A record of zip64 far from the end, where a window at the end does not see it, in a sparse file
/// that makes its claims look possible.
#[test]
fn an_end_record_far_from_the_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far.zip");
    let mut file = File::create_new(&path).unwrap();
    let length = 10_000_000_000u64;
    let far = 9_000_000_000u64;
    file.seek(SeekFrom::Start(far)).unwrap();
    let mut end64 = b"PK\x06\x06".to_vec();
    let locator_at = length - 42;
    end64.extend_from_slice(&(locator_at - far - 12).to_le_bytes());
    end64.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [100_000_000u64, 100_000_000, 4_600_000_000, 4_300_000_000] {
        end64.extend_from_slice(&number.to_le_bytes());
    }
    file.write_all(&end64).unwrap();
    file.seek(SeekFrom::Start(locator_at)).unwrap();
    let mut tail = b"PK\x06\x07\0\0\0\0".to_vec();
    tail.extend_from_slice(&far.to_le_bytes());
    tail.extend_from_slice(&[1, 0, 0, 0]);
    tail.extend_from_slice(
        b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0",
    );
    file.write_all(&tail).unwrap();
    assert_eq!(file.metadata().unwrap().len(), length);
    let error = ZipSource::open(&path).unwrap_err();
    assert!(error.to_string().contains("zip64 end record"), "{error}");
}

#[test]
fn a_blob_that_looks_like_the_end_of_a_zip_is_no_obstacle() {
    let mut files = sealed_sample();
    let mut blob = b"PK\x06\x06".to_vec();
    blob.extend_from_slice(&[0xee; 60]);
    blob.extend_from_slice(b"PK\x06\x07PK\x05\x06");
    blob.extend_from_slice(&[0xee; 40]);
    files.set(
        &format!(
            "blobs/{}",
            wardkeep_evidence::hash::BlobHash(wardkeep_evidence::hash::sha256(&blob))
        ),
        &blob[..],
    );
    files.edit_manifest(|manifest| manifest["blob_count"] = 2.into());
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    files.write_to(&at("bundle"));
    export_zip(&at("bundle"), &at("out.zip"), false).unwrap();
    import_zip(&at("out.zip"), &at("back")).unwrap();
    assert!(verify_path(&at("back"), Mode::Strict).passed());
}

#[test]
fn what_is_no_zip_is_refused() {
    let good = zip_of(&[RawEntry::stored("x", b"content")]);
    import(&good).unwrap();
    for length in 0..good.len() {
        assert!(import(&good[..length]).is_err(), "cut at {length}");
    }
    let mut trailing = good.clone();
    trailing.extend_from_slice(b"trailing");
    assert!(refusal(&trailing).contains("follows its end"));
    let leading = [&b"leading"[..], &good].concat();
    assert!(refusal(&leading).contains("not where it says"));
    assert!(refusal(b"not a zip at all").contains("no end record"));
    assert!(refusal(&[0; 100_000]).contains("no end record"));
}

/// Whoever unpacks a bundle with another program must be able to enter its folders, and nobody else's time or
/// umask may show in it.
#[test]
fn other_programs_can_unpack_what_is_packed() {
    let mut zip = zip::ZipArchive::new(Cursor::new(small_zip())).unwrap();
    let mut folders = 0;
    for index in 0..zip.len() {
        let file = zip.by_index(index).unwrap();
        let expected = if file.is_dir() { 0o40_755 } else { 0o100_644 };
        assert_eq!(file.unix_mode(), Some(expected), "{file:?}");
        folders += usize::from(file.is_dir());
    }
    assert!(folders > 0);
}

fn small_zip() -> Vec<u8> {
    static BYTES: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(make_small_zip);
    BYTES.clone()
}

fn make_small_zip() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (bundle, zip) = (folder.path().join("bundle"), folder.path().join("out.zip"));
    sealed_sample().write_to(&bundle);
    export_zip(&bundle, &zip, false).unwrap();
    std::fs::read(zip).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// A damaged zip is refused, or gives the same content: nothing in between, and no panic.
    #[test]
    fn a_damaged_zip_never_gives_other_content(
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = small_zip();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let Ok(mut source) = ZipSource::read(Cursor::new(bytes)) else { return Ok(()) };
        let good = sealed_sample();
        for member in source.members().unwrap() {
            let mut content = Vec::new();
            let Ok(mut reader) = source.open(&member.name) else { continue };
            if reader.read_to_end(&mut content).is_ok() {
                let unchanged = good.0.values().any(|bytes| *bytes == content);
                prop_assert!(unchanged, "{}", member.name);
            }
        }
    }
}

#[test]
fn import_never_overwrites() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("in.zip"), small_zip()).unwrap();
    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/keep"), "me").unwrap();
    std::fs::write(at("file"), "me").unwrap();
    std::os::unix::fs::symlink(at("full"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    let before = listing(folder.path());
    for name in ["full", "file", "link", "dangling", "file/below", "missing/below"] {
        assert!(import_zip(&at("in.zip"), &at(name)).is_err(), "{name}");
        assert_eq!(listing(folder.path()), before, "{name}");
    }
    assert!(matches!(import_zip(&at("in.zip"), &at("full")), Err(BundleError::Exists(_))));
    // An empty folder is fine.
    std::fs::create_dir(at("empty")).unwrap();
    import_zip(&at("in.zip"), &at("empty")).unwrap();
    assert!(verify_path(&at("empty"), Mode::Strict).passed());
}

#[test]
fn export_never_overwrites_unless_told_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    sealed_sample().write_to(&at("bundle"));
    std::fs::write(at("out.zip"), "me").unwrap();
    let before = listing(folder.path());
    assert!(matches!(
        export_zip(&at("bundle"), &at("out.zip"), false),
        Err(BundleError::Exists(_))
    ));
    export_zip(&at("nowhere"), &at("new.zip"), false).unwrap_err();
    export_zip(&at("out.zip"), &at("new.zip"), false).unwrap_err();
    assert_eq!(listing(folder.path()), before);
    export_zip(&at("bundle"), &at("out.zip"), true).unwrap();
    assert_eq!(std::fs::read(at("out.zip")).unwrap(), small_zip());

    type Plant = fn(&Path);
    let plants: [(&str, Plant); 4] = [
        ("link", |bundle| {
            std::os::unix::fs::symlink("/etc/passwd", bundle.join("blobs/x")).unwrap()
        }),
        ("pipe", |bundle| crate::shared::make_pipe(&bundle.join("seals/pipe"))),
        ("folder below a folder", |bundle| {
            std::fs::create_dir_all(bundle.join("blobs/a/b")).unwrap();
        }),
        ("name", |bundle| std::fs::write(bundle.join("blobs/a:b"), "x").unwrap()),
    ];
    for (name, plant) in plants {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        sealed_sample().write_to(&bundle);
        plant(&bundle);
        let before = listing(folder.path());
        assert!(export_zip(&bundle, &folder.path().join("out.zip"), false).is_err(), "{name}");
        assert_eq!(listing(folder.path()), before, "{name}");
    }
}

/// Every path below a folder, and the bytes of the regular files.
fn listing(folder: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let bytes = kind.is_file().then(|| std::fs::read(entry.path()).unwrap());
        found.push((entry.path().display().to_string(), bytes));
        if kind.is_dir() {
            found.extend(listing(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn only_a_regular_file_is_read_as_a_zip() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    crate::shared::make_pipe(&at("pipe"));
    for path in [at("pipe"), "/dev/zero".into(), "/dev/null".into(), folder.path().to_owned()] {
        let error = import_zip(&path, &at("out")).unwrap_err();
        let expected = matches!(&error, BundleError::Source(SourceError::NotABundle(_)));
        assert!(expected, "{}: {error}", path.display());
    }
    assert!(!at("out").exists());
}
