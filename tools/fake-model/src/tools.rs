//! The tool on offer that does a step, and its arguments as that tool wants them.

use serde_json::{Map, Value, json};

use crate::script::Step;

/// A tool as an agent offers it.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// JSON schema of its arguments; null where the tool takes plain text.
    pub(crate) schema: Value,
    pub(crate) takes: Takes,
}

/// How a tool is told what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Object,
    Text,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Input,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Object(Value),
    Text(String),
}

/// Names under which agents offer a tool for it, the best first.
const SHELLS: &[&str] = &[
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "exec",
    "execute_command",
    "run_command",
    "run_commands",
    "run_terminal_cmd",
    "terminal",
];
const WRITERS: &[&str] = &[
    "write",
    "write_file",
    "write_to_file",
    "create",
    "create_file",
    "edit_file",
    "editor",
    "str_replace_editor",
    "apply_patch",
];
const READERS: &[&str] =
    &["read", "read_file", "read_files", "view", "view_file", "str_replace_editor", "editor"];

const COMMANDS: &[&str] = &["command", "cmd", "commands", "script"];
const PATHS: &[&str] =
    &["file_path", "path", "filePath", "absolute_path", "target_file", "file", "paths", "files"];
const CONTENTS: &[&str] =
    &["content", "contents", "file_text", "text", "new_text", "new_str", "code_edit"];

/// The call that does this step with one of these tools; none where no tool fits. A file that no
/// tool reads is read by a command.
pub(crate) fn call(step: &Step, tools: &[Tool], number: usize) -> Option<Call> {
    direct(step, tools, number).or_else(|| match step {
        Step::Read(path) => {
            let command = format!("cat '{}'", path.replace('\'', r"'\''"));
            direct(&Step::Run(command), tools, number)
        }
        _ => None,
    })
}

fn direct(step: &Step, tools: &[Tool], number: usize) -> Option<Call> {
    let names = match step {
        Step::Run(_) => SHELLS,
        Step::Read(_) => READERS,
        Step::Write { .. } => WRITERS,
    };
    let tool = names
        .iter()
        .find_map(|name| tools.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)))?;
    let input = match tool.takes {
        Takes::Text => Input::Text(plain(step)),
        Takes::Object => Input::Object(arguments(step, &tool.schema)),
    };
    Some(Call { id: format!("call_{number:08}"), name: tool.name.clone(), input })
}

fn plain(step: &Step) -> String {
    match step {
        Step::Run(command) => command.clone(),
        Step::Read(path) => path.clone(),
        Step::Write { path, content } => patch(path, content),
    }
}

