//! One crossing from question to answer.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::MutexGuard;

use wardkeep_detect::finding::{Scan, Verdict as ScanVerdict};
use wardkeep_detect::leak::OutputGuard;
use wardkeep_detect::urls::{Host, find_urls};
use wardkeep_evidence::hash::{RecordId, sha256};
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::action::Action;
use wardkeep_guard::alert::{self, Category, Severity};
use wardkeep_guard::assess::{self, Around};
use wardkeep_guard::decide;
use wardkeep_guard::facts::Facts;
use wardkeep_guard::overlap::Sketch;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::{Decision, Verdict};

use super::content::{Digest, Told, shortened};
use super::flood::{Noted, Sum};
use super::past::{Held, Replaced, Replaces, Stays};
use super::session::Session;
use super::settings::Settings;
use super::subjects::Subject;
use super::{Alert, Monitor, Outcome, Result, Who, held};
use crate::approvals::{ActionHash, ActionKey};
use crate::journal::Waiting;
use crate::store::{Event, Store, StoreError};

/// Largest content of a file that is kept so that a change can be undone.
pub(super) const KEPT: usize = 1 << 20;
/// Parents that a record names beside the session's context.
const PARENTS: usize = 32;
/// Methods that carry nothing out but an address.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
/// Hosts that a record of an attack names.
const HOSTS: usize = 128;
/// Parts of one action that a record names as withheld.
const WITHHELD: usize = 64;

/// A crossing on its way through.
pub(super) struct Crossing<'a> {
    pub(super) who: &'a Who<'a>,
    /// Type of its record where it may happen.
    pub(super) kind: RecordType,
    pub(super) action: Action<'a>,
    /// What is written or sent, byte by byte.
    pub(super) bytes: Option<&'a [u8]>,
    /// Whether what it brings enters the model's context.
    pub(super) enters: bool,
    /// Whether it has happened already, and is only told.
    pub(super) observed: bool,
    /// Parents that the monitor itself knows of.
    pub(super) parents: Vec<RecordId>,
    /// The file that it changes or reads.
    pub(super) file: Option<&'a Subject>,
    /// What the file holds before it is changed.
    pub(super) before: Option<Vec<u8>>,
    /// What of that stays in it.
    pub(super) stays: Stays,
    /// What of it does not, once the change is made.
    pub(super) replaces: Option<Replaces>,
    /// Where the file was until now, and where it will be.
    pub(super) from: Option<PathBuf>,
    pub(super) to: Option<PathBuf>,
    /// How, where the subject does not say all.
    pub(super) how: String,
    /// What the model gets to see of a file that holds something tainted.
    pub(super) shown: Shown,
    /// The guard that the caller brought.
    pub(super) guard: Option<&'a OutputGuard>,
    /// What speaks against it, in words.
    pub(super) why: Option<String>,
    /// The rule of a door that has refused it already, and why: it is decided only to be recorded.
    pub(super) refused: Option<(String, String)>,
    /// The rule of a door that lets it pass only if the owner says so, and why.
    pub(super) asks: Option<(String, String)>,
    /// Whether many of these may be recorded at a time.
    pub(super) apart: bool,
    /// Whether the owner was told of its confinement before: it is recorded then, and no alert.
    pub(super) told: bool,
    /// More that its record holds.
    pub(super) more: Vec<(&'static str, Value<'static>)>,
    /// Who takes its record, if the caller waits for the disk.
    pub(super) taker: Option<Taker<'a>>,
}

/// Takes a record that is flushed with others.
pub(super) type Taker<'a> = &'a dyn Fn(Event<'_>) -> Result<RecordId>;

/// Records of one question that are flushed together. Nothing is answered before they are on disk.
#[derive(Debug)]
pub(super) struct Later<'s> {
    store: &'s Store,
    waiting: RefCell<Vec<Waiting<'s>>>,
}

impl<'s> Later<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        Self { store, waiting: RefCell::default() }
    }

    /// Takes a record.
    pub(super) fn take(&self, event: Event<'_>) -> Result<RecordId> {
        let taken = self.store.append_later(event)?;
        let record = taken.id();
        self.waiting.borrow_mut().push(taken);
        Ok(record)
    }

    /// Waits for all of them.
    pub(super) fn on_disk(self) -> Result<()> {
        // The last one first: it is flushed with those before it.
        for waiting in self.waiting.into_inner().into_iter().rev() {
            waiting.on_disk().map_err(StoreError::from)?;
        }
        Ok(())
    }
}

