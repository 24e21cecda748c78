//! What comes back: tool calls are held until they are whole and judged, text passes a window in
//! which secrets and the system prompt are looked for; all else goes through byte for byte.
//!
//! Nothing here reads or waits: bytes are fed, steps are taken, rulings are given.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod refusal;
mod responses;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use wardkeep_detect::leak::{OutputGuard, StreamGuard};

use super::json::{At, BadJson, Doc, Edits, quoted};
use super::sse::{BadStream, Event, Framing, Splitter};
use super::wire::Wire;

pub(crate) use refusal::{error_body, refusal, stream_error};

/// Bytes of tool calls that are held in one reply.
const HELD: usize = 8 << 20;
/// Texts, calls or choices that are open at once.
const OPEN: usize = 512;
/// Rules that a report names.
const RULES: usize = 16;
/// Bytes of what the model said that are remembered.
const SPOKEN: usize = 64 << 10;

/// A tool call that the model wants to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Knows it again inside of one reply.
    key: String,
    /// The provider's id for it; may be empty.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What the tool is given, as the model wrote it: JSON, or a text for tools that take one.
    pub arguments: String,
}

/// What is said of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The agent may see it.
    Allow,
    /// The agent sees this text in its place.
    Deny(String),
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Feed more.
    More,
    /// Judge this, and say it with [`Reply::ruled`].
    Judge(ToolCall),
}

/// What a reply was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens that were read, where it was said.
    pub input_tokens: Option<u64>,
    /// Tokens that were written, where it was said.
    pub output_tokens: Option<u64>,
    /// Why it ended, in the provider's word.
    pub stop: Option<String>,
    /// Tool calls that were let go.
    pub allowed: usize,
    /// Tool calls that were replaced.
    pub denied: usize,
    /// Places of the text that were withheld.
    pub withheld: usize,
    /// The rules that found them.
    pub rules: Vec<String>,
}

/// A reply on its way to the agent.
pub struct Reply {
    wire: Wire,
    state: State,
    shared: Shared,
    splitter: Splitter,
    again: Option<Event>,
    ended: bool,
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reply").field("wire", &self.wire).finish_non_exhaustive()
    }
}

enum State {
    Anthropic(anthropic::State),
    Chat(chat::State),
    Responses(responses::State),
    Gemini(gemini::State),
    Ollama(ollama::State),
}

impl State {
    fn of(wire: Wire) -> Self {
        match wire {
            Wire::Anthropic => Self::Anthropic(anthropic::State::default()),
            Wire::Chat => Self::Chat(chat::State::default()),
            Wire::Responses => Self::Responses(responses::State::default()),
            Wire::Gemini => Self::Gemini(gemini::State::default()),
            Wire::Ollama => Self::Ollama(ollama::State::default()),
        }
    }

    fn event(&mut self, event: &Event, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        match self {
            Self::Anthropic(state) => state.event(event, shared, out),
            Self::Chat(state) => state.event(event, shared, out),
            Self::Responses(state) => state.event(event, shared, out),
            Self::Gemini(state) => state.event(event, shared, out),
            Self::Ollama(state) => state.event(event, shared, out),
        }
    }

    fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        match self {
            Self::Anthropic(state) => state.end(shared, out),
            Self::Chat(state) => state.end(shared, out),
            Self::Responses(state) => state.end(shared, out),
            Self::Gemini(state) => state.end(shared, out),
            Self::Ollama(state) => state.end(shared, out),
        }
    }
}

/// Whether an event is done with.
enum Flow {
    Done,
    Ask(ToolCall),
}

type Flowing = Result<Flow, BadStream>;

/// What all wires need.
struct Shared {
    guard: Option<Arc<OutputGuard>>,
    /// What the user asked, which is no secret to the user.
    question: String,
    judging: bool,
    texts: BTreeMap<(u64, u64), StreamGuard<Arc<OutputGuard>>>,
    rulings: HashMap<String, Ruling>,
    report: Report,
    /// What the model said, and gave to tools, as far as it is remembered.
    spoken: String,
}

