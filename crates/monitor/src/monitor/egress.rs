//! Requests that leave through the egress proxy: decided, recorded, and what became of them. And names that a
//! confined program wants to make, and files that it wants to read, which only its owner can allow.
//!
//! Agents may not ask this: only whoever runs the proxy and the program knows what they want.

use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::action::Action;
use wardkeep_guard::network;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::verdict::Verdict;

use super::content::shortened;
use super::hooks::file_action;
use super::pipeline::{Crossing, Later, Taker};
use super::seen::Seen;
use super::settings::Settings;
use super::subjects::Deed;
use super::{AskError, Monitor, Outcome, Result, Sent, Who, WhoBody, held};
use crate::store::Event;

/// The operation that an [`EgressBody`] is asked with.
pub const EGRESS: &str = "egress.ask";
/// The operation that an [`EgressSeveral`] is asked with.
pub const EGRESS_SEVERAL: &str = "egress.several";
/// Questions that may be put together.
pub const SEVERAL: usize = 64;
/// Addresses of one request that are written down.
const ADDRESSES: usize = 8;

/// What the proxy asks or tells.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(tag = "egress", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum EgressBody {
    /// A request wants to leave.
    Request {
        /// On whose behalf, and in which session.
        who: WhoBody,
        /// Where to; empty where it cannot be told.
        url: String,
        /// How.
        method: String,
        /// By which way it came to the proxy.
        way: String,
        /// Bytes that are sent, as far as it is known.
        size: u64,
        /// Those bytes, as text, as far as they are at hand.
        content: Option<String>,
        /// The addresses that it will be sent to.
        addresses: Vec<IpAddr>,
        /// Why the proxy refuses it, if it does.
        refused: Option<Refused>,
    },
    /// May a name be looked up? Nothing is recorded.
    Screen {
        /// On whose behalf.
        who: WhoBody,
        /// Where to.
        url: String,
        /// How.
        method: String,
    },
    /// A host that no rule names: may it be reached? Only the owner can say so.
    Ask {
        /// On whose behalf.
        who: WhoBody,
        /// The host, as a URL without path.
        url: String,
    },
    /// A protected name that a confined program wants to make: may it? Only the owner can say so.
    Name {
        /// On whose behalf.
        who: WhoBody,
        /// The name, absolute.
        path: String,
        /// Whether it is a folder.
        folder: bool,
        /// What is called, and what speaks against it.
        why: String,
    },
    /// A file that a confined program wants to read and that is not shown to it: may it? Only the owner can say so.
    Read {
        /// On whose behalf.
        who: WhoBody,
        /// The file, absolute, without links.
        path: String,
        /// Who opens it, and what speaks against it.
        why: String,
    },
    /// What became of a request that was allowed.
    Outcome {
        /// On whose behalf.
        who: WhoBody,
        /// The record of the request.
        request: Option<String>,
        /// Bytes that went out.
        sent: u64,
        /// Bytes that came back.
        received: u64,
        /// The status of the answer, where it can be read.
        status: Option<u16>,
        /// The address that it was sent to.
        address: Option<IpAddr>,
        /// How it ended: `done`, `cut` or `failed`.
        ended: String,
        /// By which rule it was cut, and why; or why it failed.
        why: Option<Refused>,
        /// How long it took, in milliseconds.
        took: u64,
    },
}

/// Several questions, up to [`SEVERAL`]: what they lead to is written down with one flush.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EgressSeveral {
    /// The questions.
    pub all: Vec<EgressBody>,
}

/// The answers to [`EgressSeveral`], one for each and in that order.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct EgressAnswers {
    /// The answers; where there is none, why. That is a denial.
    pub all: Vec<std::result::Result<EgressAnswer, String>>,
}

/// A rule, and why.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The rule.
    pub rule: String,
    /// Why.
    pub reason: String,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct EgressAnswer {
    /// Whether it may leave, or be looked up.
    pub allowed: bool,
    /// The rule that decided.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// What to do next.
    pub suggestion: Option<String>,
    /// The record of it.
    pub record: Option<String>,
    /// Whether the owner is asked, and may still say yes.
    #[serde(default)]
    pub pending: bool,
    /// How much may be sent where nobody could say before how much it is.
    #[serde(default)]
    pub payload: Option<Payload>,
}

