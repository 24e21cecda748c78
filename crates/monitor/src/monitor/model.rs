//! Calls of models that go through the model API proxy: what is new in them is decided and recorded,
//! and so is what became of them.
//!
//! Agents may not ask this: only whoever runs the proxy knows what went through it.

use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::alert::{Category, Severity};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;
use wardkeep_policy::audit::Source;

use super::content::shortened;
use super::pipeline::{Later, Taker};
use super::seen::Seen;
use super::{AskError, Monitor, Outcome, Refused, Result, Surroundings, Who, WhoBody, held};
use crate::store::Event;

/// The operation that a [`ModelBody`] is asked with.
pub const MODEL: &str = "model.ask";
/// Parents that a record names.
const PARENTS: usize = 32;
/// Rules that a record names.
const RULES: usize = 16;
/// Pieces of one request that are told at a time.
const PIECES: usize = 4096;

/// What the proxy asks or tells.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ModelBody {
    /// A request wants to go to a model.
    Request {
        /// On whose behalf, and in which session.
        who: WhoBody,
        /// Whether the session is to begin, where it has not.
        begin: bool,
        /// The session that it goes on from under another history.
        parent: Option<String>,
        /// The system prompt, where it is new.
        system: Option<String>,
        /// What is new in it.
        fresh: Vec<FreshBody>,
        /// The request itself; nothing where more of it follows.
        call: Option<CallBody>,
    },
    /// What became of a request that was allowed.
    Reply {
        /// On whose behalf.
        who: WhoBody,
        /// The record of the request.
        request: Option<String>,
        /// What it was.
        reply: Box<ReplyBody>,
    },
}

/// Something that the session has not seen.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FreshBody {
    /// The tool that gave it; nothing where the user said it.
    pub tool: Option<String>,
    /// On whose behalf the tool speaks.
    pub principal: Option<String>,
    /// The record of the call that it answers.
    pub call: Option<String>,
    /// What it says.
    pub text: String,
}

/// A request.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CallBody {
    /// Whose API.
    pub wire: String,
    /// Where it goes.
    pub upstream: String,
    /// The model that is asked for.
    pub model: Option<String>,
    /// Messages in it.
    pub messages: u64,
    /// Bytes as it came.
    pub size: u64,
    /// SHA-256 as it came, in hexadecimal.
    pub sha256: String,
    /// Records of what was told of it before.
    pub told: Vec<String>,
}

/// A reply.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyBody {
    /// The status.
    pub status: Option<u16>,
    /// Bytes that went out.
    pub sent: u64,
    /// SHA-256 of them.
    pub sent_sha256: String,
    /// Bytes that came back.
    pub received: u64,
    /// SHA-256 of what the agent got.
    pub shown_sha256: String,
    /// Texts of tool results that were marked.
    pub marked: u64,
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Why it ended, in the provider's word.
    pub stop: Option<String>,
    /// Tool calls that were let go.
    pub allowed: u64,
    /// Tool calls that were replaced.
    pub denied: u64,
    /// Places that were withheld.
    pub withheld: u64,
    /// The rules that found them.
    pub rules: Vec<String>,
    /// How it ended: `done`, `cut`, `failed` or `gone`.
    pub ended: String,
    /// Why, where it did not end well.
    pub why: Option<String>,
    /// Name of the kept body that went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
    /// Name of the kept body that the agent got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_body: Option<String>,
}

/// What is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct ModelAnswer {
    /// Why it may not go out, if it may not.
    pub denied: Option<Refused>,
    /// At the beginning of a session, and when the owner has signed another policy: what ends each call.
    pub block: Option<String>,
    /// Whether something in it looks like an attack.
    pub threat: bool,
    /// What stands in the place of fresh pieces, by their number.
    pub instead: Vec<(usize, String)>,
    /// Records of the fresh pieces.
    pub told: Vec<String>,
    /// The record of the request or reply.
    pub record: Option<String>,
    /// What the user must be told.
    pub messages: Vec<String>,
}

