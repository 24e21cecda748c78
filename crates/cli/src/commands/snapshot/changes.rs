//! Files that differ from a snapshot, shown.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use wardkeep_monitor::snapshot::{Change, Content, Difference, Opened};

use crate::context::Context;
use crate::error::CliError;
use crate::ui::Line;

/// Largest text that is compared line by line.
const MAX_TEXT: u64 = 256 << 10;
/// Most lines that are shown of a file.
const MAX_LINES: usize = 200;
/// How long two texts are compared; after that the comparison is coarser.
const PATIENCE: Duration = Duration::from_millis(500);

/// A file that differs.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct ChangeRow {
    path: String,
    change: Difference,
    before: Option<String>,
    after: Option<String>,
    /// Why its present content is not known.
    unknown: Option<&'static str>,
}

pub(in crate::commands) fn rows(changes: &[Change]) -> Vec<ChangeRow> {
    let text = |content: &Option<Content>| {
        content.as_ref().map(|content| match content {
            Content::File { hash, .. } => hash.to_string(),
            Content::Link { target } => format!("link to {}", String::from_utf8_lossy(target)),
        })
    };
    let row = |change: &Change| ChangeRow {
        path: change.path.to_string(),
        change: change.difference,
        before: text(&change.before),
        after: text(&change.after),
        unknown: change.unknown.map(wardkeep_monitor::snapshot::Why::words),
    };
    changes.iter().map(row).collect()
}

pub(super) fn word(difference: Difference) -> &'static str {
    match difference {
        Difference::Added => "added   ",
        Difference::Modified => "modified",
        Difference::Removed => "removed ",
    }
}

/// Prints what changed, and how if `in_full`.
pub(in crate::commands) fn show_changes(
    context: &mut Context,
    opened: &Opened,
    changes: &[Change],
    in_full: bool,
) -> Result<(), CliError> {
    for change in changes {
        let line = Line::default();
        let line = match change.difference {
            Difference::Added => line.good("added   "),
            Difference::Modified => line.strong("modified"),
            Difference::Removed => line.bad("removed "),
        };
        let mut line = line.plain(format!(" {}", change.path));
        if let Some(why) = change.unknown {
            line = line.plain(format!(" ({})", why.words()));
        }
        context.ui.answer(line);
        if in_full {
            show_text(context, opened, change)?;
        }
    }
    Ok(())
}

fn show_text(context: &mut Context, opened: &Opened, change: &Change) -> Result<(), CliError> {
    let link = |content: &Option<Content>| matches!(content, Some(Content::Link { .. }));
    if let (
        Some(Content::File { hash, mode, .. }),
        Some(Content::File { hash: now, mode: present, .. }),
    ) = (&change.before, &change.after)
        && mode != present
    {
        context.ui.say(format!("    mode {mode:03o}, now {present:03o}"));
        if hash == now {
            return Ok(());
        }
    }
    let before = match &change.before {
        Some(Content::File { size, .. }) if *size > MAX_TEXT => None,
        Some(content) => Some(opened.read(content)?),
        None => Some(Vec::new()),
    };
    let after = match (&change.after, change.unknown) {
        (_, Some(_)) => return Ok(()),
        (Some(_), None) => opened.present(&change.path, MAX_TEXT),
        (None, None) => Some(Vec::new()),
    };
    let texts = before.zip(after).and_then(|(before, after)| {
        Some((String::from_utf8(before).ok()?, String::from_utf8(after).ok()?))
    });
    let Some((before, after)) = texts else {
        context.ui.say("    (large, or not text)");
        return Ok(());
    };
    if link(&change.before) || link(&change.after) {
        context.ui.say("    (a link: what follows is where it leads)");
    }
    show_lines(context, &before, &after);
    Ok(())
}

fn show_lines(context: &mut Context, before: &str, after: &str) {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let mut shown = 0;
    let mut hidden = 0;
    for (number, group) in diff.grouped_ops(2).iter().enumerate() {
        if number > 0 && shown < MAX_LINES {
            context.ui.say("    ...");
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            if shown == MAX_LINES {
                hidden += 1;
                continue;
            }
            shown += 1;
            let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
            context.ui.say(match change.tag() {
                ChangeTag::Equal => Line::from(format!("      {text}")),
                ChangeTag::Delete => Line::from("    ").removed(format!("- {text}")),
                ChangeTag::Insert => Line::from("    ").added(format!("+ {text}")),
            });
        }
    }
    if hidden > 0 {
        context.ui.say(format!("    ... and {hidden} more lines"));
    }
}
