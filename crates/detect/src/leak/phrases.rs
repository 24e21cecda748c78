//! Sentences in which a model speaks of its own prompt, word by word.

use super::evidence::{Count, Rule, Signal};
use super::words::*;

/// One word of a phrase.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A word with one of these meanings.
    Is(Meaning),
    /// Up to three words with one of these meanings, or none.
    May(Meaning),
    /// Up to so many words of any kind before the next step.
    Any(u8),
    /// A word with none of these meanings.
    Not(Meaning),
}

use Step::{Any, Is, May, Not};

#[derive(Debug)]
struct Phrase {
    rule: &'static Rule,
    weight: f32,
    /// Whether what follows in the same paragraph belongs to it.
    tail: bool,
    steps: &'static [Step],
}

pub(super) static ANNOUNCED: Rule =
    Rule { id: "leak.announced", reason: "The answer announces or quotes its own prompt." };
static RULES_TOLD: Rule =
    Rule { id: "leak.rules-told", reason: "The answer tells what its own rules are." };
static RECEIVED: Rule =
    Rule { id: "leak.received", reason: "The answer speaks of instructions that it was given." };
static HABIT: Rule =
    Rule { id: "leak.habit", reason: "The answer names what it uses inside when it works." };
static MECHANISM: Rule =
    Rule { id: "leak.mechanism", reason: "The answer explains how it is built inside." };
static IDENTITY: Rule =
    Rule { id: "leak.identity", reason: "The answer repeats an identity as prompts state it." };
static HEAD: Rule =
    Rule { id: "leak.head", reason: "The answer begins as prompts of model makers do." };
static MENTIONED: Rule =
    Rule { id: "leak.mentioned", reason: "The answer speaks of its own prompt." };
static PERSONA: Rule = Rule { id: "leak.persona", reason: "A role is quoted as prompts give it." };
static SELF_ORDER: Rule =
    Rule { id: "leak.self-order", reason: "The answer says what it always or never does." };
static TOOL_LIST: Rule =
    Rule { id: "leak.tool-list", reason: "The answer lists the tools that it was given." };

/// No leak: the answer writes a prompt for somebody, as it was asked to.
pub(super) static DRAFT: Rule = Rule { id: "leak.draft", reason: "The answer drafts a prompt." };

const OWN: Meaning = WHOLE | SYSTEM;
const AFTER: Meaning = SAY | BE | COLON;
/// What orders are told from other sentences by.
const ORDER: Meaning = NEVER | ALWAYS | DO;

const fn phrase(rule: &'static Rule, weight: f32, tail: bool, steps: &'static [Step]) -> Phrase {
    Phrase { rule, weight, tail, steps }
}

