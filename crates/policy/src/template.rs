//! What `init` writes where there is no policy yet.

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
