//! OpenAI's Chat Completions: chunks with a delta for each choice, then `[DONE]`.

use std::collections::BTreeMap;

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::anthropic::put;
use super::{Flow, Flowing, HELD, OPEN, Partial, Ruling, Shared, ToolCall};

/// The number of a call in the form that came before lists of calls.
const LEGACY: u64 = u64::MAX;

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
}

#[derive(Debug, Default)]
struct Choice {
    calls: BTreeMap<u64, (Partial, &'static str)>,
    finished: bool,
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
        let doc = Doc::parse(event.data.as_bytes())?;
        let root = Doc::ROOT;
        shared.model(&doc, root, "model")?;
        shared.tokens(&doc, doc.get(root, "usage")?, ("prompt_tokens", "completion_tokens"))?;
        let choices = doc.get(root, "choices")?;
        let list: Vec<At> = choices.map(|at| doc.items(at).collect()).unwrap_or_default();
        // An event that waited for a ruling was read before.
        if !std::mem::take(&mut self.waits) {
            let mut event = event.clone();
            if let Some(choices) = choices.filter(|_| self.frame.is_none()) {
                let mut edits = Edits::default();
                edits.replace(doc.span(choices), "[]");
                self.frame = String::from_utf8(edits.apply(event.data.as_bytes())).ok();
            }
            let mut edits = Edits::default();
            let mut before = Vec::new();
            for choice in &list {
                self.choice(&doc, *choice, shared, &mut edits, &mut before)?;
            }
            if !edits.is_empty() {
                let data = edits.apply(event.data.as_bytes());
                event.raw = event.with_data(&data);
                event.data = String::from_utf8(data).map_err(|_| BadStream::Encoding)?;
            }
            for text in before {
                let event = Event { raw: text, ..Event::default() };
                self.pass(event, out)?;
            }
            self.pass(event, out)?;
        }
        let unfinished = self.choices.values().any(|one| !one.calls.is_empty() && !one.finished);
        if self.held.is_empty() || unfinished {
            return Ok(Flow::Done);
        }
        let flow = self.release(shared, out)?;
        self.waits = matches!(flow, Flow::Ask(_));
        Ok(flow)
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
        before: &mut Vec<Vec<u8>>,
    ) -> Result<(), BadStream> {
        let index = doc.number(at, "index")?.unwrap_or_default();
        if self.choices.len() >= OPEN && !self.choices.contains_key(&index) {
            return Err(BadStream::TooMuch);
        }
        let delta = doc.get(at, "delta")?.unwrap_or(at);
        let finish = doc.get(at, "finish_reason")?.and_then(|at| doc.text(at));
        let mut rest = None;
        for (number, name) in ["content", "refusal"].into_iter().enumerate() {
            let key = (index, number as u64);
            if let Some(text) = doc.get(delta, name)?.filter(|at| doc.kind(*at) == Kind::String) {
                let said = doc.text(text).unwrap_or_default();
                let mut seen = shared.text(key, &said)?;
                if finish.is_some() {
                    seen.push_str(&shared.rest(key));
                }
                if seen != said {
                    edits.replace(doc.span(text), quoted(&seen));
                }
            } else if finish.is_some() {
                rest = rest.or(Some((name, shared.rest(key))).filter(|(_, rest)| !rest.is_empty()));
            }
        }
        if let Some((name, rest)) = rest {
            before.push(self.chunk(index, &format!("{{{}:{}}}", quoted(name), quoted(&rest))));
        }
        let choice = self.choices.entry(index).or_default();
        if shared.judging {
            choice.read(doc, delta)?;
        }
        if let Some(why) = finish {
            shared.stopped(Some(&why));
            choice.finished = true;
        }
        Ok(())
    }

