//! TLS looked into, for hosts that the owner names.
//!
//! The proxy answers in the host's name, with a certificate of an authority that lives only in its
//! memory, and speaks TLS to the host itself, whose certificate it checks. Requests inside are then
//! judged one by one, as if there were no TLS.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::host::{Host, Target};
use super::rules::{Found, Rule, Rules, Unlisted};
use super::stream::Stream;

/// Why no TLS can be looked into.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectionError {
    /// A certificate cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The machine trusts nobody.
    #[error("no certificates of authorities are found: install the package ca-certificates")]
    NoRoots,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
}

/// Looks into TLS to the hosts of its rules.
pub struct Inspection {
    hosts: Rules,
    authority: Issuer<'static, KeyPair>,
    pem: String,
    provider: Arc<CryptoProvider>,
    client: Arc<ClientConfig>,
    made: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

/// Certificates that are kept.
const KEPT: usize = 1024;

impl Inspection {
    /// With a new authority. `roots` are those that a host's own certificate has to come from.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn new(hosts: Vec<Rule>, roots: RootCertStore) -> Result<Self, InspectionError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "wardkeep egress, this run only");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key)?.pem();
        let authority = Issuer::new(params, key);
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let hosts = Rules { allow: hosts, deny: Vec::new(), unlisted: Unlisted::Deny };
        Ok(Self {
            hosts,
            authority,
            pem,
            provider,
            client: Arc::new(client),
            made: Mutex::default(),
        })
    }

    /// As [`Self::new`], with the authorities that the machine trusts.
    ///
    /// # Errors
    /// When the machine trusts none, or no certificate can be made.
    pub fn with_native_roots(hosts: Vec<Rule>) -> Result<Self, InspectionError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(InspectionError::NoRoots);
        }
        Self::new(hosts, roots)
    }

    /// The authority's certificate, which programs behind the proxy have to trust.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.pem
    }

    /// Whether TLS to this host is looked into.
    pub(super) fn covers(&self, target: &Target) -> bool {
        matches!(target.host, Host::Name(_))
            && matches!(self.hosts.find(target, None), Found::Allowed(_))
    }

    /// Answers in the name of a host; `begun` is what has come already.
    pub(super) async fn accept(
        &self,
        client: Stream,
        begun: Vec<u8>,
        name: &str,
    ) -> io::Result<Stream> {
        let config = self.server(name).map_err(io::Error::other)?;
        let replayed = Replayed { begun, at: 0, stream: client };
        let tls = TlsAcceptor::from(config).accept(replayed).await?;
        carried(tls)
    }

    /// Speaks TLS to a host.
    pub(super) async fn connect(&self, host: Stream, name: &str) -> io::Result<Stream> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let stream = Replayed { begun: Vec::new(), at: 0, stream: host };
        let tls = TlsConnector::from(Arc::clone(&self.client)).connect(name, stream).await?;
        carried(tls)
    }

    fn server(&self, name: &str) -> Result<Arc<ServerConfig>, InspectionError> {
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made().get(name) {
            return Ok(Arc::clone(config));
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "wardkeep egress");
        let certificate = params.signed_by(&key, &self.authority)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        let mut made = made();
        if made.len() < KEPT {
            made.insert(name.to_owned(), Arc::clone(&config));
        }
        Ok(config)
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inspection").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// What comes out of TLS, as a connection like any other.
fn carried<T>(mut tls: T) -> io::Result<Stream>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut inner, outer) = UnixStream::pair()?;
    // It ends with either side.
    tokio::spawn(async move {
        let _ = tokio::io::copy_bidirectional(&mut tls, &mut inner).await;
    });
    Ok(Stream::from(outer))
}

/// A connection of which some bytes were read before.
struct Replayed {
    begun: Vec<u8>,
    at: usize,
    stream: Stream,
}

impl AsyncRead for Replayed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = (self.begun.len() - self.at).min(buffer.remaining());
        if count > 0 {
            buffer.put_slice(&self.begun[self.at..self.at + count]);
            self.at += count;
            return Poll::Ready(Ok(()));
        }
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Replayed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
