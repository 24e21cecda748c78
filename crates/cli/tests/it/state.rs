//! State directories for tests of the journal and of anchors.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use wardkeep_evidence::json;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::journal::{Appended, Clock};
use wardkeep_monitor::store::{Event, Store, StoreConfig};

use crate::shared::{BINARY, Ran, command};

/// A folder with state directories in it.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `wardkeep` on a state directory.
    pub(crate) fn command(&self, state: &str, arguments: &[&str]) -> Command {
        let mut command = command(BINARY, self.folder.path());
        command.env("WARDKEEP_APPEND_ONLY", "0").args(["--state-dir", state]).args(arguments);
        command
    }

    pub(crate) fn run(&self, state: &str, arguments: &[&str]) -> Ran {
        self.command(state, arguments).output().unwrap().into()
    }

    /// Runs a command that must end with `code`.
    pub(crate) fn expect(&self, code: i32, state: &str, arguments: &[&str]) -> Ran {
        let ran = self.run(state, arguments);
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
        ran
    }

    /// The JSON form of what a command that must end with `code` says.
    pub(crate) fn json(&self, code: i32, state: &str, arguments: &[&str]) -> Value {
        let ran = self.expect(code, state, &[arguments, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Appends records hours ago, so that the next command finds a seal due.
    pub(crate) fn grow(&self, state: &str, records: u64) -> Vec<Appended> {
        let store = self.store(state);
        let event = |number| {
            let content = json::Value::from([("n", json::Value::from(number))]);
            Event::new(RecordType::ToolCall, Principal::Tool, content)
        };
        (0..records).map(|number| store.append(event(number)).unwrap()).collect()
    }

    /// The store with a clock that stands in the past.
    pub(crate) fn store(&self, state: &str) -> Store {
        self.store_later(state, 0)
    }

    /// The same, some seconds later.
    pub(crate) fn store_later(&self, state: &str, seconds: i64) -> Store {
        let clock = Clock::new(move || Timestamp::from_unix(1_780_000_000 + seconds).unwrap());
        Store::open(&self.at(state), StoreConfig::new(clock)).unwrap()
    }

    pub(crate) fn copy(&self, from: &str, to: &str) {
        let _ = std::fs::remove_dir_all(self.at(to));
        let copied = Command::new("cp").arg("-a").args([self.at(from), self.at(to)]).status();
        assert!(copied.unwrap().success());
    }

    /// Starts a witness that lives in `state`.
    pub(crate) fn witness(&self, state: &str, arguments: &[&str]) -> Witness {
        let serve = ["witness", "serve", "--json"];
        let listen =
            if arguments.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
        let mut command = self.command(state, &[&serve[..], listen, arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Witness { child, ready: serde_json::from_str(&line).unwrap() }
    }
}

/// A running witness; ended when dropped.
pub(crate) struct Witness {
    child: Child,
    pub(crate) ready: Value,
}

impl Witness {
    pub(crate) fn url(&self) -> &str {
        self.ready["url"].as_str().unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        self.ready["address"].as_str().unwrap()
    }

    pub(crate) fn key(&self) -> &str {
        self.ready["key"].as_str().unwrap()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the shell finds a program.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path: PathBuf| Path::new(&path).join(program).is_file())
}

/// A proxy that runs; it and its daemon are ended when dropped.
pub(crate) struct Proxy<'a> {
    scene: &'a Scene,
    child: Child,
    pub(crate) ready: Value,
}

impl<'a> Proxy<'a> {
    /// Starts `command` on a port of its own, and waits until it listens.
    pub(crate) fn start(scene: &'a Scene, command: &str, arguments: &[&str]) -> Self {
        let serve = [command, "--json", "--listen", "127.0.0.1:0"];
        Self::started(scene, scene.command("s", &[&serve[..], arguments].concat()))
    }

    /// Starts a command that says when it is ready.
    pub(crate) fn started(scene: &'a Scene, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { scene, child, ready: serde_json::from_str(&line).unwrap() }
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits until it has ended; its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends a whole request, and gives all that comes back.
    pub(crate) fn send(&self, request: &str) -> String {
        send(self.ready["address"].as_str().unwrap(), request)
    }
}

/// Sends a whole request to an address, and gives all that comes back.
pub(crate) fn send(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

impl Drop for Proxy<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.scene.run("s", &["daemon", "stop"]);
    }
}
