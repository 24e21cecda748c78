//! Tools that nobody knows: every member that may name a file, an address or a command counts.

use serde_json::{Map, Value};

use super::Place;
use crate::event::Crossing;

/// Deepest members that are looked at; an event is not deeper.
const DEPTH: usize = 64;
/// Ends of members' names that say that a file is named.
const FILE_KEYS: [&str; 13] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "source",
    "destination",
    "dest",
    "src",
    "directory",
    "folder",
    "dir",
];
/// Ends of members' names that say that a shell gets a text.
const SHELL_KEYS: [&str; 5] = ["command", "cmd", "shell", "script", "commandline"];
/// Words of a tool's name that say that it only looks.
const LOOKS: [&str; 14] = [
    "read", "get", "list", "search", "find", "view", "show", "fetch", "query", "describe", "stat",
    "info", "status", "lookup",
];
/// Words of a tool's name that say that it changes something.
const CHANGES: [&str; 20] = [
    "write", "edit", "create", "update", "delete", "remove", "move", "rename", "put", "set",
    "save", "append", "insert", "replace", "patch", "upload", "copy", "install", "run", "exec",
];

/// What a call may do, at worst.
pub(super) fn crossings(
    tool: &str,
    members: &Map<String, Value>,
    place: Place<'_>,
) -> Vec<Crossing> {
    let words: Vec<String> = words(tool);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let looks = has(&LOOKS) && !has(&CHANGES);
    let mut guess = Guess { place, looks, all: String::new(), found: Vec::new() };
    guess.all = members.values().map(crate::result::text_of).collect::<Vec<_>>().join("\n");
    for (key, value) in members {
        guess.member(key, value, DEPTH);
    }
    guess.found
}

/// The words of a name: `mcp__files__writeFile` has `mcp`, `files`, `write` and `file`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for sign in name.chars() {
        if !sign.is_alphanumeric() || (sign.is_uppercase() && small) {
            words.push(String::new());
        }
        small = sign.is_lowercase();
        if sign.is_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.extend(sign.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

struct Guess<'a> {
    place: Place<'a>,
    looks: bool,
    all: String,
    found: Vec<Crossing>,
}

impl Guess<'_> {
    fn member(&mut self, key: &str, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.text(key, text),
            Value::Array(items) if depth > 0 => {
                items.iter().for_each(|item| self.member(key, item, depth - 1));
            }
            Value::Object(members) if depth > 0 => {
                members.iter().for_each(|(key, value)| self.member(key, value, depth - 1));
            }
            _ => {}
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        let last = words(key).pop().unwrap_or_default();
        let address = text.contains("://") && !text.starts_with("file://");
        if address {
            let found: Vec<Crossing> = addresses(text).collect();
            for mut request in found {
                if let Crossing::Request { method, body, .. } = &mut request
                    && !self.looks
                {
                    (*method, *body) = ("POST", Some(self.all.clone()));
                }
                self.add(request);
            }
        }
        if SHELL_KEYS.contains(&last.as_str()) {
            let directory = self.place.directory.to_owned();
            self.add(Crossing::Command { text: text.to_owned(), directory });
            return;
        }
        let one_line = !text.contains('\n') && text.len() <= 4096 && !text.contains('\0');
        let named = FILE_KEYS.contains(&last.as_str()) && !text.is_empty() && !address;
        let looks_so =
            ["/", "~/", "./", "../", "file://"].iter().any(|start| text.starts_with(start));
        if one_line && (named || looks_so) {
            let paths: Vec<_> = self.place.paths(text).collect();
            for path in paths {
                self.add(Crossing::Read { path: path.clone() });
                if !self.looks {
                    self.add(Crossing::Write { path, content: self.all.clone(), redirect: None });
                }
            }
        }
    }

    fn add(&mut self, crossing: Crossing) {
        if !self.found.contains(&crossing) {
            self.found.push(crossing);
        }
    }
}

/// The addresses that stand in a text.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = Crossing> {
    let ends = |sign: char| sign.is_whitespace() || "\"'<>`".contains(sign);
    text.split(ends).filter_map(|word| {
        let at = word.find("://")?;
        let before = &word[..at];
        let scheme = before
            .char_indices()
            .rev()
            .find(|(_, sign)| !sign.is_ascii_alphanumeric() && !"+-.".contains(*sign))
            .map_or(0, |(index, sign)| index + sign.len_utf8());
        let url = word[scheme..].trim_end_matches([',', ';', ')', ']', '}']).to_owned();
        (at > scheme).then_some(Crossing::Request { url, method: "GET", body: None })
    })
}
