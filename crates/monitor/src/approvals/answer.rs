//! Answering a request: a record, durable, with the signed grant in it.

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, Record, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Presence, Request as Who};

use super::{
    ActionKey, Approvals, ApprovalsError, Asked, Grant, GrantKey, MAX_SECONDS, ONCE_SECONDS,
    Result, SESSION_SECONDS, SHORTEST_PREFIX, Scope, Standing, deadline, later, standing,
};
use crate::journal::parse_line;
use crate::policy::Desk;
use crate::store::{Event, Store};

/// What the owner wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// How far it reaches.
    pub scope: Scope,
    /// Until when; the scope's own time where none is given.
    pub until: Option<Timestamp>,
    /// Taint that is not to count against the action.
    pub declassifies: Taint,
}

impl Wish {
    /// One time, soon, declassifying nothing.
    pub const ONCE: Self = Self { scope: Scope::Once, until: None, declassifies: Taint::NONE };
}

/// An approval that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// What is allowed.
    pub grant: Grant,
}

/// A refusal that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The request.
    pub request: RecordId,
    /// The record of the refusal.
    pub record: RecordId,
    /// Whether an approval that was in force ended by it.
    pub withdrawn: bool,
}

impl Approvals {
    /// Approves the request whose id begins with `prefix`.
    ///
    /// # Errors
    /// When there is no such request, it ended or was answered, it asks for something else than it
    /// shows, no person is there, or the answer cannot be recorded.
    pub fn approve(&self, store: &Store, prefix: &str, wish: Wish, who: &Who) -> Result<Approved> {
        permitted(who, true)?;
        let key = &*self.key()?;
        let asked = self.find(prefix, who.now)?;
        let line = self.line_of(&asked)?;
        let parsed = parse_line(&line).filter(|line| line.record.id == asked.id);
        let record = &parsed.ok_or(ApprovalsError::Mismatch(asked.id))?.record;
        // What was shown is what is approved: the hash is computed again from it.
        let action = ActionKey::of_record(record).map(|action| action.hash());
        if action != Some(asked.action) {
            return Err(ApprovalsError::Mismatch(asked.id));
        }
        let taint = Taint::from_names(record.taint.iter().map(AsRef::as_ref));
        if !taint.contains(wish.declassifies) {
            return Err(ApprovalsError::Taint(wish.declassifies.to_string()));
        }
        let mut grant = Grant {
            action: asked.action,
            scope: wish.scope,
            expires: until(wish, who.now)?,
            session: asked.session.clone(),
            request: asked.id,
            declassifies: wish.declassifies,
            nonce: nonce()?,
            record: RecordId::ZERO,
        };
        if grant.scope == Scope::Always {
            // Looked at first, so that no approval is recorded that cannot come into force.
            standing::check(&Desk::new(store, self.owner).policy().settings().set)?;
        }
        let mut told = kind("approval");
        grant.write(&key.sign(&grant), &mut told);
        tell_way(&mut told, who);
        grant.record = append(store, record, told)?;
        if grant.scope == Scope::Always
            && let Err(error) = self.stand(store, key, who, &grant, record)
        {
            // The record says that it was approved; another one takes that back.
            append(store, record, refusal(&asked, who))?;
            return Err(error);
        }
        drop(self.current()?);
        Ok(Approved { grant })
    }

    /// Refuses the request whose id begins with `prefix`, or takes back an approval of it.
    ///
    /// # Errors
    /// When there is neither, the process is confined, or the answer cannot be recorded.
    pub fn deny(&self, store: &Store, prefix: &str, who: &Who) -> Result<Refused> {
        permitted(who, false)?;
        if let Some(grant) = self.granted(prefix, who.now)? {
            return self.withdraw(store, &grant, who);
        }
        let asked = self.find(prefix, who.now)?;
        let line = self.line_of(&asked)?;
        let parsed = parse_line(&line).filter(|line| line.record.id == asked.id);
        let record = &parsed.ok_or(ApprovalsError::Mismatch(asked.id))?.record;
        let answer = append(store, record, refusal(&asked, who))?;
        drop(self.current()?);
        Ok(Refused { request: asked.id, record: answer, withdrawn: false })
    }

    /// Takes back a grant.
    fn withdraw(&self, store: &Store, grant: &Grant, who: &Who) -> Result<Refused> {
        if grant.scope == Scope::Always {
            let key = &*self.key()?;
            // The owner's word is needed for the signature alone: it takes away.
            let who = Who { presence: Presence::Yes, ..*who };
            let desk = Desk::new(store, self.owner);
            let left = standing::change(&desk, key, &who, |all| {
                all.retain(|one| one.grant.id() != grant.id());
            })?;
            self.inner().standing = left;
        }
        let mut told = kind("refusal");
        told.push("action", Value::from(grant.action.to_string()));
        told.push("request", Value::from(grant.request.to_string()));
        told.push("withdrawn", Value::from(true));
        tell_way(&mut told, who);
        let mut event = Event::new(RecordType::GuardDecision, Principal::User, Value::Object(told));
        event.session = &grant.session;
        event.parents = vec![grant.record];
        let record = store.append(event)?.id;
        drop(self.current()?);
        Ok(Refused { request: grant.request, record, withdrawn: true })
    }

