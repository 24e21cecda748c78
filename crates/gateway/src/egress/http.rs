//! Requests that the proxy can read: each one judged, then passed on.

use std::time::Duration;

use tokio::time::timeout;

use super::admit::{Shared, Standing};
use super::again::may_be_repeated;
use super::body::Body;
use super::connection::{Front, LAST, open, tunnel_request};
use super::decider::{Denial, Request, Way};
use super::exchange::Exchange;
use super::head::{BadHead, Framing, Head, MAX_HEAD};
#[cfg(feature = "inspect")]
use super::host::Host;
use super::host::Target;
use super::passing::Passing;
use super::rooms::Room;
use super::rules::Found;
use super::screen::{self, Going};
use super::stream::Stream;

/// Where all requests of a connection go, because it is a tunnel.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    pub(super) target: Target,
    pub(super) scheme: &'static str,
    pub(super) way: Way,
}

/// Bytes of a body that are shown to the decider.
pub(super) const SHOWN: usize = 64 << 10;

/// How long a body may wait to be looked at.
const LOOKING: Duration = Duration::from_secs(60);

/// What becomes of a connection after a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Goes,
    Ends,
}

/// Serves requests until the connection ends.
pub(super) async fn serve(shared: &Shared, client: Stream, begun: Vec<u8>, fixed: Option<Fixed>) {
    let mut bytes = begun;
    let mut first = true;
    loop {
        let head = match read_head(shared, &client, &mut bytes, first).await {
            Ok(Some(head)) => head,
            Ok(None) => return,
            Err((status, denial)) => {
                let request = unread(fixed.as_ref());
                return refuse(shared, &client, request, status, denial).await;
            }
        };
        first = false;
        bytes.drain(..head.length);
        if fixed.is_none() && !has_credential(shared, &head) {
            let denial =
                Denial::new("egress-credential", "the credential of this run is missing or wrong");
            return refuse(shared, &client, unread(None), 407, denial).await;
        }
        if head.method == "CONNECT" && fixed.is_none() {
            return connect(shared, client, &head, bytes).await;
        }
        match forward(shared, &client, &head, &mut bytes, fixed.as_ref()).await {
            Next::Goes => {}
            Next::Ends => return,
        }
    }
}

fn has_credential(shared: &Shared, head: &Head) -> bool {
    shared.config.credential.as_ref().is_none_or(|credential| {
        head.only("proxy-authorization").is_some_and(|value| credential.matches_basic(value))
    })
}

/// A request of which nothing is known.
fn unread(fixed: Option<&Fixed>) -> Request {
    let way = fixed.map_or(Way::Http, |fixed| fixed.way);
    let request = tunnel_request(way, fixed.map(|fixed| &fixed.target));
    Request { method: String::new(), ..request }
}

async fn refuse(shared: &Shared, client: &Stream, request: Request, status: u16, denial: Denial) {
    let denial = shared.refuse(request, denial).await;
    client.finish_with(&refusal(status, &denial), LAST).await;
}

/// An answer that says why not.
pub(super) fn refusal(status: u16, denial: &Denial) -> Vec<u8> {
    let phrase = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        _ => "Refused",
    };
    let printable = |text: &str| -> String {
        text.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect()
    };
    let body = format!("wardkeep: {}\n", printable(&denial.to_string()));
    let challenge = match status {
        407 => "Proxy-Authenticate: Basic realm=\"wardkeep\"\r\n",
        415 => "Accept-Encoding: gzip, deflate, identity\r\n",
        _ => "",
    };
    let rule: String =
        denial.rule.chars().filter(|sign| sign.is_ascii_alphanumeric() || *sign == '-').collect();
    format!(
        "HTTP/1.1 {status} {phrase}\r\n{challenge}Content-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nX-Wardkeep-Rule: {rule}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn malformed(bad: BadHead) -> (u16, Denial) {
    let status = if bad == BadHead::TooLarge { 431 } else { 400 };
    (status, Denial::new("egress-malformed", bad.to_string()))
}

