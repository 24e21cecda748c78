//! Seals beside a log: how far signatures and witnesses reach, and what they catch.

use std::collections::HashSet;

use super::ids::Ids;
use super::part::{self, PART, PART_ENTRIES, PartDescription, PartReport};
use crate::check::{Check, Finding, Findings, Mode, Place};
use crate::checkpoint::Checkpoint;
use crate::hash::RecordId;
use crate::merkle::{self, Frontier, TreeHash};
use crate::note::{Algorithm, Note, NoteError, VerifierKey};
use crate::seal::{Frame, LogPublic, SealChain, frames};
use crate::source::{Member, SEALS, Source};

/// Files that may stand under `seals/`.
pub(crate) const FILES: [&str; 5] = [LOG_PUBLIC, CHECKPOINTS, COSIGNED, PART, PART_ENTRIES];

/// The log's public keys, under `seals/`.
pub const LOG_PUBLIC: &str = "log.pub";
/// The seals, framed, under `seals/`.
pub const CHECKPOINTS: &str = "checkpoints";
/// Seals with the cosignatures of witnesses, framed, under `seals/`.
pub const COSIGNED: &str = "cosigned";
/// Largest file under `seals/` that is read whole: some 400,000 seals, eleven years of epochs.
const MAX_SEALS_BYTES: u64 = 256 << 20;

/// Keys that the caller trusts.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The log that this must be; without it, the keys that lie beside the log are used, which
    /// says who sealed it but not that it is the log you think.
    pub log: Option<LogPublic>,
    /// Witnesses whose cosignatures count.
    pub witnesses: Vec<VerifierKey>,
    /// Whether each of these witnesses must vouch for something; otherwise one that does not is
    /// only missing from the report.
    pub demand_witnesses: bool,
}

impl Trust {
    /// Names of the witnesses that must vouch for something.
    fn demanded(&self) -> Vec<String> {
        let demanded = self.witnesses.iter().filter(|_| self.demand_witnesses);
        demanded.map(|key| key.name().to_owned()).collect()
    }
}

/// A finding for each demanded witness that `reached` lacks.
fn demand(demanded: &[String], reached: &[WitnessReach], findings: &mut Findings) {
    for name in demanded {
        if !reached.iter().any(|reach| reach.name == *name) {
            let place = Place::file(format!("{SEALS}/{COSIGNED}"));
            let expected = format!("a cosignature of {name}");
            let finding = Finding::new(Check::WitnessMissing, place, expected, "none");
            findings.push(Mode::Strict, finding);
        }
    }
}

/// A finding where the caller named the log, and nothing of what is here is known to be of it.
fn demand_signed(report: &SealReport, entries: u64, signed: u64, findings: &mut Findings) {
    if report.pinned && entries > 0 && signed == 0 {
        let place = Place::file(format!("{SEALS}/{CHECKPOINTS}"));
        let expected = format!("a seal of {} over entries that are here", report.origin);
        let found = format!("none: {entries} entries that no seal covers");
        findings.push(Mode::Strict, Finding::new(Check::SealMissing, place, expected, found));
    }
}

/// How far seals and witnesses reach.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct SealReport {
    /// Name of the log, which is a hash of its keys.
    pub origin: String,
    /// Whether the caller named the log's keys; otherwise they came with the log.
    pub pinned: bool,
    /// Number of good seals.
    pub seals: u64,
    /// Entries covered by good seals.
    pub signed_to: u64,
    /// When the last good seal's time slot began, in seconds since 1970.
    pub signed_at: Option<u64>,
    /// Each trusted witness that cosigned, and how far.
    pub witnesses: Vec<WitnessReach>,
    /// Entries that no seal covers yet.
    pub unsealed: u64,
    /// Epochs at which the clock had been set back.
    pub clock_set_back: Vec<u64>,
    /// Pieces of the seal files that are no note, as a crash in the middle of writing leaves them.
    pub damaged: u64,
}

/// How far one witness reaches.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WitnessReach {
    /// Name of the witness.
    pub name: String,
    /// Entries that it vouches for.
    pub to: u64,
    /// When it cosigned, in seconds since 1970.
    pub at: u64,
}

