//! A light reading of code: which files the calls in it name, and what it has a shell run.
//!
//! Calls are recognised by their last name, strings by their quotes, and strings that are joined
//! or spelled by numbers are put together. That is no parser of any language: what it does not
//! see is still in the mentions.

use super::args::shown;
use super::walk::Doing;
use super::{Access, Language};
use crate::shell::Word;

/// Longest code that is read, in bytes.
const MAX_CODE: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A name with its dots: `os.path.join`.
    Name(String),
    Text(Word),
    Number(u32),
    Sign(char),
}

/// Reads what code does to files.
pub(super) fn read(doing: &mut Doing<'_>, language: Language, code: &str) {
    let end = code.floor_char_boundary(MAX_CODE.min(code.len()));
    let tokens = joined(tokens(&code[..end], language));
    for (place, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) => call(doing, language, &tokens, place, name),
            // `print > "file"` and `"command" | getline` of awk.
            Token::Text(word) if language == Language::Awk => {
                let before = place.checked_sub(1).and_then(|at| tokens.get(at));
                match before {
                    Some(Token::Sign('>')) => doing.file(Access::Write, word.clone()),
                    Some(Token::Sign('|')) => doing.script(shown(word)),
                    _ if tokens.get(place + 1) == Some(&Token::Sign('|')) => {
                        doing.script(shown(word))
                    }
                    _ => {}
                }
            }
            Token::Sign('`') | Token::Sign(_) | Token::Number(_) | Token::Text(_) => {}
        }
    }
}

/// What a call does, if it is a known one.
fn call(doing: &mut Doing<'_>, language: Language, tokens: &[Token], place: usize, name: &str) {
    let last = name.rsplit(['.', ':', '>']).next().unwrap_or(name);
    let open = tokens.get(place + 1) == Some(&Token::Sign('('));
    // Perl, Ruby and PHP call without parentheses.
    let loose = !open && matches!(language, Language::Perl | Language::Ruby | Language::Awk);
    if !open && !loose {
        return;
    }
    let from = place + if open { 2 } else { 1 };
    let (args, end) = arguments(tokens, from, open);
    let arg = |index: usize| args.get(index).and_then(|arg| value(arg));
    let file = |doing: &mut Doing<'_>, access: Access, word: Option<Word>| {
        if let Some(word) = word {
            doing.file(access, word);
        }
    };
    match last {
        "open" | "fopen" | "openSync" | "File" | "sysopen" | "new" | "codecs"
        | "createReadStream" => {
            opened(doing, last, &args);
        }
        "writeFile" | "writeFileSync" | "outputFile" | "outputFileSync" | "createWriteStream"
        | "file_put_contents" | "writeTextFile" | "writeTextFileSync" | "truncate"
        | "truncateSync" | "write_file" | "write" | "writelines" | "mkdir" | "mkdirSync"
        | "mkdtemp" | "touch" | "utimes" | "utime" | "savetxt" | "to_csv" | "ensureFile"
            if !matches!(last, "write" | "writelines" | "touch" | "new")
                || name.starts_with("File.")
                || name.starts_with("IO.")
                || name.starts_with("Deno.")
                || name.starts_with("Bun.")
                || name.contains("FileUtils")
                || name == "touch" =>
        {
            file(doing, Access::Write, arg(0));
        }
        "appendFile" | "appendFileSync" => file(doing, Access::Append, arg(0)),
        "unlink" | "unlinkSync" | "remove" | "rmSync" | "rm" | "rmtree" | "rmdir" | "rmdirSync"
        | "removeSync" | "rm_rf" | "rm_r" | "rm_f" | "delete" | "removedirs" | "emptyDir" => {
            file(doing, Access::Delete, arg(0));
        }
        "rename" | "renameSync" | "replace" | "move" | "mv" | "moveSync" | "renames" => {
            // `text.replace(a, b)` is no file.
            let on_text = last == "replace" && !name.starts_with("os.");
            if !on_text {
                file(doing, Access::RenameAway, arg(0));
                file(doing, Access::Replace, arg(1));
            }
        }
        "copy" | "copyfile" | "copy2" | "copyFile" | "copyFileSync" | "copySync" | "cp"
        | "cpSync" | "copytree" | "cp_r" => {
            file(doing, Access::Read, arg(0));
            file(doing, Access::Write, arg(1));
        }
        "link" | "linkSync" => {
            file(doing, Access::HardLink, arg(0));
            file(doing, Access::Replace, arg(1));
        }
        "symlink" | "symlinkSync" => file(doing, Access::Replace, arg(1)),
        "chmod" | "chmodSync" | "lchmod" => {
            file(doing, Access::ChangeMode, arg(0));
            if language == Language::Perl {
                file(doing, Access::ChangeMode, arg(1));
            }
        }
        "chown" | "chownSync" | "lchown" => file(doing, Access::ChangeOwner, arg(0)),
        "readFile" | "readFileSync" | "file_get_contents" | "readTextFile" | "read_csv"
        | "require" => {
            file(doing, Access::Read, arg(0));
        }
        "Path" | "PosixPath" | "PurePath" | "Pathname" | "file" => {
            if let Some(Token::Name(method)) = tokens.get(end) {
                method_of(doing, method, arg(0), arguments(tokens, end + 2, true).0.first());
            }
        }
        "system" | "popen" | "popen2" | "popen3" | "exec" | "execSync" | "execFile"
        | "execFileSync" | "spawn" | "spawnSync" | "run" | "call" | "check_call"
        | "check_output" | "Popen" | "shell_exec" | "passthru" | "proc_open" | "getoutput"
        | "getstatusoutput" | "qx" | "Command" => {
            runs(doing, &args);
        }
        _ => {}
    }
}

