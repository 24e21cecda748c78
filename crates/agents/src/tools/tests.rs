use serde_json::json;

use super::*;

fn here() -> Place<'static> {
    Place { directory: Path::new("/w"), home: Some(Path::new("/h")) }
}

fn of(tool: &str, input: &Value) -> Vec<Crossing> {
    crossings(tool, input, here()).unwrap()
}

fn read(path: &str) -> Crossing {
    Crossing::Read { path: path.into() }
}

#[test]
fn known_tools_do_what_they_are_known_for() {
    assert_eq!(of("Read", &json!({"file_path": "/w/a"})), [read("/w/a")]);
    assert_eq!(of("read_file", &json!({"path": "b"})), [read("/w/b")]);
    assert_eq!(of("Grep", &json!({"pattern": "x"})), [read("/w")]);
    let write = of("Write", &json!({"file_path": "SOUL.md", "content": "new"}));
    let expected = Crossing::Write {
        path: "/w/SOUL.md".into(),
        content: "new".into(),
        redirect: Some("file_path".into()),
    };
    assert_eq!(write, [expected]);
    let edit = of("Edit", &json!({"file_path": "a", "old_string": "x", "new_string": "y"}));
    let expected = Crossing::Write { path: "/w/a".into(), content: "y".into(), redirect: None };
    assert_eq!(edit, [expected]);
    let command = Crossing::Command { text: "cat .env".into(), directory: "/w".into() };
    assert_eq!(of("Bash", &json!({"command": "cat .env"})), [command]);
    assert_eq!(of("TodoWrite", &json!({"todos": []})), []);
}

#[test]
fn home_is_where_a_tool_may_look_for_it() {
    let found = of("Read", &json!({"file_path": "~/.ssh/id_rsa"}));
    assert_eq!(found, [read("/w/~/.ssh/id_rsa"), read("/h/.ssh/id_rsa")]);
    assert_eq!(of("Read", &json!({"file_path": "~other/x"})), [read("/w/~other/x")]);
    assert_eq!(of("Read", &json!({"file_path": "file:///etc/passwd"})), [read("/etc/passwd")]);
}

#[test]
fn what_is_typed_is_a_command() {
    let command = Crossing::Command { text: "rm SOUL.md\n".into(), directory: "/w".into() };
    assert_eq!(of("write_stdin", &json!({"session_id": 1, "chars": "rm SOUL.md\n"})), [command]);
    assert_eq!(of("process", &json!({"action": "poll"})), []);
}

#[test]
fn a_list_of_words_is_a_command_and_so_is_each_text_in_it() {
    let found = of("shell", &json!({"command": ["bash", "-lc", "cat .env"]}));
    let texts: Vec<&str> = found
        .iter()
        .filter_map(|one| match one {
            Crossing::Command { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["'bash' '-lc' 'cat .env'", "cat .env"]);
    let found = of("run_commands", &json!({"commands": ["ls", "rm SOUL.md"]}));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn what_a_known_tool_needs_and_lacks_is_malformed() {
    for (tool, input) in [
        ("Bash", json!({})),
        ("Bash", json!({"command": 1})),
        ("Bash", json!({"command": ["a", 1]})),
        ("Read", json!({})),
        ("Read", json!({"file_path": {}})),
        ("Read", json!({"file_path": ""})),
        ("Read", json!({"file_path": "a\u{0}b"})),
        ("Write", json!({"content": "x"})),
        ("apply_patch", json!({"command": "nothing"})),
        ("apply_patch", json!({})),
        ("WebFetch", json!({"prompt": "no address"})),
        ("Read", json!([])),
    ] {
        let read = crossings(tool, &input, here());
        assert!(read.is_err(), "{tool} {input}");
    }
}

#[test]
fn patches_name_their_files() {
    let patch = "*** Begin Patch\n*** Update File: SOUL.md\n@@\n-a\n+b\n*** Delete File: c\n\
                 *** Update File: d\n*** Move to: e\n*** End Patch\n";
    let found = of("apply_patch", &json!({ "command": patch }));
    let soul = Crossing::Write { path: "/w/SOUL.md".into(), content: "b\n".into(), redirect: None };
    assert!(found.contains(&soul), "{found:?}");
    assert!(found.contains(&Crossing::Delete { path: "/w/c".into() }), "{found:?}");
    assert!(
        found.contains(&Crossing::Rename { from: "/w/d".into(), to: "/w/e".into() }),
        "{found:?}"
    );
    let unified = "--- a/SOUL.md\n+++ b/SOUL.md\n@@ -1 +1 @@\n-a\n+b\n";
    let found = of("patch", &json!({ "patchText": unified }));
    assert!(found.contains(&soul), "{found:?}");
}

#[test]
fn tools_of_servers_are_read_at_their_worst() {
    let found = of("mcp__fs__write_file", &json!({"path": "SOUL.md", "content": "x"}));
    assert!(found.iter().any(|one| matches!(one, Crossing::Write { .. })), "{found:?}");
    let found = of("mcp__fs__frobnicate", &json!({"what": {"filePath": "../x"}}));
    assert!(found.iter().any(|one| matches!(one, Crossing::Write { .. })), "{found:?}");
    assert_eq!(of("mcp__fs__read_file", &json!({"path": "SOUL.md"})), [read("/w/SOUL.md")]);
    let found = of("mcp__x__do", &json!({"cmd": "curl evil.example"}));
    assert!(matches!(found[..], [Crossing::Command { .. }]), "{found:?}");
    let found = of("mcp__x__post", &json!({"body": "see https://evil.example/a, now"}));
    assert!(
        found.iter().any(|one| matches!(
            one,
            Crossing::Request { url, method: "POST", .. } if url == "https://evil.example/a"
        )),
        "{found:?}"
    );
    // A server's tool is not the agent's own, whatever it is called.
    let found = of("mcp__x__todo_write", &json!({"path": "SOUL.md"}));
    assert!(found.iter().any(|one| matches!(one, Crossing::Write { .. })), "{found:?}");
}
