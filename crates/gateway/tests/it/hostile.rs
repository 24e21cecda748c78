//! Requests made to be read in two ways, to fill memory, or to never end.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wardkeep_gateway::egress::Limits;

use super::lab::{Lab, Seen, cut_by, read_all, status};

#[test]
fn smuggling() {
    let proxy = Lab::new().start();
    let inner = "GET http://blocked.test/ HTTP/1.1\r\nHost: blocked.test\r\n\r\n";
    let long = inner.len();
    for (lines, body) in [
        (format!("Content-Length: {long}\r\nTransfer-Encoding: chunked\r\n"), "0\r\n\r\n"),
        (format!("Transfer-Encoding: chunked\r\nContent-Length: {long}\r\n"), "0\r\n\r\n"),
        (format!("Content-Length: 0\r\nContent-Length: {long}\r\n"), ""),
        (format!("Content-Length: {long}\r\nContent-Length: {long}\r\n"), ""),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(), "0\r\n\r\n"),
        ("Transfer-Encoding: gzip, chunked\r\n".to_owned(), "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, identity\r\n".to_owned(), "0\r\n\r\n"),
        ("Transfer-Encoding: \tchunked\x0b\r\n".to_owned(), "0\r\n\r\n"),
        ("Transfer-Encoding\t: chunked\r\n".to_owned(), "0\r\n\r\n"),
        ("X: y\r\n Transfer-Encoding: chunked\r\n".to_owned(), "0\r\n\r\n"),
        ("X: y\nTransfer-Encoding: chunked\r\n".to_owned(), "0\r\n\r\n"),
        ("X: y\rTransfer-Encoding: chunked\r\n".to_owned(), "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n".to_owned(), "0;ext=\"\n\"\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n".to_owned(), "0\n\r\n"),
        ("Transfer-Encoding: chunked\r\n".to_owned(), "-1\r\n"),
        ("Transfer-Encoding: chunked\r\n".to_owned(), "0\r\nX: y\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n".to_owned(), "1\r\nab\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n".to_owned(), "fffffffffffffffff1\r\na\r\n0\r\n\r\n"),
        ("Connection: Content-Length\r\nContent-Length: 3\r\n".to_owned(), "abc"),
        ("Content-Length: 0x10\r\n".to_owned(), ""),
        ("Content-Length : 3\r\n".to_owned(), "abc"),
        ("Host: blocked.test\r\n".to_owned(), ""),
    ] {
        let asked = format!(
            "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{lines}\r\n{body}{inner}"
        );
        let answer = proxy.send(asked.as_bytes());
        assert_eq!(status(&answer), 400, "{lines:?} {body:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{lines:?}: {answer}");
    }
    assert_eq!(proxy.seen.dials(), 0);
    assert_eq!(proxy.seen.rules().len(), 22, "each is recorded");
}

/// Answers with more than it says, as if there were a second answer.
fn two_answers(_: &Arc<Seen>, _: &str, mut stream: std::net::TcpStream) {
    let mut piece = [0; 4096];
    let _ = stream.read(&mut piece);
    let _ = stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    );
}

#[test]
fn an_answer_has_no_other_behind_it() {
    let mut lab = Lab::new();
    lab.name("two.allowed.test", &["93.184.215.20"]);
    lab.host("two", "93.184.215.20", 80, two_answers);
    let proxy = lab.start();
    let answer = proxy.send(
        b"GET http://two.allowed.test/ HTTP/1.1\r\nHost: two.allowed.test\r\n\r\n\
          GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
    );
    assert!(!answer.contains("evil"), "{answer}");
    assert!(answer.ends_with("hello from allowed.test"), "{answer}");
}

#[test]
fn heads_are_bounded() {
    let proxy = Lab::new().start();
    let asked = |lines: &str| {
        format!("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{lines}\r\n")
    };
    let long = format!("X: {}\r\n", "y".repeat(70_000));
    assert_eq!(status(&proxy.send(asked(&long).as_bytes())), 431);
    let many: String = (0..120).map(|at| format!("X-{at}: y\r\n")).collect();
    assert_eq!(status(&proxy.send(asked(&many).as_bytes())), 431);
    let endless = vec![b'A'; 1 << 20];
    assert_eq!(status(&proxy.send(&endless)), 431);
    let fits = format!("X: {}\r\n", "y".repeat(60_000));
    assert_eq!(status(&proxy.send(asked(&fits).as_bytes())), 200);
    assert_eq!(proxy.seen.dials(), 1);
}

