//! Asking the daemon.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fstat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wardkeep_sandbox::peer_of;

use super::{
    ANSWER, BadFrame, Code, Frame, FrameError, PROGRAM, PROTOCOL, REFUSAL, Refusal, Timed,
    Versions, read_frame, write_frame,
};

/// Folder of the sockets, in the state directory.
const RUN: &str = "run";

/// Which socket is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `run/monitor.sock`: everything, for those who may.
    Monitor,
    /// `run/hooks.sock`: only what hooks need, whoever asks. It is the one to show to a confined
    /// agent, whose user is the owner's own.
    Hooks,
}

impl Door {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Monitor, Self::Hooks];

    /// Name of the socket in the folder `run`.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor.sock",
            Self::Hooks => "hooks.sock",
        }
    }

    /// Where the socket is.
    #[must_use]
    pub fn path(self, state: &Path) -> PathBuf {
        state.join(RUN).join(self.file_name())
    }
}

/// Why the daemon gave no answer. For whoever asked for leave, each of them is a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// No daemon listens.
    #[error("no daemon listens on `{0}`: start it with `wardkeep daemon`")]
    Absent(PathBuf),
    /// The socket, or who listens on it, is not to be trusted.
    #[error("`{path}` {what}: it is not asked; look who put it there")]
    Unsafe {
        /// The socket or its folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// There was no answer in time.
    #[error("the daemon did not answer within {0:?}: see `wardkeep daemon status`")]
    Deadline(Duration),
    /// The connection ended.
    #[error("the daemon closed the connection: see `wardkeep daemon status`")]
    Closed,
    /// The daemon speaks other versions of the protocol.
    #[error(
        "the daemon ({program}) speaks version {spoken} of the protocol, this program ({PROGRAM}) {PROTOCOL}: run `wardkeep daemon stop` with the older of the two, and start it anew"
    )]
    Version {
        /// What it speaks.
        spoken: Versions,
        /// Its version, harmless.
        program: String,
    },
    /// The daemon refused.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The answer is none.
    #[error("the daemon's answer cannot be read ({0}): see that both are of the same version")]
    Malformed(String),
    /// The question is too long.
    #[error("the question has {0} bytes, more than the daemon takes: ask for less at a time")]
    TooLong(u64),
    /// The connection failed.
    #[error("cannot {action} `{path}` ({error}): see `wardkeep daemon status`")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl WireError {
    /// Whether nobody is there to ask, so that a daemon may be started.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent(_))
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    body: Box<RawValue>,
}

impl Answer {
    /// The JSON as it came.
    #[must_use]
    pub fn json(&self) -> &str {
        self.body.get()
    }

    /// What it says.
    ///
    /// # Errors
    /// When it says something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        serde_json::from_str(self.json()).map_err(|error| WireError::Malformed(error.to_string()))
    }
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    path: PathBuf,
    patience: Duration,
    next: u64,
}

impl Client {
    /// Connects to the daemon of the state directory `state`. Connecting takes `deadline` at most,
    /// and so does each call.
    ///
    /// # Errors
    /// When no daemon listens there, or it is not that of the state directory's owner.
    pub fn connect(state: &Path, deadline: Duration) -> Result<Self, WireError> {
        Self::connect_to(state, Door::Monitor, deadline)
    }

    /// As [`Self::connect`], through a door.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(state: &Path, door: Door, deadline: Duration) -> Result<Self, WireError> {
        let until = Instant::now() + deadline;
        let path = door.path(state);
        let owner = match owner_of(state) {
            Ok(owner) => owner,
            Err(Errno::NOENT) => return Err(WireError::Absent(path)),
            Err(errno) => return Err(failed("read", state, errno)),
        };
        let folder = open_run(state)?;
        let Some((folder, found)) = folder else { return Err(WireError::Absent(path)) };
        if found != owner {
            let what = format!("belongs to user {found}, not to user {owner}");
            return Err(WireError::Unsafe { path: state.join(RUN), what });
        }
        let address = address(&folder, &path, door.file_name())
            .map_err(|errno| failed("connect to", &path, errno))?;
        let stream = connect(&address, &path, until, deadline)?;
        let server = server_of(&stream).map_err(|errno| failed("read", &path, errno))?;
        if server != owner {
            let what = format!("is served by user {server}, not by user {owner}");
            return Err(WireError::Unsafe { path, what });
        }
        Ok(Self { stream, path, patience: deadline, next: 1 })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When it is refused or does not come in time. The connection is of no use afterwards, unless
    /// it was refused.
    pub fn call(&mut self, op: &str, body: &impl Serialize) -> Result<Answer, WireError> {
        let asked = self.ask(op, body)?;
        self.answer(asked)
    }

    /// Asks, for those who have something else to do until they need the answer ([`Self::answer`]).
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn ask(&mut self, op: &str, body: &impl Serialize) -> Result<Asked, WireError> {
        let id = self.next;
        self.next += 1;
        let frame = Frame::new(id, op, body)
            .map_err(|error| WireError::Malformed(format!("the question: {error}")))?;
        let until = Instant::now() + self.patience;
        // Who refuses early may close before all is sent; the answer says why.
        let sent = write_frame(&mut Timed::new(&self.stream, until), &frame);
        if let Err(FrameError::TooLong { size }) = sent {
            return Err(WireError::TooLong(size));
        }
        Ok(Asked { id, until })
    }

    /// Waits for the answer to what was asked last.
    ///
    /// # Errors
    /// As of [`Self::call`].
    pub fn answer(&mut self, asked: Asked) -> Result<Answer, WireError> {
        let mut timed = Timed::new(&self.stream, asked.until);
        let bytes = read_frame(&mut timed).map_err(|error| self.unanswered(error))?;
        answer_to(asked.id, &bytes)
    }