/// `open(name, mode)` in its forms.
fn opened(doing: &mut Doing<'_>, last: &str, args: &[&[Token]]) {
    let values: Vec<Option<Word>> = args.iter().map(|arg| value(arg)).collect();
    let text = |index: usize| values.get(index).cloned().flatten();
    let is_mode = |word: &Word| {
        word.text.as_deref().is_some_and(|mode| {
            let mode = mode.trim();
            (1..=4).contains(&mode.len()) && mode.bytes().all(|byte| b"rwaxbt+U<>|".contains(&byte))
        })
    };
    // Perl: `open(F, '>', name)` and `open(F, '>name')`.
    if let Some(combined) = values
        .iter()
        .flatten()
        .find(|word| shown(word).starts_with(['>', '+', '|']) && !is_mode(word) && last == "open")
    {
        let name = shown(combined).trim_start_matches(['>', '+', '<', '|', ' ']).to_owned();
        doing.file(Access::Write, Word::literal(name));
        return;
    }
    let mode = values.iter().flatten().find(|word| is_mode(word));
    let target = values.iter().flatten().find(|word| !is_mode(word)).cloned();
    let Some(target) = target.or_else(|| text(0)) else { return };
    let writes = match mode.and_then(|word| word.text.as_deref()) {
        Some(mode) => mode.contains(['w', 'a', 'x', '+', '>']),
        // Something else decides: it may write.
        None => args.iter().skip(1).any(|arg| {
            value(arg).is_some_and(|word| word.text.is_none())
                || arg.iter().any(|token| matches!(token, Token::Name(name) if name.contains("O_")))
        }),
    };
    if writes {
        doing.file_if(Access::Write, target, mode.is_some());
    } else if !matches!(last, "new" | "codecs" | "File") {
        doing.file(Access::Read, target);
    }
}

/// `Path("x").write_text(…)`.
fn method_of(doing: &mut Doing<'_>, method: &str, target: Option<Word>, first: Option<&&[Token]>) {
    let Some(target) = target else { return };
    let other = first.and_then(|arg| value(arg));
    match method.trim_start_matches('.') {
        "write_text" | "write_bytes" | "touch" | "mkdir" | "write" | "writer" => {
            doing.file(Access::Write, target);
        }
        "unlink" | "rmdir" | "delete" => doing.file(Access::Delete, target),
        "rename" | "replace" => {
            doing.file(Access::RenameAway, target);
            other.into_iter().for_each(|to| doing.file(Access::Replace, to));
        }
        "chmod" => doing.file(Access::ChangeMode, target),
        "symlink_to" | "hardlink_to" => doing.file(Access::Replace, target),
        "open" => {
            let writes = other.is_some_and(|mode| {
                mode.text.as_deref().is_none_or(|mode| mode.contains(['w', 'a', 'x', '+']))
            });
            doing.file(if writes { Access::Write } else { Access::Read }, target);
        }
        _ => doing.file_if(Access::Read, target, false),
    }
}

