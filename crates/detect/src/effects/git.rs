//! git: what it writes into the work tree, what it sends, what its settings run.

use super::args::{Args, after, host_of, remote_host, shown, split};
use super::patches;
use super::walk::Doing;
use super::{Access, EffectKind, Endpoint, NetworkUse, Target};
use crate::shell::Word;

pub(super) fn read(
    doing: &mut Doing<'_>,
    program: &str,
    words: &[Word],
    input: &dyn Fn() -> Option<String>,
) -> bool {
    if program != "git" {
        return false;
    }
    let (mut at, mut tree, mut settings) = (0, None::<Word>, Vec::new());
    while let Some(word) = words.get(at) {
        let text = shown(word);
        let next = words.get(at + 1).cloned();
        match text {
            "-C" => {
                tree =
                    tree.map_or(next.clone(), |old| next.map(|new| super::args::below(&old, &new)))
            }
            "-c" | "--config-env" => settings.extend(next),
            "--work-tree" => tree = next,
            "--git-dir" | "--namespace" | "--exec-path" => {}
            _ if text.starts_with("--work-tree=") => tree = after(word, "--work-tree="),
            _ if text.starts_with('-') => {
                at += 1;
                continue;
            }
            _ => break,
        }
        at += 2;
    }
    for setting in settings {
        set(doing, &setting);
    }
    let Some(verb) = words.get(at) else { return true };
    let rest = words.get(at + 1..).unwrap_or_default();
    let verb = verb.text.clone();
    doing.inside(tree, |doing| match verb {
        Some(verb) => run(doing, &verb, rest, input),
        // Any of them: the worst is that the whole tree is written.
        None => whole_tree(doing),
    });
    true
}

/// `-c name=value`.
fn set(doing: &mut Doing<'_>, setting: &Word) {
    let (name, value) = match shown(setting).split_once('=') {
        Some((name, _)) => {
            let value = after(setting, &format!("{name}=")).unwrap_or_default();
            (name.to_ascii_lowercase(), value)
        }
        None => (shown(setting).to_ascii_lowercase(), Word::literal("true")),
    };
    doing.push(EffectKind::Setting { name: format!("git:{name}"), value }, true);
}

fn whole_tree(doing: &mut Doing<'_>) {
    let target = Target { tree: true, ..Word::literal(".").into() };
    doing.file_if(Access::WriteTree, target, false);
}

fn run(doing: &mut Doing<'_>, verb: &str, rest: &[Word], input: &dyn Fn() -> Option<String>) {
    let long = [
        "--source",
        "--output",
        "--message",
        "--branch",
        "--depth",
        "--directory",
        "--exclude",
        "--file",
        "--pathspec-from-file",
        "--origin",
        "--reference",
        "--template",
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--onto",
        "--strategy",
    ];
    let args = split(rest, "bBsmoFujX", &long);
    args.values(&["--output"]).for_each(|file| doing.file(Access::Write, file.clone()));
    for program in args.values(&["--upload-pack", "--receive-pack", "--exec"]) {
        doing.script(shown(program));
    }
    match verb {
        "checkout" | "restore" => {
            // Behind `--` all are paths; otherwise one may be a branch.
            let split_at = rest.iter().position(|word| word.text.as_deref() == Some("--"));
            let sure = verb == "restore" || split_at.is_some();
            let staged = verb == "restore"
                && args.has(&["-S", "--staged"])
                && !args.has(&["-W", "--worktree"]);
            if staged {
                return;
            }
            for path in &args.operands {
                if matches!(path.text.as_deref(), Some("." | ":/" | "*")) {
                    whole_tree(doing);
                } else {
                    doing.file_if(Access::Write, path.clone(), sure);
                }
            }
            if split_at.is_none() && verb == "checkout" && args.operands.len() < 2 {
                whole_tree(doing);
            }
        }
        "switch" | "merge" | "rebase" | "cherry-pick" | "revert" | "stash" | "reset"
        | "read-tree" | "checkout-index" | "bisect" | "filter-branch" | "filter-repo"
        | "subtree" | "sparse-checkout" => {
            let soft = verb == "reset" && !args.has(&["--hard", "--merge", "--keep"]);
            let looking = verb == "stash"
                && args.operands.first().is_some_and(|word| matches!(shown(word), "list" | "show"));
            if !soft && !looking {
                whole_tree(doing);
            }
        }
        "clean" => {
            let args = split(rest, "e", &["--exclude"]);
            if args.has(&["-n", "--dry-run"]) {
                return;
            }
            // What of it is untracked is not known: as if all were.
            let here = Word::literal(".");
            let removed = if args.operands.is_empty() { vec![here] } else { args.operands.clone() };
            if args.operands.is_empty() {
                whole_tree(doing);
            }
            for word in removed {
                doing.file_if(Access::Delete, Target { tree: true, ..word.into() }, false);
            }
        }
        "apply" | "am" => {
            let files: Vec<&Word> = args.operands.iter().collect();
            files.iter().for_each(|file| doing.file(Access::Read, (*file).clone()));
            match input().filter(|_| files.is_empty()) {
                Some(patch) => patches::patched(doing, &patch),
                None if args.has(&["--check", "--stat"]) => {}
                None => whole_tree(doing),
            }
        }
        "rm" => args.operands.iter().for_each(|path| {
            if !args.has(&["--cached", "-n", "--dry-run"]) {
                doing.file(Access::Delete, path.clone());
            }
        }),
        "mv" => {
            if let Some((target, sources)) = args.operands.split_last() {
                sources.iter().for_each(|path| doing.file(Access::RenameAway, path.clone()));
                let (word, sources) = (target.clone(), sources.to_vec());
                doing.file(Access::Replace, Target { word, sources, tree: false });
            }
        }
        "add" | "diff" | "show" | "log" | "blame" | "grep" | "hash-object" | "ls-files"
        | "status" => {
            args.operands.iter().for_each(|path| doing.file_if(Access::Read, path.clone(), false));
        }
        "archive" | "format-patch" => {
            args.values(&["-o"]).for_each(|file| doing.file(Access::Write, file.clone()));
        }
        "bundle" => {
            let create = args.operands.first().is_some_and(|word| shown(word) == "create");
            if let Some(file) = args.operands.get(1) {
                doing.file(if create { Access::Write } else { Access::Read }, file.clone());
            }
        }
        "init" | "worktree" => {
            let path =
                if verb == "worktree" { args.operands.get(1) } else { args.operands.first() };
            if let Some(path) = path {
                doing.file(Access::WriteTree, Target { tree: true, ..path.clone().into() });
            }
        }
        "config" => config(doing, rest),
        "clone" | "fetch" | "pull" | "push" | "remote" | "ls-remote" | "submodule" => {
            network(doing, verb, &args);
        }
        _ => {}
    }
}

