//! Integration tests of the policy crate, one binary.

#[cfg(test)]
mod assembly;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod key;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod python;
#[cfg(test)]
mod rfc;
#[cfg(test)]
mod sanitise;
#[cfg(test)]
mod sets;
#[cfg(test)]
mod signed_set;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod store;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod wrapping;
