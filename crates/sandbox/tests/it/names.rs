//! Names in the workspace that are links, lead elsewhere, or come into being by a detour; as an ordinary
//! user and as root. Each attack is a script; one that ends with 0 has got through.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::lab::{Lab, NOBODY, is_root, skipped, users};

/// What the workspace holds before the program starts.
const BEFORE: &str = r#"
    set -e
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
    rm -rf .git && git init -q . && git config user.name a && git config user.email a@example.com
    mkdir -p src docs/deep ci/old hops rules .claude
    echo fine > docs/guide.md; echo fine > docs/deep/soul.md; echo fine > rules/one.md
    echo fine > .claude/notes.txt
    ln -s docs/guide.md CLAUDE.md
    ln -s docs/later.md GEMINI.md
    ln -s hops/way/soul.md SOUL.md; ln -s ../docs/deep hops/way
    ln -s ci .github
    ln -s ../rules .claude/rules
    ln -s ../outside/victim.txt QWEN.md
    mkdir -p .git/modules/refs/hooks .git/modules/sub/hooks
    echo '[core]' > .git/modules/refs/config; echo '[core]' > .git/modules/sub/config
    echo 'ref: refs/heads/main' > .git/modules/refs/HEAD
    git init -q --bare old.git
    git add docs && git commit -qm one
    git worktree add -q tree
    mkdir tools; git config core.hooksPath tools/hooks; git config include.path ../tools/more
"#;

