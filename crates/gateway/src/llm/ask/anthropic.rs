//! Anthropic's Messages. The block is the last text of the last user message, behind every tool
//! result; it bears no cache mark, so what the client caches ends before it.

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::{Found, Mark, Piece, Role, Said, What, flag, given, other, piece, sealed, texts};

pub(super) fn read<'t>(doc: &Doc<'t>) -> Result<Found<'t>, BadJson> {
    let mut system = Vec::new();
    if let Some(at) = doc.get(Doc::ROOT, "system")? {
        let mut pieces = Vec::new();
        texts(doc, at, &What::Text, &mut pieces)?;
        let said = pieces.into_iter().filter(|piece| piece.what == What::Text);
        // A line of the client's own, which is another one in each call.
        let said = said.filter(|piece| !piece.text.starts_with("x-anthropic-billing-header:"));
        system.extend(said.map(|piece| piece.text));
    }
    let mut messages = Vec::new();
    if let Some(list) = doc.get(Doc::ROOT, "messages")? {
        for message in doc.items(list) {
            messages.push(said(doc, message)?);
        }
    }
    let hint = match doc.path(Doc::ROOT, &["metadata", "user_id"])? {
        Some(at) => doc.text(at),
        None => None,
    };
    let (kept, stream) = (Vec::new(), flag(doc, "stream")? == Some(true));
    Ok(Found { system, messages, hint, kept, stream })
}

fn role(doc: &Doc<'_>, message: At) -> Result<Role, BadJson> {
    Ok(match doc.string(message, "role")?.as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        _ => Role::User,
    })
}

fn said<'t>(doc: &Doc<'t>, message: At) -> Result<Said<'t>, BadJson> {
    let role = role(doc, message)?;
    let mut pieces = Vec::new();
    let Some(content) = doc.get(message, "content")? else { return Ok(Said { role, pieces }) };
    if doc.kind(content) == Kind::String {
        texts(doc, content, &What::Text, &mut pieces)?;
        return Ok(Said { role, pieces });
    }
    for block in doc.items(content) {
        let kind = doc.string(block, "type")?;
        let kind = kind.as_deref().unwrap_or_default();
        match kind {
            "text" => match doc.get(block, "text")?.and_then(|at| piece(doc, at, What::Text)) {
                Some(text) => pieces.push(text),
                None => pieces.push(other()),
            },
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let id = doc.string(block, "id")?.unwrap_or_default();
                let text = doc.string(block, "name")?.unwrap_or_default();
                pieces.push(Piece { what: What::Call { id }, text, place: None });
            }
            kind if kind.ends_with("tool_result") => {
                let id = doc.string(block, "tool_use_id")?.unwrap_or_default();
                let content = doc.get(block, "content")?;
                match kind {
                    "tool_result" => given(doc, content, (id, None, Mark::Wrapped), &mut pieces),
                    "mcp_tool_result" => given(doc, content, (id, None, Mark::Kept), &mut pieces),
                    // What the provider's own tools gave is the provider's to check, byte for byte.
                    _ => sealed(doc, content, (id, None), &mut pieces),
                }
            }
            "image" | "container_upload" | "thinking" | "redacted_thinking" => {
                pieces.push(other());
            }
            // Documents, results of a search, and whatever there will be: nobody says them.
            _ if role != Role::Assistant => {
                let tool = Some(kind.to_owned().into());
                given(doc, Some(block), ("".into(), tool, Mark::Neutral), &mut pieces);
            }
            _ => pieces.push(other()),
        }
    }
    Ok(Said { role, pieces })
}

