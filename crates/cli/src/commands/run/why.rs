//! `wardkeep sandbox why`

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize as _, Serialize};
use wardkeep_evidence::check::printable;
use wardkeep_evidence::json::Value;
use wardkeep_evidence::record::{Payload, Principal, Record, RecordType};
use wardkeep_gateway::egress::{Found, Rules, Target};
use wardkeep_guard::network::{Egress, EgressConfig, facts_of};
use wardkeep_monitor::index::Filter;
use wardkeep_monitor::journal::parse_line;
use wardkeep_policy::config::Config;
use wardkeep_sandbox::{Explained, explain};

use super::super::look::with_index;
use super::super::md::policy_store;
use super::record::ENDED;
use super::settings::Settings;
use super::{ViewArgs, resolve};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Says what `wardkeep run` keeps from a program, by which rule, and how to allow it
///
/// Without anything named: what was kept from the program that ran last. With paths and hosts: what a
/// program could do with each, by the same profile and options that `run` takes. Nothing is started.
#[derive(Debug, clap::Args)]
#[command(after_long_help = crate::exit::HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
    /// The program that would run, which tells the profile where none is given
    #[arg(long, value_name = "PROGRAM")]
    program: Option<OsString>,
    /// A host and port, or an address of a web page; may be given again
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
}

/// Records that are looked through for the last run.
const LOOK: u32 = 2_000;

#[derive(Serialize, Default)]
struct Answer {
    profile: Option<String>,
    paths: Vec<Explained>,
    hosts: Vec<Host>,
    /// The run that ended last, where nothing was asked for.
    last: Option<Last>,
}

#[derive(Serialize)]
struct Host {
    host: String,
    allowed: bool,
    why: String,
    allow: Option<String>,
}

#[derive(Serialize)]
struct Last {
    record: String,
    time: String,
    workspace: String,
    refused: Vec<String>,
    hosts: Vec<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    if args.paths.is_empty() && args.host.is_empty() {
        return last_run(context);
    }
    let state = context.state_dir()?;
    let settings = Settings::load(&state)?;
    let program = args.program.unwrap_or_else(|| "sh".into());
    let name = args.view.profile_name(&settings, &program);
    let profile = resolve(&settings, &name)?;
    let (mut spec, rules) = args.view.spec(context, &settings, &profile, vec![program])?;
    spec.bared.push(state.join("plugins"));
    spec.hidden.push(state);
    let mut answer = Answer { profile: Some(name), ..Answer::default() };
    context.ui.answer(format!("Profile: {}", answer.profile.as_deref().unwrap_or_default()));
    // An address is a host, wherever it is written.
    let is_address = |path: &OsString| path.to_str().is_some_and(|text| text.contains("://"));
    let addresses = args.paths.iter().filter(|path| is_address(path));
    let addresses: Vec<String> =
        addresses.filter_map(|path| path.clone().into_string().ok()).collect();
    for path in args.paths.iter().filter(|path| !is_address(path)) {
        let path = std::path::absolute(home_of(context, path))
            .map_err(|error| CliError::io("find", Path::new(path), &error))?;
        let told = explain(&spec, &path)?;
        show_path(context, &told);
        answer.paths.push(told);
    }
    let lists = egress_lists(context)?;
    for host in args.host.iter().chain(&addresses) {
        let told = of_lists(of_host(&rules, host)?, &lists);
        let word = if told.allowed { "can be reached" } else { "cannot be reached" };
        show(context, &told.host, word, &told.why, told.allow.as_deref());
        answer.hosts.push(told);
    }
    Ok(context.done(&answer))
}

fn home_of(context: &Context, path: &OsStr) -> OsString {
    let inside = Path::new(path).strip_prefix("~").ok();
    match (inside, context.home()) {
        (Some(inside), Some(home)) => home.join(inside).into_os_string(),
        _ => path.to_owned(),
    }
}

fn show_path(context: &mut Context, told: &Explained) {
    let word = match (told.read, told.write) {
        (true, true) => "can be read and written",
        (true, false) => "can be read, not written",
        (false, true) => "can be written, not read",
        (false, false) => "cannot be seen",
    };
    let path = told.path.display().to_string();
    show(context, &path, word, &told.why, told.allow.as_deref());
}

fn show(context: &mut Context, what: &str, word: &str, why: &str, allow: Option<&str>) {
    context.ui.answer(
        Line::default().strong(printable(what)).plain(format!(" {word}: {}", printable(why))),
    );
    if let Some(allow) = allow {
        context.ui.answer(format!("  to allow more: wardkeep run {} …", printable(allow)));
    }
}

