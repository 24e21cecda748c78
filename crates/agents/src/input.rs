//! What an agent says, read strictly: bounded, one reading, no key twice.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Longest event that is read. It fits into one question to the monitor.
pub const MAX_BYTES: usize = 6 << 20;
/// Deepest nesting of an event.
const MAX_DEPTH: usize = 64;

/// An event that is not understood. It is answered with a denial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

impl Malformed {
    /// With a reason in words.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

type Result<T> = std::result::Result<T, Malformed>;

/// Reads the one JSON object that an event is.
pub(crate) fn read(bytes: &[u8]) -> Result<Object> {
    if bytes.len() > MAX_BYTES {
        return Err(Malformed::new(format!(
            "the event has {} bytes, over the limit of {MAX_BYTES}",
            bytes.len()
        )));
    }
    // Two programs that read the same key twice may not read the same.
    let strict = wardkeep_evidence::json::parse(bytes)
        .map_err(|error| Malformed::new(format!("the event is no JSON: {error}")))?;
    if let Some(key) = strict.duplicate_key() {
        let key = wardkeep_evidence::check::printable(key);
        return Err(Malformed::new(format!("the event has the key `{key}` twice")));
    }
    drop(strict);
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Malformed::new(format!("the event is no JSON: {error}")))?;
    if depth(&value) > MAX_DEPTH {
        return Err(Malformed::new("the event is nested too deeply"));
    }
    Object::of(value, "the event")
}

fn depth(value: &Value) -> usize {
    // Bounded: the parser nests no deeper than 127.
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// A JSON object, with what it is for messages.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) members: Map<String, Value>,
    what: &'static str,
}

impl Object {
    pub(crate) fn of(value: Value, what: &'static str) -> Result<Self> {
        match value {
            Value::Object(members) => Ok(Self { members, what }),
            _ => Err(Malformed::new(format!("{what} is no object"))),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    /// A text that must be there.
    pub(crate) fn text(&self, key: &str) -> Result<&str> {
        match self.get(key) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(Malformed::new(format!("`{key}` of {} is no text", self.what))),
            None => Err(Malformed::new(format!("{} has no `{key}`", self.what))),
        }
    }

    /// A text that may be missing, but is nothing else.
    pub(crate) fn text_if_any(&self, key: &str) -> Result<Option<&str>> {
        match self.get(key) {
            None => Ok(None),
            Some(_) => self.text(key).map(Some),
        }
    }

    /// An object that must be there. Some agents write one as a text.
    pub(crate) fn object(&self, key: &str, what: &'static str) -> Result<Self> {
        match self.get(key) {
            Some(Value::String(text)) => {
                read(text.as_bytes()).map(|object| Self { what, ..object })
            }
            Some(value) => Self::of(value.clone(), what),
            None => Err(Malformed::new(format!("{} has no `{key}`", self.what))),
        }
    }

    /// An absolute directory that must be there.
    pub(crate) fn directory(&self, key: &str) -> Result<PathBuf> {
        absolute(self.text(key)?, key)
    }
}

pub(crate) fn absolute(text: &str, key: &str) -> Result<PathBuf> {
    let path = Path::new(text);
    if !path.is_absolute() || text.contains('\0') {
        return Err(Malformed::new(format!("`{key}` is no absolute path")));
    }
    Ok(path.to_owned())
}

/// The name of a session: that of the agent, and the agent's own id for it.
pub(crate) fn session(agent: &str, id: &str) -> Result<String> {
    let sound = !id.is_empty() && id.len() <= 200 && !id.chars().any(char::is_control);
    if !sound {
        return Err(Malformed::new("the id of the session is none"));
    }
    Ok(format!("{agent}:{id}"))
}
