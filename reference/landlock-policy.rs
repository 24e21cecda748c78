//! A Landlock ruleset for a skill: reads from the system and its own folder, writes to one folder, no TCP.
//!
//! Landlock needs no root: a process gives rights away, for itself and all that it starts, for good. It
//! allows what lies below the paths that are named; a name inside of such a tree cannot be taken out
//! again. It does not cover `chmod`, `chown`, times or extended attributes, nor, before ABI 10, UDP.
//!
//! `cargo run -p wardkeep-sandbox --example landlock-policy -- SKILL OUT PROGRAM ARGUMENT…`

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

/// What programs need to start.
const SYSTEM: [&str; 6] = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc"];
/// What they write to without meaning anything by it.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"];

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args_os().skip(1);
    let mut next = |what: &str| -> Result<OsString, Failed> {
        arguments.next().ok_or_else(|| format!("{what} is missing").into())
    };
    let (skill, out) = (PathBuf::from(next("SKILL")?), PathBuf::from(next("OUT")?));
    let program = next("PROGRAM")?;
    confine(&skill, &out)?;
    Err(Command::new(program).args(arguments).exec().into())
}

fn confine(skill: &Path, out: &Path) -> Result<(), Failed> {
    // The newest rights that this example knows. Older kernels have fewer: files are demanded, the rest is
    // taken where it is there, and the answer below is looked at and not assumed.
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    for path in SYSTEM.iter().map(PathBuf::from).chain([skill.to_owned()]) {
        if let Ok(folder) = PathFd::new(&path) {
            ruleset = ruleset.add_rule(PathBeneath::new(folder, read))?;
        }
    }
    for path in DEVICES {
        let file = AccessFs::ReadFile | AccessFs::WriteFile;
        ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(path)?, file))?;
    }
    // Writable, and nothing in it can be executed.
    let write = AccessFs::from_all(abi) & !AccessFs::Execute;
    ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(out)?, write))?;
    // No rule for TCP: neither binding nor connecting.
    let status = ruleset.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err("the kernel does not enforce it: nothing is started".into());
    }
    Ok(())
}