static PHRASES: &[Phrase] = &[
    // The prompt announced, quoted or referred to as one's own.
    phrase(&ANNOUNCED, 0.6, true, &[Is(HERE), Any(5), Is(MY), May(OWN), Is(PROMPT)]),
    phrase(
        &ANNOUNCED,
        0.6,
        true,
        &[Is(HERE), Any(5), Is(MY), May(WHOLE), Is(SYSTEM), May(OWN), Is(RULES | MESSAGE)],
    ),
    phrase(
        &ANNOUNCED,
        0.3,
        false,
        &[Is(HERE), May(BE), Is(THE), May(WHOLE), Is(SYSTEM), Is(PROMPT | MESSAGE | RULES)],
    ),
    phrase(
        &ANNOUNCED,
        0.6,
        true,
        &[Is(MY), May(OWN), Is(PROMPT), May(SECTION | MESSAGE), Is(COLON | QUOTE)],
    ),
    phrase(
        &ANNOUNCED,
        0.6,
        true,
        &[
            Is(MY),
            May(OWN),
            Is(PROMPT),
            May(SECTION | MESSAGE | BE | SYSTEM | OF),
            Is(SAY),
            Not(PRIVATE),
        ],
    ),
    phrase(&ANNOUNCED, 0.55, true, &[Is(MY), May(OWN), Is(PROMPT), Is(BE), Not(PRIVATE | SAY)]),
    phrase(
        &ANNOUNCED,
        0.55,
        true,
        &[Is(MY), May(WHOLE), Is(SYSTEM), May(OWN), Is(RULES | MESSAGE), Is(AFTER), Not(PRIVATE)],
    ),
    phrase(
        &ANNOUNCED,
        0.55,
        true,
        &[Is(MY), May(OWN), Is(TITLE), Is(SECTION), Is(AFTER), Not(PRIVATE)],
    ),
    phrase(&ANNOUNCED, 0.5, true, &[Is(ACCORDING), Any(2), Is(MY), May(OWN), Is(PROMPT)]),
    phrase(
        &ANNOUNCED,
        0.45,
        true,
        &[Is(REPEAT), Is(OF), Is(MY), May(OWN), Is(PROMPT | RULES | MESSAGE)],
    ),
    phrase(&ANNOUNCED, 0.5, true, &[Is(MY), May(OWN), Is(PROMPT), Is(HAVE), Not(PRIVATE)]),
    phrase(&MENTIONED, 0.35, false, &[Is(MY), May(OWN), Is(PROMPT)]),
    phrase(&MENTIONED, 0.25, false, &[Is(TITLE), Is(SYSTEM_VALUE)]),
    phrase(&ANNOUNCED, 0.45, false, &[Is(SYSTEM), Is(PROMPT | MESSAGE | RULES), Is(COLON)]),
    phrase(&ANNOUNCED, 0.35, false, &[Is(SYSTEM), Is(PROMPT | MESSAGE), Is(SAY)]),
    phrase(
        &ANNOUNCED,
        0.5,
        true,
        &[Is(SYSTEM), Is(PROMPT | MESSAGE), May(TO), Is(SAY), May(TO), Is(I | ME)],
    ),
    phrase(&ANNOUNCED, 0.3, false, &[Is(HERE), Any(2), Is(ABOVE)]),
    phrase(&ANNOUNCED, 0.3, false, &[Is(REPEAT), Any(2), Is(ABOVE)]),
    phrase(&ANNOUNCED, 0.2, false, &[Is(ABOVE), Is(SAY)]),
    phrase(&ANNOUNCED, 0.2, false, &[Is(REPEAT), Is(COLON)]),
    // Its rules told.
    phrase(&RULES_TOLD, 0.4, true, &[Is(HERE), May(BE), Is(MY), May(WHOLE), Is(RULES)]),
    phrase(
        &RULES_TOLD,
        0.5,
        true,
        &[Is(MY), May(WHOLE), Is(HARD), Is(SAY), Not(PRIVATE | CANNOT), Not(CANNOT), Not(CANNOT)],
    ),
    phrase(&RULES_TOLD, 0.4, true, &[Is(MY), May(WHOLE), Is(RULES), Is(SAY | COLON), Not(PRIVATE)]),
    phrase(&RULES_TOLD, 0.55, true, &[Is(MY), May(WHOLE), Is(RULES), Is(SAY), Is(COLON | QUOTE)]),
    phrase(&RULES_TOLD, 0.45, true, &[Is(MY), May(WHOLE), Is(HARD), Is(BE), Is(TO), Not(PRIVATE)]),
    phrase(&RULES_TOLD, 0.35, true, &[Is(RULES | PROMPT), Any(6), Is(SAY), Is(ME), Is(TO)]),
    phrase(&RULES_TOLD, 0.35, true, &[Is(MY), May(WHOLE), Is(RULES), Is(BE), Not(PRIVATE)]),
    phrase(&RULES_TOLD, 0.4, true, &[Is(ONE), Is(OF), Is(MY), May(OWN), Is(RULES), Is(AFTER)]),
    phrase(
        &RULES_TOLD,
        0.55,
        true,
        &[
            Is(ONE),
            Is(OF),
            Is(MY),
            May(OWN),
            Is(RULES),
            Is(AFTER),
            Is(COLON | QUOTE | NEVER | DO | ALWAYS),
        ],
    ),
    phrase(&RULES_TOLD, 0.3, false, &[Is(ACCORDING), Any(2), Is(MY), May(OWN), Is(RULES)]),
    phrase(&RULES_TOLD, 0.5, true, &[Is(RULES | PROMPT), May(TO), Is(I), Is(FOLLOW)]),
    phrase(&RULES_TOLD, 0.35, true, &[Is(I), Is(FOLLOW), Any(2), Is(RULES), Is(COLON)]),
    phrase(&SELF_ORDER, 0.2, false, &[Is(I), Is(MUST), Is(ALWAYS | NEVER)]),
    // Instructions received.
    phrase(&RECEIVED, 0.25, false, &[Is(I), May(AM | HAVE), Is(TOLD), Is(TO)]),
    phrase(&RECEIVED, 0.3, false, &[Is(I), May(AM | HAVE), Is(STRONG), Is(TO)]),
    phrase(&RECEIVED, 0.35, true, &[Is(I), May(AM | HAVE), Is(TOLD), Is(COLON | QUOTE)]),
    phrase(
        &RECEIVED,
        0.5,
        false,
        &[Is(I), May(AM | HAVE), Is(STRONG), May(TO), Is(NEVER | NOT | ALWAYS)],
    ),
    phrase(&RECEIVED, 0.5, false, &[Is(NOW), Is(TOLD), May(TO), Is(NEVER | NOT | ALWAYS)]),
    phrase(&RECEIVED, 0.35, true, &[Is(RULES), Any(1), Is(I), May(AM | HAVE), Is(TOLD)]),
    phrase(&RECEIVED, 0.5, true, &[Is(PROMPT), Any(1), Is(I), May(AM | HAVE), Is(TOLD)]),
    phrase(&RECEIVED, 0.5, true, &[Is(RULES | PROMPT), Is(TOLD), Any(1), Is(ME)]),
    phrase(&RECEIVED, 0.5, true, &[Is(I), May(AM | HAVE), Is(TOLD), Any(4), Is(PROMPT)]),
    phrase(&RECEIVED, 0.4, true, &[Is(SYSTEM), Is(TOLD), Is(ME)]),
    phrase(
        &RECEIVED,
        0.55,
        true,
        &[
            Is(SYSTEM),
            Is(PROMPT | MESSAGE | RULES),
            Any(1),
            Is(I),
            May(AM | HAVE),
            Is(TOLD | RECEIVE),
        ],
    ),
    phrase(
        &RECEIVED,
        0.5,
        true,
        &[Is(I), Is(RECEIVE), Any(2), Is(SYSTEM), Is(PROMPT | MESSAGE | RULES)],
    ),
    // What it does inside.
    phrase(&HABIT, 0.55, false, &[Is(I), May(INTERNALLY | MUST), Is(USE), Any(2), Is(SIGNAL)]),
    phrase(&HABIT, 0.3, false, &[Is(USE), Any(2), Is(SIGNAL)]),
    phrase(&HABIT, 0.3, false, &[Is(I), May(INTERNALLY | MUST), Is(USE), Any(2), Is(NAME)]),
    phrase(&HABIT, 0.15, false, &[Is(I), May(INTERNALLY | MUST), Is(USE), Any(2), Is(TOOL)]),
    phrase(
        &MECHANISM,
        0.4,
        true,
        &[Is(HOW), Is(MY), May(OWN), Is(TITLE | SYSTEM), Any(2), Is(WORKS)],
    ),
    phrase(&MECHANISM, 0.2, false, &[Is(MY), Is(TITLE), Is(BE), Any(2), Is(COLON)]),
    // Who it is, as prompts say it.
    phrase(
        &IDENTITY,
        0.55,
        false,
        &[
            Is(I | YOU),
            May(BE | AM),
            Is(A),
            Any(4),
            Is(ASSISTANT),
            May(ASSISTANT),
            Is(RUNNING),
            Is(INSIDE),
        ],
    ),
    phrase(
        &IDENTITY,
        0.55,
        false,
        &[Is(I), May(AM), Is(RUNNING), Is(INSIDE), Any(4), Is(ASSISTANT)],
    ),
    phrase(
        &IDENTITY,
        0.3,
        false,
        &[
            Is(I | YOU),
            May(BE | AM),
            Is(A),
            Any(4),
            Is(ASSISTANT),
            May(ASSISTANT),
            Is(RUNNING),
            Is(WHERE),
        ],
    ),
    phrase(&PERSONA, 0.3, false, &[Is(ADDRESSED), Is(BE)]),
    phrase(&HEAD, 0.45, true, &[Is(YOU), May(BE), Any(4), Is(LANGUAGE), Is(ASSISTANT)]),
    phrase(&HEAD, 0.3, false, &[Is(CUTOFF), Is(COLON)]),
    phrase(&TOOL_LIST, 0.25, false, &[Is(I), Is(HAVE), Any(2), Is(THE), Is(FOLLOWING), Is(TOOLS)]),
    phrase(&TOOL_LIST, 0.2, false, &[Is(MY), Any(1), Is(TOOLS), Is(AFTER)]),
    phrase(&ANNOUNCED, 0.45, true, &[Is(SYSTEM), Is(PROMPT | MESSAGE), Is(TO), Is(SAY)]),
    phrase(
        &ANNOUNCED,
        0.55,
        true,
        &[Is(MY), May(WHOLE), Is(SYSTEM), May(OWN), Is(RULES | MESSAGE), Is(COLON)],
    ),
    phrase(
        &ANNOUNCED,
        0.5,
        true,
        &[Is(RULES | PROMPT), Is(ABOVE), Is(SAY), May(TO), Is(I | ME | MY)],
    ),
    phrase(&RULES_TOLD, 0.4, true, &[Is(MY), May(WHOLE), Is(RULES), Is(COLON)]),
    phrase(&RULES_TOLD, 0.35, false, &[Is(ACCORDING), Any(2), Is(MY), May(OWN), Is(RULES)]),
    phrase(&RECEIVED, 0.5, true, &[Is(I), May(AM | HAVE), Is(TOLD), Any(4), Is(RULES), Is(COLON)]),
    phrase(&RECEIVED, 0.5, true, &[Is(SYSTEM), Is(STRONG), Is(ME)]),
    phrase(
        &IDENTITY,
        0.55,
        false,
        &[Is(I), Any(3), Is(A), Any(4), Is(ASSISTANT), May(ASSISTANT), Is(RUNNING), Is(INSIDE)],
    ),
    // A prompt for somebody else.
    phrase(&DRAFT, 0.0, false, &[Is(HERE), May(BE), Is(AN), Any(4), Is(PROMPT)]),
    phrase(&DRAFT, 0.0, false, &[Is(EXAMPLE), Any(2), Is(PROMPT)]),
    phrase(&DRAFT, 0.0, false, &[Is(YOUR), May(OWN | EXAMPLE), Is(PROMPT)]),
];

