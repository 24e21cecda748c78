//! OpenCode, through the plugin.

use std::path::Path;

use crate::agent::{Adapter, Agent, Asked};
use crate::answer::Answer;
use crate::common::kind_in;
use crate::event::{Event, Kind};
use crate::input::Malformed;
use crate::output::Output;
use crate::plugin;

pub(crate) struct OpenCode;

const EVENTS: &[(&str, Kind)] = &[
    ("tool.execute.before", Kind::ToolCall),
    ("tool.execute.after", Kind::ToolResult),
    ("chat.message", Kind::Prompt),
    ("text.complete", Kind::Sending),
    ("session.start", Kind::SessionStart),
    ("session.end", Kind::SessionEnd),
];

impl Adapter for OpenCode {
    fn kind(&self, name: &str) -> Option<Kind> {
        kind_in(EVENTS, name)
    }

    fn read(
        &self,
        hint: Option<&str>,
        bytes: &[u8],
        home: Option<&Path>,
    ) -> Result<Event, Malformed> {
        plugin::read(Agent::OpenCode, EVENTS, hint, bytes, home)
    }

    fn write(&self, asked: &Asked<'_>, answer: &Answer) -> Output {
        plugin::write(asked, answer)
    }
}
