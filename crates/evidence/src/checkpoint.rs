//! Checkpoints (C2SP tlog-checkpoint): the text of a note that states a log's size and root.

use std::fmt::Write as _;

use thiserror::Error;

use crate::merkle::{HashFormatError, TreeHash};
use crate::note::{self, NoteError};

/// The most extension lines a checkpoint may have.
pub const MAX_EXTENSIONS: usize = 16;

const MAX_DECIMAL_DIGITS: usize = 20;

/// A log's size and root, not signed yet or not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name that tells the log from all others; one line that is not empty.
    pub origin: String,
    /// The number of leaves.
    pub size: u64,
    /// The root of the tree with that many leaves.
    pub root: TreeHash,
    /// Further lines, none of them empty.
    pub extensions: Vec<String>,
}

impl Checkpoint {
    /// Reads the text of a note, with its final newline.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        note::check_text(text)?;
        let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        let mut next = || lines.next().ok_or(CheckpointError::TooFewLines);
        let origin = next()?.to_owned();
        let size_line = next()?;
        let size = parse_decimal(size_line)
            .ok_or_else(|| CheckpointError::Size { line: note::excerpt(size_line) })?;
        let root = TreeHash::from_base64(next()?)?;
        let extensions: Vec<_> = lines.by_ref().take(MAX_EXTENSIONS).map(str::to_owned).collect();
        if lines.next().is_some() {
            return Err(CheckpointError::TooManyExtensions);
        }
        if origin.is_empty() || extensions.iter().any(String::is_empty) {
            return Err(CheckpointError::EmptyLine);
        }
        Ok(Self { origin, size, root, extensions })
    }

    /// The text to sign, with its final newline.
    ///
    /// [`Checkpoint::parse`] reads it back to the same value when the origin and the extensions
    /// are single lines that are not empty, as those of a parsed checkpoint always are.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.origin, self.size, self.root);
        for extension in &self.extensions {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{extension}");
        }
        text
    }
}

/// Reads an ASCII decimal without sign and without leading zeros.
pub(crate) fn parse_decimal(text: &str) -> Option<u64> {
    let only_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if text.len() > MAX_DECIMAL_DIGITS || !only_digits || leading_zero {
        return None;
    }
    text.parse().ok()
}

/// Why a text is not a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// The text could not be the text of a note.
    #[error(transparent)]
    Text(#[from] NoteError),
    /// The origin, the size or the root is missing.
    #[error("a checkpoint needs three lines: origin, size and root; it may be cut off")]
    TooFewLines,
    /// The origin or an extension line is empty.
    #[error("a checkpoint may not have an empty line")]
    EmptyLine,
    /// The size is not a plain decimal.
    #[error("`{line}` is not a tree size; expected a decimal without leading zeros")]
    Size {
        /// The beginning of the line.
        line: String,
    },
    /// The root is not the base64 form of a hash.
    #[error("the root line is malformed: {0}")]
    Root(#[from] HashFormatError),
    /// There are more than [`MAX_EXTENSIONS`] extension lines.
    #[error("the checkpoint has more than {MAX_EXTENSIONS} extension lines")]
    TooManyExtensions,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::merkle::empty_root;

    const ROOT: &str = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";

    #[test]
    fn specification_example_reads_and_writes() {
        let text = format!("example.com/behind-the-sofa\n20852163\n{ROOT}\n");
        let checkpoint = Checkpoint::parse(&text).unwrap();
        assert_eq!(checkpoint.origin, "example.com/behind-the-sofa");
        assert_eq!(checkpoint.size, 20_852_163);
        assert_eq!(checkpoint.root.to_string(), ROOT);
        assert_eq!(checkpoint.extensions, Vec::<String>::new());
        assert_eq!(checkpoint.to_text(), text);
    }

    #[test]
    fn extensions_keep_their_order_and_number() {
        let lines = |count: usize| (0..count).map(|n| format!("line {n}\n")).collect::<String>();
        let text = |count: usize| format!("log\n0\n{ROOT}\n{}", lines(count));
        let full = Checkpoint::parse(&text(MAX_EXTENSIONS)).unwrap();
        assert_eq!(full.to_text(), text(MAX_EXTENSIONS));
        assert_eq!(full.extensions[15], "line 15");
        let over = Checkpoint::parse(&text(MAX_EXTENSIONS + 1));
        assert_eq!(over, Err(CheckpointError::TooManyExtensions));
    }

    #[test]
    fn malformed_checkpoints_are_refused() {
        let cases = [
            String::new(),
            "\n".to_owned(),
            "log\n".to_owned(),
            "log\n1\n".to_owned(),
            format!("log\n1\n{ROOT}"),
            format!("\n1\n{ROOT}\n"),
            format!("log\n\n{ROOT}\n"),
            format!("log\n1\n{ROOT}\n\n"),
            format!("log\n1\n{ROOT}\n\nextension\n"),
            format!("log\n01\n{ROOT}\n"),
            format!("log\n+1\n{ROOT}\n"),
            format!("log\n-1\n{ROOT}\n"),
            format!("log\n 1\n{ROOT}\n"),
            format!("log\n1 \n{ROOT}\n"),
            format!("log\n1\r\n{ROOT}\n"),
            format!("log\n0x1\n{ROOT}\n"),
            format!("log\n٣\n{ROOT}\n"),
            format!("log\n18446744073709551616\n{ROOT}\n"),
            format!("log\n1\n{}\n", ROOT.trim_end_matches('=')),
            format!("log\n1\n {ROOT}\n"),
            format!("log\n1\n{ROOT}\n\tx\n"),
        ];
        for text in cases {
            assert!(Checkpoint::parse(&text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn decimals_are_strict() {
        assert_eq!(parse_decimal("0"), Some(0));
        assert_eq!(parse_decimal("18446744073709551615"), Some(u64::MAX));
        for text in ["", "00", "01", "18446744073709551616", "1_0", "1.", &"9".repeat(1000)] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn to_text_and_parse_are_inverse(
            origin in "[^\\x00-\\x1f]{1,20}",
            size: u64,
            extensions in prop::collection::vec("[^\\x00-\\x1f]{1,20}", 0..=MAX_EXTENSIONS),
        ) {
            let checkpoint = Checkpoint { origin, size, root: empty_root(), extensions };
            prop_assert_eq!(Checkpoint::parse(&checkpoint.to_text()), Ok(checkpoint));
        }

        #[test]
        fn accepted_text_comes_back(text in "(log|[0-9]{1,3}|[A-Za-z+/]{43}=|\n|(?s:.)){0,12}") {
            if let Ok(checkpoint) = Checkpoint::parse(&text) {
                prop_assert_eq!(checkpoint.to_text(), text);
            }
        }
    }
}
