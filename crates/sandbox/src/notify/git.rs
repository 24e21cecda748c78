//! What git executes: where hooks lie, and which settings name a program.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

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

/// Settings that execute something, by section and key; `*` is any subsection.
const EXECUTES: &[(&str, &str)] = &[
    ("core", "hookspath"),
    ("core", "fsmonitor"),
    ("core", "sshcommand"),
    ("core", "pager"),
    ("core", "editor"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("diff", "external"),
    ("diff.*", "command"),
    ("diff.*", "textconv"),
    ("merge.*", "driver"),
    ("filter.*", "clean"),
    ("filter.*", "smudge"),
    ("filter.*", "process"),
    ("credential", "helper"),
    ("credential.*", "helper"),
    ("gpg", "program"),
    ("gpg.*", "program"),
    ("gpg.*", "defaultkeycommand"),
    ("uploadpack", "packobjectshook"),
    ("pager", ""),
    ("interactive", "difffilter"),
    ("difftool.*", "cmd"),
    ("difftool.*", "path"),
    ("mergetool.*", "cmd"),
    ("mergetool.*", "path"),
    ("browser.*", "cmd"),
    ("browser.*", "path"),
    ("web", "browser"),
    ("man.*", "cmd"),
    ("man.*", "path"),
    ("trailer.*", "command"),
    ("trailer.*", "cmd"),
    ("sendemail", ""),
    ("sendemail.*", ""),
    ("remote.*", "uploadpack"),
    ("remote.*", "receivepack"),
    ("remote.*", "vcs"),
    ("protocol", ""),
    ("protocol.*", ""),
    ("init", "templatedir"),
    ("gc", "recentobjectshook"),
    ("tar.*", "command"),
    ("guitool.*", "cmd"),
    ("instaweb", ""),
    ("hook.*", ""),
    ("include", ""),
    ("includeif.*", ""),
    ("imap", ""),
    ("lfs", "customtransfer"),
    ("lfs.*", ""),
    ("ssh", "variant"),
    ("http", "sslcert"),
    ("core", "attributesfile"),
];
/// What `git lfs install` sets.
const HARMLESS: &[&str] =
    &["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"];

/// The settings in a file that execute something, or why it cannot be read.
pub(super) fn executing(text: &[u8]) -> Result<Vec<String>, &'static str> {
    let all = settings(text)?.into_iter();
    let found = all.filter(|one| executes(&one.section, &one.key, &one.value));
    Ok(found.map(|one| format!("{}.{}", one.section, one.key)).collect())
}

/// Where the settings of the repository in `folder` have git look for hooks, and for more settings; paths as
/// they are written there, from `work` and from the folder.
pub(crate) fn leads_to(text: &[u8], folder: &Path, work: &Path) -> Vec<PathBuf> {
    let all = settings(text).unwrap_or_default().into_iter();
    // An empty one switches it off.
    let all = all.filter(|one| !one.value.is_empty());
    let path = |one: Setting| {
        let name = one.section.split('.').next().unwrap_or_default();
        match (name, one.key.as_str()) {
            ("core", "hookspath") => Some(work.join(one.value)),
            ("include" | "includeif", "path") => Some(folder.join(one.value)),
            _ => None,
        }
    };
    all.filter_map(path).collect()
}

/// One setting: its section in lower case, with its subsection behind a dot; its key in lower case.
struct Setting {
    section: String,
    key: String,
    value: String,
}

fn settings(text: &[u8]) -> Result<Vec<Setting>, &'static str> {
    if text.len() > MOST {
        return Err("too large");
    }
    let text = std::str::from_utf8(text).map_err(|_| "not text")?;
    if text.contains('\0') {
        return Err("not text");
    }
    let mut found = Vec::new();
    let mut section = String::new();
    let mut signs = text.strip_prefix('\u{FEFF}').unwrap_or(text).chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            _ if sign.is_ascii_whitespace() => {}
            '#' | ';' => while signs.next_if(|sign| *sign != '\n').is_some() {},
            '[' => section = header(&mut signs)?,
            _ if sign.is_ascii_alphabetic() => {
                let mut key = String::from(sign.to_ascii_lowercase());
                while let Some(sign) =
                    signs.next_if(|sign| sign.is_ascii_alphanumeric() || *sign == '-')
                {
                    key.push(sign.to_ascii_lowercase());
                }
                while signs.next_if(|sign| matches!(sign, ' ' | '\t' | '\r')).is_some() {}
                let value = match signs.next() {
                    None | Some('\n') => String::new(),
                    Some('=') => value(&mut signs)?,
                    // A comment after a key without a value.
                    Some(_) => return Err("not in the form of git's settings"),
                };
                found.push(Setting { section: section.clone(), key, value });
            }
            _ => return Err("not in the form of git's settings"),
        }
    }
    Ok(found)
}

