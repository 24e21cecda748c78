//! Integration tests of the monitor crate, one binary.

#[cfg(test)]
mod anchor;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod daemon;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod protect;
#[cfg(test)]
mod prove;
#[cfg(test)]
mod provenance;
#[cfg(test)]
mod resolve;
#[cfg(test)]
mod rollback;
#[cfg(test)]
mod rollback_attacks;
#[cfg(test)]
mod rollback_faults;
#[cfg(test)]
mod seals;
#[cfg(test)]
mod search;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod snapshot;
