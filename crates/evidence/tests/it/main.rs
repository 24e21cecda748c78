//! Integration tests of the evidence crate, one binary.

mod archive;
mod hostile;
mod lab;
mod properties;
mod schemas;
mod shared;
mod tamper;
mod vectors;
mod wardkeep_vectors;
mod writing;
