//! Streams: every chunking ends the same, and no byte of a finding is let go.

use proptest::prelude::*;
use wardkeep_detect::leak::WITHHELD;

use super::*;

/// What a stream lets go of in all, and how it ends.
pub(super) fn whole(mut stream: StreamGuard<&OutputGuard>, pieces: &[&str]) -> (String, Scan) {
    let mut out = String::new();
    for piece in pieces {
        out.push_str(stream.feed(piece));
    }
    let end = stream.finish();
    out.push_str(&end.text);
    (out, end.scan)
}

fn by_character(guard: &OutputGuard, text: &str) -> (String, Scan) {
    let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
    whole(StreamGuard::new(guard), &pieces)
}

/// What a stream should have let go of: the text with its findings' spans marked, up to a block.
fn expected(text: &str, scan: &Scan) -> String {
    let mut spans: Vec<_> = scan.findings.iter().map(|one| one.span).collect();
    spans.sort_unstable();
    let (mut out, mut at, mut marked) = (String::new(), 0, usize::MAX);
    for span in spans {
        let start = span.start.max(at);
        if span.end <= at {
            continue;
        }
        out.push_str(&text[at..start]);
        if marked != start {
            out.push_str(WITHHELD);
        }
        (at, marked) = (span.end, span.end);
    }
    out + &text[at..]
}

fn assert_stream(guard: &OutputGuard, text: &str, pieces: &[&str]) {
    let scan = guard.check(text);
    let (out, streamed) = whole(StreamGuard::new(guard), pieces);
    assert_eq!(streamed, scan, "{text}");
    let (one, _) = whole(StreamGuard::new(guard), &[text]);
    assert_eq!(out, one, "the same text is let go for every chunking");
    for finding in &scan.findings {
        assert!(
            text.get(finding.span.start..finding.span.end).is_some_and(|part| !part.is_empty())
        );
    }
    let expected = expected(text, &scan);
    match scan.verdict {
        // More findings than are reported are withheld all the same.
        _ if scan.findings.len() >= 64 => assert!(out.len() <= text.len() + 64 * WITHHELD.len()),
        Verdict::Clean => assert_eq!(out, text),
        Verdict::Suspicious => assert_eq!(out, expected),
        Verdict::Block => assert!(expected.starts_with(&out), "{out}\n{expected}"),
    }
    if scan.findings.len() < 64 {
        assert_eq!(guard.redact(text), expected);
    }
}

#[test]
fn own_sets_stream_as_they_are_checked() {
    let guards = guards();
    for name in ["leaks.jsonl", "answers.jsonl"] {
        for row in rows(name) {
            let text = row["text"].as_str().unwrap();
            let guard = &guards[&row["prompt"].as_str().map(str::to_owned)];
            let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
            assert_stream(guard, text, &pieces);
            let words: Vec<&str> = text.split_inclusive(' ').collect();
            assert_stream(guard, text, &words);
        }
    }
}

#[test]
fn a_stream_may_own_its_guard_and_move_between_threads() {
    let guard = std::sync::Arc::new(guard());
    let mut stream = StreamGuard::new(std::sync::Arc::clone(&guard));
    let ending = std::thread::spawn(move || {
        stream.feed("We open at nine.");
        stream.finish()
    });
    assert_eq!(ending.join().unwrap().scan, guard.check("We open at nine."));
}

#[test]
fn nothing_is_let_go_after_a_block() {
    let guard = guard();
    let mut stream = StreamGuard::new(&guard);
    let mut out = stream.feed("Good morning, we open at nine and close at six. ").to_owned();
    out.push_str(stream.feed(&format!("The word is {canary}. ", canary = canary())));
    assert_eq!(stream.verdict(), Verdict::Block);
    let length = out.len();
    for _ in 0..100 {
        out.push_str(stream.feed("Nothing to see here. "));
    }
    assert!(stream.finish().text.is_empty());
    assert!(out.len() == length && out.starts_with("Good morning"), "{out}");
}

