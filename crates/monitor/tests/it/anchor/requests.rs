//! The witness's HTTP server against clients of every kind.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{DEADLINE, Served, TestLog, witness_key};

fn post(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[test]
fn malformed_requests_get_the_status_they_deserve() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let served = Served::open(state.path(), &[&log]);
    let note = log.seal();
    let good = log.request(0, &note);
    let hash = log.tree.root_at(1).unwrap();
    let with = |from: &str, to: &str| post(&good.replacen(from, to, 1));
    let head = |text: &str| text.replace('\n', "\r\n").into_bytes();
    let hashes = |count: usize| format!("old 4\n{}", format!("{hash}\n").repeat(count));
    let request_line = "POST /add-checkpoint HTTP/1.1\n";
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("large header", head(&format!("{request_line}X: {}\n\n", "x".repeat(17_000))), 431),
        ("endless header", head(&format!("{request_line}X: {}", "x".repeat(40_000))), 431),
        ("many headers", head(&format!("{request_line}{}\n", "X: y\n".repeat(65))), 431),
        ("large body", head(&format!("{request_line}Content-Length: 131073\n\n")), 413),
        (
            "huge length",
            head(&format!("{request_line}Content-Length: 18446744073709551615\n\n")),
            413,
        ),
        ("too huge", head(&format!("{request_line}Content-Length: 18446744073709551616\n\n")), 400),
        ("signed length", head(&format!("{request_line}Content-Length: +3\n\nabc")), 400),
        ("negative length", head(&format!("{request_line}Content-Length: -1\n\n")), 400),
        ("zero-led length", head(&format!("{request_line}Content-Length: 03\n\nabc")), 400),
        ("list of lengths", head(&format!("{request_line}Content-Length: 3, 3\n\nabc")), 400),
        (
            "two lengths",
            head(&format!("{request_line}Content-Length: 3\nContent-Length: 3\n\nabc")),
            400,
        ),
        ("no length", head(&format!("{request_line}Host: w\n\n")), 411),
        ("more than said", head(&format!("{request_line}Content-Length: 2\n\nabc")), 400),
        ("chunked", head(&format!("{request_line}Transfer-Encoding: chunked\n\n0\n\n")), 501),
        (
            "both",
            head(&format!("{request_line}Transfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n")),
            501,
        ),
        (
            "identity",
            head(&format!("{request_line}Transfer-Encoding: identity\nContent-Length: 0\n\n")),
            501,
        ),
        (
            "two introductions",
            head(&format!("{request_line}Content-Length: 0\nWardkeep-Log: a\nWardkeep-Log: b\n\n")),
            400,
        ),
        ("folded header", head(&format!("{request_line}X: a\n b\nContent-Length: 0\n\n")), 400),
        ("space before colon", head(&format!("{request_line}Content-Length : 0\n\n")), 400),
        ("version 2", head("PRI * HTTP/2.0\n\nSM\n\n"), 505),
        ("version 0.9", head("GET /\n\n"), 400),
        ("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), 400),
        ("nul in path", b"GET /\0 HTTP/1.1\r\n\r\n".to_vec(), 400),
        ("other method", head("PUT /add-checkpoint HTTP/1.1\nContent-Length: 0\n\n"), 405),
        ("get to add", head("GET /add-checkpoint HTTP/1.1\n\n"), 405),
        ("post to latest", head("POST /latest HTTP/1.1\nContent-Length: 0\n\n"), 404),
        ("other path", head("POST /add-checkpoint/ HTTP/1.1\nContent-Length: 0\n\n"), 404),
        ("doubled slash", head("POST //add-checkpoint HTTP/1.1\nContent-Length: 0\n\n"), 404),
        ("query", head("POST /add-checkpoint?x HTTP/1.1\nContent-Length: 0\n\n"), 404),
        ("absolute", head("GET http://w/ HTTP/1.1\n\n"), 404),
        ("traversal", head("GET /../../etc/passwd HTTP/1.1\n\n"), 404),
        ("no origin", head("GET /latest HTTP/1.1\n\n"), 400),
        ("cut origin", head("GET /latest?origin=%f HTTP/1.1\n\n"), 400),
        ("binary origin", head("GET /latest?origin=%ff HTTP/1.1\n\n"), 400),
        ("unseen origin", head("GET /latest?origin=a/../b HTTP/1.1\n\n"), 404),
        ("introduction", head("GET / HTTP/1.0\n\n"), 200),
        ("empty body", post(""), 400),
        (
            "not utf-8",
            head(&format!("{request_line}Content-Length: 1\n\n"))
                .into_iter()
                .chain([0xff])
                .collect(),
            400,
        ),
        ("no old", with("old 0\n", ""), 400),
        ("zero-led old", with("old 0", "old 00"), 400),
        ("signed old", with("old 0", "old -0"), 400),
        ("huge old", with("old 0", "old 18446744073709551616"), 400),
        ("largest old", with("old 0", "old 18446744073709551615"), 400),
        ("carriage return", with("old 0\n", "old 0\r\n"), 400),
        ("64 hashes", with("old 0\n", &hashes(64)), 400),
        ("63 hashes", with("old 0\n", &hashes(63)), 409),
        ("bad hash", with("old 0\n", "old 0\nAAAA\n"), 400),
        ("no checkpoint", post("old 0\n\n"), 400),
        ("zero-led size", with("\n4\n", "\n04\n"), 400),
        ("huge size", with("\n4\n", "\n99999999999999999999\n"), 400),
        ("101 signatures", post(&format!("{good}{}", "— a AAAAAAEC\n".repeat(99))), 400),
        ("good", post(&good), 200),
    ];
    for (name, request, expected) in cases {
        assert_eq!(served.raw(&request), expected, "{name}");
    }
    let path = format!("GET /latest?origin={} HTTP/1.1\n\n", log.origin());
    assert_eq!(served.raw(&head(&path)), 200);
}

