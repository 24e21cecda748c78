//! Python, JavaScript and TypeScript: parsed, and followed from where data comes to where it goes.

mod calls;
mod computed;
pub(super) mod decode;
mod eval;
mod ir;
mod library;
mod lower;
mod python;
mod run;
mod script;
mod value;

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser};

use super::facts::{Act, Seen};
use super::kind::Language;
use ir::Module;
use lower::{Grammar, Lower};
use run::Run;

/// Longest program that is parsed, in bytes.
const LONGEST: usize = 1 << 20;
/// Rounds of the parser, each some hundreds of its steps.
const PATIENCE: usize = 60_000;

/// Most times that a program is followed again to see where its values go.
const PASSES: usize = 5;

/// What a program does.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// For each file, in order.
    pub(super) seen: Vec<Vec<Seen>>,
    /// For each file, whether it was read to its end.
    pub(super) complete: Vec<bool>,
}

/// Reads files of one skill together: what one gives, another may take.
pub(super) fn read(files: &[(Language, &str)]) -> Read {
    let mut complete = Vec::with_capacity(files.len());
    let mut modules = Vec::with_capacity(files.len());
    for (language, text) in files {
        let module =
            if is_interesting(text) { parse(*language, text) } else { Some(Module::default()) };
        complete.push(module.as_ref().is_some_and(|module| !module.truncated));
        modules.push(module.unwrap_or_default());
    }
    let mut run = Run::new(&modules);
    run.pass();
    if modules.iter().any(|module| !module.functions.is_empty()) {
        for _ in 0..PASSES {
            let before = run.known();
            run.pass();
            if run.known() == before {
                break;
            }
        }
    }
    if run.exhausted {
        // Where a program does too much to be followed, what was seen of it still counts.
        complete.iter_mut().for_each(|one| *one &= files.len() > 1);
    }
    let mut seen = run.seen;
    for (file, marks) in run.marks.iter().enumerate() {
        if marks.connects && marks.hands_over && marks.shell {
            seen[file].push(Seen::new(Act::ReverseShell, 0..0));
        }
    }
    Read { seen, complete }
}

/// Words without which a program does nothing that is looked for.
const WORDS: &[&str] = &[
    "eval",
    "exec",
    "system",
    "subprocess",
    "popen",
    "spawn",
    "requests",
    "urllib",
    "http",
    "fetch",
    "axios",
    "socket",
    "open(",
    "readFile",
    "writeFile",
    "environ",
    "process.env",
    "Function",
    "import",
    "require",
    "constructor",
    "while True",
    "while(",
    "while (",
    "getattr",
    "globalThis",
];

fn is_interesting(text: &str) -> bool {
    WORDS.iter().any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some())
}

fn parse(language: Language, text: &str) -> Option<Module> {
    if text.len() > LONGEST {
        return None;
    }
    let mut parser = Parser::new();
    let (grammar, lowering): (tree_sitter::Language, &dyn Grammar) = match language {
        Language::Python => (tree_sitter_python::LANGUAGE.into(), &python::Python),
        Language::TypeScript => {
            (tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), &script::Script)
        }
        _ => (tree_sitter_typescript::LANGUAGE_TSX.into(), &script::Script),
    };
    parser.set_language(&grammar).ok()?;
    let mut left = PATIENCE;
    let mut watch = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let bytes = text.as_bytes();
    let tree = parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        None,
        Some(options),
    )?;
    let mut lower = Lower::new(text, lowering);
    let body = lower.statement(tree.root_node());
    lower.module.body.push(body);
    Some(lower.module)
}
