//! The owner is asked, about a host that no rule names or a protected name: on the terminal, or where
//! approvals are answered.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
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
/// After a question without an answer, so long nothing is taken for the answer to the next one.
const UNANSWERED: Duration = Duration::from_millis(1500);
/// Longest answer.
const LONGEST: usize = 256;
/// Longest address that is shown.
const SHOWN: usize = 300;

/// The terminal of this process, for one question at a time.
#[derive(Debug)]
pub(crate) struct Terminal(Mutex<Open<File>>);

/// A terminal that is open.
#[derive(Debug)]
struct Open<F> {
    from: F,
    to: F,
    /// Whether the last question was left without an answer, which may still be typed.
    unanswered: bool,
}

impl Terminal {
    pub(crate) fn open() -> Result<Arc<Self>, CliError> {
        let open = || {
            File::options().read(true).write(true).open("/dev/tty").map_err(|_| {
                CliError::refused(
                    "nobody can be asked: there is no terminal",
                    "leave --ask out; name hosts with --allow, and names in `release` of a profile",
                )
            })
        };
        let (from, to) = (open()?, open()?);
        Ok(Arc::new(Self(Mutex::new(Open { from, to, unanswered: false }))))
    }

    /// Asks, unless nobody waits for the answer any more.
    pub(crate) fn ask(&self, question: &Question, gone: &dyn Fn() -> bool) -> Reply {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ask(question, PATIENCE, gone)
    }
}

impl<F: Read + Write + AsFd> Open<F> {
    fn ask(&mut self, question: &Question, patience: Duration, gone: &dyn Fn() -> bool) -> Reply {
        if std::mem::take(&mut self.unanswered) {
            // Whoever is about to answer the one before has to see that this is another.
            let said =
                "\r\nwardkeep: the question above no longer counts; another one follows.\r\n";
            let _ = self.to.write_all(said.as_bytes());
            std::thread::sleep(UNANSWERED);
        }
        // What was typed before the question was no answer to it.
        let _ = tcflush(&self.from, QueueSelector::IFlush);
        if gone() {
            return Reply::Unanswered;
        }
        let reply = ask(question, &mut self.from, &mut self.to, patience, gone);
        self.unanswered = gone() || reply.is_none();
        reply.unwrap_or(Reply::Unanswered)
    }
}

/// A question to the owner, for a terminal.
#[derive(Debug)]
pub(crate) struct Question {
    /// What is asked, without the answers.
    pub(crate) text: String,
    /// What it is about.
    pub(crate) about: String,
    /// How it is allowed for always.
    pub(crate) always: &'static str,
}

/// Asks about hosts on the terminal of this process.
pub(crate) fn on_terminal(terminal: Arc<Terminal>) -> Arc<dyn Ask> {
    Arc::new(AskInThread::new(move |request: &Request, gone: &dyn Fn() -> bool| {
        terminal.ask(&question(request), gone)
    }))
}

/// Asks where approvals are answered: in another terminal (`wardkeep approvals`), on the owner's page.
#[derive(Debug, Clone)]
pub(crate) struct Elsewhere {
    pub(crate) state: PathBuf,
    pub(crate) owner: u32,
    pub(crate) clock: Clock,
    pub(crate) who: WhoBody,
}

/// Asks about hosts where approvals are answered.
pub(crate) fn elsewhere(desk: Elsewhere) -> Arc<dyn Ask> {
    Arc::new(AskInThread::new(move |request: &Request, gone: &dyn Fn() -> bool| {
        let Some(target) = &request.target else { return Reply::No };
        let url = format!("https://{target}/");
        desk.ask(&EgressBody::Ask { who: desk.who.clone(), url }, gone)
    }))
}

impl Elsewhere {
    /// Waits for an answer, unless nobody else does any more. Whatever goes wrong is none.
    pub(crate) fn ask(&self, asked: &EgressBody, gone: &dyn Fn() -> bool) -> Reply {
        self.wait(asked, Instant::now() + ELSEWHERE, gone).unwrap_or(Reply::Unanswered)
    }

    fn wait(&self, asked: &EgressBody, until: Instant, gone: &dyn Fn() -> bool) -> Option<Reply> {
        let ask = || -> Option<EgressAnswer> {
            Client::connect(&self.state, ANSWER).ok()?.call(EGRESS, asked).ok()?.read().ok()
        };
        let answer = ask()?;
        if answer.allowed {
            return Some(Reply::Once);
        }
        if !answer.pending {
            return Some(Reply::No);
        }
        let record = RecordId::from_hex(answer.record.as_deref()?)?;
        let approvals = Approvals::open(&self.state, self.owner).ok()?;
        while Instant::now() < until && !gone() {
            std::thread::sleep(PAUSE);
            let now = self.clock.now();
            // First: whoever answers in between has answered by the time that grants are read.
            let waits = approvals.pending(now).ok()?.iter().any(|one| one.id == record);
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
            if !waits {
                return Some(Reply::No);
            }
        }
        None
    }
}

