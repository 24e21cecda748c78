//! The texts in what a tool gave: all of them are judged, and each is put back where it stood.

use serde_json::Value;

/// Stands between two texts. It begins with a line end, so that no sentence goes across it.
const BETWEEN: &str = "\n\u{1e}\n";
/// Keys from this length on may say something, too.
const TELLING_KEY: usize = 24;

/// All texts of a value, in order.
pub(crate) fn text_of(value: &Value) -> String {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    texts.join(BETWEEN)
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => {
            for (key, value) in members {
                if key.len() >= TELLING_KEY {
                    texts.push(key);
                }
                collect(value, texts);
            }
        }
        _ => {}
    }
}

/// The value with other texts; where they cannot be told apart any more, the texts alone.
pub(crate) fn with_text(value: &Value, text: &str) -> Value {
    let mut texts = text.split(BETWEEN);
    put(value, &mut texts)
        .filter(|_| texts.next().is_none())
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn put<'a>(value: &Value, texts: &mut impl Iterator<Item = &'a str>) -> Option<Value> {
    Some(match value {
        Value::String(_) => Value::String(texts.next()?.to_owned()),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| put(item, texts)).collect::<Option<_>>()?)
        }
        Value::Object(members) => {
            let mut out = serde_json::Map::new();
            for (key, value) in members {
                // A key that would have to change is no key any more.
                if key.len() >= TELLING_KEY && texts.next()? != key {
                    return None;
                }
                out.insert(key.clone(), put(value, texts)?);
            }
            Value::Object(out)
        }
        other => other.clone(),
    })
}

/// A value of the same shape that says only one thing.
pub(crate) fn withheld(value: Option<&Value>, why: &str) -> Value {
    let mut said = false;
    match value {
        None => Value::String(why.to_owned()),
        Some(value) => {
            let out = blank(value, why, &mut said);
            if said { out } else { Value::String(why.to_owned()) }
        }
    }
}

fn blank(value: &Value, why: &str, said: &mut bool) -> Value {
    match value {
        Value::String(_) if *said => Value::String(String::new()),
        Value::String(_) => {
            *said = true;
            Value::String(why.to_owned())
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| blank(item, why, said)).collect())
        }
        Value::Object(members) => Value::Object(
            members
                .iter()
                .filter(|(key, _)| key.len() < TELLING_KEY)
                .map(|(key, value)| (key.clone(), blank(value, why, said)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_put_back_where_they_stood() {
        let value = json!({"stderr": "b", "stdout": "a\nb", "n": 1, "list": [{"text": "c"}]});
        let text = text_of(&value);
        assert_eq!(with_text(&value, &text), value);
        let redacted = text.replace('c', "[withheld]");
        let list = &with_text(&value, &redacted)["list"];
        assert_eq!(list, &json!([{"text": "[withheld]"}]));
    }

    #[test]
    fn what_cannot_be_put_back_is_given_as_one_text() {
        let value = json!({"a": "x\n\u{1e}\ny", "b": "z"});
        let text = text_of(&value);
        assert_eq!(with_text(&value, &text), Value::String(text.clone()));
        let key = "a key that is long enough to say something";
        let value = json!({ key: 1 });
        assert_eq!(text_of(&value), key);
        assert_eq!(with_text(&value, "[withheld]"), json!("[withheld]"));
    }

    #[test]
    fn nothing_is_left_of_what_is_withheld() {
        let value = json!({"stdout": "secret", "stderr": "more", "code": 3, "x": ["y"]});
        let out = withheld(Some(&value), "no").to_string();
        assert!(!out.contains("secret") && !out.contains("more") && !out.contains('y'), "{out}");
        assert_eq!(withheld(None, "no"), json!("no"));
        assert_eq!(withheld(Some(&json!({"code": 3})), "no"), json!("no"));
    }
}
