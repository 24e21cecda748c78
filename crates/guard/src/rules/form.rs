//! Facts as a person or a record writes them down.

use serde::{Deserialize, Serialize};
use url::Url;
use wardkeep_detect::finding::{Category, Verdict as ScanVerdict};
use wardkeep_evidence::check::printable;
use wardkeep_evidence::record::Principal;

use super::names::Named;
use crate::facts::{
    Compliance, Facts, FileFacts, NetworkFacts, Protection, Sensitivity, SkillFacts,
};
use crate::surface::{Act, Surface};
use crate::taint::Taint;

/// Facts in words. Only the first three members are needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FactsForm {
    /// `USER`, `WEB` …
    pub principal: String,
    /// `FileSystem` …
    pub surface: String,
    /// `write` …
    pub act: String,
    /// A path, a URL, a key, the name of a tool or skill.
    pub subject: String,
    /// Names of taint flags.
    pub direct: Vec<String>,
    /// Names of taint flags.
    pub ambient: Vec<String>,
    /// `clean`, `suspicious`, `block`.
    pub scan: Option<String>,
    /// Kinds of findings.
    pub categories: Vec<String>,
    /// Whether the owner has approved exactly this.
    pub approved: bool,
    /// More about a file.
    pub file: Option<FileForm>,
    /// More about a request.
    pub network: Option<NetworkForm>,
    /// `clean`, `doubtful`, `malicious`.
    pub skill: Option<String>,
    /// `full`, `partial`, `none`.
    pub sandbox: Option<String>,
    /// Whether anyone may be a trusted proxy.
    pub open_proxy: bool,
}

/// A file in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileForm {
    /// The real path; the subject, if it is not given.
    pub path: Option<String>,
    /// Whether it is of the durable memory; as the surface, if it is not given.
    pub memory: Option<bool>,
    /// `none`, `watched`, `protected`, `sealed`.
    pub protection: Option<String>,
    /// `none`, `tainted`, `denied`, `sealed`.
    pub sensitivity: Option<String>,
    /// Whether it could be told which file it is; yes, if it is not given.
    pub resolved: Option<bool>,
}

/// A request in words. `url` stands for scheme, host and port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkForm {
    /// The URL; the subject, if neither it nor a host is given.
    pub url: Option<String>,
    /// The scheme.
    pub scheme: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// The port, if it is not the scheme's own.
    pub port: Option<u16>,
    /// The method; `GET`, if it is not given.
    pub method: Option<String>,
    /// Bytes that are sent.
    pub payload: u64,
    /// As [`NetworkFacts::allowed`].
    pub allowed: bool,
    /// As [`NetworkFacts::listed`].
    pub listed: bool,
    /// As [`NetworkFacts::blocked`].
    pub blocked: bool,
    /// As [`NetworkFacts::internal`].
    pub internal: bool,
    /// As [`NetworkFacts::metadata`].
    pub metadata: bool,
    /// As [`NetworkFacts::oversized`].
    pub oversized: bool,
    /// As [`NetworkFacts::exfiltration`].
    pub exfiltration: bool,
    /// Whether it could be parsed; as it can, if it is not given.
    pub resolved: Option<bool>,
}

/// Whether what is not said is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// A file act is about an ordinary file of the subject's name, a request goes to the subject.
    Filled,
    /// What is not said is not known.
    Left,
}

/// A word that is not of its list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{given}`: give one of {known}")]
pub struct FormError {
    what: &'static str,
    given: String,
    known: String,
}

impl FactsForm {
    /// The facts.
    ///
    /// # Errors
    /// When a word is not of its list.
    pub fn facts(&self, gaps: Gaps) -> Result<Facts, FormError> {
        let principal = word::<Principal>(&self.principal)?;
        let surface = word::<Surface>(&self.surface)?;
        let act = word::<Act>(&self.act)?;
        let mut facts = Facts::new(principal, surface, act, self.subject.clone());
        facts.direct = taint(&self.direct)?;
        facts.ambient = taint(&self.ambient)?;
        facts.scan = optional::<ScanVerdict>(self.scan.as_ref())?.unwrap_or(ScanVerdict::Clean);
        facts.categories =
            self.categories.iter().map(|name| word::<Category>(name)).collect::<Result<_, _>>()?;
        facts.approved = self.approved;
        facts.skill = optional::<SkillFacts>(self.skill.as_ref())?;
        facts.sandbox = optional::<Compliance>(self.sandbox.as_ref())?;
        facts.open_proxy = self.open_proxy;
        let filled = gaps == Gaps::Filled;
        let (no_file, no_network) = (FileForm::default(), NetworkForm::default());
        let on_file = filled && (act == Act::Read || act.changes_file());
        if let Some(file) = self.file.as_ref().or(on_file.then_some(&no_file)) {
            facts.file = Some(file.facts(&facts)?);
        }
        let sends = filled && act == Act::Send;
        if let Some(network) = self.network.as_ref().or(sends.then_some(&no_network)) {
            facts.network = Some(network.facts(&facts));
        }
        Ok(facts)
    }
}

