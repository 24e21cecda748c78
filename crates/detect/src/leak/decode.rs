//! Stretches that are read in other ways: decoded, and for credentials and addresses.

use std::borrow::Cow;
use std::ops::Range;

use super::coded::{Classes, is_space};
use super::evidence::{Count, Evidence, Signal};
use super::letters::Run;
use super::scanner::Scanner;
use super::stream::State;
use super::token::{Raw, Token};
use super::{COPY, OutputGuard};
use crate::finding::{Category, Finding, Span};
use crate::secrets::find_secrets;
use crate::urls::{UrlContext, find_urls, judge_url};
use crate::views::{Limits, View, views};

/// What stands before a stretch and is read with it, for credentials and addresses.
pub(super) const CONTEXT: usize = 96;
/// How far the readings of one stretch go.
const LIMITS: Limits = Limits { max_depth: 4, max_views: 24, max_decoded_bytes: 8 << 10 };

impl State {
    /// Reads a stretch in every other way that there is a reason for.
    pub(super) fn decode(&mut self, guard: &OutputGuard, range: Range<usize>) {
        let start = self.buffer.floor_char_boundary(range.start.max(self.base) - self.base);
        let end = self.buffer.ceil_char_boundary(range.end - self.base);
        let text = &self.buffer[start..end];
        for view in views(text, &LIMITS).views {
            if !view.path().is_empty() {
                read_view(guard, &mut self.scanner, &mut self.evidence, &view, self.base + start);
            }
        }
        if guard.secrets || guard.urls {
            self.look_for_addresses(guard, start..end);
        }
    }

    /// Credentials and addresses in a stretch, with a little of what stands before it.
    fn look_for_addresses(&mut self, guard: &OutputGuard, range: Range<usize>) {
        let from = self.buffer.ceil_char_boundary(range.start.saturating_sub(CONTEXT));
        let text = &self.buffer[from..range.end];
        // What stands before the stretch may have been let go.
        let place = |span: Span| Span {
            start: self.base + (from + span.start).max(range.start),
            end: self.base + from + span.end,
        };
        let mut found = Vec::new();
        if guard.secrets {
            for secret in find_secrets(text).into_iter().filter(|secret| secret.confidence >= 0.5) {
                found.push(Finding {
                    rule: format!("secret.{}", secret.kind).into(),
                    category: Category::SensitiveFileContent,
                    weight: secret.confidence * 0.8,
                    span: place(secret.span),
                    path: Vec::new(),
                    reason: Cow::Borrowed("A credential is written here."),
                });
            }
        }
        if guard.urls {
            for url in find_urls(text) {
                let context = UrlContext { from_model: true, ..url.context };
                for risk in judge_url(&url, context) {
                    found.push(Finding {
                        rule: format!("url.{:?}", risk.kind).to_lowercase().into(),
                        category: Category::DataExfiltration,
                        weight: risk.weight * 0.8,
                        span: place(url.span),
                        path: Vec::new(),
                        reason: risk.reason,
                    });
                }
            }
        }
        for one in found {
            if one.span.end > self.base + range.start {
                self.evidence.add_found(one);
            }
        }
    }
}

/// Reads one view of a stretch that begins at `offset`.
fn read_view(
    guard: &OutputGuard,
    scanner: &mut Scanner,
    evidence: &mut Evidence,
    view: &View<'_>,
    offset: usize,
) {
    let text = view.text();
    let raw = Raw { text, base: 0 };
    let mut branch = scanner.branch();
    let bytes = text.as_bytes();
    let (mut newlines, mut at) = (1, 0);
    while at < bytes.len() {
        if is_space(bytes[at]) {
            newlines += u32::from(bytes[at] == b'\n');
            at += 1;
            continue;
        }
        if newlines == 0 {
            let done = branch.skim(guard, &bytes[at..], at);
            if done > 0 {
                at += done;
                continue;
            }
        }
        let (classes, end) = Classes::of(bytes, at, bytes.len());
        let token = Token { text: &text[at..end], start: at, newlines, classes };
        branch.token(guard, raw, token);
        (newlines, at) = (0, end);
    }
    branch.finish(guard);
    let runs = branch.letters.closed.drain(..).map(|run| copy(guard, &run));
    for mut signal in runs.chain(branch.signals.drain(..)) {
        let range = signal.span.start..signal.span.end;
        // What was not hidden was met before.
        if !view.altered(range.clone()) {
            continue;
        }
        let span = view.span(range);
        signal.span = Span { start: span.start + offset, end: span.end + offset };
        signal.path.splice(..0, view.path().iter().copied());
        evidence.add(signal);
    }
    scanner.join(branch);
}

/// What a stretch that follows the prompt says.
pub(super) fn copy(guard: &OutputGuard, run: &Run) -> Signal {
    Signal {
        rule: &COPY,
        weight: guard.weight_of_copy(run.matched),
        count: Count::Each(guard.weight_of_copy(run.fresh)),
        span: Span { start: run.start, end: run.end },
        tail: false,
        path: run.way.path().to_vec(),
    }
}
