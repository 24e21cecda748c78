//! Speed of the search for secrets in what leaves: `cargo bench -p wardkeep-detect --bench secrets`.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use wardkeep_detect::secrets::{find_coded_secrets, find_joined_secrets};

fn main() {
    divan::main();
}

/// As much is looked at at once.
const SIZE: usize = 64 << 10;

/// What leaves, as it is written.
fn bodies() -> Vec<(&'static str, String)> {
    let code = include_str!("../src/shell/word.rs");
    let json = serde_json::json!({ "role": "user", "content": code }).to_string();
    let nested = serde_json::json!({ "arguments": json }).to_string();
    vec![
        ("prose", include_str!("../../../LICENSE").to_owned()),
        ("code", code.to_owned()),
        ("json", json),
        ("json in json", nested),
        ("form", "name=J%C3%B6rg+M&text=a%20b%0D%0Ac%3D%3D&".to_owned()),
        ("escapes", "%25".to_owned()),
        ("base64", "dHR0dHR0".to_owned()),
        ("base64 behind escapes", format!("%252541{}", "dHR0dHR0".repeat(1 << 10))),
        ("digits", "7474".to_owned()),
        ("pairs", "67 68 ".to_owned()),
    ]
}

#[divan::bench(args = bodies().into_iter().map(|(name, _)| name))]
fn search(bencher: Bencher<'_, '_>, name: &str) {
    let unit = bodies().into_iter().find(|(other, _)| *other == name);
    let unit = unit.map_or_else(String::new, |(_, unit)| unit);
    let text = unit.repeat(SIZE / unit.len().max(1) + 1);
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let plain = find_joined_secrets(black_box(&text));
        (plain, find_coded_secrets(black_box(&text)))
    });
}
