//! Two versions of a text, shown line by line.

use crate::context::Context;
use crate::ui::{Line, diff};

/// Prints what changed, with three lines around it.
pub(crate) fn show(context: &mut Context, before: &str, after: &str) {
    diff(before, after, 3).iter().for_each(|line| context.ui.say(Line::from("  ").join(line)));
}
