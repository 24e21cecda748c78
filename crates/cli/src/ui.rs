//! The terminal: the only place that prints.
//!
//! Every text that is printed passes [`harmless`]; what may hold escape sequences of our own are
//! only the styles of a [`Line`], the help, and generated files.

mod diff;
mod line;
mod members;
mod progress;
mod remarks;

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::builder::StyledStr;
use serde::Serialize;
use wardkeep_evidence::check::printable;

pub(crate) use self::diff::diff;
pub(crate) use self::line::Line;
use self::line::Tone;
pub(crate) use self::members::{Member, members, wrapped};
pub(crate) use self::progress::Progress;
pub(crate) use self::remarks::Remarks;
use crate::cli::Globals;
use crate::error::{CliError, reason};
use crate::exit::Exit;

/// Standard output and standard error.
pub(crate) struct Ui {
    json: bool,
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
    /// The state directory that was named, as a shell takes it: for commands that are to be pasted.
    state: Option<String>,
    /// Why standard output takes no more.
    failed: Option<io::Error>,
    /// Whether standard output is that of a program we have started: then objects go to standard error.
    lent: bool,
    /// Remarks that the object at the end is to have.
    noted: Vec<String>,
}

/// Most remarks of one object.
const NOTED: usize = 256;
/// What keeps no state.
const STATELESS: [&str; 2] = ["wardkeep aegx ", "wardkeep witness "];

/// What every JSON object begins with.
#[derive(Serialize)]
struct Envelope<'a, T> {
    command: Option<&'a str>,
    ok: bool,
    exit: u8,
    #[serde(flatten)]
    result: &'a T,
}

#[derive(Serialize)]
struct Failure<'a> {
    error: Problem<'a>,
}

#[derive(Serialize)]
struct Problem<'a> {
    message: &'a str,
    hint: &'a str,
}

impl Ui {
    pub(crate) fn new(globals: &Globals) -> Self {
        let plain = globals.no_color || globals.json;
        Self {
            json: globals.json,
            quiet: globals.quiet,
            colour_out: !plain && AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            colour_err: !plain && AutoStream::choice(&io::stderr()) != ColorChoice::Never,
            state: globals.state_dir.as_ref().map(|state| quoted(&state.to_string_lossy())),
            failed: None,
            lent: false,
            noted: Vec::new(),
        }
    }

    /// A command of ours as it is to be given here.
    pub(crate) fn command_line(&self, command: &str) -> String {
        match (&self.state, command.strip_prefix("wardkeep ")) {
            (Some(state), Some(rest)) => format!("wardkeep --state-dir {state} {rest}"),
            _ => command.to_owned(),
        }
    }

