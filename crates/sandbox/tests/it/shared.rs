//! What a program shares with all that runs as the same user where there are no namespaces: other processes, memory,
//! and what files outside are like. Each attack is a script; one that ends with 0 has got through.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::degraded::{as_in_a_container, has_python, without_namespaces, without_namespaces_and};
use crate::lab::{Lab, NOBODY, is_root, skipped, users};

/// Runs a piece of Python in which `L` is the C library, `V` another process, and `call` ends with success if a call has it.
fn python(code: &str) -> String {
    format!(
        "python3 -c '
import ctypes, os, resource, sys
L = ctypes.CDLL(None, use_errno=True)
V, B = int(os.environ[\"VICTIM\"]), ctypes.create_string_buffer(256)
H, O = os.environ[\"H\"], os.environ[\"OUT\"]
F = O + \"/victim.txt\"
def call(*all):
    r = L.syscall(*[a if isinstance(a, (bytes, type(B), type(None))) else ctypes.c_long(a) for a in all])
    if r < 0: sys.exit(1)
    return r
{code}'"
    )
}

/// Calls on other processes of the user. None of them does harm to the one that is there for it.
fn on_processes() -> Vec<(&'static str, String)> {
    let (ioprio, attributes) = (libc::SYS_ioprio_set, libc::SYS_sched_setattr);
    // The size of what is given, and SCHED_IDLE.
    let idle = r#"ctypes.memmove(B, bytes([48, 0, 0, 0, 5]), 5)"#;
    let all = [
        (
            "a limit of another",
            "resource.prlimit(V, resource.RLIMIT_FSIZE, (1 << 40, 1 << 40))".to_owned(),
        ),
        (
            "priority of another",
            "os.setpriority(os.PRIO_PROCESS, V, os.getpriority(0, V))".to_owned(),
        ),
        (
            "priority of its group",
            "os.setpriority(os.PRIO_PGRP, os.getpgid(V), os.getpriority(0, V))".to_owned(),
        ),
        (
            "priority of the user",
            "os.setpriority(os.PRIO_USER, 0, os.getpriority(0, V))".to_owned(),
        ),
        ("priority of input and output", format!("call({ioprio}, 1, V, 2 << 13 | 7)")),
        ("processors of another", "os.sched_setaffinity(V, os.sched_getaffinity(V))".to_owned()),
        (
            "way of another",
            "os.sched_setscheduler(V, os.SCHED_BATCH, os.sched_param(0))".to_owned(),
        ),
        ("setting of another", "os.sched_setparam(V, os.sched_param(0))".to_owned()),
        ("both of another", format!("{idle}; call({attributes}, V, B, 0)")),
    ];
    all.into_iter().map(|(name, code)| (name, python(&code))).collect()
}

/// Memory, queues and counters that all of the user's programs share.
fn on_memory() -> Vec<(&'static str, String)> {
    let (memory, queue, counters) = (libc::SYS_shmget, libc::SYS_msgget, libc::SYS_semget);
    let (memory_end, queue_end, counters_end) =
        (libc::SYS_shmctl, libc::SYS_msgctl, libc::SYS_semctl);
    let (open, unlink) = (libc::SYS_mq_open, libc::SYS_mq_unlink);
    let all = [
        (
            "shared memory",
            format!("i = call({memory}, 0, 4096, 0o600); call({memory_end}, i, 0, None)"),
        ),
        ("a queue", format!("call({queue_end}, call({queue}, 0, 0o600), 0, None)")),
        ("counters", format!("call({counters_end}, call({counters}, 0, 1, 0o600), 0, 0)")),
        (
            "a queue by a name",
            format!(
                "n = b\"wk-%d\" % os.getpid(); call({open}, n, 66, 0o600, None); call({unlink}, n)"
            ),
        ),
    ];
    all.into_iter().map(|(name, code)| (name, python(&code))).collect()
}

fn kernel() -> (u32, u32) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|one| one.parse().ok());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

/// What changes files outside, or protected ones, in other ways than by what is in them.
fn on_files() -> Vec<(&'static str, String)> {
    let (mode, owner, times) = (libc::SYS_fchmodat2, libc::SYS_fchownat, libc::SYS_utimensat);
    let mut all: Vec<(&str, String)> = [
        ("a mode", "os.chmod(F, 0o666)"),
        ("a mode of a folder", "os.chmod(O, 0o777)"),
        ("a mode in the home", "os.chmod(H + \"/.ssh/id_rsa\", 0o666)"),
        ("a mode of a folder in the home", "os.chmod(H + \"/.ssh\", 0o777)"),
        ("a mode of the home", "os.chmod(H, 0o777)"),
        ("a mode by a descriptor", "os.fchmod(os.open(F, os.O_RDONLY), 0o666)"),
        ("a mode by a path of a descriptor", "os.chmod(\"/proc/self/fd/%d\" % os.open(F, os.O_PATH), 0o666)"),
        ("a mode by /dev/fd", "os.chmod(\"/dev/fd/%d\" % os.open(F, os.O_PATH), 0o666)"),
        ("a mode by a folder", "os.chmod(\"victim.txt\", 0o666, dir_fd=os.open(O, os.O_PATH))"),
        ("a mode by a folder's path", "os.chmod(\"/proc/self/fd/%d/victim.txt\" % os.open(O, os.O_PATH), 0o666)"),
        ("a mode by dots", "os.chmod(\"sub/../../outside/victim.txt\", 0o666)"),
        ("a mode by a link", "os.symlink(F, \"l\") if not os.path.lexists(\"l\") else 0; os.chmod(\"l\", 0o666)"),
        ("a mode by a link to a folder", "os.symlink(O, \"d\") if not os.path.lexists(\"d\") else 0; os.chmod(\"d/victim.txt\", 0o666)"),
        ("a mode by the own root", "os.chmod(\"/proc/self/root\" + F, 0o666)"),
        ("a mode of what a mask shows", "os.chmod(\".env\", 0o666)"),
        ("a mode of a protected file", "os.chmod(\"AGENTS.md\", 0o777)"),
        ("a mode of a protected file, by a descriptor", "os.fchmod(os.open(\"AGENTS.md\", os.O_RDONLY), 0o777)"),
        ("a mode of git's settings", "os.chmod(\".git/config\", 0o666)"),
        ("a mode of a hook", "os.chmod(\".git/hooks/pre-commit\", 0o777)"),
        ("a mode of a hook of a repository without .git", "os.chmod(\"bare/hooks/pre-commit\", 0o777)"),
        ("a time", "os.utime(F, (1, 1))"),
        ("a time by a descriptor", "os.utime(os.open(F, os.O_RDONLY), (1, 1))"),
        ("a time, now", "os.utime(F)"),
        ("a time of a link", "os.symlink(\"x\", H + \"/l\") if not os.path.lexists(H + \"/l\") and False else os.utime(O + \"/link\", (1, 1), follow_symlinks=False)"),
        ("a time of a protected file", "os.utime(\"AGENTS.md\", (1, 1))"),
        ("an owner", "os.chown(F, os.getuid(), os.getgid())"),
        ("an owner by a descriptor", "os.fchown(os.open(F, os.O_RDONLY), os.getuid(), -1)"),
        ("an owner of a link", "os.lchown(O + \"/link\", os.getuid(), -1)"),
        ("an attribute", "os.setxattr(F, \"user.x\", b\"1\"); os.removexattr(F, \"user.x\")"),
        ("an attribute by a descriptor", "f = os.open(F, os.O_RDONLY); os.setxattr(f, \"user.x\", b\"1\"); os.removexattr(f, \"user.x\")"),
    ]
    .into_iter()
    .map(|(name, code)| (name, code.to_owned()))
    .collect();
    // Older kernels do not know that call.
    if kernel() >= (6, 6) {
        all.extend([
            (
                "a mode by an empty path",
                format!("call({mode}, os.open(F, os.O_PATH), b\"\", 0o666, 0x1000)"),
            ),
            ("a mode without links", format!("call({mode}, -100, F.encode(), 0o666, 0x100)")),
        ]);
    }
    all.extend([
        (
            "an owner by an empty path",
            format!("call({owner}, os.open(F, os.O_PATH), b\"\", os.getuid(), -1, 0x1000)"),
        ),
        (
            "a time by an empty path",
            format!("call({times}, os.open(F, os.O_PATH), b\"\", None, 0x1000)"),
        ),
    ]);
    #[cfg(target_arch = "x86_64")]
    all.extend([
        ("a mode by the old call", format!("call({}, F.encode(), 0o666)", libc::SYS_chmod)),
        ("a time by the old call", format!("call({}, F.encode(), None)", libc::SYS_utime)),
        ("times by the old call", format!("call({}, F.encode(), None)", libc::SYS_utimes)),
        (
            "times by another old call",
            format!("call({}, -100, F.encode(), None)", libc::SYS_futimesat),
        ),
        (
            "an owner by the old call",
            format!("call({}, F.encode(), os.getuid(), -1)", libc::SYS_chown),
        ),
        (
            "an owner of a link by the old call",
            format!("call({}, (O + \"/link\").encode(), os.getuid(), -1)", libc::SYS_lchown),
        ),
    ]);
    all.into_iter().map(|(name, code)| (name, python(&code))).collect()
}

fn attacks() -> Vec<(&'static str, String)> {
    [on_processes(), on_memory(), on_files()].concat()
}

fn driver() -> String {
    let tried = |(name, script): (&str, String)| {
        format!("if ( {script} ) >/dev/null 2>&1; then echo \"through: {name}\"; fi\n")
    };
    attacks().into_iter().map(tried).collect::<String>() + "echo all-done"
}

fn lab() -> Lab {
    let lab = Lab::new(NOBODY);
    std::os::unix::fs::symlink("victim.txt", lab.at("outside/link")).unwrap();
    std::fs::write(lab.at("ws/.git/hooks/pre-commit"), "EVIL\n").unwrap();
    for name in ["bare/objects", "bare/refs", "bare/hooks"] {
        std::fs::create_dir_all(lab.at("ws").join(name)).unwrap();
    }
    for name in ["bare/HEAD", "bare/config", "bare/hooks/pre-commit"] {
        std::fs::write(lab.at("ws").join(name), "x\n").unwrap();
    }
    lab.give();
    lab
}

/// Another process of the user, for as long as this lives.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").uid(NOBODY).gid(NOBODY).process_group(0).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Mode, owner and times of what no attack may change.
fn outside(lab: &Lab) -> Vec<(String, u32, u32, i64, i64)> {
    let all =
        ["outside", "outside/victim.txt", "outside/link", "home", "home/.ssh", "home/.ssh/id_rsa"];
    let inside =
        ["ws/AGENTS.md", "ws/.git/config", "ws/.git/hooks/pre-commit", "ws/bare/hooks/pre-commit"];
    let told = |name: &&str| {
        let found = lab.at(name).symlink_metadata().unwrap();
        ((*name).to_owned(), found.mode(), found.uid(), found.mtime(), found.ctime_nsec())
    };
    all.iter().chain(&inside).map(told).collect()
}

#[test]
fn without_namespaces_nothing_is_done_to_others_of_the_user() {
    if !is_root() || !has_python() {
        return skipped("needs root to forbid user namespaces, and python3");
    }
    let (lab, victim) = (lab(), Victim::new());
    let before = outside(&lab);
    let (pid, read) = (victim.0.id().to_string(), lab.at("outside").display().to_string());
    let variables = [("VICTIM", pid.as_str()), ("WARDKEEP_TEST_READ", read.as_str())];
    let (code, told) = without_namespaces_and(&lab, &driver(), Some("namespaces"), &variables);
    assert!(code == 0 && told.contains("all-done"), "{told}");
    let through: Vec<_> = told.lines().filter(|line| line.starts_with("through")).collect();
    assert!(through.is_empty(), "{through:#?}");
    assert_eq!(outside(&lab), before);
}

#[test]
fn the_attacks_on_others_are_real() {
    if !is_root() || !has_python() {
        return skipped("needs root to be another user, and python3");
    }
    let (lab, victim) = (lab(), Victim::new());
    let mut command = Command::new("bash");
    command.args(["-c", &driver()]).uid(NOBODY).gid(NOBODY).current_dir(lab.at("ws"));
    for (name, folder) in [("H", "home"), ("OUT", "outside"), ("WS", "ws")] {
        command.env(name, lab.at(folder));
    }
    let done = command.env("VICTIM", victim.0.id().to_string()).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    // Other tests run as the same user, some of them with less of a priority.
    for (name, script) in attacks().into_iter().filter(|one| one.0 != "priority of the user") {
        assert!(told.contains(&format!("through: {name}\n")), "{name}: {script}");
    }
}

/// A path that changes while it is looked at leads to nothing else than what is changed.
#[test]
fn what_is_changed_is_what_was_looked_at() {
    if !is_root() || !has_python() {
        return skipped("needs root to forbid user namespaces, and python3");
    }
    let lab = lab();
    std::fs::set_permissions(lab.at("outside/victim.txt"), std::fs::Permissions::from_mode(0o600))
        .unwrap();
    let script = "echo x > plain; cat > swap.py <<'E'
import ctypes, os, threading, time
L = ctypes.CDLL(None, use_errno=True)
paths = [os.environ['WS'] + '/plain', os.environ['OUT'] + '/victim.txt']
B = ctypes.create_string_buffer(512)
stop = False
def swap():
    while not stop:
        for path in paths: ctypes.memmove(B, path.encode() + b'\\0', len(path) + 1)
def link():
    while not stop:
        for path in paths:
            os.symlink(path, 'n'); os.rename('n', 'l')
for work in (swap, link): threading.Thread(target=work).start()
end, inside = time.time() + 3, 0
while time.time() < end:
    inside += L.chmod(B, 0o666) == 0
    inside += L.chmod(b'l', 0o666) == 0
stop = True
print('inside', inside > 0)
E
python3 swap.py; stat -c %a plain";
    let (_, told) = without_namespaces(&lab, script, Some("namespaces"));
    assert!(told.contains("inside True\n666\n"), "{told}");
    let found = std::fs::metadata(lab.at("outside/victim.txt")).unwrap();
    assert_eq!(found.mode() & 0o777, 0o600);
}

/// What ordinary programs do to themselves and to what is theirs.
const ORDINARY: &str = r#"
    set -e
    echo x > f; chmod 640 f; test $(stat -c %a f) = 640
    chmod u+x,g-r f; test $(stat -c %a f) = 700; mkdir d; chmod 750 d .; test $(stat -c %a d) = 750; chmod 755 .
    touch -d 2001-02-03 f; test $(date -r f +%Y) = 2001; touch f; test $(date -r f +%Y) != 2001
    touch -d 2002-02-03 -h l2 2>/dev/null || ln -s f l2; touch -h -d 2002-02-03 l2; test $(stat -c %y l2 | cut -c1-4) = 2002
    chown $(id -u):$(id -g) f; cp -p f g; test $(stat -c %a g) = 700; cp -a d e; test $(stat -c %a e) = 750
    install -m 600 f h; test $(stat -c %a h) = 600; install -d -m 711 i; test $(stat -c %a i) = 711
    touch -d 2003-02-03 f; tar -cf t.tar f d l2; mkdir new; tar -xpf t.tar -C new
    test $(stat -c %a new/f) = 700; test $(stat -c %a new/d) = 750; test $(date -r new/f +%Y) = 2003
    ! chmod 666 AGENTS.md; chmod 700 $TMPDIR; t=$(mktemp); chmod 644 $t
    python3 - <<'E'
import os, resource, shutil, tempfile, threading
os.fchmod(os.open('f', os.O_RDONLY), 0o604); assert os.stat('f').st_mode & 0o777 == 0o604
os.chmod('/proc/self/fd/%d' % os.open('f', os.O_PATH), 0o605); assert os.stat('f').st_mode & 0o777 == 0o605
os.utime('f', ns=(5, 7)); assert os.stat('f').st_mtime_ns == 7
os.utime(os.open('f', os.O_RDONLY), ns=(5, 9)); assert os.stat('f').st_mtime_ns == 9
with tempfile.TemporaryFile() as file: os.fchmod(file.fileno(), 0o600)
os.fchmod(os.memfd_create('m', 0), 0o600)
shutil.copytree('d', 'copied'); shutil.copy2('f', 'copied/f')
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)
os.nice(1); os.setpriority(os.PRIO_PROCESS, os.getpid(), 19); os.sched_setaffinity(0, {0}); os.sched_setaffinity(os.getpid(), {0})
thread = threading.Thread(target=lambda: os.sched_setaffinity(threading.get_native_id(), {0})); thread.start(); thread.join()
E
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    git init -q r; cd r; test $(git config core.filemode) = true; cp ../g x; git add x; git commit -qm one
    git ls-files -s | grep -q ^100755; git checkout -q -b other; chmod -x x; git commit -qam two; git checkout -q -
    test -x x; git gc -q; git clone -q . ../cloned; git init -q --bare ../new.git; git -C ../new.git fsck; cd ..
"#;

#[test]
fn without_namespaces_ordinary_programs_work() {
    if !is_root() || !has_python() {
        return skipped("needs root to forbid user namespaces, and python3");
    }
    let lab = lab();
    let script = format!("exec 2>&1\n{ORDINARY}\necho all-done");
    let (code, told) = without_namespaces(&lab, &script, Some("namespaces"));
    assert!(code == 0 && told.contains("all-done\n"), "{told}");
}

#[test]
fn in_a_container_ordinary_programs_work() {
    if !has_python() {
        return skipped("needs python3 to deny system calls");
    }
    for uid in users() {
        let lab = Lab::new(uid);
        let script = format!("exec 2>&1\n{ORDINARY}\necho all-done");
        let (code, told) = as_in_a_container(&lab, &script, "namespaces");
        assert!(code == 0 && told.contains("all-done\n"), "as user {uid}: {told}");
    }
}

/// Whether a program is there for whoever is confined.
fn has(program: &str) -> bool {
    ["/usr/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}

#[test]
fn without_namespaces_packages_are_installed() {
    if !has_python() || !has("npm") {
        return skipped("needs python3 and npm");
    }
    let script = r#"exec 2>&1; set -e
        export npm_config_update_notifier=false npm_config_loglevel=error npm_config_cache=$TMPDIR/npm HOME=$TMPDIR
        mkdir -p p app; echo '{"name":"p","version":"1.0.0","bin":{"p":"b.js"}}' > p/package.json
        echo '#!/usr/bin/env node' > p/b.js; (cd p; npm pack > /dev/null)
        cd app; echo '{"name":"app","version":"1.0.0"}' > package.json
        npm install --offline --no-audit --no-fund ../p/p-1.0.0.tgz; rm -rf node_modules; npm ci --offline --no-audit --no-fund
        test -x node_modules/p/b.js; cd ..
        python3 - <<'E'
import zipfile
with zipfile.ZipFile('one-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('one/__init__.py', 'value = 1\n')
    wheel.writestr('one-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: one\nVersion: 1.0\n')
    wheel.writestr('one-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('one-1.0.dist-info/entry_points.txt', '[console_scripts]\none = one:main\n')
    wheel.writestr('one-1.0.dist-info/RECORD', '')
E
        python3 -m pip install -q --no-index --no-input --disable-pip-version-check --target lib ./one-1.0-py3-none-any.whl
        test -x lib/bin/one; echo all-done"#;
    for uid in users() {
        let lab = Lab::new(uid);
        let (code, told) = as_in_a_container(&lab, script, "namespaces");
        assert!(code == 0 && told.contains("all-done\n"), "as user {uid}: {told}");
    }
}
