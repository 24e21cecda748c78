//! `wardkeep serve --proxy`: the page and the model API proxy in one process, each as if it were alone.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::proxy::{SUFFIX, ask_at, asking, model, requests, turn};
use crate::serve::Browser;
use crate::shared::BINARY;
use crate::state::{Proxy, Scene, send};

fn url<'p>(both: &'p Proxy<'_>) -> &'p str {
    both.ready["proxy"]["url"].as_str().unwrap()
}

fn address<'p>(both: &'p Proxy<'_>) -> &'p str {
    both.ready["proxy"]["address"].as_str().unwrap()
}

fn question() -> Value {
    turn(&json!([{"role": "user", "content": "When does the tide turn, by the way?"}]))
}

/// How often something was counted, as the page shows it.
fn count(browser: &Browser, name: &str) -> u64 {
    let shown = browser.page("/models");
    let after = shown.split_once(&format!("<dt>{name}</dt><dd>")).unwrap_or_else(|| {
        panic!("{name}: {shown}");
    });
    after.1.split_once('<').unwrap().0.parse().unwrap()
}

fn counted(browser: &Browser, name: &str, expected: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while count(browser, name) != expected && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(count(browser, name), expected, "{name}");
}

#[test]
fn one_process_serves_both_and_the_page_shows_what_went_through() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let said = "The reserve price of berth nine is 4,300 crowns a night. That is all.";
    let (port, log) = model(folder.path(), &[], said);
    let upstream = format!("http://127.0.0.1:{port}");
    let options = ["--proxy", "127.0.0.1:0", "--upstream", &upstream, "--token"];
    let both = Proxy::start(&scene, "serve", &options);
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let expected = ["address", "command", "exit", "link", "ok", "proxy"];
    assert_eq!(keys(&both.ready), expected.map(str::to_owned).into());
    let expected = ["address", "upstreams", "url"];
    assert_eq!(keys(&both.ready["proxy"]), expected.map(str::to_owned).into());
    let browser = Browser::new(&both);
    let shown = browser.page("/models");
    let (at, token) = url(&both).split_once("/k/").unwrap();
    assert!(shown.contains(at) && shown.contains(&upstream), "{shown}");
    assert!(shown.contains("asks for the token") && !shown.contains(token), "{shown}");
    assert_eq!(count(&browser, "requests"), 0);

    // As through `wardkeep proxy`: the policy stands last, and the prompt is withheld.
    let mut asked = question();
    asked["model"] = json!("<script>alert(1)</script>");
    let answer = ask_at(url(&both), "/v1/messages", &asked);
    assert!(answer.contains("[withheld]") && !answer.contains("4,300"), "{answer}");
    let told = requests(&log);
    let last = told[0]["body"]["messages"].as_array().unwrap().last().unwrap().clone();
    let last = last["content"].as_array().unwrap().last().unwrap()["text"].clone();
    assert!(last.as_str().unwrap().ends_with(SUFFIX), "{last}");
    counted(&browser, "redacted in replies", 1);
    assert_eq!(count(&browser, "requests"), 1);
    counted(&browser, "open now", 0);
    let shown = browser.page("/models");
    assert!(shown.contains("added a block") && shown.contains("withheld 1 places"), "{shown}");
    assert!(shown.contains("&lt;script&gt;") && !shown.contains("<script>alert"), "{shown}");

    // Who may ask one may not ask the other.
    let place = at.strip_prefix("http://").unwrap();
    let link = both.ready["link"].as_str().unwrap().rsplit_once('/').unwrap().1;
    let cookie = browser.cookie.split_once('=').unwrap().1;
    for word in [link, cookie] {
        let answer = ask_at(&format!("{at}/k/{word}"), "/v1/messages", &question());
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        let (_, request) = asking(at, "/v1/messages", &question());
        let header = format!("host: {place}\r\nx-wardkeep-token: {word}");
        let answer = send(place, &request.replacen(&format!("host: {place}"), &header, 1));
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let own = &browser.address;
    for (path, header) in [
        (format!("/enter/{token}"), String::new()),
        ("/models".to_owned(), format!("Cookie: wardkeep={token}\r\n")),
        ("/models".to_owned(), format!("x-wardkeep-token: {token}\r\n")),
        (format!("/k/{token}/models"), String::new()),
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {own}\r\n{header}Connection: close\r\n\r\n");
        let answer = send(own, &request);
        assert!(answer.starts_with("HTTP/1.1 401"), "{path} {header}: {answer}");
        assert!(!answer.contains("set-cookie"), "{answer}");
    }
    // Nor does the page's cookie go on to a model, should a browser send it here.
    let (_, request) = asking(url(&both), "/v1/messages", &question());
    let header = format!("host: {place}\r\ncookie: a=b; {}", browser.cookie);
    let answer = send(place, &request.replacen(&format!("host: {place}"), &header, 1));
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("not for a model"), "{answer}");
    assert_eq!(requests(&log).len(), 1, "nothing of it reached the model");
    counted(&browser, "refused at the door", 5);
    let shown = browser.page("/models");
    assert!(shown.contains("refused with 401: the token of this proxy is missing"), "{shown}");
    // Paths that were never judged are counted apart.
    let get =
        format!("GET /k/{token}/v1/models HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n");
    let _ = send(place, &get);
    counted(&browser, "passed unread", 1);
    assert_eq!(count(&browser, "requests"), 1);
}

