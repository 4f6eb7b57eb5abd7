//! Durations as people write them on a command line.

use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("give seconds, or a duration such as 15s or 2m")]
pub struct DurationError;

/// Seconds as a number, or written out: `30`, `0.5`, `30s`, `1m 30s`.
///
/// # Errors
///
/// If it is neither, or less than nothing, or more than there is.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let parsed = match text.trim().parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    parsed.ok_or(DurationError)
}

/// Reads a duration as [`parse_duration`] does, for a flag.
///
/// # Errors
///
/// If it is no duration, or `advice` if it is outside the range.
pub fn parse_duration_within(
    text: &str,
    range: RangeInclusive<Duration>,
    advice: &str,
) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    let within = Some(duration).filter(|duration| range.contains(duration));
    within.ok_or_else(|| advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_seconds_and_the_rest_is_written_out() {
        for (text, millis) in [
            ("30", 30_000),
            ("0", 0),
            ("0.5", 500),
            (" 2 ", 2_000),
            ("30s", 30_000),
            ("1m 30s", 90_000),
            ("250ms", 250),
        ] {
            let expected = Duration::from_millis(millis);
            assert_eq!(parse_duration(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused() {
        for text in ["", "-1", "NaN", "inf", "1e300", "soon", "5 apples"] {
            assert_eq!(parse_duration(text), Err(DurationError), "{text:?}");
        }
    }
}
