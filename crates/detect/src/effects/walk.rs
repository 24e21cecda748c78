//! Goes through the commands of a text in order, and keeps track of where each one runs.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::args::{shown, split};
use super::{
    Access, Directory, Effect, EffectKind, Effects, Endpoint, Language, MAX_EFFECTS, Made, Mention,
    MentionPlace, NetworkUse, Step, Target, Unknown,
};
use super::{
    archives, copying, files, git, interpreters, mentions, network, patches, searching, settings,
};
use crate::finding::Span;
use crate::shell::{self, Command, Joint, Opaque, Parsed, RedirectionKind, Via, Word};

/// Deepest nesting of code that runs a shell that is given code.
const MAX_NESTED: usize = 4;
/// Most steps of a directory, and most directories; beyond it the directory is not known.
const MAX_STEPS: usize = 16;
const MAX_DIRECTORIES: usize = 1024;

/// What a text is inside of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outer {
    depth: usize,
    directory: usize,
    span: Option<Span>,
    remote: bool,
}

/// Reads all commands of a text.
pub(super) fn walk(parsed: &Parsed, out: &mut Effects, outer: Outer) {
    let mut walker = Walker {
        parsed,
        shells: vec![None; parsed.shells.len().max(1)],
        starts: HashMap::new(),
        found: HashMap::new(),
        runs_others: vec![false; parsed.commands.len()],
        out,
        outer,
    };
    for parent in parsed.commands.iter().filter_map(|command| command.context.parent) {
        walker.runs_others[parent] = true;
    }
    walker.shells[0] = Some(Whereabouts::at(outer.directory));
    for index in 0..parsed.commands.len() {
        if walker.out.effects.len() > MAX_EFFECTS {
            break;
        }
        walker.command(index);
    }
    if !parsed.complete {
        walker.out.complete = false;
        let span = outer.span.unwrap_or(Span { start: 0, end: 0 });
        let mut doing = Doing {
            out: walker.out,
            span,
            program: None,
            directory: outer.directory,
            remote: outer.remote,
            depth: outer.depth,
        };
        let unknown = if parsed.truncated { Unknown::Rest } else { Unknown::Text };
        doing.push(EffectKind::Opaque(unknown), false);
        for token in &parsed.tokens {
            doing.mention(token, MentionPlace::Word);
        }
    }
}

/// Where a shell is.
#[derive(Debug, Clone)]
struct Whereabouts {
    now: usize,
    before: usize,
    stack: Vec<usize>,
}

impl Whereabouts {
    fn at(directory: usize) -> Self {
        Self { now: directory, before: directory, stack: Vec::new() }
    }
}

struct Walker<'p, 'o> {
    parsed: &'p Parsed,
    /// Where each shell is now; nothing until it is first used.
    shells: Vec<Option<Whereabouts>>,
    /// Where what a wrapper runs begins, by the wrapper.
    starts: HashMap<usize, usize>,
    /// What a search finds, by the command that searches.
    found: HashMap<usize, Vec<Word>>,
    /// Whether a command is a wrapper around others.
    runs_others: Vec<bool>,
    out: &'o mut Effects,
    outer: Outer,
}

