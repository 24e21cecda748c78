//! The first process inside: starts the program, reaps, passes signals in and the end out.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, epoll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::pty::OpenptFlags;
use rustix::termios::OptionalActions;

use super::opened::Opened;
use super::{FAILED, Set, program, tell};
use crate::denial::{Denial, DenialKind};
use crate::error::{Failure, Step};
use crate::landlock::Access;
use crate::notify::{self, Answer, Names, OF_READS, Pulse, Refusal, Supervisor};
use crate::sys::{self, Side};
use crate::view::Shows;

/// First byte of a message: a signal for the program, its number behind it.
pub(crate) const SIGNAL: u8 = 1;
/// The terminal's other side comes with it.
pub(crate) const TERMINAL: u8 = 2;
/// The program has ended; its status is behind it.
pub(crate) const ENDED: u8 = 3;
/// The socket that listens for the proxy comes with it.
pub(crate) const LISTENER: u8 = 4;
/// The socket that listens for the proxy of model APIs comes with it.
pub(crate) const MODELS: u8 = 9;

/// Something was denied; what it was about is behind it.
pub(crate) const REFUSED: u8 = 5;
/// The owner is asked about a name; the number of the question is behind it, and what it is about.
pub(crate) const ASKED: u8 = 10;
/// Nobody waits for the answer to a question any more; its number is behind it.
pub(crate) const WITHDRAWN: u8 = 12;
/// An answer; the number of the question is behind it, and one of [`Answer`].
const ANSWERED: u8 = 11;
/// Somebody wants to read a file that is not shown; see [`Wanted`].
pub(crate) const WANTED: u8 = 13;
/// All files of the machine come with it, if the other side may hand in some of them.
pub(crate) const OUTSIDE: u8 = 14;
/// A repository has come into being; its path is behind it, what it would execute, which protected names it holds, and
/// whether its folder is new.
pub(crate) const MADE: u8 = 6;
/// Says so.
pub(crate) const NEW: &str = "new";
/// A repository that came into being has gone; its path is behind it.
pub(crate) const UNMADE: u8 = 20;

/// A file system does not answer; everything ends.
pub(crate) const STUCK: u8 = 8;

/// The program may be started.
pub(crate) const GO: u8 = 7;

/// All that is to be told of repositories is asked for, and has been told.
pub(crate) const TELL: u8 = 21;
pub(crate) const ALL_TOLD: u8 = 22;

/// Longest text of a message.
const LONGEST: usize = 2048;
/// The same of one about a repository: a path as long as they get, of which every byte may be no text, and both lists.
const LONGEST_MADE: usize = 3 * 4096 + 2 * MOST_LISTED + 8;
/// Longest list of what a repository executes, or holds.
const MOST_LISTED: usize = 4096;
/// Longest message about a repository.
pub(crate) const LONGEST_MESSAGE: usize = LONGEST_MADE + 1;

/// An answer, as the confined side takes it: yes once, yes until the end, or no.
pub(crate) fn answer(number: u32, word: u8) -> [u8; 6] {
    let [a, b, c, d] = number.to_ne_bytes();
    [ANSWERED, a, b, c, d, word]
}

/// Killed, where nobody waits any more.
const ABANDONED: i32 = 128 + 9;

/// Starts the program and waits for its end; gives the code to end with.
pub(super) fn run(set: &mut Set, report: OwnedFd, life: OwnedFd) -> i32 {
    if !is_let(life.as_fd()) {
        return FAILED;
    }
    // Before the program could open one.
    let opened = set.plan.as_ref().and_then(|plan| Opened::new(&plan.masked));
    let (program, near) = match start(set, report.as_fd(), life.as_fd()) {
        Ok(started) => started,
        Err(failure) => {
            tell(report.as_fd(), failure);
            return FAILED;
        }
    };
    // Whoever is asked has it by now, and nobody else needs it.
    let reads = set.reads.take().filter(|_| set.outside.take().is_some());
    // The other side reads its end when the program has closed it, too.
    drop(report);
    leave_standard_files();
    let Ok(teller) = life.try_clone().map(Teller::new).map(Arc::new) else { return FAILED };
    let supervisor = match (near, set.watch.take()) {
        (Some(near), Some((_, names))) => {
            let Some(supervisor) = supervise(near, names, &teller) else { return FAILED };
            // The filter forbids calls by which a program gets another root.
            let filtered = set.filter.is_some();
            let supervisor = if filtered { supervisor.with_one_root() } else { supervisor };
            let supervisor = supervisor.that_learns(set.learns).that_holds(&set.linked);
            // INVARIANT: the only other thread of this process (`is_watched`) uses no path and makes no file.
            let supervisor = supervisor.that_is_alone();
            let supervisor = supervisor.that_locks(set.lock.take()).that_changes(written(set));
            let supervisor = if set.asks { with_questions(supervisor, &life) } else { supervisor };
            let supervisor = match reads {
                Some(shows) => with_reads(supervisor, shows, &life),
                None => supervisor,
            };
            let ends = (set.plan.is_none()).then_some((program, set.landlock));
            let Ok(told) = life.try_clone() else { return FAILED };
            let patience = set.patience;
            Some(supervisor.that_begins(move |pulse| {
                // Where nobody looks, nothing goes on.
                if !is_watched(pulse, patience, told, ends) {
                    end_now(ends, FAILED);
                }
            }))
        }
        _ => None,
    };
    let code = watch(program, life.as_fd(), &teller, supervisor, opened);
    if set.plan.is_none() {
        end_all(program, set.landlock);
    }
    code
}

