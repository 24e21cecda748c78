//! Brings messages into the order that all providers accept: a user first, turns that alternate,
//! every tool call answered once and at once, nothing empty.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use super::AssembleError;
use super::message::{Message, Part, Provider, Role, ToolCall, ToolResult};
use crate::wrap::{SessionKey, WrapKind, Wrapper};

/// Says that the history does not begin where the conversation began.
const LEFT_OUT: &str = "[The beginning of this conversation was left out.]";
/// Answers a call whose result is not in the history.
const NO_RESULT: &str = "[No result of this call was recorded.]";
/// Longest id and tool name that all providers take.
const MAX_ID: usize = 40;
const MAX_NAME: usize = 64;

/// What had to be mended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// A result answers no call that is there: it goes out as wrapped text of the user.
    Orphan {
        /// Its id.
        call_id: String,
    },
    /// A call has no result: it is answered with a note.
    Unanswered {
        /// Its id.
        call_id: String,
    },
    /// An id was used twice or does not fit the providers' rules.
    RenamedId {
        /// As it was.
        call_id: String,
    },
    /// A tool's name does not fit the providers' rules.
    RenamedTool {
        /// As it was.
        name: String,
    },
    /// The first message was not the user's.
    NoFirstUser,
}

/// A stretch of one speaker.
#[derive(Debug)]
pub(super) enum Round {
    User(Vec<UserPart>),
    /// With the answers to its calls, in their order.
    Assistant(Vec<AssistantPart>, Vec<Answer>),
}

#[derive(Debug)]
pub(super) enum UserPart {
    Text(String),
    Native(Value),
}

#[derive(Debug)]
pub(super) enum AssistantPart {
    Text(String),
    Call(Call),
    Native(Value),
}

/// A call with an id and a name that every provider takes.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) signature: Option<String>,
}

impl Call {
    /// The arguments as an object, which most providers demand.
    pub(super) fn object(&self) -> Value {
        match &self.arguments {
            Value::Object(_) => self.arguments.clone(),
            Value::Null => Value::Object(Map::new()),
            other => Value::Object(Map::from_iter([("value".to_owned(), other.clone())])),
        }
    }
}

/// The answer to a call, wrapped.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) error: bool,
}

/// A conversation in order.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) rounds: Vec<Round>,
    pub(super) repairs: Vec<Repair>,
}

impl Rounds {
    pub(super) fn of<'m>(
        messages: impl Iterator<Item = &'m Message>,
        provider: Provider,
        wrapper: &Wrapper,
        key: &SessionKey,
    ) -> Result<Self, AssembleError> {
        let messages: Vec<&Message> = messages.collect();
        let mut sorter = Sorter {
            provider,
            wrapper,
            key,
            answers: HashMap::new(),
            taken: HashSet::new(),
            ids: HashSet::new(),
            out: Self { rounds: Vec::new(), repairs: Vec::new() },
        };
        sorter.find_answers(&messages);
        for (place, message) in messages.iter().enumerate() {
            match message.role {
                Role::User => sorter.user(place, message)?,
                Role::Assistant => sorter.assistant(place, message)?,
            }
        }
        if matches!(sorter.out.rounds.first(), Some(Round::Assistant(..))) {
            sorter.out.repairs.push(Repair::NoFirstUser);
            sorter.out.rounds.insert(0, Round::User(vec![UserPart::Text(LEFT_OUT.to_owned())]));
        }
        Ok(sorter.out)
    }
}

struct Sorter<'a> {
    provider: Provider,
    wrapper: &'a Wrapper,
    key: &'a SessionKey,
    /// Results by id, in order, with their place.
    answers: HashMap<&'a str, VecDeque<(Place, &'a ToolResult)>>,
    /// Results that a call has taken.
    taken: HashSet<Place>,
    /// Ids that are in use.
    ids: HashSet<String>,
    out: Rounds,
}

/// Message and part.
type Place = (usize, usize);

