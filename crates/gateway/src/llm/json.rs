//! JSON by its places in the text: what is not changed keeps its bytes.
//!
//! A [`Doc`] knows where each value begins and ends. Changes are [`Edits`] of places, so that unknown
//! members, their order and their spelling stay as they came.

use std::borrow::Cow;
use std::ops::Range;

/// Values inside of values; more is refused.
const MAX_DEPTH: usize = 128;
/// Values of one document; more is refused.
const MAX_VALUES: usize = 4 << 20;

/// Why a text is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadJson {
    /// It is not UTF-8.
    #[error("the body is not UTF-8")]
    Encoding,
    /// It is no JSON, from this byte on.
    #[error("the body is not JSON at byte {0}")]
    Syntax(usize),
    /// It is nested too deep, or holds too many values.
    #[error("the body is nested too deep or has too many parts")]
    TooMuch,
    /// A member stands twice where it must be known which one counts.
    #[error("a member stands twice in an object at byte {0}: it is not clear which one counts")]
    Twice(usize),
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A value: where it stands, and behind how many others its next neighbour is.
#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    start: u32,
    end: u32,
    /// The index of the first value behind this one and all in it.
    next: u32,
    /// Its key, with quotes; empty where it has none.
    key: (u32, u32),
}

/// A value of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(usize);

/// A document.
#[derive(Debug)]
pub(crate) struct Doc<'t> {
    text: &'t str,
    nodes: Vec<Node>,
}

impl<'t> Doc<'t> {
    /// Reads a whole document; nothing but white space may surround it.
    pub(crate) fn parse(bytes: &'t [u8]) -> Result<Self, BadJson> {
        let text = std::str::from_utf8(bytes).map_err(|_| BadJson::Encoding)?;
        if u32::try_from(text.len()).is_err() {
            return Err(BadJson::TooMuch);
        }
        let mut reader = Reader { bytes: text.as_bytes(), at: 0, nodes: Vec::new() };
        reader.space();
        reader.value(0, (0, 0))?;
        reader.space();
        if reader.at != text.len() {
            return Err(BadJson::Syntax(reader.at));
        }
        Ok(Self { text, nodes: reader.nodes })
    }

    pub(crate) const ROOT: At = At(0);

    pub(crate) fn kind(&self, at: At) -> Kind {
        self.nodes[at.0].kind
    }

    pub(crate) fn span(&self, at: At) -> Range<usize> {
        let node = self.nodes[at.0];
        node.start as usize..node.end as usize
    }

