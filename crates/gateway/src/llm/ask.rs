//! What a request says, and how it is changed: tool results become marked data, the owner's policy
//! stands last.
//!
//! A request is read where it stands. What is changed depends on the message alone (and on what the
//! judge said of it when it was new), so the same message goes out with the same bytes on every turn
//! and the client's prompt cache survives.

mod anthropic;
mod chat;
mod gemini;
mod given;
mod ollama;
mod responses;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use sha2::{Digest as _, Sha256};
use wardkeep_policy::wrap::{WrapKind, Wrapper, neutralise};

use self::given::{given, sealed, unread};
use super::json::{At, BadJson, Doc, Edits, Kind, quoted};
use super::wire::Wire;

/// A short hash of something that was said.
pub(crate) type Print = [u8; 16];

/// Whose words a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions that stand among the messages.
    System,
    /// The user, and what is given to the model.
    User,
    /// The model.
    Assistant,
}

/// What a piece of a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What<'t> {
    /// Words.
    Text,
    /// What a tool gave back.
    Result {
        id: Cow<'t, str>,
        tool: Option<Cow<'t, str>>,
        /// How it is marked.
        mark: Mark,
    },
    /// The model asks for a tool.
    Call { id: Cow<'t, str> },
    /// Anything else.
    Other,
}

/// How a tool result is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It is put into tags.
    Wrapped,
    /// Only tags in it are made harmless: it is a part of something that has a form.
    Neutral,
    /// It is not touched: whoever made it checks its form.
    Kept,
    /// It is in its tags already.
    Marked,
}

/// A piece of a message.
#[derive(Debug, Clone)]
pub(crate) struct Piece<'t> {
    pub(crate) what: What<'t>,
    pub(crate) text: Cow<'t, str>,
    /// Where its string stands, quotes included.
    pub(crate) place: Option<Range<usize>>,
}

impl Piece<'_> {
    /// Knows the piece again, its text included.
    pub(crate) fn print(&self) -> Print {
        let mut hash = Sha256::new();
        let (kind, id) = match &self.what {
            What::Text => (1_u8, ""),
            What::Result { id, .. } => (2, id.as_ref()),
            What::Call { id } => (3, id.as_ref()),
            What::Other => (4, ""),
        };
        feed(&mut hash, &[&[kind], id.as_bytes(), self.text.as_bytes()]);
        print_of(hash)
    }
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Said<'t> {
    pub(crate) role: Role,
    pub(crate) pieces: Vec<Piece<'t>>,
}

impl Said<'_> {
    /// Hashes what stays the same as long as a conversation goes on: cache marks, reasoning and the
    /// texts of tool results may change.
    fn lasting(&self, hash: &mut Sha256) {
        let role = match self.role {
            Role::System => 1_u8,
            Role::User => 2,
            Role::Assistant => 3,
        };
        feed(hash, &[&[role]]);
        let mut before = None;
        for piece in &self.pieces {
            // How many strings a result has may change with its text.
            if let What::Result { id, .. } = &piece.what
                && !id.is_empty()
                && before.replace(id) == Some(id)
            {
                continue;
            }
            match &piece.what {
                What::Text => feed(hash, &[b"t", piece.text.as_bytes()]),
                // What answers no call is known by what it says.
                What::Result { id, .. } if id.is_empty() => {
                    feed(hash, &[b"d", piece.text.as_bytes()]);
                }
                What::Result { id, .. } => feed(hash, &[b"r", id.as_bytes()]),
                What::Call { id } => feed(hash, &[b"c", id.as_bytes()]),
                What::Other => {}
            }
        }
    }
}

fn feed(hash: &mut Sha256, parts: &[&[u8]]) {
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
}

fn print_of(hash: Sha256) -> Print {
    let mut print = [0; 16];
    print.copy_from_slice(&hash.finalize()[..16]);
    print
}

/// A request that was read.
#[derive(Debug)]
pub struct Asked<'t> {
    wire: Wire,
    doc: Doc<'t>,
    bytes: &'t [u8],
    /// The model, as far as the body names it.
    pub model: Option<String>,
    /// Whether the body asks for a stream.
    pub stream: bool,
    /// The system prompt, its parts on lines of their own.
    pub system: String,
    /// What the client itself calls the conversation.
    pub hint: Option<String>,
    /// What the request goes on from that the provider keeps, and is not in it.
    pub(crate) kept: Vec<String>,
    pub(crate) messages: Vec<Said<'t>>,
    /// The block of a proxy before this one.
    chained: Option<Chained>,
}

