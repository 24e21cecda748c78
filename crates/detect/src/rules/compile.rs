//! From word classes and patterns to tables.
//!
//! A pattern is a row of elements: `{class}`, `{one|other}`, a bare word, or `'several words'`.
//! Between two elements up to two other words may stand; `~5` before an element allows five, `~5"`
//! also a quotation that begins there, `+` none. A word is matched whole; `stem*` may go on, `*stem` may start earlier. Scripts without
//! spaces are matched anywhere. `^` before the first element wants it at the start of a sentence or
//! of a quoted value, `$` behind the last wants it at the end of one; words of courtesy do not count.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::finder::{Finder, Word, ends_sentence};
use super::frequency::Frequencies;

/// The literal must start a word.
pub(crate) const LEFT: u16 = 1;
/// The literal must end a word.
pub(crate) const RIGHT: u16 = 1 << 1;
/// A sentence may end here.
pub(crate) const STOP: u16 = 1 << 2;
/// Some pattern hangs on this literal.
pub(crate) const ANCHOR: u16 = 1 << 3;
/// Negates what follows; looked up backwards from a match, not searched for.
pub(crate) const NEGATES: u16 = 1 << 4;
/// Negates what precedes.
pub(crate) const NEGATES_BACK: u16 = 1 << 5;
/// Speaks about attacks or examples.
pub(crate) const MENTIONS: u16 = 1 << 6;
/// A subject or auxiliary: the verb behind it is no imperative.
pub(crate) const SUBJECT: u16 = 1 << 7;
/// Addresses the reader.
pub(crate) const YOU: u16 = 1 << 8;
/// Takes a negation before it back: "do not hesitate to".
pub(crate) const CANCELS: u16 = 1 << 9;
/// Asks about what follows it in the sentence.
pub(crate) const ASKS: u16 = 1 << 10;
/// Says that what follows it is said by somebody, or an example.
pub(crate) const REPORTS: u16 = 1 << 11;
/// Begins another clause: what was asked ends.
pub(crate) const JOINS: u16 = 1 << 12;
/// Says where the instructions stand that are meant: on a packet, in a mail.
pub(crate) const ELSEWHERE: u16 = 1 << 13;
/// Says that those of the agent are meant after all.
pub(crate) const AGENT: u16 = 1 << 14;
/// Says that any, or somebody's own, is meant.
pub(crate) const ANY: u16 = 1 << 15;
/// The same behind a preposition. Words that are looked up are not searched for: the first flags are free for them.
pub(crate) const OWN: u16 = 1;
/// A preposition behind which the matter of rules stands.
pub(crate) const MATTER: u16 = 1 << 1;
/// A piece of text, or something else that no agent has.
pub(crate) const PIECE: u16 = 1 << 2;

/// Set in a gap that a quotation may begin in.
pub(crate) const QUOTES: u8 = 1 << 7;

/// The first element of its pattern.
pub(crate) const FIRST: u8 = 1;
/// The last element of its pattern.
pub(crate) const LAST: u8 = 1 << 1;
/// On the last element: the match must open a sentence.
pub(crate) const OPENS: u8 = 1 << 2;
/// On the last element: the match must close a sentence.
pub(crate) const CLOSES: u8 = 1 << 3;

/// Words that may stand between two elements unless the pattern says otherwise.
const DEFAULT_GAP: u8 = 2;

/// What is added to the frequency of a class that is said to be common.
const COMMON: u32 = 2_000;

/// Classes that the context checks read, with the flag they set.
const CONTEXT: [(&str, u16); 3] =
    [("ctx.stop", STOP), ("ctx.negates-back", NEGATES_BACK), ("ctx.mentions", MENTIONS)];
/// Classes that are looked up backwards from a match: too frequent to be searched for.
const BACKWARDS: [(&str, u16); 13] = [
    ("ctx.negates", NEGATES),
    ("ctx.subject", SUBJECT),
    ("ctx.you", YOU),
    ("ctx.cancels", CANCELS),
    ("ctx.asks", ASKS),
    ("ctx.reports", REPORTS),
    ("ctx.joins", JOINS),
    ("ctx.elsewhere", ELSEWHERE),
    ("ctx.agent", AGENT),
    ("ctx.any", ANY),
    ("ctx.own", OWN),
    ("ctx.matter", MATTER),
    ("ctx.piece", PIECE),
];

