//! Doors that traffic goes through: the egress proxy.
//!
//! Nothing is decided here: a door reads what is asked, strictly, and asks a [`egress::Decider`].

pub mod egress;
