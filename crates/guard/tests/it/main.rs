//! Integration tests of the guard crate, one binary.

#[cfg(test)]
mod files;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod network;
mod conversations;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod time;
#[cfg(test)]
mod zeroleaks;
mod arbitrary;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod own_rules;
#[cfg(test)]
mod rules;
