//! Tests of the crate as its users see it.

#[cfg(test)]
mod asked;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod beside;
#[cfg(test)]
mod degraded;
#[cfg(test)]
mod group;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod life;
#[cfg(test)]
mod names;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod owner;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod repositories;
#[cfg(test)]
mod seccomp;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod skill;
#[cfg(test)]
mod skip;
#[cfg(test)]
mod stuck;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod told;