/// A root that the log must have at a size.
#[derive(Debug)]
struct Head {
    size: u64,
    root: TreeHash,
    place: Place,
    /// Witnesses that vouch for it, with their times; none for the log's own seal.
    vouchers: Vec<(String, u64)>,
}

impl Head {
    fn is_seal(&self) -> bool {
        self.vouchers.is_empty()
    }
}

/// The seals of a log while its leaves are read.
#[derive(Debug)]
pub struct SealCheck {
    heads: Vec<Head>,
    next: usize,
    frontier: Frontier,
    report: SealReport,
    last_signed: Option<(u64, TreeHash)>,
    demanded: Vec<String>,
}

/// Checks seal notes that lie in `checkpoints` and `cosigned` (both framed) for the log `public`.
/// Feed the result the leaves of the log.
pub fn check_notes(
    public: &LogPublic,
    trust: &Trust,
    checkpoints: &[u8],
    cosigned: &[u8],
    findings: &mut Findings,
) -> SealCheck {
    let report = SealReport {
        origin: public.origin(),
        pinned: trust.log.as_ref() == Some(public),
        ..SealReport::default()
    };
    let mut check = SealCheck {
        heads: Vec::new(),
        next: 0,
        frontier: Frontier::new(),
        report,
        last_signed: None,
        demanded: trust.demanded(),
    };
    if let Some(expected) = trust.log.as_ref().filter(|expected| *expected != public) {
        let place = Place::file(format!("{SEALS}/{LOG_PUBLIC}"));
        let (expected, found) = (expected.origin(), public.origin());
        findings.push(Mode::Strict, Finding::new(Check::SealOrigin, place, expected, found));
    }
    check.read_seals(public, checkpoints, findings);
    check.read_cosigned(public, trust, cosigned, findings);
    check.heads.sort_by_key(|head| head.size);
    check.compare_heads(findings);
    check
}

impl SealCheck {
    fn read_seals(&mut self, public: &LogPublic, bytes: &[u8], findings: &mut Findings) {
        let mut chain = SealChain::new(*public);
        for (number, frame) in frames(bytes).enumerate() {
            let place = || Place::file(format!("{SEALS}/{CHECKPOINTS}")).at(number as u64);
            let text = match frame {
                Frame::Note { text, .. } => text,
                Frame::Damaged { .. } => {
                    self.report.damaged += 1;
                    continue;
                }
            };
            let accepted = Note::parse(text)
                .map_err(|error| (Check::SealFormat, error.to_string()))
                .and_then(|note| {
                    chain.feed(&note).map_err(|error| {
                        let check = Check::from_name(error.check_name());
                        (check.unwrap_or(Check::SealFormat), error.to_string())
                    })
                });
            match accepted {
                Ok(accepted) => {
                    let seal = accepted.seal;
                    self.report.seals += 1;
                    if accepted.clock_set_back {
                        self.report.clock_set_back.push(seal.epoch);
                    }
                    self.report.signed_at = seal.slots.1.checked_mul(crate::seal::SLOT_SECONDS);
                    self.last_signed = Some((seal.size, seal.root));
                    self.heads.push(Head {
                        size: seal.size,
                        root: seal.root,
                        place: Place::file(format!("{SEALS}/{CHECKPOINTS}")).at(seal.epoch),
                        vouchers: Vec::new(),
                    });
                }
                Err((check, found)) => findings
                    .push(Mode::Strict, Finding::new(check, place(), "the next good seal", found)),
            }
        }
    }