/// Where the program may write, where nothing but Landlock says so. A socket of others is not among it.
fn written(set: &Set) -> Vec<PathBuf> {
    let all = set.rules.iter().filter(|(_, access)| *access == Access::All);
    all.map(|(path, _)| OsStr::from_bytes(path.to_bytes()).into()).collect()
}

/// Waits for leave to start the program; there is none where the other side has gone.
fn is_let(life: BorrowedFd<'_>) -> bool {
    let mut message = [0; 2];
    loop {
        match rustix::net::recv(life, &mut message[..], RecvFlags::empty()) {
            Ok((_, 1)) if message[0] == GO => return true,
            // A signal that comes before there is a program.
            Ok((_, 2)) if message[0] == SIGNAL => return false,
            Err(Errno::INTR) => {}
            _ => return false,
        }
    }
}

/// Starts the program; gives the end on which it hands over what tells of its calls.
fn start(
    set: &Set,
    report: BorrowedFd<'_>,
    life: BorrowedFd<'_>,
) -> Result<(Pid, Option<OwnedFd>), Failure> {
    let terminal = if set.terminals.contains(&true) {
        let made = new_terminal();
        let (near, far) = made.map_err(Failure::at(Step::Terminal, 0))?;
        if let Some(window) = set.window {
            let _ = rustix::termios::tcsetwinsize(&near, window);
        }
        if let Some(settings) = &set.settings {
            let _ = rustix::termios::tcsetattr(&far, OptionalActions::Now, settings);
        }
        hand_over(life, TERMINAL, near.as_fd()).map_err(Failure::at(Step::Terminal, 1))?;
        Some(far)
    } else {
        None
    };
    for (port, word) in [(set.proxy, LISTENER), (set.models, MODELS)] {
        let Some(port) = port else { continue };
        let listener = listen(port).map_err(Failure::at(Step::Proxy, 0))?;
        hand_over(life, word, listener.as_fd()).map_err(Failure::at(Step::Proxy, 1))?;
    }
    if set.reads.is_some() {
        let sent = match &set.outside {
            Some(tree) => hand_over(life, OUTSIDE, tree.as_fd()),
            None => rustix::net::send(life, &[OUTSIDE], SendFlags::NOSIGNAL).map(drop),
        };
        sent.map_err(Failure::at(Step::Watch, 3))?;
    }
    let pair = if set.watch.is_some() {
        let flags = SocketFlags::CLOEXEC;
        let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        Some(pair.map_err(Failure::at(Step::Watch, 2))?)
    } else {
        None
    };
    match program::fork().map_err(Failure::at(Step::Fork, 1))? {
        Side::Child => {
            let watcher = pair.as_ref().map(|(_, far)| far.as_fd());
            program::main(set, report, terminal.as_ref().map(OwnedFd::as_fd), watcher)
        }
        Side::Parent { pid, .. } => {
            let pid = Pid::from_raw(pid).ok_or(Errno::SRCH).map_err(Failure::at(Step::Fork, 1))?;
            Ok((pid, pair.map(|(near, _)| near)))
        }
    }
}