fn of_host(rules: &Rules, text: &str) -> Result<Host, CliError> {
    let (default, rest) = match text.split_once("://") {
        Some(("http", rest)) => (80, rest),
        Some((_, rest)) => (443, rest),
        None => (443, text),
    };
    let name = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let target = Target::parse(name.as_bytes(), Some(default)).map_err(|error| {
        let message = format!("`{}` names no host: {error}", printable(text));
        CliError::refused(message, "give a host such as example.org or example.org:8443")
    })?;
    let (allowed, why) = match rules.find(&target, None) {
        Found::Allowed(rule) => {
            let host = target.host.to_string();
            let here = host == "localhost"
                || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            let condition = match here && rule.names_loopback(&host) {
                true => "allows it by its name, on this machine too, if",
                false => "allows it, if its address is public and",
            };
            (true, format!("`{rule}` {condition} the monitor's rules agree"))
        }
        Found::Denied(rule) => (false, format!("`{rule}` denies it, whatever else is said")),
        Found::Port => (false, "the host is allowed, but not this port".to_owned()),
        Found::Method => (false, "the host is allowed for other methods only".to_owned()),
        Found::Unlisted if rules.allow.is_empty() => {
            (false, "no host is allowed: there is no network but the program's own".to_owned())
        }
        Found::Unlisted => (false, "no rule of the profile or of --allow names it".to_owned()),
    };
    let port =
        if matches!(target.port, 80 | 443) { String::new() } else { format!(":{}", target.port) };
    let can_be_allowed = !allowed && !matches!(rules.find(&target, None), Found::Denied(_));
    let allow = can_be_allowed.then(|| format!("--allow {}{port}", target.host));
    Ok(Host { host: format!("{}:{}", target.host, target.port), allowed, why, allow })
}

/// The hosts that the owner's config allows and blocks, for every door.
fn egress_lists(context: &Context) -> Result<Egress, CliError> {
    let store = policy_store(context)?;
    let text = store.settings().set.files.get("config.toml").cloned().unwrap_or_default();
    let part = Config::parse(&text).ok().and_then(|config| config.rest.get("egress").cloned());
    let part = part.map(EgressConfig::deserialize).transpose();
    let broken = |error: &dyn std::fmt::Display| {
        let message = format!("`[egress]` of config.toml cannot be used: {error}");
        CliError::refused(message, "mend it, and sign it with `wardkeep config sign`")
    };
    let part = part.map_err(|error| broken(&error))?.unwrap_or_default();
    Egress::new(&part).map_err(|error| broken(&error))
}

/// What the owner's lists say on top of what the profile says.
fn of_lists(told: Host, lists: &Egress) -> Host {
    let facts = facts_of(&format!("https://{}/", told.host), "CONNECT", 0, lists);
    let why = match () {
        () if facts.blocked => {
            "`blocked_domains` of config.toml, or wardkeep's own list, blocks it"
        }
        () if facts.listed && !facts.allowed => "`allowed_domains` of config.toml does not name it",
        () => return told,
    };
    Host { allowed: false, why: why.to_owned(), allow: None, ..told }
}

fn last_run(context: &mut Context) -> Result<Exit, CliError> {
    let reader = context.open_reader()?;
    let filter = Filter {
        agent: Some("wardkeep".to_owned()),
        kind: Some(RecordType::GuardDecision),
        ..Filter::default()
    };
    let (last, _) = with_index(context, &reader, false, |index| {
        for location in index.newest(&filter, LOOK)? {
            let text = reader.folder().read_line(location).ok();
            let line = text.as_deref().and_then(parse_line);
            if let Some(last) = line.and_then(|line| told(&line.record)) {
                return Ok(Some(last));
            }
        }
        Ok(None)
    })?;
    let Some(last) = last else {
        context.ui.answer("No program has run under `wardkeep run` lately.");
        context.ui.hint("name a path or --host to see what a program could do with it");
        return Ok(context.done(&Answer::default()));
    };
    context.ui.answer(format!(
        "The run in {} that ended at {}:",
        printable(&last.workspace),
        last.time
    ));
    for line in last.refused.iter().chain(&last.hosts) {
        context.ui.answer(format!("  {}", printable(line)));
    }
    if last.refused.is_empty() && last.hosts.is_empty() {
        context.ui.answer("  nothing was refused by name, and no host");
    } else {
        context.ui.hint("`wardkeep sandbox why PATH` and `--host HOST` say how to allow one");
    }
    context.ui.note(
        "files that are not shown inside look absent to the program: no record tells of those",
    );
    Ok(context.done(&Answer { last: Some(last), ..Answer::default() }))
}

fn told(record: &Record<'_>) -> Option<Last> {
    let Payload::Inline(Value::Object(content)) = &record.payload else { return None };
    let list = |key: &str| match content.get(key) {
        Some(Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let ours = record.principal == Principal::Sys && content.get("kind")?.as_str() == Some(ENDED);
    ours.then(|| Last {
        record: record.id.to_string(),
        time: record.timestamp().unwrap_or_default().to_owned(),
        workspace: record.meta_str("workspace").unwrap_or_default().to_owned(),
        refused: list("refused"),
        hosts: list("hosts"),
    })
}
