//! Notices in a Telegram chat, by its bot API.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::http::{Client, refused};
use super::{Address, Failed, Kind, Notice, Retry, Way, text};

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest answer that is read.
const MAX_REPLY: usize = 2 << 20;
/// Most units of a message, below what the API takes.
const MAX_MESSAGE: usize = 4000;
/// Longest file with a token in it.
const MAX_TOKEN_FILE: u64 = 1024;

/// What a bot proves itself by. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// Why a token cannot be used. What the file holds is not in it.
#[derive(Debug, thiserror::Error)]
pub enum BadToken {
    /// The file cannot be read.
    #[error("it cannot be read ({})", .0.kind())]
    Unreadable(io::Error),
    /// Others may read or replace it.
    #[error("it must be a plain file of your own with mode 0600, and no link")]
    Open,
    /// It holds no token.
    #[error("it holds no token of a bot")]
    Malformed,
}

impl Token {
    /// Reads the token from a file of `owner` that nobody else may read.
    ///
    /// # Errors
    /// When it cannot be read, others could, or it holds no token.
    pub fn read(file: &Path, owner: u32) -> Result<Self, BadToken> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(i32::try_from(flags).unwrap_or_default());
        let open = options.open(file).map_err(|error| match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => BadToken::Open,
            _ => BadToken::Unreadable(error),
        })?;
        let found = open.metadata().map_err(BadToken::Unreadable)?;
        if !found.is_file() || found.uid() != owner || found.mode() & 0o7177 != 0 {
            return Err(BadToken::Open);
        }
        let mut text = String::new();
        open.take(MAX_TOKEN_FILE).read_to_string(&mut text).map_err(|_| BadToken::Malformed)?;
        Self::parse(text.trim_end_matches(['\n', '\r']))
    }

    fn parse(text: &str) -> Result<Self, BadToken> {
        let (number, secret) = text.split_once(':').ok_or(BadToken::Malformed)?;
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let sound = (1..=20).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (20..=200).contains(&secret.len())
            && secret.bytes().all(known);
        if sound { Ok(Self(text.to_owned())) } else { Err(BadToken::Malformed) }
    }
}

/// One chat, by one bot.
#[derive(Debug)]
pub struct Telegram {
    api: Address,
    token: Token,
    client: Client,
    pub(super) chat: i64,
    /// Whether the message says how to answer in the chat.
    answers: bool,
    patience: Duration,
}

impl Telegram {
    /// The chat `chat` of the bot with `token`, by the API at an address.
    ///
    /// # Errors
    /// When no connection can be made at all.
    pub fn new(api: Address, token: Token, chat: i64, answers: bool) -> io::Result<Self> {
        let client = Client::new(&api)?;
        Ok(Self { api, token, client, chat, answers, patience: PATIENCE })
    }

    /// With another limit of time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Calls a method, and gives its result.
    pub(super) fn call(
        &self,
        method: &str,
        asked: &Value,
        longer: Duration,
    ) -> Result<Value, Failed> {
        let address = self.api.below(&format!("/bot{}/{method}", self.token.0));
        let address = address.ok_or_else(|| Failed::new("it has no address", Retry::Never))?;
        let patience = self.patience + longer;
        let reply = self.client.post(&address, asked, patience, MAX_REPLY);
        let reply = reply.map_err(|failed| self.silent(failed))?;
        let mut document: Value = match serde_json::from_slice(&reply.body) {
            Ok(document) => document,
            Err(_) if !(200..300).contains(&reply.status) => return Err(refused(&reply)),
            Err(_) => {
                return Err(Failed::new("it answered with something else than JSON", Retry::Soon));
            }
        };
        if (200..300).contains(&reply.status) && document["ok"] == true {
            return Ok(document["result"].take());
        }
        let mut failed = refused(&reply);
        let wait = document["parameters"]["retry_after"].as_u64().map(Duration::from_secs);
        if let (429, Some(wait)) = (reply.status, wait) {
            failed.retry = Retry::After(wait);
        }
        if let Some(said) = document["description"].as_str() {
            failed.why = format!("{}: {}", failed.why, text::line(said, 120));
        }
        Err(self.silent(failed))
    }

    /// Takes the token out of a text, should the other side have put it there.
    fn silent(&self, mut failed: Failed) -> Failed {
        let secret = self.token.0.split_once(':').map_or(&*self.token.0, |(_, secret)| secret);
        failed.why = failed.why.replace(secret, "…");
        // A text that was cut may end in a part of it.
        if let Some(at) = failed.why.find(&secret[..secret.len().min(8)]) {
            failed.why.truncate(at);
        }
        failed
    }

    /// Says something in the chat, as it stands.
    pub(super) fn say(&self, said: &str) -> Result<(), Failed> {
        let mut message = Message::default();
        message.plain(said);
        self.deliver(&message)
    }

    fn deliver(&self, message: &Message) -> Result<(), Failed> {
        let asked = json!({
            "chat_id": self.chat, "text": message.text, "entities": message.entities,
            // Nobody fetches what an agent names.
            "link_preview_options": {"is_disabled": true},
        });
        self.call("sendMessage", &asked, Duration::ZERO).map(drop)
    }
}

impl Way for Telegram {
    fn name(&self) -> &'static str {
        "telegram"
    }

    fn send(&mut self, notice: &Notice) -> Result<(), Failed> {
        let mut message = Message::default();
        let mark = match notice.kind {
            Kind::Approval => "❓",
            Kind::Alert => "⚠️",
        };
        message.plain(&format!("{mark} {}\n", text::title(notice)));
        message.code(&text::body(notice));
        match &notice.code {
            Some(code) if self.answers => {
                message.plain("\nAnswer with ");
                message.code(&format!("approve {code}"));
                message.plain(" or ");
                message.code(&format!("deny {code}"));
            }
            _ if !notice.next.is_empty() => {
                message.plain("\n");
                message.code(&text::line(&notice.next, text::MAX_FACT));
            }
            _ => {}
        }
        self.deliver(&message)
    }
}

/// A message in which nothing becomes a link, a mention or a command that was not ours: such text stands
/// in the type for code, by its place and not by markup.
#[derive(Debug, Default)]
struct Message {
    text: String,
    units: usize,
    entities: Vec<Value>,
}

impl Message {
    fn plain(&mut self, text: &str) {
        for one in text.chars() {
            if self.units + one.len_utf16() > MAX_MESSAGE {
                return;
            }
            self.units += one.len_utf16();
            self.text.push(one);
        }
    }

    fn code(&mut self, text: &str) {
        let from = self.units;
        self.plain(text);
        if self.units > from {
            let length = self.units - from;
            self.entities.push(json!({"type": "code", "offset": from, "length": length}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_as_the_api_counts() {
        let mut message = Message::default();
        message.plain("❓ 𝄞");
        message.code("a𝄞");
        message.code("");
        assert_eq!(message.entities, [json!({"type": "code", "offset": 4, "length": 3})]);
        message.code(&"𝄞".repeat(5000));
        assert!(message.text.encode_utf16().count() <= MAX_MESSAGE);
    }

    #[test]
    fn a_token_has_one_form() {
        for text in [
            "",
            "1:",
            ":abcdefghijklmnopqrstuvwxyz",
            "x:abcdefghijklmnopqrstuvwxyz",
            "1:abc/../../abcdefghijklmnop",
            "1:abcdefghijklmnopqrst?x=y",
        ] {
            assert!(Token::parse(text).is_err(), "{text}");
        }
        let token = Token::parse("123:abcdefghijklmnop_qrs-T").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
