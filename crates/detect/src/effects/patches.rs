//! Patches: which files they change, where the patch is known.

use super::args::split;
use super::walk::Doing;
use super::{Access, Target};
use crate::shell::Word;

pub(super) fn read(
    doing: &mut Doing<'_>,
    program: &str,
    words: &[Word],
    input: &dyn Fn() -> Option<String>,
) -> bool {
    match program {
        "patch" | "gpatch" => {
            let long = ["--directory", "--input", "--output", "--strip", "--reject-file", "--fuzz"];
            let args = split(words, "diopFrBzVDY", &long);
            let files = ["-i", "--input"];
            args.values(&files).for_each(|file| doing.file(Access::Read, file.clone()));
            let named = args.has(&["-o", "--output"]) || !args.operands.is_empty();
            doing.inside(args.value(&["-d", "--directory"]), |doing| {
                args.values(&["-o", "--output", "-r", "--reject-file"])
                    .chain(args.operands.first())
                    .for_each(|file| doing.file(Access::Write, file.clone()));
                match input().filter(|_| !args.has(&files)) {
                    Some(patch) => patched(doing, &patch),
                    None if named => {}
                    None => unknown(doing),
                }
            });
            true
        }
        // The pseudo-command of a coding agent.
        "apply_patch" | "applypatch" => {
            let text = words.first().and_then(|word| word.text.clone()).or_else(input);
            match text {
                Some(patch) => patched(doing, &patch),
                None => unknown(doing),
            }
            true
        }
        _ => false,
    }
}

fn unknown(doing: &mut Doing<'_>) {
    let target = Target { tree: true, ..Word::literal(".").into() };
    doing.file_if(Access::WriteTree, target, false);
}

/// The files that a patch names.
pub(super) fn patched(doing: &mut Doing<'_>, patch: &str) {
    let mut any = false;
    for line in patch.lines() {
        let (access, name) = if let Some(name) = line.strip_prefix("+++ ") {
            (Access::Write, name)
        } else if let Some(name) = line.strip_prefix("--- ") {
            (Access::Write, name)
        } else if let Some(name) = line.strip_prefix("rename from ") {
            (Access::RenameAway, name)
        } else if let Some(name) = line.strip_prefix("rename to ") {
            (Access::Replace, name)
        } else if let Some(name) = line.strip_prefix("*** Update File: ") {
            (Access::Write, name)
        } else if let Some(name) = line.strip_prefix("*** Add File: ") {
            (Access::Write, name)
        } else if let Some(name) = line.strip_prefix("*** Move to: ") {
            (Access::Replace, name)
        } else if let Some(name) = line.strip_prefix("*** Delete File: ") {
            (Access::Delete, name)
        } else {
            continue;
        };
        let name = name.split('\t').next().unwrap_or_default().trim().trim_matches('"');
        if name.is_empty() || name == "/dev/null" {
            continue;
        }
        any = true;
        doing.file(access, Word::literal(name));
        // How many leading folders are cut off is an option: each could be.
        let mut rest = name;
        for _ in 0..4 {
            let Some((_, shorter)) = rest.split_once('/') else { break };
            rest = shorter;
            doing.file_if(access, Word::literal(rest), false);
        }
    }
    if !any {
        unknown(doing);
    }
}
