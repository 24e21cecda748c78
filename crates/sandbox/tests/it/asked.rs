//! The owner is asked about protected names that are not there yet.

use crate::lab::{Lab, users};

/// Runs a script and gives the questions apart.
fn run(lab: &Lab, answers: &str, script: &str) -> (i32, String, Vec<String>) {
    let variables = [("WARDKEEP_TEST_ANSWERS", answers), ("WARDKEEP_TEST_TELL", "1")];
    let (code, out) = lab.run_with(script, &variables);
    let questions = out.lines().filter_map(|line| line.strip_prefix("denied: asked "));
    let questions = questions.map(str::to_owned).collect();
    (code, out, questions)
}

#[test]
fn a_name_is_made_where_the_owner_says_so() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "mkdir -p .github/workflows .vscode
            echo one > .github/workflows/ci.yml && echo two >> .github/workflows/ci.yml || exit 1
            echo x > t && mv t .vscode/tasks.json || exit 2
            cat .github/workflows/ci.yml; echo y > .envrc; echo after";
        let answers = ".github/workflows=session,.vscode=once,tasks.json=once";
        let (code, out, questions) = run(&lab, answers, script);
        assert_eq!(code, 0, "{out}");
        assert!(out.contains("one\ntwo\nafter"), "{out}");
        assert!(lab.at("ws/.vscode/tasks.json").exists() && !lab.at("ws/.envrc").exists());
        // What is in the first folder needs no other word, what is in the second does.
        assert_eq!(questions.len(), 4, "{out}");
        assert!(questions[0].contains("/.github/workflows (`"), "{questions:?}");
        // What was refused is told, what was allowed is not.
        let told: Vec<&str> = out.lines().filter(|line| line.contains("denied: Name")).collect();
        assert!(told.len() == 1 && told[0].contains(".envrc (`.envrc`"), "{out}");
    }
}

#[test]
fn once_is_once() {
    let lab = Lab::new(users()[0]);
    let script = "echo a > .envrc && echo b > .envrc; cat .envrc; rm .envrc; ls -A";
    let (_, out, questions) = run(&lab, ".envrc=once", script);
    assert_eq!(questions.len(), 2, "{out}");
    // What it made itself it may take away again.
    assert!(out.contains("b\n") && !lab.at("ws/.envrc").exists(), "{out}");
}

#[test]
fn others_go_on_while_one_waits() {
    let lab = Lab::new(users()[0]);
    let script = "(echo x > .envrc) & p=$!
        for i in $(seq 50); do echo $i > file$i; done; echo made
        wait $p && cat .envrc";
    let (code, out, questions) = run(&lab, ".envrc=session", script);
    assert!(code == 0 && questions.len() == 1, "{out}");
    assert!(out.contains("made\nx"), "{out}");
    // Two that want the same wait for the same answer.
    let lab = Lab::new(users()[0]);
    let script = "(echo a > .envrc) & (echo a > .envrc) & wait; cat .envrc";
    let (_, out, questions) = run(&lab, ".envrc=session", script);
    assert_eq!(questions.len(), 1, "{out}");
    assert!(out.starts_with("a\n"), "{out}");
}

#[test]
fn whoever_stops_waiting_leaves_nothing() {
    let lab = Lab::new(users()[0]);
    let script =
        "for i in $(seq 80); do timeout 0.02 bash -c 'echo x > .envrc'; done; echo done; exit 4";
    let (code, out, _) = run(&lab, ".envrc=never", script);
    assert!(code == 4 && out.contains("done"), "{out}");
    assert!(!lab.at("ws/.envrc").exists());
    // A program that ends while another part of it waits is not waited for.
    let (code, out, _) = run(&lab, ".envrc=never", "(echo x > .envrc) & sleep 0.1; exit 5");
    assert_eq!(code, 5, "{out}");
    assert!(!lab.at("ws/.envrc").exists());
}

#[test]
fn what_executes_or_leads_elsewhere_is_not_asked_about() {
    for uid in users() {
        let lab = Lab::new(uid);
        let config = std::fs::read_to_string(lab.at("ws/.git/config")).unwrap();
        let script = "echo x > .git/hooks/pre-commit; echo x > .git/config
            ln -s /etc .vscode; mkdir d; echo x > d/settings.json; mv d .claude
            mkfifo .envrc; echo x > t; ln t .mcp.json; true";
        let every = [".git/hooks/pre-commit", ".git/config", ".claude", ".envrc", ".mcp.json"];
        let answers = every.map(|name| format!("{name}=session")).join(",");
        let (_, out, questions) = run(&lab, &answers, script);
        assert!(questions.is_empty(), "{out}");
        for name in every.iter().filter(|name| **name != ".git/config") {
            assert!(!lab.at("ws").join(name).exists(), "{name}: {out}");
        }
        assert_eq!(std::fs::read_to_string(lab.at("ws/.git/config")).unwrap(), config);
    }
}

