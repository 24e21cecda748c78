//! The owner is asked about files that are not shown and that a program wants to read.

use std::fs;
use std::io::BufRead as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::lab::{Lab, is_root, users};

/// Runs a script and gives the questions apart.
fn run(lab: &Lab, answers: &str, script: &str) -> (i32, String, Vec<String>) {
    let variables = [("WARDKEEP_TEST_ANSWERS", answers), ("WARDKEEP_TEST_TELL", "1")];
    let (code, out) = lab.run_with(script, &variables);
    let questions = out.lines().filter_map(|line| line.strip_prefix("denied: asked read "));
    let questions = questions.map(str::to_owned).collect();
    (code, out, questions)
}

/// A lab with a folder in the home: what is around the home is below `/var/tmp`, which is another one inside.
fn lab(uid: u32) -> Lab {
    let lab = Lab::new(uid);
    fs::create_dir(lab.at("home/far")).unwrap();
    fs::write(lab.at("home/far/victim.txt"), "CANARY\n").unwrap();
    lab.give();
    lab
}

/// Has a command run as that user.
fn as_user(command: &mut Command, uid: u32) -> &mut Command {
    if is_root() { command.uid(uid).gid(uid) } else { command }
}

fn told(out: &str) -> Vec<&str> {
    out.lines().filter(|line| line.starts_with("denied: Unshown")).collect()
}

#[test]
fn a_file_is_read_where_the_owner_says_so() {
    for uid in users() {
        let lab = lab(uid);
        fs::write(lab.at("home/other.txt"), "SECOND\n").unwrap();
        lab.give();
        let script = "cat $H/notes.txt || exit 1; cat $H/notes.txt && exit 2
            cat $H/other.txt $H/other.txt || exit 3; python3 -c 'import os; print(open(os.environ[\"H\"] + \"/other.txt\").read())'
            cat $H/far/victim.txt 2>&1; cat $H/far/victim.txt; true";
        let (code, out, questions) = run(&lab, "other.txt=session,notes.txt=first", script);
        assert_eq!(code, 0, "{out}");
        assert_eq!(out.matches("CANARY").count(), 1, "{out}");
        assert_eq!(out.matches("SECOND").count(), 3, "{out}");
        assert!(out.contains("victim.txt: No such file or directory"), "{out}");
        // Once is once; what was refused is not asked about again.
        let about = |name: &str| questions.iter().filter(|one| one.contains(name)).count();
        assert_eq!((about("notes"), about("other"), about("victim")), (2, 1, 1), "{out}");
        let refused = told(&out);
        assert!(
            refused.len() == 2 && refused.iter().any(|one| one.contains("victim.txt")),
            "{out}"
        );
        assert!(refused.iter().any(|one| one.ends_with("by cat x2")), "{out}");
    }
}

#[test]
fn a_yes_for_the_session_holds_as_soon_as_it_is_given() {
    let lab = lab(users()[0]);
    for at in 0..100 {
        fs::write(lab.at(&format!("home/far/f{at}")), "CANARY\n").unwrap();
    }
    lab.give();
    let script = "python3 - <<'E'
import os
for at in range(100):
    path = os.environ['H'] + '/far/f%d' % at
    os.open(path, 0); os.open(path, 0); os.stat(path)
E";
    let (code, out, questions) = run(&lab, "=at once", script);
    assert!(code == 0 && questions.len() == 100, "{out}");
}

#[test]
fn without_anybody_to_ask_nothing_is_there() {
    let lab = lab(users()[0]);
    let (_, out, questions) = run(&lab, "", "cat $H/notes.txt 2>&1; cat $H/far/nothing 2>&1");
    assert!(questions.len() == 1 && !out.contains("CANARY"), "{out}");
    assert!(out.contains("notes.txt: No such file or directory"), "{out}");
    assert!(told(&out).len() == 1, "{out}");
    // A run that does not ask is as it was.
    let (_, out) = lab.run_with("cat $H/notes.txt 2>&1", &[("WARDKEEP_TEST_TELL", "1")]);
    assert!(out.contains("No such file") && told(&out).is_empty(), "{out}");
}