/// Each with what it must not come to.
const ATTACKS: &[(&str, &str)] = &[
    // A link as the first part of a name.
    ("a link is the first part", "ln -s src .cargo && echo EVIL > src/config.toml"),
    ("a link is the first part, deep", "ln -s ../src docs/.gitea && mkdir src/workflows"),
    ("a link is moved to be it", "ln -s src l && mv -T l .cargo && echo EVIL > src/config.toml"),
    (
        "a link is exchanged to be it",
        "mkdir .gradle; ln -s src l2 && python3 -c 'import ctypes,sys;sys.exit(ctypes.CDLL(None).renameat2(-100,b\"l2\",-100,b\".gradle\",2))'",
    ),
    ("a link gets a second name", "ln -s src l3 && ln l3 .bundle"),
    ("a link to outside", "ln -s /tmp .yarn"),
    ("a whole name as a link", "ln -s src .vscode"),
    ("a whole name as a link, folded", "ln -s src .VSCODE"),
    (
        "a link for git's modules",
        "rm -rf .git/x; mv .git/modules .git/m2; ln -s ../src .git/modules",
    ),
    ("a link for a module", "ln -s ../../src .git/modules/new && mkdir src/hooks"),
    (
        "a link for worktrees",
        "ln -s ../src .git/worktrees2 && mv -T .git/worktrees2 .git/worktrees",
    ),
    ("a link for the state of a rebase", "ln -s ../src .git/rebase-merge"),
    // Names that are links already.
    ("a linked name written through", "echo EVIL >> CLAUDE.md"),
    ("a linked name's target", "echo EVIL >> docs/guide.md"),
    ("a linked name's target cut", "python3 -c 'import os;os.truncate(\"docs/guide.md\",0)'"),
    (
        "a linked name's target opened",
        "python3 -c 'import os;os.open(\"docs/guide.md\",os.O_WRONLY)'",
    ),
    (
        "a linked name's target replaced",
        "echo EVIL > n && mv -f n docs/guide.md && grep -q EVIL CLAUDE.md",
    ),
    ("a linked name's target removed", "rm -f docs/guide.md && echo EVIL > docs/guide.md"),
    ("a linked name's target by a hard link", "ln docs/guide.md gg && echo EVIL >> gg"),
    ("a linked name removed", "rm -f CLAUDE.md && ! test -L CLAUDE.md"),
    ("a linked name replaced", "rm -f CLAUDE.md; ln -s src/x CLAUDE.md"),
    ("a linked name moved", "mv CLAUDE.md was.md"),
    ("a linked name overwritten", "echo EVIL > n2; mv -f n2 CLAUDE.md && grep -q EVIL CLAUDE.md"),
    ("the folder of a target moved", "mv docs docs2 && mkdir docs && echo EVIL > docs/guide.md"),
    ("the folder of a target removed", "rm -rf docs; mkdir -p docs && echo EVIL > docs/guide.md"),
    ("a linked name that leads to nothing yet", "echo EVIL > docs/later.md"),
    ("a linked name that leads to nothing, through it", "echo EVIL > GEMINI.md"),
    (
        "a link on the way",
        "ln -sfn ../src hops/way && echo EVIL > src/soul.md && grep -q EVIL SOUL.md",
    ),
    ("a link on the way removed", "rm -f hops/way && ! test -L hops/way"),
    ("a link on the way moved", "mv hops/way hops/was"),
    ("a folder on the way moved", "mv hops hops2 && mkdir hops"),
    ("the target behind two links", "echo EVIL > docs/deep/soul.md"),
    (
        "the first part is a link already",
        "mkdir -p .github/workflows && echo EVIL > .github/workflows/ci.yml",
    ),
    (
        "the first part is a link already, by its target",
        "mkdir -p ci/workflows && echo EVIL > ci/workflows/ci.yml",
    ),
    ("the first part's target moved", "mv ci ci2 && mkdir -p ci/workflows"),
    ("a folder made to be such a part", "mkdir w && echo EVIL > w/ci.yml && mv w ci/workflows"),
    ("a link in a guarded folder", "echo EVIL > rules/one.md"),
    ("a link in a guarded folder, a new file", "echo EVIL > rules/two.md"),
    ("another file of a guarded folder", "echo EVIL > .claude/notes.txt"),
    // Repositories that were made, and are none any more.
    (
        "a repository unmade and moved",
        "git init -q x && echo EVIL > x/CLAUDE.md && rm -rf x/.git && mv x y && mv y/CLAUDE.md y/c && false || grep -q EVIL y/CLAUDE.md",
    ),
    (
        "a folder of a repository unmade",
        "git init -q x2 && mkdir x2/d && echo EVIL > x2/d/AGENTS.md && rm -rf x2/.git && mv x2/d d2",
    ),
    ("a folder of a repository", "git init -q x3 && mkdir -p x3/d/.claude && mv x3/d d3"),
    (
        "a folder of a repository, twice moved",
        "git init -q x4 && mkdir -p x4/d/.claude && mv x4/d x4/e && mv x4/e e4",
    ),
    (
        "a repository's git moved away, then it",
        "git init -q x5 && echo EVIL > x5/AGENTS.md && mv x5/.git g5 && mv x5 y5",
    ),
    (
        "a repository exchanged",
        "git init -q x6 && echo EVIL > x6/AGENTS.md && rm -rf x6/.git && mkdir e6 && python3 -c 'import ctypes,sys;sys.exit(ctypes.CDLL(None).renameat2(-100,b\"x6\",-100,b\"e6\",2))'",
    ),
    // Submodules called like folders of git.
    ("settings of a module `refs`", "echo EVIL >> .git/modules/refs/config"),
    ("a hook of a module `refs`", "echo EVIL > .git/modules/refs/hooks/pre-commit"),
    (
        "a hook of a new module `objects`",
        "mkdir -p .git/modules/objects/hooks && echo EVIL > .git/modules/objects/hooks/pre-commit",
    ),
    (
        "settings of a new module `logs`",
        "mkdir -p .git/modules/logs && echo EVIL > .git/modules/logs/config",
    ),
    (
        "settings of a new module `info/x`",
        "mkdir -p .git/modules/info/x && echo EVIL > .git/modules/info/x/config",
    ),
    (
        "settings of a module in a module",
        "mkdir -p .git/modules/a/modules/refs && echo EVIL > .git/modules/a/modules/refs/config",
    ),
    ("settings of a worktree", "echo EVIL > .git/worktrees/tree/config.worktree"),
    ("where a worktree belongs", "echo ../../../src > .git/worktrees/tree/commondir"),
    ("modules moved away", "mv .git/modules .git/old"),
    (
        "a module moved into place",
        "mkdir -p src/m/hooks && echo EVIL > src/m/config && mv src/m .git/modules/m",
    ),
    (
        "a folder moved into git's",
        "mkdir -p src/st && echo 'exec EVIL' > src/st/git-rebase-todo && mv src/st .git/rebase-merge",
    ),
    // Repositories without a `.git`.
    (
        "a repository by commondir",
        "echo ../.git > docs/commondir && echo 'ref: refs/heads/main' > docs/HEAD && echo EVIL > docs/config.worktree",
    ),
    (
        "a repository by HEAD, then commondir",
        "echo 'ref: refs/heads/x' > src/HEAD && echo ../.git > src/commondir",
    ),
    (
        "a repository by a moved commondir",
        "echo 'ref: refs/heads/x' > src/HEAD; echo ../.git > src/cc && mv src/cc src/commondir",
    ),
    (
        "a repository by a linked HEAD",
        "ln -s refs/heads/x src/HEAD; ln -s ../ci src/objects; ln -s ../ci src/refs",
    ),
    (
        "a repository in a new folder with settings",
        "mkdir -p nb/objects nb/refs && printf '[core]\\nfsmonitor = EVIL\\n' > nb/config && echo 'ref: refs/heads/x' > nb/HEAD",
    ),
    (
        "a repository in a new folder, settings later",
        "mkdir -p nc/objects nc/refs && echo 'ref: refs/heads/x' > nc/HEAD && printf '[core]\\nfsmonitor = EVIL\\n' > nc/config",
    ),
    (
        "a repository in a new folder, settings moved",
        "mkdir -p nd/objects nd/refs && echo 'ref: refs/heads/x' > nd/HEAD && printf '[core]\\nfsmonitor = EVIL\\n' > nd/c && mv nd/c nd/config",
    ),
    (
        "a repository in a new folder with a hook",
        "mkdir -p ne/objects ne/refs ne/hooks && echo 'ref: refs/heads/x' > ne/HEAD && echo EVIL > ne/hooks/pre-commit",
    ),
    (
        "a hook, then a repository in a new folder",
        "mkdir -p nf/objects nf/refs nf/hooks && echo EVIL > nf/hooks/pre-commit && echo 'ref: refs/heads/x' > nf/HEAD",
    ),
    (
        "a repository in a new folder, put together by moves",
        "mkdir -p ng nh/objects nh/refs nh/hooks && echo EVIL > nh/hooks/pre-commit && echo x > ng/HEAD && mv ng/HEAD nh/HEAD",
    ),
    ("settings of an old bare repository", "echo EVIL >> old.git/config"),
    ("a hook of an old bare repository", "echo EVIL > old.git/hooks/post-update"),
    ("settings of an old bare repository by git", "git -C old.git config core.fsmonitor EVIL"),
    (
        "an old bare repository moved",
        "mv old.git old2.git; echo EVIL >> old2.git/config; r=$?; mv old2.git old.git; exit $r",
    ),
    // Settings of a new repository, changed in place.
    (
        "settings of a new repository opened",
        "git init -q s1 && python3 -c 'import os;os.open(\"s1/.git/config\",os.O_WRONLY|os.O_APPEND)'",
    ),
    (
        "settings of a new repository cut and written",
        "git init -q s2 && python3 -c 'import os;f=os.open(\"s2/.git/config\",os.O_RDWR|os.O_TRUNC)'",
    ),
    // What git does next.
    (
        "a rebase that executes",
        "mkdir -p .git/rebase-merge && echo 'exec EVIL' > .git/rebase-merge/git-rebase-todo",
    ),
    (
        "a rebase that executes, moved into place",
        "mkdir -p .git/rebase-merge && echo 'exec EVIL' > .git/rebase-merge/t && mv .git/rebase-merge/t .git/rebase-merge/git-rebase-todo",
    ),
    (
        "a rebase that executes, in short",
        "mkdir -p .git/rebase-merge && printf 'pick 1\\n\\tx EVIL\\n' > .git/t && mv .git/t .git/rebase-merge/git-rebase-todo",
    ),
    (
        "a rebase in a worktree",
        "mkdir -p .git/worktrees/tree/rebase-merge && echo 'exec EVIL' > .git/worktrees/tree/rebase-merge/git-rebase-todo",
    ),
    // Where the settings of the repository lead to.
    ("a hook where the settings say", "mkdir -p tools/hooks && echo EVIL > tools/hooks/pre-commit"),
    (
        "a folder of hooks moved there",
        "mkdir -p src/hk && echo EVIL > src/hk/pre-commit && mv src/hk tools/hooks",
    ),
    ("a link for the folder of hooks", "ln -s ../src tools/hooks"),
    ("the folder above replaced", "mv tools tools2 && mkdir -p tools"),
    ("more settings where the settings say", "echo EVIL > tools/more"),
    // Other letters.
    ("other letters", "echo EVIL > src/Agents.md"),
    ("other letters at the top", "echo EVIL > identity.md"),
    ("other letters, moved to the top", "echo EVIL > src/heartbeat.md; mv src/heartbeat.md ."),
    (
        "other letters, then the right ones",
        "mkdir src/a; echo EVIL > src/a/identity.md; mv src/a/identity.md src/a/IDENTITY.md",
    ),
    (
        "other letters, and the right ones too",
        "mkdir src/b; echo EVIL > src/b/identity.md; ln src/b/identity.md src/b/IDENTITY.md",
    ),
    (
        "other letters, and a link by the right ones",
        "mkdir src/c; echo EVIL > src/c/identity.md; ln -s identity.md src/c/IDENTITY.md",
    ),
    ("other letters for a folder", "mkdir -p src/qwen.md && echo EVIL > src/qwen.md/x"),
    ("other letters in a folder", "mkdir -p src/.GitHub/Workflows"),
    ("other letters of git", "mkdir -p src/.Git/hooks && echo EVIL > src/.Git/hooks/pre-commit"),
    ("long letters", "echo EVIL > src/.mcp.j\u{17F}on"),
    ("signs without a width", "mkdir src/.idea\u{200C}"),
    // Names that were held only where they were.
    (".githooks", "mkdir .githooks"),
    (".gitmodules", "echo EVIL > .gitmodules"),
    (".env", "echo EVIL > src/.env"),
    (".env.local", "echo EVIL > src/.env.local"),
    ("mise.toml", "echo EVIL > mise.toml"),
    (".zed", "mkdir .zed"),
    (".fleet", "mkdir .fleet"),
    (".curlrc", "echo EVIL > .curlrc"),
    (".gdbinit", "echo EVIL > src/.gdbinit"),
    (".lefthook", "mkdir .lefthook"),
    (".junie", "mkdir .junie"),
    (".git/info/attributes", "mkdir -p .git/info; echo EVIL > .git/info/attributes"),
    // What is proposed to the owner, and is not his word yet.
    (
        "a folder of proposals moved",
        "mkdir -p .soulguard/staging/s && echo EVIL > .soulguard/staging/s/CLAUDE.md && mv .soulguard/staging/s src/p1",
    ),
    (
        "a folder of proposals moved, deep",
        "mkdir -p .soulguard/staging/t/u/v && echo EVIL > .soulguard/staging/t/u/v/AGENTS.md && mv .soulguard/staging/t src/p2",
    ),
    (
        "all proposals moved",
        "mkdir -p .soulguard/staging && echo EVIL > .soulguard/staging/CLAUDE.md && mv .soulguard/staging src/p3",
    ),
    (
        "the folder above proposals moved",
        "mkdir -p src/q/.soulguard/staging && echo EVIL > src/q/.soulguard/staging/CLAUDE.md && mv src/q/.soulguard src/p4",
    ),
    (
        "a folder of proposals exchanged",
        "mkdir -p .soulguard/staging/x src/p5 && echo EVIL > .soulguard/staging/x/CLAUDE.md && python3 -c 'import ctypes,sys;sys.exit(ctypes.CDLL(None).renameat2(-100,b\".soulguard/staging/x\",-100,b\"src/p5\",2))'",
    ),
    // Links to where names are not protected.
    (
        "a link to a package",
        "mkdir -p node_modules/p && echo EVIL > node_modules/p/CLAUDE.md && ln -s node_modules/p k1",
    ),
    ("a link to a package that is not there yet", "ln -s node_modules/later k2"),
    ("a link to all packages", "mkdir -p node_modules; ln -s ../node_modules src/k3"),
    (
        "a link to a package, by another link",
        "mkdir -p src/a1; ln -s src/a1 k4 && ln -s ../../node_modules/p src/a1/x",
    ),
    (
        "a link to a package, moved out of it",
        "mkdir -p node_modules/q; ln -s $PWD/node_modules/p node_modules/q/l && mv node_modules/q/l k5",
    ),
    (
        "a link to a package, moved out with its folder",
        "mkdir -p node_modules/r; ln -s $PWD/node_modules/p node_modules/r/l && mv node_modules/r k6",
    ),
    (
        "a link to a package, by another name",
        "mkdir -p node_modules/q; ln -s $PWD/node_modules/p node_modules/q/l2; ln node_modules/q/l2 k7",
    ),
    (
        "a link into git's own",
        "mkdir -p .git/foo; echo EVIL > .git/foo/CLAUDE.md; ln -s .git/foo k8",
    ),
    ("a link to git's own", "ln -s ../.git src/k9"),
    ("a link to proposals", "mkdir -p .soulguard/staging/k; ln -s .soulguard/staging/k k10"),
    // Names that tools obey.
    ("lefthook-local.yml", "echo EVIL > lefthook-local.yml"),
    (".mise/config.toml", "mkdir .mise"),
    (".Rprofile", "echo EVIL > src/.Rprofile"),
    ("a workspace of VS Code", "echo EVIL > src/a.code-workspace"),
    (".roomodes", "echo EVIL > .roomodes"),
    (".github/chatmodes", "mkdir -p src/.github/chatmodes"),
    ("cloudbuild.yaml", "echo EVIL > cloudbuild.yaml"),
    ("NuGet.config", "echo EVIL > src/nuget.config"),
    ("prod.env", "echo EVIL > src/prod.env"),
    (".env-prod", "echo EVIL > src/.env-prod"),
    (".dev.vars", "echo EVIL > .dev.vars"),
    ("rust-toolchain.toml", "echo EVIL > rust-toolchain.toml"),
    ("rust-toolchain", "echo EVIL > src/rust-toolchain"),
    (".tool-versions", "echo EVIL > src/.tool-versions"),
    ("settings of Mercurial", "mkdir -p src/.hg && echo EVIL > src/.hg/hgrc"),
    ("settings of Mercurial, moved", "mkdir -p h1 && echo EVIL > h1/hgrc && mv h1 .hg"),
    ("settings of Jujutsu", "mkdir -p .jj/repo && echo EVIL > .jj/repo/config.toml"),
    ("settings of Darcs", "mkdir -p _darcs/prefs && echo EVIL > _darcs/prefs/defaults"),
    ("what stands for bazel", "mkdir -p tools && echo EVIL > tools/bazel"),
    (".vim/coc-settings.json", "mkdir src/.vim"),
    (".pylintrc", "echo EVIL > src/.pylintrc"),
    ("a project of Sublime Text", "echo EVIL > src/x.sublime-project"),
    (".idx", "mkdir .idx"),
    ("devfile.yaml", "echo EVIL > devfile.yaml"),
    (".pi", "mkdir .pi"),
    (".agent/rules", "mkdir -p src/.agent/rules"),
    ("commands of Crush", "mkdir -p .crush/commands"),
    (".continuerules", "echo EVIL > .continuerules"),
    ("hk.pkl", "echo EVIL > hk.pkl"),
    (".lintstagedrc.json", "echo EVIL > src/.lintstagedrc.json"),
    (".teamcity", "mkdir .teamcity"),
    (".readthedocs.yaml", "echo EVIL > .readthedocs.yaml"),
    (".autoenv.zsh", "echo EVIL > src/.autoenv.zsh"),
    (".envs", "mkdir src/.envs"),
    // Sockets of the host.
    (
        "a socket in the workspace",
        "python3 -c 'import socket;socket.socket(1,1).connect(\"host.sock\")'",
    ),
    (
        "a socket by a link",
        "ln -s host.sock hs; python3 -c 'import socket;socket.socket(1,1).connect(\"hs\")'",
    ),
    (
        "a socket by a hard link",
        "ln host.sock hs2; python3 -c 'import socket;socket.socket(1,1).connect(\"hs2\")'",
    ),
    (
        "a socket moved",
        "mv host.sock hs3; python3 -c 'import socket;socket.socket(1,1).connect(\"hs3\")'",
    ),
    (
        "a socket in a guarded folder",
        "python3 -c 'import socket;socket.socket(1,1).connect(\".claude/host.sock\")'",
    ),
    (
        "a socket for single messages",
        "python3 -c 'import socket;socket.socket(1,2).sendto(b\"x\",\"datagrams.sock\")'",
    ),
];

