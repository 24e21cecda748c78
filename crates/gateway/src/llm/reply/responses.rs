//! OpenAI's Responses: items with their own events, and every text a second time in the items and a
//! third time at the end.

use std::collections::{BTreeSet, HashMap};

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::{Flow, Flowing, HELD, Key, OPEN, Partial, Ruling, Shared, ToolCall, number, typed};

/// Items that are done where the model is; every other call is for the agent.
const SERVER: [&str; 5] = [
    "mcp_call",
    "code_interpreter_call",
    "web_search_call",
    "file_search_call",
    "image_generation_call",
];
/// Calls that are given something of a form of its own, which parts of them are parts of.
const STRUCTURED: [&str; 4] =
    ["local_shell_call", "shell_call", "computer_call", "apply_patch_call"];
/// Members that say what a call is given.
const GIVEN: [&str; 5] = ["arguments", "input", "action", "actions", "operation"];
/// Members in which the end of a text says it again.
const AGAIN: [&str; 5] = ["text", "refusal", "transcript", "code", "arguments"];
/// Members of a response that repeat the request.
const ECHO: [&str; 11] = [
    "instructions",
    "tools",
    "tool_choice",
    "metadata",
    "prompt",
    "input",
    "text",
    "reasoning",
    "user",
    "safety_identifier",
    "prompt_cache_key",
];
/// Texts that come in parts: what is said, and what is refused. Others get a number when they come.
const TEXTS: [&str; 2] = ["output_text", "refusal"];
/// Keeps texts of one place apart from each other.
const KIND: u64 = 1 << 32;
/// Readings of one call.
const FACES: usize = 16;
/// Other texts that come in parts.
const KINDS: usize = 32;

