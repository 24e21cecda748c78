//! A program followed: values through names, calls and loops, as far as they are known.
//!
//! Both sides of a branch are taken, every function is run once with what it was called with. The
//! work is bounded; what it does not reach stays unknown, which is never harmless where it is run.

use std::collections::HashMap;

use super::super::facts::{Act, Holds, Seen};
use super::ir::{Expr, Module, Statement, Target};
use super::value::{Data, Value};

/// Steps of one file in one pass.
pub(super) const STEPS: usize = 150_000;
/// Rounds of one loop that are followed.
pub(super) const ROUNDS: usize = 4096;

/// How a statement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Leave,
    Return,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Known {
    pub(super) parameters: Vec<Value>,
    pub(super) returned: Value,
    pub(super) called: bool,
}

/// What is remarkable about a file as a whole.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Marks {
    pub(super) connects: bool,
    pub(super) hands_over: bool,
    pub(super) shell: bool,
}

pub(super) struct Run<'m> {
    pub(super) modules: &'m [Module],
    pub(super) file: usize,
    pub(super) functions: Vec<Vec<Known>>,
    pub(super) seen: Vec<Vec<Seen>>,
    pub(super) marks: Vec<Marks>,
    pub(super) exhausted: bool,
    /// What the files of credentials that were read are of.
    pub(super) classes: std::collections::BTreeSet<&'static str>,
    by_name: HashMap<&'m str, Vec<(usize, usize)>>,
    pub(super) globals: Vec<HashMap<String, Value>>,
    pub(super) locals: Option<HashMap<String, Value>>,
    members: HashMap<String, Value>,
    returned: Value,
    pub(super) steps: usize,
}

impl<'m> Run<'m> {
    pub(super) fn new(modules: &'m [Module]) -> Self {
        let mut by_name: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        for (file, module) in modules.iter().enumerate() {
            for (index, function) in module.functions.iter().enumerate() {
                if !function.name.is_empty() {
                    by_name.entry(&function.name).or_default().push((file, index));
                }
            }
        }
        Self {
            modules,
            file: 0,
            functions: modules
                .iter()
                .map(|module| vec![Known::default(); module.functions.len()])
                .collect(),
            seen: vec![Vec::new(); modules.len()],
            marks: vec![Marks::default(); modules.len()],
            exhausted: false,
            classes: std::collections::BTreeSet::new(),
            by_name,
            globals: vec![HashMap::new(); modules.len()],
            locals: None,
            members: HashMap::new(),
            returned: Value::default(),
            steps: 0,
        }
    }

    /// What is known of functions, to see whether another pass would tell more.
    pub(super) fn known(&self) -> Vec<Holds> {
        let all = self.functions.iter().flatten();
        all.flat_map(|known| {
            known.parameters.iter().map(|value| value.holds).chain([known.returned.holds])
        })
        .collect()
    }

    /// Follows every file once.
    pub(super) fn pass(&mut self) {
        for file in 0..self.modules.len() {
            self.file = file;
            self.steps = 0;
            self.seen[file].clear();
            let module = &self.modules[file];
            self.block(&module.body);
            for (index, function) in module.functions.iter().enumerate() {
                let known = &self.functions[file][index];
                let mut locals = HashMap::new();
                for (place, name) in function.parameters.iter().enumerate() {
                    let given = known.parameters.get(place).cloned();
                    let value = given.unwrap_or_else(|| Value::unknown(Holds::INPUT));
                    let value = if known.called {
                        value
                    } else {
                        Value::unknown(value.holds | Holds::INPUT)
                    };
                    if !matches!(name.as_str(), "self" | "cls") {
                        locals.insert(name.clone(), value);
                    }
                }
                self.locals = Some(locals);
                self.returned = Value::default();
                self.block(&function.body);
                self.locals = None;
                let returned = std::mem::take(&mut self.returned);
                self.functions[file][index].returned = returned;
            }
        }
    }

