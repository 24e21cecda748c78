//! Integration tests of the identity crate, one binary.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod everyday;
#[cfg(test)]
mod history;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod lock;
#[cfg(test)]
mod owned;
#[cfg(test)]
mod races;
#[cfg(test)]
mod show;
#[cfg(test)]
mod system;
#[cfg(test)]
mod tiers;