    fn read_cosigned(
        &mut self,
        public: &LogPublic,
        trust: &Trust,
        bytes: &[u8],
        findings: &mut Findings,
    ) {
        let origin = public.origin();
        for (number, frame) in frames(bytes).enumerate() {
            let place = || Place::file(format!("{SEALS}/{COSIGNED}")).at(number as u64);
            let mut refuse = |check, expected: &str, found: String| {
                findings.push(Mode::Strict, Finding::new(check, place(), expected, found));
            };
            let Frame::Note { text, .. } = frame else {
                self.report.damaged += 1;
                continue;
            };
            let parsed = Note::parse(text).map_err(|error| error.to_string()).and_then(|note| {
                Checkpoint::parse(&note.text)
                    .map(|checkpoint| (note, checkpoint))
                    .map_err(|error| error.to_string())
            });
            let (note, checkpoint) = match parsed {
                Ok(parsed) => parsed,
                Err(error) => {
                    refuse(Check::SealFormat, "a cosigned checkpoint", error);
                    continue;
                }
            };
            if checkpoint.origin != origin {
                refuse(Check::SealOrigin, &origin, checkpoint.origin);
                continue;
            }
            // A witness vouches for what the log has signed, so the log's signature is there too.
            if let Err(error) = public.log_key().verify(&note) {
                refuse(Check::SealSignature, "a signature of the log", error.to_string());
                continue;
            }
            let mut vouchers = Vec::new();
            for key in &trust.witnesses {
                match key.verify(&note) {
                    Ok(verified) if key.algorithm() == Algorithm::CosignatureV1 => {
                        vouchers.push((key.name().to_owned(), verified.timestamp.unwrap_or(0)));
                    }
                    Ok(_) | Err(NoteError::NotSigned { .. }) => {}
                    Err(error) => {
                        let expected = format!("a cosignature of {}", key.name());
                        refuse(Check::WitnessSignature, &expected, error.to_string());
                    }
                }
            }
            if !vouchers.is_empty() {
                let Checkpoint { size, root, .. } = checkpoint;
                self.heads.push(Head { size, root, place: place(), vouchers });
            }
        }
    }

    /// Takes a head that the log was found to have.
    fn confirmed(&mut self, index: usize) {
        let Some(head) = self.heads.get(index) else { return };
        if head.is_seal() {
            self.report.signed_to = self.report.signed_to.max(head.size);
        }
        for (name, at) in &head.vouchers {
            let (to, at) = (head.size, *at);
            match self.report.witnesses.iter_mut().find(|reach| reach.name == *name) {
                Some(reach) if (reach.to, reach.at) < (to, at) => (reach.to, reach.at) = (to, at),
                Some(_) => {}
                None => self.report.witnesses.push(WitnessReach { name: name.clone(), to, at }),
            }
        }
    }

    /// For a part, whose leaves are not those of the log: compares the heads of the witnesses with
    /// the seals of the same size. A head that no seal stands beside counts for nothing.
    fn confirm_by_seals(&mut self, findings: &mut Findings) {
        for index in self.next..self.heads.len() {
            let head = &self.heads[index];
            if head.is_seal() {
                continue;
            }
            let mut seals =
                self.heads.iter().filter(|seal| seal.is_seal() && seal.size == head.size);
            let Some(seal) = seals.next() else { continue };
            if seal.root == head.root {
                self.confirmed(index);
                continue;
            }
            let expected = format!("root {} of {} entries", head.root, head.size);
            let found = format!("root {} in a seal", seal.root);
            let finding = Finding::new(Check::WitnessHead, head.place.clone(), expected, found);
            findings.push(Mode::Strict, finding);
        }
    }

    /// Goes on behind `frontier` instead of from the start. Heads over fewer leaves are not compared;
    /// gives how many. What is skipped holds only if a later head is found to hold.
    pub fn resume(&mut self, frontier: Frontier, findings: &mut Findings) -> u64 {
        let before = self.heads.partition_point(|head| head.size < frontier.size());
        let skipped = before.saturating_sub(self.next);
        self.next = self.next.max(before);
        self.frontier = frontier;
        self.compare_heads(findings);
        skipped as u64
    }

    /// The tree over the leaves so far.
    #[must_use]
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Takes the next leaf of the log.
    pub fn push_leaf(&mut self, leaf: TreeHash, findings: &mut Findings) {
        self.frontier.push(leaf);
        self.compare_heads(findings);
    }