#[test]
fn no_detour_leads_to_a_guarded_name() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return skipped("needs python3 for attacks by system call");
    }
    for uid in users() {
        let mut through = Vec::new();
        let lab = Lab::new(uid);
        as_user(&lab, uid, BEFORE);
        let _sockets = [
            UnixListener::bind(lab.at("ws/host.sock")).unwrap(),
            UnixListener::bind(lab.at("ws/.claude/host.sock")).unwrap(),
        ];
        let _datagrams =
            std::os::unix::net::UnixDatagram::bind(lab.at("ws/datagrams.sock")).unwrap();
        fs::create_dir(lab.at("ws/attacks")).unwrap();
        for (index, (_, script)) in ATTACKS.iter().enumerate() {
            fs::write(lab.at(&format!("ws/attacks/{index}")), script).unwrap();
        }
        lab.give();
        let before = held(&lab);
        let driver = format!(
            "export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
             for i in $(seq 0 {}); do timeout 10 bash attacks/$i >/dev/null 2>&1 </dev/null; echo $i $?; done",
            ATTACKS.len() - 1
        );
        let (code, out) = lab.run(&driver);
        assert_eq!(code, 0, "{out}");
        let results = out.lines().filter_map(|line| line.split_once(' '));
        let results: Vec<_> = results.collect();
        assert_eq!(results.len(), ATTACKS.len(), "{out}");
        for (index, code) in results {
            if code == "0" {
                through.push(ATTACKS[index.parse::<usize>().unwrap()].0);
            }
        }
        assert_eq!(through, Vec::<&str>::new(), "as user {uid}");
        assert_eq!(held(&lab), before, "as user {uid}");
    }
}

