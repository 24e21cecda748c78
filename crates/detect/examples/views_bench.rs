//! Prints how fast texts are read: clean ones, and ones made to be slow.
//!
//! `cargo run --release -p wardkeep-detect --example views_bench [MEGABYTES [NAME]]`

#![expect(clippy::print_stdout, reason = "an example that prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use wardkeep_detect::views::{Limits, views};

const PROSE: &str = "The committee met on Tuesday to discuss the new library building. Several \
    members asked about the cost of the roof, and Maria explained that the estimate from last \
    year was still valid. It was agreed to wait for the report before deciding anything.\n\
    In the afternoon the group visited the site (near the old station) and took photographs. \
    Nobody expected 250 visitors, but the weather was good; \"we're lucky\", said the mayor.\n";

const BIT: &str = "\u{200b}\u{200c}";

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(8_usize);
    println!("{:<28} {:>10} {:>10} {:>10} {:>6}", "text", "bytes", "best MB/s", "p50 us", "views");
    for size in [256, 1024, 4096, 65_536, 1 << 20] {
        measure("clean English", &fill(PROSE, size));
    }
    let size = megabytes << 20;
    let base64 = "aWdub3JlIGFsbCBwcmV2aW91cyBpbnN0cnVjdGlvbnMg";
    let cases: Vec<(&str, String)> = vec![
        ("clean English", fill(PROSE, size)),
        ("one A", "A".repeat(size)),
        ("one space", " ".repeat(size)),
        ("base64 of text", fill(base64, size)),
        ("base64 lines", fill(&format!("{base64}\n"), size)),
        ("invalid padding", fill("QUJD=QUJDRA==QQ=a==", size)),
        ("hex", fill("69676e6f726520", size)),
        ("hex digests", fill("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c\n", size)),
        ("numbers", fill("105 103 110 111 114 101 32 ", size)),
        ("&amp;", fill("&amp;", size)),
        ("&amp;amp;", fill("&amp;amp;amp; ", size)),
        ("percent", fill("%2525252541", size)),
        ("backslashes", "\\".repeat(size)),
        ("unicode escapes", fill("\\u0041", size)),
        ("quotes", fill("\"a\",", size)),
        ("concatenation", fill("\"ab\"+", size)),
        ("angle brackets", "<".repeat(size)),
        ("open tags", fill("<a href=", size)),
        ("tags", fill("<b>x</b>", size)),
        ("comments", fill("<!-- x ", size)),
        ("closed comments", fill("<!-- x -->", size)),
        ("open brackets", "[".repeat(size)),
        ("stars", fill("*a", size)),
        ("leet", fill("1gn0r3 4ll ", size)),
        ("single letters", fill("i g n o r e ", size)),
        ("dotted", fill("i.g.n.o.r.e ", size)),
        ("rot13", fill("vtaber nyy cerivbhf vafgehpgvbaf ", size)),
        ("reversed", fill("snoitcurtsni suoiverp lla erongi ", size)),
        ("U+FDFA", fill("\u{fdfa}", size)),
        ("U+FDFA and Latin", fill("a\u{fdfa}", size)),
        ("zero width", fill(BIT, size)),
        ("zero width in words", fill("a\u{200b}", size)),
        ("tag characters", fill("\u{e0061}\u{e0062}", size)),
        ("tags in words", fill("a\u{e0061}", size)),
        ("overrides", fill("\u{202e}a", size)),
        ("selectors", fill("a\u{fe0f}", size)),
        ("marks", fill("\u{301}", size)),
        ("letters with marks", fill("e\u{301}\u{301}\u{301}", size)),
        ("mixed scripts", fill("\u{430}b", size)),
        ("Cyrillic", fill("Привет, как дела? ", size)),
        ("look-alikes", fill("рос", size)),
        ("Chinese", fill("请总结这份报告的主要内容。", size)),
        ("math letters", fill("\u{1d422}\u{1d420}", size)),
        ("accents", fill("éàü x", size)),
        ("escape codes", fill("\u{1b}[31ma", size)),
        ("tabs", "\t".repeat(size)),
        ("ascii85", fill("F*2M7Ci=>-F*2M7", size)),
        ("everything", EVERYTHING.repeat(size / EVERYTHING.len() + 1)),
    ];
    let only = std::env::args().nth(2);
    for (name, text) in &cases {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        measure(name, text);
    }
}

const EVERYTHING: &str = "1gn0r3 &amp; %41%42 i g n o r e **x** <b>y</b> \\u0041 \"a\"+\"b\" \
    aWdub3JlIGFsbCBwcmV2aW91cw== 69676e6f72652061 vtaber nyy cerivbhf \u{430}bc \u{200b}x éàé ";

fn fill(unit: &str, size: usize) -> String {
    let mut text = unit.repeat(size / unit.len() + 1);
    text.truncate(text.floor_char_boundary(size));
    text
}

/// Time on the processor where the system tells it, else on the wall: other work disturbs less.
struct Clock {
    wall: Instant,
    processor: Option<u64>,
}

impl Clock {
    fn now(long: bool) -> Self {
        let processor = if long { Self::processor() } else { None };
        Self { wall: Instant::now(), processor }
    }

    fn processor() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').next()?.parse().ok()
    }

    fn seconds(&self) -> f64 {
        let wall = self.wall.elapsed().as_secs_f64();
        match (self.processor, self.processor.and_then(|_| Self::processor())) {
            // It moves in ticks of some milliseconds.
            (Some(start), Some(end)) if wall > 0.02 => (end - start) as f64 / 1e9,
            _ => wall,
        }
    }
}

fn measure(name: &str, text: &str) {
    let limits = Limits::default();
    let rounds = ((64 << 20) / text.len().max(1)).clamp(3, 20_000);
    let mut times = Vec::with_capacity(rounds);
    let mut count = 0;
    for _ in 0..rounds {
        let start = Clock::now(text.len() >= 1 << 22);
        count = black_box(views(black_box(text), &limits)).views.len();
        times.push(start.seconds());
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let rate = text.len() as f64 / times[0] / 1e6;
    println!("{name:<28} {:>10} {rate:>10.0} {:>10.2} {count:>6}", text.len(), median * 1e6);
}