/// A block that a proxy of the same owner has put last: where its string stands, and whether it is
/// the one that is put there now.
#[derive(Debug)]
struct Chained {
    place: Range<usize>,
    text: String,
}

/// What a wire's reader finds.
struct Found<'t> {
    system: Vec<Cow<'t, str>>,
    messages: Vec<Said<'t>>,
    hint: Option<Cow<'t, str>>,
    kept: Vec<Cow<'t, str>>,
    stream: bool,
}

impl<'t> Asked<'t> {
    /// Reads the body of a request for a turn.
    ///
    /// # Errors
    /// When it cannot be told what the model would be given.
    pub fn read(wire: Wire, bytes: &'t [u8]) -> Result<Self, BadJson> {
        let doc = Doc::parse(bytes)?;
        if doc.kind(Doc::ROOT) != Kind::Object {
            return Err(BadJson::Syntax(0));
        }
        let found = match wire {
            Wire::Anthropic => anthropic::read(&doc)?,
            Wire::Chat => chat::read(&doc)?,
            Wire::Responses => responses::read(&doc)?,
            Wire::Gemini => gemini::read(&doc)?,
            Wire::Ollama => ollama::read(&doc)?,
        };
        let model = doc.string(Doc::ROOT, "model")?.map(Cow::into_owned);
        let hint = found.hint.filter(|hint| !hint.is_empty()).map(Cow::into_owned);
        let kept = found.kept.into_iter().filter(|id| !id.is_empty()).map(Cow::into_owned);
        let (system, stream) = (found.system.join("\n"), found.stream);
        let (mut messages, kept) = (found.messages, kept.collect());
        name_results(&mut messages);
        let chained = None;
        Ok(Self { wire, doc, bytes, model, stream, system, hint, kept, messages, chained })
    }

    /// The very last string of the request, where a block would stand.
    pub(crate) fn last_text(&self) -> Option<&str> {
        let last = self.messages.last()?;
        let piece = last.pieces.last().filter(|_| last.role != Role::Assistant)?;
        let is_text = piece.what == What::Text && piece.place.is_some();
        is_text.then_some(piece.text.as_ref())
    }

    /// Takes the last string for the block of a proxy before this one: it is no word of the user, and
    /// no second one follows. Marks of that proxy are taken off results, as far as they are judged.
    pub(crate) fn unchain(&mut self, wrapper: Option<&Wrapper>) {
        let Some(last) = self.messages.last_mut() else { return };
        let Some(piece) = last.pieces.pop() else { return };
        let (text, Some(place)) = (piece.text.into_owned(), piece.place) else { return };
        if last.role == Role::System
            && let Some(before) = self.system.strip_suffix(&text)
        {
            self.system = before.trim_end_matches('\n').to_owned();
        }
        if last.pieces.is_empty() {
            self.messages.pop();
        }
        self.chained = Some(Chained { place, text });
        if let Some(wrapper) = wrapper {
            self.unmark(wrapper);
        }
    }

    fn unmark(&mut self, wrapper: &Wrapper) {
        let root = self.root();
        let mut names = Names::default();
        for piece in self.messages.iter_mut().flat_map(|said| &mut said.pieces) {
            let (What::Result { id, mark, .. }, true) = (&mut piece.what, piece.place.is_some())
            else {
                continue;
            };
            let name = names.next(&root, id);
            if let Some(inner) = wrapper.content_of(WrapKind::ToolOutput, &name, &piece.text) {
                piece.text = Cow::Owned(inner.to_owned());
                *mark = Mark::Marked;
            }
        }
    }

