//! One connection, from its first byte on.

use std::sync::Arc;

use tokio::time::timeout;

use super::admit::{Shared, Standing};
use super::decider::{Denial, Ended, Request, Way};
use super::hello::{BadHello, Hello, Records, Repeated};
use super::host::{Host, Target};
use super::http;
use super::socks::{self, BadSocks};
use super::stream::Stream;
use super::tunnel::{Cut, carry_both};

/// Serves one connection.
pub(super) async fn serve(shared: Arc<Shared>, client: Stream) {
    let mut begun = Vec::new();
    let first = client.read_onto(&mut begun, 16 << 10);
    match timeout(shared.config.limits.head, first).await {
        Ok(Ok(true)) => {}
        _ => return,
    }
    if begun.first() == Some(&5) {
        serve_socks(&shared, client, begun).await;
    } else {
        http::serve(&shared, client, begun, None).await;
    }
}

/// A request for a tunnel.
pub(super) fn tunnel_request(way: Way, target: Option<&Target>) -> Request {
    let url = target.map(|target| {
        let scheme = if target.port == 80 { "http" } else { "https" };
        format!("{scheme}://{}/", target.authority(scheme))
    });
    Request {
        way,
        method: "CONNECT".to_owned(),
        url: url.unwrap_or_default(),
        target: target.cloned(),
        addresses: Vec::new(),
        size: None,
        content: None,
        refused: None,
    }
}

async fn serve_socks(shared: &Shared, client: Stream, mut begun: Vec<u8>) {
    let asked = timeout(shared.config.limits.head, read_socks(shared, &client, &mut begun)).await;
    match asked {
        Ok(Ok(Some(target))) => {
            open(shared, client, begun, target, Front::Socks).await;
        }
        Ok(Ok(None)) | Err(_) => {}
        Ok(Err((reply, denial))) => {
            let _ = shared.refuse(tunnel_request(Way::Socks, None), denial).await;
            client.finish_with(&reply, shared.config.limits.head.min(LAST)).await;
        }
    }
}

/// How long a last answer may take.
pub(super) const LAST: std::time::Duration = std::time::Duration::from_secs(2);

type Refused = (Vec<u8>, Denial);

/// Reads until a target is known; `None` is the end of the connection.
async fn read_socks(
    shared: &Shared,
    client: &Stream,
    bytes: &mut Vec<u8>,
) -> Result<Option<Target>, Refused> {
    let malformed = |bad: BadSocks| {
        let reply = match bad {
            BadSocks::Command => socks::Reply::Command,
            BadSocks::AddressKind => socks::Reply::AddressKind,
            BadSocks::Host(_) => socks::Reply::Refused,
            BadSocks::Malformed => socks::Reply::Failed,
        };
        (reply.bytes().to_vec(), Denial::new("egress-malformed", bad.to_string()))
    };
    let wanted = Denial::new("egress-credential", "the credential of this run is missing or wrong");
    let Some(greeting) = read(client, bytes, socks::greeting).await.map_err(malformed)? else {
        return Ok(None);
    };
    let chosen = match &shared.config.credential {
        None if greeting.none => 0,
        Some(_) if greeting.password => 2,
        _ => return Err((vec![5, 0xff], wanted)),
    };
    if client.write_all(&[5, chosen]).await.is_err() {
        return Ok(None);
    }
    if let Some(credential) = &shared.config.credential {
        let Some(login) = read(client, bytes, socks::login).await.map_err(malformed)? else {
            return Ok(None);
        };
        if !credential.matches(&login.name, &login.password) {
            return Err((vec![1, 1], wanted));
        }
        if client.write_all(&[1, 0]).await.is_err() {
            return Ok(None);
        }
    }
    read(client, bytes, socks::request).await.map_err(malformed)
}

async fn read<T>(
    client: &Stream,
    bytes: &mut Vec<u8>,
    parse: impl Fn(&[u8]) -> socks::Read<T>,
) -> Result<Option<T>, BadSocks> {
    loop {
        if let Some((value, used)) = parse(bytes)? {
            bytes.drain(..used);
            return Ok(Some(value));
        }
        match client.read_onto(bytes, 1024).await {
            Ok(true) => {}
            _ => return Ok(None),
        }
    }
}

/// How a tunnel was asked for, and is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    Connect,
    Socks,
}

impl Front {
    fn way(self) -> Way {
        match self {
            Self::Connect => Way::Connect,
            Self::Socks => Way::Socks,
        }
    }

