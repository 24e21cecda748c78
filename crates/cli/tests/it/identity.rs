//! The files that define an agent, through the command line.

mod alohomora;
mod machine;
mod scenarios;
mod user;
