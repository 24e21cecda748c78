//! What is hidden: by characters, by encodings, by the tools of another system.

use std::ops::Range;

use super::super::code::decode;
use super::super::facts::Act;
use super::super::kind::Language;
use super::super::lexicon::{Says, says};
use super::super::places::{Trust, trust};
use super::super::points::{self, Odd};
use super::super::shell;
use super::chains::is_hot;
use super::{Judge, Place, Role};
use crate::verdict::Verdict;

impl Judge<'_> {
    /// What does not show, or looks like something else.
    pub(super) fn characters(&mut self, place: &Place<'_>) {
        for (odd, at) in points::read(place.source) {
            let (rule, verdict, reason) = match odd {
                Odd::Tags(said) if said.len() >= 4 => (
                    "hidden.tags",
                    Verdict::Deny,
                    format!("hidden, it says: {}", said.chars().take(160).collect::<String>()),
                ),
                Odd::Tags(_) => {
                    ("hidden.signs", Verdict::Ask, "characters that only machines read".to_owned())
                }
                Odd::ZeroWidth => (
                    "hidden.signs",
                    Verdict::Ask,
                    "characters without width stand between letters".to_owned(),
                ),
                Odd::Bidi => (
                    "hidden.signs",
                    Verdict::Ask,
                    "what shows is not in the order in which it is read".to_owned(),
                ),
                Odd::Selectors => (
                    "hidden.signs",
                    Verdict::Ask,
                    "rows of characters that do not show may carry data".to_owned(),
                ),
                Odd::Mixed(word) => (
                    "hidden.letters",
                    Verdict::Ask,
                    format!("`{word}` mixes letters of two scripts"),
                ),
            };
            self.add(place.path, place.source, rule, verdict, at, reason);
        }
    }

    /// Windows' ways to fetch and run, in any text.
    pub(super) fn windows(&mut self, place: &Place<'_>) {
        if matches!(place.role, Role::Example) {
            return;
        }
        let mut start = 0;
        for line in place.source.split_inclusive('\n') {
            let at = start..start + line.trim_end().len();
            start += line.len();
            let folded: String = line
                .get(..line.floor_char_boundary(2000.min(line.len())))
                .unwrap_or_default()
                .to_ascii_lowercase();
            // Marks that these shells drop, and texts that are put together.
            let folded = if folded.contains(['^', '`', '+']) {
                folded
                    .replace(['^', '`'], "")
                    .replace("'+'", "")
                    .replace("\"+\"", "")
                    .replace("' + '", "")
            } else {
                folded
            };
            if !["iex", "invoke-expression", "-enc", "mshta", "certutil", "regsvr32", "bitsadmin"]
                .iter()
                .any(|word| folded.contains(word))
            {
                continue;
            }
            let word = |word: &str| {
                folded
                    .split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '-'))
                    .any(|part| part == word)
            };
            let runs = word("iex") || folded.contains("invoke-expression");
            let fetches = [
                "iwr",
                "irm",
                "invoke-webrequest",
                "invoke-restmethod",
                "downloadstring",
                "curl",
                "wget",
            ]
            .iter()
            .any(|name| folded.contains(name));
            let url = line
                .split(|sign: char| sign.is_whitespace() || "'\"()`|".contains(sign))
                .find(|part| part.contains("://"))
                .map(str::to_owned);
            let warned = says(&folded).any(Says::WARNS)
                || line.trim_start().starts_with('|')
                || !is_command_line(place, &folded);
            let place = Place { warned, inline: warned, ..place.clone() };
            if runs && fetches {
                let anonymous = url.as_deref().is_some_and(|url| trust(url) == Trust::Anonymous);
                let verdict = if anonymous { Verdict::Deny } else { Verdict::Ask };
                self.find(
                    &place,
                    "run.fetched",
                    verdict,
                    at,
                    format!("{} is run as it comes", url.as_deref().unwrap_or("what is fetched")),
                );
            } else if folded.contains("powershell")
                && (folded.contains(" -enc") || folded.contains(" -e "))
            {
                let payload = line
                    .split_whitespace()
                    .find(|part| part.len() > 40)
                    .and_then(|part| decode::base64(part.as_bytes()));
                let text = payload.map(|bytes| {
                    bytes
                        .iter()
                        .filter(|byte| **byte != 0)
                        .map(|byte| char::from(*byte))
                        .collect::<String>()
                });
                let verdict =
                    if text.as_deref().is_some_and(is_hot) { Verdict::Deny } else { Verdict::Ask };
                self.find(
                    &place,
                    "run.decoded",
                    verdict,
                    at,
                    "a command of PowerShell is hidden by an encoding".to_owned(),
                );
            } else if (word("mshta") || word("regsvr32") || word("certutil") || word("bitsadmin"))
                && url.is_some()
            {
                self.find(
                    &place,
                    "run.fetched",
                    Verdict::Ask,
                    at,
                    "a tool of Windows fetches something to run".to_owned(),
                );
            }
        }
    }

    /// Long encoded texts, decoded as far as that gives text, and read again.
    pub(super) fn blobs(&mut self, place: &Place<'_>, language: Language) {
        if language == Language::Markup {
            return;
        }
        let source = place.source;
        let mut found = 0;
        let mut start = None;
        for (at, byte) in source.bytes().chain([b' ']).enumerate() {
            let inside = byte.is_ascii_alphanumeric()
                || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'\\');
            match (start, inside) {
                (None, true) => start = Some(at),
                (Some(from), false) => {
                    start = None;
                    if at - from >= 32 && at - from < 64 << 10 && found < 64 {
                        found += 1;
                        self.blob(place, &source[from..at], from..at);
                    }
                }
                _ => {}
            }
        }
    }

    fn blob(&mut self, place: &Place<'_>, text: &str, at: Range<usize>) {
        let mut bytes = text.as_bytes().to_vec();
        let mut layers = 0;
        while layers < 4 {
            let next = if bytes.starts_with(b"\\x") {
                decode::hex(
                    &bytes
                        .iter()
                        .copied()
                        .filter(|byte| !matches!(byte, b'\\' | b'x'))
                        .collect::<Vec<u8>>(),
                )
            } else if bytes.starts_with(b"\x1f\x8b")
                || bytes.starts_with(b"\x78\x9c")
                || bytes.starts_with(b"\x78\xda")
            {
                decode::inflate(&bytes)
            } else if bytes.len() >= 24 && bytes.iter().all(u8::is_ascii_hexdigit) {
                decode::hex(&bytes)
            } else if bytes.len() >= 24 && !bytes.contains(&b' ') {
                decode::base64(&bytes)
            } else {
                None
            };
            let Some(next) = next.filter(|next| !next.is_empty()) else { break };
            bytes = next;
            layers += 1;
            let Some(decoded) = std::str::from_utf8(&bytes).ok().filter(|text| {
                text.chars().filter(|sign| sign.is_control() && !sign.is_whitespace()).count() == 0
            }) else {
                continue;
            };
            let seen = shell::read(decoded).0;
            let commands = seen.iter().any(|seen| !matches!(seen.act, Act::Fetch { .. }));
            if commands || (is_hot(decoded) && has_code(decoded)) {
                let said: String = decoded.chars().take(120).collect();
                self.find(
                    place,
                    "hidden.encoded",
                    Verdict::Ask,
                    at.clone(),
                    format!("decoded, it says: {said}"),
                );
                return;
            }
            if says(&decoded.to_lowercase()).any(Says::OVERRIDE.and(Says::SECRECY)) {
                self.find(
                    place,
                    "hidden.encoded",
                    Verdict::Ask,
                    at.clone(),
                    "decoded, it tells the agent what to do".to_owned(),
                );
                return;
            }
        }
    }
}

/// Whether a line of a text is a command, and not a list of words or a pattern.
fn is_command_line(place: &Place<'_>, line: &str) -> bool {
    let patterns = ["pattern", "regex", "r'", "r\"", "\\s", ".*", "re.compile", "grep"];
    !patterns.iter().any(|word| line.contains(word))
        || matches!(place.path.rsplit('.').next(), Some("ps1" | "bat" | "cmd"))
}

/// Whether a decoded text has the signs of code.
fn has_code(text: &str) -> bool {
    text.contains(['(', '|', ';', '$']) && text.contains(' ')
}
