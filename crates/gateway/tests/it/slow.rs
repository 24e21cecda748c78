//! Bodies that come slowly.

use std::io::Write as _;
use std::net::Shutdown;
use std::time::Duration;

use wardkeep_gateway::egress::Limits;

use super::lab::{Lab, read_all, status};

/// The decider sees the beginning of a body or all of it: what comes behind a pause would be hidden from it.
#[test]
fn a_body_that_stalls_is_refused_before_anything_is_sent() {
    let mut lab = Lab::new();
    lab.limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let proxy = lab.start();
    for lines in ["Content-Length: 20", "Transfer-Encoding: chunked"] {
        let mut stream = proxy.connect();
        let head =
            format!("POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{lines}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"1\r\na").unwrap();
        let answer = read_all(&mut stream);
        assert_eq!(status(&answer), 408, "{answer}");
        assert!(answer.contains("egress-slow"), "{answer}");
        let _ = stream.shutdown(Shutdown::Both);
    }
    assert_eq!(proxy.seen.rules(), ["egress-slow"; 2]);
    assert_eq!(proxy.seen.dials(), 0);
}

/// Behind its beginning a body may take its time.
#[test]
fn a_long_body_may_pause_behind_its_beginning() {
    let mut lab = Lab::new();
    lab.limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let proxy = lab.start();
    let mut stream = proxy.connect();
    let body = "lorem ipsum ".repeat(6000);
    let head = format!(
        "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len() + 3
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    stream.write_all(b"end").unwrap();
    assert_eq!(status(&read_all(&mut stream)), 200);
}
