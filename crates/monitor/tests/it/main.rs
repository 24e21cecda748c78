//! Integration tests of the monitor crate, one binary.

mod anchor;
mod faults;
mod journal;
mod seals;
mod shared;
