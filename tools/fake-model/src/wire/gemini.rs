//! Gemini generateContent and streamGenerateContent.

use serde_json::{Value, json};

use super::{Asked, TOKENS, Turn, items, pieces, text_of, tool_of};
use crate::http::{Answer, Event};
use crate::tools::Input;

pub(super) fn read(path: &str, body: &Value) -> Asked {
    let last = path.rsplit('/').next().unwrap_or_default();
    let config = &body["generationConfig"];
    let schema = config.get("responseJsonSchema").or(config.get("responseSchema"));
    Asked {
        model: last.split(':').next().unwrap_or_default().to_owned(),
        stream: last.ends_with(":streamGenerateContent"),
        tools: items(&body["tools"])
            .flat_map(|tool| items(&tool["functionDeclarations"]))
            .filter_map(|function| {
                let schema = function.get("parametersJsonSchema");
                tool_of(&function["name"], schema.unwrap_or(&function["parameters"]))
            })
            .collect(),
        results: items(&body["contents"])
            .flat_map(|content| items(&content["parts"]))
            .filter_map(|part| part.get("functionResponse"))
            .map(|response| text_of(&response["response"]))
            .collect(),
        form: schema.cloned().or_else(|| {
            (config["responseMimeType"] == "application/json").then(|| json!({"type": "object"}))
        }),
        system: text_of(&body["systemInstruction"]["parts"]),
        tokens: TOKENS,
        number: 0,
    }
}

pub(super) fn answer(asked: &Asked, turn: &Turn) -> Answer {
    let parts: Vec<Value> = match turn {
        Turn::Say(text) if asked.stream => {
            pieces(text).into_iter().map(|piece| json!({"text": piece})).collect()
        }
        Turn::Say(text) => vec![json!({"text": text})],
        Turn::Call(call) => {
            let arguments = match &call.input {
                Input::Object(value) => value.clone(),
                Input::Text(text) => json!({"input": text}),
            };
            vec![json!({"functionCall": {"id": call.id, "name": call.name, "args": arguments}})]
        }
    };
    let last = parts.len().saturating_sub(1);
    let documents: Vec<Value> = parts
        .into_iter()
        .enumerate()
        .map(|(number, part)| {
            let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": [part]}});
            if number == last {
                candidate["finishReason"] = json!("STOP");
            }
            json!({"candidates": [candidate], "modelVersion": asked.model, "responseId": "fake",
                "usageMetadata": {"promptTokenCount": asked.tokens,
                    "candidatesTokenCount": 5, "totalTokenCount": asked.tokens + 5}})
        })
        .collect();
    if asked.stream {
        return Answer::Events(documents.iter().map(Event::plain).collect());
    }
    Answer::Json(200, documents.into_iter().next().unwrap_or_default())
}
