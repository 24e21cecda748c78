//! OpenAI's Chat Completions: chunks with a delta for each choice, then `[DONE]`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::anthropic::put;
use super::{Flow, Flowing, HELD, Key, OPEN, Partial, Ruling, Shared, ToolCall, number};

/// The texts of a choice: what it says, what it refuses, what it says aloud, and what it says in the form that
/// came before messages.
const TEXTS: [&str; 4] = ["content", "refusal", "transcript", "text"];

#[derive(Debug, Default)]
pub(super) struct State {
    choices: BTreeMap<u64, Choice>,
    /// Events from the first part of a tool call on.
    held: Vec<Event>,
    bytes: usize,
    /// The members of a chunk that are not choices.
    frame: Option<String>,
    /// Whether the next event is the last one again, with a ruling.
    waits: bool,
    /// How often calls were let go: a ruling is for one call.
    round: usize,
}

#[derive(Debug, Default)]
struct Choice {
    calls: Vec<(Partial, Form)>,
    /// Which call has which number.
    numbers: BTreeMap<u64, usize>,
    finished: bool,
    /// Whether its content comes as a list.
    lists: bool,
}

/// How a call is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Function,
    Custom,
    /// The form that came before lists of calls.
    Legacy,
}

impl Form {
    fn members(self) -> (&'static str, &'static str) {
        match self {
            Self::Custom => ("custom", "input"),
            _ => ("function", "arguments"),
        }
    }
}

/// Why a choice ended; some servers say that there is no reason by an empty one.
fn finish(doc: &Doc<'_>, choice: At) -> Result<Option<At>, BadJson> {
    let at = doc.get(choice, "finish_reason")?;
    Ok(at.filter(|at| doc.kind(*at) == Kind::String && !matches!(doc.raw(*at), "\"\"")))
}

/// The strings of a text in a choice.
fn texts(doc: &Doc<'_>, choice: At, delta: At, which: usize) -> Result<Vec<At>, BadJson> {
    let at = match which {
        2 => doc.path(delta, &["audio", "transcript"])?,
        3 => doc.get(choice, TEXTS[which])?,
        _ => doc.get(delta, TEXTS[which])?,
    };
    let Some(at) = at else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    match doc.kind(at) {
        Kind::String => found.push(at),
        Kind::Array => {
            for part in doc.items(at) {
                let text = doc.get(part, "text")?;
                found.extend(text.filter(|at| doc.kind(*at) == Kind::String));
            }
        }
        _ => {}
    }
    Ok(found)
}

impl State {
    pub(super) fn event(
        &mut self,
        event: &Event,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        if event.data.trim() == "[DONE]" {
            if let Flow::Ask(call) = self.release(shared, out)? {
                return Ok(Flow::Ask(call));
            }
            self.flush(shared, out);
            out.extend_from_slice(&event.raw);
            return Ok(Flow::Done);
        }
        if event.data.is_empty() {
            out.extend_from_slice(&event.raw);
            return Ok(Flow::Done);
        }
        // An event that waited for a ruling was read before.
        if !std::mem::take(&mut self.waits) {
            self.read(event, shared, out)?;
        }
        let unfinished = self.choices.values().any(|one| !one.calls.is_empty() && !one.finished);
        if self.held.is_empty() || unfinished {
            return Ok(Flow::Done);
        }
        let flow = self.release(shared, out)?;
        self.waits = matches!(flow, Flow::Ask(_));
        Ok(flow)
    }

    fn read(
        &mut self,
        event: &Event,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        let doc = Doc::parse(event.data.as_bytes())?;
        let root = Doc::ROOT;
        shared.anew();
        shared.model(&doc, root, "model")?;
        shared.tokens(&doc, doc.get(root, "usage")?, ("prompt_tokens", "completion_tokens"))?;
        let choices = doc.get(root, "choices")?;
        let mut edits = Edits::default();
        let mut before = Vec::new();
        for choice in choices.into_iter().flat_map(|at| doc.items(at)) {
            self.choice(&doc, choice, shared, &mut edits, &mut before)?;
        }
        shared.leaves(&doc, &mut edits)?;
        let mut event = event.clone();
        if !edits.is_empty() {
            let data = edits.apply(event.data.as_bytes());
            event.raw = event.with_data(&data);
            event.data = String::from_utf8(data).map_err(|_| BadStream::Encoding)?;
        }
        if choices.is_some() && self.frame.is_none() {
            self.frame = framed(&event.data)?;
        }
        for (index, which, rest, tokens) in before {
            let raw = self.said(index, which, &rest, &tokens);
            self.pass(Event { raw, ..Event::default() }, out)?;
        }
        self.pass(event, out)
    }