impl Walker<'_, '_> {
    fn command(&mut self, index: usize) {
        let command = &self.parsed.commands[index];
        let shell = command.context.shell;
        let placed = self.shells[shell].is_none()
            && command.context.parent.is_some_and(|by| self.starts.contains_key(&by));
        let mut here = self.whereabouts(shell, command.context.parent);
        if command.context.joint != Joint::And && !placed {
            here.now = self.doubted(here.now);
        }
        let remote = self.outer.remote || command.context.inside.contains(&Via::Remote);
        let mut doing = Doing {
            out: self.out,
            span: self.outer.span.unwrap_or(command.span),
            program: command.program().map(plain_name),
            directory: here.now,
            remote,
            depth: self.outer.depth,
        };
        redirections(&mut doing, command);
        settings::assigned(&mut doing, command);
        let mut words = command.args.clone();
        if command.context.inside.last() == Some(&Via::Each)
            && let Some(found) = command.context.parent.and_then(|by| self.found.get(&by))
        {
            words = searching::filled_in(&words, found);
        }
        match command.opaque {
            Some(Opaque::Name) => doing.push(EffectKind::Opaque(Unknown::Program), true),
            Some(Opaque::Script | Opaque::Input) => {
                doing.push(EffectKind::Opaque(Unknown::Script), true);
            }
            None => {}
        }
        let Some(name) = &command.name else {
            self.shells[shell] = Some(here);
            return;
        };
        let run = EffectKind::Run { program: name.clone(), arguments: words.clone() };
        doing.push(run, true);
        let before = doing.out.effects.len();
        if name.text.as_deref().is_some_and(|text| text.contains('/')) {
            doing.file(Access::Read, name.clone());
        }
        let program = doing.program.clone().unwrap_or_default();
        if matches!(program.as_str(), "cd" | "chdir" | "pushd")
            && let Some(to) = split(&words, "", &[]).operands.into_iter().next()
        {
            doing.file(Access::List, to);
        }
        let used = Cell::new(false);
        let input = || {
            used.set(true);
            self.parsed.input(index)
        };
        settings::read(&mut doing, &program, &words);
        // Each program is in one of them at most.
        let _known = files::read(&mut doing, &program, &words)
            || copying::read(&mut doing, &program, &words)
            || archives::read(&mut doing, &program, &words)
            || git::read(&mut doing, &program, &words, &input)
            || network::read(&mut doing, &program, &words)
            || interpreters::read(&mut doing, &program, &words, &input)
            || patches::read(&mut doing, &program, &words, &input);
        if let Some(found) = searching::read(&mut doing, &program, &words, &input) {
            self.found.insert(index, found);
        }
        if let Some(start) = wrapper_directory(&program, &words) {
            let start = enter(doing.out, here.now, start, Made::Surely);
            self.starts.insert(index, start);
        }
        // What a wrapper runs is a command of its own, and told there.
        let unwrapped = self.runs_others[index];
        let told = told_since(doing.out, before);
        for word in words.iter().filter(|word| !unwrapped && !told.contains(shown(word))) {
            doing.mention(word, MentionPlace::Word);
        }
        if !used.get() && !unwrapped {
            here_documents(&mut doing, command);
        }
        let made = if is_conditional(command) { Made::Perhaps } else { Made::Surely };
        change_directory(self.out, &mut here, &program, &words, made);
        self.shells[shell] = Some(here);
    }

    /// Where a shell is: at first where its starter is, or where its wrapper puts it.
    fn whereabouts(&mut self, shell: usize, parent: Option<usize>) -> Whereabouts {
        let mut at = shell;
        // Bounded by the number of shells: each was started by an earlier or moved one.
        for _ in 0..=self.shells.len() {
            if let Some(Some(here)) = self.shells.get(at) {
                if at == shell {
                    return here.clone();
                }
                let start = parent.and_then(|by| self.starts.get(&by)).copied();
                return Whereabouts::at(start.unwrap_or(here.now));
            }
            match self.parsed.shells.get(at).copied().flatten() {
                Some(by) => at = by,
                None => break,
            }
        }
        Whereabouts::at(self.outer.directory)
    }

    /// The directory if steps that were needed before may have failed now.
    fn doubted(&mut self, directory: usize) -> usize {
        let Some(there) = self.out.directories.get(directory) else { return directory };
        if there.steps.iter().all(|step| step.made != Made::Surely) {
            return directory;
        }
        let mut there = there.clone();
        for step in there.steps.iter_mut().filter(|step| step.made == Made::Surely) {
            step.made = Made::IfPossible;
        }
        intern(self.out, there)
    }
}

/// Where a directory is listed; at most so many are.
fn intern(out: &mut Effects, directory: Directory) -> usize {
    if let Some(known) = out.directories.iter().rposition(|known| *known == directory) {
        return known;
    }
    if out.directories.len() >= MAX_DIRECTORIES {
        out.complete = false;
        return out.directories.len() - 1;
    }
    out.directories.push(directory);
    out.directories.len() - 1
}