/// How much a request may carry, by `max_payload_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Payload {
    /// So many bytes.
    pub most: u64,
    /// Whether the owner has set it. Then it holds for tunnels, too, which carry many requests.
    pub set: bool,
}

impl EgressBody {
    /// On whose behalf it is asked.
    fn who(&self) -> &WhoBody {
        let (Self::Request { who, .. }
        | Self::Screen { who, .. }
        | Self::Ask { who, .. }
        | Self::Name { who, .. }
        | Self::Read { who, .. }
        | Self::Outcome { who, .. }) = self;
        who
    }
}

impl Monitor {
    /// Answers the proxy.
    ///
    /// # Errors
    /// When there is no answer: that is a denial.
    pub fn egress(&self, asked: &EgressBody) -> std::result::Result<EgressAnswer, AskError> {
        let session = asked.who().session.as_str();
        self.metered_runs(&[session], || self.egress_within(asked, &self.settings(), None))
    }

    /// Answers several questions of the proxy. Nothing is answered before all of it is on disk.
    ///
    /// # Errors
    /// When there are too many, or what was decided could not be written: that is a denial of all.
    pub fn egress_several(
        &self,
        asked: &EgressSeveral,
    ) -> std::result::Result<EgressAnswers, AskError> {
        if asked.all.len() > SEVERAL {
            return Err(AskError::Malformed(format!("more than {SEVERAL} questions at once")));
        }
        let sessions: Vec<&str> = asked.all.iter().map(|one| one.who().session.as_str()).collect();
        self.metered_runs(&sessions, || self.egress_together(asked))
    }

    fn egress_together(
        &self,
        asked: &EgressSeveral,
    ) -> std::result::Result<EgressAnswers, AskError> {
        let later = Later::new(&self.store);
        let take = |event: Event<'_>| later.take(event);
        let settings = self.settings();
        let answered = asked.all.iter().map(|one| self.egress_within(one, &settings, Some(&take)));
        let all = answered.map(|one| one.map_err(|error| error.to_string())).collect();
        if let Err(error) = later.on_disk() {
            // What was not written is not remembered either.
            for one in &asked.all {
                held(&self.sessions).forget(&one.who().session);
            }
            return Err(error.into());
        }
        Ok(EgressAnswers { all })
    }

    /// Answers a question as far as the share of its run goes. What became of what was allowed is always written: without
    /// it the record would say less than happened, and there is one for each request at most.
    fn egress_within(
        &self,
        asked: &EgressBody,
        settings: &Settings,
        taker: Option<Taker<'_>>,
    ) -> std::result::Result<EgressAnswer, AskError> {
        let free = matches!(asked, EgressBody::Outcome { .. } | EgressBody::Screen { .. });
        if !free && self.is_run_spent(&asked.who().session) {
            return Ok(spent());
        }
        self.egress_taken(asked, settings, taker)
    }

    fn egress_taken(
        &self,
        asked: &EgressBody,
        settings: &Settings,
        taker: Option<Taker<'_>>,
    ) -> std::result::Result<EgressAnswer, AskError> {
        let body = asked.who();
        self.act_in(&body.session, None, &Seen::Same)?;
        let who = Who::new(&body.agent, &body.session, &body.workspace, body.principal()?);
        match asked {
            EgressBody::Request { url, method, way, size, content, addresses, refused, .. } => {
                let content = content.as_ref().map(String::as_bytes);
                let sent = Sent { size: *size, content };
                let refused = refused.as_ref();
                let by = (settings, taker);
                Ok(self.leave(&who, (url, method, way), sent, addresses, refused, by)?)
            }
            EgressBody::Screen { url, method, .. } => Ok(screen(&who, url, method, settings)),
            EgressBody::Ask { url, .. } => Ok(self.ask_owner(&who, url, settings)?),
            EgressBody::Name { path, folder, why, .. } => {
                Ok(self.ask_name(&who, path, *folder, why)?)
            }
            EgressBody::Read { path, why, .. } => Ok(self.ask_read(&who, path, why)?),
            EgressBody::Outcome { request, .. } => {
                let request = request
                    .as_ref()
                    .map(|id| {
                        let why = || AskError::Malformed(format!("`{id}` is no record id"));
                        RecordId::from_hex(id).ok_or_else(why)
                    })
                    .transpose()?;
                let record = self.left(&who, request, asked, taker)?;
                Ok(EgressAnswer {
                    allowed: true,
                    rule: "egress-outcome".to_owned(),
                    reason: "It was written down.".to_owned(),
                    suggestion: None,
                    record: Some(record.to_string()),
                    pending: false,
                    payload: None,
                })
            }
        }
    }