#[test]
fn keys_and_what_is_hidden_are_not_asked_about() {
    for uid in users() {
        let lab = lab(uid);
        for folder in ["home/far/state", "home/far/masked", "home/dotfiles", "home/far/me/.SSH"] {
            fs::create_dir_all(lab.at(folder)).unwrap();
        }
        for file in [
            "home/far/state/.device_key",
            "home/far/masked/x",
            "home/dotfiles/hosts",
            "home/far/me/.SSH/id",
            "home/far/.env",
            "home/.bash_history",
        ] {
            fs::write(lab.at(file), "CANARY\n").unwrap();
        }
        fs::hard_link(lab.at("home/far/masked/x"), lab.at("home/far/same")).unwrap();
        symlink(lab.at("home/dotfiles"), lab.at("home/.kube")).unwrap();
        symlink(lab.at("home/.ssh/id_rsa"), lab.at("home/harmless")).unwrap();
        symlink(lab.at("home/far/state"), lab.at("home/elsewhere")).unwrap();
        symlink(lab.at("ws/.env"), lab.at("home/settings")).unwrap();
        lab.give();
        let script = "cd $H; cat .ssh/id_rsa .aws/credentials .claude/.credentials.json harmless dotfiles/hosts .kube/hosts \
            .bash_history settings elsewhere/.device_key $H/far/state/.device_key $H/far/masked/x $H/far/same $H/far/me/.SSH/id $H/far/.env \
            /etc/shadow /proc/$PPID/environ /proc/1/environ /proc/self/root$H/notes.txt /sys/kernel/notes /dev/mem /dev/kmsg
            true";
        let hidden = lab.at("home/far/state");
        let masked = lab.at("home/far/masked/x");
        let variables = [
            ("WARDKEEP_TEST_ANSWERS", "=session"),
            ("WARDKEEP_TEST_TELL", "1"),
            ("WARDKEEP_TEST_HIDDEN", hidden.to_str().unwrap()),
            ("WARDKEEP_TEST_MASK", masked.to_str().unwrap()),
        ];
        let (_, out) = lab.run_with(script, &variables);
        assert!(!out.contains("CANARY") && !out.contains("denied: asked"), "{out}");
        // The owner hears which they were, but for wardkeep's own.
        let told = told(&out).join("\n");
        for name in [
            "/.ssh/id_rsa",
            "dotfiles/hosts",
            "home/far/same (it is masked)",
            "me/.SSH/id",
            "/.env",
        ] {
            assert!(told.contains(name), "{name}: {out}");
        }
        assert!(!out.contains("device_key"), "{out}");
    }
}

#[test]
fn only_plain_files_that_can_be_read_are_asked_about() {
    let lab = lab(users()[0]);
    let kept = lab.at("home/far/kept");
    fs::write(&kept, "CANARY\n").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.at("home/far/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(lab.at("home/far/socket")).unwrap();
    lab.give();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o000)).unwrap();
    symlink("loop", lab.at("home/far/loop")).unwrap();
    let script = "cd $H; cat $H/far/kept; cat $H/far/pipe $H/far/socket $H/far $H/far/loop $H/far/none $H/far/victim.txt/ $H/far/victim.txt/x
        cat $(printf 'a%.0s' $(seq 3000)); cat $H/far/$(printf '../far/%.0s' $(seq 400))victim.txt; true";
    let (_, out, questions) = run(&lab, "=session", script);
    assert!(questions.is_empty() && !out.contains("CANARY"), "{out}");
}

