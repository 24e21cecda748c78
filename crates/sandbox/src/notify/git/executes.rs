//! Which settings of git execute something, or have it write where the owner did not say.

use super::settings::Setting;

/// Settings that execute something, by section and key; `.*` is any subsection, no key is every one.
const EXECUTES: &[(&str, &str)] = &[
    ("diff", "external"),
    ("diff", "tool"),
    ("diff", "guitool"),
    ("diff.*", "command"),
    ("diff.*", "textconv"),
    // Tools are looked for by their names, which may be paths.
    ("merge", "tool"),
    ("merge", "guitool"),
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
    ("interactive", "difffilter"),
    ("sequence", ""),
    ("difftool.*", ""),
    ("mergetool.*", ""),
    ("browser", ""),
    ("browser.*", ""),
    ("web", ""),
    ("help", "browser"),
    ("help", "htmlpath"),
    ("man", "viewer"),
    ("man.*", ""),
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
    ("guitool", ""),
    ("guitool.*", ""),
    ("instaweb", ""),
    ("hook", ""),
    ("hook.*", ""),
    ("include", ""),
    ("includeif", ""),
    ("includeif.*", ""),
    ("imap", ""),
    ("imap.*", ""),
    ("lfs", "customtransfer"),
    ("lfs", "standalonetransferagent"),
    ("lfs.*", ""),
    ("ssh", ""),
    ("http", "sslcert"),
    ("http.*", "sslcert"),
    ("http", "sslkey"),
    ("http.*", "sslkey"),
    // Written by git, to wherever it says.
    ("http", "cookiefile"),
    ("http.*", "cookiefile"),
    ("http", "savecookies"),
    ("http.*", "savecookies"),
    ("gc", "repackfilterto"),
    // It may have several lines, and what a rebase does next is written so.
    ("rebase", "instructionformat"),
    // Options and strategies of `git merge`, whatever they are.
    ("branch.*", "mergeoptions"),
    ("pull", "twohead"),
    ("pull", "octopus"),
    ("gitflow.*", "hooks"),
];

/// Settings of `core` that execute nothing. Its others do, or may do so in a version of git to come. Whether
/// `core.worktree` leads back is looked at by whoever puts it in place.
const CORE: &[&str] = &[
    "abbrev",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkroundtripencoding",
    "checkstat",
    "commentchar",
    "commentstring",
    "commitgraph",
    "compression",
    "createobject",
    "deltabasecachelimit",
    "eol",
    "excludesfile",
    "filemode",
    "filesreflocktimeout",
    "fsmonitorhookversion",
    "fsync",
    "fsyncmethod",
    "fsyncobjectfiles",
    "hidedotfiles",
    "ignorecase",
    "ignorestat",
    "logallrefupdates",
    "longpaths",
    "loosecompression",
    "maxtreedepth",
    "multipackindex",
    "notesref",
    "packedgitlimit",
    "packedgitwindowsize",
    "packedrefstimeout",
    "precomposeunicode",
    "prefersymlinkrefs",
    "preloadindex",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "repositoryformatversion",
    "restrictinheritedhandles",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "splitindex",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "usereplacerefs",
    "warnambiguousrefs",
    "whitespace",
    "worktree",
];