/// A command: one text for a shell, or a list of words.
fn runs(doing: &mut Doing<'_>, args: &[&[Token]]) {
    let Some(first) = args.first() else { return };
    let list: Vec<&Token> =
        args.iter().flat_map(|arg| arg.iter()).filter(|t| matches!(t, Token::Text(_))).collect();
    let as_list = first.first() == Some(&Token::Sign('['))
        || args.get(1).is_some_and(|arg| arg.first() == Some(&Token::Sign('[')))
        || args.len() > 1 && args.iter().all(|arg| matches!(arg, [Token::Text(_)]));
    if as_list {
        let quoted: Vec<String> = list
            .iter()
            .filter_map(|token| match token {
                Token::Text(word) => Some(format!("'{}'", shown(word).replace('\'', "'\\''"))),
                _ => None,
            })
            .collect();
        doing.script(&quoted.join(" "));
    } else if let Some(word) = value(first) {
        match &word.text {
            Some(text) => doing.script(text),
            None => doing.push(super::EffectKind::Opaque(super::Unknown::Script), true),
        }
    }
}

/// The arguments of a call from here on, and where it ends.
fn arguments(tokens: &[Token], from: usize, closed: bool) -> (Vec<&[Token]>, usize) {
    let mut args = Vec::new();
    let (mut start, mut depth) = (from, 0_usize);
    // An argument list is looked at once for each call around it: a limit keeps that linear.
    let stop = tokens.len().min(from.saturating_add(256));
    for at in from..stop {
        match &tokens[at] {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') if depth == 0 => {
                args.push(&tokens[start..at]);
                return (args, at + 1);
            }
            Token::Sign(')' | ']' | '}') => depth -= 1,
            Token::Sign(',') if depth == 0 => {
                args.push(&tokens[start..at]);
                start = at + 1;
            }
            Token::Sign(';') if depth == 0 && !closed => {
                args.push(&tokens[start..at]);
                return (args, at + 1);
            }
            _ => {}
        }
    }
    if from < stop {
        args.push(&tokens[start.min(stop)..stop]);
    }
    (args, stop)
}

/// What an argument is, if it may be a path.
fn value(arg: &[Token]) -> Option<Word> {
    match arg {
        [] => None,
        [Token::Text(word)] => Some(word.clone()),
        // `mode="w"`.
        [Token::Name(_), Token::Sign('='), Token::Text(word)] => Some(word.clone()),
        [Token::Number(_)] => None,
        _ => {
            // The texts in it, with anything between them.
            let texts: Vec<&str> = arg
                .iter()
                .filter_map(|token| match token {
                    Token::Text(word) => Some(word.pattern.as_str()),
                    _ => None,
                })
                .collect();
            let pattern =
                if texts.is_empty() { "*".to_owned() } else { format!("*{}*", texts.join("*")) };
            Some(Word { pattern, ..Word::unknown("") })
        }
    }
}

/// Strings that are joined by signs, made one.
fn joined(tokens: Vec<Token>) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in spelled(tokens) {
        if let Token::Text(next) = &token {
            let glued = match out.as_slice() {
                [.., Token::Text(_), Token::Sign('+' | '.')] => 2,
                [.., Token::Text(_)] => 1,
                _ => 0,
            };
            if glued > 0 {
                if glued == 2 {
                    out.pop();
                }
                if let Some(Token::Text(before)) = out.last_mut() {
                    let text = before.text.take().zip(next.text.as_ref()).map(|(a, b)| a + b);
                    before.text = text;
                    before.pattern.push_str(&next.pattern);
                    before.raw.push_str(&next.raw);
                }
                continue;
            }
        }
        out.push(token);
    }
    out
}

/// `chr(76)` and `String.fromCharCode(76, 111)` as the text that they are.
fn spelled(tokens: Vec<Token>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if let Token::Name(name) = &tokens[at]
            && (name == "chr" || name.ends_with("fromCharCode") || name.ends_with("fromCodePoint"))
            && tokens.get(at + 1) == Some(&Token::Sign('('))
        {
            let mut text = String::new();
            let mut next = at + 2;
            while let Some(token) = tokens.get(next) {
                match token {
                    Token::Number(code) => text.extend(char::from_u32(*code)),
                    Token::Sign(',') => {}
                    _ => break,
                }
                next += 1;
            }
            if tokens.get(next) == Some(&Token::Sign(')')) && !text.is_empty() {
                out.push(Token::Text(Word::literal(text)));
                at = next + 1;
                continue;
            }
        }
        out.push(tokens[at].clone());
        at += 1;
    }
    out
}

