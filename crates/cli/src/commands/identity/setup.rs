//! The part of `wardkeep init` that sets an agent's identity up.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use serde::Serialize;
use wardkeep_identity::config::Config;
use wardkeep_identity::lock::{Lock, Support, supported};
use wardkeep_identity::setup::SetUp;
use wardkeep_identity::system::System;
use wardkeep_monitor::identity::{OWNED, Setup, Told, owned_state, register};
use wardkeep_policy::key::KeyError;
use wardkeep_policy::store::PolicyStore;

use super::Meant;
use super::history::keep;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// How an agent's identity is enforced.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Options {
    /// Let a user of its own hold the protected files (needs root)
    #[arg(long)]
    owned: bool,
    /// The agent's user, where root sets it up [default: the user of sudo, or the folder's owner]
    #[arg(long, value_name = "USER")]
    agent: Option<String>,
    /// Hold files by sticky folders of root's instead of the immutable attribute
    #[arg(long)]
    sticky: bool,
}

/// What was set up.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Made {
    level: &'static str,
    lock: Option<Lock>,
    #[serde(flatten)]
    outcome: SetUp,
    record: String,
    notes: Vec<String>,
}

/// Who the agent is, where root holds its files.
struct Agent {
    uid: u32,
    gid: u32,
}

/// Sets a workspace up. `settings` are the files that steer the agent, for a new configuration.
pub(in crate::commands) fn set_up(
    context: &mut Context,
    path: &Path,
    options: &Options,
    settings: &[&str],
) -> Result<Made, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "nothing is set up inside `wardkeep run`",
            "run it in a terminal of your own",
        ));
    }
    let agent = agent(context, path, options)?;
    let mut notes = Vec::new();
    let (state, setup) = match &agent {
        None => (context.state_dir()?, Setup::User),
        Some(agent) => {
            let state = match context.names_state_dir() {
                true => context.state_dir()?,
                false => owned_state(agent.uid),
            };
            (state, hold(context, path, agent, options.sticky, &mut notes)?)
        }
    };
    if agent.is_some() && !context.names_state_dir() {
        make_base()?;
    }
    let store = context.open_store_at(&state)?;
    if let Some(agent) = &agent {
        open_way(&state, agent)?;
    }
    let owner = rustix::process::geteuid().as_raw();
    let policy = PolicyStore::new(&state, owner);
    match policy.create_key(context.random()?) {
        Ok(_) => {}
        Err(KeyError::Exists(_)) => drop(policy.key()?),
        Err(error) => return Err(error.into()),
    }
    let place =
        register(&state, owner, path, (setup, false), context.random()?, SystemTime::now())?;
    let setup = place.setup();
    let meant = Meant { place, state: state.clone() };
    let desk = meant.desk(&store);
    let default = Config::new(settings.iter().copied());
    let done = desk.run(
        "init",
        Told::default(),
        |workspace| {
            let mut made = workspace.set_up(&default, &|_| {})?;
            if made.new {
                // Watched files get their owner, too.
                made.left.extend(workspace.sync(&|_| {})?.left);
            }
            Ok(made)
        },
        |made| Told::default().with_files(made.protected.iter().chain(&made.watched)),
    )?;
    keep(context, &meant, &desk, &done.outcome.versions, "init", done.record);
    let lock = match setup {
        Setup::User => None,
        Setup::Owned { lock, .. } => Some(lock),
    };
    if let Some(agent) = &agent {
        serve(context, &meant, &state, agent, &mut notes);
    }
    let record = done.record.to_string();
    Ok(Made { level: setup.word(), lock, outcome: done.outcome, record, notes })
}

/// Whether a workspace was set up before, here or by root.
pub(in crate::commands) fn is_set_up(context: &Context, path: &Path) -> bool {
    match super::access(context, Some(path)) {
        Ok(super::Access::Direct(meant)) => meant.place.workspace().is_set_up().unwrap_or(true),
        Ok(super::Access::Daemon(_)) => true,
        Err(_) => false,
    }
}

/// Whether the protected files would get an owner of their own.
pub(in crate::commands) fn is_held_by_root(
    context: &Context,
    path: &Path,
    options: &Options,
) -> bool {
    agent(context, path, options).is_ok_and(|agent| agent.is_some())
}

/// Says what was set up.
pub(in crate::commands) fn tell(context: &mut Context, made: &Made) {
    for note in &made.notes {
        context.ui.say(note);
    }
    for refused in &made.outcome.refused {
        context.ui.note(&format!("not tracked: {}: {}", refused.name, refused.why));
    }
    for left in &made.outcome.left {
        context.ui.note(&format!("{}: {}", left.name, left.why));
    }
    let tracked = match made.outcome.new {
        true => format!(
            "{} protected, {} watched",
            made.outcome.protected.len(),
            made.outcome.watched.len()
        ),
        false => "set up before; nothing new was approved".to_owned(),
    };
    let how = match made.lock {
        None => "user level: changes are detected and undone".to_owned(),
        Some(lock) => format!("owned by soulguardian, {}", word(lock)),
    };
    context.ui.answer(format!("Identity: {tracked} ({how})"));
}

fn word(lock: Lock) -> &'static str {
    match lock {
        Lock::None => "not held in place",
        Lock::Immutable => "immutable",
        Lock::Sticky => "in sticky folders",
    }
}

