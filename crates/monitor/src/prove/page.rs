//! The report as one page that needs nothing else and runs nothing.

use std::fmt::Write as _;

use wardkeep_evidence::time::Timestamp;

use super::Report;
use crate::index::Severity;
use crate::markup::{Escaped, Links, coded};
use crate::notices::Notice;
use crate::provenance::{Graph, svg};

// No script can run, whatever stands in the page, and nothing is fetched.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #16202c; --soft: #5b6878; --line: #d8dee6; --paper: #fff;
  --card: #f6f8fa; --good: #15803d; --bad: #b3261e; --high: #b45309; --medium: #a16207; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa7b4; --line: #303a46;
  --paper: #11161c; --card: #19212a; --good: #4ade80; --bad: #f87171; --high: #fb923c; --medium: #facc15;
  --link: #7cb7ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
a { color: var(--link); }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); }
.good { color: var(--good); } .bad, .critical { color: var(--bad); } .high { color: var(--high); }
.medium { color: var(--medium); } strong { font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: .7rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; }
.card b { display: block; font-size: 1.5rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top;
  padding: .4rem .6rem .4rem 0; border-bottom: 1px solid var(--line); } th { color: var(--soft); font-weight: 500; }
/* Only a text may break inside a word, and it has room enough to need that seldom. */
td { overflow-wrap: anywhere; min-width: 8rem; } .fixed { overflow-wrap: normal; white-space: nowrap; min-width: 0; }
code { font: 13px ui-monospace, monospace; } .scroll { overflow-x: auto; border: 1px solid var(--line);
  border-radius: 8px; } ul { padding-left: 1.2rem; margin: .3rem 0; }
@media (max-width: 45rem) {
  body { padding: 1.2rem 1rem 3rem; } .cards { grid-template-columns: repeat(auto-fill, minmax(6.2rem, 1fr)); gap: .4rem; }
  .card { padding: .4rem .5rem; font-size: .78rem; } .card b { font-size: 1.2rem; }
  table, tbody, tr, td, th { display: block; border: 0; padding: 0; min-width: 0; }
  tr { padding: .6rem 0; border-bottom: 1px solid var(--line); } .head { display: none; }
  .fixed, .session { display: inline; padding-right: .6rem; } .session { color: var(--soft); } .fixed br { display: none; }
  th { font-size: .85rem; } tr { font-size: .93rem; }
}
";

/// Writes the report as a page; `graph` is that of the gravest alert, with its title. With `links` it is a
/// view of a page and leads back there; without, it is a file on its own.
#[must_use]
pub fn page(report: &Report, graph: Option<(&Graph, &str)>, links: Option<&Links>) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>Wardkeep report</title><style>{STYLE}</style></head><body>\n{}<main><h1>Wardkeep report</h1>\n\
         <p class=\"soft\">made {} from {}</p>\n",
        links.map(back).unwrap_or_default(),
        Escaped::new(&report.generated_at),
        Escaped::new(&report.health.state_dir),
    );
    verdict(report, &mut out);
    cards(report, &mut out);
    messages(report, &mut out);
    timeline(&report.alerts, &mut out);
    alerts(report, links, &mut out);
    if let Some((graph, title)) = graph {
        let _ = write!(
            out,
            "<h2>Where the gravest alert came from</h2>\n<div class=\"scroll\">{}</div>\n",
            svg(graph, title, links)
        );
    }
    notices(report, links, &mut out);
    health(report, &mut out);
    out.push_str("</main></body></html>\n");
    out
}

fn back(links: &Links) -> String {
    format!(
        "<nav aria-label=\"Views\"><p><a href=\"{}\">Back to the page</a></p></nav>\n",
        Escaped::new(links.home)
    )
}

