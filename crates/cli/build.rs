//! How the program is linked.

use std::env;

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
}
