//! What is refused.

use super::Lab;

/// Each line must fail, and nothing of it may be there afterwards.
#[test]
fn protected_names_do_not_come_into_being() {
    let lab = Lab::new();
    lab.put("AGENTS.md.txt", "x");
    lab.put("sub/x", "x");
    lab.put(".github/FUNDING.yml", "x");
    lab.bare(std::process::Command::new("git").args(["init", "-q", "."]));
    std::fs::remove_file(lab.work().join(".git/hooks/pre-commit.sample")).ok();
    let before: Vec<_> = super::all_paths(&lab.work());
    let attempts = [
        "echo x > .git/hooks/pre-commit",
        "cp sub/x .git/hooks/pre-push",
        "ln sub/x .git/hooks/pre-push",
        "ln -s ../../sub/x .git/hooks/pre-push",
        "mv .git/hooks .git/hooks2",
        "mv .git .git2",
        "ln -sfn /tmp .git/hooks/x",
        "mv sub/x .git/hooks/post-checkout",
        "git config core.fsmonitor 'touch x'",
        "git config user.name x",
        "echo '[core]' >> .git/config",
        "python3 -c 'open(\".git/config\", \"r+\").write(\"x\")'",
        "python3 -c 'import os; os.open(\".git/config\", os.O_WRONLY)'",
        "python3 -c 'import os; f=os.open(\".git/config\", 0); os.open(f\"/proc/self/fd/{f}\", os.O_RDWR)'",
        "exec 7< .git/config; echo x > /proc/self/fd/7",
        "exec 7< .git/config; echo x > /dev/fd/7",
        "exec 7< .git/config; echo x > /proc/$$/fd/7",
        "ln .git/config c2",
        "echo ../sub > .git/commondir",
        "mkdir -p sub/objects sub/refs; echo 'ref: refs/heads/x' > sub/HEAD; r=$?; rmdir sub/objects sub/refs; exit $r",
        "mkdir -p sub/objects; echo x > sub/HEAD; mkdir sub/refs; r=$?; rm -r sub/objects sub/HEAD; exit $r",
        "mkdir -p sub/objects sub/refs; echo x > sub/h; mv sub/h sub/HEAD; r=$?; rm -r sub/objects sub/refs sub/h; exit $r",
        "mkdir .claude",
        "mkdir -p .claude/commands",
        "mkdir -p sub/.claude",
        "echo '{}' > .mcp.json",
        "echo '{}' > ./sub/../.mcp.json",
        "cd sub; echo '{}' > ../.mcp.json",
        "echo x > AGENTS.md",
        "echo x > sub/AGENTS.md",
        "ln -s AGENTS.md.txt AGENTS.md",
        "ln AGENTS.md.txt AGENTS.md",
        "mv AGENTS.md.txt AGENTS.md",
        "mkfifo AGENTS.md",
        "python3 -c 'import socket; socket.socket(1, 1).bind(\"AGENTS.md\")'",
        "mkdir .github/workflows",
        "mkdir w && mv w .github/workflows; r=$?; rmdir w; exit $r",
        "mkdir -p x w/workflows && mv -T w x/.github; r=$?; rm -r w x; exit $r",
        "ln -s /tmp .github/workflows",
        "mkdir .vscode; echo x > .vscode/tasks.json; r=$?; rmdir .vscode; exit $r",
        "echo x > .envrc; test -e .envrc",
        "python3 -c 'import os,ctypes,sys; f=os.open(\".\", os.O_TMPFILE|os.O_RDWR); sys.exit(-ctypes.CDLL(None).linkat(-100, b\"/proc/self/fd/%d\" % f, -100, b\".bashrc\", 0x400))'",
        "ln -s .npmrc l; echo x > l; r=$?; rm l; exit $r",
        "ln -s sub l; mkdir l/.cursor; r=$?; rm l; exit $r",
        "python3 -c 'import ctypes; L=ctypes.CDLL(None); import sys; sys.exit(0 if L.creat(b\".npmrc\", 0o644) >= 0 else 1)'",
        "python3 -c 'import ctypes,sys; h=(ctypes.c_uint64*3)(0o1101,0o755,8); sys.exit(0 if ctypes.CDLL(None).syscall(437,-100,b\".git/hooks/pre-push\",h,24)>=0 else 1)'",
        "python3 -c 'import ctypes,sys; h=(ctypes.c_uint64*3)(2,0,0); sys.exit(0 if ctypes.CDLL(None).syscall(437,-100,b\".git/config\",h,24)>=0 else 1)'",
        "python3 -c 'import ctypes,sys; L=ctypes.CDLL(None); sys.exit(0 if L.renameat2(-100, b\"AGENTS.md.txt\", -100, b\"SOUL.md\", 1) == 0 else 1)'",
        "python3 -c 'import ctypes,sys; L=ctypes.CDLL(None); sys.exit(0 if L.renameat2(-100, b\".git\", -100, b\"sub\", 2) == 0 else 1)'",
        "git init -q --separate-git-dir=gd other 2>/dev/null; mv other/.git .git; r=$?; rm -rf gd other; exit $r",
        "git init -q other; git -C other config core.pager 'sh -c x'; r=$?; rm -rf other; exit $r",
        "git init -q other; echo x > other/.git/hooks/pre-commit; r=$?; rm -rf other; exit $r",
        "git init -q other; cp sub/x other/.git/hooks/y.sample; mv other/.git/hooks/y.sample other/.git/hooks/y; r=$?; rm -rf other; exit $r",
        "git init -q other; mkdir other/h; mv -T other/h other/.git/hooks; r=$?; rm -rf other; exit $r",
        "git init -q other; echo x > other/AGENTS.md; mv other/AGENTS.md .; r=$?; rm -rf other; exit $r",
        "git init -q other; mkdir -p other/d/.claude; mv other/d d; r=$?; rm -rf other; exit $r",
        "mkdir -p node_modules/p/.claude; mv node_modules/p p; r=$?; rm -rf node_modules; exit $r",
        "rm .git/config",
        "rm -rf .git/hooks; test ! -e .git/hooks",
        "python3 -c 'import os; os.truncate(\".git/config\", 0)'",
        "mkdir .git/x; echo x > .git/x/CLAUDE.md; mv .git/x y; r=$?; rm -rf .git/x; exit $r",
        "git init -q other; mkdir -p other/.claude/d; echo x > other/.claude/d/CLAUDE.md; mv other/.claude other/c && mv other/c/d d; r=$?; rm -rf other; exit $r",
        "git init -q --bare b.git; git -C b.git config core.pager 'sh -c x'; r=$?; rm -rf b.git; exit $r",
        "git init -q --bare b.git; exec 7>>b.git/config; r=$?; rm -rf b.git; exit $r",
        "git init -q --bare b.git; echo ../x > b.git/commondir; r=$?; rm -rf b.git; exit $r",
        "git init -q other; cd other; mv .git g; echo x > g/hooks/pre-commit; mv g .git; r=$?; cd ..; rm -rf other; exit $r",
    ];
    for attempt in attempts {
        let ran = lab.bash(attempt);
        assert!(!ran.output.status.success(), "through: {attempt}\n{}", ran.stdout());
        assert!(ran.summary.refused > 0, "not refused: {attempt}\n{}", ran.stderr());
        let after = super::all_paths(&lab.work());
        let new: Vec<_> = after.iter().filter(|path| !before.contains(path)).collect();
        assert!(new.is_empty(), "{attempt}: {new:?}");
    }
    assert!(!lab.read(".git/config").contains("fsmonitor"));
}

