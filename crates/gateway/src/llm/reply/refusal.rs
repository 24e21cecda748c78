//! Answers of our own, in each wire's form: an agent can read and show them.

use super::super::json::quoted;
use super::super::wire::Wire;

/// What the answers say who wrote them.
const MODEL: &str = "wardkeep";

/// A turn of the model that says `text` and nothing else: its content type and its bytes.
pub(crate) fn refusal(
    wire: Wire,
    stream: bool,
    model: Option<&str>,
    text: &str,
) -> (&'static str, Vec<u8>) {
    let (model, text) = (quoted(model.unwrap_or(MODEL)), quoted(text));
    let events = |events: &[(&str, String)]| {
        let one = |(name, data): &(&str, String)| match *name {
            "" => format!("data: {data}\n\n"),
            name => format!("event: {name}\ndata: {data}\n\n"),
        };
        ("text/event-stream", events.iter().map(one).collect::<String>().into_bytes())
    };
    let document = |text: String| ("application/json", text.into_bytes());
    match (wire, stream) {
        (Wire::Anthropic, false) => document(anthropic(&model, &format!("{{\"type\":\"text\",\"text\":{text}}}"), "\"end_turn\"")),
        (Wire::Anthropic, true) => events(&[
            ("message_start", format!("{{\"type\":\"message_start\",\"message\":{}}}", anthropic(&model, "", "null"))),
            ("content_block_start", "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}".to_owned()),
            ("content_block_delta", format!("{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}")),
            ("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":0}".to_owned()),
            ("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":0}}".to_owned()),
            ("message_stop", "{\"type\":\"message_stop\"}".to_owned()),
        ]),
        (Wire::Chat, false) => document(chat(&model, "chat.completion", &format!("\"message\":{{\"role\":\"assistant\",\"content\":{text},\"refusal\":null}}"), "\"stop\"")),
        (Wire::Chat, true) => events(&[
            ("", chat(&model, "chat.completion.chunk", &format!("\"delta\":{{\"role\":\"assistant\",\"content\":{text}}}"), "null")),
            ("", chat(&model, "chat.completion.chunk", "\"delta\":{}", "\"stop\"")),
            ("", "[DONE]".to_owned()),
        ]),
        (Wire::Responses, false) => document(response(&model, &item(&text), "completed")),
        (Wire::Responses, true) => {
            let at = "\"item_id\":\"msg_wardkeep\",\"output_index\":0,\"content_index\":0";
            let list = [
                ("response.created", format!("\"response\":{}", response(&model, "", "in_progress"))),
                ("response.output_item.added", "\"output_index\":0,\"item\":{\"id\":\"msg_wardkeep\",\"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}".to_owned()),
                ("response.content_part.added", format!("{at},\"part\":{}", part("\"\""))),
                ("response.output_text.delta", format!("{at},\"delta\":{text}")),
                ("response.output_text.done", format!("{at},\"text\":{text}")),
                ("response.content_part.done", format!("{at},\"part\":{}", part(&text))),
                ("response.output_item.done", format!("\"output_index\":0,\"item\":{}", item(&text))),
                ("response.completed", format!("\"response\":{}", response(&model, &item(&text), "completed"))),
            ];
            let numbered: Vec<(&str, String)> = list
                .iter()
                .enumerate()
                .map(|(number, (kind, rest))| (*kind, format!("{{\"type\":\"{kind}\",\"sequence_number\":{number},{rest}}}")))
                .collect();
            events(&numbered)
        }
        (Wire::Gemini, _) => {
            let data = format!(
                "{{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":{text}}}]}},\"finishReason\":\"STOP\",\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":0,\"candidatesTokenCount\":0,\"totalTokenCount\":0}},\"modelVersion\":{model}}}"
            );
            if stream { events(&[("", data)]) } else { document(data) }
        }
        (Wire::Ollama, _) => {
            let line = format!(
                "{{\"model\":{model},\"created_at\":\"1970-01-01T00:00:00Z\",\"message\":{{\"role\":\"assistant\",\"content\":{text}}},\"done_reason\":\"stop\",\"done\":true,\"total_duration\":0,\"load_duration\":0,\"prompt_eval_count\":0,\"prompt_eval_duration\":0,\"eval_count\":0,\"eval_duration\":0}}"
            );
            match stream {
                true => ("application/x-ndjson", format!("{line}\n").into_bytes()),
                false => document(line),
            }
        }
    }
}

fn anthropic(model: &str, content: &str, stop: &str) -> String {
    format!(
        "{{\"id\":\"msg_wardkeep\",\"type\":\"message\",\"role\":\"assistant\",\"model\":{model},\"content\":[{content}],\"stop_reason\":{stop},\"stop_sequence\":null,\"usage\":{{\"input_tokens\":0,\"output_tokens\":0}}}}"
    )
}

fn chat(model: &str, object: &str, said: &str, finish: &str) -> String {
    format!(
        "{{\"id\":\"chatcmpl-wardkeep\",\"object\":\"{object}\",\"created\":0,\"model\":{model},\"choices\":[{{\"index\":0,{said},\"logprobs\":null,\"finish_reason\":{finish}}}],\"usage\":{{\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0}}}}"
    )
}

fn part(text: &str) -> String {
    format!("{{\"type\":\"output_text\",\"text\":{text},\"annotations\":[]}}")
}

fn item(text: &str) -> String {
    format!(
        "{{\"id\":\"msg_wardkeep\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[{}]}}",
        part(text)
    )
}

fn response(model: &str, output: &str, status: &str) -> String {
    format!(
        "{{\"id\":\"resp_wardkeep\",\"object\":\"response\",\"created_at\":0,\"status\":\"{status}\",\"error\":null,\"incomplete_details\":null,\"model\":{model},\"output\":[{output}],\"parallel_tool_calls\":true,\"tools\":[],\"usage\":{{\"input_tokens\":0,\"input_tokens_details\":{{\"cached_tokens\":0}},\"output_tokens\":0,\"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":0}}}}"
    )
}

/// An error in each wire's form.
pub(crate) fn error_body(wire: Option<Wire>, status: u16, message: &str) -> Vec<u8> {
    let said = quoted(message);
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let text = match wire {
        Some(Wire::Anthropic) => {
            format!("{{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":{said}}}}}")
        }
        Some(Wire::Gemini) => {
            let name = match status {
                400..=499 => "INVALID_ARGUMENT",
                _ => "UNAVAILABLE",
            };
            format!("{{\"error\":{{\"code\":{status},\"message\":{said},\"status\":\"{name}\"}}}}")
        }
        Some(Wire::Ollama) => format!("{{\"error\":{said}}}"),
        _ => format!(
            "{{\"error\":{{\"message\":{said},\"type\":\"{kind}\",\"param\":null,\"code\":\"wardkeep\"}}}}"
        ),
    };
    text.into_bytes()
}

/// An error in the middle of a stream.
pub(crate) fn stream_error(wire: Wire, message: &str) -> Vec<u8> {
    let body = String::from_utf8_lossy(&error_body(Some(wire), 502, message)).into_owned();
    match wire {
        Wire::Anthropic => format!("event: error\ndata: {body}\n\n"),
        Wire::Chat | Wire::Gemini => format!("data: {body}\n\n"),
        Wire::Responses => format!(
            "event: error\ndata: {{\"type\":\"error\",\"code\":\"wardkeep\",\"message\":{},\"param\":null}}\n\n",
            quoted(message)
        ),
        Wire::Ollama => format!("{body}\n"),
    }
    .into_bytes()
}
