//! What `verify` found, as text and as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use wardkeep_evidence::check::{Finding, Mode};
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{Options, PartReport, Report, SealReport};

use crate::ui::Line;

/// The JSON form.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    bundle: String,
    verdict: &'static str,
    mode: &'static str,
    created_at: Option<&'a str>,
    records: u64,
    entries: u64,
    blobs: u64,
    unreferenced_blobs: u64,
    head: Option<String>,
    by_type: BTreeMap<&'static str, u64>,
    by_principal: BTreeMap<&'static str, u64>,
    findings: &'a [Finding],
    more_findings: u64,
    unauthenticated: Unauthenticated<'a>,
    seals: Option<&'a SealReport>,
    part: Option<&'a PartReport>,
}

#[derive(Serialize)]
struct Unauthenticated<'a> {
    records: u64,
    lines: &'a [u64],
    manifest: &'a [&'static str],
}

impl<'a> Answer<'a> {
    pub(super) fn new(bundle: &Path, report: &'a Report, options: &Options) -> Self {
        let by_type = report.by_type.iter().map(|(kind, count)| (kind.as_str(), *count));
        let by_principal =
            report.by_principal.iter().map(|(principal, count)| (principal.as_str(), *count));
        Self {
            bundle: bundle.display().to_string(),
            verdict: if report.passed() { "PASS" } else { "FAIL" },
            mode: match options.mode {
                Mode::Strict => "strict",
                Mode::Lenient => "lenient",
            },
            created_at: report.created_at.as_deref(),
            records: report.records,
            entries: report.entries,
            blobs: report.blobs,
            unreferenced_blobs: report.unreferenced_blobs,
            head: report.head.map(|head| head.to_string()),
            by_type: by_type.collect(),
            by_principal: by_principal.collect(),
            findings: report.findings.kept(),
            more_findings: report.findings.dropped(),
            unauthenticated: Unauthenticated {
                records: report.unauthenticated.count,
                lines: &report.unauthenticated.lines,
                manifest: &report.unauthenticated.manifest,
            },
            seals: report.seals.as_ref(),
            part: report.part.as_ref(),
        }
    }
}

/// The verdict in one line: with how far it reaches, so that nobody takes a bundle that holds together
/// for one that somebody vouches for. With `--lenient` it is the bare word of v0.1.
pub(super) fn headline(report: &Report, options: &Options) -> Line {
    let verdict = Line::from("Verification: ");
    match (report.passed(), options.mode) {
        (false, _) => verdict.bad("FAIL"),
        (true, Mode::Lenient) => verdict.good("PASS"),
        (true, Mode::Strict) => {
            verdict.good("PASS").plain(format!(" ({})", vouched(report, options)))
        }
    }
}

/// Who vouches for how much of it, of those that were named.
fn vouched(report: &Report, options: &Options) -> String {
    let Some(seals) = &report.seals else {
        return "it holds together; signed by nobody".to_owned();
    };
    let (what, signed, all) = match &report.part {
        Some(part) => ("records", part.proven, report.records),
        None => ("entries", seals.signed_to, report.entries),
    };
    let signed = match (signed, seals.pinned) {
        (0, _) => "it holds together; not signed yet".to_owned(),
        (_, false) => "it holds together; signed only by keys that came with it".to_owned(),
        (signed, true) => format!("{signed} of {all} {what} signed by the log that you named"),
    };
    let known = |name: &str| options.trust.witnesses.iter().any(|key| key.name() == name);
    match seals.witnesses.iter().filter(|reach| known(&reach.name)).count() {
        0 => signed,
        1 => format!("{signed}; seen by the witness that you named"),
        many => format!("{signed}; seen by {many} witnesses that you named"),
    }
}

/// The failed checks, a line each.
pub(super) fn findings(report: &Report) -> impl Iterator<Item = String> {
    let dropped = report.findings.dropped();
    let more = (dropped > 0).then(|| format!("and {dropped} more"));
    report.findings.kept().iter().map(Finding::to_string).chain(more)
}

