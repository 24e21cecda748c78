//! The rules that the real servers enforce: order, roles, ids, forms. What breaks one is refused.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::wire::Wire;

/// What a rule says that was broken.
pub type Broken = String;

/// Checks a request by its path; paths that ask for no turn have no rules.
///
/// # Errors
/// When the server of that API would refuse it.
pub fn check(path: &str, body: &Value) -> Result<(), Broken> {
    let Some(wire) = Wire::of(path) else { return Ok(()) };
    let Value::Object(body) = body else { return Err("the body is no object".to_owned()) };
    match wire {
        Wire::Anthropic => anthropic(body),
        Wire::Chat => chat(body, true),
        Wire::Responses => responses(body),
        Wire::Gemini => gemini(body),
        Wire::Ollama => chat(body, false),
    }
}

type Checked = Result<(), Broken>;

fn broken<T>(why: impl Into<String>) -> Result<T, Broken> {
    Err(why.into())
}

fn list<'v>(body: &'v Map<String, Value>, name: &str) -> Result<&'v Vec<Value>, Broken> {
    match body.get(name) {
        Some(Value::Array(items)) if !items.is_empty() => Ok(items),
        Some(Value::Array(_)) => broken(format!("{name}: at least one is needed")),
        _ => broken(format!("{name}: must be a list")),
    }
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Broken> {
    value[name].as_str().ok_or_else(|| format!("{name}: must be a string"))
}

fn anthropic(body: &Map<String, Value>) -> Checked {
    if !body.get("model").is_some_and(Value::is_string) {
        return broken("model: field required");
    }
    if body.get("max_tokens").and_then(Value::as_u64).is_none_or(|count| count == 0) {
        return broken("max_tokens: field required");
    }
    if count_marks(&Value::Object(body.clone())) > 4 {
        return broken("a maximum of 4 blocks with cache_control may be provided");
    }
    let messages = list(body, "messages")?;
    if messages[0]["role"] != "user" {
        return broken("messages: first message must use the \"user\" role");
    }
    // Neighbours of one role count as one message.
    let mut open: HashSet<String> = HashSet::new();
    let mut own: HashSet<String> = HashSet::new();
    let mut role_before = "";
    let mut seen_other = false;
    for (number, message) in messages.iter().enumerate() {
        let at = |why: &str| Err(format!("messages.{number}: {why}"));
        let role = text(message, "role")?;
        if !matches!(role, "user" | "assistant") {
            return at("role must be user or assistant");
        }
        if role != role_before {
            if role == "assistant" && !open.is_empty() {
                return at(
                    "`tool_use` ids were found without `tool_result` blocks immediately after",
                );
            }
            seen_other = false;
        }
        role_before = role;
        let blocks = match &message["content"] {
            Value::String(said) if said.is_empty() => return at("content must not be empty"),
            Value::String(_) => {
                if !open.is_empty() {
                    return at(
                        "`tool_use` ids were found without `tool_result` blocks immediately after",
                    );
                }
                continue;
            }
            Value::Array(blocks) if !blocks.is_empty() => blocks,
            _ => return at("content must be a string or a list that is not empty"),
        };
        for block in blocks {
            match text(block, "type")? {
                "text" => {
                    if text(block, "text")?.trim().is_empty() {
                        return at("text content blocks must contain non-whitespace text");
                    }
                    if role == "user" && !open.is_empty() {
                        return at("tool_result blocks must come first, and for every tool_use");
                    }
                    seen_other = true;
                }
                "tool_result" => {
                    if role != "user" {
                        return at("tool_result blocks belong into user messages");
                    }
                    if seen_other {
                        return at("tool_result blocks must come first");
                    }
                    if !open.remove(text(block, "tool_use_id")?) {
                        return at(
                            "unexpected `tool_use_id`: no such `tool_use` in the previous message",
                        );
                    }
                    anthropic_result(&block["content"])?;
                }
                "tool_use" => {
                    if role != "assistant" || !block["input"].is_object() {
                        return at(
                            "tool_use blocks belong into assistant messages and have an input",
                        );
                    }
                    let id = text(block, "id")?;
                    if id.is_empty()
                        || !id
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
                    {
                        return at("tool_use.id must match ^[a-zA-Z0-9_-]+$");
                    }
                    if !open.insert(id.to_owned()) {
                        return at("tool_use ids must be unique");
                    }
                }
                "thinking" | "redacted_thinking" if role == "assistant" => {}
                // The provider's own tools: a call, and its result in the same turn.
                "server_tool_use" | "mcp_tool_use" if role == "assistant" => {
                    if !block["input"].is_object() {
                        return at("server_tool_use blocks have an input");
                    }
                    own.insert(text(block, "id")?.to_owned());
                }
                kind if role == "assistant" && kind.ends_with("_tool_result") => {
                    if !own.remove(text(block, "tool_use_id")?) {
                        return at("unexpected `tool_use_id`: no such `server_tool_use`");
                    }
                }
                "image" | "document" | "search_result" if role == "user" => seen_other = true,
                other => return at(&format!("`{other}` is not allowed here")),
            }
        }
    }
    if !open.is_empty() {
        return broken("`tool_use` ids were found without `tool_result` blocks immediately after");
    }
    Ok(())
}