    /// A chunk with a delta of our own.
    fn chunk(&self, index: u64, delta: &str) -> Vec<u8> {
        let choices = format!("[{{\"index\":{index},\"delta\":{delta},\"finish_reason\":null}}]");
        let frame = self.frame.as_deref().unwrap_or("{\"choices\":[]}");
        let data = Doc::parse(frame.as_bytes()).ok().and_then(|doc| {
            let mut edits = Edits::default();
            edits.replace(doc.span(doc.get(Doc::ROOT, "choices").ok()??), choices.clone());
            Some(edits.apply(frame.as_bytes()))
        });
        let data = data.unwrap_or_else(|| format!("{{\"choices\":{choices}}}").into_bytes());
        Event::default().with_data(&data)
    }

    /// Lets go of held events once every call is ruled on.
    fn release(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        for (index, choice) in &self.choices {
            for (number, (partial, _)) in &choice.calls {
                let key = format!("choice {index} call {number}");
                if shared.ruling(&key).is_none() {
                    return Ok(Flow::Ask(partial.call(key)));
                }
            }
        }
        let denied = |index: u64, choice: &Choice| {
            choice.calls.keys().any(|number| {
                let key = format!("choice {index} call {number}");
                matches!(shared.ruling(&key), Some(Ruling::Deny(_)))
            })
        };
        let touched: Vec<u64> = self
            .choices
            .iter()
            .filter(|(index, choice)| denied(**index, choice))
            .map(|(index, _)| *index)
            .collect();
        for event in std::mem::take(&mut self.held) {
            match touched.is_empty() || event.data.is_empty() {
                true => out.extend_from_slice(&event.raw),
                false => self.stripped(&event, &touched, shared, out)?,
            }
        }
        self.bytes = 0;
        for choice in self.choices.values_mut() {
            choice.calls.clear();
        }
        Ok(Flow::Done)
    }

    /// An event without the calls of choices in which one was denied; before the end of such a choice
    /// stands what is left of it.
    fn stripped(
        &self,
        event: &Event,
        touched: &[u64],
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        let doc = Doc::parse(event.data.as_bytes())?;
        let mut edits = Edits::default();
        let list = doc.get(Doc::ROOT, "choices")?;
        for at in list.into_iter().flat_map(|list| doc.items(list)) {
            let index = doc.number(at, "index")?.unwrap_or_default();
            if !touched.contains(&index) {
                continue;
            }
            let delta = doc.get(at, "delta")?.unwrap_or(at);
            for name in ["tool_calls", "function_call"] {
                if let Some(member) = doc.get(delta, name)? {
                    edits.remove(&doc, delta, member);
                }
            }
            let finish = doc.get(at, "finish_reason")?.filter(|at| doc.kind(*at) == Kind::String);
            if let Some(finish) = finish
                && let Some(choice) = self.choices.get(&index)
            {
                let (texts, calls) = choice.left(index, shared);
                out.extend(self.chunk(index, &format!("{{\"content\":{}}}", quoted(&texts))));
                if calls.is_empty() {
                    edits.replace(doc.span(finish), "\"stop\"");
                } else {
                    let calls = calls.join(",");
                    out.extend(self.chunk(index, &format!("{{\"tool_calls\":[{calls}]}}")));
                }
            }
        }
        put(event, edits, out);
        Ok(())
    }

    fn flush(&mut self, shared: &mut Shared, out: &mut Vec<u8>) {
        let keys: Vec<(u64, u64)> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            if !rest.is_empty() {
                let name = if key.1 == 0 { "content" } else { "refusal" };
                out.extend(self.chunk(key.0, &format!("{{\"{name}\":{}}}", quoted(&rest))));
            }
        }
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        // Calls that were never finished are not let go.
        self.flush(shared, out);
        Ok(Flow::Done)
    }
}

