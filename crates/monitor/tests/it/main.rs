//! Integration tests of the monitor crate, one binary.

#[cfg(test)]
mod anchor;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod protect;
#[cfg(test)]
mod resolve;
#[cfg(test)]
mod seals;
#[cfg(test)]
mod shared;
