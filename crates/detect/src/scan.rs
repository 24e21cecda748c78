//! One text in, one verdict out.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use crate::allow::Allowed;
use crate::anchors::{self, Whose};
use crate::finding::{Category, Channel, Finding, Scan, Span, Verdict};
use crate::leak::OutputGuard;
use crate::rules::{OwnRule, RuleError, RuleSet, matcher};
use crate::score::{LEARNED, Model, REPORTED};
use crate::secrets;
use crate::urls::{self, UrlContext};
use crate::views::{Limits, View, Views, read};
use crate::work::{Step, Work};

use self::heaviest::{Heaviest, MOST};

pub use crate::rules::verdict::{Thresholds, score};

mod heaviest;

/// Findings that weigh less are not reported.
const LEAST: f32 = 0.15;
/// What encoded text that was not decoded counts for.
const LIMITS: f32 = 0.25;
/// What a rule that matched under an encoding counts for in addition.
const ENCODED: f32 = 0.3;

/// A score from elsewhere, from 0 to 1.
type Learned = Box<dyn Fn(&Views<'_>, Channel) -> f32 + Send + Sync>;
/// A stronger judge; `None` leaves the score as it is.
type Cascade = Box<dyn Fn(&str, Channel, &Scan) -> Option<f32> + Send + Sync>;

/// Judges texts. Making one costs nothing; keep it or not.
pub struct Detector {
    sets: Vec<RuleSet>,
    limits: Limits,
    thresholds: Option<Thresholds>,
    model: Option<Model>,
    learned: Option<Learned>,
    cascade: Option<(Cascade, [f32; 2])>,
    allowed: Option<Allowed>,
    guard: OnceLock<OutputGuard>,
}

impl fmt::Debug for Detector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Detector")
            .field("rules", &self.sets.iter().map(|set| set.rules.len()).sum::<usize>())
            .field("thresholds", &self.thresholds)
            .field("model", &self.model.is_some())
            .field("learned", &self.learned.is_some())
            .field("cascade", &self.cascade.is_some())
            .finish_non_exhaustive()
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::new()
    }
}

impl Detector {
    /// With the rules and the learned score that ship.
    #[must_use]
    pub fn new() -> Self {
        Self { model: Model::shipped(), ..Self::rules_only() }
    }

    /// With the rules that ship, and nothing else.
    #[must_use]
    pub fn rules_only() -> Self {
        Self {
            sets: vec![RuleSet::builtin()],
            limits: Limits::default(),
            thresholds: None,
            model: None,
            learned: None,
            cascade: None,
            allowed: None,
            guard: OnceLock::new(),
        }
    }

