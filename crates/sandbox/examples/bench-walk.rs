//! How long the look for guarded names takes that precedes every run.
//!
//! `bench-walk FOLDER [ROUNDS [again]]`; with `again`, folders are remembered from a walk before. Old and new by turns:
//! run two builds of it by turns.
#![expect(clippy::print_stdout, reason = "a program of its own")]

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use wardkeep_sandbox::names::Names;
use wardkeep_sandbox::walk::{Listings, walk_again};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("bench-walk FOLDER [ROUNDS]")?);
    let rounds = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(50);
    let names = Names::standard();
    let mut known = Listings::new([0; 16], SystemTime::now());
    if arguments.next().is_some_and(|word| word == "again") {
        let root = std::fs::File::open(&folder)?;
        let (_, seen) = walk_again(root.as_fd(), &folder, &names, None, Some(&known))?;
        let bytes = seen.to_bytes(&known).ok_or("too much to remember")?;
        known = Listings::read([0; 16], SystemTime::now(), bytes);
    }
    let mut took = Vec::new();
    let (mut entries, mut found) = (0, 0);
    let before = std::fs::read_to_string("/proc/self/stat")?;
    for _ in 0..rounds {
        let root = std::fs::File::open(&folder)?;
        let start = Instant::now();
        let (walked, _) = walk_again(root.as_fd(), &folder, &names, None, Some(&known))?;
        took.push(start.elapsed().as_micros());
        (entries, found) = (walked.entries, walked.found.len() + walked.links.len());
    }
    let after = std::fs::read_to_string("/proc/self/stat")?;
    took.sort_unstable();
    let spent = |at: usize| ticks(&after, at).saturating_sub(ticks(&before, at)) * 10_000 / rounds;
    println!(
        "{entries} entries, {found} guarded: median {} µs, best {} µs, user {} µs, kernel {} µs",
        took[took.len() / 2],
        took[0],
        spent(13),
        spent(14),
    );
    Ok(())
}

/// A number of the process's line of figures, in hundredths of a second.
fn ticks(line: &str, at: usize) -> u64 {
    line.split_whitespace().nth(at).and_then(|text| text.parse().ok()).unwrap_or_default()
}
