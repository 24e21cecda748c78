//! Two versions of a text, line by line, in the one way that all commands show it.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::Line;

/// How long the shortest way from one to the other is looked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What changed, with `around` lines around it; `...` stands between places that are apart.
pub(crate) fn diff(before: &str, after: &str, around: usize) -> Vec<Line> {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let mut lines = Vec::new();
    for (number, group) in diff.grouped_ops(around).iter().enumerate() {
        if number > 0 {
            lines.push(Line::from("..."));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let text = change.value().trim_end_matches(['\n', '\r']);
            lines.push(match change.tag() {
                ChangeTag::Equal => Line::from(format!("  {text}")),
                ChangeTag::Delete => Line::default().removed(format!("- {text}")),
                ChangeTag::Insert => Line::default().added(format!("+ {text}")),
            });
        }
    }
    lines
}
