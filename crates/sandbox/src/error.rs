//! Why there is no confinement, and so no program.

use std::path::PathBuf;

use rustix::io::Errno;

use crate::spec::Layer;

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A layer is not to be had.
    #[error("the layer `{layer}` is not available: {why}; {how}")]
    Unavailable {
        /// The layer.
        layer: Layer,
        /// Why not.
        why: String,
        /// How to get it.
        how: &'static str,
    },
    /// A path that was named cannot be used.
    #[error("`{path}` {what}")]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// There is no program to start.
    #[error("no program was named: give one behind `--`")]
    NoCommand,
    /// A text holds a byte that no path, argument or variable can hold.
    #[error("an argument or variable holds a zero byte: leave it out")]
    ZeroByte,
    /// A step of the set-up failed; the program was not started.
    #[error("cannot {step}{}: {errno}", about(.subject))]
    Step {
        /// The step.
        step: Step,
        /// What it was about.
        subject: Option<String>,
        /// What the system said.
        errno: Errno,
    },
    /// The program cannot be started in the confinement.
    #[error("cannot run `{program}` inside the confinement: {errno}")]
    Program {
        /// The program.
        program: String,
        /// What the system said.
        errno: Errno,
    },
    /// The confined side ended before the program was started.
    #[error("the confined process ended before its program was started")]
    Ended,
}

fn about(subject: &Option<String>) -> String {
    subject.as_ref().map(|subject| format!(" (`{subject}`)")).unwrap_or_default()
}

macro_rules! steps {
    ($($name:ident = $text:literal,)*) => {
        /// A step of the set-up.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Step {
            $(#[doc = $text] $name,)*
        }

        impl Step {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// What is done in it, to read behind "cannot".
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

steps! {
    Prepare = "prepare",
    Fork = "start a process",
    Tie = "tie the confined process to this one",
    Map = "map the user into the namespace",
    Network = "make a network of its own",
    Private = "make the mounts private",
    Source = "open what is to be shown",
    Root = "mount a new root",
    Folder = "make a folder in the new root",
    Mount = "mount",
    Proc = "mount `/proc`",
    Terminals = "mount `/dev/pts`",
    Names = "guard a name in the workspace",
    Pivot = "change to the new root",
    Landlock = "put Landlock in force",
    Capabilities = "drop the capabilities",
    Terminal = "make a terminal",
    Session = "begin a session",
    Limits = "set limits",
    Descriptors = "close descriptors",
    Seccomp = "put the filter of system calls in force",
    Watch = "hand over the watch over system calls",
    Directory = "change to the folder",
    Exec = "run the program",
    Proxy = "listen for the proxy",
    Wait = "wait for the confined process",
}

impl std::fmt::Display for Step {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(self.as_str())
    }
}

/// A failure, small enough to be told over a pipe without allocating.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
    /// Which of several.
    pub(crate) index: u32,
}

impl Failure {
    /// Marks the errors of a step.
    pub(crate) fn at(step: Step, index: usize) -> impl Fn(Errno) -> Self {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        move |errno| Self { step, errno, index }
    }

    pub(crate) fn to_bytes(self) -> [u8; 9] {
        let mut bytes = [self.step as u8, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[1..5].copy_from_slice(&self.errno.raw_os_error().to_ne_bytes());
        bytes[5..9].copy_from_slice(&self.index.to_ne_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 9]) -> Self {
        let step = Step::ALL.get(usize::from(bytes[0])).copied().unwrap_or(Step::Prepare);
        let errno = i32::from_ne_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        let index = u32::from_ne_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        Self { step, errno: Errno::from_raw_os_error(errno), index }
    }
}