impl<'a> Crossing<'a> {
    pub(super) fn new(who: &'a Who<'a>, kind: RecordType, mut action: Action<'a>) -> Self {
        action.taint |= who.taint;
        Self {
            who,
            kind,
            action,
            bytes: None,
            enters: false,
            observed: false,
            parents: Vec::new(),
            file: None,
            before: None,
            stays: Stays::default(),
            replaces: None,
            from: None,
            to: None,
            how: String::new(),
            shown: Shown::Nothing,
            guard: None,
            why: None,
            refused: None,
            asks: None,
            apart: false,
            told: false,
            more: Vec::new(),
            taker: None,
        }
    }
}

/// What else the model gets to see.
#[derive(Debug)]
pub(super) enum Shown {
    /// Nothing that has to be known again.
    Nothing,
    /// This text.
    Text(String),
    /// Something that could not be read.
    Unread,
}

/// What came out, before it is written.
struct Judged {
    decision: Decision,
    facts: Facts,
    scan: Option<Scan>,
    approval: Option<RecordId>,
}

impl Monitor {
    /// Looks up, decides, records, and answers.
    pub(super) fn cross(&self, crossing: Crossing<'_>) -> Result<Outcome> {
        self.cross_by(crossing, &self.settings())
    }

    /// The same, by settings that were just read.
    pub(super) fn cross_by(&self, crossing: Crossing<'_>, settings: &Settings) -> Result<Outcome> {
        let session = self.session(crossing.who.session)?;
        let mut session = held(&session);
        let _ = session.works_in(crossing.who.workspace);
        self.cross_in(crossing, settings, session)
    }

