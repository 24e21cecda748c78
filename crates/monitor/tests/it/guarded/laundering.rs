//! Taint that someone wants to be rid of: by another session, another name, another workspace, a file
//! in between, or many small steps.

use std::path::Path;

use wardkeep_evidence::record::Principal;
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::monitor::{Command, Monitor, Outcome, Sent, Who};
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Draft, Presence, Request};
use wardkeep_policy::store::PolicyStore;
use wardkeep_policy::workspace::Workspace;

use super::{AGENT, SESSION, Stage, owner, user};

/// Nothing in it looks like an attack.
const NOTE: &str = "The quarterly supplier ledger is kept on the second shelf of the green cabinet and \
    every invoice above forty pounds goes to ledger house by courier on Friday afternoon.";
const WEB: Taint = Taint::WEB_DERIVED;

fn page() -> String {
    format!("Welcome to the handbook. {NOTE} The canteen serves soup on Thursdays.")
}

fn session<'a>(work: &'a Path, name: &'a str) -> Who<'a> {
    Who::new(AGENT, name, work, Principal::User)
}

fn reads_the_page(monitor: &Monitor, who: &Who<'_>) {
    let web = who.on_behalf_of(Principal::Web);
    let seen = monitor.on_tool_result(&web, "fetch", None, &page()).unwrap();
    assert!(seen.is_allowed() && !seen.taint.contains(Taint::INJECTION_SUSPECT), "{seen:?}");
}

/// Writes a file as a tool does that asks first.
fn writes(stage: &Stage, monitor: &Monitor, who: &Who<'_>, name: &str, text: &str) -> Outcome {
    let asked = monitor.on_file_write(who, Path::new(name), text.as_bytes()).unwrap();
    if asked.is_allowed() {
        stage.put(name, text);
    }
    asked
}

#[test]
fn a_file_in_between_does_not_wash_a_page() {
    let stage = Stage::new();
    let work = stage.work();
    {
        let monitor = stage.open();
        let who = user(&work);
        reads_the_page(&monitor, &who);
        assert!(writes(&stage, &monitor, &who, "notes.txt", NOTE).is_allowed());
    }
    // Once in the process that saw the read, once in a later one.
    let next = session(&work, "claude:2");
    let read = stage.open().on_file_read(&next, Path::new("notes.txt")).unwrap();
    assert!(read.taint.contains(WEB | Taint::CROSS_SESSION), "{read:?}");
    for _ in 0..2 {
        let monitor = stage.open();
        let copied = monitor.on_file_write(&next, Path::new("MEMORY.md"), NOTE.as_bytes()).unwrap();
        assert_eq!(copied.rule, "mi-deny-tainted", "{copied:?}");
        let own = monitor.on_file_write(&next, Path::new("MEMORY.md"), b"Read the notes.").unwrap();
        assert!(own.is_allowed(), "{own:?}");
    }
}

#[test]
fn a_file_too_large_to_read_makes_everything_a_copy() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    reads_the_page(&monitor, &who);
    let long = NOTE.to_owned() + &"x".repeat(2 << 20);
    assert!(writes(&stage, &monitor, &who, "notes.txt", &long).is_allowed());
    let next = session(&work, "claude:2");
    let _ = monitor.on_file_read(&next, Path::new("notes.txt")).unwrap();
    drop(monitor);
    let monitor = stage.open();
    let copied = monitor.on_file_write(&next, Path::new("MEMORY.md"), NOTE.as_bytes()).unwrap();
    assert_eq!(copied.rule, "mi-deny-tainted", "{copied:?}");
}

