//! Spans for OpenTelemetry: one for each exchange and each tool call, in the words of its conventions for
//! generative AI, by OTLP over HTTP in JSON. Nothing that was said is in them.
//!
//! Whoever collects them is never waited for: what cannot be sent in time is dropped and counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request as HttpRequest, Uri};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::config::{Config, Upstream};
use super::door::full;
use super::judge::{Ended, Exchange, Outcome, Seen, Watch};
use super::reply::{Ruling, ToolCall};
use super::upstream::{Models, models};
use super::wire::Wire;
use crate::threads::Running;

/// Spans that wait to be sent.
const WAITING: usize = 4096;
/// Spans that are sent at once.
const BATCH: usize = 256;
/// How long they are gathered.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest text of an attribute.
const TEXT: usize = 256;
/// A span of a call to another service, and one of work inside.
const CLIENT: u8 = 3;
const INTERNAL: u8 = 1;

/// Sends spans to a collector.
#[derive(Debug)]
pub struct Otlp {
    seed: [u8; 16],
    sender: Option<mpsc::Sender<Value>>,
    lost: Arc<AtomicU64>,
    calls: AtomicU64,
    running: Option<Running>,
}

impl Otlp {
    /// To the collector at a base URL, such as `http://127.0.0.1:4318`; `seed` makes ids that no other
    /// proxy has. `config` says which authorities are trusted.
    ///
    /// # Errors
    /// When the URL cannot be used or no thread can be started.
    pub fn start(url: &str, seed: [u8; 16], config: &Config) -> io::Result<Self> {
        let bad = "it is no address of a collector by http or https, without a user or password";
        let collector = Upstream::new("otlp", url).map_err(|_| io::Error::other(bad))?;
        let uri = collector.uri("/v1/traces").ok_or_else(|| io::Error::other("bad URL"))?;
        let mut config = config.clone();
        config.add(collector);
        config.watch = None;
        let (sender, receiver) = mpsc::channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let running = Running::start("otlp", 1, move |_| async move {
            send_all(models(&config)?, uri, receiver, &counted).await;
            Ok(())
        })?;
        let calls = AtomicU64::new(0);
        Ok(Self { seed, sender: Some(sender), lost, calls, running: Some(running) })
    }

