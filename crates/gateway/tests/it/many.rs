//! Ten thousand tunnels at a time.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wardkeep_gateway::egress::hello::example;
use wardkeep_gateway::egress::{BoxFuture, Resolve, start};
use wardkeep_gateway::egress::{Config, Dial, Limits, Listener, Rules, SystemDialer};

const TUNNELS: usize = 10_000;

/// Every name leads to one address, and that to one host on loopback.
struct One(std::net::SocketAddr);

impl Resolve for One {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(async { Ok(vec![[93, 184, 215, 14].into()]) })
    }
}

impl Dial for One {
    fn dial(
        &self,
        _: std::net::SocketAddr,
    ) -> BoxFuture<'_, std::io::Result<tokio::net::TcpStream>> {
        SystemDialer.dial(self.0)
    }

    fn is_own(&self, _: std::net::IpAddr) -> bool {
        false
    }
}

/// A host that gives everything back, on one thread.
fn echo_host() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                tokio::spawn(async move {
                    let mut piece = [0; 512];
                    loop {
                        if stream.readable().await.is_err() {
                            return;
                        }
                        match stream.try_read(&mut piece) {
                            Ok(0) => return,
                            Ok(count) => {
                                let _ = stream.try_write(&piece[..count]);
                            }
                            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                            Err(_) => return,
                        }
                    }
                });
            }
        });
    });
    address
}

#[test]
fn ten_thousand_tunnels_lose_nothing() {
    // Four ends of each tunnel are in this process.
    let needed = u64::try_from(TUNNELS * 4 + 2000).unwrap();
    let had = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: Some(needed),
        maximum: Some(had.maximum.map_or(needed, |most| most.max(needed))),
    };
    if had.current.is_some_and(|now| now < needed) && setrlimit(Resource::Nofile, raised).is_err() {
        println!("skipped: needs {needed} open files, and may have {:?}", had.maximum);
        return;
    }
    let rules = Rules { allow: vec!["allowed.test".parse().unwrap()], ..Rules::default() };
    let mut config = Config::new(rules);
    config.limits = Limits { head: Duration::from_secs(120), ..Limits::default() };
    let host = echo_host();
    config.resolver = Arc::new(One(host));
    config.dialer = Arc::new(One(host));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let decider = Arc::new(super::limits::Yes);
    let running = start(Listener::Tcp(listener), config, decider, 2).unwrap();

    let hello = example(Some("allowed.test"), false);
    let mut tunnels = Vec::with_capacity(TUNNELS);
    for _ in 0..TUNNELS {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(b"CONNECT allowed.test:443 HTTP/1.1\r\n\r\n").unwrap();
        tunnels.push(stream);
    }
    let accepted = b"HTTP/1.1 200 Connection established\r\n\r\n";
    let mut answer = vec![0; accepted.len()];
    for stream in &mut tunnels {
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, accepted);
        stream.write_all(&hello).unwrap();
    }
    // All are open at the same time; each carries its own bytes.
    let mut back = vec![0; hello.len()];
    for stream in &mut tunnels {
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, hello);
    }
    for (at, stream) in tunnels.iter_mut().enumerate() {
        let mut record = vec![23, 3, 3, 0, 4];
        record.extend(u32::try_from(at).unwrap().to_be_bytes());
        stream.write_all(&record).unwrap();
    }
    for (at, stream) in tunnels.iter_mut().enumerate() {
        let mut record = [0; 9];
        stream.read_exact(&mut record).unwrap();
        assert_eq!(record[5..], u32::try_from(at).unwrap().to_be_bytes());
    }
    drop(tunnels);
    running.stop().unwrap();
}
