//! Any text read in every way: each reading leads back to places of the original.

#![no_main]

use wardkeep_detect::finding::Span;
use wardkeep_detect::views::{Limits, View, views};

const TIGHT: Limits = Limits { max_depth: 2, max_views: 5, max_decoded_bytes: 512 };

fn judge_view(text: &str, view: &View<'_>, salt: usize) {
    let length = view.text().len();
    let check = |from: usize, to: usize| {
        let Span { start, end } = view.span(from..to);
        let part = text.get(start..end).expect("a place of the original");
        assert!(from == to || !part.is_empty(), "{from}..{to} comes from somewhere");
        let _ = view.altered(from..to);
    };
    check(0, length);
    check(length, length);
    // Not only on character boundaries: a range is bytes.
    for n in 0..48usize {
        let from = n.wrapping_mul(salt | 1) % (length + 1);
        let wide = (n * n).wrapping_add(salt) % (length - from + 1);
        check(from, from + wide);
        check(from, (from + 1).min(length));
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let salt = data.iter().fold(7usize, |sum, byte| sum.wrapping_mul(31) ^ usize::from(*byte));
    for limits in [Limits::default(), TIGHT] {
        let read = views(text, &limits);
        assert!(!read.views.is_empty(), "the text itself is a reading");
        assert!(read.views.len() <= limits.max_views);
        let decoded: usize = read.views.iter().skip(1).map(|view| view.text().len()).sum();
        assert!(decoded <= limits.max_decoded_bytes.min(text.len() * 2 + (1 << 16)));
        for view in &read.views {
            judge_view(text, view, salt);
        }
        for hidden in &read.hidden {
            let part = text.get(hidden.span.start..hidden.span.end);
            assert!(part.is_some_and(|part| !part.is_empty()), "{hidden:?}");
        }
    }
});
