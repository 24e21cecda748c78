//! How the proxy works.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderMap;
use hyper::http::uri::Scheme;
use rustls::pki_types::CertificateDer;
use wardkeep_policy::wrap::SessionKey;

use super::judge::Watch;
use super::meter::Meter;

/// The name of the upstream for everything.
const DEFAULT: &str = "default";

/// A model API that requests are passed on to.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The first part of the path that leads to it.
    pub name: String,
    base: Uri,
    /// Whether nobody has named it.
    known: bool,
}

/// Why an address is no upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a model API: give NAME=https://HOST[:PORT][/PATH]")]
pub struct BadUpstream(String);

impl Upstream {
    /// An upstream by its name and address.
    ///
    /// # Errors
    /// When the name or address cannot be used.
    pub fn new(name: &str, url: &str) -> Result<Self, BadUpstream> {
        let bad = || BadUpstream(format!("{name}={}", without_password(url)));
        let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        let base: Uri = url.trim_end_matches('/').parse().map_err(|_| bad())?;
        let known = base.scheme() == Some(&Scheme::HTTP) || base.scheme() == Some(&Scheme::HTTPS);
        let authority = base.authority().is_some_and(|host| !host.as_str().contains('@'));
        if name.is_empty()
            || !name.chars().all(plain)
            || !known
            || !authority
            || base.query().is_some()
        {
            return Err(bad());
        }
        Ok(Self { name: name.to_owned(), base, known: false })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        self.base.to_string()
    }

    /// As an error names it: by its host, too.
    pub(super) fn shown(&self) -> String {
        format!("`{}` ({})", self.name, self.host())
    }

    pub(super) fn is_tls(&self) -> bool {
        self.base.scheme() == Some(&Scheme::HTTPS)
    }

    pub(super) fn host(&self) -> &str {
        self.base.authority().map_or("", |authority| authority.as_str())
    }

    /// The address of a path and query below it.
    pub(super) fn uri(&self, rest: &str) -> Option<Uri> {
        let base = self.base.path().trim_end_matches('/');
        Uri::builder()
            .scheme(self.base.scheme_str()?)
            .authority(self.base.authority()?.clone())
            .path_and_query(format!("{base}{rest}"))
            .build()
            .ok()
    }
}

/// An address as it may be shown.
fn without_password(url: &str) -> String {
    let start = url.find("//").map_or(0, |at| at + 2);
    // A password may hold signs that end a host.
    match url[start..].rfind('@') {
        Some(at) => format!("{}…{}", &url[..start], &url[start + at..]),
        None => url.to_owned(),
    }
}

/// What of a request or reply is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// The policy block stands last.
    pub block: bool,
    /// Tool results are marked as data.
    pub mark: bool,
    /// Tool calls are held and judged.
    pub judge: bool,
    /// Text of replies is held against secrets and the system prompt.
    pub redact: bool,
}

impl Features {
    /// All of them.
    pub const ALL: Self = Self { block: true, mark: true, judge: true, redact: true };
    /// None: everything passes byte for byte, unread.
    pub const NONE: Self = Self { block: false, mark: false, judge: false, redact: false };
}

/// How much, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time; more wait.
    pub connections: usize,
    /// Exchanges at a time, over all connections; more wait.
    pub exchanges: usize,
    /// Connections to one model API that are kept while nobody uses them.
    pub idle: usize,
    /// Bytes of a request that is read.
    pub request: usize,
    /// Bytes of a reply that comes in one document.
    pub reply: usize,
    /// Bytes of all requests and replies together that are read whole at one time.
    pub bodies: usize,
    /// Bytes of a body that is handed to the judge to be kept.
    pub kept: usize,
    /// Bytes of one event of a stream.
    pub event: usize,
    /// How long a client may take to send its head.
    pub head: Duration,
    /// How long a client may take to send its body.
    pub body: Duration,
    /// How long the model may take to begin its reply, and between two parts of it.
    pub silence: Duration,
    /// How long an open reply may take to end when the proxy is to end.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 2048,
            exchanges: 1 << 16,
            idle: 256,
            request: 64 << 20,
            reply: 64 << 20,
            bodies: 512 << 20,
            kept: 16 << 20,
            event: 16 << 20,
            head: Duration::from_secs(15),
            body: Duration::from_secs(120),
            silence: Duration::from_secs(600),
            farewell: Duration::from_secs(10),
        }
    }
}

