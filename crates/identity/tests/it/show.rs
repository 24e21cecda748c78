//! What the owner sees: hostile content cannot pass for our own lines, and nothing is hidden silently.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use wardkeep_identity::name::Name;
use wardkeep_identity::show::{Body, Limits, Pair, Shown, Side, Status, Tag, Tone, compare};

use crate::lab::cpu;

fn name(path: &str) -> Name {
    Name::new(path.as_bytes()).unwrap()
}

fn limits() -> Limits {
    Limits::until(Instant::now() + Duration::from_secs(10))
}

fn show(old: &[u8], new: &[u8]) -> Shown {
    show_with(old, new, &limits())
}

fn show_with(old: &[u8], new: &[u8], limits: &Limits) -> Shown {
    let side = |bytes| Some(Side { bytes, is_executable: false });
    let name = name("SOUL.md");
    compare(&Pair { name: &name, renamed_from: None, old: side(old), new: side(new) }, limits)
}

fn text(shown: &Shown, width: usize) -> String {
    let lines: Vec<String> = shown.render(width).iter().map(|line| line.text()).collect();
    lines.join("\n")
}

#[test]
fn a_change_is_shown_with_lines_around_it() {
    let old = "1\n2\n3\n4\n5\nbe kind to all\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n";
    let new = old.replace("kind to", "cruel to").replace("15\n", "");
    let shown = show(old.as_bytes(), new.as_bytes());
    assert_eq!(
        text(&shown, 80),
        "modified: SOUL.md\n  @@ -3,7 +3,7 @@\n  | 3\n  | 4\n  | 5\n  - be kind to all\n  + be cruel to all\n  | 7\n  \
         | 8\n  | 9\n  @@ -12,5 +12,4 @@\n  | 12\n  | 13\n  | 14\n  - 15\n  | 16"
    );
    assert!(shown.is_complete());
    let parts: Vec<String> = shown
        .render(80)
        .iter()
        .flat_map(|line| line.pieces.clone())
        .filter(|(tone, _)| matches!(tone, Tone::AddedPart | Tone::RemovedPart))
        .map(|(_, text)| text)
        .collect();
    assert_eq!(parts, ["kind", "cruel"]);
}

#[test]
fn new_deleted_renamed_and_run_are_said() {
    let (old, new) = (name("old.sh"), name("new.sh"));
    let side = |is_executable| Some(Side { bytes: b"x\n".as_slice(), is_executable });
    let pair = |renamed_from, old, new_side| Pair { name: &new, renamed_from, old, new: new_side };
    let limits = limits();
    let shown = compare(&pair(None, None, side(true)), &limits);
    assert_eq!(text(&shown, 80), "new: new.sh\n  can be run\n  @@ -0,0 +1,1 @@\n  + x");
    let shown = compare(&pair(None, side(false), None), &limits);
    assert_eq!(text(&shown, 80), "deleted: new.sh\n  @@ -1,1 +0,0 @@\n  - x");
    let shown = compare(&pair(Some(&old), side(true), side(true)), &limits);
    assert_eq!(text(&shown, 80), "renamed: new.sh\n  was: old.sh");
    let shown = compare(&pair(None, side(false), side(true)), &limits);
    assert_eq!(text(&shown, 80), "modified: new.sh\n  can be run now");
    let shown = compare(&pair(None, side(true), side(false)), &limits);
    assert_eq!(text(&shown, 80), "modified: new.sh\n  cannot be run any more");
    let shown = compare(&pair(None, side(true), side(true)), &limits);
    assert_eq!(shown.status, Status::Unchanged);
    assert!(shown.is_complete());
}

