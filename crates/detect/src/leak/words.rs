//! Words and what they mean here.

use super::fold::of_letter;
use super::shingle::Register;

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
    I,
    ME,
    MY,
    YOU,
    YOUR,
    HERE,
    BE,
    AM,
    NOW,
    THE,
    A,
    AN,
    SYSTEM,
    PROMPT,
    RULES,
    HARD,
    MESSAGE,
    SECTION,
    SAY,
    TOLD,
    STRONG,
    RECEIVE,
    USE,
    FOLLOW,
    ASSISTANT,
    RUNNING,
    INSIDE,
    WHERE,
    ONE,
    OF,
    WHOLE,
    HOW,
    WORKS,
    NOT,
    CANNOT,
    BUT,
    PRIVATE,
    TO,
    NEVER,
    ALWAYS,
    DO,
    MUST,
    USER,
    BEFORE,
    REPLYING,
    IF,
    ACCORDING,
    ABOVE,
    REPEAT,
    TOOLS,
    FOLLOWING,
    HAVE,
    LANGUAGE,
    CUTOFF,
    INTERNALLY,
    EXAMPLE,
    // What is not the word itself but what it is like, or what stands before it.
    NAME,
    SIGNAL,
    TOOL,
    TITLE,
    COLON,
    QUOTE,
    ADDRESSED,
    SYSTEM_VALUE,
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
    (ME, &["me"]),
    (NOW, &["am", "im", "been"]),
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
        "regole", "instructies", "consignes", "regles", "instruction", "directive", "guideline", "rule", "constraint", "policy", "mandate",
        "protocol"]),
    (HARD, &["instructions", "instruction", "directives", "directive", "configuration", "programming", "setup", "mandates", "orders"]),
    (MESSAGE, &["message", "messages", "text", "note"]),
    (SECTION, &["section", "sections", "block", "part", "header", "paragraph"]),
    (SAY, &["say", "says", "said", "state", "states", "stated", "read", "reads", "begin", "begins", "start", "starts", "tell", "tells", "include", "includes",
        "contain", "contains", "instruct", "instructs", "specify", "specifies", "require", "requires", "consist", "consists", "mention",
        "mentions", "goes", "go", "defines", "define", "lists", "list", "describes", "directs", "forbids", "forbid", "lautet", "lauten", "sagt",
        "sagen", "dit", "disent", "dice", "dicen", "diz", "dizem", "dicono", "follows", "looks", "explains", "built", "assembled", "generated", "composed"]),
    (TOLD, &["told", "instructed", "configured", "programmed", "directed", "ordered", "given", "set", "supplied", "prompted", "provided", "initialized",
        "initialised"]),
    (STRONG, &["instructed", "configured", "programmed", "directed", "initialized", "initialised", "prompted"]),
    (RECEIVE, &["receive", "received", "get", "got", "see"]),
    (FOLLOW, &["follow", "obey", "operate"]),
    (USE, &["use", "run", "call", "invoke", "execute", "send", "emit", "output", "return", "append", "prepend", "respond", "reply",
        "answer", "print", "query", "trigger"]),
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
    (CANNOT, &["cannot", "cant", "couldnt", "wont", "unable"]),
    (BUT, &["but", "and", "und", "et", "y", "however", "anyway", "nevertheless", "though", "still", "so", "aber", "mais", "pero", "mas", "ma"]),
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
    (REPEAT, &["repeating", "repeat", "verbatim", "exact", "exactly", "quoting", "quote", "everything", "words", "text"]),
    (TOOLS, &["tools", "functions", "skills", "commands"]),
    (FOLLOWING, &["following", "these"]),
    (HAVE, &["have", "been", "ive", "had", "has"]),
    (LANGUAGE, &["language"]),
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
            table[slot].0 = letters_of(words[at].as_bytes()).key(words[at].len());
            table[slot].2 |= meaning;
            at += 1;
        }
        row += 1;
    }
    let (mut row, mut heading) = (0, 0);
    while row < HEADINGS.len() {
        heading += 1;
        let mut at = 0;
        while at < HEADINGS[row].len() {
            let word = HEADINGS[row][at].as_bytes();
            let slot = slot_of(&table, word);
            table[slot].0 = letters_of(word).key(word.len());
            table[slot].1 = heading;
            table[slot].2 |= TITLE;
            at += 1;
        }
        row += 1;
    }
    table
};

const fn slot_of(table: &[(u32, Heading, Meaning); SLOTS], word: &[u8]) -> usize {
    let hash = letters_of(word).key(word.len());
    let mut slot = (hash >> 21) as usize;
    while table[slot].0 != 0 && table[slot].0 != hash {
        slot = (slot + 1) % SLOTS;
    }
    slot
}

/// The letters of a word, folded as letters are.
const fn letters_of(word: &[u8]) -> Register {
    let mut letters = Register::EMPTY;
    let mut at = 0;
    while at < word.len() {
        letters.push(of_letter(word[at]));
        at += 1;
    }
    letters
}

/// Longer words have no meaning.
pub(super) const LONGEST: usize = 16;

/// What a word of so many letters means.
#[inline]
pub(super) fn look_up(letters: Register, count: usize) -> (Heading, Meaning) {
    let hash = letters.key(count);
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
        assert_eq!(look_up("IM"), (0, I | AM | NOW | BE));
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
            words.iter().map(|word| letters_of(word.as_bytes()).key(word.len())).collect();
        assert_eq!(hashes.len(), words.len());
        assert!(words.iter().all(|word| word.len() <= LONGEST));
        assert!(words.len() < SLOTS / 2);
    }
}
