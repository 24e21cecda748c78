//! One request from the client to the model, and who may ask.

mod chained;
mod stored;

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request as HttpRequest, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wardkeep_detect::leak::{OutputGuard, PromptProfile};
use wardkeep_policy::block::HARDCODED_SECURITY_SUFFIX;
use wardkeep_policy::wrap::Wrapper;

use self::chained::elevated;
use self::stored::{is_understood, not_read};
use super::ask::{Asked, Print, What};
use super::config::{Config, Limits, Upstream};
use super::exchange::{self, Passing, Sent};
use super::frames;
use super::inflate::Inflate;
use super::judge::{Admission, Exchange, Fresh, Judge, Request, Seen, Source};
use super::meter::Open;
use super::reply::{ToolCall, error_body, refusal};
use super::room::{Held, Room, Unread};
use super::session::{Found, Sessions};
use super::upstream::{Body, BoxError, Models, TOKEN, end_to_end, models};
use super::wire::{Call, Wire, leads_up};

/// Guards for system prompts that are kept.
const GUARDS: usize = 64;
/// A longer prompt is read on another thread.
const LONG_PROMPT: usize = 8 << 10;
/// So much of what the user asked is no secret to the user.
const QUESTION: usize = 64 << 10;
/// Most exchanges that may be open at once.
const MOST: usize = 1 << 20;
/// How long the last records may take.
const LAST_RECORDS: Duration = Duration::from_secs(10);

/// What all requests share.
pub(super) struct Door {
    pub(super) config: Config,
    pub(super) judge: Arc<dyn Judge>,
    models: Models,
    wrapper: Wrapper,
    sessions: Mutex<Sessions>,
    guards: Mutex<Guards>,
    /// The block of the last request, for questions how long one would be.
    block: Mutex<Option<String>>,
    count: AtomicU64,
    open: Arc<Semaphore>,
    pub(super) room: Room,
}

/// Guards by the prints of prompts, the newest last.
type Guards = Vec<(Print, Arc<OutputGuard>)>;

/// Why a request is not answered by a model.
pub(super) struct Refused {
    status: StatusCode,
    wire: Option<Wire>,
    why: String,
    /// Whether it was told and recorded as an exchange that failed.
    told: bool,
}

impl Refused {
    pub(super) fn new(status: StatusCode, wire: Option<Wire>, why: impl Into<String>) -> Self {
        Self { status, wire, why: why.into(), told: false }
    }

    /// Of an exchange that was told and recorded as one that failed.
    pub(super) fn told(self) -> Self {
        Self { told: true, ..self }
    }
}

/// The place of an exchange among those that may be open at once.
pub(super) struct Busy {
    _permit: OwnedSemaphorePermit,
    _open: Open,
}

/// Where a request goes.
struct Way<'a> {
    upstream: &'a Upstream,
    /// Path and query.
    rest: String,
}

impl Door {
    pub(super) fn new(config: Config, judge: Arc<dyn Judge>) -> io::Result<Self> {
        Ok(Self {
            models: models(&config)?,
            wrapper: Wrapper::new(config.key.clone()),
            sessions: Mutex::new(Sessions::new(config.seed)),
            guards: Mutex::new(Vec::new()),
            block: Mutex::new(config.block.clone()),
            count: AtomicU64::new(0),
            open: Arc::new(Semaphore::new(config.limits.exchanges.clamp(1, MOST))),
            room: Room::new(config.limits.bodies),
            config,
            judge,
        })
    }

    pub(super) fn limits(&self) -> Limits {
        self.config.limits
    }

    /// Waits until the last exchanges are recorded.
    pub(super) async fn settled(&self) {
        let all = self.config.limits.exchanges.clamp(1, MOST);
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(LAST_RECORDS, self.open.acquire_many(all)).await;
    }

    pub(super) async fn answer(self: &Arc<Self>, request: HttpRequest<Incoming>) -> Response<Body> {
        let answered = self.answered(request).await;
        answered.unwrap_or_else(|Refused { status, wire, why, told }| {
            if !told {
                self.tell(&Seen::Refused { status: status.as_u16(), why: &why });
            }
            let body = error_body(wire, status.as_u16(), &format!("wardkeep: {why}"));
            document(status, "application/json", body)
        })
    }

