//! Hosts that no rule names, and an owner who is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wardkeep_gateway::egress::{Ask, BoxFuture, Limits, Reply, Request, Unlisted};

use super::lab::{Lab, Proxy, status, web};

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