#[test]
fn the_question_shows_what_would_be_opened() {
    let lab = lab(users()[0]);
    let strange = "home/far/a\u{1b}[2J\u{202e}\nb";
    fs::write(lab.at(strange), "CANARY\n").unwrap();
    let raw = lab.at("home/far").join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    fs::write(&raw, "CANARY\n").unwrap();
    symlink(lab.at("home/far/victim.txt"), lab.at("home/todo.txt")).unwrap();
    lab.give();
    let real = fs::canonicalize(lab.at("home/far/victim.txt")).unwrap();
    let real = real.to_str().unwrap();
    // Links in the workspace and outside, and detours, come down to the real path.
    for script in [
        "ln -s $H/far/victim.txt readme.md; cat readme.md",
        "ln -s $H/far docs; cat docs/victim.txt",
        "ln -s ../home/far/../far/victim.txt a; ln -s a b; cat b; cat $H/todo.txt",
        "cd sub; cat ../../home/far/../far/./victim.txt",
        "exec 3< $H; cat /proc/self/fd/3/far/victim.txt",
        "cat $H/todo.txt",
    ] {
        let (_, out, questions) = run(&lab, "", script);
        assert_eq!(questions.len(), 1, "{script}: {out}");
        assert!(questions[0].starts_with(&format!("{real} (")), "{script}: {out}");
        let _ = Command::new("rm")
            .arg("-f")
            .args(["readme.md", "docs", "a", "b"])
            .current_dir(lab.at("ws"))
            .status();
    }
    // A name that is no text is not asked about.
    let script = "cat $H/far/$(printf '\\xff\\xfe'); true";
    let (_, out, questions) = run(&lab, "=session", script);
    assert!(questions.is_empty() && !out.contains("CANARY"), "{out}");
    assert!(told(&out).len() == 1 && out.contains("no text"), "{out}");
    let (_, out, _) =
        run(&lab, "", "cat $H/far/a*; cat \"$H/far/$(printf 'a\\x1b[2J\\u202e\\nb')\"; true");
    assert!(!out.contains("CANARY"), "{out}");
}

#[test]
fn a_descriptor_is_good_for_reading_and_nothing_else() {
    for uid in users() {
        let lab = lab(uid);
        let victim = lab.at("home/far/victim.txt");
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o755)).unwrap();
        let before = fs::metadata(&victim).unwrap();
        let script = r#"python3 - <<'E'
import ctypes, fcntl, os, mmap
path = os.environ["H"] + "/far/victim.txt"
fd = os.open(path, os.O_RDONLY)
print(os.read(fd, 100))
def tried(name, what):
    try:
        print(name, "DONE", what())
    except Exception as error:
        print(name, "refused", error)
tried("write", lambda: os.write(fd, b"x"))
tried("truncate", lambda: os.ftruncate(fd, 0))
tried("chmod", lambda: os.fchmod(fd, 0o777))
tried("chown", lambda: os.fchown(fd, os.getuid(), os.getgid()))
tried("utime", lambda: os.utime(fd, (1, 1)))
tried("xattr", lambda: os.setxattr(fd, "user.x", b"x"))
tried("flags", lambda: fcntl.ioctl(fd, 0x40086602, (0).to_bytes(8, "little")))
for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
    for way in ("/proc/self/fd/%d", "/dev/fd/%d", "/proc/thread-self/fd/%d"):
        tried("again %o" % flags, lambda: os.open(way % fd, flags))
tried("chmod by path", lambda: os.chmod("/proc/self/fd/%d" % fd, 0o777))
tried("truncate by path", lambda: os.truncate("/proc/self/fd/%d" % fd, 0))
tried("utime by path", lambda: os.utime("/proc/self/fd/%d" % fd, (1, 1)))
tried("link", lambda: os.link("/proc/self/fd/%d" % fd, "mine", follow_symlinks=True))
tried("execute", lambda: os.execve(fd, ["x"], {}))
tried("map", lambda: mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE))
tried("map to run", lambda: mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
tried("up", lambda: os.open("..", os.O_RDONLY, dir_fd=fd))
tried("beside", lambda: os.open(path + "/../other", os.O_RDONLY))
print("exec", fcntl.fcntl(fd, fcntl.F_GETFD), "mode", fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)
E
true"#;
        let (_, out, _) = run(&lab, "victim.txt=once", script);
        assert!(out.contains("CANARY"), "{out}");
        assert!(!out.contains("DONE"), "{out}");
        assert!(out.contains("exec 1 mode 0"), "{out}");
        let after = fs::metadata(&victim).unwrap();
        let of = |data: &fs::Metadata| {
            (data.mode(), data.mtime(), data.ctime(), data.nlink(), data.len())
        };
        assert_eq!(of(&before), of(&after), "{out}");
        // By a descriptor of the file's own mount its owner could, although it is open for reading only.
        let code =
            "import os, sys; f = os.open(sys.argv[1], 0); os.fchmod(f, 0o700); os.utime(f, (1, 1))";
        let mut plain = Command::new("python3");
        plain.args(["-c", code]).arg(&victim);
        assert!(as_user(&mut plain, uid).status().unwrap().success());
        assert_ne!(of(&before), of(&fs::metadata(&victim).unwrap()));
    }
}

