//! `scan --jsonl`: one object a line in, one a line out, in the same order.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wardkeep_detect::finding::Channel;

use super::{ChannelName, FindingJson, Judge};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Longest line that is read.
const LIMIT: u64 = 128 << 20;

#[derive(Deserialize)]
struct Request {
    id: serde_json::Value,
    text: String,
    #[serde(default)]
    channel: Option<ChannelName>,
}

#[derive(Serialize)]
struct Judged {
    id: serde_json::Value,
    verdict: String,
    score: f32,
    findings: Vec<FindingJson>,
}

/// A line that could not be judged. It is not clean.
#[derive(Serialize)]
struct Failed {
    id: Option<serde_json::Value>,
    line: u64,
    error: String,
}

pub(super) fn run(
    context: &mut Context,
    judge: &Judge,
    channel: Channel,
    paths: &[PathBuf],
) -> Result<Exit, CliError> {
    let mut count = Count::default();
    let standard = [PathBuf::from("-")];
    for path in if paths.is_empty() { &standard } else { paths } {
        if path == Path::new("-") {
            let (input, name) = (std::io::stdin().lock(), Path::new("standard input"));
            one(context, judge, channel, input, name, &mut count)?;
        } else {
            let file = File::open(path).map_err(|error| CliError::io("read", path, &error))?;
            one(context, judge, channel, BufReader::new(file), path, &mut count)?;
        }
    }
    if count.lines == 0 {
        context.ui.note("the input held nothing");
    }
    if count.failed > 0 {
        context.ui.fault(format!("{} lines could not be judged", count.failed));
        return Ok(Exit::Refused);
    }
    // The lines are the answer; what is in them is no failure of the command.
    Ok(Exit::Success)
}

#[derive(Default)]
struct Count {
    lines: u64,
    failed: u64,
}

fn one(
    context: &mut Context,
    judge: &Judge,
    channel: Channel,
    mut input: impl BufRead,
    name: &Path,
    count: &mut Count,
) -> Result<(), CliError> {
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let read = input
            .by_ref()
            .take(LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(|error| CliError::io("read", name, &error))?;
        if read == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        count.lines += 1;
        match parse(&line) {
            Ok(request) => {
                let channel = request.channel.map_or(channel, Channel::from);
                let scan = judge.detector.scan(&request.text, channel);
                context.ui.line_of_json(&Judged {
                    id: request.id,
                    verdict: scan.verdict.to_string(),
                    score: scan.score,
                    findings: scan
                        .findings
                        .iter()
                        .map(|one| FindingJson::new(one, judge.fingerprint(&request.text, one)))
                        .collect(),
                });
            }
            Err(error) => {
                count.failed += 1;
                let id = serde_json::from_slice::<OnlyId>(&line).ok().and_then(|only| only.id);
                let error = format!(
                    r#"no request: {error}; give lines like {{"id":1,"text":"…","channel":"document"}}"#
                );
                context.ui.line_of_json(&Failed { id, line: number, error });
            }
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct OnlyId {
    #[serde(default)]
    id: Option<serde_json::Value>,
}

/// Reads a request. Bytes that are no UTF-8, and halves of surrogate pairs, become U+FFFD: a text
/// is not spared because it is broken.
fn parse(line: &[u8]) -> Result<Request, serde_json::Error> {
    serde_json::from_slice(line).or_else(|error| {
        let lossy = String::from_utf8_lossy(line);
        serde_json::from_str(&whole_surrogates(&lossy)).map_err(|_| error)
    })
}

/// JSON text in which escapes of lone surrogates are replaced.
fn whole_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |from: usize| {
            let digits = rest.get(from..from + 6)?.strip_prefix("\\u")?;
            u16::from_str_radix(digits, 16).ok()
        };
        let length = match unit(0) {
            Some(0xd800..=0xdbff) if matches!(unit(6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            // A backslash and whatever it escapes.
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_text_is_read_all_the_same() {
        for (line, text) in [
            (r#"{"id":1,"text":"a\ud800b"}"#, "a\u{fffd}b"),
            (r#"{"id":1,"text":"a\udc00\ud83d\ude00"}"#, "a\u{fffd}😀"),
            (r#"{"id":1,"text":"\\ud800 \ud800"}"#, "\\ud800 \u{fffd}"),
        ] {
            assert_eq!(parse(line.as_bytes()).unwrap().text, text, "{line}");
        }
        assert_eq!(parse(b"{\"id\":1,\"text\":\"a\xff\"}").unwrap().text, "a\u{fffd}");
        assert!(parse(b"{\"id\":1}").is_err());
        assert!(parse(b"\\").is_err());
    }
}
