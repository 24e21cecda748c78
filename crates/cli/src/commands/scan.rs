//! `wardkeep scan`

mod excerpt;
mod files;
mod lines;
mod rules;
pub(super) mod sarif;

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use wardkeep_detect::finding::{Category, Channel, Finding, Verdict};

use self::excerpt::Place;
use self::files::{Found, Scanned};
use super::detector::{Judge, judge};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Judges text: injections, extraction attempts, secrets, data on its way out
///
/// Scans files and folders (links are not followed), or standard input with `-`. Exit 1: something is
/// not clean. With --jsonl, reads one object a line (`id`, `text`, optional `channel`) from the files
/// or from standard input and writes one a line in the same order (`id`, `verdict`, `score`,
/// `findings`); exit 1: a line could not be read, and its answer is an `error`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files and folders to scan, or `-` for standard input
    #[arg(required_unless_present_any = ["jsonl", "rules"])]
    paths: Vec<PathBuf>,
    /// Where the text comes from
    #[arg(long, value_enum, default_value_t = ChannelName::Document)]
    channel: ChannelName,
    /// Read and write JSON lines
    #[arg(long, conflicts_with = "sarif")]
    jsonl: bool,
    /// Write a SARIF 2.1.0 log instead of text
    #[arg(long)]
    sarif: bool,
    /// List the rules with what each is for, and scan nothing
    #[arg(long, conflicts_with_all = ["paths", "jsonl", "sarif"])]
    rules: bool,
}

/// A channel as it is named outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum ChannelName {
    /// The user's own prompt
    User,
    /// What a tool gave back, a web page among them
    ToolOutput,
    /// A document that the agent was given
    Document,
    /// A file of the agent's durable memory
    Memory,
    /// The owner's policy
    Policy,
    /// A skill or its description
    Skill,
    /// What the model answers
    ModelOutput,
}

impl From<ChannelName> for Channel {
    fn from(name: ChannelName) -> Self {
        match name {
            ChannelName::User => Self::User,
            ChannelName::ToolOutput => Self::ToolOutput,
            ChannelName::Document => Self::Document,
            ChannelName::Memory => Self::Memory,
            ChannelName::Policy => Self::Policy,
            ChannelName::Skill => Self::Skill,
            ChannelName::ModelOutput => Self::ModelOutput,
        }
    }
}

/// A finding as it is written out: where and why, never the text itself.
#[derive(Debug, Serialize)]
struct FindingJson {
    rule: String,
    category: String,
    weight: f32,
    start: usize,
    end: usize,
    path: Vec<String>,
    reason: String,
    fingerprint: Option<String>,
}

impl FindingJson {
    fn new(finding: &Finding, fingerprint: Option<String>) -> Self {
        Self {
            rule: finding.rule.to_string(),
            category: category(finding.category),
            weight: finding.weight,
            start: finding.span.start,
            end: finding.span.end,
            path: finding.path.iter().map(|step| format!("{step:?}")).collect(),
            reason: finding.reason.to_string(),
            fingerprint,
        }
    }
}

#[derive(Serialize)]
struct FileJson<'a> {
    file: &'a str,
    verdict: String,
    score: f32,
    findings: Vec<FindingJson>,
    unread: Option<&'a str>,
    binary: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    verdict: String,
    files: Vec<FileJson<'a>>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let judge = judge(context)?;
    let channel = Channel::from(args.channel);
    if args.rules {
        return Ok(rules::run(context, channel));
    }
    if args.jsonl {
        return lines::run(context, &judge, channel, &args.paths);
    }
    let scanned = files::scan(context, &judge, channel, &args.paths)?;
    let worst = scanned.iter().map(|file| file.verdict).max().unwrap_or(Verdict::Clean);
    let unread = scanned.iter().any(|file| file.unread.is_some());
    let exit = match (worst, unread) {
        (Verdict::Clean, false) => Exit::Success,
        (Verdict::Clean, true) => Exit::Unreadable,
        _ => Exit::Refused,
    };
    if args.sarif {
        let log = sarif::log(&scanned);
        let mut text = serde_json::to_vec_pretty(&log).unwrap_or_default();
        text.push(b'\n');
        context.ui.generated(&text);
    } else {
        for file in &scanned {
            show(context, file);
        }
    }
    let files = scanned
        .iter()
        .map(|file| FileJson {
            file: &file.name,
            verdict: file.verdict.to_string(),
            score: file.score,
            findings: file
                .found
                .iter()
                .map(|one| FindingJson::new(&one.finding, one.fingerprint.clone()))
                .collect(),
            unread: file.unread.as_deref(),
            binary: file.binary,
        })
        .collect();
    let answer = Answer { verdict: worst.to_string(), files };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}

fn show(context: &mut Context, file: &Scanned) {
    if let Some(why) = &file.unread {
        context.ui.fault(format!("{}: not read: {why}", file.name));
        if file.found.is_empty() {
            return;
        }
    }
    let line = Line::from(format!("{}: ", file.name));
    let line = match file.verdict {
        Verdict::Clean => line.good("clean"),
        Verdict::Suspicious => line.strong("suspicious"),
        Verdict::Block => line.bad("block"),
    };
    let binary =
        if file.binary { ", no text: only rows of letters in it were scanned" } else { "" };
    context.ui.answer(line.plain(format!(" ({:.2}{binary})", file.score)));
    for Found { finding, place, fingerprint } in &file.found {
        let hidden = if finding.path.is_empty() {
            String::new()
        } else {
            let path: Vec<String> = finding.path.iter().map(|step| format!("{step:?}")).collect();
            format!(", hidden by {}", path.join(" in "))
        };
        let category = category(finding.category);
        let Place { line, column, shown, marks, .. } = place;
        context.ui.say(format!("  {line}:{column} {} ({category}{hidden})", finding.rule));
        context.ui.say(format!("    {}", finding.reason));
        context.ui.say(format!("    | {shown}"));
        context.ui.say(format!("    | {marks}"));
        if let Some(fingerprint) = fingerprint {
            context.ui.say(format!("    fingerprint {fingerprint}"));
        }
    }
}

fn category(category: Category) -> String {
    format!("{category:?}")
}
