//! An amount in a time, as one value: `100/s`, `5000/h`, `10/min`.
//!
//! A month has 30 days and a year 365, as in envoyproxy/ratelimit. The amount and its period stay together and exact. 4,999 per day has no period of whole nanoseconds, so a rounded
//! one errs by several units in a year. An interface with two bare numbers also invites swapped arguments.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::units::{InvalidUnits, Units};

/// An amount in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    amount: Units,
    /// In nanoseconds.
    period: NonZeroU64,
}

/// Error: an invalid rate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRate {
    /// There is no slash.
    #[error("{0:?} is not a rate; give an amount and a period, as in 100/s, 5000/h, 10/min")]
    NoPeriod(String),
    /// The text before the slash is not an amount.
    #[error("the amount {amount:?} {problem}")]
    Amount {
        /// The text.
        amount: String,
        /// The problem.
        problem: InvalidUnits,
    },
    /// The text behind the slash is not a period.
    #[error(
        "{0:?} is not a period; give ns, us, ms, s, min, h, day, week, month or year, as in 100/s or 100/10s"
    )]
    Period(String),
    /// The period is 0, or longer than 584 years.
    #[error("a period is from 1 ns to 584 years")]
    PeriodLength,
}

impl Rate {
    /// Creates a rate of an amount in a time.
    ///
    /// # Errors
    ///
    /// If the time is 0 or longer than 584 years.
    pub fn new(amount: Units, period: Duration) -> Result<Self, InvalidRate> {
        let nanos = u64::try_from(period.as_nanos()).unwrap_or(0);
        let period = NonZeroU64::new(nanos).ok_or(InvalidRate::PeriodLength)?;
        Ok(Self { amount, period })
    }

    /// Creates a rate per second.
    pub const fn per_second(amount: Units) -> Self {
        const SECOND: NonZeroU64 = NonZeroU64::new(1_000_000_000).unwrap();
        Self::per(amount, SECOND)
    }

    /// Creates a rate from a measured or granted number per second, to 15 digits. Below a million it uses a longer
    /// period, so that small rates keep their digits. The largest rate is 4·10¹⁸, practically no limit.
    ///
    /// # Errors
    ///
    /// If the number is not a number, negative, or infinite.
    pub fn from_per_second(per_second: f64) -> Result<Self, InvalidUnits> {
        const MOST: f64 = 4e18;
        let seconds: u64 = match per_second {
            it if it >= 1e6 => 1,
            it if it >= 1.0 => 1_000,
            _ => 1_000_000,
        };
        let amount = match per_second {
            // At that size, a floating-point number has no meaningful parts of a unit.
            it if it >= 1e9 && it.is_finite() => it.min(MOST).round(),
            it => it * seconds as f64,
        };
        let amount = Units::try_from(amount)?;
        let period = Duration::from_secs(seconds);
        Ok(Self::new(amount, period).unwrap_or(Self::per_second(amount)))
    }

    /// Creates a rate of an amount in a number of nanoseconds.
    pub const fn per(amount: Units, period: NonZeroU64) -> Self {
        Self { amount, period }
    }

    /// Returns the amount.
    pub const fn amount(self) -> Units {
        self.amount
    }

    /// Returns the amount of one second, rounded up to whole units.
    pub fn in_a_second(self) -> Units {
        // Parts in a second, each a thousand millionth of a unit, are units in as many nanoseconds.
        let units = self.amount.parts().div_ceil(self.period.get().into());
        Units::from_parts(units.saturating_mul(Units::ONE.parts()))
    }

    /// Returns the amount of one second, as far as floating-point numbers go.
    pub fn as_per_second(self) -> f64 {
        self.amount.as_f64() / Duration::from_nanos(self.period.get()).as_secs_f64()
    }

    /// Returns the nanoseconds of its period.
    pub const fn period(self) -> NonZeroU64 {
        self.period
    }
}

/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// Names of the periods, the printed one first, and their nanoseconds.
const PERIODS: &[(&[&str], u64)] = &[
    (&["ns", "nanosecond", "nanoseconds"], 1),
    (&["us", "µs", "microsecond", "microseconds"], 1_000),
    (&["ms", "millisecond", "milliseconds"], 1_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["min", "minute", "minutes"], 60_000_000_000),
    (&["h", "hour", "hours"], 3_600_000_000_000),
    (&["day", "d", "days"], DAY),
    (&["week", "w", "weeks"], 7 * DAY),
];

