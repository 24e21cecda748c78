//! Timestamps of the format: UTC, seconds, `YYYY-MM-DDTHH:MM:SSZ`.

use std::fmt;
use std::str::FromStr;

/// Seconds since 1970-01-01T00:00:00Z, within the years 0000 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is no timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no timestamp: give one like 2026-01-31T12:00:00Z")]
pub struct ParseTimestampError(String);

const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

impl Timestamp {
    /// The last second of the year 9999.
    pub const MAX: Self = Self(LAST);

    /// From seconds since 1970; `None` outside the years 0000 to 9999.
    #[must_use]
    pub fn from_unix(seconds: i64) -> Option<Self> {
        (FIRST..=LAST).contains(&seconds).then_some(Self(seconds))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(86_400));
        let second = self.0.rem_euclid(86_400);
        write!(
            formatter,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    /// Reads any RFC 3339 timestamp; a fraction is cut off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_rfc3339(text)
            .map(|(time, _)| time)
            .ok_or_else(|| ParseTimestampError(text.chars().take(64).collect()))
    }
}

/// Whether `text` is spelled exactly `YYYY-MM-DDTHH:MM:SSZ` (digits, not calendar).
#[must_use]
pub fn is_normal_spelling(text: &str) -> bool {
    let pattern = b"dddd-dd-ddTdd:dd:ddZ";
    text.len() == pattern.len()
        && text.bytes().zip(pattern).all(|(byte, &expected)| {
            if expected == b'd' { byte.is_ascii_digit() } else { byte == expected }
        })
}

/// Whether `text` is an RFC 3339 timestamp of a day and second that exist.
#[must_use]
pub fn is_date(text: &str) -> bool {
    parse_rfc3339(text).is_some()
}

/// The normal spelling of an RFC 3339 timestamp: UTC, fraction cut off; `None` if it is not one.
#[must_use]
pub fn normalise(text: &str) -> Option<String> {
    let (time, leap) = parse_rfc3339(text)?;
    let mut normal = time.to_string();
    if leap {
        // A leap second keeps its spelling `:60`.
        normal.replace_range(17..19, "60");
    }
    Some(normal)
}

/// The instant, and whether it was the 60th second of its minute.
fn parse_rfc3339(text: &str) -> Option<(Timestamp, bool)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0i64, |sum, digit| {
            digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0'))
        })
    };
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, character)| bytes.get(at) != Some(&character))
        || !matches!(bytes.get(10), Some(b'T' | b't' | b' '))
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = bytes.get(19..)?;
    if rest.first() == Some(&b'.') {
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        rest = &rest[1 + digits..];
    }
    let offset = match rest {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let start = bytes.len() - 5;
            let (hours, minutes) = (number(start, start + 2)?, number(start + 3, start + 5)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let leap = second == 60;
    let seconds =
        days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second.min(59)
            - offset;
    Some((Timestamp::from_unix(seconds)?, leap))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the Gregorian calendar, counted in years from March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_as_the_format_says() {
        for (input, expected) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:06+05:30", "2026-01-01T21:34:06Z"),
            ("2026-01-02t03:04:05.999999z", "2026-01-02T03:04:05Z"),
            ("2024-02-29T23:59:59-00:01", "2024-03-01T00:00:59Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:60Z"),
        ] {
            assert_eq!(normalise(input).as_deref(), Some(expected), "{input}");
        }
        for input in [
            "",
            "2026",
            "2026-02-29T00:00:00Z",
            "2026-01-02T03:04:05",
            "2026-13-01T00:00:00Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:04:05.Z",
            "0000-01-01T00:00:00+01:00",
        ] {
            assert_eq!(normalise(input), None, "{input}");
        }
    }

    #[test]
    fn every_day_of_ten_thousand_years_round_trips() {
        let mut day = FIRST / 86_400;
        while day <= LAST / 86_400 {
            let (year, month, date) = civil_from_days(day);
            assert_eq!(days_from_civil(year, month, date), day);
            day += 1;
        }
        assert_eq!(Timestamp::from_unix(0).unwrap().to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_unix(LAST).unwrap().to_string(), "9999-12-31T23:59:59Z");
    }
}
