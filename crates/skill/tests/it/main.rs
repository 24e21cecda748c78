//! Integration tests of the skill crate, one binary.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod corpus;
