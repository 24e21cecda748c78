//! From what the monitor says to what an agent is told.

use serde_json::Value;
use wardkeep_monitor::monitor::{AnswerBody, EventAnswer};

use crate::event::{Crossing, Event, Kind};
use crate::result;

/// What is answered to an event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// It may happen as it was asked.
    Allow(Leave),
    /// It may not happen.
    Deny {
        /// Why, and what to do next.
        reason: String,
    },
    /// It may not happen until the owner approves.
    Pending {
        /// Why, and what to do next.
        reason: String,
        /// What the owner approves it by.
        id: String,
    },
    /// It may happen with another input.
    Rewrite {
        /// The input.
        input: Value,
        /// What goes with it.
        leave: Leave,
    },
    /// The model may see this in the place of what the tool gave.
    Redact {
        /// In the shape of what the tool gave.
        result: Value,
        /// The same as a text.
        text: String,
        /// What goes with it.
        leave: Leave,
    },
}

/// That an event was judged and may happen, with what is to be told along with it. Only
/// [`Answer::of`] and [`Answer::noted`] make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    context: Vec<String>,
    messages: Vec<String>,
}

impl Leave {
    /// For the model; nothing, if there is nothing to tell.
    #[must_use]
    pub fn context(&self) -> Option<String> {
        let lines: Vec<&str> =
            self.context.iter().chain(&self.messages).map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n\n"))
    }

    /// For the user; nothing, if there is nothing to tell.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        (!self.messages.is_empty()).then(|| {
            self.messages
                .iter()
                .map(|text| format!("wardkeep: {text}"))
                .collect::<Vec<_>>()
                .join("\n")
        })
    }
}

impl Answer {
    /// A denial.
    #[must_use]
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }

    /// To an event that asks for nothing; a denial to any other.
    #[must_use]
    pub fn noted(event: &Event) -> Self {
        if event.question().is_none() && event.kind == Kind::Observed {
            return Self::Allow(Leave { context: Vec::new(), messages: Vec::new() });
        }
        Self::deny("wardkeep was not asked, so that it is denied")
    }

    /// What the monitor's answer to the event's question comes to.
    #[must_use]
    pub fn of(event: &Event, said: &EventAnswer) -> Self {
        if let Some(why) = &said.stopped
            && event.kind != Kind::SessionEnd
        {
            return Self::Deny {
                reason: with_messages(&format!("denied by wardkeep: {why}"), said),
            };
        }
        let parts = event.parts();
        let mut leave = Leave { context: Vec::new(), messages: said.messages.clone() };
        let mut input = None;
        let mut redacted = None;
        let mut pending: Option<&AnswerBody> = None;
        let mut answers = said.answers.iter();
        if parts.is_empty() {
            return Self::deny("wardkeep was asked nothing, so that it is denied");
        }
        for (_, crossing) in &parts {
            let Some(answer) = answers.next() else {
                return Self::deny("wardkeep gave no answer to all of it, so that it is denied");
            };
            match answer.verdict.as_str() {
                "allow" => {}
                "ask" => pending = pending.or(Some(answer)),
                "stage" => match redirected(event, *crossing, answer) {
                    Some(changed) if input.is_none() => {
                        leave.context.push(staged(answer));
                        input = Some(changed);
                    }
                    _ => return Self::Deny { reason: with_messages(&denial(answer), said) },
                },
                "redact" => match (&answer.text, *crossing) {
                    (Some(text), Some(Crossing::Result { .. })) => redacted = Some((text, answer)),
                    _ => return Self::Deny { reason: with_messages(&denial(answer), said) },
                },
                // What this program does not know is no leave.
                _ => return Self::Deny { reason: with_messages(&denial(answer), said) },
            }
        }
        if let Some(answer) = pending {
            let id: String = answer.record.chars().take(12).collect();
            let reason = format!(
                "held by wardkeep until the owner approves it: {} Approval {id}: the owner runs \
                 `wardkeep approvals approve {id}` in a terminal of their own; then try exactly the \
                 same again. Do not try to get around it.",
                sentence(&answer.reason)
            );
            return Self::Pending { reason: with_messages(&reason, said), id };
        }
        if event.kind == Kind::SessionStart {
            leave.context.extend(said.block.clone());
        }
        match (input, redacted) {
            (Some(input), _) => Self::Rewrite { input, leave },
            (None, Some((text, answer))) => {
                leave.context.push(format!(
                    "wardkeep withheld parts of this result: {} (record {:.12})",
                    sentence(&answer.reason),
                    answer.record
                ));
                let result = event.result.as_ref();
                let result = result.map_or_else(
                    || Value::String(text.clone()),
                    |result| result::with_text(result, text),
                );
                Self::Redact { text: result::text_of(&result), result, leave }
            }
            (None, None) => Self::Allow(leave),
        }
    }

    /// The reason, where it is no leave.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Deny { reason } | Self::Pending { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// The input that writes to the staging folder.
fn redirected(event: &Event, crossing: Option<&Crossing>, answer: &AnswerBody) -> Option<Value> {
    let Some(Crossing::Write { redirect: Some(key), .. }) = crossing else { return None };
    if !event.agent.rewrites_input() {
        return None;
    }
    let staged = answer.staged.as_ref()?.to_str()?;
    let Value::Object(mut members) = event.input.clone()? else { return None };
    let place = members.get_mut(key)?;
    *place = Value::String(staged.to_owned());
    Some(Value::Object(members))
}

fn staged(answer: &AnswerBody) -> String {
    let path = answer.staged.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    format!(
        "wardkeep: {} It was written to `{path}` instead; the owner sees it with `wardkeep diff` and \
         takes it over with `wardkeep apply`.",
        sentence(&answer.reason)
    )
}

fn denial(answer: &AnswerBody) -> String {
    let mut text = format!("denied by wardkeep: {}", sentence(&answer.reason));
    if let Some(next) = answer.suggestion.as_deref().filter(|next| !next.is_empty()) {
        text.push_str(" What to do: ");
        text.push_str(&sentence(next));
    }
    text.push_str(&format!(" (rule {}, record {:.12})", answer.rule, answer.record));
    text
}

fn with_messages(text: &str, said: &EventAnswer) -> String {
    let mut lines = vec![text.to_owned()];
    lines.extend(said.messages.iter().map(|message| format!("Tell the user: {message}")));
    lines.join("\n")
}

fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