    async fn answered(
        self: &Arc<Self>,
        request: HttpRequest<Incoming>,
    ) -> Result<Response<Body>, Refused> {
        let (parts, body) = request.into_parts();
        let path = self.admitted(&parts)?;
        let (upstream, left) = self.config.route(path, &parts.headers).ok_or_else(|| {
            Refused::new(StatusCode::NOT_FOUND, None, "no upstream is known for this path")
        })?;
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let way = Way { upstream, rest: format!("{left}{query}") };
        if leads_up(left) {
            let why =
                "a path that leads up means one thing here and another there: write it plainly";
            return Err(Refused::new(StatusCode::BAD_REQUEST, None, why));
        }
        let call = match parts.method {
            Method::POST => Call::of(left),
            Method::GET => Call::of_get(left),
            _ => Call::Other,
        };
        if parts.headers.contains_key(header::UPGRADE) || parts.method == Method::CONNECT {
            let why =
                "upgraded connections cannot be looked into: use HTTP with server-sent events";
            return Err(Refused::new(StatusCode::NOT_IMPLEMENTED, None, why));
        }
        match call {
            Call::Turn(wire) => {
                let busy = self.busy().await?;
                self.turn(wire, way, parts, body, busy).await
            }
            Call::Count(wire) => {
                let busy = self.busy().await?;
                self.count(wire, way, parts, body, busy).await
            }
            Call::Stored(wire) if self.config.features != super::config::Features::NONE => {
                let busy = self.busy().await?;
                let id = Call::stored_id(left);
                self.stored(wire, &id, way, parts, body, busy).await
            }
            _ if self.config.strict && !is_understood(&parts.method, left) => {
                let why =
                    "this request is not understood, and --strict lets only such through that are";
                Err(Refused::new(StatusCode::FORBIDDEN, None, why))
            }
            _ => {
                let busy = self.busy().await?;
                self.config.meter.unread();
                let body = body.map_err(BoxError::from).boxed_unsync();
                let reply = self.send(&way, &parts, parts.headers.clone(), body, None).await?;
                Ok(exchange::unread(reply, busy))
            }
        }
    }

