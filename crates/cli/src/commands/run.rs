//! `wardkeep run`

mod asking;
mod held;
mod kept;
mod learn;
mod models;
mod network;
mod record;
mod settings;
mod shared;
mod shown;
pub(super) mod why;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use wardkeep_evidence::check::printable;
use wardkeep_gateway::egress::{Rule, Rules, Unlisted};
use wardkeep_gateway::llm::Upstream;
use wardkeep_identity::config::Tier;
use wardkeep_monitor::daemon::ensure_running;
use wardkeep_monitor::wire::Door;
use wardkeep_sandbox::names::PathPattern;
use wardkeep_sandbox::profile::{Profile, expand};
use wardkeep_sandbox::{
    Answer, Applied, Cpus, Denial, DenialKind, Ended, Layer, Limits, LinkOut, Missing, Network,
    Prepared, SandboxError, SeccompProfile, Spec,
};

use self::asking::{Asking, Desk};
use self::kept::Kept;
use self::models::Models;
use self::network::{Net, Proxy};
use self::settings::Settings;
use super::egress::{failed, greet, inspect, rule, starter};
use super::time::parse_duration;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// How long a daemon may take to come up.
const START: Duration = Duration::from_secs(3);
/// How long a daemon that was asked for the first request is waited for when the program has ended.
const LATE: Duration = Duration::from_secs(1);
/// Most lines on what was kept from it.
const SHOWN: usize = 20;
/// Denials that each get a record while it runs.
const RECORDED: usize = 100;
/// The workspace's own list of what is protected.
const IDENTITY_FILE: &str = "soulguard.json";
/// Longer than any such list.
const MAX_CONFIG: u64 = 4 << 20;
/// Of these, those that are the first of their rule have the second half to themselves.
const OF_ONE_RULE: usize = 3;
/// Protected names of a new repository that are shown.
const HELD: usize = 12;
/// More new repositories than this are not noticed.
const REPOSITORIES: usize = 256;
/// Nothing was started.
pub(crate) const NOT_STARTED: u8 = 125;
/// It cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// It is not there.
const NOT_FOUND: u8 = 127;

