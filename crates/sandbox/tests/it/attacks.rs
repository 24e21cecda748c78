//! Attacks from inside, as an ordinary user and as root. Each is a script; one that ends with 0 has got
//! through.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::lab::{Lab, is_root, skipped, users};

/// A call by its number, whose success is success.
fn call(number: i64, arguments: &str) -> String {
    format!(
        "python3 -c 'import ctypes,os,sys,socket;L=ctypes.CDLL(None,use_errno=True);\
         b=ctypes.create_string_buffer(256);r=L.syscall({number}{arguments});sys.exit(0 if r>=0 else 1)'"
    )
}

/// A call that fails in any case: through, if it was not the filter that said no.
fn reaches(number: i64, arguments: &str) -> String {
    format!(
        "python3 -c 'import ctypes,sys;L=ctypes.CDLL(None,use_errno=True);\
         L.syscall({number}{arguments});sys.exit(0 if ctypes.get_errno() not in (1,38) else 1)'"
    )
}

fn open2(path: &str, flags: u64, mode: u64, resolve: u64) -> String {
    format!(
        "python3 -c 'import ctypes,os,sys;L=ctypes.CDLL(None);h=(ctypes.c_uint64*3)({flags},{mode},{resolve});\
         sys.exit(0 if L.syscall(437,-100,os.path.expandvars(\"{path}\").encode(),h,24)>=0 else 1)'"
    )
}

fn socket(arguments: &str) -> String {
    format!("python3 -c 'import socket;socket.socket({arguments})'")
}

/// Opens settings that could not be written by their name for writing, by a descriptor of them.
fn new_settings(flags: &str) -> String {
    format!(
        "rm -rf bare.git meta proj; git init -q --bare bare.git; git init -q --separate-git-dir=meta proj; python3 -c '\
         import os,sys\nways=(\"/proc/self/fd/%d\",\"/dev/fd/%d\",\"/proc/thread-self/fd/%d\")\n\
         for name in (\"bare.git/config\",\"meta/config\"):\n f=os.open(name,{flags})\n for way in ways:\n\
         \x20 try: os.close(os.open(way%f,os.O_WRONLY|os.O_APPEND)); sys.exit(0)\n  except OSError: pass\nsys.exit(1)'"
    )
}