    /// Waits for a place among those that are open.
    async fn busy(&self) -> Result<Busy, Refused> {
        let permit = Arc::clone(&self.open).acquire_owned().await;
        let permit = permit.map_err(|error| {
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, None, error.to_string())
        })?;
        Ok(Busy { _permit: permit, _open: Arc::clone(&self.config.meter).opened() })
    }

    /// Whether a client may ask at all: its path without the token.
    fn admitted<'p>(&self, parts: &'p Parts) -> Result<&'p str, Refused> {
        let forbidden = |why: &str| Refused::new(StatusCode::FORBIDDEN, None, why);
        if parts.headers.get_all(header::HOST).iter().count() > 1 {
            let why = "the Host stands twice: it is not clear which one counts";
            return Err(Refused::new(StatusCode::BAD_REQUEST, None, why));
        }
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = parts.uri.authority().map(|authority| authority.as_str()).or(host);
        if !host.is_some_and(|host| self.is_own(host)) {
            return Err(forbidden("the Host is not this machine's: use 127.0.0.1 or localhost"));
        }
        if let Some(origin) = parts.headers.get(header::ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            if !origin.is_some_and(|(_, host)| self.is_own(host)) {
                return Err(forbidden("pages of other sites may not ask"));
            }
        }
        if bears_page_cookie(&parts.headers) {
            return Err(forbidden("the cookie of Wardkeep's page is not for a model"));
        }
        let path = parts.uri.path();
        let Some(token) = &self.config.token else { return Ok(path) };
        let is_token = |said: &[u8]| bool::from(said.ct_eq(token.as_bytes()));
        if parts.headers.get(TOKEN).is_some_and(|said| is_token(said.as_bytes())) {
            return Ok(path);
        }
        let rest = path.strip_prefix("/k/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        match rest {
            Some((said, left)) if is_token(said.as_bytes()) => {
                Ok(&path[path.len() - left.len() - usize::from(path.len() > 3 + said.len())..])
            }
            _ => {
                let why = "the token of this proxy is missing: put /k/TOKEN before the path";
                Err(Refused::new(StatusCode::UNAUTHORIZED, None, why))
            }
        }
    }

    /// Whether a host, with or without a port, is a name of this machine.
    fn is_own(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.to_ascii_lowercase();
        ["localhost", "127.0.0.1", "[::1]"].contains(&name.as_str())
            || self.config.hosts.iter().any(|host| host.eq_ignore_ascii_case(&name))
    }

    /// Sends a request on; `body` says what encoding of the reply can be read.
    async fn send(
        &self,
        way: &Way<'_>,
        parts: &Parts,
        mut headers: HeaderMap,
        body: Body,
        wire: Option<Wire>,
    ) -> Result<Response<Incoming>, Refused> {
        let failed = |why: String| Refused::new(StatusCode::BAD_GATEWAY, wire, why);
        let uri = way
            .upstream
            .uri(&way.rest)
            .ok_or_else(|| failed("the path cannot be passed on".to_owned()))?;
        end_to_end(&mut headers);
        headers.remove(header::EXPECT);
        headers.insert(
            header::HOST,
            HeaderValue::from_str(way.upstream.host())
                .map_err(|error| failed(error.to_string()))?,
        );
        let mut request = HttpRequest::new(body);
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let sent = tokio::time::timeout(self.config.limits.silence, self.models.request(request));
        match sent.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(failed(format!(
                "{} cannot be reached: {}",
                way.upstream.shown(),
                root_cause(&error)
            ))),
            Err(_) => Err(Refused::new(
                StatusCode::GATEWAY_TIMEOUT,
                wire,
                format!("{} did not answer in time", way.upstream.shown()),
            )),
        }
    }

    /// Reads a request's body, whole and decoded.
    async fn body(
        &self,
        wire: Wire,
        headers: &mut HeaderMap,
        body: Incoming,
    ) -> Result<(Bytes, Held), Refused> {
        let refuse = |status, why: &str| Refused::new(status, Some(wire), why);
        let limits = self.config.limits;
        let mut inflate = Inflate::of(headers).ok_or_else(|| {
            refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "only gzip and deflate are read: send the body as it is",
            )
        })?;
        let mut held = self.room.none();
        let unread = |unread: Unread| match unread {
            Unread::TooLong => {
                let why = format!("the body is longer than {} bytes", limits.request);
                refuse(StatusCode::PAYLOAD_TOO_LARGE, &why)
            }
            Unread::NoRoom => {
                let why = "too many long requests are read at this moment: try again soon";
                refuse(StatusCode::SERVICE_UNAVAILABLE, why)
            }
            Unread::Broken(_) => refuse(StatusCode::BAD_REQUEST, "the body ended too early"),
        };
        let read = held.gather(body, limits.request);
        let bytes = match tokio::time::timeout(limits.body, read).await {
            Ok(read) => read.map_err(unread)?,
            Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        };
        if inflate.is_plain() {
            return Ok((bytes.into(), held));
        }
        // What it becomes is not known before.
        held.reach(bytes.len() + limits.request).map_err(unread)?;
        headers.remove(header::CONTENT_ENCODING);
        let bad = |error: io::Error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long once it is decoded")
            }
            _ => refuse(StatusCode::BAD_REQUEST, "the body cannot be decoded"),
        };
        let mut out = inflate.feed(&bytes, limits.request).map_err(bad)?;
        out.extend(inflate.finish().map_err(bad)?);
        Ok((out.into(), held))
    }

    /// A question how long a turn would be: it is answered with the block counted in.
    async fn count(
        self: &Arc<Self>,
        wire: Wire,
        way: Way<'_>,
        parts: Parts,
        body: Incoming,
        busy: Busy,
    ) -> Result<Response<Body>, Refused> {
        let mut headers = parts.headers.clone();
        let (bytes, _held) = self.body(wire, &mut headers, body).await?;
        let bytes = match Asked::read(wire, &bytes) {
            Ok(mut asked) if asked.messages() > 0 && self.config.features.block => {
                if self.is_own_block(&asked) {
                    asked.unchain(None);
                }
                let known = held(&self.block).clone();
                let block = known.unwrap_or_else(|| HARDCODED_SECURITY_SUFFIX.to_owned());
                let block = elevated(&block);
                let body = asked.rewritten(None, &HashMap::new(), Some(&block)).body;
                body.map_or_else(|| bytes.clone(), Bytes::from)
            }
            _ => bytes,
        };
        headers.remove(header::CONTENT_LENGTH);
        let reply = self.send(&way, &parts, headers, full(bytes), Some(wire)).await?;
        Ok(exchange::unread(reply, busy))
    }

    async fn turn(
        self: &Arc<Self>,
        wire: Wire,
        way: Way<'_>,
        parts: Parts,
        body: Incoming,
        busy: Busy,
    ) -> Result<Response<Body>, Refused> {
        let features = self.config.features;
        if features == super::config::Features::NONE {
            let body = body.map_err(BoxError::from).boxed_unsync();
            let reply = self.send(&way, &parts, parts.headers.clone(), body, Some(wire)).await?;
            return Ok(exchange::unread(reply, busy));
        }
        let began = Instant::now();
        let mut headers = parts.headers.clone();
        let (bytes, room) = self.body(wire, &mut headers, body).await?;
        let unreadable = |error| {
            Refused::new(
                StatusCode::BAD_REQUEST,
                Some(wire),
                format!("the request cannot be read: {error}"),
            )
        };
        let mut asked = Asked::read(wire, &bytes).map_err(unreadable)?;
        if self.is_own_block(&asked) {
            asked.unchain(features.mark.then_some(&self.wrapper));
        }
        let found = held(&self.sessions).find(&asked);
        let request = request_of(wire, way.upstream, &asked, &found, &bytes);
        // What it becomes is made ready while the judge is asked: most often nothing is replaced, and
        // the block is the last one.
        let guess = held(&self.block).clone().filter(|_| features.block);
        let wrapper = features.mark.then_some(&self.wrapper);
        let ahead = async {
            let rewritten = asked.rewritten(wrapper, &found.instead, guess.as_deref());
            (rewritten, question(&asked), directory(&asked))
        };
        let guard = async {
            match features.redact {
                true => Some(self.guard(&asked.system, found.prompt).await),
                false => None,
            }
        };
        let (admission, (ahead, question, directory), guard) =
            tokio::join!(self.judge.admit(&request), ahead, guard);
        let instead = self.settle(&found, &admission);
        if let Some(denial) = &admission.denied {
            self.tell(&Seen::Denied { request: &request, denial });
            let stream = asked.stream || way.rest.contains(":streamGenerateContent");
            let text = format!("[wardkeep] This request did not reach the model: {denial}");
            let (kind, body) = refusal(wire, stream, asked.model.as_deref(), &text);
            return Ok(document(StatusCode::OK, kind, body));
        }
        let block = admission.block.as_deref().filter(|_| features.block);
        if block.is_some() && block != guess.as_deref() {
            *held(&self.block) = block.map(str::to_owned);
        }
        let rewritten = match block == guess.as_deref() && instead == found.instead {
            true => ahead,
            false => asked.rewritten(wrapper, &instead, block),
        };
        let (marked, withheld, at) = (rewritten.marked, rewritten.withheld, rewritten.at);
        let sent: Bytes = rewritten.body.map_or_else(|| bytes.clone(), Bytes::from);
        let (length, withheld) = (sent.len(), withheld.as_slice());
        let request_told =
            Seen::Request { request: &request, sent: length, marked, withheld, block, at };
        self.tell(&request_told);
        let exchange = Exchange {
            number: self.count.fetch_add(1, Ordering::Relaxed),
            session: request.session.clone(),
            wire,
            model: asked.model.clone(),
            record: admission.record.clone(),
            directory,
        };
        drop(asked);
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let kept = self.config.keep && length <= self.config.limits.kept;
        let mut passing = Passing {
            door: Arc::clone(self),
            exchange,
            sent: Sent::Unhashed(sent.clone()),
            kept: kept.then(|| sent.clone()),
            marked,
            guard,
            question,
            session: found.key(),
            began,
            busy: Some(busy),
            recorded: AtomicBool::new(false),
        };
        // It is on its way while it is hashed: whoever writes it is a task of its own, which comes first.
        let hashed = async {
            tokio::task::yield_now().await;
            Sha256::digest(&sent).into()
        };
        let going = self.send(&way, &parts, headers, full(sent.clone()), Some(wire));
        let (reply, hash) = tokio::join!(going, hashed);
        passing.sent = Sent::Hashed(length, hash);
        drop((bytes, room, sent));
        match reply {
            Ok(reply) => passing.reply(reply).await,
            Err(refused) => {
                passing.failed(refused.why.clone()).await;
                Err(refused.told())
            }
        }
    }

    /// Remembers what was judged; gives what stands in the place of pieces.
    fn settle(&self, found: &Found, admission: &Admission) -> HashMap<Print, String> {
        let mut fresh = HashMap::new();
        for (number, text) in &admission.instead {
            if let Some((_, _, print)) = found.unseen.get(*number) {
                fresh.insert(*print, text.clone());
            }
        }
        if admission.denied.is_none() {
            held(&self.sessions).judged(found, &fresh);
        } else {
            // The rest is judged again when it comes again.
            let unseen = found.unseen.iter().filter(|(_, _, print)| fresh.contains_key(print));
            let only = found.with_unseen(unseen.copied().collect());
            held(&self.sessions).judged(&only, &fresh);
        }
        let mut instead = found.instead.clone();
        instead.extend(fresh);
        instead
    }

    /// Remembers what the model said in a session.
    pub(super) fn spoke(&self, session: u64, spoken: &str) {
        held(&self.sessions).spoke(session, spoken);
    }

    /// Remembers a reply that the provider keeps.
    pub(super) fn answered_as(&self, session: u64, id: &str) {
        held(&self.sessions).answered(session, id);
    }

    /// Remembers a call that the model made in a session.
    pub(super) fn called(&self, session: u64, call: &ToolCall) {
        // Some wires have no ids but names, which every session knows.
        if call.id != call.name {
            held(&self.sessions).called(session, &call.id);
        }
    }

    /// The guard for a system prompt, known by its print.
    async fn guard(&self, system: &str, print: Print) -> Arc<OutputGuard> {
        if let Some((_, guard)) = held(&self.guards).iter().find(|(known, _)| *known == print) {
            return Arc::clone(guard);
        }
        let text = system.to_owned();
        let make =
            move || Arc::new(OutputGuard::for_prompt(&PromptProfile::of(&text)).with_secrets());
        let guard = match system.len() > LONG_PROMPT {
            true => match tokio::task::spawn_blocking(make).await {
                Ok(guard) => guard,
                // Without the prompt, secrets are looked for all the same.
                Err(_) => Arc::new(OutputGuard::new().with_secrets()),
            },
            false => make(),
        };
        let mut guards = held(&self.guards);
        if guards.len() >= GUARDS {
            guards.remove(0);
        }
        guards.push((print, Arc::clone(&guard)));
        guard
    }

    pub(super) fn tell(&self, seen: &Seen<'_>) {
        self.config.meter.seen(seen);
        if let Some(watch) = &self.config.watch {
            watch.seen(seen);
        }
    }
}

