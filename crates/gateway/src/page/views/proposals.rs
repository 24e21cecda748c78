//! What is staged, beside what was approved.

use std::fmt::Write as _;

use super::{difference, hidden, plain};
use crate::page::html::{Said, Text};
use crate::page::office::Staged;

/// The view.
pub(in crate::page) fn view(all: &[Staged], form: &str) -> String {
    let mut out = String::new();
    if all.iter().all(|one| one.is_empty() && one.trouble.is_none()) {
        out.push_str("<p class=\"note good\" role=\"status\">Nothing is proposed.</p>\n");
    }
    for one in all.iter().filter(|one| !one.is_empty() || one.trouble.is_some()) {
        out.push_str(&about(one));
        match &one.hash {
            Some(hash) if !one.changes.is_empty() => {
                let _ = writeln!(
                    out,
                    "<form class=\"actions\" method=\"post\" action=\"/proposals\">{}\
                     <input type=\"hidden\" name=\"workspace\" value=\"{}\">\
                     <input type=\"hidden\" name=\"hash\" value=\"{}\">\
                     <button type=\"submit\" class=\"go\" name=\"answer\" value=\"approve\">Approve all of this…</button> \
                     <button type=\"submit\" name=\"answer\" value=\"refuse\">Refuse it…</button> \
                     <span class=\"soft\"><code>wardkeep apply</code> approves some of it</span></form>",
                    hidden(form),
                    Text(&one.workspace),
                    Text(hash)
                );
            }
            _ => {}
        }
    }
    out
}

/// The question whether it is meant.
pub(in crate::page) fn sure(one: &Staged, approve: bool, confirmation: &str) -> String {
    let what = if approve {
        "Install exactly this:"
    } else {
        "Refuse this: the proposal is dropped, the files stay as you approved them."
    };
    format!("<p><strong>{what}</strong></p>\n{}{confirmation}", about(one))
}

fn about(one: &Staged) -> String {
    let mut out = format!("<h2>{}</h2>\n", Text(&one.workspace));
    if let Some(trouble) = &one.trouble {
        let _ = writeln!(out, "<p class=\"bad\">{}</p>", Said(trouble));
    }
    if let Some(hash) = &one.hash {
        let _ = writeln!(out, "<p class=\"soft\">hash <code>{}</code></p>", Text(hash));
    }
    if !one.concerns.is_empty() {
        out.push_str("<ul class=\"concerns\">");
        for concern in &one.concerns {
            let _ = write!(out, "<li class=\"high\">{}</li>", Said(concern));
        }
        out.push_str("</ul>\n");
    }
    if !one.held.is_empty() {
        let _ = write!(
            out,
            "<p class=\"high\">Another user holds this workspace, and only that one approves: \
             <code>sudo wardkeep diff</code>, then <code>sudo wardkeep apply</code>.</p>\n{}",
            plain(&one.held.join("\n"))
        );
    }
    one.changes.iter().for_each(|change| out.push_str(&difference(change)));
    out
}
