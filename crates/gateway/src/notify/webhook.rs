//! Notices to an address of the owner's choice, as JSON.

use std::io;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::http::{Client, refused};
use super::{Address, Failed, Notice, Way, text};

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What comes back is not used.
const MAX_REPLY: usize = 64 << 10;

/// An address that takes notices.
#[derive(Debug)]
pub struct Webhook {
    address: Address,
    client: Client,
    patience: Duration,
}

impl Webhook {
    /// The webhook at an address.
    ///
    /// # Errors
    /// When no connection can be made at all.
    pub fn new(address: Address) -> io::Result<Self> {
        let client = Client::new(&address)?;
        Ok(Self { address, client, patience: PATIENCE })
    }

    /// With another limit of time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

impl Way for Webhook {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn send(&mut self, notice: &Notice) -> Result<(), Failed> {
        let facts: Map<String, Value> = text::facts(notice)
            .into_iter()
            .map(|(name, text)| (name.into(), text.into()))
            .collect();
        let title = text::title(notice);
        let whole = [&*title, &*text::body(notice), &*text::line(&notice.next, text::MAX_FACT)];
        let document = json!({
            "v": 1, "kind": notice.kind.as_str(), "title": title, "facts": facts,
            "code": notice.code, "severity": text::line(&notice.severity, 20),
            "text": whole.join("\n").trim_end(),
        });
        match self.client.post(&self.address, &document, self.patience, MAX_REPLY) {
            Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
            Ok(reply) => Err(refused(&reply)),
            Err(failed) => Err(failed),
        }
    }
}
