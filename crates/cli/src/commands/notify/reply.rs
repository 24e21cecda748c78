//! What an answer from the chat does.

use std::path::Path;

use wardkeep_gateway::notify::Said;
use wardkeep_monitor::approvals::{Approvals, ApprovalsError, Grant, Scope, Status, Wish};
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Presence, Request};

use super::settings::{Chat, Settings};
use super::watch::is_whole;
use crate::context::Context;

/// Deals with an answer, and gives what is replied.
pub(super) fn deal(
    context: &Context,
    state: &Path,
    approvals: &Approvals,
    chat: &Chat,
    said: &Said,
) -> String {
    // The owner may have taken it back, or someone changed the config, since this was started.
    let still = Settings::load(state).ok().and_then(|settings| settings.telegram);
    if still.as_ref() != Some(chat) || chat.answers.is_none() {
        return "Not taken: answers from this chat no longer count.".to_owned();
    }
    let (word, done) = match said {
        Said::Approve(code) => ("Approved", approve(context, approvals, code)),
        Said::Deny(code) => ("Denied", deny(context, approvals, code)),
    };
    match done {
        Ok(code) => format!("{word}: {code}"),
        Err(why) => format!("Not taken: {why}."),
    }
}

fn approve(context: &Context, approvals: &Approvals, code: &str) -> Result<String, &'static str> {
    let who = who(context)?;
    let line = approvals.line(code, who.now).map_err(|error| why(&error))?;
    let shown = approvals.show(&line, who.now, &|_| None).map_err(|error| why(&error))?;
    if shown.status != Status::Pending {
        return Err("it does not wait for an answer");
    }
    if !is_whole(&shown) {
        return Err("the notice did not show all of it, so answer it at the machine");
    }
    let store = context.open_store().map_err(|_| UNABLE)?;
    let done = approvals.approve(&store, &shown.request, Wish::ONCE, &who);
    done.map_err(|error| why(&error))?;
    Ok(format!("{code}, once. The agent may try again."))
}

fn deny(context: &Context, approvals: &Approvals, code: &str) -> Result<String, &'static str> {
    let who = who(context)?;
    if let Err(error) = approvals.line(code, who.now) {
        // What was approved for one time may be taken back; more than that, at the machine.
        let (given, _) = approvals.in_force(who.now).map_err(|error| why(&error))?;
        let once = |grant: &Grant| {
            grant.scope == Scope::Once && grant.request.to_string().starts_with(code)
        };
        if !given.iter().any(once) {
            return Err(why(&error));
        }
    }
    let store = context.open_store().map_err(|_| UNABLE)?;
    let done = approvals.deny(&store, code, &who).map_err(|error| why(&error))?;
    let taken = if done.withdrawn { ", which was approved before" } else { "" };
    Ok(format!("{code}{taken}."))
}

/// Said of everything that only the machine's owner can look into.
const UNABLE: &str = "it could not be recorded, look at the machine";

fn who(context: &Context) -> Result<Request, &'static str> {
    let now = context.now().map_err(|_| UNABLE)?;
    Ok(Request {
        presence: Presence::Yes,
        confined: context.is_confined(),
        signer: Signer::Chat,
        now,
    })
}

/// Why not, without anything of the machine in it.
fn why(error: &ApprovalsError) -> &'static str {
    match error {
        ApprovalsError::Unknown(_) | ApprovalsError::NotAnId(_) => "no request has this code",
        ApprovalsError::Ambiguous(_) => "several requests have this code, answer at the machine",
        ApprovalsError::Expired { .. } => "the request has ended, let the agent try again",
        ApprovalsError::Answered { approved: true, .. } => "it was approved before",
        ApprovalsError::Answered { approved: false, .. } => "it was denied before",
        ApprovalsError::Mismatch(_) => "it asks for something else than it shows",
        ApprovalsError::Confined => "answers are not taken inside `wardkeep run`",
        _ => UNABLE,
    }
}
