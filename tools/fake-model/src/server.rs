//! Accepts connections and answers one request on each.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{self, Answer, Request};
use crate::log::Log;
use crate::script::Script;
use crate::wire::{self, Turn};

/// Connections at once; more wait in the kernel's queue for a place.
const MAX_CONNECTIONS: usize = 64;
/// Requests in the life of a server: an agent that loops must not fill the disk.
const MAX_REQUESTS: usize = 2_000;
/// A peer that says nothing for so long is dropped.
const PATIENCE: Duration = Duration::from_secs(60);

/// A listening model.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    port: u16,
    model: Arc<Model>,
}

#[derive(Debug)]
struct Model {
    script: Script,
    log: Log,
    requests: AtomicUsize,
    open: AtomicUsize,
    strict: bool,
    swollen: AtomicBool,
}

impl Server {
    /// Listens on loopback; port 0 takes a free one.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn bind(port: u16, script: Script, log: Log) -> io::Result<Self> {
        Self::start(port, script, log, false)
    }

    /// As [`Server::bind`], and refuses what a real server would refuse.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub fn bind_strict(port: u16, script: Script, log: Log) -> io::Result<Self> {
        Self::start(port, script, log, true)
    }

    fn start(port: u16, script: Script, log: Log, strict: bool) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        let (requests, open) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let swollen = AtomicBool::new(false);
        let model = Model { script, log, requests, open, strict, swollen };
        Ok(Self { listener, port, model: Arc::new(model) })
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves for ever.
    pub fn serve(&self) {
        for stream in self.listener.incoming() {
            let Ok(stream) = stream else { continue };
            while self.model.open.load(Ordering::Acquire) >= MAX_CONNECTIONS {
                thread::sleep(Duration::from_millis(5));
            }
            self.model.open.fetch_add(1, Ordering::AcqRel);
            let model = Arc::clone(&self.model);
            thread::spawn(move || {
                // A peer that has gone away is no concern of the others.
                let _ = model.converse(stream);
                model.open.fetch_sub(1, Ordering::AcqRel);
            });
        }
    }
}

impl Model {
    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let number = self.requests.fetch_add(1, Ordering::AcqRel) + 1;
        if number > MAX_REQUESTS {
            return http::write(&mut stream, false, &refusal(429, "too many requests"));
        }
        let request = match http::read(&mut stream)? {
            Ok(request) => request,
            Err((status, why)) => {
                self.log.append(&json!({"number": number, "error": why}))?;
                return http::write(&mut stream, false, &refusal(status, why));
            }
        };
        let (answer, line) = self.answer(number, &request);
        // Logged before it is answered: what the agent then does, a test finds explained.
        self.log.append(&line)?;
        http::write(&mut stream, request.method == "HEAD", &answer)
    }

    fn answer(&self, number: usize, request: &Request) -> (Answer, Value) {
        let mut line = json!({"number": number, "method": request.method, "path": request.target});
        let answer = if request.method == "POST" {
            match serde_json::from_slice::<Value>(&request.body) {
                Ok(body) => {
                    let answer = self.turn(number, request.path(), &body, &mut line);
                    line["body"] = body;
                    answer
                }
                Err(error) => {
                    line["error"] = json!(format!("the body is not JSON: {error}"));
                    refusal(400, "the body is not JSON")
                }
            }
        } else {
            wire::lookup(request.path())
        };
        (answer, line)
    }

    fn turn(&self, number: usize, path: &str, body: &Value, line: &mut Value) -> Answer {
        let Some(wire) = wire::Wire::of(path) else { return wire::side_question(path) };
        if self.strict
            && let Err(why) = crate::strict::check(path, body)
        {
            line["refused"] = json!(why);
            return refusal(400, &why);
        }
        let mut asked = wire.read(path, body);
        asked.number = number;
        // Only once: what is said of a conversation after it was made shorter is no longer true.
        if let Some(tokens) = self.script.tokens(asked.results.len())
            && !self.swollen.swap(true, Ordering::AcqRel)
        {
            asked.tokens = tokens;
        }
        let turn = Turn::next(&self.script, &asked, number);
        line["wire"] = json!(wire.name());
        line["stream"] = json!(asked.stream);
        line["tools"] = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
        line["results"] = json!(asked.results);
        line["answer"] = turn.as_json();
        wire.answer(&asked, &turn)
    }
}

fn refusal(status: u16, why: &str) -> Answer {
    Answer::Json(status, json!({"error": {"type": "invalid_request_error", "message": why}}))
}