    fn cross_in(
        &self,
        mut crossing: Crossing<'_>,
        settings: &Settings,
        mut held_session: MutexGuard<'_, Session>,
    ) -> Result<Outcome> {
        let session = &mut *held_session;
        let now = self.store.now();
        let who = crossing.who;
        session.used = now.unix();
        let sight = session.bound.as_ref().map(|bound| Value::from(bound.as_str().to_owned()));
        crossing.more.extend(sight.map(|sight| ("sight", sight)));
        let (direct, mut parents) = self.direct(&crossing, session);
        // A few words are nobody's in particular; where they lead may be someone's.
        if let Some((host, record)) = named(&crossing, session) {
            if parents.len() < PARENTS && !parents.contains(&record) {
                parents.push(record);
            }
            crossing.asks.get_or_insert_with(|| {
                let why = "was named by content that looks like an attack";
                ("net-ask-named".to_owned(), format!("something would go to {host}, which {why}"))
            });
        }
        let guard = session.guard();
        let guard = crossing.guard.unwrap_or(&guard);
        let mut scan = assess::scan(&crossing.action, &settings.detector, guard);
        if let (Act::Receive, Some(text), Some(found)) =
            (crossing.action.act, crossing.action.content, scan.as_mut())
        {
            crossing.more.push(session.heard(text, found, now, &settings.detector));
        }
        let around = Around { direct, ambient: session.ambient, approved: false };
        let action = self.action_hash(&crossing);
        let judged = self.judged(&crossing, around, scan, settings, action, now)?;
        let Judged { mut decision, facts, scan, approval } = judged;
        // What stays in the file keeps its taint, whoever writes the rest.
        decision.taint |= crossing.stays.taint;
        crossing.more.extend(crossing.stays.value());

        let mut category = alert::category(&facts, &decision);
        let mut severity = alert::severity(&facts, &decision);
        if crossing.told
            && decision.verdict == Verdict::Allow
            && category == Some(Category::Sandbox)
        {
            (category, severity) = (None, Severity::Info);
        }
        let passes = !matches!(decision.verdict, Verdict::Ask | Verdict::Deny);
        let enters = passes && crossing.enters;
        if !passes
            && decision.verdict == Verdict::Deny
            && let Some(outcome) = self.summed(who, &decision, (category, severity), session)?
        {
            return Ok(outcome);
        }
        if passes && facts.surface == Surface::ControlPlane && facts.act != Act::Trust {
            crossing.more.extend(self.keep_before(who)?);
        }
        let suggestion = suggestion(&decision, &crossing);
        let tainted = !(facts.direct | facts.ambient).is_empty();
        // Whoever is asked is shown what is asked.
        let content = self.content(&crossing, decision.verdict == Verdict::Ask)?;
        // What was staged left the file as it was.
        let changes = passes && decision.verdict != Verdict::Stage && facts.act.changes_file();
        let mut replaces = crossing.replaces.take().filter(|_| changes);
        replaces.take_if(|replaces| !self.matters(replaces, who.session, decision.taint));
        let lost = replaces.as_ref().is_some_and(Replaces::is_tainted);
        let before = self.before(&crossing, passes && (tainted || lost || is_memory(&facts)))?;
        // What a command says is not what the file holds then.
        let put = content.filter(|_| crossing.bytes.is_some()).map(|content| content.sha256);
        let replaced = match replaces {
            Some(replaces) => Some(self.replaced(replaces, before, put, &mut crossing.more)?),
            None => None,
        };
        let sketch =
            (enters && !decision.taint.is_empty()).then(|| self.sketch(&crossing)).flatten();
        let missed = enters && matches!(crossing.shown, Shown::Unread);
        if enters && !matches!(crossing.shown, Shown::Nothing) {
            crossing.more.push(("shown", Value::from(!missed)));
        }
        let hosts = match crossing.action.content {
            Some(text) if enters && decision.taint.contains(Taint::INJECTION_SUSPECT) => {
                hosts_in(text)
            }
            _ => Vec::new(),
        };
        if !hosts.is_empty() {
            let hosts = hosts.iter().map(|host| Value::from(host.clone())).collect();
            crossing.more.push(("hosts", Value::Array(hosts)));
        }
        if !crossing.how.is_empty() {
            crossing.more.push(("how", Value::from(shortened(&crossing.how))));
        }
        if let Some(approval) = approval {
            parents.push(approval);
            crossing.more.push(("approval", Value::from(approval.to_string())));
        }
        let told = Told {
            facts: &facts,
            decision: &decision,
            scan: scan.as_ref(),
            category,
            severity,
            suggestion: suggestion.as_deref(),
            action: action.0,
            digest: settings.rules.digest(),
            context: session.context,
            content,
            before,
            sketch: sketch.as_ref().map(Sketch::to_base64),
            trial: self.on_trial(who.session)?,
            more: std::mem::take(&mut crossing.more),
        };
        let kind = if passes { crossing.kind } else { RecordType::GuardDecision };
        let workspace = who.workspace.to_string_lossy();
        let mut event = Event::new(kind, who.principal, told.into_value());
        event.taint = decision.taint.names().map(Into::into).collect();
        event.parents = session.context.into_iter().chain(parents).collect();
        event.agent = who.agent;
        event.session = who.session;
        event.workspace = &workspace;
        // What leaves the session as it is need not keep others waiting for the disk.
        let mut held_session = Some(held_session);
        if crossing.apart && passes && !enters {
            held_session = None;
        }
        let record = match crossing.taker {
            Some(take) => take(event)?,
            None => self.store.append(event)?.id,
        };

        held(&self.recent).add(record, decision.taint, who.session);
        if enters && let Some(session) = held_session.as_deref_mut() {
            let hashes = sketch.as_ref().map_or(0, Sketch::len);
            session.entered(record, decision.taint, sketch);
            hosts.iter().for_each(|host| session.names_host(record, host));
            if missed {
                session.missed(decision.taint);
            }
            self.lighten(hashes)?;
        }
        if changes && let Some(file) = crossing.file {
            let stays = std::mem::take(&mut crossing.stays);
            let writer = stays.writer(record, crossing.from.take(), facts.direct, replaced);
            let to = crossing.to.take().unwrap_or_else(|| file.path.clone());
            self.wrote(to, writer)?;
        }
        let text = (decision.verdict == Verdict::Redact)
            .then(|| redacted(&crossing, scan.as_ref(), guard))
            .flatten();
        let mut outcome = Outcome {
            record,
            verdict: decision.verdict,
            rule: decision.rule.into_owned(),
            reason: decision.reason,
            suggestion,
            taint: decision.taint,
            severity,
            category,
            text,
            staged: crossing.file.and_then(|file| file.staged.clone()),
            alerts: Vec::new(),
        };
        if outcome.verdict == Verdict::Ask {
            outcome.suggestion = Some(format!(
                "the owner can allow it with `wardkeep approvals approve {}`; then try again",
                &record.to_string()[..12]
            ));
        }
        let Some(session) = held_session.as_deref_mut() else { return Ok(outcome) };
        if outcome.verdict == Verdict::Deny {
            outcome.alerts.extend(self.after_denial(who, record, session)?);
        }
        if facts.act == Act::Reply && facts.scan != ScanVerdict::Clean {
            outcome.alerts.push(self.contamination_of(who, record, session));
        }
        Ok(outcome)
    }

