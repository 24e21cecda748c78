//! A proxy on loopback with an Internet of its own: names, addresses and hosts are made up, and
//! nothing leaves the machine.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wardkeep_gateway::egress::{
    BoxFuture, Config, Decider, Decision, Denial, Dial, Ended, Limits, Listener, Outcome, Request,
    Resolve, Rule, Rules, Running, Unlisted, Verdict, start,
};

/// An address of the made-up Internet.
pub(crate) const ALLOWED: &str = "93.184.215.14";
pub(crate) const BLOCKED: &str = "93.184.215.66";

/// What a test needs to know of what happened.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) decided: Mutex<Vec<Request>>,
    pub(crate) outcomes: Mutex<Vec<(Request, Outcome)>>,
    pub(crate) lookups: Mutex<Vec<String>>,
    pub(crate) dialled: Mutex<Vec<SocketAddr>>,
    /// What hosts have got, with their names.
    pub(crate) origin: Mutex<Vec<(String, Vec<u8>)>>,
    /// The decider denies everything, as it does when something inside goes wrong.
    pub(crate) broken: AtomicBool,
}

impl Seen {
    pub(crate) fn rules(&self) -> Vec<String> {
        let decided = self.decided.lock().unwrap();
        decided.iter().filter_map(|one| Some(one.refused.as_ref()?.rule.to_string())).collect()
    }

    pub(crate) fn origin_text(&self) -> String {
        let origin = self.origin.lock().unwrap();
        origin.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    pub(crate) fn dials(&self) -> usize {
        self.dialled.lock().unwrap().len()
    }

    /// Waits for so many outcomes: they are told after the connection has ended.
    pub(crate) fn wait_outcomes(&self, count: usize) -> Vec<(Request, Outcome)> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let outcomes = self.outcomes.lock().unwrap().clone();
            if outcomes.len() >= count || Instant::now() > until {
                assert!(outcomes.len() >= count, "{} of {count} outcomes", outcomes.len());
                return outcomes;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

struct Judge(Arc<Seen>);

impl Decider for Judge {
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            self.0.decided.lock().unwrap().push(request.clone());
            let verdict = if self.0.broken.load(Ordering::Relaxed) {
                Verdict::Deny(Denial::new("internal", "the journal cannot be written"))
            } else {
                Verdict::Allow { upload: None }
            };
            Decision { verdict, record: Some("r".to_owned()) }
        })
    }

    fn outcome<'a>(
        &'a self,
        request: &'a Request,
        record: Option<&'a str>,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, ()> {
        assert_eq!(record, Some("r"));
        Box::pin(async move {
            self.0.outcomes.lock().unwrap().push((request.clone(), outcome.clone()));
        })
    }

    fn screen<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Denial>> {
        Box::pin(async move {
            request.url.contains("unknown").then(|| Denial::new("screened", "not on the list"))
        })
    }
}

struct Names(HashMap<String, Vec<IpAddr>>, Arc<Seen>);

impl Resolve for Names {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            self.1.lookups.lock().unwrap().push(name.to_owned());
            self.0.get(name).cloned().ok_or_else(|| io::Error::other("no such name"))
        })
    }
}

/// Leads every address of the made-up Internet to a host on loopback.
struct Wires {
    hosts: HashMap<SocketAddr, SocketAddr>,
    own: Vec<IpAddr>,
    seen: Arc<Seen>,
}

impl Dial for Wires {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<tokio::net::TcpStream>> {
        Box::pin(async move {
            self.seen.dialled.lock().unwrap().push(address);
            let there = self.hosts.get(&address).ok_or(io::ErrorKind::ConnectionRefused)?;
            tokio::net::TcpStream::connect(there).await
        })
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }
}

/// How a host of the made-up Internet answers.
pub(crate) type Serve = fn(&Arc<Seen>, &str, TcpStream);

/// What a test changes before the proxy starts.
pub(crate) type Change = Box<dyn FnOnce(&mut Config)>;

/// A made-up Internet.
pub(crate) struct Lab {
    names: HashMap<String, Vec<IpAddr>>,
    hosts: HashMap<SocketAddr, SocketAddr>,
    own: Vec<IpAddr>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) unlisted: Unlisted,
    pub(crate) limits: Limits,
    pub(crate) seen: Arc<Seen>,
    pub(crate) change: Option<Change>,
    pub(crate) threads: usize,
    /// Who decides instead of [`Judge`].
    pub(crate) decider: Option<Arc<dyn Decider>>,
}