    pub(super) fn see(&mut self, act: Act, at: std::ops::Range<usize>) {
        let seen = &mut self.seen[self.file];
        let one = Seen::new(act, at);
        if seen.len() < 2000 && !seen.contains(&one) {
            seen.push(one);
        }
    }

    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        self.exhausted |= self.steps == STEPS;
        self.steps < STEPS
    }

    fn block(&mut self, body: &[Statement]) -> Flow {
        let mut out = Flow::Next;
        for statement in body {
            let flow = self.statement(statement);
            if out == Flow::Next {
                out = flow;
            }
        }
        out
    }

    fn statement(&mut self, statement: &Statement) -> Flow {
        if !self.step() {
            return Flow::Return;
        }
        match statement {
            Statement::Expr(expr) => {
                self.eval(expr);
            }
            Statement::Set { target, value, add } => {
                let value = self.eval(value);
                self.assign(target, value, *add);
            }
            Statement::Import { path, name } => self.set(name, Value::path(path.as_str())),
            Statement::Function { name, index } => {
                let value = Value::new(Data::Function(self.file, *index), Holds::NOTHING);
                self.set(name, value);
            }
            Statement::If { test, then, other } => {
                let test = self.eval(test).as_number();
                match test {
                    // Only inside a loop that is followed is anything left out.
                    Some(0) if self.steps > ROUNDS => return self.block(other),
                    Some(_) if self.steps > ROUNDS => return self.block(then),
                    _ => {
                        self.block(then);
                        self.block(other);
                    }
                }
            }
            Statement::For { target, over, body } => self.each(target, over, body),
            Statement::While { test, body, at } => self.repeat(test, body, at),
            Statement::Return(expr) => {
                let value = self.eval(expr);
                let before = std::mem::take(&mut self.returned);
                self.returned = before.or(value);
                return Flow::Return;
            }
            Statement::Block(body) => return self.block(body),
            Statement::Leave => return Flow::Leave,
        }
        Flow::Next
    }

    fn each(&mut self, target: &Target, over: &Expr, body: &[Statement]) {
        let over = self.eval(over);
        match over.items().filter(|items| items.len() <= ROUNDS) {
            Some(items) if !items.is_empty() => {
                for item in items {
                    self.assign(target, item, false);
                    if self.block(body) == Flow::Leave || self.steps >= STEPS {
                        break;
                    }
                }
            }
            _ => {
                self.assign(target, Value::unknown(over.whole()), false);
                self.block(body);
            }
        }
    }

    fn repeat(&mut self, test: &Expr, body: &[Statement], at: &std::ops::Range<usize>) {
        let always = matches!(test, Expr::Number(1));
        if always && !waits(body) {
            self.see(Act::Spin, at.start..at.start + 10);
        }
        for _ in 0..ROUNDS {
            let known = self.eval(test).as_number();
            if known == Some(0) || self.steps >= STEPS {
                return;
            }
            if self.block(body) != Flow::Next || known.is_none() || always {
                return;
            }
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        let scope = self.locals.as_mut().unwrap_or(&mut self.globals[self.file]);
        scope.insert(name.to_owned(), value);
    }

    pub(super) fn assign(&mut self, target: &Target, value: Value, add: bool) {
        match target {
            Target::Name(name) => {
                let value = if add { self.name(name).plus(&value) } else { value };
                self.set(name, value);
            }
            Target::Member(name, base) => {
                let base = self.eval(base);
                let before = self.members.remove(name);
                let value = match before {
                    Some(before) if add => before.plus(&value),
                    Some(before) => before.or(value),
                    None => value,
                };
                if matches!(base.data, Data::Path(_)) && self.members.len() < 4096 {
                    self.members.insert(name.clone(), value);
                }
            }
            Target::Item(base) => {
                // The whole holds what a part of it holds.
                if let Expr::Name(name) = &**base {
                    let mut whole = self.name(name);
                    whole.holds |= value.whole();
                    if let Data::Path(_) = whole.data {
                        whole.data = Data::Unknown;
                    }
                    self.set(name, whole);
                } else if let Expr::Member(_, name) = &**base {
                    self.members.entry(name.clone()).or_default().holds |= value.whole();
                }
            }
            Target::Several(targets) => {
                let items = value.items().filter(|items| items.len() == targets.len());
                for (place, target) in targets.iter().enumerate() {
                    let part = items.as_ref().and_then(|items| items.get(place).cloned());
                    self.assign(
                        target,
                        part.unwrap_or_else(|| Value::unknown(value.whole())),
                        false,
                    );
                }
            }
            Target::Members(members) => {
                for (member, name) in members {
                    let part = self.member(&value, member);
                    self.set(name, part);
                }
            }
            Target::Nothing => {}
        }
    }

    pub(super) fn name(&self, name: &str) -> Value {
        let local = self.locals.as_ref().and_then(|locals| locals.get(name));
        if let Some(value) = local.or_else(|| self.globals[self.file].get(name)) {
            return value.clone();
        }
        match name {
            "self" | "cls" | "this" => Value::path("this"),
            "globalThis" | "window" | "global" | "builtins" | "__builtins__" => Value::path(""),
            _ => match self.own(name) {
                Some((file, index)) if file == self.file => {
                    Value::new(Data::Function(file, index), Holds::NOTHING)
                }
                _ => Value::path(name),
            },
        }
    }

    /// A function of the skill by its name; one of the same file first.
    pub(super) fn own(&self, name: &str) -> Option<(usize, usize)> {
        let found = self.by_name.get(name)?;
        found.iter().find(|(file, _)| *file == self.file).or_else(|| found.first()).copied()
    }

    pub(super) fn member(&mut self, base: &Value, name: &str) -> Value {
        match &base.data {
            Data::Map(_) => base.member(name).unwrap_or_else(|| Value::unknown(base.holds)),
            Data::Path(path) => match &**path {
                "this" => match (self.members.get(name), self.own(name)) {
                    (Some(value), _) => value.clone(),
                    (None, Some((file, index))) => {
                        Value::new(Data::Function(file, index), Holds::NOTHING)
                    }
                    _ => Value::path(format!("this.{name}")),
                },
                "process.env" => super::calls::variable(name),
                "" | "Reflect" => Value::path(name),
                _ if path.len() > 120 => Value::unknown(base.holds),
                _ => match self.members.get(name) {
                    // A member of a class by the class's name.
                    Some(value) if path.starts_with(|sign: char| sign.is_ascii_uppercase()) => {
                        value.clone()
                    }
                    _ => Value::new(Data::Path(format!("{path}.{name}").into()), base.holds),
                },
            },
            Data::List(items) if name == "length" => {
                Value::number(i64::try_from(items.len()).unwrap_or(0))
            }
            Data::Text(text) if name == "length" => {
                Value::number(i64::try_from(text.chars().count()).unwrap_or(0))
            }
            Data::File(_) | Data::Text(_)
                if matches!(name, "parent" | "name" | "stem" | "parents") =>
            {
                Value::unknown(base.holds)
            }
            _ => {
                let own = self.members.get(name).map(|value| value.holds);
                Value::unknown(base.whole() | own.unwrap_or(Holds::NOTHING))
            }
        }
    }
}

