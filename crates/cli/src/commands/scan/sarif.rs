//! A SARIF 2.1.0 log of a scan.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wardkeep_detect::finding::Verdict;

use super::files::{Found, Scanned};

/// The log: every rule that fired is described, every finding is a result, what was not read is a notice.
pub(super) fn log(scanned: &[Scanned]) -> Value {
    let mut rules: BTreeMap<String, Value> = BTreeMap::new();
    let mut results = Vec::new();
    let mut unread = Vec::new();
    for file in scanned {
        let artifact = json!({"uri": uri(&file.name)});
        if let Some(why) = &file.unread {
            unread.push(json!({
                "level": "error",
                "message": {"text": format!("not read: {why}")},
                "locations": [{"physicalLocation": {"artifactLocation": artifact}}],
            }));
        }
        for Found { finding, place, .. } in &file.found {
            let id = finding.rule.to_string();
            rules.entry(id.clone()).or_insert_with(|| {
                json!({
                    "id": id,
                    "name": format!("{:?}", finding.category),
                    "shortDescription": {"text": finding.reason},
                })
            });
            results.push(json!({
                "ruleId": finding.rule,
                "level": if file.verdict == Verdict::Block { "error" } else { "warning" },
                "message": {"text": finding.reason},
                "locations": [{"physicalLocation": {
                    "artifactLocation": artifact,
                    "region": {
                        "startLine": place.line,
                        "startColumn": place.column,
                        "endLine": place.end_line,
                        "endColumn": place.end_column,
                    },
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
            "invocations": [{
                "executionSuccessful": unread.is_empty(),
                "toolExecutionNotifications": unread,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A relative reference: what is no plain path character is percent-encoded.
pub(crate) fn uri(name: &str) -> String {
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
