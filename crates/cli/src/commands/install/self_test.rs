//! The trial: the command that an agent was told to run, with a call that must be blocked and one
//! that must not.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use wardkeep_agents::install::Plan;
use wardkeep_agents::install::trial::{self, Verdict};
use wardkeep_monitor::monitor::{TRIAL, begin_trial, end_trial};

use crate::context::Context;

/// Runs the trial.
///
/// # Errors
/// In words, what was not as it must be.
pub(in crate::commands) fn run(context: &mut Context, plan: &Plan) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for it ({error})"))?;
    let folder = folder.path();
    let id: [u8; 8] = context.random().map_err(|error| error.message)?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let session = format!("{TRIAL}{id}");
    let name = format!("{}:{session}", plan.agent.name());
    // Where it cannot be written down, the trial is told of as if it were an agent's.
    let marks = context.open_store().is_ok_and(|store| begin_trial(&store, &name).is_ok());
    let answered = answered(plan, &session, folder);
    if marks && let Ok(store) = context.open_store() {
        let _ = end_trial(&store, &name);
    }
    answered
}

fn answered(plan: &Plan, session: &str, folder: &Path) -> Result<(), String> {
    let ask = |command: &str| {
        let (name, event) = trial::event(plan.agent, session, folder, command)
            .ok_or("it is not known how to try it")?;
        let command = plan.commands.iter().find(|command| command.event == name);
        let command = command.ok_or("no hook is asked before a call")?;
        ask(plan, &command.words, folder, &event.to_string())
    };
    match ask("true")? {
        (Verdict::Yes, _) => {}
        (Verdict::No(why), _) => return Err(format!("a harmless call was denied: {why}")),
        (Verdict::Unclear, said) => {
            return Err(format!("a harmless call was answered in a form that is none: {said}"));
        }
    }
    match ask("echo changed > LocalGPT.md")? {
        (Verdict::No(why), _) if !why.is_empty() => Ok(()),
        (_, said) => Err(format!("a write to LocalGPT.md was not blocked: {said}")),
    }
}

fn ask(
    plan: &Plan,
    words: &[String],
    folder: &Path,
    event: &str,
) -> Result<(Verdict, String), String> {
    let (program, arguments) = words.split_first().ok_or("there is no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{program}` cannot be started ({error})"))?;
    if let Some(mut input) = child.stdin.take() {
        // One that ends early says so by its exit code.
        let _ = input.write_all(event.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("it did not end ({error})"))?;
    let code = output.status.code();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let said = format!("exit code {code:?} {} {}", text(&output.stdout), text(&output.stderr));
    Ok((trial::verdict(plan.agent, code, &output.stdout, &output.stderr), said))
}