    /// With other bounds on normalising and decoding.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With the same thresholds in every channel, in place of [`Thresholds::of`].
    #[must_use]
    pub fn with_thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = Some(thresholds);
        self
    }

    /// With rules of the owner's beside those that ship.
    ///
    /// # Errors
    ///
    /// A pattern that cannot be read, or a weight out of range.
    pub fn with_rules(mut self, rules: &[OwnRule]) -> Result<Self, RuleError> {
        self.sets.push(RuleSet::own(rules)?);
        Ok(self)
    }

    /// With findings that the owner allows: they are not reported and weigh nothing.
    #[must_use]
    pub fn with_allowed(mut self, allowed: Allowed) -> Self {
        self.allowed = Some(allowed);
        self
    }

    /// With another model in place of the one that ships.
    #[must_use]
    pub fn with_model(mut self, model: Model) -> Self {
        self.model = Some(model);
        self
    }

    /// With one more score beside the rules: it sees every text, and joins their score as one more
    /// independent reason.
    #[must_use]
    pub fn with_score(
        mut self,
        score: impl Fn(&Views<'_>, Channel) -> f32 + Send + Sync + 'static,
    ) -> Self {
        self.learned = Some(Box::new(score));
        self
    }

    /// With a stronger judge for scores within a band: it sees only those, and its answer replaces
    /// the score.
    #[must_use]
    pub fn with_cascade(
        mut self,
        band: [f32; 2],
        judge: impl Fn(&str, Channel, &Scan) -> Option<f32> + Send + Sync + 'static,
    ) -> Self {
        self.cascade = Some((Box::new(judge), band));
        self
    }

    /// Judges a text.
    #[must_use]
    pub fn scan(&self, text: &str, channel: Channel) -> Scan {
        let (mut findings, mut others) = (Heaviest::default(), Heaviest::default());
        let mut addresses = false;
        let (mut learned, mut blocks) = (0.0f32, 0);
        let mut views = read(text, &self.limits, |view, first, work| {
            for set in &self.sets {
                rules(set, text, view, first, channel, work, &mut findings);
            }
            let model = self.model.as_ref();
            if let Some(found) = model.and_then(|model| model.finding(view, channel, &mut blocks)) {
                learned = learned.max(found.weight);
                if found.weight >= REPORTED {
                    findings.add(LEARNED, found.weight, found.span, || found);
                }
            }
            if first {
                addresses = secrets_and_urls(text, channel, work, &mut others);
            }
        });
        views.truncated |= addresses;
        hidden(&views, &mut findings);
        limits(&views, text, &mut findings);
        for finding in others.finish() {
            findings.add(&finding.rule.clone(), finding.weight, finding.span, || finding);
        }
        let mut leaked = 0.0;
        if channel == Channel::ModelOutput {
            // Without a prompt to compare with: what models say when they give theirs away.
            let leak = self.guard.get_or_init(OutputGuard::new).check(text);
            leaked = leak.score;
            for finding in leak.findings {
                findings.add(&finding.rule.clone(), finding.weight, finding.span, || finding);
            }
        }
        let mut findings = findings.finish();
        // Where more was found than is kept, what is not kept might not be allowed.
        if let Some(allowed) = &self.allowed
            && findings.len() < MOST
        {
            findings.retain(|finding| !allowed.allows(text, finding));
        }
        let findings = once_a_place(findings);
        let mut total = score(&findings).max(leaked);
        // What is reported is among the findings already.
        if learned < REPORTED {
            total = 1.0 - (1.0 - total) * (1.0 - learned);
        }
        if let Some(other) = &self.learned {
            total = 1.0 - (1.0 - total) * (1.0 - other(&views, channel).clamp(0.0, 1.0));
        }
        self.conclude(text, channel, total, findings)
    }

    fn conclude(&self, text: &str, channel: Channel, score: f32, findings: Vec<Finding>) -> Scan {
        let thresholds = self.thresholds.unwrap_or_else(|| Thresholds::of(channel));
        let mut scan = Scan { verdict: thresholds.judge(score), score, findings };
        if let Some((judge, [low, high])) = &self.cascade
            && (*low..=*high).contains(&score)
            && let Some(better) = judge(text, channel, &scan)
        {
            scan.score = better.clamp(0.0, 1.0);
            scan.verdict = thresholds.judge(scan.score);
        }
        scan
    }
}

/// Judges a text with the rules that ship.
#[must_use]
pub fn scan(text: &str, channel: Channel) -> Scan {
    Detector::new().scan(text, channel)
}

/// The heaviest finding of each rule at each place: the same words show in several views.
fn once_a_place(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in findings {
        let shown = kept.iter().any(|other| {
            other.rule == finding.rule
                && other.span.start < finding.span.end
                && finding.span.start < other.span.end
        });
        if !shown {
            kept.push(finding);
        }
    }
    kept
}

/// Whether a text is clean in a channel.
#[must_use]
pub fn is_clean(text: &str, channel: Channel) -> bool {
    scan(text, channel).verdict == Verdict::Clean
}

fn rules(
    set: &RuleSet,
    text: &str,
    view: &View<'_>,
    first: bool,
    channel: Channel,
    work: &mut Work,
    findings: &mut Heaviest,
) {
    let encoded = view.path().iter().any(|&step| step.hides());
    let mut heaviest: Option<(f32, Span)> = None;
    // What was not hidden was found in the first view.
    let hidden = |range: Range<usize>| !view.path().is_empty() && view.altered(range);
    for one in matcher::matches(set, view.text(), work, |range| first || hidden(range)) {
        let rule = &set.rules[usize::from(one.rule)];
        let hidden = hidden(one.start..one.end);
        if !hidden && !first {
            continue;
        }
        work.add(Step::Findings, 1);
        let mut weight = rule.weight(channel) * one.factor;
        let span = view.span(one.start..one.end);
        if rule.canary && weight > 0.0 && has_canary(text, span) {
            weight = (weight * 1.6).min(0.9);
        }
        if weight < LEAST {
            continue;
        }
        if hidden && encoded && heaviest.is_none_or(|(most, _)| weight > most) {
            heaviest = Some((weight, span));
        }
        findings.add(&rule.id, weight, span, || Finding {
            rule: rule.id.clone(),
            category: rule.category,
            weight,
            span,
            path: if hidden { view.path().to_vec() } else { Vec::new() },
            reason: rule.explanation.clone(),
        });
    }
    // An encoding alone is no finding: what it hides is.
    if let Some((weight, span)) = heaviest
        && weight >= 0.3
    {
        let weight = (weight * 0.5 + ENCODED).min(0.9);
        findings.add("encoded.payload", weight, span, || Finding {
            rule: Cow::Borrowed("encoded.payload"),
            category: Category::EncodedPayload,
            weight,
            span,
            path: view.path().to_vec(),
            reason: Cow::Borrowed("An attack was hidden by an encoding."),
        });
    }
}

