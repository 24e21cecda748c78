//! Servers and clients of models that mean harm; servers behind TLS.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest as _, Sha256};
use wardkeep_gateway::llm::{Config, Ended, Traffic, Upstream};
use wardkeep_policy::wrap::SessionKey;

use super::models::{Model, answer_text, ask, model, proxy, said};

const GIGABYTE: u64 = 1 << 30;

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn a_body_of_a_gigabyte_is_refused_before_it_is_read() {
    let model = model(answer_text);
    let proxy = proxy(&model, |_| {});
    let before = resident();
    // Announced: refused at once. In chunks: refused as soon as it is too long.
    for head in [format!("content-length: {GIGABYTE}"), "transfer-encoding: chunked".to_owned()] {
        let chunked = head.starts_with("transfer");
        let start = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}\r\n\r\n"
        );
        let mut stream = proxy.send(start.as_bytes());
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut written = 0_u64;
        let piece = vec![b' '; 1 << 20];
        let size = format!("{:x}\r\n", piece.len());
        while written < GIGABYTE {
            let sent = match chunked {
                true => stream
                    .write_all(size.as_bytes())
                    .and_then(|()| stream.write_all(&piece))
                    .and_then(|()| stream.write_all(b"\r\n")),
                false => stream.write_all(&piece),
            };
            if sent.is_err() {
                break;
            }
            written += piece.len() as u64;
        }
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let got = String::from_utf8_lossy(&got).into_owned();
        assert!(got.is_empty() || got.starts_with("HTTP/1.1 413"), "{got}");
        assert!(written < GIGABYTE / 4, "{written} bytes were taken");
    }
    assert!(model.sent.lock().unwrap().is_empty());
    let grown = resident().saturating_sub(before);
    assert!(grown < 400 << 20, "it grew by {grown} bytes");
}

#[test]
fn events_that_never_end_take_no_memory() {
    let passed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&passed);
    let model = model(move |_, stream| {
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        );
        let start = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
        let _ = stream.write_all(start.as_bytes());
        let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"the ships came in and went out again, \"}}\n\n";
        let piece = delta.repeat(100);
        while stream.write_all(piece.as_bytes()).is_ok() {
            count.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    });
    let proxy = proxy(&model, |_| {});
    let body = ask(&json!([said("go on")])).replace("\"stream\":false", "\"stream\":true");
    let mut stream = proxy.send(&proxy.request("/v1/messages", "", body.as_bytes()));
    let before = resident();
    let mut piece = vec![0; 1 << 16];
    let mut read = 0_u64;
    while read < 12 << 20 {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "it ended after {read} bytes");
        read += count as u64;
    }
    // Whoever reads slowly slows the model down: nothing piles up in between.
    let mut still = passed.load(Ordering::Relaxed);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(100));
        let now = passed.load(Ordering::Relaxed);
        if now == still {
            break;
        }
        still = now;
    }
    assert!(still - read.min(still) < 64 << 20, "{still} bytes were taken, {read} read");
    let grown = resident().saturating_sub(before);
    assert!(grown < 200 << 20, "it grew by {grown} bytes");
    drop(stream);
    assert_eq!(proxy.outcomes(1)[0].ended, Ended::Gone);
}

#[test]
fn slow_clients_are_cut_off_and_hold_nobody_up() {
    let model = model(answer_text);
    let proxy = proxy(&model, |config| {
        config.limits.head = Duration::from_millis(1500);
        config.limits.body = Duration::from_millis(1500);
    });
    let begin = Instant::now();
    // One byte at a time, of a head and of a body, from many at once.
    let starts = [
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-slow: ".to_owned(),
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n"
            .to_owned(),
    ];
    let slow: Vec<_> = (0..64)
        .map(|number| {
            let mut stream = proxy.send(starts[number % 2].as_bytes());
            std::thread::spawn(move || {
                let mut count = 0;
                while stream.write_all(b" ").is_ok() && count < 400 {
                    count += 1;
                    std::thread::sleep(Duration::from_millis(20));
                }
                count
            })
        })
        .collect();
    let got = proxy.post("/v1/messages", &ask(&json!([said("hello")])));
    assert!(got.head.starts_with("HTTP/1.1 200"), "{}", got.head);
    for one in slow {
        assert!(one.join().unwrap() < 400, "a slow client was never cut off");
    }
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(model.sent.lock().unwrap().len(), 1);
}

