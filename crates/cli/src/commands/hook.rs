//! `wardkeep hook`

mod ask;

use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::mpsc;
use std::time::Duration;

use wardkeep_agents::{ANSWERED, Agent, Answer, Event, MAX_BYTES, Output};

use self::ask::{Asking, Told};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// All that a hook may take, far below what any agent waits: who takes longer is denied here, where
/// the denial counts.
const DEADLINE: Duration = Duration::from_secs(4);

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
/// Where the state lies is told by --state-dir or by whose process it is, never by the environment.
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

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let Args { agent, event: hint, no_daemon, guarded } = args;
    answer_panics(agent, hint.clone(), guarded);
    let refuse = |reason: &str| agent.refuse(hint.as_deref(), reason);
    let asking = Asking::new(context, no_daemon);
    let (send, receive) = mpsc::channel();
    let name = hint.clone();
    let work = move || {
        // Nobody listens any more after the deadline.
        let _ = send.send(decide(agent, name.as_deref(), asking));
    };
    let output = match std::thread::Builder::new().spawn(work) {
        Err(error) => refuse(&format!("no thread could be started ({error})")),
        Ok(_) => match receive.recv_timeout(DEADLINE) {
            Ok(output) => output,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                refuse(&format!("there was no answer within {} s", DEADLINE.as_secs()))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                refuse("something went wrong inside of wardkeep")
            }
        },
    };
    let output = if guarded { agent.guarded(hint.as_deref(), output) } else { output };
    Ok(emit(&output, guarded))
}

/// From the event to the answer.
fn decide(agent: Agent, hint: Option<&str>, asking: Result<Asking, CliError>) -> Output {
    let refuse = |reason: &str| agent.refuse(hint, reason);
    let asking = match asking {
        Ok(asking) => asking,
        Err(error) => return refuse(&format!("{}; {}", error.message, error.hint)),
    };
    let read = input(agent.asks_in_lines(hint)).and_then(|bytes| {
        agent.read(hint, &bytes, asking.home()).map_err(|error| error.to_string())
    });
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
    match asking.ask(&asking.with_findings(question)) {
        Told::Answer(said) => {
            let answer = Answer::of(&event, &said);
            let open = agent.defer(&event, &answer).filter(|_| asking.defers(agent));
            open.unwrap_or_else(|| agent.write(&event, &answer))
        }
        Told::Nothing(why) => {
            agent.write(&event, &Answer::deny(format!("denied by wardkeep: {why}")))
        }
    }
}

/// All of standard input, or its first line, up to one byte more than is taken.
fn input(line: bool) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(MAX_BYTES as u64 + 1);
    let read =
        if line { stdin.read_until(b'\n', &mut bytes) } else { stdin.read_to_end(&mut bytes) };
    read.map_err(|error| format!("the event cannot be read: {error}"))?;
    Ok(bytes)
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
fn answer_panics(agent: Agent, hint: Option<String>, guarded: bool) {
    std::panic::set_hook(Box::new(move |_| {
        let output = agent.refuse(hint.as_deref(), "something went wrong inside of wardkeep");
        let exit = emit(&output, guarded);
        end(exit);
    }));
}

#[expect(clippy::exit, reason = "nothing else may run after a panic")]
fn end(exit: Exit) {
    std::process::exit(exit.code().into());
}
