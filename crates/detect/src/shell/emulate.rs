//! The output of commands that only repeat or decode literals.

use super::escapes::unescape;
use super::{Command, RedirectionKind, Via, Word};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Longest pipeline that is followed.
pub(super) const MAX_STAGES: usize = 12;
/// Longest output that is followed, in bytes.
const MAX_OUTPUT: usize = 256 << 10;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Programs whose output is followed here: a function of such a name makes it unknown.
pub(super) const FOLLOWED: [&str; 10] =
    ["echo", "printf", "cat", "tee", "base64", "gbase64", "openssl", "xxd", "rev", "tr"];

/// What the commands from `first` on print, if they are one pipeline of which it is known.
pub(super) fn output_of(commands: &[Command], first: usize) -> Option<String> {
    let last = commands.len().checked_sub(1).filter(|last| *last >= first)?;
    if last - first >= MAX_STAGES {
        return None;
    }
    // A branch, a loop, a function: it may not run.
    let certain = |command: &Command| {
        matches!(command.context.inside.last(), Some(Via::Substitution | Via::Subshell))
    };
    if !commands[first..].iter().all(certain) {
        return None;
    }
    let chained = (first + 1..=last).all(|index| commands[index].piped_from == Some(index - 1));
    if chained { output(commands, last, MAX_STAGES) } else { None }
}

/// What one command prints, if it is known.
pub(super) fn output(commands: &[Command], index: usize, stages: usize) -> Option<String> {
    let stages = stages.checked_sub(1)?;
    let command = commands.get(index)?;
    let diverted = command.redirections.iter().any(|redirection| match redirection.kind {
        RedirectionKind::HereDocument | RedirectionKind::HereString => false,
        // `2>&1`, but not `>&2`.
        RedirectionKind::Duplicate => redirection.target.text.as_deref() != Some("1"),
        _ => true,
    });
    if diverted {
        return None;
    }
    let args = literals(&command.args)?;
    let fed = || input(commands, index, stages);
    let out = match command.program()? {
        "echo" => echo(&args),
        "printf" => printf(&args)?,
        "cat" | "tee" if args.iter().all(|arg| *arg == "-") => fed()?,
        "base64" | "gbase64"
            if args
                .iter()
                .all(|arg| matches!(*arg, "-d" | "-D" | "--decode" | "-i" | "-di" | "-id"))
                && !args.is_empty() =>
        {
            base64_decoded(&fed()?)?
        }
        "openssl"
            if args.contains(&"-d")
                && args.iter().any(|arg| matches!(*arg, "base64" | "-base64" | "-a")) =>
        {
            base64_decoded(&fed()?)?
        }
        "xxd" if args.join(" ").replace(['-', ' '], "") == "rp" => hex_decoded(&fed()?)?,
        "rev" if args.is_empty() => {
            let lines = fed()?;
            let reversed: Vec<String> =
                lines.lines().map(|line| line.chars().rev().collect()).collect();
            reversed.join("\n") + "\n"
        }
        "tr" => translate(&args, &fed()?)?,
        _ => return None,
    };
    (out.len() <= MAX_OUTPUT).then_some(out)
}

/// What a command reads, if it is known: a here-document, a here-string, or a pipe.
pub(super) fn input(commands: &[Command], index: usize, stages: usize) -> Option<String> {
    let command = commands.get(index)?;
    let inline = command.redirections.iter().rev().find(|redirection| {
        matches!(redirection.kind, RedirectionKind::HereDocument | RedirectionKind::HereString)
    });
    match inline {
        Some(redirection) => redirection.target.text.clone(),
        None if command.redirections.iter().any(|r| r.kind == RedirectionKind::Read) => None,
        None => {
            let from = command.piped_from?;
            if is_alone(commands, from, command) { output(commands, from, stages) } else { None }
        }
    }
}