#[test]
fn what_is_exchanged_while_the_owner_thinks_is_not_given() {
    let lab = lab(users()[0]);
    let again = || {
        for name in ["ws/asked", "ws/changed"] {
            fs::remove_file(lab.at(name)).unwrap();
        }
    };
    // The path in memory.
    let script = r#"python3 - <<'E'
import ctypes, os, threading, time
libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer((os.environ["H"] + "/notes.txt").encode(), 4000)
def change():
    while not os.path.exists("asked"): time.sleep(0.01)
    path.value = (os.environ["H"] + "/far/victim.txt").encode(); open("changed", "w")
threading.Thread(target=change, daemon=True).start()
fd = libc.open(path, os.O_RDONLY)
print("fd", fd >= 0, os.readlink("/proc/self/fd/%d" % fd) if fd >= 0 else "")
E"#;
    let (_, out, questions) = run(&lab, "notes.txt=changed", script);
    assert!(questions.len() == 1 && questions[0].contains("notes.txt"), "{out}");
    assert!(out.contains("fd True") && out.contains("/home/notes.txt\n"), "{out}");
    again();
    // The link in the workspace by which it is asked for.
    let script = "ln -s $H/notes.txt l
        (until [ -e asked ]; do sleep 0.01; done; ln -sfn $H/far/victim.txt l2; mv -T l2 l; touch changed) &
        cat l | tr C c";
    fs::write(lab.at("home/far/victim.txt"), "OTHER\n").unwrap();
    lab.give();
    let (_, out, _) = run(&lab, "notes.txt=changed", script);
    assert!(out.contains("cANARY") && !out.contains("OTHER"), "{out}");
    again();
    // The file itself, by somebody outside.
    let mut command = lab.command("touch begun; cat $H/far/victim.txt > got; touch done");
    command.env("WARDKEEP_TEST_ANSWERS", "victim.txt=changed");
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(running.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("asked") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0);
    }
    fs::rename(lab.at("home/far/victim.txt"), lab.at("home/far/moved")).unwrap();
    symlink(lab.at("home/.ssh/id_rsa"), lab.at("home/far/victim.txt")).unwrap();
    fs::write(lab.at("ws/changed"), "").unwrap();
    running.wait().unwrap();
    assert!(lab.at("ws/done").exists());
    assert_eq!(fs::read_to_string(lab.at("ws/got")).unwrap(), "");
}

#[test]
fn nobody_else_waits_and_floods_end() {
    let lab = lab(users()[0]);
    for at in 0..260 {
        fs::write(lab.at(&format!("home/far/f{at}")), "CANARY\n").unwrap();
    }
    lab.give();
    let script = "(cat $H/notes.txt) & p=$!
        for i in $(seq 50); do echo $i > file$i; cat file$i > /dev/null; done
        cat $H/far/nothing; echo made; kill -9 $p; exit 6";
    let (code, out, _) = run(&lab, "notes.txt=never", script);
    assert!(code == 6 && out.contains("made"), "{out}");
    // Two that want the same wait for the same answer.
    let script = "(read x < $H/notes.txt; echo $x) & (read x < $H/notes.txt; echo $x) & wait";
    let (_, out, questions) = run(&lab, "notes.txt=session", script);
    assert!(questions.len() == 1 && out.matches("CANARY").count() == 2, "{out}");
    // And if it is once, each is asked about.
    let (_, out, questions) = run(&lab, "notes.txt=once", script);
    assert!(questions.len() == 2 && out.matches("CANARY").count() == 2, "{out}");
    let script = "for i in $(seq 0 259); do read x < $H/far/f$i; done; true";
    let (_, out, questions) = run(&lab, "/f1=session,=quick", script);
    assert_eq!(questions.len(), 201, "{out}");
    // Whoever stops waiting leaves nothing behind.
    let script = "for i in $(seq 80); do timeout 0.02 cat $H/notes.txt; done; echo done; exit 4";
    let (code, out, _) = run(&lab, "notes.txt=never", script);
    assert!(code == 4 && out.contains("done") && !out.contains("CANARY"), "{out}");
    // A program that ends while another part of it waits is not waited for.
    let (code, out, _) = run(&lab, "notes.txt=never", "(cat $H/notes.txt) & sleep 0.1; exit 5");
    assert_eq!(code, 5, "{out}");
}

