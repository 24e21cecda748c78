//! What works as it did.

use std::process::Command;

use super::Lab;
use crate::skip::skip;

#[test]
fn git_works() {
    let lab = Lab::new();
    lab.put("origin-work/CLAUDE.md", "x");
    lab.put("origin-work/.github/workflows/ci.yml", "x");
    lab.put("origin-work/src/a", "x");
    lab.bare(Command::new("bash").args([
        "-c",
        "cd origin-work && git init -q -b main . && git add -A && git commit -qm one && cd .. \
         && git clone -q --bare origin-work origin.git && git init -q -b main .",
    ]));
    let ran = lab.bash(
        "set -e
         git init -q --bare bare.git
         git init -q fresh; echo a > fresh/a; git -C fresh add a; git -C fresh commit -qm a
         git clone -q origin.git clone
         cd clone; echo b > b; git add b; git commit -qm b; git checkout -q -b x; git branch -m y
         git config user.name someone; git remote add other ../fresh; git fetch -q other
         git worktree add -q ../tree main; cd ../tree; echo c > c; git add c; git commit -qm c
         cd ../clone; git gc -q; git stash list; git log --oneline | wc -l
         cd ..; echo d > d; git add d; git commit -qm d; git worktree add -q wt
         git push -q origin.git HEAD:refs/heads/hooks/x 2>/dev/null || true; git status --short | head -1",
    );
    ran.succeeded();
    assert!(ran.refusals.is_empty(), "{:#?}", ran.refusals);
    assert!(lab.has("clone/CLAUDE.md") && lab.has("clone/.github/workflows/ci.yml"));
    assert!(lab.has("tree/CLAUDE.md") && lab.has("wt/.git"));
    let listed: Vec<_> = ran.summary.repositories.iter().map(|one| one.path.clone()).collect();
    assert!(listed.contains(&lab.work().join("clone")), "{listed:?}");
    assert!(listed.contains(&lab.work().join("bare.git")), "{listed:?}");
    let clone = ran.summary.repositories.iter().find(|one| one.path.ends_with("clone")).unwrap();
    assert_eq!(clone.holds, [".github/workflows", "CLAUDE.md"]);
    assert_eq!(clone.executes, Vec::<String>::new());
}

/// A rebase works, also one that is edited, as long as it executes nothing.
#[test]
fn a_rebase_works() {
    let lab = Lab::new();
    lab.bare(Command::new("bash").args([
        "-c",
        "git init -q -b main . && for i in 1 2 3; do echo $i > $i; git add $i; git commit -qm $i; done \
         && git checkout -q -b side HEAD~2 && echo s > s && git add s && git commit -qm s",
    ]));
    let ran = lab.bash(
        "set -e
         git rebase -q main
         GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' GIT_EDITOR=true git rebase -q -i HEAD~2
         git log --oneline | wc -l",
    );
    ran.succeeded();
    assert!(ran.stdout().ends_with("\n4\n") && ran.refusals.is_empty(), "{:#?}", ran.refusals);
    let ran = lab.bash("git rebase -q -x 'touch pwned' HEAD~2");
    assert!(!ran.output.status.success() && !lab.has("pwned"));
    assert!(ran.refusals.iter().any(|one| one.rule.contains("execute")), "{:#?}", ran.refusals);
}

