//! Integration tests of the detect crate, one binary.

mod adversarial;
#[cfg(test)]
mod bash;
#[cfg(test)]
mod leak;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod sets;
