//! How things stand.

use std::fmt::Write as _;

use wardkeep_monitor::grade::Grade;

use super::chain::looked;
use super::{grave, record_link};
use crate::page::html::{Said, Text, short};
use crate::page::office::{Evidence, Posture};

/// The view.
pub(in crate::page) fn view(posture: &Posture) -> String {
    let mut out = String::new();
    todo(posture, &mut out);
    out.push_str("<div class=\"two\"><div>\n");
    posture.grade.iter().for_each(|grade| mark(grade, &mut out));
    out.push_str("</div><div>\n");
    let counts = &posture.counts;
    out.push_str("<section class=\"card\"><h2>What was judged</h2>\n<dl class=\"counts\">");
    let [critical, high, medium] = counts.alerts;
    let cards = [
        ("actions judged", counts.judged, ""),
        ("blocked", counts.blocked, "verdict=deny"),
        ("held for you", counts.held, "verdict=ask"),
        ("critical alerts", critical, "severity=critical"),
        ("high alerts", high, "severity=high"),
        ("medium alerts", medium, "severity=medium"),
        ("records", counts.records, ""),
    ];
    for (name, count, query) in cards {
        let class = if count == 0 { " class=\"none\"" } else { "" };
        let _ = write!(
            out,
            "<div{class}><dt>{name}</dt><dd><a href=\"/timeline?{query}\" aria-label=\"{count} {name}\">{count}</a></dd></div>"
        );
    }
    out.push_str("</dl></section>\n");
    out.push_str("<section class=\"card\"><h2>Evidence</h2>\n");
    looked(&posture.evidence, &mut out);
    out.push_str("<p><a href=\"/evidence\">Chain and seals</a></p></section>\n");
    if !posture.alerts.is_empty() {
        out.push_str(
            "<section class=\"card\"><h2>Not acknowledged yet</h2>\n<ul class=\"events\">\n",
        );
        for alert in &posture.alerts {
            let _ = writeln!(
                out,
                "<li>{} <time>{}</time> {} {}</li>",
                grave(Some(alert.severity)),
                Text(&alert.time),
                Said(&short(&alert.message, 300)),
                record_link(&alert.record.to_string())
            );
        }
        out.push_str("</ul>\n");
        if posture.more_alerts > 0 {
            let _ = writeln!(
                out,
                "<p><a href=\"/timeline?severity=medium\">and {} more</a></p>",
                posture.more_alerts
            );
        }
        out.push_str(
            "<p class=\"soft\"><code>wardkeep notifications --ack</code> acknowledges them.</p></section>\n",
        );
    }
    out.push_str("</div></div>\n");
    let _ = writeln!(out, "<p class=\"soft\">State: {}</p>", Text(&posture.state));
    out
}

fn todo(posture: &Posture, out: &mut String) {
    let mut lines = Vec::new();
    if let Evidence::Broken { .. } = posture.evidence {
        lines.push(
            "<strong class=\"bad\">The evidence does not hold.</strong> Keep the state directory as it is \
             and see <code>wardkeep evidence verify</code>."
                .to_owned(),
        );
    }
    if posture.waiting > 0 {
        lines.push(format!(
            "<a href=\"/requests\">Agents ask for {} thing{}</a>: what is not answered stays denied.",
            posture.waiting,
            if posture.waiting == 1 { "" } else { "s" }
        ));
    }
    if posture.staged > 0 {
        lines.push(format!(
            "<a href=\"/proposals\">Changes are proposed in {} workspace{}</a>.",
            posture.staged,
            if posture.staged == 1 { "" } else { "s" }
        ));
    }
    if posture.alerts.iter().any(|alert| alert.blocked) {
        lines.push("Something was blocked since you last looked: see below.".to_owned());
    }
    if lines.is_empty() {
        out.push_str(
            "<p class=\"note good\" role=\"status\"><strong>Nothing waits for you.</strong></p>\n",
        );
        return;
    }
    out.push_str("<div class=\"note todo\" role=\"status\"><ul>");
    lines.iter().for_each(|line| {
        let _ = write!(out, "<li>{line}</li>");
    });
    out.push_str("</ul></div>\n");
}

/// The mark, what it is made of, and what would raise it.
fn mark(grade: &Grade, out: &mut String) {
    let _ = write!(
        out,
        "<section class=\"card mark\" aria-labelledby=\"grade\"><h2 id=\"grade\">Protection</h2>\
         <div class=\"letter letter-{letter}\"><b>{letter}</b><div><strong>{}</strong><br>{points} of 100 points\
         <meter min=\"0\" max=\"100\" value=\"{points}\" aria-label=\"points\"></meter></div></div>",
        grade.strength.word(),
        points = grade.points,
        letter = grade.letter
    );
    if grade.steps.is_empty() {
        out.push_str("<p class=\"good\">All that was looked at holds.</p>");
    } else {
        out.push_str("<h3>What would raise it</h3>\n<ol class=\"steps\">");
        for step in &grade.steps {
            let class = if step.broken { " class=\"bad\"" } else { "" };
            let gains = if step.gains > 0 { format!("+{}", step.gains) } else { String::new() };
            let _ = write!(
                out,
                "<li><span{class}>{}</span> <span class=\"gain\">{gains}</span> <code>{}</code></li>",
                Said(&short(&step.what, 300)),
                Text(&short(&step.command, 300))
            );
        }
        out.push_str("</ol>\n");
    }
    out.push_str(
        "<details><summary>What the points are for</summary><table><thead><tr><th scope=\"col\">what</th>\
         <th scope=\"col\">points</th></tr></thead><tbody>",
    );
    for part in &grade.parts {
        let _ =
            write!(out, "<tr><td>{}</td><td>{} of {}</td></tr>", part.name, part.points, part.most);
    }
    out.push_str("</tbody></table></details></section>\n");
}