/// Runs a program so that the kernel keeps it to its workspace
///
/// It sees the system's programs, the tools in the home and the workspace, and may write only the
/// workspace and folders of its own that are gone afterwards. Keys, tokens, browsers, other agents' logins
/// and .env files are not to be seen; hooks, settings of agents, shell and editor start-up files, CI
/// workflows and identity files in the workspace can be read and not written. There is no network but a
/// proxy to the hosts that its profile or --allow names, each request decided and recorded; no other process, no inherited descriptor and no variable that is not on a list. Hooks inside reach the monitor
/// outside, and nothing else of wardkeep.
///
/// If a layer of this cannot be had on this machine, nothing is started and it says why, unless
/// --allow-degraded names that layer. The exit code is the program's own, or 128 and the signal that ended
/// it; 124 if it ran out of time, 125 if it could not be confined or the command line is wrong, 126 and 127 as in a shell.
///
/// What the program prints stays its own. With --json the last line on standard error is an object that tells what
/// was kept from it and which repositories it made; if nothing was started, it is on standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
    /// Pass this variable on, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// End it after this time: 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = |text: &str| duration(text))]
    timeout: Option<Duration>,
    /// Most megabytes of memory for each process
    #[arg(long, value_name = "MB")]
    memory: Option<u64>,
    /// Most processes
    #[arg(long, value_name = "N")]
    processes: Option<u64>,
    /// Most of the processors for all processes together, such as 2 or 0.5; needs a control group (v2) that is
    /// delegated to you, and where there is none it says so
    #[arg(long, value_name = "N", value_parser = |text: &str| text.parse::<Cpus>())]
    cpus: Option<Cpus>,
    /// A seccomp profile as Docker and OCI runtimes read it, which holds besides wardkeep's own filter: it can
    /// only take more away. It must not lie where the program may write
    #[arg(long, value_name = "FILE")]
    seccomp: Option<PathBuf>,
    /// Whom it may talk to; `proxy` where the profile or --allow names hosts, else `none`
    #[arg(long, value_name = "MODE")]
    net: Option<Net>,
    /// Look into TLS to this host, in the name of an authority that lives only as long as the run: requests
    /// inside are then judged one by one, and what they send is looked through; may be given again
    #[arg(long, value_name = "RULE", value_parser = rule)]
    inspect: Vec<Rule>,
    /// Serve the model API proxy inside and set the base URLs of agents to it: your policy stands last in
    /// every call, tool calls are judged (see `wardkeep proxy --help`). Base URLs that are set say where
    /// calls go on to
    #[arg(long)]
    with_proxy: bool,
    /// With --with-proxy: a model API as NAME=URL, or a URL alone for everything; may be given again
    #[arg(long, value_name = "NAME=URL", value_parser = super::proxy::ToUpstream, requires = "with_proxy")]
    upstream: Vec<Upstream>,
    /// Ask about hosts that no rule names, about protected names that are not there yet and that the
    /// program wants to make (`.github/workflows/ci.yml`), and about files that it opens to read and that are there
    /// outside and not shown (`~/notes.txt`), but never about keys and logins: by `wardkeep approvals` in another
    /// terminal, or on this one where the program neither reads from it nor writes to it; it waits up to five minutes
    /// for the answer. Opening files is slower then
    #[arg(long)]
    ask: bool,
    /// Start it although this layer cannot be had: namespaces, proc, landlock, seccomp or names
    #[arg(long, value_name = "LAYER", value_parser = |text: &str| text.parse::<Layer>())]
    allow_degraded: Vec<Layer>,
    /// Do not start a daemon; hooks inside then reach one only if it runs already
    #[arg(long)]
    no_daemon: bool,
    /// Notice what it looks for and does not find inside although it is there outside, and propose at the
    /// end the smallest addition that would show it. The confinement stays as it is; the run is slower
    #[arg(long)]
    learn: bool,
    /// Print what would be in force, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// What a program may see and reach.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ViewArgs {
    /// What the program needs: a built-in profile (claude-code, codex, gemini-cli, localgpt, openclaw,
    /// opencode, shell, skill) or one of config.toml; by the program's name where none is given
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The folder to work in, instead of the current one
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Let it read this, too
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Let it write this, too
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Show this empty
    #[arg(long, value_name = "PATH")]
    mask: Vec<PathBuf>,
    /// A host that it may reach through the proxy, such as example.org, *.example.org, example.org:8443 or
    /// "GET example.org"; may be given again. `localhost:PORT` is a server of this machine: programs then reach it
    /// by that name, and a server inside by 127.0.0.1
    #[arg(long, value_name = "RULE", value_parser = rule)]
    allow: Vec<Rule>,
    /// A host that it may not reach, whatever else is said; may be given again
    #[arg(long, value_name = "RULE", value_parser = rule)]
    deny: Vec<Rule>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()))
        .ok_or_else(|| "give a time like 90s, 15m, 2h or 3d".to_owned())
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let outcome = confine(context, args);
    if outcome.is_err() {
        // A code of its own: the others may be the program's.
        context.program_code.get_or_insert(NOT_STARTED);
    }
    outcome
}

