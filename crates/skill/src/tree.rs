//! A skill as it is judged: names and bytes, held in memory and bounded.

/// Bounds on what is read of a skill. What lies beyond makes the reading incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files and links in all, those inside archives included.
    pub files: usize,
    /// Bytes of all files together, unpacked ones included.
    pub bytes: usize,
    /// Bytes of one file.
    pub file: usize,
    /// Folders inside folders.
    pub depth: usize,
    /// Archives inside archives.
    pub nesting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 5000, bytes: 48 << 20, file: 8 << 20, depth: 24, nesting: 3 }
    }
}

/// A skill's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// In order of their paths.
    pub entries: Vec<Entry>,
    /// What could not be read, or was not.
    pub gaps: Vec<Gap>,
}

/// One file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// From the skill's folder, with `/`; what lies in an archive has `!/` behind the archive's name.
    pub path: String,
    /// What it is.
    pub content: Content,
    /// Whether it may be run.
    pub executable: bool,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file.
    File(Vec<u8>),
    /// A link, and where it leads as it is written.
    Link(String),
    /// A pipe, a socket or a device.
    Special,
}

/// Something that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub path: String,
    /// Why, in words that follow "not read:".
    pub why: &'static str,
}

impl Tree {
    /// A tree of texts.
    pub fn of<P: Into<String>, T: Into<Vec<u8>>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        let entries = files
            .into_iter()
            .map(|(path, text)| Entry {
                path: path.into(),
                content: Content::File(text.into()),
                executable: false,
            })
            .collect();
        Self { entries, gaps: Vec::new() }
    }

    /// Notes that something was not read.
    pub fn gap(&mut self, path: impl Into<String>, why: &'static str) {
        // One is enough to know that the reading is not complete.
        if self.gaps.len() < 64 {
            self.gaps.push(Gap { path: path.into(), why });
        }
    }

    /// Bytes of all files together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| match &entry.content {
                Content::File(bytes) => bytes.len(),
                _ => 0,
            })
            .sum()
    }
}

/// Whether a link or a name inside an archive leads out of the folder that it stands in.
#[must_use]
pub fn leads_out(from: &str, target: &str) -> bool {
    let target = target.replace('\\', "/");
    let drive = target.as_bytes().get(1) == Some(&b':');
    if target.starts_with(['/', '~']) || drive {
        return true;
    }
    let mut depth = from.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out() {
        for (from, target) in [
            ("a", "/etc/passwd"),
            ("a/b", "../../c"),
            ("a", ".."),
            ("a", "~/x"),
            ("a", "C:\\x"),
            ("a", "x/../../y"),
        ] {
            assert!(leads_out(from, target), "{from} {target}");
        }
        for (from, target) in [("a/b", "../c"), ("a", "b"), ("a/b/c", "../../x"), ("a", "./x/../y")]
        {
            assert!(!leads_out(from, target), "{from} {target}");
        }
    }
}
