//! Times the daemon: `cargo run -p wardkeep-monitor --example bench-daemon -- PATH/TO/wardkeep`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use wardkeep_evidence::record::Principal;
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_monitor::approvals::{ActionKey, Approvals};
use wardkeep_monitor::daemon::{Starter, ensure_running};
use wardkeep_monitor::wire::Client;

const PATIENCE: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let program = std::env::args_os().nth(1).map(PathBuf::from);
    let program = program.ok_or("name the wardkeep program to be timed")?;
    let mut cold = Vec::new();
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("state");
    let mut starter = Starter::new(std::fs::canonicalize(program)?);
    starter.variables = vec![("WARDKEEP_APPEND_ONLY".into(), "0".into())];
    for _ in 0..10 {
        let started = Instant::now();
        let (mut client, _) = ensure_running(&state, &starter, PATIENCE)?;
        client.call("ping", &())?;
        cold.push(started.elapsed());
        client.call("stop", &())?;
        drop(client);
        while Client::connect(&state, PATIENCE).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    show("cold start to the first answer", cold);
    let (mut client, _) = ensure_running(&state, &starter, PATIENCE)?;
    show("ping on an open connection", times(10_000, || Ok(client.call("ping", &()).map(drop)?))?);
    let connect = || Ok(Client::connect(&state, PATIENCE)?.call("ping", &()).map(drop)?);
    show("connect and ping", times(2000, connect)?);
    let approvals = Approvals::open(&state, rustix::process::getuid().as_raw())?;
    let action = ActionKey {
        principal: Principal::Tool,
        surface: Surface::FileSystem,
        act: Act::Write,
        subject: "/w/a",
        how: "",
        content: None,
        workspace: "/w",
    };
    let now = Timestamp::from_unix(1_800_000_000).ok_or("a time")?;
    let lookup = || Ok(approvals.lookup(action.hash(), "s", now).map(drop)?);
    show("lookup of an approval, hash included", times(2000, lookup)?);
    client.call("stop", &())?;
    Ok(())
}

fn times(count: usize, mut work: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    Ok(times)
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{what}: median {:?}, p99 {:?}, least {:?}", at(50), at(99), at(0));
}