/// The directory one step from another.
fn enter(out: &mut Effects, from: usize, to: Word, made: Made) -> usize {
    let mut there = out.directories.get(from).cloned().unwrap_or_default();
    if there.steps.len() >= MAX_STEPS || out.directories.len() + 1 >= MAX_DIRECTORIES {
        there.steps = vec![Step { to: Word::unknown(""), made: Made::Surely }];
    } else {
        there.steps.push(Step { to, made });
    }
    intern(out, there)
}

fn change_directory(
    out: &mut Effects,
    here: &mut Whereabouts,
    program: &str,
    words: &[Word],
    made: Made,
) {
    if !matches!(program, "cd" | "chdir" | "pushd" | "popd") {
        return;
    }
    let args = split(words, "", &[]);
    let target = args.operands.first();
    let back = matches!(target.and_then(|word| word.text.as_deref()), Some("-"));
    let before = here.now;
    let now = match (program, target) {
        ("popd", _) => here.stack.pop().filter(|_| made == Made::Surely),
        ("cd" | "chdir", Some(_)) if back => Some(here.before).filter(|_| made == Made::Surely),
        ("cd" | "chdir", None) => Some(enter(out, before, Word::literal("~"), made)),
        (_, Some(word)) if !shown(word).starts_with('+') => {
            Some(enter(out, before, word.clone(), made))
        }
        _ => None,
    };
    if program == "pushd" {
        here.stack.push(before);
    }
    here.before = before;
    here.now = now.unwrap_or_else(|| enter(out, before, Word::unknown(""), Made::Perhaps));
}

/// Whether a command may not run although its shell does.
fn is_conditional(command: &Command) -> bool {
    let since = command
        .context
        .inside
        .iter()
        .rev()
        .take_while(|via| matches!(via, Via::Branch | Via::Loop | Via::Function));
    since.count() > 0 || command.piped_from.is_some()
}

/// Where a wrapper runs its command, if it says so.
fn wrapper_directory(program: &str, words: &[Word]) -> Option<Word> {
    let options: &[&str] = match program {
        "env" => &["-C", "--chdir"],
        "sudo" => &["-D", "--chdir"],
        "systemd-run" => &["--working-directory"],
        _ => return None,
    };
    split(words, "CuDghpRrTtUS", &["--chdir", "--unset", "--working-directory"]).value(options)
}

/// The words that effects tell of from one on.
fn told_since(out: &Effects, first: usize) -> HashSet<String> {
    let told = out.effects[first..].iter().filter(|effect| match &effect.kind {
        // With a space it may be a command to the program rather than a file: `+'w! name'`.
        EffectKind::File(_, target) => !shown(&target.word).contains(char::is_whitespace),
        _ => true,
    });
    told.filter_map(told_word).collect()
}

/// The word that an effect tells of.
fn told_word(effect: &Effect) -> Option<String> {
    match &effect.kind {
        EffectKind::File(_, target) => Some(shown(&target.word).to_owned()),
        EffectKind::Network(endpoint) => Some(shown(&endpoint.word).to_owned()),
        EffectKind::Code { text, .. } => text.clone(),
        _ => None,
    }
}

/// A program's name without what tells versions apart.
fn plain_name(name: &str) -> String {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let versioned = ["python", "perl", "ruby", "php", "lua", "node", "pip", "gcc", "clang"];
    for plain in versioned {
        if let Some(version) = name.strip_prefix(plain)
            && version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
        {
            return plain.to_owned();
        }
    }
    name.to_owned()
}

fn redirections(doing: &mut Doing<'_>, command: &Command) {
    for redirection in &command.redirections {
        let target = &redirection.target;
        if let Some(place) = target.text.as_deref().and_then(socket) {
            let usage = NetworkUse::Connect;
            doing.network(Endpoint { word: target.clone(), host: Some(place), usage });
            continue;
        }
        match redirection.kind {
            RedirectionKind::Read => doing.file(Access::Read, target.clone()),
            RedirectionKind::Write => doing.file(Access::Write, target.clone()),
            RedirectionKind::Append => doing.file(Access::Append, target.clone()),
            RedirectionKind::ReadWrite => {
                doing.file(Access::Read, target.clone());
                doing.file(Access::Write, target.clone());
            }
            RedirectionKind::HereDocument
            | RedirectionKind::HereString
            | RedirectionKind::Duplicate => {}
        }
    }
}

