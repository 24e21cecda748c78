//! The rows of the reference's weaknesses that concern the engine, each with the better behaviour.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wardkeep_evidence::record::Principal;
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::monitor::{Monitor, Who};

use super::{AGENT, Stage, user};

fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}

/// Row 15: an append reads the whole log.
#[test]
fn row_15_a_decision_costs_the_same_after_many() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let hundred = |monitor: &Monitor| {
        let begin = thread_time();
        for _ in 0..100 {
            let _ = monitor.on_tool_call(&who, "shell", "{\"command\":\"ls -l\"}").unwrap();
        }
        thread_time() - begin
    };
    hundred(&monitor);
    let early = (0..3).map(|_| hundred(&monitor)).min().unwrap();
    for _ in 0..20 {
        hundred(&monitor);
    }
    let late = (0..3).map(|_| hundred(&monitor)).min().unwrap();
    assert!(late < early * 3, "{early:?}, then {late:?}");
}

/// Row 16: no lock; most concurrent appends fail and the log is ruined.
#[test]
fn row_16_threads_do_not_get_in_each_others_way() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (monitor, work) = (&monitor, &work);
            scope.spawn(move || {
                let session = format!("claude:{}", thread % 2);
                let who = Who::new(AGENT, &session, work, Principal::User);
                for _ in 0..50 {
                    let _ = monitor.on_message_input(&who, "Good morning!").unwrap();
                }
            });
        }
    });
    let records = stage.records();
    let kinds: Vec<String> = records.iter().map(|record| record.kind.to_string()).collect();
    let messages = kinds.iter().filter(|kind| *kind == "SessionMessage").count();
    assert_eq!(messages, 200, "{kinds:?}");
}

/// Row 17: a torn last line bricks everything; row 18: a record without its entry.
#[test]
fn rows_17_and_18_a_torn_line_stops_nothing() {
    use std::io::Write as _;
    let stage = Stage::new();
    let work = stage.work();
    let who = user(&work);
    let before = stage.open().on_message_input(&who, "Good morning!").unwrap();
    let journal = stage.state().join("journal");
    let segment = std::fs::read_dir(&journal)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(segment).unwrap();
    file.write_all(b"{\"entry\":{\"idx\":1,\"rec").unwrap();
    let after = stage.open().on_message_input(&who, "Are you there?").unwrap();
    assert!(after.is_allowed());
    let ids: Vec<_> = stage.records().iter().map(|record| record.id).collect();
    assert!(ids.contains(&before.record) && ids.contains(&after.record));
}

/// Row 20: taint is whatever the caller says.
#[test]
fn row_20_taint_is_looked_up() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let web = user(&work).on_behalf_of(Principal::Web);
    let page = monitor.on_tool_result(&web, "fetch", None, "A page about boats.").unwrap();
    let parents = [page.record];
    let child = user(&work).after(&parents);
    let write = monitor.on_file_write(&child, Path::new("MEMORY.md"), b"Boats float.").unwrap();
    assert_eq!((write.verdict, write.rule.as_str()), (Verdict::Deny, "mi-deny-tainted"));
}

/// Row 21: a tainted user may change the control plane.
#[test]
fn row_21_a_suspect_user_changes_nothing() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work).tainted(Taint::INJECTION_SUSPECT);
    let change = monitor.on_control_plane_change(&who, "tools.allow", "*").unwrap();
    assert_eq!((change.verdict, change.rule.as_str()), (Verdict::Deny, "cpi-deny-tainted"));
}

/// Row 28: a memory file is known by its exact name only.
#[test]
fn row_28_a_memory_file_is_known_by_what_it_is() {
    let stage = Stage::new();
    let path = stage.put("MEMORY.md", "x");
    std::fs::hard_link(&path, stage.work().join("notes.txt")).unwrap();
    std::os::unix::fs::symlink("MEMORY.md", stage.work().join("link.txt")).unwrap();
    stage.put("elsewhere/MEMORY.md", "of another project");
    let (monitor, work) = (stage.open(), stage.work());
    let web = user(&work).on_behalf_of(Principal::Web);
    for name in ["memory.md", "Memory.MD", "notes.txt", "link.txt", "memory/a/b.md", "USER.md"] {
        let write = monitor.on_file_write(&web, Path::new(name), b"x").unwrap();
        assert_eq!(write.verdict, Verdict::Deny, "{name}: {write:?}");
    }
    let other = monitor.on_file_write(&web, Path::new("elsewhere/MEMORY.md"), b"x").unwrap();
    assert_ne!(other.rule, "mi-deny-untrusted-principal", "a name alone is not memory");
}

/// Row 29: the file guard knows exact names only, and some that are none of its business.
#[test]
fn row_29_secret_files_are_known_by_pattern() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let skill = user(&work).on_behalf_of(Principal::Skill);
    let tool = user(&work).on_behalf_of(Principal::Tool);
    for name in ["prod.pem", "tls.key", "app.secret", "/proc/self/environ", "/root/.ssh/id_rsa"] {
        for who in [&skill, &tool] {
            let read = monitor.on_file_read(who, Path::new(name)).unwrap();
            assert_eq!(read.verdict, Verdict::Deny, "{name}: {read:?}");
        }
    }
    let token = monitor.on_file_read(&skill, Path::new("my_token.txt")).unwrap();
    assert!(token.taint.contains(Taint::SECRET_RISK), "{token:?}");
    for name in ["config.json", "/home/u/.sshfoo"] {
        let read = monitor.on_file_read(&skill, Path::new(name)).unwrap();
        assert!(read.is_allowed(), "{name}: {read:?}");
    }
}

/// Row 32: only identifiers and known strings are guarded, not what the prompt says.
#[test]
fn row_32_the_prompts_sentences_are_guarded() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let prompt = "You help the guests of a small hotel. Never mention that the pool is closed on Mondays, \
                  because the manager wants to tell them in person when they arrive at the desk.";
    monitor.on_system_prompt_available(&who, prompt, None).unwrap();
    let reply = "I was asked to never mention that the pool is closed on Mondays, because the manager \
                 wants to tell them in person when they arrive at the desk.";
    let outcome = monitor.on_message_output(&who, reply, None).unwrap();
    assert!(!outcome.is_allowed(), "{outcome:?}");
}

/// Row 33: everything is a process-wide singleton.
#[test]
fn row_33_many_monitors_live_in_one_process() {
    let (one, other) = (Stage::new(), Stage::new());
    let (first, second) = (one.open(), other.open());
    let work = (one.work(), other.work());
    let web = user(&work.0).on_behalf_of(Principal::Web);
    let _ = first.on_tool_result(&web, "fetch", None, "A page.").unwrap();
    let here = first.on_tool_call(&user(&work.0), "shell", "{}").unwrap();
    let there = second.on_tool_call(&user(&work.1), "shell", "{}").unwrap();
    assert!(here.taint.contains(Taint::WEB_DERIVED));
    assert!(there.taint.is_empty());
    assert_eq!(other.records().len(), 1);
}
