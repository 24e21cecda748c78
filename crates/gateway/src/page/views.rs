//! What the pages hold.

pub(super) mod chain;
pub(super) mod models;
pub(super) mod now;
pub(super) mod policy;
pub(super) mod proposals;
pub(super) mod record;
pub(super) mod requests;
pub(super) mod skills;
pub(super) mod timeline;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use wardkeep_identity::name::Name;
use wardkeep_identity::show::{Body, Known, Limits, Line, Pair, Shown, Side, Status, Tag, compare};
use wardkeep_monitor::index::Severity;

use super::html::{LINKS, Part, Said, Text};

/// The form that confirms what stands above it.
pub(super) fn confirmation(form: &str, word: &str) -> String {
    format!(
        "<form method=\"post\" action=\"/confirm\" class=\"sure\">{}\
         <input type=\"hidden\" name=\"word\" value=\"{}\">\
         <button type=\"submit\" class=\"go\">Yes, do exactly this</button> \
         <span class=\"soft\">within {} minutes; leave the page to change nothing</span></form>\n",
        hidden(form),
        Text(word),
        super::confirm::SECONDS / 60
    )
}

/// What every form holds.
fn hidden(form: &str) -> String {
    format!("<input type=\"hidden\" name=\"form\" value=\"{}\">", Text(form))
}

/// A word for how grave something is, marked so that it can be seen.
fn grave(severity: Option<Severity>) -> String {
    severity.map_or_else(String::new, |severity| {
        format!("<span class=\"tag {severity}\">{severity}</span>")
    })
}

/// A link to a record.
fn record_link(id: &str) -> String {
    let short: String = id.chars().take(10).collect();
    format!("<a href=\"{}{}\"><code>{}</code></a>", LINKS.record, Part(id), Text(&short))
}

/// Names of facts that are messages of ours.
const OURS: [&str; 2] = ["why it asks", "suggestion"];

/// Pairs of a name and a text.
fn facts(pairs: &[(&str, String)]) -> String {
    let mut out = "<dl>".to_owned();
    for (name, text) in pairs.iter().filter(|(_, text)| !text.is_empty()) {
        // Writing to a string does not fail.
        let _ = match OURS.contains(name) {
            true => write!(out, "<dt>{name}</dt><dd>{}</dd>", Said(text)),
            false => write!(out, "<dt>{name}</dt><dd>{}</dd>", Text(text)),
        };
    }
    out.push_str("</dl>\n");
    out
}

/// Lines of a list, where there are some.
fn list(lines: &[String], out: &mut String) {
    if lines.is_empty() {
        return;
    }
    out.push_str("<ul>");
    for line in lines {
        let _ = write!(out, "<li>{}</li>", Said(line));
    }
    out.push_str("</ul>\n");
}

/// A text on its own; of a very long one the beginning, and it says so.
fn plain(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    let mut out = format!("<pre>{}</pre>\n", Text(&text[..end]));
    if end < text.len() {
        let _ = writeln!(
            out,
            "<p class=\"high\">Not all of it is shown here: {} more bytes.</p>",
            text.len() - end
        );
    }
    out
}

/// Bytes of a text that are shown.
const LONGEST: usize = 256 << 10;
/// How long two texts are compared.
const PATIENCE: Duration = Duration::from_millis(500);

/// A text beside what it was, under a title; by itself where there was nothing else.
fn text_change(title: &[u8], before: Option<&str>, text: &str) -> String {
    match (before.filter(|before| *before != text), Name::new(title)) {
        (Some(before), Some(name)) => {
            let pair = Pair {
                name: &name,
                renamed_from: None,
                old: Some(Side { bytes: before.as_bytes(), is_executable: false }),
                new: Some(Side { bytes: text.as_bytes(), is_executable: false }),
            };
            difference(&compare(&pair, &Limits::until(Instant::now() + PATIENCE)))
        }
        _ => plain(text),
    }
}

