//! What would be done, worked out before anything is: files, lines, and how to take it back.

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_agents::install::presence::programs;
use wardkeep_agents::install::{self, INSTALLABLE, Surroundings};
use wardkeep_identity::config::{CONFIG_FILE, Config};
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::setup::{Preview, preview};
use wardkeep_identity::tree::Limits;
use wardkeep_policy::template::TEMPLATE;
use wardkeep_policy::workspace::POLICY_FILE;

use super::find::{self, Workspace, settings_of};
use super::{Args, Part};
use crate::commands::identity::setup;
use crate::commands::install::{changed_lines, surroundings};
use crate::commands::md::shown;
use crate::context::Context;
use crate::ui::Line;

/// All of it.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) workspaces: Vec<Workspace>,
    pub(super) agents: Vec<AgentRow>,
    pub(super) items: Vec<Item>,
    /// What is there already.
    pub(super) kept: Vec<String>,
    /// What cannot be proposed, and why.
    pub(super) troubles: Vec<String>,
}

/// An agent that was found.
#[derive(Debug, Serialize)]
pub(super) struct AgentRow {
    pub(super) agent: &'static str,
    /// What shows that it is here.
    pub(super) by: String,
    /// Whether it asks already.
    pub(super) asks: bool,
    /// How it is run confined; the profile is built in, or the one for any program.
    pub(super) confine: String,
}

/// One thing to be done, or left out.
pub(super) struct Item {
    pub(super) what: What,
    /// In one line.
    pub(super) title: String,
    /// Files that are made or changed.
    pub(super) files: Vec<String>,
    /// What changes in them.
    pub(super) lines: Vec<Line>,
    pub(super) chosen: bool,
    pub(super) undo: String,
}

/// What is done.
pub(super) enum What {
    Policy(Workspace),
    /// And what was found there when it was shown.
    Tiers(Workspace, Preview),
    Hooks(Box<Surroundings>, Box<install::Plan>),
}

impl What {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Policy(_) => "policy",
            Self::Tiers(..) => "tiers",
            Self::Hooks(..) => "hooks",
        }
    }
}

/// Works out what is missing.
pub(super) fn make(context: &Context, args: &Args, held: bool) -> Plan {
    let workspaces = find::workspaces(context, &args.workspaces, true);
    let mut plan = Plan::default();
    let wants = |part| args.only.is_none_or(|only| only == part);
    for workspace in workspaces {
        if args.workspaces.is_empty() && find::is_too_wide(context, &workspace.path) {
            plan.troubles.push(
                "this is no workspace: run it in the folder that an agent works in, or name it"
                    .to_owned(),
            );
            continue;
        }
        add_workspace(context, args, &workspace, true, wants(Part::Policy) && !held, &mut plan);
        plan.workspaces.push(workspace);
    }
    if args.workspaces.is_empty() && args.only.is_none() && !held {
        for workspace in find::listed(context, &plan.workspaces) {
            add_workspace(context, args, &workspace, false, false, &mut plan);
        }
    }
    // Root's way of sudo does not say whose settings are meant.
    if args.only.is_none() && !held {
        add_agents(context, args, &mut plan);
    }
    plan
}