/// Sections that git, git-lfs and git-flow know, and that are judged here. Those of other programs are not known:
/// their settings may be commands.
const SECTIONS: &[&str] = &[
    "add",
    "advice",
    "am",
    "apply",
    "attr",
    "author",
    "bitmappseudomerge",
    "blame",
    "branch",
    "bundle",
    "checkout",
    "clean",
    "clone",
    "color",
    "column",
    "commit",
    "commitgraph",
    "committer",
    "completion",
    "credential",
    "credentialcache",
    "credentialstore",
    "diff",
    "difftool",
    "extensions",
    "fastimport",
    "feature",
    "fetch",
    "filter",
    "format",
    "fsck",
    "fsmonitor",
    "gc",
    "gitflow",
    "gitweb",
    "gpg",
    "grep",
    "gui",
    "help",
    "http",
    "i18n",
    "index",
    "init",
    "interactive",
    "lfs",
    "log",
    "lsrefs",
    "mailinfo",
    "mailmap",
    "maintenance",
    "man",
    "merge",
    "mergetool",
    "notes",
    "pack",
    "pretty",
    "promisor",
    "pull",
    "push",
    "rebase",
    "receive",
    "reftable",
    "remote",
    "remotes",
    "repack",
    "replay",
    "rerere",
    "revert",
    "safe",
    "showbranch",
    "sparse",
    "splitindex",
    "stash",
    "status",
    "submodule",
    "tag",
    "tar",
    "trailer",
    "transfer",
    "uploadarchive",
    "uploadpack",
    "url",
    "user",
    "versionsort",
    "worktree",
];

/// What a value must be, so that a setting of another program executes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    /// Yes or no.
    Switch,
    /// Letters, digits and `-_.` and spaces between, with a letter or digit first: a name, a version.
    Word,
    /// One of a few.
    One(&'static [&'static str]),
    /// An address of a host that no program is run for.
    Address,
    /// What is fetched, and to which names: both are parts of a repository.
    Names,
}

/// Settings of other programs that these write themselves, or that people share, and that execute nothing. `.*` is any
/// subsection. What is not here is refused: `delta.pager`, `annex.…-command`, `lfs.customtransfer.…`, `svn.authorsprog`,
/// `tig.…`, `credential.…`.
const OTHERS: &[(&str, &str, Plain)] = &[
    // git-lfs notes how a server wants to be asked, and whether it knows of locks.
    ("lfs.*", "access", Plain::One(&["none", "basic", "private", "negotiate", "ntlm"])),
    ("lfs.*", "locksverify", Plain::Switch),
    // git-annex: which repository it is, and in which form. Its filters and hooks are refused as all are.
    ("annex", "uuid", Plain::Word),
    ("annex", "version", Plain::Word),
    ("remote.*", "annex-uuid", Plain::Word),
    ("remote.*", "annex-ignore", Plain::Switch),
    // git-svn: where the other repository is, and which of its folders are branches. Its patterns and programs are not here.
    ("svn-remote.*", "url", Plain::Address),
    ("svn-remote.*", "fetch", Plain::Names),
    ("svn-remote.*", "branches", Plain::Names),
    ("svn-remote.*", "tags", Plain::Names),
    // delta: how a difference looks. What it shows it through, and what it has git do, are not here.
    ("delta", "navigate", Plain::Switch),
    ("delta", "light", Plain::Switch),
    ("delta", "dark", Plain::Switch),
    ("delta", "side-by-side", Plain::Switch),
    ("delta", "line-numbers", Plain::Switch),
    ("delta", "hyperlinks", Plain::Switch),
    ("delta", "keep-plus-minus-markers", Plain::Switch),
    ("delta", "syntax-theme", Plain::Word),
    // Who one is there, for several tools.
    ("github", "user", Plain::Word),
    ("gitlab", "user", Plain::Word),
];

impl Plain {
    fn fits(self, value: &[u8]) -> bool {
        let text = std::str::from_utf8(value).unwrap_or("\0");
        let begins = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let all = |more: &str| {
            begins
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
        };
        match self {
            Self::Switch => is_switch(value),
            Self::Word => all("-_. "),
            Self::One(known) => known.contains(&text),
            Self::Address => {
                let rest =
                    ["https://", "http://", "svn://"].iter().find_map(|one| text.strip_prefix(one));
                let host = rest.is_some_and(|rest| {
                    rest.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                });
                host && all("-_.:/@~%+") && !is_command(value)
            }
            Self::Names => all("-_./:*{},@+") && !text.contains("::"),
        }
    }
}

/// What `git lfs install` sets.
const LFS: &[&str] = &["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"];

