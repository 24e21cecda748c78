//! Our own vectors, in `vectors/wardkeep/`: made here, compared byte for byte, and then run from
//! the files as another implementation would. `WARDKEEP_BLESS=1` writes them anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use wardkeep_evidence::canonical::canonical;
use wardkeep_evidence::check::Mode;
use wardkeep_evidence::hash::{encode_hex, sha256};
use wardkeep_evidence::json::parse;
use wardkeep_evidence::merkle::{
    Tree, TreeHash, empty_root, leaf_hash, node_hash, verify_consistency, verify_inclusion,
};
use wardkeep_evidence::note::{Algorithm, Note, SigningKey, VerifierKey};
use wardkeep_evidence::proof::TlogProof;
use wardkeep_evidence::seal::{EpochKey, LogPublic, SealChain, frame};
use wardkeep_evidence::verify::{Report, Trust};

use crate::lab::{
    COSIGNED_AT, EPOCH_SEED, Files, LOG_SEED, LogKeys, OTHER_SEED, WITNESS_SEED, bundle, checks,
    cosigned, exit_code, framed, sample, seal, verify_path, witness,
};
use crate::shared::{bless, bless_folder, vectors_folder};
use crate::tamper::{Base, all_rows};

const FOLDER: &str = "wardkeep";

fn bless_json(name: &str, value: &Json) {
    let mut text = serde_json::to_vec_pretty(value).unwrap();
    text.push(b'\n');
    bless(&vectors_folder(FOLDER).join(name), &text);
}

fn bless_lines(name: &str, lines: impl IntoIterator<Item = Json>) {
    let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
    bless(&vectors_folder(FOLDER).join(name), text.as_bytes());
}

