//! Hooks in a JSON file, with comments and order kept.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::{InstallError, Result};

/// What the agent itself takes for JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// As the standard says.
    Plain,
    /// With comments, and commas at ends.
    Commented,
}

/// The object in a file; of an empty one, an empty object.
pub(super) fn parse(path: &Path, bytes: &[u8], dialect: Dialect) -> Result<CstRootNode> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| InstallError::unusable(path, format!("is no text ({error})")))?;
    if depth(text) > MAX_DEPTH {
        return Err(InstallError::unusable(path, "is nested too deeply"));
    }
    let commented = dialect == Dialect::Commented;
    let options = ParseOptions {
        allow_comments: commented,
        allow_trailing_commas: commented,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let root = CstRootNode::parse(text, &options)
        .map_err(|error| InstallError::unusable(path, format!("is no JSON ({error})")))?;
    if root.value().is_some() && root.object_value().is_none() {
        return Err(InstallError::unusable(path, "holds something else than an object"));
    }
    Ok(root)
}

/// Deepest nesting that is parsed: the parser calls itself for each.
const MAX_DEPTH: usize = 512;

/// How deep a text nests, strings and comments left out.
fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0usize, 0);
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = match (byte, tail) {
            (b'"', _) => after_string(tail),
            (b'/', [b'/', ..]) => after(tail, b"\n"),
            (b'/', [b'*', inside @ ..]) => after(inside, b"*/"),
            _ => tail,
        };
        match byte {
            b'[' | b'{' => now += 1,
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn after_string(mut rest: &[u8]) -> &[u8] {
    while let [byte, tail @ ..] = rest {
        rest = match byte {
            b'"' => return tail,
            b'\\' => tail.get(1..).unwrap_or_default(),
            _ => tail,
        };
    }
    rest
}

fn after<'t>(text: &'t [u8], end: &[u8]) -> &'t [u8] {
    let found = text.windows(end.len()).position(|part| part == end);
    found.map(|at| &text[at + end.len()..]).unwrap_or_default()
}

/// A member that must be an object; it is made if it is not there.
pub(super) fn object(path: &Path, parent: &CstObject, name: &str) -> Result<CstObject> {
    once(path, parent, name)?;
    parent
        .object_value_or_create(name)
        .ok_or_else(|| InstallError::unusable(path, format!("has a `{name}` that is no object")))
}

/// A member that must be a list; it is made if it is not there.
pub(super) fn array(path: &Path, parent: &CstObject, name: &str) -> Result<CstArray> {
    once(path, parent, name)?;
    parent
        .array_value_or_create(name)
        .ok_or_else(|| InstallError::unusable(path, format!("has a `{name}` that is no list")))
}

/// What is written to one of two members may be read from the other.
fn once(path: &Path, parent: &CstObject, name: &str) -> Result<()> {
    let named =
        |prop: &jsonc_parser::cst::CstObjectProp| prop.decoded_name().as_deref() == Some(name);
    if parent.properties().iter().filter(|prop| named(prop)).count() > 1 {
        return Err(InstallError::unusable(path, format!("has the key `{name}` twice")));
    }
    Ok(())
}

/// Removes elements of a list that are ours.
pub(super) fn take_out(list: &CstArray, is_ours: &dyn Fn(&str) -> bool) {
    for element in list.elements() {
        let CstNode::Container(_) = &element else { continue };
        let Some(group) = element.as_object() else { continue };
        let Some(hooks) = group.array_value("hooks") else { continue };
        let ours: Vec<CstNode> =
            hooks.elements().into_iter().filter(|hook| is_ours(&command_of(hook))).collect();
        if ours.is_empty() {
            continue;
        }
        if ours.len() == hooks.elements().len() {
            element.remove();
        } else {
            ours.into_iter().for_each(CstNode::remove);
        }
    }
}

/// The command of a hook, program and words in one line.
fn command_of(hook: &CstNode) -> String {
    let Some(hook) = hook.as_object() else { return String::new() };
    let text = |node: &CstNode| node.as_string_lit()?.decoded_value().ok();
    let command = hook.get("command").and_then(|prop| text(&prop.value()?)).unwrap_or_default();
    let words = hook.array_value("args").map(|list| list.elements()).unwrap_or_default();
    let words: Vec<String> = words.iter().filter_map(text).collect();
    [&[command][..], &words].concat().join(" ")
}

/// A value as the tree takes it.
pub(super) fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

/// Whether an object says `true` to something.
pub(super) fn is_on(object: &CstObject, name: &str) -> bool {
    let value = object.get(name).and_then(|prop| prop.value());
    value.and_then(|value| value.as_boolean_lit()).is_some_and(|value| value.value())
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn only_what_nests_counts() {
        assert_eq!(depth("{\"a\": [1, {}]}"), 3);
        assert_eq!(depth("{\"[[[\": \"\\\"[[\"} // [[[\n /* {{{ */"), 1);
        // Brackets that close in strings hide nothing.
        assert_eq!(depth(&"[\"]\",".repeat(1000)), 1000);
        assert_eq!(depth(&"[/*]*/".repeat(1000)), 1000);
        for odd in ["", "\"", "\"\\", "/", "/*", "//", "]]]["] {
            assert!(depth(odd) <= 1, "{odd}");
        }
    }
}