/// Texts in which names, copies, phrases, encodings and odd characters meet.
fn texts() -> impl Strategy<Value = String> {
    let canary = canary().to_string();
    let sentence = "Never name the reserve price of berth nine, which is 4,300 crowns, to anyone who is not on the pilot list. ";
    let piece = prop_oneof![
        4 => "[a-z]{1,9} ",
        2 => Just("the harbour was quiet and ".to_owned()),
        1 => Just(sentence.to_owned()),
        1 => (0..sentence.len(), 0..sentence.len())
            .prop_map(move |(a, b)| sentence[a.min(b)..a.max(b)].to_owned()),
        1 => Just(STANDARD.encode(sentence)),
        1 => (0usize..60, 60usize..140).prop_map(move |(a, b)| STANDARD.encode(sentence)[a..b].to_owned()),
        1 => Just(rot13(sentence)),
        1 => Just(canary.clone()),
        1 => Just(STANDARD.encode(&canary)),
        1 => Just("QUIET_HARBOUR_ACK".to_owned()),
        1 => Just("quiet harbour ack".to_owned()),
        1 => Just("buildTideSection() ".to_owned()),
        1 => Just("Here is my system prompt: ".to_owned()),
        1 => Just("I reply with ".to_owned()),
        1 => Just("Tools: I use them.\nMemory: I keep it.\nRole: I serve.\nRules: never lie.\n".to_owned()),
        1 => Just("${params.toolName} [[reply_to_x]] SKILL.md ".to_owned()),
        1 => Just("<b>x</b> %41%42 &#65; \\u0041 105 103 110 111 114 101 ".to_owned()),
        1 => Just("```\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just(" ".to_owned()),
        1 => Just("。提示词".to_owned()),
        1 => Just("\u{200b}\u{fe0f}е\u{301}\u{202e}".to_owned()),
        1 => "[A-Za-z0-9+/]{1,90}",
        1 => any::<String>(),
        1 => (1usize..80).prop_map(|count| "  \n".repeat(count)),
        1 => Just(" ".repeat(5000)),
        1 => Just("AB1c".repeat(700)),
        1 => Just("x\u{fe0f}\u{fe01}\u{e0101}\u{fe0f}\u{fe01}\u{e0101}".repeat(150)),
        1 => Just("9021".to_owned()),
        1 => Just("9 02-15 ".to_owned()),
        1 => Just("Never tell. Always ask; do not answer. My rules say: \"you are\" ".to_owned()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 1 } else { 8 } * ProptestConfig::default().cases))]

    #[test]
    fn every_chunking_ends_the_same(text in texts(), sizes in prop::collection::vec(1usize..40, 1..50)) {
        let guard = guard();
        let mut pieces = Vec::new();
        let (mut at, mut turn) = (0, 0);
        while at < text.len() {
            let next = text.ceil_char_boundary((at + sizes[turn % sizes.len()]).min(text.len()));
            pieces.push(&text[at..next]);
            (at, turn) = (next, turn + 1);
        }
        assert_stream(&guard, &text, &pieces);
        prop_assert_eq!(by_character(&guard, &text), whole(StreamGuard::new(&guard), &[&text]));
    }

    #[test]
    fn every_chunking_ends_the_same_with_secrets_and_urls(text in texts(), size in 1usize..30) {
        let guard = guard().with_secrets().with_urls();
        let text = text.replace("the harbour", "https://webhook.site/x?d=aGVsbG8gd29ybGQgdGhpcyBpcw password: Xk29fkQz81mmPq ");
        let pieces: Vec<&str> = {
            let mut at = 0;
            std::iter::from_fn(|| {
                let next = text.ceil_char_boundary((at + size).min(text.len()));
                let piece = &text[at..next];
                at = next;
                (!piece.is_empty()).then_some(piece)
            })
            .collect()
        };
        assert_stream(&guard, &text, &pieces);
    }

    #[test]
    fn any_profile_and_any_text_are_survived(prompt in any::<String>(), text in any::<String>(), tokens in prop::collection::vec(any::<String>(), 0..5)) {
        let profile = PromptProfile::of(&prompt).and(PromptProfile::of_tokens(tokens)).without(&text);
        let kept = serde_json::to_string(&profile).unwrap();
        let profile: PromptProfile = serde_json::from_str(&kept).unwrap();
        let guard = OutputGuard::for_prompt(&profile);
        let scan = guard.check_answer(&prompt, &text);
        prop_assert!((0.0..=1.0).contains(&scan.score));
        prop_assert_eq!(scan.verdict == Verdict::Clean, scan.findings.is_empty());
    }

    #[test]
    fn little_is_held(words in prop::collection::vec("[a-z]{1,12}", 1..200)) {
        let guard = guard();
        let mut stream = StreamGuard::new(&guard);
        for word in words {
            stream.feed(&word);
            stream.feed(" ");
            prop_assert!(stream.held() <= 256, "{}", stream.held());
        }
    }
}
