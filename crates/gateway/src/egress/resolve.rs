//! Names looked up, once for a request, and addresses dialled.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::decider::BoxFuture;

/// Looks names up.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a name.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Makes connections.
pub trait Dial: Send + Sync + 'static {
    /// Connects to an address that was checked.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;

    /// Whether an address is one of this machine.
    fn is_own(&self, address: IpAddr) -> bool;
}

/// Looks names up as the system does, a bounded number at a time, and remembers them for a moment.
#[derive(Debug)]
pub struct SystemResolver {
    slots: Arc<Semaphore>,
    known: Mutex<HashMap<String, (Instant, Vec<IpAddr>)>>,
}

/// Lookups at a time: each takes a thread.
const LOOKUPS: usize = 32;
/// How long an answer counts.
const FRESH: Duration = Duration::from_secs(30);
/// Names that are remembered.
const KNOWN: usize = 4096;
/// Addresses of one name that are looked at.
const ADDRESSES: usize = 32;

impl Default for SystemResolver {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(LOOKUPS)), known: Mutex::default() }
    }
}

impl Resolve for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            if let Some((at, addresses)) = self.known().get(name)
                && at.elapsed() < FRESH
            {
                return Ok(addresses.clone());
            }
            let slot = Arc::clone(&self.slots).acquire_owned().await;
            let slot = slot.map_err(io::Error::other)?;
            let asked = name.to_owned();
            let looked_up = tokio::task::spawn_blocking(move || {
                // Held until the system is done, however long nobody waits any more.
                let _slot = slot;
                let mut all: Vec<IpAddr> = Vec::new();
                for address in (asked.as_str(), 0).to_socket_addrs()? {
                    if !all.contains(&address.ip()) && all.len() < ADDRESSES {
                        all.push(address.ip());
                    }
                }
                io::Result::Ok(all)
            });
            let addresses = looked_up.await.map_err(io::Error::other)??;
            let mut known = self.known();
            if known.len() >= KNOWN {
                known.retain(|_, (at, _)| at.elapsed() < FRESH);
            }
            if known.len() < KNOWN {
                known.insert(name.to_owned(), (Instant::now(), addresses.clone()));
            }
            Ok(addresses)
        })
    }
}

impl SystemResolver {
    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Vec<IpAddr>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects by TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDialer;

impl Dial for SystemDialer {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }

    /// The system says from which address it would send there, without sending anything: to its own
    /// addresses it sends from the same.
    fn is_own(&self, address: IpAddr) -> bool {
        let any: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let from = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect((address, 9))?;
            socket.local_addr()
        });
        from.is_ok_and(|from| from.ip() == address || from.ip().is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        assert!(SystemDialer.is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(SystemDialer.is_own([127, 0, 0, 9].into()));
        assert!(!SystemDialer.is_own([93, 184, 215, 14].into()));
    }
}