fn confine(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "this process runs inside `wardkeep run` already",
            "start the program as it is: what holds here holds for it, too",
        ));
    }
    if args.command[0].as_encoded_bytes().starts_with(b"-") {
        let word = args.command[0].to_string_lossy();
        return Err(CliError::refused(
            format!("`{}` is no option of `wardkeep run`", printable(&word)),
            "see `wardkeep run --help`; a program whose name begins so is given by its path",
        ));
    }
    let state = context.state_dir()?;
    let settings = Settings::load(&state)?;
    let profile_name = args.view.profile_name(&settings, &args.command[0]);
    let dry_run = args.dry_run;
    let no_daemon = args.no_daemon;
    let (net, learns, asks) = (args.net, args.learn, args.ask);
    let looked_into = args.inspect.clone();
    let upstreams = args.with_proxy.then(|| args.upstream.clone());
    if asks && asking::has_terminal() {
        context.ui.note(
            "the program has this terminal: answer in another one (`wardkeep approvals`, then `wardkeep \
             approvals approve CODE`), or on the page of `wardkeep serve`",
        );
    }
    let (mut spec, Rules { allow, deny, .. }) = spec_of(context, args, &settings, &profile_name)?;
    // Without its plugin an agent would go on, and ask nobody.
    spec.bared.push(state.join("plugins"));
    spec.hidden.push(state.clone());
    let proxied = match net {
        Some(net) => net == Net::Proxy,
        None => asks || !allow.is_empty(),
    };
    if !proxied && !looked_into.is_empty() {
        return Err(CliError::refused(
            "there is no network, so that there is nothing to look into",
            "name hosts with --allow as well as with --inspect",
        ));
    }
    let inspection = inspect::inspection(looked_into)?;
    let trust = inspection.as_deref().map(inspect::bundle).transpose()?;
    if let Some(trust) = &trust {
        spec.read.push(trust.path().to_owned());
        for (name, value) in inspect::variables(trust.path()) {
            spec.environment.retain(|(known, _)| *known != name);
            spec.environment.push((name, value));
        }
    }
    if proxied {
        spec.network = Network::Proxy { port: network::PORT };
        let own = network::variables(&allow);
        spec.environment.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
        spec.environment.extend(own);
    }
    if upstreams.is_some() {
        spec.models = Some(models::PORT);
        let own = models::variables();
        spec.environment.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
        spec.environment.extend(own);
    }
    let mut client = None;
    if !dry_run {
        if !no_daemon {
            match ensure_running(&state, &starter(context)?, START) {
                Ok((running, _)) => client = Some(running),
                // Without one, hooks inside deny: that is safe, and said.
                Err(error) => {
                    context.ui.note(&format!("hooks inside will deny everything: {error}"));
                }
            }
        }
        let socket = Door::Hooks.path(&state);
        if socket.exists() {
            spec.sockets.push(socket);
        }
    }
    let (workspace, home) = (spec.workspace.clone(), spec.home.clone());
    let limited = spec.limits.processes != Limits::default().processes;
    spec.ask = asks;
    if !dry_run {
        spec.make_kept();
    }
    let kept = Kept::new(&mut spec, &state, !dry_run)?;
    let listings = shared::Kept::recall(context, &state, &mut spec);
    if !dry_run {
        spec.lock = Some(shared::lock(&state, &workspace)?);
    }
    let who = asking::who(context, &workspace)?;
    // Where somebody may be asked there must be a session before anything is; the daemon is at it while the confinement
    // is worked out and set up. Otherwise it begins with the first connection.
    let session = match (proxied && !dry_run, asks) {
        (true, true) => Some(network::begin(context, &state, client.take(), &who)?),
        (true, false) if client.is_none() => {
            network::reach(context, &state)?;
            None
        }
        _ => None,
    };
    let mut prepared = Prepared::new(spec)?;
    if dry_run {
        return Ok(show(context, &profile_name, prepared.applied()?));
    }
    let desk = match asks {
        true => Some(Arc::new(Desk::open(context, &state, &who)?)),
        false => None,
    };
    let proxy = match proxied {
        true => {
            let begun = session.is_some();
            Some(Proxy::new(context, who, allow, deny, desk.as_deref(), inspection, begun)?)
        }
        false => None,
    };
    let models = match upstreams {
        Some(upstreams) => Some(Models::new(context, &state, &workspace, upstreams)?),
        None => None,
    };
    let mut missing_before = 0;
    let mut record = None;
    // It is on disk before the program starts, and written while the confinement is set up.
    let started = prepared.spawn_after(|applied| -> Result<(), NotStarted> {
        missing_before = applied.missing.len();
        record = Some(record::begin(context, &workspace, &profile_name, applied)?);
        if let Some(session) = session {
            greet(context, session.answer()?)?;
        }
        Ok(())
    });
    let (mut running, record) = match (started, record) {
        (Ok(running), Some(record)) => (running, record),
        (Err(NotStarted::Unconfined(error)), record) => {
            context.program_code = Some(code_of(&error));
            if let Some(record) = record {
                record.failed(&error.to_string())?;
            }
            return Err(error.into());
        }
        (Err(NotStarted::Unrecorded(error)), record) => {
            if let Some(record) = record {
                record.failed(&error.message)?;
            }
            return Err(error);
        }
        (Ok(_), None) => return Err(SandboxError::Ended.into()),
    };
    // What the program prints is its own.
    context.ui.lend_output();
    if running.applied().missing.len() > missing_before {
        record.changed(running.applied())?;
    }
    if limited && record::does_not_keep_processes(running.applied()) {
        context.ui.note(
            "the number of processes is not limited: the kernel does not hold root to it, and there is no control \
             group of its own; run it as another user, or delegate one",
        );
    }
    if record::does_not_keep_cpus(running.applied()) {
        context.ui.note(
            "the share of the processors is not limited: that takes a control group (v2) with the controller `cpu`, \
             which is not delegated here; `systemd-run --user --scope -p Delegate=yes wardkeep run …` may give one",
        );
    }
    let missing = running.applied().missing.clone();
    // Without namespaces there is none: then no socket of the program reaches beyond it.
    let (serves, served) = mpsc::channel();
    if let (Some(proxy), Some(listener)) = (proxy, running.take_listener()) {
        let state = state.clone();
        // Most programs never call it. The daemon may take its time, and the program is waited for meanwhile.
        running.when_called(listener, move |listener| {
            let serve = move || drop(serves.send(proxy.serve(&state, listener)));
            let _ = std::thread::Builder::new().spawn(serve);
        });
    } else {
        drop(serves);
    }
    let models = match (models, running.take_models()) {
        (Some(models), Some(listener)) => Some(models.serve(context, &state, listener)?),
        _ => None,
    };
    let remembering = match (listings, running.take_seen()) {
        (Some(listings), Some((known, seen))) => listings.keep(known, seen),
        _ => None,
    };
    let _held = (!no_daemon).then(|| held::Daemon::hold(client, &state));
    let settings = running.take_settings().map(|news| std::thread::spawn(|| news.keep()));
    let mut unwritten = None;
    let mut told = Told::default();
    let record = Arc::new(record);
    let answers = running.answers().map(Arc::new).map_err(|error| failed("wait", &error))?;
    let tell = |denial: &Denial| {
        // The rest is in the record of the end.
        if unwritten.is_none() && told.has_room(denial) {
            unwritten = record.denied(denial).err();
        }
    };
    let asking = desk.map(|desk| Asking::new(desk, Arc::clone(&record), Arc::clone(&answers)));
    let ask = |question| match &asking {
        Some(asking) => asking.about(question),
        None => answers.give(&question, Answer::No),
    };
    let (ended, remains) = running.wait_asking(tell, ask)?;
    if let Some(asking) = &asking {
        asking.end();
    }
    let hosts = match served.recv_timeout(LATE) {
        Ok(Ok(served)) => served.end(context)?,
        Ok(Err(error)) => {
            context.ui.note(&format!("no request could leave: {}", error.message));
            context.ui.hint(&error.hint);
            Vec::new()
        }
        Err(RecvTimeoutError::Timeout) => {
            context.ui.note("no request could leave: the daemon has not answered yet");
            Vec::new()
        }
        Err(RecvTimeoutError::Disconnected) => Vec::new(),
    };
    if let Some(models) = models {
        models.end(context)?;
    }
    // What cannot be written down is told all the same.
    let recorded = record.ended(&ended, &hosts);
    drop(remains);
    drop(remembering.map(std::thread::JoinHandle::join));
    // Without them the next run only takes longer.
    drop(settings.map(std::thread::JoinHandle::join));
    kept.finish(context);
    for one in &missing {
        context.ui.note(&format!("it ran without the layer `{}`: {}", one.layer, one.why));
    }
    let exit = finish(context, &ended);
    // For a person who wonders; programs that read what is said need no more than the exit code.
    if ended.code != 0 && !ended.timed_out && std::io::stderr().is_terminal() {
        let network = if proxied {
            "only allowed hosts are reached"
        } else {
            "there is no network (--allow HOST)"
        };
        context.ui.hint(&format!(
            "inside {network} and only named parts of the home are seen; `wardkeep sandbox why PATH --host HOST` \
             tells of each"
        ));
    }
    if learns {
        learn::propose(context, &profile_name, home.as_deref(), &ended.denials, &hosts);
    }
    report(context, &profile_name, &ended, &missing, &hosts);
    if let Some(error) = unwritten {
        return Err(error);
    }
    recorded?;
    Ok(exit)
}

