//! The reference monitor as the one who decides.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use wardkeep_monitor::daemon::{Starter, ensure_running};
use wardkeep_monitor::monitor::{EGRESS, EgressAnswer, EgressBody, Monitor, Refused, WhoBody};
use wardkeep_monitor::wire::{Client, WireError};

use super::decider::{BoxFuture, Decider, Decision, Denial, Ended, Outcome, Request, Verdict};

/// Asks the reference monitor, and has it record.
#[derive(Debug)]
pub struct Monitored {
    who: WhoBody,
    monitor: Arc<Place>,
    slots: Arc<Semaphore>,
}

/// Where the monitor is.
#[derive(Debug)]
enum Place {
    Here(Arc<Monitor>),
    Daemon { state: PathBuf, starter: Starter, idle: Mutex<Vec<Client>> },
}

/// Questions at a time: each takes a thread, and with a daemon a connection.
const SLOTS: usize = 24;
/// How long the daemon may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a daemon may take to come up.
const START: Duration = Duration::from_secs(5);

impl Monitored {
    /// With a monitor in this process.
    #[must_use]
    pub fn here(monitor: Arc<Monitor>, who: WhoBody) -> Self {
        Self::new(Place::Here(monitor), who)
    }

    /// With the daemon of a state directory, as its owner; it is started where it does not run.
    #[must_use]
    pub fn daemon(state: &Path, starter: Starter, who: WhoBody) -> Self {
        let idle = Mutex::default();
        Self::new(Place::Daemon { state: state.to_owned(), starter, idle }, who)
    }

    fn new(place: Place, who: WhoBody) -> Self {
        Self { who, monitor: Arc::new(place), slots: Arc::new(Semaphore::new(SLOTS)) }
    }

    /// Whatever goes wrong is an error, and an error is a denial.
    async fn ask(&self, asked: EgressBody) -> Result<EgressAnswer, String> {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|error| error.to_string())?;
        let monitor = Arc::clone(&self.monitor);
        let answered = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            monitor.ask(&asked)
        });
        answered.await.map_err(|error| error.to_string())?
    }
}

impl Place {
    fn ask(&self, asked: &EgressBody) -> Result<EgressAnswer, String> {
        match self {
            Self::Here(monitor) => monitor.egress(asked).map_err(|error| error.to_string()),
            Self::Daemon { state, starter, idle } => {
                let idle = || idle.lock().unwrap_or_else(PoisonError::into_inner);
                let mut kept = idle().pop();
                loop {
                    let reused = kept.is_some();
                    let mut client = match kept.take() {
                        Some(client) => client,
                        None => connect(state, starter)?,
                    };
                    let answer = client.call(EGRESS, asked).and_then(|answer| answer.read());
                    match answer {
                        Ok(answer) => {
                            idle().push(client);
                            return Ok(answer);
                        }
                        // The daemon closes connections that were quiet for long.
                        Err(WireError::Closed) if reused => {}
                        Err(error) => return Err(error.to_string()),
                    }
                }
            }
        }
    }
}

fn connect(state: &Path, starter: &Starter) -> Result<Client, String> {
    match Client::connect(state, ANSWER) {
        // A daemon ends when nobody has asked for long.
        Err(error) if error.is_absent() => {
            let started = ensure_running(state, starter, START).map_err(|e| e.to_string())?;
            Ok(started.0)
        }
        connected => connected.map_err(|error| error.to_string()),
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
            match self.ask(asked).await {
                Ok(EgressAnswer { allowed: true, record, .. }) => {
                    Decision { verdict: Verdict::Allow { upload: None }, record }
                }
                Ok(answer) => {
                    let reason = match answer.suggestion {
                        Some(suggestion) => format!("{} ({suggestion})", answer.reason),
                        None => answer.reason,
                    };
                    let denial = Denial { rule: answer.rule.into(), reason };
                    Decision { verdict: Verdict::Deny(denial), record: answer.record }
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
            let _ = self.ask(told).await;
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
                Ok(answer) => Some(Denial { rule: answer.rule.into(), reason: answer.reason }),
                Err(why) => Some(Denial::new("egress-internal", why)),
            }
        })
    }
}

fn refused(denial: &Denial) -> Refused {
    Refused { rule: denial.rule.to_string(), reason: denial.reason.clone() }
}