#[test]
fn a_page_alone_says_so() {
    let scene = Scene::new();
    let page = Proxy::start(&scene, "serve", &[]);
    assert_eq!(page.ready["proxy"], Value::Null);
    let shown = Browser::new(&page).page("/models");
    assert!(shown.contains("wardkeep serve --proxy"), "{shown}");
    let ran = scene.run("s", &["serve", "--upstream", "http://127.0.0.1:1"]);
    assert!(ran.code == 2 && ran.stderr.contains("--proxy"), "{ran:?}");
}

#[test]
fn nothing_runs_if_an_address_cannot_be_had() {
    let scene = Scene::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let any = "127.0.0.1:0";
    for (arguments, why, code) in [
        (&["--listen", any, "--proxy", &taken][..], "cannot listen on", 4),
        (&["--listen", &taken, "--proxy", any], "cannot listen on", 4),
        (&["--listen", any, "--proxy", "0.0.0.0:0"], "other machines", 1),
    ] {
        let ran = scene.run("s", &[&["serve"], arguments].concat());
        assert!(ran.code == code && ran.stderr.contains(why), "{arguments:?} {ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
        assert!(!scene.at("s").exists(), "no state and no daemon: {arguments:?}");
    }
}

#[test]
fn who_floods_one_does_not_take_the_other_down() {
    let scene = Scene::new();
    // A model that takes every request and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", silent.local_addr().unwrap());
    let (went, coming) = mpsc::channel();
    std::thread::spawn(move || {
        for one in silent.incoming().flatten() {
            if went.send(one).is_err() {
                return;
            }
        }
    });
    // With as few descriptors as old systems give.
    let limited = "ulimit -n 512 && exec \"$0\" \"$@\"";
    let listen = ["serve", "--json", "--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0"];
    let plain = scene.command("s", &[&listen[..], &["--upstream", &upstream]].concat());
    let mut command = Command::new("sh");
    command.args(["-c", limited, BINARY]).args(plain.get_args());
    command.current_dir(plain.get_current_dir().unwrap());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let both = Proxy::started(&scene, command);
    let browser = Browser::new(&both);
    let (place, request) = asking(url(&both), "/v1/messages", &question());
    let (head, _) = request.split_once("\r\n\r\n").unwrap();
    let long = head.replacen("content-length: ", "content-length: 9", 1);
    let mut hostile = Vec::new();
    // Requests that the model does not answer, heads and bodies that never end, noise, and nothing.
    let endless = format!("{long}\r\n\r\n{{\"model\":\"");
    let kinds: [&[u8]; 5] =
        [request.as_bytes(), endless.as_bytes(), b"POST /v1/mess", b"\0\xff\x16\x03\n\n", b""];
    let (target, patience) = (place.parse().unwrap(), Duration::from_millis(300));
    let mut left_out = 0;
    for number in 0..600 {
        // Whoever is not taken yet waits, and after some of them nobody is even told.
        let Ok(mut stream) = TcpStream::connect_timeout(&target, patience) else {
            left_out += 1;
            if left_out == 5 {
                break;
            }
            continue;
        };
        let _ = stream.set_write_timeout(Some(Duration::from_secs(5)));
        let _ = stream.write_all(kinds[number % kinds.len()]);
        hostile.push(stream);
        if number % 50 == 49 {
            let began = Instant::now();
            assert!(browser.page("/").contains("Protection"));
            assert!(browser.page("/models").contains("What went through"));
            assert!(began.elapsed() < Duration::from_secs(20), "{number}");
        }
    }
    assert!(hostile.len() > 100, "{}", hostile.len());
    assert!(count(&browser, "open now") > 0);
    for path in ["/timeline", "/evidence", "/policy", "/report"] {
        browser.page(path);
    }
    drop((hostile, coming));
    counted(&browser, "open now", 0);

    // And the other way round: nobody gets to the page any more, and the proxy answers.
    let idle: Vec<TcpStream> =
        (0..80).map(|_| TcpStream::connect(&browser.address).unwrap()).collect();
    let answer = ask_at(url(&both), "/v1/messages", &question());
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    drop(idle);
    assert!(browser.page("/models").contains("What went through"));
}

/// Reads a request to its end, so that nothing unread breaks the answer off.
fn read_request(stream: &mut TcpStream) {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0);
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.unwrap().trim().parse().unwrap() {
            return;
        }
    }
}