fn attacks() -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = [
        // Reading.
        ("ssh key", "grep -q CANARY $H/.ssh/id_rsa"),
        ("ssh key by /proc/self/root", "grep -q CANARY /proc/self/root$H/.ssh/id_rsa"),
        ("ssh key by /proc/1/root", "grep -q CANARY /proc/1/root$H/.ssh/id_rsa"),
        ("ssh key by /proc/1/cwd", "grep -q CANARY /proc/1/cwd/../home/.ssh/id_rsa"),
        ("ssh key by a link", "ln -sfn $H/.ssh/id_rsa $WS/l && grep -q CANARY $WS/l"),
        ("ssh key by a hard link", "ln $H/.ssh/id_rsa $WS/hl && grep -q CANARY $WS/hl"),
        ("ssh key by dots", "grep -q CANARY $WS/../home/.ssh/id_rsa"),
        ("cloud key", "grep -q CANARY $H/.aws/credentials"),
        ("an agent's token", "grep -q CANARY $H/.claude/.credentials.json"),
        ("a file in the home", "grep -q CANARY $H/notes.txt"),
        ("the home has names", "test -n \"$(ls -A $H | grep -v '^\\.cache$\\|^\\.npm$\\|^\\.local$')\""),
        (".env", "grep -q CANARY $WS/.env"),
        (".env by a hard link", "ln $WS/.env $WS/e && grep -q CANARY $WS/e"),
        (".env moved away", "mv $WS/.env $WS/e2 && grep -q CANARY $WS/e2"),
        (".env unmounted", "umount $WS/.env && grep -q CANARY $WS/.env"),
        ("passwords", "head -c1 /etc/shadow | grep -q ."),
        ("host keys", "cat /etc/ssh/ssh_host_*_key"),
        ("root's home", "ls -A /root | grep -q ."),
        ("memory of the kernel", "head -c1 /proc/kcore | grep -q ."),
        ("kernel log", "dmesg"),
        ("a disk", "d=$(awk '{print $3;exit}' /proc/self/mountinfo); mknod $WS/bd b ${d%:*} ${d#*:}"),
        ("disks in /dev", "ls /dev | grep -q '^[sv]da'"),
        ("memory in /dev", "ls /dev/mem /dev/kmsg /dev/kvm 2>/dev/null | grep -q ."),
        ("runner's environment", "cat /proc/1/environ | tr '\\0' '\\n' | grep -q ."),
        ("runner's memory map", "grep -q . /proc/1/maps"),
        ("runner's files", "ls -l /proc/1/fd | grep -q -- '->' || cat /proc/1/fd/0"),
        ("mounts of the host", "grep -q ' /boot \\| /home ' /proc/1/mounts"),
        // Writing.
        ("a file outside", "echo x > $OUT/pwn"),
        ("a file outside by a link", "ln -sfn $OUT $WS/d && echo x > $WS/d/pwn"),
        ("a file outside by a descriptor", "exec 7< $WS && cd /proc/self/fd/7/../outside && echo x > pwn"),
        ("a mode outside", "chmod 777 $OUT/victim.txt"),
        ("a time outside", "touch -d 2000-01-01 $OUT/victim.txt"),
        ("a shell file", "echo x >> $H/.bashrc"),
        ("a unit", "mkdir -p $H/.config/systemd/user && echo x > $H/.config/systemd/user/p.service"),
        ("a start-up entry", "mkdir -p $H/.config/autostart"),
        ("ssh access", "mkdir -p $H/.ssh && echo x >> $H/.ssh/authorized_keys"),
        ("programs", "touch /usr/local/bin/pwn"),
        ("the system's settings", "touch /etc/pwn"),
        ("a new name at the root", "mkdir /pwn"),
        ("/run", "touch /run/pwn"),
        ("the mark", "rm -f /run/wardkeep/confined && ! test -e /run/wardkeep/confined"),
        ("the kernel's settings", "v=$(cat /proc/sys/kernel/core_pattern) && echo \"$v\" > /proc/sys/kernel/core_pattern"),
        ("swappiness", "v=$(cat /proc/sys/vm/swappiness) && echo $v > /proc/sys/vm/swappiness"),
        ("out-of-memory score", "echo -500 > /proc/self/oom_score_adj"),
        ("sysrq", "echo h > /proc/sysrq-trigger"),
        ("cgroups", "ls /sys/fs/cgroup/cgroup.procs && echo $$ > /sys/fs/cgroup/cgroup.procs"),
        ("mount again", "mount -o remount,rw,bind / && touch /pwn"),
        ("workspace mounted elsewhere", "mount --bind $WS /mnt"),
        ("set-user-id", "cp /bin/true $WS/s && chmod 4755 $WS/s"),
        ("set-group-id", "cp /bin/true $WS/g && chmod g+s $WS/g"),
        ("set-user-id at birth", "python3 -c 'import os;os.umask(0);os.open(\"s2\",65,0o4755)'"),
        // What is run later by others.
        ("hook", "echo x > $WS/.git/hooks/pre-commit"),
        ("hook by a link", "ln -sfn .git/hooks $WS/hk && echo x > $WS/hk/pre-commit"),
        ("hooks folder replaced", "rm -rf $WS/.git/hooks && mkdir $WS/.git/hooks"),
        ("hooks folder moved", "mv $WS/.git/hooks $WS/.git/hooks2"),
        ("git config", "echo x >> $WS/.git/config"),
        ("git config replaced", "echo x > $WS/.git/c && mv -f $WS/.git/c $WS/.git/config && grep -q x $WS/.git/config"),
        ("git config cut", "truncate -s 0 $WS/.git/config"),
        ("git config's mode", "chmod 777 $WS/.git/config"),
        ("git config by a hard link", "ln $WS/.git/config $WS/gc && echo x >> $WS/gc"),
        ("repository moved", "mv $WS/.git $WS/.git_"),
        ("identity", "echo x >> $WS/AGENTS.md"),
        ("identity replaced", "echo x > $WS/a && mv -f $WS/a $WS/AGENTS.md && grep -q x $WS/AGENTS.md"),
        ("identity removed", "rm -f $WS/AGENTS.md && ! test -e $WS/AGENTS.md"),
        // Processes.
        ("a process outside", "kill -0 $VICTIM"),
        ("its environment", "tr '\\0' '\\n' < /proc/$VICTIM/environ | grep -q CANARY"),
        ("many processes seen", "test $(ls /proc | grep -c '^[0-9]') -gt 40"),
        ("the first one killed", "kill -9 1; sleep 0.1; ! kill -0 1"),
        ("privileges", "grep -q 'NoNewPrivs:.0' /proc/self/status"),
        ("capabilities", "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -qv 0000000000000000"),
        ("no filter", "grep -q '^Seccomp:.0' /proc/self/status"),
        ("no limit of processes", "[ $(ulimit -u) = unlimited ] || [ $(ulimit -u) -gt 8192 ]"),
        ("no limit of memory", "[ $(ulimit -v) = unlimited ] || [ $(ulimit -d) = unlimited ]"),
        ("no limit of files", "[ $(ulimit -f) = unlimited ] || [ $(ulimit -n) -gt 65536 ]"),
        ("core files", "[ $(ulimit -c) != 0 ]"),
        ("limits raised", "ulimit -u unlimited || ulimit -f unlimited || ulimit -c 1"),
        ("user namespace", "unshare -U true"),
        ("user and mount namespace", "unshare -Urm true"),
        ("network namespace", "unshare -n true"),
        ("another's namespace", "nsenter -t 1 -m true"),
        ("root by sudo", "sudo -n true || su -c true < /dev/null"),
        ("another root", "chroot / true"),
        // Network.
        ("loopback of the host", "exec 3<>/dev/tcp/127.0.0.1/22"),
        ("a name server", "getent hosts example.com"),
        ("a packet out", "python3 -c 'import socket;socket.socket(2,2).sendto(b\"x\",(\"192.0.2.1\",53))'"),
        ("a connection out", "timeout 3 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'"),
        ("a socket of the host", "python3 -c 'import socket,os;socket.socket(1,1).connect(os.environ[\"OUT\"]+\"/sock\")'"),
        ("an abstract socket", "python3 -c 'import socket;socket.socket(1,1).connect(\"\\0wk-abstract-test\")'"),
        ("an interface", "ip link add wk0 type dummy"),
        ("an interface by route", "ip addr add 10.9.9.9/24 dev lo"),
    ]
    .into_iter()
    .map(|(name, script)| (name, script.to_owned()))
    .collect();
    all.extend([
        ("io_uring", call(425, ",8,b")),
        ("bpf", reaches(321, ",0,0,0")),
        ("perf", reaches(298, ",0,0,-1,-1,0")),
        ("userfaultfd", call(323, ",1")),
        ("add_key", call(248, ",b\"user\",b\"k\",b\"d\",1,-3")),
        ("keyctl", call(250, ",0,-3,1")),
        ("request_key", reaches(249, ",0,0,0,0")),
        ("ptrace", reaches(101, ",16,1,0,0")),
        ("process_vm_readv", reaches(310, ",1,0,0,0,0,0")),
        ("process_vm_writev", reaches(311, ",1,0,0,0,0,0")),
        ("pidfd_getfd", reaches(438, ",0,0,0")),
        ("kcmp", reaches(312, ",1,1,0,0,0")),
        ("limits of who watches", "python3 -c 'from resource import *;\
          prlimit(1,RLIMIT_NOFILE,prlimit(1,RLIMIT_NOFILE))'".to_owned()),
        ("limits by an upper half", "python3 -c 'import ctypes,sys;L=ctypes.CDLL(None,use_errno=True);\
          L.syscall(302,1,7,ctypes.c_uint64(0x100000000),0);sys.exit(ctypes.get_errno()==1)'".to_owned()),
        ("place in line of who watches", "renice -n 1 -p 1".to_owned()),
        ("processors of who watches", "python3 -c 'import os;os.sched_setaffinity(1,{0})'".to_owned()),
        ("mode of a device", "chmod $(stat -c %a /dev/full) /dev/full".to_owned()),
        ("settings of a new repository by a descriptor", new_settings("os.O_RDONLY")),
        ("settings of a new repository by a place", new_settings("os.O_PATH")),
        ("clone3 with a user namespace", "python3 -c 'import ctypes,os,sys;L=ctypes.CDLL(None);\
          a=(ctypes.c_uint64*11)(0x10000000,0,0,0,17,0,0,0,0,0,0);r=L.syscall(435,a,88);\
          r==0 and os._exit(0);sys.exit(0 if r>0 else 1)'".to_owned()),
        ("clone with a user namespace", call(56, ",0x10000011,0,0,0,0")),
        ("mount", reaches(165, ",0,0,0,0,0")),
        ("open_tree", reaches(428, ",-100,b\".\",1")),
        ("fsopen", reaches(430, ",b\"tmpfs\",0")),
        ("move_mount", reaches(429, ",0,0,0,0,0")),
        ("setns", reaches(308, ",0,0")),
        ("pivot_root", reaches(155, ",0,0")),
        ("chroot", reaches(161, ",0")),
        ("open_by_handle_at", reaches(304, ",0,0,0")),
        ("init_module", reaches(175, ",0,0,0")),
        ("finit_module", reaches(313, ",0,0,0")),
        ("kexec_load", reaches(246, ",0,0,0,0")),
        ("syslog", reaches(103, ",3,0,0")),
        ("personality", call(135, ",0x40000")),
        ("modify_ldt", call(154, ",0,b,16")),
        ("iopl", reaches(172, ",0")),
        ("clock_settime", reaches(227, ",0,0")),
        ("swapon", reaches(167, ",0,0")),
        ("fanotify", reaches(300, ",0,0")),
        ("memfd_secret", call(447, ",0")),
        ("a hook by openat2", open2("$WS/.git/hooks/pre-push", 0o101, 0o755, 0)),
        ("settings by openat2", open2(".mcp.json", 0o101, 0o644, 8)),
        ("a key by openat2", open2("$H/.ssh/id_rsa", 0, 0, 0)),
        ("a supervisor's own by openat2", open2("/proc/self/environ", 0, 0, 0)),
        ("a process's own by openat2", open2("/proc/1/environ", 0, 0, 0)),
        ("a set-id file by openat2", open2("suid", 0o101, 0o4755, 0)),
        ("x32", call(0x4000_0000 | 39, "")),
        ("32-bit calls", "python3 -c 'import mmap,ctypes;m=mmap.mmap(-1,4096,prot=7);\
          m.write(bytes([0xb8,20,0,0,0,0xcd,0x80,0xc3]));\
          f=ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)));f()'".to_owned()),
        ("a listener for calls", call(317, ",1,8,0")),
        ("a lease, for which others wait", "python3 -c 'import fcntl,os;\
          f=os.open(\"lease\",os.O_RDONLY|os.O_CREAT);fcntl.fcntl(f,1024,0)'".to_owned()),
        ("words into a terminal", "python3 -c 'import fcntl,os,pty;m,s=pty.openpty();os.setsid();\
          fcntl.ioctl(s,0x540E,0);fcntl.ioctl(s,0x5412,b\"x\")'".to_owned()),
        ("words by an upper half", "python3 -c 'import ctypes,os,pty,fcntl,sys;m,s=pty.openpty();os.setsid();\
          fcntl.ioctl(s,0x540E,0);L=ctypes.CDLL(None);r=L.syscall(16,s,ctypes.c_uint64(0x100005412),b\"x\");\
          sys.exit(0 if r==0 else 1)'".to_owned()),
        ("raw socket", socket("2,3,1")),
        ("ping socket", socket("2,2,1")),
        ("packet socket", socket("17,3,0x300")),
        ("vsock", socket("40,1,0")),
        ("netlink audit", socket("16,3,9")),
        ("netfilter", socket("16,3,12")),
        ("kernel ciphers", socket("38,5,0")),
        ("bluetooth", socket("31,3,1")),
        ("sctp", socket("2,1,132")),
        ("xdp", socket("44,3,0")),
        ("executable memory file", "python3 -c 'import os;os.memfd_create(\"x\",0x10)'".to_owned()),
    ]);
    all
}

