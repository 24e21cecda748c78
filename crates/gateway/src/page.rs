//! A page on this machine: what agents did, and the few questions that need a person.
//!
//! Nothing is decided or read here: an [`Office`] looks things up and answers for the owner. What it gives
//! is hostile text, which a page only ever shows as text: no script runs but the page's own, nothing is
//! fetched from elsewhere, and everything but the live view works without scripts.
//!
//! Who asks needs a cookie, which the link that is printed at the start gives once. Whatever is changed
//! is shown first and confirmed by a form that is good once and for two minutes.

mod confirm;
mod door;
mod html;
mod live;
mod office;
mod routes;
mod serve;
mod stall;
mod views;

pub use self::door::Config;
pub use self::html::LINKS;
pub use self::office::{
    AnchorRow, Answer, Chain, Counts, Event, Events, EventsAsked, Evidence, FullCheck, Given,
    ModelApi, Office, Outcome, Policy, Posture, RecordView, Requests, Scope, SkillRow, Skills,
    Staged, Trouble, Waiting,
};
pub use self::serve::start;
