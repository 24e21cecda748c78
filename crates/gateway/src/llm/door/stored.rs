//! What only the provider has: replies that it keeps, and what was said before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use sha2::{Digest as _, Sha256};
use wardkeep_detect::leak::OutputGuard;

use super::super::exchange::{Passing, Sent};
use super::super::judge::{Exchange, Fresh, Request, Seen, Source};
use super::super::session::Found;
use super::super::upstream::{Body, BoxError};
use super::super::wire::{Wire, percent_decoded};
use super::{Busy, Door, Refused, Way, held};

/// What a session is told of that goes on from something that only the provider has.
const NOT_READ: &str = "(what was said before is kept by the provider and was not read)";
/// Parts of paths from which replies of models come that nobody has looked into.
const UNLOOKED: &[&str] = &["batches", "conversations", "threads"];

impl Door {
    /// The reply to an earlier turn, which the provider has kept: it is looked into as that turn's own
    /// would have been.
    pub(super) async fn stored(
        self: &Arc<Self>,
        wire: Wire,
        id: &str,
        way: Way<'_>,
        parts: Parts,
        body: Incoming,
        busy: Busy,
    ) -> Result<Response<Body>, Refused> {
        let began = Instant::now();
        let found = held(&self.sessions).of_answer(id);
        let request = Request {
            session: found.name.clone(),
            new: found.new,
            parent: None,
            wire,
            upstream: way.upstream.name.clone(),
            model: None,
            system: None,
            fresh: not_read(&found).into_iter().collect(),
            messages: 0,
            size: 0,
            sha256: Sha256::digest([]).into(),
        };
        let admission = self.judge.admit(&request).await;
        if let Some(denial) = &admission.denied {
            self.tell(&Seen::Denied { request: &request, denial });
            return Err(Refused::new(StatusCode::FORBIDDEN, Some(wire), denial.to_string()));
        }
        let known = held(&self.guards).iter().find(|(print, _)| *print == found.prompt).cloned();
        let guard =
            known.map_or_else(|| Arc::new(OutputGuard::new().with_secrets()), |(_, guard)| guard);
        let exchange = Exchange {
            number: self.count.fetch_add(1, Ordering::Relaxed),
            session: request.session.clone(),
            wire,
            model: None,
            record: admission.record.clone(),
            directory: None,
        };
        let passing = Passing {
            door: Arc::clone(self),
            exchange,
            sent: Sent::Unhashed(Bytes::new()),
            kept: None,
            marked: 0,
            guard: self.config.features.redact.then_some(guard),
            question: String::new(),
            session: found.key(),
            began,
            busy: Some(busy),
            recorded: AtomicBool::new(false),
        };
        let mut headers = parts.headers.clone();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let body = body.map_err(BoxError::from).boxed_unsync();
        match self.send(&way, &parts, headers, body, Some(wire)).await {
            Ok(reply) => passing.reply(reply).await,
            Err(refused) => {
                passing.failed(refused.why.clone()).await;
                Err(refused.told())
            }
        }
    }
}

/// Whether `--strict` lets a request through that is no turn: it asks no model, and no reply of one comes back.
pub(super) fn is_understood(method: &Method, path: &str) -> bool {
    let asks = [Method::GET, Method::HEAD, Method::OPTIONS, Method::DELETE].contains(method);
    asks && !percent_decoded(path).split('/').any(|name| UNLOOKED.contains(&name))
}

/// What tells a session that it goes on from something that nobody has read.
pub(super) fn not_read(found: &Found) -> Option<Fresh> {
    let source = Source::Tool { id: String::new(), name: Some("earlier-turns".to_owned()) };
    found.unread.then(|| Fresh { source, text: NOT_READ.to_owned(), last: false })
}
