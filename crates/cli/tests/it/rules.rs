//! `wardkeep rules`

use std::fs;
use std::path::Path;
use wardkeep_evidence::record::{Principal, RecordType};

use serde_json::{Value, json};

use crate::shared::{Ran, run, succeed};

pub(crate) const CASES: &str = r#"
[[case]]
name = "a page writes memory"
principal = "WEB"
surface = "DurableMemory"
act = "write"
subject = "/w/MEMORY.md"
direct = ["WEB_DERIVED"]
expect = "deny"
rule = "mi-deny-tainted"
"#;

const RULES: &str = r#"
@id("no-bash")
@reason("no shell here")
forbid (principal, action == Action::"call", resource)
when { context.subject == "Bash" };
"#;

/// A folder with a key and a state directory `s`.
fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("ws")).unwrap();
    succeed(folder.path(), &["init", "ws", "--state-dir", "s"]);
    folder
}

fn ask(folder: &Path, arguments: &[&str]) -> Ran {
    run(folder, &[&["rules"], arguments, &["--state-dir", "s"]].concat())
}

fn parsed(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn check_shows_line_and_caret() {
    let scene = scene();
    let at = scene.path();
    assert_eq!(ask(at, &["check"]).stdout, "no rules of your own\n");
    fs::write(at.join("s/rules.cedar"), "\npermit (principal, action, resource);\n").unwrap();
    let ran = ask(at, &["check"]);
    assert_eq!(ran.code, 1);
    let expected = "rules.cedar:2:1: an owner's rule cannot permit\n  \
                    | permit (principal, action, resource);\n  \
                    | ^^^^^^\n  \
                    help: what no rule forbids is allowed; write `forbid`, or remove a rule of your own\n";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    assert!(ran.stderr.contains("rules-ask-broken"), "{}", ran.stderr);
    fs::write(at.join("own.cedar"), RULES).unwrap();
    assert_eq!(ask(at, &["check", "own.cedar"]).stdout, "1 rule: sound\n");
    let hostile = "// \u{1b}[31m\n@id(\"a\u{1b}[31m\") forbid (principal, action, resource);";
    fs::write(at.join("own.cedar"), hostile).unwrap();
    let ran = ask(at, &["check", "own.cedar"]);
    assert!(ran.code == 1 && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    assert_eq!(ask(at, &["check", "nowhere"]).code, 4);
}

#[test]
fn what_was_signed_and_is_changed_is_said() {
    let scene = scene();
    let at = scene.path();
    fs::write(at.join("s/rules.cedar"), RULES).unwrap();
    let ran = ask(at, &["check"]);
    assert!(ran.code == 0 && ran.stderr.contains("not signed"), "{ran:?}");
    succeed(at, &["config", "sign", "--yes", "--state-dir", "s"]);
    assert_eq!(ask(at, &["check"]).stderr, "");
    fs::write(at.join("s/rules.cedar"), "// nothing").unwrap();
    let ran = ask(at, &["check", "--json"]);
    let answer = parsed(&ran);
    assert_eq!((ran.code, &answer["state"], &answer["ok"]), (11, &json!("changed"), &json!(false)));
    let call = [
        "explain",
        "--principal",
        "USER",
        "--surface",
        "ConversationIO",
        "--act",
        "call",
        "--json",
    ];
    assert_eq!(parsed(&ask(at, &call))["rule"], "rules-ask-changed");
}

#[test]
fn explain_names_the_rule_that_decided_and_what_was_needed() {
    let scene = scene();
    let at = scene.path();
    fs::write(at.join("s/rules.cedar"), RULES).unwrap();
    let flags = [
        "--principal",
        "USER",
        "--surface",
        "ConversationIO",
        "--act",
        "call",
        "--subject",
        "Bash",
    ];
    let ran = ask(at, &[&["explain"], &flags[..]].concat());
    assert_eq!(ran.code, 0);
    for part in [
        "deny by own:no-bash\n  no shell here\n",
        "needed  the owner changes the rule",
        "rules.cedar says in line 2",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    let facts = json!({"principal": "USER", "surface": "ControlPlane", "act": "change", "subject": "tools",
        "ambient": ["WEB_DERIVED"], "approved": true});
    fs::write(at.join("facts.json"), facts.to_string()).unwrap();
    let answer = parsed(&ask(at, &["explain", "--facts", "facts.json", "--json"]));
    assert_eq!(
        (&answer["verdict"], &answer["rule"]),
        (&json!("allow"), &json!("cpi-allow-authorized"))
    );
    assert_eq!(answer["answered"], json!(["cpi-ask-ambient"]));
    // A word that does not exist, a fact that does not exist, no facts.
    let wrong = ask(at, &["explain", "--principal", "WEB", "--surface", "Files", "--act", "read"]);
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.stderr.contains("there is no surface `Files`\nhint: give one of ControlPlane"),
        "{}",
        wrong.stderr
    );
    fs::write(at.join("facts.json"), "{\"prinzipal\": 1}").unwrap();
    assert_eq!(ask(at, &["explain", "--facts", "facts.json"]).code, 4);
    assert_eq!(ask(at, &["explain"]).code, 1);
}

#[test]
fn explain_reads_a_decision_of_the_journal() {
    let scene = scene();
    let at = scene.path();
    let inline = json!({"kind": "decision", "v": 1, "act": "write", "surface": "DurableMemory",
        "subject": "/w/MEMORY.md", "verdict": "allow", "rule": "mi-allow-authorized", "direct": ["WEB_DERIVED"],
        "ambient": [], "digest": "0".repeat(64),
        "file": {"path": "/w/MEMORY.md", "memory": true, "protection": "watched", "device": 7}});
    let id = crate::prove::decided(&at.join("s"), RecordType::FileWrite, Principal::User, &inline);
    let id = id.to_string();
    let id = id.as_str();
    let answer = parsed(&ask(at, &["explain", id, "--json"]));
    assert_eq!((&answer["verdict"], &answer["rule"]), (&json!("deny"), &json!("mi-deny-tainted")));
    assert_eq!(answer["recorded"]["verdict"], "allow");
    assert_eq!(answer["recorded"]["same_rules"], false);
    assert_eq!(answer["notes"].as_array().map(Vec::len), Some(3), "{answer}");
    let append =
        ["evidence", "append", "--state-dir", "s", "--type", "FileWrite", "--principal", "USER"];
    let other = succeed(at, &[&append[..], &["--inline", "{}"]].concat());
    let ran = ask(at, &["explain", other.split_whitespace().next().unwrap()]);
    assert!(ran.code == 1 && ran.stderr.contains("is no decision"), "{ran:?}");
}

#[test]
fn test_shows_what_was_expected_and_what_was_found() {
    let scene = scene();
    let at = scene.path();
    fs::create_dir(at.join("s/rules")).unwrap();
    fs::write(at.join("s/rules/cases.toml"), CASES).unwrap();
    let ran = ask(at, &["test"]);
    assert_eq!((ran.code, ran.stdout.lines().last()), (0, Some("1 as expected, 0 not")));
    let wrong = CASES.replace("\"deny\"", "\"allow\"").replace("rule = \"mi-deny-tainted\"", "");
    fs::write(at.join("wrong.toml"), wrong).unwrap();
    let ran = ask(at, &["test", "wrong.toml"]);
    assert_eq!(ran.code, 1);
    for part in [
        "FAIL a page writes memory",
        "- expected",
        "+ found",
        "WEB is not trusted to write `/w/MEMORY.md`",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    for (text, part) in [
        ("[[case]]\nprincipal = 3", "case 1: "),
        ("x = 1", "`x` is not known"),
        ("\n[[case", "line 2"),
        ("", "no [[case]]"),
        ("[[case]]\nname = \"n\"\nexpect = \"no\"", "n: `expect` is `no`"),
        ("[[case]]\nname = \"n\"\nexpect = \"deny\"\nsubjekt = \"x\"", "subjekt"),
    ] {
        fs::write(at.join("wrong.toml"), text).unwrap();
        let ran = ask(at, &["test", "wrong.toml"]);
        assert!(ran.code == 4 && ran.stderr.contains(part), "{part} in {ran:?}");
    }
}

#[test]
fn list_has_the_built_in_rules_and_your_own() {
    let scene = scene();
    let at = scene.path();
    fs::write(at.join("s/rules.cedar"), RULES).unwrap();
    let listed = ask(at, &["list"]).stdout;
    for part in ["cpi-deny-sealed", "default-deny", "own:no-bash", "rules.cedar:2: no shell here"] {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    assert!(ask(at, &["list", "--cedar"]).stdout.contains("@id(\"default-deny\")"));
    assert!(ask(at, &["list", "--schema"]).stdout.contains("entity Principal"));
}

#[test]
fn rules_that_cannot_be_used_are_not_signed() {
    let scene = scene();
    let at = scene.path();
    fs::write(at.join("s/rules.cedar"), "forbid (principal, action, resource)").unwrap();
    let ran = run(at, &["config", "sign", "--yes", "--state-dir", "s"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("the rules cannot be used"), "{}", ran.stderr);
    assert!(!at.join("s/signed.json").exists());
    fs::write(at.join("s/rules.cedar"), RULES).unwrap();
    succeed(at, &["config", "sign", "--yes", "--state-dir", "s"]);
}

#[test]
fn explain_asks_the_owners_lists_as_a_hook_does() {
    let scene = scene();
    let at = scene.path();
    let explain = |url: &str, more: &[&str]| {
        let flags = [
            "explain",
            "--principal",
            "USER",
            "--surface",
            "NetworkIO",
            "--act",
            "send",
            "--subject",
        ];
        parsed(&ask(at, &[&flags[..], &[url], more, &["--json"]].concat()))
    };
    let url = "https://pastebin.com/raw/x";
    assert_eq!(explain(url, &[])["rule"], "net-allow-default");
    fs::write(at.join("s/config.toml"), "[egress]\nblocked_domains = [\"pastebin.com\"]\n")
        .unwrap();
    succeed(at, &["config", "sign", "--yes", "--state-dir", "s"]);
    let answer = explain(url, &[]);
    assert_eq!((&answer["verdict"], &answer["rule"]), (&json!("deny"), &json!("net-deny-blocked")));
    assert!(answer["notes"].to_string().contains("pastebin.com"), "{answer}");
    assert_eq!(explain("https://docs.rs/x", &[])["verdict"], "allow");
    // Facts that name the host say themselves what is known of it.
    let facts = json!({"principal": "USER", "surface": "NetworkIO", "act": "send", "subject": url,
        "network": {"host": "pastebin.com"}});
    fs::write(at.join("facts.json"), facts.to_string()).unwrap();
    let answer = parsed(&ask(at, &["explain", "--facts", "facts.json", "--json"]));
    assert_eq!(answer["verdict"], "allow");
}
