//! How much may leave, and for how long.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use wardkeep_gateway::egress::hello::example;
use wardkeep_gateway::egress::{BoxFuture, Decider, Decision, Limits, Outcome, Request, Verdict};

use super::lab::{Lab, Seen, cut_by, read_all, status};

/// Allows everything.
pub(crate) struct Yes;

impl Decider for Yes {
    fn decide<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Decision> {
        let verdict = Verdict::Allow { upload: None };
        Box::pin(async { Decision { verdict, record: None } })
    }

    fn outcome<'a>(
        &'a self,
        _: &'a Request,
        _: Option<&'a str>,
        _: &'a Outcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

fn post(host: &str, size: usize) -> Vec<u8> {
    let body = "x".repeat(size);
    format!("POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\n\r\n{body}")
        .into_bytes()
}

#[test]
fn hosts_of_one_rule_share_a_budget() {
    let mut lab = Lab::new();
    lab.limits = Limits { upload_per_host: 10_000, ..Limits::default() };
    lab.allow.push("other.test".to_owned());
    for name in ["a.allowed.test", "b.allowed.test", "other.test"] {
        lab.name(name, &[super::lab::ALLOWED]);
    }
    let proxy = lab.start();
    assert_eq!(status(&proxy.send(&post("a.allowed.test", 6000))), 200);
    let answer = proxy.send(&post("b.allowed.test", 6000));
    assert_eq!(status(&answer), 403, "{answer}");
    assert!(answer.contains("egress-host-budget"), "{answer}");
    assert_eq!(status(&proxy.send(&post("other.test", 6000))), 200);
}

#[test]
fn all_hosts_share_one_too() {
    let mut lab = Lab::new();
    lab.limits = Limits { upload_total: 10_000, ..Limits::default() };
    lab.allow.push("other.test".to_owned());
    lab.name("other.test", &[super::lab::ALLOWED]);
    let proxy = lab.start();
    assert_eq!(status(&proxy.send(&post("allowed.test", 6000))), 200);
    let answer = proxy.send(&post("other.test", 6000));
    assert!(answer.contains("egress-total-budget"), "{answer}");
    // Requests without a body count as well.
    let mut answers = (0..200).map(|_| status(&proxy.get("http://allowed.test/", "allowed.test")));
    assert!(answers.any(|status| status == 403));
}

/// Never answers.
fn silent(_: &Arc<Seen>, _: &str, mut stream: std::net::TcpStream) {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
}

#[test]
fn what_stands_still_ends() {
    let mut lab = Lab::new();
    lab.limits = Limits { idle: Duration::from_millis(300), ..Limits::default() };
    lab.name("silent.allowed.test", &["93.184.215.21"]);
    lab.host("silent", "93.184.215.21", 80, silent);
    lab.host("silent", "93.184.215.21", 443, silent);
    let proxy = lab.start();
    let answer = proxy.get("http://silent.allowed.test/", "silent.allowed.test");
    assert_eq!(status(&answer), 403, "{answer}");
    let (_, mut stream) = proxy.tunnel("silent.allowed.test:443");
    stream.write_all(&example(Some("silent.allowed.test"), false)).unwrap();
    assert_eq!(read_all(&mut stream), "");
    for (_, outcome) in proxy.seen.wait_outcomes(2) {
        assert_eq!(cut_by(&outcome.ended), "egress-idle");
    }
}

#[test]
fn nothing_lasts_for_ever() {
    let mut lab = Lab::new();
    lab.limits = Limits { lifetime: Duration::from_millis(400), ..Limits::default() };
    lab.limits.half_closed = Duration::from_millis(100);
    let proxy = lab.start();
    let (_, mut stream) = proxy.tunnel("allowed.test:443");
    stream.write_all(&example(Some("allowed.test"), false)).unwrap();
    let mut reader = stream.try_clone().unwrap();
    let read = std::thread::spawn(move || read_all(&mut reader));
    while stream.write_all(&[23, 3, 3, 0, 1, 0]).is_ok() {
        std::thread::sleep(Duration::from_millis(10));
    }
    read.join().unwrap();
    assert_eq!(cut_by(&proxy.seen.wait_outcomes(1)[0].1.ended), "egress-lifetime");
}

#[test]
fn places_are_bounded_and_others_wait() {
    let mut lab = Lab::new();
    lab.limits = Limits { connections: 4, ..Limits::default() };
    lab.limits.head = Duration::from_millis(1500);
    let proxy = lab.start();
    let held: Vec<_> = (0..4).map(|_| proxy.connect()).collect();
    // The fifth is served when the first have been given up.
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
    drop(held);
}