pub(super) fn place(doc: &Doc<'_>, block: &str, edits: &mut Edits) {
    let text = format!("{{\"type\":\"text\",\"text\":{}}}", quoted(block));
    let message = format!("{{\"role\":\"user\",\"content\":[{text}]}}");
    let Ok(Some(list)) = doc.get(Doc::ROOT, "messages") else {
        return edits.add(doc, Doc::ROOT, "messages", &format!("[{message}]"));
    };
    if doc.kind(list) != Kind::Array {
        return edits.replace(doc.span(list), format!("[{message}]"));
    }
    let all: Vec<At> = doc.items(list).collect();
    let automatic = automatic(doc);
    let marked = automatic.and_then(|mark| keep_automatic(doc, &all, mark, edits));
    let Some(last) = all.last().copied() else { return edits.push(doc, list, &message) };
    // A turn that the provider's own tool interrupted goes on where it stood.
    let target = if is_paused(doc, last) {
        all.iter().rev().copied().find(|one| is_user(doc, *one)).unwrap_or(last)
    } else {
        last
    };
    let content = doc.get(target, "content").ok().flatten();
    match content.filter(|_| is_user(doc, target)) {
        Some(content) if doc.kind(content) == Kind::Array => edits.push(doc, content, &text),
        Some(content) if doc.kind(content) == Kind::String => {
            let mark = match automatic {
                Some(mark) if marked == Some(content) => {
                    format!(",\"cache_control\":{}", doc.raw(mark))
                }
                _ => String::new(),
            };
            let own = format!("[{{\"type\":\"text\",\"text\":{}{mark}}},{text}]", doc.raw(content));
            // Empty texts are refused inside of a list.
            let empty = doc.text(content).is_none_or(|text| text.trim().is_empty());
            edits.replace(doc.span(content), if empty { format!("[{text}]") } else { own });
        }
        _ => {
            if let (Some(mark), Some(content)) = (automatic, marked) {
                let (text, mark) = (doc.raw(content), doc.raw(mark));
                let own =
                    format!("[{{\"type\":\"text\",\"text\":{text},\"cache_control\":{mark}}}]");
                edits.replace(doc.span(content), own);
            }
            edits.push(doc, list, &message);
        }
    }
}

/// The mark of a request that leaves it to the API what is cached: it would choose the block, which is
/// in no later request.
fn automatic(doc: &Doc<'_>) -> Option<At> {
    let mark = doc.get(Doc::ROOT, "cache_control").ok().flatten()?;
    (doc.kind(mark) == Kind::Object).then_some(mark)
}

/// Puts that mark where it would have stood without the block: on the client's own last words. Gives
/// the content that has to become a list for it.
fn keep_automatic(doc: &Doc<'_>, all: &[At], mark: At, edits: &mut Edits) -> Option<At> {
    edits.remove(doc, Doc::ROOT, mark);
    for message in all.iter().rev() {
        let Ok(Some(content)) = doc.get(*message, "content") else { continue };
        if doc.kind(content) == Kind::String {
            if doc.text(content).is_some_and(|text| !text.trim().is_empty()) {
                return Some(content);
            }
            continue;
        }
        let blocks: Vec<At> = doc.items(content).collect();
        let bears = |block: &At| {
            let kind = doc.string(*block, "type").ok().flatten();
            kind.is_some_and(|kind| !kind.ends_with("thinking"))
        };
        if let Some(block) = blocks.into_iter().rev().find(bears) {
            let known = doc.get(block, "cache_control").ok().flatten();
            if known.is_none_or(|known| doc.kind(known) != Kind::Object) {
                if let Some(nothing) = known {
                    edits.remove(doc, block, nothing);
                }
                edits.add(doc, block, "cache_control", doc.raw(mark));
            }
            return None;
        }
    }
    None
}

fn is_user(doc: &Doc<'_>, message: At) -> bool {
    doc.string(message, "role").ok().flatten().as_deref() == Some("user")
}

/// Whether a turn of the model was interrupted by a tool of the provider's own.
fn is_paused(doc: &Doc<'_>, message: At) -> bool {
    let role = doc.string(message, "role").ok().flatten();
    let Ok(Some(content)) = doc.get(message, "content") else { return false };
    let last = doc.items(content).last();
    let kind = last.and_then(|block| doc.string(block, "type").ok().flatten());
    role.as_deref() == Some("assistant")
        && kind.is_some_and(|kind| {
            kind == "server_tool_use" || kind == "mcp_tool_use" || kind.ends_with("_tool_result")
        })
}
