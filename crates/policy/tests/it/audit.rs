//! The audit log under attack: many writers, torn lines, strange bytes, edits.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use wardkeep_policy::audit::{
    self, Action, AuditError, Chain, Event, Follower, Line, Link, Locked, Source, parse_entry,
};
use wardkeep_policy::hash::{ContentHash, LineHash};

use crate::lab::{Lab, POLICY, folder, now};

const CHILD: &str = "WARDKEEP_TEST_AUDIT_LOG";

fn event(number: usize) -> Event {
    Event::new(Action::WriteBlocked, Source::tool("bash")).detail(format!("number {number}"))
}

fn filled(lines: usize) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = folder();
    let path = folder.path().join(".security_audit.jsonl");
    for number in 0..lines {
        audit::append(&path, &event(number), now()).unwrap();
    }
    (folder, path)
}

/// Not a test of its own: the processes that the test below starts.
#[test]
fn child_appends_to_the_audit_log() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    for number in 0..4 {
        audit::append(Path::new(&path), &event(number), now()).unwrap();
    }
}

#[test]
fn concurrent_appends_of_64_processes() {
    let (folder, path) = filled(0);
    let children: Vec<_> = (0..64)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "audit::child_appends_to_the_audit_log"])
                .env(CHILD, &path)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let report = audit::read(&path, None).unwrap();
    assert_eq!((report.rows.len(), report.summary.chain), (256, Chain::Intact));
    assert_eq!(report.summary.segments.len(), 1);
    drop(folder);
}

#[test]
fn torn_at_every_byte_of_the_last_line() {
    let (_folder, path) = filled(3);
    let whole = fs::read(&path).unwrap();
    let start = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in start..=whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let appended = audit::append(&path, &event(9), now()).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.starts_with(&whole[..end]) && bytes.ends_with(b"\n"), "{end}");
        let report = audit::read(&path, None).unwrap();
        let last = report.rows.last().unwrap();
        assert_eq!((last.hash, last.link), (appended.hash, Link::Valid), "{end}");
        let torn = end > start && end < whole.len() - 1;
        assert_eq!(appended.recovery.is_some(), torn, "{end}");
        if torn {
            // Two whole lines, the torn one, the recovery, the entry: nothing glued.
            assert_eq!(report.rows.len(), 5, "{end}");
            let recovery = &report.rows[3];
            assert!(
                matches!(&recovery.line, Line::Entry(entry) if entry.action == Action::ChainRecovery
                    && entry.detail.as_deref()
                        == Some(&format!("Previous entry corrupted ({} bytes), new chain segment", end - start)))
            );
            assert_eq!(recovery.link, Link::NewSegment);
            assert_eq!(report.summary.chain, Chain::Recovered);
        } else {
            assert_eq!(report.summary.chain, Chain::Intact, "{end}");
            assert_eq!(report.rows.len(), if end == start { 3 } else { 4 }, "{end}");
        }
    }
}

#[test]
fn a_torn_line_shows_before_anything_is_appended() {
    let (_folder, path) = filled(2);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let summary = audit::read(&path, None).unwrap().summary;
    assert!(summary.torn);
    assert_eq!((summary.corrupted_lines, summary.chain), (vec![2], Chain::Recovered));
}

#[test]
fn non_utf8_does_not_end_auditing() {
    let (_folder, path) = filled(2);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\xff\xfe\n");
    fs::write(&path, &bytes).unwrap();
    audit::append(&path, &event(3), now()).unwrap();
    let report = audit::read(&path, None).unwrap();
    assert_eq!(report.rows[2].line, Line::Corrupted { bytes: 2, why: "not valid UTF-8" });
    assert_eq!(report.summary.chain, Chain::Recovered);
    assert_eq!(report.rows.len(), 5);
}

#[test]
fn blank_lines_do_not_start_a_new_chain() {
    let (_folder, path) = filled(2);
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\n\n").unwrap();
    audit::append(&path, &event(3), now()).unwrap();
    let report = audit::read(&path, None).unwrap();
    assert_eq!(report.summary.corrupted_lines, [3, 4]);
    assert_eq!(report.rows[5].number, 6, "true line numbers");
    assert_eq!(report.summary.chain, Chain::Recovered);
}

