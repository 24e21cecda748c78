//! The loop: takes a call, has it looked at and carried out, answers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat, openat};
use rustix::io::Errno;

use super::abi::{self, Call};
use super::born::Born;
use super::caller::{Caller, root_of};
use super::masks::Masks;
use super::names::{Names, bytes, is_below};
use super::place::{Place, path_buf};
use super::pulse::Pulse;
use super::reads::{Reads, Want};
use super::{NewRepository, Refusal, Summary, git};
use crate::denial::DenialKind;
use crate::filter::name_of_denied;

/// Directories that are remembered as new; those beyond count as old ones.
const MOST_MADE: usize = 1 << 20;
/// Protected names that are let through; those beyond are refused.
const MOST_GRANTED: usize = 1 << 16;
/// Repositories that are listed; in those beyond no protected name is let through.
const MOST_LISTED: usize = 256;
/// Names of each. More than the table has, so that none is hidden behind others.
const MOST_NAMES: usize = 1024;
/// Names that were let through that are looked for before a repository counts as one that is still there.
const MOST_SOUGHT: usize = 64;
/// Why a protected name is not let through in a new repository that is not listed.
pub(super) const TOO_MANY: &str = "more new repositories are there than can be told of at the end";
/// Callers that may wait for someone to read from their pipes.
const MOST_WAITING: usize = 256;
/// Callers that may wait for the owner's word, and questions of one run.
pub(super) const MOST_ASKING: usize = 64;
const MOST_QUESTIONS: u32 = 200;
/// `PRIO_PROCESS`
const PRIORITY_OF_ONE: u32 = 0;
/// `IOPRIO_WHO_PROCESS`
const ORDER_OF_ONE: u32 = 1;
/// How often it is looked whether someone does.
const AGAIN: Duration = Duration::from_millis(5);
/// How often it is looked whether those who wait for the owner's word are still there.
const GONE: Duration = Duration::from_millis(500);

/// Why a call is not carried out.
#[derive(Debug)]
pub(super) enum Stop {
    /// The caller has gone; nobody waits for an answer.
    Gone,
    /// The kernel says so.
    Error(Errno),
    /// A name that must not come into being, and what speaks against it.
    Refused(PathBuf, String),
    /// The same, but for the owner's word; and whether it is a folder that is made.
    Guarded(PathBuf, String, bool),
    /// A call that nobody may make.
    Denied(&'static str),
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
    /// What the kernel gives: the call points to nothing that could change.
    Continue,
    /// A file that is not shown, if somebody outside gives it: its path, and what is done with it.
    Outside(PathBuf, Want),
}

/// A caller that waits for someone to read from a pipe.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) pipe: OwnedFd,
    pub(super) flags: OFlags,
    pub(super) close_on_exec: bool,
}

/// What the owner says of a protected name that a program wants to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is not made.
    No,
    /// This one call is carried out.
    Once,
    /// This name may be made and written to until the run ends, and where it is a folder, what is in it.
    Session,
}

/// A caller that waits for the owner's word.
#[derive(Debug)]
struct Asking {
    call: Call,
    path: PathBuf,
    rule: String,
    folder: bool,
    /// Names that the owner has let this call through with already.
    once: Vec<PathBuf>,
    /// The question that it waits for the answer of.
    number: u32,
}

/// Puts a question; `false` where it cannot be put. Without a refusal: nobody waits for its answer any more.
type Put = Box<dyn FnMut(u32, Option<&Refusal>) -> bool + Send>;