/// Why the program was not started.
enum NotStarted {
    Unconfined(SandboxError),
    Unrecorded(CliError),
}

impl From<SandboxError> for NotStarted {
    fn from(error: SandboxError) -> Self {
        Self::Unconfined(error)
    }
}

impl From<CliError> for NotStarted {
    fn from(error: CliError) -> Self {
        Self::Unrecorded(error)
    }
}

impl ViewArgs {
    /// The profile that counts for a program.
    fn profile_name(&self, settings: &Settings, program: &OsStr) -> String {
        self.profile
            .clone()
            .or_else(|| settings.profile.clone())
            .unwrap_or_else(|| settings.profiles.meant_for(program))
    }

    /// What it means: files and folders, and hosts.
    fn spec(
        self,
        context: &Context,
        settings: &Settings,
        profile: &Profile,
        command: Vec<OsString>,
    ) -> Result<(Spec, Rules), CliError> {
        let absolute = |path: PathBuf| {
            std::path::absolute(&path).map_err(|error| CliError::io("find", &path, &error))
        };
        let all =
            |paths: Vec<PathBuf>| paths.into_iter().map(absolute).collect::<Result<Vec<_>, _>>();
        let workspace = absolute(self.workspace.unwrap_or_else(|| context.workspace()))?;
        let mut spec = Spec::new(workspace, command);
        spec.protect = protected_by_owner(&spec.workspace)?;
        spec.home = context.home();
        settings.shared.apply(&mut spec);
        profile.apply(&mut spec);
        // Whoever starts something has another file stand for each.
        let private = profile.private.iter().filter_map(|path| expand(path, spec.home.as_deref()));
        spec.private.extend(private.map(|path| (path.clone(), path)).collect::<Vec<_>>());
        spec.read.extend(all(self.read)?);
        spec.write.extend(all(self.write)?);
        spec.masked.extend(all(self.mask)?);
        // Hooks inside call this very program.
        spec.read_if_there.extend(context.program());
        let hosts = profile.hosts.iter().map(|host| rule(host)).collect::<Result<Vec<_>, _>>();
        let hosts = hosts.map_err(|error| {
            CliError::refused(error.to_string(), "mend the `hosts` of the profile in config.toml")
        })?;
        let allow = self.allow.into_iter().chain(hosts).collect();
        Ok((spec, Rules { allow, deny: self.deny, unlisted: Unlisted::Deny }))
    }
}

