//! Programs that are given code, on their line or by their input.

use super::args::{after, shown, split};
use super::walk::Doing;
use super::{Access, EffectKind, Language, Unknown};
use crate::shell::Word;

struct Interpreter {
    names: &'static [&'static str],
    language: Language,
    /// Options whose value is code.
    code: &'static [&'static str],
    /// Letters of other options that take a value.
    short: &'static str,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "pypy", "pypy3", "ipython", "micropython"],
        language: Language::Python,
        code: &["-c"],
        short: "WXQ",
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno", "tsx", "ts-node", "qjs"],
        language: Language::JavaScript,
        code: &["-e", "--eval", "-p", "--print"],
        short: "rC",
    },
    Interpreter {
        names: &["perl"],
        language: Language::Perl,
        code: &["-e", "-E"],
        short: "IMmFx0l",
    },
    Interpreter {
        names: &["ruby", "jruby"],
        language: Language::Ruby,
        code: &["-e"],
        short: "IrEKFx0",
    },
    Interpreter {
        names: &["php"],
        language: Language::Php,
        code: &["-r", "-B", "-R", "-E"],
        short: "dzcfFtS",
    },
    Interpreter { names: &["lua", "luajit"], language: Language::Other, code: &["-e"], short: "l" },
    Interpreter { names: &["osascript"], language: Language::Other, code: &["-e"], short: "ls" },
    Interpreter {
        names: &["pwsh", "powershell"],
        language: Language::Other,
        code: &["-c", "-C", "-Command", "-command", "-e", "-EncodedCommand"],
        short: "",
    },
    Interpreter { names: &["Rscript", "R"], language: Language::Other, code: &["-e"], short: "f" },
    Interpreter {
        names: &[
            "julia", "elixir", "groovy", "scala", "swift", "ghc", "raku", "guile", "sbcl", "clisp",
        ],
        language: Language::Other,
        code: &["-e", "-E", "--eval"],
        short: "pPL",
    },
    Interpreter {
        names: &["tclsh", "expect", "wish", "gdb", "bc", "psql", "mysql"],
        language: Language::Other,
        code: &["-c", "-ex", "--command", "--execute"],
        short: "",
    },
];

pub(super) fn read(
    doing: &mut Doing<'_>,
    program: &str,
    words: &[Word],
    input: &dyn Fn() -> Option<String>,
) -> bool {
    let Some(row) = INTERPRETERS.iter().find(|row| row.names.contains(&program)) else {
        return shell_file(doing, program, words);
    };
    if matches!(program, "deno" | "bun" | "php")
        && words.first().is_some_and(|word| shown(word) == "eval")
    {
        doing.code(row.language, words.get(1).and_then(|word| word.text.clone()));
        return true;
    }
    let (mut at, mut given, mut in_place) = (0, false, false);
    let mut script = None;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = shown(word);
        if text == "--" || text == "-" {
            break;
        }
        if !text.starts_with('-') {
            script = Some(word.clone());
            break;
        }
        // `-m module` of Python; `-ne`, `-pi.bak`, `-e'code'` of the others.
        if program == "python" && text == "-m" {
            given = true;
            break;
        }
        let long = text.starts_with("--") || row.code.contains(&text);
        if row.code.contains(&text) {
            doing.code(row.language, words.get(at).and_then(|word| word.text.clone()));
            given = true;
            at += 1;
            // What follows Python's `-c` belongs to the code.
            if program == "python" {
                break;
            }
            continue;
        }
        if let Some((option, _)) =
            text.split_once('=').filter(|(option, _)| row.code.contains(option))
        {
            let code = after(word, &format!("{option}="));
            doing.code(row.language, code.and_then(|word| word.text));
            given = true;
            continue;
        }
        if long || text.len() < 2 {
            continue;
        }
        let letters = &text[1..];
        in_place |= matches!(row.language, Language::Perl | Language::Ruby)
            && letters
                .chars()
                .take_while(|l| !matches!(l, 'e' | 'E' | 'M' | 'I'))
                .any(|l| l == 'i');
        let code_letter = |letter: char| {
            let option = format!("-{letter}");
            option.len() == 2 && row.code.contains(&option.as_str())
        };
        if let Some(place) = letters.find(code_letter) {
            let attached = after(word, &text[..place + 2]).filter(|code| !shown(code).is_empty());
            let code = attached.or_else(|| {
                at += 1;
                words.get(at - 1).cloned()
            });
            doing.code(row.language, code.and_then(|word| word.text));
            given = true;
            continue;
        }
        if letters.len() == 1 && row.short.contains(letters) {
            at += 1;
        }
    }
    if let Some(script) = script {
        if given {
            // Files that code given by an option goes through.
            let access = if in_place { Access::Write } else { Access::Read };
            let files = words.get(at - 1..).unwrap_or_default();
            files.iter().for_each(|file| doing.file_if(access, file.clone(), in_place));
        } else {
            doing.file(Access::Read, script);
        }
        return true;
    }
    if !given {
        match input() {
            Some(text) => doing.code(row.language, Some(text)),
            None => {
                let fed = words.iter().any(|word| shown(word) == "-");
                if fed {
                    doing.push(EffectKind::Opaque(Unknown::Script), true);
                }
            }
        }
    }
    true
}

/// A file that a shell is given to run.
fn shell_file(doing: &mut Doing<'_>, program: &str, words: &[Word]) -> bool {
    let shells = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "mksh"];
    if !shells.contains(&program) {
        return false;
    }
    let args = split(words, "oO", &["--rcfile", "--init-file"]);
    if !args.has(&["-c", "-s"])
        && let Some(script) = args.operands.first()
    {
        doing.file(Access::Read, script.clone());
    }
    args.values(&["--rcfile", "--init-file"])
        .for_each(|file| doing.file(Access::Read, file.clone()));
    true
}
