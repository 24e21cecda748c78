//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{Asked, TOKENS, Turn, functions, items, model, pieces, system, text_of, text_tool_of};
use crate::http::{Answer, Event};
use crate::tools::{Call, Input};

pub(super) fn read(body: &Value) -> Asked {
    Asked {
        model: model(body),
        stream: body["stream"] == true,
        tools: functions(body)
            .into_iter()
            .chain(items(&body["tools"]).filter_map(|tool| text_tool_of(&tool["custom"]["name"])))
            .collect(),
        results: items(&body["messages"])
            .filter(|message| message["role"] == "tool" || message["role"] == "function")
            .map(|message| text_of(&message["content"]))
            .collect(),
        form: body["response_format"]["json_schema"].get("schema").cloned(),
        system: system(body),
        tokens: TOKENS,
        number: 0,
    }
}

pub(super) fn answer(asked: &Asked, turn: &Turn) -> Answer {
    let usage = json!({"prompt_tokens": asked.tokens, "completion_tokens": 5,
        "total_tokens": asked.tokens + 5});
    let finish = match turn {
        Turn::Say(_) => "stop",
        Turn::Call(_) => "tool_calls",
    };
    let document = |object: &str, choices: Value, usage: &Value| {
        json!({"id": "chatcmpl-fake", "object": object, "created": 0, "model": asked.model,
            "choices": choices, "usage": usage})
    };
    if !asked.stream {
        let message = match turn {
            Turn::Say(text) => json!({"role": "assistant", "content": text}),
            Turn::Call(call) => {
                let (kind, member, text) = form(call);
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": call.id, "type": kind, kind: {"name": call.name, member: text}}]})
            }
        };
        let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        return Answer::Json(200, document("chat.completion", choices, &usage));
    }
    let mut deltas: Vec<(Value, Value)> = match turn {
        Turn::Say(text) => {
            let first = json!({"role": "assistant", "content": ""});
            let rest = pieces(text).into_iter().map(|piece| json!({"content": piece}));
            std::iter::once(first).chain(rest).map(|delta| (delta, Value::Null)).collect()
        }
        Turn::Call(call) => {
            let (kind, member, text) = form(call);
            let first = json!({"role": "assistant", "content": null, "tool_calls": [
                {"index": 0, "id": call.id, "type": kind, kind: {"name": call.name, member: ""}}]});
            let rest = pieces(&text)
                .into_iter()
                .map(|piece| json!({"tool_calls": [{"index": 0, kind: {member: piece}}]}));
            std::iter::once(first).chain(rest).map(|delta| (delta, Value::Null)).collect()
        }
    };
    deltas.push((json!({}), json!(finish)));
    let chunk = |choices: Value, usage: &Value| {
        Event::plain(document("chat.completion.chunk", choices, usage))
    };
    let mut events: Vec<Event> = deltas
        .into_iter()
        .map(|(delta, finish)| {
            chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), &Value::Null)
        })
        .collect();
    events.push(chunk(json!([]), &usage));
    events.push(Event::plain("[DONE]"));
    Answer::Events(events)
}

/// The type of a call, the member that tells what to do, and its text.
fn form(call: &Call) -> (&'static str, &'static str, String) {
    match &call.input {
        Input::Object(value) => ("function", "arguments", value.to_string()),
        Input::Text(text) => ("custom", "input", text.clone()),
    }
}
