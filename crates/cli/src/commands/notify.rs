//! `wardkeep notify`

mod pace;
mod reply;
mod settings;
mod watch;

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wardkeep_gateway::notify::{
    Desktop, Kind, Listener, Notice, Outcome, Queue, Said, Telegram, Way, Webhook,
};
use wardkeep_monitor::approvals::Approvals;
use wardkeep_monitor::daemon::Stop;

use self::pace::Pace;
use self::settings::{Chat, Settings};
use self::watch::{Watcher, sum_notice};
use super::egress::failed;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Tells you of requests and critical alerts: on the desktop, by a webhook, in a chat
///
/// Where to is said in `[notify]` of the signed config. Each request that waits and each critical alert is
/// told once, also over restarts; when there are too many, a sum is told. With `answers = true` in
/// `[notify.telegram]`, one person in one chat may answer a request with `approve CODE` or `deny CODE`: for
/// exactly what the notice shows, once.
///
/// It runs until it is ended (Ctrl-C, SIGTERM). Refused inside `wardkeep run`: approving is the owner's.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// Send one trial notice by every way, and say which worked
    #[arg(long)]
    test: bool,
}

#[derive(Serialize)]
struct Answer {
    ways: Vec<WayAnswer>,
    answers: bool,
}

#[derive(Serialize)]
struct WayAnswer {
    way: &'static str,
    worked: Option<bool>,
    error: Option<String>,
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// When a notice that was not delivered is tried again.
const TRIES: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(8), Duration::from_secs(30)];
/// How long what waits may take when it ends.
const FAREWELL: Duration = Duration::from_secs(3);
/// Only one of it runs at a time.
const LOCK: &str = "notify.lock";
/// How far the journal was read is written down every so many looks.
const KEEP: u32 = 120;

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "notices are the owner's: they are not sent from inside `wardkeep run`",
            "start it in a terminal of your own",
        ));
    }
    let state = context.state_dir()?;
    let settings = Settings::load(&state)?;
    if args.test {
        return test(context, &settings);
    }
    watch(context, &state, &settings)
}

/// Every way that is configured.
fn ways(context: &Context, settings: &Settings) -> Result<Vec<Box<dyn Way>>, CliError> {
    let mut ways: Vec<Box<dyn Way>> = Vec::new();
    if settings.desktop {
        let variables: Vec<(OsString, OsString)> = context.variables().collect();
        let path = variables.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
        let desktop = Desktop::find(&path, variables.into_iter()).ok_or_else(|| {
            CliError::refused(
                "`desktop = true` needs `notify-send`, which is not on PATH",
                "install it (libnotify), or set `desktop = false` with `wardkeep config edit`",
            )
        })?;
        ways.push(Box::new(desktop));
    }
    if let Some(address) = &settings.webhook {
        let webhook = Webhook::new(address.clone()).map_err(|error| failed("use TLS", &error))?;
        ways.push(Box::new(webhook));
    }
    if let Some(chat) = &settings.telegram {
        ways.push(Box::new(telegram(chat)?));
    }
    Ok(ways)
}

fn telegram(chat: &Chat) -> Result<Telegram, CliError> {
    let answers = chat.answers.is_some();
    Telegram::new(chat.api.clone(), chat.token.clone(), chat.chat, answers)
        .map_err(|error| failed("use TLS", &error))
}

fn test(context: &mut Context, settings: &Settings) -> Result<Exit, CliError> {
    let notice = Notice {
        kind: Kind::Alert,
        title: "A trial of `wardkeep notify`".to_owned(),
        facts: vec![("what", "nothing happened: this way works".to_owned())],
        code: None,
        severity: "info".to_owned(),
        next: String::new(),
    };
    let mut answers = Vec::new();
    for mut way in ways(context, settings)? {
        let error = way.send(&notice).err().map(|failed| failed.why);
        match &error {
            None => context.ui.answer(format!("✓ {}", way.name())),
            Some(why) => context.ui.fault(format!("{}: {why}", way.name())),
        }
        answers.push(WayAnswer { way: way.name(), worked: Some(error.is_none()), error });
    }
    let ok = answers.iter().all(|one| one.error.is_none());
    let exit = if ok { Exit::Success } else { Exit::Refused };
    let answer = Answer { ways: answers, answers: takes_answers(settings) };
    Ok(context.finish(exit, ok, &answer))
}

fn takes_answers(settings: &Settings) -> bool {
    settings.telegram.as_ref().is_some_and(|chat| chat.answers.is_some())
}

/// An answer, and where its reply goes.
type Asked = (Said, SyncSender<String>);

