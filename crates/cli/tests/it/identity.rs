//! The files that define an agent, through the command line.

mod alohomora;
mod machine;
mod present;
mod scenarios;
mod user;