#[test]
fn no_attack_gets_through() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return skipped("needs python3 for attacks by system call");
    }
    let attacks = attacks();
    for uid in users() {
        let lab = Lab::new(uid);
        let _socket = UnixListener::bind(lab.at("outside/sock")).unwrap();
        fs::set_permissions(
            lab.at("outside/sock"),
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )
        .unwrap();
        let mut victim = Command::new("sleep");
        victim.arg("600").env("SECRET", "CANARY").stdin(Stdio::null());
        if is_root() {
            std::os::unix::process::CommandExt::uid(&mut victim, uid);
        }
        let mut victim = victim.spawn().unwrap();
        fs::create_dir(lab.at("ws/attacks")).unwrap();
        for (index, (_, script)) in attacks.iter().enumerate() {
            fs::write(lab.at(&format!("ws/attacks/{index}")), script).unwrap();
        }
        lab.give();
        let driver = format!(
            "for i in $(seq 0 {}); do timeout 120 bash attacks/$i >/dev/null 2>&1 </dev/null; echo $i $?; done",
            attacks.len() - 1
        );
        let pid = victim.id().to_string();
        let (code, out) = lab.run_with(&driver, &[("VICTIM", &pid)]);
        let _ = victim.kill();
        let _ = victim.wait();
        assert_eq!(code, 0, "{out}");
        let results: Vec<(usize, i32)> = out
            .lines()
            .filter_map(|line| {
                let (index, code) = line.split_once(' ')?;
                Some((index.parse().ok()?, code.parse().ok()?))
            })
            .collect();
        assert_eq!(results.len(), attacks.len(), "{out}");
        // What comes to no end was not judged.
        let endless = |(index, code): &(usize, i32)| (*code == 124).then(|| attacks[*index].0);
        assert_eq!(results.iter().find_map(endless), None);
        let through: Vec<&str> = results
            .iter()
            .filter(|(_, code)| *code == 0)
            .map(|(index, _)| attacks[*index].0)
            .collect();
        assert_eq!(through, Vec::<&str>::new(), "as user {uid}");
        // Whatever the scripts say of themselves: outside nothing has changed.
        assert_eq!(fs::read_to_string(lab.at("outside/victim.txt")).unwrap(), "CANARY\n");
        assert_eq!(fs::read_dir(lab.at("outside")).unwrap().count(), 2);
        assert_eq!(fs::read_dir(lab.at("ws/.git/hooks")).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(lab.at("ws/.git/config")).unwrap(), "[core]\n");
        assert_eq!(fs::read_to_string(lab.at("ws/AGENTS.md")).unwrap(), "be good\n");
        assert_eq!(fs::read_to_string(lab.at("ws/.env")).unwrap(), "CANARY\n");
        assert!(!lab.at("home/.bashrc").exists());
    }
}

