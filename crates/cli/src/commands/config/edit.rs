//! `wardkeep config edit`

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;

use super::sign;
use crate::commands::md::edit::edit_file;
use crate::commands::md::policy_store;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Opens config.toml in your editor, then offers to sign it
///
/// To block a domain for hooks, `wardkeep run` and every proxy, write `[egress]` and below it
/// `blocked_domains = ["example.net"]`: its subdomains are blocked with it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// What a new config starts with.
const TEMPLATE: &str = "\
[security]
# No session unless the policy is signed and unchanged.
strict_policy = false
# Run sessions without the policy, or without the reminder that ends each model call.
disable_policy = false
disable_suffix = false

# Hosts, for hooks, `wardkeep run` and `wardkeep egress` alike. Where there is a list of allowed ones, every
# other host is denied; blocked ones are denied whatever else is said.
# [egress]
# allowed_domains = [\"github.com\", \"docs.rs\"]
# blocked_domains = [\"example.net\"]

# Rules of your own, beside those of `wardkeep scan --rules`:
# [[detect.rule]]
# id = \"own.project-x\"
# category = \"DataExfiltration\"
# weight = 0.8
# patterns = [\"{send} ~4 'project x'\"]
# explanation = \"Project X stays inside.\"

# Findings that you looked at and allow, by the fingerprint that `wardkeep scan` shows:
# [detect]
# allow = []
";

pub(crate) fn run(context: &mut Context, _args: Args) -> Result<Exit, CliError> {
    if !context.has_terminal() {
        return Err(CliError::refused(
            "there is no terminal to edit in",
            "edit the file, then run `wardkeep config sign`",
        ));
    }
    let path = policy_store(context)?.config_path();
    // Makes the state directory where there is none.
    drop(context.open_store()?);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(mut file) => std::io::Write::write_all(&mut file, TEMPLATE.as_bytes())
            .map_err(|error| CliError::io("write", &path, &error))?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(CliError::io("make", &path, &error)),
    }
    edit_file(context, &path)?;
    sign::sign(context, false)
}
