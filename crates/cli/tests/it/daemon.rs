//! The daemon by the real binary: started, raced for, killed, handed a socket.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use wardkeep_monitor::wire::Client;

use crate::shared::{BINARY, command, skip};
use crate::state::Scene;

const PATIENCE: Duration = Duration::from_secs(20);

/// A state directory whose daemon ends with it.
struct Place {
    scene: Scene,
}

impl Place {
    fn new() -> Self {
        Self { scene: Scene::new() }
    }

    fn state(&self) -> PathBuf {
        self.scene.at("s")
    }

    fn socket(&self) -> PathBuf {
        self.state().join("run/monitor.sock")
    }

    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        self.scene.json(code, "s", arguments)
    }

    fn status(&self) -> Value {
        self.json(0, &["daemon", "status"])
    }

    /// A daemon that is a child of this process, once it answers.
    fn foreground(&self, arguments: &[&str]) -> Ended {
        let arguments = [&["daemon", "--foreground"], arguments].concat();
        let mut command = self.scene.command("s", &arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = Ended(command.spawn().unwrap());
        self.wait();
        child
    }

    fn wait(&self) {
        let started = Instant::now();
        while Client::connect(&self.state(), PATIENCE).is_err() {
            assert!(started.elapsed() < PATIENCE, "no daemon");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.socket().exists() {
            let _ = self.scene.command("s", &["daemon", "stop"]).output();
        }
    }
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(pid: u64, name: &str) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let signal = match name {
        "-KILL" => rustix::process::Signal::KILL,
        "-TERM" => rustix::process::Signal::TERM,
        "-INT" => rustix::process::Signal::INT,
        other => panic!("{other}"),
    };
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn it_is_started_once_asked_and_stopped() {
    let place = Place::new();
    let none = place.json(1, &["daemon", "status"]);
    assert_eq!((&none["ok"], &none["running"]), (&Value::Bool(false), &Value::Bool(false)));
    assert_eq!(place.json(0, &["daemon", "stop"])["stopped"], false);
    let first = place.json(0, &["daemon"]);
    assert_eq!(first["started"], true);
    let second = place.json(0, &["daemon"]);
    assert_eq!((&second["started"], &second["pid"]), (&Value::Bool(false), &first["pid"]));
    let status = place.status();
    let daemon = &status["daemon"];
    assert_eq!((&daemon["pid"], &daemon["pending"]), (&first["pid"], &Value::from(0)));
    assert_eq!(daemon["idle_exit"], 900);
    assert_eq!(daemon["problems"], serde_json::json!([]));
    let docs = include_str!("../../../../docs/cli.md");
    for key in first.as_object().unwrap().keys().chain(daemon.as_object().unwrap().keys()) {
        assert!(docs.contains(&format!("`{key}`")), "docs/cli.md does not tell of `{key}`");
    }
    assert_eq!(place.json(0, &["daemon", "stop"])["stopped"], true);
    assert!(!place.socket().exists());
    // At once again, while the old one may still be at its end.
    assert_eq!(place.json(0, &["daemon"])["started"], true);
}

#[test]
fn nothing_of_the_environment_reaches_it() {
    let place = Place::new();
    let mut command = place.scene.command("s", &["daemon", "--json"]);
    command.env("LD_LIBRARY_PATH", "/hostile").env("HOSTILE", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let pid = place.status()["daemon"]["pid"].as_u64().unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert_eq!(String::from_utf8_lossy(&environment), "WARDKEEP_APPEND_ONLY=0\0");
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap();
    assert_eq!((link("cwd"), link("fd/0")), ("/".into(), "/dev/null".into()));
    // A session of its own: the terminal's end is not its end.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, pid.to_string());
}

#[test]
fn of_many_who_start_it_all_get_the_same() {
    let place = Place::new();
    let children: Vec<Child> = (0..6)
        .map(|_| {
            let mut command = place.scene.command("s", &["daemon", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut pids = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        pids.push(serde_json::from_str::<Value>(&text).unwrap()["pid"].as_u64().unwrap());
    }
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn one_that_was_killed_is_followed_by_another() {
    let place = Place::new();
    let first = place.json(0, &["daemon"])["pid"].as_u64().unwrap();
    signal(first, "-KILL");
    let started = Instant::now();
    while Client::connect(&place.state(), PATIENCE).is_ok() {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(place.socket().exists(), "its socket is left behind");
    place.json(1, &["daemon", "status"]);
    let second = place.json(0, &["daemon"]);
    assert_eq!(second["started"], true);
    assert_ne!(second["pid"], first);
    place.scene.expect(0, "s", &["evidence", "verify"]);
}

#[test]
fn a_signal_ends_it_in_order() {
    for name in ["-TERM", "-INT"] {
        let place = Place::new();
        let mut daemon = place.foreground(&[]);
        signal(daemon.0.id().into(), name);
        assert_eq!(daemon.0.wait().unwrap().code(), Some(0), "{name}");
        assert!(!place.socket().exists());
        assert!(!place.state().join("run/hooks.sock").exists());
    }
}

#[test]
fn it_ends_when_nobody_asks() {
    let place = Place::new();
    let mut daemon = place.foreground(&["--idle-exit", "5s"]);
    assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    assert!(!place.socket().exists());
}

#[test]
fn a_second_one_and_what_stands_in_its_place_are_refused_clearly() {
    let place = Place::new();
    let daemon = place.foreground(&[]);
    let ran = place.scene.expect(1, "s", &["daemon", "--foreground"]);
    let process = format!("(process {})", daemon.0.id());
    assert!(ran.stderr.contains("runs already") && ran.stderr.contains(&process), "{ran:?}");
    drop(daemon);
    fs::remove_file(place.socket()).unwrap();
    fs::write(place.socket(), "mine").unwrap();
    for arguments in [&["daemon", "--foreground"][..], &["daemon"]] {
        let ran = place.scene.expect(4, "s", arguments);
        assert!(ran.stderr.contains("hint: "), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(place.socket()).unwrap(), "mine");
    fs::remove_file(place.socket()).unwrap();
}

#[test]
fn a_confined_process_starts_none_and_ends_none() {
    let place = Place::new();
    for arguments in [&["daemon"][..], &["daemon", "--foreground"]] {
        let output =
            place.scene.command("s", arguments).env("WARDKEEP_CONFINED", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    let _daemon = place.foreground(&[]);
    // The same user, in a process that may not gain rights: no terminal of the owner's.
    if Command::new("setpriv").arg("--version").output().is_err() {
        skip("setpriv", "a_confined_process_starts_none_and_ends_none");
        return;
    }
    let state = place.state();
    let output = command("setpriv", &state)
        .args(["--no-new-privs", BINARY, "--state-dir"])
        .arg(&state)
        .args(["daemon", "stop"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("for the owner alone"), "{text}");
    place.status();
}

#[test]
fn a_socket_that_is_handed_over_is_used_and_left() {
    let place = Place::new();
    place.scene.expect(0, "s", &["daemon"]);
    place.scene.expect(0, "s", &["daemon", "stop"]);
    let start = |listener: UnixListener, path: &str| {
        let mut command = place.scene.command("s", &["daemon", "--foreground", "--inherit"]);
        command.args(path.split_whitespace());
        command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::null());
        Ended(command.stderr(Stdio::null()).spawn().unwrap())
    };
    // Another socket than that of this state directory is not taken.
    let elsewhere = place.scene.at("elsewhere.sock");
    let mut refused = start(UnixListener::bind(&elsewhere).unwrap(), "");
    assert_eq!(refused.0.wait().unwrap().code(), Some(4));
    place.scene.expect(4, "s", &["daemon", "--foreground", "--inherit"]);
    let listener = UnixListener::bind(place.socket()).unwrap();
    let kept = listener.try_clone().unwrap();
    let mut daemon = start(listener, "--idle-exit 5s");
    let status = place.status();
    assert_eq!(status["daemon"]["pid"], daemon.0.id());
    assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    assert!(place.socket().exists(), "whoever made it removes it");
    // Who asks in between is answered by the next one.
    let mut client = Client::connect(&place.state(), PATIENCE).unwrap();
    let _next = start(kept, "");
    client.call("ping", &()).unwrap();
    drop(client);
}

#[test]
fn units_are_printed_and_written() {
    let place = Place::new();
    let printed = place.json(0, &["daemon", "install-units", "--print"]);
    assert_eq!(printed["written"], false);
    let config = place.scene.at("config");
    let output = place
        .scene
        .command("s", &["daemon", "install-units"])
        .env("XDG_CONFIG_HOME", &config)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let folder = config.join("systemd/user");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let (socket, service) = (read("wardkeep.socket"), read("wardkeep.service"));
    assert!(socket.contains(&format!("ListenStream={}\n", place.socket().display())), "{socket}");
    assert!(service.contains(&format!("ExecStart=\"{BINARY}\" ")), "{service}");
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip("systemd-analyze", "units_are_printed_and_written");
        return;
    }
    let checked = Command::new("systemd-analyze")
        .args(["--user", "verify"])
        .args([folder.join("wardkeep.socket"), folder.join("wardkeep.service")])
        .env("XDG_RUNTIME_DIR", place.scene.at("."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("wardkeep.s")).collect();
    // The manual pages are installed with packages only.
    let ours: Vec<_> = ours.into_iter().filter(|line| !line.contains("man ")).collect();
    assert!(ours.is_empty(), "{said}");
}
