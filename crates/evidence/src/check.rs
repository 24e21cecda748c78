//! The named checks of `verify`, and what they found.

use std::fmt;

/// Which exit code of v0.1 a failed check leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The bundle is readable but does not hold together: exit 2.
    Integrity,
    /// The bundle breaks the schema: exit 3.
    Schema,
    /// A file or line cannot be read at all: exit 4.
    Parse,
}

/// Who makes a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// v0.1 and strict.
    Both,
    /// Only strict: v0.1 lets it pass.
    Strict,
    /// Only v0.1: strict knows more than it.
    V01,
}

macro_rules! checks {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $class:ident, $scope:ident;)*) => {
        /// A check of `verify`. Its name is stable: scripts may match on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Check {
            $($(#[$doc])* $variant,)*
        }

        impl Check {
            /// All checks, in the order of the table in `docs/formats.md`.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Which exit code it leads to.
            #[must_use]
            pub fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }

            fn scope(self) -> Scope {
                match self { $(Self::$variant => Scope::$scope,)* }
            }
        }
    };
}

checks! {
    /// `manifest.json` cannot be opened or read.
    ManifestUnreadable = "manifest-unreadable", Parse, Both;
    /// `manifest.json` is not JSON.
    ManifestJson = "manifest-json", Parse, Both;
    /// `manifest.json` lacks a member, has one too many or one of the wrong form.
    ManifestSchema = "manifest-schema", Schema, Both;
    /// A key stands twice in `manifest.json`.
    ManifestDuplicateKey = "manifest-duplicate-key", Integrity, Strict;
    /// `records.jsonl` cannot be opened or read.
    RecordsUnreadable = "records-unreadable", Parse, Both;
    /// A line is longer than the limit; what follows was not read.
    LineTooLong = "line-too-long", Parse, Both;
    /// An empty line.
    LineBlank = "line-blank", Integrity, Strict;
    /// White space stands before or after what a line holds, as a carriage return does.
    LinePadding = "line-padding", Integrity, Strict;
    /// The last line does not end in a newline.
    LineUnterminated = "line-unterminated", Integrity, Strict;
    /// A line of `records.jsonl` is not JSON.
    RecordJson = "record-json", Parse, Both;
    /// A record lacks a member or has one of the wrong kind.
    RecordField = "record-field", Parse, Both;
    /// A record type that v0.1 does not know.
    RecordTypeExtended = "record-type-extended", Parse, V01;
    /// A member of a record is of the right kind and the wrong form.
    RecordSchema = "record-schema", Schema, Both;
    /// A key stands twice in one object of a record.
    RecordDuplicateKey = "record-duplicate-key", Integrity, Strict;
    /// A record has a member that the format does not know.
    RecordUnknownMember = "record-unknown-member", Integrity, Strict;
    /// `meta.ts` is spelled right but is no date.
    RecordTimestamp = "record-timestamp", Integrity, Strict;
    /// The id is not the hash of the record.
    RecordId = "record-id", Integrity, Both;
    /// Two records have the same id.
    RecordDuplicate = "record-duplicate", Integrity, Strict;
    /// A parent is nowhere in the bundle.
    RecordParentUnknown = "record-parent-unknown", Integrity, Both;
    /// A parent stands at or after its child.
    RecordParentLater = "record-parent-later", Integrity, Strict;
    /// The blob a record names is not there.
    RecordBlobMissing = "record-blob-missing", Integrity, Both;
    /// The blob is not as long as the record says.
    RecordBlobSize = "record-blob-size", Integrity, Strict;
    /// `audit-log.jsonl` cannot be opened or read.
    AuditUnreadable = "audit-unreadable", Parse, Both;
    /// A line of `audit-log.jsonl` is not JSON.
    EntryJson = "entry-json", Parse, Both;
    /// An entry lacks a member or has one of the wrong kind.
    EntryField = "entry-field", Parse, Both;
    /// A member of an entry is of the right kind and the wrong form.
    EntrySchema = "entry-schema", Schema, Both;
    /// `ts` of an entry is spelled right but is no date.
    EntryTimestamp = "entry-timestamp", Integrity, Strict;
    /// A key stands twice in an entry.
    EntryDuplicateKey = "entry-duplicate-key", Integrity, Strict;
    /// An entry has a member that the format does not know.
    EntryUnknownMember = "entry-unknown-member", Integrity, Strict;
    /// `idx` is not the position of the entry.
    EntryIndex = "entry-index", Integrity, Both;
    /// `prev` is not the hash of the entry before.
    EntryPrevious = "entry-previous", Integrity, Both;
    /// `entryHash` is not the hash of the entry.
    EntryHash = "entry-hash", Integrity, Both;
    /// An entry names a record that is not there.
    EntryWithoutRecord = "entry-without-record", Integrity, Strict;
    /// An entry names a record that an earlier entry named already.
    EntryRecordTwice = "entry-record-twice", Integrity, Strict;
    /// Entries and records stand in different order.
    EntryOrder = "entry-order", Integrity, Strict;
    /// A record has no entry.
    RecordWithoutEntry = "record-without-entry", Integrity, Strict;
    /// `audit_head` is not the hash of the last entry.
    ManifestAuditHead = "manifest-audit-head", Integrity, Both;
    /// `record_count` is not the number of records.
    ManifestRecordCount = "manifest-record-count", Integrity, Both;
    /// `blob_count` is not the number of blobs.
    ManifestBlobCount = "manifest-blob-count", Integrity, Both;
    /// A root record is nowhere in the bundle.
    ManifestRootUnknown = "manifest-root-unknown", Integrity, Both;
    /// `root_records` is not the list of records without parents, in order.
    ManifestRoots = "manifest-roots", Integrity, Strict;
    /// `blobs/` cannot be read.
    BlobsUnreadable = "blobs-unreadable", Parse, Both;
    /// A blob's bytes do not hash to its name.
    BlobHash = "blob-hash", Integrity, Both;
    /// Likewise, for a blob that no record names.
    BlobHashUnreferenced = "blob-hash-unreferenced", Integrity, Strict;
    /// A file in `blobs/` is not named by a hash.
    BlobName = "blob-name", Integrity, Strict;
    /// A blob is a link, a device, a pipe or a folder.
    BlobKind = "blob-kind", Integrity, Strict;
    /// A blob is over the size limit and was not read.
    BlobTooLarge = "blob-too-large", Integrity, Both;
    /// A file that the format does not know.
    FileUnexpected = "file-unexpected", Integrity, Strict;
    /// A file under `seals/` cannot be read or is malformed.
    SealFormat = "seal-format", Integrity, Strict;
    /// A seal names another log.
    SealOrigin = "seal-origin", Integrity, Strict;
    /// The log key did not sign the seal.
    SealSignature = "seal-signature", Integrity, Strict;
    /// A seal's epoch is missing before this one.
    SealEpochMissing = "seal-epoch-missing", Integrity, Strict;
    /// An epoch has a second seal.
    SealEpochDoubled = "seal-epoch-doubled", Integrity, Strict;
    /// The epoch key is not the one that the epoch before announced.
    SealEpochKey = "seal-epoch-key", Integrity, Strict;
    /// The epoch key did not sign the seal.
    SealEpochSignature = "seal-epoch-signature", Integrity, Strict;
    /// A seal covers fewer entries than the one before.
    SealSize = "seal-size", Integrity, Strict;
    /// A seal's time slots are out of order.
    SealSlots = "seal-slots", Integrity, Strict;
    /// The sealed root is not the root of the entries.
    SealRoot = "seal-root", Integrity, Strict;
    /// A seal covers more entries than there are: the end was cut off.
    SealTruncated = "seal-truncated", Integrity, Strict;
    /// The caller named the log's keys, and they have signed nothing of what is here.
    SealMissing = "seal-missing", Integrity, Strict;
    /// A cosignature of a known witness does not verify.
    WitnessSignature = "witness-signature", Integrity, Strict;
    /// A witness that the caller demands vouches for nothing here.
    WitnessMissing = "witness-missing", Integrity, Strict;
    /// A cosigned head is not a prefix of this log.
    WitnessHead = "witness-head", Integrity, Strict;
    /// The description of a partial bundle is malformed.
    PartFormat = "part-format", Integrity, Strict;
    /// An original entry of a partial bundle does not belong to its record, or not to its hash.
    PartEntry = "part-entry", Integrity, Strict;
    /// An original entry is not in the sealed tree.
    PartProof = "part-proof", Integrity, Strict;
    /// A journal segment is missing.
    SegmentMissing = "segment-missing", Integrity, Strict;
    /// A journal segment cannot be opened or read.
    SegmentUnreadable = "segment-unreadable", Parse, Strict;
    /// Bytes in the journal are no entry and no recovery record accounts for them.
    JournalGarbage = "journal-garbage", Integrity, Strict;
}

