//! What the commands on an agent's identity share: which workspace is meant, who may act, and reports.

mod apply;
mod concerns;
mod diff;
pub(super) mod door;
mod history;
mod objections;
mod reset;
mod restore;
pub(super) mod setup;
mod stage;
mod status;
mod sync;
mod tiers;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use wardkeep_evidence::record::Principal;
use wardkeep_identity::config::OWN_FOLDER;
use wardkeep_identity::name::Name;
use wardkeep_monitor::identity::{Asker, Desk, OWNED, Place, find, owned_state};
use wardkeep_monitor::store::Store;
use wardkeep_monitor::wire::{Client, Door};

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::{Line, Progress};

pub(crate) use apply::{Args as ApplyArgs, run as apply};
pub(crate) use diff::{Args as DiffArgs, StagedLines, run as diff, staged_lines};
pub(crate) use history::{Args as HistoryArgs, run as history};
pub(crate) use reset::{Args as ResetArgs, run as reset};
pub(crate) use restore::{Args as RestoreArgs, run as restore};
pub(crate) use stage::{Args as StageArgs, run as stage};
pub(crate) use status::{Args as StatusArgs, run as status};
pub(crate) use sync::{Args as SyncArgs, run as sync};
pub(crate) use tiers::{ProtectArgs, ReleaseArgs, WatchArgs, protect, release, watch};

/// How long the daemon of a workspace is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A workspace that this process may act on.
pub(crate) struct Meant {
    pub(crate) place: Place,
    /// The state directory that knows it.
    pub(crate) state: PathBuf,
}

/// How a workspace is reached.
enum Access {
    Direct(Box<Meant>),
    /// It is held by a daemon of root's, which is asked.
    Daemon(PathBuf),
}

/// Finds the workspace at a path, or at the current folder.
fn access(context: &Context, workspace: Option<&Path>) -> Result<Access, CliError> {
    let path = workspace.map_or_else(|| context.workspace(), Path::to_owned);
    check_folder(&path)?;
    let now = SystemTime::now();
    let owner = rustix::process::geteuid();
    let direct = |state: PathBuf| -> Result<Option<Access>, CliError> {
        let place = find(&state, owner.as_raw(), &path, now)?;
        Ok(place.map(|place| Access::Direct(Box::new(Meant { place, state }))))
    };
    // A state directory that was named is the only one.
    if context.names_state_dir() {
        return direct(context.state_dir()?)?.ok_or_else(|| unknown(&path));
    }
    if owner.is_root() {
        for state in owned_states() {
            if let Some(access) = direct(state)? {
                return Ok(access);
            }
        }
        if let Some((user, _)) = context.sudo() {
            return Err(unknown_to_root(context, &path, user));
        }
    }
    if let Some(access) = direct(context.state_dir()?)? {
        return Ok(access);
    }
    let held = owned_state(owner.as_raw());
    if !owner.is_root() && held.symlink_metadata().is_ok() {
        return Ok(Access::Daemon(held));
    }
    Err(unknown(&path))
}

/// The workspace, for what only its owner may do.
fn owned(context: &Context, workspace: Option<&Path>) -> Result<Meant, CliError> {
    match access(context, workspace)? {
        Access::Direct(meant) => Ok(*meant),
        Access::Daemon(_) => Err(CliError::refused(
            "this workspace is held by root: only its owner may do that",
            "run it with sudo",
        )),
    }
}

/// The state directories of the owned level.
fn owned_states() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(OWNED) else { return Vec::new() };
    let mut states: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()))
        .map(|entry| entry.path())
        .collect();
    states.sort_unstable();
    states
}

fn check_folder(path: &Path) -> Result<(), CliError> {
    match path.metadata() {
        Ok(data) if data.is_dir() => Ok(()),
        Ok(_) => Err(CliError::refused(
            format!("`{}` is a file, not a workspace", path.display()),
            format!("name the workspace first: `. {}`", path.display()),
        )),
        Err(error) => Err(CliError::io("open", path, &error)),
    }
}

fn unknown(path: &Path) -> CliError {
    CliError::refused(
        format!("`{}` is not set up", path.display()),
        "run `wardkeep init` there first",
    )
}

/// The same under sudo, where it may be set up for the user who ran that. Only a hint: nothing of that
/// user's state is read, and a folder that anyone could have made says no more than that.
fn unknown_to_root(context: &Context, path: &Path, user: u32) -> CliError {
    let made = path.join(OWN_FOLDER).symlink_metadata().is_ok_and(|data| data.is_dir());
    if user == 0 || !made {
        return unknown(path);
    }
    let name = context.user_name(user).unwrap_or_else(|| format!("user {user}"));
    CliError::refused(
        format!("`{}` is not set up for root; it seems to be set up for {name}", path.display()),
        "run it without sudo; or `sudo wardkeep init` there first, which gives what defines the agent an \
         owner of its own",
    )
}

