//! How long the history takes: `cargo run --release -p wardkeep-identity --example bench-history -- FOLDER [FILES]`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, not a part of it")]

use std::path::Path;
use std::time::Instant;

use wardkeep_identity::history::{Change, Content, History, Revision};
use wardkeep_identity::name::Name;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap();
    let count: usize = arguments.next().map_or(10_000, |text| text.parse().unwrap());
    let history = History::open_or_create(&Path::new(&folder).join("git")).unwrap();
    let names: Vec<Name> = (0..count)
        .map(|number| Name::new(format!("memory/{}/{number}.md", number % 100).as_bytes()).unwrap())
        .collect();
    let texts: Vec<String> =
        (0..count).map(|number| format!("# Note {number}\n\nA line.\n")).collect();
    let content =
        |text: &'static str| Some(Content { bytes: text.as_bytes(), is_executable: false });
    let all: Vec<Change<'_>> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| {
            let content = Some(Content { bytes: text.as_bytes(), is_executable: false });
            Change { name, content }
        })
        .collect();
    let start = Instant::now();
    history.commit(&all, "soulguard: initial commit", 1_788_000_000).unwrap();
    println!("first commit of {count} files: {:?}", start.elapsed());
    let mut times = Vec::new();
    for number in 0..500 {
        let text: &'static str = if number % 2 == 0 { "even\n" } else { "odd\n" };
        let change = Change { name: &names[number % count], content: content(text) };
        let start = Instant::now();
        history.commit(&[change], "soulguard: sync", 1_788_000_001).unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    println!("commit of one file: p50 {:?}, p99 {:?}", times[250], times[495]);
    let start = Instant::now();
    let log = history.log(None, 1000).unwrap();
    println!("log of {} commits: {:?}", log.entries.len(), start.elapsed());
    let start = Instant::now();
    let log = history.log(Some(&names[7]), 1000).unwrap();
    println!("history of one file, {} of 501 commits: {:?}", log.entries.len(), start.elapsed());
    let start = Instant::now();
    history.read(&names[7], &Revision::Versions(1)).unwrap();
    println!("the version before: {:?}", start.elapsed());
}