    /// Holds an event once a call has begun.
    fn pass(&mut self, event: Event, out: &mut Vec<u8>) -> Result<(), BadStream> {
        if self.choices.values().all(|one| one.calls.is_empty()) {
            out.extend_from_slice(&event.raw);
            return Ok(());
        }
        self.bytes += event.raw.len();
        if self.bytes > HELD {
            return Err(BadStream::TooMuch);
        }
        self.held.push(event);
        Ok(())
    }

    fn choice(
        &mut self,
        doc: &Doc<'_>,
        at: At,
        shared: &mut Shared,
        edits: &mut Edits,
        before: &mut Vec<(u64, usize, String, Vec<String>)>,
    ) -> Result<(), BadStream> {
        let index = number(doc, at, "index", 0)?;
        if self.choices.len() >= OPEN && !self.choices.contains_key(&index) {
            return Err(BadStream::TooMuch);
        }
        let choice = self.choices.entry(index).or_default();
        let delta = doc.get(at, "delta")?.unwrap_or(at);
        let finish = finish(doc, at)?;
        let content = doc.get(delta, "content")?;
        choice.lists |= content.is_some_and(|at| doc.kind(at) == Kind::Array);
        for (which, name) in TEXTS.into_iter().enumerate() {
            let key = (index, which as u64);
            let strings = texts(doc, at, delta, which)?;
            let last = strings.last().copied();
            for string in strings {
                shared.looked(doc, string);
                let said = doc.text(string).unwrap_or_default();
                let mut seen = shared.text(key, &said)?;
                if finish.is_some() && Some(string) == last {
                    seen.push_str(&shared.rest(key));
                }
                if seen != said {
                    edits.replace(doc.span(string), quoted(&seen));
                }
            }
            if let Some(list) = doc.path(at, &["logprobs", name])? {
                shared.next_tokens(doc, key, list, edits)?;
            }
            if finish.is_some() {
                let rest = if last.is_none() { shared.rest(key) } else { String::new() };
                let tokens = shared.last_tokens(key);
                if !rest.is_empty() || !tokens.is_empty() {
                    before.push((index, which, rest, tokens));
                }
            }
        }
        if shared.judging {
            choice.read(doc, delta)?;
        }
        for name in ["tool_calls", "function_call"] {
            shared.looked_if(doc, doc.get(delta, name)?);
        }
        if let Some(why) = finish {
            shared.stopped(doc.text(why).as_deref());
            choice.finished = true;
        }
        Ok(())
    }

    /// A chunk that says what was held of a text.
    fn said(&self, index: u64, which: usize, rest: &str, tokens: &[String]) -> Vec<u8> {
        let text = quoted(rest);
        let lists = self.choices.get(&index).is_some_and(|choice| choice.lists);
        let mut choice = match which {
            0 if lists => {
                format!("\"delta\":{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}")
            }
            2 => format!("\"delta\":{{\"audio\":{{\"transcript\":{text}}}}}"),
            3 => format!("\"text\":{text}"),
            _ => format!("\"delta\":{{\"{}\":{text}}}", TEXTS[which]),
        };
        if !tokens.is_empty() {
            let tokens = tokens.join(",");
            choice += &format!(",\"logprobs\":{{\"{}\":[{tokens}]}}", TEXTS[which]);
        }
        self.chunk(index, &choice)
    }