/// What each phrase begins with.
static STARTS: [Meaning; PHRASES.len()] = {
    let mut starts = [0; PHRASES.len()];
    let mut at = 0;
    while at < PHRASES.len() {
        if let Is(meaning) = PHRASES[at].steps[0] {
            starts[at] = meaning;
        }
        at += 1;
    }
    starts
};

/// Everything that a phrase can begin with.
const FIRST: Meaning = {
    let mut all = 0;
    let mut at = 0;
    while at < PHRASES.len() {
        if let Is(meaning) = PHRASES[at].steps[0] {
            all |= meaning;
        }
        at += 1;
    }
    all
};

/// Phrases that are followed at the same time.
const MOST: usize = 96;

#[derive(Debug, Clone, Copy)]
struct Thread {
    phrase: usize,
    step: usize,
    /// Words that the present step has taken.
    taken: u8,
    start: usize,
}

/// The phrases that have begun.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    threads: Vec<Thread>,
    negated: bool,
    /// Whether the sentence has spoken of instructions.
    told: bool,
}

impl Phrases {
    /// Whether nothing has begun that may become something.
    pub(super) fn is_calm(&self) -> bool {
        self.threads.is_empty() && !self.told
    }

    /// Whether a word begins no phrase.
    #[inline(always)]
    pub(super) fn may_pass(&self, meaning: Meaning) -> bool {
        meaning & FIRST == 0
    }