impl Reply {
    /// A reply in a stream. Text is held against `guard`, where there is one; tool calls are judged
    /// where `judging` says so. An event may have `most` bytes.
    #[must_use]
    pub fn new(
        wire: Wire,
        guard: Option<Arc<OutputGuard>>,
        question: &str,
        judging: bool,
        most: usize,
    ) -> Self {
        let framing = if wire == Wire::Ollama { Framing::Lines } else { Framing::Events };
        let shared = Shared {
            guard,
            question: question.to_owned(),
            judging,
            texts: BTreeMap::new(),
            rulings: HashMap::new(),
            report: Report::default(),
            spoken: String::new(),
        };
        Self {
            wire,
            state: State::of(wire),
            shared,
            splitter: Splitter::new(framing, most),
            again: None,
            ended: false,
        }
    }

    /// Takes the next bytes in.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.splitter.feed(bytes);
    }

    /// Says that nothing more comes.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// Goes as far as it can; what may be seen is put into `out`.
    ///
    /// # Errors
    /// When the reply is not what it must be: nothing more of it may be seen.
    pub fn step(&mut self, out: &mut Vec<u8>) -> Result<Step, BadStream> {
        loop {
            let event = match self.again.take() {
                Some(event) => Some(event),
                None => match self.splitter.next()? {
                    Some(event) => Some(event),
                    None if self.ended => self.splitter.rest()?,
                    None => None,
                },
            };
            let flow = match &event {
                Some(event) => self.state.event(event, &mut self.shared, out)?,
                None if self.ended => self.state.end(&mut self.shared, out)?,
                None => return Ok(Step::More),
            };
            match flow {
                Flow::Ask(call) => {
                    self.again = event;
                    return Ok(Step::Judge(call));
                }
                Flow::Done if event.is_none() => return Ok(Step::More),
                Flow::Done => {}
            }
        }
    }

    /// Lets go of the text that is safe, where the rest of the reply is lost; calls stay held.
    pub fn abandon(&mut self, out: &mut Vec<u8>) {
        // Calls that wait for a ruling are asked for again, and then forgotten.
        let _ = self.state.end(&mut self.shared, out);
    }

    /// A whole reply in one document: the next call to judge, or the document as it may be seen.
    ///
    /// # Errors
    /// When it is not what it must be.
    pub fn whole(&mut self, body: &[u8]) -> Result<Whole, BadStream> {
        let doc = Doc::parse(body)?;
        let mut edits = Edits::default();
        let flow = match &mut self.state {
            State::Anthropic(_) => anthropic::whole(&doc, Doc::ROOT, &mut self.shared, &mut edits),
            State::Chat(_) => chat::whole(&doc, &mut self.shared, &mut edits),
            State::Responses(_) => responses::whole(&doc, &mut self.shared, &mut edits),
            State::Gemini(state) => state.whole(&doc, &mut self.shared, &mut edits),
            State::Ollama(_) => ollama::whole(&doc, &mut self.shared, &mut edits),
        }?;
        Ok(match flow {
            Flow::Ask(call) => Whole::Judge(call),
            Flow::Done if edits.is_empty() => Whole::Same,
            Flow::Done => Whole::Changed(edits.apply(body)),
        })
    }

    /// Says what becomes of a call.
    pub fn ruled(&mut self, call: &ToolCall, ruling: Ruling) {
        match ruling {
            Ruling::Allow => self.shared.report.allowed += 1,
            Ruling::Deny(_) => self.shared.report.denied += 1,
        }
        self.shared.rulings.insert(call.key.clone(), ruling);
        let given = serde_json::from_str::<serde_json::Value>(&call.arguments);
        self.shared.given(&given.unwrap_or(serde_json::Value::Null));
    }

    /// What the model said so far, and the texts that it gave to tools; only so much that it is known again.
    #[must_use]
    pub fn spoken(&self) -> &str {
        &self.shared.spoken
    }

    /// What it was, as far as it is known by now.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.shared.report
    }
}

/// A whole reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Whole {
    /// Judge this, say it with [`Reply::ruled`], and ask again.
    Judge(ToolCall),
    /// It may be seen as it is.
    Same,
    /// It may be seen as this.
    Changed(Vec<u8>),
}

