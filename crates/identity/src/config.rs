//! `soulguard.json`: which files are in which tier.

mod pattern;
mod tiers;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::Value;

pub use self::pattern::{MAX_PATTERN, Pattern};
pub(crate) use self::tiers::Cursor;
pub use self::tiers::{CONFIG_FILE, OWN_FOLDER, Tier, Tiers};
use crate::name::Name;

/// Largest configuration that is read, in bytes.
pub const MAX_CONFIG: usize = 256 << 10;
/// Most entries of all tiers together.
pub const MAX_ENTRIES: usize = 4096;

/// The protect tier of a new workspace, beside the settings of agents.
pub const DEFAULT_PROTECT: [&str; 5] =
    [CONFIG_FILE, "SOUL.md", "AGENTS.md", "IDENTITY.md", "HEARTBEAT.md"];
/// The watch tier of a new workspace.
pub const DEFAULT_WATCH: [&str; 2] = ["MEMORY.md", "memory/*.md"];

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is too long.
    #[error("`soulguard.json` is longer than {MAX_CONFIG} bytes: shorten it")]
    TooLong,
    /// It is no JSON object of the expected form.
    #[error("`soulguard.json` is not valid, line {line}, column {column}: {what}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// A member has a value it cannot have.
    #[error("`soulguard.json` is not valid: `{member}` {what}")]
    Member {
        /// Which one.
        member: &'static str,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// An entry of a tier is none.
    #[error("`soulguard.json` is not valid: the {} entry `{entry}`: {what}", tier.word())]
    Entry {
        /// In which tier.
        tier: Tier,
        /// The entry.
        entry: String,
        /// What is wrong, and what to write instead.
        what: &'static str,
    },
}

/// A configuration as it is written: members that are not known here stay as they are, in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    members: Members,
}

/// The members of an object, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Members(Vec<(String, Value)>);

/// How the tiers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `protect` and `watch`, with globs.
    Lists,
    /// `files`, each with its tier.
    Map,
}

