//! Secrets carried out in heads, addresses and bodies, by a client that hides them.

use std::io::{ErrorKind, Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::attacks::websocket;
use super::lab::{ALLOWED, Lab, Proxy, cut_by, read_all, status};

/// Put together here, so that no scanner sees one in the repository.
fn token() -> String {
    ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat()
}

fn key() -> String {
    let material =
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQ\n";
    ["-----BEGIN OPENSSH PRIVATE", " KEY-----\n", material, material].concat()
}

/// Refused, by a rule, and nothing of it was sent, told or recorded.
#[track_caller]
fn stopped(proxy: &Proxy, answer: &str, rule: &str) {
    assert!([400, 403, 415].contains(&status(answer)), "{answer}");
    assert!(answer.contains(rule), "{answer}");
    assert!(!answer.contains(&token()), "{answer}");
    assert_eq!(proxy.seen.origin_text(), "");
    let decided = proxy.seen.decided.lock().unwrap();
    let said = format!("{decided:?}");
    assert!(!said.contains(&token()) && !said.contains(&token()[6..]), "{said}");
}

fn get(proxy: &Proxy, target: &str, lines: &str) -> String {
    proxy.send(
        format!("GET http://allowed.test{target} HTTP/1.1\r\nHost: allowed.test\r\n{lines}\r\n")
            .as_bytes(),
    )
}

fn post(proxy: &Proxy, lines: &str, body: &[u8]) -> String {
    let mut asked = format!(
        "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{lines}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    asked.extend_from_slice(body);
    proxy.send(&asked)
}

#[test]
fn headers_are_looked_at() {
    let proxy = Lab::new().start();
    let coded = STANDARD.encode(token());
    for lines in [
        format!("X-Data: {}\r\n", token()),
        format!("User-Agent: {}\r\n", token()),
        format!("Referer: http://a.test/{}\r\n", token()),
        format!("X-Data: {coded}\r\n"),
        format!("X-Data: {}\r\n", token().replace("glpat", "%67l%70at")),
        format!("{}: 1\r\n", token()),
        // Of GitLab, to another host; and a private key to anyone.
        format!("Authorization: Bearer {}\r\n", token()),
        format!("Private-Token: {}\r\n", token()),
        format!("Cookie: a=b; c={coded}\r\n"),
        format!("Authorization: Bearer {}\r\n", key().replace('\n', "")),
        // A header behind ninety others.
        format!("{}X-Data: {}\r\n", "A: b\r\n".repeat(90), token()),
    ] {
        stopped(&proxy, &get(&proxy, "/", &lines), "egress-secret");
    }
    // In the method, and in what is folded into the next line.
    let method = format!("{} http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", token());
    stopped(&proxy, &proxy.send(method.as_bytes()), "egress-secret");
    let folded = format!("X: a\r\n {}\r\n", token());
    stopped(&proxy, &get(&proxy, "/", &folded), "egress-malformed");
    // What nobody knows goes where credentials belong, and what is for the proxy stays here.
    let lines = format!(
        "Authorization: Bearer 8fK2mQx7Lp0Zr4Tn9Vb6\r\nCookie: s=8fK2mQx7Lp0Zr4Tn9Vb6\r\n\
         Proxy-Authorization: Basic {coded}\r\n"
    );
    assert_eq!(status(&get(&proxy, "/", &lines)), 200);
    assert!(!proxy.seen.origin_text().contains(&coded));
}

#[test]
fn a_second_request_on_a_connection_is_looked_at_too() {
    let proxy = Lab::new().start();
    let answer = proxy.send(
        format!(
            "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n\
             GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX-Data: {}\r\n\r\n",
            token()
        )
        .as_bytes(),
    );
    assert!(answer.contains("egress-secret"), "{answer}");
    assert_eq!(proxy.seen.dials(), 1);
    assert!(!proxy.seen.origin_text().contains(&token()));
}

#[test]
fn escapes_in_addresses_are_undone() {
    let proxy = Lab::new().start();
    let once = token().replace("glpat", "%67l%70%61t");
    let twice = once.replace('%', "%25");
    let thrice = twice.replace('%', "%25");
    let all: String = token().bytes().map(|byte| format!("%{byte:02X}")).collect();
    for target in [
        format!("/{once}"),
        format!("/{all}"),
        format!("/a/{twice}/b"),
        format!("/?q={once}"),
        format!("/?q={thrice}&x=y"),
        format!("/?a=1+{once}+2"),
        format!("?{once}"),
        format!("/?q={}", STANDARD.encode(format!("my token is {}", token()))),
    ] {
        stopped(&proxy, &get(&proxy, &target, ""), "egress-secret");
    }
    stopped(&proxy, &get(&proxy, &format!("/#{once}"), ""), "egress-malformed");
    // Text of several lines, as in links to a new issue; what is in it is looked at.
    assert_eq!(status(&get(&proxy, "/issues/new?title=a&body=line1%0Aline2%0D%0A", "")), 200);
    let lines = get(&proxy, &format!("/?body=line1%0A{once}%0Aline2"), "");
    assert!(lines.contains("egress-secret"), "{lines}");
    assert_eq!(
        status(&get(&proxy, "/%E4%BD%A0?q=100%25+of+%7Bx%7D&u=http%3A%2F%2Fa.test%2F", "")),
        200
    );
}

#[test]
fn forms_and_json_are_undone() {
    let proxy = Lab::new().start();
    let once = token().replace("glpat", "%67l%70%61t");
    let form = key().replace(' ', "+").replace('\n', "%0A");
    let json: String = token().bytes().map(|byte| format!("\\u00{byte:02x}")).collect();
    let coded = STANDARD.encode(key());
    let lines: Vec<&str> =
        coded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    for body in [
        format!("a=b&t={once}"),
        format!("a=b&k={form}"),
        format!("{{\"text\":\"{json}\"}}"),
        format!("{{\"content\":\"{}\"}}", lines.join("\\n")),
        lines.join("\n"),
        lines.join(" \n  "),
        ["{\"u\":\"postgres:\\/\\/app:", "s9fK2mQx7Lw4", "@db.internal.corp\\/app\"}"].concat(),
        token().bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        token().bytes().map(|byte| format!("&#x{byte:02x};")).collect(),
        token().bytes().map(|byte| format!("{byte:02x} ")).collect(),
    ] {
        stopped(&proxy, &post(&proxy, "", body.as_bytes()), "egress-secret");
    }
}

#[test]
fn a_token_with_signs_joined_to_it_is_one() {
    let proxy = Lab::new().start();
    let more = "A".repeat(400);
    let joined = |before: &str, behind: &str| format!("{before}{}{behind}", token());
    for text in [
        joined("x", ""),
        joined("", "x"),
        joined("_", ""),
        joined("-", "-x"),
        joined("", &more),
        joined(&more, &more),
        STANDARD.encode(joined("x", "x")),
    ] {
        stopped(&proxy, &post(&proxy, "", text.as_bytes()), "egress-secret");
        stopped(&proxy, &get(&proxy, &format!("/?q={text}"), ""), "egress-secret");
        stopped(&proxy, &get(&proxy, "/", &format!("X-Data: {text}\r\n")), "egress-secret");
    }
}

fn gzip(text: &str, level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &str) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn bare(text: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

const GZIP: &str = "Content-Encoding: gzip\r\n";

#[test]
fn compressed_bodies_are_looked_into() {
    let proxy = Lab::new().start();
    let text = format!("some words before, {} and some behind", token());
    let named = {
        let builder = flate2::GzBuilder::new().filename(token());
        let mut encoder = builder.write(Vec::new(), Compression::best());
        encoder.write_all(b"harmless").unwrap();
        encoder.finish().unwrap()
    };
    let members =
        [gzip("harmless", Compression::best()), gzip(&text, Compression::best())].concat();
    for (lines, body) in [
        (GZIP, gzip(&text, Compression::best())),
        (GZIP, gzip(&text, Compression::none())),
        ("content-encoding: X-GZIP\r\n", gzip(&text, Compression::best())),
        ("Content-Encoding: deflate\r\n", zlib(&text)),
        ("Content-Encoding: identity, gzip\r\n", gzip(&text, Compression::best())),
        (GZIP, members),
        (GZIP, named),
    ] {
        stopped(&proxy, &post(&proxy, lines, &body), "egress-secret");
    }
    // What cannot be looked into, is not what it says, or has something behind it.
    for (lines, body) in [
        ("Content-Encoding: br\r\n", gzip("x", Compression::best())),
        ("Content-Encoding: zstd\r\n", gzip("x", Compression::best())),
        ("Content-Encoding: gzip, gzip\r\n", gzip("x", Compression::best())),
        ("Content-Encoding: gzip\r\nContent-Encoding: br\r\n", gzip("x", Compression::best())),
        (GZIP, text.as_bytes()[..10].to_vec()),
        (GZIP, [gzip("x", Compression::best()), b"more".to_vec()].concat()),
        (GZIP, gzip(&"many words ".repeat(99), Compression::best())[..30].to_vec()),
        ("Content-Encoding: deflate\r\n", bare(&"many words ".repeat(99))),
        ("Content-Encoding: deflate\r\n", [zlib("x"), b"more".to_vec()].concat()),
    ] {
        stopped(&proxy, &post(&proxy, lines, &body), "egress-encoding");
    }
    let answer = post(&proxy, "Content-Encoding: br\r\n", b"x");
    assert!(status(&answer) == 415 && answer.contains("Accept-Encoding: gzip"), "{answer}");
}

#[test]
fn compressed_bodies_of_ordinary_tools_arrive_as_they_were_sent() {
    let proxy = Lab::new().start();
    // As git asks for what it does not have, and npm sends packages.
    let wants: String = (0..20_000_u32).map(|at| format!("0032want {at:040x}\n")).collect();
    for (lines, body) in [
        (GZIP, gzip(&wants, Compression::default())),
        (GZIP, gzip("{}", Compression::fast())),
        ("Content-Encoding: deflate\r\n", zlib(&wants)),
        (GZIP, Vec::new()),
        ("Content-Encoding: identity\r\n", wants.clone().into_bytes()),
    ] {
        assert_eq!(status(&post(&proxy, lines, &body)), 200, "{lines}");
        let origin = proxy.seen.origin.lock().unwrap();
        assert!(origin.last().unwrap().1.ends_with(&body), "{lines}");
    }
    // The decider reads what it was.
    let decided = proxy.seen.decided.lock().unwrap();
    assert!(decided[0].content.as_ref().unwrap().starts_with(b"0032want 0000"));
    assert_eq!(decided[1].content.as_deref(), Some(&b"{}"[..]));
}

#[test]
fn a_compressed_body_is_not_sent_before_it_is_known() {
    // One byte of the secret in each block, and so much nothing between them that what is held back
    // of the compressed bytes is far behind.
    let block = |bytes: &[u8], last: bool| {
        let length = u16::try_from(bytes.len()).unwrap();
        let mut out = vec![u8::from(last)];
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(bytes);
        out
    };
    let before = [b' '; 60_000];
    let mut body = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    body.extend(block(&before, false));
    for byte in token().bytes() {
        body.extend(block(&[byte], false));
        body.extend(block(b"", false).repeat(3000));
    }
    body.extend(block(b"", true));
    let mut sum = flate2::Crc::new();
    sum.update(&before);
    sum.update(token().as_bytes());
    body.extend(sum.sum().to_le_bytes());
    body.extend(sum.amount().to_le_bytes());
    let proxy = Lab::new().start();
    let answer = post(&proxy, GZIP, &body);
    assert_eq!(status(&answer), 403, "{answer}");
    for (_, bytes) in proxy.seen.origin.lock().unwrap().iter() {
        assert!(bytes.len() < before.len() + 4096, "{}", bytes.len());
    }
}

#[test]
fn a_body_that_grows_without_end_is_cut() {
    let mut lab = Lab::new();
    lab.limits.upload = 1 << 20;
    let proxy = lab.start();
    let bomb = gzip(&" ".repeat(8 << 20), Compression::best());
    assert!(bomb.len() < 64 << 10);
    stopped(&proxy, &post(&proxy, GZIP, &bomb), "egress-encoding");
}

#[test]
fn nobody_waits_while_bodies_are_unpacked() {
    // One thread serves all.
    let mut lab = Lab::new();
    lab.limits.upload = 256 << 20;
    let proxy = lab.start();
    // Each becomes nearly a GiB: they are at work long after the others.
    let bomb = gzip(&"ab".repeat(8 << 20), Compression::best()).repeat(60);
    let head = format!(
        "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{GZIP}Content-Length: {}\r\n\r\n",
        bomb.len()
    );
    let asked = [head.as_bytes(), &bomb].concat();
    let mut bombs = [(); 4].map(|()| proxy.connect());
    for stream in &mut bombs {
        stream.write_all(&asked).unwrap();
        stream.set_nonblocking(true).unwrap();
    }
    // None was answered.
    let mut at_work = || {
        bombs.iter_mut().all(|stream| {
            stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        })
    };
    let small = gzip("a few words", Compression::best());
    for turn in 0..5 {
        assert_eq!(status(&get(&proxy, "/", "")), 200);
        assert!(at_work(), "{turn}");
        // Those that are compressed themselves wait for their turn.
        assert_eq!(status(&post(&proxy, GZIP, &small)), 200);
        assert!(at_work(), "{turn}");
    }
}

#[test]
fn trailers_of_requests_are_refused() {
    let proxy = Lab::new().start();
    let asked = format!(
        "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\
         Trailer: X-Data\r\n\r\n1\r\na\r\n0\r\nX-Data: {}\r\n\r\n",
        token()
    );
    stopped(&proxy, &proxy.send(asked.as_bytes()), "egress-malformed");
}

#[test]
fn names_that_hold_secrets_are_not_looked_up() {
    let proxy = Lab::new().start();
    let name = ["da", "pi", "3f9a1c7e5b2d8046af13c9e7b5d20846", ".allowed.test"].concat();
    let answer = proxy.get(&format!("http://{name}/"), &name);
    assert_eq!(status(&answer), 403, "{answer}");
    assert_eq!(proxy.tunnel(&format!("{name}:443")).0, 403);
    assert_eq!(proxy.socks(name.as_bytes(), 443).0, 2);
    assert!(proxy.seen.lookups.lock().unwrap().is_empty());
}

#[test]
fn the_owner_may_let_secrets_pass() {
    let mut lab = Lab::new();
    lab.change = Some(Box::new(|config| config.secrets = true));
    let proxy = lab.start();
    assert_eq!(status(&get(&proxy, "/", &format!("X-Data: {}\r\n", token()))), 200);
    assert_eq!(status(&post(&proxy, "Content-Encoding: br\r\n", b"anything")), 200);
    let mut lab = Lab::new();
    lab.change =
        Some(Box::new(|config| config.credentials = vec!["allowed.test".parse().unwrap()]));
    let proxy = lab.start();
    assert_eq!(status(&get(&proxy, "/", &format!("Private-Token: {}\r\n", token()))), 200);
    assert_eq!(status(&get(&proxy, "/", &format!("X-Data: {}\r\n", token()))), 403);
}

#[test]
fn messages_of_a_websocket_are_looked_at() {
    let mut lab = Lab::new();
    lab.host("allowed.test", ALLOWED, 80, websocket);
    let proxy = lab.start();
    let mut stream = proxy.connect();
    let asked = "GET http://allowed.test/chat HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
    stream.write_all(asked.as_bytes()).unwrap();
    let message = |text: &str| {
        let mut out = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 1, 2, 3, 4];
        out.extend(
            text.bytes().zip([1, 2, 3, 4].into_iter().cycle()).map(|(byte, mask)| byte ^ mask),
        );
        out
    };
    stream.write_all(&message("hello")).unwrap();
    // The host gives back what it got.
    let mut got = Vec::new();
    let mut byte = [0];
    while !got.ends_with(&message("hello")) && stream.read(&mut byte).unwrap() == 1 {
        got.push(byte[0]);
    }
    // With a sign more, too.
    stream.write_all(&message(&format!("x{}", token()))).unwrap();
    read_all(&mut stream);
    let outcomes = proxy.seen.wait_outcomes(1);
    assert_eq!(cut_by(&outcomes[0].1.ended), "egress-secret");
    let origin = proxy.seen.origin.lock().unwrap();
    let all: Vec<u8> = origin.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(all, message("hello"));
}