/// The same battery of calls gives the same answers with and without.
#[test]
fn answers_are_those_of_the_kernel() {
    const SCRIPT: &str = r#"
import ctypes, errno, os, socket, stat, sys, fcntl, threading, select
L = ctypes.CDLL(None, use_errno=True)
def t(name, f):
    try:
        r = f()
    except OSError as e:
        r = errno.errorcode.get(e.errno, e.errno)
    print(name, r)
os.umask(0o027)
def mode(p): return oct(os.lstat(p).st_mode)
def mk(p, flags, m=0o666):
    f = os.open(p, flags, m)
    r = (oct(os.fstat(f).st_mode), fcntl.fcntl(f, fcntl.F_GETFD), fcntl.fcntl(f, fcntl.F_GETFL) & ~0o100000)
    os.close(f)
    return r
W, C, X = os.O_WRONLY, os.O_CREAT, os.O_EXCL
t('new', lambda: mk('a', W|C|X))
t('again', lambda: mk('a', W|C|X))
t('open', lambda: mk('a', W|C|os.O_APPEND))
t('rdwr', lambda: mk('a', os.O_RDWR))
t('ro', lambda: mk('b', os.O_RDONLY|C, 0o777))
t('nonblock', lambda: mk('b', W|C|os.O_NONBLOCK))
t('sync', lambda: mk('b', W|C|os.O_SYNC))
t('suid', lambda: mk('s', W|C, 0o4755))
t('missing', lambda: mk('no/a', W|C))
t('nowrite', lambda: mk('nofile', W))
t('notdir', lambda: mk('a/b', W|C))
t('slash', lambda: mk('new/', W|C))
t('empty', lambda: mk('', W|C))
t('dot', lambda: mk('.', W|C))
t('dotdot', lambda: mk('..', W|C))
t('root', lambda: mk('/', W|C))
t('dir', lambda: mk('.', os.O_RDWR))
t('long', lambda: mk('x'*256, W|C))
t('verylong', lambda: mk('x/'*3000, W|C))
t('tmpfile', lambda: mk('.', os.O_TMPFILE|os.O_RDWR, 0o666))
t('tmpfile-file', lambda: mk('a', os.O_TMPFILE|os.O_RDWR))
t('tmpfile-ro', lambda: mk('.', os.O_TMPFILE))
t('path', lambda: mk('a', os.O_PATH|C)[1])
t('path-missing', lambda: mk('zz', os.O_PATH|C))
os.symlink('target', 'dangling'); os.symlink('dangling', 'two'); os.symlink('loop', 'loop')
os.symlink('a', 'la'); os.symlink('d', 'ld'); os.symlink(os.getcwd()+'/abs', 'labs')
t('nofollow', lambda: mk('la', W|C|os.O_NOFOLLOW))
t('excl-link', lambda: mk('dangling', W|C|X))
t('follow', lambda: mk('two', W|C)); t('made', lambda: mode('target'))
t('labs', lambda: mk('labs', W|C)); t('abs', lambda: mode('abs'))
t('loop', lambda: mk('loop', W|C))
t('mkdir', lambda: os.mkdir('d', 0o777)); t('mode', lambda: mode('d'))
t('mkdir again', lambda: os.mkdir('d')); t('mkdir slash', lambda: os.mkdir('d2/'))
t('mkdir dangling', lambda: os.mkdir('dangling2/x')); t('mkdir dot', lambda: os.mkdir('.'))
t('mkdir sticky', lambda: os.mkdir('st', 0o1777)); t('mode', lambda: mode('st'))
t('in dir', lambda: mk('ld/x', W|C))
t('fifo', lambda: os.mkfifo('f', 0o666)); t('mode', lambda: mode('f'))
t('fifo again', lambda: os.mkfifo('f'))
t('fifo nb', lambda: mk('f', W|os.O_NONBLOCK))
t('node', lambda: os.mknod('n', 0o640)); t('mode', lambda: mode('n'))
t('node dir', lambda: os.mknod('nd', stat.S_IFDIR|0o777))
t('symlink', lambda: os.symlink('q', 'a')); t('symlink', lambda: os.symlink('q', 'q')); t('rl', lambda: os.readlink('q'))
t('symlink slash', lambda: os.symlink('q', 'q9/')); t('symlink empty', lambda: os.symlink('', 'e'))
t('link', lambda: os.link('a', 'a2')); t('nlink', lambda: os.stat('a').st_nlink)
t('link again', lambda: os.link('a', 'a2')); t('link dir', lambda: os.link('d', 'd9'))
t('link link', lambda: os.link('la', 'la2', follow_symlinks=False)); t('rl', lambda: os.readlink('la2'))
t('link follow', lambda: os.link('la', 'la3', follow_symlinks=True)); t('mode', lambda: mode('la3'))
t('link missing', lambda: os.link('zz', 'zy'))
t('rename', lambda: os.rename('a2', 'a3')); t('rename missing', lambda: os.rename('zz', 'zy'))
t('rename dir', lambda: os.rename('d2', 'd3')); t('rename onto', lambda: os.rename('a3', 'd3'))
t('rename into', lambda: os.rename('d3', 'd3/x')); t('rename dot', lambda: os.rename('.', 'x'))
t('rename slash', lambda: os.rename('d3/', 'd4/')); t('rename file slash', lambda: os.rename('a3', 'a4/'))
def rn2(a, b, f):
    if L.renameat2(-100, a, -100, b, f): raise OSError(ctypes.get_errno(), '')
t('noreplace', lambda: rn2(b'a', b'b', 1)); t('exchange', lambda: rn2(b'a', b'b', 2))
t('exchange missing', lambda: rn2(b'a', b'zz', 2)); t('both', lambda: rn2(b'a', b'b', 3))
t('flag', lambda: rn2(b'a', b'b', 64))
d = os.open('d', os.O_RDONLY)
t('at', lambda: mk('../a', W|C)); t('openat', lambda: os.close(os.open('y', W|C, dir_fd=d)))
t('mkdirat', lambda: os.mkdir('z', dir_fd=d)); t('badfd', lambda: os.open('y', W|C, dir_fd=999))
t('filefd', lambda: os.open('y', W|C, dir_fd=os.open('a', 0)))
t('list', lambda: sorted(os.listdir('d')))
def fault(n, *a):
    if L.syscall(n, *a) < 0: raise OSError(ctypes.get_errno(), '')
t('fault', lambda: fault(2, ctypes.c_void_p(8), W|C, 0)); t('fault', lambda: fault(83, ctypes.c_void_p(1<<40), 0))
t('fault', lambda: fault(2, ctypes.c_void_p(2**64-1), W|C, 0))
s = socket.socket(socket.AF_UNIX); t('bind', lambda: s.bind('sock')); t('mode', lambda: mode('sock'))
t('again', lambda: socket.socket(socket.AF_UNIX).bind('sock'))
t('abstract', lambda: socket.socket(socket.AF_UNIX).bind('\0wk-%d' % os.getpid()))
t('auto', lambda: len(socket.socket(socket.AF_UNIX).bind('') or 'x'))
s.listen(); c = socket.socket(socket.AF_UNIX); t('connect', lambda: c.connect('sock'))
i = socket.socket(); t('inet', lambda: i.bind(('127.0.0.1', 0))); t('port', lambda: i.getsockname()[1] > 0)
t('bindbad', lambda: fault(49, 999, ctypes.create_string_buffer(16), 16)); t('bindlen', lambda: fault(49, i.fileno(), ctypes.create_string_buffer(16), 1))
t('sock open', lambda: mk('sock', W))
def reader():
    with open('f') as f: print('pipe', f.read())
h = threading.Thread(target=reader); h.start()
with open('f', 'w') as f: f.write('through')
h.join()
t('null', lambda: mk('/dev/null', W|C)[0]); t('full', lambda: open('/dev/full', 'w').write('') )
t('dev', lambda: mk('/dev/nothere/x', W|C))
r, w = os.pipe()
t('procfd', lambda: os.write(os.open('/proc/self/fd/%d' % w, W|C), b'x')); t('read', lambda: os.read(r, 9))
t('stdout', lambda: os.close(os.open('/dev/stdout', W|C)))
t('procfd trunc', lambda: os.ftruncate(os.open('/proc/self/fd/%d' % os.open('a', 0), os.O_RDWR), 0))
def lk(f):
    if L.linkat(-100, b'/proc/self/fd/%d' % f, -100, b'linked', 0x400): raise OSError(ctypes.get_errno(), '')
t('tmp linkat', lambda: lk(os.open('.', os.O_TMPFILE|os.O_RDWR, 0o666))); t('mode', lambda: mode('linked'))
t('tmp link', lambda: os.link('/proc/self/fd/%d' % os.open('.', os.O_TMPFILE|os.O_RDWR, 0o666), 'linked2', follow_symlinks=True))
def threads():
    def many(k):
        for j in range(50): os.close(os.open('t%d-%d' % (k, j), W|C|X))
    hs = [threading.Thread(target=many, args=(k,)) for k in range(16)]
    [h.start() for h in hs]; [h.join() for h in hs]
    return len([n for n in os.listdir('.') if n.startswith('t') and '-' in n])
t('threads', threads)
os.chmod('d', 0o555)
t('done', lambda: None)
"#;
    let bare = Lab::new();
    let expected = bare.bare(Command::new("python3").args(["-c", SCRIPT]));
    let lab = Lab::new();
    let ran = lab.run(Command::new("python3").args(["-c", SCRIPT]));
    assert!(ran.stdout().contains("done None"), "{}", ran.stderr());
    let expected = String::from_utf8_lossy(&expected.stdout).into_owned();
    let got = ran.stdout();
    let differ: Vec<(&str, &str)> =
        expected.lines().zip(got.lines()).filter(|(one, other)| one != other).collect();
    assert!(differ.is_empty() && expected.lines().count() == got.lines().count(), "{differ:#?}");
    assert!(ran.refusals.is_empty(), "{:#?}", ran.refusals);
    assert!(ran.summary.calls > 800, "{}", ran.summary.calls);
}

