//! What the tools of agents do, by their names; of tools that are not known, by the worst reading.

mod guessed;
mod names;
mod patch;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use wardkeep_evidence::record::Principal;

use crate::event::Crossing;
use crate::input::Malformed;

use self::names::{Means, means};

/// Members that name a file.
const PATHS: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "filepath",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "dir_path",
    "directory",
];
/// Members that name several.
const MANY_PATHS: &[&str] = &["paths", "files", "file_paths", "filePaths", "include"];
/// Members that hold what a file becomes.
const CONTENTS: &[&str] = &["content", "contents", "file_text", "text", "new_source", "data"];
/// Members that hold a text for a shell.
const COMMANDS: &[&str] = &["command", "cmd", "commandLine", "command_line", "script"];
/// Members that hold what is typed into a shell that runs already.
const TYPED: &[&str] = &["chars", "input", "data", "text", "keys"];
/// Members that say where it starts.
const DIRECTORIES: &[&str] = &["workdir", "cwd", "directory", "dir_path", "working_directory"];
/// Members that hold an address.
const URLS: &[&str] = &["url", "urls", "uri", "targetUrl", "href"];
/// Longest list of files or commands in one call.
const MOST: usize = 128;

type Result<T> = std::result::Result<T, Malformed>;

/// What surrounds a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Where the agent is.
    pub(crate) directory: &'a Path,
    /// The user's home, which some tools write `~`.
    pub(crate) home: Option<&'a Path>,
}

impl Place<'_> {
    /// A path as it is written, below where the agent is.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        let text = text.strip_prefix("file://").unwrap_or(text);
        self.directory.join(text)
    }

    /// The same, and what `~` may stand for.
    pub(crate) fn paths(&self, text: &str) -> impl Iterator<Item = PathBuf> {
        let below = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let home = self.home.zip(below).map(|(home, rest)| home.join(rest.trim_start_matches('/')));
        std::iter::once(self.path(text)).chain(home)
    }
}

/// What a call of a tool means.
pub(crate) fn crossings(tool: &str, input: &Value, place: Place<'_>) -> Result<Vec<Crossing>> {
    let empty = Map::new();
    let members = match input {
        Value::Object(members) => members,
        Value::Null => &empty,
        _ => return Err(Malformed::new(format!("the input of `{tool}` is no object"))),
    };
    let call = Call { tool, members, place };
    let found = match means(tool) {
        Means::Nothing => Vec::new(),
        Means::Shell => call.shell()?,
        Means::Type => call.typed()?,
        Means::Read => call.read(true)?,
        // Without a path it looks through where the agent is.
        Means::Look => call.read(false)?,
        Means::Write => call.write(true)?,
        Means::Edit => call.write(false)?,
        Means::Editor => call.editor()?,
        Means::Patch => call.patch()?,
        Means::Delete => call.paths_needed()?.map(|path| Crossing::Delete { path }).collect(),
        Means::Move => call.moved()?,
        Means::Fetch => call.fetch()?,
        Means::Remember => call.remember(),
        Means::Steer => vec![Crossing::Change { key: tool.to_owned(), detail: input.to_string() }],
        Means::Install => vec![Crossing::Install {
            name: call.first(&["name", "skill", "command", "slug"]).unwrap_or(tool).to_owned(),
            text: input.to_string(),
            folder: None,
        }],
        Means::Unknown => guessed::crossings(tool, members, place),
    };
    if found.len() > MOST {
        return Err(Malformed::new(format!("`{tool}` is given more than {MOST} things at once")));
    }
    Ok(found)
}

#[derive(Debug)]
struct Call<'a> {
    tool: &'a str,
    members: &'a Map<String, Value>,
    place: Place<'a>,
}