#[test]
fn a_refusal_tells_what_and_why() {
    let lab = Lab::new();
    let ran = lab.bash("mkdir -p a/b; ln -s a/b l; echo x > l/.npmrc");
    let refusal = &ran.refusals[0];
    assert_eq!(refusal.path, lab.work().join("a/b/.npmrc"));
    assert_eq!((refusal.call, refusal.rule.as_str()), ("open", "`.npmrc` is protected"));
    assert_eq!(refusal.comm, "bash");
    assert!(ran.stderr().contains("Permission denied"), "{}", ran.stderr());
}

/// Settings that are moved into place are the ones that were looked at.
#[test]
fn settings_cannot_be_changed_behind_our_back() {
    let lab = Lab::new();
    let ran = lab.bash(
        "git init -q r; cd r/.git
         python3 - <<'E'
import os
f = os.open('mine', os.O_RDWR | os.O_CREAT, 0o644)
os.write(f, b'[core]\\n\\tbare = false\\n')
os.rename('mine', 'config')
os.write(f, b'[core]\\n\\tsshCommand = x\\n')
assert b'ssh' not in open('config', 'rb').read()
assert not os.path.exists('mine')
try:
    os.open('config', os.O_RDWR)
    raise SystemExit('opened')
except PermissionError:
    pass
E",
    );
    ran.succeeded();
    assert_eq!(lab.read("r/.git/config"), "[core]\n\tbare = false\n");
    let repository = &ran.summary.repositories[0];
    assert_eq!((&repository.path, repository.executes.len()), (&lab.work().join("r"), 0));
}

