//! Integration tests of the policy crate, one binary.

#[cfg(test)]
mod key;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod rfc;
#[cfg(test)]
mod store;
#[cfg(test)]
mod verify;
