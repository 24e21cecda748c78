//! The owner is asked about a host that no rule names: on the terminal, or where approvals are answered.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};
use wardkeep_evidence::hash::RecordId;
use wardkeep_gateway::egress::{Ask, AskInThread, Reply, Request};
use wardkeep_monitor::approvals::{Approvals, Scope};
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::monitor::{EGRESS, EgressAnswer, EgressBody, WhoBody};
use wardkeep_monitor::wire::Client;

use crate::error::CliError;
use crate::ui::harmless;

/// How long an answer is waited for; the request waits as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer from elsewhere is waited for.
pub(crate) const ELSEWHERE: Duration = Duration::from_secs(300);
/// Between two looks whether there is one.
const PAUSE: Duration = Duration::from_millis(300);
/// How long the daemon may take.
const ANSWER: Duration = Duration::from_secs(5);
/// Longest answer.
const LONGEST: usize = 256;
/// Longest address that is shown.
const SHOWN: usize = 300;

/// Asks on the terminal of this process.
pub(crate) fn on_terminal() -> Result<Arc<dyn Ask>, CliError> {
    let open = || {
        File::options().read(true).write(true).open("/dev/tty").map_err(|_| {
            CliError::refused(
                "nobody can be asked: there is no terminal",
                "leave --ask out, and name hosts with --allow",
            )
        })
    };
    let terminal = Mutex::new((open()?, open()?));
    Ok(Arc::new(AskInThread::new(move |request: &Request| {
        let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = &mut *terminal;
        // What was typed before the question was no answer to it.
        let _ = tcflush(&*from, QueueSelector::IFlush);
        ask(request, from, to, PATIENCE)
    })))
}

/// Asks where approvals are answered: in another terminal (`wardkeep approvals`), on the owner's page.
pub(crate) fn elsewhere(state: PathBuf, owner: u32, clock: Clock, who: WhoBody) -> Arc<dyn Ask> {
    Arc::new(AskInThread::new(move |request: &Request| {
        let until = Instant::now() + ELSEWHERE;
        // Whatever goes wrong is a no.
        wait(&state, owner, &clock, &who, request, until).unwrap_or(Reply::No)
    }))
}

fn wait(
    state: &Path,
    owner: u32,
    clock: &Clock,
    who: &WhoBody,
    request: &Request,
    until: Instant,
) -> Option<Reply> {
    let target = request.target.as_ref()?;
    let asked = EgressBody::Ask { who: who.clone(), url: format!("https://{target}/") };
    let ask = || -> Option<EgressAnswer> {
        Client::connect(state, ANSWER).ok()?.call(EGRESS, &asked).ok()?.read().ok()
    };
    let answer = ask()?;
    if answer.allowed {
        return Some(Reply::Once);
    }
    let record = RecordId::from_hex(answer.record.as_deref().filter(|_| answer.pending)?)?;
    let approvals = Approvals::open(state, owner).ok()?;
    while Instant::now() < until {
        std::thread::sleep(PAUSE);
        let now = clock.now();
        let (granted, standing) = approvals.in_force(now).ok()?;
        let mut all = granted.iter().chain(standing.iter().map(|one| &one.grant));
        if let Some(grant) = all.find(|grant| grant.request == record) {
            // It is used by asking once more.
            let allowed = ask()?.allowed;
            return match grant.scope {
                _ if !allowed => None,
                Scope::Once => Some(Reply::Once),
                Scope::Session => Some(Reply::Session),
                Scope::Always => Some(Reply::Always),
            };
        }
        if !approvals.pending(now).ok()?.iter().any(|one| one.id == record) {
            return None;
        }
    }
    None
}

/// One question. Whatever is not clearly a yes is a no.
fn ask<R: Read + AsFd, W: Write>(
    request: &Request,
    from: &mut R,
    to: &mut W,
    patience: Duration,
) -> Reply {
    let url: String = harmless(&request.url).chars().take(SHOWN).collect();
    let method = harmless(&request.method);
    let host = request.target.as_ref().map(|target| target.host.to_string()).unwrap_or_default();
    let host = harmless(&host);
    let question = format!(
        "\r\nwardkeep: {method} {url} wants to leave; no rule names {host}.\r\n\
         Allow it? [o]nce, for this [s]ession, [a]lways, or [N]o: "
    );
    if to.write_all(question.as_bytes()).and_then(|()| to.flush()).is_err() {
        return Reply::No;
    }
    let (reply, said) = match line(from, Instant::now() + patience).as_deref().map(str::trim) {
        Some("o" | "once") => (Reply::Once, "allowed once"),
        Some("s" | "session") => (Reply::Session, "allowed until this ends"),
        Some("a" | "always") => (
            Reply::Always,
            "allowed until this ends; to keep it, add it to `hosts` of a profile or to `[egress]` \
             (`wardkeep config edit`)",
        ),
        Some(_) => (Reply::No, "denied"),
        None => (Reply::No, "no answer: denied"),
    };
    let _ = to.write_all(format!("wardkeep: {host}: {said}\r\n").as_bytes());
    reply
}

/// A line, if one comes in time.
fn line<R: Read + AsFd>(from: &mut R, until: Instant) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let left = until.checked_duration_since(Instant::now())?;
        let left = Timespec::try_from(left).ok()?;
        match poll(&mut [PollFd::new(&*from, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => continue,
            Ok(1..) => {}
            _ => return None,
        }
        let mut byte = [0];
        if from.read(&mut byte).ok()? == 0 || text.len() > LONGEST {
            return None;
        }
        match byte[0] {
            b'\n' | b'\r' => return String::from_utf8(text).ok(),
            byte => text.push(byte.to_ascii_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use wardkeep_gateway::egress::{Target, Way};

    use super::*;

    fn answered(typed: Option<&[u8]>) -> (Reply, String) {
        let (mut from, mut typing) = std::io::pipe().unwrap();
        if let Some(typed) = typed {
            typing.write_all(typed).unwrap();
        }
        let request = Request {
            way: Way::Connect,
            method: "CONNECT".to_owned(),
            url: "https://new.example:443/\u{1b}[2J".to_owned(),
            target: Target::parse(b"new.example:443", None).ok(),
            addresses: Vec::new(),
            size: None,
            content: None,
            refused: None,
        };
        let mut shown = Vec::new();
        let reply = ask(&request, &mut from, &mut shown, Duration::from_millis(50));
        (reply, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        for (typed, expected) in [
            (&b"o\n"[..], Reply::Once),
            (b"Session\n", Reply::Session),
            (b" a \n", Reply::Always),
            (b"n\n", Reply::No),
            (b"\n", Reply::No),
            (b"yes\n", Reply::No),
            (b"o", Reply::No),
            (b"\xff\n", Reply::No),
        ] {
            assert_eq!(answered(Some(typed)).0, expected, "{typed:?}");
        }
        assert_eq!(answered(None).0, Reply::No);
    }

    #[test]
    fn the_question_is_harmless_and_names_the_host() {
        let (_, shown) = answered(Some(b"n\n"));
        assert!(shown.contains("no rule names new.example"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
