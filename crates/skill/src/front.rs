//! What a skill says about itself: the settings at its beginning, and the files that say how it is installed.

use serde_json::Value;

/// What a skill says about itself.
#[derive(Debug, Default)]
pub(super) struct Front {
    pub(super) name: Option<String>,
    pub(super) description: String,
    /// Commands that installing it runs, and the first words of where they stand.
    pub(super) commands: Vec<(String, String)>,
    /// The tools that it says it needs, as they are written, in lower case.
    pub(super) tools: Option<String>,
}

/// Reads `key: value` lines; what is deeper is looked at for commands only.
pub(super) fn read(text: &str) -> Front {
    let mut front = Front::default();
    for line in text.lines().take(2000) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let top = !line.starts_with([' ', '\t', '-']);
        let key = key.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
        let value = value.trim();
        let plain = value.trim_matches(['"', '\'']);
        match key {
            "name" if top && front.name.is_none() => front.name = Some(plain.to_owned()),
            "description" if top => front.description.push_str(plain),
            "allowed-tools" | "allowed_tools" | "tools" | "permissions" | "requires" => {
                let tools = front.tools.get_or_insert_default();
                tools.push_str(&format!("{plain}\n{}", below(text, line)).to_lowercase());
            }
            _ if is_command(key)
                && !plain.is_empty()
                && !plain.starts_with(['{', '[', '|', '>']) =>
            {
                front.commands.push((plain.to_owned(), line.trim().to_owned()));
            }
            _ => {}
        }
        if is_command(key) && matches!(value, "|" | ">" | "|-" | ">-" | "|+") {
            let block = below(text, line);
            front.commands.push((block, line.trim().to_owned()));
        }
        if value.starts_with(['{', '['])
            && let Ok(json) = serde_json::from_str::<Value>(value)
        {
            commands(&json, "", &mut front.commands, 0);
        }
    }
    front
}

/// The lines below one that are indented further: a text of several lines.
pub(super) fn below(text: &str, line: &str) -> String {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let start = (line.as_ptr() as usize).saturating_sub(text.as_ptr() as usize) + line.len();
    let rest = text.get(start..).unwrap_or_default();
    let lines =
        rest.lines().skip(1).take_while(|next| next.trim().is_empty() || depth(next) > depth(line));
    lines.map(|next| format!("{}\n", next.trim_start())).collect()
}

/// Commands in a JSON file, by the names of their keys.
pub(super) fn json(text: &str) -> (Option<Value>, Vec<(String, String)>) {
    let mut out = Vec::new();
    let value: Option<Value> = serde_json::from_str(text).ok();
    if let Some(value) = &value {
        commands(value, "", &mut out, 0);
    }
    (value, out)
}

fn is_command(key: &str) -> bool {
    matches!(
        key,
        "command"
            | "cmd"
            | "run"
            | "shell"
            | "script"
            | "preinstall"
            | "install"
            | "postinstall"
            | "prepare"
            | "prepublish"
            | "exec"
            | "onInstall"
            | "setup"
            | "postInstall"
            | "preInstall"
            | "entrypoint"
    )
}

fn commands(value: &Value, key: &str, out: &mut Vec<(String, String)>, depth: usize) {
    if depth > 32 || out.len() > 200 {
        return;
    }
    match value {
        Value::String(text) if is_command(key) => out.push((text.clone(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| commands(item, key, out, depth + 1)),
        Value::Object(members) => {
            // `{"command": "bash", "args": ["-c", "…"]}`.
            let command = members.get("command").and_then(Value::as_str);
            if let (Some(command), Some(Value::Array(args))) = (command, members.get("args")) {
                let words: Vec<String> = args
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
                    .collect();
                out.push((format!("{command} {}", words.join(" ")), command.to_owned()));
            }
            members.iter().for_each(|(key, item)| commands(item, key, out, depth + 1));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_commands() {
        let front = read(
            "name: \"a\"\ndescription: does b\nmetadata: {\"x\":{\"install\":[{\"kind\":\"shell\",\"command\":\"curl a | sh\"}]}}\nhooks:\n  postinstall: ./x.sh\n  run: |\n    curl b\n    id\n",
        );
        assert_eq!(front.name.as_deref(), Some("a"));
        assert_eq!(front.tools, None);
        let tools =
            read("name: a\nallowed-tools:\n  - Read\n  - Grep\nlicense: x\n").tools.unwrap();
        assert!(tools.contains("read") && tools.contains("grep") && !tools.contains("license"));
        let found: Vec<&str> = front.commands.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(found, ["curl a | sh", "./x.sh", "curl b\nid\n"]);
        let (_, found) = json(
            r#"{"scripts":{"postinstall":"node x.js","test":"y"},"mcp":{"command":"sh","args":["-c","id"]}}"#,
        );
        let found: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
        assert!(
            found.contains(&"node x.js")
                && found.contains(&"sh '-c' 'id'")
                && !found.contains(&"y")
        );
    }
}