/// Whether a loop's body can end it, or waits for something.
fn waits(body: &[Statement]) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Leave | Statement::Return(_) => true,
        Statement::Block(inner) => waits(inner),
        Statement::If { then, other, .. } => waits(then) || waits(other),
        Statement::For { body, .. } | Statement::While { body, .. } => waits(body),
        Statement::Expr(expr) | Statement::Set { value: expr, .. } => calls(expr, 0),
        _ => false,
    })
}

/// Whether something outside is called: it may wait, or end the program.
fn calls(expr: &Expr, depth: usize) -> bool {
    match expr {
        Expr::Call(call) => match &call.callee {
            Expr::Name(name) => {
                !matches!(name.as_str(), "print" | "len" | "str" | "int" | "append") && depth > 0
                    || is_waiting(name)
            }
            Expr::Member(..) => true,
            _ => true,
        },
        Expr::Parts(parts) | Expr::Sum(parts) | Expr::List(parts) | Expr::Choice(parts) => {
            parts.iter().any(|part| calls(part, depth))
        }
        Expr::Assign(_, value, _) => calls(value, depth),
        _ => false,
    }
}

fn is_waiting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "sleep", "wait", "input", "recv", "read", "poll", "get", "next", "exit", "tick", "run",
        "main", "step",
    ]
    .iter()
    .any(|word| name.contains(word))
}