fn read_lines(name: &str) -> Vec<Json> {
    let text = std::fs::read_to_string(vectors_folder(FOLDER).join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn read_json(name: &str) -> Json {
    serde_json::from_slice(&std::fs::read(vectors_folder(FOLDER).join(name)).unwrap()).unwrap()
}

// --- canonical JSON ------------------------------------------------------------------------

/// Input, canonical form; `None` where the input is refused. The forms are written out by hand
/// from the rules, so that blessing cannot hide a change of ours.
fn canonical_cases() -> Vec<(Vec<u8>, Option<String>)> {
    let mut cases: Vec<(Vec<u8>, Option<String>)> = Vec::new();
    let mut good = |input: &str, canonical: &str| {
        cases.push((input.as_bytes().to_vec(), Some(canonical.to_owned())));
    };
    // Doubles: where plain decimals begin and end, subnormals, rounding halves, neighbours.
    for (input, canonical) in [
        ("0e0", "0.0"),
        ("-0e5", "0"),
        ("-0.0e-1", "0"),
        ("1e-5", "0.00001"),
        ("9.999999999999999e-6", "9.999999999999999e-6"),
        ("0.000010000000000000001", "0.00001"),
        ("0.000010000000000000002", "0.000010000000000000003"),
        ("-0.00001", "-0.00001"),
        ("1.5e-7", "1.5e-7"),
        ("123456.789e-10", "0.0000123456789"),
        ("0.1", "0.1"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("1e0", "1.0"),
        ("10E-1", "1.0"),
        ("4503599627370495.5", "4503599627370495.5"),
        ("4503599627370496.5", "4503599627370496.0"),
        ("4503599627370497.5", "4503599627370498.0"),
        ("9007199254740993.0", "9007199254740992.0"),
        ("999999999999999.9", "999999999999999.9"),
        ("9999999999999998.0", "9999999999999998.0"),
        ("9999999999999999.0", "1e+16"),
        ("1e16", "1e+16"),
        ("12345678901234567.0", "1.2345678901234568e+16"),
        ("123456789012345680000.0", "1.2345678901234568e+20"),
        ("1e21", "1e+21"),
        ("1e22", "1e+22"),
        ("1e23", "1e+23"),
        ("9.5367431640625e-7", "9.5367431640625e-7"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("2.2250738585072011e-308", "2.225073858507201e-308"),
        ("4.9406564584124654e-324", "5e-324"),
        ("3e-324", "5e-324"),
        ("2e-324", "0.0"),
        ("-2e-324", "0"),
        ("1e-400", "0.0"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("1.7976931348623158e308", "1.7976931348623157e+308"),
        ("-236.52698970703239", "-236.52698970703239"),
        ("100000000000000000000000", "1e+23"),
        ("0.000000000000000000000000000000000000000000000000001", "1e-51"),
        // Half way between two doubles goes to the even one, a digit more decides.
        ("9007199254740993.00000000000000000000000000000001", "9007199254740994.0"),
    ] {
        good(input, canonical);
    }
    // Integers: kept to the digit inside 64 bits, doubles beyond.
    for (input, canonical) in [
        ("0", "0"),
        ("-0", "0"),
        ("-1", "-1"),
        ("9007199254740991", "9007199254740991"),
        ("9007199254740993", "9007199254740993"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("18446744073709553664", "1.8446744073709552e+19"),
        ("18446744073709553665", "1.8446744073709556e+19"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("-18446744073709551616", "-1.8446744073709552e+19"),
    ] {
        good(input, canonical);
    }
    // Control characters: five have a short escape, the rest `\u00xx` in lower case.
    for code in 0u32..0x20 {
        let canonical = match code {
            0x09 => "\"\\t\"".to_owned(),
            0x0a => "\"\\n\"".to_owned(),
            0x0d => "\"\\r\"".to_owned(),
            _ => format!("\"\\u{code:04x}\""),
        };
        good(&format!("\"\\u{code:04X}\""), &canonical);
    }
    for (input, canonical) in [
        (r#""\b\f\/\"\\""#, r#""\u0008\u000c/\"\\""#),
        (
            r#""\u007f\u0080\u00a0\u2028\u2029\ufeff""#,
            "\"\u{7f}\u{80}\u{a0}\u{2028}\u{2029}\u{feff}\"",
        ),
        (r#""\u0041\u00E9""#, "\"A\u{e9}\""),
        (r#""\ud83d\ude00""#, "\"\u{1f600}\""),
        (r#""\udbff\udfff""#, "\"\u{10ffff}\""),
        (r#""<>&'""#, r#""<>&'""#),
        ("\"\u{e000}\u{ffff}\"", "\"\u{e000}\u{ffff}\""),
    ] {
        good(input, canonical);
    }
    // Normal form C of strings: composition, order of marks, exclusions, Hangul, singletons.
    for (input, canonical) in [
        (r#""e\u0301""#, "\"\u{e9}\""),
        (r#""a\u0328\u0301""#, "\"\u{105}\u{301}\""),
        (r#""a\u0301\u0328""#, "\"\u{105}\u{301}\""),
        (r#""\u1112\u1161\u11ab""#, "\"\u{d55c}\""),
        (r#""\u212b""#, "\"\u{c5}\""),
        (r#""\u2126\u212a""#, "\"\u{3a9}K\""),
        (r#""\u0958""#, "\"\u{915}\u{93c}\""),
        (r#""\ufb01\uff21""#, "\"\u{fb01}\u{ff21}\""),
        (r#""\uf900""#, "\"\u{8c48}\""),
        (r#""\u0344""#, "\"\u{308}\u{301}\""),
        (r#""\ud834\udd5e""#, "\"\u{1d157}\u{1d165}\""),
        (r#""\u0301""#, "\"\u{301}\""),
    ] {
        good(input, canonical);
    }
    // Order of keys: by the bytes of the key as given, so private use before astral; the text of a
    // key is its normal form; of equal keys the last counts.
    for (input, canonical) in [
        (
            r#"{"\ud800\udc00":1,"\ue000":2,"\uffff":3}"#,
            "{\"\u{e000}\":2,\"\u{ffff}\":3,\"\u{10000}\":1}",
        ),
        (r#"{"b":1,"a":2,"":3,"aa":4,"A":5}"#, r#"{"":3,"A":5,"a":2,"aa":4,"b":1}"#),
        (r#"{"10":1,"9":2,"1":3}"#, r#"{"1":3,"10":1,"9":2}"#),
        (r#"{"a\u0000":1,"a":2}"#, r#"{"a":2,"a\u0000":1}"#),
        (r#"{"e\u0301":1,"f":2}"#, "{\"\u{e9}\":1,\"f\":2}"),
        (r#"{"\u00e9":1,"f":2}"#, "{\"f\":2,\"\u{e9}\":1}"),
        (r#"{"\u00e9":1,"e\u0301":2}"#, "{\"\u{e9}\":2,\"\u{e9}\":1}"),
        (r#"{"\u212a":1,"L":2}"#, "{\"L\":2,\"K\":1}"),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1,"b":2,"a":3,"b":{"c":1,"c":2}}"#, r#"{"a":3,"b":{"c":2}}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
        (" { \"b\" : [ 1 , { } ] ,\r\n\t\"a\" : null } ", r#"{"a":null,"b":[1,{}]}"#),
        ("[[],[[]],{\"a\":[]}]", "[[],[[]],{\"a\":[]}]"),
        ("true", "true"),
        (r#"{"$serde_json::private::Number":"1"}"#, r#"{"$serde_json::private::Number":"1"}"#),
        (
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
        ),
    ] {
        good(input, canonical);
    }
    // Nesting: 127 deep is read, 128 is not.
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    good(&deep(127), &deep(127));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    good(&objects(127), &objects(127));

    let mut bad = |input: &[u8]| cases.push((input.to_vec(), None));
    bad(deep(128).as_bytes());
    bad(deep(129).as_bytes());
    bad(objects(128).as_bytes());
    for input in [
        "",
        " ",
        "nul",
        "True",
        "01",
        "-01",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "Infinity",
        "-",
        "1e309",
        "-1e309",
        "1e400",
        "1.7976931348623159e308",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "[1 2]",
        "1 2",
        "[] []",
        "// x\n1",
        "\u{feff}1",
        "\"",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u123g\"",
        "\"\n\"",
        "\"\t\"",
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\u0041""#,
        r#""\udc00\ud800""#,
        r#""\ud800\ud800""#,
        r#"{"\ud83d":1}"#,
        "\"\u{0}\"",
    ] {
        bad(input.as_bytes());
    }
    for input in [
        &b"\"\xff\""[..],
        b"\"\xc0\x80\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\"\xe2\x82\"",
        b"\xff\xfe1\x00",
    ] {
        bad(input);
    }
    cases
}

#[test]
fn canonical_vectors() {
    let cases = canonical_cases();
    let inputs: BTreeSet<_> = cases.iter().map(|(input, _)| input).collect();
    assert_eq!(inputs.len(), cases.len(), "an input stands twice");
    bless_lines(
        "canonical.jsonl",
        cases.into_iter().map(|(input, canonical)| {
            let mut line = match String::from_utf8(input) {
                Ok(text) => json!({"input": text}),
                Err(error) => json!({"input_base64": STANDARD.encode(error.into_bytes())}),
            };
            match canonical {
                Some(text) => {
                    line["sha256"] = encode_hex(&sha256(text.as_bytes())).into();
                    line["canonical"] = text.into();
                }
                None => line["error"] = true.into(),
            }
            line
        }),
    );
    let mut wrong = Vec::new();
    for line in read_lines("canonical.jsonl") {
        let input = match line["input"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => STANDARD.decode(line["input_base64"].as_str().unwrap()).unwrap(),
        };
        let found = parse(&input).ok().map(|value| canonical(&value));
        let found = found.map(|bytes| String::from_utf8(bytes).unwrap());
        if found.as_deref() != line["canonical"].as_str() {
            wrong.push(format!("{line}: found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// --- bundles ---------------------------------------------------------------------------------

/// What `verify` says of a bundle, as the manifest of the vectors has it.
fn verdict(strict: &Report, lenient: &Report) -> Json {
    let mut names = checks(strict);
    let first = names.first().copied();
    names.sort_unstable();
    names.dedup();
    json!({
        "strict": if strict.passed() { "pass" } else { "refuse" },
        "first": first,
        "checks": names,
        "lenient_exit": exit_code(lenient),
    })
}

fn row_of(path: &str, trusting: bool, files: &Files) -> Json {
    let trust = if trusting { LogKeys::usual().trust() } else { Trust::default() };
    let strict = files.verify_with(Mode::Strict, trust);
    let mut row = verdict(&strict, &files.verify(Mode::Lenient));
    row["path"] = path.into();
    row["trust"] = trusting.into();
    row["unauthenticated"] = strict.unauthenticated.count.into();
    if let Some(seals) = &strict.seals {
        row["signed_to"] = seals.signed_to.into();
        row["unsealed"] = seals.unsealed.into();
    }
    if let Some(part) = &strict.part {
        row["proven"] = part.proven.into();
    }
    row
}

/// Bundles that pass, beside those that the tamper table starts from.
fn sound_bundles() -> Vec<(String, Files)> {
    let mut bundles: Vec<_> =
        Base::ALL.into_iter().map(|base| (base.name().to_owned(), base.files())).collect();
    bundles.push(("empty".to_owned(), bundle(&[], &[])));
    let mut empty = bundle(&[], &[]);
    seal(&mut empty, &LogKeys::usual(), &[0, 0]);
    bundles.push(("sealed-empty".to_owned(), empty));
    let mut open_tail = sample();
    seal(&mut open_tail, &LogKeys::usual(), &[0, 3, 3, 4]);
    bundles.push(("sealed-open-tail".to_owned(), open_tail));
    let mut free = sample();
    free.edit_manifest(|manifest| {
        manifest["meta"] = json!({"made_by": "lab"});
        manifest["extensions"] = json!({});
    });
    bundles.push(("manifest-meta".to_owned(), free));
    bundles
}

#[test]
fn bundle_vectors() {
    let folder = vectors_folder(FOLDER);
    let mut rows = Vec::new();
    let mut files = BTreeMap::new();
    for (name, bundle) in sound_bundles() {
        for (file, bytes) in &bundle.0 {
            files.insert(format!("{name}/{file}"), bytes.clone());
        }
        if !bundle.0.keys().any(|file| file.starts_with("blobs/")) {
            files.insert(format!("{name}/blobs/.keep"), Vec::new());
        }
        let sealed = bundle.0.contains_key("seals/log.pub");
        rows.push(row_of(&format!("bundles/{name}"), sealed, &bundle));
    }
    // The tampered vectors of v0.1 have their strict verdicts here.
    let v01 = vectors_folder("aegx-v0.1");
    let manifest = std::fs::read(v01.join("MANIFEST.json")).unwrap();
    let listed: Vec<Json> = serde_json::from_slice(&manifest).unwrap();
    for listed in listed {
        let path = listed["path"].as_str().unwrap();
        let strict = verify_path(&v01.join(path), Mode::Strict);
        let mut row = verdict(&strict, &verify_path(&v01.join(path), Mode::Lenient));
        row["path"] = format!("../aegx-v0.1/{path}").into();
        row["trust"] = false.into();
        row["unauthenticated"] = strict.unauthenticated.count.into();
        rows.push(row);
    }
    bless_folder(&folder.join("bundles"), &files);
    bless_json("MANIFEST.json", &Json::Array(rows));

    for row in read_json("MANIFEST.json").as_array().unwrap() {
        let path = row["path"].as_str().unwrap();
        if path.starts_with("bundles/") {
            assert_eq!(row["strict"], "pass", "{path}");
            assert_eq!(row_of(path, row["trust"] == true, &read_files(&folder.join(path))), *row);
        }
    }
}

fn read_files(folder: &Path) -> Files {
    let mut files = Files::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            for (inner, bytes) in read_files(&entry.path()).0 {
                files.set(&format!("{name}/{inner}"), bytes);
            }
        } else {
            files.set(&name, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

#[test]
fn tampered_vectors() {
    bless_lines(
        "tampered.jsonl",
        all_rows().map(|(row, trusting)| {
            let (before, after) = (row.base.files(), row.tampered());
            let names: BTreeSet<_> = before.0.keys().chain(after.0.keys()).collect();
            let mut changed = serde_json::Map::new();
            for name in names {
                if before.0.get(name) == after.0.get(name) {
                    continue;
                }
                let content = after.0.get(name).map(|bytes| match std::str::from_utf8(bytes) {
                    Ok(text) => json!({"text": text}),
                    Err(_) => json!({"base64": STANDARD.encode(bytes)}),
                });
                changed.insert(name.clone(), content.unwrap_or(Json::Null));
            }
            let mut line = row_of(row.name, trusting, &after);
            let object = line.as_object_mut().unwrap();
            let name = object.remove("path").unwrap();
            object.insert("name".to_owned(), name);
            object.insert("base".to_owned(), format!("bundles/{}", row.base.name()).into());
            object.insert("files".to_owned(), changed.into());
            line
        }),
    );

    let mut count = 0;
    for line in read_lines("tampered.jsonl") {
        let name = line["name"].as_str().unwrap();
        let base = vectors_folder(FOLDER).join(line["base"].as_str().unwrap());
        let mut files = read_files(&base);
        for (file, content) in line["files"].as_object().unwrap() {
            match (content["text"].as_str(), content["base64"].as_str()) {
                (Some(text), _) => files.set(file, text),
                (_, Some(text)) => files.set(file, STANDARD.decode(text).unwrap()),
                _ => drop(files.0.remove(file)),
            }
        }
        let row = row_of(name, line["trust"] == true, &files);
        for member in ["strict", "first", "checks", "lenient_exit"] {
            assert_eq!(row[member], line[member], "{name}: {member}");
        }
        assert_eq!(line["strict"], "refuse", "{name}");
        count += 1;
    }
    assert_eq!(count, all_rows().count());
}

// --- tree ------------------------------------------------------------------------------------

/// The tree as RFC 6962 section 2.1 defines it, word for word.
fn root_by_definition(leaves: &[TreeHash]) -> TreeHash {
    match leaves {
        [] => empty_root(),
        [leaf] => *leaf,
        _ => {
            let middle = 1 << (usize::BITS - 1 - (leaves.len() - 1).leading_zeros());
            let (left, right) = leaves.split_at(middle);
            node_hash(&root_by_definition(left), &root_by_definition(right))
        }
    }
}

fn texts(hashes: &[TreeHash]) -> Json {
    hashes.iter().map(ToString::to_string).collect()
}

fn hash_of(value: &Json) -> TreeHash {
    TreeHash::from_base64(value.as_str().unwrap()).unwrap()
}

fn hashes_of(value: &Json) -> Vec<TreeHash> {
    value.as_array().unwrap().iter().map(hash_of).collect()
}

#[test]
fn tree_vectors() {
    const LEAVES: u64 = 9;
    let data: Vec<Vec<u8>> = (0..LEAVES).map(|n| vec![0x61; usize::try_from(n).unwrap()]).collect();
    let leaves: Vec<_> = data.iter().map(|bytes| leaf_hash(bytes)).collect();
    let mut tree = Tree::new();
    leaves.iter().for_each(|leaf| tree.push(*leaf));
    let mut inclusion = Vec::new();
    let mut consistency = Vec::new();
    for size in 0..=LEAVES {
        let root = tree.root_at(size).unwrap();
        assert_eq!(root, root_by_definition(&leaves[..usize::try_from(size).unwrap()]), "{size}");
        for index in 0..size {
            let proof = tree.inclusion(index, size).unwrap();
            inclusion.push(json!({"index": index, "size": size, "proof": texts(&proof)}));
        }
        for old in 0..=size {
            let proof = tree.consistency(old, size).unwrap();
            consistency.push(json!({"old": old, "new": size, "proof": texts(&proof)}));
        }
    }
    bless_json(
        "tree.json",
        &json!({
            "data_hex": data.iter().map(|bytes| encode_hex(bytes)).collect::<Vec<_>>(),
            "leaves": texts(&leaves),
            "roots": (0..=LEAVES).map(|size| tree.root_at(size).unwrap().to_string()).collect::<Vec<_>>(),
            "inclusion": inclusion,
            "consistency": consistency,
        }),
    );

    let vectors = read_json("tree.json");
    let (leaves, roots) = (hashes_of(&vectors["leaves"]), hashes_of(&vectors["roots"]));
    let number = |value: &Json| value.as_u64().unwrap();
    let at = |value: &Json| usize::try_from(number(value)).unwrap();
    for row in vectors["inclusion"].as_array().unwrap() {
        let proof = hashes_of(&row["proof"]);
        let (index, size) = (number(&row["index"]), number(&row["size"]));
        for (position, leaf) in leaves.iter().enumerate() {
            for (claimed, root) in (0u64..).zip(&roots) {
                let holds = verify_inclusion(leaf, index, claimed, &proof, root).is_ok();
                let same = position as u64 == index && claimed == size;
                assert_eq!(holds, same, "{row} for leaf {position} in {claimed}");
            }
        }
    }
    for row in vectors["consistency"].as_array().unwrap() {
        let proof = hashes_of(&row["proof"]);
        let (old, new) = (number(&row["old"]), number(&row["new"]));
        let (old_root, new_root) = (&roots[at(&row["old"])], &roots[at(&row["new"])]);
        verify_consistency(old, old_root, new, new_root, &proof).unwrap();
        if new < LEAVES {
            let other = &roots[at(&row["new"]) + 1];
            assert!(verify_consistency(old, old_root, new, other, &proof).is_err() || old == 0);
        }
    }
}

// --- notes, seals, proofs --------------------------------------------------------------------

fn note_vectors_content() -> Json {
    let log = SigningKey::from_seed("log.example/one", Algorithm::Ed25519, &LOG_SEED).unwrap();
    let key = |key: &SigningKey, seed: &[u8; 32]| {
        json!({
            "name": key.verifier().name(),
            "algorithm": key.verifier().algorithm().byte(),
            "seed_hex": encode_hex(seed),
            "verifier": key.verifier().to_string(),
        })
    };
    let text = "log.example/one\n2\n+qSwXYW3XAdiYQ0gLS3sCkwcvuwZqTsZ3gVAUwQFDSw=\n";
    let mut signed = Note::new(text.to_owned()).unwrap();
    signed.push(log.sign(text).unwrap()).unwrap();
    let both = cosigned(&signed, &witness(), COSIGNED_AT);
    let log_key = log.verifier().to_string();
    let witness_key = witness().verifier().to_string();
    let plain = both.to_string();
    let row = |name: &str, note: &str, verifier: &str, verifies: bool, timestamp: Option<u64>| {
        json!({"name": name, "note": note, "verifier": verifier, "verifies": verifies,
            "timestamp": timestamp})
    };
    let mut broken = both.clone();
    broken.signatures[0].bytes[0] ^= 1;
    let mut early = both.clone();
    early.signatures[1].bytes[7] ^= 1;
    let mut renamed = both.clone();
    renamed.signatures[0].name = "log.example/two".to_owned();
    let mut twice = both.clone();
    twice.signatures.push(broken.signatures[0].clone());
    let unknown = {
        let other = SigningKey::from_seed("other", Algorithm::Ed25519, &OTHER_SEED).unwrap();
        let mut note = both.clone();
        note.push(other.sign(text).unwrap()).unwrap();
        note.to_string()
    };
    json!({
        "keys": [key(&log, &LOG_SEED), key(&witness(), &WITNESS_SEED)],
        "notes": [
            row("signed by the log", &plain, &log_key, true, None),
            row("cosigned by the witness", &plain, &witness_key, true, Some(COSIGNED_AT)),
            row("a line of an unknown key is ignored", &unknown, &log_key, true, None),
            row("not signed by the witness", &signed.to_string(), &witness_key, false, None),
            row("signature damaged", &broken.to_string(), &log_key, false, None),
            row("time of a cosignature changed", &early.to_string(), &witness_key, false, None),
            row("name of the key changed", &renamed.to_string(), &log_key, false, None),
            row("a bad line beside a good one", &twice.to_string(), &log_key, false, None),
            row("text changed", &plain.replacen("\n2\n", "\n3\n", 1), &log_key, false, None),
            row("no final newline", plain.trim_end(), &log_key, false, None),
            row("carriage returns", &plain.replace('\n', "\r\n"), &log_key, false, None),
            row("no empty line", &plain.replace("\n\n", "\n"), &log_key, false, None),
            row("another dash", &plain.replace('\u{2014}', "-"), &log_key, false, None),
            row("two spaces", &plain.replace("one ", "one  "), &log_key, false, None),
        ],
    })
}

#[test]
fn note_vectors() {
    bless_json("notes.json", &note_vectors_content());
    let vectors = read_json("notes.json");
    for row in vectors["notes"].as_array().unwrap() {
        let key = VerifierKey::parse(row["verifier"].as_str().unwrap()).unwrap();
        let text = row["note"].as_str().unwrap();
        let verified = Note::parse(text).and_then(|note| {
            assert_eq!(note.to_string(), text);
            key.verify(&note)
        });
        assert_eq!(verified.is_ok(), row["verifies"].as_bool().unwrap(), "{row}");
        assert_eq!(
            verified.ok().and_then(|verified| verified.timestamp),
            row["timestamp"].as_u64()
        );
    }
    for row in vectors["keys"].as_array().unwrap() {
        let algorithm =
            if row["algorithm"] == 1 { Algorithm::Ed25519 } else { Algorithm::CosignatureV1 };
        let seed =
            wardkeep_evidence::hash::decode_hex(row["seed_hex"].as_str().unwrap().as_bytes());
        let key = SigningKey::from_seed(row["name"].as_str().unwrap(), algorithm, &seed.unwrap());
        assert_eq!(key.unwrap().verifier().to_string(), row["verifier"].as_str().unwrap());
    }
}

/// What a chain of seals says of each note.
fn feed_all(public: LogPublic, notes: &[String]) -> Vec<String> {
    let mut chain = SealChain::new(public);
    let feed = |text: &String| match Note::parse(text) {
        Err(_) => "seal-format".to_owned(),
        Ok(note) => match chain.feed(&note) {
            Ok(accepted) if accepted.clock_set_back => "ok, clock set back".to_owned(),
            Ok(_) => "ok".to_owned(),
            Err(error) => error.check_name().to_owned(),
        },
    };
    notes.iter().map(feed).collect()
}

#[test]
fn seal_vectors() {
    let keys = LogKeys::usual();
    let other = LogKeys::new(&OTHER_SEED, &EPOCH_SEED);
    let tree = sample().tree();
    let notes = keys.seals(&tree, &[0, 2, 2, 6]);
    let edited = |note: &Note, from: &str, to: &str| {
        assert!(note.text.contains(from));
        let mut note = note.clone();
        note.text = note.text.replacen(from, to, 1);
        note
    };
    let mut unsigned = notes[1].clone();
    unsigned.signatures.remove(1);
    let set_back = {
        let root = tree.root_at(2).unwrap();
        let slots = (crate::lab::FIRST_SLOT - 9, crate::lab::FIRST_SLOT - 9);
        let log = keys.public.signing_key(&LOG_SEED).unwrap();
        wardkeep_evidence::seal::sign_seal(&keys.public, &log, &keys.epoch(1), slots, 2, root)
            .unwrap()
    };
    let chain = |name: &str, chain: &[&Note]| {
        let texts: Vec<_> = chain.iter().map(ToString::to_string).collect();
        let results = feed_all(keys.public, &texts);
        json!({"name": name, "notes": texts, "results": results})
    };
    let [first, second, third, fourth] = &notes[..] else { panic!("four seals") };
    let shrunk = keys.seal(&tree, 2, 1);
    bless_json(
        "seals.json",
        &json!({
            "log_seed_hex": encode_hex(&LOG_SEED),
            "epoch_0_seed_hex": encode_hex(&EPOCH_SEED),
            "public": keys.public.to_string(),
            "origin": keys.public.origin(),
            "epochs": (0..4).map(|number| {
                let key: EpochKey = keys.epoch(number);
                json!({"epoch": number, "seed_hex": encode_hex(key.seed()),
                    "public": TreeHash(key.public()).to_string()})
            }).collect::<Vec<_>>(),
            "file": String::from_utf8(framed(&notes)).unwrap(),
            "chains": [
                chain("all good", &[first, second, third, fourth]),
                chain("epoch missing", &[first, third, fourth]),
                chain("first epoch missing", &[second, third]),
                chain("epoch doubled", &[first, second, second, third]),
                chain("log shrank", &[first, second, &shrunk]),
                chain("clock set back", &[first, &set_back]),
                chain("size edited", &[first, &edited(second, "\n2\n", "\n3\n")]),
                chain("another log", &[&other.seal(&tree, 0, 0), first]),
                chain("epoch did not sign", &[first, &unsigned]),
                chain("line of the epoch edited", &[&edited(first, "epoch 0", "epoch 00")]),
            ],
        }),
    );

    let vectors = read_json("seals.json");
    let public: LogPublic = vectors["public"].as_str().unwrap().parse().unwrap();
    assert_eq!(public.origin(), vectors["origin"].as_str().unwrap());
    let mut framed = String::new();
    for row in vectors["chains"].as_array().unwrap() {
        let strings = |value: &Json| -> Vec<String> {
            value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let (notes, results) = (strings(&row["notes"]), strings(&row["results"]));
        assert_eq!(feed_all(public, &notes), results, "{}", row["name"]);
        if row["name"] == "all good" {
            assert_eq!(results, ["ok"; 4]);
            framed = notes.iter().map(|text| frame(&Note::parse(text).unwrap())).collect();
        } else {
            assert_ne!(results, ["ok"; 4][..results.len().min(4)], "{}", row["name"]);
        }
    }
    assert_eq!(framed, vectors["file"].as_str().unwrap());
}

#[test]
fn proof_vectors() {
    let keys = LogKeys::usual();
    let files = sample();
    let (tree, entries, records) = (files.tree(), files.entries(), files.records());
    let note = cosigned(&keys.seal(&tree, 0, 6), &witness(), COSIGNED_AT);
    let mut rows = Vec::new();
    let mut outputs = BTreeMap::new();
    let mut add = |name: &str, text: String, leaf: TreeHash, verifies: bool| {
        rows.push(json!({"file": format!("proofs/{name}.tlog-proof"), "leaf": leaf.to_string(),
            "verifies": verifies}));
        outputs.insert(format!("{name}.tlog-proof"), text.into_bytes());
    };
    for entry in &entries {
        let hashes = tree.inclusion(entry.index, 6).unwrap();
        let extra = (entry.index == 3).then(|| {
            let mut line = Vec::new();
            records[3].write_line(&mut line);
            line
        });
        let proof = TlogProof { extra, index: entry.index, hashes, note: note.clone() };
        add(&format!("entry-{}", entry.index), proof.to_string(), entry.leaf(), true);
    }
    let good = TlogProof {
        extra: None,
        index: 4,
        hashes: tree.inclusion(4, 6).unwrap(),
        note: note.clone(),
    };
    let leaf = entries[4].leaf();
    add("other-leaf", good.to_string(), entries[5].leaf(), false);
    add("other-index", TlogProof { index: 5, ..good.clone() }.to_string(), leaf, false);
    add(
        "short",
        TlogProof { hashes: good.hashes[1..].to_vec(), ..good.clone() }.to_string(),
        leaf,
        false,
    );
    let mut long = good.clone();
    long.hashes.push(empty_root());
    add("long", long.to_string(), leaf, false);
    add("other-header", good.to_string().replace("@v1", "@v2"), leaf, false);
    add("cut-off", good.to_string().split_once("\n\n").unwrap().0.to_owned(), leaf, false);
    add("outside", TlogProof { index: 6, ..good.clone() }.to_string(), leaf, false);
    let mut other = good;
    other.note = cosigned(&keys.seal(&tree, 0, 5), &witness(), COSIGNED_AT);
    add("smaller-tree", other.to_string(), leaf, false);
    bless_folder(&vectors_folder(FOLDER).join("proofs"), &outputs);
    bless_json(
        "proofs.json",
        &json!({
            "log": keys.public.log_key().to_string(),
            "witness": witness().verifier().to_string(),
            "proofs": rows,
        }),
    );

    let vectors = read_json("proofs.json");
    let log = VerifierKey::parse(vectors["log"].as_str().unwrap()).unwrap();
    let witness = VerifierKey::parse(vectors["witness"].as_str().unwrap()).unwrap();
    for row in vectors["proofs"].as_array().unwrap() {
        let path = vectors_folder(FOLDER).join(row["file"].as_str().unwrap());
        let text = std::fs::read_to_string(path).unwrap();
        let proven = TlogProof::parse(&text).and_then(|proof| {
            log.verify(&proof.note).unwrap();
            assert_eq!(witness.verify(&proof.note).unwrap().timestamp, Some(COSIGNED_AT));
            proof.verify(&hash_of(&row["leaf"]))
        });
        assert_eq!(proven.is_ok(), row["verifies"].as_bool().unwrap(), "{row}");
    }
}
