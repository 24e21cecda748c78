//! Times as people give them.

use wardkeep_evidence::time::Timestamp;

use crate::error::CliError;

/// An RFC 3339 timestamp, or how long ago: `90s`, `15m`, `2h`, `3d`.
pub(crate) fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let ago = || {
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        let count = digits.parse::<u32>().ok()?;
        Timestamp::from_unix(now.unix() - i64::from(count) * seconds)
    };
    text.parse().ok().or_else(ago).ok_or_else(|| {
        CliError::refused(
            format!("`{text}` is no time"),
            "give one like 2026-01-31T12:00:00Z, or how long ago: 15m, 2h, 3d",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let shown = |text| parse_time(text, now).map(|time| time.to_string()).ok();
        assert_eq!(shown("2h").as_deref(), Some("2026-01-31T10:00:00Z"));
        assert_eq!(shown("1d").as_deref(), Some("2026-01-30T12:00:00Z"));
        assert_eq!(shown("2026-01-01T00:00:00+01:00").as_deref(), Some("2025-12-31T23:00:00Z"));
        for text in ["", "h", "-1h", "2w", "99999999999h", "é"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