impl Lab {
    /// `allowed.test` and `*.allowed.test` may be reached, `blocked.test` may not; both answer.
    pub(crate) fn new() -> Self {
        let mut lab = Self {
            names: HashMap::new(),
            hosts: HashMap::new(),
            own: Vec::new(),
            allow: vec!["allowed.test".to_owned()],
            deny: vec!["blocked.test".to_owned()],
            unlisted: Unlisted::Deny,
            limits: Limits::default(),
            seen: Arc::default(),
            change: None,
            threads: 1,
            decider: None,
        };
        for (name, address) in [("allowed.test", ALLOWED), ("blocked.test", BLOCKED)] {
            lab.name(name, &[address]);
            lab.host(name, address, 80, web);
            lab.host(name, address, 443, echo);
        }
        lab
    }

    pub(crate) fn name(&mut self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.names.insert(name.to_owned(), addresses);
    }

    pub(crate) fn own(&mut self, address: &str) {
        self.own.push(address.parse().unwrap());
    }

    /// A host that answers at an address.
    pub(crate) fn host(&mut self, name: &str, address: &str, port: u16, serve: Serve) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.wire(address, port, listener.local_addr().unwrap());
        let (seen, name) = (Arc::clone(&self.seen), name.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, name) = (Arc::clone(&seen), name.clone());
                std::thread::spawn(move || serve(&seen, &name, stream));
            }
        });
    }

    /// Leads an address to a host on loopback.
    pub(crate) fn wire(&mut self, address: &str, port: u16, there: SocketAddr) {
        self.hosts.insert(SocketAddr::new(address.parse().unwrap(), port), there);
    }

    pub(crate) fn config(&mut self) -> Config {
        let read = |all: &[String]| -> Vec<Rule> {
            all.iter().map(|text| text.parse().unwrap()).collect()
        };
        let rules =
            Rules { allow: read(&self.allow), deny: read(&self.deny), unlisted: self.unlisted };
        let mut config = Config::new(rules);
        config.limits = self.limits;
        config.resolver = Arc::new(Names(self.names.clone(), Arc::clone(&self.seen)));
        config.dialer = Arc::new(Wires {
            hosts: self.hosts.clone(),
            own: self.own.clone(),
            seen: Arc::clone(&self.seen),
        });
        if let Some(change) = self.change.take() {
            change(&mut config);
        }
        config
    }

    pub(crate) fn start(mut self) -> Proxy {
        let config = self.config();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let judge = || Arc::new(Judge(Arc::clone(&self.seen))) as Arc<dyn Decider>;
        let decider = self.decider.take().unwrap_or_else(judge);
        let running = start(Listener::Tcp(listener), config, decider, self.threads).unwrap();
        Proxy { address, running: Some(running), seen: self.seen }
    }
}

/// A proxy that runs.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    running: Option<Running>,
    pub(crate) seen: Arc<Seen>,
}

impl Proxy {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes, says that there are no more, and reads all that is answered.
    pub(crate) fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // It may be refused before all is sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        read_all(&mut stream)
    }

    pub(crate) fn get(&self, url: &str, host: &str) -> String {
        self.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    }

    /// Opens a tunnel; the status is what is answered.
    pub(crate) fn tunnel(&self, target: &str) -> (u16, TcpStream) {
        let mut stream = self.connect();
        let asked = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
            head.push(byte[0]);
        }
        (status(&String::from_utf8_lossy(&head)), stream)
    }

    /// What SOCKS5 answers to a request for a name.
    pub(crate) fn socks(&self, name: &[u8], port: u16) -> (u8, TcpStream) {
        let mut stream = self.connect();
        stream.write_all(&[5, 1, 0]).unwrap();
        let mut chosen = [0; 2];
        stream.read_exact(&mut chosen).unwrap();
        assert_eq!(chosen, [5, 0]);
        let mut asked = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        asked.extend_from_slice(name);
        asked.extend(port.to_be_bytes());
        stream.write_all(&asked).unwrap();
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).unwrap();
        (reply[1], stream)
    }

    pub(crate) fn stop(&mut self) {
        self.running.take().unwrap().stop().unwrap();
    }
}

pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// Answers every request with what it got, until the other side is done.
pub(crate) fn web(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let whole = loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
            let chunked = head.contains("transfer-encoding: chunked");
            let body = &bytes[end + 4..];
            if chunked && body.ends_with(b"0\r\n\r\n")
                || !chunked && body.len() >= length.unwrap_or(0)
            {
                break true;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break false,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    };
    // Before it answers: whoever has the answer may look.
    seen.origin.lock().unwrap().push((name.to_owned(), bytes));
    if whole {
        let body = format!("hello from {name}");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }
}

/// Gives back whatever comes.
pub(crate) fn echo(seen: &Arc<Seen>, name: &str, mut stream: TcpStream) {
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                seen.origin.lock().unwrap().push((name.to_owned(), piece[..count].to_vec()));
                if stream.write_all(&piece[..count]).is_err() {
                    break;
                }
            }
        }
    }
}

pub(crate) fn cut_by(ended: &Ended) -> &str {
    match ended {
        Ended::Cut(denial) => &denial.rule,
        Ended::Done => "done",
        Ended::Failed(_) => "failed",
    }
}
