//! Hosts that no rule names, and an owner who is asked.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wardkeep_gateway::egress::{Ask, AskInThread, BoxFuture, Limits, Reply, Request, Unlisted};

use super::lab::{Lab, Proxy, read_all, status, web};

struct Owner(Reply, Arc<AtomicUsize>);

impl Ask for Owner {
    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Reply> {
        assert!(request.url.contains("new.test"), "{}", request.url);
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.0
        })
    }
}

fn with(reply: Reply) -> (Proxy, Arc<AtomicUsize>) {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Ask;
    lab.name("new.test", &["93.184.215.30"]);
    lab.host("new.test", "93.184.215.30", 80, web);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    lab.change = Some(Box::new(move |config| config.ask = Some(Arc::new(Owner(reply, count)))));
    (lab.start(), asked)
}

#[test]
fn once_session_and_no() {
    for (reply, first, second, questions) in [
        (Reply::Once, 200, 200, 2),
        (Reply::Session, 200, 200, 1),
        (Reply::Always, 200, 200, 1),
        (Reply::No, 403, 403, 1),
    ] {
        let (proxy, asked) = with(reply);
        for expected in [first, second] {
            assert_eq!(status(&proxy.get("http://new.test/", "new.test")), expected, "{reply:?}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), questions, "{reply:?}");
        // Nobody is asked about what a rule names.
        assert_eq!(status(&proxy.get("http://blocked.test/", "blocked.test")), 403);
        assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
        assert_eq!(asked.load(Ordering::Relaxed), questions, "{reply:?}");
    }
}

#[test]
fn many_at_once_are_one_question() {
    let (proxy, asked) = with(Reply::Session);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 200);
            });
        }
    });
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn without_anyone_to_ask_it_is_denied() {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Ask;
    let proxy = lab.start();
    assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 403);
    assert!(proxy.seen.lookups.lock().unwrap().is_empty());
}

struct Nobody;

impl Ask for Nobody {
    fn ask<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Reply> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn an_owner_who_does_not_answer_says_no() {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Ask;
    lab.limits = Limits { ask: Duration::from_millis(100), ..Limits::default() };
    lab.change = Some(Box::new(|config| config.ask = Some(Arc::new(Nobody))));
    let proxy = lab.start();
    assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 403);
    assert_eq!(proxy.seen.rules(), ["egress-owner"]);
}

/// Answers only when asked for the second time.
struct Late(Arc<AtomicUsize>);

impl Ask for Late {
    fn ask<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Reply> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(
            async move { if before == 0 { std::future::pending().await } else { Reply::Session } },
        )
    }
}

/// Only what the owner says is remembered: without an answer the next request asks again.
#[test]
fn no_answer_is_not_remembered() {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Ask;
    lab.limits = Limits { ask: Duration::from_secs(1), ..Limits::default() };
    lab.name("new.test", &["93.184.215.30"]);
    lab.host("new.test", "93.184.215.30", 80, web);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    lab.change = Some(Box::new(move |config| config.ask = Some(Arc::new(Late(count)))));
    let proxy = lab.start();
    // Whoever waits for the same question has the same answer: none.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 403);
            });
        }
    });
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 200);
}

/// Who asks for many hosts neither buries the owner in questions nor holds up other requests.
#[test]
fn a_flood_of_unknown_hosts_is_few_questions() {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Ask;
    let (asked, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(())));
    let held = open.lock().unwrap();
    let (count, gate) = (Arc::clone(&asked), Arc::clone(&open));
    lab.change = Some(Box::new(move |config| {
        config.ask = Some(Arc::new(AskInThread::new(move |_: &Request, _: &dyn Fn() -> bool| {
            count.fetch_add(1, Ordering::Relaxed);
            drop(gate.lock());
            Reply::No
        })));
    }));
    let proxy = lab.start();
    let mut waiting = Vec::new();
    for number in 0..600 {
        let host = format!("h{number}.hostile.test");
        let mut stream = proxy.connect();
        let head = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        waiting.push(stream);
    }
    let body = "lorem ipsum ".repeat(5000);
    let head = "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n";
    let asked_for = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    assert_eq!(status(&proxy.send(asked_for.as_bytes())), 200);
    // Most are refused without a question, and not for good.
    for stream in &mut waiting[8..] {
        let answer = read_all(stream);
        assert!(answer.contains("egress-owner"), "{answer}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 8);
    drop(held);
    for stream in &mut waiting[..8] {
        assert_eq!(status(&read_all(stream)), 403);
    }
    assert_eq!(status(&proxy.get("http://h599.hostile.test/", "h599.hostile.test")), 403);
    assert_eq!(asked.load(Ordering::Relaxed), 9);
}

/// Whoever shows a question can tell that nobody waits for the answer any more.
#[test]
fn a_question_that_nobody_waits_for_is_known_as_such() {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Ask;
    lab.limits = Limits { ask: Duration::from_millis(50), ..Limits::default() };
    let seen = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&seen);
    lab.change = Some(Box::new(move |config| {
        config.ask =
            Some(Arc::new(AskInThread::new(move |_: &Request, gone: &dyn Fn() -> bool| {
                while !gone() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                told.fetch_add(1, Ordering::Relaxed);
                // Too late.
                Reply::Session
            })));
    }));
    let mut proxy = lab.start();
    assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 403);
    assert_eq!(status(&proxy.get("http://new.test/", "new.test")), 403);
    proxy.stop();
    let until = Instant::now() + Duration::from_secs(20);
    while seen.load(Ordering::Relaxed) < 2 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
}
