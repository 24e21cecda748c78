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
    /// With comments.
    Commented,
    /// With comments, and commas at ends.
    Loose,
    /// JSON5: with names and texts as JavaScript writes them, too.
    Five,
}

/// The object in a file; of an empty one, an empty object.
pub(super) fn parse(path: &Path, bytes: &[u8], dialect: Dialect) -> Result<CstRootNode> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| InstallError::unusable(path, format!("is no text ({error})")))?;
    let five = dialect == Dialect::Five;
    if depth(text, five) > MAX_DEPTH {
        return Err(InstallError::unusable(path, "is nested too deeply"));
    }
    let options = ParseOptions {
        allow_comments: dialect != Dialect::Plain,
        allow_trailing_commas: matches!(dialect, Dialect::Loose | Dialect::Five),
        allow_loose_object_property_names: five,
        allow_missing_commas: false,
        allow_single_quoted_strings: five,
        allow_hexadecimal_numbers: five,
        allow_unary_plus_numbers: five,
        allow_bare_decimal_point_numbers: five,
        allow_non_finite_numbers: five,
        allow_extended_string_escapes: five,
    };
    // The parser of trees passes over comments in any case.
    if dialect == Dialect::Plain && !text.trim().is_empty() {
        serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map_err(|error| InstallError::unusable(path, format!("is no JSON ({error})")))?;
    }
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
fn depth(text: &str, five: bool) -> usize {
    let (mut now, mut most) = (0usize, 0);
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = match (byte, tail) {
            (b'"', _) => after_string(tail, b'"'),
            (b'\'', _) if five => after_string(tail, b'\''),
            (b'/', [b'/', ..]) => after_line(tail),
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

fn after_string(mut rest: &[u8], quote: u8) -> &[u8] {
    while let [byte, tail @ ..] = rest {
        rest = match byte {
            byte if *byte == quote => return tail,
            b'\\' => tail.get(1..).unwrap_or_default(),
            _ => tail,
        };
    }
    rest
}

fn after_line(text: &[u8]) -> &[u8] {
    let found = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    found.map(|at| &text[at + 1..]).unwrap_or_default()
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
pub(super) fn once(path: &Path, parent: &CstObject, name: &str) -> Result<()> {
    let named =
        |prop: &jsonc_parser::cst::CstObjectProp| prop.decoded_name().as_deref() == Some(name);
    if parent.properties().iter().filter(|prop| named(prop)).count() > 1 {
        return Err(InstallError::unusable(path, format!("has the key `{name}` twice")));
    }
    Ok(())
}

/// The texts of a list, each with its place.
pub(super) fn texts_in(list: &CstArray) -> Vec<(String, CstNode)> {
    let text = |node: CstNode| Some((node.as_string_lit()?.decoded_value().ok()?, node));
    list.elements().into_iter().filter_map(text).collect()
}

/// A value as it is read; none, where it is written as only JavaScript does.
pub(super) fn value_of(node: &CstNode) -> Option<Value> {
    serde_json::from_str(&node.to_string()).ok()
}

/// Sets a member, unless it is exactly that already.
pub(super) fn set(path: &Path, parent: &CstObject, name: &str, value: &Value) -> Result<()> {
    once(path, parent, name)?;
    match parent.get(name) {
        None => {
            parent.append(name, input(value));
        }
        Some(prop) if prop.value().as_ref().and_then(value_of).as_ref() != Some(value) => {
            prop.set_value(input(value));
        }
        Some(_) => {}
    }
    Ok(())
}

/// The text of a file from its tree. One that was not there, or empty, ends in a line end.
pub(super) fn text_of(root: &CstRootNode, before: Option<&[u8]>) -> Vec<u8> {
    let mut text = root.to_string();
    if before.is_none_or(|bytes| bytes.trim_ascii().is_empty()) && !text.ends_with('\n') {
        text.push('\n');
    }
    text.into_bytes()
}

/// Removes elements of a list that are ours: hooks, or groups of them.
pub(super) fn take_out(list: &CstArray, is_ours: &dyn Fn(&str) -> bool) {
    for element in list.elements() {
        let CstNode::Container(_) = &element else { continue };
        let Some(group) = element.as_object() else { continue };
        let Some(hooks) = group.array_value("hooks") else {
            if is_ours(&command_of(&element)) {
                element.remove();
            }
            continue;
        };
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
    let member = |name: &str| hook.get(name).and_then(|prop| text(&prop.value()?));
    let commands = ["command", "bash"].into_iter().filter_map(member);
    let words = hook.array_value("args").map(|list| list.elements()).unwrap_or_default();
    commands.chain(words.iter().filter_map(text)).collect::<Vec<_>>().join(" ")
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

/// What an object says yes or no to.
pub(super) fn switch(object: &CstObject, name: &str) -> Option<bool> {
    Some(object.get(name)?.value()?.as_boolean_lit()?.value())
}

/// The texts in a list of an object.
pub(super) fn texts(object: &CstObject, name: &str) -> Vec<String> {
    let list = object.array_value(name).map(|list| list.elements()).unwrap_or_default();
    list.iter().filter_map(|one| one.as_string_lit()?.decoded_value().ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_nests_counts() {
        let depth = |text: &str| super::depth(text, false);
        assert_eq!(depth("{\"a\": [1, {}]}"), 3);
        assert_eq!(depth("{\"[[[\": \"\\\"[[\"} // [[[\n /* {{{ */"), 1);
        // Brackets that close in strings hide nothing.
        assert_eq!(depth(&"[\"]\",".repeat(1000)), 1000);
        assert_eq!(depth(&"[/*]*/".repeat(1000)), 1000);
        // A line ends where the parser ends it, and a text of the other quotes is one only to JSON5.
        assert_eq!(depth(&format!("//\r{}", "[".repeat(1000))), 1000);
        assert_eq!(super::depth(&"['\"', ".repeat(1000), true), 1000);
        assert_eq!(super::depth("{a: '[[[\\'[', b: []}", true), 2);
        for odd in ["", "\"", "\"\\", "/", "/*", "//", "]]]["] {
            assert!(depth(odd) <= 1, "{odd}");
        }
    }
}
