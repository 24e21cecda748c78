//! Git's settings, read byte by byte as git reads them.

/// One setting: its section in lower case, with its subsection behind a dot; its key in lower case; no value where
/// there is no `=`, which is as good as `true`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    section: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

impl Setting {
    /// Its section, and its subsection. Git takes the first dot for what is between them.
    pub(super) fn section(&self) -> (&[u8], Option<&[u8]>) {
        match self.section.iter().position(|byte| *byte == b'.') {
            Some(at) => (&self.section[..at], Some(&self.section[at + 1..])),
            None => (&self.section, None),
        }
    }

    /// What it says, if it says something.
    pub(super) fn text(&self) -> &[u8] {
        self.value.as_deref().unwrap_or_default()
    }

    /// Section, subsection and key.
    pub(super) fn name(&self) -> String {
        let key = [self.section.as_slice(), &self.key].join(&b'.');
        String::from_utf8_lossy(&key).into_owned()
    }
}

const WRONG: &str = "not in the form of git's settings";

/// The settings in a file, or why it cannot be read. Git ends with an error then, too; but for a zero, where it
/// sees less than is there.
pub(super) fn settings(text: &[u8]) -> Result<Vec<Setting>, &'static str> {
    if text.contains(&0) {
        return Err("not text");
    }
    let mut signs = Signs { left: text.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(text) };
    let (mut found, mut section) = (Vec::new(), Vec::new());
    loop {
        match signs.next() {
            None => return Ok(found),
            Some(b'#' | b';') => while signs.next().is_some_and(|sign| sign != b'\n') {},
            Some(b'[') => section = header(&mut signs)?,
            Some(sign) if is_space(sign) => {}
            Some(sign) if sign.is_ascii_alphabetic() => {
                let mut key = vec![sign.to_ascii_lowercase()];
                let mut next = signs.next();
                while let Some(sign) = next.filter(|sign| is_of_key(*sign)) {
                    key.push(sign.to_ascii_lowercase());
                    next = signs.next();
                }
                while matches!(next, Some(b' ' | b'\t')) {
                    next = signs.next();
                }
                let value = match next {
                    None | Some(b'\n') => None,
                    Some(b'=') => Some(value(&mut signs)?),
                    Some(_) => return Err(WRONG),
                };
                found.push(Setting { section: section.clone(), key, value });
            }
            Some(_) => return Err(WRONG),
        }
    }
}

/// What is left of a text, in which the end of a line may be written in two ways.
struct Signs<'a> {
    left: &'a [u8],
}

impl Signs<'_> {
    fn next(&mut self) -> Option<u8> {
        if let Some(rest) = self.left.strip_prefix(b"\r\n") {
            self.left = rest;
            return Some(b'\n');
        }
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(*first)
    }
}

