//! The log of evidence: how long it is, what covers it, and what was really checked.

use std::fmt::Write as _;

use super::{facts, hidden, list, record_link};
use crate::page::html::{Said, Text, short};
use crate::page::office::{AnchorRow, Chain, Evidence, FullCheck};

/// The view.
pub(in crate::page) fn view(chain: &Chain, form: &str) -> String {
    let mut out = String::new();
    out.push_str("<section class=\"card\"><h2>Checked</h2>\n");
    looked(&chain.looked, &mut out);
    let _ = writeln!(
        out,
        "<form method=\"post\" action=\"/evidence\">{}<button type=\"submit\">Verify all of it now</button> \
         <span class=\"soft\">every id, the chain and the seals, from the first record on</span></form></section>",
        hidden(form)
    );
    if let Some(full) = &chain.full {
        out.push_str(&check(full));
    }
    out.push_str("<h2>The log</h2>\n");
    let mut pairs = vec![("records", chain.records.to_string())];
    if let Some((_, time, head)) = &chain.newest {
        pairs.push(("newest", time.clone()));
        pairs.push(("head", head.clone()));
    }
    let seal = match &chain.seal {
        Some((size, time)) => format!("{size} records, for {time}"),
        None => "none yet: whoever can write the journal could rewrite all of it".to_owned(),
    };
    pairs.push(("newest seal", seal));
    out.push_str(&facts(&pairs));
    if let Some((id, ..)) = &chain.newest {
        let _ = writeln!(out, "<p>Newest record: {}</p>", record_link(id));
    }
    out.push_str(
        "<p class=\"soft\">This is what lies there. Only verifying says whether it holds together, and \
         whether the seal is signed.</p>\n",
    );
    anchors(&chain.anchors, &mut out);
    out
}

/// What verifying everything came to.
pub(in crate::page) fn check(full: &FullCheck) -> String {
    let (class, word) = if full.passed { ("good", "PASS") } else { ("bad", "FAIL") };
    let mut out = format!(
        "<section class=\"card\"><h2>All of it, verified {}</h2>\n\
         <p role=\"status\"><strong class=\"{class}\">{word}</strong></p>\n",
        Text(&full.at)
    );
    list(&full.findings, &mut out);
    out.push_str("<dl>");
    for (what, far) in &full.reach {
        let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", Text(what), Text(far));
    }
    out.push_str("</dl></section>\n");
    out
}

/// The last regular look, in a line and what is wrong.
pub(super) fn looked(evidence: &Evidence, out: &mut String) {
    match evidence {
        Evidence::Unknown => {
            out.push_str(
                "<p>It was not verified yet: that is being done; load the page again.</p>\n",
            );
        }
        Evidence::Holds { at, records, warnings } => {
            let _ = writeln!(
                out,
                "<p><strong class=\"good\">Holds</strong>: {records} records, looked at {} from where \
                 the last look ended</p>",
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

fn anchors(anchors: &[AnchorRow], out: &mut String) {
    out.push_str("<h2>Remembered elsewhere</h2>\n");
    if anchors.is_empty() {
        out.push_str(
            "<p>By nobody: an older copy of all of it, put back, would not be noticed. \
             <code>wardkeep evidence anchor add --help</code></p>\n",
        );
        return;
    }
    out.push_str(
        "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">name</th><th scope=\"col\">place</th>\
         <th scope=\"col\">records</th><th scope=\"col\">when</th></tr></thead><tbody>\n",
    );
    for one in anchors {
        let (records, when) = match &one.taken {
            Some((records, when)) => (records.to_string(), when.as_str()),
            None => ("none".to_owned(), "never"),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{records}</td><td>{}</td></tr>",
            Text(&short(&one.name, 60)),
            Text(&short(&one.place, 120)),
            Text(when)
        );
    }
    out.push_str("</tbody></table></div>\n");
    for one in anchors {
        if let Some(alarm) = &one.alarm {
            let _ = writeln!(out, "<p class=\"bad\">{}: {}</p>", Text(&one.name), Said(alarm));
        }
        if let Some(failure) = &one.failure {
            let _ = writeln!(out, "<p class=\"high\">{}: {}</p>", Text(&one.name), Said(failure));
        }
    }
}