/// One literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Literal {
    /// Boundaries and context.
    pub(crate) flags: u16,
    /// Where its classes start in [`Tables::classes`].
    pub(crate) classes: u32,
    /// How many there are.
    pub(crate) count: u16,
}

/// One place in which a class is used by a pattern.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    /// The element, counted over all patterns; the one before it precedes it in its pattern.
    pub(crate) element: u16,
    /// The rule that the pattern belongs to.
    pub(crate) rule: u16,
    /// Words that may stand before it.
    pub(crate) gap: u8,
    /// [`FIRST`], [`LAST`], [`OPENS`] and [`CLOSES`].
    pub(crate) ends: u8,
}

/// Everything that the matcher reads.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    /// Finds the literals.
    pub(crate) finder: Finder,
    /// The literals.
    pub(crate) literals: Cow<'static, [Literal]>,
    /// Classes of the literals.
    pub(crate) classes: Cow<'static, [u16]>,
    /// Of each class, where its uses start; one more at the end.
    pub(crate) index: Cow<'static, [u32]>,
    /// Uses, by class.
    pub(crate) uses: Cow<'static, [Use]>,
    /// Elements of all patterns.
    pub(crate) elements: usize,
    /// Words that are looked up backwards from a match, sorted, with their flags.
    pub(crate) backwards: Cow<'static, [(Cow<'static, str>, u16)]>,
    /// Of each first byte, where those words start; one more at the end.
    pub(crate) initials: Cow<'static, [u16]>,
}

/// The words of a class.
#[derive(Debug, Clone, Default)]
pub(crate) struct Class {
    /// In every language.
    pub(crate) words: Vec<String>,
    /// Too frequent for a pattern to hang on.
    pub(crate) common: bool,
}

/// Words with their edges; their classes and flags.
type Found = BTreeMap<(String, u16), (BTreeSet<u16>, u16)>;

struct Element {
    classes: Vec<u16>,
    gap: u8,
}

struct Compiler {
    names: HashMap<String, u16>,
    classes: Vec<Class>,
    frequencies: Frequencies,
}

/// Compiles patterns, each with the number of its rule.
pub(crate) fn compile(
    classes: &BTreeMap<String, Class>,
    patterns: &[(u16, String)],
) -> Result<Tables, String> {
    let mut compiler =
        Compiler { names: HashMap::new(), classes: Vec::new(), frequencies: Frequencies::new() };
    for (name, class) in classes {
        compiler.add(name.clone(), class.clone())?;
    }
    let mut uses: Vec<(u16, Use)> = Vec::new();
    let mut anchors: BTreeSet<u16> = BTreeSet::new();
    let mut elements = 0u16;
    for (rule, pattern) in patterns {
        let (pattern, opens, closes) = sentence_edges(pattern);
        let row = compiler.parse(pattern)?;
        // Any element would do: without it the pattern cannot be complete.
        let anchor = row.iter().min_by_key(|element| compiler.frequency(element));
        let anchor = anchor.ok_or("empty pattern")?;
        anchors.extend(&anchor.classes);
        for (at, element) in row.iter().enumerate() {
            let mut ends = if at == 0 { FIRST } else { 0 };
            if at + 1 == row.len() {
                ends |= LAST | opens | closes;
            }
            for &class in &element.classes {
                let one = Use { element: elements, rule: *rule, gap: element.gap, ends };
                uses.push((class, one));
            }
            elements = elements.checked_add(1).ok_or("too many elements")?;
        }
    }
    // Later elements first: a hit must not be two elements of one pattern at once.
    uses.sort_by_key(|&(class, one)| (class, std::cmp::Reverse(one.element)));
    let mut index = vec![0u32; compiler.classes.len() + 1];
    for &(class, _) in &uses {
        index[usize::from(class) + 1] += 1;
    }
    for at in 1..index.len() {
        index[at] += index[at - 1];
    }
    compiler.literals(&anchors, index, uses, usize::from(elements))
}

impl Compiler {
    fn add(&mut self, name: String, class: Class) -> Result<u16, String> {
        let id = u16::try_from(self.classes.len()).map_err(|_| "too many classes")?;
        self.names.insert(name, id);
        self.classes.push(class);
        Ok(id)
    }