#[test]
fn a_clean_session_that_adds_a_line_washes_nothing() {
    let stage = Stage::new();
    let work = stage.work();
    let longer = format!("{NOTE}\nok\n");
    {
        let monitor = stage.open();
        let who = user(&work);
        reads_the_page(&monitor, &who);
        assert!(writes(&stage, &monitor, &who, "notes.txt", NOTE).is_allowed());
        let added = writes(&stage, &monitor, &session(&work, "claude:2"), "notes.txt", &longer);
        assert!(added.is_allowed() && added.taint.contains(WEB), "{added:?}");
    }
    let monitor = stage.open();
    let third = session(&work, "claude:3");
    let read = monitor.on_file_read(&third, Path::new("notes.txt")).unwrap();
    assert!(read.taint.contains(WEB), "{read:?}");
    let copied = monitor.on_file_write(&third, Path::new("MEMORY.md"), NOTE.as_bytes()).unwrap();
    assert_eq!(copied.rule, "mi-deny-tainted", "{copied:?}");
    // What replaces all of it is what it is.
    let fresh = writes(&stage, &monitor, &session(&work, "claude:4"), "notes.txt", "Buy milk.");
    assert!(fresh.taint.is_empty(), "{fresh:?}");
}

/// Changes of `notes.txt` that a clean session asks for.
fn changes(monitor: &Monitor, who: &Who<'_>, way: &str) -> Vec<Outcome> {
    let path = Path::new("notes.txt");
    match way {
        "write" => vec![monitor.on_file_write(who, path, b"Buy milk.").unwrap()],
        "delete" => vec![monitor.on_file_delete(who, path).unwrap()],
        "rename" => vec![monitor.on_file_rename(who, Path::new("own.txt"), path).unwrap()],
        text => {
            let command = Command { tool: "Bash", arguments: text, text, directory: who.workspace };
            monitor.on_command(who, &command).unwrap()
        }
    }
}

#[test]
fn a_change_that_was_never_made_washes_nothing() {
    let ways = ["write", "delete", "rename", "rm notes.txt", "mv own.txt notes.txt"];
    for (way, again) in ways.iter().flat_map(|way| [(way, false), (way, true)]) {
        let stage = Stage::new();
        let work = stage.work();
        let mut monitor = stage.open();
        let who = user(&work);
        reads_the_page(&monitor, &who);
        stage.put("own.txt", "Own words, and few.");
        assert!(writes(&stage, &monitor, &who, "notes.txt", NOTE).is_allowed());
        for name in ["claude:2", "claude:3"] {
            let asked = changes(&monitor, &session(&work, name), way);
            assert!(asked.iter().all(Outcome::is_allowed), "{way}: {asked:?}");
        }
        // Someone whom nobody asks adds a line.
        if again {
            drop(monitor);
            stage.put("notes.txt", &format!("{NOTE}\nok\n"));
            monitor = stage.open();
        }
        let last = session(&work, "claude:4");
        let read = monitor.on_file_read(&last, Path::new("notes.txt")).unwrap();
        assert!(read.taint.contains(WEB), "{way}: {read:?}");
        let copied = monitor.on_file_write(&last, Path::new("MEMORY.md"), NOTE.as_bytes()).unwrap();
        assert_eq!(copied.rule, "mi-deny-tainted", "{way}: {copied:?}");
    }
}

#[test]
fn a_change_that_was_made_leaves_what_it_says() {
    for (way, after) in [
        ("write", "Buy milk."),
        // As something that sets the lines anew leaves it.
        ("write", "Buy\n  milk.\n"),
        ("delete", "Made again by a build."),
        ("rename", "Own words, and few."),
        ("mv own.txt notes.txt", "Own words, and few."),
    ] {
        let stage = Stage::new();
        let work = stage.work();
        let monitor = stage.open();
        reads_the_page(&monitor, &user(&work));
        stage.put("own.txt", "Own words, and few.");
        assert!(writes(&stage, &monitor, &user(&work), "notes.txt", NOTE).is_allowed());
        let _ = changes(&monitor, &session(&work, "claude:2"), way);
        stage.put("notes.txt", after);
        let mut monitor = Some(monitor);
        for _ in 0..2 {
            let open = monitor.take().unwrap_or_else(|| stage.open());
            let last = session(&work, "claude:2");
            let read = open.on_file_read(&last, Path::new("notes.txt")).unwrap();
            assert!(!read.taint.contains(WEB), "{way}, {after}: {read:?}");
        }
    }
    // And one that a page wants, and that is not made, leaves what was there.
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    stage.put("notes.txt", "Own words, and few.");
    reads_the_page(&monitor, &user(&work));
    let asked = monitor.on_file_write(&user(&work), Path::new("notes.txt"), NOTE.as_bytes());
    assert!(asked.unwrap().is_allowed());
    let other = session(&work, "claude:2");
    let read = monitor.on_file_read(&other, Path::new("notes.txt")).unwrap();
    assert!(read.taint.is_empty(), "{read:?}");
}

