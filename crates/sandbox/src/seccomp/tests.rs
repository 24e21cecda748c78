use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;

use super::format::Op;
use super::rules::{Test, strictness};
use super::*;
use crate::filter::tests::said;
use crate::filter::{ARCHITECTURE, denied};

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;
const HIGH: u64 = 0xDEAD_BEEF_0000_0000;

/// What every profile must have.
const START: &str = r#"{"names":["execve","write","exit_group"],"action":"SCMP_ACT_ALLOW"}"#;

fn errno(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | u32::try_from(number).unwrap()
}

fn allowing(entries: &str) -> String {
    format!(r#"{{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{START},{entries}]}}"#)
}

fn refusing(entries: &str) -> String {
    format!(r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{entries}]}}"#)
}

fn program(text: &str) -> Vec<Instruction> {
    program_of(text.as_bytes()).unwrap().0
}

fn says(text: &str, call: libc::c_long, arguments: &[u64]) -> u32 {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    said(&program(text), ARCHITECTURE, call, all)
}

fn why_not(text: &str) -> String {
    program_of(text.as_bytes()).map(drop).unwrap_err()
}

#[test]
fn what_is_listed_is_allowed_and_all_else_is_not() {
    let text = allowing(r#"{"names":["read","openat"],"action":"SCMP_ACT_ALLOW"}"#);
    assert_eq!(says(&text, libc::SYS_read, &[]), ALLOWED);
    assert_eq!(says(&text, libc::SYS_openat, &[HIGH, HIGH]), ALLOWED);
    assert_eq!(says(&text, libc::SYS_close, &[]), errno(libc::EPERM));
    assert_eq!(says(&text, 100_000, &[]), errno(libc::EPERM));
    let text = r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"syscalls":[
        {"name":"execve","action":"SCMP_ACT_LOG"},
        {"names":["write","exit_group"],"action":"SCMP_ACT_ALLOW","args":[],"comment":"x"},
        {"names":["close"],"action":"SCMP_ACT_KILL"},{"names":["read"],"action":"SCMP_ACT_TRAP"},
        {"names":["openat"],"action":"SCMP_ACT_ERRNO"},{"names":["fork","statx"],"action":"SCMP_ACT_KILL_PROCESS"},
        {"names":["getpid"],"action":"SCMP_ACT_ERRNO","errnoRet":4095,"args":null}]}"#;
    assert_eq!(says(text, libc::SYS_execve, &[]), libc::SECCOMP_RET_LOG);
    assert_eq!(says(text, libc::SYS_close, &[]), libc::SECCOMP_RET_KILL_THREAD);
    assert_eq!(says(text, libc::SYS_read, &[]), libc::SECCOMP_RET_TRAP);
    assert_eq!(says(text, libc::SYS_openat, &[]), errno(libc::EPERM));
    assert_eq!(says(text, libc::SYS_statx, &[]), KILLED);
    assert_eq!(says(text, libc::SYS_getpid, &[]), errno(4095));
    assert_eq!(says(text, libc::SYS_lseek, &[]), errno(38));
}

#[test]
fn another_way_to_call_the_kernel_ends_the_process_whatever_is_listed() {
    for text in [
        allowing(r#"{"names":["read","socketcall"],"action":"SCMP_ACT_ALLOW"}"#),
        r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_X86","SCMP_ARCH_X32"]}"#
            .to_owned(),
        r#"{"defaultAction":"SCMP_ACT_LOG","archMap":[{"architecture":"SCMP_ARCH_AARCH64",
            "subArchitectures":["SCMP_ARCH_ARM"]}]}"#
            .to_owned(),
    ] {
        let program = program(&text);
        for architecture in [0x4000_0003, 0x4000_0028, 0] {
            assert_eq!(said(&program, architecture, 0, [0; 6]), KILLED, "{text}");
        }
        #[cfg(target_arch = "x86_64")]
        for call in [0x4000_0000, 0x4000_0000 | 39, 0x4000_0208, 0xFFFF_FFFF] {
            assert_eq!(said(&program, ARCHITECTURE, call, [0; 6]), KILLED, "{text}");
        }
    }
}

