//! What the owner's own git does after a run. Each case is a workspace, what the program does in it, and what the
//! owner does afterwards; it has got through if something was executed then, outside of the confinement.

use std::fs;
use std::process::Stdio;

use crate::lab::{Lab, NOBODY, appears, is_root, skipped, users};
use crate::names::as_user;

/// A name, what is there before, what the program does, and what the owner does.
struct Case(&'static str, &'static str, &'static str, &'static str);

/// Helpers of the scripts. `$OUT/PWNED` can be made by the owner alone.
const TOOLS: &str = r#"
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
    evil="touch $OUT/PWNED"
    # A file that executes.
    hook() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\n%s\n' "$evil" > "$1"; chmod +x "$1"; }
    # As many of these as a text is long.
    back() { printf '\\b%.0s' $(seq ${#1}); }
    # A folder that would be one of a worktree, and the worktree `wt`.
    tree() { mkdir -p "$1" wt; echo ref: refs/heads/main > "$1/HEAD"; echo "$WS/wt/.git" > "$1/gitdir"; echo "gitdir: $WS/$1" > wt/.git; }
    store() { mkdir -p "$1/objects" "$1/refs/heads"; printf '[core]\n\tfsmonitor = "%s;#"\n' "$evil" > "$1/config"; hook "$1/hooks/pre-commit"; }
    commit() { (cd "$1" && git status; date +%s%N > new; git add new; git commit -m x); }
"#;

const FRESH: &str = "rm -rf .git && git init -q -b main . && git config user.name a && git config user.email a@b \
    && echo x > x && git add x && git commit -qm one";

const CASES: &[Case] = &[
    // Settings of a new repository.
    Case(
        "a monitor behind escapes",
        FRESH,
        r#"git init -q n; c="$evil;#"; printf '[core]\n\tfsmonitor = "%s%s"\n' "$c" "$(back "$c")" > n/.git/c; mv n/.git/c n/.git/config"#,
        "git -C n status",
    ),
    Case(
        "an alias behind escapes",
        FRESH,
        r#"git init -q n; c="!$evil;#"; printf '[alias]\n\tst = "x%s%s"\n' '\b' "$c" > n/.git/c; mv n/.git/c n/.git/config; c="x$c"; printf '[alias]\n\tst = "%s%s"\n' "${c#x}" "$(back "$c")" > n/.git/c; mv n/.git/c n/.git/config"#,
        "git -C n st",
    ),
    Case(
        "a filter behind escapes",
        FRESH,
        r#"git init -q n; c="$evil;#git-lfs clean -- %f"; printf '[filter "f"]\n\tclean = "%s"\n' "$evil;#$(back "$evil;#")git-lfs clean -- %f" > n/.git/c; mv n/.git/c n/.git/config; echo '* filter=f' > n/.gitattributes; echo x > n/x"#,
        "git -C n add x",
    ),
    Case(
        "an alias without a mark",
        FRESH,
        r#"git init -q n; hook n/evil; echo x > n/x; git -C n config alias.st "grep --no-index -O./evil x""#,
        "cd n; git st",
    ),
    Case(
        "a format that writes what a rebase executes",
        FRESH,
        r#"git init -q -b main n; cd n; git config user.name a; git config user.email a@b; for i in 1 2; do echo $i > $i; git add $i; git commit -qm $i; done; git config rebase.instructionFormat "%s%nexec $evil""#,
        "git -C n rebase --force-rebase HEAD~1",
    ),
    Case(
        "a tool by its path",
        FRESH,
        r#"git init -q n; hook evil; git -C n config merge.tool "../../../../../..$WS/evil""#,
        r#"cd n; git config user.name a; git config user.email a@b; echo 1 > f; git add f; git commit -m 1; git checkout -b s; echo 2 > f; git commit -am 2; git checkout -; echo 3 > f; git commit -am 3; git merge s; timeout 10 git mergetool -y < /dev/null"#,
    ),
    Case(
        "a strategy by its path",
        FRESH,
        r#"git init -q n; hook n/git-merge-../evil; git -C n config pull.twohead ../evil"#,
        r#"cd n; git config user.name a; git config user.email a@b; echo 1 > f; git add f; git commit -m 1; git checkout -b s; echo 2 > g; git add g; git commit -m 2; git checkout -; echo 3 > h; git add h; git commit -m 3; git cherry-pick s"#,
    ),
    Case(
        "a strategy of a rebase that goes on",
        "FRESH; git checkout -q -b side; echo s > x; git commit -qam s; echo t > t; git add t; git commit -qm t; git checkout -q main; echo m > x; git commit -qam m; git checkout -q side",
        "hook git-merge-../evil; git rebase main; echo ../evil > .git/rebase-merge/strategy",
        "echo r > x; git add x; GIT_EDITOR=true git rebase --continue",
    ),
    Case(
        "a strategy, moved into place",
        "FRESH; git checkout -q -b side; echo s > x; git commit -qam s; echo t > t; git add t; git commit -qm t; git checkout -q main; echo m > x; git commit -qam m; git checkout -q side",
        "hook new/evil; mv new git-merge-x || ln -s new git-merge-x; git rebase main; echo x/evil > .git/rebase-merge/strategy",
        "echo r > x; git add x; GIT_EDITOR=true git rebase --continue",
    ),
    Case(
        "a working tree elsewhere",
        FRESH,
        r#"git init -q n; cd n; git config user.name a; git config user.email a@b; printf '#!/bin/sh\n%s\n' "$evil" > run-me; chmod +x run-me; git add run-me; git commit -qm x; git config core.worktree ../../../outside"#,
        "git -C n checkout -f; $OUT/run-me",
    ),
    // Where a worktree finds its repository.
    Case(
        "a common folder elsewhere",
        FRESH,
        r#"store store; tree .git/worktrees/e; echo "$WS/store" > .git/worktrees/e/commondir"#,
        "commit wt",
    ),
    Case(
        "a common folder elsewhere, moved into place",
        FRESH,
        r#"store store; tree .git/worktrees/e; echo "$WS/store" > c; mv c .git/worktrees/e/commondir"#,
        "commit wt",
    ),
    Case(
        "a common folder elsewhere, written later",
        FRESH,
        r#"store store; git worktree add -q wt; echo "$WS/store" > .git/worktrees/wt/commondir"#,
        "commit wt",
    ),
    Case(
        "a common folder elsewhere, written behind",
        FRESH,
        r#"store store; git worktree add -q wt; exec 7< .git/worktrees/wt/commondir; echo "$WS/store" > /proc/self/fd/7"#,
        "commit wt",
    ),
    Case(
        "a common folder elsewhere, kept open",
        FRESH,
        r#"store store; tree .git/worktrees/e; exec 7> .git/worktrees/e/commondir; echo ../.. >&7; cat .git/worktrees/e/commondir; python3 -c 'import os; os.lseek(7, 0, 0); os.write(7, b"'$WS'/store\n")'"#,
        "commit wt",
    ),
    Case(
        "a common folder elsewhere, again",
        FRESH,
        r#"store store; git worktree add -q wt; rm .git/worktrees/wt/commondir; echo "$WS/store" > .git/worktrees/wt/commondir"#,
        "commit wt",
    ),
    Case(
        "a common folder elsewhere, for all worktrees",
        FRESH,
        r#"store store; tree .git/worktrees; echo "$WS/store" > .git/worktrees/commondir"#,
        "commit wt",
    ),
    Case("a repository within git's folder", FRESH, r#"store .git/x; tree .git/x"#, "commit wt"),
    Case(
        "a repository within git's folder, with its settings last",
        FRESH,
        r#"tree .git/x/y; mkdir -p .git/x/y/objects .git/x/y/refs; store .git/x/y"#,
        "commit wt",
    ),
    Case(
        "a repository within git's folder, moved",
        FRESH,
        r#"store t; tree .git/x; mv t/* .git/x; mkdir .git/z; mv t/config .git/x/config"#,
        "commit wt",
    ),
    Case(
        "a repository within git's folder by commondir",
        FRESH,
        r#"store store; tree .git/x; echo "$WS/store" > .git/x/commondir"#,
        "commit wt",
    ),
    Case(
        "a repository that was a worktree's folder",
        FRESH,
        r#"store store; tree .git/worktrees/e; echo ../.. > .git/worktrees/e/commondir; mv .git/worktrees/e .git/x; rm -f .git/x/commondir; store .git/x; echo "gitdir: $WS/.git/x" > wt/.git"#,
        "commit wt",
    ),
    // What a repository's settings name, and those name in turn.
    Case(
        "settings of settings of settings",
        "mkdir -p tools; FRESH; git config include.path ../tools/shared.cfg; printf '[include]\n\tpath = more.cfg\n' > tools/shared.cfg; printf '[user]\n\tname = b\n' > tools/more.cfg",
        r#"printf '[core]\n\tfsmonitor = "%s;#"\n' "$evil" > tools/more.cfg"#,
        "git status",
    ),
    Case(
        "settings of settings that are not there",
        "mkdir -p tools; FRESH; git config include.path ../tools/shared.cfg; printf '[include]\n\tpath = more.cfg\n' > tools/shared.cfg",
        r#"printf '[core]\n\tfsmonitor = "%s;#"\n' "$evil" > tools/more.cfg"#,
        "git status",
    ),
    Case(
        "settings on a condition",
        "mkdir -p tools; FRESH; git config includeIf.onbranch:main.path ../tools/shared.cfg",
        r#"printf '[core]\n\tfsmonitor = "%s;#"\n' "$evil" > tools/shared.cfg"#,
        "git status",
    ),
    Case(
        "hooks of settings of settings",
        "mkdir -p tools; FRESH; git config include.path ../tools/shared.cfg; printf '[core]\n\thooksPath = tools/hk\n' > tools/shared.cfg",
        "hook tools/hk/pre-commit",
        "commit .",
    ),
    Case(
        "hooks of a worktree",
        "FRESH; git config core.hooksPath .hk; git worktree add -q wt",
        "hook wt/.hk/pre-commit",
        "commit wt",
    ),
    Case(
        "hooks of a worktree of a repository elsewhere",
        "rm -rf .git; mkdir $OUT/main; cd $OUT/main; FRESH; git config core.hooksPath .hk; git worktree add -q $WS/wt",
        "hook wt/.hk/pre-commit",
        "commit wt",
    ),
    Case(
        "hooks of a submodule",
        "FRESH; git init -q -b main $OUT/sub; git -C $OUT/sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m s; git -c protocol.file.allow=always submodule --quiet add $OUT/sub mod; git -C mod config core.hooksPath .hk; git -C mod config user.name a; git -C mod config user.email a@b",
        "hook mod/.hk/pre-commit",
        "commit mod",
    ),
    Case(
        "hooks where the letters are old",
        "FRESH; git config core.hooksPath hk; printf '[user]\n\tname = J\\366rg\n' >> .git/config",
        "hook hk/pre-commit",
        "commit .",
    ),
    Case(
        "hooks from the home",
        "FRESH; mkdir -p $HOME; printf '[core]\n\thooksPath = %s/hk\n' $WS > $HOME/more; git config include.path '~/more'",
        "hook hk/pre-commit",
        "commit .",
    ),
    Case(
        "settings that are a link",
        "FRESH; git config core.hooksPath hk; mv .git/config cfg; ln -s ../cfg .git/config",
        "hook hk/pre-commit",
        "commit .",
    ),
    Case(
        "a repository that is a link",
        "FRESH; git config core.hooksPath hk; mv .git $OUT/git; ln -s $OUT/git .git",
        "hook hk/pre-commit",
        "commit .",
    ),
    Case(
        "hooks of a repository above",
        "rm -rf .git; cd ..; FRESH; git config core.hooksPath ws/hk",
        "hook hk/pre-commit",
        "commit .",
    ),
    Case(
        "a common folder elsewhere, from before",
        "FRESH; store store; rm store/config; rm -r store/hooks; tree .git/worktrees/e; echo $WS/store > .git/worktrees/e/commondir",
        "store store",
        "commit wt",
    ),
];

fn tooled(lab: &Lab, script: &str) -> String {
    let (work, out) = (lab.at("ws"), lab.at("outside"));
    let script = script.replace("FRESH", FRESH);
    format!("export WS={} OUT={}\n{TOOLS}\n{script}", work.display(), out.display())
}

/// What the owner does; it may fail.
fn as_owner(lab: &Lab, uid: u32, script: &str) {
    as_user(lab, uid, &format!("({}) </dev/null; true", tooled(lab, script)));
}

#[test]
fn nothing_is_executed_by_the_owners_git() {
    if !std::path::Path::new("/usr/bin/git").exists() {
        return skipped("needs git for what the owner does");
    }
    for uid in users() {
        let mut through = Vec::new();
        for Case(name, before, attack, after) in CASES {
            let lab = Lab::new(uid);
            as_user(&lab, uid, &format!("set -e\n{}", tooled(&lab, before)));
            let (code, out) = lab.run(&format!("({}) >/dev/null 2>&1; true", tooled(&lab, attack)));
            assert_eq!(code, 0, "{name}: {out}");
            assert!(!lab.at("outside/PWNED").exists(), "{name}: within the run");
            as_owner(&lab, uid, after);
            if lab.at("outside/PWNED").exists() {
                through.push(*name);
            }
        }
        assert_eq!(through, Vec::<&str>::new(), "as user {uid}");
    }
}

/// The same without confinement: the cases are what they say.
#[test]
fn the_owners_git_would_execute_it() {
    if !std::path::Path::new("/usr/bin/git").exists() {
        return skipped("needs git for what the owner does");
    }
    let uid = users()[0];
    let mut idle = Vec::new();
    for Case(name, before, attack, after) in CASES {
        let lab = Lab::new(uid);
        as_user(&lab, uid, &format!("set -e\n{}", tooled(&lab, before)));
        as_owner(&lab, uid, attack);
        let _ = fs::remove_file(lab.at("outside/PWNED"));
        as_owner(&lab, uid, after);
        if !lab.at("outside/PWNED").exists() {
            idle.push(*name);
        }
    }
    assert_eq!(idle, Vec::<&str>::new());
}

/// What is left of a branch, or of a link, is no settings.
#[test]
fn what_is_called_as_settings_and_is_none_stops_nothing() {
    let uid = if is_root() { NOBODY } else { rustix::process::geteuid().as_raw() };
    let lab = Lab::new(uid);
    let before = "FRESH; mkdir -p .git/modules/s/refs/heads sub; git rev-parse HEAD | tee .git/modules/s/refs/heads/config \
        .git/modules/s/config.x; echo x > sub/config; echo gitdir: nowhere > sub/.git; echo x > $OUT/config";
    as_user(&lab, uid, &tooled(&lab, before));
    let (code, out) = lab.run("touch started");
    assert_eq!((code, lab.at("ws/started").exists()), (0, true), "{out}");
}

/// Submodules and folders of git elsewhere work in what is new.
#[test]
fn submodules_work_in_new_repositories() {
    for uid in users() {
        let lab = Lab::new(uid);
        as_user(&lab, uid, &tooled(&lab, "FRESH"));
        let script = "exec 2>&1; set -e; export GIT_ALLOW_PROTOCOL=file GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
            git init -q -b main n; cd n; git submodule --quiet add $WS sub; git submodule --quiet add $WS deep/er; git commit -qm x
            git config -f .git/modules/sub/config core.worktree; commit deep/er >/dev/null; cd ..; git clone -q --recurse-submodules n m; git -C m/deep/er status -s
            git clone -q --separate-git-dir apart.git n other; commit other > /dev/null; git init -q --separate-git-dir second.git third; git -C third status -s";
        let (code, out) = lab.run(&format!("({})", tooled(&lab, script)));
        assert_eq!((code, out.lines().next()), (0, Some("../../../sub")), "{out}");
    }
}

/// Worktrees work, and what git writes for them is what it wrote.
#[test]
fn worktrees_work_inside_and_afterwards() {
    for uid in users() {
        let lab = Lab::new(uid);
        as_user(&lab, uid, &tooled(&lab, "FRESH"));
        let script = "set -e; git worktree add -q wt; git worktree add -q -b side other/tree; \
            cat .git/worktrees/*/commondir; commit wt; git worktree move wt wt2; git worktree remove other/tree; git worktree list | wc -l";
        let (code, out) = lab.run(&format!("({})", tooled(&lab, script)));
        assert_eq!(code, 0, "{out}");
        assert!(out.starts_with("../..\n../..\n") && out.ends_with("\n2\n"), "{out}");
        as_user(&lab, uid, &tooled(&lab, "set -e; commit wt2; git worktree prune"));
        let common = fs::read_to_string(lab.at("ws/.git/worktrees/wt/commondir")).unwrap();
        assert_eq!(common, "../..\n");
        // What is there afterwards is no reason not to start again.
        assert_eq!(lab.run("git -C wt2 status >/dev/null").0, 0);
    }
}

/// A pipe in place of settings keeps the next run from nothing.
#[test]
fn a_pipe_for_settings_holds_nobody_up() {
    let uid = if is_root() { NOBODY } else { rustix::process::geteuid().as_raw() };
    let lab = Lab::new(uid);
    let pipes = "mkdir -p node_modules/x/.cargo node_modules/y/.bundle more && mkfifo node_modules/x/.cargo/config \
        node_modules/y/.bundle/config more/config more/pipe; mkdir wt && mkfifo wt/x; echo \"gitdir: $WS/more\" > wt/.git";
    let (code, out) = lab.run(pipes);
    assert_eq!(code, 0, "{out}");
    let mut child = lab.command("touch second").stdout(Stdio::null()).spawn().unwrap();
    let second = appears(&lab.at("ws/second"));
    let _ = child.kill();
    let _ = child.wait();
    assert!(second);
}

/// Settings that git cannot read, or that are too large, are no reason to guard nothing.
#[test]
fn settings_that_cannot_be_read_stop_the_start() {
    let uid = if is_root() { NOBODY } else { rustix::process::geteuid().as_raw() };
    for settings in ["printf '[core\\n'", "head -c 20000000 /dev/zero | tr '\\0' '#'"] {
        let lab = Lab::new(uid);
        as_user(&lab, uid, &tooled(&lab, &format!("FRESH; {settings} >> .git/config")));
        let (code, out) = lab.run("touch started");
        assert_eq!(code, 125, "{out}");
        assert!(out.contains(".git/config") && !lab.at("ws/started").exists(), "{out}");
    }
}