    /// A chunk with a choice of our own.
    fn chunk(&self, index: u64, choice: &str) -> Vec<u8> {
        let choices = format!("[{{\"index\":{index},{choice},\"finish_reason\":null}}]");
        let frame = self.frame.as_deref().unwrap_or("{\"choices\":[]}");
        let data = Doc::parse(frame.as_bytes()).ok().and_then(|doc| {
            let mut edits = Edits::default();
            edits.replace(doc.span(doc.get(Doc::ROOT, "choices").ok()??), choices.clone());
            Some(edits.apply(frame.as_bytes()))
        });
        let data = data.unwrap_or_else(|| format!("{{\"choices\":{choices}}}").into_bytes());
        Event::default().with_data(&data)
    }

    fn key(&self, index: u64, call: usize) -> String {
        format!("round {} choice {index} call {call}", self.round)
    }

    /// Lets go of held events once every call is ruled on.
    fn release(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        for (index, choice) in &self.choices {
            if shared.judging {
                choice.check()?;
            }
            for (number, (partial, _)) in choice.calls.iter().enumerate() {
                let key = self.key(*index, number);
                if shared.ruling(&key).is_none() {
                    return Ok(Flow::Ask(partial.call(key)));
                }
            }
        }
        let denied = |index: u64, choice: &Choice| {
            (0..choice.calls.len()).any(|number| {
                matches!(shared.ruling(&self.key(index, number)), Some(Ruling::Deny(_)))
            })
        };
        let mut touched: Vec<u64> = self
            .choices
            .iter()
            .filter(|(index, choice)| denied(**index, choice))
            .map(|(index, _)| *index)
            .collect();
        let told = !touched.is_empty();
        for event in std::mem::take(&mut self.held) {
            match !told || event.data.is_empty() {
                true => out.extend_from_slice(&event.raw),
                false => self.stripped(&event, &mut touched, shared, out)?,
            }
        }
        // Choices that never ended.
        for index in touched {
            self.left(index, shared, out);
        }
        self.bytes = 0;
        for choice in self.choices.values_mut() {
            choice.calls.clear();
            choice.numbers.clear();
        }
        self.round += 1;
        Ok(Flow::Done)
    }

    /// An event without the calls of choices in which one was denied; before the end of such a choice
    /// stands what is left of it.
    fn stripped(
        &self,
        event: &Event,
        touched: &mut Vec<u64>,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        let doc = Doc::parse(event.data.as_bytes())?;
        let mut edits = Edits::default();
        let list = doc.get(Doc::ROOT, "choices")?;
        for at in list.into_iter().flat_map(|list| doc.items(list)) {
            let index = number(&doc, at, "index", 0)?;
            let Some(choice) = self.choices.get(&index) else { continue };
            let numbers = 0..choice.calls.len();
            let is_denied = |number: usize| {
                matches!(shared.ruling(&self.key(index, number)), Some(Ruling::Deny(_)))
            };
            if !numbers.clone().any(is_denied) {
                continue;
            }
            let delta = doc.get(at, "delta")?.unwrap_or(at);
            if let Some(calls) = doc.get(delta, "tool_calls")? {
                edits.remove(&doc, delta, calls);
            }
            if let Some(call) = doc.get(delta, "function_call")? {
                edits.replace(doc.span(call), "null");
            }
            if let Some(finish) = finish(&doc, at)? {
                if touched.contains(&index) {
                    self.left(index, shared, out);
                    touched.retain(|one| *one != index);
                }
                if numbers.clone().all(is_denied) {
                    edits.replace(doc.span(finish), "\"stop\"");
                }
            }
        }
        put(event, edits, out);
        Ok(())
    }

    /// What the agent is told of a choice in which a call was denied, and the calls that were not.
    fn left(&self, index: u64, shared: &Shared, out: &mut Vec<u8>) {
        let Some(choice) = self.choices.get(&index) else { return };
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        for (number, (partial, form)) in choice.calls.iter().enumerate() {
            if let Some(Ruling::Deny(text)) = shared.ruling(&self.key(index, number)) {
                texts.push(text.as_str());
                continue;
            }
            let (form, member) = form.members();
            calls.push(format!(
                "{{\"index\":{},\"id\":{},\"type\":\"{form}\",\"{form}\":{{\"name\":{},\"{member}\":{}}}}}",
                calls.len(),
                quoted(&partial.id),
                quoted(&partial.name),
                quoted(&partial.arguments)
            ));
        }
        out.extend(self.said(index, 0, &texts.join("\n"), &[]));
        if !calls.is_empty() {
            let calls = calls.join(",");
            out.extend(self.chunk(index, &format!("\"delta\":{{\"tool_calls\":[{calls}]}}")));
        }
    }

