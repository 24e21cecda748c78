//! The way to the models.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::config::Config;

/// Whatever goes wrong with a body.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;
/// A body of either direction.
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Who makes connections.
pub(super) type Models = Client<HttpsConnector<HttpConnector>, Body>;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(60);

/// The header that a client may give the token in.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("x-wardkeep-token");

pub(super) fn models(config: &Config) -> io::Result<Models> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    let system = config.upstreams.iter().any(super::config::Upstream::is_tls);
    let tls = crate::tls::client(system, &config.authorities)?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(config.limits.idle)
        .build(connector))
}

/// Takes out what belongs to one connection only.
pub(super) fn end_to_end(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [
        header::CONNECTION,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        TOKEN,
    ] {
        headers.remove(name);
    }
}
