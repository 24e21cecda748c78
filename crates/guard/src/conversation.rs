//! What the messages of a session amount to when they are taken together.
//!
//! A crescendo asks for a little more each time, and no single message is much; an attack can also
//! be cut in two. [`Conversation::receive`] looks at a message beside those before it, and gives
//! what the message alone does not show. Every message leaves a [`Signal`], which goes into its
//! record: from the last ten a conversation is made again after a restart. The ends of earlier
//! messages, by which a cut attack is found, are in memory only.
//!
//! The window is ten messages and five minutes: whoever asks more slowly than that is not noticed
//! here. Which questions belong together is told by English words; in other languages only what
//! the scan finds adds up.

mod lexicon;
mod probe;
mod seam;
mod signal;

use std::borrow::Cow;
use std::collections::VecDeque;

use wardkeep_detect::finding::{Category, Channel, Finding, Scan, Span, Verdict};
use wardkeep_detect::scan::{Detector, Thresholds, score};
use wardkeep_detect::score::LEARNED;

use crate::recent::Recent;
use probe::Probe;
use seam::Ends;

pub use signal::{Flags, ParseSignalError, Signal};

/// Messages that are looked at together.
pub const MESSAGES: usize = 10;
/// Seconds that are looked at together.
pub const SECONDS: u64 = 300;
/// From which sum of scores on, in hundredths, the messages are an attempt together.
const ACCUMULATED: u32 = 150;
/// From which score on a message counts as one that asks.
const ASKS: u16 = 40;
/// From which score on it counts as one of several attempts.
const TRIES: u16 = 50;
/// How many of those are an attempt together.
const SUSTAINED: usize = 3;
/// What the finding weighs that a crescendo adds.
const WEIGHT: f32 = 0.90;
/// Conversations that are kept.
const SESSIONS: usize = 1024;

/// How messages became an attempt together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crescendo {
    /// Their scores add up to 1.5.
    Accumulated,
    /// One that asked was followed by one that asks for the words.
    Sequential,
    /// Three or more of them tried.
    Sustained,
}

impl Crescendo {
    /// In a sentence for a person.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Accumulated => {
                "The last messages together try to get at the agent's instructions."
            }
            Self::Sequential => {
                "After a question about the agent's instructions, the message asks for their words."
            }
            Self::Sustained => "Several messages in a row try to get at the agent's instructions.",
        }
    }
}

/// What a message means where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What it leaves behind.
    pub signal: Signal,
    /// What it completes, if it does.
    pub crescendo: Option<Crescendo>,
    /// What is found only together with earlier messages, a crescendo included.
    pub findings: Vec<Finding>,
}

impl Turn {
    /// The scan of the message with what was found beside it.
    #[must_use]
    pub fn complete(&self, mut scan: Scan) -> Scan {
        if self.findings.is_empty() {
            return scan;
        }
        scan.findings.extend(self.findings.iter().cloned());
        scan.findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        scan.score = scan.score.max(score(&scan.findings));
        scan.verdict = scan.verdict.max(Thresholds::of(Channel::User).judge(scan.score));
        scan
    }
}

/// The last messages of a session.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    signals: VecDeque<Signal>,
    ends: Ends,
}

impl Conversation {
    /// Without a message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From what messages left in their records, oldest first.
    #[must_use]
    pub fn from_signals(signals: impl IntoIterator<Item = Signal>) -> Self {
        let mut conversation = Self::default();
        for signal in signals {
            conversation.push(signal);
        }
        conversation
    }

