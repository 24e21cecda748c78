//! The wires that agents speak: what each asks, and how it is answered.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use serde_json::{Value, json};

use crate::http::Answer;
use crate::script::Script;
use crate::tools::{self, Call, Input, Tool};

/// A way to talk to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

/// A request for a turn of the model, whatever the wire.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) tools: Vec<Tool>,
    /// The texts of the tool results in the conversation.
    pub(crate) results: Vec<String>,
    /// The schema of an answer that must be JSON.
    pub(crate) form: Option<Value>,
    /// The system prompt.
    pub(crate) system: String,
    /// How many tokens the request is said to have.
    pub(crate) tokens: u64,
    /// Which request of the server it is: agents put answers of one id together.
    pub(crate) number: usize,
}

/// What the model does next.
#[derive(Debug)]
pub(crate) enum Turn {
    Call(Call),
    Say(String),
}

impl Turn {
    /// The script's next step, if a tool on offer can do it; else the last text.
    pub(crate) fn next(script: &Script, asked: &Asked, number: usize) -> Self {
        if let Some(form) = &asked.form {
            return Self::Say(fitting(form, 0).to_string());
        }
        script
            .step(asked.results.len())
            .and_then(|step| tools::call(step, &asked.tools, number))
            .map_or_else(|| Self::Say(script.text(&asked.system)), Self::Call)
    }

    /// For the log.
    pub(crate) fn as_json(&self) -> Value {
        match self {
            Self::Say(text) => json!({"say": text}),
            Self::Call(Call { name, input: Input::Object(value), .. }) => {
                json!({"call": name, "arguments": value})
            }
            Self::Call(Call { name, input: Input::Text(text), .. }) => {
                json!({"call": name, "arguments": text})
            }
        }
    }
}

impl Wire {
    /// The wire that is spoken at this path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let last = path.rsplit('/').next().unwrap_or_default();
        match last {
            "messages" => Some(Self::Anthropic),
            "completions" if path.ends_with("/chat/completions") => Some(Self::Chat),
            "responses" => Some(Self::Responses),
            "chat" if path.ends_with("/api/chat") => Some(Self::Ollama),
            _ if last.ends_with(":generateContent") || last.ends_with(":streamGenerateContent") => {
                Some(Self::Gemini)
            }
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    pub(crate) fn read(self, path: &str, body: &Value) -> Asked {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Gemini => gemini::read(path, body),
            Self::Ollama => ollama::read(body),
        }
    }

    pub(crate) fn answer(self, asked: &Asked, turn: &Turn) -> Answer {
        match self {
            Self::Anthropic => anthropic::answer(asked, turn),
            Self::Chat => chat::answer(asked, turn),
            Self::Responses => responses::answer(asked, turn),
            Self::Gemini => gemini::answer(asked, turn),
            Self::Ollama => ollama::answer(asked, turn),
        }
    }
}

/// The tokens of a request, unless the script says otherwise.
pub(crate) const TOKENS: u64 = 10;

/// Answers a question that asks for no turn: counts and descriptions.
pub(crate) fn side_question(path: &str) -> Answer {
    let value = if path.ends_with("/count_tokens") {
        json!({"input_tokens": TOKENS})
    } else if path.ends_with(":countTokens") {
        json!({"totalTokens": TOKENS})
    } else if path.ends_with("/api/show") {
        json!({"capabilities": ["completion", "tools"], "details": {"family": "fake"},
            "model_info": {"fake.context_length": 131_072}})
    } else {
        json!({})
    };
    Answer::Json(200, value)
}

/// Answers what is asked without a body: lists of models, mostly.
pub(crate) fn lookup(path: &str) -> Answer {
    const MODEL: &str = "fake-1";
    let value = if path.ends_with("/models") {
        json!({"object": "list", "has_more": false,
            "data": [{"id": MODEL, "object": "model", "type": "model", "created": 0,
                "owned_by": "fake", "display_name": MODEL}],
            "models": [{"name": format!("models/{MODEL}"), "slug": MODEL}]})
    } else if path.ends_with("/api/tags") {
        json!({"models": [{"name": MODEL, "model": MODEL, "size": 1,
            "details": {"family": "fake", "parameter_size": "1B"}}]})
    } else if path.ends_with("/api/version") {
        json!({"version": "0.12.0"})
    } else {
        json!({})
    };
    Answer::Json(200, value)
}

/// All text in a value, one piece a line; what says of which type a piece is, is no text.
fn text_of(value: &Value) -> String {
    let mut pieces = Vec::new();
    collect(value, &mut pieces);
    pieces.join("\n")
}

fn collect<'v>(value: &'v Value, pieces: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => pieces.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, pieces)),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "type")
            .for_each(|(_, member)| collect(member, pieces)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The elements of a list that may be missing.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Tools in the form `{"type": "function", "function": {"name", "parameters"}}`.
fn functions(body: &Value) -> Vec<Tool> {
    items(&body["tools"])
        .filter_map(|tool| tool_of(&tool["function"]["name"], &tool["function"]["parameters"]))
        .collect()
}

fn tool_of(name: &Value, schema: &Value) -> Option<Tool> {
    let name = name.as_str()?.to_owned();
    Some(Tool { name, schema: schema.clone(), takes: tools::Takes::Object })
}

/// A tool that takes plain text.
fn text_tool_of(name: &Value) -> Option<Tool> {
    let name = name.as_str()?.to_owned();
    Some(Tool { name, schema: Value::Null, takes: tools::Takes::Text })
}

/// What the messages of the system say.
fn system(body: &Value) -> String {
    items(&body["messages"])
        .filter(|message| message["role"] == "system" || message["role"] == "developer")
        .map(|message| text_of(&message["content"]))
        .collect::<Vec<_>>()
        .join("\n")
}

fn model(body: &Value) -> String {
    body["model"].as_str().unwrap_or("fake-1").to_owned()
}

/// A text in pieces, as streams bring it: agents must put it together again.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(12).map(|piece| piece.iter().collect()).collect()
}

/// A small value that a JSON schema accepts, for agents that ask the model to fill in a form.
fn fitting(schema: &Value, depth: usize) -> Value {
    if let Some(first) = items(&schema["enum"]).next() {
        return first.clone();
    }
    let kind = schema["type"].as_str().unwrap_or("object").to_ascii_lowercase();
    match kind.as_str() {
        "object" if depth < 8 => schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, property)| (name.clone(), fitting(property, depth + 1)))
            .collect(),
        "array" => json!([]),
        "boolean" => json!(false),
        "integer" | "number" => json!(0),
        "null" => Value::Null,
        _ => json!("none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_the_wire() {
        for (path, wire) in [
            ("/v1/messages", Some(Wire::Anthropic)),
            ("/v1/messages/count_tokens", None),
            ("/v1/chat/completions", Some(Wire::Chat)),
            ("/v1/completions", None),
            ("/v1/responses", Some(Wire::Responses)),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", Some(Wire::Gemini)),
            ("/v1beta/models/gemini-2.5-pro:generateContent", Some(Wire::Gemini)),
            ("/v1beta/models/gemini-2.5-pro:countTokens", None),
            ("/api/chat", Some(Wire::Ollama)),
            ("/", None),
        ] {
            assert_eq!(Wire::of(path), wire, "{path}");
        }
    }

    #[test]
    fn forms_are_filled_in() {
        let form = json!({"type": "OBJECT", "properties": {"who": {"enum": ["user", "model"]},
            "why": {"type": "STRING"}, "score": {"type": "number"}}});
        assert_eq!(fitting(&form, 0), json!({"who": "user", "why": "none", "score": 0}));
    }
}