impl Choice {
    /// Reads the parts of calls in a delta.
    fn read(&mut self, doc: &Doc<'_>, delta: At) -> Result<(), BadStream> {
        let list = doc.get(delta, "tool_calls")?;
        for (place, call) in list.into_iter().flat_map(|list| doc.items(list)).enumerate() {
            let number = doc.number(call, "index")?.unwrap_or(place as u64);
            if self.calls.len() >= OPEN && !self.calls.contains_key(&number) {
                return Err(BadStream::TooMuch);
            }
            let (partial, form) =
                self.calls.entry(number).or_insert_with(|| (Partial::default(), "function"));
            if let Some(id) = doc.string(call, "id")?.filter(|id| !id.is_empty()) {
                partial.id = id.into_owned();
            }
            for (name, member) in [("function", "arguments"), ("custom", "input")] {
                let Some(inner) = doc.get(call, name)? else { continue };
                *form = name;
                grow(doc, inner, member, partial)?;
            }
        }
        if let Some(call) =
            doc.get(delta, "function_call")?.filter(|at| doc.kind(*at) == Kind::Object)
        {
            let (partial, form) =
                self.calls.entry(LEGACY).or_insert_with(|| (Partial::default(), "function_call"));
            *form = "function_call";
            grow(doc, call, "arguments", partial)?;
        }
        Ok(())
    }

    /// What the agent is told of calls that were denied, and the calls that were not.
    fn left(&self, index: u64, shared: &Shared) -> (String, Vec<String>) {
        let (mut texts, mut calls) = (Vec::new(), Vec::new());
        for (number, (partial, form)) in &self.calls {
            match shared.ruling(&format!("choice {index} call {number}")) {
                Some(Ruling::Deny(text)) => texts.push(text.as_str()),
                _ => {
                    let member = if *form == "custom" { "input" } else { "arguments" };
                    let form = if *form == "custom" { "custom" } else { "function" };
                    calls.push(format!(
                        "{{\"index\":{},\"id\":{},\"type\":\"{form}\",\"{form}\":{{\"name\":{},\"{member}\":{}}}}}",
                        calls.len(),
                        quoted(&partial.id),
                        quoted(&partial.name),
                        quoted(&partial.arguments)
                    ));
                }
            }
        }
        (texts.join("\n"), calls)
    }
}

fn grow(doc: &Doc<'_>, at: At, member: &str, partial: &mut Partial) -> Result<(), BadStream> {
    if let Some(name) = doc.string(at, "name")? {
        // Some servers repeat the name with every part, others spell it out in parts.
        if partial.name != name {
            partial.name.push_str(&name);
        }
    }
    if partial.name.len() > 4096 {
        return Err(BadStream::TooMuch);
    }
    match doc.get(at, member)? {
        Some(text) if doc.kind(text) == Kind::String => {
            partial.grow(&doc.text(text).unwrap_or_default())
        }
        Some(value) if doc.kind(value) == Kind::Object => partial.grow(doc.raw(value)),
        _ => Ok(()),
    }
}

