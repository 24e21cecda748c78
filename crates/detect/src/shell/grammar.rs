//! Lists, pipelines and compound commands.

use super::state::State;
use super::{Command, Context, Joint, Redirection, Via, Word, emulate};
use crate::finding::Span;

/// Most values for which the body of a `for` is read once each.
const MAX_UNROLLED: usize = 32;

/// Where the bytes of a text stand in the original.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// At this offset.
    At(usize),
    /// Somewhere inside of this.
    Within(Span),
}

/// Reads one text, in the order in which it would run.
#[derive(Debug)]
pub(super) struct Parser<'text, 'state> {
    pub(super) text: &'text str,
    pub(super) bytes: &'text [u8],
    pub(super) at: usize,
    pub(super) origin: Origin,
    pub(super) state: &'state mut State,
    /// The line end behind which here-documents lie, and where they end.
    pub(super) documents: Option<(usize, usize)>,
}

impl<'text, 'state> Parser<'text, 'state> {
    pub(super) fn new(text: &'text str, offset: usize, state: &'state mut State) -> Self {
        Self::with_origin(text, Origin::At(offset), state)
    }

    pub(super) fn with_origin(text: &'text str, origin: Origin, state: &'state mut State) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0, origin, state, documents: None }
    }

    /// The whole text; what does not fit is stepped over.
    pub(super) fn program(&mut self) {
        while !self.state.halted() {
            self.list(&[]);
            if self.at >= self.bytes.len() {
                break;
            }
            self.state.complete = false;
            self.step();
        }
    }

    /// Commands up to an end word, `)`, `;;` or the end of the text.
    pub(super) fn list(&mut self, ends: &[&str]) {
        while !self.state.halted() {
            self.separators();
            match self.peek() {
                None | Some(b')') => return,
                Some(b';') if self.looking_at(";;") || self.looking_at(";&") => return,
                _ => {}
            }
            if ends.contains(&self.bare_word()) {
                return;
            }
            let before = self.at;
            let (command, shell) = (self.state.commands.len(), self.state.shells.len());
            let mark = self.state.mark();
            self.and_or();
            self.blanks();
            let background = self.peek() == Some(b'&') && !self.looking_at("&&");
            if background {
                self.state.move_to_shell(command, shell);
                self.state.forget_since(mark);
            }
            if self.at == before {
                self.state.complete = false;
                self.step();
            }
        }
    }

    fn and_or(&mut self) {
        self.state.joint = Joint::Sequence;
        self.pipeline();
        // What stands behind `&&` holds within the chain; behind it, it may not have run.
        let mut mark = self.state.mark();
        loop {
            self.blanks();
            if self.looking_at("&&") {
                self.at += 2;
                self.newlines();
                self.state.joint = Joint::And;
                self.pipeline();
            } else if self.looking_at("||") {
                self.at += 2;
                self.newlines();
                self.state.joint = Joint::Or;
                self.state.forget_since(mark);
                mark = self.state.mark();
                self.inside(Via::Branch, Self::pipeline);
            } else {
                self.state.forget_since(mark);
                return;
            }
        }
    }

    fn pipeline(&mut self) {
        self.blanks();
        while matches!(self.bare_word(), "!" | "time") {
            self.at += self.bare_word().len();
            self.blanks();
            if self.bare_word() == "-p" {
                self.at += 2;
                self.blanks();
            }
        }
        let (stdin, mut mark) = (self.state.stdin, self.state.mark());
        let mut first = self.state.commands.len();
        let mut shell = self.state.shells.len();
        let joint = self.state.joint;
        let mut piped = false;
        self.command();
        loop {
            self.blanks();
            if self.peek() != Some(b'|') || self.looking_at("||") || self.state.halted() {
                break;
            }
            self.at += if self.looking_at("|&") { 2 } else { 1 };
            self.newlines();
            piped = true;
            // Each part of a pipe runs in a shell of its own; the last one may not (zsh).
            self.state.move_to_shell(first, shell);
            self.state.forget_since(mark);
            mark = self.state.mark();
            if self.state.commands.len() > first {
                self.state.stdin = Some(self.state.commands.len() - 1);
            }
            (first, shell) = (self.state.commands.len(), self.state.shells.len());
            self.state.joint = joint;
            let before = self.at;
            self.command();
            self.state.complete &= self.at > before;
        }
        self.state.stdin = stdin;
        if piped {
            self.state.forget_since(mark);
        }
    }

    fn command(&mut self) {
        self.blanks();
        if !self.state.enter() {
            return;
        }
        let start = self.at;
        let compound = match self.bare_word() {
            "if" => self.conditional(),
            "while" | "until" => self.while_loop(),
            "for" | "select" => self.for_loop(),
            "case" => self.case(),
            "function" => self.function_keyword(),
            "{" => {
                self.at += 1;
                self.list(&["}"]);
                self.expect("}");
                true
            }
            "[[" => self.condition(),
            "coproc" => {
                self.at += "coproc".len();
                self.blanks();
                let name = self.coproc_name();
                self.inside(Via::Subshell, Self::command);
                self.state.forget(&name);
                true
            }
            "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}" => {
                self.state.complete = false;
                self.at += self.bare_word().len();
                true
            }
            _ if self.peek() == Some(b'(') => self.parenthesis(),
            _ => {
                self.simple();
                false
            }
        };
        if compound {
            self.trailing_redirections(start);
        }
        self.state.leave();
    }

    /// The name of a coprocess: there is one only in front of a compound command.
    fn coproc_name(&mut self) -> String {
        let (start, name) = (self.at, self.bare_word().to_owned());
        self.at += name.len();
        self.blanks();
        let words = ["{", "if", "while", "until", "for", "select", "case", "[["];
        let compound = self.peek() == Some(b'(') || words.contains(&self.bare_word());
        if !name.is_empty() && !words.contains(&name.as_str()) && compound {
            return name;
        }
        self.at = start;
        "COPROC".to_owned()
    }

    fn parenthesis(&mut self) -> bool {
        if self.looking_at("((")
            && let Some(end) = self.arithmetic_end(self.at + 2)
        {
            self.arithmetic(end);
            return true;
        }
        self.at += 1;
        self.inside(Via::Subshell, |parser| parser.list(&[]));
        self.expect(")");
        true
    }

    fn conditional(&mut self) -> bool {
        self.at += 2;
        self.list(&["then"]);
        self.expect("then");
        loop {
            self.inside(Via::Branch, |parser| parser.list(&["elif", "else", "fi"]));
            match self.bare_word() {
                "elif" => {
                    self.at += 4;
                    self.inside(Via::Branch, |parser| parser.list(&["then"]));
                    self.expect("then");
                }
                "else" => self.at += 4,
                _ => break,
            }
            if self.state.halted() {
                break;
            }
        }
        self.expect("fi");
        true
    }

    fn while_loop(&mut self) -> bool {
        self.at += self.bare_word().len();
        self.repeated(|parser| {
            parser.list(&["do"]);
            parser.expect("do");
            parser.list(&["done"]);
        });
        self.expect("done");
        true
    }

    fn for_loop(&mut self) -> bool {
        self.at += self.bare_word().len();
        self.blanks();
        if self.looking_at("((")
            && let Some(end) = self.arithmetic_end(self.at + 2)
        {
            self.arithmetic(end);
            self.loop_body("", &[]);
            return true;
        }
        let name = self.bare_word().to_owned();
        self.at += name.len();
        self.newlines();
        let mut values = vec![Word::unknown("$@")];
        if self.bare_word() == "in" {
            self.at += 2;
            values.clear();
            loop {
                self.blanks();
                let before = self.at;
                values.extend(self.word());
                if self.at == before {
                    break;
                }
            }
        }
        self.loop_body(&name, &values);
        true
    }

    fn loop_body(&mut self, name: &str, values: &[Word]) {
        self.separators();
        let close = if self.bare_word() == "{" { "}" } else { "done" };
        self.expect(if close == "}" { "{" } else { "do" });
        let start = self.at;
        let known = values.iter().all(|word| word.text.is_some() && !word.glob);
        let several = (2..=MAX_UNROLLED).contains(&values.len()) && known;
        if let [only] = values {
            // The variable holds a name that matches, not the glob.
            let text = only.text.clone().filter(|_| !only.glob);
            self.state.assign(name, &Word { text, ..only.clone() });
        } else if !name.is_empty() {
            self.state.assign(name, &Word::unknown(""));
        }
        if several {
            for value in values {
                if !self.state.can_afford((self.bytes.len() - start) * 2) {
                    self.state.assign(name, &Word::unknown(""));
                }
                self.rewind(start);
                self.state.assign(name, value);
                self.inside(Via::Loop, |parser| parser.list(&[close]));
                if self.state.halted() {
                    return;
                }
            }
        } else {
            self.repeated(|parser| parser.list(&[close]));
            // In quotes the variable is a name that was found, not the pattern.
            if let [only] = values
                && only.glob
                && self.bytes[start..self.at].contains(&b'"')
                && self.state.can_afford((self.at - start) * 2)
            {
                self.rewind(start);
                self.state.assign(name, &Word { text: None, ..only.clone() });
                self.inside(Via::Loop, |parser| parser.list(&[close]));
            }
        }
        self.expect(close);
    }

    /// What may run more than once is read again with everything unknown that it assigns.
    fn repeated(&mut self, body: impl Fn(&mut Self)) {
        let (start, mark) = (self.at, self.state.mark());
        self.inside(Via::Loop, &body);
        if self.state.mark() == mark || self.state.halted() {
            return;
        }
        if self.state.can_afford((self.at - start) * 2) {
            self.rewind(start);
            self.inside(Via::Loop, &body);
        } else {
            self.state.complete = false;
        }
    }

    fn rewind(&mut self, to: usize) {
        self.at = to;
        self.documents = None;
    }

    fn case(&mut self) -> bool {
        self.at += 4;
        self.blanks();
        let _subject = self.word();
        self.newlines();
        self.expect("in");
        loop {
            self.separators();
            if self.state.halted() || self.at >= self.bytes.len() || self.bare_word() == "esac" {
                break;
            }
            if self.peek() == Some(b'(') {
                self.at += 1;
            }
            // The patterns.
            loop {
                self.blanks();
                let before = self.at;
                let _pattern = self.word();
                self.blanks();
                if self.peek() == Some(b'|') {
                    self.at += 1;
                }
                if self.at == before {
                    break;
                }
            }
            if !self.expect(")") {
                self.step();
                continue;
            }
            self.inside(Via::Branch, |parser| parser.list(&["esac"]));
            for end in [";;&", ";;", ";&"] {
                if self.looking_at(end) {
                    self.at += end.len();
                    break;
                }
            }
            if self.peek() == Some(b')') {
                break;
            }
        }
        self.expect("esac");
        true
    }

    fn function_keyword(&mut self) -> bool {
        self.at += "function".len();
        self.blanks();
        self.state.complete &= !emulate::FOLLOWED.contains(&self.bare_word());
        self.at += self.bare_word().len();
        self.blanks();
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.blanks();
            self.expect(")");
        }
        self.function_body();
        true
    }

    /// The body of a function whose name was read.
    pub(super) fn function_body(&mut self) {
        self.newlines();
        let variables = self.state.hide_variables();
        let mark = self.state.mark();
        self.inside(Via::Function, Self::command);
        self.state.show_variables(variables);
        self.state.forget_since(mark);
        self.state.make_volatile_since(mark);
    }

    /// `[[ … ]]`, of which only the words matter.
    fn condition(&mut self) -> bool {
        let start = self.at;
        self.at += 2;
        let mut args = Vec::new();
        loop {
            self.newlines();
            if self.bare_word() == "]]" {
                self.at += 2;
                break;
            }
            if self.at >= self.bytes.len() || self.state.halted() {
                self.state.complete = false;
                break;
            }
            let before = self.at;
            args.extend(self.word());
            if self.at == before {
                self.state.complete &= self.peek() != Some(b';');
                self.step();
            }
        }
        let arithmetic = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
        if args.iter().any(|word| arithmetic.contains(&word.raw.as_str())) {
            let text = &self.text[start..self.at];
            self.state.forget_named_in(text);
        }
        self.push_command(start, Some(Word::literal("[[")), args, Vec::new());
        true
    }

    /// Redirections of a whole compound are a command without a name.
    fn trailing_redirections(&mut self, start: usize) {
        let mut redirections = Vec::new();
        loop {
            self.blanks();
            if !self.redirection(&mut redirections) {
                break;
            }
        }
        if !redirections.is_empty() {
            self.push_command(start, None, Vec::new(), redirections);
        }
    }

    fn push_command(
        &mut self,
        start: usize,
        name: Option<Word>,
        args: Vec<Word>,
        redirections: Vec<Redirection>,
    ) {
        let span = self.span(start);
        let (piped_from, context) = (self.state.stdin, self.context());
        let assignments = Vec::new();
        self.state.push(Command {
            name,
            args,
            assignments,
            redirections,
            span,
            piped_from,
            opaque: None,
            context,
        });
    }

    pub(super) fn context(&self) -> Context {
        Context {
            inside: self.state.inside.clone(),
            parent: self.state.parent,
            shell: self.state.shell,
            joint: self.state.joint,
        }
    }

    /// Runs a part inside a construct; what it assigns is not known afterwards.
    pub(super) fn inside(&mut self, via: Via, part: impl FnOnce(&mut Self)) {
        let (mark, stdin, joint) = (self.state.mark(), self.state.stdin, self.state.joint);
        let shell = self.state.shell;
        if matches!(via, Via::Subshell | Via::Substitution | Via::ProcessSubstitution) {
            self.state.start_shell();
        }
        self.state.inside.push(via);
        part(self);
        self.state.inside.pop();
        self.state.stdin = stdin;
        self.state.joint = joint;
        self.state.shell = shell;
        self.state.forget_since(mark);
    }
}
