use super::*;

fn facts(path: &str, kind: FileKind, ids: &[u64], own: Option<u64>) -> PathFacts {
    let id = |inode: &u64| Identity { device: 1, inode: *inode };
    PathFacts {
        path: PathBuf::from(path),
        kind,
        identity: own.as_ref().map(id),
        links: 1,
        ancestors: ids.iter().map(id).collect(),
        missing: usize::from(kind == FileKind::Missing),
        through_link: false,
        folded_name: String::new(),
    }
}

fn set() -> ProtectedSet {
    let workspace = facts("/home/u/ws", FileKind::Directory, &[1, 2, 3], Some(4));
    let state = facts("/home/u/.state", FileKind::Directory, &[1, 2, 3], Some(5));
    ProtectedSet::new(&workspace, &state, &ProtectLists::with_home(Some(Path::new("/home/u"))))
}

fn class(operation: Operation, facts: PathFacts) -> Option<Class> {
    let judged = set().judge(operation, &facts.into(), Redirect::Impossible);
    judged.denial().map(|denial| denial.class)
}

#[test]
fn places_are_known_by_identity_under_any_path() {
    // The workspace and the state directory, mounted elsewhere.
    let policy = facts("/mnt/x/LocalGPT.md", FileKind::Missing, &[1, 9, 4], None);
    assert_eq!(class(Operation::Write, policy), Some(Class::Policy));
    let key = facts("/mnt/y/.device_key", FileKind::File, &[1, 9, 5], Some(77));
    assert_eq!(class(Operation::Read, key), Some(Class::State));
    // And by path where the identity is another one: replaced in the meantime.
    let policy = facts("/home/u/WS/localgpt.MD", FileKind::Missing, &[1, 2, 3, 99], None);
    assert_eq!(class(Operation::Write, policy), Some(Class::Policy));
    let other = facts("/mnt/x/LocalGPT.md", FileKind::File, &[1, 9, 10], Some(78));
    assert_eq!(class(Operation::Write, other), None);
}

#[test]
fn holders_are_known_by_identity() {
    let home = facts("/data/u", FileKind::Directory, &[1, 8], Some(3));
    assert_eq!(class(Operation::Delete, home.clone()), Some(Class::State));
    assert_eq!(class(Operation::ReadTree, home.clone()), Some(Class::State));
    assert_eq!(class(Operation::Read, home), None);
}

#[test]
fn streams_may_be_written_and_other_descriptors_not() {
    let stream = |number| facts("/dev/fd/1", FileKind::Descriptor(number), &[1], None);
    assert_eq!(class(Operation::Write, stream(1)), None);
    assert_eq!(class(Operation::Write, stream(7)), Some(Class::Unknown));
}

#[test]
fn what_cannot_be_resolved_is_a_denial_that_says_why() {
    let denial = Denial::unresolved("a/b", "it leads in a circle");
    assert_eq!(denial.class, Class::Unknown);
    assert!(denial.to_string().contains("`a/b`") && denial.to_string().contains("circle"));
}