fn verdict(report: &Report, out: &mut String) {
    let text = if !report.health.chain_valid {
        "<p class=\"bad\"><strong>The evidence does not hold.</strong></p>\n"
    } else if report.action_required {
        "<p class=\"high\"><strong>Action required.</strong></p>\n"
    } else {
        "<p class=\"good\"><strong>Nothing to do.</strong></p>\n"
    };
    out.push_str(text);
    list(&report.actions, out);
    let filter = &report.filter;
    let named = [
        ("since", filter.since.clone()),
        ("until", filter.until.clone()),
        ("category", filter.category.map(|word| word.to_string())),
        ("severity at least", filter.severity.map(|word| word.to_string())),
        ("session", filter.session.clone()),
    ];
    let named: Vec<String> = named
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name} {value}")))
        .collect();
    if !named.is_empty() {
        let _ = writeln!(out, "<p class=\"soft\">only {}</p>", Escaped::new(&named.join(", ")));
    }
}

fn cards(report: &Report, out: &mut String) {
    let sum = &report.protection;
    let cards = [
        ("actions judged", sum.total_evaluations),
        ("blocked", sum.total_threats_blocked),
        ("control plane", sum.cpi_blocks),
        ("memory", sum.mi_blocks),
        ("conversation", sum.conversation_blocks),
        ("files", sum.file_blocks),
        ("network", sum.network_blocks),
        ("skills", sum.skill_blocks),
        ("held for the owner", sum.held_for_owner),
        ("automatic rollbacks", sum.auto_rollbacks),
        ("contamination", sum.contamination_events),
        ("skills verified", sum.skills_verified),
    ];
    out.push_str("<h2>Protection</h2>\n<div class=\"cards\">");
    for (name, count) in cards {
        let _ = write!(out, "<div class=\"card\"><b>{count}</b>{name}</div>");
    }
    out.push_str("</div>\n");
    let _ =
        writeln!(out, "<p class=\"soft\">No protection rate: {}.</p>", sum.protection_rate_reason);
}

fn messages(report: &Report, out: &mut String) {
    if report.rollback_status.agent_messages.is_empty() {
        return;
    }
    out.push_str("<h2>To be told to the user</h2>\n");
    list(&report.rollback_status.agent_messages, out);
}

fn list(items: &[String], out: &mut String) {
    if items.is_empty() {
        return;
    }
    out.push_str("<ul>");
    for item in items {
        let _ = write!(out, "<li>{}</li>", long(item));
    }
    out.push_str("</ul>\n");
}

/// A longer text, piece by piece.
fn long(text: &str) -> String {
    const LONGEST: usize = 600;
    const PIECE: usize = 128;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    coded(&shown, |part| {
        let characters: Vec<char> = part.chars().collect();
        let pieces = characters.chunks(PIECE).map(|piece| piece.iter().collect::<String>());
        pieces.map(|piece| Escaped::new(&piece).to_string()).collect()
    })
}

/// Alerts on a line of time, one row for each severity.
fn timeline(alerts: &[Notice], out: &mut String) {
    let time = |notice: &Notice| notice.time.parse::<Timestamp>().ok().map(Timestamp::unix);
    let times: Vec<i64> = alerts.iter().filter_map(time).collect();
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return };
    let span = (last - first).max(1);
    out.push_str(
        "<h2>Timeline</h2>\n<div class=\"scroll\"><svg xmlns=\"http://www.w3.org/2000/svg\" \
         viewBox=\"0 0 1000 130\" width=\"1000\" height=\"130\" font-size=\"12\" \
         font-family=\"system-ui, sans-serif\">",
    );
    let rows = [
        (Severity::Critical, 25, "#b3261e"),
        (Severity::High, 55, "#d97706"),
        (Severity::Medium, 85, "#a16207"),
    ];
    for (severity, y, _) in rows {
        let _ = write!(
            out,
            "<text x=\"8\" y=\"{}\" fill=\"#888\">{severity}</text>\
             <path d=\"M80 {y}H980\" stroke=\"#8885\"/>",
            y + 4
        );
    }
    for notice in alerts {
        let row = rows.iter().find(|(severity, ..)| *severity == notice.severity);
        if let (Some((_, y, colour)), Some(at)) = (row, time(notice)) {
            let x = 90 + (at - first).saturating_mul(880) / span;
            let _ = write!(
                out,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\" fill-opacity=\".75\">\
                 <title>{} {}</title></circle>",
                Escaped::new(&notice.time),
                Escaped::new(&notice.message)
            );
        }
    }
    let shown = |seconds: &i64| {
        Timestamp::from_unix(*seconds).map(|time| time.to_string()).unwrap_or_default()
    };
    let _ = writeln!(
        out,
        "<text x=\"90\" y=\"118\" fill=\"#888\">{}</text>\
         <text x=\"970\" y=\"118\" fill=\"#888\" text-anchor=\"end\">{}</text></svg></div>",
        shown(first),
        shown(last)
    );
}