#[test]
fn a_word_for_one_name_is_for_no_other() {
    let lab = Lab::new(users()[0]);
    // The path is exchanged while the owner thinks: what is carried out is looked at anew.
    let script = r#"python3 - <<'E'
import ctypes, os, threading, time
libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(b".envrc", 64)
def change():
    while not os.path.exists("asked"): time.sleep(0.01)
    path.value = b".mcp.json"; open("changed", "w")
threading.Thread(target=change, daemon=True).start()
fd = libc.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
print("fd", fd >= 0)
E
ls -A"#;
    let (_, out, questions) = run(&lab, ".envrc=changed session", script);
    assert_eq!(questions.len(), 2, "{out}");
    assert!(out.contains("fd False"), "{out}");
    assert!(!lab.at("ws/.mcp.json").exists() && !lab.at("ws/.envrc").exists(), "{out}");
    // Nor for a folder that brings something along, or a link in its place.
    let script =
        "echo x > .envrc; rm .envrc; ln -s /etc/passwd .envrc; mkdir o; mv o .envrc; ls -A";
    let (_, out, _) = run(&lab, ".envrc=session", script);
    assert!(lab.at("ws/.envrc").symlink_metadata().is_err(), "{out}");
}

#[test]
fn a_yes_for_a_file_is_none_for_a_folder() {
    let lab = Lab::new(users()[0]);
    let script =
        "echo a > .claude; rm .claude; mkdir -p .claude/commands; echo x > .claude/x.json; true";
    let (_, out, questions) = run(&lab, ".claude=session", script);
    // The folder is another question, and then what is in it is none.
    assert_eq!(questions.len(), 2, "{out}");
    let lab = Lab::new(users()[0]);
    let (_, out, questions) = run(&lab, "nothing=once", script);
    assert!(questions.len() == 2 && !lab.at("ws/.claude").exists(), "{out}");
}

#[test]
fn one_more_name_does_not_outlast_the_word() {
    for uid in users() {
        let lab = Lab::new(uid);
        let script = "echo good > .envrc; ln .envrc x; echo e > a; ln a b; mv a .mcp.json; true";
        let (_, out, _) = run(&lab, ".envrc=once,.mcp.json=once", script);
        assert!(lab.at("ws/.envrc").exists() && !lab.at("ws/x").exists(), "{out}");
        assert!(!lab.at("ws/.mcp.json").exists(), "{out}");
        // Nor does that of a new repository's own.
        let script = "git init -q r; ln r/.git/config y; git init -q --bare z; ln z/config y
            echo h > r/CLAUDE.md; ln r/CLAUDE.md y; ln r/.git/hooks/pre-commit.sample y; ls -A
            echo o > r/o; ln r/o fine; ln $(find r/.git -name HEAD) head";
        let (code, out) = lab.run(script);
        assert!(code == 0 && lab.at("ws/fine").exists() && lab.at("ws/head").exists(), "{out}");
        assert!(lab.at("ws/r/CLAUDE.md").exists() && !lab.at("ws/y").exists(), "{out}");
    }
}

#[test]
fn what_is_there_is_not_asked_about_and_two_names_are_asked_about_once_each() {
    let lab = Lab::new(users()[0]);
    std::fs::write(lab.at("ws/AGENTS.md"), "old").unwrap();
    lab.give();
    let (_, out, questions) = run(&lab, "AGENTS.md=session", "echo x > AGENTS.md; true");
    assert!(questions.is_empty(), "{out}");
    let script = "echo a > .envrc; echo b > .mcp.json; python3 - <<'E'
import ctypes
print('exchanged', ctypes.CDLL(None).renameat2(-100, b'.envrc', -100, b'.mcp.json', 2))
E
cat .envrc .mcp.json";
    let (_, out, questions) = run(&lab, ".envrc=once,.mcp.json=once", script);
    assert_eq!(questions.len(), 4, "{out}");
    assert!(out.contains("exchanged 0\nb\na\n"), "{out}");
}

#[test]
fn a_further_name_from_before_is_not_written_to() {
    for uid in users() {
        let lab = Lab::new(uid);
        std::fs::write(lab.at("ws/AGENTS.md"), "old").unwrap();
        std::fs::hard_link(lab.at("ws/AGENTS.md"), lab.at("ws/sub/alias")).unwrap();
        std::fs::write(lab.at("ws/plain"), "old").unwrap();
        std::fs::hard_link(lab.at("ws/plain"), lab.at("ws/sub/other")).unwrap();
        lab.give();
        let script = "echo evil > sub/alias; echo evil >> sub/alias; truncate -s 0 sub/alias
            exec 3< sub/alias; echo evil > /proc/self/fd/3; python3 -c 'open(\"sub/alias\", \"r+\").write(\"evil\")'
            echo new > sub/other; cat sub/alias";
        let (_, out) = lab.run(script);
        assert_eq!(std::fs::read_to_string(lab.at("ws/AGENTS.md")).unwrap(), "old", "{out}");
        assert_eq!(std::fs::read_to_string(lab.at("ws/plain")).unwrap(), "new\n", "{out}");
        assert!(out.contains("old"), "{out}");
    }
}
