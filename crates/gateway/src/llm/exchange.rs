//! The way back: a reply read, judged, and passed on as fast as the client takes it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::{Response, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use wardkeep_detect::leak::OutputGuard;

use super::door::{Busy, Door, Refused, full};
use super::inflate::Inflate;
use super::json::Doc;
use super::judge::{Bodies, Ended, Exchange, Outcome, Seen};
use super::reply::{Reply, Ruling, Step, ToolCall, Whole, stream_error};
use super::room::Unread;
use super::upstream::{Body, BoxError, end_to_end};
use super::wire::Wire;

/// Parts of a reply that wait for the client.
const WAITING: usize = 8;
/// A client that gets nothing for so long is told that something comes, where it understands that.
const QUIET: Duration = Duration::from_secs(5);
/// Calls in one reply.
const CALLS: usize = 256;

/// A reply that nobody looks into; its place is kept until all of it has passed.
pub(super) fn unread(reply: Response<Incoming>, busy: Busy) -> Response<Body> {
    let (mut parts, body) = reply.into_parts();
    end_to_end(&mut parts.headers);
    let body = body.map_err(move |error| {
        let _ = &busy;
        BoxError::from(error)
    });
    Response::from_parts(parts, body.boxed_unsync())
}

/// An exchange whose request went out.
pub(super) struct Passing {
    pub(super) door: Arc<Door>,
    pub(super) exchange: Exchange,
    /// The body that went out.
    pub(super) sent: Sent,
    /// That body, where it is kept.
    pub(super) kept: Option<Bytes>,
    pub(super) marked: usize,
    pub(super) guard: Option<Arc<OutputGuard>>,
    pub(super) question: String,
    /// The session, as the door knows it.
    pub(super) session: u64,
    pub(super) began: std::time::Instant,
    pub(super) busy: Option<Busy>,
    /// Whether it is recorded what became of it.
    pub(super) recorded: AtomicBool,
}

/// A body that went out.
#[derive(Clone)]
pub(super) enum Sent {
    /// It, while it goes.
    Unhashed(Bytes),
    /// How many bytes it had, and their hash.
    Hashed(usize, [u8; 32]),
}

impl Sent {
    fn hashed(&self) -> (usize, [u8; 32]) {
        match self {
            Self::Unhashed(body) => (body.len(), Sha256::digest(body).into()),
            Self::Hashed(length, hash) => (*length, *hash),
        }
    }
}

/// An exchange that is dropped without a record is one whose agent went away while the model was waited for:
/// nobody asks for the answer any more, and the record is made all the same.
impl Drop for Passing {
    fn drop(&mut self) {
        if self.recorded.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let left = Self {
            door: Arc::clone(&self.door),
            exchange: self.exchange.clone(),
            sent: self.sent.clone(),
            kept: self.kept.take(),
            marked: self.marked,
            guard: None,
            question: String::new(),
            session: self.session,
            began: self.began,
            busy: self.busy.take(),
            // Should the runtime end before that, there is no further try.
            recorded: AtomicBool::new(true),
        };
        runtime.spawn(async move { left.done(None, left.tally(), None, Ended::Gone).await });
    }
}

/// What is counted of a reply.
struct Tally {
    received: u64,
    shown: Sha256,
    /// What the agent got, where it is kept and not longer than the number.
    kept: Option<(Vec<u8>, usize)>,
}

impl Tally {
    fn show(&mut self, bytes: &[u8]) {
        self.shown.update(bytes);
        self.kept = self.kept.take().filter(|(kept, most)| kept.len() + bytes.len() <= *most);
        if let Some((kept, _)) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
    }
}

impl Passing {
    fn new_reply(&self) -> Reply {
        let config = &self.door.config;
        Reply::new(
            self.exchange.wire,
            self.guard.clone(),
            &self.question,
            config.features.judge,
            config.limits.event,
        )
    }

    fn tally(&self) -> Tally {
        let config = &self.door.config;
        let kept = config.keep.then(|| (Vec::new(), config.limits.kept));
        Tally { received: 0, shown: Sha256::new(), kept }
    }

    /// Records that there was no reply.
    pub(super) async fn failed(self, why: String) {
        self.done(None, self.tally(), None, Ended::Failed(why)).await;
    }

