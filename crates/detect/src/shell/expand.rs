//! From the parts of a word to the words it becomes.

use super::Word;
use super::pattern;

/// Most words that braces make of one; beyond it the word is opaque.
const MAX_ALTERNATIVES: usize = 128;
/// Most brace signs in a word whose braces are expanded.
const MAX_BRACES: usize = 64;

/// A part of a word.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    /// An unquoted sign of a glob.
    Glob(char),
    /// An unquoted `{`, `,` or `}`.
    Brace(u8),
    /// What an expansion gives.
    Value {
        text: Option<String>,
        pattern: String,
        quoted: bool,
        sources: Vec<usize>,
    },
}

impl Piece {
    pub(super) fn quoted(text: &str) -> Self {
        Self::Text { text: text.to_owned(), quoted: true }
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::Text { text: text.to_owned(), quoted: false }
    }

    pub(super) fn unknown() -> Self {
        Self::Value { text: None, pattern: "*".into(), quoted: false, sources: Vec::new() }
    }

    pub(super) fn substituted(text: Option<String>, sources: Vec<usize>) -> Self {
        let text = text.map(|text| text.replace('\0', "").trim_end_matches('\n').to_owned());
        let pattern = text.as_deref().map_or_else(|| "*".to_owned(), pattern::escape);
        Self::Value { text, pattern, quoted: false, sources }
    }

    pub(super) fn with_quotes(mut self, quotes: bool) -> Self {
        if let Self::Value { quoted, .. } = &mut self {
            *quoted = quotes;
        }
        self
    }

    fn size(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Value { pattern, .. } => pattern.len(),
            Self::Glob(_) | Self::Brace(_) => 1,
        }
    }
}

/// A word on its way.
#[derive(Debug, Default)]
struct Field {
    text: String,
    pattern: String,
    opaque: bool,
    glob: bool,
    sources: Vec<usize>,
    /// Whether there is a word at all: `""` is one, an empty `$x` is none.
    present: bool,
}

impl Field {
    fn literal(&mut self, text: &str) {
        self.text.push_str(text);
        self.pattern.push_str(&pattern::escape(text));
        self.present = true;
    }

    fn glob(&mut self, sign: char) {
        self.text.push(sign);
        self.pattern.push(sign);
        self.present = true;
        self.glob = true;
    }

    fn word(self, raw: &str) -> Word {
        let bracket = matches!(self.text.as_str(), "[" | "]");
        Word {
            text: (!self.opaque).then_some(self.text),
            raw: raw.to_owned(),
            pattern: self.pattern,
            glob: self.glob && !bracket,
            sources: self.sources,
        }
    }
}

/// Brace expansion, then splitting: the words that a word becomes.
pub(super) fn fields(pieces: Vec<Piece>, raw: &str) -> Vec<Word> {
    let braces = pieces.iter().filter(|piece| matches!(piece, Piece::Brace(_))).count();
    if braces < 2 {
        return split(pieces, raw);
    }
    let expanded = if braces > MAX_BRACES { None } else { alternatives(&pieces) };
    match expanded {
        Some(expanded) => expanded.into_iter().flat_map(|pieces| split(pieces, raw)).collect(),
        None => vec![Word { sources: sources(&pieces), ..Word::unknown(raw) }],
    }
}

/// The one word that the pieces make where nothing is split.
pub(super) fn joined(pieces: Vec<Piece>, raw: &str) -> Word {
    let pieces = pieces.into_iter().map(|piece| piece.with_quotes(true)).collect();
    split(pieces, raw).into_iter().next().unwrap_or_else(|| {
        let mut word = Word::literal("");
        raw.clone_into(&mut word.raw);
        word
    })
}

pub(super) fn sources(pieces: &[Piece]) -> Vec<usize> {
    let of = |piece: &Piece| match piece {
        Piece::Value { sources, .. } => sources.clone(),
        _ => Vec::new(),
    };
    pieces.iter().flat_map(of).collect()
}

