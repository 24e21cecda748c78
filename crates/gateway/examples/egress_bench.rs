//! Measures the proxy on loopback against no proxy: requests a second with new connections, bytes a
//! second, and how long one request takes.
//!
//! `cargo run --release -p wardkeep-gateway --example egress_bench [-- --proxy HOST:PORT --origin PORT]`
//!
//! With `--proxy` another proxy is measured the same way; it has to let `127.0.0.1:PORT` through, where
//! this program answers. `--user NAME:PASSWORD` is sent to it as Basic credentials.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wardkeep_gateway::egress::hello::example;
use wardkeep_gateway::egress::{
    BoxFuture, Config, Decider, Decision, Dial, Listener, Outcome, Request, Resolve, Rules,
    SystemDialer, Verdict, start,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Allows everything, and records nothing: what is measured is the proxy.
struct Yes;

impl Decider for Yes {
    fn decide<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Decision> {
        let verdict = Verdict::Allow { upload: None };
        Box::pin(async { Decision { verdict, record: None } })
    }

    fn outcome<'a>(
        &'a self,
        _: &'a Request,
        _: Option<&'a str>,
        _: &'a Outcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// Every name leads to the program's own host.
struct Home(SocketAddr);

impl Resolve for Home {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![[93, 184, 215, 14].into()]) })
    }
}

impl Dial for Home {
    fn dial(&self, _: SocketAddr) -> BoxFuture<'_, std::io::Result<tokio::net::TcpStream>> {
        SystemDialer.dial(self.0)
    }

    fn is_own(&self, _: IpAddr) -> bool {
        false
    }
}

const SMALL: usize = 1024;
const LARGE: u64 = 500_000_000;

/// Answers `/large` with 500 MB, everything else with 1 KiB; a tunnel that begins with TLS gets 500 MB.
fn origin(port: u16) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    std::thread::spawn(move || -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(answer(stream));
            }
        })
    });
    Ok(address)
}

async fn answer(mut stream: tokio::net::TcpStream) -> std::io::Result<()> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut bytes = vec![0; 4096];
    let mut count = 0;
    while count < bytes.len() {
        let read = stream.read(&mut bytes[count..]).await?;
        count += read;
        let tls = bytes[0] == 22;
        if read == 0 || tls || bytes[..count].ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let large = bytes[..count].starts_with(b"GET /large");
    if large || bytes[0] == 22 {
        if large {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
        }
        let piece = vec![7; 256 << 10];
        let mut left = LARGE;
        while left > 0 {
            let size = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            stream.write_all(&piece[..size]).await?;
            left -= size as u64;
        }
        return stream.shutdown().await;
    }
    let mut out = format!("HTTP/1.1 200 OK\r\nContent-Length: {SMALL}\r\n\r\n").into_bytes();
    out.extend([b'x'; SMALL]);
    stream.write_all(&out).await?;
    stream.shutdown().await
}

/// Where requests go, and how they are written.
#[derive(Clone)]
struct Way {
    to: SocketAddr,
    url: String,
    host: String,
    login: String,
}

fn once(way: &Way, path: &str, buffer: &mut [u8]) -> Result<u64, Failure> {
    let mut stream = TcpStream::connect(way.to)?;
    stream.set_nodelay(true)?;
    let Way { url, host, login, .. } = way;
    let asked =
        format!("GET {url}{path} HTTP/1.1\r\nHost: {host}\r\n{login}Connection: close\r\n\r\n");
    stream.write_all(asked.as_bytes())?;
    let mut all = 0;
    loop {
        match stream.read(buffer)? {
            0 => return Ok(all),
            count => {
                if all == 0 && !buffer.starts_with(b"HTTP/1.1 200") {
                    return Err(String::from_utf8_lossy(&buffer[..count]).into());
                }
                all += count as u64;
            }
        }
    }
}

