//! The owner's standing instructions, and how they stand.

use std::fmt::Write as _;

use super::{hidden, text_change};
use crate::page::html::{Said, Text};
use crate::page::office::Policy;

/// The view.
pub(in crate::page) fn view(all: &[Policy], form: &str) -> String {
    let mut out = String::new();
    if all.is_empty() {
        out.push_str(
            "<p>No workspace has a signed policy: <code>wardkeep init</code> makes one.</p>\n",
        );
    }
    for (number, one) in all.iter().enumerate() {
        let class = if one.valid { "good" } else { "bad" };
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<p><strong class=\"{class}\">{}</strong>{}</p>",
            Text(&one.workspace),
            Text(&one.state),
            one.signed_at.as_ref().map(|at| format!(", signed {}", Text(at))).unwrap_or_default()
        );
        if let Some(next) = &one.next {
            let _ = writeln!(out, "<p>What to do: {}</p>", Said(next));
        }
        let _ = writeln!(
            out,
            "<form method=\"post\" action=\"/policy\">{}<input type=\"hidden\" name=\"workspace\" value=\"{}\">\
             <input type=\"hidden\" name=\"before\" value=\"{}\">\
             <label for=\"text{number}\">LocalGPT.md</label>\
             <textarea id=\"text{number}\" name=\"text\" rows=\"14\" spellcheck=\"true\">\n{}</textarea>\
             <button type=\"submit\">Sign…</button></form>",
            hidden(form),
            Text(&one.workspace),
            Text(&one.text),
            Text(&one.text)
        );
    }
    out
}

/// What is about to be signed.
pub(in crate::page) fn sure(workspace: &str, before: &str, text: &str) -> String {
    format!("<h2>{}</h2>\n{}", Text(workspace), text_change(b"LocalGPT.md", Some(before), text))
}