    /// Spans that were not taken.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn id<const N: usize>(&self, parts: &[&[u8]]) -> String {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize()[..N].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn trace(&self, exchange: &Exchange) -> String {
        self.id::<16>(&[b"trace", exchange.session.as_bytes()])
    }

    fn span(&self, exchange: &Exchange) -> String {
        self.id::<8>(&[b"span", &exchange.number.to_le_bytes()])
    }

    fn reply(&self, exchange: &Exchange, outcome: &Outcome) -> Value {
        let report = &outcome.report;
        let model = exchange.model.as_deref().or(report.model.as_deref()).unwrap_or_default();
        let mut attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.provider.name", provider(exchange.wire)),
            text("gen_ai.conversation.id", &exchange.session),
            number("wardkeep.tool_calls.allowed", report.allowed as u64),
            number("wardkeep.tool_calls.denied", report.denied as u64),
            number("wardkeep.withheld", report.withheld as u64),
        ];
        if !model.is_empty() {
            attributes.push(text("gen_ai.request.model", model));
        }
        attributes.extend(report.model.as_deref().map(|one| text("gen_ai.response.model", one)));
        attributes.extend(report.input_tokens.map(|one| number("gen_ai.usage.input_tokens", one)));
        attributes
            .extend(report.output_tokens.map(|one| number("gen_ai.usage.output_tokens", one)));
        if let Some(stop) = &report.stop {
            let values = json!({"values": [{"stringValue": short(stop)}]});
            let value = json!({"arrayValue": values});
            attributes.push(json!({"key": "gen_ai.response.finish_reasons", "value": value}));
        }
        attributes.extend(exchange.record.as_deref().map(|one| text("wardkeep.record", one)));
        let failed = match &outcome.ended {
            Ended::Done | Ended::Gone => {
                outcome.status.filter(|status| *status >= 400).map(|status| status.to_string())
            }
            Ended::Cut(_) => Some("cut".to_owned()),
            Ended::Failed(_) => Some("failed".to_owned()),
        };
        attributes.extend(failed.as_deref().map(|kind| text("error.type", kind)));
        let name =
            if model.is_empty() { "chat".to_owned() } else { format!("chat {}", short(model)) };
        let end = now();
        let status = if failed.is_some() { json!({"code": 2}) } else { json!({}) };
        json!({
            "traceId": self.trace(exchange), "spanId": self.span(exchange), "name": name,
            "kind": CLIENT, "startTimeUnixNano": nanos(end.saturating_sub(outcome.took)),
            "endTimeUnixNano": nanos(end), "attributes": attributes, "status": status,
        })
    }

    fn call(&self, exchange: &Exchange, call: &ToolCall, ruling: &Ruling) -> Value {
        let count = self.calls.fetch_add(1, Ordering::Relaxed);
        let denied = matches!(ruling, Ruling::Deny(_));
        let mut attributes = vec![
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", &call.name),
            text("gen_ai.conversation.id", &exchange.session),
            text("wardkeep.verdict", if denied { "deny" } else { "allow" }),
        ];
        if !call.id.is_empty() {
            attributes.push(text("gen_ai.tool.call.id", &call.id));
        }
        let at = nanos(now());
        json!({
            "traceId": self.trace(exchange), "parentSpanId": self.span(exchange),
            "spanId": self.id::<8>(&[b"call", &count.to_le_bytes()]),
            "name": format!("execute_tool {}", short(&call.name)), "kind": INTERNAL,
            "startTimeUnixNano": at, "endTimeUnixNano": at, "attributes": attributes,
            "status": if denied { json!({"code": 2}) } else { json!({}) },
        })
    }
}

impl Watch for Otlp {
    fn seen(&self, seen: &Seen<'_>) {
        let span = match seen {
            Seen::Reply { exchange, outcome } => self.reply(exchange, outcome),
            Seen::Call { exchange, call, ruling } => self.call(exchange, call, ruling),
            _ => return,
        };
        if self.sender.as_ref().is_none_or(|sender| sender.try_send(span).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // What waits is sent; then the thread ends.
        drop(self.sender.take());
        if let Some(running) = self.running.take() {
            let _ = running.wait();
        }
    }
}

async fn send_all(client: Models, uri: Uri, mut spans: mpsc::Receiver<Value>, lost: &AtomicU64) {
    while let Some(first) = spans.recv().await {
        let mut batch = vec![first];
        let gather = async {
            while batch.len() < BATCH {
                match spans.recv().await {
                    Some(span) => batch.push(span),
                    None => break,
                }
            }
        };
        let _ = tokio::time::timeout(GATHER, gather).await;
        let count = batch.len() as u64;
        if !send(&client, &uri, batch).await {
            lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

async fn send(client: &Models, uri: &Uri, spans: Vec<Value>) -> bool {
    let scope = json!({"name": "wardkeep", "version": env!("CARGO_PKG_VERSION")});
    let resource = json!({"attributes": [text("service.name", "wardkeep")]});
    let body = json!({"resourceSpans": [{"resource": resource,
        "scopeSpans": [{"scope": scope, "spans": spans}]}]});
    let mut request = HttpRequest::new(full(Bytes::from(body.to_string())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let sent = tokio::time::timeout(PATIENCE, client.request(request)).await;
    matches!(sent, Ok(Ok(reply)) if reply.status().is_success())
}

fn provider(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "anthropic",
        Wire::Chat | Wire::Responses => "openai",
        Wire::Gemini => "gcp.gemini",
        Wire::Ollama => "ollama",
    }
}

fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT)]
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": short(value)}})
}

fn number(key: &str, value: u64) -> Value {
    // As the format has it: integers of 64 bits are strings.
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn nanos(time: Duration) -> String {
    time.as_nanos().to_string()
}
