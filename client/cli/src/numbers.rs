//! Numbers and spans as people read them.

use std::time::Duration;

/// At most six significant digits, without trailing zeros.
pub(crate) fn number(value: f64) -> String {
    if value == -1.0 {
        return "unlimited".to_owned();
    }
    if value == 0.0 || !value.is_finite() || value.abs() >= 1e15 || value.abs() < 1e-6 {
        return value.to_string();
    }
    let before_point = value.abs().log10().floor() as i32 + 1;
    let decimals = usize::try_from(6 - before_point).unwrap_or(0).min(9);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Rounded to what matters: `1h 5m`, `59.5s`, `20ms`.
pub(crate) fn span(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let rounded = match millis {
        0..1_000 => Duration::from_millis(millis),
        1_000..60_000 => Duration::from_millis(millis / 100 * 100),
        60_000..3_600_000 => Duration::from_secs(millis / 1_000),
        _ => Duration::from_secs(millis / 60_000 * 60),
    };
    if (1_000..60_000).contains(&millis) {
        return format!("{}s", number(rounded.as_secs_f64()));
    }
    humantime::format_duration(rounded).to_string()
}

/// As JSON has it.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits_that_matter() {
        for (value, expected) in [
            (0.0, "0"),
            (100.0, "100"),
            (69.690_721_649, "69.6907"),
            (1234567.0, "1234567"),
            (0.125, "0.125"),
            (-1.0, "unlimited"),
            (1e15, "1000000000000000"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn spans_are_rounded_to_what_matters() {
        for (millis, expected) in [
            (0, "0s"),
            (20, "20ms"),
            (59_540, "59.5s"),
            (60_999, "1m"),
            (3_930_000, "1h 5m"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), expected);
        }
    }
}
