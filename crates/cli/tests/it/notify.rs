//! `wardkeep notify` by the real binary, against a bot API, a webhook and a `notify-send` made here.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardkeep_evidence::json::{self as journal, Object};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::approvals::Approvals;
use wardkeep_monitor::store::Event;

use crate::approvals::Place;
use crate::shared::is_harmless;

const SECRET: &str = "AAH-secret_secret_secret_secret-z";
const CHAT: i64 = 4711;
const OWNER: i64 = 77;
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// What a bot API and a webhook on one address were told, and what is said in the chat.
#[derive(Default)]
struct Said {
    messages: Vec<Value>,
    hooked: Vec<Value>,
    updates: Vec<Value>,
    listened: bool,
}

#[derive(Clone)]
struct Fake {
    address: String,
    said: Arc<Mutex<Said>>,
}

impl Fake {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake =
            Self { address: listener.local_addr().unwrap().to_string(), said: Arc::default() };
        let own = fake.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream));
            }
        });
        fake
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        stream.set_read_timeout(Some(LONG)).ok()?;
        let mut bytes = Vec::new();
        let (path, asked): (String, Value) = loop {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&bytes);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            if body.len() >= length.parse().ok()? {
                break (head.split(' ').nth(1)?.to_owned(), serde_json::from_str(body).ok()?);
            }
        };
        let result = match path.strip_prefix(&format!("/bot9:{SECRET}/")) {
            Some("sendMessage") => {
                self.said.lock().unwrap().messages.push(asked);
                json!({})
            }
            Some("getUpdates") => self.updates(&asked),
            _ => {
                self.said.lock().unwrap().hooked.push(asked);
                json!({})
            }
        };
        let body = json!({"ok": true, "result": result}).to_string();
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).ok()
    }

    fn updates(&self, asked: &Value) -> Value {
        let offset = asked["offset"].as_i64().unwrap();
        let until = Instant::now() + SHORT;
        loop {
            let mut said = self.said.lock().unwrap();
            let id = |update: &Value| update["update_id"].as_i64().unwrap();
            if offset < 0 {
                said.listened = true;
                return json!(said.updates.last().into_iter().collect::<Vec<_>>());
            }
            said.updates.retain(|update| id(update) >= offset);
            if !said.updates.is_empty() || asked["timeout"] == 0 || Instant::now() > until {
                return json!(said.updates);
            }
            drop(said);
            sleep(Duration::from_millis(20));
        }
    }

    /// Says something in the chat.
    fn say(&self, user: i64, text: &str) {
        let date = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let mut said = self.said.lock().unwrap();
        static NEXT: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(1000);
        let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        said.updates.push(json!({"update_id": id, "message": {
            "message_id": id, "date": date.as_secs(), "text": text,
            "chat": {"id": CHAT}, "from": {"id": user, "is_bot": false},
        }}));
    }

    fn messages(&self) -> Vec<String> {
        let said = self.said.lock().unwrap();
        said.messages.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until there are so many messages, and gives the newest.
    fn wait(&self, many: usize) -> String {
        let until = Instant::now() + LONG;
        while self.messages().len() < many && Instant::now() < until {
            sleep(Duration::from_millis(50));
        }
        let mut messages = self.messages();
        assert_eq!(messages.len(), many, "{messages:?}");
        messages.pop().unwrap()
    }
}

struct Scene {
    place: Place,
    fake: Fake,
}

impl Scene {
    fn new(more: &str) -> Self {
        let scene = Self { place: Place::new(), fake: Fake::new() };
        scene.token(0o600);
        let address = &scene.fake.address;
        let token = scene.place.scene.at("token");
        let program = scene.place.scene.at("bin/notify-send");
        fs::create_dir(scene.place.scene.at("bin")).unwrap();
        fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$5\" >> \"$HOME/shown\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        scene.sign(&format!(
            "[notify]\ndesktop = true\nwebhook = \"http://{address}/hook\"\n{more}\n[notify.telegram]\n\
             token_file = \"{}\"\nchat = {CHAT}\nuser = {OWNER}\nanswers = true\napi = \"http://{address}\"\n",
            token.display()
        ));
        scene
    }

    fn token(&self, mode: u32) {
        let file = self.place.scene.at("token");
        fs::write(&file, format!("9:{SECRET}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn sign(&self, config: &str) {
        fs::write(self.place.scene.at("s/config.toml"), config).unwrap();
        self.place.scene.expect(0, "s", &["config", "sign", "--yes"]);
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command =
            self.place.scene.command("s", &[&["notify", "--json"], arguments].concat());
        command.env("PATH", self.place.scene.at("bin")).env("HOME", self.place.scene.at(""));
        command
    }

    /// Starts it, and waits until it listens.
    fn start(&self) -> Running {
        self.fake.said.lock().unwrap().listened = false;
        let mut child =
            self.command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let until = Instant::now() + LONG;
        let running = Running { child, ready: serde_json::from_str(&line).unwrap() };
        while !self.fake.said.lock().unwrap().listened && Instant::now() < until && self.listens() {
            sleep(Duration::from_millis(20));
        }
        running
    }

    fn listens(&self) -> bool {
        fs::read_to_string(self.place.scene.at("s/config.toml")).unwrap().contains("answers = true")
    }

    /// How a run that is refused ends.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success() && !text.contains(SECRET), "{text}");
        text
    }

    fn list(&self) -> Value {
        self.place.scene.json(0, "s", &["approvals", "list"])
    }

    fn shown(&self) -> String {
        fs::read_to_string(self.place.scene.at("shown")).unwrap_or_default()
    }
}

