//! The loop: takes a call, has it looked at and carried out, answers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, Stat, fcntl_getfl, fcntl_setfl, openat};
use rustix::io::Errno;

use super::abi::{self, Call};
use super::caller::{Caller, root_of};
use super::names::Names;
use super::place::{Place, path_buf};
use super::{NewRepository, Refusal, Summary, git};

/// Directories that are remembered as new; those beyond count as old ones.
const MOST_MADE: usize = 1 << 20;
/// Repositories that are listed, and names of each.
const MOST_LISTED: usize = 256;
/// Callers that may wait for someone to read from their pipes.
const MOST_WAITING: usize = 256;
/// How often it is looked whether someone does.
const AGAIN: Duration = Duration::from_millis(5);

/// Why a call is not carried out.
#[derive(Debug)]
pub(super) enum Stop {
    /// The caller has gone; nobody waits for an answer.
    Gone,
    /// The kernel says so.
    Error(Errno),
    /// A name that must not come into being, and what speaks against it.
    Refused(PathBuf, String),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Error(error)
    }
}

/// What a caller gets.
#[derive(Debug)]
pub(super) enum Done {
    /// A number.
    Value(i64),
    /// An open file, and whether it is closed when a program is executed.
    File(OwnedFd, bool),
    /// Something, as soon as it can be had.
    Later(Waiting),
}

/// A caller that waits for someone to read from a pipe.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) pipe: OwnedFd,
    pub(super) flags: OFlags,
    pub(super) close_on_exec: bool,
}

/// Carries out the calls of the confined side. It acts one call at a time, so that what was looked at is
/// what is done.
pub struct Supervisor {
    listener: Arc<OwnedFd>,
    pub(super) names: Names,
    on_refusal: Box<dyn FnMut(&Refusal) + Send>,
    pub(super) proc: Arc<OwnedFd>,
    /// `/proc/self/fd`.
    pub(super) own: OwnedFd,
    /// `/`.
    pub(super) home: Arc<OwnedFd>,
    root: (u32, u32, u64, u64),
    /// Directories, and `.git` files, that came into being in this run: device and inode.
    pub(super) made: HashSet<(u64, u64)>,
    repositories: BTreeMap<PathBuf, BTreeSet<String>>,
    waiting: Vec<Waiting>,
    summary: Summary,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { listener, names, summary, .. } = self;
        out.debug_struct("Supervisor")
            .field("listener", listener)
            .field("names", names)
            .field("summary", summary)
            .finish_non_exhaustive()
    }
}

