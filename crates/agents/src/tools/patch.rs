//! Patches as coding agents write them, and as `diff` does.

use crate::event::Crossing;

use super::Place;

/// The files that a patch changes. What is put into them is what its lines add.
pub(super) fn crossings(text: &str, place: Place<'_>) -> Vec<Crossing> {
    let mut found: Vec<Crossing> = Vec::new();
    let mut current: Option<String> = None;
    let mut added = String::new();
    let finish = |current: &mut Option<String>, added: &mut String, found: &mut Vec<Crossing>| {
        if let Some(name) = current.take() {
            for name in readings(&name) {
                let content = added.clone();
                found.push(Crossing::Write { path: place.path(name), content, redirect: None });
            }
        }
        added.clear();
    };
    for line in text.lines() {
        let begins =
            |starts: &[&str]| starts.iter().find_map(|start| line.strip_prefix(start)).map(name_of);
        if let Some(name) = begins(&["*** Update File: ", "*** Add File: ", "+++ "]) {
            finish(&mut current, &mut added, &mut found);
            current = name;
        } else if let Some(name) = begins(&["*** Delete File: "]) {
            finish(&mut current, &mut added, &mut found);
            found.extend(name.map(|name| Crossing::Delete { path: place.path(&name) }));
        } else if let Some(name) = begins(&["--- "]) {
            // Only its content is changed, or it is removed.
            finish(&mut current, &mut added, &mut found);
            current = name;
        } else if let Some(name) = begins(&["*** Move to: ", "rename to "]) {
            if let Some(to) = name {
                match current.clone() {
                    Some(from) => found
                        .push(Crossing::Rename { from: place.path(&from), to: place.path(&to) }),
                    None => found.push(Crossing::Write {
                        path: place.path(&to),
                        content: text.to_owned(),
                        redirect: None,
                    }),
                }
            }
        } else if let Some(name) = begins(&["rename from "]) {
            finish(&mut current, &mut added, &mut found);
            current = name;
        } else if let Some(line) = line.strip_prefix('+') {
            added.push_str(line);
            added.push('\n');
        }
    }
    finish(&mut current, &mut added, &mut found);
    found
}

/// The file of a line; none for what says that there is no file.
fn name_of(text: &str) -> Option<String> {
    let name = text.split('\t').next().unwrap_or_default().trim().trim_matches('"');
    (!name.is_empty() && name != "/dev/null" && !name.contains('\0')).then(|| name.to_owned())
}

/// `a/` and `b/` in front of a name are signs of `diff`, or folders.
fn readings(name: &str) -> Vec<&str> {
    let without = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
    std::iter::once(name).chain(without).collect()
}
