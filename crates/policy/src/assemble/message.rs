//! Messages as an agent keeps them, in no provider's shape.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whose API the call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, and what is compatible with it.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini, Self::Ollama];
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, and everything that is given to the model.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// What the user says.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, parts: vec![Part::Text(text.into())] }
    }

    /// What the model says.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, parts: vec![Part::Text(text.into())] }
    }

    /// What tools gave back.
    #[must_use]
    pub fn results(results: Vec<ToolResult>) -> Self {
        Self { role: Role::User, parts: results.into_iter().map(Part::ToolResult).collect() }
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text of the speaker.
    Text(String),
    /// The model asks for a tool; in messages of the assistant.
    ToolCall(ToolCall),
    /// What the tool gave back; in messages of the user. Goes out wrapped.
    ToolResult(ToolResult),
    /// What was read from durable memory; in messages of the user. Goes out wrapped.
    Memory(Data),
    /// What came from outside otherwise; in messages of the user. Goes out wrapped.
    External(Data),
    /// A part in a provider's own shape, byte for byte: images, documents, reasoning with its
    /// signature. Goes out to that provider only.
    Native {
        /// Whose shape it is.
        provider: Provider,
        /// The part.
        value: Value,
    },
}

/// The model asks for a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// By which the result is matched.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, an object.
    pub arguments: Value,
    /// A provider's signature that has to come back with the call (Gemini's `thoughtSignature`).
    #[serde(default)]
    pub signature: Option<String>,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The text.
    pub text: String,
    /// Whether the tool failed.
    #[serde(default)]
    pub error: bool,
}

/// Content that is data, not instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Stays the same from turn to turn, so that the same bytes go out.
    pub id: String,
    /// Where it comes from, if that is to be shown.
    #[serde(default)]
    pub label: Option<String>,
    /// The text.
    pub text: String,
}
