//! The proxy with the reference monitor behind it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use wardkeep_evidence::time::Timestamp;
use wardkeep_gateway::egress::{Monitored, Unlisted};
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::monitor::{Monitor, MonitorConfig, WhoBody};
use wardkeep_monitor::store::StoreConfig;

use super::lab::{ALLOWED, BLOCKED, Lab, Proxy, Seen, read_all, status};

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

fn in_chunks(size: usize) -> Vec<u8> {
    let mut all = b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in "lorem ipsum ".repeat(size / 12 + 1).as_bytes()[..size].chunks(10_000) {
        all.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        all.extend_from_slice(piece);
        all.extend(b"\r\n");
    }
    all.extend(b"0\r\n\r\n");
    all
}

fn with_length(size: usize) -> Vec<u8> {
    let head = "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n";
    let body = "lorem ipsum ".repeat(size / 12 + 1);
    format!("{head}Content-Length: {size}\r\n\r\n{}", &body[..size]).into_bytes()
}

/// `max_payload_size` holds whether or not a request says how long it is, and whoever is refused is told of it.
#[test]
fn a_payload_is_bounded_however_it_is_sent() {
    for (config, most) in [("", 1 << 20), ("[egress]\nmax_payload_size = 200000\n", 200_000)] {
        let scene = Scene::new(config);
        let proxy = scene.proxy(Lab::new());
        assert_eq!(status(&proxy.send(&with_length(most))), 200, "{most}");
        assert_eq!(status(&proxy.send(&in_chunks(most))), 200, "{most}");
        for asked in [with_length(most + 1), in_chunks(most + 1), in_chunks(3 * most)] {
            let answer = proxy.send(&asked);
            assert!([403, 413].contains(&status(&answer)), "{answer}");
            assert!(answer.contains("`max_payload_size`"), "{answer}");
        }
    }
}

/// What the owner has set holds for what cannot be read, too. Without it, one tunnel may carry many requests.
#[test]
fn a_tunnel_carries_what_the_owner_has_set() {
    for (config, most) in [("", None), ("[egress]\nmax_payload_size = 200000\n", Some(200_000_u64))]
    {
        let scene = Scene::new(config);
        let mut lab = Lab::new();
        lab.allow.push("allowed.test:2222".to_owned());
        lab.host("tunnel", ALLOWED, 2222, taken);
        lab.host("socket", ALLOWED, 80, super::attacks::websocket);
        let mut proxy = scene.proxy(lab);
        let (_, mut stream) = proxy.tunnel("allowed.test:2222");
        let _ = stream.write_all(&vec![b'x'; 2 << 20]);
        let _ = stream.shutdown(Shutdown::Write);
        read_all(&mut stream);
        let got = |name: &str| {
            let origin = proxy.seen.origin.lock().unwrap();
            origin
                .iter()
                .filter(|(host, _)| host == name)
                .map(|(_, one)| one.len() as u64)
                .sum::<u64>()
        };
        match most {
            None => assert_eq!(got("tunnel"), 2 << 20),
            Some(most) => assert!(got("tunnel") <= most, "{}", got("tunnel")),
        }
        let mut stream = proxy.connect();
        let asked = "GET http://allowed.test/chat HTTP/1.1\r\nHost: allowed.test\r\n\
                     Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(asked.as_bytes()).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let read = std::thread::spawn(move || read_all(&mut reader).len());
        let message = [&[0x82, 0xfe, 3, 232, 0, 0, 0, 0][..], &[0; 1000]].concat();
        for _ in 0..1500 {
            let _ = stream.write_all(&message);
        }
        let _ = stream.shutdown(Shutdown::Write);
        read.join().unwrap();
        match most {
            None => assert_eq!(got("socket"), 1500 * 1008),
            Some(most) => assert!(got("socket") <= most, "{}", got("socket")),
        }
        proxy.stop();
    }
}

fn taken(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    seen.origin.lock().unwrap().push((name.to_owned(), all));
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
