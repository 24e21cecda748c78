//! The help of every command, so that it cannot drift.

use std::path::Path;

use crate::shared::{every_command, link, succeed};

#[test]
fn help_of_every_command() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for words in every_command() {
            let help = succeed(Path::new("."), &[&words[..], &["--help".to_owned()]].concat());
            let name = [&["wardkeep".to_owned()], &words[..]].concat().join("-");
            insta::assert_snapshot!(format!("help-{name}"), help);
        }
    });
}

#[test]
fn a_link_named_aegx_answers_as_aegx() {
    let folder = tempfile::tempdir().unwrap();
    let aegx = link(folder.path(), "aegx");
    let ask = |arguments: &[&str]| {
        let ran = crate::shared::command(&aegx, folder.path()).args(arguments).output().unwrap();
        crate::shared::Ran::from(ran)
    };
    let help = ask(&["--help"]).stdout;
    assert!(help.contains("\nUsage: aegx [OPTIONS] <COMMAND>\n"), "{help}");
    assert!(!help.contains("completions"), "{help}");
    assert!(ask(&["--version"]).stdout.starts_with("aegx "));
    assert!(
        ask(&["verify", "--help"]).stdout.contains("\nUsage: aegx verify [OPTIONS] <BUNDLE>\n")
    );
    assert!(ask(&["verify"]).stderr.contains("\nUsage: aegx verify <BUNDLE>\n"));
    // The same commands with the same help, but for the name.
    for words in every_command().into_iter().filter(|words| words.len() > 1 && words[0] == "aegx") {
        let under = succeed(folder.path(), &[&words[..], &["--help".to_owned()]].concat());
        let linked = ask(&[&words[1], "--help"]).stdout;
        assert_eq!(linked, under.replace("Usage: wardkeep aegx ", "Usage: aegx "));
    }
    // In JSON a command has one name, whatever the link.
    let answer: serde_json::Value =
        serde_json::from_str(&ask(&["init", "b", "--json"]).stdout).unwrap();
    assert_eq!(answer["command"], "aegx init");
}

#[test]
fn any_other_name_is_wardkeep() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["wk", "aegx2", "AEGX", "\u{1b}[31mx"] {
        let program = link(folder.path(), name);
        let ran = crate::shared::command(program, folder.path()).arg("--version").output().unwrap();
        assert_eq!(ran.stdout, format!("wardkeep {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    }
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeed(folder.path(), &["completions", shell]);
        for words in every_command() {
            assert!(words.iter().all(|word| script.contains(word.as_str())), "{shell} {words:?}");
        }
    }
    let page = succeed(folder.path(), &["man"]);
    assert!(page.contains(".TH wardkeep 1") && page.contains("Exit codes"), "{page}");
    succeed(folder.path(), &["man", "--out", "new/pages"]);
    for words in every_command() {
        let name = [&["wardkeep".to_owned()], &words[..]].concat().join("-");
        let page = std::fs::read_to_string(folder.path().join(format!("new/pages/{name}.1")));
        assert!(page.is_ok_and(|page| page.contains(".SH SYNOPSIS")), "{name}");
    }
    assert!(folder.path().join("new/pages/aegx-verify.1").is_file());
}
