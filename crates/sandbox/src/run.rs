//! The outer side: prepares, starts, relays, waits.

mod available;
mod group;
mod links;
mod outside;
mod reading;
mod relay;
mod running;
mod start;

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::child::{self, Set};
use crate::denial::Denial;
use crate::error::{SandboxError, Step};
use crate::filter;
use crate::landlock::SIGNALS_KEPT;
use crate::notify::{self, Told};
use crate::spec::{Applied, Layer, Missing, Network, Spec};
use crate::sys::{self, Arguments};
use crate::view::{NewSettings, View};
use crate::walk::{MAX_ENTRIES, MAX_FOUND};

use self::group::Group;
pub use self::links::LinkOut;
pub(crate) use self::outside::MASKED;
use self::outside::Outside;
use self::running::Left;
pub use self::running::{Answers, Question, Remains, Running};

/// What passes to the program when it reaches this process.
const PASSED: [i32; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

/// Most bytes in the temporary folders, where nothing else is said.
const SCRATCH: u64 = 4 << 30;

/// Exit code of a program that ran out of time.
pub const TIMED_OUT: i32 = 124;

/// A confinement that is worked out and not in force yet.
pub struct Prepared {
    set: Set,
    rest: Rest,
}

/// What the confined side does not need, or not at once.
struct Rest {
    view: View,
    spec: Spec,
    missing: Vec<Missing>,
    /// Version of Landlock.
    landlock: Option<i32>,
    /// Whether there is a filter, and whether names that are made are watched.
    has: (bool, bool),
    /// Copies of the machine's settings that are mounted, or are to be kept.
    settings: (Option<File>, Option<NewSettings>),
    /// Known when the workspace was looked at.
    applied: Option<Applied>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Prepared").field("applied", &self.rest.applied).finish_non_exhaustive()
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// What a shell would tell: its exit code, or 128 and the signal that ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it ran out of time.
    pub timed_out: bool,
    /// Whether it was ended since a file system did not answer.
    pub stuck: bool,
    /// Whether the first process inside was ended, so that nobody told what was made and refused last.
    pub untold: bool,
    /// Names that it wanted to make and was not let, up to some number of them.
    pub refused: Vec<String>,
    /// All that it was kept from and that is noticed, up to some number: names, system calls, guarded files
    /// that are shown empty, in a run that asks files that are not shown and about which nobody said yes, and in a run that learns what was looked for, is there outside and is not shown.
    /// Other reads fail with the kernel's plain error, and are not noticed.
    pub denials: Vec<Denial>,
    /// Repositories that came into being.
    pub repositories: Vec<Repository>,
    /// Links that were made and lead out of the workspace, to where the user could write.
    pub links: Vec<LinkOut>,
}

/// A repository that came into being in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repository {
    /// Where it is.
    pub path: String,
    /// What git would execute there, with commas between; empty where there is nothing.
    pub executes: String,
    /// Protected names in it that would have been refused elsewhere, in the same way.
    pub holds: String,
    /// Whether a new folder is one now that has the name of a folder that was there at the start.
    pub replaces: bool,
}

