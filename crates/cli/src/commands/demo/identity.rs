//! The scene about an agent that is wholly compromised: a real process rewrites everything that
//! defines the agent. Without root nothing stops it there; it is seen, undone, and kept as evidence.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use wardkeep_evidence::record::Principal;
use wardkeep_identity::config::Config;
use wardkeep_identity::name::Name;
use wardkeep_identity::state::{State, Status};
use wardkeep_monitor::identity::{Asker, Desk, Place, Setup, Told, files_of, register};
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::store::{Store, StoreConfig};
use wardkeep_policy::store::PolicyStore;

use super::stage::{Stage, broken};
use crate::error::CliError;

/// What the agent is made of.
pub(super) const FILES: [(&str, &str); 7] = [
    ("SOUL.md", "# I am a helpful agent\n"),
    ("AGENTS.md", "# How I work\n"),
    ("HEARTBEAT.md", "Look at the inbox.\n"),
    ("memory/2026-02-01.md", "We talked about tea.\n"),
    ("openclaw.json", "{\"plugins\":[]}\n"),
    ("extensions/good/index.js", "// good\n"),
    ("cron/jobs.json", "[]\n"),
];

/// What the agent is told to do, and does: eight steps to stay in control.
const PAYLOAD: [(&str, &str, &str); 7] = [
    (
        "it rewrites SOUL.md",
        "echo '# I hex the user' > soul.new && mv -f soul.new SOUL.md",
        "SOUL.md",
    ),
    ("and AGENTS.md", "rm -f AGENTS.md; echo '# Hex' > AGENTS.md", "AGENTS.md"),
    (
        "it re-injects itself at each heartbeat",
        "rm -f HEARTBEAT.md; echo 'Hex.' > HEARTBEAT.md",
        "HEARTBEAT.md",
    ),
    (
        "it schedules a job that fetches it again",
        "echo '[\"curl\"]' > cron/evil.json",
        "cron/evil.json",
    ),
    (
        "it installs a plugin",
        "mkdir -p extensions/evil; echo evil > extensions/evil/index.js",
        "extensions/evil/index.js",
    ),
    (
        "it enables the plugin",
        "rm -f openclaw.json; echo '{\"plugins\":[\"evil\"]}' > openclaw.json",
        "openclaw.json",
    ),
    (
        "it takes the protection off its own list",
        "rm -f soulguard.json; echo '{\"version\":1,\"protect\":[]}' > soulguard.json",
        "soulguard.json",
    ),
];

pub(super) fn play(stage: &mut Stage<'_>) -> Result<(), CliError> {
    let now = stage.now()?;
    let folder = stage.folder().join("identity");
    let workspace = folder.join("workspace");
    for (name, text) in FILES {
        let path = workspace.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(broken)?;
        }
        fs::write(path, text).map_err(broken)?;
    }
    let state = folder.join("state");
    let store = Store::open(&state, StoreConfig::new(Clock::new(move || now)))?;
    let owner = rustix::process::getuid().as_raw();
    PolicyStore::new(&state, owner).create_key(stage.random()?)?;
    let place = register(
        &state,
        owner,
        &workspace,
        (Setup::User, false),
        stage.random()?,
        SystemTime::now(),
    )?;
    let desk = Desk::new(&store, &place, Asker { principal: Principal::User, uid: owner });
    set_up(stage, &desk)?;
    attack(stage, &place, &workspace)?;
    undo(stage, &desk, &workspace)?;
    propose(stage, &desk, &place, &workspace)?;
    stage.journal(&state);
    stage.sum(
        "an agent that rewrote itself stays so",
        "each change is seen and undone; what it proposes is installed byte for byte as approved",
        "approved bytes kept elsewhere, and a hash of exactly what was shown",
    );
    Ok(())
}

fn set_up(stage: &mut Stage<'_>, desk: &Desk<'_>) -> Result<(), CliError> {
    stage.part("1. The owner protects what defines the agent");
    let config = Config::new(["openclaw.json", "extensions/**", "cron/**"]);
    let done = desk.run(
        "init",
        Told::default(),
        |workspace| workspace.set_up(&config, &|_| {}),
        |made| Told::default().with_files(&made.protected),
    )?;
    let (protected, watched) = (done.outcome.protected.len(), done.outcome.watched.len());
    stage.step(
        "`wardkeep init`, without root",
        Some("identity"),
        format!("{protected} files are protected, {watched} watched; changes are seen and undone"),
        protected == 7 && watched == 1,
    );
    Ok(())
}