    async fn done(&self, status: Option<u16>, tally: Tally, reply: Option<&Reply>, ended: Ended) {
        self.recorded.store(true, Ordering::Relaxed);
        let (sent, sent_sha256) = self.sent.hashed();
        let outcome = Outcome {
            status,
            sent,
            sent_sha256,
            received: tally.received,
            shown_sha256: tally.shown.finalize().into(),
            marked: self.marked,
            report: reply.map(|reply| reply.report().clone()).unwrap_or_default(),
            ended,
            took: self.began.elapsed(),
            bodies: Bodies {
                request: self.kept.clone(),
                reply: tally.kept.map(|(kept, _)| kept.into()),
            },
        };
        if let Some(reply) = reply {
            self.door.spoke(self.session, reply.spoken());
        }
        self.door.judge.done(&self.exchange, &outcome).await;
        self.door.tell(&Seen::Reply { exchange: &self.exchange, outcome: &outcome });
    }

    pub(super) async fn reply(self, reply: Response<Incoming>) -> Result<Response<Body>, Refused> {
        let (mut parts, body) = reply.into_parts();
        end_to_end(&mut parts.headers);
        let status = parts.status.as_u16();
        if leads_past(&parts.headers) && parts.status.is_redirection() {
            let why = "the model's server sends the call elsewhere, past this proxy: give that \
                       address as --upstream";
            self.done(Some(status), self.tally(), None, Ended::Cut(why.to_owned())).await;
            let wire = Some(self.exchange.wire);
            return Err(Refused::new(StatusCode::BAD_GATEWAY, wire, why).told());
        }
        let error = !parts.status.is_success();
        if error && self.guard.is_none() {
            let (sender, channel) = channel();
            tokio::spawn(self.relay(status, body, sender));
            return Ok(Response::from_parts(parts, channel));
        }
        let wire = self.exchange.wire;
        let refuse = |why: &str| Refused::new(StatusCode::BAD_GATEWAY, Some(wire), why).told();
        let Some(inflate) = Inflate::of(&parts.headers) else {
            let why = "the model's reply is encoded in a way that cannot be read";
            self.done(Some(status), self.tally(), None, Ended::Cut(why.to_owned())).await;
            return Err(refuse(why));
        };
        let kind = if error { Kind::Error } else { kind(&parts.headers) };
        match kind {
            Kind::Stream => {
                if !inflate.is_plain() {
                    parts.headers.remove(header::CONTENT_ENCODING);
                }
                parts.headers.remove(header::CONTENT_LENGTH);
                let (sender, channel) = channel();
                tokio::spawn(Streaming::new(self, status, inflate, sender).run(body));
                Ok(Response::from_parts(parts, channel))
            }
            Kind::Document | Kind::Error => match self.whole(status, inflate, body, error).await {
                Ok(shown) => {
                    parts.headers.remove(header::CONTENT_ENCODING);
                    parts.headers.remove(header::CONTENT_LENGTH);
                    Ok(Response::from_parts(parts, full(shown)))
                }
                Err(why) => Err(refuse(&why)),
            },
            Kind::Other => {
                let why = "the model's reply is neither JSON nor a stream of events";
                self.done(Some(status), self.tally(), None, Ended::Cut(why.to_owned())).await;
                Err(refuse(why))
            }
        }
    }

