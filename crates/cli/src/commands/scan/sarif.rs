//! A SARIF 2.1.0 log of a scan.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wardkeep_detect::finding::Verdict;

use super::excerpt;
use super::files::Scanned;

/// The log: every rule that fired is described, every finding is a result.
pub(super) fn log(scanned: &[Scanned]) -> Value {
    let mut rules: BTreeMap<String, Value> = BTreeMap::new();
    let mut results = Vec::new();
    for file in scanned {
        for finding in &file.scan.findings {
            let id = finding.rule.to_string();
            rules.entry(id.clone()).or_insert_with(|| {
                json!({
                    "id": id,
                    "name": format!("{:?}", finding.category),
                    "shortDescription": {"text": finding.reason},
                })
            });
            let (line, column, _, marks) = excerpt::around(&file.text, finding.span);
            let width = marks.matches('^').count();
            results.push(json!({
                "ruleId": finding.rule,
                "level": if file.scan.verdict == Verdict::Block { "error" } else { "warning" },
                "message": {"text": finding.reason},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": uri(&file.name)},
                    "region": {"startLine": line, "startColumn": column, "endColumn": column + width},
                }}],
            }));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "wardkeep",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A relative reference: what is no plain path character is percent-encoded.
fn uri(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
