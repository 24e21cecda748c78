//! How things stand, for the page.

use std::sync::PoisonError;

use wardkeep_gateway::page::{Counts, Evidence, Office as _, Outcome, Posture};
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::grade;
use wardkeep_monitor::index::{Asked, Said, Severity};
use wardkeep_monitor::notices;

use super::{ALERTS, Desk, trouble};

/// How things stand.
pub(super) fn posture(desk: &Desk) -> Outcome<Posture> {
    let mut posture = desk.looked(|reader, index| {
        let mut counts = Counts { records: index.records()?, ..Counts::default() };
        for (shape, records, _) in index.shapes(&Asked::default())? {
            let judged = shape.said == Some(Said::Decision);
            counts.judged += if judged { records } else { 0 };
            match shape.verdict {
                Some(Verdict::Deny) if judged => counts.blocked += records,
                Some(Verdict::Ask) if judged => counts.held += records,
                _ => {}
            }
            match shape.level {
                Some(Severity::Critical) => counts.alerts[0] += records,
                Some(Severity::High) => counts.alerts[1] += records,
                Some(Severity::Medium) => counts.alerts[2] += records,
                _ => {}
            }
        }
        let asked = Asked { severity: Some(Severity::Medium), ..Asked::default() };
        let open = notices::list(reader, index, &asked, false, ALERTS)?;
        Ok(Posture { counts, alerts: open.notices, more_alerts: open.more, ..Posture::default() })
    })?;
    posture.state = desk.state.display().to_string();
    posture.evidence = desk.evidence.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let seen = match &posture.evidence {
        Evidence::Unknown => grade::Evidence::Unseen,
        Evidence::Holds { .. } => grade::Evidence::Holds,
        Evidence::Broken { .. } => grade::Evidence::Broken,
    };
    let facts = desk.observer.facts(desk.clock.now(), seen, &[]);
    posture.grade = Some(grade::grade(&facts));
    posture.waiting = desk.approvals()?.pending(desk.clock.now()).map_err(trouble)?.len();
    posture.staged = desk.staged()?.iter().filter(|one| !one.is_empty()).count();
    Ok(posture)
}