/// Takes over what tells of the program's calls. `None` where that cannot be: then nothing may go on.
fn supervise(near: OwnedFd, names: Names, teller: &Arc<Teller>) -> Option<Supervisor> {
    let listener = notify::take_over(near.as_fd()).ok()?;
    let teller = Arc::clone(teller);
    let refused = move |refusal: &Refusal| teller.tell(&denial_of(refusal));
    Supervisor::new(listener, names, refused).ok()
}

/// Tells the other side what was denied. It waits a moment where the other side is slow: whoever makes many calls that
/// are denied waits for it, and none of them hides another. What could not be told is counted.
struct Teller {
    life: OwnedFd,
    untold: AtomicU64,
    /// Whether the other side did not listen the last time; then nobody waits for it again.
    is_deaf: AtomicBool,
}

impl Teller {
    fn new(life: OwnedFd) -> Self {
        Self { life, untold: AtomicU64::new(0), is_deaf: AtomicBool::new(false) }
    }

    fn tell(&self, denial: &Denial) {
        if !self.is_heard(denial) {
            self.untold.fetch_add(1, Ordering::Relaxed);
        } else if self.untold.load(Ordering::Relaxed) > 0 {
            self.tell_untold();
        }
    }

    /// Tells how many were not told.
    fn tell_untold(&self) {
        let untold = self.untold.swap(0, Ordering::Relaxed);
        if untold > 0 && !self.is_heard(&Denial::more(untold)) {
            self.untold.fetch_add(untold, Ordering::Relaxed);
        }
    }

    fn is_heard(&self, denial: &Denial) -> bool {
        let patience = if self.is_deaf.load(Ordering::Relaxed) { Duration::ZERO } else { PATIENCE };
        let heard = is_said_within(self.life.as_fd(), REFUSED, &denial.to_bytes(), patience);
        self.is_deaf.store(!heard, Ordering::Relaxed);
        heard
    }
}

/// How long the other side may take to hear something.
const PATIENCE: Duration = Duration::from_secs(10);

fn denial_of(refusal: &Refusal) -> Denial {
    let Refusal { kind, call, path, rule, comm, .. } = refusal;
    Denial {
        kind: *kind,
        call: (*call).to_owned(),
        path: path.display().to_string(),
        rule: rule.clone(),
        program: comm.clone(),
        times: 1,
    }
}

/// Has the other side asked about protected names. What does not fit into a question, or is no text, is no
/// question.
fn with_questions(supervisor: Supervisor, life: &OwnedFd) -> Supervisor {
    let Ok(life) = life.try_clone() else { return supervisor };
    supervisor.that_asks(move |number, refusal| {
        let mut text = number.to_ne_bytes().to_vec();
        let Some(refusal) = refusal else { return is_said(life.as_fd(), WITHDRAWN, &text) };
        text.extend(denial_of(refusal).to_bytes());
        text.len() <= LONGEST
            && refusal.path.to_str().is_some()
            && is_said(life.as_fd(), ASKED, &text)
    })
}

/// Has the other side asked for files that are not shown. A path that does not fit into a message is not there.
fn with_reads(supervisor: Supervisor, shows: Arc<Shows>, life: &OwnedFd) -> Supervisor {
    let Ok(life) = life.try_clone() else { return supervisor };
    supervisor.that_reads(shows, move |number, wanted| match wanted {
        None => is_said(life.as_fd(), WITHDRAWN, &number.to_ne_bytes()),
        Some(wanted) => {
            let text = wanted.to_bytes();
            text.len() <= LONGEST && is_said(life.as_fd(), WANTED, &text)
        }
    })
}

