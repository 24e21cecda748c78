//! The proxy with the reference monitor behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use wardkeep_evidence::time::Timestamp;
use wardkeep_gateway::egress::{Monitored, Unlisted};
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::monitor::{Monitor, MonitorConfig, WhoBody};
use wardkeep_monitor::store::StoreConfig;

use super::lab::{BLOCKED, Lab, Proxy, status};

struct Scene {
    _folder: tempfile::TempDir,
    state: PathBuf,
    monitor: Arc<Monitor>,
}

impl Scene {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("config.toml"), config).unwrap();
        let clock = Clock::new(|| Timestamp::from_unix(1_800_000_000).unwrap());
        let owner = rustix::process::getuid().as_raw();
        let monitor = Monitor::open(&state, MonitorConfig::new(StoreConfig::new(clock), owner));
        Self { _folder: folder, state, monitor: Arc::new(monitor.unwrap()) }
    }

    fn proxy(&self, mut lab: Lab) -> Proxy {
        let who = WhoBody {
            agent: "egress".to_owned(),
            session: "egress:1".to_owned(),
            workspace: self.state.parent().unwrap().to_owned(),
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        };
        lab.decider = Some(Arc::new(Monitored::here(Arc::clone(&self.monitor), who)));
        lab.start()
    }

    /// Waits for so many records; each as its type and what it holds.
    fn records(&self, count: usize) -> Vec<(String, Value)> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let records = read(&self.state.join("journal"));
            if records.len() >= count || Instant::now() > until {
                assert_eq!(records.len(), count, "{records:#?}");
                return records;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn read(journal: &Path) -> Vec<(String, Value)> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(journal).unwrap().flatten() {
        if entry.path().extension().is_some_and(|end| end == "jsonl") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            lines.extend(text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
        }
    }
    lines
        .into_iter()
        .map(|line| {
            let record = &line["record"];
            let kind = record["recordType"].as_str().or(record["type"].as_str());
            (kind.unwrap_or_default().to_owned(), record.clone())
        })
        .collect()
}

#[test]
fn what_leaves_is_recorded_before_and_after() {
    let scene = Scene::new("");
    let proxy = scene.proxy(Lab::new());
    assert_eq!(status(&proxy.get("http://allowed.test/a", "allowed.test")), 200);
    let records = scene.records(2);
    let (first, second) = (records[0].1.to_string(), records[1].1.to_string());
    assert!(first.contains("http://allowed.test/a") && first.contains("93.184.215.14"), "{first}");
    assert!(first.contains("NetworkRequest"), "{first}");
    assert!(
        second.contains(r#""kind":"egress""#) && second.contains(r#""status":200"#),
        "{second}"
    );
    let id = records[0].1["recordId"].as_str().or(records[0].1["id"].as_str()).unwrap();
    assert!(second.contains(id), "the request is its parent: {second}");
}

#[test]
fn what_the_proxy_refuses_is_recorded_as_a_denial() {
    let scene = Scene::new("");
    let proxy = scene.proxy(Lab::new());
    assert_eq!(proxy.tunnel("unlisted.test:443").0, 403);
    assert_eq!(status(&proxy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")), 400);
    let records = scene.records(2);
    for (record, rule) in records.iter().zip(["egress-unlisted", "egress-malformed"]) {
        let text = record.1.to_string();
        assert!(text.contains(rule) && text.contains(r#""verdict":"deny""#), "{text}");
    }
}

#[test]
fn the_owners_lists_hold_for_names_and_addresses() {
    let scene = Scene::new(&format!("[egress]\nblocked_ip_ranges = [\"{BLOCKED}/32\"]\n"));
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Decider;
    lab.deny.clear();
    lab.allow = vec!["other.test".to_owned()];
    lab.name("other.test", &[BLOCKED]);
    lab.name("webhook.site", &["93.184.215.14"]);
    let proxy = scene.proxy(lab);
    // Allowed by the proxy's list, but it leads to an address that the owner blocks.
    let answer = proxy.get("http://other.test/", "other.test");
    assert!(status(&answer) == 403 && answer.contains("net-deny-blocked"), "{answer}");
    // On nobody's list, and blocked by name: it is not even looked up.
    let answer = proxy.get("http://webhook.site/x", "webhook.site");
    assert!(status(&answer) == 403, "{answer}");
    assert_eq!(*proxy.seen.lookups.lock().unwrap(), ["other.test"]);
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
    assert_eq!(proxy.seen.dials(), 1);
}

/// Rules of the proxy say what may be reached; what may be told there, the owner's configuration.
#[test]
fn a_login_needs_a_host_of_the_owners_list() {
    let refresh = ["grant_type=refresh_token&refresh_token=", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v"];
    for body in [
        ["username=me&password=", "Tr0ub4dor%263horse"].concat(),
        refresh.concat(),
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n".to_owned(),
    ] {
        let scene = Scene::new("");
        let proxy = scene.proxy(Lab::new());
        let head = "POST http://allowed.test/login HTTP/1.1\r\nHost: allowed.test\r\n";
        let asked = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let answer = proxy.send(asked.as_bytes());
        assert!(answer.contains("net-deny-secrets"), "{answer}");
        assert!(answer.contains("add the host to `allowed_domains`"), "{answer}");
        assert_eq!(proxy.seen.dials(), 0);
    }
}

#[test]
fn without_a_journal_nothing_leaves() {
    let scene = Scene::new("");
    let proxy = scene.proxy(Lab::new());
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
    scene.records(2);
    let journal = scene.state.join("journal");
    let moved = scene.state.join("gone");
    std::fs::rename(&journal, &moved).unwrap();
    std::fs::write(&journal, "not a folder").unwrap();
    let answer = proxy.get("http://allowed.test/", "allowed.test");
    // The journal holds its files open: it either records there still, or denies.
    let recorded = read(&moved).len();
    assert!(status(&answer) == 403 || recorded > 2, "{answer}");
}

#[test]
fn many_at_once_are_all_recorded() {
    let scene = Scene::new("");
    let mut lab = Lab::new();
    lab.threads = 2;
    let proxy = scene.proxy(lab);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let answer = proxy.get("http://allowed.test/", "allowed.test");
                    assert_eq!(status(&answer), 200, "{answer}");
                }
            });
        }
    });
    scene.records(320);
}

