//! `evidence anchor add`

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use serde::Serialize;
use wardkeep_evidence::note::VerifierKey;
use wardkeep_evidence::seal::LogPublic;
use wardkeep_monitor::anchor::Anchor as _;
use wardkeep_monitor::anchor::file::FileAnchor;
use wardkeep_monitor::anchor::outbox::{AnchorConfig, Place};

use super::open;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Adds a place that is given every new seal
///
/// A file: one that another user owns and only that user can shorten (`chattr +a`), or that lies on
/// another machine. A git remote: a branch of its own on a remote that refuses forced pushes; git
/// runs without its usual configuration. A witness: one that `wardkeep witness serve` runs
/// elsewhere, or any that speaks C2SP tlog-witness, with the key its owner gave you.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("place").args(["file", "git", "witness"]).required(true))]
pub(crate) struct Args {
    /// Name for it, of a-z, 0-9 and `-`
    name: String,
    /// A file that another user owns
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Make the file; give it to another user afterwards, or it is worth little
    #[arg(long, requires = "file")]
    create: bool,
    /// A git remote: an https or ssh address, or an absolute path
    #[arg(long, value_name = "URL")]
    git: Option<String>,
    /// Branch on the remote that holds nothing else
    #[arg(long, default_value = "wardkeep", requires = "git")]
    branch: String,
    /// A witness: its http address
    #[arg(long, value_name = "URL", requires = "key")]
    witness: Option<String>,
    /// The witness's key, `NAME+ID+KEY`, as `wardkeep witness key` prints it
    #[arg(long, value_name = "VKEY", requires = "witness")]
    key: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a str,
    place: &'a Place,
    log: String,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let place = place(&args)?;
    let store = context.open_store()?;
    let public = store.public().ok_or_else(|| {
        let problem = store.seal_problem().unwrap_or_default();
        CliError::new(
            Exit::Unreadable,
            format!("no seals are made here: {problem}"),
            "anchors keep seals: mend that first, or begin a log in another state directory",
        )
    })?;
    let mut outbox = open(context)?;
    let name = args.name;
    outbox.add(AnchorConfig { name: name.clone(), place: place.clone() })?;
    if let Place::File { path } = &place {
        // A file is made only for a name that can be used, and a name kept only with its file.
        let checked = check_file(&name, Path::new(path), args.create, &public);
        checked.or_else(|error| outbox.remove(&name).map_err(CliError::from).and(Err(error)))?;
    }
    context.ui.say(format!("Added: {name}"));
    if matches!(place, Place::Witness { .. }) {
        context.ui.say("The witness must know this log: it runs with --accept-new, or its owner");
        context.ui.say(format!("gives it a file with this line by --log: {public}"));
    }
    context.ui.say(Line::next("wardkeep evidence anchor push"));
    let log = public.to_string();
    Ok(context.done(&Answer { name: &name, place: &place, log }))
}

fn place(args: &Args) -> Result<Place, CliError> {
    if let Some(path) = &args.file {
        let path = std::path::absolute(path).map_err(|error| CliError::io("find", path, &error))?;
        let path = path.into_os_string().into_string().map_err(|path| {
            CliError::refused(
                format!("`{}` is not UTF-8", path.display()),
                "give a path that can be written down as text",
            )
        })?;
        return Ok(Place::File { path });
    }
    if let Some(url) = &args.git {
        return Ok(Place::Git { url: url.clone(), branch: args.branch.clone() });
    }
    // INVARIANT: clap takes exactly one of the three, and a witness only with its key.
    let key = args.key.clone().unwrap_or_default();
    if VerifierKey::parse(&key).is_err() {
        return Err(CliError::refused(
            format!("`{key}` is no key of a witness"),
            "copy the whole line that `wardkeep witness key` prints there, like `NAME+ID+KEY`",
        ));
    }
    Ok(Place::Witness { url: args.witness.clone().unwrap_or_default(), key })
}

/// Makes the file if that is wanted, and reads it.
fn check_file(name: &str, path: &Path, create: bool, public: &LogPublic) -> Result<(), CliError> {
    let mut file = FileAnchor::new(name, path)?;
    if create {
        file.create()?;
    }
    file.latest(public)?;
    Ok(())
}
