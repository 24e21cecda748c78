//! Google's `generateContent`: every event is a whole response, calls come whole.

use super::super::json::{At, Doc, Edits, Kind, quoted};
use super::super::sse::Event;
use super::anthropic::put;
use super::{BadStream, Flow, Flowing, Key, Partial, Ruling, Shared, number as number_of};

#[derive(Debug, Default)]
pub(super) struct State {
    /// Events that were read.
    count: usize,
    /// Whether responses stand inside of others, as Code Assist has them.
    inside: bool,
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
        shared.anew();
        let mut seen = Seen { streams: true, ..Seen::default() };
        let at = response_of(&doc, Doc::ROOT)?;
        self.inside = at != Doc::ROOT;
        if let Flow::Ask(call) = response(&doc, at, self.count, shared, &mut seen, &mut edits)? {
            return Ok(Flow::Ask(call));
        }
        shared.leaves(&doc, &mut edits)?;
        self.count += 1;
        for (index, text) in seen.before {
            out.extend(self.text_event(index, &text));
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
            let at = response_of(doc, at)?;
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
            let at = response_of(doc, *at)?;
            let calls = if shared.judging { calls(doc, at, number)? } else { Vec::new() };
            for (_, call) in calls {
                if shared.ruling(&call.key).is_none() {
                    return Ok(Flow::Ask(call));
                }
            }
        }
        for (number, outer) in list.iter().enumerate() {
            let mut seen = Seen { streams: true, ..Seen::default() };
            let at = response_of(doc, *outer)?;
            self.inside = at != *outer;
            let _ = response(doc, at, number, shared, &mut seen, edits)?;
            for (index, text) in seen.before {
                let place = doc.span(*outer).start;
                edits.insert(place, format!("{},", self.text_document(index, &text)));
            }
        }
        let keys: Vec<Key> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            if !rest.is_empty() {
                edits.push(doc, Doc::ROOT, &self.text_document(key.0, &rest));
            }
        }
        Ok(Flow::Done)
    }

    fn text_document(&self, index: u64, text: &str) -> String {
        let document = format!(
            "{{\"candidates\":[{{\"index\":{index},\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":{}}}]}}}}]}}",
            quoted(text)
        );
        if self.inside { format!("{{\"response\":{document}}}") } else { document }
    }

    fn text_event(&self, index: u64, text: &str) -> Vec<u8> {
        Event::default().with_data(self.text_document(index, text).as_bytes())
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        let keys: Vec<Key> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            if !rest.is_empty() {
                out.extend(self.text_event(key.0, &rest));
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

/// A response, or the one inside of it; not two of them.
fn response_of(doc: &Doc<'_>, at: At) -> Result<At, BadStream> {
    match doc.get(at, "response")?.filter(|inner| doc.kind(*inner) == Kind::Object) {
        Some(_) if doc.get(at, "candidates")?.is_some() => Err(BadStream::Parts),
        inner => Ok(inner.unwrap_or(at)),
    }
}

/// What is in a list; what stands in its place must be nothing.
fn listed(doc: &Doc<'_>, list: Option<At>) -> Result<Vec<At>, BadStream> {
    match list.filter(|list| doc.kind(*list) != Kind::Null) {
        Some(list) if doc.kind(list) != Kind::Array => Err(BadStream::Parts),
        list => Ok(list.into_iter().flat_map(|list| doc.items(list)).collect()),
    }
}

type Calls = Vec<(At, super::ToolCall)>;

/// The calls of a response, with the parts that hold them.
fn calls(doc: &Doc<'_>, at: At, number: usize) -> Result<Calls, BadStream> {
    let mut found = Vec::new();
    for (place, candidate) in listed(doc, doc.get(at, "candidates")?)?.into_iter().enumerate() {
        let parts = listed(doc, doc.path(candidate, &["content", "parts"])?)?;
        for (part_number, part) in parts.into_iter().enumerate() {
            let Some(call) = call_in(doc, part)? else { continue };
            for part in ["partialArgs", "partial_args", "willContinue", "will_continue"] {
                if doc.get(call, part)?.is_some() {
                    return Err(BadStream::Parts);
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
    Ok(found)
}

/// The call of a part, in one of two spellings.
fn call_in(doc: &Doc<'_>, part: At) -> Result<Option<At>, BadStream> {
    let there = |name| -> Result<Option<At>, BadStream> {
        Ok(doc.get(part, name)?.filter(|at| doc.kind(*at) != Kind::Null))
    };
    match (there("functionCall")?, there("function_call")?) {
        (Some(_), Some(_)) => Err(BadStream::Parts),
        (one, other) => Ok(one.or(other)),
    }
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
        let index = number_of(doc, candidate, "index", place as u64)?;
        let mut before = String::new();
        let finish = doc.string(candidate, "finishReason")?;
        shared.stopped(finish.as_deref());
        seen.says |= finish.is_some();
        let parts: Vec<At> = match doc.path(candidate, &["content", "parts"])? {
            Some(parts) => doc.items(parts).collect(),
            None => Vec::new(),
        };
        let is_text = |part: &At| -> Result<bool, BadStream> {
            let thought = doc.get(*part, "thought")?.is_some_and(|at| doc.raw(at) == "true");
            // A part that calls something says nothing besides.
            let calls = call_in(doc, *part)?.is_some();
            Ok(!thought
                && !calls
                && doc.get(*part, "text")?.is_some_and(|at| doc.kind(at) == Kind::String))
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
                    shared.edit_text(doc, Some(at), &mut before, true, edits);
                    continue;
                }
                shared.looked(doc, at);
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
                shared.looked(doc, *part);
            } else {
                shared.looked_if(doc, call_in(doc, *part)?);
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
