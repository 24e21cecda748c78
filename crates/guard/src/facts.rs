//! What rules see of an action.

use wardkeep_detect::finding::{Category, Verdict as ScanVerdict};
use wardkeep_evidence::record::Principal;

use crate::surface::{Act, Surface};
use crate::taint::Taint;

/// Everything that a rule can ask, resolved and looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// On whose behalf.
    pub principal: Principal,
    /// Where it crosses.
    pub surface: Surface,
    /// What is done.
    pub act: Act,
    /// Taint of the parents that were named, of the content itself, and of what it repeats.
    pub direct: Taint,
    /// Taint of everything that the session has seen.
    pub ambient: Taint,
    /// What a scan of the content said.
    pub scan: ScanVerdict,
    /// Kinds of findings in it, each once.
    pub categories: Vec<Category>,
    /// Whether the owner has approved exactly this.
    pub approved: bool,
    /// The subject in words: a path, a URL, a key, the name of a tool or skill.
    pub subject: String,
    /// More about a file.
    pub file: Option<FileFacts>,
    /// More about a request that leaves.
    pub network: Option<NetworkFacts>,
    /// What was made of a skill.
    pub skill: Option<SkillFacts>,
    /// What was made of the confinement.
    pub sandbox: Option<Compliance>,
    /// Whether the trusted proxies are so many that anyone may be one.
    pub open_proxy: bool,
}

impl Facts {
    /// Facts of which nothing more is known.
    #[must_use]
    pub fn new(
        principal: Principal,
        surface: Surface,
        act: Act,
        subject: impl Into<String>,
    ) -> Self {
        Self {
            principal,
            surface,
            act,
            direct: Taint::NONE,
            ambient: Taint::NONE,
            scan: ScanVerdict::Clean,
            categories: Vec::new(),
            approved: false,
            subject: subject.into(),
            file: None,
            network: None,
            skill: None,
            sandbox: None,
            open_proxy: false,
        }
    }

    /// Direct and ambient taint.
    #[must_use]
    pub fn taint(&self) -> Taint {
        self.direct | self.ambient
    }
}

/// How a file is kept from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protection {
    /// It is not.
    None,
    /// Its changes are watched.
    Watched,
    /// It changes by staging and the owner's approval.
    Protected,
    /// It is never written through a tool: policy, manifest, settings, state.
    Sealed,
}

/// How a file is kept from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sensitivity {
    /// It is not.
    None,
    /// What is read from it may hold secrets.
    Tainted,
    /// Only the owner reads it.
    Denied,
    /// Nobody reads it through a tool: the state directory.
    Sealed,
}

/// A file, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// The real path.
    pub path: String,
    /// Whether it is of the agent's durable memory.
    pub memory: bool,
    /// How it is kept from being written.
    pub protection: Protection,
    /// How it is kept from being read.
    pub sensitivity: Sensitivity,
    /// Whether it could be told which file it is.
    pub resolved: bool,
}

/// A request that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkFacts {
    /// The scheme, in lower case.
    pub scheme: String,
    /// The host, canonical; empty where there is none.
    pub host: String,
    /// The port, if it is not the scheme's own.
    pub port: Option<u16>,
    /// The method, in upper case.
    pub method: String,
    /// Bytes that are sent.
    pub payload: u64,
    /// Whether the owner allows the host by name.
    pub allowed: bool,
    /// Whether there is a list of allowed hosts at all.
    pub listed: bool,
    /// Whether the host is on the blocklist, or a service that takes in whatever is sent.
    pub blocked: bool,
    /// Whether it is an address inside the machine or its network: private, link-local, loopback.
    pub internal: bool,
    /// Whether it is an address at which a cloud hands out credentials.
    pub metadata: bool,
    /// Whether more is sent than the owner allows.
    pub oversized: bool,
    /// Whether the request looks like a way to carry data out.
    pub exfiltration: bool,
    /// Whether it could be parsed at all.
    pub resolved: bool,
}

/// What was made of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkillFacts {
    /// Nothing was found.
    Clean,
    /// A person has to look.
    Doubtful,
    /// It is malicious.
    Malicious,
}

/// What was made of the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compliance {
    /// As the profile demands.
    Full,
    /// Some of it.
    Partial,
    /// None of it.
    None,
}
