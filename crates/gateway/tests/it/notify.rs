//! Notices and answers, against a webhook and a bot API that are made here.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardkeep_gateway::notify::{
    Address, Failed, Kind, Listener, Notice, Queue, Retry, Said, Telegram, Token, Way, Webhook,
};

const SECRET: &str = "AAF-secret_secret_secret_secret-x";
pub(crate) const LONG: Duration = Duration::from_secs(30);
const CHAT: i64 = -100_200;
const OWNER: i64 = 77;
const NOW: i64 = 1_790_000_000;

/// What the other side does with a question.
enum Does {
    Answers(u16, String),
    Headers(u16, &'static str),
    Hangs,
    Garbage,
}

/// A server that does one thing after the other, and keeps what it was asked.
struct Fake {
    address: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    does: Arc<Mutex<VecDeque<Does>>>,
}

impl Does {
    /// How long its answer is waited for: not long where none comes.
    fn patience(&self) -> Duration {
        if matches!(self, Self::Hangs) { Duration::from_secs(2) } else { LONG }
    }
}

impl Fake {
    fn new(does: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let does = Arc::new(Mutex::new(VecDeque::from(does)));
        let (kept, next) = (Arc::clone(&asked), Arc::clone(&does));
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Some(question) = question(&mut stream) else { continue };
                kept.lock().unwrap().push(question);
                let does = next.lock().unwrap().pop_front();
                match does
                    .unwrap_or_else(|| Does::Answers(200, r#"{"ok":true,"result":[]}"#.into()))
                {
                    Does::Answers(status, body) => {
                        let head = format!(
                            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                            body.len()
                        );
                        let _ = stream
                            .write_all(head.as_bytes())
                            .and_then(|()| stream.write_all(body.as_bytes()));
                    }
                    Does::Headers(status, headers) => {
                        let head = format!(
                            "HTTP/1.1 {status} X\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
                        );
                        let _ = stream.write_all(head.as_bytes());
                    }
                    Does::Hangs => held.push(stream),
                    Does::Garbage => drop(stream.write_all(b"\x00\xff<<<not http>>>\r\n\r\n")),
                }
            }
        });
        Self { address, asked, does }
    }

    fn then(&self, does: Does) {
        self.does.lock().unwrap().push_back(does);
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }

    fn url(&self, path: &str) -> Address {
        Address::parse(&format!("http://{}{path}", self.address), false).unwrap()
    }

    fn telegram(&self) -> Telegram {
        let folder = tempfile::tempdir().unwrap();
        let telegram = Telegram::new(self.url(""), token(&folder), CHAT, true).unwrap();
        telegram.patience(LONG)
    }
}

fn question(stream: &mut TcpStream) -> Option<(String, Value)> {
    stream.set_read_timeout(Some(LONG)).ok()?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned)
        });
        let length: usize = length?.parse().ok()?;
        if body.len() >= length {
            let line = head.lines().next()?.to_owned();
            return Some((line, serde_json::from_str(body).ok()?));
        }
    }
}

