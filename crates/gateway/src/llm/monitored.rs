//! The reference monitor as the one who decides.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use wardkeep_agents::model;
use wardkeep_evidence::check::printable;
use wardkeep_evidence::hash::encode_hex;
use wardkeep_monitor::bodies::Bodies;
use wardkeep_monitor::daemon::Starter;
use wardkeep_monitor::monitor::{
    CallBody, EVENT, EventAnswer, EventBody, FreshBody, MODEL, ModelAnswer, ModelBody, Monitor,
    ReplyBody, Surroundings, WhoBody,
};
use wardkeep_policy::block::{ELEVATED_SECURITY_SUFFIX, HARDCODED_SECURITY_SUFFIX};

use super::judge::{
    Admission, BoxFuture, Denial, Ended, Exchange, Fresh, Judge, Outcome, Request, Source,
};
use super::reply::{Ruling, ToolCall};
use crate::place::Place;

/// Bytes of text that are told at a time: less than what the socket takes.
const GROUP: usize = 2 << 20;
/// Pieces that are told at a time.
const PIECES: usize = 1024;
/// Blocks of sessions that are remembered.
const BLOCKS: usize = 2048;
/// Calls whose records are remembered.
const CALLS: usize = 1 << 16;
/// Longest name of a tool that is shown.
const SHOWN: usize = 64;

/// Told what the owner must know.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Asks the reference monitor, and has it record.
pub struct Monitored {
    who: WhoBody,
    home: Option<PathBuf>,
    place: Place,
    tell: Option<Tell>,
    bodies: Option<Bodies>,
    blocks: Mutex<Kept<Option<String>>>,
    calls: Mutex<Kept<(String, String, String)>>,
}

impl fmt::Debug for Monitored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Monitored").field("who", &self.who).finish_non_exhaustive()
    }
}

/// Values by name, the oldest forgotten.
#[derive(Debug)]
struct Kept<V> {
    most: usize,
    values: HashMap<String, V>,
    order: VecDeque<String>,
}

impl<V> Kept<V> {
    fn new(most: usize) -> Self {
        Self { most, values: HashMap::new(), order: VecDeque::new() }
    }

    fn insert(&mut self, name: String, value: V) {
        if self.values.insert(name.clone(), value).is_none() {
            self.order.push_back(name);
        }
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }
}

impl Monitored {
    /// With a monitor in this process. `who` names the agent and the workspace; sessions are found
    /// by the proxy.
    #[must_use]
    pub fn here(monitor: Arc<Monitor>, who: WhoBody, home: Option<PathBuf>) -> Self {
        Self::new(Place::here(monitor), who, home)
    }

    /// With the daemon of a state directory, as its owner; it is started where it does not run.
    #[must_use]
    pub fn daemon(state: &Path, starter: Starter, who: WhoBody, home: Option<PathBuf>) -> Self {
        Self::new(Place::daemon(state, starter), who, home)
    }

    fn new(place: Place, who: WhoBody, home: Option<PathBuf>) -> Self {
        let (blocks, calls) = (Mutex::new(Kept::new(BLOCKS)), Mutex::new(Kept::new(CALLS)));
        Self { who, home, place, tell: None, bodies: None, blocks, calls }
    }