/// What package managers do with links.
#[test]
fn links_of_packages_are_made() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "set -e; mkdir -p packages/a/bin packages/b/node_modules node_modules/.bin node_modules/.pnpm/x/node_modules/x
            echo x > packages/a/bin/a; ln -s ../packages/a node_modules/a; ln -s ../a/bin/a node_modules/.bin/a
            ln -s .pnpm/x/node_modules/x node_modules/x; ln -s ../../../node_modules/.pnpm/x/node_modules/x packages/b/node_modules/x
            ln -s ../node_modules sub/node_modules; ln -s packages here; ln -s /usr/bin/env env; ln -s nothing yet; ln -s loop loop
            mv node_modules/x node_modules/y; ln -s ../../a packages/b/node_modules/a; cat node_modules/.bin/a";
        let (code, out) = lab.run(script);
        assert_eq!((code, out.as_str()), (0, "x\n"), "as user {uid}");
    }
}

/// A document is no instruction for the likeness of its name, where a name is one file's only.
#[test]
fn likeness_is_no_reason_where_cases_are_told_apart() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::create_dir_all(lab.at("ws/docs")).unwrap();
        fs::write(lab.at("ws/docs/identity.md"), "there").unwrap();
        if lab.at("ws/docs/IDENTITY.md").exists() || !is_known(&lab) {
            return skipped("needs ext4, btrfs, f2fs, tmpfs or overlay for its temporary folder");
        }
        lab.give();
        let script = "echo more >> docs/identity.md && echo new > docs/soul.md && mv docs/soul.md docs/heartbeat.md \
            && rm docs/heartbeat.md && ln docs/identity.md docs/qwen.md && rm docs/qwen.md && sed -i s/more/less/ docs/identity.md";
        let (code, out) = lab.run(script);
        assert_eq!((code, out.as_str()), (0, ""), "as user {uid}");
        assert_eq!(fs::read_to_string(lab.at("ws/docs/identity.md")).unwrap(), "thereless\n");
        // Cline and others look for these in any case.
        for name in ["docs/agents.md", "docs/Claude.md", "docs/gemini.md", "docs/IDENTITY.md"] {
            let (code, _) = lab.run(&format!("echo EVIL > {name}"));
            assert_ne!(code, 0, "{name} as user {uid}");
        }
    }
}