#[test]
fn both_halves_of_an_argument_count() {
    let one = |op: &str, value: u64| {
        allowing(&format!(
            r#"{{"names":["lseek"],"action":"SCMP_ACT_ALLOW","args":[{{"index":1,"value":{value},"op":"SCMP_CMP_{op}"}}]}}"#
        ))
    };
    let value = 0x1_0000_0005_u64;
    let near = [
        0,
        5,
        4,
        6,
        value,
        value - 1,
        value + 1,
        0x2_0000_0005,
        0x2_0000_0000,
        0x1_0000_0000,
        u64::MAX,
    ];
    for given in near {
        for (op, fits) in [
            ("EQ", given == value),
            ("NE", given != value),
            ("LT", given < value),
            ("LE", given <= value),
            ("GT", given > value),
            ("GE", given >= value),
        ] {
            let expected = if fits { ALLOWED } else { errno(libc::EPERM) };
            let told = says(&one(op, value), libc::SYS_lseek, &[0, given]);
            assert_eq!(told, expected, "{given:x} {op}");
        }
    }
    let masked = allowing(
        r#"{"names":["lseek"],"action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":18446744069414584335,
        "valueTwo":4294967297,"op":"SCMP_CMP_MASKED_EQ"}]}"#,
    );
    // The mask is ffffffff0000000f.
    for (given, fits) in
        [(0x1_0000_0001, true), (0x1_FFFF_FFF1, true), (1, false), (0x1_0000_0002, false)]
    {
        let expected = if fits { ALLOWED } else { errno(libc::EPERM) };
        assert_eq!(says(&masked, libc::SYS_lseek, &[0, given]), expected, "{given:x}");
    }
}

/// `ioctl` takes 32 bits of a request: one more bit above must not lead around an entry that denies it.
#[test]
fn a_bit_that_the_kernel_ignores_is_no_way_around() {
    let text = refusing(
        r#"{"names":["ioctl"],"action":"SCMP_ACT_ERRNO","args":[{"index":1,"value":21522,"op":"SCMP_CMP_EQ"}]},
        {"names":["kill"],"action":"SCMP_ACT_ERRNO","args":[{"index":0,"value":18446744073709551615,"op":"SCMP_CMP_EQ"}]},
        {"names":["lseek"],"action":"SCMP_ACT_ERRNO","args":[{"index":1,"value":5,"op":"SCMP_CMP_EQ"}]}"#,
    );
    let denied = errno(libc::EPERM);
    assert_eq!(says(&text, libc::SYS_ioctl, &[0, 0x5412]), denied);
    assert_eq!(says(&text, libc::SYS_ioctl, &[0, HIGH | 0x5412]), denied);
    assert_eq!(says(&text, libc::SYS_ioctl, &[0, 0x5413]), ALLOWED);
    assert_eq!(says(&text, libc::SYS_kill, &[0xFFFF_FFFF, 9]), denied);
    assert_eq!(says(&text, libc::SYS_kill, &[u64::MAX, 9]), denied);
    assert_eq!(says(&text, libc::SYS_kill, &[7, 9]), ALLOWED);
    // Here the upper half is an offset.
    assert_eq!(says(&text, libc::SYS_lseek, &[0, HIGH | 5]), ALLOWED);
    // What is allowed by a value is allowed by that value alone.
    let text = allowing(
        r#"{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}]}"#,
    );
    assert_eq!(says(&text, libc::SYS_socket, &[1]), ALLOWED);
    assert_eq!(says(&text, libc::SYS_socket, &[HIGH | 1]), denied);
}

