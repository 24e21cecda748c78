//! OpenClaw, through the plugin.

use std::path::Path;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::kind_in;
use crate::event::{Event, Kind};
use crate::input::Malformed;
use crate::output::Output;
use crate::plugin;

pub(crate) struct OpenClaw;

const EVENTS: &[(&str, Kind)] = &[
    ("before_tool_call", Kind::ToolCall),
    ("tool_result", Kind::ToolResult),
    ("before_agent_run", Kind::Prompt),
    ("message_sending", Kind::Sending),
    ("session_start", Kind::SessionStart),
    ("session_end", Kind::SessionEnd),
    ("config_change", Kind::ConfigChange),
];

impl Adapter for OpenClaw {
    fn kind(&self, name: &str) -> Option<Kind> {
        kind_in(EVENTS, name)
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        plugin::read(Agent::OpenClaw, EVENTS, hint, bytes, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        plugin::write(asked, answer)
    }
}
