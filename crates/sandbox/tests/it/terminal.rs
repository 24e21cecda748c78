//! A terminal outside, and another inside.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::pty::OpenptFlags;

use crate::lab::{Lab, is_root, users};

#[test]
fn the_program_gets_a_terminal_of_its_own() {
    for uid in users() {
        let lab = Lab::new(uid);
        let near = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::unlockpt(&near).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let far: OwnedFd = rustix::pty::ioctl_tiocgptpeer(&near, flags).unwrap();
        let size = rustix::termios::Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&near, size).unwrap();
        let script = "echo begin; tty; stty size; read word; echo \"got $word\"; exit 6";
        let inner = lab.command(script);
        let mut outer = Command::new("setsid");
        outer.args(["--ctty", "--wait"]).arg(inner.get_program()).args(inner.get_args());
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.current_dir(lab.at("ws"));
        outer.stdin(far.try_clone().unwrap()).stdout(far.try_clone().unwrap()).stderr(far);
        if is_root() {
            outer.uid(uid).gid(uid);
        }
        let mut child = outer.spawn().unwrap();
        // Holds the far side, too, which would keep the near one from ending.
        drop(outer);
        let mut terminal = File::from(near);
        let mut shown = String::new();
        let mut typed = false;
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = terminal.read(&mut buffer) {
            shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
            if !typed && shown.contains("33 99") {
                terminal.write_all(b"hello\r").unwrap();
                typed = true;
            }
        }
        assert_eq!(child.wait().unwrap().code(), Some(6), "{shown}");
        let inside =
            shown.lines().skip_while(|line| !line.contains("begin")).nth(1).unwrap_or_default();
        assert_eq!(inside.trim(), "/dev/pts/0", "{shown}");
        assert!(shown.contains("got hello"), "{shown}");
    }
}

#[test]
fn what_a_terminal_answers_is_typed_for_nobody_afterwards() {
    let lab = Lab::new(users()[0]);
    let near = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::unlockpt(&near).unwrap();
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let far: OwnedFd = rustix::pty::ioctl_tiocgptpeer(&near, flags).unwrap();
    let inner = lab.command("printf 'now: \\033[6n\\033[c'");
    let after = "\"$@\"; stty -icanon -echo min 0 time 10; echo after; dd bs=100 count=1 2>/dev/null | od -c; echo end";
    let mut outer = Command::new("setsid");
    outer.args(["--ctty", "--wait", "sh", "-c", after, "sh"]);
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(lab.at("ws"));
    outer.stdin(far.try_clone().unwrap()).stdout(far.try_clone().unwrap()).stderr(far);
    if is_root() {
        outer.uid(lab.uid()).gid(lab.uid());
    }
    let mut child = outer.spawn().unwrap();
    drop(outer);
    let mut terminal = File::from(near);
    let mut shown = String::new();
    let mut answered = false;
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
        if !answered && shown.contains("\x1b[c") {
            std::thread::sleep(std::time::Duration::from_millis(50));
            terminal.write_all(b"\x1b[24;80R\x1b[?62;c").unwrap();
            answered = true;
        }
    }
    assert!(child.wait().unwrap().success() && answered, "{shown}");
    let (_, after) = shown.split_once("after").unwrap();
    assert!(after.contains("end") && !after.contains("R") && !after.contains("6"), "{shown}");
}