    /// Passes an error of the model's server on as it is, where nobody looks for secrets.
    async fn relay(self, status: u16, mut body: Incoming, sender: Sender) {
        let mut tally = self.tally();
        let ended = loop {
            match body.frame().await {
                None => break Ended::Done,
                Some(Err(error)) => {
                    let why = error.to_string();
                    let _ = sender.send(Err(error.into())).await;
                    break Ended::Failed(why);
                }
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    tally.received += data.len() as u64;
                    tally.show(&data);
                    if sender.send(Ok(data)).await.is_err() {
                        break Ended::Gone;
                    }
                }
            }
        };
        drop(sender);
        self.done(Some(status), tally, None, ended).await;
    }

    /// A reply in one document, or an error.
    async fn whole(
        self,
        status: u16,
        mut inflate: Inflate,
        body: Incoming,
        error: bool,
    ) -> Result<Vec<u8>, String> {
        let limits = self.door.limits();
        let mut reply = self.new_reply();
        let mut tally = self.tally();
        let mut held = self.door.room.none();
        let read = async {
            let body = timeout(limits.silence, held.gather(body, limits.reply)).await;
            let body = body.map_err(|_| "the model's reply took too long".to_owned())?;
            let body = body.map_err(|unread| match unread {
                Unread::TooLong => format!("the model's reply is longer than {}", limits.reply),
                Unread::NoRoom => "too many long replies are read at this moment".to_owned(),
                Unread::Broken(error) => format!("the model's reply broke off: {error}"),
            })?;
            tally.received = body.len() as u64;
            let undecoded =
                |error: std::io::Error| format!("the model's reply cannot be decoded: {error}");
            let mut bytes = body;
            if !inflate.is_plain() {
                // What it becomes is not known before.
                let room = held.reach(bytes.len() + limits.reply);
                room.map_err(|_| "too many long replies are read at this moment".to_owned())?;
                bytes = inflate.feed(&bytes, limits.reply).map_err(undecoded)?;
                bytes.extend(inflate.finish().map_err(undecoded)?);
            }
            if error {
                return Ok(reply.error(&bytes).unwrap_or(bytes));
            }
            for _ in 0..=CALLS {
                match reply.whole(&bytes).map_err(|error| error.to_string())? {
                    Whole::Same => return Ok(bytes),
                    Whole::Changed(bytes) => return Ok(bytes),
                    Whole::Judge(call) => {
                        let ruling = self.judged(&call).await;
                        reply.ruled(&call, ruling);
                    }
                }
            }
            Err("the model's reply holds too many tool calls".to_owned())
        };
        let shown: Result<Vec<u8>, String> = read.await;
        let ended = match &shown {
            Ok(bytes) => {
                if let Some(id) = id_of(self.exchange.wire, bytes, false) {
                    self.door.answered_as(self.session, &id);
                }
                tally.show(bytes);
                Ended::Done
            }
            Err(why) => Ended::Cut(why.clone()),
        };
        // As with streams, the agent does not wait for the record of what it gets.
        tokio::spawn(async move {
            self.done(Some(status), tally, Some(&reply), ended).await;
        });
        shown
    }

    async fn judged(&self, call: &ToolCall) -> Ruling {
        let ruling = self.door.judge.call(&self.exchange, call).await;
        self.door.called(self.session, call);
        self.door.tell(&Seen::Call { exchange: &self.exchange, call, ruling: &ruling });
        ruling
    }
}

/// A reply in a stream.
struct Streaming {
    passing: Passing,
    status: u16,
    inflate: Inflate,
    sender: Sender,
    reply: Reply,
    tally: Tally,
    /// Whether something came that the client has not seen.
    holds: bool,
    sent: Instant,
    /// What was sent so far and has not told the id that the provider keeps the reply by.
    begin: Option<Vec<u8>>,
}

impl Streaming {
    fn new(passing: Passing, status: u16, inflate: Inflate, sender: Sender) -> Self {
        let (reply, tally) = (passing.new_reply(), passing.tally());
        let begin = matches!(passing.exchange.wire, Wire::Responses | Wire::Chat).then(Vec::new);
        let (holds, sent) = (false, Instant::now());
        Self { passing, status, inflate, sender, reply, tally, holds, sent, begin }
    }

    async fn run(mut self, mut body: Incoming) {
        let ended = self.pass(&mut body).await;
        drop(body);
        if let Ended::Cut(why) = &ended {
            let error = stream_error(self.passing.exchange.wire, &format!("wardkeep: {why}"));
            let _ = self.send(error).await;
        }
        let Self { passing, status, sender, reply, tally, .. } = self;
        if let Ended::Failed(why) = &ended {
            // The client sees that it broke off, too.
            let _ = sender.send(Err(why.clone().into())).await;
        }
        drop(sender);
        passing.done(Some(status), tally, Some(&reply), ended).await;
    }

