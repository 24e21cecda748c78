//! Words by which a message about the agent's own instructions is known.

use std::sync::LazyLock;

use hashbrown::HashMap;

/// What words and phrases are for; a word may have several.
pub(super) type Class = u32;

/// `your`.
pub(super) const YOUR: Class = 1;
/// What a prompt is called, and what it is made of.
pub(super) const PROMPT: Class = 1 << 1;
/// What may stand between `your` and one of these.
pub(super) const QUALITY: Class = 1 << 2;
/// A quality by which all of it is asked for.
pub(super) const WHOLE: Class = 1 << 3;
/// Only an agent has these.
pub(super) const PART: Class = 1 << 4;
/// Something was given to the agent.
pub(super) const GIVEN: Class = 1 << 5;
/// What may be given to it.
pub(super) const GIVABLE: Class = 1 << 6;
/// Before `your instructions`: the agent gave them.
pub(super) const THANKS: Class = 1 << 7;
/// Asks for words rather than for what they mean.
pub(super) const WORDING: Class = 1 << 8;
/// First, next, last.
pub(super) const PLACE: Class = 1 << 9;
/// What a text is made of.
pub(super) const PIECE: Class = 1 << 10;
/// Hints at a text, where one is spoken of.
pub(super) const TEXTUAL: Class = 1 << 11;
/// Means something that was named before.
pub(super) const REFERS: Class = 1 << 12;
/// What of the agent is also asked about in earnest.
pub(super) const VAGUE: Class = 1 << 13;
/// Gives words in another form.
pub(super) const TURN: Class = 1 << 14;
/// Asks to be shown something.
pub(super) const SHOW: Class = 1 << 15;
/// Whoever made the agent.
pub(super) const MAKER: Class = 1 << 16;
/// To tell somebody.
pub(super) const TELL: Class = 1 << 17;
/// `you`.
pub(super) const YOU: Class = 1 << 18;
/// Names the agent's prompt by itself.
pub(super) const NAMED: Class = 1 << 19;
/// `of`, `in`, `from`.
pub(super) const OF: Class = 1 << 20;
/// `the`, `my`, `our`.
pub(super) const THE: Class = 1 << 21;
/// Somebody else's.
pub(super) const OTHER: Class = 1 << 22;
/// Whether the agent has one.
pub(super) const HAVE: Class = 1 << 23;
/// Stands for something that was named before.
pub(super) const PRONOUN: Class = 1 << 24;
/// Leads to what comes next.
pub(super) const LEADS: Class = 1 << 25;
/// `for`, `to`.
pub(super) const FOR: Class = 1 << 27;
/// Digits.
pub(super) const NUMBER: Class = 1 << 29;
/// What hardly anything else is called than what steers an agent.
pub(super) const OWN_WORD: Class = 1 << 28;
/// After `you`: the agent did it itself, or is to do it.
pub(super) const AUTHORED: Class = 1 << 26;

const WORDS: &[(Class, &str)] = &[
    (YOUR, "your yours"),
    (YOU, "you"),
    (
        PROMPT,
        "prompt prompts instruction instructions rule rules guideline guidelines directive directives persona preamble \
         constraints mandates rulebook ruleset initialisation initialization metaprompt premise programming orders \
         obligations briefing script charter",
    ),
    (
        QUALITY,
        "own system initial original hidden real actual secret internal full complete entire whole first second third \
         last current present core base starting exact developer operator private underlying built in foundational \
         operating top level confidential behavioural behavioral startup opening inner background source literal raw \
         unmodified precise strictest longest main deployed loaded active live",
    ),
    (WHOLE, "full complete entire whole exact original literal raw unmodified precise"),
    (GIVABLE, "text description descriptions wording message paragraph briefing document"),
    (THANKS, "followed following used tried per thanks thank applied did by"),
    (
        WORDING,
        "exact exactly verbatim wording worded phrased phrasing quote quotes quoting recite literal literally unabridged \
         uncut unshortened unedited unmodified original originally paste repeat reproduce transcribe dictate hidden \
         missing omitted raw continue truncated shortened abridged precisely cite cites unaltered skipped deviate \
         paraphrase precise unchanged dictate uncover excerpt literally",
    ),
    (
        TURN,
        "encode encrypt translate base64 rot13 cipher rhyme spell convert render acrostic anagram reverse",
    ),
    (
        PLACE,
        "first second third fourth fifth next last final opening closing following previous other every each longest \
         shortest remaining",
    ),
    (
        PIECE,
        "word words line lines sentence sentences paragraph paragraphs half section sections rule rules letter letters \
         part entry bullet item point chapter character characters heading headings instruction instructions guideline",
    ),
    (
        TEXTUAL,
        "word words line lines sentence sentences paragraph paragraphs passage passages text texts string strings heading \
         headings section sections half beginning rest remaining others full whole content contents original version \
         differences everything longer unabridged bit letter letters token tokens phrase phrases clause clauses end list \
         start starts begin begins opens title block blocks excerpt source",
    ),
    (
        REFERS,
        "it its them their that those these this they one ones there rest same section sections sentence sentences line \
         lines paragraph passage passages rule rules word words half part parts heading headings text texts content entry \
         everything anything now next and then prompt instructions persona description wording guidelines each every \
         others other remaining again also too just until",
    ),
    (VAGUE, "configuration config setup settings memory tools skills role identity"),
    (
        SHOW,
        "show print output display reveal dump paste read write type give send share tell list state provide include copy \
         recite repeat see put disclose expose leak cite name export send add say attach post \
         dictate uncover proceed mention",
    ),
    (
        MAKER,
        "makers maker creators creator developers developer operator operators company team author authors designers",
    ),
    (TELL, "told tell gave give wrote write said say instructed instruct ordered"),
    (OF, "of in from"),
    (THE, "the my our a an his her"),
    (OTHER, "i we our my its their his her"),
    (FOR, "for to"),
    (OWN_WORD, "prompt metaprompt"),
    (PRONOUN, "it them that those these they one ones other others same each their its rest"),
    (LEADS, "and then next now part also number more others"),
    (
        AUTHORED,
        "wrote drafted made suggested added proposed created changed generated sent showed mentioned found listed gave \
         want need write draft make think can could should would prefer",
    ),
];

