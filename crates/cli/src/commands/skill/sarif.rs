//! A SARIF 2.1.0 log of verified skills.

use serde_json::{Value, json};
use wardkeep_guard::skill::{RULES, Verdict};

use super::super::scan::sarif::uri;
use super::verify::{Verified, severity};

/// The log: every rule is described, whether it fired or not.
pub(super) fn log(verified: &[Verified]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "name": rule.id.replace(['.', '-'], "_"),
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": format!("{}.", rule.title)},
                "help": {"text": rule.help},
                "defaultConfiguration": {"level": level(rule.verdict)},
                "properties": {"tags": ["security", rule.vector], "severity": severity(rule.verdict)},
            })
        })
        .collect();
    let mut results = Vec::new();
    let mut unread = Vec::new();
    for one in verified {
        let found = one.report.findings.iter().filter(|finding| finding.verdict > Verdict::Allow);
        let found = found.map(|finding| (finding, None));
        let taken = one.report.suppressed.iter().map(|taken| (&taken.finding, Some(&taken.reason)));
        for (finding, suppressed) in found.chain(taken) {
            let folder = one.path.trim_end_matches('/');
            let mut place =
                json!({"artifactLocation": {"uri": uri(&format!("{folder}/{}", finding.path))}});
            if finding.line > 0 {
                place["region"] = json!({
                    "startLine": finding.line,
                    "startColumn": finding.column,
                    "snippet": {"text": finding.excerpt},
                });
            }
            let mut result = json!({
                "ruleId": finding.rule,
                "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule),
                "level": level(finding.verdict),
                "message": {"text": finding.reason},
                "partialFingerprints": {"wardkeep/v1": finding.id},
                "locations": [{"physicalLocation": place}],
            });
            if let Some(reason) = suppressed {
                result["suppressions"] = json!([{"kind": "external", "justification": reason}]);
            }
            results.push(result);
        }
        if !one.report.complete {
            unread.push(json!({"level": "error", "message": {"text": format!("{}: not all of it was read", one.path)}}));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "wardkeep",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolExecutionNotifications": unread,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn level(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Deny => "error",
        Verdict::Ask => "warning",
        _ => "note",
    }
}