/// Reads a head; `None` is the end of the connection.
async fn read_head(
    shared: &Shared,
    client: &Stream,
    bytes: &mut Vec<u8>,
    first: bool,
) -> Result<Option<Head>, (u16, Denial)> {
    let limits = &shared.config.limits;
    if bytes.is_empty() {
        let patience = if first { limits.head } else { limits.keep_alive };
        match timeout(patience, client.read_onto(bytes, 16 << 10)).await {
            Ok(Ok(true)) => {}
            _ => return Ok(None),
        }
    }
    let whole = async {
        loop {
            if let Some(head) = Head::parse(bytes).map_err(malformed)? {
                return Ok(Some(head));
            }
            match client.read_onto(bytes, MAX_HEAD).await {
                Ok(true) => {}
                // Half a request is none.
                _ => return Ok(None),
            }
        }
    };
    timeout(limits.head, whole).await.unwrap_or_else(|_| {
        Err((408, Denial::new("egress-slow", "the head of the request did not come in time")))
    })
}

async fn connect(shared: &Shared, client: Stream, head: &Head, bytes: Vec<u8>) {
    let bad = |why: String| Denial::new("egress-malformed", why);
    let target = match Target::parse(head.target.as_bytes(), None) {
        Ok(target) => target,
        Err(why) => {
            let request = tunnel_request(Way::Connect, None);
            return refuse(shared, &client, request, 400, bad(why.to_string())).await;
        }
    };
    let request = || tunnel_request(Way::Connect, Some(&target));
    if head.framing != Framing::Absent && head.framing != Framing::Length(0) {
        let why = bad("a tunnel is asked for without a body".to_owned());
        return refuse(shared, &client, request(), 400, why).await;
    }
    if let Err(denial) = check_host(head, &target, 443) {
        return refuse(shared, &client, request(), 400, denial).await;
    }
    open(shared, client, bytes, target, Front::Connect).await;
}

/// `Host` has to say the same as the target.
fn check_host(head: &Head, target: &Target, usual: u16) -> Result<(), Denial> {
    let wrong = |why: &str| Err(Denial::new("egress-host", why));
    match head.only("host") {
        None if head.has("host") => wrong("there is more than one `Host`"),
        None if head.minor == 0 || head.method == "CONNECT" => Ok(()),
        None => wrong("there is no `Host`"),
        // Some programs leave the port away when they ask for a tunnel.
        Some(value) => match Target::parse(value, Some(usual)) {
            Ok(host) if host == *target => Ok(()),
            Ok(host)
                if head.method == "CONNECT"
                    && host.host == target.host
                    && !value.contains(&b':') =>
            {
                Ok(())
            }
            _ => wrong("`Host` names another host than the request goes to"),
        },
    }
}

/// Where a request goes: target, path, scheme.
fn read_target(head: &Head, fixed: Option<&Fixed>) -> Result<(Target, String), Denial> {
    let bad = |why: &str| Denial::new("egress-malformed", why.to_owned());
    let text = head.target.as_str();
    let (target, path) = match fixed {
        Some(fixed) if text.starts_with('/') => (fixed.target.clone(), text.to_owned()),
        Some(_) => return Err(bad("a request in a tunnel begins with its path")),
        None => {
            let rest = match text.get(..7) {
                Some(scheme) if scheme.eq_ignore_ascii_case("http://") => &text[7..],
                _ => return Err(bad("a request to a proxy begins with `http://`")),
            };
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let target = Target::parse(authority.as_bytes(), Some(80))
                .map_err(|why| bad(&why.to_string()))?;
            let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
            (target, path)
        }
    };
    let lower = path.to_ascii_lowercase();
    // Text in a query has lines; it is passed on as it came.
    let place = lower.split('?').next().unwrap_or_default();
    let lines = ["%0a", "%0d"].iter().any(|coded| place.contains(coded));
    if lines || path.contains('#') || lower.contains("%00") {
        return Err(bad("the address has a fragment, or line ends and zeros in disguise"));
    }
    if fixed.is_none() && target.port == 443 {
        let reason = "only TLS goes to port 443: ask for a tunnel (`CONNECT`), or by `https://`";
        return Err(Denial::new("egress-not-tls", reason));
    }
    let usual = if fixed.is_some_and(|fixed| fixed.scheme == "https") { 443 } else { 80 };
    check_host(head, &target, usual)?;
    Ok((target, path))
}

