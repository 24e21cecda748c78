//! `wardkeep egress` with the real binary.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::state::{Proxy, Scene};

/// A host on loopback that answers everything with `hello`.
fn host() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    port
}

fn get(target: &str) -> String {
    format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n")
}

#[test]
fn it_lets_out_what_may_leave_and_records_the_rest() {
    let scene = Scene::new();
    let port = host();
    let target = format!("127.0.0.1:{port}");
    let mut proxy = Proxy::start(&scene, "egress", &["--allow", &target]);
    let answer = proxy.send(&get(&target));
    assert!(answer.ends_with("hello"), "{answer}");
    let answer = proxy.send(&get("unlisted.example"));
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("egress-unlisted"), "{answer}");
    // Another port of this machine stays closed.
    let answer = proxy.send(&get("127.0.0.1:1"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // In order: the outcomes are recorded when it has ended.
    proxy.terminate();
    assert_eq!(proxy.ended(), Some(0));
    drop(proxy);
    let log = scene.expect(0, "s", &["log", "--json"]).stdout;
    for said in [&target, "egress-unlisted", "egress-port", r#""kind":"egress""#] {
        assert!(log.contains(said), "{said}: {log}");
    }
}

#[test]
fn it_listens_only_where_others_cannot_connect() {
    let scene = Scene::new();
    let ran = scene.run("s", &["egress", "--listen", "0.0.0.0:0"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("other machines"), "{ran:?}");
    let _ = scene.run("s", &["daemon", "stop"]);
    let ran = scene.run("s", &["egress", "--allow", "http://example.org/"]);
    assert!(ran.stderr.contains("without scheme"), "{ran:?}");
}
