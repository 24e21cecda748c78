//! What git executes: where hooks lie, and which settings name a program.

mod executes;
mod settings;

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use self::executes::executes;
use self::settings::{Setting, settings};
use crate::names::same;

/// More than any settings have.
pub(super) const MOST: usize = 1 << 20;

/// Hooks that are listed.
const MOST_HOOKS: usize = 256;

/// What a path is to git, the worse the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Nothing.
    Outside,
    /// Something below `.git` that executes nothing.
    Inside,
    /// `.git` itself.
    Itself,
    /// The folder of hooks.
    Hooks,
    /// What a rebase does next.
    Todo,
    /// Where a worktree finds the repository it is of.
    Worktree,
    /// Settings.
    Config,
    /// Where settings and hooks would be looked for instead. Git makes this for worktrees alone.
    Elsewhere,
    /// Something in the folder of hooks.
    Hook,
}

/// What a path is to git, the worst if it could be several things, and which of its parts is the `.git`
/// that makes it so.
pub(crate) fn part(parts: &[&[u8]]) -> (Part, usize) {
    let folders = parts.iter().enumerate().filter(|(_, part)| same(part, b".git"));
    let found = folders.map(|(at, _)| (below(&parts[at + 1..]), at));
    // Of the same kind the first one counts.
    found.rev().max_by_key(|(part, _)| *part).unwrap_or((Part::Outside, 0))
}

fn is(part: &[u8], name: &str) -> bool {
    same(part, name.as_bytes())
}

/// What lies below a `.git`.
fn below(rest: &[&[u8]]) -> Part {
    let Some(first) = rest.first() else { return Part::Itself };
    if !is(first, "modules") && !is(first, "worktrees") {
        return in_folder(rest, false);
    }
    // A submodule's name may have several parts, and be that of anything in a folder of git. So each part
    // may be where its folder begins.
    let worktree = is(first, "worktrees");
    let each = (2..rest.len()).map(|from| in_folder(&rest[from..], worktree && from == 2));
    each.max().unwrap_or(Part::Inside)
}

/// What lies in a folder of git.
fn in_folder(rest: &[&[u8]], worktree: bool) -> Part {
    match rest {
        [one] if is(one, "hooks") => Part::Hooks,
        [first, ..] if is(first, "hooks") => Part::Hook,
        [one] if is(one, "config") || is(one, "config.worktree") => Part::Config,
        [one] if is(one, "commondir") && worktree => Part::Worktree,
        [one] if is(one, "commondir") => Part::Elsewhere,
        [.., one] if is(one, "git-rebase-todo") => Part::Todo,
        _ => Part::Inside,
    }
}

/// Whether git looks for something of this name in its folder. It makes others for a moment.
pub(super) fn is_known(name: &[u8]) -> bool {
    KNOWN.iter().any(|known| is(name, known))
}

const KNOWN: [&str; 16] = [
    "commondir",
    "hooks",
    "config",
    "config.worktree",
    "refs",
    "logs",
    "objects",
    "info",
    "worktrees",
    "modules",
    "HEAD",
    "packed-refs",
    "index",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// Whether a directory of this name below `.git` steers what git does.
pub(super) fn is_steering(name: &[u8]) -> bool {
    const STEERING: [&str; 7] =
        ["modules", "worktrees", "hooks", "info", "rebase-merge", "rebase-apply", "sequencer"];
    STEERING.iter().any(|known| is(name, known))
}

/// Whether a folder of this name holds what git runs as a strategy of merging. It runs `git-merge-` and whatever a
/// rebase, a row of picks or the settings say: with a slash in that, it is a path from where the owner is.
pub(super) fn is_strategy(name: &[u8]) -> bool {
    crate::names::folded(name).starts_with(b"git-merge-")
}

/// Whether what a rebase does next executes something, or why that cannot be read.
pub(super) fn todo_executes(text: &[u8]) -> Result<bool, &'static str> {
    if text.len() > MOST {
        return Err("too large");
    }
    let mut lines = text.split(|byte| *byte == b'\n');
    Ok(lines.any(|line| {
        let line = line.trim_ascii_start();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        matches!(&line[..end], b"exec" | b"x")
    }))
}

