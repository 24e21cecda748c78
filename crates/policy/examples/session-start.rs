//! What a session start costs: verify, sanitise, prepare the audit line; the durable writes apart.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::path::Path;
use std::time::Instant;

use wardkeep_policy::audit::{Locked, Source};
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sanitise::sanitise;
use wardkeep_policy::sign::{Draft, Presence, Request};
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::workspace::Workspace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let (state, workspace) = (folder.path().join("state"), folder.path().join("workspace"));
    std::fs::create_dir(&state)?;
    std::fs::create_dir(&workspace)?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/accepted.jsonl");
    let mut policy = String::new();
    for line in std::fs::read_to_string(data)?.lines() {
        let row: serde_json::Value = serde_json::from_str(line)?;
        let text = row["text"].as_str().unwrap_or_default();
        if policy.chars().count() + text.chars().count() > 4096 {
            break;
        }
        policy.push_str(text);
    }
    std::fs::write(workspace.join("LocalGPT.md"), &policy)?;
    let owner = rustix::process::getuid().as_raw();
    let store = PolicyStore::new(&state, owner);
    store.create_key(std::array::from_fn(|at| u8::try_from(at * 7 % 251).unwrap_or(1)))?;
    let workspace = Workspace::open(&workspace)?;
    let now = "2026-02-09T14:30:00Z".parse()?;
    let request = Request { presence: Presence::Yes, confined: false, signer: Signer::Cli, now };
    store.sign(&workspace, &Draft::read(&workspace)?, &request, [3; 16])?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        let store = PolicyStore::new(&state, owner);
        let workspace = Workspace::open(workspace.path())?;
        let checked = store.verify(&workspace, [4; 16]);
        let event = checked.verification.event(Source::SessionStart);
        let prepared = Locked::open(&store.audit_path())?.prepare(&event, now)?;
        times.push(started.elapsed());
        std::hint::black_box(prepared);
    }
    times.sort();
    let started = Instant::now();
    std::hint::black_box(sanitise(&policy));
    println!(
        "{} characters: first quartile {:?}, median {:?}, slowest {:?}; sanitising alone {:?}",
        policy.chars().count(),
        times[50],
        times[100],
        times[199],
        started.elapsed()
    );
    Ok(())
}
