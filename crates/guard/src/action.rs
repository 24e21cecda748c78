//! What an agent is about to do.

use wardkeep_evidence::record::Principal;

use crate::facts::{Compliance, FileFacts, NetworkFacts, SkillFacts};
use crate::surface::{Act, Surface};
use crate::taint::Taint;

/// A crossing, resolved: whoever made it has looked at files and addresses.
#[derive(Debug, Clone)]
pub struct Action<'a> {
    /// On whose behalf.
    pub principal: Principal,
    /// Where it crosses.
    pub surface: Surface,
    /// What is done.
    pub act: Act,
    /// A path, a URL, a key, the name of a tool or skill.
    pub subject: &'a str,
    /// What is written, sent, received or said, where there is text.
    pub content: Option<&'a str>,
    /// Taint that the caller adds.
    pub taint: Taint,
    /// More about a file.
    pub file: Option<FileFacts>,
    /// More about a request that leaves.
    pub network: Option<NetworkFacts>,
    /// What was made of a skill.
    pub skill: Option<SkillFacts>,
    /// What was made of the confinement.
    pub sandbox: Option<Compliance>,
    /// Whether the trusted proxies are so many that anyone may be one.
    pub open_proxy: bool,
}

impl<'a> Action<'a> {
    /// An action of which nothing more is known.
    #[must_use]
    pub fn new(principal: Principal, surface: Surface, act: Act, subject: &'a str) -> Self {
        Self {
            principal,
            surface,
            act,
            subject,
            content: None,
            taint: Taint::NONE,
            file: None,
            network: None,
            skill: None,
            sandbox: None,
            open_proxy: false,
        }
    }

    /// Taint that it has by where it comes from.
    ///
    /// Text that reaches the model, and what others do, carries the mark of its origin; what the
    /// agent itself does carries that of its parents.
    #[must_use]
    pub fn origin(&self) -> Taint {
        match self.principal {
            Principal::Sys | Principal::User => Taint::NONE,
            Principal::Tool => Taint::TOOL_OUTPUT,
            Principal::Skill => Taint::SKILL_OUTPUT | Taint::UNTRUSTED,
            Principal::Web => Taint::WEB_DERIVED | Taint::UNTRUSTED,
            Principal::Channel | Principal::External => Taint::UNTRUSTED,
        }
    }
}