/// Carries out the calls of the confined side. It acts one call at a time, so that what was looked at is
/// what is done.
pub struct Supervisor {
    pub(super) listener: Arc<OwnedFd>,
    pub(super) names: Names,
    on_refusal: Box<dyn FnMut(&Refusal) + Send>,
    pub(super) proc: Arc<OwnedFd>,
    /// `/proc/self/fd`.
    pub(super) own: OwnedFd,
    /// `/`.
    pub(super) home: Arc<OwnedFd>,
    root: Option<(u32, u32, u64, u64)>,
    /// Whether no other thread of the process minds what its directory and its umask are.
    is_alone: bool,
    /// What was read of callers a moment ago.
    masks: Masks,
    /// Directories, and `.git` files, that came into being in this run.
    pub(super) made: HashSet<Born>,
    /// Those of them that are a `.git`, or a repository without one, held open: no other file gets their numbers.
    gits: HashMap<Born, OwnedFd>,
    /// Files that are held under one name and have others: device and inode.
    linked: HashSet<(u64, u64)>,
    /// Where modes, owners and times of files may be changed.
    pub(super) written: Vec<PathBuf>,
    repositories: BTreeMap<PathBuf, BTreeSet<String>>,
    /// Protected names that were let through for the repository they are in, by their real paths.
    grants: BTreeSet<PathBuf>,
    /// Asks the owner about protected names.
    put: Option<Put>,
    asking: Vec<Asking>,
    /// Questions that were put.
    questions: u32,
    /// Names that the owner lets through, and whether as folders; and those for which that holds for the call
    /// that is carried out.
    allowed: BTreeMap<PathBuf, bool>,
    once: Vec<PathBuf>,
    /// Whether calls that only look for something are told, too.
    pub(super) learns: bool,
    /// Asks for files that are not shown.
    pub(super) reads: Option<Reads>,
    /// Locked while a call is looked at and carried out: supervisors of other runs have it as well.
    lock: Option<Arc<File>>,
    pulse: Arc<Pulse>,
    /// What is begun with the first call.
    at_first: Option<AtFirst>,
    waiting: Vec<Waiting>,
    summary: Summary,
}

