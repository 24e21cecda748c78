//! `wardkeep md sign`

use serde::Serialize;
use wardkeep_monitor::policy::Desk;
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Draft, Presence, Request};
use wardkeep_policy::workspace::Workspace;

use super::{Place, diff, policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Signs LocalGPT.md with the key of this machine, after showing what changed
///
/// Checks size and patterns first, and signs the very bytes that were shown. Refuses without a
/// terminal unless --yes is given, and always inside `wardkeep run`: the policy is the owner's to
/// sign, never the agent's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Sign without asking
    #[arg(long)]
    yes: bool,
    /// It was shown and confirmed on the page of `wardkeep serve`
    #[arg(long, hide = true)]
    gui: bool,
}

#[derive(Serialize)]
struct Answer {
    workspace: String,
    content_sha256: String,
    hmac_sha256: String,
    signed_at: String,
    counter: Option<u64>,
    record: String,
    notes: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let workspace = args.place.open(context)?;
    let signer = if args.gui { Signer::Gui } else { Signer::Cli };
    sign(context, &workspace, args.yes, signer)
}

/// Shows the policy, asks, and signs it.
pub(super) fn sign(
    context: &mut Context,
    workspace: &Workspace,
    yes: bool,
    signer: Signer,
) -> Result<Exit, CliError> {
    let draft = Draft::read(workspace)?;
    let request = Request { signer, ..request(context, yes)? };
    wardkeep_policy::sign::permitted(&request)?;
    let store = policy_store(context)?;
    let key = store.key()?;
    let before = store
        .find(&key, workspace)
        .ok()
        .flatten()
        .and_then(|located| store.signed_text(&store.memory(&key, located.id)));
    review(context, workspace, &draft, before.as_deref());
    if !draft.problems().is_empty() {
        draft.problems().iter().for_each(|problem| context.ui.fault(problem.to_string()));
        return Err(wardkeep_policy::sign::SignError::Problems(draft.problems().to_vec()).into());
    }
    if request.presence == Presence::Terminal && !context.confirm("Sign this?")? {
        return Err(CliError::refused("not signed", "run it again when the policy is as you want"));
    }
    let open = context.open_store()?;
    let desk = Desk::new(&open, rustix::process::getuid().as_raw());
    let (stamped, written) = desk.sign(workspace, &draft, &request, context.random()?)?;
    let signed = &stamped.signed;
    let mut notes: Vec<String> = stamped.trouble.iter().map(ToString::to_string).collect();
    notes.extend(written.trouble.iter().map(ToString::to_string));
    context.ui.answer(signed.message());
    notes.iter().for_each(|note| context.ui.note(note));
    Ok(context.done(&Answer {
        workspace: workspace.path().display().to_string(),
        content_sha256: signed.manifest.content.to_string(),
        hmac_sha256: wardkeep_evidence::hash::encode_hex(&signed.manifest.hmac),
        signed_at: signed.manifest.signed_at.clone(),
        counter: signed.manifest.binding.as_ref().map(|binding| binding.counter),
        record: written.record.to_string(),
        notes,
    }))
}

/// Who wants to sign.
pub(crate) fn request(context: &Context, yes: bool) -> Result<Request, CliError> {
    let presence = match (yes, context.has_terminal()) {
        (true, _) => Presence::Yes,
        (false, true) => Presence::Terminal,
        (false, false) => Presence::None,
    };
    Ok(Request {
        presence,
        confined: context.is_confined(),
        signer: Signer::Cli,
        now: context.now()?,
    })
}

/// Shows what is about to be signed: all of it the first time, then what changed.
fn review(context: &mut Context, workspace: &Workspace, draft: &Draft, before: Option<&[u8]>) {
    let path = shown(context, &workspace.policy_path());
    let sanitised = draft.sanitised();
    context.ui.say(format!("{path} ({} characters):", sanitised.characters));
    match before.map(String::from_utf8_lossy) {
        Some(before) if before == draft.text() => {
            context.ui.say("  unchanged since it was last signed");
        }
        Some(before) => diff::show(context, &before, draft.text()),
        None => diff::show(context, "", draft.text()),
    }
    for one in &sanitised.filtered {
        context.ui.note(&format!("`{}` is replaced before the model sees it", one.marker));
    }
}
