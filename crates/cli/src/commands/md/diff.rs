//! Two versions of a text, shown line by line.

use similar::{ChangeTag, TextDiff};

use crate::context::Context;
use crate::ui::Line;

/// Prints what changed, with three lines around it.
pub(crate) fn show(context: &mut Context, before: &str, after: &str) {
    let diff = TextDiff::from_lines(before, after);
    for (number, group) in diff.grouped_ops(3).iter().enumerate() {
        if number > 0 {
            context.ui.say("  ...");
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            context.ui.say(match change.tag() {
                ChangeTag::Equal => Line::from(format!("    {text}")),
                ChangeTag::Delete => Line::from("  ").bad(format!("- {text}")),
                ChangeTag::Insert => Line::from("  ").good(format!("+ {text}")),
            });
        }
    }
}
