//! Integration tests of the guard crate, one binary.

#[cfg(test)]
mod files;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod network;
mod prompts;
