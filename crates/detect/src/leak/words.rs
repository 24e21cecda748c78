//! Words and what they mean here.

use super::fold::{BITS, of_letter};

/// A set of meanings; a word may have several.
pub(super) type Meaning = u64;

macro_rules! meanings {
    ($($name:ident),* $(,)?) => { meanings!(@ 0; $($name),*); };
    (@ $bit:expr; $name:ident $(, $rest:ident)*) => {
        pub(super) const $name: Meaning = 1 << ($bit);
        meanings!(@ $bit + 1; $($rest),*);
    };
    (@ $bit:expr;) => {};
}

meanings!(
    I, MY, YOU, HERE, BE, AM, THE, SYSTEM, PROMPT, RULES, RULE, MESSAGE, SECTION, SAY, TOLD, USE,
    WITH, WHEN, ASSISTANT, RUNNING, INSIDE, WHERE, ONE, OF, WHOLE, HOW, WORKS, NOT, BUT, PRIVATE,
    TO, NEVER, ALWAYS, DO, MUST, USER, BEFORE, REPLYING, IF, ACCORDING, ABOVE, TOOLS, FOLLOWING,
    HAVE, A, LANGUAGE, TRAINED, KNOWLEDGE, CUTOFF, INTERNALLY, AN, EXAMPLE, YOUR,
    // What is not the word itself but what it is like, or what stands before it.
    NAME, SIGNAL, TOOL, TITLE, COLON, QUOTE,
);

/// What a word may be the name of: a section of a prompt, from 1 on; 0 is none.
pub(super) type Heading = u8;

/// Sections that prompts have, the words of one line are one section.
#[rustfmt::skip]
const HEADINGS: &[&[&str]] = &[
    &["identity", "role", "persona", "personality", "character"],
    &["skills", "skill"],
    &["memory", "memories"],
    &["constraints", "constraint", "restrictions", "limits", "limitations"],
    &["mandates", "mandate", "directives", "directive"],
    &["capabilities", "capability", "abilities"],
    &["tools", "tooling", "functions", "tool"],
    &["reasoning", "thinking", "planning"],
    &["workspace", "sandbox", "filesystem"],
    &["rules", "rule", "guidelines", "policies", "policy"],
    &["instructions", "instruction"],
    &["safety", "guardrails", "refusals"],
    &["tone", "style", "voice"],
    &["heartbeat", "heartbeats", "silent"],
    &["runtime", "environment"],
    &["messaging", "replies", "reply", "channels"],
    &["formatting", "format", "output"],
    &["objective", "objectives", "goal", "goals", "mission", "purpose"],
    &["confidentiality", "secrecy", "privacy"],
    &["context", "background"],
];

