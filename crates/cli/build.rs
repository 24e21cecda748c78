//! How the program is linked.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WARDKEEP_PIE");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let known = matches!(target("ARCH").as_str(), "x86_64" | "aarch64")
        && target("OS") == "linux"
        && target("ENV") == "gnu";
    // A hook is a process for each call of a tool. At a fixed address the loader need not write to a page for each
    // few of 60,000 pointers, which is a quarter of what a hook takes; docs/benchmarks.md has the figures and
    // SECURITY.md the price. `WARDKEEP_PIE=1` builds it the other way.
    if known && env::var_os("WARDKEEP_PIE").is_none_or(|value| value != "1") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    // The part of it that is needed comes along, where it is there: to load the library, which asks the processor what it
    // can, takes as long as a tenth of a hook.
    if known
        && is_native()
        && let Some(folder) = folder_of_unwinder()
    {
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

fn is_native() -> bool {
    env::var_os("HOST") == env::var_os("TARGET")
}

/// Where the unwinder is as an archive.
fn folder_of_unwinder() -> Option<PathBuf> {
    let found = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim_end());
    let folder = path.parent().filter(|_| path.is_absolute() && path.exists());
    folder.map(Path::to_owned)
}
