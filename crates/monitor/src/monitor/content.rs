//! What a record of a decision holds.

use wardkeep_detect::finding::Scan;
use wardkeep_evidence::check::printable;
use wardkeep_evidence::hash::{RecordId, encode_hex};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_guard::alert::{Category, Severity};
use wardkeep_guard::facts::{Facts, FileFacts, NetworkFacts};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Decision;

use crate::index::Said;

/// Findings that a record names.
const FINDINGS: usize = 8;
/// Rules that a record names.
const RULES: usize = 16;
/// Longest subject that stands in a record, in bytes.
const SUBJECT: usize = 4096;

/// Bytes that a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) sha256: [u8; 32],
    pub(super) bytes: u64,
    /// Whether they are kept as a blob.
    pub(super) kept: bool,
}

impl Digest {
    fn value(self) -> Value<'static> {
        Value::from([
            ("sha256", Value::from(encode_hex(&self.sha256))),
            ("bytes", Value::from(self.bytes)),
            ("kept", Value::from(self.kept)),
        ])
    }
}

/// Everything about a decision that its record holds beside taint, parents and principal.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) facts: &'a Facts,
    pub(super) decision: &'a Decision,
    pub(super) scan: Option<&'a Scan>,
    pub(super) category: Option<Category>,
    pub(super) severity: Severity,
    pub(super) suggestion: Option<&'a str>,
    pub(super) action: [u8; 32],
    pub(super) digest: &'a str,
    pub(super) context: Option<RecordId>,
    pub(super) content: Option<Digest>,
    pub(super) before: Option<Option<Digest>>,
    pub(super) sketch: Option<String>,
    /// Whether it belongs to a trial of the owner's.
    pub(super) trial: bool,
    pub(super) more: Vec<(&'static str, Value<'static>)>,
}

impl Told<'_> {
    pub(super) fn into_value(self) -> Value<'static> {
        let Self { facts, decision, .. } = self;
        let mut content = Object::default();
        let mut put = |key: &'static str, value: Value<'static>| content.push(key, value);
        put("kind", Value::from(if self.trial { Said::Trial } else { Said::Decision }.as_str()));
        put("v", Value::from(1u64));
        put("act", Value::from(facts.act.as_str()));
        put("surface", Value::from(facts.surface.as_str()));
        put("subject", Value::from(shortened(&facts.subject)));
        put("verdict", Value::from(decision.verdict.as_str()));
        put("rule", Value::from(decision.rule.clone().into_owned()));
        put("reason", Value::from(decision.reason.clone()));
        let rules = decision.hits.iter().take(RULES);
        put("rules", list(rules.map(|hit| Value::from(hit.rule.clone().into_owned()))));
        put("direct", taint(facts.direct));
        put("ambient", taint(facts.ambient));
        put("scan", Value::from(facts.scan.to_string()));
        if !facts.categories.is_empty() {
            let words = facts.categories.iter().map(|one| Value::from(format!("{one:?}")));
            put("categories", list(words));
        }
        put("approved", Value::from(facts.approved));
        put("open_proxy", Value::from(facts.open_proxy));
        if let Some(skill) = facts.skill {
            put("skill", Value::from(format!("{skill:?}").to_lowercase()));
        }
        if let Some(sandbox) = facts.sandbox {
            put("sandbox", Value::from(format!("{sandbox:?}").to_lowercase()));
        }
        put("severity", Value::from(self.severity.as_str()));
        if let Some(category) = self.category {
            put("category", Value::from(category.as_str()));
        }
        if let Some(text) = self.suggestion {
            put("suggestion", Value::from(text.to_owned()));
        }
        if let Some(scan) = self.scan.filter(|scan| !scan.findings.is_empty()) {
            put("findings", findings(scan));
        }
        put("action", Value::from(encode_hex(&self.action)));
        put("digest", Value::from(self.digest.to_owned()));
        if let Some(context) = self.context {
            put("context", Value::from(context.to_string()));
        }
        if let Some(digest) = self.content {
            put("content", digest.value());
        }
        if let Some(before) = self.before {
            put("before", before.map_or(Value::Null, Digest::value));
        }
        if let Some(file) = &facts.file {
            put("file", file_value(file, &facts.subject));
        }
        if let Some(network) = &facts.network {
            put("network", network_value(network));
        }
        if let Some(sketch) = self.sketch {
            put("sketch", Value::from(sketch));
        }
        for (key, value) in self.more {
            put(key, value);
        }
        Value::Object(content)
    }
}

pub(super) fn taint(taint: Taint) -> Value<'static> {
    list(taint.names().map(Value::from))
}

pub(super) fn list(values: impl Iterator<Item = Value<'static>>) -> Value<'static> {
    Value::Array(values.collect())
}

fn findings(scan: &Scan) -> Value<'static> {
    list(scan.findings.iter().take(FINDINGS).map(|finding| {
        Value::from([
            ("rule", Value::from(finding.rule.clone().into_owned())),
            ("category", Value::from(format!("{:?}", finding.category))),
            ("percent", Value::from(percent(finding.weight))),
        ])
    }))
}

/// A weight as the format can hold it: it has no fractions.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn percent(weight: f32) -> u64 {
    (weight.clamp(0.0, 1.0) * 100.0).round() as u64
}

fn file_value(file: &FileFacts, subject: &str) -> Value<'static> {
    let mut value = Object::from([
        ("memory", Value::from(file.memory)),
        ("protection", Value::from(format!("{:?}", file.protection).to_lowercase())),
        ("sensitivity", Value::from(format!("{:?}", file.sensitivity).to_lowercase())),
        ("resolved", Value::from(file.resolved)),
    ]);
    if file.path != subject {
        value.push("path", Value::from(shortened(&file.path)));
    }
    Value::Object(value)
}

fn network_value(network: &NetworkFacts) -> Value<'static> {
    Value::from([
        ("scheme", Value::from(network.scheme.clone())),
        ("host", Value::from(shortened(&network.host))),
        ("port", network.port.map_or(Value::Null, |port| Value::from(u64::from(port)))),
        ("method", Value::from(shortened(&network.method))),
        ("payload", Value::from(network.payload)),
        ("allowed", Value::from(network.allowed)),
        ("listed", Value::from(network.listed)),
        ("blocked", Value::from(network.blocked)),
        ("internal", Value::from(network.internal)),
        ("metadata", Value::from(network.metadata)),
        ("oversized", Value::from(network.oversized)),
        ("exfiltration", Value::from(network.exfiltration)),
        ("resolved", Value::from(network.resolved)),
    ])
}

/// What someone said, as data: in quotes, in one line, without signs that steer a terminal, and not long.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", printable(&text.replace('"', "'")))
}

/// A name, where a text is one: nothing that could be read as words to somebody.
pub(super) fn name_or<'a>(text: &'a str, other: &'a str) -> &'a str {
    const LONGEST: usize = 32;
    let sign = |sign: u8| sign.is_ascii_alphanumeric() || b"-_".contains(&sign);
    let name = (1..=LONGEST).contains(&text.len()) && text.bytes().all(sign);
    if name { text } else { other }
}

/// At most so many bytes, cut between characters and marked.
pub(super) fn shortened(text: &str) -> String {
    if text.len() <= SUBJECT {
        return text.to_owned();
    }
    let mut end = SUBJECT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes)", &text[..end], text.len())
}
