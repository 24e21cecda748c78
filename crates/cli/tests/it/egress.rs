//! `wardkeep egress` with the real binary.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::state::Scene;

/// A running proxy; it and its daemon are ended when dropped.
struct Proxy<'a> {
    scene: &'a Scene,
    child: Child,
    ready: Value,
}

impl<'a> Proxy<'a> {
    fn start(scene: &'a Scene, arguments: &[&str]) -> Self {
        let serve = ["egress", "--json", "--listen", "127.0.0.1:0"];
        let mut command = scene.command("s", &[&serve[..], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { scene, child, ready: serde_json::from_str(&line).unwrap() }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.ready["address"].as_str().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

impl Drop for Proxy<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.scene.run("s", &["daemon", "stop"]);
    }
}

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
    let proxy = Proxy::start(&scene, &["--allow", &target]);
    let answer = proxy.ask(&get(&target));
    assert!(answer.ends_with("hello"), "{answer}");
    let answer = proxy.ask(&get("unlisted.example"));
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("egress-unlisted"), "{answer}");
    // Another port of this machine stays closed.
    let answer = proxy.ask(&get("127.0.0.1:1"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
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
