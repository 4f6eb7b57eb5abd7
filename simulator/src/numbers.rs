//! Numbers as people read them. What is not a number is shown as a dash: nothing a report says may
//! look like a figure that it is not.

/// What stands for what cannot be told.
pub(crate) const NONE: &str = "–";

/// An amount: at most four digits after the whole, fewer the larger it is, thousands apart.
pub(crate) fn amount(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let decimals = match magnitude {
        m if m >= 1_000.0 => 0,
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        m if m >= 1.0 => 3,
        _ => 4,
    };
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
pub(crate) fn count(value: usize) -> String {
    grouped(&value.to_string())
}

/// A large count: `12,345`.
pub(crate) fn large(value: u64) -> String {
    grouped(&value.to_string())
}

/// So many of something: `1 node`, `2 nodes`.
pub(crate) fn several(value: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
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

/// A part in percent. What is a little more than nothing, or than all, is not rounded to it: that
/// is what an operator looks for.
pub(crate) fn percent(part: f64) -> String {
    if !part.is_finite() {
        return NONE.to_owned();
    }
    let value = part * 100.0;
    if value.abs() < 1e-7 {
        return "0 %".to_owned();
    }
    let mut decimals = if value.abs() < 10.0 { 2 } else { 1 };
    let away = (value - 100.0).abs();
    while decimals < 4 && away > 1e-7 && away < 0.51 * 10_f64.powi(-decimals) {
        decimals += 1;
    }
    if value.abs() < 0.005 {
        return if value > 0.0 { "< 0.01 %" } else { "> -0.01 %" }.to_owned();
    }
    #[expect(clippy::cast_sign_loss, reason = "1 to 4")]
    let text = format!("{value:.*}", decimals as usize);
    let whole = text.trim_end_matches('0').trim_end_matches('.');
    // 100 and 99.96 are not the same: only what is whole is shown so.
    let shown = if (value - value.round()).abs() < 1e-7 {
        whole
    } else {
        &text
    };
    format!("{shown} %")
}

/// A part in points of percent, with two digits after the point: such numbers are added up.
pub(crate) fn points(part: f64) -> String {
    match part * 100.0 {
        value if !value.is_finite() => NONE.to_owned(),
        value if value > 0.0 && value < 0.005 => "< 0.01".to_owned(),
        value => format!("{value:.2}"),
    }
}

/// A span of time in its two largest units: `1 h 5 min`, `3 min 20 s`, `2.5 s`, `40 ms`.
pub(crate) fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NONE.to_owned();
    }
    if seconds < 0.9995 {
        let millis = (seconds * 1_000.0).round();
        return match millis {
            m if m >= 1.0 => format!("{m:.0} ms"),
            _ if seconds > 0.0 => "< 1 ms".to_owned(),
            _ => "0 s".to_owned(),
        };
    }
    if seconds < 59.95 {
        let text = format!("{seconds:.1}");
        return format!("{} s", text.strip_suffix(".0").unwrap_or(&text));
    }
    let whole = whole_seconds(seconds);
    let (days, hours, minutes) = (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60);
    let two = |large: u64, large_unit, small: u64, small_unit| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    if days > 0 {
        two(days, "d", hours, "h")
    } else if hours > 0 {
        two(hours, "h", minutes, "min")
    } else {
        two(minutes, "min", whole % 60, "s")
    }
}

/// A time from the start: `12:30`, `1:02:05`, `0:07.5`.
pub(crate) fn clock(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NONE.to_owned();
    }
    let tenths = whole_seconds(seconds * 10.0);
    let whole = tenths / 10;
    let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60);
    let mut text = match hours {
        0 => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    };
    if hours == 0 && !tenths.is_multiple_of(10) {
        text += &format!(".{}", tenths % 10);
    }
    text
}

fn whole_seconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; a cast saturates"
    )]
    let whole = seconds.round() as u64;
    whole
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
            (33.333_333, "33.33"),
            (1234.5, "1,234"),
            (1_234_567.89, "1,234,568"),
            (-150.25, "-150.2"),
            (0.000_01, "1.00e-5"),
            (1e15, "1.00e15"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(amount(value), expected, "{value:?}");
        }
    }

    #[test]
    fn parts_never_round_to_nothing_or_to_all() {
        for (part, expected) in [
            (0.0, "0 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
            (0.9995, "99.95 %"),
            (0.999_99, "99.999 %"),
            (0.9713, "97.1 %"),
            (1.0001, "100.01 %"),
            (1.000_002, "100.0002 %"),
            (1.25, "125 %"),
            (0.0123, "1.23 %"),
            (0.000_02, "< 0.01 %"),
            (-0.021, "-2.10 %"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(percent(part), expected, "{part:?}");
        }
    }

    #[test]
    fn spans_show_their_two_largest_units() {
        for (seconds, expected) in [
            (0.0, "0 s"),
            (0.000_01, "< 1 ms"),
            (0.04, "40 ms"),
            (0.9999, "1 s"),
            (2.54, "2.5 s"),
            (59.99, "1 min"),
            (200.0, "3 min 20 s"),
            (3_900.0, "1 h 5 min"),
            (273_600.0, "3 d 4 h"),
            (-1.0, "–"),
        ] {
            assert_eq!(span(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn times_are_read_off_a_clock() {
        for (seconds, expected) in [
            (0.0, "0:00"),
            (7.5, "0:07.5"),
            (750.0, "12:30"),
            (59.99, "1:00"),
            (3_725.0, "1:02:05"),
            (90_000.0, "25:00:00"),
        ] {
            assert_eq!(clock(seconds), expected, "{seconds}");
        }
    }
}
