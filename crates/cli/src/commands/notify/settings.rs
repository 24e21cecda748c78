//! `[notify]` of the owner's configuration.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use wardkeep_gateway::notify::{Address, Token};
use wardkeep_policy::config::Config;
use wardkeep_policy::signed_set::SetState;
use wardkeep_policy::store::{CONFIG_FILE, PolicyStore};

use crate::error::CliError;
use crate::exit::Exit;

/// Where the API of Telegram is.
const API: &str = "https://api.telegram.org";
/// Notices of a kind in a minute, unless told otherwise; and the most that may be asked for.
const PER_MINUTE: u32 = 10;
const MOST_PER_MINUTE: u32 = 60;

/// By which ways the owner hears, and may answer.
#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) desktop: bool,
    pub(super) webhook: Option<Address>,
    pub(super) telegram: Option<Chat>,
    /// Notices of a kind in a minute.
    pub(super) per_minute: u32,
}

/// One person in one chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chat {
    pub(super) api: Address,
    pub(super) token: Token,
    pub(super) chat: i64,
    /// Whose answers count, if any do.
    pub(super) answers: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Section {
    desktop: bool,
    webhook: Option<String>,
    webhook_plain: bool,
    per_minute: Option<u32>,
    telegram: Option<ChatSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChatSection {
    token_file: PathBuf,
    chat: i64,
    user: Option<i64>,
    #[serde(default)]
    answers: bool,
    api: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parts {
    notify: Section,
}

impl Settings {
    /// Reads it. What is not signed is not used: it could send what agents do to anybody, and let anybody
    /// answer.
    pub(super) fn load(state: &Path) -> Result<Self, CliError> {
        let owner = rustix::process::geteuid().as_raw();
        let set = PolicyStore::new(state, owner).settings().set;
        let Some(bytes) = set.files.get(CONFIG_FILE) else { return Err(nowhere()) };
        if set.state != SetState::Valid {
            return Err(CliError::refused(
                "config.toml is not as it was signed, so that its `[notify]` part is not used",
                "look at it with `wardkeep config show`, then sign it with `wardkeep config sign`",
            ));
        }
        let config = Config::parse(bytes).map_err(|error| malformed(&error.to_string()))?;
        let parts: Result<Parts, _> = toml::Value::Table(config.rest).try_into();
        let section = parts.map_err(|error| malformed(error.message()))?.notify;
        let webhook =
            section.webhook.as_deref().map(|url| address(url, section.webhook_plain, "webhook"));
        let settings = Self {
            desktop: section.desktop,
            webhook: webhook.transpose()?,
            telegram: section.telegram.map(|chat| Chat::read(chat, owner)).transpose()?,
            per_minute: section.per_minute.unwrap_or(PER_MINUTE).clamp(1, MOST_PER_MINUTE),
        };
        if !settings.desktop && settings.webhook.is_none() && settings.telegram.is_none() {
            return Err(nowhere());
        }
        Ok(settings)
    }
}

impl Chat {
    fn read(section: ChatSection, owner: u32) -> Result<Self, CliError> {
        let ChatSection { token_file, chat, user, answers, api } = section;
        let answers = match (answers, user) {
            (false, _) => None,
            (true, Some(user)) => Some(user),
            (true, None) => return Err(malformed("`answers` needs `user`: whose answers count")),
        };
        if !token_file.is_absolute() {
            return Err(malformed("`token_file` must begin with `/`"));
        }
        let token = Token::read(&token_file, owner).map_err(|error| {
            let message = format!("the token in `{}` is not used: {error}", token_file.display());
            CliError::new(Exit::Unreadable, message, "put the bot's token there, then chmod 600")
        })?;
        let api = address(api.as_deref().unwrap_or(API), false, "api")?;
        Ok(Self { api, token, chat, answers })
    }
}

fn address(url: &str, plain: bool, key: &str) -> Result<Address, CliError> {
    // The address is not repeated: whoever has that of a webhook can send to it.
    Address::parse(url, plain).map_err(|error| malformed(&format!("`{key}`: {error}")))
}

fn nowhere() -> CliError {
    CliError::refused(
        "nothing says where notices go",
        "put `[notify]` with `desktop = true`, `webhook` or `[notify.telegram]` into the config with `wardkeep config edit`",
    )
}

fn malformed(why: &str) -> CliError {
    CliError::new(
        Exit::Unreadable,
        format!("the `[notify]` part of config.toml cannot be used: {why}"),
        "mend it with `wardkeep config edit`",
    )
}