/// What was looked at and how far each protection reaches: never more than was checked.
pub(super) fn reach(report: &Report, options: &Options) -> Vec<Vec<Line>> {
    let mut rows = Rows::default();
    if !report.passed() {
        rows.push("looked at", looked_at(report));
        return rows.0;
    }
    match report.records {
        0 => rows.push("records", "none".to_owned()),
        records => rows.push("records", format!("{records}, each under the hash of its content")),
    }
    match &report.head {
        Some(head) => rows.push("chain", format!("to entry {}, head {head}", report.entries)),
        None => rows.push("chain", "no entries".to_owned()),
    }
    if options.mode == Mode::Lenient {
        let hashed = report.blobs.saturating_sub(report.unreferenced_blobs);
        rows.push("blobs", format!("{} of {} hashed", hashed, report.blobs));
        rows.push("left out", "what v0.1 does not check; run without --lenient".to_owned());
        return rows.0;
    }
    if report.unreferenced_blobs > 0 {
        let unnamed = report.unreferenced_blobs;
        rows.push("blobs", format!("{} hashed, {unnamed} that no record names", report.blobs));
    } else {
        rows.push("blobs", format!("{} hashed", report.blobs));
    }
    if let Some(uncovered) = uncovered(report) {
        rows.push("not covered", uncovered);
    }
    match (&report.seals, &report.part) {
        (None, _) => rows.push(
            "seals",
            "none: whoever can write the bundle could have rewritten all of it".to_owned(),
        ),
        (Some(seals), part) => seal_rows(seals, part.as_ref(), report.entries, &mut rows),
    }
    witness_rows(report, options, &mut rows);
    if let Some(part) = &report.part {
        part_rows(part, &mut rows);
    }
    rows.0
}

#[derive(Default)]
struct Rows(Vec<Vec<Line>>);

impl Rows {
    fn push(&mut self, label: &str, text: String) {
        self.0.push(vec![Line::from(label), Line::from(text)]);
    }
}

fn looked_at(report: &Report) -> String {
    let (records, entries, blobs) = (report.records, report.entries, report.blobs);
    format!("records: {records}, entries: {entries}, blobs: {blobs}")
}

/// What lies in the bundle and no hash covers.
fn uncovered(report: &Report) -> Option<String> {
    let unauthenticated = &report.unauthenticated;
    let mut parts = Vec::new();
    if unauthenticated.count > 0 {
        let lines: Vec<String> = unauthenticated.lines.iter().map(u64::to_string).collect();
        let more = if unauthenticated.count > lines.len() as u64 { " …" } else { "" };
        let (count, lines) = (unauthenticated.count, lines.join(", "));
        parts.push(format!("`extensions` of {count} records (lines {lines}{more})"));
    }
    for name in &unauthenticated.manifest {
        parts.push(format!("`{name}` of the manifest"));
    }
    (!parts.is_empty()).then(|| format!("{}: anyone could have changed it", parts.join(", ")))
}

fn seal_rows(seals: &SealReport, part: Option<&PartReport>, entries: u64, rows: &mut Rows) {
    let SealReport { origin, signed_to, unsealed, .. } = seals;
    let last = seals.signed_at.map_or(String::new(), |at| format!(", the last of {}", time(at)));
    rows.push("seals", format!("{} by the log {origin}{last}", seals.seals));
    if part.is_none() {
        rows.push("signed", format!("{signed_to} of {entries} entries, {unsealed} not yet"));
    }
    if !seals.pinned {
        let text = "by keys that came with the bundle: name the ones you know with --log";
        rows.push("log keys", text.to_owned());
    }
    if !seals.clock_set_back.is_empty() {
        let epochs: Vec<String> = seals.clock_set_back.iter().map(u64::to_string).collect();
        rows.push("clock", format!("had been set back at epoch {}", epochs.join(", ")));
    }
    if seals.damaged > 0 {
        rows.push("damaged", format!("{} pieces of the seal files, not counted", seals.damaged));
    }
}

fn witness_rows(report: &Report, options: &Options, rows: &mut Rows) {
    let reached = report.seals.as_ref().map_or(&[][..], |seals| &seals.witnesses);
    for key in &options.trust.witnesses {
        let text = match reached.iter().find(|reach| reach.name == key.name()) {
            Some(reach) if report.part.is_some() => {
                format!("{} saw {} entries of the log at {}", reach.name, reach.to, time(reach.at))
            }
            Some(reach) => {
                let (to, entries) = (reach.to, report.entries);
                format!(
                    "{} vouches for {to} of {entries} entries at {}",
                    reach.name,
                    time(reach.at)
                )
            }
            None => format!("{} vouches for nothing here", key.name()),
        };
        rows.push("witness", text);
    }
    if options.trust.witnesses.is_empty() && report.seals.is_some() {
        rows.push("witness", "none asked for: name those you trust with --witness".to_owned());
    }
}

fn part_rows(part: &PartReport, rows: &mut Rows) {
    let log = if part.origin.is_empty() { "an unsealed log" } else { part.origin.as_str() };
    rows.push("part of", format!("{log}, which had {} entries", part.total));
    rows.push(
        "proven",
        format!(
            "{} records to be in the sealed log, {} not sealed yet",
            part.proven, part.unsealed
        ),
    );
    rows.push("left out", format!("{} parents of its records", part.omitted_parents));
    rows.push("chosen by", format!("{} (as the exporter says)", part.selection));
}

fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(Timestamp::from_unix);
    time.map_or_else(|| format!("second {seconds} since 1970"), |time| time.to_string())
}
