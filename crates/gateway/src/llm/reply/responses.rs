//! OpenAI's Responses: items with their own events, and every text a second time in the items and a
//! third time at the end.

use std::collections::{BTreeSet, HashMap};

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::{Flow, Flowing, HELD, OPEN, Partial, Ruling, Shared, ToolCall, typed};

/// Items that make the agent do something.
const CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
];
/// Keeps texts of refusals apart from others.
const REFUSAL: u64 = 1 << 32;

#[derive(Debug, Default)]
pub(super) struct State {
    /// Items whose calls are not whole.
    pending: BTreeSet<u64>,
    held: Vec<Event>,
    bytes: usize,
    /// What stands in the place of items.
    replaced: HashMap<u64, String>,
    /// Whether events were added or left out, so that they must be numbered anew.
    altered: bool,
    next: Option<u64>,
}

impl State {
    pub(super) fn event(
        &mut self,
        event: &Event,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        if event.data.is_empty() || event.data.trim() == "[DONE]" {
            out.extend_from_slice(&event.raw);
            return Ok(Flow::Done);
        }
        let doc = Doc::parse(event.data.as_bytes())?;
        let root = Doc::ROOT;
        let kind = doc.string(root, "type")?;
        let kind = kind.as_deref().unwrap_or_default();
        let index = doc.number(root, "output_index")?.unwrap_or_default();
        let content = doc.number(root, "content_index")?.unwrap_or_default();
        let mut edits = Edits::default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                let done = kind.ends_with("done");
                if let Some(item) = doc.get(root, "item")? {
                    if is_call(&doc, item)? && shared.judging {
                        return self.item(event, &doc, item, (index, done), shared, out);
                    }
                    texts(&doc, item, shared, false, &mut edits)?;
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let refusal = if kind == "response.refusal.delta" { REFUSAL } else { 0 };
                if let Some(at) = doc.get(root, "delta")? {
                    let text = doc.text(at).unwrap_or_default();
                    let seen = shared.text((index, content + refusal), &text)?;
                    if seen.is_empty() && !text.is_empty() {
                        self.altered = true;
                        return Ok(Flow::Done);
                    }
                    if seen != text {
                        edits.replace(doc.span(at), quoted(&seen));
                    }
                }
            }
            "response.output_text.done" | "response.refusal.done" => {
                let (refusal, name) = match kind {
                    "response.refusal.done" => (REFUSAL, "refusal"),
                    _ => (0, "text"),
                };
                self.rest(&doc, (index, content + refusal), shared, out)?;
                shared.edit_text(&doc, doc.get(root, name)?, false, &mut edits);
            }
            "response.content_part.added" | "response.content_part.done" => {
                if let Some(part) = doc.get(root, "part")? {
                    for name in ["text", "refusal"] {
                        shared.edit_text(&doc, doc.get(part, name)?, false, &mut edits);
                    }
                }
            }
            _ => {}
        }
        if let Some(response) = doc.get(root, "response")? {
            if let Flow::Ask(call) = document(&doc, response, shared, false, &mut edits)? {
                return Ok(Flow::Ask(call));
            }
            if kind != "response.created" && kind != "response.in_progress" {
                self.flush(shared, out)?;
            }
        }
        self.pass(edited(event, edits)?, out)?;
        Ok(Flow::Done)
    }

    /// An event that begins or ends a tool call.
    fn item(
        &mut self,
        event: &Event,
        doc: &Doc<'_>,
        item: At,
        (index, done): (u64, bool),
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Flowing {
        if !done {
            if self.pending.len() >= OPEN {
                return Err(BadStream::TooMuch);
            }
            self.pending.insert(index);
            self.hold(event.clone())?;
            return Ok(Flow::Done);
        }
        let call = call_of(doc, item)?;
        let Some(ruling) = shared.ruling(&call.key) else { return Ok(Flow::Ask(call)) };
        let begun = self.pending.remove(&index);
        match ruling {
            Ruling::Allow => self.hold(event.clone())?,
            Ruling::Deny(text) => {
                self.altered = true;
                self.replaced.insert(index, text.clone());
                if !begun {
                    self.hold(event.clone())?;
                }
            }
        }
        if self.pending.is_empty() {
            self.release(out)?;
        }
        Ok(Flow::Done)
    }

    fn hold(&mut self, event: Event) -> Result<(), BadStream> {
        self.bytes += event.raw.len();
        if self.bytes > HELD {
            return Err(BadStream::TooMuch);
        }
        self.held.push(event);
        Ok(())
    }

    fn release(&mut self, out: &mut Vec<u8>) -> Result<(), BadStream> {
        self.bytes = 0;
        for event in std::mem::take(&mut self.held) {
            let doc = Doc::parse(event.data.as_bytes())?;
            let index = doc.number(Doc::ROOT, "output_index")?;
            let told = index.filter(|index| self.replaced.contains_key(index));
            let Some(index) = told else {
                self.emit(&event, out)?;
                continue;
            };
            // The first event of the item stands for all of them.
            if let Some(text) = self.replaced.get_mut(&index).map(std::mem::take)
                && !text.is_empty()
            {
                for data in message_events(index, &text) {
                    let event = Event { data: data.clone(), raw: typed(&data), name: None };
                    self.emit(&event, out)?;
                }
            }
        }
        self.replaced.clear();
        Ok(())
    }

    /// Holds an event while a call is not whole.
    fn pass(&mut self, event: Event, out: &mut Vec<u8>) -> Result<(), BadStream> {
        if self.pending.is_empty() { self.emit(&event, out) } else { self.hold(event) }
    }

    /// Sends an event, with its number.
    fn emit(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), BadStream> {
        let doc = Doc::parse(event.data.as_bytes())?;
        let number = doc.get(Doc::ROOT, "sequence_number")?;
        let said = number.and_then(|at| doc.raw(at).parse::<u64>().ok());
        match (self.altered, said, self.next) {
            (true, said, Some(next)) if said != Some(next) => {
                let mut edits = Edits::default();
                match number {
                    Some(at) => edits.replace(doc.span(at), next.to_string()),
                    None => edits.add(&doc, Doc::ROOT, "sequence_number", &next.to_string()),
                }
                out.extend(edited(event, edits)?.raw);
                self.next = Some(next + 1);
            }
            (_, said, next) => {
                out.extend_from_slice(&event.raw);
                self.next = said.map(|said| said + 1).or(next);
            }
        }
        Ok(())
    }

    /// Sends what was held of a text, as a delta like the event that ends it.
    fn rest(
        &mut self,
        doc: &Doc<'_>,
        key: (u64, u64),
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        let item = doc.string(Doc::ROOT, "item_id")?.unwrap_or_default().into_owned();
        let rest = shared.rest(key);
        self.delta(key, &item, &rest, out)
    }

    fn delta(
        &mut self,
        key: (u64, u64),
        item: &str,
        text: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        if text.is_empty() {
            return Ok(());
        }
        let (content, kind) =
            if key.1 >= REFUSAL { (key.1 - REFUSAL, "refusal") } else { (key.1, "output_text") };
        let data = format!(
            "{{\"type\":\"response.{kind}.delta\",\"item_id\":{},\"output_index\":{},\"content_index\":{content},\"delta\":{}}}",
            quoted(item),
            key.0,
            quoted(text)
        );
        self.altered = true;
        let raw = typed(&data);
        self.pass(Event { data, raw, name: None }, out)
    }

    fn flush(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Result<(), BadStream> {
        let keys: Vec<(u64, u64)> = shared.texts.keys().copied().collect();
        for key in keys {
            let rest = shared.rest(key);
            self.delta(key, "", &rest, out)?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        // Calls that were never finished are not let go.
        if self.pending.is_empty() {
            self.flush(shared, out)?;
        }
        Ok(Flow::Done)
    }
}

fn edited(event: &Event, edits: Edits) -> Result<Event, BadStream> {
    if edits.is_empty() {
        return Ok(event.clone());
    }
    let data = edits.apply(event.data.as_bytes());
    let raw = event.with_data(&data);
    let data = String::from_utf8(data).map_err(|_| BadStream::Encoding)?;
    Ok(Event { raw, data, name: event.name.clone() })
}

fn is_call(doc: &Doc<'_>, item: At) -> Result<bool, BadJson> {
    let kind = doc.string(item, "type")?;
    Ok(kind.is_some_and(|kind| CALLS.contains(&kind.as_ref())))
}

fn call_of(doc: &Doc<'_>, item: At) -> Result<ToolCall, BadJson> {
    let kind = doc.string(item, "type")?.unwrap_or_default().into_owned();
    let id = doc.string(item, "call_id")?.or(doc.string(item, "id")?).unwrap_or_default();
    let name = doc.string(item, "name")?;
    let name = name.unwrap_or_else(|| kind.trim_end_matches("_call").to_owned().into());
    let mut arguments = String::new();
    for member in ["arguments", "input", "action", "operation"] {
        if let Some(at) = doc.get(item, member)?.filter(|at| doc.kind(*at) != Kind::Null) {
            arguments = doc.text(at).unwrap_or_else(|| doc.raw(at).into()).into_owned();
            break;
        }
    }
    // The same call has to be the same in all places; otherwise it is judged again.
    let key = format!("call {id} {name} {arguments}");
    Ok(Partial { id: id.into_owned(), name: name.into_owned(), arguments }.call(key))
}

fn message_item(index: u64, text: &str, status: &str) -> String {
    let content = match text {
        "" => String::new(),
        text => part(text),
    };
    format!(
        "{{\"id\":\"msg_wardkeep_{index}\",\"type\":\"message\",\"status\":\"{status}\",\"role\":\"assistant\",\"content\":[{content}]}}"
    )
}

fn part(text: &str) -> String {
    format!("{{\"type\":\"output_text\",\"text\":{},\"annotations\":[]}}", quoted(text))
}

/// A message in the place of an item.
fn message_events(index: u64, text: &str) -> Vec<String> {
    let at = format!(
        "\"item_id\":\"msg_wardkeep_{index}\",\"output_index\":{index},\"content_index\":0"
    );
    let said = quoted(text);
    vec![
        format!(
            "{{\"type\":\"response.output_item.added\",\"output_index\":{index},\"item\":{}}}",
            message_item(index, "", "in_progress")
        ),
        format!("{{\"type\":\"response.content_part.added\",{at},\"part\":{}}}", part("")),
        format!("{{\"type\":\"response.output_text.delta\",{at},\"delta\":{said}}}"),
        format!("{{\"type\":\"response.output_text.done\",{at},\"text\":{said}}}"),
        format!("{{\"type\":\"response.content_part.done\",{at},\"part\":{}}}", part(text)),
        format!(
            "{{\"type\":\"response.output_item.done\",\"output_index\":{index},\"item\":{}}}",
            message_item(index, text, "completed")
        ),
    ]
}

/// The texts of a message item.
fn texts(
    doc: &Doc<'_>,
    item: At,
    shared: &mut Shared,
    counts: bool,
    edits: &mut Edits,
) -> Result<(), BadJson> {
    if doc.string(item, "type")?.as_deref() == Some("message")
        && let Some(content) = doc.get(item, "content")?
    {
        for part in doc.items(content) {
            for name in ["text", "refusal"] {
                shared.edit_text(doc, doc.get(part, name)?, counts, edits);
            }
        }
    }
    Ok(())
}

/// A whole response.
pub(super) fn whole(doc: &Doc<'_>, shared: &mut Shared, edits: &mut Edits) -> Flowing {
    document(doc, Doc::ROOT, shared, true, edits)
}

fn document(
    doc: &Doc<'_>,
    response: At,
    shared: &mut Shared,
    counts: bool,
    edits: &mut Edits,
) -> Flowing {
    shared.model(doc, response, "model")?;
    shared.tokens(doc, doc.get(response, "usage")?, ("input_tokens", "output_tokens"))?;
    shared.stopped(doc.string(response, "status")?.as_deref());
    let Some(output) = doc.get(response, "output")? else { return Ok(Flow::Done) };
    for item in doc.items(output) {
        if is_call(doc, item)? {
            let call = call_of(doc, item)?;
            if shared.ruling(&call.key).is_none() {
                return Ok(Flow::Ask(call));
            }
        }
    }
    for (index, item) in doc.items(output).enumerate() {
        if is_call(doc, item)? {
            if let Some(Ruling::Deny(text)) = shared.ruling(&call_of(doc, item)?.key) {
                let message = message_item(index as u64, text, "completed");
                edits.replace(doc.span(item), message);
            }
        } else {
            texts(doc, item, shared, counts, edits)?;
        }
    }
    // Some servers give all text once more.
    shared.edit_text(doc, doc.get(response, "output_text")?, false, edits);
    Ok(Flow::Done)
}