#[test]
fn long_bodies_are_bounded_together() {
    let model = model(answer_text);
    let proxy = proxy(&model, |config| config.limits.bodies = 256 << 10);
    let long = ask(&json!([said(&"a word of many ".repeat(13_000))]));
    let request = proxy.request("/v1/messages", "", long.as_bytes());
    let (first, rest) = request.split_at(request.len() - 1000);
    let mut half = proxy.send(first);
    // Once the first one is there, there is no room for a second; should the second have been read first, it
    // is the first that was refused, and is sent again.
    let refused = (0..40).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let got = proxy.post("/v1/messages", &long);
        if got.head.starts_with("HTTP/1.1 200") {
            half = proxy.send(first);
        }
        got.head.starts_with("HTTP/1.1 503")
            && String::from_utf8_lossy(&got.body).contains("too many long requests")
    });
    assert!(refused);
    let short = proxy.post("/v1/messages", &ask(&json!([said("hello")])));
    assert!(short.head.starts_with("HTTP/1.1 200"), "{}", short.head);
    half.write_all(rest).unwrap();
    let mut got = [0; 12];
    half.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"HTTP/1.1 200");
    drop(half);
    let again = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        proxy.post("/v1/messages", &long).head.starts_with("HTTP/1.1 200")
    });
    assert!(again, "the room was not given back");
}

#[test]
fn letters_of_many_bytes_may_be_cut_anywhere() {
    // Split between the parts of a letter, by the server, in the very bytes of the connection.
    let text = "Größe 😀 漢字 – «ok» 🇩🇪 e\u{301}";
    let event = format!(
        "event: content_block_delta\ndata: {}\n\n",
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
    );
    let start = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    let end = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
    let all = format!("{start}{event}{end}");
    let bytes = all.clone().into_bytes();
    let counter = AtomicUsize::new(0);
    let length = bytes.len();
    let model = model(move |_, stream| {
        let at = counter.fetch_add(1, Ordering::Relaxed);
        let _ = stream.set_nodelay(true);
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&bytes[..at]);
        std::thread::sleep(Duration::from_millis(2));
        let _ = stream.write_all(&bytes[at..]);
    });
    let proxy = proxy(&model, |_| {});
    let body = ask(&json!([said("hello")])).replace("\"stream\":false", "\"stream\":true");
    for at in 0..length {
        let mut stream = proxy.send(&proxy.request("/v1/messages", "", body.as_bytes()));
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        let got = String::from_utf8(got).unwrap();
        let said: String = got
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok())
            .filter_map(|event| event["delta"]["text"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(said, text, "cut at {at}");
    }
}

/// A model behind TLS that speaks HTTP/2; gives its address and its certificate.
fn tls_model(runtime: &tokio::runtime::Runtime) -> (SocketAddr, String) {
    use http_body_util::Full;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(
                    |request: hyper::Request<hyper::body::Incoming>| async move {
                        assert_eq!(request.version(), hyper::Version::HTTP_2);
                        let reply = Full::new(bytes::Bytes::from_static(b"{\"content\":[]}"));
                        let reply = hyper::Response::builder()
                            .header("content-type", "application/json")
                            .body(reply);
                        Ok::<_, std::convert::Infallible>(reply.unwrap())
                    },
                );
                let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, made.cert.pem())
}

