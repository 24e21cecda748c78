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
        let decoded: String = percent_decoded(path);
        let mut names = decoded.split('/').filter(|name| !name.is_empty()).rev();
        let (last, before) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        match (before, last) {
            (_, "messages") => Self::Turn(Wire::Anthropic),
            ("messages", "count_tokens") => Self::Count(Wire::Anthropic),
            ("chat", "completions") => Self::Turn(Wire::Chat),
            (_, "responses") => Self::Turn(Wire::Responses),
            ("api", "chat") => Self::Turn(Wire::Ollama),
            _ => match last.rsplit_once(':') {
                Some((_, "generateContent" | "streamGenerateContent")) => Self::Turn(Wire::Gemini),
                Some((_, "countTokens")) => Self::Count(Wire::Gemini),
                _ => Self::Other,
            },
        }
    }
}

fn percent_decoded(path: &str) -> String {
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
        ] {
            assert_eq!(Call::of(path), call, "{path}");
        }
    }
}