    /// The signals that are kept, oldest first.
    pub fn signals(&self) -> impl Iterator<Item = Signal> + '_ {
        self.signals.iter().copied()
    }

    /// Takes in the next message, of which `scan` was made; `now` is in seconds since 1970.
    pub fn receive(&mut self, now: u64, text: &str, scan: &Scan, detector: &Detector) -> Turn {
        self.forget(now);
        let mut findings = self.ends.joined(text, detector);
        findings.retain(is_of_a_rule);
        let (mut signal, found) = self.signal(now, text, scan, &findings);
        let crescendo = self.crescendo(signal);
        signal.flags.set(Flags::CRESCENDO, crescendo.is_some());
        let (rule, reason) = match crescendo {
            Some(crescendo) => ("conversation.crescendo", crescendo.reason()),
            None if is_outright(signal.flags, found) => ("conversation.outright", OUTRIGHT),
            None => ("", ""),
        };
        if !rule.is_empty() {
            findings.push(Finding {
                rule: Cow::Borrowed(rule),
                category: Category::ExtractionAttempt,
                weight: WEIGHT,
                span: Span { start: 0, end: text.len() },
                path: Vec::new(),
                reason: Cow::Borrowed(reason),
            });
        }
        self.push(signal);
        self.ends.push(text);
        Turn { signal, crescendo, findings }
    }

    fn push(&mut self, signal: Signal) {
        if self.signals.len() == MESSAGES {
            self.signals.pop_front();
        }
        self.signals.push_back(signal);
    }

    /// Lets go of what is too old. A clock that was set back makes nothing old.
    fn forget(&mut self, now: u64) {
        while self.signals.front().is_some_and(|one| now.saturating_sub(one.time) >= SECONDS) {
            self.signals.pop_front();
        }
        if self.signals.is_empty() {
            self.ends = Ends::default();
        }
    }

    /// The signal of a message, and what findings count for in it.
    fn signal(&self, now: u64, text: &str, scan: &Scan, joined: &[Finding]) -> (Signal, u16) {
        let all = || scan.findings.iter().filter(|one| is_of_a_rule(one)).chain(joined);
        let has = |category| all().any(|finding| finding.category == category);
        let probe = Probe::of(text);
        let mut flags = Flags::NONE;
        flags.set(Flags::EXTRACTION, has(Category::ExtractionAttempt));
        flags.set(Flags::MANY_SHOT, has(Category::ManyShotPriming));
        flags.set(Flags::FALSE_CONTEXT, has(Category::FalseContextInjection));
        flags.set(Flags::BEHAVIOUR, has(Category::BehaviorManipulation));
        flags.set(Flags::JOINED, !joined.is_empty());
        // What was spoken of a moment ago can be meant without being named.
        let recent = || self.signals.iter().rev().take(2);
        let spoken = recent().any(|one| one.flags.intersects(Flags::INTERNALS));
        let asked = recent().next().is_some_and(|one| one.flags.contains(Flags::INTERNALS));
        let internals = probe.internals || (probe.vague && asked);
        let follows = !internals && probe.refers && spoken;
        let words = probe.wording || (follows && probe.textual);
        let wording = words && (internals || follows);
        // To follow keeps it in mind.
        flags.set(Flags::INTERNALS, internals || wording);
        flags.set(Flags::WORDING, wording);
        let asks: u16 = match (internals, follows) {
            (true, _) if wording => 60,
            (true, _) => 30,
            (_, true) if probe.wording => 50,
            (_, true) if wording => 40,
            _ => 0,
        };
        let found = found(all(), internals, wording);
        (Signal { time: now, score: asks.max(found), flags }, found)
    }

    fn crescendo(&self, signal: Signal) -> Option<Crescendo> {
        if signal.score < ASKS {
            return None;
        }
        // This message is the tenth.
        let before = || self.signals.iter().rev().take(MESSAGES - 1);
        let tries = before().filter(|one| one.score >= TRIES).count();
        if signal.score >= TRIES && tries + 1 >= SUSTAINED {
            return Some(Crescendo::Sustained);
        }
        let sum: u32 = before().map(|one| u32::from(one.score)).sum();
        let asked = before().any(|one| one.score >= ASKS);
        if asked && sum + u32::from(signal.score) >= ACCUMULATED {
            return Some(Crescendo::Accumulated);
        }
        if !signal.flags.contains(Flags::WORDING) {
            return None;
        }
        let spoken = before().filter(|one| one.flags.contains(Flags::INTERNALS)).count();
        let just_asked = before().take(2).any(|one| {
            let asks = Flags::WORDING.and(Flags::EXTRACTION);
            one.score >= ASKS && one.flags.contains(Flags::INTERNALS) && one.flags.intersects(asks)
        });
        let outright = spoken > 0 && signal.flags.contains(Flags::EXTRACTION);
        (just_asked || spoken >= 2 || outright).then_some(Crescendo::Sequential)
    }
}

const OUTRIGHT: &str = "The message asks for the words of the agent's own instructions.";

/// Whether a message needs no others: it names the agent's own instructions, asks for their words,
/// and the scan says the same.
fn is_outright(flags: Flags, found: u16) -> bool {
    let all = Flags::INTERNALS.and(Flags::WORDING).and(Flags::EXTRACTION);
    flags.contains(all) && found >= TRIES
}

/// Whether a finding says what it found. The wording of a whole text does not add up over several.
fn is_of_a_rule(finding: &Finding) -> bool {
    finding.rule != LEARNED
}