#[test]
fn free_places_are_free_and_workspaces_in_them_are_not() {
    let mut lab = Lab::new();
    lab.put("cache/x", "");
    lab.put("cache/ws/x", "");
    let cache = lab.work().join("cache");
    lab.names = lab.names.free(&cache).root(cache.join("ws"));
    lab.bash("echo x > cache/AGENTS.md && mkdir cache/.claude").succeeded();
    let ran = lab.bash("echo x > cache/ws/AGENTS.md");
    assert!(!ran.output.status.success() && !lab.has("cache/ws/AGENTS.md"));
    // What came into being there is not moved to where it may not be.
    lab.bash("mkdir -p cache/d/.claude && git init -q cache/r && echo x > cache/r/.git/hooks/x")
        .succeeded();
    for what in ["d", "r"] {
        let ran = lab.bash(&format!("mv cache/{what} ."));
        assert!(!ran.output.status.success() && !lab.has(what), "{what}");
    }
}

/// What is there, and protected, does not go.
#[test]
fn protected_files_are_not_removed() {
    let lab = Lab::new();
    for name in [
        "AGENTS.md",
        ".claude/settings.json",
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        "x/.env",
    ] {
        lab.put(name, "mine");
    }
    for attempt in [
        "rm AGENTS.md",
        "rm -f ./x/../AGENTS.md",
        "rm .claude/settings.json",
        "rm -rf .claude; test ! -e .claude",
        "rm -r .github/workflows",
        "rm -rf .vscode; test ! -e .vscode/tasks.json",
        "python3 -c 'import os; os.truncate(\"AGENTS.md\", 0)'",
        "python3 -c 'import os; os.unlink(\"x/.env\")'",
        "truncate -s 0 AGENTS.md",
    ] {
        let ran = lab.bash(attempt);
        assert!(!ran.output.status.success(), "through: {attempt}");
        assert!(ran.summary.refused > 0, "not refused: {attempt}\n{}", ran.stderr());
    }
    for name in [
        "AGENTS.md",
        ".claude/settings.json",
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        "x/.env",
    ] {
        assert_eq!(lab.read(name), "mine", "{name}");
    }
}

/// Names of a repository that is none any more are still told of.
#[test]
fn what_is_left_of_a_repository_is_listed() {
    let lab = Lab::new();
    let ran = lab.bash("git init -q a/x && echo x > a/x/CLAUDE.md && rm -rf a/x/.git && mv a b");
    assert!(!ran.output.status.success() && lab.has("a/x/CLAUDE.md"));
    let listed = &ran.summary.repositories;
    assert_eq!((listed.len(), &listed[0].path), (1, &lab.work().join("a/x")));
    assert_eq!(listed[0].holds, ["CLAUDE.md"]);
    // Whole, it moves and is listed where it is.
    let ran = lab.bash("git init -q y && echo x > y/CLAUDE.md && mv y z && mkdir d && mv z d/z");
    ran.succeeded();
    assert_eq!(ran.summary.repositories[0].path, lab.work().join("d/z"));
    assert_eq!(ran.summary.repositories[0].holds, ["CLAUDE.md"]);
}
