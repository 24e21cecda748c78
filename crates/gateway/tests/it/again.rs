//! Connections to hosts that are used for more than one request.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wardkeep_gateway::egress::{BoxFuture, Dial, Resolve};

use super::lab::{ALLOWED, Lab, Proxy, Seen, cut_by, status};

const ELSEWHERE: &str = "93.184.215.99";

/// The head of the next request on a connection, which is written down.
fn next_head(seen: &Arc<Seen>, name: &str, stream: &mut TcpStream) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    seen.origin.lock().unwrap().push((name.to_owned(), head.clone()));
    Some(String::from_utf8(head).unwrap())
}

fn answer(body: &str, more: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{more}\r\n{body}", body.len())
}

/// What was asked for.
fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

/// Answers one request after the other with what was asked for.
fn patient(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    while let Some(head) = next_head(seen, name, &mut stream) {
        let _ = stream.write_all(answer(path(&head), "").as_bytes());
    }
}

/// Says more than was asked for: at once, or a moment after.
fn talkative(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    while let Some(head) = next_head(seen, name, &mut stream) {
        let injected = answer("injected", "");
        if path(&head).starts_with("/at-once") {
            let _ = stream.write_all([answer(path(&head), ""), injected].concat().as_bytes());
        } else {
            let _ = stream.write_all(answer(path(&head), "").as_bytes());
            std::thread::sleep(Duration::from_millis(20));
            let _ = stream.write_all(injected.as_bytes());
            seen.origin.lock().unwrap().push(("injected".to_owned(), Vec::new()));
        }
    }
}

/// Closes when it is asked for a second time.
fn tired(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    if let Some(head) = next_head(seen, name, &mut stream) {
        let _ = stream.write_all(answer(path(&head), "").as_bytes());
        let _ = next_head(seen, name, &mut stream);
    }
}

/// Says that it ends, and does not.
fn ending(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    while let Some(head) = next_head(seen, name, &mut stream) {
        let _ = stream.write_all(answer(path(&head), "Connection: close\r\n").as_bytes());
    }
}