    /// How many messages it holds.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.messages.len()
    }

    /// The body with its tool results marked and `block` last; `None` where nothing changes.
    #[must_use]
    pub fn prepared(&self, wrapper: Option<&Wrapper>, block: Option<&str>) -> Option<Vec<u8>> {
        self.rewritten(wrapper, &HashMap::new(), block).body
    }

    /// Prints of the conversation up to each of its messages.
    pub(crate) fn prefixes(&self) -> Vec<Print> {
        let mut hash = Sha256::new();
        feed(&mut hash, &[self.wire.as_str().as_bytes()]);
        let prefix = |said: &Said<'_>| {
            said.lasting(&mut hash);
            print_of(hash.clone())
        };
        self.messages.iter().map(prefix).collect()
    }

    /// Knows a conversation as long as its first message stays, in hexadecimal.
    pub(crate) fn root(&self) -> String {
        let mut hash = Sha256::new();
        feed(&mut hash, &[self.wire.as_str().as_bytes()]);
        if let Some(first) = self.messages.iter().find(|said| said.role == Role::User) {
            first.lasting(&mut hash);
        }
        print_of(hash).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The body as it goes out: with what the judge put in the place of pieces, tool results marked,
    /// and `block` last.
    #[must_use]
    pub(crate) fn rewritten(
        &self,
        wrapper: Option<&Wrapper>,
        instead: &HashMap<Print, String>,
        block: Option<&str>,
    ) -> Rewritten {
        let mut edits = Edits::default();
        let mut marked = 0;
        let mut withheld = Vec::new();
        let root = self.root();
        let mut names = Names::default();
        for piece in self.messages.iter().flat_map(|said| &said.pieces) {
            let Some(place) = piece.place.clone() else { continue };
            let other = if instead.is_empty() {
                None
            } else {
                instead.get(&piece.print()).map(String::as_str)
            };
            if let Some(other) = other {
                withheld.push(Withheld::of(piece, other));
            }
            let text = other.unwrap_or(&piece.text);
            let changed = other.is_some();
            match (&piece.what, wrapper) {
                (What::Result { id, tool, mark }, Some(wrapper)) => {
                    let name = names.next(&root, id);
                    marked += usize::from(*mark == Mark::Wrapped);
                    mark_result(
                        &mut edits,
                        wrapper,
                        &name,
                        tool.as_deref(),
                        (*mark, changed),
                        text,
                        place,
                    );
                }
                (What::Text | What::Result { .. }, _) if changed => {
                    edits.replace(place, quoted(text));
                }
                _ => {}
            }
        }
        let block = block.filter(|block| !block.is_empty());
        let mut at = None;
        let body = match block {
            // What was replaced may stand where the block has to go: one after the other.
            Some(block) if !withheld.is_empty() && self.chained.is_none() => {
                let bytes = edits.apply(self.bytes);
                let mut edits = Edits::default();
                match Doc::parse(&bytes) {
                    Ok(doc) => self.place(&doc, block, &mut edits),
                    Err(_) => return Rewritten { body: Some(Vec::new()), marked, withheld, at },
                }
                at = edits.last_at();
                Some(edits.apply(&bytes))
            }
            Some(block) => {
                self.place(&self.doc, block, &mut edits);
                at = edits.last_at().filter(|_| self.chained.is_none());
                (!edits.is_empty()).then(|| edits.apply(self.bytes))
            }
            None => (!edits.is_empty()).then(|| edits.apply(self.bytes)),
        };
        Rewritten { body, marked, withheld, at }
    }

    fn place(&self, doc: &Doc<'_>, block: &str, edits: &mut Edits) {
        if let Some(chained) = &self.chained {
            if chained.text != block {
                edits.replace(chained.place.clone(), quoted(block));
            }
            return;
        }
        match self.wire {
            Wire::Anthropic => anthropic::place(doc, block, edits),
            Wire::Chat | Wire::Ollama => chat::place(doc, block, edits),
            Wire::Responses => responses::place(doc, block, edits),
            Wire::Gemini => gemini::place(doc, block, edits),
        }
    }
}

/// A request as it goes out.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The bytes; `None` where nothing was changed.
    pub(crate) body: Option<Vec<u8>>,
    /// Texts of tool results that were marked.
    pub(crate) marked: usize,
    /// Pieces that were replaced.
    pub(crate) withheld: Vec<Withheld>,
    /// Where the block was put, from the first byte.
    pub(crate) at: Option<usize>,
}

/// A piece of a request that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// The tool that gave it; nothing where the user said it.
    pub tool: Option<String>,
    /// Bytes of it.
    pub bytes: usize,
    /// How it begins, without what may be a secret.
    pub excerpt: String,
    /// How what stands in its place begins.
    pub instead: String,
}

impl Withheld {
    fn of(piece: &Piece<'_>, instead: &str) -> Self {
        let tool = match &piece.what {
            What::Result { tool, .. } => Some(tool.as_deref().unwrap_or("unknown").to_owned()),
            _ => None,
        };
        let bytes = piece.text.len();
        Self { tool, bytes, excerpt: excerpt(&piece.text), instead: beginning(instead, 240) }
    }
}

