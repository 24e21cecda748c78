//! What tools gave, in whatever form: every string in it counts, and what cannot be read counts as
//! something that nobody has read.

use std::borrow::Cow;
use std::ops::Range;

use super::super::json::{At, Doc, Kind};
use super::{Mark, Piece, What};

/// What stands for an image or a file in what is judged: the session is tainted by it all the same.
const UNREAD: &str = "(an image or a file that was not read)";

/// Members whose strings are words of a form where they look like one.
const FORMS: &[&str] = &[
    "type",
    "id",
    "tool_use_id",
    "call_id",
    "file_id",
    "container_id",
    "media_type",
    "mime_type",
    "mimeType",
    "status",
    "encoding",
    "detail",
    "role",
    "ttl",
    "outcome",
];
/// Members that hold bytes where they look like it.
const BYTES: &[&str] = &[
    "data",
    "file_data",
    "image_url",
    "b64_json",
    "encrypted_content",
    "encrypted_index",
    "encrypted_stdout",
    "signature",
    "thoughtSignature",
    "thought_signature",
];
/// Longest word of a form.
const WORD: usize = 128;
/// From which length on a string of letters and digits may be bytes.
const LONG: usize = 128;

/// A string in what a tool gave.
struct Leaf<'t> {
    /// The member that it is in.
    key: Cow<'t, str>,
    text: Cow<'t, str>,
    place: Range<usize>,
    /// It is words of the tool's: neither a key, nor in something that citations count the signs of.
    free: bool,
    /// It is bytes.
    bytes: bool,
}

/// The call that something answers, the tool, and how it is marked.
type Of<'t> = (Cow<'t, str>, Option<Cow<'t, str>>, Mark);

/// A piece for each string of what a tool gave. Where there is nothing to read, one says so.
pub(super) fn given<'t>(
    doc: &Doc<'t>,
    content: Option<At>,
    (id, tool, mark): Of<'t>,
    pieces: &mut Vec<Piece<'t>>,
) {
    let mut leaves = Vec::new();
    if let Some(content) = content {
        find(doc, content, &Cow::Borrowed(""), true, &mut leaves);
    }
    let before = pieces.len();
    let mut bytes = false;
    for leaf in leaves {
        if leaf.bytes {
            bytes = true;
            continue;
        }
        let words = leaf.free && matches!(leaf.key.as_ref(), "" | "text" | "data");
        let mark = if mark == Mark::Wrapped && !words { Mark::Neutral } else { mark };
        let what = What::Result { id: id.clone(), tool: tool.clone(), mark };
        pieces.push(Piece { what, text: leaf.text, place: Some(leaf.place) });
    }
    if bytes {
        pieces.push(unread(id, tool));
    } else if pieces.len() == before {
        let what = What::Result { id, tool, mark: Mark::Kept };
        pieces.push(Piece { what, text: "".into(), place: None });
    }
}

/// An image or a file that a tool gave.
pub(super) fn unread<'t>(id: Cow<'t, str>, tool: Option<Cow<'t, str>>) -> Piece<'t> {
    let what = What::Result { id, tool, mark: Mark::Kept };
    Piece { what, text: UNREAD.into(), place: None }
}

/// One piece for all strings of what a tool of the provider's own gave. It has no place: whatever is
/// found in it, not a byte may be changed.
pub(super) fn sealed<'t>(
    doc: &Doc<'t>,
    content: Option<At>,
    (id, tool): (Cow<'t, str>, Option<Cow<'t, str>>),
    pieces: &mut Vec<Piece<'t>>,
) {
    let mut leaves = Vec::new();
    if let Some(content) = content {
        find(doc, content, &Cow::Borrowed(""), true, &mut leaves);
    }
    let unread = leaves.iter().any(|leaf| leaf.bytes);
    let said = leaves.iter().filter(|leaf| !leaf.bytes).map(|leaf| leaf.text.as_ref());
    let said: Vec<&str> = said.chain(unread.then_some(UNREAD)).collect();
    let what = What::Result { id, tool, mark: Mark::Kept };
    pieces.push(Piece { what, text: said.join("\n").into(), place: None });
}

impl Piece<'_> {
    /// Whether it is a value, and not the key of one.
    pub(super) fn is_value(&self, doc: &Doc<'_>) -> bool {
        self.place.as_ref().is_some_and(|place| !doc.is_key(place.end))
    }
}

/// All strings in a value, however deep; of keys those that are more than a name.
#[expect(clippy::ptr_arg, reason = "what is kept of it borrows where it can")]
fn find<'t>(doc: &Doc<'t>, at: At, key: &Cow<'t, str>, free: bool, out: &mut Vec<Leaf<'t>>) {
    match doc.kind(at) {
        Kind::String => {
            let Some(text) = doc.text(at) else { return };
            if !is_form(key, &text) {
                let (bytes, place) = (is_bytes(key, &text), doc.span(at));
                out.push(Leaf { key: key.clone(), text, place, free, bytes });
            }
        }
        Kind::Array => doc.items(at).for_each(|inner| find(doc, inner, key, free, out)),
        Kind::Object => {
            let free = free && !is_cited(doc, at);
            for inner in doc.inside(at) {
                let name = doc.key(inner);
                if name.contains(char::is_whitespace) || name.len() > WORD {
                    let (key, text) = (Cow::Borrowed(""), name.clone());
                    let place = doc.key_span(inner);
                    out.push(Leaf { key, text, place, free: false, bytes: false });
                }
                find(doc, inner, &name, free, out);
            }
        }
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}

/// Whether the model is to say which signs of it it has read: they are counted.
fn is_cited(doc: &Doc<'_>, at: At) -> bool {
    let enabled = doc.path(at, &["citations", "enabled"]);
    enabled.ok().flatten().is_some_and(|at| doc.raw(at) == "true")
}

fn is_form(key: &str, text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/+".contains(&byte);
    FORMS.contains(&key) && text.len() <= WORD && text.bytes().all(plain)
}

fn is_bytes(key: &str, text: &str) -> bool {
    let coded = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    if !BYTES.contains(&key) || text.contains(char::is_whitespace) {
        return false;
    }
    match text.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((_, bytes)) => bytes.bytes().all(coded),
        None => {
            let sealed = key.starts_with("encrypted") || key.to_lowercase().contains("signature");
            (sealed || text.len() >= LONG) && text.bytes().all(coded)
        }
    }
}
