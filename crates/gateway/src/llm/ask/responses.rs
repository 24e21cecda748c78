//! OpenAI's Responses. The block is a last item of the developer.

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::{Found, Mark, Piece, Role, Said, What, flag, given, other, sealed, texts};

pub(super) fn read<'t>(doc: &Doc<'t>) -> Result<Found<'t>, BadJson> {
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    system.extend(doc.string(Doc::ROOT, "instructions")?);
    if let Some(input) = doc.get(Doc::ROOT, "input")? {
        if doc.kind(input) == Kind::String {
            let mut pieces = Vec::new();
            texts(doc, input, &What::Text, &mut pieces)?;
            messages.push(Said { role: Role::User, pieces });
        }
        for item in doc.items(input) {
            let said = said(doc, item)?;
            if said.role == Role::System {
                system.extend(said.pieces.iter().map(|piece| piece.text.clone()));
            }
            messages.push(said);
        }
    }
    let hint = doc.string(Doc::ROOT, "prompt_cache_key")?;
    let mut kept = Vec::new();
    kept.extend(doc.string(Doc::ROOT, "previous_response_id")?);
    if let Some(conversation) = doc.get(Doc::ROOT, "conversation")? {
        kept.extend(doc.text(conversation).or(doc.string(conversation, "id")?));
    }
    Ok(Found { system, messages, hint, kept, stream: flag(doc, "stream")? == Some(true) })
}

fn said<'t>(doc: &Doc<'t>, item: At) -> Result<Said<'t>, BadJson> {
    let kind = doc.string(item, "type")?;
    let kind = kind.as_deref().unwrap_or("message");
    let mut pieces = Vec::new();
    let role = match doc.string(item, "role")?.as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        _ => Role::User,
    };
    if kind == "message" {
        if let Some(content) = doc.get(item, "content")? {
            texts(doc, content, &What::Text, &mut pieces)?;
        }
        return Ok(Said { role, pieces });
    }
    let id = doc.string(item, "call_id")?.or(doc.string(item, "id")?).unwrap_or_default();
    if let Some(output) = doc.get(item, "output")? {
        let mark = match kind {
            "function_call_output" | "custom_tool_call_output" => Mark::Wrapped,
            // These have a form that is checked.
            _ => Mark::Kept,
        };
        given(doc, Some(output), (id, None, mark), &mut pieces);
        return Ok(Said { role: Role::User, pieces });
    }
    if kind.ends_with("_call") {
        let text = doc.string(item, "name")?.unwrap_or_else(|| kind.to_owned().into());
        pieces.push(Piece { what: What::Call { id: id.clone() }, text, place: None });
        // What a tool of the provider's own found stands in its call.
        for name in ["results", "outputs"] {
            if let Some(found) = doc.get(item, name)?.filter(|at| doc.kind(*at) != Kind::Null) {
                sealed(doc, Some(found), (id.clone(), None), &mut pieces);
            }
        }
        return Ok(Said { role: Role::Assistant, pieces });
    }
    match kind {
        // The model's own, and what only its maker can read.
        "reasoning"
        | "compaction"
        | "item_reference"
        | "mcp_approval_request"
        | "mcp_approval_response" => pieces.push(other()),
        "mcp_list_tools" => {
            sealed(doc, doc.get(item, "tools")?, (id, Some(kind.to_owned().into())), &mut pieces);
        }
        _ => {
            let tool = Some(kind.to_owned().into());
            given(doc, Some(item), (id, tool, Mark::Kept), &mut pieces);
        }
    }
    Ok(Said { role: Role::Assistant, pieces })
}

pub(super) fn place(doc: &Doc<'_>, block: &str, edits: &mut Edits) {
    let item = format!(
        "{{\"type\":\"message\",\"role\":\"developer\",\"content\":[{{\"type\":\"input_text\",\"text\":{}}}]}}",
        quoted(block)
    );
    match doc.get(Doc::ROOT, "input") {
        Ok(Some(list)) if doc.kind(list) == Kind::Array => edits.push(doc, list, &item),
        Ok(Some(text)) if doc.kind(text) == Kind::String => {
            let own = format!(
                "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":{}}}]}}",
                doc.raw(text)
            );
            edits.replace(doc.span(text), format!("[{own},{item}]"));
        }
        Ok(Some(other)) => edits.replace(doc.span(other), format!("[{item}]")),
        _ => edits.add(doc, Doc::ROOT, "input", &format!("[{item}]")),
    }
}
