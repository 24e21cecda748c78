//! What the model API proxy costs, against the same upstream without it, in one run.
//!
//! `cargo build --release --workspace --bins --example llm_bench`, then
//! `target/release/examples/llm_bench [LITELLM]`. It measures `target/release/wardkeep proxy` itself, with all features,
//! its monitor in a daemon and its records on disk; LITELLM is LiteLLM's program, where that is to be measured too.

#![expect(
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures and prints; whatever fails ends it"
)]

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

const REPLY: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Very well, that is done."}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}"#;

const CHAT_REPLY: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Very well, that is done."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#;
/// How the bodies of Chat Completions begin here.
const CHAT: &[u8] = b"{\"model\":\"m\",\"messages\"";

fn main() {
    let litellm = std::env::args_os().nth(1).map(PathBuf::from);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure(litellm));
}

/// A program that is ended with this.
struct Server {
    child: Child,
    address: SocketAddr,
    state: Option<PathBuf>,
}

fn wardkeep() -> Command {
    let program = std::env::current_exe().unwrap();
    Command::new(program.parent().unwrap().with_file_name("wardkeep"))
}

impl Server {
    /// `wardkeep proxy`, with a policy that is signed.
    fn wardkeep(model: SocketAddr, folder: &Path) -> Self {
        let (state, work) = (folder.join("state"), folder.join("work"));
        std::fs::create_dir_all(&work).unwrap();
        let run = |words: &[&str]| {
            let mut command = wardkeep();
            command.arg("--state-dir").arg(&state).args(words).current_dir(&work);
            assert!(command.output().unwrap().status.success(), "{words:?}");
        };
        run(&["init", "."]);
        std::fs::write(work.join("LocalGPT.md"), "- Never use sudo\n").unwrap();
        run(&["md", "sign", "--yes"]);
        let mut command = wardkeep();
        command.arg("--json").arg("--state-dir").arg(&state).current_dir(&work);
        command.args([
            "proxy",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            &format!("http://{model}"),
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = ready["address"].as_str().unwrap().parse().unwrap();
        Self { child, address, state: Some(state) }
    }

    /// LiteLLM's proxy, as it comes.
    async fn litellm(program: &Path, model: SocketAddr, folder: &Path) -> Self {
        let config = folder.join("litellm.yaml");
        let text = format!(
            "model_list:\n  - model_name: m\n    litellm_params:\n      model: openai/m\n      api_base: http://{model}/v1\n      api_key: none\n"
        );
        std::fs::write(&config, text).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut command = Command::new(program);
        command.arg("--config").arg(&config).args(["--host", "127.0.0.1"]);
        command.args(["--port", &address.port().to_string(), "--num_workers", "1"]);
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("LITELLM_TELEMETRY", "False");
        command.env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true");
        let log = std::fs::File::create(folder.join("litellm.log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log).current_dir(folder);
        let started = Self { child: command.spawn().unwrap(), address, state: None };
        for _ in 0..1200 {
            if TcpStream::connect(address).await.is_ok() {
                return started;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("LiteLLM did not start");
    }

    /// Resident memory, in MB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(state) = &self.state {
            let _ = wardkeep().arg("--state-dir").arg(state).args(["daemon", "stop"]).output();
        }
    }
}

/// A model: a document, or with `"stream":true` two events at once and then one a second until it is told to end.
async fn upstream(ends: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let _ = stream.set_nodelay(true);
            let ends = Arc::clone(&ends);
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let ends = Arc::clone(&ends);
                    async move { Ok::<_, Infallible>(answer(request, ends).await) }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address
}

async fn answer(
    request: Request<Incoming>,
    ends: Arc<AtomicBool>,
) -> Response<BoxBody<Bytes, Infallible>> {
    let streams = request.headers().contains_key("x-stream");
    let chat = request.uri().path().ends_with("/chat/completions");
    let _ = request.into_body().collect().await.unwrap().to_bytes();
    if !streams {
        let reply = if chat { CHAT_REPLY } else { REPLY };
        let body = Full::new(Bytes::from_static(reply.as_bytes())).boxed();
        return Response::builder().header("content-type", "application/json").body(body).unwrap();
    }
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(4);
    tokio::spawn(async move {
        let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
        let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Good morning to all of you here in the office, and welcome back. \"}}\n\n";
        if sender.send(format!("{start}{delta}").into()).await.is_err() {
            return;
        }
        while !ends.load(Ordering::Relaxed) && sender.send(delta.into()).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let body = Events(receiver).boxed();
    Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
}

struct Events(tokio::sync::mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

async fn connect(address: SocketAddr) -> Sender {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(address: SocketAddr, body: Bytes, stream: bool) -> Request<Full<Bytes>> {
    let path = if body.starts_with(CHAT) { "/v1/chat/completions" } else { "/v1/messages" };
    let request = Request::post(path).header("host", address.to_string());
    let request = if stream { request.header("x-stream", "1") } else { request };
    request.header("content-type", "application/json").body(Full::new(body)).unwrap()
}

async fn exchange(sender: &mut Sender, address: SocketAddr, body: Bytes) -> Duration {
    sender.ready().await.unwrap();
    let begin = Instant::now();
    let reply = sender.send_request(request(address, body, false)).await.unwrap();
    assert_eq!(reply.status(), 200);
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let took = begin.elapsed();
    assert!(String::from_utf8_lossy(&bytes).contains("that is done"));
    took
}

/// A conversation of about 85 KB whose last message is new: half system prompt, half tool results.
fn conversation(number: usize) -> Bytes {
    let rule = "Clerks of the harbour office write down who came, at what hour, and what was paid for the berth. ";
    let page = "The list of ships in port was read from the register of the morning, in order of their berths. ";
    let system = rule.repeat(42_000 / rule.len());
    let mut messages = String::from("{\"role\":\"user\",\"content\":\"Read the register.\"}");
    for turn in 0..8 {
        messages += &format!(
            ",{{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_{turn:08}\",\"name\":\"Read\",\"input\":{{}}}}]}},{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_{turn:08}\",\"content\":\"{}\"}}]}}",
            page.repeat(5_200 / page.len())
        );
    }
    messages += &format!(
        ",{{\"role\":\"assistant\",\"content\":\"Done.\"}},{{\"role\":\"user\",\"content\":\"And page {number}?\"}}"
    );
    format!(
        "{{\"model\":\"m\",\"max_tokens\":99,\"system\":\"{system}\",\"messages\":[{messages}]}}"
    )
    .into()
}

/// The same for Chat Completions.
fn chat(number: usize) -> Bytes {
    let page = "The list of ships in port was read from the register of the morning, in order of their berths. ";
    let mut messages = format!(
        "{{\"role\":\"system\",\"content\":\"{}\"}},{{\"role\":\"user\",\"content\":\"Read the register.\"}}",
        "Clerks of the harbour office write down who came, at what hour. ".repeat(650)
    );
    for turn in 0..8 {
        messages += &format!(
            ",{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"call_{turn:08}\",\"type\":\"function\",\"function\":{{\"name\":\"Read\",\"arguments\":\"{{}}\"}}}}]}},{{\"role\":\"tool\",\"tool_call_id\":\"call_{turn:08}\",\"content\":\"{}\"}}",
            page.repeat(5_200 / page.len())
        );
    }
    messages += &format!(
        ",{{\"role\":\"assistant\",\"content\":\"Done.\"}},{{\"role\":\"user\",\"content\":\"And page {number}?\"}}"
    );
    format!("{{\"model\":\"m\",\"messages\":[{messages}]}}").into()
}

/// At 50 requests a second.
async fn paced(address: SocketAddr, count: usize, body: fn(usize) -> Bytes) -> Vec<Duration> {
    let mut sender = connect(address).await;
    for number in 0..20 {
        exchange(&mut sender, address, body(number)).await;
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let mut took = Vec::new();
    for number in 0..count {
        let body = body(1000 + number);
        ticks.tick().await;
        took.push(exchange(&mut sender, address, body).await);
    }
    took
}

async fn first_text(address: SocketAddr, count: usize) -> Vec<Duration> {
    let body = Bytes::from_static(br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#);
    let mut took = Vec::new();
    for _ in 0..count {
        let mut sender = connect(address).await;
        let begin = Instant::now();
        let reply = sender.send_request(request(address, body.clone(), true)).await.unwrap();
        let mut stream = reply.into_body();
        let mut got = Vec::new();
        while !String::from_utf8_lossy(&got).contains("Good") {
            got.extend_from_slice(&stream.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        took.push(begin.elapsed());
    }
    took
}

async fn flood(address: SocketAddr, lanes: usize) -> f64 {
    let body = |lane: usize| {
        format!(
            "{{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{{\"role\":\"user\",\"content\":\"hi {lane}\"}}]}}"
        )
    };
    flooded(address, lanes, body).await
}

async fn flood_chat(address: SocketAddr, lanes: usize) -> f64 {
    let body = |lane: usize| {
        format!(
            "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi {lane}\"}}]}}"
        )
    };
    flooded(address, lanes, body).await
}

async fn flooded(address: SocketAddr, lanes: usize, body: impl Fn(usize) -> String) -> f64 {
    let done = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let until = begin + Duration::from_secs(2);
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..lanes {
        let done = Arc::clone(&done);
        let body = Bytes::from(body(lane));
        tasks.spawn(async move {
            let mut sender = connect(address).await;
            while Instant::now() < until {
                exchange(&mut sender, address, body.clone()).await;
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

fn told(name: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{name:<44} p50 {:.3} ms  p99 {:.3} ms  n {}", at(0.5), at(0.99), took.len());
}

fn bare_appends(folder: &Path, count: usize) -> Vec<Duration> {
    let mut file = std::fs::File::create(folder.join("appends")).unwrap();
    (0..count)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let begin = Instant::now();
            file.write_all(&[b'x'; 1200]).unwrap();
            file.sync_data().unwrap();
            begin.elapsed()
        })
        .collect()
}

async fn measure(litellm: Option<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ends = Arc::new(AtomicBool::new(false));
    let model = upstream(Arc::clone(&ends)).await;
    let proxy = Server::wardkeep(model, folder);
    let other = match &litellm {
        Some(program) => Some(Server::litellm(program, model, folder).await),
        None => None,
    };
    println!("all are up");
    tokio::time::sleep(Duration::from_secs(3)).await;
    println!("bodies of {} bytes, 50 requests/s", conversation(0).len());
    told("direct", &mut paced(model, 300, conversation).await);
    told("wardkeep proxy", &mut paced(proxy.address, 300, conversation).await);
    told("a bare durable append", &mut bare_appends(folder, 200));
    println!("Chat Completions, bodies of {} bytes, 50 requests/s", chat(0).len());
    told("direct", &mut paced(model, 150, chat).await);
    told("wardkeep proxy", &mut paced(proxy.address, 150, chat).await);
    told("first text of a stream, direct", &mut first_text(model, 200).await);
    told("first text of a stream, wardkeep", &mut first_text(proxy.address, 200).await);
    for lanes in [1, 16, 64] {
        let (direct, through) = (flood(model, lanes).await, flood(proxy.address, lanes).await);
        println!("small requests/s, {lanes} at a time: direct {direct:.0}, wardkeep {through:.0}");
    }
    let before = proxy.memory();
    let mut open = Vec::new();
    let body = Bytes::from_static(br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#);
    for _ in 0..1000 {
        let mut sender = connect(proxy.address).await;
        let reply = sender.send_request(request(proxy.address, body.clone(), true)).await.unwrap();
        let mut stream = reply.into_body();
        let _ = stream.frame().await;
        open.push((sender, stream));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    println!("1,000 open streams: {before:.1} MB before, {:.1} MB with them", proxy.memory());
    ends.store(true, Ordering::Relaxed);
    drop(open);
    if let Some(other) = other {
        told("LiteLLM, Chat Completions", &mut paced(other.address, 100, chat).await);
        for lanes in [1, 16] {
            let through = flood_chat(other.address, lanes).await;
            let ours = flood_chat(proxy.address, lanes).await;
            println!(
                "small chat requests/s, {lanes} at a time: LiteLLM {through:.0}, wardkeep {ours:.0}"
            );
        }
        println!("LiteLLM: {:.0} MB", other.memory());
    }
}