fn anthropic_result(content: &Value) -> Checked {
    match content {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(blocks) => {
            for block in blocks {
                match text(block, "type")? {
                    "text" if text(block, "text")?.is_empty() => {
                        return broken("tool_result: empty text");
                    }
                    "text" | "image" | "document" | "search_result" => {}
                    other => return broken(format!("tool_result: `{other}` is not allowed")),
                }
            }
            Ok(())
        }
        _ => broken("tool_result: content must be a string or a list"),
    }
}

fn count_marks(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_marks).sum(),
        Value::Object(members) => {
            members
                .iter()
                .map(|(name, member)| {
                    if name == "cache_control" && !member.is_null() {
                        1
                    } else {
                        count_marks(member)
                    }
                })
                .sum()
        }
        _ => 0,
    }
}

/// Chat Completions; without ids (`with_ids`) as Ollama has it.
fn chat(body: &Map<String, Value>, with_ids: bool) -> Checked {
    if !body.get("model").is_some_and(Value::is_string) {
        return broken("you must provide a model parameter");
    }
    let mut open: Vec<String> = Vec::new();
    let mut answers = false;
    for (number, message) in list(body, "messages")?.iter().enumerate() {
        let at = |why: &str| Err(format!("messages[{number}]: {why}"));
        let role = text(message, "role")?;
        if role == "tool" {
            if !answers {
                return at(
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
                );
            }
            if with_ids {
                let id = text(message, "tool_call_id")?;
                let Some(place) = open.iter().position(|one| one == id) else {
                    return at("tool_call_id answers no open call");
                };
                open.remove(place);
            }
            content(&message["content"], with_ids, false).or_else(|why| at(&why))?;
            continue;
        }
        if !open.is_empty() {
            return at(
                "an assistant message with 'tool_calls' must be followed by tool messages for each id",
            );
        }
        answers = false;
        match role {
            "assistant" => {
                let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
                for call in
                    calls.into_iter().flat_map(|calls| calls.as_array().into_iter().flatten())
                {
                    if with_ids && call["type"] == "custom" {
                        text(&call["custom"], "name")?;
                        text(&call["custom"], "input")?;
                        open.push(text(call, "id")?.to_owned());
                        answers = true;
                        continue;
                    }
                    text(&call["function"], "name")?;
                    if with_ids {
                        text(&call["function"], "arguments")?;
                        open.push(text(call, "id")?.to_owned());
                    } else if !call["function"]["arguments"].is_object() {
                        return at("arguments must be an object");
                    }
                    answers = true;
                }
                if calls.is_some() && !answers {
                    return at("tool_calls: at least one is needed");
                }
                content(&message["content"], with_ids, answers).or_else(|why| at(&why))?;
            }
            "user" | "system" | "developer" => {
                content(&message["content"], with_ids, false).or_else(|why| at(&why))?;
            }
            _ => return at("unknown role"),
        }
    }
    if open.is_empty() { Ok(()) } else { broken("the last tool_calls are not answered") }
}