/// How the proxy works.
#[derive(Clone)]
pub struct Config {
    /// Where requests go, by the first part of their path; without one, by their form.
    pub upstreams: Vec<Upstream>,
    /// What is changed.
    pub features: Features,
    /// How much, and for how long.
    pub limits: Limits,
    /// What every client has to know: it stands in the path before all else, or in the header
    /// `x-wardkeep-token`.
    pub token: Option<String>,
    /// Names that clients may use for this machine, besides those of loopback.
    pub hosts: Vec<String>,
    /// Whether requests that are not understood are refused rather than passed on.
    pub strict: bool,
    /// Makes the nonces of marks; the same key gives the same marks after a restart.
    pub key: SessionKey,
    /// Makes names of sessions.
    pub seed: [u8; 16],
    /// Certificates of authorities that are trusted besides the system's.
    pub authorities: Vec<CertificateDer<'static>>,
    /// What is expected to stand last before the first request has told it: questions how long a request
    /// would be count it.
    pub block: Option<String>,
    /// Tells what would stand last now: asked where a request ends with something like it, as behind
    /// another proxy of the same owner.
    pub block_now: Option<Arc<dyn Fn() -> Option<String> + Send + Sync>>,
    /// Whether bodies are handed to the judge to be kept.
    pub keep: bool,
    /// Who is told what is changed.
    pub watch: Option<Arc<dyn Watch>>,
    /// What went through, counted.
    pub meter: Arc<Meter>,
}

impl Config {
    /// With all features, default limits, and the public APIs as upstreams.
    #[must_use]
    pub fn new(key: SessionKey, seed: [u8; 16]) -> Self {
        let known = [
            ("anthropic", "https://api.anthropic.com"),
            ("openai", "https://api.openai.com"),
            ("gemini", "https://generativelanguage.googleapis.com"),
            ("ollama", "http://127.0.0.1:11434"),
        ];
        Self {
            upstreams: known
                .iter()
                .filter_map(|(name, url)| Upstream::new(name, url).ok())
                .map(|upstream| Upstream { known: true, ..upstream })
                .collect(),
            features: Features::ALL,
            limits: Limits::default(),
            token: None,
            hosts: Vec::new(),
            strict: false,
            key,
            seed,
            authorities: Vec::new(),
            block: None,
            block_now: None,
            keep: false,
            watch: None,
            meter: Arc::default(),
        }
    }

