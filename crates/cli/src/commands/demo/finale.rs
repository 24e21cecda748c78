//! What a demo hands out at the end: a bundle of what was recorded, verified, and a report as a page.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::bundle::{StagedFile, export_zip};
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{Options, Trust, verify};
use wardkeep_monitor::export::{Selection, export};
use wardkeep_monitor::index::Asked;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::prove::{Query, page, prove};
use wardkeep_monitor::store::{Store, StoreConfig, StoreReader};

use super::stage::{Stage, broken};
use crate::commands::prove::gravest;
use crate::error::CliError;

const BUNDLE: &str = "evidence.zip";
const REPORT: &str = "report.html";
/// After so many seconds a seal is due.
const EPOCH: i64 = 900;

/// What was handed out.
#[derive(Debug, Serialize)]
pub(super) struct Handed {
    /// Where they are; nothing, where they were removed again.
    pub(super) bundle: Option<String>,
    pub(super) report: Option<String>,
    pub(super) records: u64,
    pub(super) bundle_bytes: u64,
    pub(super) report_bytes: usize,
    /// Whether the bundle was verified, strictly.
    pub(super) verified: bool,
}

/// Refuses a folder in which something would be overwritten.
pub(super) fn check(keep: &Path) -> Result<(), CliError> {
    for name in [BUNDLE, REPORT] {
        let path = keep.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(CliError::refused(
                format!("`{}` exists already", path.display()),
                "give --keep another folder, or remove it first",
            ));
        }
    }
    fs::create_dir_all(keep).map_err(|error| CliError::io("make", keep, &error))
}

/// Hands out what a journal holds; into `keep`, or where it is thrown away.
pub(super) fn hand_out(stage: &Stage<'_>, keep: Option<&Path>) -> Result<Option<Handed>, CliError> {
    let Some(state) = stage.named_journal() else { return Ok(None) };
    // Who hands a bundle on waits for its seal; a demo does as if the quarter of an hour were over.
    let now = stage.now()?;
    let now = Timestamp::from_unix(now.unix().saturating_add(EPOCH)).unwrap_or(now);
    let sealed = Store::open(&state, StoreConfig::new(Clock::new(move || now)))?.seal()?;
    let store = StoreReader::open(&state)?;
    let place: PathBuf = keep.map_or_else(|| stage.folder().join("handed"), Path::to_owned);
    fs::create_dir_all(&place).map_err(broken)?;
    let staging = stage.folder().join("bundle-of-the-demo");
    export(&store, &Selection::default(), &staging, now)?;
    let bundle = place.join(BUNDLE);
    export_zip(&staging, &bundle, false)?;
    let trust = Trust { log: store.public(), ..Trust::default() };
    let options = Options { threads: stage.threads(), trust, ..Options::default() };
    let verified = verify(&mut *wardkeep_evidence::source::open(&bundle)?, &options);

    let query = Query { asked: Asked::default(), limit: 100, full: true };
    let told = prove(&store, &Trust::default(), &query, now, stage.threads(), &mut |_| {})?;
    let graph = gravest(&store, &told)?;
    let graph = graph.as_ref().map(|(graph, title)| (graph, title.as_str()));
    let html = page(&told, graph, None);
    let report = place.join(REPORT);
    StagedFile::replace(&report, 0o600, html.as_bytes())?;
    let shown = |path: &Path| keep.map(|_| path.display().to_string());
    Ok(Some(Handed {
        records: verified.records,
        verified: sealed.is_some() && verified.passed() && told.health.chain_valid,
        bundle_bytes: fs::metadata(&bundle).map_err(broken)?.len(),
        report_bytes: html.len(),
        bundle: shown(&bundle),
        report: shown(&report),
    }))
}
