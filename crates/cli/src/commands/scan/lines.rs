//! `scan --jsonl`: one object a line in, one a line out, in the same order.

use std::io::{BufRead as _, Read as _};

use serde::{Deserialize, Serialize};
use wardkeep_detect::finding::Channel;
use wardkeep_detect::scan::Detector;

use super::{ChannelName, FindingJson};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Longest line that is read.
const LIMIT: u64 = 128 << 20;

#[derive(Deserialize)]
struct Request {
    id: serde_json::Value,
    text: String,
    #[serde(default)]
    channel: Option<ChannelName>,
}

#[derive(Serialize)]
struct Judged {
    id: serde_json::Value,
    verdict: String,
    score: f32,
    findings: Vec<FindingJson>,
}

pub(super) fn run(
    context: &mut Context,
    detector: &Detector,
    channel: Channel,
) -> Result<Exit, CliError> {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    let mut lines = 0u64;
    for number in 1u64.. {
        line.clear();
        let read = input.by_ref().take(LIMIT).read_until(b'\n', &mut line).map_err(|error| {
            CliError::io("read", std::path::Path::new("standard input"), &error)
        })?;
        if read == 0 {
            break;
        }
        let request: Request = serde_json::from_slice(&line).map_err(|error| {
            CliError::refused(
                format!("line {number} is no request: {error}"),
                r#"give lines like {"id":1,"text":"…","channel":"tool_output"}"#,
            )
        })?;
        let scan = detector.scan(&request.text, request.channel.map_or(channel, Channel::from));
        lines += 1;
        let judged = Judged {
            id: request.id,
            verdict: scan.verdict.to_string(),
            score: scan.score,
            findings: scan.findings.iter().map(FindingJson::from).collect(),
        };
        context.ui.line_of_json(&judged);
    }
    if lines == 0 {
        context.ui.note("standard input held nothing");
    }
    // The lines are the answer; what is in them is no failure of the command.
    Ok(Exit::Success)
}
