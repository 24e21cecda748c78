//! Config, rules, profiles and pins: signed together, and every way to meddle with them.

use std::fs;
use std::os::unix::fs::symlink;

use wardkeep_policy::config::Switches;
use wardkeep_policy::signed_set::{
    Change, Kind, SetDraft, SetError, SetState, SetVerification, sign,
};

use crate::lab::{Lab, request};

fn signed(config: &str) -> Lab {
    let lab = Lab::new();
    fs::write(lab.state("config.toml"), config).unwrap();
    fs::write(lab.state("rules.cedar"), "forbid(principal, action, resource);").unwrap();
    fs::create_dir(lab.state("profiles")).unwrap();
    fs::write(lab.state("profiles/rust.toml"), "network = false\n").unwrap();
    sign_now(&lab);
    lab
}

fn sign_now(lab: &Lab) {
    let draft = SetDraft::read(lab.store.state()).unwrap();
    sign(lab.store.state(), &lab.store.key().unwrap(), &draft, &request()).unwrap();
}

fn check(lab: &Lab) -> SetVerification {
    lab.store.settings().set
}

fn changed(lab: &Lab) -> Vec<(String, Kind)> {
    match check(lab).state {
        SetState::Changed(changes) => {
            changes.into_iter().map(|Change { name, kind }| (name, kind)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_signed_is_handed_out() {
    let lab = signed("[security]\n");
    let verification = check(&lab);
    assert_eq!(verification.state, SetState::Valid);
    assert_eq!(verification.signed("config.toml"), Some(&b"[security]\n"[..]));
    assert_eq!(verification.signed("profiles/rust.toml"), Some(&b"network = false\n"[..]));
    assert_eq!(verification.counter, Some(1));
}

#[test]
fn nothing_signed_is_unsigned() {
    let lab = Lab::new();
    assert_eq!(check(&lab).state, SetState::Unsigned);
    fs::write(lab.state("config.toml"), "[security]\n").unwrap();
    let verification = check(&lab);
    assert_eq!(verification.state, SetState::Unsigned);
    assert_eq!(verification.signed("config.toml"), None);
}

#[test]
fn every_change_is_named() {
    let lab = signed("[security]\n");
    fs::write(lab.state("config.toml"), "[security]\ndisable_suffix = true\n").unwrap();
    assert_eq!(changed(&lab), [("config.toml".to_owned(), Kind::Modified)]);

    let lab = signed("[security]\n");
    fs::write(lab.state("profiles/evil.toml"), "network = true\n").unwrap();
    assert_eq!(changed(&lab), [("profiles/evil.toml".to_owned(), Kind::Added)]);

    let lab = signed("[security]\n");
    fs::remove_file(lab.state("rules.cedar")).unwrap();
    assert_eq!(changed(&lab), [("rules.cedar".to_owned(), Kind::Removed)]);

    let lab = signed("[security]\n");
    let real = lab.path().join("real");
    fs::rename(lab.state("config.toml"), &real).unwrap();
    symlink(&real, lab.state("config.toml")).unwrap();
    assert_eq!(changed(&lab), [("config.toml".to_owned(), Kind::Unreadable)]);

    let lab = signed("[security]\n");
    fs::rename(lab.state("profiles"), lab.path().join("aside")).unwrap();
    symlink(lab.path().join("aside"), lab.state("profiles")).unwrap();
    let names = changed(&lab);
    assert!(names.contains(&("profiles".to_owned(), Kind::Unreadable)), "{names:?}");
    assert!(names.contains(&("profiles/rust.toml".to_owned(), Kind::Removed)), "{names:?}");
}

#[test]
fn a_file_with_an_unreadable_name_is_not_overlooked() {
    use std::os::unix::ffi::OsStrExt as _;
    let lab = signed("[security]\n");
    let name = std::ffi::OsStr::from_bytes(b"evil\xff.toml");
    fs::write(lab.state("profiles").join(name), "").unwrap();
    assert_eq!(check(&lab).state.name(), "changed");
    assert!(matches!(SetDraft::read(lab.store.state()), Err(SetError::Name(_))));
}

#[test]
fn a_config_that_cannot_be_read_is_not_signed() {
    let lab = Lab::new();
    fs::write(lab.state("config.toml"), "[security]\nstrict = 1\n").unwrap();
    let draft = SetDraft::read(lab.store.state()).unwrap();
    let refused = sign(lab.store.state(), &lab.store.key().unwrap(), &draft, &request());
    assert!(matches!(refused, Err(SetError::Config(error)) if error.line == 2));
}

#[test]
fn an_older_set_does_not_come_back() {
    let lab = signed("[security]\ndisable_policy = true\n");
    let old =
        [fs::read(lab.state("signed.json")).unwrap(), fs::read(lab.state("config.toml")).unwrap()];
    fs::write(lab.state("config.toml"), "[security]\n").unwrap();
    sign_now(&lab);
    assert_eq!(check(&lab).counter, Some(2));
    fs::write(lab.state("signed.json"), &old[0]).unwrap();
    fs::write(lab.state("config.toml"), &old[1]).unwrap();
    let verification = check(&lab);
    assert_eq!(verification.state, SetState::Rollback { found: 1, last: 2 });
    assert_eq!(Switches::resolve(&verification).ignored, ["disable_policy"]);
}

#[test]
fn a_signature_that_is_edited_or_gone_is_noticed() {
    let lab = signed("[security]\n");
    let text = fs::read_to_string(lab.state("signed.json")).unwrap();
    fs::write(lab.state("signed.json"), text.replace("\"counter\":1", "\"counter\":9")).unwrap();
    assert_eq!(check(&lab).state.name(), "corrupted");
    fs::write(lab.state("signed.json"), "{}").unwrap();
    assert_eq!(check(&lab).state.name(), "corrupted");
    fs::remove_file(lab.state("signed.json")).unwrap();
    assert_eq!(check(&lab).state, SetState::Vanished);
    sign_now(&lab);
    assert_eq!(check(&lab).state, SetState::Valid);
    fs::remove_file(lab.state("signed-memory.json")).unwrap();
    assert_eq!(check(&lab).state.name(), "corrupted");
    assert!(Switches::resolve(&check(&lab)).strict_policy, "in doubt strict");
    sign_now(&lab);
    let verification = check(&lab);
    assert_eq!(verification.state, SetState::Valid);
    assert!(verification.counter.unwrap() > 1_000_000, "above all counters before");
}

#[test]
fn a_key_that_is_gone_verifies_nothing() {
    let lab = signed("[security]\nstrict_policy = true\ndisable_policy = true\n");
    fs::remove_file(lab.store.key_path()).unwrap();
    let verification = check(&lab);
    assert_eq!(verification.state.name(), "no_key");
    let switches = Switches::resolve(&verification);
    assert!(switches.strict_policy && !switches.disable_policy);
}

#[test]
fn config_as_bypass_does_not_hold_unsigned() {
    let lab = Lab::new();
    let config = "[security]\ndisable_policy = true\ndisable_suffix = true\n";
    fs::write(lab.state("config.toml"), config).unwrap();
    let switches = Switches::resolve(&check(&lab));
    assert!(!switches.disable_policy && !switches.disable_suffix);
    assert_eq!(switches.ignored, ["disable_policy", "disable_suffix"]);
    assert_eq!(switches.warnings("wardkeep").len(), 2);
    sign_now(&lab);
    let switches = Switches::resolve(&check(&lab));
    assert!(switches.disable_policy && switches.disable_suffix && switches.ignored.is_empty());
    assert_eq!(switches.warnings("wardkeep").len(), 2, "said at each start");
}

#[test]
fn strictness_cannot_be_taken_away_without_a_signature() {
    let lab = signed("[security]\nstrict_policy = true\n");
    assert!(Switches::resolve(&check(&lab)).strict_policy);
    fs::write(lab.state("config.toml"), "").unwrap();
    assert!(Switches::resolve(&check(&lab)).strict_policy, "emptied");
    fs::write(lab.state("config.toml"), "not [ toml").unwrap();
    let switches = Switches::resolve(&check(&lab));
    assert!(switches.strict_policy && switches.error.is_some(), "damaged");
    fs::remove_file(lab.state("config.toml")).unwrap();
    assert!(Switches::resolve(&check(&lab)).strict_policy, "removed");
    sign_now(&lab);
    assert!(!Switches::resolve(&check(&lab)).strict_policy, "the owner may");
}

#[test]
fn strictness_holds_from_anywhere() {
    let lab = Lab::new();
    fs::write(lab.state("config.toml"), "[security]\nstrict_policy = true\n").unwrap();
    assert!(Switches::resolve(&check(&lab)).strict_policy);
}

#[test]
fn what_is_signed_is_what_was_shown() {
    let lab = signed("[security]\n");
    let draft = SetDraft::read(lab.store.state()).unwrap();
    fs::write(lab.state("rules.cedar"), "permit(principal, action, resource);").unwrap();
    let key = lab.store.key().unwrap();
    let refused = sign(lab.store.state(), &key, &draft, &request());
    assert!(matches!(refused, Err(SetError::ChangedSince(name)) if name == "rules.cedar"));
    let alone = wardkeep_policy::sign::Request { confined: true, ..request() };
    assert!(matches!(sign(lab.store.state(), &key, &draft, &alone), Err(SetError::Sign(_))));
}