/// Whether a request bears the cookie of the owner's page: browsers send it to every port of an address.
fn bears_page_cookie(headers: &HeaderMap) -> bool {
    headers.get_all(header::COOKIE).iter().any(|line| {
        let mut pairs = line.as_bytes().split(|byte| *byte == b';');
        pairs.any(|pair| {
            let rest = pair.trim_ascii_start().strip_prefix(crate::COOKIE.as_bytes());
            rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"="))
        })
    })
}

fn request_of(
    wire: Wire,
    upstream: &Upstream,
    asked: &Asked<'_>,
    found: &Found,
    bytes: &[u8],
) -> Request {
    let last = asked.messages.len().saturating_sub(1);
    let fresh = found.unseen.iter().filter_map(|(message, place, _)| {
        let piece = asked.messages.get(*message)?.pieces.get(*place)?;
        let source = match &piece.what {
            What::Result { id, tool, .. } => Source::Tool {
                id: id.clone().into_owned(),
                name: tool.clone().map(std::borrow::Cow::into_owned),
            },
            _ => Source::User,
        };
        let text = match &source {
            Source::User => frames::unframed(&piece.text).into_owned(),
            Source::Tool { .. } => frames::uncounted(&piece.text).to_owned(),
        };
        Some(Fresh { source, text, last: *message == last })
    });
    Request {
        session: found.name.clone(),
        new: found.new,
        parent: found.parent.clone(),
        wire,
        upstream: upstream.name.clone(),
        model: asked.model.clone(),
        system: found.system.then(|| asked.system.clone()),
        // Behind all others, which are known by their numbers.
        fresh: fresh.chain(not_read(found)).collect(),
        messages: asked.messages.len(),
        size: bytes.len(),
        sha256: Sha256::digest(bytes).into(),
    }
}

/// Where the client works, as it tells the model.
fn directory(asked: &Asked<'_>) -> Option<PathBuf> {
    let said = asked.messages.iter().find(|said| said.role == super::ask::Role::User);
    let pieces = said.into_iter().flat_map(|said| &said.pieces);
    let texts = pieces.filter(|piece| piece.what == What::Text).map(|piece| piece.text.as_ref());
    std::iter::once(asked.system.as_str()).chain(texts.take(32)).find_map(frames::directory)
}

/// The last words of the user.
fn question(asked: &Asked<'_>) -> String {
    let said = asked.messages.iter().rev().find(|said| {
        said.role == super::ask::Role::User
            && said.pieces.iter().any(|piece| piece.what == What::Text)
    });
    let mut text = String::new();
    for piece in said.into_iter().flat_map(|said| &said.pieces) {
        if piece.what == What::Text && text.len() < QUESTION {
            text.push_str(&piece.text[..piece.text.floor_char_boundary(QUESTION)]);
            text.push('\n');
        }
    }
    text
}

pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn document(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