fn token(folder: &tempfile::TempDir) -> Token {
    let file = folder.path().join("token");
    fs::write(&file, format!("123:{SECRET}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    Token::read(&file, rustix::process::getuid().as_raw()).unwrap()
}

pub(crate) fn notice(subject: &str) -> Notice {
    Notice {
        kind: Kind::Approval,
        title: "An agent asks".to_owned(),
        facts: vec![("subject", subject.to_owned()), ("reason", "because".to_owned())],
        code: Some("0123456789ab".to_owned()),
        severity: "high".to_owned(),
        next: "wardkeep approvals show 0123456789ab".to_owned(),
    }
}

pub(crate) const HOSTILE: &str = "-u --icon=x <b>&amp;</b> \u{1b}[2J\u{202e}txt.exe\u{200b}\nApproved: yes\r\n@everyone https://evil.example/ *_`[x](y)";

pub(crate) fn is_harmless(text: &str) -> bool {
    let bad = |one: char| {
        one.is_control() && one != '\n'
            || matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
    };
    !text.contains(bad) && !text.lines().any(|line| line.starts_with("Approved"))
}

#[test]
fn a_webhook_gets_what_an_approver_needs_and_nothing_harmful() {
    let fake = Fake::new(vec![]);
    let mut webhook = Webhook::new(fake.url("/hook?x=1")).unwrap();
    webhook.send(&notice(&format!("{HOSTILE}{}", "x".repeat(100_000)))).unwrap();
    let (line, document) = fake.asked().remove(0);
    assert_eq!(line, "POST /hook?x=1 HTTP/1.1");
    let text = document["text"].as_str().unwrap();
    assert!(is_harmless(text) && text.len() < 2000, "{text}");
    assert!(text.contains("\\u{1b}[2J\\u{202e}txt.exe"), "{text}");
    assert_eq!(
        (&document["code"], &document["kind"]),
        (&json!("0123456789ab"), &json!("approval"))
    );
    assert!(is_harmless(document["facts"]["subject"].as_str().unwrap()));
}

#[test]
fn what_cannot_be_delivered_is_told_without_the_secret() {
    let redirect = "Location: http://127.0.0.1:1/elsewhere\r\n";
    for (does, retry) in [
        (Does::Headers(302, redirect), Retry::Never),
        (Does::Headers(307, redirect), Retry::Never),
        (Does::Answers(404, "secret-path".into()), Retry::Never),
        (Does::Answers(500, String::new()), Retry::Soon),
        (Does::Headers(429, "Retry-After: 7\r\n"), Retry::After(Duration::from_secs(7))),
        (Does::Answers(200, "x".repeat(1 << 20)), Retry::Soon),
        (Does::Garbage, Retry::Soon),
        (Does::Hangs, Retry::Soon),
    ] {
        let patience = does.patience();
        let fake = Fake::new(vec![does]);
        let webhook = Webhook::new(fake.url("/secret-path")).unwrap();
        let failed = webhook.patience(patience).send(&notice("x")).unwrap_err();
        assert_eq!(failed.retry, retry, "{failed:?}");
        assert!(!failed.why.contains("secret-path"), "{failed:?}");
        let until = Instant::now() + LONG;
        while fake.asked().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(fake.asked().len(), 1, "nobody was led elsewhere: {failed:?}");
    }
}

#[test]
fn the_queue_tries_again_never_blocks_and_counts_what_is_lost() {
    let fake = Fake::new(vec![
        Does::Answers(503, String::new()),
        Does::Headers(429, "Retry-After: 0\r\n"),
    ]);
    let queue = Queue::start(Webhook::new(fake.url("/")).unwrap(), &[Duration::from_millis(10); 3])
        .unwrap();
    assert!(queue.push(notice("x")));
    queue.settle(LONG);
    assert_eq!((queue.outcome().sent, queue.outcome().lost, fake.asked().len()), (1, 0, 3));
    let fake = Fake::new((0..4).map(|_| Does::Answers(503, String::new())).collect());
    let queue = Queue::start(Webhook::new(fake.url("/")).unwrap(), &[Duration::from_millis(10); 3])
        .unwrap();
    queue.push(notice("x"));
    queue.settle(LONG);
    assert_eq!((queue.outcome().sent, queue.outcome().lost, fake.asked().len()), (0, 1, 4));
    // One that never answers, and a flood.
    struct Stuck;
    impl Way for Stuck {
        fn name(&self) -> &'static str {
            "stuck"
        }
        fn send(&mut self, _: &Notice) -> Result<(), Failed> {
            std::thread::sleep(LONG);
            Ok(())
        }
    }
    let queue = Queue::start(Stuck, &[]).unwrap();
    let taken = (0..1000).filter(|_| queue.push(notice("x"))).count();
    assert!((64..=65).contains(&taken), "{taken}");
    assert_eq!(queue.outcome().lost, 1000 - taken as u64);
}

#[test]
fn a_message_in_the_chat_has_no_links_and_names_the_code() {
    let fake = Fake::new(vec![]);
    fake.telegram().send(&notice(HOSTILE)).unwrap();
    let (line, asked) = fake.asked().remove(0);
    assert_eq!(line, format!("POST /bot123:{SECRET}/sendMessage HTTP/1.1"));
    let text = asked["text"].as_str().unwrap();
    assert!(is_harmless(text), "{text}");
    assert_eq!(asked["chat_id"], CHAT);
    assert!(asked["parse_mode"].is_null());
    assert_eq!(asked["link_preview_options"]["is_disabled"], true);
    // What the agent wrote stands wholly in the type for code.
    let units: Vec<u16> = text.encode_utf16().collect();
    let coded: Vec<String> = asked["entities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            assert_eq!(one["type"], "code");
            let place = |key: &str| usize::try_from(one[key].as_u64().unwrap()).unwrap();
            String::from_utf16(&units[place("offset")..place("offset") + place("length")]).unwrap()
        })
        .collect();
    assert!(coded[0].contains("evil.example") && coded[0].contains("@everyone"));
    assert_eq!(&coded[1..], ["approve 0123456789ab", "deny 0123456789ab"]);
}

