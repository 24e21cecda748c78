//! What the detector says of new content, for the owner to acknowledge.

use wardkeep_detect::scan::Detector;
use wardkeep_identity::concern::{self, Concerns, Role};
use wardkeep_identity::name::Name;

use crate::ui::Line;

/// What is found in the new content of a protected file; `None` where nothing is.
pub(super) fn concerns(name: &Name, old: Option<&[u8]>, new: &[u8]) -> Option<Concerns> {
    let found = concern::concerns(&Detector::new(), name, Role::Identity, old, new);
    (!found.findings.is_empty() || found.is_cut).then_some(found)
}

/// Whether something has to be acknowledged before it is approved.
pub(super) fn need_acknowledgement(concerns: &[Concerns]) -> bool {
    concerns.iter().any(Concerns::needs_acknowledgement)
}

/// The rules that were acknowledged, for the record.
pub(super) fn rules(concerns: &[Concerns]) -> String {
    let needed = concerns.iter().filter(|one| one.needs_acknowledgement());
    let mut rules: Vec<&str> =
        needed.flat_map(|one| one.findings.iter().map(|finding| finding.rule.as_str())).collect();
    rules.sort_unstable();
    rules.dedup();
    rules.join(" ")
}

/// The findings as lines.
pub(super) fn show_concerns(concerns: &[Concerns]) -> Vec<Line> {
    let mut lines = Vec::new();
    for one in concerns {
        for finding in &one.findings {
            let place = format!("{}:{}:{}: ", one.name, finding.line, finding.column);
            let mut line = Line::default();
            line = if finding.was_there {
                line.faint("approved before: ")
            } else {
                line.warning("look at this: ")
            };
            lines.push(
                line.plain(place).plain(&finding.reason).plain(format!(" [{}]", finding.rule)),
            );
            if !finding.excerpt.is_empty() {
                lines.push(Line::default().faint("    ").plain(&finding.excerpt));
            }
        }
        if one.is_cut {
            let line = Line::default().warning("look at this: ");
            lines.push(line.plain(format!("{} is too long to be judged to its end", one.name)));
        }
    }
    lines
}