/// The agent whose files root is to hold; `None` where owner and agent are one user.
fn agent(context: &Context, path: &Path, options: &Options) -> Result<Option<Agent>, CliError> {
    let root = rustix::process::geteuid().is_root();
    let asked = options.owned || options.agent.is_some() || options.sticky;
    if !root && asked {
        return Err(CliError::refused(
            "only root can give files to a user of their own",
            "run it with sudo, or leave --owned, --agent and --sticky out",
        ));
    }
    if !root {
        return Ok(None);
    }
    if let Some(name) = &options.agent {
        let account = System::new("/").user(name)?.ok_or_else(|| {
            CliError::refused(format!("there is no user `{name}`"), "name the agent's user")
        })?;
        return Ok(Some(Agent { uid: account.uid.as_raw(), gid: account.gid.as_raw() }));
    }
    let data = path.metadata().map_err(|error| CliError::io("look at", path, &error))?;
    let found = match context.sudo() {
        Some((uid, gid)) => Some(Agent { uid, gid }),
        None => (data.uid() != 0).then(|| Agent { uid: data.uid(), gid: data.gid() }),
    };
    match found.filter(|agent| agent.uid != 0) {
        None if options.owned => Err(CliError::refused(
            "the agent would be root, and nothing holds against root",
            "name its user with --agent",
        )),
        found => Ok(found),
    }
}

/// Makes the guardian, and chooses what holds files in their places.
fn hold(
    context: &mut Context,
    path: &Path,
    agent: &Agent,
    sticky: bool,
    notes: &mut Vec<String>,
) -> Result<Setup, CliError> {
    let guardian = System::new("/").ensure_guardian(Uid::from_raw(agent.uid))?;
    if guardian.made_group {
        notes.push("Created group soulguard".to_owned());
    }
    if guardian.made_user {
        notes.push("Created user soulguardian".to_owned());
    }
    let lock = if sticky {
        Lock::Sticky
    } else {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let real = path.canonicalize().map_err(|error| CliError::io("open", path, &error))?;
        let found = rustix::fs::open(&real, flags, Mode::empty())
            .map_err(std::io::Error::from)
            .and_then(|folder| supported(std::os::fd::AsFd::as_fd(&folder)))
            .map_err(|error| CliError::io("look at", path, &error))?;
        match found {
            Support::Works => Lock::Immutable,
            Support::FileSystem | Support::NotAllowed => {
                context.ui.note(
                    "this file system has no immutable attribute: the workspace becomes root's, \
                     with the sticky bit; git asks for `safe.directory` there",
                );
                Lock::Sticky
            }
        }
    };
    Ok(Setup::Owned {
        guardian: guardian.uid.as_raw(),
        group: guardian.gid.as_raw(),
        agent: agent.uid,
        agent_group: agent.gid,
        lock,
    })
}

/// The folder of all state directories of the owned level.
fn make_base() -> Result<(), CliError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let base = Path::new(OWNED);
    match std::fs::DirBuilder::new().mode(0o755).create(base) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let data = base.symlink_metadata().map_err(|e| CliError::io("look at", base, &e))?;
            let sound = data.is_dir() && data.uid() == 0 && data.mode() & 0o022 == 0;
            if sound {
                return Ok(());
            }
            Err(CliError::new(
                Exit::Unreadable,
                format!("`{OWNED}` is not a folder of root's alone"),
                "look what it is, and remove it",
            ))
        }
        Err(error) => Err(CliError::io("make", base, &error)),
    }
}

/// Lets the agent's group through the state directory, to the socket and to nothing else.
fn open_way(state: &Path, agent: &Agent) -> Result<(), CliError> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error: std::io::Error| CliError::io("open the way through", state, &error);
    std::os::unix::fs::chown(state, None, Some(agent.gid)).map_err(failed)?;
    std::fs::set_permissions(state, std::fs::Permissions::from_mode(0o710)).map_err(failed)
}

/// Lets the agent ask: by a service, and by sudo where there is none. What cannot be had is said.
fn serve(
    context: &mut Context,
    meant: &Meant,
    state: &Path,
    agent: &Agent,
    notes: &mut Vec<String>,
) {
    let system = System::new("/");
    let Ok(program) = context.program() else { return };
    let (uid, gid) = (agent.uid.to_string(), agent.gid.to_string());
    let state = state.display().to_string();
    let arguments =
        ["daemon", "--foreground", "--state-dir", &state, "--agent-uid", &uid, "--group", &gid];
    if Path::new("/run/systemd/system").is_dir() {
        match system.install_unit(agent.uid, &program, &arguments) {
            Ok(path) => {
                let unit = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                notes.push(format!("Wrote {}", path.display()));
                notes.push(format!("Next: `systemctl enable --now {unit}`"));
            }
            Err(error) => context.ui.note(&format!("no service: {error}")),
        }
    } else {
        notes.push(format!(
            "No systemd here; the agent's questions are answered by `{} {}`",
            program.display(),
            arguments.join(" ")
        ));
    }
    let who = match system.agent(Uid::from_raw(agent.uid), Gid::from_raw(agent.gid)) {
        Ok(who) => who,
        Err(error) => return context.ui.note(&error.to_string()),
    };
    let programs: Vec<PathBuf> = [program].into();
    let id = meant.place.id().to_string();
    match system.install_sudoers(&id, &programs, meant.place.path(), &who) {
        Ok(sudoers) => notes.push(format!("Wrote {}", sudoers.path.display())),
        Err(error) => context.ui.note(&format!("no rule for sudo: {error}")),
    }
}