#[test]
fn upstreams_by_tls_are_checked() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (address, pem) = tls_model(&runtime);
    let model = Model { address, sent: Arc::default() };
    let upstream =
        Upstream::new("default", &format!("https://localhost:{}", address.port())).unwrap();
    let known = proxy(&model, |config| {
        config.trust_pem(pem.as_bytes()).unwrap();
        config.add(upstream.clone());
    });
    let got = known.post("/v1/messages", &ask(&json!([said("x")])));
    assert!(
        got.head.starts_with("HTTP/1.1 200"),
        "{} {}",
        got.head,
        String::from_utf8_lossy(&got.body)
    );
    assert_eq!(got.body, b"{\"content\":[]}");
    let unknown = proxy(&model, |config| config.add(upstream.clone()));
    let got = unknown.post("/v1/messages", &ask(&json!([said("x")])));
    assert!(got.head.starts_with("HTTP/1.1 502"), "{}", got.head);
    assert!(Config::new(SessionKey::new([1; 32]), [1; 16]).trust_pem(b"nothing").is_err());
}

#[test]
fn errors_of_the_server_tell_no_secret() {
    let key = format!("AKIA{}", "Q7RZJ4MWN2XK5TLV");
    let bodies = [
        json!({"type": "error", "error": {"type": "x", "message": format!("the key is {key} ok")}})
            .to_string(),
        format!("<p>the key is {key} ok</p>"),
        json!({"type": "error", "error": {"type": "x", "message": "too  many"}, "x": 1.0})
            .to_string(),
        "\u{fffd} no".to_owned(),
    ];
    let all = bodies.clone();
    let count = AtomicUsize::new(0);
    let model = model(move |_, stream| {
        let body = &all[count.fetch_add(1, Ordering::Relaxed)];
        let head = "429 Too Many\r\ncontent-type: application/json\r\nretry-after: 7";
        super::models::respond(stream, head, body.as_bytes());
    });
    let proxy = proxy(&model, |_| {});
    for (number, body) in bodies.iter().enumerate() {
        let got = proxy.post("/v1/messages", &ask(&json!([said(&format!("hello {number}"))])));
        assert!(got.head.starts_with("HTTP/1.1 429") && got.head.contains("retry-after: 7"));
        let text = String::from_utf8(got.body).unwrap();
        match body.contains(&key) {
            true => assert_eq!(text, body.replace(&key, "[withheld]")),
            false => assert_eq!(&text, body),
        }
    }
}