#[test]
fn opens_of_every_form_are_asked_about_and_what_makes_is_not() {
    let lab = lab(users()[0]);
    let script = r#"python3 - <<'E'
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
path = os.environ["H"] + "/notes.txt"
def said(name, fd):
    print(name, os.read(fd, 6) if fd >= 0 else os.strerror(ctypes.get_errno()))
def open2(flags, resolve, at=-100, path=path):
    how = struct.pack("QQQ", flags, 0, resolve)
    return libc.syscall(437, at, path.encode(), how, len(how))
said("openat2", open2(os.O_CLOEXEC, 0))
here = os.open("/", os.O_PATH)
said("relative", libc.openat(here, path[1:].encode(), os.O_RDONLY))
said("relative2", open2(0, 0, here, path[1:]))
said("beneath", open2(0, 8, here, path[1:]))
said("in root", open2(0, 16, here, path[1:]))
said("no links", open2(0, 4))
said("nofollow", libc.open(path.encode(), os.O_NOFOLLOW))
for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_DIRECTORY, os.O_PATH, os.O_TMPFILE | os.O_RDWR):
    said("%o" % flags, libc.open(path.encode(), flags, 0o600))
said("bad", libc.open(ctypes.c_void_p(1), 0))
said("long", libc.open(b"/" + b"a/" * 2040, 0))
E"#;
    let (_, out, questions) = run(&lab, "notes.txt=session", script);
    assert_eq!(questions.len(), 1, "{out}");
    for name in ["openat2", "relative", "relative2", "nofollow"] {
        assert!(out.contains(&format!("{name} b'CANARY'")), "{name}: {out}");
    }
    assert_eq!(out.matches("CANARY").count(), 4, "{out}");
    assert!(out.contains("bad Bad address") && out.contains("long"), "{out}");
}

#[test]
fn what_may_be_read_until_the_end_can_be_looked_at() {
    let lab = lab(users()[0]);
    let script = r#"cat > t.py <<'E'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
path = os.environ["H"] + "/far/victim.txt"
def tried(name, what):
    try:
        print(name, what())
    except OSError as error:
        print(name, error.strerror)
tried("before", lambda: os.stat(path).st_size)
tried("denied", lambda: open(os.environ["H"] + "/notes.txt"))
tried("read", lambda: open(path).read())
tried("stat", lambda: (os.stat(path).st_size, os.stat(path).st_ino == os.fstat(os.open(path, 0)).st_ino))
tried("lstat", lambda: os.lstat(path).st_size)
tried("access", lambda: [os.access(path, how) for how in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)])
tried("exists", lambda: os.path.isfile(path))
tried("folder", lambda: os.stat(os.environ["H"] + "/far"))
tried("refused", lambda: os.stat(os.environ["H"] + "/notes.txt"))
tried("never", lambda: os.stat(os.environ["H"] + "/.ssh/id_rsa"))
# Nothing is written where the caller could not write.
print("wild", [libc.syscall(call, path.encode(), ctypes.c_void_p(to)) for call in (4, 6) for to in (0, 1, 0xffffffffff600000)]
    if os.uname().machine == "x86_64" else [-1] * 6)
text = ctypes.c_char_p(b"unchanged" * 30)
libc.syscall(332, -100, path.encode(), 0, 0xfff, text)
print("constant", text.value[:9])
E
python3 t.py; stat -c 'shell %s %n' $H/far/victim.txt; [ -r $H/far/victim.txt ] && echo test
cp $H/far/victim.txt copy && cat copy; true"#;
    let (_, out, questions) = run(&lab, "victim.txt=session", script);
    assert_eq!(questions.len(), 2, "{out}");
    for line in [
        "before No such file or directory",
        "stat (7, True)",
        "lstat 7",
        "access [True, True, False, False]",
        "exists True",
        "folder No such file or directory",
        "refused No such file or directory",
        "never No such file or directory",
        "wild [-1, -1, -1, -1, -1, -1]",
        "shell 7 ",
        "test\nCANARY",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    // What was allowed once is not there again.
    let (_, out, _) =
        run(&lab, "victim.txt=once", "cat $H/far/victim.txt; stat $H/far/victim.txt || echo gone");
    assert!(out.contains("CANARY\ngone"), "{out}");
}
