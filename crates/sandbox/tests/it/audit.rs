//! The audit, over surroundings that are written down and in real ones.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use wardkeep_sandbox::audit::{
    Compliance, Probes, Profile, Report, Roots, State, UserNamespaces, audit,
};

use crate::skip::skip;

/// Numbers of the machine's first namespaces.
const FIRST: [(&str, u64); 8] = [
    ("cgroup", 4026531835),
    ("ipc", 4026531839),
    ("mnt", 4026531841),
    ("net", 4026531840),
    ("pid", 4026531836),
    ("time", 4026531834),
    ("user", 4026531837),
    ("uts", 4026531838),
];

/// Surroundings that are written down.
struct Scene {
    folder: TempDir,
}

impl Scene {
    /// A machine on which nothing confines anybody.
    fn bare() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        scene.status("0", "0", "000001ffffffffff");
        scene.namespaces("self", &FIRST);
        scene.namespaces("1", &FIRST);
        scene.write("proc/sys/net/core/netdev_max_backlog", "1000\n");
        scene.write("proc/1/cgroup", "0::/init.scope\n");
        scene.write("proc/self/cgroup", "0::/user.slice/a.scope\n");
        scene.mount("rw,relatime", "rw");
        scene.limits("127000", "1048576", "unlimited");
        scene
    }

    /// A container as Docker makes them, on a kernel that numbers networks as they come.
    fn docker() -> Self {
        let scene = Self::bare();
        scene.status("2", "0", "00000000a80425fb");
        let own = FIRST.map(|(kind, number)| match kind {
            "user" | "time" => (kind, number),
            _ => (kind, number + 700),
        });
        scene.namespaces("self", &own);
        scene.namespaces("1", &own);
        fs::remove_file(scene.path("proc/sys/net/core/netdev_max_backlog")).unwrap();
        scene.write("proc/sys/net/core/somaxconn", "4096\n");
        scene.write("proc/1/cgroup", "0::/\n");
        scene.write("proc/self/cgroup", "0::/\n");
        scene.write("root/.dockerenv", "");
        scene.write("sys/fs/cgroup/pids.max", "512\n");
        scene.write("sys/fs/cgroup/memory.max", "max\n");
        scene
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn status(&self, seccomp: &str, no_new_privs: &str, capabilities: &str) {
        self.write(
            "proc/self/status",
            &format!(
                "Name:\tx\nCapEff:\t{capabilities}\nNoNewPrivs:\t{no_new_privs}\n\
                 Seccomp:\t{seccomp}\nSeccomp_filters:\t{seccomp}\n"
            ),
        );
    }

    fn namespaces(&self, process: &str, numbers: &[(&str, u64)]) {
        let folder = self.path(&format!("proc/{process}/ns"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (kind, number) in numbers {
            symlink(format!("{kind}:[{number}]"), folder.join(kind)).unwrap();
        }
    }

    fn mount(&self, options: &str, system: &str) {
        self.write(
            "proc/self/mountinfo",
            &format!(
                "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                 21 20 0:21 / /proc rw,nosuid - proc proc rw\n\
                 22 20 0:40 / / {options} - overlay overlay {system},lowerdir=/l\n"
            ),
        );
    }

    fn limits(&self, processes: &str, files: &str, memory: &str) {
        self.write(
            "proc/self/limits",
            &format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max address space         unlimited            {memory}            bytes     \n\
                 Max processes             10                   {processes}          processes \n\
                 Max open files            1024                 {files}              files     \n"
            ),
        );
    }

    fn roots(&self) -> Roots {
        Roots {
            proc: self.path("proc"),
            sys: self.path("sys"),
            root: self.path("root"),
            process: "self".to_owned(),
        }
    }

    fn audit(&self, profile: &Profile) -> Report {
        audit(&self.roots(), &Probes::default(), profile)
    }
}

fn state(report: &Report, id: &str) -> State {
    report.finding(id).unwrap_or_else(|| panic!("no finding {id}")).state
}

#[test]
fn a_bare_machine_complies_with_nothing() {
    let report = Scene::bare().audit(&Profile::default());
    assert_eq!(report.compliance, Compliance::None);
    assert!(!report.in_container && !report.seccomp_active && !report.readonly_root);
    assert_eq!(report.namespaces, Vec::<String>::new());
    assert_eq!(report.seccomp_mode.as_deref(), Some("disabled"));
    assert_eq!(report.resource_limits["nofile"], "1048576");
    assert_eq!(report.resource_limits["as"], "unlimited");
    let lacking: Vec<&str> = report.lacking().map(|one| one.id.as_str()).collect();
    assert_eq!(lacking, ["container", "seccomp"]);
    assert!(report.lacking().all(|one| one.fix.is_some()));
    assert!(report.score <= 10, "{}", report.score);
}

#[test]
fn a_container_is_seen_from_inside() {
    let report = Scene::docker().audit(&Profile::default());
    assert_eq!(report.compliance, Compliance::Full);
    assert!(report.in_container);
    assert_eq!(report.container_marks, ["/.dockerenv"]);
    assert_eq!(report.namespaces, ["cgroup", "ipc", "mnt", "net", "pid", "uts"]);
    assert_eq!(report.resource_limits["cgroup-pids"], "512");
    assert_eq!(state(&report, "max-processes"), State::Held);
    assert_eq!(state(&report, "max-memory"), State::Missing);
}

#[test]
fn a_container_on_the_machines_network_is_told_from_one_with_its_own() {
    let scene = Scene::docker();
    scene.write("proc/sys/net/core/netdev_max_backlog", "1000\n");
    let profile = Profile { network_namespace: true, ..Profile::default() };
    let report = scene.audit(&profile);
    assert_eq!(report.compliance, Compliance::Partial);
    assert_eq!(state(&report, "namespace-net"), State::Missing);
    // Where nothing can be told it is not taken for granted.
    fs::remove_dir_all(scene.path("proc/sys")).unwrap();
    let report = scene.audit(&profile);
    assert_eq!(state(&report, "namespace-net"), State::Unknown);
    assert_eq!(report.unknown_namespaces, ["net"]);
    assert_eq!(report.compliance, Compliance::Partial);
}

#[test]
fn marks_alone_make_no_container() {
    let scene = Scene::bare();
    scene.write("root/.dockerenv", "");
    scene.write("proc/1/cgroup", "12:pids:/docker/0123\n");
    let probes = Probes::default().marked(vec!["KUBERNETES_SERVICE_HOST".to_owned()]);
    let report = audit(&scene.roots(), &probes, &Profile::default());
    assert!(!report.in_container);
    assert_eq!(report.container_marks.len(), 3);
    assert_eq!(report.compliance, Compliance::None);
}

#[test]
fn a_container_with_the_machines_processes_is_none() {
    let scene = Scene::docker();
    let shared = [("pid", 4026531836), ("mnt", 4026532600), ("net", 4026532601)];
    scene.namespaces("self", &shared);
    scene.namespaces("1", &FIRST);
    let report = scene.audit(&Profile::default());
    assert!(!report.in_container);
    assert_eq!(report.compliance, Compliance::Partial);
    assert_eq!(state(&report, "namespace-user"), State::Unknown);
}

/// Each key of the profile alone makes the difference between `Full` and less.
#[test]
fn every_key_of_a_profile_counts() {
    let nothing =
        Profile { require_container: false, require_seccomp: false, ..Profile::default() };
    let keys: [(&str, Profile); 7] = [
        ("container", Profile { require_container: true, ..nothing.clone() }),
        ("seccomp", Profile { require_seccomp: true, ..nothing.clone() }),
        ("readonly-root", Profile { require_readonly_root: true, ..nothing.clone() }),
        ("syscalls", Profile { allowed_syscalls: Some(vec![]), ..nothing.clone() }),
        ("max-processes", Profile { max_processes: Some(100), ..nothing.clone() }),
        ("max-open-files", Profile { max_open_files: Some(1000), ..nothing.clone() }),
        ("namespace-net", Profile { network_namespace: true, ..nothing.clone() }),
    ];
    let bare = Scene::bare();
    assert_eq!(bare.audit(&nothing).compliance, Compliance::Full);
    for (id, profile) in &keys {
        let report = bare.audit(profile);
        assert_eq!(report.compliance, Compliance::None, "{id}");
        assert_eq!(report.lacking().map(|one| one.id.as_str()).collect::<Vec<_>>(), [*id]);
    }

    let good = Scene::docker();
    good.status("2", "1", "0000000000000000");
    good.mount("ro,relatime", "rw");
    good.limits("64", "256", "1000000000");
    let probes = Probes { syscalls: BTreeMap::from([("ptrace", true)]), ..Probes::default() };
    for (id, profile) in &keys {
        let report = audit(&good.roots(), &probes, profile);
        assert_eq!(report.compliance, Compliance::Full, "{id}: {:?}", report.finding(id));
    }
    let all = Profile {
        require_readonly_root: true,
        allowed_syscalls: Some(vec![]),
        max_processes: Some(100),
        max_open_files: Some(1000),
        network_namespace: true,
        ..Profile::default()
    };
    let report = audit(&good.roots(), &probes, &all);
    assert_eq!(report.compliance, Compliance::Full);
    assert!(report.score > 85, "{}", report.score);
    assert_eq!(bare.audit(&all).compliance, Compliance::None);
}

#[test]
fn a_limit_that_does_not_hold_is_none() {
    let scene = Scene::docker();
    fs::remove_file(scene.path("sys/fs/cgroup/pids.max")).unwrap();
    scene.limits("64", "256", "unlimited");
    let profile = Profile { max_processes: Some(100), ..Profile::default() };
    // With CAP_SYS_RESOURCE or CAP_SYS_ADMIN the kernel does not count processes.
    scene.status("2", "0", "0000000001000000");
    assert_eq!(scene.audit(&profile).compliance, Compliance::Partial);
    scene.status("2", "0", "0000000000000000");
    assert_eq!(scene.audit(&profile).compliance, Compliance::Full);
    let tight = Profile { max_processes: Some(63), ..Profile::default() };
    assert_eq!(scene.audit(&tight).compliance, Compliance::Partial);
}

#[test]
fn the_kernel_is_believed_before_its_files() {
    let scene = Scene::docker();
    scene.status("2", "1", "0000000000000000");
    let probes = Probes {
        seccomp: Some(0),
        no_new_privs: Some(false),
        capabilities: Some(1 << 21),
        readonly_root: Some(false),
        ..Probes::default()
    };
    scene.mount("ro", "ro");
    let report = audit(&scene.roots(), &probes, &Profile::default());
    assert!(!report.seccomp_active && !report.readonly_root);
    assert_eq!(report.no_new_privs, Some(false));
    assert_eq!(report.capabilities.as_deref(), Some(["sys_admin".to_owned()].as_slice()));
    assert_eq!(report.compliance, Compliance::Partial);
    let message = &report.finding("proc-disagrees").unwrap().message;
    assert_eq!(message, "/proc and the kernel disagree on seccomp, no-new-privs, capabilities");
}

#[test]
fn reachable_calls_are_named() {
    let profile = Profile { allowed_syscalls: Some(vec!["bpf".to_owned()]), ..Profile::default() };
    let tried = [("bpf", false), ("ptrace", false), ("mount", true)];
    let probes = Probes { syscalls: tried.into(), ..Probes::default() };
    let report = audit(&Scene::docker().roots(), &probes, &profile);
    assert_eq!(report.finding("syscalls").unwrap().message, "possible: ptrace");
    assert_eq!(report.compliance, Compliance::Partial);
}

#[test]
fn blocked_user_namespaces_are_explained() {
    let scene = Scene::bare();
    scene.write("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    let probes = Probes { user_namespaces: Some(UserNamespaces::Powerless), ..Probes::default() };
    let report = audit(&scene.roots(), &probes, &Profile::default());
    let finding = report.finding("user-namespaces").unwrap();
    assert_eq!(finding.state, State::Missing);
    assert!(finding.message.contains("apparmor_restrict_unprivileged_userns"), "{finding:?}");
    // The file alone is no proof: what could be done is what counts.
    let probes = Probes { user_namespaces: Some(UserNamespaces::Allowed), ..Probes::default() };
    let report = audit(&scene.roots(), &probes, &Profile::default());
    assert_eq!(state(&report, "user-namespaces"), State::Held);
}

#[test]
fn nothing_to_read_is_nothing_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let roots = Roots { proc: path.clone(), sys: path.clone(), root: path, process: "self".into() };
    let report = audit(&roots, &Probes::default(), &Profile::default());
    assert_eq!(report.compliance, Compliance::None);
    assert_eq!(report.score, 0);
    assert_eq!(state(&report, "seccomp"), State::Unknown);
    assert_eq!(state(&report, "container"), State::Unknown);
}

#[test]
fn a_report_survives_its_json() {
    let probes = Probes { user_namespaces: Some(UserNamespaces::Blocked), ..Probes::quick() };
    let report = audit(&Scene::docker().roots(), &probes, &Profile::default());
    let json = serde_json::to_value(&report).unwrap();
    for key in [
        "in_container",
        "seccomp_active",
        "seccomp_mode",
        "namespaces",
        "readonly_root",
        "resource_limits",
        "compliance",
        "findings",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]

    /// Whatever stands in the files: an answer comes, and the score is one.
    #[test]
    fn any_files_are_read(status in ".{0,200}", mounts in ".{0,200}", limits in ".{0,200}",
                          link in "[a-z:\\[\\]0-9]{1,40}", group in ".{0,60}") {
        let scene = Scene::bare();
        scene.write("proc/self/status", &format!("Seccomp:{status}\nCapEff:{status}"));
        scene.write("proc/self/mountinfo", &mounts);
        scene.write("proc/self/limits", &format!("Max processes{limits}"));
        scene.write("proc/self/cgroup", &format!("0::/{group}"));
        let own = scene.path("proc/self/ns/net");
        fs::remove_file(&own).unwrap();
        symlink(link, own).unwrap();
        proptest::prop_assert!(scene.audit(&Profile::default()).score <= 100);
    }
}

/// What the process that runs this test sees; `real_*` runs it in other surroundings.
#[test]
fn of_this_process() {
    let report = audit(&Roots::here(), &Probes::thorough(), &Profile::default());
    println!("REPORT {}", serde_json::to_string(&report).unwrap());
    assert!(report.finding("proc-disagrees").is_none(), "{report:#?}");
    assert!(report.landlock_abi.is_some() && report.user_namespaces.is_some());
}

fn audited(command: &mut Command) -> Option<Report> {
    let output = command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "audit::of_this_process", "--nocapture", "--test-threads=1"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split_once("REPORT ").map(|parts| parts.1));
    line.map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn real_namespaces_are_seen_from_inside() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--pid", "--mount", "--net", "--ipc", "--uts"]);
    let Some(report) = audited(unshare.args(["--fork", "--mount-proc"])) else {
        return skip("unshare and user namespaces", "audit::real_namespaces_are_seen_from_inside");
    };
    let own = ["ipc", "mnt", "net", "pid", "user", "uts"];
    assert_eq!(report.namespaces, own, "{report:#?}");
    assert!(report.in_container);
}

