//! What a supervisor costs: calls by themselves, and a program with and without.
//!
//! `cargo run --release -p wardkeep-sandbox --example bench-notify [-- PROGRAM ARGUMENT…]`

use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use wardkeep_sandbox::notify::{Filter, Names, Supervisor, hand_over, take_over};

/// Calls of each kind.
const CALLS: u32 = 20_000;
/// Rounds of a program, each with and without.
const ROUNDS: usize = 5;

type Failed = Box<dyn std::error::Error>;

#[expect(clippy::print_stdout, reason = "a benchmark tells")]
fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(part) if part == "--calls" => calls(),
        Some(program) => {
            let arguments: Vec<_> = arguments.collect();
            let (mut bare, mut watched) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                bare.push(timed(Command::new(&program).args(&arguments), false)?.0);
                watched.push(timed(Command::new(&program).args(&arguments), true)?);
            }
            watched.sort();
            bare.sort();
            let (bare, (with, calls)) = (bare[ROUNDS / 2], watched[ROUNDS / 2]);
            let more = (with.as_secs_f64() / bare.as_secs_f64() - 1.0) * 100.0;
            println!("bare {bare:.2?}, watched {with:.2?} ({more:+.1} %), {calls} calls");
            Ok(())
        }
        None => {
            let own = std::env::current_exe()?;
            for watched in [false, true] {
                println!("{}", if watched { "watched" } else { "bare" });
                timed(Command::new(&own).arg("--calls"), watched)?;
            }
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark tells")]
fn calls() -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("wardkeep-bench-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let tell = |name: &str, start: Instant| {
        println!("  {name}: {:.2?} each", start.elapsed() / CALLS);
    };
    let start = Instant::now();
    for _ in 0..CALLS {
        drop(std::fs::File::create(folder.join("one"))?);
        std::fs::remove_file(folder.join("one"))?;
    }
    tell("create and remove", start);
    let start = Instant::now();
    for number in 0..CALLS {
        drop(std::fs::File::create(folder.join(number.to_string()))?);
    }
    tell("create, all kept", start);
    let start = Instant::now();
    for number in 0..CALLS {
        drop(std::fs::File::open(folder.join(number.to_string()))?);
    }
    tell("open for reading", start);
    let start = Instant::now();
    for number in 0..CALLS {
        std::fs::rename(folder.join(number.to_string()), folder.join(format!("r{number}")))?;
    }
    tell("rename", start);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn timed(command: &mut Command, watched: bool) -> Result<(Duration, u64), Failed> {
    let start = Instant::now();
    if !watched {
        assert!(command.status()?.success());
        return Ok((start.elapsed(), 0));
    }
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let filter = Filter::new();
    let install = move || {
        rustix::thread::set_no_new_privs(true)?;
        let listener = filter.install()?;
        hand_over(theirs.as_fd(), listener.as_fd())
    };
    // SAFETY: only system calls, and nothing is allocated.
    #[expect(unsafe_code, reason = "a filter is installed after the fork")]
    unsafe {
        command.pre_exec(install)
    };
    let supervisor = std::thread::spawn(move || {
        let listener = take_over(ours.as_fd())?;
        Ok::<_, std::io::Error>(Supervisor::new(listener, Names::new(), |_| {})?.run(None))
    });
    let status = command.status()?;
    let took = start.elapsed();
    let summary = supervisor.join().map_err(|_| "the supervisor failed")??;
    assert!(status.success(), "{summary:?}");
    Ok((took, summary.calls))
}
