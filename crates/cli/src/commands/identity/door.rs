//! What an agent may ask of the daemon that holds its workspace: to look, to stage, to sync.

use std::path::Path;
use std::time::SystemTime;

use wardkeep_evidence::record::Principal;
use wardkeep_identity::config::Tier;
use wardkeep_identity::name::Name;
use wardkeep_identity::state::{FileState, Status};
use wardkeep_monitor::daemon::{Handler, Peer, Reach, Request, Response, Role, Sight};
use wardkeep_monitor::identity::{Asker, Desk, Place, Setup, Told, find};
use wardkeep_monitor::store::Store;
use wardkeep_monitor::wire::{Code, Refusal};
use wardkeep_policy::store::PolicyStore;

use super::history::keep_quietly;
use super::{Asked, Meant, Report, SentReport, diff, names, stage, status, sync};
use crate::error::CliError;

/// Width of a diff for someone whose terminal is elsewhere.
const WIDTH: usize = 76;
const OPERATIONS: [&str; 4] =
    ["identity.status", "identity.diff", "identity.stage", "identity.sync"];

/// Answers what is asked about workspaces, and hands the rest on.
pub(in crate::commands) struct IdentityDoor<'a> {
    pub(in crate::commands) state: &'a Path,
    pub(in crate::commands) store: &'a Store,
    pub(in crate::commands) next: &'a dyn Handler,
}

impl IdentityDoor<'_> {
    /// Keeps new versions of watched files, in every workspace. What fails is tried again.
    pub(in crate::commands) fn keep_versions(&self) {
        let owner = rustix::process::geteuid().as_raw();
        for path in PolicyStore::new(self.state, owner).workspaces() {
            if let Ok(Some(place)) = find(self.state, owner, &path, SystemTime::now()) {
                let _ = self.keep_versions_of(place, owner);
            }
        }
    }

    fn keep_versions_of(&self, place: Place, owner: u32) -> Result<(), CliError> {
        place.usable()?;
        let state = place.workspace().look(&|_| {})?;
        let changed = |file: &&FileState| file.tier == Tier::Watch && file.status != Status::Ok;
        let names: Vec<&Name> = state.files.iter().filter(changed).map(|file| &file.name).collect();
        if names.is_empty() {
            return Ok(());
        }
        let asked = Told::default().with_files(names);
        let meant = Meant { place, state: self.state.to_owned() };
        let asker = Asker { principal: Principal::Sys, uid: owner };
        let desk = Desk::new(self.store, &meant.place, asker);
        let done = desk.run(
            "keep",
            asked,
            |workspace| workspace.keep_watched(),
            |synced| Told::default().with_files(synced.versions.iter().map(|one| &one.name)),
        )?;
        keep_quietly(&meant, &desk, &done.outcome.versions, "keep", done.record);
        Ok(())
    }
}

impl Handler for IdentityDoor<'_> {
    fn handle(&self, peer: &Peer, request: Request) -> Response {
        if !OPERATIONS.contains(&request.op.as_str()) {
            return self.next.handle(peer, request);
        }
        self.answer(peer, &request).into()
    }
}

impl IdentityDoor<'_> {
    fn answer(&self, peer: &Peer, request: &Request) -> Result<SentReport, Refusal> {
        let asked: Asked = request.read()?;
        let refused = |error: CliError| {
            Refusal::new(Code::Refused, format!("{}: {}", error.message, error.hint))
        };
        let report = self.report(peer, &request.op, &asked).map_err(refused)?;
        Ok(report.send())
    }

    fn report(&self, peer: &Peer, operation: &str, asked: &Asked) -> Result<Report, CliError> {
        let owner = rustix::process::geteuid().as_raw();
        let unknown = || super::unknown(&asked.workspace);
        if !asked.workspace.is_absolute() {
            return Err(unknown());
        }
        let place = find(self.state, owner, &asked.workspace, SystemTime::now())
            .map_err(|_| unknown())?
            .ok_or_else(unknown)?;
        let files = names(place.path(), &asked.files);
        let named = files.as_deref().unwrap_or_default();
        if peer.role != Role::Owner && !may_ask(peer, &place, operation, named) {
            return Err(unknown());
        }
        let files = files?;
        let principal = if peer.role == Role::Owner { Principal::User } else { Principal::Tool };
        let asker = Asker { principal, uid: peer.uid };
        let meant = Meant { place, state: self.state.to_owned() };
        let desk = Desk::new(self.store, &meant.place, asker);
        match operation {
            "identity.status" => status::report(&meant.place, false, None),
            "identity.diff" => diff::report(&meant, &files, WIDTH, None),
            "identity.stage" => stage::report(&meant, &desk, &files, asked.delete),
            _ => sync::report(&meant, &desk, None),
        }
    }
}

/// Whether an agent may ask this of a workspace: one agent learns nothing of the workspaces of another, and a
/// process that does not see a workspace, or cannot write it, has nobody do it in its place.
fn may_ask(peer: &Peer, place: &Place, operation: &str, named: &[Name]) -> bool {
    let root = match (place.setup(), peer.view.sight()) {
        (Setup::Owned { agent, .. }, _) if peer.uid != agent => return false,
        (_, Sight::Same) => return true,
        (_, Sight::Other(root)) => root,
        // Another user stands between the agent and its files there, and root's daemon may not be let look.
        (Setup::Owned { .. }, Sight::Held | Sight::Unknown) => return true,
        (Setup::User, Sight::Held | Sight::Unknown) => return false,
    };
    let needed = match operation {
        "identity.status" | "identity.diff" => Reach::Read,
        _ => Reach::Write,
    };
    if root.reach(place.path()) < needed {
        return false;
    }
    // Some of it may be kept from it although the folder is not.
    let Ok(state) = place.workspace().look(&|_| {}) else { return false };
    let tracked = state.files.iter().map(|file| &file.name);
    tracked.chain(named).all(|name| root.agrees(&place.path().join(name.as_path())))
}