impl Prepared {
    /// Works out what `spec` means on this machine. Layers that are not to be had are an error here or
    /// at the start, unless they may be missing.
    ///
    /// # Errors
    /// When something that was named cannot be used, or a layer is missing.
    pub fn new(spec: Spec) -> Result<Self, SandboxError> {
        if spec.command.is_empty() {
            return Err(SandboxError::NoCommand);
        }
        if let Some(why) = available::too_old() {
            let (layer, how) = (Layer::Names, available::NEWER);
            return Err(SandboxError::Unavailable { layer, why, how });
        }
        check_profile(&spec)?;
        let view = View::new(&spec)?;
        let mut missing = Vec::new();
        let landlock = match available::landlock() {
            Ok(abi) => Some(abi),
            Err(why) => {
                lack(&spec, Layer::Landlock, why, &mut missing)?;
                None
            }
        };
        let filtered = match available::seccomp() {
            Ok(()) => true,
            Err(why) => {
                lack(&spec, Layer::Seccomp, why, &mut missing)?;
                // Calls that make names are told by a filter, too.
                let why = "without filters of system calls nobody tells of names that are made";
                if !spec.allow_degraded.contains(&Layer::Names) {
                    let (layer, why) = (Layer::Names, why.to_owned());
                    let how = available::NO_FILTER;
                    return Err(SandboxError::Unavailable { layer, why, how });
                }
                missing.push(Missing { layer: Layer::Names, why: why.to_owned() });
                false
            }
        };
        let watched = match available::watching() {
            Err(why) if filtered => {
                if !spec.allow_degraded.contains(&Layer::Names) {
                    let (layer, how) = (Layer::Names, available::UNREADABLE);
                    return Err(SandboxError::Unavailable { layer, why, how });
                }
                missing.push(Missing { layer: Layer::Names, why });
                false
            }
            _ => filtered,
        };
        if let (Some(profile), false) = (&spec.seccomp, filtered) {
            return Err(SandboxError::Path {
                path: profile.source().path.clone().into(),
                what: "cannot hold without the layer `seccomp`: leave it out".to_owned(),
            });
        }
        let mut plan = view.plan()?;
        let settings = (plan.held.take(), plan.news.take());
        let shares_network = false;
        let filter = filtered.then(|| {
            let no_memory_files = spec.strict_memory;
            let told = watched;
            filter::program(filter::Surroundings { shares_network, no_memory_files, told })
        });
        // A file that is handed in is held by Landlock as well, by whatever way it is opened again.
        let reads = spec.ask && landlock.is_some() && watched;
        let memory = sys::memory().max(1 << 30);
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let set = Set {
            sources: Vec::with_capacity(plan.mounts.len()),
            plan: Some(plan),
            guarded: Vec::new(),
            map: [text(format!("{uid} {uid} 1"))?, text(format!("{gid} {gid} 1"))?],
            size: text(spec.limits.scratch.unwrap_or(SCRATCH.min(memory / 2)).to_string())?,
            rules: Vec::new(),
            directory: text(spec.directory.clone())?,
            landlock,
            watch: watched.then(|| {
                // What is there already is held by mounts, and others cannot be named to be signalled.
                let (looking, reading) = (spec.learn, reads);
                let told = Told {
                    removing: false,
                    denied: true,
                    looking,
                    reading,
                    signals: false,
                    shared: false,
                };
                (notify::Filter::of(told), view.watched())
            }),
            linked: Vec::new(),
            lock: spec.lock.clone(),
            learns: spec.learn,
            asks: spec.ask,
            reads: reads.then(|| Arc::new(view.shows())),
            outside: None,
            patience: spec.patience,
            filter,
            profile: spec.seccomp.clone(),
            without_proc: spec.allow_degraded.contains(&Layer::Proc),
            programs: programs(&spec)?,
            arguments: arguments(&spec)?,
            environment: environment(&spec.environment)?,
            limits: spec.limits,
            memory,
            terminals: terminals(&spec),
            window: None,
            settings: None,
            proxy: match spec.network {
                Network::None => None,
                Network::Proxy { port } => Some(port),
            },
            models: spec.models,
        };
        let has = (set.filter.is_some(), set.watch.is_some());
        let rest = Rest { view, spec, missing, landlock, has, settings, applied: None };
        Ok(Self { set, rest })
    }

    /// What will be in force, as far as it is known before the start. It looks through the workspace, which
    /// otherwise is done while the confinement is set up.
    ///
    /// # Errors
    /// When the workspace cannot be looked at, or not all of it.
    pub fn applied(&mut self) -> Result<&Applied, SandboxError> {
        self.rest.look().map(|applied| &*applied)
    }

    /// Starts the program. The calling thread must wait for it, too: the confined side ends with it.
    ///
    /// # Errors
    /// When the confinement cannot be put in force; nothing has run then.
    pub fn spawn(self) -> Result<Running, SandboxError> {
        self.spawn_after(|_| Ok(()))
    }

    /// As [`Self::spawn`], but the program is started only after `record` has written down what will be
    /// in force. It works while the confinement is set up, so that both take no longer than one.
    ///
    /// # Errors
    /// As [`Self::spawn`], and when it could not be written down; nothing has run then.
    pub fn spawn_after<E: From<SandboxError>>(
        self,
        record: impl FnOnce(&Applied) -> Result<(), E>,
    ) -> Result<Running, E> {
        let Self { mut set, mut rest } = self;
        for fd in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()] {
            let folder = rustix::fs::fstat(fd).is_ok_and(|data| {
                rustix::fs::FileType::from_raw_mode(data.st_mode) == rustix::fs::FileType::Directory
            });
            if folder {
                let what = "is a folder, which would lead outside: give a file or nothing";
                let path = "standard input or output".into();
                return Err(SandboxError::Path { path, what: what.to_owned() }.into());
            }
        }
        relay::look(&mut set);
        let mut refused = None;
        let mut group = None;
        let mut record = Some(record);
        let memory = set.memory;
        let mut write_down = |applied: &Applied| {
            record.take().map_or(Ok(()), |record| record(applied)).map_err(|error| {
                refused = Some(error);
                SandboxError::Ended
            })
        };
        // What was looked at must not be moved before it is held.
        let held = rest.spec.lock.as_deref().map(Held::new).transpose()?;
        let started = start::start(&mut set, |pid, found| {
            rest.look()?;
            let guarded = rest.view.guarded()?;
            child::tell_found(found, &guarded, rest.view.held());
            // Before the program is started: what it starts is in the same group then.
            group = Group::new(&rest.spec.limits, memory).filter(|group| group.take(pid));
            let applied = rest.look()?;
            note_group(applied, group.as_ref());
            write_down(applied)?;
            Ok(guarded)
        });
        let started = match started {
            Err(SandboxError::Unavailable { layer: Layer::Namespaces, why, .. })
                if rest.spec.allow_degraded.contains(&Layer::Namespaces) =>
            {
                drop(group);
                rest.without_namespaces(&mut set, why, write_down)
            }
            Err(error) => Err(error),
            Ok(started) => {
                let left = Left { scratch: None, group };
                rest.running(started, &set, left)
            }
        };
        drop(held);
        match refused {
            Some(error) => Err(error),
            None => Ok(started?),
        }
    }
}