type Signs<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// `[section "subsection"]`, after its first sign: the section in lower case, a dot, the subsection.
fn header(signs: &mut Signs<'_>) -> Result<String, &'static str> {
    const WRONG: &str = "not in the form of git's settings";
    let mut name = String::new();
    loop {
        match signs.next().ok_or(WRONG)? {
            ']' => return Ok(name),
            ' ' | '\t' => break,
            sign if sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.') => {
                name.push(sign.to_ascii_lowercase());
            }
            _ => return Err(WRONG),
        }
    }
    while signs.next_if(|sign| matches!(sign, ' ' | '\t')).is_some() {}
    if signs.next() != Some('"') {
        return Err(WRONG);
    }
    name.push('.');
    loop {
        match signs.next().ok_or(WRONG)? {
            '"' => break,
            '\n' => return Err(WRONG),
            '\\' => name.push(signs.next().filter(|sign| *sign != '\n').ok_or(WRONG)?),
            sign => name.push(sign),
        }
    }
    if signs.next() == Some(']') { Ok(name) } else { Err(WRONG) }
}

/// A value, up to the end of its line.
fn value(signs: &mut Signs<'_>) -> Result<String, &'static str> {
    let (mut text, mut quoted, mut comment) = (String::new(), false, false);
    loop {
        match signs.next() {
            None | Some('\n') if quoted => return Err("a quote that does not end"),
            None | Some('\n') => break,
            Some(_) if comment => {}
            Some('"') => quoted = !quoted,
            Some('#' | ';') if !quoted => comment = true,
            Some('\\') => match signs.next() {
                Some('\n') => {}
                Some('\r') if signs.next_if_eq(&'\n').is_some() => {}
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('b') => {
                    text.pop();
                }
                Some(sign @ ('"' | '\\')) => text.push(sign),
                _ => return Err("an escape that git does not know"),
            },
            Some(sign) => text.push(sign),
        }
    }
    Ok(text.trim().to_owned())
}

fn executes(section: &str, key: &str, value: &str) -> bool {
    let (name, below) = section.split_once('.').map_or((section, false), |(name, _)| (name, true));
    let listed = EXECUTES.iter().any(|(known, wanted)| {
        let fits = match known.strip_suffix(".*") {
            Some(known) => below && known == name,
            None => !below && *known == name,
        };
        fits && (wanted.is_empty() || *wanted == key)
    });
    let is_switch = matches!(
        value.to_ascii_lowercase().as_str(),
        "" | "true" | "false" | "0" | "1" | "yes" | "no"
    );
    match (name, key) {
        // Switched on it is git's own; else it is a program.
        ("core", "fsmonitor") | ("pager", _) => !is_switch,
        ("filter", _) if HARMLESS.contains(&value) => false,
        ("alias", _) => value.trim_start_matches('"').starts_with('!'),
        ("submodule", "update") => value.starts_with('!'),
        ("remote", "url" | "pushurl") => is_command(value),
        ("url", "insteadof" | "pushinsteadof") => is_command(section) || is_command(value),
        ("submodule", "url") => is_command(value),
        _ => listed,
    }
}

/// Whether an address has a program run: `ext::sh -c …`, `-oProxyCommand=…`.
fn is_command(address: &str) -> bool {
    address.contains("::") && !address.contains("://[")
        || address.starts_with('-')
        || address.contains("--")
}

/// What git would execute in a repository as it is now.
pub(super) fn executing_in(repository: &Path) -> Vec<String> {
    let mut folder = repository.join(".git");
    if !folder.exists() {
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
    if folder.is_file() {
        let text = read(&folder).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let target = text.strip_prefix("gitdir: ").unwrap_or_default().trim();
        folder = repository.join(target);
        let common = read(&folder.join("commondir")).unwrap_or_default();
        folder = folder.join(String::from_utf8_lossy(&common).trim());
        found.push(format!("its settings lie in {}", folder.display()));
    }
    for name in ["config", "config.worktree"] {
        match read(&folder.join(name)).map(|text| executing(&text)) {
            Ok(Ok(keys)) => found.extend(keys),
            Ok(Err(why)) => found.push(format!("{name}: {why}")),
            Err(_) => {}
        }
    }
    let hooks = std::fs::read_dir(folder.join("hooks")).into_iter().flatten().flatten();
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
        let found = leads_to(text, Path::new("/w/.git"), Path::new("/w"));
        assert_eq!(found, [Path::new("/w/tools/hooks"), Path::new("/w/.git/../more")]);
        assert!(leads_to(b"[core", Path::new("/"), Path::new("/")).is_empty());
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