/// A whole completion.
pub(super) fn whole(doc: &Doc<'_>, shared: &mut Shared, edits: &mut Edits) -> Flowing {
    let root = Doc::ROOT;
    shared.model(doc, root, "model")?;
    shared.tokens(doc, doc.get(root, "usage")?, ("prompt_tokens", "completion_tokens"))?;
    let Some(list) = doc.get(root, "choices")? else { return Ok(Flow::Done) };
    for (place, at) in doc.items(list).enumerate() {
        let index = doc.number(at, "index")?.unwrap_or(place as u64);
        let Some(message) = doc.get(at, "message")? else { continue };
        if let Some(call) = unruled(doc, message, index, shared)? {
            return Ok(Flow::Ask(call));
        }
    }
    for (place, at) in doc.items(list).enumerate() {
        let index = doc.number(at, "index")?.unwrap_or(place as u64);
        let Some(message) = doc.get(at, "message")? else { continue };
        let finish = doc.get(at, "finish_reason")?;
        shared.stopped(finish.and_then(|at| doc.text(at)).as_deref());
        shared.edit_text(doc, doc.get(message, "refusal")?, true, edits);
        let content = doc.get(message, "content")?;
        let denied = denied(doc, message, index, shared)?;
        if denied.is_empty() {
            shared.edit_text(doc, content, true, edits);
            continue;
        }
        let said = content.and_then(|at| doc.text(at)).unwrap_or_default().into_owned();
        let said = shared.redacted(&said, true).unwrap_or(said);
        let text = quoted(
            &[said]
                .into_iter()
                .filter(|said| !said.is_empty())
                .chain(denied.iter().map(|(_, text)| text.clone()))
                .collect::<Vec<_>>()
                .join("\n"),
        );
        match content {
            Some(at) => edits.replace(doc.span(at), text),
            None => edits.add(doc, message, "content", &text),
        }
        let mut left = 0;
        if let Some(calls) = doc.get(message, "tool_calls")? {
            let kept: Vec<&str> = doc
                .items(calls)
                .enumerate()
                .filter(|(number, _)| !denied.iter().any(|(one, _)| one == number))
                .map(|(_, call)| doc.raw(call))
                .collect();
            left = kept.len();
            match kept.is_empty() {
                true => edits.remove(doc, message, calls),
                false => edits.replace(doc.span(calls), format!("[{}]", kept.join(","))),
            }
        }
        if let Some(call) = doc.get(message, "function_call")?.filter(|_| left == 0) {
            edits.replace(doc.span(call), "null");
        }
        if let Some(finish) = finish.filter(|_| left == 0) {
            edits.replace(doc.span(finish), "\"stop\"");
        }
    }
    Ok(Flow::Done)
}

fn partial_of(doc: &Doc<'_>, call: At) -> Result<Partial, BadJson> {
    let mut partial = Partial {
        id: doc.string(call, "id")?.unwrap_or_default().into_owned(),
        ..Partial::default()
    };
    for (name, member) in [("function", "arguments"), ("custom", "input")] {
        if let Some(inner) = doc.get(call, name)? {
            partial.name = doc.string(inner, "name")?.unwrap_or_default().into_owned();
            if let Some(at) = doc.get(inner, member)? {
                partial.arguments = doc.text(at).unwrap_or_else(|| doc.raw(at).into()).into_owned();
            }
        }
    }
    Ok(partial)
}

/// The calls of a whole message, numbered; the form that came before lists has the last number.
fn calls(doc: &Doc<'_>, message: At) -> Result<Vec<(usize, Partial)>, BadJson> {
    let mut found = Vec::new();
    let list = doc.get(message, "tool_calls")?;
    for (number, call) in list.into_iter().flat_map(|list| doc.items(list)).enumerate() {
        found.push((number, partial_of(doc, call)?));
    }
    if let Some(call) =
        doc.get(message, "function_call")?.filter(|at| doc.kind(*at) == Kind::Object)
    {
        let partial = Partial {
            id: String::new(),
            name: doc.string(call, "name")?.unwrap_or_default().into_owned(),
            arguments: doc.string(call, "arguments")?.unwrap_or_default().into_owned(),
        };
        found.push((usize::MAX, partial));
    }
    Ok(found)
}

fn unruled(
    doc: &Doc<'_>,
    message: At,
    index: u64,
    shared: &Shared,
) -> Result<Option<ToolCall>, BadJson> {
    for (number, partial) in calls(doc, message)? {
        let key = format!("choice {index} call {number}");
        if shared.ruling(&key).is_none() {
            return Ok(Some(partial.call(key)));
        }
    }
    Ok(None)
}

fn denied(
    doc: &Doc<'_>,
    message: At,
    index: u64,
    shared: &Shared,
) -> Result<Vec<(usize, String)>, BadJson> {
    let mut found = Vec::new();
    for (number, _) in calls(doc, message)? {
        if let Some(Ruling::Deny(text)) = shared.ruling(&format!("choice {index} call {number}")) {
            found.push((number, text.clone()));
        }
    }
    Ok(found)
}