/// Whether a command is all of its part of a pipe, and not the last of a group, a branch or a loop.
fn is_alone(commands: &[Command], from: usize, reader: &Command) -> bool {
    let writer = &commands[from].context;
    reader.context.inside.starts_with(&writer.inside)
        && commands.iter().filter(|command| command.context.shell == writer.shell).count() == 1
}

fn literals(words: &[Word]) -> Option<Vec<&str>> {
    words.iter().map(|word| word.text.as_deref()).collect()
}

fn echo(args: &[&str]) -> String {
    let mut args = args;
    let (mut escapes, mut newline) = (false, true);
    while let [first, rest @ ..] = args {
        let Some(flags) = first.strip_prefix('-').filter(|flags| !flags.is_empty()) else { break };
        if !flags.bytes().all(|flag| matches!(flag, b'n' | b'e' | b'E')) {
            break;
        }
        newline &= !flags.contains('n');
        escapes |= flags.contains('e');
        args = rest;
    }
    let mut line = args.join(" ");
    if escapes {
        line = unescaped(&line);
    }
    if newline {
        line.push('\n');
    }
    line
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'\\' {
            // `\0nnn`, as `echo -e` and `%b` write octal.
            if bytes.get(at) == Some(&b'0') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at += unescape(&bytes[at..], &mut out);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn printf(args: &[&str]) -> Option<String> {
    let args = if args.first() == Some(&"--") { &args[1..] } else { args };
    let (format, mut rest) = args.split_first()?;
    if format.starts_with('-') {
        return None;
    }
    let mut out = String::new();
    loop {
        let before = rest.len();
        let mut signs = format.char_indices().peekable();
        while let Some((place, sign)) = signs.next() {
            match sign {
                '%' => {
                    let conversion = signs.next()?.1;
                    if conversion == '%' {
                        out.push('%');
                        continue;
                    }
                    let value = rest.split_first().map_or("", |(first, others)| {
                        rest = others;
                        *first
                    });
                    match conversion {
                        's' => out.push_str(value),
                        'd' if is_plain_number(value) => out.push_str(value),
                        'b' => out.push_str(&unescaped(value)),
                        _ => return None,
                    }
                }
                '\\' => {
                    let mut bytes = Vec::new();
                    let length = unescape(&format.as_bytes()[place + 1..], &mut bytes);
                    out.push_str(&String::from_utf8_lossy(&bytes));
                    while signs.peek().is_some_and(|(next, _)| *next <= place + length) {
                        signs.next();
                    }
                }
                _ => out.push(sign),
            }
            if out.len() > MAX_OUTPUT {
                return None;
            }
        }
        // The format is used again while there are arguments, and if it takes any.
        if rest.is_empty() || rest.len() == before {
            return Some(out);
        }
    }
}

fn is_plain_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.starts_with('0') && (1..18).contains(&digits.len());
    text == "0" || plain && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn base64_decoded(text: &str) -> Option<String> {
    let dense: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    String::from_utf8(BASE64.decode(dense).ok()?).ok()
}

fn hex_decoded(text: &str) -> Option<String> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let bytes =
        digits?.chunks(2).map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit)).collect();
    String::from_utf8(bytes).ok()
}

fn translate(args: &[&str], text: &str) -> Option<String> {
    match args {
        ["A-Za-z", "N-ZA-Mn-za-m"] | ["a-zA-Z", "n-za-mN-ZA-M"] => {
            Some(text.chars().map(rot13).collect())
        }
        ["-d", removed] if !removed.contains(['-', '[', '\\']) => {
            Some(text.chars().filter(|sign| !removed.contains(*sign)).collect())
        }
        [from, to] if from.chars().count() == 1 && to.chars().count() == 1 => {
            Some(text.replace(from, to))
        }
        _ => None,
    }
}

fn rot13(sign: char) -> char {
    let turned = |base: u8, byte: u8| char::from(base + (byte - base + 13) % 26);
    match u8::try_from(sign) {
        Ok(byte @ b'a'..=b'z') => turned(b'a', byte),
        Ok(byte @ b'A'..=b'Z') => turned(b'A', byte),
        _ => sign,
    }
}
