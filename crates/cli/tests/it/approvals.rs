//! `wardkeep approvals` by the real binary.

use std::fs;

use serde_json::Value;
use wardkeep_evidence::hash::{RecordId, encode_hex, sha256};
use wardkeep_evidence::json::{self, Object};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_monitor::approvals::ActionKey;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::store::{Event, Store, StoreConfig};

use crate::shared::{Ran, is_harmless};
use crate::state::Scene;

pub(crate) struct Place {
    pub(crate) scene: Scene,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { scene: Scene::new() };
        fs::create_dir(place.scene.at("ws")).unwrap();
        place.scene.expect(0, "s", &["init", "ws"]);
        place
    }

    pub(crate) fn store(&self, ago: i64) -> Store {
        let clock = Clock::new(move || Timestamp::from_unix(now() - ago).unwrap());
        let mut config = StoreConfig::new(clock);
        config.append_only = false;
        Store::open(&self.scene.at("s"), config).unwrap()
    }

    /// Leaves a request as the monitor does.
    pub(crate) fn ask(&self, subject: &str, ago: i64) -> String {
        let store = self.store(ago);
        let parent = Event::new(
            RecordType::ToolResult,
            Principal::Web,
            json::Value::from([("subject", json::Value::from("https://evil.example/\u{1b}[2J"))]),
        );
        let parent = store.append(parent).unwrap().id;
        let (old, new) = (b"model = a\n".as_slice(), b"model = b\nkey = \x1b]0;x\x07\n".as_slice());
        for bytes in [old, new] {
            store.put_blob(bytes).unwrap();
        }
        let action = ActionKey {
            principal: Principal::Tool,
            surface: Surface::ControlPlane,
            act: Act::Change,
            subject,
            how: "",
            content: Some(sha256(new)),
            workspace: "/w",
        };
        let text = json::Value::from;
        let content = |bytes: &[u8]| {
            json::Value::from([
                ("sha256", json::Value::from(encode_hex(&sha256(bytes)))),
                ("bytes", json::Value::from(bytes.len() as u64)),
                ("kept", json::Value::from(true)),
            ])
        };
        let told = Object::from([
            ("kind", text("decision")),
            ("v", json::Value::from(1u64)),
            ("act", text("change")),
            ("surface", text("ControlPlane")),
            ("subject", text(subject)),
            ("verdict", text("ask")),
            ("rule", text("cpi-ask-ambient")),
            ("reason", text("the session has read a web page")),
            ("rules", json::Value::Array(vec![text("cpi-ask-ambient"), text("own:x")])),
            ("direct", json::Value::Array(Vec::new())),
            ("ambient", json::Value::Array(vec![text("WEB_DERIVED"), text("UNTRUSTED")])),
            ("category", text("CPI")),
            ("severity", text("high")),
            ("action", json::Value::from(action.hash().to_string())),
            ("content", content(new)),
            ("before", content(old)),
        ]);
        let mut event =
            Event::new(RecordType::GuardDecision, Principal::Tool, json::Value::Object(told));
        event.session = "claude:1";
        event.agent = "claude";
        event.workspace = "/w";
        event.taint = vec!["WEB_DERIVED".into(), "UNTRUSTED".into()];
        event.parents = vec![parent];
        store.append(event).unwrap().id.to_string()
    }

    fn run(&self, code: i32, arguments: &[&str]) -> Ran {
        self.scene.expect(code, "s", &[&["approvals"], arguments].concat())
    }

    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        self.scene.json(code, "s", &[&["approvals"], arguments].concat())
    }
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