fn content(value: &Value, lists: bool, may_be_null: bool) -> Checked {
    match value {
        Value::String(_) => Ok(()),
        Value::Null if may_be_null => Ok(()),
        Value::Array(parts) if lists && !parts.is_empty() => {
            for part in parts {
                text(part, "type")?;
            }
            Ok(())
        }
        _ => broken("content must be a string or a list of parts"),
    }
}

fn responses(body: &Map<String, Value>) -> Checked {
    if !body.get("model").is_some_and(Value::is_string) {
        return broken("you must provide a model parameter");
    }
    let items = match body.get("input") {
        Some(Value::String(_)) => return Ok(()),
        _ => list(body, "input")?,
    };
    let state = body.get("previous_response_id").is_some_and(Value::is_string);
    let (mut open, mut known): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
    for (number, item) in items.iter().enumerate() {
        let at = |why: &str| Err(format!("input[{number}]: {why}"));
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                let role = text(item, "role")?;
                if !matches!(role, "user" | "assistant" | "system" | "developer") {
                    return at("unknown role");
                }
                let wanted = if role == "assistant" { "output_text" } else { "input_text" };
                match &item["content"] {
                    Value::String(_) => {}
                    Value::Array(parts) if !parts.is_empty() => {
                        for part in parts {
                            let kind = text(part, "type")?;
                            if kind != wanted
                                && !matches!(kind, "input_image" | "input_file" | "refusal")
                            {
                                return at(&format!("`{kind}` is not supported for role {role}"));
                            }
                            if kind == wanted {
                                text(part, "text")?;
                            }
                        }
                    }
                    _ => return at("content must be a string or a list"),
                }
            }
            "function_call" | "custom_tool_call" => {
                text(item, "name")?;
                let id = text(item, "call_id")?;
                if !known.insert(id) {
                    return at("call_id is not unique");
                }
                open.insert(id);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = text(item, "call_id")?;
                if !open.remove(id) && !state {
                    return at(&format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
                match &item["output"] {
                    Value::String(_) => {}
                    Value::Array(parts) => {
                        for part in parts {
                            text(part, "type")?;
                        }
                    }
                    _ => return at("output must be a string or a list"),
                }
            }
            "reasoning" => {}
            other => return at(&format!("`{other}` is not known here")),
        }
    }
    match open.iter().next() {
        Some(id) => broken(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

fn gemini(body: &Map<String, Value>) -> Checked {
    let contents = list(body, "contents")?;
    let mut calls = 0;
    let mut role_before = "";
    for (number, content) in contents.iter().enumerate() {
        let at = |why: &str| Err(format!("contents[{number}]: {why}"));
        let role = content["role"].as_str().unwrap_or("user");
        if !matches!(role, "user" | "model") {
            return at("please use a valid role: user, model");
        }
        // Neighbours of one role are taken, as Gemini CLI itself sends them: words of the user behind their tool
        // results, and two turns of the model when it has a summary checked. A call has to follow the user.
        let again = role == role_before;
        role_before = role;
        let Value::Array(parts) = &content["parts"] else { return at("parts: must be a list") };
        if parts.is_empty() {
            return at("parts: must not be empty");
        }
        let (mut given, mut asked) = (0, 0);
        // Gemini CLI sends a response twice when it goes on with an old session.
        let mut ids: HashSet<&str> = HashSet::new();
        for part in parts {
            let Value::Object(part) = part else { return at("a part must be an object") };
            let data = ["text", "functionCall", "functionResponse", "inlineData", "fileData"];
            if part.keys().filter(|name| data.contains(&name.as_str())).count() != 1 {
                return at("required oneof field 'data' must have one initialized field");
            }
            let id = part.get("functionResponse").and_then(|response| response["id"].as_str());
            let twice = id.is_some_and(|id| !ids.insert(id));
            given += usize::from(part.contains_key("functionResponse") && !twice);
            asked += usize::from(part.contains_key("functionCall"));
            if let Some(response) = part.get("functionResponse")
                && !response["response"].is_object()
            {
                return at("functionResponse.response must be an object");
            }
        }
        if role == "user" && given != calls || role == "model" && given > 0 {
            return at(
                "please ensure that the number of function response parts is equal to the number of function call parts of the function call turn",
            );
        }
        if role == "user" && asked > 0 {
            return at("function calls belong to the model");
        }
        if role == "model" && asked > 0 && (again || number == 0) {
            return at(
                "please ensure that function call turn comes immediately after a user turn or after a function response turn",
            );
        }
        // Nothing may come between a call and its response.
        if role == "model" && again && calls > 0 {
            return at("function calls must be followed by their responses");
        }
        calls = asked;
    }
    if calls > 0 { broken("function calls must be followed by their responses") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(messages: Value) -> Result<(), Broken> {
        check("/v1/messages", &json!({"model": "m", "max_tokens": 9, "messages": messages}))
    }

    #[test]
    fn text_before_a_tool_result_is_refused() {
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "x"});
        let said = json!({"type": "text", "text": "y"});
        let user = json!({"role": "user", "content": "hi"});
        let turn = |content: Value| json!([user, call, {"role": "user", "content": content}]);
        messages(turn(json!([result, said]))).unwrap();
        assert!(messages(turn(json!([said, result]))).is_err());
        assert!(messages(turn(json!([said]))).is_err());
        assert!(messages(json!([user, call])).is_err());
        assert!(messages(json!([user, {"role": "user", "content": [result]}])).is_err());
        assert!(messages(json!([{"role": "assistant", "content": "x"}])).is_err());
        assert!(
            messages(json!([{"role": "user", "content": [{"type": "text", "text": " "}]}]))
                .is_err()
        );
    }

    #[test]
    fn results_of_the_providers_own_tools_follow_their_calls() {
        let user = json!({"role": "user", "content": "hi"});
        let own = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
        let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
        let turn = |content: Value| json!([user, {"role": "assistant", "content": content}, user]);
        messages(turn(json!([own, found]))).unwrap();
        messages(turn(json!([own]))).unwrap();
        assert!(messages(turn(json!([found]))).is_err());
        assert!(messages(json!([{"role": "user", "content": [own]}])).is_err());
    }

    #[test]
    fn every_call_is_answered() {
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "b", "arguments": "{}"}}]});
        let ask = |messages: Value| {
            check("/v1/chat/completions", &json!({"model": "m", "messages": messages}))
        };
        let tool = json!({"role": "tool", "tool_call_id": "a", "content": "x"});
        let user = json!({"role": "user", "content": "hi"});
        ask(json!([user, call, tool, user])).unwrap();
        assert!(ask(json!([user, call, user, tool])).is_err());
        assert!(ask(json!([user, tool])).is_err());
        assert!(ask(json!([user, call])).is_err());
        let item = json!({"type": "function_call", "call_id": "a", "name": "b", "arguments": "{}"});
        let given = json!({"type": "function_call_output", "call_id": "a", "output": "x"});
        let ask = |input: Value| check("/v1/responses", &json!({"model": "m", "input": input}));
        ask(json!([item, given])).unwrap();
        assert!(ask(json!([item])).is_err());
        assert!(ask(json!([given])).is_err());
    }

    #[test]
    fn function_responses_match_their_calls() {
        let ask = |contents: Value| {
            check("/v1beta/models/g:generateContent", &json!({"contents": contents}))
        };
        let user = json!({"role": "user", "parts": [{"text": "hi"}]});
        let call = json!({"role": "model", "parts": [{"functionCall": {"name": "b", "args": {}}}]});
        let given = json!({"functionResponse": {"name": "b", "response": {"output": "x"}}});
        ask(json!([user, call, {"role": "user", "parts": [given, {"text": "z"}]}])).unwrap();
        assert!(ask(json!([user, call, user])).is_err());
        ask(json!([user, user])).unwrap();
        ask(json!([user, call, {"role": "user", "parts": [given]}, user])).unwrap();
        assert!(ask(json!([user, call, user, {"role": "user", "parts": [given]}])).is_err());
        assert!(ask(json!([user, call, call])).is_err());
        assert!(ask(json!([user, call])).is_err());
        let said = json!({"role": "model", "parts": [{"text": "so"}]});
        let results = json!({"role": "user", "parts": [given]});
        ask(json!([user, said, said, user])).unwrap();
        assert!(ask(json!([user, said, call, results])).is_err());
        assert!(ask(json!([user, call, said, results])).is_err());
        assert!(ask(json!([user, call, said, user])).is_err());
        assert!(ask(json!([call, results])).is_err());
    }
}
