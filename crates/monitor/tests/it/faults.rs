//! Processes killed in the middle, a disk that is full, a file that only grows.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use wardkeep_monitor::journal::{JournalError, Position, parse_line, scan};
use wardkeep_monitor::monitor::{Monitor, MonitorConfig, Surroundings};
use wardkeep_monitor::store::{Store, StoreConfig, StoreError, StoreReader};

use crate::shared::{SetClock, failed, fill, message, newest_segment, open, skip, verify};

const CHILD: &str = "WARDKEEP_TEST_APPEND_TO";

/// Not a test of its own: the process that the test below starts and kills.
#[test]
fn child_appends_until_killed() {
    let Some(state) = std::env::var_os(CHILD) else { return };
    let mut config = StoreConfig::new(wardkeep_monitor::journal::Clock::new(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        wardkeep_evidence::time::Timestamp::from_unix(i64::try_from(since.as_secs()).unwrap())
            .unwrap()
    }));
    // Small segments, so that rotation is interrupted too.
    config.segment_bytes = 40_000;
    let store = Store::open(Path::new(&state), config).unwrap();
    let mut out = std::io::stdout().lock();
    for number in 0.. {
        let Ok(appended) = store.append(message(number)) else { continue };
        // Said only after the append was acknowledged.
        if writeln!(out, "acknowledged {}", appended.id).is_err() || out.flush().is_err() {
            return;
        }
    }
}

fn spawn_child(state: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::child_appends_until_killed", "--nocapture"])
        .env(CHILD, state)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn two_hundred_kills_lose_nothing_that_was_acknowledged() {
    const KILLS: u32 = 200;
    const PROCESSES: u32 = 8;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut kills = 0;
    while kills < KILLS {
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged: HashSet<String> = HashSet::new();
        // Five rounds on one journal, so that recoveries pile up on recoveries.
        for _ in 0..5 {
            let mut children: Vec<Child> =
                (0..PROCESSES).map(|_| spawn_child(folder.path())).collect();
            let mut outputs: Vec<_> = children
                .iter_mut()
                .map(|child| BufReader::new(child.stdout.take().unwrap()))
                .collect();
            // Each is killed after a random number of its own acknowledgements, while the others
            // go on; what it managed to say until then counts.
            for (child, output) in children.iter_mut().zip(&mut outputs) {
                let until = next(12);
                let mut said = 0;
                let mut line = String::new();
                while said < until && output.read_line(&mut line).unwrap() > 0 {
                    said += u64::from(take_acknowledged(&line, &mut acknowledged));
                    line.clear();
                }
                child.kill().unwrap();
                kills += 1;
            }
            for (mut child, output) in children.into_iter().zip(outputs) {
                child.wait().unwrap();
                for line in output.split(b'\n') {
                    take_acknowledged(&String::from_utf8_lossy(&line.unwrap()), &mut acknowledged);
                }
            }
            let present = ids_in(folder.path());
            let lost: Vec<_> = acknowledged.difference(&present).collect();
            assert!(lost.is_empty(), "{lost:?}");
            let report = verify(folder.path());
            assert!(report.passed(), "{:?}", report.findings.kept());
            fill(&open(folder.path(), &SetClock::new()), 1);
        }
        assert!(acknowledged.len() > 10);
    }
}

/// A line cut off by the kill says nothing; the harness prints lines of its own.
fn take_acknowledged(line: &str, acknowledged: &mut HashSet<String>) -> bool {
    match line.trim_end().split_once("acknowledged ").map(|(_, id)| id) {
        Some(id) if id.len() == 64 => acknowledged.insert(id.to_owned()),
        _ => false,
    }
}

fn ids_in(state: &Path) -> HashSet<String> {
    let store = StoreReader::open(state).unwrap();
    let mut ids = HashSet::new();
    scan(store.folder(), Position::START, |_, line| {
        ids.extend(parse_line(line).map(|line| line.record.id.to_string()));
        ControlFlow::Continue(())
    })
    .unwrap();
    ids
}

/// A file system of its own that is soon full; unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(test: &str, size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(folder));
        }
        skip("root and mount", test);
        None
    }
}