/// Ends everything where a call is not done after some time: somebody's file system does not answer, and
/// nobody inside could make a file any more. `ends` is what no namespace ends.
fn is_watched(
    pulse: Arc<Pulse>,
    patience: Duration,
    life: OwnedFd,
    ends: Option<(Pid, Option<i32>)>,
) -> bool {
    let look = move || loop {
        std::thread::sleep((patience / 10).clamp(SHORTEST_LOOK, LONGEST_LOOK));
        if pulse.busy_for() > patience {
            say(life.as_fd(), STUCK, b"");
            end_now(ends, ABANDONED);
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(look).is_ok()
}

/// Ends this process and all that the program has started; `ends` is what no namespace ends.
fn end_now(ends: Option<(Pid, Option<i32>)>, code: i32) -> ! {
    match ends {
        Some((program, landlock)) => end_all(program, landlock),
        // This process may have to wait for the file system before it ends; the others need not.
        None => sys::kill_all_others(),
    }
    sys::exit_now(code)
}

/// How often it is looked whether a call is done.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// Words in a row, as far as there is room for them.
fn listed(words: &[String]) -> String {
    let mut all = String::new();
    for (index, word) in words.iter().enumerate() {
        let between = if all.is_empty() { "" } else { ", " };
        let left = words.len() - index;
        if all.len() + between.len() + word.len() > MOST_LISTED - 32 {
            return format!("{all}{between}and {left} more");
        }
        all.push_str(between);
        all.extend(word.chars().filter(|sign| *sign != '\0'));
    }
    all
}

/// Tells the other side something, if it listens.
fn say(life: BorrowedFd<'_>, kind: u8, text: &[u8]) {
    let _ = is_said(life, kind, text);
}

fn is_said(life: BorrowedFd<'_>, kind: u8, text: &[u8]) -> bool {
    is_said_within(life, kind, text, Duration::ZERO)
}

/// Whether the other side was told something, for which it may take some time.
fn is_said_within(life: BorrowedFd<'_>, kind: u8, text: &[u8], patience: Duration) -> bool {
    let mut message = vec![kind];
    let longest = if matches!(kind, MADE | UNMADE) { LONGEST_MADE } else { LONGEST };
    message.extend(text.iter().take(longest));
    let until = std::time::Instant::now() + patience;
    loop {
        match rustix::net::send(life, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => return true,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = until.saturating_duration_since(std::time::Instant::now());
                if left.is_zero() {
                    return false;
                }
                let mut fds = [PollFd::from_borrowed_fd(life, PollFlags::OUT)];
                let left = rustix::event::Timespec::try_from(left).ok();
                let _ = rustix::event::poll(&mut fds, left.as_ref());
            }
            Err(_) => return false,
        }
    }
}

/// A terminal of the own `/dev/pts`: the side for whoever shows it, and the program's side.
fn new_terminal() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let near = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&near)?;
    let far = rustix::pty::ioctl_tiocgptpeer(&near, flags)?;
    Ok((near, far))
}

fn listen(port: u16) -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, 1024)?;
    Ok(socket)
}