fn add_workspace(
    context: &Context,
    args: &Args,
    workspace: &Workspace,
    chosen: bool,
    policy: bool,
    plan: &mut Plan,
) {
    let path = workspace.path.canonicalize().unwrap_or_else(|_| workspace.path.clone());
    let name = |file: &str| shown(context, &path.join(file));
    if policy {
        let file = name(POLICY_FILE);
        if path.join(POLICY_FILE).symlink_metadata().is_ok() {
            plan.kept.push(format!("{file} is there"));
        } else {
            plan.items.push(Item {
                title: format!("{file} is made: your standing instructions, not signed yet"),
                lines: changed_lines("", TEMPLATE),
                undo: format!("rm {file}"),
                files: vec![file],
                what: What::Policy(workspace.clone()),
                chosen,
            });
        }
    }
    if args.only == Some(Part::Policy) {
        return;
    }
    if setup::is_set_up(context, &path) {
        plan.kept.push(format!("what defines the agent in {} is protected", shown(context, &path)));
        return;
    }
    let found = match look_again(workspace) {
        Ok(found) => found,
        Err(error) => {
            plan.troubles.push(format!("{}: {error}", shown(context, &path)));
            return;
        }
    };
    let mut lines = Vec::new();
    let names = |names: &[wardkeep_identity::name::Name]| {
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (mut protected, watched) = (names(&found.protected), names(&found.watched));
    // The list itself is one of them, made now or there before.
    if !protected.iter().any(|file| file == CONFIG_FILE) {
        protected.push(CONFIG_FILE.to_owned());
    }
    for (word, files) in [("protect", &protected), ("watch  ", &watched)] {
        lines.extend(files.iter().map(|file| Line::default().good(format!("{word} {file}"))));
    }
    let held = setup::is_held_by_root(context, &path, &args.identity);
    if held {
        lines.push(Line::from(
            "these files are given to the user soulguardian, who is made if need be",
        ));
        lines.push(Line::from(
            "a service and a rule for sudo let the agent ask; both are written to /etc",
        ));
    }
    let file = name(CONFIG_FILE);
    let mut files = Vec::new();
    if let Some(bytes) = &found.config {
        lines.push(Line::from(format!("made: {file}")));
        lines.extend(changed_lines("", &String::from_utf8_lossy(bytes)));
        files.push(file);
    }
    let how = if held { "by root" } else { "seen and undone" };
    plan.items.push(Item {
        title: format!(
            "{}: {} protected ({how}), {} watched",
            shown(context, &path),
            count(protected.len(), "file"),
            watched.len(),
        ),
        files,
        lines,
        undo: format!("wardkeep release FILE… -w {}", shown(context, &path)),
        what: What::Tiers(workspace.clone(), found),
        chosen,
    });
}

/// What setting a workspace up would approve now.
pub(super) fn look_again(workspace: &Workspace) -> Result<Preview, IdentityError> {
    preview(&workspace.path, &Config::new(settings_of(workspace)), Limits::default())
}

pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn add_agents(context: &Context, args: &Args, plan: &mut Plan) {
    let Ok(around) = surroundings(context, args.user, args.machine.clone()) else { return };
    let there = find::agents(context);
    for found in there.into_iter().filter(|found| INSTALLABLE.contains(&found.agent)) {
        let agent = found.agent;
        // Where it was installed tells where to look, for the machine or for one user.
        let recorded = install::installed(agent, &around.state, &around.program);
        let around = recorded.clone().unwrap_or_else(|| around.clone());
        let change = match install::plan(agent, &around) {
            Ok(change) => change,
            Err(error) => {
                plan.troubles.push(format!("hooks of {agent}: {error}"));
                continue;
            }
        };
        let done = recorded.is_some() && change.is_done();
        // What is written need not be in force.
        let wrong = if done { install::examine(agent, &around) } else { Vec::new() };
        let asks = done && wrong.is_empty();
        plan.agents.push(AgentRow {
            agent: agent.name(),
            by: shown(context, &found.by),
            asks,
            confine: format!("wardkeep run -- {}", programs(agent)[0]),
        });
        if asks {
            plan.kept.push(format!("{agent} asks before each call"));
            continue;
        }
        if done {
            let told = |one: install::Finding| {
                format!("{agent} has the hooks, and does not ask yet: {}: {}", one.what, one.mend)
            };
            plan.troubles.extend(wrong.into_iter().map(told));
            continue;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut lines, mut files) = (Vec::new(), Vec::new());
        for change in change.changes.iter().filter(|change| !change.is_done()) {
            let file = shown(context, &change.path);
            let verb = if change.before.is_some() { "changed" } else { "made" };
            lines.push(Line::from(format!("{verb}: {file}")));
            let before = text(change.before.as_deref().unwrap_or_default());
            lines.extend(changed_lines(&before, &text(&change.after)));
            files.push(file);
        }
        plan.items.push(Item {
            title: format!("{agent} asks wardkeep before each call: {}", files.join(", ")),
            files,
            lines,
            chosen: true,
            undo: format!("wardkeep uninstall {agent}"),
            what: What::Hooks(Box::new(around), Box::new(change)),
        });
    }
}

/// One thing for the JSON form.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    what: &'static str,
    subject: String,
    title: String,
    files: Vec<String>,
    lines: Vec<String>,
    chosen: bool,
    pub(super) done: bool,
    undo: String,
}

impl Item {
    pub(super) fn row(&self, done: bool) -> Row {
        let subject = match &self.what {
            What::Policy(workspace) | What::Tiers(workspace, _) => {
                let path: PathBuf = workspace.path.clone();
                path.canonicalize().unwrap_or(path).display().to_string()
            }
            What::Hooks(_, plan) => plan.agent.name().to_owned(),
        };
        Row {
            what: self.what.word(),
            subject,
            title: self.title.clone(),
            files: self.files.clone(),
            lines: self.lines.iter().map(Line::text).collect(),
            chosen: self.chosen,
            done,
            undo: self.undo.clone(),
        }
    }
}
