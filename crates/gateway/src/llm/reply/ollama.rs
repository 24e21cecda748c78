//! Ollama's `/api/chat`: one document a line, calls come whole.

use super::super::json::{At, Doc, Edits, Kind, quoted};
use super::super::sse::{BadStream, Event};
use super::{Flow, Flowing, Partial, Ruling, Shared, ToolCall};

#[derive(Debug, Default)]
pub(super) struct State {
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
        shared.anew();
        let mut silent = false;
        let flow = line(&doc, self.count, shared, Some(&mut silent), &mut edits)?;
        if let Flow::Ask(call) = flow {
            return Ok(Flow::Ask(call));
        }
        shared.leaves(&doc, &mut edits)?;
        self.count += 1;
        if edits.is_empty() {
            out.extend_from_slice(&event.raw);
        } else if !silent {
            out.extend(edits.apply(event.data.as_bytes()));
            out.push(b'\n');
        }
        Ok(Flow::Done)
    }

    pub(super) fn end(&mut self, shared: &mut Shared, out: &mut Vec<u8>) -> Flowing {
        let rest = shared.rest((0, 0));
        if !rest.is_empty() {
            let line = format!(
                "{{\"message\":{{\"role\":\"assistant\",\"content\":{}}},\"done\":false}}\n",
                quoted(&rest)
            );
            out.extend_from_slice(line.as_bytes());
        }
        Ok(Flow::Done)
    }
}

/// A whole reply.
pub(super) fn whole(doc: &Doc<'_>, shared: &mut Shared, edits: &mut Edits) -> Flowing {
    line(doc, 0, shared, None, edits)
}

fn calls(doc: &Doc<'_>, message: At, number: usize) -> Result<Vec<(At, ToolCall)>, BadStream> {
    let mut found = Vec::new();
    let list = doc.get(message, "tool_calls")?.filter(|list| doc.kind(*list) != Kind::Null);
    if list.is_some_and(|list| doc.kind(list) != Kind::Array) {
        return Err(BadStream::Parts);
    }
    for (place, call) in list.into_iter().flat_map(|list| doc.items(list)).enumerate() {
        let function = doc.get(call, "function")?.unwrap_or(call);
        let arguments = doc.get(function, "arguments")?;
        let arguments = arguments.map(|at| doc.text(at).unwrap_or_else(|| doc.raw(at).into()));
        let partial = Partial {
            id: doc.string(call, "id")?.unwrap_or_default().into_owned(),
            name: doc.string(function, "name")?.unwrap_or_default().into_owned(),
            arguments: arguments.unwrap_or_default().into_owned(),
        };
        found.push((call, partial.call(format!("line {number} call {place}"))));
    }
    Ok(found)
}

/// One line; in a stream `silent` tells whether nothing of it can be seen yet.
fn line(
    doc: &Doc<'_>,
    number: usize,
    shared: &mut Shared,
    silent: Option<&mut bool>,
    edits: &mut Edits,
) -> Flowing {
    let root = Doc::ROOT;
    let message = doc.get(root, "message")?;
    let calls = match message {
        Some(message) if shared.judging => calls(doc, message, number)?,
        _ => Vec::new(),
    };
    for (_, call) in &calls {
        if shared.ruling(&call.key).is_none() {
            return Ok(Flow::Ask(call.clone()));
        }
    }
    shared.model(doc, root, "model")?;
    shared.tokens(doc, Some(root), ("prompt_eval_count", "eval_count"))?;
    let done = doc.get(root, "done")?.is_some_and(|at| doc.raw(at) == "true");
    if done {
        shared.stopped(doc.string(root, "done_reason")?.as_deref().or(Some("done")));
    }
    let content = match message {
        Some(message) => doc.get(message, "content")?,
        None => None,
    };
    let said = content.and_then(|at| doc.text(at)).unwrap_or_default().into_owned();
    if content.is_some_and(|at| doc.kind(at) == Kind::String) {
        shared.looked_if(doc, content);
    }
    let list = match message {
        Some(message) => doc.get(message, "tool_calls")?,
        None => None,
    };
    shared.looked_if(doc, list);
    let streams = silent.is_some();
    let mut shown = if streams {
        let mut shown = shared.text((0, 0), &said)?;
        if done || !calls.is_empty() {
            shown.push_str(&shared.rest((0, 0)));
        }
        shown
    } else {
        shared.redacted(&said, &mut String::new(), true).unwrap_or_else(|| said.clone())
    };
    let mut kept = Vec::new();
    for (at, call) in &calls {
        match shared.ruling(&call.key) {
            Some(Ruling::Deny(text)) => {
                if !shown.is_empty() {
                    shown.push('\n');
                }
                shown.push_str(text);
            }
            _ => kept.push(doc.raw(*at)),
        }
    }
    let mut told = false;
    if let Some(message) = message
        && kept.len() < calls.len()
        && let Some(list) = list
    {
        match kept.is_empty() {
            true if content.is_none() => {
                let text = format!("\"content\":{}", quoted(&shown));
                edits.replace(doc.member_span(list), text);
                told = true;
            }
            true => edits.remove(doc, message, list),
            false => edits.replace(doc.span(list), format!("[{}]", kept.join(","))),
        }
    }
    if shown != said && !told {
        match (content, message) {
            (Some(at), _) => edits.replace(doc.span(at), quoted(&shown)),
            (None, Some(message)) => edits.add(doc, message, "content", &quoted(&shown)),
            (None, None) => {
                let message = format!("{{\"role\":\"assistant\",\"content\":{}}}", quoted(&shown));
                edits.add(doc, root, "message", &message);
            }
        }
    }
    if let Some(silent) = silent {
        let thinks =
            message.is_some_and(|message| doc.get(message, "thinking").ok().flatten().is_some());
        *silent = shown.is_empty() && !said.is_empty() && !done && calls.is_empty() && !thinks;
    }
    Ok(Flow::Done)
}