/// Files as they were named, below the workspace.
fn names(place: &Path, files: &[PathBuf]) -> Result<Vec<Name>, CliError> {
    let name = |path: &PathBuf| {
        let below = if path.is_absolute() { path.strip_prefix(place).ok() } else { Some(&**path) };
        below.and_then(Name::from_path).ok_or_else(|| {
            CliError::refused(
                format!("`{}` is no path in the workspace", path.display()),
                "name files as the workspace has them, like `SOUL.md` or `skills/a.md`",
            )
        })
    };
    files.iter().map(name).collect()
}

/// Refuses what only a person may do where none can be seen: inside `wardkeep run` always, and
/// without a terminal unless the command line says exactly what is meant.
fn only_owner(context: &Context, said: bool) -> Result<(), CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "the owner approves, not the agent: this is refused inside `wardkeep run`",
            "run it in a terminal of your own",
        ));
    }
    if !said && !context.has_terminal() {
        return Err(CliError::refused(
            "there is no terminal on which someone could be asked",
            "run it in a terminal, or say exactly what is meant: see --help",
        ));
    }
    Ok(())
}

impl Meant {
    fn open_store(&self, context: &Context) -> Result<Store, CliError> {
        context.open_store_at(&self.state)
    }

    /// The desk for the owner.
    fn desk<'a>(&'a self, store: &'a Store) -> Desk<'a> {
        let uid = rustix::process::getuid().as_raw();
        Desk::new(store, &self.place, Asker { principal: Principal::User, uid })
    }
}

/// What a look at the workspace came to.
#[derive(Debug)]
pub(super) struct Report {
    exit: Exit,
    ok: bool,
    lines: Vec<Line>,
    result: serde_json::Value,
}

/// The same on its way from the daemon to the terminal of whoever asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentReport {
    exit: u8,
    ok: bool,
    lines: Vec<String>,
    result: serde_json::Value,
}

impl Report {
    fn of(
        exit: Exit,
        ok: bool,
        lines: Vec<Line>,
        result: &impl Serialize,
    ) -> Result<Self, CliError> {
        let result = serde_json::to_value(result).map_err(|error| {
            CliError::new(Exit::Unreadable, error.to_string(), "report this as a defect")
        })?;
        Ok(Self { exit, ok, lines, result })
    }

    fn print(self, context: &mut Context) -> Exit {
        self.lines.into_iter().for_each(|line| context.ui.answer(line));
        context.finish(self.exit, self.ok, &self.result)
    }

    pub(super) fn send(self) -> SentReport {
        let lines = self.lines.iter().map(Line::text).collect();
        SentReport { exit: self.exit.code(), ok: self.ok, lines, result: self.result }
    }
}

impl From<SentReport> for Report {
    fn from(sent: SentReport) -> Self {
        let exit = match sent.exit {
            0 => Exit::Success,
            1 => Exit::Refused,
            _ => Exit::Failed,
        };
        let lines = sent.lines.into_iter().map(Line::from).collect();
        Self { exit, ok: sent.ok, lines, result: sent.result }
    }
}

/// What the daemon is asked about a workspace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    workspace: PathBuf,
    #[serde(default)]
    files: Vec<PathBuf>,
    #[serde(default)]
    delete: bool,
}

/// Asks the daemon that holds a workspace.
fn ask(
    context: &mut Context,
    state: &Path,
    operation: &str,
    mut asked: Asked,
) -> Result<Exit, CliError> {
    asked.workspace = std::path::absolute(&asked.workspace)
        .map_err(|error| CliError::io("find", &asked.workspace, &error))?;
    let mut client = Client::connect_to(state, Door::Monitor, PATIENCE).map_err(|error| {
        let message = format!("the daemon that holds this workspace does not answer: {error}");
        CliError::new(Exit::Unreadable, message, "ask the owner to start it, or use sudo")
    })?;
    let sent: SentReport = client.call(operation, &asked)?.read()?;
    Ok(Report::from(sent).print(context))
}

/// What is staged in a workspace that root holds, as its daemon shows it: nothing, where it holds none.
pub(crate) fn held_lines(workspace: &Path) -> Vec<String> {
    let uid = rustix::process::geteuid();
    let state = owned_state(uid.as_raw());
    if uid.is_root() || state.symlink_metadata().is_err() {
        return Vec::new();
    }
    let workspace = workspace.to_owned();
    let asked = Asked { workspace, files: Vec::new(), delete: false };
    let answer = Client::connect_to(&state, Door::Monitor, PATIENCE)
        .and_then(|mut client| client.call("identity.diff", &asked)?.read::<SentReport>());
    // Exit 1 says that something is staged.
    answer.ok().filter(|sent| sent.exit == 1).map(|sent| sent.lines).unwrap_or_default()
}

/// Progress that several threads report; of how many files is not known before.
pub(super) struct Seen(Option<Mutex<Progress>>);

impl Seen {
    fn new(progress: Option<Progress>) -> Self {
        Self(progress.map(Mutex::new))
    }

    fn tell(&self, files: usize) {
        if let Some(progress) = &self.0
            && let Ok(mut progress) = progress.try_lock()
        {
            progress.count(files as u64);
        }
    }
}