/// Whether git would run a hook of this name.
pub(super) fn is_live_hook(name: &[u8]) -> bool {
    !name.ends_with(b".sample")
}

/// The settings in a file that execute something, or why it cannot be read.
pub(super) fn executing(text: &[u8]) -> Result<Vec<String>, &'static str> {
    if text.len() > MOST {
        return Err("too large");
    }
    let all = settings(text)?.into_iter();
    Ok(all.filter(executes).map(|one| one.name()).collect())
}

/// Where settings have git look for something, as it is written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Hooks, from wherever they run.
    Hooks(Vec<u8>),
    /// More settings, from the folder of these.
    Settings(Vec<u8>),
    /// The working tree, from the folder of the repository.
    Work(Vec<u8>),
}

/// Where settings lead to, or why they cannot be read.
pub(crate) fn leads_to(text: &[u8]) -> Result<Vec<Lead>, &'static str> {
    // An empty one switches it off.
    let all = settings(text)?.into_iter().filter(|one| !one.text().is_empty());
    let lead = |one: Setting| {
        let text = one.text().to_vec();
        match (one.section(), one.key.as_slice()) {
            ((b"core", None), b"hookspath") => Some(Lead::Hooks(text)),
            ((b"core", None), b"worktree") => Some(Lead::Work(text)),
            ((b"include" | b"includeif", _), b"path") => Some(Lead::Settings(text)),
            _ => None,
        }
    };
    Ok(all.filter_map(lead).collect())
}

/// Where the working trees of settings are, as they say.
pub(super) fn work_trees(text: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let work = |lead| match lead {
        Lead::Work(path) => Some(path),
        Lead::Hooks(_) | Lead::Settings(_) => None,
    };
    Ok(leads_to(text)?.into_iter().filter_map(work).collect())
}

/// What a `.git` that is a file says: where its repository is.
pub(crate) fn led_by(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"gitdir: ")?;
    let end =
        rest.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Some(&rest[..end]).filter(|path| !path.is_empty())
}

/// What a `commondir` says in every worktree that git makes.
pub(super) const COMMON: &[u8] = b"../..\n";

/// Whether parts between a `.git` and a name are a folder that may be a repository: what lies in it is known then for
/// what it is.
pub(super) fn is_own_folder(between: &[&[u8]]) -> bool {
    match between {
        [] => true,
        [first, _, ..] => is(first, "modules") || is(first, "worktrees"),
        [_] => false,
    }
}