#[rustfmt::skip]
const WORDS: &[(Meaning, &[&str])] = &[
    (I, &["i", "im", "ive", "ich", "je", "yo", "eu", "io"]),
    (AM, &["im", "am", "was", "bin", "wurde", "suis", "soy", "sou", "sono"]),
    (MY, &["my", "mein", "meine", "meiner", "meinem", "mon", "ma", "mes", "mi", "mis", "meu", "minha", "meus", "minhas", "mio", "mia",
        "miei", "mie", "mijn"]),
    (YOU, &["you", "youre", "du", "sie", "tu", "vous", "usted", "voce"]),
    (HERE, &["here", "heres", "below", "hier", "voici", "aqui", "ecco", "these", "this"]),
    (BE, &["is", "are", "was", "were", "heres", "youre", "im", "ist", "sind", "est", "sont", "es", "son", "sao", "sono", "zijn"]),
    (A, &["a", "an", "the", "ein", "eine", "un", "une", "una", "um", "uma"]),
    (THE, &["the", "these", "this", "their", "its"]),
    (SYSTEM, &["system", "developer", "initial", "hidden", "internal", "original", "underlying", "base", "core", "secret", "startup",
        "operating", "preset", "sistema", "systeme", "initiales", "iniciales"]),
    (PROMPT, &["prompt", "prompts", "preprompt", "metaprompt", "preamble", "systemprompt", "sysprompt", "systemprompts"]),
    (RULES, &["instructions", "directives", "guidelines", "rules", "constraints", "configuration", "config", "setup", "policies", "mandates",
        "programming", "protocols", "orders", "anweisungen", "regeln", "instrucciones", "reglas", "instrucoes", "regras", "istruzioni",
        "regole", "instructies", "consignes", "regles"]),
    (RULE, &["instruction", "directive", "guideline", "rule", "constraint", "policy", "mandate", "protocol"]),
    (MESSAGE, &["message", "messages", "text", "note"]),
    (SECTION, &["section", "sections", "block", "part", "header", "paragraph"]),
    (SAY, &["say", "says", "said", "state", "states", "stated", "read", "reads", "begin", "begins", "start", "starts", "tell", "tells", "include", "includes",
        "contain", "contains", "instruct", "instructs", "specify", "specifies", "require", "requires", "consist", "consists", "mention",
        "mentions", "goes", "go", "defines", "define", "lists", "list", "describes", "directs", "forbids", "forbid", "lautet", "lauten", "sagt",
        "sagen", "dit", "disent", "dice", "dicen", "diz", "dizem", "dicono", "follows", "looks", "explains", "built", "assembled", "generated", "composed"]),
    (TOLD, &["told", "instructed", "configured", "programmed", "directed", "ordered", "given", "set", "supplied", "prompted", "provided", "initialized",
        "initialised"]),
    (USE, &["use", "run", "call", "invoke", "execute", "send", "emit", "output", "return", "append", "prepend", "respond", "reply",
        "answer", "print", "query", "trigger"]),
    (WITH, &["with", "by", "via", "using", "just"]),
    (WHEN, &["when", "whenever", "if", "once"]),
    (IF, &["if", "when", "whenever", "unless"]),
    (ASSISTANT, &["assistant", "agent", "bot", "chatbot", "model", "copilot", "helper", "ai"]),
    (RUNNING, &["running", "operating", "deployed", "hosted", "embedded", "living", "executing", "working", "built", "integrated"]),
    (INSIDE, &["inside", "within"]),
    (WHERE, &["in", "into", "on", "under", "by"]),
    (ONE, &["one", "some", "another", "part", "first", "second", "third", "last"]),
    (OF, &["of", "in", "from", "de", "del", "du", "di", "do"]),
    (WHOLE, &["complete", "full", "entire", "exact", "whole", "verbatim", "actual", "current", "own", "real", "raw", "unedited", "main",
        "general", "basic", "special", "specific", "standing", "key", "primary", "first", "most", "important", "strict", "custom", "given",
        "vollstandiger", "vollstandige", "completas", "completes", "ganze", "assigned", "top", "level"]),
    (HOW, &["how", "why"]),
    (WORKS, &["works", "work", "functions", "behaves", "operates", "happens"]),
    (NOT, &["not", "cannot", "cant", "wont", "dont", "doesnt", "isnt", "arent", "wasnt", "unable", "without", "refuse", "decline", "nor", "never", "couldnt",
        "shouldnt", "wouldnt", "didnt", "havent", "neither", "nicht", "kein", "keine", "pas", "nunca", "non", "nao"]),
    (BUT, &["but", "however", "anyway", "nevertheless", "though", "still", "so", "aber", "mais", "pero", "mas", "ma"]),
    (PRIVATE, &["confidential", "private", "secret", "hidden", "not", "proprietary", "protected", "something", "off", "internal", "restricted", "unavailable",
        "sensitive", "never", "none", "designed", "meant", "only", "nothing", "there", "for", "simple", "mine"]),
    (TO, &["to", "not", "never", "that", "with", "as"]),
    (NEVER, &["never"]),
    (ALWAYS, &["always"]),
    (DO, &["do", "dont", "avoid"]),
    (MUST, &["must", "should", "may", "shall", "will", "can"]),
    (USER, &["user", "users"]),
    (BEFORE, &["before", "after", "when"]),
    (REPLYING, &["replying", "responding", "answering", "acting", "reply", "respond", "answer"]),
    (ACCORDING, &["according", "per", "following", "under", "based", "laut", "selon", "segun", "segundo", "secondo"]),
    (ABOVE, &["above", "preceding", "previous", "earlier"]),
    (TOOLS, &["tools", "functions", "skills", "commands"]),
    (FOLLOWING, &["following", "these"]),
    (HAVE, &["have", "been", "ive", "had", "has"]),
    (LANGUAGE, &["language"]),
    (TRAINED, &["trained", "developed", "created", "made"]),
    (KNOWLEDGE, &["knowledge"]),
    (CUTOFF, &["cutoff", "cut"]),
    (AN, &["a", "an", "another"]),
    (EXAMPLE, &["example", "sample", "template", "draft", "drafted", "starter", "suggested", "revised", "improved", "rewritten"]),
    (YOUR, &["your"]),
    (INTERNALLY, &["internally", "silently", "secretly", "automatically"]),
];

