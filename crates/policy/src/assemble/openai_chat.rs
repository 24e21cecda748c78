//! OpenAI's Chat Completions: tool messages directly behind the message that asked for them, all
//! of them. The block is a user message of its own at the end.

use serde_json::{Value, json};

use super::rounds::{AssistantPart, Round, UserPart};

pub(super) fn body(system: &str, rounds: &[Round], block: &str) -> Value {
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for round in rounds {
        match round {
            Round::User(parts) => messages.push(json!({"role": "user", "content": content(parts)})),
            Round::Assistant(parts, answers) => {
                let (text, calls) = said(parts);
                let mut message = json!({"role": "assistant", "content": text});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                messages.push(message);
                messages.extend(answers.iter().map(|answer| {
                    json!({"role": "tool", "tool_call_id": answer.id, "content": answer.text})
                }));
            }
        }
    }
    if !block.is_empty() {
        messages.push(json!({"role": "user", "content": block}));
    }
    json!({"messages": messages})
}

/// Plain text where it can be, which every compatible server takes.
fn content(parts: &[UserPart]) -> Value {
    if parts.iter().all(|part| matches!(part, UserPart::Text(_))) {
        return joined(parts).into();
    }
    let shown = parts.iter().map(|part| match part {
        UserPart::Text(text) => json!({"type": "text", "text": text}),
        UserPart::Native(value) => value.clone(),
    });
    Value::Array(shown.collect())
}

/// The texts of a user, native parts left out.
pub(super) fn joined(parts: &[UserPart]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            UserPart::Text(text) => Some(text.as_str()),
            UserPart::Native(_) => None,
        })
        .collect();
    texts.join("\n\n")
}

/// The texts of the model, or null, and its calls.
fn said(parts: &[AssistantPart]) -> (Value, Vec<Value>) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            AssistantPart::Text(text) => texts.push(text.as_str()),
            AssistantPart::Native(_) => {}
            AssistantPart::Call(call) => calls.push(json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.object().to_string()},
            })),
        }
    }
    let text = if texts.is_empty() { Value::Null } else { texts.join("\n\n").into() };
    (text, calls)
}
