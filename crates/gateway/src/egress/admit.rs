//! From a request to a connection: rules, owner, lookup, decider, dial.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use super::again::Again;
use super::budget::{Budgets, Meter, Used};
use super::config::{Config, SharedDecider};
use super::decider::{Ask, Decision, Denial, Ended, Outcome, Reply, Request, Verdict};
use super::host::{Host, Target};
use super::lookers::Lookers;
use super::rules::{Found, Rule, Unlisted};
use super::screen::secret_in;
use super::stream::Stream;
use super::tunnel::Motion;

/// What all connections of a proxy share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) decider: SharedDecider,
    pub(super) budgets: Budgets,
    pub(super) lookers: Lookers,
    pub(super) again: Arc<Again>,
    asked: Asked,
    screened: Screened,
    outcomes: UnboundedSender<Told>,
}

/// Hosts that the owner's lists had nothing against a moment ago.
#[derive(Debug, Default)]
struct Screened(Mutex<HashMap<Target, Instant>>);

impl Screened {
    /// How long an answer holds.
    const HOLDS: Duration = Duration::from_secs(2);

    fn knows(&self, target: &Target) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(target).is_some_and(|at| at.elapsed() < Self::HOLDS)
    }

    fn add(&self, target: &Target) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ANSWERS {
            known.retain(|_, at| at.elapsed() < Self::HOLDS);
        }
        if known.len() < ANSWERS {
            known.insert(target.clone(), Instant::now());
        }
    }
}

/// An outcome on its way to the decider.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) request: Request,
    pub(super) record: Option<String>,
    pub(super) outcome: Outcome,
}

/// What the owner has answered.
struct Asked {
    allowed: RwLock<HashSet<Target>>,
    denied: RwLock<HashSet<Target>>,
    /// Questions that are open. Whoever waits for one hears whether it stayed without an answer.
    open: Mutex<HashMap<Target, Arc<tokio::sync::Mutex<bool>>>>,
    places: Semaphore,
}

impl Default for Asked {
    fn default() -> Self {
        let (allowed, denied, open) = Default::default();
        Self { allowed, denied, open, places: Semaphore::new(QUESTIONS) }
    }
}

/// Questions that are open at a time: each takes a thread, and more of them no owner reads.
const QUESTIONS: usize = 8;
/// What passes between two questions.
const BETWEEN: Duration = Duration::from_secs(2);

/// Hosts whose answers are remembered.
const ANSWERS: usize = 4096;
/// How long one of several addresses may take.
const ONE_ADDRESS: Duration = Duration::from_secs(4);

/// What the rules say of a target.
#[derive(Debug, Clone)]
pub(super) enum Standing {
    /// It may be reached, by this rule.
    By(Rule),
    /// The owner allowed it.
    Owner,
    /// No rule names it; the decider decides.
    Open,
}

impl Standing {
    /// Whether the owner has named the host.
    pub(super) fn is_named(&self) -> bool {
        match self {
            Self::By(rule) => !rule.names_all(),
            Self::Owner => true,
            Self::Open => false,
        }
    }

    fn rule(&self) -> Option<&Rule> {
        match self {
            Self::By(rule) => Some(rule),
            Self::Owner | Self::Open => None,
        }
    }
}

/// A request that may leave.
pub(super) struct Admitted {
    pub(super) passage: Passage,
    pub(super) meter: Meter,
}

impl Shared {
    pub(super) fn new(
        config: Config,
        decider: SharedDecider,
        outcomes: UnboundedSender<Told>,
    ) -> Self {
        let (budgets, lookers, again, asked, screened) = Default::default();
        Self { config, decider, budgets, lookers, again, asked, screened, outcomes }
    }

    /// What the rules and the owner say. `method` is left out where it is not known yet.
    pub(super) async fn standing(
        &self,
        request: &Request,
        target: &Target,
        method: Option<&str>,
    ) -> Result<Standing, Denial> {
        let rules = &self.config.rules;
        match rules.find(target, method) {
            Found::Allowed(rule) => Ok(Standing::By(rule.clone())),
            Found::Denied(rule) => {
                let reason = format!("{} is denied by `{rule}`", target.host);
                Err(Denial::new("egress-denied", reason))
            }
            Found::Port => {
                let reason = format!(
                    "{} may be reached, but not at port {}; allow `{target}` if it is meant",
                    target.host, target.port
                );
                Err(Denial::new("egress-port", reason))
            }
            Found::Method => {
                let method = method.unwrap_or_default();
                let reason = format!("{method} is not allowed at {}", target.host);
                Err(Denial::new("egress-method", reason))
            }
            Found::Unlisted => match rules.unlisted {
                Unlisted::Decider => Ok(Standing::Open),
                Unlisted::Deny => Err(unlisted(target)),
                Unlisted::Ask => self.ask(request, target).await,
            },
        }
    }

