//! `wardkeep egress`

pub(super) mod ask;
pub(super) mod inspect;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wardkeep_gateway::egress::{
    BadRule, BoxFuture, Config, Credential, Decider, Decision, Denial, Listener, Monitored,
    Outcome, Request, Rule, Rules, Unlisted, Verdict, start,
};
use wardkeep_monitor::daemon::{Starter, Stop, ensure_running};
use wardkeep_monitor::monitor::{EVENT, EventAnswer, EventBody, Hook, Part, WhoBody};
use wardkeep_monitor::wire::{Asked, Client};

use super::daemon::PATIENCE;
use crate::context::Context;
use crate::error::{CliError, reason};
use crate::exit::Exit;
use crate::ui::harmless;

/// Serves a proxy that lets out only what may leave: HTTP, CONNECT and SOCKS5 on one address
///
/// Programs use it by HTTP_PROXY, HTTPS_PROXY and ALL_PROXY. Each request is held against --allow and
/// --deny, its name looked up once, addresses inside of this machine and its networks refused unless they
/// are named, and then decided and recorded as every request is: `egress` in config.toml and your rules
/// hold here, too. Without --allow they alone decide.
///
/// A program that does not want to use a proxy goes past it; `wardkeep run` leaves it no other way.
///
/// It runs until it is ended (Ctrl-C, SIGTERM). A line on standard error tells of each request that is
/// refused.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// Address of this machine and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3128", conflicts_with = "socket")]
    listen: SocketAddr,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// What may be reached, such as example.org, =example.org, *.example.org, example.org:8443,
    /// 10.0.0.0/8, "GET example.org" or corp.example@10.0.0.0/8; may be given again
    #[arg(long, value_name = "RULE", value_parser = rule)]
    allow: Vec<Rule>,
    /// What may not be reached, whatever else is said; may be given again
    #[arg(long, value_name = "RULE", value_parser = rule)]
    deny: Vec<Rule>,
    /// Ask whoever connects for this name and password, read from a file as NAME:PASSWORD
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
    /// Most bytes that one request or tunnel may send
    #[arg(long, value_name = "BYTES")]
    max_upload: Option<u64>,
    /// Most bytes that may be sent in all
    #[arg(long, value_name = "BYTES")]
    max_total: Option<u64>,
    /// Ask on this terminal about hosts that --allow does not name
    #[arg(long)]
    ask: bool,
    /// Look into TLS to this host, in the name of an authority that lives only as long as the proxy: requests
    /// inside are then judged one by one, and what they send is looked through; may be given again
    #[arg(long, value_name = "RULE", value_parser = rule, requires = "trust_out")]
    inspect: Vec<Rule>,
    /// Write what programs have to trust for --inspect to this file: what this machine trusts, and that authority
    #[arg(long, value_name = "FILE", requires = "inspect")]
    trust_out: Option<PathBuf>,
    /// Let secrets leave in what can be read
    #[arg(long)]
    allow_secrets: bool,
}

#[derive(Serialize)]
struct Ready {
    address: Option<String>,
    socket: Option<String>,
    session: String,
    allow: Vec<String>,
    deny: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "a proxy is not started inside `wardkeep run`: it would be confined too",
            "start it in a terminal of your own",
        ));
    }
    let config = config(&args)?;
    let session = format!("egress:{}", hex(&context.random::<8>()?));
    let who = WhoBody {
        agent: "egress".to_owned(),
        session: session.clone(),
        workspace: std::path::absolute(context.workspace())
            .map_err(|error| CliError::io("find", Path::new("."), &error))?,
        principal: None,
        taint: Vec::new(),
        parents: Vec::new(),
    };
    let state = context.state_dir()?;
    let (listener, address) = listener(&args)?;
    let starter = begin(context, &state, &who)?;
    let remarks = context.ui.remarks();
    let tell = Box::new(move |line: &str| remarks.line(line));
    let decider = Arc::new(Telling { monitor: Monitored::daemon(&state, starter, who), tell });
    let stop = Stop::new().map_err(|error| failed("make a pipe", &error))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let waker = stop.waker().map_err(|error| failed("make a pipe", &error))?;
        signal_hook::low_level::pipe::register(signal, waker)
            .map_err(|error| failed("handle signals", &error))?;
    }
    let threads = context.threads();
    let running = start(listener, config, decider, threads)
        .map_err(|error| failed("start the proxy", &error))?;
    let shown = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect();
    let socket = args.socket.as_ref().map(|path| path.display().to_string());
    let place = match (&address, &socket) {
        (Some(address), _) => format!("http://{address}"),
        (None, socket) => harmless(socket.as_deref().unwrap_or_default()),
    };
    context.ui.answer(format!("Listening: {place}"));
    if args.allow.is_empty() && !args.ask {
        context.ui.note("without --allow, [egress] in config.toml and your rules alone decide");
    }
    context.done(&Ready {
        address: address.map(|address| address.to_string()),
        socket,
        session,
        allow: shown(&args.allow),
        deny: shown(&args.deny),
    });
    while !stop.wait(std::time::Duration::from_secs(3600)) {}
    let ended = running.stop().map_err(|error| failed("end the proxy", &error));
    if let Some(path) = &args.socket {
        let _ = std::fs::remove_file(path);
    }
    ended.map(|()| Exit::Success)
}

pub(super) fn rule(text: &str) -> Result<Rule, BadRule> {
    text.parse()
}

