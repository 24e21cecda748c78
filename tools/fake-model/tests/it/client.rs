//! A server with a script, and as much of a client as the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use wardkeep_fake_model::{Log, Script, Server, Step};

pub(crate) struct Model {
    port: u16,
    log: PathBuf,
    _folder: TempDir,
}

impl Model {
    /// Plays the steps and then says `All done, says the model.`
    pub(crate) fn start(steps: &[Step]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.jsonl");
        let mut script = Script::default();
        steps.iter().for_each(|step| script.push(step.clone()).unwrap());
        script.say("All done, says the model.".to_owned());
        let server = Server::bind(0, script, Log::create(&log).unwrap()).unwrap();
        let port = server.port();
        std::thread::spawn(move || server.serve());
        Self { port, log, _folder: folder }
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // The server may refuse and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    /// The body of the answer to a POST.
    pub(crate) fn post(&self, path: &str, body: &Value) -> String {
        let body = body.to_string();
        let length = body.len();
        let request =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
        let answer = self.send(request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        body.to_owned()
    }

    pub(crate) fn json(&self, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.post(path, body)).unwrap()
    }

    /// The documents of a stream of server-sent events.
    pub(crate) fn events(&self, path: &str, body: &Value) -> Vec<Value> {
        self.post(path, body)
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