impl Monitor {
    /// Answers the proxy.
    ///
    /// # Errors
    /// When there is no answer: that is a denial.
    pub fn model(
        &self,
        asked: &ModelBody,
        whose: Surroundings,
    ) -> std::result::Result<ModelAnswer, AskError> {
        let (ModelBody::Request { who: body, .. } | ModelBody::Reply { who: body, .. }) = asked;
        let begins = matches!(asked, ModelBody::Request { begin: true, .. });
        let begins = begins.then_some(&body.workspace);
        self.act_in(&body.session, begins, &Seen::Same)?;
        let workspace = self.workspace_of(&body.session, &body.workspace)?;
        let who = Who::new(&body.agent, &body.session, &workspace, body.principal()?);
        match asked {
            ModelBody::Request { begin, parent, system, fresh, call, .. } => {
                if fresh.len() > PIECES {
                    let message = format!("more than {PIECES} pieces at once");
                    return Err(AskError::Malformed(message));
                }
                let mut answer = ModelAnswer::default();
                self.model_begin(&who, *begin, parent.as_deref(), whose, &mut answer)?;
                if answer.denied.is_some() {
                    return Ok(answer);
                }
                if self.begun(who.session)? == Some(true) {
                    answer.denied = Some(Refused {
                        rule: "model-no-policy".to_owned(),
                        reason: "the owner's policy is not valid and strict_policy is on: nothing \
                                 goes to a model until it is mended and signed (`wardkeep md status`)"
                            .to_owned(),
                    });
                    return Ok(answer);
                }
                if let Some(prompt) = system {
                    let _ = self.on_system_prompt_available(&who, prompt, None)?;
                }
                let later = Later::new(&self.store);
                let mut recorded =
                    self.model_taken(&who, fresh, call.as_ref(), &later, &mut answer);
                if let Err(error) = later.on_disk() {
                    recorded = recorded.and(Err(error.into()));
                }
                if recorded.is_err() {
                    // What was not written is not remembered either.
                    held(&self.sessions).forget(who.session);
                }
                recorded.map(|()| answer)
            }
            ModelBody::Reply { request, reply, .. } => {
                let request = request.as_ref().map(|id| id_of(id)).transpose()?;
                let record = self.model_replied(&who, request, reply)?;
                Ok(ModelAnswer { record: Some(record.to_string()), ..ModelAnswer::default() })
            }
        }
    }

    fn model_begin(
        &self,
        who: &Who<'_>,
        begin: bool,
        parent: Option<&str>,
        whose: Surroundings,
        answer: &mut ModelAnswer,
    ) -> Result<()> {
        // One that a rule kept from beginning has not begun, whatever the proxy remembers.
        if !begin && let Some(aborted) = self.begun(who.session)? {
            if !aborted {
                answer.block = self.signed_anew(who)?;
            }
            return Ok(());
        }
        let _beginning = held(&self.beginning);
        let begun = self.begin(who, "model-proxy", parent, Source::SessionStart, whose)?;
        answer.block = begun.block;
        answer.messages = begun.warnings;
        answer.denied =
            begun.refused.map(|reason| Refused { rule: begun.outcome.rule.clone(), reason });
        Ok(())
    }

    /// Decides about what is new in a request, and has all of it recorded with the request.
    fn model_taken(
        &self,
        who: &Who<'_>,
        fresh: &[FreshBody],
        call: Option<&CallBody>,
        later: &Later<'_>,
        answer: &mut ModelAnswer,
    ) -> std::result::Result<(), AskError> {
        let take = |event: Event<'_>| later.take(event);
        for (number, piece) in fresh.iter().enumerate() {
            self.model_fresh(who, (number, piece), &take, answer)?;
        }
        if let Some(call) = call {
            answer.record = Some(self.model_called(who, call, &take, answer)?.to_string());
        }
        Ok(())
    }

    fn model_fresh(
        &self,
        who: &Who<'_>,
        (number, piece): (usize, &FreshBody),
        take: Taker<'_>,
        answer: &mut ModelAnswer,
    ) -> std::result::Result<(), AskError> {
        let outcome = match &piece.tool {
            Some(tool) => {
                let principal = match &piece.principal {
                    Some(name) => {
                        let unknown = |error: wardkeep_evidence::record::UnknownName| {
                            AskError::Malformed(error.to_string())
                        };
                        name.parse().map_err(unknown)?
                    }
                    None => Principal::Tool,
                };
                let call = piece.call.as_ref().map(|id| id_of(id)).transpose()?;
                self.tool_result(&who.on_behalf_of(principal), tool, call, &piece.text, Some(take))?
            }
            None => self.message_input(who, &piece.text, Some(take))?,
        };
        answer.threat |= outcome.taint.intersects(Taint::INJECTION_SUSPECT);
        answer.messages.extend(outcome.alerts.iter().map(|alert| alert.message.clone()));
        let record = outcome.record;
        match outcome.verdict {
            Verdict::Allow => {}
            Verdict::Redact => {
                let text = outcome.text.unwrap_or_else(|| withheld("it was found to be unsafe"));
                answer.instead.push((number, text));
            }
            Verdict::Deny | Verdict::Ask | Verdict::Stage => {
                answer.instead.push((number, withheld(&outcome.reason)));
                if piece.tool.is_none() && answer.denied.is_none() {
                    answer.denied = Some(refused(outcome));
                }
            }
        }
        answer.told.push(record.to_string());
        Ok(())
    }