impl Call<'_> {
    fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.members.get(*key)?.as_str())
    }

    fn missing(&self, what: &str) -> Malformed {
        Malformed::new(format!("the input of `{}` names no {what}", self.tool))
    }

    /// All texts of members that hold one or several; each list may hold objects with a path.
    fn texts(&self, keys: &[&str]) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for key in keys {
            match self.members.get(*key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => found.push(text.clone()),
                Some(Value::Array(items)) => {
                    for item in items {
                        match item {
                            Value::String(text) => found.push(text.clone()),
                            Value::Object(inner) => {
                                let inner =
                                    PATHS.iter().chain(COMMANDS).find_map(|key| inner.get(*key));
                                let text = inner.and_then(Value::as_str);
                                found.push(text.ok_or_else(|| self.unclear(key))?.to_owned());
                            }
                            _ => return Err(self.unclear(key)),
                        }
                    }
                }
                Some(_) => return Err(self.unclear(key)),
            }
        }
        Ok(found)
    }

    fn unclear(&self, key: &str) -> Malformed {
        Malformed::new(format!("`{key}` in the input of `{}` cannot be read", self.tool))
    }

    fn paths(&self) -> Result<Vec<PathBuf>> {
        let mut texts = self.texts(PATHS)?;
        texts.extend(self.texts(MANY_PATHS)?);
        let mut paths = Vec::new();
        for text in texts {
            if text.is_empty() || text.contains('\0') {
                return Err(self.missing("file that there can be"));
            }
            paths.extend(self.place.paths(&text));
        }
        Ok(paths)
    }

    fn paths_needed(&self) -> Result<impl Iterator<Item = PathBuf>> {
        let paths = self.paths()?;
        if paths.is_empty() { Err(self.missing("file")) } else { Ok(paths.into_iter()) }
    }

    fn shell(&self) -> Result<Vec<Crossing>> {
        let directory = match self.first(DIRECTORIES) {
            Some(text) => self.place.path(text),
            None => self.place.directory.to_owned(),
        };
        let mut texts = self.texts(&["commands"])?;
        for key in COMMANDS {
            match self.members.get(*key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => texts.push(text.clone()),
                // One command in words, or several commands: both are read.
                Some(Value::Array(items)) => {
                    let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                    let words = words.ok_or_else(|| self.unclear(key))?;
                    texts.push(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
                    let several = words.iter().filter(|word| word.contains(' '));
                    texts.extend(several.map(|word| (*word).to_owned()));
                }
                Some(_) => return Err(self.unclear(key)),
            }
        }
        if texts.is_empty() {
            return Err(self.missing("command"));
        }
        Ok(texts
            .into_iter()
            .map(|text| Crossing::Command { text, directory: directory.clone() })
            .collect())
    }

    /// What is typed is a command if a shell listens; without a text nothing is typed.
    fn typed(&self) -> Result<Vec<Crossing>> {
        let directory = self.place.directory.to_owned();
        let texts = self.texts(TYPED)?.into_iter().chain(self.texts(COMMANDS)?);
        Ok(texts
            .filter(|text| !text.trim().is_empty())
            .map(|text| Crossing::Command { text, directory: directory.clone() })
            .collect())
    }

    fn read(&self, needed: bool) -> Result<Vec<Crossing>> {
        let mut paths = self.paths()?;
        if paths.is_empty() {
            if needed && self.first(URLS).is_none() {
                return Err(self.missing("file"));
            }
            paths.push(self.place.directory.to_owned());
        }
        let mut found: Vec<Crossing> =
            paths.into_iter().map(|path| Crossing::Read { path }).collect();
        found.extend(self.requests()?);
        Ok(found)
    }

    /// `whole`: all of the file is written, not a part of it.
    fn write(&self, whole: bool) -> Result<Vec<Crossing>> {
        let paths: Vec<PathBuf> = self.paths_needed()?.collect();
        let key = PATHS.iter().find(|key| self.members.contains_key(**key));
        let redirect = key.filter(|_| whole && paths.len() == 1).map(|key| (*key).to_owned());
        let content = match self.first(CONTENTS).filter(|_| whole) {
            Some(text) => text.to_owned(),
            None => self.other_texts(),
        };
        Ok(paths
            .into_iter()
            .map(|path| Crossing::Write {
                path,
                content: content.clone(),
                redirect: redirect.clone(),
            })
            .collect())
    }

    /// Every text that is put somewhere: all but paths and what is looked for.
    fn other_texts(&self) -> String {
        let old = ["old_string", "oldString", "old_str", "oldText", "description"];
        let mut texts = Vec::new();
        for (key, value) in self.members {
            if !PATHS.contains(&key.as_str()) && !old.contains(&key.as_str()) {
                texts.push(crate::result::text_of(value));
            }
        }
        texts.retain(|text| !text.is_empty());
        texts.join("\n")
    }

    /// One tool with several verbs.
    fn editor(&self) -> Result<Vec<Crossing>> {
        match self.first(&["command", "action"]) {
            Some("view" | "read" | "list") => self.read(true),
            Some("create" | "write") => self.write(true),
            _ => self.write(false),
        }
    }

    fn patch(&self) -> Result<Vec<Crossing>> {
        let text = self
            .first(&["command", "patch", "input", "patchText", "patch_text", "diff"])
            .ok_or_else(|| self.missing("patch"))?;
        let found = patch::crossings(text, self.place);
        if found.is_empty() { Err(self.missing("file to patch")) } else { Ok(found) }
    }

    fn moved(&self) -> Result<Vec<Crossing>> {
        let from = self.first(&["source", "from", "old_path", "oldPath", "path"]);
        let to = self.first(&["destination", "to", "new_path", "newPath", "target"]);
        match (from, to) {
            (Some(from), Some(to)) => {
                Ok(vec![Crossing::Rename { from: self.place.path(from), to: self.place.path(to) }])
            }
            _ => Err(self.missing("two files")),
        }
    }

    fn requests(&self) -> Result<Vec<Crossing>> {
        let urls = self.texts(URLS)?;
        Ok(urls
            .into_iter()
            .map(|url| Crossing::Request { url, method: "GET", body: None })
            .collect())
    }

    fn fetch(&self) -> Result<Vec<Crossing>> {
        let mut found = self.requests()?;
        if found.is_empty() {
            // Some name their addresses in a sentence.
            let text = self.other_texts();
            found.extend(guessed::addresses(&text));
        }
        if found.is_empty() { Err(self.missing("address")) } else { Ok(found) }
    }

    fn remember(&self) -> Vec<Crossing> {
        vec![Crossing::Write {
            path: self.place.path("MEMORY.md"),
            content: self.other_texts(),
            redirect: None,
        }]
    }
}

/// On whose behalf a tool speaks.
pub(crate) fn origin(tool: &str, input: Option<&Value>) -> Principal {
    match means(tool) {
        Means::Fetch => Principal::Web,
        Means::Nothing if tool.to_ascii_lowercase().contains("search") => Principal::Web,
        Means::Unknown => Principal::External,
        Means::Shell | Means::Type => {
            let text = input.map(crate::result::text_of).unwrap_or_default();
            let reaches = wardkeep_detect::effects::effects(&text).endpoints().next().is_some();
            if reaches { Principal::Web } else { Principal::Tool }
        }
        _ => Principal::Tool,
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