    /// Direct taint, and the parents that it comes from.
    fn direct(&self, crossing: &Crossing<'_>, session: &Session) -> (Taint, Vec<RecordId>) {
        let who = crossing.who;
        let mut parents: Vec<RecordId> = Vec::new();
        let mut direct = Taint::NONE;
        for parent in who.parents.iter().chain(&crossing.parents) {
            // Taint counts for all of them, however many are written down.
            direct |= self.taint_from(*parent, who.session);
            if parents.len() < PARENTS && !parents.contains(parent) {
                parents.push(*parent);
            }
        }
        let acts = matches!(
            crossing.action.act,
            Act::Write
                | Act::Rename
                | Act::Change
                | Act::Send
                | Act::Call
                | Act::Install
                | Act::Reply
        );
        // What cannot be read may repeat anything.
        if acts && matches!(crossing.shown, Shown::Unread) {
            direct |= session.ambient;
        }
        if acts && let Some(text) = crossing.action.content {
            let before = crossing.before.as_deref().map(String::from_utf8_lossy);
            for (record, taint) in session.repeats(text, before.as_deref().unwrap_or_default()) {
                direct |= taint;
                if parents.len() < PARENTS && !parents.contains(&record) {
                    parents.push(record);
                }
            }
            direct |= session.unrecognised();
        }
        (direct, parents)
    }

    /// The decision; where it is a question, the owner may have answered it already.
    fn judged(
        &self,
        crossing: &Crossing<'_>,
        around: Around,
        scan: Option<Scan>,
        settings: &Settings,
        action: ActionHash,
        now: Timestamp,
    ) -> Result<Judged> {
        let rules = &settings.rules;
        let mut facts = assess::facts(&crossing.action, around, scan.as_ref());
        if crossing.observed {
            let decision = observed(&facts);
            return Ok(Judged { decision, facts, scan, approval: None });
        }
        let mut decision = decide::judge(&facts, rules);
        let mut approval = None;
        if let Some((rule, reason)) = &crossing.refused {
            decision.verdict = Verdict::Deny;
            decision.rule = rule.clone().into();
            decision.reason.clone_from(reason);
            return Ok(Judged { decision, facts, scan, approval });
        }
        if let (Some((rule, reason)), Verdict::Allow) = (&crossing.asks, decision.verdict) {
            decision.verdict = Verdict::Ask;
            decision.rule = rule.clone().into();
            decision.reason.clone_from(reason);
        }
        if decision.verdict == Verdict::Ask {
            // The answer to a question that cannot be looked up is no.
            if let Some(grant) = self.approvals.take(action, crossing.who.session, now)? {
                facts.approved = true;
                let mut cleared = facts.clone();
                cleared.direct = cleared.direct.without(grant.declassifies);
                cleared.ambient = cleared.ambient.without(grant.declassifies);
                let taint = decision.taint;
                decision = decide::judge(&cleared, rules);
                decision.taint |= taint;
                approval = Some(grant.record);
            } else if let Some(refusal) =
                self.approvals.refused(action, crossing.who.session, now)?
            {
                decision.verdict = Verdict::Deny;
                decision.rule = "owner-refused".into();
                decision.reason = format!(
                    "The owner refused exactly this within the last ten minutes (record {refusal:.12})."
                );
            }
        }
        if let Some(denial) = crossing.file.and_then(|file| file.denial.as_ref())
            && matches!(decision.verdict, Verdict::Deny | Verdict::Stage)
        {
            decision.reason = format!("{} ({})", denial.why, decision.rule);
        } else if let Some(why) = &crossing.why
            && decision.verdict != Verdict::Allow
        {
            let reason = decision.reason.trim_end_matches('.');
            decision.reason = format!("{reason}; {why}");
        }
        Ok(Judged { decision, facts, scan, approval })
    }

    fn action_hash(&self, crossing: &Crossing<'_>) -> ActionHash {
        let action = &crossing.action;
        let content = crossing.bytes.or(action.content.map(str::as_bytes));
        let key = ActionKey {
            principal: action.principal,
            surface: action.surface,
            act: action.act,
            subject: action.subject,
            how: &crossing.how,
            content: content.map(sha256),
            workspace: &crossing.who.workspace.to_string_lossy(),
        };
        key.hash()
    }

