//! The ordering rules of each provider, as they answer a request that breaks them.

use std::collections::HashSet;

use serde_json::Value;
use wardkeep_policy::assemble::Provider;

/// Panics where a request breaks a rule of the provider, or the block stands in a tool result.
pub(super) fn check(provider: Provider, body: &Value) {
    match provider {
        Provider::Anthropic => anthropic(body),
        Provider::OpenAiChat => openai_chat(body),
        Provider::OpenAiResponses => openai_responses(body),
        Provider::Gemini => gemini(body),
        Provider::Ollama => ollama(body),
    }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no list `{key}` in {value}"))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {value}"))
}

fn plain_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 40
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// A result is wrapped, closed, and nothing follows: no block rides inside.
fn wrapped(result: &str) {
    assert!(result.starts_with("<tool_output nonce=\""), "{result}");
    let (_, closing) = result.rsplit_once('\n').unwrap();
    assert!(closing.starts_with("</tool_output nonce=\"") && closing.ends_with("\">"), "{result}");
    assert!(!result.contains("## Workspace Security Policy"));
}

fn anthropic(body: &Value) {
    let messages = list(body, "messages");
    let mut ids = HashSet::new();
    let mut expected: Vec<String> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        assert_eq!(role, if place % 2 == 0 { "user" } else { "assistant" }, "{body}");
        let content = list(message, "content");
        assert!(!content.is_empty(), "{body}");
        let mut results = Vec::new();
        let mut calls = Vec::new();
        for (index, block) in content.iter().enumerate() {
            match (role, text(block, "type")) {
                (_, "text") => assert!(!text(block, "text").trim().is_empty(), "{body}"),
                ("user", "tool_result") => {
                    assert_eq!(results.len(), index, "results stand first: {body}");
                    results.push(text(block, "tool_use_id").to_owned());
                    wrapped(text(block, "content"));
                }
                ("assistant", "tool_use") => {
                    assert!(block["input"].is_object() && plain_name(text(block, "name")));
                    let id = text(block, "id").to_owned();
                    assert!(plain_id(&id) && ids.insert(id.clone()), "{body}");
                    calls.push(id);
                }
                ("user", "image") | ("assistant", "thinking") => {}
                other => panic!("{other:?} in {body}"),
            }
        }
        if role == "assistant" {
            assert_ne!(content.last().unwrap()["type"], "thinking", "{body}");
        } else {
            assert_eq!(results, expected, "{body}");
        }
        expected = calls;
    }
    assert!(expected.is_empty(), "{body}");
    assert_eq!(messages.last().unwrap()["role"], "user");
}

fn openai_chat(body: &Value) {
    let messages = list(body, "messages");
    let mut ids = HashSet::new();
    let mut expected: Vec<String> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        if role == "tool" {
            assert!(!expected.is_empty(), "{body}");
            assert_eq!(text(message, "tool_call_id"), expected.remove(0), "{body}");
            wrapped(text(message, "content"));
            continue;
        }
        assert!(expected.is_empty(), "a call without its answer: {body}");
        match role {
            "system" => assert_eq!(place, 0),
            "user" => assert!(!text(message, "content").trim().is_empty(), "{body}"),
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                assert!(calls.is_none_or(|calls| !calls.is_empty()), "{body}");
                assert!(message["content"].is_string() || calls.is_some(), "{body}");
                for call in calls.into_iter().flatten() {
                    let function = &call["function"];
                    assert!(plain_name(text(function, "name")), "{body}");
                    let arguments: Value =
                        serde_json::from_str(text(function, "arguments")).unwrap();
                    assert!(arguments.is_object());
                    let id = text(call, "id").to_owned();
                    assert!(plain_id(&id) && ids.insert(id.clone()), "{body}");
                    expected.push(id);
                }
            }
            other => panic!("{other} in {body}"),
        }
    }
    assert!(expected.is_empty());
    assert_eq!(messages.last().unwrap()["role"], "user");
}

