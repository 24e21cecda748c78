//! The text of a policy on its way to the model (RFC 8): markers stripped, suspicious patterns
//! found, length cut.

mod grants;
mod markers;
mod stance;

use wardkeep_detect::finding::{Category, Channel, Finding, Span};
use wardkeep_detect::views::{Limits, views};

pub use markers::{FILTERED, Filtered, strip_markers};

/// Most characters of a policy, whatever bytes they take; a notice of a cut is among them.
pub const MAX_POLICY_CHARS: usize = 4096;

/// From which weight on a finding says why by itself.
const TELLING: f32 = 0.4;
/// From which score on a policy is not used.
const SUSPICIOUS: f32 = 0.5;
/// As much of a policy is judged: what lies behind it is cut off in any case.
const JUDGED: usize = 64 << 10;
/// Suspicions that are told of.
const MOST: usize = 32;

/// Something in a policy that no policy should say.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspicion {
    /// The rule, by its stable id.
    pub rule: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// Why it matters, in a sentence.
    pub reason: String,
    /// How much it weighs, from 0 to 1.
    pub weight: f32,
}

/// A credential that stands in a policy. It is no attack, but it would go out with every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// What kind.
    pub rule: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
}

/// A policy's text, made fit for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Sanitised {
    /// What may go to the model, if nothing is suspicious.
    pub text: String,
    /// Characters before a cut.
    pub characters: usize,
    /// Characters that were cut off.
    pub truncated: Option<usize>,
    /// Markers that were replaced.
    pub filtered: Vec<Filtered>,
    /// Why the policy must not be used; empty if it may.
    pub suspicions: Vec<Suspicion>,
    /// Credentials in it.
    pub credentials: Vec<Credential>,
}

impl Sanitised {
    /// The rules that fired, each once, for a log.
    #[must_use]
    pub fn patterns(&self) -> String {
        let mut rules: Vec<&str> = Vec::new();
        for suspicion in &self.suspicions {
            if !rules.contains(&suspicion.rule.as_str()) {
                rules.push(&suspicion.rule);
            }
        }
        rules.join(", ")
    }
}

/// Sanitises a policy.
#[must_use]
pub fn sanitise(policy: &str) -> Sanitised {
    let text = policy.trim_start_matches('\u{feff}');
    let offset = policy.len() - text.len();
    let (stripped, filtered) = strip_markers(text);
    let place = |span: Span| {
        let original = markers::original(&filtered, span.start);
        position(policy, original + offset)
    };
    let judged = &stripped[..stripped.floor_char_boundary(JUDGED.min(stripped.len()))];
    let (suspicions, credentials) = judge(judged, place);
    let characters = stripped.chars().count();
    let (text, truncated) = truncate_with_notice(stripped, characters, MAX_POLICY_CHARS);
    Sanitised { text, characters, truncated, filtered, suspicions, credentials }
}

/// Line and column of a byte, from 1.
#[must_use]
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let head = &text[..text.floor_char_boundary(at.min(text.len()))];
    let line = head.matches('\n').count() + 1;
    let start = head.rfind('\n').map_or(0, |newline| newline + 1);
    (line, head[start..].chars().count() + 1)
}

fn judge(text: &str, place: impl Fn(Span) -> (usize, usize)) -> (Vec<Suspicion>, Vec<Credential>) {
    let scan = wardkeep_detect::scan::scan(text, Channel::Policy);
    let (secrets, mut findings): (Vec<Finding>, Vec<Finding>) =
        scan.findings.into_iter().partition(|one| one.category == Category::SensitiveFileContent);
    findings.retain(|finding| !stance::is_forbidden(text, finding));
    let credentials = secrets
        .iter()
        .take(MOST)
        .map(|finding| {
            let (line, column) = place(finding.span);
            Credential { rule: finding.rule.to_string(), line, column }
        })
        .collect();
    findings.extend(grants::find(text));
    findings.extend(across_items(text));
    findings.extend(hidden(text));
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    if wardkeep_detect::scan::score(&findings) < SUSPICIOUS {
        return (Vec::new(), credentials);
    }
    // What weighs little is named only where nothing else is.
    let telling = findings.iter().any(|finding| finding.weight >= TELLING);
    findings.retain(|finding| !telling || finding.weight >= TELLING);
    let mut suspicions: Vec<Suspicion> = findings
        .iter()
        .take(MOST)
        .map(|finding| {
            let (line, column) = place(finding.span);
            Suspicion {
                rule: finding.rule.to_string(),
                line,
                column,
                reason: finding.reason.to_string(),
                weight: finding.weight,
            }
        })
        .collect();
    suspicions.sort_by_key(|suspicion| (suspicion.line, suspicion.column));
    (suspicions, credentials)
}

/// An order that is spread over the items of a list. Offsets stay as they are.
fn across_items(text: &str) -> Vec<Finding> {
    let mut joined = text.to_owned();
    let mut any = false;
    for mark in ["\n- ", "\n* ", "\n+ "] {
        for (at, _) in text.match_indices(mark) {
            let ended = text[..at].trim_end().ends_with(['.', '!', '?', ':', ';', '。', '।']);
            let goes_on = text[at + mark.len()..].starts_with(char::is_lowercase);
            if !ended && goes_on {
                joined.replace_range(at..at + mark.len(), "   ");
                any = true;
            }
        }
    }
    if !any {
        return Vec::new();
    }
    let scan = wardkeep_detect::scan::scan(&joined, Channel::Policy);
    let mut findings = scan.findings;
    findings.retain(|finding| {
        finding.rule.starts_with("override.") && !stance::is_forbidden(&joined, finding)
    });
    findings
}

/// A policy is for people to read: what they cannot see has no place in it.
fn hidden(text: &str) -> Vec<Finding> {
    let limits = Limits { max_depth: 0, max_views: 1, ..Limits::default() };
    views(text, &limits)
        .hidden
        .iter()
        .map(|hidden| Finding {
            rule: "policy.hidden-text".into(),
            category: Category::IndirectInjection,
            weight: 0.9,
            span: hidden.span,
            path: Vec::new(),
            reason: "Text is hidden from the reader of the policy.".into(),
        })
        .collect()
}

/// Cuts a text to `limit` characters, a notice of the cut among them.
fn truncate_with_notice(
    mut text: String,
    characters: usize,
    limit: usize,
) -> (String, Option<usize>) {
    if characters <= limit {
        return (text, None);
    }
    let notice = |left_out: usize| {
        format!("\n\n[truncated: {left_out} characters of the policy are left out]")
    };
    // The longest that the notice can get.
    let room = limit.saturating_sub(notice(characters).chars().count());
    let left_out = characters - room;
    let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    text.truncate(end);
    text.push_str(&notice(left_out));
    (text, Some(left_out))
}