#[test]
fn of_several_entries_the_strictest_that_fits_counts() {
    let allow = r#"{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]}"#;
    let also = r#"{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":10,"op":"SCMP_CMP_EQ"}]}"#;
    let any = r#"{"names":["socket"],"action":"SCMP_ACT_ALLOW"}"#;
    let deny = r#"{"names":["socket","socket"],"action":"SCMP_ACT_ERRNO","errnoRet":97,
        "args":[{"index":1,"value":3,"op":"SCMP_CMP_EQ"}]}"#;
    let kill = r#"{"names":["socket"],"action":"SCMP_ACT_KILL_PROCESS"}"#;
    let socket =
        |entries: &[&str], a, b| says(&allowing(&entries.join(",")), libc::SYS_socket, &[a, b]);
    // One or the other, and what fits neither is as what is not listed.
    assert_eq!(socket(&[allow, also], 10, 1), ALLOWED);
    assert_eq!(socket(&[allow, also], 2, 1), ALLOWED);
    assert_eq!(socket(&[allow, also], 3, 1), errno(libc::EPERM));
    for order in [[allow, deny], [deny, allow]] {
        assert_eq!(socket(&order, 2, 1), ALLOWED);
        assert_eq!(socket(&order, 2, 3), errno(97));
        assert_eq!(socket(&order, 5, 3), errno(97));
        assert_eq!(socket(&order, 5, 1), errno(libc::EPERM));
    }
    for order in [[any, deny], [deny, any]] {
        assert_eq!(socket(&order, 5, 1), ALLOWED);
        assert_eq!(socket(&order, 5, 3), errno(97));
    }
    assert_eq!(socket(&[any, kill, deny], 2, 3), KILLED);
    assert_eq!(socket(&[kill, any], 2, 1), KILLED);
}

