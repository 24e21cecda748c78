//! What every daemon answers: who it is, how it does, and the owner's approvals.

use serde::{Deserialize, Serialize};
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Presence, Request as Who};

use super::{Handler, Keeper, Peer, Request, Response, Role, Stop, Tally};
use crate::approvals::{Approvals, ApprovalsError, Asked, Grant, Scope, Shown, Standing, Wish};
use crate::store::Store;
use crate::wire::{Code, PROGRAM, PROTOCOL, Refusal, Versions};

/// The answer to `ping` and `version`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The program's version.
    pub program: String,
    /// The versions of the protocol that it speaks.
    pub protocol: Versions,
}

/// The answer to `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Who it is.
    #[serde(rename = "hello")]
    pub hello: Hello,
    /// Its process.
    pub pid: u32,
    /// Since when it runs.
    pub started: String,
    /// Seconds without a connection after which it ends.
    pub idle_exit: Option<u64>,
    /// Connections at the moment.
    pub connections: usize,
    /// Questions answered.
    pub answered: u64,
    /// Questions and connections refused.
    pub refused: u64,
    /// Requests that wait for the owner.
    pub pending: usize,
    /// When the next seal is due, in seconds since 1970.
    pub next_seal: Option<u64>,
    /// What goes wrong.
    pub problems: Vec<String>,
}

/// The body of `approvals.show` and `approvals.deny`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhichBody {
    /// The request's id, or its beginning.
    pub request: String,
}

/// The body of `approvals.approve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalBody {
    /// The request's id, whole: what is approved must have been shown.
    pub request: RecordId,
    /// `once`, `session` or `always`.
    pub scope: String,
    /// For how many seconds.
    #[serde(default)]
    pub seconds: Option<i64>,
    /// Taint that is not to count.
    #[serde(default)]
    pub declassifies: Vec<String>,
}

/// After so many questions of one connection, those who come next would wait for the index.
const MANY: u64 = 64;

/// What a daemon knows of itself.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Since when it runs.
    pub started: Timestamp,
    /// Seconds without a connection after which it ends.
    pub idle_exit: Option<u64>,
}

/// Answers what every daemon answers, and hands the rest on.
pub struct Office<'a> {
    /// The store.
    pub store: &'a Store,
    /// The approvals.
    pub approvals: &'a Approvals,
    /// The periodic work.
    pub keeper: &'a Keeper<'a>,
    /// The counts.
    pub tally: &'a Tally,
    /// The daemon itself.
    pub about: About,
    /// Ends it.
    pub stop: &'a Stop,
    /// Answers everything else.
    pub next: &'a dyn Handler,
}

impl std::fmt::Debug for Office<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Office").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Handler for Office<'_> {
    fn handle(&self, peer: &Peer, request: Request) -> Response {
        // A second look, in the one place where something is approved.
        if request.op.starts_with("approvals.") && peer.role != Role::Owner {
            return Response::refuse(Code::Forbidden, "approvals are for the owner alone");
        }
        match request.op.as_str() {
            "ping" | "version" => Response::of(&hello()),
            "status" => self.status().into(),
            "stop" => {
                self.stop.set();
                Response::of(&hello())
            }
            "approvals.list" => self.list().into(),
            "approvals.show" => self.show(&request).into(),
            "approvals.approve" => self.approve(&request).into(),
            "approvals.deny" => self.deny(&request).into(),
            _ => self.next.handle(peer, request),
        }
    }

    fn gone(&self, answers: u64) {
        if answers >= MANY {
            self.keeper.catch_up();
        }
    }
}

/// A list as it is sent.
#[derive(Debug, Serialize)]
struct List {
    pending: Vec<AskedRow>,
    grants: Vec<GrantRow>,
    forged: Vec<RecordId>,
}