/// Whether a setting executes something, or may do so.
pub(super) fn executes(one: &Setting) -> bool {
    let (name, below) = one.section();
    let (Ok(name), Ok(key)) = (std::str::from_utf8(name), std::str::from_utf8(&one.key)) else {
        return true;
    };
    let value = one.text();
    let listed = EXECUTES.iter().any(|(known, wanted)| {
        let fits = match known.strip_suffix(".*") {
            Some(known) => below.is_some() && known == name,
            None => below.is_none() && *known == name,
        };
        fits && (wanted.is_empty() || *wanted == key)
    });
    match (name, key) {
        // Switched on it is git's own; else it is a program.
        ("core", "fsmonitor") | ("pager", _) => !is_switch(value),
        ("core", _) => !CORE.contains(&key),
        ("filter", "required") => false,
        ("filter", _) => !LFS.iter().any(|known| known.as_bytes() == value),
        ("alias", _) => !is_plain_command(value),
        ("submodule", "update") => {
            ![b"".as_slice(), b"checkout", b"rebase", b"merge", b"none"].contains(&value)
        }
        ("submodule" | "remote", "url" | "pushurl")
        | ("branch", "remote" | "pushremote")
        | ("remote", "pushdefault")
        | ("checkout" | "clone", _)
        | ("bundle", "uri") => is_command(value),
        ("remote", _) if key.starts_with("annex") => !is_plain(name, below, key, value),
        ("lfs", "url" | "pushurl") if below.is_none() => is_command(value),
        ("url", _) => !is_plain_address(below.unwrap_or_default()) || is_command(value),
        _ => (listed || !SECTIONS.contains(&name)) && !is_plain(name, below, key, value),
    }
}

/// Whether it is one of another program's that executes nothing.
fn is_plain(name: &str, below: Option<&[u8]>, key: &str, value: &[u8]) -> bool {
    let known = OTHERS.iter().find(|(section, wanted, _)| {
        let section = match section.strip_suffix(".*") {
            Some(section) => below.is_some() && section == name,
            None => below.is_none() && *section == name,
        };
        section && *wanted == key
    });
    known.is_some_and(|(_, _, plain)| plain.fits(value))
}

