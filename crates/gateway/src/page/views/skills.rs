//! Skills: what was approved, what changed since, and what was decided lately.

use std::fmt::Write as _;

use super::{facts, grave, record_link};
use crate::page::html::{Said, Text, short};
use crate::page::office::{SkillRow, Skills};

/// The view.
pub(in crate::page) fn view(skills: &Skills) -> String {
    let mut out = String::new();
    if let Some(why) = &skills.void {
        let _ = writeln!(
            out,
            "<p class=\"bad\">No pin and no approval counts: {}</p>\n\
             <p>What to do: <code>wardkeep config show</code></p>",
            Said(why)
        );
    } else if skills.pinned.is_empty() {
        out.push_str(
            "<p>No skill is pinned. <code>wardkeep skill verify DIR</code> judges one, \
             <code>wardkeep skill install DIR</code> pins what it installs.</p>\n",
        );
    }
    skills.pinned.iter().for_each(|skill| one(skill, &mut out));
    if !skills.recent.is_empty() {
        out.push_str("<h2>Decided lately</h2>\n<ul class=\"events\">\n");
        for event in &skills.recent {
            let _ = writeln!(
                out,
                "<li>{} <time>{}</time> {} {}</li>",
                grave(event.severity),
                Text(&event.time),
                Said(&short(&event.text, 300)),
                record_link(&event.id)
            );
        }
        out.push_str("</ul>\n<p><a href=\"/timeline?category=SKILL\">All of them</a></p>\n");
    }
    out
}

fn one(skill: &SkillRow, out: &mut String) {
    let changed = skill.places.iter().any(|(_, state)| *state != "unchanged");
    let (class, word) = match (changed, skill.approved, skill.places.is_empty()) {
        (true, ..) => ("bad", "changed"),
        (false, true, _) => ("good", "approved"),
        (false, false, true) => ("soft", "pinned, not installed"),
        (false, false, false) => ("medium", "pinned, not approved by you"),
    };
    let _ = write!(
        out,
        "<section class=\"card wide\"><h2>{} <span class=\"tag {class}\">{word}</span></h2>",
        Text(&short(&skill.name, 120))
    );
    out.push_str(&facts(&[
        ("verdict", skill.verdict.clone()),
        ("pinned at", skill.at.clone()),
        ("hash", skill.tree.clone()),
        ("may be granted", skill.grants.join("\n")),
    ]));
    if !skill.places.is_empty() {
        out.push_str("<ul class=\"events\">");
        for (path, state) in &skill.places {
            let class = if *state == "unchanged" { "good" } else { "bad" };
            let _ = write!(out, "<li><span class=\"{class}\">{state}</span> {}</li>", Text(path));
        }
        out.push_str("</ul>");
    }
    if changed {
        let _ = write!(
            out,
            "<p>What to do: <code>wardkeep skill diff {}</code></p>",
            Text(&short(&skill.name, 120))
        );
    }
    out.push_str("</section>\n");
}