    fn compare_heads(&mut self, findings: &mut Findings) {
        let size = self.frontier.size();
        while let Some(head) = self.heads.get(self.next).filter(|head| head.size <= size) {
            let index = self.next;
            self.next += 1;
            let root = self.frontier.root();
            if head.root == root {
                self.confirmed(index);
                continue;
            }
            let check = if head.is_seal() { Check::SealRoot } else { Check::WitnessHead };
            let expected = format!("root {} of {} entries", head.root, head.size);
            let found = format!("root {root}");
            findings.push(Mode::Strict, Finding::new(check, head.place.clone(), expected, found));
        }
    }

    /// Ends the log at `entries`; seals beyond that show that its end was cut off.
    pub fn finish(mut self, entries: u64, findings: &mut Findings) -> SealReport {
        for head in &self.heads[self.next.min(self.heads.len())..] {
            let check = if head.is_seal() { Check::SealTruncated } else { Check::WitnessHead };
            let expected = format!("at least {} entries", head.size);
            let found = format!("{entries}");
            findings.push(Mode::Strict, Finding::new(check, head.place.clone(), expected, found));
        }
        // Only now is it known which heads are those of this log.
        demand(&self.demanded, &self.report.witnesses, findings);
        self.report.unsealed = entries.saturating_sub(self.report.signed_to);
        self.report
    }
}

/// What a bundle has under `seals/`.
#[derive(Debug, Default)]
pub(crate) struct Sealed {
    check: Option<SealCheck>,
    part: Option<PartDescription>,
    omitted: HashSet<RecordId>,
    findings: Findings,
}

impl Sealed {
    pub(crate) fn load(
        source: &mut dyn Source,
        members: &[Member],
        trust: &Trust,
        findings: &mut Findings,
    ) -> Self {
        let size = |name: &str| {
            let path = format!("{SEALS}/{name}");
            members.iter().find(|member| member.name == path).map(|member| member.size)
        };
        let present = |name: &str| size(name).is_some();
        let read_whole = |source: &mut dyn Source, name: &str, findings: &mut Findings| {
            read_whole(source, name, size(name).unwrap_or(0), findings)
        };
        let mut sealed = Self::default();
        if present(PART) {
            let bytes = read_whole(source, PART, findings);
            match serde_json::from_slice::<PartDescription>(&bytes) {
                Ok(part) if part.version != 1 => {
                    refuse(
                        findings,
                        Check::PartFormat,
                        PART,
                        "version 1",
                        part.version.to_string(),
                    );
                }
                Ok(part) => {
                    if part.sealed > part.total {
                        let found = format!("{} sealed", part.sealed);
                        let expected = format!("at most {} entries", part.total);
                        refuse(findings, Check::PartFormat, PART, &expected, found);
                    }
                    sealed.omitted = part.omitted_parents.iter().copied().collect();
                    sealed.part = Some(part);
                }
                Err(error) => {
                    refuse(findings, Check::PartFormat, PART, "a description", error.to_string());
                }
            }
        } else if present(PART_ENTRIES) {
            let found = "no description".to_owned();
            refuse(findings, Check::PartFormat, PART_ENTRIES, "seals/part.json beside it", found);
        }
        if !present(LOG_PUBLIC) {
            for name in [CHECKPOINTS, COSIGNED] {
                if present(name) {
                    let found = "no key".to_owned();
                    refuse(findings, Check::SealFormat, name, "seals/log.pub beside it", found);
                }
            }
            if let Some(log) = &trust.log {
                let found = "an unsealed bundle".to_owned();
                refuse(findings, Check::SealOrigin, LOG_PUBLIC, &log.origin(), found);
            }
            demand(&trust.demanded(), &[], findings);
            return sealed;
        }
        let text = read_whole(source, LOG_PUBLIC, findings);
        let text = String::from_utf8_lossy(&text);
        match text.strip_suffix('\n').unwrap_or(&text).parse::<LogPublic>() {
            Ok(public) => {
                let mut read = |name| {
                    if present(name) { read_whole(source, name, findings) } else { Vec::new() }
                };
                let (checkpoints, cosigned) = (read(CHECKPOINTS), read(COSIGNED));
                // A bundle is written in one go: unlike a journal it has no torn pieces.
                for (name, bytes) in [(CHECKPOINTS, &checkpoints), (COSIGNED, &cosigned)] {
                    if frames(bytes).any(|frame| matches!(frame, Frame::Damaged { .. })) {
                        let found = "bytes that belong to none".to_owned();
                        refuse(findings, Check::SealFormat, name, "whole notes", found);
                    }
                }
                sealed.check = Some(check_notes(&public, trust, &checkpoints, &cosigned, findings));
            }
            Err(error) => {
                refuse(findings, Check::SealFormat, LOG_PUBLIC, "the log's keys", error.to_string())
            }
        }
        sealed
    }