/// What the protect tier of the workspace names. A list that cannot be read protects nothing: then
/// nothing is started.
pub(super) fn protected_by_owner(workspace: &Path) -> Result<Vec<PathPattern>, CliError> {
    let path = workspace.join(IDENTITY_FILE);
    let refuse = |why: String| {
        let hint = "mend it, or take it away: see `wardkeep protect --help`";
        CliError::refused(format!("`{}` cannot be used: {why}", path.display()), hint)
    };
    let mut bytes = Vec::new();
    match std::fs::File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refuse(error.to_string())),
        Ok(file) => file.take(MAX_CONFIG).read_to_end(&mut bytes),
    }
    .map_err(|error| refuse(error.to_string()))?;
    let config = wardkeep_identity::config::Config::parse(&bytes);
    let config = config.map_err(|error| refuse(error.to_string()))?;
    let entries = config.entries().map_err(|error| refuse(error.to_string()))?;
    let protected = entries.into_iter().filter(|(tier, _)| *tier == Tier::Protect);
    // Entries are paths from the workspace on.
    let patterns = protected.map(|(_, entry)| format!("/{entry}").parse::<PathPattern>());
    patterns.collect::<Result<_, _>>().map_err(|error| refuse(error.to_string()))
}

fn resolve(settings: &Settings, profile: &str) -> Result<Profile, CliError> {
    settings.profiles.resolve(profile).map_err(|error| {
        CliError::refused(error.to_string(), "give another --profile, or mend config.toml")
    })
}

fn spec_of(
    context: &Context,
    args: Args,
    settings: &Settings,
    profile: &str,
) -> Result<(Spec, Rules), CliError> {
    let profile = resolve(settings, profile)?;
    let (mut spec, rules) = args.view.spec(context, settings, &profile, args.command)?;
    spec.learn = args.learn;
    spec.timeout = args.timeout.or(spec.timeout);
    let memory = args.memory.map(bytes_of).transpose()?;
    spec.limits.memory = memory.or(spec.limits.memory);
    spec.limits.processes = args.processes.unwrap_or(spec.limits.processes);
    spec.limits.cpus = args.cpus.or(spec.limits.cpus);
    spec.seccomp = seccomp_of(args.seccomp, &profile, context.home().as_deref())?;
    spec.allow_degraded.extend(args.allow_degraded);
    let passes = |name: &OsString| profile.passes(name) || settings.shared.passes(name);
    let mut environment: Vec<_> = context.variables().filter(|(name, _)| passes(name)).collect();
    for given in args.env {
        let (name, value) = split(&given);
        let value = match value {
            Some(value) => Some(value),
            None => context.variables().find(|(known, _)| *known == name).map(|(_, value)| value),
        };
        environment.retain(|(known, _)| *known != name);
        environment.extend(value.map(|value| (name, value)));
    }
    environment.retain(|(name, _)| name != "TMPDIR");
    environment.push(("TMPDIR".into(), "/tmp".into()));
    environment.push(("WARDKEEP_CONFINED".into(), "1".into()));
    spec.environment = environment;
    Ok((spec, rules))
}

