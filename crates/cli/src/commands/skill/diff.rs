//! `wardkeep skill diff`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use wardkeep_guard::skill::{Content, Entry, Tree};
use wardkeep_identity::show::visible;
use wardkeep_monitor::skills::{Pin, folder, kept};

use super::{candidate, owner};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Lines of one file that are shown.
const LINES: usize = 200;
/// Lines that are shown in all.
const ALL_LINES: usize = 2000;
/// Largest file that is compared line by line.
const LARGEST: usize = 1 << 20;
/// Longest line that is shown, in characters.
const WIDTH: usize = 400;
/// How long the comparison of one file may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows what changed in a skill since it was pinned
///
/// Exit 0: nothing. Exit 1: something.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The skill's folder, or the name that it is pinned under
    skill: PathBuf,
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    path: &'a str,
    change: &'static str,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a str,
    changes: Vec<ChangeJson<'a>>,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let (options, pins) = owner(context)?;
    let by_name = args.skill.to_str().and_then(|name| pins.named(name));
    let (pin, tree) = match by_name.filter(|_| !args.skill.is_dir()) {
        Some(pin) => {
            let place = pin.places.first().ok_or_else(|| {
                let message = format!("`{}` is pinned, and lies nowhere that is known", pin.name);
                CliError::refused(message, "name the folder")
            })?;
            (pin, folder::read(Path::new(place), &options.limits))
        }
        None => {
            let candidate = candidate(&args.skill, &options)?;
            let pin = pins.named(&candidate.name).ok_or_else(|| {
                let message = format!("no skill is pinned under the name `{}`", candidate.name);
                CliError::refused(message, "see `wardkeep skill list`")
            })?;
            (pin, candidate.tree)
        }
    };
    let before = before(context, pin)?;
    let changes = changes(&before, &tree);
    print(context, &changes);
    let exit = if changes.is_empty() { Exit::Success } else { Exit::Refused };
    if changes.is_empty() {
        context.ui.answer(format!("`{}` is as it was pinned", pin.name));
    }
    let told = changes.iter().map(|one| ChangeJson { path: one.path, change: one.word() });
    let answer = Answer { name: &pin.name, changes: told.collect() };
    Ok(context.finish(exit, changes.is_empty(), &answer))
}

/// Prints what changed since a pin.
pub(super) fn since(context: &mut Context, pin: &Pin, tree: &Tree) -> Result<(), CliError> {
    let before = before(context, pin)?;
    let changes = changes(&before, tree);
    print(context, &changes);
    Ok(())
}

fn before(context: &Context, pin: &Pin) -> Result<Tree, CliError> {
    kept(&context.state_dir()?, pin.tree).ok_or_else(|| {
        let message = format!("what was pinned as `{}` is not kept any more", pin.name);
        CliError::new(Exit::Unreadable, message, "look at all of it: `wardkeep skill verify`")
    })
}

struct Change<'t> {
    path: &'t str,
    before: Option<&'t Entry>,
    after: Option<&'t Entry>,
}

impl Change<'_> {
    fn word(&self) -> &'static str {
        match (self.before, self.after) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(one), Some(two)) if one.content == two.content => "mode",
            _ => "changed",
        }
    }
}

fn changes<'t>(before: &'t Tree, after: &'t Tree) -> Vec<Change<'t>> {
    let by_path = |tree: &'t Tree| -> BTreeMap<&'t str, &'t Entry> {
        tree.entries.iter().map(|entry| (entry.path.as_str(), entry)).collect()
    };
    let (one, two) = (by_path(before), by_path(after));
    let mut paths: Vec<&str> = one.keys().chain(two.keys()).copied().collect();
    paths.sort_unstable();
    paths.dedup();
    paths
        .into_iter()
        .map(|path| Change { path, before: one.get(path).copied(), after: two.get(path).copied() })
        .filter(|change| change.before != change.after)
        .collect()
}

fn print(context: &mut Context, changes: &[Change<'_>]) {
    let mut left = ALL_LINES;
    for change in changes {
        if left == 0 {
            context.ui.say("  … more is not shown");
            return;
        }
        left -= 1;
        context.ui.say(Line::default().strong(format!(
            "{} {}",
            change.word(),
            visible(change.path)
        )));
        for note in [modes(change).map(str::to_owned), links(change)].into_iter().flatten() {
            context.ui.say(format!("    {note}"));
        }
        match (text(change.before), text(change.after)) {
            (Some(before), Some(after)) => lines(context, &before, &after, &mut left),
            _ => context.ui.say("    it is no text, or too large to be shown"),
        }
    }
}

fn modes(change: &Change<'_>) -> Option<&'static str> {
    let runs = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.executable);
    match (runs(change.before), runs(change.after)) {
        (false, true) => Some("it may be run now"),
        (true, false) => Some("it may not be run any more"),
        _ => None,
    }
}

fn links(change: &Change<'_>) -> Option<String> {
    match &change.after?.content {
        Content::Link(target) => Some(format!("it is a link to {}", visible(target))),
        Content::Special => Some("it is no file".to_owned()),
        Content::File(_) => None,
    }
}

/// The text of a file; empty where there is none, `None` where it cannot be shown.
fn text(entry: Option<&Entry>) -> Option<String> {
    match entry.map(|entry| &entry.content) {
        Some(Content::File(bytes)) if bytes.len() > LARGEST => None,
        Some(Content::File(bytes)) => String::from_utf8(bytes.clone()).ok(),
        _ => Some(String::new()),
    }
}

fn lines(context: &mut Context, before: &str, after: &str, left: &mut usize) {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let mut shown = 0;
    for (number, group) in diff.grouped_ops(2).iter().enumerate() {
        if number > 0 {
            context.ui.say("    ...");
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            if shown >= LINES || *left == 0 {
                context.ui.say("    … more of it is not shown");
                return;
            }
            shown += 1;
            *left -= 1;
            let text = change.value().trim_end_matches(['\n', '\r']);
            let long = text.chars().nth(WIDTH).is_some();
            let mut text = visible(&text.chars().take(WIDTH).collect::<String>());
            if long {
                text.push('…');
            }
            context.ui.say(match change.tag() {
                ChangeTag::Equal => Line::from(format!("      {text}")),
                ChangeTag::Delete => Line::from("    ").removed(format!("- {text}")),
                ChangeTag::Insert => Line::from("    ").added(format!("+ {text}")),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_seen() {
        let before = Tree::of([("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"), ("e", "1")]);
        let mut after = Tree::of([("a", "1"), ("b", "2"), ("d", "1"), ("e", "1"), ("f", "1")]);
        after.entries[2].executable = true;
        after.entries[3].content = Content::Link("a".to_owned());
        let seen: Vec<(&str, &str)> =
            changes(&before, &after).iter().map(|one| (one.path, one.word())).collect();
        assert_eq!(
            seen,
            [("b", "changed"), ("c", "removed"), ("d", "mode"), ("e", "changed"), ("f", "added")]
        );
    }
}
