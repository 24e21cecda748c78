//! How a person names a version.

use std::str::FromStr;

use super::HistoryError;

/// Fewer digits of a commit are not enough.
const LEAST_DIGITS: usize = 4;
const MOST_DIGITS: usize = 64;

/// Which version of a file is meant.
///
/// ```
/// use wardkeep_identity::history::Revision;
/// assert_eq!("-1".parse::<Revision>().unwrap(), Revision::Versions(1));
/// assert_eq!("~3".parse::<Revision>().unwrap(), Revision::Commits(3));
/// assert_eq!("AB12".parse::<Revision>().unwrap(), Revision::Commit("ab12".to_owned()));
/// assert!("main".parse::<Revision>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// `-2`: so many versions of the file back; `-0` is the newest.
    Versions(usize),
    /// `~2`: as of so many commits back; `~0` is the newest.
    Commits(usize),
    /// The first digits of a commit's name, in lower case.
    Commit(String),
}

impl FromStr for Revision {
    type Err = HistoryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || {
            let shown: String = text.chars().take(80).collect();
            HistoryError::Revision(crate::show::visible(&shown))
        };
        let number = |digits: &str| {
            let is_number =
                (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { digits.parse().map_err(|_| refused()) } else { Err(refused()) }
        };
        if let Some(digits) = text.strip_prefix('-') {
            return Ok(Self::Versions(number(digits)?));
        }
        if let Some(digits) = text.strip_prefix('~') {
            return Ok(Self::Commits(number(digits)?));
        }
        let is_prefix = (LEAST_DIGITS..=MOST_DIGITS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_prefix { Ok(Self::Commit(text.to_ascii_lowercase())) } else { Err(refused()) }
    }
}
