//! What the owner's signed configuration says to the guards.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags, statat};
use serde::Deserialize;
use wardkeep_detect::allow::Allowed;
use wardkeep_detect::rules::OwnRule;
use wardkeep_detect::scan::Detector;
use wardkeep_guard::files::{FilesConfig, SensitiveFiles};
use wardkeep_guard::network::{DEFAULT_MAX_PAYLOAD, Egress, EgressConfig};
use wardkeep_guard::rules::Rules;
use wardkeep_policy::config::Config;
use wardkeep_policy::signed_set::{SIGNED_FILE, SetState};
use wardkeep_policy::store::{CONFIG_FILE, PolicyStore};

/// What decisions are made with.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) detector: Detector,
    pub(super) sensitive: SensitiveFiles,
    pub(super) egress: Egress,
    /// Whether the owner has said how much a request may carry.
    pub(super) payload_set: bool,
    pub(super) rules: Rules,
    /// Workspaces that the owner has signed a policy for.
    pub(super) workspaces: Vec<PathBuf>,
    /// What could not be used, for `status` and records.
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parts {
    detect: Detect,
    guard: Guard,
    egress: Option<EgressConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detect {
    rule: Vec<OwnRule>,
    allow: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Guard {
    files: FilesConfig,
}

/// When the files of the configuration last changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp([Option<(u64, i64, i64, u64)>; 5]);

/// Where the workspaces are listed.
const WORKSPACES: &str = "policy/workspaces.json";

/// Where the stamp is read: the state directory, held open, because every crossing asks.
#[derive(Debug)]
pub(super) struct Stamps(OwnedFd);

impl Stamps {
    pub(super) fn of(policy: &PolicyStore) -> std::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(policy.state(), flags, Mode::empty())?))
    }

    pub(super) fn now(&self) -> Stamp {
        // The time of a change of status: unlike that of the content, nobody can set it.
        let of = |name: &str| {
            let data = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((data.st_ino, data.st_size, data.st_ctime, data.st_ctime_nsec))
        };
        Stamp([of(CONFIG_FILE), of(SIGNED_FILE), of("rules.cedar"), of("rules"), of(WORKSPACES)])
    }
}

/// Reads the configuration. What loosens holds only where it is signed; rules only tighten, so
/// they hold as they stand.
pub(super) fn load(policy: &PolicyStore) -> Settings {
    let mut problems = Vec::new();
    let set = policy.settings().set;
    let signed = set.state == SetState::Valid;
    let mut payload_set = false;
    let parts = match set.files.get(CONFIG_FILE).map(|bytes| Config::parse(bytes)) {
        None => Parts::default(),
        Some(Err(error)) => {
            problems.push(error.to_string());
            Parts::default()
        }
        Some(Ok(config)) => {
            let egress = config.rest.get("egress");
            payload_set = egress.is_some_and(|egress| egress.get("max_payload_size").is_some());
            toml::Value::Table(config.rest).try_into().unwrap_or_else(|error| {
                problems.push(format!("config.toml: {error}"));
                Parts::default()
            })
        }
    };
    let mut parts = parts;
    if !signed {
        parts = parts.only_what_tightens(&mut problems);
        payload_set &= parts.most() < DEFAULT_MAX_PAYLOAD;
    }
    let key = policy.key().ok().map(|key| key.derive("allowed findings"));
    let mut detector = Detector::new();
    if let Some(key) = key {
        match Allowed::new(key, parts.detect.allow.iter().map(String::as_str)) {
            Ok(allowed) => detector = detector.with_allowed(allowed),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if !parts.detect.rule.is_empty() {
        detector = match detector.with_rules(&parts.detect.rule) {
            Ok(detector) => detector,
            Err(error) => {
                problems.push(error.to_string());
                Detector::new()
            }
        };
    }
    let rules = crate::rules::in_force(&set);
    problems.extend(rules.problems().iter().map(|problem| problem.summary()));
    let sensitive = SensitiveFiles::new(&parts.guard.files).unwrap_or_else(|error| {
        problems.push(error.to_string());
        SensitiveFiles::default()
    });
    let egress = parts.egress.unwrap_or_default();
    let egress = Egress::new(&egress).unwrap_or_else(|error| {
        problems.push(error.to_string());
        closed()
    });
    let workspaces = policy.workspaces();
    Settings { detector, sensitive, egress, payload_set, rules, workspaces, problems }
}

/// Which hosts the owner's configuration allows and blocks, as the guards take it.
#[must_use]
pub fn egress_in_force(policy: &PolicyStore) -> Egress {
    load(policy).egress
}

/// Where nobody may go anywhere: what holds while the owner's list cannot be read.
fn closed() -> Egress {
    let config =
        EgressConfig { allowed_domains: vec![NOWHERE.to_owned()], ..EgressConfig::default() };
    Egress::new(&config).unwrap_or_default()
}

/// A name that nothing has.
const NOWHERE: &str = "nowhere.invalid";

impl Parts {
    /// Bytes that a request may carry.
    fn most(&self) -> u64 {
        self.egress.as_ref().map_or(DEFAULT_MAX_PAYLOAD, |egress| egress.max_payload_size)
    }

    /// What an unsigned configuration may say: only what tightens.
    fn only_what_tightens(self, problems: &mut Vec<String>) -> Self {
        let egress = self.egress.map(|given| {
            let default = EgressConfig::default();
            let mut tight = given;
            tight.blocked_domains.extend(default.blocked_domains);
            tight.blocked_ip_ranges.extend(default.blocked_ip_ranges);
            tight.flag_patterns.extend(default.flag_patterns);
            tight.max_payload_size = tight.max_payload_size.min(default.max_payload_size);
            if !tight.allowed_domains.is_empty() {
                // Others than these may not be asked; whether these may, only a signature says.
                problems.push(
                    "`allowed_domains` is not signed, so that no host is allowed: run \
                     `wardkeep config sign`"
                        .to_owned(),
                );
                tight.allowed_domains = vec![NOWHERE.to_owned()];
            }
            tight
        });
        let files = FilesConfig { allowed: Vec::new(), ..self.guard.files };
        Self { detect: Detect { allow: Vec::new(), ..self.detect }, guard: Guard { files }, egress }
    }
}