/// Answers with a body that cannot be read, in one piece.
fn garbled(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    let _ = next_head(seen, name, &mut stream);
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n";
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn whoever_asks_is_told_that_an_answer_cannot_be_read() {
    let proxy = lab(garbled).start();
    assert_eq!(status(&ask(&proxy, "allowed.test", "/a")), 502);
    let (_, outcome) = proxy.seen.wait_outcomes(1).remove(0);
    assert_eq!((outcome.status, cut_by(&outcome.ended)), (None, "failed"));
}

fn lab(serve: super::lab::Serve) -> Lab {
    let mut lab = Lab::new();
    lab.host("allowed.test", ALLOWED, 80, serve);
    lab
}

/// Asks for a path on a connection of its own, and gives what came.
fn ask(proxy: &Proxy, host: &str, path: &str) -> String {
    proxy.get(&format!("http://{host}{path}"), host)
}

#[track_caller]
fn answered(answer: &str, body: &str) {
    assert_eq!(status(answer), 200, "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
}

#[test]
fn a_host_is_dialled_once_and_each_request_decided() {
    let mut lab = lab(patient);
    lab.name("other.test", &[ALLOWED]);
    lab.allow.push("other.test".to_owned());
    let proxy = lab.start();
    for path in ["/a", "/b", "/c"] {
        answered(&ask(&proxy, "allowed.test", path), path);
    }
    assert_eq!(proxy.seen.dials(), 1);
    assert_eq!(proxy.seen.decided.lock().unwrap().len(), 3);
    let outcomes = proxy.seen.wait_outcomes(3);
    let there: IpAddr = ALLOWED.parse().unwrap();
    for (_, outcome) in &outcomes {
        assert_eq!((outcome.status, outcome.address), (Some(200), Some(there)));
    }
    // Another name is another host, wherever it points.
    answered(&ask(&proxy, "other.test", "/d"), "/d");
    assert_eq!(proxy.seen.dials(), 2);
}

#[test]
fn nothing_is_sent_on_a_connection_that_is_open_before_it_is_allowed() {
    let proxy = lab(patient).start();
    answered(&ask(&proxy, "allowed.test", "/a"), "/a");
    proxy.seen.broken.store(true, Ordering::Relaxed);
    assert_eq!(status(&ask(&proxy, "allowed.test", "/b")), 403);
    assert!(!proxy.seen.origin_text().contains("/b"));
    assert_eq!(proxy.seen.dials(), 1);
}

/// A name that points elsewhere from the second lookup on.
struct Turns(AtomicUsize);

impl Resolve for Turns {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let address = if self.0.fetch_add(1, Ordering::Relaxed) == 0 { ALLOWED } else { ELSEWHERE };
        Box::pin(async { Ok(vec![address.parse().unwrap()]) })
    }
}

#[test]
fn a_name_that_points_elsewhere_is_dialled_there() {
    let mut lab = lab(patient);
    lab.host("elsewhere", ELSEWHERE, 80, patient);
    lab.change = Some(Box::new(|config| config.resolver = Arc::new(Turns(AtomicUsize::new(0)))));
    let proxy = lab.start();
    answered(&ask(&proxy, "allowed.test", "/a"), "/a");
    answered(&ask(&proxy, "allowed.test", "/b"), "/b");
    let dialled = proxy.seen.dialled.lock().unwrap();
    let hosts: Vec<String> = dialled.iter().map(|one| one.ip().to_string()).collect();
    assert_eq!(hosts, [ALLOWED, ELSEWHERE]);
}

#[test]
fn what_nobody_asked_for_is_no_answer_to_the_next() {
    let proxy = lab(talkative).start();
    for path in ["/at-once/1", "/at-once/2", "/after/1"] {
        answered(&ask(&proxy, "allowed.test", path), path);
    }
    let said = || proxy.seen.origin.lock().unwrap().iter().any(|(name, _)| name == "injected");
    let until = Instant::now() + Duration::from_secs(20);
    while !said() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    // Until it has come.
    std::thread::sleep(Duration::from_millis(100));
    answered(&ask(&proxy, "allowed.test", "/after/2"), "/after/2");
    assert_eq!(proxy.seen.dials(), 4);
}

#[test]
fn whoever_closes_is_asked_once_more_by_a_new_one() {
    let proxy = lab(tired).start();
    for path in ["/a", "/b", "/c"] {
        answered(&ask(&proxy, "allowed.test", path), path);
    }
    assert_eq!(proxy.seen.dials(), 3);
    let outcomes = proxy.seen.wait_outcomes(3);
    assert!(outcomes.iter().all(|(_, outcome)| outcome.status == Some(200)));
    let proxy = lab(ending).start();
    answered(&ask(&proxy, "allowed.test", "/a"), "/a");
    answered(&ask(&proxy, "allowed.test", "/b"), "/b");
    assert_eq!(proxy.seen.dials(), 2);
}

/// Connects once, and then no more.
struct Once(AtomicUsize, SocketAddr);

impl Dial for Once {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<tokio::net::TcpStream>> {
        let first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(async move {
            match first {
                true => tokio::net::TcpStream::connect(self.1).await,
                false => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }

    fn is_own(&self, _: IpAddr) -> bool {
        false
    }
}

#[test]
fn what_was_sent_counts_although_nobody_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = listener.local_addr().unwrap();
    let mut lab = Lab::new();
    let seen = Arc::clone(&lab.seen);
    std::thread::spawn(move || tired(&seen, "allowed.test", listener.accept().unwrap().0));
    lab.change =
        Some(Box::new(move |config| config.dialer = Arc::new(Once(AtomicUsize::new(0), there))));
    let proxy = lab.start();
    answered(&ask(&proxy, "allowed.test", "/a"), "/a");
    assert_eq!(status(&ask(&proxy, "allowed.test", "/b")), 502);
    assert!(proxy.seen.origin_text().contains("/b"));
    let (_, outcome) = proxy.seen.wait_outcomes(2).remove(1);
    assert_eq!((outcome.status, cut_by(&outcome.ended)), (None, "failed"));
    assert!(outcome.sent > 0, "{outcome:?}");
}

#[test]
fn what_changes_something_is_sent_once_and_on_a_new_one() {
    let proxy = lab(tired).start();
    answered(&ask(&proxy, "allowed.test", "/a"), "/a");
    for request in [
        "POST http://allowed.test/b HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 0\r\n\r\n",
        "DELETE http://allowed.test/c HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET http://allowed.test/d HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 1\r\n\r\nx",
        // To many hosts this is another method.
        "GET http://allowed.test/e HTTP/1.1\r\nHost: allowed.test\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
        // Some hosts take whatever follows on the connection for the same user's.
        "GET http://allowed.test/f HTTP/1.1\r\nHost: allowed.test\r\nAuthorization: Negotiate YII\r\n\r\n",
    ] {
        assert_eq!(status(&proxy.send(request.as_bytes())), 200, "{request}");
    }
    assert_eq!(proxy.seen.dials(), 6);
    let origin = proxy.seen.origin_text();
    assert_eq!(origin.matches("Connection: keep-alive\r\n").count(), 1, "{origin}");
    assert_eq!(origin.matches("Connection: close\r\n").count(), 5, "{origin}");
    for path in ["/b", "/c", "/d", "/e", "/f"] {
        assert_eq!(origin.matches(path).count(), 1, "{origin}");
    }
}
