//! The plan on the terminal, the one question, and what comes of it.

use serde::Serialize;
use wardkeep_monitor::policy::Desk;
use wardkeep_policy::key::KeyError;
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::template;
use wardkeep_policy::workspace::Workspace as Opened;

use super::find::{Workspace, settings_of};
use super::plan::{AgentRow, Item, Plan, Row, What, count, look_again, make};
use super::{Args, Made, is_held};
use crate::commands::identity::setup;
use crate::commands::install::{ANEW, left_to_do, put_in_force};
use crate::commands::marks;
use crate::commands::md::{policy_store, shown};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Lines of a change that are shown unasked.
const FEW: usize = 6;
/// Steps that are named at the end.
const STEPS: usize = 4;

#[derive(Serialize)]
struct Answer {
    state_dir: Option<String>,
    device_key: &'static str,
    workspaces: Vec<Made>,
    agents: Vec<AgentRow>,
    changes: Vec<Row>,
    /// What the user has to do, where that cannot be done for them.
    left: Vec<String>,
    grade: Option<marks::Row>,
    dry_run: bool,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    if context.is_confined() {
        return Err(CliError::refused(
            "nothing is set up inside `wardkeep run`",
            "run it in a terminal of your own",
        ));
    }
    for path in &args.workspaces {
        std::fs::read_dir(path).map_err(|error| CliError::io("open", path, &error))?;
    }
    let held = is_held(context);
    let mut plan = make(context, args, held);
    // Says at once what is wrong with it.
    let key = if held { None } else { Some(key_state(context)?) };
    show(context, &plan, key, if args.dry_run { usize::MAX } else { FEW });
    if args.dry_run {
        if !plan.items.is_empty() {
            context.ui.hint("nothing was changed: run it without --dry-run to do it");
        }
        return Ok(answer(context, plan, key, Vec::new(), true));
    }
    if plan.items.is_empty() {
        if plan.troubles.is_empty() {
            context.ui.say("Nothing is missing.");
        }
        return Ok(answer(context, plan, key, Vec::new(), false));
    }
    if !args.yes && !ask(context, &mut plan)? {
        return Err(CliError::refused(
            "nothing was changed",
            "run it again when you want it, or `wardkeep init --dry-run` to see every line",
        ));
    }
    let done = carry_out(context, args, &plan)?;
    let key = key.map(|key| if key == "missing" { "created" } else { key });
    Ok(answer(context, plan, key, done, false))
}

fn key_state(context: &Context) -> Result<&'static str, CliError> {
    let store = policy_store(context)?;
    if store.key_path().symlink_metadata().is_err() {
        return Ok("missing");
    }
    store.key()?;
    Ok("present")
}

/// Shows all that would be done, each with at most so many lines.
fn show(context: &mut Context, plan: &Plan, key: Option<&str>, most: usize) {
    if !plan.agents.is_empty() {
        context.ui.answer(Line::default().strong("Agents on this machine"));
        let rows: Vec<Vec<Line>> = plan
            .agents
            .iter()
            .map(|row| {
                let asks = match row.asks {
                    true => Line::default().good("asks wardkeep"),
                    false => Line::default().warning("does not ask wardkeep"),
                };
                vec![Line::from(row.agent), asks, Line::default().faint(&row.by)]
            })
            .collect();
        context.ui.answer_table(&rows);
    }
    for trouble in &plan.troubles {
        context.ui.note(trouble);
    }
    for kept in &plan.kept {
        context.ui.say(Line::from("  ").good("✓ ").plain(kept));
    }
    if plan.items.is_empty() {
        return;
    }
    context.ui.answer(Line::default().strong("What would be done"));
    if key == Some("missing")
        && let Ok(store) = policy_store(context)
    {
        let path = shown(context, &store.key_path());
        context.ui.answer(format!("   made first: a key for this machine, {path}"));
    }
    for (number, item) in plan.items.iter().enumerate() {
        headline(context, item, number + 1);
        for line in item.lines.iter().take(most) {
            context.ui.answer(Line::from("         ").join(line));
        }
        if item.lines.len() > most {
            let more = item.lines.len() - most;
            let more = format!("         … {} more", count(more, "line"));
            context.ui.answer(Line::default().faint(more));
        }
    }
    for row in &plan.agents {
        context.ui.say(
            Line::default()
                .faint(format!("   {} needs nothing to be confined: `{}`", row.agent, row.confine)),
        );
    }
}