fn beginning(text: &str, most: usize) -> String {
    let short: String = text.chars().take(most).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// The beginning of a text: words stay, whatever may be a key does not.
fn excerpt(text: &str) -> String {
    let mut shown = String::new();
    for word in text.split_whitespace() {
        if shown.len() > 60 {
            shown.push_str(" …");
            break;
        }
        let plain = word.len() <= 16 && !word.contains(|sign: char| sign.is_ascii_digit());
        shown.push_str(if shown.is_empty() { "" } else { " " });
        shown.push_str(if plain { word } else { "…" });
    }
    shown
}

fn mark_result(
    edits: &mut Edits,
    wrapper: &Wrapper,
    name: &str,
    tool: Option<&str>,
    (mark, changed): (Mark, bool),
    text: &str,
    place: Range<usize>,
) {
    let neutral = neutralise(text);
    match mark {
        Mark::Wrapped if neutral.replaced == 0 && !changed => {
            // The content keeps its own spelling.
            let shell = wrapper.wrap(WrapKind::ToolOutput, name, tool, "").text;
            let cut = shell.find('\n').map_or(shell.len(), |end| end + 1);
            let (open, close) = shell.split_at(cut);
            edits.insert(place.start + 1, unquoted(open));
            edits.insert(place.end - 1, unquoted(close));
        }
        Mark::Wrapped => {
            let text = wrapper.wrap(WrapKind::ToolOutput, name, tool, text).text;
            edits.replace(place, quoted(&text));
        }
        Mark::Neutral if neutral.replaced > 0 || changed => {
            edits.replace(place, quoted(&neutral.text));
        }
        Mark::Marked if changed => {
            let text = wrapper.wrap(WrapKind::ToolOutput, name, tool, text).text;
            edits.replace(place, quoted(&text));
        }
        Mark::Kept if changed => edits.replace(place, quoted(text)),
        Mark::Neutral | Mark::Kept | Mark::Marked => {}
    }
}

/// Names of the strings of results: several of one result have nonces of their own.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn next(&mut self, root: &str, id: &str) -> String {
        let number = self.0.entry(id.to_owned()).or_default();
        let name = format!("{root}:{id}:{number}");
        *number += 1;
        name
    }
}

fn unquoted(text: &str) -> String {
    let quoted = quoted(text);
    quoted[1..quoted.len() - 1].to_owned()
}

/// Finds the names of tools for results that do not tell them.
fn name_results(messages: &mut [Said<'_>]) {
    let mut names: HashMap<String, String> = HashMap::new();
    for piece in messages.iter().flat_map(|said| &said.pieces) {
        if let (What::Call { id }, false) = (&piece.what, piece.text.is_empty()) {
            names.insert(id.clone().into_owned(), piece.text.clone().into_owned());
        }
    }
    for piece in messages.iter_mut().flat_map(|said| &mut said.pieces) {
        if let What::Result { id, tool: tool @ None, .. } = &mut piece.what {
            *tool = names.get(id.as_ref()).map(|name| Cow::Owned(name.clone()));
        }
    }
}

/// A string as a piece.
fn piece<'t>(doc: &Doc<'t>, at: At, what: What<'t>) -> Option<Piece<'t>> {
    Some(Piece { what, text: doc.text(at)?, place: Some(doc.span(at)) })
}

fn other<'t>() -> Piece<'t> {
    Piece { what: What::Other, text: Cow::Borrowed(""), place: None }
}

/// The texts of a string, or of a list of parts that have one in `text`.
fn texts<'t>(
    doc: &Doc<'t>,
    content: At,
    what: &What<'t>,
    pieces: &mut Vec<Piece<'t>>,
) -> Result<(), BadJson> {
    if doc.kind(content) == Kind::String {
        pieces.extend(piece(doc, content, what.clone()));
        return Ok(());
    }
    for part in doc.items(content) {
        match doc.get(part, "text")?.and_then(|text| piece(doc, text, what.clone())) {
            Some(piece) => pieces.push(piece),
            None => match piece(doc, part, what.clone()) {
                Some(piece) => pieces.push(piece),
                None => pieces.push(other()),
            },
        }
    }
    Ok(())
}

fn flag(doc: &Doc<'_>, name: &str) -> Result<Option<bool>, BadJson> {
    let found = doc.get(Doc::ROOT, name)?;
    Ok(found.filter(|at| doc.kind(*at) == Kind::Bool).map(|at| doc.raw(at) == "true"))
}