#[derive(Debug, Default)]
pub(super) struct State {
    /// Items whose calls are not whole.
    pending: BTreeSet<u64>,
    held: Vec<Event>,
    bytes: usize,
    /// What stands in the place of items.
    replaced: HashMap<u64, String>,
    /// Texts that come in parts, besides those that are known.
    kinds: Vec<String>,
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
        shared.anew();
        let kind = doc.string(root, "type")?;
        let kind = kind.as_deref().unwrap_or_default();
        let index = number(&doc, root, "output_index", 0)?;
        let content = number(&doc, root, "content_index", 0)?;
        if content >= KIND {
            return Err(BadStream::Parts);
        }
        let mut edits = Edits::default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                let done = kind.ends_with("done");
                if let Some(item) = doc.get(root, "item")? {
                    if is_call(&doc, item)? && shared.judging {
                        return self.item(event, &doc, item, (index, done), shared, out);
                    }
                    texts(&doc, item, shared, &mut String::new(), false, &mut edits)?;
                }
            }
            "response.content_part.added" | "response.content_part.done" => {
                if let Some(part) = doc.get(root, "part")? {
                    for (number, name) in ["text", "refusal"].into_iter().enumerate() {
                        let key = (index, content + number as u64 * KIND);
                        let mut before = shared.before.get(&key).cloned().unwrap_or_default();
                        let text = doc.get(part, name)?;
                        shared.edit_text(&doc, text, &mut before, false, &mut edits);
                    }
                    shared.all_tokens(&doc, doc.get(part, "logprobs")?, false, &mut edits)?;
                }
            }
            _ => {
                let said = kind.strip_prefix("response.").unwrap_or_default();
                if said.starts_with("reasoning") {
                    shared.looked(&doc, root);
                } else if let Some((what, end)) = said.rsplit_once('.')
                    && matches!(end, "delta" | "done")
                {
                    let place = (index, content);
                    let part = Part { doc: &doc, what, done: end == "done", place };
                    if !self.part(&part, shared, &mut edits, out)? {
                        return Ok(Flow::Done);
                    }
                }
            }
        }
        if let Some(response) = doc.get(root, "response")? {
            if let Flow::Ask(call) = document(&doc, response, shared, false, &mut edits)? {
                return Ok(Flow::Ask(call));
            }
            if kind != "response.created" && kind != "response.in_progress" {
                self.flush(shared, out)?;
            }
        }
        shared.leaves(&doc, &mut edits)?;
        self.pass(edited(event, edits)?, out)?;
        Ok(Flow::Done)
    }

    /// A part of a text or of what a call is given, or its end. Whether anything of it can be seen.
    fn part(
        &mut self,
        part: &Part<'_, '_>,
        shared: &mut Shared,
        edits: &mut Edits,
        out: &mut Vec<u8>,
    ) -> Result<bool, BadStream> {
        let (doc, root, (index, content)) = (part.doc, Doc::ROOT, part.place);
        if part.what.ends_with("audio") {
            shared.looked_if(doc, doc.get(root, "delta")?);
            return Ok(true);
        }
        let server = SERVER.iter().any(|name| part.what.starts_with(name));
        if part.what.contains("_call_") && !server {
            // It is judged with its item, which has to be known.
            if shared.judging && !self.pending.contains(&index) {
                return Err(BadStream::Parts);
            }
            shared.looked(doc, root);
            return Ok(true);
        }
        let key = (index, content + self.kind(part.what)? * KIND);
        if part.done {
            self.rest(doc, key, shared, out)?;
            for name in AGAIN {
                let mut before = shared.before.get(&key).cloned().unwrap_or_default();
                shared.edit_text(doc, doc.get(root, name)?, &mut before, false, edits);
            }
            shared.all_tokens(doc, doc.get(root, "logprobs")?, false, edits)?;
            return Ok(true);
        }
        let tokens = match doc.get(root, "logprobs")? {
            Some(list) => shared.next_tokens(doc, key, list, edits)?,
            None => false,
        };
        let delta = doc.get(root, "delta")?.filter(|at| doc.kind(*at) == Kind::String);
        let Some(at) = delta else { return Ok(true) };
        shared.looked(doc, at);
        let text = doc.text(at).unwrap_or_default();
        let seen = shared.text(key, &text)?;
        if seen != text {
            edits.replace(doc.span(at), quoted(&seen));
        }
        let silent = seen.is_empty() && !text.is_empty() && !tokens;
        self.altered |= silent;
        Ok(!silent)
    }

    /// The number of a text that comes in parts.
    fn kind(&mut self, what: &str) -> Result<u64, BadStream> {
        let known = TEXTS.into_iter().chain(self.kinds.iter().map(String::as_str));
        if let Some(place) = known.clone().position(|kind| kind == what) {
            return Ok(place as u64);
        }
        let place = known.count();
        if self.kinds.len() >= KINDS || what.len() > 128 {
            return Err(BadStream::TooMuch);
        }
        self.kinds.push(what.to_owned());
        Ok(place as u64)
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
        let mut denied = None;
        let kind = doc.string(item, "type")?.unwrap_or_default();
        let structured = STRUCTURED.contains(&kind.as_ref());
        for call in self.faces(index, structured, call_of(doc, item)?)? {
            match shared.ruling(&call.key) {
                None => return Ok(Flow::Ask(call)),
                Some(Ruling::Allow) => {}
                Some(Ruling::Deny(text)) => denied = denied.or(Some(text.clone())),
            }
        }
        let begun = self.pending.remove(&index);
        match denied {
            None => self.hold(event.clone())?,
            Some(text) => {
                self.altered = true;
                self.replaced.insert(index, text);
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

    /// A call, and what else the events of its item make of it: agents differ in what they read.
    fn faces(
        &self,
        index: u64,
        structured: bool,
        call: ToolCall,
    ) -> Result<Vec<ToolCall>, BadStream> {
        let mut parts = String::new();
        let mut names = vec![call.name.clone()];
        let mut given = vec![call.arguments.clone()];
        for event in &self.held {
            let doc = Doc::parse(event.data.as_bytes())?;
            let root = Doc::ROOT;
            if index_of(&doc)? != Some(index) {
                continue;
            }
            if let Some(item) = doc.get(root, "item")?
                && is_call(&doc, item)?
            {
                let begun = call_of(&doc, item)?;
                names.push(begun.name);
                if !structured || !is_within(&begun.arguments, &call.arguments) {
                    given.push(begun.arguments);
                }
            }
            let kind = doc.string(root, "type")?.unwrap_or_default();
            if structured && kind.contains("_call_") {
                let delta = doc.string(root, "delta")?;
                delta.into_iter().for_each(|part| parts.push_str(&part));
                let mut told = vec![parts.clone()];
                for name in ["command", "diff"] {
                    told.extend(doc.string(root, name)?.map(std::borrow::Cow::into_owned));
                }
                if !told.iter().all(|text| is_within(&quoted(text), &call.arguments)) {
                    return Err(BadStream::Parts);
                }
            } else if kind.contains("_call_") {
                names.extend(doc.string(root, "name")?.map(std::borrow::Cow::into_owned));
                let delta = doc.string(root, "delta")?;
                delta.into_iter().for_each(|part| parts.push_str(&part));
                for name in GIVEN {
                    given.extend(doc.string(root, name)?.map(std::borrow::Cow::into_owned));
                }
            }
        }
        if !structured {
            given.push(parts);
        }
        let mut faces = Vec::new();
        names.retain(|name| !name.is_empty());
        for name in names.iter().collect::<BTreeSet<_>>() {
            for arguments in given.iter().collect::<BTreeSet<_>>() {
                if !arguments.is_empty() || call.arguments.is_empty() {
                    let partial = Partial {
                        id: call.id.clone(),
                        name: name.clone(),
                        arguments: arguments.clone(),
                    };
                    faces.push(partial.call(key_of(&partial)));
                }
            }
        }
        if faces.len() > FACES {
            return Err(BadStream::TooMuch);
        }
        if faces.is_empty() {
            faces.push(call);
        }
        Ok(faces)
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
            let told = index_of(&doc)?.filter(|index| self.replaced.contains_key(index));
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
        key: Key,
        shared: &mut Shared,
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        let item = doc.string(Doc::ROOT, "item_id")?.unwrap_or_default().into_owned();
        let (rest, tokens) = (shared.rest(key), shared.last_tokens(key));
        self.delta(key, &item, &rest, &tokens, out)
    }

    fn delta(
        &mut self,
        key: Key,
        item: &str,
        text: &str,
        tokens: &[String],
        out: &mut Vec<u8>,
    ) -> Result<(), BadStream> {
        if text.is_empty() && tokens.is_empty() {
            return Ok(());
        }
        let (content, place) = (key.1 % KIND, usize::try_from(key.1 / KIND).unwrap_or_default());
        let known = TEXTS.into_iter().chain(self.kinds.iter().map(String::as_str)).nth(place);
        let tokens = match tokens.is_empty() {
            true => String::new(),
            false => format!(",\"logprobs\":[{}]", tokens.join(",")),
        };
        let data = format!(
            "{{\"type\":{},\"item_id\":{},\"output_index\":{},\"content_index\":{content},\"delta\":{}{tokens}}}",
            quoted(&format!("response.{}.delta", known.unwrap_or_default())),
            quoted(item),
            key.0,
            quoted(text)
        );
        self.altered = true;
        let raw = typed(&data);
        self.pass(Event { data, raw, name: None }, out)
    }

    fn flush(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Result<(), BadStream> {
        let mut keys: Vec<Key> = shared.texts.keys().copied().collect();
        keys.extend(shared.tokens.keys().filter(|key| !shared.texts.contains_key(key)));
        for key in keys {
            let (rest, tokens) = (shared.rest(key), shared.last_tokens(key));
            self.delta(key, "", &rest, &tokens, out)?;
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

/// A part of a text, or its end.
struct Part<'d, 't> {
    doc: &'d Doc<'t>,
    what: &'d str,
    done: bool,
    /// The item, and the part of its content.
    place: (u64, u64),
}

/// The item that an event is of; some servers leave its number out.
fn index_of(doc: &Doc<'_>) -> Result<Option<u64>, BadStream> {
    let root = Doc::ROOT;
    if doc.get(root, "output_index")?.is_some_and(|at| doc.kind(at) != Kind::Null) {
        return number(doc, root, "output_index", 0).map(Some);
    }
    let item = doc.get(root, "item")?;
    let part = doc.string(root, "type")?.is_some_and(|kind| kind.contains("_call_"));
    let call = item.map(|item| is_call(doc, item)).transpose()?.unwrap_or_default();
    Ok((part || call).then_some(0))
}

/// Whether every string of one value is part of a string of the other, in the order in which they stand.
fn is_within(part: &str, whole: &str) -> bool {
    let strings = |text: &str| {
        let doc = Doc::parse(text.as_bytes()).ok()?;
        let mut found = Vec::new();
        let mut rest = vec![Doc::ROOT];
        while let Some(at) = rest.pop() {
            found.extend(doc.text(at).map(|text| text.into_owned()));
            rest.extend(doc.inside(at).collect::<Vec<_>>().into_iter().rev());
        }
        Some(found)
    };
    let (Some(part), Some(whole)) = (strings(part), strings(whole)) else { return false };
    let whole = whole.concat();
    part.iter().all(|text| whole.contains(text.as_str()))
}

fn is_call(doc: &Doc<'_>, item: At) -> Result<bool, BadJson> {
    let Some(kind) = doc.string(item, "type")? else { return Ok(false) };
    let kind = kind.to_ascii_lowercase();
    let calls = kind.ends_with("_call") || kind == "mcp_approval_request";
    Ok(calls && !SERVER.contains(&kind.as_str()))
}

fn call_of(doc: &Doc<'_>, item: At) -> Result<ToolCall, BadStream> {
    let kind = doc.string(item, "type")?.unwrap_or_default().into_owned();
    let id = doc.string(item, "call_id")?.or(doc.string(item, "id")?).unwrap_or_default();
    // What a call is given stands where its kind has it, and nowhere else.
    let (named, members): (bool, &[&str]) = match kind.as_str() {
        "function_call" | "mcp_approval_request" => (true, &["arguments"]),
        "custom_tool_call" => (true, &["input"]),
        "local_shell_call" | "shell_call" => (false, &["action"]),
        "computer_call" => (false, &["action", "actions"]),
        "apply_patch_call" => (false, &["operation"]),
        _ => (true, &[]),
    };
    let name = if named { doc.string(item, "name")? } else { None };
    let name = name.unwrap_or_else(|| kind.trim_end_matches("_call").to_owned().into());
    let mut arguments = None;
    for member in GIVEN {
        let at = doc.get(item, member)?.filter(|at| doc.kind(*at) != Kind::Null);
        let Some(at) = at.filter(|_| !members.is_empty()) else { continue };
        let text = doc.text(at).unwrap_or_else(|| doc.raw(at).into()).into_owned();
        if !members.contains(&member) || arguments.replace(text).is_some() {
            return Err(BadStream::Parts);
        }
    }
    // Of a kind that is not known everything is judged.
    let arguments = match members.is_empty() {
        true => doc.raw(item).to_owned(),
        false => arguments.unwrap_or_default(),
    };
    let partial = Partial { id: id.into_owned(), name: name.into_owned(), arguments };
    Ok(partial.call(key_of(&partial)))
}

/// The same call has to be the same in all places; otherwise it is judged again.
fn key_of(partial: &Partial) -> String {
    format!("call {} {} {}", partial.id, partial.name, partial.arguments)
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
    before: &mut String,
    counts: bool,
    edits: &mut Edits,
) -> Result<(), BadJson> {
    if doc.string(item, "type")?.as_deref() == Some("message")
        && let Some(content) = doc.get(item, "content")?
    {
        for part in doc.items(content) {
            for name in ["text", "refusal"] {
                shared.edit_text(doc, doc.get(part, name)?, before, counts, edits);
            }
            shared.all_tokens(doc, doc.get(part, "logprobs")?, counts, edits)?;
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
    for name in ECHO {
        shared.looked_if(doc, doc.get(response, name)?);
    }
    let Some(output) = doc.get(response, "output")? else { return Ok(Flow::Done) };
    for item in doc.items(output).filter(|_| shared.judging) {
        if is_call(doc, item)? {
            let call = call_of(doc, item)?;
            if shared.ruling(&call.key).is_none() {
                return Ok(Flow::Ask(call));
            }
        }
    }
    let mut before = String::new();
    for (index, item) in doc.items(output).enumerate() {
        if !is_call(doc, item)? {
            texts(doc, item, shared, &mut before, counts, edits)?;
            continue;
        }
        shared.looked(doc, item);
        if !shared.judging {
            continue;
        }
        if let Some(Ruling::Deny(text)) = shared.ruling(&call_of(doc, item)?.key) {
            let message = message_item(index as u64, text, "completed");
            edits.replace(doc.span(item), message);
        }
    }
    // Some servers give all text once more.
    let again = doc.get(response, "output_text")?;
    shared.edit_text(doc, again, &mut String::new(), false, edits);
    Ok(Flow::Done)
}
