//! What is told of what goes through the proxy: on standard error, to a collector, and on the page.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use wardkeep_evidence::time::Timestamp;
use wardkeep_gateway::llm::{Ended, Exchange, Otlp, Outcome, Ruling, Seen, Watch, Withheld};
use wardkeep_monitor::journal::Clock;

use crate::ui::{Remarks, harmless};

/// A line for each thing that is refused or withheld; with `all`, for everything.
pub(super) struct Inspect {
    pub(super) all: bool,
    pub(super) remarks: Remarks,
}

/// All who are told.
pub(super) struct Watches(pub(super) Inspect, pub(super) Option<Otlp>, pub(super) Arc<Told>);

/// What was told lately, for the page.
pub(super) struct Told {
    clock: Clock,
    pub(super) lines: Newest,
    pub(super) errors: Newest,
}

impl Told {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, lines: Newest::new(50), errors: Newest::new(20) }
    }
}

impl Watch for Told {
    fn seen(&self, seen: &Seen<'_>) {
        let now = self.clock.now();
        self.lines.push(now, told(seen, true));
        self.errors.push(now, error(seen).into_iter().collect());
    }
}

/// The newest lines, and when they were told.
pub(super) struct Newest {
    most: usize,
    lines: Mutex<VecDeque<(Timestamp, String)>>,
}

impl Newest {
    fn new(most: usize) -> Self {
        Self { most, lines: Mutex::default() }
    }

    fn push(&self, now: Timestamp, told: Vec<String>) {
        /// Bytes of a line: names of models and tools are as long as someone wants.
        const LONGEST: usize = 2 << 10;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for mut line in told {
            line.truncate(line.floor_char_boundary(LONGEST));
            line.shrink_to_fit();
            lines.push_front((now, line));
        }
        lines.truncate(self.most);
    }

    pub(super) fn newest_first(&self) -> Vec<(String, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|(time, line)| (time.to_string(), line.clone())).collect()
    }
}

impl Watch for Watches {
    fn seen(&self, seen: &Seen<'_>) {
        self.0.seen(seen);
        if let Some(otlp) = &self.1 {
            otlp.seen(seen);
        }
        self.2.seen(seen);
    }
}

impl Watch for Inspect {
    fn seen(&self, seen: &Seen<'_>) {
        for line in told(seen, self.all) {
            self.remarks.line(&harmless(&line));
        }
    }
}

/// What is told of what went through: what is refused or withheld; with `all`, everything.
pub(in crate::commands) fn told(seen: &Seen<'_>, all: bool) -> Vec<String> {
    match seen {
        Seen::Request { request, sent, marked, withheld, block, at } if all => {
            let length = block.map_or(0, str::len);
            let block = match at {
                Some(at) => format!("added a block of {length} bytes at byte {at}"),
                None if length > 0 => format!("the block of {length} bytes was there"),
                None => "added no block".to_owned(),
            };
            let line = format!(
                "{} {} {}: {} messages, {} bytes in, {sent} out; {block}, marked {marked} results, \
                 withheld {}",
                request.session,
                request.wire,
                request.model.as_deref().unwrap_or("-"),
                request.messages,
                request.size,
                withheld.len(),
            );
            let each = withheld.iter().map(|one| told_of_withheld(&request.session, one));
            std::iter::once(line).chain(each).collect()
        }
        Seen::Denied { request, denial } => {
            vec![format!("{} refused a request: {denial}", request.session)]
        }
        Seen::Call { exchange, ruling: Ruling::Deny(why), .. } => {
            vec![format!("{} {why}", exchange.session)]
        }
        Seen::Call { exchange, call, ruling: Ruling::Allow } if all => {
            vec![format!("{} allowed a call of {}", exchange.session, call.name)]
        }
        Seen::Reply { exchange, outcome } => told_of_reply(exchange, outcome, all),
        _ => Vec::new(),
    }
}

fn told_of_withheld(session: &str, withheld: &Withheld) -> String {
    let Withheld { tool, bytes, excerpt, instead } = withheld;
    let whose = match tool {
        Some(tool) => format!("what {tool} gave"),
        None => "what the user said".to_owned(),
    };
    format!("{session} withheld {whose}: {bytes} bytes, `{excerpt}`; instead: {instead}")
}

fn told_of_reply(exchange: &Exchange, outcome: &Outcome, all: bool) -> Vec<String> {
    let (session, report) = (&exchange.session, &outcome.report);
    let mut lines = Vec::new();
    if report.withheld > 0 {
        let (count, rules) = (report.withheld, report.rules.join(", "));
        lines.push(format!("{session} withheld {count} places of a reply ({rules})"));
    }
    match &outcome.ended {
        Ended::Cut(why) => lines.push(format!("{session} cut a reply off: {why}")),
        Ended::Failed(why) => lines.push(format!("{session} got no whole reply: {why}")),
        _ if all => lines.push(format!(
            "{session} replied: status {}, {} bytes, tokens {} in and {} out, ended by {}",
            outcome.status.unwrap_or_default(),
            outcome.received,
            report.input_tokens.unwrap_or_default(),
            report.output_tokens.unwrap_or_default(),
            report.stop.as_deref().unwrap_or("-"),
        )),
        _ => {}
    }
    lines
}

/// What went wrong, if something did.
fn error(seen: &Seen<'_>) -> Option<String> {
    match seen {
        Seen::Refused { status, why } => Some(format!("refused with {status}: {why}")),
        Seen::Reply { exchange, outcome } => match (&outcome.ended, outcome.status) {
            (Ended::Cut(_) | Ended::Failed(_), _) => told_of_reply(exchange, outcome, false).pop(),
            (_, Some(status)) if status >= 400 => {
                Some(format!("{} got an error of the model's server: {status}", exchange.session))
            }
            _ => None,
        },
        _ => None,
    }
}