#[test]
fn edits_removals_and_insertions_break_the_chain() {
    let (_folder, path) = filled(5);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let check = |lines: &[&str], broken: &[u64], name: &str| {
        fs::write(&path, format!("{}\n", lines.join("\n"))).unwrap();
        let summary = audit::read(&path, None).unwrap().summary;
        assert_eq!((&*summary.broken_lines, summary.chain), (broken, Chain::Broken), "{name}");
    };
    let edited = lines[2].replace("number 2", "number 7");
    check(&[lines[0], lines[1], &edited, lines[3], lines[4]], &[4], "edited");
    check(&[lines[0], lines[1], lines[3], lines[4]], &[3], "removed");
    check(&[lines[1], lines[2], lines[3], lines[4]], &[1], "the first removed");
    check(&[lines[0], lines[2], lines[1], lines[3], lines[4]], &[2, 3, 4], "swapped");
    check(&[lines[0], lines[0], lines[1]], &[2], "doubled");
    // A gap behind garbage without a word about it.
    check(&[lines[0], "garbage", lines[3]], &[3], "garbage in between");
    // The same, with the hash of the garbage: only a recovery may follow damage.
    let garbage = LineHash::of(b"garbage");
    let quiet =
        lines[3].replace(&LineHash::of(lines[2].as_bytes()).to_string(), &garbage.to_string());
    assert!(quiet.contains(&garbage.to_string()));
    check(&[lines[0], "garbage", &quiet], &[3], "damage that is not told of");
    // A recovery that nobody needed hangs on nothing.
    let forged = format!(
        "{{\"ts\":\"2026-02-09T14:30:00Z\",\"action\":\"chain_recovery\",\"content_sha256\":null,\"prev_entry_sha256\":\"{}\",\"source\":\"audit_system\",\"detail\":null}}",
        "0".repeat(64)
    );
    check(&[lines[0], &forged], &[2], "forged recovery");
}

#[test]
fn null_empty_and_absent_are_the_same() {
    let line = |middle: &str| {
        format!(
            "{{\"ts\":\"2026-02-09T15:12:33Z\",\"action\":\"write_blocked\",{middle}\"prev_entry_sha256\":\"{}\",\"source\":\"tool:write_file\"}}",
            "0".repeat(64)
        )
    };
    let read = |middle: &str| parse_entry(line(middle).as_bytes()).unwrap();
    let plain = read("");
    assert_eq!((&plain.content, &plain.detail), (&None, &None));
    assert_eq!(read("\"content_sha256\":null,\"detail\":null,"), plain);
    assert_eq!(read("\"content_sha256\":\"\",\"detail\":\"\","), plain);
    for bad in ["\"content_sha256\":7,", "\"ts\":\"x\",", "\"detail\":{},", "\"source\":null,"] {
        assert!(parse_entry(line(bad).as_bytes()).is_err(), "{bad}");
    }
    let ours = format!("{:?}", Event::new(Action::Missing, Source::SessionStart));
    assert!(ours.contains("None"));
    let (_folder, path) = filled(0);
    audit::append(&path, &Event::new(Action::Missing, Source::SessionStart), now()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"ts\":\"2026-02-09T14:30:00Z\",\"action\":\"missing\",\"content_sha256\":null,\"prev_entry_sha256\":\"{}\",\"source\":\"session_start\",\"detail\":null}}\n",
            "0".repeat(64)
        )
    );
}

#[test]
fn a_detail_of_the_agents_stays_one_short_line() {
    let (_folder, path) = filled(0);
    let hostile = "a\nb\u{1b}[31m\u{2028}\"\\".repeat(2000);
    audit::append(&path, &Event::write_blocked(&hostile, &hostile), now()).unwrap();
    audit::append(&path, &event(1), now()).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 2);
    assert!(bytes.len() < 16_000);
    let report = audit::read(&path, None).unwrap();
    assert_eq!(report.summary.chain, Chain::Intact);
    let Line::Entry(entry) = &report.rows[0].line else { panic!() };
    assert!(entry.source.name().chars().all(|c| c.is_ascii_graphic()), "{}", entry.source);
}

#[test]
fn a_log_that_is_no_plain_file_is_neither_read_nor_written() {
    let folder = folder();
    let (path, target) = (folder.path().join("log"), folder.path().join("target"));
    fs::write(&target, "precious").unwrap();
    symlink(&target, &path).unwrap();
    let refused = |path: &Path| {
        assert!(matches!(audit::append(path, &event(0), now()), Err(AuditError::NotPlain(_))));
        assert!(matches!(audit::read(path, None), Err(AuditError::NotPlain(_))));
    };
    refused(&path);
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    symlink(folder.path().join("nothing"), &path).unwrap();
    refused(&path);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused(&path);
    fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    refused(&path);
}