/// Whether the lab is on a file system of which it is known how it tells that it folds.
fn is_known(lab: &Lab) -> bool {
    let told = Command::new("stat").args(["-f", "-c", "%t"]).arg(lab.at("ws")).output().unwrap();
    let kinds = ["ef53", "9123683e", "f2f52010", "1021994", "794c7630"];
    kinds.contains(&String::from_utf8_lossy(&told.stdout).trim())
}

#[test]
fn likeness_is_the_name_itself_where_names_are_folded() {
    let lab = Lab::new(NOBODY);
    fs::create_dir_all(lab.at("ws/docs")).unwrap();
    let folds =
        Command::new("chattr").arg("+F").arg(lab.at("ws/docs")).stderr(Stdio::null()).status();
    if !folds.is_ok_and(|status| status.success()) {
        return skipped("needs a file system with folders that fold names (mkfs.ext4 -O casefold)");
    }
    lab.give();
    let (code, _) = lab.run("echo EVIL > docs/identity.md");
    assert_ne!(code, 0);
    assert!(!lab.at("ws/docs/IDENTITY.md").exists());
}

/// What lies behind the names, as whoever obeys them sees it.
fn held(lab: &Lab) -> Vec<(&'static str, Option<String>)> {
    let names = [
        "CLAUDE.md",
        "GEMINI.md",
        "SOUL.md",
        "QWEN.md",
        ".github/workflows",
        ".claude/rules/one.md",
        ".claude/rules/two.md",
        ".claude/notes.txt",
        ".git/config",
        ".git/modules/refs/config",
        ".git/modules/sub/config",
        ".git/worktrees/tree/commondir",
        "old.git/config",
        "tree/.git",
    ];
    let read = |name: &&'static str| (*name, fs::read_to_string(lab.at("ws").join(name)).ok());
    names.iter().map(read).collect()
}

