//! `wardkeep proxy`

mod told;

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wardkeep_evidence::time::Timestamp;
use wardkeep_gateway::llm::{Config, Features, Meter, Monitored, Otlp, Running, Upstream, start};
use wardkeep_gateway::page::ModelApi;
use wardkeep_monitor::bodies::Bodies;
use wardkeep_monitor::daemon::{Starter, Stop, ensure_running};
use wardkeep_monitor::monitor::WhoBody;
use wardkeep_policy::block::build_block;
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::workspace::Workspace;
use wardkeep_policy::wrap::SessionKey;

use self::told::{Inspect, Told, Watches};
use super::daemon::PATIENCE;
use super::egress::{failed, hex};
use crate::context::Context;
use crate::error::{CliError, reason};
use crate::exit::Exit;
use crate::ui::harmless;

pub(super) use self::told::told;

/// Serves a proxy for model APIs: your policy stands last in every call, tool calls are judged
///
/// An agent is pointed at it by its base URL, such as ANTHROPIC_BASE_URL=http://127.0.0.1:3129. It speaks
/// Anthropic's Messages, OpenAI's Chat Completions and Responses, Google's generateContent and Ollama's
/// chat. In each call the results of tools are marked as data and your signed policy is put last; in each
/// reply tool calls are held until they are judged, and secrets and the system prompt are withheld. All
/// else passes byte for byte. Keys pass through and are neither stored nor shown.
///
/// Requests go to --upstream by the first part of their path (/anthropic/v1/messages), else by their form.
/// Known without it: anthropic, openai, gemini and ollama. With a URL alone everything goes there, and only
/// names that are given lead elsewhere.
///
/// It runs until it is ended (Ctrl-C, SIGTERM). A line on standard error tells of what is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// Address of this machine and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = LISTEN, value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    options: Options,
}

/// Where it listens, unless it is told.
pub(super) const LISTEN: &str = "127.0.0.1:3129";

/// How the proxy works, wherever it is served.
#[derive(Debug, clap::Args)]
#[group(id = "proxy options", multiple = true)]
pub(super) struct Options {
    /// A model API as NAME=URL, or a URL alone for everything; may be given again
    #[arg(long, value_name = "NAME=URL", value_parser = ToUpstream)]
    upstream: Vec<Upstream>,
    /// Ask clients for a token that is new at each start, as the first part of the path
    #[arg(long)]
    token: bool,
    /// Refuse what is not understood, rather than pass it on as it is
    #[arg(long)]
    strict: bool,
    /// Leave tool results as they are
    #[arg(long)]
    no_mark: bool,
    /// Show what is added and removed, as it happens
    #[arg(long)]
    inspect: bool,
    /// Send a span for each exchange and tool call to this OpenTelemetry collector, by OTLP over HTTP (such as
    /// http://127.0.0.1:4318); they hold names, numbers and verdicts, and nothing that was said
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Keep what goes out and what comes back, each body up to 16 MiB encrypted with a key of its own; see it with
    /// `wardkeep evidence body`, destroy it with `wardkeep evidence erase`
    #[arg(long)]
    keep_bodies: bool,
    /// Trust the authorities in this PEM file for upstreams, too
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Where it listens and where requests go, once it does.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ready {
    address: String,
    pub(super) url: String,
    upstreams: Vec<Shown>,
}

#[derive(Debug, Clone, Serialize)]
struct Shown {
    name: String,
    url: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "a proxy is not started inside `wardkeep run`: it would be confined too",
            "start it in a terminal of your own",
        ));
    }
    let prepared = Prepared::new(context, args.listen, &args.options)?;
    let stop = stop_by_signal()?;
    let farewell = prepared.config.limits.farewell;
    let Served { running, ready, look } = prepared.start(context)?;
    context.ui.answer(format!("Listening: {}", ready.url));
    for upstream in &ready.upstreams {
        context.ui.remarks().line(&format!("{} is at {}", upstream.name, upstream.url));
    }
    context.done(&ready);
    while !stop.wait(std::time::Duration::from_secs(3600)) {}
    let open = look.open();
    if open > 0 {
        let seconds = farewell.as_secs();
        let line = format!("ending: waits up to {seconds} seconds for open replies ({open})");
        context.ui.remarks().line(&line);
    }
    running.stop().map_err(|error| failed("end the proxy", &error))?;
    Ok(Exit::Success)
}

/// An address to listen on; the name of loopback is one.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let local = port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    local.ok_or_else(|| "give an address and a port, such as 127.0.0.1:3129".to_owned())
}

