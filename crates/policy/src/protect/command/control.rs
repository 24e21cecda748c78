//! This program's own commands, run by the agent.

use wardkeep_detect::effects::Effect;
use wardkeep_detect::shell::Word;

use super::super::names::fold_name;
use super::super::set::{Class, Denial};
use super::{Judge, Level};

/// Names under which this program answers.
const OWN_NAMES: [&str; 4] = ["wardkeep", "soulguard", "localgpt", "aegx"];
/// Its commands that change what is protected.
const CONTROL: [&str; 18] = [
    "sign",
    "edit",
    "apply",
    "approve",
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
];
/// Those of them that may be looked at: `config show`, `approvals list`.
const LOOKING: [&str; 7] = ["show", "list", "status", "diff", "verify", "audit", "help"];

impl Judge<'_, '_> {
    /// This program's own commands that change protection.
    pub(super) fn run(&mut self, effect: &Effect, program: &Word, arguments: &[Word]) {
        let name = program.text.as_deref().unwrap_or_default();
        let name = fold_name(name.rsplit('/').next().unwrap_or_default());
        if !OWN_NAMES.contains(&name.trim_end_matches(".exe")) {
            return;
        }
        let operands: Vec<&Word> = arguments
            .iter()
            .filter(|word| !word.text.as_deref().is_some_and(|text| text.starts_with('-')))
            .take(4)
            .collect();
        let is = |word: &&&Word, list: &[&str]| {
            word.text.as_deref().is_some_and(|text| list.contains(&text))
        };
        let control = operands.iter().find(|word| is(word, &CONTROL) || word.text.is_none());
        let looks = operands.iter().any(|word| is(&word, &LOOKING));
        let Some(command) = control.filter(|_| !looks) else { return };
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