impl Supervisor {
    /// For the calls that `listener` tells of. `on_refusal` hears of each that is refused for its name,
    /// while the caller still waits.
    ///
    /// # Errors
    /// When `/proc` cannot be used.
    pub fn new(
        listener: OwnedFd,
        names: Names,
        on_refusal: impl FnMut(&Refusal) + Send + 'static,
    ) -> io::Result<Self> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = openat(CWD, c"/proc", folder, Mode::empty())?;
        let own = openat(&proc, c"self/fd", folder, Mode::empty())?;
        let home = openat(CWD, c"/", folder, Mode::empty())?;
        let root = root_of(proc.as_fd(), "self/root")?;
        Ok(Self {
            listener: Arc::new(listener),
            names,
            on_refusal: Box::new(on_refusal),
            proc: Arc::new(proc),
            own,
            home: Arc::new(home),
            root,
            made: HashSet::new(),
            repositories: BTreeMap::new(),
            waiting: Vec::new(),
            summary: Summary::default(),
        })
    }

    /// Keeps other processes of the same user from looking into this one. For a process that does
    /// nothing else; without it they could take the listener.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hide(&self) -> io::Result<()> {
        abi::hide()
    }

    /// Works until nobody is left who could call, or until there is something to read from `until`. The
    /// thread gets a directory and a umask of its own. A caller that is not answered gets `ENOSYS` when the
    /// supervisor is dropped.
    pub fn run(&mut self, until: Option<BorrowedFd<'_>>) -> Summary {
        // Without it the umask would be everybody's; then nothing is made for anybody.
        if abi::own_directory().is_err() || rustix::process::fchdir(&*self.home).is_err() {
            return Summary::default();
        }
        abi::wake_at_once(self.listener.as_fd());
        let again = Timespec::try_from(AGAIN).ok();
        loop {
            let timeout = if self.waiting.is_empty() { None } else { again.as_ref() };
            let (mut told, mut ended) = (PollFlags::empty(), PollFlags::empty());
            {
                let mut polled = vec![PollFd::new(&*self.listener, PollFlags::IN)];
                polled.extend(until.as_ref().map(|until| PollFd::new(until, PollFlags::IN)));
                match poll(&mut polled, timeout) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(_) => break,
                }
                told = polled.first().map_or(told, PollFd::revents);
                ended = polled.get(1).map_or(ended, PollFd::revents);
            }
            self.look_at_pipes();
            if told.contains(PollFlags::IN) {
                match abi::receive(self.listener.as_fd()) {
                    Ok(call) => self.handle(&call),
                    // Whoever called has gone.
                    Err(error)
                        if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
                    Err(_) => break,
                }
            } else if !told.is_empty() || !ended.is_empty() {
                break;
            }
        }
        self.waiting.clear();
        let mut summary = std::mem::take(&mut self.summary);
        summary.repositories = self.new_repositories();
        summary
    }

    fn handle(&mut self, call: &Call) {
        self.summary.calls += 1;
        let done = self.carry_out(call);
        let listener = self.listener.as_fd();
        // An answer that fails is one to a caller that has gone.
        let _ = match done {
            Ok(Done::Value(value)) => abi::answer(listener, call.id, Ok(value)),
            Ok(Done::File(file, close)) => {
                abi::answer_with(listener, call.id, file, close).or_else(|error| {
                    // Too many open files is the caller's own trouble.
                    abi::answer(listener, call.id, Err(error.raw_os_error().unwrap_or(libc::EIO)))
                })
            }
            Ok(Done::Later(waiting)) if self.waiting.len() < MOST_WAITING => {
                self.waiting.push(waiting);
                Ok(())
            }
            Ok(Done::Later(_)) => abi::answer(listener, call.id, Err(libc::EAGAIN)),
            Err(Stop::Gone) => Ok(()),
            Err(Stop::Error(error)) => abi::answer(listener, call.id, Err(error.raw_os_error())),
            Err(Stop::Refused(path, rule)) => {
                self.summary.refused += 1;
                let comm = self.caller(call).comm();
                let name = abi::name(call.number);
                let refusal = Refusal { call: name, path, rule, pid: call.pid, comm };
                (self.on_refusal)(&refusal);
                abi::answer(self.listener.as_fd(), call.id, Err(libc::EACCES))
            }
        };
    }

    fn caller<'a>(&self, call: &'a Call) -> Caller<'a> {
        Caller {
            call,
            listener: Arc::clone(&self.listener),
            proc: Arc::clone(&self.proc),
            home: Arc::clone(&self.home),
            root: self.root,
        }
    }

    fn carry_out(&mut self, call: &Call) -> Result<Done, Stop> {
        let caller = self.caller(call);
        const HERE: u32 = libc::AT_FDCWD.cast_unsigned();
        let (a, number) = (&caller, |at: usize| caller.number(at));
        let flags = |at: usize| OFlags::from_bits_retain(caller.number(at));
        match call.number {
            libc::SYS_openat => self.open(a, number(0), 1, flags(2), number(3)),
            libc::SYS_mkdirat => self.make_directory(a, number(0), 1, number(2)),
            libc::SYS_mknodat => self.make_node(a, number(0), 1, number(2), number(3).into()),
            libc::SYS_renameat => self.rename(a, (number(0), 1), (number(2), 3), 0),
            libc::SYS_renameat2 => self.rename(a, (number(0), 1), (number(2), 3), number(4)),
            libc::SYS_linkat => self.make_link(a, (number(0), 1), (number(2), 3), number(4)),
            libc::SYS_symlinkat => self.make_symlink(a, 0, number(1), 2),
            libc::SYS_bind => self.bind(a),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(a, HERE, 0, flags(1), number(2)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
                self.open(a, HERE, 0, flags, number(1))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_directory(a, HERE, 0, number(1)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(a, HERE, 0, number(1), number(2).into()),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(a, (HERE, 0), (HERE, 1), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.make_link(a, (HERE, 0), (HERE, 1), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.make_symlink(a, 0, HERE, 1),
            _ => Err(Errno::NOSYS.into()),
        }
    }

    /// Answers callers whose pipes someone reads from by now.
    fn look_at_pipes(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for one in waiting {
            let listener = self.listener.as_fd();
            if !abi::is_valid(listener, one.id) {
                continue;
            }
            let opened =
                openat(&self.own, one.pipe.as_raw_fd().to_string(), one.flags, Mode::empty());
            let opened = opened.and_then(|file| {
                fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                Ok(file)
            });
            let _ = match opened {
                Err(Errno::NXIO) => {
                    self.waiting.push(one);
                    Ok(())
                }
                Err(error) => abi::answer(listener, one.id, Err(error.raw_os_error())),
                Ok(file) => abi::answer_with(listener, one.id, file, one.close_on_exec),
            };
        }
    }

    /// Remembers that something came into being.
    pub(super) fn remember(&mut self, made: &Stat) {
        if self.made.len() < MOST_MADE {
            self.made.insert((made.st_dev, made.st_ino));
        }
    }

    /// Remembers that a repository came into being.
    pub(super) fn remember_repository(&mut self, place: &Place, made: &Stat) {
        self.remember(made);
        if self.repositories.len() < MOST_LISTED {
            self.repositories.entry(path_buf(&place.path)).or_default();
        }
    }

    /// Notes a name that a new repository may hold.
    pub(super) fn note(&mut self, repository: PathBuf, name: &[&[u8]]) {
        if self.repositories.len() >= MOST_LISTED && !self.repositories.contains_key(&repository) {
            return;
        }
        let names = self.repositories.entry(repository).or_default();
        if names.len() < MOST_LISTED && !name.is_empty() {
            let parts: Vec<_> = name.iter().map(|part| String::from_utf8_lossy(part)).collect();
            names.insert(parts.join("/"));
        }
    }

    fn new_repositories(&self) -> Vec<NewRepository> {
        let there = self
            .repositories
            .iter()
            .filter(|(path, _)| path.join(".git").exists() || path.join("HEAD").exists());
        there
            .map(|(path, names)| NewRepository {
                path: path.clone(),
                holds: names.iter().cloned().collect(),
                executes: executing_in(path),
            })
            .collect()
    }
}

/// What git would execute in a repository as it is now.
fn executing_in(repository: &Path) -> Vec<String> {
    let mut folder = repository.join(".git");
    if !folder.exists() {
        repository.clone_into(&mut folder);
    }
    let read = |path: &Path| -> io::Result<Vec<u8>> {
        use std::io::Read as _;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = std::fs::File::from(openat(CWD, path, flags, Mode::empty())?);
        let mut text = Vec::new();
        file.take(git::MOST as u64 + 1).read_to_end(&mut text)?;
        Ok(text)
    };
    let mut found = Vec::new();
    if folder.is_file() {
        let text = read(&folder).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let target = text.strip_prefix("gitdir: ").unwrap_or_default().trim();
        folder = repository.join(target);
        let common = read(&folder.join("commondir")).unwrap_or_default();
        folder = folder.join(String::from_utf8_lossy(&common).trim());
        found.push(format!("its settings lie in {}", folder.display()));
    }
    for name in ["config", "config.worktree"] {
        match read(&folder.join(name)).map(|text| git::executing(&text)) {
            Ok(Ok(keys)) => found.extend(keys),
            Ok(Err(why)) => found.push(format!("{name}: {why}")),
            Err(_) => {}
        }
    }
    let hooks = std::fs::read_dir(folder.join("hooks")).into_iter().flatten().flatten();
    let live = hooks
        .take(MOST_LISTED)
        .filter(|hook| git::is_live_hook(hook.file_name().as_encoded_bytes()));
    found.extend(live.map(|hook| format!("hooks/{}", hook.file_name().to_string_lossy())));
    found
}
