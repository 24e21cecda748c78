//! Anthropic's Messages: blocks one after the other, each with a start, deltas and a stop.

use std::collections::{BTreeMap, BTreeSet};

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::{Flow, Flowing, HELD, Key, OPEN, Partial, Ruling, Shared, number, typed};

/// Texts of a block that come in parts: what is said, and what the server's own tools are given.
const TEXTS: [&str; 2] = ["text", "partial_json"];
const INPUT: usize = 1;

#[derive(Debug, Default)]
pub(super) struct State {
    /// Whether the message has begun.
    begun: bool,
    open: BTreeMap<u64, Held>,
    /// Blocks of tools that the server runs.
    servers: BTreeSet<u64>,
    released: usize,
    replaced: usize,
}

/// A tool call whose events are kept back.
#[derive(Debug, Default)]
struct Held {
    partial: Partial,
    raw: Vec<u8>,
    /// Whether the input came whole with the start.
    given: bool,
}

impl State {
    pub(super) fn event(
        &mut self,
        event: &Event,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        if event.data.is_empty() {
            out.extend_from_slice(&event.raw);
            return Ok(Flow::Done);
        }
        let doc = Doc::parse(event.data.as_bytes())?;
        let root = Doc::ROOT;
        shared.anew();
        let kind = doc.string(root, "type")?;
        let index = number(&doc, root, "index", 0)?;
        let mut edits = Edits::default();
        match kind.as_deref().unwrap_or_default() {
            "message_start" => {
                if let Some(message) = doc.get(root, "message")? {
                    // Rulings are for the calls of one message.
                    if self.begun {
                        return Err(BadStream::Parts);
                    }
                    if let Flow::Ask(call) = whole(&doc, message, shared, &mut edits)? {
                        return Ok(Flow::Ask(call));
                    }
                    self.begun = true;
                }
            }
            "content_block_start" => return self.start(event, &doc, index, shared, out),
            "content_block_delta" => return self.delta(event, &doc, index, shared, out),
            "content_block_stop" => return self.stop(event, &doc, index, shared, out),
            "message_delta" => {
                self.flush(shared, out);
                shared.tokens(&doc, doc.get(root, "usage")?, ("input_tokens", "output_tokens"))?;
                if let Some(at) = doc.path(root, &["delta", "stop_reason"])? {
                    let why = doc.text(at);
                    shared.stopped(why.as_deref());
                    let cut_off = !self.open.is_empty();
                    self.open.clear();
                    if why.as_deref() == Some("tool_use")
                        && self.released == 0
                        && (self.replaced > 0 || cut_off)
                    {
                        edits.replace(doc.span(at), "\"end_turn\"");
                    }
                }
            }
            "message_stop" => self.flush(shared, out),
            _ => {}
        }
        shared.leaves(&doc, &mut edits)?;
        put(event, edits, out);
        Ok(Flow::Done)
    }

    fn start(
        &mut self,
        event: &Event,
        doc: &Doc<'_>,
        index: u64,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        let block = doc.get(Doc::ROOT, "content_block")?.unwrap_or(Doc::ROOT);
        let kind = doc.string(block, "type")?;
        let mut edits = Edits::default();
        match kind.as_deref() {
            Some("tool_use") if !shared.judging => shared.looked(doc, block),
            Some("tool_use") => {
                if self.open.len() >= OPEN {
                    return Err(BadStream::TooMuch);
                }
                let input = doc.get(block, "input")?;
                let given = input.is_some_and(|at| {
                    doc.kind(at) != Kind::Null && doc.inside(at).next().is_some()
                });
                let mut held = Held { raw: event.raw.clone(), given, ..Held::default() };
                held.partial.id = doc.string(block, "id")?.unwrap_or_default().into_owned();
                held.partial.name = doc.string(block, "name")?.unwrap_or_default().into_owned();
                if let Some(input) = input.filter(|_| given) {
                    held.partial.arguments = doc.raw(input).to_owned();
                }
                self.open.insert(index, held);
                return Ok(Flow::Done);
            }
            Some("text") => {
                if let Some(at) = doc.get(block, "text")? {
                    shared.looked(doc, at);
                    let text = doc.text(at).unwrap_or_default();
                    let seen = shared.text((index, 0), &text)?;
                    if seen != text {
                        edits.replace(doc.span(at), quoted(&seen));
                    }
                }
            }
            Some(kind) if kind.ends_with("tool_use") => {
                if self.servers.len() >= OPEN {
                    return Err(BadStream::TooMuch);
                }
                self.servers.insert(index);
            }
            _ => {}
        }
        shared.leaves(doc, &mut edits)?;
        put(event, edits, out);
        Ok(Flow::Done)
    }

