//! Rows in disguise: attacks and harmless texts alike, so that an encoding by itself proves nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A way to write a text.
pub(crate) type Disguise = fn(&str) -> String;

/// All of them by name; those for Latin letters leave other scripts as they are.
pub(crate) const DISGUISES: [(&str, Disguise); 16] = [
    ("base64", |text| STANDARD.encode(text)),
    ("case by turns", |text| {
        let turn = |(at, c): (usize, char)| {
            if at % 2 == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
        };
        text.chars().enumerate().map(turn).collect()
    }),
    ("comment", |text| format!("<p>Welcome to our page.</p>\n<!-- {text} -->\n")),
    ("entities", |text| each(text, |c| format!("&#{};", u32::from(c)))),
    ("escapes", |text| {
        let unit = |unit: u16| format!("\\u{unit:04x}");
        text.encode_utf16().map(unit).collect()
    }),
    ("full width", |text| {
        each(text, |c| match c {
            '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c).to_string(),
            other => other.to_string(),
        })
    }),
    ("hex", |text| text.bytes().map(|byte| format!("{byte:02x}")).collect()),
    ("hex with gaps", |text| text.bytes().map(|byte| format!("{byte:02x} ")).collect()),
    ("leetspeak", |text| {
        replaced(text, &['a', 'e', 'i', 'o', 's', 't'], &['4', '3', '1', '0', '5', '7'])
    }),
    ("look-alikes", |text| {
        replaced(text, &['a', 'c', 'e', 'o', 'p', 'x'], &['а', 'с', 'е', 'о', 'р', 'х'])
    }),
    ("percent", |text| text.bytes().map(|byte| format!("%{byte:02X}")).collect()),
    ("reversed", |text| text.chars().rev().collect()),
    ("rot13", |text| {
        each(text, |c| match c {
            'a'..='z' => char::from((c as u8 - b'a' + 13) % 26 + b'a').to_string(),
            'A'..='Z' => char::from((c as u8 - b'A' + 13) % 26 + b'A').to_string(),
            other => other.to_string(),
        })
    }),
    ("spaced letters", |text| {
        let word = |word: &str| word.chars().map(String::from).collect::<Vec<_>>().join(" ");
        text.split(' ').map(word).collect::<Vec<_>>().join("   ")
    }),
    ("tags", |text| {
        let hidden = each(text, |c| {
            let code = u32::from(c);
            let tag = (0x20..0x7f).contains(&code).then(|| char::from_u32(0xe0000 + code));
            tag.flatten().unwrap_or(c).to_string()
        });
        format!("Nice weather today.{hidden}")
    }),
    ("zero width", |text| each(text, |c| format!("{c}\u{200b}"))),
];

fn each(text: &str, change: impl Fn(char) -> String) -> String {
    text.chars().map(change).collect()
}

fn replaced(text: &str, from: &[char; 6], to: &[char; 6]) -> String {
    each(text, |c| from.iter().position(|&one| one == c).map_or(c, |at| to[at]).to_string())
}