fn openai_responses(body: &Value) {
    let input = list(body, "input");
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    let mut answering = false;
    for (place, item) in input.iter().enumerate() {
        let kind = text(item, "type");
        if kind == "function_call_output" {
            answering = true;
            assert_eq!(text(item, "call_id"), open.remove(0), "{body}");
            wrapped(text(item, "output"));
            continue;
        }
        // Once the answers have begun, all of them come.
        assert!(!answering || open.is_empty(), "{body}");
        answering = false;
        match kind {
            "function_call" => {
                assert!(plain_name(text(item, "name")));
                let arguments: Value = serde_json::from_str(text(item, "arguments")).unwrap();
                assert!(arguments.is_object());
                let id = text(item, "call_id").to_owned();
                assert!(plain_id(&id) && ids.insert(id.clone()), "{body}");
                open.push(id);
            }
            "reasoning" => {
                let next = input.get(place + 1).map(|next| text(next, "type"));
                assert!(matches!(next, Some("reasoning" | "message" | "function_call")), "{body}");
                assert!(input[place + 1]["role"].as_str().is_none_or(|role| role == "assistant"));
            }
            "message" => {
                let role = text(item, "role");
                assert!(role == "assistant" || open.is_empty(), "{body}");
                assert!(role != "developer" || place + 1 == input.len());
                let expected = if role == "assistant" { "output_text" } else { "input_text" };
                let content = list(item, "content");
                assert!(!content.is_empty());
                for part in content {
                    assert!(text(part, "type") == expected || text(part, "type") == "input_image");
                }
            }
            other => panic!("{other} in {body}"),
        }
    }
    assert!(open.is_empty());
    assert_eq!(input.last().unwrap()["role"], "developer");
}

fn gemini(body: &Value) {
    let contents = list(body, "contents");
    let mut expected: Vec<String> = Vec::new();
    for (place, content) in contents.iter().enumerate() {
        let role = text(content, "role");
        assert_eq!(role, if place % 2 == 0 { "user" } else { "model" }, "{body}");
        let parts = list(content, "parts");
        assert!(!parts.is_empty());
        let (mut calls, mut responses) = (Vec::new(), Vec::new());
        for (index, part) in parts.iter().enumerate() {
            if let Some(call) = part.get("functionCall") {
                assert!(
                    role == "model" && call["args"].is_object() && plain_name(text(call, "name"))
                );
                calls.push(text(call, "name").to_owned());
            } else if let Some(response) = part.get("functionResponse") {
                assert_eq!((role, responses.len()), ("user", index), "{body}");
                responses.push(text(response, "name").to_owned());
                let response = response["response"].as_object().unwrap();
                wrapped(response.values().next().unwrap().as_str().unwrap());
            } else {
                assert!(part.get("text").is_some() || part.get("inlineData").is_some(), "{body}");
            }
        }
        if role == "user" {
            assert_eq!(responses, expected, "as many answers as calls: {body}");
        }
        expected = calls;
    }
    assert!(expected.is_empty());
    assert_eq!(contents.last().unwrap()["role"], "user");
}

fn ollama(body: &Value) {
    let messages = list(body, "messages");
    let mut expected: Vec<String> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let content = text(message, "content");
        match text(message, "role") {
            "tool" => {
                assert!(!expected.is_empty(), "{body}");
                assert_eq!(text(message, "tool_name"), expected.remove(0), "{body}");
                wrapped(content);
                continue;
            }
            "system" => assert_eq!(place, 0),
            "user" => {}
            "assistant" => {
                assert!(expected.is_empty(), "{body}");
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    assert!(call["function"]["arguments"].is_object());
                    expected.push(text(&call["function"], "name").to_owned());
                }
                continue;
            }
            other => panic!("{other} in {body}"),
        }
        assert!(expected.is_empty(), "a call without its answer: {body}");
    }
    assert!(expected.is_empty());
    assert_eq!(messages.last().unwrap()["role"], "user");
}