    /// With someone who is told what the owner must know.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.tell = Some(Box::new(tell));
        self
    }

    /// With a place for bodies that are to be kept.
    #[must_use]
    pub fn keeping(mut self, bodies: Bodies) -> Self {
        self.bodies = Some(bodies);
        self
    }

    /// Keeps a body; gives its name.
    async fn kept(&self, body: Option<Bytes>) -> Option<String> {
        let (bodies, body) = (self.bodies.clone()?, body?);
        let kept = tokio::task::spawn_blocking(move || bodies.keep(&body)).await;
        let kept = kept.map_err(|error| error.to_string());
        match kept.and_then(|kept| kept.map_err(|error| error.to_string())) {
            Ok(name) => Some(name.to_string()),
            Err(why) => {
                if let Some(tell) = &self.tell {
                    tell(&format!("a body could not be kept: {why}"));
                }
                None
            }
        }
    }

    fn who(&self, session: &str) -> WhoBody {
        WhoBody { session: self.session(session), ..self.who.clone() }
    }

    fn session(&self, session: &str) -> String {
        format!("{}:{session}", self.who.agent)
    }

    fn fresh(&self, session: &str, fresh: &Fresh) -> Vec<FreshBody> {
        let (tool, principal, call) = match &fresh.source {
            Source::User => (None, None, None),
            Source::Tool { id, name } => {
                let known = held(&self.calls).values.get(&format!("{session} {id}")).cloned();
                let name = name.clone().or(known.as_ref().map(|(_, name, _)| name.clone()));
                let name =
                    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
                let arguments = known.as_ref().map(|(_, _, arguments)| arguments.as_str());
                let origin = model::origin(&name, arguments).as_str().to_owned();
                (Some(name), Some(origin), known.map(|(record, _, _)| record))
            }
        };
        let one = |text: &str| FreshBody {
            tool: tool.clone(),
            principal: principal.clone(),
            call: call.clone(),
            text: text.to_owned(),
        };
        let (mut rest, mut parts) = (fresh.text.as_str(), Vec::new());
        while rest.len() > GROUP {
            let (part, left) = rest.split_at(rest.floor_char_boundary(GROUP));
            parts.push(one(part));
            rest = left;
        }
        parts.push(one(rest));
        parts
    }

    async fn admitted(&self, request: &Request) -> Result<Admission, String> {
        let who = self.who(&request.session);
        let known = held(&self.blocks).values.get(&request.session).cloned();
        let mut begin = known.is_none();
        let parent = request.parent.as_ref().map(|parent| self.session(parent));
        // Pieces with the numbers that they have in the request, in groups that fit the socket.
        let mut groups: Vec<Vec<(usize, FreshBody)>> = vec![Vec::new()];
        let mut room = GROUP.saturating_sub(request.system.as_ref().map_or(0, String::len));
        for (number, fresh) in request.fresh.iter().enumerate() {
            for body in self.fresh(&request.session, fresh) {
                let size = body.text.len() + 256;
                let full =
                    |group: &Vec<_>| group.len() >= PIECES || size > room && !group.is_empty();
                if groups.last().is_some_and(full) {
                    groups.push(Vec::new());
                    room = GROUP;
                }
                room = room.saturating_sub(size);
                if let Some(group) = groups.last_mut() {
                    group.push((number, body));
                }
            }
        }
        let mut system = request.system.clone().map(|mut system| {
            system.truncate(system.floor_char_boundary(GROUP));
            system
        });
        let last = groups.len() - 1;
        let mut admission = Admission { block: known.clone().flatten(), ..Admission::default() };
        let (mut told, mut threat) = (Vec::new(), false);
        for (place, group) in groups.into_iter().enumerate() {
            let (numbers, fresh): (Vec<usize>, Vec<FreshBody>) = group.into_iter().unzip();
            let call = (place == last).then(|| CallBody {
                wire: request.wire.as_str().to_owned(),
                upstream: request.upstream.clone(),
                model: request.model.clone(),
                messages: request.messages as u64,
                size: request.size as u64,
                sha256: encode_hex(&request.sha256),
                told: told.iter().rev().take(32).cloned().collect(),
            });
            let began = std::mem::take(&mut begin);
            let asked = ModelBody::Request {
                who: who.clone(),
                begin: began,
                parent: parent.clone(),
                system: system.take(),
                fresh,
                call,
            };
            let answer = self.ask(asked).await?;
            // One that has begun is told another block once the owner has signed another policy.
            if began || answer.block.is_some() {
                admission.block.clone_from(&answer.block);
                held(&self.blocks).insert(request.session.clone(), answer.block);
            }
            for message in &answer.messages {
                if let Some(tell) = &self.tell {
                    tell(message);
                }
            }
            threat |= answer.threat;
            told.extend(answer.told);
            for (number, text) in answer.instead {
                if let Some(number) = numbers.get(number) {
                    admission.instead.push((*number, text));
                }
            }
            admission.record = answer.record.or(admission.record);
            if let Some(why) = answer.denied {
                // What was said long ago and is withheld by now stops nothing.
                let denial = Denial { rule: why.rule, reason: why.reason };
                admission.denied.get_or_insert(denial);
            }
        }
        let new = request.fresh.iter().any(|fresh| fresh.last);
        if admission.denied.is_some() && !new && !admission.instead.is_empty() {
            admission.denied = None;
        }
        if threat
            && let Some(block) = &mut admission.block
            && block.ends_with(HARDCODED_SECURITY_SUFFIX)
        {
            block.push_str("\n\n");
            block.push_str(ELEVATED_SECURITY_SUFFIX);
        }
        Ok(admission)
    }

    async fn ask(&self, asked: ModelBody) -> Result<ModelAnswer, String> {
        let method =
            |monitor: &Monitor, asked: &ModelBody| monitor.model(asked, Surroundings::Unseen);
        self.place.ask(MODEL, asked, method).await
    }

    async fn ruled(&self, exchange: &Exchange, call: &ToolCall) -> Result<(), String> {
        let who = self.who(&exchange.session);
        let (name, arguments, home) = (&call.name, &call.arguments, self.home.as_deref());
        let told = |directory: Option<&Path>| {
            let asked = model::call(who.clone(), name, arguments, directory, home);
            asked.map_err(|error| error.to_string())
        };
        let mut asked = told(None)?;
        // Where the client works is the agent's own word: what it does must be allowed from both places.
        let elsewhere = exchange.directory.as_deref().filter(|path| *path != who.workspace);
        if let Some(directory) = elsewhere {
            asked.parts.extend(told(Some(directory))?.parts);
        }
        let count = asked.parts.len();
        let method = |monitor: &Monitor, asked: &EventBody| monitor.event(asked);
        let answer: EventAnswer = self.place.ask(EVENT, asked, method).await?;
        if let Some(why) = answer.stopped {
            return Err(why);
        }
        if let Some(denied) = answer.answers.iter().find(|one| one.verdict != "allow") {
            let next = denied.suggestion.as_deref().map(|next| format!(" Next: {next}."));
            return Err(format!(
                "{} ({}).{}",
                denied.reason,
                denied.rule,
                next.unwrap_or_default()
            ));
        }
        if answer.answers.len() < count {
            return Err("not all of it was judged".to_owned());
        }
        if let Some(first) = answer.answers.first().filter(|_| !call.id.is_empty()) {
            let arguments =
                if call.arguments.len() <= 4096 { call.arguments.clone() } else { String::new() };
            let known = (first.record.clone(), call.name.clone(), arguments);
            held(&self.calls).insert(format!("{} {}", exchange.session, call.id), known);
        }
        Ok(())
    }
}