/// Takes all the room that is left.
fn take_room(ballast: &Path) {
    let mut file = OpenOptions::new().append(true).create(true).open(ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    while file.write_all(&[0; 1]).is_ok() {}
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount("a_full_disk_is_said_and_loses_nothing", "512k") else {
        return;
    };
    for append_only in [false, true] {
        let state = disk.0.path().join(format!("state-{append_only}"));
        let ballast = disk.0.path().join("ballast");
        let clock = SetClock::new();
        let mut config = StoreConfig::new(clock.clock());
        config.append_only = append_only;
        let store = Store::open(&state, config).unwrap();
        fill(&store, 3);
        File::create(&ballast).unwrap().set_len(0).unwrap();
        for round in 0..3u64 {
            take_room(&ballast);
            let mut acknowledged = ids_in(&state);
            let mut refused = 0;
            for number in 0..40 {
                match store.append(message(1000 * round + number)) {
                    Ok(appended) => {
                        acknowledged.insert(appended.id.to_string());
                    }
                    Err(StoreError::Journal(JournalError::Full { .. })) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            assert!(refused > 0);
            assert!(acknowledged.is_subset(&ids_in(&state)));
            // Emptied first: a process that another test starts just now may still hold it open.
            File::create(&ballast).unwrap();
            fs::remove_file(&ballast).unwrap();
            fill(&store, 2);
            let report = verify(&state);
            assert!(report.passed(), "{append_only} {round}: {:?}", report.findings.kept());
            assert!(acknowledged.is_subset(&ids_in(&state)));
        }
        drop(store);
        fill(&open(&state, &clock), 2);
        assert!(verify(&state).passed());
    }
}

#[test]
fn a_model_request_that_cannot_be_recorded_is_not_answered() {
    let test = "a_model_request_that_cannot_be_recorded_is_not_answered";
    let Some(disk) = SmallDisk::mount(test, "8m") else { return };
    let (state, work) = (disk.0.path().join("state"), tempfile::tempdir().unwrap());
    let owner = rustix::process::getuid().as_raw();
    let config = MonitorConfig::new(StoreConfig::new(SetClock::new().clock()), owner);
    let monitor = Monitor::open(&state, config).unwrap();
    let ask = |begin: bool, words: &str| {
        let fresh = |text: String| serde_json::json!({"tool": null, "principal": null, "call": null, "text": text});
        let asked = serde_json::json!({
            "model": "request",
            "who": {
                "agent": "a", "session": "a:1", "workspace": work.path(), "principal": "USER"
            },
            "begin": begin, "parent": null, "system": null,
            "fresh": [fresh(format!("{words} one")), fresh(format!("{words} two"))],
            "call": {
                "wire": "anthropic", "upstream": "u", "model": null, "messages": 2, "size": 9,
                "sha256": "00", "told": []
            }
        });
        monitor.model(&serde_json::from_value(asked).unwrap(), Surroundings::Unseen)
    };
    let first = ask(true, "good morning").unwrap();
    assert_eq!(first.told.len(), 2);
    let ballast = disk.0.path().join("ballast");
    take_room(&ballast);
    let refused = (0..40).filter(|number| ask(false, &format!("page {number}")).is_err()).count();
    assert!(refused > 30, "{refused}");
    File::create(&ballast).unwrap();
    fs::remove_file(&ballast).unwrap();
    let last = ask(false, "good evening").unwrap();
    let there = ids_in(&state);
    for id in first.told.iter().chain(&last.told).chain(&last.record) {
        assert!(there.contains(id), "{id}");
    }
    // No record comes from one that was never written.
    let report = verify(&state);
    assert!(report.passed(), "{:?}", report.findings.kept());
}

#[test]
fn requests_that_cannot_be_recorded_together_do_not_leave() {
    let test = "requests_that_cannot_be_recorded_together_do_not_leave";
    let Some(disk) = SmallDisk::mount(test, "8m") else { return };
    let (state, work) = (disk.0.path().join("state"), tempfile::tempdir().unwrap());
    let owner = rustix::process::getuid().as_raw();
    let config = MonitorConfig::new(StoreConfig::new(SetClock::new().clock()), owner);
    let monitor = Monitor::open(&state, config).unwrap();
    let who = serde_json::json!({
        "agent": "egress", "session": "egress:1", "workspace": work.path(), "principal": "USER"
    });
    let request = |url: &str| {
        serde_json::json!({
            "egress": "request", "who": who, "url": url, "method": "GET", "way": "http",
            "size": 0, "content": null, "addresses": ["93.184.215.14"], "refused": null
        })
    };
    let ask = |all: Vec<serde_json::Value>| {
        let asked = serde_json::json!({ "all": all });
        monitor.egress_several(&serde_json::from_value(asked).unwrap())
    };
    let mut nobody = request("http://example.org/");
    nobody["who"]["principal"] = "NOBODY".into();
    let told = serde_json::json!({
        "egress": "outcome", "who": who, "request": "no id", "sent": 1, "received": 1,
        "status": 200, "address": null, "ended": "done", "why": null, "took": 1
    });
    // What one of them gets wrong is nobody else's trouble; and each gets its own answer.
    let all = [request("http://example.org/a"), nobody, request("http://webhook.site/b"), told];
    let first = ask(all.to_vec()).unwrap().all;
    let allowed: Vec<_> = first.iter().map(|one| one.as_ref().map(|one| one.allowed)).collect();
    assert!(matches!(allowed[..], [Ok(true), Err(_), Ok(false), Err(_)]), "{first:?}");
    let more = vec![request("http://example.org/"); wardkeep_monitor::monitor::SEVERAL + 1];
    assert!(ask(more).is_err());

    let ballast = disk.0.path().join("ballast");
    take_room(&ballast);
    let page = |number| request(&format!("http://example.org/{number}"));
    let (mut refused, mut meanwhile) = (0, Vec::new());
    for number in 0..40 {
        // Either all of them together, or one by one.
        let all = ask(vec![page(number), page(number)]).map_or_else(|_| Vec::new(), |all| all.all);
        let answered: Vec<_> = all.into_iter().filter_map(Result::ok).collect();
        refused += usize::from(answered.is_empty());
        meanwhile.extend(answered);
    }
    assert!(refused > 30, "{refused}");
    File::create(&ballast).unwrap();
    fs::remove_file(&ballast).unwrap();
    let last = ask(vec![page(41), page(42)]).unwrap().all;
    let there = ids_in(&state);
    let answered = first.iter().chain(&last).filter_map(|one| one.as_ref().ok());
    let records: Vec<_> =
        answered.chain(&meanwhile).filter_map(|one| one.record.as_ref()).collect();
    assert_eq!(records.len(), 4 + meanwhile.len());
    assert!(records.iter().all(|id| there.contains(*id)), "{records:?}");
    let report = verify(&state);
    assert!(report.passed(), "{:?}", report.findings.kept());
}

#[test]
fn with_the_append_only_attribute_nothing_is_ever_cut() {
    let test = "with_the_append_only_attribute_nothing_is_ever_cut";
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new();
    let mut config = StoreConfig::new(clock.clock());
    config.append_only = true;
    let store = Store::open(folder.path(), config.clone()).unwrap();
    fill(&store, 3);
    drop(store);
    let segment = newest_segment(folder.path());
    let _release = Release(folder.path().to_owned());
    if OpenOptions::new().write(true).open(&segment).is_ok() {
        return skip("root and a file system with the append-only attribute", test);
    }
    assert!(fs::remove_file(&segment).is_err());
    assert!(fs::rename(&segment, folder.path().join("x")).is_err());
    let before = fs::read(&segment).unwrap();
    let mut file = OpenOptions::new().append(true).open(&segment).unwrap();
    file.write_all(b"{\"torn").unwrap();
    fill(&Store::open(folder.path(), config).unwrap(), 1);
    let after = fs::read(&segment).unwrap();
    assert!(after.starts_with(&before));
    let report = verify(folder.path());
    assert_eq!(failed(&report), Vec::<&str>::new());
    assert_eq!(report.recoveries["torn-tail"], 1);
}

/// Takes the attribute away again, so that the folder can be removed.
struct Release(std::path::PathBuf);

impl Drop for Release {
    fn drop(&mut self) {
        let _ =
            Command::new("chattr").args(["-R", "-a"]).arg(&self.0).stderr(Stdio::null()).status();
    }
}