#[test]
fn what_ours_denies_is_left_to_it_so_that_it_is_told() {
    let text = allowing(
        r#"{"names":["clone"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":2114060288,
        "valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]}"#,
    );
    for call in denied() {
        assert_eq!(says(&text, call, &[]), ALLOWED, "{call}");
    }
    // Ours answers that it is not there, and programs take the older call.
    assert_eq!(says(&text, libc::SYS_clone3, &[]), ALLOWED);
    assert_eq!(says(&text, libc::SYS_clone, &[0x1000_0000]), ALLOWED);
    assert_eq!(says(&text, libc::SYS_clone, &[17]), ALLOWED);
    // A bit that is neither of ours nor of the profile's.
    let text = allowing(r#"{"names":["clone"],"action":"SCMP_ACT_ERRNO"}"#);
    assert_eq!(says(&text, libc::SYS_clone, &[17]), errno(libc::EPERM));
    // More than an error stays.
    let text = refusing(r#"{"names":["mount","clone"],"action":"SCMP_ACT_KILL_PROCESS"}"#);
    assert_eq!(says(&text, libc::SYS_mount, &[]), KILLED);
    assert_eq!(says(&text, libc::SYS_clone, &[0x1000_0000]), KILLED);
    assert_eq!(says(&text, libc::SYS_umount2, &[]), ALLOWED);
}

#[test]
fn conditions_of_docker_are_those_of_this_machine_without_capabilities() {
    let read = |condition: &str| {
        let text =
            allowing(&format!(r#"{{"names":["read"],"action":"SCMP_ACT_ALLOW",{condition}}}"#));
        says(&text, libc::SYS_read, &[]) == ALLOWED
    };
    let here = match super::format::Machine::HERE {
        super::format::Machine::Amd64 => "amd64",
        super::format::Machine::Arm64 => "arm64",
        _ => "riscv64",
    };
    assert!(read(r#""includes":{},"excludes":{}"#));
    assert!(read(&format!(r#""includes":{{"arches":["x32","{here}"]}}"#)));
    assert!(!read(r#""includes":{"arches":["s390","s390x"]}"#));
    assert!(!read(&format!(r#""excludes":{{"arches":["{here}"]}}"#)));
    assert!(read(r#""excludes":{"arches":["s390x"]}"#));
    assert!(!read(r#""includes":{"caps":["CAP_SYS_ADMIN"]}"#));
    assert!(read(r#""excludes":{"caps":["CAP_SYS_ADMIN"]}"#));
    assert!(read(r#""includes":{"minKernel":"4.8"}"#));
    assert!(!read(r#""includes":{"minKernel":"4096.0"}"#));
    assert!(!read(r#""excludes":{"minKernel":"4.8"}"#));
}

#[test]
fn what_is_not_understood_is_refused_and_named() {
    let entry = |entry: &str| allowing(entry);
    let argument = |argument: &str| {
        allowing(&format!(r#"{{"names":["lseek"],"action":"SCMP_ACT_ALLOW","args":[{argument}]}}"#))
    };
    let deep = format!(r#"{{"defaultAction":{}"#, "[".repeat(100_000));
    let many = format!(
        "[{}]",
        (0..600)
            .map(|value| format!(
                r#"{{"names":["lseek"],"action":"SCMP_ACT_ALLOW","args":[{{"index":1,"value":{},"op":"SCMP_CMP_EQ"}}]}}"#,
                HIGH + value
            ))
            .collect::<Vec<_>>()
            .join(",")
    );
    let many = allowing(&(many[1..many.len() - 1].to_owned() + "," + &many[1..many.len() - 1]));
    for (text, named) in [
        ("".to_owned(), "EOF"),
        ("[]".to_owned(), "invalid length"),
        (deep, "expected"),
        ("{}".to_owned(), "defaultAction"),
        (many, "instructions"),
        (allowing(START) + "{}", "trailing"),
        (r#"{"defaultAction":"SCMP_ACT_NOTIFY"}"#.to_owned(), "SCMP_ACT_NOTIFY"),
        (r#"{"defaultAction":"SCMP_ACT_TRACE"}"#.to_owned(), "SCMP_ACT_TRACE"),
        (
            r#"{"defaultAction":"SCMP_ACT_ALLOW","defaultAction":"SCMP_ACT_ERRNO"}"#.to_owned(),
            "duplicate",
        ),
        (r#"{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/x"}"#.to_owned(), "listenerPath"),
        (
            r#"{"defaultAction":"SCMP_ACT_ALLOW","flags":["SECCOMP_FILTER_FLAG_SPEC_ALLOW"]}"#
                .to_owned(),
            "SPEC_ALLOW",
        ),
        (
            r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_PDP11"]}"#.to_owned(),
            "PDP11",
        ),
        (
            r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":[],"archMap":[]}"#.to_owned(),
            "archMap",
        ),
        (r#"{"defaultAction":"SCMP_ACT_ALLOW","defaultErrnoRet":1}"#.to_owned(), "defaultErrnoRet"),
        (
            r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":4096}"#.to_owned(),
            "defaultErrnoRet",
        ),
        (r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":-1}"#.to_owned(), "-1"),
        (r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1.0}"#.to_owned(), "1.0"),
        (r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":NaN}"#.to_owned(), "expected"),
        (entry(r#"{"names":["read"],"action":"SCMP_ACT_NOTIFY"}"#), "SCMP_ACT_NOTIFY"),
        (entry(r#"{"names":["read"],"action":"scmp_act_allow"}"#), "scmp_act_allow"),
        (
            entry(r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","action":"SCMP_ACT_ERRNO"}"#),
            "duplicate",
        ),
        (entry(r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","arg":[]}"#), "arg"),
        (entry(r#"{"names":["read"],"name":"x","action":"SCMP_ACT_ALLOW"}"#), "entry 2"),
        (entry(r#"{"names":[],"action":"SCMP_ACT_ALLOW"}"#), "names no call"),
        (entry(r#"{"action":"SCMP_ACT_ALLOW"}"#), "names no call"),
        (entry(r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","errnoRet":1}"#), "errnoRet"),
        (
            entry(
                r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_ALL"]}}"#,
            ),
            "CAP_ALL",
        ),
        (
            entry(
                r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["pdp11"]}}"#,
            ),
            "pdp11",
        ),
        (
            entry(
                r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"4.8-rc1"}}"#,
            ),
            "4.8-rc1",
        ),
        (
            entry(r#"{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"maxKernel":"4.8"}}"#),
            "maxKernel",
        ),
        (refusing(r#"{"names":["raed"],"action":"SCMP_ACT_ERRNO"}"#), "`raed`"),
        (argument(r#"{"index":6,"value":1,"op":"SCMP_CMP_EQ"}"#), "(`lseek`)"),
        (argument(r#"{"index":-1,"value":1,"op":"SCMP_CMP_EQ"}"#), "-1"),
        (argument(r#"{"index":0,"value":18446744073709551616,"op":"SCMP_CMP_EQ"}"#), "floating"),
        (argument(r#"{"index":0,"value":1e3,"op":"SCMP_CMP_EQ"}"#), "floating"),
        (argument(r#"{"index":0,"value":"1","op":"SCMP_CMP_EQ"}"#), "string"),
        (argument(r#"{"index":0,"value":1,"op":"SCMP_CMP_IN"}"#), "SCMP_CMP_IN"),
        (argument(r#"{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_EQ"}"#), "valueTwo"),
        (
            argument(r#"{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}"#),
            "nothing fits",
        ),
        (
            argument(
                r#"{"index":0,"value":1,"op":"SCMP_CMP_NE"},{"index":0,"value":2,"op":"SCMP_CMP_NE"}"#,
            ),
            "twice for argument 0",
        ),
    ] {
        let why = why_not(&text);
        assert!(why.contains(named), "{why}: {}", text.get(..200).unwrap_or(&text));
        assert!(!why.contains('\n'), "{why}");
    }
    // A name that is not known lets nothing through, and runtimes list those of other machines.
    let text = allowing(r#"{"names":["raed","socketcall","read"],"action":"SCMP_ACT_ALLOW"}"#);
    assert_eq!(says(&text, libc::SYS_read, &[]), ALLOWED);
    program(&refusing(r#"{"names":["vm86","socketcall"],"action":"SCMP_ACT_ERRNO"}"#));
}

#[test]
fn a_profile_under_which_nothing_could_start_is_refused() {
    for text in [
        r#"{"defaultAction":"SCMP_ACT_KILL_PROCESS"}"#.to_owned(),
        r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}"#.to_owned(),
        refusing(r#"{"names":["execve"],"action":"SCMP_ACT_ERRNO"}"#),
        refusing(r#"{"names":["execve"],"action":"SCMP_ACT_KILL","args":[{"index":0,"value":7,"op":"SCMP_CMP_EQ"}]}"#),
        allowing(r#"{"names":["execve"],"action":"SCMP_ACT_TRAP"}"#),
    ] {
        assert!(why_not(&text).contains("`execve`"), "{text}");
    }
    assert!(
        why_not(&refusing(r#"{"names":["write"],"action":"SCMP_ACT_ERRNO"}"#)).contains("`write`")
    );
}

#[test]
fn only_a_plain_file_that_nobody_else_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    let why = |path: &Path| SeccompProfile::load(path).unwrap_err().to_string();
    assert!(why(&path).contains("is not there"), "{}", why(&path));
    std::fs::write(&path, allowing(START)).unwrap();
    let set =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o644);
    let loaded = SeccompProfile::load(&path).unwrap();
    assert_eq!(loaded.source().path, path.display().to_string());
    assert_eq!(loaded.source().sha256.len(), 64);
    for mode in [0o664, 0o646] {
        set(mode);
        assert!(why(&path).contains("written by others"), "{}", why(&path));
    }
    set(0o600);
    let link = folder.path().join("link.json");
    symlink(&path, &link).unwrap();
    assert!(why(&link).contains("is a link"), "{}", why(&link));
    assert!(why(folder.path()).contains("is no file"), "{}", why(folder.path()));
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    assert!(why(&pipe).contains("is no file"), "{}", why(&pipe));
    assert!(why(Path::new("/dev/zero")).contains("is no file"));
    std::fs::write(&path, vec![b' '; 10 << 20]).unwrap();
    assert!(why(&path).contains("larger"), "{}", why(&path));
    if rustix::process::geteuid().is_root() {
        std::fs::write(&path, allowing(START)).unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        assert!(why(&path).contains("another user"), "{}", why(&path));
    }
}

/// What a profile says, worked out from the entries one by one.
fn expected(
    default: u32,
    entries: &[(u32, Vec<Test>, u32)],
    call: u32,
    arguments: [u64; 6],
) -> u32 {
    let fits = |test: &Test| {
        let given = arguments[test.index] & test.mask;
        match test.op {
            Op::Equal | Op::Masked => given == test.value,
            Op::NotEqual => given != test.value,
            Op::Less => given < test.value,
            Op::AtMost => given <= test.value,
            Op::Greater => given > test.value,
            Op::AtLeast => given >= test.value,
        }
    };
    let fitting = entries.iter().filter(|(of, tests, _)| *of == call && tests.iter().all(fits));
    fitting.map(|(_, _, outcome)| *outcome).min_by_key(|one| strictness(*one)).unwrap_or(default)
}

fn number() -> impl Strategy<Value = u64> {
    let half = prop_oneof![Just(0_u64), Just(1), Just(2), Just(0xFFFF_FFFF)];
    (half.clone(), half).prop_map(|(high, low)| high << 32 | low)
}

fn op() -> impl Strategy<Value = (Op, &'static str)> {
    prop_oneof![
        Just((Op::NotEqual, "NE")),
        Just((Op::Less, "LT")),
        Just((Op::AtMost, "LE")),
        Just((Op::Equal, "EQ")),
        Just((Op::AtLeast, "GE")),
        Just((Op::Greater, "GT")),
        Just((Op::Masked, "MASKED_EQ")),
    ]
}

fn action() -> impl Strategy<Value = (u32, &'static str)> {
    prop_oneof![
        Just((libc::SECCOMP_RET_ALLOW, "ALLOW")),
        Just((libc::SECCOMP_RET_LOG, "LOG")),
        Just((errno(libc::EPERM), "ERRNO")),
        Just((libc::SECCOMP_RET_TRAP, "TRAP")),
        Just((libc::SECCOMP_RET_KILL_PROCESS, "KILL_PROCESS")),
    ]
}

/// Calls whose arguments are all compared whole, and that ours does not deny.
const PLAIN: [(&str, libc::c_long); 3] =
    [("mremap", libc::SYS_mremap), ("getcwd", libc::SYS_getcwd), ("brk", libc::SYS_brk)];

proptest! {
    #[test]
    fn the_filter_says_what_the_entries_say(
        default in action(),
        entries in proptest::collection::vec(
            (0..PLAIN.len(), action(), proptest::collection::btree_map(0..6_usize, (op(), number(), number()), 0..6)),
            0..8,
        ),
        arguments in proptest::array::uniform6(number()),
    ) {
        let mut told = Vec::new();
        let mut texts = vec![START.to_owned()];
        for (call, action, tests) in entries {
            let mut all = Vec::new();
            let mut words = Vec::new();
            for (index, ((op, word), value, second)) in tests {
                let (mask, value, two) = match op {
                    Op::Masked => (value, second & value, second & value),
                    _ => (u64::MAX, value, 0),
                };
                let first = if op == Op::Masked { mask } else { value };
                words.push(format!(
                    r#"{{"index":{index},"value":{first},"valueTwo":{two},"op":"SCMP_CMP_{word}"}}"#
                ));
                all.push(Test { index, mask, op, value });
            }
            texts.push(format!(
                r#"{{"names":["{}"],"action":"SCMP_ACT_{}","args":[{}]}}"#,
                PLAIN[call].0, action.1, words.join(",")
            ));
            told.push((u32::try_from(PLAIN[call].1).unwrap(), all, action.0));
        }
        let text = format!(r#"{{"defaultAction":"SCMP_ACT_{}","syscalls":[{}]}}"#, default.1, texts.join(","));
        let program = program(&text);
        for (_, call) in PLAIN {
            let number = u32::try_from(call).unwrap();
            prop_assert_eq!(
                said(&program, ARCHITECTURE, call, arguments),
                expected(default.0, &told, number, arguments),
                "{}", text
            );
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = program_of(&bytes);
    }
}