    fn flush(&mut self, shared: &mut Shared, out: &mut Vec<u8>) {
        let mut keys: Vec<Key> = shared.texts.keys().copied().collect();
        keys.extend(shared.tokens.keys().filter(|key| !shared.texts.contains_key(key)));
        for key in keys {
            let (rest, tokens) = (shared.rest(key), shared.last_tokens(key));
            if !rest.is_empty() || !tokens.is_empty() {
                let which = usize::try_from(key.1).unwrap_or_default();
                out.extend(self.said(key.0, which, &rest, &tokens));
            }
        }
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        // Calls that were never finished are not let go.
        self.flush(shared, out);
        Ok(Flow::Done)
    }
}

/// A chunk without its choices.
fn framed(data: &str) -> Result<Option<String>, BadJson> {
    let doc = Doc::parse(data.as_bytes())?;
    let Some(choices) = doc.get(Doc::ROOT, "choices")? else { return Ok(None) };
    let mut edits = Edits::default();
    edits.replace(doc.span(choices), "[]");
    Ok(String::from_utf8(edits.apply(data.as_bytes())).ok())
}

/// Whether arguments are whole: what is put behind them makes no others of them.
fn is_whole(arguments: &str) -> bool {
    Doc::parse(arguments.as_bytes()).is_ok_and(|doc| doc.kind(Doc::ROOT) == Kind::Object)
}

impl Choice {
    /// Reads the parts of calls in a delta.
    fn read(&mut self, doc: &Doc<'_>, delta: At) -> Result<(), BadStream> {
        let list = doc.get(delta, "tool_calls")?.filter(|list| doc.kind(*list) != Kind::Null);
        if list.is_some_and(|list| doc.kind(list) != Kind::Array) {
            return Err(BadStream::Parts);
        }
        for (place, call) in list.into_iter().flat_map(|list| doc.items(list)).enumerate() {
            let number = number(doc, call, "index", place as u64)?;
            let (form, inner) = inner(doc, call)?;
            let id = doc.string(call, "id")?.unwrap_or_default();
            let slot = self.slot(doc, number, &id, form, inner)?;
            let (partial, _) = &mut self.calls[slot];
            if !id.is_empty() {
                partial.id = id.into_owned();
            }
            if let Some(inner) = inner {
                grow(doc, inner, form.members().1, partial)?;
            }
        }
        if let Some(call) = legacy(doc, delta)? {
            let slot = self.slot(doc, u64::MAX, "", Form::Legacy, Some(call))?;
            grow(doc, call, "arguments", &mut self.calls[slot].0)?;
        }
        Ok(())
    }

    /// The call that a part belongs to: by its number, unless the part begins another.
    fn slot(
        &mut self,
        doc: &Doc<'_>,
        number: u64,
        id: &str,
        form: Form,
        inner: Option<At>,
    ) -> Result<usize, BadStream> {
        let name = match inner {
            Some(inner) => doc.string(inner, "name")?.unwrap_or_default(),
            None => "".into(),
        };
        if let Some(slot) = self.numbers.get(&number).copied() {
            let (known, known_form) = &self.calls[slot];
            let another = !id.is_empty() && !known.id.is_empty() && id != known.id;
            if !another || name.is_empty() {
                return match form == *known_form || inner.is_none() {
                    true => Ok(slot),
                    false => Err(BadStream::Parts),
                };
            }
            // Whoever knows calls by their number joins the two: that must give nothing that can be called.
            if form != Form::Function || *known_form != form || !is_whole(&known.arguments) {
                return Err(BadStream::Parts);
            }
        } else if self.finished && name.is_empty() {
            // More of a call that was ruled on.
            return Err(BadStream::Parts);
        }
        if self.calls.len() >= OPEN {
            return Err(BadStream::TooMuch);
        }
        self.calls.push((Partial::default(), form));
        self.numbers.insert(number, self.calls.len() - 1);
        Ok(self.calls.len() - 1)
    }