/// Passes one request on.
async fn forward(
    shared: &Shared,
    client: &Stream,
    head: &Head,
    bytes: &mut Vec<u8>,
    fixed: Option<&Fixed>,
) -> Next {
    let mut request = unread(fixed);
    request.method = screen::without_secrets(&head.method);
    let (target, path) = match read_target(head, fixed) {
        Ok(read) => read,
        Err(denial) => {
            refuse(shared, client, request, 400, denial).await;
            return Next::Ends;
        }
    };
    let scheme = fixed.map_or("http", |fixed| fixed.scheme);
    let url = format!("{scheme}://{}{path}", target.authority(scheme));
    // What is recorded holds no secret.
    request.url = screen::without_secrets(&url);
    request.target = Some(target.clone());
    request.size = match head.framing {
        // What a WebSocket will carry is not known.
        Framing::Absent if head.upgrades() => None,
        Framing::Absent => Some(0),
        Framing::Length(length) => Some(length),
        Framing::Chunked => None,
    };
    let heard = judge_head(shared, head, (&path, &url), &request, &target).await;
    let (standing, out) = match heard {
        Ok(heard) => heard,
        Err((status, denial)) => {
            refuse(shared, client, request, status, denial).await;
            return Next::Ends;
        }
    };
    let mut body = Body::of_request(head.framing);
    let mut room = shared.lookers.rooms().room();
    let mut shown = match read_shown(shared, client, head, bytes, (&mut body, &mut room)).await {
        Ok(shown) => shown,
        Err((status, denial)) => {
            refuse(shared, client, request, status, denial).await;
            return Next::Ends;
        }
    };
    let size = shown.len() as u64;
    let (first, passing) = match look_at_body(shared, head, &mut shown, &body).await {
        Ok(looked) => looked,
        Err((status, denial)) => {
            refuse(shared, client, request, status, denial).await;
            return Next::Ends;
        }
    };
    if body.is_done() && head.framing == Framing::Chunked {
        request.size = Some(size);
    }
    // Also where nothing of it can be shown, what is to come is a body.
    request.content = (!shown.is_empty() || !body.is_done()).then_some(shown);
    let admitted = shared.admit(request, &target, &standing).await;
    // What was shown is not kept any longer.
    drop(room);
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(denial) => {
            client.finish_with(&refusal(403, &denial), LAST).await;
            return Next::Ends;
        }
    };
    let mut exchange = Exchange {
        shared,
        client,
        head,
        chunked: head.framing == Framing::Chunked,
        meter: admitted.meter,
        motion: admitted.passage.motion(),
        again: may_be_repeated(head, scheme).then(|| target.clone()),
        #[cfg(feature = "inspect")]
        inspected: match &target.host {
            Host::Name(name) if scheme == "https" => Some(name.clone()),
            _ => None,
        },
    };
    exchange.run(admitted.passage, target.port, out, first, body, passing, bytes).await
}

/// What the head alone says, and the head that goes on.
async fn judge_head(
    shared: &Shared,
    head: &Head,
    (path, url): (&str, &str),
    request: &Request,
    target: &Target,
) -> Result<(Standing, Vec<u8>), (u16, Denial)> {
    let forbid = |denial| (403, denial);
    if head.method == "CONNECT" || head.method == "TRACE" {
        return Err(forbid(Denial::new("egress-method", "this method is not served here")));
    }
    let method = Some(request.method.as_str());
    let standing = shared.standing(request, target, method).await.map_err(forbid)?;
    for other in head.other_methods().flat_map(|value| value.split(|sign| b", \t;".contains(sign)))
    {
        let other = String::from_utf8_lossy(other).to_ascii_uppercase();
        let found = shared.config.rules.find(target, Some(&other));
        if !other.is_empty() && matches!(found, Found::Method | Found::Denied(_)) {
            let reason =
                "the host is asked to take it for another method, which is not allowed there";
            return Err(forbid(Denial::new("egress-method", reason)));
        }
    }
    if let Some(denial) = screen::name_lookup(head, path) {
        return Err(forbid(denial));
    }
    let encoded = screen::encoded_bytes(url);
    if encoded > 0 {
        let used = shared.used(&standing, target);
        used.encoded(encoded, shared.config.limits.encoded_urls).map_err(forbid)?;
    }
    if let Framing::Length(length) = head.framing
        && length > shared.config.limits.upload
    {
        let reason = format!("it sends more than {} bytes", shared.config.limits.upload);
        return Err((413, Denial::new("egress-upload", reason)));
    }
    let scheme = if url.starts_with("https:") { "https" } else { "http" };
    let mut out = format!(
        "{} {path} HTTP/1.{}\r\nHost: {}\r\n",
        head.method,
        head.minor,
        target.authority(scheme)
    )
    .into_bytes();
    for header in head.forwarded().map_err(malformed)? {
        // Messages that are compressed could not be looked into.
        if !shared.config.secrets && header.name.eq_ignore_ascii_case("sec-websocket-extensions") {
            continue;
        }
        write_header(&mut out, &header.name, &header.value);
    }
    if head.framing == Framing::Chunked {
        write_header(&mut out, "Transfer-Encoding", b"chunked");
    }
    if head.upgrades() {
        write_header(&mut out, "Connection", b"Upgrade");
        write_header(&mut out, "Upgrade", b"websocket");
    } else {
        let word: &[u8] = if may_be_repeated(head, scheme) { b"keep-alive" } else { b"close" };
        write_header(&mut out, "Connection", word);
    }
    out.extend_from_slice(b"\r\n");
    if !shared.config.secrets {
        let going = Going {
            host: &target.host,
            secure: scheme == "https",
            named: standing.is_named(),
            trusted: shared.config.credentials.iter().any(|rule| rule.covers(target)),
        };
        if let Some(denial) = screen::secret_in_head(&out, going) {
            return Err(forbid(denial));
        }
    }
    Ok((standing, out))
}