#[test]
fn the_log_is_the_owners_alone() {
    let (_folder, path) = filled(1);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn verified_without_signed_is_flagged() {
    let lab = Lab::signed(POLICY);
    let signed = Some(ContentHash::of(POLICY.as_bytes()));
    let other = Some(ContentHash::of(b"other"));
    let verified = |content| Event::new(Action::Verified, Source::SessionStart).content(content);
    lab.append(&verified(signed));
    lab.append(&Event::new(Action::Signed, Source::Cli).content(signed));
    lab.append(&verified(signed));
    lab.append(&verified(other));
    lab.append(&verified(None));
    let report = lab.audit();
    assert_eq!(report.summary.never_signed, [1, 4, 5]);
    let flags: Vec<bool> = report.rows.iter().map(|row| row.never_signed).collect();
    assert_eq!(flags, [true, false, false, true, true]);
}

#[test]
fn the_journal_comes_first() {
    let (_folder, path) = filled(2);
    let mut log = Locked::open(&path).unwrap();
    let prepared = log.prepare(&event(2), now()).unwrap();
    assert_eq!(audit::read(&path, None).unwrap().rows.len(), 2, "nothing is written yet");
    let journal = prepared.hash();
    assert_eq!(LineHash::of(prepared.line().as_bytes()), journal);
    log.commit(&prepared).unwrap();
    drop(log);
    let summary = audit::read(&path, None).unwrap().summary;
    assert_eq!((summary.head, summary.chain), (journal, Chain::Intact));
}

#[test]
fn an_append_reads_only_the_end() {
    let (_folder, path) = filled(1);
    // A hole of 64 GiB before the last line: whoever reads it all is never done.
    let line = fs::read(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(64 << 30).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"\n").unwrap();
    file.write_all(&line).unwrap();
    let appended = audit::append(&path, &event(2), now()).unwrap();
    assert_eq!(appended.recovery, None);
}

#[test]
fn a_line_without_end_takes_bounded_memory_and_time() {
    let (_folder, path) = filled(1);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    let summary = audit::read(&path, None).unwrap().summary;
    assert_eq!((summary.lines, summary.corrupted_lines), (2, vec![2]));
    let appended = audit::append(&path, &event(2), now()).unwrap();
    assert!(appended.recovery.is_some());
    let report = audit::read(&path, None).unwrap();
    assert_eq!(report.rows.last().unwrap().link, Link::Valid);
    // The start of such a line is not looked for to the end of days: its hash is not known.
    assert_eq!(report.summary.chain, Chain::Broken);
}

#[test]
fn a_lock_that_is_never_given_back_is_an_error() {
    let (_folder, path) = filled(1);
    let held = Locked::open(&path).unwrap();
    let result = Locked::open_within(&path, Duration::from_millis(20));
    assert!(matches!(result, Err(AuditError::Locked(_))), "{result:?}");
    drop(held);
    audit::append(&path, &event(1), now()).unwrap();
}

#[test]
fn a_log_replaced_while_waiting_is_opened_again() {
    let (folder, path) = filled(1);
    let held = Locked::open(&path).unwrap();
    let other = path.clone();
    let waiting = std::thread::spawn(move || audit::append(&other, &event(1), now()));
    // Whether the other thread has opened the old file yet or not, its line is in the new one.
    fs::rename(&path, folder.path().join("old")).unwrap();
    drop(held);
    waiting.join().unwrap().unwrap();
    assert_eq!(audit::read(&path, None).unwrap().rows.len(), 1);
}

#[test]
fn a_missing_log_is_an_empty_one() {
    let folder = folder();
    for path in [folder.path().join("log"), folder.path().join("none/log")] {
        let summary = audit::read(&path, None).unwrap().summary;
        assert_eq!(
            (summary.lines, summary.chain, summary.head),
            (0, Chain::Intact, LineHash::GENESIS)
        );
    }
}

#[test]
fn a_log_is_followed_as_it_grows() {
    let (_folder, path) = filled(2);
    let mut follower = Follower::new(&path);
    let poll = |follower: &mut Follower| {
        let mut numbers = Vec::new();
        let restarted = follower.poll(|row| numbers.push((row.number, row.link))).unwrap();
        (numbers, restarted)
    };
    assert_eq!(poll(&mut follower), (vec![(1, Link::Valid), (2, Link::Valid)], false));
    assert_eq!(poll(&mut follower), (vec![], false));
    audit::append(&path, &event(3), now()).unwrap();
    assert_eq!(poll(&mut follower), (vec![(3, Link::Valid)], false));
    // A line that is not whole yet is waited for.
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"ts\"").unwrap();
    assert_eq!(poll(&mut follower), (vec![], false));
    audit::append(&path, &event(4), now()).unwrap();
    let (rows, _) = poll(&mut follower);
    assert_eq!(rows, [(4, Link::Broken), (5, Link::NewSegment), (6, Link::Valid)]);
    assert_eq!(*follower.summary(), audit::read(&path, None).unwrap().summary);
    fs::remove_file(&path).unwrap();
    assert_eq!(poll(&mut follower), (vec![], true));
    audit::append(&path, &event(5), now()).unwrap();
    assert_eq!(poll(&mut follower), (vec![(1, Link::Valid)], false));
}