/// Set by the signals that end a program.
pub(super) fn stop_by_signal() -> Result<Stop, CliError> {
    let stop = Stop::new().map_err(|error| failed("make a pipe", &error))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let waker = stop.waker().map_err(|error| failed("make a pipe", &error))?;
        signal_hook::low_level::pipe::register(signal, waker)
            .map_err(|error| failed("handle signals", &error))?;
    }
    Ok(stop)
}

/// A proxy that has its address, and serves nothing yet.
pub(super) struct Prepared {
    listener: TcpListener,
    address: SocketAddr,
    config: Config,
    judge: Monitored,
    told: Arc<Told>,
    options: Vec<&'static str>,
}

/// A proxy at work.
pub(super) struct Served {
    pub(super) running: Running,
    pub(super) ready: Ready,
    pub(super) look: Look,
}

impl Prepared {
    pub(super) fn new(
        context: &Context,
        listen: SocketAddr,
        options: &Options,
    ) -> Result<Self, CliError> {
        let state = context.state_dir()?;
        let workspace = std::path::absolute(context.workspace())
            .map_err(|error| CliError::io("find", Path::new("."), &error))?;
        let who = WhoBody {
            agent: "proxy".to_owned(),
            session: String::new(),
            workspace,
            principal: None,
            taint: Vec::new(),
            parents: Vec::new(),
        };
        let (listener, address) = listener(listen)?;
        // So that there is a state directory to listen in.
        drop(context.open_store()?);
        let mut starter = Starter::new(context.program()?);
        starter.variables = context.daemon_variables();
        drop(ensure_running(&state, &starter, PATIENCE)?);
        let told = Arc::new(Told::new(context.clock()));
        let mut config = config(context, options, &state, &who.workspace, Arc::clone(&told))?;
        config.hosts.push(address.ip().to_string());
        let remarks = context.ui.remarks();
        let tell = move |line: &str| remarks.line(&harmless(line));
        let mut judge = Monitored::daemon(&state, starter, who, context.home()).telling(tell);
        if options.keep_bodies {
            judge = judge.keeping(Bodies::of(&state));
        }
        Ok(Self { listener, address, config, judge, told, options: options.words() })
    }

    pub(super) fn start(self, context: &Context) -> Result<Served, CliError> {
        let Self { listener, address, config, judge, told, options } = self;
        let upstreams = config.upstreams.iter();
        let shown = |one: &Upstream| Shown { name: one.name.clone(), url: one.url() };
        let upstreams: Vec<Shown> = upstreams.map(shown).collect();
        let token = config.token.as_ref().map(|token| format!("/k/{token}")).unwrap_or_default();
        let look = Look {
            url: format!("http://{address}"),
            options,
            since: context.clock().now(),
            upstreams: upstreams.clone(),
            meter: Arc::clone(&config.meter),
            told,
        };
        let running = start(listener, config, Arc::new(judge), context.threads())
            .map_err(|error| failed("start the proxy", &error))?;
        let (address, url) = (address.to_string(), format!("http://{address}{token}"));
        Ok(Served { running, ready: Ready { address, url, upstreams }, look })
    }
}

impl Options {
    /// What is not as usual, in words.
    fn words(&self) -> Vec<&'static str> {
        [
            (self.token, "asks for the token of this start"),
            (self.strict, "refuses what is not understood"),
            (self.no_mark, "leaves tool results as they are"),
            (self.keep_bodies, "keeps bodies, encrypted"),
            (self.otlp.is_some(), "sends spans to a collector"),
            (self.ca.is_some(), "trusts authorities besides this system's"),
        ]
        .into_iter()
        .filter_map(|(is_so, words)| is_so.then_some(words))
        .collect()
    }
}

/// A look at a proxy at work, for the page.
#[derive(Clone)]
pub(super) struct Look {
    url: String,
    options: Vec<&'static str>,
    since: Timestamp,
    upstreams: Vec<Shown>,
    meter: Arc<Meter>,
    told: Arc<Told>,
}

impl Look {
    /// Exchanges that are open.
    fn open(&self) -> u64 {
        self.meter.traffic().open
    }

    pub(super) fn model_api(&self, now: Timestamp) -> ModelApi {
        let upstreams = self.upstreams.iter().map(|one| (one.name.clone(), one.url.clone()));
        ModelApi {
            url: self.url.clone(),
            options: self.options.iter().map(|&words| words.to_owned()).collect(),
            since: self.since.to_string(),
            now: now.to_string(),
            upstreams: upstreams.collect(),
            traffic: self.meter.traffic(),
            errors: self.told.errors.newest_first(),
            lines: self.told.lines.newest_first(),
        }
    }
}

/// Reads a model API; what is said of a wrong one does not repeat a password that stands in it.
#[derive(Clone)]
pub(super) struct ToUpstream;

