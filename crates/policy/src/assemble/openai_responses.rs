//! OpenAI's Responses: a list of items. The block is a developer message at its end.

use serde_json::{Map, Value, json};

use super::rounds::{AssistantPart, Round, UserPart};

pub(super) fn body(system: &str, rounds: &[Round], block: &str) -> Value {
    let mut input = Vec::new();
    for round in rounds {
        match round {
            Round::User(parts) => {
                let content: Vec<Value> = parts
                    .iter()
                    .map(|part| match part {
                        UserPart::Text(text) => json!({"type": "input_text", "text": text}),
                        UserPart::Native(value) => value.clone(),
                    })
                    .collect();
                input.push(json!({"type": "message", "role": "user", "content": content}));
            }
            Round::Assistant(parts, answers) => {
                input.extend(parts.iter().map(|part| match part {
                    AssistantPart::Text(text) => json!({
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": text}],
                    }),
                    AssistantPart::Native(value) => value.clone(),
                    AssistantPart::Call(call) => json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": call.object().to_string(),
                    }),
                }));
                input.extend(answers.iter().map(|answer| {
                    json!({
                        "type": "function_call_output",
                        "call_id": answer.id,
                        "output": answer.text,
                    })
                }));
            }
        }
    }
    if !block.is_empty() {
        input.push(json!({
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": block}],
        }));
    }
    let mut body = Map::new();
    if !system.is_empty() {
        body.insert("instructions".to_owned(), system.into());
    }
    body.insert("input".to_owned(), input.into());
    Value::Object(body)
}
