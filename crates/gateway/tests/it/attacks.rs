//! The attacks on a proxy that the checklist of the red team has (X01 to X25).

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wardkeep_gateway::egress::hello::example;
use wardkeep_gateway::egress::{Credential, Limits, Listener, Unlisted};

use super::lab::{Lab, Proxy, Seen, cut_by, read_all, status};

fn nothing_went_out(seen: &Seen) {
    assert_eq!(seen.dials(), 0, "dialled {:?}", seen.dialled.lock().unwrap());
    assert_eq!(seen.origin_text(), "");
}

/// Refused with a reason, recorded, and nothing was sent.
fn refused(proxy: &Proxy, answer: &str, rule: &str) {
    assert!([400, 403].contains(&status(answer)), "{answer}");
    assert!(answer.contains(rule), "{answer}");
    assert!(proxy.seen.rules().contains(&rule.to_owned()), "{:?}", proxy.seen.rules());
    nothing_went_out(&proxy.seen);
}

#[test]
fn what_is_allowed_goes_through() {
    let proxy = Lab::new().start();
    let answer = proxy.get("http://allowed.test/a?b=c", "allowed.test");
    assert!(answer.ends_with("hello from allowed.test"), "{answer}");
    let origin = proxy.seen.origin_text();
    assert!(origin.starts_with("GET /a?b=c HTTP/1.1\r\nHost: allowed.test\r\n"), "{origin}");
    let outcomes = proxy.seen.wait_outcomes(1);
    let (request, outcome) = &outcomes[0];
    assert_eq!(request.url, "http://allowed.test/a?b=c");
    assert_eq!((outcome.status, cut_by(&outcome.ended)), (Some(200), "done"));
    assert_eq!(outcome.address, Some("93.184.215.14".parse().unwrap()));
    assert!(outcome.sent > 30 && outcome.received > 30, "{outcome:?}");
    assert_eq!(proxy.seen.decided.lock().unwrap().len(), 1);
}

#[test]
fn x01_unlisted_host() {
    let proxy = Lab::new().start();
    assert_eq!(proxy.tunnel("unlisted.test:443").0, 403);
    refused(&proxy, &proxy.get("http://unlisted.test/", "unlisted.test"), "egress-unlisted");
    // Not even its name is looked up: that would leave the machine.
    assert!(proxy.seen.lookups.lock().unwrap().is_empty());
}

#[test]
fn x02_without_the_credential_of_the_run() {
    let mut lab = Lab::new();
    lab.change = Some(Box::new(|config| {
        config.credential = Some(Credential::new("run", "s3cret-of-this-run"));
    }));
    let proxy = lab.start();
    assert_eq!(proxy.tunnel("allowed.test:443").0, 407);
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 407);
    let wrong = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                 Proxy-Authorization: Basic cnVuOndyb25n\r\n\r\n";
    assert_eq!(status(&proxy.send(wrong.as_bytes())), 407);
    assert_eq!(proxy.send(&[5, 1, 0]).as_bytes(), "\u{5}\u{fffd}".as_bytes());
    let mut login = vec![5, 1, 2, 1, 3];
    login.extend(b"run\x05wrong");
    assert_eq!(proxy.send(&login).as_bytes(), [5, 2, 1, 1]);
    nothing_went_out(&proxy.seen);
    let right = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                 Proxy-Authorization: Basic cnVuOnMzY3JldC1vZi10aGlzLXJ1bg==\r\n\r\n";
    assert_eq!(status(&proxy.send(right.as_bytes())), 200);
    assert!(!proxy.seen.origin_text().contains("Basic"), "it stays with the proxy");
    let mut login = vec![5, 1, 2, 1, 3];
    login.extend(b"run\x12s3cret-of-this-run");
    login.extend([5, 1, 0, 3, 12]);
    login.extend(b"allowed.test\x01\xbb");
    assert!(proxy.send(&login).as_bytes().starts_with(&[5, 2, 1, 0, 5, 0]));
}