    /// Trusts the certificates in a PEM file for upstreams, besides those of the system.
    ///
    /// # Errors
    /// When there are none, or one cannot be read.
    pub fn trust_pem(&mut self, pem: &[u8]) -> std::io::Result<()> {
        use rustls::pki_types::pem::PemObject as _;
        let before = self.authorities.len();
        for one in CertificateDer::pem_slice_iter(pem) {
            self.authorities.push(one.map_err(std::io::Error::other)?);
        }
        if self.authorities.len() == before {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "there are none"));
        }
        Ok(())
    }

    /// Adds an upstream; one of the same name is replaced. With one for everything (`default`) the public
    /// APIs are no longer known: a path that begins with the name of one is a path of that server.
    pub fn add(&mut self, upstream: Upstream) {
        let everything = upstream.name == DEFAULT;
        self.upstreams.retain(|one| one.name != upstream.name && !(everything && one.known));
        self.upstreams.push(upstream);
    }

    /// The upstream of a request by its path, and what is left of the path. Where several APIs have that path, whose
    /// headers it bears: a key goes to nobody else.
    pub(super) fn route<'p>(
        &self,
        path: &'p str,
        headers: &HeaderMap,
    ) -> Option<(&Upstream, &'p str)> {
        let named = path.strip_prefix('/').and_then(|rest| {
            let name = rest.split('/').next().unwrap_or_default();
            let upstream = self.upstreams.iter().find(|one| one.name == name)?;
            let left = &rest[name.len()..];
            Some((upstream, if left.is_empty() { "/" } else { left }))
        });
        named.or_else(|| {
            let guess = match path {
                path if path.starts_with("/v1/messages") => "anthropic",
                path if path.starts_with("/v1beta/") || path.starts_with("/v1alpha/") => "gemini",
                path if path.starts_with("/api/") => "ollama",
                _ if headers.contains_key("anthropic-version") => "anthropic",
                _ if headers.contains_key("x-goog-api-key") => "gemini",
                _ => "openai",
            };
            let found = self.upstreams.iter().find(|one| one.name == DEFAULT);
            let found = found.or_else(|| self.upstreams.iter().find(|one| one.name == guess));
            Some((found?, path))
        })
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("upstreams", &self.upstreams)
            .field("features", &self.features)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_upstreams() {
        let mut config = Config::new(SessionKey::new([1; 32]), [1; 16]);
        let to = |config: &Config, path: &str| {
            config
                .route(path, &HeaderMap::new())
                .map(|(one, rest)| (one.name.clone(), rest.to_owned()))
        };
        let found = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(to(&config, "/v1/messages"), found("anthropic", "/v1/messages"));
        assert_eq!(to(&config, "/openai/v1/responses"), found("openai", "/v1/responses"));
        assert_eq!(to(&config, "/v1/models"), found("openai", "/v1/models"));
        assert_eq!(to(&config, "/v1beta/models"), found("gemini", "/v1beta/models"));
        assert_eq!(to(&config, "/api/tags"), found("ollama", "/api/tags"));
        let mut claude = HeaderMap::new();
        claude.insert("anthropic-version", "2023-06-01".parse().unwrap());
        assert_eq!(config.route("/v1/models", &claude).unwrap().0.name, "anthropic");
        config.add(Upstream::new("gemini", "http://127.0.0.1:2").unwrap());
        config.add(Upstream::new("default", "http://127.0.0.1:1/base/").unwrap());
        assert_eq!(to(&config, "/v1/messages"), found("default", "/v1/messages"));
        // The keys of that server go to nobody else.
        for path in ["/openai/deployments/d/chat/completions", "/anthropic/v1/messages", "/ollama"]
        {
            assert_eq!(to(&config, path), found("default", path));
        }
        assert_eq!(to(&config, "/gemini/v1beta/models"), found("gemini", "/v1beta/models"));
        config.add(Upstream::new("openai", "http://127.0.0.1:3").unwrap());
        assert_eq!(to(&config, "/openai/v1/models"), found("openai", "/v1/models"));
        let (upstream, _) = config.route("/x", &HeaderMap::new()).unwrap();
        assert_eq!(upstream.uri("/x?y=1").unwrap().to_string(), "http://127.0.0.1:1/base/x?y=1");
    }

    #[test]
    fn bad_upstreams_are_refused() {
        for (name, url) in [
            ("", "http://a"),
            ("a/b", "http://a"),
            ("a", "ftp://a"),
            ("a", "a"),
            ("a", "http://user:key@a"),
            ("a", "http://a/?q"),
        ] {
            assert!(Upstream::new(name, url).is_err(), "{name} {url}");
        }
        let told = Upstream::new("a", "http://user:s3cret@host/p").unwrap_err().to_string();
        assert!(!told.contains("s3cret") && told.contains("@host/p"), "{told}");
    }
}
