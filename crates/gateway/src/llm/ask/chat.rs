//! OpenAI's Chat Completions. The block is a last message of the user: other roles at the end are
//! not taken by all compatible servers.

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::{Found, Mark, Piece, Role, Said, What, flag, given, texts, unread};

pub(super) fn read<'t>(doc: &Doc<'t>) -> Result<Found<'t>, BadJson> {
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    if let Some(list) = doc.get(Doc::ROOT, "messages")? {
        for message in doc.items(list) {
            let said = said(doc, message)?;
            if said.role == Role::System {
                system.extend(said.pieces.iter().map(|piece| piece.text.clone()));
            }
            messages.push(said);
        }
    }
    let mut hint = None;
    for name in ["prompt_cache_key", "session_id"] {
        hint = hint.or(doc.string(Doc::ROOT, name)?);
    }
    let (kept, stream) = (Vec::new(), flag(doc, "stream")? == Some(true));
    Ok(Found { system, messages, hint, kept, stream })
}

pub(super) fn said<'t>(doc: &Doc<'t>, message: At) -> Result<Said<'t>, BadJson> {
    let name = doc.string(message, "role")?;
    let name = name.as_deref().unwrap_or_default();
    let (role, what) = match name {
        "system" | "developer" => (Role::System, What::Text),
        "assistant" => (Role::Assistant, What::Text),
        "tool" | "function" => {
            let id = doc.string(message, "tool_call_id")?;
            let tool = match doc.string(message, "name")? {
                Some(name) => Some(name),
                None => doc.string(message, "tool_name")?,
            };
            let id = id.or_else(|| tool.clone()).unwrap_or_default();
            (Role::User, What::Result { id, tool, mark: Mark::Wrapped })
        }
        _ => (Role::User, What::Text),
    };
    let mut pieces = Vec::new();
    let content = doc.get(message, "content")?;
    match (what, content) {
        (What::Result { id, tool, mark }, content) => {
            given(doc, content, (id.clone(), tool.clone(), mark), &mut pieces);
            let images = doc.get(message, "images")?;
            if images.is_some_and(|images| doc.items(images).next().is_some()) {
                pieces.push(unread(id, tool));
            }
        }
        (what, Some(content)) => texts(doc, content, &what, &mut pieces)?,
        (_, None) => {}
    }
    if let Some(calls) = doc.get(message, "tool_calls")? {
        for call in doc.items(calls) {
            let id = doc.string(call, "id")?.unwrap_or_default();
            let mut text = None;
            for form in ["function", "custom"] {
                if let Some(at) = doc.path(call, &[form, "name"])? {
                    text = doc.text(at);
                }
            }
            let text = text.unwrap_or_default();
            pieces.push(Piece { what: What::Call { id }, text, place: None });
        }
    }
    Ok(Said { role, pieces })
}

pub(super) fn place(doc: &Doc<'_>, block: &str, edits: &mut Edits) {
    let message = format!("{{\"role\":\"user\",\"content\":{}}}", quoted(block));
    match doc.get(Doc::ROOT, "messages") {
        Ok(Some(list)) if doc.kind(list) == Kind::Array => edits.push(doc, list, &message),
        Ok(Some(list)) => edits.replace(doc.span(list), format!("[{message}]")),
        _ => edits.add(doc, Doc::ROOT, "messages", &format!("[{message}]")),
    }
}