    async fn ask(&self, request: &Request, target: &Target) -> Result<Standing, Denial> {
        let Some(ask) = &self.config.ask else { return Err(unlisted(target)) };
        if let Some(answer) = self.asked.known(target) {
            return answer;
        }
        let turn = self.asked.turn(target);
        let mut unanswered = turn.lock().await;
        if *unanswered {
            return Err(unheard(target));
        }
        // Someone else may have asked meanwhile.
        if let Some(answer) = self.asked.known(target) {
            return answer;
        }
        let answer = match self.reply(ask.as_ref(), request).await {
            Reply::Once => Ok(Standing::Owner),
            Reply::Session | Reply::Always => {
                remember(&self.asked.allowed, target);
                Ok(Standing::Owner)
            }
            Reply::No => {
                remember(&self.asked.denied, target);
                Err(refused_by_owner(target))
            }
            Reply::Unanswered => {
                *unanswered = true;
                Err(unheard(target))
            }
        };
        // Whoever comes now finds the answer.
        self.asked.open().remove(target);
        answer
    }

    /// What the owner says. Questions are shown one after the other, so that the time for this one begins when those
    /// before it have had theirs.
    async fn reply(&self, ask: &dyn Ask, request: &Request) -> Reply {
        let Ok(_place) = self.asked.places.try_acquire() else { return Reply::Unanswered };
        let open = QUESTIONS.saturating_sub(self.asked.places.available_permits()).max(1);
        let each = self.config.limits.ask.saturating_add(BETWEEN);
        let patience = each.saturating_mul(u32::try_from(open).unwrap_or(u32::MAX));
        timeout(patience, ask.ask(request)).await.unwrap_or(Reply::Unanswered)
    }

    /// Where the bytes to a target are counted: hosts of one rule share a budget.
    pub(super) fn used(&self, standing: &Standing, target: &Target) -> Arc<Used> {
        match standing.rule() {
            Some(rule) => self.budgets.of(&rule.to_string()),
            None => self.budgets.of(&target.host.to_string()),
        }
    }

    /// Has a refusal of this proxy recorded.
    pub(super) async fn refuse(&self, mut request: Request, denial: Denial) -> Denial {
        request.refused = Some(denial.clone());
        let _ = self.decider.decide(&request).await;
        denial
    }

    /// Looks the target up, checks where it points, and asks the decider.
    pub(super) async fn admit(
        &self,
        mut request: Request,
        target: &Target,
        standing: &Standing,
    ) -> Result<Admitted, Denial> {
        let addresses = match self.addresses(&request, target, standing).await {
            Ok(addresses) => addresses,
            Err(denial) => return Err(self.refuse(request, denial).await),
        };
        request.addresses.clone_from(&addresses);
        let used = self.used(standing, target);
        let Decision { verdict, record } = self.decider.decide(&request).await;
        // Whoever takes the request on its way may be slow, and nobody looks at this again.
        request.content = None;
        match verdict {
            Verdict::Deny(denial) => Err(denial),
            Verdict::Allow { upload } => {
                let meter = self.budgets.meter(used, &self.config.limits, upload);
                let passage = Passage {
                    request: Some(request),
                    record,
                    outcomes: self.outcomes.clone(),
                    begun: Instant::now(),
                    motion: Arc::new(Motion::new()),
                    address: None,
                };
                Ok(Admitted { passage, meter })
            }
        }
    }

