//! What git executes: where hooks lie, and which settings name a program.

use super::names::same;

/// More than any settings have.
pub(super) const MOST: usize = 1 << 20;

/// What a path is to git, the worse the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Nothing.
    Outside,
    /// Something below `.git` that executes nothing.
    Inside,
    /// `.git` itself.
    Itself,
    /// The folder of hooks.
    Hooks,
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
pub(super) fn part(parts: &[&[u8]], fold: bool) -> (Part, usize) {
    let folders = parts.iter().enumerate().filter(|(_, part)| same(b".git", part, fold));
    let found = folders.map(|(at, _)| (below(&parts[at + 1..], fold), at));
    // Of the same kind the first one counts.
    found.rev().max_by_key(|(part, _)| *part).unwrap_or((Part::Outside, 0))
}

/// What lies below a `.git`.
fn below(mut rest: &[&[u8]], fold: bool) -> Part {
    let is = |part: &[u8], name: &str| same(name.as_bytes(), part, fold);
    if rest.is_empty() {
        return Part::Itself;
    }
    let mut worktree = false;
    while let Some(first) = rest.first() {
        if is(first, "worktrees") {
            rest = rest.get(2..).unwrap_or_default();
            worktree = true;
        } else if is(first, "modules") {
            // A submodule's name may have several parts.
            let next = rest.iter().skip(1).position(|part| KNOWN.iter().any(|name| is(part, name)));
            rest = next.map_or(&[][..], |next| &rest[next + 1..]);
            worktree = false;
        } else {
            break;
        }
    }
    match rest {
        [one] if is(one, "hooks") => Part::Hooks,
        [first, ..] if is(first, "hooks") => Part::Hook,
        [one] if is(one, "config") || is(one, "config.worktree") => Part::Config,
        [one] if is(one, "commondir") && worktree => Part::Worktree,
        [one] if is(one, "commondir") => Part::Elsewhere,
        _ => Part::Inside,
    }
}

/// What lies in a folder of git.
const KNOWN: [&str; 10] = [
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
];

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
                if executes(&section, &key, &value) {
                    found.push(format!("{section}.{key}"));
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Part {
        let parts: Vec<&[u8]> = super::super::names::parts_of(path.as_bytes()).collect();
        part(&parts, false).0
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
        assert_eq!(of(".git/modules/a/refs/heads/hooks/x"), Part::Inside);
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
