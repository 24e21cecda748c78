//! A control group of its own for a run, where one is delegated to this user: it limits all processes
//! together, and root's as well.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::spec::Limits;

/// Begins the name of each.
const NAME: &str = "wardkeep-run-";
/// Groups of earlier runs that are looked at.
const MOST_LEFT: usize = 256;

/// What the kernel counts a share of the processors by, in microseconds.
const PERIOD: u64 = 100_000;

/// A control group that goes with this.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    held: Vec<&'static str>,
}

/// A limit, the controller that keeps it, and what is written for it.
struct Wanted {
    limit: &'static str,
    controller: &'static str,
    settings: Vec<(&'static str, String)>,
}

impl Group {
    /// One with limits; none where none is delegated, or it would limit nothing.
    pub(super) fn new(limits: &Limits, memory: u64) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own_group(&mounts, &own)?;
        let all = wanted(limits, memory);
        // A group with processes of its own passes no controllers on; then it is one beside it.
        let above = own.parent().filter(|above| above.join("cgroup.procs").exists());
        let places = above.into_iter().chain([own.as_path()]);
        let mut best: Option<Self> = None;
        for place in places.filter(|place| passes_on(place, &all)) {
            let group = Self::below(place, &all);
            let better =
                |one: &Self| best.as_ref().is_none_or(|best| best.held.len() < one.held.len());
            if let Some(group) = group.filter(better) {
                best = Some(group);
            }
            if best.as_ref().is_some_and(|best| best.held.len() == all.len()) {
                break;
            }
        }
        best
    }

    /// One in a group, if at least one of the limits holds.
    fn below(place: &Path, all: &[Wanted]) -> Option<Self> {
        reap(place);
        let path = place.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let mut group = Self { path, held: Vec::new() };
        for one in all {
            let mut kept =
                one.settings.iter().map(|(name, value)| set(&group.path.join(name), value));
            // The first is the limit itself; what else there is makes it stricter where the kernel has it.
            let limited = kept.next() == Some(true);
            kept.for_each(drop);
            if limited {
                group.held.push(one.limit);
            }
        }
        (!group.held.is_empty()).then_some(group)
    }

    /// The limits that it keeps.
    pub(super) fn held(&self) -> &[&'static str] {
        &self.held
    }

    /// Puts a process in it, and all that it starts.
    pub(super) fn take(&self, pid: i32) -> bool {
        set(&self.path.join("cgroup.procs"), &pid.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        set(&self.path.join("cgroup.kill"), "1");
        // What has ended is counted for a moment longer.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() || !self.path.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Where this process's own group lies.
fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if !after.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let rest = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(at).join(rest))
    })
}

fn wanted(limits: &Limits, memory: u64) -> Vec<Wanted> {
    let total = limits.total_memory.unwrap_or(memory / 10 * 9);
    let mut all = vec![
        Wanted {
            limit: "processes",
            controller: "pids",
            settings: vec![("pids.max", limits.processes.to_string())],
        },
        Wanted {
            limit: "memory",
            controller: "memory",
            settings: vec![
                ("memory.max", total.to_string()),
                ("memory.swap.max", "0".to_owned()),
                ("memory.oom.group", "1".to_owned()),
            ],
        },
    ];
    all.extend(limits.cpus.map(|cpus| {
        let quota = u64::from(cpus.thousandths()) * (PERIOD / 1000);
        let settings = vec![("cpu.max", format!("{quota} {PERIOD}"))];
        Wanted { limit: "cpus", controller: "cpu", settings }
    }));
    all
}

/// Whether groups below one can have limits, and processes may be moved to them.
fn passes_on(place: &Path, all: &[Wanted]) -> bool {
    let writable = |name: &str| {
        let access = rustix::fs::Access::WRITE_OK;
        rustix::fs::access(place.join(name), access).is_ok()
    };
    if !writable("cgroup.procs") || !writable("cgroup.subtree_control") {
        return false;
    }
    let passed = |name: &str| {
        let on = fs::read_to_string(place.join("cgroup.subtree_control")).unwrap_or_default();
        on.split_whitespace().any(|one| one == name)
    };
    // Each by itself: where one is not to be had, the other may be.
    let on = all.iter().map(|one| one.controller).filter(|name| {
        passed(name) || set(&place.join("cgroup.subtree_control"), &format!("+{name}"))
    });
    on.count() > 0
}

/// Removes what runs that were killed have left.
fn reap(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten().take(MOST_LEFT) {
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            // One that is in use cannot be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Writes to a file that is there.
fn set(path: &Path, value: &str) -> bool {
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|mut file| file.write_all(value.as_bytes())).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "25 1 0:22 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
        26 1 0:23 /user.slice /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_group_is_found_wherever_it_is_mounted() {
        let own = |own: &str| own_group(MOUNTS, own);
        assert_eq!(own("1:pids:/x\n0::/user.slice/a/b\n"), Some("/sys/fs/cgroup/a/b".into()));
        assert_eq!(own("0::/user.slice\n"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(own("0::/elsewhere\n"), None);
        assert_eq!(own("1:pids:/x\n"), None);
        assert_eq!(own_group("nonsense\n", "0::/\n"), None);
    }

    #[test]
    fn a_group_without_limits_is_none_and_nothing_is_left() {
        let place = tempfile::tempdir().unwrap();
        let all = wanted(&Limits::default(), 1 << 30);
        assert!(!passes_on(place.path(), &all));
        assert!(Group::below(place.path(), &all).is_none());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        fs::create_dir(place.path().join(format!("{NAME}1"))).unwrap();
        reap(place.path());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_share_of_the_processors_is_a_part_of_each_period() {
        let limits = Limits { cpus: "1.5".parse().ok(), ..Limits::default() };
        let all = wanted(&limits, 1 << 30);
        let cpu = all.iter().find(|one| one.controller == "cpu").unwrap();
        assert_eq!(cpu.settings, [("cpu.max", "150000 100000".to_owned())]);
        let least = Limits { cpus: "0.01".parse().ok(), ..Limits::default() };
        assert_eq!(wanted(&least, 1 << 30)[2].settings[0].1, "1000 100000");
        // Nobody else's groups change where it is not asked for.
        assert!(wanted(&Limits::default(), 1 << 30).iter().all(|one| one.controller != "cpu"));
    }

    /// In a real hierarchy, where this user may make a group.
    #[test]
    fn a_process_is_taken_and_the_group_goes() {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let own = own_group(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        let Some(place) = own.filter(|own| fs::create_dir(own.join("wk-probe")).is_ok()) else {
            return;
        };
        fs::remove_dir(place.join("wk-probe")).unwrap();
        // A setting that every group has.
        let all = [Wanted {
            limit: "depth",
            controller: "",
            settings: vec![("cgroup.max.depth", "3".to_owned())],
        }];
        let group = Group::below(&place, &all).unwrap();
        assert_eq!(group.held(), ["depth"]);
        let path = group.path.clone();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(group.take(i32::try_from(child.id()).unwrap()));
        let listed = read(path.join("cgroup.procs").to_str().unwrap());
        assert_eq!(listed.trim(), child.id().to_string());
        drop(group);
        child.wait().unwrap();
        let _ = fs::remove_dir(&path);
        assert!(!path.exists());
    }
}
