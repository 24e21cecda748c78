//! What is remembered outside of the workspace, and what happens when someone meddles with it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use wardkeep_policy::store::How;
use wardkeep_policy::verify::State;
use wardkeep_policy::workspace::Workspace;

use crate::lab::{Lab, POLICY, random16};

fn memory_file(lab: &Lab) -> std::path::PathBuf {
    let id = lab.verify().verification.memory.workspace_id;
    lab.state(&format!("policy/{id}.json"))
}

#[test]
fn counters_grow_with_every_signature() {
    let lab = Lab::new();
    for expected in 1..=5 {
        lab.write(format!("{POLICY}- Rule {expected}.\n"));
        let signed = lab.sign().unwrap().signed;
        assert_eq!(signed.manifest.binding.unwrap().counter, expected);
        assert_eq!(lab.verdict(), (State::Valid, None));
    }
}

#[test]
fn a_crash_between_manifest_and_memory_loses_nothing() {
    let lab = Lab::signed(POLICY);
    let memory = memory_file(&lab);
    let before = fs::read(&memory).unwrap();
    lab.write(format!("{POLICY}- More.\n"));
    lab.sign().unwrap();
    // As if the memory had not been written.
    fs::write(&memory, before).unwrap();
    assert_eq!(lab.verdict(), (State::Valid, None));
    assert_eq!(lab.verify().verification.memory.last_counter, 2);
    lab.write(format!("{POLICY}- Even more.\n"));
    assert_eq!(lab.sign().unwrap().signed.memory.last_counter, 3);
}

#[test]
fn memory_that_was_edited_or_removed_is_noticed() {
    let lab = Lab::signed(POLICY);
    let old = (fs::read(lab.policy_path()).unwrap(), fs::read(lab.manifest_path()).unwrap());
    lab.write(format!("{POLICY}- More.\n"));
    lab.sign().unwrap();
    let memory = memory_file(&lab);
    assert_eq!(fs::metadata(&memory).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&memory).unwrap();
    fs::write(&memory, text.replace("\"last_counter\":2", "\"last_counter\":1")).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("memory-damaged")));
    fs::remove_file(&memory).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("memory-damaged")));
    // Only the owner gets out of this, and what was signed before stays out.
    lab.sign().unwrap();
    assert_eq!(lab.verdict(), (State::Valid, None));
    fs::write(lab.policy_path(), old.0).unwrap();
    fs::write(lab.manifest_path(), old.1).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("other-workspace")));
}

#[test]
fn a_registry_that_was_edited_is_noticed() {
    let lab = Lab::signed(POLICY);
    let registry = lab.state("policy/workspaces.json");
    let text = fs::read_to_string(&registry).unwrap();
    fs::write(&registry, text.replace("workspace\"", "workspacf\"")).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("memory-damaged")));
    lab.sign().unwrap();
    assert_eq!(lab.verdict(), (State::Valid, None));
    assert!(lab.state("policy/workspaces.json.damaged").exists());
}

#[test]
fn a_replaced_folder_is_held_against_what_was_there() {
    let lab = Lab::signed(POLICY);
    fs::rename(lab.workspace_path(), lab.path().join("aside")).unwrap();
    fs::create_dir(lab.workspace_path()).unwrap();
    let checked = lab.verify();
    assert_eq!(checked.located.unwrap().how, How::Replaced);
    assert_eq!(lab.verdict(), (State::Missing, Some("was-signed-before")));
}

#[test]
fn a_moved_folder_keeps_its_signature() {
    let lab = Lab::signed(POLICY);
    let moved = lab.path().join("moved");
    fs::rename(lab.workspace_path(), &moved).unwrap();
    let checked = lab.store.verify(&Workspace::open(&moved).unwrap(), random16(2));
    assert_eq!(checked.verification.state, State::Valid);
    assert_eq!(checked.located.unwrap().how, How::Moved);
}

#[test]
fn a_workspace_signed_where_it_was_moved_to_leaves_its_old_place() {
    let lab = Lab::signed(POLICY);
    let moved = lab.path().join("moved");
    fs::rename(lab.workspace_path(), &moved).unwrap();
    let moved = Workspace::open(&moved).unwrap();
    let draft = wardkeep_policy::sign::Draft::read(&moved).unwrap();
    lab.store.sign(&moved, &draft, &crate::lab::request(), random16(3)).unwrap();
    // Another workspace at the old place is one of its own.
    fs::create_dir(lab.workspace_path()).unwrap();
    lab.write(POLICY);
    lab.sign().unwrap();
    assert_eq!(lab.verdict(), (State::Valid, None));
    assert_eq!(lab.store.verify(&moved, random16(4)).verification.state, State::Valid);
}