fn hand_over(life: BorrowedFd<'_>, kind: u8, fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(Errno::NOBUFS);
    }
    let text = [IoSlice::new(std::slice::from_ref(&kind))];
    rustix::net::sendmsg(life, &text, &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// What the program writes to stays its own.
fn leave_standard_files() {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(null) = rustix::fs::open(c"/dev/null", flags, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Tells of files that are shown empty and were opened.
fn tell_opened(opened: &mut Option<Opened>, teller: &Teller) {
    for path in opened.as_mut().map(Opened::next).unwrap_or_default() {
        teller.tell(&Denial {
            kind: DenialKind::Masked,
            call: "open".to_owned(),
            path,
            rule: "it is shown empty".to_owned(),
            program: String::new(),
            times: 1,
        });
    }
}

fn watch(
    program: Pid,
    life: BorrowedFd<'_>,
    teller: &Teller,
    mut supervisor: Option<Supervisor>,
    mut opened: Option<Opened>,
) -> i32 {
    // The signals were kept back before the fork.
    let Ok(signals) = sys::signal_fd(&[libc::SIGCHLD]) else { return FAILED };
    let opens = opened.as_ref().map(Opened::as_fd);
    let Ok(events) = any([Some(life), Some(signals.as_fd()), opens]) else { return FAILED };
    let mut made = HashMap::new();
    loop {
        if let Some(one) = &mut supervisor {
            let summary = one.run(Some(events.as_fd()));
            // What has gone leaves its place in the list of the other side to others.
            let is_there =
                |path: &PathBuf| summary.repositories.iter().any(|one| one.path == *path);
            made.retain(|path: &PathBuf, _| {
                let path_bytes = path.as_os_str().as_bytes();
                is_there(path) || !is_said_within(life, UNMADE, path_bytes, PATIENCE)
            });
            for repository in summary.repositories {
                let (executes, holds) = (listed(&repository.executes), listed(&repository.holds));
                let new = if repository.is_new { NEW } else { "" };
                let path = repository.path.as_os_str().as_bytes();
                let text = [path, executes.as_bytes(), holds.as_bytes(), new.as_bytes()].join(&0);
                let lists = (executes, holds);
                if made.get(&repository.path) != Some(&lists)
                    && is_said_within(life, MADE, &text, PATIENCE)
                {
                    made.insert(repository.path, lists);
                }
            }
            // Where nobody is left who could call, it returns at once.
            if !is_ready(events.as_fd(), true) {
                supervisor = None;
            }
        } else if !is_ready(events.as_fd(), false) {
            return FAILED;
        }
        tell_opened(&mut opened, teller);
        while sys::next_signal(signals.as_fd()).is_some() {}
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == program && (status.exited() || status.signaled()) {
                // What it did last, too.
                tell_opened(&mut opened, teller);
                teller.tell_untold();
                // Without children of this process there is no other: who loses its parent comes here.
                let left = rustix::process::wait(WaitOptions::NOHANG);
                let alone = matches!(left, Err(Errno::CHILD));
                let mut message = [ENDED, 0, 0, 0, 0, alone.into()];
                message[1..5].copy_from_slice(&status.as_raw().to_ne_bytes());
                let _ = rustix::net::send(life, &message, SendFlags::NOSIGNAL);
                let code = status.exit_status();
                return code.or(status.terminating_signal().map(|n| 128 + n)).unwrap_or(FAILED);
            }
        }
        if !pass_on(program, life, supervisor.as_mut()) {
            return ABANDONED;
        }
    }
}

/// A descriptor that can be read when one of several can.
fn any(fds: [Option<BorrowedFd<'_>>; 3]) -> Result<OwnedFd, Errno> {
    let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for fd in fds.into_iter().flatten() {
        epoll::add(&events, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(events)
}

/// Whether there is something to read, now or when it comes; `false` where that cannot be told.
fn is_ready(events: BorrowedFd<'_>, now: bool) -> bool {
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        let mut fds = [PollFd::from_borrowed_fd(events, PollFlags::IN)];
        match rustix::event::poll(&mut fds, now.then_some(&at_once)) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Passes a signal on, or an answer; `false` where the other side is gone.
fn pass_on(program: Pid, life: BorrowedFd<'_>, supervisor: Option<&mut Supervisor>) -> bool {
    let mut message = [0; 6];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let text = &mut [IoSliceMut::new(&mut message)];
    let heard = rustix::net::recvmsg(life, text, &mut control, flags).map(|heard| heard.bytes);
    let file = control.drain().find_map(|one| match one {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    match heard {
        Ok(2) if message[0] == SIGNAL => {
            if let Some(signal) = Signal::from_named_raw(message[1].into()) {
                // The program may lead several processes by now.
                let group = rustix::process::kill_process_group(program, signal);
                if group.is_err() {
                    let _ = rustix::process::kill_process(program, signal);
                }
            }
            true
        }
        Ok(6) if message[0] == ANSWERED => {
            let [_, number @ .., answer] = message;
            let number = u32::from_ne_bytes(number);
            let answer = match answer {
                b'o' => Answer::Once,
                b's' => Answer::Session,
                _ => Answer::No,
            };
            match supervisor {
                Some(supervisor) if number & OF_READS != 0 => {
                    let file = file.filter(|_| answer != Answer::No);
                    supervisor.fetched(number, file, answer == Answer::Session);
                }
                Some(supervisor) => supervisor.answered(number, answer),
                None => {}
            }
            true
        }
        // What is new was told before messages are looked at.
        Ok(1) if message[0] == TELL => {
            say(life, ALL_TOLD, b"");
            true
        }
        Ok(0) => false,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
        Err(_) => false,
    }
}

/// Ends everything that the program has started, where no namespace ends with this process.
fn end_all(program: Pid, landlock: Option<i32>) {
    for _ in 0..1000 {
        if landlock.is_some_and(|abi| abi >= 6) {
            // Landlock lets signals reach only what is confined together with this process.
            sys::kill_all_others();
        } else {
            let _ = rustix::process::kill_process_group(program, Signal::KILL);
            // Others of sessions of their own: whoever loses its parent is a child of this process then.
            for child in children() {
                let _ = rustix::process::kill_process(child, Signal::KILL);
            }
        }
        match rustix::process::wait(WaitOptions::NOHANG) {
            Err(_) => return,
            Ok(None) => {
                let pause = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
                let _ = rustix::thread::nanosleep(&pause);
            }
            Ok(Some(_)) => {}
        }
    }
}

/// The children of this process. Until they are waited for their numbers are nobody else's.
fn children() -> Vec<Pid> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let all = std::fs::read_to_string(path).unwrap_or_default();
    all.split_whitespace().filter_map(|one| Pid::from_raw(one.parse().ok()?)).collect()
}