impl Judge for Monitored {
    fn admit<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Admission> {
        Box::pin(async move {
            self.admitted(request).await.unwrap_or_else(|why| Admission {
                denied: Some(Denial { rule: "model-internal".to_owned(), reason: why }),
                ..Admission::default()
            })
        })
    }

    fn call<'a>(&'a self, exchange: &'a Exchange, call: &'a ToolCall) -> BoxFuture<'a, Ruling> {
        Box::pin(async move {
            match self.ruled(exchange, call).await {
                Ok(()) => Ruling::Allow,
                Err(why) => {
                    let name: String = printable(&call.name).chars().take(SHOWN).collect();
                    Ruling::Deny(format!("[wardkeep] The call of `{name}` was not made: {why}"))
                }
            }
        })
    }

    fn done<'a>(&'a self, exchange: &'a Exchange, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let report = &outcome.report;
            let (ended, why) = match &outcome.ended {
                Ended::Done => ("done", None),
                Ended::Cut(why) => ("cut", Some(why.clone())),
                Ended::Failed(why) => ("failed", Some(why.clone())),
                Ended::Gone => ("gone", None),
            };
            let reply = ReplyBody {
                status: outcome.status,
                sent: outcome.sent as u64,
                sent_sha256: encode_hex(&outcome.sent_sha256),
                received: outcome.received,
                shown_sha256: encode_hex(&outcome.shown_sha256),
                marked: outcome.marked as u64,
                model: report.model.clone(),
                input_tokens: report.input_tokens,
                output_tokens: report.output_tokens,
                stop: report.stop.clone(),
                allowed: report.allowed as u64,
                denied: report.denied as u64,
                withheld: report.withheld as u64,
                rules: report.rules.clone(),
                ended: ended.to_owned(),
                why,
                request_body: self.kept(outcome.bodies.request.clone()).await,
                reply_body: self.kept(outcome.bodies.reply.clone()).await,
            };
            let asked = ModelBody::Reply {
                who: self.who(&exchange.session),
                request: exchange.record.clone(),
                reply: Box::new(reply),
            };
            // The request itself is recorded; the reply has reached the agent by now.
            if let (Err(why), Some(tell)) = (self.ask(asked).await, &self.tell) {
                tell(&format!("a reply could not be recorded: {why}"));
            }
        })
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