/// The profile of system calls: the one that is named, or that of the profile.
fn seccomp_of(
    named: Option<PathBuf>,
    profile: &Profile,
    home: Option<&Path>,
) -> Result<Option<SeccompProfile>, CliError> {
    let path = match (named, &profile.seccomp) {
        (Some(path), _) => {
            std::path::absolute(&path).map_err(|error| CliError::io("find", &path, &error))?
        }
        (None, Some(path)) => expand(path, home).ok_or_else(|| {
            CliError::refused(
                format!("the profile's `seccomp` is no path to be found: `{}`", printable(path)),
                "give it from the root or from `~/` on, in config.toml",
            )
        })?,
        (None, None) => return Ok(None),
    };
    Ok(Some(SeccompProfile::load(&path)?))
}

fn bytes_of(megabytes: u64) -> Result<u64, CliError> {
    let bytes = megabytes.checked_mul(1 << 20).filter(|bytes| i64::try_from(*bytes).is_ok());
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        CliError::refused(
            format!("--memory {megabytes} is no limit of memory"),
            "give megabytes: --memory 2048 is two gigabytes",
        )
    })
}

/// `NAME=VALUE`, or a name alone.
fn split(given: &OsString) -> (OsString, Option<OsString>) {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let bytes = given.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        None => (given.clone(), None),
        Some(at) => {
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            (text(&bytes[..at]), Some(text(&bytes[at + 1..])))
        }
    }
}

fn show(context: &mut Context, profile: &str, applied: &Applied) -> Exit {
    #[derive(serde::Serialize)]
    struct Answer<'a> {
        profile: &'a str,
        confinement: &'a Applied,
    }
    let answer = Answer { profile, confinement: applied };
    context.ui.answer("This would be in force; nothing is started:");
    context.ui.answer_members(&shown::members_of(profile, applied));
    context.done(&answer)
}

/// Denials that have got a record of their own while it ran.
#[derive(Default)]
struct Told {
    all: usize,
    by_rule: BTreeMap<String, usize>,
}

impl Told {
    /// Whether one more is written down at once: many of one rule leave room for others.
    fn has_room(&mut self, denial: &Denial) -> bool {
        if matches!(denial.kind, DenialKind::Unseen | DenialKind::More) || self.all >= RECORDED {
            return false;
        }
        let known = self.by_rule.entry(denial.rule.to_lowercase()).or_default();
        let room = self.all < RECORDED / 2 || *known < OF_ONE_RULE;
        self.all += usize::from(room);
        *known += usize::from(room);
        room
    }
}

/// Denials of a kind, the first of each rule before the second of any.
fn varied(denials: &[Denial], kind: DenialKind) -> Vec<&Denial> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all: Vec<_> = denials
        .iter()
        .filter(|one| one.kind == kind)
        .map(|one| {
            let count = seen.entry(&one.rule).or_default();
            *count += 1;
            (*count, one)
        })
        .collect();
    all.sort_by_key(|(count, _)| *count);
    all.into_iter().map(|(_, one)| one).collect()
}

