//! Integration tests of the evidence crate, one binary.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod tamper;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod wardkeep_vectors;
#[cfg(test)]
mod writing;