#[derive(Debug, Serialize)]
struct AskedRow {
    request: RecordId,
    at: String,
    action: String,
    session: String,
    act: String,
    surface: String,
    subject: String,
    rule: String,
    reason: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct GrantRow {
    record: RecordId,
    request: RecordId,
    action: String,
    scope: &'static str,
    expires: Option<String>,
    session: String,
    declassifies: Vec<&'static str>,
    about: Option<String>,
}

impl From<Asked> for AskedRow {
    fn from(asked: Asked) -> Self {
        Self {
            request: asked.id,
            at: asked.at.to_string(),
            action: asked.action.to_string(),
            session: asked.session,
            act: asked.act,
            surface: asked.surface,
            subject: asked.subject,
            rule: asked.rule,
            reason: asked.reason,
            count: asked.count,
        }
    }
}

impl GrantRow {
    fn of(grant: &Grant, about: Option<String>) -> Self {
        Self {
            record: grant.record,
            request: grant.request,
            action: grant.action.to_string(),
            scope: grant.scope.as_str(),
            expires: grant.expires.map(|time| time.to_string()),
            session: grant.session.clone(),
            declassifies: grant.declassifies.names().collect(),
            about,
        }
    }
}

#[derive(Debug, Serialize)]
struct RefusedRow {
    request: RecordId,
    record: RecordId,
    withdrawn: bool,
}

impl Office<'_> {
    fn status(&self) -> Result<Status, Refusal> {
        let mut problems = self.keeper.problems();
        problems.extend(self.store.seal_problem());
        let pending = self.approvals.pending(self.store.now()).map_err(refused)?.len();
        Ok(Status {
            hello: hello(),
            pid: std::process::id(),
            started: self.about.started.to_string(),
            idle_exit: self.about.idle_exit,
            connections: self.tally.open(),
            answered: self.tally.answered(),
            refused: self.tally.refused(),
            pending,
            next_seal: self.store.next_seal(),
            problems,
        })
    }

    fn list(&self) -> Result<List, Refusal> {
        let now = self.store.now();
        let pending = self.approvals.pending(now).map_err(refused)?;
        let (given, standing) = self.approvals.in_force(now).map_err(refused)?;
        let given = given.iter().map(|grant| GrantRow::of(grant, None));
        let standing =
            standing.into_iter().map(|Standing { grant, about }| GrantRow::of(&grant, Some(about)));
        Ok(List {
            pending: pending.into_iter().map(AskedRow::from).collect(),
            grants: given.chain(standing).collect(),
            forged: self.approvals.forged().map_err(refused)?,
        })
    }

    fn show(&self, request: &Request) -> Result<Shown, Refusal> {
        let body: WhichBody = request.read()?;
        let now = self.store.now();
        let line = match self.approvals.line(&body.request, now) {
            Ok(line) => line,
            Err(error) => {
                let whole = RecordId::from_hex(&body.request);
                whole.and_then(|id| self.keeper.line(id)).ok_or_else(|| refused(error))?
            }
        };
        self.approvals.show(&line, now, &|id| self.keeper.line(id)).map_err(refused)
    }

    fn approve(&self, request: &Request) -> Result<GrantRow, Refusal> {
        let body: ApprovalBody = request.read()?;
        let who = self.who();
        let scope = body
            .scope
            .parse::<Scope>()
            .map_err(|error| Refusal::new(Code::Malformed, error.to_string()))?;
        let until = body.seconds.map(|seconds| {
            Timestamp::from_unix(who.now.unix().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
        });
        let declassifies = Taint::from_names(body.declassifies.iter().map(String::as_str));
        let wish = Wish { scope, until, declassifies };
        let id = body.request.to_string();
        let approved = self.approvals.approve(self.store, &id, wish, &who).map_err(refused)?;
        Ok(GrantRow::of(&approved.grant, None))
    }

    fn deny(&self, request: &Request) -> Result<RefusedRow, Refusal> {
        let body: WhichBody = request.read()?;
        let denied =
            self.approvals.deny(self.store, &body.request, &self.who()).map_err(refused)?;
        let crate::approvals::Refused { request, record, withdrawn } = denied;
        Ok(RefusedRow { request, record, withdrawn })
    }

    /// The owner, as the socket's door has found.
    fn who(&self) -> Who {
        Who { presence: Presence::Yes, confined: false, signer: Signer::Cli, now: self.store.now() }
    }
}

fn hello() -> Hello {
    Hello { program: PROGRAM.to_owned(), protocol: PROTOCOL }
}

fn refused(error: ApprovalsError) -> Refusal {
    let code = match error {
        ApprovalsError::Journal(_)
        | ApprovalsError::Store(_)
        | ApprovalsError::Write(_)
        | ApprovalsError::Io { .. }
        | ApprovalsError::Random(_) => Code::Failed,
        _ => Code::Refused,
    };
    Refusal::new(code, error.to_string())
}
