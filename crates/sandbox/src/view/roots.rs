//! Which folders are no workspace.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::lists;

/// Folders that belong to everybody, or to the system.
const SHARED: &[&str] = &[
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lost+found",
    "/media",
    "/mnt",
    "/proc",
    "/root",
    "/run",
    "/snap",
    "/srv",
    "/sys",
    "/tmp",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/spool",
    "/var/tmp",
    "/dev/shm",
];

/// Why a folder cannot be the workspace.
pub(super) fn why_not(workspace: &Path, home: Option<&Path>) -> Option<String> {
    let holds = |path: &Path| path.starts_with(workspace);
    let system = lists::SYSTEM.iter().map(Path::new);
    // Root's own home is a home like others, below.
    let shared = SHARED.iter().map(Path::new).filter(|path| *path != Path::new("/root"));
    if workspace.components().count() < 2 || system.chain(shared).any(holds) {
        return Some("is a folder of the system: go to a project's own folder".to_owned());
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    if home.is_some_and(|home| holds(&home)) {
        return Some(
            "is the whole home, secrets included: go to a project's own folder".to_owned(),
        );
    }
    if let Some(other) = homes().iter().find(|home| holds(Path::new(home))) {
        return Some(format!("holds the home `{other}`: go to a project's own folder"));
    }
    let data = workspace.symlink_metadata().ok()?;
    let own = rustix::process::geteuid().as_raw();
    if data.mode() & 0o1002 == 0o1002 {
        return Some("is shared with every user: go to a project's own folder".to_owned());
    }
    (data.mode() & 0o2 != 0 && data.uid() != own)
        .then(|| "belongs to another user and everybody may write to it: copy it first".to_owned())
}

/// The homes of people, and root's.
fn homes() -> Vec<String> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = text.lines().filter_map(|line| line.split(':').nth(5));
    let homes = homes.filter(|home| home.starts_with("/home/") || *home == "/root");
    let mut homes: Vec<String> = homes.map(str::to_owned).collect();
    homes.push("/root".to_owned());
    homes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_of_everybody_are_no_workspace() {
        for path in
            ["/", "/tmp", "/var/tmp", "/home", "/usr", "/etc", "/var", "/root", "/mnt", "/run"]
        {
            assert!(why_not(Path::new(path), None).is_some(), "{path}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(why_not(folder.path(), None), None);
        assert!(why_not(folder.path(), Some(folder.path())).unwrap().contains("whole home"));
        let mode = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode));
        mode(0o1777).unwrap();
        assert!(why_not(folder.path(), None).unwrap().contains("every user"));
        mode(0o777).unwrap();
        assert_eq!(why_not(folder.path(), None), None);
    }
}