fn watch(context: &mut Context, state: &Path, settings: &Settings) -> Result<Exit, CliError> {
    // So that there is something to look at.
    drop(context.open_store()?);
    let _lock = lock(&state.join(LOCK))?;
    let stop = Stop::new().map_err(|error| failed("make a pipe", &error))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let waker = stop.waker().map_err(|error| failed("make a pipe", &error))?;
        signal_hook::low_level::pipe::register(signal, waker)
            .map_err(|error| failed("handle signals", &error))?;
    }
    let started = ways(context, settings)?.into_iter().map(|way| Queue::start(way, &TRIES));
    let queues: Vec<Queue> =
        started.collect::<Result<_, _>>().map_err(|error| failed("start a thread", &error))?;
    let approvals = Approvals::open(state, rustix::process::getuid().as_raw())?;
    let mut watcher = Watcher::open(state)?;
    let (chat, asked) = match &settings.telegram {
        Some(chat) if chat.answers.is_some() => (Some(chat), Some(listen(context, chat)?)),
        _ => (None, None),
    };
    let named =
        queues.iter().map(|queue| WayAnswer { way: queue.name(), worked: None, error: None });
    let answer = Answer { ways: named.collect(), answers: takes_answers(settings) };
    let names: Vec<&str> = queues.iter().map(Queue::name).collect();
    context.ui.answer(format!("Tells of requests and critical alerts by: {}", names.join(", ")));
    context.done(&answer);
    let mut teller = Teller::new(queues, settings.per_minute);
    let mut looks = 0u32;
    let (mut more, mut trouble) = (false, String::new());
    while !stop.wait(if more { Duration::ZERO } else { PAUSE }) {
        looks = looks.wrapping_add(1);
        let now = context.now()?;
        let looked = watcher.look(&approvals, now).and_then(|news| {
            more = news.more;
            teller.tell(context, news.notices);
            watcher.keep(looks.is_multiple_of(KEEP))
        });
        // What cannot be read now may be later; said once.
        let said = looked.err().map(|error| error.message).unwrap_or_default();
        if !said.is_empty() {
            more = false;
            if said != trouble {
                context.ui.note(&said);
            }
        }
        trouble = said;
        if let (Some(chat), Some(asked)) = (chat, &asked) {
            while let Ok((said, reply)) = asked.try_recv() {
                let text = reply::deal(context, state, &approvals, chat, &said);
                context.ui.say(format!("answer from the chat: {text}"));
                // Who waits for it may have ended.
                let _ = reply.try_send(text);
            }
        }
    }
    watcher.keep(true)?;
    teller.end();
    Ok(Exit::Success)
}

fn lock(path: &Path) -> Result<File, CliError> {
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    let file = options.open(path).map_err(|error| CliError::io("open", path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(CliError::refused("`wardkeep notify` runs already", "end that one first"))
        }
        Err(TryLockError::Error(error)) => Err(CliError::io("lock", path, &error)),
    }
}

/// Listens to the chat on a thread of its own, which ends with the process.
fn listen(context: &Context, chat: &Chat) -> Result<Receiver<Asked>, CliError> {
    let (sender, receiver) = sync_channel::<Asked>(1);
    let user = chat.answers.unwrap_or_default();
    let mut listener = Listener::new(telegram(chat)?, user, context.now()?.unix());
    let remarks = context.ui.remarks();
    let work = move || {
        let mut last = String::new();
        loop {
            let mut answer = |said: &Said| {
                let (reply, replied) = sync_channel(1);
                let asked = sender.send((said.clone(), reply)).is_ok();
                let text = if asked { replied.recv().ok() } else { None };
                text.unwrap_or_else(|| "Not taken: `wardkeep notify` was ended.".to_owned())
            };
            match listener.listen(&mut answer) {
                Ok(()) => last.clear(),
                Err((pause, failed)) => {
                    if last != failed.why {
                        remarks.line(&format!("note: answers from the chat: {failed}"));
                        last = failed.why;
                    }
                    std::thread::sleep(pause);
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("answers".to_owned())
        .spawn(work)
        .map_err(|error| failed("start a thread", &error))?;
    Ok(receiver)
}

/// Hands notices to every way, not too many of them.
struct Teller {
    queues: Vec<(Queue, Outcome)>,
    paces: [(Kind, Pace); 2],
}

impl Teller {
    fn new(queues: Vec<Queue>, per_minute: u32) -> Self {
        let now = Instant::now();
        let paces = [Kind::Approval, Kind::Alert].map(|kind| (kind, Pace::new(per_minute, now)));
        let queues = queues.into_iter().map(|queue| (queue, Outcome::default())).collect();
        Self { queues, paces }
    }

    fn tell(&mut self, context: &mut Context, notices: Vec<Notice>) {
        let now = Instant::now();
        let mut leaving = Vec::new();
        for (kind, pace) in &mut self.paces {
            leaving.extend(pace.sum(now).map(|many| sum_notice(*kind, many)));
        }
        for notice in notices {
            let pace = self.paces.iter_mut().find(|(kind, _)| *kind == notice.kind);
            if pace.is_none_or(|(_, pace)| pace.may(now)) {
                leaving.push(notice);
            }
        }
        for notice in leaving {
            let code = notice.code.as_deref().map(|code| format!(" {code}")).unwrap_or_default();
            context.ui.say(format!("{}{code}: {}", notice.kind.as_str(), notice.title));
            for (queue, _) in &self.queues {
                queue.push(notice.clone());
            }
        }
        for (queue, known) in &mut self.queues {
            let outcome = queue.outcome();
            if outcome.lost > known.lost {
                let why = outcome.why.clone().unwrap_or_default();
                context.ui.note(&format!("{}: not delivered: {why}", queue.name()));
            }
            *known = outcome;
        }
    }

    fn end(self) {
        let until = Instant::now() + FAREWELL;
        for (queue, _) in &self.queues {
            queue.settle(until.saturating_duration_since(Instant::now()));
        }
    }
}
