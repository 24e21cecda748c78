//! What is known at a point of the text.

use super::{Command, Joint, MAX_COMMANDS, MAX_DEPTH, Via, Word};
use std::collections::{HashMap, HashSet};

/// Longest value that is followed; beyond it a variable is unknown.
const MAX_VALUE: usize = 64 << 10;

/// Variables that the shell itself sets: what is assigned to them says little.
const OWN: [&str; 25] = [
    "_",
    "REPLY",
    "MAPFILE",
    "OPTARG",
    "OPTIND",
    "OLDPWD",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "DIRSTACK",
    "GROUPS",
    "FUNCNAME",
    "UID",
    "EUID",
    "PPID",
    "HISTCMD",
    "PIPESTATUS",
    "SHELLOPTS",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "COPROC",
    "BASH",
    "SHLVL",
    "HOSTNAME",
];

/// What a variable may hold.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) text: Option<String>,
    pub(super) pattern: String,
}

impl Value {
    pub(super) fn unknown() -> Self {
        Self { text: None, pattern: "*".into() }
    }

    pub(super) fn known(text: &str) -> Self {
        Self { text: Some(text.to_owned()), pattern: super::pattern::escape(text) }
    }
}

/// Values that are put back.
#[derive(Debug)]
pub(super) struct Saved {
    values: Vec<(String, Option<Value>)>,
    mark: usize,
}

impl Saved {
    /// Later values of the same names count less: the first ones are put back last.
    pub(super) fn extend(&mut self, later: Self) {
        self.values.splice(0..0, later.values);
    }
}

/// Shared by the parser of a text and those of the texts inside it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) commands: Vec<Command>,
    pub(super) complete: bool,
    /// Where a command's input comes from at this point.
    pub(super) stdin: Option<usize>,
    pub(super) inside: Vec<Via>,
    pub(super) parent: Option<usize>,
    /// Who started each shell.
    pub(super) shells: Vec<Option<usize>>,
    /// The shell that runs what is read now.
    pub(super) shell: usize,
    pub(super) joint: Joint,
    pub(super) depth: usize,
    variables: HashMap<String, Value>,
    /// Names of which no assignment can be believed: something else writes them, or changes what is written.
    volatile: HashSet<String>,
    /// A name that is not known was written, or stands for another: nothing is believed any more.
    distrust: bool,
    /// Whether aliases take effect, as they do not in a script that does not ask for it.
    pub(super) aliases: bool,
    /// Names in the order in which they were assigned, for [`State::forget_since`].
    assigned: Vec<String>,
    /// Bytes of work that are left; makes the whole linear whatever the text repeats.
    fuel: usize,
    halted: bool,
}

impl State {
    pub(super) fn new(length: usize) -> Self {
        let mut variables = HashMap::new();
        variables.insert("IFS".to_owned(), Value::known(" \t\n"));
        variables.insert("HOME".to_owned(), Value::known("~"));
        variables.insert("PWD".to_owned(), Value::known("."));
        Self {
            commands: Vec::new(),
            complete: true,
            stdin: None,
            inside: Vec::new(),
            parent: None,
            shells: vec![None],
            shell: 0,
            joint: Joint::default(),
            depth: 0,
            variables,
            volatile: HashSet::new(),
            distrust: false,
            aliases: false,
            assigned: Vec::new(),
            fuel: length.saturating_mul(32).saturating_add(256 << 10),
            halted: false,
        }
    }

    /// Ends the whole parse: what follows is not understood.
    pub(super) fn halt(&mut self) {
        self.halted = true;
        self.complete = false;
    }

    pub(super) fn halted(&self) -> bool {
        self.halted
    }