/// What git takes for a space.
fn is_space(sign: u8) -> bool {
    matches!(sign, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_of_key(sign: u8) -> bool {
    sign.is_ascii_alphanumeric() || sign == b'-'
}

/// `[section "subsection"]` or `[section.subsection]`, after its first sign.
fn header(signs: &mut Signs<'_>) -> Result<Vec<u8>, &'static str> {
    let mut name = Vec::new();
    let mut next = loop {
        match signs.next().ok_or(WRONG)? {
            b']' if name.is_empty() => return Err(WRONG),
            b']' => return Ok(name),
            sign if is_space(sign) => break sign,
            sign if is_of_key(sign) || sign == b'.' => name.push(sign.to_ascii_lowercase()),
            _ => return Err(WRONG),
        }
    };
    while is_space(next) && next != b'\n' {
        next = signs.next().ok_or(WRONG)?;
    }
    if next != b'"' {
        return Err(WRONG);
    }
    name.push(b'.');
    loop {
        let sign = match signs.next() {
            Some(b'"') => break,
            Some(b'\\') => signs.next(),
            sign => sign,
        };
        name.push(sign.filter(|sign| *sign != b'\n').ok_or(WRONG)?);
    }
    if signs.next() == Some(b']') { Ok(name) } else { Err(WRONG) }
}

/// A value, up to the end of its line.
fn value(signs: &mut Signs<'_>) -> Result<Vec<u8>, &'static str> {
    let (mut text, mut quoted) = (Vec::new(), false);
    // How much is left if nothing but spaces follow.
    let mut end = None;
    loop {
        let sign = match signs.next() {
            None | Some(b'\n') if quoted => return Err("a quote that does not end"),
            None | Some(b'\n') => break,
            Some(b'#' | b';') if !quoted => {
                while signs.next().is_some_and(|sign| sign != b'\n') {}
                break;
            }
            Some(sign) if is_space(sign) && !quoted => {
                if !text.is_empty() {
                    end.get_or_insert(text.len());
                    text.push(sign);
                }
                continue;
            }
            Some(b'"') => {
                quoted = !quoted;
                end = None;
                continue;
            }
            Some(b'\\') => {
                end = None;
                match signs.next() {
                    None | Some(b'\n') => continue,
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    Some(b'b') => 8,
                    Some(sign @ (b'"' | b'\\')) => sign,
                    Some(_) => return Err("an escape that git does not know"),
                }
            }
            Some(sign) => sign,
        };
        end = None;
        text.push(sign);
    }
    text.truncate(end.unwrap_or(text.len()));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A name, and what it says.
    type Read = (Vec<u8>, Option<Vec<u8>>);

    /// What git itself reads; nothing where it finds an error.
    fn by_git(text: &[u8]) -> Option<Vec<Read>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut command = Command::new("git");
        command.args(["config", "--no-includes", "--list", "-z", "-f"]).arg(file.path());
        let done = command.stderr(Stdio::null()).output().unwrap();
        let lines = done.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let of = |line: &[u8]| {
            // A name has a line's end in it nowhere.
            let at = line.iter().position(|byte| *byte == b'\n');
            let value = at.map(|at| spaced(&line[at + 1..]));
            (line[..at.unwrap_or(line.len())].to_vec(), value)
        };
        done.status.success().then(|| lines.map(of).collect())
    }

    /// Older versions of git make plain spaces of others.
    fn spaced(value: &[u8]) -> Vec<u8> {
        value.iter().map(|byte| if matches!(byte, b'\t' | b'\r') { b' ' } else { *byte }).collect()
    }

    fn by_us(text: &[u8]) -> Option<Vec<Read>> {
        let name = |one: &Setting| match one.section.as_slice() {
            b"" => one.key.clone(),
            section => [section, &one.key].join(&b'.'),
        };
        let all = settings(text).ok()?.into_iter();
        Some(all.map(|one| (name(&one), one.value.as_deref().map(spaced))).collect())
    }

    fn has_git() -> bool {
        let found = Command::new("git").arg("--version").output().is_ok();
        if !found {
            use std::io::Write as _;
            let line = "skipped: needs git (notify::git::settings::tests)\n";
            let _ = write!(std::io::stderr(), "{line}");
            if let Some(log) = std::env::var_os("WARDKEEP_SKIP_LOG") {
                let log = std::fs::OpenOptions::new().append(true).create(true).open(log);
                let _ = log.and_then(|mut log| log.write_all(line.as_bytes()));
            }
        }
        found
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        if !has_git() {
            return;
        }
        let long = [b"[a]\nb = ".as_slice(), &b"x ".repeat(70_000), b"\n c = d"].concat();
        let texts: &[&[u8]] = &[
            b"",
            b"[a]b=c",
            b"[A \"B\\\"\\\\\\x\"]\n\tC-d1 = E",
            b"[a.B]\nc=d\n[a.B \"C\"]e",
            b"[a]\nb = c\\b\\b\\bd",
            b"[a]\nb = \"x\\b\"",
            b"[a]\nb = \" c \" d \"e\"  \n",
            b"[a]\nb = c # d\ne = f ; g\nh = \"#;\" # \"",
            b"[a]\nb = c \\\n  d\\\n",
            b"[a]\nb = c \\\r\n d\r\n[e]\r\nf\r\n",
            b"[a]\nb = c\rd\r\r\n",
            b"[a]\rb=c\r",
            b"[a]\nb\r=c",
            b"[a]\nb \t = \t c \t ",
            b"[a]\nb = c # d \\\ne = f",
            b"# [a] \\\n[b]c # d",
            b"[b]\nc # d",
            b"\xEF\xBB\xBF[a]b=c",
            b"\xEF\xBB[a]b=c",
            b"\xEF\xBB\xBF\xEF\xBB\xBF[a]b=c",
            b"[a]\nb = J\xF6rg\n[c \"\xFF\"]d=\xFE",
            b"[a]\nb = \"c\nd\"",
            b"[a]\nb = \"c\\\nd\"",
            b"[a]\nb = \\x",
            b"[a]\nb = c\\",
            b"[]b=c",
            b"[ \"a\"]b=c",
            b"[.a]b=c",
            b"[a.]b=c",
            b"[a\n\"b\"]c=d",
            b"[a \t\r \"b\"]c=d",
            b"[a\"b\"]c=d",
            b"[a \"b\" ]c=d",
            b"[a \"b]\nc=d",
            b"[a \"b\\\n\"]c=d",
            b"[a b]c=d",
            b"[a",
            b"b = c\n[d]e",
            b"[a]1b=c",
            b"[a]b_c=d",
            b"[a]\x0Cb=c",
            b"[a]\nb = \x0Bc\x0C",
            b"[a]b = ",
            b"[a]b = \"\"",
            b"[a]b =\n\nc==d",
            b"[a]b=c[d]e=f\n [g] [h]i",
            b"[include]\npath = x\n[includeIf \"gitdir:~/x\"]path=y\n[includeif.Z]path=w",
            &long,
        ];
        for text in texts {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
            assert_eq!(by_us(text), by_git(text), "{shown:?}");
        }
        // Git sees the rest of a line no more after a zero.
        assert!(settings(b"[a]\nb = true\0; x").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_read_otherwise_than_git_reads_it(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "[core]", "[", "]", "\"", "\\", "\\b", "\\n", "\\\"", "\n", "\r\n", "\r", "\t", " ", "#", ";", "=", ".",
                    "a", "B", "1", "-", "fsmonitor = x", "[a \"", "\"]", "\n[alias]\n", "\u{b}", "\u{8}", "\u{f6}", "\u{feff}",
                ]),
                0..24,
            ),
        ) {
            let text = parts.concat();
            if has_git() {
                proptest::prop_assert_eq!(by_us(text.as_bytes()), by_git(text.as_bytes()), "{:?}", text);
            }
        }
    }
}
