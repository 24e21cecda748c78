//! What was blocked, what is at risk, whether the evidence holds, and what to do.

mod page;

use std::collections::BTreeMap;

use serde::Serialize;
use wardkeep_evidence::check::Finding;
use wardkeep_evidence::record::RecordType;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{SealReport, Trust};
use wardkeep_guard::surface::Surface;
use wardkeep_guard::verdict::Verdict;

pub use self::page::page;
use crate::approvals::REQUEST_SECONDS;
use crate::index::{Asked, Category, Index, IndexError, LookError, Said, Severity, Shape};
use crate::notices::{self, Notice};
use crate::store::{StoreError, StoreReader};
use crate::verify::{Scope, Verified, verify_further};

/// Version of the report's form.
pub const VERSION: &str = "1";

/// What is asked.
#[derive(Debug, Clone)]
pub struct Query {
    /// Which records count.
    pub asked: Asked,
    /// How many alerts and notifications are listed at most.
    pub limit: u32,
    /// Whether to verify and count everything anew.
    pub full: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index cannot be used.
    #[error(transparent)]
    Look(#[from] LookError),
}

impl From<IndexError> for ReportError {
    fn from(error: IndexError) -> Self {
        Self::Look(error.into())
    }
}

/// The report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of its form.
    pub version: &'static str,
    /// When it was made.
    pub generated_at: String,
    /// What counts in it.
    pub filter: FilterShown,
    /// What was judged and blocked.
    pub protection: Protection,
    /// What someone should look at, the newest first.
    pub alerts: Vec<Notice>,
    /// How many more alerts there are.
    pub more_alerts: u64,
    /// Further counts; records hold no durations, so there are none.
    pub metrics: Metrics,
    /// Whether the evidence holds.
    pub health: Health,
    /// Rollbacks, and what the agent must tell its user of them.
    pub rollback_status: RollbackStatus,
    /// What nobody has acknowledged yet, the newest first, whatever the filter.
    pub agent_notifications: Vec<Notice>,
    /// How many more of these there are.
    pub more_notifications: u64,
    /// Whether someone has to do something.
    pub action_required: bool,
    /// What.
    pub actions: Vec<String>,
    /// Whether the counts come from the journal itself, read in this run, or from the index.
    pub counted_from: &'static str,
}

/// The filter as it was understood.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FilterShown {
    /// Not before this time.
    pub since: Option<String>,
    /// Not after this time.
    pub until: Option<String>,
    /// Of this category.
    pub category: Option<Category>,
    /// At least so grave.
    pub severity: Option<Severity>,
    /// Of this session.
    pub session: Option<String>,
}

/// What was judged and blocked, under the filter.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Protection {
    /// Denied actions, those summed up in floods included.
    pub total_threats_blocked: u64,
    /// Of them on the control plane.
    pub cpi_blocks: u64,
    /// On durable memory.
    pub mi_blocks: u64,
    /// In the conversation.
    pub conversation_blocks: u64,
    /// On other files.
    pub file_blocks: u64,
    /// Requests.
    pub network_blocks: u64,
    /// Skills.
    pub skill_blocks: u64,
    /// Of the blocks, those for their taint alone.
    pub taint_blocks: u64,
    /// Denials that are only summed up, not recorded one by one.
    pub summed_up_blocks: u64,
    /// Actions that wait or waited for the owner.
    pub held_for_owner: u64,
    /// Proxies that are trusted too widely.
    pub proxy_misconfigs_detected: u64,
    /// Rollbacks that nobody asked for.
    pub auto_rollbacks: u64,
    /// Rollbacks that were recommended.
    pub rollback_recommendations: u64,
    /// Times that something tainted was found to have spread.
    pub contamination_events: u64,
    /// Skills that were verified.
    pub skills_verified: u64,
    /// Critical alerts.
    pub critical_alerts: u64,
    /// High alerts.
    pub high_alerts: u64,
    /// Medium alerts.
    pub medium_alerts: u64,
    /// Notifications by category.
    pub by_category: BTreeMap<&'static str, u64>,
    /// Denied actions by principal.
    pub by_principal: BTreeMap<&'static str, u64>,
    /// Actions that were judged.
    pub total_evaluations: u64,
    /// Always absent: see `protection_rate_reason`.
    pub protection_rate: Option<f64>,
    /// Why there is no rate.
    pub protection_rate_reason: &'static str,
}

