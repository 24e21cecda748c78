//! The reference monitor as the one who decides.

use std::path::Path;
use std::sync::Arc;

use wardkeep_monitor::daemon::Starter;
use wardkeep_monitor::monitor::{
    EGRESS, EgressAnswer, EgressBody, Monitor, Payload, Refused, WhoBody,
};

use super::decider::{BoxFuture, Decider, Decision, Denial, Ended, Outcome, Request, Verdict};
use super::together::{Together, Urgency};
use crate::place::Place;

/// Asks the reference monitor, and has it record.
#[derive(Debug)]
pub struct Monitored {
    who: WhoBody,
    place: Place,
    together: Arc<Together>,
}

impl Monitored {
    /// With a monitor in this process.
    #[must_use]
    pub fn here(monitor: Arc<Monitor>, who: WhoBody) -> Self {
        Self::at(Place::here(monitor), who)
    }

    /// With the daemon of a state directory, as its owner; it is started where it does not run.
    #[must_use]
    pub fn daemon(state: &Path, starter: Starter, who: WhoBody) -> Self {
        Self::at(Place::daemon(state, starter), who)
    }

    fn at(place: Place, who: WhoBody) -> Self {
        Self { who, together: Arc::new(Together::new(place.clone())), place }
    }

    /// Whatever goes wrong is an error, and an error is a denial.
    async fn ask(&self, asked: EgressBody) -> Result<EgressAnswer, String> {
        self.place.ask(EGRESS, asked, Monitor::egress).await
    }
}

impl Decider for Monitored {
    fn decide<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let content = request.content.as_deref().map(String::from_utf8_lossy);
            let refused = request.refused.as_ref().map(refused);
            let asked = EgressBody::Request {
                who: self.who.clone(),
                url: request.url.clone(),
                method: request.method.clone(),
                way: request.way.as_str().to_owned(),
                size: request.size.unwrap_or_default(),
                content: content.map(|text| text.into_owned()),
                addresses: request.addresses.clone(),
                refused,
            };
            match self.together.ask(asked, Urgency::Now).await {
                Ok(EgressAnswer { allowed: true, record, payload, .. }) => {
                    let upload = payload.and_then(|payload| upload(request, payload));
                    Decision { verdict: Verdict::Allow { upload }, record }
                }
                Ok(answer) => {
                    let record = answer.record.clone();
                    Decision { verdict: Verdict::Deny(denial(answer)), record }
                }
                Err(why) => {
                    let denial = Denial::new("egress-internal", why);
                    Decision { verdict: Verdict::Deny(denial), record: None }
                }
            }
        })
    }

    fn outcome<'a>(
        &'a self,
        _request: &'a Request,
        record: Option<&'a str>,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (ended, why) = match &outcome.ended {
                Ended::Done => ("done", None),
                Ended::Cut(denial) => ("cut", Some(refused(denial))),
                Ended::Failed(reason) => {
                    let why = Refused { rule: "failed".to_owned(), reason: reason.clone() };
                    ("failed", Some(why))
                }
            };
            let told = EgressBody::Outcome {
                who: self.who.clone(),
                request: record.map(str::to_owned),
                sent: outcome.sent,
                received: outcome.received,
                status: outcome.status,
                address: outcome.address,
                ended: ended.to_owned(),
                why,
                took: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
            };
            // The request itself is recorded; what became of it has no more to say where this fails.
            let _ = self.together.ask(told, Urgency::Soon).await;
        })
    }

    fn screen<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<Denial>> {
        Box::pin(async move {
            let asked = EgressBody::Screen {
                who: self.who.clone(),
                url: request.url.clone(),
                method: request.method.clone(),
            };
            match self.ask(asked).await {
                Ok(EgressAnswer { allowed: true, .. }) => None,
                Ok(answer) => Some(denial(answer)),
                Err(why) => Some(Denial::new("egress-internal", why)),
            }
        })
    }
}

/// How much may be sent of what did not say its size. A tunnel or WebSocket is not one request: only what the owner has
/// set holds for it.
fn upload(request: &Request, payload: Payload) -> Option<u64> {
    let one = request.content.is_some();
    (request.size.is_none() && (one || payload.set)).then_some(payload.most)
}

/// What the monitor says against it, and what to do about it.
fn denial(answer: EgressAnswer) -> Denial {
    let reason = match answer.suggestion {
        Some(next) => format!("{}; next: {next}", answer.reason.trim_end_matches('.')),
        None => answer.reason,
    };
    Denial { rule: answer.rule.into(), reason }
}

fn refused(denial: &Denial) -> Refused {
    Refused { rule: denial.rule.to_string(), reason: denial.reason.clone() }
}