fn tokens(code: &str, language: Language) -> Vec<Token> {
    let bytes = code.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'#' if !matches!(language, Language::JavaScript | Language::Other) => {
                at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
            }
            b'\'' | b'"' => at = string(code, at, byte, &mut out),
            b'`' if language == Language::JavaScript => at = string(code, at, byte, &mut out),
            b'`' => {
                // A command in Perl, Ruby and PHP.
                let end = memchr::memchr(b'`', &bytes[at + 1..]).map(|end| at + 1 + end);
                let end = end.unwrap_or(bytes.len());
                out.push(Token::Name("system".into()));
                out.push(Token::Sign('('));
                out.push(Token::Text(Word::literal(&code[at + 1..end])));
                out.push(Token::Sign(')'));
                at = end + 1;
            }
            b'0'..=b'9' => {
                let length = bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
                let text = &code[at..at + length];
                let number = match text.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                out.push(number.map_or(Token::Sign('0'), Token::Number));
                at += length;
            }
            _ if byte.is_ascii_alphabetic()
                || byte == b'_'
                || byte == b'.' && names_on(bytes, at) =>
            {
                let length = name_length(&bytes[at..]);
                out.push(Token::Name(code[at..at + length].to_owned()));
                at += length;
            }
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            _ => {
                let sign = code[at..].chars().next().unwrap_or(' ');
                out.push(Token::Sign(sign));
                at += sign.len_utf8();
            }
        }
    }
    out
}

fn names_on(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
}

/// `a.b`, `a::b`, `a->b` are one name.
fn name_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let more = |skip: usize| {
            bytes.get(at + skip).is_some_and(|next| next.is_ascii_alphabetic() || *next == b'_')
        };
        let letter = byte.is_ascii_alphanumeric() || byte == b'_';
        if letter || (byte == b'.' && more(1)) {
            at += 1;
        } else if (bytes[at..].starts_with(b"::") || bytes[at..].starts_with(b"->")) && more(2) {
            at += 2;
        } else {
            break;
        }
    }
    at.max(1)
}

/// A string from its quote on; where it ends.
fn string(code: &str, start: usize, quote: u8, out: &mut Vec<Token>) -> usize {
    let bytes = code.as_bytes();
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    // A letter in front says how it is read: `f"…"`, `r"…"`, `b"…"`.
    let prefix = match out.last() {
        Some(Token::Name(name))
            if name.len() <= 2 && name.bytes().all(|b| b"rRbBfFuU".contains(&b)) =>
        {
            let name = name.to_ascii_lowercase();
            out.pop();
            name
        }
        _ => String::new(),
    };
    let raw = prefix.contains('r');
    let (mut text, mut pattern, mut open) = (Vec::new(), String::new(), false);
    let mut at = start + width;
    let mut from = 0;
    while let Some(&byte) = bytes.get(at) {
        let ends = if triple { bytes[at..].starts_with(&[quote; 3]) } else { byte == quote };
        if ends {
            at += width;
            break;
        }
        if byte == b'\\' && !raw {
            at += 1;
            at += crate::shell::unescape(&bytes[at.min(bytes.len())..], &mut text);
            continue;
        }
        // Something is put in: `${x}`, `#{x}`, `{x}`.
        let put_in = (quote == b'`' && bytes[at..].starts_with(b"${"))
            || (quote == b'"' && bytes[at..].starts_with(b"#{"))
            || (prefix.contains('f') && byte == b'{');
        if put_in && let Some(close) = memchr::memchr(b'}', &bytes[at..]) {
            pattern.push_str(&Word::literal(String::from_utf8_lossy(&text[from..])).pattern);
            pattern.push('*');
            from = text.len();
            open = true;
            at += close + 1;
            continue;
        }
        text.push(byte);
        at += 1;
    }
    pattern.push_str(&Word::literal(String::from_utf8_lossy(&text[from..])).pattern);
    let text = String::from_utf8_lossy(&text).into_owned();
    let known = if open { None } else { Some(text.clone()) };
    out.push(Token::Text(Word { text: known, raw: text, pattern, ..Word::default() }));
    at.min(bytes.len())
}
