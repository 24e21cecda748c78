//! Confinement for the code of a skill.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::SandboxError;
use crate::profile::Profiles;
use crate::run::{Prepared, Running};
use crate::seccomp::SeccompProfile;
use crate::spec::{Applied, Spec};

/// How a skill's code is to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillExecutionConfig {
    /// Run it in a process of its own. Nothing else is offered: in this process nothing could be
    /// confined without confining the agent.
    pub use_subprocess: bool,
    /// A seccomp profile in the OCI format, which holds besides ours. It must not lie where the skill may write.
    pub seccomp_profile: Option<PathBuf>,
    /// The first is the skill's own folder, which it may write; the others it may read.
    pub filesystem_allowlist: Vec<PathBuf>,
    /// How long it may run.
    pub timeout_ms: u64,
    /// How much memory each of its processes may take.
    pub max_memory_bytes: u64,
}

/// A confinement that is ready for a skill's code.
#[derive(Debug, Clone)]
pub struct SandboxHandle {
    spec: Spec,
}

/// Works out the confinement for a skill.
///
/// # Errors
/// When what was asked for cannot be had. There is no weaker form that would be given instead.
pub fn prepare_skill_sandbox(config: &SkillExecutionConfig) -> Result<SandboxHandle, SandboxError> {
    let refuse = |path: PathBuf, what: &str| SandboxError::Path { path, what: what.to_owned() };
    let Some((own, others)) = config.filesystem_allowlist.split_first() else {
        return Err(refuse(PathBuf::new(), "names no folder: give the skill's own first"));
    };
    if !config.use_subprocess {
        return Err(refuse(own.clone(), "cannot be run in this process: set `use_subprocess`"));
    }
    let mut spec = Spec::new(own.clone(), Vec::new());
    let profile = config.seccomp_profile.as_deref();
    spec.seccomp = profile.map(SeccompProfile::load).transpose()?;
    if let Ok(profile) = Profiles::default().resolve("skill") {
        profile.apply(&mut spec);
    }
    spec.read = others.to_vec();
    spec.terminal = false;
    if config.timeout_ms > 0 {
        spec.timeout = Some(Duration::from_millis(config.timeout_ms));
    }
    if config.max_memory_bytes > 0 {
        spec.limits.memory = Some(config.max_memory_bytes);
    }
    spec.environment.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    Ok(SandboxHandle { spec })
}

impl SandboxHandle {
    /// Starts a program of the skill. `record` gets what will be in force and must have written it down
    /// when it returns; if it could not, nothing is started.
    ///
    /// # Errors
    /// When it cannot be confined, or not recorded.
    pub fn spawn<E: From<SandboxError>>(
        &self,
        command: Vec<OsString>,
        record: impl FnOnce(&Applied) -> Result<(), E>,
    ) -> Result<Running, E> {
        let spec = Spec { command, ..self.spec.clone() };
        Prepared::new(spec)?.spawn_after(record)
    }
}