#[test]
fn the_attacks_are_real() {
    if !std::path::Path::new("/usr/bin/python3").exists() {
        return skipped("needs python3 for attacks by system call");
    }
    // Without a confinement most of these work, so that their failing inside says something.
    let lab = Lab::new(users()[0]);
    let works = |wanted: &str| {
        let (_, script) = attacks().into_iter().find(|(name, _)| *name == wanted).unwrap();
        let mut command = Command::new("/bin/bash");
        command.arg("-c").arg(script).current_dir(lab.at("ws"));
        for (name, folder) in [("H", "home"), ("WS", "ws"), ("OUT", "outside")] {
            command.env(name, lab.at(folder));
        }
        command.output().unwrap().status.success()
    };
    for name in [
        "ssh key",
        "ssh key by /proc/self/root",
        ".env",
        "a file outside by a link",
        "a mode outside",
        "a shell file",
        "set-user-id",
        "hook",
        "git config replaced",
        "repository moved",
        "privileges",
        "no filter",
        "io_uring",
        "personality",
        "modify_ldt",
    ] {
        assert!(works(name), "{name}");
    }
    // Older kernels than 6.3 know no such file.
    let known = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::EXEC).is_ok();
    assert_eq!(works("executable memory file"), known);
}

/// A file that steers the program is written as a copy, and stays as it is.
#[test]
fn a_copy_stands_for_a_file_and_nothing_reaches_the_file() {
    for uid in users() {
        let lab = Lab::new(uid);
        let (file, copy) = (lab.at("home/.claude.json"), lab.at("outside/copy"));
        let before = "{\"numStartups\":1}";
        fs::write(&file, before).unwrap();
        fs::write(&copy, before).unwrap();
        lab.give();
        let both = format!("{}={}", file.display(), copy.display());
        let script = r#"grep -q numStartups $H/.claude.json || exit 9
            echo '{"mcpServers":{"x":{"command":"EVIL"}}}' > $H/.claude.json || exit 8
            mv $H/.claude.json $H/x; rm -f $H/.claude.json; ln -sf /tmp/x $H/.claude.json
            echo EVIL > new; mv -T new $H/.claude.json; echo EVIL > $OUT/copy2
            exit 0"#;
        let (code, out) = lab.run_with(script, &[("WARDKEEP_TEST_PRIVATE", &both)]);
        assert_eq!(code, 0, "as {uid}: {out}");
        assert_eq!(fs::read_to_string(file).unwrap(), before, "as {uid}");
        assert!(fs::read_to_string(copy).unwrap().contains("EVIL"), "as {uid}");
        assert!(!lab.at("outside/copy2").exists());
    }
}

