//! `wardkeep hook`

mod ask;

use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wardkeep_agents::{ANSWERED, Agent, Answer, Event, MAX_BYTES, Output};

use self::ask::Asking;
use crate::context::Context;
use crate::exit::Exit;

/// All that a hook may take, far below what any agent waits: who takes longer is denied here, where
/// the denial counts.
const DEADLINE: Duration = Duration::from_secs(4);

/// How long an answer that is being written may take after that.
const WRITTEN: Duration = Duration::from_secs(1);

/// Enough of a stack to say no.
const WATCH: usize = 128 << 10;

const _: () = assert!(
    Exit::HookAnswered as u8 == ANSWERED && Exit::HookDenied as u8 == wardkeep_agents::DENIED
);

/// Judges an event of an agent: the event comes in on standard input, the answer goes out
///
/// This is what agents call; `wardkeep install` tells them to. The event is read in the agent's own
/// form, asked of the daemon, and answered in the agent's own form, with the exit code that this agent
/// takes for a yes or a no. Without a daemon one is started, or it is decided here. Whatever goes wrong
/// is a no: an event that cannot be read, a daemon that does not answer in time, a journal that cannot
/// be written.
///
/// Where the state lies is told by --state-dir or by whose process it is, never by the environment: the home is
/// the one in the system's list of users, not $HOME.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// The agent: claude-code, codex, gemini-cli, copilot-cli, openclaw, opencode, qwen-code, cline,
    /// cursor or windsurf
    #[arg(value_parser = |text: &str| text.parse::<Agent>())]
    agent: Agent,
    /// The event, as the agent names it, that this is installed for
    event: Option<String>,
    /// Where no daemon runs, decide here without starting one
    #[arg(long)]
    no_daemon: bool,
    /// Exit with 77 where the answer is given and with 78 where it is a no by exit code: `wardkeep
    /// install` puts a shell around the hook that takes everything else, 0 too, for a no
    #[arg(long)]
    guarded: bool,
}

impl Args {
    /// Reads arguments in the form that installers write.
    pub(crate) fn plain(words: &[&str]) -> Option<Self> {
        let (options, words): (Vec<&str>, Vec<&str>) =
            words.iter().partition(|word| word.starts_with('-'));
        let (agent, event) = match words[..] {
            [agent] => (agent, None),
            [agent, event] => (agent, Some(event.to_owned())),
            _ => return None,
        };
        let mut args = Self { agent: agent.parse().ok()?, event, no_daemon: false, guarded: false };
        for option in options {
            let asked = match option {
                "--no-daemon" => &mut args.no_daemon,
                "--guarded" => &mut args.guarded,
                _ => return None,
            };
            // Twice is a mistake, which the long way explains.
            if std::mem::replace(asked, true) {
                return None;
            }
        }
        Some(args)
    }
}

/// Who answers, and that only one does: the work, the deadline, or a panic.
#[derive(Clone)]
struct Mouth {
    agent: Agent,
    hint: Option<Arc<str>>,
    guarded: bool,
    taken: Arc<AtomicBool>,
}

impl Mouth {
    /// Writes the answer and says how to exit; nothing, where another does already.
    fn say(&self, output: Output) -> Option<Exit> {
        if self.taken.swap(true, Ordering::AcqRel) {
            return None;
        }
        let hint = self.hint.as_deref();
        let output = if self.guarded { self.agent.guarded(hint, output) } else { output };
        Some(emit(&output, self.guarded))
    }

    fn refuse(&self, reason: &str) -> Output {
        self.agent.refuse(self.hint.as_deref(), reason)
    }

    /// Sees to it that there is an answer in time, whatever the work is waiting for.
    fn watch(&self, until: Instant) -> std::io::Result<()> {
        let late = self.clone();
        let watch = move || {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            let said = late.say(late.refuse(&too_late()));
            end(said.unwrap_or_else(|| {
                // The answer is being written, to somebody who does not read it.
                std::thread::sleep(WRITTEN);
                Exit::Failed
            }));
        };
        std::thread::Builder::new().stack_size(WATCH).spawn(watch).map(drop)
    }
}

pub(crate) fn run(context: &Context, args: Args) -> Exit {
    let Args { agent, event, no_daemon, guarded } = args;
    let taken = Arc::new(AtomicBool::new(false));
    let until = Instant::now() + DEADLINE;
    let mouth = Mouth { agent, hint: event.map(Into::into), guarded, taken };
    answer_panics(mouth.clone());
    let late = mouth.clone();
    let output = match Asking::new(context, no_daemon, Box::new(move || late.watch(until))) {
        Ok(asking) => decide(agent, mouth.hint.as_deref(), &asking, until),
        Err(error) => mouth.refuse(&format!("{}; {}", error.message, error.hint)),
    };
    mouth.say(output).unwrap_or_else(|| {
        std::thread::sleep(DEADLINE);
        Exit::Failed
    })
}