    /// A text whose commands, in backticks, can be given here.
    fn pasted(&self, text: &str) -> String {
        if self.state.is_none() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut parts = text.split('`');
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let elsewhere = STATELESS.iter().any(|command| part.starts_with(command));
            out.push('`');
            out.push_str(&if elsewhere { part.to_owned() } else { self.command_line(part) });
        }
        out
    }

    /// Whether the answer is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether the reader has gone away, or nothing can be printed for another reason.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Prints what was asked for.
    pub(crate) fn answer(&mut self, line: impl Into<Line>) {
        if !self.json {
            let line = line.into().render(self.colour_out);
            self.write(line.as_bytes());
        }
    }

    /// Prints what is good to know beside the answer.
    pub(crate) fn say(&mut self, line: impl Into<Line>) {
        if !self.quiet {
            self.answer(line);
        }
    }

    /// Prints rows with aligned columns, as [`Self::say`].
    pub(crate) fn table(&mut self, rows: &[Vec<Line>]) {
        aligned(rows).into_iter().for_each(|line| self.say(line));
    }

    /// As [`Self::table`], each row cut to what a line has room for.
    pub(crate) fn narrow_table(&mut self, rows: &[Vec<Line>]) {
        let width = self.width();
        aligned(rows).into_iter().for_each(|line| self.say(line.fit(width)));
    }

    /// Prints rows with aligned columns, as [`Self::answer`].
    pub(crate) fn answer_table(&mut self, rows: &[Vec<Line>]) {
        aligned(rows).into_iter().for_each(|line| self.answer(line));
    }

    /// Prints labels with their texts beside them, as [`Self::answer`].
    pub(crate) fn answer_members(&mut self, members: &[Member]) {
        let lines = members::listed(members, self.room());
        lines.into_iter().for_each(|line| self.answer(line));
    }

    /// How many characters a line of the answer should have at most.
    pub(crate) fn width(&self) -> usize {
        const USUAL: usize = 100;
        self.room().unwrap_or(USUAL)
    }

    /// The same where a terminal says so; what goes elsewhere has no need to be cut.
    pub(crate) fn room(&self) -> Option<usize> {
        const LEAST: usize = 40;
        let stdout = io::stdout();
        let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok());
        let columns = size.flatten().map_or(0, |size| usize::from(size.ws_col));
        (columns > 0).then(|| columns.max(LEAST))
    }

    /// For lines that several threads print while the command serves, as [`Self::note`].
    pub(crate) fn remarks(&self) -> Remarks {
        Remarks::new(!self.json && !self.quiet)
    }

    /// Prints a fault that was found in what was looked at, on standard error.
    pub(crate) fn fault(&mut self, line: impl Into<Line>) {
        if !self.json {
            self.complain(line.into());
        }
    }

    /// Prints a remark on standard error.
    pub(crate) fn note(&mut self, text: &str) {
        if self.json && self.noted.len() < NOTED {
            self.noted.push(self.pasted(text));
        }
        if !self.json && !self.quiet {
            let text = self.pasted(text);
            self.complain(Line::default().toned(Tone::Warning, "note").plain(": ").plain(&text));
        }
    }

    /// Prints what to do next, on standard error.
    pub(crate) fn hint(&mut self, text: &str) {
        if !self.json {
            let text = self.pasted(text);
            self.complain(Line::default().toned(Tone::Strong, "hint").plain(": ").plain(&text));
        }
    }

    /// Prints why the command failed: on standard error, or as JSON on standard output.
    pub(crate) fn error(&mut self, command: Option<&str>, error: &CliError) {
        let CliError { exit, message, hint } = error;
        if self.json {
            let error = Problem { message, hint: &self.pasted(hint) };
            self.object(command, *exit, false, &Failure { error });
            return;
        }
        self.complain(Line::default().bad("error").plain(": ").plain(message.as_str()));
        self.hint(hint);
    }

    /// Prints the JSON form of a result, where that was asked for.
    pub(crate) fn object(
        &mut self,
        command: Option<&str>,
        exit: Exit,
        ok: bool,
        result: &impl Serialize,
    ) {
        if !self.json {
            return;
        }
        self.envelope(&Envelope { command, ok, exit: exit.code(), result });
    }

    /// As [`Self::object`], for a program that we have started and whose exit code is ours.
    pub(crate) fn report(&mut self, command: &str, exit: u8, result: &impl Serialize) {
        if self.json {
            self.envelope(&Envelope { command: Some(command), ok: exit == 0, exit, result });
        }
    }

    fn envelope(&mut self, envelope: &Envelope<'_, impl Serialize>) {
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, HarmlessFormatter);
        match envelope.serialize(&mut serializer) {
            Ok(()) if self.lent => {
                // The program may have left a line without its end.
                bytes.insert(0, b'\n');
                bytes.push(b'\n');
                let _ = io::stderr().write_all(&bytes);
            }
            Ok(()) => {
                bytes.push(b'\n');
                self.write(&bytes);
            }
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// From now on standard output is the program's own.
    pub(crate) fn lend_output(&mut self) {
        self.lent = true;
    }

    /// The remarks so far, where the answer is JSON.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.noted)
    }

    /// Prints one line of a stream of JSON objects, whatever the form of the answer.
    pub(crate) fn line_of_json(&mut self, value: &impl Serialize) {
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, HarmlessFormatter);
        match value.serialize(&mut serializer) {
            Ok(()) => {
                bytes.push(b'\n');
                self.write(&bytes);
            }
            Err(error) => self.failed = Some(error.into()),
        }
    }

    /// Prints help or a message of clap's.
    pub(crate) fn help(&mut self, text: &StyledStr, on_stderr: bool) {
        let colour = if on_stderr { self.colour_err } else { self.colour_out };
        let text = if colour { text.ansi().to_string() } else { text.to_string() };
        if on_stderr {
            let _ = io::stderr().write_all(text.as_bytes());
        } else {
            self.write(text.as_bytes());
        }
    }

    /// Prints a generated file as it is. Never for text from outside.
    pub(crate) fn generated(&mut self, bytes: &[u8]) {
        if !self.json {
            self.write(bytes);
        }
    }

    /// A line on the terminal that says how far long work is; silent anywhere else.
    pub(crate) fn progress(&self, label: &'static str) -> Progress {
        Progress::new(label, !self.json && !self.quiet)
    }

    /// Ends the output. A reader that has gone away has what it wanted; any other failure to
    /// print is one of the command.
    pub(crate) fn close(mut self, exit: Exit) -> ExitCode {
        if self.failed.is_none() {
            self.failed = io::stdout().flush().err();
        }
        match self.failed.take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.json = false;
                let message = format!("cannot write to standard output: {}", reason(&error));
                let hint = "check where the output goes; the command itself has run";
                let error = CliError::new(Exit::Unreadable, message, hint);
                self.error(None, &error);
                Exit::Unreadable.code().into()
            }
            _ => exit.code().into(),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = io::stdout().write_all(bytes).err();
        }
    }

    fn complain(&self, line: Line) {
        // Nothing is left to tell when standard error is gone.
        let _ = io::stderr().write_all(line.render(self.colour_err).as_bytes());
    }
}

