//! `wardkeep serve`

mod office;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use wardkeep_gateway::llm::Running;
use wardkeep_gateway::page::{Config, start};

use self::office::Desk;
use super::egress::failed;
use super::proxy::{self, Prepared, Served, stop_by_signal};
use crate::context::Context;
use crate::error::{CliError, reason};
use crate::exit::Exit;

/// Serves a page on this machine: what agents did, what they ask for, and your policy
///
/// Prints a link that works once, for one browser. The page shows how things stand, a live timeline,
/// where each record came from and led to, requests and proposals to answer, and the policy to edit and
/// sign. Nothing is loaded from elsewhere, and other machines cannot reach it. Without --listen it takes
/// an address of this machine that no other server has, so that its cookie goes to nobody else.
///
/// With --proxy the same process serves the proxy for model APIs, too, on an address of its own (see
/// `wardkeep proxy --help`), and the page shows what went through it. The token of one opens nothing at
/// the other.
///
/// It runs until it is ended (Ctrl-C, SIGTERM). Refused inside `wardkeep run`: approving is the owner's.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
#[command(mut_group("proxy options", |group| group.requires("proxy")))]
pub(crate) struct Args {
    /// Address of this machine and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", value_parser = proxy::address)]
    listen: Option<SocketAddr>,
    /// Serve the proxy for model APIs, too, on this address of this machine and port or on 127.0.0.1:3129
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = proxy::LISTEN,
        value_parser = proxy::address)]
    proxy: Option<SocketAddr>,
    #[command(flatten, next_help_heading = "With --proxy")]
    options: proxy::Options,
}

#[derive(Serialize)]
struct Ready {
    address: String,
    link: String,
    proxy: Option<proxy::Ready>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "the page is the owner's: it is not served inside `wardkeep run`",
            "start it in a terminal of your own",
        ));
    }
    let (listener, address) = listener(context, args.listen)?;
    let prepared = args.proxy.map(|listen| Prepared::new(context, listen, &args.options));
    let prepared = prepared.transpose()?;
    // So that there is something to look at.
    drop(context.open_store()?);
    let words = || Ok::<_, CliError>(URL_SAFE_NO_PAD.encode(context.random::<24>()?));
    let config = Config { address, link: words()?, cookie: words()?, form: words()? };
    let link = format!("http://{address}/enter/{}", config.link);
    let stop = stop_by_signal()?;
    let (running, proxy, look) = match prepared.map(|proxy| proxy.start(context)).transpose()? {
        Some(Served { running, ready, look }) => (Some(running), Some(ready), Some(look)),
        None => (None, None, None),
    };
    let desk = Desk::new(context, look)?;
    let verifying = desk.verify_now_and_then();
    let mut page = start(listener, config, Arc::new(desk), random)
        .map_err(|error| failed("start the page", &error))?;
    context.ui.answer(format!("Open once: {link}"));
    if let Some(proxy) = &proxy {
        context.ui.answer(format!("Listening: {}", proxy.url));
    }
    context.done(&Ready { address: address.to_string(), link, proxy });
    while !stop.wait(Duration::from_secs(3600)) {}
    drop(verifying);
    // Both take nothing new from here on, and each ends what is open in its own time.
    page.end();
    let proxied = running.map_or(Ok(()), Running::stop);
    let paged = page.stop();
    proxied.map_err(|error| failed("end the proxy", &error))?;
    paged.map_err(|error| failed("end the page", &error))?;
    Ok(Exit::Success)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn listener(
    context: &Context,
    listen: Option<SocketAddr>,
) -> Result<(TcpListener, SocketAddr), CliError> {
    let own = || -> Result<SocketAddr, CliError> {
        let [a, b, c] = context.random::<3>()?;
        // Not the ends of the range, which some systems treat in a way of their own.
        let address = Ipv4Addr::new(127, a.clamp(1, 254), b.clamp(1, 254), c.clamp(1, 254));
        Ok(SocketAddr::new(IpAddr::V4(address), 0))
    };
    let meant = listen.map_or_else(own, Ok)?;
    if !meant.ip().is_loopback() {
        return Err(CliError::refused(
            format!("`{meant}` can be reached from other machines"),
            "give an address such as 127.0.0.1:7380",
        ));
    }
    let bound = match TcpListener::bind(meant) {
        // Only Linux has all of that range.
        Err(_) if listen.is_none() => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        bound => bound,
    };
    let failed = |error: io::Error| {
        let message = format!("cannot listen on `{meant}`: {}", reason(&error));
        CliError::new(Exit::Unreadable, message, "give a port that is free, or 0 for any")
    };
    let listener = bound.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}