#[test]
fn x03_and_x25_nobody_outside_can_connect() {
    // That whoever is confined has no other way than the proxy is the confinement's to show. Here:
    // the proxy never listens where other machines could use it.
    let mut lab = Lab::new();
    let config = lab.config();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let decider = Arc::new(super::limits::Yes);
    let served = wardkeep_gateway::egress::serve(
        Listener::Tcp(listener),
        config,
        decider,
        std::future::pending(),
    );
    let error = runtime.block_on(served).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn x04_case_and_dot() {
    let proxy = Lab::new().start();
    for host in ["BLOCKED.TEST.", "blocked.test.", "Blocked.Test"] {
        assert_eq!(proxy.tunnel(&format!("{host}:443")).0, 403, "{host}");
        refused(&proxy, &proxy.get(&format!("http://{host}/"), host), "egress-denied");
    }
    assert_eq!(proxy.socks(b"BLOCKED.test.", 443).0, 2);
    nothing_went_out(&proxy.seen);
}

#[test]
fn x05_spellings_of_addresses() {
    let mut lab = Lab::new();
    // Even where everything is allowed.
    lab.allow.push("*:*".to_owned());
    let proxy = lab.start();
    for host in [
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1",
        "0.0.0.0",
        "0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::1]",
        "[::]",
        "[::7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::1]",
        "[2001:0:1:2:3:4:80ff:fffe]",
        "[fe80::1]",
        "[fe80::1%25lo]",
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "127.0.0.1.",
    ] {
        for port in [80, 18080] {
            let target = format!("{host}:{port}");
            let answer = proxy.get(&format!("http://{target}/"), &target);
            assert!([400, 403].contains(&status(&answer)), "{target}: {answer}");
        }
        assert!([400, 403].contains(&proxy.tunnel(&format!("{host}:443")).0), "{host}");
        assert_eq!(proxy.socks(host.trim_matches(['[', ']']).as_bytes(), 443).0, 2, "{host}");
    }
    for bytes in [
        &[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80][..],
        &[5, 1, 0, 5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 0, 80],
    ] {
        assert_eq!(proxy.send(bytes).as_bytes()[..4], [5, 0, 5, 2]);
    }
    nothing_went_out(&proxy.seen);
}

#[test]
fn x06_rebinding() {
    let mut lab = Lab::new();
    lab.own("93.184.215.99");
    for (at, addresses) in [
        &["127.0.0.1"][..],
        &["169.254.169.254"],
        &["10.0.0.5"],
        &["192.168.1.1"],
        &["fd00:ec2::254"],
        &["::1"],
        &["0.0.0.0"],
        &["100.64.1.1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::a9fe:a9fe"],
        &["93.184.215.99"],
        // One good address does not make up for a bad one.
        &["93.184.215.14", "127.0.0.1"],
    ]
    .iter()
    .enumerate()
    {
        lab.name(&format!("rebind{at}.allowed.test"), addresses);
    }
    let proxy = lab.start();
    for at in 0..12 {
        let host = format!("rebind{at}.allowed.test");
        let answer = proxy.get(&format!("http://{host}/"), &host);
        refused(&proxy, &answer, "egress-inside");
        assert_eq!(proxy.tunnel(&format!("{host}:443")).0, 403);
    }
    // What is dialled is what was checked: one lookup for a request, and never a name.
    let answer = proxy.get("http://allowed.test/", "allowed.test");
    assert_eq!(status(&answer), 200);
    let lookups = proxy.seen.lookups.lock().unwrap();
    assert_eq!(lookups.iter().filter(|name| *name == "allowed.test").count(), 1);
    assert_eq!(*proxy.seen.dialled.lock().unwrap(), ["93.184.215.14:80".parse().unwrap()]);
}

#[test]
fn x07_zero_in_the_host() {
    let proxy = Lab::new().start();
    assert_eq!(proxy.socks(b"blocked.test\0.allowed.test", 443).0, 2);
    let asked = b"CONNECT blocked.test\0.allowed.test:443 HTTP/1.1\r\n\r\n";
    assert_eq!(status(&proxy.send(asked)), 400);
    let asked = b"GET http://blocked.test%00.allowed.test/ HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(status(&proxy.send(asked)), 400);
    nothing_went_out(&proxy.seen);
}

#[test]
fn x08_user_names() {
    let proxy = Lab::new().start();
    for url in [
        "http://allowed.test@blocked.test/",
        "http://allowed.test:80@blocked.test/",
        "http://allowed.test%40blocked.test/",
        "http://blocked.test\\@allowed.test/",
        "http://blocked.test#@allowed.test/",
        "http://blocked.test?@allowed.test/",
        "http://x@allowed.test/",
    ] {
        let answer = proxy.get(url, "allowed.test");
        assert!([400, 403].contains(&status(&answer)), "{url}: {answer}");
    }
    assert_eq!(proxy.tunnel("allowed.test@blocked.test:443").0, 400);
    nothing_went_out(&proxy.seen);
}

#[test]
fn x09_another_host_in_the_header() {
    let proxy = Lab::new().start();
    for lines in [
        "Host: blocked.test\r\n",
        "Host: allowed.test:81\r\n",
        "Host: allowed.test\r\nHost: blocked.test\r\n",
        "Host: allowed.test, blocked.test\r\n",
        "Host:\r\n",
        "X: y\r\n",
    ] {
        let answer =
            proxy.send(format!("GET http://allowed.test/ HTTP/1.1\r\n{lines}\r\n").as_bytes());
        refused(&proxy, &answer, "egress-host");
    }
    let asked = "CONNECT allowed.test:443 HTTP/1.1\r\nHost: blocked.test:443\r\n\r\n";
    assert_eq!(status(&proxy.send(asked.as_bytes())), 400);
    nothing_went_out(&proxy.seen);
}

#[test]
fn x10_a_second_request_behind_the_first() {
    let proxy = Lab::new().start();
    let answer = proxy.send(
        b"GET http://allowed.test/1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n\
          GET http://allowed.test/2 HTTP/1.1\r\nHost: allowed.test\r\n\r\n\
          GET http://blocked.test/3 HTTP/1.1\r\nHost: blocked.test\r\n\r\n\
          GET http://allowed.test/4 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
    );
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 403").count(), 1, "{answer}");
    let origin = proxy.seen.origin_text();
    assert!(origin.contains("GET /2") && !origin.contains("/3") && !origin.contains("/4"));
    assert_eq!(proxy.seen.decided.lock().unwrap().len(), 3, "each one is judged");
}

#[test]
fn x11_tls_for_another_host() {
    let proxy = Lab::new().start();
    for hello in [
        example(Some("evil.test"), false),
        example(Some("sub.allowed.test"), false),
        example(Some("allowed.test.evil.test"), false),
        example(None, false),
        example(Some("allowed.test"), true),
    ] {
        for port in [443, 8443] {
            let mut lab = Lab::new();
            lab.allow.push("allowed.test:8443".to_owned());
            lab.host("allowed.test", super::lab::ALLOWED, 8443, super::lab::echo);
            let proxy = lab.start();
            let (status, mut stream) = proxy.tunnel(&format!("allowed.test:{port}"));
            assert_eq!(status, 200);
            stream.write_all(&hello).unwrap();
            stream.write_all(b"CANARY").unwrap_or_default();
            assert_eq!(read_all(&mut stream), "");
            let outcomes = proxy.seen.wait_outcomes(1);
            let rule = cut_by(&outcomes[0].1.ended);
            assert!(["egress-sni", "egress-hidden-name"].contains(&rule), "{rule}");
            assert_eq!(proxy.seen.origin_text(), "", "{port}");
        }
    }
    // Cut into pieces of a byte, and spread over records.
    let (_, mut stream) = proxy.tunnel("allowed.test:443");
    for byte in example(Some("evil.test"), false) {
        if stream.write_all(&[byte]).is_err() {
            break;
        }
    }
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(proxy.seen.origin_text(), "");
    // The right one goes through.
    let hello = example(Some("Allowed.test"), false);
    let (_, mut stream) = proxy.tunnel("allowed.test:443");
    stream.write_all(&hello).unwrap();
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, hello);
}

