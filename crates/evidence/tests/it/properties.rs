//! What must hold for every value, record and bundle.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization as _;
use wardkeep_evidence::bundle::{BundleWriter, export_zip, import_zip};
use wardkeep_evidence::canonical::{canonical, check_unambiguous, float_text, write_compact};
use wardkeep_evidence::check::{Check, Mode};
use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::json::{Object, Value, parse};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, Record, RecordType};
use wardkeep_evidence::seal::LogPublic;
use wardkeep_evidence::source::{AUDIT_LOG, MANIFEST, RECORDS, ZipSource};
use wardkeep_evidence::time::{Timestamp, normalise};
use wardkeep_evidence::verify::{Options, Report, verify};

use crate::lab::{
    CREATED_AT, Files, LogKeys, bundle, part, part_of, record_line, seal, sealed_sample,
    verify_path,
};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,8}",
        "\\PC{0,8}",
        // Control characters, quotes, combining marks, Hangul, astral and private-use characters.
        vec(
            prop_oneof![
                Just('"'),
                Just('\\'),
                Just('/'),
                proptest::char::range('\0', '\u{20}'),
                proptest::char::range('\u{7f}', '\u{a0}'),
                proptest::char::range('\u{300}', '\u{345}'),
                proptest::char::range('\u{1100}', '\u{11ff}'),
                proptest::char::range('\u{e000}', '\u{ffff}'),
                proptest::char::range('\u{1d15e}', '\u{1d1c0}'),
                any::<char>(),
            ],
            0..8
        )
        .prop_map(|characters| characters.into_iter().collect()),
    ]
}

fn number() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        any::<u64>().prop_map(Value::Unsigned),
        (0..20u64).prop_map(Value::Unsigned),
        (i64::MIN..0).prop_map(Value::Negative),
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("JSON has finite numbers only", |number| number.is_finite())
            .prop_map(Value::Float),
        (-1000.0..1000.0f64).prop_map(Value::Float),
        Just(Value::Float(-0.0)),
    ]
}

/// Values whose keys were made by `key`.
fn value<K: Strategy<Value = String> + Clone + 'static>(
    key: K,
) -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number(),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            object(key.clone(), inner).prop_map(Value::Object),
        ]
    })
}

/// Members in no order, without duplicate keys.
fn object<K: Strategy<Value = String>>(
    key: K,
    inner: impl Strategy<Value = Value<'static>>,
) -> impl Strategy<Value = Object<'static>> {
    let members = btree_map(key, inner, 0..6).prop_map(|members| {
        members.into_iter().map(|(key, value)| (Cow::Owned(key), value)).collect::<Vec<_>>()
    });
    members.prop_shuffle().prop_map(|members| Object { members })
}

fn normal_text() -> impl Strategy<Value = String> + Clone {
    text().prop_map(|text| text.nfc().collect::<String>()).boxed()
}

fn any_text() -> impl Strategy<Value = String> + Clone {
    text().boxed()
}

fn hash() -> impl Strategy<Value = RecordId> {
    any::<[u8; 32]>().prop_map(RecordId)
}

fn new_record() -> impl Strategy<Value = NewRecord<'static>> {
    let seconds = -62_167_219_200i64..=253_402_300_799;
    let blob = (any::<[u8; 32]>(), text(), any::<u64>()).prop_map(|(hash, mime, size)| {
        Payload::Blob { hash: BlobHash(hash), mime: Cow::Owned(mime), size }
    });
    let payload = prop_oneof![4 => value(any_text()).prop_map(Payload::Inline), 1 => blob];
    (
        proptest::sample::select(RecordType::ALL),
        proptest::sample::select(Principal::ALL),
        vec(text().prop_map(Cow::Owned), 0..4),
        vec(hash(), 0..4),
        object(any_text(), value(any_text())),
        seconds,
        payload,
    )
        .prop_map(|(kind, principal, taint, parents, mut meta, seconds, payload)| {
            meta.set("ts", Timestamp::from_unix(seconds).unwrap().to_string().into());
            NewRecord { kind, principal, taint, parents, meta, payload }
        })
}