impl TypedValueParser for ToUpstream {
    type Value = Upstream;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Upstream, clap::Error> {
        upstream(value.to_str().unwrap_or_default()).map_err(|why| {
            let why = format!("invalid value for '--upstream <NAME=URL>': {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, why).with_cmd(command)
        })
    }
}

fn upstream(text: &str) -> Result<Upstream, String> {
    let (name, url) = match text.split_once('=') {
        Some((name, url)) if !name.contains("://") => (name, url),
        _ => ("default", text),
    };
    Upstream::new(name, url).map_err(|error| error.to_string())
}

/// As it works without any options.
pub(super) fn plain(context: &Context, state: &Path, workspace: &Path) -> Result<Config, CliError> {
    let store = PolicyStore::new(state, context.monitor_config()?.owner);
    // With a key, marks are the same after a restart, and prompt caches stay.
    let key = match store.key() {
        Ok(key) => key.derive("model-proxy marks"),
        Err(_) => context.random::<32>()?,
    };
    let mut config = Config::new(SessionKey::new(key), context.random::<16>()?);
    // Each session verifies the policy for itself; this says how long a request will be, and knows the
    // block of another proxy of the same owner.
    let workspace = workspace.to_owned();
    let now = move || {
        let workspace = Workspace::open(&workspace).ok()?;
        let settings = store.settings();
        let verified = store.inspect(&workspace);
        let policy = verified.policy().filter(|_| !settings.switches.disable_policy);
        Some(build_block(policy.map(|policy| policy.text()), false, settings.suffix()))
    };
    let now = Arc::new(now);
    config.block = now();
    config.block_now = Some(now);
    Ok(config)
}

fn config(
    context: &Context,
    args: &Options,
    state: &Path,
    workspace: &Path,
    told: Arc<Told>,
) -> Result<Config, CliError> {
    let mut config = plain(context, state, workspace)?;
    for upstream in &args.upstream {
        config.add(upstream.clone());
    }
    config.features = Features { mark: !args.no_mark, ..Features::ALL };
    config.strict = args.strict;
    config.keep = args.keep_bodies;
    if args.token {
        config.token = Some(hex(&context.random::<16>()?));
    }
    if let Some(path) = &args.ca {
        let pem = std::fs::read(path).map_err(|error| CliError::io("read", path, &error))?;
        config.trust_pem(&pem).map_err(|error| {
            CliError::refused(
                format!("`{}` holds no certificates: {error}", path.display()),
                "give a file with certificates in PEM",
            )
        })?;
    }
    let inspect = Inspect { all: args.inspect, remarks: context.ui.remarks() };
    let otlp = args.otlp.as_deref().map(|url| {
        Otlp::start(url, context.random::<16>()?, &config).map_err(|error| {
            let message = format!("the value of --otlp cannot be used: {error}");
            CliError::refused(message, "give a URL such as http://127.0.0.1:4318")
        })
    });
    config.watch = Some(Arc::new(Watches(inspect, otlp.transpose()?, told)));
    fit(&mut config);
    Ok(config)
}

fn listener(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), CliError> {
    if !listen.ip().is_loopback() {
        return Err(CliError::refused(
            format!("`{listen}` can be reached from other machines"),
            "give an address such as 127.0.0.1:3129",
        ));
    }
    let failed = |error: std::io::Error| {
        let message = format!("cannot listen on `{listen}`: {}", reason(&error));
        CliError::new(Exit::Unreadable, message, "give a port that is free, or 0 for any")
    };
    let listener = TcpListener::bind(listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Leaves descriptors for everything else that this process does: whoever connects to the proxy cannot take
/// them all. More are asked for where the system lets a process have more.
fn fit(config: &mut Config) {
    /// For the page, the daemon, files and programs.
    const OTHERS: u64 = 256;
    /// At a time, however few descriptors there are.
    const LEAST: u64 = 16;
    let limits = &mut config.limits;
    // Of each client: its connection, one to the model, and one that was and is kept for a while.
    let wanted = OTHERS + 3 * limits.connections as u64;
    let mut has = getrlimit(Resource::Nofile);
    if has.current.is_some_and(|now| now < wanted) {
        let current = Some(has.maximum.map_or(wanted, |most| most.min(wanted)));
        let raised = Rlimit { current, maximum: has.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            has = raised;
        }
    }
    let there = has.current.map_or(wanted, |now| now.min(wanted));
    let each = (there.saturating_sub(OTHERS) / 3).max(LEAST);
    let each = usize::try_from(each).unwrap_or(limits.connections);
    limits.connections = limits.connections.min(each);
    limits.exchanges = limits.exchanges.min(each);
    limits.idle = limits.idle.min(each / config.upstreams.len().max(1));
}
