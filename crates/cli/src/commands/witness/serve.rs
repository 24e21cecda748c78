//! `witness serve`

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use wardkeep_monitor::anchor::server::{KnownLog, ServerError, WitnessServer};

use super::identity::IdentityArgs;
use crate::commands::trust::read_log_public;
use crate::context::Context;
use crate::error::{CliError, reason};
use crate::exit::Exit;

/// Serves over HTTP: cosigns the seals of other logs, each only if it continues the last
///
/// Speaks C2SP tlog-witness. For each log it keeps the last checkpoint it signed, on disk before it
/// answers, and demands a proof that the next one continues it: a log that was cut off, put back
/// or rewritten gets no signature. Two machines can each run one for the other.
///
/// It runs until it is ended (Ctrl-C, SIGTERM); what it signed is on disk at any time, so that
/// nothing is lost by ending it. A line on standard error tells of each request.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on, such as 127.0.0.1:8765; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// Listen where other machines can connect
    #[arg(long)]
    public: bool,
    /// A file with the public keys of a log to work for (`log.pub`); may be given again
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// Work for every log that introduces itself, and remember its keys
    #[arg(long)]
    accept_new: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

#[derive(Serialize)]
struct Ready<'a> {
    address: String,
    url: &'a str,
    name: &'a str,
    key: &'a str,
    directory: String,
    logs: usize,
    accept_new: bool,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let addresses = resolve(&args.listen, args.public)?;
    let logs = args.log.iter().map(|path| read_log_public(path).map(KnownLog::from));
    let logs = logs.collect::<Result<Vec<_>, _>>()?;
    let known = logs.len();
    let identity = args.identity.open(context)?;
    let signing_key = identity.key()?;
    let key = signing_key.verifier().to_string();
    let clock = context.clock();
    let time = clock.clone();
    let remarks = context.ui.remarks();
    let now = move || u64::try_from(time.now().unix()).unwrap_or(0);
    let server = WitnessServer::open(&identity.directory, signing_key, logs, args.accept_new, now)?
        .with_observer(move |served| {
            let (peer, method, target) = (served.peer, served.method, served.target);
            remarks.line(&format!("{} {peer} {method} {target} {}", clock.now(), served.status));
        });
    let listen = |error| CliError {
        hint: "give an address of this machine and a port that is free".to_owned(),
        ..CliError::from(ServerError::Listen(error))
    };
    let listener = TcpListener::bind(&addresses[..]).map_err(|error| {
        let message = format!("cannot listen on `{}`: {}", args.listen, reason(&error));
        CliError { message, ..listen(error) }
    })?;
    let address = listener.local_addr().map_err(listen)?;
    let url = format!("http://{address}");
    context.ui.answer(format!("Listening: {url}"));
    context.ui.answer(format!("Key: {key}"));
    context
        .ui
        .say(format!("To use it: wardkeep evidence anchor add NAME --witness {url} --key {key}"));
    if known == 0 && !args.accept_new {
        context.ui.note(
            "it works only for logs it has learned before: name others with --log, or give --accept-new",
        );
    }
    context.done(&Ready {
        address: address.to_string(),
        url: &url,
        name: &identity.name,
        key: &key,
        directory: identity.directory.display().to_string(),
        logs: known,
        accept_new: args.accept_new,
    });
    // Ended by a signal, whose default is to end the process: nothing is held back in memory.
    server.run(listener, &AtomicBool::new(false))?;
    Ok(Exit::Success)
}

/// The addresses that `text` stands for, all on this machine alone unless `public`.
fn resolve(text: &str, public: bool) -> Result<Vec<SocketAddr>, CliError> {
    let addresses: Vec<SocketAddr> =
        text.to_socket_addrs().map(Iterator::collect).map_err(|_| {
            CliError::refused(
                format!("`{text}` is no address to listen on"),
                "give one like 127.0.0.1:8765 or [::1]:8765",
            )
        })?;
    if public || addresses.iter().all(|address| address.ip().is_loopback()) {
        return Ok(addresses);
    }
    Err(CliError::refused(
        format!("`{text}` can be reached from other machines"),
        "give --public if they are meant to: a witness holds no secrets of a log, and anyone who \
         connects can ask it to sign and learn how far each log has come",
    ))
}
