//! Builds a model call: system prompt, history, this turn, and the block last.
//!
//! The author of an agent keeps the history in neutral messages and hands it over for each call.
//! What comes back is the part of the provider's request body that holds the messages. The history
//! is only read, so the block cannot get into it; tool results, memory and outside content are
//! wrapped; and whatever the history lacks for the provider's ordering rules is mended, and said.

mod anthropic;
mod gemini;
mod message;
mod ollama;
mod openai_chat;
mod openai_responses;
mod rounds;

pub use message::{Data, Message, Part, Provider, Role, ToolCall, ToolResult};
pub use rounds::Repair;

use serde_json::Value;

use crate::block::{Suffix, build_block};
use crate::budget::{Budget, MESSAGE_OVERHEAD, MessageSize, Plan, token_estimate};
use crate::wrap::{SessionKey, Wrapper};
use rounds::Rounds;

/// Tokens of the two tags around wrapped content.
const WRAPPING_TOKENS: usize = 100;

/// What a model call is made of.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'c> {
    /// The agent's own system prompt.
    pub system: &'c str,
    /// Earlier messages, oldest first.
    pub history: &'c [Message],
    /// The messages of this turn: what the user said, or what tools answered.
    pub turn: &'c [Message],
    /// Whether something suspicious was found in this turn's content.
    pub threat_detected: bool,
}

/// A model call, ready to be completed with model name and options.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// The members of the request body that hold system prompt and messages.
    pub body: Value,
    /// What had to be mended for the provider's rules.
    pub repairs: Vec<Repair>,
}

/// Why a call cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// A part stands in a message of the wrong role.
    #[error(
        "message {message} of the {role} holds {part}; put tool calls into assistant messages, \
         and results, memory and outside content into user messages"
    )]
    Misplaced {
        /// Its number, from 0, history and turn counted together.
        message: usize,
        /// `user` or `assistant`.
        role: &'static str,
        /// What it is.
        part: &'static str,
    },
    /// A native part that would change the meaning of the messages around it.
    #[error(
        "message {message} holds a native part that cannot be passed through; pass images, \
         documents and reasoning natively, all else as neutral parts"
    )]
    Native {
        /// Its number, from 0, history and turn counted together.
        message: usize,
    },
}

/// Builds model calls for one session.
///
/// ```
/// use wardkeep_policy::assemble::{ContextAssembler, Conversation, Message, Provider};
/// use wardkeep_policy::block::HARDCODED_SECURITY_SUFFIX;
/// use wardkeep_policy::wrap::SessionKey;
///
/// let assembler = ContextAssembler::new(SessionKey::new([9; 32]), Some("- No sudo".into()));
/// let turn = [Message::user("Tidy up the folder")];
/// let call = assembler.assemble(
///     Provider::OpenAiChat,
///     &Conversation { system: "You help.", history: &[], turn: &turn, threat_detected: false },
/// )?;
/// let last = call.body["messages"].as_array().unwrap().last().unwrap();
/// assert!(last["content"].as_str().unwrap().ends_with(HARDCODED_SECURITY_SUFFIX));
/// # Ok::<(), wardkeep_policy::assemble::AssembleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ContextAssembler {
    wrapper: Wrapper,
    key: SessionKey,
    policy: Option<String>,
    suffix: Suffix,
}

impl ContextAssembler {
    /// For a session with this key. `policy` is the text of a policy that was verified.
    #[must_use]
    pub fn new(key: SessionKey, policy: Option<String>) -> Self {
        Self { wrapper: Wrapper::new(key.clone()), key, policy, suffix: Suffix::KEPT }
    }

    /// Leaves the suffix out where the owner's signed configuration says so.
    #[must_use]
    pub fn with_suffix(mut self, suffix: Suffix) -> Self {
        self.suffix = suffix;
        self
    }

    /// Wraps with this session's nonces.
    #[must_use]
    pub fn wrapper(&self) -> &Wrapper {
        &self.wrapper
    }

    /// The block that ends the call.
    #[must_use]
    pub fn block(&self, threat_detected: bool) -> String {
        build_block(self.policy.as_deref(), threat_detected, self.suffix)
    }

    /// Builds the call.
    ///
    /// # Errors
    ///
    /// If a part stands where no provider allows it.
    pub fn assemble(
        &self,
        provider: Provider,
        conversation: &Conversation<'_>,
    ) -> Result<Assembled, AssembleError> {
        let messages = conversation.history.iter().chain(conversation.turn);
        let rounds = Rounds::of(messages, provider, &self.wrapper, &self.key)?;
        let block = self.block(conversation.threat_detected);
        let body = match provider {
            Provider::Anthropic => anthropic::body(conversation.system, &rounds.rounds, &block),
            Provider::OpenAiChat => openai_chat::body(conversation.system, &rounds.rounds, &block),
            Provider::OpenAiResponses => {
                openai_responses::body(conversation.system, &rounds.rounds, &block)
            }
            Provider::Gemini => gemini::body(conversation.system, &rounds.rounds, &block),
            Provider::Ollama => ollama::body(conversation.system, &rounds.rounds, &block),
        };
        Ok(Assembled { body, repairs: rounds.repairs })
    }

    /// How many of the oldest messages of the history must be left out to fit the budget, by
    /// estimate. The block's room is kept whatever else has to go.
    #[must_use]
    pub fn fit(&self, budget: &Budget, conversation: &Conversation<'_>) -> Plan {
        let budget = budget.for_block(&self.block(conversation.threat_detected));
        let turn = conversation.turn.iter().map(|message| size(message).tokens);
        let fixed = turn.fold(token_estimate(conversation.system), usize::saturating_add);
        let history: Vec<MessageSize> = conversation.history.iter().map(size).collect();
        budget.plan(fixed, &history)
    }
}

fn size(message: &Message) -> MessageSize {
    let part = |part: &Part| match part {
        Part::Text(text) => token_estimate(text),
        Part::ToolCall(call) => token_estimate(&call.name)
            .saturating_add(token_estimate(&call.arguments.to_string()))
            .saturating_add(MESSAGE_OVERHEAD),
        Part::ToolResult(result) => token_estimate(&result.text).saturating_add(WRAPPING_TOKENS),
        Part::Memory(data) | Part::External(data) => {
            token_estimate(&data.text).saturating_add(WRAPPING_TOKENS)
        }
        Part::Native { value, .. } => token_estimate(&value.to_string()),
    };
    let tokens = message.parts.iter().map(part).fold(MESSAGE_OVERHEAD, usize::saturating_add);
    let answers = message.parts.iter().any(|part| matches!(part, Part::ToolResult(_)));
    MessageSize { tokens, begins_round: message.role == Role::User && !answers }
}