const NO_RATE: &str = "a rate would need the number of attacks, and nobody knows how many were not \
                       recognised";

/// Further counts, under the filter.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Metrics {
    /// Judged actions by verdict.
    pub by_verdict: BTreeMap<&'static str, u64>,
    /// Judged actions by surface.
    pub by_surface: BTreeMap<&'static str, u64>,
    /// Records by type.
    pub by_type: BTreeMap<&'static str, u64>,
}

/// Whether the evidence holds.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    /// Whether every check passed.
    pub chain_valid: bool,
    /// Records in the journal.
    pub records: u64,
    /// Of them, those that were read and checked in this run.
    pub verified_now: u64,
    /// Of them, those that only an earlier run has checked.
    pub verified_earlier: u64,
    /// When everything was last checked.
    pub last_full: Option<String>,
    /// Why everything was read though less was asked for.
    pub why_full: Option<&'static str>,
    /// How far seals and witnesses reach; absent without keys.
    pub seals: Option<SealReport>,
    /// Heads of older seals and witnesses that were not compared in this run.
    pub skipped_heads: u64,
    /// The failed checks.
    pub findings: Vec<Finding>,
    /// How many more failed.
    pub more_findings: u64,
    /// What is not as it should be, in words.
    pub warnings: Vec<String>,
    /// The state directory.
    pub state_dir: String,
}

/// Rollbacks, and what is to be told of them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RollbackStatus {
    /// As in the summary.
    pub auto_rollbacks: u64,
    /// As in the summary.
    pub rollback_recommendations: u64,
    /// As in the summary.
    pub contamination_events: u64,
    /// What the agent must relay to its user: not acknowledged yet, whatever the filter.
    pub agent_messages: Vec<String>,
    /// How many more there are.
    pub more_messages: u64,
}

