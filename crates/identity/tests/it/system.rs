//! Accounts, sudoers and unit files in a root directory of the test's own.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Gid, Uid};
use tempfile::TempDir;
use wardkeep_identity::lock::Agent;
use wardkeep_identity::system::{GUARDIAN, System, SystemError, sudoers_text, unit_text};

use crate::agent::{AGENT, agent, is_root, set_mode, skip};

const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nagent:x:61789:61789:Ag\u{e9}nt:/home/agent:/bin/sh\n\
    broken line\ntoo:few:1\nnobody:x:4294967295:1::/:/bin/false\nminus:x:-1:1::/:/bin/false\n";
const GROUP: &str = "root:x:0:\nagent:x:61789:\nextra:x:50:bob,agent\nother:x:51:agents,xagent\n";

struct Machine {
    folder: TempDir,
    system: System,
}

impl Machine {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        set_mode(folder.path(), 0o755);
        let etc = folder.path().join("etc");
        for name in ["etc", "etc/sudoers.d", "etc/systemd", "etc/systemd/system", "usr", "usr/bin"]
        {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(etc.join("passwd"), PASSWD).unwrap();
        fs::write(etc.join("group"), GROUP).unwrap();
        for name in ["shadow", "gshadow", "login.defs"] {
            fs::write(etc.join(name), "").unwrap();
        }
        fs::write(etc.join("sudoers"), "root ALL=(ALL) ALL\n@includedir /etc/sudoers.d\n").unwrap();
        let system = System::new(folder.path());
        let machine = Self { folder, system };
        fs::write(machine.program(), "").unwrap();
        set_mode(&machine.program(), 0o755);
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A program of root's. Temporary folders have names of plain letters.
    fn program(&self) -> PathBuf {
        self.at("usr/bin/wardkeep")
    }

    fn add_line(&self, file: &str, line: &str) {
        let text = fs::read_to_string(self.at(file)).unwrap();
        fs::write(self.at(file), format!("{text}{line}\n")).unwrap();
    }
}

#[test]
fn accounts_are_found_in_the_files() {
    let machine = Machine::new();
    let found = machine.system.user("agent").unwrap().unwrap();
    assert_eq!((found.uid.as_raw(), found.gid.as_raw()), (AGENT, AGENT));
    assert_eq!(found.shell, "/bin/sh");
    assert_eq!(machine.system.user_of(Uid::from_raw(AGENT)).unwrap(), Some(found));
    for name in ["soulguardian", "broken line", "too", "nobody", "minus", ""] {
        assert_eq!(machine.system.user(name).unwrap(), None, "{name}");
    }
    assert_eq!(machine.system.group("extra").unwrap(), Some(Gid::from_raw(50)));
    let agent = machine.system.agent(Uid::from_raw(AGENT), Gid::from_raw(7)).unwrap();
    let groups: Vec<u32> = agent.groups.iter().map(|group| group.as_raw()).collect();
    assert_eq!(groups, [7, 50, AGENT]);
    assert_eq!(System::new(machine.at("nowhere")).user("agent").unwrap(), None);
}

#[test]
fn a_guardian_is_made_once_and_removed() {
    let test = "a_guardian_is_made_once_and_removed";
    if !is_root(test) {
        return;
    }
    if !Path::new("/usr/sbin/useradd").exists() {
        return skip("useradd", test);
    }
    let real = fs::read("/etc/passwd").unwrap();
    let machine = Machine::new();
    let owner = Uid::from_raw(AGENT);
    let made = machine.system.ensure_guardian(owner).unwrap();
    assert!(made.made_user && made.made_group);
    assert_ne!(made.uid.as_raw(), 0);
    let account = machine.system.user(GUARDIAN).unwrap().unwrap();
    assert_eq!((account.uid, account.gid), (made.uid, made.gid));
    assert!(account.shell.ends_with("nologin") || account.shell.ends_with("false"));
    let again = machine.system.ensure_guardian(owner).unwrap();
    assert!(!again.made_user && !again.made_group);
    assert_eq!(again.uid, made.uid);
    let removed = machine.system.remove_guardian().unwrap();
    assert!(removed.user);
    assert_eq!(machine.system.user(GUARDIAN).unwrap(), None);
    assert_eq!(machine.system.group("soulguard").unwrap(), None);
    let removed = machine.system.remove_guardian().unwrap();
    assert!(!removed.user && !removed.group);
    assert_eq!(fs::read("/etc/passwd").unwrap(), real, "the machine's own file is untouched");
}

#[test]
fn an_account_that_guards_nothing_is_refused() {
    let cases = [
        ("soulguardian:x:0:990::/:/bin/false", "it is root"),
        ("soulguardian:x:61789:990::/:/bin/false", "it is the agent's own user"),
        ("soulguardian:x:990:990::/:/bin/bash", "it can log in"),
        ("soulguardian:x:990:990::/:", "it can log in"),
        ("soulguardian:x:990:0::/:/bin/false", "its group is another than `soulguard`"),
        ("soulguardian:x:990:990::/:/bin/false\nmallory:x:990:1::/:/bin/sh", "another account"),
        (
            "soulguardian:x:990:990::/:/bin/false\nsoulguardian:x:991:990::/:/bin/false",
            "another account",
        ),
    ];
    for (lines, expected) in cases {
        let machine = Machine::new();
        machine.add_line("etc/group", "soulguard:x:990:");
        machine.add_line("etc/passwd", lines);
        let before = fs::read(machine.at("etc/passwd")).unwrap();
        match machine.system.ensure_guardian(Uid::from_raw(AGENT)) {
            Err(SystemError::Unfit { why, .. }) => {
                assert!(why.starts_with(expected), "{lines}: {why}")
            }
            other => panic!("{lines}: {other:?}"),
        }
        assert_eq!(fs::read(machine.at("etc/passwd")).unwrap(), before);
    }
}

#[test]
fn a_sudoers_file_says_exactly_what_may_run() {
    let test = "a_sudoers_file_says_exactly_what_may_run";
    if !is_root(test) {
        return;
    }
    let machine = Machine::new();
    let workspace = Path::new("/home/agent/ws");
    let programs = [machine.program()];
    let written = machine.system.install_sudoers("ab12", &programs, workspace, &agent()).unwrap();
    assert_eq!(written.path, machine.at("etc/sudoers.d/wardkeep-ab12"));
    assert!(written.included);
    if !written.checked {
        skip("visudo", test);
    }
    let metadata = written.path.metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (0, 0o440));
    let text = fs::read_to_string(&written.path).unwrap();
    let program = machine.program().display().to_string();
    for command in ["status", "diff", "stage", "sync"] {
        assert!(text.contains(&format!("{program} {command} /home/agent/ws")), "{text}");
    }
    for bad in ["*", "?", "[", "apply", "init", "(ALL)", " ALL,", "release", "restore"] {
        assert!(!text.contains(bad), "{bad} in {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("#61789 ALL=(root) NOPASSWD:NOSETENV: /")));
    // Nothing else is left in the folder, and writing again replaces.
    machine.system.install_sudoers("ab12", &programs, workspace, &agent()).unwrap();
    assert_eq!(fs::read_dir(machine.at("etc/sudoers.d")).unwrap().count(), 1);
    assert!(machine.system.remove_sudoers("ab12").unwrap());
    assert!(!machine.system.remove_sudoers("ab12").unwrap());
}

#[test]
fn a_hostile_workspace_path_never_reaches_a_sudoers_file() {
    let test = "a_hostile_workspace_path_never_reaches_a_sudoers_file";
    if !is_root(test) {
        return;
    }
    let machine = Machine::new();
    let hostile = [
        "/home/a/ws\n#61789 ALL=(ALL) NOPASSWD: ALL",
        "/home/a/ws, ALL",
        "/home/a/ws,/bin/sh",
        "/home/a/*",
        "/home/a/ws*",
        "/home/a/w?",
        "/home/a/[a-z]s",
        "/home/a/ws\\",
        "/home/a/ws\\\n",
        "/home/a/w s",
        "/home/a/ws --all",
        "/home/a/../../etc",
        "ALL",
        "*",
        "",
        "/home/a/!ws",
        "/home/a/ws#",
        "/home/a/w\u{202e}s",
        "/home/a/\"\"",
    ];
    for path in hostile {
        let result =
            machine.system.install_sudoers("ab", &[machine.program()], Path::new(path), &agent());
        assert!(matches!(result, Err(SystemError::Path { .. })), "{path:?}: {result:?}");
        let message = result.unwrap_err().to_string();
        assert!(!message.contains('\n') && !message.contains('\u{202e}'), "{message:?}");
    }
    for identifier in ["", "a.b", "../x", "a/b", "A", "a~", "x\n", &"a".repeat(65)] {
        let workspace = Path::new("/home/a/ws");
        let result =
            machine.system.install_sudoers(identifier, &[machine.program()], workspace, &agent());
        assert!(matches!(result, Err(SystemError::Identifier(_))), "{identifier:?}");
        assert!(machine.system.remove_sudoers(identifier).is_err());
    }
    assert_eq!(fs::read_dir(machine.at("etc/sudoers.d")).unwrap().count(), 0);
}

#[test]
fn a_program_that_the_agent_can_replace_is_never_named() {
    if !is_root("a_program_that_the_agent_can_replace_is_never_named") {
        return;
    }
    let machine = Machine::new();
    let workspace = Path::new("/home/a/ws");
    let install = |program: &Path| {
        let programs = [program.to_owned()];
        machine.system.install_sudoers("ab", &programs, workspace, &agent())
    };
    install(&machine.program()).unwrap();
    // By a link of root's in a folder of root's: as good.
    symlink("wardkeep", machine.at("usr/bin/soulguard")).unwrap();
    install(&machine.at("usr/bin/soulguard")).unwrap();
    // Writable for others.
    set_mode(&machine.program(), 0o757);
    assert!(matches!(install(&machine.program()), Err(SystemError::Untrusted { .. })));
    assert!(matches!(
        install(&machine.at("usr/bin/soulguard")),
        Err(SystemError::Untrusted { .. })
    ));
    set_mode(&machine.program(), 0o755);
    // A folder on the way that is the agent's: by the file and by the link.
    std::os::unix::fs::chown(machine.at("usr"), Some(AGENT), None).unwrap();
    assert!(matches!(install(&machine.program()), Err(SystemError::Untrusted { .. })));
    assert!(matches!(
        install(&machine.at("usr/bin/soulguard")),
        Err(SystemError::Untrusted { .. })
    ));
    std::os::unix::fs::chown(machine.at("usr"), Some(0), None).unwrap();
    // A link that the agent owns, or that leads to what the agent owns.
    std::os::unix::fs::chown(machine.at("usr/bin"), Some(AGENT), None).unwrap();
    assert!(matches!(
        install(&machine.at("usr/bin/soulguard")),
        Err(SystemError::Untrusted { .. })
    ));
    std::os::unix::fs::chown(machine.at("usr/bin"), Some(0), None).unwrap();
    std::os::unix::fs::chown(machine.program(), Some(AGENT), None).unwrap();
    assert!(matches!(install(&machine.program()), Err(SystemError::Untrusted { .. })));
    assert!(matches!(
        install(&machine.at("usr/bin/soulguard")),
        Err(SystemError::Untrusted { .. })
    ));
    // A folder of rules that is not root's.
    std::os::unix::fs::chown(machine.program(), Some(0), None).unwrap();
    install(&machine.program()).unwrap();
    std::os::unix::fs::chown(machine.at("etc/sudoers.d"), Some(AGENT), None).unwrap();
    assert!(matches!(install(&machine.program()), Err(SystemError::Untrusted { .. })));
    let root = Agent { uid: Uid::ROOT, groups: Vec::new() };
    let programs = [machine.program()];
    let result = machine.system.install_sudoers("ab", &programs, workspace, &root);
    assert!(matches!(result, Err(SystemError::Unfit { .. })));
}

#[test]
fn the_checker_of_sudoers_agrees() {
    let visudo = Path::new("/usr/sbin/visudo");
    if !visudo.exists() {
        return skip("visudo", "the_checker_of_sudoers_agrees");
    }
    let folder = TempDir::new().unwrap();
    let programs = [PathBuf::from("/usr/bin/wardkeep"), PathBuf::from("/usr/bin/soulguard")];
    let text = sudoers_text(&programs, Path::new("/srv/a.b/c_d-e+f/ALL"), &agent()).unwrap();
    let check = |text: &str| {
        let path = folder.path().join("rules");
        fs::write(&path, text).unwrap();
        set_mode(&path, 0o440);
        Command::new(visudo).arg("-cf").arg(&path).output().unwrap().status.success()
    };
    assert!(check(&text), "{text}");
    assert!(!check(&format!("{text}nonsense here\n")), "the checker does check");
}

#[test]
fn a_unit_is_written_and_removed() {
    let machine = Machine::new();
    let path =
        machine.system.install_unit(4711, Path::new("/bin/true"), &["daemon", "--owned"]).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o644);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\nExecStart=/bin/true daemon --owned\n"), "{text}");
    let program = Path::new("/usr/bin/systemd-analyze");
    if program.exists() {
        let output = Command::new(program).arg("verify").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let about: Vec<&str> =
            said.lines().filter(|line| line.contains("wardkeep-identity")).collect();
        assert!(about.is_empty(), "{said}");
    } else {
        skip("systemd-analyze", "a_unit_is_written_and_removed");
    }
    assert!(machine.system.remove_unit(4711).unwrap());
    assert!(!machine.system.remove_unit(4711).unwrap());
    for bad in ["a b", "", "a\nExecStartPre=/bin/sh", "%h", "$X", "a;b", "\"", "a\\"] {
        assert!(unit_text(Path::new("/bin/true"), &[bad]).is_err(), "{bad:?}");
        assert!(machine.system.install_unit(4711, Path::new("/bin/true"), &[bad]).is_err());
    }
    assert!(unit_text(Path::new("bin/true"), &[]).is_err());
    assert_eq!(fs::read_dir(machine.at("etc/systemd/system")).unwrap().count(), 0);
}
