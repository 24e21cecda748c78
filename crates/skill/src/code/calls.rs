//! What well-known calls do with their values.

use std::rc::Rc;

use super::super::facts::{Act, Holds};
use super::super::places::{credential, lasting, secret_name};
use super::ir::{Call, Expr};
use super::run::Run;
use super::value::{Data, GAP, Value};

/// The arguments of a call.
#[derive(Debug)]
pub(super) struct Args {
    pub(super) values: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
}

impl Args {
    pub(super) fn get(&self, place: usize) -> Value {
        self.values.get(place).cloned().unwrap_or_default()
    }

    pub(super) fn holds(&self) -> Holds {
        let named = self.named.iter().map(|(_, value)| value);
        self.values.iter().chain(named).fold(Holds::NOTHING, |all, value| all | value.whole())
    }

    /// What is sent with a request: all but headers and settings.
    pub(super) fn sent(&self) -> Holds {
        let mut out = Holds::NOTHING;
        for value in &self.values {
            if let Data::Map(pairs) = &value.data {
                out |= pairs
                    .iter()
                    .filter(|(key, _)| is_payload(key))
                    .fold(Holds::NOTHING, |all, (_, value)| all | value.whole());
            } else {
                out |= value.whole();
            }
        }
        let named = self.named.iter().filter(|(name, _)| is_payload(name));
        named.fold(out, |all, (_, value)| all | value.whole())
    }
}

fn is_payload(name: &str) -> bool {
    !matches!(
        name,
        "headers"
            | "auth"
            | "timeout"
            | "verify"
            | "cert"
            | "method"
            | "proxies"
            | "agent"
            | "signal"
            | "hostname"
    )
}

/// A variable of the environment.
pub(super) fn variable(name: &str) -> Value {
    match name {
        "HOME" | "USERPROFILE" => Value::text("~", Holds::NOTHING),
        _ if secret_name(name) => Value::unknown(Holds::TOKEN),
        "USER" | "LOGNAME" | "HOSTNAME" => Value::unknown(Holds::MACHINE),
        _ => Value::unknown(Holds::NOTHING),
    }
}

