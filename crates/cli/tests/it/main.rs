//! Tests of the real binary, one test binary.

#[cfg(test)]
mod anchors;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod confined;
#[cfg(test)]
mod daemon;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod door;
#[cfg(test)]
mod egress;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod exit_codes;
#[cfg(test)]
mod first;
#[cfg(test)]
mod help;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod install;
#[cfg(test)]
mod json;
#[cfg(test)]
mod log;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod output;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod prove;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod repeat;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod seals;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod serve_proxy;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod skill;
#[cfg(test)]
mod skill_bounds;
#[cfg(test)]
mod skill_trust;
#[cfg(test)]
mod state;
#[cfg(test)]
mod top;
#[cfg(test)]
mod undo;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod witness;
