//! What stands inside a word: quotes, escapes, `$…`, backticks, arithmetic.

use super::Via;
use super::escapes::ansi;
use super::expand::{Piece, joined};
use super::grammar::{Origin, Parser};
use super::operators::{evaluate, is_resplit};
use super::state::Value;
use super::word::is_meta;

const OPERATORS: [&str; 22] = [
    ":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,", "-", "=", "+", "?", "#", "%",
    "/", ":", "@", "^", ",",
];

impl Parser<'_, '_> {
    /// The parts of the word that starts here.
    pub(super) fn pieces(&mut self) -> Vec<Piece> {
        self.pieces_until(None)
    }

    /// Up to the end of the word, or up to a sign where blanks and the like are ordinary.
    fn pieces_until(&mut self, close: Option<u8>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        // `!(a|b)` may be anything: what stands in the group is read, and then left out.
        let (mut groups, mut group) = (0_usize, 0_usize);
        // Braces come first: `$a{b,c}` is `$ab $ac`.
        let mut renamed = false;
        // Bash does not split what stands beside a `$` that expands nothing.
        let mut lone = false;
        while let Some(byte) = self.peek() {
            if self.state.halted() || close == Some(byte) {
                break;
            }
            match byte {
                b'\'' => {
                    self.at += 1;
                    let rest = &self.bytes[self.at..];
                    let length = memchr::memchr(b'\'', rest);
                    self.state.complete &= length.is_some();
                    let end = self.at + length.unwrap_or(rest.len());
                    pieces.push(Piece::quoted(&self.text[self.at..end]));
                    self.at = (end + 1).min(self.bytes.len());
                }
                b'"' => {
                    self.at += 1;
                    pieces.push(Piece::quoted(""));
                    pieces.extend(self.quoted(Some(b'"')));
                }
                b'\\' => pieces.extend(self.escaped()),
                b'\r' if close.is_none() && self.at_line_end() => break,
                b'$' => {
                    let named = self
                        .bytes
                        .get(self.at + 1)
                        .is_some_and(|b| *b == b'_' || b.is_ascii_alphanumeric());
                    pieces.push(self.dollar(false));
                    let brace = matches!(self.peek(), Some(b'{' | b',' | b'}'));
                    lone |= matches!(pieces.last(), Some(Piece::Text { quoted: false, .. }));
                    renamed |= named && close.is_none() && brace;
                }
                b'`' => pieces.push(self.backtick(false)),
                b'~' if pieces.is_empty() => pieces.push(self.tilde()),
                b'<' | b'>' if self.bytes.get(self.at + 1) == Some(&b'(') => {
                    self.at += 2;
                    pieces.push(self.substitution(Via::ProcessSubstitution, true));
                }
                b'?' | b'*' | b'+' | b'@' | b'!' if self.bytes.get(self.at + 1) == Some(&b'(') => {
                    self.at += 2;
                    groups += 1;
                    if groups == 1 {
                        pieces.push(Piece::Glob('*'));
                        group = pieces.len();
                    }
                }
                b'|' | b'(' if groups > 0 => {
                    groups += usize::from(byte == b'(');
                    self.at += 1;
                }
                b')' if groups > 0 => {
                    groups -= 1;
                    self.at += 1;
                    if groups == 0 {
                        pieces.truncate(group);
                    }
                }
                b'{' | b',' | b'}' => {
                    self.at += 1;
                    pieces.push(Piece::Brace(byte));
                }
                b'*' | b'?' | b'[' | b']' => {
                    self.at += 1;
                    pieces.push(Piece::Glob(char::from(byte)));
                }
                _ if is_meta(byte) && close.is_none() => break,
                _ => {
                    let start = self.at;
                    self.step();
                    while self.peek().is_some_and(|byte| !is_meta(byte) && !is_active(byte)) {
                        self.at += 1;
                    }
                    pieces.push(Piece::plain(&self.text[start..self.at]));
                }
            }
        }
        self.state.complete &= groups == 0;
        let braces = pieces.iter().filter(|piece| matches!(piece, Piece::Brace(_))).count();
        let is_split = |piece: &Piece| matches!(piece, Piece::Value { quoted: false, .. });
        if renamed && braces > 1 || lone && pieces.iter().any(is_split) {
            return vec![Piece::substituted(None, super::expand::sources(&pieces))];
        }
        pieces
    }