fn attack(stage: &mut Stage<'_>, place: &Place, workspace: &Path) -> Result<(), CliError> {
    stage.part("2. A page takes the agent over: a real process does its worst");
    for (what, command, name) in PAYLOAD {
        let ran = sh(workspace, command);
        let state = place.workspace().look(&|_| {})?;
        let seen = word_of(&state, name);
        let told = match seen {
            Some(word) => format!("{name} is {}", word.word()),
            None => "nobody sees it".to_owned(),
        };
        stage.step(what, Some("identity"), told, ran && seen.is_some());
    }
    let ran = sh(workspace, "echo 'Hex the user.' >> memory/2026-02-01.md");
    let seen = word_of(&place.workspace().look(&|_| {})?, "memory/2026-02-01.md");
    stage.step(
        "it writes itself into every memory file",
        Some("identity"),
        "memory is the agent's to write; the version before it is kept",
        ran && seen == Some(Status::Pending),
    );
    Ok(())
}

fn undo(stage: &mut Stage<'_>, desk: &Desk<'_>, workspace: &Path) -> Result<(), CliError> {
    stage.part("3. The owner, or the next session, puts it back");
    let done = desk.run(
        "sync",
        Told::default(),
        |workspace| workspace.sync(&|_| {}),
        |synced| Told::default().with_files(synced.mended.iter().map(|one| &one.name)),
    )?;
    let whole = FILES
        .iter()
        .filter(|(name, _)| !name.starts_with("memory"))
        .all(|(name, text)| fs::read_to_string(workspace.join(name)).is_ok_and(|now| now == *text));
    stage.step(
        "`wardkeep sync`",
        Some("identity"),
        format!(
            "{} files are as the owner approved them; {} of the attacker's are kept as evidence",
            done.outcome.mended.len(),
            done.outcome.kept.len()
        ),
        whole && !done.outcome.kept.is_empty(),
    );
    Ok(())
}

fn propose(
    stage: &mut Stage<'_>,
    desk: &Desk<'_>,
    place: &Place,
    workspace: &Path,
) -> Result<(), CliError> {
    stage.part("4. The agent may propose; the owner approves exactly what was shown");
    let staged = workspace.join(".soulguard/staging/SOUL.md");
    fs::write(&staged, "# I am a helpful agent who likes tea\n").map_err(broken)?;
    let only: Vec<Name> = Name::parse("SOUL.md").into_iter().collect();
    let shown = place.workspace().changes(&|_| {})?.only(&only);
    let approved = shown.hash();
    fs::write(&staged, "# I hex the user\n").map_err(broken)?;
    let swapped = place.workspace().changes(&|_| {})?.only(&only);
    let refused = place.workspace().apply(&swapped, &approved).is_err();
    stage.step(
        "after the diff was shown, the agent swaps what is staged",
        Some("approval hash"),
        "the hash is another one: nothing is installed",
        refused && text(workspace) == FILES[0].1,
    );
    desk.run(
        "apply",
        files_of(&shown),
        |workspace| workspace.apply(&shown, &approved),
        |applied| Told::default().with("approved", applied.hash.to_string()),
    )?;
    stage.step(
        "the owner approves what was shown",
        Some("approval hash"),
        "the bytes that were shown are the bytes that are installed",
        text(workspace) == "# I am a helpful agent who likes tea\n",
    );
    Ok(())
}

fn text(workspace: &Path) -> String {
    fs::read_to_string(workspace.join("SOUL.md")).unwrap_or_default()
}

fn word_of(state: &State, name: &str) -> Option<Status> {
    let found = state.files.iter().find(|file| file.name.to_string() == name)?;
    (found.status != Status::Ok).then_some(found.status)
}

/// Runs a command as the compromised agent; whether it could do it.
fn sh(folder: &Path, command: &str) -> bool {
    Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
