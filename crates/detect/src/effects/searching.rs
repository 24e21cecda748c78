//! `find`, `fd`, `xargs`: what they find is what the commands that they run are given.

use super::args::{below, shown, split};
use super::walk::Doing;
use super::{Access, Target};
use crate::shell::Word;

/// Most words that are filled in for one.
const MAX_FOUND: usize = 64;

/// Reads a search; gives what it finds, as far as that is known.
pub(super) fn read(
    doing: &mut Doing<'_>,
    program: &str,
    words: &[Word],
    input: &dyn Fn() -> Option<String>,
) -> Option<Vec<Word>> {
    match program {
        "find" | "gfind" => Some(find(doing, words)),
        "fd" | "fdfind" => Some(fd(doing, words)),
        "rg" | "ag" | "ack" | "ripgrep" => {
            let args = split(words, "egfABCmtTrjMd", &["--regexp", "--glob", "--file", "--type"]);
            let given = args.has(&["-e", "--regexp", "-f", "--file", "--files"]);
            let paths: Vec<&Word> = args.operands.iter().skip(usize::from(!given)).collect();
            paths.iter().for_each(|path| doing.file(Access::ReadTree, (*path).clone()));
            if paths.is_empty() {
                doing.file(Access::ReadTree, Word::literal("."));
            }
            for program in args.values(&["--pre"]) {
                doing.script(shown(program));
            }
            None
        }
        "xargs" | "parallel" => {
            let args = split(words, "aIdEnPLs", &["--arg-file", "--replace", "--delimiter"]);
            args.values(&["-a", "--arg-file"])
                .for_each(|file| doing.file(Access::Read, file.clone()));
            let text = input()?;
            Some(text.split_whitespace().take(MAX_FOUND).map(Word::literal).collect())
        }
        _ => None,
    }
}

fn glob(text: &str) -> Word {
    let special = text.contains(['*', '?', '[']);
    let raw = if special { super::FOUND } else { text }.to_owned();
    Word { pattern: text.to_owned(), glob: special, raw, ..Word::literal(text) }
}

fn find(doing: &mut Doing<'_>, words: &[Word]) -> Vec<Word> {
    let starts_expression = |word: &&Word| {
        shown(word).starts_with(['-', '(', '!', ')', ',']) && shown(word).len() > 1
            || matches!(shown(word), "(" | "!" | ")")
    };
    // Options before the paths: `-H -L -P -O3`.
    let early =
        |word: &&Word| matches!(shown(word), "-H" | "-L" | "-P") || shown(word).starts_with("-O");
    let words: Vec<&Word> = words.iter().skip_while(early).collect();
    let mut paths: Vec<Word> = words
        .iter()
        .take_while(|word| !starts_expression(word))
        .map(|word| (*word).clone())
        .collect();
    if paths.is_empty() {
        paths.push(Word::literal("."));
    }
    let mut names: Vec<Word> = Vec::new();
    for (option, value) in words.iter().zip(words.iter().skip(1)) {
        match shown(option) {
            "-name" | "-iname" | "-lname" => {
                names.push(value.text.as_deref().map_or_else(|| (*value).clone(), glob));
            }
            "-path" | "-ipath" | "-wholename" | "-iwholename" => {
                let text = shown(value).rsplit('/').next().unwrap_or("*").to_owned();
                names.push(value.text.as_deref().map_or_else(|| (*value).clone(), |_| glob(&text)));
            }
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                doing.file(Access::Write, (*value).clone())
            }
            "-newer" | "-samefile" | "-files0-from" => doing.file(Access::Read, (*value).clone()),
            _ => {}
        }
    }
    paths.iter().for_each(|path| doing.file(Access::List, path.clone()));
    let found = everything(&paths, &names);
    if words.iter().any(|word| shown(word) == "-delete") {
        if names.is_empty() {
            for path in &paths {
                doing.file(Access::Delete, Target { tree: true, ..path.clone().into() });
            }
        }
        for file in found.iter().filter(|_| !names.is_empty()) {
            doing.file(Access::Delete, file.clone());
        }
    }
    found
}

/// What lies at or below the paths under one of the names.
fn everything(paths: &[Word], names: &[Word]) -> Vec<Word> {
    let any = [glob("*")];
    let names = if names.is_empty() { any.as_slice() } else { names };
    let mut found = Vec::new();
    for path in paths {
        for name in names {
            // Directly below, or anywhere below.
            found.push(below(path, name));
            found.push(below(&below(path, &glob("*")), name));
        }
    }
    found.truncate(MAX_FOUND);
    found
}

fn fd(doing: &mut Doing<'_>, words: &[Word]) -> Vec<Word> {
    let args =
        split(words, "egtEdSxXoCj", &["--extension", "--type", "--exclude", "--base-directory"]);
    let mut operands = args.operands.iter();
    let pattern = operands.next().cloned();
    let mut paths: Vec<Word> = operands.cloned().collect();
    if paths.is_empty() {
        paths.push(Word::literal("."));
    }
    paths.iter().for_each(|path| doing.file(Access::List, path.clone()));
    let literal = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    };
    let name = match pattern.as_ref().and_then(|word| word.text.as_deref()) {
        Some(text) if literal(text) => glob(&format!("*{text}*")),
        _ => glob("*"),
    };
    everything(&paths, &[name])
}

/// The words of a command that is run for what was found.
pub(super) fn filled_in(words: &[Word], found: &[Word]) -> Vec<Word> {
    let mut out = Vec::new();
    let marked = words.iter().any(|word| word.text.is_none() && word.raw.contains("{}"));
    for word in words.iter().filter(|word| !(marked && word.raw == "<input>")) {
        let place = word.text.is_none() && (word.raw.contains("{}") || word.raw == "<input>");
        if !place || found.is_empty() {
            out.push(word.clone());
            continue;
        }
        for file in found.iter().take(MAX_FOUND) {
            let whole = matches!(word.raw.as_str(), "{}" | "<input>");
            if whole {
                out.push(file.clone());
            } else {
                let pattern = word.pattern.replacen('*', &file.pattern, 1);
                let known = file.text.as_ref().filter(|_| !file.glob);
                let text = known.map(|text| word.raw.replace("{}", text));
                out.push(Word { text, pattern, ..word.clone() });
            }
        }
    }
    out
}