fn question(request: &Request) -> Question {
    let url: String = harmless(&request.url).chars().take(SHOWN).collect();
    let method = harmless(&request.method);
    let host = request.target.as_ref().map(|target| target.host.to_string()).unwrap_or_default();
    let host = harmless(&host);
    Question {
        text: format!("{method} {url} wants to leave; no rule names {host}."),
        about: host,
        always: "add it to `hosts` of a profile or to `[egress]` (`wardkeep config edit`)",
    }
}

/// One question. Whatever is not clearly a yes is a no; nothing where no line came.
fn ask<R: Read + AsFd, W: Write>(
    question: &Question,
    from: &mut R,
    to: &mut W,
    patience: Duration,
    gone: &dyn Fn() -> bool,
) -> Option<Reply> {
    let Question { text, about, always } = question;
    let shown = format!(
        "\r\nwardkeep: {text}\r\nAllow it? [o]nce, for this [s]ession, [a]lways, or [N]o: "
    );
    to.write_all(shown.as_bytes()).and_then(|()| to.flush()).ok()?;
    let typed = line(from, Instant::now() + patience, gone);
    let (reply, said) = match typed.as_deref().map(str::trim) {
        Some("o" | "once") => (Reply::Once, "allowed once".to_owned()),
        Some("s" | "session") => (Reply::Session, "allowed until this ends".to_owned()),
        Some("a" | "always") => {
            (Reply::Always, format!("allowed until this ends; to keep it, {always}"))
        }
        Some(_) => (Reply::No, "denied".to_owned()),
        None => (Reply::No, "no answer: denied".to_owned()),
    };
    let _ = to.write_all(format!("wardkeep: {about}: {said}\r\n").as_bytes());
    typed.map(|_| reply)
}

/// A line, if one comes in time.
fn line<R: Read + AsFd>(from: &mut R, until: Instant, gone: &dyn Fn() -> bool) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|_| !gone())?;
        let left = Timespec::try_from(left.min(PAUSE)).ok()?;
        match poll(&mut [PollFd::new(&*from, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) | Ok(0) => continue,
            Ok(1..) => {}
            Err(_) => return None,
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
        let whole = typed.is_some_and(|typed| typed.ends_with(b"\n"));
        let patience = Duration::from_millis(if whole { 20_000 } else { 50 });
        let reply = ask(&question(&request), &mut from, &mut shown, patience, &|| false);
        (reply.unwrap_or(Reply::No), String::from_utf8(shown).unwrap())
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

    /// Whoever answers one question is not taken at the word for another that was put in its place.
    #[test]
    fn an_answer_to_a_question_that_was_taken_back_counts_for_no_other() {
        let asked = Instant::now();
        counts_for_no_other(&|| asked.elapsed() > Duration::from_millis(50));
    }

    #[test]
    fn an_answer_that_comes_too_late_counts_for_no_other() {
        counts_for_no_other(&|| false);
    }

    fn counts_for_no_other(gone: &dyn Fn() -> bool) {
        use rustix::fs::OFlags;
        use rustix::pty::OpenptFlags;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let near = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&near).unwrap();
        rustix::pty::unlockpt(&near).unwrap();
        let name = rustix::pty::ptsname(&near, Vec::new()).unwrap();
        let far = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, rustix::fs::Mode::empty());
        let far = File::from(far.unwrap());
        let mut near = File::from(near);
        let mut open = Open { from: far.try_clone().unwrap(), to: far, unanswered: false };
        let question = |about: &str| Question {
            text: format!("about {about}."),
            about: about.to_owned(),
            always: "",
        };
        let patience = Duration::from_millis(300);
        assert_eq!(open.ask(&question("one"), patience, gone), Reply::Unanswered);
        let typing = std::thread::spawn(move || {
            let (mut shown, mut piece) = (String::new(), [0; 4096]);
            while !shown.contains("no longer counts") {
                let count = near.read(&mut piece).unwrap();
                shown.push_str(&String::from_utf8_lossy(&piece[..count]));
            }
            // Typed a moment after the next question would have been there.
            near.write_all(b"s\n").unwrap();
            near
        });
        assert_eq!(open.ask(&question("two"), patience, &|| false), Reply::Unanswered);
        drop(open);
        drop(typing.join().unwrap());
    }

    #[test]
    fn the_question_is_harmless_and_names_the_host() {
        let (_, shown) = answered(Some(b"n\n"));
        assert!(shown.contains("no rule names new.example"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
