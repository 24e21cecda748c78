//! What a shell command does: files read and changed, places on the network, programs run.
//!
//! Pure, on top of [`crate::shell`]: nothing is looked up, so a relative path stays relative to a
//! [`Directory`], a glob stays a glob, and what is not known stays a pattern. Unknown forms are
//! read in the worst way: what may write is a write with `certain == false`.
//!
//! It is a reading of well-known programs, not of all: what a program does that is not known here
//! shows only as [`EffectKind::Run`] and in the [`Mention`]s of its words.

mod archives;
mod args;
mod code;
mod copying;
mod files;
mod git;
mod interpreters;
mod mentions;
mod network;
mod patches;
mod searching;
mod settings;
#[cfg(test)]
mod tests;
mod walk;

use crate::finding::Span;
use crate::shell::{self, Parsed, Word};

/// Stands in [`Word::raw`] for a name that a search finds: unlike a glob of the shell, it may begin
/// with a dot.
pub const FOUND: &str = "<found>";

/// Most effects that are told of one command; beyond it the command is not complete.
pub const MAX_EFFECTS: usize = 8192;

/// What a command line does, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// In the order in which they would happen.
    pub effects: Vec<Effect>,
    /// Where commands run; the first is where all begins.
    pub directories: Vec<Directory>,
    /// Names that stand in words, code and texts of which no effect is known.
    pub mentions: Vec<Mention>,
    /// Whether all of the text was understood.
    pub complete: bool,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What happens.
    pub kind: EffectKind,
    /// The command in the text; for what is inside a string, the command that has the string.
    pub span: Span,
    /// The program that does it, without its directory; none for the shell itself.
    pub program: Option<String>,
    /// Where it runs, by index into [`Effects::directories`].
    pub directory: usize,
    /// Whether it happens on another machine.
    pub remote: bool,
    /// Whether it happens for sure if the command runs; else it is the worst reading.
    pub certain: bool,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EffectKind {
    /// Something is done to a file.
    File(Access, Target),
    /// Something is sent, fetched or listened for.
    Network(Endpoint),
    /// A program is started.
    Run {
        /// The program as it is named.
        program: Word,
        /// Its words.
        arguments: Vec<Word>,
    },
    /// An interpreter is given code.
    Code {
        /// Which one.
        language: Language,
        /// The code, where it is known.
        text: Option<String>,
    },
    /// A variable is set that decides what other programs do.
    Setting {
        /// Its name; a setting of git is written `git:core.pager`.
        name: String,
        /// Its value.
        value: Word,
    },
    /// What it does is not known.
    Opaque(Unknown),
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// It is read.
    Read,
    /// Everything below it is read.
    ReadTree,
    /// Its names or attributes are looked at.
    List,
    /// It is written from its beginning, or created; also as a directory.
    Write,
    /// It is written on at its end, or created.
    Append,
    /// Files below it are written, of which the names are not known.
    WriteTree,
    /// It is removed.
    Delete,
    /// It gets another name.
    RenameAway,
    /// Something else gets its name: a rename, a link, a mount.
    Replace,
    /// It gets a further name.
    HardLink,
    /// Its mode or attributes are changed.
    ChangeMode,
    /// Its owner is changed.
    ChangeOwner,
}

impl Access {
    /// Whether nothing is changed by it.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadTree | Self::List)
    }
}

/// A file that something is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its path.
    pub word: Word,
    /// What is put there: if the path is a directory, files of these names in it are meant.
    pub sources: Vec<Word>,
    /// Whether all below it is meant too.
    pub tree: bool,
}

impl From<Word> for Target {
    fn from(word: Word) -> Self {
        Self { word, sources: Vec::new(), tree: false }
    }
}

/// A place on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// As it is written: a URL, a host, a remote of git.
    pub word: Word,
    /// The host, where it is known.
    pub host: Option<String>,
    /// What it is used for.
    pub usage: NetworkUse,
}

/// What the network is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkUse {
    /// Something is fetched.
    Fetch,
    /// Something may be sent.
    Send,
    /// A connection that goes both ways.
    Connect,
    /// Others may connect.
    Listen,
}

/// In which language code is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript.
    JavaScript,
    /// Perl.
    Perl,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Awk.
    Awk,
    /// A shell, of which the text is not known.
    Shell,
    /// Any other.
    Other,
}

/// What is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unknown {
    /// Which program runs.
    Program,
    /// What a shell or an interpreter is given to run.
    Script,
    /// Parts of the text did not parse.
    Text,
    /// The text goes on, but is too long, too deep or does too much to be read to its end.
    Rest,
}

/// Where a command runs: steps from the directory in which all begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directory {
    /// In order; none for the beginning.
    pub steps: Vec<Step>,
}

/// A change of directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where to.
    pub to: Word,
    /// Whether it was made.
    pub made: Made,
}

/// Whether a step was made when a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Made {
    /// It was: otherwise the command would not run.
    Surely,
    /// If it was possible.
    IfPossible,
    /// Perhaps.
    Perhaps,
}

/// A name that stands somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// A word of which no effect is known, or a piece of a text that could be a path.
    pub word: Word,
    /// The command in whose words or texts it stands.
    pub span: Span,
    /// What it stands in.
    pub place: MentionPlace,
}

/// What a name stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MentionPlace {
    /// A word of a command.
    Word,
    /// Code for an interpreter.
    Code,
    /// A text: a here-document, a message.
    Text,
}

/// Reads what a command line or a script does.
///
/// ```
/// use wardkeep_detect::effects::{Access, EffectKind, effects};
/// let read = effects("cd sub && echo hi | tee -a notes.md");
/// let appended = read.effects.iter().find_map(|effect| match &effect.kind {
///     EffectKind::File(Access::Append, target) => target.word.text.as_deref(),
///     _ => None,
/// });
/// assert_eq!(appended, Some("notes.md"));
/// ```
#[must_use]
pub fn effects(command: &str) -> Effects {
    effects_of(&shell::parse(command))
}

/// Reads what a parsed text does.
#[must_use]
pub fn effects_of(parsed: &Parsed) -> Effects {
    let mut out = Effects {
        effects: Vec::new(),
        directories: vec![Directory::default()],
        mentions: Vec::new(),
        complete: true,
    };
    walk::walk(parsed, &mut out, walk::Outer::default());
    out
}

impl Effects {
    /// The effects on files.
    pub fn files(&self) -> impl Iterator<Item = (&Effect, Access, &Target)> {
        self.effects.iter().filter_map(|effect| match &effect.kind {
            EffectKind::File(access, target) => Some((effect, *access, target)),
            _ => None,
        })
    }

    /// The places on the network.
    pub fn endpoints(&self) -> impl Iterator<Item = (&Effect, &Endpoint)> {
        self.effects.iter().filter_map(|effect| match &effect.kind {
            EffectKind::Network(endpoint) => Some((effect, endpoint)),
            _ => None,
        })
    }
}
