//! What verifying a journal found, as text and as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use wardkeep_evidence::check::{Check, Finding, Findings, Mode, Place};
use wardkeep_evidence::note::VerifierKey;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{SealReport, Trust};
use wardkeep_monitor::anchor::Surroundings;
use wardkeep_monitor::anchor::outbox::Outbox;
use wardkeep_monitor::anchor::outbox::Place as AnchorPlace;
use wardkeep_monitor::store::StoreReader;
use wardkeep_monitor::verify::JournalReport;

use crate::ui::Line;

/// The JSON form.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    state_dir: String,
    verdict: &'static str,
    segments: u64,
    records: u64,
    head: Option<String>,
    first: Option<&'a str>,
    last: Option<&'a str>,
    by_type: BTreeMap<&'static str, u64>,
    by_principal: BTreeMap<&'static str, u64>,
    findings: &'a [Finding],
    more_findings: u64,
    seals: Option<&'a SealReport>,
    recoveries: &'a BTreeMap<String, u64>,
    open_tail_bytes: u64,
}

impl<'a> Answer<'a> {
    pub(super) fn new(reader: &StoreReader, report: &'a JournalReport) -> Self {
        let span = report.span.as_ref();
        Self {
            state_dir: reader.path().display().to_string(),
            verdict: if report.passed() { "PASS" } else { "FAIL" },
            segments: report.segments,
            records: report.records,
            head: report.head.map(|head| head.to_string()),
            first: span.map(|(first, _)| first.as_str()),
            last: span.map(|(_, last)| last.as_str()),
            by_type: report.by_type.iter().map(|(kind, count)| (kind.as_str(), *count)).collect(),
            by_principal: report
                .by_principal
                .iter()
                .map(|(principal, count)| (principal.as_str(), *count))
                .collect(),
            findings: report.findings.kept(),
            more_findings: report.findings.dropped(),
            seals: report.seals.as_ref(),
            recoveries: &report.recoveries,
            open_tail_bytes: report.open_tail,
        }
    }
}

/// The keys of the witnesses that are configured as anchors.
pub(crate) fn configured_witnesses(reader: &StoreReader) -> Vec<VerifierKey> {
    let Ok(outbox) = Outbox::open(reader.path(), Surroundings::new(String::new().into())) else {
        return Vec::new();
    };
    let key = |place: &AnchorPlace| match place {
        AnchorPlace::Witness { key, .. } => VerifierKey::parse(key).ok(),
        _ => None,
    };
    outbox.list().iter().filter_map(|status| key(&status.config.place)).collect()
}

/// Bytes in the journal, for the progress line.
pub(crate) fn journal_bytes(reader: &StoreReader) -> u64 {
    let segments = reader.folder().segments().unwrap_or_default();
    let size = |segment| reader.folder().read_segment(segment).map_or(0, |(_, size)| size);
    segments.into_iter().map(size).sum()
}

/// A finding for each witness that was named and vouches for nothing.
pub(super) fn demand(named: &[VerifierKey], report: &mut JournalReport) {
    for key in named {
        let mut reached = report.seals.iter().flat_map(|seals| &seals.witnesses);
        if !reached.any(|reach| reach.name == key.name()) {
            let expected = format!("a cosignature of {}", key.name());
            let place = Place::file("cosigned");
            let finding = Finding::new(Check::WitnessMissing, place, expected, "none");
            report.findings.push(Mode::Strict, finding);
        }
    }
}

/// The failed checks, a line each.
pub(crate) fn findings(findings: &Findings) -> impl Iterator<Item = String> {
    let dropped = findings.dropped();
    let more = (dropped > 0).then(|| format!("and {dropped} more"));
    findings.kept().iter().map(Finding::to_string).chain(more)
}

/// What was looked at and how far each protection reaches: never more than was checked.
pub(crate) fn reach(report: &JournalReport, trust: &Trust) -> Vec<Vec<Line>> {
    let mut rows = Vec::new();
    let mut row = |label: &str, text: String| rows.push(vec![Line::from(label), Line::from(text)]);
    let records = report.records;
    if report.passed() {
        match &report.head {
            Some(head) => row("chain", format!("to record {records}, head {head}")),
            None => row("chain", "no records".to_owned()),
        }
    } else {
        row("looked at", format!("{records} records in {} segments", report.segments));
    }
    if let Some((first, last)) = &report.span {
        row("time", format!("{first} to {last}, by this machine's clock"));
    }
    match &report.seals {
        None => row("seals", "none: whoever can write the journal could rewrite all of it".into()),
        Some(seals) => {
            let when = seals.signed_at.map(time);
            row(
                "signed",
                match when {
                    Some(when) if seals.signed_to > 0 => {
                        format!(
                            "to record {} by {} seals, the last for {when}",
                            seals.signed_to, seals.seals
                        )
                    }
                    _ => format!("nothing yet, {} seals", seals.seals),
                },
            );
            let pinned = if seals.pinned { "the one you named" } else { "its keys lie beside it" };
            row("log", format!("{} ({pinned})", seals.origin));
            for reach in &seals.witnesses {
                let text = format!("{} to record {} at {}", reach.name, reach.to, time(reach.at));
                row("witnessed", text);
            }
            if seals.witnesses.is_empty() {
                row("witnessed", "by nobody: a restored older copy would not be noticed".into());
            }
            let witnessed = seals.witnesses.iter().map(|reach| reach.to).max().unwrap_or(0);
            row(
                "not covered",
                format!(
                    "{} records not sealed yet, {} not witnessed yet",
                    seals.unsealed,
                    records.saturating_sub(witnessed)
                ),
            );
            for epoch in &seals.clock_set_back {
                row("clock", format!("had been set back at epoch {epoch}"));
            }
            if seals.damaged > 0 {
                row("damaged", format!("{} pieces of the seal files, not counted", seals.damaged));
            }
        }
    }
    for (what, count) in &report.recoveries {
        row("recovered", format!("{what}, {count} times told of"));
    }
    if report.open_tail > 0 {
        row("open tail", format!("{} bytes at the end, torn or being written", report.open_tail));
    }
    let unheard = trust.witnesses.iter().filter(|key| {
        let mut reached = report.seals.iter().flat_map(|seals| &seals.witnesses);
        !reached.any(|reach| reach.name == key.name())
    });
    for key in unheard {
        row("witness", format!("{} vouches for nothing here", key.name()));
    }
    rows
}

pub(crate) fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(Timestamp::from_unix);
    time.map_or_else(|| format!("second {seconds} since 1970"), |time| time.to_string())
}
