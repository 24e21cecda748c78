//! `wardkeep`: the one binary, and the one place that prints, exits and knows its surroundings.

mod cli;
mod commands;
mod context;
mod dispatch;
mod error;
mod exit;
mod ui;

fn main() -> std::process::ExitCode {
    dispatch::run(std::env::args_os().collect())
}