    /// Puts a grant among those that stand.
    fn stand(
        &self,
        store: &Store,
        key: &GrantKey,
        who: &Who,
        grant: &Grant,
        record: &Record<'_>,
    ) -> Result<()> {
        let about = ActionKey::of_record(record)
            .map(|action| format!("{} {} {}", action.surface, action.act, action.subject))
            .unwrap_or_default();
        let new = Standing { grant: grant.clone(), about: about.chars().take(500).collect() };
        let desk = Desk::new(store, self.owner);
        self.inner().standing = standing::change(&desk, key, who, |all| {
            all.retain(|one| one.grant.action != grant.action);
            all.push(new);
        })?;
        Ok(())
    }

    /// The waiting request whose id begins with `prefix`.
    fn find(&self, prefix: &str, now: Timestamp) -> Result<Asked> {
        check_prefix(prefix)?;
        let inner = self.current()?;
        let begins = |id: RecordId| id.to_string().starts_with(prefix);
        let mut found = inner.book.requests.iter().filter(|asked| begins(asked.id));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ApprovalsError::Ambiguous(prefix.to_owned())),
            (Some(asked), None) if now >= deadline(asked) => {
                Err(ApprovalsError::Expired { id: asked.id, at: deadline(asked) })
            }
            (Some(asked), None) => Ok(asked.clone()),
            (None, _) => {
                let answered = inner.book.answered.iter().rfind(|one| begins(one.request));
                Err(match answered {
                    Some(one) => {
                        ApprovalsError::Answered { id: one.request, approved: one.approved }
                    }
                    None => ApprovalsError::Unknown(prefix.to_owned()),
                })
            }
        }
    }

    /// The grant in force whose request or record begins with `prefix`.
    fn granted(&self, prefix: &str, now: Timestamp) -> Result<Option<Grant>> {
        check_prefix(prefix)?;
        let (given, standing) = self.in_force(now)?;
        let begins = |id: RecordId| id.to_string().starts_with(prefix);
        let mut found = given
            .into_iter()
            .chain(standing.into_iter().map(|one| one.grant))
            .filter(|grant| begins(grant.request) || begins(grant.record));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ApprovalsError::Ambiguous(prefix.to_owned())),
            (found, _) => Ok(found),
        }
    }

    /// The line of the waiting request whose id begins with `prefix`, to be shown.
    ///
    /// # Errors
    /// When there is no such request, or the journal cannot be read.
    pub fn line(&self, prefix: &str, now: Timestamp) -> Result<Vec<u8>> {
        self.line_of(&self.find(prefix, now)?)
    }

    /// The line of a request.
    fn line_of(&self, asked: &Asked) -> Result<Vec<u8>> {
        let inner = self.inner();
        let folder = inner.folder.as_ref().ok_or(ApprovalsError::Mismatch(asked.id))?;
        Ok(folder.read_line(asked.location)?)
    }
}

fn check_prefix(prefix: &str) -> Result<()> {
    let digits = prefix.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !digits || !(SHORTEST_PREFIX..=64).contains(&prefix.len()) {
        return Err(ApprovalsError::NotAnId(prefix.to_owned()));
    }
    Ok(())
}

/// Whether a person may be behind an answer; saying no needs none.
pub(super) fn permitted(who: &Who, approves: bool) -> Result<()> {
    if who.confined {
        return Err(ApprovalsError::Confined);
    }
    if approves && who.presence == Presence::None {
        return Err(ApprovalsError::NoPerson);
    }
    Ok(())
}

/// When a grant ends.
fn until(wish: Wish, now: Timestamp) -> Result<Option<Timestamp>> {
    let usual = match wish.scope {
        Scope::Once => Some(ONCE_SECONDS),
        Scope::Session => Some(SESSION_SECONDS),
        Scope::Always => None,
    };
    match wish.until {
        None => Ok(usual.map(|seconds| later(now, seconds))),
        Some(until) if until > now && until <= later(now, MAX_SECONDS) => Ok(Some(until)),
        Some(until) => Err(ApprovalsError::Until(until)),
    }
}

/// Records an answer as a child of the request, with its taint: an answer to something tainted is
/// no cleaner than that.
fn append(store: &Store, request: &Record<'_>, told: Object<'static>) -> Result<RecordId> {
    let mut event = Event::new(RecordType::GuardDecision, Principal::User, Value::Object(told));
    event.taint = request.taint.clone();
    event.parents = vec![request.id];
    event.agent = request.meta_str("agent").unwrap_or_default();
    event.session = request.meta_str("session").unwrap_or_default();
    event.workspace = request.meta_str("workspace").unwrap_or_default();
    Ok(store.append(event)?.id)
}

/// Says by which way the answer came, where it was none of this machine's own.
fn tell_way(told: &mut Object<'static>, who: &Who) {
    if who.signer == Signer::Chat {
        told.push("by", Value::from(who.signer.name()));
    }
}

fn refusal(asked: &Asked, who: &Who) -> Object<'static> {
    let mut told = kind("refusal");
    told.push("action", Value::from(asked.action.to_string()));
    told.push("request", Value::from(asked.id.to_string()));
    tell_way(&mut told, who);
    told
}

fn kind(name: &'static str) -> Object<'static> {
    let mut told = Object::default();
    told.push("kind", Value::from(name));
    told.push("v", Value::from(1u64));
    told
}

fn nonce() -> Result<[u8; 16]> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| ApprovalsError::Random(error.to_string()))?;
    Ok(nonce)
}