    /// Where calls share a number or an id, whoever knows them by that must not get another call than was
    /// judged.
    fn check(&self) -> Result<(), BadStream> {
        let ids = || self.calls.iter().map(|(partial, _)| &partial.id).filter(|id| !id.is_empty());
        let different: BTreeSet<&String> = ids().collect();
        let unclear = self.numbers.len() < self.calls.len() || different.len() < ids().count();
        let whole = |(partial, form): &(Partial, Form)| {
            *form == Form::Function && is_whole(&partial.arguments)
        };
        if unclear && !self.calls.iter().all(whole) { Err(BadStream::Parts) } else { Ok(()) }
    }
}

/// What a call is, and the member that says it; not two of them.
fn inner(doc: &Doc<'_>, call: At) -> Result<(Form, Option<At>), BadStream> {
    let there = |name| -> Result<Option<At>, BadJson> {
        Ok(doc.get(call, name)?.filter(|at| doc.kind(*at) != Kind::Null))
    };
    match (there("function")?, there("custom")?) {
        (Some(_), Some(_)) => Err(BadStream::Parts),
        (None, Some(custom)) => Ok((Form::Custom, Some(custom))),
        (function, None) => Ok((Form::Function, function)),
    }
}

fn grow(doc: &Doc<'_>, at: At, member: &str, partial: &mut Partial) -> Result<(), BadStream> {
    if let Some(name) = doc.string(at, "name")?.filter(|name| !name.is_empty()) {
        // Some servers repeat the name with every part. Another name is joined to the first by some agents,
        // and put in its place by others.
        if !partial.name.is_empty() && partial.name != name {
            return Err(BadStream::Parts);
        }
        partial.name = name.into_owned();
    }
    if partial.name.len() > 4096 {
        return Err(BadStream::TooMuch);
    }
    match doc.get(at, member)? {
        Some(text) if doc.kind(text) == Kind::String => {
            partial.grow(&doc.text(text).unwrap_or_default())
        }
        Some(value) if doc.kind(value) != Kind::Null => partial.grow(doc.raw(value)),
        _ => Ok(()),
    }
}

/// A call in the form that came before lists.
fn legacy(doc: &Doc<'_>, message: At) -> Result<Option<At>, BadStream> {
    let call = doc.get(message, "function_call")?.filter(|at| doc.kind(*at) != Kind::Null);
    match call {
        Some(call) if doc.kind(call) != Kind::Object => Err(BadStream::Parts),
        call => Ok(call),
    }
}

/// A whole completion.
pub(super) fn whole(doc: &Doc<'_>, shared: &mut Shared, edits: &mut Edits) -> Flowing {
    let root = Doc::ROOT;
    shared.model(doc, root, "model")?;
    shared.tokens(doc, doc.get(root, "usage")?, ("prompt_tokens", "completion_tokens"))?;
    let Some(list) = doc.get(root, "choices")? else { return Ok(Flow::Done) };
    let mut all = Vec::new();
    for (place, at) in doc.items(list).enumerate() {
        let message = doc.get(at, "message")?.unwrap_or(at);
        let calls = if shared.judging { calls(doc, message, place)? } else { Vec::new() };
        if let Some(call) = calls.iter().find(|call| shared.ruling(&call.key).is_none()) {
            return Ok(Flow::Ask(call.clone()));
        }
        all.push((at, message, calls));
    }
    for (at, message, calls) in all {
        let finish = finish(doc, at)?;
        shared.stopped(finish.and_then(|at| doc.text(at)).as_deref());
        for name in ["tool_calls", "function_call"] {
            shared.looked_if(doc, doc.get(message, name)?);
        }
        let denied: Vec<(usize, String)> = calls
            .iter()
            .enumerate()
            .filter_map(|(number, call)| match shared.ruling(&call.key) {
                Some(Ruling::Deny(text)) => Some((number, text.clone())),
                _ => None,
            })
            .collect();
        let mut said = None;
        for (which, name) in TEXTS.into_iter().enumerate() {
            let mut before = String::new();
            for string in texts(doc, at, message, which)? {
                let alone = doc.get(message, "content")? == Some(string);
                if alone && !denied.is_empty() {
                    shared.looked(doc, string);
                    let text = doc.text(string).unwrap_or_default().into_owned();
                    said = Some(shared.redacted(&text, &mut before, true).unwrap_or(text));
                } else {
                    shared.edit_text(doc, Some(string), &mut before, true, edits);
                }
            }
            shared.all_tokens(doc, doc.path(at, &["logprobs", name])?, true, edits)?;
        }
        if !denied.is_empty() {
            let left = calls.len() - denied.len();
            tell(doc, message, &denied, said.unwrap_or_default(), edits)?;
            if let Some(finish) = finish.filter(|_| left == 0) {
                edits.replace(doc.span(finish), "\"stop\"");
            }
        }
    }
    Ok(Flow::Done)
}

