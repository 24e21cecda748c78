//! Answers that come back by the chat.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CODE_DIGITS, Failed, Retry, Telegram};

/// How long the API holds a question that has no answer yet, in seconds.
const HOLD: u64 = 25;
/// Updates at a time.
const BATCH: u64 = 10;
/// How far the clocks of two machines may differ, in seconds.
const SKEW: i64 = 120;
/// Pauses after failures.
const PAUSES: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// Longest pause that is asked for and kept.
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// Replies in a minute; what is beyond is not replied to.
const MAX_REPLIES: usize = 20;
/// Longest text that can be an answer.
const MAX_TEXT: usize = 64;

/// An answer: it names the request by its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Yes, once.
    Approve(String),
    /// No.
    Deny(String),
}

/// What a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// An answer.
    Answer(Said),
    /// It begins like one, and is none.
    Malformed,
    /// Something else.
    Other,
}

/// Reads a text: `approve CODE` or `deny CODE`, and nothing fuzzier but for a capital first letter, which
/// telephones put there.
#[must_use]
pub fn read(text: &str) -> Read {
    let text = text.trim_matches([' ', '\n']);
    let (word, code) = text.split_once(' ').unwrap_or((text, ""));
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let sound = text.len() <= MAX_TEXT && code.len() == CODE_DIGITS && code.bytes().all(digit);
    match word {
        "approve" | "Approve" if sound => Read::Answer(Said::Approve(code.to_owned())),
        "deny" | "Deny" if sound => Read::Answer(Said::Deny(code.to_owned())),
        _ => {
            let begins = |word: &str| {
                text.get(..word.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(word))
            };
            if begins("approve") || begins("deny") { Read::Malformed } else { Read::Other }
        }
    }
}

/// What an update comes to.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    Answer(Said),
    /// Of the owner, and not taken.
    Refused(&'static str),
    /// Of somebody else, or nothing to answer.
    Ignored,
}

/// Listens to one person in one chat.
#[derive(Debug)]
pub struct Listener {
    telegram: Telegram,
    user: i64,
    /// Messages before it do not count.
    since: i64,
    /// The update that comes next; none before the old ones were thrown away.
    next: Option<i64>,
    failures: usize,
    replies: VecDeque<Instant>,
}

impl Listener {
    /// Listens to the user `user`; what was said before `since` (seconds of the epoch) is dropped.
    #[must_use]
    pub fn new(telegram: Telegram, user: i64, since: i64) -> Self {
        Self { telegram, user, since, next: None, failures: 0, replies: VecDeque::new() }
    }

    /// Waits for messages once, and has each answer dealt with: `answer` gives what is replied. Says how
    /// long to pause before the next time, and what went wrong.
    pub fn listen(
        &mut self,
        answer: &mut dyn FnMut(&Said) -> String,
    ) -> Result<(), (Duration, Failed)> {
        let result = match self.next {
            None => self.forget(),
            Some(next) => self.take(next, answer),
        };
        match result {
            Ok(()) => {
                self.failures = 0;
                Ok(())
            }
            Err(failed) => {
                let usual = PAUSES[self.failures.min(PAUSES.len() - 1)];
                self.failures = self.failures.saturating_add(1);
                let pause = Duration::from_secs(usual);
                let pause = match failed.retry {
                    Retry::After(wait) => wait.min(MAX_PAUSE).max(pause),
                    Retry::Soon => pause,
                    // A token that was taken back, or another who listens: now and then is enough.
                    Retry::Never => Duration::from_secs(30),
                };
                Err((pause, failed))
            }
        }
    }

    /// Throws away what came before: the newest update, once confirmed, takes the rest along.
    fn forget(&mut self) -> Result<(), Failed> {
        let newest = self.updates(-1, 1, 0)?.last().map(|(id, _)| *id);
        self.next = Some(newest.map_or(0, |id| id.saturating_add(1)));
        Ok(())
    }

    fn take(&mut self, next: i64, answer: &mut dyn FnMut(&Said) -> String) -> Result<(), Failed> {
        for (id, update) in self.updates(next, BATCH, HOLD)? {
            if self.next.is_some_and(|next| id < next) {
                continue;
            }
            // Before it is dealt with: none is dealt with twice.
            self.next = Some(id.saturating_add(1));
            let reply = match self.judge(&update) {
                Judged::Answer(said) => answer(&said),
                Judged::Refused(why) => why.to_owned(),
                Judged::Ignored => continue,
            };
            if self.may_reply() {
                // The answer counts, whether the reply arrives or not.
                let _ = self.telegram.say(&reply);
            }
        }
        Ok(())
    }