fn config(args: &Args) -> Result<Config, CliError> {
    let unlisted = match (args.ask, args.allow.is_empty()) {
        (true, _) => Unlisted::Ask,
        (false, true) => Unlisted::Decider,
        (false, false) => Unlisted::Deny,
    };
    let rules = Rules { allow: args.allow.clone(), deny: args.deny.clone(), unlisted };
    let mut config = Config::new(rules);
    if args.ask {
        config.ask = Some(ask::on_terminal(ask::Terminal::open()?));
        config.limits.ask = ask::PATIENCE;
    }
    config.secrets = args.allow_secrets;
    config.inspection = inspect::inspection(args.inspect.clone())?;
    if let (Some(inspection), Some(path)) = (&config.inspection, &args.trust_out) {
        let bundle = inspect::bundle(inspection)?;
        std::fs::copy(bundle.path(), path)
            .map_err(|error| CliError::io("write certificates to", path, &error))?;
    }
    if let Some(bytes) = args.max_upload {
        config.limits.upload = bytes;
    }
    if let Some(bytes) = args.max_total {
        config.limits.upload_total = bytes;
        config.limits.upload_per_host = config.limits.upload_per_host.min(bytes);
    }
    if let Some(path) = &args.credential {
        let text =
            std::fs::read_to_string(path).map_err(|error| CliError::io("read", path, &error))?;
        let (name, password) =
            text.trim_end_matches(['\r', '\n']).split_once(':').ok_or_else(|| {
                CliError::refused(
                    format!("`{}` does not hold NAME:PASSWORD", path.display()),
                    "write one line of that form",
                )
            })?;
        config.credential = Some(Credential::new(name, password));
    }
    Ok(config)
}

/// Starts the daemon if none runs, and a session in it.
pub(super) fn begin(
    context: &mut Context,
    state: &Path,
    who: &WhoBody,
) -> Result<Starter, CliError> {
    // So that there is a state directory to listen in.
    drop(context.open_store()?);
    let starter = starter(context)?;
    let (client, _) = ensure_running(state, &starter, PATIENCE)?;
    greet(context, begin_session(client, who)?.answer()?)?;
    Ok(starter)
}

/// How the daemon is started.
pub(super) fn starter(context: &Context) -> Result<Starter, CliError> {
    let mut starter = Starter::new(context.program()?);
    starter.variables = context.daemon_variables();
    Ok(starter)
}

/// Begins a session in a daemon that runs.
pub(super) fn begin_session(mut client: Client, who: &WhoBody) -> Result<Beginning, CliError> {
    let what = Hook::SessionStart { channel: "egress".to_owned(), parent: None };
    let event = EventBody { who: who.clone(), parts: vec![Part { principal: None, what }] };
    let asked = client.ask(EVENT, &event)?;
    Ok(Beginning { client, asked })
}

/// A session that the daemon was asked to begin.
pub(super) struct Beginning {
    client: Client,
    asked: Asked,
}

impl Beginning {
    /// Waits for what it begins with.
    pub(super) fn answer(mut self) -> Result<EventAnswer, CliError> {
        Ok(self.client.answer(self.asked)?.read()?)
    }
}

/// Tells what a session begins with, unless it may not begin.
pub(super) fn greet(context: &mut Context, answer: EventAnswer) -> Result<(), CliError> {
    for message in &answer.messages {
        context.ui.note(message);
    }
    may_begin(answer).map(drop)
}

/// What a session begins with, unless it may not begin.
pub(super) fn may_begin(answer: EventAnswer) -> Result<Vec<String>, CliError> {
    match answer.stopped {
        Some(why) => {
            Err(CliError::refused(why, "see `wardkeep md status` and `wardkeep rules list`"))
        }
        None => Ok(answer.messages),
    }
}

fn listener(args: &Args) -> Result<(Listener, Option<SocketAddr>), CliError> {
    if let Some(path) = &args.socket {
        let listener =
            UnixListener::bind(path).map_err(|error| CliError::io("listen on", path, &error))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| CliError::io("protect", path, &error))?;
        return Ok((Listener::Unix(listener), None));
    }
    if !args.listen.ip().is_loopback() {
        return Err(CliError::refused(
            format!("`{}` can be reached from other machines", args.listen),
            "give an address such as 127.0.0.1:3128",
        ));
    }
    let failed = |error: std::io::Error| {
        let message = format!("cannot listen on `{}`: {}", args.listen, reason(&error));
        CliError::new(Exit::Unreadable, message, "give a port that is free, or 0 for any")
    };
    let listener = TcpListener::bind(args.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((Listener::Tcp(listener), Some(address)))
}

/// The monitor, and a line for each refusal.
pub(super) struct Telling {
    pub(super) monitor: Monitored,
    pub(super) tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Telling {
    fn refused(&self, request: &Request, denial: &Denial) {
        let url = if request.url.is_empty() { "a request" } else { &request.url };
        let line = format!("refused {} {url}: {denial}", request.method);
        (self.tell)(&harmless(&line));
    }
}

impl Decider for Telling {
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let decision = self.monitor.decide(request).await;
            match (&request.refused, &decision.verdict) {
                (Some(denial), _) | (None, Verdict::Deny(denial)) => self.refused(request, denial),
                (None, Verdict::Allow { .. }) => {}
            }
            decision
        })
    }

    fn outcome<'a>(
        &'a self,
        request: &'a Request,
        record: Option<&'a str>,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let wardkeep_gateway::egress::Ended::Cut(denial) = &outcome.ended {
                self.refused(request, denial);
            }
            self.monitor.outcome(request, record, outcome).await;
        })
    }

    fn screen<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Denial>> {
        self.monitor.screen(request)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    wardkeep_evidence::hash::encode_hex(bytes)
}

pub(super) fn failed(action: &str, error: &std::io::Error) -> CliError {
    let message = format!("cannot {action}: {}", reason(error));
    CliError::new(Exit::Unreadable, message, "check the limits of this user, and run it again")
}
