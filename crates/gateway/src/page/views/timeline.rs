//! Records, the newest first, with filters.

use std::fmt::Write as _;

use wardkeep_monitor::index::Category;

use super::{grave, record_link};
use crate::page::html::{Part, Said, Text, short};
use crate::page::office::Events;
use crate::page::routes::Filters;

/// Types that can be asked for.
const KINDS: [&str; 9] = [
    "SessionStart",
    "SessionMessage",
    "ToolCall",
    "ToolResult",
    "FileRead",
    "FileWrite",
    "FileDelete",
    "NetworkRequest",
    "GuardDecision",
];

/// The view.
pub(in crate::page) fn view(filters: &Filters, events: &Events) -> String {
    let mut out = String::new();
    form(filters, &mut out);
    // Only the newest page changes while one looks at it.
    let live = if filters.below.is_none() { " data-live" } else { "" };
    let _ = write!(
        out,
        "<p id=\"news\" class=\"soft\" role=\"status\" aria-live=\"polite\"></p>\n\
         <div class=\"scroll\"><table class=\"timeline\"{live}><thead><tr><th scope=\"col\">#</th><th scope=\"col\">time (UTC)</th>\
         <th scope=\"col\">what</th><th scope=\"col\">by</th><th scope=\"col\">session</th>\
         <th scope=\"col\">record</th></tr></thead><tbody id=\"rows\">\n{}</tbody></table></div>\n",
        rows(events)
    );
    if events.events.is_empty() && events.stopped_at.is_none() {
        out.push_str("<p>No records.</p>\n");
    }
    if let Some(at) = events.stopped_at {
        let _ = writeln!(
            out,
            "<p role=\"status\">Looked back to record {at}; what is older was not looked at yet.</p>"
        );
    }
    let mut links = Vec::new();
    if filters.below.is_some() {
        links.push(format!(
            "<a href=\"/timeline?{}\" rel=\"first\">newest</a>",
            query(filters, None)
        ));
    }
    let older = events.events.last().filter(|_| events.more).map(|last| last.index);
    if let Some(below) = older.or(events.stopped_at) {
        let address = query(filters, Some(below));
        links.push(format!("<a href=\"/timeline?{address}\" rel=\"next\">older</a>"));
    }
    if !links.is_empty() {
        let _ =
            writeln!(out, "<nav class=\"pages\" aria-label=\"Pages\">{}</nav>", links.join(" "));
    }
    out
}

/// Only the rows.
pub(in crate::page) fn rows(events: &Events) -> String {
    let mut out = String::new();
    for event in &events.events {
        let blocked = if event.blocked { " class=\"blocked\"" } else { "" };
        let session = if event.session.is_empty() {
            String::new()
        } else {
            format!(
                "<a href=\"/timeline?session={}\">{}</a>",
                Part(&event.session),
                Text(&short(&event.session, 24))
            )
        };
        let _ = writeln!(
            out,
            "<tr{blocked} data-index=\"{}\"><td>{}</td><td><time>{}</time></td><td>{} <span class=\"kind\">{}</span> {}</td>\
             <td>{} {}</td><td>{session}</td><td>{}</td></tr>",
            event.index,
            event.index,
            Text(&event.time.replacen('T', " ", 1).replace('Z', "")),
            grave(event.severity),
            Text(&event.kind),
            Said(&short(&event.text, 240)),
            Text(&event.principal),
            Text(&short(&event.agent, 24)),
            record_link(&event.id),
        );
    }
    out
}

fn form(filters: &Filters, out: &mut String) {
    out.push_str("<form method=\"get\" action=\"/timeline\" class=\"filters\">");
    let mut choice = |name: &str, label: &str, now: &str, words: &[&str]| {
        let _ =
            write!(out, "<label>{label} <select name=\"{name}\"><option value=\"\">all</option>");
        for word in words {
            let chosen = if *word == now { " selected" } else { "" };
            let _ = write!(out, "<option{chosen}>{word}</option>");
        }
        out.push_str("</select></label>");
    };
    choice("severity", "at least", &filters.severity, &["medium", "high", "critical"]);
    choice("verdict", "decided", &filters.verdict, &["deny", "ask", "stage", "redact", "allow"]);
    choice("kind", "type", &filters.kind, &KINDS);
    let categories: Vec<&str> = Category::ALL.iter().map(|one| one.as_str()).collect();
    choice("category", "about", &filters.category, &categories);
    let fields =
        [("text", &filters.text), ("session", &filters.session), ("agent", &filters.agent)];
    for (name, value) in fields {
        let _ = write!(
            out,
            "<label>{name} <input name=\"{name}\" value=\"{}\" autocomplete=\"off\" spellcheck=\"false\"></label>",
            Text(value)
        );
    }
    out.push_str("<button type=\"submit\">Filter</button></form>\n");
}

fn query(filters: &Filters, below: Option<u64>) -> String {
    let pairs = [
        ("session", &filters.session),
        ("agent", &filters.agent),
        ("kind", &filters.kind),
        ("severity", &filters.severity),
        ("category", &filters.category),
        ("verdict", &filters.verdict),
        ("text", &filters.text),
    ];
    let mut parts: Vec<String> = pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", Part(value)))
        .collect();
    parts.extend(below.map(|below| format!("below={below}")));
    // What stands in an attribute.
    parts.join("&amp;")
}
