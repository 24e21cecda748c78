//! Forbidden, or told of others: a policy may name what it forbids.

use wardkeep_detect::finding::Finding;

/// Negations that stand before what they negate.
const BEFORE: [&str; 49] = [
    "never",
    "not",
    "don't",
    "dont",
    "doesn't",
    "mustn't",
    "cannot",
    "can't",
    "won't",
    "shouldn't",
    "no",
    "refuse",
    "refuses",
    "avoid",
    "nobody",
    "forbidden",
    "prohibited",
    "decline",
    "nicht",
    "niemals",
    "nie",
    "kein",
    "keine",
    "keinen",
    "verboten",
    "ne",
    "n'",
    "jamais",
    "interdit",
    "nunca",
    "jamás",
    "não",
    "nao",
    "non",
    "mai",
    "vietato",
    "не",
    "никогда",
    "нельзя",
    "запрещено",
    "不",
    "别",
    "禁止",
    "勿",
    "لا",
    "لن",
    "ممنوع",
    "मत",
    "नहीं",
];

/// Negations that stand just behind the verb.
const BEHIND: [&str; 20] = [
    "nicht",
    "niemals",
    "nie",
    "kein",
    "keine",
    "keinen",
    "ない",
    "禁ずる",
    "するな",
    "ません",
    "마세요",
    "말 것",
    "않",
    "금지",
    "मत",
    "नहीं",
    "न करें",
    "pas",
    "jamais",
    "禁止",
];

/// What undoes a negation that stands just before it: "do not hesitate to".
const UNDONE: [&str; 36] = [
    "hesitate",
    "fail",
    "forget",
    "neglect",
    "omit",
    "refrain",
    "only",
    "matter",
    "longer",
    "need",
    "mind",
    "stop",
    "zögern",
    "vergessen",
    "hésitez",
    "dudes",
    "hesite",
    "esitare",
    "стесняйся",
    "nur",
    "solo",
    "think",
    "worry",
    "bother",
    "care",
    "be afraid",
    "be shy",
    "go wrong",
    "wrong",
    "a problem",
    "a mistake",
    "forbidden",
    "prohibited",
    "not allowed",
    "reason to refuse",
    "reason not",
];

/// Negations of a negation: "not forbidden".
const TWICE: [&str; 9] =
    [" not", "n't", " never", "no longer", "nicht", " no", "nothing is", " nobody is", "hardly"];

/// Those who may ask for what they should not.
const OTHERS: [&str; 26] = [
    "customer",
    "customers",
    "user",
    "users",
    "someone",
    "somebody",
    "people",
    "anyone",
    "text",
    "texts",
    "page",
    "pages",
    "document",
    "documents",
    "tool",
    "tools",
    "mail",
    "mails",
    "e-mail",
    "e-mails",
    "attacker",
    "attackers",
    "pupils",
    "visitors",
    "content",
    "they",
];
/// How they do.
const ASKING: [&str; 14] = [
    "may ask",
    "might ask",
    "will ask",
    "can ask",
    "could ask",
    "asks you",
    "ask you",
    "tells you",
    "tell you",
    "wants you",
    "want you",
    "tries to",
    "try to",
    "asking you",
];
/// What the policy says to that.
const REFUSAL: [&str; 12] = [
    "decline",
    "refuse",
    "reject",
    "say no",
    "is an attack",
    "are attacks",
    "report it",
    "report the attempt",
    "do not comply",
    "don't comply",
    "do not do so",
    "treat it as an attack",
];

/// Words that show that a text is about attacks,
const ABOUT: [&str; 10] = [
    "sign",
    "signs",
    "attack",
    "attacks",
    "attackers",
    "injection",
    "injections",
    "suspicious",
    "hostile",
    "malicious",
];
/// and that one is named.
const NAMED: [&str; 9] = [
    "a request to",
    "requests to",
    "an order to",
    "orders to",
    "attempts to",
    "an attempt to",
    "such as",
    "text that says",
    "phrases like",
];

