//! How long a hook takes, process start and durable record included, against programs that do nothing.
//!
//! `cargo run --release -p wardkeep-agents --example hook_latency -- WARDKEEP [ROUNDS]`, on an idle machine:
//! by turns `/bin/true`, `WARDKEEP hook claude-code` with a daemon, and hooks in Node and Python that do
//! nothing, where those are installed; then 32 at once for ten seconds.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for developers"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const AT_ONCE: usize = 32;
const SUSTAINED: Duration = Duration::from_secs(10);

struct Contender {
    name: &'static str,
    words: Vec<String>,
    times: Vec<Duration>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wardkeep = arguments.next().expect("the path of wardkeep");
    let rounds: usize = arguments.next().map_or(1000, |text| text.parse().unwrap());
    let folder = std::env::temp_dir().join(format!("hook-latency-{}", std::process::id()));
    let work = folder.join("work");
    std::fs::create_dir_all(&work).unwrap();
    let state = folder.join("state");
    let state = state.to_str().unwrap().to_owned();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let hook = words(&[&wardkeep, "--state-dir", &state, "hook", "claude-code", "PreToolUse"]);
    let init = words(&[&wardkeep, "--state-dir", &state, "init", work.to_str().unwrap()]);
    assert!(run(&init, &[]).1, "init failed");

    let mut contenders = vec![
        Contender { name: "/bin/true", words: words(&["/bin/true"]), times: Vec::new() },
        Contender { name: "wardkeep hook", words: hook.clone(), times: Vec::new() },
        Contender {
            name: "node, nothing",
            words: words(&["node", "-e", "process.stdin.resume()"]),
            times: Vec::new(),
        },
        Contender {
            name: "python3, nothing",
            words: words(&["python3", "-c", "import sys; sys.stdin.read()"]),
            times: Vec::new(),
        },
    ];
    contenders.retain(|one| one.words[0].starts_with('/') || is_there(&one.words[0]));
    let event = event(&work, 0);
    // The first starts the daemon and begins the session.
    run(&hook, &event);
    for round in 0..rounds {
        for contender in &mut contenders {
            // The slow ones need fewer turns.
            if round % 10 == 0 || contender.words[0].starts_with('/') {
                let (time, right) = run(&contender.words, &event);
                assert!(right, "{} failed", contender.name);
                contender.times.push(time);
            }
        }
    }
    println!("{:<18} {:>8} {:>8} {:>8}   over /bin/true: p50, p99 (ms)", "", "p50", "p99", "max");
    let bare = [50, 99].map(|share| part(&mut contenders[0].times, share));
    for contender in &mut contenders {
        let [p50, p99, max] = [50, 99, 100].map(|share| part(&mut contender.times, share));
        let over = [p50 - bare[0], p99 - bare[1]];
        println!(
            "{:<18} {p50:>8.2} {p99:>8.2} {max:>8.2}   {:.2}, {:.2}",
            contender.name, over[0], over[1]
        );
    }
    sustained(&hook, &work);
    let _ = run(&words(&[&wardkeep, "--state-dir", &state, "daemon", "stop"]), &[]);
    // As root the journal can only be appended to: then it stays.
    if std::fs::remove_dir_all(&folder).is_err() {
        println!("left behind: {}", folder.display());
    }
}

/// Many at once, each as soon as the one before it ended; every answer must be there, and every record.
fn sustained(hook: &[String], work: &Path) {
    let (done, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..AT_ONCE {
            let (done, wrong) = (&done, &wrong);
            let event = event(work, number + 1);
            scope.spawn(move || {
                while began.elapsed() < SUSTAINED {
                    let (_, right) = run(hook, &event);
                    done.fetch_add(1, Ordering::Relaxed);
                    wrong.fetch_add(u64::from(!right), Ordering::Relaxed);
                }
            });
        }
    });
    let done = done.into_inner();
    let rate = done as f64 / began.elapsed().as_secs_f64();
    println!(
        "{AT_ONCE} at once: {rate:.0} hooks/s, {done} in all, {} without leave",
        wrong.into_inner()
    );
}

fn event(work: &Path, session: usize) -> Vec<u8> {
    let work = work.display();
    format!(
        "{{\"session_id\":\"s{session}\",\"transcript_path\":\"/t\",\"cwd\":\"{work}\",\"hook_event_name\":\
         \"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{{\"command\":\"cargo test --workspace\"}}}}"
    )
    .into_bytes()
}

fn run(words: &[String], input: &[u8]) -> (Duration, bool) {
    let began = Instant::now();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    let right = child.wait().unwrap().success();
    (began.elapsed(), right)
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn part(times: &mut [Duration], share: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1000.0
}
