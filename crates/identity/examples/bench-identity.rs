//! How long `status` and `diff` take: makes a workspace of many protected files and looks at it.
//!
//! ```sh
//! cargo run --release -p wardkeep-identity --example bench-identity -- 10000 100000
//! ```
//! A second argument that begins with `/` is the folder in which the workspace is made.

#![expect(clippy::print_stdout, reason = "figures are for people")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

use wardkeep_identity::config::Config;
use wardkeep_identity::level::Level;
use wardkeep_identity::state::Status;
use wardkeep_identity::workspace::Workspace;

const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let mut folder = std::env::temp_dir();
    let mut counts = Vec::new();
    for word in std::env::args().skip(1) {
        match word.strip_prefix('/') {
            Some(_) => folder = word.into(),
            None => counts.push(word.parse()?),
        }
    }
    if counts.is_empty() {
        counts.push(10_000);
    }
    for count in counts {
        let place = folder.join(format!("wardkeep-bench-identity-{}", std::process::id()));
        let measured = measure(&place, count);
        fs::remove_dir_all(&place)?;
        measured?;
    }
    Ok(())
}

fn measure(place: &Path, count: usize) -> Result<(), Box<dyn Error>> {
    let (work, state) = (place.join("work"), place.join("state"));
    fs::create_dir_all(&work)?;
    fs::write(work.join("soulguard.json"), r#"{"version":1,"protect":["files/"],"watch":[]}"#)?;
    for number in 0..count {
        let folder = work.join(format!("files/{:03}", number / 100));
        if number.is_multiple_of(100) {
            fs::create_dir_all(&folder)?;
        }
        fs::write(folder.join(format!("{number}.md")), format!("file {number}\n").repeat(100))?;
    }
    let open = || Workspace::open(&work, &state, Level::User, SystemTime::now());
    let start = Instant::now();
    open()?.set_up(&Config::new([]), &|_| {})?;
    println!("{count:>7} files  set-up {:>9.1} ms", start.elapsed().as_secs_f64() * 1e3);
    // What was written a moment ago is read again each time.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let cold = Instant::now();
    check(open()?.look(&|_| {})?.count(Status::Ok), count + 1)?;
    let cold = cold.elapsed().as_secs_f64() * 1e3;
    let status = median(|| check(open()?.look(&|_| {})?.count(Status::Ok), count + 1))?;
    let closely = median(|| check(open()?.look_closely(&|_| {})?.count(Status::Ok), count + 1))?;
    check(open()?.changes(&|_| {})?.changes.len(), 0)?;
    fs::write(work.join(".soulguard/staging/files/000/0.md"), "changed\n")?;
    let diff = median(|| check(open()?.changes(&|_| {})?.changes.len(), 1))?;
    println!(
        "{count:>7} files  status {status:>9.1} ms  diff {diff:>9.1} ms  first status {cold:>9.1} ms  \
         every byte read {closely:>9.1} ms"
    );
    Ok(())
}

fn check(found: usize, expected: usize) -> Result<(), Box<dyn Error>> {
    if found == expected { Ok(()) } else { Err(format!("{found}, not {expected}").into()) }
}

fn median(run: impl Fn() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}