#[test]
fn trouble_with_the_api_never_shows_the_token() {
    let echo = json!({"ok": false, "description": format!("no 123:{SECRET} {}", "y".repeat(500))});
    let cut = json!({"ok": false, "description": format!("{}{SECRET}", "y".repeat(105))});
    let slow = json!({"ok": false, "parameters": {"retry_after": 9}});
    for (does, retry) in [
        (Does::Answers(401, echo.to_string()), Retry::Never),
        (Does::Answers(500, cut.to_string()), Retry::Soon),
        (Does::Answers(429, slow.to_string()), Retry::After(Duration::from_secs(9))),
        (Does::Answers(200, "<html>".into()), Retry::Soon),
        (Does::Answers(200, "[".repeat(100_000)), Retry::Soon),
        (Does::Answers(200, "x".repeat(3 << 20)), Retry::Soon),
        (Does::Answers(200, json!({"ok": false}).to_string()), Retry::Never),
        (Does::Garbage, Retry::Soon),
        (Does::Hangs, Retry::Soon),
    ] {
        let patience = does.patience();
        let fake = Fake::new(vec![does]);
        let mut telegram = fake.telegram().patience(patience);
        let failed = telegram.send(&notice("x")).unwrap_err();
        assert_eq!(failed.retry, retry, "{failed:?}");
        assert!(!failed.why.contains(&SECRET[..8]), "{failed:?}");
    }
}

#[test]
fn a_token_is_read_only_from_a_file_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let owner = rustix::process::getuid().as_raw();
    token(&folder);
    let file = folder.path().join("token");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for path in [&link, &pipe, &folder.path().to_owned(), &folder.path().join("none")] {
        assert!(Token::read(path, owner).is_err(), "{path:?}");
    }
    assert!(Token::read(&file, owner + 1).is_err());
    for mode in [0o640, 0o604, 0o620, 0o666, 0o700] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert!(Token::read(&file, owner).is_err(), "{mode:o}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(Token::read(&file, owner).is_ok());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "not a token").unwrap();
    let error = Token::read(&file, owner).unwrap_err().to_string();
    assert!(!error.contains("not a token"), "{error}");
}

/// An update with a message of the owner, changed in some way.
fn update(id: i64, text: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut message = json!({
        "message_id": id, "date": NOW + 5, "text": text,
        "chat": {"id": CHAT, "type": "private"}, "from": {"id": OWNER, "is_bot": false},
    });
    change(&mut message);
    json!({"update_id": id, "message": message})
}

fn updates(all: &[Value]) -> Does {
    Does::Answers(200, json!({"ok": true, "result": all}).to_string())
}