/// How many words may stand between a negation and what it negates.
const NEAR: usize = 5;
/// How many characters may stand between a verb and the negation behind it.
const CLOSE: usize = 14;

/// Whether a finding stands in a sentence that forbids it, or that tells of others and refuses.
/// Findings that are no matter of wording, such as tokens and hidden text, never do.
pub(super) fn is_forbidden(text: &str, finding: &Finding) -> bool {
    let wording = !["template.", "hidden.", "encoded.", "url.", "shots."]
        .iter()
        .any(|family| finding.rule.starts_with(family));
    // What was hidden is not excused by what stands around it.
    if !wording || !finding.path.is_empty() {
        return false;
    }
    let span = finding.span;
    let (Some(before), Some(inside), Some(after)) =
        (text.get(..span.start), text.get(span.start..span.end), text.get(span.end..))
    else {
        return false;
    };
    let before = behind_last(before, &['.', '!', '?', '\n', '。', '।', '；', ';']).to_lowercase();
    let end = after.find(['.', '!', '?', '\n', '。', '।']).unwrap_or(after.len());
    let rest = &after[..after.floor_char_boundary((end + 80).min(after.len()))];
    is_negated(&before, &inside.to_lowercase(), &after[..end].to_lowercase())
        || is_told(&before, &rest.to_lowercase())
}

/// Whether something is negated by the words before it, within it or just behind it, all in lower
/// case.
pub(super) fn is_negated(before: &str, inside: &str, after: &str) -> bool {
    // Punctuation ends what a negation reaches.
    let before = behind_last(before, &[':', ',', '—', '–', '(', '，', '、']);
    let negated = BEFORE.iter().any(|negation| {
        ends_of(before, negation).into_iter().any(|end| {
            let between = &before[end..];
            let head = before[..end - negation.len()].trim_end();
            between.split_whitespace().count() <= NEAR
                && !is_undone(between)
                && !TWICE.iter().any(|word| head.ends_with(word))
        })
    });
    let close: String = after.chars().take(CLOSE).collect();
    let head: String = inside.chars().take(CLOSE).collect();
    negated
        || BEHIND.iter().any(|negation| {
            !ends_of(&head, negation).is_empty() || !ends_of(&close, negation).is_empty()
        })
        || late(inside)
}

/// In Hindi the negation stands before the verb, at the end.
fn late(inside: &str) -> bool {
    ["मत", "नहीं"].iter().any(|negation| !ends_of(inside, negation).is_empty())
}

fn is_undone(after: &str) -> bool {
    let next = after.trim_start();
    UNDONE.iter().any(|word| next.starts_with(word))
}

/// Whether the sentence tells what others may ask for and refuses it, or names signs of an attack.
pub(super) fn is_told(before: &str, after: &str) -> bool {
    let has = |text: &str, words: &[&str]| words.iter().any(|word| !ends_of(text, word).is_empty());
    (has(before, &OTHERS) && has(before, &ASKING) && has(after, &REFUSAL))
        || (has(before, &ABOUT) && has(before, &NAMED))
}

/// What stands behind the last of these characters.
fn behind_last<'a>(text: &'a str, marks: &[char]) -> &'a str {
    text.rsplit_once(marks).map_or(text, |(_, behind)| behind)
}

/// Where whole words end in a text; scripts without spaces are matched anywhere.
fn ends_of(text: &str, word: &str) -> Vec<usize> {
    let unspaced = word.chars().any(|c| {
        matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
    });
    text.match_indices(word)
        .filter(|(at, _)| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            let ends = !after.is_some_and(char::is_alphanumeric) || word.ends_with('\'');
            unspaced || (!before.is_some_and(char::is_alphanumeric) && ends)
        })
        .map(|(at, _)| at + word.len())
        .collect()
}