    /// How often an element's words occur, roughly.
    fn frequency(&self, element: &Element) -> u32 {
        element
            .classes
            .iter()
            .map(|&class| &self.classes[usize::from(class)])
            .map(|class| {
                let words: u32 = class.words.iter().map(|word| self.frequencies.of(word)).sum();
                if class.common { words + COMMON } else { words }
            })
            .sum()
    }

    fn parse(&mut self, pattern: &str) -> Result<Vec<Element>, String> {
        let mut row = Vec::new();
        let mut gap = DEFAULT_GAP;
        let mut rest = pattern.trim();
        while !rest.is_empty() {
            let (token, after) = cut(rest).ok_or_else(|| format!("unclosed: {pattern}"))?;
            rest = after.trim_start();
            if let Some(words) = token.strip_prefix('~') {
                let count = words.trim_end_matches('"');
                gap = count.parse().map_err(|_| format!("bad gap: {pattern}"))?;
                if gap >= QUOTES {
                    return Err(format!("bad gap: {pattern}"));
                }
                if count.len() < words.len() {
                    gap |= QUOTES;
                }
                continue;
            }
            if token == "+" {
                gap = 0;
                continue;
            }
            let classes = if let Some(names) = token.strip_prefix('{') {
                names
                    .split('|')
                    .map(|name| {
                        let known = self.names.get(name).copied();
                        known.ok_or_else(|| format!("no class {name}: {pattern}"))
                    })
                    .collect::<Result<Vec<u16>, String>>()?
            } else {
                let words = token.trim_start_matches('\'');
                let name = format!("={words}");
                match self.names.get(&name) {
                    Some(&id) => vec![id],
                    None => {
                        let class = Class { words: vec![words.to_owned()], common: false };
                        vec![self.add(name, class)?]
                    }
                }
            };
            row.push(Element { classes, gap });
            gap = DEFAULT_GAP;
        }
        if row.is_empty() { Err(format!("empty pattern: {pattern}")) } else { Ok(row) }
    }

    fn literals(
        &self,
        anchors: &BTreeSet<u16>,
        index: Vec<u32>,
        uses: Vec<(u16, Use)>,
        elements: usize,
    ) -> Result<Tables, String> {
        let mut found = Found::new();
        let context: HashMap<u16, u16> = CONTEXT
            .iter()
            .filter_map(|&(name, flag)| self.names.get(name).map(|&id| (id, flag)))
            .collect();
        let mut backwards: BTreeMap<String, u16> = BTreeMap::new();
        for (name, flag) in BACKWARDS {
            let words =
                self.names.get(name).map_or(&[][..], |&id| &self.classes[usize::from(id)].words);
            for word in words.iter().flat_map(|word| spellings(word)) {
                *backwards.entry(word).or_default() |= flag;
            }
        }
        let unsearched: BTreeSet<u16> =
            BACKWARDS.iter().filter_map(|(name, _)| self.names.get(*name).copied()).collect();
        for (id, class) in (0u16..).zip(&self.classes) {
            if unsearched.contains(&id) {
                continue;
            }
            let mut flags = context.get(&id).copied().unwrap_or(0);
            if anchors.contains(&id) {
                flags |= ANCHOR;
            }
            for word in class.words.iter().flat_map(|word| spellings(word)) {
                let (word, edges) = edges(&word);
                if word.is_empty() || word.len() > 200 {
                    return Err(format!("bad word: {word:?}"));
                }
                let entry = found.entry((word, edges)).or_default();
                entry.0.insert(id);
                entry.1 |= flags;
            }
        }
        let finder = self.finder(&found)?;
        let mut literals = Vec::new();
        let mut classes: Vec<u16> = Vec::new();
        for ((_, edges), (of, flags)) in found {
            literals.push(Literal {
                flags: edges | flags,
                classes: u32::try_from(classes.len()).map_err(|_| "too many words")?,
                count: u16::try_from(of.len()).unwrap_or(u16::MAX),
            });
            classes.extend(of);
        }
        let before = |byte: u16| {
            let word =
                |word: &&String| word.bytes().next().is_some_and(|first| u16::from(first) < byte);
            u16::try_from(backwards.keys().filter(word).count())
        };
        let initials: Vec<u16> =
            (0..=256).map(before).collect::<Result<_, _>>().map_err(|_| "too many words")?;
        Ok(Tables {
            finder,
            initials: Cow::Owned(initials),
            literals: Cow::Owned(literals),
            classes: Cow::Owned(classes),
            index: Cow::Owned(index),
            uses: Cow::Owned(uses.into_iter().map(|(_, one)| one).collect()),
            elements,
            backwards: backwards.into_iter().map(|(word, flag)| (Cow::Owned(word), flag)).collect(),
        })
    }

