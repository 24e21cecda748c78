//! Confinement of a child by the kernel, and an audit of the surroundings.
//!
//! ```no_run
//! # fn main() -> Result<(), wardkeep_sandbox::SandboxError> {
//! use wardkeep_sandbox::{Prepared, Spec};
//! let spec = Spec::new("/home/me/project".into(), vec!["make".into(), "test".into()]);
//! let running = Prepared::new(spec)?.spawn()?;
//! println!("{:?}", running.applied().layers);
//! println!("ended with {}", running.wait()?.code);
//! # Ok(())
//! # }
//! ```

pub mod audit;
mod cases;
mod child;
mod denial;
mod error;
mod filter;
mod landlock;
pub mod names;
pub mod notify;
pub mod profile;
mod quote;
mod run;
mod seccomp;
mod skill;
mod spec;
mod sys;
mod view;
pub mod walk;

/// Whether this process runs in a confinement with namespaces.
#[must_use]
pub fn is_confined() -> bool {
    std::path::Path::new(view::MARK).exists()
}

/// Who is at the other end of a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The number of the process; none where it is in a namespace that cannot be seen from here.
    pub pid: Option<i32>,
    /// The user.
    pub uid: u32,
}

/// Asks the kernel who is at the other end of a Unix socket. Other bindings have no place for a process without a
/// number, which is what a confined process sees of one outside.
///
/// # Errors
/// When it is no such socket.
pub fn peer_of(socket: impl std::os::fd::AsFd) -> Result<Peer, rustix::io::Errno> {
    sys::peer(socket.as_fd()).map(|(pid, uid)| Peer { pid, uid })
}

pub use denial::{Denial, DenialKind};
pub use error::{SandboxError, Step};
pub use names::{PathPattern, PatternError};
pub use notify::Answer;
pub use quote::quoted;
pub use run::{
    Answers, Ended, LinkOut, Prepared, Question, Remains, Repository, Running, TIMED_OUT,
};
pub use seccomp::{SeccompProfile, SeccompSource};
pub use skill::{SandboxHandle, SkillExecutionConfig, prepare_skill_sandbox};
pub use spec::{Applied, Cpus, Layer, Limits, Missing, Network, Spec};
pub use view::{Explained, NewSettings, SettingsFolder, explain, holds_secrets, sounds_secret};