/// Runs a script in the workspace without any confinement.
pub(crate) fn as_user(lab: &Lab, uid: u32, script: &str) {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(lab.at("ws")).stdin(Stdio::null());
    command.env("HOME", lab.at("home"));
    if is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, uid);
        std::os::unix::process::CommandExt::gid(&mut command, uid);
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Links that would make the workspace itself guarded are an error before anything runs.
#[test]
fn a_name_that_leads_to_the_whole_workspace_is_refused() {
    let uid = if is_root() { NOBODY } else { rustix::process::geteuid().as_raw() };
    for link in ["ln -s . .vscode", "mkdir a; ln -s ../.. a/.claude", "ln -s $PWD .idea"] {
        let lab = Lab::new(uid);
        as_user(&lab, uid, link);
        let (code, out) = lab.run("touch started");
        assert_eq!(code, 125, "{link}: {out}");
        assert!(out.contains("leads to"), "{link}: {out}");
        assert!(!lab.at("ws/started").exists());
    }
}

/// Copies of `.env` files that editors and people leave are shown empty, and what only looks like one is not.
#[test]
fn copies_of_what_is_masked_are_masked() {
    for uid in users() {
        let lab = Lab::new(uid);
        let masked = [
            ".env~",
            "#.env#",
            ".env (copy)",
            ".env1",
            "prod.env.bak",
            ".envs/.production/.postgres",
        ];
        let plain = ["environment.ts", ".environment", "env.d.ts", ".envoy.yaml", ".env.example~"];
        fs::create_dir_all(lab.at("ws/sub/.envs/.production")).unwrap();
        for name in masked.iter().chain(&plain) {
            fs::write(lab.at("ws/sub").join(name), "CANARY\n").unwrap();
        }
        lab.give();
        let (_, out) = lab.run("cd sub; grep -rl CANARY . | sort");
        let mut seen: Vec<_> = out.lines().map(|line| line.trim_start_matches("./")).collect();
        seen.sort_unstable();
        let mut plain = plain.to_vec();
        plain.sort_unstable();
        assert_eq!(seen, plain, "as user {uid}");
    }
}