pub(crate) use wardkeep_sandbox::quoted;

/// Rows as lines with aligned columns.
fn aligned(rows: &[Vec<Line>]) -> Vec<Line> {
    let width = |column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(Line::width).max().unwrap_or(0)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = Vec::new();
    for row in rows {
        let mut line = Line::from(" ");
        for (position, cell) in row.iter().enumerate() {
            line = line.plain(" ").join(cell);
            if position + 1 < row.len() {
                line = line.plain(" ".repeat(widths[position] + 1 - cell.width()));
            }
        }
        lines.push(line);
    }
    lines
}

/// `text` with everything escaped that a terminal could take for a command, line ends too.
pub(crate) fn harmless(text: &str) -> String {
    /// Below what `printable` cuts.
    const PIECE: usize = 128;
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    // A tab parts words, here as everywhere.
    let characters: Vec<char> = text.replace('\t', " ").chars().collect();
    characters.chunks(PIECE).map(|piece| printable(&piece.iter().collect::<String>())).collect()
}

/// Compact JSON in which strings hold nothing that a terminal could take for a command.
struct HarmlessFormatter;

impl serde_json::ser::Formatter for HarmlessFormatter {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_escaped(writer, fragment)
    }
}

/// Writes a part of a JSON text with `\u` escapes for what a terminal could take for a command.
fn write_escaped<W: ?Sized + Write>(writer: &mut W, fragment: &str) -> io::Result<()> {
    let mut buffer = [0; 4];
    for character in fragment.chars() {
        let text = &*character.encode_utf8(&mut buffer);
        if matches!(character, ' '..='~') || printable(text) == text {
            writer.write_all(text.as_bytes())?;
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_escaped_and_not_cut() {
        let text = format!("{}\u{1b}{}\u{9b}", "é".repeat(200), "x".repeat(300));
        let expected = format!("{}\\u{{1b}}{}\\u{{9b}}", "é".repeat(200), "x".repeat(300));
        assert_eq!(harmless(&text), expected);
    }

    #[test]
    fn commands_of_hints_go_to_the_state_directory_that_was_named() {
        let globals = Globals { state_dir: Some("/a b".into()), ..Globals::default() };
        let (here, plain) = (Ui::new(&globals), Ui::new(&Globals::default()));
        let text =
            "see `wardkeep log`, or make one with `wardkeep aegx init`; `x` is not `wardkeep`";
        assert_eq!(plain.pasted(text), text);
        assert_eq!(
            here.pasted(text),
            "see `wardkeep --state-dir '/a b' log`, or make one with `wardkeep aegx init`; `x` is not `wardkeep`"
        );
        assert_eq!(quoted("-x"), "'-x'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("a/b.md"), "a/b.md");
    }

    #[test]
    fn json_strings_keep_their_value_and_lose_their_teeth() {
        let text = "a\u{1b}[31m\u{9b}\u{202e}é\"\\\u{e0001}\n";
        let mut bytes = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, HarmlessFormatter);
        text.serialize(&mut serializer).unwrap();
        let written = String::from_utf8(bytes).unwrap();
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        assert_eq!(harmless(&written), written);
    }
}