    /// Parents that the part says it leaves out.
    pub(crate) fn omitted_parents(&self) -> &HashSet<RecordId> {
        &self.omitted
    }

    /// Whether the entries of the bundle are the leaves of the log; those of a part are not.
    pub(crate) fn wants_leaves(&self) -> bool {
        self.check.is_some() && self.part.is_none()
    }

    pub(crate) fn push_leaf(&mut self, leaf: TreeHash) {
        if let Some(check) = &mut self.check {
            check.push_leaf(leaf, &mut self.findings);
        }
    }

    pub(crate) fn finish(
        mut self,
        source: &mut dyn Source,
        ids: &Ids,
        records: u64,
        entries: u64,
        findings: &mut Findings,
    ) -> (Option<SealReport>, Option<PartReport>) {
        findings.append(std::mem::take(&mut self.findings));
        let Some(part) = self.part else {
            let report = self.check.map(|check| check.finish(entries, findings));
            if let Some(report) = &report {
                demand_signed(report, entries, report.signed_to, findings);
            }
            return (report, None);
        };
        if let Some(check) = &mut self.check {
            check.confirm_by_seals(findings);
            demand(&check.demanded, &check.report.witnesses, findings);
        }
        // The proofs lead to the newest seal, and the part names its size: a part that named less
        // could pass off entries that a seal covers as not covered yet.
        let head = self.check.as_ref().and_then(|check| check.last_signed);
        let newest = head.map_or(0, |(size, _)| size);
        if newest != part.sealed {
            let found = format!("one over {newest}");
            let expected = format!("a newest seal over {} entries", part.sealed);
            refuse(findings, Check::PartProof, PART, &expected, found);
        }
        let head = head.filter(|(size, _)| *size == part.sealed && *size > 0);
        let (proven, unsealed) = part::check_entries(source, ids, records, &part, head, findings);
        let origin = self.check.as_ref().map(|check| check.report.origin.clone());
        let report = PartReport {
            origin: origin.unwrap_or_default(),
            total: part.total,
            proven,
            unsealed,
            omitted_parents: part.omitted_parents.len() as u64,
            selection: part.selection,
        };
        let seals = self.check.map(|check| {
            let (signed_to, _) = head.unwrap_or((0, merkle::empty_root()));
            SealReport { signed_to, unsealed, ..check.report }
        });
        if let Some(seals) = &seals {
            demand_signed(seals, records, proven, findings);
        }
        (seals, Some(report))
    }
}

fn read_whole(source: &mut dyn Source, name: &str, size: u64, findings: &mut Findings) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let too_large = |size: u64, findings: &mut Findings| {
        let expected = format!("at most {MAX_SEALS_BYTES} bytes");
        refuse(findings, Check::SealFormat, name, &expected, size.to_string());
    };
    if size > MAX_SEALS_BYTES {
        too_large(size, findings);
        return bytes;
    }
    let read = source.open(&format!("{SEALS}/{name}")).map(|reader| {
        reader.take(MAX_SEALS_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())
    });
    if bytes.len() as u64 > MAX_SEALS_BYTES {
        too_large(bytes.len() as u64, findings);
        return Vec::new();
    }
    match read {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => refuse(findings, Check::SealFormat, name, "a readable file", error),
        Err(error) => {
            refuse(findings, Check::SealFormat, name, "a readable file", error.to_string());
        }
    }
    bytes
}

pub(super) fn refuse(
    findings: &mut Findings,
    check: Check,
    name: &str,
    expected: &str,
    found: String,
) {
    let place = Place::file(format!("{SEALS}/{name}"));
    findings.push(Mode::Strict, Finding::new(check, place, expected, found));
}