    /// The connection itself, for those who do not wait in a thread of their own: they send what
    /// [`question`] makes, and have [`answer_to`] read what comes.
    #[must_use]
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// The process that listens, as far as the system tells; it may have handed the socket over.
    #[must_use]
    pub fn server_process(&self) -> Option<i32> {
        peer_of(&self.stream).ok().and_then(|found| found.pid)
    }

    fn unanswered(&self, error: FrameError) -> WireError {
        match error {
            FrameError::Closed | FrameError::Truncated => WireError::Closed,
            FrameError::TooSlow => WireError::Deadline(self.patience),
            FrameError::Io(error) => {
                WireError::Io { action: "read from", path: self.path.clone(), error }
            }
            other => WireError::Malformed(other.to_string()),
        }
    }
}

/// A question that was put and not answered yet.
#[derive(Debug)]
pub struct Asked {
    id: u64,
    until: Instant,
}

/// A question as it is sent: its length in four bytes, the lowest first, and then the frame.
///
/// # Errors
/// When it is longer than the daemon takes.
pub fn question(id: u64, op: &str, body: &impl Serialize) -> Result<Vec<u8>, WireError> {
    let frame = Frame::new(id, op, body)
        .map_err(|error| WireError::Malformed(format!("the question: {error}")))?;
    frame.to_bytes().map_err(|error| match error {
        FrameError::TooLong { size } => WireError::TooLong(size),
        other => WireError::Malformed(other.to_string()),
    })
}

/// Reads the frame that answers the question `id`.
///
/// # Errors
/// When it was refused, or the answer is none.
pub fn answer_to(id: u64, bytes: &[u8]) -> Result<Answer, WireError> {
    let answer = Frame::parse(bytes).map_err(|error| match error {
        BadFrame::Version { version, .. } => {
            let version = u32::try_from(version).unwrap_or(u32::MAX);
            let spoken = Versions { from: version, to: version };
            WireError::Version { spoken, program: "of another version".to_owned() }
        }
        BadFrame::Malformed(why) => WireError::Malformed(why),
    })?;
    match answer.op.as_str() {
        // A connection that is refused as a whole has no question yet.
        REFUSAL if answer.id == id || answer.id == 0 => {
            let mut refusal: Refusal =
                answer.read().map_err(|error| WireError::Malformed(error.to_string()))?;
            refusal.program = wardkeep_evidence::check::printable(&refusal.program);
            Err(match refusal.code {
                Code::Version => {
                    let Refusal { protocol: spoken, program, .. } = refusal;
                    WireError::Version { spoken, program }
                }
                _ => WireError::Refused(refusal),
            })
        }
        ANSWER if answer.id == id => Ok(Answer { body: answer.body }),
        _ => Err(WireError::Malformed("it answers another question".to_owned())),
    }
}

/// Connects without waiting longer than `until`: a full queue would hold a plain `connect` for as
/// long as it pleases.
fn connect(
    address: &SocketAddrUnix,
    path: &Path,
    until: Instant,
    deadline: Duration,
) -> Result<UnixStream, WireError> {
    let mut pause = Duration::from_micros(500);
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(|errno| failed("connect to", path, errno))?;
        match rustix::net::connect(&socket, address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                return stream.set_nonblocking(false).map(|()| stream).map_err(|error| {
                    WireError::Io { action: "connect to", path: path.to_owned(), error }
                });
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOENT | Errno::CONNREFUSED) => {
                return Err(WireError::Absent(path.to_owned()));
            }
            Err(errno @ (Errno::LOOP | Errno::PROTOTYPE | Errno::NOTSOCK)) => {
                let what = format!("is no socket of the daemon ({errno})");
                return Err(WireError::Unsafe { path: path.to_owned(), what });
            }
            Err(errno) => return Err(failed("connect to", path, errno)),
        }
        if Instant::now() + pause >= until {
            return Err(WireError::Deadline(deadline));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// The folder of the sockets and whom it belongs to; `None` if it is not there. A link in its
/// place is not followed.
fn open_run(state: &Path) -> Result<Option<(OwnedFd, u32)>, WireError> {
    let path = state.join(RUN);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let what = "is not a directory (links are not followed)".to_owned();
            return Err(WireError::Unsafe { path, what });
        }
        Err(errno) => return Err(failed("open", &path, errno)),
    };
    let stat = fstat(&folder).map_err(|errno| failed("read", &path, errno))?;
    Ok(Some((folder, stat.st_uid)))
}

/// The address of a socket in an open folder. By way of the descriptor it has no links in it and
/// any length; where `/proc` is missing, the path has to do.
pub(crate) fn address(folder: &OwnedFd, path: &Path, name: &str) -> Result<SocketAddrUnix, Errno> {
    let below = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    if below.symlink_metadata().is_ok() {
        SocketAddrUnix::new(below.join(name))
    } else {
        SocketAddrUnix::new(path)
    }
}

/// Whom a state directory belongs to.
fn owner_of(state: &Path) -> Result<u32, Errno> {
    rustix::fs::stat(state).map(|stat| stat.st_uid)
}

/// The user who listens at the other end.
fn server_of(stream: &UnixStream) -> Result<u32, Errno> {
    peer_of(stream).map(|found| found.uid)
}

fn failed(action: &'static str, path: &Path, errno: Errno) -> WireError {
    WireError::Io { action, path: path.to_owned(), error: errno.into() }
}