/// Records that may stand together: each has parents among those before it only, some have blobs.
fn history() -> impl Strategy<Value = (Vec<Record<'static>>, Vec<Vec<u8>>)> {
    let bytes = prop_oneof![
        2 => vec(any::<u8>(), 0..200),
        1 => Just(Vec::new()),
        // Packs to a thousandth: on its way into a zip it must not be taken for a bomb.
        1 => (1_048_570usize..1_400_000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
        1 => (1_048_570usize..1_100_000).prop_map(|length| {
            (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect()
        }),
    ];
    let step = (
        new_record(),
        vec(any::<proptest::sample::Index>(), 0..3),
        proptest::option::weighted(0.3, bytes),
    );
    vec(step, 0..12).prop_map(|steps| {
        let (mut records, mut blobs) = (Vec::<Record<'static>>::new(), Vec::new());
        for (number, (mut new, parents, bytes)) in steps.into_iter().enumerate() {
            new.parents = match records.len() {
                0 => Vec::new(),
                count => parents.iter().map(|index| records[index.index(count)].id).collect(),
            };
            new.meta.set("nonce", Value::from(number.to_string()));
            match bytes {
                Some(bytes) => {
                    let (hash, size) = (BlobHash(sha256(&bytes)), bytes.len() as u64);
                    new.payload = Payload::Blob { hash, mime: Cow::Borrowed("x/y"), size };
                    blobs.push(bytes);
                }
                None if matches!(new.payload, Payload::Blob { .. }) => {
                    new.payload = Payload::Inline(Value::Null);
                }
                None => {}
            }
            records.push(new.seal().unwrap());
        }
        blobs.sort();
        blobs.dedup();
        (records, blobs)
    })
}

fn write_history(folder: &Path, records: &[Record<'_>], blobs: &[Vec<u8>]) {
    let mut writer = BundleWriter::create(folder, CREATED_AT.to_owned()).unwrap();
    for record in records {
        let line = record_line(record);
        let time = record.timestamp().unwrap();
        writer.push(record.id, record.parents.is_empty(), line.as_bytes(), time).unwrap();
    }
    for blob in blobs {
        writer.push_blob(BlobHash(sha256(blob)), &mut &blob[..]).unwrap();
    }
    writer.finish().unwrap();
}

/// Every file below a folder with its bytes.
fn read_folder(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            for (inner, bytes) in read_folder(&entry.path()) {
                files.insert(format!("{name}/{inner}"), bytes);
            }
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

proptest! {
    #![proptest_config(config(512))]

    /// Only for keys in NFC: the order is that of the keys as given, the text is their NFC, so a
    /// second pass may sort them differently. The next test pins such objects.
    #[test]
    fn canonical_form_is_a_fixed_point(value in value(normal_text())) {
        let once = canonical(&value);
        let read = parse(&once).unwrap();
        prop_assert_eq!(canonical(&read), once);
    }

    #[test]
    fn compact_text_means_the_same_value(value in value(any_text())) {
        let mut line = Vec::new();
        write_compact(&value, &mut line);
        let read = parse(&line).unwrap();
        prop_assert_eq!(canonical(&read), canonical(&value));
        prop_assert!(!line.contains(&b'\n'));
    }

    #[test]
    fn what_is_unambiguous_is_a_fixed_point(value in value(any_text())) {
        if check_unambiguous(&value).is_ok() {
            let once = canonical(&value);
            prop_assert_eq!(canonical(&parse(&once).unwrap()), once);
        }
    }

    #[test]
    fn text_of_a_double_reads_back_to_it(bits: u64) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let text = float_text(number);
        let read: f64 = text.parse().unwrap();
        prop_assert!(read == number, "{text}");
        if number != 0.0 {
            let Value::Float(parsed) = parse(text.as_bytes()).unwrap() else {
                return Err(TestCaseError::fail(format!("{text} is no double")));
            };
            prop_assert_eq!(parsed.to_bits(), bits);
            // Shortest: no text with a digit less reads back to the same double.
            let digits = text.split('e').next().unwrap().replace(['-', '.'], "");
            let digits = digits.trim_matches('0').len();
            if let Some(shorter) = digits.checked_sub(2) {
                let rounded: f64 = format!("{number:.shorter$e}").parse().unwrap();
                prop_assert!(rounded.to_bits() != bits, "{text} could be shorter");
            }
        }
    }

    #[test]
    fn a_record_line_keeps_the_id(new in new_record(), extensions in proptest::option::of(object(any_text(), value(any_text())))) {
        let mut record = new.seal().unwrap();
        record.extensions = extensions;
        let line = record_line(&record);
        let mut defects = Vec::new();
        let value = parse(line.as_bytes()).unwrap();
        let read = Record::from_value(value, &mut |check, _, _| {
            if check != Check::RecordTypeExtended {
                defects.push(check);
            }
        });
        prop_assert_eq!(defects, []);
        let read = read.unwrap();
        prop_assert_eq!(read.id, record.id);
        prop_assert_eq!(read.compute_id(&mut Vec::new()), record.id);
        prop_assert_eq!(record_line(&read), line);
    }

    #[test]
    fn reading_a_record_never_panics(value in value(
        prop_oneof![
            4 => proptest::sample::select(&[
                "recordId", "type", "principal", "taint", "parents", "meta", "payload", "schema",
                "extensions", "ts", "inline", "blob", "mime", "size",
            ][..]).prop_map(str::to_owned),
            1 => text(),
        ].boxed()
    )) {
        let mut defects = 0;
        let record = Record::from_value(value, &mut |_, _, _| defects += 1);
        prop_assert!(record.is_some() || defects > 0, "nothing and no reason for it");
    }

    #[test]
    fn a_timestamp_reads_back(seconds in -62_167_219_200i64..=253_402_300_799) {
        let time = Timestamp::from_unix(seconds).unwrap();
        let text = time.to_string();
        prop_assert_eq!(text.parse::<Timestamp>().unwrap(), time);
        prop_assert_eq!(normalise(&text), Some(text));
        prop_assert_eq!(time.unix(), seconds);
    }

    #[test]
    fn normalising_a_timestamp_never_panics_and_is_a_fixed_point(
        text in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,3})?([Zz]|[+-][0-9]{2}:[0-9]{2})|\\PC{0,30}",
    ) {
        if let Some(normal) = normalise(&text) {
            prop_assert_eq!(normalise(&normal), Some(normal.clone()));
            prop_assert_eq!(normal.len(), 20);
        }
    }
}

#[test]
fn keys_that_are_not_in_nfc_have_no_fixed_point() {
    for (input, once, twice) in [
        // Sorted as `e`, written as `é`, then sorted as `é`.
        ("{\"e\\u0301\":1,\"f\":2}", "{\"é\":1,\"f\":2}", "{\"f\":2,\"é\":1}"),
        // Two keys that are the same in NFC: both are written, the second pass keeps the last.
        ("{\"\\u00e9\":1,\"e\\u0301\":2}", "{\"é\":2,\"é\":1}", "{\"é\":1}"),
        // Kelvin sign and K.
        ("{\"\\u212a\":1,\"L\":2}", "{\"L\":2,\"K\":1}", "{\"K\":1,\"L\":2}"),
    ] {
        let first = canonical(&parse(input.as_bytes()).unwrap());
        assert_eq!(String::from_utf8_lossy(&first), once);
        let second = canonical(&parse(&first).unwrap());
        assert_eq!(String::from_utf8_lossy(&second), twice);
        assert!(check_unambiguous(&parse(input.as_bytes()).unwrap()).is_err(), "writers refuse it");
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_bundle_that_was_written_verifies((records, blobs) in history()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle");
        write_history(&path, &records, &blobs);
        let report = verify_path(&path, Mode::Strict);
        prop_assert!(report.passed(), "{:?}", report.findings.kept());
        prop_assert_eq!((report.records, report.blobs), (records.len() as u64, blobs.len() as u64));
        prop_assert_eq!(report.unreferenced_blobs, 0);
        let lenient = verify_path(&path, Mode::Lenient);
        let extended = records.iter().any(|record| !record.kind.is_v01());
        prop_assert_eq!(lenient.passed(), !extended, "{:?}", lenient.findings.kept());
    }

    #[test]
    fn unpacking_undoes_packing((records, blobs) in history(), sealed: bool) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_history(&at("bundle"), &records, &blobs);
        if sealed && !records.is_empty() {
            let mut files = Files(read_folder(&at("bundle")));
            seal(&mut files, &LogKeys::usual(), &[0, records.len() as u64]);
            files.write_to(&at("bundle"));
        }
        export_zip(&at("bundle"), &at("one.zip"), false).unwrap();
        export_zip(&at("bundle"), &at("two.zip"), false).unwrap();
        let bytes = std::fs::read(at("one.zip")).unwrap();
        prop_assert!(bytes == std::fs::read(at("two.zip")).unwrap(), "two exports differ");

        import_zip(&at("one.zip"), &at("back")).unwrap();
        prop_assert_eq!(read_folder(&at("back")), read_folder(&at("bundle")));
        export_zip(&at("back"), &at("again.zip"), false).unwrap();
        prop_assert!(bytes == std::fs::read(at("again.zip")).unwrap(), "a third export differs");

        let mut source = ZipSource::read(std::io::Cursor::new(bytes)).unwrap();
        let report = verify(&mut source, &Options::default());
        prop_assert!(report.passed(), "{:?}", report.findings.kept());
    }

    #[test]
    fn a_part_of_any_log_verifies((records, _) in history(), chosen in vec(any::<bool>(), 12), share in 0..=100u64) {
        let mut records = records;
        for record in &mut records {
            record.payload = Payload::Inline(Value::Null);
        }
        let records = rebuilt(records);
        prop_assume!(!records.is_empty());
        let mut whole = bundle(&records, &[crate::lab::PAGE]);
        let sealed = records.len() as u64 * share / 100;
        seal(&mut whole, &LogKeys::usual(), &[sealed]);
        let picked: Vec<_> = (0..records.len().min(12)).filter(|at| chosen[*at]).collect();
        let files = part_of(&whole, sealed, &picked);
        let report = files.verify_with(Mode::Strict, LogKeys::usual().trust());
        let proven = picked.iter().filter(|at| (**at as u64) < sealed).count() as u64;
        // A log that was named, and has signed nothing of it: that is not what was asked for.
        let found: Vec<&str> = report.findings.kept().iter().map(|one| one.check.name()).collect();
        let missing: &[&str] =
            if proven == 0 && !picked.is_empty() { &["seal-missing"] } else { &[] };
        prop_assert_eq!(found, missing);
        let part = report.part.unwrap();
        prop_assert_eq!((part.proven, part.unsealed), (proven, picked.len() as u64 - proven));
    }
}

/// The records with their ids, and their parents' ids, made right again.
fn rebuilt(records: Vec<Record<'static>>) -> Vec<Record<'static>> {
    let mut names = BTreeMap::new();
    let rename = |mut record: Record<'static>| {
        let old = record.id;
        record.parents = record.parents.iter().map(|id| names[id]).collect();
        record.id = record.compute_id(&mut Vec::new());
        names.insert(old, record.id);
        record
    };
    records.into_iter().map(rename).collect()
}

/// What a passed bundle says, less what no hash covers and the report lists as such: `extensions`
/// of records, and of the manifest the time it was made.
#[derive(Debug, PartialEq)]
struct Meaning {
    records: Vec<(RecordId, Vec<u8>)>,
    entries: Vec<wardkeep_evidence::entry::Entry>,
    manifest: serde_json::Value,
    keys: LogPublic,
    others: BTreeMap<String, Vec<u8>>,
}

impl Meaning {
    fn of(files: &Files) -> Self {
        let record = |mut record: Record<'static>| {
            record.extensions = None;
            (record.id, canonical(&parse(record_line(&record).as_bytes()).unwrap()))
        };
        let mut manifest: serde_json::Value = serde_json::from_slice(files.get(MANIFEST)).unwrap();
        manifest.as_object_mut().unwrap().remove("created_at");
        let mut others = files.0.clone();
        let read = [RECORDS, AUDIT_LOG, MANIFEST, "seals/log.pub", "seals/cosigned"];
        others.retain(|name, _| !read.contains(&name.as_str()));
        Self {
            records: files.records().into_iter().map(record).collect(),
            entries: files.entries(),
            manifest,
            keys: files.text("seals/log.pub").trim_end().parse().unwrap(),
            others,
        }
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Set(u8),
    Flip(u8),
    Insert(u8),
    Delete,
    Double,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<u8>().prop_map(Damage::Set),
        (0..8u8).prop_map(Damage::Flip),
        any::<u8>().prop_map(Damage::Insert),
        Just(Damage::Delete),
        Just(Damage::Double),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>, at: usize) {
        match self {
            Self::Set(byte) => bytes[at] = *byte,
            Self::Flip(bit) => bytes[at] ^= 1 << bit,
            Self::Insert(byte) => bytes.insert(at, *byte),
            Self::Delete => drop(bytes.remove(at)),
            Self::Double => bytes.insert(at, bytes[at]),
        }
    }
}

/// Refused, or it says the same as before.
fn is_caught(before: &Files, after: &Files, name: &str) -> Result<Report, TestCaseError> {
    let trust = LogKeys::usual().trust();
    let report = after.verify_with(Mode::Strict, trust.clone());
    if report.passed() {
        prop_assert_eq!(Meaning::of(after), Meaning::of(before), "{}", name);
        let reach = |report: &Report| report.seals.as_ref().unwrap().witnesses.clone();
        let (left, was) = (reach(&report), reach(&before.verify_with(Mode::Strict, trust)));
        // A line of a witness that nobody knows may stand there; then nobody vouches.
        prop_assert!(left == was || (left.is_empty() && name == "seals/cosigned"), "{left:?}");
    }
    Ok(report)
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn one_damaged_byte_of_a_sealed_bundle_is_refused(
        file in any::<proptest::sample::Index>(),
        at in any::<proptest::sample::Index>(),
        damage in damage(),
    ) {
        let before = sealed_sample();
        let names: Vec<_> = before.0.keys().cloned().collect();
        let name = file.get(&names);
        let mut bytes = before.get(name).to_vec();
        damage.apply(&mut bytes, at.index(before.get(name).len()));
        prop_assume!(bytes != before.get(name));
        let mut after = before.clone();
        after.set(name, bytes);
        is_caught(&before, &after, name)?;
    }

    #[test]
    fn one_damaged_byte_of_a_part_is_refused(
        at in any::<proptest::sample::Index>(),
        damage in damage(),
        file in proptest::sample::select(&["seals/entries.jsonl", "records.jsonl", "seals/checkpoints"][..]),
    ) {
        let before = part();
        let mut bytes = before.get(file).to_vec();
        damage.apply(&mut bytes, at.index(before.get(file).len()));
        let mut after = before.clone();
        after.set(file, bytes);
        let report = after.verify_with(Mode::Strict, LogKeys::usual().trust());
        if report.passed() {
            let parsed = |files: &Files| -> Vec<serde_json::Value> {
                let lines = files.lines("seals/entries.jsonl");
                lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
            };
            prop_assert_eq!(parsed(&after), parsed(&before));
            prop_assert_eq!(Meaning::of(&after).records, Meaning::of(&before).records);
            prop_assert_eq!(after.get("seals/checkpoints"), before.get("seals/checkpoints"));
        }
    }
}

/// Every byte of a sealed bundle, one by one.
#[test]
fn every_flipped_byte_of_a_sealed_bundle_is_refused_or_listed() {
    let before = sealed_sample();
    let mut passed: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (name, original) in &before.0 {
        for at in 0..original.len() {
            // The lowest bit, and the one between upper and lower case.
            for mask in [0x01, 0x20] {
                let mut after = before.clone();
                let mut bytes = original.clone();
                bytes[at] ^= mask;
                after.set(name, bytes);
                let report = is_caught(&before, &after, name).unwrap();
                if report.passed() {
                    passed.entry(name.clone()).or_default().insert(at);
                }
            }
        }
    }
    // What passes: the time the manifest says it was made at and white space around it, the
    // extensions of the last record, the case of a hexadecimal digit in an escape, and signature
    // lines of cosigners that then nobody knows.
    let names: Vec<_> = passed.keys().map(String::as_str).collect();
    assert_eq!(names, [MANIFEST, RECORDS, "seals/cosigned"]);
    let records = before.text(RECORDS);
    let extensions = records.find("\"extensions\"").unwrap();
    let escape = records.find("\\u0001").unwrap();
    for at in &passed[RECORDS] {
        assert!(*at > extensions || (escape..escape + 6).contains(at), "byte {at} of the records");
    }
    assert!(passed[RECORDS].iter().any(|at| *at > extensions));
    let cosigned = before.text("seals/cosigned");
    let signatures = cosigned.find("\n\n").unwrap();
    assert!(passed["seals/cosigned"].iter().all(|at| *at > signatures));
}