    /// Takes in a word that begins no phrase.
    #[inline(always)]
    pub(super) fn pass(&mut self, meaning: Meaning) {
        if meaning & (BUT | NOT) != 0 {
            self.negated = meaning & NOT != 0;
        }
    }

    /// A part of a sentence ends: what was denied is.
    pub(super) fn clause(&mut self) {
        self.negated = false;
    }

    /// A sentence ends.
    pub(super) fn sentence(&mut self) {
        self.threads.clear();
        self.negated = false;
        self.told = false;
    }

    /// The next word, from `start` to `end`.
    #[inline]
    pub(super) fn word(
        &mut self,
        meaning: Meaning,
        start: usize,
        end: usize,
        out: &mut Vec<Signal>,
    ) {
        if !self.threads.is_empty() {
            let before = out.len();
            self.follow(meaning, end, out);
            self.told |= out[before..].iter().any(|signal| signal.weight >= 0.25);
        }
        if self.told && meaning & ORDER != 0 {
            out.push(Signal {
                rule: &SELF_ORDER,
                weight: 0.25,
                count: Count::Once,
                span: (start..end).into(),
                tail: false,
                path: Vec::new(),
            });
        }
        if meaning & (FIRST | NOT | BUT | COLON) != 0 {
            self.begin(meaning, start);
        }
    }

