//! Google's `generateContent`. The block is the last part of the last content of the user, behind
//! every function response.

use super::super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::{Found, Mark, Piece, Role, Said, What, given, other, piece, sealed};

/// Texts of one function response that are put into tags.
const WRAPPED: usize = 64;

pub(super) fn read<'t>(doc: &Doc<'t>) -> Result<Found<'t>, BadJson> {
    let (mut system, mut messages) = (Vec::new(), Vec::new());
    if let Some(instruction) = either(doc, Doc::ROOT, "systemInstruction", "system_instruction")? {
        let said = said(doc, instruction)?;
        system.extend(said.pieces.into_iter().map(|piece| piece.text));
    }
    if let Some(contents) = doc.get(Doc::ROOT, "contents")? {
        if doc.kind(contents) == Kind::Object {
            messages.push(said(doc, contents)?);
        }
        for content in doc.items(contents) {
            messages.push(said(doc, content)?);
        }
    }
    // Whether it is a stream stands in the path.
    Ok(Found { system, messages, hint: None, kept: Vec::new(), stream: false })
}

/// A member that may be spelled in two ways, but not in both at once.
fn either(doc: &Doc<'_>, at: At, one: &str, other: &str) -> Result<Option<At>, BadJson> {
    match (doc.get(at, one)?, doc.get(at, other)?) {
        (Some(_), Some(_)) => Err(BadJson::Twice(doc.span(at).start)),
        (one, other) => Ok(one.or(other)),
    }
}

fn said<'t>(doc: &Doc<'t>, content: At) -> Result<Said<'t>, BadJson> {
    let role = match doc.string(content, "role")?.as_deref() {
        Some("model") => Role::Assistant,
        _ => Role::User,
    };
    let mut pieces = Vec::new();
    let parts = doc.get(content, "parts")?;
    let parts = parts
        .map(|at| if doc.kind(at) == Kind::Array { doc.items(at).collect() } else { vec![at] });
    for part in parts.unwrap_or_default() {
        if let Some(call) = either(doc, part, "functionCall", "function_call")? {
            let id = doc.string(call, "id")?.or(doc.string(call, "name")?).unwrap_or_default();
            let text = doc.string(call, "name")?.unwrap_or_default();
            pieces.push(Piece { what: What::Call { id }, text, place: None });
        } else if let Some(answer) = either(doc, part, "functionResponse", "function_response")? {
            let tool = doc.string(answer, "name")?;
            let id = doc.string(answer, "id")?.or_else(|| tool.clone()).unwrap_or_default();
            let before = pieces.len();
            // Its id and its name are no words of the tool.
            for inner in ["response", "parts"] {
                if let Some(said) = doc.get(answer, inner)? {
                    given(doc, Some(said), (id.clone(), tool.clone(), Mark::Neutral), &mut pieces);
                }
            }
            for piece in pieces[before..]
                .iter_mut()
                .filter(|piece| piece.is_value(doc) && piece.text.contains([' ', '\n']))
                .take(WRAPPED)
            {
                if let What::Result { mark, .. } = &mut piece.what {
                    *mark = Mark::Wrapped;
                }
            }
            if pieces.len() == before {
                given(doc, None, (id, tool, Mark::Kept), &mut pieces);
            }
        } else if let Some(ran) = either(doc, part, "codeExecutionResult", "code_execution_result")?
        {
            sealed(doc, Some(ran), ("".into(), Some("code_execution".into())), &mut pieces);
        } else if let Some(text) = doc.get(part, "text")? {
            let thought = doc.get(part, "thought")?.is_some_and(|at| doc.raw(at) == "true");
            let what = if thought { What::Other } else { What::Text };
            pieces.push(piece(doc, text, what).unwrap_or_else(other));
        } else {
            pieces.push(other());
        }
    }
    Ok(Said { role, pieces })
}

pub(super) fn place(doc: &Doc<'_>, block: &str, edits: &mut Edits) {
    let part = format!("{{\"text\":{}}}", quoted(block));
    let content = format!("{{\"role\":\"user\",\"parts\":[{part}]}}");
    let Ok(Some(list)) = doc.get(Doc::ROOT, "contents") else {
        return edits.add(doc, Doc::ROOT, "contents", &format!("[{content}]"));
    };
    if doc.kind(list) != Kind::Array {
        let own = if doc.kind(list) == Kind::Object {
            format!("{},", doc.raw(list))
        } else {
            String::new()
        };
        return edits.replace(doc.span(list), format!("[{own}{content}]"));
    }
    let last = doc.items(list).last();
    let user = last.filter(|last| {
        let role = doc.string(*last, "role").ok().flatten();
        role.as_deref().is_none_or(|role| role == "user")
    });
    let parts = user.and_then(|last| doc.get(last, "parts").ok().flatten());
    match parts.filter(|parts| doc.kind(*parts) == Kind::Array) {
        Some(parts) => edits.push(doc, parts, &part),
        None => edits.push(doc, list, &content),
    }
}
