//! How the requests in a log end.

use serde_json::Value;

/// Checks that every request for a turn was accepted, that its last words hold `rule` and `text` and end with
/// `text` or one of the `others`, and that it says so only once; gives how many there were.
///
/// # Errors
/// When one does not.
pub fn ends(log: &str, rule: &str, text: &str, others: &[String]) -> Result<usize, String> {
    let mut count = 0;
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let number = &line["number"];
        if let Some(why) = line["refused"].as_str() {
            return Err(format!("request {number} breaks a rule: {why}"));
        }
        let Some(wire) = line["wire"].as_str() else { continue };
        let body = &line["body"];
        let list = match wire {
            "responses" => &body["input"],
            "gemini" => &body["contents"],
            _ => &body["messages"],
        };
        let last = list.as_array().and_then(|list| list.last()).unwrap_or(&Value::Null);
        let content = last.get("parts").unwrap_or(&last["content"]);
        let said = match content {
            Value::String(said) => Some(said.as_str()),
            parts => parts.as_array().and_then(|parts| parts.last()?["text"].as_str()),
        };
        let fits = |said: &str| {
            let ends = |end: &str| said.ends_with(end);
            said.contains(rule)
                && said.contains(text)
                && (ends(text) || others.iter().any(|other| ends(other)))
        };
        if !said.is_some_and(fits) {
            return Err(format!("request {number} ends otherwise: {last}"));
        }
        for wanted in [text, rule].into_iter().filter(|wanted| !wanted.is_empty()) {
            let times = count_of(body, wanted);
            if times != 1 {
                return Err(format!("request {number} says `{wanted}` {times} times"));
            }
        }
        count += 1;
    }
    Ok(count)
}

fn count_of(value: &Value, text: &str) -> usize {
    match value {
        Value::String(said) => said.matches(text).count(),
        Value::Array(items) => items.iter().map(|item| count_of(item, text)).sum(),
        Value::Object(members) => members.values().map(|member| count_of(member, text)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_very_end_counts() {
        let line = |content: Value| {
            json!({"number": 1, "wire": "anthropic", "body": {"messages": [{"role": "user", "content": content}]}}).to_string()
        };
        let block = json!({"type": "text", "text": "RULE BLOCK"});
        let other = json!({"type": "text", "text": "b"});
        assert_eq!(ends(&line(json!([other, block])), "RULE", "BLOCK", &[]), Ok(1));
        assert!(ends(&line(json!([block, other])), "RULE", "BLOCK", &[]).is_err());
        assert!(ends(&line(json!([block, block])), "RULE", "BLOCK", &[]).is_err());
        assert_eq!(ends(&json!({"number": 1, "path": "/x"}).to_string(), "", "BLOCK", &[]), Ok(0));
        assert!(ends(&line(json!([other, block])), "c", "BLOCK", &[]).is_err());
        let more = json!({"type": "text", "text": "RULE BLOCK and MORE"});
        assert!(ends(&line(json!([more])), "RULE", "BLOCK", &[]).is_err());
        assert_eq!(ends(&line(json!([more])), "RULE", "BLOCK", &["MORE".to_owned()]), Ok(1));
        assert!(
            ends(&json!({"number": 1, "refused": "why"}).to_string(), "", "BLOCK", &[]).is_err()
        );
    }
}