/// Says what was kept from it, on standard error: the program's own output stays its own.
fn finish(context: &mut Context, ended: &Ended) -> Exit {
    for (kind, word) in [
        (DenialKind::Name, "refused"),
        (DenialKind::Call, "refused"),
        (DenialKind::Masked, "shown empty"),
        (DenialKind::Unshown, "not shown"),
    ] {
        let shown = varied(&ended.denials, kind);
        for denial in shown.iter().take(SHOWN) {
            context.ui.note(&format!("{word}: {denial}"));
        }
        let more = shown.len().saturating_sub(SHOWN);
        if more > 0 {
            context.ui.note(&format!("{word}: {more} more, see `wardkeep sandbox why`"));
        }
        if let Some(first) = shown.first() {
            context.ui.hint(&first.how_to_allow());
        }
    }
    let unwritten = ended.denials.iter().filter(|one| one.kind == DenialKind::More);
    let unwritten = unwritten.fold(0, |sum: u64, one| sum.saturating_add(one.times));
    if unwritten > 0 {
        context.ui.note(&format!("kept from it: {unwritten} more that were not written down"));
    }
    tell_repositories(context, ended);
    tell_links(context, &ended.links);
    if ended.timed_out {
        context.ui.note("the time was up: the program and all that it started were ended");
    }
    if ended.stuck {
        context
            .ui
            .note("a file system did not answer: the program and all that it started were ended");
    }
    if ended.untold {
        context
            .ui
            .note("what watched inside was ended: what was made and refused last is not known");
        context
            .ui
            .hint("look for new repositories, hooks and settings before you work in the workspace");
    }
    context.program_code = Some(u8::try_from(ended.code).unwrap_or(NOT_STARTED));
    if ended.code == 0 { Exit::Success } else { Exit::Refused }
}

/// The same as JSON, where that was asked for: the last line on standard error.
fn report(
    context: &mut Context,
    profile: &str,
    ended: &Ended,
    missing: &[Missing],
    hosts: &[String],
) {
    #[derive(serde::Serialize)]
    struct Repository<'a> {
        path: &'a str,
        executes: Option<&'a str>,
        holds: Option<&'a str>,
        replaces: bool,
    }
    #[derive(serde::Serialize)]
    struct Report<'a> {
        profile: &'a str,
        code: i32,
        signal: Option<i32>,
        timed_out: bool,
        denials: &'a [Denial],
        repositories: Vec<Repository<'a>>,
        links: &'a [LinkOut],
        hosts: &'a [String],
        missing: &'a [Missing],
        notes: Vec<String>,
    }
    fn said(text: &str) -> Option<&str> {
        (!text.is_empty()).then_some(text)
    }
    let repositories = ended.repositories.iter().map(|one| Repository {
        path: &one.path,
        executes: said(&one.executes),
        holds: said(&one.holds),
        replaces: one.replaces,
    });
    let report = Report {
        profile,
        code: ended.code,
        signal: ended.signal,
        timed_out: ended.timed_out,
        denials: &ended.denials,
        repositories: repositories.collect(),
        links: &ended.links,
        hosts,
        missing,
        notes: context.ui.take_notes(),
    };
    let exit = context.program_code.unwrap_or(NOT_STARTED);
    let command = context.command.clone();
    context.ui.report(&command, exit, &report);
}

/// Those in which git would execute something come first, then those that hold what others obey.
fn tell_repositories(context: &mut Context, ended: &Ended) {
    let mut all: Vec<_> = ended.repositories.iter().collect();
    all.sort_by_key(|one| (one.executes.is_empty(), !one.replaces, one.holds.is_empty()));
    for one in all.iter().take(SHOWN) {
        let mut text = format!("a repository was made: {}", one.path);
        if one.replaces {
            text += ", in place of a folder that was there before";
        }
        if !one.executes.is_empty() {
            text += &format!("; git would execute there: {}", one.executes);
        }
        if !one.holds.is_empty() {
            let names: Vec<_> = one.holds.split(", ").collect();
            text += &format!("; it holds {}", names[..names.len().min(HELD)].join(", "));
            if names.len() > HELD {
                text += " and more, see the record of the run";
            }
        }
        context.ui.note(&text);
    }
    let more = all.len().saturating_sub(SHOWN);
    if more > 0 {
        let beyond = if all.len() < REPOSITORIES { "" } else { " or more" };
        context.ui.note(&format!(
            "and {more}{beyond} more repositories were made; the record of the run has them"
        ));
    }
}

/// Who writes to such a link later writes outside, with all rights.
fn tell_links(context: &mut Context, links: &[LinkOut]) {
    for LinkOut { path, to } in links.iter().take(SHOWN) {
        context
            .ui
            .note(&format!("a link was made that leads out of the workspace: {path} to {to}"));
    }
    let more = links.len().saturating_sub(SHOWN);
    if more > 0 {
        context
            .ui
            .note(&format!("and {more} more such links were made; the record of the run has them"));
    }
}

fn code_of(error: &SandboxError) -> u8 {
    match error {
        SandboxError::Program { errno, .. } if *errno == rustix::io::Errno::NOENT => NOT_FOUND,
        SandboxError::Program { .. } => NOT_EXECUTABLE,
        _ => NOT_STARTED,
    }
}
