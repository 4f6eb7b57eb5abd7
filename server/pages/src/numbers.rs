//! Numbers as people read them, on pages, in tables and in reports.
//!
//! A value that is not a number is shown as a dash, so that no reader takes it for a figure.

use std::fmt::Display;
use std::time::Duration;

/// Text for an unknown value.
pub const NONE: &str = "–";

/// Formats an amount: at most six significant digits, with commas between thousands, `1,234.5`.
pub fn amount(value: f64) -> String {
    match significant(value, 1e-6) {
        Some(text) => apart(&text),
        None if value.is_finite() => format!("{value:.3e}"),
        None => NONE.to_owned(),
    }
}

/// Formats an amount as people type it: at most six significant digits, `1234.5`.
pub fn typed(value: f64) -> String {
    significant(value, 1e-6).unwrap_or_else(|| value.to_string())
}

/// Formats a measured value: four digits, or all digits before the point, with commas between thousands. More digits
/// would suggest an exact value.
pub fn measured(value: f64) -> String {
    let decimals = match value.abs() {
        m if m >= 1_000.0 => 0,
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        m if m >= 1.0 => 3,
        _ => 4,
    };
    match rounded(value, 1e-4, decimals) {
        Some(text) => apart(&text),
        None if value.is_finite() => format!("{value:.2e}"),
        None => NONE.to_owned(),
    }
}

/// Writes out six significant digits at most. None: as in `rounded`.
fn significant(value: f64, least: f64) -> Option<String> {
    // The significant digits before the point. Zero has no logarithm, so `least` takes its place.
    let magnitude = value.abs().max(least);
    let whole_digits = magnitude.log10().floor().max(-1.0) + 1.0;
    let decimals = (6.0 - whole_digits).clamp(0.0, 6.0);
    rounded(value, least, decimals as usize)
}

/// Writes out that many digits after the point at most. None: the value is no number, or has too many digits to read.
fn rounded(value: f64, least: f64, decimals: usize) -> Option<String> {
    if value == 0.0 {
        return Some("0".to_owned());
    }
    if !(least..1e15).contains(&value.abs()) {
        return None;
    }
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => Some(text.trim_end_matches('0').trim_end_matches('.').to_owned()),
        false => Some(text),
    }
}

/// Puts commas between thousands.
fn apart(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    match digits.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", grouped(whole)),
        None => format!("{sign}{}", grouped(digits)),
    }
}

/// Formats a whole number: `12,345`.
pub fn count(value: impl Display) -> String {
    grouped(&value.to_string())
}

/// Formats a size in bytes: `512 B`, `1.5 KiB`, `256 MiB`, `2,048 MiB`.
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

/// Formats a count with its noun: `1 node`, `2 nodes`.
pub fn several(value: usize, one: &str, many: &str) -> String {
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

/// Formats a part in percent. A value close to 0 % or to 100 % is not rounded to it, because an operator looks for
/// exactly that difference.
pub fn percent(part: f64) -> String {
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
    let text = format!("{value:.*}", decimals as usize);
    let whole = text.trim_end_matches('0').trim_end_matches('.');
    // 100 and 99.96 are not the same: only a whole value is shown as a whole number.
    let shown = if (value - value.round()).abs() < 1e-7 {
        whole
    } else {
        &text
    };
    format!("{shown} %")
}

/// Formats a part in percentage points, with two digits after the point, because readers add such numbers up.
pub fn points(part: f64) -> String {
    match part * 100.0 {
        value if !value.is_finite() => NONE.to_owned(),
        value if value > 0.0 && value < 0.005 => "< 0.01".to_owned(),
        value => format!("{value:.2}"),
    }
}

/// Formats a span in milliseconds as [`seconds`] does.
pub fn span(millis: u64) -> String {
    seconds(Duration::from_millis(millis).as_secs_f64())
}

/// Formats a capacity: at most six significant digits, without trailing zeros; -1 is no limit.
pub fn capacity(value: f64) -> String {
    if value == -1.0 {
        return "unlimited".to_owned();
    }
    // Sums and differences of amounts leave a remainder of rounding.
    if value.abs() < 1e-9 {
        return "0".to_owned();
    }
    typed(value)
}

/// Formats a span as flags and templates take it, rounded to the digits that matter: `1h 5m`, `59.5s`, `20ms`.
pub fn typed_span(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let rounded = match millis {
        0..1_000 => Duration::from_millis(millis),
        1_000..60_000 => {
            let tenths = Duration::from_millis(millis / 100 * 100);
            return format!("{}s", typed(tenths.as_secs_f64()));
        }
        60_000..3_600_000 => Duration::from_secs(millis / 1_000),
        _ => Duration::from_secs(millis / 60_000 * 60),
    };
    humantime::format_duration(rounded).to_string()
}

/// Formats a span of time in its two largest units: `1 h 5 min`, `3 min 20 s`, `2.5 s`, `40 ms`.
pub fn seconds(seconds: f64) -> String {
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

/// Formats the time since a start: `12:30`, `1:02:05`, `0:07.5`.
pub fn clock(seconds: f64) -> String {
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

/// Rounds a span that is not negative. A cast saturates.
fn whole_seconds(seconds: f64) -> u64 {
    seconds.round() as u64
}

#[cfg(test)]
mod tests;
