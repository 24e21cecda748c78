//! The model API proxy: where it listens, what went through, and what went wrong.

use std::fmt::Write as _;

use super::facts;
use crate::page::html::{Said, Text, short};
use crate::page::office::ModelApi;

/// Characters of a line that are shown.
const LONGEST: usize = 400;

/// The view.
pub(in crate::page) fn view(models: Option<&ModelApi>) -> String {
    let Some(models) = models else {
        return "<p>This process serves no proxy for model APIs. <code>wardkeep serve --proxy</code> serves both.</p>\n\
                <p>What one of another process did is in the <a href=\"/timeline?agent=proxy\">timeline</a>.</p>\n"
            .to_owned();
    };
    let mut out = "<section class=\"card\"><h2>Listening</h2>\n".to_owned();
    out.push_str(&facts(&[
        ("address", models.url.clone()),
        ("since", models.since.clone()),
        ("works so", models.options.join("\n")),
    ]));
    out.push_str("</section>\n<section class=\"card\"><h2>What went through</h2>\n");
    counts(models, &mut out);
    let _ = writeln!(
        out,
        "<p class=\"soft\">Since the start, as of {}; load the page again for newer ones. \
         <a href=\"/timeline?agent=proxy\">Records in the timeline</a></p></section>",
        Text(&models.now)
    );
    out.push_str("<h2>Where requests go</h2>\n");
    out.push_str(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">name</th><th scope=\"col\">model API</th></tr>\
         </thead><tbody>\n",
    );
    for (name, url) in &models.upstreams {
        let (name, url) = (short(name, 60), short(url, 200));
        let _ = writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", Text(&name), Text(&url));
    }
    out.push_str("</tbody></table></div>\n<h2>What went wrong lately</h2>\n");
    lines(&models.errors, "Nothing.", &mut out);
    out.push_str("<h2>What was added and removed lately</h2>\n");
    lines(&models.lines, "Nothing has gone through yet.", &mut out);
    out
}

fn counts(models: &ModelApi, out: &mut String) {
    let traffic = &models.traffic;
    out.push_str("<dl class=\"counts\">");
    for (name, count) in [
        ("requests", traffic.requests),
        ("denied", traffic.denied),
        ("withheld in requests", traffic.withheld),
        ("tool calls judged", traffic.calls),
        ("tool calls denied", traffic.calls_denied),
        ("redacted in replies", traffic.redacted),
        ("passed unread", traffic.unread),
        ("refused at the door", traffic.refused),
        ("failed", traffic.failed),
        ("open now", traffic.open),
    ] {
        let class = if count == 0 { " class=\"none\"" } else { "" };
        let _ = write!(out, "<div{class}><dt>{name}</dt><dd>{count}</dd></div>");
    }
    out.push_str("</dl>\n");
}

fn lines(lines: &[(String, String)], none: &str, out: &mut String) {
    if lines.is_empty() {
        let _ = writeln!(out, "<p class=\"soft\">{none}</p>");
        return;
    }
    out.push_str("<ul class=\"events\">\n");
    for (time, line) in lines {
        let line = short(line, LONGEST);
        let _ = writeln!(out, "<li><time>{}</time> {}</li>", Text(time), Said(&line));
    }
    out.push_str("</ul>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_told_stays_text() {
        let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[2J".to_owned();
        let pair = || vec![(hostile.clone(), hostile.clone())];
        let models = ModelApi {
            url: hostile.clone(),
            options: vec![hostile.clone()],
            since: hostile.clone(),
            now: hostile.clone(),
            upstreams: pair(),
            errors: pair(),
            lines: pair(),
            ..ModelApi::default()
        };
        let shown = view(Some(&models));
        for bad in ["<script", "\u{202e}", "\u{1b}"] {
            assert!(!shown.contains(bad), "{bad:?}: {shown}");
        }
        assert_eq!(shown.matches("&lt;script&gt;").count(), 10, "{shown}");
        let long = ModelApi { lines: vec![(String::new(), "x".repeat(9999))], ..models };
        assert!(view(Some(&long)).len() < shown.len() + 2000);
        assert!(view(None).contains("serve --proxy"));
    }
}
