//! Speed and memory of a strict verify.
//!
//! usage: cargo run --release -p wardkeep-evidence --example bench-verify -- FOLDER [RECORDS [THREADS]]
//!
//! Writes a bundle of RECORDS records (1,000,000 unless told) into FOLDER, which is kept and used
//! again if it is there, then starts itself once more to verify that bundle, so that the peak
//! memory is that of the verify alone. Each pass is printed; the first one warms the page cache.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use wardkeep_evidence::bundle::BundleWriter;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::source;
use wardkeep_evidence::time::Timestamp;
use wardkeep_evidence::verify::{Options, verify};

const PASSES: usize = 4;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[expect(clippy::print_stdout, reason = "a program that prints its measurements")]
fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("give a folder for the bundle")?;
    let folder = Path::new(&folder);
    let records: u64 = arguments.next().as_deref().unwrap_or("1000000").parse()?;
    let threads: usize = arguments.next().as_deref().unwrap_or("2").parse()?;
    if arguments.next().as_deref() == Some("verify") {
        return measure(folder, records, threads);
    }
    if !folder.join(source::MANIFEST).is_file() {
        let started = Instant::now();
        generate(folder, records)?;
        println!("generated {records} records in {:.1} s", started.elapsed().as_secs_f64());
    }
    let length = std::fs::metadata(folder.join(source::RECORDS))?.len();
    println!("{} bytes a record line", length / records.max(1));
    let program = std::env::current_exe()?;
    let (records, threads) = (records.to_string(), threads.to_string());
    let arguments = [records.as_str(), threads.as_str(), "verify"];
    let status = std::process::Command::new(program).arg(folder).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err("the verify failed".into()) }
}

fn generate(folder: &Path, records: u64) -> Result<()> {
    let mut writer = BundleWriter::create(folder, "2026-01-02T03:04:05Z".to_owned())?;
    let mut parent = None;
    let mut line = Vec::new();
    for number in 0..records {
        let seconds = 1_767_323_045 + i64::try_from(number / 10)?;
        let time = Timestamp::from_unix(seconds).ok_or("time out of range")?.to_string();
        let nonce = format!("{:032x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c));
        let record = NewRecord {
            kind: RecordType::ALL[usize::try_from(number)? % 12],
            principal: Principal::ALL[usize::try_from(number)? % 7],
            taint: Vec::new(),
            parents: parent.into_iter().collect(),
            meta: Object::from([("nonce", Value::from(nonce)), ("ts", Value::from(time.clone()))]),
            payload: Payload::Inline(Value::from([("n", Value::from(number))])),
        };
        let record = record.seal()?;
        line.clear();
        record.write_line(&mut line);
        writer.push(record.id, record.parents.is_empty(), &line, &time)?;
        parent = Some(record.id);
    }
    writer.finish()?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program that prints its measurements")]
fn measure(folder: &Path, records: u64, threads: usize) -> Result<()> {
    let options = Options { threads, ..Options::default() };
    for pass in 0..PASSES {
        let (started, cpu) = (Instant::now(), cpu_seconds()?);
        let report = verify(&mut *source::open(folder)?, &options);
        let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
        if !report.passed() || report.records != records {
            return Err(format!("{} records, {:?}", report.records, report.findings.kept()).into());
        }
        let count = u32::try_from(records).map(f64::from)?;
        println!(
            "pass {pass}: {:.0} records/s on {threads} threads, {:.2} µs CPU a record, peak {} kB",
            count / wall,
            cpu * 1e6 / count,
            peak_memory()?
        );
    }
    Ok(())
}

/// User and system time of this process so far, from clock ticks of a hundredth of a second.
fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').ok_or("unexpected /proc/self/stat")?;
    let ticks = |field: usize| -> Result<f64> {
        Ok(after_name.split_whitespace().nth(field).ok_or("short /proc/self/stat")?.parse()?)
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.ok_or("no VmHWM")?.trim().trim_end_matches(" kB").trim().parse()?)
}
