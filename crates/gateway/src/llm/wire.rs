//! The ways in which agents talk to models.

use std::fmt;

/// A model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, and what is compatible with it.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
}

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A turn of the model.
    Turn(Wire),
    /// How long a turn would be: it counts the block, too.
    Count(Wire),
    /// The reply to an earlier turn, which the provider has kept.
    Stored(Wire),
    /// Anything else, which passes as it is.
    Other,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::Chat, Self::Responses, Self::Gemini, Self::Ollama];

    /// In a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai-chat",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Whether clients of this wire take comments in a stream that says nothing for long.
    #[must_use]
    pub const fn keep_alive(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("event: ping\ndata: {\"type\": \"ping\"}\n\n"),
            Self::Chat | Self::Responses => Some(": wardkeep is looking at a tool call\n\n"),
            Self::Gemini | Self::Ollama => None,
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Call {
    /// What a `POST` to this path, without its query, asks for.
    ///
    /// Slashes at the end and between are passed over as servers do it, so that no other spelling of
    /// the path goes past.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let decoded = percent_decoded(path);
        let names: Vec<&str> = decoded.split('/').filter(|name| !name.is_empty()).collect();
        let (before, last) = match names.as_slice() {
            [.., before, last] => (*before, *last),
            [last] => ("", *last),
            [] => return Self::Other,
        };
        let own = is_base(names.get(..names.len() - 1).unwrap_or_default());
        match (before, last) {
            (_, "messages") if own => Self::Turn(Wire::Anthropic),
            ("messages", "count_tokens") => Self::Count(Wire::Anthropic),
            ("chat", "completions") => Self::Turn(Wire::Chat),
            (_, "responses") if own => Self::Turn(Wire::Responses),
            ("api", "chat") => Self::Turn(Wire::Ollama),
            (_, "cancel") => match names.as_slice() {
                [base @ .., "responses", _, _] if is_base(base) => Self::Stored(Wire::Responses),
                _ => Self::Other,
            },
            _ => match last.rsplit_once(':') {
                Some((_, "generateContent" | "streamGenerateContent")) => Self::Turn(Wire::Gemini),
                Some((_, "countTokens")) => Self::Count(Wire::Gemini),
                _ => Self::Other,
            },
        }
    }

    /// What a `GET` of this path asks for.
    pub(crate) fn of_get(path: &str) -> Self {
        let decoded = percent_decoded(path);
        let names: Vec<&str> = decoded.split('/').filter(|name| !name.is_empty()).collect();
        match names.as_slice() {
            [base @ .., "responses", _] if is_base(base) => Self::Stored(Wire::Responses),
            [.., "chat", "completions", _] => Self::Stored(Wire::Chat),
            _ => Self::Other,
        }
    }

    /// The id in a path that asks for the reply to an earlier turn.
    pub(crate) fn stored_id(path: &str) -> String {
        let decoded = percent_decoded(path);
        let mut names = decoded.split('/').filter(|name| !name.is_empty()).rev();
        names.find(|name| *name != "cancel").unwrap_or_default().to_owned()
    }
}

/// Whether a turn may stand behind these parts of a path: a version, or words such as `anthropic`; no
/// ids, which only something that is listed has (`/v1/threads/ID/messages`).
fn is_base(names: &[&str]) -> bool {
    let version = |name: &str| {
        let number = name.strip_prefix('v').unwrap_or_default();
        number.starts_with(|sign: char| sign.is_ascii_digit()) && number.len() <= 12
    };
    let word = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    names.last().is_none_or(|name| version(name) || word(name)) && !names.contains(&"threads")
}

/// Whether a path has parts that lead up, or parameters: servers differ in what they make of it.
pub(crate) fn leads_up(path: &str) -> bool {
    percent_decoded(path).split(['/', '\\']).any(|name| {
        let name = name.split(';').next().unwrap_or_default();
        name == ".." || name == "."
    })
}

pub(crate) fn percent_decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let coded = hex.filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(coded.unwrap_or(*byte));
        at += if coded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_the_wire() {
        for (path, call) in [
            ("/v1/messages", Call::Turn(Wire::Anthropic)),
            ("/v1//messages/", Call::Turn(Wire::Anthropic)),
            ("/v1/%6dessages", Call::Turn(Wire::Anthropic)),
            ("/v1/messages/count_tokens", Call::Count(Wire::Anthropic)),
            ("/v1/messages/batches", Call::Other),
            ("/openai/v1/chat/completions", Call::Turn(Wire::Chat)),
            ("/v1/completions", Call::Other),
            ("/v1/responses", Call::Turn(Wire::Responses)),
            ("/v1beta/models/g:streamGenerateContent", Call::Turn(Wire::Gemini)),
            ("/v1beta/models/g%3AgenerateContent", Call::Turn(Wire::Gemini)),
            ("/v1beta/models/g:countTokens", Call::Count(Wire::Gemini)),
            ("/api/chat", Call::Turn(Wire::Ollama)),
            ("/api/tags", Call::Other),
            ("/", Call::Other),
            ("", Call::Other),
            ("/messages", Call::Turn(Wire::Anthropic)),
            ("/anthropic/messages", Call::Turn(Wire::Anthropic)),
            ("/backend-api/codex/responses", Call::Turn(Wire::Responses)),
            ("/openai/deployments/gpt-4.1/chat/completions", Call::Turn(Wire::Chat)),
            ("/v1/responses/resp_1/cancel", Call::Stored(Wire::Responses)),
            // What these are is not known: they pass unread, or are refused.
            ("/v1/threads/thread_1/messages", Call::Other),
            ("/v1/threads/v1/messages", Call::Other),
            ("/v1/forms/f1/responses", Call::Other),
            ("/v1/messages;a", Call::Other),
            ("/V1/Messages", Call::Other),
            ("/v1/responses/compact", Call::Other),
            ("/v1/projects/p/models/c:streamRawPredict", Call::Other),
            ("/api/generate", Call::Other),
        ] {
            assert_eq!(Call::of(path), call, "{path}");
        }
        for (path, call, id) in [
            ("/v1/responses/resp_1", Call::Stored(Wire::Responses), "resp_1"),
            ("/v1//responses/resp%5f1/", Call::Stored(Wire::Responses), "resp_1"),
            ("/v1/chat/completions/chatcmpl-1", Call::Stored(Wire::Chat), "chatcmpl-1"),
            ("/v1/responses/resp_1/cancel", Call::Other, "resp_1"),
            ("/v1/responses/resp_1/input_items", Call::Other, "input_items"),
            ("/v1/models", Call::Other, "models"),
        ] {
            assert_eq!((Call::of_get(path), Call::stored_id(path).as_str()), (call, id), "{path}");
        }
        for path in ["/v1/messages/x/..", "/v1/%2e%2e/a", "/a/..;x/b", "/./v1", "/a\\..\\b"] {
            assert!(leads_up(path), "{path}");
        }
        assert!(!leads_up("/v1beta/models/gemini-2.5..x:generateContent"));
    }
}