#[test]
fn packages_may_be_as_they_were_packed() {
    let lab = Lab::new();
    lab.bash(
        "mkdir -p node_modules/p/.github/workflows && echo x > node_modules/p/.npmrc \
         && echo x > node_modules/p/AGENTS.md && mkdir -p v/site-packages/p/.vscode \
         && echo x > v/site-packages/p/.vscode/settings.json",
    )
    .succeeded();
}

#[test]
fn programs_that_make_many_files_work() {
    let lab = Lab::new();
    let ran = lab.bash(
        "set -e
         mkdir src; for i in $(seq 200); do echo $i > src/$i; done
         cp -r src copy; tar cf a.tar src; mkdir out; tar xf a.tar -C out; mv out/src moved
         find . -name '1*' | sort > list; sed -i s/1/2/ src/1; gzip -k list; gunzip -c list.gz > l2
         cmp list l2; mktemp -d -p . > /dev/null; rm -r copy; ln -s moved m; cp m/5 5
         printf 'int main(void){return 0;}' > m.c; cc m.c -o m.out; ./m.out
         python3 -c 'import tempfile, sqlite3; tempfile.TemporaryFile(dir=\".\").write(b\"x\"); sqlite3.connect(\"x.db\").execute(\"create table t(a)\")'
         echo ok > /dev/stderr; echo ok > /dev/stdout; : > /dev/null",
    );
    ran.succeeded();
    assert!(ran.refusals.is_empty(), "{:#?}", ran.refusals);
    assert!(lab.has("moved/200") && lab.has("x.db") && lab.has("m.out"));
}