/// Whether a value says yes or no.
fn is_switch(value: &[u8]) -> bool {
    let known = ["", "true", "false", "0", "1", "yes", "no", "on", "off"];
    known.iter().any(|known| value.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether an alias is one of git's own commands with options that are known to be plain. Many others name programs:
/// `grep -O…`, `diff --ext-diff`, `fetch --upload-pack=…`, `-c core.pager=…`.
fn is_plain_command(value: &[u8]) -> bool {
    const COMMANDS: &[&str] = &[
        "add",
        "blame",
        "branch",
        "checkout",
        "cherry-pick",
        "commit",
        "diff",
        "fetch",
        "log",
        "merge",
        "pull",
        "push",
        "rebase",
        "remote",
        "reset",
        "restore",
        "revert",
        "show",
        "stash",
        "status",
        "switch",
        "tag",
    ];
    const OPTIONS: &[&str] = &[
        "--abbrev-commit",
        "--all",
        "--amend",
        "--branch",
        "--cached",
        "--continue",
        "--abort",
        "--decorate",
        "--ff-only",
        "--graph",
        "--hard",
        "--list",
        "--name-only",
        "--name-status",
        "--no-edit",
        "--no-ff",
        "--oneline",
        "--prune",
        "--rebase",
        "--short",
        "--soft",
        "--staged",
        "--stat",
        "--tags",
        "--verbose",
        "-1",
        "-10",
        "-A",
        "-a",
        "-am",
        "-b",
        "-d",
        "-m",
        "-s",
        "-sb",
        "-u",
        "-v",
        "-vv",
        "HEAD",
        "last",
        "list",
        "pop",
        "show",
    ];
    let mut words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is = |word: &[u8], known: &[&str]| known.iter().any(|one| one.as_bytes() == word);
    words.next().is_some_and(|word| is(word, COMMANDS)) && words.all(|word| is(word, OPTIONS))
}

/// Whether an address has a program run: `ext::sh -c …`, `-oProxyCommand=…`.
fn is_command(address: &[u8]) -> bool {
    let of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = address.iter().position(|byte| !of_scheme(byte)).unwrap_or(address.len());
    let has = |text: &[u8]| address.windows(text.len()).any(|part| part == text);
    address[end..].starts_with(b"::") || address.starts_with(b"-") || has(b"--") || has(b"://-")
}

/// Whether what other addresses begin with is one of a host: it may not come to be a command with what follows.
fn is_plain_address(start: &[u8]) -> bool {
    let schemes = ["https://", "http://", "ssh://", "git://", "git@"];
    let rest = schemes.iter().find_map(|scheme| start.strip_prefix(scheme.as_bytes()));
    rest.is_some_and(|rest| {
        rest.first().is_some_and(u8::is_ascii_alphanumeric) && !is_command(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::super::executing;

    #[track_caller]
    fn found(text: &str, executes: bool) {
        let keys = executing(text.as_bytes());
        assert_eq!(keys.as_ref().map(|keys| !keys.is_empty()), Ok(executes), "{text}: {keys:?}");
    }

    /// All that is known to execute, or to write elsewhere.
    #[test]
    fn every_key_that_executes_is_known() {
        for key in [
            "core.pager",
            "core.editor",
            "core.sshCommand",
            "core.gitProxy",
            "core.askPass",
            "core.hooksPath",
            "core.fsmonitor",
            "core.attributesFile",
            "core.alternateRefsCommand",
            "core.alternateRefsPrefixes",
            "core.virtualFilesystem",
            "core.unsetenvvars",
            "sequence.editor",
            "credential.helper",
            "credential.https://x.helper",
            "diff.external",
            "diff.tool",
            "diff.guitool",
            "diff.x.command",
            "diff.x.textconv",
            "merge.tool",
            "merge.guitool",
            "merge.x.driver",
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
            "gpg.program",
            "gpg.x509.program",
            "gpg.ssh.program",
            "gpg.openpgp.program",
            "gpg.ssh.defaultKeyCommand",
            "uploadpack.packObjectsHook",
            "remote.o.uploadpack",
            "remote.o.receivepack",
            "remote.o.vcs",
            "remote.o.annex-shell",
            "protocol.allow",
            "protocol.ext.allow",
            "browser.x.cmd",
            "browser.x.path",
            "web.browser",
            "help.browser",
            "help.htmlPath",
            "man.x.cmd",
            "man.x.path",
            "man.viewer",
            "difftool.x.cmd",
            "difftool.x.path",
            "mergetool.x.cmd",
            "mergetool.x.path",
            "mergetool.vimdiff.layout",
            "interactive.diffFilter",
            "pager.log",
            "trailer.x.command",
            "trailer.x.cmd",
            "sendemail.smtpServer",
            "sendemail.x.tocmd",
            "imap.tunnel",
            "include.path",
            "includeIf.gitdir:x.path",
            "init.templateDir",
            "gc.recentObjectsHook",
            "gc.repackFilterTo",
            "tar.x.command",
            "guitool.x.cmd",
            "instaweb.httpd",
            "hook.x.command",
            "alias.x",
            "alias.x.command",
            "rebase.instructionFormat",
            "branch.x.mergeOptions",
            "pull.twohead",
            "pull.octopus",
            "http.cookieFile",
            "http.https://x.saveCookies",
            "http.sslCert",
            "http.https://x.sslKey",
            "lfs.customtransfer.x.path",
            "lfs.extension.x.clean",
            "lfs.standalonetransferagent",
            "ssh.variant",
            "svn.authorsProg",
            "svn-remote.x.url",
            "git-p4.client",
            "gitcvs.dbDriver",
            "annex.secure-erase-command",
            "delta.pager",
            "tig.bind",
            "stgit.editor",
            "gitflow.path.hooks",
            "something.else",
        ] {
            let (section, name) = key.rsplit_once('.').unwrap();
            let section = match section.split_once('.') {
                Some((section, below)) => format!("{section} \"{below}\""),
                None => section.to_owned(),
            };
            found(&format!("[{section}]\n\t{name} = sh -c x\n"), true);
            found(
                &format!(
                    "[{}]\n\t{} = \"sh -c x\"\n",
                    section.to_ascii_uppercase(),
                    name.to_ascii_uppercase()
                ),
                true,
            );
        }
    }

    #[test]
    fn what_git_and_people_set_executes_nothing() {
        for (section, line) in [
            ("core", "repositoryformatversion = 1"),
            ("core", "worktree = ../../../sub"),
            ("core", "fsmonitor"),
            ("core", "fsmonitor = On"),
            ("core", "autocrlf = input"),
            ("core", "commentChar = ;"),
            ("extensions", "worktreeConfig = true"),
            ("extensions", "objectFormat = sha256"),
            ("user", "name = J\u{f6}rg"),
            ("user", "signingKey = ~/.ssh/id.pub"),
            ("commit", "gpgSign"),
            ("gpg", "format = ssh"),
            ("branch \"main\"", "remote = origin"),
            ("branch \"main\"", "merge = refs/heads/main"),
            ("branch \"main\"", "vscode-merge-base = origin/main"),
            ("remote \"origin\"", "url = git@github.com:a/b.git"),
            ("remote \"origin\"", "url = ssh://[::1]:22/x"),
            ("remote \"origin\"", "url = [::1]:x"),
            ("remote \"origin\"", "gh-resolved = base"),
            ("remote \"origin\"", "partialclonefilter = blob:none"),
            ("remote", "pushDefault = origin"),
            ("submodule \"x\"", "url = https://example.com/x"),
            ("submodule \"x\"", "active = true"),
            ("submodule \"x\"", "update = none"),
            ("url \"https://github.com/\"", "insteadOf = git@github.com:"),
            ("url \"git@github.com:\"", "insteadOf = gh:"),
            ("filter \"lfs\"", "required = true"),
            ("filter \"lfs\"", "process = git-lfs filter-process"),
            ("lfs", "repositoryformatversion = 0"),
            ("alias", "st = status -sb"),
            ("alias", "lg = log --oneline --graph --all"),
            ("pager", "log = false"),
            ("gitflow \"prefix\"", "feature = feature/"),
            ("pull", "rebase = true"),
            ("maintenance", "auto = false"),
            ("diff \"x\"", "xfuncname = ^x"),
            ("merge", "conflictStyle = zdiff3"),
            ("lfs \"https://example.com/a/b.git/info/lfs\"", "access = basic"),
            ("lfs \"https://example.com/a/b.git/info/lfs\"", "locksverify = false"),
            ("lfs", "url = https://example.com/a/b.git/info/lfs"),
            ("annex", "uuid = 4e6c3a3e-8f5e-4f0f-9a43-3d8c1f1a2b3c"),
            ("annex", "version = 10"),
            ("remote \"origin\"", "annex-uuid = 4e6c3a3e-8f5e-4f0f-9a43-3d8c1f1a2b3c"),
            ("remote \"origin\"", "annex-ignore = true"),
            ("svn-remote \"svn\"", "url = https://svn.example.com/repos/x"),
            ("svn-remote \"svn\"", "fetch = trunk:refs/remotes/origin/trunk"),
            ("svn-remote \"svn\"", "branches = branches/*:refs/remotes/origin/*"),
            ("svn-remote \"svn\"", "tags = tags/*:refs/remotes/origin/tags/*"),
            ("delta", "navigate = true"),
            ("delta", "side-by-side = true"),
            ("delta", "syntax-theme = Monokai Extended"),
            ("github", "user = octo-cat"),
        ] {
            found(&format!("[{section}]\n\t{line}\n"), false);
        }
    }

    #[test]
    fn a_value_decides_where_a_key_does_not() {
        for (section, line) in [
            ("alias", "st = !sh"),
            ("alias", "st = \" !sh\""),
            ("alias", "st = grep --no-index -O./evil x"),
            ("alias", "st = -c core.pager=x log"),
            ("alias", "st = diff --ext-diff"),
            ("alias", "st = fetch --upload-pack=x"),
            ("alias", "st = rebase -x sh"),
            ("alias", "st = status\\n-x"),
            ("alias", "st"),
            ("submodule \"x\"", "update = !sh"),
            ("submodule \"x\"", "url = ext::sh -c x"),
            ("remote \"x\"", "url = ext::sh -c 'x ://['"),
            ("remote \"x\"", "pushurl = -oProxyCommand=x"),
            ("remote \"x\"", "url = ssh://-oProxyCommand=x/y"),
            ("branch \"x\"", "remote = ext::sh -c x"),
            ("branch \"x\"", "pushRemote = ext::sh -c x"),
            ("remote", "pushDefault = ext::sh -c x"),
            ("url \"ext::sh -c \"", "insteadOf = x"),
            ("url \"ext:\"", "insteadOf = x"),
            ("url \"ext\"", "pushInsteadOf = x"),
            ("url \"https://x\"", "insteadOf = ext::"),
            ("core", "fsmonitor = true x"),
            ("core", "fsmonitor = \"x\\b\""),
            ("pager", "log = \"x\\b\""),
            ("filter \"x\"", "clean = \"x\\bgit-lfs clean -- %f\""),
            ("lfs \"https://x\"", "access = sh"),
            ("lfs \"https://x\"", "locksverify = sh"),
            ("lfs \"customtransfer.x\"", "path = sh"),
            ("lfs \"customtransfer.x\"", "args = -c x"),
            ("lfs \"extension.x\"", "clean = sh"),
            ("lfs \"https://x\"", "standalonetransferagent = x"),
            ("lfs", "url = ssh://-oProxyCommand=x/y"),
            ("annex", "uuid = \"$(sh)\""),
            ("annex", "uuid = -x"),
            ("annex", "pre-commit-command = x"),
            ("annex", "web-download-command = x"),
            ("annex", "freezecontent-command = x"),
            ("annex \"x\"", "uuid = x"),
            ("remote \"o\"", "annex-ignore-command = true"),
            ("remote \"o\"", "annex-cost-command = true"),
            ("remote \"o\"", "annex-ssh-options = -oProxyCommand=x"),
            ("remote \"o\"", "annex-externaltype = x"),
            ("remote \"o\"", "annex-uuid = \"x;y\""),
            ("svn", "authorsprog = x"),
            ("svn \"x\"", "authorsprog = x"),
            ("svn-remote \"svn\"", "url = svn+ssh://-oProxyCommand=x/y"),
            ("svn-remote \"svn\"", "url = svn+x://y"),
            ("svn-remote \"svn\"", "url = https://-x/y"),
            ("svn-remote \"svn\"", "ignore-paths = (?{x})"),
            ("svn-remote \"svn\"", "fetch = \"(?{x}):refs/x\""),
            ("svn-remote \"svn\"", "fetch = --x:refs/x"),
            ("svn-remote", "url = https://svn.example.com/x"),
            ("delta", "pager = sh"),
            ("delta", "paging = sh"),
            ("delta", "features = x"),
            ("delta", "diff-args = --ext-diff"),
            ("delta", "navigate = sh"),
            ("delta", "syntax-theme = ../x"),
            ("delta \"x\"", "pager = sh"),
            ("delta \"x\"", "navigate = true"),
            ("github", "user = \"x`y`\""),
            ("github", "token = x"),
            ("tig \"bind\"", "generic = x !sh"),
        ] {
            found(&format!("[{section}]\n\t{line}\n"), true);
        }
    }
}