    fn content(&self, crossing: &Crossing<'_>, asked: bool) -> Result<Option<Digest>> {
        let action = &crossing.action;
        let Some(bytes) = crossing.bytes.or(action.content.map(str::as_bytes)) else {
            return Ok(None);
        };
        let kept = (self.config.capture || asked) && bytes.len() <= KEPT;
        if kept {
            self.store.put_blob(bytes)?;
        }
        Ok(Some(Digest { sha256: sha256(bytes), bytes: bytes.len() as u64, kept }))
    }

    /// What the file held before a change, kept where that may have to be undone.
    fn before(&self, crossing: &Crossing<'_>, keep: bool) -> Result<Option<Option<Digest>>> {
        if crossing.file.is_none() || !crossing.action.act.changes_file() {
            return Ok(None);
        }
        let Some(bytes) = &crossing.before else {
            // What is there and cannot be read, or is too large, is not told to be nothing.
            let there = crossing.file.is_some_and(|file| file.identity.is_some());
            return Ok((!there).then_some(None));
        };
        if keep {
            self.store.put_blob(bytes)?;
        }
        Ok(Some(Some(Digest { sha256: sha256(bytes), bytes: bytes.len() as u64, kept: keep })))
    }

    /// What a change takes the place of, kept so that it can be known again.
    fn replaced(
        &self,
        replaces: Replaces,
        before: Option<Option<Digest>>,
        put: Option<[u8; 32]>,
        more: &mut Vec<(&'static str, Value<'static>)>,
    ) -> Result<Replaced> {
        let held = match &replaces.held {
            Held::Before => before.flatten().map(|before| before.sha256),
            Held::Other(bytes) => match bytes {
                Some(bytes) if replaces.is_tainted() => Some(self.store.put_blob(bytes)?.0),
                bytes => bytes.as_deref().map(sha256),
            },
        };
        more.push(replaces.value(held, put));
        Ok(Replaced { held, put, past: replaces.past })
    }

    fn sketch(&self, crossing: &Crossing<'_>) -> Option<Sketch> {
        let text = match &crossing.shown {
            Shown::Text(text) => Some(text.as_str()),
            Shown::Nothing | Shown::Unread => crossing.action.content,
        };
        text.map(|text| Sketch::of(text, &self.sketch_key))
    }

    /// In a flood, a denial that gets no record of its own.
    fn summed(
        &self,
        who: &Who<'_>,
        decision: &Decision,
        (category, severity): (Option<Category>, Severity),
        session: &mut Session,
    ) -> Result<Option<Outcome>> {
        let mut alerts = Vec::new();
        let record = match session.flood.note(&decision.rule, self.store.now()) {
            Noted::Single => return Ok(None),
            Noted::Begins => {
                let message = format!(
                    "Session {} was denied more than {} times in a minute; further denials are \
                     summed up.",
                    who.session,
                    super::flood::SINGLE
                );
                let alert = self.alert(
                    who,
                    "RateLimitExceeded",
                    (Category::RateLimit, Severity::Critical),
                    message,
                    None,
                    None,
                )?;
                let record = alert.record;
                alerts.push(alert);
                record
            }
            Noted::Counted => None,
            Noted::Due(sum) => Some(self.write_sum(who, &sum)?),
        };
        if let Some(record) = record {
            session.summary = Some(record);
        }
        Ok(Some(Outcome {
            record: session.summary.unwrap_or(RecordId::ZERO),
            verdict: decision.verdict,
            rule: decision.rule.clone().into_owned(),
            reason: decision.reason.clone(),
            suggestion: None,
            taint: decision.taint,
            severity,
            category,
            text: None,
            staged: None,
            alerts,
        }))
    }

    pub(super) fn write_sum(&self, who: &Who<'_>, sum: &Sum) -> Result<RecordId> {
        let rules: Vec<(String, u64)> =
            sum.rules.iter().map(|(rule, count)| (rule.clone(), *count)).collect();
        let mut counted = wardkeep_evidence::json::Object::default();
        for (rule, count) in rules {
            counted.push(rule, Value::from(count));
        }
        let content = Value::from([
            ("kind", Value::from("flood")),
            ("v", Value::from(1u64)),
            ("count", Value::from(sum.count)),
            ("from", Value::from(sum.from.to_string())),
            ("to", Value::from(sum.to.to_string())),
            ("rules", Value::Object(counted)),
            ("category", Value::from(Category::RateLimit.as_str())),
            ("severity", Value::from(Severity::High.as_str())),
            ("verdict", Value::from(Verdict::Deny.as_str())),
        ]);
        self.note(who, Principal::Sys, content)
    }