    async fn accept(self, client: &Stream) -> bool {
        let written = match self {
            Self::Connect => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await,
            Self::Socks => client.write_all(&socks::Reply::Done.bytes()).await,
        };
        written.is_ok()
    }

    async fn refuse(self, client: &Stream, denial: &Denial) {
        match self {
            Self::Connect => client.finish_with(&http::refusal(403, denial), LAST).await,
            Self::Socks => client.finish_with(&socks::Reply::Refused.bytes(), LAST).await,
        }
    }

    async fn fail(self, client: &Stream, why: &str) {
        match self {
            Self::Connect => {
                let denial = Denial::new("egress-unreachable", why);
                client.finish_with(&http::refusal(502, &denial), LAST).await;
            }
            Self::Socks => client.finish_with(&socks::Reply::Unreachable.bytes(), LAST).await,
        }
    }
}

/// Opens a tunnel, and carries what goes through it.
pub(super) async fn open(
    shared: &Shared,
    client: Stream,
    begun: Vec<u8>,
    target: Target,
    front: Front,
) {
    let request = tunnel_request(front.way(), Some(&target));
    // What is sent to port 80 can be read, and is judged request by request; what is looked into, too.
    let inspected = is_inspected(shared, &target);
    let readable = target.port == 80 || inspected;
    let method = (!readable).then_some("CONNECT");
    let standing = match shared.standing(&request, &target, method).await {
        Ok(standing) => standing,
        Err(denial) => {
            let denial = shared.refuse(request, denial).await;
            return front.refuse(&client, &denial).await;
        }
    };
    if inspected {
        #[cfg(feature = "inspect")]
        inspect(shared, client, begun, target, front).await;
        return;
    }
    if readable {
        if front.accept(&client).await {
            let fixed = http::Fixed { target, scheme: "http", way: front.way() };
            Box::pin(http::serve(shared, client, begun, Some(fixed))).await;
        }
        return;
    }
    carry_tunnel(shared, client, begun, (request, target, standing), front).await;
}

#[cfg(feature = "inspect")]
fn is_inspected(shared: &Shared, target: &Target) -> bool {
    shared.config.inspection.as_ref().is_some_and(|inspection| inspection.covers(target))
}

#[cfg(not(feature = "inspect"))]
fn is_inspected(_: &Shared, _: &Target) -> bool {
    false
}

/// Ends TLS here, and serves the requests inside of it.
#[cfg(feature = "inspect")]
async fn inspect(shared: &Shared, client: Stream, begun: Vec<u8>, target: Target, front: Front) {
    let (Some(inspection), Host::Name(name)) = (&shared.config.inspection, &target.host) else {
        return;
    };
    if !front.accept(&client).await {
        return;
    }
    let mut gate = Gate { waits: true, ..Gate::new(&target, shared.config.hidden_names) };
    let mut first = begun;
    let judged = timeout(shared.config.limits.head, gate.open(&client, &mut first)).await;
    if let Ok(Err(Cut::Denied(denial))) = judged {
        let _ = shared.refuse(tunnel_request(front.way(), Some(&target)), denial).await;
        return;
    }
    if !matches!(judged, Ok(Ok(()))) {
        return;
    }
    let accepted = inspection.accept(client, first, name);
    if let Ok(Ok(inside)) = timeout(shared.config.limits.head, accepted).await {
        let fixed = http::Fixed { target, scheme: "https", way: Way::Inspected };
        Box::pin(http::serve(shared, inside, Vec::new(), Some(fixed))).await;
    }
}

async fn carry_tunnel(
    shared: &Shared,
    client: Stream,
    begun: Vec<u8>,
    (request, target, standing): (Request, Target, Standing),
    front: Front,
) {
    let admitted = match shared.admit(request, &target, &standing).await {
        Ok(admitted) => admitted,
        Err(denial) => return front.refuse(&client, &denial).await,
    };
    let (mut passage, mut meter) = (admitted.passage, admitted.meter);
    let host = match shared.dial(&mut passage, target.port).await {
        Ok(host) => host,
        Err(why) => {
            front.fail(&client, &why).await;
            return passage.end(Ended::Failed(why));
        }
    };
    if !front.accept(&client).await {
        return passage.end(Ended::Failed("the one who asked is gone".to_owned()));
    }
    let motion = passage.motion();
    let limits = &shared.config.limits;
    let mut gate = Gate::new(&target, shared.config.hidden_names);
    let first = async {
        let mut first = begun;
        if gate.waits || !first.is_empty() {
            gate.open(&client, &mut first).await?;
        }
        meter.charge(first.len())?;
        host.write_counted(&first, |count| motion.sent(count)).await?;
        Ok::<_, Cut>(())
    };
    let ended = match timeout(limits.head, first).await {
        Err(_) => Ended::Cut(Denial::new("egress-slow", "the first message did not come in time")),
        Ok(Err(cut)) => cut.into(),
        Ok(Ok(())) => {
            let look = |piece: &[u8]| gate.look(piece);
            carry_both(&client, &host, &mut meter, &motion, limits, look).await
        }
    };
    passage.end(ended);
}