    /// Up to a closing quote, or of all that is left; `$` and backticks still count.
    pub(super) fn quoted(&mut self, close: Option<u8>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut start = self.at;
        loop {
            let Some(byte) = self.peek() else {
                pieces.push(Piece::quoted(&self.text[start..]));
                self.state.complete &= close.is_none();
                break;
            };
            if !(Some(byte) == close || matches!(byte, b'\\' | b'$' | b'`')) {
                self.at += 1;
                continue;
            }
            pieces.push(Piece::quoted(&self.text[start..self.at]));
            if Some(byte) == close {
                self.at += 1;
                break;
            }
            match byte {
                b'\\' => match self.bytes.get(self.at + 1) {
                    Some(b'\n') => self.at += 2,
                    Some(next @ (b'$' | b'`' | b'\\')) => {
                        pieces.push(Piece::quoted(&char::from(*next).to_string()));
                        self.at += 2;
                    }
                    Some(b'"') if close == Some(b'"') => {
                        pieces.push(Piece::quoted("\""));
                        self.at += 2;
                    }
                    _ => {
                        pieces.push(Piece::quoted("\\"));
                        self.at += 1;
                    }
                },
                b'$' => pieces.push(self.dollar(true)),
                _ => pieces.push(self.backtick(true)),
            }
            start = self.at;
            if self.state.halted() {
                break;
            }
        }
        pieces
    }

    /// `~` at the beginning of a word: the home folder by its name, unless that was changed.
    fn tilde(&mut self) -> Piece {
        self.at += 1;
        match self.peek() {
            Some(b'+' | b'-' | b'0'..=b'9') => {
                self.at += 1;
                Piece::unknown()
            }
            _ => {
                let home = self.state.value("HOME");
                if home.text.as_deref() == Some("~") {
                    Piece::plain("~")
                } else {
                    self.piece(home, true)
                }
            }
        }
    }

    fn escaped(&mut self) -> Option<Piece> {
        self.at += 1;
        let start = self.at;
        match self.peek() {
            Some(b'\n') => {
                self.at += 1;
                None
            }
            Some(_) => {
                self.step();
                Some(Piece::quoted(&self.text[start..self.at]))
            }
            None => Some(Piece::quoted("\\")),
        }
    }

    fn dollar(&mut self, quoted: bool) -> Piece {
        self.at += 1;
        // Line continuations are gone before anything is read: `$\` at a line's end, then `(…)`.
        while self.looking_at("\\\n") {
            self.at += 2;
        }
        match self.peek() {
            Some(b'(') => {
                if self.looking_at("((")
                    && let Some(end) = self.arithmetic_end(self.at + 2)
                {
                    return self.arithmetic(end);
                }
                self.at += 1;
                let piece = self.substitution(Via::Substitution, true);
                self.unsplit(piece, quoted)
            }
            Some(b'{') => {
                self.at += 1;
                if !self.state.enter() {
                    return Piece::unknown();
                }
                let value = self.parameter(quoted);
                self.state.leave();
                self.piece(value, quoted)
            }
            Some(b'\'') if !quoted => {
                self.at += 1;
                let (text, length, closed) = ansi(&self.bytes[self.at..]);
                self.at += length;
                self.state.complete &= closed;
                Piece::quoted(&text)
            }
            Some(b'"') if !quoted => {
                self.at += 1;
                let start = self.at;
                let pieces = self.quoted(Some(b'"'));
                let word = joined(pieces, &self.text[start..self.at]);
                let sources = word.sources;
                Piece::Value { text: word.text, pattern: word.pattern, quoted: true, sources }
            }
            Some(b'[') => {
                self.at += 1;
                let start = self.at;
                drop(self.pieces_until(Some(b']')));
                let text = &self.text[start..self.at];
                self.state.forget_named_in(text);
                self.state.complete &= self.peek() == Some(b']');
                self.at = (self.at + 1).min(self.bytes.len());
                Piece::unknown()
            }
            Some(digit) if digit.is_ascii_digit() => {
                self.at += 1;
                let value = self.state.value(&char::from(digit).to_string());
                self.piece(value, quoted)
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = self.name();
                let value = self.state.value(&name);
                self.piece(value, quoted)
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-') => {
                self.at += 1;
                Piece::unknown()
            }
            _ => Piece::plain("$"),
        }
    }