#[test]
fn two_types_of_content_are_refused() {
    let model = model(|_, stream| {
        let body = json!({"content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "evil"}}]}).to_string();
        let head = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-type: application/json";
        super::models::respond(stream, head, body.as_bytes());
    });
    let proxy = proxy(&model, |_| {});
    let got = proxy.post("/v1/messages", &ask(&json!([said("hello")])));
    assert!(got.head.starts_with("HTTP/1.1 502"), "{}", got.head);
    assert!(!String::from_utf8_lossy(&got.body).contains("evil"));
}

#[test]
fn a_document_that_calls_itself_a_stream_is_refused() {
    let model = model(|_, stream| {
        let body = json!({"content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "evil"}}]}).to_string();
        super::models::respond(
            stream,
            "200 OK\r\ncontent-type: text/event-stream",
            body.as_bytes(),
        );
    });
    let proxy = proxy(&model, |_| {});
    let body = ask(&json!([said("hello")]));
    let mut stream = proxy.send(&proxy.request("/v1/messages", "", body.as_bytes()));
    let mut got = String::new();
    stream.read_to_string(&mut got).unwrap();
    assert!(!got.contains("evil") && got.contains("event: error"), "{got}");
}

#[test]
fn the_cookie_of_the_page_goes_to_no_model() {
    let model = model(answer_text);
    let proxy = proxy(&model, |_| {});
    let body = ask(&json!([said("hello")]));
    for cookie in
        ["wardkeep=0123", "a=b; wardkeep=0123", "a=b;wardkeep = 0123", "wardkeep=", " wardkeep=x;"]
    {
        for path in ["/v1/messages", "/v1/messages/count_tokens", "/v1/anything"] {
            let header = format!("cookie: {cookie}\r\n");
            let got = proxy.raw(&proxy.request(path, &header, body.as_bytes()));
            assert!(got.head.starts_with("HTTP/1.1 403"), "{cookie} {path}: {}", got.head);
        }
    }
    assert!(model.sent.lock().unwrap().is_empty());
    // Other cookies are the client's own.
    for cookie in ["session=0123", "wardkeeper=1", "a=wardkeep", "wardkeep"] {
        let header = format!("cookie: {cookie}\r\n");
        let got = proxy.raw(&proxy.request("/v1/messages", &header, body.as_bytes()));
        assert!(got.head.starts_with("HTTP/1.1 200"), "{cookie}: {}", got.head);
        let sent = model.sent.lock().unwrap().last().unwrap().head.clone();
        assert!(sent.contains(&format!("cookie: {cookie}")), "{sent}");
    }
}

#[test]
fn what_went_through_is_counted() {
    let model = model(|sent, stream| {
        let text = String::from_utf8_lossy(&sent.body);
        match text.contains("be silent") {
            // Long enough for whoever looks.
            true => std::thread::sleep(Duration::from_secs(30)),
            false if text.contains("fail") => {
                super::models::respond(
                    stream,
                    "429 Too Many\r\ncontent-type: application/json",
                    b"{}",
                );
            }
            false => answer_text(sent, stream),
        }
    });
    let mut meter = Arc::default();
    let proxy = proxy(&model, |config| meter = Arc::clone(&config.meter));
    let settled = |what: &dyn Fn(Traffic) -> bool| {
        let until = Instant::now() + Duration::from_secs(10);
        while !what(meter.traffic()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        meter.traffic()
    };
    proxy.post("/v1/messages", &ask(&json!([said("hello")])));
    proxy.post("/v1/messages", &ask(&json!([said("evil words")])));
    proxy.post("/v1/messages", &ask(&json!([said("fail")])));
    proxy.post("/v1/messages", "{");
    proxy.post("/v1/other", "{}");
    let now = settled(&|now| now.failed == 1 && now.open == 0);
    let expected =
        Traffic { requests: 3, denied: 1, failed: 1, refused: 1, unread: 1, ..Traffic::default() };
    assert_eq!(now, expected);
    // Who goes away is not open any more, whether or not the model has begun.
    let body = ask(&json!([said("be silent")]));
    let gone = proxy.send(&proxy.request("/v1/messages", "", body.as_bytes()));
    assert_eq!(settled(&|now| now.open == 1).open, 1);
    // Not before the model has it.
    let has = || model.sent.lock().unwrap().last().is_some_and(|sent| sent.body.len() > 2);
    let until = Instant::now() + Duration::from_secs(10);
    while !has() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(gone);
    assert_eq!(settled(&|now| now.open == 0).open, 0);
    // And there is a record of that.
    let outcome = proxy.outcomes(3).pop().unwrap();
    assert_eq!((outcome.ended, outcome.status), (Ended::Gone, None));
    let sent = model.sent.lock().unwrap().last().unwrap().body.clone();
    assert_eq!((outcome.sent, outcome.sent_sha256), (sent.len(), Sha256::digest(&sent).into()));
}

#[test]
fn exchanges_are_bounded_whatever_they_are() {
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, open) = (Arc::clone(&most), Arc::clone(&now));
    let model = model(move |sent, stream| {
        counted.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        open.fetch_sub(1, Ordering::SeqCst);
        answer_text(sent, stream);
    });
    let proxy = proxy(&model, |config| config.limits.exchanges = 2);
    let body = ask(&json!([said("hello")]));
    std::thread::scope(|scope| {
        for number in 0..9 {
            let (proxy, body) = (&proxy, &body);
            let path = ["/v1/messages", "/v1/messages/count_tokens", "/v1/other"][number % 3];
            scope.spawn(move || {
                let got = proxy.post(path, body);
                assert!(got.head.starts_with("HTTP/1.1 200"), "{path}: {}", got.head);
            });
        }
    });
    let most = most.load(Ordering::SeqCst);
    assert!((1..=2).contains(&most), "{most} at once");
}
