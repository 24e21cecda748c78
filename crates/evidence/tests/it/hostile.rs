//! Folders built to harm: a clear finding or error, in bounded time and memory.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use wardkeep_evidence::bundle::{BundleDirectory, BundleError, export_zip};
use wardkeep_evidence::check::Mode;
use wardkeep_evidence::source::{AUDIT_LOG, MANIFEST, RECORDS, SourceError, open};
use wardkeep_evidence::verify::{Options, verify};

use crate::lab::{LogKeys, checks, exit_code, plain, seal, verify_path};
use crate::shared::{make_pipe, skip};

const TEN_GIGABYTES: u64 = 10_000_000_000;

/// Names the probe below what to verify.
const PROBE: &str = "WARDKEEP_TEST_PROBE";

/// Not a test of its own: the child process of [`probe`].
#[test]
fn probe_child() {
    let Some(path) = std::env::var_os(PROBE) else { return };
    let mut names = Vec::new();
    for mode in [Mode::Strict, Mode::Lenient] {
        match open(Path::new(&path)) {
            Ok(mut source) => {
                let options = Options { mode, threads: 2, ..Options::default() };
                names.push(checks(&verify(&mut *source, &options)).join(" "));
            }
            Err(error) => names.push(error.to_string()),
        }
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("\nprobe: {}\npeak: {}", names.join(" | "), peak.trim().trim_end_matches(" kB"));
}

/// Verifies `path` in a process of its own, strict then lenient; gives what was found, and fails
/// if that took more than `megabytes` or a minute of processor time.
fn probe(path: &Path, megabytes: u64) -> String {
    let limited = "ulimit -t 60; exec \"$0\" --exact hostile::probe_child --nocapture";
    let output = Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .env(PROBE, path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {text}", path.display());
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    let peak: u64 = value("peak:").parse().unwrap();
    assert!(peak < megabytes << 10, "{}: {peak} kB", path.display());
    value("probe:").to_owned()
}

/// A sealed bundle on disk, to be spoilt.
fn spoilt(spoil: impl FnOnce(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut files = plain();
    seal(&mut files, &LogKeys::usual(), &[2, 4]);
    files.write_to(folder.path());
    spoil(folder.path());
    folder
}

fn lengthen(path: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn sparse_files_of_ten_gigabytes_cost_nothing() {
    for (name, expected) in [
        (MANIFEST, "manifest-json"),
        (RECORDS, "line-too-long"),
        (AUDIT_LOG, "line-too-long"),
        ("seals/checkpoints", "seal-format"),
        ("seals/cosigned", "seal-format"),
        ("seals/log.pub", "seal-format"),
    ] {
        let folder = spoilt(|folder| lengthen(&folder.join(name), TEN_GIGABYTES));
        let found = probe(folder.path(), 200);
        assert!(found.contains(expected), "{name}: {found}");
    }
    let folder = spoilt(|folder| {
        let blob = fs::read_dir(folder.join("blobs")).unwrap().next().unwrap().unwrap();
        lengthen(&blob.path(), TEN_GIGABYTES);
    });
    assert!(probe(folder.path(), 100).contains("record-blob-size blob-too-large"));

    let folder = tempfile::tempdir().unwrap();
    let zip = folder.path().join("sparse.zip");
    File::create_new(&zip).unwrap();
    lengthen(&zip, TEN_GIGABYTES);
    assert!(probe(&zip, 100).contains("no end record"));
    let over = spoilt(|folder| lengthen(&folder.join(RECORDS), 11 << 30));
    assert!(probe(over.path(), 100).contains("records-unreadable"));
    let error = export_zip(over.path(), &folder.path().join("out.zip"), false).unwrap_err();
    assert!(matches!(error, BundleError::Source(SourceError::TooLarge { .. })), "{error}");
}

/// Text that takes many times its own size in memory once it is parsed, or makes a record of every
/// second byte.
#[test]
fn text_that_swells_in_memory_is_bounded() {
    let append = |path: &Path, begin: &str, middle: &str, end: &str, length: usize| {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        let text = [begin, &middle.repeat(length / middle.len()), end].concat();
        file.write_all(text.as_bytes()).unwrap();
    };
    for middle in ["[0],", "{\"\":0},", "{},", "0,"] {
        let folder = spoilt(|folder| {
            for name in [RECORDS, AUDIT_LOG] {
                append(&folder.join(name), "[", middle, "0]\n", 15 << 20);
                append(&folder.join(name), "[", middle, "0]\n", 15 << 20);
            }
        });
        let found = probe(folder.path(), 500);
        assert!(found.contains("record-json") && found.contains("entry-json"), "{found}");
    }
    let folder = spoilt(|folder| append(&folder.join(RECORDS), "", "0\n", "", 20 << 20));
    assert!(probe(folder.path(), 200).contains("record-field"));
    let folder = spoilt(|folder| append(&folder.join(RECORDS), "", "\n", "", 20 << 20));
    assert!(probe(folder.path(), 200).contains("line-blank"));
    let folder = spoilt(|folder| append(&folder.join(AUDIT_LOG), "", "0\n", "", 20 << 20));
    assert!(probe(folder.path(), 200).contains("entry-field"));
    let folder = spoilt(|folder| {
        fs::write(folder.join(MANIFEST), "").unwrap();
        append(&folder.join(MANIFEST), "{\"meta\":{\"a\":[", "[0],", "0]}}", 60 << 20);
    });
    assert!(probe(folder.path(), 300).contains("manifest-json"));
    let folder = spoilt(|folder| {
        fs::write(folder.join("seals/checkpoints"), "").unwrap();
        append(&folder.join("seals/checkpoints"), "", "\n~ ", "", 30 << 20);
    });
    assert!(probe(folder.path(), 200).contains("seal-format"));
    let folder = spoilt(|folder| {
        fs::write(folder.join("seals/cosigned"), "").unwrap();
        append(&folder.join("seals/cosigned"), "", "~ 1\nx\n", "", 30 << 20);
    });
    assert!(probe(folder.path(), 200).contains("seal-format"));
}

#[test]
fn a_record_with_very_many_parents_is_bounded() {
    let folder = spoilt(|folder| {
        let line =
            fs::read_to_string(folder.join(RECORDS)).unwrap().lines().next().unwrap().to_owned();
        let parent = format!("\"{}\",", "a".repeat(64));
        let parents = parent.repeat(150_000);
        let line = line
            .replace("\"parents\":[]", &format!("\"parents\":[{}]", parents.trim_end_matches(',')));
        let mut file = fs::OpenOptions::new().append(true).open(folder.join(RECORDS)).unwrap();
        for _ in 0..3 {
            writeln!(file, "{line}").unwrap();
        }
    });
    let found = probe(folder.path(), 250);
    assert!(found.contains("record-parent-unknown"), "{found}");
}

#[test]
fn what_is_no_bundle_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "text").unwrap();
    make_pipe(&at("pipe"));
    fs::create_dir(at("empty")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    for (path, expected) in [
        (at("nowhere"), "No such file"),
        (at("dangling"), "No such file"),
        (at("file/below"), "Not a directory"),
        (at("file"), "no end record"),
        (at("pipe"), "neither a bundle directory nor a zip"),
        ("/dev/zero".into(), "neither a bundle directory nor a zip"),
        ("/dev/null".into(), "neither a bundle directory nor a zip"),
    ] {
        let error = open(&path).expect_err("no bundle").to_string();
        assert!(error.contains(expected), "{}: {error}", path.display());
    }
    let report = verify_path(&at("empty"), Mode::Strict);
    let expected = ["manifest-unreadable", "records-unreadable", "audit-unreadable"];
    assert_eq!(checks(&report), expected);
    assert_eq!(exit_code(&report), 4);
    fs::write(at("empty/notes.txt"), "x").unwrap();
    assert!(checks(&verify_path(&at("empty"), Mode::Strict)).contains(&"file-unexpected"));
}

#[test]
fn a_folder_where_a_file_should_be() {
    for (name, expected) in [
        (MANIFEST, "manifest-unreadable"),
        (RECORDS, "records-unreadable"),
        (AUDIT_LOG, "audit-unreadable"),
        ("seals/log.pub", "seal-format"),
        ("seals/checkpoints", "seal-format"),
    ] {
        let folder = spoilt(|folder| {
            fs::remove_file(folder.join(name)).unwrap();
            fs::create_dir(folder.join(name)).unwrap();
        });
        let report = verify_path(folder.path(), Mode::Strict);
        assert!(checks(&report).contains(&expected), "{name}: {:?}", report.findings.kept());
    }
    let folder = spoilt(|folder| {
        fs::remove_dir_all(folder.join("blobs")).unwrap();
        fs::write(folder.join("blobs"), "x").unwrap();
    });
    let report = verify_path(folder.path(), Mode::Strict);
    assert_eq!(checks(&report)[..2], ["file-unexpected", "record-blob-missing"]);
}

#[test]
fn names_in_a_folder_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt as _;
    for name in [&b"\xff\xfe"[..], b"\x1b[31m", b"a\nb", "\u{202e}x".as_bytes()] {
        let folder = spoilt(|folder| {
            fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
        });
        let report = verify_path(folder.path(), Mode::Strict);
        assert_eq!(checks(&report), ["file-unexpected"]);
        let text = report.findings.kept()[0].to_string();
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
}

#[test]
fn a_device_is_not_a_blob() {
    let folder = spoilt(|folder| {
        fs::rename(blob_path(folder), folder.join("blob")).unwrap();
        fs::rename(folder.join("blob"), folder.with_extension("blob")).unwrap();
    });
    let blob = folder.path().join("blobs").join(plain_blob());
    fs::remove_file(folder.path().with_extension("blob")).unwrap();
    let made = Command::new("mknod").arg(&blob).args(["c", "1", "5"]).output();
    if !made.is_ok_and(|output| output.status.success()) {
        return skip("the right to make a device", "a_device_is_not_a_blob");
    }
    let report = verify_path(folder.path(), Mode::Strict);
    assert_eq!(checks(&report)[..2], ["blob-kind", "record-blob-missing"]);
}

fn plain_blob() -> String {
    wardkeep_evidence::hash::encode_hex(&wardkeep_evidence::hash::sha256(b"notes\n"))
}

fn blob_path(folder: &Path) -> std::path::PathBuf {
    folder.join("blobs").join(plain_blob())
}

#[test]
fn what_may_not_be_read_is_named() {
    let folder = spoilt(|_| {});
    if folder.path().metadata().unwrap().uid() == 0 {
        return skip("a user who is not root", "what_may_not_be_read_is_named");
    }
    let set = |name: &str, mode| {
        fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for (name, expected) in [
        (MANIFEST, "manifest-unreadable"),
        (RECORDS, "records-unreadable"),
        (AUDIT_LOG, "audit-unreadable"),
        ("seals/checkpoints", "seal-format"),
    ] {
        set(name, 0o000);
        let report = verify_path(folder.path(), Mode::Strict);
        assert!(checks(&report).contains(&expected), "{name}");
        set(name, 0o644);
    }
    set("blobs", 0o000);
    assert!(!verify_path(folder.path(), Mode::Strict).passed());
    set("blobs", 0o755);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o000)).unwrap();
    let error = open(folder.path()).map(|_| ()).unwrap_err().to_string();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(error.contains("ermission denied"), "{error}");
}

#[test]
fn a_bundle_to_write_to_is_judged_as_hostile_too() {
    let created = || "2026-01-02T03:04:05Z".to_owned();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    BundleDirectory::init(&at("bundle"), created()).unwrap();
    make_pipe(&at("pipe"));
    fs::write(at("file"), "x").unwrap();
    for path in [at("pipe"), at("file"), at("nowhere"), "/dev/zero".into()] {
        assert!(BundleDirectory::open(&path).is_err(), "{}", path.display());
    }

    let mut bundle = BundleDirectory::open(&at("bundle")).unwrap();
    let sparse = at("sparse");
    File::create_new(&sparse).unwrap();
    lengthen(&sparse, TEN_GIGABYTES);
    let mut small = File::create_new(at("small")).unwrap();
    small.seek(SeekFrom::Start(0)).unwrap();
    for path in [at("pipe"), sparse, at("nowhere"), "/dev/zero".into(), folder.path().to_owned()] {
        assert!(bundle.add_blob(&path).is_err(), "{}", path.display());
        assert_eq!(fs::read_dir(at("bundle/blobs")).unwrap().count(), 0, "left behind");
    }
    bundle.add_blob(&at("small")).unwrap();
    drop(bundle);
    assert!(verify_path(&at("bundle"), Mode::Strict).passed());

    lengthen(&at("bundle/manifest.json"), TEN_GIGABYTES);
    assert!(matches!(BundleDirectory::open(&at("bundle")), Err(BundleError::Damaged(_))));
}