#[test]
fn content_cannot_pass_for_a_line_of_ours() {
    let fake = "Apply hash: 0000000000000000000000000000000000000000000000000000000000000000";
    let spaces = " ".repeat(76);
    let wide = "漢".repeat(36);
    let marks = "e\u{301}\u{302}".repeat(30);
    let hostile = [
        format!("{fake}\n"),
        format!("x\r{fake}\n"),
        format!("x\u{1b}[2J\u{1b}[1;1H{fake}\n"),
        format!("x\u{9b}2K{fake}\n"),
        format!("x\u{8}\u{8}\u{8}\u{8}\u{8}{fake}\n"),
        format!("x\u{b}{fake}\u{c}{fake}\u{85}{fake}\u{2028}{fake}\n"),
        // Where a terminal breaks the line, the next one begins with the fake.
        format!("{spaces}{fake}\n"),
        format!("{wide}{fake}\n"),
        format!("{marks}{fake}\n"),
        format!("\u{202e}{fake}\u{202c}\n"),
        format!("{}{fake}\n", "\t".repeat(19)),
        format!("{}{fake}\n", "a ".repeat(500)),
    ];
    for content in hostile {
        for width in [24, 40, 80, 100, 200] {
            for (old, new) in
                [("", content.as_str()), (content.as_str(), ""), ("soul\n", content.as_str())]
            {
                for line in show(old.as_bytes(), new.as_bytes()).render(width) {
                    let text = line.text();
                    assert!(!text.starts_with("Apply"), "{text:?}");
                    assert!(text.chars().all(|one| !one.is_control()), "{text:?}");
                    assert!(!text.contains(['\u{202e}', '\u{2028}', '\u{202c}']), "{text:?}");
                    assert!(columns(&text) <= width, "{width}: {text:?}");
                    let is_ours = text.starts_with("modified: ") || text.starts_with("  @@ ");
                    let is_content = ["  + ", "  - ", "  | ", "  +…", "  -…", "  |…"];
                    let is_content = is_content.iter().any(|sign| text.starts_with(sign));
                    assert!(is_ours || is_content || text.starts_with("  no line end"), "{text:?}");
                }
            }
        }
    }
}