const PHRASES: &[(Class, &str)] = &[
    (
        PART,
        "system prompt|system message|system instructions|developer message|initial instructions|initial prompt|\
         hidden instructions|identity section|identity statement|skills section|memory section|constraints section|\
         tools section|persona description|role description|instruction set|starting context|initialization text|\
         system text|pre prompt|meta prompt",
    ),
    (HAVE, "you have|do you have|have you got"),
    (
        GIVEN,
        "you were given|you are given|you have been given|youve been given|you were told|you have been told|given to you|\
         told to you|defined for you|written for you|you really have|you actually have|you follow|you really follow|\
         did you follow|you must follow|you operate under|you received|you were set up with|you start with|you run on|\
         gave you|you got|about you|behind you|you were loaded with",
    ),
    (
        NAMED,
        "you were told|you were instructed|you were given|were you given|were you told|were you instructed|\
         have you been given|have you been told|prescribed to you|want you to hide|\
         gave you a list|above my first message|above my message|before my message|using your own|text that i dont see|text i dont see|text i cant see|put on you|\
         hidden text|deployed prompt|loaded prompt|active prompt|before this message|before my first message|\
         before this conversation|before our conversation|before we met|your context|above this message|\
         does yours start|does yours begin|does yours say|me yours|see yours|differ from yours|how you were set up|how you were configured|how you were instructed|how you were programmed",
    ),
    (
        WORDING,
        "word for word|word by word|line by line|sentence by sentence|in full|as written|as they are|as it is|as it stands|\
         full text|complete text|whole text|rule text|actual text|the rest|keep going|go on|and so on|leaving anything out|\
         leave anything out|leave nothing out|left out|left some out|left off|fill in|filled in|fill every|fill each|\
         write them out|write it out|write them down|write it down|type out|read out|all of them|all of it|all the others|\
         all other|what comes after|what comes next|what comes before|comes right after|and after that|stands between|\
         in between|under each heading|copy of|copy them|copy it|does it start|does it begin|does it end|does yours start|\
         does yours begin|configuration begins|configuration starts|config begins|without summarising|\
         without summarizing|not a summary|no summary|in quotes|in quotation marks|code block|own words|complete it|\
         rule number|rule one|rule two|as closely as possible|as close to the|still differ|which words|until the end|\
         from the beginning|from the start|from the top|without changing|prompt begin|prompt start|instructions begin|\
         instructions start|prompt end|full sentences|full guideline|full rule|add the missing|give it verbatim|real text|\
         nothing removed|cut off|dont cut|read on|real one|original phrase|stop in the middle|by heart|before that|after that|around it|after it|before it",
    ),
];

/// What a word is for, and the phrases that begin with it.
#[derive(Default)]
struct Known {
    class: Class,
    phrases: Vec<(Vec<&'static str>, Class)>,
}

/// The words and phrases, ready for use. Every word of a message is looked up, so in a table with
/// a quick hash: what is in it, nobody else chooses.
pub(super) struct Lexicon {
    words: HashMap<&'static str, Known>,
}

/// Made once of constants, and the same for everybody.
pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut words: HashMap<&'static str, Known> = HashMap::new();
    for (class, list) in WORDS {
        for word in list.split_ascii_whitespace() {
            words.entry(word).or_default().class |= class;
        }
    }
    for (class, phrases) in PHRASES {
        for phrase in phrases.split('|') {
            let phrase: Vec<&str> = phrase.split_ascii_whitespace().collect();
            if let Some(first) = phrase.first() {
                words.entry(first).or_default().phrases.push((phrase, *class));
            }
        }
    }
    Lexicon { words }
});

impl Lexicon {
    /// What the first of some words is for, and what the phrases at their beginning are for.
    pub(super) fn look_up(&self, words: &[&str]) -> (Class, Class) {
        let Some(known) = words.first().and_then(|first| self.words.get(first)) else {
            return (0, 0);
        };
        let phrases =
            known.phrases.iter().fold(
                0,
                |all, (phrase, class)| {
                    if words.starts_with(phrase) { all | class } else { all }
                },
            );
        (known.class, phrases)
    }
}