fn headline(context: &mut Context, item: &Item, number: usize) {
    let mark = if item.chosen { Line::default().good("[x]") } else { Line::from("[ ]") };
    let line = mark.plain(format!(" {number} ")).strong(item.what.word()).plain("  ");
    context.ui.answer(line.plain(&item.title));
}

fn details(context: &mut Context, item: &Item, number: usize) {
    headline(context, item, number);
    for line in &item.lines {
        context.ui.answer(Line::from("         ").join(line));
    }
}

/// The one question; a number leaves one out or takes it in.
fn ask(context: &mut Context, plan: &mut Plan) -> Result<bool, CliError> {
    loop {
        let chosen = plan.items.iter().filter(|item| item.chosen).count();
        let question = format!(
            "Do {chosen} of {}? y yes, n no, NUMBER out or in, d NUMBER all lines, ? help:",
            count(plan.items.len(), "change")
        );
        let Some(answer) = context.ask_line(&question)? else { return Ok(false) };
        let answer = answer.trim().to_lowercase();
        let (shows, rest) = match answer.strip_prefix('d') {
            Some(rest) => (true, rest.trim()),
            None => (false, answer.as_str()),
        };
        match (answer.as_str(), rest.parse::<usize>().ok()) {
            ("y" | "yes", _) if chosen > 0 => return Ok(true),
            ("n" | "no" | "q", _) => return Ok(false),
            (_, Some(number)) if (1..=plan.items.len()).contains(&number) => {
                let item = &mut plan.items[number - 1];
                if shows {
                    details(context, &plan.items[number - 1], number);
                } else {
                    item.chosen = !item.chosen;
                    headline(context, &plan.items[number - 1], number);
                }
            }
            ("d", _) => {
                for (at, item) in plan.items.iter().enumerate() {
                    details(context, item, at + 1);
                }
            }
            _ => explain(context),
        }
    }
}

/// What can be answered.
fn explain(context: &mut Context) {
    let rows = [
        ("y", "does what is marked [x] above, and nothing else"),
        ("n", "ends it; nothing is changed"),
        ("2", "takes change 2 out, or in again"),
        ("d 2", "shows every line that change 2 would write"),
        ("d", "shows every line of all changes"),
    ];
    let row = |(key, what): (&str, &str)| vec![Line::default().strong(key), Line::from(what)];
    context.ui.answer_table(&rows.map(row));
}

/// What was done: of each thing that was chosen, what the user has to do yet.
struct Done {
    at: usize,
    made: Option<Made>,
    left: Vec<String>,
}

fn carry_out(context: &mut Context, args: &Args, plan: &Plan) -> Result<Vec<Done>, CliError> {
    let mut done: Vec<Done> = Vec::new();
    context.ui.say("");
    for (at, item) in plan.items.iter().enumerate().filter(|(_, item)| item.chosen) {
        match one(context, args, item) {
            Ok((made, left)) => {
                context.ui.say(match (&item.what, left.is_empty()) {
                    (What::Hooks(_, plan), false) => Line::from("  ").warning("written ").plain(
                        format!("{}: {} does not ask yet", item.files.join(", "), plan.agent),
                    ),
                    _ => Line::from("  ").good("done ").plain(&item.title),
                });
                done.push(Done { at, made, left });
            }
            Err(error) => return Err(stopped(context, plan, &done, at, error)),
        }
    }
    Ok(done)
}

/// Says what was done, how to take it back, and what was not.
fn stopped(
    context: &mut Context,
    plan: &Plan,
    done: &[Done],
    at: usize,
    error: CliError,
) -> CliError {
    let mut before = Vec::new();
    for one in done {
        let item = &plan.items[one.at];
        context.ui.note(&format!("was done: {}; `{}` takes it back", item.title, item.undo));
        before.push(format!("{} (`{}` takes it back)", item.title, item.undo));
    }
    let rest = plan.items[at + 1..].iter().filter(|item| item.chosen);
    for item in rest {
        context.ui.note(&format!("was not done: {}", item.title));
    }
    let item = &plan.items[at];
    let mut message = format!("this could not be done: {}: {}", item.title, error.message);
    if context.ui.is_json() && !before.is_empty() {
        message = format!("{message}; done before it: {}", before.join("; "));
    }
    let hint = format!("{}; then `wardkeep init` proposes what is missing", error.hint);
    CliError::new(error.exit, message, hint)
}

