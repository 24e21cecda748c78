//! `wardkeep approvals approve`

use serde::Serialize;
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;
use wardkeep_monitor::approvals::{ApprovalsError, Scope, Status, Wish};
use wardkeep_policy::sign::Presence;

use super::{open, show};
use crate::commands::md::sign::request;
use crate::commands::time::parse_duration;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Approves a request, after showing it: the agent may try again
///
/// The approval is for exactly what is shown, signed with a key of this machine, and recorded. It is
/// good for one time within ten minutes, unless told otherwise. Refuses without a terminal unless
/// --yes is given, and always inside `wardkeep run`: approving is the owner's, never the agent's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The request: its id, or at least the first 8 digits of it
    request: String,
    /// Every time in the session that asked, for 12 hours
    #[arg(long, conflicts_with = "always")]
    session: bool,
    /// Every time, in the signed set, until it is taken back with `deny`
    #[arg(long)]
    always: bool,
    /// For how long: 10m, 2h, 7d; at most 30 days
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<String>,
    /// Let this taint not count against it, such as WEB_DERIVED; may be given again
    #[arg(long, value_name = "TAINT")]
    declassify: Vec<String>,
    /// Approve without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    request: String,
    record: String,
    action: String,
    scope: &'static str,
    expires: Option<String>,
    declassifies: Vec<&'static str>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let who = request(context, args.yes)?;
    // Said before anything is shown, as when something is signed.
    if who.confined {
        return Err(ApprovalsError::Confined.into());
    }
    if who.presence == Presence::None {
        return Err(ApprovalsError::NoPerson.into());
    }
    let wish = wish(&args, who.now)?;
    let approvals = open(context)?;
    // Refuses first what cannot be approved any more.
    approvals.line(&args.request, who.now)?;
    let shown = show::find(context, &approvals, &args.request)?;
    show::print(context, &shown);
    if shown.status == Status::Pending && who.presence == Presence::Terminal {
        let what = match wish.scope {
            Scope::Once => "once",
            Scope::Session => "for the session",
            Scope::Always => "for always",
        };
        if !context.confirm(&format!("Approve this {what}?"))? {
            return Err(CliError::refused("not approved", "it stays denied until you approve it"));
        }
    }
    let store = context.open_store()?;
    // It may have taken a while to say yes.
    let who = wardkeep_policy::sign::Request { now: context.now()?, ..who };
    let grant = approvals.approve(&store, &shown.request, wish, &who)?.grant;
    let until = grant.expires.map(|time| format!(" until {time}")).unwrap_or_default();
    context.ui.answer(format!("✓ Approved {}{until}: the agent may try again", grant.scope));
    Ok(context.done(&Answer {
        request: grant.request.to_string(),
        record: grant.record.to_string(),
        action: grant.action.to_string(),
        scope: grant.scope.as_str(),
        expires: grant.expires.map(|time| time.to_string()),
        declassifies: grant.declassifies.names().collect(),
    }))
}

fn wish(args: &Args, now: Timestamp) -> Result<Wish, CliError> {
    let scope = match (args.session, args.always) {
        (_, true) => Scope::Always,
        (true, false) => Scope::Session,
        (false, false) => Scope::Once,
    };
    let until = args.duration.as_deref().map(|text| {
        let seconds = parse_duration(text).filter(|seconds| *seconds > 0);
        seconds
            .and_then(|seconds| Timestamp::from_unix(now.unix() + i64::from(seconds)))
            .ok_or_else(|| {
                CliError::refused(format!("`{text}` is no time"), "give one like 10m, 2h or 7d")
            })
    });
    for name in &args.declassify {
        let known = Taint::ALL.names().any(|known| known == name);
        if !known {
            let names = Taint::ALL.names().collect::<Vec<_>>().join(", ");
            let message = format!("`{name}` is no taint");
            return Err(CliError::refused(message, format!("give one of {names}")));
        }
    }
    let declassifies = Taint::from_names(args.declassify.iter().map(String::as_str));
    Ok(Wish { scope, until: until.transpose()?, declassifies })
}