/// Requests a second, and the median and 99th percentile of one in microseconds.
fn requests(way: &Way, clients: usize, time: Duration) -> Result<(f64, u128, u128), Failure> {
    let stop = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    let began = Instant::now();
    let mut took = std::thread::scope(|scope| -> Result<Vec<u128>, Failure> {
        let work = || -> Result<Vec<u128>, Failure> {
            let mut took = Vec::new();
            let mut buffer = vec![0; 8192];
            while !stop.load(Ordering::Relaxed) {
                let at = Instant::now();
                once(way, "/", &mut buffer)?;
                took.push(at.elapsed().as_micros());
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(took)
        };
        let running: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for one in running {
            all.extend(one.join().map_err(|_| "a client failed")??);
        }
        Ok(all)
    })?;
    let rate = count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
    Ok((rate, at(50), at(99)))
}

/// Bytes a second of one large answer.
fn plain(way: &Way) -> Result<f64, Failure> {
    let mut buffer = vec![0; 256 << 10];
    let began = Instant::now();
    let bytes = once(way, "/large", &mut buffer)?;
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}

/// Bytes a second through a tunnel, or straight where there is none.
fn tunnel(way: &Way, target: Option<&str>) -> Result<f64, Failure> {
    let mut stream = TcpStream::connect(way.to)?;
    let mut buffer = vec![0; 256 << 10];
    if let Some(target) = target {
        let asked = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{}\r\n", way.login);
        stream.write_all(asked.as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        if !head.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&head).into());
        }
    }
    let began = Instant::now();
    // An address has no name that TLS could ask for.
    let name = target.filter(|target| target.starts_with("bench")).map(|_| "bench.example");
    stream.write_all(&example(name, false))?;
    let mut all = 0u64;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            count => all += count as u64,
        }
    }
    if all < LARGE {
        return Err(format!("only {all} bytes came").into());
    }
    Ok(all as f64 / began.elapsed().as_secs_f64())
}

#[expect(clippy::print_stdout, reason = "it is a program")]
fn report(name: &str, way: &Way, target: Option<&str>) -> Result<(), Failure> {
    let time = Duration::from_secs(5);
    for clients in [1, 16] {
        let (rate, median, high) = requests(way, clients, time)?;
        println!(
            "{name}, {clients:2} clients: {rate:8.0} requests/s, p50 {median} us, p99 {high} us"
        );
    }
    println!("{name}, 500 MB plain:  {:6.0} MB/s", plain(way)? / 1e6);
    println!("{name}, 500 MB tunnel: {:6.0} MB/s", tunnel(way, target)? / 1e6);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let port = given("--origin").map_or(Ok(0), |port| port.parse())?;
    let host = origin(port)?;
    let direct = Way { to: host, url: String::new(), host: host.to_string(), login: String::new() };
    report("direct  ", &direct, None)?;
    if let Some(proxy) = given("--proxy") {
        let login = match given("--user") {
            Some(user) => {
                use base64::Engine as _;
                let coded = base64::engine::general_purpose::STANDARD.encode(user);
                format!("Proxy-Authorization: Basic {coded}\r\n")
            }
            None => String::new(),
        };
        let way = Way {
            to: proxy.parse()?,
            url: format!("http://{host}"),
            host: host.to_string(),
            login,
        };
        return report("other   ", &way, Some(&host.to_string()));
    }
    let rules = Rules { allow: vec!["bench.example".parse()?], ..Rules::default() };
    let mut config = Config::new(rules);
    config.limits.upload_total = u64::MAX;
    config.limits.upload_per_host = u64::MAX;
    config.resolver = Arc::new(Home(host));
    config.dialer = Arc::new(Home(host));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = listener.local_addr()?;
    let running = start(Listener::Tcp(listener), config, Arc::new(Yes), 2)?;
    let way = Way {
        to,
        url: "http://bench.example".to_owned(),
        host: "bench.example".to_owned(),
        login: String::new(),
    };
    report("wardkeep", &way, Some("bench.example:443"))?;
    running.stop()?;
    Ok(())
}
