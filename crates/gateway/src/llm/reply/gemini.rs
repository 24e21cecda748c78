//! Google's `generateContent`: every event is a whole response, calls come whole.

use super::super::json::{At, Doc, Edits, Kind, quoted};
use super::super::sse::Event;
use super::anthropic::put;
use super::{Flow, Flowing, Partial, Ruling, Shared};

#[derive(Debug, Default)]
pub(super) struct State {
    /// Events that were read.
    count: usize,
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
        let mut edits = Edits::default();
        let mut seen = Seen { streams: true, ..Seen::default() };
        let flow = response(&doc, Doc::ROOT, self.count, shared, &mut seen, &mut edits)?;
        if let Flow::Ask(call) = flow {
            return Ok(Flow::Ask(call));
        }
        self.count += 1;
        for (index, text) in seen.before {
            out.extend(text_event(index, &text));
        }
        // Nothing is left to be seen of it yet.
        if !seen.emptied || seen.says {
            put(event, edits, out);
        }
        Ok(Flow::Done)
    }

    /// A whole response, or a list of them.
    pub(super) fn whole(
        &mut self,
        doc: &Doc<'_>,
        shared: &mut Shared,
        edits: &mut Edits,
    ) -> Flowing {
        let list: Vec<At> = match doc.kind(Doc::ROOT) {
            Kind::Array => doc.items(Doc::ROOT).collect(),
            _ => vec![Doc::ROOT],
        };
        // A secret may be cut by the boundary of two of a list: they are one text.
        if list.len() > 1 {
            return self.list(doc, &list, shared, edits);
        }
        for at in list {
            let mut seen = Seen::default();
            if let Flow::Ask(call) = response(doc, at, 0, shared, &mut seen, edits)? {
                return Ok(Flow::Ask(call));
            }
        }
        Ok(Flow::Done)
    }

    fn list(
        &mut self,
        doc: &Doc<'_>,
        list: &[At],
        shared: &mut Shared,
        edits: &mut Edits,
    ) -> Flowing {
        for (number, at) in list.iter().enumerate() {
            for (_, call) in calls(doc, *at, number)? {
                if shared.ruling(&call.key).is_none() {
                    return Ok(Flow::Ask(call));
                }
            }
        }
        for (number, at) in list.iter().enumerate() {
            let mut seen = Seen { streams: true, ..Seen::default() };
            let _ = response(doc, *at, number, shared, &mut seen, edits)?;
            for (index, text) in seen.before {
                let place = doc.span(*at).start;
                edits.insert(place, format!("{},", text_document(index, &text)));
            }
        }
        let keys: Vec<(u64, u64)> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            if !rest.is_empty() {
                edits.push(doc, Doc::ROOT, &text_document(key.0, &rest));
            }
        }
        Ok(Flow::Done)
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        let keys: Vec<(u64, u64)> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            if !rest.is_empty() {
                out.extend(text_event(key.0, &rest));
            }
        }
        Ok(Flow::Done)
    }
}

/// What came of one response.
#[derive(Debug, Default)]
struct Seen {
    /// Whether texts go on in the next one.
    streams: bool,
    /// Texts that must be seen before it.
    before: Vec<(u64, String)>,
    /// Whether a text is held as a whole.
    emptied: bool,
    /// Whether it says anything else.
    says: bool,
}

fn text_document(index: u64, text: &str) -> String {
    format!(
        "{{\"candidates\":[{{\"index\":{index},\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":{}}}]}}}}]}}",
        quoted(text)
    )
}

fn text_event(index: u64, text: &str) -> Vec<u8> {
    Event::default().with_data(text_document(index, text).as_bytes())
}

type Calls = Vec<(At, super::ToolCall)>;

