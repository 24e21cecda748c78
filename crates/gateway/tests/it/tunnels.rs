//! Tunnels: half-closed ones, and those that can be read.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use wardkeep_gateway::egress::hello::example;
use wardkeep_gateway::egress::{Limits, Listener, start};

use super::lab::{ALLOWED, Lab, Seen, cut_by, read_all, status};

/// Answers only when the other side is done, and is done itself only then.
fn at_the_end(_: &Arc<Seen>, _: &str, mut stream: TcpStream) {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let mut answer = vec![23, 3, 3, 0, 4];
    answer.extend(u32::try_from(all.len()).unwrap().to_be_bytes());
    let _ = stream.write_all(&answer);
}

#[test]
fn a_half_closed_tunnel_carries_the_rest() {
    let mut lab = Lab::new();
    lab.name("late.allowed.test", &["93.184.215.22"]);
    lab.host("late", "93.184.215.22", 443, at_the_end);
    let proxy = lab.start();
    let (_, mut stream) = proxy.tunnel("late.allowed.test:443");
    let hello = example(Some("late.allowed.test"), false);
    stream.write_all(&hello).unwrap();
    let mut record = vec![23, 3, 3, 0x40, 0];
    record.extend([7; 0x4000]);
    for _ in 0..100 {
        stream.write_all(&record).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let sent = u32::try_from(hello.len() + 100 * record.len()).unwrap();
    assert_eq!(answer[5..], sent.to_be_bytes());
    let outcome = &proxy.seen.wait_outcomes(1)[0].1;
    assert_eq!((outcome.sent, outcome.received), (sent.into(), 9));
    assert_eq!(cut_by(&outcome.ended), "done");
}

/// Is done at once, but listens on.
fn done_first(seen: &Arc<Seen>, name: &str, stream: TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
    super::lab::echo(seen, name, stream);
}

#[test]
fn a_half_closed_tunnel_does_not_stay_for_ever() {
    let mut lab = Lab::new();
    lab.limits = Limits { half_closed: Duration::from_millis(200), ..Limits::default() };
    lab.name("half.allowed.test", &["93.184.215.23"]);
    lab.host("half", "93.184.215.23", 443, done_first);
    let proxy = lab.start();
    let (_, mut stream) = proxy.tunnel("half.allowed.test:443");
    stream.write_all(&example(Some("half.allowed.test"), false)).unwrap();
    assert_eq!(read_all(&mut stream), "");
    // Still open for writing; nothing is written.
    assert_eq!(cut_by(&proxy.seen.wait_outcomes(1)[0].1.ended), "egress-idle");
}

/// Speaks first.
fn greets(_: &Arc<Seen>, _: &str, mut stream: TcpStream) {
    let _ = stream.write_all(b"220 ready\r\n");
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
}

#[test]
fn a_host_may_speak_first_on_other_ports() {
    let mut lab = Lab::new();
    lab.allow.push("allowed.test:2525".to_owned());
    lab.host("allowed.test", ALLOWED, 2525, greets);
    let proxy = lab.start();
    let (status, mut stream) = proxy.tunnel("allowed.test:2525");
    assert_eq!(status, 200);
    let mut greeting = [0; 11];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"220 ready\r\n");
}

#[test]
fn what_goes_to_port_80_in_a_tunnel_is_read() {
    let proxy = Lab::new().start();
    let through = |asked: &str| {
        let (_, mut stream) = proxy.socks(b"allowed.test", 80);
        stream.write_all(asked.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_all(&mut stream)
    };
    let answer = through("GET /a HTTP/1.1\r\nHost: allowed.test\r\n\r\n");
    assert!(answer.ends_with("hello from allowed.test"), "{answer}");
    for asked in [
        "GET /a HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        "GET http://blocked.test/ HTTP/1.1\r\nHost: blocked.test\r\n\r\n",
        "CONNECT blocked.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "SSH-2.0-CANARY\r\n\r\n",
    ] {
        let answer = through(asked);
        assert!([400, 403].contains(&status(&answer)), "{asked}: {answer}");
    }
    assert_eq!(proxy.seen.dials(), 1);
    let (status, mut stream) = proxy.tunnel("allowed.test:80");
    assert_eq!(status, 200);
    stream
        .write_all(b"GET /b HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(read_all(&mut stream).ends_with("hello from allowed.test"));
    let last = proxy.seen.decided.lock().unwrap().last().unwrap().url.clone();
    assert_eq!(last, "http://allowed.test/b");
}

#[test]
fn large_answers_come_whole() {
    fn large(_: &Arc<Seen>, _: &str, mut stream: TcpStream) {
        let mut piece = [0; 4096];
        let _ = stream.read(&mut piece);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        for at in 0..200u32 {
            let chunk = vec![b'a' + (at % 26) as u8; 50_000];
            let _ = stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes());
            let _ = stream.write_all(&chunk);
            let _ = stream.write_all(b"\r\n");
        }
        let _ = stream.write_all(b"0\r\nX-Sum: 1\r\n\r\n");
    }
    let mut lab = Lab::new();
    lab.name("large.allowed.test", &["93.184.215.24"]);
    lab.host("large", "93.184.215.24", 80, large);
    let proxy = lab.start();
    let answer = proxy.get("http://large.allowed.test/", "large.allowed.test");
    assert!(answer.len() > 10_000_000 && answer.ends_with("0\r\nX-Sum: 1\r\n\r\n"));
    assert_eq!(answer.matches('b').count() % 50_000, 0);
}

#[test]
fn a_socket_of_this_machine_serves_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("egress.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut lab = Lab::new();
    let config = lab.config();
    let decider = Arc::new(super::limits::Yes);
    let running = start(Listener::Unix(listener), config, decider, 2).unwrap();
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream
        .write_all(
            b"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello from allowed.test"), "{answer}");
    running.stop().unwrap();
}

#[test]
fn a_host_that_cannot_be_reached_is_told() {
    let mut lab = Lab::new();
    lab.name("gone.allowed.test", &["93.184.215.25", "93.184.215.26"]);
    let proxy = lab.start();
    assert_eq!(proxy.tunnel("gone.allowed.test:443").0, 502);
    assert_eq!(status(&proxy.get("http://gone.allowed.test/", "gone.allowed.test")), 502);
    assert_eq!(proxy.socks(b"gone.allowed.test", 443).0, 4);
    assert_eq!(proxy.socks(b"nowhere.allowed.test", 443).0, 2);
    for (_, outcome) in proxy.seen.wait_outcomes(3) {
        assert_eq!(cut_by(&outcome.ended), "failed");
    }
}