    fn leave(
        &self,
        who: &Who<'_>,
        (url, method, way): (&str, &str, &str),
        sent: Sent<'_>,
        addresses: &[IpAddr],
        refused: Option<&Refused>,
        by: (&Settings, Option<Taker<'_>>),
    ) -> Result<EgressAnswer> {
        let mut refused =
            refused.map(|refused| (shortened(&refused.rule), shortened(&refused.reason)));
        if self.begun(who.session)? == Some(true) {
            let reason = "the owner's policy is not valid and strict_policy is on: nothing leaves \
                          until it is mended and signed (`wardkeep md status`)";
            refused.get_or_insert(("egress-no-policy".to_owned(), reason.to_owned()));
        }
        let outcome = self.outbound(who, url, method, sent, by, |crossing| {
            if let Some(facts) = crossing.action.network.take() {
                let facts = network::resolved_to(facts, addresses, &by.0.egress);
                crossing.action.network = Some(facts);
            }
            crossing.refused = refused;
            crossing.apart = true;
            crossing.more.push(("way", Value::from(shortened(way))));
            let written = addresses.iter().take(ADDRESSES);
            let written = written.map(|address| Value::from(address.to_string())).collect();
            crossing.more.push(("addresses", Value::Array(written)));
        })?;
        let payload = Payload { most: by.0.egress.max_payload(), set: by.0.payload_set };
        let mut answer = EgressAnswer { payload: Some(payload), ..answer(outcome) };
        if answer.rule == "net-ask-oversized" {
            // An approval is of exactly so much; whoever sends much sends more than once.
            let more = super::pipeline::network_suggestion("net-deny-oversized");
            let next = answer.suggestion.map_or_else(String::new, |next| format!("{next}; or "));
            answer.suggestion = Some(format!("{next}{more}"));
        }
        Ok(answer)
    }

    /// Asks the owner about a host, unless the owner has answered.
    fn ask_owner(&self, who: &Who<'_>, url: &str, settings: &Settings) -> Result<EgressAnswer> {
        let sent = Sent { size: 0, content: None };
        let outcome = self.outbound(who, url, "CONNECT", sent, (settings, None), |crossing| {
            let reason =
                format!("no rule names {}: the program waits for your answer", shortened(url));
            crossing.asks = Some(("egress-unlisted".to_owned(), reason));
        })?;
        Ok(answer(outcome))
    }

    /// Asks the owner about a name, unless the owner has answered.
    fn ask_name(&self, who: &Who<'_>, path: &str, folder: bool, why: &str) -> Result<EgressAnswer> {
        let action = Action::new(who.principal, Surface::ControlPlane, Act::Change, path);
        let mut crossing = Crossing::new(who, RecordType::ControlPlaneChangeRequest, action);
        let what = match folder {
            true => "this folder (allowed for the session, what is in it is allowed as well)",
            false => "this file",
        };
        let reason = format!(
            "a confined program wants to make {what}, and waits for your answer: {}",
            shortened(why)
        );
        crossing.how = if folder { "a folder".to_owned() } else { String::new() };
        crossing.asks = Some(("sandbox-ask-name".to_owned(), reason));
        Ok(answer(self.cross(crossing)?))
    }

    /// Asks the owner about a file, unless the owner has answered.
    fn ask_read(&self, who: &Who<'_>, path: &str, why: &str) -> Result<EgressAnswer> {
        // As where an agent's tool reads it: what the rules deny is not asked about.
        let subject = self.subject(who, Path::new(path), Deed::Read)?;
        let action = file_action(who, &subject, Deed::Read);
        let mut crossing = Crossing::new(who, RecordType::FileRead, action);
        crossing.enters = true;
        self.comes_from(&mut crossing, &subject)?;
        crossing.file = Some(&subject);
        let reason = format!(
            "a confined program wants to read this file, and waits for your answer: {}",
            shortened(why)
        );
        crossing.how = "into a confinement".to_owned();
        crossing.asks = Some(("sandbox-ask-read".to_owned(), reason));
        Ok(answer(self.cross(crossing)?))
    }

    fn left(
        &self,
        who: &Who<'_>,
        request: Option<RecordId>,
        told: &EgressBody,
        taker: Option<Taker<'_>>,
    ) -> Result<RecordId> {
        let EgressBody::Outcome { sent, received, status, address, ended, why, took, .. } = told
        else {
            return Ok(RecordId::ZERO);
        };
        let mut content = wardkeep_evidence::json::Object::from([
            ("kind", Value::from("egress")),
            ("v", Value::from(1u64)),
            ("sent", Value::from(*sent)),
            ("received", Value::from(*received)),
            ("ended", Value::from(shortened(ended))),
            ("took", Value::from(*took)),
        ]);
        if let Some(status) = status {
            content.push("status", Value::from(u64::from(*status)));
        }
        if let Some(address) = address {
            content.push("address", Value::from(address.to_string()));
        }
        if let Some(why) = why {
            content.push("rule", Value::from(shortened(&why.rule)));
            content.push("reason", Value::from(shortened(&why.reason)));
        }
        let workspace = who.workspace.to_string_lossy();
        let mut event =
            Event::new(RecordType::GuardDecision, Principal::Sys, Value::Object(content));
        event.agent = who.agent;
        event.session = who.session;
        event.workspace = &workspace;
        event.parents = request.into_iter().filter(|id| *id != RecordId::ZERO).collect();
        match taker {
            Some(take) => take(event),
            None => Ok(self.store.append(event)?.id),
        }
    }
}

/// Nothing is written down, and so nothing leaves.
fn spent() -> EgressAnswer {
    EgressAnswer {
        allowed: false,
        rule: "egress-records".to_owned(),
        reason: "so many requests of this run were written down that no more are until some time has passed".to_owned(),
        suggestion: Some("ask less often, and try again in some minutes".to_owned()),
        record: None,
        pending: false,
        payload: None,
    }
}

/// What the owner's lists alone say of a host; a lookup tells its name to others.
fn screen(who: &Who<'_>, url: &str, method: &str, settings: &Settings) -> EgressAnswer {
    let facts = network::facts_of(url, method, 0, &settings.egress);
    let owner = matches!(who.principal, Principal::User | Principal::Sys);
    let denied = match () {
        () if !facts.resolved => Some(("net-deny-unparsed", "it cannot be told where it leads")),
        () if facts.blocked => Some(("net-deny-blocked", "the owner blocks this host")),
        () if facts.allowed => None,
        () if facts.listed => {
            Some(("net-deny-not-allowed", "this host is not on the owner's list of allowed ones"))
        }
        () if facts.metadata || !owner => {
            Some(("egress-screen", "the owner's lists do not allow this host"))
        }
        () => None,
    };
    let (rule, reason) = denied.unwrap_or(("egress-screen", "it may be looked up"));
    EgressAnswer {
        allowed: denied.is_none(),
        rule: rule.to_owned(),
        reason: reason.to_owned(),
        suggestion: denied.map(|(rule, _)| super::pipeline::network_suggestion(rule).to_owned()),
        record: None,
        pending: false,
        payload: None,
    }
}

fn answer(outcome: Outcome) -> EgressAnswer {
    EgressAnswer {
        // What is asked about is not allowed yet; the suggestion says how it may be.
        allowed: outcome.verdict == Verdict::Allow,
        rule: outcome.rule,
        reason: outcome.reason,
        suggestion: outcome.suggestion,
        record: Some(outcome.record.to_string()),
        pending: outcome.verdict == Verdict::Ask,
        payload: None,
    }
}
