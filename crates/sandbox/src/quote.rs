//! Paths in commands that are told to be pasted.

/// A path as a shell takes it: whoever pastes what it stands in runs no part of it.
#[must_use]
pub fn quoted(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%".contains(&byte);
    match !path.is_empty() && !path.starts_with('-') && path.bytes().all(plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}