    /// The addresses of a target; every one of them is open, or none counts.
    async fn addresses(
        &self,
        request: &Request,
        target: &Target,
        standing: &Standing,
    ) -> Result<Vec<IpAddr>, Denial> {
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                if !self.config.secrets
                    && let Some(denial) = secret_in(name.as_bytes())
                {
                    return Err(denial);
                }
                // A lookup tells the name to others: what the owner blocks is not looked up,
                // whoever else allows it. An answer holds for a moment, as addresses do.
                if !matches!(standing, Standing::Owner) && !self.screened.knows(target) {
                    if let Some(denial) = self.decider.screen(request).await {
                        return Err(denial);
                    }
                    self.screened.add(target);
                }
                let found =
                    timeout(self.config.limits.lookup, self.config.resolver.lookup(name)).await;
                match found {
                    Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
                    _ => {
                        let reason = format!("the name {name} was not found");
                        return Err(Denial::new("egress-no-address", reason));
                    }
                }
            }
        };
        let rules = &self.config.rules;
        let addresses: Vec<IpAddr> = addresses.iter().map(IpAddr::to_canonical).collect();
        for address in &addresses {
            let closed = |why: &str| {
                let reason = format!("{} leads to {address}: {why}", target.host);
                Denial::new("egress-inside", reason)
            };
            if let Some(why) = rules.objection(target, standing.rule(), *address) {
                return Err(closed(why));
            }
            if !rules.names_own(target, standing.rule(), *address)
                && self.config.dialer.is_own(*address)
            {
                return Err(closed("this machine"));
            }
        }
        Ok(addresses)
    }

    /// Connects to the first of the checked addresses that answers.
    pub(super) async fn dial(&self, passage: &mut Passage, port: u16) -> Result<Stream, String> {
        let addresses = passage.addresses();
        let all = async {
            let mut last = "there is no address".to_owned();
            for address in addresses {
                let dialled = self.config.dialer.dial(SocketAddr::new(address, port));
                match timeout(ONE_ADDRESS, dialled).await {
                    Ok(Ok(stream)) => return Ok((address, Stream::from(stream))),
                    Ok(Err(error)) => last = error.to_string(),
                    Err(_) => last = "it took too long".to_owned(),
                }
            }
            Err(last)
        };
        let dialled = timeout(self.config.limits.dial, all).await;
        let (address, stream) = dialled.unwrap_or_else(|_| Err("it took too long".to_owned()))?;
        passage.address = Some(address);
        Ok(stream)
    }
}

impl Asked {
    fn known(&self, target: &Target) -> Option<Result<Standing, Denial>> {
        let held = |set: &RwLock<HashSet<Target>>| {
            set.read().unwrap_or_else(PoisonError::into_inner).contains(target)
        };
        if held(&self.denied) {
            return Some(Err(refused_by_owner(target)));
        }
        held(&self.allowed).then_some(Ok(Standing::Owner))
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<Target, Arc<tokio::sync::Mutex<bool>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, target: &Target) -> Arc<tokio::sync::Mutex<bool>> {
        Arc::clone(self.open().entry(target.clone()).or_default())
    }
}

fn remember(set: &RwLock<HashSet<Target>>, target: &Target) {
    let mut set = set.write().unwrap_or_else(PoisonError::into_inner);
    if set.len() < ANSWERS {
        set.insert(target.clone());
    }
}

fn unlisted(target: &Target) -> Denial {
    let reason = format!("{} is on no list; allow it if it is meant", target.host);
    Denial::new("egress-unlisted", reason)
}

fn refused_by_owner(target: &Target) -> Denial {
    Denial::new("egress-owner", format!("the owner did not allow {target}"))
}

/// Not for good: the owner may be asked again.
fn unheard(target: &Target) -> Denial {
    let reason = format!(
        "the owner was asked about {target} or too many others, and did not answer in time; try again"
    );
    Denial::new("egress-owner", reason)
}

/// A request on its way. However it ends, that is told.
pub(super) struct Passage {
    request: Option<Request>,
    record: Option<String>,
    outcomes: UnboundedSender<Told>,
    begun: Instant,
    motion: Arc<Motion>,
    pub(super) address: Option<IpAddr>,
}

impl Passage {
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.request.as_ref().map(|request| request.addresses.clone()).unwrap_or_default()
    }

    /// Where what goes both ways is counted.
    pub(super) fn motion(&self) -> Arc<Motion> {
        Arc::clone(&self.motion)
    }

    /// Tells how it ended.
    pub(super) fn end(mut self, ended: Ended) {
        self.tell(ended);
    }

    fn tell(&mut self, ended: Ended) {
        let Some(request) = self.request.take() else { return };
        let (sent, received) = self.motion.totals();
        let outcome = Outcome {
            sent,
            received,
            status: self.motion.status(),
            address: self.address,
            ended,
            took: self.begun.elapsed(),
        };
        // Nobody listens any more only when the proxy is gone.
        let _ = self.outcomes.send(Told { request, record: self.record.take(), outcome });
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.tell(Ended::Failed("it was broken off".to_owned()));
    }
}