    /// Raises an alert.
    pub(super) fn alert(
        &self,
        who: &Who<'_>,
        name: &'static str,
        (category, severity): (Category, Severity),
        message: String,
        suggestion: Option<String>,
        about: Option<RecordId>,
    ) -> Result<Alert> {
        let mut content = wardkeep_evidence::json::Object::from([
            ("kind", Value::from("alert")),
            ("v", Value::from(1u64)),
            ("alert", Value::from(name)),
            ("category", Value::from(category.as_str())),
            ("severity", Value::from(severity.as_str())),
            ("message", Value::from(message.clone())),
            ("blocked", Value::from(true)),
        ]);
        if let Some(suggestion) = suggestion {
            content.push("suggestion", Value::from(suggestion));
        }
        if let Some(about) = about {
            content.push("about", Value::from(about.to_string()));
        }
        let workspace = who.workspace.to_string_lossy();
        let mut event =
            Event::new(RecordType::GuardDecision, Principal::Sys, Value::Object(content));
        event.agent = who.agent;
        event.session = who.session;
        event.workspace = &workspace;
        event.parents = about.into_iter().collect();
        let record = self.store.append(event)?.id;
        let alert = Alert { record: Some(record), name, severity, message };
        held(&self.raised).add(who.session, alert.clone());
        Ok(alert)
    }

    /// What is not allowed as a whole does not happen in parts: those that were allowed by
    /// themselves, and are recorded so, are named in a record that says that they did not happen.
    pub(super) fn withheld(
        &self,
        who: &Who<'_>,
        happens: bool,
        parts: impl Iterator<Item = (bool, RecordId)>,
    ) -> Result<()> {
        if happens {
            return Ok(());
        }
        let parts = parts.filter(|(allowed, record)| *allowed && *record != RecordId::ZERO);
        let parts: Vec<RecordId> = parts.map(|(_, record)| record).take(WITHHELD).collect();
        if parts.is_empty() {
            return Ok(());
        }
        let content = Value::from([
            ("kind", Value::from("withheld")),
            ("v", Value::from(1u64)),
            ("count", Value::from(parts.len() as u64)),
            ("reason", Value::from("Another part of the same action was not allowed.")),
        ]);
        self.note_after(who, Principal::Sys, content, parts)?;
        Ok(())
    }

    /// Writes one of the monitor's own acts down.
    pub(super) fn note(
        &self,
        who: &Who<'_>,
        principal: Principal,
        content: Value<'static>,
    ) -> Result<RecordId> {
        self.note_after(who, principal, content, Vec::new())
    }

    /// As [`Self::note`], after other records.
    fn note_after(
        &self,
        who: &Who<'_>,
        principal: Principal,
        content: Value<'static>,
        parents: Vec<RecordId>,
    ) -> Result<RecordId> {
        let workspace = who.workspace.to_string_lossy();
        let mut event = Event::new(RecordType::GuardDecision, principal, content);
        event.agent = who.agent;
        event.session = who.session;
        event.workspace = &workspace;
        event.parents = parents;
        Ok(self.store.append(event)?.id)
    }
}

fn is_memory(facts: &Facts) -> bool {
    facts.file.as_ref().is_some_and(|file| file.memory)
}

/// What has happened is told as it is: nothing is stopped any more.
fn observed(facts: &Facts) -> Decision {
    let reason = match facts.scan {
        ScanVerdict::Clean => "It was said in the session.",
        _ => "It was said in the session, and looks like an attack.",
    };
    Decision {
        verdict: Verdict::Allow,
        rule: "session-observed".into(),
        reason: reason.to_owned(),
        hits: Vec::new(),
        taint: facts.taint(),
    }
}

