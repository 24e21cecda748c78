//! What the records say of a request that the end of the proxy broke off.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lab::{ALLOWED, Lab, Proxy, Seen};

/// Takes all that comes, and says nothing.
fn sink(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        seen.origin.lock().unwrap().push((name.to_owned(), piece[..count].to_vec()));
    }
}

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.allow.push("sink.test:*".to_owned());
    lab.name("sink.test", &["93.184.215.40"]);
    lab.host("sink.test", "93.184.215.40", 80, sink);
    lab.host("sink.test", "93.184.215.40", 2222, sink);
    lab
}

fn got(proxy: &Proxy) -> u64 {
    proxy.seen.origin.lock().unwrap().iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

/// Waits until the host has so much, and that nothing more comes.
fn wait(proxy: &Proxy, least: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    let mut last = 0;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = got(proxy);
        if now >= least && now == last {
            return;
        }
        assert!(Instant::now() < until, "{now}");
        last = now;
    }
}

#[test]
fn a_tunnel_that_is_broken_off_tells_what_went_through() {
    let mut proxy = lab().start();
    let (status, mut stream) = proxy.tunnel("sink.test:2222");
    assert_eq!(status, 200);
    stream.write_all(&vec![b'x'; 4 << 20]).unwrap();
    wait(&proxy, 4 << 20);
    proxy.stop();
    assert_eq!(proxy.seen.wait_outcomes(1)[0].1.sent, got(&proxy));
}

#[test]
fn a_body_that_is_broken_off_tells_what_was_sent() {
    let mut proxy = lab().start();
    let mut stream = proxy.connect();
    let head =
        "POST http://sink.test/ HTTP/1.1\r\nHost: sink.test\r\nContent-Length: 3000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all("lorem ipsum ".repeat(100_000).as_bytes()).unwrap();
    wait(&proxy, 600_000);
    proxy.stop();
    assert_eq!(proxy.seen.wait_outcomes(1)[0].1.sent, got(&proxy));
}

/// What the host has not read yet has left as well.
#[test]
fn what_a_host_takes_before_it_stops_reading_is_told() {
    fn stops(_: &Arc<Seen>, _: &str, stream: TcpStream) {
        std::thread::sleep(Duration::from_secs(20));
        drop(stream);
    }
    let mut lab = Lab::new();
    lab.allow.push("allowed.test:2222".to_owned());
    lab.host("allowed.test", ALLOWED, 2222, stops);
    let mut proxy = lab.start();
    let (_, mut stream) = proxy.tunnel("allowed.test:2222");
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    while stream.write_all(&[b'x'; 32 << 10]).is_ok() {}
    proxy.stop();
    assert!(proxy.seen.wait_outcomes(1)[0].1.sent > 0);
}
