//! The words of a command, told apart into options and operands.

use crate::shell::Word;

/// Options and operands of a command.
#[derive(Debug, Default)]
pub(super) struct Args {
    flags: Vec<(String, Option<Word>)>,
    pub(super) operands: Vec<Word>,
}

/// Tells options and operands apart as GNU programs do, wherever they stand.
///
/// `short` are the letters that take a value, `long` the long options that do. A word that is not
/// known is an operand, unless it is known to begin as an option.
pub(super) fn split(words: &[Word], short: &str, long: &[&str]) -> Args {
    let mut args = Args::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let shown = shown(word);
        if shown == "--" {
            args.operands.extend(words.get(at..).unwrap_or_default().iter().cloned());
            break;
        }
        if let Some(name) = shown.strip_prefix("--").filter(|name| !name.is_empty()) {
            if let Some((name, _)) = name.split_once('=') {
                let prefix = format!("--{name}=");
                args.flags.push((format!("--{name}"), after(word, &prefix)));
            } else if word.text.is_none() {
                args.operands.push(word.clone());
            } else if long.iter().any(|known| abbreviates(shown, known)) {
                args.flags.push((shown.to_owned(), words.get(at).cloned()));
                at += 1;
            } else {
                args.flags.push((shown.to_owned(), None));
            }
            continue;
        }
        let Some(letters) = shown.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            args.operands.push(word.clone());
            continue;
        };
        for (place, letter) in letters.char_indices() {
            let flag = format!("-{letter}");
            if !short.contains(letter) {
                args.flags.push((flag, None));
                continue;
            }
            let prefix = format!("-{}", &letters[..place + letter.len_utf8()]);
            let attached = after(word, &prefix).filter(shown_is_not_empty);
            let value = attached.or_else(|| {
                at += 1;
                words.get(at - 1).cloned()
            });
            args.flags.push((flag, value));
            break;
        }
    }
    args
}

impl Args {
    /// Whether one of these options was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|(flag, _)| names.iter().any(|name| abbreviates(flag, name)))
    }

    /// The values of these options.
    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Word> {
        self.flags
            .iter()
            .filter(|(flag, _)| names.iter().any(|name| abbreviates(flag, name)))
            .filter_map(|(_, value)| value.as_ref())
    }

    /// The last value of these options.
    pub(super) fn value(&self, names: &[&str]) -> Option<Word> {
        self.values(names).last().cloned()
    }
}

/// Whether an option is this one, written out or not.
fn abbreviates(flag: &str, name: &str) -> bool {
    flag == name || (flag.starts_with("--") && flag.len() >= 4 && name.starts_with(flag))
}

/// The text, or as much of it as is known, as a pattern.
pub(super) fn shown(word: &Word) -> &str {
    word.text.as_deref().unwrap_or(&word.pattern)
}

fn shown_is_not_empty(word: &Word) -> bool {
    !shown(word).is_empty()
}

/// What follows a prefix that the word is known to have.
pub(super) fn after(word: &Word, prefix: &str) -> Option<Word> {
    match &word.text {
        Some(text) => {
            let rest = text.strip_prefix(prefix)?;
            if !word.glob {
                return Some(Word { raw: word.raw.clone(), ..Word::literal(rest) });
            }
            let pattern = word.pattern.strip_prefix(prefix).unwrap_or("*").to_owned();
            Some(Word { text: Some(rest.to_owned()), pattern, ..word.clone() })
        }
        None => {
            let pattern = word.pattern.strip_prefix(prefix)?.to_owned();
            Some(Word { pattern, ..word.clone() })
        }
    }
}

/// A path inside of a directory.
pub(super) fn below(directory: &Word, name: &Word) -> Word {
    let join = |directory: &str, name: &str| match directory {
        "" => name.to_owned(),
        _ if directory.ends_with('/') => format!("{directory}{name}"),
        _ => format!("{directory}/{name}"),
    };
    let text = directory.text.as_ref().zip(name.text.as_ref());
    Word {
        text: text.map(|(directory, name)| join(directory, name)),
        raw: join(&directory.raw, &name.raw),
        pattern: join(&directory.pattern, &name.pattern),
        glob: directory.glob || name.glob,
        sources: directory.sources.iter().chain(&name.sources).copied().collect(),
    }
}

/// Whether a word is `host:path` or `user@host:path`; gives the host.
pub(super) fn remote_host(word: &Word) -> Option<String> {
    let shown = shown(word);
    if let Some(rest) = shown.strip_prefix("rsync://").or_else(|| shown.strip_prefix("scp://")) {
        return Some(host_of(rest));
    }
    let (host, path) = shown.split_once(':')?;
    let drive = host.len() == 1 && path.starts_with(['\\', '/']);
    let plain = !host.is_empty() && !host.contains(['/', '\\', ' ']) && !drive;
    plain.then(|| host_of(host))
}

/// The host of `user@host:port/path`.
pub(super) fn host_of(text: &str) -> String {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}
