//! Callers that want to be believed, or to be in the way.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wardkeep_sandbox::DenialKind;

use super::{Lab, all_paths};

const PART: &str = "WARDKEEP_HOSTILE";
/// How many rounds a race is run.
const ROUNDS: usize = 10_000;

/// Runs one of the attacks below in a process of its own.
fn attack(lab: &Lab, part: &str) -> super::Ran {
    let test = "notify::hostile::attacker";
    lab.run(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PART, part),
    )
}

/// The attacks; does nothing unless it is told which.
#[test]
fn attacker() {
    let Some(part) = std::env::var_os(PART) else { return };
    match part.to_str().unwrap() {
        "links" => swap(|good, evil, link| {
            let _ = fs::remove_file(link);
            let _ = symlink(good, link);
            let _ = fs::remove_file(link);
            let _ = symlink(evil, link);
        }),
        "folders" => swap(|good, evil, link| {
            let _ = fs::rename(good, link);
            let _ = fs::rename(link, good);
            let _ = fs::rename(evil, link);
            let _ = fs::rename(link, evil);
        }),
        "memory" => memory(),
        "deaths" => deaths(),
        "threads" => threads(),
        "depth" => depth(),
        other => panic!("{other}"),
    }
}

/// One thread swaps where `place` leads, others write through it.
fn swap(turn: impl Fn(&Path, &Path, &Path) + Sync) {
    let (good, evil, link) = (Path::new("good"), Path::new(".github"), Path::new("place"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                turn(good, evil, link);
            }
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 0..ROUNDS / 2 {
                        let path = Path::new("place/workflows");
                        match (writer + round) % 5 {
                            0 => drop(fs::create_dir(path)),
                            1 => drop(fs::write(path, "x")),
                            2 => drop(symlink("/", path)),
                            3 => drop(fs::hard_link("file", path)),
                            _ => drop(fs::rename("spare", path)),
                        }
                        let _ = fs::remove_file("good/workflows");
                        let _ = fs::remove_dir("good/workflows");
                        let _ = fs::write("spare", "x");
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
}

fn race(part: &str) {
    let lab = Lab::new();
    lab.put("good/x", "");
    lab.put(".github/x", "");
    lab.put("file", "");
    let ran = attack(&lab, part);
    ran.succeeded();
    let evil = all_paths(&lab.work())
        .into_iter()
        .find(|path| path.to_str().is_some_and(|path| path.contains(".github/workflows")));
    assert_eq!(evil, None);
    // Of links that lead out it is only told that they were made.
    let mut refusals = ran.refusals.iter().filter(|one| one.kind != DenialKind::Link);
    assert!(
        refusals
            .all(|one| one.path.ends_with(".github/workflows") || one.path.ends_with(".github"))
    );
    println!("{part}: {} calls, {} refused", ran.summary.calls, ran.summary.refused);
    assert!(ran.summary.refused > 0, "the race was never close");
}

#[test]
fn a_link_that_is_swapped_leads_nowhere() {
    race("links");
}

#[test]
fn a_folder_that_is_swapped_leads_nowhere() {
    race("folders");
}

/// One thread changes the path in memory while others use it.
fn memory() {
    let done = AtomicBool::new(false);
    let path = CString::new("AGENTS.mx").unwrap().into_raw();
    let address = path as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let last = (address + 8) as *mut u8;
            while !done.load(Ordering::Relaxed) {
                for letter in [b'd', b'x'] {
                    // SAFETY: the text lives until the threads have ended; the race is the point.
                    #[expect(unsafe_code, reason = "an attack on memory")]
                    unsafe {
                        last.write_volatile(letter)
                    };
                }
            }
        });
        for _ in 0..ROUNDS {
            // SAFETY: as above.
            #[expect(unsafe_code, reason = "an attack on memory")]
            unsafe {
                let file = libc::open(address as *const _, libc::O_CREAT | libc::O_WRONLY, 0o644);
                libc::close(file);
                libc::unlink(c"AGENTS.mx".as_ptr());
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    // SAFETY: it was made by `into_raw` above, and its length has not changed.
    #[expect(unsafe_code, reason = "an attack on memory")]
    drop(unsafe { CString::from_raw(path) });
}

#[test]
fn memory_that_changes_is_read_once() {
    let lab = Lab::new();
    let ran = attack(&lab, "memory");
    ran.succeeded();
    assert!(!lab.has("AGENTS.md"));
    assert!(
        ran.summary.refused > 0 && ran.summary.refused < ran.summary.calls,
        "{:?}",
        ran.summary
    );
}

/// Children that are killed while they call.
fn deaths() {
    for round in 0..300_u64 {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do : > x$$; mkdir d$$; rmdir d$$; done"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(round * 37 % 5000));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    fs::write("alive", "x").unwrap();
}

#[test]
fn callers_that_die_are_no_trouble() {
    let lab = Lab::new();
    attack(&lab, "deaths").succeeded();
    assert!(lab.has("alive"));
}

fn threads() {
    std::thread::scope(|scope| {
        for number in 0..1000 {
            std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn_scoped(scope, move || {
                    for round in 0..5 {
                        fs::write(format!("f{number}-{round}"), "x").unwrap();
                        assert!(fs::write(".mcp.json", "x").is_err());
                    }
                })
                .unwrap();
        }
    });
}

#[test]
fn a_thousand_threads_are_served() {
    let lab = Lab::new();
    let ran = attack(&lab, "threads");
    ran.succeeded();
    assert_eq!(fs::read_dir(lab.work()).unwrap().count(), 5000);
    assert_eq!(ran.summary.refused, 5000);
}

/// Deeper than a path can say.
fn depth() {
    let name = "d".repeat(200);
    for _ in 0..40 {
        if fs::create_dir(&name).and_then(|()| std::env::set_current_dir(&name)).is_err() {
            break;
        }
    }
    assert!(fs::create_dir(".claude").is_err());
    assert!(fs::write(".mcp.json", "x").is_err());
    let pipe = CString::new("p").unwrap();
    // SAFETY: a text that ends with zero.
    #[expect(unsafe_code, reason = "std makes no pipes with names")]
    unsafe {
        libc::mkfifo(pipe.as_ptr(), 0o600)
    };
}

#[test]
fn depth_hides_nothing() {
    let lab = Lab::new();
    attack(&lab, "depth").succeeded();
    let found = Command::new("find").arg(lab.work()).args(["-name", ".claude"]).output().unwrap();
    assert!(found.stdout.is_empty());
    Command::new("rm").arg("-rf").arg(lab.work()).status().unwrap();
}

/// Writers of pipes that nobody reads keep nobody else waiting.
#[test]
fn pipes_keep_nobody_waiting() {
    let lab = Lab::new();
    let ran = lab.bash(
        "mkfifo p; for i in $(seq 20); do (echo x > p) & done; sleep 0.2; echo y > file; cat file; \
         kill $(jobs -p); wait 2>/dev/null; true",
    );
    ran.succeeded();
    assert_eq!(ran.stdout(), "y\n");
}

/// What is the supervisor's own stays so.
#[test]
fn the_supervisor_cannot_be_opened() {
    let lab = Lab::new();
    let own = std::process::id();
    for attempt in [
        format!("echo x > /proc/{own}/fd/9"),
        format!("echo x > /proc/{own}/mem"),
        format!("echo x > /proc/{own}/comm"),
        "echo x > /proc/self/mem".to_owned(),
        format!("python3 -c 'import os; os.open(\"/proc/{own}\", os.O_TMPFILE|os.O_RDWR)'"),
        format!("mkdir /proc/{own}/x"),
    ] {
        let ran = lab.bash(&attempt);
        assert!(!ran.output.status.success(), "{attempt}");
    }
}
