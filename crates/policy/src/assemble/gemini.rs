//! Google's `generateContent`: roles alternate, as many function responses as calls, directly
//! behind them. The block is the last part of the last user content.

use serde_json::{Map, Value, json};

use super::rounds::{AssistantPart, Round, UserPart};

pub(super) fn body(system: &str, rounds: &[Round], block: &str) -> Value {
    let mut contents: Vec<Value> = Vec::new();
    let mut user: Vec<Value> = Vec::new();
    for round in rounds {
        match round {
            Round::User(parts) => user.extend(parts.iter().map(|part| match part {
                UserPart::Text(text) => json!({"text": text}),
                UserPart::Native(value) => value.clone(),
            })),
            Round::Assistant(parts, answers) => {
                close(&mut contents, &mut user);
                let said: Vec<Value> = parts
                    .iter()
                    .map(|part| match part {
                        AssistantPart::Text(text) => json!({"text": text}),
                        AssistantPart::Native(value) => value.clone(),
                        AssistantPart::Call(call) => {
                            let mut part = json!({
                                "functionCall": {"name": call.name, "args": call.object()},
                            });
                            if let Some(signature) = &call.signature {
                                part["thoughtSignature"] = signature.as_str().into();
                            }
                            part
                        }
                    })
                    .collect();
                contents.push(json!({"role": "model", "parts": said}));
                user.extend(answers.iter().map(|answer| {
                    let key = if answer.error { "error" } else { "output" };
                    let response = Map::from_iter([(key.to_owned(), answer.text.as_str().into())]);
                    json!({"functionResponse": {"name": answer.name, "response": response}})
                }));
            }
        }
    }
    if !block.is_empty() {
        user.push(json!({"text": block}));
    }
    close(&mut contents, &mut user);
    let mut body = Map::new();
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
    }
    body.insert("contents".to_owned(), contents.into());
    Value::Object(body)
}

fn close(contents: &mut Vec<Value>, user: &mut Vec<Value>) {
    if !user.is_empty() {
        contents.push(json!({"role": "user", "parts": std::mem::take(user)}));
    }
}