    /// Pays for work; false, and the end of it, when there is nothing left to pay with.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        match self.fuel.checked_sub(bytes + 1) {
            Some(left) => self.fuel = left,
            None => {
                self.fuel = 0;
                self.halt();
            }
        }
        !self.halted
    }

    /// Whether work of this size, repeated, would still be cheap.
    pub(super) fn can_afford(&self, bytes: usize) -> bool {
        !self.halted && self.fuel / 4 > bytes
    }

    /// One level down; false when that is too deep.
    pub(super) fn enter(&mut self) -> bool {
        if self.depth >= MAX_DEPTH {
            self.halt();
        } else {
            self.depth += 1;
        }
        !self.halted
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// A shell of its own for what follows; gives back the one that ran so far.
    pub(super) fn start_shell(&mut self) -> usize {
        self.shells.push(Some(self.shell));
        std::mem::replace(&mut self.shell, self.shells.len() - 1)
    }

    /// What was read since then ran in a shell of its own after all: `… |`, `… &`.
    pub(super) fn move_to_shell(&mut self, command: usize, shell: usize) {
        let (old, new) = (self.shell, self.shells.len());
        let moved = self.commands.len().saturating_sub(command) + new.saturating_sub(shell);
        if !self.spend(moved) {
            return;
        }
        for started in self.shells.iter_mut().skip(shell).filter(|by| **by == Some(old)) {
            *started = Some(new);
        }
        self.shells.push(Some(old));
        let commands = self.commands.iter_mut().skip(command);
        for command in commands.filter(|command| command.context.shell == old) {
            command.context.shell = new;
        }
    }

    pub(super) fn push(&mut self, command: Command) -> Option<usize> {
        if self.commands.len() >= MAX_COMMANDS {
            self.halt();
            return None;
        }
        self.commands.push(command);
        Some(self.commands.len() - 1)
    }

    pub(super) fn assign(&mut self, name: &str, word: &Word) {
        let own = OWN.contains(&name) || name.starts_with("BASH");
        if own || self.distrust || self.volatile.contains(name) {
            self.variables.insert(name.to_owned(), Value::unknown());
            self.assigned.push(name.to_owned());
            return;
        }
        let small = word.pattern.len() <= MAX_VALUE && self.variables.len() < 4096;
        let value = if small {
            Value { text: word.text.clone(), pattern: word.pattern.clone() }
        } else {
            Value::unknown()
        };
        if small || self.variables.contains_key(name) {
            self.variables.insert(name.to_owned(), value);
        }
        self.assigned.push(name.to_owned());
    }

    pub(super) fn value(&self, name: &str) -> Value {
        self.variables.get(name).cloned().unwrap_or_else(Value::unknown)
    }

    /// The variable may hold anything from here on.
    pub(super) fn forget(&mut self, name: &str) {
        self.assign(name, &Word::unknown(""));
    }

    /// What is assigned to it from here on is not what it holds.
    pub(super) fn make_volatile(&mut self, name: &str) {
        if self.volatile.len() < 4096 {
            self.volatile.insert(name.to_owned());
        } else {
            self.forget_all();
        }
    }

    /// What was assigned since the mark may be assigned again at any time: by a function, by a trap.
    pub(super) fn make_volatile_since(&mut self, mark: usize) {
        let names: Vec<String> = self.assigned[mark.min(self.assigned.len())..].to_vec();
        for name in names {
            self.make_volatile(&name);
        }
    }

    /// A variable whose name is not known was written: nothing is known from here on.
    pub(super) fn forget_all(&mut self) {
        self.distrust = true;
        self.spend(self.variables.len());
        for value in self.variables.values_mut() {
            *value = Value::unknown();
        }
    }

    /// Arithmetic may assign to every name that stands in it, and in the values of those.
    pub(super) fn forget_named_in(&mut self, text: &str) {
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        for name in text.split(|sign| !is_part(sign)).filter(|name| !name.is_empty()) {
            // In a function all variables are hidden: each may be one of those outside.
            if !self.variables.contains_key(name) && !self.inside.contains(&Via::Function) {
                continue;
            }
            let inner = self.value(name).text.unwrap_or_default();
            if !self.spend(inner.len()) {
                return;
            }
            for name in inner.split(|sign| !is_part(sign)) {
                if self.variables.contains_key(name) {
                    self.forget(name);
                }
            }
            self.forget(name);
        }
    }

    /// The values of these names, to be put back by [`State::restore`].
    pub(super) fn save<'a>(&self, names: impl Iterator<Item = &'a String>) -> Saved {
        let values = names.map(|name| (name.clone(), self.variables.get(name).cloned())).collect();
        Saved { values, mark: self.mark() }
    }

    pub(super) fn restore(&mut self, saved: Saved) {
        for (name, value) in saved.values {
            match value {
                Some(value) => self.variables.insert(name, value),
                None => self.variables.remove(&name),
            };
        }
        self.assigned.truncate(saved.mark);
    }

    /// Whether a value that is not quoted stays one word as it is, whatever splits words here.
    pub(super) fn is_split_known(&self, text: &str) -> bool {
        match self.variables.get("IFS").and_then(|value| value.text.as_deref()) {
            Some(" \t\n") => true,
            Some(signs) => {
                !text.contains([' ', '\t', '\n']) && !text.contains(|s| signs.contains(s))
            }
            None => self.variables.is_empty(),
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.assigned.len()
    }

    /// What was assigned since the mark may or may not hold from here on.
    pub(super) fn forget_since(&mut self, mark: usize) {
        for name in &self.assigned[mark.min(self.assigned.len())..] {
            if let Some(value) = self.variables.get_mut(name) {
                *value = Value::unknown();
            }
        }
    }

    /// The directory changes: what was said relative to the old one is said no more.
    pub(super) fn forget_places(&mut self) {
        if !self.spend(self.variables.len()) {
            return;
        }
        for (name, value) in &mut self.variables {
            let place =
                value.text.as_deref().is_some_and(|text| text.split('/').next() == Some("."));
            if place && name != "PWD" {
                *value = Value::unknown();
            }
        }
    }

    /// A function's body runs later, when other values may hold: hides all of them.
    pub(super) fn hide_variables(&mut self) -> HashMap<String, Value> {
        std::mem::take(&mut self.variables)
    }

    pub(super) fn show_variables(&mut self, variables: HashMap<String, Value>) {
        self.variables = variables;
        if self.distrust {
            self.forget_all();
        }
    }
}