impl From<&Facts> for FactsForm {
    fn from(facts: &Facts) -> Self {
        let names = |taint: Taint| taint.names().map(str::to_owned).collect();
        Self {
            principal: facts.principal.name().to_owned(),
            surface: facts.surface.name().to_owned(),
            act: facts.act.name().to_owned(),
            subject: facts.subject.clone(),
            direct: names(facts.direct),
            ambient: names(facts.ambient),
            scan: Some(facts.scan.name().to_owned()),
            categories: facts.categories.iter().map(|one| one.name().to_owned()).collect(),
            approved: facts.approved,
            file: facts.file.as_ref().map(FileForm::from),
            network: facts.network.as_ref().map(NetworkForm::from),
            skill: facts.skill.map(|one| one.name().to_owned()),
            sandbox: facts.sandbox.map(|one| one.name().to_owned()),
            open_proxy: facts.open_proxy,
        }
    }
}

impl FileForm {
    fn facts(&self, facts: &Facts) -> Result<FileFacts, FormError> {
        let protection = optional::<Protection>(self.protection.as_ref())?;
        let sensitivity = optional::<Sensitivity>(self.sensitivity.as_ref())?;
        Ok(FileFacts {
            path: self.path.clone().unwrap_or_else(|| facts.subject.clone()),
            memory: self.memory.unwrap_or(facts.surface == Surface::DurableMemory),
            protection: protection.unwrap_or(Protection::None),
            sensitivity: sensitivity.unwrap_or(Sensitivity::None),
            resolved: self.resolved.unwrap_or(true),
        })
    }
}

impl From<&FileFacts> for FileForm {
    fn from(file: &FileFacts) -> Self {
        Self {
            path: Some(file.path.clone()),
            memory: Some(file.memory),
            protection: Some(file.protection.name().to_owned()),
            sensitivity: Some(file.sensitivity.name().to_owned()),
            resolved: Some(file.resolved),
        }
    }
}

impl NetworkForm {
    fn facts(&self, facts: &Facts) -> NetworkFacts {
        let given = match (&self.url, &self.host) {
            (Some(url), _) => Some(url),
            (None, None) => Some(&facts.subject),
            (None, Some(_)) => None,
        };
        let url = given.and_then(|url| Url::parse(url).ok());
        let read = |part: fn(&Url) -> Option<&str>| url.as_ref().and_then(part).map(str::to_owned);
        let host = self.host.clone().or_else(|| read(Url::host_str)).unwrap_or_default();
        NetworkFacts {
            scheme: self
                .scheme
                .clone()
                .or_else(|| read(|url| Some(url.scheme())))
                .unwrap_or_default(),
            port: self.port.or_else(|| url.as_ref().and_then(Url::port)),
            method: self.method.clone().unwrap_or_else(|| "GET".to_owned()),
            payload: self.payload,
            allowed: self.allowed,
            listed: self.listed,
            blocked: self.blocked,
            internal: self.internal,
            metadata: self.metadata,
            oversized: self.oversized,
            exfiltration: self.exfiltration,
            resolved: self.resolved.unwrap_or(!host.is_empty()),
            host: host.trim_end_matches('.').to_owned(),
        }
    }
}

impl From<&NetworkFacts> for NetworkForm {
    fn from(network: &NetworkFacts) -> Self {
        Self {
            url: None,
            scheme: Some(network.scheme.clone()),
            host: Some(network.host.clone()),
            port: network.port,
            method: Some(network.method.clone()),
            payload: network.payload,
            allowed: network.allowed,
            listed: network.listed,
            blocked: network.blocked,
            internal: network.internal,
            metadata: network.metadata,
            oversized: network.oversized,
            exfiltration: network.exfiltration,
            resolved: Some(network.resolved),
        }
    }
}

fn word<T: Named>(given: &str) -> Result<T, FormError> {
    T::named(given).ok_or_else(|| FormError {
        what: T::WHAT,
        given: printable(given),
        known: T::names().join(", "),
    })
}

fn optional<T: Named>(given: Option<&String>) -> Result<Option<T>, FormError> {
    given.map(|given| word(given)).transpose()
}

fn taint(names: &[String]) -> Result<Taint, FormError> {
    let known: Vec<&str> = Taint::ALL.names().collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            Err(FormError { what: "taint", given: printable(name), known: known.join(", ") })
        }
        None => Ok(Taint::from_names(names.iter().map(String::as_str))),
    }
}