/// Whether an error says that there is nothing; others only say that it cannot be told.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What git would execute in a repository as it is now. What cannot be read is told as well: its owner could make it
/// readable again.
pub(super) fn executing_in(repository: &Path) -> Vec<String> {
    let mut folder = repository.join(".git");
    if !folder.try_exists().unwrap_or(true) {
        repository.clone_into(&mut folder);
    }
    let read = |path: &Path| -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = std::fs::File::from(openat(CWD, path, flags, Mode::empty())?);
        let mut text = Vec::new();
        file.take(MOST as u64 + 1).read_to_end(&mut text)?;
        Ok(text)
    };
    let mut found = Vec::new();
    let led = folder.is_file();
    if led {
        let text = read(&folder).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let target = text.strip_prefix("gitdir: ").unwrap_or_default().trim();
        folder = repository.join(target);
        let common = read(&folder.join("commondir")).unwrap_or_default();
        folder = folder.join(String::from_utf8_lossy(&common).trim());
        found.push(format!("its settings lie in {}", folder.display()));
    }
    for name in ["config", "config.worktree"] {
        let text = match read(&folder.join(name)) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => continue,
            Err(error) => {
                found.push(format!("{name} cannot be read ({error})"));
                continue;
            }
        };
        match executing(&text) {
            Ok(keys) => found.extend(keys),
            Err(why) => found.push(format!("{name}: {why}")),
        }
        // Whoever works here would change files there.
        let works = if led { work_trees(&text).unwrap_or_default() } else { Vec::new() };
        for work in works.iter().map(|work| folder.join(OsStr::from_bytes(work))) {
            if work.canonicalize().ok() != repository.canonicalize().ok() {
                found.push(format!("git would write to {}", work.display()));
            }
        }
    }
    let hooks = std::fs::read_dir(folder.join("hooks"));
    if let Err(error) = &hooks
        && !is_gone(error)
    {
        found.push(format!("hooks cannot be read ({error})"));
    }
    let hooks = hooks.into_iter().flatten().flatten();
    let live =
        hooks.take(MOST_HOOKS).filter(|hook| is_live_hook(hook.file_name().as_encoded_bytes()));
    found.extend(live.map(|hook| format!("hooks/{}", hook.file_name().to_string_lossy())));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Part {
        let parts: Vec<&[u8]> = super::super::names::parts_of(path.as_bytes()).collect();
        part(&parts).0
    }

    #[test]
    fn paths_of_git_are_told_apart() {
        assert_eq!(of("a/.git"), Part::Itself);
        assert_eq!(of(".git/hooks"), Part::Hooks);
        assert_eq!(of(".git/hooks/pre-commit"), Part::Hook);
        assert_eq!(of(".git/hooks/a/b"), Part::Hook);
        assert_eq!(of(".git/config"), Part::Config);
        assert_eq!(of(".git/modules/a/b/config"), Part::Config);
        assert_eq!(of(".git/modules/a/hooks/x"), Part::Hook);
        assert_eq!(of(".git/worktrees/w/config.worktree"), Part::Config);
        assert_eq!(of(".git/refs/heads/hooks/x"), Part::Inside);
        assert_eq!(of(".git/commondir"), Part::Elsewhere);
        assert_eq!(of(".git/modules/a/commondir"), Part::Elsewhere);
        assert_eq!(of(".git/worktrees/w/commondir"), Part::Worktree);
        assert_eq!(of(".git/modules/a/refs/heads/x"), Part::Inside);
        // It could be a submodule `a/refs/heads` as well.
        assert_eq!(of(".git/modules/a/refs/heads/hooks/x"), Part::Hook);
        assert_eq!(of(".git/modules/refs/config"), Part::Config);
        assert_eq!(of(".git/modules/refs/hooks/x"), Part::Hook);
        assert_eq!(of(".git/modules/a/modules/objects/config"), Part::Config);
        assert_eq!(of(".git/worktrees/w/modules/refs/hooks"), Part::Hooks);
        assert_eq!(of(".git/worktrees/hooks/HEAD"), Part::Inside);
        assert_eq!(of(".git/modules/config"), Part::Inside);
        assert_eq!(of(".GIT/Hooks/x"), Part::Hook);
        assert_eq!(of(".git/rebase-merge/git-rebase-todo"), Part::Todo);
        assert_eq!(of(".git/worktrees/w/rebase-merge/git-rebase-todo"), Part::Todo);
        assert_eq!(of(".git/config.lock"), Part::Inside);
        assert_eq!(of("src/config"), Part::Outside);
        assert_eq!(of("a/.git/x/.git/hooks/y"), Part::Hook);
    }

    #[test]
    fn settings_of_a_fresh_repository_execute_nothing() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            [remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n[core]\n fsmonitor = true\n[alias]\n st = status\n\
            [filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n";
        assert_eq!(executing(text.as_bytes()), Ok(vec![]));
        assert_eq!(executing(b""), Ok(vec![]));
    }

    #[test]
    fn settings_that_execute_are_found_however_they_are_written() {
        for (text, key) in [
            ("[core]\nfsmonitor = touch x", "core.fsmonitor"),
            ("[CORE]FSMonitor=/x", "core.fsmonitor"),
            ("[core] pager = \"a\\\nb\"", "core.pager"),
            ("[core]\n\thooksPath = .x", "core.hookspath"),
            ("[filter \"x\"]\nclean=sh", "filter.x.clean"),
            ("[filter.x]\nsmudge=sh", "filter.x.smudge"),
            ("[alias]\na = !sh", "alias.a"),
            ("[alias]\na = \"!sh\"", "alias.a"),
            ("[include]\npath = x", "include.path"),
            ("[includeIf \"gitdir:x\"]\npath = x", "includeif.gitdir:x.path"),
            ("[remote \"o\"]\nurl = ext::sh -c x", "remote.o.url"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[a]\n b = c ; \\\n d\n[core]\nsshCommand=x", "core.sshcommand"),
            ("[hook \"x\"]\ncommand=y", "hook.x.command"),
        ] {
            let found = executing(text.as_bytes());
            assert!(
                found.as_ref().is_ok_and(|keys| keys.iter().any(|one| one == key)),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn where_hooks_and_more_settings_are_is_known() {
        let text =
            b"[core]\n hooksPath = tools/hooks\n[include]\n path = ../more\n[user]\n name = path\n";
        let found = leads_to(text).unwrap();
        assert_eq!(
            found,
            [Lead::Hooks(b"tools/hooks".to_vec()), Lead::Settings(b"../more".to_vec())]
        );
        assert!(leads_to(b"[core").is_err());
        // Old letters are no reason to see nothing.
        let found =
            leads_to(b"[user]\nname = J\xF6rg\n[core]\nhooksPath = \xF6\nworktree = x").unwrap();
        assert_eq!(found, [Lead::Hooks(b"\xF6".to_vec()), Lead::Work(b"x".to_vec())]);
        assert_eq!(led_by(b"gitdir: ../a b\r\n"), Some(b"../a b".as_slice()));
        assert_eq!((led_by(b"gitdir: \n"), led_by(b"x")), (None, None));
    }

    #[test]
    fn a_rebase_that_executes_is_known() {
        for text in ["exec a", "pick 1\n\t x a", "x\ta", "exec"] {
            assert_eq!(todo_executes(text.as_bytes()), Ok(true), "{text:?}");
        }
        for text in ["", "pick 1 exec a", "# exec a", "executive", "label x"] {
            assert_eq!(todo_executes(text.as_bytes()), Ok(false), "{text:?}");
        }
    }

    #[test]
    fn where_a_repository_may_be_is_known() {
        let own = |path: &str| {
            let parts: Vec<&[u8]> = super::super::names::parts_of(path.as_bytes()).collect();
            is_own_folder(&parts)
        };
        assert!(own("") && own("modules/x") && own("modules/x/y") && own("worktrees/x"));
        assert!(!own("x") && !own("modules") && !own("worktrees") && !own("refs/heads"));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in
            ["[core", "[core]\nx = \"a", "x y", "[a \"b]", "\u{1}", "[core]\na = \\x", "[a]\nb ; c"]
        {
            assert!(executing(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(executing(b"[a]\nb = \0").is_err() && executing(&[0xFF]).is_err());
    }

    proptest::proptest! {
        /// Whatever is written around it, a key that executes is found or the text is refused.
        #[test]
        fn a_key_cannot_be_hidden(before in "([a-z\\[\\]\"#;= \\\\\n]{0,40}\n)?", after in "[a-z\\[\\]\"#;= \\\\\n]{0,40}") {
            let text = format!("{before}[core]\nsshCommand = x\n{after}");
            let hidden = executing(text.as_bytes()).is_ok_and(|keys| keys.is_empty());
            // Only a value that goes on over the line's end takes the key into itself, as git does.
            proptest::prop_assert!(!hidden || before.trim_end_matches('\n').ends_with('\\'), "{text:?}");
        }
    }
}