    /// The text of a value as it stands.
    pub(crate) fn raw(&self, at: At) -> &'t str {
        &self.text[self.span(at)]
    }

    /// The key of a member, decoded.
    pub(crate) fn key(&self, at: At) -> Cow<'t, str> {
        let (start, end) = self.nodes[at.0].key;
        if start == end {
            Cow::Borrowed("")
        } else {
            decode(&self.text[start as usize..end as usize])
        }
    }

    /// Where the key of a member stands, quotes included.
    pub(crate) fn key_span(&self, at: At) -> Range<usize> {
        let (start, end) = self.nodes[at.0].key;
        start as usize..end as usize
    }

    /// Whether the string that ends here is a key.
    pub(crate) fn is_key(&self, end: usize) -> bool {
        self.text[end..].trim_start().starts_with(':')
    }

    /// Where a member begins: at its key.
    pub(crate) fn member_span(&self, at: At) -> Range<usize> {
        let node = self.nodes[at.0];
        let start = if node.key.0 == node.key.1 { node.start } else { node.key.0 };
        start as usize..node.end as usize
    }

    /// What is in an array or object, in order.
    pub(crate) fn inside(&self, at: At) -> impl Iterator<Item = At> + Clone + '_ {
        let node = self.nodes[at.0];
        let compound = matches!(node.kind, Kind::Array | Kind::Object);
        let end = if compound { node.next as usize } else { 0 };
        std::iter::successors(Some(at.0 + 1), |one| Some(self.nodes.get(*one)?.next as usize))
            .take_while(move |one| *one < end)
            .map(At)
    }

    /// The elements of an array.
    pub(crate) fn items(&self, at: At) -> impl Iterator<Item = At> + Clone + '_ {
        let is = self.kind(at) == Kind::Array;
        self.inside(at).take_while(move |_| is)
    }

    /// A member of an object. One that stands twice is an error.
    pub(crate) fn get(&self, at: At, name: &str) -> Result<Option<At>, BadJson> {
        if self.kind(at) != Kind::Object {
            return Ok(None);
        }
        let mut found = None;
        for member in self.inside(at) {
            let (start, end) = self.nodes[member.0].key;
            let raw = &self.text[start as usize + 1..end as usize - 1];
            let same = if raw.contains('\\') { self.key(member) == name } else { raw == name };
            if same && found.replace(member).is_some() {
                return Err(BadJson::Twice(self.span(at).start));
            }
        }
        Ok(found)
    }

    /// A member by a path of names.
    pub(crate) fn path(&self, at: At, names: &[&str]) -> Result<Option<At>, BadJson> {
        let mut at = at;
        for name in names {
            match self.get(at, name)? {
                Some(inner) => at = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// A string, decoded.
    pub(crate) fn text(&self, at: At) -> Option<Cow<'t, str>> {
        (self.kind(at) == Kind::String).then(|| decode(self.raw(at)))
    }

    /// A member that is a string, decoded.
    pub(crate) fn string(&self, at: At, name: &str) -> Result<Option<Cow<'t, str>>, BadJson> {
        Ok(self.get(at, name)?.and_then(|member| self.text(member)))
    }

    /// A member that is a whole number.
    pub(crate) fn number(&self, at: At, name: &str) -> Result<Option<u64>, BadJson> {
        let Some(member) = self.get(at, name)? else { return Ok(None) };
        Ok(self.raw(member).parse().ok())
    }
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
}

impl Reader<'_> {
    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn bad<T>(&self) -> Result<T, BadJson> {
        Err(BadJson::Syntax(self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB")]
    fn value(&mut self, depth: usize, key: (u32, u32)) -> Result<(), BadJson> {
        if depth > MAX_DEPTH || self.nodes.len() >= MAX_VALUES {
            return Err(BadJson::TooMuch);
        }
        let (place, start) = (self.nodes.len(), self.at as u32);
        self.nodes.push(Node { kind: Kind::Null, start, end: start, next: 0, key });
        let kind = match self.peek() {
            Some(b'{') => self.compound(depth, b'}')?,
            Some(b'[') => self.compound(depth, b']')?,
            Some(b'"') => {
                self.string()?;
                Kind::String
            }
            Some(b't') => self.word(b"true", Kind::Bool)?,
            Some(b'f') => self.word(b"false", Kind::Bool)?,
            Some(b'n') => self.word(b"null", Kind::Null)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => return self.bad(),
        };
        let next = self.nodes.len() as u32;
        let node = &mut self.nodes[place];
        (node.kind, node.end, node.next) = (kind, self.at as u32, next);
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is shorter than 4 GiB")]
    fn compound(&mut self, depth: usize, close: u8) -> Result<Kind, BadJson> {
        let object = close == b'}';
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
        } else {
            loop {
                let mut key = (0, 0);
                if object {
                    let start = self.at;
                    if self.peek() != Some(b'"') {
                        return self.bad();
                    }
                    self.string()?;
                    key = (start as u32, self.at as u32);
                    self.space();
                    if self.peek() != Some(b':') {
                        return self.bad();
                    }
                    self.at += 1;
                    self.space();
                }
                self.value(depth + 1, key)?;
                self.space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(other) if other == close => break self.at += 1,
                    _ => return self.bad(),
                }
                self.space();
            }
        }
        Ok(if object { Kind::Object } else { Kind::Array })
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<Kind, BadJson> {
        if !self.bytes[self.at..].starts_with(word) {
            return self.bad();
        }
        self.at += word.len();
        Ok(kind)
    }

    fn digits(&mut self) -> Result<(), BadJson> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.bad() } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Kind, BadJson> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Kind::Number)
    }

    /// Goes over what needs no look of its own, many bytes at a time.
    fn plain(&mut self) {
        let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
        while let Some((chunk, _)) = self.bytes[self.at..].split_first_chunk::<32>()
            && chunk.iter().fold(true, |all, byte| all & plain(byte))
        {
            self.at += chunk.len();
        }
    }

    fn string(&mut self) -> Result<(), BadJson> {
        self.at += 1;
        loop {
            self.plain();
            match self.peek() {
                Some(b'"') => break self.at += 1,
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.at += 1
                        }
                        Some(b'u') => {
                            let hex = self.bytes.get(self.at + 1..self.at + 5);
                            if !hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                                return self.bad();
                            }
                            self.at += 5;
                        }
                        _ => return self.bad(),
                    }
                }
                Some(byte) if byte >= 0x20 => self.at += 1,
                _ => return self.bad(),
            }
        }
        Ok(())
    }
}