/// A patch that adds a file, as tools named `apply_patch` read it.
fn patch(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

fn arguments(step: &Step, schema: &Value) -> Value {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array();
    let required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    let mut given = Map::new();
    for (name, property) in properties {
        let value = match meaning(step, name, property) {
            Some(text) => shaped(step, name, property, text),
            None if required(name) => filler(step, property),
            None => continue,
        };
        given.insert(name.clone(), value);
    }
    if given.is_empty() {
        given = match step {
            Step::Run(command) => Map::from_iter([("command".to_owned(), json!(command))]),
            Step::Read(path) => Map::from_iter([("path".to_owned(), json!(path))]),
            Step::Write { path, content } => Map::from_iter([
                ("path".to_owned(), json!(path)),
                ("content".to_owned(), json!(content)),
            ]),
        };
    }
    Value::Object(given)
}

/// What of the step this property stands for.
fn meaning(step: &Step, name: &str, property: &Value) -> Option<String> {
    let verb = property.get("enum").is_some();
    match step {
        Step::Run(command) => (COMMANDS.contains(&name) && !verb).then(|| command.clone()),
        Step::Read(path) => PATHS.contains(&name).then(|| path.clone()),
        Step::Write { path, content } => match name {
            _ if PATHS.contains(&name) => Some(path.clone()),
            _ if CONTENTS.contains(&name) => Some(content.clone()),
            "input" | "patch" => Some(patch(path, content)),
            _ => None,
        },
    }
}

fn shaped(step: &Step, name: &str, property: &Value, text: String) -> Value {
    if kind(property) != "array" {
        return Value::String(text);
    }
    let item = &property["items"];
    match step {
        // A list under the name `command` is the words of one command; `commands` is several.
        Step::Run(_) if name == "command" || name == "cmd" => json!(["bash", "-lc", text]),
        _ if kind(item) == "object" => json!([arguments(step, item)]),
        _ => json!([text]),
    }
}

/// Something the schema accepts for a property that means nothing to the step.
fn filler(step: &Step, property: &Value) -> Value {
    if let Some(choices) = property["enum"].as_array() {
        let verbs: &[&str] = match step {
            Step::Run(_) => &["sync", "run"],
            Step::Read(_) => &["view", "read"],
            Step::Write { .. } => &["create", "write"],
        };
        let wanted =
            choices.iter().find(|one| one.as_str().is_some_and(|word| verbs.contains(&word)));
        return wanted.or(choices.first()).cloned().unwrap_or_default();
    }
    match kind(property).as_str() {
        "boolean" => json!(false),
        "number" | "integer" => json!(1),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("asked for by the test"),
    }
}

/// The type of a schema in small letters, as one wire writes them large and another as a list.
fn kind(schema: &Value) -> String {
    let named = match &schema["type"] {
        Value::Array(several) => several.iter().find(|one| *one != "null").unwrap_or(&Value::Null),
        one => one,
    };
    if let Some(name) = named.as_str() {
        return name.to_ascii_lowercase();
    }
    let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    choices
        .and_then(|choices| choices.iter().find_map(|one| one["type"].as_str()))
        .unwrap_or("string")
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        Tool { name: name.to_owned(), schema, takes: Takes::Object }
    }

    fn object(step: &Step, tools: &[Tool]) -> (String, Value) {
        let call = call(step, tools, 1).unwrap();
        match call.input {
            Input::Object(value) => (call.name, value),
            Input::Text(text) => panic!("text: {text}"),
        }
    }

    #[test]
    fn a_command_takes_the_shape_the_shell_tool_wants() {
        let run = Step::Run("ls".to_owned());
        let string = json!({"properties": {"command": {"type": "string"}, "why": {"type": "string"}},
            "required": ["command", "why"]});
        let (name, given) = object(&run, &[tool("Read", json!({})), tool("Bash", string)]);
        assert_eq!(name, "Bash");
        assert_eq!(given, json!({"command": "ls", "why": "asked for by the test"}));

        let list = json!({"properties": {"command": {"type": "array"}}});
        assert_eq!(object(&run, &[tool("shell", list)]).1["command"][2], "ls");
        let several =
            json!({"properties": {"commands": {"type": "ARRAY", "items": {"type": "STRING"}}}});
        assert_eq!(object(&run, &[tool("run_commands", several)]).1, json!({"commands": ["ls"]}));
        assert_eq!(object(&run, &[tool("bash", Value::Null)]).1, json!({"command": "ls"}));
    }

    #[test]
    fn a_file_is_written_by_whatever_tool_writes() {
        let write = Step::Write { path: "a".to_owned(), content: "one\ntwo".to_owned() };
        let schema =
            json!({"properties": {"file_path": {}, "content": {}, "mode": {"enum": ["x"]}}});
        let (_, given) = object(&write, &[tool("write_file", schema)]);
        assert_eq!(given, json!({"file_path": "a", "content": "one\ntwo"}));

        let schema = json!({"properties": {"command": {"enum": ["view", "create"]}, "path": {},
            "file_text": {}}, "required": ["command", "path"]});
        let (_, given) = object(&write, &[tool("str_replace_editor", schema)]);
        assert_eq!(given["command"], "create");

        let patcher =
            Tool { name: "apply_patch".to_owned(), schema: Value::Null, takes: Takes::Text };
        let Some(Call { input: Input::Text(text), .. }) = call(&write, &[patcher], 1) else {
            panic!("no text")
        };
        assert!(text.contains("*** Add File: a\n+one\n+two\n*** End"), "{text}");
    }

    #[test]
    fn no_tool_no_call() {
        let tools = [tool("Task", json!({}))];
        assert_eq!(call(&Step::Read("a".to_owned()), &tools, 1), None);
    }

    #[test]
    fn where_no_tool_reads_a_command_does() {
        let read = Step::Read("it's".to_owned());
        let (name, given) = object(&read, &[tool("exec", Value::Null)]);
        assert_eq!(name, "exec");
        assert_eq!(given, json!({"command": r"cat 'it'\''s'"}));
    }
}