#[test]
fn who_is_slow_is_not_waited_for() {
    let mut lab = Lab::new();
    lab.limits = Limits {
        head: Duration::from_millis(1500),
        keep_alive: Duration::from_millis(1500),
        ..Limits::default()
    };
    let proxy = lab.start();
    // A first message of TLS that does not come.
    let (_, mut tunnel) = proxy.tunnel("allowed.test:443");
    assert_eq!(read_all(&mut tunnel), "");
    assert_eq!(cut_by(&proxy.seen.wait_outcomes(1)[0].1.ended), "egress-slow");
    let (began, long) = (Instant::now(), Duration::from_secs(60));
    let slow: Vec<_> = [
        &b""[..],
        b"GET http://allowed.test/ HTTP/1.1\r\n",
        b"\x05",
        b"\x05\x01\x00\x05\x01",
        b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 40\r\n\r\n",
    ]
    .into_iter()
    .map(|begin| {
        let mut stream = proxy.connect();
        stream.set_read_timeout(Some(long)).unwrap();
        stream.write_all(begin).unwrap();
        let mut writer = stream.try_clone().unwrap();
        // A byte now and then does not help.
        std::thread::spawn(move || {
            while began.elapsed() < long {
                std::thread::sleep(Duration::from_millis(50));
                if begin.is_empty() || writer.write_all(b"X").is_err() {
                    break;
                }
            }
        });
        std::thread::spawn(move || read_all(&mut stream))
    })
    .collect();
    for one in slow {
        one.join().unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
}

#[test]
fn many_slow_clients_do_not_keep_others_out() {
    let proxy = Lab::new().start();
    let held: Vec<_> = (0..500)
        .map(|_| {
            let mut stream = proxy.connect();
            stream.write_all(b"GET http://allo").unwrap();
            stream
        })
        .collect();
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
    drop(held);
}

#[test]
fn what_stays_between_client_and_proxy() {
    let proxy = Lab::new().start();
    let asked = "POST http://allowed.test/x HTTP/1.1\r\nHost: ALLOWED.test:80\r\n\
                 Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nProxy-Connection: x\r\n\
                 Keep-Alive: 5\r\nTE: trailers\r\nExpect: 100-continue\r\nAccept: */*\r\n\
                 Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n02\r\nde\r\n0\r\n\r\n";
    assert_eq!(status(&proxy.send(asked.as_bytes())), 200);
    let origin = proxy.seen.origin_text();
    let expected = "POST /x HTTP/1.1\r\nHost: allowed.test\r\nAccept: */*\r\n\
                    Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nabcde\r\n0\r\n\r\n";
    assert_eq!(origin, expected);
}

#[test]
fn other_first_lines_are_refused() {
    let proxy = Lab::new().start();
    for asked in [
        "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET ftp://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET http:/allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET http:///allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "CONNECT http://allowed.test/ HTTP/1.1\r\n\r\n",
        "CONNECT allowed.test HTTP/1.1\r\n\r\n",
        "CONNECT allowed.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
    ] {
        let answer = proxy.send(asked.as_bytes());
        assert!([0, 400].contains(&status(&answer)), "{asked:?}: {answer}");
    }
    let trace = "TRACE http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    assert_eq!(status(&proxy.send(trace.as_bytes())), 403);
    assert_eq!(proxy.seen.dials(), 0);
}

#[test]
fn a_method_that_the_host_is_asked_to_put_in_place_counts() {
    let mut lab = Lab::new();
    lab.allow = vec!["GET,HEAD allowed.test".to_owned()];
    let proxy = lab.start();
    let get = |line: &str| {
        let asked =
            format!("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{line}\r\n");
        proxy.send(asked.as_bytes())
    };
    for name in
        ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "x-http_method-override"]
    {
        for method in ["DELETE", "post"] {
            let answer = get(&format!("{name}: {method}\r\n"));
            assert!([400, 403].contains(&status(&answer)), "{name} {method}: {answer}");
        }
    }
    assert_eq!(proxy.seen.dials(), 0);
    assert_eq!(status(&get("X-HTTP-Method-Override: GET\r\n")), 200);
}