/// What findings count for in a conversation, in hundredths: those of one category as independent
/// reasons, by the weights of the seed.
fn found<'f>(
    findings: impl Iterator<Item = &'f Finding> + Clone,
    internals: bool,
    wording: bool,
) -> u16 {
    let mut sum = 0.0_f32;
    for (category, share) in [
        (Category::ExtractionAttempt, 1.0),
        (Category::ManyShotPriming, 0.8),
        (Category::FalseContextInjection, 0.5),
        (Category::BehaviorManipulation, 0.3),
    ] {
        let mut clean = 1.0_f32;
        let mut seen: Vec<&str> = Vec::new();
        for finding in findings.clone().filter(|finding| finding.category == category) {
            if !seen.contains(&&*finding.rule) {
                seen.push(&finding.rule);
                clean *= 1.0 - finding.weight * sureness(&finding.rule, internals, wording);
            }
        }
        sum += (1.0 - clean) * share;
    }
    hundredths(sum)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
fn hundredths(number: f32) -> u16 {
    (number * 100.0).round().clamp(0.0, 1000.0) as u16
}

/// Many ask for "the rules" or "the text above" without meaning those of the agent: unless the
/// message says that it does, such a finding is worth half.
fn sureness(rule: &str, internals: bool, wording: bool) -> f32 {
    match rule {
        "extract.above"
        | "extract.instructions-plain"
        | "extract.your-rules"
        | "extract.secret"
        | "extract.secret-piece" => match (internals, wording) {
            (true, true) => 1.0,
            (true, false) => 0.75,
            _ => 0.5,
        },
        _ => 1.0,
    }
}

/// Whether a scan makes what was scanned suspect of being an injection: it tries to steer, by
/// whatever means, or forces a made-up phrase into the answer.
#[must_use]
pub fn suspects_injection(scan: &Scan) -> bool {
    scan.verdict >= Verdict::Suspicious
        && scan.findings.iter().any(|finding| match finding.category {
            Category::SystemImpersonation
            | Category::IndirectInjection
            | Category::BehaviorManipulation
            | Category::FalseContextInjection
            | Category::EncodedPayload => true,
            Category::FormatOverride => is_canary(finding),
            _ => false,
        })
}

/// Whether a finding is a phrase that is forced into the answer to see that it can be.
fn is_canary(finding: &Finding) -> bool {
    matches!(&*finding.rule, "format.canary" | "format.say-only") && finding.weight >= 0.5
}

/// The conversations of sessions, a bounded number of them.
#[derive(Debug)]
pub struct Conversations {
    sessions: Recent<Conversation>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::new()
    }
}

impl Conversations {
    /// Without a session.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(SESSIONS)
    }

    /// Without a session, and never more than so many; one takes about two kilobytes at most.
    #[must_use]
    pub fn with_limit(sessions: usize) -> Self {
        Self { sessions: Recent::new(sessions) }
    }

    /// The conversation of a session. Where it is not kept, `rebuild` gives the signals from the
    /// session's records, oldest first: the last ten will do.
    pub fn of<I: IntoIterator<Item = Signal>>(
        &mut self,
        session: &str,
        rebuild: impl FnOnce() -> I,
    ) -> &mut Conversation {
        self.sessions.get_or_make(session, || Conversation::from_signals(rebuild()))
    }

    /// Forgets a session.
    pub fn remove(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Sessions that are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(time: u64, score: u16) -> Signal {
        Signal { time, score, flags: Flags::INTERNALS }
    }

    #[test]
    fn the_window_is_ten_messages_and_five_minutes() {
        let mut conversation = Conversation::from_signals((0..30).map(|at| asked(at, 1)));
        assert_eq!(conversation.signals().count(), MESSAGES);
        conversation.forget(25 + SECONDS);
        assert_eq!(conversation.signals().next(), Some(asked(26, 1)));
        conversation.forget(0);
        assert_eq!(conversation.signals().count(), 4, "a clock set back makes nothing old");
        conversation.forget(30 + SECONDS);
        assert_eq!(conversation.signals().count(), 0);
    }

    #[test]
    fn scores_accumulate_to_one_and_a_half() {
        let plain = |score| Signal { time: 9, score, flags: Flags::EXTRACTION };
        let after = |scores: &[u16], score| {
            Conversation::from_signals(scores.iter().map(|score| plain(*score)))
                .crescendo(plain(score))
        };
        assert_eq!(after(&[75], 74), None);
        assert_eq!(after(&[75], 75), Some(Crescendo::Accumulated));
        assert_eq!(after(&[45, 45, 20], 40), Some(Crescendo::Accumulated));
        assert_eq!(after(&[45, 45, 20], 39), None);
        // One message is judged by itself.
        assert_eq!(after(&[], 200), None);
        // What adds nothing is not to blame.
        assert_eq!(after(&[140, 140], 0), None);
    }

    #[test]
    fn three_tries_are_an_attempt() {
        let after = |scores: [u16; 2], score| {
            Conversation::from_signals(scores.map(|score| asked(9, score)))
                .crescendo(asked(9, score))
        };
        assert_eq!(after([50, 50], 50), Some(Crescendo::Sustained));
        assert_eq!(after([50, 20], 50), None);
    }
}