fn alerts(report: &Report, links: Option<&Links>, out: &mut String) {
    out.push_str("<h2>Alerts</h2>\n");
    if report.alerts.is_empty() {
        out.push_str("<p>None.</p>\n");
        return;
    }
    table(&report.alerts, report.more_alerts, links, out);
}

fn notices(report: &Report, links: Option<&Links>, out: &mut String) {
    out.push_str("<h2>Not acknowledged</h2>\n");
    if report.agent_notifications.is_empty() {
        out.push_str("<p>None.</p>\n");
        return;
    }
    table(&report.agent_notifications, report.more_notifications, links, out);
}

fn table(notices: &[Notice], more: u64, links: Option<&Links>, out: &mut String) {
    out.push_str(
        "<table><tr class=\"head\"><th>time</th><th>severity</th><th>what</th><th>session</th><th>record</th></tr>\n",
    );
    for notice in notices {
        let category = notice.category.map(|word| word.to_string()).unwrap_or_default();
        let next = notice
            .suggestion
            .as_deref()
            .map(|text| format!("<br><span class=\"soft\">{}</span>", long(text)));
        let mut record = format!("<code>{:.10}</code>", notice.record);
        if let Some(links) = links {
            let address = Escaped::new(links.record);
            record = format!("<a href=\"{address}{}\">{record}</a>", notice.record);
        }
        let _ = writeln!(
            out,
            "<tr><td class=\"fixed\">{}</td><td class=\"fixed {severity}\">{severity}<br> {category}</td>\
             <td>{}{}</td><td class=\"session\">{}</td><td class=\"fixed\">{record}</td></tr>",
            Escaped::new(&notice.time),
            long(&notice.message),
            next.unwrap_or_default(),
            Escaped::cut(&notice.session, 60),
            severity = notice.severity,
        );
    }
    out.push_str("</table>\n");
    if more > 0 {
        let _ = writeln!(out, "<p class=\"soft\">and {more} more</p>");
    }
}

fn health(report: &Report, out: &mut String) {
    let health = &report.health;
    out.push_str("<h2>Evidence</h2>\n<table>");
    let mut row = |name: &str, text: &str| {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", long(text));
    };
    row("chain", if health.chain_valid { "holds" } else { "does not hold" });
    row("records", &health.records.to_string());
    row("read in this run", &health.verified_now.to_string());
    if health.verified_earlier > 0 {
        let when = health.last_full.as_deref().unwrap_or("an earlier run");
        let text = format!("{}, all of them last at {when}", health.verified_earlier);
        row("checked by an earlier run only", &text);
    }
    if let Some(seals) = &health.seals {
        row("sealed", &format!("{} records by {} seals", seals.signed_to, seals.seals));
        let witnesses: Vec<&str> =
            seals.witnesses.iter().map(|reach| reach.name.as_str()).collect();
        row("witnessed", &if witnesses.is_empty() { "no".into() } else { witnesses.join(", ") });
    }
    row("counts from", report.counted_from);
    for warning in &health.warnings {
        row("warning", warning);
    }
    for finding in &health.findings {
        row("failed", &finding.to_string());
    }
    if health.more_findings > 0 {
        row("failed", &format!("and {} more", health.more_findings));
    }
    out.push_str("</table>\n");
}