    fn model_called(
        &self,
        who: &Who<'_>,
        call: &CallBody,
        take: Taker<'_>,
        answer: &ModelAnswer,
    ) -> Result<RecordId> {
        let content = Object::from([
            ("kind", Value::from("model-request")),
            ("v", Value::from(1u64)),
            ("wire", Value::from(shortened(&call.wire))),
            ("upstream", Value::from(shortened(&call.upstream))),
            ("model", call.model.as_deref().map_or(Value::Null, |one| Value::from(shortened(one)))),
            ("messages", Value::from(call.messages)),
            ("bytes", Value::from(call.size)),
            ("sha256", Value::from(shortened(&call.sha256))),
            ("fresh", Value::from((call.told.len() + answer.told.len()) as u64)),
            ("withheld", Value::from(answer.instead.len() as u64)),
            ("denied", Value::from(answer.denied.is_some())),
        ]);
        let told = call.told.iter().chain(&answer.told).rev().take(PARENTS);
        let parents = told.filter_map(|id| RecordId::from_hex(id)).collect();
        self.model_record(who, content, parents, Some(take))
    }

    fn model_replied(
        &self,
        who: &Who<'_>,
        request: Option<RecordId>,
        reply: &ReplyBody,
    ) -> Result<RecordId> {
        let number = |value: Option<u64>| value.map_or(Value::Null, Value::from);
        let text = |value: &Option<String>| {
            value.as_deref().map_or(Value::Null, |value| Value::from(shortened(value)))
        };
        let rules: Vec<Value<'static>> =
            reply.rules.iter().take(RULES).map(|rule| Value::from(shortened(rule))).collect();
        let mut content = Object::from([
            ("kind", Value::from("model-reply")),
            ("v", Value::from(1u64)),
            ("status", number(reply.status.map(u64::from))),
            ("sent", Value::from(reply.sent)),
            ("sent_sha256", Value::from(shortened(&reply.sent_sha256))),
            ("received", Value::from(reply.received)),
            ("shown_sha256", Value::from(shortened(&reply.shown_sha256))),
            ("marked", Value::from(reply.marked)),
            ("model", text(&reply.model)),
            ("input_tokens", number(reply.input_tokens)),
            ("output_tokens", number(reply.output_tokens)),
            ("stop", text(&reply.stop)),
            ("allowed", Value::from(reply.allowed)),
            ("denied", Value::from(reply.denied)),
            ("withheld", Value::from(reply.withheld)),
            ("rules", Value::Array(rules)),
            ("ended", Value::from(shortened(&reply.ended))),
            ("why", text(&reply.why)),
        ]);
        for (key, body) in
            [("request_body", &reply.request_body), ("reply_body", &reply.reply_body)]
        {
            if body.is_some() {
                content.set(key, text(body));
            }
        }
        let parents = request.into_iter().filter(|id| *id != RecordId::ZERO).collect();
        let record = self.model_record(who, content, parents, None)?;
        if reply.withheld > 0 {
            let message = format!(
                "a reply of the model in session {} was to say what it must not ({}): {} places were \
                 withheld",
                who.session,
                reply
                    .rules
                    .iter()
                    .take(4)
                    .map(|rule| shortened(rule))
                    .collect::<Vec<_>>()
                    .join(", "),
                reply.withheld
            );
            let kind = (Category::Leakage, Severity::High);
            let _ = self.alert(who, "OutputLeak", kind, message, None, Some(record))?;
        }
        Ok(record)
    }

    fn model_record(
        &self,
        who: &Who<'_>,
        content: Object<'static>,
        parents: Vec<RecordId>,
        take: Option<Taker<'_>>,
    ) -> Result<RecordId> {
        let workspace = who.workspace.to_string_lossy();
        let mut event =
            Event::new(RecordType::GuardDecision, Principal::Sys, Value::Object(content));
        event.agent = who.agent;
        event.session = who.session;
        event.workspace = &workspace;
        event.parents = parents;
        match take {
            Some(take) => take(event),
            None => Ok(self.store.append(event)?.id),
        }
    }
}

fn id_of(id: &str) -> std::result::Result<RecordId, AskError> {
    RecordId::from_hex(id).ok_or_else(|| AskError::Malformed(format!("`{id}` is no record id")))
}

fn withheld(why: &str) -> String {
    format!("[withheld by wardkeep: {why}]")
}

fn refused(outcome: Outcome) -> Refused {
    let reason = match outcome.suggestion {
        Some(next) => format!("{} {next}", outcome.reason),
        None => outcome.reason,
    };
    Refused { rule: outcome.rule, reason }
}
