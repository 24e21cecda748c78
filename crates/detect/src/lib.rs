//! Text judged in microseconds: evasions undone, attacks named, secrets found, addresses weighed.
//!
//! Pure functions, linear time, no network, no clock, no files. Start with [`scan::Detector`].

pub mod allow;
mod anchors;
mod bitmap;
pub mod effects;
pub mod finding;
pub mod leak;
pub mod names;
#[cfg(test)]
mod processor;
pub mod rules;
pub mod scan;
pub mod score;
pub mod secrets;
pub mod shell;
pub mod urls;
pub mod views;
mod words;
mod work;