/// A made-up token such as `ALPHA_CHECK_7` near a finding: nobody asks for that in earnest.
fn has_canary(text: &str, span: Span) -> bool {
    let bytes = text.as_bytes();
    let from = span.start.saturating_sub(60).min(bytes.len());
    let to = span.end.saturating_add(80).min(bytes.len());
    bytes[from..to].split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_')).any(|word| {
        word.len() >= 6
            && word.contains(&b'_')
            && word.iter().filter(|byte| byte.is_ascii_uppercase()).count() >= 4
            && !word.iter().any(u8::is_ascii_lowercase)
    })
}

/// More was encoded than is decoded: what is left might hide something. The text itself was read to
/// its end all the same.
fn limits(views: &Views<'_>, text: &str, findings: &mut Heaviest) {
    if views.truncated {
        let span = Span { start: 0, end: text.len() };
        findings.add("decode.limits", LIMITS, span, || Finding {
            rule: Cow::Borrowed("decode.limits"),
            category: Category::EncodedPayload,
            weight: LIMITS,
            span,
            path: Vec::new(),
            reason: Cow::Borrowed("More is encoded or odd here than was read."),
        });
    }
}

/// Text that a reader cannot see.
fn hidden(views: &Views<'_>, findings: &mut Heaviest) {
    for hidden in views.hidden.iter().take(8) {
        findings.add("hidden.text", 0.3, hidden.span, || Finding {
            rule: Cow::Borrowed("hidden.text"),
            category: Category::IndirectInjection,
            weight: 0.3,
            span: hidden.span,
            path: Vec::new(),
            reason: Cow::Borrowed("Text is hidden from the reader."),
        });
    }
}

/// Credentials, wherever they stand, and addresses that carry data away: one pass for both. Says whether there were too
/// many odd addresses to read them all.
fn secrets_and_urls(
    text: &str,
    channel: Channel,
    work: &mut Work,
    findings: &mut Heaviest,
) -> bool {
    let (mut secrets, mut urls) = (secrets::Search::new(text), urls::Search::bounded(text));
    let mut risky = Heaviest::default();
    let (mut count, mut risks) = (0, 0);
    anchors::find(text.as_bytes(), |whose, anchor| {
        count += 1;
        match whose {
            Whose::Secrets => secrets.anchor(anchor),
            Whose::Urls => {
                if let Some(found) = urls.anchor(anchor) {
                    risks += 1;
                    judge(&found, channel, &mut risky);
                }
            }
        }
    });
    // To judge an address takes as long as many places where none is.
    work.add(Step::Anchors, count + 30 * risks);
    work.add(Step::Addresses, urls.read_bytes[0]);
    work.add(Step::Careful, urls.read_bytes[1]);
    // They are named in every channel, so that what holds them is treated as secret. A credential is
    // no attack, though: only in a model's reply, and where its format leaves no doubt, it makes a
    // text suspicious by itself.
    let share = match channel {
        // In the user's own prompt a secret is the user's to give.
        Channel::User => 0.5,
        Channel::ModelOutput => 0.8,
        _ => 0.6,
    };
    // A card number without words around it is too little.
    let (found, digits) = secrets.finish();
    work.add(Step::Secrets, digits);
    for secret in found.into_iter().filter(|secret| secret.confidence >= 0.5) {
        let weight = secret.confidence * share;
        findings.add(secret.kind, weight, secret.span, || Finding {
            rule: Cow::Owned(format!("secret.{}", secret.kind)),
            category: Category::SensitiveFileContent,
            weight,
            span: secret.span,
            path: Vec::new(),
            reason: Cow::Borrowed("A credential is written here."),
        });
    }
    for risk in risky.finish() {
        let rule = risk.rule.clone();
        findings.add(&rule, risk.weight, risk.span, || risk);
    }
    urls.exhausted
}

/// An address and what is risky about it.
fn judge(found: &urls::Seen<'_>, channel: Channel, findings: &mut Heaviest) {
    let from_model = channel == Channel::ModelOutput;
    let context = UrlContext { from_model, ..found.context };
    // Data often names odd addresses; one that is fetched unasked, or that the model itself
    // writes, is another matter.
    let share = if context.in_image || from_model { 0.8 } else { 0.45 };
    for risk in found.judge(context).into_iter().filter(|risk| risk.weight >= LEAST) {
        let weight = risk.weight * share;
        findings.add(risk.kind.name(), weight, found.span, || Finding {
            rule: Cow::Borrowed(risk.kind.name()),
            category: Category::DataExfiltration,
            weight,
            span: found.span,
            path: Vec::new(),
            reason: risk.reason,
        });
    }
}