impl Config {
    /// The configuration of a new workspace: the defaults, and the settings of agents that the
    /// caller names.
    #[must_use]
    pub fn new<'a>(settings: impl IntoIterator<Item = &'a str>) -> Self {
        let protect = DEFAULT_PROTECT.into_iter().chain(settings);
        let list = |entries: &mut dyn Iterator<Item = &str>| {
            Value::Array(entries.map(Value::from).collect())
        };
        let members = vec![
            ("version".to_owned(), Value::from(1)),
            ("protect".to_owned(), list(&mut protect.map(|entry: &str| entry))),
            ("watch".to_owned(), list(&mut DEFAULT_WATCH.into_iter())),
        ];
        Self { members: Members(members) }
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is none, with the place.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > MAX_CONFIG {
            return Err(ConfigError::TooLong);
        }
        let members: Members =
            serde_json::from_slice(bytes).map_err(|error| ConfigError::Syntax {
                line: error.line(),
                column: error.column(),
                what: plain(&error.to_string()),
            })?;
        let config = Self { members };
        config.check()?;
        Ok(config)
    }

    /// As it is written: two spaces, a newline at the end.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.members).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The tiers, ready to be asked.
    ///
    /// # Errors
    /// If an entry is none.
    pub fn tiers(&self) -> Result<Tiers, ConfigError> {
        let mut entries = Vec::new();
        for (tier, entry) in self.entries()? {
            let read = match self.form() {
                Form::Lists => Pattern::parse(entry),
                Form::Map => Pattern::literal(entry),
            };
            let pattern =
                read.map_err(|what| ConfigError::Entry { tier, entry: plain(entry), what })?;
            entries.push((tier, pattern));
        }
        Ok(Tiers::new(entries))
    }

    /// Whether history is kept.
    #[must_use]
    pub fn git(&self) -> bool {
        self.members.find("git") != Some(&Value::Bool(false))
    }

    /// Whether the configuration names itself.
    #[must_use]
    pub fn lists_itself(&self) -> bool {
        let own = |(tier, entry): &(Tier, &str)| *tier == Tier::Protect && *entry == CONFIG_FILE;
        self.entries().is_ok_and(|entries| entries.iter().any(own))
    }

    /// The entries of both tiers, in the order of the file.
    ///
    /// # Errors
    /// If a member has a value it cannot have.
    pub fn entries(&self) -> Result<Vec<(Tier, &str)>, ConfigError> {
        let mut entries = Vec::new();
        if self.form() == Form::Map {
            let files = match self.members.find("files") {
                Some(Value::Object(files)) => files,
                _ => return Err(wrong("files", "must be an object of paths and tiers")),
            };
            for (path, tier) in files {
                let tier = match tier.as_str() {
                    Some("protect") => Tier::Protect,
                    Some("watch") => Tier::Watch,
                    _ => return Err(wrong("files", "has a tier that is not `protect` or `watch`")),
                };
                entries.push((tier, path.as_str()));
            }
        } else {
            for (tier, member) in [(Tier::Protect, "protect"), (Tier::Watch, "watch")] {
                let list = match self.members.find(member) {
                    None => continue,
                    Some(Value::Array(list)) => list,
                    Some(_) => return Err(wrong(member, "must be a list of paths and globs")),
                };
                for entry in list {
                    let entry = entry.as_str().ok_or_else(|| wrong(member, "has no text in it"))?;
                    entries.push((tier, entry));
                }
            }
        }
        if entries.len() > MAX_ENTRIES {
            return Err(wrong("protect", "has too many entries: use globs"));
        }
        Ok(entries)
    }

    /// Puts a file, or a folder and all below it, in a tier, or in none; an entry that names it
    /// exactly moves. What other entries say of it holds on.
    ///
    /// # Errors
    /// If its name cannot be written in this form, or would make the configuration invalid.
    pub fn set(
        &mut self,
        name: &Name,
        folder: bool,
        tier: Option<Tier>,
    ) -> Result<(), ConfigError> {
        let form = self.form();
        let mut text = match form {
            Form::Lists => pattern::escape(name),
            Form::Map => str::from_utf8(name.as_bytes())
                .map_err(|_| wrong("files", "cannot hold a name that is no UTF-8: use `protect`"))?
                .to_owned(),
        };
        if folder {
            text.push('/');
        }
        let same = |entry: &str| {
            let read = match form {
                Form::Lists => Pattern::parse(entry),
                Form::Map => Pattern::literal(entry),
            };
            read.is_ok_and(|read| read.is_path() && read == Pattern::of(name))
        };
        if form == Form::Map {
            if let Value::Object(files) =
                self.members.make("files", Value::Object(Default::default()))
            {
                files.retain(|path, _| !same(path));
                if let Some(tier) = tier {
                    files.insert(text, Value::from(tier.word()));
                }
            }
        } else {
            for member in [Tier::Protect, Tier::Watch] {
                if let Value::Array(list) = self.members.make(member.word(), Value::Array(vec![])) {
                    list.retain(|entry| !entry.as_str().is_some_and(same));
                    if tier == Some(member) {
                        list.push(Value::from(text.as_str()));
                    }
                }
            }
        }
        self.check()
    }

    fn form(&self) -> Form {
        let is = |member| self.members.find(member).is_some();
        if is("files") && !is("protect") && !is("watch") { Form::Map } else { Form::Lists }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.members.find("version").and_then(Value::as_u64) != Some(1) {
            return Err(wrong("version", "must be 1"));
        }
        let is = |member| self.members.find(member).is_some();
        if is("files") && (is("protect") || is("watch")) {
            return Err(wrong(
                "files",
                "stands beside `protect` or `watch`: keep one of the forms",
            ));
        }
        if !is("files") && !is("protect") && !is("watch") {
            return Err(wrong("protect", "is missing: give at least an empty list"));
        }
        if !matches!(self.members.find("git"), None | Some(Value::Bool(_))) {
            return Err(wrong("git", "must be true or false"));
        }
        let own = |(tier, entry): &(Tier, &str)| *tier == Tier::Watch && *entry == CONFIG_FILE;
        if self.entries()?.iter().any(own) {
            return Err(wrong("watch", "has `soulguard.json`, which is always protected"));
        }
        self.tiers().map(|_| ())
    }
}

impl Members {
    fn find(&self, member: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == member).map(|(_, value)| value)
    }

    fn make(&mut self, member: &str, empty: Value) -> &mut Value {
        let at = self.0.iter().position(|(name, _)| name == member).unwrap_or_else(|| {
            self.0.push((member.to_owned(), empty));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            // Two members of one name: a reader sees the one, a program takes the other.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Value)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if members.iter().any(|(other, _)| *other == name) {
                        return Err(A::Error::custom(format!("`{name}` stands there twice")));
                    }
                    let value = if name == "files" {
                        let files: Members = map.next_value()?;
                        Value::Object(files.0.into_iter().collect())
                    } else {
                        map.next_value()?
                    };
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl serde::Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn wrong(member: &'static str, what: &str) -> ConfigError {
    ConfigError::Member { member, what: what.to_owned() }
}

/// What an agent wrote, fit for a line of text.
fn plain(text: &str) -> String {
    wardkeep_evidence::check::printable(text)
}

#[cfg(test)]
mod tests;