/// Reads a period, such as `s` or `20min`.
fn period(text: &str) -> Result<NonZeroU64, InvalidRate> {
    let bad = || InvalidRate::Period(text.to_owned());
    let text = text.trim();
    let name = text.trim_start_matches(|it: char| it.is_ascii_digit());
    let count = match text.strip_suffix(name) {
        None | Some("") => 1,
        Some(count) => count.parse::<u64>().map_err(|_| bad())?,
    };
    let nanos = match name.trim().to_ascii_lowercase().as_str() {
        "month" | "months" => 30 * DAY,
        "year" | "years" => 365 * DAY,
        name => {
            let mut periods = PERIODS.iter();
            periods.find(|it| it.0.contains(&name)).ok_or_else(bad)?.1
        }
    };
    let nanos = count.checked_mul(nanos).and_then(NonZeroU64::new);
    nanos.ok_or(InvalidRate::PeriodLength)
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let parts = text.split_once('/');
        let (amount, period) = parts.ok_or_else(|| InvalidRate::NoPeriod(text.to_owned()))?;
        let amount = amount.trim();
        Ok(Self {
            amount: amount.parse().map_err(|problem| InvalidRate::Amount {
                amount: amount.to_owned(),
                problem,
            })?,
            period: self::period(period)?,
        })
    }
}

/// The text parses to the same rate.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.period.get();
        let mut periods = PERIODS.iter().rev();
        // Everything is a whole number of nanoseconds.
        let longest = periods.find(|(_, unit)| nanos.is_multiple_of(*unit));
        let (name, unit) = longest.map_or(("ns", 1), |(names, unit)| {
            (names.first().copied().unwrap_or("ns"), *unit)
        });
        match nanos / unit {
            1 => write!(f, "{}/{name}", self.amount),
            count => write!(f, "{}/{count}{name}", self.amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_value() {
        #[track_caller]
        fn check(text: &str, amount: &str, nanos: u64, printed: &str) {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.amount(), amount.parse().unwrap(), "{text}");
            assert_eq!(rate.period().get(), nanos, "{text}");
            assert_eq!(rate.to_string(), printed);
            assert_eq!(printed.parse(), Ok(rate));
        }
        check("100/s", "100", 1_000_000_000, "100/s");
        check("5000/h", "5000", 3_600_000_000_000, "5000/h");
        check("10/min", "10", 60_000_000_000, "10/min");
        check("4999 / day", "4999", 86_400_000_000_000, "4999/day");
        check("0.5/second", "0.5", 1_000_000_000, "0.5/s");
        check("2000/1200s", "2000", 1_200_000_000_000, "2000/20min");
        check("1/7d", "1", 604_800_000_000_000, "1/week");
        check("3/333333333ns", "3", 333_333_333, "3/333333333ns");
        check("7/month", "7", 30 * DAY, "7/30day");
        check("7/2Years", "7", 730 * DAY, "7/730day");
    }

    #[test]
    fn a_measured_number_keeps_its_digits() {
        for number in [
            0.0,
            1e-9,
            0.1,
            1.0 / 3.0,
            100.0 / 3.0,
            7.0,
            123_456.789,
            3e7,
            1.5e12,
            4e18,
        ] {
            let rate = Rate::from_per_second(number).unwrap();
            let is = rate.amount().as_f64() / (rate.period().get() as f64 / 1e9);
            assert!((is - number).abs() <= number * 1e-12, "{number}: {rate}");
        }
        assert_eq!(Rate::from_per_second(-1.0), Err(InvalidUnits::Negative));
        assert_eq!(
            Rate::from_per_second(f64::NAN),
            Err(InvalidUnits::NotANumber)
        );
        assert_eq!(
            Rate::from_per_second(f64::INFINITY),
            Err(InvalidUnits::TooLarge)
        );
        let most = Rate::from_per_second(f64::MAX).unwrap();
        assert_eq!(most, Rate::from_per_second(4e18).unwrap());
    }

    #[test]
    fn an_invalid_rate_is_an_error_with_its_reason() {
        #[track_caller]
        fn check(text: &str, problem: &str) {
            assert_eq!(text.parse::<Rate>().unwrap_err().to_string(), problem);
        }
        check(
            "100",
            "\"100\" is not a rate; give an amount and a period, as in 100/s, 5000/h, 10/min",
        );
        check("-1/s", "the amount \"-1\" is negative");
        check("NaN/s", "the amount \"NaN\" is not a number");
        check("inf/s", "the amount \"inf\" is not a number");
        check("/s", "the amount \"\" is not a number");
        check(
            "0.0000000001/s",
            "the amount \"0.0000000001\" has more than nine decimal places",
        );
        check("1/0s", "a period is from 1 ns to 584 years");
        check("1/99999999999h", "a period is from 1 ns to 584 years");
        // `m` could be a minute or a month.
        check(
            "10/m",
            "\"m\" is not a period; give ns, us, ms, s, min, h, day, week, month or year, as in 100/s or 100/10s",
        );
    }
}
