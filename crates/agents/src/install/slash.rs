//! `/prove`, where an agent has commands of its user's own: a file that says what to run.

use std::path::{Path, PathBuf};

use super::{Change, Result, Surroundings, files, guard, plugin};
use crate::agent::Agent;

/// By this a file of ours is known.
const MARK: &str = "Written by `wardkeep install`.";
const DESCRIPTION: &str = "What wardkeep has blocked, what is at risk, and what to do";

/// The file, where there is a place for it and nobody else's is there.
pub(super) fn change(agent: Agent, around: &Surroundings) -> Result<Option<Change>> {
    let Some((path, markdown)) = place(agent, around) else { return Ok(None) };
    let before = files::read(&path)?;
    let foreign = before.as_ref().is_some_and(|bytes| !is_ours(bytes));
    let after = text(markdown, agent, around).into_bytes();
    Ok((!foreign).then_some(Change { path, before, after }))
}

/// Whether a file is such a one of ours.
pub(super) fn is_file(path: &Path, bytes: &[u8]) -> bool {
    path.file_stem().is_some_and(|name| name == "prove") && is_ours(bytes)
}

fn is_ours(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains(MARK)
}

/// Where commands of the user's own lie, and whether they are Markdown.
fn place(agent: Agent, around: &Surroundings) -> Option<(PathBuf, bool)> {
    if around.machine.is_some() {
        return None;
    }
    let (path, markdown) = match agent {
        Agent::ClaudeCode => (".claude/commands/prove.md", true),
        Agent::GeminiCli => (".gemini/commands/prove.toml", false),
        Agent::QwenCode => (".qwen/commands/prove.toml", false),
        Agent::OpenCode => (".config/opencode/command/prove.md", true),
        _ => return None,
    };
    Some((around.home.join(path), markdown))
}

fn text(markdown: bool, agent: Agent, around: &Surroundings) -> String {
    let mut words = plugin::words(agent, None, around);
    words.push("prove".to_owned());
    let command = guard::quoted(&words);
    let prompt = format!(
        "Run exactly this command, once, and show me all that it prints, unchanged. Do nothing that it \
         proposes by yourself; tell me what it says that I should do.\n\n    {command}\n"
    );
    if markdown {
        format!("---\ndescription: {DESCRIPTION}\n---\n<!-- {MARK} -->\n{prompt}")
    } else {
        let prompt = prompt.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
        format!("# {MARK}\ndescription = \"{DESCRIPTION}\"\nprompt = \"\"\"\n{prompt}\"\"\"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(folder: &Path) -> Surroundings {
        Surroundings {
            home: folder.to_owned(),
            machine: None,
            program: "/opt/a \"\"\" b\\c/wardkeep".into(),
            state: folder.join("state"),
        }
    }

    #[test]
    fn what_is_written_can_be_read_and_what_is_someone_elses_stays() {
        let folder = tempfile::tempdir().unwrap();
        let around = around(folder.path());
        for agent in [Agent::ClaudeCode, Agent::GeminiCli, Agent::QwenCode, Agent::OpenCode] {
            let made = change(agent, &around).unwrap().unwrap();
            assert!(is_file(&made.path, &made.after) && made.before.is_none());
            let text = String::from_utf8(made.after).unwrap();
            if made.path.extension().is_some_and(|end| end == "toml") {
                let read: toml_edit::DocumentMut = text.parse().unwrap();
                let prompt = read["prompt"].as_str().unwrap();
                assert!(prompt.contains("'/opt/a \"\"\" b\\c/wardkeep'"), "{prompt}");
            }
            std::fs::create_dir_all(made.path.parent().unwrap()).unwrap();
            std::fs::write(&made.path, "my own").unwrap();
            assert!(change(agent, &around).unwrap().is_none());
        }
        assert!(change(Agent::Codex, &around).unwrap().is_none());
        let machine = Surroundings { machine: Some("/etc".into()), ..around };
        assert!(change(Agent::ClaudeCode, &machine).unwrap().is_none());
    }
}