fn config(doing: &mut Doing<'_>, rest: &[Word]) {
    let args = split(rest, "f", &["--file", "--blob", "--type", "--default"]);
    let reading = args.has(&["--get", "--get-all", "--list", "-l", "--get-regexp"]);
    let operands: Vec<&Word> = args
        .operands
        .iter()
        .filter(|word| !matches!(shown(word), "set" | "get" | "list" | "unset" | "edit"))
        .collect();
    let read_verb = args.operands.first().is_some_and(|word| matches!(shown(word), "get" | "list"));
    if reading || read_verb || (operands.len() < 2 && !args.has(&["--unset", "-e", "--edit"])) {
        return;
    }
    if let [name, value, ..] = operands[..] {
        let name = format!("git:{}", shown(name).to_ascii_lowercase());
        doing.push(EffectKind::Setting { name, value: value.clone() }, true);
    }
    let file = args.value(&["-f", "--file"]).unwrap_or_else(|| {
        Word::literal(if args.has(&["--global"]) {
            "~/.gitconfig"
        } else if args.has(&["--system"]) {
            "/etc/gitconfig"
        } else {
            ".git/config"
        })
    });
    doing.file(Access::Write, file);
}

fn network(doing: &mut Doing<'_>, verb: &str, args: &Args) {
    let adding = matches!(verb, "remote" | "submodule");
    let changes = args
        .operands
        .first()
        .is_some_and(|word| matches!(shown(word), "add" | "set-url" | "update" | "init" | "sync"));
    if adding && !changes {
        return;
    }
    let usage = match verb {
        "push" => NetworkUse::Send,
        _ => NetworkUse::Fetch,
    };
    let place = args.operands.iter().find(|word| address(word).is_some());
    let fallback = if adding { None } else { args.operands.first() };
    let word = place.or(fallback).cloned().unwrap_or_else(|| Word::literal("origin"));
    let host = address(&word);
    doing.network(Endpoint { word, host, usage });
    match verb {
        "clone" => {
            let folder = args.operands.get(1).cloned();
            let named = args.operands.first().and_then(|url| {
                let text = url.text.as_deref()?.trim_end_matches('/');
                let name = text.rsplit(['/', ':']).next()?;
                Some(Word::literal(name.strip_suffix(".git").unwrap_or(name)))
            });
            if let Some(folder) = folder.or(named) {
                doing.file(Access::WriteTree, Target { tree: true, ..folder.into() });
            }
        }
        "pull" | "submodule" => whole_tree(doing),
        _ => {}
    }
}

/// The host of a URL or of `user@host:path`.
fn address(word: &Word) -> Option<String> {
    let text = shown(word);
    match text.split_once("://") {
        Some(("file", _)) => None,
        Some((_, rest)) => Some(host_of(rest)),
        None => remote_host(word),
    }
}
