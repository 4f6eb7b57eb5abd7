//! Windows of budgets: from which point in time to which one an amount counts.
//!
//! A minute, an hour, a day, a week, or another length begins at its multiples since 1970, so a week begins on Thursdays.
//! A month and a year are those of the calendar, in UTC. An offset shifts all of them. A lifetime is one window without
//! an end.

use std::time::Duration;

pub use doorward_time::budget::{UnixMillis, Window};

const SECOND: i64 = 1_000;
const DAY: i64 = 86_400 * SECOND;

/// Shortest window that is kept with a mark. A shorter one soon turns: after a failover, it waits for that.
pub const MARKED_MIN: Duration = Duration::from_secs(600);

/// Sequence of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    unit: Unit,
    /// Time by which each window begins later, in milliseconds.
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Multiples of a number of milliseconds.
    Every(i64),
    /// A number of months, counted from January.
    Months(i64),
    Lifetime,
}

impl Period {
    /// Parses the `window` and the `offset` of a template. An empty offset is none.
    ///
    /// # Errors
    ///
    /// The parameter that is wrong, and advice.
    pub fn parse(window: &str, offset: &str) -> Result<Self, String> {
        let unit = match window {
            "minute" => Unit::Every(60 * SECOND),
            "hour" => Unit::Every(3_600 * SECOND),
            "day" => Unit::Every(DAY),
            "week" => Unit::Every(7 * DAY),
            "month" => Unit::Months(1),
            "year" => Unit::Months(12),
            "lifetime" => Unit::Lifetime,
            length => Unit::Every(span(length).filter(|length| *length >= SECOND).ok_or_else(
                || {
                    format!(
                        "window is {length:?}; give minute, hour, day, week, month, year, lifetime, or a length \
                         such as 15m or 30d"
                    )
                },
            )?),
        };
        let (sign, length) = match offset.strip_prefix('-') {
            Some(length) => (-1, length),
            None => (1, offset),
        };
        let shift = if offset.is_empty() {
            Some(0)
        } else {
            span(length)
        };
        let shift = shift.filter(|shift| *shift <= 366 * DAY).ok_or_else(|| {
            format!("offset is {offset:?}; give a length of at most a year, such as 4d or -1h")
        })?;
        Ok(Self {
            unit,
            offset: sign * shift,
        })
    }

    /// Returns the window of a time.
    pub fn at(self, time: UnixMillis) -> Window {
        let time = time.saturating_sub(self.offset);
        let (start, end) = match self.unit {
            Unit::Lifetime => return Window::LIFETIME,
            Unit::Every(length) => {
                let start = time.div_euclid(length) * length;
                (start, start + length)
            }
            Unit::Months(count) => {
                let first = month_of(time.div_euclid(DAY)).div_euclid(count) * count;
                (day_of(first) * DAY, day_of(first + count) * DAY)
            }
        };
        Window {
            start: start + self.offset,
            end: end + self.offset,
        }
    }

    /// Whether windows are so long that a root keeps a mark of them.
    pub fn is_marked(self) -> bool {
        match self.unit {
            Unit::Every(length) => length.unsigned_abs() >= MARKED_MIN.as_millis() as u64,
            Unit::Months(_) | Unit::Lifetime => true,
        }
    }
}

/// Parses a whole number of seconds, minutes, hours or days, such as `90s` or `30d`, as milliseconds.
fn span(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        "d" => DAY,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    i64::from(number).checked_mul(unit)
}

// Days and months since January 1970, by Howard Hinnant's algorithms for the proleptic Gregorian calendar
// (https://howardhinnant.github.io/date_algorithms.html). Years begin in March there, so that leap days come last.

/// Returns the month of a day.
fn month_of(day: i64) -> i64 {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    12 * (year + era * 400) + from_march + 2 - 12 * 1_970
}

/// Returns the first day of a month.
fn day_of(month: i64) -> i64 {
    let from_march = month + 12 * 1_970 - 2;
    let (year, month) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let era = year.div_euclid(400);
    let year = year.rem_euclid(400);
    let of_era = year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5;
    era * 146_097 + of_era - 719_468
}