impl Run<'_> {
    pub(super) fn call(&mut self, call: &Call) -> Value {
        let (base, name) = match &call.callee {
            Expr::Member(base, name) => (Some(self.eval(base)), name.clone()),
            _ => (None, String::new()),
        };
        let callee = match &base {
            Some(base) => self.member(base, &name),
            None => self.eval(&call.callee),
        };
        let values = call.args.iter().map(|arg| self.eval(arg)).collect();
        let named = call.named.iter().map(|(name, arg)| (name.clone(), self.eval(arg))).collect();
        let args = Args { values, named };
        match (&callee.data, &base) {
            (Data::Function(file, index), _) => self.own_call((*file, *index), &args),
            (Data::Path(path), _) => {
                let path = path.clone();
                self.named_call(&path, &args, call)
            }
            (_, Some(base)) => self.method(base, &name, &args, call),
            _ => Value::unknown(callee.holds | args.holds()),
        }
    }

    fn own_call(&mut self, function: (usize, usize), args: &Args) -> Value {
        let (file, index) = function;
        let modules = self.modules;
        let Some(known) = modules.get(file).and_then(|module| module.functions.get(index)) else {
            return Value::default();
        };
        let first = usize::from(
            known.parameters.first().is_some_and(|name| matches!(name.as_str(), "self" | "cls")),
        );
        let state = &mut self.functions[file][index];
        let fresh = !state.called;
        state.called = true;
        state.parameters.resize(known.parameters.len(), Value::default());
        let mut give = |place: usize, value: &Value| {
            if let Some(slot) = state.parameters.get_mut(place) {
                let before = std::mem::take(slot);
                let mut given = value.clone();
                given.holds |= value.whole();
                *slot = if fresh { given } else { before.or(given) };
            }
        };
        for (place, value) in args.values.iter().enumerate() {
            give(place + first, value);
        }
        for (name, value) in &args.named {
            if let Some(place) = known.parameters.iter().position(|known| known == name) {
                give(place, value);
            }
        }
        let known_result = self.apply(function, &args.values);
        if !matches!(known_result.data, Data::Unknown) {
            return known_result;
        }
        self.functions[file][index].returned.clone()
    }

    /// A call by the whole name of what is called.
    fn named_call(&mut self, path: &str, args: &Args, call: &Call) -> Value {
        let path = path.strip_prefix("node:").unwrap_or(path);
        let last = path.rsplit(['.', '/']).next().unwrap_or(path);
        let module = path.split('.').next().unwrap_or(path);
        if let Some(value) = self.computed(path, last, args) {
            return value;
        }
        if let Some(value) = self.surroundings(path, last, args) {
            return value;
        }
        if self.runs(path, module, last, args, call) {
            return Value::unknown(args.get(0).holds.without(Holds::INPUT));
        }
        if let Some(value) = self.file_call(path, module, last, args, call) {
            return value;
        }
        if let Some(value) = self.network(path, module, last, args, call) {
            return value;
        }
        if let Some(function) = self.own(last)
            && !path.contains("this.")
        {
            return self.own_call(function, args);
        }
        if path.starts_with("os.environ") {
            return match last {
                "get" | "pop" | "setdefault" | "__getitem__" => variable(&args.get(0).shown()),
                "items" | "copy" | "values" => Value::unknown(Holds::ENVIRONMENT),
                _ => Value::default(),
            };
        }
        self.last_name(last, args, call);
        match last {
            "print" | "len" | "exists" | "isfile" | "isdir" | "existsSync" | "log" | "error"
            | "info" | "warn" | "debug" | "exit" | "isinstance" | "hasattr" | "bool" | "stat"
            | "add_argument" => Value::default(),
            _ => Value::unknown(args.holds()),
        }
    }

    /// A method of something that is not a module.
    fn method(&mut self, base: &Value, name: &str, args: &Args, call: &Call) -> Value {
        if let Some(value) = self.computed_method(base, name, args) {
            return value;
        }
        if let Data::File(path) | Data::Text(path) = &base.data
            && let Some(value) = self.file_method(path, name, args, call)
        {
            return value;
        }
        let holds = base.whole() | args.holds();
        if let Data::Text(text) = &base.data
            && name == "format"
        {
            return Value::text(text.replace("{}", &args.get(0).shown()), holds);
        }
        if let Some(function) = self.own(name) {
            return self.own_call(function, args);
        }
        self.last_name(name, args, call);
        match name {
            "constructor" => {
                self.code(&args.get(0), call);
                Value::unknown(holds)
            }
            "call" | "apply" | "bind" => Value::unknown(holds),
            // What is added to a list or a map is in it.
            "append" | "push" | "update" | "extend" | "add" | "insert" | "set" | "write" => {
                if let Expr::Member(target, _) = &call.callee
                    && let Expr::Name(target) = &**target
                {
                    let data = match (&base.data, name, args.values.as_slice()) {
                        (Data::List(items), "append" | "push", [one]) if items.len() < 4096 => {
                            Data::List(
                                [items.as_slice(), std::slice::from_ref(one)].concat().into(),
                            )
                        }
                        (Data::File(path), ..) => Data::File(path.clone()),
                        _ => Data::Unknown,
                    };
                    self.set(&target.clone(), Value::new(data, holds));
                }
                Value::default()
            }
            _ => Value::unknown(holds),
        }
    }

    /// Sinks that are known by their last name alone, whatever they are a member of.
    fn last_name(&mut self, name: &str, args: &Args, call: &Call) {
        let first = args.get(0);
        let url = first.as_text().filter(|text| text.contains("://"));
        match name {
            "post" | "put" | "patch" | "request"
                if url.is_some() || args.sent().any(Holds::CREDENTIAL | Holds::ENVIRONMENT) =>
            {
                self.send(url, args.sent(), call);
            }
            "get" | "urlopen" | "download" if url.is_some() => self.fetch(url, args.sent(), call),
            "sendall" | "sendto" | "send" | "sendMessage" | "send_message" | "sendmail"
            | "sendMail" | "storbinary" | "upload_file" | "put_object" | "upload_fileobj"
            | "put_file" | "emit" => self.send(None, args.sent(), call),
            "connect" | "connect_ex"
                if !matches!(args.get(0).data, Data::Text(_) | Data::Unknown) =>
            {
                let file = self.file;
                self.marks[file].connects = true;
            }
            "pipe" => {
                if let [Expr::Member(_, name)] = call.args.as_slice()
                    && name == "stdin"
                {
                    let file = self.file;
                    self.marks[file].hands_over = true;
                }
            }
            "execute" | "executescript" | "executemany" | "query" | "raw" => {
                self.query(&first, call)
            }
            _ => {}
        }
    }

    fn query(&mut self, statement: &Value, call: &Call) {
        let Data::Text(text) = &statement.data else { return };
        let upper = text.trim_start().get(..12).unwrap_or_default().to_ascii_uppercase();
        let kind = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "DROP "]
            .iter()
            .any(|word| upper.starts_with(word));
        if kind && text.contains(GAP) && statement.holds.any(Holds::INPUT) {
            self.see(Act::Query, call.at.clone());
        }
    }

    /// A command that is run.
    pub(super) fn command(&mut self, value: &Value, rest: &Value, call: &Call) {
        let mut holds = value.whole();
        let text: Option<Rc<str>> = match (&value.data, &rest.data) {
            (Data::List(items), _) => Some(words(items)),
            (Data::Text(_) | Data::Bytes(_), Data::List(items)) => {
                holds |= rest.whole();
                value.as_text().map(|text| format!("{text} {}", words(items)).into())
            }
            _ => value.as_text(),
        };
        let file = self.file;
        let Some(text) =
            text.filter(|text| text.chars().any(|sign| sign != GAP && !sign.is_whitespace()))
        else {
            return self.opaque(holds, call);
        };
        let program = text.split_whitespace().next().unwrap_or_default();
        if matches!(
            program.rsplit('/').next().unwrap_or(program),
            "sh" | "bash" | "zsh" | "cmd.exe" | "powershell" | "powershell.exe"
        ) && text.split_whitespace().count() <= 2
        {
            self.marks[file].shell = true;
        }
        if holds.any(Holds::FETCHED) && text.trim_start().starts_with(GAP) {
            return self.opaque(holds, call);
        }
        let assembled = holds.any(Holds::DECODED | Holds::ASSEMBLED);
        self.see(Act::Shell { text: text.to_string(), assembled }, call.at.clone());
    }

    /// Code that is run.
    pub(super) fn code(&mut self, value: &Value, call: &Call) {
        match value.as_text().filter(|text| !text.contains(GAP)) {
            Some(text) if value.holds.any(Holds::DECODED | Holds::ASSEMBLED) => {
                self.see(Act::DecodeAndRun { text: Some(text.to_string()) }, call.at.clone());
            }
            Some(text) => self.see(Act::Code { text: text.to_string() }, call.at.clone()),
            None => self.opaque(value.whole(), call),
        }
    }

    fn opaque(&mut self, holds: Holds, call: &Call) {
        let at = call.at.clone();
        // Words of a command may come from anywhere; the command itself may not.
        if !is_code(call) && !in_shell(call) {
            return;
        }
        if holds.any(Holds::FETCHED) {
            self.see(Act::FetchAndRun { url: None }, at);
        } else if holds.any(Holds::DECODED) {
            self.see(Act::DecodeAndRun { text: None }, at);
        } else if holds.any(Holds::ASSEMBLED) {
            self.see(Act::RunAssembled, at);
        } else if holds.any(Holds::INPUT) && is_code(call) {
            self.see(Act::RunInput, at);
        } else if let Expr::Member(_, name) = &call.callee
            && name.starts_with("runIn")
        {
            // Nobody compiles what is known when it is written.
            self.see(Act::RunAssembled, at);
        }
    }

    pub(super) fn send(&mut self, url: Option<Rc<str>>, holds: Holds, call: &Call) {
        let what = if holds.any(Holds::CREDENTIAL) {
            self.classes.iter().copied().collect()
        } else {
            Vec::new()
        };
        self.see(Act::Send { url: url.map(|url| url.to_string()), holds, what }, call.at.clone());
    }

    pub(super) fn fetch(&mut self, url: Option<Rc<str>>, holds: Holds, call: &Call) {
        if holds.any(Holds::CREDENTIAL | Holds::ENVIRONMENT | Holds::WATCHED) {
            self.send(url, holds, call);
        } else {
            self.see(Act::Fetch { url: url.map(|url| url.to_string()) }, call.at.clone());
        }
    }

    /// A file that is read.
    pub(super) fn reading(&mut self, path: &Value, call: &Call) -> Holds {
        let Some(text) = path.as_text() else { return path.holds | Holds::FILE };
        if let Some(class) = credential(&text) {
            self.classes.insert(class);
            self.see(Act::ReadCredential { class }, call.at.clone());
            return Holds::CREDENTIAL;
        }
        if text.starts_with('/')
            && text.contains(GAP)
            && path.holds.any(Holds::INPUT)
            && text.matches('/').count() >= 2
        {
            self.see(Act::Traverse, call.at.clone());
        }
        path.holds.without(Holds::INPUT) | Holds::FILE
    }

    /// A file that is written.
    pub(super) fn writing(&mut self, path: &str, holds: Holds, call: &Call) {
        if let Some(what) = lasting(path) {
            self.see(Act::Persist { what, name: path.to_owned(), holds }, call.at.clone());
        }
    }
}