    fn piece(&mut self, value: Value, quoted: bool) -> Piece {
        if !self.state.spend(value.pattern.len()) {
            return Piece::unknown();
        }
        let piece =
            Piece::Value { text: value.text, pattern: value.pattern, quoted, sources: Vec::new() };
        self.unsplit(piece, quoted)
    }

    /// What an expansion gave, not known where it is split by other signs than blanks.
    fn unsplit(&self, piece: Piece, quoted: bool) -> Piece {
        match piece {
            Piece::Value { text, pattern, sources, .. }
                if !quoted && !self.state.is_split_known(text.as_deref().unwrap_or(&pattern)) =>
            {
                Piece::substituted(None, sources)
            }
            piece => piece.with_quotes(quoted),
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        let digits = self.peek().is_some_and(|byte| byte.is_ascii_digit());
        while let Some(byte) = self.peek() {
            let fits = if digits {
                byte.is_ascii_digit()
            } else {
                byte.is_ascii_alphanumeric() || byte == b'_'
            };
            if fits {
                name.push(char::from(byte));
                self.at += 1;
            } else if self.looking_at("\\\n") {
                self.at += 2;
            } else {
                break;
            }
        }
        name
    }

    /// `${ … }`, behind its brace.
    fn parameter(&mut self, quoted: bool) -> Value {
        let prefix = self.peek().filter(|byte| matches!(byte, b'#' | b'!'));
        if prefix.is_some() && self.bytes.get(self.at + 1) != Some(&b'}') {
            self.at += 1;
        }
        let name = self.name();
        let mut known = !name.is_empty();
        if name.is_empty() && self.peek().is_some_and(|byte| b"@*#?$!-".contains(&byte)) {
            self.at += 1;
        }
        if self.peek() == Some(b'[') {
            self.at += 1;
            let start = self.at;
            let index = self.pieces_until(Some(b']'));
            let text = &self.text[start..self.at];
            self.state.forget_named_in(text);
            known &= joined(index, "").text.as_deref() == Some("0");
            self.at = (self.at + 1).min(self.bytes.len());
        }
        let operator = OPERATORS.iter().find(|sign| self.looking_at(sign)).copied().unwrap_or("");
        self.at += operator.len();
        let start = self.at;
        let operand = if quoted {
            self.quoted_operand(operator.starts_with(['#', '%', '/', '^', ',']))
        } else {
            self.pieces_until(Some(b'}'))
        };
        let operand = joined(operand, &self.text[start..self.at]);
        if operator == ":" {
            self.state.forget_named_in(&operand.raw);
        }
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            self.state.complete = false;
        }
        let value = self.state.value(&name);
        if operator.ends_with('=') {
            match value.text.as_deref() {
                Some("") if operator == ":=" => self.state.assign(&name, &operand),
                Some(_) => {}
                None => self.state.forget(&name),
            }
        }
        if !quoted && is_resplit(operator, &operand) {
            return Value::unknown();
        }
        if !known || !self.state.spend(value.pattern.len() * 2 + operand.pattern.len()) {
            return Value::unknown();
        }
        match (prefix, value.text) {
            (_, None) => Value::unknown(),
            (Some(b'#'), Some(text)) => Value::known(&text.chars().count().to_string()),
            (Some(b'!'), Some(text)) if operator.is_empty() => self.state.value(&text),
            (Some(_), Some(_)) => Value::unknown(),
            (None, Some(text)) => evaluate(&text, operator, &operand),
        }
    }

