//! Which anchors there are: `anchors.json`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::anchor::shown;

const VERSION: u32 = 1;
const MAX_NAME_BYTES: usize = 32;
const MAX_ANCHORS: usize = 32;

/// The file as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    version: u32,
    pub(super) anchors: Vec<AnchorConfig>,
}

/// An anchor as its owner set it up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorConfig {
    /// A name of up to 32 lowercase letters, digits and dashes.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// Where an anchor is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Place {
    /// A file another user owns.
    File {
        /// Its absolute path.
        path: String,
    },
    /// A branch of a git remote.
    Git {
        /// The address of the remote.
        url: String,
        /// The branch, which holds nothing else.
        branch: String,
    },
    /// A witness.
    Witness {
        /// Its `http` address.
        url: String,
        /// Its verifier key.
        #[serde(rename = "vkey")]
        key: String,
    },
}

impl Place {
    /// What it is: `file`, `git` or `witness`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Git { .. } => "git",
            Self::Witness { .. } => "witness",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { version: VERSION, anchors: Vec::new() }
    }
}

impl Config {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        /// Read first, so that a newer file is refused for its version and not for its content.
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let malformed =
            |error: serde_json::Error| ConfigError::Format { reason: shown(&error.to_string()) };
        let Versioned { version } = serde_json::from_slice(bytes).map_err(malformed)?;
        if version != VERSION {
            return Err(ConfigError::Version { found: version });
        }
        let read: Self = serde_json::from_slice(bytes).map_err(malformed)?;
        let mut config = Self::default();
        read.anchors.into_iter().try_for_each(|anchor| config.add(anchor))?;
        Ok(config)
    }

    pub(super) fn add(&mut self, anchor: AnchorConfig) -> Result<(), ConfigError> {
        anchor.check()?;
        if self.find(&anchor.name).is_ok() {
            return Err(ConfigError::Doubled { name: anchor.name });
        }
        if self.anchors.len() >= MAX_ANCHORS {
            return Err(ConfigError::TooMany);
        }
        self.anchors.push(anchor);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), ConfigError> {
        self.find(name)?;
        self.anchors.retain(|anchor| anchor.name != name);
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> Result<&AnchorConfig, ConfigError> {
        let found = self.anchors.iter().find(|anchor| anchor.name == name);
        found.ok_or_else(|| ConfigError::Unknown { name: shown(name) })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.anchors.iter().map(|anchor| anchor.name.as_str())
    }
}

impl AnchorConfig {
    /// Refuses a name that is not one.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let is_known =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_known) {
            return Err(ConfigError::Name { name: shown(name) });
        }
        Ok(())
    }
}

/// Why the anchors are not set up well.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The file is not what we write.
    #[error(
        "`anchors.json` is malformed: {reason}; correct it, or remove it and add the anchors again"
    )]
    Format {
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of another version.
    #[error("`anchors.json` is of version {found}, this program reads version 1; update it")]
    Version {
        /// The version found.
        found: u32,
    },
    /// A name is not one.
    #[error("`{name}` is not a name for an anchor; use up to 32 of a-z, 0-9 and `-`")]
    Name {
        /// The beginning of the name.
        name: String,
    },
    /// Two anchors have one name.
    #[error("there is an anchor `{name}` already; choose another name, or remove it first")]
    Doubled {
        /// The name.
        name: String,
    },
    /// There is no such anchor.
    #[error("there is no anchor `{name}`; list the anchors to see their names")]
    Unknown {
        /// The beginning of the name.
        name: String,
    },
    /// There are too many.
    #[error("there are {MAX_ANCHORS} anchors already; remove one first")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> AnchorConfig {
        AnchorConfig { name: name.to_owned(), place: Place::File { path: "/a".to_owned() } }
    }

    #[test]
    fn the_file_is_stable_and_read_strictly() {
        let mut config = Config::default();
        config.add(file("a")).unwrap();
        let place = Place::Git { url: "/g".to_owned(), branch: "main".to_owned() };
        config.add(AnchorConfig { name: "b".to_owned(), place }).unwrap();
        let place = Place::Witness { url: "http://w".to_owned(), key: "k".to_owned() };
        config.add(AnchorConfig { name: "c".to_owned(), place }).unwrap();
        let text = serde_json::to_string(&config).unwrap();
        let expected = concat!(
            r#"{"version":1,"anchors":[{"name":"a","place":{"kind":"file","path":"/a"}},"#,
            r#"{"name":"b","place":{"kind":"git","url":"/g","branch":"main"}},"#,
            r#"{"name":"c","place":{"kind":"witness","url":"http://w","vkey":"k"}}]}"#
        );
        assert_eq!(text, expected);
        assert_eq!(Config::parse(text.as_bytes()), Ok(config));
        let bad = [
            String::new(),
            "{}".to_owned(),
            text.replace(r#""version":1,"#, ""),
            text.replace(r#""path":"/a""#, r#""path":"/a","mode":1"#),
            text.replace(r#""name":"a","#, r#""name":"a","x":1,"#),
            text.replace("\"file\"", "\"tape\""),
            text.replace("\"name\":\"a\"", "\"name\":\"b\""),
            text.replace("\"name\":\"a\"", "\"name\":\"../a\""),
        ];
        for text in bad {
            assert!(Config::parse(text.as_bytes()).is_err(), "{text}");
        }
        let newer = Config::parse(br#"{"version":2,"else":1}"#);
        assert_eq!(newer, Err(ConfigError::Version { found: 2 }));
    }

    #[test]
    fn names_are_plain_and_unique() {
        let mut config = Config::default();
        let long = "a".repeat(33);
        for name in ["", "A", "a b", "a/b", "..", "é", &long] {
            assert!(matches!(config.add(file(name)), Err(ConfigError::Name { .. })), "{name}");
        }
        config.add(file("a-1")).unwrap();
        assert!(matches!(config.add(file("a-1")), Err(ConfigError::Doubled { .. })));
        assert!(matches!(config.remove("b"), Err(ConfigError::Unknown { .. })));
        config.remove("a-1").unwrap();
        (0..MAX_ANCHORS).for_each(|index| config.add(file(&format!("{index}"))).unwrap());
        assert_eq!(config.add(file("more")), Err(ConfigError::TooMany));
    }
}
