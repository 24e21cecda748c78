//! Anthropic's Messages: turns alternate, tool results stand first in the user message directly
//! behind the calls. The block is the last text block of the last user message.

use serde_json::{Map, Value, json};

use super::rounds::{AssistantPart, Round, UserPart};

pub(super) fn body(system: &str, rounds: &[Round], block: &str) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    let mut user: Vec<Value> = Vec::new();
    for round in rounds {
        match round {
            Round::User(parts) => user.extend(parts.iter().map(|part| match part {
                UserPart::Text(text) => json!({"type": "text", "text": text}),
                UserPart::Native(value) => value.clone(),
            })),
            Round::Assistant(parts, answers) => {
                close(&mut messages, &mut user);
                let content: Vec<Value> = parts
                    .iter()
                    .map(|part| match part {
                        AssistantPart::Text(text) => json!({"type": "text", "text": text}),
                        AssistantPart::Native(value) => value.clone(),
                        AssistantPart::Call(call) => json!({
                            "type": "tool_use",
                            "id": call.id,
                            "name": call.name,
                            "input": call.object(),
                        }),
                    })
                    .collect();
                messages.push(json!({"role": "assistant", "content": content}));
                user.extend(answers.iter().map(|answer| {
                    let mut result = json!({
                        "type": "tool_result",
                        "tool_use_id": answer.id,
                        "content": answer.text,
                    });
                    if answer.error {
                        result["is_error"] = Value::Bool(true);
                    }
                    result
                }));
            }
        }
    }
    if !block.is_empty() {
        user.push(json!({"type": "text", "text": block}));
    }
    close(&mut messages, &mut user);
    let mut body = Map::new();
    if !system.is_empty() {
        body.insert("system".to_owned(), system.into());
    }
    body.insert("messages".to_owned(), messages.into());
    Value::Object(body)
}

fn close(messages: &mut Vec<Value>, user: &mut Vec<Value>) {
    if !user.is_empty() {
        messages.push(json!({"role": "user", "content": std::mem::take(user)}));
    }
}