#[test]
fn x12_something_else_than_tls() {
    for bytes in [
        &b"SSH-2.0-x CANARY"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x06CANARY",
        b"\x17\x03\x03\x00\x06CANARY",
        b"\x00",
        b"\x16",
    ] {
        let proxy = Lab::new().start();
        let (status, mut stream) = proxy.tunnel("allowed.test:443");
        assert_eq!(status, 200);
        stream.write_all(bytes).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        assert_eq!(read_all(&mut stream), "");
        let (reply, mut stream) = proxy.socks(b"allowed.test", 443);
        assert_eq!(reply, 0);
        stream.write_all(bytes).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        assert_eq!(read_all(&mut stream), "");
        for (_, outcome) in proxy.seen.wait_outcomes(2) {
            assert_eq!(cut_by(&outcome.ended), "egress-not-tls", "{bytes:?}");
        }
        assert_eq!(proxy.seen.origin_text(), "", "{bytes:?}");
    }
    // Nor behind a first message of TLS.
    let proxy = Lab::new().start();
    let hello = example(Some("allowed.test"), false);
    let (_, mut stream) = proxy.tunnel("allowed.test:443");
    stream.write_all(&hello).unwrap();
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).unwrap();
    stream.write_all(b"CANARY of raw bytes").unwrap();
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(cut_by(&proxy.seen.wait_outcomes(1)[0].1.ended), "egress-not-tls");
    assert!(!proxy.seen.origin_text().contains("CANARY"));
}