#[test]
fn both_end_by_one_signal_and_what_is_open_ends_well() {
    let scene = Scene::new();
    let model = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", model.local_addr().unwrap());
    let (go, wait) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let (mut stream, _) = model.accept().unwrap();
        read_request(&mut stream);
        let event = |name: &str, mut data: Value| {
            data["type"] = json!(name);
            format!("event: {name}\ndata: {data}\n\n")
        };
        let text = |text: &str| {
            let delta = json!({"type": "text_delta", "text": text});
            event("content_block_delta", json!({"index": 0, "delta": delta}))
        };
        let usage = json!({"input_tokens": 1, "output_tokens": 1});
        let begun = json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
        let block = json!({"index": 0, "content_block": {"type": "text", "text": ""}});
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let first = event("message_start", json!({"message": begun}))
            + &event("content_block_start", block)
            + &text("The tide turns, as everyone in the harbour knows, ");
        stream.write_all(format!("{head}{first}").as_bytes()).unwrap();
        wait.recv().unwrap();
        let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
        let rest = text("at four.")
            + &event("content_block_stop", json!({"index": 0}))
            + &event("message_delta", json!({"delta": delta, "usage": {"output_tokens": 9}}))
            + &event("message_stop", json!({}));
        stream.write_all(rest.as_bytes()).unwrap();
    });
    let mut both =
        Proxy::start(&scene, "serve", &["--proxy", "127.0.0.1:0", "--upstream", &upstream]);
    let (page, proxy) = (both.ready["address"].as_str().unwrap(), address(&both));
    let (page, proxy) = (page.to_owned(), proxy.to_owned());
    let mut live = TcpStream::connect(&page).unwrap();
    let cookie = Browser::new(&both).cookie;
    let news = format!("GET /live HTTP/1.1\r\nHost: {page}\r\nCookie: {cookie}\r\n\r\n");
    live.write_all(news.as_bytes()).unwrap();
    let mut begin = [0; 15];
    live.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");

    let (_, request) = asking(url(&both), "/v1/messages", &question());
    let mut client = TcpStream::connect(&proxy).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let (mut got, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&got).contains("tide turns") {
        let count = client.read(&mut part).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&part[..count]);
    }
    both.terminate();
    for address in [&page, &proxy] {
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_ok() {
            assert!(Instant::now() < until, "{address} takes nothing new");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // Whoever looks for news is let go at once.
    live.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    live.read_to_end(&mut Vec::new()).unwrap();
    go.send(()).unwrap();
    client.read_to_end(&mut got).unwrap();
    let got = String::from_utf8_lossy(&got);
    assert!(got.contains("four") && got.contains("message_stop"), "{got}");
    assert_eq!(both.ended(), Some(0));
    let journal = scene.expect(0, "s", &["log", "--json"]).stdout;
    assert!(journal.contains("model-reply") && journal.contains("\"ended\":\"done\""), "{journal}");
}
