//! What a wire's own reading has not looked at: every other string, and calls where none belong.

use super::super::json::{At, Doc, Kind};
use super::super::sse::BadStream;

/// Members that say something to programs, not to people.
const OPAQUE: &[&str] = &[
    "id",
    "object",
    "type",
    "role",
    "model",
    "modelVersion",
    "status",
    "created",
    "created_at",
    "createTime",
    "finish_reason",
    "finishReason",
    "native_finish_reason",
    "stop_reason",
    "done_reason",
    "system_fingerprint",
    "service_tier",
    "obfuscation",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "encrypted_index",
];
/// Members in which a model thinks.
const THOUGHTS: &[&str] =
    &["thinking", "reasoning", "reasoning_content", "reasoning_details", "reasoning_text"];
/// Blocks, items and deltas in which it does.
const THINKS: &[&str] =
    &["reasoning", "thinking", "redacted_thinking", "thinking_delta", "signature_delta"];
/// Members that hold calls, in small letters and without underscores.
const HOLD_CALLS: &[&str] = &["toolcalls", "functioncall", "functioncalls"];
/// What calls are called.
const CALLS: &[&str] = &[
    "tool_use",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
];
/// What is longer and nothing but letters of Base64 is a picture, a sound or sealed.
const SEALED: usize = 256;

/// What nobody has looked at.
pub(super) enum Unread {
    /// A string.
    Text(At),
    /// Strings that may be parts of one.
    List(At),
}

/// All strings of a document that are for people and do not stand in a place that was looked at.
///
/// # Errors
/// Where `judging`, when a call stands in such a place: somebody might read it there.
pub(super) fn unread(
    doc: &Doc<'_>,
    looked_at: &[usize],
    judging: bool,
) -> Result<Vec<Unread>, BadStream> {
    let mut walk = Walk { doc, looked_at, judging, found: Vec::new() };
    walk.value(Doc::ROOT, "")?;
    Ok(walk.found)
}

struct Walk<'d, 't> {
    doc: &'d Doc<'t>,
    /// Where values begin that were looked at, in order.
    looked_at: &'d [usize],
    judging: bool,
    found: Vec<Unread>,
}

impl Walk<'_, '_> {
    fn value(&mut self, at: At, name: &str) -> Result<(), BadStream> {
        let doc = self.doc;
        let kind = doc.kind(at);
        if matches!(kind, Kind::Null | Kind::Bool | Kind::Number)
            || self.looked_at.binary_search(&doc.span(at).start).is_ok()
        {
            return Ok(());
        }
        match kind {
            Kind::String => {
                if !is_opaque(name) && !is_sealed(doc.raw(at)) && doc.raw(at).len() > 2 {
                    self.found.push(Unread::Text(at));
                }
            }
            Kind::Array => {
                let strings = doc.items(at).filter(|item| doc.kind(*item) == Kind::String);
                if strings.count() > 1 && !is_opaque(name) {
                    self.found.push(Unread::List(at));
                }
                for item in doc.items(at) {
                    self.value(item, name)?;
                }
            }
            _ => self.object(at)?,
        }
        Ok(())
    }

    fn object(&mut self, at: At) -> Result<(), BadStream> {
        let doc = self.doc;
        let mut thought = false;
        for member in doc.inside(at) {
            match doc.key(member).as_ref() {
                "type" => {
                    let Some(kind) = doc.text(member) else { continue };
                    if THINKS.contains(&kind.as_ref()) {
                        return Ok(());
                    }
                    if self.judging && CALLS.contains(&kind.to_ascii_lowercase().as_str()) {
                        return Err(BadStream::Parts);
                    }
                }
                "thought" => thought = doc.raw(member) == "true",
                _ => {}
            }
        }
        for member in doc.inside(at) {
            let name = doc.key(member);
            if THOUGHTS.contains(&name.as_ref()) || (thought && name == "text") {
                continue;
            }
            if self.judging
                && holds_calls(&name)
                && doc.inside(member).next().is_some()
                && self.looked_at.binary_search(&doc.span(member).start).is_err()
            {
                return Err(BadStream::Parts);
            }
            self.value(member, &name)?;
        }
        Ok(())
    }
}

fn is_opaque(name: &str) -> bool {
    OPAQUE.contains(&name) || name.ends_with("_id") || name.ends_with("Id")
}

fn holds_calls(name: &str) -> bool {
    if !(9..=20).contains(&name.len()) {
        return false;
    }
    let plain: String = name
        .chars()
        .filter(|sign| !"_-".contains(*sign))
        .map(|sign| sign.to_ascii_lowercase())
        .collect();
    HOLD_CALLS.contains(&plain.as_str())
}

fn is_sealed(quoted: &str) -> bool {
    let inner = &quoted.as_bytes()[1..quoted.len() - 1];
    let sealed = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte);
    inner.len() > SEALED && inner.iter().all(sealed)
}
