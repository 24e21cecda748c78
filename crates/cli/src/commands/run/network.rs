//! The way out for a confined program: a proxy in this process, which listens inside.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wardkeep_gateway::egress::{
    Config, Inspection, Listener, Monitored, Rule, Rules, Running, Unlisted, start,
};
use wardkeep_monitor::daemon::{Starter, ensure_running};
use wardkeep_monitor::monitor::WhoBody;
use wardkeep_monitor::wire::Client;

use super::super::daemon::PATIENCE;
use super::super::egress::{Beginning, Telling, ask, begin_session, failed, may_begin, starter};
use super::asking::Desk;
use crate::context::Context;
use crate::error::CliError;

/// Where the proxy is found inside. The network there is the program's own, so that it is free.
pub(super) const PORT: u16 = 3128;
/// Refusals that are told after the run.
const TOLD: usize = 20;

/// Whom a program may talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Net {
    /// Itself
    None,
    /// Itself, and hosts that are allowed, by way of a proxy
    Proxy,
}

/// A proxy that is ready, and waits for the socket inside.
pub(super) struct Proxy {
    config: Config,
    who: WhoBody,
    starter: Starter,
    refused: Arc<Mutex<Refused>>,
    /// Whether its session has begun.
    begun: bool,
}

#[derive(Default)]
struct Refused {
    lines: Vec<String>,
    more: usize,
}

/// A proxy at work.
pub(super) struct Served {
    running: Running,
    refused: Arc<Mutex<Refused>>,
    /// What its session began with.
    messages: Vec<String>,
}

/// Begins a session of its own in the daemon, which is started where it does not run. It is not waited for.
pub(super) fn begin(
    context: &Context,
    state: &Path,
    client: Option<Client>,
    who: &WhoBody,
) -> Result<Beginning, CliError> {
    let client = match client {
        Some(client) => client,
        None => ensure_running(state, &starter(context)?, PATIENCE)?.0,
    };
    begin_session(client, who)
}

/// Sees to it that there is a daemon, where a session will begin.
pub(super) fn reach(context: &Context, state: &Path) -> Result<(), CliError> {
    Ok(ensure_running(state, &starter(context)?, PATIENCE).map(drop)?)
}

impl Proxy {
    /// One whose session has begun, or begins when it is served.
    pub(super) fn new(
        context: &Context,
        who: WhoBody,
        allow: Vec<Rule>,
        deny: Vec<Rule>,
        desk: Option<&Desk>,
        inspection: Option<Arc<Inspection>>,
        begun: bool,
    ) -> Result<Self, CliError> {
        let unlisted = match (desk.is_some(), allow.is_empty()) {
            (true, _) => Unlisted::Ask,
            (false, true) => Unlisted::Decider,
            (false, false) => Unlisted::Deny,
        };
        let mut config = Config::new(Rules { allow, deny, unlisted });
        config.inspection = inspection;
        match desk {
            None => {}
            Some(Desk::Elsewhere(desk)) => {
                config.ask = Some(ask::elsewhere(desk.clone()));
                config.limits.ask = ask::ELSEWHERE;
            }
            Some(Desk::Terminal(terminal)) => {
                config.ask = Some(ask::on_terminal(Arc::clone(terminal)));
                config.limits.ask = ask::PATIENCE;
            }
        }
        let starter = starter(context)?;
        Ok(Self { config, who, starter, refused: Arc::default(), begun })
    }

    /// Serves on the socket that listens inside, unless its session may not begin.
    pub(super) fn serve(self, state: &Path, listener: TcpListener) -> Result<Served, CliError> {
        let messages = match self.begun {
            true => Vec::new(),
            false => {
                let (client, _) = ensure_running(state, &self.starter, PATIENCE)?;
                may_begin(begin_session(client, &self.who)?.answer()?)?
            }
        };
        let refused = Arc::clone(&self.refused);
        let tell = Box::new(move |line: &str| {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.lines.iter().any(|known| known == line) {
                return;
            }
            if refused.lines.len() < TOLD {
                refused.lines.push(line.to_owned());
            } else {
                refused.more += 1;
            }
        });
        let monitor = Monitored::daemon(state, self.starter, self.who);
        let decider = Arc::new(Telling { monitor, tell });
        let running = start(Listener::Tcp(listener), self.config, decider, 1)
            .map_err(|error| failed("start the proxy", &error))?;
        Ok(Served { running, refused, messages })
    }
}

impl Served {
    /// Ends it, tells what was refused, and gives it back for the record.
    pub(super) fn end(self, context: &mut Context) -> Result<Vec<String>, CliError> {
        let ended = self.running.stop();
        for message in &self.messages {
            context.ui.note(message);
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for line in &refused.lines {
            context.ui.note(line);
        }
        if refused.more > 0 {
            context
                .ui
                .note(&format!("{} more requests were refused: see `wardkeep log`", refused.more));
        }
        let unlisted = |line: &String| {
            ["egress-unlisted", "egress-port"].iter().any(|rule| line.contains(rule))
        };
        if refused.lines.iter().any(unlisted) {
            context.ui.note("allow a host with --allow HOST, or in a profile of config.toml");
        }
        ended.map_err(|error| failed("end the proxy", &error))?;
        Ok(std::mem::take(&mut refused.lines))
    }
}

/// What tells programs of the proxy. A server of their own on `localhost` is not reached through it,
/// unless that name is allowed, which means this machine's.
pub(super) fn variables(allow: &[Rule]) -> Vec<(OsString, OsString)> {
    let http = format!("http://127.0.0.1:{PORT}");
    let socks = format!("socks5h://127.0.0.1:{PORT}");
    let inside = |host: &&str| !allow.iter().any(|rule| rule.names_loopback(host));
    let local: Vec<&str> = ["localhost", "127.0.0.1", "::1"].into_iter().filter(inside).collect();
    let local = local.join(",");
    let pairs = [
        ("HTTP_PROXY", http.as_str()),
        ("HTTPS_PROXY", &http),
        ("ALL_PROXY", &socks),
        ("NO_PROXY", &local),
    ];
    let both = pairs
        .into_iter()
        .flat_map(|(name, value)| [(name.to_owned(), value), (name.to_lowercase(), value)]);
    both.map(|(name, value)| (name.into(), value.into())).collect()
}
