//! Every credential is put together here, so that no scanner sees one in the repository.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::find_coded_secrets;
use crate::processor;
use crate::secrets::tests::{LETTERS, checked, random};
use crate::secrets::{find_joined_secrets, find_secrets, redact};

fn coded(text: &str) -> Vec<&'static str> {
    find_coded_secrets(text).iter().map(|secret| secret.kind).collect()
}

fn escaped(text: &str, some: impl Fn(usize) -> bool) -> String {
    text.bytes()
        .enumerate()
        .map(
            |(at, byte)| {
                if some(at) { format!("%{byte:02x}") } else { char::from(byte).to_string() }
            },
        )
        .collect()
}

fn hex_of(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn credentials_are_found_behind_escapes_and_digits() {
    let token = checked("ghp_", 3);
    let twice = escaped(&escaped(&token, |_| true), |at| at % 3 == 0);
    let thrice = escaped(&twice, |at| at % 2 == 0);
    let json: String = token.bytes().map(|byte| format!("\\u00{byte:02X}")).collect();
    let text = format!("user:{token}\n");
    for written in [
        escaped(&token, |at| at == 0),
        escaped(&token, |at| at == 9),
        escaped(&token, |at| at % 2 == 1),
        escaped(&token, |_| true).to_uppercase(),
        twice,
        thrice,
        json,
        STANDARD.encode(&text),
        URL_SAFE_NO_PAD.encode(&text),
        STANDARD.encode(STANDARD.encode(&text)),
        hex_of(&text),
        hex_of(&text).to_uppercase(),
        STANDARD.encode(hex_of(&text)),
        STANDARD.encode(escaped(&text, |_| true)),
        escaped(&STANDARD.encode(&text), |at| at % 5 == 0),
        // The digits begin anywhere in a path.
        format!("files/v1/{}", URL_SAFE_NO_PAD.encode(&text)),
        format!("a{}", hex_of(&text)),
        format!("xy-{}", hex_of(&text)),
    ] {
        let around = format!("GET /a/{written}?b=c HTTP/1.1");
        assert_eq!(coded(&around).first(), Some(&"github-token"), "{around}");
        let secret = find_coded_secrets(&around)[0];
        let safe = redact(&around, &[secret]);
        assert!(safe.starts_with("GET /a/") && safe.ends_with("?b=c HTTP/1.1"), "{safe}");
        assert!(coded(&safe).is_empty() && find_secrets(&safe).is_empty(), "{safe}");
    }
    for before in 0..8 {
        let bytes = format!("{}{text}", "\u{1}".repeat(before));
        assert_eq!(coded(&STANDARD.encode(&bytes)), ["github-token"], "{before}");
    }
}

#[test]
fn escapes_of_strings_and_markup_are_undone() {
    let token = checked("ghp_", 3);
    let all = |write: &dyn Fn(u8) -> String| -> String { token.bytes().map(write).collect() };
    for written in [
        all(&|byte| format!("\\x{byte:02x}")),
        all(&|byte| format!("\\u{{{byte:x}}}")),
        all(&|byte| format!("&#x{byte:02x};")),
        all(&|byte| format!("&#X{byte:04X};")),
        all(&|byte| format!("&#{byte};")),
        format!("&#{}{}", token.as_bytes()[0], &token[1..]),
        escaped(&all(&|byte| format!("&#{byte};")), |at| at % 7 == 0),
    ] {
        let around = format!("{{\"a\":\"{written}\"}}");
        assert_eq!(coded(&around), ["github-token"], "{around}");
    }
    // As strings of JSON are often written, also one in the other.
    let address = ["postgres://app:", "s9fK2mQx7Lw4", "@db.internal.corp/app"].concat();
    let hook =
        ["https://hooks.slack", ".com/services/T01ABCDEFGH/B01ABCDEFGH/aB3dE6gH9jK2mN5pQ8sT1vW4"];
    let key = STANDARD.encode(format!("???>>>???>>>{token}???>>>"));
    assert!(key.contains('/'));
    for (text, kind) in
        [(address, "postgres-url"), (hook.concat(), "slack-webhook"), (key, "github-token")]
    {
        for slash in ["\\/", "\\\\\\/", "\\u002f", "%2f"] {
            let written = text.replace('/', slash);
            assert!(coded(&written).contains(&kind), "{written}");
        }
    }
    for text in
        ["&#;", "&#x;", "&#xffffffff;", "&#99999999999;", "\\u{}", "\\u{67", "\\x6", "\\", "&#"]
    {
        assert_eq!(coded(text), [""; 0], "{text}");
    }
}

#[test]
fn keys_are_found_in_forms_and_lines() {
    let body = random(LETTERS, 600, 8);
    let lines: Vec<&str> = (0..600).step_by(60).map(|at| &body[at..at + 60]).collect();
    let key = [
        "-----BEGIN OPENSSH PRIVATE",
        " KEY-----\n",
        &lines.join("\n"),
        "\n-----END OPENSSH PRIVATE KEY-----\n",
    ]
    .concat();
    let form = escaped(&key.replace(' ', "+"), |at| key.as_bytes()[at] == b'\n');
    assert!(coded(&format!("k={form}")).contains(&"openssh-private-key"));
    let whole = STANDARD.encode(&key);
    let wrapped = |end: &str| -> String {
        whole
            .as_bytes()
            .chunks(76)
            .map(|line| format!("{}{end}", String::from_utf8_lossy(line)))
            .collect()
    };
    for text in [whole.clone(), wrapped("\n"), wrapped("\r\n"), wrapped("\\n"), wrapped("%0A")] {
        let text = format!("{{\"content\":\"{text}\"}}");
        assert!(coded(&text).contains(&"openssh-private-key"), "{text}");
    }
}

#[test]
fn lines_may_be_short_and_pairs_apart() {
    let text = format!("the token is {} and so on", checked("ghp_", 3));
    let lines = |digits: &str, length: usize, end: &str| -> String {
        let all: Vec<String> = digits
            .as_bytes()
            .chunks(length)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        all.join(end)
    };
    let (digits, pairs) = (STANDARD.encode(&text), hex_of(&text));
    for length in 16..80 {
        for end in ["\n", "\r\n", " \n", "\n    ", "\t\r\n\t", "\\n", "\\r\\n  "] {
            for all in [&digits, &pairs] {
                let written = format!("data: {}\n", lines(all, length, end));
                assert!(coded(&written).contains(&"github-token"), "{written}");
            }
        }
    }
    for apart in [" ", "  ", ":", "-", ",", ", ", "\t", "\n", ",0x", " 0x", "\r\n  0x", ", 0X"] {
        let written = format!("0x{}", lines(&pairs, 2, apart));
        assert_eq!(coded(&written), ["github-token"], "{written}");
        assert_eq!(redact(&written, &find_coded_secrets(&written)), "0x[REDACTED:github-token]");
        if !apart.contains(['\n', '0']) {
            // Sixteen to a line, as they are often shown.
            let sixteen = lines(&lines(&pairs, 2, apart), 16 * (2 + apart.len()), "\n");
            assert_eq!(coded(&sixteen), ["github-token"], "{sixteen}");
        }
    }
}

/// A text as a string of JSON, so many times one in the other.
fn in_json(text: &str, times: usize) -> String {
    (0..times)
        .fold(text.to_owned(), |inner, _| serde_json::json!({ "arguments": inner }).to_string())
}

#[test]
fn signs_in_front_hide_no_digits() {
    let token = checked("ghp_", 3);
    let hex = hex_of(&token);
    let digits = STANDARD.encode(format!("k{token}"));
    for written in [
        format!("%{hex}"),
        format!("100%{hex}"),
        format!("%25{hex}"),
        format!("%2525{hex}"),
        format!("\\x{hex}"),
        format!("\\u00{hex}"),
        format!("&#x{hex};"),
        format!("%{digits}"),
        format!("\\u00{digits}"),
        format!("&#{}", STANDARD.encode(&token)),
        format!("%{}", STANDARD.encode(format!("%{hex}"))),
        format!("%{}", hex_of(&format!("%{digits}"))),
        // Undone in each reading, not only in the last: here of the first, and of the second.
        escaped(&format!("%{hex}"), |at| at == 0),
        escaped(&escaped(&format!("%{hex}"), |at| at == 0), |at| at == 0),
        format!(
            "%{}",
            hex_of(&token)
                .as_bytes()
                .chunks(2)
                .map(String::from_utf8_lossy)
                .collect::<Vec<_>>()
                .join(" ")
        ),
    ] {
        for around in
            [format!("GET /a?q={written} HTTP/1.1"), format!("{{\"note\":\"{written}\"}}")]
        {
            assert!(coded(&around).contains(&"github-token"), "{around}");
            let safe = redact(&around, &find_coded_secrets(&around));
            assert!(coded(&safe).is_empty(), "{safe}");
        }
    }
    for seed in 0..200 {
        let token = checked("ghp_", seed);
        for written in [
            format!("v=%{}", hex_of(&token)),
            format!("v=%{}", STANDARD.encode(format!("k{token}"))),
        ] {
            assert!(coded(&written).contains(&"github-token"), "{written}");
        }
    }
}

#[test]
fn escapes_in_strings_within_strings_are_undone() {
    let token = checked("ghp_", 3);
    let rest = &token[3..];
    let all: String = token.bytes().map(|byte| format!("\\u00{byte:02x}")).collect();
    for written in
        [format!("gh\\u0070{rest}"), all, format!("gh\\x70{rest}"), format!("gh\\160{rest}")]
    {
        for times in 0..5 {
            let around = in_json(&written, times);
            assert_eq!(coded(&around), ["github-token"], "{around}");
            let safe = redact(&around, &find_coded_secrets(&around));
            assert!(
                safe.starts_with(&around[..around.find(['g', '\\']).unwrap().min(2)]),
                "{safe}"
            );
            assert!(coded(&safe).is_empty(), "{safe}");
        }
    }
    let digits = STANDARD.encode(format!("the token is {token}"));
    let lines = |end: &str| -> String {
        digits
            .as_bytes()
            .chunks(20)
            .map(|line| format!("{}{end}", String::from_utf8_lossy(line)))
            .collect()
    };
    for times in 0..5 {
        for end in ["\n", "\r\n"] {
            let around = in_json(&lines(end), times);
            assert!(coded(&around).contains(&"github-token"), "{around}");
        }
    }
    // A header in the arguments of a call.
    let value = random(LETTERS, 32, 11);
    for times in 0..4 {
        let header = serde_json::json!({ "Authorization": format!("Bearer {value}") }).to_string();
        let found = find_joined_secrets(&in_json(&header, times));
        assert_eq!(
            found.iter().filter(|one| one.kind == "bearer-authorization").count(),
            1,
            "{times}"
        );
    }
}

#[test]
fn escapes_may_be_long_or_rare() {
    let token = checked("ghp_", 3);
    let (rest, zeros) = (&token[3..], "0".repeat(100));
    for written in [
        format!("gh&#000000112;{rest}"),
        format!("gh&#x000000070;{rest}"),
        format!("gh&#{zeros}112;{rest}"),
        format!("gh&#x{zeros}70;{rest}"),
        format!("gh\\u{{000000070}}{rest}"),
        format!("gh\\u{{{zeros}70}}{rest}"),
        format!("gh&amp;#112;{rest}"),
        format!("gh&amp;amp;#x70;{rest}"),
        format!("gh%u0070{rest}"),
        format!("gh\\U00000070{rest}"),
        format!("gh\\160{rest}"),
        format!("gh\\0160{rest}"),
        token.replace('_', "\\_"),
        token.replace('_', "&lowbar;"),
        token.replace('_', "&amp;lowbar;"),
        token.bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        token.bytes().map(|byte| format!("\\{byte:04o}")).collect(),
    ] {
        let around = format!("{{\"a\":\"{written}\"}}");
        assert_eq!(coded(&around), ["github-token"], "{around}");
        let safe = redact(&around, &find_coded_secrets(&around));
        assert_eq!(safe, "{\"a\":\"[REDACTED:github-token]\"}");
    }
    let token = ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat();
    for written in [token.replace('-', "\\-"), token.replace('-', "\\55")] {
        assert_eq!(coded(&written), ["gitlab-token"], "{written}");
    }
    for text in [
        "\\1\\2",
        "\\777",
        "\\",
        "\\0",
        "&amp;",
        "&amp;#",
        "&lowbar",
        "%u",
        "%u00",
        "&#0",
        "\\U000000",
    ] {
        assert_eq!(coded(text), [""; 0], "{text}");
    }
}

/// Bytes as `xxd` prints them, or `hexdump -C`, or `od -A x -t x1z`.
fn dump(bytes: &[u8], first: usize, how: &str) -> String {
    let signs = |line: &[u8]| -> String {
        line.iter()
            .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
            .collect()
    };
    let digits = |line: &[u8], group: usize, apart: &str| -> String {
        let groups = line
            .chunks(group)
            .map(|group| group.iter().map(|byte| format!("{byte:02x}")).collect());
        groups.collect::<Vec<String>>().join(apart)
    };
    let lines = bytes.chunks(16).enumerate().map(|(number, line)| {
        let (at, signs) = (first + number * 16, signs(line));
        match how {
            "xxd" => format!("{at:08x}: {:<39}  {signs}\n", digits(line, 2, " ")),
            "xxd -g1" => format!("{at:08x}: {:<47}  {signs}\n", digits(line, 1, " ")),
            "hexdump" => {
                let halves: Vec<_> = line.chunks(8).map(|half| digits(half, 1, " ")).collect();
                format!("{at:08x}  {:<48}  |{signs}|\n", halves.join("  "))
            }
            _ => format!("{at:06x} {:<47}  >{signs}<\n", digits(line, 1, " ")),
        }
    });
    lines.collect()
}

#[test]
fn dumps_are_read() {
    let token = checked("ghp_", 3);
    for how in ["xxd", "xxd -g1", "hexdump", "od"] {
        for before in 0..20 {
            let text =
                format!("{}{token}\nabcdef 12 34 and \"more\" \\n text\n", "k".repeat(before));
            for first in [0, 0x5230] {
                let dump = dump(text.as_bytes(), first, how);
                for times in 0..4 {
                    let around = in_json(&format!("$ it says\n{dump}\n$ "), times);
                    assert!(coded(&around).contains(&"github-token"), "{around}");
                    let safe = redact(&around, &find_coded_secrets(&around));
                    assert!(coded(&safe).is_empty(), "{safe}");
                }
                let indented: String = dump.lines().map(|line| format!("    {line}\r\n")).collect();
                assert!(coded(&indented).contains(&"github-token"), "{indented}");
            }
        }
    }
}

#[test]
fn ordinary_digits_say_nothing() {
    for text in [
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "/npm/@types%2fnode/-/node-22.0.0.tgz?x=%E4%BD%A0%E5%A5%BD+100%25",
        "aGVsbG8gd29ybGQsIHRoaXMgaXMganVzdCBhIHNlbnRlbmNlIGluIEJhc2U2NA==",
        "GET /repos/rust-lang/rust/contents/library/core/src/iter/traits/iterator.rs HTTP/1.1",
    ] {
        assert_eq!(coded(text), [""; 0], "{text}");
    }
}

#[test]
fn escapes_and_digits_take_linear_time() {
    let hostile: [&dyn Fn(usize) -> String; 28] = [
        &|n| "%25".repeat(n / 3),
        &|n| "%".repeat(n),
        &|n| "\\u0025".repeat(n / 6),
        &|n| "dHR0dHR0".repeat(n / 8),
        &|n| "7474".repeat(n / 4),
        &|n| format!("{}\n", "d".repeat(40)).repeat(n / 41),
        &|n| "BEGIN+".repeat(n / 6),
        &|n| format!("{}\n", "d".repeat(16)).repeat(n / 17),
        &|n| format!("{}{}", "d".repeat(16), " ".repeat(65)).repeat(n / 81),
        &|n| "67 ".repeat(n / 3),
        &|n| "25 ".repeat(n / 3),
        &|n| "67  ".repeat(n / 4),
        &|n| "&#38;".repeat(n / 5),
        // One sign in front, in each reading.
        &|n| format!("%252541{}", "dHR0dHR0".repeat(n / 8)),
        &|n| "%252541dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0".repeat(n / 39),
        &|n| "%2525417474747474747474747474747474747474747474".repeat(n / 47),
        &|n| "%252520".repeat(n / 7),
        &|n| format!("%252536{}", "7 67 6".repeat(n / 6)),
        &|n| "\\".repeat(n),
        &|n| "\\u".repeat(n / 2),
        &|n| format!("{}x41", "\\".repeat(n - 3)),
        &|n| format!("&#{}", "0".repeat(n - 2)),
        &|n| "&#0000000".repeat(n / 9),
        &|n| "&amp;amp;amp;".repeat(n / 13),
        &|n| format!("{}{}", "d".repeat(16), "\\".repeat(17)).repeat(n / 33),
        &|n| "00000000: 6768 6768\n".repeat(n / 20),
        &|n| "0000 67 67 67 67 67 67 67 67 67 67 67 67 67 67 67 67\n".repeat(n / 53),
        &|n| "000000 0 0: ".repeat(n / 12),
    ];
    for make in hostile {
        let cost = |n| {
            let text = make(n);
            let began = processor::time();
            std::hint::black_box(find_coded_secrets(&text));
            processor::time() - began
        };
        let (small, large) = (cost(1 << 18), cost(1 << 20));
        let most = small * 16 + std::time::Duration::from_millis(200);
        assert!(large < most, "{small:?} {large:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(%|%25|\\\\u00|BEGIN\\+|-----|67|Z2xwYXQt|\n|[a-fA-Z0-9+/=_ -]|ä|\\PC){0,200}", token in 0..200_usize) {
        let token_text = STANDARD.encode(checked("ghp_", 4));
        let at = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(token).unwrap_or(text.len());
        let whole = [&text[..at], " ", &token_text, " ", &text[at..]].concat();
        let found = find_coded_secrets(&whole);
        prop_assert!(found.iter().any(|secret| secret.kind == "github-token"));
        prop_assert!(found.iter().all(|secret| whole.get(secret.span.start..secret.span.end).is_some()));
        prop_assert!(!redact(&whole, &found).contains(&token_text));
    }
}