/// Whether a call is one of those that run code, and not a command.
fn is_code(call: &Call) -> bool {
    match &call.callee {
        Expr::Name(name) => matches!(name.as_str(), "eval" | "exec" | "Function" | "execfile"),
        Expr::Member(_, name) => {
            matches!(name.as_str(), "eval" | "runInNewContext" | "runInThisContext" | "system")
        }
        _ => true,
    }
}

/// Whether what is run is run by a shell, as one text.
fn in_shell(call: &Call) -> bool {
    let last = match &call.callee {
        Expr::Name(name) | Expr::Member(_, name) => name.as_str(),
        _ => "",
    };
    matches!(
        last,
        "exec" | "execSync" | "popen" | "getoutput" | "create_subprocess_shell" | "execAsync"
    ) || call.named.iter().any(|(name, value)| name == "shell" && matches!(value, Expr::Number(1)))
}

/// Words as a shell would have to be given them.
fn words(items: &[Value]) -> Rc<str> {
    let mut out = String::new();
    for item in items {
        let word = item.shown();
        if !out.is_empty() {
            out.push(' ');
        }
        let plain =
            word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=@%+,~".contains(&byte));
        if plain && !word.is_empty() {
            out.push_str(&word);
        } else {
            out.push('\'');
            out.push_str(&word.replace('\'', "'\\''"));
            out.push('\'');
        }
    }
    out.into()
}
