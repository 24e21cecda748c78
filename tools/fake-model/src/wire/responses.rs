//! OpenAI Responses.

use serde_json::{Value, json};

use super::{Asked, TOKENS, Turn, items, model, pieces, text_of, text_tool_of, tool_of};
use crate::http::{Answer, Event};
use crate::tools::{Input, Tool};

pub(super) fn read(body: &Value) -> Asked {
    Asked {
        model: model(body),
        stream: body["stream"] == true,
        tools: items(&body["tools"]).filter_map(tool).collect(),
        results: items(&body["input"])
            .filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output")))
            .map(|item| text_of(&item["output"]))
            .collect(),
        form: body["text"]["format"].get("schema").cloned(),
        system: items(&body["input"])
            .filter(|item| item["role"] == "developer" || item["role"] == "system")
            .map(|item| &item["content"])
            .chain([&body["instructions"]])
            .find(|said| !said.is_null())
            .map(text_of)
            .unwrap_or_default(),
        tokens: TOKENS,
        number: 0,
    }
}

fn tool(tool: &Value) -> Option<Tool> {
    match tool["type"].as_str()? {
        "function" => tool_of(&tool["name"], &tool["parameters"]),
        "custom" => text_tool_of(&tool["name"]),
        _ => None,
    }
}

pub(super) fn answer(asked: &Asked, turn: &Turn) -> Answer {
    let item = done_item(turn);
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_fake", "object": "response", "created_at": 0, "status": status,
            "model": asked.model, "output": output, "usage": usage})
    };
    let usage = json!({"input_tokens": asked.tokens, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": asked.tokens + 5});
    let completed = response("completed", json!([item]), usage);
    if !asked.stream {
        return Answer::Json(200, completed);
    }
    let mut events = vec![json!({"type": "response.created",
        "response": response("in_progress", json!([]), Value::Null)})];
    events.extend(progress(turn, &item));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": completed}));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        Event::typed(&event)
    });
    Answer::Events(numbered.collect())
}

fn done_item(turn: &Turn) -> Value {
    match turn {
        Turn::Say(text) => json!({"type": "message", "id": "msg_fake", "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Turn::Call(call) => match &call.input {
            Input::Object(value) => json!({"type": "function_call", "id": item_id(&call.id),
                "call_id": call.id, "name": call.name, "arguments": value.to_string(),
                "status": "completed"}),
            Input::Text(text) => json!({"type": "custom_tool_call", "id": item_id(&call.id),
                "call_id": call.id, "name": call.name, "input": text, "status": "completed"}),
        },
    }
}

fn item_id(call: &str) -> String {
    format!("item_{call}")
}

/// The events between the start of the item and its end.
fn progress(turn: &Turn, item: &Value) -> Vec<Value> {
    let id = &item["id"];
    let mut opening = item.clone();
    opening["status"] = json!("in_progress");
    let (member, empty) = match turn {
        Turn::Say(_) => ("content", json!([])),
        Turn::Call(call) => match call.input {
            Input::Object(_) => ("arguments", json!("")),
            Input::Text(_) => ("input", json!("")),
        },
    };
    opening[member] = empty;
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": opening});
    let mut events = vec![added];
    match turn {
        Turn::Say(text) => {
            let at = |kind: &str, member: &str, value: Value| {
                json!({"type": kind, "item_id": id, "output_index": 0, "content_index": 0,
                    member: value})
            };
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            events.push(at("response.content_part.added", "part", part("")));
            events.extend(
                pieces(text)
                    .into_iter()
                    .map(|piece| at("response.output_text.delta", "delta", json!(piece))),
            );
            events.push(at("response.output_text.done", "text", json!(text)));
            events.push(at("response.content_part.done", "part", part(text)));
        }
        Turn::Call(call) => {
            let (kind, text) = match &call.input {
                Input::Object(value) => ("response.function_call_arguments", value.to_string()),
                Input::Text(text) => ("response.custom_tool_call_input", text.clone()),
            };
            let at = |step: &str, member: &str, value: &str| {
                json!({"type": format!("{kind}.{step}"), "item_id": id, "output_index": 0,
                    member: value})
            };
            events.extend(pieces(&text).iter().map(|piece| at("delta", "delta", piece)));
            events.push(at("done", member, &text));
        }
    }
    events
}