impl Check {
    /// Whether the given mode makes this check.
    #[must_use]
    pub fn applies(self, mode: Mode) -> bool {
        match mode {
            Mode::Strict => self.scope() != Scope::V01,
            Mode::Lenient => self.scope() != Scope::Strict,
        }
    }

    /// The check with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|check| check.name() == name)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How severe `verify` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everything that can be checked.
    #[default]
    Strict,
    /// What v0.1 checks, for its own verdict.
    Lenient,
}

/// Where a check failed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// File in the bundle or journal.
    pub file: String,
    /// Line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Position of the record or entry, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
}

impl Place {
    /// A whole file.
    #[must_use]
    pub fn file(name: impl Into<String>) -> Self {
        Self { file: name.into(), line: None, index: None }
    }

    /// A line of a file, counted from 1, that holds the record or entry before it in number.
    #[must_use]
    pub fn line(name: impl Into<String>, line: u64) -> Self {
        Self { file: name.into(), line: Some(line), index: None }
    }

    /// The same place with the position of the record or entry.
    #[must_use]
    pub fn at(mut self, index: u64) -> Self {
        self.index = Some(index);
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(formatter, " line {line}")?;
        }
        if let Some(index) = self.index {
            write!(formatter, " (index {index})")?;
        }
        Ok(())
    }
}

