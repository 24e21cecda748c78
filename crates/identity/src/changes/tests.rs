use proptest::prelude::*;

use super::*;

fn change(name: &str, kind: ChangeKind, old: Option<u8>, new: Option<u8>) -> Change {
    Change {
        name: Name::new(name.as_bytes()).unwrap(),
        kind,
        old: old.map(|byte| BlobHash([byte; 32])),
        new: new.map(|byte| BlobHash([byte; 32])),
        was_executable: false,
        executable: false,
        source: Source::Staging,
        standing: None,
        bytes: None,
    }
}

/// The hash does not change from one version to the next: it is written in records.
#[test]
fn the_hash_is_over_exactly_these_bytes() {
    let one = change("SOUL.md", ChangeKind::Modified, Some(1), Some(2));
    let gone = change("A.md", ChangeKind::Deleted, Some(3), None);
    let mut bytes = Vec::new();
    let mut field = |part: &[u8]| {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    };
    field(b"wardkeep identity approval v1");
    field(&2u64.to_le_bytes());
    for part in
        [&b"A.md"[..], b"deleted", &[3; 32], b"", b"SOUL.md", b"modified", &[1; 32], &[2; 32]]
    {
        field(part);
    }
    let expected = ApprovalHash(sha256(&bytes));
    assert_eq!(approval_hash(&[one.clone(), gone.clone()]), expected);
    assert_eq!(approval_hash(&[gone, one]), expected);
}

/// S-8: a name that holds the rest of another set of changes.
#[test]
fn names_cannot_stand_for_other_changes() {
    let (old, evil) = ("01".repeat(32), "02".repeat(32));
    let name = format!("skills/a.mdmodified{old}{evil}skills/b.md");
    let shown = change(&name, ChangeKind::New, None, Some(9));
    let swapped = [
        change("skills/a.md", ChangeKind::Modified, Some(1), Some(2)),
        change("skills/b.md", ChangeKind::New, None, Some(9)),
    ];
    assert_ne!(approval_hash(&[shown]), approval_hash(&swapped));
}

#[test]
fn every_part_of_a_change_is_in_the_hash() {
    let one = change("a", ChangeKind::Modified, Some(1), Some(2));
    let hash = approval_hash(std::slice::from_ref(&one));
    for other in [
        Change { name: Name::new(b"b").unwrap(), ..one.clone() },
        Change { kind: ChangeKind::New, ..one.clone() },
        Change { old: None, ..one.clone() },
        Change { old: Some(BlobHash([9; 32])), ..one.clone() },
        Change { new: Some(BlobHash([9; 32])), ..one.clone() },
        Change { executable: true, ..one.clone() },
    ] {
        assert_ne!(approval_hash(&[other]), hash);
    }
    assert_ne!(approval_hash(&[one.clone(), one]), hash);
    assert_ne!(approval_hash(&[]), hash);
}

/// S-11: a part of the changes has a hash that approves that part.
#[test]
fn a_part_has_a_hash_of_its_own() {
    let changes = Changes {
        changes: vec![
            change("SOUL.md", ChangeKind::Modified, Some(1), Some(2)),
            change("skills/a.md", ChangeKind::New, None, Some(3)),
            change("skills2", ChangeKind::New, None, Some(3)),
        ],
        ..Changes::default()
    };
    let part = changes.only(&[Name::new(b"skills").unwrap()]);
    assert_eq!(part.changes.len(), 1);
    assert_ne!(part.hash(), changes.hash());
    assert_eq!(part.hash(), approval_hash(&changes.changes[1..2]));
}

#[test]
fn renames_are_told_by_their_bytes() {
    let changes = Changes {
        changes: vec![
            change("a", ChangeKind::Deleted, Some(1), None),
            change("b", ChangeKind::New, None, Some(1)),
            change("c", ChangeKind::New, None, Some(1)),
            change("d", ChangeKind::Deleted, Some(2), None),
        ],
        ..Changes::default()
    };
    let names = |rename: &Rename| (rename.from.to_string(), rename.to.to_string());
    let renames: Vec<_> = changes.renames().iter().map(names).collect();
    assert_eq!(renames, [("a".to_owned(), "b".to_owned())]);
}

proptest! {
    /// Two different sets never share the bytes that are hashed, so names of any bytes are tried.
    #[test]
    fn different_sets_have_different_hashes(
        one in proptest::collection::btree_set("[ab/\u{1}-]{1,4}", 0..4),
        other in proptest::collection::btree_set("[ab/\u{1}-]{1,4}", 0..4),
    ) {
        let of = |names: &BTreeSet<String>| -> Option<Vec<Change>> {
            names
                .iter()
                .map(|name| Name::new(name.as_bytes()))
                .map(|name| Some(Change { name: name?, ..change("x", ChangeKind::New, None, Some(1)) }))
                .collect()
        };
        if let (Some(first), Some(second)) = (of(&one), of(&other)) {
            prop_assert_eq!(approval_hash(&first) == approval_hash(&second), one == other);
        }
    }
}
