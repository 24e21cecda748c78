//! Words: quotes, escapes, substitutions; and the simple command made of them.

use super::expand::{Piece, fields};
use super::grammar::{Origin, Parser};
use super::state::Saved;
use super::{Assignment, Command, Redirection, RedirectionKind, Via, Word, emulate, unwrap};
use crate::finding::Span;

/// Commands of the shell itself that may keep an assignment in front of them.
const KEEPS: [&str; 12] = [
    "eval", "export", "declare", "typeset", "readonly", "local", ".", "source", "set", "exec",
    "command", "builtin",
];

impl Parser<'_, '_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn looking_at(&self, text: &str) -> bool {
        self.bytes[self.at.min(self.bytes.len())..].starts_with(text.as_bytes())
    }

    pub(super) fn step(&mut self) {
        self.at = (self.at + 1).min(self.bytes.len());
        while self.at < self.bytes.len() && !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        self.state.spend(1);
    }

    pub(super) fn span(&self, start: usize) -> Span {
        match self.origin {
            Origin::At(offset) => (offset + start..offset + self.at).into(),
            Origin::Within(span) => span,
        }
    }

    /// The run of ordinary signs at this place: reserved words are only such when unquoted.
    pub(super) fn bare_word(&self) -> &str {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let length = rest.iter().take(64).take_while(|byte| !is_meta(**byte)).count();
        let word = self.text.get(self.at..self.at + length).unwrap_or("");
        let ends = matches!(rest.get(length), None | Some(b'\n'));
        if ends { word.strip_suffix('\r').unwrap_or(word) } else { word }
    }

    /// Takes a reserved word or sign, or notes that it is missing.
    pub(super) fn expect(&mut self, what: &str) -> bool {
        self.separators();
        let there = if what == ")" { self.peek() == Some(b')') } else { self.bare_word() == what };
        if there {
            self.at += what.len();
        } else {
            self.state.complete = false;
        }
        there
    }

    /// Blanks, line continuations and comments.
    pub(super) fn blanks(&mut self) {
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\r' if self.at_line_end() => self.at += 1,
                b'\\' if self.looking_at("\\\n") => self.at += 2,
                b'#' if self.at == 0 || is_meta(self.bytes[self.at - 1]) => {
                    let rest = &self.bytes[self.at..];
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        if self.at > start {
            self.state.spend(self.at - start);
        }
    }

    /// Whether a carriage return here is part of a line end, and not of a word.
    pub(super) fn at_line_end(&self) -> bool {
        matches!(self.bytes.get(self.at + 1), None | Some(b'\n'))
    }

    pub(super) fn newlines(&mut self) {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') || self.state.halted() {
                return;
            }
            self.newline();
        }
    }

    pub(super) fn separators(&mut self) {
        loop {
            self.newlines();
            match self.peek() {
                Some(b';') if !self.looking_at(";;") && !self.looking_at(";&") => self.step(),
                Some(b'&') if !self.looking_at("&&") && !self.looking_at("&>") => self.step(),
                _ => return,
            }
            if self.state.halted() {
                return;
            }
        }
    }

    /// Steps over a line end, and over the here-documents behind it.
    fn newline(&mut self) {
        match self.documents.take() {
            Some((line_end, end)) if line_end == self.at => self.at = end,
            Some(_) => {
                self.state.complete = false;
                self.step();
            }
            None => self.step(),
        }
    }

    pub(super) fn simple(&mut self) {
        let start = self.at;
        let (mut words, mut assignments, mut redirections) = (Vec::new(), Vec::new(), Vec::new());
        let mut named = false;
        let mut end = start;
        let mut saved: Option<Saved> = None;
        while !self.state.halted() {
            self.blanks();
            if self.redirection(&mut redirections) {
                end = self.at;
                continue;
            }
            if !named && let Some(assignment) = self.assignment() {
                // The next one sees this one; the words of the command do not.
                let names = std::iter::once(&assignment.name);
                let before = self.state.save(names);
                match &mut saved {
                    Some(saved) => saved.extend(before),
                    None => saved = Some(before),
                }
                self.assign(&assignment);
                assignments.push(assignment);
                end = self.at;
                continue;
            }
            let before = self.at;
            if let Some(saved) = saved.take() {
                self.state.restore(saved);
            }
            words.extend(self.word());
            if self.at == before {
                break;
            }
            end = self.at;
            if !named && words.len() == 1 && self.peek_function() {
                let name = words[0].text.as_deref().unwrap_or("");
                self.state.complete &= !emulate::FOLLOWED.contains(&name);
                self.function_body();
                return;
            }
            named |= !words.is_empty();
        }
        let ended = std::mem::replace(&mut self.at, end);
        let span = self.span(start);
        self.at = ended;
        if end == start {
            return;
        }
        if words.is_empty() {
            for assignment in &assignments {
                self.assign(assignment);
            }
        }
        let builtin = words.first().and_then(|word| word.text.as_deref());
        if builtin.is_some_and(|name| KEEPS.contains(&name)) {
            for assignment in &assignments {
                self.state.forget(&assignment.name);
            }
        }
        let mut words = words.into_iter();
        let command = Command {
            name: words.next(),
            args: words.collect(),
            assignments,
            redirections,
            span,
            piped_from: self.state.stdin,
            opaque: None,
            context: self.context(),
        };
        if let Some(index) = self.state.push(command) {
            unwrap::unwrap(self.state, index);
        }
    }

    /// `()` behind the first word: a function is defined.
    fn peek_function(&mut self) -> bool {
        let before = self.at;
        self.blanks();
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.blanks();
            if self.peek() == Some(b')') {
                self.at += 1;
                return true;
            }
        }
        self.at = before;
        false
    }

    fn assign(&mut self, assignment: &Assignment) {
        if assignment.value.glob {
            // Of an array: the names that match.
            self.state.forget(&assignment.name);
            return;
        }
        if assignment.append {
            let old = self.state.value(&assignment.name);
            let text = old.text.zip(assignment.value.text.as_ref()).map(|(old, new)| old + new);
            let pattern = old.pattern + &assignment.value.pattern;
            self.state.spend(pattern.len());
            self.state.assign(&assignment.name, &Word { text, pattern, ..Word::default() });
        } else {
            self.state.assign(&assignment.name, &assignment.value);
        }
    }

    /// `NAME=…`, `NAME+=…`, `NAME[i]=…`, `NAME=( … )`.
    fn assignment(&mut self) -> Option<Assignment> {
        let rest = &self.bytes[self.at..];
        if !rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
            return None;
        }
        let length = rest
            .iter()
            .take(256)
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count();
        let name = self.text[self.at..self.at + length].to_owned();
        let mut next = length;
        if rest.get(next) == Some(&b'[') {
            let close = rest[next..].iter().take(128).position(|byte| *byte == b']')?;
            let index = self.text[self.at + next..self.at + next + close].to_owned();
            self.state.forget_named_in(&index);
            next += close + 1;
        }
        let indexed = next > length;
        let append = rest.get(next) == Some(&b'+');
        next += usize::from(append);
        if rest.get(next) != Some(&b'=') {
            return None;
        }
        self.at += next + 1;
        let mut values = Vec::new();
        if self.peek() == Some(b'(') {
            self.at += 1;
            loop {
                self.newlines();
                let before = self.at;
                values.extend(self.word());
                if self.at == before {
                    break;
                }
            }
            self.expect(")");
            // With places given, or appended to, what the first one holds is not followed.
            if append || values.iter().any(|word| word.raw.starts_with('[') || word.glob) {
                return Some(Assignment { name, value: Word::unknown(""), append: false });
            }
        } else {
            // A value is not split: it is read as if it were quoted.
            let start = self.at;
            let pieces = self.pieces();
            let value = super::expand::joined(pieces, &self.text[start..self.at]);
            self.state.spend(value.pattern.len());
            values.push(Word { glob: false, ..value });
            if indexed {
                values = vec![Word { text: None, pattern: "*".into(), ..values.remove(0) }];
            }
        }
        let value = values.into_iter().next().unwrap_or_else(|| Word::literal(""));
        Some(Assignment { name, value, append })
    }

    /// One redirection, if one stands here.
    pub(super) fn redirection(&mut self, redirections: &mut Vec<Redirection>) -> bool {
        let before = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == before && self.peek() == Some(b'{') {
            let close = self.bytes[self.at..].iter().take(32).position(|byte| *byte == b'}');
            if let Some(close) = close
                && self.bytes[self.at + 1..self.at + close]
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                && matches!(self.bytes.get(self.at + close + 1), Some(b'<' | b'>'))
            {
                let name = self.text[self.at + 1..self.at + close].to_owned();
                self.state.forget(&name);
                self.at += close + 1;
            }
        }
        if self.looking_at("<(") || self.looking_at(">(") {
            self.at = before;
            return false;
        }
        use RedirectionKind::{
            Append, Duplicate, HereDocument, HereString, Read, ReadWrite, Write,
        };
        let operators = [
            ("<<<", HereString),
            ("<<-", HereDocument),
            ("<<", HereDocument),
            ("<>", ReadWrite),
            ("<&", Duplicate),
            ("<", Read),
            ("&>>", Append),
            ("&>", Write),
            (">>", Append),
            (">|", Write),
            (">&", Duplicate),
            (">", Write),
        ];
        let Some((sign, kind)) = operators.into_iter().find(|(sign, _)| self.looking_at(sign))
        else {
            self.at = before;
            return false;
        };
        self.at += sign.len();
        self.blanks();
        if kind == HereDocument {
            let target = self.document(sign == "<<-");
            redirections.push(Redirection { kind, target });
            return true;
        }
        let start = self.at;
        let words = if kind == HereString {
            // It is not split.
            let pieces = self.pieces();
            vec![super::expand::joined(pieces, &self.text[start..self.at])]
        } else {
            self.word()
        };
        self.state.complete &= self.at > start;
        for target in words {
            let descriptor = target
                .text
                .as_deref()
                .is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
            // `>& file` writes the file.
            let kind = if sign == ">&" && !descriptor { Write } else { kind };
            redirections.push(Redirection { kind, target });
        }
        true
    }

    /// The text of a here-document, which lies behind the end of this line.
    fn document(&mut self, strip: bool) -> Word {
        let start = self.at;
        let delimiter = self.word();
        let raw = self.text[start..self.at].to_owned();
        let end_word = match delimiter.first().and_then(|word| word.text.clone()) {
            Some(text) => text,
            None => raw.clone(),
        };
        let pending = self.documents.filter(|(line_end, _)| *line_end >= self.at);
        let (line_end, from) = match pending {
            Some(pending) => pending,
            None => match memchr::memchr(b'\n', &self.bytes[self.at..]) {
                Some(found) => (self.at + found, self.at + found + 1),
                None => {
                    self.state.complete = false;
                    self.state.spend(self.bytes.len() - self.at);
                    return Word::literal("");
                }
            },
        };
        let mut at = from;
        let mut body = String::new();
        let mut closed = false;
        while at < self.bytes.len() {
            let length = memchr::memchr(b'\n', &self.bytes[at..]).unwrap_or(self.bytes.len() - at);
            let line = &self.text[at..at + length];
            let line = if strip { line.trim_start_matches('\t') } else { line };
            at = (at + length + 1).min(self.bytes.len());
            if line == end_word || line.trim_end_matches('\r') == end_word {
                closed = true;
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        self.state.complete &= closed;
        self.state.spend(at - from);
        self.documents = Some((line_end, at));
        if raw.contains(['\'', '"', '\\']) || !body.contains(['$', '`', '\\']) {
            return Word { raw: body.clone(), ..Word::literal(body) };
        }
        let origin = Origin::Within(self.span(start));
        if !self.state.enter() {
            return Word::unknown(body);
        }
        let mut inner = Parser::with_origin(&body, origin, self.state);
        let pieces = inner.quoted(None);
        self.state.leave();
        super::expand::joined(pieces, &body)
    }

    /// One word and what it expands to: none, one or several.
    pub(super) fn word(&mut self) -> Vec<Word> {
        let start = self.at;
        let pieces = self.pieces();
        if self.at == start {
            return Vec::new();
        }
        let raw = &self.text[start..self.at];
        if !self.state.spend(raw.len()) {
            return vec![Word::unknown(raw)];
        }
        let words = fields(pieces, raw);
        let size = words.iter().map(|word| word.pattern.len() + raw.len()).sum();
        self.state.spend(size);
        words
    }

    /// The output of a command list up to `)` or the end.
    pub(super) fn substitution(&mut self, via: Via, close: bool) -> Piece {
        let first = self.state.commands.len();
        if self.state.enter() {
            self.inside(via, |parser| parser.list(&[]));
            self.state.leave();
        }
        if close {
            self.expect(")");
        }
        let sources: Vec<usize> = (first..self.state.commands.len()).collect();
        let text = if via == Via::Substitution {
            emulate::output_of(&self.state.commands, first)
        } else {
            None
        };
        Piece::substituted(text, sources)
    }
}

/// Signs that end an unquoted word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' | 0)
}