/// Begins something that is needed as soon as there is a call.
type AtFirst = Box<dyn FnOnce(Arc<Pulse>) + Send>;

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
            root: Some(root),
            is_alone: false,
            masks: Masks::default(),
            made: HashSet::new(),
            gits: HashMap::new(),
            linked: HashSet::new(),
            written: Vec::new(),
            repositories: BTreeMap::new(),
            grants: BTreeSet::new(),
            put: None,
            asking: Vec::new(),
            questions: 0,
            allowed: BTreeMap::new(),
            once: Vec::new(),
            learns: false,
            reads: None,
            lock: None,
            pulse: Arc::new(Pulse::new()),
            at_first: None,
            waiting: Vec::new(),
            summary: Summary::default(),
        })
    }

    /// Spares a look at each caller's root directory: for where no caller can have another, since something
    /// else forbids `chroot`, `pivot_root`, `unshare` and `setns`.
    #[must_use]
    pub fn with_one_root(mut self) -> Self {
        self.root = None;
        self
    }

    /// For a process in which no other thread makes a file or uses a relative path: then the directory and the umask may
    /// be all of its threads', where the kernel gives this one none of its own. Containers often forbid `unshare` whole.
    #[must_use]
    pub fn that_is_alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// Tells of what is looked for and not found, as well.
    #[must_use]
    pub(crate) fn that_learns(mut self, learns: bool) -> Self {
        self.learns = learns;
        self
    }

    /// Asks about protected names that are not there yet, by `put`, which gets a number for the answer
    /// ([`Self::answered`]); the caller waits meanwhile, and nobody else. The same number without a refusal says
    /// that it waits no longer.
    #[must_use]
    pub fn that_asks(
        mut self,
        put: impl FnMut(u32, Option<&Refusal>) -> bool + Send + 'static,
    ) -> Self {
        self.put = Some(Box::new(put));
        self
    }

    /// Goes on with those who waited for an answer. What was called is looked at anew.
    pub fn answered(&mut self, number: u32, answer: Answer) {
        let all = std::mem::take(&mut self.asking);
        let (asked, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.number == number);
        self.asking = others;
        let mut first = answer == Answer::Once;
        for Asking { call, path, rule, folder, once, .. } in asked {
            if !abi::is_valid(self.listener.as_fd(), call.id) {
                continue;
            }
            match answer {
                Answer::No => {
                    self.conclude(&call, Err(Stop::Refused(path, rule)));
                    continue;
                }
                Answer::Session if self.allowed.len() < MOST_GRANTED => {
                    self.allowed.insert(path, folder);
                }
                Answer::Session => {}
                Answer::Once => {
                    self.once = once;
                    self.once.extend(std::mem::take(&mut first).then_some(path));
                }
            }
            let done = self.carried_out(&call);
            self.conclude(&call, done);
            self.once.clear();
        }
    }

    /// Whether the owner lets a name through, as a folder or as a file; with a folder, also what is in it.
    pub(super) fn is_allowed(&self, path: &Path, folder: bool) -> bool {
        if self.once.iter().any(|one| one == path) || self.allowed.get(path) == Some(&folder) {
            return true;
        }
        let mut above = path.ancestors().skip(1);
        !self.allowed.is_empty() && above.any(|one| self.allowed.get(one) == Some(&true))
    }

    /// Has a caller wait for the owner's word; gives the call back where nobody can be asked.
    fn ask(&mut self, call: &Call, path: PathBuf, rule: String, folder: bool) -> Result<(), Stop> {
        let refused = |path, rule| Err(Stop::Refused(path, rule));
        // What was there before is held by a mount as well, which no word lifts.
        let is_old = path.symlink_metadata().is_ok() && !self.is_granted(bytes(&path));
        if is_old || self.asking.len() >= MOST_ASKING {
            return refused(path, rule);
        }
        let same = self.asking.iter().find(|one| one.path == path && one.folder == folder);
        let number = match same.map(|one| one.number) {
            Some(number) => number,
            None => {
                let comm = self.caller(call).comm();
                let put = self.put.as_mut().filter(|_| self.questions < MOST_QUESTIONS);
                let Some(put) = put else { return refused(path, rule) };
                self.questions += 1;
                let refusal = Refusal {
                    kind: DenialKind::Name,
                    call: abi::name(call.number),
                    path: path.clone(),
                    rule: rule.clone(),
                    pid: call.pid,
                    comm,
                };
                if !put(self.questions, Some(&refusal)) {
                    return refused(path, rule);
                }
                self.questions
            }
        };
        let once = self.once.clone();
        self.asking.push(Asking { call: *call, path, rule, folder, once, number });
        Ok(())
    }

    /// Forgets callers that have gone; where nobody waits for an answer any more, that is told.
    fn forget_gone(&mut self) {
        let listener = Arc::clone(&self.listener);
        if let Some(reads) = &mut self.reads {
            reads.forget(|id| abi::is_valid(listener.as_fd(), id));
        }
        if self.asking.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.asking);
        let listener = self.listener.as_fd();
        let (left, gone): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| abi::is_valid(listener, one.call.id));
        self.asking = left;
        for one in gone {
            let waits = self.asking.iter().any(|other| other.number == one.number);
            if let Some(put) = self.put.as_mut().filter(|_| !waits) {
                put(one.number, None);
            }
        }
    }

    /// Refuses writing to files that are held under another name.
    #[must_use]
    pub(crate) fn that_holds(mut self, linked: &[(u64, u64)]) -> Self {
        self.linked.extend(linked);
        self
    }

    /// Whether a file is held under one of its names.
    pub(super) fn is_linked(&self, found: &Stat) -> bool {
        found.st_nlink > 1 && self.linked.contains(&(found.st_dev, found.st_ino))
    }

    /// Acts only while it has the lock, so that supervisors of other runs move nothing meanwhile.
    #[must_use]
    pub(crate) fn that_locks(mut self, lock: Option<Arc<File>>) -> Self {
        self.lock = lock;
        self
    }

    /// Does something before the first call is carried out, such as to begin to look whether it is stuck in one. Many
    /// programs make no call at all.
    #[must_use]
    pub(crate) fn that_begins(
        mut self,
        at_first: impl FnOnce(Arc<Pulse>) + Send + 'static,
    ) -> Self {
        self.at_first = Some(Box::new(at_first));
        self
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
    /// thread gets a directory and a umask of its own (but see [`Self::that_is_alone`]). A caller that is not answered gets `ENOSYS` when the
    /// supervisor is dropped.
    pub fn run(&mut self, until: Option<BorrowedFd<'_>>) -> Summary {
        // Without it the umask would be everybody's; unless nobody else is there, nothing is made for anybody.
        let is_own = abi::own_directory().is_ok() || self.is_alone;
        if !is_own || rustix::process::fchdir(&*self.home).is_err() {
            return Summary::default();
        }
        abi::wake_at_once(self.listener.as_fd());
        let again = Timespec::try_from(AGAIN).ok();
        let gone = Timespec::try_from(GONE).ok();
        loop {
            let asks = !self.asking.is_empty() || self.reads.as_ref().is_some_and(Reads::waits);
            let timeout = match (self.waiting.is_empty(), !asks) {
                (true, true) => None,
                (true, false) => gone.as_ref(),
                (false, _) => again.as_ref(),
            };
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
            self.forget_gone();
            if told.contains(PollFlags::IN) {
                match abi::receive(self.listener.as_fd()) {
                    Ok(call) => self.handle(&call),
                    // Whoever called has gone.
                    Err(error)
                        if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {}
                    Err(_) => break,
                }
                // Whoever calls without an end does not keep others from being heard.
                if !ended.is_empty() {
                    break;
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
        self.forget_gone();
        let done = self.carried_out(call);
        self.conclude(call, done);
    }

    fn carried_out(&mut self, call: &Call) -> Result<Done, Stop> {
        if let Some(begin) = self.at_first.take() {
            begin(Arc::clone(&self.pulse));
        }
        self.pulse.begin();
        let done = match self.lock.clone().filter(|_| self.changes(call)) {
            None => self.carry_out(call),
            Some(lock) => match lock.lock() {
                Ok(()) => {
                    let done = self.carry_out(call);
                    let _ = lock.unlock();
                    done
                }
                Err(_) => Err(Errno::IO.into()),
            },
        };
        self.pulse.end();
        done
    }

    pub(super) fn conclude(&mut self, call: &Call, done: Result<Done, Stop>) {
        let done = match done {
            Ok(Done::Outside(path, want)) => match self.ask_outside(call, path, want) {
                Ok(()) => return,
                Err(stop) => Err(stop),
            },
            Err(Stop::Guarded(path, rule, folder)) => match self.ask(call, path, rule, folder) {
                Ok(()) => return,
                Err(stop) => Err(stop),
            },
            done => done,
        };
        let listener = self.listener.as_fd();
        // An answer that fails is one to a caller that has gone.
        let _ = match done {
            Ok(Done::Value(value)) => abi::answer(listener, call.id, Ok(value)),
            Ok(Done::Continue) => abi::go_on(listener, call.id),
            Ok(Done::Outside(..)) => abi::answer(listener, call.id, Err(libc::ENOENT)),
            Ok(Done::File(file, close)) => {
                let late = may_be_executed(&file);
                abi::answer_with(listener, call.id, file, close, late).or_else(|error| {
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
            Err(Stop::Refused(path, rule) | Stop::Guarded(path, rule, _)) => {
                self.summary.refused += 1;
                self.tell(call, DenialKind::Name, abi::name(call.number), path, rule);
                abi::answer(self.listener.as_fd(), call.id, Err(libc::EACCES))
            }
            Err(Stop::Denied(name)) => {
                let rule = "no program needs it inside".to_owned();
                self.tell(call, DenialKind::Call, name, PathBuf::new(), rule);
                abi::answer(self.listener.as_fd(), call.id, Err(libc::EPERM))
            }
        };
    }

    pub(super) fn tell(
        &mut self,
        of: &Call,
        kind: DenialKind,
        call: &'static str,
        path: PathBuf,
        rule: String,
    ) {
        let comm = self.caller(of).comm();
        (self.on_refusal)(&Refusal { kind, call, path, rule, pid: of.pid, comm });
    }

    pub(super) fn caller<'a>(&self, call: &'a Call) -> Caller<'a> {
        Caller {
            call,
            listener: Arc::clone(&self.listener),
            proc: Arc::clone(&self.proc),
            home: Arc::clone(&self.home),
            root: self.root,
        }
    }

    /// Whether a call makes, moves or removes something. Those that only look need no lock, and a program in a run that
    /// learns makes some before it has begun, while whoever starts it has the lock.
    fn changes(&self, call: &Call) -> bool {
        let flags = |at: usize| OFlags::from_bits_retain(self.caller(call).number(at));
        match call.number {
            libc::SYS_openat => !self.only_looks(flags(2)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => !self.only_looks(flags(1)),
            libc::SYS_umask => false,
            // What has no name is denied, or only looks.
            other => abi::name(other) != abi::UNNAMED,
        }
    }

    fn carry_out(&mut self, call: &Call) -> Result<Done, Stop> {
        let caller = self.caller(call);
        const HERE: u32 = libc::AT_FDCWD.cast_unsigned();
        let (a, number) = (&caller, |at: usize| caller.number(at));
        let flags = |at: usize| OFlags::from_bits_retain(caller.number(at));
        match call.number {
            libc::SYS_openat if self.only_looks(flags(2)) => self.read(a, number(0), 1, flags(2)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open if self.only_looks(flags(1)) => self.read(a, HERE, 0, flags(1)),
            libc::SYS_openat => self.open(a, number(0), 1, flags(2), number(3)),
            libc::SYS_openat2 => self.open2(a),
            libc::SYS_mkdirat => self.make_directory(a, number(0), 1, number(2)),
            libc::SYS_mknodat => self.make_node(a, number(0), 1, number(2), number(3).into()),
            libc::SYS_renameat => self.rename(a, (number(0), 1), (number(2), 3), 0),
            libc::SYS_renameat2 => self.rename(a, (number(0), 1), (number(2), 3), number(4)),
            libc::SYS_linkat => self.make_link(a, (number(0), 1), (number(2), 3), number(4)),
            libc::SYS_symlinkat => self.make_symlink(a, 0, number(1), 2),
            libc::SYS_bind => self.bind(a),
            libc::SYS_unlinkat => self.remove(a, number(0), 1, number(2)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.remove(a, HERE, 0, 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.remove(a, HERE, 0, libc::AT_REMOVEDIR.cast_unsigned()),
            libc::SYS_truncate => self.truncate(a),
            libc::SYS_fchmod
            | libc::SYS_fchmodat
            | libc::SYS_fchmodat2
            | libc::SYS_fchown
            | libc::SYS_fchownat
            | libc::SYS_utimensat => self.change(a),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod
            | libc::SYS_chown
            | libc::SYS_lchown
            | libc::SYS_utime
            | libc::SYS_utimes
            | libc::SYS_futimesat => self.change(a),
            libc::SYS_setpriority => self.turn(a, number(1), number(0) != PRIORITY_OF_ONE),
            libc::SYS_ioprio_set => self.turn(a, number(1), number(0) != ORDER_OF_ONE),
            libc::SYS_sched_setaffinity
            | libc::SYS_sched_setattr
            | libc::SYS_sched_setparam
            | libc::SYS_sched_setscheduler => self.turn(a, number(0), false),
            libc::SYS_kill => self.signal(a),
            libc::SYS_tkill => self.own_thread(a, number(0)),
            libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => self.own_thread(a, number(1)),
            libc::SYS_rt_sigqueueinfo => self.signal_itself(a),
            // Programs know kernels that have none.
            libc::SYS_pidfd_send_signal => Err(Errno::NOSYS.into()),
            libc::SYS_umask => {
                self.masks.change();
                Ok(Done::Continue)
            }
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
            other => match name_of_denied(other) {
                Some(name) => Err(Stop::Denied(name)),
                None if self.learns || self.reads.is_some() => self.look(a, other),
                None => Err(Errno::NOSYS.into()),
            },
        }
    }

    /// The umask of a caller.
    pub(super) fn umask(&mut self, caller: &Caller<'_>) -> Result<Mode, Stop> {
        let now = Instant::now();
        if let Some(mask) = self.masks.of(caller.call.pid, now) {
            return Ok(mask);
        }
        let mask = caller.status()?.umask;
        caller.is_there()?;
        self.masks.remember(caller.call.pid, mask, now);
        Ok(mask)
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
                Ok(file) => abi::answer_with(listener, one.id, file, one.close_on_exec, true),
            };
        }
    }

    /// Remembers that something came into being.
    pub(super) fn remember(&mut self, made: Born) {
        if self.made.len() < MOST_MADE {
            self.made.insert(made);
        }
    }

    /// Remembers that a repository came into being.
    pub(super) fn remember_repository(&mut self, place: &Place, made: Born) {
        self.remember(made);
        self.hold_git(place, made);
        // What is made for this run alone is gone afterwards.
        if !self.names.is_free(&place.path) {
            self.note(path_buf(&place.path), &[]);
        }
    }

    /// Keeps the number of a new `.git` from being given to another file, which would count as new then.
    fn hold_git(&mut self, place: &Place, made: Born) {
        if self.gits.len() >= MOST_LISTED {
            let made = &mut self.made;
            self.gits.retain(|born, git| {
                let is_there = fstat(git).map_or(true, |found| found.st_nlink > 0);
                if !is_there {
                    made.remove(born);
                }
                is_there
            });
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if self.gits.len() < MOST_LISTED
            && let Ok(git) = openat(&place.parent, &place.name, flags, Mode::empty())
        {
            self.gits.insert(made, git);
        }
    }

    /// Keeps a new repository without a `.git`, to be found again wherever it is.
    pub(super) fn hold(&mut self, folder: &OwnedFd, made: Born) {
        if self.gits.len() < MOST_LISTED
            && let Ok(folder) = rustix::io::fcntl_dupfd_cloexec(folder, 0)
        {
            self.gits.insert(made, folder);
        }
    }

    /// Notes a new repository, and a name that it may hold; `false` where there is no room to list it.
    pub(super) fn note(&mut self, repository: PathBuf, name: &[&[u8]]) -> bool {
        if self.repositories.len() >= MOST_LISTED && !self.repositories.contains_key(&repository) {
            let all = std::mem::take(&mut self.repositories);
            let left = all.into_iter().filter(|(path, _)| self.is_left(path, MOST_SOUGHT));
            self.repositories = left.collect();
            if self.repositories.len() >= MOST_LISTED {
                return false;
            }
        }
        let names = self.repositories.entry(repository).or_default();
        if names.len() < MOST_NAMES && !name.is_empty() {
            let parts: Vec<_> = name.iter().map(|part| String::from_utf8_lossy(part)).collect();
            let name = parts.join("/");
            // The same name in every case of its letters would leave no room for others.
            if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                names.insert(name);
            }
        }
        true
    }

    /// Whether a repository is there, or names that were let through for it, of which so many are looked for.
    fn is_left(&self, path: &Path, sought: usize) -> bool {
        let mut left = self.grants_below(bytes(path));
        may_be_there(&path.join(".git"))
            || may_be_there(&path.join("HEAD"))
            || left.by_ref().take(sought).any(|granted| may_be_there(granted))
            || left.next().is_some()
    }

    /// Remembers a protected name that is let through.
    pub(super) fn grant(&mut self, path: PathBuf) -> bool {
        if self.grants.len() >= MOST_GRANTED {
            return self.grants.contains(&path);
        }
        self.grants.insert(path);
        true
    }

    /// Protected names that were let through at a real path, or below it.
    pub(super) fn grants_below(&self, path: &[u8]) -> impl Iterator<Item = &PathBuf> {
        // Paths are in the order of their parts: what is below one follows it.
        let path = path_buf(path);
        let from = (Bound::Included(path.as_path()), Bound::Unbounded);
        self.grants.range::<Path, _>(from).take_while(move |granted| granted.starts_with(&path))
    }

    /// Whether a real path is a protected name that was let through, or lies below one.
    pub(super) fn is_granted(&self, path: &[u8]) -> bool {
        self.grants.iter().any(|granted| is_below(path, bytes(granted)))
    }

    /// What was remembered by its path is somewhere else now.
    pub(super) fn has_moved(&mut self, from: &[u8], to: &[u8], exchange: bool) {
        if self.grants.is_empty() && self.repositories.is_empty() {
            return;
        }
        let moved = |path: &Path| {
            let (from, to) = match (is_below(bytes(path), from), is_below(bytes(path), to)) {
                (true, _) => (from, to),
                (_, true) if exchange => (to, from),
                _ => return path.to_owned(),
            };
            path_buf(&[to, &bytes(path)[from.len()..]].concat())
        };
        // A name that was itself moved has been judged by its new name.
        let grants = std::mem::take(&mut self.grants);
        let grants = grants.iter().filter(|path| exchange || bytes(path) != from);
        self.grants = grants.map(|path| moved(path)).collect();
        for (path, names) in std::mem::take(&mut self.repositories) {
            self.repositories.entry(moved(&path)).or_default().extend(names);
        }
    }

    fn new_repositories(&self) -> Vec<NewRepository> {
        let all = self.repositories.iter().map(|(path, names)| (path.clone(), names));
        let is_left = |one: &(PathBuf, _)| self.is_left(&one.0, usize::MAX);
        let (mut there, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = all.partition(is_left);
        // Where nothing is any more, somebody else may have moved it: another run, or the owner.
        let held: BTreeSet<String> = gone.into_values().flatten().cloned().collect();
        let moved: Vec<_> = self.gits.values().filter_map(|git| self.led_to_by(git)).collect();
        there.extend(moved.into_iter().filter_map(|path| {
            let is_known = self.repositories.contains_key(&path);
            (!is_known).then_some((path, &held))
        }));
        let told = |(path, names): (PathBuf, &BTreeSet<String>)| NewRepository {
            is_new: self.is_new_at(&path, false),
            holds: names.iter().cloned().collect(),
            executes: git::executing_in(&path),
            path,
        };
        there.into_iter().map(told).collect()
    }

    /// The repository that a `.git` is in now, or that a folder without one is.
    fn led_to_by(&self, git: &OwnedFd) -> Option<PathBuf> {
        let place = Place::of_file(self.own.as_fd(), git).ok()?;
        let path = if place.name.as_bytes() == b".git" { place.path } else { place.full() };
        (!self.names.is_free(&path)).then(|| path_buf(&path))
    }
}

/// Whether there is something at a path, or that cannot be told.
fn may_be_there(path: &Path) -> bool {
    path.symlink_metadata().map_or_else(|error| !git::is_gone(&error), |_| true)
}

/// Whether a file can be run as a program, or its mode says nothing about that.
fn may_be_executed(file: &OwnedFd) -> bool {
    fstat(file).map_or(true, |found| found.st_mode & 0o111 != 0)
}
