//! Any bytes as a bundle: as a zip, and as the files of a directory with `\0\xff` between them.

#![no_main]

use std::io::{Cursor, Read};

use wardkeep_evidence::check::{Check, Mode};
use wardkeep_evidence::source::{Member, Source, SourceError, ZipSource};
use wardkeep_evidence::verify::{Options, Report, verify};

const NAMES: [&str; 9] = [
    "manifest.json",
    "records.jsonl",
    "audit-log.jsonl",
    "seals/log.pub",
    "seals/checkpoints",
    "seals/cosigned",
    "seals/part.json",
    "seals/entries.jsonl",
    "blobs/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
];

/// The first files of a bundle, in the order of the names above.
#[derive(Debug, Clone)]
struct Pieces(Vec<Vec<u8>>);

impl Source for Pieces {
    fn members(&mut self) -> Result<Vec<Member>, SourceError> {
        let member = |(name, bytes): (&&str, &Vec<u8>)| Member {
            name: (*name).to_owned(),
            size: bytes.len() as u64,
            regular: true,
        };
        Ok(NAMES.iter().zip(&self.0).map(member).collect())
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SourceError> {
        let found = NAMES.iter().zip(&self.0).find(|(known, _)| **known == name);
        match found {
            Some((_, bytes)) => Ok(Box::new(&bytes[..])),
            None => Err(SourceError::NotABundle(name.to_owned())),
        }
    }
}

fn run(source: &mut dyn Source, mode: Mode) -> Report {
    verify(source, &Options { mode, threads: 1, ..Options::default() })
}

fn judge(mut make: impl FnMut() -> Option<Box<dyn Source>>) {
    let Some(mut source) = make() else { return };
    let strict = run(&mut *source, Mode::Strict);
    let lenient = run(&mut *make().expect("the same as before"), Mode::Lenient);
    for finding in strict.findings.kept().iter().chain(lenient.findings.kept()) {
        let text = finding.to_string();
        assert!(!text.contains(|c: char| c.is_control()), "{text:?} can be printed");
    }
    if strict.passed() {
        assert_eq!(strict.records, strict.entries, "one entry a record");
        let by_type: u64 = strict.by_type.values().sum();
        assert_eq!(by_type, strict.records);
        let known = |check| check == Check::RecordTypeExtended;
        let only = lenient.findings.kept().iter().all(|finding| known(finding.check));
        assert!(only, "strict knows at least what v0.1 knows: {:?}", lenient.findings.kept());
    }
    if let Some(seals) = &strict.seals
        && strict.part.is_none()
    {
        assert!(seals.signed_to <= strict.entries, "no more signed than there is");
        assert!(seals.witnesses.is_empty(), "no witness is trusted here");
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    judge(|| {
        let bytes = Cursor::new(data.to_vec());
        ZipSource::read(bytes).ok().map(|zip| Box::new(zip) as Box<dyn Source>)
    });
    let mut pieces = vec![Vec::new()];
    let mut rest = data;
    while let Some((&first, after)) = rest.split_first() {
        if rest.starts_with(b"\0\xff") {
            pieces.push(Vec::new());
            rest = &rest[2..];
            continue;
        }
        pieces.last_mut().expect("never empty").push(first);
        rest = after;
    }
    judge(|| Some(Box::new(Pieces(pieces.clone()))));
});