#[test]
fn x13_more_than_may_be_sent() {
    let mut lab = Lab::new();
    lab.limits = Limits { upload: 100_000, ..Limits::default() };
    let proxy = lab.start();
    let declared = "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                    Content-Length: 20000000\r\n\r\n";
    let answer = proxy.send(declared.as_bytes());
    assert_eq!(status(&answer), 413, "{answer}");
    nothing_went_out(&proxy.seen);
    // Without saying so before.
    let mut asked = b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                      Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..200 {
        asked.extend(b"400\r\n");
        asked.extend([b'x'; 1024]);
        asked.extend(b"\r\n");
    }
    asked.extend(b"0\r\n\r\n");
    let answer = proxy.send(&asked);
    assert_eq!(status(&answer), 413, "{answer}");
    assert!(proxy.seen.wait_outcomes(1)[0].1.sent <= 100_000);
    // In a tunnel.
    let (_, mut stream) = proxy.tunnel("allowed.test:443");
    stream.write_all(&example(Some("allowed.test"), false)).unwrap();
    let mut record = vec![23, 3, 3, 4, 0];
    record.extend([0; 1024]);
    let mut reader = stream.try_clone().unwrap();
    let read = std::thread::spawn(move || read_all(&mut reader).len());
    while stream.write_all(&record).is_ok() {}
    let outcomes = proxy.seen.wait_outcomes(2);
    assert_eq!(cut_by(&outcomes[1].1.ended), "egress-upload");
    assert!(outcomes[1].1.sent <= 100_000);
    assert!(read.join().unwrap() <= 100_000);
}

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\
                   AAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACDmZ3Vlc3NlZG5vYm9keXdvdWxkYmVsaWV2ZQ\n\
                   -----END OPENSSH PRIVATE KEY-----\n";

