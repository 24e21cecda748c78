//! The skill verifier measured: `skills FILE [--show]`, one labelled skill a line, gzipped or not.
//!
//! Each line has `id`, `label` (`malicious` or `benign`), `source` and `files` of `path` and `text`.
//! Prints by source how many are denied and asked about, and the processor time each takes.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use wardkeep_skill::Verdict;
use wardkeep_skill::{Options, Report, Tree, verify};

#[derive(Deserialize)]
struct Row {
    id: String,
    label: String,
    source: String,
    files: Vec<RowFile>,
}

#[derive(Deserialize)]
struct RowFile {
    path: String,
    text: Option<String>,
}

#[derive(Default)]
struct Count {
    all: usize,
    denied: usize,
    asked: usize,
    time: Duration,
    longest: Duration,
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[expect(clippy::print_stdout, reason = "the table is its output")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.first().ok_or("usage: skills FILE [--show]")?;
    let show = arguments.iter().any(|argument| argument == "--show");
    let file: Box<dyn Read> = if path.ends_with(".gz") {
        Box::new(MultiGzDecoder::new(File::open(path)?))
    } else {
        Box::new(File::open(path)?)
    };
    let mut counts: BTreeMap<(String, String), Count> = BTreeMap::new();
    for line in BufReader::new(file).lines() {
        let row: Row = serde_json::from_str(&line?)?;
        let tree = Tree::of(row.files.into_iter().filter_map(|file| Some((file.path, file.text?))));
        let options = Options {
            folder: row.id.rsplit(['/', '_']).next().map(str::to_owned),
            ..Options::default()
        };
        let start = now();
        let report = verify(&tree, &options);
        let time = now().saturating_sub(start);
        let right = if row.label == "malicious" { Verdict::Deny } else { Verdict::Allow };
        if show && report.verdict != right {
            println!("{} {} {}", row.label, report.verdict, row.id);
            shown(&report);
        }
        let count = counts.entry((row.label, row.source)).or_default();
        count.all += 1;
        count.denied += usize::from(report.verdict == Verdict::Deny);
        count.asked += usize::from(report.verdict == Verdict::Ask);
        count.time += time;
        count.longest = count.longest.max(time);
    }
    println!(
        "{:<10} {:<24} {:>6} {:>8} {:>16} {:>10} {:>10}",
        "label", "source", "skills", "deny", "deny or ask", "mean ms", "most ms"
    );
    let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    for ((label, source), count) in &counts {
        println!(
            "{label:<10} {source:<24} {:>6} {:>7.2}% {:>15.2}% {:>10.3} {:>10.1}",
            count.all,
            share(count.denied, count.all),
            share(count.denied + count.asked, count.all),
            count.time.as_secs_f64() * 1000.0 / count.all.max(1) as f64,
            count.longest.as_secs_f64() * 1000.0,
        );
    }
    for label in ["malicious", "benign"] {
        let chosen: Vec<&Count> = counts
            .iter()
            .filter(|((known, _), _)| known == label)
            .map(|(_, count)| count)
            .collect();
        let sum = |of: fn(&Count) -> usize| chosen.iter().map(|count| of(count)).sum::<usize>();
        let (all, denied, asked) =
            (sum(|count| count.all), sum(|count| count.denied), sum(|count| count.asked));
        println!(
            "{label:<10} {:<24} {all:>6} {:>7.2}% {:>15.2}%",
            "all",
            share(denied, all),
            share(denied + asked, all)
        );
    }
    let (all, time) = counts
        .values()
        .fold((0, Duration::ZERO), |(all, time), count| (all + count.all, time + count.time));
    println!(
        "mean {:.3} ms of processor time a skill",
        time.as_secs_f64() * 1000.0 / all.max(1) as f64
    );
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is its output")]
fn shown(report: &Report) {
    for finding in report.findings.iter().filter(|finding| finding.verdict >= Verdict::Ask).take(6)
    {
        println!(
            "    {} {} {}:{} {} | {}",
            finding.verdict,
            finding.rule,
            finding.path,
            finding.line,
            finding.reason.escape_debug(),
            finding.excerpt.chars().take(100).collect::<String>().escape_debug()
        );
    }
}