    /// Inside double quotes an operand's single quotes are ordinary.
    /// Those of a pattern are not, and its globs count.
    fn quoted_operand(&mut self, pattern: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while let Some(byte) = self.peek() {
            if byte == b'}' || self.state.halted() {
                break;
            }
            match byte {
                b'"' => {
                    self.at += 1;
                    pieces.extend(self.quoted(Some(b'"')));
                }
                b'\\'
                    if pattern
                        || matches!(
                            self.bytes.get(self.at + 1),
                            Some(b'$' | b'`' | b'"' | b'\\' | b'}' | b'\n')
                        ) =>
                {
                    pieces.extend(self.escaped());
                }
                b'\'' if pattern => {
                    let start = self.at + 1;
                    let length = memchr::memchr(b'\'', &self.bytes[start..]);
                    self.state.complete &= length.is_some();
                    let end = start + length.unwrap_or(self.bytes.len() - start);
                    pieces.push(Piece::quoted(&self.text[start..end]));
                    self.at = (end + 1).min(self.bytes.len());
                }
                b'*' | b'?' | b'[' if pattern => {
                    self.at += 1;
                    pieces.push(Piece::Glob(char::from(byte)));
                }
                b'$' => pieces.push(self.dollar(true)),
                b'`' => pieces.push(self.backtick(true)),
                _ => {
                    let start = self.at;
                    self.step();
                    pieces.push(Piece::quoted(&self.text[start..self.at]));
                }
            }
        }
        pieces
    }

    fn backtick(&mut self, quoted: bool) -> Piece {
        self.at += 1;
        let start = self.at;
        let mut inner = String::new();
        let mut closed = false;
        let mut from = start;
        while let Some(byte) = self.peek() {
            if byte == b'`' {
                closed = true;
                break;
            }
            let next = self.bytes.get(self.at + 1);
            if byte == b'\\' && matches!(next, Some(b'`' | b'\\' | b'$')) {
                inner.push_str(&self.text[from..self.at]);
                from = self.at + 1;
                self.at += 1;
            }
            self.at += 1;
        }
        inner.push_str(&self.text[from..self.at]);
        let span = self.span(start);
        let origin = match self.origin {
            Origin::At(offset) if inner.len() == self.at - start => Origin::At(offset + start),
            _ => Origin::Within(span),
        };
        self.at = (self.at + 1).min(self.bytes.len());
        self.state.complete &= closed;
        if !self.state.spend(inner.len()) {
            return Piece::unknown();
        }
        let mut parser = Parser::with_origin(&inner, origin, self.state);
        let piece = parser.substitution(Via::Substitution, false);
        let unread = parser.at < parser.bytes.len();
        self.state.complete &= !unread;
        self.unsplit(piece, quoted)
    }

    /// Where the `))` of an arithmetic expression lies, if it is one.
    pub(super) fn arithmetic_end(&mut self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (place, byte) in self.bytes.iter().enumerate().skip(from) {
            match byte {
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b')' => {
                    self.state.spend(place - from);
                    return (self.bytes.get(place + 1) == Some(&b')')).then_some(place);
                }
                _ => {}
            }
        }
        self.state.spend(self.bytes.len() - from.min(self.bytes.len()));
        None
    }

    /// An arithmetic expression, of which only what it runs matters.
    pub(super) fn arithmetic(&mut self, end: usize) -> Piece {
        let text = &self.text[self.at.min(end)..end];
        if self.state.spend(text.len()) {
            self.state.forget_named_in(text);
        }
        while self.at < end && !self.state.halted() {
            match self.bytes[self.at] {
                b'$' => drop(self.dollar(true)),
                b'`' => drop(self.backtick(true)),
                _ => self.at += 1,
            }
        }
        self.at = self.at.max(end + 2).min(self.bytes.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        Piece::unknown()
    }
}

fn is_active(byte: u8) -> bool {
    matches!(
        byte,
        b'\'' | b'"' | b'\\' | b'$' | b'`' | b'{' | b',' | b'}' | b'*' | b'?' | b'[' | b']'
    ) || matches!(byte, b'+' | b'@' | b'!' | b'\r')
}
