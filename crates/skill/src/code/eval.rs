//! Expressions, as far as their values are known.

use std::collections::HashMap;

use super::super::facts::Holds;
use super::decode;
use super::ir::{Expr, Operator, Statement};
use super::run::{ROUNDS, Run, STEPS};
use super::value::{Data, GAP, Value};

impl Run<'_> {
    pub(super) fn eval(&mut self, expr: &Expr) -> Value {
        if !self.step() {
            return Value::default();
        }
        match expr {
            Expr::Text(text) => Value::text(text.as_str(), Holds::NOTHING),
            Expr::Bytes(bytes) => Value::bytes(bytes.clone(), Holds::NOTHING),
            Expr::Number(number) => Value::number(*number),
            Expr::Name(name) => self.name(name),
            Expr::Member(base, name) => {
                let base = self.eval(base);
                self.member(&base, name)
            }
            Expr::Index(base, index) => {
                let (base, index) = (self.eval(base), self.eval(index));
                self.item(&base, &index)
            }
            Expr::Slice(base, bounds) => self.slice(base, bounds),
            Expr::Call(call) => self.call(call),
            Expr::Sum(parts) => {
                let mut parts = parts.iter();
                let first = parts.next().map(|part| self.eval(part)).unwrap_or_default();
                parts.fold(first, |sum, part| {
                    let part = self.eval(part);
                    sum.plus(&part)
                })
            }
            Expr::Binary(operator, left, right) => {
                let (left, right) = (self.eval(left), self.eval(right));
                binary(*operator, &left, &right)
            }
            Expr::Negative(inner) => match self.eval(inner).as_number() {
                Some(number) => Value::number(number.wrapping_neg()),
                None => Value::default(),
            },
            Expr::List(items) => Value::list(items.iter().map(|item| self.eval(item)).collect()),
            Expr::Map(pairs) => self.map(pairs),
            Expr::Template(parts) => {
                let parts: Vec<Value> = parts.iter().map(|part| self.eval(part)).collect();
                let holds = parts.iter().fold(Holds::NOTHING, |all, part| all | part.whole());
                let text: String = parts.iter().map(Value::shown).collect();
                if text.chars().all(|sign| sign == GAP) {
                    Value::unknown(holds)
                } else {
                    Value::text(text, holds)
                }
            }
            Expr::Each { item, name, over } => self.comprehend(item, name, over),
            Expr::Choice(parts) => {
                let parts: Vec<Value> = parts.iter().map(|part| self.eval(part)).collect();
                let holds = parts.iter().fold(Holds::NOTHING, |all, part| all | part.holds);
                let known = parts.into_iter().find(|part| {
                    matches!(part.data, Data::Text(_) | Data::List(_) | Data::Bytes(_))
                });
                known.map_or_else(|| Value::unknown(holds), |part| Value::new(part.data, holds))
            }
            Expr::Function(index) => Value::new(Data::Function(self.file, *index), Holds::NOTHING),
            Expr::Assign(target, value, add) => {
                let value = self.eval(value);
                self.assign(target, value.clone(), *add);
                value
            }
            Expr::Parts(parts) => match parts.as_slice() {
                [one] => self.eval(one),
                _ => {
                    let holds = parts
                        .iter()
                        .fold(Holds::NOTHING, |all, part| all | self.eval(part).whole());
                    Value::unknown(holds)
                }
            },
        }
    }

    pub(super) fn item(&mut self, base: &Value, index: &Value) -> Value {
        let holds = base.holds;
        match (&base.data, &index.data) {
            (Data::Path(path), Data::Text(name)) => match &**path {
                "os.environ" | "process.env" => super::calls::variable(name),
                "globals()" | "locals()" | "vars()" | "__dict__" => self.name(name),
                _ => self.member(base, name),
            },
            (Data::Path(path), _) if matches!(&**path, "os.environ" | "process.env") => {
                Value::unknown(Holds::TOKEN)
            }
            (Data::Path(_), _) => Value::unknown(base.whole() | index.holds),
            (Data::Map(_), Data::Text(name)) => {
                base.member(name).unwrap_or_else(|| Value::unknown(holds))
            }
            (Data::List(items), Data::Number(at)) => {
                let at = if *at < 0 { at.saturating_add_unsigned(items.len() as u64) } else { *at };
                usize::try_from(at).ok().and_then(|at| items.get(at).cloned()).unwrap_or_default()
            }
            (Data::Text(text), Data::Number(at)) if !text.contains(GAP) => {
                let at = if *at < 0 {
                    at.saturating_add_unsigned(text.chars().count() as u64)
                } else {
                    *at
                };
                let sign = usize::try_from(at).ok().and_then(|at| {
                    if text.is_ascii() {
                        text.as_bytes().get(at).map(|byte| char::from(*byte))
                    } else {
                        text.chars().nth(at)
                    }
                });
                sign.map_or_else(Value::default, |sign| {
                    Value::text(sign.to_string(), holds | Holds::ASSEMBLED)
                })
            }
            (Data::Bytes(bytes), Data::Number(at)) => {
                let byte = usize::try_from(*at).ok().and_then(|at| bytes.get(at));
                byte.map_or_else(Value::default, |byte| Value::number(i64::from(*byte)))
            }
            _ => Value::unknown(base.whole()),
        }
    }

    fn slice(&mut self, base: &Expr, bounds: &[Option<Box<Expr>>; 3]) -> Value {
        let base = self.eval(base);
        let mut known = [None; 3];
        for (place, bound) in bounds.iter().enumerate() {
            if let Some(bound) = bound {
                known[place] = self.eval(bound).as_number();
                if known[place].is_none() {
                    return Value::unknown(base.holds);
                }
            }
        }
        let holds = if known[2] == Some(-1) { base.holds | Holds::ASSEMBLED } else { base.holds };
        match &base.data {
            Data::Text(text) if !text.contains(GAP) => {
                let signs: Vec<char> = text.chars().collect();
                Value::text(decode::slice(&signs, known).into_iter().collect::<String>(), holds)
            }
            Data::Bytes(bytes) => Value::bytes(decode::slice(bytes, known), holds),
            Data::List(items) => Value::new(Data::List(decode::slice(items, known).into()), holds),
            _ => Value::unknown(base.whole()),
        }
    }

    fn map(&mut self, pairs: &[(Expr, Expr)]) -> Value {
        let mut out = Vec::with_capacity(pairs.len());
        let mut holds = Holds::NOTHING;
        for (key, value) in pairs {
            let (key, value) = (self.eval(key), self.eval(value));
            holds |= value.whole();
            let spread = matches!(key.data, Data::Unknown).then_some(&value.data);
            if let Some(Data::Map(inner)) = spread {
                out.extend(inner.iter().cloned());
            } else {
                out.push((key.shown(), value));
            }
        }
        Value::new(Data::Map(out.into()), holds)
    }

    fn comprehend(&mut self, item: &Expr, name: &[String], over: &Expr) -> Value {
        let over = self.eval(over);
        let before: Vec<Option<Value>> =
            name.iter().map(|name| self.scope().get(name).cloned()).collect();
        let out = match over.items().filter(|items| items.len() <= ROUNDS) {
            Some(items) => {
                let mut out = Vec::with_capacity(items.len());
                for one in items {
                    self.bind(name, one);
                    let value = self.eval(item);
                    out.push(value);
                }
                Value::list(out)
            }
            None => {
                self.bind(name, Value::unknown(over.whole()));
                Value::unknown(self.eval(item).whole() | over.whole())
            }
        };
        for (name, value) in name.iter().zip(before) {
            match value {
                Some(value) => self.set(name, value),
                None => drop(self.scope().remove(name)),
            }
        }
        out
    }

    fn bind(&mut self, names: &[String], value: Value) {
        match names {
            [name] => self.set(name, value),
            _ => {
                let items = value.items();
                for (place, name) in names.iter().enumerate() {
                    let part = items.as_ref().and_then(|items| items.get(place).cloned());
                    self.set(name, part.unwrap_or_else(|| Value::unknown(value.whole())));
                }
            }
        }
    }

    fn scope(&mut self) -> &mut HashMap<String, Value> {
        self.locals.as_mut().unwrap_or(&mut self.globals[self.file])
    }

    /// A function of this skill for every item, where it is one expression.
    pub(super) fn apply(&mut self, function: (usize, usize), args: &[Value]) -> Value {
        let (file, index) = function;
        let modules = self.modules;
        let Some(known) = modules.get(file).and_then(|module| module.functions.get(index)) else {
            return Value::default();
        };
        let (file, [Statement::Return(expr)]) = (file, known.body.as_slice()) else {
            return Value::default();
        };
        if file != self.file || self.steps >= STEPS {
            return Value::default();
        }
        let outer = self.locals.clone();
        let mut inner = outer.clone().unwrap_or_default();
        for (place, name) in known.parameters.iter().enumerate() {
            inner.insert(name.clone(), args.get(place).cloned().unwrap_or_default());
        }
        self.locals = Some(inner);
        let value = self.eval(expr);
        self.locals = outer;
        value
    }
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Value {
    let holds = left.whole() | right.whole();
    if let (Some(one), Some(two)) = (left.as_number(), right.as_number()) {
        let number = match operator {
            Operator::Add => one.wrapping_add(two),
            Operator::Subtract => one.wrapping_sub(two),
            Operator::Multiply => one.wrapping_mul(two),
            Operator::Divide => one.checked_div_euclid(two).unwrap_or(0),
            Operator::Modulo => one.checked_rem_euclid(two).unwrap_or(0),
            Operator::Xor => one ^ two,
            Operator::And => one & two,
            Operator::Or => one | two,
            Operator::Left => one.checked_shl(u32::try_from(two).unwrap_or(64)).unwrap_or(0),
            Operator::Right => one.checked_shr(u32::try_from(two).unwrap_or(64)).unwrap_or(0),
            Operator::Less => i64::from(one < two),
            Operator::More => i64::from(one > two),
            Operator::AtMost => i64::from(one <= two),
            Operator::AtLeast => i64::from(one >= two),
            Operator::Equal => i64::from(one == two),
            Operator::NotEqual => i64::from(one != two),
            Operator::Other => return Value::unknown(holds),
        };
        return Value::new(Data::Number(number), holds);
    }
    match (operator, &left.data, &right.data) {
        // `Path.home() / "x"`.
        (Operator::Divide, Data::Text(one), _) => {
            Value::text(format!("{}/{}", one.trim_end_matches('/'), right.shown()), holds)
        }
        (Operator::Divide, Data::Unknown, Data::Text(two)) => {
            Value::text(format!("{GAP}/{two}"), holds)
        }
        (Operator::Modulo, Data::Text(format), _) => Value::text(filled(format, right), holds),
        (Operator::Multiply, Data::Text(text), Data::Number(times)) => {
            let times = usize::try_from(*times).unwrap_or(0);
            if text.len().saturating_mul(times) > 1 << 16 {
                Value::unknown(holds)
            } else {
                Value::text(text.repeat(times), holds)
            }
        }
        (
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::More
            | Operator::AtMost
            | Operator::AtLeast,
            _,
            _,
        ) => Value::default(),
        _ => Value::unknown(holds),
    }
}

/// `"…%s…" % x`.
fn filled(format: &str, value: &Value) -> String {
    let mut items = match &value.data {
        Data::List(items) => items.to_vec(),
        _ => vec![value.clone()],
    }
    .into_iter();
    let mut out = String::new();
    let mut signs = format.chars();
    while let Some(sign) = signs.next() {
        if sign != '%' {
            out.push(sign);
        } else if matches!(signs.next(), Some('s' | 'd' | 'r' | 'i')) {
            out.push_str(&items.next().map_or_else(|| GAP.to_string(), |item| item.shown()));
        } else {
            out.push('%');
        }
    }
    out
}
