//! Times as people give them.

use wardkeep_evidence::time::Timestamp;

use crate::error::CliError;

/// An RFC 3339 timestamp, or how long ago: `90s`, `15m`, `2h`, `3d`.
pub(crate) fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let ago = || {
        let (count, seconds) = split_duration(text)?;
        Timestamp::from_unix(now.unix() - i64::from(count) * i64::from(seconds))
    };
    text.parse().ok().or_else(ago).ok_or_else(|| {
        CliError::refused(
            format!("`{text}` is no time"),
            "give one like 2026-01-31T12:00:00Z, or how long ago: 15m, 2h, 3d",
        )
    })
}

/// How long: `90s`, `15m`, `2h`, `3d`, in seconds.
pub(crate) fn parse_duration(text: &str) -> Option<u32> {
    let (count, seconds) = split_duration(text)?;
    count.checked_mul(seconds)
}

/// How many of how many seconds.
fn split_duration(text: &str) -> Option<(u32, u32)> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    Some((digits.parse().ok()?, seconds))
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

    #[test]
    fn durations_are_bounded() {
        assert_eq!(parse_duration("15m"), Some(900));
        assert_eq!(parse_duration("0s"), Some(0));
        for text in ["", "m", "15", "-1m", "+ 1m", "999999d", "4294967296s", "1é"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