#[test]
fn a_terminal_is_the_callers_own() {
    let lab = Lab::new();
    if !std::path::Path::new("/usr/bin/script").exists() {
        return skip("script", "notify::ordinary::a_terminal_is_the_callers_own");
    }
    let ran = lab.bash("script -qec 'echo to-the-terminal > /dev/tty' log < /dev/null");
    ran.succeeded();
    assert!(lab.read("log").contains("to-the-terminal"), "{}", ran.stderr());
}

/// What a program that keeps its paths within a folder does; the numbers are flags and errors of x86-64.
const WITHIN: &str = r#"
import ctypes, errno, os, time
libc = ctypes.CDLL(None, use_errno=True)
BENEATH, NO_SYMLINKS, IN_ROOT = 8, 4, 16
def open2(at, path, flags, mode=0, resolve=0, size=24, more=()):
    how = (ctypes.c_uint64 * (3 + len(more)))(flags, mode, resolve, *more)
    made = libc.syscall(437, at, path.encode(), how, size)
    return made if made >= 0 else errno.errorcode[ctypes.get_errno()]
here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
made = open2(here, "lock", os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o640, BENEATH | NO_SYMLINKS)
os.write(made, b"mine")
print(oct(os.fstat(made).st_mode & 0o777), os.get_inheritable(made))
print(open2(here, "lock", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600, BENEATH))
print(os.read(open2(here, "lock", os.O_RDONLY, resolve=BENEATH), 9))
print(os.listdir(open2(here, "folder", os.O_RDONLY | os.O_DIRECTORY, resolve=BENEATH)))
print(open2(here, "../outside", os.O_RDONLY, resolve=BENEATH))
print(open2(here, "../made", os.O_CREAT | os.O_RDWR, 0o600, BENEATH))
print(open2(here, "folder/link", os.O_RDONLY, resolve=NO_SYMLINKS), open2(here, "folder/link", os.O_RDWR, resolve=BENEATH))
print(os.read(open2(here, "folder/link", os.O_RDONLY, resolve=BENEATH), 9))
print(open2(here, "no/where", os.O_RDONLY), open2(here, "lock", 0, 0o600), open2(here, "lock", 0, size=23))
print(open2(here, "lock", 0, size=32, more=(1,)), open2(here, "lock", 0, size=32, more=(0,)) >= 0)
print(open2(here, "lock", os.O_RDONLY | os.O_DIRECTORY), open2(here, "folder", os.O_RDWR))
os.mkfifo("pipe")
print(open2(here, "pipe", os.O_RDONLY) in ("EACCES",))
"#;

#[test]
fn paths_are_kept_within_a_folder_as_the_kernel_does() {
    let lab = Lab::new();
    lab.put("folder/file", "inside");
    std::os::unix::fs::symlink("file", lab.work().join("folder/link")).unwrap();
    std::fs::write(lab.folder.path().join("outside"), "out").unwrap();
    let ran = lab.run(Command::new("python3").args(["-c", WITHIN]));
    ran.succeeded();
    let expected = "0o640 False\nEEXIST\nb'mine'\n['file', 'link']\nEXDEV\nEXDEV\nELOOP ELOOP\nb'inside'\n\
                    ENOENT EINVAL EINVAL\nE2BIG True\nENOTDIR EISDIR\nTrue\n";
    let sorted = ran.stdout().replace("['link', 'file']", "['file', 'link']");
    assert_eq!(sorted, expected, "{}", ran.stderr());
    assert!(!lab.folder.path().join("made").exists());
}
