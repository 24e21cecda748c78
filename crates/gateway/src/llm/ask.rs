//! What a request says, and how it is changed: tool results become marked data, the owner's policy
//! stands last.
//!
//! A request is read where it stands. What is changed depends on the message alone (and on what the
//! judge said of it when it was new), so the same message goes out with the same bytes on every turn
//! and the client's prompt cache survives.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use sha2::{Digest as _, Sha256};
use wardkeep_policy::wrap::{WrapKind, Wrapper, neutralise};

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
        for piece in &self.pieces {
            match &piece.what {
                What::Text => feed(hash, &[b"t", piece.text.as_bytes()]),
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
    pub(crate) messages: Vec<Said<'t>>,
}

/// What a wire's reader finds.
struct Found<'t> {
    system: Vec<Cow<'t, str>>,
    messages: Vec<Said<'t>>,
    hint: Option<Cow<'t, str>>,
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
        let (system, stream) = (found.system.join("\n"), found.stream);
        let mut messages = found.messages;
        name_results(&mut messages);
        Ok(Self { wire, doc, bytes, model, stream, system, hint, messages })
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
        let mut withheld = 0;
        let root = self.root();
        let mut count: HashMap<&str, usize> = HashMap::new();
        for piece in self.messages.iter().flat_map(|said| &said.pieces) {
            let Some(place) = piece.place.clone() else { continue };
            let other = if instead.is_empty() {
                None
            } else {
                instead.get(&piece.print()).map(String::as_str)
            };
            withheld += usize::from(other.is_some());
            let text = other.unwrap_or(&piece.text);
            let changed = other.is_some();
            match (&piece.what, wrapper) {
                (What::Result { id, tool, mark }, Some(wrapper)) => {
                    // Several texts of one result have nonces of their own.
                    let number = count.entry(id.as_ref()).or_default();
                    let name = format!("{root}:{id}:{number}");
                    *number += 1;
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
        let body = match block {
            // What was replaced may stand where the block has to go: one after the other.
            Some(block) if withheld > 0 => {
                let bytes = edits.apply(self.bytes);
                let mut edits = Edits::default();
                match Doc::parse(&bytes) {
                    Ok(doc) => self.place(&doc, block, &mut edits),
                    Err(_) => return Rewritten { body: Some(Vec::new()), marked, withheld },
                }
                Some(edits.apply(&bytes))
            }
            Some(block) => {
                self.place(&self.doc, block, &mut edits);
                Some(edits.apply(self.bytes))
            }
            None => (!edits.is_empty()).then(|| edits.apply(self.bytes)),
        };
        Rewritten { body, marked, withheld }
    }

    fn place(&self, doc: &Doc<'_>, block: &str, edits: &mut Edits) {
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
    pub(crate) withheld: usize,
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
        Mark::Kept if changed => edits.replace(place, quoted(text)),
        Mark::Neutral | Mark::Kept => {}
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