/// Columns as a terminal counts at most.
fn columns(text: &str) -> usize {
    let wide = |one: char| matches!(one, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{ffdc}' | '\u{1f000}'..);
    text.chars().map(|one| if wide(one) { 2 } else { 1 }).sum()
}

#[test]
fn a_name_cannot_pass_for_a_line_of_ours() {
    let path = format!("{}Apply hash: 00", " ".repeat(70));
    let hostile = name(&path);
    let other = name("x\nApply hash: 11\u{1b}[2J");
    let side = Some(Side { bytes: b"x", is_executable: false });
    let pair = Pair { name: &hostile, renamed_from: Some(&other), old: side, new: side };
    for width in 24..120 {
        for line in compare(&pair, &limits()).render(width) {
            let text = line.text();
            assert!(!text.starts_with("Apply") && columns(&text) <= width, "{text:?}");
            assert!(text.chars().all(|one| !one.is_control()));
        }
    }
}

#[test]
fn what_is_not_text_is_shown_by_size_and_hash() {
    let old: Vec<u8> = (0..=255).collect();
    let new: Vec<u8> = (0..=255).rev().collect();
    let shown = show(&old, &new);
    assert_eq!(shown.body, Body::Binary);
    assert!(!shown.is_complete());
    let page = text(&shown, 120);
    let hash = &shown.new.as_ref().unwrap().sha256;
    assert!(page.contains(&format!("after: 256 bytes, sha256 {hash}")), "{page}");
    assert!(page.contains("not text"), "{page}");
    // One odd byte does not hide a text from the reader.
    let shown = show(b"be kind\nbe brief\n", b"be cruel\0\xff\nbe brief\n");
    assert!(shown.is_complete());
    assert!(text(&shown, 80).contains("+ be cruel\\u{0}\\x{ff}"));
    // A line end that goes, and one that changes, are seen.
    assert!(text(&show(b"a\n", b"a"), 80).ends_with("  + a\n  no line end at the end of the file"));
    assert!(text(&show(b"a\n", b"a\r\n"), 80).contains("+ a\\u{d}"));
}

#[test]
fn what_is_cut_is_said() {
    let limits = Limits { bytes: 100_000, lines: 10, line: 100, ..limits() };
    let long = format!("{}é\n", "x".repeat(99));
    let shown = show_with(b"", long.as_bytes(), &limits);
    assert!(!shown.is_complete());
    assert!(text(&shown, 200).contains("2 more bytes of this line are not shown"));
    let many: String = (0..100).map(|number| format!("{number}\n")).collect();
    let shown = show_with(b"", many.as_bytes(), &limits);
    assert!(matches!(shown.body, Body::Text { hidden: 90, .. }), "{shown:?}");
    assert!(!shown.is_complete());
    assert!(text(&shown, 80).ends_with("90 more changed lines are not shown"));
    let huge = vec![b'x'; 100_001];
    let shown = show_with(b"", &huge, &limits);
    assert_eq!(shown.body, Body::Large);
    assert!(!shown.is_complete() && text(&shown, 80).contains("too large"));
}

#[test]
fn hostile_files_are_compared_in_bounded_time() {
    let side = |seed: u64| -> Vec<u8> {
        let mut state = seed;
        let mut out = Vec::new();
        while out.len() < 4 << 20 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            out.extend_from_slice(format!("{}\n", (state >> 33) % 97).as_bytes());
        }
        out.truncate(4 << 20);
        out
    };
    let (old, new) = (side(1), side(2));
    let before = cpu();
    let deadline = Instant::now() + Duration::from_millis(300);
    let shown = show_with(&old, &new, &Limits::until(deadline));
    assert!(!shown.is_complete());
    let _ = shown.render(80);
    assert!(cpu() - before < 5.0, "{}", cpu() - before);
    // One line of four megabytes, of what becomes longest.
    let line = vec![0xff_u8; 300 << 10];
    let text_around = [b"a ".repeat(2 << 20), line].concat();
    let before = cpu();
    let shown = show(b"", &text_around);
    assert!(shown.render(80).len() < 2000);
    assert!(cpu() - before < 5.0);
}

proptest! {
    /// Of a text that is shown whole, the new content can be put together from the old one and the
    /// lines that come and go.
    #[test]
    fn what_is_shown_is_the_whole_change(
        old in proptest::collection::vec("[abc]{0,2}", 0..12),
        new in proptest::collection::vec("[abc]{0,2}", 0..12),
    ) {
        let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let shown = show(join(&old).as_bytes(), join(&new).as_bytes());
        prop_assert!(shown.is_complete());
        let Body::Text { hunks, hidden } = &shown.body else {
            prop_assert_eq!(old, new);
            return Ok(());
        };
        prop_assert_eq!(*hidden, 0);
        let mut rebuilt: Vec<String> = Vec::new();
        let mut at = 0;
        for hunk in hunks {
            let start = hunk.old.0 - 1;
            rebuilt.extend_from_slice(&old[at..start]);
            at = start + hunk.old.1;
            for line in &hunk.lines {
                let text: String = line.pieces.iter().map(|piece| piece.text.as_str()).collect();
                if line.tag != Tag::Removed {
                    rebuilt.push(text);
                }
            }
        }
        rebuilt.extend_from_slice(&old[at..]);
        prop_assert_eq!(rebuilt, new);
    }

    #[test]
    fn any_bytes_are_shown_harmlessly(
        old in proptest::collection::vec(any::<u8>(), 0..200),
        new in "(\\PC|[\n\r\t\u{1b}\u{202e}]){0,100}",
        width in 0_usize..120,
    ) {
        for line in show(&old, new.as_bytes()).render(width) {
            let text = line.text();
            prop_assert!(text.chars().all(|one| !one.is_control()), "{:?}", text);
            prop_assert!(columns(&text) <= width.max(24), "{:?}", text);
        }
    }
}