/// Takes calls out of a message, and says why behind what it `said`.
fn tell(
    doc: &Doc<'_>,
    message: At,
    denied: &[(usize, String)],
    said: String,
    edits: &mut Edits,
) -> Result<(), BadJson> {
    let said = Some(said).filter(|said| !said.is_empty());
    let texts: Vec<String> =
        said.into_iter().chain(denied.iter().map(|(_, text)| text.clone())).collect();
    let text = quoted(&texts.join("\n"));
    let content = doc.get(message, "content")?;
    match content {
        Some(at) if doc.kind(at) == Kind::Array => {
            edits.push(doc, at, &format!("{{\"type\":\"text\",\"text\":{text}}}"));
        }
        Some(at) => edits.replace(doc.span(at), text.clone()),
        None => {}
    }
    let mut told = content.is_some();
    let is_denied = |number: &usize| denied.iter().any(|(one, _)| one == number);
    let mut count = 0;
    if let Some(list) = doc.get(message, "tool_calls")? {
        let calls: Vec<&str> = doc.items(list).map(|call| doc.raw(call)).collect();
        count = calls.len();
        let kept = calls.into_iter().enumerate().filter(|(number, _)| !is_denied(number));
        let kept: Vec<&str> = kept.map(|(_, call)| call).collect();
        match kept.is_empty() {
            true if !told => {
                edits.replace(doc.member_span(list), format!("\"content\":{text}"));
                told = true;
            }
            true => edits.remove(doc, message, list),
            false if kept.len() < count => {
                edits.replace(doc.span(list), format!("[{}]", kept.join(",")));
            }
            false => {}
        }
    }
    if !told {
        edits.add(doc, message, "content", &text);
    }
    if let Some(call) = doc.get(message, "function_call")?.filter(|_| is_denied(&count)) {
        edits.replace(doc.span(call), "null");
    }
    Ok(())
}

/// The calls of a whole message; the form that came before lists is the last.
fn calls(doc: &Doc<'_>, message: At, choice: usize) -> Result<Vec<ToolCall>, BadStream> {
    let mut found: Vec<Partial> = Vec::new();
    let list = doc.get(message, "tool_calls")?.filter(|list| doc.kind(*list) != Kind::Null);
    if list.is_some_and(|list| doc.kind(list) != Kind::Array) {
        return Err(BadStream::Parts);
    }
    for call in list.into_iter().flat_map(|list| doc.items(list)) {
        let (form, inner) = inner(doc, call)?;
        let mut partial = Partial {
            id: doc.string(call, "id")?.unwrap_or_default().into_owned(),
            ..Partial::default()
        };
        if let Some(inner) = inner {
            grow(doc, inner, form.members().1, &mut partial)?;
        }
        found.push(partial);
    }
    if let Some(call) = legacy(doc, message)? {
        let mut partial = Partial::default();
        grow(doc, call, "arguments", &mut partial)?;
        found.push(partial);
    }
    let key = |number: usize| format!("choice {choice} call {number}");
    Ok(found.iter().enumerate().map(|(number, partial)| partial.call(key(number))).collect())
}
