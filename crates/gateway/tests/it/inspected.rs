//! TLS that the proxy looks into.

use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use wardkeep_gateway::egress::{Inspection, Way};

use super::lab::{ALLOWED, Lab, Proxy, Seen, status};

/// An authority of the made-up Internet.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    roots: RootCertStore,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        Self { issuer: Issuer::new(params, key), roots }
    }

    /// A host that answers over TLS, with a certificate for `name`.
    fn host(&self, lab: &mut Lab, name: &str, address: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        lab.wire(address, 443, listener.local_addr().unwrap());
        let seen = Arc::clone(&lab.seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                std::thread::spawn(move || block_on(serve(acceptor, seen, stream)));
            }
        });
    }
}

fn provider() -> Arc<tokio_rustls::rustls::crypto::CryptoProvider> {
    Arc::new(tokio_rustls::rustls::crypto::ring::default_provider())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn serve(acceptor: TlsAcceptor, seen: Arc<Seen>, stream: TcpStream) {
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(stream).unwrap();
    let Ok(mut tls) = acceptor.accept(stream).await else { return };
    let mut bytes = vec![0; 4096];
    let count = tls.read(&mut bytes).await.unwrap_or(0);
    seen.origin.lock().unwrap().push(("tls".to_owned(), bytes[..count].to_vec()));
    let _ = tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ninside").await;
    let _ = tls.shutdown().await;
}

/// Sends a request through a tunnel and TLS, trusting only `pem`.
fn ask(proxy: &Proxy, host: &str, pem: &str, request: &str) -> Result<String, String> {
    let (status, stream) = proxy.tunnel(&format!("{host}:443"));
    assert_eq!(status, 200);
    stream.set_nonblocking(true).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    block_on(async {
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let mut tls = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
        tls.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        let _ = tls.read_to_end(&mut answer).await;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    })
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n")
}

#[test]
fn requests_inside_of_tls_are_judged() {
    let mut lab = Lab::new();
    lab.allow = vec!["GET,POST allowed.test".to_owned()];
    let authority = Authority::new();
    authority.host(&mut lab, "allowed.test", ALLOWED);
    let inspection =
        Inspection::new(vec!["allowed.test".parse().unwrap()], authority.roots.clone()).unwrap();
    let inspection = Arc::new(inspection);
    let pem = inspection.certificate().to_owned();
    lab.change = Some(Box::new(move |config| config.inspection = Some(inspection)));
    let proxy = lab.start();

    let answer = ask(&proxy, "allowed.test", &pem, &get("/a?b=c")).unwrap();
    assert!(answer.ends_with("inside"), "{answer}");
    let decided = proxy.seen.decided.lock().unwrap().clone();
    assert_eq!((decided.len(), decided[0].way), (1, Way::Inspected));
    assert_eq!(decided[0].url, "https://allowed.test/a?b=c");
    assert!(proxy.seen.origin_text().starts_with("GET /a?b=c HTTP/1.1\r\nHost: allowed.test\r\n"));
    // Of those that are looked into none is used again.
    assert!(proxy.seen.origin_text().contains("\r\nConnection: close\r\n"));

    // A secret, another method, another host, a lookup of names.
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAA\
               AAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACDmZ3Vlc3NlZG5vYm9keXdvdWxkYmVsaWV2ZQ\n\
               -----END OPENSSH PRIVATE KEY-----\n";
    let post = format!(
        "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: {}\r\n\r\n{key}",
        key.len()
    );
    let token = ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat();
    let with = |line: String| get("/").replace("Connection", &format!("{line}\r\nConnection"));
    let dials = proxy.seen.dials();
    for (request, rule) in [
        (post, "egress-secret"),
        (with(format!("X-Data: {token}")), "egress-secret"),
        (with(format!("Authorization: Bearer {token}")), "egress-secret"),
        (get(&format!("/?q={}", token.replace("gl", "%67%6C"))), "egress-secret"),
        (get("/").replace("GET", "DELETE"), "egress-method"),
        (get("/").replace("allowed.test", "evil.test"), "egress-host"),
        (get("/dns-query?name=a"), "egress-name-lookup"),
    ] {
        let answer = ask(&proxy, "allowed.test", &pem, &request).unwrap();
        assert!([400, 403].contains(&status(&answer)), "{answer}");
        assert!(answer.contains(rule), "{answer}");
    }
    assert_eq!(proxy.seen.dials(), dials);
}

#[test]
fn a_credential_goes_to_its_own_host_inside_of_tls() {
    let mut lab = Lab::new();
    lab.allow = vec!["gitlab.com".to_owned()];
    lab.name("gitlab.com", &[ALLOWED]);
    let authority = Authority::new();
    authority.host(&mut lab, "gitlab.com", ALLOWED);
    let inspection =
        Inspection::new(vec!["gitlab.com".parse().unwrap()], authority.roots.clone()).unwrap();
    let inspection = Arc::new(inspection);
    let pem = inspection.certificate().to_owned();
    lab.change = Some(Box::new(move |config| config.inspection = Some(inspection)));
    let proxy = lab.start();
    let token = ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat();
    let request = format!(
        "GET /api/v4/user HTTP/1.1\r\nHost: gitlab.com\r\nPrivate-Token: {token}\r\n\
         Connection: close\r\n\r\n"
    );
    let answer = ask(&proxy, "gitlab.com", &pem, &request).unwrap();
    assert!(answer.ends_with("inside"), "{answer}");
    assert!(proxy.seen.origin_text().contains(&token));
    let decided = format!("{:?}", proxy.seen.decided.lock().unwrap());
    assert!(!decided.contains(&token), "{decided}");
}

#[test]
fn a_host_that_cannot_be_trusted_is_not_spoken_to() {
    let mut lab = Lab::new();
    Authority::new().host(&mut lab, "allowed.test", ALLOWED);
    let trusted = Authority::new().roots;
    let inspection = Inspection::new(vec!["allowed.test".parse().unwrap()], trusted).unwrap();
    let inspection = Arc::new(inspection);
    let pem = inspection.certificate().to_owned();
    lab.change = Some(Box::new(move |config| config.inspection = Some(inspection)));
    let proxy = lab.start();
    let answer = ask(&proxy, "allowed.test", &pem, &get("/")).unwrap();
    assert_eq!(status(&answer), 502, "{answer}");
    assert_eq!(proxy.seen.origin_text(), "");
}