#[test]
fn real_namespaces_are_seen_from_outside() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--pid", "--mount", "--net", "--fork", "cat"]);
    let child = unshare.stdin(std::process::Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        return skip("unshare", "audit::real_namespaces_are_seen_from_outside");
    };
    let pid = child.id();
    // The program that waits has the namespaces, but for the processes' own, which its child has.
    let inside = (0..500).find_map(|_| {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let found = children.split_whitespace().next().and_then(|pid| pid.parse::<u32>().ok());
        std::thread::sleep(std::time::Duration::from_millis(2));
        found
    });
    let report =
        inside.map(|pid| audit(&Roots::of_process(pid), &Probes::default(), &Profile::default()));
    child.kill().unwrap();
    child.wait().unwrap();
    let Some(report) = report else {
        return skip("user namespaces", "audit::real_namespaces_are_seen_from_outside");
    };
    for kind in ["mnt", "net", "pid", "user"] {
        assert!(report.namespaces.iter().any(|one| one == kind), "{kind}: {report:#?}");
    }
}

#[test]
fn real_privileges_are_seen() {
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]);
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return skip("root and setpriv", "audit::real_privileges_are_seen");
    }
    let report = audited(&mut setpriv).unwrap();
    assert_eq!(report.no_new_privs, Some(true));
    assert_eq!(report.capabilities, Some(vec![]));
    assert_eq!(state(&report, "no-new-privs"), State::Held);
}

#[test]
fn it_is_cheap() {
    let time = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let (start, rounds) = (time(), 50);
    for _ in 0..rounds {
        let _ = audit(&Roots::here(), &Probes::quick(), &Profile::default());
    }
    let each = (time() - start) / f64::from(rounds);
    println!("an audit takes {:.0} µs", each * 1e6);
    assert!(each < 0.005, "{each}");
}