#[test]
fn a_weaker_workspace_moved_over_a_stricter_one_is_noticed() {
    let lab = Lab::signed("# Strict\n\n- Never write anything.\n");
    let weak = lab.path().join("weak");
    fs::create_dir(&weak).unwrap();
    fs::write(weak.join("LocalGPT.md"), "# Weak\n").unwrap();
    let workspace = Workspace::open(&weak).unwrap();
    let draft = wardkeep_policy::sign::Draft::read(&workspace).unwrap();
    lab.store.sign(&workspace, &draft, &crate::lab::request(), random16(3)).unwrap();
    fs::rename(lab.workspace_path(), lab.path().join("aside")).unwrap();
    fs::rename(&weak, lab.workspace_path()).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("other-workspace")));
}

#[test]
fn the_signed_text_is_kept_for_a_comparison() {
    let lab = Lab::signed(POLICY);
    lab.write("changed");
    let memory = lab.verify().verification.memory;
    assert_eq!(lab.store.signed_text(&memory).unwrap(), POLICY.as_bytes());
    fs::write(lab.state(&format!("policy/{}.md", memory.workspace_id)), "changed").unwrap();
    assert_eq!(lab.store.signed_text(&memory), None, "only what was signed");
}

#[test]
fn looking_at_a_folder_without_a_policy_writes_nothing() {
    let lab = Lab::new();
    assert_eq!(lab.verdict(), (State::Missing, None));
    lab.write(POLICY);
    assert_eq!(lab.verdict(), (State::Unsigned, None));
    assert!(!lab.state("policy").exists());
}

#[test]
fn a_state_directory_that_cannot_be_written_does_not_gate_the_policy() {
    let lab = Lab::new();
    lab.write(POLICY);
    let key = lab.store.key().unwrap();
    let id = wardkeep_policy::workspace::WorkspaceId::from_random(random16(3));
    let mut manifest = wardkeep_policy::manifest::Manifest::sign(
        &key,
        POLICY.as_bytes(),
        wardkeep_policy::manifest::Signer::Cli,
        crate::lab::now(),
        id,
        1,
    );
    manifest.binding = None;
    fs::write(lab.manifest_path(), manifest.to_bytes()).unwrap();
    // A folder where the lock should be.
    fs::create_dir_all(lab.state("policy/lock")).unwrap();
    let checked = lab.verify();
    assert_eq!(checked.verification.state, State::Valid);
    assert_eq!(checked.trouble.len(), 1, "and it is said");
}

/// A manifest without the part that binds it, as LocalGPT itself writes it.
fn stripped(manifest: &str) -> String {
    let end = manifest.find(",\n  \"wardkeep\"").unwrap();
    format!("{}\n}}", &manifest[..end])
}

#[test]
fn a_link_in_place_of_the_workspace_starts_nothing_anew() {
    let lab = Lab::signed(POLICY);
    let old = stripped(&lab.manifest());
    lab.write(format!("{POLICY}- Never touch the payments service.\n"));
    lab.sign().unwrap();
    // The agent's copy, with the older policy; its manifest would do in a place of its own.
    let copy = lab.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join("LocalGPT.md"), POLICY).unwrap();
    fs::write(copy.join(".localgpt_manifest.json"), &old).unwrap();
    fs::rename(lab.workspace_path(), lab.path().join("away")).unwrap();
    std::os::unix::fs::symlink(&copy, lab.workspace_path()).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("downgrade")));
    assert_eq!(lab.store.inspect(&lab.workspace()).state, State::TamperDetected);
    fs::remove_file(copy.join(".localgpt_manifest.json")).unwrap();
    assert_eq!(lab.verdict(), (State::Unsigned, Some("was-signed-before")));
    fs::remove_file(copy.join("LocalGPT.md")).unwrap();
    assert_eq!(lab.verdict(), (State::Missing, Some("was-signed-before")));
    // The owner may have moved it, and then signs it there.
    lab.write(POLICY);
    lab.sign().unwrap();
    assert_eq!(lab.verdict(), (State::Valid, None));
    fs::write(copy.join(".localgpt_manifest.json"), old).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("downgrade")));
}

#[test]
fn a_link_from_one_signed_workspace_to_another_is_noticed() {
    let lab = Lab::signed(POLICY);
    let other = lab.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("LocalGPT.md"), "# Lax\n").unwrap();
    let lax = Workspace::open(&other).unwrap();
    let draft = wardkeep_policy::sign::Draft::read(&lax).unwrap();
    lab.store.sign(&lax, &draft, &crate::lab::request(), random16(77)).unwrap();
    fs::rename(lab.workspace_path(), lab.path().join("away")).unwrap();
    std::os::unix::fs::symlink(&other, lab.workspace_path()).unwrap();
    assert_eq!(lab.verdict(), (State::TamperDetected, Some("memory-damaged")));
    // By its own name it is what it was.
    let checked = lab.store.verify(&Workspace::open(&other).unwrap(), random16(78));
    assert_eq!(checked.verification.state, State::Valid);
    // The owner's signature by the link settles it.
    lab.sign().unwrap();
    assert_eq!(lab.verdict(), (State::Valid, None));
    let checked = lab.store.verify(&Workspace::open(&other).unwrap(), random16(79));
    assert_eq!(checked.verification.state, State::Valid);
}
