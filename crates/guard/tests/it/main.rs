//! Integration tests of the guard crate, one binary.

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod conversations;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod files;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod network;
#[cfg(test)]
mod own_rules;
#[cfg(test)]
#[path = "../../src/processor.rs"]
mod processor;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod time;
#[cfg(test)]
mod zeroleaks;
