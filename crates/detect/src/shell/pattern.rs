//! Patterns of what a word may become.

/// The pattern that only this text matches.
pub(super) fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for sign in text.chars() {
        if is_special(sign) {
            pattern.push('\\');
        }
        pattern.push(sign);
    }
    pattern
}

pub(super) fn is_special(sign: char) -> bool {
    matches!(sign, '*' | '?' | '[' | ']' | '\\')
}

enum Item {
    Any,
    One,
    Exact(char),
}

/// Whether a text matches a pattern of [`super::Word::pattern`]. `*` crosses `/`, and a bracket
/// expression stands for any one sign: a match too many is the worst reading.
///
/// A glob that matches nothing stays as it is: brackets may also stand for themselves.
pub fn matches(pattern: &str, text: &str) -> bool {
    fits(&items(pattern, true), text)
        || pattern.contains('[') && text.contains('[') && fits(&items(pattern, false), text)
}

fn fits(pattern: &[Item], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(Item::Any) => {
                star = Some((at, read));
                at += 1;
                continue;
            }
            Some(Item::One) => {
                at += 1;
                read += 1;
                continue;
            }
            Some(Item::Exact(sign)) if *sign == text[read] => {
                at += 1;
                read += 1;
                continue;
            }
            _ => {}
        }
        let Some((back, from)) = star else { return false };
        star = Some((back, from + 1));
        at = back + 1;
        read = from + 1;
    }
    pattern[at..].iter().all(|item| matches!(item, Item::Any))
}

fn items(pattern: &str, brackets: bool) -> Vec<Item> {
    let signs: Vec<char> = pattern.chars().collect();
    let mut items = Vec::with_capacity(signs.len());
    let mut at = 0;
    // Behind the last `]` no bracket closes: looked up once, so that `[[[[…` stays linear.
    let last_bracket = signs.iter().rposition(|sign| *sign == ']').unwrap_or(0);
    while at < signs.len() {
        match signs[at] {
            '*' => items.push(Item::Any),
            '?' => items.push(Item::One),
            '\\' if at + 1 < signs.len() => {
                at += 1;
                items.push(Item::Exact(signs[at]));
            }
            '[' if brackets && at + 1 < last_bracket => {
                let close = signs[at + 2..].iter().position(|sign| *sign == ']');
                at += close.map_or(0, |close| close + 2);
                items.push(Item::One);
            }
            sign => items.push(Item::Exact(sign)),
        }
        at += 1;
    }
    items
}
