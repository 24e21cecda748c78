//! A machine for one test: its own users, its own `/var/lib` and `/home`, seen from private mount
//! namespaces only, so that the real one is left as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::shared::{BINARY, Ran, skip};

/// The agent's user.
pub(super) const AGENT: &str = "agent";
/// Its number on the machine.
pub(super) const UID: u32 = 4711;
/// Where its workspace is, as the machine sees it.
pub(super) const WORKSPACE: &str = "/home/agent/ws";

/// Puts the machine's folders in place of the real ones, then runs the rest of the command.
const ENTER: &str = r#"
set -e
mount --bind "$1/etc" /etc
mount --bind "$1/var-lib" /var/lib
mount --bind "$1/home" /home
mount --bind "$1/run" /run
mount --bind "$1/bin" /usr/local/bin
shift
exec "$@"
"#;

/// One machine.
pub(super) struct Machine {
    // Not below `/tmp`: the agent must be able to reach it.
    folder: tempfile::TempDir,
}

impl Machine {
    /// A new one with an agent's workspace in it; `None`, with a line that says so, where that needs
    /// rights that this process does not have.
    pub(super) fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("root", test);
            return None;
        }
        let folder = tempfile::Builder::new()
            .prefix("wardkeep-machine-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a folder");
        let machine = Self { folder };
        let at = machine.folder.path();
        for name in
            ["etc", "etc/sudoers.d", "var-lib", "home", "home/agent", "home/agent/ws", "run", "bin"]
        {
            fs::create_dir(at.join(name)).expect("made");
        }
        for name in ["nsswitch.conf", "login.defs", "ld.so.cache", "ld.so.conf", "localtime"] {
            // What is not there is not needed.
            let _ = fs::copy(Path::new("/etc").join(name), at.join("etc").join(name));
        }
        let program = at.join("bin/wardkeep");
        if fs::hard_link(BINARY, &program).is_err() {
            fs::copy(BINARY, &program).expect("copied");
        }
        std::os::unix::fs::symlink("wardkeep", at.join("bin/soulguard")).expect("linked");
        let user = format!("{AGENT}:x:{UID}:{UID}::/home/agent:/bin/sh");
        machine.write("etc/passwd", &format!("root:x:0:0:root:/root:/bin/sh\n{user}\n"));
        machine.write("etc/group", &format!("root:x:0:\n{AGENT}:x:{UID}:\n"));
        machine.write("etc/shadow", &format!("root:*:19000::::::\n{AGENT}:*:19000::::::\n"));
        machine.write("etc/gshadow", &format!("root:*::\n{AGENT}:!::\n"));
        for name in ["home/agent", "home/agent/ws"] {
            std::os::unix::fs::chown(at.join(name), Some(UID), Some(UID)).expect("given away");
        }
        if machine.root("true").code != 0 {
            skip("mount namespaces", test);
            return None;
        }
        Some(machine)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("written");
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "enter"])
            .arg(self.folder.path())
            .current_dir("/")
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("WARDKEEP_APPEND_ONLY", "0")
            .env("HOME", "/root");
        command
    }

    /// Runs a script as root, in the workspace.
    pub(super) fn root(&self, script: &str) -> Ran {
        let mut command = self.enter();
        command.args(["sh", "-c", &format!("cd {WORKSPACE} || exit 99\n{script}")]);
        command.output().expect("it starts").into()
    }

    /// Starts a script as root, in the workspace; its standard input stays open.
    pub(super) fn start(&self, script: &str) -> Child {
        let mut command = self.enter();
        command.args(["sh", "-c", &format!("cd {WORKSPACE} || exit 99\n{script}")]);
        command.stdin(Stdio::piped()).spawn().expect("it starts")
    }

    /// Runs a script as the owner does with sudo: as root, for the agent's user.
    pub(super) fn owner(&self, script: &str) -> Ran {
        let sudo = format!("export SUDO_UID={UID} SUDO_GID={UID} SUDO_USER={AGENT}; {script}");
        self.root(&sudo)
    }

    /// Runs a script as the agent, in the workspace.
    pub(super) fn agent(&self, script: &str) -> Ran {
        let mut command = self.enter();
        let id = UID.to_string();
        command
            .args(["setpriv", "--reuid", &id, "--regid", &id, "--init-groups", "--"])
            .args(["env", "HOME=/home/agent", "USER=agent"])
            .args(["sh", "-c", &format!("cd {WORKSPACE} || exit 99\n{script}")]);
        command.output().expect("it starts").into()
    }

    /// A file of the workspace, as the machine's outside sees it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("home/agent/ws").join(name)
    }

    /// The machine's folder itself.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Owner, group and mode of a file in the workspace, as names and octal digits.
    pub(super) fn stat(&self, name: &str) -> String {
        let ran = self.root(&format!("stat -c '%U:%G %a' '{name}'"));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.trim_end().to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // What is immutable cannot be removed with its folder.
        let _ = Command::new("chattr")
            .args(["-R", "-i", "-f"])
            .arg(self.folder.path())
            .stderr(Stdio::null())
            .status();
    }
}
