//! A record in full, with where it came from and where it led.

use std::fmt::Write as _;

use super::{facts, grave, plain};
use crate::page::html::{Part, Said};
use crate::page::office::RecordView;

/// The view.
pub(in crate::page) fn view(record: &RecordView) -> String {
    let event = &record.event;
    let mut out = format!("<p>{} {}</p>\n", grave(event.severity), Said(&event.text));
    out.push_str(&facts(&[
        ("type", event.kind.clone()),
        ("when", event.time.clone()),
        ("by", format!("{} {}", event.principal, event.agent)),
        ("session", event.session.clone()),
        ("place in the log", event.index.to_string()),
        ("id", event.id.clone()),
    ]));
    if !event.session.is_empty() {
        let _ = writeln!(
            out,
            "<p><a href=\"/timeline?session={}\">All of this session</a></p>",
            Part(&event.session)
        );
    }
    for (title, picture) in [
        ("Where it came from", &record.past),
        ("Where it led: what it may have contaminated", &record.future),
    ] {
        if let Some(picture) = picture {
            let _ = writeln!(
                out,
                "<h2>{title}</h2>\n<div class=\"scroll picture\" role=\"group\" tabindex=\"0\" aria-label=\"{title}\">{picture}</div>"
            );
        }
    }
    let _ = write!(out, "<h2>All of it</h2>\n{}", plain(&record.json));
    out
}