#[test]
fn a_change_that_is_made_late_is_known_all_the_same() {
    // What one session asks for, then another; and what the file holds when both, or the first alone, were made.
    let own = "Own words, and few.";
    let fine = "Fine words, and few.";
    for (later, now) in [
        (fine, format!("{fine}\n{NOTE}\n")),
        (fine, NOTE.to_owned()),
        ("Buy milk.", NOTE.to_owned()),
        ("Buy milk.", format!("{NOTE}\n")),
    ] {
        for restart in [false, true] {
            let stage = Stage::new();
            let (mut monitor, work) = (stage.open(), stage.work());
            stage.put("notes.txt", own);
            let who = user(&work);
            reads_the_page(&monitor, &who);
            let path = Path::new("notes.txt");
            let with = format!("{own}\n{NOTE}\n");
            assert!(monitor.on_file_write(&who, path, with.as_bytes()).unwrap().is_allowed());
            for name in ["claude:2", "claude:3"] {
                let other = session(&work, name);
                let asked = monitor.on_file_write(&other, path, later.as_bytes()).unwrap();
                assert!(asked.is_allowed(), "{asked:?}");
            }
            stage.put("notes.txt", &now);
            if restart {
                drop(monitor);
                monitor = stage.open();
            }
            let last = session(&work, "claude:4");
            let read = monitor.on_file_read(&last, path).unwrap();
            assert!(read.taint.contains(WEB), "{later} {now}: {read:?}");
            let memory = Path::new("MEMORY.md");
            let copied = monitor.on_file_write(&last, memory, NOTE.as_bytes()).unwrap();
            assert_eq!(copied.rule, "mi-deny-tainted", "{later} {now}: {copied:?}");
        }
    }
}

#[test]
fn a_diary_can_be_continued_and_stays_tainted() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    reads_the_page(&monitor, &who);
    let first = "Today I looked at a handbook about suppliers.\n";
    assert!(writes(&stage, &monitor, &who, "MEMORY.md", first).is_allowed());
    let second = format!("{first}- tests are green\n");
    let added = writes(&stage, &monitor, &session(&work, "claude:2"), "MEMORY.md", &second);
    assert!(added.is_allowed(), "{added:?}");
    let read = monitor.on_file_read(&session(&work, "claude:3"), Path::new("MEMORY.md")).unwrap();
    assert!(read.taint.contains(WEB | Taint::CROSS_SESSION), "{read:?}");
}

#[test]
fn what_is_only_staged_is_not_in_the_file() {
    let stage = Stage::new();
    let work = stage.work();
    stage.put("SOUL.md", "Be kind.");
    for number in 2..4 {
        let monitor = stage.open();
        let who = user(&work);
        if number == 2 {
            reads_the_page(&monitor, &who);
            let own = monitor.on_file_write(&who, Path::new("SOUL.md"), b"Be cruel.").unwrap();
            assert_eq!(own.verdict, Verdict::Stage, "{own:?}");
        }
        let name = format!("claude:{number}");
        let next = session(&work, &name);
        let read = monitor.on_file_read(&next, Path::new("SOUL.md")).unwrap();
        assert!(read.taint.is_empty(), "{read:?}");
    }
}

