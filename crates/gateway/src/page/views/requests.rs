//! What agents ask for.

use std::fmt::Write as _;

use wardkeep_monitor::approvals::{Content, Shown, Status};

use super::{facts, hidden, record_link, text_change};
use crate::page::html::{Part, Said, Text, short};
use crate::page::office::{Answer, Requests, Scope};

/// The list.
pub(in crate::page) fn view(requests: &Requests) -> String {
    let mut out = String::new();
    if requests.waiting.is_empty() {
        out.push_str("<p class=\"note good\" role=\"status\">No request waits.</p>\n");
    }
    for one in &requests.waiting {
        let (minutes, seconds) = (one.seconds.max(0) / 60, one.seconds.max(0) % 60);
        let _ = writeln!(
            out,
            "<section class=\"card wide\"><h2><a href=\"/requests/{}\">{}</a></h2><p>{}</p>\
             <p class=\"soft\">{minutes}:{seconds:02} left · session {} · {}</p></section>",
            Part(&one.id),
            Text(&short(&one.what, 200)),
            Said(&one.reason),
            Text(&short(&one.session, 60)),
            record_link(&one.id)
        );
    }
    if !requests.given.is_empty() {
        out.push_str("<h2>In force</h2>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">what</th>\
                      <th scope=\"col\">how often</th><th scope=\"col\">until</th><th scope=\"col\">record</th></tr></thead><tbody>\n");
        for one in &requests.given {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                Text(&short(&one.what, 200)),
                Text(&one.scope),
                Text(one.until.as_deref().unwrap_or("taken back")),
                record_link(&one.id)
            );
        }
        out.push_str("</tbody></table></div>\n");
    }
    out
}

/// One of them, with the form that answers it.
pub(in crate::page) fn one(shown: &Shown, form: &str) -> String {
    let mut out = about(shown);
    if shown.status != Status::Pending {
        let _ = writeln!(out, "<p>{}</p>", Text(&state(shown)));
        return out;
    }
    if !shown.consistent {
        out.push_str("<p class=\"bad\">It asks for something else than it shows, so it cannot be approved.</p>\n");
        return out;
    }
    let _ = write!(
        out,
        "<form method=\"post\" action=\"/requests/{}\">{}<input type=\"hidden\" name=\"action\" value=\"{}\">\
         <fieldset><legend>Your answer</legend>",
        Part(&shown.request),
        hidden(form),
        Text(&shown.action)
    );
    for (value, label) in
        [("deny", "Deny"), ("once", "Approve once"), ("session", "Approve for this session")]
    {
        let chosen = if value == "deny" { " checked" } else { "" };
        let _ = write!(
            out,
            "<label><input type=\"radio\" name=\"answer\" value=\"{value}\"{chosen}> {label}</label> "
        );
    }
    out.push_str("</fieldset><button type=\"submit\">Go on</button></form>\n");
    out
}

/// The question whether it is meant.
pub(in crate::page) fn sure(shown: &Shown, answer: Answer, confirmation: &str) -> String {
    let what = match answer {
        Answer::Approve(Scope::Once) => "Approve this once:",
        Answer::Approve(Scope::Session) => "Approve this for the session that asked:",
        Answer::Deny => "Deny this:",
    };
    let code: String = shown.action.chars().take(8).collect();
    format!(
        "<p><strong>{what}</strong></p>\n<p>Code of exactly this action: <code>{}</code></p>\n{}{confirmation}",
        Text(&code),
        about(shown)
    )
}

fn state(shown: &Shown) -> String {
    match shown.status {
        Status::Pending => format!("It waits until {}.", shown.expires),
        Status::Approved => "It was approved.".to_owned(),
        Status::Denied => "It was denied.".to_owned(),
        Status::Expired => format!("It ended at {}, which is a denial.", shown.expires),
    }
}

fn about(shown: &Shown) -> String {
    let mut out = facts(&[
        ("what", format!("{} ({})", shown.act, shown.surface)),
        ("subject", shown.subject.clone()),
        ("how", shown.how.clone().unwrap_or_default()),
        ("why it asks", shown.reason.clone()),
        ("rule", shown.rule.clone()),
        ("on behalf of", shown.principal.clone()),
        ("agent", format!("{} in session {}", shown.agent, shown.session)),
        ("workspace", shown.workspace.clone()),
        ("taint of its own", shown.direct.join(", ")),
        ("taint of the session", shown.ambient.join(", ")),
        ("asked at", shown.at.clone()),
        ("until", shown.expires.clone()),
        ("suggestion", shown.suggestion.clone().unwrap_or_default()),
    ]);
    contents(shown, &mut out);
    if !shown.parents.is_empty() {
        out.push_str("<h2>It came from</h2>\n<ul class=\"events\">\n");
        for parent in &shown.parents {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let _ = writeln!(
                out,
                "<li>{} {} {} {} {}</li>",
                record_link(&parent.record),
                Text(parent.kind.as_deref().unwrap_or("not in the journal")),
                Text(&text(&parent.principal)),
                Text(&parent.taint.join(" ")),
                Text(&short(&text(&parent.subject), 200))
            );
        }
        out.push_str("</ul>\n");
        if shown.more_parents > 0 {
            let _ = writeln!(out, "<p>and {} more</p>", shown.more_parents);
        }
    }
    out
}

/// What is to be written: beside what is there, where both were kept.
fn contents(shown: &Shown, out: &mut String) {
    let Some(Content { sha256, bytes, text }) = &shown.content else { return };
    let _ = writeln!(
        out,
        "<h2>Content</h2>\n<p class=\"soft\">{bytes} bytes, sha256 <code>{}</code></p>",
        Text(sha256)
    );
    let before = shown.before.as_ref().and_then(|before| before.text.as_deref());
    let Some(text) = text else {
        out.push_str("<p>It was not kept.</p>\n");
        return;
    };
    out.push_str(&text_change(b"content", before, text));
}