/// Texts that stand in the command for whoever reads its input.
fn here_documents(doing: &mut Doing<'_>, command: &Command) {
    for redirection in &command.redirections {
        if matches!(redirection.kind, RedirectionKind::HereDocument | RedirectionKind::HereString) {
            doing.mention(&redirection.target, MentionPlace::Text);
        }
    }
}

/// The host of bash's `/dev/tcp/host/port`.
fn socket(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().map(str::to_ascii_lowercase)
}

/// What a command does, as it is being told.
pub(super) struct Doing<'o> {
    pub(super) out: &'o mut Effects,
    span: Span,
    pub(super) program: Option<String>,
    directory: usize,
    remote: bool,
    depth: usize,
}

impl Doing<'_> {
    pub(super) fn push(&mut self, kind: EffectKind, certain: bool) {
        // The last one says that there are more.
        let kind = match self.out.effects.len().cmp(&MAX_EFFECTS) {
            Ordering::Less => kind,
            Ordering::Equal => EffectKind::Opaque(Unknown::Rest),
            Ordering::Greater => return,
        };
        self.out.complete &= self.out.effects.len() < MAX_EFFECTS;
        self.out.effects.push(Effect {
            kind,
            span: self.span,
            program: self.program.clone(),
            directory: self.directory,
            remote: self.remote,
            certain,
        });
    }

    pub(super) fn file(&mut self, access: Access, target: impl Into<Target>) {
        self.file_if(access, target, true);
    }

    /// An effect on a file that may be one.
    pub(super) fn file_if(&mut self, access: Access, target: impl Into<Target>, certain: bool) {
        let target = target.into();
        // These take everything and keep nothing.
        let nothing = matches!(
            target.word.text.as_deref(),
            Some("/dev/null" | "-" | "" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
        );
        if !nothing {
            self.push(EffectKind::File(access, target), certain);
        }
    }

    pub(super) fn network(&mut self, endpoint: Endpoint) {
        self.push(EffectKind::Network(endpoint), true);
    }

    pub(super) fn mention(&mut self, word: &Word, place: MentionPlace) {
        let (span, mentions) = (self.span, &mut self.out.mentions);
        mentions::collect(word, place, |word| {
            if mentions.len() < MAX_EFFECTS {
                mentions.push(Mention { word, span, place });
            }
        });
    }

    /// Runs the rest in another directory, seen from here.
    pub(super) fn inside(&mut self, directory: Option<Word>, rest: impl FnOnce(&mut Self)) {
        let before = self.directory;
        if let Some(to) = directory {
            self.directory = enter(self.out, before, to, Made::Surely);
        }
        rest(self);
        self.directory = before;
    }

    /// A text that a shell runs.
    pub(super) fn script(&mut self, text: &str) {
        if self.depth >= MAX_NESTED {
            self.push(EffectKind::Opaque(Unknown::Script), true);
            return;
        }
        let outer = Outer {
            depth: self.depth + 1,
            directory: self.directory,
            span: Some(self.span),
            remote: self.remote,
        };
        walk(&shell::parse(text), self.out, outer);
    }

    /// Code that an interpreter runs.
    pub(super) fn code(&mut self, language: Language, text: Option<String>) {
        if let Some(text) = &text {
            let before = self.out.effects.len();
            super::code::read(self, language, text);
            // What the code surely does with a file is told; other names are only mentioned.
            let told: HashSet<String> = self.out.effects[before..]
                .iter()
                .filter(|effect| effect.certain)
                .filter_map(told_word)
                .collect();
            let first = self.out.mentions.len();
            self.mention(&Word::literal(text.as_str()), MentionPlace::Code);
            let mut place = 0;
            self.out.mentions.retain(|mention| {
                place += 1;
                let known = mention.word.text.as_ref().is_some_and(|name| told.contains(name));
                place <= first || !known
            });
        }
        self.push(EffectKind::Code { language, text }, true);
    }
}