#[test]
fn x14_a_secret_in_the_body() {
    let proxy = Lab::new().start();
    let post = |body: &str| {
        proxy.send(
            format!(
                "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    };
    refused(&proxy, &post(KEY), "egress-secret");
    // Over chunks of a byte.
    let mut asked = b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                      Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    for byte in KEY.bytes() {
        asked.extend([b'1', b'\r', b'\n', byte, b'\r', b'\n']);
    }
    asked.extend(b"0\r\n\r\n");
    refused(&proxy, &proxy.send(&asked), "egress-secret");
    // Behind what is shown to the decider.
    let answer = post(&format!("{}{KEY}", "harmless words ".repeat(20_000)));
    assert_eq!(status(&answer), 403, "{answer}");
    assert!(!proxy.seen.origin_text().contains("PRIVATE KEY"));
    assert_eq!(status(&post("harmless")), 200);
    // In the address; and the record of it does not hold it either.
    let token = format!("glpat-{}", "x7Kq2mZp9RtW4vBn6LsD");
    let answer = proxy.get(&format!("http://allowed.test/?t={token}"), "allowed.test");
    assert!(status(&answer) == 403 && answer.contains("egress-secret"), "{answer}");
    let said = proxy.seen.decided.lock().unwrap().last().unwrap().url.clone();
    assert!(said.starts_with("http://allowed.test/") && !said.contains(&token), "{said}");
}

#[test]
fn x15_encoded_and_split() {
    let proxy = Lab::new().start();
    let line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAA\
                ACDmZ3Vlc3NlZG5vYm9keXdvdWxkYmVsaWV2ZQb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAA";
    let answers: Vec<u16> = (0..20)
        .map(|at| {
            let url = format!("http://allowed.test/{at}{line}");
            status(&proxy.get(&url, "allowed.test"))
        })
        .collect();
    let passed = answers.iter().filter(|status| **status == 200).count();
    assert!(passed <= 13 && answers.last() == Some(&403), "{answers:?}");
    assert!(proxy.seen.rules().contains(&"egress-encoded-urls".to_owned()));
}

#[test]
fn x16_another_port() {
    let mut lab = Lab::new();
    lab.allow.push("allowed.test:2222".to_owned());
    lab.host("allowed.test", super::lab::ALLOWED, 2222, super::lab::echo);
    let proxy = lab.start();
    for port in [22, 25, 6379, 8080] {
        assert_eq!(proxy.tunnel(&format!("allowed.test:{port}")).0, 403, "{port}");
    }
    assert_eq!(proxy.seen.rules(), ["egress-port"; 4]);
    let (status, mut stream) = proxy.tunnel("allowed.test:2222");
    assert_eq!(status, 200);
    stream.write_all(b"SSH-2.0-x").unwrap();
    let mut back = [0; 9];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"SSH-2.0-x");
}

#[test]
fn x16_nothing_but_tls_to_its_port() {
    let proxy = Lab::new().start();
    let answer = proxy.get("http://allowed.test:443/", "allowed.test:443");
    refused(&proxy, &answer, "egress-not-tls");
    // A port has one spelling.
    for port in ["00080", "080", "0443"] {
        let target = format!("allowed.test:{port}");
        assert_eq!(status(&proxy.get(&format!("http://{target}/"), &target)), 400, "{port}");
        assert_eq!(proxy.tunnel(&target).0, 400, "{port}");
    }
    nothing_went_out(&proxy.seen);
}

#[test]
fn x17_no_udp_and_no_listening() {
    let proxy = Lab::new().start();
    for command in [2, 3] {
        let answer = proxy.send(&[5, 1, 0, 5, command, 0, 1, 8, 8, 8, 8, 1, 187]);
        assert_eq!(answer.as_bytes()[..4], [5, 0, 5, 7]);
    }
    nothing_went_out(&proxy.seen);
}

#[test]
fn x18_names_looked_up_by_requests() {
    let proxy = Lab::new().start();
    let url = "http://allowed.test/dns-query?name=secret.evil.test";
    refused(&proxy, &proxy.get(url, "allowed.test"), "egress-name-lookup");
    let asked = "POST http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\n\
                 Content-Type: application/dns-message\r\nContent-Length: 0\r\n\r\n";
    refused(&proxy, &proxy.send(asked.as_bytes()), "egress-name-lookup");
}

#[test]
fn x19_a_relay_changes_nothing() {
    let proxy = Lab::new().start();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay.local_addr().unwrap();
    let upstream = proxy.address;
    std::thread::spawn(move || {
        for client in relay.incoming().flatten() {
            let mut proxy = TcpStream::connect(upstream).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), proxy.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
            let mut client = client;
            let _ = std::io::copy(&mut proxy, &mut client);
        }
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"CONNECT blocked.test:443 HTTP/1.1\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(status(&read_all(&mut stream)), 403);
    nothing_went_out(&proxy.seen);
}

#[test]
fn x20_a_decider_that_fails_denies() {
    let proxy = Lab::new().start();
    proxy.seen.broken.store(true, Ordering::Relaxed);
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 403);
    assert_eq!(proxy.tunnel("allowed.test:443").0, 403);
    assert_eq!(proxy.socks(b"allowed.test", 443).0, 2);
    nothing_went_out(&proxy.seen);
    proxy.seen.broken.store(false, Ordering::Relaxed);
    assert_eq!(status(&proxy.get("http://allowed.test/", "allowed.test")), 200);
    assert_eq!(status(&proxy.get("http://unlisted.test/", "unlisted.test")), 403);
}

#[test]
fn x21_without_the_proxy_there_is_no_way() {
    let mut proxy = Lab::new().start();
    let hello = example(Some("allowed.test"), false);
    let (_, mut open) = proxy.tunnel("allowed.test:443");
    open.write_all(&hello).unwrap();
    let mut back = vec![0; hello.len()];
    open.read_exact(&mut back).unwrap();
    proxy.stop();
    assert_eq!(read_all(&mut open), "", "tunnels end with it");
    assert!(TcpStream::connect(proxy.address).is_err());
    let outcomes = proxy.seen.outcomes.lock().unwrap();
    assert_eq!(outcomes.len(), 1, "and that is recorded");
    assert_eq!(cut_by(&outcomes[0].1.ended), "failed");
}

/// Speaks WebSocket as far as to change over.
pub(crate) fn websocket(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    let answer =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(answer.as_bytes()).unwrap();
    super::lab::echo(seen, name, stream);
}

#[test]
fn x22_bytes_count_after_an_upgrade_too() {
    let mut lab = Lab::new();
    lab.limits = Limits { upload: 10_000, ..Limits::default() };
    lab.host("allowed.test", super::lab::ALLOWED, 80, websocket);
    let proxy = lab.start();
    let mut stream = proxy.connect();
    let asked = "GET http://allowed.test/chat HTTP/1.1\r\nHost: allowed.test\r\n\
                 Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(asked.as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    let mut reader = stream.try_clone().unwrap();
    let read = std::thread::spawn(move || read_all(&mut reader).len());
    let message = [&[0x82, 0xfe, 3, 232, 0, 0, 0, 0][..], &[0; 1000]].concat();
    while stream.write_all(&message).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let outcomes = proxy.seen.wait_outcomes(1);
    assert_eq!(cut_by(&outcomes[0].1.ended), "egress-upload");
    assert!(outcomes[0].1.sent <= 10_000 && read.join().unwrap() <= 11_000);
    // Another protocol than this is not changed to.
    let asked = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\
                 Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    assert_eq!(status(&proxy.send(asked.as_bytes())), 502);
}

#[test]
fn x23_line_ends_in_disguise() {
    let proxy = Lab::new().start();
    for url in [
        "http://allowed.test/%0d%0aHost:evil",
        "http://allowed.test/a%0a?b=c",
        "http://allowed.test/?a=%00",
        "http://allowed.test/%00",
        "http://allowed.test/\rX",
        "http://allowed.test/\nX: y",
    ] {
        assert_eq!(status(&proxy.get(url, "allowed.test")), 400, "{url:?}");
    }
    nothing_went_out(&proxy.seen);
}

#[test]
fn x24_letters_that_look_alike() {
    let mut lab = Lab::new();
    lab.allow.push("*".to_owned());
    let proxy = lab.start();
    for host in ["blocked。allowed.test", "blocked．test", "аllowed.test", "allowed.test\u{200b}"]
    {
        assert_eq!(proxy.socks(host.as_bytes(), 443).0, 2, "{host}");
        assert_eq!(proxy.tunnel(&format!("{host}:443")).0, 400, "{host}");
        assert_eq!(status(&proxy.get(&format!("http://{host}/"), host)), 400, "{host}");
    }
    nothing_went_out(&proxy.seen);
}

#[test]
fn names_that_the_decider_does_not_allow_are_not_looked_up() {
    let mut lab = Lab::new();
    lab.unlisted = Unlisted::Decider;
    lab.name("open.test", &["93.184.215.77"]);
    lab.host("open.test", "93.184.215.77", 80, super::lab::web);
    let proxy = lab.start();
    let answer = proxy.get("http://c2VjcmV0.unknown.test/", "c2VjcmV0.unknown.test");
    assert!(answer.contains("screened"), "{answer}");
    assert!(proxy.seen.lookups.lock().unwrap().is_empty());
    assert_eq!(status(&proxy.get("http://open.test/", "open.test")), 200);
    assert_eq!(status(&proxy.get("http://blocked.test/", "blocked.test")), 403);
}
