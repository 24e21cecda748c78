//! This program's own commands, run by the agent.

use wardkeep_detect::effects::Effect;
use wardkeep_detect::shell::Word;

use super::super::set::{Class, Denial};
use super::{Judge, Level};
use wardkeep_detect::names::fold_name;

/// Names under which this program answers.
const OWN_NAMES: [&str; 4] = ["wardkeep", "soulguard", "localgpt", "aegx"];
/// Its commands that change what is protected.
const CONTROL: &[&str] = &[
    "sign",
    "edit",
    "apply",
    "approve",
    "pin",
    "protect",
    "watch",
    "release",
    "restore",
    "rollback",
    "install",
    "uninstall",
    "config",
    "purge",
    "reset",
    "sync",
    "init",
    "daemon",
    "anchor",
    "stop",
    "undo",
    "trust",
    "adopt-restore",
    "hook",
    "serve",
    "top",
    "notify",
    "erase",
];
/// Options that change something, whatever the command.
const CONTROL_OPTIONS: [&str; 1] = ["--ack"];
/// Groups of which a command may only look: `config show`.
const GROUPS: [&str; 3] = ["config", "anchor", "daemon"];
/// What only looks, right behind the name of its group: further on it may be the value of an
/// option, `sign --workspace show`.
const LOOKING: [&str; 4] = ["show", "list", "status", "help"];

/// Among so many words that are no options the command is looked for: before it, options may have
/// values.
const MOST_OPERANDS: usize = 8;

impl Judge<'_, '_> {
    /// This program's own commands that change protection.
    pub(super) fn run(&mut self, effect: &Effect, program: &Word, arguments: &[Word]) {
        let name = program.text.as_deref().unwrap_or_default();
        let name = fold_name(name.rsplit('/').next().unwrap_or_default());
        if !OWN_NAMES.contains(&name.trim_end_matches(".exe")) {
            return;
        }
        let is = |word: Option<&Word>, list: &[&str]| {
            word.and_then(|word| word.text.as_deref()).is_some_and(|text| list.contains(&text))
        };
        let option = |word: &Word| word.text.as_deref().is_some_and(|text| text.starts_with('-'));
        let mut operands =
            arguments.iter().enumerate().filter(|(_, word)| !option(word)).take(MOST_OPERANDS);
        let control = operands.find(|(at, word)| {
            let looks = is(Some(word), &GROUPS) && is(arguments.get(at + 1), &LOOKING);
            word.text.is_none() || is(Some(word), CONTROL) && !looks
        });
        let acknowledges =
            || arguments.iter().enumerate().find(|(_, w)| is(Some(w), &CONTROL_OPTIONS));
        let Some((_, command)) = control.or_else(acknowledges) else { return };
        let what = format!("{name} {}", command.text.as_deref().unwrap_or("…"));
        let denial = Denial {
            class: Class::ControlPlane,
            why: format!("`{what}` changes what is protected"),
            next: "the owner runs it, outside of a session".to_owned(),
            what,
        };
        self.hit(Level::Denied, denial, Some(effect), effect.span);
    }
}
