//! Ollama chat: a stream of lines unless it is told otherwise.

use serde_json::{Value, json};

use super::{Asked, TOKENS, Turn, functions, items, model, system, text_of};
use crate::http::Answer;
use crate::tools::Input;

pub(super) fn read(body: &Value) -> Asked {
    Asked {
        model: model(body),
        stream: body["stream"] != false,
        tools: functions(body),
        results: items(&body["messages"])
            .filter(|message| message["role"] == "tool")
            .map(|message| text_of(&message["content"]))
            .collect(),
        form: body.get("format").filter(|format| format.is_object()).cloned(),
        system: system(body),
        tokens: TOKENS,
        number: 0,
    }
}

pub(super) fn answer(asked: &Asked, turn: &Turn) -> Answer {
    let message = match turn {
        Turn::Say(text) => json!({"role": "assistant", "content": text}),
        Turn::Call(call) => {
            let arguments = match &call.input {
                Input::Object(value) => value.clone(),
                Input::Text(text) => json!({"input": text}),
            };
            json!({"role": "assistant", "content": "",
                "tool_calls": [{"function": {"name": call.name, "arguments": arguments}}]})
        }
    };
    let line = |message: Value, done: bool| {
        json!({"model": asked.model, "created_at": "2026-01-01T00:00:00Z", "message": message,
            "done": done})
    };
    let ended = |mut line: Value| {
        line["done_reason"] = json!("stop");
        for counter in ["total_duration", "load_duration"] {
            line[counter] = json!(1);
        }
        line["prompt_eval_count"] = json!(asked.tokens);
        for counter in ["prompt_eval_duration", "eval_count", "eval_duration"] {
            line[counter] = json!(1);
        }
        line
    };
    if !asked.stream {
        return Answer::Json(200, ended(line(message, true)));
    }
    let last = ended(line(json!({"role": "assistant", "content": ""}), true));
    Answer::Lines(vec![line(message, false), last])
}