    async fn pass(&mut self, body: &mut Incoming) -> Ended {
        let silence = self.passing.door.limits().silence;
        let most = self.passing.door.limits().event;
        let mut heard = Instant::now();
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.sender.closed() => return Ended::Gone,
                () = sleep_until(self.sent + QUIET), if self.holds => {
                    if let Err(ended) = self.keep_alive().await {
                        return ended;
                    }
                    continue;
                }
                () = sleep_until(heard + silence) => {
                    return Ended::Cut("the model said nothing for too long".to_owned());
                }
            };
            heard = Instant::now();
            let data = match frame {
                None => break,
                Some(Err(error)) => {
                    let mut out = Vec::new();
                    self.reply.abandon(&mut out);
                    let _ = self.send(out).await;
                    return Ended::Failed(error.to_string());
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
            };
            self.tally.received += data.len() as u64;
            let data = match self.inflate.is_plain() {
                true => data,
                false => match self.inflate.feed(&data, most) {
                    Ok(data) => data.into(),
                    Err(error) => return Ended::Cut(error.to_string()),
                },
            };
            self.reply.feed(&data);
            self.holds = true;
            if let Err(ended) = self.drive().await {
                return ended;
            }
        }
        match std::mem::replace(&mut self.inflate, Inflate::Plain).finish() {
            Ok(rest) => self.reply.feed(&rest),
            Err(error) => return Ended::Cut(error.to_string()),
        }
        self.reply.finish();
        match self.drive().await {
            Ok(()) => Ended::Done,
            Err(ended) => ended,
        }
    }

    /// Goes as far as it can with what was fed.
    async fn drive(&mut self) -> Result<(), Ended> {
        let mut out = Vec::new();
        for _ in 0..=CALLS {
            let step = self.reply.step(&mut out);
            self.send(std::mem::take(&mut out)).await?;
            match step {
                Ok(Step::More) => return Ok(()),
                Ok(Step::Judge(call)) => {
                    let ruling = self.judged(&call).await?;
                    self.reply.ruled(&call, ruling);
                }
                Err(error) => return Err(Ended::Cut(error.to_string())),
            }
        }
        Err(Ended::Cut("the reply holds too many tool calls at once".to_owned()))
    }

    async fn judged(&mut self, call: &ToolCall) -> Result<Ruling, Ended> {
        let door = Arc::clone(&self.passing.door);
        let exchange = self.passing.exchange.clone();
        let judged = door.judge.call(&exchange, call);
        tokio::pin!(judged);
        let ruling = loop {
            tokio::select! {
                ruling = &mut judged => break ruling,
                () = sleep_until(self.sent + QUIET) => self.keep_alive().await?,
            }
        };
        door.called(self.passing.session, call);
        door.tell(&Seen::Call { exchange: &exchange, call, ruling: &ruling });
        Ok(ruling)
    }

    async fn keep_alive(&mut self) -> Result<(), Ended> {
        self.sent = Instant::now();
        match self.passing.exchange.wire.keep_alive() {
            Some(text) => {
                let holds = self.holds;
                self.send(text.as_bytes().to_vec()).await?;
                self.holds = holds;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Remembers the id of the reply before the client can name it.
    fn look_for_id(&mut self, bytes: &[u8]) {
        let wire = self.passing.exchange.wire;
        let Some(begin) = &mut self.begin else { return };
        begin.extend_from_slice(bytes);
        while let Some(end) = begin.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begin.drain(..=end).collect();
            let Some(data) = line.strip_prefix(b"data:") else { continue };
            if let Some(id) = id_of(wire, data, true) {
                self.passing.door.answered_as(self.passing.session, &id);
                self.begin = None;
                return;
            }
        }
        // Who cannot be known again is one of whom nothing is known.
        if begin.len() > self.passing.door.limits().event {
            self.begin = None;
        }
    }

    async fn send(&mut self, bytes: Vec<u8>) -> Result<(), Ended> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.tally.show(&bytes);
        self.look_for_id(&bytes);
        (self.sent, self.holds) = (Instant::now(), false);
        self.sender.send(Ok(bytes.into())).await.map_err(|_| Ended::Gone)
    }
}

/// Whether a client that goes where it is sent goes past this proxy.
fn leads_past(headers: &HeaderMap) -> bool {
    headers.get_all(header::LOCATION).iter().any(|place| {
        let place = place.as_bytes().trim_ascii();
        !place.starts_with(b"/") || place.starts_with(b"//") || place.starts_with(b"/\\")
    })
}

/// The id by which the provider keeps a reply, where it may keep it; in an event of a stream, or alone.
fn id_of(wire: Wire, bytes: &[u8], event: bool) -> Option<String> {
    let names: &[&str] = match wire {
        Wire::Responses if event => &["response", "id"],
        Wire::Responses | Wire::Chat => &["id"],
        Wire::Anthropic | Wire::Gemini | Wire::Ollama => return None,
    };
    let doc = Doc::parse(bytes).ok()?;
    let at = doc.path(Doc::ROOT, names).ok().flatten()?;
    doc.text(at).filter(|id| !id.is_empty()).map(std::borrow::Cow::into_owned)
}

enum Kind {
    Stream,
    Document,
    Error,
    Other,
}

fn kind(headers: &HeaderMap) -> Kind {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    // Of two, the agent may take the other.
    let value = values.next().filter(|_| values.next().is_none());
    let value = value.and_then(|value| value.to_str().ok());
    let value = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match value.to_ascii_lowercase().as_str() {
        "text/event-stream" | "application/x-ndjson" | "application/jsonl" => Kind::Stream,
        "application/json" => Kind::Document,
        _ => Kind::Other,
    }
}

type Sender = mpsc::Sender<Result<Bytes, BoxError>>;

fn channel() -> (Sender, Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (sender, Channel(receiver).boxed_unsync())
}

/// A body that comes out of a channel.
struct Channel(mpsc::Receiver<Result<Bytes, BoxError>>);

impl HttpBody for Channel {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| part.map(Frame::data)))
    }
}