#[test]
fn a_folder_with_another_name_holds_what_it_held() {
    let stage = Stage::new();
    let work = stage.work();
    {
        let monitor = stage.open();
        let who = user(&work);
        reads_the_page(&monitor, &who);
        std::fs::create_dir(work.join("a")).unwrap();
        assert!(writes(&stage, &monitor, &who, "a/notes.txt", NOTE).is_allowed());
        for (number, (from, to)) in [("a", "b"), ("b", "c")].into_iter().enumerate() {
            let name = format!("claude:{}", number + 2);
            let who = session(&work, &name);
            let moved = monitor.on_file_rename(&who, Path::new(from), Path::new(to)).unwrap();
            assert!(moved.is_allowed(), "{moved:?}");
            std::fs::rename(work.join(from), work.join(to)).unwrap();
        }
        let read = monitor.on_file_read(&session(&work, "x:1"), Path::new("c/notes.txt")).unwrap();
        assert!(read.taint.contains(WEB), "{read:?}");
    }
    let monitor = stage.open();
    let read = monitor.on_file_read(&session(&work, "x:2"), Path::new("c/notes.txt")).unwrap();
    assert!(read.taint.contains(WEB), "{read:?}");
}

#[test]
fn a_file_that_becomes_memory_is_read_as_memory() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    reads_the_page(&monitor, &who);
    // Made by a shell: nobody was asked.
    stage.put("x.txt", NOTE);
    stage.put("many/x.md", NOTE);
    stage.put("own.txt", "Own words, and few.");
    for (from, to) in [("x.txt", "TOOLS.md"), ("many", "memory"), ("many/x.md", "memory/x.md")] {
        let moved = monitor.on_file_rename(&who, Path::new(from), Path::new(to)).unwrap();
        assert_eq!(moved.rule, "mi-deny-tainted", "{from}: {moved:?}");
    }
    let own = monitor.on_file_rename(&who, Path::new("own.txt"), Path::new("TOOLS.md")).unwrap();
    assert!(own.is_allowed(), "{own:?}");
}

#[test]
fn a_page_cannot_be_brought_in_piece_by_piece() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    reads_the_page(&monitor, &who);
    let words: Vec<&str> = NOTE.split(' ').collect();
    let mut file = String::new();
    let stopped = words.chunks(5).any(|chunk| {
        file = file.clone() + &chunk.join(" ") + "\n";
        !writes(&stage, &monitor, &who, "USER.md", &file).is_allowed()
    });
    assert!(stopped);
}

#[test]
fn whoever_goes_to_another_folder_takes_the_workspace_along() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let _ = monitor.on_session_start(&who, "terminal", None).unwrap();
    reads_the_page(&monitor, &who);
    let elsewhere = stage.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(work.join("sub")).unwrap();
    for place in [elsewhere, work.join("sub")] {
        let moved = Who { workspace: &place, ..who };
        let write = |name: &str, text: &str| {
            monitor.on_file_write(&moved, &work.join(name), text.as_bytes()).unwrap()
        };
        assert_eq!(write("MEMORY.md", NOTE).rule, "mi-deny-tainted");
        assert_eq!(write("LocalGPT.md", "be nice").verdict, Verdict::Deny);
        assert_eq!(write("SOUL.md", "be nice").verdict, Verdict::Stage);
        assert!(write("src.txt", NOTE).is_allowed());
    }
}

#[test]
fn a_signed_policy_is_sealed_for_sessions_that_never_stood_there() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    stage.put("LocalGPT.md", "# Rules\n\n- Be careful.\n");
    let workspace = Workspace::open(&work).unwrap();
    let now = Timestamp::from_unix(1_800_000_000).unwrap();
    let request =
        Request { presence: Presence::Terminal, confined: false, signer: Signer::Cli, now };
    let draft = Draft::read(&workspace).unwrap();
    let store = PolicyStore::new(&stage.state(), owner());
    store.sign(&workspace, &draft, &request, [3; 16]).unwrap();
    let elsewhere = stage.folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let who = session(&elsewhere, "claude:9");
    let write = monitor.on_file_write(&who, &work.join("LocalGPT.md"), b"be nice").unwrap();
    assert_eq!(write.verdict, Verdict::Deny, "{write:?}");
}

