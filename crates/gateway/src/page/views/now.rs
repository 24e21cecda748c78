//! How things stand.

use std::fmt::Write as _;

use super::{grave, record_link};
use crate::page::html::{Text, short};
use crate::page::office::{Evidence, Posture};

/// The view.
pub(in crate::page) fn view(posture: &Posture) -> String {
    let mut out = String::new();
    todo(posture, &mut out);
    let counts = &posture.counts;
    out.push_str("<h2>What was judged</h2>\n<div class=\"cards\">");
    let [critical, high, medium] = counts.alerts;
    let cards = [
        ("actions judged", counts.judged),
        ("blocked", counts.blocked),
        ("held for you", counts.held),
        ("critical alerts", critical),
        ("high alerts", high),
        ("medium alerts", medium),
        ("records", counts.records),
    ];
    for (name, count) in cards {
        let _ = write!(out, "<div class=\"card\"><b>{count}</b>{name}</div>");
    }
    out.push_str("</div>\n");
    if let Some((grade, raise)) = &posture.grade {
        let _ = writeln!(out, "<h2>Grade</h2>\n<p class=\"grade\">{}</p>", Text(grade));
        list(raise, &mut out);
    }
    evidence(&posture.evidence, &mut out);
    if !posture.alerts.is_empty() {
        out.push_str("<h2>Not acknowledged yet</h2>\n<ul class=\"events\">\n");
        for alert in &posture.alerts {
            let _ = writeln!(
                out,
                "<li>{} <time>{}</time> {} {}</li>",
                grave(Some(alert.severity)),
                Text(&alert.time),
                Text(&short(&alert.message, 300)),
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
            "<p class=\"soft\"><code>wardkeep notifications --ack</code> acknowledges them.</p>\n",
        );
    }
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
            "<p class=\"good\" role=\"status\"><strong>Nothing waits for you.</strong></p>\n",
        );
        return;
    }
    out.push_str("<ul class=\"todo\">");
    lines.iter().for_each(|line| {
        let _ = write!(out, "<li>{line}</li>");
    });
    out.push_str("</ul>\n");
}

fn evidence(evidence: &Evidence, out: &mut String) {
    out.push_str("<h2>Evidence</h2>\n");
    match evidence {
        Evidence::Unknown => out.push_str("<p>It is being verified; load the page again.</p>\n"),
        Evidence::Holds { at, records, warnings } => {
            let _ = writeln!(
                out,
                "<p><strong class=\"good\">Holds</strong>: {records} records, looked at {}</p>",
                Text(at)
            );
            list(warnings, out);
        }
        Evidence::Broken { at, findings } => {
            let _ = writeln!(
                out,
                "<p><strong class=\"bad\">Does not hold</strong>, looked at {}</p>",
                Text(at)
            );
            list(findings, out);
        }
    }
}

fn list(lines: &[String], out: &mut String) {
    if lines.is_empty() {
        return;
    }
    out.push_str("<ul>");
    for line in lines {
        let _ = write!(out, "<li>{}</li>", Text(line));
    }
    out.push_str("</ul>\n");
}