/// The text without what was found.
fn redacted(crossing: &Crossing<'_>, scan: Option<&Scan>, guard: &OutputGuard) -> Option<String> {
    let text = crossing.action.content?;
    if crossing.action.act == Act::Reply {
        return Some(guard.redact(text));
    }
    let mut spans: Vec<(usize, usize)> =
        scan?.findings.iter().map(|finding| (finding.span.start, finding.span.end)).collect();
    spans.sort_unstable();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (start, end) in spans {
        // A sentence that was found is withheld to its end.
        let end = text.get(end..).map_or(text.len(), |rest| {
            rest.find(['.', '\n', '!', '?', '。']).map_or(text.len(), |stop| end + stop)
        });
        if end <= at {
            continue;
        }
        let start = start.max(at);
        out.push_str(text.get(at..start).unwrap_or_default());
        out.push_str(wardkeep_detect::leak::WITHHELD);
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Some(out)
}

/// The host that something would be sent to, where content that looked like an attack has named it and
/// the owner has not.
fn named(crossing: &Crossing<'_>, session: &Session) -> Option<(String, RecordId)> {
    let network = crossing.action.network.as_ref().filter(|network| !network.allowed)?;
    let sends = network.payload > 0 || !READING.contains(&network.method.as_str());
    let record = session.named_by(&network.host).filter(|_| sends)?;
    Some((shortened(&network.host), record))
}

/// The hosts that a text names.
fn hosts_in(text: &str) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for found in find_urls(text) {
        let host = match found.url.host {
            Host::Domain { ascii, .. } => ascii,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => IpAddr::V6(address).to_canonical().to_string(),
            Host::None => continue,
        };
        if hosts.len() < HOSTS && host.len() < 256 && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    // Written without a scheme. Names of files are among them, and no request goes to those.
    let between = |sign: char| !(sign.is_ascii_alphanumeric() || ".-".contains(sign));
    for word in text.split(between) {
        let word = word.trim_matches(['.', '-']).to_ascii_lowercase();
        let dots = word.bytes().filter(|byte| *byte == b'.').count();
        let last = word.rsplit('.').next().unwrap_or_default();
        let name =
            dots > 0 && last.len() > 1 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
        if (name || word.parse::<Ipv4Addr>().is_ok())
            && word.len() < 256
            && hosts.len() < HOSTS
            && !hosts.contains(&word)
        {
            hosts.push(word);
        }
    }
    hosts
}

/// What the owner can do about a request that did not leave.
pub(super) fn network_suggestion(rule: &str) -> &'static str {
    match rule {
        "net-deny-blocked" => {
            "take the host off `blocked_domains` in config.toml and sign it (`wardkeep config sign`), if \
             it is meant"
        }
        "net-deny-oversized" => {
            "send less, or set `max_payload_size` under `[egress]` in config.toml and sign it (`wardkeep \
             config sign`), if it is meant"
        }
        _ => {
            "add the host to `allowed_domains` in config.toml and sign it (`wardkeep config sign`), if it \
             is meant"
        }
    }
}

/// What to do next.
fn suggestion(decision: &Decision, crossing: &Crossing<'_>) -> Option<String> {
    if matches!(decision.verdict, Verdict::Deny | Verdict::Stage)
        && let Some(denial) = crossing.file.and_then(|file| file.denial.as_ref())
    {
        return Some(denial.next.clone());
    }
    let text = match (decision.verdict, decision.rule.as_ref()) {
        (Verdict::Allow, "sandbox-none" | "sandbox-partial") if !crossing.told => {
            "start the agent with `wardkeep run`; `wardkeep sandbox audit` tells what is missing"
        }
        (Verdict::Allow, _) => return None,
        (Verdict::Ask, _) => "see `wardkeep approvals list`; the owner decides",
        (Verdict::Redact, _) => "the parts that were found were withheld",
        (Verdict::Stage, _) => "write it to the staging folder; the owner applies it",
        (Verdict::Deny, "mi-deny-tainted") => {
            "keep it out of memory, or let the owner write it; what came from outside stays there"
        }
        (Verdict::Deny, "cpi-deny-tainted" | "skill-deny-tainted") => {
            "let the owner make this change; the session has read something that wants it made"
        }
        (Verdict::Deny, rule) if rule.starts_with("net-") => network_suggestion(rule),
        (Verdict::Deny, rule) if rule.starts_with("fs-") => {
            "let the owner read it, or allow the file in config.toml and sign it"
        }
        (Verdict::Deny, "owner-refused") => "do something else, or ask the user what they want",
        (Verdict::Deny, "output-leak-detected") => "answer without quoting the prompt",
        (Verdict::Deny, _) => "see `wardkeep log` for what led to it",
    };
    Some(text.to_owned())
}