    fn delta(
        &mut self,
        event: &Event,
        doc: &Doc<'_>,
        index: u64,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        let delta = doc.get(Doc::ROOT, "delta")?.unwrap_or(Doc::ROOT);
        if let Some(held) = self.open.get_mut(&index) {
            held.raw.extend_from_slice(&event.raw);
            if held.raw.len() > HELD {
                return Err(BadStream::TooMuch);
            }
            if let Some(text) = doc.string(delta, "partial_json")? {
                if held.given {
                    // Both at once: nobody can tell which one counts.
                    return Err(BadJson::Twice(0).into());
                }
                held.partial.grow(&text)?;
            }
            return Ok(Flow::Done);
        }
        let kind = doc.string(delta, "type")?;
        let mut edits = Edits::default();
        let mut silent = false;
        for (number, name) in TEXTS.into_iter().enumerate() {
            let at = doc.get(delta, name)?.filter(|at| doc.kind(*at) == Kind::String);
            let Some(at) = at else { continue };
            if number == INPUT && shared.judging && !self.servers.contains(&index) {
                // More of a call that was ruled on, or of none.
                return Err(BadStream::Parts);
            }
            if number == INPUT && !self.servers.contains(&index) {
                shared.looked(doc, at);
                continue;
            }
            if number != INPUT && kind.as_deref() != Some("text_delta") {
                continue;
            }
            shared.looked(doc, at);
            let text = doc.text(at).unwrap_or_default();
            let seen = shared.text((index, number as u64), &text)?;
            if seen != text {
                silent |= seen.is_empty();
                edits.replace(doc.span(at), quoted(&seen));
            }
        }
        shared.leaves(doc, &mut edits)?;
        if !silent {
            put(event, edits, out);
        }
        Ok(Flow::Done)
    }

    fn stop(
        &mut self,
        event: &Event,
        doc: &Doc<'_>,
        index: u64,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        if let Some(held) = self.open.get(&index) {
            let key = format!("block {index}");
            let Some(ruling) = shared.ruling(&key) else {
                return Ok(Flow::Ask(held.partial.call(key)));
            };
            match ruling {
                Ruling::Allow => {
                    out.extend_from_slice(&held.raw);
                    out.extend_from_slice(&event.raw);
                    self.released += 1;
                }
                Ruling::Deny(text) => {
                    out.extend(typed(&format!(
                        "{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}"
                    )));
                    out.extend(text_delta(index, text));
                    out.extend_from_slice(&event.raw);
                    self.replaced += 1;
                }
            }
            self.open.remove(&index);
            // The number may be used again.
            shared.rulings.remove(&key);
            return Ok(Flow::Done);
        }
        for number in 0..TEXTS.len() {
            rest((index, number as u64), shared, out);
        }
        self.servers.remove(&index);
        let mut edits = Edits::default();
        shared.leaves(doc, &mut edits)?;
        put(event, edits, out);
        Ok(Flow::Done)
    }

    /// Lets go of what blocks that were never stopped still hold.
    fn flush(&mut self, shared: &mut Shared, out: &mut Vec<u8>) {
        let keys: Vec<Key> = shared.texts.keys().copied().collect();
        for key in keys {
            rest(key, shared, out);
        }
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        self.flush(shared, out);
        Ok(Flow::Done)
    }
}

/// Lets go of what is held of a text.
fn rest(key: Key, shared: &mut Shared, out: &mut Vec<u8>) {
    let rest = shared.rest(key);
    if rest.is_empty() {
        return;
    }
    match key.1 == INPUT as u64 {
        true => out.extend(typed(&format!(
            "{{\"type\":\"content_block_delta\",\"index\":{},\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{}}}}}",
            key.0,
            quoted(&rest)
        ))),
        false => out.extend(text_delta(key.0, &rest)),
    }
}

fn text_delta(index: u64, text: &str) -> Vec<u8> {
    typed(&format!(
        "{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"text_delta\",\"text\":{}}}}}",
        quoted(text)
    ))
}

pub(super) fn put(event: &Event, edits: Edits, out: &mut Vec<u8>) {
    if edits.is_empty() {
        out.extend_from_slice(&event.raw);
    } else {
        out.extend(event.with_data(&edits.apply(event.data.as_bytes())));
    }
}

/// A whole message.
pub(super) fn whole(doc: &Doc<'_>, message: At, shared: &mut Shared, edits: &mut Edits) -> Flowing {
    shared.model(doc, message, "model")?;
    shared.tokens(doc, doc.get(message, "usage")?, ("input_tokens", "output_tokens"))?;
    let Some(content) = doc.get(message, "content")? else { return Ok(Flow::Done) };
    let (mut released, mut replaced) = (0, 0);
    let mut before = String::new();
    // All are ruled on before anything is changed.
    for (number, block) in doc.items(content).enumerate() {
        if doc.string(block, "type")?.as_deref() == Some("tool_use") {
            let key = format!("whole {number}");
            if shared.ruling(&key).is_none() {
                let input = doc.get(block, "input")?;
                let partial = Partial {
                    id: doc.string(block, "id")?.unwrap_or_default().into_owned(),
                    name: doc.string(block, "name")?.unwrap_or_default().into_owned(),
                    arguments: input.map(|at| doc.raw(at).to_owned()).unwrap_or_default(),
                };
                return Ok(Flow::Ask(partial.call(key)));
            }
        }
    }
    for (number, block) in doc.items(content).enumerate() {
        match doc.string(block, "type")?.as_deref() {
            Some("tool_use") => {
                shared.looked(doc, block);
                match shared.ruling(&format!("whole {number}")) {
                    Some(Ruling::Deny(text)) => {
                        let text = format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text));
                        edits.replace(doc.span(block), text);
                        replaced += 1;
                    }
                    _ => released += 1,
                }
            }
            Some("text") => {
                shared.edit_text(doc, doc.get(block, "text")?, &mut before, true, edits);
            }
            _ => {}
        }
    }
    if let Some(at) = doc.get(message, "stop_reason")? {
        let why = doc.text(at);
        shared.stopped(why.as_deref());
        if why.as_deref() == Some("tool_use") && released == 0 && replaced > 0 {
            edits.replace(doc.span(at), "\"end_turn\"");
        }
    }
    Ok(Flow::Done)
}