const SLOTS: usize = 2048;

/// Words by their hash; built when the program is.
static TABLE: [(u32, Heading, Meaning); SLOTS] = {
    let mut table = [(0_u32, 0, 0); SLOTS];
    let mut row = 0;
    while row < WORDS.len() {
        let (meaning, words) = WORDS[row];
        let mut at = 0;
        while at < words.len() {
            let slot = slot_of(&table, words[at].as_bytes());
            table[slot].0 = hash(letters_of(words[at].as_bytes()), words[at].len());
            table[slot].2 |= meaning;
            at += 1;
        }
        row += 1;
    }
    let mut row = 0;
    while row < HEADINGS.len() {
        let mut at = 0;
        while at < HEADINGS[row].len() {
            let word = HEADINGS[row][at].as_bytes();
            let slot = slot_of(&table, word);
            table[slot].0 = hash(letters_of(word), word.len());
            table[slot].1 = row as u8 + 1;
            table[slot].2 |= TITLE;
            at += 1;
        }
        row += 1;
    }
    table
};

const fn slot_of(table: &[(u32, Heading, Meaning); SLOTS], word: &[u8]) -> usize {
    let hash = hash(letters_of(word), word.len());
    let mut slot = (hash >> 21) as usize;
    while table[slot].0 != 0 && table[slot].0 != hash {
        slot = (slot + 1) % SLOTS;
    }
    slot
}

/// The letters of a word, folded as letters are.
const fn letters_of(word: &[u8]) -> u128 {
    let mut letters = 0;
    let mut at = 0;
    while at < word.len() {
        letters = letters << BITS | of_letter(word[at]) as u128;
        at += 1;
    }
    letters
}

#[inline]
const fn hash(letters: u128, count: usize) -> u32 {
    let low = (letters & u64::MAX as u128) as u64;
    let high = (letters >> 64) as u64;
    let mixed = (low ^ high.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (count as u64) << 59)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 | 1
}

/// Longer words have no meaning.
pub(super) const LONGEST: usize = 16;

/// What a word of so many letters means.
#[inline]
pub(super) fn look_up(letters: u128, count: usize) -> (Heading, Meaning) {
    let hash = hash(letters, count);
    let mut slot = (hash >> 21) as usize;
    loop {
        let (known, heading, meaning) = TABLE[slot];
        if known == hash {
            return (heading, meaning);
        }
        if known == 0 {
            return (0, 0);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(word: &str) -> (Heading, Meaning) {
        super::look_up(letters_of(word.as_bytes()), word.len())
    }

    #[test]
    fn words_are_found_in_any_case() {
        assert_eq!(look_up("Prompt"), (0, PROMPT));
        assert_eq!(look_up("Skills").1 & TITLE, TITLE);
        assert_eq!(look_up("IM"), (0, I | AM | BE));
        assert_ne!(look_up("memory").0, 0);
        assert_eq!(look_up("harbour"), (0, 0));
        assert_eq!(look_up(""), (0, 0));
    }

    #[test]
    fn no_two_words_share_a_hash() {
        let mut words: Vec<&str> =
            WORDS.iter().flat_map(|(_, words)| words.iter().copied()).collect();
        words.extend(HEADINGS.iter().flat_map(|words| words.iter().copied()));
        words.sort_unstable();
        words.dedup();
        let hashes: std::collections::HashSet<u32> =
            words.iter().map(|word| hash(letters_of(word.as_bytes()), word.len())).collect();
        assert_eq!(hashes.len(), words.len());
        assert!(words.iter().all(|word| word.len() <= LONGEST));
        assert!(words.len() < SLOTS / 2);
    }
}