/// Makes the report. The journal is verified from the last verified checkpoint on; the counts are
/// those of the index, which is made anew first if everything is asked for, or if it is wrong.
///
/// # Errors
/// When the store cannot be read or the index not be made.
pub fn prove(
    reader: &StoreReader,
    trust: &Trust,
    query: &Query,
    now: Timestamp,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Report, ReportError> {
    let mut anew = query.full;
    let mut index = Index::ready(reader.path(), reader.folder(), anew, progress)?;
    let scope = if query.full { Scope::Full } else { Scope::Further };
    let before = index.records()?;
    let verified = verify_further(reader, trust, scope, now, threads, progress)?;
    let mut counted = before;
    if before < verified.report.records {
        // What came meanwhile.
        index.catch_up(reader.folder(), &mut |_| {})?;
        counted = index.records()?;
    }
    let sound = verified.report.passed();
    // A journal that does not hold has lines that no index can hold.
    if sound && (before > verified.report.records || counted < verified.report.records) && !anew {
        anew = true;
        drop(index);
        index = Index::ready(reader.path(), reader.folder(), true, progress)?;
    }
    match compose(reader, &index, query, &verified, now, anew) {
        Err(LookError::Wrong(_)) if !anew => {
            drop(index);
            let index = Index::ready(reader.path(), reader.folder(), true, progress)?;
            Ok(compose(reader, &index, query, &verified, now, true)?)
        }
        composed => Ok(composed?),
    }
}

fn compose(
    reader: &StoreReader,
    index: &Index,
    query: &Query,
    verified: &Verified,
    now: Timestamp,
    anew: bool,
) -> Result<Report, LookError> {
    let asked = &query.asked;
    let shapes = index.shapes(asked)?;
    let protection = Protection::of(&shapes);
    let least = asked.severity.max(Some(Severity::Medium));
    let alerts = Asked { severity: least, ..asked.clone() };
    let alerts = notices::list(reader, index, &alerts, true, query.limit)?;
    let open = notices::list(reader, index, &Asked::default(), false, query.limit)?;
    let grave = Asked { severity: Some(Severity::High), ..Asked::default() };
    let grave = notices::list(reader, index, &grave, false, 0)?.more;
    let rollback_status = rollback_status(reader, index, query.limit, &protection)?;
    let health = Health::of(reader, verified);
    let waiting = waiting(index, now)?;
    let actions = actions(&health, &rollback_status, grave, waiting);
    let shown = |time: Option<Timestamp>| time.map(|time| time.to_string());
    Ok(Report {
        version: VERSION,
        generated_at: now.to_string(),
        filter: FilterShown {
            since: shown(asked.since),
            until: shown(asked.until),
            category: asked.category,
            severity: asked.severity,
            session: asked.session.clone(),
        },
        metrics: Metrics::of(&shapes),
        protection,
        alerts: alerts.notices,
        more_alerts: alerts.more,
        health,
        rollback_status,
        agent_notifications: open.notices,
        more_notifications: open.more,
        action_required: !actions.is_empty(),
        actions,
        counted_from: if anew { "journal" } else { "index" },
    })
}

impl Protection {
    fn of(shapes: &[(Shape, u64, u64)]) -> Self {
        let mut sum = Self { protection_rate_reason: NO_RATE, ..Self::default() };
        for (shape, records, many) in shapes {
            sum.add(shape, *records, *many);
        }
        sum
    }

    fn add(&mut self, shape: &Shape, records: u64, many: u64) {
        let decided = shape.said == Some(Said::Decision);
        if decided {
            self.total_evaluations += records;
        }
        if decided && shape.verdict == Some(Verdict::Deny) {
            self.total_threats_blocked += records;
            *self.by_principal.entry(shape.principal.as_str()).or_default() += records;
            match shape.surface {
                Some(Surface::ControlPlane) => self.cpi_blocks += records,
                Some(Surface::DurableMemory) => self.mi_blocks += records,
                Some(Surface::ConversationIO) => self.conversation_blocks += records,
                Some(Surface::FileSystem) => self.file_blocks += records,
                Some(Surface::NetworkIO) => self.network_blocks += records,
                Some(Surface::SkillInstall) => self.skill_blocks += records,
                Some(Surface::SandboxCompliance) | None => {}
            }
            if shape.category == Some(Category::Taint) {
                self.taint_blocks += records;
            }
        }
        if decided && shape.verdict == Some(Verdict::Ask) {
            self.held_for_owner += records;
        }
        if shape.said == Some(Said::Flood) {
            self.summed_up_blocks += many;
            self.total_threats_blocked += many;
            self.total_evaluations += many;
        }
        // A denial of the verifier's has its category; others were not looked into.
        let verified = shape.kind == RecordType::SkillVerification
            || (decided && shape.category == Some(Category::Skill));
        if verified {
            self.skills_verified += records;
        }
        match (shape.said, shape.category) {
            (Some(Said::Rollback), Some(Category::AutoRollback)) => self.auto_rollbacks += records,
            (Some(Said::Alert), Some(Category::Rollback)) => {
                self.rollback_recommendations += records;
            }
            (Some(Said::Alert), Some(Category::Contamination)) => {
                self.contamination_events += records;
            }
            _ => {}
        }
        let Some(level) = shape.level else { return };
        if shape.category == Some(Category::Proxy) && level >= Severity::Medium {
            self.proxy_misconfigs_detected += records;
        }
        match level {
            Severity::Critical => self.critical_alerts += records,
            Severity::High => self.high_alerts += records,
            Severity::Medium => self.medium_alerts += records,
            Severity::Info => {}
        }
        if let Some(category) = shape.category {
            *self.by_category.entry(category.as_str()).or_default() += records;
        }
    }
}

impl Metrics {
    fn of(shapes: &[(Shape, u64, u64)]) -> Self {
        let mut metrics = Self::default();
        for (shape, records, _) in shapes {
            *metrics.by_type.entry(shape.kind.as_str()).or_default() += records;
            if shape.said == Some(Said::Decision) {
                let verdict = shape.verdict.map_or("unknown", Verdict::as_str);
                *metrics.by_verdict.entry(verdict).or_default() += records;
                let surface = shape.surface.map_or("none", Surface::as_str);
                *metrics.by_surface.entry(surface).or_default() += records;
            }
        }
        metrics
    }
}

impl Health {
    fn of(reader: &StoreReader, verified: &Verified) -> Self {
        let Verified { report, skipped, earlier, skipped_heads, why_full } = verified;
        let mut warnings = Vec::new();
        match &report.seals {
            None => warnings.push(
                "there are no seals: whoever can write the journal could rewrite all of it".into(),
            ),
            Some(seals) => {
                for epoch in &seals.clock_set_back {
                    warnings.push(format!("the clock had been set back at epoch {epoch}"));
                }
                if seals.damaged > 0 {
                    let count = seals.damaged;
                    warnings.push(format!("{count} pieces of the seal files are damaged"));
                }
            }
        }
        for (what, count) in &report.recoveries {
            warnings.push(format!("the journal told of `{what}`, {count} times"));
        }
        if report.open_tail > 0 {
            let bytes = report.open_tail;
            warnings.push(format!("{bytes} bytes at the end are torn or being written"));
        }
        Self {
            chain_valid: report.passed(),
            records: report.records,
            verified_now: report.records - skipped,
            verified_earlier: *skipped,
            last_full: earlier.clone(),
            why_full: *why_full,
            seals: report.seals.clone(),
            skipped_heads: *skipped_heads,
            findings: report.findings.kept().to_vec(),
            more_findings: report.findings.dropped(),
            warnings,
            state_dir: reader.path().display().to_string(),
        }
    }
}

/// Messages of rollbacks and contamination that nobody has acknowledged.
fn rollback_status(
    reader: &StoreReader,
    index: &Index,
    limit: u32,
    protection: &Protection,
) -> Result<RollbackStatus, LookError> {
    let mut status = RollbackStatus {
        auto_rollbacks: protection.auto_rollbacks,
        rollback_recommendations: protection.rollback_recommendations,
        contamination_events: protection.contamination_events,
        ..RollbackStatus::default()
    };
    let mut found = Vec::new();
    for category in [Category::AutoRollback, Category::Rollback, Category::Contamination] {
        let severity = Some(Severity::Medium);
        let asked = Asked { category: Some(category), severity, ..Asked::default() };
        let listed = notices::list(reader, index, &asked, false, limit)?;
        status.more_messages += listed.more;
        found.extend(listed.notices);
    }
    found.sort_by_key(|notice| std::cmp::Reverse(notice.index));
    for notice in found {
        let next = notice.suggestion.map(|text| format!(" Next: {text}.")).unwrap_or_default();
        let said = notice.message.trim_end_matches('.');
        status.agent_messages.push(format!("{}: {said}.{next}", notice.severity));
    }
    Ok(status)
}

/// How many questions to the owner may still wait for an answer.
fn waiting(index: &Index, now: Timestamp) -> Result<u64, LookError> {
    let since = Timestamp::from_unix(now.unix().saturating_sub(REQUEST_SECONDS));
    let shapes = index.shapes(&Asked { since, ..Asked::default() })?;
    let (mut asked, mut answered) = (0, 0);
    for (shape, records, _) in shapes {
        match (shape.said, shape.verdict) {
            (Some(Said::Decision), Some(Verdict::Ask)) => asked += records,
            (Some(Said::Approval | Said::Refusal), _) => answered += records,
            _ => {}
        }
    }
    Ok(u64::saturating_sub(asked, answered))
}

fn actions(health: &Health, rollback: &RollbackStatus, grave: u64, waiting: u64) -> Vec<String> {
    let mut actions = Vec::new();
    if !health.chain_valid {
        actions.push(
            "the evidence does not hold: keep the state directory as it is and see \
             `wardkeep evidence verify`"
                .to_owned(),
        );
    }
    if !rollback.agent_messages.is_empty() {
        actions.push("tell the user what the messages about rollback say".to_owned());
    }
    if grave > 0 {
        let what = if grave == 1 { "alert" } else { "alerts" };
        actions.push(format!(
            "look at {grave} high or critical {what} with `wardkeep notifications`, then acknowledge \
             with `wardkeep notifications --ack`"
        ));
    }
    if waiting > 0 {
        actions.push(
            "answer what agents ask for, or let it end as a denial: `wardkeep approvals list`"
                .to_owned(),
        );
    }
    actions
}