/// One failed check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check that failed.
    pub check: Check,
    /// Where.
    pub place: Place,
    /// What should have stood there.
    pub expected: String,
    /// What stood there, made harmless to print.
    pub found: String,
}

impl Finding {
    /// A finding; `expected` and `found` are cut and escaped so that they can be printed.
    #[must_use]
    pub fn new(
        check: Check,
        place: Place,
        expected: impl AsRef<str>,
        found: impl AsRef<str>,
    ) -> Self {
        Self {
            check,
            place,
            expected: printable(expected.as_ref()),
            found: printable(found.as_ref()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {}: expected {}, found {}",
            self.place, self.check, self.expected, self.found
        )
    }
}

impl serde::Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut object = serializer.serialize_struct("Finding", 4)?;
        object.serialize_field("check", self.check.name())?;
        object.serialize_field("place", &self.place)?;
        object.serialize_field("expected", &self.expected)?;
        object.serialize_field("found", &self.found)?;
        object.end()
    }
}

/// Findings, bounded in number: a hostile bundle can fail a check on every line.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    dropped: u64,
    worst: Option<Class>,
}

/// How many findings are kept; the rest is counted.
pub const MAX_FINDINGS: usize = 1000;

impl Findings {
    /// Adds a finding if `mode` makes its check.
    pub fn push(&mut self, mode: Mode, finding: Finding) {
        if !finding.check.applies(mode) {
            return;
        }
        self.worst = self.worst.max(Some(finding.check.class()));
        if self.kept.len() < MAX_FINDINGS {
            self.kept.push(finding);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds those findings whose check `mode` makes.
    pub fn push_all(&mut self, mode: Mode, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.push(mode, finding));
    }

    /// Counts findings that were made and not kept.
    pub fn count_dropped(&mut self, class: Class, count: u64) {
        self.worst = self.worst.max(Some(class));
        self.dropped += count;
    }

    /// Adds all of `other` behind these.
    pub fn append(&mut self, other: Self) {
        self.worst = self.worst.max(other.worst);
        self.dropped += other.dropped;
        for finding in other.kept {
            if self.kept.len() < MAX_FINDINGS {
                self.kept.push(finding);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// The findings kept, in the order they were made.
    #[must_use]
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// How many more there were.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The class that decides the exit code; `None` if nothing failed.
    #[must_use]
    pub fn worst(&self) -> Option<Class> {
        self.worst
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.worst.is_none()
    }
}

/// `text` cut to 160 characters, with control, format and private-use characters escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    const LIMIT: usize = 160;
    let mut out = String::with_capacity(text.len().min(LIMIT + 8));
    for (count, character) in text.chars().enumerate() {
        if count == LIMIT {
            out.push('…');
            break;
        }
        let harmless = match character {
            ' '..='~' => true,
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{ffff}'
            | '\u{e0000}'.. => false,
            _ => character as u32 > 0x9f,
        };
        if harmless {
            out.push(character);
        } else {
            out.extend(character.escape_unicode());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for &check in Check::ALL {
            assert_eq!(Check::from_name(check.name()), Some(check));
        }
    }

    #[test]
    fn printable_disarms_terminal_and_bidi() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}é"), "a\\u{1b}[31m\\u{202e}é");
        assert!(printable(&"x".repeat(1_000_000)).len() < 200);
    }

    #[test]
    fn findings_are_bounded() {
        let mut findings = Findings::default();
        for _ in 0..MAX_FINDINGS + 5 {
            findings.push(Mode::Strict, Finding::new(Check::RecordId, Place::file("f"), "a", "b"));
        }
        assert_eq!((findings.kept().len(), findings.dropped()), (MAX_FINDINGS, 5));
    }
}
