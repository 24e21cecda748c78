//! Doors that traffic goes through: the egress proxy and the model API proxy; and the owner's page and
//! notices.
//!
//! Nothing is decided here: a door reads what is asked, strictly, and asks a [`egress::Decider`] or a
//! [`llm::Judge`].

pub mod egress;
pub mod llm;
#[cfg(feature = "notify")]
pub mod notify;
#[cfg(feature = "page")]
pub mod page;
#[cfg(feature = "monitor")]
mod place;
mod threads;
mod tls;

/// Name of the cookie of the owner's page, which is for nobody else.
const COOKIE: &str = "wardkeep";