    /// What finds the literals: by what patterns hang on, and by mentions, which sentences further on
    /// depend on.
    fn finder(&self, found: &Found) -> Result<Finder, String> {
        let numbered = || (0u16..).zip(found);
        let stops: Vec<String> = numbered()
            .filter(|(_, (_, (_, flags)))| flags & STOP != 0)
            .map(|(_, ((word, _), _))| word.clone())
            .collect();
        let words: Vec<Word<'_>> = numbered()
            .filter(|(_, (_, (_, flags)))| flags & STOP == 0)
            .map(|(literal, ((text, edges), (_, flags)))| Word {
                literal,
                text,
                left: edges & LEFT != 0,
                right: edges & RIGHT != 0,
                telling: flags & (ANCHOR | MENTIONS) != 0,
            })
            .collect();
        let crosses = |word: &str| {
            stops.iter().any(|stop| {
                word.match_indices(stop.as_str()).any(|(at, _)| {
                    let end = at + stop.len();
                    end < word.len() && ends_sentence(word.as_bytes(), at, end)
                })
            })
        };
        let crossing = words.iter().filter(|word| crosses(word.text)).map(|word| word.text.len());
        Finder::build(&words, &stops, crossing.max().unwrap_or(0), &self.frequencies)
    }
}

/// A pattern without its `^` and `$`, and the flags they stand for.
fn sentence_edges(pattern: &str) -> (&str, u8, u8) {
    let pattern = pattern.trim();
    let (pattern, opens) = match pattern.strip_prefix("^ ") {
        Some(rest) => (rest, OPENS),
        None => (pattern, 0),
    };
    match pattern.strip_suffix(" $") {
        Some(rest) => (rest, opens, CLOSES),
        None => (pattern, opens, 0),
    }
}

/// The first token and what follows it.
fn cut(text: &str) -> Option<(&str, &str)> {
    for (open, close) in [('{', '}'), ('\'', '\'')] {
        if text.starts_with(open) {
            let end = text.get(1..)?.find(close)? + 1;
            return Some((&text[..end], &text[end + 1..]));
        }
    }
    Some(text.split_once(char::is_whitespace).unwrap_or((text, "")))
}

/// A word without its stars, and where it must meet the edge of a word.
fn edges(word: &str) -> (String, u16) {
    let spaceless =
        word.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'));
    let hangul = word.chars().any(|c| matches!(c, '\u{ac00}'..='\u{d7a3}'));
    let bare = word.trim_start_matches('*').trim_end_matches('*');
    let outer = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut flags = 0;
    if !spaceless && !word.starts_with('*') && outer(bare.chars().next()) {
        flags |= LEFT;
    }
    if !spaceless && !hangul && !word.ends_with('*') && outer(bare.chars().next_back()) {
        flags |= RIGHT;
    }
    (bare.to_owned(), flags)
}

/// A word as it is, without accents, and with the other apostrophe.
fn spellings(word: &str) -> BTreeSet<String> {
    let word = word.to_lowercase();
    let plain: String = word
        .chars()
        .map(|c| match c {
            'à'..='å' => 'a',
            'è'..='ë' => 'e',
            'ì'..='ï' => 'i',
            'ò'..='ö' => 'o',
            'ù'..='ü' => 'u',
            'ç' => 'c',
            'ñ' => 'n',
            'ё' => 'е',
            other => other,
        })
        .collect();
    let mut all = BTreeSet::from([word.clone(), plain]);
    for umlauts in [[('ä', "ae"), ('ö', "oe"), ('ü', "ue"), ('ß', "ss")]] {
        let mut other = word.clone();
        for (from, to) in umlauts {
            other = other.replace(from, to);
        }
        all.insert(other);
    }
    let curly: Vec<String> =
        all.iter().filter(|word| word.contains('\'')).map(|word| word.replace('\'', "’")).collect();
    all.extend(curly);
    all
}
