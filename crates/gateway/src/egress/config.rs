//! How a proxy works.

use std::fmt;
use std::sync::Arc;

use super::budget::Limits;
use super::decider::{Ask, Decider};
use super::resolve::{Dial, Resolve, SystemDialer, SystemResolver};
use super::rules::{Rule, Rules};

/// How a proxy works.
#[derive(Clone)]
pub struct Config {
    /// Which hosts may be reached.
    pub rules: Rules,
    /// How much, and for how long.
    pub limits: Limits,
    /// What whoever connects has to know, if anything.
    pub credential: Option<Credential>,
    /// Whether the first message of TLS may hide another name (encrypted client hello). Some
    /// browsers always look as if they did.
    pub hidden_names: bool,
    /// Whether what the proxy can read may hold secrets.
    pub secrets: bool,
    /// Hosts that any credential may be sent to, in headers that are for credentials; private keys
    /// and the like are not.
    pub credentials: Vec<Rule>,
    /// Who is asked about hosts that no rule names.
    pub ask: Option<Arc<dyn Ask>>,
    /// Whose TLS is looked into, if anyone's.
    #[cfg(feature = "inspect")]
    pub inspection: Option<Arc<super::inspect::Inspection>>,
    /// Who looks names up.
    pub resolver: Arc<dyn Resolve>,
    /// Who makes connections.
    pub dialer: Arc<dyn Dial>,
}

impl Config {
    /// With default limits, by the system's own resolver.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            limits: Limits::default(),
            credential: None,
            hidden_names: false,
            secrets: false,
            credentials: Vec::new(),
            ask: None,
            #[cfg(feature = "inspect")]
            inspection: None,
            resolver: Arc::new(SystemResolver::default()),
            dialer: Arc::new(SystemDialer),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("rules", &self.rules)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Name and password of one run.
#[derive(Clone)]
pub struct Credential {
    name: String,
    password: String,
}

impl Credential {
    /// A name and password.
    #[must_use]
    pub fn new(name: impl Into<String>, password: impl Into<String>) -> Self {
        Self { name: name.into(), password: password.into() }
    }

    /// Whether these are they; takes as long whatever is wrong about them.
    pub(super) fn matches(&self, name: &[u8], password: &[u8]) -> bool {
        use subtle::ConstantTimeEq as _;
        let name = self.name.as_bytes().ct_eq(name);
        let password = self.password.as_bytes().ct_eq(password);
        (name & password).into()
    }

    /// Whether a `Proxy-Authorization` header says so.
    pub(super) fn matches_basic(&self, value: &[u8]) -> bool {
        use base64::Engine as _;
        let Some((scheme, coded)) = value.split_at_checked(6) else { return false };
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return false;
        }
        let engine = base64::engine::general_purpose::STANDARD;
        let Ok(said) = engine.decode(coded.trim_ascii()) else { return false };
        let Some(colon) = said.iter().position(|byte| *byte == b':') else { return false };
        self.matches(&said[..colon], &said[colon + 1..])
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// A decider that may be shared.
pub(super) type SharedDecider = Arc<dyn Decider>;