/// The calls of a response, with the parts that hold them.
fn calls(doc: &Doc<'_>, at: At, number: usize) -> Result<Calls, super::BadStream> {
    let mut found = Vec::new();
    let Some(candidates) = doc.get(at, "candidates")? else { return Ok(found) };
    for (place, candidate) in doc.items(candidates).enumerate() {
        let Some(parts) = doc.path(candidate, &["content", "parts"])? else { continue };
        for (part_number, part) in doc.items(parts).enumerate() {
            for name in ["functionCall", "function_call"] {
                let Some(call) = doc.get(part, name)? else { continue };
                for part in ["partialArgs", "partial_args", "willContinue", "will_continue"] {
                    if doc.get(call, part)?.is_some() {
                        return Err(super::BadStream::Parts);
                    }
                }
                let arguments = doc.get(call, "args")?.map(|at| doc.raw(at).to_owned());
                let partial = Partial {
                    id: doc.string(call, "id")?.unwrap_or_default().into_owned(),
                    name: doc.string(call, "name")?.unwrap_or_default().into_owned(),
                    arguments: arguments.unwrap_or_else(|| "{}".to_owned()),
                };
                let key = format!("event {number} candidate {place} part {part_number}");
                found.push((part, partial.call(key)));
            }
        }
    }
    Ok(found)
}

fn response(
    doc: &Doc<'_>,
    at: At,
    number: usize,
    shared: &mut Shared,
    seen: &mut Seen,
    edits: &mut Edits,
) -> Flowing {
    let calls = if shared.judging { calls(doc, at, number)? } else { Vec::new() };
    for (_, call) in &calls {
        if shared.ruling(&call.key).is_none() {
            return Ok(Flow::Ask(call.clone()));
        }
    }
    shared.model(doc, at, "modelVersion")?;
    let names = ("promptTokenCount", "candidatesTokenCount");
    shared.tokens(doc, doc.get(at, "usageMetadata")?, names)?;
    let Some(candidates) = doc.get(at, "candidates")? else {
        seen.says = true;
        return Ok(Flow::Done);
    };
    for (place, candidate) in doc.items(candidates).enumerate() {
        let index = doc.number(candidate, "index")?.unwrap_or(place as u64);
        let finish = doc.string(candidate, "finishReason")?;
        shared.stopped(finish.as_deref());
        seen.says |= finish.is_some();
        let parts: Vec<At> = match doc.path(candidate, &["content", "parts"])? {
            Some(parts) => doc.items(parts).collect(),
            None => Vec::new(),
        };
        let is_text = |part: &At| -> Result<bool, super::BadStream> {
            let thought = doc.get(*part, "thought")?.is_some_and(|at| doc.raw(at) == "true");
            Ok(!thought && doc.get(*part, "text")?.is_some_and(|at| doc.kind(at) == Kind::String))
        };
        let mut last = None;
        for part in &parts {
            if is_text(part)? {
                last = Some(*part);
            }
        }
        for part in &parts {
            if is_text(part)? {
                let Some(at) = doc.get(*part, "text")? else { continue };
                let text = doc.text(at).unwrap_or_default();
                if !seen.streams {
                    shared.edit_text(doc, Some(at), true, edits);
                    continue;
                }
                let mut shown = shared.text((index, 0), &text)?;
                // What follows the text, or ends it, settles it.
                if last == Some(*part) && (finish.is_some() || parts.last() != Some(part)) {
                    shown.push_str(&shared.rest((index, 0)));
                }
                seen.emptied |= shown.is_empty();
                seen.says |= !shown.is_empty();
                if shown != text {
                    edits.replace(doc.span(at), quoted(&shown));
                }
                continue;
            }
            seen.says = true;
            let denied = calls.iter().find(|(one, _)| one == part);
            if let Some(Ruling::Deny(text)) = denied.and_then(|(_, call)| shared.ruling(&call.key))
            {
                edits.replace(doc.span(*part), format!("{{\"text\":{}}}", quoted(text)));
            }
        }
        // What was held stands before whatever is no text.
        if seen.streams && last.is_none() && (finish.is_some() || !parts.is_empty()) {
            let thinks = parts.iter().all(|part| {
                doc.get(*part, "thought").ok().flatten().is_some_and(|at| doc.raw(at) == "true")
            });
            if finish.is_some() || !thinks {
                let rest = shared.rest((index, 0));
                if !rest.is_empty() {
                    seen.before.push((index, rest));
                }
            }
        }
    }
    Ok(Flow::Done)
}