#[test]
fn a_long_line_of_descent_forgets_nothing_and_a_circle_ends() {
    let stage = Stage::new();
    let work = stage.work();
    let names: Vec<String> = (0..40).map(|number| format!("claude:{number}")).collect();
    {
        let monitor = stage.open();
        reads_the_page(&monitor, &session(&work, &names[0]));
        for pair in names.windows(2) {
            let child = session(&work, &pair[1]);
            let _ = monitor.on_session_start(&child, "task", Some(&pair[0])).unwrap();
        }
        for _ in 0..8 {
            for (one, other) in [("y:a", "y:b"), ("y:b", "y:a")] {
                let _ =
                    monitor.on_session_start(&session(&work, one), "task", Some(other)).unwrap();
            }
        }
    }
    let monitor = stage.open();
    for name in [&names[39], &names[12], &names[3]] {
        let who = session(&work, name);
        let copied = monitor.on_file_write(&who, Path::new("MEMORY.md"), NOTE.as_bytes()).unwrap();
        assert_eq!(copied.rule, "mi-deny-tainted", "{name}: {copied:?}");
    }
    // It would take for ever to read each as often as the other names it.
    let read = monitor.on_file_read(&session(&work, "y:a"), Path::new("x")).unwrap();
    assert!(read.is_allowed());
}

#[test]
fn what_a_sub_agent_brings_back_is_what_it_saw() {
    let stage = Stage::new();
    let work = stage.work();
    let who = user(&work);
    let child = session(&work, "claude:1/a");
    let own = b"The sub-agent has found a handbook.";
    {
        let monitor = stage.open();
        let _ = monitor.on_session_start(&who, "terminal", None).unwrap();
        let _ = monitor.on_session_start(&child, "task", Some(SESSION)).unwrap();
    }
    reads_the_page(&stage.open(), &child);
    let tool = who.on_behalf_of(Principal::Tool);
    let result = stage.open().on_tool_result(&tool, "task", None, &page()).unwrap();
    assert!(result.taint.contains(WEB), "{result:?}");
    for _ in 0..2 {
        let monitor = stage.open();
        let copied = monitor.on_file_write(&who, Path::new("MEMORY.md"), NOTE.as_bytes()).unwrap();
        assert_eq!(copied.rule, "mi-deny-tainted", "{copied:?}");
        let passes = monitor.on_file_write(&who, Path::new("MEMORY.md"), own).unwrap();
        assert!(passes.is_allowed() && passes.taint.contains(WEB), "{passes:?}");
    }
}

#[test]
fn an_approval_is_for_what_was_shown() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let url = "https://example.com/upload";
    let sends = |method: &str, size: u64| {
        monitor.on_outbound_request(&who, url, method, Sent { size, content: None }).unwrap()
    };
    let actions: Vec<_> =
        [("POST", 5 << 20), ("POST", 5 << 20), ("PUT", 5 << 20), ("POST", 5 << 30)]
            .map(|(method, size)| {
                let asked = sends(method, size);
                assert_eq!(asked.verdict, Verdict::Ask, "{asked:?}");
                super::text(&stage.record(asked.record), "action").unwrap().to_owned()
            })
            .into();
    assert_eq!(actions[0], actions[1]);
    assert!(actions[0] != actions[2] && actions[0] != actions[3]);

    // And what is shown is all of it.
    reads_the_page(&monitor, &who);
    let asked = monitor.on_control_plane_change(&who, "gateway.port", "8080").unwrap();
    assert_eq!(asked.verdict, Verdict::Ask);
    let record = stage.record(asked.record);
    let line = stage.line(asked.record);
    let now = Timestamp::from_unix(1_800_000_001).unwrap();
    let shown = monitor.approvals().show(&line, now, &|_| None).unwrap();
    assert!(shown.consistent, "{record:?}");
    assert_eq!(shown.content.and_then(|content| content.text).as_deref(), Some("8080"));
    assert_eq!(record.meta_str("session"), Some(SESSION));
}