/// A change, the old on the left and the new on the right.
fn difference(shown: &Shown) -> String {
    let mut out = String::new();
    let mode = |known: &Option<Known>| known.as_ref().is_some_and(|known| known.is_executable);
    let status = match shown.status {
        Status::New => "new",
        Status::Modified => "changed",
        Status::Deleted => "removed",
        Status::Renamed => "renamed",
        Status::Unchanged => "unchanged",
    };
    let mut title = format!("{status}: {}", shown.name);
    if let Some(from) = &shown.renamed_from {
        let _ = write!(title, " (was {from})");
    }
    if mode(&shown.old) != mode(&shown.new) {
        title.push_str(if mode(&shown.new) { ", now a program" } else { ", no program any more" });
    }
    let _ = writeln!(out, "<h3>{}</h3>", Text(&title));
    match &shown.body {
        Body::Text { hunks, .. } => {
            out.push_str(
                "<div class=\"scroll\"><table class=\"diff\"><thead><tr><th scope=\"col\">approved</th>\
                 <th scope=\"col\">proposed</th></tr></thead><tbody>\n",
            );
            for hunk in hunks {
                let (old, new) = (hunk.old.0, hunk.new.0);
                let _ =
                    writeln!(out, "<tr class=\"at\"><td>line {old}</td><td>line {new}</td></tr>");
                sides(&hunk.lines, &mut out);
            }
            out.push_str("</tbody></table></div>\n");
        }
        Body::Same => out.push_str("<p class=\"soft\">The content is the same.</p>\n"),
        Body::Binary | Body::Large => {
            let size = |known: &Option<Known>| {
                known.as_ref().map_or_else(
                    || "none".to_owned(),
                    |known| format!("{} bytes, sha256 {:.16}…", known.size, known.sha256),
                )
            };
            let _ = writeln!(
                out,
                "<p class=\"soft\">No text that could be compared: {} → {}</p>",
                Text(&size(&shown.old)),
                Text(&size(&shown.new))
            );
        }
    }
    if !shown.is_complete() {
        out.push_str(
            "<p class=\"high\">Not all of it is shown here: look at the file itself.</p>\n",
        );
    }
    out
}

/// Lines beside each other: what was removed on the left of what was added in its place.
fn sides(lines: &[Line], out: &mut String) {
    let (mut removed, mut added): (Vec<&Line>, Vec<&Line>) = (Vec::new(), Vec::new());
    let flush = |removed: &mut Vec<&Line>, added: &mut Vec<&Line>, out: &mut String| {
        for at in 0..removed.len().max(added.len()) {
            let left = removed.get(at).map(|line| cell(line)).unwrap_or_default();
            let right = added.get(at).map(|line| cell(line)).unwrap_or_default();
            let class = |there: bool, class: &str| {
                if there { format!(" class=\"{class}\"") } else { String::new() }
            };
            let _ = writeln!(
                out,
                "<tr><td{}>{left}</td><td{}>{right}</td></tr>",
                class(at < removed.len(), "old"),
                class(at < added.len(), "new"),
            );
        }
        removed.clear();
        added.clear();
    };
    for line in lines {
        match line.tag {
            Tag::Removed => removed.push(line),
            Tag::Added => added.push(line),
            Tag::Context => {
                flush(&mut removed, &mut added, out);
                let text = cell(line);
                let _ = writeln!(out, "<tr class=\"same\"><td>{text}</td><td>{text}</td></tr>");
            }
        }
    }
    flush(&mut removed, &mut added, out);
}

fn cell(line: &Line) -> String {
    let mut out = String::new();
    let (open, close) = match line.tag {
        Tag::Removed => ("<del>", "</del>"),
        Tag::Added => ("<ins>", "</ins>"),
        Tag::Context => ("", ""),
    };
    for piece in &line.pieces {
        let (open, close) = if piece.is_changed { (open, close) } else { ("", "") };
        let _ = write!(out, "{open}{}{close}", Text(&piece.text));
    }
    if line.cut > 0 {
        let _ = write!(out, "<span class=\"soft\"> … {} more characters</span>", line.cut);
    }
    out
}