/// From the event to the answer.
fn decide(agent: Agent, hint: Option<&str>, asking: &Asking, until: Instant) -> Output {
    let refuse = |reason: &str| agent.refuse(hint, reason);
    let read = match input(agent.asks_in_lines(hint), until) {
        Ok(bytes) => agent.read(hint, &bytes, asking.home()).map_err(|error| error.to_string()),
        Err(error) if error.kind() == ErrorKind::TimedOut => return refuse(&too_late()),
        Err(error) => Err(format!("the event cannot be read: {error}")),
    };
    let event: Event = match read {
        Ok(event) => event,
        Err(why) => {
            asking.tell(agent, hint.unwrap_or("unknown"), &why);
            return refuse(&format!("{why}. Run `wardkeep doctor` if this goes on."));
        }
    };
    let Some(question) = event.question() else {
        return agent.write(&event, &Answer::noted(&event));
    };
    match asking.with_findings(question).and_then(|question| asking.ask(&question)) {
        Ok(said) => {
            let answer = Answer::of(&event, &said);
            let open = agent.defer(&event, &answer).filter(|_| asking.defers(agent));
            open.unwrap_or_else(|| agent.write(&event, &answer))
        }
        Err(why) => agent.write(&event, &Answer::deny(format!("denied by wardkeep: {why}"))),
    }
}

fn too_late() -> String {
    format!("there was no answer within {} s", DEADLINE.as_secs())
}

/// More than most events have.
const USUAL_BYTES: usize = 16 << 10;

/// All of standard input, or its first line, up to one byte more than is taken.
fn input(line: bool, until: Instant) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    let mut stdin = BufReader::new(Timely { until }.take(MAX_BYTES as u64 + 1));
    if line { stdin.read_until(b'\n', &mut bytes) } else { stdin.read_to_end(&mut bytes) }?;
    Ok(bytes)
}

/// Standard input, which may never end.
struct Timely {
    until: Instant,
}

impl Read for Timely {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let stdin = rustix::stdio::stdin();
        let left = self.until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(std::io::Error::other)?;
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&left))? {
            0 => Err(ErrorKind::TimedOut.into()),
            _ => Ok(rustix::io::read(stdin, into)?),
        }
    }
}

/// Writes the answer. Where it cannot be written, the exit code has to say it.
fn emit(output: &Output, guarded: bool) -> Exit {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(&output.stdout).and_then(|()| stdout.flush());
    let _ = std::io::stderr().write_all(&output.stderr);
    match (written, guarded) {
        (Ok(()), true) => match output.guarded_code() {
            Some(ANSWERED) => Exit::HookAnswered,
            Some(_) => Exit::HookDenied,
            None => Exit::Failed,
        },
        (Ok(()), false) if output.code == 0 => Exit::Success,
        _ => Exit::Failed,
    }
}

/// A panic is a denial, too. Release builds abort on one, and agents take that for a hook that has
/// nothing to say: this runs before.
fn answer_panics(mouth: Mouth) {
    std::panic::set_hook(Box::new(move |_| {
        let said = mouth.say(mouth.refuse("something went wrong inside of wardkeep"));
        end(said.unwrap_or(Exit::Failed));
    }));
}

#[expect(clippy::exit, reason = "nothing else may run after a panic or the deadline")]
fn end(exit: Exit) {
    std::process::exit(exit.code().into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_installers_is_read() {
        let args = Args::plain(&["codex", "PreToolUse", "--guarded"]).unwrap();
        assert_eq!((args.agent, args.event.as_deref()), (Agent::Codex, Some("PreToolUse")));
        assert!(args.guarded && !args.no_daemon);
        let args = Args::plain(&["--no-daemon", "cline"]).unwrap();
        assert!(args.no_daemon && args.event.is_none());
    }

    #[test]
    fn every_other_form_is_left_to_the_long_way() {
        for words in [
            &[][..],
            &["nobody"],
            &["codex", "a", "b"],
            &["codex", "--json"],
            &["codex", "--guarded", "--guarded"],
            &["codex", "--", "PreToolUse"],
            &["codex", "--help"],
            &["codex", "-h"],
        ] {
            assert!(Args::plain(words).is_none(), "{words:?}");
        }
    }
}
