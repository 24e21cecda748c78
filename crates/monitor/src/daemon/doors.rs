//! The sockets: made under a lock that a daemon holds as long as it lives, so that a socket found
//! by whoever has the lock is that of a dead one.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Stat, chmodat, chownat, fchmod, flock,
    fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::wire::{Door, address};

const RUN: &str = "run";
const LOCK: &str = "daemon.lock";
/// How long a lock is waited for that is held while nobody listens.
const PATIENCE: Duration = Duration::from_secs(3);
/// Connections that wait to be accepted; the system may allow fewer.
const QUEUE: i32 = 1024;

/// Why there are no doors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorsError {
    /// A daemon runs.
    #[error("a daemon runs already for `{state}`{}: see `wardkeep daemon status`", process(*.pid))]
    Running {
        /// The state directory.
        state: PathBuf,
        /// Its process, as far as it can be told.
        pid: Option<i32>,
    },
    /// Something stands where a socket belongs, or the folder is not private.
    #[error("`{path}` {what}: look what it is, and remove it by hand")]
    Unsafe {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// What was handed over is not the socket of this state directory.
    #[error(
        "standard input is not the listening socket `{path}`{why}: see the unit's ListenStream"
    )]
    NotInherited {
        /// The socket that it should be.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// The file system refused.
    #[error("cannot {action} `{path}` ({error}): fix the state directory's owner or mode")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

fn process(pid: Option<i32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

type Result<T> = std::result::Result<T, DoorsError>;

/// The sockets of a daemon. They go away when this is dropped, except one that was handed over.
#[derive(Debug)]
pub struct Doors {
    path: PathBuf,
    folder: OwnedFd,
    doors: Vec<Open>,
    // Held as long as the daemon lives.
    lock: File,
}

#[derive(Debug)]
struct Open {
    door: Door,
    listener: UnixListener,
    // Device and inode of the socket's name; `None` where whoever made it removes it.
    name: Option<(u64, u64)>,
}

impl Doors {
    /// Makes the sockets below the state directory `state`, which must be this user's own. With a
    /// `group` its members may connect too; who they are is looked at then. `inherited` is a
    /// listening socket that someone else made for the door [`Door::Monitor`].
    ///
    /// # Errors
    /// When a daemon runs already, or something else stands in the way.
    pub fn open(state: &Path, group: Option<u32>, inherited: Option<OwnedFd>) -> Result<Self> {
        let path = state.join(RUN);
        let folder = open_folder(state, &path, group)?;
        let lock = patient_lock(state, &path, &folder, inherited.is_some())?;
        let mut made = Self { path, folder, doors: Vec::new(), lock };
        for door in Door::ALL {
            let open = match (&inherited, door) {
                (Some(socket), Door::Monitor) => made.inherit(socket)?,
                _ => made.bind(state, door, group)?,
            };
            made.doors.push(open);
        }
        made.note_process();
        Ok(made)
    }

    /// The listeners.
    pub fn listeners(&self) -> impl Iterator<Item = (Door, &UnixListener)> {
        self.doors.iter().map(|open| (open.door, &open.listener))
    }

    /// Takes the names away, so that nobody new comes; who is connected stays.
    pub fn hide(&self) {
        for open in &self.doors {
            let name = open.door.file_name();
            let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
            // Another one may stand there by now, if someone removed the lock's file.
            if open.name.is_some() && found.ok().map(|stat| identity(&stat)) == open.name {
                let _ = unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
    }

    fn bind(&self, state: &Path, door: Door, group: Option<u32>) -> Result<Open> {
        let path = door.path(state);
        let name = door.file_name();
        let failed = |action| move |errno| io_error(action, &door.path(state), errno);
        self.clear(state, door)?;
        let fresh = format!(".{name}.new");
        match unlinkat(&self.folder, &*fresh, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(io_error("remove", &self.path.join(&fresh), errno)),
        }
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(failed("make"))?;
        let beside = self.path.join(&fresh);
        let bound = address(&self.folder, &beside, &fresh)
            .and_then(|address| rustix::net::bind(&socket, &address));
        bound.map_err(failed("make"))?;
        // Nobody finds it under this name; under its own it has its mode from the start.
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        chmodat(&self.folder, &*fresh, Mode::from_raw_mode(mode), AtFlags::empty())
            .map_err(failed("change the mode of"))?;
        if let Some(group) = group {
            let group = Some(Gid::from_raw(group));
            chownat(&self.folder, &*fresh, None, group, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(failed("change the group of"))?;
        }
        rustix::net::listen(&socket, QUEUE).map_err(failed("listen on"))?;
        let stat =
            statat(&self.folder, &*fresh, AtFlags::SYMLINK_NOFOLLOW).map_err(failed("read"))?;
        renameat(&self.folder, &*fresh, &self.folder, name)
            .map_err(|errno| io_error("make", &path, errno))?;
        let listener = UnixListener::from(socket);
        Ok(Open { door, listener, name: Some(identity(&stat)) })
    }

    /// Makes sure that nothing but the socket of a dead daemon stands at a door's name.
    fn clear(&self, state: &Path, door: Door) -> Result<()> {
        let path = door.path(state);
        let unsafe_file = |what: &str| DoorsError::Unsafe { path: path.clone(), what: what.into() };
        let stat = match statat(&self.folder, door.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(io_error("read", &path, errno)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket => {}
            FileType::Symlink => return Err(unsafe_file("is a link")),
            _ => return Err(unsafe_file("is not a socket")),
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(unsafe_file(&format!("belongs to user {}", stat.st_uid)));
        }
        // Someone may have removed the lock's file under a daemon that lives, or listens for it.
        match knock(&self.path, &self.folder, door) {
            Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(()),
            Ok(()) | Err(Errno::AGAIN) => {
                Err(DoorsError::Running { state: state.to_owned(), pid: None })
            }
            Err(errno) => Err(io_error("connect to", &path, errno)),
        }
    }

    /// Takes over a socket that listens under the door's name.
    fn inherit(&self, socket: &OwnedFd) -> Result<Open> {
        let door = Door::Monitor;
        let path = self.path.join(door.file_name());
        let refuse = |why: &str| DoorsError::NotInherited { path: path.clone(), why: why.into() };
        let listens = sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
            && sockopt::socket_acceptconn(socket) == Ok(true);
        if !listens {
            return Err(refuse(""));
        }
        let socket = socket.try_clone().map_err(|error| refuse(&format!(" ({error})")))?;
        let listener = UnixListener::from(socket);
        let bound = listener.local_addr().ok().and_then(|at| at.as_pathname().map(PathBuf::from));
        if bound.as_deref() != Some(&*path) {
            return Err(refuse(", but another one"));
        }
        Ok(Open { door, listener, name: None })
    }

    /// Writes the process into the lock's file, for messages.
    fn note_process(&mut self) {
        let lock = &mut self.lock;
        let _ = lock
            .set_len(0)
            .and_then(|()| lock.seek(io::SeekFrom::Start(0)))
            .and_then(|_| writeln!(lock, "{}", std::process::id()));
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Opens the folder of the sockets, making it if it is not there.
fn open_folder(state: &Path, path: &Path, group: Option<u32>) -> Result<OwnedFd> {
    let mode = Mode::from_raw_mode(if group.is_some() { 0o710 } else { 0o700 });
    match mkdirat(rustix::fs::CWD, path, mode) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(io_error("make", path, errno)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let own = rustix::process::geteuid().as_raw();
    let mut opened = None;
    // The last one is kept.
    for path in [state, path] {
        let unsafe_folder = |what: String| DoorsError::Unsafe { path: path.to_owned(), what };
        let folder = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(unsafe_folder("is not a directory (links are not followed)".into()));
            }
            Err(errno) => return Err(io_error("open", path, errno)),
        };
        let stat = fstat(&folder).map_err(|errno| io_error("read", path, errno))?;
        if stat.st_uid != own {
            return Err(unsafe_folder(format!("belongs to user {}", stat.st_uid)));
        }
        if stat.st_mode & 0o022 != 0 {
            let what = format!("can be written by others (mode {:o})", stat.st_mode & 0o7777);
            return Err(unsafe_folder(what));
        }
        opened = Some(folder);
    }
    let Some(folder) = opened else { return Err(io_error("open", path, Errno::NOENT)) };
    // It may have been made under another mask, or without a group.
    fchmod(&folder, mode).map_err(|errno| io_error("change the mode of", path, errno))?;
    if let Some(group) = group {
        rustix::fs::fchown(&folder, None, Some(Gid::from_raw(group)))
            .map_err(|errno| io_error("change the group of", path, errno))?;
    }
    Ok(folder)
}

/// Takes the lock. One that is held while nobody listens is that of a daemon which starts or ends:
/// that is waited for, a moment.
fn patient_lock(state: &Path, run: &Path, folder: &OwnedFd, inherited: bool) -> Result<File> {
    let until = Instant::now() + PATIENCE;
    loop {
        let tried = lock(state, run, folder);
        let listens = !inherited && knock(run, folder, Door::Monitor).is_ok();
        if !matches!(tried, Err(DoorsError::Running { .. })) || listens || Instant::now() >= until {
            return tried;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether someone listens at a door.
fn knock(run: &Path, folder: &OwnedFd, door: Door) -> std::result::Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let name = door.file_name();
    let address = address(folder, &run.join(name), name)?;
    rustix::net::connect(&socket, &address)
}

/// Takes the lock that a daemon holds as long as it lives.
fn lock(state: &Path, run: &Path, folder: &OwnedFd) -> Result<File> {
    let path = run.join(LOCK);
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // Someone may remove the file between opening and locking it: only the one that stands there
    // keeps others out.
    for _ in 0..10 {
        let file = match openat(folder, LOCK, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => file,
            Err(Errno::LOOP) => {
                return Err(DoorsError::Unsafe { path, what: "is a link".to_owned() });
            }
            Err(errno) => return Err(io_error("open", &path, errno)),
        };
        let open = fstat(&file).map_err(|errno| io_error("read", &path, errno))?;
        if FileType::from_raw_mode(open.st_mode) != FileType::RegularFile {
            return Err(DoorsError::Unsafe { path, what: "is not a regular file".to_owned() });
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = File::from(file).take(32).read_to_string(&mut text);
                let pid = text.trim_end().parse().ok().filter(|pid| *pid > 0);
                return Err(DoorsError::Running { state: state.to_owned(), pid });
            }
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(io_error("lock", &path, errno)),
        }
        let named = statat(folder, LOCK, AtFlags::SYMLINK_NOFOLLOW);
        if named.is_ok_and(|named| identity(&named) == identity(&open)) {
            return Ok(File::from(file));
        }
    }
    Err(DoorsError::Unsafe { path, what: "is removed again and again".to_owned() })
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn io_error(action: &'static str, path: &Path, errno: Errno) -> DoorsError {
    DoorsError::Io { action, path: path.to_owned(), error: errno.into() }
}