/// Looks at the beginning of the body: what of it may be sent, and who looks at the rest. What is compressed is
/// shown as what it was.
async fn look_at_body(
    shared: &Shared,
    head: &Head,
    shown: &mut Vec<u8>,
    body: &Body,
) -> Result<(Vec<u8>, Option<Passing>), (u16, Denial)> {
    if shared.config.secrets {
        return Ok((shown.clone(), None));
    }
    let forbid = |denial| (403, denial);
    let mut passing =
        Passing::of(head, shared.config.limits.upload).map_err(|denial| (415, denial))?;
    let looked = timeout(LOOKING, shared.lookers.take(&mut passing, shown.clone(), body.is_done()));
    let crowded = || {
        Denial::new("egress-crowded", "too many other bodies wait to be looked at; try again later")
    };
    let first = looked.await.map_err(|_| forbid(crowded()))?.map_err(forbid)?;
    if let Some(unpacked) = passing.unpacked() {
        *shown = unpacked;
    }
    Ok((first, Some(passing)))
}

pub(super) fn write_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Reads the beginning of the body, for the decider to see.
async fn read_shown(
    shared: &Shared,
    client: &Stream,
    head: &Head,
    bytes: &mut Vec<u8>,
    (body, room): (&mut Body, &mut Room),
) -> Result<Vec<u8>, (u16, Denial)> {
    let mut shown = Vec::new();
    if body.is_done() {
        return Ok(shown);
    }
    let slow = "neither the end of the body nor its first 64 KiB came in time: they are looked at before anything is sent";
    let malformed = |why: &str| (400, Denial::new("egress-malformed", why));
    let broken = || malformed("the body of the request ends too early");
    let bad = |why: super::body::BadBody| malformed(&why.to_string());
    let wait = head.minor == 1
        && head.only("expect").is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
    if wait && bytes.is_empty() {
        let said = client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        said.map_err(|_| broken())?;
    }
    let all = async {
        loop {
            let walked =
                body.walk(bytes, false, |piece| shown.extend_from_slice(piece)).map_err(bad)?;
            bytes.drain(..walked.used);
            if bytes.is_empty() {
                // Memory only as long as it is needed.
                *bytes = Vec::new();
            }
            room.take(shown.capacity()).map_err(|denial| (403, denial))?;
            if walked.done || shown.len() >= SHOWN {
                return Ok(());
            }
            match client.read_onto(bytes, SHOWN).await {
                Ok(true) => {}
                _ => return Err(broken()),
            }
        }
    };
    // What comes behind a pause would be hidden from whoever decides.
    let in_time = timeout(shared.config.limits.head, all).await;
    in_time.map_err(|_| (408, Denial::new("egress-slow", slow)))??;
    shown.shrink_to_fit();
    Ok(shown)
}