#[test]
fn a_request_is_listed_shown_and_approved() {
    let place = Place::new();
    let request = place.ask("/w/settings.json", 30);
    let list = place.json(0, &["list"]);
    let [one] = &list["pending"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!(one["request"], request.as_str());
    let left = one["seconds_left"].as_i64().unwrap();
    assert!((500..=570).contains(&left), "{left}");
    let shown = place.json(0, &["show", &request[..8]]);
    assert_eq!(
        (&shown["subject"], &shown["status"]),
        (&"/w/settings.json".into(), &"pending".into())
    );
    assert_eq!(shown["before"]["text"], "model = a\n");
    assert_eq!(shown["parents"][0]["principal"], "WEB");
    // Nobody is there, and nobody said yes.
    let ran = place.run(1, &["approve", &request]);
    assert!(ran.stderr.contains("needs a person"), "{ran:?}");
    let approved = place.json(0, &["approve", &request, "--yes", "--for", "5m"]);
    assert_eq!(
        (&approved["scope"], &approved["request"]),
        (&"once".into(), &request.as_str().into())
    );
    let docs = include_str!("../../../../docs/cli.md");
    for value in [&list, one, &shown, &approved] {
        for key in value.as_object().unwrap().keys() {
            assert!(docs.contains(&format!("`{key}`")), "docs/cli.md does not tell of `{key}`");
        }
    }
    let ran = place.run(1, &["approve", &request, "--yes"]);
    assert!(ran.stderr.contains("was approved before"), "{ran:?}");
    assert_eq!(place.json(0, &["show", &request])["status"], "approved");
    let list = place.json(0, &["list"]);
    assert_eq!(list["approvals"][0]["request"], request.as_str());
    let denied = place.json(0, &["deny", &request]);
    assert_eq!(denied["withdrawn"], true);
    assert_eq!(place.json(0, &["list"])["approvals"], serde_json::json!([]));
    place.scene.expect(0, "s", &["evidence", "verify"]);
}

#[test]
fn every_way_to_approve_is_refused_where_it_must_be() {
    let place = Place::new();
    let (old, request) = (place.ask("/w/old", 700), place.ask("/w/new", 5));
    let ran = place.run(1, &["approve", &old, "--yes"]);
    assert!(ran.stderr.contains("ended at"), "{ran:?}");
    for (arguments, word) in [
        (&["approve", "12345678", "--yes"][..], "no request begins with"),
        (&["approve", "1234", "--yes"], "is no request"),
        (&["approve", "../../x", "--yes"], "is no request"),
        (&["approve", &request, "--yes", "--for", "31d"], "cannot last"),
        (&["approve", &request, "--yes", "--for", "x"], "is no time"),
        (&["approve", &request, "--yes", "--declassify", "NONE"], "is no taint"),
        (&["approve", &request, "--yes", "--declassify", "SECRET_RISK"], "does not have the taint"),
        (&["deny", "12345678"], "no request begins with"),
    ] {
        let ran = place.run(1, arguments);
        assert!(
            ran.stderr.contains(word) && ran.stderr.contains("hint: "),
            "{arguments:?} {ran:?}"
        );
    }
    for arguments in [&["approve", &request, "--yes"][..], &["deny", &request]] {
        let arguments = [&["approvals"], arguments].concat();
        let mut command = place.scene.command("s", &arguments);
        let output = command.env("WARDKEEP_CONFINED", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    assert_eq!(place.json(0, &["list"])["pending"][0]["request"], request.as_str());
    place.run(0, &["deny", &request]);
    let ran = place.run(1, &["approve", &request, "--yes"]);
    assert!(ran.stderr.contains("was denied before"), "{ran:?}");
}

#[test]
fn hostile_text_is_shown_whole_and_harmless() {
    let place = Place::new();
    let subject = format!("/w/\u{1b}[2J\u{202e}{}\nApproved", "x".repeat(3000));
    let request = place.ask(&subject, 5);
    for arguments in [&["list"][..], &["show", &request], &["approve", &request, "--yes"]] {
        let ran = place.run(0, arguments);
        assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{arguments:?}");
        assert!(!ran.stdout.lines().any(|line| line == "Approved"));
        if arguments[0] != "list" {
            assert!(ran.stdout.contains(&"x".repeat(3000)), "all of it is shown");
            assert!(ran.stdout.contains("- model = a") && ran.stdout.contains("+ model = b"));
            assert!(ran.stdout.contains("\\u{1b}]0;x"), "{}", ran.stdout);
            assert!(ran.stdout.contains("https://evil.example/"), "where it came from");
        }
    }
}

#[test]
fn always_is_in_the_signed_set() {
    let place = Place::new();
    let request = place.ask("/w/settings.json", 5);
    let approved = place.json(0, &["approve", &request, "--yes", "--always"]);
    assert_eq!((&approved["scope"], &approved["expires"]), (&"always".into(), &Value::Null));
    let config = place.scene.json(0, "s", &["config", "show"]);
    assert_eq!(config["state"], "valid");
    assert!(
        place.json(0, &["list"])["approvals"][0]["about"].as_str().unwrap().contains("/w/settings")
    );
    let path = place.scene.at("s/pins/approvals.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("/w/settings", "/w/Settings")).unwrap();
    assert_eq!(place.json(0, &["list"])["approvals"], serde_json::json!([]));
    let again = place.ask("/w/other.json", 5);
    let ran = place.run(1, &["approve", &again, "--yes", "--always"]);
    assert!(ran.stderr.contains("not as they were signed"), "{ran:?}");
}

#[test]
fn an_approval_by_hand_is_told_of() {
    let place = Place::new();
    let request = place.ask("/w/settings.json", 5);
    let store = place.store(0);
    let text = json::Value::from;
    let told = Object::from([
        ("kind", text("approval")),
        ("v", json::Value::from(1u64)),
        ("action", json::Value::from(encode_hex(&[1; 32]))),
        ("scope", text("session")),
        ("expires", text("2099-01-01T00:00:00Z")),
        ("request", json::Value::from(request.clone())),
        ("grant", text("yes")),
    ]);
    let event = Event::new(RecordType::GuardDecision, Principal::User, json::Value::Object(told));
    let forged: RecordId = store.append(event).unwrap().id;
    drop(store);
    let list = place.json(0, &["list"]);
    assert_eq!((&list["ok"], &list["forged"][0]), (&false.into(), &forged.to_string().into()));
    assert_eq!(list["pending"][0]["request"], request.as_str());
}

#[test]
fn without_a_state_there_is_nothing_to_answer() {
    let place = Place { scene: Scene::new() };
    assert_eq!(place.json(0, &["list"])["pending"], serde_json::json!([]));
    place.run(4, &["deny", "12345678"]);
    assert!(!place.scene.at("s").exists(), "nothing was made");
}