/// An agent that does not find its plugin goes on without it, and asks nobody.
#[test]
fn what_agents_load_of_wardkeep_can_be_read_and_nothing_beside_it() {
    for uid in users() {
        let lab = Lab::new(uid);
        std::fs::create_dir_all(lab.at("state/plugins/openclaw")).unwrap();
        std::fs::write(lab.at("state/plugins/openclaw/index.ts"), "ours").unwrap();
        std::fs::write(lab.at("state/.device_key"), "CANARY").unwrap();
        lab.give();
        let (code, out) = lab.run("cat ../state/plugins/openclaw/index.ts; echo; ls -A ../state");
        assert_eq!((code, out.as_str()), (0, "ours\nplugins\n"), "as user {uid}");
        for script in [
            "echo EVIL > ../state/plugins/openclaw/index.ts",
            "echo EVIL > ../state/plugins/openclaw/more.ts",
            "mv ../state/plugins/openclaw ../state/plugins/other",
            "rm ../state/plugins/openclaw/index.ts",
            "cat ../state/.device_key",
            "cat ../state/plugins/../.device_key",
        ] {
            let (code, _) = lab.run(script);
            assert_ne!(code, 0, "{script} as user {uid}");
        }
        let left = std::fs::read_to_string(lab.at("state/plugins/openclaw/index.ts")).unwrap();
        assert_eq!(left, "ours");
    }
}
