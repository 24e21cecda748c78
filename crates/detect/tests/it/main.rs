//! Integration tests of the detect crate, one binary.

#[cfg(test)]
mod adversarial;
#[cfg(test)]
mod bash;
#[cfg(test)]
mod exhaustion;
#[cfg(test)]
mod leak;
#[cfg(test)]
#[path = "../../src/processor.rs"]
mod processor;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod score;
#[cfg(test)]
mod sets;
