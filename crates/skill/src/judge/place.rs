//! Where in a skill something was seen.

use std::ops::Range;

use super::super::kind::Language;

/// What a part of a skill is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Role {
    /// What the agent reads first.
    Manual,
    /// What it may read.
    Reference,
    /// What is run.
    Script,
    /// What installing runs.
    Hook,
    /// Tests, fixtures, examples.
    Example,
}

/// Where something was seen.
#[derive(Debug, Clone)]
pub(in super::super) struct Place<'a> {
    pub(in super::super) path: &'a str,
    pub(in super::super) source: &'a str,
    pub(in super::super) role: Role,
    /// Code inside a line of prose, or a cell of a table.
    pub(in super::super) inline: bool,
    /// The words around it warn of it.
    pub(in super::super) warned: bool,
    /// How many encodings it was under.
    pub(in super::super) layers: usize,
    /// Where the text that was read begins in the source, and whether it stands there as it is.
    pub(in super::super) base: usize,
    pub(in super::super) exact: bool,
}

impl Place<'_> {
    pub(in super::super) fn at(&self, at: &Range<usize>) -> Range<usize> {
        if self.exact { self.base + at.start..self.base + at.end } else { self.base..self.base }
    }
}

pub(in super::super) fn role(path: &str, language: Language) -> Role {
    let lower = path.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split('/').collect();
    let (name, folders) =
        parts.split_last().map_or(("", &[][..]), |(name, folders)| (*name, folders));
    let test_name = name.starts_with("test_")
        || name.contains(".test.")
        || name.contains(".spec.")
        || name.ends_with("_test.py")
        || name.contains("fixture");
    if test_name
        || folders.iter().any(|folder| {
            matches!(
                *folder,
                "test"
                    | "tests"
                    | "__tests__"
                    | "fixtures"
                    | "testdata"
                    | "examples"
                    | "example"
                    | "evals"
            )
        })
    {
        return Role::Example;
    }
    if matches!(
        name,
        "package.json"
            | "setup.py"
            | "setup.cfg"
            | "pyproject.toml"
            | "install.sh"
            | "postinstall.js"
            | "plugin.json"
    ) || folders.contains(&"hooks")
    {
        return Role::Hook;
    }
    match language {
        Language::Markdown if folders.is_empty() => Role::Manual,
        Language::Markdown | Language::Plain => Role::Reference,
        _ => Role::Script,
    }
}
