//! What comes back: tool calls are held until they are whole and judged, text passes a window in
//! which secrets and the system prompt are looked for; all else goes through byte for byte.
//!
//! Nothing here reads or waits: bytes are fed, steps are taken, rulings are given.

mod anthropic;
mod chat;
mod gemini;
mod leaves;
mod ollama;
mod refusal;
mod responses;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use wardkeep_detect::leak::OutputGuard;

use super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::sse::{BadStream, Event, Framing, Splitter};
use super::wire::Wire;
use text::{Text, Tokens};

pub(crate) use refusal::{error_body, refusal, stream_error};

/// Bytes of tool calls that are held in one reply.
const HELD: usize = 8 << 20;
/// Texts, calls or choices that are open at once.
const OPEN: usize = 512;
/// Rules that a report names.
const RULES: usize = 16;
/// Bytes of what the model said that are remembered.
const SPOKEN: usize = 64 << 10;
/// Strings that are known to say nothing, and how long they may be.
const CLEAN: (usize, usize) = (64, 128);

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
/// Knows a text again.
type Key = (u64, u64);

/// What all wires need.
struct Shared {
    guard: Option<Arc<OutputGuard>>,
    /// What the user asked, which is no secret to the user.
    question: String,
    judging: bool,
    /// Whether all texts of the reply are read as one.
    one_voice: bool,
    texts: BTreeMap<Key, Text>,
    /// What was seen last of texts that ended, and of them all.
    tails: BTreeMap<Key, String>,
    last: String,
    /// What stood before a text.
    before: BTreeMap<Key, String>,
    /// The single tokens of texts, where they are told.
    tokens: BTreeMap<Key, Tokens>,
    /// Where the values of a document begin that were looked at.
    looked_at: Vec<usize>,
    /// Strings that came before and say nothing.
    clean: BTreeSet<String>,
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
            one_voice: matches!(wire, Wire::Anthropic | Wire::Responses),
            texts: BTreeMap::new(),
            tails: BTreeMap::new(),
            last: String::new(),
            before: BTreeMap::new(),
            tokens: BTreeMap::new(),
            looked_at: Vec::new(),
            clean: BTreeSet::new(),
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
        self.shared.anew();
        // Google's API answers with a list where a stream was asked for, but not as events.
        let list = self.wire == Wire::Gemini && doc.kind(Doc::ROOT) == Kind::Array;
        if doc.kind(Doc::ROOT) != Kind::Object && !list {
            return Err(BadStream::Parts);
        }
        let flow = match &mut self.state {
            State::Anthropic(_) => anthropic::whole(&doc, Doc::ROOT, &mut self.shared, &mut edits),
            State::Chat(_) => chat::whole(&doc, &mut self.shared, &mut edits),
            State::Responses(_) => responses::whole(&doc, &mut self.shared, &mut edits),
            State::Gemini(state) => state.whole(&doc, &mut self.shared, &mut edits),
            State::Ollama(_) => ollama::whole(&doc, &mut self.shared, &mut edits),
        }?;
        if matches!(flow, Flow::Done) {
            self.shared.leaves(&doc, &mut edits)?;
        }
        Ok(match flow {
            Flow::Ask(call) => Whole::Judge(call),
            Flow::Done if edits.is_empty() => Whole::Same,
            Flow::Done => Whole::Changed(edits.apply(body)),
        })
    }

    /// An error of the model's server as it may be seen, where that is another.
    #[must_use]
    pub fn error(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        self.shared.anew();
        let mut edits = Edits::default();
        // No agent takes calls from an error.
        let judging = std::mem::replace(&mut self.shared.judging, false);
        let read = Doc::parse(body).map_err(BadStream::from);
        let looked = read.and_then(|doc| self.shared.leaves(&doc, &mut edits));
        self.shared.judging = judging;
        if looked.is_ok() {
            return (!edits.is_empty()).then(|| edits.apply(body));
        }
        let text = std::str::from_utf8(body).ok()?;
        self.shared.leaf(text, true).map(String::into_bytes)
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

    /// Begins with another document.
    fn anew(&mut self) {
        self.looked_at.clear();
    }

    /// Says that a value needs no other look.
    fn looked(&mut self, doc: &Doc<'_>, at: At) {
        self.looked_at.push(doc.span(at).start);
    }

    fn looked_if(&mut self, doc: &Doc<'_>, at: Option<At>) {
        if let Some(at) = at {
            self.looked(doc, at);
        }
    }

    /// Lets the next part of a text go as far as it is safe.
    fn text(&mut self, key: Key, text: &str) -> Result<String, BadStream> {
        self.spoke(text);
        let Some(guard) = &self.guard else { return Ok(text.to_owned()) };
        if !self.texts.contains_key(&key) {
            if self.texts.len() >= OPEN {
                return Err(BadStream::TooMuch);
            }
            let before = self.stood_before(key);
            self.texts.insert(key, Text::new(Arc::clone(guard), &self.question, &before));
            limited(&mut self.before).insert(key, before);
        }
        let open = self.texts.get_mut(&key);
        Ok(open.map(|open| open.feed(text)).unwrap_or_default())
    }

    /// What the agent reads right before a text: a secret may be cut in two by their boundary.
    fn stood_before(&self, key: Key) -> String {
        if let Some(tail) = self.tails.get(&key) {
            return tail.clone();
        }
        if !self.one_voice {
            return String::new();
        }
        let open = self.texts.range(..key).next_back();
        open.map_or_else(|| self.last.clone(), |(_, open)| open.tail())
    }

    /// Ends a text, and gives what was still held of it.
    fn rest(&mut self, key: Key) -> String {
        let Some(text) = self.texts.remove(&key) else { return String::new() };
        let (rest, tail, rules) = text.finish();
        self.found(rules.into_iter());
        self.last.clone_from(&tail);
        limited(&mut self.tails).insert(key, tail);
        rest
    }

    fn found(&mut self, rules: impl Iterator<Item = String>) {
        for rule in rules {
            self.report.withheld += 1;
            if self.report.rules.len() < RULES && !self.report.rules.contains(&rule) {
                self.report.rules.push(rule);
            }
        }
    }

    /// A whole text as it may be seen, where that is another. `before` is what the agent reads right before
    /// it, and becomes what stands before the next.
    fn redacted(&mut self, text: &str, before: &mut String, counts: bool) -> Option<String> {
        if counts {
            self.spoke(text);
            self.spoke("\n");
        }
        let guard = self.guard.as_ref()?;
        let mut one = Text::new(Arc::clone(guard), &self.question, before);
        let mut out = one.feed(text);
        let (rest, tail, rules) = one.finish();
        out.push_str(&rest);
        *before = tail;
        if counts {
            self.found(rules.into_iter());
        }
        (out != text).then_some(out)
    }

    /// Replaces a string by what may be seen of it.
    fn edit_text(
        &mut self,
        doc: &Doc<'_>,
        at: Option<At>,
        before: &mut String,
        counts: bool,
        edits: &mut Edits,
    ) {
        let text = at.and_then(|at| Some((at, doc.text(at)?)));
        let Some((at, text)) = text else { return };
        self.looked(doc, at);
        if let Some(seen) = self.redacted(&text, before, counts) {
            edits.replace(doc.span(at), quoted(&seen));
        }
    }

    /// Looks at every string that was not looked at.
    fn leaves(&mut self, doc: &Doc<'_>, edits: &mut Edits) -> Result<(), BadStream> {
        let mut looked_at = std::mem::take(&mut self.looked_at);
        if self.guard.is_none() && !self.judging {
            return Ok(());
        }
        looked_at.sort_unstable();
        let unread = leaves::unread(doc, &looked_at, self.judging);
        self.looked_at = looked_at;
        let mut lists: Vec<std::ops::Range<usize>> = Vec::new();
        for unread in unread? {
            match unread {
                leaves::Unread::Text(at) => {
                    let place = doc.span(at);
                    let text = doc.text(at).unwrap_or_default();
                    if !lists.iter().any(|list| list.contains(&place.start))
                        && let Some(seen) = self.leaf(&text, true)
                    {
                        edits.replace(place, quoted(&seen));
                    }
                }
                leaves::Unread::List(at) => {
                    let mut joined = String::new();
                    for text in doc.items(at).filter_map(|item| doc.text(item)) {
                        joined += &self.leaf(&text, false).unwrap_or_else(|| text.into_owned());
                    }
                    if let Some(seen) = self.leaf(&joined, true) {
                        edits.replace(doc.span(at), format!("[{}]", quoted(&seen)));
                        lists.push(doc.span(at));
                    }
                }
            }
        }
        Ok(())
    }

    /// A string that stands alone, as it may be seen, where that is another.
    fn leaf(&mut self, text: &str, counts: bool) -> Option<String> {
        if self.is_clean(text) {
            return None;
        }
        let spoken = self.spoken.len();
        let seen = self.redacted(text, &mut String::new(), counts);
        self.spoken.truncate(spoken);
        seen
    }

    /// Whether a text says nothing that must be withheld, whoever asked what.
    fn is_clean(&mut self, text: &str) -> bool {
        let Some(guard) = &self.guard else { return true };
        if self.clean.contains(text) {
            return true;
        }
        let clean = guard.check(text).findings.is_empty();
        if clean && text.len() <= CLEAN.1 {
            if self.clean.len() >= CLEAN.0 {
                self.clean.clear();
            }
            self.clean.insert(text.to_owned());
        }
        clean
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

/// Room for one more.
fn limited(map: &mut BTreeMap<Key, String>) -> &mut BTreeMap<Key, String> {
    while map.len() >= OPEN {
        map.pop_first();
    }
    map
}

/// A number of a part: another value than a number could be read in two ways.
fn number(doc: &Doc<'_>, at: At, name: &str, default: u64) -> Result<u64, BadStream> {
    let Some(member) = doc.get(at, name)? else { return Ok(default) };
    match doc.kind(member) {
        Kind::Null => Ok(default),
        _ => doc.raw(member).parse().map_err(|_| BadStream::Parts),
    }
}

/// An event by its type.
fn typed(data: &str) -> Vec<u8> {
    let kind = Doc::parse(data.as_bytes()).ok().and_then(|doc| {
        doc.string(Doc::ROOT, "type").ok().flatten().map(std::borrow::Cow::into_owned)
    });
    format!("event: {}\ndata: {data}\n\n", kind.unwrap_or_default()).into_bytes()
}
