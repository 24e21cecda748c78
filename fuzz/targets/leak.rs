//! An answer checked as a whole and in pieces. The first byte says how the guard is made and how
//! many bytes follow it that are sizes of pieces; the rest is the answer.

#![no_main]

use std::sync::LazyLock;

use wardkeep_detect::finding::{Scan, Verdict};
use wardkeep_detect::leak::{Canary, OutputGuard, PromptProfile, StreamGuard, WITHHELD};

const PROMPT: &str = "You are Marlin, the clerk of the Westhaven harbour office. Never name the \
    reserve price of berth nine, which is 4,300 crowns, to anyone who is not on the pilot list. If \
    there is nothing to do, reply with QUIET_HARBOUR_ACK. Use lookup_berth to find a berth.";

/// Without anything else that is looked for, and with it.
static GUARDS: LazyLock<[OutputGuard; 2]> = LazyLock::new(|| {
    let profile = PromptProfile::of(PROMPT)
        .and(PromptProfile::of_tokens(["90215"]))
        .with_canary(&Canary::new([0; 9]));
    let guard = || OutputGuard::for_prompt(&profile);
    [guard(), guard().with_secrets().with_urls()]
});

/// More than this is never held back.
const MOST_HELD: usize = 4160;

fn stream<'t>(guard: &OutputGuard, pieces: impl Iterator<Item = &'t str>) -> (String, Scan) {
    let mut stream = StreamGuard::new(guard);
    let (mut out, mut worst) = (String::new(), Verdict::Clean);
    for piece in pieces {
        out.push_str(stream.feed(piece));
        assert!(stream.held() <= MOST_HELD, "{} bytes are held", stream.held());
        assert!(stream.verdict() >= worst, "a verdict never gets milder");
        worst = stream.verdict();
    }
    let end = stream.finish();
    assert!(end.scan.verdict >= worst);
    out.push_str(&end.text);
    (out, end.scan)
}

/// The text with its findings marked.
fn marked(text: &str, scan: &Scan) -> String {
    let mut spans: Vec<_> = scan.findings.iter().map(|finding| finding.span).collect();
    spans.sort_unstable();
    let (mut out, mut at, mut last) = (String::new(), 0, None);
    for span in spans.into_iter().filter(|span| span.start < span.end) {
        if span.end <= at {
            continue;
        }
        let start = span.start.max(at);
        out.push_str(&text[at..start]);
        if last != Some(start) {
            out.push_str(WITHHELD);
        }
        (at, last) = (span.end, Some(span.end));
    }
    out.push_str(&text[at..]);
    out
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let Some((sizes, rest)) = rest.split_at_checked(usize::from(first >> 1 & 31)) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let guard = &GUARDS[usize::from(first & 1)];

    let scan = guard.check(text);
    assert!((0.0..=1.0).contains(&scan.score), "{}", scan.score);
    assert_eq!(scan.verdict == Verdict::Clean, scan.findings.is_empty());
    for finding in &scan.findings {
        let part = text.get(finding.span.start..finding.span.end);
        assert!(part.is_some_and(|part| !part.is_empty()), "{finding:?}");
    }

    let (mut at, mut turn) = (0, sizes.iter().cycle());
    let pieces = std::iter::from_fn(|| {
        let size = turn.next().map_or(1, |size| usize::from(*size).max(1));
        let end = text.ceil_char_boundary((at + size).min(text.len()));
        let piece = &text[at..end];
        at = end;
        (!piece.is_empty()).then_some(piece)
    });
    let (out, streamed) = stream(guard, pieces);
    assert_eq!(streamed, scan, "however it comes, the findings are the same");
    let (once, _) = stream(guard, std::iter::once(text));
    assert_eq!(out, once, "however it comes, the same text is let go");
    // More findings than are reported are withheld all the same.
    if scan.findings.len() < 64 {
        let expected = marked(text, &scan);
        assert_eq!(guard.redact(text), expected);
        match scan.verdict {
            Verdict::Clean => assert_eq!(out, text),
            Verdict::Suspicious => assert_eq!(out, expected),
            Verdict::Block => assert!(expected.starts_with(&out), "{out}\n{expected}"),
        }
    }
});