/// Looks at what begins in a tunnel: on port 443 nothing but TLS for the host that was asked for.
struct Gate<'a> {
    host: &'a Host,
    /// Whether nothing is sent before the first message was seen.
    waits: bool,
    hidden_names: bool,
    state: State,
}

enum State {
    /// What has come so far is not enough to tell.
    Begins(Vec<u8>),
    Tls(Records, Repeated),
    Other,
}

impl<'a> Gate<'a> {
    fn new(target: &'a Target, hidden_names: bool) -> Self {
        let state = State::Begins(Vec::new());
        Self { host: &target.host, waits: target.port == 443, hidden_names, state }
    }

    /// Reads the first message whole.
    async fn open(&mut self, client: &Stream, first: &mut Vec<u8>) -> Result<(), Cut> {
        loop {
            match self.judge(first)? {
                true => return Ok(()),
                false if client.read_onto(first, 16 << 10).await? => {}
                false if first.is_empty() => {
                    return Err(Cut::Broken("nothing was sent".to_owned()));
                }
                false => return Err(self.not_tls(BadHello::Malformed).into()),
            }
        }
    }

    /// Whether it can be told what begins; then it is right.
    fn judge(&mut self, first: &[u8]) -> Result<bool, Denial> {
        match Hello::parse(first) {
            Ok(None) => Ok(false),
            Ok(Some(hello)) => {
                self.check(&hello)?;
                let mut records = Records::default();
                records.walk(first).map_err(|bad| self.not_tls(bad))?;
                self.state = State::Tls(records, Repeated::default());
                Ok(true)
            }
            Err(BadHello::NotTls) if !self.waits => {
                self.state = State::Other;
                Ok(true)
            }
            Err(bad) => Err(self.not_tls(bad)),
        }
    }

    fn not_tls(&self, bad: BadHello) -> Denial {
        Denial::new("egress-not-tls", format!("only TLS goes to {} here: {bad}", self.host))
    }

    fn check(&self, hello: &Hello) -> Result<(), Denial> {
        if hello.hidden && !self.hidden_names {
            let reason = "the first message of TLS may hide another name (encrypted client hello)";
            return Err(Denial::new("egress-hidden-name", reason));
        }
        let matches = match (self.host, &hello.name) {
            (Host::Name(host), Some(name)) => host == name,
            (Host::Address(_), None) => true,
            _ => false,
        };
        if matches {
            return Ok(());
        }
        let named = hello.name.as_deref().unwrap_or("no name");
        let reason = format!("the tunnel is to {}, but TLS asks for {named}", self.host);
        Err(Denial::new("egress-sni", reason))
    }

    /// Looks at what is sent behind. Until it can be told what begins, it is only held against the
    /// rest: on other ports than 443 the host may speak first.
    fn look(&mut self, piece: &[u8]) -> Result<(), Denial> {
        match &mut self.state {
            State::Other => Ok(()),
            State::Tls(records, repeated) => {
                let mut said = None;
                let walked = records.follow(piece, |kind, content| {
                    // Two in one piece are one too many.
                    let Some(hello) = repeated.take(kind, content)? else { return Ok(()) };
                    said.replace(hello).map_or(Ok(()), |_| Err(BadHello::Malformed))
                });
                walked.map_err(|bad| self.not_tls(bad))?;
                said.map_or(Ok(()), |hello| self.check(&hello))
            }
            State::Begins(first) => {
                let mut first = std::mem::take(first);
                first.extend_from_slice(piece);
                if !self.judge(&first)? {
                    self.state = State::Begins(first);
                }
                Ok(())
            }
        }
    }
}