fn one(
    context: &mut Context,
    args: &Args,
    item: &Item,
) -> Result<(Option<Made>, Vec<String>), CliError> {
    match &item.what {
        What::Policy(workspace) => Ok((Some(policy(context, workspace)?), Vec::new())),
        What::Tiers(workspace, shown) => {
            if look_again(workspace)? != *shown {
                return Err(meanwhile());
            }
            let settings = settings_of(workspace);
            let made = setup::set_up(context, &workspace.path, &args.identity, &settings)?;
            setup::tell(context, &made);
            let path = workspace.path.display().to_string();
            let made = Made {
                workspace: path,
                agent: workspace.agent,
                created: false,
                identity: Some(made),
            };
            Ok((Some(made), Vec::new()))
        }
        What::Hooks(around, shown) => {
            let plan = wardkeep_agents::install::plan(shown.agent, around)?;
            if plan.changes != shown.changes {
                return Err(meanwhile());
            }
            put_in_force(context, &plan, around)?;
            Ok((None, left_to_do(context, &plan, around)))
        }
    }
}

/// What was shown is not what would be done any more.
fn meanwhile() -> CliError {
    CliError::refused("it was changed after it was shown", "look at what changed it")
}

/// Makes a policy to start from; the key before it.
fn policy(context: &mut Context, workspace: &Workspace) -> Result<Made, CliError> {
    let open = context.open_store()?;
    let owner = rustix::process::getuid().as_raw();
    match PolicyStore::new(&context.state_dir()?, owner).create_key(context.random()?) {
        Ok(_) | Err(KeyError::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let at = Opened::open(&workspace.path)
        .map_err(|error| CliError::io("open", &error.path, &error.error))?;
    let created =
        template::create(&at).map_err(|error| CliError::io("write", &at.policy_path(), &error))?;
    if created {
        let written = Desk::new(&open, owner).created(&at)?;
        if let Some(trouble) = &written.trouble {
            context.ui.note(&trouble.to_string());
        }
    }
    let path = workspace.path.display().to_string();
    Ok(Made { workspace: path, agent: workspace.agent, created, identity: None })
}

/// Ends with the mark, and what would raise it.
fn graded(context: &mut Context) -> Option<marks::Row> {
    let standing = marks::look(context).ok()?;
    context.ui.say("");
    context.ui.answer(marks::headline(&standing.grade));
    let steps = marks::steps(&standing.grade, STEPS);
    if !steps.is_empty() {
        context.ui.say("What would raise it:");
        context.ui.narrow_table(&steps);
    }
    Some((&standing.grade).into())
}

fn answer(
    context: &mut Context,
    plan: Plan,
    key: Option<&'static str>,
    done: Vec<Done>,
    dry_run: bool,
) -> Exit {
    let changes: Vec<Row> = plan
        .items
        .iter()
        .enumerate()
        .map(|(at, item)| item.row(done.iter().any(|one| one.at == at)))
        .collect();
    let left: Vec<String> = done.iter().flat_map(|one| one.left.clone()).collect();
    for step in &left {
        context.ui.hint(step);
    }
    let asks =
        |one: &&Done| one.left.is_empty() && matches!(plan.items[one.at].what, What::Hooks(..));
    if done.iter().any(|one| asks(&one)) {
        context.ui.hint(ANEW);
    }
    let left: Vec<String> = left.into_iter().chain(plan.troubles).collect();
    let mut workspaces: Vec<Made> = plan
        .workspaces
        .iter()
        .map(|one| Made {
            workspace: one.path.display().to_string(),
            agent: one.agent,
            created: false,
            identity: None,
        })
        .collect();
    for made in done.into_iter().filter_map(|one| one.made) {
        match workspaces.iter_mut().find(|one| one.workspace == made.workspace) {
            Some(one) => {
                one.created |= made.created;
                one.identity = made.identity.or(one.identity.take());
            }
            None => workspaces.push(made),
        }
    }
    let grade = if dry_run { None } else { graded(context) };
    let state_dir = context.state_dir().ok().map(|path| path.display().to_string());
    let device_key = key.unwrap_or("held");
    let ok = left.is_empty() || dry_run;
    let exit = if ok { Exit::Success } else { Exit::ActionRequired };
    let answer = Answer {
        state_dir,
        device_key,
        workspaces,
        agents: plan.agents,
        changes,
        left,
        grade,
        dry_run,
    };
    context.finish(exit, ok, &answer)
}