/// A string without its quotes and escapes. Halves of a pair that stand alone become U+FFFD.
fn decode(quoted: &str) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(place) = rest.find('\\') {
        out.push_str(&rest[..place]);
        let escape = rest.as_bytes().get(place + 1).copied().unwrap_or_default();
        rest = rest.get(place + 2..).unwrap_or_default();
        out.push(match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let (unit, after) = unit(rest);
                rest = after;
                let low = rest.strip_prefix("\\u").map(self::unit);
                match low {
                    Some((low @ 0xdc00..0xe000, after)) if (0xd800..0xdc00).contains(&unit) => {
                        rest = after;
                        let sign = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        char::from_u32(sign).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                    _ => char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            other => char::from(other),
        });
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn unit(text: &str) -> (u32, &str) {
    let (hex, rest) = text.split_at_checked(4).unwrap_or((text, ""));
    (u32::from_str_radix(hex, 16).unwrap_or(0xfffd), rest)
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    // Writing a string cannot fail.
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Changes of places of a text.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts something else in a place; places must not overlap.
    pub(crate) fn replace(&mut self, place: Range<usize>, with: impl Into<String>) {
        self.0.push((place, with.into()));
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Appends an element to an array.
    pub(crate) fn push(&mut self, doc: &Doc<'_>, array: At, element: &str) {
        let comma = if doc.inside(array).next().is_some() { "," } else { "" };
        self.insert(doc.span(array).end - 1, format!("{comma}{element}"));
    }

    /// Adds a member to an object, behind all others.
    pub(crate) fn add(&mut self, doc: &Doc<'_>, object: At, name: &str, value: &str) {
        let comma = if doc.inside(object).next().is_some() { "," } else { "" };
        self.insert(doc.span(object).end - 1, format!("{comma}{}:{value}", quoted(name)));
    }

    /// Takes a member out of its object.
    pub(crate) fn remove(&mut self, doc: &Doc<'_>, object: At, member: At) {
        let mut before = None;
        let mut members = doc.inside(object);
        for one in members.by_ref() {
            if one == member {
                break;
            }
            before = Some(one);
        }
        let place = match (before, members.next()) {
            (Some(before), _) => doc.span(before).end..doc.span(member).end,
            (None, Some(after)) => doc.member_span(member).start..doc.member_span(after).start,
            (None, None) => doc.member_span(member),
        };
        self.replace(place, "");
    }

    /// Where the change that was made last begins in the text with all changes.
    pub(crate) fn last_at(&self) -> Option<usize> {
        let (last, others) = self.0.split_last()?;
        let before = others.iter().filter(|(place, _)| place.start <= last.0.start);
        let (grown, shrunk) = before.fold((0, 0), |(grown, shrunk), (place, with)| {
            (grown + with.len(), shrunk + place.len())
        });
        Some((last.0.start + grown).saturating_sub(shrunk))
    }

    /// The text with all changes.
    pub(crate) fn apply(mut self, text: &[u8]) -> Vec<u8> {
        // Stable: what is inserted in one place keeps its order.
        self.0.sort_by_key(|(place, _)| (place.start, place.end));
        let more: usize = self.0.iter().map(|(_, with)| with.len()).sum();
        let mut out = Vec::with_capacity(text.len() + more);
        let mut from = 0;
        for (place, with) in self.0 {
            out.extend_from_slice(&text[from..place.start.max(from)]);
            out.extend_from_slice(with.as_bytes());
            from = place.end.max(from);
        }
        out.extend_from_slice(&text[from..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn rebuilt(doc: &Doc<'_>, at: At) -> Value {
        match doc.kind(at) {
            Kind::Object => doc
                .inside(at)
                .map(|member| (doc.key(member).into_owned(), rebuilt(doc, member)))
                .collect(),
            Kind::Array => doc.items(at).map(|item| rebuilt(doc, item)).collect(),
            Kind::String => Value::String(doc.text(at).unwrap().into_owned()),
            _ => serde_json::from_str(doc.raw(at)).unwrap(),
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}|[\"\\\\\n\u{1f600}é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map("\\PC{0,6}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in json(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            let doc = Doc::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(rebuilt(&doc, Doc::ROOT), value);
        }

        #[test]
        fn any_bytes_are_read_as_others_read_them(text in "[\\[\\]{}:,\"\\\\tfnu0-9eE.+-]{0,24}") {
            let ours = Doc::parse(text.as_bytes()).is_ok();
            // Lone halves of a pair are let pass here, and nowhere else is there a difference.
            let theirs = serde_json::from_str::<Value>(&text);
            let halves = theirs.as_ref().is_err_and(|error| error.to_string().contains("surrogate")
                || error.to_string().contains("hex") || error.to_string().contains("range"));
            prop_assert!(ours == theirs.is_ok() || halves, "{} {:?}", ours, theirs);
        }
    }

    #[test]
    fn escapes_are_undone() {
        let doc = Doc::parse(br#"["\u00e9\ud83d\ude00\/\n", "\ud800x", "\udc00\ud800"]"#).unwrap();
        let texts: Vec<_> = doc.items(Doc::ROOT).map(|item| doc.text(item).unwrap()).collect();
        assert_eq!(texts, ["é\u{1f600}/\n", "\u{fffd}x", "\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn members_are_known_in_any_spelling_and_only_once() {
        let doc = Doc::parse(br#"{"mess\u0061ges":[1],"b":2}"#).unwrap();
        assert!(doc.get(Doc::ROOT, "messages").unwrap().is_some());
        let doc = Doc::parse(br#"{"messages":[1],"mess\u0061ges":2}"#).unwrap();
        assert_eq!(doc.get(Doc::ROOT, "messages"), Err(BadJson::Twice(0)));
    }

    #[test]
    fn depth_and_ends_are_bounded() {
        let deep = "[".repeat(100_000);
        assert_eq!(Doc::parse(deep.as_bytes()).unwrap_err(), BadJson::TooMuch);
        for bad in ["", "{", "{\"a\"", "[1,]", "01", "1.", "\"\u{1}\"", "\"\\x\"", "{} {}", "nul"] {
            assert!(Doc::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(Doc::parse(b"\"\xff\"").unwrap_err(), BadJson::Encoding);
    }

    #[test]
    fn edits_keep_the_rest() {
        let text = br#"{ "a" : [ ] , "z":{} }"#;
        let doc = Doc::parse(text).unwrap();
        let mut edits = Edits::default();
        let list = doc.get(Doc::ROOT, "a").unwrap().unwrap();
        edits.push(&doc, list, "1");
        edits.add(&doc, doc.get(Doc::ROOT, "z").unwrap().unwrap(), "k", "2");
        assert_eq!(edits.apply(text), br#"{ "a" : [ 1] , "z":{"k":2} }"#);
        let text = br#"{"a":1, "b":2,"c":3}"#;
        let doc = Doc::parse(text).unwrap();
        for (name, left) in
            [("a", r#"{"b":2,"c":3}"#), ("b", r#"{"a":1,"c":3}"#), ("c", r#"{"a":1, "b":2}"#)]
        {
            let mut edits = Edits::default();
            edits.remove(&doc, Doc::ROOT, doc.get(Doc::ROOT, name).unwrap().unwrap());
            assert_eq!(edits.apply(text), left.as_bytes());
        }
    }
}
