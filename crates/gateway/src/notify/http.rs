//! One question in JSON over HTTP, and its answer, in bounded time and space.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{Method, Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::{Failed, Retry};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest address.
const MAX_ADDRESS: usize = 2048;

/// Where something is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Uri);

/// Why an address cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// It is none.
    #[error("it is no address: give https://HOST[:PORT][/PATH]")]
    Malformed,
    /// It leaves the machine in the clear.
    #[error("what is sent to it could be read on the way: give an https address")]
    Plain,
}

// The path of a webhook is a secret: whoever has it can send.
impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Address({})", self.host())
    }
}

impl Address {
    /// Reads one; `plain` lets http leave the machine.
    ///
    /// # Errors
    /// When it is none, or what is sent could be read on the way.
    pub fn parse(url: &str, plain: bool) -> Result<Self, BadAddress> {
        if url.len() > MAX_ADDRESS || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadAddress::Malformed);
        }
        let uri: Uri = url.parse().map_err(|_| BadAddress::Malformed)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(BadAddress::Malformed)?;
        let user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if user || url.contains('#') {
            return Err(BadAddress::Malformed);
        }
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => {}
            Some(scheme) if *scheme == Scheme::HTTP && (plain || is_loopback(host)) => {}
            Some(scheme) if *scheme == Scheme::HTTP => return Err(BadAddress::Plain),
            _ => return Err(BadAddress::Malformed),
        }
        Ok(Self(uri))
    }

    /// The machine it leads to.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host().unwrap_or_default()
    }

    /// The address of a path below it.
    pub(super) fn below(&self, path: &str) -> Option<Self> {
        let mut parts = self.0.clone().into_parts();
        let path = format!("{}{path}", self.0.path().trim_end_matches('/'));
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        Uri::from_parts(parts).ok().map(Self)
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What came back.
pub(super) struct Reply {
    pub(super) status: u16,
    /// How long to wait, where it says so.
    pub(super) wait: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// Asks, one question at a time.
pub(super) struct Client {
    runtime: Option<Runtime>,
    hyper: Hyper<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client for one address.
    pub(super) fn new(address: &Address) -> io::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT));
        let tls = crate::tls::client(address.0.scheme() == Some(&Scheme::HTTPS), &[])?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        // Between two questions nobody drives a connection, so none is kept.
        let hyper = Hyper::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self { runtime: Some(runtime), hyper })
    }

    /// Sends a document, and gives what came back, at most `limit` bytes. Where it is led elsewhere, it
    /// does not go.
    pub(super) fn post(
        &self,
        address: &Address,
        document: &Value,
        patience: Duration,
        limit: usize,
    ) -> Result<Reply, Failed> {
        let mut request = Request::new(Full::new(Bytes::from(document.to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = address.0.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static("wardkeep"));
        let exchange = async {
            let reply = self.hyper.request(request).await.map_err(|error| {
                let last = root(&error);
                Failed::new(format!("there is no connection ({last})"), Retry::Soon)
            })?;
            let (head, body) = reply.into_parts();
            let wait = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let wait = wait.and_then(|text| text.parse().ok()).map(Duration::from_secs);
            let body = Limited::new(body, limit)
                .collect()
                .await
                .map_err(|_| Failed::new("the answer is too long, or broke off", Retry::Soon))?;
            let body = body.to_bytes().to_vec();
            Ok(Reply { status: head.status.as_u16(), wait, body })
        };
        let Some(runtime) = &self.runtime else {
            return Err(Failed::new("it ends", Retry::Never));
        };
        runtime.block_on(async {
            tokio::time::timeout(patience, exchange)
                .await
                .unwrap_or_else(|_| Err(Failed::new("there is no answer in time", Retry::Soon)))
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A lookup of a name that hangs is not waited for.
            runtime.shutdown_background();
        }
    }
}

/// The innermost reason, which has no address in it.
fn root(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    let text = last.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// What a status that is no success means.
pub(super) fn refused(reply: &Reply) -> Failed {
    let retry = match (reply.status, reply.wait) {
        (429, Some(wait)) | (500.., Some(wait)) => Retry::After(wait),
        (408 | 429 | 500.., _) => Retry::Soon,
        _ => Retry::Never,
    };
    Failed::new(format!("it answered with status {}", reply.status), retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_on_the_way_is_an_address() {
        for (url, plain, expected) in [
            ("https://a.example/x?y=1", false, Ok(())),
            ("http://127.0.0.1:9/x", false, Ok(())),
            ("http://[::1]:9/", false, Ok(())),
            ("http://localhost:9", false, Ok(())),
            ("http://a.example/", true, Ok(())),
            ("http://a.example/", false, Err(BadAddress::Plain)),
            ("http://127.0.0.1.a.example/", false, Err(BadAddress::Plain)),
            ("http://0.0.0.0/", false, Err(BadAddress::Plain)),
            ("https://u:p@a.example/", false, Err(BadAddress::Malformed)),
            ("https://a.example/#x", false, Err(BadAddress::Malformed)),
            ("ftp://a.example/", true, Err(BadAddress::Malformed)),
            ("a.example/x", false, Err(BadAddress::Malformed)),
            ("https://a.example/\r\nx", false, Err(BadAddress::Malformed)),
            ("", false, Err(BadAddress::Malformed)),
        ] {
            assert_eq!(Address::parse(url, plain).map(drop), expected, "{url}");
        }
        let hook = Address::parse("https://a.example/secret", false).unwrap();
        assert_eq!(format!("{hook:?}"), "Address(a.example)");
    }
}
