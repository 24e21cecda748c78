//! How long a program takes that does nothing, confined; the first run of each process is left out.
//!
//! `bench-start [ROUNDS [FOLDER]]`: with a folder, copies of the machine's settings are kept there between runs.
#![expect(clippy::print_stdout, reason = "a program of its own")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use wardkeep_sandbox::{NewSettings, Prepared, SettingsFolder, Spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(200), |text| text.parse::<usize>())?;
    let folder = std::env::args_os().nth(2).map(PathBuf::from);
    let workspace = tempfile::tempdir()?;
    let mut times = Vec::new();
    for _ in 0..=rounds {
        let mut spec =
            Spec::new(workspace.path().to_owned(), vec![OsString::from("/usr/bin/true")]);
        spec.home = std::env::home_dir();
        spec.environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let settings = |path| SettingsFolder::new(path, [1; 16], SystemTime::now());
        spec.settings = folder.clone().map(settings);
        let start = Instant::now();
        let prepared = Prepared::new(spec)?;
        let known = start.elapsed();
        let mut running = prepared.spawn()?;
        let started = start.elapsed();
        running.take_settings().map(NewSettings::keep).transpose()?;
        let ended = running.wait()?;
        assert_eq!(ended.code, 0, "{ended:?}");
        times.push((start.elapsed(), known, started));
    }
    times.remove(0);
    for (name, part) in [
        ("worked out", times.iter().map(|one| one.1).collect::<Vec<_>>()),
        ("started", times.iter().map(|one| one.2).collect()),
        ("ended", times.iter().map(|one| one.0).collect()),
    ] {
        let mut part = part;
        part.sort_unstable();
        println!("{name:>10}: min {:?}, median {:?}", part[0], part[part.len() / 2]);
    }
    Ok(())
}
