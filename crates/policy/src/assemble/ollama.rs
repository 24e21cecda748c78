//! Ollama's `/api/chat`: as Chat Completions, with arguments as an object and tools by name. The
//! block is a user message of its own at the end.

use serde_json::{Value, json};

use super::openai_chat::joined;
use super::rounds::{AssistantPart, Round};

pub(super) fn body(system: &str, rounds: &[Round], block: &str) -> Value {
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for round in rounds {
        match round {
            Round::User(parts) => messages.push(json!({"role": "user", "content": joined(parts)})),
            Round::Assistant(parts, answers) => {
                let (mut texts, mut calls) = (Vec::new(), Vec::new());
                for part in parts {
                    match part {
                        AssistantPart::Text(text) => texts.push(text.as_str()),
                        AssistantPart::Native(_) => {}
                        AssistantPart::Call(call) => calls.push(json!({
                            "function": {"name": call.name, "arguments": call.object()},
                        })),
                    }
                }
                let mut message = json!({"role": "assistant", "content": texts.join("\n\n")});
                if !calls.is_empty() {
                    message["tool_calls"] = Value::Array(calls);
                }
                messages.push(message);
                messages.extend(answers.iter().map(|answer| {
                    json!({"role": "tool", "tool_name": answer.name, "content": answer.text})
                }));
            }
        }
    }
    if !block.is_empty() {
        messages.push(json!({"role": "user", "content": block}));
    }
    json!({"messages": messages})
}
