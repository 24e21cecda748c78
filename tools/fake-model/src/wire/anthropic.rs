//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Asked, TOKENS, Turn, items, model, pieces, text_of, tool_of};
use crate::http::{Answer, Event};
use crate::tools::{Call, Input};

pub(super) fn read(body: &Value) -> Asked {
    Asked {
        model: model(body),
        stream: body["stream"] == true,
        tools: items(&body["tools"])
            .filter_map(|tool| tool_of(&tool["name"], &tool["input_schema"]))
            .collect(),
        results: items(&body["messages"])
            .flat_map(|message| items(&message["content"]))
            .filter(|block| block["type"] == "tool_result")
            .map(|block| text_of(&block["content"]))
            .collect(),
        form: None,
        system: text_of(&body["system"]),
        tokens: TOKENS,
        number: 0,
    }
}

pub(super) fn answer(asked: &Asked, turn: &Turn) -> Answer {
    let (block, stop) = match turn {
        Turn::Say(text) => (json!({"type": "text", "text": text}), "end_turn"),
        Turn::Call(call) => (
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input(call)}),
            "tool_use",
        ),
    };
    let message = |content: Value, stop: Value| {
        json!({"id": format!("msg_fake_{}", asked.number), "type": "message", "role": "assistant", "model": asked.model,
            "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": asked.tokens, "output_tokens": 5,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}})
    };
    if !asked.stream {
        return Answer::Json(200, message(json!([block]), json!(stop)));
    }
    let (start, deltas): (Value, Vec<Value>) = match turn {
        Turn::Say(text) => (
            json!({"type": "text", "text": ""}),
            pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect(),
        ),
        Turn::Call(call) => (
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
            pieces(&input(call).to_string())
                .into_iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
        ),
    };
    let mut events = vec![
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
    ];
    events.extend(
        deltas
            .into_iter()
            .map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": delta})),
    );
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "usage": {"output_tokens": 5},
            "delta": {"stop_reason": stop, "stop_sequence": null}}),
        json!({"type": "message_stop"}),
    ]);
    Answer::Events(events.iter().map(Event::typed).collect())
}

fn input(call: &Call) -> Value {
    match &call.input {
        Input::Object(value) => value.clone(),
        Input::Text(text) => json!({"input": text}),
    }
}
