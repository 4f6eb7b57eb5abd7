//! Numbers as people read them.

use std::time::Duration;

/// An amount: at most six significant digits, thousands apart, `1,234.5`.
pub fn amount(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if !(1e-6..1e15).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    // Digits before the point, as far as they count.
    let whole_digits = magnitude.log10().floor().max(-1.0) + 1.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 6"
    )]
    let decimals = (6.0 - whole_digits).clamp(0.0, 6.0) as usize;
    let text = format!("{magnitude:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut out = String::new();
    if value < 0.0 {
        out.push('-');
    }
    out.push_str(&grouped(whole));
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A count: `12,345`.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A size in bytes: `512 B`, `1.5 KiB`, `256 MiB`, `2,048 MiB`.
pub fn bytes(value: u64) -> String {
    const KIB: u64 = 1_024;
    const MIB: u64 = KIB * KIB;
    let (unit, name) = match value {
        0..KIB => return format!("{value} B"),
        KIB..MIB => (KIB, "KiB"),
        MIB.. => (MIB, "MiB"),
    };
    let tenths = value % unit * 10 / unit;
    let whole = grouped(&(value / unit).to_string());
    match tenths {
        0 => format!("{whole} {name}"),
        _ => format!("{whole}.{tenths} {name}"),
    }
}

fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A span of time in its two largest units: `3 d 4 h`, `5 min 20 s`, `2.5 s`, `40 ms`.
pub fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let two = |large: u64, large_unit, small: u64, small_unit| {
        if small == 0 {
            format!("{large} {large_unit}")
        } else {
            format!("{large} {large_unit} {small} {small_unit}")
        }
    };
    if days > 0 {
        two(days, "d", hours, "h")
    } else if hours > 0 {
        two(hours, "h", minutes, "min")
    } else if minutes > 0 {
        two(minutes, "min", seconds % 60, "s")
    } else if millis >= 1_000 {
        let tenths = millis % 1_000 / 100;
        if tenths == 0 || seconds >= 10 {
            format!("{seconds} s")
        } else {
            format!("{seconds}.{tenths} s")
        }
    } else {
        format!("{millis} ms")
    }
}

/// How much of a whole, in percent from 0 to 100 for the width of a bar; 0 if there is no whole.
pub fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 && part.is_finite() {
        (part / whole * 100.0).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

/// A moment of the wall clock, `2026-11-21 04:53:31 UTC`.
pub fn moment(since_epoch: Duration) -> String {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(since_epoch.as_secs());
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_exact_enough() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.1 + 0.2, "0.3"),
            (33.333_333_333, "33.3333"),
            (1234.5, "1,234.5"),
            (1_234_567.89, "1,234,568"),
            (999_999.96, "1,000,000"),
            (1e15, "1.000e15"),
            (0.000_012_34, "0.000012"),
            (1e-9, "1.000e-9"),
            (-1500.25, "-1,500.25"),
        ] {
            assert_eq!(amount(value), expected, "{value:?}");
        }
    }

    #[test]
    fn spans_show_their_two_largest_units() {
        for (millis, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (2_540, "2.5 s"),
            (59_999, "59 s"),
            (320_000, "5 min 20 s"),
            (3_600_000, "1 h"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(span(millis), expected);
        }
    }

    #[test]
    fn sizes_have_the_unit_that_reads_best() {
        for (value, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (262_144, "256 KiB"),
            (1_572_864, "1.5 MiB"),
            (4_194_304, "4 MiB"),
            (8_589_934_592, "8,192 MiB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
    }

    #[test]
    fn a_bar_stays_within_its_frame() {
        assert_eq!(percent(5.0, 0.0), 0.0);
        assert_eq!(percent(20.0, 10.0), 100.0);
        assert_eq!(percent(1.0, 4.0), 25.0);
    }

    #[test]
    fn a_moment_names_its_zone() {
        assert_eq!(
            moment(Duration::from_secs(1_700_000_000)),
            "2023-11-14 22:13:20 UTC"
        );
    }
}