fn split(pieces: Vec<Piece>, raw: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut field = Field::default();
    for piece in pieces {
        match piece {
            Piece::Text { text, .. } => field.literal(&text),
            Piece::Glob(sign) => field.glob(sign),
            Piece::Brace(sign) => field.literal(&char::from(sign).to_string()),
            Piece::Value { text: None, pattern, sources, quoted } => {
                field.opaque = true;
                field.present = true;
                // Where it is split, its blanks are gone.
                let split = !quoted && pattern.contains([' ', '\t', '\n']);
                field.pattern.push_str(if split { "*" } else { &pattern });
                field.sources.extend(sources);
            }
            Piece::Value { text: Some(text), quoted: true, sources, .. } => {
                field.literal(&text);
                field.sources.extend(sources);
            }
            Piece::Value { text: Some(text), quoted: false, sources, .. } => {
                for (place, sign) in text.char_indices() {
                    if matches!(sign, ' ' | '\t' | '\n') {
                        if field.present {
                            field.sources.extend(&sources);
                            words.push(std::mem::take(&mut field).word(raw));
                        }
                    } else if pattern::is_special(sign) && sign != '\\' {
                        field.glob(sign);
                    } else {
                        field.literal(&text[place..place + sign.len_utf8()]);
                    }
                }
                field.sources.extend(sources);
            }
        }
    }
    if field.present {
        words.push(field.word(raw));
    }
    words
}

/// What braces make of a word; nothing when that is too much.
fn alternatives(pieces: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    for (open, piece) in pieces.iter().enumerate() {
        if !matches!(piece, Piece::Brace(b'{')) {
            continue;
        }
        let Some((commas, close)) = matching(pieces, open) else { continue };
        let parts: Vec<Vec<Piece>> = if commas.is_empty() {
            match sequence(&pieces[open + 1..close]) {
                Sequence::None => continue,
                Sequence::TooLong => return None,
                Sequence::Items(items) => {
                    items.iter().map(|item| vec![Piece::quoted(item)]).collect()
                }
            }
        } else {
            let mut parts = Vec::new();
            let mut from = open + 1;
            for end in commas.into_iter().chain([close]) {
                parts.extend(alternatives(&pieces[from..end])?);
                from = end + 1;
            }
            parts
        };
        let tails = alternatives(&pieces[close + 1..])?;
        let size: usize = pieces.iter().map(Piece::size).sum();
        let count = parts.len() * tails.len();
        if count > MAX_ALTERNATIVES || count * size > 1 << 20 {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        for part in &parts {
            for tail in &tails {
                all.push([&pieces[..open], part, tail].concat());
            }
        }
        return Some(all);
    }
    Some(vec![pieces.to_vec()])
}

/// The commas and the end of the brace that opens here.
fn matching(pieces: &[Piece], open: usize) -> Option<(Vec<usize>, usize)> {
    let mut commas = Vec::new();
    let mut depth = 0_usize;
    for (place, piece) in pieces.iter().enumerate().skip(open + 1) {
        match piece {
            Piece::Brace(b'{') => depth += 1,
            Piece::Brace(b'}') if depth == 0 => return Some((commas, place)),
            Piece::Brace(b'}') => depth -= 1,
            Piece::Brace(b',') if depth == 0 => commas.push(place),
            _ => {}
        }
    }
    None
}

enum Sequence {
    None,
    TooLong,
    Items(Vec<String>),
}

/// `{a..e}`, `{1..5}`.
fn sequence(pieces: &[Piece]) -> Sequence {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text { text: part, quoted: false } if part.len() < 64 => text.push_str(part),
            _ => return Sequence::None,
        }
    }
    let mut parts = text.split("..");
    let (Some(from), Some(to), third) = (parts.next(), parts.next(), parts.next()) else {
        return Sequence::None;
    };
    let bounds = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(from), Ok(to)) => Some((from, to, false)),
        _ => match (from.as_bytes(), to.as_bytes()) {
            ([from], [to]) if from.is_ascii_alphabetic() && to.is_ascii_alphabetic() => {
                Some((i64::from(*from), i64::from(*to), true))
            }
            _ => None,
        },
    };
    let Some((first, last, letters)) = bounds else {
        let digits = from.bytes().chain(to.bytes()).all(|byte| byte.is_ascii_digit());
        return if digits && !from.is_empty() { Sequence::TooLong } else { Sequence::None };
    };
    let padded = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0') || text == "-0"
    };
    // Leading zeros are kept, and between `Z` and `a` lie signs that mean something.
    let unusual = padded(from) || padded(to) || letters && is_upper(from) != is_upper(to);
    if unusual || third.is_some() || first.abs_diff(last) >= MAX_ALTERNATIVES as u64 {
        return Sequence::TooLong;
    }
    let show = |value: i64| match u8::try_from(value) {
        Ok(byte) if letters => char::from(byte).to_string(),
        _ => value.to_string(),
    };
    let items: Vec<String> = if first <= last {
        (first..=last).map(show).collect()
    } else {
        (last..=first).rev().map(show).collect()
    };
    Sequence::Items(items)
}

fn is_upper(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase())
}
