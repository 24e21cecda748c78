//! Runs a program confined to the current folder.
//!
//! `confine [--home DIR] [--read PATH] [--env NAME] [--degraded LAYER] [--timeout MS] -- COMMAND…`
#![expect(clippy::print_stderr, reason = "a program of its own")]

use std::ffi::OsString;
use std::time::Duration;

use wardkeep_sandbox::{Layer, Prepared, SandboxError, Spec};

fn main() {
    match run() {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("confine: {error}");
            std::process::exit(125);
        }
    }
}

fn run() -> Result<i32, SandboxError> {
    let workspace = std::env::current_dir().unwrap_or_default();
    let mut spec = Spec::new(workspace, Vec::new());
    let mut names: Vec<OsString> = ["PATH", "TERM", "LANG", "USER"].map(Into::into).to_vec();
    let mut arguments = std::env::args_os().skip(1);
    while let Some(option) = arguments.next() {
        if option == "--" {
            break;
        }
        let value = arguments.next().unwrap_or_default();
        match option.to_str() {
            Some("--home") => {
                spec.environment.push(("HOME".into(), value.clone()));
                spec.home = Some(value.into());
            }
            Some("--read") => spec.read.push(value.into()),
            Some("--env") => names.push(value),
            Some("--degraded") => {
                spec.allow_degraded
                    .extend(value.to_str().and_then(|name| name.parse::<Layer>().ok()));
            }
            Some("--timeout") => {
                let time = value.to_str().and_then(|text| text.parse().ok());
                spec.timeout = time.map(Duration::from_millis);
            }
            _ => eprintln!("confine: what is {option:?}?"),
        }
    }
    spec.command = arguments.collect();
    for name in names {
        spec.environment.extend(std::env::var_os(&name).map(|value| (name, value)));
    }
    let ended = Prepared::new(spec)?.spawn()?.wait()?;
    Ok(ended.code)
}