impl<'a> Sorter<'a> {
    fn find_answers(&mut self, messages: &[&'a Message]) {
        for (place, message) in messages.iter().enumerate() {
            for (part, result) in message.parts.iter().enumerate() {
                if let Part::ToolResult(result) = result {
                    let results = self.answers.entry(result.call_id.as_str()).or_default();
                    results.push_back(((place, part), result));
                }
            }
        }
    }

    fn user(&mut self, place: usize, message: &Message) -> Result<(), AssembleError> {
        let mut parts = Vec::new();
        for (index, part) in message.parts.iter().enumerate() {
            match part {
                Part::Text(text) => parts.extend(text_part(text).map(UserPart::Text)),
                Part::ToolCall(_) => {
                    return Err(AssembleError::Misplaced {
                        message: place,
                        role: "user",
                        part: "a tool call",
                    });
                }
                Part::ToolResult(result) => {
                    if !self.taken.contains(&(place, index)) {
                        self.out.repairs.push(Repair::Orphan { call_id: result.call_id.clone() });
                        parts.push(UserPart::Text(self.wrapped(result)));
                    }
                }
                Part::Memory(data) => {
                    let (kind, label) = (WrapKind::MemoryContext, data.label.as_deref());
                    let wrapped = self.wrapper.wrap(kind, &data.id, label, &data.text);
                    parts.push(UserPart::Text(wrapped.text));
                }
                Part::External(data) => {
                    let (kind, label) = (WrapKind::ExternalContent, data.label.as_deref());
                    let wrapped = self.wrapper.wrap(kind, &data.id, label, &data.text);
                    parts.push(UserPart::Text(wrapped.text));
                }
                Part::Native { provider, value } => {
                    if *provider == self.provider {
                        parts.push(UserPart::Native(self.native(place, Role::User, value)?));
                    }
                }
            }
        }
        if parts.is_empty() {
            return Ok(());
        }
        match self.out.rounds.last_mut() {
            Some(Round::User(before)) => before.extend(parts),
            _ => self.out.rounds.push(Round::User(parts)),
        }
        Ok(())
    }

    fn assistant(&mut self, place: usize, message: &Message) -> Result<(), AssembleError> {
        let (mut parts, mut answers) = (Vec::new(), Vec::new());
        for part in &message.parts {
            match part {
                Part::Text(text) => parts.extend(text_part(text).map(AssistantPart::Text)),
                Part::ToolCall(call) => {
                    let (call, answer) = self.call(place, call);
                    parts.push(AssistantPart::Call(call));
                    answers.push(answer);
                }
                Part::Native { provider, value } => {
                    if *provider == self.provider {
                        let value = self.native(place, Role::Assistant, value)?;
                        parts.push(AssistantPart::Native(value));
                    }
                }
                Part::ToolResult(_) | Part::Memory(_) | Part::External(_) => {
                    return Err(AssembleError::Misplaced {
                        message: place,
                        role: "assistant",
                        part: "data",
                    });
                }
            }
        }
        // Reasoning that leads to nothing is refused by those who sign it.
        while matches!(parts.last(), Some(AssistantPart::Native(_))) {
            parts.pop();
        }
        if parts.is_empty() {
            return Ok(());
        }
        match self.out.rounds.last_mut() {
            // Answers stand between two messages otherwise.
            Some(Round::Assistant(before, answered)) if answered.is_empty() => {
                before.extend(parts);
                *answered = answers;
            }
            _ => self.out.rounds.push(Round::Assistant(parts, answers)),
        }
        Ok(())
    }

    fn call(&mut self, place: usize, call: &ToolCall) -> (Call, Answer) {
        let id = self.wire_id(&call.id);
        let name = self.wire_name(&call.name);
        let waiting = self.answers.get_mut(call.id.as_str());
        let found = waiting.and_then(|results| {
            while results.front().is_some_and(|((message, _), _)| *message <= place) {
                results.pop_front();
            }
            results.pop_front()
        });
        let (text, error) = match found {
            Some((at, result)) => {
                self.taken.insert(at);
                (self.wrapped(result), result.error)
            }
            None => {
                self.out.repairs.push(Repair::Unanswered { call_id: call.id.clone() });
                let kind = WrapKind::ToolOutput;
                (self.wrapper.wrap(kind, &call.id, Some(&call.name), NO_RESULT).text, true)
            }
        };
        let answer = Answer { id: id.clone(), name: name.clone(), text, error };
        let call =
            Call { id, name, arguments: call.arguments.clone(), signature: call.signature.clone() };
        (call, answer)
    }

    fn wrapped(&self, result: &ToolResult) -> String {
        let kind = WrapKind::ToolOutput;
        self.wrapper.wrap(kind, &result.call_id, Some(&result.name), &result.text).text
    }

    /// An id that no other call has and that every provider takes.
    fn wire_id(&mut self, id: &str) -> String {
        if is_plain(id, MAX_ID) && self.ids.insert(id.to_owned()) {
            return id.to_owned();
        }
        self.out.repairs.push(Repair::RenamedId { call_id: id.to_owned() });
        let mut count = 0_u64;
        loop {
            let mac = self.key.mac("wardkeep call id 1", &[id.as_bytes(), &count.to_le_bytes()]);
            let hex: String = mac[..12].iter().map(|byte| format!("{byte:02x}")).collect();
            let made = format!("call_{hex}");
            if self.ids.insert(made.clone()) {
                return made;
            }
            count += 1;
        }
    }

    fn wire_name(&mut self, name: &str) -> String {
        if is_plain(name, MAX_NAME) {
            return name.to_owned();
        }
        self.out.repairs.push(Repair::RenamedTool { name: name.to_owned() });
        let fitting = |sign: char| if is_plain_sign(sign) { sign } else { '_' };
        let made: String = name.chars().take(MAX_NAME).map(fitting).collect();
        if made.is_empty() { "tool".to_owned() } else { made }
    }

    /// Passes a native part through if it cannot pose as something else.
    fn native(&self, message: usize, role: Role, value: &Value) -> Result<Value, AssembleError> {
        let kind = value.get("type").and_then(Value::as_str);
        let has = |keys: &[&str]| {
            value
                .as_object()
                .is_some_and(|members| keys.iter().any(|key| members.contains_key(*key)))
        };
        let fits = match (self.provider, role) {
            (Provider::Anthropic, Role::User) => matches!(kind, Some("image" | "document")),
            (Provider::Anthropic, Role::Assistant) => {
                matches!(kind, Some("thinking" | "redacted_thinking"))
            }
            (Provider::OpenAiChat, Role::User) => {
                matches!(kind, Some("image_url" | "input_audio" | "file"))
            }
            (Provider::OpenAiResponses, Role::User) => {
                matches!(kind, Some("input_image" | "input_file"))
            }
            (Provider::OpenAiResponses, Role::Assistant) => kind == Some("reasoning"),
            (Provider::Gemini, Role::User) => {
                has(&["inlineData", "fileData"])
                    && !has(&["text", "functionCall", "functionResponse"])
            }
            (Provider::Gemini, Role::Assistant) => {
                has(&["thought", "thoughtSignature"]) && !has(&["functionCall", "functionResponse"])
            }
            (Provider::OpenAiChat, Role::Assistant) | (Provider::Ollama, _) => false,
        };
        if fits { Ok(value.clone()) } else { Err(AssembleError::Native { message }) }
    }
}

/// Text that says something: blank text is refused by some providers.
fn text_part(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn is_plain(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.chars().all(is_plain_sign)
}

fn is_plain_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-')
}