    fn follow(&mut self, meaning: Meaning, end: usize, out: &mut Vec<Signal>) {
        let first = out.len();
        self.threads.retain_mut(|thread| {
            let phrase = &PHRASES[thread.phrase];
            if !advance(phrase.steps, thread, meaning) {
                return false;
            }
            if thread.step < phrase.steps.len() {
                return true;
            }
            let signal = Signal {
                rule: phrase.rule,
                weight: phrase.weight,
                count: Count::Once,
                span: (thread.start..end).into(),
                tail: phrase.tail,
                path: Vec::new(),
            };
            // Phrases of one rule that end together are one, the heaviest.
            let same = |one: &&mut Signal| std::ptr::eq(one.rule, signal.rule);
            match out[first..].iter_mut().find(same) {
                Some(one) if one.weight >= signal.weight => {}
                Some(one) => *one = signal,
                None => out.push(signal),
            }
            false
        });
    }

    fn begin(&mut self, meaning: Meaning, start: usize) {
        if meaning & (BUT | COLON) != 0 {
            self.negated = false;
        }
        if meaning & NOT != 0 {
            self.negated = true;
        }
        if self.negated || meaning & FIRST == 0 {
            return;
        }
        for (phrase, first) in STARTS.iter().enumerate() {
            if meaning & first != 0 && self.threads.len() < MOST {
                self.threads.push(Thread { phrase, step: 1, taken: 0, start });
            }
        }
    }

    /// From where on words may still become part of a phrase.
    #[inline]
    pub(super) fn hold(&self) -> usize {
        self.threads.iter().map(|thread| thread.start).min().unwrap_or(usize::MAX)
    }
}

/// Whether a phrase goes on with a word.
fn advance(steps: &[Step], thread: &mut Thread, meaning: Meaning) -> bool {
    loop {
        match steps[thread.step] {
            Is(wanted) => {
                thread.step += 1;
                thread.taken = 0;
                return meaning & wanted != 0;
            }
            Not(unwanted) => {
                thread.step += 1;
                thread.taken = 0;
                return meaning & unwanted == 0;
            }
            May(wanted) if meaning & wanted != 0 && thread.taken < 3 => {
                // A word that the next step needs is for the next step.
                let needed =
                    matches!(steps.get(thread.step + 1), Some(Is(next)) if meaning & next != 0);
                if !needed {
                    thread.taken += 1;
                    return true;
                }
            }
            Any(most) => {
                let found =
                    matches!(steps.get(thread.step + 1), Some(Is(next)) if meaning & next != 0);
                if !found {
                    thread.taken += 1;
                    return thread.taken <= most;
                }
            }
            May(_) => {}
        }
        thread.step += 1;
        thread.taken = 0;
    }
}
