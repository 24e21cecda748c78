//! The trial: the command that an agent was told to run, with a call that must be blocked and one
//! that must not.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::context::Context;

/// Runs the trial.
///
/// # Errors
/// In words, what was not as it must be.
pub(in crate::commands) fn run(
    context: &mut Context,
    words: &[String],
    event: &str,
) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for it ({error})"))?;
    let id: [u8; 8] = context.random().map_err(|error| error.message)?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let call = |command: &str| {
        json!({
            "session_id": format!("self-test-{id}"),
            "transcript_path": null,
            "cwd": folder.path(),
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": { "command": command },
        })
        .to_string()
    };
    let (code, said) = ask(words, folder.path(), &call("true"))?;
    if code != Some(0) {
        return Err(format!("a harmless call was denied: {said}"));
    }
    let (code, said) = ask(words, folder.path(), &call("echo changed > LocalGPT.md"))?;
    if code != Some(2) || said.is_empty() {
        return Err(format!("a write to LocalGPT.md was not blocked (exit code {code:?}) {said}"));
    }
    Ok(())
}

fn ask(words: &[String], folder: &Path, event: &str) -> Result<(Option<i32>, String), String> {
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
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok((output.status.code(), said))
}
