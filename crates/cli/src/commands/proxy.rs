//! `wardkeep proxy`

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wardkeep_gateway::llm::{
    Config, Ended, Exchange, Features, Monitored, Otlp, Outcome, Ruling, Seen, Upstream, Watch,
    start,
};
use wardkeep_monitor::bodies::Bodies;
use wardkeep_monitor::daemon::{Starter, Stop, ensure_running};
use wardkeep_monitor::monitor::WhoBody;
use wardkeep_policy::block::build_ending_security_block;
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::workspace::Workspace;
use wardkeep_policy::wrap::SessionKey;

use super::daemon::PATIENCE;
use super::egress::{failed, hex};
use crate::context::Context;
use crate::error::{CliError, reason};
use crate::exit::Exit;
use crate::ui::{Remarks, harmless};

/// Serves a proxy for model APIs: your policy stands last in every call, tool calls are judged
///
/// An agent is pointed at it by its base URL, such as ANTHROPIC_BASE_URL=http://127.0.0.1:3129. It speaks
/// Anthropic's Messages, OpenAI's Chat Completions and Responses, Google's generateContent and Ollama's
/// chat. In each call the results of tools are marked as data and your signed policy is put last; in each
/// reply tool calls are held until they are judged, and secrets and the system prompt are withheld. All
/// else passes byte for byte. Keys pass through and are neither stored nor shown.
///
/// Requests go to --upstream by the first part of their path (/anthropic/v1/messages), else by their form.
/// Known without it: anthropic, openai, gemini and ollama.
///
/// It runs until it is ended (Ctrl-C, SIGTERM). A line on standard error tells of what is refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// Address of this machine and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3129")]
    listen: SocketAddr,
    /// A model API as NAME=URL, or a URL alone for everything; may be given again
    #[arg(long, value_name = "NAME=URL", value_parser = upstream)]
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

#[derive(Serialize)]
struct Ready {
    address: String,
    url: String,
    upstreams: Vec<Shown>,
}

#[derive(Serialize)]
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
    let (listener, address) = listener(args.listen)?;
    // So that there is a state directory to listen in.
    drop(context.open_store()?);
    let mut starter = Starter::new(context.program()?);
    starter.variables = context.daemon_variables();
    drop(ensure_running(&state, &starter, PATIENCE)?);
    let config = config(context, &args, &state, &who.workspace)?;
    let upstreams = config
        .upstreams
        .iter()
        .map(|one| Shown { name: one.name.clone(), url: one.url() })
        .collect();
    let token = config.token.as_ref().map(|token| format!("/k/{token}")).unwrap_or_default();
    let remarks = context.ui.remarks();
    let tell = move |line: &str| remarks.line(&harmless(line));
    let mut judge = Monitored::daemon(&state, starter, who, context.home()).telling(tell);
    if args.keep_bodies {
        judge = judge.keeping(Bodies::of(&state));
    }
    let stop = Stop::new().map_err(|error| failed("make a pipe", &error))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let waker = stop.waker().map_err(|error| failed("make a pipe", &error))?;
        signal_hook::low_level::pipe::register(signal, waker)
            .map_err(|error| failed("handle signals", &error))?;
    }
    let threads = context.threads();
    let running = start(listener, config, Arc::new(judge), threads)
        .map_err(|error| failed("start the proxy", &error))?;
    let url = format!("http://{address}{token}");
    context.ui.answer(format!("Listening: {url}"));
    context.done(&Ready { address: address.to_string(), url, upstreams });
    while !stop.wait(std::time::Duration::from_secs(3600)) {}
    running.stop().map_err(|error| failed("end the proxy", &error))?;
    Ok(Exit::Success)
}

pub(super) fn upstream(text: &str) -> Result<Upstream, String> {
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
    // Each session verifies the policy for itself; this only says how long a request will be.
    if let Ok(workspace) = Workspace::open(workspace) {
        let verified = store.inspect(&workspace);
        let policy = verified.policy().map(|policy| policy.text());
        config.block = Some(build_ending_security_block(policy, false));
    }
    Ok(config)
}

fn config(
    context: &Context,
    args: &Args,
    state: &Path,
    workspace: &Path,
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
            let message = format!("`{url}` cannot be used for spans: {error}");
            CliError::refused(message, "give a URL such as http://127.0.0.1:4318")
        })
    });
    config.watch = Some(Arc::new(Watches(inspect, otlp.transpose()?)));
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

/// A line for each thing that is refused or withheld; with `all`, for everything.
struct Inspect {
    all: bool,
    remarks: Remarks,
}

/// All who are told.
struct Watches(Inspect, Option<Otlp>);

impl Watch for Watches {
    fn seen(&self, seen: &Seen<'_>) {
        self.0.seen(seen);
        if let Some(otlp) = &self.1 {
            otlp.seen(seen);
        }
    }
}

impl Watch for Inspect {
    fn seen(&self, seen: &Seen<'_>) {
        for line in told(seen, self.all) {
            self.remarks.line(&harmless(&line));
        }
    }
}

/// What is told of what went through: what is refused or withheld; with `all`, everything.
pub(super) fn told(seen: &Seen<'_>, all: bool) -> Vec<String> {
    match seen {
        Seen::Request { request, sent, marked, withheld, block } if all => {
            let block = block.map_or(0, str::len);
            vec![format!(
                "{} {} {}: {} messages, {} bytes in, {sent} out; added a block of {block} bytes, \
                 marked {marked} results, withheld {withheld}",
                request.session,
                request.wire,
                request.model.as_deref().unwrap_or("-"),
                request.messages,
                request.size,
            )]
        }
        Seen::Denied { request, denial } => {
            vec![format!("{} refused a request: {denial}", request.session)]
        }
        Seen::Call { exchange, ruling: Ruling::Deny(why), .. } => {
            vec![format!("{} {why}", exchange.session)]
        }
        Seen::Call { exchange, call, ruling: Ruling::Allow } if all => {
            vec![format!("{} allowed a call of {}", exchange.session, call.name)]
        }
        Seen::Reply { exchange, outcome } => told_of_reply(exchange, outcome, all),
        _ => Vec::new(),
    }
}

fn told_of_reply(exchange: &Exchange, outcome: &Outcome, all: bool) -> Vec<String> {
    let (session, report) = (&exchange.session, &outcome.report);
    let mut lines = Vec::new();
    if report.withheld > 0 {
        let (count, rules) = (report.withheld, report.rules.join(", "));
        lines.push(format!("{session} withheld {count} places of a reply ({rules})"));
    }
    match &outcome.ended {
        Ended::Cut(why) => lines.push(format!("{session} cut a reply off: {why}")),
        Ended::Failed(why) => lines.push(format!("{session} got no whole reply: {why}")),
        _ if all => lines.push(format!(
            "{session} replied: status {}, {} bytes, tokens {} in and {} out, ended by {}",
            outcome.status.unwrap_or_default(),
            outcome.received,
            report.input_tokens.unwrap_or_default(),
            report.output_tokens.unwrap_or_default(),
            report.stop.as_deref().unwrap_or("-"),
        )),
        _ => {}
    }
    lines
}