impl Shared {
    fn spoke(&mut self, text: &str) {
        let room = SPOKEN.saturating_sub(self.spoken.len());
        self.spoken.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn given(&mut self, value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                self.spoke("\n");
                self.spoke(text);
                self.spoke("\n");
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| self.given(item)),
            serde_json::Value::Object(members) => {
                members.values().for_each(|member| self.given(member));
            }
            _ => {}
        }
    }

    /// Lets the next part of a text go as far as it is safe.
    fn text(&mut self, key: (u64, u64), text: &str) -> Result<String, BadStream> {
        self.spoke(text);
        let Some(guard) = &self.guard else { return Ok(text.to_owned()) };
        if !self.texts.contains_key(&key) {
            if self.texts.len() >= OPEN {
                return Err(BadStream::TooMuch);
            }
            let stream = StreamGuard::new(Arc::clone(guard)).redacting().knowing(&self.question);
            self.texts.insert(key, stream);
        }
        let stream = self.texts.get_mut(&key);
        Ok(stream.map(|stream| stream.feed(text).to_owned()).unwrap_or_default())
    }

    /// Ends a text, and gives what was still held of it.
    fn rest(&mut self, key: (u64, u64)) -> String {
        let Some(stream) = self.texts.remove(&key) else { return String::new() };
        let ending = stream.finish();
        self.found(ending.scan.findings.iter().map(|finding| finding.rule.to_string()));
        ending.text
    }

    fn found(&mut self, rules: impl Iterator<Item = String>) {
        for rule in rules {
            self.report.withheld += 1;
            if self.report.rules.len() < RULES && !self.report.rules.contains(&rule) {
                self.report.rules.push(rule);
            }
        }
    }

    /// A whole text as it may be seen, where that is another.
    fn redacted(&mut self, text: &str, counts: bool) -> Option<String> {
        if counts {
            self.spoke(text);
            self.spoke("\n");
        }
        let guard = self.guard.as_ref()?;
        let mut stream = StreamGuard::new(Arc::clone(guard)).redacting().knowing(&self.question);
        let mut out = stream.feed(text).to_owned();
        let ending = stream.finish();
        out.push_str(&ending.text);
        if counts {
            self.found(ending.scan.findings.iter().map(|finding| finding.rule.to_string()));
        }
        (out != text).then_some(out)
    }

    /// Replaces a string by what may be seen of it.
    fn edit_text(&mut self, doc: &Doc<'_>, at: Option<At>, counts: bool, edits: &mut Edits) {
        let text = at.and_then(|at| Some((at, doc.text(at)?)));
        if let Some((at, text)) = text
            && let Some(seen) = self.redacted(&text, counts)
        {
            edits.replace(doc.span(at), quoted(&seen));
        }
    }

    /// The ruling on a call; nothing while there is none.
    fn ruling(&self, key: &str) -> Option<&Ruling> {
        const ALLOW: &Ruling = &Ruling::Allow;
        if self.judging { self.rulings.get(key) } else { Some(ALLOW) }
    }

    fn tokens(
        &mut self,
        doc: &Doc<'_>,
        usage: Option<At>,
        names: (&str, &str),
    ) -> Result<(), BadJson> {
        if let Some(usage) = usage {
            let input = doc.number(usage, names.0)?;
            let output = doc.number(usage, names.1)?;
            self.report.input_tokens = input.or(self.report.input_tokens);
            self.report.output_tokens = output.or(self.report.output_tokens);
        }
        Ok(())
    }

    fn model(&mut self, doc: &Doc<'_>, at: At, name: &str) -> Result<(), BadJson> {
        if self.report.model.is_none() {
            self.report.model =
                doc.string(at, name)?.map(|model| model.chars().take(128).collect());
        }
        Ok(())
    }

    fn stopped(&mut self, why: Option<&str>) {
        if let Some(why) = why {
            self.report.stop = Some(why.chars().take(64).collect());
        }
    }
}

/// A tool call that is being put together.
#[derive(Debug, Clone, Default)]
struct Partial {
    id: String,
    name: String,
    arguments: String,
}

impl Partial {
    fn grow(&mut self, text: &str) -> Result<(), BadStream> {
        self.arguments.push_str(text);
        if self.arguments.len() > HELD { Err(BadStream::TooMuch) } else { Ok(()) }
    }

    fn call(&self, key: String) -> ToolCall {
        let (id, name) = (self.id.clone(), self.name.clone());
        ToolCall { key, id, name, arguments: self.arguments.clone() }
    }
}

/// An event by its type.
fn typed(data: &str) -> Vec<u8> {
    let kind = Doc::parse(data.as_bytes()).ok().and_then(|doc| {
        doc.string(Doc::ROOT, "type").ok().flatten().map(std::borrow::Cow::into_owned)
    });
    format!("event: {}\ndata: {data}\n\n", kind.unwrap_or_default()).into_bytes()
}