/// The lock of all runs that may write in the same places.
struct Held(File);

impl Held {
    fn new(file: &File) -> Result<Self, SandboxError> {
        // Opened once more, for a lock of its own: the confined side has the other.
        let own = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let locked = own.and_then(|file| file.lock().map(|()| file));
        locked.map(Self).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            SandboxError::Step { step: Step::Prepare, subject: None, errno }
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Rest {
    /// Looks for guarded names, once, and gives what will be in force.
    fn look(&mut self) -> Result<&mut Applied, SandboxError> {
        if self.applied.is_none() {
            self.view.find_guarded(&self.spec)?;
            if let Some(path) = self.view.cut_short() {
                let why = format!(
                    "`{}` holds more than is looked at: {MAX_ENTRIES} files, {MAX_FOUND} of them protected",
                    path.display()
                );
                lack(&self.spec, Layer::Names, why, &mut self.missing)?;
            }
        }
        let Self { view, spec, missing, applied, landlock, has, .. } = self;
        let make = || what_applies(spec, view, *landlock, *has, missing.clone());
        Ok(applied.get_or_insert_with(make))
    }

    fn running(
        mut self,
        started: start::Started,
        set: &Set,
        left: Left,
    ) -> Result<Running, SandboxError> {
        let applied = self.look()?.clone();
        let seen = self.view.take_seen();
        let mut running = Running::new(started, set, self.spec.timeout, applied, left, seen)?;
        if let (Some(shows), Some(root)) = (&set.reads, running.take_outside()) {
            running.look_outside(Outside::new(root, Arc::clone(shows), &self.spec))?;
        }
        Ok(running.that_knows(self.view.take_folders()).that_has(self.settings))
    }

    /// Landlock and the filter alone. What will be in force is written down, if it was not yet.
    fn without_namespaces(
        mut self,
        set: &mut Set,
        why: String,
        mut write_down: impl FnMut(&Applied) -> Result<(), SandboxError>,
    ) -> Result<Running, SandboxError> {
        if set.landlock.is_none() || set.filter.is_none() {
            return Err(SandboxError::Unavailable {
                layer: Layer::Landlock,
                why: "neither namespaces nor Landlock and seccomp are to be had".to_owned(),
                how: "nothing is left that would confine the program",
            });
        }
        // Nothing else holds names that are there already.
        if set.watch.is_none() {
            let why = "without namespaces nothing else holds protected names".to_owned();
            let (layer, how) =
                (Layer::Names, "set kernel.yama.ptrace_scope to 1, or allow user namespaces");
            return Err(SandboxError::Unavailable { layer, why, how });
        }
        let applied = self.look()?;
        applied.layers.retain(|layer| !matches!(layer, Layer::Namespaces | Layer::Proc));
        applied.missing.push(Missing { layer: Layer::Namespaces, why });
        applied.masked.clear();
        applied.read_only.clear();
        let scratch = start::private_folder()?;
        set.plan = None;
        // They would listen where all of the machine could call.
        (set.proxy, set.models) = (None, None);
        set.rules = self.view.rules_without_mounts()?;
        set.rules.push((text(scratch.path())?, crate::landlock::Access::All));
        let no_memory_files = self.spec.strict_memory;
        let surroundings =
            filter::Surroundings { shares_network: true, no_memory_files, told: true };
        set.filter = Some(filter::program(surroundings));
        let looking = self.spec.learn;
        // Nor does an older Landlock keep signals from others.
        let signals = set.landlock.is_none_or(|abi| abi < SIGNALS_KEPT);
        let told =
            Told { removing: true, denied: true, looking, reading: false, signals, shared: true };
        set.reads = None;
        let names = self.view.watched().free(scratch.path());
        set.watch = Some((notify::Filter::of(told), names));
        let mut variables = self.spec.environment.clone();
        variables.retain(|(name, _)| name != "TMPDIR");
        variables.push(("TMPDIR".into(), scratch.path().into()));
        set.environment = environment(&variables)?;
        let mut group = None;
        let memory = set.memory;
        let started = start::start(set, |pid, _| {
            group = Group::new(&self.spec.limits, memory).filter(|group| group.take(pid));
            let applied = self.look()?;
            note_group(applied, group.as_ref());
            write_down(applied)?;
            Ok(Vec::new())
        })?;
        let left = Left { scratch: Some(scratch), group };
        self.running(started, set, left)
    }
}

fn note_group(applied: &mut Applied, group: Option<&Group>) {
    applied.control_group = group.is_some();
    applied.control_group_limits = group.map(|group| group.held().to_vec()).unwrap_or_default();
}

/// A profile that the program could write would be another one in the next run.
fn check_profile(spec: &Spec) -> Result<(), SandboxError> {
    let Some(profile) = &spec.seccomp else { return Ok(()) };
    let written = spec.write.iter().chain(&spec.write_if_there).chain(&spec.own);
    match profile.lies_in([&spec.workspace].into_iter().chain(written)) {
        None => Ok(()),
        Some(folder) => Err(SandboxError::Path {
            path: profile.source().path.clone().into(),
            what: format!(
                "is a seccomp profile that the program could change for its next run, as it may write in `{}`: move it \
                 elsewhere",
                folder.display()
            ),
        }),
    }
}

/// Notes that a layer is missing, or refuses.
fn lack(
    spec: &Spec,
    layer: Layer,
    why: String,
    missing: &mut Vec<Missing>,
) -> Result<(), SandboxError> {
    if !spec.allow_degraded.contains(&layer) {
        return Err(SandboxError::Unavailable { layer, why, how: available::how(layer) });
    }
    missing.push(Missing { layer, why });
    Ok(())
}

fn text(text: impl Into<OsString>) -> Result<CString, SandboxError> {
    CString::new(text.into().into_vec()).map_err(|_| SandboxError::ZeroByte)
}

fn arguments(spec: &Spec) -> Result<Arguments, SandboxError> {
    let strings: Result<Vec<_>, _> = spec.command.iter().map(text).collect();
    Ok(Arguments::new(strings?))
}

fn environment(variables: &[(OsString, OsString)]) -> Result<Arguments, SandboxError> {
    let one = |(name, value): &(OsString, OsString)| {
        let mut whole = name.clone();
        whole.push("=");
        whole.push(value);
        text(whole)
    };
    Ok(Arguments::new(variables.iter().map(one).collect::<Result<_, _>>()?))
}

/// Where the program may be, in the order in which it is looked for.
fn programs(spec: &Spec) -> Result<Vec<CString>, SandboxError> {
    let name = &spec.command[0];
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![text(name)?]);
    }
    let path = spec.environment.iter().find(|(name, _)| name == "PATH");
    let folders = path.map_or_else(|| OsString::from("/usr/bin:/bin"), |(_, path)| path.clone());
    let folders = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
    folders.map(|folder: std::path::PathBuf| text(folder.join(name))).collect()
}