#[test]
fn the_witness_introduces_itself() {
    let state = tempfile::tempdir().unwrap();
    let served = Served::open(state.path(), &[]);
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let key = witness_key("w.example/1").verifier().to_string();
    assert!(
        answer.ends_with(&format!("\r\n\r\nwardkeep witness w.example/1\n{key}\n")),
        "{answer}"
    );
}

#[test]
fn slow_clients_are_cut_off_and_hold_nobody_up() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let deadline = Duration::from_millis(500);
    let served = Served::with_deadline(state.path(), &[&log], deadline);
    let started = Instant::now();
    // More silent connections than there are threads; each gets its turn and is dropped.
    let silent: Vec<_> = (0..4).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let mut slow = TcpStream::connect(served.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut dripped = 0;
    loop {
        // One byte at a time, each well within the time a single read may take.
        let sent = slow.write_all(b"G");
        match slow.read(&mut [0; 512]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && sent.is_ok() => dripped += 1,
            _ => break,
        }
        assert!(started.elapsed() < DEADLINE);
    }
    assert!(dripped > 0);
    for mut stream in silent {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    let note = log.seal();
    let request = post(&log.request(0, &note));
    assert_eq!(served.raw(&request), 200);
    assert!(started.elapsed() < DEADLINE);
}

#[test]
fn a_prefix_is_part_of_every_path_but_the_introduction() {
    use wardkeep_monitor::anchor::server::ServerOptions;
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let options = ServerOptions { prefix: "/w/1".to_owned(), ..ServerOptions::default() };
    let server = super::open_witness(state.path(), &[&log], false).with_options(options);
    let served = Served::new(server);
    let key = witness_key("w.example/1").verifier().to_string();
    let url = format!("{}/w/1/", served.url());
    let mut client =
        wardkeep_monitor::anchor::witness::WitnessAnchor::new("w", &url, &key, 0, DEADLINE)
            .unwrap();
    assert_eq!(log.put(&mut client).unwrap().size, 4);
    assert_eq!(log.put(&mut served.client(0)).unwrap_err().kind(), "refused");
    assert_eq!(served.raw(b"GET / HTTP/1.1\r\n\r\n"), 200);
}