/// Questions go to the monitor several at a time: everybody gets the answer to their own.
#[test]
fn answers_of_many_at_once_are_not_mixed_up() {
    let scene = Scene::new(&format!("[egress]\nblocked_ip_ranges = [\"{BLOCKED}/32\"]\n"));
    let mut lab = Lab::new();
    lab.threads = 2;
    lab.allow.push("other.test".to_owned());
    lab.name("other.test", &[BLOCKED]);
    let proxy = scene.proxy(lab);
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let proxy = &proxy;
            scope.spawn(move || {
                for number in 0..10 {
                    let (host, expected) = match (thread + number) % 3 {
                        0 => ("other.test", 403),
                        1 => ("unlisted.test", 403),
                        _ => ("allowed.test", 200),
                    };
                    let answer = proxy.get(&format!("http://{host}/{thread}-{number}"), host);
                    assert_eq!(status(&answer), expected, "{host}: {answer}");
                    let rule = match host {
                        "other.test" => "net-deny-blocked",
                        "unlisted.test" => "egress-unlisted",
                        _ => "200",
                    };
                    assert!(answer.contains(rule), "{host}: {answer}");
                }
            });
        }
    });
    // 40 of each; what was allowed has an outcome, and its parent is a request to that host. Denials may be summed up.
    let until = Instant::now() + Duration::from_secs(20);
    let records = loop {
        let records = read(&scene.state.join("journal"));
        let outcomes =
            records.iter().filter(|(_, one)| one.to_string().contains("\"took\"")).count();
        if outcomes == 40 {
            break records;
        }
        assert!(Instant::now() < until, "{outcomes} outcomes");
        std::thread::sleep(Duration::from_millis(5));
    };
    let id = |one: &Value| one["recordId"].as_str().or(one["id"].as_str()).unwrap().to_owned();
    let allowed: Vec<String> = records
        .iter()
        .filter(|(_, one)| one.to_string().contains("http://allowed.test/"))
        .map(|(_, one)| id(one))
        .collect();
    assert_eq!(allowed.len(), 40);
    for (_, outcome) in records.iter().filter(|(_, one)| one.to_string().contains("\"took\"")) {
        let text = outcome.to_string();
        assert_eq!(allowed.iter().filter(|id| text.contains(id.as_str())).count(), 1, "{text}");
    }
}