fn terminals(spec: &Spec) -> [bool; 3] {
    let fds = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    fds.map(|fd| spec.terminal && rustix::termios::isatty(fd))
}

fn what_applies(
    spec: &Spec,
    view: &View,
    landlock: Option<i32>,
    (filtered, watched): (bool, bool),
    missing: Vec<Missing>,
) -> Applied {
    let lacking = |layer: Layer| missing.iter().any(|one| one.layer == layer);
    let mut layers: Vec<Layer> = Layer::ALL.into_iter().filter(|layer| !lacking(*layer)).collect();
    layers.retain(|layer| match layer {
        Layer::Landlock => landlock.is_some(),
        Layer::Seccomp => filtered,
        Layer::Names => watched,
        _ => true,
    });
    let [read, write, masked, read_only, sockets] = view.in_words();
    let words = |path: &Path| path.display().to_string();
    Applied {
        command: spec.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        workspace: words(view.workspace()),
        layers,
        missing,
        landlock_abi: landlock.unwrap_or(0),
        read,
        write,
        masked,
        read_only,
        sockets,
        environment: spec
            .environment
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect(),
        limits: spec.limits,
        control_group: false,
        control_group_limits: Vec::new(),
        seccomp_profile: spec.seccomp.as_ref().map(|profile| profile.source().clone()),
        network: match spec.network {
            Network::None => "none",
            Network::Proxy { .. } => "proxy",
        },
        timeout_ms: spec.timeout.and_then(|time| u64::try_from(time.as_millis()).ok()),
    }
}
