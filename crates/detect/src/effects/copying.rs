//! Programs that put files elsewhere: copies, moves, links, also to other machines.

use super::args::{Args, remote_host, shown, split};
use super::walk::Doing;
use super::{Access, Endpoint, NetworkUse, Target};
use crate::shell::Word;

pub(super) fn read(doing: &mut Doing<'_>, program: &str, words: &[Word]) -> bool {
    match program {
        "cp" | "gcp" => copy(doing, &split(words, "tSZ", &["--target-directory", "--suffix"])),
        "mv" | "gmv" => rename(doing, &split(words, "tSZ", &["--target-directory", "--suffix"])),
        "exch" => {
            for path in split(words, "", &[]).operands {
                doing.file(Access::RenameAway, path.clone());
                doing.file(Access::Replace, path);
            }
        }
        "ln" | "gln" => link(doing, &split(words, "tS", &["--target-directory", "--suffix"])),
        "install" | "ginstall" => {
            let long = ["--target-directory", "--mode", "--owner", "--group", "--suffix"];
            install(doing, &split(words, "tmogS", &long));
        }
        "rsync" => {
            let long = [
                "--rsh",
                "--exclude",
                "--include",
                "--filter",
                "--files-from",
                "--log-file",
                "--password-file",
                "--port",
                "--backup-dir",
                "--temp-dir",
                "--partial-dir",
                "--exclude-from",
                "--include-from",
                "--bwlimit",
                "--chmod",
                "--out-format",
            ];
            transfer(doing, &split(words, "efTMB", &long), true);
        }
        "scp" => transfer(doing, &split(words, "cDFiJloPSX", &[]), false),
        "ditto" | "cpdup" | "robocopy" | "xcopy" => copy_tree(doing, &split(words, "", &[])),
        _ => return false,
    }
    true
}

/// Sources and target: the target is last, or an option gives it.
fn sides(args: &Args) -> (Vec<Word>, Option<Word>) {
    if let Some(target) = args.value(&["-t", "--target-directory"]) {
        return (args.operands.clone(), Some(target));
    }
    match args.operands.split_last() {
        Some((target, sources)) if !sources.is_empty() => (sources.to_vec(), Some(target.clone())),
        _ => (args.operands.clone(), None),
    }
}

/// Whether the target is meant itself, and nothing in it.
fn is_bare(args: &Args) -> bool {
    args.has(&["-T", "--no-target-directory"])
}

/// Sources keep the folders in front of their names at the target.
fn with_folders(doing: &mut Doing<'_>, access: Access, sources: &[Word], target: &Word) {
    for source in sources {
        let whole = match (&source.text, &target.text) {
            (Some(source), Some(target)) => Word::literal(format!("{target}/{source}")),
            _ => Word { text: None, ..target.clone() },
        };
        doing.file(access, whole);
    }
}

fn copy(doing: &mut Doing<'_>, args: &Args) {
    let (sources, target) = sides(args);
    let tree = args.has(&["-r", "-R", "-a", "--recursive", "--archive"]);
    for source in &sources {
        let reading = if tree { Access::ReadTree } else { Access::Read };
        doing.file(reading, source.clone());
        if args.has(&["-l", "--link"]) {
            doing.file(Access::HardLink, source.clone());
        }
    }
    if let Some(word) = target {
        let access = if args.has(&["-s", "--symbolic-link", "-l", "--link"]) {
            Access::Replace
        } else {
            Access::Write
        };
        let named = if is_bare(args) { Vec::new() } else { sources.clone() };
        if args.has(&["--parents"]) {
            with_folders(doing, access, &sources, &word);
        }
        doing.file(access, Target { word: word.clone(), sources: named, tree: false });
        if tree {
            doing.file(Access::WriteTree, Target { word, sources, tree: true });
        }
    }
}

fn copy_tree(doing: &mut Doing<'_>, args: &Args) {
    let (sources, target) = sides(args);
    sources.iter().for_each(|source| doing.file(Access::ReadTree, source.clone()));
    if let Some(word) = target {
        doing.file(Access::WriteTree, Target { word, sources, tree: true });
    }
}

fn rename(doing: &mut Doing<'_>, args: &Args) {
    let (sources, target) = sides(args);
    sources.iter().for_each(|source| doing.file(Access::RenameAway, source.clone()));
    if args.has(&["--exchange"]) {
        sources.iter().for_each(|source| doing.file(Access::Replace, source.clone()));
        target.iter().for_each(|target| doing.file(Access::RenameAway, target.clone()));
    }
    if let Some(word) = target {
        let sources = if is_bare(args) { Vec::new() } else { sources };
        doing.file(Access::Replace, Target { word, sources, tree: false });
    }
}

fn link(doing: &mut Doing<'_>, args: &Args) {
    let (sources, target) = sides(args);
    if !args.has(&["-s", "--symbolic"]) {
        sources.iter().for_each(|source| doing.file(Access::HardLink, source.clone()));
    }
    let word = target.unwrap_or_else(|| Word::literal("."));
    doing.file(Access::Replace, Target { word, sources, tree: false });
}

fn install(doing: &mut Doing<'_>, args: &Args) {
    if args.has(&["-d", "--directory"]) {
        args.operands.iter().for_each(|path| doing.file(Access::Write, path.clone()));
        return;
    }
    let (sources, target) = sides(args);
    sources.iter().for_each(|source| doing.file(Access::Read, source.clone()));
    if let Some(word) = target {
        doing.file(Access::Write, Target { word, sources, tree: false });
    }
}

/// `rsync`, `scp`: either side may be another machine.
fn transfer(doing: &mut Doing<'_>, args: &Args, sync: bool) {
    let (sources, target) = sides(args);
    let tree = sync || args.has(&["-r"]);
    let target_host = target.as_ref().and_then(remote_host);
    for source in &sources {
        match remote_host(source) {
            Some(host) => {
                let usage = NetworkUse::Fetch;
                doing.network(Endpoint { word: source.clone(), host: Some(host), usage });
            }
            None => {
                let reading = if tree { Access::ReadTree } else { Access::Read };
                doing.file(reading, source.clone());
                if args.has(&["--remove-source-files"]) {
                    doing.file(Access::Delete, source.clone());
                }
            }
        }
    }
    let files = ["--files-from", "--exclude-from", "--include-from", "--password-file", "-i", "-F"];
    args.values(&files).for_each(|file| doing.file(Access::Read, file.clone()));
    args.values(&["--log-file"]).for_each(|file| doing.file(Access::Write, file.clone()));
    for shell in args.values(&["-e", "--rsh", "-S"]) {
        doing.script(shown(shell));
    }
    let Some(word) = target else { return };
    if let Some(host) = target_host {
        doing.network(Endpoint { word, host: Some(host), usage: NetworkUse::Send });
        return;
    }
    let local: Vec<Word> =
        sources.iter().filter(|word| remote_host(word).is_none()).cloned().collect();
    let sources = if local.len() == sources.len() { local } else { Vec::new() };
    if sync && args.has(&["-R", "--relative"]) {
        with_folders(doing, Access::Write, &sources, &word);
    }
    if tree {
        let delete = args.has(&["--delete", "--delete-after", "--delete-excluded", "--del"]);
        let target = Target { word: word.clone(), sources: sources.clone(), tree: true };
        // What is not in the source is removed there: nothing is known of the names.
        let target = if delete { Target { sources: Vec::new(), ..target } } else { target };
        doing.file(Access::WriteTree, target);
    }
    doing.file(Access::Write, Target { word, sources, tree: false });
}
