//! A log as a person or a script reads it.

use std::fmt::Write as _;

use serde_json::Value;

/// What was called, told and said, one line each. Requests that lead to no turn of the model and
/// requests without tools (agents ask for titles and summaries) are left out.
#[must_use]
pub fn story(log: &str) -> String {
    let mut out = String::new();
    let mut told = 0;
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        if line["tools"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let results = line["results"].as_array().map_or(&[][..], Vec::as_slice);
        for result in results.iter().skip(told) {
            let _ = writeln!(out, "told {}", one_line(result.as_str().unwrap_or_default()));
        }
        told = told.max(results.len());
        let answer = &line["answer"];
        let _ = match (answer["call"].as_str(), answer["say"].as_str()) {
            (Some(tool), _) => writeln!(out, "called {tool} {}", answer["arguments"]),
            (None, Some(text)) => writeln!(out, "said {}", one_line(text)),
            (None, None) => Ok(()),
        };
    }
    out
}

/// How often a conversation with tools came back with fewer results than before: compacted.
#[must_use]
pub fn shortened(log: &str) -> usize {
    let (mut before, mut times) = (0, 0);
    for line in log.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        if line["tools"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let results = line["results"].as_array().map_or(0, Vec::len);
        times += usize::from(results < before);
        before = results;
    }
    times
}

fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|letter| match letter.is_control() {
            true => letter.escape_default().collect::<String>().chars().collect::<Vec<_>>(),
            false => vec![letter],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_is_seen() {
        let line = |results: &str| format!(r#"{{"tools":["Bash"],"results":[{results}]}}"#);
        let other = r#"{"tools":[],"results":[]}"#.to_owned();
        assert_eq!(shortened(&[line(""), line("\"a\""), other, line("\"a\",\"b\"")].join("\n")), 0);
        assert_eq!(shortened(&[line("\"a\""), line(""), line("\"a\"")].join("\n")), 1);
    }

    #[test]
    fn each_result_is_told_once() {
        let log = [
            r#"{"tools":["Bash"],"results":[],"answer":{"call":"Bash","arguments":{"command":"ls"}}}"#,
            r#"{"tools":[],"results":[],"answer":{"say":"a title"}}"#,
            r#"{"tools":["Bash"],"results":["a\nb"],"answer":{"call":"Read","arguments":{}}}"#,
            r#"{"tools":["Bash"],"results":["a\nb","\u001bc"],"answer":{"say":"done"}}"#,
            "not a line",
        ];
        let expected = "called Bash {\"command\":\"ls\"}\ntold a\\nb\ncalled Read {}\n\
            told \\u{1b}c\nsaid done\n";
        assert_eq!(story(&log.join("\n")), expected);
    }
}
