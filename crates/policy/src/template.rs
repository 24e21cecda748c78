//! What `init` writes where there is no policy yet.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::audit::{Action, Event, Source};
use crate::hash::ContentHash;
use crate::workspace::Workspace;

/// The template of RFC 3.3; it restricts nothing until the owner edits and signs it.
pub const TEMPLATE: &str = "\
# LocalGPT.md

Your standing instructions to the AI — always present, always last.

Whatever you write here is injected at the end of every conversation turn,
right before the AI responds. Use it for conventions, boundaries, preferences,
and reminders you want the AI to always follow.

Edit this file, then run `wardkeep md sign` to activate changes.

## Conventions

- (Add your coding standards and project conventions here)

## Boundaries

- (Add security rules and access restrictions here)

## Reminders

- (Add things the AI tends to forget in long sessions)
";

/// Writes the template where nothing stands yet; says whether it did. It is not signed: the
/// owner reads and signs it.
///
/// # Errors
/// When it cannot be written.
pub fn create(workspace: &Workspace) -> io::Result<bool> {
    // Neither overwrites nor follows a link.
    let opened =
        OpenOptions::new().write(true).create_new(true).mode(0o644).open(workspace.policy_path());
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    file.write_all(TEMPLATE.as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

/// The entry that writing the template leaves in the audit log.
#[must_use]
pub fn created_event() -> Event {
    Event::new(Action::Created, Source::Cli).content(Some(ContentHash::of(TEMPLATE.as_bytes())))
}
