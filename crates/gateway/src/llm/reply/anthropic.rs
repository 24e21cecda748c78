//! Anthropic's Messages: blocks one after the other, each with a start, deltas and a stop.

use std::collections::BTreeMap;

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::{Flow, Flowing, HELD, OPEN, Partial, Ruling, Shared, typed};

#[derive(Debug, Default)]
pub(super) struct State {
    open: BTreeMap<u64, Held>,
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
        let kind = doc.string(root, "type")?;
        let index = doc.number(root, "index")?.unwrap_or_default();
        match kind.as_deref().unwrap_or_default() {
            "message_start" => {
                if let Some(message) = doc.get(root, "message")? {
                    let mut edits = Edits::default();
                    if let Flow::Ask(call) = whole(&doc, message, shared, &mut edits)? {
                        return Ok(Flow::Ask(call));
                    }
                    put(event, edits, out);
                    return Ok(Flow::Done);
                }
            }
            "content_block_start" => return self.start(event, &doc, index, shared, out),
            "content_block_delta" => return self.delta(event, &doc, index, shared, out),
            "content_block_stop" => return self.stop(event, index, shared, out),
            "message_delta" => {
                self.flush(shared, out);
                shared.tokens(&doc, doc.get(root, "usage")?, ("input_tokens", "output_tokens"))?;
                let mut edits = Edits::default();
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
                put(event, edits, out);
                return Ok(Flow::Done);
            }
            "message_stop" => self.flush(shared, out),
            _ => {}
        }
        out.extend_from_slice(&event.raw);
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
        match kind.as_deref() {
            Some("tool_use") if shared.judging => {
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
                Ok(Flow::Done)
            }
            Some("text") => {
                let mut edits = Edits::default();
                if let Some(at) = doc.get(block, "text")? {
                    let text = doc.text(at).unwrap_or_default();
                    let seen = shared.text((index, 0), &text)?;
                    if seen != text {
                        edits.replace(doc.span(at), quoted(&seen));
                    }
                }
                put(event, edits, out);
                Ok(Flow::Done)
            }
            _ => {
                out.extend_from_slice(&event.raw);
                Ok(Flow::Done)
            }
        }
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
        let text = doc.get(delta, "text")?.filter(|_| kind.as_deref() == Some("text_delta"));
        if let Some(at) = text {
            let text = doc.text(at).unwrap_or_default();
            let seen = shared.text((index, 0), &text)?;
            if seen != text {
                if !seen.is_empty() {
                    let mut edits = Edits::default();
                    edits.replace(doc.span(at), quoted(&seen));
                    put(event, edits, out);
                }
                return Ok(Flow::Done);
            }
        }
        out.extend_from_slice(&event.raw);
        Ok(Flow::Done)
    }

    fn stop(
        &mut self,
        event: &Event,
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
        let rest = shared.rest((index, 0));
        if !rest.is_empty() {
            out.extend(text_delta(index, &rest));
        }
        out.extend_from_slice(&event.raw);
        Ok(Flow::Done)
    }

    /// Lets go of what blocks that were never stopped still hold.
    fn flush(&mut self, shared: &mut Shared, out: &mut Vec<u8>) {
        let keys: Vec<(u64, u64)> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            if !rest.is_empty() {
                out.extend(text_delta(key.0, &rest));
            }
        }
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        self.flush(shared, out);
        Ok(Flow::Done)
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
            Some("tool_use") => match shared.ruling(&format!("whole {number}")) {
                Some(Ruling::Deny(text)) => {
                    let text = format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text));
                    edits.replace(doc.span(block), text);
                    replaced += 1;
                }
                _ => released += 1,
            },
            Some("text") => shared.edit_text(doc, doc.get(block, "text")?, true, edits),
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