/// File systems make, remove and compare names by requests of their own, past every call that is watched.
#[test]
fn requests_that_make_names_are_denied() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return skipped("needs python3 for attacks by system call");
    }
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "python3 - <<'E'
import fcntl, os
folder = os.open('.', os.O_RDONLY)
for request in [0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x50009418, 0x5000943F, 0x9418, 0x40086602, 0x401C5820, 0x4010BC10]:
    try: fcntl.ioctl(folder, request, bytes(4096)[:1024]); print('through', hex(request))
    except OSError as error: print(error.errno, end=' ')
E";
        let (code, out) = lab.run(script);
        assert_eq!((code, out.trim()), (0, ["1"; 10].join(" ").as_str()), "as user {uid}");
    }
}

/// A mount holds a file by one of its names.
#[test]
fn a_protected_file_is_not_cut_by_a_further_name() {
    for uid in users() {
        let lab = Lab::new(uid);
        fs::hard_link(lab.at("ws/AGENTS.md"), lab.at("ws/other")).unwrap();
        fs::hard_link(lab.at("ws/.git/config"), lab.at("ws/sub/other")).unwrap();
        lab.give();
        let script = "python3 -c 'import os
for name in (\"other\",\"sub/other\"):
    try: os.truncate(name, 1); print(\"through\", name)
    except OSError: pass
open(\"plain\",\"w\").write(\"xy\"); os.truncate(\"plain\", 1); print(os.stat(\"plain\").st_size)'";
        let (code, out) = lab.run(script);
        assert!(code == 0 && out == "1\n", "as user {uid}: {out}");
        assert_eq!(fs::read_to_string(lab.at("ws/AGENTS.md")).unwrap(), "be good\n");
        assert_eq!(fs::read_to_string(lab.at("ws/.git/config")).unwrap(), "[core]\n");
    }
}

#[test]
fn start_up_files_of_the_home_that_lie_in_the_workspace_are_held() {
    for uid in users() {
        let lab = Lab::new(uid);
        for folder in ["ws/claude", "ws/git", "ws/shell/conf.d", "home/.config", "home/.ssh"] {
            fs::create_dir_all(lab.at(folder)).unwrap();
        }
        for file in ["bashrc", "claude/settings.json", "git/mine", "real", "shell/conf.d/a.fish"] {
            fs::write(lab.at("ws").join(file), "good\n").unwrap();
        }
        symlink("real", lab.at("ws/hop")).unwrap();
        for (link, target) in [
            (".bashrc", "bashrc"),
            (".claude/settings.json", "claude/settings.json"),
            (".gitconfig", "git/mine"),
            (".profile", "hop"),
            (".zshrc", "unmade"),
            (".config/fish", "shell"),
            ("notes-of-mine", "free"),
        ] {
            symlink(lab.at("ws").join(target), lab.at("home").join(link)).unwrap();
        }
        lab.give();
        let script = "cd $WS; for f in bashrc claude/settings.json git/mine real hop unmade shell/conf.d/a.fish \
                shell/conf.d/b.fish shell/config.fish; do
                (echo evil >> $f) 2>&1; rm -f $f; echo evil > new; mv -f new $f; ln -f free $f; done
            mv claude aside && mkdir claude && echo evil > claude/settings.json
            mv shell aside && mkdir -p shell && echo evil > shell/config.fish
            mv hop away; ln -sfn free hop
            echo fine > free; echo fine > claude/notes; cat bashrc";
        let (_, out) = lab.run(script);
        for link in [".bashrc", ".claude/settings.json", ".gitconfig", ".profile"] {
            let text = fs::read_to_string(lab.at("home").join(link)).unwrap_or_default();
            assert_eq!(text, "good\n", "{link}: {out}");
        }
        assert!(!lab.at("home/.zshrc").exists(), "{out}");
        let fish = lab.at("home/.config/fish");
        assert_eq!(fs::read_to_string(fish.join("conf.d/a.fish")).unwrap(), "good\n", "{out}");
        assert!(
            !fish.join("config.fish").exists() && !fish.join("conf.d/b.fish").exists(),
            "{out}"
        );
        assert_eq!(fs::read_to_string(lab.at("ws/free")).unwrap(), "fine\n", "{out}");
        assert_eq!(fs::read_to_string(lab.at("ws/claude/notes")).unwrap(), "fine\n", "{out}");
        assert!(out.contains("good"), "{out}");
    }
}

/// An agent's folder, or a part of it, may be what the owner works on.
#[test]
fn a_workspace_that_a_name_of_the_home_leads_to_is_one_still() {
    let lab = Lab::new(users()[0]);
    fs::remove_dir_all(lab.at("home/.claude")).unwrap();
    symlink(lab.at("ws"), lab.at("home/.claude")).unwrap();
    lab.give();
    let (code, out) = lab.run("echo x > $WS/notes || exit 1; echo x > $WS/settings.json && exit 2; mkdir $WS/hooks && exit 3; exit 0");
    assert_eq!(code, 0, "{out}");
}

#[test]
fn a_move_leaves_no_device_behind() {
    let lab = Lab::new(users()[0]);
    let script = "cd $WS; python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
open(\"x\", \"w\"); open(\"y\", \"w\")
call = lambda a, b, flags: libc.renameat2(-100, a, -100, b, flags)
assert call(b\"x\", b\"z\", 4) == -1 and ctypes.get_errno() == 22
assert call(b\"x\", b\"y\", 2) == 0 and call(b\"x\", b\"z\", 1) == 0
'; ls -l";
    let (code, out) = lab.run(script);
    assert!(code == 0 && !out.lines().any(|line| line.starts_with('c')), "{out}");
}