    fn updates(&self, offset: i64, limit: u64, hold: u64) -> Result<Vec<(i64, Value)>, Failed> {
        let asked = json!({
            "offset": offset, "limit": limit, "timeout": hold,
            "allowed_updates": ["message", "edited_message"],
        });
        let result = self.telegram.call("getUpdates", &asked, Duration::from_secs(hold))?;
        let Value::Array(updates) = result else {
            return Err(Failed::new("it answered with no updates", Retry::Soon));
        };
        let mut updates: Vec<(i64, Value)> = updates
            .into_iter()
            .filter_map(|update| Some((update["update_id"].as_i64()?, update)))
            .collect();
        updates.sort_by_key(|(id, _)| *id);
        Ok(updates)
    }

    fn judge(&self, update: &Value) -> Judged {
        let edited = &update["edited_message"];
        let message = if edited.is_object() { edited } else { &update["message"] };
        let sender = &message["from"];
        let owner = message["chat"]["id"].as_i64() == Some(self.telegram.chat)
            && sender["id"].as_i64() == Some(self.user)
            && sender["is_bot"] == false
            // In the name of a chat, or of nobody.
            && message["sender_chat"].is_null();
        let text = message["text"].as_str().unwrap_or_default();
        let read = read(text);
        if !owner || read == Read::Other {
            return Judged::Ignored;
        }
        if message["date"].as_i64().is_none_or(|date| date < self.since - SKEW) {
            return Judged::Ignored;
        }
        if edited.is_object() {
            return Judged::Refused("Not taken: an edited message does not count. Send a new one.");
        }
        let others = [
            "forward_origin",
            "forward_date",
            "forward_from",
            "forward_from_chat",
            "forward_sender_name",
            "is_automatic_forward",
            "via_bot",
            "sender_business_bot",
        ];
        if others.iter().any(|key| !message[*key].is_null()) {
            return Judged::Refused("Not taken: write the answer yourself.");
        }
        match read {
            Read::Answer(said) => Judged::Answer(said),
            _ => Judged::Refused(
                "Not taken: write `approve CODE` or `deny CODE`, with the code of the notice.",
            ),
        }
    }

    fn may_reply(&mut self) -> bool {
        let now = Instant::now();
        let minute = Duration::from_secs(60);
        self.replies.retain(|at| now.duration_since(*at) < minute);
        if self.replies.len() >= MAX_REPLIES {
            return false;
        }
        self.replies.push_back(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODE: &str = "0123456789ab";

    #[test]
    fn only_the_whole_words_and_the_whole_code_are_an_answer() {
        let code = CODE.to_owned();
        assert_eq!(read("approve 0123456789ab"), Read::Answer(Said::Approve(code.clone())));
        assert_eq!(read(" Deny 0123456789ab\n"), Read::Answer(Said::Deny(code)));
        for text in [
            "approve",
            "approve ",
            "approve 0123456789a",
            "approve 0123456789abc",
            "approve  0123456789ab",
            "approve 0123456789AB",
            "APPROVE 0123456789ab",
            "approve\u{a0}0123456789ab",
            "approve 0123456789ab!",
            "approve 0123456789ab please",
            "approved 0123456789ab",
            "approve 0123456789\u{430}b",
            "approve 0123456789ab\napprove 0123456789ac",
            "approve \u{202e}0123456789ab",
            "deny all",
        ] {
            assert_eq!(read(text), Read::Malformed, "{text:?}");
        }
        for text in [
            "",
            "yes",
            "ok",
            "do not approve 0123456789ab",
            "/approve 0123456789ab",
            "0123456789ab",
            "\u{200b}approve 0123456789ab",
        ] {
            assert_eq!(read(text), Read::Other, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_other_text_is_an_answer(text in any::<String>()) {
            if let Read::Answer(said) = read(&text) {
                let (word, code) = match &said {
                    Said::Approve(code) => ("pprove", code),
                    Said::Deny(code) => ("eny", code),
                };
                let trimmed = text.trim_matches([' ', '\n']);
                prop_assert_eq!(&trimmed[1..], format!("{word} {code}"));
            }
        }
    }
}