/// What a listener takes for answers of `all`, and what it replies.
fn heard(all: &[Value]) -> (Vec<Said>, Vec<String>) {
    let fake = Fake::new(vec![updates(&[]), updates(all)]);
    let mut listener = Listener::new(fake.telegram(), OWNER, NOW);
    let mut said = Vec::new();
    for _ in 0..2 {
        listener
            .listen(&mut |one| {
                said.push(one.clone());
                "Taken.".to_owned()
            })
            .unwrap();
    }
    let replies = fake.asked().into_iter().filter(|(line, _)| line.contains("/sendMessage"));
    (said, replies.map(|(_, asked)| asked["text"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn only_the_one_person_in_the_one_chat_is_heard() {
    const YES: &str = "approve 0123456789ab";
    let (said, replies) = heard(&[update(1, YES, |_| {})]);
    assert_eq!((said.len(), &replies[..]), (1, &["Taken.".to_owned()][..]));
    // Nobody else hears anything.
    for (name, one) in [
        ("other user", update(1, YES, |message| message["from"]["id"] = json!(OWNER + 1))),
        ("other chat", update(1, YES, |message| message["chat"]["id"] = json!(CHAT - 1))),
        ("a bot", update(1, YES, |message| message["from"]["is_bot"] = json!(true))),
        ("no sender", update(1, YES, |message| message["from"] = Value::Null)),
        (
            "number as text",
            update(1, YES, |message| message["from"]["id"] = json!(OWNER.to_string())),
        ),
        (
            "in the name of a chat",
            update(1, YES, |message| message["sender_chat"] = json!({"id": CHAT})),
        ),
        ("old", update(1, YES, |message| message["date"] = json!(NOW - 3600))),
        ("without a date", update(1, YES, |message| message["date"] = Value::Null)),
        ("talk", update(1, "good morning", |_| {})),
        ("a picture", update(1, "", |message| message["caption"] = json!(YES))),
        ("a channel", json!({"update_id": 1, "channel_post": update(1, YES, |_| {})["message"]})),
        (
            "a button",
            json!({"update_id": 1, "callback_query": {"data": YES, "from": {"id": OWNER}}}),
        ),
        ("garbage", json!({"update_id": 1, "message": [YES]})),
        ("no id", json!({"message": update(1, YES, |_| {})["message"]})),
    ] {
        assert_eq!(heard(&[one]), (vec![], vec![]), "{name}");
    }
    // The owner is told why not.
    for (name, one) in [
        ("edited", json!({"update_id": 1, "edited_message": update(1, YES, |_| {})["message"]})),
        (
            "forwarded",
            update(1, YES, |message| message["forward_origin"] = json!({"type": "user"})),
        ),
        ("forwarded as before", update(1, YES, |message| message["forward_date"] = json!(1))),
        ("by a bot", update(1, YES, |message| message["via_bot"] = json!({"id": 5}))),
        ("malformed", update(1, "approve everything", |_| {})),
        ("two codes", update(1, "approve 0123456789ab 0123456789ac", |_| {})),
    ] {
        let (said, replies) = heard(&[one]);
        assert_eq!((said.len(), replies.len()), (0, 1), "{name}");
        assert!(replies[0].starts_with("Not taken"), "{name} {replies:?}");
    }
}

#[test]
fn no_update_counts_twice_and_none_from_before() {
    let old = update(9, "approve 0123456789ab", |_| {});
    let fake = Fake::new(vec![updates(std::slice::from_ref(&old))]);
    let mut listener = Listener::new(fake.telegram(), OWNER, NOW);
    let mut said = Vec::new();
    let mut listen = |fake: &Fake, does: Option<Does>| {
        does.into_iter().for_each(|does| fake.then(does));
        listener.listen(&mut |one| {
            said.push(one.clone());
            String::new()
        })
    };
    listen(&fake, None).unwrap();
    let (_, asked) = fake.asked().pop().unwrap();
    assert_eq!((&asked["offset"], &asked["timeout"]), (&json!(-1), &json!(0)));
    let new = update(10, "deny 0123456789ac", |_| {});
    let reply = || Does::Answers(200, r#"{"ok":true,"result":{}}"#.into());
    // Again what was there, in a wrong order, and twice the same.
    fake.then(updates(&[new.clone(), old.clone(), new.clone()]));
    listen(&fake, Some(reply())).unwrap();
    fake.then(updates(&[old, new]));
    listen(&fake, None).unwrap();
    assert_eq!(said, [Said::Deny("0123456789ac".to_owned())]);
    let offsets: Vec<Value> = fake
        .asked()
        .into_iter()
        .filter(|(line, _)| line.contains("/getUpdates"))
        .map(|(_, asked)| asked["offset"].clone())
        .collect();
    assert_eq!(offsets, [json!(-1), json!(10), json!(11)]);
}

#[test]
fn trouble_with_updates_is_waited_out() {
    let fake = Fake::new(vec![]);
    let mut listener = Listener::new(fake.telegram().patience(Duration::from_secs(8)), OWNER, NOW);
    let mut fails = |does: Does| {
        fake.then(does);
        listener.listen(&mut |_| panic!("nothing was said")).unwrap_err()
    };
    let slow = json!({"ok": false, "parameters": {"retry_after": 12}}).to_string();
    assert_eq!(fails(Does::Answers(429, slow)).0, Duration::from_secs(12));
    let ever = json!({"ok": false, "parameters": {"retry_after": u64::MAX}}).to_string();
    assert!(fails(Does::Answers(429, ever)).0 <= Duration::from_secs(300));
    assert!(fails(Does::Garbage).0 >= Duration::from_secs(4), "longer each time");
    assert!(
        fails(Does::Answers(200, r#"{"ok":true,"result":7}"#.into())).0 >= Duration::from_secs(4)
    );
    assert!(
        fails(Does::Answers(200, format!(r#"{{"ok":true,"result":["{}"]}}"#, "x".repeat(3 << 20))))
            .0
            >= Duration::from_secs(4)
    );
    assert!(fails(Does::Hangs).0 >= Duration::from_secs(4));
    // A long answer that is sound is taken.
    fake.then(Does::Answers(200, format!(r#"{{"ok":true,"result":["{}"]}}"#, "x".repeat(1 << 20))));
    listener.listen(&mut |_| panic!("nothing was said")).unwrap();
}