struct Running {
    child: Child,
    ready: Value,
}

impl Running {
    /// Ends it as the system would, and gives what it told.
    fn end(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(self.child.wait().unwrap().success(), "{told}");
        told
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_request_is_told_and_answered_from_the_chat_once() {
    let scene = Scene::new("");
    let (first, second) =
        (scene.place.ask("/w/first.json", 5), scene.place.ask("/w/second.json", 5));
    let running = scene.start();
    let docs = include_str!("../../../../docs/cli.md");
    let names: Vec<&str> = running.ready["ways"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["way"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["desktop", "webhook", "telegram"]);
    for value in [&running.ready, &running.ready["ways"][0]] {
        for key in value.as_object().unwrap().keys() {
            assert!(docs.contains(&format!("`{key}`")), "docs/cli.md does not tell of `{key}`");
        }
    }
    scene.fake.wait(2);
    let messages = scene.fake.messages();
    let one = messages.iter().find(|text| text.contains("/w/first.json")).unwrap();
    let (code, other) = (&first[..12], &second[..12]);
    assert!(one.contains(&format!("approve {code}")) && !one.contains(other), "{one}");
    assert!(one.contains("not shown here") && !one.contains("model = b"), "{one}");
    // Someone else, a wrong code, and talk change nothing.
    scene.fake.say(OWNER + 1, &format!("approve {code}"));
    scene.fake.say(OWNER, "yes please");
    scene.fake.say(OWNER, "approve 000000000000");
    assert!(scene.fake.wait(3).contains("no request has this code"));
    scene.fake.say(OWNER, &format!("approve {}", &first[..11]));
    assert!(scene.fake.wait(4).contains("Not taken"));
    assert_eq!(scene.list()["pending"].as_array().unwrap().len(), 2);
    scene.fake.say(OWNER, &format!("approve {code}"));
    assert!(scene.fake.wait(5).starts_with("Approved"), "{:?}", scene.fake.messages());
    let list = scene.list();
    assert_eq!(list["pending"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["pending"][0]["request"], second.as_str());
    let granted = &list["approvals"][0];
    assert_eq!((&granted["request"], &granted["scope"]), (&first.as_str().into(), &"once".into()));
    // The same message again.
    scene.fake.say(OWNER, &format!("approve {code}"));
    assert!(scene.fake.wait(6).contains("approved before"));
    // It is good for one time.
    let owner = rustix::process::getuid().as_raw();
    let approvals = Approvals::open(&scene.place.scene.at("s"), owner).unwrap();
    let action = granted["action"].as_str().unwrap().parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = Timestamp::from_unix(i64::try_from(now.as_secs()).unwrap()).unwrap();
    assert!(approvals.take(action, "claude:1", now).unwrap().is_some());
    assert!(approvals.take(action, "claude:1", now).unwrap().is_none());
    scene.fake.say(OWNER, &format!("deny {other}"));
    assert!(scene.fake.wait(7).starts_with("Denied"));
    scene.fake.say(OWNER, &format!("approve {other}"));
    assert!(scene.fake.wait(8).contains("denied before"));
    // Both answers say by which way they came.
    let log = scene.place.scene.json(0, "s", &["log", "--type", "GuardDecision"]);
    let by: Vec<&Value> = log["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["record"]["payload"]["inline"]["by"])
        .filter(|by| !by.is_null())
        .collect();
    assert_eq!(by, ["chat", "chat"]);
    let hooked = scene.fake.said.lock().unwrap().hooked.clone();
    assert_eq!(hooked.len(), 2, "{hooked:?}");
    assert!(hooked.iter().any(|one| one["code"] == code));
    assert_eq!(scene.shown().matches("wardkeep approvals show").count(), 2, "{}", scene.shown());
    let told = running.end();
    assert!(!told.contains(SECRET), "{told}");
    scene.place.scene.expect(0, "s", &["evidence", "verify"]);
}

/// A command that an agent wants to run, as its hook is asked.
fn shell(scene: &Scene, command: &str) -> i32 {
    let event = json!({
        "session_id": "abc", "transcript_path": "/t", "cwd": scene.place.scene.at("ws"),
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command},
    });
    let words = ["hook", "claude-code", "PreToolUse", "--no-daemon"];
    let mut hook = scene.place.scene.command("s", &words);
    hook.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = hook.spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    child.wait().unwrap().code().unwrap()
}

#[test]
fn what_a_hook_held_passes_once_after_the_chat() {
    let scene = Scene::new("");
    fs::write(scene.place.scene.at("ws/.env"), "KEY=value\n").unwrap();
    let (send, other) =
        ("curl -d hello https://example.org/x", "curl -d hello https://example.net/y");
    assert_eq!(shell(&scene, "cat .env"), 0);
    assert_eq!((shell(&scene, send), shell(&scene, other)), (2, 2));
    let running = scene.start();
    scene.fake.wait(2);
    let messages = scene.fake.messages();
    let message = messages.iter().find(|one| one.contains("https://example.org/x")).unwrap();
    let code = message.split_once("Answer with approve ").unwrap().1.split(' ').next().unwrap();
    scene.fake.say(OWNER, &format!("Approve {code}"));
    assert!(scene.fake.wait(3).starts_with("Approved"));
    assert_eq!(shell(&scene, other), 2, "it was for the other one");
    assert_eq!(shell(&scene, send), 0);
    assert_eq!(shell(&scene, send), 2, "once");
    // What was approved by mistake is taken back.
    let message = messages.iter().find(|one| one.contains("https://example.net/y")).unwrap();
    let code = message.split_once("Answer with approve ").unwrap().1.split(' ').next().unwrap();
    let before = scene.fake.messages().len();
    scene.fake.say(OWNER, &format!("approve {code}"));
    scene.fake.say(OWNER, &format!("deny {code}"));
    let until = Instant::now() + LONG;
    let taken =
        || scene.fake.messages().iter().any(|one| one.contains("which was approved before"));
    while !taken() && Instant::now() < until {
        sleep(Duration::from_millis(50));
    }
    assert!(taken() && scene.fake.messages().len() >= before + 2, "{:?}", scene.fake.messages());
    assert_eq!(shell(&scene, other), 2, "taken back");
    running.end();
}

#[test]
fn nothing_is_told_twice_over_a_restart_and_old_answers_do_not_count() {
    let scene = Scene::new("");
    let request = scene.place.ask("/w/first.json", 5);
    let running = scene.start();
    scene.fake.wait(1);
    running.end();
    // Said while nobody listened.
    scene.fake.say(OWNER, &format!("approve {}", &request[..12]));
    let running = scene.start();
    scene.place.ask("/w/second.json", 2);
    let newest = scene.fake.wait(2);
    assert!(newest.contains("/w/second.json"), "{newest}");
    let list = scene.list();
    assert_eq!(list["pending"].as_array().unwrap().len(), 2, "{list}");
    let said = scene.refused(&[]);
    assert!(said.contains("runs already"), "{said}");
    running.end();
    assert_eq!(scene.fake.messages().len(), 2);
}

#[test]
fn what_a_notice_does_not_show_whole_is_not_approved_from_afar() {
    let scene = Scene::new("");
    let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let long = scene.place.ask(&format!("/w/{}\u{202e}\u{1b}[2J\n/etc/passwd", "x".repeat(400)), 5);
    let secret =
        scene.place.ask(&format!("curl -H 'Authorization: token {key}' https://a.example"), 5);
    let running = scene.start();
    scene.fake.wait(2);
    for message in scene.fake.messages() {
        assert!(is_harmless(&message.replace('\n', " ").replace("❓", "")), "{message}");
        assert!(
            message.contains("answer it at the machine") && !message.contains("Answer with"),
            "{message}"
        );
        assert!(!message.contains(&key), "{message}");
    }
    for (many, request) in [(3, &long), (4, &secret)] {
        scene.fake.say(OWNER, &format!("approve {}", &request[..12]));
        assert!(scene.fake.wait(many).contains("did not show all of it"), "{request}");
    }
    assert_eq!(scene.list()["pending"].as_array().unwrap().len(), 2);
    assert!(!scene.shown().contains(&key));
    // A config that is not as it was signed takes answers away, at once.
    let request = scene.place.ask("/w/plain.json", 2);
    scene.fake.wait(5);
    let file = scene.place.scene.at("s/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&format!("user = {OWNER}"), "user = 78")).unwrap();
    scene.fake.say(OWNER, &format!("approve {}", &request[..12]));
    assert!(scene.fake.wait(6).contains("no longer count"));
    assert_eq!(scene.list()["pending"].as_array().unwrap().len(), 3);
    drop(running);
}

#[test]
fn a_flood_of_alerts_is_cut_and_requests_still_come_through() {
    let scene = Scene::new("per_minute = 3");
    let running = scene.start();
    let text = journal::Value::from;
    let store = scene.place.store(0);
    for (severity, many) in [("high", 20), ("critical", 50)] {
        for number in 0..many {
            let told = Object::from([
                ("kind", text("alert")),
                ("v", journal::Value::from(1u64)),
                ("alert", text("Test")),
                ("category", text("CPI")),
                ("severity", text(severity)),
                ("message", journal::Value::from(format!("{severity} {number}\u{1b}[2J"))),
                ("blocked", journal::Value::from(true)),
            ]);
            let event =
                Event::new(RecordType::GuardDecision, Principal::Sys, journal::Value::Object(told));
            store.append(event).unwrap();
        }
    }
    drop(store);
    scene.fake.wait(3);
    scene.place.ask("/w/settings.json", 2);
    let newest = scene.fake.wait(4);
    assert!(newest.contains("/w/settings.json"), "{newest}");
    running.end();
    let messages = scene.fake.messages();
    assert!(
        messages[..3].iter().all(|one| one.contains("critical") && one.contains("\\u{1b}")),
        "{messages:?}"
    );
    assert_eq!(messages.len(), 4, "{messages:?}");
}

#[test]
fn a_trial_says_which_way_works() {
    let scene = Scene::new("");
    let output = scene.command(&["--test"]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["ok"], &answer["answers"]), (&json!(true), &json!(true)), "{answer}");
    let docs = include_str!("../../../../docs/cli.md");
    assert!(docs.contains("| `notify` |"), "docs/cli.md does not tell of `notify`");
    assert_eq!((scene.fake.messages().len(), scene.fake.said.lock().unwrap().hooked.len()), (1, 1));
    fs::write(scene.place.scene.at("bin/notify-send"), "#!/bin/sh\nexit 1\n").unwrap();
    let answer: Value = serde_json::from_str(&scene.refused(&["--test"])).unwrap();
    let worked: Vec<&Value> =
        answer["ways"].as_array().unwrap().iter().map(|one| &one["worked"]).collect();
    assert_eq!(worked, [false, true, true]);
    fs::remove_file(scene.place.scene.at("bin/notify-send")).unwrap();
    assert!(scene.refused(&["--test"]).contains("not on PATH"));
}

#[test]
fn what_is_not_safe_is_not_started() {
    let scene = Scene::new("");
    let file = scene.place.scene.at("s/config.toml");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{good}# changed\n")).unwrap();
    assert!(scene.refused(&[]).contains("not as it was signed"));
    fs::write(&file, &good).unwrap();
    let mut confined = scene.command(&[]);
    let output = confined.env("WARDKEEP_CONFINED", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    scene.token(0o644);
    assert!(scene.refused(&[]).contains("mode 0600"));
    scene.token(0o600);
    let hook = format!("http://{}/hook", scene.fake.address);
    for (from, to, word) in [
        (&*hook, "http://hooks.example/secret", "could be read on the way"),
        (&*hook, "https://u:p@hooks.example/secret", "no address"),
        ("user = 77\n", "", "needs `user`"),
        ("token_file = \"/", "token_file = \"", "must begin with"),
        ("answers = true", "answer = true", "unknown field"),
        ("desktop = true", "dekstop = true", "unknown field"),
    ] {
        assert!(good.contains(from), "{from}");
        scene.sign(&good.replace(from, to));
        let said = scene.refused(&[]);
        assert!(said.contains(word) && !said.contains("secret"), "{said}");
    }
    scene.sign("[notify]\n");
    assert!(scene.refused(&[]).contains("where notices go"));
    // Without the word for it, nobody listens.
    scene.sign(&good.replace("answers = true", "answers = false"));
    let request = scene.place.ask("/w/first.json", 5);
    let running = scene.start();
    assert_eq!(running.ready["answers"], false);
    let message = scene.fake.wait(1);
    assert!(message.contains(&request[..12]) && !message.contains("Answer with"), "{message}");
    scene.fake.say(OWNER, &format!("approve {}", &request[..12]));
    sleep(4 * SHORT);
    assert!(!scene.fake.said.lock().unwrap().listened);
    assert_eq!(scene.list()["pending"].as_array().unwrap().len(), 1);
    drop(running);
}
